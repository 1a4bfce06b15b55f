/* SPDX-License-Identifier: Apache-2.0 */
/* Writes, reads, copies and fills as work on a lane, and host memory the device reaches
 * directly. */
#include "../support/support.h"

static void *host_alloc(bh_device device, uint64_t bytes) {
    void *memory = NULL;
    REQUIRE_OK(bh_host_alloc(device, bytes, &memory));
    REQUIRE(memory != NULL);
    return memory;
}

static const bh_lane own_lane = {0};

TEST(host_memory_comes_zeroed_or_not_but_ours) {
    static const uint64_t sizes[] = {1, 100, 4096, 4097, 1 << 20, 9 << 20};
    bh_device device = open_device();
    uint8_t *blocks[6];
    for (int i = 0; i < 6; i++) {
        blocks[i] = host_alloc(device, sizes[i]);
        memset(blocks[i], i + 1, sizes[i]);
    }
    for (int i = 0; i < 6; i++) {
        CHECK_EQ((uintptr_t)blocks[i] % 16, 0);
        CHECK_EQ(blocks[i][0], i + 1);
        CHECK_EQ(blocks[i][sizes[i] - 1], i + 1);
        CHECK_OK(bh_host_free(device, blocks[i]));
    }
    CHECK_OK(bh_device_close(device));
}

TEST(host_memory_is_freed_once) {
    bh_device device = open_device();
    char *memory = host_alloc(device, 1000);
    CHECK_REFUSED(bh_host_free(device, memory + 8), BH_E_INVALID);
    CHECK_OK(bh_host_free(device, memory));
    CHECK_REFUSED(bh_host_free(device, memory), BH_E_INVALID);
    CHECK_REFUSED(bh_host_free(device, &device), BH_E_INVALID);
    CHECK_OK(bh_device_close(device));
}

TEST(host_memory_again_and_again_leaves_nothing) {
    bh_device device = open_device();
    CHECK_OK(bh_host_free(device, host_alloc(device, 1 << 20)));
    wait_standby(device); /* a worker that is being started has descriptors that come and go */
    unsigned before = open_descriptors();
    for (int i = 0; i < 200; i++) CHECK_OK(bh_host_free(device, host_alloc(device, 1 << 20)));
    wait_standby(device);
    CHECK_EQ(open_descriptors(), before);
    CHECK_OK(bh_device_close(device));
}

TEST(data_goes_through_host_memory_both_ways) {
    enum { COUNT = 300000 };
    bh_device device = open_device();
    uint32_t *from = host_alloc(device, COUNT * 4), *to = host_alloc(device, COUNT * 4);
    bh_buffer buffer = words_alloc(device, COUNT);
    bh_ticket written, read;
    for (uint32_t i = 0; i < COUNT; i++) from[i] = i * 2654435761u;
    memset(to, 0, COUNT * 4);
    REQUIRE_OK(bh_submit_write(own_lane, buffer, 0, from, COUNT * 4, &written));
    REQUIRE_OK(bh_submit_read(own_lane, buffer, 0, to, COUNT * 4, &read));
    CHECK_OK(bh_wait(read, LONG_NS));
    CHECK_OK(bh_wait(written, 0));
    CHECK_MEM_EQ(to, from, COUNT * 4);

    /* by parts, from the middle */
    REQUIRE_OK(bh_submit_write(own_lane, buffer, 4003, (char *)from + 17, 1001, NULL));
    REQUIRE_OK(bh_submit_read(own_lane, buffer, 4003, (char *)to + 5, 1001, &read));
    CHECK_OK(bh_wait(read, LONG_NS));
    CHECK_MEM_EQ((char *)to + 5, (char *)from + 17, 1001);

    /* the calls that wait take it too */
    CHECK_OK(bh_buffer_write(buffer, 0, from, COUNT * 4));
    CHECK_OK(bh_buffer_read(buffer, 0, to, COUNT * 4));
    CHECK_MEM_EQ(to, from, COUNT * 4);
    CHECK_OK(bh_device_close(device));
}

