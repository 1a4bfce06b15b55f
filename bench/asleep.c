/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting asleep on a 10 ms kernel, by futex and by epoll: the processor time that waiting costs,
 * and how long after the kernel's end the waiter is awake. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "support/bench.h"
#include "support/process.h"

#define KERNEL_NS (10 * BENCH_MS)

typedef struct usage {
    uint64_t total_ns;   /* all threads of application, worker and standby */
    process_thread lane; /* the worker's thread that runs the kernel on a CPU device */
} usage;

typedef struct bench {
    bh_device device;
    bench_kernels kernels;
    bh_buffer stamps;
    uint32_t kernels_run;
    int epoll;
    int event;
    bool cpu;
    pid_t worker, standby;
} bench;

static usage usage_now(const bench *self) {
    return (usage){.total_ns = process_cpu_ns(getpid()) + process_cpu_ns(self->worker) +
                               process_cpu_ns(self->standby),
                   .lane = process_threads(self->worker, "bh-lane-0")};
}

static uint64_t wall_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * BENCH_S + (uint64_t)now.tv_nsec;
}

static void wait_by_futex(bench *self, bh_ticket ticket) {
    (void)self;
    BENCH_NEED(bh_wait(ticket, 30 * BENCH_S));
}

static void wait_by_epoll(bench *self, bh_ticket ticket) {
    BENCH_NEED(bh_notify(ticket));
    bh_status status;
    do {
        struct epoll_event event;
        uint64_t count;
        if (epoll_wait(self->epoll, &event, 1, 30000) != 1) bench_wrong("no event for 30 s");
        if (read(self->event, &count, sizeof count) != sizeof count)
            bench_wrong("the eventfd was readable and could not be read");
        status = bh_wait(ticket, 0);
    } while (status == BH_E_BUSY);
    bench_need(status, "bh_wait");
}

typedef struct run {
    double share;  /* of a core, by everything but the kernel */
    double most;   /* the same if the thread was never kept waiting but while the kernel ran */
    double others; /* the part of it outside of the lane's thread */
    bench_samples latency; /* from the kernel's last stamp to the waiter running */
    bool stamped; /* latency is by the kernel's stamps; else what is beyond KERNEL_NS in all */
} run;

static run measure(bench *self, uint32_t count, void (*wait)(bench *, bh_ticket)) {
    run result = {.latency = bench_samples_new(count), .stamped = true};
    uint64_t *awake = calloc(count, sizeof *awake), *submitted = calloc(count, sizeof *submitted);
    uint64_t *stamps = calloc(2 * (size_t)count, sizeof *stamps);
    if (!awake || !submitted || !stamps) bench_wrong("no memory for %u times", count);

    bench_sleep_ns(5 * BENCH_MS); /* until everybody sleeps */
    uint64_t began = bench_now_ns();
    usage before = usage_now(self);
    for (uint32_t i = 0; i < count; i++) {
        bh_ticket ticket;
        submitted[i] = wall_clock_ns();
        BENCH_NEED(bh_launch(self->kernels.last, BH_SHAPE(1, 1, 1, 1, 1, 1),
                             BH_ARGS(BH_INOUT(self->stamps), i, (uint64_t)KERNEL_NS), NULL,
                             &ticket));
        wait(self, ticket);
        awake[i] = wall_clock_ns();
    }
    bench_sleep_ns(5 * BENCH_MS);
    usage after = usage_now(self);
    double wall = (double)(bench_now_ns() - began);

    BENCH_NEED(bh_buffer_read(self->stamps, 0, stamps, 2 * count * sizeof *stamps));
    double kernel_ns = 0, before_ns = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t start = stamps[2 * i], end = stamps[2 * i + 1];
        if (end < start + KERNEL_NS)
            bench_wrong("kernel %u ran from %llu to %llu", i, (unsigned long long)start,
                        (unsigned long long)end);
        kernel_ns += (double)(end - start);
        if (start < submitted[i] || end > awake[i]) result.stamped = false;
        if (start > submitted[i]) before_ns += (double)(start - submitted[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t base = result.stamped ? stamps[2 * i + 1] : submitted[i] + KERNEL_NS;
        bench_samples_add(&result.latency, (double)(awake[i] - base));
    }

    /* On a CPU device the kernel itself uses a processor: the time between its stamps, less the
     * time that its thread was kept waiting for one meanwhile. (Kept waiting, before the kernel, it
     * was when it woke up.) The rest of that thread's time counts as waiting. */
    double total = (double)(after.total_ns - before.total_ns);
    double lane = (double)(after.lane.cpu_ns - before.lane.cpu_ns);
    double delayed = (double)(after.lane.delayed_ns - before.lane.delayed_ns);
    double within = delayed;
    if (result.stamped) within = delayed > before_ns ? delayed - before_ns : 0;
    double around = self->cpu ? lane - (kernel_ns - within) : lane;
    double at_most = self->cpu ? lane - (kernel_ns - delayed) : lane;
    result.others = (total - lane) / wall;
    result.share = result.others + (around > 0 ? around / wall : 0);
    result.most = result.others + (at_most > 0 ? at_most / wall : 0);
    free(awake);
    free(submitted);
    free(stamps);
    return result;
}

static void report(const char *how, run *result) {
    char name[64];
    snprintf(name, sizeof name, "asleep.%s.cpu", how);
    bench_target(name, result->share * 100, "%", 5);
    snprintf(name, sizeof name, "asleep.%s.cpu_at_most", how);
    bench_figure(name, result->most * 100, "%");
    snprintf(name, sizeof name, "asleep.%s.cpu_outside_lane", how);
    bench_figure(name, result->others * 100, "%");
    if (!result->stamped)
        bench_note("the device's clock is not the host's: latencies are whole waits less 10 ms");
    snprintf(name, sizeof name, "asleep.%s.wake", how);
    bench_spread(name, &result->latency, 1e3, "us");
    bench_samples_free(&result->latency);
}

int main(int argc, char **argv) {
    bench_begin(argc, argv,
                "asleep: waiting for a 10 ms kernel; processor time of application, "
                "worker and standby, less the kernel's own");
    uint32_t count = (uint32_t)bench_count(100);
    bench self = {0};
    bh_device_options options = bench_options();
    BENCH_NEED(bh_device_open(&options, &self.device));
    self.cpu = bench_device_is_cpu(self.device);
    self.kernels = bench_kernels_load(self.device);
    self.stamps = bench_buffer(self.device, BH_U64, 2ull * count);
    BENCH_NEED(bh_device_eventfd(self.device, &self.event));
    self.epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    if (self.epoll < 0 || epoll_ctl(self.epoll, EPOLL_CTL_ADD, self.event, &event) != 0)
        bench_wrong("epoll does not take the device's eventfd");
    BENCH_NEED(bh_device_wait_standby(self.device, 30 * BENCH_S));
    bh_health health = BH_INIT(health);
    BENCH_NEED(bh_device_get_health(self.device, &health));
    self.worker = health.worker_pid;
    self.standby = health.standby_pids[0];

    run futex = measure(&self, count, wait_by_futex);
    report("futex", &futex);
    run epoll = measure(&self, count, wait_by_epoll);
    report("epoll", &epoll);
    close(self.epoll);
    BENCH_NEED(bh_device_close(self.device));
    return 0;
}
