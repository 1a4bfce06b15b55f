/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are normalised. */
#include <math.h>

#include "peers.h"

enum { COLUMNS = 1024 };

static void prepare_softmax(peers_data *d) {
    peers_add_floats(d, PEERS_IN, d->n * COLUMNS, -4, 4);
    peers_add_floats(d, PEERS_OUT, d->n * COLUMNS, 0, 0);
}
static void plain_softmax(void *const *b, const peers_data *d) {
#pragma omp parallel for
    for (size_t row = 0; row < d->n; row++) {
        const float *restrict in = (const float *)b[0] + row * COLUMNS;
        float *restrict out = (float *)b[1] + row * COLUMNS;
        float most = -1e30f, sum = 0;
#pragma omp simd reduction(max : most)
        for (int i = 0; i < COLUMNS; i++) most = in[i] > most ? in[i] : most;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < COLUMNS; i++) sum += out[i] = expf(in[i] - most);
        for (int i = 0; i < COLUMNS; i++) out[i] *= 1.0f / sum;
    }
}
static void launch_softmax(peers_side *s, const peers_data *d) {
    peers_launch(s, "softmax", PEERS_LINE(d->n * 256, 256), B(0), B(1), U(COLUMNS));
}

static void prepare_layer_norm(peers_data *d) {
    peers_add_floats(d, PEERS_IN, d->n * COLUMNS, -1, 3);
    peers_add_floats(d, PEERS_IN, COLUMNS, 0, 2);
    peers_add_floats(d, PEERS_IN, COLUMNS, -1, 1);
    peers_add_floats(d, PEERS_OUT, d->n * COLUMNS, 0, 0);
}
static void plain_layer_norm(void *const *b, const peers_data *d) {
    const float *restrict gain = b[1], *restrict bias = b[2];
#pragma omp parallel for
    for (size_t row = 0; row < d->n; row++) {
        const float *restrict in = (const float *)b[0] + row * COLUMNS;
        float *restrict out = (float *)b[3] + row * COLUMNS;
        float sum = 0, square = 0;
#pragma omp simd reduction(+ : sum, square)
        for (int i = 0; i < COLUMNS; i++) {
            sum += in[i];
            square += in[i] * in[i];
        }
        float mean = sum / COLUMNS, scale = 1.0f / sqrtf(square / COLUMNS - mean * mean + 1e-5f);
        for (int i = 0; i < COLUMNS; i++) out[i] = (in[i] - mean) * scale * gain[i] + bias[i];
    }
}
static void launch_layer_norm(peers_side *s, const peers_data *d) {
    peers_launch(s, "layer_norm", PEERS_LINE(d->n * 256, 256), B(0), B(1), B(2), B(3), U(COLUMNS));
}

static const peers_case cases[] = {
    {"softmax", NULL, {256, 32, 4}, prepare_softmax, plain_softmax, launch_softmax, false},
    {"layer_norm",
     NULL,
     {512, 64, 4},
     prepare_layer_norm,
     plain_layer_norm,
     launch_layer_norm,
     false},
};
const peers_cases peers_rows = {PEERS_ROWS, cases, sizeof cases / sizeof *cases};
