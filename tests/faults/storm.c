/* SPDX-License-Identifier: Apache-2.0 */
/* Threads make calls of every sort, workers are stopped and killed, and the device is closed in the
 * middle of it. Every ticket has one answer for ever, every callback runs once, nothing hangs, and
 * what belonged to a closed device is refused also when the next one is open in its place.
 * BULKHEAD_TEST_ROUNDS: so many devices. */
#include <signal.h>

#include "../support/buffers.h"
#include "../support/support.h"

enum { THREADS = 4, SLOTS = 4, MAX = 2000, CALLS = 17 };

typedef struct told {
    bh_ticket ticket;
    bool registered;
    _Atomic(int) runs;
    _Atomic(int32_t) status;
} told;

typedef struct asked {
    bh_ticket ticket;
    bh_status answer; /* BH_E_BUSY: none yet */
} asked;

typedef struct crowd crowd;

typedef struct caller {
    crowd *all;
    rng random;
    bool late; /* this call began after the device was closed */
    asked tickets[MAX];
    told callbacks[MAX];
    int ticket_count, callback_count;
} caller;

struct crowd {
    bh_device device;
    bh_kernel store, spin, poke;
    _Atomic(uint64_t) lanes[SLOTS], buffers[SLOTS], modules[SLOTS], sequences[SLOTS],
        prepared[SLOTS], managed[SLOTS];
    _Atomic(bool) closed, stop;
    caller callers[THREADS];
    pthread_t threads[THREADS];
};

static void keep(caller *self, bh_ticket ticket) {
    if (self->late) FAIL("a device that is closed has taken work");
    if (self->ticket_count < MAX) self->tickets[self->ticket_count++] = (asked){ticket, BH_E_BUSY};
}

static void note(void *context, bh_ticket ticket, bh_status status) {
    told *self = context;
    if (bh_wait(ticket, 0) != status) FAIL("a callback is told what its ticket does not say");
    atomic_store(&self->status, status);
    atomic_fetch_add(&self->runs, 1);
}

static void ask_one(caller *self) {
    if (!self->ticket_count) return;
    asked *it = &self->tickets[rng_below(&self->random, (uint32_t)self->ticket_count)];
    uint32_t how = rng_below(&self->random, 3);
    bh_status status = how ? bh_wait(it->ticket, 0) : bh_wait(it->ticket, MS);
    if (status == BH_E_BUSY || status == BH_E_TIMEOUT) return;
    if (it->answer == BH_E_BUSY) it->answer = status;
    CHECK_EQ(it->answer, status);
}

static void call_back(caller *self) {
    if (!self->ticket_count || self->callback_count == MAX) return;
    told *it = &self->callbacks[self->callback_count++];
    it->ticket = self->tickets[rng_below(&self->random, (uint32_t)self->ticket_count)].ticket;
    it->registered = bh_on_done(it->ticket, note, it) == BH_OK;
}

static void launch(caller *self, bh_lane lane, bh_buffer buffer) {
    crowd *all = self->all;
    static const uint64_t deadlines[] = {0, 1, 5 * MS, UINT64_MAX};
    bh_launch_options options = on_lane(lane, rng_below(&self->random, 2) ? BH_SUBMIT_NO_BLOCK : 0);
    if (rng_below(&self->random, 3) == 0) options.flags |= BH_SUBMIT_IDEMPOTENT;
    options.deadline_ns = rng_below(&self->random, 20) ? 0 : deadlines[rng_below(&self->random, 4)];
    bh_ticket ticket;
    bh_status status;
    uint32_t which = rng_below(&self->random, 60);
    if (which == 0)
        status = bh_launch(all->poke, BH_GRID(1, 1), BH_ARGS(NOWHERE, 1u), &options, &ticket);
    else if (which < 20)
        status = bh_launch(all->spin, BH_GRID(4, 4), BH_ARGS(BH_OUT(buffer), which, which * 200),
                           &options, &ticket);
    else
        status =
            bh_launch(all->store, BH_GRID(1, 1), BH_ARGS(BH_OUT(buffer), which), &options, &ticket);
    if (status == BH_OK) keep(self, ticket);
}

