/* SPDX-License-Identifier: Apache-2.0 */
/* The launches of the kernels of check_source.c. */
#include "trials.h"

#include <string.h>

#include "check_source.h"

enum { ROUNDS = 5 };

bench_side bench_side_open(uint32_t flags) {
    bench_side s;
    bh_device_options options = bench_options();
    options.flags |= flags;
    BENCH_NEED(bh_device_open(&options, &s.device));
    BENCH_NEED(bh_module_load(s.device, bench_check_source, strlen(bench_check_source), &s.module));
    bh_buffer *buffers[] = {&s.a, &s.b, &s.c};
    for (int i = 0; i < 3; i++) *buffers[i] = bench_patterned(s.device, BENCH_COUNT);
    return s;
}

static bh_status saxpy(const bench_side *s, bh_kernel k, bh_ticket *t) {
    return bh_launch(k, BH_GRID(BENCH_COUNT, 256),
                     BH_ARGS(2.0f, BH_IN(s->a), BH_INOUT(s->b), (uint32_t)BENCH_COUNT), NULL, t);
}
static bh_status reduce(const bench_side *s, bh_kernel k, bh_ticket *t) {
    return bh_launch(k, BH_GRID(BENCH_COUNT, 256), BH_ARGS(BH_IN(s->a), BH_OUT(s->c)), NULL, t);
}
static bh_status matmul(const bench_side *s, bh_kernel k, bh_ticket *t) {
    return bh_launch(k, BH_SHAPE(BENCH_SIDE / 16, BENCH_SIDE / 16, 1, 16, 16, 1),
                     BH_ARGS(BH_IN(s->a), BH_IN(s->b), BH_OUT(s->c), (uint32_t)BENCH_SIDE), NULL,
                     t);
}
static bh_status histogram(const bench_side *s, bh_kernel k, bh_ticket *t) {
    return bh_launch(k, BH_SHAPE(64, 1, 1, 256, 1, 1),
                     BH_ARGS(BH_IN(s->a), BH_INOUT(s->c), (uint32_t)BENCH_COUNT), NULL, t);
}
static bh_status stencil(const bench_side *s, bh_kernel k, bh_ticket *t) {
    return bh_launch(
        k, BH_SHAPE(2 * BENCH_SIDE / 32, 2 * BENCH_SIDE / 8, 1, 32, 8, 1),
        BH_ARGS(BH_IN(s->a), BH_OUT(s->c), (uint32_t)(2 * BENCH_SIDE), (uint32_t)(2 * BENCH_SIDE)),
        NULL, t);
}

static bh_status black_scholes(const bench_side *s, bh_kernel k, bh_ticket *t) {
    return bh_launch(k, BH_GRID(BENCH_COUNT, 256),
                     BH_ARGS(BH_IN(s->a), BH_OUT(s->b), BH_OUT(s->c), (uint32_t)BENCH_COUNT), NULL,
                     t);
}

const bench_trial bench_trials[BENCH_TRIALS] = {
    {"saxpy", saxpy},         {"reduce", reduce},   {"matmul", matmul},
    {"histogram", histogram}, {"stencil", stencil}, {"black_scholes", black_scholes}};

double bench_trial_ms(const bench_side *s, const bench_trial *what) {
    bh_kernel kernel;
    BENCH_NEED(bh_kernel_get(s->module, what->name, &kernel));
    double best = 0;
    for (int round = 0; round <= ROUNDS; round++) {
        bh_ticket ticket;
        uint64_t began = bench_now_ns();
        BENCH_NEED(what->launch(s, kernel, &ticket));
        BENCH_NEED(bh_wait(ticket, 60 * BENCH_S));
        double ms = (double)(bench_now_ns() - began) / 1e6;
        if (round > 0 && (round == 1 || ms < best)) best = ms;
    }
    return best;
}
