/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of device memory: tags, limits, listings, casts, trimming, pressure. */
#include <inttypes.h>

#include "../support/buffers.h"
#include "../support/support.h"

enum { MIB = 1 << 20 };

static bh_buffer tagged(bh_device device, uint64_t bytes, const char *tag) {
    bh_buffer_options options = BH_INIT(options);
    options.tag = tag;
    bh_buffer buffer = {0};
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, bytes, &options, &buffer));
    return buffer;
}

typedef struct tag_log {
    bh_memory_tag tags[64];
    size_t count;
} tag_log;

static tag_log tags_of(bh_device device) {
    tag_log log;
    REQUIRE_OK(bh_memory_list_tags(device, log.tags, sizeof *log.tags, 64, &log.count));
    return log;
}

static const bh_memory_tag *find_tag(const tag_log *log, const char *name) {
    for (size_t i = 0; i < log->count && i < 64; i++) {
        if (strcmp(log->tags[i].tag, name) == 0) return &log->tags[i];
    }
    return NULL;
}

typedef struct entry_log {
    bh_memory_entry entries[64];
    size_t count;
} entry_log;

static entry_log entries_of(bh_device device) {
    entry_log log;
    REQUIRE_OK(bh_memory_list(device, log.entries, sizeof *log.entries, 64, &log.count));
    return log;
}

TEST(buffers_are_aligned_and_zeroed_as_asked) {
    bh_device device = open_device();
    bh_buffer dirty = tagged(device, 3 * MIB, NULL);
    uint8_t pattern = 0xee;
    REQUIRE_OK(bh_buffer_fill(dirty, 0, 3 * MIB, &pattern, 1));
    REQUIRE_OK(bh_buffer_release(dirty));
    for (uint64_t align = 1; align <= 65536; align *= 2) {
        for (uint64_t bytes = 100; bytes < 6 * MIB; bytes *= 37) {
            bh_buffer_options options = BH_INIT(options);
            options.align = align;
            options.flags = BH_BUFFER_ZERO;
            bh_buffer buffer;
            REQUIRE_OK(bh_buffer_alloc(device, BH_U8, bytes, &options, &buffer));
            CHECK_EQ(address_of(buffer) % align, 0);
            CHECK_EQ(address_of(buffer) % 256, 0);
            uint8_t *data = malloc(bytes);
            REQUIRE(data != NULL);
            REQUIRE_OK(bh_buffer_read(buffer, 0, data, bytes));
            uint64_t wrong = 0;
            for (uint64_t i = 0; i < bytes; i++) wrong += data[i] != 0;
            CHECK_EQ(wrong, 0);
            free(data);
            REQUIRE_OK(bh_buffer_release(buffer));
        }
    }
    CHECK_EQ(memory_of(device).buffers, 0);
    CHECK_OK(bh_device_close(device));
}

