/* SPDX-License-Identifier: Apache-2.0 */
/* Managed buffers on the driver's own memory: launches, copies, views, prefetch, advice, and what
 * they refuse. */
#include <signal.h>

#include "../support/buffers.h"
#include "../support/managed.h"
#include "../support/transfers.h"

enum { WORDS = 300000, BYTES = WORDS * 4 };

static bh_error last(void) {
    bh_error error;
    bh_last_error(&error);
    return error;
}

static bh_status ask(bh_device device, uint64_t words, const char *tag, bh_buffer *out) {
    bh_buffer_options options = BH_INIT(options);
    options.flags = BH_BUFFER_DRIVER;
    options.tag = tag;
    bh_buffer_info info = BH_INIT(info);
    bh_status status = bh_buffer_alloc(device, BH_U32, words, &options, out);
    if (status == BH_OK && bh_buffer_get_info(*out, &info) == BH_OK) CHECK(info.pointer == NULL);
    return status;
}

static void write_up(bh_buffer buffer, uint64_t words, uint32_t first) {
    uint32_t *data = malloc(words * 4);
    REQUIRE(data != NULL);
    for (uint64_t i = 0; i < words; i++) data[i] = first + (uint32_t)i;
    REQUIRE_OK(bh_buffer_write(buffer, 0, data, words * 4));
    free(data);
}

static bh_status add_one(const rig *r, bh_buffer buffer, uint64_t words) {
    return run_now(rig_kernel(r, "add_one"), BH_GRID(words, 128),
                   BH_ARGS(BH_INOUT(buffer), (uint32_t)words));
}

TEST(launches_read_and_write_it) {
    rig r = rig_open(0);
    bh_buffer m = managed_driven(r.device, WORDS), out = words_alloc(r.device, WORDS);
    write_up(m, WORDS, 7);
    CHECK(words_count(m, WORDS, 7));
    REQUIRE_OK(add_one(&r, m, WORDS));
    CHECK(words_count(m, WORDS, 8));
    REQUIRE_OK(run_now(rig_kernel(&r, "copy_words"), BH_GRID(WORDS, 128),
                       BH_ARGS(BH_IN(m), BH_OUT(out), (uint32_t)WORDS)));
    CHECK(words_count(out, WORDS, 8));
    bh_buffer_info info = BH_INIT(info);
    REQUIRE_OK(bh_buffer_get_info(m, &info));
    CHECK_EQ(info.bytes, BYTES);
    CHECK_NE(info.address, 0);
    CHECK_EQ(info.read_only_address, info.address);
    /* As an address, in an argument and inside another buffer. */
    bh_use also = {.buffer = m, .access = BH_ACCESS_INOUT};
    bh_launch_options options = BH_INIT(options);
    options.also = &also;
    options.also_count = 1;
    uint64_t where[2] = {info.address + 40, info.address + 80};
    REQUIRE_OK(
        run_with(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(where[1], 99u), &options));
    bh_buffer table;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U64, 2, NULL, &table));
    REQUIRE_OK(bh_buffer_write(table, 0, where, sizeof where));
    REQUIRE_OK(run_with(rig_kernel(&r, "gather"), BH_GRID(2, 2),
                        BH_ARGS(BH_IN(table), BH_OUT(out), 2u), &options));
    CHECK_EQ(word_read(out, 0), 18);
    CHECK_EQ(word_read(out, 1), 99);
    CHECK_OK(bh_device_close(r.device));
}

