#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the forms of PTX instructions that ptxas accepts, one line of PTX for each.

    list_forms.py > tests/ptx/answers/forms.txt

Makes more lines than there are forms, gives them to ptxas, and prints those that it accepts.
tests/ptx/forms.c loads each of them. Needs NVIDIA's ptxas; the test does not.
"""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile

HEAD = """.version 9.0
.target sm_90a
.address_size 64
"""
# What the lines may use; tests/ptx/forms.c has the same text.
FRAME = """.global .align 32 .b8 g[256]; .const .align 16 .b8 c[256]; .shared .align 32 .b8 s[256];
.func (.param .b32 r) f(.param .b32 a) { ret; }
.entry k(.param .align 16 .b8 p[64]) {
.reg .pred %p<8>; .reg .b8 %b<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
.reg .b128 %q<8>; .reg .f32 %f<8>; .reg .f64 %d<8>; .local .align 16 .b8 l[64];
"""
REGISTER = {"pred": "%p", "f32": "%f", "f64": "%d", "b128": "%q", "f16x2": "%r", "bf16x2": "%r",
            "e4m3x2": "%h", "e5m2x2": "%h", "tf32": "%r", "bf16": "%h", "f16": "%h",
            "u16x2": "%r", "s16x2": "%r"}


def register(kind, number):
    width = {"8": "%h", "16": "%h", "32": "%r", "64": "%rd"}
    return REGISTER.get(kind) or width[kind[1:]], number


def expand(pattern, names):
    """<a|b|>: each of these; <name>: each value of that name; <name:2>: register 2 of its type. ^ stands
    for a | of PTX."""
    parts = re.split(r"<([^<>]*)>", pattern)
    used = sorted({p.split(":")[0] for p in parts[1::2] if "|" not in p})
    for values in itertools.product(*(names[n].split("|") for n in used)):
        bound = dict(zip(used, values))
        choices = []
        for n, part in enumerate(parts):
            if n % 2 == 0:
                choices.append([part])
            elif "|" in part:
                choices.append(part.split("|"))
            elif ":" in part:
                name, number = part.split(":")
                choices.append(["".join(register(bound[name], number))])
            else:
                choices.append([bound[part]])
        yield from ("".join(line).replace("^", "|") for line in itertools.product(*choices))


INT = "u16|s16|u32|s32|u64|s64"
WORD = "u32|s32"
LONG = "u64|s64"
BITS = "b16|b32|b64"
FLOAT = "f32|f64"
HALF = "f16|bf16|f16x2|bf16x2"
PACKED = "u16x2|s16x2"
ROUND = ".rn|.rz|.rm|.rp"
COMPARE = "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan"
MEMORY = "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64"

# (pattern, names)
ARITHMETIC = [
    ("<add|sub><|.sat>.<t> <t:0>, <t:1>, <t:2>;", {"t": INT + "|" + PACKED}),
    ("<add|sub>.cc.<t> <t:0>, <t:1>, <t:2>;", {"t": "u32|s32|u64|s64"}),
    ("<addc|subc><|.cc>.<t> <t:0>, <t:1>, <t:2>;", {"t": "u32|s32|u64|s64"}),
    ("mul<.lo|.hi>.<t> <t:0>, <t:1>, <t:2>;", {"t": INT}),
    ("mul.wide.<u16|s16> %r0, %h1, %h2;", {}), ("mul.wide.<u32|s32> %rd0, %r1, %r2;", {}),
    ("mul.wide.<u64|s64> %q0, %rd1, %rd2;", {}),
    ("mad<.lo|.hi><|.sat|.cc>.<t> <t:0>, <t:1>, <t:2>, <t:3>;", {"t": INT}),
    ("mad.wide.<u16|s16> %r0, %h1, %h2, %r3;", {}), ("mad.wide.<u32|s32> %rd0, %r1, %r2, %rd3;", {}),
    ("madc<.lo|.hi><|.cc>.<t> <t:0>, <t:1>, <t:2>, <t:3>;", {"t": "u32|s32|u64|s64"}),
    ("mul24<.lo|.hi>.<t> <t:0>, <t:1>, <t:2>;", {"t": WORD}),
    ("mad24<.lo|.hi|.hi.sat>.<t> <t:0>, <t:1>, <t:2>, <t:3>;", {"t": WORD}),
    ("sad.<t> <t:0>, <t:1>, <t:2>, <t:3>;", {"t": INT}),
    ("<div|rem>.<t> <t:0>, <t:1>, <t:2>;", {"t": INT}),
    ("<abs|neg>.<t> <t:0>, <t:1>;", {"t": INT}),
    ("<min|max><|.relu>.<t> <t:0>, <t:1>, <t:2>;", {"t": INT + "|" + PACKED}),
    ("<popc|clz>.<t> %r0, <t:1>;", {"t": "b32|b64"}),
    ("brev.<t> <t:0>, <t:1>;", {"t": "b32|b64"}),
    ("bfind<|.shiftamt>.<t> %r0, <t:1>;", {"t": "u32|s32|u64|s64"}),
    ("fns.b32 %r0, %r1, %r2, %r3;", {}),
    ("bfe.<t> <t:0>, <t:1>, %r2, %r3;", {"t": "u32|s32|u64|s64"}),
    ("bfi.<t> <t:0>, <t:1>, <t:2>, %r2, %r3;", {"t": "b32|b64"}),
    ("szext<.clamp|.wrap>.<t> %r0, %r1, %r2;", {"t": WORD}),
    ("bmsk<.clamp|.wrap>.b32 %r0, %r1, %r2;", {}),
    ("dp4a.<u32|s32>.<u32|s32> %r0, %r1, %r2, %r3;", {}),
    ("dp2a<.lo|.hi>.<u32|s32>.<u32|s32> %r0, %r1, %r2, %r3;", {}),
    ("<and|or|xor>.<t> <t:0>, <t:1>, <t:2>;", {"t": "pred|" + BITS}),
    ("<not|cnot>.<t> <t:0>, <t:1>;", {"t": "pred|" + BITS}),
    ("shl.<t> <t:0>, <t:1>, %r2;", {"t": BITS}), ("shr.<t> <t:0>, <t:1>, %r2;", {"t": BITS + "|" + INT}),
    ("shf<.l|.r><.clamp|.wrap>.b32 %r0, %r1, %r2, %r3;", {}),
    ("lop3.b32 %r0, %r1, %r2, %r3, 0x3f;", {}),
    ("lop3<.and|.or>.b32 <%r0|_>^%p0, %r1, %r2, %r3, 0x3f, <|!>%p1;", {}),
    ("prmt.b32<|.f4e|.b4e|.rc8|.ecl|.ecr|.rc16> %r0, %r1, %r2, %r3;", {}),
    ("<add|sub|mul><|.rn|.rz|.rm|.rp><|.ftz><|.sat>.<t> <t:0>, <t:1>, <t:2>;", {"t": FLOAT}),
    ("<fma|mad><|.rn|.rz|.rm|.rp><|.ftz><|.sat>.<t> <t:0>, <t:1>, <t:2>, <t:3>;", {"t": FLOAT}),
    ("<add|sub|mul><|.rn|.rz><|.ftz><|.sat><|.relu>.<t> <t:0>, <t:1>, <t:2>;", {"t": HALF}),
    ("fma.rn<|.ftz><|.sat|.relu|.oob|.oob.relu>.<t> <t:0>, <t:1>, <t:2>, <t:3>;", {"t": HALF}),
    ("<add|sub><|.rn|.rz|.rm|.rp><|.sat>.f32.<f16|bf16> %f0, %h1, %f2;", {}),
    ("fma<.rn|.rz><|.sat>.f32.<f16|bf16> %f0, %h1, %h2, %f3;", {}),
    ("<add|sub|mul><|.rn|.rz><|.ftz>.f32x2 %rd0, %rd1, %rd2;", {}),
    ("fma<.rn|.rz><|.ftz>.f32x2 %rd0, %rd1, %rd2, %rd3;", {}),
    ("div<.approx|.full|.rn|.rz|.rm|.rp><|.ftz>.<t> <t:0>, <t:1>, <t:2>;", {"t": FLOAT}),
    ("<rcp|sqrt><.approx|.rn|.rz|.rm|.rp><|.ftz>.<t> <t:0>, <t:1>;", {"t": FLOAT}),
    ("<rsqrt|sin|cos|lg2|ex2|tanh>.approx<|.ftz>.<t> <t:0>, <t:1>;", {"t": FLOAT + "|" + HALF}),
    ("<abs|neg><|.ftz>.<t> <t:0>, <t:1>;", {"t": FLOAT + "|" + HALF}),
    ("<min|max><|.ftz><|.NaN><|.xorsign.abs>.<t> <t:0>, <t:1>, <t:2>;", {"t": FLOAT + "|" + HALF}),
    ("<min|max><|.ftz><|.NaN><|.abs>.f32 %f0, %f1, %f2, %f3;", {}),
    ("copysign.<t> <t:0>, <t:1>, <t:2>;", {"t": FLOAT}),
    ("testp.<k>.<t> %p0, <t:1>;",
     {"k": "finite|infinite|number|notanumber|normal|subnormal", "t": FLOAT}),
    ("setp.<k><|.ftz>.<t> %p0, <t:1>, <t:2>;",
     {"k": COMPARE, "t": BITS + "|" + INT + "|" + FLOAT + "|f16|bf16"}),
    ("setp.<k><|.ftz>.<t> %p0|%p1, <t:1>, <t:2>;", {"k": COMPARE, "t": "f16x2|bf16x2"}),
    ("setp.<k><.and|.or|.xor>.<t> <%p0|%p0^%p2|_^%p2>, <t:1>, <t:2>, <|!>%p1;",
     {"k": "eq|lt", "t": "b16|s32|u64|f32|f64"}),
    ("set.<k><|.and|.or|.xor><|.ftz>.<d>.<t> <d:0>, <t:1>, <t:2>;",
     {"k": "eq|hs|nan", "d": "u32|s32|f32", "t": BITS + "|" + INT + "|" + FLOAT}),
    ("set.<k>.and<|.ftz>.<d>.<t> <d:0>, <t:1>, <t:2>, <|!>%p1;",
     {"k": "eq|hs|nan", "d": "u32|s32|f32", "t": BITS + "|" + INT + "|" + FLOAT}),
    ("set.<k><|.ftz>.<d>.<t> <d:0>, <t:1>, <t:2>;",
     {"k": "eq|geu|num", "d": "u16|s16|u32|s32|f16|bf16|f16x2|bf16x2|f32", "t": HALF}),
    ("selp.<t> <t:0>, <t:1>, <t:2>, <|!>%p1;", {"t": BITS + "|" + INT + "|" + FLOAT + "|f16|f16x2"}),
    ("slct<|.ftz>.<t>.<y> <t:0>, <t:1>, <t:2>, <y:3>;",
     {"t": BITS + "|" + INT + "|" + FLOAT, "y": "s32|f32"}),
]
CONVERSIONS = [
    ("cvt<|.rn|.rz|.rm|.rp|.rni|.rzi|.rmi|.rpi><|.ftz><|.sat>.<d>.<a> <d:0>, <a:1>;",
     {"d": "u8|s8|" + INT + "|f16|bf16|f32|f64", "a": "u8|s8|" + INT + "|f16|bf16|f32|f64"}),
    ("cvt<.rn|.rz|.rna|.rs><|.relu><|.satfinite>.<d>.f32 <d:0>, %f1;", {"d": "f16|bf16|tf32"}),
    ("cvt<.rn|.rz|.rs><|.relu><|.satfinite>.<d>.f32 <d:0>, %f1, %f2;",
     {"d": "f16x2|bf16x2|e4m3x2|e5m2x2"}),
    ("cvt<.rn|.rz><|.relu><|.satfinite>.<d>.<a> <d:0>, <a:1>;",
     {"d": "e4m3x2|e5m2x2|f16x2|bf16x2", "a": "e4m3x2|e5m2x2|f16x2|bf16x2"}),
    ("cvt.pack<|.sat>.<u8|s8|u16|s16|u4|s4|u2|s2>.s32 %r0, %r1, %r2;", {}),
    ("cvt.pack<|.sat>.<u8|s8|u16|s16|u4|s4|u2|s2>.s32.b32 %r0, %r1, %r2, %r3;", {}),
]
MOVES = [
    ("mov.<t> <t:0>, <t:1>;", {"t": "pred|b128|" + BITS + "|" + INT + "|" + FLOAT + "|f16|f16x2|bf16"}),
    ("mov.<t> <t:0>, <5|-1>;", {"t": BITS + "|" + INT}), ("mov.pred %p0, <0|1>;", {}),
    ("mov.f32 %f0, <0f3F800000|1.5>;", {}), ("mov.f64 %d0, <0d3FF0000000000000|1.5>;", {}),
    ("mov.b32 %r0, 0f3F800000;", {}), ("mov.b64 %rd0, 0d3FF0000000000000;", {}),
    ("mov.b32 %r0, {%h0, %h1};", {}), ("mov.b32 {%h0, <%h1|_>}, %r1;", {}),
    ("mov.b64 %rd0, {%r0, %r1};", {}), ("mov.b64 {%r0, <%r1|_>}, %rd1;", {}),
    ("mov.b64 %rd0, {%h0, %h1, %h2, %h3};", {}), ("mov.b64 {%h0, %h1, %h2, %h3}, %rd0;", {}),
    ("mov.b64 %rd0, {%f0, %f1};", {}), ("mov.b64 {%f0, %f1}, %d1;", {}),
    ("mov.b16 %h0, {%b0, %b1};", {}), ("mov.b16 {%b0, %b1}, %h0;", {}),
    ("mov.b32 %r0, {%b0, %b1, %b2, %b3};", {}), ("mov.b32 {%b0, %b1, %b2, %b3}, %r0;", {}),
    ("mov.b128 %q0, {%rd0, %rd1};", {}), ("mov.b128 {%rd0, <%rd1|_>}, %q0;", {}),
    ("mov.b128 %q0, {%r0, %r1, %r2, %r3};", {}), ("mov.b128 {%r0, %r1, %r2, %r3}, %q0;", {}),
    ("mov.<u32|b32> %r0, <s|s+4|l|p>;", {}), ("mov.<u64|b64> %rd0, <g|g+4|s|l|c|p|f|k>;", {}),
    ("cvta<|.to>.<global|shared|shared::cta|local|const|param|param::entry>.<u32|u64> "
     "<%r0|%rd0>, <%r1|%rd1|g|s+4|l|c|p>;", {}),
    ("isspacep.<global|shared|shared::cta|local|const|param|param::entry> %p0, "
     "<%r1|%rd1>;", {}),
    ("mov.<u32|b32> %r0, %<tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid>"
     ".<x|y|z|w>;", {}),
    ("mov.u16 %h0, %<tid|ntid|ctaid|nctaid>.<x|y|z>;", {}),
    ("mov.<u32|b32> %r0, %<s>;", {"s": "laneid|warpid|nwarpid|smid|nsmid|gridid|clock|clock_hi|"
        "lanemask_eq|lanemask_le|lanemask_lt|lanemask_ge|lanemask_gt|pm0|pm1|pm2|pm3|pm4|pm5|pm6|"
        "pm7|envreg0|envreg31|globaltimer_lo|globaltimer_hi|total_smem_size|aggr_smem_size|"
        "dynamic_smem_size|reserved_smem_offset_begin|reserved_smem_offset_end|"
        "reserved_smem_offset_cap|reserved_smem_offset_0|reserved_smem_offset_1|cluster_ctarank|"
        "cluster_nctarank"}),
    ("mov.<u64|b64> %rd0, %<gridid|clock64|pm0_64|pm1_64|pm2_64|pm3_64|pm4_64|pm5_64|pm6_64|pm7_64|"
     "globaltimer|current_graph_exec>;", {}),
    ("mov.pred %p0, %is_explicit_cluster;", {}),
    ("mov.b32 %r0, WARP_SZ;", {}), ("add.u32 %r0, %r1, WARP_SZ;", {}),
    ("add.u32 %r0, %r1, %tid.x;", {}), ("add.u32 %r0, %r1, (3+4)*2-1;", {}),
    ("mov.u32 %r0, 1 ? 2 : 3;", {}), ("mov.u32 %r0, (1 << 4) | 2 & ~1;", {}),
    ("mov.u64 %rd0, (.u64)-1;", {}), ("mov.u32 %r0, 0b101;", {}), ("mov.u32 %r0, 017;", {}),
    ("mov.u32 %r0, 0x1FU;", {}), ("mov.u32 %r0, 1 || 0;", {}), ("mov.u32 %r0, 5 >= 4 && 3 != 2;", {}),
]
HINTS = ("<|.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|"
         ".L1::no_allocate>")
ACCESS = [
    ("ld<|.weak|.volatile|.global|.shared|.shared::cta|.local|.const|.param|.param::entry>.<t> "
     "<t:0>, [<%rd1|%rd1+8|%rd1+-8>];", {"t": MEMORY}),
    ("ld.global.<t> <t:0>, [<g|g+8|%rd1>];", {"t": MEMORY + "|b128"}),
    ("ld.shared.<t> <t:0>, [<s|s+16|%r1|%r1+16>];", {"t": MEMORY + "|b128"}),
    ("ld.local.<t> <t:0>, [<l|l+16|%r1>];", {"t": MEMORY + "|b128"}),
    ("ld.const.<t> <t:0>, [<c|c+16|%rd1>];", {"t": MEMORY + "|b128"}),
    ("ld.param.<t> <t:0>, [<p|p+16>];", {"t": MEMORY + "|b128"}),
    ("ld.global.<t> <%b0|%h0|%r0|%rd0|%f0|%d0>, [%rd1];", {"t": MEMORY}),
    ("st.global.<t> [%rd1], <%b0|%h0|%r0|%rd0|%f0|%d0>;", {"t": MEMORY}),
    ("ld<|.global|.shared|.local|.const|.param>.v2.<t> {<t:0>, <t:1>}, [%rd1];", {"t": MEMORY + "|b128"}),
    ("ld<|.global|.shared|.local|.const|.param>.v4.<t> {<t:0>, <t:1>, <t:2>, <t:3>}, [%rd1];",
     {"t": MEMORY}),
    ("ld.global.v4.b32 {_, %r0, _, %r1}, [%rd1];", {}),
    ("ld<|.global>.<v8.b32|v8.f32|v4.b64> {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%rd1];", {}),
    ("ld<.relaxed|.acquire><.cta|.cluster|.gpu|.sys><|.global|.shared|.shared::cta>.<t> "
     "<t:0>, [%rd1];", {"t": "b8|u16|s32|b64|f32|f64|b128"}),
    ("ld.mmio.relaxed.sys<|.global>.<t> <t:0>, [%rd1];", {"t": "u8|b16|u32|s64|f32"}),
    ("ld<|.global><.ca|.cg|.cs|.lu|.cv>.<t> <t:0>, [%rd1];", {"t": "b8|u32|f64"}),
    ("ld.global<|.ca|.cg|.cs>.nc.<t> <t:0>, [%rd1];", {"t": MEMORY + "|b128"}),
    ("ld.global.nc.v4.f32 {%f0, %f1, %f2, %f3}, [%rd1];", {}),
    ("ld<|.global><|.nc>" + HINTS + "<|.L2::64B|.L2::128B|.L2::256B>.u32 %r0, [%rd1];", {}),
    ("ld<|.global><|.nc>" + HINTS + ".L2::cache_hint<|.L2::64B|.L2::128B>.u32 %r0, [%rd1], %rd2;", {}),
    ("ld<|.global><|.nc>.L2::evict_<first|last|normal>.<v8.b32|v4.u64|u32> %r0, [%rd1];", {}),
    ("ld.relaxed.gpu.global" + HINTS + "<|.L2::128B>.u32 %r0, [%rd1];", {}),
    ("ldu<|.global>.<t> <t:0>, [%rd1];", {"t": MEMORY + "|b128"}),
    ("ldu<|.global>.v2.<t> {<t:0>, <t:1>}, [%rd1];", {"t": MEMORY}),
    ("ldu.global.v4.<b8|u16|s32|f32> {%r0, %r1, %r2, %r3}, [%rd1];", {}),
    ("st<|.weak|.volatile|.global|.shared|.shared::cta|.local>.<t> [%rd1], <t:0>;",
     {"t": MEMORY + "|b128"}),
    ("st.global.<t> [<g|g+8>], <t:0>;", {"t": MEMORY}),
    ("st.<global.u32 [g|shared.u32 [s|local.u32 [l|shared.u32 [%r1>], <5|%r0>;", {}),
    ("st.<t> [%rd1], 5;", {"t": "b8|b16|b32|b64|u8|s16"}), ("st.f32 [%rd1], 0f00000000;", {}),
    ("st<|.global|.shared|.local>.v2.<t> [%rd1], {<t:0>, <t:1>};", {"t": MEMORY + "|b128"}),
    ("st<|.global|.shared|.local>.v4.<t> [%rd1], {<t:0>, <t:1>, <t:2>, <t:3>};", {"t": MEMORY}),
    ("st.global.v4.b32 [%rd1], {1, %r0, 2, %r1};", {}),
    ("st<.relaxed|.release><.cta|.cluster|.gpu|.sys><|.global|.shared|.shared::cta>.<t> "
     "[%rd1], <t:0>;", {"t": "b8|u16|s32|b64|f32|f64|b128"}),
    ("st.mmio.relaxed.sys<|.global>.<t> [%rd1], <t:0>;", {"t": "u8|b16|u32|s64|f32"}),
    ("st<|.global><.wb|.cg|.cs|.wt>.<t> [%rd1], <t:0>;", {"t": "b8|u32|f64"}),
    ("st<|.global>" + HINTS + "<|.L2::cache_hint>.u32 [%rd1], %r0<|, %rd2>;", {}),
    ("st<|.global>.L2::evict_<first|last|normal>.u32 [%rd1], %r0;", {}),
    ("prefetch<|.global|.local>.<L1|L2> [<%rd1|%rd1+16>];", {}),
    ("prefetch.global.L2::evict_<last|normal> [%rd1];", {}), ("prefetchu.L1 [%rd1];", {}),
    ("prefetch<|.const|.param>.tensormap [%rd1];", {}),
    ("applypriority<|.global>.L2::evict_normal [<%rd1|%rd1+128|g>], 128;", {}),
    ("discard<|.global>.L2 [<%rd1|g>], 128;", {}),
    ("createpolicy.fractional.L2::evict_<last|normal|first|unchanged>"
     "<|.L2::evict_first|.L2::evict_unchanged>.b64 %rd0<|, 0.5|, 1.0|, %f1>;", {}),
    ("createpolicy.range<|.global>.L2::evict_<last|normal|first|unchanged>"
     "<|.L2::evict_first|.L2::evict_unchanged>.b64 %rd0, [<%rd1|g>], <0x100000, 0x200000|%r1, %r2>;", {}),
    ("createpolicy.cvt.L2.b64 %rd0, <%rd1|0x16f0000000000000>;", {}),
    ("st.bulk.weak<|.shared::cta> [%rd1], %rd2, 0;", {}),
]
ATOMICS = [
    ("atom<|.relaxed|.acquire|.release|.acq_rel><|.cta|.cluster|.gpu|.sys>"
     "<|.global|.shared|.shared::cta>.<add|min|max>.<t> <t:0>, [%rd1], <t:2>;",
     {"t": "u32|s32|u64|s64|f32|f64"}),
    ("atom<|.global|.shared>.<k>.<t> <t:0>, [%rd1], <t:2>;",
     {"k": "and|or|xor|exch|inc|dec|add|min|max",
      "t": "b16|b32|b64|b128|u32|s32|u64|s64|f16|bf16|f16x2|bf16x2|f32|f64|u16|s16"}),
    ("atom<|.global|.shared>.cas.<t> <t:0>, [<%rd1|g>], <t:2>, <t:3>;",
     {"t": "b16|b32|b64|b128|u32|s32|u64|s64|f32"}),
    ("atom<|.acquire.gpu><|.global|.shared>.<exch|add|min|max>.noftz.<t> <t:0>, [%rd1], <t:2>;",
     {"t": HALF}),
    ("atom.global<.add|.min|.max>.noftz<|.L2::cache_hint>.v2.<t> {<t:0>, <t:1>}, [%rd1], "
     "{<t:2>, <t:3>}<|, %rd2>;", {"t": HALF}),
    ("atom.global<.add|.min|.max>.noftz.v4.<t> {<t:0>, <t:1>, <t:2>, <t:3>}, [%rd1], "
     "{<t:4>, <t:5>, <t:6>, <t:7>};", {"t": HALF}),
    ("atom.global<.add|.min|.max>.noftz.v8.<f16|bf16> {%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7}, [%rd1], "
     "{%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7};", {}),
    ("atom<|.gpu>.global.v2.f32.add {%f0, %f1}, [%rd1], {%f2, %f3};", {}),
    ("atom<|.gpu|.release.gpu>.global.add<|.L2::cache_hint>.v2.f32 {%f0, <%f1|_>}, [%rd1], {%f2, %f3}<|, %rd2>;", {}),
    ("atom.global.v4.f32.add {%f0, %f1, %f2, %f3}, [%rd1], {%f2, %f3, %f4, %f5};", {}),
    ("atom.global.add.v4.f32 {%f0, %f1, %f2, %f3}, [%rd1], {%f2, %f3, %f4, %f5};", {}),
    ("atom<|.global>.<add|exch|min>.L2::cache_hint.<u32|b32|b64|u64> %r0, [%rd1], %r2, %rd3;", {}),
    ("atom<|.global>.cas.L2::cache_hint.b32 %r0, [%rd1], %r2, %r3, %rd3;", {}),
    ("atom.shared.add.u32 <%r0|_>, [<s|s+4|%r1|%r1+4>], <1|%r2>;", {}),
    ("atom.global.add.u32 <%r0|_>, [<g|g+4|%rd1>], <1|%r2>;", {}),
    ("red<|.relaxed|.release><|.cta|.cluster|.gpu|.sys>"
     "<|.global|.shared|.shared::cta>.<add|min|max>.<t> [%rd1], <t:2>;",
     {"t": "u32|s32|u64|s64|f32|f64"}),
    ("red<|.global|.shared>.<k>.<t> [%rd1], <t:2>;",
     {"k": "and|or|xor|inc|dec|add|min|max",
      "t": "b16|b32|b64|u32|s32|u64|s64|f16|bf16|f16x2|bf16x2|f32|f64"}),
    ("red<|.release.gpu><|.global|.shared>.<add|min|max>.noftz.<t> [%rd1], <t:2>;", {"t": HALF}),
    ("red.global<.add|.min|.max>.noftz<|.L2::cache_hint>.v2.<t> [%rd1], {<t:2>, <t:3>}<|, %rd2>;",
     {"t": HALF}),
    ("red.global<.add|.min|.max>.noftz.v4.<t> [%rd1], {<t:4>, <t:5>, <t:6>, <t:7>};", {"t": HALF}),
    ("red.global<.add|.min|.max>.noftz.v8.<f16|bf16> [%rd1], {%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7};", {}),
    ("red<|.gpu|.release.gpu>.global.add<|.L2::cache_hint><.v2.f32 [%rd1], {%f2, %f3}|"
     ".v4.f32 [%rd1], {%f2, %f3, %f4, %f5}><|, %rd2>;", {}),
    ("red<|.global>.<add|min|or>.L2::cache_hint.<u32|b32|b64|u64|f32> [%rd1], %r2, %rd3;", {}),
    ("multimem.ld_reduce<|.weak|.relaxed.gpu|.acquire.sys><|.global>.<k>.<t> <t:0>, [%rd1];",
     {"k": "add|min|max|and|or|xor", "t": "b32|b64|u32|s32|u64|s64|f32|f64|f16|bf16|f16x2|bf16x2"}),
    ("multimem.ld_reduce<|.relaxed.gpu>.global.<k><|.acc::f32>.v2.<t> {<t:0>, <t:1>}, [%rd1];",
     {"k": "add|min|max", "t": "f32|" + HALF}),
    ("multimem.ld_reduce.global.<k><|.acc::f32>.v4.<t> {<t:0>, <t:1>, <t:2>, <t:3>}, [%rd1];",
     {"k": "add|min|max", "t": "f32|" + HALF}),
    ("multimem.ld_reduce.global.<k>.v8.<f16|bf16> {%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7}, [%rd1];",
     {"k": "add|min|max"}),
    ("multimem.st<|.weak|.relaxed.gpu|.release.sys><|.global>.<t> [%rd1], <t:0>;",
     {"t": "b32|b64|u32|s32|u64|s64|f32|f64|f16|bf16|f16x2|bf16x2"}),
    ("multimem.st<|.weak>.global.v2.<t> [%rd1], {<t:0>, <t:1>};", {"t": "f32|" + HALF}),
    ("multimem.st.global.v4.<t> [%rd1], {<t:0>, <t:1>, <t:2>, <t:3>};", {"t": "f32|" + HALF}),
    ("multimem.red<|.relaxed.gpu|.release.sys><|.global>.<k>.<t> [%rd1], <t:0>;",
     {"k": "add|min|max|and|or|xor", "t": "b32|b64|u32|s32|u64|s64|f32|f64|f16|bf16|f16x2|bf16x2"}),
    ("multimem.red.global.add.v2.<t> [%rd1], {<t:0>, <t:1>};", {"t": "f32|" + HALF}),
    ("multimem.red.global.add.v4.<t> [%rd1], {<t:0>, <t:1>, <t:2>, <t:3>};", {"t": "f32|" + HALF}),
]
WARPS = [
    ("shfl.sync<.up|.down|.bfly|.idx>.b32 <%r0|%r0^%p0|_^%p0>, %r1, <%r2|1>, <%r3|0x1f>, <%r4|0xffffffff>;", {}),
    ("vote.sync<.all|.any|.uni>.pred %p0, <|!>%p1, <%r1|-1>;", {}),
    ("vote.sync.ballot.b32 %r0, <|!>%p1, <%r1|0xffffffff>;", {}),
    ("match<.any|.all>.sync.<t> <%r0|%r0^%p0>, <t:1>, <%r2|-1>;", {"t": "b32|b64"}),
    ("activemask.b32 %r0;", {}), ("elect.sync <%r0|_>^%p0, <%r1|-1>;", {}),
    ("redux.sync.<add|min|max|and|or|xor>.<u32|s32|b32> %r0, %r1, <%r2|-1>;", {}),
    ("bar.warp.sync <%r1|0xffffffff>;", {}), ("<bar|bar.cta>.sync <0|%r1><|, 64|, %r2>;", {}),
    ("<bar|bar.cta>.arrive <0|%r1>, <64|%r2>;", {}),
    ("<bar|bar.cta>.red.popc.u32 %r0, <0|%r1><|, 64|, %r2>, <|!>%p1;", {}),
    ("<bar|bar.cta>.red.<and|or>.pred %p0, <0|%r1><|, 64|, %r2>, <|!>%p1;", {}),
    ("barrier<|.cta>.sync<|.aligned> <0|%r1><|, 64|, %r2>;", {}),
    ("barrier<|.cta>.arrive<|.aligned> <0|%r1>, <64|%r2>;", {}),
    ("barrier<|.cta>.red.popc<|.aligned>.u32 %r0, <0|%r1><|, 64|, %r2>, <|!>%p1;", {}),
    ("barrier<|.cta>.red.<and|or><|.aligned>.pred %p0, <0|%r1><|, 64|, %r2>, <|!>%p1;", {}),
    ("setmaxnreg.<inc|dec>.sync.aligned.u32 <24|64|128>;", {}),
    ("pmevent <0|15>;", {}), ("pmevent.mask 0x5;", {}), ("nanosleep.u32 <%r1|100>;", {}),
    ("brkpt;", {}), ("trap;", {}), ("exit;", {}), ("ret<|.uni>;", {}), ("bra<|.uni> L;", {}),
    ("@%p1 bra L;", {}), ("@!%p1 exit;", {}), ("membar.<cta|gl|sys>;", {}),
    ("fence<|.sc|.acq_rel|.acquire|.release>.<cta|cluster|gpu|sys>;", {}),
    ("stacksave.<u32|u64> <%r0|%rd0>;", {}), ("stackrestore.<u32|u64> <%r0|%rd0>;", {}),
    ("alloca.<u32|u64> <%r0|%rd0>, <%r1|%rd1|64><|, 8|, 16|, 4096>;", {}),
    ("call (%r0), f, (%r1);", {}), ("call<|.uni> (%r0), f, (5);", {}), ("call (_), f, (%r1);", {}),
    ("{ .param .b32 a; .param .b32 b; st.param.b32 [a], 1; call (b), f, (a); ld.param.b32 %r0, [b]; }", {}),
]
ALL = ARITHMETIC + CONVERSIONS + MOVES + ACCESS + ATOMICS + WARPS

# What ptxas accepts and the manual does not define; and .oob, of which the manual does not tell the
# bits. The CPU device refuses them. Video instructions are in ask_instructions.py.
UNDEFINED = (r"fma\..*\.oob", r"rcp\.r.\.ftz\.f64", r"cvt\.(bf16\.f16|f16\.bf16)")


def candidates():
    seen = {}
    for pattern, names in ALL:
        for line in expand(pattern, names):
            seen[line] = True
    undefined = re.compile("|".join(UNDEFINED))
    return [line for line in seen if not undefined.match(line)]


def write(path, lines):
    with open(path, "w") as out:
        out.write(HEAD + FRAME)
        for line in lines:
            out.write(line.replace("L;", "LEND;") + "\n")
        out.write("LEND: ret; }\n")


def accepted(ptxas, lines):
    """Takes away the lines that ptxas names until it has no complaint."""
    first = (HEAD + FRAME).count("\n") + 1
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "k.ptx")
        while lines:
            write(path, lines)
            done = subprocess.run([ptxas, "-arch=sm_90a", "-O0", "-o", os.devnull, path],
                                  capture_output=True, text=True)
            if done.returncode == 0:
                return lines
            bad = {int(n) - first for n in re.findall(r"line (\d+); error", done.stderr)}
            bad = {n for n in bad if 0 <= n < len(lines)}
            if not bad:
                if len(lines) == 1:
                    return []
                half = len(lines) // 2
                return accepted(ptxas, lines[:half]) + accepted(ptxas, lines[half:])
            lines = [line for n, line in enumerate(lines) if n not in bad]
    return lines


def main():
    ptxas = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    lines = candidates()
    print(f"{len(lines)} candidates", file=sys.stderr)
    kept = []
    for at in range(0, len(lines), 400):
        kept += accepted(ptxas, lines[at:at + 400])
    print("# Lines that ptxas accepts for sm_90a; made by tools/list_forms.py.")
    for line in kept:
        print(line)
    print(f"{len(kept)} accepted", file=sys.stderr)


if __name__ == "__main__":
    main()
