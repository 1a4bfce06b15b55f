/* SPDX-License-Identifier: Apache-2.0 */
/* The whole protocol in one process: submitting, waiting, cancelling and callbacks against workers
 * that fault and are killed. */
#include <bulkhead.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/process_thread.h"
#include "test.h"

static const char source[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry store(.param .u64 p, .param .u32 v) {\n"
    ".reg .u64 %rd<3>; .reg .u32 %r<2>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v];\n"
    "cvta.to.global.u64 %rd2, %rd1; st.global.u32 [%rd2], %r1; ret; }\n"
    ".visible .entry add(.param .u64 p, .param .u64 q) {\n"
    ".reg .u64 %rd<3>; .reg .u32 %r<2>;\n"
    "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];\n"
    "ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd2], %r1; ret; }\n"
    ".visible .entry crash(.param .u64 p, .param .u32 v) {\n"
    ".reg .u64 %rd<2>; .reg .u32 %r<2>;\n"
    "mov.u64 %rd1, 64; mov.u32 %r1, 1; st.global.u32 [%rd1], %r1; ret; }\n";

typedef struct fixture {
    bh_device device;
    bh_module module;
    bh_kernel store, add, crash;
} fixture;

static void open_fixture(fixture *self) {
    bh_device_options options = BH_INIT(options);
    options.device = "cpu";
    options.flags = BH_DEVICE_NO_RESTART_LIMIT;
    options.quarantine_after = 1000000;
    options.queue_length = 64;
    REQUIRE_EQ(bh_device_open(&options, &self->device), BH_OK);
    REQUIRE_EQ(bh_module_load(self->device, source, sizeof source - 1, &self->module), BH_OK);
    REQUIRE_EQ(bh_kernel_get(self->module, "store", &self->store), BH_OK);
    REQUIRE_EQ(bh_kernel_get(self->module, "add", &self->add), BH_OK);
    REQUIRE_EQ(bh_kernel_get(self->module, "crash", &self->crash), BH_OK);
}

static void count_done(void *context, bh_ticket ticket, bh_status status) {
    (void)ticket;
    (void)status;
    atomic_fetch_add((_Atomic int *)context, 1);
}

static bool expected_status(bh_status status) {
    return status == BH_OK || status == BH_E_LOST || status == BH_E_STALE || status == BH_E_FAULT ||
           status == BH_E_CANCELLED || status == BH_E_BUSY;
}

/* A thread's verdict on something that should not be. */
#define UNEXPECTED(self, ...)                                                                      \
    do {                                                                                           \
        FAIL(__VA_ARGS__);                                                                         \
        atomic_fetch_add((self)->unexpected, 1);                                                   \
    } while (0)

typedef struct submitter {
    fixture *shared;
    unsigned seed;
    int rounds;
    _Atomic int *callbacks_due, *callbacks_run;
    _Atomic int *unexpected;
} submitter;

/* Launches on a lane and buffer of its own; whatever is lost is done again; what is read back must
 * be what was stored last. */
static void *submit_main(void *argument) {
    submitter *self = argument;
    fixture *shared = self->shared;
    bh_lane lane;
    bh_buffer one, two;
    if (bh_lane_open(shared->device, NULL, &lane) != BH_OK ||
        bh_buffer_alloc(shared->device, BH_U32, 16, NULL, &one) != BH_OK ||
        bh_buffer_alloc(shared->device, BH_U32, 16, NULL, &two) != BH_OK) {
        bh_error why;
        bh_last_error(&why);
        UNEXPECTED(self, "no lane or buffer: %s", why.message);
        return NULL;
    }
    bh_launch_options options = BH_INIT(options);
    options.lane = lane;
    for (int i = 0; i < self->rounds; i++) {
        uint32_t value = (uint32_t)i * 2 + 1, got = 0;
        bh_ticket first, second;
        options.flags = rand_r(&self->seed) % 2 ? BH_SUBMIT_IDEMPOTENT : 0;
        bh_status a =
            bh_launch(shared->store, BH_GRID(1, 1), BH_ARGS(BH_OUT(one), value), &options, &first);
        bh_status b = a == BH_OK ? bh_launch(shared->add, BH_GRID(1, 1),
                                             BH_ARGS(BH_IN(one), BH_OUT(two)), &options, &second)
                                 : a;
        if (!expected_status(a) || !expected_status(b))
            UNEXPECTED(self, "submitted: %d, %d", (int)a, (int)b);
        if (a != BH_OK || b != BH_OK) continue;
        if (rand_r(&self->seed) % 4 == 0 &&
            bh_on_done(second, count_done, self->callbacks_run) == BH_OK) {
            atomic_fetch_add(self->callbacks_due, 1);
        }
        bool cancelled = rand_r(&self->seed) % 8 == 0 && bh_cancel(second) == BH_OK;
        a = bh_wait(first, BH_FOREVER);
        b = bh_wait(second, BH_FOREVER);
        if (!expected_status(a) || !expected_status(b) || (cancelled && b != BH_E_CANCELLED)) {
            UNEXPECTED(self, "waited: %d, %d, cancelled %d", (int)a, (int)b, cancelled);
        }
        if (bh_wait(second, 0) != b)
            UNEXPECTED(self, "a ticket said %d, then %d", (int)b, (int)bh_wait(second, 0));
        if (a != BH_OK || b != BH_OK) continue;
        bh_status read = bh_buffer_read(two, 0, &got, sizeof got);
        if (read == BH_OK ? got != value + 1 : !expected_status(read)) {
            UNEXPECTED(self, "read: status %d, %u instead of %u", (int)read, got, value + 1);
        }
    }
    bh_lane_release(lane);
    return NULL;
}

static void run_submitters(fixture *shared, int count, int rounds, void (*disturb)(fixture *, int),
                           int disturbances) {
    _Atomic int due = 0, run = 0, unexpected = 0;
    submitter submitters[8];
    pthread_t threads[8];
    for (int i = 0; i < count; i++) {
        submitters[i] = (submitter){shared, (unsigned)i + 1, rounds, &due, &run, &unexpected};
        REQUIRE_EQ(pthread_create(&threads[i], NULL, submit_main, &submitters[i]), 0);
    }
    for (int i = 0; i < disturbances; i++) disturb(shared, i);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    CHECK_EQ(bh_device_close(shared->device), BH_OK);
    CHECK_EQ(atomic_load(&unexpected), 0);
    CHECK_EQ(atomic_load(&run), atomic_load(&due));
}

TEST_TIMEOUT(many_threads_without_losses, 60) {
    fixture shared;
    open_fixture(&shared);
    run_submitters(&shared, 3, 150, NULL, 0);
}

static void crash_one(fixture *shared, int index) {
    (void)index;
    bh_buffer scratch;
    bh_ticket ticket;
    if (bh_buffer_alloc(shared->device, BH_U32, 4, NULL, &scratch) != BH_OK) return;
    if (bh_launch(shared->crash, BH_GRID(1, 1), BH_ARGS(BH_OUT(scratch), 1u), NULL, &ticket) ==
        BH_OK) {
        bh_status status = bh_wait(ticket, BH_FOREVER);
        CHECK(status == BH_E_FAULT || status == BH_E_LOST);
    }
    bh_buffer_release(scratch);
}

TEST_TIMEOUT(kernels_that_fault_under_load, 90) {
    fixture shared;
    open_fixture(&shared);
    run_submitters(&shared, 3, 100, crash_one, 8);
}

static void kill_one(fixture *shared, int index) {
    struct timespec pause = {.tv_nsec = 1000000 * (1 + index % 7)};
    nanosleep(&pause, NULL);
    bh_health health = BH_INIT(health);
    bh_device_get_health(shared->device, &health);
    if (index % 5 == 4) kill_worker_thread(health.standby_pids[0]);
    kill_worker_thread(health.worker_pid);
}

TEST_TIMEOUT(workers_killed_under_load, 90) {
    fixture shared;
    open_fixture(&shared);
    run_submitters(&shared, 3, 100, kill_one, 12);
}

TEST_TIMEOUT(sync_transfers_survive_kills, 60) {
    fixture shared;
    open_fixture(&shared);
    enum { WORDS = 200000 };
    uint32_t *from = malloc(WORDS * sizeof *from), *to = malloc(WORDS * sizeof *to);
    bh_buffer buffer;
    CHECK_EQ(bh_buffer_alloc(shared.device, BH_U32, WORDS, NULL, &buffer), BH_OK);
    for (int round = 0; round < 6; round++) {
        for (uint32_t i = 0; i < WORDS; i++) from[i] = i * 2654435761u + (uint32_t)round;
        bh_status status = bh_buffer_write(buffer, 0, from, WORDS * sizeof *from);
        bh_health state = BH_INIT(state);
        bh_device_get_health(shared.device, &state);
        kill_worker_thread(state.worker_pid);
        CHECK_EQ(status, BH_OK);
        CHECK_EQ(bh_buffer_read(buffer, 0, to, WORDS * sizeof *to), BH_OK);
        CHECK(memcmp(from, to, WORDS * sizeof *to) == 0);
    }
    free(from);
    free(to);
    CHECK_EQ(bh_device_close(shared.device), BH_OK);
}

typedef struct replayer {
    fixture *shared;
    bh_sequence sequence; /* everybody's */
    _Atomic int *unexpected;
} replayer;

/* A sequence of its own, bound anew for every replay, and one that all threads change. */
static void *replay_main(void *argument) {
    replayer *self = argument;
    bh_device device = self->shared->device;
    bh_lane lane;
    bh_buffer recorded, outs[4];
    bh_sequence mine;
    bool ready = bh_lane_open(device, NULL, &lane) == BH_OK &&
                 bh_buffer_alloc(device, BH_U32, 16, NULL, &recorded) == BH_OK &&
                 bh_sequence_begin(device, NULL, &mine) == BH_OK;
    for (int i = 0; i < 4; i++)
        ready &= bh_buffer_alloc(device, BH_U32, 16, NULL, &outs[i]) == BH_OK;
    ready = ready &&
            bh_sequence_launch(mine, self->shared->store, BH_GRID(1, 1),
                               BH_ARGS(BH_OUT(recorded), 0u), NULL, NULL) == BH_OK &&
            bh_sequence_finish(mine) == BH_OK;
    if (!ready) {
        UNEXPECTED(self, "no sequence");
        return NULL;
    }
    bh_submit_options options = BH_INIT(options);
    options.lane = lane;
    options.flags = BH_SUBMIT_IDEMPOTENT;
    for (uint32_t i = 0; i < 100; i++) {
        bh_ticket tickets[4];
        uint32_t got[4] = {0};
        for (uint32_t k = 0; k < 4; k++) {
            options.repeat = 1 + k % 2;
            bh_status status = bh_sequence_bind(mine, recorded, outs[k]);
            if (status == BH_OK) status = bh_sequence_set(mine, 0, 1, BH_ARG(i * 4 + k));
            if (status == BH_OK) status = bh_sequence_submit(mine, &options, &tickets[k]);
            if (status != BH_OK) UNEXPECTED(self, "not submitted: %d", (int)status);
        }
        (void)bh_sequence_set(self->sequence, 0, 1, BH_ARG(i));
        bh_status shared = bh_sequence_submit(self->sequence, &options, NULL);
        if (!expected_status(shared)) UNEXPECTED(self, "not shared: %d", (int)shared);
        for (uint32_t k = 0; k < 4; k++) {
            bh_status status = bh_wait(tickets[k], BH_FOREVER);
            if (status == BH_OK) status = bh_buffer_read(outs[k], 0, &got[k], sizeof got[k]);
            if (status != BH_OK || got[k] != i * 4 + k)
                UNEXPECTED(self, "replayed: status %d, %u instead of %u", (int)status, got[k],
                           i * 4 + k);
        }
    }
    bh_sequence_release(mine);
    bh_lane_release(lane);
    return NULL;
}

TEST_TIMEOUT(sequences_replayed_while_workers_are_killed, 90) {
    fixture shared;
    open_fixture(&shared);
    bh_buffer common;
    bh_sequence sequence;
    REQUIRE_EQ(bh_buffer_alloc(shared.device, BH_U32, 16, NULL, &common), BH_OK);
    REQUIRE_EQ(bh_sequence_begin(shared.device, NULL, &sequence), BH_OK);
    REQUIRE_EQ(bh_sequence_launch(sequence, shared.store, BH_GRID(1, 1),
                                  BH_ARGS(BH_OUT(common), 0u), NULL, NULL),
               BH_OK);
    REQUIRE_EQ(bh_sequence_finish(sequence), BH_OK);
    _Atomic int unexpected = 0;
    replayer self = {&shared, sequence, &unexpected};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        REQUIRE_EQ(pthread_create(&threads[i], NULL, replay_main, &self), 0);
    for (int i = 0; i < 10; i++) kill_one(&shared, i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    CHECK_EQ(bh_device_close(shared.device), BH_OK);
    CHECK_EQ(atomic_load(&unexpected), 0);
}
