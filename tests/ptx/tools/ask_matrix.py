#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a CUDA device for the results of matrix instructions.

    python3 tests/ptx/tools/ask_matrix.py matrix.bin.gz

needs the CUDA driver and a GPU, nothing else. The file has one line of JSON, the forms that the driver
takes, and then for each form and each case the result registers of lane 0, lane 1 and so on, in bytes. matrix_forms.py
makes the operands again. With `--ptxas PTXAS` nothing is run: every instruction is assembled.
"""
import argparse
import ctypes
import gzip
import json
import subprocess
import sys
import tempfile

from ask_device import Device
from matrix_forms import CASES, FORMATS, FORMS, operands

HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"


def bytes_of(name):
    return 8 if FORMATS[name][0] == 64 else 4


def selector_of(case, meta):
    return case % meta[1]


def entry(number, case):
    """Each lane loads its registers, which lie one after the other as 8 bytes each."""
    text, a, b, c, meta = FORMS[number]
    lines, at, names = [], 0, []
    for letter, (name, count) in zip("abc", (a, b, c)):
        wide, group = bytes_of(name) == 8, []
        kind = "f64" if wide else "b32"
        lines.append(f".reg .{kind} %{letter}<{count}>;")
        if letter == "c":
            lines.append(f".reg .{kind} %d<{count}>;")
        for i in range(count):
            lines.append(f"ld.global.{kind} %{letter}{i}, [%in+{8 * at}];")
            group.append(f"%{letter}{i}")
            at += 1
        names.append("{" + ", ".join(group) + "}")
    result = "{" + ", ".join(f"%d{i}" for i in range(c[1])) + "}"
    operands_text = [result] + names
    if meta:
        lines.append(".reg .b32 %m;")
        lines.append(f"ld.global.b32 %m, [%in+{8 * at}];")
        operands_text += ["%m", f"0x{selector_of(case, meta):x}"]
        at += 1
    lines.append(f"{text} {', '.join(operands_text)};")
    step = bytes_of(c[0])
    for i in range(c[1]):
        lines.append(f"st.global.{'f64' if step == 8 else 'b32'} [%out+{step * i}], %d{i};")
    body = "\n".join(lines)
    return f""".visible .entry k{number}_{case % (meta[1] if meta else 1)}(.param .u64 data, .param .u64 results)
{{ .reg .b64 %in, %out, %off; .reg .b32 %lane;
ld.param.u64 %in, [data]; ld.param.u64 %out, [results]; mov.u32 %lane, %tid.x;
mul.wide.u32 %off, %lane, {8 * at}; add.u64 %in, %in, %off;
mul.wide.u32 %off, %lane, {step * c[1]}; add.u64 %out, %out, %off;
{body}
ret; }}
"""


def kernels(number):
    meta = FORMS[number][4]
    return HEAD + "".join(entry(number, case) for case in range(meta[1] if meta else 1))


def load_forms(device):
    modules = {}
    for number, form in enumerate(FORMS):
        try:
            modules[number] = device.load(kernels(number))
        except RuntimeError as error:
            print("refused:", form[0], error)
    return modules


def ask(path):
    device = Device()
    with gzip.open(path, "wb", compresslevel=9) as file:
        modules = load_forms(device)
        file.write(json.dumps([FORMS[number][0] for number in modules]).encode() + b"\n")
        for number, module in modules.items():
            _, _, _, c, meta = FORMS[number]
            size = 32 * c[1] * bytes_of(c[0])
            for case in range(CASES):
                flat = [v for lane in operands(number, case) for v in lane]
                data = device.upload((ctypes.c_uint64 * len(flat))(*flat))
                out = (ctypes.c_uint8 * size)()
                results, function = device.upload(out), ctypes.c_void_p()
                name = b"k%d_%d" % (number, case % (meta[1] if meta else 1))
                device.call("cuModuleGetFunction", ctypes.byref(function), module, name)
                arguments = (ctypes.c_void_p * 2)(ctypes.addressof(data), ctypes.addressof(results))
                device.call("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, None, arguments, None)
                device.call("cuCtxSynchronize")
                device.call("cuMemcpyDtoH_v2", out, results, ctypes.c_size_t(size))
                file.write(bytes(out))
                for address in (data, results):
                    device.call("cuMemFree_v2", address)


def assemble(ptxas):
    bad = 0
    for number, form in enumerate(FORMS):
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(kernels(number))
            file.flush()
            done = subprocess.run([ptxas, "-arch=sm_90", "-o", "/dev/null", file.name],
                                  capture_output=True, text=True, check=False)
        if done.returncode != 0:
            bad += 1
            print(form[0], done.stderr.splitlines()[0] if done.stderr else "", sep=": ")
    return bad != 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", default="matrix.bin.gz")
    parser.add_argument("--ptxas", help="only assemble, with this assembler")
    options = parser.parse_args()
    return assemble(options.ptxas) if options.ptxas else ask(options.file)


if __name__ == "__main__":
    sys.exit(main())