TEST(bad_options_are_refused) {
    bh_device device = open_device();
    bh_buffer out, x = tagged(device, 64, "x");
    bh_buffer_options options = BH_INIT(options);
    CHECK_REFUSED(bh_buffer_alloc(device, BH_U8, 1, &options, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_alloc(device, 99, 1, &options, &out), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_alloc(device, 99, 0, &options, &out), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_alloc(device, BH_U64, UINT64_MAX, &options, &out), BH_E_NO_MEMORY);
    static const uint64_t aligns[] = {3, 255, 257, 131072, UINT64_MAX, (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof aligns / sizeof *aligns; i++) {
        options.align = aligns[i];
        CHECK_REFUSED(bh_buffer_alloc(device, BH_U8, 1, &options, &out), BH_E_INVALID);
    }
    options.align = 0;
    options.flags = 2;
    CHECK_REFUSED(bh_buffer_alloc(device, BH_U8, 1, &options, &out), BH_E_INVALID);
    options.flags = 0;
    options.size = 3;
    CHECK_REFUSED(bh_buffer_alloc(device, BH_U8, 1, &options, &out), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_view(x, BH_U8, 0, BH_WHOLE, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_view(x, 15, 0, BH_WHOLE, &out), BH_E_INVALID);
    CHECK_REFUSED(bh_memory_get_info(device, NULL), BH_E_INVALID);
    bh_memory_info info = {0};
    CHECK_REFUSED(bh_memory_get_info(device, &info), BH_E_INVALID);
    bh_memory_entry entry;
    bh_memory_tag tag;
    size_t count = 5;
    CHECK_REFUSED(bh_memory_list(device, NULL, sizeof entry, 1, &count), BH_E_INVALID);
    CHECK_REFUSED(bh_memory_list(device, &entry, 7, 1, &count), BH_E_INVALID);
    CHECK_REFUSED(bh_memory_list_tags(device, &tag, 0, 1, &count), BH_E_INVALID);
    CHECK_REFUSED(bh_memory_list_tags(device, &tag, sizeof tag, 1, NULL), BH_E_INVALID);
    CHECK_EQ(count, 5);
    bh_device none = {0}, forged = {device.id ^ 1};
    uint64_t freed = 7;
    for (int i = 0; i < 2; i++) {
        bh_device bad = i ? none : forged;
        info = (bh_memory_info)BH_INIT(info);
        CHECK_REFUSED(bh_buffer_alloc(bad, BH_U8, 1, NULL, &out), BH_E_INVALID);
        CHECK_REFUSED(bh_memory_get_info(bad, &info), BH_E_INVALID);
        CHECK_REFUSED(bh_memory_reset_peak(bad), BH_E_INVALID);
        CHECK_REFUSED(bh_memory_set_limit(bad, NULL, 1), BH_E_INVALID);
        CHECK_REFUSED(bh_memory_trim(bad, 0, &freed), BH_E_INVALID);
        CHECK_REFUSED(bh_memory_list(bad, &entry, sizeof entry, 1, &count), BH_E_INVALID);
        CHECK_REFUSED(bh_memory_list_tags(bad, &tag, sizeof tag, 1, &count), BH_E_INVALID);
    }
    CHECK_EQ(freed, 7);
    CHECK_REFUSED(bh_buffer_view((bh_buffer){0}, BH_U8, 0, BH_WHOLE, &out), BH_E_INVALID);
    CHECK_OK(bh_device_close(device));
}

TEST(casts_see_the_same_bytes) {
    bh_device device = open_device();
    bh_buffer words = words_counting(device, 6, 0x01020304), bytes, part, view, longs;
    REQUIRE_OK(bh_buffer_view(words, BH_U8, 0, BH_WHOLE, &bytes));
    bh_buffer_info info = BH_INIT(info);
    REQUIRE_OK(bh_buffer_get_info(bytes, &info));
    CHECK_EQ(info.count, 24);
    CHECK_EQ(info.type, BH_U8);
    CHECK_EQ(info.is_view, 1);
    CHECK_EQ(info.address, address_of(words));
    REQUIRE_OK(bh_buffer_view(words, BH_F64, 0, BH_WHOLE, &longs));
    REQUIRE_OK(bh_buffer_view(words, 0, 0, 5, &part));
    CHECK_REFUSED(bh_buffer_view(part, BH_U64, 0, BH_WHOLE, &view), BH_E_INVALID); /* 20 bytes */
    REQUIRE_OK(bh_buffer_view(words, 0, 1, 4, &view));
    bh_buffer out;
    CHECK_REFUSED(bh_buffer_view(view, BH_U64, 0, BH_WHOLE, &out),
                  BH_E_INVALID); /* begins at byte 4 */
    REQUIRE_OK(bh_buffer_view(view, BH_U16, 0, BH_WHOLE, &out));
    uint16_t half = 0;
    REQUIRE_OK(bh_buffer_read(out, 0, &half, 2));
    CHECK_EQ(half, 0x0305);
    REQUIRE_OK(bh_buffer_release(words));
    REQUIRE_OK(bh_buffer_read(out, 0, &half, 2)); /* a cast keeps the memory */
    CHECK_EQ(half, 0x0305);
    CHECK_EQ(memory_of(device).buffers, 1);
    CHECK_OK(bh_device_close(device));
}

TEST(listings_are_largest_first_and_name_their_owners) {
    bh_device device = open_device();
    bh_buffer a = tagged(device, 1000, "alpha"), b = tagged(device, 3 * MIB, "beta"), view;
    bh_buffer c = tagged(device, 70000, "alpha"), d = words_alloc(device, 10);
    char here[64];
    snprintf(here, sizeof here, "%d", __LINE__ + 1);
    bh_buffer e = tagged(device, 2000, BH_HERE);
    REQUIRE_OK(bh_buffer_view(b, 0, 0, 5, &view));
    entry_log log = entries_of(device);
    REQUIRE(log.count == 5);
    CHECK_EQ(log.entries[0].bytes, 3 * MIB);
    CHECK_EQ(log.entries[0].address, address_of(b));
    CHECK_EQ(log.entries[0].handles, 2);
    CHECK_EQ(log.entries[0].state, BH_MEMORY_LIVE);
    CHECK_STR_EQ(log.entries[0].tag, "beta");
    CHECK_EQ(log.entries[1].bytes, 70000);
    CHECK_EQ(log.entries[2].bytes, 2000);
    CHECK(strstr(log.entries[2].tag, "memory.c:") != NULL && strstr(log.entries[2].tag, here));
    CHECK_STR_EQ(log.entries[3].tag, "alpha");
    CHECK_EQ(log.entries[4].bytes, 40);
    CHECK_EQ(log.entries[4].type, BH_U32);
    CHECK_STR_EQ(log.entries[4].tag, "");
    for (int i = 0; i < 5; i++) CHECK(log.entries[i].call_site != NULL);
    tag_log tags = tags_of(device);
    CHECK_EQ(tags.count, 4);
    CHECK_STR_EQ(tags.tags[0].tag, "beta");
    const bh_memory_tag *alpha = find_tag(&tags, "alpha");
    REQUIRE(alpha != NULL);
    CHECK_EQ(alpha->bytes, 71000);
    CHECK_EQ(alpha->buffers, 2);
    REQUIRE_OK(bh_buffer_release(c));
    REQUIRE_OK(bh_memory_reset_peak(device));
    tags = tags_of(device);
    alpha = find_tag(&tags, "alpha");
    REQUIRE(alpha != NULL);
    CHECK_EQ(alpha->peak, 1000);
    CHECK_EQ(alpha->allocations, 2);
    CHECK_EQ(memory_of(device).peak_buffers, memory_of(device).bytes_buffers);
    (void)a, (void)d, (void)e;
    /* Of a long name the end is kept. */
    char name[400];
    memset(name, 'n', sizeof name - 1);
    strcpy(name + sizeof name - 5, "end!");
    bh_buffer f = tagged(device, 5 * MIB, name);
    tags = tags_of(device);
    CHECK_EQ(strlen(tags.tags[0].tag), BH_TAG_BYTES - 1);
    CHECK_STR_EQ(tags.tags[0].tag + BH_TAG_BYTES - 5, "end!");
    (void)f;
    CHECK_OK(bh_device_close(device));
}

/* A program built with an older or newer header has shorter or longer entries. */
static void check_list_of(bh_device device, size_t entry_size, size_t capacity) {
    uint8_t list[6 * 512];
    size_t count = 0;
    memset(list, 0x5a, sizeof list);
    REQUIRE_OK(
        bh_memory_list(device, (bh_memory_entry *)(void *)list, entry_size, capacity, &count));
    CHECK_EQ(count, 5);
    size_t given = capacity < 5 ? capacity : 5;
    for (size_t i = 0; i < given; i++) {
        bh_memory_entry entry = {0};
        size_t part = entry_size < sizeof entry ? entry_size : sizeof entry;
        memcpy(&entry, list + i * entry_size, part);
        CHECK_EQ(entry.size, entry_size);
        CHECK_EQ(entry.type, BH_U8);
        if (part > offsetof(bh_memory_entry, bytes)) CHECK_EQ(entry.bytes, 500 - i * 100);
        for (size_t k = part; k < entry_size; k++) CHECK_EQ(list[i * entry_size + k], 0);
    }
    for (size_t k = given * entry_size; k < sizeof list; k++) CHECK_EQ(list[k], 0x5a);
}

TEST(lists_have_the_length_and_the_entries_that_were_asked_for) {
    bh_device device = open_device();
    for (uint64_t i = 1; i <= 5; i++) (void)tagged(device, i * 100, "five");
    static const size_t sizes[] = {8, offsetof(bh_memory_entry, address), sizeof(bh_memory_entry),
                                   sizeof(bh_memory_entry) + 8, 512};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t capacity = 0; capacity <= 6; capacity++)
            check_list_of(device, sizes[i], capacity);
    size_t count = 0;
    CHECK_OK(bh_memory_list(device, NULL, 0, 0, &count));
    CHECK_EQ(count, 5);
    CHECK_OK(bh_memory_list_tags(device, NULL, 0, 0, &count));
    CHECK_EQ(count, 1);
    CHECK_OK(bh_device_close(device));
}

TEST(a_freed_buffer_in_use_is_listed_as_leaving) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    gate g = gate_close(&r, lane, 0);
    bh_buffer x = tagged(r.device, 5 * MIB, "leaver");
    uint8_t one = 1;
    REQUIRE_OK(bh_submit_fill(lane, x, 0, 5 * MIB, &one, 1, NULL));
    REQUIRE_OK(bh_buffer_release(x));
    CHECK_GE(memory_of(r.device).bytes_leaving, 5 * MIB);
    entry_log log = entries_of(r.device);
    CHECK_EQ(log.entries[0].state, BH_MEMORY_LEAVING);
    CHECK_EQ(log.entries[0].handles, 0);
    CHECK_STR_EQ(log.entries[0].tag, "leaver");
    gate_open(&g);
    REQUIRE_OK(bh_lane_sync(lane, LONG_NS));
    CHECK_EQ(memory_of(r.device).bytes_leaving, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(limits_of_tags_and_devices_hold_and_change) {
    bh_device device = open_device();
    REQUIRE_OK(bh_memory_set_limit(device, "small", 10000));
    bh_buffer a = tagged(device, 6000, "small"), b, c;
    bh_buffer_options options = BH_INIT(options);
    options.tag = "small";
    CHECK_REFUSED(bh_buffer_alloc(device, BH_U8, 4001, &options, &b), BH_E_NO_MEMORY);
    bh_error why;
    bh_last_error(&why);
    CHECK(strstr(why.message, "small") && strstr(why.message, "10000"));
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, 4000, &options, &b));
    REQUIRE_OK(bh_buffer_release(a));
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, 6000, &options, &a));
    REQUIRE_OK(bh_memory_set_limit(device, "small", 0));
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, MIB, &options, &c));

    uint64_t held = memory_of(device).bytes_reserved;
    REQUIRE_OK(bh_memory_set_limit(device, NULL, held + 16 * MIB));
    options.tag = "hog";
    REQUIRE_OK(bh_memory_set_limit(device, "hog", 20 * MIB));
    bh_buffer hog, more;
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, 12 * MIB, &options, &hog));
    CHECK_REFUSED(bh_buffer_alloc(device, BH_U8, 48 * MIB, NULL, &more), BH_E_NO_MEMORY);
    bh_last_error(&why);
    CHECK_STR_CONTAINS(why.message, "50331648 bytes asked for");
    CHECK_STR_CONTAINS(why.message, "\"hog\" 12582912 in 1 (limit 20971520)");
    uint64_t free_bytes = 0, largest = 0;
    const char *numbers = strstr(why.message, "in buffers; ");
    REQUIRE(numbers);
    REQUIRE_EQ(sscanf(numbers,
                      "in buffers; %" SCNu64 " are free, the largest free piece is %" SCNu64,
                      &free_bytes, &largest),
               2);
    CHECK_EQ(free_bytes, memory_of(device).bytes_free);
    CHECK_EQ(largest, memory_of(device).largest_free);
    CHECK_GE(memory_of(device).refusals, 2);
    REQUIRE_OK(bh_buffer_release(hog));
    /* What is unused goes when the limit is lowered. */
    REQUIRE_OK(bh_memory_set_limit(device, NULL, held));
    CHECK_LE(memory_of(device).bytes_reserved, held);
    REQUIRE_OK(bh_memory_set_limit(device, NULL, 0));
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, 48 * MIB, NULL, &more));
    CHECK_OK(bh_device_close(device));
}

