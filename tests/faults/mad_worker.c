/* SPDX-License-Identifier: Apache-2.0 */
/* A worker gone mad: what it writes to the shared control block is nonsense. The application does
 * not crash, its calls come back, and the device can be closed. */
#include <signal.h>

#include "../support/control.h"

static uint64_t nonsense(rng *random) {
    switch (rng_below(random, 5)) {
    case 0:
        return UINT64_MAX;
    case 1:
        return 0;
    case 2:
        return rng_below(random, 200);
    case 3:
        return UINT64_C(1) << rng_below(random, 64);
    default:
        return (uint64_t)rng_next(random) << 32 | rng_next(random);
    }
}

/* It stands for a worker, which maps this memory itself: that the application places new memory
 * here meanwhile is no race. */
__attribute__((no_sanitize_thread)) static void scribble(bh__front *front, rng *random) {
    bh__area *area = area_at(front, rng_below(random, BH__AREAS));
    bh__lane_area *lane = &area->lane[rng_below(random, 4)];
    switch (rng_below(random, 7)) {
    case 0:
        atomic_store(&lane->done, nonsense(random));
        break;
    case 1: /* the flags are the application's */
        atomic_store(&lane->claim, nonsense(random) & ~(BH__FROZEN | BH__PAUSED));
        break;
    case 2:
        atomic_store(&area->reports_taken, (uint32_t)nonsense(random));
        break;
    case 3:
        atomic_store(&area->reports_made, (uint32_t)nonsense(random));
        break;
    case 4:
        memset(&area->reports[rng_below(random, BH__REPORTS)], (int)nonsense(random),
               sizeof area->reports[0]);
        break;
    case 5:
        memset(&area->fault, (int)nonsense(random), sizeof area->fault);
        break;
    default:
        atomic_store(&area->fault_state, (uint32_t)nonsense(random));
        break;
    }
}

/* Calls of every kind, none of which may hang: whatever waits is given little time. */
static void use_device(const rig *r, bh_lane lane, bh_buffer x) {
    bh_launch_options options = on_lane(lane, BH_SUBMIT_NO_BLOCK);
    bh_ticket ticket;
    bh_error error;
    uint32_t value = 7;
    options.deadline_ns = 20 * MS;
    bh_status status = bh_launch(rig_kernel(r, "churn"), BH_GRID(64, 64),
                                 BH_ARGS(BH_INOUT(x), 1u, 64u), &options, &ticket);
    if (status == BH_OK) {
        bh_wait(ticket, 5 * MS);
        bh_wait(ticket, 0);
        bh_ticket_error(ticket, &error);
        CHECK(memchr(error.message, 0, sizeof error.message) != NULL);
        CHECK(memchr(error.fix, 0, sizeof error.fix) != NULL);
        CHECK(memchr(error.device_name, 0, sizeof error.device_name) != NULL);
        bh_cancel(ticket);
    }
    bh_submit_fill(lane, x, 0, 256, &value, 4, &ticket);
    bh_lane_sync(lane, 5 * MS);
    bh_buffer_accept(x);
    is_suspect(x);
}

static void run_mad(uint64_t seed, bool kills) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.close_timeout_ns = 200 * MS;
    options.quarantine_after = UINT32_MAX;
    rig r = rig_open_with(&options);
    rng random = rng_seeded(seed);
    bh__front *front = control_block();
    bh_lane lane = open_lane(r.device);
    bh_buffer x = words_filled(r.device, 64, 1);
    uint64_t end = now_ns() + test_span_ns(2500);
    while (now_ns() < end) {
        for (uint32_t i = 0, n = 1 + rng_below(&random, 4); i < n; i++) scribble(front, &random);
        use_device(&r, lane, x);
        bh_health health = health_of(r.device);
        if (health.state == BH_HEALTH_STOPPED) break;
        if (kills && rng_below(&random, 10) == 0 && health.worker_pid > 0)
            kill(health.worker_pid, SIGKILL);
    }
    uint64_t begun = now_ns();
    CHECK_OK(bh_device_close(r.device));
    CHECK_LT(now_ns() - begun, 15000 * MS * test_time_scale());
}

