/* SPDX-License-Identifier: Apache-2.0 */
/* Managed buffers: how much moves when little was written, how fast ranges move, and what a launch
 * costs that needs no move. -n MIB sets the size of the buffer, 1024 usually. */
#include <stdlib.h>
#include <string.h>

#include "support/bench.h"

static const bh_lane own_lane = {0};

static bh_managed_info info_of(bh_buffer buffer) {
    bh_managed_info info = BH_INIT(info);
    BENCH_NEED(bh_managed_get_info(buffer, &info));
    return info;
}

static bh_buffer managed(bh_device device, uint64_t bytes, uint32_t flags, uint8_t **pointer) {
    bh_buffer_options options = BH_INIT(options);
    options.flags = flags & BH_BUFFER_DRIVER ? flags : flags | BH_BUFFER_MANAGED;
    bh_buffer buffer;
    bh_buffer_info info = BH_INIT(info);
    BENCH_NEED(bh_buffer_alloc(device, BH_U32, bytes / 4, &options, &buffer));
    BENCH_NEED(bh_buffer_get_info(buffer, &info));
    *pointer = info.pointer;
    return buffer;
}

/* The whole buffer as an input of a launch. */
static bh_ticket read_all(const bench_kernels *kernels, bh_buffer buffer, bh_buffer output) {
    bh_use also = {.buffer = buffer, .access = BH_ACCESS_IN};
    bh_launch_options options = BH_INIT(options);
    options.also = &also;
    options.also_count = 1;
    bh_ticket ticket;
    BENCH_NEED(bh_launch(kernels->word, BH_SHAPE(1, 1, 1, 1, 1, 1), BH_ARGS(BH_INOUT(output), 0u),
                         &options, &ticket));
    return ticket;
}

/* One contiguous hundredth is written, at another place each time, and everything is read. */
static void little_written(bh_device device, const bench_kernels *kernels, uint64_t bytes) {
    enum { ROUNDS = 10 };
    uint8_t *memory;
    bh_buffer buffer = managed(device, bytes, BH_BUFFER_TRANSPARENT, &memory);
    bh_buffer output = bench_buffer(device, BH_U32, 1);
    memset(memory, 1, bytes);
    BENCH_NEED(bh_wait(read_all(kernels, buffer, output), 600 * BENCH_S));
    bh_managed_info before = info_of(buffer);
    bench_samples launch = bench_samples_new(ROUNDS);
    uint64_t part = bytes / 100;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t at = (bytes - part) / ROUNDS * i + 12345;
        memset(memory + at, (int)(i + 2), part);
        uint64_t began = bench_now_ns();
        bh_ticket ticket = read_all(kernels, buffer, output);
        bench_samples_add(&launch, (double)(bench_now_ns() - began));
        BENCH_NEED(bh_wait(ticket, 600 * BENCH_S));
        uint8_t seen;
        BENCH_NEED(bh_buffer_read(buffer, at + part - 1, &seen, 1));
        if (seen != i + 2)
            bench_wrong("the device has %u at the end of part %u", seen, (unsigned)i);
    }
    bh_managed_info after = info_of(buffer);
    bench_note("tracking is %s; %llu MiB, 1 %% of it written before each launch",
               after.tracking == BH_TRACKING_PAGES ? "by pages" : "not available",
               (unsigned long long)(bytes >> 20));
    bench_target("managed.moved",
                 100.0 * (double)(after.bytes_to_device - before.bytes_to_device) / ROUNDS /
                     (double)bytes,
                 "%", 2);
    bench_figure("managed.submit_with_scan", bench_percentile(&launch, 50) / 1e3, "us");
    bench_samples_free(&launch);
    BENCH_NEED(bh_buffer_release(buffer));
    BENCH_NEED(bh_buffer_release(output));
}

typedef struct speeds {
    bench_samples there, back;
} speeds;

static speeds speeds_new(size_t rounds) {
    return (speeds){bench_samples_new(rounds), bench_samples_new(rounds)};
}

static void add(bench_samples *samples, uint64_t bytes, uint64_t began) {
    bench_samples_add(samples, (double)bytes / (double)(bench_now_ns() - began));
}