/* Plain, shareable, managed and driver-managed buffers are allocated on one path. */
static bh_status alloc_kind(bh_device device, int kind, uint64_t bytes, const char *tag,
                            bh_buffer *out) {
    static const uint32_t flags[] = {0, BH_BUFFER_SHAREABLE, BH_BUFFER_MANAGED, BH_BUFFER_DRIVER};
    bh_buffer_options options = BH_INIT(options);
    options.tag = tag;
    options.flags = flags[kind];
    return bh_buffer_alloc(device, BH_U8, bytes, &options, out);
}

TEST(managed_buffers_and_what_moves_are_totalled) {
    rig r = rig_open(0);
    enum { WORDS = 4096, BYTES = WORDS * 4 };
    bh_buffer plain = words_alloc(r.device, WORDS), one = {0}, two = {0};
    void *pointer = NULL;
    bh_status status = alloc_managed(r.device, BH_U32, WORDS, 0, &one, &pointer);
    uint32_t *first = pointer;
    if (status == BH_E_UNSUPPORTED) SKIP("%s", bh_last_message());
    REQUIRE_OK(status);
    REQUIRE_OK(alloc_managed(r.device, BH_U32, WORDS, 0, &two, NULL));
    bh_memory_info info = memory_of(r.device);
    CHECK_EQ(info.managed_buffers, 2);
    CHECK_EQ(info.managed_bytes, 2 * BYTES);
    CHECK_EQ(info.buffers, 3);
    CHECK_EQ(info.managed_to_device, 0);
    CHECK_EQ(info.managed_to_host, 0);
    REQUIRE_OK(bh_managed_map(one, 0, BYTES, BH_MAP_WRITE, NULL));
    for (uint32_t i = 0; i < WORDS; i++) first[i] = i;
    REQUIRE_OK(bh_managed_unmap(first, BYTES));
    REQUIRE_OK(run_now(rig_kernel(&r, "add_one"), BH_GRID(WORDS, 64),
                       BH_ARGS(BH_INOUT(one), (uint32_t)WORDS)));
    CHECK_EQ(memory_of(r.device).managed_to_device, BYTES);
    REQUIRE_OK(bh_managed_map(one, 0, BYTES, BH_MAP_READ, NULL));
    CHECK_EQ(first[WORDS - 1], WORDS);
    REQUIRE_OK(bh_managed_unmap(first, BYTES));
    CHECK_EQ(memory_of(r.device).managed_to_host, BYTES);
    /* What a buffer has moved stays counted when it is gone. */
    REQUIRE_OK(bh_buffer_release(one));
    REQUIRE_OK(bh_buffer_release(plain));
    info = memory_of(r.device);
    CHECK_EQ(info.managed_buffers, 1);
    CHECK_EQ(info.managed_bytes, BYTES);
    CHECK_EQ(info.managed_to_device, BYTES);
    CHECK_EQ(info.managed_to_host, BYTES);
    REQUIRE_OK(bh_buffer_release(two));
    CHECK_EQ(memory_of(r.device).managed_buffers, 0);
    CHECK_EQ(memory_of(r.device).managed_bytes, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(every_kind_of_allocation_is_counted_and_undone_alike) {
    bh_device device = open_device();
    for (int kind = 0; kind < 4; kind++) {
        const char *tag = "kind";
        bh_buffer buffer;
        bh_status status = alloc_kind(device, kind, 5000, tag, &buffer);
        if (status == BH_E_UNSUPPORTED) continue;
        REQUIRE_OK(status);
        for (int live = 1; live >= 0; live--) {
            tag_log tags = tags_of(device);
            const bh_memory_tag *found = find_tag(&tags, tag);
            REQUIRE(found || !live);
            CHECK_EQ(found ? found->bytes : 0, live ? 5000u : 0);
            CHECK_EQ(found ? found->buffers : 0, (uint64_t)live);
            CHECK_EQ(memory_of(device).bytes_buffers, live ? 5000u : 0);
            /* One that does not fit leaves the counts as they are. */
            bh_buffer more;
            CHECK_REFUSED_ANY(alloc_kind(device, kind, 1ull << 60, tag, &more));
            if (live) REQUIRE_OK(bh_buffer_release(buffer));
        }
    }
    CHECK_OK(bh_device_close(device));
}

TEST(trimming_gives_back_what_holds_no_buffer) {
    bh_device device = open_device();
    bh_buffer small = tagged(device, 100, NULL), large[8];
    for (int i = 0; i < 8; i++) large[i] = tagged(device, 8 * MIB, "large");
    uint64_t before = memory_of(device).bytes_reserved, freed = 1;
    REQUIRE_OK(bh_memory_trim(device, 0, &freed));
    CHECK_EQ(freed, 0);
    for (int i = 0; i < 8; i++) REQUIRE_OK(bh_buffer_release(large[i]));
    CHECK_EQ(memory_of(device).bytes_reserved, before);
    CHECK_GE(memory_of(device).bytes_unused, 64 * MIB);
    REQUIRE_OK(bh_memory_trim(device, before - 16 * MIB, &freed));
    CHECK_GE(freed, 16 * MIB);
    CHECK_LE(memory_of(device).bytes_reserved, before - 16 * MIB);
    REQUIRE_OK(bh_memory_trim(device, 0, NULL));
    CHECK_EQ(memory_of(device).bytes_unused, 0);
    CHECK_GE(counters_of(device).chunks_trimmed, 8);
    uint8_t word[4] = {1, 2, 3, 4}, back[4] = {0};
    REQUIRE_OK(bh_buffer_write(small, 0, word, 4));
    REQUIRE_OK(bh_buffer_read(small, 0, back, 4));
    CHECK(memcmp(word, back, 4) == 0);
    REQUIRE_OK(bh_buffer_release(small));
    REQUIRE_OK(bh_memory_trim(device, 0, NULL));
    CHECK_EQ(memory_of(device).bytes_reserved, 0);
    CHECK_OK(bh_device_close(device));
}

/* Large buffers that come and go in ever other sizes: what the device holds stays near what it
 * needs, and what it has is used again. */
TEST(what_is_held_stays_near_what_is_live) {
    enum { MAX = 128, STEPS = 600 };
    const uint64_t budget = 400 * MIB;
    bh_device device = open_device();
    bh_memory_info info = memory_of(device);
    if (info.limit < 2 * budget) SKIP("the device has %llu bytes", (unsigned long long)info.limit);
    bh_buffer live[MAX];
    uint64_t sizes[MAX], bytes = 0, state = 88172645463325252u;
    uint32_t count = 0;
    for (int step = 0; step < STEPS; step++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t size = (4 * MIB << (state >> 33) % 3) + (state >> 36) % (4 * MIB);
        while (count == MAX || bytes + size > budget) {
            uint32_t at = (uint32_t)(state >> 40) % count;
            REQUIRE_OK(bh_buffer_release(live[at]));
            bytes -= sizes[at];
            live[at] = live[--count];
            sizes[at] = sizes[count];
        }
        live[count] = tagged(device, size, NULL);
        sizes[count++] = size;
        bytes += size;
        CHECK_LE(memory_of(device).bytes_reserved, budget + budget / 4 + 32 * MIB);
    }
    info = memory_of(device);
    CHECK_EQ(info.bytes_buffers, bytes);
    uint64_t trimmed = counters_of(device).chunks_trimmed;
    CHECK_GE(trimmed, 1);
    CHECK_LE(trimmed, STEPS * 3 / 4);
    CHECK_OK(bh_device_close(device));
}

TEST(unused_chunks_make_way_for_an_allocation_at_the_limit) {
    bh_device_options options = device_options(0);
    options.memory_limit = 100u << 20;
    bh_device device = open_device_with(&options);
    for (uint64_t i = 0; i < 30; i++) {
        bh_buffer x = tagged(device, (40 + i) * MIB, NULL);
        REQUIRE_OK(bh_buffer_release(x));
    }
    CHECK_LE(memory_of(device).bytes_reserved, 100u << 20);
    CHECK_GE(counters_of(device).chunks_trimmed, 1);
    CHECK_EQ(memory_of(device).refusals, 0);
    CHECK_OK(bh_device_close(device));
}

typedef struct pressure_log {
    _Atomic int reasons[5];
    _Atomic uint64_t asked;
} pressure_log;

static void log_pressure(void *context, const bh_event *event) {
    const bh_pressure *pressure = event->pressure;
    pressure_log *log = context;
    bh_memory_info info = BH_INIT(info); /* any call may be made here */
    CHECK_OK(bh_memory_get_info(event->device, &info));
    atomic_store(&log->asked, pressure->asked);
    atomic_fetch_add(&log->reasons[pressure->reason], (int)pressure->times);
}

static void watch_pressure(bh_device device, uint64_t threshold, pressure_log *log) {
    bh_watch_options options = BH_INIT(options);
    options.kinds = BH_EVENT_PRESSURE;
    options.pressure_threshold = threshold;
    bh_watch watch;
    REQUIRE_OK(bh_watch_open(device, &options, log_pressure, log, &watch));
}

TEST(watchers_hear_of_pressure) {
    bh_device_options options = device_options(0);
    options.memory_limit = 100u << 20;
    bh_device device = open_device_with(&options);
    static pressure_log log, other;
    watch_pressure(device, 10 * MIB, &log);
    watch_pressure(device, 0, &other);
    bh_buffer a = tagged(device, 9 * MIB, NULL), b = tagged(device, MIB, NULL);
    REQUIRE_OK(bh_device_sync(device, LONG_NS));
    CHECK_EQ(log.reasons[BH_PRESSURE_ABOVE], 1);
    REQUIRE_OK(bh_buffer_release(b)); /* to 9 of 10: below 15/16 */
    b = tagged(device, 512 * 1024, NULL);
    REQUIRE_OK(bh_device_sync(device, LONG_NS));
    CHECK_EQ(log.reasons[BH_PRESSURE_ABOVE], 1);
    CHECK_EQ(log.reasons[BH_PRESSURE_BELOW], 1);
    bh_buffer c;
    CHECK_REFUSED(bh_buffer_alloc(device, BH_U8, 99 * MIB, NULL, &c), BH_E_NO_MEMORY);
    REQUIRE_OK(bh_device_sync(device, LONG_NS));
    CHECK_EQ(log.reasons[BH_PRESSURE_FAILED], 1);
    CHECK_EQ(log.asked, 99 * MIB);
    CHECK_EQ(other.reasons[BH_PRESSURE_ABOVE], 0);
    REQUIRE_OK(bh_buffer_release(a));
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, 65 * MIB, NULL, &c));
    REQUIRE_OK(bh_buffer_release(c));
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, 30 * MIB, NULL, &c));
    REQUIRE_OK(bh_buffer_release(c));
    CHECK_OK(bh_device_close(device));
}

