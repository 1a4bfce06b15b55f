/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of random programs. See generate.h for what $ stands for. */
#include "generate.h"

#define ANY   RANDOM_ANYWHERE
#define WARPS RANDOM_WHOLE_WARPS
#define BLOCK RANDOM_WHOLE_BLOCK

const random_template random_templates[] = {
    /* integers */
    {ANY, 6, "add.u32 $r, $r, $r;"},
    {ANY, 4, "sub.s32 $r, $r, $i;"},
    {ANY, 4, "mul.lo.u32 $r, $r, $r;"},
    {ANY, 3, "mul.hi.s32 $r, $r, $r;"},
    {ANY, 3, "mad.lo.s32 $r, $r, $r, $r;"},
    {ANY, 3, "mad.wide.u32 $q, $r, $r, $q;"},
    {ANY, 2, "mul.wide.s32 $q, $r, $i;"},
    {ANY, 2, "mul24.lo.u32 $r, $r, $r;"},
    {ANY, 2, "sad.s32 $r, $r, $r, $r;"},
    {ANY, 2, "or.b32 %t0, $r, 1; div.u32 $r, $r, %t0;"},
    {ANY, 2, "or.b32 %t0, $r, 2; and.b32 %t0, %t0, 1023; rem.s32 $r, $r, %t0;"},
    {ANY, 1, "or.b64 %a0, $q, 3; div.u64 $q, $q, %a0;"},
    {ANY, 2, "min.s32 $r, $r, $r;"},
    {ANY, 2, "max.u32 $r, $r, $r;"},
    {ANY, 2, "abs.s32 $r, $r;"},
    {ANY, 2, "add.cc.u32 $r, $r, $r; addc.u32 $r, $r, $i;"},
    {ANY, 2, "sub.cc.u32 $r, $r, $r; subc.cc.u32 $r, $r, $r; subc.u32 $r, $r, 0;"},
    {ANY, 2, "mad.lo.cc.u32 $r, $r, $r, $r; madc.hi.u32 $r, $r, $r, $r;"},
    {ANY, 2, "add.sat.s32 $r, $r, $r;"},
    {ANY, 3, "add.u64 $q, $q, $q;"},
    {ANY, 2, "mul.lo.u64 $q, $q, $q;"},
    {ANY, 1, "mul.hi.u64 $q, $q, $q;"},
    {ANY, 2, "sub.s64 $q, $q, $q;"},
    {ANY, 2, "max.s64 $q, $q, $q;"},
    {ANY, 1, "dp4a.s32.u32 $r, $r, $r, $r;"},
    {ANY, 1, "dp2a.lo.u32.s32 $r, $r, $r, $r;"},
    /* bits */
    {ANY, 4, "xor.b32 $r, $r, $r;"},
    {ANY, 2, "and.b32 $r, $r, $r;"},
    {ANY, 2, "not.b64 $q, $q;"},
    {ANY, 3, "lop3.b32 $r, $r, $r, $r, 0x$5;"},
    {ANY, 3, "shl.b32 $r, $r, $5;"},
    {ANY, 2, "shr.s32 $r, $r, $r;"},
    {ANY, 2, "shr.u64 $q, $q, $6;"},
    {ANY, 2, "shf.l.wrap.b32 $r, $r, $r, $r;"},
    {ANY, 2, "shf.r.clamp.b32 $r, $r, $r, $r;"},
    {ANY, 2, "prmt.b32 $r, $r, $r, $r;"},
    {ANY, 2, "bfe.s32 $r, $r, $5, $5;"},
    {ANY, 2, "bfi.b32 $r, $r, $r, $5, $5;"},
    {ANY, 1, "bfe.u64 $q, $q, $6, $6;"},
    {ANY, 1, "brev.b32 $r, $r;"},
    {ANY, 1, "popc.b64 $r, $q;"},
    {ANY, 1, "clz.b32 $r, $r;"},
    {ANY, 1, "bfind.s32 $r, $r;"},
    {ANY, 2, "mov.b64 {$r, $r}, $q;"},
    {ANY, 2, "mov.b64 $q, {$r, $r};"},
    /* floats: an exact rounding everywhere, so that no compiler fuses them */
    {ANY, 4, "add.$n.f32 $f, $f, $f;"},
    {ANY, 4, "mul.$n$s.f32 $f, $f, $f;"},
    {ANY, 4, "fma.$n.f32 $f, $f, $f, $f;"},
    {ANY, 2, "fma.rn.ftz.f32 $f, $f, $f, $f;"},
    {ANY, 2, "div.$n.f32 $f, $f, $f;"},
    {ANY, 1, "sqrt.$n.f32 $f, $f;"},
    {ANY, 1, "rcp.$n.f32 $f, $f;"},
    {ANY, 2, "min.f32 $f, $f, $F;"},
    {ANY, 2, "max.NaN.f32 $f, $f, $F;"},
    {ANY, 2, "add.$n.f64 $d, $d, $d;"},
    {ANY, 2, "fma.$n.f64 $d, $d, $d, $d;"},
    {ANY, 1, "div.$n.f64 $d, $d, $d;"},
    {ANY, 1, "sqrt.$n.f64 $d, $d;"},
    {ANY, 1, "copysign.f32 $f, $f, $f;"},
    {ANY, 1, "fma.rn.f16x2 $r, $r, $r, $r;"},
    {ANY, 1, "add.rn.sat.f16x2 $r, $r, $r;"},
    {ANY, 1, "fma.rn.relu.bf16x2 $r, $r, $r, $r;"},
    {ANY, 1, "min.f16x2 $r, $r, $X;"},
    /* conversions */
    {ANY, 2, "cvt.$n.f32.s32 $f, $r;"},
    {ANY, 2, "cvt.rzi.s32.f32 $r, $f;"},
    {ANY, 1, "cvt.rpi.u64.f32 $q, $f;"},
    {ANY, 1, "cvt.rmi.s64.f64 $q, $d;"},
    {ANY, 1, "cvt.$n.f32.f64 $f, $d;"},
    {ANY, 1, "cvt.f64.f32 $d, $f;"},
    {ANY, 1, "cvt.$n.f64.u64 $d, $q;"},
    {ANY, 1, "cvt.sat.s8.s32 $r, $r;"},
    {ANY, 1, "cvt.s64.s32 $q, $r;"},
    {ANY, 1, "cvt.u32.u64 $r, $q;"},
    {ANY, 1, "cvt.rni.f32.f32 $f, $f;"},
    {ANY, 1, "cvt.rn.f16x2.f32 $r, $f, $f;"},
    /* predicates */
    {ANY, 5, "setp.$R.u32 $p, $r, $r;"},
    {ANY, 3, "setp.$R.s32 $p, $r, $i;"},
    {ANY, 2, "setp.$R.s64 $p, $q, $q;"},
    {ANY, 2, "setp.$R.f32 $p, $f, $f;"},
    {ANY, 1, "setp.$R.and.s32 $p, $r, $r, !$p;"},
    {ANY, 1, "setp.$R.xor.f64 $p, $d, $d, $p;"},
    {ANY, 3, "selp.b32 $r, $r, $r, $p;"},
    {ANY, 1, "selp.f64 $d, $d, $d, $p;"},
    {ANY, 1, "set.$R.u32.f32 $r, $f, $f;"},
    {ANY, 1, "xor.pred $p, $p, $p;"},
    {ANY, 4, "@$p xor.b32 $r, $r, $i;"},
    {ANY, 3, "@!$p add.u64 $q, $q, $q;"},
    {ANY, 2, "@$p mov.b32 $f, $r;"},
    {ANY, 2, "@!$p mov.b64 $d, $q;"},
    /* memory of the thread's own */
    {ANY, 2, "st.global.u32 [%own+$v], $r;"},
    {ANY, 2, "ld.global.u32 $r, [%own+$v];"},
    {ANY, 1, "st.global.v2.u32 [%own+$V], {$r, $r};"},
    {ANY, 1, "ld.global.v4.f32 {$f, $f, %g0, %g1}, [%own+$V];"},
    {ANY, 1, "st.global.u8 [%own+$v], $r;"},
    {ANY, 1, "ld.global.s16 $r, [%own+$v];"},
    {ANY, 2,
     "and.b32 %t0, $r, 28; cvt.u64.u32 %a0, %t0; add.u64 %a0, %a0, %mine; st.local.u32 "
     "[%a0], $r;"},
    {ANY, 2,
     "and.b32 %t0, $r, 28; cvt.u64.u32 %a0, %t0; add.u64 %a0, %a0, %mine; ld.local.u32 $r, "
     "[%a0];"},
    {ANY, 1,
     "and.b32 %t0, $r, 24; cvt.u64.u32 %a0, %t0; cvta.local.u64 %a1, %mine; add.u64 %a0, "
     "%a0, %a1; st.u64 [%a0], $q; ld.u32 $r, [%a0+4];"},
    {ANY, 2,
     "and.b32 %t0, $r, 60; cvt.u64.u32 %a0, %t0; mov.u64 %a1, table$m; add.u64 %a0, %a0, %a1; "
     "ld.const.u32 $r, [%a0];"},
    /* cells of all threads: only what does not depend on the order */
    {ANY, 4, "and.b32 %t0, $r, 7; mad.wide.u32 %a0, %t0, 4, %cells; red.global.$o [%a0+$O], $r;"},
    {ANY, 1,
     "and.b32 %t0, $r, 3; mad.wide.u32 %a0, %t0, 8, %cells; red.global.add.u64 [%a0+192], $q;"},
    {ANY, 1, "red.global.inc.u32 [%cells+224], 1000;"},
    {ANY, 2,
     "ld.relaxed.gpu.global.u32 %t0, [%cells+228];\n"
     "AGAIN$l: add.u32 %t1, %t0, 3; atom.global.cas.b32 %t2, [%cells+228], %t0, %t1;\n"
     "setp.eq.u32 %pt, %t2, %t0; mov.u32 %t0, %t2; @!%pt bra AGAIN$l;"},
    /* functions */
    {ANY, 2,
     "{ .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a], $r; st.param.b32 "
     "[b], $r; call (c), mixes$m, (a, b); ld.param.b32 $r, [c]; }"},
    {ANY, 2,
     "{ .param .b32 a; .param .b64 b; .param .b64 c; and.b32 %t0, $r, 7; st.param.b32 [a], "
     "%t0; st.param.b64 [b], $q; call (c), recurses$m, (a, b); ld.param.b64 $q, [c]; }"},
    {ANY, 2,
     "and.b32 %t0, $r, 1; mov.u64 %a0, chosen$m; mad.wide.u32 %a0, %t0, 8, %a0;\n"
     "ld.global.u64 %a1, [%a0];\n"
     "{ .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a], $r; st.param.b32 "
     "[b], $i;\nPROTO$l: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);\n"
     "call (c), %a1, (a, b), PROTO$l; ld.param.b32 $r, [c]; }"},
    {ANY, 2,
     "and.b32 %t0, $r, 3;\nTO$l: .branchtargets CASEA$l, CASEB$l, CASEC$l, CASEB$l;\n"
     "brx.idx %t0, TO$l;\nCASEA$l: add.u32 $r, $r, 1; bra CASED$l;\n"
     "CASEB$l: xor.b32 $r, $r, $r; bra CASED$l;\n"
     "CASEC$l: sub.u32 $r, $r, $r;\nCASED$l: popc.b32 %t0, $r;"},
    /* warps */
    {WARPS, 3, "shfl.sync.idx.b32 $r|$p, $r, $r, 31, -1;"},
    {WARPS, 2, "shfl.sync.bfly.b32 $r|$p, $r, $5, 31, -1;"},
    {WARPS, 2, "shfl.sync.up.b32 $r|$p, $r, $5, 0, -1;"},
    {WARPS, 2, "shfl.sync.down.b32 $r, $r, $5, 0x181f, -1;"},
    {WARPS, 2, "vote.sync.ballot.b32 $r, $p, -1;"},
    {WARPS, 2, "vote.sync.any.pred $p, $p, -1;"},
    {WARPS, 1, "vote.sync.uni.pred $p, $p, -1;"},
    {WARPS, 1, "and.b32 %t0, $r, 3; match.any.sync.b32 $r, %t0, -1;"},
    {WARPS, 1, "match.all.sync.b64 $r|$p, $q, -1;"},
    {WARPS, 2, "redux.sync.add.s32 $r, $r, -1;"},
    {WARPS, 1, "redux.sync.xor.b32 $r, $r, -1;"},
    {WARPS, 1, "bar.warp.sync -1;"},
    {WARPS, 3,
     "vote.sync.ballot.b32 %t0, $p, -1; setp.eq.u32 %pt, %t0, 0; @%pt bra OUT$l;\n"
     "@!$p bra OUT$l;\nOUT$l: bar.warp.sync -1;"},
    /* a part of a warp that works together */
    {WARPS, 3,
     "setp.$R.u32 %pt, %lane, $5; vote.sync.ballot.b32 %t0, %pt, -1; @!%pt bra OTHERS$l;\n"
     "bfind.u32 %t1, %t0; shfl.sync.idx.b32 $r, $r, %t1, 31, %t0;\n"
     "vote.sync.ballot.b32 $r, $p, %t0; redux.sync.max.u32 $r, $r, %t0;\n"
     "OTHERS$l: bar.warp.sync -1;"},
    /* blocks: exchange through shared memory */
    {BLOCK, 5,
     "st.shared.u32 [%slot], $r; bar.sync 0; mad.lo.u32 %t0, %thread, 5, $5; and.b32 %t0, %t0, "
     "127; shl.b32 %t0, %t0, 2; mov.u32 %t1, slots; add.u32 %t0, %t0, %t1; ld.shared.u32 "
     "$r, [%t0]; bar.sync 0;"},
    {BLOCK, 2,
     "barrier.sync 1, 128; st.volatile.shared.f32 [%slot], $f; barrier.sync 2; and.b32 %t0, "
     "%thread, 124; shl.b32 %t0, %t0, 2; mov.u32 %t1, slots; add.u32 %t0, %t0, %t1; "
     "ld.shared.v4.f32 {$f, %g0, $f, %g1}, [%t0]; bar.sync 0;"},
    {BLOCK, 3,
     "setp.lt.u32 %pt, %thread, 8; @%pt st.shared.u32 [%slot], 0; bar.sync 0; and.b32 %t0, $r, "
     "28; mov.u32 %t1, slots; add.u32 %t0, %t0, %t1; red.shared.add.u32 [%t0], $r; bar.sync "
     "0; ld.shared.u32 $r, [slots+12]; bar.sync 0;"},
    {BLOCK, 2,
     "setp.lt.u32 %pt, %thread, 4; @%pt st.shared.u32 [%slot], 0; bar.sync 0; mov.u64 %a0, "
     "slots; cvta.shared.u64 %a0, %a0; and.b32 %t0, $r, 12; cvt.u64.u32 %a1, %t0; add.u64 %a0, %a0, %a1; "
     "atom.max.u32 %t2, [%a0], $r; bar.sync 0; ld.u32 $r, [%a0]; bar.sync 0;"},
    {BLOCK, 2, "bar.red.popc.u32 $r, 3, $p;"},
    {BLOCK, 1, "barrier.red.and.pred $p, 0, $p;"},
    {BLOCK, 1, "bar.red.or.pred $p, 5, !$p;"},
    /* one half of the warps tells the other; the pairs have barriers of their own */
    {BLOCK, 2,
     "setp.lt.u32 %pt, %thread, 64; @!%pt bra TAKE$l; st.shared.u32 [%slot], $r; bar.arrive 6, "
     "128; bra BOTH$l;\nTAKE$l: bar.sync 6, 128; ld.shared.u32 $r, [%slot+-256];\n"
     "BOTH$l: bar.sync 0;"},
    {BLOCK, 2,
     "st.shared.u32 [%slot], $r; and.b32 %t0, %warp, 1; add.u32 %t0, %t0, 8; bar.sync %t0, "
     "64; xor.b32 %t1, %thread, 64; shl.b32 %t1, %t1, 2; mov.u32 %t2, slots; add.u32 %t1, %t1, "
     "%t2; ld.shared.u32 $r, [%t1]; bar.sync 0;"},
};
const unsigned random_template_count = sizeof random_templates / sizeof *random_templates;
