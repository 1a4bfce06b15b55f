# SPDX-License-Identifier: Apache-2.0
"""What ask_textures.py asks: images, ways to sample them, and instructions with their inputs."""
import itertools
import random
import struct

CODE = {"u8": (1, 8), "u16": (2, 16), "u32": (3, 32), "s8": (8, 8), "s16": (9, 16),
        "s32": (10, 32), "f16": (16, 16), "f32": (32, 32)}  # the driver's number, bits


class Image:
    """Sizes are 0 for dimensions that an image does not have."""

    def __init__(self, name, form, channels, size, layers=0, levels=1, cube=False, surface=False):
        self.name, self.form, self.channels, self.size = name, form, channels, size
        self.layers, self.levels, self.cube, self.surface = layers, levels, cube, surface
        self.dimensions = sum(n > 0 for n in size)
        self.geometry = ("a" if layers else "") + ("cube" if cube else "%dd" % self.dimensions)
        self.texel = channels * CODE[form][1] // 8

    def level_size(self, level):
        planes = max(self.layers, 1) * (6 if self.cube else 1)
        width, height, depth = (max(n >> level, 1) for n in self.size)
        return width, height, depth * planes

    def level_bytes(self, level):
        width, height, depth = self.level_size(level)
        source = random.Random(self.name + str(level))
        count = width * height * depth * self.channels
        if self.name == "ramp":  # every byte in every channel
            return bytes(n // self.channels for n in range(count))
        if self.form == "f32":  # sums of such numbers show how each is weighted
            return b"".join(struct.pack("<f", source.uniform(-1, 1)) for _ in range(count))
        if self.form == "f16":
            return b"".join(struct.pack("<e", source.uniform(-1, 1)) for _ in range(count))
        return bytes(source.randrange(256) for _ in range(count * CODE[self.form][1] // 8))

    def __str__(self):
        return (f"{self.name} {self.form} channels={self.channels} size="
                f"{'x'.join(map(str, self.size))} layers={self.layers} levels={self.levels} "
                f"cube={int(self.cube)}")


class Sampling:
    """The values are those of CUDA_TEXTURE_DESC."""

    def __init__(self, mode="clamp", linear=0, normalized=0, levels=0, bias=0.0, lowest=0.0,
                 highest=20.0, integer=0, srgb=0, border=(0.25, -2.0, 3.0, 0.5)):
        self.mode = ("wrap", "clamp", "mirror", "border").index(mode)
        self.linear, self.levels, self.border = linear, levels, border
        self.bias, self.lowest, self.highest = bias, lowest, highest
        self.flags = integer | normalized << 1 | srgb << 4
        self.text = (f"mode={mode} linear={linear} normalized={normalized} levels={levels} "
                     f"bias={bias} lowest={lowest} highest={highest} integer={integer} srgb={srgb} "
                     f"border={','.join(map(str, border))}")

    def __str__(self):
        return self.text


IMAGES = {image.name: image for image in (
    Image("line", "f32", 1, (8, 0, 0)),
    Image("odd_line", "f32", 1, (7, 0, 0)),
    Image("plane", "f32", 4, (8, 4, 0)),
    Image("odd_plane", "f32", 1, (5, 3, 0)),
    Image("block", "f32", 2, (4, 4, 4)),
    Image("lines", "f32", 1, (8, 0, 0), layers=3),
    Image("planes", "f32", 1, (4, 4, 0), layers=3),
    Image("cube", "f32", 1, (4, 4, 0), cube=True),
    Image("cubes", "f32", 1, (2, 2, 0), layers=2, cube=True),
    Image("levels", "f32", 1, (16, 16, 0), levels=5),
    Image("line_levels", "f32", 1, (9, 0, 0), levels=4),
    Image("block_levels", "f32", 1, (8, 4, 2), levels=4),
    Image("bytes", "u8", 4, (4, 4, 0)), Image("signed_bytes", "s8", 2, (4, 4, 0)),
    Image("shorts", "u16", 2, (4, 4, 0)), Image("signed_shorts", "s16", 1, (4, 4, 0)),
    Image("words", "u32", 1, (4, 4, 0)), Image("signed_words", "s32", 2, (4, 4, 0)),
    Image("halves", "f16", 4, (4, 4, 0)),
    Image("ramp", "u8", 4, (256, 0, 0)), Image("long_line", "f32", 1, (1021, 0, 0)),
    Image("many_levels", "f32", 1, (64, 64, 0), levels=7),
    Image("s_line", "u32", 1, (8, 0, 0), surface=True),
    Image("s_lines", "u16", 2, (8, 0, 0), layers=3, surface=True),
    Image("s_plane", "u32", 1, (8, 4, 0), surface=True),
    Image("s_planes", "u8", 4, (4, 4, 0), layers=2, surface=True),
    Image("s_block", "u32", 1, (4, 4, 2), surface=True),
    Image("s_bytes", "u8", 1, (16, 4, 0), surface=True),
    Image("s_wide", "u32", 4, (4, 2, 0), surface=True),
    Image("s_pairs", "f32", 2, (4, 2, 0), surface=True),
    Image("s_fractions", "f16", 2, (4, 2, 0), surface=True),
    Image("s_signed", "s8", 4, (4, 2, 0), surface=True),
    Image("s_signed_words", "s32", 1, (4, 2, 0), surface=True))}

# Coordinates, selectors and results of the kernels: %f1 to %f8 and %r1 to %r8 are the inputs, the
# layer is %r4, level and gradients are %f5 to %f8; results are %o0 to %o3.
FLOATS = {"1d": "{%f1}", "2d": "{%f1, %f2}", "3d": "{%f1, %f2, %f3, %f3}", "a1d": "{%r4, %f1}",
          "a2d": "{%r4, %f1, %f2, %f2}", "cube": "{%f1, %f2, %f3, %f3}",
          "acube": "{%r4, %f1, %f2, %f3}"}
WHOLES = {g: text.replace("%f", "%r") for g, text in FLOATS.items()}
OUT = "{%o0, %o1, %o2, %o3}"


def bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def row(x=0.0, y=0.0, z=0.0, layer=0, extra=()):
    words = [bits(x), bits(y), bits(z), layer] + [bits(e) for e in extra]
    return tuple(words + [0] * (8 - len(words)))


def whole_row(x=0, y=0, z=0, layer=0):
    return tuple(n & 0xffffffff for n in (x, y, z, layer, 0, 0, 0, 0))


SPECIAL = (float("nan"), float("inf"), float("-inf"), -0.0, 1e-40, 1e10, -1e10, 2.0**31, 3e38)


def points(image, sampling, seed, count=48):
    """In texels: around the edges, between texels, far outside; then divided if normalised."""
    source = random.Random(seed)
    rows = []
    for n in range(count):
        at = []
        for size in image.size:
            kinds = (lambda: source.randrange(-2 * size, 3 * size + 1) * 0.5,
                     lambda: source.uniform(-0.6 * size, 1.6 * size),
                     lambda: source.randrange(size + 1) + source.randrange(-6, 7) / 512,
                     lambda: source.uniform(-3, 3) * size)
            value = kinds[n % 4]() if size else 0.0
            at.append(value / size if size and sampling.flags & 2 else value)
        rows.append(row(*at, layer=source.choice((0, 1, 2, 3, 2**31, 2**32 - 1))))
    for value in SPECIAL:
        rows.append(row(value, *(0.5 if s else 0.0 for s in image.size[1:])))
    return rows


def directions(seed, count=80):
    source = random.Random(seed)
    rows = [row(*v, layer=n % 3) for n, v in
            enumerate(itertools.product((-1.0, 0.0, 1.0), repeat=3))]
    rows += [row(*(source.uniform(-2, 2) for _ in range(3)), layer=source.randrange(3))
             for _ in range(count)]
    return rows


def steps(count=257):
    """How a coordinate is rounded to a weight: from texel 1 to texel 2 in small steps."""
    return [row(1.5 + n / 1024 + 1 / 4096, 1.5, 1.5) for n in range(count)]


def with_levels(image, seed, selectors):
    source = random.Random(seed)
    return [row(*(source.uniform(-0.2, 1.2) if s else 0.0 for s in image.size), extra=extra)
            for extra in selectors]


LEVELS = [(n / 16 + e,) for n in range(-8, 88, 3) for e in (0, 1 / 1024)] + \
         [(v,) for v in (float("nan"), float("inf"), float("-inf"), -5.0)]


def gradients(image, seed, count=48):
    source = random.Random(seed)
    def one():
        return source.choice((0.0, 1.0, -1.0, 0.5)) * 2.0**source.randrange(-7, 2) \
            if source.random() < 0.5 else source.uniform(-0.5, 0.5)
    return with_levels(image, seed, [tuple(one() for _ in range(4)) for _ in range(count)])


def fetches():
    """(image, sampling, instruction, rows): one launch each; results are four words a row."""
    names = ("line", "odd_line", "plane", "odd_plane", "block", "lines", "planes")
    modes = ("clamp", "border", "wrap", "mirror")
    for name, linear, normalized, mode in itertools.product(names, (0, 1), (0, 1), modes):
        image, sampling = IMAGES[name], Sampling(mode, linear, normalized)
        if normalized or mode not in ("wrap", "mirror") or name == "line":
            yield (image, sampling, f"tex.{image.geometry}.v4.f32.f32 {OUT}, "
                   f"[%t, {FLOATS[image.geometry]}];", points(image, sampling, name + mode))
    for name in ("line", "plane", "block"):
        image = IMAGES[name]
        yield (image, Sampling(linear=1), f"tex.{image.geometry}.v4.f32.f32 {OUT}, "
               f"[%t, {FLOATS[image.geometry]}];", steps())
    for name, linear in itertools.product(("cube", "cubes"), (0, 1)):
        image = IMAGES[name]
        yield (image, Sampling(linear=linear, normalized=1), f"tex.{image.geometry}.v4.f32.f32 "
               f"{OUT}, [%t, {FLOATS[image.geometry]}];", directions(name))
    for name, mode in itertools.product(("line", "plane", "block", "lines", "planes"), modes):
        image = IMAGES[name]
        edge = [whole_row(x, y, z, layer) for x in (-9, -1, 0, 7, 8, 2**31 - 1, -2**31)
                for y, z, layer in ((0, 0, 0), (-1, 5, 1), (3, 1, 7))]
        yield (image, Sampling(mode), f"tex.{image.geometry}.v4.f32.s32 {OUT}, "
               f"[%t, {WHOLES[image.geometry]}];", edge)
    yield from formats()
    yield from mip_levels()
    yield from gathers()
    yield from queries()
    yield from unknown()


def unknown():
    """What would tell the rules that texture_answers.c only has bounds for."""
    for linear in (0, 1):
        yield (IMAGES["ramp"], Sampling(linear=linear, srgb=1),
               f"tex.1d.v4.f32.f32 {OUT}, [%t, {{%f1}}];",
               [row(n + (0.75 if linear else 0.5)) for n in range(256)])
    source = random.Random(7)
    near = [row((source.randrange(1021) + source.choice((0, 0.5)) + 1 / 512 * source.randrange(2)) / 1021
                + source.randrange(-8, 9) * 2.0**-24) for _ in range(480)]
    for linear, mode in itertools.product((0, 1), ("clamp", "wrap", "mirror")):
        yield (IMAGES["long_line"], Sampling(mode, linear, 1), f"tex.1d.v4.f32.f32 {OUT}, [%t, {{%f1}}];", near)
    yield (IMAGES["signed_bytes"], Sampling(linear=1), f"tex.2d.v4.f32.f32 {OUT}, [%t, {{%f1, %f2}}];",
           [row(0.5 + n % 13 / 4, 0.5 + n / 140) for n in range(480)])
    image = IMAGES["many_levels"]
    lengths = [2.0**(n / 4) / 64 for n in range(-2, 22)]
    for turn in (0.0, 0.25, 0.5, 0.75, 1.0):  # the angle between the gradients, in right angles
        pairs = [row(0.4, 0.6, extra=(a, 0.0, a * part * cosine, a * part * sine))
                 for a in lengths for part in (0.0, 0.25, 0.5, 0.75, 0.875, 1.0)
                 for cosine, sine in (((1.0, 0.0), (0.75, 0.25), (0.5, 0.5), (0.25, 0.75), (0.0, 1.0))[int(turn * 4)],)]
        yield (image, Sampling(normalized=1, levels=1),
               f"tex.grad.2d.v4.f32.f32 {OUT}, [%t, {{%f1, %f2}}], {{%f5, %f6}}, {{%f7, %f8}};", pairs)


def formats():
    for name in ("bytes", "signed_bytes", "shorts", "signed_shorts", "words", "signed_words",
                 "halves"):
        image = IMAGES[name]
        wide, floats = CODE[image.form][1] == 32, image.form[0] == "f"
        reads = "f32" if floats else "s32" if image.form[0] == "s" else "u32"
        for mode in ("clamp", "border"):
            sampling = Sampling(mode, integer=int(not floats))
            yield (image, sampling, f"tex.2d.v4.{reads}.f32 {OUT}, [%t, {{%f1, %f2}}];",
                   points(image, sampling, name))
            for linear, srgb in itertools.product((0, 1), (0, 1)):
                if not wide and (not srgb or image.form == "u8"):
                    sampling = Sampling(mode, linear, srgb=srgb)
                    yield (image, sampling, f"tex.2d.v4.f32.f32 {OUT}, [%t, {{%f1, %f2}}];",
                           points(image, sampling, name))
    sampling = Sampling(integer=0)
    for pack in ("f16", "f16x2"):
        vector = "{%h0, %h1, %h2, %h3}" if pack == "f16" else OUT
        body = f"tex.2d.v4.{pack}.f32 {vector}, [%t, {{%f1, %f2}}];" if pack == "f16" else \
            "tex.2d.v2.f16x2.f32 {%o0, %o1}, [%t, {%f1, %f2}];"
        yield (IMAGES["halves"], sampling, body, points(IMAGES["halves"], sampling, pack, 16))


def mip_levels():
    samplings = [Sampling(linear=l, normalized=1, levels=m) for l in (0, 1) for m in (0, 1)]
    samplings += [Sampling(normalized=1, levels=1, bias=0.75),
                  Sampling(normalized=1, levels=1, lowest=1.25, highest=2.5),
                  Sampling(normalized=1, levels=0, lowest=1.5, highest=2.5)]
    for name, sampling in itertools.product(("levels", "line_levels", "block_levels"), samplings):
        image = IMAGES[name]
        g, at = image.geometry, FLOATS[image.geometry]
        yield (image, sampling, f"tex.level.{g}.v4.f32.f32 {OUT}, [%t, {at}], %f5;",
               with_levels(image, name, LEVELS))
        yield (image, sampling, f"tex.base.{g}.v4.f32.f32 {OUT}, [%t, {at}];",
               points(image, sampling, name, 8))
        pairs = {"1d": "{%f5}, {%f6}", "2d": "{%f5, %f6}, {%f7, %f8}",
                 "3d": "{%f5, %f6, %f7, %f7}, {%f6, %f7, %f8, %f8}"}
        yield (image, sampling, f"tex.grad.{g}.v4.f32.f32 {OUT}, [%t, {at}], {pairs[g]};",
               gradients(image, name))


def gathers():
    for channel, mode, normalized in itertools.product("rgba", ("clamp", "border"), (0, 1)):
        image, sampling = IMAGES["plane"], Sampling(mode, normalized=normalized)
        yield (image, sampling, f"tld4.{channel}.2d.v4.f32.f32 {OUT}, [%t, {{%f1, %f2}}];",
               points(image, sampling, channel + mode, 24))
    for mode in ("wrap", "mirror"):
        image, sampling = IMAGES["odd_plane"], Sampling(mode, normalized=1)
        yield (image, sampling, f"tld4.r.2d.v4.f32.f32 {OUT}, [%t, {{%f1, %f2}}];",
               points(image, sampling, mode, 24))
    image, sampling = IMAGES["bytes"], Sampling(integer=1)
    yield (image, sampling, f"tld4.g.2d.v4.u32.f32 {OUT}, [%t, {{%f1, %f2}}];",
           points(image, sampling, "integers", 16))
    image, sampling = IMAGES["planes"], Sampling()
    yield (image, sampling, f"tld4.r.a2d.v4.f32.f32 {OUT}, [%t, {FLOATS['a2d']}];",
           points(image, sampling, "layers", 16))


TEXTURE_QUERIES = ("width", "height", "depth", "channel_data_type", "channel_order",
                   "normalized_coords", "array_size", "num_mipmap_levels")
SURFACE_QUERIES = ("width", "height", "depth", "channel_data_type", "channel_order", "array_size")


def queries():
    for image in IMAGES.values():
        if image.surface:
            continue
        integer = int(image.form[0] != "f")
        for what in TEXTURE_QUERIES:
            yield (image, Sampling(normalized=int(image.cube or image.levels > 1), integer=integer),
                   f"txq.{what}.b32 %o0, [%t];", [row()])
    for what in ("width", "height", "depth"):
        yield (IMAGES["block_levels"], Sampling(normalized=1),
               f"txq.level.{what}.b32 %o0, [%t], %r1;", [whole_row(n) for n in (0, 1, 2, 3, 4, 9)])


# ---- surfaces ----

PLACES = {"1d": "{%r1}", "2d": "{%r1, %r2}", "3d": "{%r1, %r2, %r3, %r3}", "a1d": "{%r4, %r1}",
          "a2d": "{%r4, %r1, %r2, %r2}"}
# x in bytes; the last word of a row is a value to store
PLACES_INSIDE = [(0, 0, 0, 0), (4, 1, 1, 1), (8, 0, 0, 1), (12, 1, 1, 0)]
PLACES_OUTSIDE = [(-4, 0, 0, 0), (16, 1, 0, 0), (32, 0, 0, 0), (1 << 20, 0, 0, 1), (0, -1, 0, 0),
                  (4, 4, 0, 1), (4, 9, 1, 0), (0, 0, -1, 2), (8, 0, 5, 3), (0, 0, 0, -1),
                  (-2**31, 2, 0, 0), (2**31 - 4, 0, 0, 0)]
VECTORS = {"b8": "%h0", "b16": "%h0", "b32": "%o0", "b64": "%d0", "v2.b32": "{%o0, %o1}",
           "v4.b32": OUT}
SURFACES = (("s_line", "b32"), ("s_lines", "b32"), ("s_plane", "b32"), ("s_planes", "b32"),
            ("s_block", "b32"), ("s_bytes", "b8"), ("s_bytes", "b16"), ("s_plane", "b64"),
            ("s_wide", "v4.b32"), ("s_pairs", "v2.b32"))


WIDE = {"b64": 2, "v2.b32": 2, "v4.b32": 4, "u64": 2}  # how often 4 bytes


def places(outside, form="b32"):
    """An access is aligned to its size."""
    rows = [(x * WIDE.get(form, 1), y, z, layer) for x, y, z, layer in PLACES_INSIDE]
    if outside:
        rows += [(x // 16 * 16, y, z, layer) for x, y, z, layer in PLACES_OUTSIDE]
    return [whole_row(*place)[:4] + (0x89abcdef, 0x01234567, 0x3f000000, 0xbf800000)
            for place in rows]


def surface_loads():
    for (name, form), bounds in itertools.product(SURFACES, ("trap", "clamp", "zero")):
        g = IMAGES[name].geometry
        into = VECTORS[form] if form[0] == "v" else "{%s}" % VECTORS[form]
        yield (IMAGES[name], None, f"suld.b.{g}.{form}.{bounds} {into}, [%t, {PLACES[g]}];",
               places(bounds != "trap", form))
    for image, what in itertools.product(IMAGES.values(), SURFACE_QUERIES):
        if image.surface:
            yield (image, None, f"suq.{what}.b32 %o0, [%t];", [row()])


def surface_stores():
    """One launch for each row; the results are the bytes of the image that differ afterwards."""
    values = {"b8": "%h5", "b16": "%h5", "b32": "%r5", "b64": "%d5", "v2.b32": "{%r5, %r6}",
              "v4.b32": "{%r5, %r6, %r7, %r8}"}
    for (name, form), bounds in itertools.product(SURFACES, ("trap", "clamp", "zero")):
        g = IMAGES[name].geometry
        value = values[form] if form[0] == "v" else "{%s}" % values[form]
        yield (IMAGES[name], None, f"sust.b.{g}.{form}.{bounds} [%t, {PLACES[g]}], {value};",
               places(bounds != "trap", form))
    for name in ("s_plane", "s_wide", "s_pairs", "s_fractions", "s_signed", "s_planes", "s_bytes"):
        g = IMAGES[name].geometry
        for bounds in ("trap", "clamp", "zero"):
            yield (IMAGES[name], None, f"sust.p.{g}.v4.b32.{bounds} [%t, {PLACES[g]}], "
                   "{%r5, %r6, %r7, %r8};",
                   [(r[0] // 4 if r[0] < 16 else r[0],) + r[1:] for r in places(bounds != "trap")])
    operations = ("add.u32", "min.u32", "max.u32", "min.s32", "max.s32", "and.b32", "or.b32",
                  "add.u64")
    for operation, bounds in itertools.product(operations, ("trap", "clamp", "zero")):
        name = "s_signed_words" if operation.endswith("s32") else "s_plane"
        value = "%d5" if operation.endswith("64") else "%r5"
        yield (IMAGES[name], None, f"sured.b.{operation.split('.')[0]}.2d."
               f"{operation.split('.')[1]}.{bounds} [%t, {{%r1, %r2}}], {value};",
               places(bounds != "trap", operation.split(".")[1]))
