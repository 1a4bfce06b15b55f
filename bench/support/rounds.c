/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements that the library and the plain driver are put through alike. */
#include "rounds.h"

#include <stdlib.h>
#include <string.h>

#include "figures.h"

enum {
    BATCH = 512, /* launches between two waits: neither side's queue is ever full */
    GROUP = 16,  /* launches between two readings of the clock */
    BATCHES = 60,
    ROUNDTRIPS = 2000,
    WARM = 100,
    PAIRS = 64, /* allocations between two readings of the clock */
    PAIR_GROUPS = 200,
    PAGE = 4096
};

static uint32_t value_of(const bench_side *side, uint32_t number) {
    return number * 2654435761u + side->seed;
}

static uint32_t salt_of(const bench_side *side, uint32_t number) {
    return number * 40503u ^ side->seed << 16;
}

static inline void launch(const bench_side *side, uint32_t number) {
    side->put(side->self, number % BENCH_OUTPUTS, number / BENCH_OUTPUTS, value_of(side, number),
              salt_of(side, number));
}

static void check(const bench_side *side, uint32_t launches) {
    uint32_t *words = malloc(BENCH_OUTPUT_WORDS * sizeof *words);
    if (!words) bench_wrong("no memory for %d words", BENCH_OUTPUT_WORDS);
    for (uint32_t output = 0; output < BENCH_OUTPUTS; output++) {
        side->read_output(side->self, output, words, launches / BENCH_OUTPUTS + 1);
        for (uint32_t number = output; number < launches; number += BENCH_OUTPUTS) {
            uint32_t expected = value_of(side, number) ^ salt_of(side, number);
            if (words[number / BENCH_OUTPUTS] != expected)
                bench_wrong("launch %u left 0x%x, not 0x%x", number, words[number / BENCH_OUTPUTS],
                            expected);
        }
    }
    free(words);
}

static double median_of(bench_samples *samples) {
    double median = bench_percentile(samples, 50);
    bench_samples_free(samples);
    return median;
}

/* What a launch costs its caller, the queue having room. */
static double submit(bench_side *side) {
    bench_samples samples = bench_samples_new(BATCHES * (BATCH / GROUP));
    uint32_t number = 0;
    side->seed++;
    for (int batch = 0; batch <= BATCHES; batch++) {
        uint64_t before = bench_now_ns();
        for (int group = 0; group < BATCH / GROUP; group++) {
            for (int i = 0; i < GROUP; i++) launch(side, number++);
            uint64_t after = bench_now_ns();
            if (batch > 0) bench_samples_add(&samples, (double)(after - before) / GROUP);
            before = after;
        }
        side->finish(side->self);
    }
    check(side, number);
    return median_of(&samples);
}

/* A launch alone, until it is known to be done. */
static double roundtrip(bench_side *side) {
    bench_samples samples = bench_samples_new(ROUNDTRIPS);
    side->seed++;
    for (uint32_t number = 0; number < WARM + ROUNDTRIPS; number++) {
        uint64_t before = bench_now_ns();
        launch(side, number);
        side->finish(side->self);
        uint64_t after = bench_now_ns();
        if (number >= WARM) bench_samples_add(&samples, (double)(after - before) / 1e3);
    }
    check(side, WARM + ROUNDTRIPS);
    return median_of(&samples);
}

/* As many as go, through to done. */
static double launches(bench_side *side) {
    side->seed++;
    uint64_t began = bench_now_ns();
    for (uint32_t number = 0; number < BENCH_LAUNCHES; number++) launch(side, number);
    side->finish(side->self);
    double took = (double)(bench_now_ns() - began);
    check(side, BENCH_LAUNCHES);
    return BENCH_LAUNCHES / took * 1e6;
}

/* ---- copies ---- */

/* Makes the memory if need be, and changes every page of what is sent. */
static void prepare(bench_side *side, int memory) {
    for (int i = 0; i < 2; i++) {
        if (side->host[memory][i]) continue;
        uint8_t *bytes = memory == BENCH_HOST ? side->host_alloc(side->self, BENCH_COPY_BYTES)
                                              : malloc(BENCH_COPY_BYTES);
        if (!bytes) bench_wrong("no memory for %llu bytes", BENCH_COPY_BYTES);
        for (size_t at = 0; at < BENCH_COPY_BYTES; at++)
            bytes[at] = i ? 0 : (uint8_t)(at * 131 + (at >> 12));
        side->host[memory][i] = bytes;
    }
    side->seed++;
    uint8_t *bytes = side->host[memory][0];
    for (size_t at = 0; at < BENCH_COPY_BYTES; at += PAGE)
        memcpy(bytes + at, &side->seed, sizeof side->seed);
}

static void compare(const bench_side *side, int memory) {
    if (memcmp(side->host[memory][0], side->host[memory][1], BENCH_COPY_BYTES) != 0)
        bench_wrong("what came back from the device is not what was sent");
}

static double copy(bench_side *side, int memory, bool in) {
    prepare(side, memory);
    uint64_t t0 = bench_now_ns();
    side->copy_in(side->self, memory, side->host[memory][0]);
    uint64_t t1 = bench_now_ns();
    side->copy_out(side->self, memory, side->host[memory][1]);
    uint64_t t2 = bench_now_ns();
    compare(side, memory);
    return (double)BENCH_COPY_BYTES / (double)(in ? t1 - t0 : t2 - t1);
}

static double host_in(bench_side *side) {
    return copy(side, BENCH_HOST, true);
}
static double host_out(bench_side *side) {
    return copy(side, BENCH_HOST, false);
}
static double plain_in(bench_side *side) {
    return copy(side, BENCH_PLAIN, true);
}
static double plain_out(bench_side *side) {
    return copy(side, BENCH_PLAIN, false);
}

void bench_side_end(bench_side *side) {
    for (int i = 0; i < 2; i++) {
        free(side->host[BENCH_PLAIN][i]);
        side->host[BENCH_PLAIN][i] = NULL;
    }
}

/* ---- memory ---- */

static double alloc_free(bench_side *side) {
    bench_samples samples = bench_samples_new(PAIR_GROUPS);
    for (int group = 0; group <= PAIR_GROUPS; group++) {
        uint64_t before = bench_now_ns();
        for (int i = 0; i < PAIRS; i++) side->alloc_free(side->self);
        uint64_t after = bench_now_ns();
        if (group > 0) bench_samples_add(&samples, (double)(after - before) / PAIRS);
    }
    uint32_t value = ++side->seed * 2654435761u, left = side->alloc_use(side->self, value);
    if (left != value) bench_wrong("new memory holds 0x%x, not 0x%x", left, value);
    return median_of(&samples);
}

const bench_round bench_rounds[] = {
    {"submit", "ns", submit},         {"roundtrip", "us", roundtrip},
    {"launches", "k/s", launches},    {"host_in", "GB/s", host_in},
    {"host_out", "GB/s", host_out},   {"plain_in", "GB/s", plain_in},
    {"plain_out", "GB/s", plain_out}, {"alloc_free", "ns", alloc_free},
};
const size_t bench_round_count = sizeof bench_rounds / sizeof *bench_rounds;
