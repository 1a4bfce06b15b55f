/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence of short kernels replayed, beside the same kernels launched one by one; on a GPU also
 * beside a hand-written graph and plain cuLaunchKernel, in turns. */
#include "support/bench.h"
#include "support/peer.h"

enum { STEPS = 200, REPLAYS = 50, WARM = 5 };
#define PATIENCE_NS (60 * BENCH_S)

typedef struct sequence_bench {
    bh_device device;
    bench_kernels kernels;
    bh_buffer out;
    bh_sequence sequence;
    uint32_t seed;
    uint32_t place; /* the first word that is written */
} sequence_bench;

static uint32_t value_of(const sequence_bench *self, uint32_t replay, uint32_t step) {
    return (replay * STEPS + step) * 2654435761u + self->seed;
}

static void check(const sequence_bench *self, uint32_t replay) {
    uint32_t words[STEPS];
    BENCH_NEED(
        bh_buffer_read(self->out, (uint64_t)self->place * sizeof *words, words, sizeof words));
    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t expected = value_of(self, replay, i) ^ i;
        if (words[i] != expected) bench_wrong("step %u left 0x%x, not 0x%x", i, words[i], expected);
    }
}

static void set_all(const sequence_bench *self, uint32_t replay) {
    for (uint32_t i = 0; i < STEPS; i++) {
        bh_status status = bh_sequence_set(self->sequence, i, 2, BH_ARG(value_of(self, replay, i)));
        if (status != BH_OK) bench_need(status, "bh_sequence_set");
    }
}

static void go_to_place(sequence_bench *self, size_t round) {
    self->place = (uint32_t)(round % BENCH_PLACES) * BENCH_PLACE_WORDS;
    for (uint32_t i = 0; i < STEPS; i++)
        BENCH_NEED(bh_sequence_set(self->sequence, i, 1, BH_ARG(self->place + i)));
}

static void record(sequence_bench *self) {
    BENCH_NEED(bh_sequence_begin(self->device, NULL, &self->sequence));
    for (uint32_t i = 0; i < STEPS; i++)
        BENCH_NEED(bh_sequence_launch(self->sequence, self->kernels.put, BH_SHAPE(1, 1, 1, 1, 1, 1),
                                      BH_ARGS(BH_INOUT(self->out), i, 0u, i), NULL, NULL));
    BENCH_NEED(bh_sequence_finish(self->sequence));
}

/* Microseconds for each kernel, through to done. */
static double replay_all(sequence_bench *self, bool set_each, bool at_once) {
    bh_submit_options options = BH_INIT(options);
    bh_ticket last = {0, 0};
    uint64_t began = 0;
    uint32_t replays = WARM + REPLAYS;
    self->seed++;
    set_all(self, 0);
    for (uint32_t replay = 0; replay < replays; replay++) {
        if (replay == WARM) {
            BENCH_NEED(bh_wait(last, PATIENCE_NS));
            began = bench_now_ns();
            if (at_once) options.repeat = REPLAYS;
        }
        if (set_each) set_all(self, replay);
        bh_status status = bh_sequence_submit(self->sequence, &options, &last);
        if (status != BH_OK) bench_need(status, "bh_sequence_submit");
        if (options.repeat) break;
    }
    BENCH_NEED(bh_wait(last, PATIENCE_NS));
    double took = (double)(bench_now_ns() - began);
    check(self, set_each ? replays - 1 : 0);
    return took / REPLAYS / STEPS / 1e3;
}

static double launch_all(sequence_bench *self) {
    bh_ticket last = {0, 0};
    self->seed++;
    uint64_t began = bench_now_ns();
    for (uint32_t replay = 0; replay < REPLAYS; replay++) {
        for (uint32_t i = 0; i < STEPS; i++) {
            bh_status status = bh_launch(
                self->kernels.put, BH_SHAPE(1, 1, 1, 1, 1, 1),
                BH_ARGS(BH_INOUT(self->out), self->place + i, value_of(self, replay, i), i), NULL,
                &last);
            if (status != BH_OK) bench_need(status, "bh_launch");
        }
    }
    BENCH_NEED(bh_wait(last, PATIENCE_NS));
    double took = (double)(bench_now_ns() - began);
    check(self, REPLAYS - 1);
    return took / REPLAYS / STEPS / 1e3;
}

