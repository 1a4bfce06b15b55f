/* SPDX-License-Identifier: Apache-2.0 */
/* Managed buffers: one pointer, maps, launches in between, what moves, attach, advice, prefetch. */
#include <sys/mman.h>
#include <sys/wait.h>

#include "../support/buffers.h"
#include "../support/managed.h"

enum { WORDS = 50000, BYTES = WORDS * 4 };

static uint32_t *map(bh_buffer buffer, uint64_t offset, uint64_t bytes, uint32_t flags) {
    void *pointer = NULL;
    REQUIRE_OK(bh_managed_map(buffer, offset, bytes, flags, &pointer));
    return pointer;
}

static void count_up(uint32_t *words, uint64_t count, uint32_t first) {
    for (uint64_t i = 0; i < count; i++) words[i] = first + (uint32_t)i;
}

static bh_status add_one(const rig *r, bh_buffer buffer, uint64_t words) {
    return run_now(rig_kernel(r, "add_one"), BH_GRID(words, 128),
                   BH_ARGS(BH_INOUT(buffer), (uint32_t)words));
}

TEST(one_pointer_on_both_sides) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, 0);
    CHECK_EQ((uintptr_t)m.words, address_of(m.buffer));
    bh_buffer_info info = BH_INIT(info);
    REQUIRE_OK(bh_buffer_get_info(m.buffer, &info));
    CHECK_EQ(info.read_only_address, info.address);
    CHECK_EQ(info.bytes, BYTES);
    CHECK(map(m.buffer, 0, BYTES, BH_MAP_WRITE | BH_MAP_DISCARD) == m.words);
    count_up(m.words, WORDS, 7);
    REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
    REQUIRE_OK(add_one(&r, m.buffer, WORDS));
    CHECK(map(m.buffer, 0, BYTES, BH_MAP_READ) == m.words);
    CHECK(counts_up(m.words, WORDS, 8));
    REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
    /* As an address inside another buffer. */
    uint64_t where[2] = {(uintptr_t)&m.words[10], (uintptr_t)&m.words[20]};
    bh_buffer table, out = words_alloc(r.device, 2);
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U64, 2, NULL, &table));
    REQUIRE_OK(bh_buffer_write(table, 0, where, sizeof where));
    bh_use also = {.buffer = m.buffer, .access = BH_ACCESS_IN};
    bh_launch_options options = BH_INIT(options);
    options.also = &also;
    options.also_count = 1;
    REQUIRE_OK(run_with(rig_kernel(&r, "gather"), BH_GRID(2, 2),
                        BH_ARGS(BH_IN(table), BH_OUT(out), 2u), &options));
    CHECK_EQ(word_read(out, 0), 18);
    CHECK_EQ(word_read(out, 1), 28);
    CHECK_OK(bh_device_close(r.device));
}

TEST(only_ranges_in_need_move) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, 0);
    uint64_t page = managed_info(m.buffer).page_bytes, words = page / 4;
    CHECK_EQ(managed_info(m.buffer).on_both, BYTES);
    map(m.buffer, 0, BYTES, BH_MAP_WRITE | BH_MAP_DISCARD);
    count_up(m.words, WORDS, 0);
    CHECK_EQ(managed_info(m.buffer).maps, 1);
    REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
    bh_managed_info info = managed_info(m.buffer);
    CHECK_EQ(info.maps, 0);
    CHECK_EQ(info.host_newest, BYTES);
    CHECK_EQ(info.bytes_to_device + info.bytes_to_host, 0);
    REQUIRE_OK(add_one(&r, m.buffer, WORDS));
    info = managed_info(m.buffer);
    CHECK_EQ(info.bytes_to_device, BYTES);
    CHECK_EQ(info.moves_to_device, 1);
    CHECK_EQ(info.device_newest, BYTES);
    CHECK_EQ(info.host_newest, 0);
    /* Two pages come home for a look at bytes of both. */
    map(m.buffer, 2 * page - 4, 8, BH_MAP_READ);
    CHECK(counts_up(m.words + 2 * words - 1, 2, (uint32_t)(2 * words)));
    REQUIRE_OK(bh_managed_unmap(&m.words[2 * words - 1], 8));
    info = managed_info(m.buffer);
    CHECK_EQ(info.bytes_to_host, 2 * page);
    CHECK_EQ(info.on_both, 2 * page);
    /* A second look moves nothing; neither does a launch that reads. */
    map(m.buffer, page, 2 * page, BH_MAP_READ);
    REQUIRE_OK(bh_managed_unmap(&m.words[words], 2 * page));
    bh_buffer copy = words_alloc(r.device, WORDS);
    REQUIRE_OK(run_now(rig_kernel(&r, "copy_words"), BH_GRID(WORDS, 128),
                       BH_ARGS(BH_IN(m.buffer), BH_OUT(copy), (uint32_t)WORDS)));
    info = managed_info(m.buffer);
    CHECK_EQ(info.bytes_to_host, 2 * page);
    CHECK_EQ(info.bytes_to_device, BYTES);
    /* A discard of whole pages and parts of two more: only these come home. */
    map(m.buffer, 4 * page + 8, 3 * page, BH_MAP_WRITE | BH_MAP_DISCARD);
    info = managed_info(m.buffer);
    CHECK_EQ(info.bytes_to_host, 4 * page);
    for (uint64_t i = 0; i < 3 * words; i++) m.words[4 * words + 2 + i] = 5;
    REQUIRE_OK(bh_managed_unmap(&m.words[4 * words + 2], 3 * page));
    CHECK_EQ(managed_info(m.buffer).host_newest, 4 * page);
    REQUIRE_OK(bh_buffer_copy(copy, 0, m.buffer, 0, BYTES));
    CHECK_EQ(managed_info(m.buffer).bytes_to_device, BYTES + 4 * page);
    CHECK_EQ(word_read(copy, 4 * words + 1), 4 * words + 2);
    CHECK_EQ(word_read(copy, 4 * words + 2), 5);
    CHECK_EQ(word_read(copy, 7 * words + 1), 5);
    CHECK_EQ(word_read(copy, 7 * words + 2), 7 * words + 3);
    CHECK_OK(bh_device_close(r.device));
}

