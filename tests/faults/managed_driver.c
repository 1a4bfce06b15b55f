/* SPDX-License-Identifier: Apache-2.0 */
/* Managed buffers on the driver's own memory when workers are lost: contents go, addresses change,
 * queued work that uses them is stale. */
#include <signal.h>

#include "../support/managed.h"

enum { WORDS = 20000, BYTES = WORDS * 4 };

static bh_error last(void) {
    bh_error error;
    bh_last_error(&error);
    return error;
}

static void fill(bh_buffer buffer, uint32_t value) {
    REQUIRE_OK(bh_buffer_fill(buffer, 0, BYTES, &value, 4));
}

static bh_status add_one(const rig *r, bh_buffer buffer) {
    return run_now(rig_kernel(r, "add_one"), BH_GRID(WORDS, 128),
                   BH_ARGS(BH_INOUT(buffer), (uint32_t)WORDS));
}

/* Whatever was lost, a buffer that is written anew is as good as any. */
static void check_usable(const rig *r, bh_buffer buffer) {
    bh_buffer out = words_alloc(r->device, WORDS);
    fill(buffer, 40);
    CHECK(!is_suspect(buffer));
    REQUIRE_OK(add_one(r, buffer));
    REQUIRE_OK(prefetch_on((bh_lane){0}, buffer, 0, BYTES, BH_TO_HOST, NULL));
    REQUIRE_OK(bh_buffer_copy(out, 0, buffer, 0, BYTES));
    CHECK(words_are(out, WORDS, 41));
    REQUIRE_OK(prefetch_on((bh_lane){0}, buffer, 0, BYTES, BH_TO_DEVICE, NULL));
    REQUIRE_OK(add_one(r, buffer));
    CHECK(words_are(buffer, WORDS, 42));
    REQUIRE_OK(bh_buffer_release(out));
}

static void lose_contents(uint32_t flags) {
    rig r = rig_open(flags | BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer m = managed_driven(r.device, WORDS), plain = words_counting(r.device, WORDS, 5), view;
    REQUIRE_OK(bh_buffer_view(m, 0, 10, 10, &view));
    uint32_t word;
    for (uint32_t round = 0; round < 3; round++) {
        fill(m, round);
        if (!(flags & BH_DEVICE_NO_STANDBY)) wait_standby(r.device);
        kill_worker(r.device, SIGKILL);
        /* It was idle: any other buffer would be intact. */
        CHECK(!is_suspect(plain));
        CHECK(words_count(plain, WORDS, 5));
        CHECK(is_suspect(m));
        CHECK(is_suspect(view));
        CHECK_REFUSED(bh_buffer_read(m, 0, &word, 4), BH_E_STALE);
        CHECK_STR_CONTAINS(last().message, "driver");
        CHECK_REFUSED(add_one(&r, m), BH_E_STALE);
        CHECK_REFUSED(prefetch_on((bh_lane){0}, m, 0, 4, BH_TO_HOST, NULL), BH_E_STALE);
        REQUIRE_OK(bh_buffer_write(m, 8, &(uint32_t){77}, 4));
        CHECK_EQ(word_read(m, 2), 77);
        CHECK_REFUSED(bh_buffer_read(m, 0, &word, 4), BH_E_STALE);
        CHECK_EQ(address_of(view), address_of(m) + 40);
        check_usable(&r, m);
    }
    bh_buffer later = managed_driven(r.device, WORDS);
    check_usable(&r, later);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST_TIMEOUT(contents_are_lost_with_a_worker, 60) {
    lose_contents(0);
}

TEST_TIMEOUT(the_same_without_a_standby, 60) {
    lose_contents(BH_DEVICE_NO_STANDBY);
}

TEST(accepted_contents_are_whatever_is_there) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer m = managed_driven(r.device, WORDS);
    fill(m, 3);
    kill_worker(r.device, SIGKILL);
    CHECK(is_suspect(m));
    REQUIRE_OK(bh_buffer_accept(m));
    CHECK(!is_suspect(m));
    word_write(m, 5, 6);
    REQUIRE_OK(add_one(&r, m));
    CHECK_EQ(word_read(m, 5), 7);
    check_usable(&r, m);
    CHECK_OK(bh_device_close(r.device));
}

/* A fault in a launch that does not use it loses it all the same, and everything queued that
 * does. */
TEST_TIMEOUT(queued_work_that_uses_it_is_stale, 60) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_buffer m = managed_driven(r.device, WORDS), n = managed_driven(r.device, WORDS);
    bh_buffer a = words_filled(r.device, WORDS, 1), b = words_filled(r.device, WORDS, 2);
    bh_buffer flag = flag_alloc(r.device), mark = words_filled(r.device, 1, 0);
    fill(m, 3);
    fill(n, 4);
    wait_standby(r.device);
    bh_ticket faults = submit(rig_kernel(&r, "wait_then_poke"), BH_GRID(1, 1),
                              BH_ARGS(address_of(flag), BH_INOUT(mark), NOWHERE), &there);
    flag_wait_begun(flag);
    bh_kernel copies = rig_kernel(&r, "copy_words"), adds = rig_kernel(&r, "add_one");
    bh_ticket reads, overwrites, whole, prefetch, dependent, other;
    reads =
        submit(copies, BH_GRID(WORDS, 128), BH_ARGS(BH_IN(m), BH_OUT(a), (uint32_t)WORDS), &there);
    overwrites =
        submit(copies, BH_GRID(WORDS, 128), BH_ARGS(BH_IN(b), BH_OUT(m), (uint32_t)WORDS), &there);
    REQUIRE_OK(bh_submit_fill(lane, n, 0, BYTES, &(uint32_t){9}, 4, &whole));
    REQUIRE_OK(prefetch_on(lane, n, 0, BYTES, BH_TO_DEVICE, &prefetch));
    dependent = submit(adds, BH_GRID(WORDS, 128), BH_ARGS(BH_INOUT(a), (uint32_t)WORDS), &there);
    other = submit(adds, BH_GRID(WORDS, 128), BH_ARGS(BH_INOUT(b), (uint32_t)WORDS), &there);
    flag_raise(flag);
    CHECK_STATUS(bh_wait(faults, LONG_NS), BH_E_FAULT);
    /* A device that queues ahead has taken some of it: that is lost, which is the same to whoever
     * must do it again. */
    bh_ticket used[] = {reads, overwrites, whole, prefetch, dependent};
    for (unsigned i = 0; i < sizeof used / sizeof *used; i++) {
        bh_status status = bh_wait(used[i], LONG_NS);
        CHECK(status == BH_E_STALE || status == BH_E_LOST);
        bh_error error;
        bh_ticket_error(used[i], &error);
        if (status == BH_E_STALE && i < 4) CHECK_STR_CONTAINS(error.message, "driver");
    }
    bh_status status = bh_wait(other, LONG_NS);
    CHECK(status == BH_OK || status == BH_E_LOST);
    CHECK(is_suspect(m));
    CHECK(is_suspect(n));
    CHECK(is_suspect(a));
    if (status == BH_OK) CHECK(words_are(b, WORDS, 3));
    check_usable(&r, m);
    check_usable(&r, n);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_launch_that_faults_on_it_is_to_blame) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer m = managed_driven(r.device, WORDS);
    fill(m, 1);
    CHECK_STATUS(run_now(rig_kernel(&r, "write_then_poke"), BH_GRID(64, 64),
                         BH_ARGS(BH_INOUT(m), 64u, NOWHERE)),
                 BH_E_FAULT);
    CHECK(is_suspect(m));
    check_usable(&r, m);
    CHECK_OK(bh_device_close(r.device));
}

