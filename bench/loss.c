/* SPDX-License-Identifier: Apache-2.0 */
/* From the loss of a worker to the next kernel done, a standby being ready, and without one. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support/bench.h"
#include "support/process.h"

enum { INTACT = 64 * 1024, TOUCHED = 4096 };
#define DEADLINE_NS (20 * BENCH_MS)
#define PATIENCE_NS (30 * BENCH_S)
#define LARGE_WORDS (1ull << 28) /* 1 GiB */

typedef struct bench {
    bh_device device;
    bool standby;
    bench_kernels kernels;
    bh_buffer intact;  /* no kernel is ever given it to write */
    bh_buffer target;  /* the next kernel writes it; nothing that is lost does */
    bh_buffer touched; /* lost kernels write it */
    bool cpu;
    uint32_t number;
    size_t repeated; /* next kernels that were themselves taken by the worker that died */
    bench_samples takeovers;
    _Atomic uint64_t known_at; /* the latest loss, as told by its watcher: a little late */
    _Atomic size_t cold;
} bench;

/* Until the next kernel is done, in ns. */
typedef struct timing {
    double whole; /* from the kill, the launch that faults, or the deadline */
    double known; /* from when the loss was known; -1: not measured */
} timing;

static void on_loss(void *context, const bh_event *event) {
    const bh_loss *loss = event->loss;
    bench *self = context;
    if (!loss->from_standby) atomic_fetch_add(&self->cold, 1);
    atomic_store(&self->known_at, bench_now_ns() - loss->takeover_ns);
    bench_samples_add(&self->takeovers, (double)loss->takeover_ns);
}

static bh_health health_of(const bench *self) {
    bh_health health = BH_INIT(health);
    BENCH_NEED(bh_device_get_health(self->device, &health));
    return health;
}

static bh_health ready_status(const bench *self) {
    bh_health health = health_of(self);
    if (!health.worker_pid || !health.standbys_ready) bench_wrong("there is no worker or standby");
    return health;
}

/* Launches on a buffer that nothing lost has touched, until it is done. */
static void next_kernel(bench *self) {
    uint32_t value = ++self->number;
    for (;;) {
        bh_ticket ticket;
        BENCH_NEED(bh_launch(self->kernels.put, BH_SHAPE(1, 1, 1, 1, 1, 1),
                             BH_ARGS(BH_INOUT(self->target), 0u, value, 0xa5a5a5a5u), NULL,
                             &ticket));
        bh_status status = bh_wait(ticket, PATIENCE_NS);
        if (status == BH_OK) return;
        if (status != BH_E_LOST) bench_need(status, "the next kernel");
        /* It was in flight when the worker died: the buffer is in doubt now, and its one word is
         * rewritten. */
        self->repeated++;
        BENCH_NEED(bh_buffer_accept(self->target));
    }
}

