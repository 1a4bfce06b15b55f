/* SPDX-License-Identifier: Apache-2.0 */
/* From the moment a worker is stopped (SIGSTOP) to the next kernel done, beyond
 * stuck_timeout_ns. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "support/bench.h"
#include "support/process.h"

#define STUCK_NS    (500 * BENCH_MS)
#define PATIENCE_NS (30 * BENCH_S)

typedef struct bench {
    bh_device device;
    bench_kernels kernels;
    bh_buffer target;  /* the next kernel writes it */
    bh_buffer touched; /* the kernel that is running does */
    uint32_t number;
} bench;

static bh_health health_of(const bench *self) {
    bh_health health = BH_INIT(health);
    BENCH_NEED(bh_device_get_health(self->device, &health));
    return health;
}

static void stop_process(int32_t pid) {
    if (kill(pid, SIGSTOP) != 0) bench_wrong("stop of process %d: %s", pid, strerror(errno));
}

/* A GPU's worker may have handed it to the driver, behind a kernel that never ends: only what may
 * be run again survives that. */
static bh_ticket next_kernel(bench *self) {
    bh_launch_options options = BH_INIT(options);
    options.flags = BH_SUBMIT_IDEMPOTENT;
    bh_ticket ticket;
    BENCH_NEED(bh_launch(self->kernels.put, BH_SHAPE(1, 1, 1, 1, 1, 1),
                         BH_ARGS(BH_OUT(self->target), 0u, ++self->number, 0xa5a5a5a5u), &options,
                         &ticket));
    return ticket;
}

/* Beyond the time-out, in ns. */
static double lose_stopped(bench *self, bool busy, bool standby_too) {
    bh_health before = health_of(self);
    if (busy) {
        process_thread lane = process_threads(before.worker_pid, "bh-lane-0");
        BENCH_NEED(bh_launch(self->kernels.endless, BH_SHAPE(1, 1, 1, 1, 1, 1),
                             BH_ARGS(BH_INOUT(self->touched)), NULL, NULL));
        process_await_kernel(before.worker_pid, bench_on_cpu(), lane);
    }
    if (standby_too) stop_process(before.standby_pids[0]);
    stop_process(before.worker_pid);
    /* Its threads run on for a moment. */
    if (!busy) bench_sleep_ns(5 * BENCH_MS);
    uint64_t began = bench_now_ns();
    BENCH_NEED(bh_wait(next_kernel(self), PATIENCE_NS));
    double took = (double)(bench_now_ns() - began);
    if (health_of(self).generation == before.generation) bench_wrong("a stopped worker went on");
    uint32_t word;
    BENCH_NEED(bh_buffer_read(self->target, 0, &word, sizeof word));
    if (word != (self->number ^ 0xa5a5a5a5u)) bench_wrong("the next kernel left 0x%x", word);
    BENCH_NEED(bh_buffer_accept(self->touched));
    BENCH_NEED(bh_device_wait_standby(self->device, PATIENCE_NS));
    return took - (double)STUCK_NS;
}

/* Without a standby a GPU's worker is started first, which takes longer than the aim. */
static void measure(bench *self, const char *name, size_t count, bool busy, bool standby_too) {
    bench_samples samples = bench_samples_new(count);
    char text[64];
    for (size_t i = 0; i < count; i++)
        bench_samples_add(&samples, lose_stopped(self, busy, standby_too));
    snprintf(text, sizeof text, "%s.p50", name);
    double median = bench_percentile(&samples, 50) / 1e6;
    if (standby_too)
        bench_cpu_target(text, median, "ms", 50);
    else
        bench_target(text, median, "ms", 50);
    snprintf(text, sizeof text, "%s.max", name);
    bench_figure(text, bench_percentile(&samples, 100) / 1e6, "ms");
    bench_samples_free(&samples);
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "stuck: from SIGSTOP of a worker to the next kernel done");
    bench_note("beyond the time-out of %.0f ms", (double)STUCK_NS / 1e6);
    bench self = {.number = 0};
    bh_device_options options = bench_options();
    options.flags = BH_DEVICE_NO_RESTART_LIMIT;
    options.stuck_timeout_ns = STUCK_NS;
    BENCH_NEED(bh_device_open(&options, &self.device));
    self.kernels = bench_kernels_load(self.device);
    self.target = bench_buffer(self.device, BH_U32, 1);
    self.touched = bench_buffer(self.device, BH_U32, 1);
    BENCH_NEED(bh_buffer_fill(self.touched, 0, 4, "\0", 1));
    BENCH_NEED(bh_device_wait_standby(self.device, PATIENCE_NS));
    size_t count = bench_count(10);
    measure(&self, "stuck.idle", count, false, false);
    measure(&self, "stuck.busy", count, true, false);
    measure(&self, "stuck.both", count, false, true);
    BENCH_NEED(bh_device_close(self.device));
    return 0;
}
