/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory of transfers: offsets that wrap, and ranges that leave memory whose bounds the
 * library knows. */
#include "../support/support.h"

static bh_status submit_waiting(const bh_transfer *what) {
    bh_submit_options options = BH_INIT(options);
    options.flags = BH_SUBMIT_WAIT;
    return bh_submit(&what->request, &options, NULL);
}

TEST(offsets_into_host_memory_do_not_wrap) {
    static const uint64_t offsets[] = {UINT64_MAX, UINT64_MAX - 3, UINT64_MAX - 4096,
                                       UINT64_MAX - 15};
    bh_device device = open_device();
    bh_buffer buffer = words_counting(device, 64, 1);
    uint8_t memory[64], before[64];
    memset(memory, 0x5a, sizeof memory);
    memcpy(before, memory, sizeof memory);
    void *host = NULL;
    REQUIRE_OK(bh_host_alloc(device, 64, &host));
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        for (uint64_t height = 0; height <= 2; height++) {
            bh_transfer read = bh_transfer_read(buffer, 0, memory + 32, 8);
            read.target_offset = offsets[i];
            read.height = height;
            CHECK_REFUSED(submit_waiting(&read), BH_E_INVALID);
            CHECK_REFUSED(bh_submit(&read.request, NULL, NULL), BH_E_INVALID);
            read.to = (uint8_t *)host + 32;
            CHECK_REFUSED(submit_waiting(&read), BH_E_INVALID);
            bh_transfer write = bh_transfer_write(buffer, 0, memory + 32, 8);
            write.source_offset = offsets[i];
            write.height = height;
            CHECK_REFUSED(submit_waiting(&write), BH_E_INVALID);
            CHECK_REFUSED(bh_submit(&write.request, NULL, NULL), BH_E_INVALID);
        }
    }
    CHECK(memcmp(memory, before, sizeof memory) == 0);
    CHECK(words_count(buffer, 64, 1));
    CHECK_OK(bh_device_close(device));
}

TEST(offsets_into_host_memory_do_not_wrap_in_sequences) {
    bh_device device = open_device();
    bh_buffer buffer = words_counting(device, 64, 1);
    void *host = NULL;
    REQUIRE_OK(bh_host_alloc(device, 64, &host));
    bh_sequence sequence;
    REQUIRE_OK(bh_sequence_begin(device, NULL, &sequence));
    bh_transfer read = bh_transfer_read(buffer, 0, (uint8_t *)host + 32, 8);
    read.target_offset = UINT64_MAX - 15; /* 16 bytes before the pointer, inside the memory */
    CHECK_REFUSED(bh_sequence_add(sequence, &read.request, NULL), BH_E_INVALID);
    bh_transfer write = bh_transfer_write(buffer, 0, (uint8_t *)host + 32, 8);
    write.source_offset = UINT64_MAX - 15;
    CHECK_REFUSED(bh_sequence_add(sequence, &write.request, NULL), BH_E_INVALID);
    CHECK_OK(bh_device_close(device));
}

/* One page of host memory, with readable memory of the program before and behind it where the
 * system places it so. Nothing is accessed outside, so it need not. */
TEST(transfers_do_not_leave_host_memory) {
    bh_device device = open_device();
    bh_buffer buffer = words_counting(device, 64, 1);
    void *memory = NULL;
    REQUIRE_OK(bh_host_alloc(device, 100, &memory));
    uint8_t *host = memory;
    memset(host, 0x5a, 100);
    static const struct {
        int64_t from;
        uint64_t bytes;
    } bad[] = {{0, 101}, {99, 2}, {97, 4}, {-1, 2}, {-8, 9}, {-8, 200}, {1, 100}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint8_t *at = (uint8_t *)((uintptr_t)host + (uintptr_t)bad[i].from);
        bh_transfer read = bh_transfer_read(buffer, 0, at, bad[i].bytes);
        bh_transfer write = bh_transfer_write(buffer, 0, at, bad[i].bytes);
        CHECK_REFUSED(submit_waiting(&read), BH_E_INVALID);
        CHECK_REFUSED(submit_waiting(&write), BH_E_INVALID);
        CHECK_REFUSED(bh_buffer_read(buffer, 0, at, bad[i].bytes), BH_E_INVALID);
        CHECK_REFUSED(bh_buffer_write(buffer, 0, at, bad[i].bytes), BH_E_INVALID);
        CHECK_REFUSED(bh_submit_read((bh_lane){0}, buffer, 0, at, bad[i].bytes, NULL),
                      BH_E_INVALID);
        CHECK_REFUSED(bh_submit_write((bh_lane){0}, buffer, 0, at, bad[i].bytes, NULL),
                      BH_E_INVALID);
    }
    bh_transfer rows = bh_transfer_read(buffer, 0, host, 20);
    rows.height = 3;
    rows.target_pitch = 41; /* the last row ends one byte behind */
    CHECK_REFUSED(submit_waiting(&rows), BH_E_INVALID);
    bh_error error;
    bh_last_error(&error);
    CHECK(strstr(error.message, "102 bytes") && strstr(error.message, "100 bytes"));
    for (int i = 0; i < 100; i++) CHECK_EQ(host[i], 0x5a);
    rows.target_pitch = 40;
    CHECK_OK(submit_waiting(&rows));
    CHECK_OK(bh_buffer_read(buffer, 0, host, 100));
    CHECK_EQ(host[0], 1);
    CHECK(words_count(buffer, 64, 1));
    CHECK_OK(bh_device_close(device));
}

TEST(transfers_do_not_leave_a_piece_of_a_pool) {
    bh_device device = open_device();
    bh_buffer buffer = words_counting(device, 4096, 1);
    bh_host_pool pool;
    REQUIRE_OK(bh_host_pool_open(device, NULL, &pool));
    void *one = NULL;
    REQUIRE_OK(bh_host_pool_take(pool, 4096, 0, &one));
    CHECK_OK(bh_buffer_read(buffer, 0, one, 4096));
    CHECK_REFUSED(bh_buffer_read(buffer, 0, one, 4097), BH_E_INVALID);
    CHECK_OK(bh_host_pool_give(pool, one));
    CHECK_REFUSED(bh_buffer_read(buffer, 0, one, 16), BH_E_INVALID);
    CHECK_OK(bh_device_close(device));
}

/* A pitch of rows of which there is one means nothing. */
TEST(one_row_has_no_pitch) {
    bh_device device = open_device();
    bh_buffer buffer = words_counting(device, 64, 1);
    uint8_t bytes[32];
    bh_transfer fill = bh_transfer_fill(buffer, 0, 31, "\1\2\3\4", 4);
    fill.target_pitch = 5;
    CHECK_OK(submit_waiting(&fill));
    bh_transfer read = bh_transfer_read(buffer, 0, bytes, 32);
    read.target_pitch = read.source_pitch = 5;
    CHECK_OK(submit_waiting(&read));
    for (int i = 0; i < 31; i++) CHECK_EQ(bytes[i], i % 4 + 1);
    CHECK_EQ(bytes[31], 0);
    CHECK_OK(bh_device_close(device));
}
