# SPDX-License-Identifier: Apache-2.0
"""The matrix instructions that ask_matrix.py asks about, and the operands it gives them.

A form is (instruction, a, b, c, meta): an operand is (format, registers of a lane). The operands follow
from the number of the form and of the case alone, so that a test can make them again: see `operands`.
"""

# name: bits, mantissa, exponent (0: an integer)
FORMATS = {"f16": (16, 10, 5), "bf16": (16, 7, 8), "tf32": (32, 10, 8), "f32": (32, 23, 8), "f64": (64, 52, 11),
           "e4m3": (8, 3, 4), "e5m2": (8, 2, 5), "s8": (8, 0, 0), "u8": (8, 0, 0), "s4": (4, 0, 0), "u4": (4, 0, 0),
           "b1": (1, 0, 0), "s32": (32, 0, 0)}
MASK = (1 << 64) - 1


def splitmix(state):
    state = state + 0x9E3779B97F4A7C15 & MASK
    z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return state, z ^ z >> 31


def form(shape, d, a, b, c, counts, middle="row.col", end="", kind="mma.sync.aligned", meta=None):
    """counts: registers of a, b and c."""
    if kind.startswith("mma.sp"):
        middle = "row.col"
    text = f"{kind}.{shape}.{middle}{end}.{d}.{a}.{b}.{c}"
    return text, (a, counts[0]), (b, counts[1]), (c, counts[2]), meta


def dense():
    for layout in ("row.col", "row.row", "col.col", "col.row"):
        for d, c in (("f16", "f16"), ("f32", "f32")):
            yield form("m8n8k4", d, "f16", "f16", c, (2, 2, 4 if c == "f16" else 8), layout)
    for k, counts in ((8, (2, 1)), (16, (4, 2))):
        for acc, regs in (("f16", 2), ("f32", 4)):
            yield form(f"m16n8k{k}", acc, "f16", "f16", acc, counts + (regs,))
        yield form(f"m16n8k{k}", "f32", "bf16", "bf16", "f32", counts + (4,))
    for k, counts in ((4, (2, 1, 4)), (8, (4, 2, 4))):
        yield form(f"m16n8k{k}", "f32", "tf32", "tf32", "f32", counts)
    for shape, counts in (("m8n8k4", (1, 1, 2)), ("m16n8k4", (2, 1, 4)), ("m16n8k8", (4, 2, 4)), ("m16n8k16", (8, 4, 4))):
        yield form(shape, "f64", "f64", "f64", "f64", counts)
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            yield form("m16n8k32", "f32", a, b, "f32", (4, 2, 4))
    for bits, shapes in ((8, ("m8n8k16", "m16n8k16", "m16n8k32")), (4, ("m8n8k32", "m16n8k32", "m16n8k64"))):
        for shape, counts in zip(shapes, ((1, 1, 2), (2, 1, 4), (4, 2, 4))):
            for a in "su":
                for b in "su":
                    for end in ("", ".satfinite"):
                        yield form(shape, "s32", f"{a}{bits}", f"{b}{bits}", "s32", counts, end=end)
    for shape, counts in (("m8n8k128", (1, 1, 2)), ("m16n8k128", (2, 1, 4)), ("m16n8k256", (4, 2, 4))):
        for how in ("xor", "and"):
            text, a, b, c, meta = form(shape, "s32", "b1", "b1", "s32", counts)
            yield text + f".{how}.popc", a, b, c, meta


