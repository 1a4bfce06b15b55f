/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX ranges around what a lane queues or runs on its device, with readable names. */
#ifndef BH_WORKER_LANE_NVTX_RANGE_H
#define BH_WORKER_LANE_NVTX_RANGE_H

#include "worker/lane/nvtx.h"
#include "worker/worker.h"

typedef struct bh__worker_lane bh__worker_lane;

/* Control thread: remember and forget the kernel names of a loaded module. */
void bh__range_learn(bh__worker_instance *worker, uint32_t module, int blob);
void bh__range_forget(bh__worker_instance *worker, uint32_t module);
void bh__range_free(bh__worker_instance *worker);

/* The lane's thread. */
void bh__range_name_lane(const bh__worker_lane *lane);
void bh__range_push(const bh__worker_lane *lane, const bh__work *works, uint32_t count);
void bh__range_push_step(const bh__worker_lane *lane, uint32_t step, const bh__work *work);

/* Begins the range of one request, or of a train. True: there is a range to end. */
static inline bool bh__range_begin(const bh__worker_lane *lane, const bh__work *works,
                                   uint32_t count) {
    if (!bh__nvtx_listens || works->op == BH__OP_SKIP) return false;
    bh__range_push(lane, works, count);
    return true;
}

/* Begins the range of one step of the sequence in lane->image, where steps go one by one. */
static inline bool bh__range_begin_step(const bh__worker_lane *lane, uint32_t step,
                                        const bh__work *work) {
    if (!bh__nvtx_listens) return false;
    bh__range_push_step(lane, step, work);
    return true;
}

static inline void bh__range_end(bool begun) {
    if (begun) bh__nvtx_pop();
}

#endif
