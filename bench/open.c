/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing a device, and how long a standby takes to boot. */
#include <signal.h>

#include "support/bench.h"

int main(int argc, char **argv) {
    bench_begin(argc, argv, "open: a device opened, used once, closed");
    size_t count = bench_count(bench_on_cpu() ? 30 : 5);
    bench_samples open = bench_samples_new(count), load = bench_samples_new(count),
                  first = bench_samples_new(count), standby = bench_samples_new(count),
                  close = bench_samples_new(count);
    for (size_t i = 0; i < count; i++) {
        bh_device device;
        bh_device_options options = bench_options();
        uint64_t began = bench_now_ns();
        BENCH_NEED(bh_device_open(&options, &device));
        uint64_t opened = bench_now_ns();
        bench_kernels kernels = bench_kernels_load(device);
        uint64_t loaded = bench_now_ns();
        bh_buffer word = bench_buffer(device, BH_U32, 1);
        bh_ticket ticket;
        BENCH_NEED(bh_launch(kernels.put, BH_SHAPE(1, 1, 1, 1, 1, 1),
                             BH_ARGS(BH_INOUT(word), 0u, (uint32_t)i, 1u), NULL, &ticket));
        BENCH_NEED(bh_wait(ticket, 30 * BENCH_S));
        uint64_t done = bench_now_ns();
        uint32_t value;
        BENCH_NEED(bh_buffer_read(word, 0, &value, sizeof value));
        if (value != ((uint32_t)i ^ 1u)) bench_wrong("the kernel left %u", value);
        BENCH_NEED(bh_device_wait_standby(device, 30 * BENCH_S));

        /* The standby takes over, and another one is started with all that the device holds by
         * now. */
        bh_health health = BH_INIT(health);
        BENCH_NEED(bh_device_get_health(device, &health));
        uint64_t killed = bench_now_ns(), generation = health.generation;
        if (kill(health.worker_pid, SIGKILL) != 0) bench_wrong("the worker cannot be killed");
        do BENCH_NEED(bh_device_get_health(device, &health));
        while (health.generation == generation && bench_now_ns() - killed < 30 * BENCH_S);
        BENCH_NEED(bh_device_wait_standby(device, 30 * BENCH_S));
        uint64_t ready = bench_now_ns();
        BENCH_NEED(bh_device_close(device));
        uint64_t closed = bench_now_ns();

        bench_samples_add(&open, (double)(opened - began));
        bench_samples_add(&load, (double)(loaded - opened));
        bench_samples_add(&first, (double)(done - began));
        bench_samples_add(&standby, (double)(ready - killed));
        bench_samples_add(&close, (double)(closed - ready));
    }
    bench_spread("open.open", &open, 1e6, "ms");
    bench_spread("open.load_module", &load, 1e6, "ms");
    bench_spread("open.to_first_kernel_done", &first, 1e6, "ms");
    bench_note("standby: from the kill of the worker until the next standby is ready");
    bench_spread("open.standby", &standby, 1e6, "ms");
    bench_spread("open.close", &close, 1e6, "ms");
    return 0;
}
