/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds a double to odd in float: the last bit is set if the float is inexact. */
#ifndef BULKHEAD_HALF_ROUND_H
#define BULKHEAD_HALF_ROUND_H

#include "bulkhead_cuda.h"

__BH_DEVICE float __bh_odd_float(double value) {
    float cut = __double2float_rz(value);
    bool inexact = (double)cut != value && !__bh_is_nan(value);
    return __bh_float_of(__bh_bits_of(cut) | (inexact ? 1u : 0u));
}

#endif
