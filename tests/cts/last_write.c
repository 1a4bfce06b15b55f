/* SPDX-License-Identifier: Apache-2.0 */
/* bh_buffer_info.last_write and last_writer: the last work submitted that writes a buffer. */
#include "../support/buffers.h"
#include "../support/support.h"
#include "../support/transfers.h"

enum { N = 64 };

static bh_buffer_info info_of(bh_buffer buffer) {
    bh_buffer_info info = BH_INIT(info);
    REQUIRE_OK(bh_buffer_get_info(buffer, &info));
    return info;
}

static bool was_written_by(bh_buffer buffer, bh_ticket ticket, bh_lane lane) {
    bh_buffer_info info = info_of(buffer);
    return info.last_write.lane == ticket.lane && info.last_write.sequence == ticket.sequence &&
           info.last_writer.id == lane.id;
}

static const bh_lane own = {0};
static const bh_ticket none = {0, 0};

TEST(the_last_write_is_named_and_reads_do_not_count) {
    rig r = rig_open(0);
    bh_lane a = open_lane(r.device), b = open_lane(r.device);
    bh_launch_options on_a = on_lane(a, 0), on_b = on_lane(b, 0);
    bh_kernel store = rig_kernel(&r, "store_word"), copy = rig_kernel(&r, "copy_words");
    bh_buffer x, y, half;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U32, N, NULL, &x));
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U32, N, NULL, &y));
    CHECK(was_written_by(x, none, own));
    bh_ticket first = submit(store, BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 1u), &on_a);
    CHECK(was_written_by(x, first, a));
    CHECK(was_written_by(y, none, own));
    bh_ticket second = submit(copy, BH_GRID(1, 1), BH_ARGS(BH_IN(x), BH_OUT(y), 1u), &on_b);
    CHECK(was_written_by(x, first, a));
    CHECK(was_written_by(y, second, b));
    bh_ticket third = submit(store, BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 2u), NULL);
    CHECK(was_written_by(x, third, own));
    /* A view shares the memory: a write through it is a write of the buffer, and the other way. */
    REQUIRE_OK(bh_buffer_view(x, 0, N / 2, N / 2, &half));
    CHECK(was_written_by(half, third, own));
    bh_ticket fourth = submit(store, BH_GRID(1, 1), BH_ARGS(BH_INOUT(half), 3u), &on_b);
    CHECK(was_written_by(x, fourth, b));
    /* It can be waited for. */
    CHECK_OK(bh_wait(info_of(x).last_write, LONG_NS));
    CHECK_EQ(word_read(x, N / 2), 3);
    CHECK(was_written_by(x, fourth, b));
    CHECK_OK(bh_device_close(r.device));
}

TEST(transfers_are_named_whatever_their_number_of_pieces) {
    enum { LARGE = 5 << 20 }; /* several staging slots, written by several threads */
    rig r = rig_open(0);
    bh_lane a = open_lane(r.device);
    bh_buffer x, y;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, LARGE, NULL, &x));
    REQUIRE_OK(alloc_flags(r.device, BH_U8, LARGE, BH_BUFFER_ZERO, &y));
    CHECK_NE(info_of(y).last_write.lane, 0);
    uint8_t *bytes = calloc(1, LARGE);
    void *host;
    bh_ticket ticket;
    REQUIRE(bytes != NULL);
    REQUIRE_OK(bh_submit_write(a, x, 0, bytes, LARGE, &ticket));
    CHECK(was_written_by(x, ticket, a));
    REQUIRE_OK(bh_submit_fill(a, x, 0, LARGE, "ab", 2, &ticket));
    CHECK(was_written_by(x, ticket, a));
    REQUIRE_OK(bh_submit_fill(own, x, 0, 300, "abc", 3, &ticket));
    CHECK(was_written_by(x, ticket, own));
    bh_ticket copied;
    REQUIRE_OK(bh_submit_copy(a, y, 0, x, 0, LARGE, &copied));
    CHECK(was_written_by(x, ticket, own));
    CHECK(was_written_by(y, copied, a));
    REQUIRE_OK(bh_host_alloc(r.device, 4096, &host));
    REQUIRE_OK(bh_submit_read(a, y, 0, host, 4096, &ticket));
    CHECK(was_written_by(y, copied, a));
    bh_transfer rows = bh_transfer_write(y, 0, bytes, 100);
    rows.height = 10;
    rows.target_pitch = 128;
    bh_submit_options options = BH_INIT(options);
    options.lane = a;
    REQUIRE_OK(bh_submit(&rows.request, &options, &ticket));
    CHECK(was_written_by(y, ticket, a));
    /* Empty ones write nothing. */
    REQUIRE_OK(bh_submit_write(own, y, 0, bytes, 0, NULL));
    REQUIRE_OK(bh_submit_fill(own, y, 0, 0, "a", 1, NULL));
    CHECK(was_written_by(y, ticket, a));
    free(bytes);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_copy_between_devices_is_a_write_of_its_target) {
    bh_device one = open_device(), two = open_device();
    bh_buffer x = words_filled(one, N, 7), y;
    REQUIRE_OK(bh_buffer_alloc(two, BH_U32, N, NULL, &y));
    bh_ticket filled = info_of(x).last_write;
    CHECK(was_written_by(y, none, own));
    REQUIRE_OK(bh_buffer_copy(y, 0, x, 0, N * 4));
    CHECK(was_written_by(x, filled, own));
    bh_ticket copied = info_of(y).last_write;
    CHECK_NE(copied.lane, 0);
    CHECK_NE(copied.lane, filled.lane);
    CHECK_EQ(info_of(y).last_writer.id, 0);
    CHECK_OK(bh_wait(copied, 0));
    CHECK_OK(bh_device_close(one));
    CHECK_OK(bh_device_close(two));
}

