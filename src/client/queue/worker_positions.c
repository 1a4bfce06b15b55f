/* SPDX-License-Identifier: Apache-2.0 */
/* How far the worker says that it is: the words `done` and `claim` of its lanes, which a faulty
 * worker may set to anything. */
#include "client/core/hooks.h"
#include "client/jobs/jobs.h"
#include "client/queue/doubt.h"
#include "client/queue/queue.h"
#include "client/queue/walk.h"

BH__COLD void bh__worker_distrust(bh__device *device) {
    if (!atomic_exchange(&device->queue.distrusted, true)) bh__supervisor_poke(device);
}

void bh__lane_retire(bh__device *device, bh__lane *lane, uint64_t position) {
    if (device->queue.doubted) bh__doubt_completed(device, lane, lane->retired, position);
    lane->retired = position;
}

uint64_t bh__lane_done(bh__device *device, bh__lane *lane) {
    if (device->queue.frozen || !lane->exists) return lane->floor;
    uint64_t done = atomic_load(&bh__lane_words(device, lane)->done);
    if (done == lane->retired) return done;
    uint64_t tail = atomic_load_explicit(&lane->tail, memory_order_relaxed);
    /* A faulty worker may write any value. `done` never exceeds the tail, never decreases, and is
     * always at the boundary of a request. */
    if (done > tail || done < lane->retired ||
        (done != tail && bh__shadow_at(device, lane, done)->start != done)) {
        bh__worker_distrust(device);
        return lane->retired;
    }
    bh__lane_retire(device, lane, done);
    return done;
}

uint64_t bh__lane_taken(bh__device *device, bh__lane *lane, uint64_t claim) {
    uint64_t position = bh__claim_position(claim);
    if (position >= lane->claimed && position <= atomic_load(&lane->tail))
        return lane->claimed = position;
    bh__worker_distrust(device);
    return atomic_load(&lane->tail);
}
