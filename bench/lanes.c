/* SPDX-License-Identifier: Apache-2.0 */
/* Many lanes on few processors: launches in turn on few and on many lanes, and one buffer handed
 * from lane to lane. */
#include <stdio.h>

#include "support/bench.h"

enum { MANY = 62, FEW = 4, ROUNDS = 5 };

typedef struct rig {
    bh_device device;
    bench_kernels kernels;
    bh_lane lanes[MANY];
    bh_buffer words[MANY];
} rig;

static void launch(const rig *r, uint32_t lane, bh_buffer words, uint32_t index,
                   bh_ticket *ticket) {
    bh_launch_options options = BH_INIT(options);
    options.lane = r->lanes[lane];
    bench_need(bh_launch(r->kernels.word, BH_SHAPE(1, 1, 1, 1, 1, 1),
                         BH_ARGS(BH_INOUT(words), index), &options, ticket),
               "bh_launch");
}

static void check(bh_buffer words, uint32_t count) {
    static uint32_t host[4096];
    BENCH_NEED(bh_buffer_read(words, 0, host, count * sizeof *host));
    for (uint32_t i = 0; i < count; i++) {
        if (host[i] != i + 1) bench_wrong("word %u is %u", i, host[i]);
    }
}

/* Thousands of launches a second, each on the next lane and on a buffer of that lane. */
static double rate(const rig *r, uint32_t lanes, uint32_t count) {
    bh_ticket last[MANY];
    uint64_t began = bench_now_ns();
    for (uint32_t i = 0; i < count; i++)
        launch(r, i % lanes, r->words[i % lanes], i / lanes % 4096, &last[i % lanes]);
    for (uint32_t i = 0; i < lanes; i++) BENCH_NEED(bh_wait(last[i], 60 * BENCH_S));
    return (double)count * 1e6 / (double)(bench_now_ns() - began);
}

/* Microseconds from one launch to the next on another lane, which waits for it on the device. */
static double hop(const rig *r, uint32_t lanes, uint32_t count) {
    bh_ticket last[MANY];
    uint64_t began = bench_now_ns();
    for (uint32_t i = 0; i < count; i++)
        launch(r, i % lanes, r->words[0], i % 4096, &last[i % lanes]);
    for (uint32_t i = 0; i < lanes; i++) BENCH_NEED(bh_wait(last[i], 60 * BENCH_S));
    return (double)(bench_now_ns() - began) / 1e3 / count;
}

static double median(double (*measure)(const rig *, uint32_t, uint32_t), const rig *r,
                     uint32_t lanes, uint32_t count) {
    bench_samples samples = bench_samples_new(ROUNDS);
    for (int i = 0; i < ROUNDS; i++) bench_samples_add(&samples, measure(r, lanes, count));
    double value = bench_percentile(&samples, 50);
    bench_samples_free(&samples);
    return value;
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "lanes: launches on many lanes, and a buffer handed from lane to lane");
    static rig r;
    bh_device_options options = bench_options();
    BENCH_NEED(bh_device_open(&options, &r.device));
    r.kernels = bench_kernels_load(r.device);
    for (int i = 0; i < MANY; i++) {
        BENCH_NEED(bh_lane_open(r.device, NULL, &r.lanes[i]));
        r.words[i] = bench_buffer(r.device, BH_U32, 4096);
    }
    uint32_t count = (uint32_t)bench_count(100000);
    double few = median(rate, &r, FEW, count), many = median(rate, &r, MANY, count);
    bench_figure("lanes.launches_4", few, "k/s");
    bench_figure("lanes.launches_62", many, "k/s");
    bench_target_least("lanes.many_to_few", many / few, "ratio", 0.5);
    for (uint32_t i = 0; i < FEW; i++) check(r.words[i], 4096);
    static const uint32_t chains[] = {2, 4, 16, MANY};
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        char name[32];
        snprintf(name, sizeof name, "lanes.hop_%u", chains[i]);
        double us = median(hop, &r, chains[i], count / 10);
        if (i < 2)
            bench_cpu_target(name, us, "us", 5);
        else
            bench_figure(name, us, "us");
    }
    check(r.words[0], 4096);
    BENCH_NEED(bh_device_close(r.device));
    return 0;
}