TEST(sequences_and_managed_buffers_are_named) {
    rig r = rig_open(0);
    bh_lane a = open_lane(r.device);
    bh_kernel add = rig_kernel(&r, "add_one");
    bh_buffer x = words_filled(r.device, N, 0), y = words_filled(r.device, N, 0), m = {0};
    bh_ticket filled = info_of(y).last_write, ticket;
    bh_sequence seq;
    REQUIRE_OK(bh_sequence_begin(r.device, NULL, &seq));
    REQUIRE_OK(bh_sequence_launch(seq, add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(x), (uint32_t)N), NULL,
                                  NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    bh_submit_options options = BH_INIT(options);
    options.lane = a;
    REQUIRE_OK(bh_sequence_submit(seq, &options, &ticket));
    CHECK(was_written_by(x, ticket, a));
    /* What it is bound to at the next submission is what that one writes. */
    REQUIRE_OK(bh_sequence_bind(seq, x, y));
    CHECK(was_written_by(y, filled, own));
    bh_ticket second;
    REQUIRE_OK(bh_sequence_submit(seq, &options, &second));
    CHECK(was_written_by(x, ticket, a));
    CHECK(was_written_by(y, second, a));
    uint32_t *words;
    void *pointer;
    REQUIRE_OK(alloc_managed(r.device, BH_U32, N, 0, &m, NULL));
    REQUIRE_OK(bh_managed_map(m, 0, N * 4, BH_MAP_WRITE | BH_MAP_DISCARD, &pointer));
    words = pointer;
    for (uint32_t i = 0; i < N; i++) words[i] = i;
    REQUIRE_OK(bh_managed_unmap(words, N * 4));
    /* A launch that only reads it: the pages move to the device, which is a write on its lane. */
    bh_launch_options on_a = on_lane(a, 0);
    ticket = submit(rig_kernel(&r, "copy_words"), BH_GRID(N, 64),
                    BH_ARGS(BH_IN(m), BH_OUT(x), (uint32_t)N), &on_a);
    CHECK(was_written_by(x, ticket, a));
    bh_buffer_info moved = info_of(m);
    CHECK_EQ(moved.last_write.lane, ticket.lane);
    CHECK(moved.last_write.sequence < ticket.sequence);
    CHECK_EQ(moved.last_writer.id, a.id);
    CHECK_OK(bh_wait(moved.last_write, LONG_NS));
    ticket = submit(add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(m), (uint32_t)N), NULL);
    CHECK(was_written_by(m, ticket, own));
    CHECK_OK(bh_device_close(r.device));
}

static uint32_t index_of(bh_device device, bh_lane lane) {
    bh_lane_counters counts = BH_INIT(counts);
    REQUIRE_OK(bh_lane_get_counters(device, lane, &counts));
    return counts.index;
}

TEST(a_released_lane_is_not_mistaken_for_the_next_one) {
    rig r = rig_open(0);
    bh_lane a = open_lane(r.device);
    uint32_t index = index_of(r.device, a);
    bh_launch_options on_a = on_lane(a, 0);
    bh_buffer x = words_filled(r.device, N, 0), z = words_filled(r.device, N, 0);
    bh_kernel store = rig_kernel(&r, "store_word");
    bh_ticket ticket = submit(store, BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 1u), &on_a);
    REQUIRE_OK(bh_wait(ticket, LONG_NS));
    REQUIRE_OK(bh_lane_release(a));
    CHECK(was_written_by(x, ticket, a));
    bh_lane b = open_lane(r.device); /* takes the place of the first */
    bh_launch_options on_b = on_lane(b, 0);
    bh_ticket other = submit(store, BH_GRID(1, 1), BH_ARGS(BH_OUT(z), 1u), &on_b);
    CHECK_EQ(index_of(r.device, b), index);
    CHECK_NE(a.id, b.id);
    CHECK(was_written_by(x, ticket, a));
    CHECK(was_written_by(z, other, b));
    CHECK_REFUSED(bh_lane_sync(info_of(x).last_writer, 0), BH_E_INVALID);
    CHECK_OK(bh_wait(info_of(x).last_write, 0));
    CHECK_OK(bh_device_close(r.device));
}
