/* SPDX-License-Identifier: Apache-2.0 */
/* cvt of pairs of 8-bit floats: e4m3, which has no infinity, and e5m2. */
#include <math.h>

#include "ptx/fp.h"
#include "ptx/run/exec.h"

#define HANDLER(name) static bool name(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask)

enum { NAN_FP8 = 0x7f, NAN_F16 = 0x7fff };

/* e4m3 has the bias 7 and uses its largest exponent for numbers: narrowed as a format with five
 * bits of exponent, whose bias is 15. */
static uint32_t to_fp8(double v, bh__ptx_type type, unsigned flags) {
    bool wide = type == T_E5M2X2;
    if (v != v) {
        return NAN_FP8;
    }
    if (signbit(v) && flags & FLAG_RELU) {
        return 0;
    }
    uint32_t largest = wide ? 0x7b : 0x7e;
    uint32_t bits = (uint32_t)(wide ? bh__narrow_double(fabs(v), 2, 5, BH__ROUND_NEAREST)
                                    : bh__narrow_double(fabs(v) * 0x1p-8, 3, 5, BH__ROUND_NEAREST));
    return (signbit(v) ? 0x80 : 0) | (bits > largest ? largest : bits);
}

static uint32_t to_f16(uint32_t bits, bh__ptx_type type, unsigned flags) {
    uint32_t sign = bits & 0x80, rest = bits & 0x7f;
    bool wide = type == T_E5M2X2;
    if (wide ? rest > 0x7c : rest == NAN_FP8) {
        return NAN_F16;
    }
    if (sign && flags & FLAG_RELU) {
        return 0;
    }
    double e4m3 = rest < 8 ? rest * 0x1p-9 : ldexp((rest & 7) + 8, (int)(rest >> 3) - 10);
    return sign << 8 | (wide ? rest << 8 : bh__f16_from_double(e4m3, BH__ROUND_NEAREST));
}

/* imm: the type of the pair. The first source goes to the upper half. */
HANDLER(from_f32) {
    const bh__f32 *pa = bh__row(x, i->a), *pb = bh__row(x, i->b);
    bh__u32 *pd = bh__row(x, i->d);
    bh__ptx_type type = (bh__ptx_type)i->imm;
    FOR_LANES_IN_ORDER(mask) {
        pd[l] = to_fp8((double)pa[l], type, i->flags) << 8 | to_fp8((double)pb[l], type, i->flags);
    }
    return true;
}

HANDLER(from_f16x2) {
    const bh__u32 *pa = bh__row(x, i->a);
    bh__u32 *pd = bh__row(x, i->d);
    bh__ptx_type type = (bh__ptx_type)i->imm;
    FOR_LANES_IN_ORDER(mask) {
        double high = (double)bh__f16_to_float((uint16_t)(pa[l] >> 16));
        double low = (double)bh__f16_to_float((uint16_t)pa[l]);
        pd[l] = to_fp8(high, type, i->flags) << 8 | to_fp8(low, type, i->flags);
    }
    return true;
}

HANDLER(to_f16x2) {
    const bh__u32 *pa = bh__row(x, i->a);
    bh__u32 *pd = bh__row(x, i->d);
    bh__ptx_type type = (bh__ptx_type)i->imm;
    FOR_LANES_IN_ORDER(mask) {
        pd[l] =
            to_f16(pa[l] >> 8 & 0xff, type, i->flags) << 16 | to_f16(pa[l] & 0xff, type, i->flags);
    }
    return true;
}

bool bh__ptx_pick_fp8(const bh__ptx_insn *insn, bh__ptx_code *code) {
    bool narrows = insn->op != OP_CVT8H;
    code->run = insn->op == OP_CVTF8 ? from_f32 : narrows ? from_f16x2 : to_f16x2;
    code->imm = insn->types[!narrows];
    return HAS(insn, RN) && HAS(insn, SATFINITE) == narrows;
}
