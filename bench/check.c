/* SPDX-License-Identifier: Apache-2.0 */
/* What BH_DEVICE_CHECK costs: correct kernels with and without it, on the CPU device. */
#include <stdio.h>

#include "support/trials.h"

enum { MAX = 20 };

int main(int argc, char **argv) {
    bench_begin(argc, argv, "what checking every access of a kernel costs");
    if (!bench_on_cpu()) {
        bench_note("checks are for the CPU device");
        return 0;
    }
    bench_side plain = bench_side_open(0), checked = bench_side_open(BH_DEVICE_CHECK);
    for (size_t i = 0; i < BENCH_TRIALS; i++) {
        double without = bench_trial_ms(&plain, &bench_trials[i]),
               with = bench_trial_ms(&checked, &bench_trials[i]);
        char name[64];
        snprintf(name, sizeof name, "check.%s.plain", bench_trials[i].name);
        bench_figure(name, without, "ms");
        snprintf(name, sizeof name, "check.%s.checked", bench_trials[i].name);
        bench_figure(name, with, "ms");
        snprintf(name, sizeof name, "check.%s.ratio", bench_trials[i].name);
        bench_cpu_target(name, with / without, "ratio", MAX);
    }
    BENCH_NEED(bh_device_close(checked.device));
    BENCH_NEED(bh_device_close(plain.device));
    return 0;
}