/* Copies of the same size from and to memory of bh_host_alloc, and prefetches, by turns. */
static void prefetch_speed(bh_device device, uint64_t bytes) {
    enum { ROUNDS = 7 };
    uint8_t *memory;
    void *host;
    bh_buffer buffer = managed(device, bytes, 0, &memory),
              plain = bench_buffer(device, BH_U8, bytes);
    BENCH_NEED(bh_host_alloc(device, bytes, &host));
    memset(host, 3, bytes);
    speeds raw = speeds_new(ROUNDS), moved = speeds_new(ROUNDS);
    for (uint32_t i = 0; i <= ROUNDS; i++) {
        bh_ticket ticket;
        BENCH_NEED(bh_managed_map(buffer, 0, bytes, BH_MAP_WRITE | BH_MAP_DISCARD, NULL));
        memset(memory, (int)i, bytes);
        BENCH_NEED(bh_managed_unmap(memory, bytes));
        uint64_t t0 = bench_now_ns();
        BENCH_NEED(bh_submit_write(own_lane, plain, 0, host, bytes, &ticket));
        BENCH_NEED(bh_wait(ticket, 600 * BENCH_S));
        if (i) add(&raw.there, bytes, t0);
        t0 = bench_now_ns();
        BENCH_NEED(bh_managed_prefetch(buffer, 0, bytes, BH_TO_DEVICE, NULL, &ticket));
        BENCH_NEED(bh_wait(ticket, 600 * BENCH_S));
        if (i) add(&moved.there, bytes, t0);
        uint32_t pattern = i + 100;
        BENCH_NEED(bh_buffer_fill(buffer, 0, bytes, &pattern, 4));
        t0 = bench_now_ns();
        BENCH_NEED(bh_submit_read(own_lane, plain, 0, host, bytes, &ticket));
        BENCH_NEED(bh_wait(ticket, 600 * BENCH_S));
        if (i) add(&raw.back, bytes, t0);
        t0 = bench_now_ns();
        BENCH_NEED(bh_managed_prefetch(buffer, 0, bytes, BH_TO_HOST, NULL, &ticket));
        BENCH_NEED(bh_wait(ticket, 600 * BENCH_S));
        if (i) add(&moved.back, bytes, t0);
        uint32_t seen[2];
        memcpy(seen, memory, 4);
        memcpy(seen + 1, memory + bytes - 4, 4);
        if (seen[0] != pattern || seen[1] != pattern)
            bench_wrong("%u and %u came home, not %u", seen[0], seen[1], pattern);
    }
    double there = bench_percentile(&raw.there, 50), back = bench_percentile(&raw.back, 50);
    double to_device = bench_percentile(&moved.there, 50),
           to_host = bench_percentile(&moved.back, 50);
    bench_figure("managed.raw_to_device", there, "GB/s");
    bench_figure("managed.raw_to_host", back, "GB/s");
    bench_figure("managed.prefetch_to_device", to_device, "GB/s");
    bench_figure("managed.prefetch_to_host", to_host, "GB/s");
    bench_target_least("managed.prefetch_to_device_part", to_device / there, "x", 0.9);
    bench_target_least("managed.prefetch_to_host_part", to_host / back, "x", 0.9);
    bench_samples_free(&raw.there);
    bench_samples_free(&raw.back);
    bench_samples_free(&moved.there);
    bench_samples_free(&moved.back);
    BENCH_NEED(bh_host_free(device, host));
    BENCH_NEED(bh_buffer_release(buffer));
    BENCH_NEED(bh_buffer_release(plain));
}

static double launch_ns(const bench_kernels *kernels, bh_buffer output) {
    enum { LAUNCHES = 2000, ROUNDS = 7 };
    bench_samples samples = bench_samples_new(ROUNDS);
    for (uint32_t round = 0; round <= ROUNDS; round++) {
        bh_ticket ticket;
        uint64_t spent = 0;
        for (uint32_t batch = 0; batch < LAUNCHES; batch += 500) {
            uint64_t began = bench_now_ns();
            for (uint32_t i = 0; i < 500; i++)
                BENCH_NEED(bh_launch(kernels->word, BH_SHAPE(1, 1, 1, 1, 1, 1),
                                     BH_ARGS(BH_INOUT(output), i), NULL, &ticket));
            spent += bench_now_ns() - began;
            BENCH_NEED(bh_wait(ticket, 60 * BENCH_S));
        }
        if (round) bench_samples_add(&samples, (double)spent / LAUNCHES);
    }
    double median = bench_percentile(&samples, 50);
    bench_samples_free(&samples);
    return median;
}

/* What submitting costs when nothing is to be moved. */
static void nothing_to_move(bh_device device, const bench_kernels *kernels) {
    uint8_t *memory;
    bh_buffer plain = bench_buffer(device, BH_U32, 1024);
    bench_figure("managed.submit_none", launch_ns(kernels, plain), "ns");
    bh_buffer buffer = managed(device, 4096, 0, &memory);
    bench_figure("managed.submit_other", launch_ns(kernels, plain), "ns");
    bench_figure("managed.submit", launch_ns(kernels, buffer), "ns");
    BENCH_NEED(bh_buffer_release(buffer));
    bh_buffer watched = managed(device, 4096, BH_BUFFER_TRANSPARENT, &memory);
    bench_figure("managed.submit_transparent", launch_ns(kernels, watched), "ns");
    BENCH_NEED(bh_buffer_release(watched));
    BENCH_NEED(bh_buffer_release(plain));
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "managed buffers; -n is MiB");
    uint64_t bytes = (uint64_t)bench_count(1024) << 20;
    bh_device device;
    bh_device_options options = bench_options();
    BENCH_NEED(bh_device_open(&options, &device));
    bench_kernels kernels = bench_kernels_load(device);
    nothing_to_move(device, &kernels);
    little_written(device, &kernels, bytes);
    prefetch_speed(device, bytes);
    BENCH_NEED(bh_device_close(device));
    return 0;
}
