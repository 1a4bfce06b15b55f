/* SPDX-License-Identifier: Apache-2.0 */
/* Allocating and freeing device memory, beside malloc in the same run. */
#include <stdlib.h>

#include "support/bench.h"

enum { BYTES = 4096, GROUP = 64, HELD = 256 };

/* One buffer at a time. */
static void pairs(bh_device device, size_t groups, bench_samples *samples) {
    for (size_t group = 0; group < groups; group++) {
        uint64_t before = bench_now_ns();
        for (int i = 0; i < GROUP; i++) {
            bh_buffer buffer;
            bh_status status = bh_buffer_alloc(device, BH_U8, BYTES, NULL, &buffer);
            if (status == BH_OK) status = bh_buffer_release(buffer);
            if (status != BH_OK) bench_need(status, "bh_buffer_alloc, bh_buffer_release");
        }
        bench_samples_add(samples, (double)(bench_now_ns() - before) / GROUP);
    }
}

static int compare(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void check_apart(const bh_buffer *buffers, size_t count) {
    uint64_t addresses[HELD];
    for (size_t i = 0; i < count; i++) {
        bh_buffer_info info = BH_INIT(info);
        BENCH_NEED(bh_buffer_get_info(buffers[i], &info));
        addresses[i] = info.address;
    }
    qsort(addresses, count, sizeof *addresses, compare);
    for (size_t i = 1; i < count; i++) {
        if (addresses[i] - addresses[i - 1] < BYTES) bench_wrong("two buffers overlap");
    }
}

/* Many buffers at once, freed in the order they came. */
static void batches(bh_device device, size_t rounds, bench_samples *samples) {
    for (size_t round = 0; round < rounds; round++) {
        bh_buffer buffers[HELD];
        uint64_t before = bench_now_ns();
        for (int i = 0; i < HELD; i++) {
            bh_status status = bh_buffer_alloc(device, BH_U8, BYTES, NULL, &buffers[i]);
            if (status != BH_OK) bench_need(status, "bh_buffer_alloc");
        }
        uint64_t spent = bench_now_ns() - before;
        if (round == 0) check_apart(buffers, HELD);
        before = bench_now_ns();
        for (int i = 0; i < HELD; i++) {
            bh_status status = bh_buffer_release(buffers[i]);
            if (status != BH_OK) bench_need(status, "bh_buffer_release");
        }
        spent += bench_now_ns() - before;
        bench_samples_add(samples, (double)spent / HELD);
    }
}

static double malloc_pair_ns(size_t groups) {
    bench_samples samples = bench_samples_new(groups);
    for (size_t group = 0; group < groups; group++) {
        uint64_t before = bench_now_ns();
        for (int i = 0; i < GROUP; i++) {
            void *volatile memory = malloc(BYTES);
            if (!memory) bench_wrong("malloc failed");
            free(memory);
        }
        bench_samples_add(&samples, (double)(bench_now_ns() - before) / GROUP);
    }
    double median = bench_percentile(&samples, 50);
    bench_samples_free(&samples);
    return median;
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "alloc: a buffer of 4 KiB, allocated and freed");
    size_t groups = bench_count(5000);
    bh_device device;
    bh_device_options options = bench_options();
    BENCH_NEED(bh_device_open(&options, &device));
    bh_buffer anchor = bench_buffer(device, BH_U8, BYTES); /* the first chunk is there */

    bench_samples samples = bench_samples_new(groups);
    pairs(device, groups, &samples);
    double median = bench_percentile(&samples, 50);
    bench_cpu_target("alloc.pair.p50", median, "ns", 200);
    bench_figure("alloc.pair.mean", bench_mean(&samples), "ns");
    bench_figure("alloc.pair.p99", bench_percentile(&samples, 99), "ns");

    samples.count = 0;
    batches(device, groups / 4 + 1, &samples);
    bench_cpu_target("alloc.held_256.p50", bench_percentile(&samples, 50), "ns", 200);
    bench_samples_free(&samples);

    double peer = malloc_pair_ns(groups);
    bench_figure("alloc.malloc.p50", peer, "ns");
    bench_figure("alloc.pair_to_malloc", median / peer, "ratio");
    BENCH_NEED(bh_buffer_release(anchor));
    BENCH_NEED(bh_device_close(device));
    return 0;
}
