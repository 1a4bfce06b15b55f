/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks of a launch cost, over its bare place in the queue. Linked with the library's
 * inside, to measure that place alone: the device's lock and bh__submit, with everything packed. */
#include <stdlib.h>

#include "base/ticks.h"
#include "client/launch/launch.h"
#include "client/queue/queue.h"
#include "support/bench.h"

enum { GROUP = 16, GROUPS = 12, KINDS = 4 }; /* all kinds of a round fit a queue of 1024 */

typedef struct subject {
    bench_kernels kernels;
    bh_buffer outputs[2];
    bh__device *device;
    bh__launch packed;
    bh__submission bare;
    bh_prepared prepared;
    uint32_t number;
    bh_ticket ticket;
} subject;

static void launch_bare(subject *s) {
    bool retry;
    bh__lock_take(&s->device->lock);
    BENCH_NEED(bh__submit(s->device, &s->bare, &retry, &s->ticket));
    bh__lock_give(&s->device->lock);
}

static void launch_prepared(subject *s) {
    BENCH_NEED(bh_prepared_launch(s->prepared, NULL, 0, &s->ticket));
}

static void launch_changed(subject *s) {
    uint32_t value = s->number++;
    bh_change changes[2] = {
        {.index = 0, .arg = BH_INOUT(s->outputs[value % 2])},
        {.index = 2, .arg = bh_arg_uint(value)},
    };
    BENCH_NEED(bh_prepared_launch(s->prepared, changes, 2, &s->ticket));
}

static void launch_plain(subject *s) {
    uint32_t value = s->number++;
    BENCH_NEED(bh_launch(s->kernels.put, BH_SHAPE(1, 1, 1, 1, 1, 1),
                         BH_ARGS(BH_INOUT(s->outputs[value % 2]), value % 64, value, 7u), NULL,
                         &s->ticket));
}

static void (*const launches[KINDS])(subject *) = {launch_bare, launch_prepared, launch_changed,
                                                   launch_plain};
static const char *const names[KINDS] = {"boundary.bare_slot", "boundary.prepared",
                                         "boundary.prepared_changed", "boundary.launch"};

static void pack(subject *s) {
    static const bh_launch_options options = {.size = sizeof options};
    bh_args args = BH_ARGS(BH_INOUT(s->outputs[0]), 1u, 2u, 7u);
    s->device = bh__device_lock(s->kernels.put.id, BH__KIND_KERNEL, "kernel", true);
    if (!s->device) bench_need(BH_E_INTERNAL, "bh__device_lock");
    s->packed.device = s->device;
    s->packed.options = &options;
    bh_shape shape = BH_SHAPE(1, 1, 1, 1, 1, 1);
    BENCH_NEED(bh__launch_pack(&s->packed, s->kernels.put, &shape, args, NULL));
    bh__launch_submission(&s->packed, bh__lane_get(s->device, (bh_lane){0}), &s->bare);
    bh__device_unlock(s->device);
    BENCH_NEED(bh_prepare(s->kernels.put, BH_SHAPE(1, 1, 1, 1, 1, 1), args, NULL, &s->prepared));
}

/* The worker is busy with one long kernel and leaves the queue alone meanwhile. The kinds take
 * turns within a round, each group in another order, so that the machine's moods hit all alike. */
static void round_of(subject *s, bh_buffer stamps, bench_samples *samples) {
    BENCH_NEED(bh_launch(s->kernels.last, BH_SHAPE(1, 1, 1, 1, 1, 1),
                         BH_ARGS(BH_INOUT(stamps), 0u, (uint64_t)(3 * BENCH_MS)), NULL, NULL));
    for (int group = 0; group < GROUPS; group++) {
        for (int turn = 0; turn < KINDS; turn++) {
            int kind = (turn + group) % KINDS;
            uint64_t before = bench_now_ns();
            for (int i = 0; i < GROUP; i++) launches[kind](s);
            uint64_t after = bench_now_ns();
            if (samples) bench_samples_add(&samples[kind], (double)(after - before) / GROUP);
        }
    }
    BENCH_NEED(bh_wait(s->ticket, 30 * BENCH_S));
}

/* What bh__submit counts of a launch: the same additions, and the processor's counter read once
 * in 16. */
static double count_launches(subject *s) {
    enum { LAUNCHES = 1024, SAMPLES = 200, TIMED_EVERY = 16 };
    static bh__work_tally tally;
    static volatile uint64_t stamp;
    bench_samples samples = bench_samples_new(SAMPLES);
    for (int sample = 0; sample < SAMPLES; sample++) {
        uint64_t before = bench_now_ns();
        for (int i = 0; i < LAUNCHES; i++) {
            bh__tally_launch(&tally, &s->packed.body, 0, s->device->queue.warp_mask);
            if (i % TIMED_EVERY == 0) stamp = bh__ticks(s->device->queue.ticks_usable);
            __asm__ volatile("" ::: "memory"); /* each launch counts for itself */
        }
        bench_samples_add(&samples, (double)(bench_now_ns() - before) / LAUNCHES);
    }
    if (tally.launches != (uint64_t)LAUNCHES * SAMPLES || !stamp)
        bench_wrong("not all was counted");
    double median = bench_percentile(&samples, 50);
    bench_samples_free(&samples);
    return median;
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "boundary: what the checks of a launch with four arguments cost");
    bench_note(
        "the bare slot is the device's lock and bh__submit with everything packed; %d launches "
        "share a reading of the clock (%.0f ns)",
        GROUP, bench_clock_cost_ns());
    static subject s;
    bh_device device;
    bh_device_options options = bench_options();
    options.worker_spin_ns = options.wait_spin_ns = 10 * BENCH_S;
    BENCH_NEED(bh_device_open(&options, &device));
    s.kernels = bench_kernels_load(device);
    for (int i = 0; i < 2; i++) s.outputs[i] = bench_buffer(device, BH_U32, 64);
    bh_buffer stamps = bench_buffer(device, BH_U64, 2);
    pack(&s);
    size_t rounds = bench_count(300);
    bench_samples samples[KINDS];
    for (int i = 0; i < KINDS; i++) samples[i] = bench_samples_new(rounds * GROUPS);
    for (int i = 0; i < 5; i++) round_of(&s, stamps, NULL);
    for (size_t i = 0; i < rounds; i++) round_of(&s, stamps, samples);
    double median[KINDS];
    for (int i = 0; i < KINDS; i++) {
        median[i] = bench_percentile(&samples[i], 50);
        bench_figure(names[i], median[i], "ns");
    }
    bench_target("boundary.prepared_over_slot", median[1] - median[0], "ns", 15);
    bench_figure("boundary.prepared_changed_over_slot", median[2] - median[0], "ns");
    bench_target("boundary.checks", median[3] - median[0], "ns", 60);
    bench_target("boundary.counting", count_launches(&s), "ns", 10);
    for (int i = 0; i < KINDS; i++) bench_samples_free(&samples[i]);
    BENCH_NEED(bh_device_close(device));
    return 0;
}
