/* SPDX-License-Identifier: Apache-2.0 */
/* Much arithmetic for little memory. */
#include <math.h>

#include "peers.h"

enum { MAX = 256, CENTRES = 16, AXES = 4 };

static void prepare_nbody(peers_data *d) {
    for (int i = 0; i < 4; i++) peers_add_floats(d, PEERS_IN, d->n, i < 3 ? -1 : 0, 1);
    for (int i = 0; i < 3; i++) peers_add_floats(d, PEERS_OUT, d->n, 0, 0);
}
static void plain_nbody(void *const *b, const peers_data *d) {
    const float *restrict x = b[0], *restrict y = b[1], *restrict z = b[2], *restrict mass = b[3];
    float *restrict ax = b[4], *restrict ay = b[5], *restrict az = b[6];
#pragma omp parallel for
    for (size_t i = 0; i < d->n; i++) {
        float fx = 0, fy = 0, fz = 0;
#pragma omp simd reduction(+ : fx, fy, fz)
        for (size_t k = 0; k < d->n; k++) {
            float dx = x[k] - x[i], dy = y[k] - y[i], dz = z[k] - z[i];
            float square = dx * dx + dy * dy + dz * dz + 0.01f;
            float pull = mass[k] / (square * sqrtf(square));
            fx += pull * dx;
            fy += pull * dy;
            fz += pull * dz;
        }
        ax[i] = fx;
        ay[i] = fy;
        az[i] = fz;
    }
}
static void launch_nbody(peers_side *s, const peers_data *d) {
    peers_launch(s, "nbody", PEERS_LINE(d->n, 256), B(0), B(1), B(2), B(3), B(4), B(5), B(6),
                 U(d->n));
}

static void prepare_black_scholes(peers_data *d) {
    peers_add_floats(d, PEERS_IN, d->n, 5, 30);
    peers_add_floats(d, PEERS_IN, d->n, 1, 100);
    peers_add_floats(d, PEERS_IN, d->n, 0.25f, 10);
    peers_add_floats(d, PEERS_OUT, d->n, 0, 0);
    peers_add_floats(d, PEERS_OUT, d->n, 0, 0);
}
static inline float normal(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float sum =
        k * (0.31938153f +
             k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * expf(-0.5f * d * d) * sum;
    return d > 0 ? 1.0f - tail : tail;
}
static void plain_black_scholes(void *const *b, const peers_data *d) {
    const float *restrict price = b[0], *restrict strike = b[1], *restrict years = b[2];
    float *restrict call = b[3], *restrict put = b[4];
#pragma omp parallel for simd
    for (size_t i = 0; i < d->n; i++) {
        float s = price[i], k = strike[i], t = years[i], rate = 0.02f, volatility = 0.3f;
        float root = sqrtf(t);
        float d1 =
            (logf(s / k) + (rate + 0.5f * volatility * volatility) * t) / (volatility * root);
        float d2 = d1 - volatility * root;
        float n1 = normal(d1), n2 = normal(d2), discount = expf(-rate * t);
        call[i] = s * n1 - k * discount * n2;
        put[i] = k * discount * (1.0f - n2) - s * (1.0f - n1);
    }
}
static void launch_black_scholes(peers_side *s, const peers_data *d) {
    peers_launch(s, "black_scholes", PEERS_LINE(d->n, 256), B(0), B(1), B(2), B(3), B(4), U(d->n));
}

/* ---- fractals ---- */

static void prepare_fractal(peers_data *d) {
    peers_add(d, PEERS_OUT, PEERS_BYTES, d->n * d->n * sizeof(uint32_t));
}
static inline uint32_t escape(float x, float y, float cx, float cy) {
    uint32_t count = 0;
    while (count < MAX && fmaf(x, x, y * y) <= 4.0f) {
        float next = fmaf(x, x, fmaf(-y, y, cx));
        y = fmaf(x + x, y, cy);
        x = next;
        count++;
    }
    return count;
}
static void plain_mandelbrot(void *const *b, const peers_data *d) {
    uint32_t *out = b[0];
    size_t n = d->n;
    float step = 3.0f / (float)n;
#pragma omp parallel for schedule(dynamic)
    for (size_t y = 0; y < n; y++)
        for (size_t x = 0; x < n; x++)
            out[y * n + x] = escape(0, 0, fmaf((float)x, step, -2.0f), fmaf((float)y, step, -1.5f));
}
static void plain_julia(void *const *b, const peers_data *d) {
    uint32_t *out = b[0];
    size_t n = d->n;
    float step = 3.0f / (float)n;
#pragma omp parallel for schedule(dynamic)
    for (size_t y = 0; y < n; y++)
        for (size_t x = 0; x < n; x++)
            out[y * n + x] =
                escape(fmaf((float)x, step, -1.5f), fmaf((float)y, step, -1.5f), -0.8f, 0.156f);
}
static void launch_fractal(peers_side *s, const peers_data *d, const char *kernel) {
    uint32_t n = (uint32_t)d->n;
    peers_launch(s, kernel, PEERS_PLANE(n / 32, n / 8, 32, 8), B(0), U(n), U(MAX));
}
static void launch_mandelbrot(peers_side *s, const peers_data *d) {
    launch_fractal(s, d, "mandelbrot");
}
static void launch_julia(peers_side *s, const peers_data *d) {
    launch_fractal(s, d, "julia");
}

/* ---- clusters ---- */

static void prepare_kmeans(peers_data *d) {
    peers_add_floats(d, PEERS_IN, d->n * AXES, -1, 1);
    peers_add_floats(d, PEERS_IN, CENTRES * AXES, -1, 1);
    peers_add(d, PEERS_OUT, PEERS_BYTES, d->n * sizeof(uint32_t));
}
static void plain_kmeans(void *const *b, const peers_data *d) {
    const float *restrict points = b[0], *restrict centres = b[1];
    uint32_t *restrict nearest = b[2];
    size_t n = d->n;
#pragma omp parallel for simd
    for (size_t i = 0; i < n; i++) {
        float best = 1e30f;
        uint32_t at = 0;
        for (uint32_t k = 0; k < CENTRES; k++) {
            float sum = 0;
            for (size_t j = 0; j < AXES; j++) {
                float difference = points[j * n + i] - centres[k * AXES + j];
                sum = fmaf(difference, difference, sum);
            }
            at = sum < best ? k : at;
            best = sum < best ? sum : best;
        }
        nearest[i] = at;
    }
}
static void launch_kmeans(peers_side *s, const peers_data *d) {
    peers_launch(s, "kmeans_assign", PEERS_LINE(d->n, 256), B(0), B(1), B(2), U(d->n));
}

static const peers_case cases[] = {
    {"nbody", NULL, {2048, 512, 256}, prepare_nbody, plain_nbody, launch_nbody, false},
    {"black_scholes",
     NULL,
     {1 << 17, 1 << 14, 2048},
     prepare_black_scholes,
     plain_black_scholes,
     launch_black_scholes,
     false},
    {"mandelbrot",
     NULL,
     {256, 64, 32},
     prepare_fractal,
     plain_mandelbrot,
     launch_mandelbrot,
     false},
    {"julia", NULL, {256, 64, 32}, prepare_fractal, plain_julia, launch_julia, true},
    {"kmeans_assign",
     NULL,
     {1 << 17, 1 << 14, 2048},
     prepare_kmeans,
     plain_kmeans,
     launch_kmeans,
     true},
};
const peers_cases peers_numeric = {PEERS_NUMERIC, cases, sizeof cases / sizeof *cases};
