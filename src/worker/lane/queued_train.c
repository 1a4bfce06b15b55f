/* SPDX-License-Identifier: Apache-2.0 */
/* Launch trains: short launches that are in the ring together are queued as one operation. */
#include "base/clock.h"
#include "wire/texture.h"
#include "worker/lane/lane_queued.h"
#include "worker/state.h"

enum {
    /* A kernel is short if queueing it takes about as long as running it, or longer. Longer kernels
     * gain nothing from a train, and their completion would be seen later. */
    SHORT_NS = 20000,
    /* A train is queued when fewer slots than this are before the device. Two trains keep the
     * device busy, and what is queued is lost with a worker. */
    MAX_SLOTS_BEFORE_TRAIN = 2 * BH__TRAIN
};

/* True for launches that a train can hold: no attributes, and small parameters, which a lane has
 * room for many of. */
static bool is_plain(const bh__launch_body *body) {
    const uint32_t attributes =
        BH_LAUNCH_COOPERATIVE | BH_LAUNCH_PRIORITY | BH_LAUNCH_PROGRAMMATIC | BH__LAUNCH_OBJECTS;
    return !(body->flags & attributes) && body->param_bytes <= BH__SMALL_PARAM_BYTES &&
           !(body->cluster[0] | body->cluster[1] | body->cluster[2]) &&
           body->cluster_policy == BH_CLUSTER_DEFAULT;
}

static bool may_share(const bh__launch_body *body) {
    return is_plain(body) && !(body->flags & BH__LAUNCH_ALONE);
}

static bool is_short(const bh__worker_lane *lane, const bh__launch_body *body) {
    return bh__kernel_times_get(&lane->queue.times, body->module, body->kernel) <= SHORT_NS;
}

/* True if lane->work need not wait for anything and may share its completion with others. */
static bool may_join(bh__worker_lane *lane) {
    const bh__worker_instance *worker = lane->worker;
    if (lane->work->op != BH__OP_LAUNCH || !may_share(&lane->work->u.launch)) return false;
    if (lane->work->timed) return false; /* it is measured alone */
    if (lane->hold > atomic_load(&worker->front->reaped)) return false;
    for (uint32_t i = 0; i < lane->dependency_count; i++) {
        const bh__dependency *on = &lane->dependencies[i];
        if (atomic_load(&worker->area->lane[on->lane].done) < on->position) return false;
    }
    /* What it depends on may have failed. */
    if (!bh__worker_lane_reread_op(lane) || lane->work->op != BH__OP_LAUNCH) return false;
    return is_short(lane, &lane->work->u.launch);
}

/* Looks ahead in the ring before anything is claimed. Dependencies are checked later: most requests
 * have none, and those that have some mostly find them complete. */
static bool others_follow(const bh__worker_lane *lane) {
    uint64_t position = lane->work->sequence;
    for (uint32_t i = 1; i < BH__TRAIN; i++) {
        const bh__request *request = bh__worker_lane_peek(lane, position);
        if (!request || request->timed || atomic_load(&request->op) != BH__OP_LAUNCH) return false;
        bh__launch_body body = request->u.launch;
        if (!may_share(&body) || !is_short(lane, &body)) return false;
        position = request->sequence;
    }
    return true;
}

bool bh__train_is_due(bh__worker_lane *lane) {
    if (!lane->worker->ops->enqueue_train || !may_join(lane)) return false;
    if (lane->known_tail - lane->work->sequence < BH__TRAIN - 1)
        lane->known_tail = atomic_load_explicit(&lane->front->tail, memory_order_acquire);
    return lane->known_tail - lane->work->sequence >= BH__TRAIN - 1 && others_follow(lane);
}

/* Publishes which requests will complete together, before any of them can. */
static void write_groups(bh__worker_lane *lane, uint64_t begin) {
    for (uint32_t i = BH__GROUP_LENGTH - 1; i < BH__TRAIN; i += BH__GROUP_LENGTH) {
        bh__group *group = &lane->area->groups[lane->queue.group_count++ % BH__GROUPS];
        uint64_t end = lane->works[i].sequence;
        atomic_store(&group->end, end);
        atomic_store(&group->begin, begin);
        begin = end;
    }
}

static bool send_as_one(bh__worker_lane *lane, bool *out_sent) {
    bh_error error;
    if (!bh__queued_wait_below(lane, MAX_SLOTS_BEFORE_TRAIN)) return false;
    uint64_t now = bh__now_ns(), last = lane->works[BH__TRAIN - 1].sequence;
    for (uint32_t i = 0; i < BH__TRAIN; i++) bh__meter_begin(&lane->meter, &lane->works[i], false);
    write_groups(lane, bh__queued_end(lane));
    bool ranged = bh__range_begin(lane, lane->works, BH__TRAIN);
    bh__queued_set_handing(lane, lane->works);
    bh_status status =
        lane->worker->ops->enqueue_train(lane->context, lane->works, BH__TRAIN, &error);
    bh__queued_set_handing(lane, NULL);
    bh__range_end(ranged);
    *out_sent = status == BH_OK;
    if (status == BH_E_UNSUPPORTED) {
        for (uint32_t i = 0; i < BH__TRAIN / BH__GROUP_LENGTH; i++)
            atomic_store(&lane->area->groups[--lane->queue.group_count % BH__GROUPS].begin,
                         BH__NEVER);
        return true;
    }
    if (status != BH_OK) return status != BH_E_STOPPED && bh__queued_fault(lane, &error);
    for (uint32_t i = 0; i < BH__TRAIN; i++) {
        bh__kernel_times_queued(&lane->queue.times, &lane->works[i], now);
        bh__meter_note(&lane->meter, &lane->works[i]);
    }
    bh__meter_train(&lane->meter, BH__TRAIN);
    lane->queue.active_ns = now;
    bh__queued_publish(lane, last);
    return bh__waker_after_work(lane, lane->works, BH__TRAIN);
}

bh_status bh__train_send_single(bh__worker_lane *lane, bh_error *error) {
    const bh__device_ops *ops = lane->worker->ops;
    const bh__work *work = lane->work;
    bool plain = work->op == BH__OP_LAUNCH && is_plain(&work->u.launch);
    bool idle = bh__queued_end(lane) == lane->known_done;
    if (!ops->enqueue_train || !plain || !idle || work->timed) return BH_E_UNSUPPORTED;
    return ops->enqueue_train(lane->context, work, 1, error);
}

static bool send_one_by_one(bh__worker_lane *lane, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        lane->work = &lane->works[i];
        if (!bh__queued_send(lane)) return false;
    }
    return true;
}

bool bh__train_take_and_send(bh__worker_lane *lane) {
    uint32_t count = 1;
    bool joined = true, sent = false, running = true;
    while (joined && count < BH__TRAIN) {
        lane->work = &lane->works[count];
        if (!bh__queued_take(lane)) return false;
        joined = may_join(lane);
        count += joined;
    }
    if (joined) running = send_as_one(lane, &sent);
    if (running && !sent) running = send_one_by_one(lane, count);
    /* The one that could not join is queued alone; lane->hold and lane->dependencies are its own.
     */
    if (running && !joined) {
        lane->work = &lane->works[count];
        running = bh__queued_wait_and_send(lane);
    }
    if (lane->work != lane->works) lane->work = lane->works;
    return running;
}