TEST(copies_fills_rows_and_views) {
    rig r = rig_open(0);
    bh_buffer m = managed_driven(r.device, WORDS), n = managed_driven(r.device, WORDS), view;
    bh_buffer plain = words_counting(r.device, WORDS, 3);
    REQUIRE_OK(bh_buffer_copy(m, 0, plain, 0, BYTES));
    CHECK(words_count(m, WORDS, 3));
    REQUIRE_OK(bh_buffer_copy(n, 0, m, 0, BYTES));
    REQUIRE_OK(bh_buffer_fill(m, 0, BYTES, &(uint32_t){5}, 4));
    CHECK(words_are(m, WORDS, 5));
    REQUIRE_OK(bh_buffer_copy(plain, 0, n, 4, BYTES - 4));
    CHECK(words_count(plain, WORDS - 1, 4));
    REQUIRE_OK(bh_buffer_view(m, 0, 1010, 500, &view));
    REQUIRE_OK(add_one(&r, view, 500));
    CHECK(words_are(view, 500, 6));
    CHECK_EQ(word_read(m, 1009), 5);
    CHECK_EQ(word_read(m, 1510), 5);
    CHECK_EQ(address_of(view), address_of(m) + 4040);
    /* A column of four words from rows of a hundred. */
    bh_transfer rows = bh_transfer_init(0, 0);
    rows.width = 16;
    rows.height = 50;
    rows.target_pitch = 400;
    rows.source_pitch = 400;
    REQUIRE_OK(copy_rows(m, n, &rows));
    CHECK_EQ(word_read(m, 0), 3);
    CHECK_EQ(word_read(m, 4), 5);
    CHECK_EQ(word_read(m, 4900), 4903);
    /* The view keeps it, and host memory goes to it directly. */
    REQUIRE_OK(bh_buffer_release(m));
    CHECK_EQ(word_read(view, 0), 6);
    void *host;
    REQUIRE_OK(bh_host_alloc(r.device, 2000, &host));
    memset(host, 0x11, 2000);
    bh_ticket ticket;
    REQUIRE_OK(bh_submit_write((bh_lane){0}, view, 0, host, 2000, &ticket));
    REQUIRE_OK(bh_wait(ticket, LONG_NS));
    CHECK(words_are(view, 500, 0x11111111));
    REQUIRE_OK(bh_buffer_release(view));
    CHECK_OK(bh_device_close(r.device));
}

TEST(prefetches_go_both_ways_and_are_counted) {
    rig r = rig_open(0);
    bh_buffer m = managed_driven(r.device, WORDS), view;
    bh_lane lane = open_lane(r.device);
    bh_ticket ticket;
    write_up(m, WORDS, 0);
    REQUIRE_OK(prefetch_on(lane, m, 0, BYTES, BH_TO_DEVICE, &ticket));
    REQUIRE_OK(bh_wait(ticket, LONG_NS));
    REQUIRE_OK(add_one(&r, m, WORDS));
    REQUIRE_OK(prefetch_on(lane, m, 0, BYTES, BH_TO_HOST, &ticket));
    REQUIRE_OK(bh_wait(ticket, LONG_NS));
    CHECK(words_count(m, WORDS, 1));
    REQUIRE_OK(bh_buffer_view(m, 0, 77, 1000, &view));
    REQUIRE_OK(prefetch_on((bh_lane){0}, view, 5, 7, BH_TO_DEVICE, NULL));
    REQUIRE_OK(bh_device_sync(r.device, LONG_NS));
    /* In order with launches on other lanes, and over and over. */
    for (uint32_t i = 0; i < 50; i++) {
        bh_launch_options there = on_lane(lane, 0);
        bh_ticket added = submit(rig_kernel(&r, "add_one"), BH_GRID(WORDS, 128),
                                 BH_ARGS(BH_INOUT(m), (uint32_t)WORDS), &there);
        REQUIRE_OK(
            prefetch_on((bh_lane){0}, m, 0, BYTES, i % 2 ? BH_TO_DEVICE : BH_TO_HOST, &ticket));
        if (i % 8 == 0) REQUIRE_OK(bh_wait(ticket, LONG_NS));
        if (i % 8 == 0) CHECK_OK(bh_wait(added, 0));
    }
    CHECK(words_count(m, WORDS, 51));
    bh_managed_info info = managed_info(m);
    CHECK_EQ(info.prefetches, 53);
    CHECK_EQ(info.bytes_to_device + info.bytes_to_host + info.moves_to_device + info.moves_to_host,
             0);
    CHECK_EQ(info.maps + info.lanes + info.tracking + info.attach, 0);
    CHECK_OK(bh_device_close(r.device));
}

