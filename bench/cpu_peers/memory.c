/* SPDX-License-Identifier: Apache-2.0 */
/* Cases that move as much as they compute. */
#include "peers.h"

static void prepare_saxpy(peers_data *d) {
    peers_add_floats(d, PEERS_IN, d->n, -1, 1);
    peers_add_floats(d, PEERS_INOUT, d->n, -1, 1);
}
static void plain_saxpy(void *const *b, const peers_data *d) {
    const float *restrict x = b[0];
    float *restrict y = b[1];
#pragma omp parallel for simd
    for (size_t i = 0; i < d->n; i++) y[i] = 2.5f * x[i] + y[i];
}
static void launch_saxpy(peers_side *s, const peers_data *d) {
    peers_launch(s, "saxpy", PEERS_LINE(d->n, 256), B(0), B(1), F(2.5f), U(d->n));
}

static void prepare_triad(peers_data *d) {
    peers_add_floats(d, PEERS_IN, d->n, -1, 1);
    peers_add_floats(d, PEERS_IN, d->n, -1, 1);
    peers_add_floats(d, PEERS_OUT, d->n, 0, 0);
}
static void plain_triad(void *const *v, const peers_data *d) {
    const float *restrict b = v[0], *restrict c = v[1];
    float *restrict a = v[2];
#pragma omp parallel for simd
    for (size_t i = 0; i < d->n; i++) a[i] = b[i] + 3.0f * c[i];
}
static void launch_triad(peers_side *s, const peers_data *d) {
    peers_launch(s, "triad", PEERS_LINE(d->n, 256), B(0), B(1), B(2), F(3), U(d->n));
}

static void prepare_double(peers_data *d) {
    uint32_t state = 1;
    double *x = peers_add(d, PEERS_IN, PEERS_DOUBLES, d->n * sizeof *x);
    double *y = peers_add(d, PEERS_INOUT, PEERS_DOUBLES, d->n * sizeof *y);
    for (size_t i = 0; i < d->n; i++) x[i] = peers_random(&state) / 1e9;
    for (size_t i = 0; i < d->n; i++) y[i] = peers_random(&state) / 1e9;
}
static void plain_double(void *const *b, const peers_data *d) {
    const double *restrict x = b[0];
    double *restrict y = b[1];
#pragma omp parallel for simd
    for (size_t i = 0; i < d->n; i++) y[i] = 1.5 * x[i] + y[i];
}
static void launch_double(peers_side *s, const peers_data *d) {
    peers_launch(s, "axpy_double", PEERS_LINE(d->n, 256), B(0), B(1), D(1.5), U(d->n));
}

static void prepare_transpose(peers_data *d) {
    peers_add_floats(d, PEERS_IN, d->n * d->n, -1, 1);
    peers_add_floats(d, PEERS_OUT, d->n * d->n, 0, 0);
}
static void plain_transpose(void *const *b, const peers_data *d) {
    const float *restrict in = b[0];
    float *restrict out = b[1];
    size_t n = d->n;
#pragma omp parallel for
    for (size_t y = 0; y < n; y += 32)
        for (size_t x = 0; x < n; x += 32)
            for (size_t j = x; j < x + 32; j++)
                for (size_t i = y; i < y + 32; i++) out[j * n + i] = in[i * n + j];
}
static void launch_transpose(peers_side *s, const peers_data *d) {
    uint32_t tiles = (uint32_t)d->n / 32;
    peers_launch(s, "transpose", PEERS_PLANE(tiles, tiles, 32, 8), B(0), B(1), U(d->n));
}

static const peers_case cases[] = {
    {"saxpy", NULL, {1 << 20, 1 << 17, 4096}, prepare_saxpy, plain_saxpy, launch_saxpy, false},
    {"triad", NULL, {1 << 20, 1 << 17, 4096}, prepare_triad, plain_triad, launch_triad, false},
    {"transpose",
     NULL,
     {1024, 256, 64},
     prepare_transpose,
     plain_transpose,
     launch_transpose,
     false},
    {"axpy_double",
     NULL,
     {1 << 20, 1 << 17, 4096},
     prepare_double,
     plain_double,
     launch_double,
     true},
};
const peers_cases peers_memory = {PEERS_MEMORY, cases, sizeof cases / sizeof *cases};
