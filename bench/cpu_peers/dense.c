/* SPDX-License-Identifier: Apache-2.0 */
/* Dense linear algebra. */
#include <string.h>

#include "peers.h"

static void prepare_gemm(peers_data *d) {
    peers_add_floats(d, PEERS_IN, d->n * d->n, -1, 1);
    peers_add_floats(d, PEERS_IN, d->n * d->n, -1, 1);
    peers_add_floats(d, PEERS_OUT, d->n * d->n, 0, 0);
}

/* Loops in the order that compilers vectorise. */
static void multiply(const float *restrict a, const float *restrict b, float *restrict c,
                     size_t n) {
#pragma omp parallel for
    for (size_t row = 0; row < n; row++) {
        memset(c + row * n, 0, n * sizeof *c);
        for (size_t k = 0; k < n; k++) {
            float factor = a[row * n + k];
            for (size_t column = 0; column < n; column++)
                c[row * n + column] += factor * b[k * n + column];
        }
    }
}
static void plain_gemm(void *const *b, const peers_data *d) {
    multiply(b[0], b[1], b[2], d->n);
}
static void launch_naive(peers_side *s, const peers_data *d) {
    uint32_t tiles = (uint32_t)d->n / 16;
    peers_launch(s, "sgemm_naive", PEERS_PLANE(tiles, tiles, 16, 16), B(0), B(1), B(2), U(d->n));
}
static void launch_tiled(peers_side *s, const peers_data *d) {
    uint32_t tiles = (uint32_t)d->n / 16;
    peers_launch(s, "sgemm_tiled", PEERS_PLANE(tiles, tiles, 16, 16), B(0), B(1), B(2), U(d->n));
}

/* ---- half precision ---- */

/* Quarters from -2 to 2, which halves hold exactly. */
static const uint16_t quarters[] = {0x0000, 0x3400, 0x3800, 0x3a00, 0x3c00,
                                    0x3d00, 0x3e00, 0x3f00, 0x4000};

static uint16_t random_half(uint32_t *state) {
    uint32_t r = peers_random(state);
    return (uint16_t)(quarters[r % 9] | (r >> 31) << 15);
}

static float from_half(uint16_t h) {
    float value = 0;
    for (int i = 0; i < 9; i++)
        if (quarters[i] == (h & 0x7fff)) value = 0.25f * (float)i;
    return h >> 15 ? -value : value;
}

/* The last two are for plain C: the inputs as floats, the second by rows. */
static void prepare_mma(peers_data *d) {
    uint32_t state = 7;
    size_t n = d->n;
    uint16_t *a = peers_add(d, PEERS_IN, PEERS_BYTES, n * n * sizeof *a);
    uint16_t *b = peers_add(d, PEERS_IN, PEERS_BYTES, n * n * sizeof *b);
    peers_add_floats(d, PEERS_OUT, n * n, 0, 0);
    float *wide_a = peers_add_floats(d, PEERS_IN, n * n, 0, 0);
    float *wide_b = peers_add_floats(d, PEERS_IN, n * n, 0, 0);
    for (size_t i = 0; i < n * n; i++) wide_a[i] = from_half(a[i] = random_half(&state));
    for (size_t i = 0; i < n * n; i++)
        wide_b[i % n * n + i / n] = from_half(b[i] = random_half(&state));
}
static void plain_mma(void *const *b, const peers_data *d) {
    multiply(b[3], b[4], b[2], d->n);
}
static void launch_mma(peers_side *s, const peers_data *d) {
    peers_launch(s, "mma_gemm", PEERS_PLANE((uint32_t)d->n / 32, (uint32_t)d->n / 16, 128, 1), B(0),
                 B(1), B(2), U(d->n));
}

/* ---- a vector, a panel ---- */

static void prepare_matvec(peers_data *d) {
    peers_add_floats(d, PEERS_IN, d->n * d->n, -1, 1);
    peers_add_floats(d, PEERS_IN, d->n, -1, 1);
    peers_add_floats(d, PEERS_OUT, d->n, 0, 0);
}
static void plain_matvec(void *const *b, const peers_data *d) {
    const float *restrict a = b[0], *restrict x = b[1];
    float *restrict y = b[2];
    size_t n = d->n;
#pragma omp parallel for
    for (size_t part = 0; part < n; part += 32) {
        float sums[32] = {0};
        for (size_t k = 0; k < n; k++)
            for (size_t i = 0; i < 32; i++) sums[i] += a[k * n + part + i] * x[k];
        memcpy(y + part, sums, sizeof sums);
    }
}
static void launch_matvec(peers_side *s, const peers_data *d) {
    peers_launch(s, "matvec", PEERS_LINE(d->n, 32), B(0), B(1), B(2), U(d->n));
}

static void prepare_lu(peers_data *d) {
    float *a = peers_add_floats(d, PEERS_INOUT, d->n * 32, -1, 1);
    for (size_t i = 0; i < 32; i++) a[i * d->n + i] += 40; /* no pivots are needed */
}
static void plain_lu(void *const *b, const peers_data *d) {
    float *a = b[0];
    size_t n = d->n;
    for (size_t k = 0; k < 32; k++) {
        float pivot = a[k * n + k];
        float *restrict factors = a + k * n;
#pragma omp parallel for simd
        for (size_t row = k + 1; row < n; row++) factors[row] = factors[row] / pivot;
#pragma omp parallel for
        for (size_t j = k + 1; j < 32; j++) {
            float *restrict column = a + j * n;
            float top = column[k];
            for (size_t row = k + 1; row < n; row++) column[row] -= factors[row] * top;
        }
    }
}
static void launch_lu(peers_side *s, const peers_data *d) {
    for (uint32_t k = 0; k < 32; k++)
        peers_launch(s, "lu_panel", PEERS_LINE(d->n, 256), B(0), U(k), U(d->n));
}

static const peers_case cases[] = {
    {"sgemm_naive", NULL, {256, 96, 32}, prepare_gemm, plain_gemm, launch_naive, false},
    {"sgemm_tiled", NULL, {256, 96, 32}, prepare_gemm, plain_gemm, launch_tiled, false},
    {"mma_gemm", NULL, {256, 96, 32}, prepare_mma, plain_mma, launch_mma, false},
    {"matvec", NULL, {1024, 256, 64}, prepare_matvec, plain_matvec, launch_matvec, true},
    {"lu_panel", NULL, {16384, 1024, 256}, prepare_lu, plain_lu, launch_lu, true},
};
const peers_cases peers_dense = {PEERS_DENSE, cases, sizeof cases / sizeof *cases};