TEST(reads_writes_fills_copies_and_views) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, 0);
    bh_buffer view, other = words_counting(r.device, 1000, 100);
    REQUIRE_OK(bh_buffer_view(m.buffer, 0, 1000, 2000, &view));
    REQUIRE_OK(bh_buffer_fill(m.buffer, 0, BYTES, &(uint32_t){9}, 4));
    map(view, 4, 8, BH_MAP_WRITE);
    m.words[1001] = 1;
    m.words[1002] = 2;
    REQUIRE_OK(bh_managed_unmap(&m.words[1001], 8));
    bh_buffer_info seen = BH_INIT(seen);
    REQUIRE_OK(bh_buffer_get_info(view, &seen));
    CHECK(seen.pointer == &m.words[1000]);
    CHECK_EQ(word_read(view, 0), 9);
    CHECK_EQ(word_read(view, 1), 1);
    CHECK_EQ(word_read(m.buffer, 1002), 2);
    REQUIRE_OK(bh_buffer_copy(view, 400, other, 0, 4000));
    word_write(view, 1999, 77);
    map(m.buffer, 0, BYTES, BH_MAP_READ);
    CHECK_EQ(m.words[999], 9);
    CHECK_EQ(m.words[1001], 1);
    CHECK(counts_up(m.words + 1100, 1000, 100));
    CHECK_EQ(m.words[2999], 77);
    CHECK_EQ(m.words[WORDS - 1], 9);
    REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
    bh_prepared prepared;
    REQUIRE_OK(bh_prepare(rig_kernel(&r, "add_one"), BH_GRID(2000, 64),
                          BH_ARGS(BH_INOUT(view), 2000u), NULL, &prepared));
    for (uint32_t i = 1; i <= 3; i++) {
        REQUIRE_OK(bh_prepared_launch(prepared, NULL, 0, NULL));
        map(view, 0, 4, BH_MAP_READ | BH_MAP_WRITE);
        CHECK_EQ(m.words[1000], 9 + 2 * i - 1);
        m.words[1000]++;
        REQUIRE_OK(bh_managed_unmap(&m.words[1000], 4));
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(maps_and_launches_keep_out_of_each_others_way) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, 0);
    uint64_t page = managed_info(m.buffer).page_bytes;
    bh_buffer out = words_alloc(r.device, WORDS);
    REQUIRE_OK(bh_buffer_fill(m.buffer, 0, BYTES, &(uint32_t){1}, 4));
    bh_buffer first, last;
    REQUIRE_OK(bh_buffer_view(m.buffer, 0, 0, page / 4, &first));
    REQUIRE_OK(bh_buffer_view(m.buffer, 0, WORDS - 16, 16, &last));
    map(m.buffer, 0, 100, BH_MAP_READ);
    map(m.buffer, 50, 100, BH_MAP_READ); /* overlapping reads are fine */
    CHECK_REFUSED(bh_managed_map(m.buffer, 99, 1, BH_MAP_WRITE, NULL), BH_E_BUSY);
    bh_error error;
    (void)bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "bytes 99 to 100");
    CHECK_STR_CONTAINS(error.message, "mapped to read");
    CHECK_REFUSED(add_one(&r, first, 10), BH_E_BUSY);
    CHECK_OK(add_one(&r, last, 10));
    CHECK_OK(run_now(rig_kernel(&r, "copy_words"), BH_GRID(64, 64),
                     BH_ARGS(BH_IN(first), BH_OUT(out), 64u)));
    REQUIRE_OK(bh_managed_unmap(m.words, 100));
    CHECK_REFUSED(bh_managed_unmap(m.words, 100), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_unmap((char *)m.words + 50, 99), BH_E_INVALID);
    REQUIRE_OK(bh_managed_unmap((char *)m.words + 50, 100));
    /* To write. */
    map(m.buffer, 0, 100, BH_MAP_WRITE);
    map(m.buffer, 100, 100, BH_MAP_WRITE); /* same page, other bytes */
    CHECK_REFUSED(bh_managed_map(m.buffer, 0, BYTES, BH_MAP_READ, NULL), BH_E_BUSY);
    CHECK_REFUSED(run_now(rig_kernel(&r, "copy_words"), BH_GRID(64, 64),
                          BH_ARGS(BH_IN(m.buffer), BH_OUT(out), 64u)),
                  BH_E_BUSY);
    (void)bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "mapped to write");
    CHECK_STR_CONTAINS(error.fix, "bh_managed_unmap");
    CHECK_REFUSED(bh_buffer_read(first, 0, &error, 4), BH_E_BUSY);
    CHECK_REFUSED(prefetch_on((bh_lane){0}, m.buffer, 0, 4, BH_TO_DEVICE, NULL), BH_E_BUSY);
    CHECK_OK(add_one(&r, last, 10));
    REQUIRE_OK(bh_managed_unmap(m.words, 100));
    CHECK_REFUSED(add_one(&r, first, 10), BH_E_BUSY);
    REQUIRE_OK(bh_managed_unmap(m.words + 25, 100));
    CHECK_OK(add_one(&r, first, 10));
    CHECK_OK(bh_device_close(r.device));
}