static void record(caller *self, uint32_t slot, bh_buffer buffer) {
    crowd *all = self->all;
    bh_sequence made;
    if (bh_sequence_begin(all->device, NULL, &made) != BH_OK) return;
    (void)bh_sequence_launch(made, all->store, BH_GRID(1, 1), BH_ARGS(BH_OUT(buffer), 1u), NULL,
                             NULL);
    (void)bh_sequence_finish(made);
    bh_sequence old = {atomic_exchange(&all->sequences[slot], made.id)};
    (void)bh_sequence_release(old);
}

static void map(bh_buffer buffer) {
    void *at;
    if (bh_managed_map(buffer, 0, 4096, BH_MAP_WRITE | BH_MAP_DISCARD, &at) != BH_OK) return;
    memset(at, 1, 4096);
    CHECK_OK(bh_managed_unmap(at, 4096)); /* also after the device is closed */
}

static void make_call(caller *self) {
    crowd *all = self->all;
    bh_device device = all->device;
    uint32_t slot = rng_below(&self->random, SLOTS), other = rng_below(&self->random, SLOTS);
    bh_lane lane = {rng_below(&self->random, 3) ? atomic_load(&all->lanes[slot]) : 0}, new_lane;
    bh_buffer buffer = {atomic_load(&all->buffers[other])}, new_buffer;
    bh_module module;
    bh_prepared prepared;
    bh_ticket ticket;
    uint32_t words[64] = {0};
    self->late = atomic_load(&all->closed);
    switch (rng_below(&self->random, CALLS)) {
    case 0:
        if (bh_lane_open(device, NULL, &new_lane) == BH_OK)
            (void)bh_lane_release((bh_lane){atomic_exchange(&all->lanes[slot], new_lane.id)});
        break;
    case 1:
        (void)bh_lane_sync(lane, MS);
        (void)bh_device_sync(device, MS);
        break;
    case 2:
        if (self->ticket_count) (void)bh_cancel(self->tickets[self->ticket_count - 1].ticket);
        break;
    case 3:
        if (bh_buffer_alloc(device, BH_U32, 64, NULL, &new_buffer) == BH_OK)
            (void)bh_buffer_release(
                (bh_buffer){atomic_exchange(&all->buffers[other], new_buffer.id)});
        break;
    case 4:
        if (bh_submit_load(device, ptx_globals, strlen(ptx_globals), &module, &ticket) != BH_OK)
            break;
        keep(self, ticket);
        (void)bh_module_release((bh_module){atomic_exchange(&all->modules[slot], module.id)});
        break;
    case 5:
        (void)bh_module_global_write((bh_module){all->modules[slot]}, "counter", 0, words, 4);
        (void)bh_module_global_read((bh_module){all->modules[slot]}, "table", 0, words, 4);
        break;
    case 6:
        record(self, slot, buffer);
        break;
    case 7:
        if (bh_sequence_submit((bh_sequence){all->sequences[slot]}, NULL, &ticket) == BH_OK)
            keep(self, ticket);
        break;
    case 8:
        if (bh_prepare(all->store, BH_GRID(1, 1), BH_ARGS(BH_OUT(buffer), 1u), NULL, &prepared) ==
            BH_OK)
            (void)bh_prepared_release(
                (bh_prepared){atomic_exchange(&all->prepared[slot], prepared.id)});
        break;
    case 9:
        if (bh_prepared_launch((bh_prepared){all->prepared[slot]}, NULL, 0, &ticket) == BH_OK)
            keep(self, ticket);
        break;
    case 10:
        if (alloc_managed(device, BH_U32, 4096, 0, &new_buffer, NULL) == BH_OK)
            (void)bh_buffer_release(
                (bh_buffer){atomic_exchange(&all->managed[slot], new_buffer.id)});
        break;
    case 11:
        map((bh_buffer){all->managed[slot]});
        break;
    case 12:
        (void)bh_buffer_read(buffer, 0, words, sizeof words);
        (void)bh_buffer_accept(buffer);
        break;
    case 13:
        if (bh_submit_write(lane, buffer, 0, words, sizeof words, &ticket) == BH_OK)
            keep(self, ticket);
        break;
    case 14:
        call_back(self);
        break;
    default:
        launch(self, lane, buffer);
    }
    ask_one(self);
}

static void *make_calls(void *argument) {
    caller *self = argument;
    while (!atomic_load(&self->all->stop)) {
        make_call(self);
        if (self->late) sleep_ms(1);
    }
    return NULL;
}