TEST(a_submitted_write_has_copied_its_source) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_buffer buffer = words_filled(r.device, 1000, 0);
    uint32_t source[1000];
    bh_ticket ticket;
    for (uint32_t i = 0; i < 1000; i++) source[i] = i;
    gate g = gate_close(&r, lane, 0);
    REQUIRE_OK(bh_submit_write(lane, buffer, 0, source, sizeof source, &ticket));
    memset(source, 0xff, sizeof source);
    gate_open(&g);
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK(words_count(buffer, 1000, 0));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_submitted_write_from_host_memory_reads_it_when_it_runs) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_buffer buffer = words_filled(r.device, 1000, 0);
    uint32_t *source = host_alloc(r.device, 4000);
    bh_ticket ticket;
    memset(source, 0xff, 4000);
    gate g = gate_close(&r, lane, 0);
    REQUIRE_OK(bh_submit_write(lane, buffer, 0, source, 4000, &ticket));
    for (uint32_t i = 0; i < 1000; i++) source[i] = i + 50;
    gate_open(&g);
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK(words_count(buffer, 1000, 50));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_submitted_read_needs_host_memory) {
    bh_device device = open_device();
    bh_buffer buffer = words_filled(device, 100, 5);
    uint32_t plain[100];
    bh_ticket ticket = {1, 2};
    CHECK_REFUSED(bh_submit_read(own_lane, buffer, 0, plain, sizeof plain, &ticket), BH_E_INVALID);
    CHECK_EQ(ticket.lane, 1);
    CHECK_EQ(ticket.sequence, 2);
    char *memory = host_alloc(device, 200);
    /* begins inside and ends outside */
    CHECK_REFUSED(bh_submit_read(own_lane, buffer, 0, memory, 400, &ticket), BH_E_INVALID);
    CHECK_OK(bh_submit_read(own_lane, buffer, 0, memory, 200, &ticket));
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK_OK(bh_device_close(device));
}

TEST(host_memory_of_another_device_is_plain_memory) {
    bh_device a = open_device(), b = open_device();
    uint32_t *memory = host_alloc(a, 400);
    bh_buffer buffer = words_counting(b, 100, 1);
    CHECK_REFUSED(bh_host_free(b, memory), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_read(own_lane, buffer, 0, memory, 400, NULL), BH_E_INVALID);
    CHECK_OK(bh_buffer_read(buffer, 0, memory, 400));
    CHECK_EQ(memory[99], 100);
    CHECK_OK(bh_host_free(a, memory));
    CHECK_OK(bh_device_close(a));
    CHECK_OK(bh_device_close(b));
}

TEST(large_submitted_writes_of_plain_memory_arrive_whole) {
    enum { BYTES = 24 << 20 };
    bh_device device = open_device();
    bh_lane lane = open_lane(device);
    bh_buffer buffer = words_alloc(device, BYTES / 4);
    uint32_t *source = malloc(BYTES), *target = malloc(BYTES);
    bh_ticket tickets[3];
    REQUIRE(source != NULL && target != NULL);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < BYTES / 4; i++) source[i] = i * 31 + round;
        REQUIRE_OK(bh_submit_write(lane, buffer, 0, source, BYTES, &tickets[round]));
    }
    CHECK_OK(bh_wait_all(tickets, 3, LONG_NS));
    REQUIRE_OK(bh_buffer_read(buffer, 0, target, BYTES));
    CHECK(memcmp(source, target, BYTES) == 0);
    free(source);
    free(target);
    CHECK_OK(bh_device_close(device));
}

TEST(submitted_fills_and_copies_run_in_order) {
    bh_device device = open_device();
    bh_lane lane = open_lane(device);
    bh_buffer a = words_alloc(device, 1000), b = words_alloc(device, 1000);
    bh_ticket last = {0, 0};
    for (uint32_t i = 0; i < 300; i++) {
        REQUIRE_OK(bh_submit_fill(lane, a, 0, 4000, &i, 4, NULL));
        REQUIRE_OK(bh_submit_copy(lane, b, 0, a, 0, 4000, &last));
    }
    CHECK_OK(bh_wait(last, LONG_NS));
    CHECK(words_are(b, 1000, 299));
    CHECK_OK(bh_device_close(device));
}

TEST(synchronous_calls_see_what_was_submitted_before_them) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_kernel add_one = rig_kernel(&r, "add_one");
    bh_buffer buffer = words_filled(r.device, 256, 0);
    for (uint32_t i = 1; i <= 50; i++) {
        submit(add_one, BH_GRID(256, 256), BH_ARGS(BH_INOUT(buffer), 256u), &there);
        if (i % 3 == 0) CHECK_EQ(word_read(buffer, i), i);
    }
    CHECK(words_are(buffer, 256, 50));
    CHECK_OK(bh_device_close(r.device));
}

