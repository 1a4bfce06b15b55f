/* SPDX-License-Identifier: Apache-2.0 */
/* Replays of sequences on queued lanes: as one operation where the device can, else step by step.
 */
#include "worker/lane/lane_queued.h"
#include "worker/state.h"

enum {
    /* Replays in the device's queue. With many of them the driver makes every caller wait until the
     * first has begun, including other lanes. */
    MAX_REPLAYS_QUEUED = 4,
    /* Steps that are queued one by one between two writes of the `pulse` word. */
    STEPS_PER_PULSE = 64,
    MAX_PULSES_QUEUED = 2
};

static bh_status enqueue_step_word(bh__worker_lane *lane, uint32_t done, bh_error *error) {
    uint64_t word = bh__step_word(done, BH__STEP_GROUP);
    return lane->worker->ops->enqueue_word(lane->context, offsetof(bh__lane_area, step), word,
                                           error);
}

/* Counts a part of a long request, and waits until the device has fewer than `limit` parts left. */
static bh_status enqueue_pulse(bh__worker_lane *lane, uint64_t limit, bh_error *error) {
    bh_status status = lane->worker->ops->enqueue_word(
        lane->context, offsetof(bh__lane_area, pulse), ++lane->queue.pulses, error);
    if (status != BH_OK) return status;
    return bh__queued_wait_for_pulse(lane, limit) ? BH_OK : BH_E_STOPPED;
}

static bh_status queue_steps(bh__worker_lane *lane, bh_error *error) {
    const bh__sequence_image *image = &lane->image;
    bh_status status = enqueue_step_word(lane, 0, error);
    for (uint32_t i = 0; i < image->step_count && status == BH_OK; i++) {
        bh__work work = bh__sequence_work(image, i, lane->work);
        bool ranged = bh__range_begin_step(lane, i, &work);
        if (work.op != BH__OP_SKIP)
            status = lane->worker->ops->enqueue(lane->context, &work, error);
        bh__range_end(ranged);
        if (status == BH_E_BUSY) status = bh__queued_flush_print(lane) ? BH_OK : BH_E_STOPPED;
        if (status != BH_OK && status != BH_E_FAULT && status != BH_E_STOPPED)
            bh__worker_sequence_name_step(lane, i, error);
        if (status == BH_OK && (i + 1) % BH__STEP_GROUP == 0)
            status = enqueue_step_word(lane, i + 1, error);
        if (status == BH_OK && (i + 1) % STEPS_PER_PULSE == 0)
            status = enqueue_pulse(lane, MAX_PULSES_QUEUED, error);
    }
    if (status == BH_OK) return enqueue_step_word(lane, 0, error);
    bh_error ignored; /* the next replay begins at its first step */
    if (status != BH_E_FAULT && status != BH_E_STOPPED) (void)enqueue_step_word(lane, 0, &ignored);
    return status;
}

bh_status bh__queued_sequence_send(bh__worker_lane *lane, bh_error *error) {
    const bh__device_ops *ops = lane->worker->ops;
    uint32_t repeat = lane->work->u.sequence.repeat;
    uint64_t slots = lane->work->sequence - bh__queued_end(lane);
    if (!bh__queued_wait_below(lane, (uint32_t)slots * MAX_REPLAYS_QUEUED)) return BH_E_STOPPED;
    bool prints = false;
    for (uint32_t replay = 0; replay < repeat; replay++) {
        if (bh__worker_is_killed(lane->worker)) return BH_E_STOPPED;
        bh_status status = BH_E_UNSUPPORTED;
        if (ops->enqueue_sequence)
            status =
                ops->enqueue_sequence(lane->context, lane->work, &lane->image, lane->made, error);
        if (status == BH_E_UNSUPPORTED) status = queue_steps(lane, error);
        prints |= status == BH_E_BUSY;
        if (status == BH_E_BUSY) status = BH_OK;
        if (status == BH_OK && repeat > 1) status = enqueue_pulse(lane, MAX_REPLAYS_QUEUED, error);
        if (status != BH_OK) return status;
    }
    return prints ? BH_E_BUSY : BH_OK;
}