TEST(maps_wait_for_launches_or_say_busy) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    made m = managed_made(r.device, WORDS, 0);
    REQUIRE_OK(bh_buffer_fill(m.buffer, 0, BYTES, &(uint32_t){1}, 4));
    bh_launch_options there = on_lane(lane, 0);
    gate g = gate_close(&r, lane, 0);
    bh_buffer out = words_alloc(r.device, 64);
    submit(rig_kernel(&r, "copy_words"), BH_GRID(64, 64),
           BH_ARGS(BH_IN(m.buffer), BH_OUT(out), 64u), &there);
    /* A launch that only reads is in the way of nobody who reads. */
    bh_status status;
    uint64_t until = now_ns() + LONG_NS;
    do {
        status = bh_managed_map(m.buffer, 0, 4, BH_MAP_READ | BH_MAP_NO_WAIT, NULL);
    } while (status == BH_E_BUSY && now_ns() < until);
    CHECK_OK(status);
    REQUIRE_OK(bh_managed_unmap(m.words, 4));
    CHECK_REFUSED(bh_managed_map(m.buffer, 0, 4, BH_MAP_WRITE | BH_MAP_NO_WAIT, NULL), BH_E_BUSY);
    submit(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(m.buffer), 64u), &there);
    CHECK_REFUSED(bh_managed_map(m.buffer, 0, 4, BH_MAP_READ | BH_MAP_NO_WAIT, NULL), BH_E_BUSY);
    gate_open(&g);
    map(m.buffer, 0, 256, BH_MAP_READ);
    for (int i = 0; i < 64; i++) CHECK_EQ(m.words[i], 2);
    REQUIRE_OK(bh_managed_unmap(m.words, 256));
    map(m.buffer, 0, 4, BH_MAP_READ | BH_MAP_WRITE | BH_MAP_NO_WAIT);
    REQUIRE_OK(bh_managed_unmap(m.words, 4));
    CHECK_OK(bh_device_close(r.device));
}