TEST(fills_reach_the_end_of_the_buffer) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 8, 1);
    static const uint32_t two = 2, three = 3;
    REQUIRE_OK(bh_buffer_fill(x, 16, BH_WHOLE, &two, sizeof two));
    CHECK_EQ(word_read(x, 3), 1);
    CHECK_EQ(word_read(x, 4), 2);
    CHECK_EQ(word_read(x, 7), 2);
    bh_transfer fill = bh_transfer_fill(x, 28, BH_WHOLE, &three, sizeof three);
    bh_submit_options options = BH_INIT(options);
    options.flags = BH_SUBMIT_WAIT;
    REQUIRE_OK(bh_submit(&fill.request, &options, NULL));
    CHECK_EQ(word_read(x, 6), 2);
    CHECK_EQ(word_read(x, 7), 3);
    bh_sequence sequence;
    fill.target_offset = 24;
    REQUIRE_OK(bh_sequence_begin(r.device, NULL, &sequence));
    REQUIRE_OK(bh_sequence_add(sequence, &fill.request, NULL));
    REQUIRE_OK(bh_sequence_finish(sequence));
    REQUIRE_OK(bh_sequence_submit(sequence, NULL, NULL));
    CHECK_EQ(word_read(x, 6), 3);
    CHECK_OK(bh_buffer_fill(x, 32, BH_WHOLE, &two, sizeof two)); /* nothing is left there */
    CHECK_REFUSED(bh_buffer_fill(x, 33, BH_WHOLE, &two, 1), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_fill(x, 1, BH_WHOLE, &two, sizeof two), BH_E_INVALID);
    CHECK_EQ(word_read(x, 0), 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(submitted_transfers_check_their_ranges) {
    bh_device device = open_device();
    bh_buffer a = words_counting(device, 10, 0), b = words_counting(device, 10, 0);
    uint32_t word = 0;
    uint32_t *host = host_alloc(device, 64);
    bh_ticket t = {0, 0};
    CHECK_REFUSED(bh_submit_write(own_lane, a, 37, &word, 4, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_write(own_lane, a, UINT64_MAX, &word, 4, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_read(own_lane, a, 40, host, 1, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_copy(own_lane, a, 0, b, 38, 4, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_copy(own_lane, a, 38, b, 0, 4, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_fill(own_lane, a, 0, 41, &word, 1, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_fill(own_lane, a, 0, 40, &word, 3, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_fill(own_lane, a, 0, 6, &word, 4, &t), BH_E_INVALID);
    CHECK_EQ(t.lane, 0);
    CHECK(words_count(a, 10, 0));
    CHECK_OK(bh_device_close(device));
}

TEST(overlapping_copies_move_or_are_refused) {
    bh_device device = open_device();
    bh_buffer a = words_counting(device, 1000, 0);
    bh_status status = bh_buffer_copy(a, 400, a, 0, 2000);
    if (status != BH_OK) {
        CHECK_REFUSED(status, BH_E_INVALID);
        CHECK(words_count(a, 1000, 0));
    } else {
        bh_buffer moved;
        REQUIRE_OK(bh_buffer_view(a, 0, 100, 500, &moved));
        CHECK(words_count(moved, 500, 0));
    }
    CHECK_OK(bh_device_close(device));
}

/* Large enough for several threads to share the copying, where there are several processors. */
TEST(large_plain_copies_go_to_and_from_any_address) {
    enum { BYTES = (17 << 20) + 13 };
    static const size_t starts[] = {0, 1, 7, 33, 63};
    bh_device device = open_device();
    bh_buffer buffer;
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, BYTES, NULL, &buffer));
    uint8_t *from = malloc(BYTES + 64), *to = malloc(BYTES + 128);
    REQUIRE(from && to);
    rng r = rng_seeded(11);
    for (size_t i = 0; i < BYTES + 64; i++) from[i] = (uint8_t)rng_next(&r);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const uint8_t *source = from + starts[i];
        uint8_t *target = to + starts[sizeof starts / sizeof *starts - 1 - i];
        memset(to, 0x5a, BYTES + 128);
        CHECK_OK(bh_buffer_write(buffer, 0, source, BYTES));
        CHECK_OK(bh_buffer_read(buffer, 0, target, BYTES));
        CHECK(memcmp(source, target, BYTES) == 0);
        CHECK(target == to || target[-1] == 0x5a);
        CHECK_EQ(target[BYTES], 0x5a);
    }
    free(from);
    free(to);
    CHECK_OK(bh_device_close(device));
}

TEST(a_read_into_host_memory_goes_there_directly) {
    enum { BYTES = 3 << 20 };
    bh_device device = open_device();
    bh_buffer buffer;
    void *host;
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, BYTES, NULL, &buffer));
    REQUIRE_OK(bh_host_alloc(device, BYTES + 10, &host));
    uint8_t pattern = 0x77;
    CHECK_OK(bh_buffer_fill(buffer, 0, BYTES, &pattern, 1));
    memset(host, 0, BYTES + 10);
    CHECK_OK(bh_buffer_read(buffer, 0, (uint8_t *)host + 5, BYTES));
    const uint8_t *bytes = host;
    CHECK(bytes[4] == 0 && bytes[5] == 0x77 && bytes[BYTES + 4] == 0x77 && bytes[BYTES + 5] == 0);
    CHECK_REFUSED(bh_buffer_read(buffer, 1, host, BYTES), BH_E_INVALID);
    CHECK_OK(bh_device_close(device));
}
