/* SPDX-License-Identifier: Apache-2.0 */
/* A double on its way to 16 bits: a float whose last bit says that something was cut off. */
#ifndef BULKHEAD_HALF_ROUND_H
#define BULKHEAD_HALF_ROUND_H

#include "bulkhead_cuda.h"

__BH_DEVICE float __bh_odd_float(double value) {
    float cut = __double2float_rz(value);
    bool inexact = (double)cut != value && !__bh_is_nan(value);
    return __bh_float_of(__bh_bits_of(cut) | (inexact ? 1u : 0u));
}

#endif