static void next_kernel_on_touched(bench *self) {
    bh_ticket ticket;
    BENCH_NEED(bh_launch(self->kernels.fill, BH_GRID(TOUCHED, 256),
                         BH_ARGS(BH_OUT(self->touched), ++self->number, (uint32_t)TOUCHED), NULL,
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
    if (self->standby) BENCH_NEED(bh_device_wait_standby(self->device, PATIENCE_NS));
}

static void kill_worker(int32_t pid) {
    if (kill(pid, SIGKILL) != 0) bench_wrong("kill of worker %d: %s", pid, strerror(errno));
}

static void expect(bh_ticket ticket, bh_status expected) {
    bh_status status = bh_wait(ticket, 0);
    if (status != expected)
        bench_wrong("a lost kernel got %s, not %s", bh_status_name(status),
                    bh_status_name(expected));
}

static timing lose_idle_worker(bench *self) {
    bh_health before = ready_status(self);
    uint64_t began = bench_now_ns();
    kill_worker(before.worker_pid);
    /* What the dying worker may still have done does not count. */
    do next_kernel(self);
    while (health_of(self).generation == before.generation);
    double took = (double)(bench_now_ns() - began);
    settle(self, true);
    return (timing){took, -1};
}

static bh_ticket launch_bad(bench *self, bh_kernel kernel, uint64_t deadline_ns) {
    bh_ticket ticket;
    bh_launch_options options = BH_INIT(options);
    options.deadline_ns = deadline_ns;
    BENCH_NEED(bh_launch(kernel, BH_SHAPE(1, 1, 1, 1, 1, 1), BH_ARGS(BH_INOUT(self->touched)),
                         &options, &ticket));
    return ticket;
}

static timing lose_busy_worker(bench *self, bool touched) {
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
    if (bh_wait(running, 0) == BH_OK) bench_wrong("an endless kernel is said to be done");
    settle(self, !touched);
    return (timing){took, -1};
}

static timing lose_to_busy(bench *self) {
    return lose_busy_worker(self, false);
}
static timing lose_to_busy_touched(bench *self) {
    return lose_busy_worker(self, true);
}

/* Returns when there is an answer, which comes during the takeover. Asking all the time sees it
 * sooner than sleeping does, but on the CPU device takes a processor from the next worker. */
static uint64_t await_verdict(const bench *self, bh_ticket ticket) {
    uint64_t give_up = bench_now_ns() + PATIENCE_NS;
    if (self->cpu) bh_wait(ticket, PATIENCE_NS);
    while (bh_wait(ticket, 0) == BH_E_BUSY) {
        if (bench_now_ns() > give_up) bench_wrong("a bad kernel is neither done nor lost");
        sched_yield();
    }
    return bench_now_ns();
}

static timing lose_to_kernel(bench *self, bh_kernel kernel, uint64_t deadline_ns, bool touched) {
    uint64_t began = bench_now_ns();
    bh_ticket bad = launch_bad(self, kernel, deadline_ns);
    uint64_t verdict = await_verdict(self, bad);
    if (touched)
        next_kernel_on_touched(self);
    else
        next_kernel(self);
    uint64_t done = bench_now_ns();
    expect(bad, deadline_ns ? BH_E_DEADLINE : BH_E_FAULT);
    BENCH_NEED(bh_device_sync(self->device, PATIENCE_NS)); /* on_loss has been called */
    settle(self, !touched);
    uint64_t known = atomic_load(&self->known_at);
    if (known > verdict) known = verdict;
    return (timing){(double)(done - began) - (double)deadline_ns, (double)(done - known)};
}

static timing lose_to_fault(bench *self) {
    return lose_to_kernel(self, self->kernels.wild, 0, false);
}
static timing lose_to_fault_touched(bench *self) {
    return lose_to_kernel(self, self->kernels.wild, 0, true);
}
static timing lose_to_deadline(bench *self) {
    return lose_to_kernel(self, self->kernels.endless, DEADLINE_NS, false);
}

/* ---- repeating and printing ---- */

static void repeat(bench *self, const char *name, size_t count, timing (*lose)(bench *),
                   double most_known_ms) {
    bench_samples whole = bench_samples_new(count), known = bench_samples_new(count);
    for (size_t i = 0; i < count; i++) {
        timing took = lose(self);
        bench_samples_add(&whole, took.whole);
        if (took.known >= 0) bench_samples_add(&known, took.known);
    }
    bench_spread(name, &whole, 1e6, "ms");
    if (known.count) {
        char text[64];
        double median = bench_percentile(&known, 50) / 1e6;
        snprintf(text, sizeof text, "%s.known.p50", name);
        if (most_known_ms > 0 && !bench_on_cpu())
            bench_target(text, median, "ms", most_known_ms);
        else
            bench_figure(text, median, "ms");
        snprintf(text, sizeof text, "%s.known.max", name);
        bench_figure(text, bench_percentile(&known, 100) / 1e6, "ms");
    }
    bench_samples_free(&whole);
    bench_samples_free(&known);
}

static void killed(bench *self, size_t count) {
    bench_samples samples = bench_samples_new(count);
    for (size_t i = 0; i < count; i++) bench_samples_add(&samples, lose_idle_worker(self).whole);
    bench_figure("loss.killed.p50", bench_percentile(&samples, 50) / 1e6, "ms");
    bench_cpu_target("loss.killed.p99", bench_percentile(&samples, 99) / 1e6, "ms", 5);
    bench_figure("loss.killed.max", bench_percentile(&samples, 100) / 1e6, "ms");
    bench_samples_free(&samples);
}

static void open_all(bench *self, bool standby, size_t losses) {
    *self = (bench){.standby = standby, .takeovers = bench_samples_new(losses)};
    bh_device_options options = bench_options();
    options.flags = BH_DEVICE_NO_RESTART_LIMIT | (standby ? 0 : BH_DEVICE_NO_STANDBY);
    options.quarantine_after = UINT32_MAX;
    BENCH_NEED(bh_device_open(&options, &self->device));
    self->cpu = bench_device_is_cpu(self->device);
    bench_watch_losses(self->device, on_loss, self);
    self->kernels = bench_kernels_load(self->device);
    self->target = bench_buffer(self->device, BH_U32, 1);
    self->touched = bench_buffer(self->device, BH_U32, TOUCHED);
    BENCH_NEED(bh_buffer_fill(self->touched, 0, TOUCHED * 4ull, "\0", 1));
}

static void with_standby(size_t count, size_t fewer) {
    bench self;
    open_all(&self, true, count + 5 * fewer);
    self.intact = bench_patterned(self.device, INTACT);
    BENCH_NEED(bh_device_wait_standby(self.device, PATIENCE_NS));
    killed(&self, count);
    repeat(&self, "loss.killed_busy", fewer, lose_to_busy, 0);
    repeat(&self, "loss.killed_busy_touched", fewer, lose_to_busy_touched, 0);
    repeat(&self, "loss.fault", fewer, lose_to_fault, 1);
    repeat(&self, "loss.fault_touched", fewer, lose_to_fault_touched, 0);
    repeat(&self, "loss.past_deadline", fewer, lose_to_deadline, 5);
    BENCH_NEED(bh_device_close(self.device)); /* every watcher has been told of everything */
    bench_spread("loss.takeover", &self.takeovers, 1e6, "ms");
    bench_figure("loss.cold_starts", (double)atomic_load(&self.cold), "count");
    bench_figure("loss.next_kernel_repeated", (double)self.repeated, "count");
    bench_samples_free(&self.takeovers);
}

/* Each next worker starts cold and finds 1 GiB to take over. */
static void without_standby(size_t count) {
    bench self;
    open_all(&self, false, count);
    bh_buffer large = bench_buffer(self.device, BH_U32, LARGE_WORDS);
    BENCH_NEED(bh_buffer_view(large, 0, LARGE_WORDS - INTACT, INTACT, &self.intact));
    bench_pattern_write(self.intact, INTACT);
    repeat(&self, "loss.no_standby_1GiB", count, lose_to_fault, 500);
    BENCH_NEED(bh_device_close(self.device));
    bench_samples_free(&self.takeovers);
}

/* A worker is killed again and again: how many of the losses find a standby ready. */
static void often(uint32_t standbys, size_t count, unsigned every_ms) {
    bench self = {.takeovers = bench_samples_new(count)};
    bh_device_options options = bench_options();
    options.flags = BH_DEVICE_NO_RESTART_LIMIT;
    options.standbys = standbys;
    BENCH_NEED(bh_device_open(&options, &self.device));
    bench_watch_losses(self.device, on_loss, &self);
    self.kernels = bench_kernels_load(self.device);
    self.target = bench_buffer(self.device, BH_U32, 1);
    BENCH_NEED(bh_device_wait_standby(self.device, PATIENCE_NS));
    uint64_t at = bench_now_ns();
    for (size_t i = 0; i < count; i++) {
        int32_t pid = health_of(&self).worker_pid;
        if (pid > 0) kill_worker(pid);
        next_kernel(&self);
        at += every_ms * BENCH_MS;
        uint64_t now = bench_now_ns();
        if (now < at)
            bench_sleep_ns(at - now);
        else
            at = now;
    }
    BENCH_NEED(bh_device_close(self.device)); /* every watcher has been told of everything */
    size_t losses = self.takeovers.count, cold = atomic_load(&self.cold);
    char name[64];
    snprintf(name, sizeof name, "loss.every_%u_ms.standbys_%u.ready", every_ms, standbys);
    bench_figure(name, losses ? 100.0 * (double)(losses - cold) / (double)losses : 0, "%");
    bench_samples_free(&self.takeovers);
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "loss: from the loss of a worker to the next kernel done");
    bench_note("known: from when the library knew of the loss; otherwise from the kill, the launch "
               "that faults, or the deadline");
    size_t count = bench_count(bench_on_cpu() ? 200 : 6);
    size_t fewer = bench_on_cpu() ? count / 4 + 1 : count;
    with_standby(count, fewer);
    without_standby(fewer / 2 + 1);
    /* Processes of the CPU device start in a few milliseconds. */
    unsigned every_ms = bench_on_cpu() ? 4 : 80;
    size_t kills = bench_on_cpu() ? count : 20 * count;
    often(1, kills, every_ms);
    often(4, kills, every_ms);
    return 0;
}
