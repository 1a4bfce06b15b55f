/* SPDX-License-Identifier: Apache-2.0 */
/* Asking tickets: again and again, from anywhere, after everything is closed; cancelling. */
#include <malloc.h>

#include "../support/support.h"

TEST(a_ticket_answers_the_same_for_ever) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 10, 0);
    bh_ticket good =
        submit(rig_kernel(&r, "add_one"), BH_GRID(10, 32), BH_ARGS(BH_INOUT(x), 10u), NULL);
    bh_ticket bad = submit(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS, NULL);
    CHECK_OK(bh_wait(good, LONG_NS));
    CHECK_STATUS(bh_wait(bad, LONG_NS), BH_E_FAULT);
    bh_error first, again;
    CHECK_STATUS(bh_ticket_error(bad, &first), BH_E_FAULT);
    for (int i = 0; i < 100; i++) {
        CHECK_OK(bh_wait(good, 0));
        CHECK_OK(bh_wait(good, 0));
        CHECK_STATUS(bh_wait(bad, 0), BH_E_FAULT);
        CHECK_STATUS(bh_wait(bad, 0), BH_E_FAULT);
        CHECK_STATUS(bh_ticket_error(bad, &again), BH_E_FAULT);
    }
    CHECK_STR_EQ(again.message, first.message);
    CHECK_STR_EQ(again.fix, first.fix);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_good_ticket_has_no_error) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 10, 0);
    bh_error error;
    bh_ticket t =
        submit(rig_kernel(&r, "add_one"), BH_GRID(10, 32), BH_ARGS(BH_INOUT(x), 10u), NULL);
    CHECK_OK(bh_wait(t, LONG_NS));
    memset(&error, 0xff, sizeof error);
    CHECK_OK(bh_ticket_error(t, &error));
    CHECK_EQ(error.status, BH_OK);
    CHECK_OK(bh_device_close(r.device));
}

TEST(unfinished_work_is_busy_and_times_out) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    gate g = gate_close(&r, lane, 0);
    bh_error error;
    CHECK_STATUS(bh_wait(g.ticket, 0), BH_E_BUSY);
    CHECK_STATUS(bh_ticket_error(g.ticket, &error), BH_E_BUSY);
    CHECK_STATUS(bh_wait_all(&g.ticket, 1, 0), BH_E_BUSY);
    CHECK_STATUS(bh_wait(g.ticket, 1), BH_E_TIMEOUT);
    uint64_t begun = now_ns();
    CHECK_STATUS(bh_wait(g.ticket, 50 * MS), BH_E_TIMEOUT);
    CHECK_GE(now_ns() - begun, 50 * MS);
    gate_open(&g);
    CHECK_OK(bh_wait(g.ticket, BH_FOREVER));
    CHECK_OK(bh_wait(g.ticket, 0));
    CHECK_EQ(word_read(g.mark, 0), g.value);
    CHECK_OK(bh_device_close(r.device));
}

TEST(tickets_outlive_their_lane_and_their_device) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_buffer x = words_filled(r.device, 10, 0);
    bh_ticket good =
        submit(rig_kernel(&r, "add_one"), BH_GRID(10, 32), BH_ARGS(BH_INOUT(x), 10u), &there);
    bh_ticket bad = submit(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS, &there);
    CHECK_OK(bh_lane_release(lane));
    CHECK_OK(bh_wait(good, LONG_NS));
    CHECK_STATUS(bh_wait(bad, LONG_NS), BH_E_FAULT);
    for (int i = 0; i < 50; i++) { /* lanes that could take its place */
        bh_lane other = open_lane(r.device);
        bh_launch_options elsewhere = on_lane(other, 0);
        bh_ticket t = submit(rig_kernel(&r, "add_one"), BH_GRID(10, 32), BH_ARGS(BH_INOUT(x), 10u),
                             &elsewhere);
        CHECK_NE(t.lane, good.lane);
        CHECK_OK(bh_lane_release(other));
    }
    CHECK_OK(bh_wait(good, 0));
    CHECK_STATUS(bh_wait(bad, 0), BH_E_FAULT);
    CHECK_OK(bh_device_close(r.device));
    bh_error error;
    CHECK_OK(bh_wait(good, 0));
    CHECK_OK(bh_wait(good, BH_FOREVER));
    CHECK_STATUS(bh_wait(bad, 0), BH_E_FAULT);
    CHECK_STATUS(bh_ticket_error(bad, &error), BH_E_FAULT);
    CHECK(error.message[0] != '\0');
    CHECK_STR_EQ(error.kernel, "trap_now");
}

