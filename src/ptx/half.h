/* SPDX-License-Identifier: Apache-2.0 */
/* Half precision: f16 and bf16 to and from wider floats, with one rounding and in every mode. */
#ifndef BH_PTX_HALF_H
#define BH_PTX_HALF_H

#include <stdint.h>
#include <string.h>

typedef enum bh__round {
    BH__ROUND_NEAREST, /* ties to even */
    BH__ROUND_ZERO,
    BH__ROUND_DOWN,
    BH__ROUND_UP,
    BH__ROUND_AWAY /* nearest, ties away from zero */
} bh__round;

/*
 * Rounds a double once to a format with `mantissa` stored bits and `exponent` exponent bits, and
 * returns its bits. A value that is too large becomes infinity or, depending on the mode, the
 * largest finite value.
 */
static inline uint64_t bh__narrow_double(double value, unsigned mantissa, unsigned exponent,
                                         bh__round mode) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    uint64_t sign = bits >> 63;
    int e = (int)(bits >> 52 & 0x7ff);
    uint64_t m = bits & ((UINT64_C(1) << 52) - 1);
    uint64_t out_sign = sign << (mantissa + exponent);
    uint64_t infinity = ((UINT64_C(1) << exponent) - 1) << mantissa;
    if (e == 0x7ff) {
        return m != 0 ? infinity | ((UINT64_C(1) << mantissa) - 1) : out_sign | infinity;
    }
    if (e == 0 && m == 0) {
        return out_sign;
    }
    if (e == 0) {
        e = 1;
    } else {
        m |= UINT64_C(1) << 52;
    }
    int bias = (1 << (exponent - 1)) - 1;
    int target = e - 1023 + bias; /* the exponent field, if normal */
    unsigned drop = 52 - mantissa;
    if (target < 1) {
        drop = target < -60 ? 63 : drop + (unsigned)(1 - target);
        drop = drop > 63 ? 63 : drop;
        target = 0;
    }
    uint64_t kept = m >> drop, rest = m & ((UINT64_C(1) << drop) - 1);
    uint64_t half = UINT64_C(1) << (drop - 1);
    int up = mode == BH__ROUND_NEAREST ? rest > half || (rest == half && (kept & 1))
             : mode == BH__ROUND_AWAY  ? rest >= half
             : mode == BH__ROUND_UP    ? rest != 0 && !sign
             : mode == BH__ROUND_DOWN  ? rest != 0 && sign
                                       : 0;
    kept += (uint64_t)up;
    /* `kept` holds the implicit bit if normal, so that a carry increments the exponent. */
    uint64_t out = target == 0 ? kept : ((uint64_t)(target - 1) << mantissa) + kept;
    if (out >= infinity) {
        int finite = mode == BH__ROUND_ZERO || (mode == BH__ROUND_UP && sign) ||
                     (mode == BH__ROUND_DOWN && !sign);
        out = finite ? infinity - 1 : infinity;
    }
    return out_sign | out;
}

static inline uint16_t bh__f16_from_double(double value, bh__round mode) {
    return (uint16_t)bh__narrow_double(value, 10, 5, mode);
}

static inline uint16_t bh__bf16_from_double(double value, bh__round mode) {
    return (uint16_t)bh__narrow_double(value, 7, 8, mode);
}

static inline float bh__float_of_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static inline uint32_t bh__bits_of_float(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

static inline double bh__double_of_bits(uint64_t bits) {
    double d;
    memcpy(&d, &bits, 8);
    return d;
}

static inline uint64_t bh__bits_of_double(double d) {
    uint64_t bits;
    memcpy(&bits, &d, 8);
    return bits;
}

static inline float bh__f16_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h >> 15) << 31, e = h >> 10 & 31, m = h & 0x3ff;
    if (e == 31) {
        return bh__float_of_bits(sign | 0x7f800000u | m << 13);
    }
    if (e == 0) {
        float f = (float)m * 0x1p-24f;
        return bh__float_of_bits(sign | bh__bits_of_float(f));
    }
    return bh__float_of_bits(sign | (e + 112) << 23 | m << 13);
}

static inline float bh__bf16_to_float(uint16_t h) {
    return bh__float_of_bits((uint32_t)h << 16);
}

#endif
