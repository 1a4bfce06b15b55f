/* SPDX-License-Identifier: Apache-2.0 */
/* Allocating, reading, writing, copying and filling buffers. */
#include "../support/buffers.h"
#include "../support/support.h"

static bh_buffer alloc(bh_device device, bh_type type, uint64_t count) {
    bh_buffer buffer = {0};
    REQUIRE_OK(bh_buffer_alloc(device, type, count, NULL, &buffer));
    return buffer;
}

TEST(buffers_of_every_type_know_themselves) {
    bh_device device = open_device();
    for (bh_type type = BH_I8; type <= BH_F64; type++) {
        bh_buffer buffer = alloc(device, type, 1001);
        bh_buffer_info info = BH_INIT(info);
        REQUIRE_OK(bh_buffer_get_info(buffer, &info));
        CHECK_EQ(info.type, type);
        CHECK_EQ(info.count, 1001);
        CHECK_EQ(info.bytes, 1001 * bh_type_size(type));
        CHECK_EQ(info.address, address_of(buffer));
        CHECK_NE(info.address, 0);
        CHECK_NE(info.read_only_address, 0);
        CHECK_NE(info.read_only_address, info.address);
        CHECK_EQ(info.device.id, device.id);
        CHECK_EQ(info.suspect, 0);
        CHECK_EQ(info.is_view, 0);
        CHECK_EQ(info.suspect_bytes, 0);
        CHECK_OK(bh_buffer_release(buffer));
    }
    CHECK_OK(bh_device_close(device));
}

TEST(a_buffer_knows_its_kind) {
    static const uint32_t kinds[] = {0,
                                     BH_BUFFER_SHAREABLE,
                                     BH_BUFFER_MANAGED,
                                     BH_BUFFER_MANAGED | BH_BUFFER_TRANSPARENT,
                                     BH_BUFFER_MANAGED | BH_BUFFER_TRANSPARENT |
                                         BH_BUFFER_UNTRACKED,
                                     BH_BUFFER_DRIVER};
    bh_device device = open_device();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        bh_buffer_options options = BH_INIT(options);
        options.flags = kinds[i] | (i % 2 ? BH_BUFFER_ZERO : 0); /* which is nothing lasting */
        bh_buffer buffer, view;
        bh_status status = bh_buffer_alloc(device, BH_U32, 100, &options, &buffer);
        if (kinds[i] == BH_BUFFER_DRIVER && status == BH_E_UNSUPPORTED) continue;
        REQUIRE_OK(status);
        REQUIRE_OK(bh_buffer_view(buffer, 0, 10, 20, &view));
        bh_buffer_info info = BH_INIT(info);
        CHECK_OK(bh_buffer_get_info(buffer, &info));
        CHECK_EQ(info.flags, kinds[i]);
        CHECK_OK(bh_buffer_get_info(view, &info));
        CHECK_EQ(info.flags, kinds[i]);
    }
    CHECK_OK(bh_device_close(device));
}

