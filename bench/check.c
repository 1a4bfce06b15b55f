/* SPDX-License-Identifier: Apache-2.0 */
/* What BH_DEVICE_CHECK costs: correct kernels with and without it, on the CPU device. */
#include <stdio.h>
#include <string.h>

#include "support/bench.h"
#include "support/check_source.h"

enum { SIDE = 256, COUNT = SIDE * SIDE * 4, ROUNDS = 5, MOST = 20 };

typedef struct side { /* a device, checked or not, and what the kernels need there */
    bh_device device;
    bh_module module;
    bh_buffer a, b, c;
} side;

static side side_open(uint32_t flags) {
    side s;
    bh_device_options options = bench_options();
    options.flags |= flags;
    BENCH_NEED(bh_device_open(&options, &s.device));
    BENCH_NEED(bh_module_load(s.device, bench_check_source, strlen(bench_check_source), &s.module));
    bh_buffer *buffers[] = {&s.a, &s.b, &s.c};
    for (int i = 0; i < 3; i++) *buffers[i] = bench_patterned(s.device, COUNT);
    return s;
}

typedef struct trial {
    const char *name;
    bh_status (*launch)(const side *s, bh_kernel kernel, bh_ticket *ticket);
} trial;

static bh_status saxpy(const side *s, bh_kernel k, bh_ticket *t) {
    return bh_launch(k, BH_GRID(COUNT, 256),
                     BH_ARGS(2.0f, BH_IN(s->a), BH_INOUT(s->b), (uint32_t)COUNT), NULL, t);
}
static bh_status reduce(const side *s, bh_kernel k, bh_ticket *t) {
    return bh_launch(k, BH_GRID(COUNT, 256), BH_ARGS(BH_IN(s->a), BH_OUT(s->c)), NULL, t);
}
static bh_status matmul(const side *s, bh_kernel k, bh_ticket *t) {
    return bh_launch(k, BH_SHAPE(SIDE / 16, SIDE / 16, 1, 16, 16, 1),
                     BH_ARGS(BH_IN(s->a), BH_IN(s->b), BH_OUT(s->c), (uint32_t)SIDE), NULL, t);
}
static bh_status histogram(const side *s, bh_kernel k, bh_ticket *t) {
    return bh_launch(k, BH_SHAPE(64, 1, 1, 256, 1, 1),
                     BH_ARGS(BH_IN(s->a), BH_INOUT(s->c), (uint32_t)COUNT), NULL, t);
}
static bh_status stencil(const side *s, bh_kernel k, bh_ticket *t) {
    return bh_launch(k, BH_SHAPE(2 * SIDE / 32, 2 * SIDE / 8, 1, 32, 8, 1),
                     BH_ARGS(BH_IN(s->a), BH_OUT(s->c), (uint32_t)(2 * SIDE), (uint32_t)(2 * SIDE)),
                     NULL, t);
}

/* The fastest of several, because others use the machine too. */
static double fastest_ms(const side *s, const trial *what) {
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

int main(int argc, char **argv) {
    static const trial trials[] = {{"saxpy", saxpy},
                                   {"reduce", reduce},
                                   {"matmul", matmul},
                                   {"histogram", histogram},
                                   {"stencil", stencil}};
    bench_begin(argc, argv, "what checking every access of a kernel costs");
    if (!bench_on_cpu()) {
        bench_note("checks are for the CPU device");
        return 0;
    }
    side plain = side_open(0), checked = side_open(BH_DEVICE_CHECK);
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        double without = fastest_ms(&plain, &trials[i]), with = fastest_ms(&checked, &trials[i]);
        char name[64];
        snprintf(name, sizeof name, "check.%s.plain", trials[i].name);
        bench_figure(name, without, "ms");
        snprintf(name, sizeof name, "check.%s.checked", trials[i].name);
        bench_figure(name, with, "ms");
        snprintf(name, sizeof name, "check.%s.ratio", trials[i].name);
        bench_cpu_target(name, with / without, "ratio", MOST);
    }
    BENCH_NEED(bh_device_close(checked.device));
    BENCH_NEED(bh_device_close(plain.device));
    return 0;
}
