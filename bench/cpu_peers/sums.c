/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, scans and histograms. */
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "peers.h"

enum { PARTS = 64, BLOCK = 256, BINS = 256 };

static void prepare_reduce(peers_data *d) {
    peers_add_floats(d, PEERS_IN, d->n, 0, 1);
    peers_add_floats(d, PEERS_SCRATCH, PARTS, 0, 0);
    peers_add_floats(d, PEERS_OUT, 1, 0, 0);
}
static void plain_reduce(void *const *b, const peers_data *d) {
    const float *in = b[0];
    float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
    for (size_t i = 0; i < d->n; i++) sum += in[i];
    *(float *)b[2] = sum;
}
static void launch_reduce(peers_side *s, const peers_data *d) {
    peers_launch(s, "reduce", PEERS_LINE(PARTS * BLOCK, BLOCK), B(0), B(1), U(d->n));
    peers_launch(s, "reduce", PEERS_LINE(BLOCK, BLOCK), B(1), B(2), U(PARTS));
}

static void prepare_dot(peers_data *d) {
    peers_add_floats(d, PEERS_IN, d->n, 0, 1);
    peers_add_floats(d, PEERS_IN, d->n, 0, 1);
    peers_add_floats(d, PEERS_SCRATCH, PARTS, 0, 0);
    peers_add_floats(d, PEERS_OUT, 1, 0, 0);
}
static void plain_dot(void *const *b, const peers_data *d) {
    const float *x = b[0], *y = b[1];
    float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
    for (size_t i = 0; i < d->n; i++) sum += x[i] * y[i];
    *(float *)b[3] = sum;
}
static void launch_dot(peers_side *s, const peers_data *d) {
    peers_launch(s, "dot_parts", PEERS_LINE(PARTS * BLOCK, BLOCK), B(0), B(1), B(2), U(d->n));
    peers_launch(s, "reduce", PEERS_LINE(BLOCK, BLOCK), B(2), B(3), U(PARTS));
}

/* ---- scans ---- */

static void prepare_scan(peers_data *d) {
    peers_add_words(d, PEERS_IN, d->n, 0);
    peers_add(d, PEERS_OUT, PEERS_BYTES, d->n * sizeof(uint32_t));
    peers_add(d, PEERS_SCRATCH, PEERS_BYTES, (d->n + BLOCK - 1) / BLOCK * sizeof(uint32_t));
}

static inline uint32_t add(uint32_t a, uint32_t b) {
    return a + b;
}
static inline uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* Each thread its part, and then what was before it to every value. */
#define PLAIN_SCAN(name, combine)                                                                  \
    static void name(void *const *b, const peers_data *d) {                                        \
        const uint32_t *in = b[0];                                                                 \
        uint32_t *out = b[1];                                                                      \
        uint32_t sums[1024] = {0};                                                                 \
        _Pragma("omp parallel num_threads(threads_of())") {                                        \
            size_t count = team(), me = member();                                                  \
            size_t from = d->n * me / count, to = d->n * (me + 1) / count;                         \
            uint32_t sum = 0, before = 0;                                                          \
            for (size_t i = from; i < to; i++) out[i] = sum = combine(sum, in[i]);                 \
            sums[me] = sum;                                                                        \
            _Pragma("omp barrier") for (size_t i = 0; i < me; i++) before =                        \
                combine(before, sums[i]);                                                          \
            if (me > 0)                                                                            \
                for (size_t i = from; i < to; i++) out[i] = combine(before, out[i]);               \
        }                                                                                          \
    }
#ifdef _OPENMP
static int threads_of(void) {
    int most = omp_get_max_threads();
    return most > 1024 ? 1024 : most;
}
static size_t team(void) {
    return (size_t)omp_get_num_threads();
}
static size_t member(void) {
    return (size_t)omp_get_thread_num();
}
#else
static size_t team(void) {
    return 1;
}
static size_t member(void) {
    return 0;
}
#endif
PLAIN_SCAN(plain_scan, add)
PLAIN_SCAN(plain_prefix_max, larger)

static void launch_scan(peers_side *s, const peers_data *d) {
    size_t blocks = (d->n + BLOCK - 1) / BLOCK;
    peers_launch(s, "scan_blocks", PEERS_LINE(d->n, BLOCK), B(0), B(1), B(2), U(d->n));
    peers_launch(s, "scan_last", PEERS_LINE(BLOCK, BLOCK), B(2), U(blocks));
    peers_launch(s, "scan_spread", PEERS_LINE(d->n, BLOCK), B(1), B(2), U(d->n));
}
static void launch_prefix_max(peers_side *s, const peers_data *d) {
    size_t blocks = (d->n + BLOCK - 1) / BLOCK;
    peers_launch(s, "prefix_max_blocks", PEERS_LINE(d->n, BLOCK), B(0), B(1), B(2), U(d->n));
    peers_launch(s, "prefix_max_last", PEERS_LINE(BLOCK, BLOCK), B(2), U(blocks));
    peers_launch(s, "prefix_max_spread", PEERS_LINE(d->n, BLOCK), B(1), B(2), U(d->n));
}

/* ---- histograms ---- */

static void prepare_histogram(peers_data *d) {
    peers_add_words(d, PEERS_IN, d->n, 0);
    peers_add(d, PEERS_INOUT, PEERS_BYTES, BINS * sizeof(uint32_t));
}
static void plain_histogram(void *const *b, const peers_data *d) {
    const uint32_t *in = b[0];
    uint32_t *bins = b[1];
#pragma omp parallel
    {
        uint32_t own[BINS];
        memset(own, 0, sizeof own);
#pragma omp for
        for (size_t i = 0; i < d->n; i++) own[in[i] & 255]++;
#pragma omp critical
        for (int i = 0; i < BINS; i++) bins[i] += own[i];
    }
}
static void launch_histogram_shared(peers_side *s, const peers_data *d) {
    peers_launch(s, "histogram_shared", PEERS_LINE(PARTS * BLOCK, BLOCK), B(0), B(1), U(d->n));
}
static void launch_histogram_global(peers_side *s, const peers_data *d) {
    peers_launch(s, "histogram_global", PEERS_LINE(d->n, BLOCK), B(0), B(1), U(d->n));
}

static const peers_case cases[] = {
    {"reduce", NULL, {1 << 20, 1 << 17, 5000}, prepare_reduce, plain_reduce, launch_reduce, false},
    {"scan", "scan_blocks", {1 << 20, 1 << 16, 5000}, prepare_scan, plain_scan, launch_scan, false},
    {"histogram_shared",
     NULL,
     {1 << 20, 1 << 17, 5000},
     prepare_histogram,
     plain_histogram,
     launch_histogram_shared,
     false},
    {"histogram_global",
     NULL,
     {1 << 19, 1 << 16, 5000},
     prepare_histogram,
     plain_histogram,
     launch_histogram_global,
     false},
    {"dot", "dot_parts", {1 << 20, 1 << 17, 5000}, prepare_dot, plain_dot, launch_dot, true},
    {"prefix_max",
     "prefix_max_blocks",
     {1 << 20, 1 << 16, 5000},
     prepare_scan,
     plain_prefix_max,
     launch_prefix_max,
     true},
};
const peers_cases peers_sums = {PEERS_SUMS, cases, sizeof cases / sizeof *cases};
