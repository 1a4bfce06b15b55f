/* SPDX-License-Identifier: Apache-2.0 */
/* From the loss of a worker to the next kernel done, a standby being ready. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "support/bench.h"
#include "support/process.h"

enum { INTACT = 64 * 1024, TOUCHED = 4096 };
#define DEADLINE_NS (20 * BENCH_MS)
#define PATIENCE_NS (30 * BENCH_S)

typedef struct bench {
    bh_device device;
    bench_kernels kernels;
    bh_buffer intact;  /* no kernel is ever given it to write */
    bh_buffer target;  /* the next kernel writes it; nothing that is lost does */
    bh_buffer touched; /* lost kernels write it */
    bool cpu;
    uint32_t number;
    size_t repeated; /* next kernels that were themselves taken by the worker that died */
    bench_samples takeovers;
    _Atomic size_t cold;
} bench;

static void on_loss(void *context, bh_device device, const bh_loss *loss) {
    bench *self = context;
    (void)device;
    if (!loss->from_standby) atomic_fetch_add(&self->cold, 1);
    bench_samples_add(&self->takeovers, (double)loss->takeover_ns);
}

static bh_device_status status_of(const bench *self) {
    bh_device_status status = BH_INIT(status);
    BENCH_NEED(bh_device_get_status(self->device, &status));
    return status;
}

static bh_device_status ready_status(const bench *self) {
    bh_device_status status = status_of(self);
    if (!status.worker_pid || !status.standby_ready) bench_wrong("there is no worker or standby");
    return status;
}

/* Launches on a buffer that nothing lost has touched, until it is done. */
static void next_kernel(bench *self) {
    uint32_t value = ++self->number;
    for (;;) {
        bh_ticket ticket;
        BENCH_NEED(bh_launch(self->kernels.put, BH_SHAPE(1, 1, 1, 1, 1, 1),
                             BH_ARGS(BH_INOUT(self->target), 0u, value, 0xa5a5a5a5u), &ticket));
        bh_status status = bh_wait(ticket, PATIENCE_NS);
        if (status == BH_OK) return;
        if (status != BH_E_LOST) bench_need(status, "the next kernel");
        /* It was in flight when the worker died: the buffer is in doubt now, and its one word is rewritten. */
        self->repeated++;
        BENCH_NEED(bh_buffer_accept(self->target));
    }
}

static void next_kernel_on_touched(bench *self) {
    bh_ticket ticket;
    BENCH_NEED(bh_launch(self->kernels.fill, BH_GRID(TOUCHED, 256),
                         BH_ARGS(BH_OUT(self->touched), ++self->number, (uint32_t)TOUCHED),
                         &ticket));
    BENCH_NEED(bh_wait(ticket, PATIENCE_NS));
}

/* What must hold after each loss, and a new standby. */
static void settle(bench *self, bool target_written) {
    uint32_t words[TOUCHED];
    if (target_written) {
        BENCH_NEED(bh_buffer_read(self->target, 0, words, 4));
        if (words[0] != (self->number ^ 0xa5a5a5a5u))
            bench_wrong("the next kernel left 0x%x", words[0]);
    } else {
        BENCH_NEED(bh_buffer_read(self->touched, 0, words, sizeof words));
        for (int i = 0; i < TOUCHED; i++) {
            if (words[i] != self->number) bench_wrong("word %d is %u", i, words[i]);
        }
    }
    size_t damaged = bench_pattern_damage(self->intact, INTACT);
    if (damaged) bench_wrong("%zu words of an intact buffer have changed", damaged);
    uint32_t zero = 0;
    BENCH_NEED(bh_buffer_fill(self->touched, 0, TOUCHED * 4ull, &zero, 4));
    BENCH_NEED(bh_device_wait_standby(self->device, PATIENCE_NS));
}

static void kill_worker(int32_t pid) {
    if (kill(pid, SIGKILL) != 0) bench_wrong("kill of worker %d: %s", pid, strerror(errno));
}

static void expect(bh_ticket ticket, bh_status expected) {
    bh_status status = bh_query(ticket);
    if (status != expected)
        bench_wrong("a lost kernel got %s, not %s", bh_status_name(status),
                    bh_status_name(expected));
}

static double lose_idle_worker(bench *self) {
    bh_device_status before = ready_status(self);
    uint64_t began = bench_now_ns();
    kill_worker(before.worker_pid);
    /* What the dying worker may still have done does not count. */
    do next_kernel(self);
    while (status_of(self).generation == before.generation);
    double took = (double)(bench_now_ns() - began);
    settle(self, true);
    return took;
}