TEST(buffers_of_many_sizes_are_aligned_and_apart) {
    static const uint64_t sizes[] = {1,     2,     3,      4,      7,       8,       15,     255,
                                     256,   257,   511,    513,    4095,    4096,    4097,   65535,
                                     65536, 65537, 100000, 999999, 1 << 20, 1048577, 3 << 20};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    bh_device device = open_device();
    bh_buffer buffers[COUNT];
    uint64_t from[COUNT];
    for (int i = 0; i < COUNT; i++) {
        buffers[i] = alloc(device, BH_U8, sizes[i]);
        bh_buffer_info info = BH_INIT(info);
        REQUIRE_OK(bh_buffer_get_info(buffers[i], &info));
        from[i] = info.address;
        CHECK_EQ(info.address % 256, 0);
        CHECK_EQ(info.read_only_address % 256, 0);
        for (int j = 0; j < i; j++)
            CHECK(from[i] + sizes[i] <= from[j] || from[j] + sizes[j] <= from[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        uint8_t pattern = (uint8_t)(i + 1);
        REQUIRE_OK(bh_buffer_fill(buffers[i], 0, sizes[i], &pattern, 1));
    }
    for (int i = 0; i < COUNT; i++) {
        uint8_t first = 0, last = 0;
        CHECK_OK(bh_buffer_read(buffers[i], 0, &first, 1));
        CHECK_OK(bh_buffer_read(buffers[i], sizes[i] - 1, &last, 1));
        CHECK_EQ(first, i + 1);
        CHECK_EQ(last, i + 1);
        CHECK_OK(bh_buffer_release(buffers[i]));
    }
    CHECK_EQ(memory_of(device).bytes_buffers, 0);
    CHECK_OK(bh_device_close(device));
}

TEST(ranges_are_written_and_read_as_asked) {
    enum { SIZE = 40000 };
    bh_device device = open_device();
    bh_buffer buffer = alloc(device, BH_U8, SIZE);
    uint8_t *model = noise_bytes(SIZE, 1), *source = noise_bytes(SIZE, 2), *target = malloc(SIZE);
    rng random = rng_seeded(11);
    REQUIRE_OK(bh_buffer_write(buffer, 0, model, SIZE));
    for (int i = 0; i < 300; i++) {
        uint32_t offset = rng_below(&random, SIZE), room = SIZE - offset;
        uint32_t bytes = rng_below(&random, 4) ? rng_below(&random, room < 99 ? room + 1 : 99)
                                               : rng_below(&random, room + 1);
        uint32_t from = rng_below(&random, SIZE - bytes + 1);
        REQUIRE_OK(bh_buffer_write(buffer, offset, source + from, bytes));
        memcpy(model + offset, source + from, bytes);
        offset = rng_below(&random, SIZE);
        bytes = rng_below(&random, SIZE - offset + 1);
        REQUIRE_OK(bh_buffer_read(buffer, offset, target, bytes));
        CHECK_MEM_EQ(target, model + offset, bytes);
    }
    REQUIRE_OK(bh_buffer_read(buffer, 0, target, SIZE));
    CHECK_MEM_EQ(target, model, SIZE);
    free(model);
    free(source);
    free(target);
    CHECK_OK(bh_device_close(device));
}

TEST(fills_repeat_patterns_of_every_size_from_any_offset) {
    enum { SIZE = 5000 };
    static const uint32_t pattern_sizes[] = {1, 2, 4, 8, 16};
    bh_device device = open_device();
    bh_buffer buffer = alloc(device, BH_U8, SIZE);
    uint8_t *model = noise_bytes(SIZE, 3), *target = malloc(SIZE);
    uint8_t pattern[16];
    rng random = rng_seeded(12);
    REQUIRE_OK(bh_buffer_write(buffer, 0, model, SIZE));
    for (int i = 0; i < 200; i++) {
        uint32_t size = pattern_sizes[i % 5];
        uint32_t offset = rng_below(&random, SIZE);
        uint32_t bytes = rng_below(&random, (SIZE - offset) / size + 1) * size;
        for (int j = 0; j < 16; j++) pattern[j] = (uint8_t)rng_next(&random);
        REQUIRE_OK(bh_buffer_fill(buffer, offset, bytes, pattern, size));
        for (uint32_t j = 0; j < bytes; j++) model[offset + j] = pattern[j % size];
        REQUIRE_OK(bh_buffer_read(buffer, 0, target, SIZE));
        CHECK_MEM_EQ(target, model, SIZE);
    }
    free(model);
    free(target);
    CHECK_OK(bh_device_close(device));
}

TEST(copies_move_ranges_between_and_within_buffers) {
    enum { SIZE = 9000 };
    bh_device device = open_device();
    bh_buffer buffers[2];
    uint8_t *models[2], *target = malloc(SIZE);
    rng random = rng_seeded(13);
    for (uint32_t i = 0; i < 2; i++) {
        buffers[i] = alloc(device, BH_U8, SIZE);
        models[i] = noise_bytes(SIZE, 4 + i);
        REQUIRE_OK(bh_buffer_write(buffers[i], 0, models[i], SIZE));
    }
    for (int i = 0; i < 200; i++) {
        uint32_t to = rng_below(&random, 2), from = rng_below(&random, 2);
        uint32_t bytes = rng_below(&random, SIZE / 2 + 1);
        uint32_t a = rng_below(&random, SIZE - bytes + 1), b = rng_below(&random, SIZE - bytes + 1);
        if (to == from && a < b + bytes && b < a + bytes) continue;
        REQUIRE_OK(bh_buffer_copy(buffers[to], a, buffers[from], b, bytes));
        memmove(models[to] + a, models[from] + b, bytes);
    }
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(bh_buffer_read(buffers[i], 0, target, SIZE));
        CHECK_MEM_EQ(target, models[i], SIZE);
        free(models[i]);
    }
    free(target);
    CHECK_OK(bh_device_close(device));
}

TEST(nothing_can_be_moved_anywhere_in_range) {
    bh_device device = open_device();
    bh_buffer buffer = words_counting(device, 16, 1), other = words_counting(device, 16, 1);
    uint32_t word = 7;
    CHECK_OK(bh_buffer_write(buffer, 0, &word, 0));
    CHECK_OK(bh_buffer_write(buffer, 64, &word, 0));
    CHECK_OK(bh_buffer_read(buffer, 64, &word, 0));
    CHECK_OK(bh_buffer_fill(buffer, 64, 0, &word, 4));
    CHECK_OK(bh_buffer_copy(buffer, 64, other, 64, 0));
    CHECK_EQ(word, 7);
    CHECK(words_count(buffer, 16, 1));
    CHECK_OK(bh_device_close(device));
}

TEST(sixty_four_mebibytes_survive_the_trip) {
    enum { SIZE = 64 << 20 };
    bh_device device = open_device();
    bh_buffer a = alloc(device, BH_U8, SIZE), b = alloc(device, BH_U8, SIZE);
    uint8_t *source = noise_bytes(SIZE, 6), *target = malloc(SIZE);
    uint64_t pattern = UINT64_C(0x1122334455667788);
    REQUIRE(target != NULL);
    REQUIRE_OK(bh_buffer_write(a, 0, source, SIZE));
    REQUIRE_OK(bh_buffer_copy(b, 0, a, 0, SIZE));
    REQUIRE_OK(bh_buffer_fill(a, 0, SIZE, &pattern, 8));
    REQUIRE_OK(bh_buffer_read(b, 0, target, SIZE));
    CHECK(memcmp(source, target, SIZE) == 0);
    REQUIRE_OK(bh_buffer_read(a, 0, target, SIZE));
    CHECK(memcmp(target, &pattern, 8) == 0 && memcmp(target, target + 8, SIZE - 8) == 0);
    free(source);
    free(target);
    CHECK_OK(bh_device_close(device));
}

TEST(views_of_views_share_memory) {
    bh_device device = open_device();
    bh_buffer whole = words_counting(device, 1000, 0), view, inner;
    REQUIRE_OK(bh_buffer_view(whole, 0, 100, 500, &view));
    REQUIRE_OK(bh_buffer_view(view, 0, 50, 10, &inner));
    bh_buffer_info info = BH_INIT(info);
    REQUIRE_OK(bh_buffer_get_info(inner, &info));
    CHECK_EQ(info.is_view, 1);
    CHECK_EQ(info.count, 10);
    CHECK_EQ(info.bytes, 40);
    CHECK_EQ(info.type, BH_U32);
    CHECK_EQ(info.address, address_of(whole) + 150 * 4);
    CHECK_EQ(address_of(view), address_of(whole) + 100 * 4);
    CHECK(words_count(inner, 10, 150));
    word_write(inner, 3, 0xabcd);
    CHECK_EQ(word_read(whole, 153), 0xabcd);
    CHECK_EQ(word_read(view, 53), 0xabcd);
    word_write(whole, 153, 153);
    CHECK(words_count(inner, 10, 150));
    bh_buffer full;
    REQUIRE_OK(bh_buffer_view(whole, 0, 0, 1000, &full));
    CHECK(words_count(full, 1000, 0));
    CHECK_OK(bh_device_close(device));
}

TEST(views_cannot_reach_outside) {
    bh_device device = open_device();
    bh_buffer whole = words_counting(device, 100, 0), view, inner;
    REQUIRE_OK(bh_buffer_view(whole, 0, 50, 10, &view));
    CHECK_REFUSED(bh_buffer_view(whole, 0, 50, 51, &inner), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_view(whole, 0, 101, 1, &inner), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_view(view, 0, 0, 11, &inner), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_view(view, 0, 1, UINT64_MAX - 1, &inner), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_view(view, 0, UINT64_MAX, 1, &inner), BH_E_INVALID);
    uint32_t word = 0;
    CHECK_REFUSED(bh_buffer_read(view, 37, &word, 4), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_write(view, 40, &word, 4), BH_E_INVALID);
    CHECK(words_count(whole, 100, 0));
    CHECK_OK(bh_device_close(device));
}

TEST(memory_stays_while_a_view_lives) {
    bh_device device = open_device();
    bh_buffer whole = words_counting(device, 1 << 16, 9), view;
    REQUIRE_OK(bh_buffer_view(whole, 0, 1000, 1000, &view));
    uint64_t address = address_of(view);
    CHECK_OK(bh_buffer_release(whole));
    CHECK_REFUSED(buffer_address(whole, &address), BH_E_INVALID);
    for (int i = 0; i < 50; i++) { /* whoever took that memory would write over it */
        bh_buffer other = words_filled(device, 1 << 14, 0xdead);
        CHECK_OK(bh_buffer_release(other));
    }
    CHECK_EQ(address_of(view), address);
    CHECK(words_count(view, 1000, 1009));
    CHECK_OK(bh_buffer_release(view));
    CHECK_REFUSED(bh_buffer_release(view), BH_E_INVALID);
    CHECK_EQ(memory_of(device).bytes_buffers, 0);
    CHECK_OK(bh_device_close(device));
}

TEST(references_are_counted) {
    bh_device device = open_device();
    bh_buffer buffer = words_counting(device, 100, 3);
    for (int i = 0; i < 5; i++) CHECK_OK(bh_buffer_retain(buffer));
    for (int i = 0; i < 5; i++) {
        CHECK_OK(bh_buffer_release(buffer));
        CHECK(words_count(buffer, 100, 3));
    }
    CHECK_OK(bh_buffer_release(buffer));
    CHECK_REFUSED(bh_buffer_retain(buffer), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_release(buffer), BH_E_INVALID);
    CHECK_OK(bh_device_close(device));
}

TEST(a_released_handle_never_means_a_later_buffer) {
    bh_device device = open_device();
    bh_buffer first = words_filled(device, 64, 1);
    CHECK_OK(bh_buffer_release(first));
    for (int i = 0; i < 2000; i++) {
        bh_buffer later = words_alloc(device, 64);
        CHECK_NE(later.id, first.id);
        CHECK_REFUSED(bh_buffer_retain(first), BH_E_INVALID);
        CHECK_OK(bh_buffer_release(later));
    }
    CHECK_OK(bh_device_close(device));
}

TEST(memory_is_not_reused_under_work_in_flight) {
    enum { COUNT = 4096 };
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_kernel copy = rig_kernel(&r, "copy_words");
    bh_launch_options there = on_lane(lane, 0);
    for (uint32_t round = 0; round < 5; round++) {
        gate g = gate_close(&r, lane, 0);
        bh_buffer from = words_counting(r.device, COUNT, round);
        bh_buffer to = words_filled(r.device, COUNT, 0);
        bh_ticket ticket = submit(copy, BH_GRID(COUNT, 256),
                                  BH_ARGS(BH_IN(from), BH_OUT(to), (uint32_t)COUNT), &there);
        CHECK_OK(bh_buffer_release(from));
        bh_buffer takers[8];
        for (int i = 0; i < 8; i++) takers[i] = words_filled(r.device, COUNT, 0xbad);
        gate_open(&g);
        CHECK_OK(bh_wait(ticket, LONG_NS));
        CHECK(words_count(to, COUNT, round));
        for (int i = 0; i < 8; i++) {
            CHECK(words_are(takers[i], COUNT, 0xbad));
            CHECK_OK(bh_buffer_release(takers[i]));
        }
        CHECK_OK(bh_buffer_release(to));
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(addresses_stay_while_the_device_fills) {
    bh_device device = open_device();
    bh_buffer first = words_counting(device, 1000, 4);
    uint64_t address = address_of(first);
    bh_buffer others[64];
    for (int i = 0; i < 64; i++) others[i] = words_alloc(device, 1 << (8 + i % 12));
    CHECK_EQ(address_of(first), address);
    for (int i = 0; i < 64; i++) CHECK_OK(bh_buffer_release(others[i]));
    CHECK_EQ(address_of(first), address);
    CHECK(words_count(first, 1000, 4));
    CHECK_OK(bh_device_close(device));
}

TEST(allocation_churn_keeps_contents_apart) {
    enum { SLOTS = 60 };
    bh_device device = open_device();
    bh_buffer buffers[SLOTS] = {{0}};
    uint32_t counts[SLOTS] = {0}, firsts[SLOTS] = {0};
    rng random = rng_seeded(14);
    for (int i = 0; i < 1500; i++) {
        uint32_t slot = rng_below(&random, SLOTS);
        if (buffers[slot].id != 0) {
            CHECK(words_count(buffers[slot], counts[slot], firsts[slot]));
            REQUIRE_OK(bh_buffer_release(buffers[slot]));
            buffers[slot].id = 0;
        } else {
            counts[slot] = 1 + rng_below(&random, rng_below(&random, 8) ? 500 : 30000);
            firsts[slot] = rng_next(&random);
            buffers[slot] = words_counting(device, counts[slot], firsts[slot]);
        }
    }
    CHECK_OK(bh_device_close(device));
}

TEST(out_of_memory_leaves_everything_running) {
    enum { MANY = 100 };
    bh_device_options options = device_options(0);
    options.memory_limit = 64u << 20;
    rig r = rig_open_with(&options);
    bh_buffer kept = words_counting(r.device, 1000, 7);
    bh_buffer buffers[MANY];
    int count = 0;
    bh_status status = BH_OK;
    while (count < MANY) {
        status = bh_buffer_alloc(r.device, BH_U8, 4u << 20, NULL, &buffers[count]);
        if (status != BH_OK) break;
        count++;
    }
    CHECK_REFUSED(status, BH_E_NO_MEMORY);
    CHECK(count >= 4 && count <= 16);
    bh_buffer more = {77};
    CHECK_REFUSED(bh_buffer_alloc(r.device, BH_U8, UINT64_C(1) << 30, NULL, &more), BH_E_NO_MEMORY);
    CHECK_LE(memory_of(r.device).bytes_reserved, 64u << 20);
    CHECK(words_count(kept, 1000, 7));
    REQUIRE(count > 0);
    for (int i = 0; i < count; i++) CHECK_OK(bh_buffer_release(buffers[i]));
    for (int i = 0; i < count; i++)
        CHECK_OK(bh_buffer_alloc(r.device, BH_U8, 4u << 20, NULL, &buffers[i]));
    for (int i = 0; i < count; i++) CHECK_OK(bh_buffer_release(buffers[i]));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(freed_small_pieces_serve_a_large_buffer_again) {
    enum { PIECES = 1000, SIZE = 16 << 10 };
    bh_device_options options = device_options(0);
    options.memory_limit = 64u << 20;
    bh_device device = open_device_with(&options);
    bh_buffer pieces[PIECES];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < PIECES; i++) pieces[i] = alloc(device, BH_U8, SIZE);
        for (int i = 0; i < PIECES; i += 2) CHECK_OK(bh_buffer_release(pieces[i]));
        for (int i = 1; i < PIECES; i += 2) CHECK_OK(bh_buffer_release(pieces[i]));
    }
    bh_buffer large = alloc(device, BH_U8, 8u << 20);
    CHECK_OK(bh_buffer_release(large));
    CHECK_OK(bh_device_close(device));
}
