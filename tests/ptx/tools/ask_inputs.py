# SPDX-License-Identifier: Apache-2.0
"""The operands that ask_device.py asks about: the edges of each format, and random ones."""
import random

RANDOM = random.Random(20240901)


def both_signs(values, bits):
    return [v | s << (bits - 1) for v in values for s in (0, 1)]


def edges(mantissa, exponent):
    """Values of a float format where something changes."""
    bias, one = (1 << (exponent - 1)) - 1, 1 << mantissa
    top = (1 << exponent) - 1
    fields = [0, 1, 2, 3, one // 2, one - 1, one, one + 1, 2 * one, 2 * one - 1,
              (mantissa + 2) * one, (top - 1) * one, (top - 1) * one + 1, (top - 2) * one,
              (top - 2) * one + 1, top * one - 1, top * one, top * one + 1,
              top * one + one // 2, top * one + one - 1]
    fields += [(bias + n) * one for n in (-1, 0, 1, 2)]
    fields += [bias * one - 1, bias * one + 1, bias * one + one // 2, bias * one + one - 1]
    return both_signs([f for f in fields if f >= 0], mantissa + exponent + 1)


def any_float(mantissa, exponent):
    return RANDOM.getrandbits(mantissa + exponent + 1)


def near_one(mantissa, exponent, spread=4):
    bias = (1 << (exponent - 1)) - 1
    return (RANDOM.getrandbits(1) << (mantissa + exponent)
            | (bias + RANDOM.randint(-spread, spread)) << mantissa | RANDOM.getrandbits(mantissa))


F32, F64, F16, BF16 = (23, 8), (52, 11), (10, 5), (7, 8)


def pick(values):
    return values[RANDOM.randrange(len(values))]


def mixed(form):
    kind = RANDOM.randrange(3)
    return pick(edges(*form)) if kind == 0 else any_float(*form) if kind == 1 else near_one(*form)


def rows(count, *makers):
    makers += (lambda: 0,) * (3 - len(makers))
    return [tuple(make() for make in makers) for _ in range(count)]


def floats(form, operands, count):
    first = [(v, 0, 0) for v in edges(*form)] if operands == 1 else []
    return first + rows(count, *[lambda: mixed(form)] * operands)


def pairs(form, operands, count):
    """Two halves in each word."""
    return rows(count, *[lambda: mixed(form) << 16 | mixed(form)] * operands)


def every_exponent(form, steps):
    mantissa, exponent = form
    return [(e << mantissa | (RANDOM.getrandbits(mantissa) if s else 0), 0, 0)
            for e in range(1 << (exponent + 1)) for s in range(steps)]


def divisions(count):
    """Quotients around the divisors that div.approx treats apart: |b| of 2^126 and above."""
    large = [0x7e800000, 0x7e7fffff, 0x7e800001, 0x7effffff, 0x7f000000, 0x7f7fffff, 0x7f800000,
             0x7e000000, 0x00800000, 0x007fffff, 0x00400000, 0x00200000, 0x001fffff, 1]
    exact = [(a, b, 0) for b in both_signs(large, 32)
             for a in (0, 1, 0x00800000, 0x3f800000, 0x40490fdb, 0x7e800000, 0x7f7fffff,
                       0x7f800000, 0x7fc00000, 0x80000000, 0xbf800000, 0xff800000)]
    return exact + rows(count, lambda: any_float(*F32), lambda: any_float(*F32))


def around(value, form, count):
    """Doubles or floats within some last places of the smallest normal number of a target."""
    mantissa, exponent = form
    sign = 1 << (mantissa + exponent)
    near = [value + d for d in range(-6, 7)] + [value + (d << s) for s in range(2, mantissa)
                                                for d in (-3, -2, -1, 1, 2, 3)]
    near += [value + RANDOM.randint(-(1 << RANDOM.randrange(4, mantissa)), 1 << RANDOM.randrange(
        4, mantissa)) for _ in range(count)]
    return [(v | s, 0, 0) for v in near for s in (0, sign)]


def products():
    """Products and sums close to the smallest normal single: where .ftz decides."""
    out = []
    for _ in range(240):
        shift = RANDOM.randint(1, 125)
        a = (127 - shift) << 23 | RANDOM.choice([0, 1, 0x7fffff, 0x7ffffe, RANDOM.getrandbits(23)])
        b = (127 - (126 - shift) + RANDOM.randint(-1, 0)) << 23 | RANDOM.choice(
            [0, 1, 2, 0x7fffff, 0x7ffffe, RANDOM.getrandbits(23)])
        c = RANDOM.choice([0, 0, 1, 0x00800000, 0x00800001, 0x33800000 - (100 << 23), 0x01000000])
        out.append((a | RANDOM.getrandbits(1) << 31, b, c | RANDOM.getrandbits(1) << 31))
    return out


def whole(bits):
    return RANDOM.choice([0, 1, 2, (1 << bits) - 1, (1 << bits) - 2, 1 << (bits - 1),
                          (1 << (bits - 1)) - 1, (1 << (bits - 1)) + 1, RANDOM.getrandbits(bits),
                          RANDOM.getrandbits(bits), RANDOM.getrandbits(RANDOM.randint(1, bits))])


def position():
    return RANDOM.choice([RANDOM.randint(0, 70), 0, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257,
                          264, 288, 320, 511, 512, 1 << 16, 1 << 31, (1 << 31) + 8, (1 << 32) - 1])


def fns():
    return (RANDOM.choice([0, 1, 0xffffffff, 0x80000000, RANDOM.getrandbits(32),
                           RANDOM.getrandbits(32) & RANDOM.getrandbits(32)]),
            RANDOM.choice([RANDOM.randint(0, 31), RANDOM.randint(0, 31), 0, 31, 32, 33, 64, 1 << 31,
                           (1 << 32) - 1]),
            RANDOM.choice([RANDOM.randint(-34, 34), RANDOM.randint(-4, 4), 0, 1, -1, 1 << 30,
                           -(1 << 31)]) & 0xffffffff)


def bytes4():
    return sum(RANDOM.choice([0, 1, 0x7f, 0x80, 0x81, 0xff, RANDOM.getrandbits(8)]) << 8 * n
               for n in range(4))


INPUTS = {
    "f32": floats(F32, 1, 200),
    "f32x2": floats(F32, 2, 256),
    "f32x3": floats(F32, 3, 256),
    "f64": floats(F64, 1, 200),
    "f64x2": floats(F64, 2, 200),
    "f64x3": floats(F64, 3, 200),
    "f16x2": pairs(F16, 2, 200),
    "f16x3": pairs(F16, 3, 200),
    "bf16x2": pairs(BF16, 2, 200),
    "bf16x3": pairs(BF16, 3, 200),
    "exponents32": every_exponent(F32, 2),
    "exponents64": every_exponent(F64, 1)[::3],
    "all16": [(v, 0, 0) for v in range(1 << 16)],
    "all8": [(v | (255 - v) << 8, 0, 0) for v in range(256)],
    "divide": divisions(100),
    "small64": around(0x3810000000000000, F64, 100),
    "tiny64": around(0x36a0000000000000, F64, 40),
    "small32": around(0x38800000, F32, 60),
    "tiny32": around(0x33800000, F32, 30),
    "fp8": around(0x3c800000, F32, 20) + around(0x3b000000, F32, 20) + around(0x43e00000, F32, 20)
           + around(0x47600000, F32, 20) + around(0x37800000, F32, 20) + floats(F32, 2, 300),
    "products": products(),
    "int32": rows(160, lambda: whole(32), lambda: whole(32), lambda: whole(32)),
    "int64": rows(160, lambda: whole(64), lambda: whole(64), lambda: whole(64)),
    "field32": rows(320, lambda: whole(32), position, position),
    "field64": rows(320, lambda: whole(64), position, position),
    "shift32": rows(200, lambda: whole(32), lambda: whole(32), position),
    "fns": [fns() for _ in range(320)],
    "bytes": rows(64, bytes4, bytes4, bytes4),
}