TEST(watchers_hear_what_had_to_be_given_back) {
    bh_device_options options = device_options(0);
    options.memory_limit = 200u << 20;
    bh_device device = open_device_with(&options);
    static pressure_log log;
    watch_pressure(device, UINT64_MAX, &log);
    bh_buffer most = tagged(device, 150 * MIB, NULL), little = tagged(device, 6 * MIB, NULL), more;
    REQUIRE_OK(bh_buffer_release(little));
    CHECK_EQ(memory_of(device).bytes_reserved, 156 * MIB);
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, 48 * MIB, NULL, &more));
    REQUIRE_OK(bh_device_sync(device, LONG_NS));
    CHECK_EQ(log.reasons[BH_PRESSURE_TRIMMED], 1);
    CHECK_EQ(log.asked, 48 * MIB);
    CHECK_EQ(counters_of(device).chunks_trimmed, 1);
    (void)most;
    CHECK_OK(bh_device_close(device));
}

/* ---- against a model ---- */

enum { SLOTS = 96, TAGS = 4 };

typedef struct modelled {
    bh_buffer buffer; /* id 0: none */
    int memory;       /* which of the model's pieces */
} modelled;

typedef struct model {
    modelled handles[SLOTS];
    uint64_t bytes[SLOTS];
    int handles_of[SLOTS], tag_of[SLOTS];
    uint64_t tag_bytes[TAGS], tag_limit[TAGS], total, peak;
    uint64_t buffers, allocations;
} model;

