/* SPDX-License-Identifier: Apache-2.0 */
/* What needs no device: versions, names of statuses and types, shapes, arguments, the log. */
#include "../support/support.h"

TEST(version_is_that_of_the_header) {
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", BH_VERSION_MAJOR, BH_VERSION_MINOR,
             BH_VERSION_PATCH);
    CHECK_STR_EQ(bh_version(), expected);
}

TEST(every_status_has_its_name) {
    static const struct {
        bh_status status;
        const char *name;
    } names[] = {
        {BH_OK, "BH_OK"},
        {BH_E_INVALID, "BH_E_INVALID"},
        {BH_E_NOT_FOUND, "BH_E_NOT_FOUND"},
        {BH_E_UNSUPPORTED, "BH_E_UNSUPPORTED"},
        {BH_E_NO_DEVICE, "BH_E_NO_DEVICE"},
        {BH_E_NO_MEMORY, "BH_E_NO_MEMORY"},
        {BH_E_NO_HOST_MEMORY, "BH_E_NO_HOST_MEMORY"},
        {BH_E_COMPILE, "BH_E_COMPILE"},
        {BH_E_LOAD, "BH_E_LOAD"},
        {BH_E_LAUNCH, "BH_E_LAUNCH"},
        {BH_E_RESIDENCY, "BH_E_RESIDENCY"},
        {BH_E_FAULT, "BH_E_FAULT"},
        {BH_E_DEADLINE, "BH_E_DEADLINE"},
        {BH_E_LOST, "BH_E_LOST"},
        {BH_E_STALE, "BH_E_STALE"},
        {BH_E_QUARANTINED, "BH_E_QUARANTINED"},
        {BH_E_STOPPED, "BH_E_STOPPED"},
        {BH_E_BUSY, "BH_E_BUSY"},
        {BH_E_CANCELLED, "BH_E_CANCELLED"},
        {BH_E_TIMEOUT, "BH_E_TIMEOUT"},
        {BH_E_IO, "BH_E_IO"},
        {BH_E_INTERNAL, "BH_E_INTERNAL"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK_EQ(names[i].status, (int)i);
        CHECK_STR_EQ(bh_status_name(names[i].status), names[i].name);
    }
    CHECK_STR_EQ(bh_status_name(22), "BH_E_?");
    CHECK_STR_EQ(bh_status_name(-1), "BH_E_?");
    CHECK_STR_EQ(bh_status_name(INT32_MIN), "BH_E_?");
    CHECK_STR_EQ(bh_status_name(INT32_MAX), "BH_E_?");
}

TEST(every_type_has_its_size_and_name) {
    static const struct {
        bh_type type;
        size_t size;
        const char *name;
    } types[] = {
        {BH_I8, 1, "i8"},   {BH_U8, 1, "u8"},      {BH_I16, 2, "i16"}, {BH_U16, 2, "u16"},
        {BH_I32, 4, "i32"}, {BH_U32, 4, "u32"},    {BH_I64, 8, "i64"}, {BH_U64, 8, "u64"},
        {BH_F16, 2, "f16"}, {BH_BF16, 2, "bf16"},  {BH_F32, 4, "f32"}, {BH_F64, 8, "f64"},
        {BH_C64, 8, "c64"}, {BH_C128, 16, "c128"},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        CHECK_EQ(bh_type_size(types[i].type), types[i].size);
        CHECK_STR_EQ(bh_type_name(types[i].type), types[i].name);
    }
    CHECK_EQ(bh_type_size(0), 0);
    CHECK_EQ(bh_type_size(15), 0);
    CHECK_EQ(bh_type_size(UINT32_MAX), 0);
    CHECK_STR_EQ(bh_type_name(0), "?");
    CHECK_STR_EQ(bh_type_name(15), "?");
    CHECK_STR_EQ(bh_type_name(UINT32_MAX), "?");
}

TEST(grid_covers_every_thread) {
    static const struct {
        uint64_t threads;
        uint32_t block, blocks;
    } cases[] = {
        {1, 1, 1},
        {1, 256, 1},
        {255, 256, 1},
        {256, 256, 1},
        {257, 256, 2},
        {UINT32_MAX, 1, UINT32_MAX},
        {UINT64_C(0x100000000), 1024, 0x400000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bh_shape shape = BH_GRID(cases[i].threads, cases[i].block);
        CHECK_EQ(shape.grid.x, cases[i].blocks);
        CHECK_EQ(shape.grid.y, 1);
        CHECK_EQ(shape.grid.z, 1);
        CHECK_EQ(shape.block.x, cases[i].block);
        CHECK_EQ(shape.block.y, 1);
        CHECK_EQ(shape.block.z, 1);
        CHECK_EQ(shape.shared_bytes, 0);
    }
}

TEST(grid_of_nothing_or_too_much_is_all_zero) {
    static const struct {
        uint64_t threads;
        uint32_t block;
    } cases[] = {{0, 256}, {100, 0}, {0, 0}, {UINT64_MAX, 1}, {UINT64_MAX, 256}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bh_shape shape = BH_GRID(cases[i].threads, cases[i].block);
        CHECK_EQ(shape.grid.x, 0);
        CHECK_EQ(shape.grid.y, 0);
        CHECK_EQ(shape.grid.z, 0);
    }
}

TEST(arguments_take_the_bytes_of_their_c_type) {
    struct sample s = {1, 2, 3.0f, 4};
    bh_buffer buffer = {42};
    bh_args args = BH_ARGS((uint8_t)0x12, (int16_t)-2, 7u, UINT64_C(0x123456789), 1.5f, 2.5,
                           BH_IN(buffer), BH_OUT(buffer), BH_INOUT(buffer), BH_VALUE(&s, sizeof s),
                           BH_NULL, (bool)true, (char)'c', -1LL);
    static const uint32_t sizes[] = {1, 2, 4, 8, 4, 8, 0, 0, 0, sizeof s, 8, 1, 1, 8};
    static const uint16_t accesses[] = {0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0};
    int16_t minus_two = -2;
    REQUIRE_EQ(args.count, 14);
    for (size_t i = 0; i < args.count; i++) {
        CHECK_EQ(args.list[i].size, sizes[i]);
        CHECK_EQ(args.list[i].access, accesses[i]);
    }
    CHECK_EQ(args.list[0].u.value[0], 0x12);
    CHECK_MEM_EQ(args.list[1].u.value, &minus_two, 2);
    CHECK_EQ(args.list[6].kind, BH_ARG_BUFFER);
    CHECK_EQ(args.list[6].u.buffer.handle.id, 42);
    CHECK_EQ(args.list[9].kind, BH_ARG_DATA);
    CHECK(args.list[9].u.data == &s);
    CHECK_EQ(args.list[10].kind, BH_ARG_VALUE);
}

TEST(twenty_four_arguments_fit_the_macro) {
    bh_args args = BH_ARGS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
                           21, 22, 23, 24);
    REQUIRE_EQ(args.count, 24);
    for (int i = 0; i < 24; i++) {
        int value;
        memcpy(&value, args.list[i].u.value, sizeof value);
        CHECK_EQ(value, i + 1);
    }
}

struct log_seen {
    _Atomic(int) calls;
    _Atomic(int) wrong;
};

static void log_note(void *context, int32_t level, const char *text) {
    struct log_seen *seen = context;
    atomic_fetch_add(&seen->calls, 1);
    if (level < BH_LOG_ERROR || level > BH_LOG_INFO || text == NULL || text[0] == '\0')
        atomic_fetch_add(&seen->wrong, 1);
}

TEST(log_gets_text_up_to_its_level_and_can_be_stopped) {
    struct log_seen seen = {0, 0};
    CHECK_OK(bh_log_set(log_note, &seen, BH_LOG_INFO));
    bh_device device = open_device();
    CHECK_OK(bh_device_close(device));
    CHECK_EQ(atomic_load(&seen.wrong), 0);
    CHECK_OK(bh_log_set(NULL, NULL, 0));
    int before = atomic_load(&seen.calls);
    device = open_device();
    CHECK_OK(bh_device_close(device));
    CHECK_EQ(atomic_load(&seen.calls), before);
}

TEST(last_error_belongs_to_the_thread_that_failed) {
    bh_error error;
    CHECK_STATUS(bh_buffer_release((bh_buffer){0}), BH_E_INVALID);
    CHECK_STATUS(bh_last_error(&error), BH_E_INVALID);
    CHECK_EQ(error.status, BH_E_INVALID);
    CHECK(error.message[0] != '\0');
    CHECK(error.fix[0] != '\0');
    char text[1024];
    snprintf(text, sizeof text, "BH_E_INVALID: %s\nFix: %s", error.message, error.fix);
    CHECK_STR_EQ(bh_last_message(), text);
}

static void expect_clean_thread(void *context, unsigned index) {
    bh_error error;
    (void)context;
    (void)index;
    CHECK_STATUS(bh_last_error(&error), BH_OK);
    CHECK_EQ(error.status, BH_OK);
    CHECK_STR_EQ(bh_last_message(), "");
}

TEST(a_thread_that_never_failed_has_no_last_error) {
    CHECK_STATUS(bh_buffer_release((bh_buffer){0}), BH_E_INVALID);
    run_threads(2, expect_clean_thread, NULL);
}
