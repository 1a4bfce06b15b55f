/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of host memory. */
#include <signal.h>

#include "../support/support.h"
#include "../support/transfers.h"

enum { KIB = 1024, MIB = 1 << 20 };

static bh_host_pool open_pool(bh_device device, uint64_t max_bytes, uint64_t max_piece) {
    bh_host_pool_options options = BH_INIT(options);
    options.max_bytes = max_bytes;
    options.max_piece = max_piece;
    bh_host_pool pool = {0};
    REQUIRE_OK(bh_host_pool_open(device, &options, &pool));
    return pool;
}

static bh_host_pool_info info_of(bh_host_pool pool) {
    bh_host_pool_info info = BH_INIT(info);
    REQUIRE_OK(bh_host_pool_get_info(pool, &info));
    CHECK_LE(info.bytes_reserved, info.max_bytes);
    CHECK_LE(info.bytes_taken, info.bytes_reserved);
    return info;
}

static uint64_t not_zero(const void *memory, size_t size) {
    const uint8_t *bytes = memory;
    uint64_t count = 0;
    for (size_t i = 0; i < size; i++) count += bytes[i] != 0;
    return count;
}

TEST(pieces_are_clean_and_work_in_transfers) {
    bh_device device = open_device();
    bh_host_pool pool = open_pool(device, 8 * MIB, 4 * MIB);
    bh_buffer buffer = words_counting(device, 256 * KIB, 5);
    for (int round = 0; round < 4; round++) {
        for (uint64_t bytes = 1; bytes <= 4 * MIB; bytes = bytes * 3 + 1) {
            void *piece;
            REQUIRE_OK(bh_host_pool_take(pool, bytes, 0, &piece));
            CHECK_EQ((uintptr_t)piece % 256, 0);
            CHECK_EQ(not_zero(piece, bytes), 0);
            uint64_t some = bytes < MIB ? bytes : MIB;
            bh_ticket ticket;
            REQUIRE_OK(bh_submit_read((bh_lane){0}, buffer, 0, piece, some, &ticket));
            REQUIRE_OK(bh_wait(ticket, LONG_NS));
            uint32_t first = 5;
            CHECK(memcmp(piece, &first, some < 4 ? some : 4) == 0);
            memset(piece, 0xaa, bytes);
            REQUIRE_OK(bh_submit_write((bh_lane){0}, buffer, 0, piece, some, &ticket));
            REQUIRE_OK(bh_wait(ticket, LONG_NS));
            uint8_t byte = 0;
            REQUIRE_OK(bh_buffer_read(buffer, some - 1, &byte, 1));
            CHECK_EQ(byte, 0xaa);
            word_write(buffer, 0, 5);
            REQUIRE_OK(bh_host_pool_give(pool, piece));
            /* One that is not taken is no target for a read. */
            CHECK_REFUSED(bh_submit_read((bh_lane){0}, buffer, 0, piece, 1, &ticket), BH_E_INVALID);
        }
    }
    bh_host_pool_info info = info_of(pool);
    CHECK_EQ(info.bytes_taken, 0);
    CHECK_GT(info.bytes_cleared, 0);
    CHECK_OK(bh_host_pool_release(pool));
    CHECK_REFUSED(bh_host_pool_release(pool), BH_E_INVALID);
    CHECK_OK(bh_device_close(device));
}

TEST(a_piece_that_a_sequence_uses_is_not_given_back) {
    bh_device device = open_device();
    bh_host_pool pool = open_pool(device, 4 * MIB, 64 * KIB);
    bh_buffer buffer = words_counting(device, 4, 5);
    void *before, *piece;
    REQUIRE_OK(bh_host_pool_take(pool, 64 * KIB, 0, &before));
    REQUIRE_OK(bh_host_pool_take(pool, 64 * KIB, 0, &piece));
    bh_sequence sequence;
    bh_ticket ticket;
    REQUIRE_OK(bh_sequence_begin(device, NULL, &sequence));
    REQUIRE_OK(record_read(sequence, buffer, 0, (char *)piece + 8, 16, NULL));
    REQUIRE_OK(bh_sequence_finish(sequence));
    REQUIRE_OK(bh_sequence_submit(sequence, NULL, &ticket));
    REQUIRE_OK(bh_wait(ticket, LONG_NS));
    uint32_t words[4] = {5, 6, 7, 8};
    CHECK_MEM_EQ((char *)piece + 8, words, sizeof words);
    CHECK_EQ(not_zero(before, 64 * KIB), 0);
    CHECK_REFUSED(bh_host_pool_give(pool, piece), BH_E_BUSY);
    CHECK_REFUSED(bh_host_pool_release(pool), BH_E_BUSY);
    REQUIRE_OK(bh_sequence_release(sequence));
    CHECK_OK(bh_host_pool_give(pool, piece));
    CHECK_OK(bh_host_pool_give(pool, before));
    CHECK_OK(bh_host_pool_release(pool));
    CHECK_OK(bh_device_close(device));
}