static const char *const tag_names[TAGS] = {"", "one", "two", "three"};

static int free_slot(const model *m) {
    for (int i = 0; i < SLOTS; i++) {
        if (!m->handles[i].buffer.id) return i;
    }
    return -1;
}

static void model_alloc(model *m, bh_device device, rng *r) {
    int slot = free_slot(m), memory = 0;
    while (memory < SLOTS && m->handles_of[memory]) memory++;
    if (slot < 0 || memory == SLOTS) return;
    uint64_t bytes = 1 + rng_below(r, 1u << (8 + rng_below(r, 15)));
    int tag = (int)rng_below(r, TAGS);
    bh_buffer_options options = BH_INIT(options);
    options.tag = tag ? tag_names[tag] : NULL;
    options.align = (uint64_t)1 << rng_below(r, 17);
    bool fits = !m->tag_limit[tag] || m->tag_bytes[tag] + bytes <= m->tag_limit[tag];
    bh_buffer buffer;
    bh_status status = bh_buffer_alloc(device, BH_U8, bytes, &options, &buffer);
    CHECK_EQ(status, fits ? BH_OK : BH_E_NO_MEMORY);
    if (status != BH_OK) return;
    uint8_t mark = (uint8_t)(memory + 1);
    CHECK_OK(bh_buffer_fill(buffer, 0, bytes, &mark, 1));
    m->handles[slot] = (modelled){buffer, memory};
    m->bytes[memory] = bytes;
    m->handles_of[memory] = 1;
    m->tag_of[memory] = tag;
    m->tag_bytes[tag] += bytes;
    m->total += bytes;
    m->buffers++;
    m->allocations++;
    if (m->total > m->peak) m->peak = m->total;
}