TEST(attached_to_the_host_or_to_a_lane) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    made m = managed_made(r.device, WORDS, 0);
    REQUIRE_OK(bh_managed_attach(m.buffer, BH_ATTACH_HOST, (bh_lane){0}));
    CHECK_EQ(managed_info(m.buffer).attach, BH_ATTACH_HOST);
    CHECK_REFUSED(add_one(&r, m.buffer, 10), BH_E_BUSY);
    map(m.buffer, 0, BYTES, BH_MAP_WRITE | BH_MAP_DISCARD);
    count_up(m.words, WORDS, 0);
    REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
    REQUIRE_OK(bh_managed_attach(m.buffer, BH_ATTACH_LANE, lane));
    CHECK_EQ(managed_info(m.buffer).lane.id, lane.id);
    CHECK_REFUSED(add_one(&r, m.buffer, 10), BH_E_BUSY);
    bh_launch_options there = on_lane(lane, 0);
    CHECK_OK(run_with(rig_kernel(&r, "add_one"), BH_GRID(WORDS, 64),
                      BH_ARGS(BH_INOUT(m.buffer), (uint32_t)WORDS), &there));
    map(m.buffer, 0, BYTES, BH_MAP_READ);
    CHECK(counts_up(m.words, WORDS, 1));
    REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
    REQUIRE_OK(bh_managed_attach(m.buffer, BH_ATTACH_LANE, (bh_lane){0}));
    CHECK_OK(add_one(&r, m.buffer, 10));
    CHECK_REFUSED(run_with(rig_kernel(&r, "add_one"), BH_GRID(64, 64),
                           BH_ARGS(BH_INOUT(m.buffer), 64u), &there),
                  BH_E_BUSY);
    REQUIRE_OK(bh_managed_attach(m.buffer, BH_ATTACH_GLOBAL, (bh_lane){0}));
    CHECK_OK(run_with(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(m.buffer), 64u),
                      &there));
    CHECK_OK(bh_device_close(r.device));
}

TEST(prefetch_moves_ahead) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    made m = managed_made(r.device, WORDS, 0);
    uint64_t page = managed_info(m.buffer).page_bytes;
    bh_ticket ticket;
    map(m.buffer, 0, BYTES, BH_MAP_WRITE | BH_MAP_DISCARD);
    count_up(m.words, WORDS, 0);
    REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
    REQUIRE_OK(prefetch_on(lane, m.buffer, page, 2 * page, BH_TO_DEVICE, &ticket));
    REQUIRE_OK(bh_wait(ticket, LONG_NS));
    bh_managed_info info = managed_info(m.buffer);
    CHECK_EQ(info.bytes_to_device, 2 * page);
    CHECK_EQ(info.prefetches, 1);
    CHECK_EQ(info.lanes, 0);
    CHECK_EQ(info.host_newest, BYTES - 2 * page);
    REQUIRE_OK(add_one(&r, m.buffer, WORDS));
    CHECK_EQ(managed_info(m.buffer).bytes_to_device, BYTES);
    REQUIRE_OK(prefetch_on(lane, m.buffer, 0, BYTES, BH_TO_HOST, &ticket));
    REQUIRE_OK(bh_wait(ticket, LONG_NS));
    CHECK_EQ(managed_info(m.buffer).on_both, BYTES);
    map(m.buffer, 0, BYTES, BH_MAP_READ | BH_MAP_NO_WAIT);
    CHECK(counts_up(m.words, WORDS, 1));
    REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
    CHECK_EQ(managed_info(m.buffer).bytes_to_host, BYTES);
    /* There is nothing to move. */
    REQUIRE_OK(prefetch_on(lane, m.buffer, 0, BYTES, BH_TO_HOST, NULL));
    CHECK_EQ(managed_info(m.buffer).moves_to_host, 1);
    CHECK_OK(bh_device_close(r.device));
}

/* The lane, tickets to come after, and the flags. */
TEST(prefetch_takes_the_options_of_submissions) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, 0);
    map(m.buffer, 0, BYTES, BH_MAP_WRITE | BH_MAP_DISCARD);
    count_up(m.words, WORDS, 0);
    REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
    bh_submit_options options = BH_INIT(options);
    options.flags = BH_SUBMIT_WAIT;
    bh_ticket ticket;
    REQUIRE_OK(bh_managed_prefetch(m.buffer, 0, BYTES, BH_TO_DEVICE, &options, &ticket));
    CHECK_OK(bh_wait(ticket, 0)); /* it has been waited for */
    CHECK_EQ(managed_info(m.buffer).on_both, BYTES);
    gate g = gate_close(&r, open_lane(r.device), 0);
    options.lane = open_lane(r.device);
    options.flags = BH_SUBMIT_IDEMPOTENT | BH_SUBMIT_NO_BLOCK;
    options.after = &g.ticket;
    options.after_count = 1;
    REQUIRE_OK(bh_managed_prefetch(m.buffer, 0, BYTES, BH_TO_HOST, &options, &ticket));
    sleep_ms(20);
    CHECK_STATUS(bh_wait(ticket, 0), BH_E_BUSY);
    gate_open(&g);
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK_OK(bh_wait(g.ticket, 0));
    options.after = NULL;
    CHECK_REFUSED(bh_managed_prefetch(m.buffer, 0, 4, BH_TO_HOST, &options, NULL), BH_E_INVALID);
    options.after_count = 0;
    options.flags = 1u << 30;
    CHECK_REFUSED(bh_managed_prefetch(m.buffer, 0, 4, BH_TO_HOST, &options, NULL), BH_E_INVALID);
    options.flags = 0;
    options.repeat = 2;
    CHECK_REFUSED(bh_managed_prefetch(m.buffer, 0, 4, BH_TO_HOST, &options, NULL),
                  BH_E_UNSUPPORTED);
    options.repeat = 0;
    rig other = rig_open(0);
    options.lane = open_lane(other.device);
    CHECK_REFUSED(bh_managed_prefetch(m.buffer, 0, 4, BH_TO_HOST, &options, NULL), BH_E_INVALID);
    CHECK_OK(bh_device_close(other.device));
    CHECK_OK(bh_device_close(r.device));
}