TEST(nonsense_in_the_completion_words_and_reports) {
    run_mad(1, false);
}

TEST(nonsense_and_workers_that_are_killed) {
    run_mad(2, true);
}

/* Only the first worker's area is written, and only once: as soon as the nonsense is noticed, the
 * standby works in its own area, and it is not to be taken for mad too. */
static bh__lane_area *first_worker_lane(void) {
    return &area_at(control_block(), 0)->lane[1];
}

TEST(a_worker_that_claims_the_impossible_is_replaced) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer intact = words_counting(r.device, 1000, 3);
    gate g = gate_close(&r, open_lane(r.device), 0);
    atomic_store(&first_worker_lane()->done, UINT64_MAX);
    CHECK_NE(bh_wait(g.ticket, 0), BH_OK); /* what was never submitted cannot be done */
    wait_generation(r.device, 2);
    CHECK_STATUS(bh_wait(g.ticket, LONG_NS), BH_E_LOST);
    CHECK(words_count(intact, 1000, 3));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_worker_that_takes_back_what_was_done_is_replaced) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_lane lane = open_lane(r.device);
    bh_lane_counters counts = BH_INIT(counts);
    bh_buffer intact = words_counting(r.device, 1000, 3);
    uint32_t value = 7;
    for (int i = 0; i < 10; i++) CHECK_OK(bh_submit_fill(lane, intact, 0, 4, &value, 4, NULL));
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    CHECK_OK(bh_lane_get_counters(r.device, lane, &counts)); /* it looks how far the lane is */
    atomic_store(&first_worker_lane()->done, 3);
    CHECK_OK(bh_lane_get_counters(r.device, lane, &counts));
    wait_generation(r.device, 2);
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* Nobody asks about the lane: whoever watches the others sees it. */
static void check_noticed(void (*spoil)(bh__lane_area *lane)) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_lane lane = open_lane(r.device), other = open_lane(r.device);
    bh_buffer x = words_counting(r.device, 1000, 3);
    uint32_t value = 7;
    for (int i = 0; i < 10; i++) CHECK_OK(bh_submit_fill(lane, x, 0, 4, &value, 4, NULL));
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    gate g = gate_close(&r, other, 0);
    sleep_ms(200); /* how far the lane was is known by now */
    spoil(first_worker_lane());
    wait_generation(r.device, 2);
    CHECK_STATUS(bh_wait(g.ticket, LONG_NS), BH_E_LOST);
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

static void spoil_done(bh__lane_area *lane) {
    atomic_store(&lane->done, 3);
}
static void spoil_claim(bh__lane_area *lane) {
    atomic_store(&lane->claim, bh__claim_word(bh__claim_position(atomic_load(&lane->claim)) + 40));
}
static void spoil_claim_back(bh__lane_area *lane) {
    atomic_store(&lane->claim, bh__claim_word(1));
}

TEST(a_completion_word_that_goes_back_is_noticed_unasked) {
    check_noticed(spoil_done);
}

TEST(a_claim_of_what_was_not_submitted_is_noticed_unasked) {
    check_noticed(spoil_claim);
}

TEST(a_claim_that_goes_back_is_noticed_unasked) {
    check_noticed(spoil_claim_back);
}

/* A word that never stands still: the worker is killed, and the device goes on. */
static void *count_for_ever(void *unused) {
    bh__area *areas[BH__AREAS];
    for (uint32_t i = 0; i < BH__AREAS; i++) areas[i] = area_at(control_block(), i);
    uint64_t begun = now_ns();
    while (now_ns() - begun < 1000 * MS)
        for (uint32_t i = 0; i < BH__AREAS; i++)
            atomic_store(&areas[i]->lane[1].done, now_ns() & 7);
    return unused;
}