static void model_share(model *m, modelled *from, rng *r) {
    int slot = free_slot(m);
    if (slot < 0) return;
    bh_buffer_info info = BH_INIT(info);
    REQUIRE_OK(bh_buffer_get_info(from->buffer, &info));
    bh_buffer out;
    bh_status status, expected = BH_OK;
    if (rng_below(r, 2)) {
        uint64_t first = rng_below(r, (uint32_t)info.count);
        status = bh_buffer_view(from->buffer, 0, first, info.count - first, &out);
    } else {
        bh_type type = BH_I8 + rng_below(r, 12);
        if (info.bytes % bh_type_size(type) || info.address % bh_type_size(type))
            expected = BH_E_INVALID;
        status = bh_buffer_view(from->buffer, type, 0, BH_WHOLE, &out);
    }
    CHECK_EQ(status, expected);
    if (status != BH_OK) return;
    m->handles[slot] = (modelled){out, from->memory};
    m->handles_of[from->memory]++;
}

static void model_release(model *m, modelled *which) {
    int memory = which->memory;
    CHECK_OK(bh_buffer_release(which->buffer));
    which->buffer.id = 0;
    if (--m->handles_of[memory]) return;
    m->tag_bytes[m->tag_of[memory]] -= m->bytes[memory];
    m->total -= m->bytes[memory];
    m->buffers--;
}

