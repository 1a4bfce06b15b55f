#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes the constants of the device math headers and prints bulkhead_math_tables.h.

Every polynomial interpolates its function at Chebyshev points, with as many terms as the target
needs, and is then rounded to the type it is used in. Needs mpmath:

    python3 scripts/math_coefficients.py > src/compiler/headers/device/bulkhead_math_tables.h
"""
import struct

from mpmath import mp, mpf, mpc, acos, asin, atan, atanh, cos, erf, erfc, exp, floor, gamma, log
from mpmath import loggamma, lu_solve, matrix, pi, sin, sqrt, tan, tanh, chop  # noqa: F401

mp.dps = 90
FLOAT, DOUBLE = "F", "D"
BITS = {FLOAT: 24, DOUBLE: 53}


def rounded(value, kind):
    """The nearest number of the type, as mpf."""
    if value == 0:
        return mpf(0)
    scale = mpf(2) ** (BITS[kind] - 1 - int(floor(log(abs(value), 2))))
    return mp.nint(value * scale) / scale


def text(value, kind):
    if kind == FLOAT:
        return "%.9gf" % float(value) if "." in "%.9g" % float(value) or "e" in "%.9g" % float(
            value) else "%.1ff" % float(value)
    shown = "%.17g" % float(value)
    return shown if "." in shown or "e" in shown else shown + ".0"


def interpolate(function, low, high, terms):
    low, high = mpf(low), mpf(high)
    points = [(low + high) / 2 + (high - low) / 2 * cos(pi * (2 * i + 1) / (2 * terms))
              for i in range(terms)]
    rows = matrix(terms, terms)
    right = matrix(terms, 1)
    for i, x in enumerate(points):
        for j in range(terms):
            rows[i, j] = x ** j
        right[i] = function(x)
    solution = lu_solve(rows, right)
    return [solution[i] for i in range(terms)]


def value_of(coefficients, x):
    total = mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def error_of(function, coefficients, low, high):
    worst = mpf(0)
    for i in range(101):
        x = mpf(low) + (mpf(high) - mpf(low)) * (mpf(i) + mpf("0.37")) / 102
        f = function(x)
        worst = max(worst, abs((value_of(coefficients, x) - f) / f))
    return worst


def polynomial(name, function, low, high, targets):
    """Prints the shortest polynomials whose relative errors are at most 2^-targets[kind]."""
    for kind, bits in targets.items():
        for terms in range(2, 40):
            exact = interpolate(function, low, high, terms)
            if error_of(function, exact, low, high) < mpf(2) ** -bits:
                break
        used = [rounded(c, kind) for c in exact]
        lines, line = [], "#define __BH_%s_%s" % (name, kind)
        for i, c in enumerate(used):
            word = " " + text(c, kind) + ("," if i + 1 < len(used) else "")
            if len(line + word) > 96:
                lines.append(line)
                line = "   "
            line += word
        lines.append(line)
        print((" \\\n").join(lines))


def split(name, value, kind, parts, bits=None):
    """value as a sum of `parts` numbers; all but the last have at most `bits` bits."""
    rest = value
    for i in range(parts):
        if i + 1 < parts and bits is not None:
            scale = mpf(2) ** (bits - 1 - int(floor(log(abs(rest), 2))))
            part = floor(rest * scale) / scale
        else:
            part = rounded(rest, kind)
        rest -= part
        print("#define __BH_%s%d_%s %s" % (name, i + 1, kind, text(part, kind)))


def odd(f):
    """(f(x) - x) / x^3 as a function of x^2."""
    return lambda z: (f(sqrt(z)) - sqrt(z)) / sqrt(z) ** 3


print("/* SPDX-License-Identifier: Apache-2.0 */")
print("/* Constants of the math functions. Written by scripts/math_coefficients.py. */")
print("/* clang-format off */")
print("#ifndef BULKHEAD_MATH_TABLES_H\n#define BULKHEAD_MATH_TABLES_H\n")

for kind in (FLOAT, DOUBLE):
    split("PIO2_", pi / 2, kind, 3)
    split("PI_", pi, kind, 2)
    split("LN2_", log(2), kind, 2, 15 if kind == FLOAT else 40)
    split("LOG10_2_", log(2) / log(10), kind, 2, 15 if kind == FLOAT else 40)
    split("LN2_FULL_", log(2), kind, 2)
    split("LN10_", log(10), kind, 2)
    split("LOG2_E_", 1 / log(2), kind, 2)
    split("LOG10_E_", 1 / log(10), kind, 2)
    split("LOG2_10_", log(10) / log(2), kind, 1)
    split("TWO_OVER_PI_", 2 / pi, kind, 1)
    split("SQRT_HALF_", sqrt(mpf(1) / 2), kind, 1)
    split("TWO_THIRDS_", mpf(2) / 3, kind, 2)
    split("HALF_LOG_2PI_", log(2 * pi) / 2, kind, 2)
    split("SQRT_2PI_", sqrt(2 * pi), kind, 1)
    split("CBRT2_", mpf(2) ** (mpf(1) / 3), kind, 1)
    split("CBRT4_", mpf(4) ** (mpf(1) / 3), kind, 1)
    split("LOG_PI_", log(pi), kind, 1)
print()

half = mpf("0.34660")
polynomial("EXP", lambda r: (exp(r) - 1 - r) / r ** 2, -half, half, {FLOAT: 22, DOUBLE: 53})
m = sqrt(mpf(1) / 2) - 1
polynomial("LOG", lambda f: (log(1 + f) - f + f * f / 2) / f ** 3, m, sqrt(mpf(2)) - 1,
           {FLOAT: 23})
z = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2 * mpf("1.001")
polynomial("ATANH3", lambda z: (2 * atanh(sqrt(z)) - 2 * sqrt(z)) / sqrt(z) ** 3, 0, z,
           {FLOAT: 21, DOUBLE: 52})
polynomial("ATANH5",
           lambda z: (2 * atanh(sqrt(z)) - 2 * sqrt(z) - 2 * sqrt(z) ** 3 / 3) / sqrt(z) ** 5,
           0, z, {FLOAT: 20, DOUBLE: 48})
z = (pi / 4 * mpf("1.01")) ** 2
polynomial("SIN", odd(sin), 0, z, {FLOAT: 24, DOUBLE: 54})
polynomial("COS", lambda z: (cos(sqrt(z)) - 1 + z / 2) / z ** 2, 0, z, {FLOAT: 23, DOUBLE: 53})
polynomial("TAN", odd(tan), 0, z, {FLOAT: 24, DOUBLE: 54})
polynomial("ASIN", odd(asin), 0, mpf("0.2501"), {FLOAT: 23, DOUBLE: 53})
polynomial("ATAN", odd(atan), 0, mpf("0.1717"), {FLOAT: 24, DOUBLE: 54})
polynomial("TANH", odd(tanh), 0, mpf("0.36"), {FLOAT: 24, DOUBLE: 54})
polynomial("ERF", lambda z: erf(sqrt(z)) / sqrt(z) - 1, 0, mpf(1), {FLOAT: 26, DOUBLE: 56})
K = mpf(2)


def scaled_erfc(t):
    x = K * (1 + t) / (1 - t)
    return erfc(x) * exp(x * x) * (1 + 2 * x)


low = (mpf("0.95") - K) / (mpf("0.95") + K)
high = (mpf(28) - K) / (mpf(28) + K)
polynomial("ERFC", scaled_erfc, low, high, {FLOAT: 26, DOUBLE: 56})
polynomial("LGAMMA", lambda u: loggamma(2 + u).real / ((1 + u) * u), mpf(-1) + mpf("1e-30"), 1,
           {DOUBLE: 55})
polynomial("GAMMA", lambda u: gamma(2 + u), 0, 1, {DOUBLE: 56})


def stirling(w):
    x = 1 / sqrt(w)
    return (loggamma(x).real - ((x - mpf(1) / 2) * log(x) - x + log(2 * pi) / 2)) * x


polynomial("STIRLING", stirling, mpf("1e-12"), mpf(1) / 63, {DOUBLE: 50})
polynomial("CBRT", lambda m: m ** (mpf(1) / 3), 1, 2, {FLOAT: 12, DOUBLE: 20})

print("\n/* The bits of 2/pi after the binary point. */")
for kind, width, count in ((FLOAT, 32, 8), (DOUBLE, 64, 22)):
    mp.dps = 600
    bits = 2 / mp.pi
    words = []
    for _ in range(count):
        bits *= mpf(2) ** width
        words.append(int(floor(bits)))
        bits -= floor(bits)
    per_line = 4
    shown = ["0x%0*x%s" % (width // 4, w, "u" if kind == FLOAT else "ull") for w in words]
    rows = [", ".join(shown[i:i + per_line]) for i in range(0, count, per_line)]
    print("#define __BH_TWO_OVER_PI_BITS_%s \\\n    " % kind + (", \\\n    ").join(rows))
    mp.dps = 90
print("\n#endif")
