/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel gets: arguments of every kind, its geometry, its shared memory. */
#include "../support/support.h"

TEST(saxpy_computes) {
    enum { N = 5000 };
    rig r = rig_open(0);
    bh_buffer x, y;
    float *hx = malloc(N * 4), *hy = malloc(N * 4), *got = malloc(N * 4);
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_F32, N, NULL, &x));
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_F32, N, NULL, &y));
    for (int i = 0; i < N; i++) {
        hx[i] = (float)i;
        hy[i] = (float)(N - i);
    }
    REQUIRE_OK(bh_buffer_write(x, 0, hx, N * 4));
    REQUIRE_OK(bh_buffer_write(y, 0, hy, N * 4));
    CHECK_OK(run_now(rig_kernel(&r, "saxpy"), BH_GRID(N, 256),
                     BH_ARGS(2.0f, BH_IN(x), BH_INOUT(y), (uint32_t)N)));
    REQUIRE_OK(bh_buffer_read(y, 0, got, N * 4));
    for (int i = 0; i < N; i++)
        if (got[i] != 2.0f * hx[i] + hy[i]) {
            FAIL("element %d is %g", i, (double)got[i]);
            break;
        }
    REQUIRE_OK(bh_buffer_read(x, 0, got, N * 4));
    CHECK_MEM_EQ(got, hx, N * 4);
    free(hx);
    free(hy);
    free(got);
    CHECK_OK(bh_device_close(r.device));
}

TEST(scalars_of_every_width_arrive) {
    rig r = rig_open(0);
    bh_buffer out;
    uint64_t got[6];
    float f = -1.25f;
    double d = 3.141592653589793;
    uint32_t f_bits;
    uint64_t d_bits;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U64, 6, NULL, &out));
    CHECK_OK(run_now(rig_kernel(&r, "scalars"), BH_GRID(1, 1),
                     BH_ARGS((uint8_t)0xf1, (uint16_t)0xf234, 0xf2345678u,
                             UINT64_C(0xf123456789abcdef), f, d, BH_OUT(out))));
    REQUIRE_OK(bh_buffer_read(out, 0, got, sizeof got));
    memcpy(&f_bits, &f, 4);
    memcpy(&d_bits, &d, 8);
    CHECK_EQ(got[0], 0xf1);
    CHECK_EQ(got[1], 0xf234);
    CHECK_EQ(got[2], 0xf2345678u);
    CHECK_EQ(got[3], UINT64_C(0xf123456789abcdef));
    CHECK_EQ(got[4], f_bits);
    CHECK_EQ(got[5], d_bits);
    CHECK_OK(bh_device_close(r.device));
}