TEST(idempotent_work_on_it_is_not_sent_again) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_lane lane = open_lane(r.device);
    bh_buffer m = managed_driven(r.device, WORDS), flag = flag_alloc(r.device);
    fill(m, 1);
    bh_launch_options there = on_lane(lane, BH_SUBMIT_IDEMPOTENT);
    bh_ticket endless = submit(rig_kernel(&r, "gate"), BH_GRID(1, 1),
                               BH_ARGS(address_of(flag), BH_OUT(m), 5u), &there);
    flag_wait_begun(flag);
    kill_worker(r.device, SIGKILL);
    bh_status status = bh_wait(endless, LONG_NS);
    CHECK(status == BH_E_LOST || status == BH_E_STALE);
    check_usable(&r, m);
    CHECK_OK(bh_device_close(r.device));
}

TEST(advice_and_losses) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer m = managed_driven(r.device, WORDS);
    REQUIRE_OK(bh_managed_advise(m, 0, BYTES / 2, BH_ADVISE_PREFER_HOST | BH_ADVISE_READ_MOSTLY));
    for (int i = 0; i < 2; i++) {
        wait_standby(r.device);
        kill_worker(r.device, SIGKILL);
        REQUIRE_OK(bh_managed_advise(m, 0, BYTES, BH_ADVISE_ACCESSED_BY_DEVICE));
        REQUIRE_OK(bh_managed_advise(m, 0, BYTES, 0));
        check_usable(&r, m);
    }
    CHECK_OK(bh_device_close(r.device));
}

/* Made, used and released by threads while workers are killed: nobody ever reads what was not
 * written since. */
typedef struct storm {
    rig r;
    _Atomic bool over;
} storm;

static void use_it(storm *s, unsigned index) {
    bh_buffer m = managed_driven(s->r.device, WORDS);
    uint32_t words[64];
    for (uint32_t round = 0; !atomic_load(&s->over); round++) {
        uint32_t value = index * 1000 + round;
        bh_status status = bh_buffer_fill(m, 0, BYTES, &value, 4);
        if (status == BH_OK) status = add_one(&s->r, m);
        if (status == BH_OK) status = bh_buffer_read(m, 4000, words, sizeof words);
        if (status == BH_OK) {
            for (int i = 0; i < 64; i++) CHECK_EQ(words[i], value + 1);
        } else {
            CHECK(status == BH_E_STALE || status == BH_E_LOST);
        }
        if (round % 5 == 4) {
            REQUIRE_OK(bh_buffer_release(m));
            m = managed_driven(s->r.device, WORDS);
        }
    }
    REQUIRE_OK(bh_buffer_release(m));
}

static void storm_thread(void *context, unsigned index) {
    storm *s = context;
    if (index > 0) {
        use_it(s, index);
        return;
    }
    for (int i = 0; i < 6; i++) {
        sleep_ms(100);
        if (i % 2) wait_standby(s->r.device);
        kill_worker(s->r.device, SIGKILL);
    }
    atomic_store(&s->over, true);
}

TEST_TIMEOUT(threads_in_a_storm_of_losses, 90) {
    storm s = {.r = rig_open(BH_DEVICE_NO_RESTART_LIMIT)};
    (void)managed_driven(s.r.device, 1);
    run_threads(4, storm_thread, &s);
    check_device_works(&s.r);
    CHECK_OK(bh_device_close(s.r.device));
}
