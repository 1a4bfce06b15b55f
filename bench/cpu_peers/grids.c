/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbours on grids. */
#include "peers.h"

enum { TAPS = 31, STEPS = 4 };

static peers_shape plane(size_t n) {
    return PEERS_PLANE((uint32_t)(n + 31) / 32, (uint32_t)(n + 7) / 8, 32, 8);
}

static void prepare_stencil2d(peers_data *d) {
    peers_add_floats(d, PEERS_IN, d->n * d->n, -1, 1);
    peers_add_floats(d, PEERS_OUT, d->n * d->n, 0, 0);
}
static void plain_stencil2d(void *const *b, const peers_data *d) {
    const float *restrict in = b[0];
    float *restrict out = b[1];
    size_t n = d->n;
#pragma omp parallel for
    for (size_t y = 1; y < n - 1; y++)
        for (size_t i = y * n + 1; i < y * n + n - 1; i++)
            out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
}
static void launch_stencil2d(peers_side *s, const peers_data *d) {
    peers_launch(s, "stencil2d", plane(d->n), B(0), B(1), U(d->n));
}

static void prepare_stencil3d(peers_data *d) {
    peers_add_floats(d, PEERS_IN, d->n * d->n * d->n, -1, 1);
    peers_add_floats(d, PEERS_OUT, d->n * d->n * d->n, 0, 0);
}
static void plain_stencil3d(void *const *b, const peers_data *d) {
    const float *restrict in = b[0];
    float *restrict out = b[1];
    size_t n = d->n;
#pragma omp parallel for
    for (size_t z = 1; z < n - 1; z++)
        for (size_t y = 1; y < n - 1; y++)
            for (size_t x = 1, i = (z * n + y) * n + 1; x < n - 1; x++, i++)
                out[i] = 0.4f * in[i] + 0.1f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n] +
                                                in[i - n * n] + in[i + n * n]);
}
static void launch_stencil3d(peers_side *s, const peers_data *d) {
    uint32_t n = (uint32_t)d->n;
    peers_shape shape = {{(n + 31) / 32, (n + 7) / 8, n}, {32, 8, 1}};
    peers_launch(s, "stencil3d", shape, B(0), B(1), U(n));
}

static void prepare_conv2d(peers_data *d) {
    peers_add_floats(d, PEERS_IN, (d->n + 4) * (d->n + 4), -1, 1);
    peers_add_floats(d, PEERS_IN, 25, -1, 1);
    peers_add_floats(d, PEERS_OUT, d->n * d->n, 0, 0);
}
static void plain_conv2d(void *const *b, const peers_data *d) {
    const float *restrict in = b[0], *restrict weights = b[1];
    float *restrict out = b[2];
    size_t n = d->n, wide = n + 4;
#pragma omp parallel for
    for (size_t y = 0; y < n; y++)
        for (size_t x = 0; x < n; x++) {
            float sum = 0;
            for (size_t j = 0; j < 5; j++)
                for (size_t i = 0; i < 5; i++)
                    sum += weights[j * 5 + i] * in[(y + j) * wide + x + i];
            out[y * n + x] = sum;
        }
}
static void launch_conv2d(peers_side *s, const peers_data *d) {
    peers_launch(s, "conv2d", plane(d->n), B(0), B(1), B(2), U(d->n));
}

static void prepare_conv1d(peers_data *d) {
    peers_add_floats(d, PEERS_IN, d->n + TAPS - 1, -1, 1);
    peers_add_floats(d, PEERS_IN, TAPS, -1, 1);
    peers_add_floats(d, PEERS_OUT, d->n, 0, 0);
}
static void plain_conv1d(void *const *b, const peers_data *d) {
    const float *restrict in = b[0], *restrict weights = b[1];
    float *restrict out = b[2];
#pragma omp parallel for
    for (size_t x = 0; x < d->n; x++) {
        float sum = 0;
        for (size_t i = 0; i < TAPS; i++) sum += weights[i] * in[x + i];
        out[x] = sum;
    }
}
static void launch_conv1d(peers_side *s, const peers_data *d) {
    peers_launch(s, "conv1d", PEERS_LINE(d->n, 256), B(0), B(1), B(2), U(d->n));
}

static void prepare_jacobi(peers_data *d) {
    peers_add_floats(d, PEERS_INOUT, d->n * d->n, -1, 1);
    peers_add_floats(d, PEERS_IN, d->n * d->n, -1, 1);
}
static void plain_jacobi(void *const *b, const peers_data *d) {
    float *u = b[0];
    const float *f = b[1];
    size_t n = d->n;
    for (size_t colour = 0; colour < 2; colour++) {
#pragma omp parallel for
        for (size_t y = 1; y < n - 1; y++)
            for (size_t x = 1 + (y + 1 + colour) % 2; x < n - 1; x += 2) {
                size_t i = y * n + x;
                u[i] = 0.25f * (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] - f[i]);
            }
    }
}
static void launch_jacobi(peers_side *s, const peers_data *d) {
    for (uint32_t colour = 0; colour < 2; colour++)
        peers_launch(s, "jacobi_red_black", plane(d->n), B(0), B(1), U(colour), U(d->n));
}

static void prepare_floyd(peers_data *d) {
    uint32_t *distance = peers_add_words(d, PEERS_INOUT, d->n * d->n, 10000);
    for (size_t i = 0; i < d->n; i++) distance[i * d->n + i] = 0;
}
static void plain_floyd(void *const *b, const peers_data *d) {
    uint32_t *distance = b[0];
    size_t n = d->n;
    for (size_t k = 0; k < STEPS; k++) {
        const uint32_t *through = distance + k * n;
#pragma omp parallel for
        for (size_t row = 0; row < n; row++) {
            uint32_t *own = distance + row * n, first = own[k];
            for (size_t column = 0; column < n; column++) {
                uint32_t around = first + through[column];
                own[column] = around < own[column] ? around : own[column];
            }
        }
    }
}
static void launch_floyd(peers_side *s, const peers_data *d) {
    for (uint32_t k = 0; k < STEPS; k++)
        peers_launch(s, "floyd_warshall", plane(d->n), B(0), U(k), U(d->n));
}

static const peers_case cases[] = {
    {"stencil2d",
     NULL,
     {1024, 256, 64},
     prepare_stencil2d,
     plain_stencil2d,
     launch_stencil2d,
     false},
    {"stencil3d", NULL, {96, 48, 32}, prepare_stencil3d, plain_stencil3d, launch_stencil3d, false},
    {"conv2d", NULL, {512, 128, 32}, prepare_conv2d, plain_conv2d, launch_conv2d, false},
    {"conv1d", NULL, {1 << 18, 1 << 15, 4096}, prepare_conv1d, plain_conv1d, launch_conv1d, true},
    {"jacobi_red_black", NULL, {512, 128, 32}, prepare_jacobi, plain_jacobi, launch_jacobi, true},
    {"floyd_warshall", NULL, {512, 128, 32}, prepare_floyd, plain_floyd, launch_floyd, true},
};
const peers_cases peers_grids = {PEERS_GRIDS, cases, sizeof cases / sizeof *cases};
