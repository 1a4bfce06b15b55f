/* SPDX-License-Identifier: Apache-2.0 */
/* Hundreds of losses in a row: every ticket resolves, intact bytes stay, and nothing is left over,
 * memory of the device included. Ends with 1 if that does not hold. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/bench.h"
#include "support/process.h"

enum { INTACT = 256 * 1024, TOUCHED = 4096, TICKETS = 6, STATUSES = 32 };
#define MIB         (1024.0 * 1024.0)
#define PATIENCE_NS (30 * BENCH_S)
/* What a GPU hands out memory by. A leak would show as one for each loss. */
#define GRANULE (2 * MIB)

/* Answers about failed tickets are kept as long as the program runs: a record of this size for each. */
#define RECORD_BYTES 1536

typedef struct seen_process {
    pid_t pid;
    uint64_t start;
} seen_process;

typedef struct soak {
    bh_device device;
    bh_lane side;
    bool cpu;
    bench_kernels kernels;
    bh_buffer intact, touched, beside;
    bh_ticket tickets[TICKETS];
    size_t ticket_count;
    size_t answers[STATUSES];
    size_t unresolved, refused, damaged, losses;
    seen_process *seen;
    size_t seen_count, seen_capacity;
} soak;

/* What the application holds. */
typedef struct holdings {
    size_t descriptors, children;
    uint64_t anonymous, shared;
} holdings;

static holdings holdings_now(void) {
    return (holdings){.descriptors = process_descriptors(),
                      .children = process_children(),
                      .anonymous = process_memory(getpid(), "status", "RssAnon:"),
                      .shared = process_shared_bytes()};
}

static void note_process(soak *self, pid_t pid) {
    if (!pid || (self->seen_count && self->seen[self->seen_count - 1].pid == pid)) return;
    if (self->seen_count == self->seen_capacity) bench_wrong("more processes than losses allow");
    self->seen[self->seen_count++] = (seen_process){pid, process_start_time(pid)};
}

static pid_t current_worker(soak *self) {
    bh_device_status status = BH_INIT(status);
    BENCH_NEED(bh_device_get_status(self->device, &status));
    if (!status.worker_pid) bench_wrong("there is no worker");
    note_process(self, status.worker_pid);
    return status.worker_pid;
}

static void launch(soak *self, bh_kernel kernel, bh_lane lane, uint64_t deadline_ns, bh_args args) {
    if (self->ticket_count == TICKETS) bench_wrong("more than %d tickets in a round", TICKETS);
    bh_launch_options options = BH_INIT(options);
    options.lane = lane;
    options.deadline_ns = deadline_ns;
    bh_status status = bh_launch_with(kernel, BH_SHAPE(1, 1, 1, 1, 1, 1), args, &options,
                                      &self->tickets[self->ticket_count]);
    if (status == BH_E_STALE) {
        /* The loss is known already, and work in flight was writing this buffer: refused, without a ticket. */
        self->refused++;
        return;
    }
    bench_need(status, "bh_launch_with");
    self->ticket_count++;
}

static void launch_beside(soak *self, uint32_t number) {
    launch(self, self->kernels.put, self->side, 0,
           BH_ARGS(BH_INOUT(self->beside), number % 1024, number, 0u));
}

/* Loses the worker in one of several ways, with work on two lanes. */
static void lose(soak *self, uint32_t number) {
    bh_lane main_lane = {0};
    bh_args touched = BH_ARGS(BH_INOUT(self->touched));
    pid_t worker = current_worker(self);
    process_thread lane;
    self->ticket_count = 0;
    launch_beside(self, number);
    switch (number % 5) {
    case 0:
        kill(worker, SIGKILL);
        break;
    case 1:
        lane = process_threads(worker, "bh-lane-0");
        launch(self, self->kernels.endless, main_lane, 0, touched);
        process_await_kernel(worker, self->cpu,
                             lane); /* else it would be sent to the next worker */
        launch_beside(self, number + 1);
        kill(worker, SIGKILL);
        break;
    case 2:
        launch(self, self->kernels.wild, main_lane, 0, touched);
        break;
    case 3:
        launch(self, self->kernels.trap, main_lane, 0, touched);
        break;
    default:
        launch(self, self->kernels.endless, main_lane, 2 * BENCH_MS, touched);
        break;
    }
    launch_beside(self, number + 2);
}

