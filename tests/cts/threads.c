/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads on one device: shared lanes, lanes of their own, buffers that come and go. */
#include "../support/support.h"

enum { THREADS = 8, ROUNDS = 150, WORDS = 64 };

struct crowd {
    rig r;
    bh_lane lanes[THREADS];
    bh_buffer shared;
    _Atomic(int) go;
};

static void add_on_shared_lane(void *context, unsigned index) {
    struct crowd *crowd = context;
    bh_launch_options there = on_lane(crowd->lanes[0], 0);
    bh_kernel add_one = rig_kernel(&crowd->r, "add_one");
    (void)index;
    for (int i = 0; i < ROUNDS; i++) {
        bh_ticket t = submit(add_one, BH_GRID(WORDS, 64),
                             BH_ARGS(BH_INOUT(crowd->shared), (uint32_t)WORDS), &there);
        if (i % 20 == 0) CHECK_OK(bh_wait(t, LONG_NS));
    }
}

TEST(eight_threads_submit_on_one_lane) {
    struct crowd crowd = {.r = rig_open(0)};
    crowd.lanes[0] = open_lane(crowd.r.device);
    crowd.shared = words_filled(crowd.r.device, WORDS, 0);
    run_threads(THREADS, add_on_shared_lane, &crowd);
    CHECK(words_are(crowd.shared, WORDS, THREADS * ROUNDS));
    CHECK_OK(bh_device_close(crowd.r.device));
}

static void add_on_own_lane(void *context, unsigned index) {
    struct crowd *crowd = context;
    bh_launch_options there = on_lane(crowd->lanes[index], 0);
    bh_kernel add_one = rig_kernel(&crowd->r, "add_one");
    bh_buffer own = words_filled(crowd->r.device, WORDS, index);
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        submit(add_one, BH_GRID(WORDS, 64), BH_ARGS(BH_INOUT(own), (uint32_t)WORDS), &there);
        submit(add_one, BH_GRID(WORDS, 64), BH_ARGS(BH_INOUT(crowd->shared), (uint32_t)WORDS),
               &there);
        if (i % 50 == 0) CHECK(words_are(own, WORDS, index + i));
    }
    CHECK_OK(bh_buffer_release(own));
}

TEST(eight_threads_submit_on_lanes_of_their_own) {
    struct crowd crowd = {.r = rig_open(0)};
    for (int i = 0; i < THREADS; i++) crowd.lanes[i] = open_lane(crowd.r.device);
    crowd.shared = words_filled(crowd.r.device, WORDS, 0);
    run_threads(THREADS, add_on_own_lane, &crowd);
    CHECK(words_are(crowd.shared, WORDS, THREADS * ROUNDS));
    CHECK_OK(bh_device_close(crowd.r.device));
}

static void churn_buffers(void *context, unsigned index) {
    struct crowd *crowd = context;
    bh_kernel iota = rig_kernel(&crowd->r, "iota");
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t count = 100 + (i * 37 + index * 101) % 900, first = index * 1000000 + i;
        bh_buffer a = words_alloc(crowd->r.device, count), b = words_alloc(crowd->r.device, count);
        submit(iota, BH_GRID(count, 128), BH_ARGS(BH_OUT(a), first, count), NULL);
        REQUIRE_OK(bh_submit_copy((bh_lane){0}, b, 0, a, 0, count * 4, NULL));
        REQUIRE_OK(bh_buffer_release(a)); /* with its work in flight */
        CHECK(words_count(b, count, first));
        REQUIRE_OK(bh_buffer_release(b));
    }
}

TEST(threads_allocate_and_free_at_once) {
    struct crowd crowd = {.r = rig_open(0)};
    run_threads(THREADS, churn_buffers, &crowd);
    CHECK_EQ(memory_of(crowd.r.device).buffers, 0);
    CHECK_EQ(memory_of(crowd.r.device).bytes_buffers, 0);
    CHECK_OK(bh_device_close(crowd.r.device));
}