/* What the worker is told: host/modes.c. */
TEST(advice_of_all_kinds) {
    rig r = rig_open(0);
    bh_buffer m = managed_driven(r.device, WORDS), view;
    static const uint32_t kinds[] = {BH_ADVISE_READ_MOSTLY,
                                     BH_ADVISE_PREFER_DEVICE,
                                     BH_ADVISE_PREFER_HOST,
                                     BH_ADVISE_ACCESSED_BY_DEVICE,
                                     BH_ADVISE_ACCESSED_BY_HOST,
                                     BH_ADVISE_READ_MOSTLY | BH_ADVISE_PREFER_HOST |
                                         BH_ADVISE_ACCESSED_BY_DEVICE};
    write_up(m, WORDS, 0);
    REQUIRE_OK(bh_buffer_view(m, 0, 65536, 65536, &view));
    for (uint32_t i = 0; i < 6; i++) {
        REQUIRE_OK(bh_managed_advise(m, 0, BYTES, kinds[i]));
        REQUIRE_OK(add_one(&r, m, WORDS));
        REQUIRE_OK(bh_managed_advise(view, 0, 262144, 0));
        if (i % 2) REQUIRE_OK(bh_managed_advise(m, 0, BYTES, 0));
        CHECK(words_count(m, WORDS, i + 1));
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(bad_input_is_refused) {
    rig r = rig_open(0);
    bh_device other = open_device();
    bh_lane foreign = open_lane(other);
    bh_buffer m = managed_driven(r.device, 1000), gone = managed_driven(r.device, 10), out;
    REQUIRE_OK(bh_buffer_release(gone));
    bh_lane none = {0};
    uint32_t bits;
    for (int i = 0; i < 2; i++) {
        uint32_t where = i ? BH_TO_HOST : BH_TO_DEVICE;
        CHECK_REFUSED(prefetch_on(none, m, 0, 4001, where, NULL), BH_E_INVALID);
        CHECK_REFUSED(prefetch_on(none, m, 4000, 1, where, NULL), BH_E_INVALID);
        CHECK_REFUSED(prefetch_on(none, m, 0, 0, where, NULL), BH_E_INVALID);
        CHECK_REFUSED(prefetch_on(none, m, UINT64_MAX, 2, where, NULL), BH_E_INVALID);
        CHECK_REFUSED(prefetch_on(foreign, m, 0, 4, where, NULL), BH_E_INVALID);
        CHECK_REFUSED(prefetch_on((bh_lane){77}, m, 0, 4, where, NULL), BH_E_INVALID);
        CHECK_REFUSED(prefetch_on(none, gone, 0, 4, where, NULL), BH_E_INVALID);
    }
    CHECK_REFUSED(prefetch_on(none, m, 0, 4, 0, NULL), BH_E_INVALID);
    CHECK_REFUSED(prefetch_on(none, m, 0, 4, 3, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_advise(m, 0, 4, 32), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_advise(m, 0, 4, BH_ADVISE_PREFER_DEVICE | BH_ADVISE_PREFER_HOST),
                  BH_E_INVALID);
    CHECK_REFUSED(bh_managed_advise(m, 0, 4001, BH_ADVISE_READ_MOSTLY), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_advise(gone, 0, 4, BH_ADVISE_READ_MOSTLY), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_get_info(m, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_write(m, 1, &bits, 4000), BH_E_INVALID);
    const uint32_t driver = BH_BUFFER_DRIVER;
    CHECK_REFUSED(alloc_flags(r.device, BH_U32, 1, driver, NULL), BH_E_INVALID);
    CHECK_REFUSED(alloc_flags(r.device, (bh_type)999, 1, driver, &out), BH_E_INVALID);
    CHECK_REFUSED(alloc_flags(r.device, BH_U32, 1, driver | 8, &out), BH_E_INVALID);
    CHECK_REFUSED(alloc_flags(r.device, BH_U32, 1, driver | BH_BUFFER_UNTRACKED, &out),
                  BH_E_INVALID);
    CHECK_EQ(managed_info(m).prefetches, 0);
    CHECK_OK(bh_device_close(other));
    CHECK_OK(bh_device_close(r.device));
}

TEST(what_is_not_there_says_so) {
    rig r = rig_open(0);
    bh_buffer m = managed_driven(r.device, 1000), plain = words_filled(r.device, 1000, 1), out;
    for (uint32_t flags = BH_MAP_READ; flags <= BH_MAP_WRITE; flags++)
        CHECK_REFUSED(bh_managed_map(m, 0, 4000, flags, NULL), BH_E_UNSUPPORTED);
    CHECK_STR_CONTAINS(last().fix, "bh_buffer_read");
    CHECK_REFUSED(bh_managed_unmap(&r, 4000), BH_E_INVALID);
    CHECK_REFUSED(bh_managed_attach(m, BH_ATTACH_HOST, (bh_lane){0}), BH_E_UNSUPPORTED);
    CHECK_REFUSED(bh_managed_attach(m, BH_ATTACH_LANE, open_lane(r.device)), BH_E_UNSUPPORTED);
    CHECK_OK(bh_managed_attach(m, BH_ATTACH_GLOBAL, (bh_lane){0}));
    const uint32_t others[] = {BH_BUFFER_TRANSPARENT, BH_BUFFER_MANAGED, BH_BUFFER_SHAREABLE};
    for (int i = 0; i < 3; i++)
        CHECK_REFUSED(alloc_flags(r.device, BH_U32, 1, BH_BUFFER_DRIVER | others[i], &out),
                      BH_E_UNSUPPORTED);
    /* What keeps addresses. */
    bh_kernel kernel = rig_kernel(&r, "add_one");
    bh_prepared prepared;
    CHECK_REFUSED(
        bh_prepare(kernel, BH_GRID(1000, 128), BH_ARGS(BH_INOUT(m), 1000u), NULL, &prepared),
        BH_E_UNSUPPORTED);
    CHECK_STR_CONTAINS(last().fix, "bh_launch");
    REQUIRE_OK(
        bh_prepare(kernel, BH_GRID(1000, 128), BH_ARGS(BH_INOUT(plain), 1000u), NULL, &prepared));
    CHECK_REFUSED(launch_changed(prepared, 0, BH_INOUT(m)), BH_E_UNSUPPORTED);
    REQUIRE_OK(bh_prepared_launch(prepared, NULL, 0, NULL));
    bh_sequence sequence;
    REQUIRE_OK(bh_sequence_begin(r.device, NULL, &sequence));
    CHECK_REFUSED(bh_sequence_launch(sequence, kernel, BH_GRID(1000, 128),
                                     BH_ARGS(BH_INOUT(m), 1000u), NULL, NULL),
                  BH_E_UNSUPPORTED);
    CHECK_REFUSED(record_copy(sequence, plain, 0, m, 0, 4000, NULL), BH_E_UNSUPPORTED);
    CHECK_REFUSED(record_fill(sequence, m, 0, 4000, &(uint32_t){1}, 4, NULL), BH_E_UNSUPPORTED);
    REQUIRE_OK(bh_sequence_launch(sequence, kernel, BH_GRID(1000, 128),
                                  BH_ARGS(BH_INOUT(plain), 1000u), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(sequence));
    CHECK_REFUSED(bh_sequence_bind(sequence, plain, m), BH_E_UNSUPPORTED);
    bh_ticket ticket;
    REQUIRE_OK(bh_sequence_submit(sequence, NULL, &ticket));
    REQUIRE_OK(bh_wait(ticket, LONG_NS));
    CHECK(words_are(plain, 1000, 3));
    int fds[BH_SHARE_FDS];
    bh_share_token token;
    CHECK_REFUSED(bh_buffer_export(m, fds, &token), BH_E_UNSUPPORTED);
    CHECK_OK(bh_device_close(r.device));
}

TEST(addresses_are_aligned_as_asked_also_after_a_loss) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    enum { COUNT = 9 };
    bh_buffer buffers[COUNT];
    bh_buffer_options options = BH_INIT(options);
    options.flags = BH_BUFFER_DRIVER;
    for (int i = 0; i < COUNT; i++) {
        options.align = 256ull << i;
        bh_status status = bh_buffer_alloc(r.device, BH_U8, 5000, &options, &buffers[i]);
        if (status == BH_E_UNSUPPORTED) SKIP("%s", last().message);
        REQUIRE_OK(status);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            uint8_t byte = (uint8_t)(round * COUNT + i);
            CHECK_EQ(address_of(buffers[i]) % (256ull << i), 0);
            REQUIRE_OK(bh_buffer_fill(buffers[i], 0, 5000, &byte, 1));
            REQUIRE_OK(bh_managed_advise(buffers[i], 4000, 1000, BH_ADVISE_READ_MOSTLY));
        }
        for (int i = 0; i < COUNT; i++) {
            uint8_t back[2];
            REQUIRE_OK(bh_buffer_read(buffers[i], 4998, back, 2));
            CHECK_EQ(back[1], round * COUNT + i);
        }
        uint64_t losses = health_of(r.device).losses;
        kill_worker(r.device, SIGKILL);
        while (health_of(r.device).losses == losses) sleep_ms(1);
        wait_standby(r.device);
    }
    for (int i = 0; i < COUNT; i++) CHECK_OK(bh_buffer_release(buffers[i]));
    CHECK_OK(bh_device_close(r.device));
}

TEST(not_with_checks_or_guards) {
    static const uint32_t modes[] = {BH_DEVICE_CHECK, BH_DEVICE_GUARD};
    for (int i = 0; i < 2; i++) {
        bh_device_options options = device_options(modes[i]);
        bh_device device;
        if (bh_device_open(&options, &device) != BH_OK) continue; /* a GPU has no checks */
        bh_buffer out;
        CHECK_REFUSED(ask(device, 10, NULL, &out), BH_E_UNSUPPORTED);
        CHECK_OK(bh_device_close(device));
    }
}

typedef struct seen {
    uint64_t bytes, address, buffers, limit;
} seen;

static seen look(bh_device device) {
    bh_memory_entry entries[16];
    size_t count = 0;
    seen s = {0};
    REQUIRE_OK(bh_memory_list(device, entries, sizeof *entries, 16, &count));
    for (size_t i = 0; i < count && i < 16; i++) {
        if (strcmp(entries[i].tag, "large") != 0) continue;
        s.buffers++;
        s.bytes += entries[i].bytes;
        s.address = entries[i].address;
    }
    return s;
}

TEST(it_counts_in_tags_and_listings_and_not_against_the_limit) {
    bh_device_options options = device_options(0);
    options.memory_limit = 8 << 20;
    bh_device device = open_device_with(&options);
    bh_buffer m, other, plain;
    enum { MANY = 5 << 20 };
    bh_memory_info before = BH_INIT(before), after = BH_INIT(after);
    REQUIRE_OK(bh_memory_get_info(device, &before));
    bh_status status = ask(device, MANY, "large", &m);
    if (status == BH_E_UNSUPPORTED) SKIP("%s", last().message);
    REQUIRE_OK(status);
    CHECK_REFUSED(bh_buffer_alloc(device, BH_U32, MANY, NULL, &plain), BH_E_NO_MEMORY);
    REQUIRE_OK(bh_memory_get_info(device, &after));
    CHECK_EQ(after.bytes_reserved, before.bytes_reserved);
    CHECK_EQ(after.bytes_buffers, before.bytes_buffers + MANY * 4ull);
    CHECK_EQ(after.buffers, before.buffers + 1);
    seen s = look(device);
    CHECK_EQ(s.buffers, 1);
    CHECK_EQ(s.bytes, MANY * 4ull);
    CHECK_EQ(s.address, address_of(m));
    /* A tag's own limit holds. */
    REQUIRE_OK(bh_memory_set_limit(device, "large", MANY * 4ull + 100));
    CHECK_REFUSED(ask(device, 100, "large", &other), BH_E_NO_MEMORY);
    REQUIRE_OK(ask(device, 25, "large", &other));
    REQUIRE_OK(bh_buffer_release(m));
    REQUIRE_OK(bh_buffer_release(other));
    REQUIRE_OK(ask(device, MANY, "large", &m));
    REQUIRE_OK(bh_buffer_fill(m, 0, MANY * 4ull, &(uint32_t){9}, 4));
    CHECK_EQ(word_read(m, MANY - 1), 9);
    CHECK_OK(bh_device_close(device));
}

/* Refused before the driver is asked. */
TEST(no_more_than_host_and_device_have) {
    rig r = rig_open(0);
    bh_buffer m = managed_driven(r.device, 10), other;
    CHECK_REFUSED(ask(r.device, UINT64_C(1) << 55, NULL, &other), BH_E_NO_MEMORY);
    CHECK_STR_CONTAINS(last().message, "144115188075855872");
    CHECK_STR_CONTAINS(last().message, "available");
    word_write(m, 3, 4);
    CHECK_EQ(word_read(m, 3), 4);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* Releasing while work that uses it is queued, many times; closing with some left. */
TEST(made_and_released_under_way) {
    rig r = rig_open(0);
    bh_buffer kept = managed_driven(r.device, WORDS);
    REQUIRE_OK(bh_buffer_fill(kept, 0, BYTES, &(uint32_t){0}, 4));
    for (uint32_t i = 0; i < 40; i++) {
        bh_buffer m = managed_driven(r.device, 10000 + i * 1000);
        REQUIRE_OK(bh_buffer_fill(m, 0, 40000, &i, 4));
        bh_ticket ticket = submit(rig_kernel(&r, "add_one"), BH_GRID(10000, 128),
                                  BH_ARGS(BH_INOUT(m), 10000u), NULL);
        (void)ticket;
        REQUIRE_OK(bh_submit_copy((bh_lane){0}, kept, i * 4, m, 39996, 4, NULL));
        REQUIRE_OK(bh_buffer_release(m));
    }
    CHECK(words_count(kept, 40, 1));
    CHECK_OK(bh_device_close(r.device));
}