TEST(tickets_of_many_closed_devices_are_remembered) {
    enum { DEVICES = 6 };
    bh_ticket tickets[DEVICES];
    for (int i = 0; i < DEVICES; i++) {
        rig r = rig_open(BH_DEVICE_NO_STANDBY);
        bh_buffer x = words_filled(r.device, 10, 0);
        tickets[i] = i % 2 ? submit(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS, NULL)
                           : submit(rig_kernel(&r, "add_one"), BH_GRID(10, 32),
                                    BH_ARGS(BH_INOUT(x), 10u), NULL);
        CHECK_STATUS(bh_wait(tickets[i], LONG_NS), i % 2 ? BH_E_FAULT : BH_OK);
        CHECK_OK(bh_device_close(r.device));
    }
    for (int i = 0; i < DEVICES; i++)
        CHECK_STATUS(bh_wait(tickets[i], 0), i % 2 ? BH_E_FAULT : BH_OK);
}

struct shared_ticket {
    bh_ticket ticket;
    _Atomic(int) waiting;
};

static void wait_for_shared(void *context, unsigned index) {
    struct shared_ticket *shared = context;
    atomic_fetch_add(&shared->waiting, 1);
    if (index % 2)
        CHECK_OK(bh_wait(shared->ticket, LONG_NS));
    else
        while (bh_wait(shared->ticket, 0) == BH_E_BUSY) sleep_ms(1);
    CHECK_OK(bh_wait(shared->ticket, 0));
}

static void *open_later(void *context) {
    gate *g = context;
    sleep_ms(30);
    gate_open(g);
    return NULL;
}

TEST(eight_threads_wait_for_one_ticket) {
    rig r = rig_open(0);
    gate g = gate_close(&r, open_lane(r.device), 0);
    struct shared_ticket shared = {g.ticket, 0};
    pthread_t opener;
    REQUIRE(pthread_create(&opener, NULL, open_later, &g) == 0);
    run_threads(8, wait_for_shared, &shared);
    pthread_join(opener, NULL);
    CHECK_OK(bh_device_close(r.device));
}

TEST(wait_all_gives_the_first_error_in_order) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer x = words_filled(r.device, 10, 0);
    bh_ticket tickets[3];
    CHECK_OK(bh_wait_all(NULL, 0, 0));
    tickets[0] =
        submit(rig_kernel(&r, "add_one"), BH_GRID(10, 32), BH_ARGS(BH_INOUT(x), 10u), NULL);
    CHECK_OK(bh_wait_all(tickets, 1, LONG_NS));
    tickets[1] = submit(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS, NULL);
    CHECK_STATUS(bh_wait(tickets[1], LONG_NS), BH_E_FAULT);
    bh_launch_options options = BH_INIT(options);
    options.deadline_ns = 30 * MS;
    bh_buffer flag = flag_alloc(r.device);
    tickets[2] = submit(rig_kernel(&r, "endless"), BH_GRID(1, 1),
                        BH_ARGS(address_of(flag), BH_OUT(x)), &options);
    CHECK_STATUS(bh_wait_all(tickets, 3, LONG_NS), BH_E_FAULT);
    CHECK_STATUS(bh_wait(tickets[2], 0), BH_E_DEADLINE);
    /* An answer that is no failure keeps the error, also behind a ticket that has failed. */
    gate g = gate_close(&r, open_lane(r.device), 0);
    bh_ticket open[2] = {tickets[2], g.ticket};
    CHECK_STATUS(bh_wait(tickets[1], 0), BH_E_FAULT);
    CHECK_STATUS(bh_wait(g.ticket, 0), BH_E_BUSY);
    CHECK_EQ(bh_last_error(NULL), BH_E_FAULT);
    CHECK_STATUS(bh_ticket_error(g.ticket, &(bh_error){0}), BH_E_BUSY);
    CHECK_EQ(bh_last_error(NULL), BH_E_FAULT);
    CHECK_STATUS(bh_wait_all(open, 2, 0), BH_E_BUSY);
    CHECK_EQ(bh_last_error(NULL), BH_E_FAULT);
    gate_open(&g);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    bh_ticket backwards[3] = {tickets[2], tickets[1], tickets[0]};
    CHECK_STATUS(bh_wait_all(backwards, 3, LONG_NS), BH_E_DEADLINE);
    CHECK_OK(bh_device_close(r.device));
}

