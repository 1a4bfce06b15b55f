/* SPDX-License-Identifier: Apache-2.0 */
/* Launch trains: short launches that wait together go to the device as one. */
#include "base/clock.h"
#include "worker/state.h"

/* A kernel is short if sending it takes longer than running it, or nearly so. Others gain nothing,
 * and those who wait for them would learn of their end later than they could. */
enum { SHORT_NS = 20000 };
/* Slots queued before a train leaves: two trains and more keep the device busy, and what is queued is
 * lost with a worker. */
enum { MOST_AHEAD = 2 * BH__TRAIN };

/* What a lane keeps parameters of many launches for. */
static bool is_plain(const bh__launch_body *body) {
    const uint32_t attributes = BH_LAUNCH_COOPERATIVE | BH_LAUNCH_PRIORITY | BH_LAUNCH_PROGRAMMATIC;
    return !(body->flags & attributes) && body->param_bytes <= BH__SMALL_PARAM_BYTES &&
           !(body->cluster[0] | body->cluster[1] | body->cluster[2]) &&
           body->cluster_policy == BH_CLUSTER_DEFAULT;
}

static bool may_share(const bh__launch_body *body) {
    return is_plain(body) && !(body->flags & BH__LAUNCH_ALONE);
}

static bool is_short(const bh__lane *lane, const bh__launch_body *body) {
    return bh__pace_of(&lane->pace, body->module, body->kernel) <= SHORT_NS;
}

/* Whether the request in lane->work waits for nothing and may share its completion with others. */
static bool may_join(bh__lane *lane) {
    const bh__worker *worker = lane->worker;
    if (lane->work->op != BH__OP_LAUNCH || !may_share(&lane->work->u.launch)) return false;
    if (lane->hold > atomic_load(&worker->front->reaped)) return false;
    for (uint32_t i = 0; i < lane->dependency_count; i++) {
        const bh__dependency *on = &lane->dependencies[i];
        if (atomic_load(&worker->area->lane[on->lane].done) < on->position) return false;
    }
    /* What it waited for may have failed. */
    if (!bh__serve_lane_op_again(lane) || lane->work->op != BH__OP_LAUNCH) return false;
    return is_short(lane, &lane->work->u.launch);
}

/* A look ahead, before anything is claimed. Dependencies are left for later: most have none, and
 * those that have them mostly see them done. */
static bool others_wait(const bh__lane *lane) {
    uint64_t position = lane->work->sequence;
    for (uint32_t i = 1; i < BH__TRAIN; i++) {
        const bh__request *request = bh__serve_lane_peek(lane, position);
        if (!request || atomic_load(&request->op) != BH__OP_LAUNCH) return false;
        bh__launch_body body = request->u.launch;
        if (!may_share(&body) || !is_short(lane, &body)) return false;
        position = request->sequence;
    }
    return true;
}

bool bh__train_is_due(bh__lane *lane) {
    if (!lane->worker->ops->train || !may_join(lane)) return false;
    if (lane->known_tail - lane->work->sequence < BH__TRAIN - 1)
        lane->known_tail = atomic_load_explicit(&lane->front->tail, memory_order_acquire);
    return lane->known_tail - lane->work->sequence >= BH__TRAIN - 1 && others_wait(lane);
}

/* Says which requests will be known to be done together, before any of them can be. */
static void write_groups(bh__lane *lane, uint64_t begin) {
    for (uint32_t i = BH__GROUP_LENGTH - 1; i < BH__TRAIN; i += BH__GROUP_LENGTH) {
        bh__group *group = &lane->area->groups[lane->group_count++ % BH__GROUPS];
        uint64_t end = lane->works[i].sequence;
        atomic_store(&group->end, end);
        atomic_store(&group->begin, begin);
        begin = end;
    }
}

static bool send_as_one(bh__lane *lane, bool *out_sent) {
    bh_error error;
    if (!bh__queue_wait_for_few(lane, MOST_AHEAD)) return false;
    uint64_t now = bh__now_ns(), last = lane->works[BH__TRAIN - 1].sequence;
    for (uint32_t i = 0; i < BH__TRAIN; i++) bh__meter_begin(&lane->meter, &lane->works[i], false);
    write_groups(lane, atomic_load_explicit(&lane->queued, memory_order_relaxed));
    bool ranged = bh__range_begin(lane, lane->works, BH__TRAIN);
    bh__queue_handing(lane, lane->works);
    bh_status status = lane->worker->ops->train(lane->context, lane->works, BH__TRAIN, &error);
    bh__queue_handing(lane, NULL);
    bh__range_end(ranged);
    *out_sent = status == BH_OK;
    if (status == BH_E_UNSUPPORTED) {
        for (uint32_t i = 0; i < BH__TRAIN / BH__GROUP_LENGTH; i++)
            atomic_store(&lane->area->groups[--lane->group_count % BH__GROUPS].begin, BH__NEVER);
        return true;
    }
    if (status != BH_OK) return status != BH_E_STOPPED && bh__queue_lost(lane, &error);
    for (uint32_t i = 0; i < BH__TRAIN; i++) {
        bh__pace_note(&lane->pace, &lane->works[i], now);
        bh__meter_note(&lane->meter, &lane->works[i]);
    }
    bh__meter_train(&lane->meter, BH__TRAIN);
    lane->stirred_ns = now;
    bh__queue_announce(lane, last);
    return bh__bell_after(lane, lane->works, BH__TRAIN);
}

bh_status bh__train_one(bh__lane *lane, bh_error *error) {
    const bh__device_ops *ops = lane->worker->ops;
    const bh__work *work = lane->work;
    bool plain = work->op == BH__OP_LAUNCH && is_plain(&work->u.launch);
    bool dry = atomic_load_explicit(&lane->queued, memory_order_relaxed) == lane->told;
    if (!ops->train || !plain || !dry) return BH_E_UNSUPPORTED;
    return ops->train(lane->context, work, 1, error);
}

static bool send_one_by_one(bh__lane *lane, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        lane->work = &lane->works[i];
        if (!bh__queue_one(lane)) return false;
    }
    return true;
}

bool bh__train_perform(bh__lane *lane) {
    uint32_t count = 1;
    bool joined = true, sent = false, goes_on = true;
    while (joined && count < BH__TRAIN) {
        lane->work = &lane->works[count];
        if (!bh__serve_lane_take(lane)) return false;
        joined = may_join(lane);
        count += joined;
    }
    if (joined) goes_on = send_as_one(lane, &sent);
    if (goes_on && !sent) goes_on = send_one_by_one(lane, count);
    /* The one that did not join is where it was, and so is what it waits for. */
    if (goes_on && !joined) {
        lane->work = &lane->works[count];
        goes_on = bh__queue_wait_and_send(lane);
    }
    if (lane->work != lane->works) lane->work = lane->works;
    return goes_on;
}