static void load_and_run(void *context, unsigned index) {
    struct crowd *crowd = context;
    for (uint32_t i = 0; i < 5; i++) {
        bh_module module = load_module(crowd->r.device, ptx_globals);
        bh_buffer out = words_filled(crowd->r.device, 1, 0);
        uint32_t start = index * 100;
        CHECK_OK(bh_module_global_write(module, "counter", 0, &start, 4));
        for (uint32_t k = 1; k <= 3; k++) {
            CHECK_OK(run_now(get_kernel(module, "bump"), BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
            CHECK_EQ(word_read(out, 0), start + k);
        }
        CHECK_OK(bh_module_release(module));
        CHECK_OK(bh_buffer_release(out));
    }
}

TEST(threads_load_and_unload_modules_at_once) {
    struct crowd crowd = {.r = rig_open(0)};
    run_threads(4, load_and_run, &crowd);
    check_device_works(&crowd.r);
    CHECK_OK(bh_device_close(crowd.r.device));
}

static void open_close_lanes(void *context, unsigned index) {
    struct crowd *crowd = context;
    bh_buffer own = words_filled(crowd->r.device, 1, 0);
    (void)index;
    for (uint32_t i = 1; i <= 40; i++) {
        bh_lane lane = open_lane(crowd->r.device);
        bh_launch_options there = on_lane(lane, 0);
        submit(rig_kernel(&crowd->r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(own), 1u), &there);
        CHECK_OK(bh_lane_release(lane));
        if (i % 10 == 0) CHECK_EQ(word_read(own, 0), i);
    }
}

TEST(threads_open_and_close_lanes_at_once) {
    struct crowd crowd = {.r = rig_open(0)};
    run_threads(4, open_close_lanes, &crowd);
    CHECK_OK(bh_device_close(crowd.r.device));
}

static void retain_and_release(void *context, unsigned index) {
    struct crowd *crowd = context;
    (void)index;
    for (int i = 0; i < 300; i++) {
        bh_buffer view;
        REQUIRE_OK(bh_buffer_retain(crowd->shared));
        REQUIRE_OK(bh_buffer_view(crowd->shared, 0, (uint64_t)i % WORDS, 1, &view));
        CHECK_EQ(word_read(view, 0), 5 + (uint32_t)i % WORDS);
        REQUIRE_OK(bh_buffer_release(view));
        REQUIRE_OK(bh_buffer_release(crowd->shared));
    }
}

TEST(threads_share_references_of_one_buffer) {
    struct crowd crowd = {.r = rig_open(0)};
    crowd.shared = words_counting(crowd.r.device, WORDS, 5);
    run_threads(4, retain_and_release, &crowd);
    CHECK(words_count(crowd.shared, WORDS, 5));
    CHECK_OK(bh_buffer_release(crowd.shared));
    CHECK_EQ(memory_of(crowd.r.device).buffers, 0);
    CHECK_OK(bh_device_close(crowd.r.device));
}

static void race_for_cancel(void *context, unsigned index) {
    bh_ticket *tickets = context;
    (void)index;
    for (int i = 0; i < 100; i++) {
        bh_status status = bh_cancel(tickets[i]);
        CHECK(status == BH_OK || status == BH_E_BUSY || status == BH_E_INVALID);
    }
}

TEST(cancels_race_with_the_worker_and_each_other) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 100, 0);
    bh_ticket tickets[100];
    for (int round = 0; round < 5; round++) {
        uint32_t zero = 0;
        REQUIRE_OK(bh_buffer_fill(x, 0, 400, &zero, 4));
        for (uint32_t i = 0; i < 100; i++) {
            bh_buffer view;
            REQUIRE_OK(bh_buffer_view(x, 0, i, 1, &view));
            tickets[i] =
                submit(rig_kernel(&r, "spin"), BH_GRID(1, 1), BH_ARGS(BH_OUT(view), i, 50u), NULL);
            CHECK_OK(bh_buffer_release(view));
        }
        run_threads(3, race_for_cancel, tickets);
        CHECK_OK(bh_device_sync(r.device, LONG_NS));
        for (uint32_t i = 0; i < 100; i++) {
            bh_status status = bh_wait(tickets[i], 0);
            CHECK(status == BH_OK || status == BH_E_CANCELLED);
            CHECK_EQ(word_read(x, i), status == BH_OK ? spin_word(i, 50) : 0);
        }
    }
    CHECK_OK(bh_device_close(r.device));
}

enum { READERS = 12, READ_BYTES = 9 << 20, READ_ROUNDS = 4 };

static void read_large(void *context, unsigned index) {
    const bh_buffer *buffers = context;
    uint8_t *bytes = malloc(READ_BYTES);
    REQUIRE(bytes != NULL);
    for (int round = 0; round < READ_ROUNDS; round++) {
        CHECK_OK(bh_buffer_read(buffers[index], 0, bytes, READ_BYTES));
        CHECK(bytes[0] == index + 1 && bytes[READ_BYTES - 1] == index + 1);
    }
    free(bytes);
}

/* Each has several pieces on their way: together more than there are places for. */
TEST_TIMEOUT(threads_read_large_buffers_at_once, 60) {
    bh_device device = open_device();
    bh_buffer buffers[READERS];
    for (unsigned i = 0; i < READERS; i++) {
        uint8_t value = (uint8_t)(i + 1);
        REQUIRE_OK(bh_buffer_alloc(device, BH_U8, READ_BYTES, NULL, &buffers[i]));
        REQUIRE_OK(bh_buffer_fill(buffers[i], 0, READ_BYTES, &value, 1));
    }
    run_threads(READERS, read_large, buffers);
    CHECK_OK(bh_device_close(device));
}
