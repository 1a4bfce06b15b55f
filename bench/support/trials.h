/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of everyday kinds, to measure ways of running them on the CPU device with. */
#ifndef BENCH_TRIALS_H
#define BENCH_TRIALS_H

#include "bench.h"

enum { BENCH_SIDE = 256, BENCH_COUNT = BENCH_SIDE * BENCH_SIDE * 4 };

typedef struct bench_side { /* a device, and what the kernels need there */
    bh_device device;
    bh_module module;
    bh_buffer a, b, c; /* of BENCH_COUNT words */
} bench_side;

bench_side bench_side_open(uint32_t flags);

typedef struct bench_trial {
    const char *name;
    bh_status (*launch)(const bench_side *s, bh_kernel kernel, bh_ticket *ticket);
} bench_trial;

enum { BENCH_TRIALS = 6 };
extern const bench_trial bench_trials[BENCH_TRIALS];

/* The fastest of several launches after a first one, because others use the machine too. */
double bench_trial_ms(const bench_side *s, const bench_trial *what);

#endif
