/* SPDX-License-Identifier: Apache-2.0 */
/* A device that nobody uses: processor time and memory of the application, the worker and the
 * standby. */
#include <unistd.h>

#include "support/bench.h"
#include "support/process.h"

#define MIB (1024.0 * 1024.0)

int main(int argc, char **argv) {
    bench_begin(argc, argv, "idle: an open device with a standby, nothing to do for 2 s");
    uint64_t resident = process_memory(getpid(), "smaps_rollup", "Rss:");

    bh_device device;
    bh_device_options options = bench_options();
    BENCH_NEED(bh_device_open(&options, &device));
    bench_kernels kernels = bench_kernels_load(device);
    bh_buffer word = bench_buffer(device, BH_U32, 1);
    bh_ticket ticket;
    BENCH_NEED(bh_launch(kernels.put, BH_SHAPE(1, 1, 1, 1, 1, 1),
                         BH_ARGS(BH_INOUT(word), 0u, 5u, 3u), NULL, &ticket));
    BENCH_NEED(bh_wait(ticket, 30 * BENCH_S));
    uint32_t value;
    BENCH_NEED(bh_buffer_read(word, 0, &value, sizeof value));
    if (value != (5u ^ 3u)) bench_wrong("the kernel left %u", value);
    BENCH_NEED(bh_device_wait_standby(device, 30 * BENCH_S));
    bh_health health = BH_INIT(health);
    BENCH_NEED(bh_device_get_health(device, &health));

    bench_sleep_ns(200 * BENCH_MS);
    uint64_t application = process_other_threads_cpu_ns();
    uint64_t worker = process_cpu_ns(health.worker_pid);
    uint64_t standby = process_cpu_ns(health.standby_pids[0]);
    bench_sleep_ns(2 * BENCH_S);
    application = process_other_threads_cpu_ns() - application;
    worker = process_cpu_ns(health.worker_pid) - worker;
    standby = process_cpu_ns(health.standby_pids[0]) - standby;
    bench_note(
        "the application's time is that of the library's threads, not of the one that measures");
    bench_target("idle.cpu.application", (double)application / 1e3, "us", 0);
    bench_target("idle.cpu.worker", (double)worker / 1e3, "us", 0);
    bench_target("idle.cpu.standby", (double)standby / 1e3, "us", 0);

    double added = (double)process_memory(getpid(), "smaps_rollup", "Rss:") - (double)resident;
    bench_target("idle.resident.application_added", added / MIB, "MiB", 16);
    bench_cpu_target("idle.resident.worker",
                     (double)process_memory(health.worker_pid, "smaps_rollup", "Rss:") / MIB, "MiB",
                     64);
    bench_cpu_target("idle.resident.standby",
                     (double)process_memory(health.standby_pids[0], "smaps_rollup", "Rss:") / MIB,
                     "MiB", 64);
    bench_figure("idle.proportional.worker",
                 (double)process_memory(health.worker_pid, "smaps_rollup", "Pss:") / MIB, "MiB");
    BENCH_NEED(bh_device_close(device));
    return 0;
}
