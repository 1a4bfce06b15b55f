#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares sources of device math functions: the device headers, libclc, LLVM's libc.

For each function, type and source: the largest error in ulp against mpmath, the PTX instructions
in the kernel and what it calls, and the CPU device's time per call. Needs clang, mpmath and the
built program `bulkhead`; nothing is downloaded. A source that is not given is left out.

    python3 tests/device_header/tools/math_sources.py
    python3 ... --libclc /usr/lib/clc/nvptx64--nvidiacl.bc      # the package libclc-19
    python3 ... --libc math.bc    # functions of LLVM's libc as bitcode for nvptx64, C names
"""
import argparse
import array
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

try:
    import mpmath
    from mpmath import mp, mpf
except ImportError:
    sys.exit("mpmath is missing. Fix: sudo apt-get install python3-mpmath")

mp.prec = 160
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
DIGITS = {"float": 24, "double": 53}
MIN = {"float": -149, "double": -1074}  # exponent of the least subnormal number
LARGEST = {"float": mpf(2) ** 128 - mpf(2) ** 104, "double": mpf(2) ** 1024 - mpf(2) ** 971}
FORMAT = {"float": "f", "double": "d"}


def hypot(x, y):
    return mpmath.sqrt(x * x + y * y)


def lgamma(x):
    return mpmath.loggamma(x) if x > 0 else mpmath.log(abs(mpmath.gamma(x)))


# name: reference, ordinary range, ulp that CUDA's programming guide allows (float, double). The
# guide counts from the correctly rounded result, so half a unit more is allowed here.
FUNCTIONS = {
    "sqrt": (mpmath.sqrt, 0, 1000, 0, 0),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), 0.001, 100, 2, 1),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), -100, 100, 1, 1),
    "exp": (mpmath.exp, -100, 100, 2, 1),
    "exp2": (lambda x: mpf(2) ** x, -150, 130, 2, 1),
    "exp10": (lambda x: mpf(10) ** x, -46, 40, 2, 1),
    "expm1": (mpmath.expm1, -5, 5, 1, 1),
    "log": (mpmath.log, 0, 10, 1, 1),
    "log2": (lambda x: mpmath.log(x) / mpmath.ln2, 0, 10, 1, 1),
    "log10": (lambda x: mpmath.log(x) / mpmath.ln10, 0, 10, 2, 1),
    "log1p": (mpmath.log1p, -1, 5, 1, 1),
    "sin": (mpmath.sin, -100, 100, 2, 2),
    "cos": (mpmath.cos, -100, 100, 2, 2),
    "tan": (mpmath.tan, -100, 100, 4, 2),
    "sinpi": (mpmath.sinpi, -100, 100, 1, 2),
    "cospi": (mpmath.cospi, -100, 100, 1, 2),
    "asin": (mpmath.asin, -1, 1, 2, 2),
    "acos": (mpmath.acos, -1, 1, 2, 2),
    "atan": (mpmath.atan, -10, 10, 2, 2),
    "sinh": (mpmath.sinh, -10, 10, 3, 2),
    "cosh": (mpmath.cosh, -10, 10, 2, 1),
    "tanh": (mpmath.tanh, -5, 5, 2, 1),
    "asinh": (mpmath.asinh, -10, 10, 3, 3),
    "acosh": (mpmath.acosh, 1, 10, 4, 3),
    "atanh": (mpmath.atanh, -1, 1, 3, 2),
    "erf": (mpmath.erf, -4, 4, 2, 2),
    "erfc": (mpmath.erfc, -4, 27, 4, 5),
    "tgamma": (mpmath.gamma, 0.001, 35, 5, 10),
    "lgamma": (lgamma, 0.001, 50, 6, 4),
    "pow": (mpmath.power, 0, 20, 4, 2),
    "atan2": (mpmath.atan2, -10, 10, 3, 2),
    "hypot": (hypot, -10, 10, 3, 2),
    "fmod": (lambda x, y: mpf(math.fmod(float(x), float(y))), -100, 100, 0, 0),
}
BINARY = {"pow", "atan2", "hypot", "fmod"}
# Where the guide promises nothing.
EXCLUDED = {("lgamma", "float"): (-10.002, -2.263), ("lgamma", "double"): (-23.001, -2.263)}


def arguments_of(name, kind, count, rng):
    """Half from the ordinary range, half with random exponents: subnormal to huge."""
    _, low, high, _, _ = FUNCTIONS[name]
    size, bits = (4, "I") if kind == "float" else (8, "Q")
    values = []
    while len(values) < count:
        if len(values) % 2 == 0:
            values.append(low + (high - low) * rng.random())
            continue
        raw = struct.pack("<" + bits, rng.getrandbits(8 * size))
        value = struct.unpack("<" + FORMAT[kind], raw)[0]
        if math.isfinite(value):
            values.append(value)
    return array.array(FORMAT[kind], values)


def true_value(name, x, y):
    """The exact result as mpf, or None where it is not a finite real number."""
    function = FUNCTIONS[name][0]
    try:
        if name in ("exp", "exp2", "exp10", "expm1", "sinh", "cosh") and abs(x) > 5000:
            return None if x > 0 or name in ("sinh", "cosh") else mpf(-1 if name == "expm1" else 0)
        if name in ("erf", "tanh") and abs(x) > 100:
            return mpf(1 if x > 0 else -1)
        if name == "erfc" and abs(x) > 100:
            return mpf(0 if x > 0 else 2)
        if name == "tgamma" and (abs(x) > 200 or (x <= 0 and x == int(x))):
            return None
        if name == "lgamma" and x <= 0 and (x == int(x) or x < -1e6):
            return None
        if name == "pow":
            if x <= 0 or y == 0 or abs(y * mpmath.log(x)) > 5000:
                return None
        if name in ("fmod", "atan2") and (y == 0 or x == 0):
            return None
        with mp.workprec(mp.prec):
            mx = mpf(x)
            if name in ("expm1", "log1p", "atanh", "asinh", "sinh", "tanh", "acosh", "acos",
                        "lgamma", "erfc", "asin", "atan"):
                mp.prec = 420 if abs(x) > 1e-60 else 1400
            value = function(mx, mpf(y)) if name in BINARY else function(mx)
        if isinstance(value, mpmath.mpc):
            return None
        return +value if mpmath.isfinite(value) else None
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def ulp_error(got, want, kind):
    if abs(want) > LARGEST[kind]:
        return 0.0 if math.isinf(got) or abs(got) > LARGEST[kind] * (1 - 1e-6) else 1e9
    if not math.isfinite(got):
        return 1.0 if math.isinf(got) and abs(want) > LARGEST[kind] * (1 - mpf(2) ** -20) else 1e9
    exponent = mpmath.frexp(want)[1] - DIGITS[kind] if want != 0 else MIN[kind]
    return float(abs(mpf(got) - want) / mpf(2) ** max(exponent, MIN[kind]))


def source_text(source, name, kind):
    """A kernel kind_name: y[i] = name(x[i])."""
    call = name + ("f" if kind == "float" and source != "libclc" else "")
    second = name in BINARY
    lines = []
    if source != "headers":
        lines += ["#define __device__ __attribute__((device))",
                  "#define __global__ __attribute__((global))",
                  "%s__device__ %s %s(%s%s);" % ('extern "C" ' if source == "libc" else "", kind,
                                                 call, kind, ", " + kind if second else "")]
    lines += ['extern "C" __global__ void %s_%s(const %s *x, %s%s *y, unsigned n) {' % (
                  kind, name, kind, "const %s *z, " % kind if second else "", kind),
              "    unsigned i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() +",
              "                 __nvvm_read_ptx_sreg_tid_x();",
              "    if (i < n) y[i] = %s(x[i]%s);" % (call, ", z[i]" if second else ""), "}"]
    return "\n".join(lines) + "\n"


def compile_source(options, source, name, kind, folder):
    """The PTX's path or None, the first error, and the seconds it took."""
    path = os.path.join(folder, "%s-%s-%s.cu" % (source, name, kind))
    with open(path, "w", encoding="ascii") as file:
        file.write(source_text(source, name, kind))
    command = [options.clang, "-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib",
               "--cuda-path=/nonexistent", "-O3", "-S", "--cuda-gpu-arch=sm_80", "-w",
               "-ffp-contract=" + options.contract, path, "-o",
               path + ".ptx"]
    if source == "headers":
        command += ["-include", "bulkhead_cuda.h", "-I", ROOT + "/src/compiler/headers/device"]
    else:
        command += ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", getattr(options, source)]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["failed"])[0], seconds
    with open(path + ".ptx", encoding="utf-8") as file:
        missing = re.findall(r"^\.extern \.func.*?(\w+)\s*$", file.read(), re.M)
    if missing:
        return None, "not defined: " + ", ".join(missing), seconds
    return path + ".ptx", None, seconds


