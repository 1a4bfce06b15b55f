# SPDX-License-Identifier: Apache-2.0
"""The instructions that ask_device.py asks about: (bits of the result, inputs, instructions).

The sources are %rd1 to %rd3, and their low halves and quarters %r1.. and %h1..; the result is
%rd0, %r0, %h0 or, for one bit, %p0.
"""


def carries():
    out = []
    for bits, r in ((32, "%r"), (64, "%rd")):
        first = ["add.cc", "sub.cc", "mad.lo.cc", "mad.hi.cc"]
        second = ["addc", "subc", "addc.cc", "subc.cc", "madc.lo.cc", "madc.hi.cc", "madc.hi"]

        def text(op, sign, d, a, b, c):
            return f"{op}.{sign}{bits} {r}{d}, {r}{a}, {r}{b}" + (
                f", {r}{c};" if op.startswith("mad") else ";")
        for one in first:
            for two in second:
                sign = "s" if "hi" in one + two and one != "mad.lo.cc" else "u"
                body = text(one, sign, 4, 1, 2, 3) + text(two, sign, 5, 3, 1, 2)
                body += f"addc.u{bits} {r}0, {r}5, 0;"
                out.append((bits, f"int{bits}", body))
    return out


def conversions():
    out = []
    for mode in ("rn", "rz", "rm", "rp"):
        for ftz in ("", ".ftz"):
            for inputs in ("f64", "small64", "tiny64"):
                out.append((32, inputs, f"cvt.{mode}{ftz}.f32.f64 %r0, %rd1;"))
            for inputs in ("f32", "small32", "tiny32"):
                out.append((16, inputs, f"cvt.{mode}{ftz}.f16.f32 %h0, %r1;"))
        out.append((16, "small64", f"cvt.{mode}.f16.f64 %h0, %rd1;"))
        out.append((16, "f32", f"cvt.{mode}.bf16.f32 %h0, %r1;"))
        out.append((16, "f32", f"cvt.{mode}i.f16.f16 %h0, %h1;"))
        out.append((32, "f32", f"cvt.{mode}i.ftz.f32.f32 %r0, %r1;"))
        out.append((32, "f32", f"cvt.{mode}i.ftz.s32.f32 %r0, %r1;"))
        out.append((64, "f64", f"cvt.{mode}i.f64.f64 %rd0, %rd1;"))
        out.append((64, "f64", f"cvt.{mode}i.u64.f64 %rd0, %rd1;"))
    out.append((32, "f64", "cvt.rn.sat.f32.f64 %r0, %rd1;"))
    out.append((32, "small64", "cvt.rp.ftz.sat.f32.f64 %r0, %rd1;"))
    out.append((64, "f32", "cvt.ftz.f64.f32 %rd0, %r1;"))
    out.append((32, "f32x2", "cvt.rn.relu.bf16x2.f32 %r0, %r1, %r2;"))
    out.append((32, "f32x2", "cvt.rz.f16x2.f32 %r0, %r1, %r2;"))
    return out


def fp8():
    out = []
    for kind in ("e4m3x2", "e5m2x2"):
        for relu in ("", ".relu"):
            out.append((16, "fp8", f"cvt.rn.satfinite{relu}.{kind}.f32 %h0, %r1, %r2;"))
            out.append((16, "f16x2", f"cvt.rn.satfinite{relu}.{kind}.f16x2 %h0, %r1;"))
            out.append((32, "all8", f"cvt.rn{relu}.f16x2.{kind} %r0, %h1;"))
        out.append((16, "all16", f"mov.b32 %r4, {{%h1, %h1}}; cvt.rn.satfinite.{kind}.f16x2 %h0, "
                                 "%r4;"))
    return out


def approximations():
    out = []
    for name in ("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2"):
        for ftz in ("", ".ftz"):
            out.append((32, "exponents32", f"{name}.approx{ftz}.f32 %r0, %r1;"))
            out.append((32, "f32", f"{name}.approx{ftz}.f32 %r0, %r1;"))
    for name in ("approx", "approx.ftz", "full", "full.ftz"):
        out.append((32, "divide", f"div.{name}.f32 %r0, %r1, %r2;"))
    for inputs in ("exponents32", "f32"):
        out.append((32, inputs, "tanh.approx.f32 %r0, %r1;"))
    for inputs in ("exponents64", "f64"):
        for name in ("rcp.approx.ftz", "rsqrt.approx.ftz", "rsqrt.approx"):
            out.append((64, inputs, f"{name}.f64 %rd0, %rd1;"))
    for name in ("ex2.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.f16", "tanh.approx.bf16"):
        out.append((16, "all16", f"{name} %h0, %h1;"))
    for name in ("ex2.approx.f16x2", "ex2.approx.ftz.bf16x2", "tanh.approx.f16x2",
                 "tanh.approx.bf16x2"):
        inputs = "bf16x2" if "bf16" in name else "f16x2"
        out.append((32, inputs, f"{name} %r0, %r1;"))
    return out


