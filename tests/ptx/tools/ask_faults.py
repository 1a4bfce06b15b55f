#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a CUDA device what becomes of kernels that PTX leaves undefined: the driver's error, or the
value that they store.

    python3 tests/ptx/tools/ask_faults.py

needs the CUDA driver and a GPU. Each question has a process of its own, because an error ends what
a process can do with its device. `--ptxas PTXAS` assembles the questions and runs nothing.
"""
import argparse
import ctypes
import subprocess
import sys
import tempfile

HEAD = """.version 8.4
.target sm_90
.address_size 64
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 a);
"""
ENTRY = """.visible .entry k(.param .u64 p) { .reg .b64 %%out, %%a<8>; .reg .b32 %%r<8>; .reg .b16 %%h<8>;
.reg .pred %%p; .param .b64 x; .param .b64 y; ld.param.u64 %%out, [p];
%s
ret; }
"""
TAKE = "st.param.b64 [x], %s; call.uni (y), malloc, (x); ld.param.b64 %%a1, [y];"
GIVE = "st.param.b64 [x], %a1; call.uni free, (x);"
QUESTIONS = {
    "brkpt": "brkpt; st.global.u64 [%out], 1;",
    "trap": "trap; st.global.u64 [%out], 1;",
    "malloc of 0 bytes": TAKE % "0" + "st.global.u64 [%out], %a1;",
    "malloc of 16 MiB": TAKE % "0x1000000" + "st.global.u64 [%out], %a1;",
    "alignment of malloc": TAKE % "1" + "and.b64 %a1, %a1, 255; st.global.u64 [%out], %a1;",
    "free of NULL": "mov.u64 %a1, 0;" + GIVE + "st.global.u64 [%out], 1;",
    "free twice": TAKE % "64" + GIVE + GIVE + "st.global.u64 [%out], 1;",
    "free of a buffer": "mov.u64 %a1, %out;" + GIVE + "st.global.u64 [%out], 1;",
    "alloca of 1 GiB, unused": "alloca.u64 %a1, 0x40000000; st.global.u64 [%out], %a1;",
    "alloca of 1 MiB, used": "alloca.u64 %a1, 0x100000; st.local.u64 [%a1], 5;"
                             "ld.local.u64 %a2, [%a1]; st.global.u64 [%out], %a2;",
    "two allocas of 8 bytes": "alloca.u64 %a1, 8; alloca.u64 %a2, 8; sub.u64 %a1, %a2, %a1;"
                              "st.global.u64 [%out], %a1;",
    "createpolicy": "createpolicy.fractional.L2::evict_last.b64 %a1; st.global.u64 [%out], %a1;",
    "%pm0": "mov.u32 %r1, %pm0; cvt.u64.u32 %a1, %r1; st.global.u64 [%out], %a1;",
    "%current_graph_exec": "mov.u64 %a1, %current_graph_exec; st.global.u64 [%out], %a1;",
    "rcp.rn.ftz.f64 of a denormal": "mov.b64 %a2, 0x0008000000000000; rcp.rn.ftz.f64 %a1, %a2;"
                                    "st.global.u64 [%out], %a1;",
    "cvt.f16.bf16 of 1.0078125": "mov.b16 %h1, 0x3f81; cvt.f16.bf16 %h2, %h1; cvt.u64.u16 %a1, %h2;"
                                 "st.global.u64 [%out], %a1;",
    "values that fma.rn.oob.f16 takes for 0, the last and their number":
        "mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u64 %a2, 0; mov.b16 %h2, 0x3c00; mov.b16 %h3, 0x4000;"
        "L: cvt.u16.u32 %h1, %r1; fma.rn.oob.f16 %h4, %h1, %h2, %h3; setp.eq.b16 %p, %h4, 0;"
        "@%p cvt.u64.u32 %a2, %r1; @%p add.u32 %r2, %r2, 1; add.u32 %r1, %r1, 1;"
        "setp.lt.u32 %p, %r1, 65536; @%p bra L; cvt.u64.u32 %a1, %r2; shl.b64 %a1, %a1, 32;"
        "or.b64 %a1, %a1, %a2; st.global.u64 [%out], %a1;",
}


def ask(name):
    from ask_device import Device
    device = Device()
    function, out = ctypes.c_void_p(), (ctypes.c_uint64 * 1)(0x7777)
    module = device.load(HEAD + ENTRY % QUESTIONS[name])
    device.call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
    results = device.upload(out)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(results))
    device.call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
    device.call("cuCtxSynchronize")
    device.call("cuMemcpyDtoH_v2", out, results, ctypes.c_size_t(8))
    print("%x" % out[0])


def assemble(ptxas, name):
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(HEAD + ENTRY % QUESTIONS[name])
        file.flush()
        return subprocess.run([ptxas, "-arch=sm_90", "-o", "/dev/null", file.name],
                              capture_output=True, text=True, check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ptxas", help="only assemble, with this assembler")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        ask(options.one)
        return
    for name in QUESTIONS:
        if options.ptxas:
            done = assemble(options.ptxas, name)
        else:
            done = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True,
                                  text=True, check=False, timeout=120)
        answer = done.stdout.strip() or (done.stderr.strip().splitlines() or ["assembled"])[-1]
        print(f"{name}: {answer}")


if __name__ == "__main__":
    sys.exit(main())
