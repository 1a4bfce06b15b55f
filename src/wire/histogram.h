/* SPDX-License-Identifier: Apache-2.0 */
/* The bucket of a bh_histogram that a time belongs to. */
#ifndef BH_WIRE_HISTOGRAM_H
#define BH_WIRE_HISTOGRAM_H

#include <stdint.h>

#include "bulkhead.h"

/* Bucket i counts times of up to 256 << i ns, the last one all longer times. */
static inline uint32_t bh__histogram_bucket(uint64_t ns) {
    uint64_t rest = ns ? (ns - 1) >> 8 : 0;
    uint32_t bucket = rest ? 64 - (uint32_t)__builtin_clzll(rest) : 0;
    return bucket < BH_HISTOGRAM_BUCKETS ? bucket : BH_HISTOGRAM_BUCKETS - 1;
}

#endif
