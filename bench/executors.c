/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device's interpreter and its JIT, with the same kernels and the same results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/trials.h"

static void check_equal(const bench_side *one, const bench_side *other, const char *name) {
    uint32_t *x = malloc(BENCH_COUNT * sizeof *x), *y = malloc(BENCH_COUNT * sizeof *y);
    const bh_buffer pairs[][2] = {{one->b, other->b}, {one->c, other->c}};
    for (int i = 0; x && y && i < 2; i++) {
        BENCH_NEED(bh_buffer_read(pairs[i][0], 0, x, BENCH_COUNT * sizeof *x));
        BENCH_NEED(bh_buffer_read(pairs[i][1], 0, y, BENCH_COUNT * sizeof *y));
        if (memcmp(x, y, BENCH_COUNT * sizeof *x) != 0) {
            fprintf(stderr, "error: the results of %s differ\n", name);
            exit(1);
        }
    }
    free(x);
    free(y);
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "how much faster native code of kernels is than the interpreter");
    if (!bench_on_cpu()) {
        bench_note("executors are of the CPU device");
        return 0;
    }
    setenv("BULKHEAD_EXECUTOR", "interp", 1);
    bench_side interpreted = bench_side_open(0);
    setenv("BULKHEAD_EXECUTOR", "jit", 1);
    bench_side native = bench_side_open(0);
    for (size_t i = 0; i < BENCH_TRIALS; i++) {
        const bench_trial *t = &bench_trials[i];
        double before = bench_trial_ms(&interpreted, t), after = bench_trial_ms(&native, t);
        check_equal(&interpreted, &native, t->name);
        char name[64];
        snprintf(name, sizeof name, "executors.%s.interpreter", t->name);
        bench_figure(name, before, "ms");
        snprintf(name, sizeof name, "executors.%s.jit", t->name);
        bench_figure(name, after, "ms");
        snprintf(name, sizeof name, "executors.%s.speedup", t->name);
        bench_figure(name, before / after, "ratio");
    }
    BENCH_NEED(bh_device_close(native.device));
    BENCH_NEED(bh_device_close(interpreted.device));
    return 0;
}
