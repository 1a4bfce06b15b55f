/* SPDX-License-Identifier: Apache-2.0 */
/* Doubt spreads: a queued request that would read bytes in doubt fails with BH_E_STALE, and what it
 * would have written is in doubt too. All functions are called with the device locked. */
#include "client/core/hooks.h"
#include "client/queue/doubt.h"
#include "client/queue/queue.h"
#include "client/queue/resolve.h"
#include "client/queue/walk.h"

bool bh__request_reads_doubt(bh__device *device, bh__lane *lane, const bh__shadow *shadow) {
    for (uint32_t i = 0; i < shadow->use_count; i++) {
        const bh__use *use = bh__use_at(device, lane, shadow, i);
        if ((use->access & BH_ACCESS_IN) &&
            bh__doubt_reads(device, use->memory, use->offset, use->bytes, shadow->stamp))
            return true;
    }
    return false;
}

typedef struct cascade {
    bh__device *device;
    bool any;
} cascade;

static void resolve_stale(void *context, bh__lane *lane, bh__shadow *shadow) {
    cascade *self = context;
    bh__device *device = self->device;
    if (shadow->resolved || !bh__request_reads_doubt(device, lane, shadow)) return;
    bh__request_fail(device, lane, shadow, &(bh__failure){.status = BH_E_STALE, .certain = 1},
                     true);
    self->any |= shadow->resolved;
    device->counters.stale_refusals += shadow->resolved;
}

/* One pass in the order of submission is enough, unless a later piece of a call fails and its
 * earlier pieces with it. Then another pass is needed. */
void bh__dependents_resolve(bh__device *device) {
    cascade self = {device, true};
    while (device->queue.doubted && self.any) {
        self.any = false;
        bh__requests_walk(device, resolve_stale, &self);
    }
    if (device->managed.list) bh__hooks.resolved(device);
}