def exact_floats():
    out = []
    for mode in ("rn", "rz", "rm", "rp"):
        for ftz in ("", ".ftz"):
            for inputs in ("f32x3", "products"):
                out.append((32, inputs, f"mul.{mode}{ftz}.f32 %r0, %r1, %r2;"))
                out.append((32, inputs, f"fma.{mode}{ftz}.f32 %r0, %r1, %r2, %r3;"))
            out.append((32, "f32x2", f"add.{mode}{ftz}.f32 %r0, %r1, %r2;"))
            out.append((32, "divide", f"div.{mode}{ftz}.f32 %r0, %r1, %r2;"))
            out.append((32, "f32", f"rcp.{mode}{ftz}.f32 %r0, %r1;"))
            out.append((32, "f32", f"sqrt.{mode}{ftz}.f32 %r0, %r1;"))
        out.append((64, "f64x3", f"fma.{mode}.f64 %rd0, %rd1, %rd2, %rd3;"))
        out.append((64, "f64x2", f"div.{mode}.f64 %rd0, %rd1, %rd2;"))
    out.append((32, "products", "fma.rn.ftz.sat.f32 %r0, %r1, %r2, %r3;"))
    for kind in ("min", "max"):
        for more in ("", ".ftz", ".NaN", ".ftz.NaN.xorsign.abs", ".xorsign.abs"):
            out.append((32, "f32x2", f"{kind}{more}.f32 %r0, %r1, %r2;"))
        out.append((64, "f64x2", f"{kind}.f64 %rd0, %rd1, %rd2;"))
        for half, inputs in (("f16x2", "f16x2"), ("bf16x2", "bf16x2")):
            for more in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                out.append((32, inputs, f"{kind}{more}.{half} %r0, %r1, %r2;"))
    for more in ("", ".ftz", ".sat", ".relu", ".ftz.relu"):
        out.append((32, "f16x3", f"fma.rn{more}.f16x2 %r0, %r1, %r2, %r3;"))
    for more in ("", ".relu"):
        out.append((32, "bf16x3", f"fma.rn{more}.bf16x2 %r0, %r1, %r2, %r3;"))
    for name in ("add", "sub", "mul"):
        out.append((32, "f16x2", f"{name}.ftz.f16x2 %r0, %r1, %r2;"))
        out.append((32, "bf16x2", f"{name}.rn.bf16x2 %r0, %r1, %r2;"))
    for name in ("abs", "neg"):
        out.append((32, "f16x2", f"{name}.ftz.f16x2 %r0, %r1;"))
        out.append((32, "bf16x2", f"{name}.bf16x2 %r0, %r1;"))
    out.append((32, "f32x3", "slct.ftz.s32.f32 %r0, %r1, %r2, %r3;"))
    out.append((32, "f32x2", "copysign.f32 %r0, %r1, %r2;"))
    return out


def bits():
    out = [(32, "fns", "fns.b32 %r0, %r1, %r2, %r3;")]
    for kind in ("u32", "s32"):
        out.append((32, "field32", f"bfe.{kind} %r0, %r1, %r2, %r3;"))
    for kind in ("u64", "s64"):
        out.append((64, "field64", f"bfe.{kind} %rd0, %rd1, %r2, %r3;"))
    out.append((32, "field32", "bfi.b32 %r0, %r1, 0x12345678, %r2, %r3;"))
    out.append((64, "field64", "mov.b64 %rd4, 0x123456789abcdef0; "
                               "bfi.b64 %rd0, %rd1, %rd4, %r2, %r3;"))
    for wrap in ("clamp", "wrap"):
        out.append((32, "field32", f"bmsk.{wrap}.b32 %r0, %r2, %r3;"))
        for kind in ("u32", "s32"):
            out.append((32, "field32", f"szext.{wrap}.{kind} %r0, %r1, %r2;"))
        for way in ("l", "r"):
            out.append((32, "shift32", f"shf.{way}.{wrap}.b32 %r0, %r1, %r2, %r3;"))
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        out.append((32, "bytes", f"prmt.b32{mode} %r0, %r1, %r2, %r3;"))
    for kind in ("s32.s32", "u32.s32", "s32.u32"):
        out.append((32, "bytes", f"dp4a.{kind} %r0, %r1, %r2, %r3;"))
        out.append((32, "bytes", f"dp2a.hi.{kind} %r0, %r1, %r2, %r3;"))
    return out