TEST(structs_go_by_value) {
    rig r = rig_open(0);
    bh_buffer out;
    uint64_t got[4];
    struct sample s = {0x11223344, UINT64_C(0x99aabbccddeeff00), 0.5f, 0x7f};
    REQUIRE_EQ(sizeof s, 24);
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U64, 4, NULL, &out));
    bh_ticket ticket = submit(rig_kernel(&r, "by_struct"), BH_GRID(1, 1),
                              BH_ARGS(BH_VALUE(&s, sizeof s), BH_OUT(out)), NULL);
    memset(&s, 0, sizeof s); /* was copied */
    CHECK_OK(bh_wait(ticket, LONG_NS));
    REQUIRE_OK(bh_buffer_read(out, 0, got, sizeof got));
    CHECK_EQ(got[0], 0x11223344);
    CHECK_EQ(got[1], UINT64_C(0x99aabbccddeeff00));
    CHECK_EQ(got[2], 0x3f000000);
    CHECK_EQ(got[3], 0x7f);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_null_pointer_is_one) {
    rig r = rig_open(0);
    bh_buffer out = words_filled(r.device, 1, 9);
    bh_kernel kernel = rig_kernel(&r, "null_or");
    CHECK_OK(run_now(kernel, BH_GRID(1, 1), BH_ARGS(BH_NULL, BH_OUT(out))));
    CHECK_EQ(word_read(out, 0), 1);
    bh_buffer other = words_filled(r.device, 1, 9);
    CHECK_OK(run_now(kernel, BH_GRID(1, 1), BH_ARGS(BH_IN(other), BH_OUT(out))));
    CHECK_EQ(word_read(out, 0), 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(seventy_five_wide_parameters_arrive) {
    enum { COUNT = 75 };
    bh_device device = open_device();
    char *ptx = ptx_many_params(COUNT);
    bh_kernel kernel = get_kernel(load_module(device, ptx), "big");
    bh_buffer out;
    bh_arg list[COUNT + 1];
    uint64_t sum = 0, got = 0;
    REQUIRE_OK(bh_buffer_alloc(device, BH_U64, 1, NULL, &out));
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t value = (i + 1) * UINT64_C(0x0123456789abcd);
        list[i] = bh_arg_value(&value, sizeof value);
        sum += value;
    }
    list[COUNT] = BH_OUT(out);
    CHECK_OK(run_now(kernel, BH_GRID(1, 1), (bh_args){list, COUNT + 1}));
    REQUIRE_OK(bh_buffer_read(out, 0, &got, 8));
    CHECK_EQ(got, sum);
    free(ptx);
    CHECK_OK(bh_device_close(device));
}

static void check_block_param(uint32_t bytes) {
    bh_device device = open_device();
    char *ptx = ptx_block_param(bytes);
    bh_kernel kernel = get_kernel(load_module(device, ptx), "block");
    bh_buffer out = words_alloc(device, 1);
    uint32_t words[1024], sum;
    for (uint32_t round = 0; round < 200; round++) { /* more than a queue holds at once */
        sum = 0;
        for (uint32_t i = 0; i < bytes / 4; i++) sum += words[i] = i * 77 + round;
        submit(kernel, BH_GRID(1, 1), BH_ARGS(BH_VALUE(words, bytes), BH_OUT(out)), NULL);
    }
    CHECK_EQ(word_read(out, 0), sum);
    free(ptx);
    CHECK_OK(bh_device_close(device));
}

TEST(a_parameter_of_600_bytes_arrives) {
    check_block_param(600);
}

TEST(a_parameter_of_4000_bytes_arrives) {
    check_block_param(4000);
}

static void check_geometry(const rig *r, bh_shape shape) {
    bh_dim g = shape.grid, b = shape.block;
    uint32_t gx = g.x ? g.x : 1, gy = g.y ? g.y : 1, gz = g.z ? g.z : 1;
    uint32_t bx = b.x ? b.x : 1, by = b.y ? b.y : 1, bz = b.z ? b.z : 1;
    uint64_t threads = (uint64_t)gx * gy * gz * bx * by * bz;
    bh_buffer out = words_filled(r->device, threads * 12, 0xffffffff);
    uint32_t *got = malloc(threads * 48);
    CHECK_OK(run_now(rig_kernel(r, "geometry"), shape, BH_ARGS(BH_OUT(out))));
    REQUIRE_OK(bh_buffer_read(out, 0, got, threads * 48));
    for (uint64_t i = 0; i < threads; i++) {
        uint64_t block = i / ((uint64_t)bx * by * bz), thread = i % ((uint64_t)bx * by * bz);
        uint32_t expected[12] = {(uint32_t)(block % gx),
                                 (uint32_t)(block / gx % gy),
                                 (uint32_t)(block / gx / gy),
                                 (uint32_t)(thread % bx),
                                 (uint32_t)(thread / bx % by),
                                 (uint32_t)(thread / bx / by),
                                 gx,
                                 gy,
                                 gz,
                                 bx,
                                 by,
                                 bz};
        if (memcmp(got + i * 12, expected, sizeof expected) != 0) {
            FAIL("grid %u,%u,%u block %u,%u,%u: thread %llu sees something else", gx, gy, gz, bx,
                 by, bz, (unsigned long long)i);
            break;
        }
    }
    free(got);
    CHECK_OK(bh_buffer_release(out));
}

TEST(kernels_see_their_geometry) {
    rig r = rig_open(0);
    check_geometry(&r, BH_SHAPE(1, 1, 1, 1, 1, 1));
    check_geometry(&r, BH_SHAPE(7, 1, 1, 33, 1, 1));
    check_geometry(&r, BH_SHAPE(3, 4, 1, 8, 5, 1));
    check_geometry(&r, BH_SHAPE(2, 3, 4, 3, 4, 5));
    check_geometry(&r, BH_SHAPE(1, 1, 9, 1, 1, 64));
    check_geometry(&r, BH_SHAPE(1, 300, 1, 1, 2, 1));
    check_geometry(&r, BH_SHAPE(2, 1, 1, 1024, 1, 1));
    CHECK_OK(bh_device_close(r.device));
}

TEST(components_left_out_count_as_one) {
    rig r = rig_open(0);
    check_geometry(&r, BH_SHAPE(5, 0, 0, 4, 0, 0));
    check_geometry(&r, BH_SHAPE(2, 2, 0, 3, 3, 0));
    check_geometry(&r, BH_SHAPE(1, 1, 1, 0, 0, 0));
    CHECK_OK(bh_device_close(r.device));
}

TEST(an_empty_grid_is_refused) {
    rig r = rig_open(0);
    bh_buffer out = words_filled(r.device, 12, 0);
    bh_kernel kernel = rig_kernel(&r, "geometry");
    bh_ticket ticket = {5, 6};
    CHECK_REFUSED_ANY(
        bh_launch(kernel, BH_SHAPE(0, 0, 0, 1, 1, 1), BH_ARGS(BH_OUT(out)), NULL, &ticket));
    CHECK_REFUSED_ANY(bh_launch(kernel, BH_GRID(0, 256), BH_ARGS(BH_OUT(out)), NULL, &ticket));
    CHECK_REFUSED_ANY(
        bh_launch(kernel, BH_GRID(UINT64_MAX, 1), BH_ARGS(BH_OUT(out)), NULL, &ticket));
    CHECK_EQ(ticket.lane, 5);
    CHECK_EQ(ticket.sequence, 6);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(shapes_beyond_the_limits_are_refused) {
    rig r = rig_open(0);
    bh_device_info info = BH_INIT(info);
    bh_buffer out = words_filled(r.device, 12, 0);
    bh_kernel kernel = rig_kernel(&r, "geometry");
    REQUIRE_OK(bh_device_get_info(r.device, &info));
    bh_device_limits limits = limits_of(r.device);
    bh_args args = BH_ARGS(BH_OUT(out));
    CHECK_REFUSED(bh_launch(kernel, BH_SHAPE(1, 1, 1, info.max_threads_per_block + 1, 1, 1), args,
                            NULL, NULL),
                  BH_E_LAUNCH);
    CHECK_REFUSED(bh_launch(kernel, BH_SHAPE(1, 1, 1, 32, 32, 2), args, NULL, NULL), BH_E_LAUNCH);
    CHECK_REFUSED(
        bh_launch(kernel, BH_SHAPE(1, 1, 1, 1, 1, limits.max_block[2] + 1), args, NULL, NULL),
        BH_E_LAUNCH);
    CHECK_REFUSED(bh_launch(kernel, BH_SHAPE(1, 1, 1, UINT32_MAX, UINT32_MAX, 1), args, NULL, NULL),
                  BH_E_LAUNCH);
    CHECK_REFUSED(bh_launch(kernel, BH_SHAPE(1, 1, 1, 65536, 65536, 1), args, NULL, NULL),
                  BH_E_LAUNCH);
    if (limits.max_grid[1] != UINT32_MAX)
        CHECK_REFUSED(
            bh_launch(kernel, BH_SHAPE(1, limits.max_grid[1] + 1, 1, 1, 1, 1), args, NULL, NULL),
            BH_E_LAUNCH);
    bh_shape shape = BH_SHAPE(1, 1, 1, 1, 1, 1);
    shape.shared_bytes = limits.shared_per_block_max + 1;
    CHECK_REFUSED(bh_launch(kernel, shape, args, NULL, NULL), BH_E_LAUNCH);
    shape.shared_bytes = UINT32_MAX;
    CHECK_REFUSED(bh_launch(kernel, shape, args, NULL, NULL), BH_E_LAUNCH);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(static_shared_memory_reduces) {
    rig r = rig_open(0);
    bh_buffer in = words_counting(r.device, 2048, 1), sums = words_filled(r.device, 8, 0);
    CHECK_OK(run_now(rig_kernel(&r, "sum_shared"), BH_SHAPE(8, 1, 1, 256, 1, 1),
                     BH_ARGS(BH_IN(in), BH_OUT(sums))));
    for (uint32_t i = 0; i < 8; i++) CHECK_EQ(word_read(sums, i), 256 * 256 * i + 256 * 257 / 2);
    bh_kernel_info info = BH_INIT(info);
    CHECK_OK(bh_kernel_get_info(rig_kernel(&r, "sum_shared"), &info));
    CHECK_EQ(info.static_shared, 1024);
    CHECK_OK(bh_device_close(r.device));
}

TEST(dynamic_shared_memory_reduces) {
    rig r = rig_open(0);
    bh_buffer in = words_counting(r.device, 1024, 1), sums = words_filled(r.device, 8, 0);
    bh_shape shape = BH_SHAPE(8, 1, 1, 128, 1, 1);
    shape.shared_bytes = 128 * 4;
    CHECK_OK(run_now(rig_kernel(&r, "sum_dynamic"), shape, BH_ARGS(BH_IN(in), BH_OUT(sums))));
    for (uint32_t i = 0; i < 8; i++) CHECK_EQ(word_read(sums, i), 128 * 128 * i + 128 * 129 / 2);
    CHECK_OK(bh_device_close(r.device));
}

TEST(dynamic_shared_memory_has_the_size_asked_for) {
    rig r = rig_open(0);
    bh_buffer out = words_alloc(r.device, 1);
    bh_shape shape = BH_SHAPE(1, 1, 1, 1, 1, 1);
    for (uint32_t bytes = 0; bytes <= 48 * 1024; bytes += 12 * 1024) {
        shape.shared_bytes = bytes;
        CHECK_OK(run_now(rig_kernel(&r, "shared_size"), shape, BH_ARGS(BH_OUT(out))));
        CHECK_EQ(word_read(out, 0), bytes);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(arguments_are_checked_against_the_kernel) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 100, 1);
    bh_kernel add_one = rig_kernel(&r, "add_one"), trap = rig_kernel(&r, "trap_now");
    bh_shape shape = BH_GRID(100, 32);
    bh_ticket t = {3, 4};
    uint8_t blob[16] = {0};
    CHECK_REFUSED(bh_launch(add_one, shape, BH_NO_ARGS, NULL, &t), BH_E_LAUNCH);
    CHECK_REFUSED(bh_launch(add_one, shape, BH_ARGS(BH_INOUT(x)), NULL, &t), BH_E_LAUNCH);
    CHECK_REFUSED(bh_launch(add_one, shape, BH_ARGS(BH_INOUT(x), 100u, 1), NULL, &t), BH_E_LAUNCH);
    CHECK_REFUSED(bh_launch(add_one, shape, BH_ARGS(BH_INOUT(x), UINT64_C(100)), NULL, &t),
                  BH_E_LAUNCH);
    CHECK_REFUSED(bh_launch(add_one, shape, BH_ARGS(BH_INOUT(x), (uint16_t)100), NULL, &t),
                  BH_E_LAUNCH);
    CHECK_REFUSED(bh_launch(add_one, shape, BH_ARGS(100u, BH_INOUT(x)), NULL, &t), BH_E_LAUNCH);
    CHECK_REFUSED(bh_launch(add_one, shape, BH_ARGS(BH_INOUT(x), BH_VALUE(blob, 16)), NULL, &t),
                  BH_E_LAUNCH);
    CHECK_REFUSED(bh_launch(trap, shape, BH_ARGS(1), NULL, &t), BH_E_LAUNCH);
    CHECK_EQ(t.lane, 3);
    CHECK_EQ(t.sequence, 4);
    bh_error error;
    CHECK_REFUSED(bh_launch(add_one, shape, BH_ARGS(BH_INOUT(x)), NULL, &t), BH_E_LAUNCH);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "add_one");
    CHECK(words_are(x, 100, 1));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(tickets_to_come_after_are_checked_before_the_launch_too) {
    rig r = rig_open(0);
    bh_kernel store = rig_kernel(&r, "store_word");
    bh_buffer x = words_filled(r.device, 1, 0);
    bh_args args = BH_ARGS(BH_OUT(x), 1u);
    bh_ticket never = {1, 1}, done = submit(store, BH_GRID(1, 1), args, NULL);
    bh_launch_options options = BH_INIT(options);
    bh_preflight answer = BH_INIT(answer);
    options.after = &never;
    options.after_count = 1;
    CHECK_REFUSED(bh_launch(store, BH_GRID(1, 1), args, &options, NULL), BH_E_INVALID);
    CHECK_OK(bh_launch_preflight(store, BH_GRID(1, 1), &args, &options, &answer));
    CHECK_EQ(answer.error.status, BH_E_INVALID);
    CHECK_STR_CONTAINS(answer.error.message, "after[0] is {0x1, 1}");
    CHECK_OK(bh_launch_preflight(store, BH_GRID(1, 1), NULL, &options, &answer));
    CHECK_EQ(answer.error.status, BH_E_INVALID);
    options.after = &done;
    CHECK_OK(bh_launch_preflight(store, BH_GRID(1, 1), &args, &options, &answer));
    CHECK_EQ(answer.error.status, BH_OK);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_launch_needs_no_ticket) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 10, 0);
    for (int i = 0; i < 10; i++)
        CHECK_OK(bh_launch(rig_kernel(&r, "add_one"), BH_GRID(10, 32), BH_ARGS(BH_INOUT(x), 10u),
                           NULL, NULL));
    CHECK(words_are(x, 10, 10));
    CHECK_OK(bh_device_close(r.device));
}

TEST(views_are_arguments_like_buffers) {
    rig r = rig_open(0);
    bh_buffer whole = words_filled(r.device, 1000, 0), view;
    REQUIRE_OK(bh_buffer_view(whole, 0, 300, 100, &view));
    CHECK_OK(run_now(rig_kernel(&r, "iota"), BH_GRID(100, 32), BH_ARGS(BH_OUT(view), 5u, 100u)));
    CHECK(words_count(view, 100, 5));
    CHECK_EQ(word_read(whole, 299), 0);
    CHECK_EQ(word_read(whole, 300), 5);
    CHECK_EQ(word_read(whole, 400), 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(pointers_inside_buffers_lead_to_declared_ones) {
    enum { N = 200 };
    rig r = rig_open(0);
    bh_buffer data[4], table, out = words_filled(r.device, N, 0);
    uint64_t addresses[N];
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U64, N, NULL, &table));
    for (uint32_t i = 0; i < 4; i++) data[i] = words_counting(r.device, N, i * 1000);
    for (uint32_t i = 0; i < N; i++) addresses[i] = address_of(data[i % 4]) + 4 * i;
    REQUIRE_OK(bh_buffer_write(table, 0, addresses, sizeof addresses));
    bh_use uses[4];
    bh_launch_options options = BH_INIT(options);
    options.also = uses;
    options.also_count = 4;
    for (int i = 0; i < 4; i++) uses[i] = (bh_use){data[i], BH_ACCESS_IN, 0};
    CHECK_OK(run_with(rig_kernel(&r, "gather"), BH_GRID(N, 64),
                      BH_ARGS(BH_IN(table), BH_OUT(out), (uint32_t)N), &options));
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(word_read(out, i), i % 4 * 1000 + i);
    for (int i = 0; i < 4; i++) uses[i].access = BH_ACCESS_INOUT;
    CHECK_OK(run_with(rig_kernel(&r, "scatter"), BH_GRID(N, 64),
                      BH_ARGS(BH_IN(table), 70000u, (uint32_t)N), &options));
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(word_read(data[i % 4], i), 70000 + i);
    CHECK_OK(bh_device_close(r.device));
}

TEST(cooperative_launches_run_or_are_refused_clearly) {
    rig r = rig_open(0);
    bh_device_info info = BH_INIT(info);
    bh_buffer x = words_filled(r.device, 64, 1);
    bh_launch_options options = BH_INIT(options);
    options.flags = BH_LAUNCH_COOPERATIVE;
    REQUIRE_OK(bh_device_get_info(r.device, &info));
    bh_status status =
        run_with(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u), &options);
    if (info.cooperative) {
        CHECK_OK(status);
        CHECK(words_are(x, 64, 2));
    } else {
        CHECK_REFUSED(status, BH_E_UNSUPPORTED);
    }
    CHECK_OK(bh_device_close(r.device));
}