static void settle(soak *self) {
    for (size_t i = 0; i < self->ticket_count; i++) {
        bh_status status = bh_wait(self->tickets[i], PATIENCE_NS);
        if (status == BH_E_TIMEOUT || status == BH_E_BUSY)
            self->unresolved++;
        else if (status != bh_query(self->tickets[i]))
            bench_wrong("a ticket changed its answer");
        if (status >= 0 && status < STATUSES) self->answers[status]++;
    }
    /* Whole overwrites end all doubt, and show that the next worker works. */
    BENCH_NEED(bh_buffer_fill(self->touched, 0, TOUCHED * 4ull, "\0", 1));
    BENCH_NEED(bh_buffer_fill(self->beside, 0, TOUCHED * 4ull, "\0", 1));
    self->damaged += bench_pattern_damage(self->intact, INTACT);
    /* A worker that was killed may have answered everything before it died. */
    bh_device_status status = BH_INIT(status);
    uint64_t give_up = bench_now_ns() + PATIENCE_NS;
    do {
        BENCH_NEED(bh_device_get_status(self->device, &status));
    } while (status.losses == self->losses && bench_now_ns() < give_up);
    BENCH_NEED(bh_device_wait_standby(self->device, PATIENCE_NS));
    if (status.losses != ++self->losses)
        bench_wrong("%llu losses were counted, not %zu", (unsigned long long)status.losses,
                    self->losses);
}

static void open_all(soak *self) {
    bh_device_options options = bench_options();
    options.flags = BH_DEVICE_NO_RESTART_LIMIT;
    options.quarantine_after = UINT32_MAX;
    BENCH_NEED(bh_device_open(&options, &self->device));
    self->cpu = bench_device_is_cpu(self->device);
    BENCH_NEED(bh_lane_open(self->device, &self->side));
    self->kernels = bench_kernels_load(self->device);
    self->intact = bench_patterned(self->device, INTACT);
    self->touched = bench_buffer(self->device, BH_U32, TOUCHED);
    self->beside = bench_buffer(self->device, BH_U32, TOUCHED);
    BENCH_NEED(bh_buffer_fill(self->touched, 0, TOUCHED * 4ull, "\0", 1));
    BENCH_NEED(bh_buffer_fill(self->beside, 0, TOUCHED * 4ull, "\0", 1));
    /* Once round both queues, so that all of their memory has been touched. */
    bh_launch_options options_beside = BH_INIT(options_beside);
    for (uint32_t i = 0; i < 4096; i++) {
        options_beside.lane = i % 2 ? self->side : (bh_lane){0};
        BENCH_NEED(bh_launch_with(self->kernels.put, BH_SHAPE(1, 1, 1, 1, 1, 1),
                                  BH_ARGS(BH_INOUT(self->beside), i % 1024, i, 0u), &options_beside,
                                  NULL));
    }
    BENCH_NEED(bh_device_sync(self->device, PATIENCE_NS));
    BENCH_NEED(bh_device_wait_standby(self->device, PATIENCE_NS));
}

/* Dead workers are reaped in the background: gives them a moment. */
static holdings holdings_settled(size_t children) {
    for (int i = 0; i < 200 && process_children() > children; i++) bench_sleep_ns(10 * BENCH_MS);
    return holdings_now();
}

/* What a fresh worker finds free on the device. On the CPU device that is the memory of the
 * machine, in which others come and go: 0. */
static uint64_t device_memory_free(void) {
    if (bench_on_cpu()) return 0;
    bh_device device;
    bh_device_options options = bench_options();
    options.flags = BH_DEVICE_NO_STANDBY;
    bh_device_info info = BH_INIT(info);
    BENCH_NEED(bh_device_open(&options, &device));
    BENCH_NEED(bh_device_query(device, &info));
    BENCH_NEED(bh_device_close(device));
    return info.memory_free;
}

/* How much less is free than before. The driver takes its time to clear away after a dead
 * process. */
static double device_memory_gone(uint64_t before) {
    double gone = 0;
    for (int i = 0; i < 10; i++) {
        gone = (double)before - (double)device_memory_free();
        if (gone <= 0) return 0;
        bench_sleep_ns(100 * BENCH_MS);
    }
    return gone;
}

static size_t still_alive(const soak *self) {
    size_t count = 0;
    for (size_t i = 0; i < self->seen_count; i++)
        count += process_start_time(self->seen[i].pid) == self->seen[i].start;
    return count;
}

