/* SPDX-License-Identifier: Apache-2.0 */
/* Closing a device that has managed buffers: which results reach the host, and what tickets say. */
#include "../support/managed.h"

enum { WORDS = 6000, FIRST = 2048, REST = WORDS - FIRST };

/* A transparent buffer. Its first bytes are mapped, so that its memory outlives the device; work
 * uses the rest. */
typedef struct kept {
    made m;
    bh_buffer rest;
} kept;

static kept kept_made(bh_device device) {
    kept k = {.m = managed_made(device, WORDS, BH_BUFFER_TRANSPARENT)};
    for (uint32_t i = 0; i < WORDS; i++) k.m.words[i] = i;
    REQUIRE_OK(bh_buffer_view(k.m.buffer, 0, FIRST, REST, &k.rest));
    REQUIRE_OK(bh_managed_map(k.m.buffer, 0, 4, BH_MAP_READ, NULL));
    return k;
}

static bool kept_has(const kept *k, uint32_t first) {
    return counts_up(k->m.words + FIRST, REST, first);
}

static void kept_end(const kept *k) {
    REQUIRE_OK(bh_managed_unmap(k->m.words, 4));
}

static bh_ticket iota(const rig *r, bh_buffer buffer, uint32_t first, bh_lane lane) {
    bh_launch_options there = on_lane(lane, 0);
    return submit(rig_kernel(r, "iota"), BH_GRID(REST, 256),
                  BH_ARGS(BH_OUT(buffer), first, (uint32_t)REST), &there);
}

/* Returns once it runs. */
static bh_ticket endless(const rig *r, bh_buffer buffer, bh_lane lane) {
    bh_buffer flag = flag_alloc(r->device);
    bh_launch_options there = on_lane(lane, 0);
    bh_ticket ticket = submit(rig_kernel(r, "endless"), BH_GRID(1, 1),
                              BH_ARGS(address_of(flag), BH_INOUT(buffer)), &there);
    flag_wait_begun(flag);
    return ticket;
}

/* Waits until the device has nothing left to do, without asking about it. */
static void let_finish(bh_device device) {
    uint64_t limit = now_ns() + LONG_NS;
    do {
        sleep_ms(5);
    } while (lanes_of(device).queue_depth && now_ns() < limit);
}

static rig open_to_close(uint64_t close_timeout_ns) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.close_timeout_ns = close_timeout_ns;
    return rig_open_with(&options);
}

TEST(a_close_brings_results_to_the_host) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    kept k = kept_made(r.device);
    bh_buffer plain = words_alloc(r.device, WORDS);
    bh_lane lane = open_lane(r.device);
    bh_ticket early = iota(&r, k.rest, 7, lane), between = iota(&r, plain, 8, lane),
              late = iota(&r, k.rest, 9, lane);
    let_finish(r.device);
    CHECK_OK(bh_device_close(r.device));
    CHECK_OK(bh_wait(between, 0));
    CHECK_OK(bh_wait(early, 0));
    CHECK_OK(bh_wait(late, 0));
    CHECK(kept_has(&k, 9));
    kept_end(&k);
}

TEST(a_close_waits_for_work_and_its_results) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    kept k = kept_made(r.device);
    bh_lane lane = open_lane(r.device);
    for (uint32_t i = 0; i < 50; i++) (void)iota(&r, k.rest, i, lane);
    bh_ticket last = iota(&r, k.rest, 50, open_lane(r.device));
    CHECK_OK(bh_device_close(r.device));
    CHECK_OK(bh_wait(last, 0));
    CHECK(kept_has(&k, 50));
    kept_end(&k);
}

typedef struct asker {
    bh_ticket ticket;
    _Atomic bh_status status;
} asker;

static void *ask_on(void *context) {
    asker *self = context;
    bh_status status;
    while ((status = bh_wait(self->ticket, 0)) == BH_E_BUSY) sleep_ms(1);
    atomic_store(&self->status, status);
    return NULL;
}