/* Kills, stops and lets go on, workers and standbys alike. */
static void *harm(void *argument) {
    crowd *all = argument;
    rng random = {all->device.id};
    bh_health health = BH_INIT(health);
    while (!atomic_load(&all->closed)) {
        sleep_ms(rng_below(&random, 12));
        if (bh_device_get_health(all->device, &health) != BH_OK) continue;
        pid_t pid = rng_below(&random, 2) ? health.worker_pid : health.standby_pids[0];
        if (pid <= 0) continue;
        uint32_t what = rng_below(&random, 8);
        (void)kill(pid, what == 0 ? SIGKILL : what < 3 ? SIGSTOP : SIGCONT);
    }
    return NULL;
}

static void check_tickets(const caller *self) {
    for (int i = 0; i < self->ticket_count; i++) {
        const asked *it = &self->tickets[i];
        bh_status status = bh_wait(it->ticket, 0);
        bh_error error;
        if (status == BH_E_BUSY || status == BH_E_INVALID || status == BH_E_INTERNAL)
            FAIL("a ticket of a closed device says %s", bh_status_name(status));
        if (it->answer != BH_E_BUSY) CHECK_EQ(it->answer, status);
        CHECK_EQ(bh_wait(it->ticket, BH_FOREVER), status);
        CHECK_EQ(bh_ticket_error(it->ticket, &error), status);
        CHECK_EQ(error.status, status);
        if (status != BH_OK) CHECK(error.message[0] && error.fix[0]);
    }
    for (int i = 0; i < self->callback_count; i++) {
        const told *it = &self->callbacks[i];
        CHECK_EQ(atomic_load(&it->runs), it->registered);
        if (it->registered) CHECK_EQ(atomic_load(&it->status), bh_wait(it->ticket, 0));
    }
}

static crowd *crowd_open(rng *random) {
    static const uint64_t closes[] = {1, MS, 50 * MS};
    bh_device_options options = device_options(rng_below(random, 4) ? 0 : BH_DEVICE_NO_STANDBY);
    options.close_timeout_ns = closes[rng_below(random, 3)];
    options.stuck_timeout_ns = rng_below(random, 2) ? 50 * MS : 200 * MS;
    if (strncmp(test_device(), "cpu", 3) != 0) options.stuck_timeout_ns = 0; /* GPUs take longer */
    options.restart_limit = rng_below(random, 3) ? 1000 : 1;
    options.queue_length = rng_below(random, 2) ? 64 : 0;
    rig r = rig_open_with(&options);
    crowd *all = calloc(1, sizeof *all);
    REQUIRE(all);
    all->device = r.device;
    all->store = rig_kernel(&r, "store_word");
    all->spin = rig_kernel(&r, "spin");
    all->poke = rig_kernel(&r, "poke");
    for (uint32_t i = 0; i < SLOTS; i++) {
        atomic_store(&all->lanes[i], open_lane(r.device).id);
        atomic_store(&all->buffers[i], words_filled(r.device, 64, 0).id);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        all->callers[i].all = all;
        all->callers[i].random = (rng){rng_next(random)};
        REQUIRE_EQ(pthread_create(&all->threads[i], NULL, make_calls, &all->callers[i]), 0);
    }
    return all;
}

static void crowd_end(crowd *all) {
    atomic_store(&all->stop, true);
    for (uint32_t i = 0; i < THREADS; i++) pthread_join(all->threads[i], NULL);
    for (uint32_t i = 0; i < THREADS; i++) check_tickets(&all->callers[i]);
    free(all);
}

TEST_TIMEOUT(calls_of_every_sort_while_the_device_is_closed, 60) {
    const char *text = getenv("BULKHEAD_TEST_ROUNDS");
    int rounds = text ? atoi(text) : 12;
    rng random = rng_seeded(2026);
    crowd *before = NULL;
    for (int i = 0; i < rounds && test_failures() == 0; i++) {
        crowd *all = crowd_open(&random);
        pthread_t harmer;
        REQUIRE_EQ(pthread_create(&harmer, NULL, harm, all), 0);
        sleep_ms(rng_below(&random, 120));
        uint64_t began = now_ns();
        CHECK_OK(bh_device_close(all->device));
        CHECK_LT(now_ns() - began, 10000 * MS * test_time_scale());
        atomic_store(&all->closed, true);
        pthread_join(harmer, NULL);
        /* Those of the device before go on with what is no longer theirs while this one was
         * open. */
        if (before) crowd_end(before);
        before = all;
    }
    if (before) crowd_end(before);
}
