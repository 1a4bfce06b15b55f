/* SPDX-License-Identifier: Apache-2.0 */
/* Every call given NULL, absurd sizes and offsets, numbers that name nothing, structs of wrong
 * size. */
#include "../support/buffers.h"
#include "../support/support.h"

static const bh_lane own_lane = {0};

static void finish(rig *r) {
    check_device_works(r);
    CHECK_EQ(health_of(r->device).losses, 0);
    CHECK_OK(bh_device_close(r->device));
}

TEST(devices_want_somewhere_to_put_what_they_tell) {
    rig r = rig_open(0);
    bh_device_options options = device_options(0);
    bh_device_entry entry;
    CHECK_REFUSED(bh_device_open(&options, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_device_get_info(r.device, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_device_get_limits(r.device, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_device_get_health(r.device, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_device_list(&entry, sizeof entry, 1, NULL), BH_E_INVALID);
    size_t count = 0;
    CHECK_REFUSED(bh_device_list(NULL, sizeof entry, 1, &count), BH_E_INVALID);
    CHECK_REFUSED(bh_device_list(&entry, 7, 1, &count), BH_E_INVALID);
    CHECK_REFUSED(bh_device_list(&entry, 4097, 1, &count), BH_E_INVALID);
    CHECK_EQ(count, 0);
    CHECK_REFUSED(bh_device_eventfd(r.device, NULL), BH_E_INVALID);
    bh_watch watch;
    CHECK_REFUSED(bh_watch_open(r.device, NULL, NULL, NULL, &watch), BH_E_INVALID);
    CHECK_REFUSED(bh_lane_open(r.device, NULL, NULL), BH_E_INVALID);
    bh_lane_options lane_options = BH_INIT(lane_options);
    bh_lane lane = {5};
    CHECK_REFUSED(bh_lane_open(r.device, &lane_options, NULL), BH_E_INVALID);
    lane_options.size = 4;
    CHECK_REFUSED(bh_lane_open(r.device, &lane_options, &lane), BH_E_INVALID);
    lane_options.size = 100000;
    CHECK_REFUSED(bh_lane_open(r.device, &lane_options, &lane), BH_E_INVALID);
    CHECK_EQ(lane.id, 5);
    finish(&r);
}

TEST(buffers_want_their_pointers) {
    rig r = rig_open(0);
    bh_buffer x = words_counting(r.device, 16, 1);
    bh_ticket t = {1, 1};
    CHECK_REFUSED(bh_buffer_alloc(r.device, BH_U32, 16, NULL, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_view(x, 0, 0, 1, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_get_info(x, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_write(x, 0, NULL, 4), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_read(x, 0, NULL, 4), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_fill(x, 0, 4, NULL, 4), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_write(own_lane, x, 0, NULL, 4, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_read(own_lane, x, 0, NULL, 4, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_fill(own_lane, x, 0, 4, NULL, 4, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_host_alloc(r.device, 64, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_host_free(r.device, NULL), BH_E_INVALID);
    CHECK_EQ(t.lane, 1);
    CHECK(words_count(x, 16, 1));
    finish(&r);
}

TEST(modules_and_kernels_want_their_pointers) {
    rig r = rig_open(0);
    bh_module module;
    bh_kernel kernel = rig_kernel(&r, "add_one");
    bh_module globals = load_module(r.device, ptx_globals);
    bh_ticket t;
    uint32_t word = 0;
    size_t length = strlen(ptx_basic);
    CHECK_REFUSED(bh_module_load(r.device, NULL, 100, &module), BH_E_INVALID);
    CHECK_REFUSED(bh_module_load(r.device, ptx_basic, length, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_module_load_file(r.device, NULL, &module), BH_E_INVALID);
    CHECK_REFUSED(bh_module_load_file(r.device, "/dev/null", NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_load(r.device, NULL, 100, &module, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_load(r.device, ptx_basic, length, NULL, &t), BH_E_INVALID);
    CHECK_REFUSED(bh_kernel_get(r.module, NULL, &kernel), BH_E_INVALID);
    CHECK_REFUSED(bh_kernel_get(r.module, "add_one", NULL), BH_E_INVALID);
    size_t kernels = 0;
    CHECK_REFUSED(bh_module_list_kernels(r.module, NULL, 0, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_module_list_kernels(r.module, NULL, 1, &kernels), BH_E_INVALID);
    CHECK_REFUSED(bh_module_global_write(globals, NULL, 0, &word, 4), BH_E_INVALID);
    CHECK_REFUSED(bh_module_global_write(globals, "counter", 0, NULL, 4), BH_E_INVALID);
    CHECK_REFUSED(bh_module_global_read(globals, NULL, 0, &word, 4), BH_E_INVALID);
    CHECK_REFUSED(bh_module_global_read(globals, "counter", 0, NULL, 4), BH_E_INVALID);
    CHECK_REFUSED(bh_module_global_size(globals, NULL, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_module_global_size(globals, "counter", NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_kernel_get_info(kernel, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_kernel_get_param(kernel, 0, NULL), BH_E_INVALID);
    finish(&r);
}

TEST(an_absurd_name_is_just_not_found) {
    rig r = rig_open(0);
    bh_kernel kernel;
    uint32_t word = 0;
    char *name = malloc(1 << 20);
    memset(name, 'n', (1 << 20) - 1);
    name[(1 << 20) - 1] = '\0';
    CHECK_REFUSED(bh_kernel_get(r.module, name, &kernel), BH_E_NOT_FOUND);
    CHECK_REFUSED(bh_kernel_get(r.module, "%s%n%s", &kernel), BH_E_NOT_FOUND);
    CHECK_REFUSED(bh_kernel_get(r.module, "\xff\xfe\n", &kernel), BH_E_NOT_FOUND);
    CHECK_REFUSED(bh_module_global_read(r.module, name, 0, &word, 4), BH_E_NOT_FOUND);
    CHECK_REFUSED_ANY(bh_module_load_file(r.device, name, &r.module));
    bh_device_options options = device_options(0);
    bh_device device;
    options.device = name;
    CHECK_REFUSED_ANY(bh_device_open(&options, &device));
    free(name);
    finish(&r);
}

static void done_never(void *context, bh_ticket ticket, bh_status status) {
    (void)ticket;
    (void)status;
    atomic_fetch_add((_Atomic(int) *)context, 1);
}

TEST(tickets_want_their_pointers_and_failed_registrations_never_call_back) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 4, 0);
    bh_ticket t = submit(rig_kernel(&r, "add_one"), BH_GRID(4, 4), BH_ARGS(BH_INOUT(x), 4u), NULL);
    _Atomic(int) calls = 0;
    bh_ticket_error(t, NULL); /* whatever it answers, it does not fall over */
    bh_last_error(NULL);
    CHECK_REFUSED(bh_on_done(t, NULL, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_wait_all(NULL, 3, 0), BH_E_INVALID);
    CHECK_REFUSED(bh_on_done((bh_ticket){0, 0}, done_never, &calls), BH_E_INVALID);
    CHECK_REFUSED(bh_on_done((bh_ticket){t.lane, t.sequence + 500}, done_never, &calls),
                  BH_E_INVALID);
    CHECK_REFUSED(bh_on_done((bh_ticket){t.lane ^ 0xff00, 1}, done_never, &calls), BH_E_INVALID);
    CHECK_OK(bh_wait(t, LONG_NS));
    finish(&r);
    CHECK_REFUSED_ANY(bh_on_done(t, done_never, &calls));
    CHECK_REFUSED_ANY(bh_notify(t));
    CHECK_EQ(atomic_load(&calls), 0);
}

TEST(sizes_and_offsets_out_of_range_are_refused) {
    rig r = rig_open(0);
    bh_buffer x = words_counting(r.device, 16, 1), y = words_counting(r.device, 16, 1);
    static const struct {
        uint64_t offset, bytes;
    } ranges[] = {{0, 65},
                  {64, 1},
                  {65, 0},
                  {60, 8},
                  {0, UINT64_MAX},
                  {UINT64_MAX, 0},
                  {UINT64_MAX, 1},
                  {UINT64_MAX, UINT64_MAX},
                  {1, UINT64_MAX},
                  {UINT64_MAX - 3, 8},
                  {UINT64_C(1) << 63, UINT64_C(1) << 63},
                  {UINT64_C(1) << 32, 4}};
    uint32_t words[64] = {0};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        uint64_t offset = ranges[i].offset, bytes = ranges[i].bytes;
        bool whole = bytes == BH_WHOLE && offset <= 64; /* fills have that */
        CHECK_REFUSED(bh_buffer_write(x, offset, words, bytes), BH_E_INVALID);
        CHECK_REFUSED(bh_buffer_read(x, offset, words, bytes), BH_E_INVALID);
        if (!whole) CHECK_REFUSED(bh_buffer_fill(x, offset, bytes, words, 1), BH_E_INVALID);
        CHECK_REFUSED(bh_buffer_copy(x, offset, y, 0, bytes), BH_E_INVALID);
        CHECK_REFUSED(bh_buffer_copy(x, 0, y, offset, bytes), BH_E_INVALID);
        CHECK_REFUSED(bh_submit_write(own_lane, x, offset, words, bytes, NULL), BH_E_INVALID);
        if (!whole)
            CHECK_REFUSED(bh_submit_fill(own_lane, x, offset, bytes, words, 1, NULL), BH_E_INVALID);
        CHECK_REFUSED(bh_submit_copy(own_lane, x, offset, y, 0, bytes, NULL), BH_E_INVALID);
        CHECK_REFUSED(bh_submit_copy(own_lane, x, 0, y, offset, bytes, NULL), BH_E_INVALID);
    }
    CHECK(words_count(x, 16, 1));
    CHECK(words_count(y, 16, 1));
    finish(&r);
}

TEST(patterns_have_the_sizes_they_may_have) {
    rig r = rig_open(0);
    bh_buffer x = words_counting(r.device, 64, 1);
    static const uint32_t sizes[] = {0, 65537, 1u << 20, UINT32_MAX};
    uint8_t pattern[256] = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        CHECK_REFUSED(bh_buffer_fill(x, 0, 0, pattern, sizes[i]), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_fill(x, 0, 3, pattern, 2), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_fill(x, 0, 24, pattern, 16), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_fill(x, 0, 200, pattern, 3), BH_E_INVALID);
    CHECK(words_count(x, 64, 1));
    finish(&r);
}

TEST(absurd_amounts_of_memory_are_refused) {
    rig r = rig_open(0);
    bh_buffer x = {5};
    void *host = &r;
    static const struct {
        bh_type type;
        uint64_t count;
    } much[] = {{BH_U8, UINT64_MAX},        {BH_U8, UINT64_MAX - 300},
                {BH_F64, UINT64_MAX / 8},   {BH_F64, UINT64_MAX / 8 + 1},
                {BH_U8, UINT64_C(1) << 50}, {BH_U32, (UINT64_C(1) << 62) + 1}};
    static const uint32_t kinds[] = {0, BH_BUFFER_SHAREABLE, BH_BUFFER_MANAGED, BH_BUFFER_DRIVER};
    for (size_t i = 0; i < sizeof much / sizeof *much * 4; i++) {
        bh_buffer_options options = BH_INIT(options);
        options.flags = kinds[i % 4];
        bh_status status =
            bh_buffer_alloc(r.device, much[i / 4].type, much[i / 4].count, &options, &x);
        if (status == BH_E_UNSUPPORTED && i % 4) continue; /* not on this device */
        CHECK_REFUSED(status, BH_E_NO_MEMORY);
    }
    CHECK_EQ(x.id, 5);
    CHECK_REFUSED(bh_host_alloc(r.device, 0, &host), BH_E_INVALID);
    CHECK_REFUSED_ANY(bh_host_alloc(r.device, UINT64_MAX, &host));
    CHECK_REFUSED_ANY(bh_host_alloc(r.device, UINT64_MAX - 4095, &host));
    CHECK_REFUSED_ANY(bh_host_alloc(r.device, UINT64_C(1) << 60, &host));
    CHECK(host == &r);
    CHECK_REFUSED_ANY(bh_module_load(r.device, ptx_basic, SIZE_MAX, &r.module));
    finish(&r);
}

TEST(unknown_types_are_refused) {
    rig r = rig_open(0);
    bh_buffer x = {0};
    static const bh_type types[] = {0, 15, 16, 255, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        CHECK_REFUSED(bh_buffer_alloc(r.device, types[i], 16, NULL, &x), BH_E_INVALID);
    CHECK_EQ(x.id, 0);
    finish(&r);
}

TEST(structs_of_wrong_size_are_refused) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 4, 0);
    bh_kernel kernel = rig_kernel(&r, "add_one");
    static const uint32_t sizes[] = {0, 1, 3, UINT32_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        bh_device device = {0};
        bh_device_options options = device_options(0);
        bh_launch_options launch = BH_INIT(launch);
        options.size = launch.size = sizes[i];
        CHECK_REFUSED(bh_device_open(&options, &device), BH_E_INVALID);
        CHECK_REFUSED(bh_launch(kernel, BH_GRID(4, 4), BH_ARGS(BH_INOUT(x), 4u), &launch, NULL),
                      BH_E_INVALID);
        if (sizes[i] == UINT32_MAX) continue;
        bh_device_info info = {.size = sizes[i]};
        bh_device_limits limits = {.size = sizes[i]};
        bh_health health = {.size = sizes[i]};
        bh_buffer_info buffer_info = {.size = sizes[i]};
        bh_kernel_info kernel_info = {.size = sizes[i]};
        bh_ticket_info ticket_info = {.size = sizes[i]};
        CHECK_REFUSED(bh_ticket_get_info((bh_ticket){0, 0}, &ticket_info), BH_E_INVALID);
        bh_param_info param = {.size = sizes[i]};
        CHECK_REFUSED(bh_device_get_info(r.device, &info), BH_E_INVALID);
        CHECK_REFUSED(bh_device_get_limits(r.device, &limits), BH_E_INVALID);
        CHECK_REFUSED(bh_device_get_health(r.device, &health), BH_E_INVALID);
        CHECK_REFUSED(bh_buffer_get_info(x, &buffer_info), BH_E_INVALID);
        CHECK_REFUSED(bh_kernel_get_info(kernel, &kernel_info), BH_E_INVALID);
        CHECK_REFUSED(bh_kernel_get_param(kernel, 0, &param), BH_E_INVALID);
    }
    CHECK(words_are(x, 4, 0));
    finish(&r);
}

/* Structs of a program that was built with a newer header. */
#define NEWER(type, name)                                                                          \
    struct {                                                                                       \
        type known;                                                                                \
        uint8_t more[40];                                                                          \
    } name = {.known = {.size = sizeof name}}

static bool all_zero(const uint8_t *bytes, size_t count) {
    while (count && !bytes[count - 1]) count--;
    return count == 0;
}

/* A newer version may give them a meaning, which must not be ignored. */
TEST(reserved_fields_are_refused_unless_zero) {
    rig r = rig_open(0);
    bh_kernel kernel = rig_kernel(&r, "add_one");
    bh_buffer x = words_filled(r.device, 4, 0);
    bh_submit_options submit = BH_INIT(submit);
    bh_transfer fill = bh_transfer_fill(x, 0, 16, "\0", 1);
    submit.reserved = 1;
    CHECK_REFUSED(bh_submit(&fill.request, &submit, NULL), BH_E_UNSUPPORTED);
    bh_device device;
    bh_device_options other = device_options(0);
    other.reserved = 1;
    CHECK_REFUSED(bh_device_open(&other, &device), BH_E_UNSUPPORTED);
    other.reserved = 0;
    other.libraries = 1u << 31;
    CHECK_REFUSED(bh_device_open(&other, &device), BH_E_UNSUPPORTED);
    bh_lane lane;
    bh_lane_options opened = BH_INIT(opened);
    opened.reserved = 1;
    CHECK_REFUSED(bh_lane_open(r.device, &opened, &lane), BH_E_UNSUPPORTED);
    bh_host_pool pool;
    bh_host_pool_options pooled = BH_INIT(pooled);
    pooled.reserved = 1;
    CHECK_REFUSED(bh_host_pool_open(r.device, &pooled, &pool), BH_E_UNSUPPORTED);
    bh_image image;
    bh_image_shape shape = BH_INIT(shape);
    shape.type = BH_U32;
    shape.channels = shape.width = 1;
    shape.reserved = 1;
    CHECK_REFUSED(bh_image_alloc(r.device, &shape, &image), BH_E_UNSUPPORTED);
    bh_tensor_map map;
    bh_tensor_shape tensor = BH_INIT(tensor);
    tensor.type = BH_U32;
    tensor.rank = 1;
    tensor.dimensions[0] = tensor.box[0] = 4;
    tensor.reserved = 1;
    CHECK_REFUSED(bh_tensor_map_create(x, &tensor, &map), BH_E_UNSUPPORTED);
    bh_launch_options launch = BH_INIT(launch);
    bh_use also = {x, BH_ACCESS_INOUT, 1};
    launch.also = &also;
    launch.also_count = 1;
    CHECK_REFUSED(bh_launch(kernel, BH_GRID(4, 4), BH_ARGS(BH_INOUT(x), 4u), &launch, NULL),
                  BH_E_UNSUPPORTED);
    bh_prepared prepared;
    REQUIRE_OK(bh_prepare(kernel, BH_GRID(4, 4), BH_ARGS(BH_INOUT(x), 4u), NULL, &prepared));
    bh_change change = {1, 1, BH_ARG(4u)};
    CHECK_REFUSED(bh_prepared_launch(prepared, &change, 1, NULL), BH_E_UNSUPPORTED);
    bh_dispatch_item item = BH_INIT(item);
    item.kernel = kernel;
    item.shape = (bh_shape)BH_GRID(4, 4);
    item.args = BH_ARGS(BH_INOUT(x), 4u);
    item.reserved = 1;
    CHECK_REFUSED(bh_dispatch_batch(&item, sizeof item, 1, NULL), BH_E_UNSUPPORTED);
    CHECK_EQ(item.status, BH_E_UNSUPPORTED);
    CHECK(words_are(x, 4, 0));
    finish(&r);
}

static void ignore_event(void *context, const bh_event *event) {
    (void)context;
    (void)event;
}

TEST(options_that_only_a_newer_version_has_are_refused_unless_zero) {
    rig r = rig_open(0);
    bh_kernel kernel = rig_kernel(&r, "add_one");
    bh_buffer x = words_filled(r.device, 4, 0), made;
    bh_lane lane;
    bh_sequence sequence;
    bh_host_pool pool;
    NEWER(bh_launch_options, launch);
    NEWER(bh_submit_options, submit);
    NEWER(bh_buffer_options, buffer);
    NEWER(bh_lane_options, opened);
    NEWER(bh_sequence_options, recorded);
    NEWER(bh_host_pool_options, pooled);
    struct {
        bh_transfer known;
        uint8_t more[40];
    } fill = {.known = bh_transfer_fill(x, 0, 16, "", 1)};
    fill.known.request.size = sizeof fill;
    uint8_t *const more[] = {launch.more,   submit.more, buffer.more, opened.more,
                             recorded.more, pooled.more, fill.more};
    for (int set = 0; set < 2; set++) {
        bh_status status = set ? BH_E_UNSUPPORTED : BH_OK;
        for (size_t i = 0; set && i < sizeof more / sizeof *more; i++) more[i][39 - i] = 1;
        CHECK_EQ(bh_launch(kernel, BH_GRID(4, 4), BH_ARGS(BH_INOUT(x), 4u), &launch.known, NULL),
                 status);
        CHECK_EQ(bh_buffer_alloc(r.device, BH_U32, 4, &buffer.known, &made), status);
        CHECK_EQ(bh_lane_open(r.device, &opened.known, &lane), status);
        CHECK_EQ(bh_sequence_begin(r.device, &recorded.known, &sequence), status);
        CHECK_EQ(bh_host_pool_open(r.device, &pooled.known, &pool), status);
        CHECK_EQ(bh_submit(&fill.known.request, NULL, NULL), status);
        fill.more[33] = 0;
        CHECK_EQ(bh_submit(&fill.known.request, &submit.known, NULL), status);
    }
    bh_error error;
    CHECK_EQ(bh_last_error(&error), BH_E_UNSUPPORTED);
    NEWER(bh_device_options, device);
    NEWER(bh_watch_options, watched);
    NEWER(bh_dispatch_options, dispatched);
    NEWER(bh_compile_options, compiled);
    device.more[0] = watched.more[0] = dispatched.more[0] = compiled.more[0] = 1;
    bh_device second;
    bh_watch watch;
    bh_binary binary;
    CHECK_REFUSED(bh_device_open(&device.known, &second), BH_E_UNSUPPORTED);
    CHECK_REFUSED(bh_watch_open(r.device, &watched.known, ignore_event, NULL, &watch),
                  BH_E_UNSUPPORTED);
    CHECK_REFUSED(bh_dispatch(kernel, BH_GRID(4, 4), BH_NO_ARGS, &dispatched.known),
                  BH_E_UNSUPPORTED);
    CHECK_REFUSED(bh_compile("", &compiled.known, &binary), BH_E_UNSUPPORTED);
    char expected[64];
    snprintf(expected, sizeof expected, "byte %zu is set", sizeof(bh_submit_options) + 38);
    CHECK(strstr(error.message, expected) != NULL);
    finish(&r);
}

TEST(fields_that_only_a_newer_version_has_come_back_zero) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 4, 0);
    NEWER(bh_health, health);
    NEWER(bh_buffer_info, info);
    memset(health.more, 0xff, sizeof health.more);
    memset(info.more, 0xff, sizeof info.more);
    CHECK_OK(bh_device_get_health(r.device, &health.known));
    CHECK_OK(bh_buffer_get_info(x, &info.known));
    CHECK_EQ(health.known.size, sizeof health);
    CHECK_EQ(info.known.size, sizeof info);
    CHECK(all_zero(health.more, sizeof health.more));
    CHECK(all_zero(info.more, sizeof info.more));
    finish(&r);
}

TEST(unknown_flags_are_refused) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 4, 0);
    for (int bit = 0; bit < 32; bit++) {
        bh_device device = {0};
        bh_device_options options = device_options(1u << bit);
        if (bit >= 6) CHECK_REFUSED(bh_device_open(&options, &device), BH_E_INVALID);
        bh_lane_options lane_options = BH_INIT(lane_options);
        bh_lane lane = {5};
        lane_options.flags = 1u << bit;
        if (bit >= 1) CHECK_REFUSED(bh_lane_open(r.device, &lane_options, &lane), BH_E_INVALID);
        CHECK(bit == 0 || lane.id == 5);
        bh_launch_options launch = BH_INIT(launch);
        launch.flags = 1u << bit;
        if ((bit >= 4 && bit < 8) || bit >= 12)
            CHECK_REFUSED(bh_launch(rig_kernel(&r, "add_one"), BH_GRID(4, 4),
                                    BH_ARGS(BH_INOUT(x), 4u), &launch, NULL),
                          BH_E_INVALID);
    }
    CHECK(words_are(x, 4, 0));
    finish(&r);
}

TEST(device_options_that_make_no_sense_are_refused) {
    static const char *const names[] = {
        "gpu",    "cpu0",       "CPU", "cuda:", "cuda:x", "cuda:-1", "cuda:99999999999999999999",
        "../cpu", "cpu/../cpu", "c"};
    static const uint32_t lengths[] = {3, 1000, 1u << 31, UINT32_MAX};
    bh_device device = {9};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bh_device_options options = device_options(0);
        options.device = names[i];
        bh_status status = bh_device_open(&options, &device);
        CHECK(status == BH_E_INVALID || status == BH_E_NO_DEVICE);
        CHECK_REFUSED_ANY(status);
    }
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        bh_device_options options = device_options(0);
        options.queue_length = lengths[i];
        CHECK_REFUSED(bh_device_open(&options, &device), BH_E_INVALID);
    }
    CHECK_EQ(device.id, 9);
    rig r = rig_open(0);
    finish(&r);
}

TEST(a_device_number_that_is_not_there_is_no_device) {
    bh_device_options options = BH_INIT(options);
    bh_device device = {0};
    options.device = "cuda:999";
    CHECK_REFUSED(bh_device_open(&options, &device), BH_E_NO_DEVICE);
}

static bh_status launch_args(const rig *r, const bh_arg *list, size_t count) {
    return bh_launch(rig_kernel(r, "add_one"), BH_GRID(4, 4), (bh_args){list, count}, NULL, NULL);
}

TEST(invalid_arguments_are_refused) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 4, 0);
    uint32_t n = 4;
    bh_arg list[2] = {BH_INOUT(x), bh_arg_value(&n, sizeof n)};
    static const uint16_t wrong[] = {0, 4, 5, 99, 1u << 15, UINT16_MAX};
    CHECK_REFUSED_ANY(launch_args(&r, NULL, 2));
    CHECK_REFUSED_ANY(launch_args(&r, list, 0));
    CHECK_REFUSED_ANY(launch_args(&r, list, SIZE_MAX));
    CHECK_REFUSED_ANY(launch_args(&r, NULL, SIZE_MAX));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        list[0] = BH_INOUT(x);
        list[0].access = wrong[i];
        CHECK_REFUSED_ANY(launch_args(&r, list, 2));
        list[0] = BH_INOUT(x);
        list[0].kind = wrong[i];
        CHECK_REFUSED_ANY(launch_args(&r, list, 2));
    }
    list[0] = BH_INOUT(x);
    list[1] = bh_arg_data(NULL, 4);
    CHECK_REFUSED_ANY(launch_args(&r, list, 2));
    list[1] = bh_arg_data(&n, SIZE_MAX);
    CHECK_REFUSED_ANY(launch_args(&r, list, 2));
    list[1] = bh_arg_value(&n, 0);
    CHECK_REFUSED_ANY(launch_args(&r, list, 2));
    list[1] = bh_arg_value(&n, 4);
    list[1].size = 17;
    CHECK_REFUSED_ANY(launch_args(&r, list, 2));
    list[1].size = UINT32_MAX;
    CHECK_REFUSED_ANY(launch_args(&r, list, 2));
    CHECK(words_are(x, 4, 0));
    finish(&r);
}

TEST(a_value_wider_than_its_storage_is_refused) {
    bh_device device = open_device();
    char *ptx = ptx_block_param(24);
    bh_kernel kernel = get_kernel(load_module(device, ptx), "block");
    bh_buffer out = words_filled(device, 1, 0);
    bh_arg list[2] = {{BH_ARG_VALUE, 0, 24, {{0}}}, BH_OUT(out)};
    CHECK_REFUSED_ANY(bh_launch(kernel, BH_GRID(1, 1), (bh_args){list, 2}, NULL, NULL));
    free(ptx);
    CHECK_OK(bh_device_close(device));
}

TEST(invalid_declared_uses_are_refused) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 4, 0), y = words_filled(r.device, 4, 0);
    bh_kernel kernel = rig_kernel(&r, "add_one");
    bh_args args = BH_ARGS(BH_INOUT(x), 4u);
    bh_use use = {y, 0, 0};
    bh_launch_options options = BH_INIT(options);
    options.also = NULL;
    options.also_count = 1;
    CHECK_REFUSED(bh_launch(kernel, BH_GRID(4, 4), args, &options, NULL), BH_E_INVALID);
    options.also = &use;
    CHECK_REFUSED(bh_launch(kernel, BH_GRID(4, 4), args, &options, NULL), BH_E_INVALID);
    use.access = 4;
    CHECK_REFUSED(bh_launch(kernel, BH_GRID(4, 4), args, &options, NULL), BH_E_INVALID);
    use.access = BH_ACCESS_IN;
    for (int i = 0; i < 2; i++) { /* refused for how many they are, before one is looked at */
        options.also_count = i ? SIZE_MAX : 65537;
        CHECK_REFUSED(bh_launch(kernel, BH_GRID(4, 4), args, &options, NULL), BH_E_INVALID);
        bh_error error;
        bh_last_error(&error);
        CHECK_STR_CONTAINS(error.message,
                           i ? "also names 18446744073709551615" : "also names 65537");
    }
    CHECK(words_are(x, 4, 0));
    finish(&r);
}

static void watch_nothing(void *context, const bh_event *event) {
    (void)context;
    (void)event;
}

TEST(options_of_watches_are_checked) {
    rig r = rig_open(0);
    bh_watch_options options = BH_INIT(options);
    bh_watch watch = {77};
    CHECK_REFUSED(bh_watch_open(r.device, NULL, watch_nothing, NULL, NULL), BH_E_INVALID);
    options.kinds = 1u << 4;
    CHECK_REFUSED(bh_watch_open(r.device, &options, watch_nothing, NULL, &watch), BH_E_INVALID);
    options.kinds = BH_EVENT_LOSS;
    options.pressure_threshold = 4096;
    CHECK_REFUSED(bh_watch_open(r.device, &options, watch_nothing, NULL, &watch), BH_E_INVALID);
    bh_error error;
    CHECK_STATUS(bh_last_error(&error), BH_E_INVALID);
    CHECK_STR_CONTAINS(error.message, "pressure_threshold is 4096");
    options.size = 3;
    CHECK_REFUSED(bh_watch_open(r.device, &options, watch_nothing, NULL, &watch), BH_E_INVALID);
    CHECK_EQ(watch.id, 77);
    finish(&r);
}

TEST(a_request_too_large_for_its_queue_is_refused) {
    bh_device_options options = device_options(0);
    options.queue_length = 4;
    bh_device device = {0};
    bh_status status = bh_device_open(&options, &device);
    if (status != BH_OK) {
        CHECK_REFUSED(status, BH_E_INVALID);
        return;
    }
    char *ptx = ptx_block_param(4000);
    uint8_t bytes[4000] = {0};
    bh_kernel kernel = get_kernel(load_module(device, ptx), "block");
    bh_buffer out = words_filled(device, 1, 0);
    CHECK_REFUSED_ANY(bh_launch(kernel, BH_GRID(1, 1),
                                BH_ARGS(BH_VALUE(bytes, sizeof bytes), BH_OUT(out)), NULL, NULL));
    free(ptx);
    CHECK_OK(bh_device_close(device));
}