def is_disputed(text):
    """Forms for which an H200 does not do what PTX says. The CPU device refuses them, so they are
    not asked."""
    if text.startswith("vmad"):
        scales = ".sat" in text or ".shr" in text
        words = "%r1, %r2," in text and ".sat" in text
        return scales and (".u32.u32.u32" in text or (".s32.s32.u32" in text and words))
    if ".sat" not in text:
        return text.startswith(("vadd.u32.u32.u32.m", "vsub.u32.u32.u32.m"))
    part = "%r0." in text
    return (text.startswith("vshl") or (part and not text.startswith("vabsdiff"))
            or (text.startswith("vadd.u32.u32.u32") and "%r1, %r2" in text))


def scalar_video():
    out = []
    selectors = (("", ""), (".h1", ".b2"), (".b0", ".h0"), (".b3", ".b1"))
    for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        for d, a, b in (("u32", "u32", "u32"), ("s32", "s32", "u32"), ("s32", "u32", "s32"),
                        ("u32", "s32", "s32")):
            for sa, sb in selectors:
                for sat in ("", ".sat"):
                    out.append((32, "bytes", f"{name}.{d}.{a}.{b}{sat} %r0, %r1{sa}, %r2{sb};"))
        for second in (".add", ".min", ".max"):
            out.append((32, "bytes", f"{name}.s32.s32.u32.sat{second} %r0, %r1.h1, %r2.b3, %r3;"))
            out.append((32, "int32", f"{name}.u32.u32.u32{second} %r0, %r1, %r2, %r3;"))
        for merge in (".h0", ".h1", ".b0", ".b3"):
            for d in ("s32", "u32"):
                out.append((32, "bytes",
                            f"{name}.{d}.s32.u32.sat %r0{merge}, %r1.h1, %r2.b3, %r3;"))
            out.append((32, "bytes", f"{name}.s32.s32.u32 %r0{merge}, %r1.h0, %r2, %r3;"))
    for name in ("vshl", "vshr"):
        for kind in ("u32", "s32"):
            for mode in (".clamp", ".wrap"):
                out.append((32, "shift32", f"{name}.{kind}.{kind}.u32{mode} %r0, %r1, %r3;"))
                out.append((32, "bytes", f"{name}.{kind}.{kind}.u32.sat{mode} %r0, %r1.h1, %r2.b0;"))
                out.append((32, "bytes",
                            f"{name}.{kind}.{kind}.u32{mode}.add %r0, %r1, %r2.b1, %r3;"))
    for d, a, b in (("s32", "s32", "s32"), ("u32", "u32", "u32"), ("s32", "s32", "u32")):
        for scale in ("", ".shr7", ".shr15"):
            out.append((32, "bytes", f"vmad.{d}.{a}.{b}{scale} %r0, %r1.h0, %r2.b1, %r3;"))
            out.append((32, "bytes", f"vmad.{d}.{a}.{b}.sat{scale} %r0, %r1.h1, %r2.h1, %r3;"))
            out.append((32, "int32", f"vmad.{d}.{a}.{b}.sat{scale} %r0, %r1, %r2, %r3;"))
    out.append((32, "bytes", "vmad.s32.s32.s32 %r0, -%r1.h0, %r2.b1, %r3;"))
    out.append((32, "bytes", "vmad.s32.s32.s32 %r0, %r1.h0, %r2.b1, -%r3;"))
    out.append((32, "bytes", "vmad.s32.s32.u32.po %r0, %r1.h0, %r2.b1, %r3;"))
    for compare in ("eq", "ne", "lt", "le", "gt", "ge"):
        out.append((32, "bytes", f"vset.s32.u32.{compare} %r0, %r1.h1, %r2.b1;"))
        out.append((32, "int32", f"vset.s32.s32.{compare}.add %r0, %r1, %r2, %r3;"))
        out.append((32, "bytes", f"vset.u32.u32.{compare} %r0.h1, %r1.b0, %r2.b1, %r3;"))
    return [question for question in out if not is_disputed(question[2])]