TEST(wait_all_times_out) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 10, 0);
    gate g = gate_close(&r, open_lane(r.device), 0);
    bh_ticket tickets[2];
    tickets[0] =
        submit(rig_kernel(&r, "add_one"), BH_GRID(10, 32), BH_ARGS(BH_INOUT(x), 10u), NULL);
    tickets[1] = g.ticket;
    CHECK_STATUS(bh_wait_all(tickets, 2, 20 * MS), BH_E_TIMEOUT);
    gate_open(&g);
    CHECK_OK(bh_wait_all(tickets, 2, LONG_NS));
    CHECK_OK(bh_device_close(r.device));
}

TEST(tickets_made_up_are_recognised) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 10, 0);
    bh_ticket t =
        submit(rig_kernel(&r, "add_one"), BH_GRID(10, 32), BH_ARGS(BH_INOUT(x), 10u), NULL);
    CHECK_OK(bh_wait(t, LONG_NS));
    bh_ticket wrong[] = {{0, 0},
                         {0, 1},
                         {t.lane, 0},
                         {t.lane, t.sequence + 1},
                         {t.lane, t.sequence + 1000000},
                         {t.lane, UINT64_MAX},
                         {t.lane + 12345, 1},
                         {UINT64_MAX, 1},
                         {UINT64_MAX, UINT64_MAX}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        bh_error error;
        CHECK_REFUSED(bh_wait(wrong[i], 0), BH_E_INVALID);
        CHECK_REFUSED(bh_wait(wrong[i], 10 * MS), BH_E_INVALID);
        CHECK_REFUSED(bh_ticket_error(wrong[i], &error), BH_E_INVALID);
        CHECK_REFUSED(bh_cancel(wrong[i]), BH_E_INVALID);
        CHECK_REFUSED(bh_notify(wrong[i]), BH_E_INVALID);
        CHECK_REFUSED(bh_wait_all(&wrong[i], 1, 10 * MS), BH_E_INVALID);
    }
    CHECK_OK(bh_wait(t, 0));
    CHECK_OK(bh_device_close(r.device));
}

TEST(work_not_begun_can_be_cancelled) {
    enum { COUNT = 200 };
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    gate g = gate_close(&r, lane, 0);
    bh_buffer x = words_filled(r.device, COUNT, 0), views[COUNT];
    bh_ticket tickets[COUNT];
    bool taken_back[COUNT];
    int count = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        REQUIRE_OK(bh_buffer_view(x, 0, i, 1, &views[i]));
        tickets[i] = submit(rig_kernel(&r, "store_word"), BH_GRID(1, 1),
                            BH_ARGS(BH_OUT(views[i]), i + 1), &there);
    }
    for (int i = 0; i < COUNT; i++) {
        taken_back[i] = false;
        if (i % 3 == 0) continue;
        bh_status status = bh_cancel(tickets[i]);
        CHECK(status == BH_OK || status == BH_E_BUSY);
        taken_back[i] = status == BH_OK;
        count += taken_back[i];
        if (taken_back[i]) CHECK_STATUS(bh_wait(tickets[i], 0), BH_E_CANCELLED);
    }
    if (!has_queues(r.device)) CHECK_GT(count, COUNT / 2);
    gate_open(&g);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK_STATUS(bh_wait(tickets[i], 0), taken_back[i] ? BH_E_CANCELLED : BH_OK);
        CHECK_EQ(word_read(x, i), taken_back[i] ? 0 : i + 1);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(work_begun_or_done_cannot_be_cancelled) {
    rig r = rig_open(0);
    gate g = gate_close(&r, open_lane(r.device), 0);
    CHECK_REFUSED(bh_cancel(g.ticket), BH_E_BUSY);
    gate_open(&g);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    CHECK_REFUSED(bh_cancel(g.ticket), BH_E_INVALID);
    CHECK_OK(bh_wait(g.ticket, 0));
    CHECK_EQ(word_read(g.mark, 0), g.value);
    CHECK_OK(bh_device_close(r.device));
}

TEST(work_is_cancelled_only_once) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    gate g = gate_close(&r, lane, 0);
    bh_buffer x = words_filled(r.device, 1, 0);
    bh_ticket last = {0, 0};
    for (int i = 0; i < 200; i++)
        last = submit(rig_kernel(&r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), &there);
    bh_status status = bh_cancel(last);
    if (status == BH_E_BUSY) {
        gate_open(&g);
        SKIP("this device begins work far ahead");
    }
    CHECK_OK(status);
    CHECK_REFUSED(bh_cancel(last), BH_E_INVALID);
    CHECK_STATUS(bh_wait(last, LONG_NS), BH_E_CANCELLED);
    bh_error error;
    CHECK_STATUS(bh_ticket_error(last, &error), BH_E_CANCELLED);
    CHECK(error.message[0] != '\0');
    gate_open(&g);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_EQ(word_read(x, 0), 199);
    CHECK_OK(bh_device_close(r.device));
}