static double grown(uint64_t after, uint64_t before) {
    return (double)after - (double)before;
}

int main(int argc, char **argv) {
    bench_begin(argc, argv,
                "soak: losses in a row, by kill, fault, trap and deadline, on two lanes");
    size_t count = bench_count(bench_on_cpu() ? 1000 : 200);
    const size_t warm = bench_on_cpu() ? 20 : 5;
    soak self = {.seen_capacity = 2 * (count + warm) + 4};
    self.seen = calloc(self.seen_capacity, sizeof *self.seen);
    if (!self.seen) bench_wrong("no memory");
    uint64_t free_when_empty = device_memory_free();
    holdings empty = holdings_now();
    open_all(&self);
    for (uint32_t i = 0; i < warm; i++) {
        lose(&self, i);
        settle(&self);
    }
    holdings_settled(2); /* no dead worker still holds memory of the device */
    uint64_t free_before = device_memory_free();
    holdings before = holdings_settled(2);
    size_t answered = 0;
    for (int i = 1; i < STATUSES; i++) answered += self.answers[i];

    uint64_t began = bench_now_ns();
    for (size_t i = 0; i < count; i++) {
        lose(&self, (uint32_t)i);
        settle(&self);
    }
    double took = (double)(bench_now_ns() - began);
    holdings after = holdings_settled(before.children);

    size_t failed = 0;
    for (int i = 1; i < STATUSES; i++) failed += self.answers[i];
    double records = (double)(failed - answered) * RECORD_BYTES;
    bench_figure("soak.losses", (double)(self.losses - warm), "count");
    bench_figure("soak.time_per_loss", took / (double)count / 1e6, "ms");
    for (int i = 0; i < STATUSES; i++) {
        if (self.answers[i]) bench_note("%zu tickets got %s", self.answers[i], bh_status_name(i));
    }
    bench_note("%zu launches were refused with BH_E_STALE", self.refused);
    bench_target("soak.tickets_unresolved", (double)self.unresolved, "count", 0);
    bench_target("soak.intact_words_changed", (double)self.damaged, "count", 0);
    bench_target("soak.descriptors_left", grown(after.descriptors, before.descriptors), "count", 0);
    bench_target("soak.processes_left", grown(after.children, before.children), "count", 0);
    bench_target("soak.shared_memory_left", grown(after.shared, before.shared) / MIB, "MiB", 0);
    bench_note("%zu tickets failed; what became of each is kept, in up to %d bytes",
               failed - answered, RECORD_BYTES);
    double anonymous = grown(after.anonymous, before.anonymous);
    bench_target("soak.memory_beyond_records",
                 anonymous > records ? (anonymous - records) / MIB : 0, "MiB", 1);
    bench_figure("soak.memory_grown", anonymous / MIB, "MiB");
    double gone = device_memory_gone(free_before);
    if (!bench_on_cpu()) bench_target("soak.device_memory_left", gone / MIB, "MiB", GRANULE / MIB);

    BENCH_NEED(bh_device_close(self.device));
    holdings closed = holdings_settled(empty.children);
    size_t alive = still_alive(&self);
    bench_target("soak.closed.descriptors_left", grown(closed.descriptors, empty.descriptors),
                 "count", 0);
    bench_target("soak.closed.processes_left", grown(closed.children, empty.children), "count", 0);
    bench_target("soak.closed.workers_alive", (double)alive, "count", 0);
    bench_target("soak.closed.shared_memory_left", grown(closed.shared, empty.shared) / MIB, "MiB",
                 0);
    double gone_when_closed = device_memory_gone(free_when_empty);
    if (!bench_on_cpu())
        bench_target("soak.closed.device_memory_left", gone_when_closed / MIB, "MiB",
                     GRANULE / MIB);
    bool clean = !self.unresolved && !self.damaged && after.descriptors <= before.descriptors &&
                 after.children <= before.children && after.shared <= before.shared &&
                 anonymous <= records + MIB && closed.descriptors <= empty.descriptors &&
                 closed.children <= empty.children && closed.shared <= empty.shared && !alive &&
                 gone <= GRANULE && gone_when_closed <= GRANULE;
    free(self.seen);
    if (!clean)
        fprintf(stderr, "error: something was left over or lost; see the lines marked MISS\n");
    return clean ? 0 : 1;
}