TEST(bad_input_is_refused) {
    bh_device device = open_device();
    bh_host_pool pool = open_pool(device, MIB, 64 * KIB), out;
    void *piece, *other;
    bh_host_pool_options options = BH_INIT(options);
    CHECK_REFUSED(bh_host_pool_open(device, &options, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_host_pool_open((bh_device){0}, &options, &out), BH_E_INVALID);
    options.max_bytes = 100;
    CHECK_REFUSED(bh_host_pool_open(device, &options, &out), BH_E_INVALID);
    options.max_bytes = UINT64_MAX;
    CHECK_REFUSED(bh_host_pool_open(device, &options, &out), BH_E_INVALID);
    options.max_bytes = 8192;
    options.max_piece = 8193;
    CHECK_REFUSED(bh_host_pool_open(device, &options, &out), BH_E_INVALID);
    options.size = 1;
    CHECK_REFUSED(bh_host_pool_open(device, &options, &out), BH_E_INVALID);
    CHECK_REFUSED(bh_host_pool_take(pool, 1, 0, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_host_pool_take(pool, 0, 0, &piece), BH_E_INVALID);
    CHECK_REFUSED(bh_host_pool_take(pool, 64 * KIB + 1, 0, &piece), BH_E_INVALID);
    CHECK_REFUSED(bh_host_pool_take(pool, UINT64_MAX, 0, &piece), BH_E_INVALID);
    CHECK_REFUSED(bh_host_pool_take((bh_host_pool){0}, 1, 0, &piece), BH_E_INVALID);
    CHECK_REFUSED(bh_host_pool_take((bh_host_pool){pool.id ^ 1}, 1, 0, &piece), BH_E_INVALID);
    CHECK_REFUSED(bh_host_pool_take((bh_host_pool){device.id}, 1, 0, &piece), BH_E_INVALID);
    REQUIRE_OK(bh_host_pool_take(pool, 5000, 0, &piece));
    CHECK_REFUSED(bh_host_pool_give(pool, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_host_pool_give(pool, (char *)piece + 1), BH_E_INVALID);
    CHECK_REFUSED(bh_host_pool_give(pool, &piece), BH_E_INVALID);
    CHECK_REFUSED(bh_host_pool_give((bh_host_pool){0}, piece), BH_E_INVALID);
    CHECK_REFUSED(bh_host_free(device, piece), BH_E_INVALID);
    CHECK_REFUSED(bh_host_pool_release(pool), BH_E_BUSY);
    REQUIRE_OK(bh_host_alloc(device, 100, &other));
    CHECK_REFUSED(bh_host_pool_give(pool, other), BH_E_INVALID);
    bh_host_pool_info info = {0};
    CHECK_REFUSED(bh_host_pool_get_info(pool, &info), BH_E_INVALID);
    CHECK_REFUSED(bh_host_pool_get_info(pool, NULL), BH_E_INVALID);
    REQUIRE_OK(bh_host_pool_give(pool, piece));
    CHECK_REFUSED(bh_host_pool_give(pool, piece), BH_E_INVALID);
    CHECK_OK(bh_host_pool_release(pool));
    CHECK_REFUSED(bh_host_pool_take(pool, 1, 0, &piece), BH_E_INVALID);
    bh_host_pool last = open_pool(device, MIB, 0);
    REQUIRE_OK(bh_host_pool_take(last, 1, 0, &piece));
    CHECK_OK(bh_device_close(device)); /* closes the pool, pieces or not */
    CHECK_REFUSED(bh_host_pool_take(last, 1, 0, &piece), BH_E_INVALID);
}

typedef struct waiter {
    bh_host_pool pool;
    void *got;
    bh_status status;
} waiter;

static void *wait_for_piece(void *context) {
    waiter *self = context;
    self->status = bh_host_pool_take(self->pool, 256 * KIB, LONG_NS, &self->got);
    return NULL;
}

TEST(an_exhausted_pool_fails_or_waits) {
    bh_device device = open_device();
    bh_host_pool pool = open_pool(device, MIB, MIB);
    void *pieces[4], *more;
    for (int i = 0; i < 4; i++) REQUIRE_OK(bh_host_pool_take(pool, 256 * KIB, 0, &pieces[i]));
    CHECK_REFUSED(bh_host_pool_take(pool, 1, 0, &more), BH_E_BUSY);
    uint64_t before = now_ns();
    CHECK_REFUSED(bh_host_pool_take(pool, 1, 30 * MS, &more), BH_E_TIMEOUT);
    CHECK_GE(now_ns() - before, 29 * MS);
    CHECK_EQ(info_of(pool).refusals, 2);
    waiter one = {.pool = pool};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, wait_for_piece, &one) == 0);
    while (info_of(pool).waiting == 0) sleep_ms(1);
    CHECK_REFUSED(bh_host_pool_release(pool), BH_E_BUSY);
    memset(pieces[2], 0x5c, 256 * KIB);
    REQUIRE_OK(bh_host_pool_give(pool, pieces[2]));
    pthread_join(thread, NULL);
    REQUIRE_OK(one.status);
    CHECK(one.got == pieces[2]);
    CHECK_EQ(not_zero(one.got, 256 * KIB), 0);
    CHECK_EQ(info_of(pool).waits, 1);
    CHECK_EQ(info_of(pool).peak_taken, MIB);
    /* Pieces of one size make way for another size once nobody uses them. */
    for (int i = 0; i < 4; i++) REQUIRE_OK(bh_host_pool_give(pool, pieces[i]));
    REQUIRE_OK(bh_host_pool_take(pool, MIB, 0, &more));
    CHECK_EQ(not_zero(more, MIB), 0);
    REQUIRE_OK(bh_host_pool_give(pool, more));
    CHECK_OK(bh_device_close(device));
}

TEST(a_piece_in_use_by_work_is_not_handed_out) {
    rig r = rig_open(0);
    bh_host_pool pool = open_pool(r.device, 64 * KIB, 64 * KIB);
    bh_lane lane = open_lane(r.device);
    bh_buffer buffer = words_alloc(r.device, 16 * KIB);
    void *piece, *again;
    REQUIRE_OK(bh_host_pool_take(pool, 64 * KIB, 0, &piece));
    memset(piece, 0x21, 64 * KIB);
    gate g = gate_close(&r, lane, 0);
    REQUIRE_OK(bh_submit_write(lane, buffer, 0, piece, 64 * KIB, NULL));
    REQUIRE_OK(bh_host_pool_give(pool, piece));
    CHECK_EQ(info_of(pool).bytes_cooling, 64 * KIB);
    CHECK_REFUSED(bh_host_pool_take(pool, 64 * KIB, 0, &again), BH_E_BUSY);
    CHECK_REFUSED(bh_host_pool_take(pool, 64 * KIB, 20 * MS, &again), BH_E_TIMEOUT);
    gate_open(&g);
    REQUIRE_OK(bh_host_pool_take(pool, 64 * KIB, LONG_NS, &again));
    CHECK(again == piece);
    CHECK_EQ(not_zero(again, 64 * KIB), 0);
    CHECK(words_are(buffer, 16 * KIB, 0x21212121));
    CHECK_OK(bh_device_close(r.device));
}

TEST(pieces_outlive_a_lost_worker) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_host_pool pool = open_pool(r.device, MIB, 0);
    bh_buffer buffer = words_counting(r.device, 1000, 3);
    void *piece, *fresh;
    REQUIRE_OK(bh_host_pool_take(pool, 4000, 0, &piece));
    for (int i = 0; i < 3; i++) {
        kill_worker(r.device, SIGKILL);
        memset(piece, 0, 4000);
        bh_ticket ticket;
        REQUIRE_OK(bh_submit_read((bh_lane){0}, buffer, 0, piece, 4000, &ticket));
        REQUIRE_OK(bh_wait(ticket, LONG_NS));
        CHECK_EQ(((uint32_t *)piece)[999], 1002);
        REQUIRE_OK(bh_host_pool_take(pool, 100000, LONG_NS, &fresh));
        REQUIRE_OK(bh_host_pool_give(pool, fresh));
    }
    REQUIRE_OK(bh_host_pool_give(pool, piece));
    CHECK_OK(bh_host_pool_release(pool));
    CHECK_OK(bh_device_close(r.device));
}