def simd_video():
    out = []
    selectors = {2: ("", ".h10", ".h32", ".h21"), 4: ("", ".b3210", ".b7654", ".b5041")}
    masks = {2: (".h0", ".h10"), 4: (".b0", ".b31", ".b210")}
    for lanes in (2, 4):
        for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"):
            for d, a, b in (("u32", "u32", "u32"), ("s32", "s32", "s32"), ("s32", "u32", "s32")):
                kinds = f"{name}{lanes}.{d}.{a}.{b}"
                for sat in ("", ".sat"):
                    out.append((32, "bytes", f"{kinds}{sat} %r0, %r1, %r2, %r3;"))
                out.append((32, "bytes", f"{kinds}.add %r0, %r1, %r2, %r3;"))
                for select in selectors[lanes]:
                    out.append((32, "bytes",
                                f"{kinds} %r0, %r1{select}, %r2, %r3;"))
                for mask in masks[lanes]:
                    out.append((32, "bytes", f"{kinds}.sat %r0{mask}, %r1, %r2, %r3;"))
                    out.append((32, "bytes", f"{kinds}.add %r0{mask}, %r1, %r2, %r3;"))
        for compare in ("eq", "ne", "lt", "le", "gt", "ge"):
            for kinds in ("u32.u32", "s32.u32"):
                name = f"vset{lanes}.{kinds}.{compare}"
                out.append((32, "bytes", f"{name} %r0, %r1, %r2, %r3;"))
                out.append((32, "bytes", f"{name}.add %r0, %r1, %r2, %r3;"))
                out.append((32, "bytes", f"{name} %r0{masks[lanes][0]}, %r1, %r2, %r3;"))
    return out


def saturating():
    out = []
    for mode in ("rn", "rz"):
        for relu in ("", ".relu"):
            for kind in ("f16", "bf16"):
                for inputs in ("f32", "small32"):
                    out.append((16, inputs, f"cvt.{mode}{relu}.satfinite.{kind}.f32 %h0, %r1;"))
                out.append((32, "f32x2",
                            f"cvt.{mode}{relu}.satfinite.{kind}x2.f32 %r0, %r1, %r2;"))
    out.append((32, "f32", "cvt.rna.satfinite.tf32.f32 %r0, %r1;"))
    for kind in ("s2", "u2", "s4", "u4"):
        out.append((32, "int32", f"cvt.pack.sat.{kind}.s32.b32 %r0, %r1, %r2, %r3;"))
        out.append((32, "bytes", "shr.s32 %r4, %r1, 27; shr.s32 %r5, %r2, 28; "
                                 f"cvt.pack.sat.{kind}.s32.b32 %r0, %r4, %r5, %r3;"))
    for mode in ("rn", "rz", "rm", "rp"):
        out.append((32, "all16", f"cvt.{mode}.f32.bf16 %r0, %h1;"))
        out.append((32, "all16", f"cvt.{mode}.ftz.f32.bf16 %r0, %h1;"))
        out.append((64, "all16", f"cvt.{mode}.f64.bf16 %rd0, %h1;"))
    return out


def masks():
    out = []
    for compare in ("eq", "ne", "lt", "geu", "num", "nan"):
        for kind in ("u32", "s32"):
            out.append((32, "f16x2", f"set.{compare}.{kind}.f16x2 %r0, %r1, %r2;"))
            out.append((32, "f16x2", f"set.{compare}.ftz.{kind}.f16x2 %r0, %r1, %r2;"))
            out.append((32, "bf16x2", f"set.{compare}.{kind}.bf16x2 %r0, %r1, %r2;"))
    return out


def memory():
    """Updates of memory: the place of the result, which is aligned to 8 bytes."""
    out = []
    for op in ("add", "min", "max"):
        for kind, inputs in (("f16", "f16x2"), ("bf16", "bf16x2")):
            start = "st.global.v2.b32 [%out], {%r1, %r2};"
            out.append((64, inputs, start + f"red.global.{op}.noftz.v2.{kind}x2 [%out], {{%r2, %r1}};"
                                            "ld.global.b64 %rd0, [%out];"))
            out.append((64, inputs, start + f"atom.global.{op}.noftz.v2.{kind}x2 {{%r4, %r5}}, [%out], "
                                            "{%r2, %r1}; mov.b64 %rd0, {%r4, %r5};"))
            out.append((32, inputs, "mov.b32 {%h1, %h2}, %r2; st.global.b32 [%out], %r1;"
                                    f"red.global.{op}.noftz.v2.{kind} [%out], {{%h1, %h2}};"
                                    "ld.global.b32 %r0, [%out];"))
    return out


QUESTIONS = (carries() + conversions() + fp8() + approximations() + exact_floats() + bits()
             + scalar_video() + simd_video() + saturating() + masks() + memory())