/* Waits until no worker is lost any more to nonsense that is left in its area and noticed late. */
static void wait_calm(const rig *r, bh_lane lane) {
    bh_buffer x = words_filled(r->device, 64, 0);
    int calm = 0;
    for (uint64_t limit = now_ns() + LONG_NS; calm < 5 && now_ns() < limit;) {
        bh_lane_counters counts = BH_INIT(counts);
        uint64_t before = health_of(r->device).generation;
        CHECK_OK(bh_lane_get_counters(r->device, lane, &counts)); /* it looks how far the lane is */
        sleep_ms(50);
        bh_status status =
            run_now(rig_kernel(r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u));
        if (status != BH_OK) CHECK_OK(bh_buffer_accept(x));
        calm = status == BH_OK && health_of(r->device).generation == before ? calm + 1 : 0;
    }
    CHECK_EQ(calm, 5);
}

TEST(a_completion_word_that_never_stands_still) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_lane lane = open_lane(r.device);
    pthread_t thread;
    gate g = gate_close(&r, lane, 0);
    REQUIRE(pthread_create(&thread, NULL, count_for_ever, NULL) == 0);
    pthread_join(thread, NULL);
    /* What such a worker says of its own request may be believed; it is answered in any case. */
    bh_status status = bh_wait(g.ticket, LONG_NS);
    CHECK(status == BH_OK || status == BH_E_LOST);
    wait_calm(&r, lane);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* ---- answers that a worker must not give ---- */

/* A refusal with a status that means something to whoever asks: "not done yet". */
TEST(a_refusal_that_says_not_yet_is_an_answer) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    gate g = gate_close(&r, open_lane(r.device), 0);
    bh__area *area = area_at(control_block(), 0);
    area->reports[0] = (bh__report){.lane = 1, .sequence = g.ticket.sequence, .status = BH_E_BUSY};
    atomic_store(&area->reports_made, 1);
    kill_worker(r.device, SIGKILL);
    CHECK_STATUS(bh_wait(g.ticket, LONG_NS), BH_E_INTERNAL);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* What is begun stays so, also if the worker says that it has taken nothing. */
TEST(a_request_is_not_begun_again_for_a_claim_that_goes_back) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    gate g = gate_close(&r, open_lane(r.device), 0);
    sleep_ms(200); /* how far the lane is taken is known by now */
    bh__lane_area *lane = first_worker_lane();
    /* Again and again: a lane that looks for more would take the request once more. */
    for (uint64_t limit = now_ns() + LONG_NS / 2;
         health_of(r.device).generation < 2 && now_ns() < limit;)
        atomic_store(&lane->claim, 0);
    wait_generation(r.device, 2);
    CHECK_STATUS(bh_wait(g.ticket, LONG_NS), BH_E_LOST);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* The worker is lost and not judged yet: it takes the freeze back and says that all is done. */
static void thaw(void *context, const bh_loss *loss, bh_verdict *verdict) {
    const bh_ticket *ticket = context;
    bh__lane_area *lane = first_worker_lane();
    (void)loss;
    (void)verdict;
    atomic_store(&lane->done, ticket->sequence);
    atomic_store(&lane->claim, bh__claim_word(ticket->sequence));
    sleep_ms(100);
}

TEST(a_lost_worker_that_thaws_itself_is_not_believed) {
    bh_ticket ticket = {0};
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.policy = thaw;
    options.policy_context = &ticket;
    rig r = rig_open_with(&options);
    gate g = gate_close(&r, open_lane(r.device), 0);
    ticket = g.ticket;
    REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
    bh_status status = BH_E_BUSY;
    for (uint64_t limit = now_ns() + LONG_NS; status == BH_E_BUSY && now_ns() < limit;)
        status = bh_wait(ticket, 0);
    CHECK_STATUS(status, BH_E_LOST);
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_LOST);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}