static void *wait_cancelled(void *context) {
    struct shared_ticket *shared = context;
    atomic_fetch_add(&shared->waiting, 1);
    CHECK_STATUS(bh_wait(shared->ticket, LONG_NS), BH_E_CANCELLED);
    return NULL;
}

TEST(a_waiter_is_woken_when_its_work_is_cancelled) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    gate g = gate_close(&r, lane, 0);
    bh_buffer x = words_filled(r.device, 1, 0);
    bh_ticket last = {0, 0};
    for (int i = 0; i < 200; i++)
        last = submit(rig_kernel(&r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), &there);
    struct shared_ticket shared = {last, 0};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, wait_cancelled, &shared) == 0);
    while (atomic_load(&shared.waiting) == 0) sleep_ms(1);
    sleep_ms(10);
    bh_status status = bh_cancel(last);
    if (status == BH_E_BUSY) {
        gate_open(&g);
        SKIP("this device begins work far ahead");
    }
    CHECK_OK(status);
    pthread_join(thread, NULL); /* while the gate is still closed */
    CHECK_STATUS(bh_wait(g.ticket, 0), BH_E_BUSY);
    gate_open(&g);
    CHECK_OK(bh_device_close(r.device));
}

TEST(compiles_and_loads_have_tickets_too) {
    bh_device device = open_device();
    bh_module module = {0};
    bh_ticket ticket = {0, 0};
    char *image = strdup(ptx_basic);
    REQUIRE_OK(bh_submit_load(device, image, strlen(image), &module, &ticket));
    memset(image, 'x', strlen(image)); /* was copied */
    free(image);
    CHECK_OK(bh_wait(ticket, LONG_NS));
    rig r = {device, module};
    check_device_works(&r);
    REQUIRE_OK(bh_submit_load(device, "not ptx", 7, &module, &ticket));
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_LOAD);
    bh_error error;
    CHECK_STATUS(bh_ticket_error(ticket, &error), BH_E_LOAD);
    CHECK(error.message[0] != '\0' && error.fix[0] != '\0');
    CHECK_OK(bh_device_close(device));
}

/* ---- memory for answers ---- */

enum { KEPT = 50, FAILED = 200 };

/* Cancels FAILED launches. */
static void fail_many(const rig *r, bh_buffer x, bh_ticket *failed) {
    bh_lane lane = open_lane(r->device);
    bh_launch_options there = on_lane(lane, 0);
    gate g = gate_close(r, lane, 0);
    for (int i = -BEYOND_QUEUES; i < FAILED; i++) {
        bh_ticket ticket =
            submit(rig_kernel(r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), &there);
        if (i >= 0) failed[i] = ticket;
    }
    for (int i = 0; i < FAILED; i++) REQUIRE_OK(bh_cancel(failed[i]));
    gate_open(&g);
    REQUIRE_OK(bh_lane_sync(lane, LONG_NS));
    REQUIRE_OK(bh_lane_release(lane));
}

/* Older ones keep their status, in a few bytes. */
TEST(details_of_the_latest_failures_are_kept) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 1, 0);
    bh_ticket failed[FAILED], later[FAILED];
    REQUIRE_OK(bh_failure_set_limit(KEPT));
    fail_many(&r, x, failed);
    for (int i = 0; i < FAILED; i++) {
        bh_error error;
        CHECK_STATUS(bh_ticket_error(failed[i], &error), BH_E_CANCELLED);
        bool kept = !strstr(error.message, "details are kept only for the last 50 failures");
        CHECK_EQ(kept, i >= FAILED - KEPT);
        if (!kept) CHECK_STR_CONTAINS(error.fix, "bh_failure_set_limit");
    }
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 5; i++) fail_many(&r, x, later);
    CHECK_LT((int64_t)(mallinfo2().uordblks - before), 5 * FAILED * 64);
    for (int i = 0; i < FAILED; i++) CHECK_STATUS(bh_wait(failed[i], 0), BH_E_CANCELLED);
    REQUIRE_OK(bh_failure_set_limit(KEPT / 2));
    bh_error error;
    (void)bh_ticket_error(later[FAILED - KEPT], &error);
    CHECK_STR_CONTAINS(error.message, "for the last 25 failures");
    CHECK_REFUSED(bh_failure_set_limit(UINT64_MAX), BH_E_INVALID);
    CHECK_OK(bh_device_close(r.device));
    CHECK_STATUS(bh_wait(failed[0], 0), BH_E_CANCELLED);
}