/* Bytes moved by an unmap and by a launch after it. */
static void check_moves(const rig *r, const made *m, uint64_t at_unmap, uint64_t behind_launch) {
    map(m->buffer, 0, BYTES, BH_MAP_WRITE | BH_MAP_DISCARD);
    count_up(m->words, WORDS, 0);
    bh_managed_info before = managed_info(m->buffer);
    REQUIRE_OK(bh_managed_unmap(m->words, BYTES));
    CHECK_EQ(managed_info(m->buffer).bytes_to_device - before.bytes_to_device, at_unmap);
    REQUIRE_OK(add_one(r, m->buffer, WORDS));
    CHECK_EQ(managed_info(m->buffer).bytes_to_host - before.bytes_to_host, behind_launch);
    CHECK_EQ(managed_info(m->buffer).device_newest, BYTES - behind_launch);
    map(m->buffer, 0, BYTES, BH_MAP_READ);
    CHECK(counts_up(m->words, WORDS, 1));
    REQUIRE_OK(bh_managed_unmap(m->words, BYTES));
}

TEST(advice_changes_when_things_move) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, 0);
    uint64_t page = managed_info(m.buffer).page_bytes;
    const uint32_t device = BH_ADVISE_PREFER_DEVICE, host = BH_ADVISE_PREFER_HOST;
    check_moves(&r, &m, 0, 0);
    REQUIRE_OK(bh_managed_advise(m.buffer, 0, 2 * page, device));
    REQUIRE_OK(bh_managed_advise(m.buffer, 4 * page, page, host));
    check_moves(&r, &m, 2 * page, page);
    /* Each call says all that holds for its range. */
    REQUIRE_OK(bh_managed_advise(m.buffer, page, page, host));
    check_moves(&r, &m, page, 2 * page);
    REQUIRE_OK(bh_managed_advise(m.buffer, 0, 3 * page, device | host));
    check_moves(&r, &m, 3 * page, 4 * page);
    REQUIRE_OK(bh_managed_advise(m.buffer, 0, 2 * page, 0));
    check_moves(&r, &m, page, 2 * page);
    REQUIRE_OK(bh_managed_advise(m.buffer, 0, BYTES, 0));
    check_moves(&r, &m, 0, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(advice_without_effect_is_refused) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, 0);
    static const uint32_t idle[] = {BH_ADVISE_READ_MOSTLY, BH_ADVISE_ACCESSED_BY_DEVICE,
                                    BH_ADVISE_ACCESSED_BY_HOST};
    for (int i = 0; i < 3; i++) {
        CHECK_REFUSED(bh_managed_advise(m.buffer, 0, BYTES, idle[i]), BH_E_UNSUPPORTED);
        CHECK_REFUSED(bh_managed_advise(m.buffer, 0, BYTES, idle[i] | BH_ADVISE_PREFER_DEVICE),
                      BH_E_UNSUPPORTED);
        bh_error error;
        (void)bh_last_error(&error);
        CHECK_STR_CONTAINS(error.fix, "BH_BUFFER_DRIVER");
    }
    check_moves(&r, &m, 0, 0); /* nothing was taken */
    CHECK_OK(bh_device_close(r.device));
}