typedef struct crowd {
    bh_device device;
    bh_host_pool pool;
    bh_buffer buffer;
} crowd;

/* Each leaves its mark in what it gives back, and sometimes work that still uses it. */
static void use_pool(void *context, unsigned index) {
    crowd *self = context;
    rng r = rng_seeded(index + 40);
    for (int i = 0; i < 60; i++) {
        uint64_t bytes = 1 + rng_below(&r, 1u << (6 + rng_below(&r, 12)));
        void *piece;
        bh_status status = bh_host_pool_take(self->pool, bytes, LONG_NS, &piece);
        CHECK_OK(status);
        if (status != BH_OK) return;
        CHECK_EQ(not_zero(piece, bytes), 0);
        memset(piece, (int)index + 1, bytes);
        uint64_t some = bytes < 64 * KIB ? bytes : 64 * KIB;
        if (rng_below(&r, 2))
            CHECK_OK(
                bh_submit_write((bh_lane){0}, self->buffer, index * 64 * KIB, piece, some, NULL));
        else
            CHECK_OK(
                bh_submit_read((bh_lane){0}, self->buffer, index * 64 * KIB, piece, some, NULL));
        CHECK_OK(bh_host_pool_give(self->pool, piece));
    }
}

TEST_TIMEOUT(sixteen_threads_share_a_pool, 60) {
    bh_device device = open_device();
    crowd self = {.device = device, .pool = open_pool(device, MIB, 256 * KIB)};
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, MIB, NULL, &self.buffer));
    uint8_t zero = 0;
    REQUIRE_OK(bh_buffer_fill(self.buffer, 0, MIB, &zero, 1));
    run_threads(16, use_pool, &self);
    bh_host_pool_info info = info_of(self.pool);
    CHECK_EQ(info.takes, 16 * 60);
    CHECK_EQ(info.pieces_taken, 0);
    CHECK_OK(bh_host_pool_release(self.pool));
    CHECK_OK(bh_device_close(device));
}
