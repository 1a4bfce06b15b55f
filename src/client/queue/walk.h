/* SPDX-License-Identifier: Apache-2.0 */
/* Iterates over the requests in flight by their shadows. Called with the device locked. */
#ifndef BH_CLIENT_QUEUE_WALK_H
#define BH_CLIENT_QUEUE_WALK_H

#include "client/core/device.h"

static inline bh__shadow *bh__shadow_at(bh__device *device, bh__lane *lane, uint64_t position) {
    return &lane->shadow[position & (device->queue.length - 1)];
}

static inline const bh__use *bh__use_at(bh__device *device, bh__lane *lane,
                                        const bh__shadow *shadow, uint32_t index) {
    return &bh__shadow_at(device, lane, shadow->start + index / BH__USES_PER_SLOT)
                ->uses[index % BH__USES_PER_SLOT];
}

/* Returns the request that ends at `sequence` if it is in flight, else NULL. */
bh__shadow *bh__shadow_ending(bh__device *device, bh__lane *lane, uint64_t sequence);

/* Calls `visit` for each request in flight of all lanes, in the order of submission. A request
 * comes after all requests it depends on. */
typedef void bh__visit_fn(void *context, bh__lane *lane, bh__shadow *shadow);
void bh__requests_walk(bh__device *device, bh__visit_fn *visit, void *context);

#endif
