#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a CUDA device for the results of PTX instructions, which tests/ptx compares with.

    python3 tests/ptx/tools/ask_device.py answers.txt.gz

needs the CUDA driver and a GPU, nothing else, and takes less than a minute. The file (below 1 MB)
has blocks of two kinds, in hexadecimal:

    inputs NAME COUNT               then COUNT lines: a b c
    ask BITS NAME INSTRUCTION       then lines of results, one number for each line of inputs

tools/keep_answers.py makes the test's file of it, which is smaller.

With `--ptxas PTXAS` nothing is run: every instruction is assembled, to find mistakes without a GPU.
"""
import argparse
import ctypes
import gzip
import subprocess
import sys
import tempfile

from ask_inputs import INPUTS
from ask_instructions import QUESTIONS

HEAD = ".version 8.4\n.target sm_90\n.address_size 64\n"
ENTRY = """.visible .entry k%d(.param .u64 data, .param .u64 results, .param .u32 count)
{ .reg .b64 %%rd<9>, %%in, %%out, %%at; .reg .b32 %%r<9>, %%n, %%i; .reg .b16 %%h<9>;
.reg .pred %%p<4>, %%past; .reg .b32 %%b;
ld.param.u64 %%in, [data]; ld.param.u64 %%out, [results]; ld.param.u32 %%n, [count];
mov.u32 %%i, %%tid.x; mov.u32 %%b, %%ctaid.x; mad.lo.u32 %%i, %%b, 128, %%i;
setp.ge.u32 %%past, %%i, %%n; @%%past ret;
mul.wide.u32 %%at, %%i, 24; add.u64 %%in, %%in, %%at; mul.wide.u32 %%at, %%i, 8;
add.u64 %%out, %%out, %%at; ld.global.u64 %%rd1, [%%in]; ld.global.u64 %%rd2, [%%in+8];
ld.global.u64 %%rd3, [%%in+16]; cvt.u32.u64 %%r1, %%rd1; cvt.u32.u64 %%r2, %%rd2;
cvt.u32.u64 %%r3, %%rd3; cvt.u16.u64 %%h1, %%rd1; cvt.u16.u64 %%h2, %%rd2;
cvt.u16.u64 %%h3, %%rd3;
%s
%s
st.global.u64 [%%out], %%rd0; ret; }
"""
MOVES = {64: "", 32: "cvt.u64.u32 %rd0, %r0;", 16: "cvt.u64.u16 %rd0, %h0;",
         1: "selp.u64 %rd0, 1, 0, %p0;"}


def entry(number, bits, instruction):
    return ENTRY % (number, instruction, MOVES[bits])


class Device:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        code = getattr(self.cuda, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name} failed with {code}")

    def load(self, text):
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(5, 6)  # the error log and its size
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), 8192)
        code = self.cuda.cuModuleLoadDataEx(ctypes.byref(module), text.encode(), 2, options, values)
        if code != 0:
            raise RuntimeError(f"module: error {code}: {log.value.decode()}")
        return module

    def upload(self, data):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(ctypes.sizeof(data)))
        self.call("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(ctypes.sizeof(data)))
        return address

    def run(self, module, number, data, count):
        function, out = ctypes.c_void_p(), (ctypes.c_uint64 * count)()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"k%d" % number)
        results = self.upload(out)
        n = ctypes.c_uint32(count)
        arguments = (ctypes.c_void_p * 3)(*(ctypes.addressof(v) for v in (data, results, n)))
        self.call("cuLaunchKernel", function, (count + 127) // 128, 1, 1, 128, 1, 1, 0, None,
                  arguments, None)
        self.call("cuCtxSynchronize")
        self.call("cuMemcpyDtoH_v2", out, results, ctypes.c_size_t(8 * count))
        self.call("cuMemFree_v2", results)
        return list(out)


def ask(path):
    device = Device()
    modules = device.load(HEAD + "".join(entry(n, q[0], q[2]) for n, q in enumerate(QUESTIONS)))
    data = {}
    with gzip.open(path, "wt", compresslevel=9) as file:
        for name, rows in INPUTS.items():
            flat = [v for row in rows for v in row]
            data[name] = device.upload((ctypes.c_uint64 * len(flat))(*flat))
            print("inputs", name, len(rows), file=file)
            for row in rows:
                print(*("%x" % v for v in row), file=file)
        for number, (bits, name, instruction) in enumerate(QUESTIONS):
            results = device.run(modules, number, data[name], len(INPUTS[name]))
            print("ask", bits, name, instruction, file=file)
            for at in range(0, len(results), 16):
                print(*("%x" % v for v in results[at:at + 16]), file=file)


def assemble(ptxas):
    for number, (bits, _, instruction) in enumerate(QUESTIONS):
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(HEAD + entry(number, bits, instruction))
            file.flush()
            done = subprocess.run([ptxas, "-arch=sm_90", "-o", "/dev/null", file.name],
                                  capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(instruction, done.stderr, sep="\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", default="answers.txt.gz")
    parser.add_argument("--ptxas", help="only assemble, with this assembler")
    options = parser.parse_args()
    if options.ptxas:
        assemble(options.ptxas)
    else:
        ask(options.file)


if __name__ == "__main__":
    sys.exit(main())