def sparse():
    """meta: the numbers of bits that name one group's elements, and the selectors that are allowed."""
    kind = "mma.sp::ordered_metadata.sync.aligned"
    for shape, counts, selectors in (("m16n8k16", (2, 2), 4), ("m16n8k32", (4, 4), 2)):
        for acc, regs in (("f16", 2), ("f32", 4)):
            yield form(shape, acc, "f16", "f16", acc, counts + (regs,), kind=kind, meta=("2:4", selectors))
        yield form(shape, "f32", "bf16", "bf16", "f32", counts + (4,), kind=kind, meta=("2:4", selectors))
    for shape, counts, selectors in (("m16n8k8", (2, 2), 4), ("m16n8k16", (4, 4), 2)):
        yield form(shape, "f32", "tf32", "tf32", "f32", counts + (4,), kind=kind, meta=("1:2", selectors))
    for bits, shapes in ((8, ("m16n8k32", "m16n8k64")), (4, ("m16n8k64", "m16n8k128"))):
        for shape, counts, selectors in zip(shapes, ((2, 2, 4), (4, 4, 4)), (2, 1)):
            for signs in ("ss", "us"):
                yield form(shape, "s32", f"{signs[0]}{bits}", f"{signs[1]}{bits}", "s32", counts, kind=kind,
                           meta=("2:4" if bits == 8 else "4:8", selectors))
    yield form("m16n8k64", "f32", "e4m3", "e5m2", "f32", (4, 4, 4), kind=kind, meta=("2:4", 1))


def later():
    """Forms that were added: numbers of others stay. A device may refuse them."""
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            yield form("m16n8k32", "f16", a, b, "f16", (4, 2, 2))
            yield form("m16n8k16", "f16", a, b, "f16", (2, 1, 2))
            yield form("m16n8k16", "f32", a, b, "f32", (2, 1, 4))


FORMS = list(dense()) + list(sparse()) + list(later())
STYLES = 6  # of the first 16 cases
CASES = 18


def element(name, style, bits):
    """One element from 64 random bits. Styles: 0 small whole numbers, 1 near one, 2 any finite, 3 any
    bits, 4 near the smallest, 5 large ones of both signs among small ones, 6 zeros of both signs."""
    width, mantissa, exponent = FORMATS[name]
    if exponent == 0 or style == 3:
        return bits & (1 << width) - 1
    low = width - 1 - mantissa - exponent  # tf32 has 13 bits that do not count
    sign, field, fraction = bits >> 63, bits >> 32 & 0xFFFF, bits & (1 << mantissa) - 1
    bias, top = (1 << exponent - 1) - 1, (1 << exponent) - 1
    if style == 6:
        field = fraction = 0
    elif style == 0:
        whole = field % 5  # 0 to 4
        field, fraction = (0, 0) if whole == 0 else (bias + whole.bit_length() - 1,
                                                     (whole << mantissa >> whole.bit_length() - 1) & (1 << mantissa) - 1)
    elif style == 1:
        field = bias - 3 + field % 7
    elif style == 2:
        field %= top
    elif style == 4:
        field %= 2
    else:
        field = bias + (min(bias // 2, 12) if field % 4 == 0 else -(field % 6))
    if field < 0:
        field = 0
    return (sign << mantissa + exponent | field << mantissa | fraction) << low


def metadata(kind, bits):
    """A register with eight (2:4, 1:2, 4:8) groups of four bits, each valid and in order."""
    pairs = (0x4, 0xE) if kind == "1:2" else (0x4, 0x8, 0xC, 0x9, 0xD, 0xE)
    value = 0
    for group in range(8):
        value |= pairs[(bits >> 8 * group) % 251 % len(pairs)] << 4 * group
    return value


def operands(number, case):
    """For each lane the registers of a, b, c and, if sparse, the metadata, in this order."""
    _, a, b, c, meta = FORMS[number]
    state, styles = number << 32 | case, (case % STYLES,) * 3
    if case >= 16:
        styles = (6, 1, 4)  # what becomes of a sum that has only the accumulator
    for _ in range(32):
        lane = []
        for (name, count), style in zip((a, b, c), styles):
            width = FORMATS[name][0]
            register = max(width, 32)
            for _ in range(count):
                value = 0
                for at in range(0, register, width):
                    state, bits = splitmix(state)
                    value |= element(name, style, bits) << at
                lane.append(value)
        if meta:
            state, bits = splitmix(state)
            lane.append(metadata(meta[0], bits))
        yield lane
