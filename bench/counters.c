/* SPDX-License-Identifier: Apache-2.0 */
/* What traces cost, a launch with and without one, and reading the counters. What counting costs is
 * in bench-boundary, which sees the library's inside. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/bench.h"

enum {
    BATCH = 896, /* the queue has 1024 places: no launch waits for room */
    GROUP = 16,  /* launches between two readings of the clock */
    WORDS = 1024
};

typedef struct bench_rig {
    bh_device device;
    bench_kernels kernels;
    bh_buffer words, stamps;
} bench_rig;

/* One batch behind a long kernel: the worker leaves the queue alone meanwhile. A sample for each
 * group. */
static void batch(const bench_rig *rig, bench_samples *samples) {
    bh_ticket ticket = {0, 0};
    BENCH_NEED(bh_launch(rig->kernels.last, BH_SHAPE(1, 1, 1, 1, 1, 1),
                         BH_ARGS(BH_INOUT(rig->stamps), 0u, (uint64_t)(2 * BENCH_MS)), NULL, NULL));
    for (uint32_t group = 0; group < BATCH / GROUP; group++) {
        uint64_t before = bench_now_ns();
        for (uint32_t i = 0; i < GROUP; i++) {
            bh_status status =
                bh_launch(rig->kernels.put, BH_SHAPE(1, 1, 1, 1, 1, 1),
                          BH_ARGS(BH_INOUT(rig->words), group, i, 0u), NULL, &ticket);
            if (status != BH_OK) bench_need(status, "bh_launch");
        }
        bench_samples_add(samples, (double)(bench_now_ns() - before) / GROUP);
    }
    BENCH_NEED(bh_wait(ticket, 30 * BENCH_S));
}

static void through(const bench_rig *rig, size_t launches, const char *name) {
    bh_ticket ticket = {0, 0};
    uint64_t before = bench_now_ns();
    for (size_t i = 0; i < launches; i++) {
        bh_status status =
            bh_launch(rig->kernels.word, BH_SHAPE(1, 1, 1, 1, 1, 1),
                      BH_ARGS(BH_INOUT(rig->words), (uint32_t)(i % WORDS)), NULL, &ticket);
        if (status != BH_OK) bench_need(status, "bh_launch");
    }
    BENCH_NEED(bh_wait(ticket, 60 * BENCH_S));
    bench_figure(name, (double)(bench_now_ns() - before) / (double)launches, "ns");
}

/* Plain and traced batches take turns, so that both meet the same machine. */
static void launches(const bench_rig *rig, size_t batches, const char *path) {
    bench_samples plain = bench_samples_new((batches + 2) * (BATCH / GROUP));
    bench_samples traced = bench_samples_new((batches + 2) * (BATCH / GROUP));
    for (int i = 0; i < 2; i++) batch(rig, &plain);
    plain.count = 0;
    for (size_t i = 0; i < batches; i++) {
        batch(rig, &plain);
        BENCH_NEED(bh_trace_start(rig->device, path));
        size_t before = traced.count;
        batch(rig, &traced); /* a lane's notes are made with its first request: not counted */
        traced.count = before;
        batch(rig, &traced);
        BENCH_NEED(bh_trace_stop(rig->device));
    }
    /* The lower end: what it costs when nobody else wants the processor. */
    double without = bench_percentile(&plain, 10), with = bench_percentile(&traced, 10);
    bench_figure("counters.launch.p10", without, "ns");
    bench_figure("counters.launch.p50", bench_percentile(&plain, 50), "ns");
    bench_figure("counters.launch_traced.p10", with, "ns");
    bench_figure("counters.launch_traced.p50", bench_percentile(&traced, 50), "ns");
    bench_target("counters.trace", with - without, "ns", 300);
    bench_samples_free(&plain);
    bench_samples_free(&traced);
}

static void reading(const bench_rig *rig, size_t count) {
    bh_device_counters counters = BH_INIT(counters);
    size_t length = 0;
    char *text = NULL;
    uint64_t before = bench_now_ns();
    for (size_t i = 0; i < count; i++) BENCH_NEED(bh_device_get_counters(rig->device, &counters));
    bench_figure("counters.read", (double)(bench_now_ns() - before) / (double)count, "ns");
    BENCH_NEED(bh_prometheus(NULL, 0, NULL, 0, &length));
    text = malloc(length + 4096);
    if (!text) bench_wrong("no memory for %zu bytes", length);
    before = bench_now_ns();
    for (size_t i = 0; i < count / 10 + 1; i++)
        BENCH_NEED(bh_prometheus(NULL, 0, text, length + 4096, &length));
    bench_figure("counters.prometheus",
                 (double)(bench_now_ns() - before) / (double)(count / 10 + 1) / 1e3, "us");
    free(text);
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "counters: what counting and tracing cost");
    size_t batches = bench_count(40);
    char path[64];
    snprintf(path, sizeof path, "/tmp/bulkhead-bench-%d.json", (int)getpid());
    bh_device_options options = bench_options();
    options.worker_spin_ns = options.wait_spin_ns = BENCH_S / 10;
    bench_rig rig;
    BENCH_NEED(bh_device_open(&options, &rig.device));
    rig.kernels = bench_kernels_load(rig.device);
    rig.words = bench_buffer(rig.device, BH_U32, WORDS);
    rig.stamps = bench_buffer(rig.device, BH_U64, 2);
    BENCH_NEED(bh_buffer_fill(rig.words, 0, WORDS * 4ull, "\0", 1));
    BENCH_NEED(bh_buffer_fill(rig.stamps, 0, 16, "\0", 1));
    launches(&rig, batches, path);
    reading(&rig, batches * 10);
    through(&rig, batches * 100, "counters.through");
    BENCH_NEED(bh_trace_start(rig.device, path));
    through(&rig, batches * 100, "counters.through_traced");
    BENCH_NEED(bh_trace_stop(rig.device));
    bh_device_counters counters = BH_INIT(counters);
    BENCH_NEED(bh_device_get_counters(rig.device, &counters));
    bench_figure("counters.trace_dropped", (double)counters.trace_dropped, "records");
    unlink(path);
    BENCH_NEED(bh_device_close(rig.device));
    return 0;
}