TEST(neighbours_on_one_page) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, 0);
    REQUIRE_OK(bh_buffer_fill(m.buffer, 0, BYTES, &(uint32_t){0}, 4));
    REQUIRE_OK(bh_managed_advise(m.buffer, 0, BYTES, BH_ADVISE_PREFER_DEVICE));
    map(m.buffer, 0, 400, BH_MAP_WRITE);
    map(m.buffer, 400, 400, BH_MAP_WRITE);
    count_up(m.words, 100, 1);
    REQUIRE_OK(bh_managed_unmap(m.words, 400)); /* sends the page, while it is being written */
    CHECK_GT(managed_info(m.buffer).bytes_to_device, 0);
    count_up(m.words + 100, 100, 101);
    REQUIRE_OK(bh_managed_unmap(m.words + 100, 400));
    CHECK(words_count(m.buffer, 200, 1));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_map_outlives_its_buffer_and_its_device) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, 0), n = managed_made(r.device, 10, 0);
    bh_buffer view;
    REQUIRE_OK(bh_buffer_view(m.buffer, 0, 100, 100, &view));
    map(m.buffer, 0, BYTES, BH_MAP_WRITE | BH_MAP_DISCARD);
    count_up(m.words, WORDS, 3);
    map(n.buffer, 0, 40, BH_MAP_READ);
    REQUIRE_OK(bh_buffer_release(m.buffer));
    CHECK_REFUSED(bh_managed_map(m.buffer, 0, 4, BH_MAP_READ, NULL), BH_E_INVALID);
    REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
    CHECK(words_count(view, 100, 103)); /* the view has kept it */
    map(view, 0, 400, BH_MAP_READ);
    REQUIRE_OK(bh_buffer_release(view));
    CHECK(counts_up(m.words + 100, 100, 103));
    REQUIRE_OK(bh_buffer_release(n.buffer));
    CHECK_OK(bh_device_close(r.device));
    CHECK(counts_up(m.words, WORDS, 3));
    n.words[0] = 1;
    REQUIRE_OK(bh_managed_unmap(m.words + 100, 400));
    REQUIRE_OK(bh_managed_unmap(n.words, 40));
    CHECK_REFUSED(bh_managed_unmap(n.words, 40), BH_E_INVALID);
    uint8_t present;
    CHECK(mincore(m.words, 1, &present) != 0);
    CHECK(mincore(n.words, 1, &present) != 0);
}

TEST(many_come_and_go_on_two_devices) {
    rig a = rig_open(0), b = rig_open(0);
    made kept[2][8];
    unsigned before = 0;
    for (int round = 0; round < 6; round++) {
        for (uint32_t i = 0; i < 8; i++) {
            for (int k = 0; k < 2; k++) {
                kept[k][i] = managed_made(k ? b.device : a.device, 1000 + 3000 * i, 0);
                map(kept[k][i].buffer, 0, 4000, BH_MAP_WRITE);
                count_up(kept[k][i].words, 1000, 10 * i + (uint32_t)k);
                REQUIRE_OK(bh_managed_unmap(kept[k][i].words, 4000));
            }
        }
        for (uint32_t i = 0; i < 8; i++) {
            for (int k = 0; k < 2; k++) {
                CHECK_OK(add_one(k ? &b : &a, kept[k][i].buffer, 1000));
                CHECK(words_count(kept[k][i].buffer, 1000, 10 * i + (uint32_t)k + 1));
                REQUIRE_OK(bh_buffer_release(kept[k][i].buffer));
            }
        }
        REQUIRE_OK(bh_device_sync(a.device, LONG_NS));
        REQUIRE_OK(bh_device_sync(b.device, LONG_NS));
        if (round == 1) before = open_descriptors();
    }
    CHECK_LE(open_descriptors(), before + 8);
    CHECK_OK(bh_device_close(a.device));
    CHECK_OK(bh_device_close(b.device));
}