TEST(results_reach_the_host_beside_work_that_a_close_cancels) {
    rig r = open_to_close(1000 * MS);
    kept k = kept_made(r.device);
    bh_buffer plain = words_filled(r.device, WORDS, 0);
    bh_lane lane = open_lane(r.device);
    bh_ticket done = iota(&r, k.rest, 7, lane), running = endless(&r, plain, lane),
              queued = iota(&r, plain, 8, lane);
    CHECK_OK(bh_device_close(r.device));
    CHECK_OK(bh_wait(done, 0));
    CHECK_STATUS(bh_wait(running, 0), BH_E_CANCELLED);
    CHECK_STATUS(bh_wait(queued, 0), BH_E_CANCELLED);
    CHECK(kept_has(&k, 7));
    kept_end(&k);
}

/* Whatever was running or queued when the time is up. The read is told of only when no worker can
 * write its memory. */
TEST(what_a_close_does_not_wait_for_is_cancelled) {
    void *target;
    rig r = open_to_close(50 * MS);
    kept k = kept_made(r.device);
    bh_buffer plain = words_filled(r.device, WORDS, 0);
    bh_lane lane = open_lane(r.device);
    bh_ticket done = iota(&r, k.rest, 7, lane);
    let_finish(r.device);
    asker running = {.ticket = endless(&r, plain, lane)};
    bh_ticket read;
    REQUIRE_OK(bh_host_alloc(r.device, 4096, &target));
    REQUIRE_OK(bh_submit_read(lane, plain, 0, target, 4096, &read));
    bh_ticket writes = iota(&r, k.rest, 8, lane), between = iota(&r, plain, 9, lane),
              last = iota(&r, k.rest, 10, lane);
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, ask_on, &running), 0);
    CHECK_OK(bh_device_close(r.device));
    pthread_join(thread, NULL);
    CHECK_STATUS(atomic_load(&running.status), BH_E_CANCELLED);
    CHECK_STATUS(bh_wait(running.ticket, 0), BH_E_CANCELLED);
    CHECK_STATUS(bh_wait(read, 0), BH_E_CANCELLED);
    CHECK_STATUS(bh_wait(writes, 0), BH_E_CANCELLED);
    CHECK_STATUS(bh_wait(between, 0), BH_E_CANCELLED);
    CHECK_STATUS(bh_wait(last, 0), BH_E_CANCELLED);
    CHECK_STATUS(bh_wait(done, 0), BH_E_STOPPED); /* its results were left to `last` */
    kept_end(&k);
}

TEST(writers_that_a_close_does_not_wait_for_are_cancelled) {
    rig r = open_to_close(50 * MS);
    kept k = kept_made(r.device);
    bh_lane lane = open_lane(r.device);
    bh_ticket running = endless(&r, k.rest, lane), queued = iota(&r, k.rest, 7, lane);
    CHECK_OK(bh_device_close(r.device));
    CHECK_STATUS(bh_wait(running, 0), BH_E_CANCELLED);
    CHECK_STATUS(bh_wait(queued, 0), BH_E_CANCELLED);
    kept_end(&k);
}

/* Results stay on the device as long as a launch writes the buffer. Work between theirs is not
 * concerned. */
TEST(results_that_a_close_keeps_from_the_host_are_not_ok) {
    rig r = open_to_close(500 * MS);
    kept k = kept_made(r.device);
    bh_buffer plain = words_filled(r.device, WORDS, 0);
    bh_lane lane = open_lane(r.device);
    bh_ticket before = iota(&r, plain, 1, lane), early = iota(&r, k.rest, 7, lane),
              between = iota(&r, plain, 2, lane), late = iota(&r, k.rest, 8, lane),
              after = iota(&r, plain, 3, lane);
    bh_ticket running = endless(&r, k.rest, open_lane(r.device));
    CHECK_OK(bh_device_close(r.device));
    CHECK_STATUS(bh_wait(running, 0), BH_E_CANCELLED);
    CHECK_OK(bh_wait(before, 0));
    CHECK_OK(bh_wait(between, 0));
    CHECK_OK(bh_wait(after, 0));
    CHECK_STATUS(bh_wait(early, 0), BH_E_STOPPED);
    CHECK_STATUS(bh_wait(late, 0), BH_E_STOPPED);
    bh_error error;
    CHECK_STATUS(bh_ticket_error(late, &error), BH_E_STOPPED);
    CHECK_STR_CONTAINS(error.message, "transparent");
    kept_end(&k);
}