static void model_check(const model *m, bh_device device, rng *r) {
    bh_memory_info info = memory_of(device);
    CHECK_EQ(info.bytes_buffers, m->total);
    CHECK_EQ(info.buffers, m->buffers);
    CHECK_EQ(counters_of(device).allocations, m->allocations);
    CHECK_EQ(info.peak_buffers, m->peak);
    tag_log tags = tags_of(device);
    for (size_t i = 0; i < tags.count; i++) {
        for (int k = 0; k < TAGS; k++) {
            if (strcmp(tags.tags[i].tag, tag_names[k])) continue;
            CHECK_EQ(tags.tags[i].bytes, m->tag_bytes[k]);
            CHECK_EQ(tags.tags[i].limit, m->tag_limit[k]);
        }
        if (i) CHECK_LE(tags.tags[i].bytes, tags.tags[i - 1].bytes);
    }
    const modelled *any = &m->handles[rng_below(r, SLOTS)];
    if (!any->buffer.id) return;
    bh_buffer_info its = BH_INIT(its);
    REQUIRE_OK(bh_buffer_get_info(any->buffer, &its));
    uint8_t byte = 0;
    CHECK_OK(bh_buffer_read(any->buffer, rng_below(r, (uint32_t)its.bytes), &byte, 1));
    CHECK_EQ(byte, any->memory + 1);
}

TEST_TIMEOUT(random_histories_agree_with_a_model, 60) {
    bh_device device = open_device();
    rng r = rng_seeded(20);
    static model m;
    for (int step = 0; step < 3000; step++) {
        modelled *any = &m.handles[rng_below(&r, SLOTS)];
        uint32_t what = rng_below(&r, 100);
        if (what < 45) {
            model_alloc(&m, device, &r);
        } else if (what < 60) {
            if (any->buffer.id) model_share(&m, any, &r);
        } else if (what < 94) {
            if (any->buffer.id) model_release(&m, any);
        } else if (what < 96) {
            int tag = 1 + (int)rng_below(&r, TAGS - 1);
            m.tag_limit[tag] = rng_below(&r, 2) ? rng_below(&r, 8u << 20) : 0;
            CHECK_OK(bh_memory_set_limit(device, tag_names[tag], m.tag_limit[tag]));
        } else if (what < 98) {
            uint64_t keep = rng_below(&r, 64u << 20), freed = 0, before;
            before = memory_of(device).bytes_reserved;
            CHECK_OK(bh_memory_trim(device, keep, &freed));
            bh_memory_info info = memory_of(device);
            CHECK_EQ(before - info.bytes_reserved, freed);
            CHECK(info.bytes_reserved <= keep || info.bytes_unused == 0);
        } else {
            CHECK_OK(bh_memory_reset_peak(device));
            m.peak = m.total;
        }
        if (step % 8 == 0) model_check(&m, device, &r);
    }
    for (int i = 0; i < SLOTS; i++) {
        if (m.handles[i].buffer.id) model_release(&m, &m.handles[i]);
    }
    CHECK_EQ(memory_of(device).bytes_used, 0);
    CHECK_OK(bh_memory_trim(device, 0, NULL));
    CHECK_EQ(memory_of(device).bytes_reserved, 0);
    CHECK_OK(bh_device_close(device));
}

/* ---- many threads ---- */

static void churn(void *context, unsigned index) {
    bh_device device = *(bh_device *)context;
    rng r = rng_seeded(index + 1);
    char tag[16];
    snprintf(tag, sizeof tag, "thread %u", index % 5);
    bh_buffer held[8] = {{0}};
    for (int i = 0; i < 150; i++) {
        bh_buffer *slot = &held[rng_below(&r, 8)];
        if (slot->id) {
            CHECK_OK(bh_buffer_release(*slot));
            slot->id = 0;
        } else {
            bh_buffer_options options = BH_INIT(options);
            options.tag = tag;
            options.flags = rng_below(&r, 4) == 0 ? BH_BUFFER_ZERO : 0;
            uint64_t bytes = 1 + rng_below(&r, 1u << (8 + rng_below(&r, 15)));
            CHECK_OK(bh_buffer_alloc(device, BH_U8, bytes, &options, slot));
        }
        if (i % 50 == 49 && index % 4 == 0) CHECK_OK(bh_memory_trim(device, 32 * MIB, NULL));
        if (i % 20 == 0) {
            entry_log log = entries_of(device);
            for (size_t k = 1; k < log.count && k < 64; k++)
                CHECK_LE(log.entries[k].bytes, log.entries[k - 1].bytes);
        }
    }
    for (int i = 0; i < 8; i++) {
        if (held[i].id) CHECK_OK(bh_buffer_release(held[i]));
    }
}