def instructions_of(ptx, kernel):
    """Instructions in the kernel and in all functions that it calls, each counted once."""
    with open(ptx, encoding="utf-8") as file:
        text = re.sub(r"//.*", "", file.read())
    bodies = {}
    for part in re.split(r"\n(?=(?:\.visible |\.weak )?\.(?:entry|func))", text):
        head = re.match(r"(?:\.visible |\.weak )?\.(?:entry|func)\s*(?:\([^)]*\)\s*)?([\w$]+)",
                        part)
        if head and "\n{" in part:
            bodies[head.group(1)] = part[part.index("\n{"):]
    total, waiting, seen = 0, [kernel], set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in bodies:
            continue
        seen.add(name)
        for line in bodies[name].splitlines():
            if re.match(r"\s+(?:@!?%\w+\s+)?[a-z]\w*(?:\.\w+)*[\s;]", line):
                total += 1
        waiting += [other for other in bodies if other != name and re.search(
            r"\b%s\b" % re.escape(other), bodies[name])]
    return total


def run(options, ptx, name, kind, x, z, folder, repeat):
    """The results, and nanoseconds per call."""
    files = [os.path.join(folder, part) for part in ("x", "z", "y")]
    for path, values in zip(files, (x, z)):
        if values is not None:
            with open(path, "wb") as file:
                values.tofile(file)
    short = "f32" if kind == "float" else "f64"
    command = [options.bulkhead, "run", ptx, "-d", "cpu", "-k", "%s_%s" % (kind, name), "-b", "128",
               "-g", str((len(x) + 127) // 128)]
    if repeat > 1:
        command += ["--repeat", str(repeat)]
    command += ["in:%s:@%s" % (short, files[0])]
    if z is not None:
        command += ["in:%s:@%s" % (short, files[1])]
    command += ["out:%s:%d:@%s" % (short, len(x), files[2]), "u32:%d" % len(x)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, 0.0, done.stderr
    found = re.search(r"([\d.]+) (ns|us|ms|s) (?:each|per launch|a launch)", done.stdout +
                      done.stderr)
    scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    nanoseconds = float(found.group(1)) * scale[found.group(2)] / len(x) if found else 0.0
    got = array.array(FORMAT[kind])
    with open(files[2], "rb") as file:
        got.frombytes(file.read())
    return got, nanoseconds, ""


def measure(options, name, kind, points, source, folder):
    x, z, want = points
    ptx, why, seconds = compile_source(options, source, name, kind, folder)
    if ptx is None:
        return None, why
    got, _, why = run(options, ptx, name, kind, x, z, folder, 1)
    if got is None:
        return None, (re.search(r"(illegal [^,]*)", why) or re.search(r"(.*)", why)).group(1)
    worst, at = 0.0, None
    for i, value in enumerate(want):
        if value is not None:
            error = ulp_error(got[i], value, kind)
            if error > worst:
                worst, at = error, (x[i], z[i]) if z is not None else x[i]
    ordinary = x[::2], z[::2] if z is not None else None
    times = [run(options, ptx, name, kind, ordinary[0], ordinary[1], folder, options.repeat)[1]
             for _ in range(3)]
    size = os.path.getsize(ptx)
    return (worst, at, instructions_of(ptx, "%s_%s" % (kind, name)), min(times), seconds, size), ""


def points_of(name, kind, options):
    rng = random.Random(options.seed)
    x = arguments_of(name, kind, options.points, rng)
    z = arguments_of(name, kind, options.points, rng) if name in BINARY else None
    excluded = EXCLUDED.get((name, kind))
    want = []
    for i, value in enumerate(x):
        skip = excluded and excluded[0] < value < excluded[1]
        want.append(None if skip else true_value(name, value, z[i] if z is not None else 0.0))
    return x, z, want


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clang", default="clang-19")
    parser.add_argument("--bulkhead", default=ROOT + "/build/bin/bulkhead")
    parser.add_argument("--libclc", help="libclc's bitcode for nvptx64")
    parser.add_argument("--libc", help="bitcode of LLVM's libc for nvptx64")
    parser.add_argument("--contract", default="fast", help="-ffp-contract; CUDA's default is fast")
    parser.add_argument("--points", type=int, default=3000)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="these functions only")
    options = parser.parse_args()
    sources = ["headers"] + [s for s in ("libclc", "libc") if getattr(options, s)]
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only or FUNCTIONS:
            for column, kind in enumerate(("float", "double")):
                points = points_of(name, kind, options)
                for source in sources:
                    result, why = measure(options, name, kind, points, source, folder)
                    if result is None:
                        print("%-7s %-7s %-8s %s" % (name, kind, source, why), flush=True)
                        continue
                    worst, at, count, nanoseconds, seconds, size = result
                    allowed = FUNCTIONS[name][3 + column] + 0.5
                    print("%-7s %-7s %-8s %10.3g ulp%s %5d instructions %7.0f ns "
                          "compile %.2f s ptx %d bytes, worst at %r" % (
                              name, kind, source, worst, " BEYOND" if worst > allowed else "",
                              count, nanoseconds, seconds, size, at), flush=True)


if __name__ == "__main__":
    main()