TEST(bad_input_is_refused) {
    rig r = rig_open(0);
    made m = managed_made(r.device, 1000, 0);
    bh_buffer plain = words_alloc(r.device, 10), out = {0};
    bh_lane none = {0};
    void *pointer;
    uint32_t bits;
    CHECK_REFUSED(alloc_managed(r.device, BH_U32, 1, 0, NULL, &pointer), BH_E_INVALID);
    CHECK_REFUSED(alloc_managed(r.device, 99, 1, 0, &out, &pointer), BH_E_INVALID);
    CHECK_REFUSED(alloc_managed(r.device, BH_U32, UINT64_MAX / 4, 0, &out, &pointer),
                  BH_E_NO_MEMORY);
    CHECK_REFUSED(alloc_managed(r.device, BH_U32, UINT64_C(1) << 58, 0, &out, &pointer),
                  BH_E_NO_MEMORY);
    CHECK_REFUSED(alloc_managed((bh_device){5}, BH_U32, 1, 0, &out, &pointer), BH_E_INVALID);
    CHECK_REFUSED(alloc_managed(r.device, BH_U32, 1, 1u << 30, &out, &pointer), BH_E_INVALID);
    CHECK_REFUSED(alloc_managed(r.device, BH_U32, 1, BH_BUFFER_UNTRACKED, &out, &pointer),
                  BH_E_INVALID);
    CHECK_REFUSED(alloc_flags(r.device, BH_U32, 1, BH_BUFFER_TRANSPARENT, &out), BH_E_INVALID);
    CHECK_REFUSED(alloc_managed(r.device, BH_U32, 1, BH_BUFFER_SHAREABLE, &out, &pointer),
                  BH_E_UNSUPPORTED);
    CHECK_EQ(out.id, 0);

    CHECK_REFUSED(bh_managed_map(plain, 0, 4, BH_MAP_READ, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_map((bh_buffer){9}, 0, 4, BH_MAP_READ, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_map(m.buffer, 0, 0, BH_MAP_READ, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_map(m.buffer, 0, 4001, BH_MAP_READ, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_map(m.buffer, 4000, 1, BH_MAP_READ, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_map(m.buffer, UINT64_MAX, 2, BH_MAP_READ, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_map(m.buffer, 0, 4, 0, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_map(m.buffer, 0, 4, BH_MAP_DISCARD, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_map(m.buffer, 0, 4, BH_MAP_READ | BH_MAP_WRITE | BH_MAP_DISCARD, NULL),
                  BH_E_INVALID);
    CHECK_REFUSED(bh_managed_map(m.buffer, 0, 4, BH_MAP_READ | 64, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_unmap(NULL, 4), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_unmap(m.words, 4), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_unmap(&bits, 4), BH_E_INVALID);

    CHECK_REFUSED(prefetch_on(none, plain, 0, 4, BH_TO_HOST, NULL), BH_E_INVALID);
    CHECK_REFUSED(prefetch_on(none, m.buffer, 0, 4, 3, NULL), BH_E_INVALID);
    CHECK_REFUSED(prefetch_on(none, m.buffer, 0, 5000, BH_TO_HOST, NULL), BH_E_INVALID);
    CHECK_REFUSED(prefetch_on((bh_lane){3}, m.buffer, 0, 4, BH_TO_HOST, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_advise(m.buffer, 0, 4, 32), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_advise(m.buffer, 0, 4, UINT32_MAX), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_advise(m.buffer, 0, 0, 1), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_advise(m.buffer, 0, 4001, 1), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_advise(plain, 0, 4, 1), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_attach(m.buffer, 3, none), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_attach(m.buffer, BH_ATTACH_LANE, (bh_lane){3}), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_attach(plain, BH_ATTACH_HOST, none), BH_E_INVALID);
    bh_managed_info info = {0};
    CHECK_REFUSED(bh_managed_get_info(m.buffer, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_get_info(m.buffer, &info), BH_E_INVALID);
    info.size = sizeof info;
    CHECK_REFUSED(bh_managed_get_info(plain, &info), BH_E_INVALID);
    /* Its host copy is no memory of bh_host_alloc. */
    CHECK_REFUSED(bh_host_free(r.device, m.words), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_read(none, plain, 0, m.words, 4, NULL), BH_E_INVALID);
    CHECK_OK(bh_buffer_write(plain, 0, m.words, 40));
    int fds[BH_SHARE_FDS];
    bh_share_token token;
    CHECK_REFUSED_ANY(bh_buffer_export(m.buffer, fds, &token));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_forked_child_has_none_of_it) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, 0);
    map(m.buffer, 0, 4, BH_MAP_WRITE);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        uint8_t present;
        bool right = bh_managed_map(m.buffer, 8, 4, BH_MAP_READ, NULL) == BH_E_STOPPED &&
                     bh_managed_unmap(m.words, 4) == BH_E_STOPPED &&
                     mincore(m.words, 1, &present) != 0;
        _exit(right ? 0 : 1);
    }
    int ended;
    REQUIRE(waitpid(child, &ended, 0) == child);
    CHECK_EQ(ended, 0);
    m.words[0] = 9;
    REQUIRE_OK(bh_managed_unmap(m.words, 4));
    CHECK_EQ(word_read(m.buffer, 0), 9);
    CHECK_OK(bh_device_close(r.device));
}

/* Guard mode and checks put buffers elsewhere and keep what was released. */
static void come_and_go(uint32_t flags) {
    rig r = rig_open(flags);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    for (uint32_t i = 0; i < 12; i++) {
        made m = managed_made(r.device, 5000 + i, i % 2 ? BH_BUFFER_TRANSPARENT : 0);
        CHECK_EQ((uintptr_t)m.words, address_of(m.buffer));
        map(m.buffer, 0, 20000, BH_MAP_WRITE | BH_MAP_DISCARD);
        count_up(m.words, 5000, i);
        REQUIRE_OK(bh_managed_unmap(m.words, 20000));
        submit(rig_kernel(&r, "add_one"), BH_GRID(5000, 64), BH_ARGS(BH_INOUT(m.buffer), 5000u),
               &there);
        if (i % 3 == 0) {
            map(m.buffer, 0, 20000, BH_MAP_READ);
            CHECK(counts_up(m.words, 5000, i + 1));
            REQUIRE_OK(bh_managed_unmap(m.words, 20000));
        }
        REQUIRE_OK(bh_buffer_release(m.buffer)); /* perhaps while a launch uses it */
    }
    REQUIRE_OK(bh_lane_sync(lane, LONG_NS));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(released_while_in_use) {
    come_and_go(0);
}

TEST(in_guard_mode) {
    come_and_go(BH_DEVICE_GUARD);
}

TEST(with_checks) {
    bh_device device = open_device();
    bool cpu = is_cpu(device);
    REQUIRE_OK(bh_device_close(device));
    if (!cpu) SKIP("checks are for the CPU device");
    come_and_go(BH_DEVICE_CHECK);
    /* To the byte, although pages move. */
    rig r = rig_open(BH_DEVICE_CHECK);
    made m = managed_made(r.device, 5001, 0);
    map(m.buffer, 0, 20004, BH_MAP_WRITE | BH_MAP_DISCARD);
    count_up(m.words, 5001, 0);
    REQUIRE_OK(bh_managed_unmap(m.words, 20004));
    CHECK_OK(add_one(&r, m.buffer, 5001));
    CHECK_STATUS(add_one(&r, m.buffer, 5002), BH_E_FAULT);
    CHECK_OK(bh_device_close(r.device));
}

/* ---- threads ---- */

enum { THREADS = 16, SLICE = 3000, ROUNDS = 12 };

struct crowd {
    rig r;
    made m;
    bh_lane lanes[4];
};

/* Each has a slice of one buffer, at no page's border. Its neighbours' maps can be in the way. */
static void own_slice(void *context, unsigned index) {
    struct crowd *c = context;
    bh_buffer view;
    uint32_t *words = c->m.words + index * SLICE;
    REQUIRE_OK(bh_buffer_view(c->m.buffer, 0, index * SLICE, SLICE, &view));
    bh_launch_options there = on_lane(c->lanes[index % 4], 0);
    bh_kernel kernel = rig_kernel(&c->r, "add_one");
    for (uint32_t round = 0; round < ROUNDS; round++) {
        map(view, 0, SLICE * 4, BH_MAP_WRITE | BH_MAP_DISCARD);
        count_up(words, SLICE, index * 1000 + round);
        REQUIRE_OK(bh_managed_unmap(words, SLICE * 4));
        bh_status status;
        do {
            status = bh_launch(kernel, BH_GRID(SLICE, 128),
                               BH_ARGS(BH_INOUT(view), (uint32_t)SLICE), &there, NULL);
            if (status == BH_E_BUSY) sleep_ms(0);
        } while (status == BH_E_BUSY);
        REQUIRE_OK(status);
        do {
            status = bh_managed_map(view, 0, SLICE * 4, BH_MAP_READ, NULL);
        } while (status == BH_E_BUSY);
        REQUIRE_OK(status);
        CHECK(counts_up(words, SLICE, index * 1000 + round + 1));
        REQUIRE_OK(bh_managed_unmap(words, SLICE * 4));
    }
    REQUIRE_OK(bh_buffer_release(view));
}

TEST_TIMEOUT(sixteen_threads_each_with_a_slice, 60) {
    struct crowd c = {.r = rig_open(0)};
    c.m = managed_made(c.r.device, THREADS * SLICE, 0);
    for (int i = 0; i < 4; i++) c.lanes[i] = open_lane(c.r.device);
    run_threads(THREADS, own_slice, &c);
    CHECK_EQ(managed_info(c.m.buffer).maps, 0);
    CHECK_OK(bh_device_close(c.r.device));
}

/* What bh_buffer_alloc promises holds for every kind of memory. */
TEST(every_kind_can_be_zeroed_and_aligned) {
    static const uint32_t kinds[] = {0, BH_BUFFER_MANAGED, BH_BUFFER_SHAREABLE,
                                     BH_BUFFER_MANAGED | BH_BUFFER_TRANSPARENT};
    rig r = rig_open(0);
    for (uint32_t i = 0; i < 4; i++) {
        bh_buffer_options options = BH_INIT(options);
        options.flags = kinds[i] | BH_BUFFER_ZERO;
        options.align = 16384;
        bh_buffer buffer;
        REQUIRE_OK(bh_buffer_alloc(r.device, BH_U32, 5000, &options, &buffer));
        CHECK(words_are(buffer, 5000, 0));
        bh_buffer_info info = BH_INIT(info);
        REQUIRE_OK(bh_buffer_get_info(buffer, &info));
        CHECK_EQ(info.address % 16384, 0);
        CHECK((info.pointer != NULL) == ((kinds[i] & BH_BUFFER_MANAGED) != 0));
        if (info.pointer) CHECK_EQ((uintptr_t)info.pointer, info.address);
        bh_buffer view;
        REQUIRE_OK(bh_buffer_view(buffer, 0, 10, 5, &view));
        bh_buffer_info part = BH_INIT(part);
        REQUIRE_OK(bh_buffer_get_info(view, &part));
        if (info.pointer) CHECK_EQ((uintptr_t)part.pointer, (uintptr_t)info.pointer + 40);
        REQUIRE_OK(bh_buffer_release(view));
        REQUIRE_OK(bh_buffer_release(buffer));
    }
    CHECK_OK(bh_device_close(r.device));
}