/* What a submission costs its caller, the lane having nothing to do. */
static double submit_one(sequence_bench *self) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < REPLAYS; i++) {
        bh_ticket ticket;
        uint64_t began = bench_now_ns();
        bh_status status = bh_sequence_submit(self->sequence, NULL, &ticket);
        total += bench_now_ns() - began;
        if (status != BH_OK) bench_need(status, "bh_sequence_submit");
        BENCH_NEED(bh_wait(ticket, PATIENCE_NS));
    }
    return (double)total / REPLAYS;
}

enum { REPLAY, REPLAY_SET, REPEAT, PLAIN, SUBMIT, GRAPH, GRAPH_SET, DRIVER, FIGURES };

static void measure(sequence_bench *self, bench_peer *driver, double values[FIGURES]) {
    values[REPLAY] = replay_all(self, false, false);
    if (driver) values[GRAPH] = bench_peer_measure(driver, "graph_replay");
    values[REPLAY_SET] = replay_all(self, true, false);
    if (driver) values[GRAPH_SET] = bench_peer_measure(driver, "graph_replay_set");
    values[REPEAT] = replay_all(self, false, true);
    values[PLAIN] = launch_all(self);
    if (driver) values[DRIVER] = 1e3 / bench_peer_measure(driver, "launches");
    values[SUBMIT] = submit_one(self);
}

int main(int argc, char **argv) {
    bench_begin(argc, argv,
                "sequence: each of 200 kernels in a row, replayed | launched one by one; medians");
    size_t rounds = bench_count(BENCH_PLACES);
    sequence_bench self = {.seed = 1};
    bh_device_options options = bench_options();
    options.wait_spin_ns = BENCH_S; /* as cuStreamSynchronize waits: awake */
    BENCH_NEED(bh_device_open(&options, &self.device));
    bench_peer peer;
    bool compared = !bench_device_is_cpu(self.device) &&
                    bench_peer_start(&peer, "driver-baseline", bench_device_name());
    self.kernels = bench_kernels_load(self.device);
    self.out = bench_buffer(self.device, BH_U32, (uint64_t)BENCH_PLACES * BENCH_PLACE_WORDS);
    record(&self);
    bh_device_wait_standby(self.device, 10 * BENCH_S); /* its boot is not to disturb what follows */
    bench_samples samples[FIGURES];
    for (int i = 0; i < FIGURES; i++) samples[i] = bench_samples_new(rounds);
    for (size_t round = 0; round <= rounds; round++) {
        double values[FIGURES] = {0};
        go_to_place(&self, round);
        measure(&self, compared ? &peer : NULL, values);
        for (int i = 0; i < FIGURES && round > 0; i++) bench_samples_add(&samples[i], values[i]);
    }
    double at[FIGURES];
    for (int i = 0; i < FIGURES; i++) at[i] = bench_percentile(&samples[i], 50);
    bench_figure("sequence.submit", at[SUBMIT], "ns");
    bench_figure("sequence.replay", at[REPLAY], "us");
    bench_figure("sequence.replay_set", at[REPLAY_SET], "us");
    bench_figure("sequence.repeat", at[REPEAT], "us");
    bench_figure("sequence.launches", at[PLAIN], "us");
    if (compared) {
        bench_figure("sequence.replay.driver", at[GRAPH], "us");
        bench_figure("sequence.replay_set.driver", at[GRAPH_SET], "us");
        bench_figure("sequence.launches.driver", at[DRIVER], "us");
        bench_target("sequence.replay.ratio", at[REPLAY] / at[GRAPH], "ratio", 1.1);
        bench_figure("sequence.replay_set.ratio", at[REPLAY_SET] / at[GRAPH_SET], "ratio");
        bench_target_least("sequence.faster_than_launches", at[DRIVER] / at[REPLAY], "ratio", 3);
        bench_peer_end(&peer);
    } else {
        bench_figure("sequence.faster_than_launches", at[PLAIN] / at[REPLAY], "ratio");
    }
    for (int i = 0; i < FIGURES; i++) bench_samples_free(&samples[i]);
    BENCH_NEED(bh_device_close(self.device));
    return 0;
}
