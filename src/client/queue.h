/* SPDX-License-Identifier: Apache-2.0 */
/* Walking the requests of a lane that are not finished, by their shadows. With the device locked. */
#ifndef BH_CLIENT_QUEUE_H
#define BH_CLIENT_QUEUE_H

#include "client/objects.h"

static inline bh__shadow *bh__shadow_at(bh__device *device, bh__lane *lane, uint64_t position) {
    return &lane->shadow[position & (device->front->queue_length - 1)];
}

static inline const bh__use *bh__use_at(bh__device *device, bh__lane *lane,
                                        const bh__shadow *shadow, uint32_t index) {
    return &bh__shadow_at(device, lane, shadow->start + index / BH__USES_PER_SLOT)
                ->uses[index % BH__USES_PER_SLOT];
}

/* The request that ends at `sequence`, if it is not finished; else NULL. */
bh__shadow *bh__shadow_ending(bh__device *device, bh__lane *lane, uint64_t sequence);

/* Calls `visit` for each unfinished request of all lanes, in the order they were submitted, which
 * is an order their dependencies allow. */
typedef void bh__visit_fn(void *context, bh__lane *lane, bh__shadow *shadow);
void bh__requests_walk(bh__device *device, bh__visit_fn *visit, void *context);

#endif
