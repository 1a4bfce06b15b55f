/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges round what a lane sends to its device, or runs on it, named for people. */
#ifndef BH_WORKER_RANGE_H
#define BH_WORKER_RANGE_H

#include "worker/nvtx.h"
#include "worker/worker.h"

typedef struct bh__lane bh__lane;

/* The control thread's: what the kernels of a module that was loaded are called. */
void bh__range_learn(bh__worker *worker, uint32_t module, int blob);
void bh__range_forget(bh__worker *worker, uint32_t module);
void bh__range_free(bh__worker *worker);

/* The lane's thread. */
void bh__range_name_lane(const bh__lane *lane);
void bh__range_push(const bh__lane *lane, const bh__work *works, uint32_t count);
void bh__range_push_step(const bh__lane *lane, uint32_t step, const bh__work *work);

/* Of one request, or of a train. Returns whether there is a range to end. */
static inline bool bh__range_begin(const bh__lane *lane, const bh__work *works, uint32_t count) {
    if (!bh__nvtx_listens || works->op == BH__OP_SKIP) return false;
    bh__range_push(lane, works, count);
    return true;
}

/* Of one step of the sequence in lane->image, where steps are sent one by one. */
static inline bool bh__range_begin_step(const bh__lane *lane, uint32_t step, const bh__work *work) {
    if (!bh__nvtx_listens) return false;
    bh__range_push_step(lane, step, work);
    return true;
}

static inline void bh__range_end(bool begun) {
    if (begun) bh__nvtx_pop();
}

#endif