static bh_ticket launch_bad(bench *self, bh_kernel kernel, uint64_t deadline_ns) {
    bh_ticket ticket;
    bh_launch_options options = BH_INIT(options);
    options.deadline_ns = deadline_ns;
    BENCH_NEED(bh_launch_with(kernel, BH_SHAPE(1, 1, 1, 1, 1, 1), BH_ARGS(BH_INOUT(self->touched)),
                              &options, &ticket));
    return ticket;
}

static double lose_busy_worker(bench *self, bool touched) {
    int32_t pid = ready_status(self).worker_pid;
    process_thread lane = process_threads(pid, "bh-lane-0");
    bh_ticket running = launch_bad(self, self->kernels.endless, 0);
    process_await_kernel(pid, self->cpu, lane);
    expect(running, BH_E_BUSY);
    uint64_t began = bench_now_ns();
    kill_worker(pid);
    if (touched)
        next_kernel_on_touched(self);
    else
        next_kernel(self);
    double took = (double)(bench_now_ns() - began);
    if (bh_query(running) == BH_OK) bench_wrong("an endless kernel is said to be done");
    settle(self, !touched);
    return took;
}

static double lose_to_busy(bench *self) {
    return lose_busy_worker(self, false);
}
static double lose_to_busy_touched(bench *self) {
    return lose_busy_worker(self, true);
}

static double lose_to_fault(bench *self) {
    uint64_t began = bench_now_ns();
    bh_ticket bad = launch_bad(self, self->kernels.wild, 0);
    next_kernel(self);
    double took = (double)(bench_now_ns() - began);
    expect(bad, BH_E_FAULT);
    settle(self, true);
    return took;
}

static double lose_to_deadline(bench *self) {
    uint64_t began = bench_now_ns();
    bh_ticket bad = launch_bad(self, self->kernels.endless, DEADLINE_NS);
    next_kernel(self);
    double took = (double)(bench_now_ns() - began);
    expect(bad, BH_E_DEADLINE);
    settle(self, true);
    return took - (double)DEADLINE_NS;
}

static bench_samples repeat(bench *self, size_t count, double (*lose)(bench *)) {
    bench_samples samples = bench_samples_new(count);
    for (size_t i = 0; i < count; i++) bench_samples_add(&samples, lose(self));
    return samples;
}

static void show(const char *name, bench_samples samples) {
    bench_spread(name, &samples, 1e6, "ms");
    bench_samples_free(&samples);
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "loss: from the loss of a worker to the next kernel done");
    size_t count = bench_count(200), fewer = count / 4 + 1;
    bench self = {.takeovers = bench_samples_new(count + 4 * fewer)};
    bh_device_options options = bench_options();
    options.flags = BH_DEVICE_NO_RESTART_LIMIT;
    options.quarantine_after = UINT32_MAX;
    BENCH_NEED(bh_device_open(&options, &self.device));
    self.cpu = bench_device_is_cpu(self.device);
    BENCH_NEED(bh_device_watch(self.device, on_loss, &self));
    self.kernels = bench_kernels_load(self.device);
    self.intact = bench_patterned(self.device, INTACT);
    self.target = bench_buffer(self.device, BH_U32, 1);
    self.touched = bench_buffer(self.device, BH_U32, TOUCHED);
    BENCH_NEED(bh_buffer_fill(self.touched, 0, TOUCHED * 4ull, "\0", 1));
    BENCH_NEED(bh_device_wait_standby(self.device, PATIENCE_NS));

    bench_samples killed = repeat(&self, count, lose_idle_worker);
    bench_figure("loss.killed.p50", bench_percentile(&killed, 50) / 1e6, "ms");
    bench_target("loss.killed.p99", bench_percentile(&killed, 99) / 1e6, "ms", 5);
    bench_figure("loss.killed.max", bench_percentile(&killed, 100) / 1e6, "ms");
    bench_samples_free(&killed);
    show("loss.killed_busy", repeat(&self, fewer, lose_to_busy));
    show("loss.killed_busy_touched", repeat(&self, fewer, lose_to_busy_touched));
    show("loss.fault", repeat(&self, fewer, lose_to_fault));
    show("loss.past_deadline", repeat(&self, fewer, lose_to_deadline));

    BENCH_NEED(bh_device_close(self.device)); /* every watcher has been told of everything */
    show("loss.takeover", self.takeovers);
    bench_figure("loss.cold_starts", (double)atomic_load(&self.cold), "count");
    bench_figure("loss.next_kernel_repeated", (double)self.repeated, "count");
    return 0;
}