TEST_TIMEOUT(sixteen_threads_allocate_trim_and_list, 60) {
    bh_device device = open_device();
    static pressure_log log;
    watch_pressure(device, 8 * MIB, &log);
    run_threads(16, churn, &device);
    REQUIRE_OK(bh_device_sync(device, LONG_NS));
    CHECK_EQ(log.reasons[BH_PRESSURE_ABOVE], log.reasons[BH_PRESSURE_BELOW]);
    bh_memory_info info = memory_of(device);
    CHECK_EQ(info.bytes_buffers, 0);
    CHECK_EQ(info.bytes_used, 0);
    CHECK_OK(bh_device_close(device));
}

/* A module with a variable of its own of so many bytes. */
static bh_status load_variable(bh_device device, uint64_t bytes, bh_module *out) {
    char ptx[400];
    snprintf(ptx, sizeof ptx,
             ".version 7.0\n.target sm_70\n.address_size 64\n"
             ".visible .global .align 4 .b8 table[%llu];\n"
             ".visible .entry touch(.param .u32 at)\n{\n  .reg .b32 %%r<2>;\n  .reg .b64 %%rd<4>;\n"
             "  ld.param.u32 %%r1, [at];\n  cvt.u64.u32 %%rd1, %%r1;\n  mov.u64 %%rd2, table;\n"
             "  add.u64 %%rd3, %%rd2, %%rd1;\n  st.global.u8 [%%rd3], %%r1;\n  ret;\n}\n",
             (unsigned long long)bytes);
    return bh_module_load(device, ptx, strlen(ptx), out);
}

TEST(variables_of_modules_count_against_the_limit) {
    bh_device_options options = device_options(0);
    options.memory_limit = 96 * MIB;
    bh_device device = open_device_with(&options);
    bh_module first, second;
    REQUIRE_OK(load_variable(device, 40 * MIB, &first));
    CHECK_EQ(memory_of(device).bytes_modules, 40 * MIB);
    CHECK_EQ(memory_of(device).bytes_reserved, 40 * MIB);

    CHECK_REFUSED(load_variable(device, 57 * MIB, &second), BH_E_NO_MEMORY);
    bh_error why;
    bh_last_error(&why);
    CHECK_STR_CONTAINS(why.message,
                       "the module's variables take 59768832 bytes; the device holds 41943040 of "
                       "at most 100663296, 41943040 of them in modules' variables");
    bh_buffer buffer;
    CHECK_REFUSED(bh_buffer_alloc(device, BH_U8, 57 * MIB, NULL, &buffer), BH_E_NO_MEMORY);
    bh_last_error(&why);
    CHECK_STR_CONTAINS(why.message, "41943040 of them in modules' variables");
    CHECK_EQ(memory_of(device).refusals, 2);

    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, 56 * MIB, NULL, &buffer));
    REQUIRE_OK(bh_buffer_release(buffer)); /* its chunk is kept, and goes for the module */
    REQUIRE_OK(load_variable(device, 56 * MIB, &second));
    REQUIRE_OK(bh_module_release(first));
    REQUIRE_OK(bh_module_release(second));
    REQUIRE_OK(load_variable(device, 96 * MIB, &first)); /* which sees that they are gone */
    CHECK_EQ(memory_of(device).bytes_modules, 96 * MIB);
    CHECK_OK(bh_device_close(device));
}

static uint64_t mapped_bytes(bh_device device) {
    char path[64];
    unsigned long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)health_of(device).worker_pid);
    FILE *file = fopen(path, "re");
    REQUIRE(file != NULL);
    CHECK_EQ(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A refused module is gone from the worker too: loads of it do not add up there. */
TEST(a_module_refused_for_its_variables_leaves_nothing_behind) {
    enum { TIMES = 20 };
    const uint64_t each = 1024 * (uint64_t)MIB;
    bh_device_options options = device_options(0);
    options.memory_limit = 64 * MIB;
    rig r = rig_open_with(&options);
    bh_module module;
    uint64_t before = mapped_bytes(r.device);
    for (int i = 0; i < TIMES; i++)
        CHECK_REFUSED(load_variable(r.device, each, &module), BH_E_NO_MEMORY);
    check_device_works(&r);
    CHECK_LT(mapped_bytes(r.device), before + TIMES / 2 * each);
    CHECK_EQ(memory_of(r.device).bytes_modules, 0);
    CHECK_EQ(health_of(r.device).losses, 0);
    CHECK_OK(bh_device_close(r.device));
}
