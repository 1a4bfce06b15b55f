/* SPDX-License-Identifier: Apache-2.0 */
/* The launch boundary: every check of a launch, what preflight says about it, the one-line form. */
#include "../support/support.h"

static const char ptx_odd[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry bounded(.param .u64 p)\n.maxntid 96, 1, 1\n{\n  ret;\n}\n"
    ".visible .entry required(.param .u64 p)\n.reqntid 8, 4, 2\n{\n"
    "  .reg .u64 %to;\n  .reg .u32 %before;\n  ld.param.u64 %to, [p];\n"
    "  atom.global.add.u32 %before, [%to], 1;\n  ret;\n}\n"
    ".visible .entry pointed(.param .u64 .ptr .global .align 4 p)\n{\n"
    "  .reg .b64 %rd<2>;\n  .reg .b32 %r<2>;\n  .reg .pred %q;\n"
    "  ld.param.u64 %rd1, [p];\n  setp.eq.u64 %q, %rd1, 0;\n  @%q ret;\n"
    "  mov.u32 %r1, 77;\n  st.global.u32 [%rd1], %r1;\n  ret;\n}\n"
    ".visible .entry real(.param .f64 x)\n{\n  ret;\n}\n"
    ".visible .entry holding()\n{\n  .shared .align 4 .b8 held[1024];\n  .reg .b32 %r<3>;\n"
    "  mov.u32 %r1, held;\n  mov.u32 %r2, 5;\n  st.volatile.shared.u32 [%r1], %r2;\n  ret;\n}\n"
    ".visible .entry nothing()\n{\n  ret;\n}\n";

typedef struct odd {
    bh_device device;
    bh_module module;
    bh_device_info info;
    bh_device_limits limits;
} odd;

static odd odd_open(void) {
    odd o = {.device = open_device(), .info = BH_INIT(o.info)};
    o.module = load_module(o.device, ptx_odd);
    REQUIRE_OK(bh_device_get_info(o.device, &o.info));
    o.limits = limits_of(o.device);
    return o;
}

/* The reason of the last refusal, by its line. */
static void check_reason(uint32_t reason, const char *file, int line) {
    char text[BH_LINE_BYTES], wanted[64];
    snprintf(wanted, sizeof wanted, "|reason=%s|", bh_reason_name(reason));
    test_check_status(bh_preflight_line(NULL, text, sizeof text), BH_OK, true, "bh_preflight_line",
                      file, line);
    test_check_contains(text, wanted, false, "the line", file, line);
    test_check_contains(text, "|status=blocked|", false, "the line", file, line);
}
#define REFUSED(call, status, reason)                                                              \
    do {                                                                                           \
        CHECK_REFUSED(call, status);                                                               \
        check_reason(reason, __FILE__, __LINE__);                                                  \
    } while (0)

static bh_preflight preflight(bh_kernel kernel, bh_shape shape, const bh_launch_options *options) {
    bh_preflight p = BH_INIT(p);
    REQUIRE_OK(bh_launch_preflight(kernel, shape, NULL, options, &p));
    return p;
}

static bh_occupancy occupancy(bh_kernel kernel, bh_shape shape) {
    bh_occupancy o = BH_INIT(o);
    REQUIRE_OK(bh_kernel_get_occupancy(kernel, shape, &o));
    return o;
}

/* ---- geometry ---- */

TEST(zero_dimensions_are_refused) {
    odd o = odd_open();
    bh_kernel kernel = get_kernel(o.module, "nothing");
    static const bh_shape wrong[] = {
        {{0, 0, 0}, {1, 1, 1}, {0, 0, 0}, 0}, {{0, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0},
        {{1, 0, 1}, {1, 1, 1}, {0, 0, 0}, 0}, {{0, 0, 1}, {1, 1, 1}, {0, 0, 0}, 0},
        {{1, 1, 1}, {0, 1, 1}, {0, 0, 0}, 0}, {{1, 1, 1}, {1, 0, 1}, {0, 0, 0}, 0},
        {{1, 1, 1}, {1, 1, 1}, {0, 1, 1}, 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        REFUSED(bh_launch(kernel, wrong[i], BH_NO_ARGS, NULL, NULL), BH_E_LAUNCH,
                BH_REASON_ZERO_DIMENSION);
        CHECK_EQ(preflight(kernel, wrong[i], NULL).error.reason, BH_REASON_ZERO_DIMENSION);
    }
    /* A grid computed from a zero block is zero, too: the message names the block. */
    bh_shape both = {.grid = {0, 1, 1}, .block = {0, 1, 1}};
    REFUSED(bh_launch(kernel, both, BH_NO_ARGS, NULL, NULL), BH_E_LAUNCH, BH_REASON_ZERO_DIMENSION);
    bh_error error;
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "the block is 0 x 1 x 1");
    CHECK_OK(run_now(kernel, (bh_shape){.grid = {2}, .block = {2, 2}}, BH_NO_ARGS));
    CHECK_OK(bh_device_close(o.device));
}

TEST(every_axis_has_its_limit) {
    odd o = odd_open();
    bh_kernel kernel = get_kernel(o.module, "nothing");
    for (int axis = 0; axis < 3; axis++) {
        uint32_t dims[3] = {1, 1, 1};
        if (o.limits.max_grid[axis] < UINT32_MAX) {
            dims[axis] = o.limits.max_grid[axis] + 1;
            REFUSED(bh_launch(kernel, BH_SHAPE(dims[0], dims[1], dims[2], 1, 1, 1), BH_NO_ARGS,
                              NULL, NULL),
                    BH_E_LAUNCH, BH_REASON_GRID_AXIS);
            dims[axis] = UINT32_MAX;
            REFUSED(bh_launch(kernel, BH_SHAPE(dims[0], dims[1], dims[2], 1, 1, 1), BH_NO_ARGS,
                              NULL, NULL),
                    BH_E_LAUNCH, BH_REASON_GRID_AXIS);
        }
        dims[axis] = o.limits.max_block[axis] + 1;
        REFUSED(
            bh_launch(kernel, BH_SHAPE(1, 1, 1, dims[0], dims[1], dims[2]), BH_NO_ARGS, NULL, NULL),
            BH_E_LAUNCH, BH_REASON_BLOCK_AXIS);
        bh_preflight p = preflight(kernel, BH_SHAPE(1, 1, 1, dims[0], dims[1], dims[2]), NULL);
        CHECK_EQ(p.error.requested, o.limits.max_block[axis] + 1);
        CHECK_EQ(p.error.limit, o.limits.max_block[axis]);
        dims[axis] = o.limits.max_block[axis];
        CHECK_OK(run_now(kernel, BH_SHAPE(1, 1, 1, dims[0], dims[1], dims[2]), BH_NO_ARGS));
    }
    CHECK_OK(run_now(kernel, BH_SHAPE(1, o.limits.max_grid[1], 1, 1, 1, 1), BH_NO_ARGS));
    CHECK_OK(bh_device_close(o.device));
}

TEST(threads_are_limited_in_all) {
    odd o = odd_open();
    bh_kernel kernel = get_kernel(o.module, "nothing");
    REFUSED(bh_launch(kernel, BH_SHAPE(1, 1, 1, 32, 32, 2), BH_NO_ARGS, NULL, NULL), BH_E_LAUNCH,
            BH_REASON_BLOCK_THREADS);
    bh_preflight p = preflight(kernel, BH_SHAPE(1, 1, 1, 32, 32, 2), NULL);
    CHECK_EQ(p.error.status, BH_E_LAUNCH);
    CHECK_EQ(p.error.requested, 2048);
    CHECK_EQ(p.error.limit, o.info.max_threads_per_block);
    CHECK_EQ(p.resident_blocks, 0);
    CHECK_OK(run_now(
        kernel, (bh_shape){.grid = {1}, .block = {p.fits_block.x, p.fits_block.y, p.fits_block.z}},
        BH_NO_ARGS));
    CHECK_EQ(p.fits_block.x * p.fits_block.y * p.fits_block.z, o.info.max_threads_per_block);
    CHECK_OK(bh_device_close(o.device));
}

TEST(a_kernel_has_limits_of_its_own) {
    odd o = odd_open();
    bh_buffer x = words_filled(o.device, 1, 0);
    bh_kernel bounded = get_kernel(o.module, "bounded"),
              required = get_kernel(o.module, "required");
    bh_args args = BH_ARGS(BH_INOUT(x));
    REFUSED(bh_launch(bounded, BH_SHAPE(1, 1, 1, 97, 1, 1), args, NULL, NULL), BH_E_LAUNCH,
            BH_REASON_KERNEL_THREADS);
    CHECK_OK(run_now(bounded, BH_SHAPE(1, 1, 1, 96, 1, 1), args));
    bh_preflight p = preflight(bounded, BH_SHAPE(1, 1, 1, 500, 1, 1), NULL);
    CHECK_EQ(p.fits_block.x, 96);
    bh_occupancy large = occupancy(bounded, BH_SHAPE(1, 1, 1, 500, 1, 1));
    CHECK_EQ(large.max_threads, 96);
    CHECK_LE(large.recommended_block, 96);
    CHECK_GT(large.recommended_block, 0);
    CHECK_EQ(large.blocks_per_multiprocessor, 0); /* such a block cannot be launched */
    CHECK_EQ(large.resident_blocks, 0);
    REFUSED(bh_launch(required, BH_SHAPE(1, 1, 1, 64, 1, 1), args, NULL, NULL), BH_E_LAUNCH,
            BH_REASON_REQUIRED_BLOCK);
    REFUSED(bh_launch(required, BH_SHAPE(1, 1, 1, 8, 4, 1), args, NULL, NULL), BH_E_LAUNCH,
            BH_REASON_REQUIRED_BLOCK);
    CHECK_OK(run_now(required, BH_SHAPE(1, 1, 1, 8, 4, 2), args));
    CHECK_EQ(word_read(x, 0), 64);
    CHECK_OK(run_now(required, BH_SHAPE(3, 1, 1, 1, 1, 1), args)); /* stands for 8 x 4 x 2 */
    CHECK_EQ(word_read(x, 0), 4 * 64);
    p = preflight(required, BH_SHAPE(1, 1, 1, 64, 1, 1), NULL);
    CHECK_EQ(p.fits_block.x, 8);
    CHECK_EQ(p.fits_block.y, 4);
    CHECK_EQ(p.fits_block.z, 2);
    CHECK_EQ(occupancy(required, BH_SHAPE(1, 1, 1, 64, 1, 1)).recommended_block, 64);
    CHECK_OK(bh_device_close(o.device));
}

TEST(static_and_dynamic_shared_memory_count_together) {
    odd o = odd_open();
    bh_kernel kernel = get_kernel(o.module, "holding");
    bh_shape shape = BH_SHAPE(1, 1, 1, 1, 1, 1);
    bh_preflight p = preflight(kernel, shape, NULL);
    CHECK_EQ(p.static_shared, 1024);
    uint32_t most = occupancy(kernel, shape).max_dynamic_shared;
    CHECK_EQ(most, o.limits.shared_per_block_max - 1024);
    /* Above what is there without opting in: that is done for the caller. */
    CHECK_GT(most, o.limits.shared_per_block);
    shape.shared_bytes = most;
    CHECK_OK(run_now(kernel, shape, BH_NO_ARGS));
    shape.shared_bytes++;
    REFUSED(bh_launch(kernel, shape, BH_NO_ARGS, NULL, NULL), BH_E_LAUNCH, BH_REASON_SHARED_MEMORY);
    p = preflight(kernel, shape, NULL);
    CHECK_EQ(p.error.requested, o.limits.shared_per_block_max + 1);
    CHECK_EQ(p.error.limit, o.limits.shared_per_block_max);
    shape.shared_bytes = UINT32_MAX;
    REFUSED(bh_launch(kernel, shape, BH_NO_ARGS, NULL, NULL), BH_E_LAUNCH, BH_REASON_SHARED_MEMORY);
    CHECK_OK(bh_device_close(o.device));
}

/* ---- clusters and attributes ---- */

TEST(clusters_run_or_are_refused_clearly) {
    odd o = odd_open();
    bh_kernel kernel = get_kernel(o.module, "nothing");
    bh_shape shape = BH_SHAPE(6, 2, 1, 32, 1, 1);
    shape.cluster = (bh_dim){4, 1, 1};
    REFUSED(bh_launch(kernel, shape, BH_NO_ARGS, NULL, NULL), BH_E_LAUNCH, BH_REASON_CLUSTER_GRID);
    shape.cluster = (bh_dim){1, 1, 1};
    CHECK_OK(run_now(kernel, shape, BH_NO_ARGS));
    shape.cluster = (bh_dim){2, 2, 1};
    if (!o.limits.cluster_launch) {
        REFUSED(bh_launch(kernel, shape, BH_NO_ARGS, NULL, NULL), BH_E_UNSUPPORTED,
                BH_REASON_CLUSTER_UNSUPPORTED);
        CHECK_EQ(occupancy(kernel, shape).max_cluster, 0);
    } else {
        CHECK_OK(run_now(kernel, shape, BH_NO_ARGS));
        bh_preflight p = preflight(kernel, shape, NULL);
        CHECK_EQ(p.resident_blocks % 4, 0);
        uint32_t most = occupancy(kernel, shape).max_cluster;
        CHECK_GE(most, 8);
        shape.grid.x = shape.cluster.x = most * 2;
        REFUSED(bh_launch(kernel, shape, BH_NO_ARGS, NULL, NULL), BH_E_LAUNCH,
                BH_REASON_CLUSTER_SIZE);
        shape.grid = shape.cluster = (bh_dim){65536, 65535, 65535};
        REFUSED(bh_launch(kernel, shape, BH_NO_ARGS, NULL, NULL), BH_E_LAUNCH,
                BH_REASON_CLUSTER_SIZE);
    }
    CHECK_OK(bh_device_close(o.device));
}

TEST(attributes_are_taken_or_refused_clearly) {
    odd o = odd_open();
    bh_kernel kernel = get_kernel(o.module, "nothing");
    bh_shape shape = BH_GRID(64, 32);
    bh_launch_options options = BH_INIT(options);
    options.priority = 1;
    REFUSED(bh_launch(kernel, shape, BH_NO_ARGS, &options, NULL), BH_E_INVALID,
            BH_REASON_ATTRIBUTE);
    options.flags = BH_LAUNCH_PRIORITY;
    options.priority = o.limits.priority_highest;
    if (o.limits.priority_highest == o.limits.priority_lowest) {
        REFUSED(bh_launch(kernel, shape, BH_NO_ARGS, &options, NULL), BH_E_UNSUPPORTED,
                BH_REASON_ATTRIBUTE);
    } else {
        CHECK_OK(run_with(kernel, shape, BH_NO_ARGS, &options));
        options.priority++;
        REFUSED(bh_launch(kernel, shape, BH_NO_ARGS, &options, NULL), BH_E_INVALID,
                BH_REASON_ATTRIBUTE);
    }
    options = (bh_launch_options)BH_INIT(options);
    options.cluster_policy = 3;
    REFUSED(bh_launch(kernel, shape, BH_NO_ARGS, &options, NULL), BH_E_INVALID,
            BH_REASON_ATTRIBUTE);
    for (uint32_t policy = BH_CLUSTER_SPREAD; policy <= BH_CLUSTER_BALANCE; policy++) {
        options.cluster_policy = policy;
        if (o.limits.cluster_launch)
            CHECK_OK(run_with(kernel, shape, BH_NO_ARGS, &options));
        else
            REFUSED(bh_launch(kernel, shape, BH_NO_ARGS, &options, NULL), BH_E_UNSUPPORTED,
                    BH_REASON_ATTRIBUTE);
    }
    options = (bh_launch_options)BH_INIT(options);
    options.flags = BH_LAUNCH_PROGRAMMATIC;
    if (o.limits.cluster_launch) {
        for (int i = 0; i < 100; i++)
            CHECK_OK(bh_launch(kernel, shape, BH_NO_ARGS, &options, NULL));
        CHECK_OK(bh_device_sync(o.device, LONG_NS));
    } else {
        REFUSED(bh_launch(kernel, shape, BH_NO_ARGS, &options, NULL), BH_E_UNSUPPORTED,
                BH_REASON_ATTRIBUTE);
    }
    CHECK_OK(bh_device_close(o.device));
}

TEST(options_of_an_older_program_are_taken) {
    odd o = odd_open();
    bh_launch_options options = BH_INIT(options);
    options.size = 40; /* before priority and cluster_policy */
    options.priority = 99;
    options.cluster_policy = 99;
    CHECK_OK(run_with(get_kernel(o.module, "nothing"), BH_GRID(1, 1), BH_NO_ARGS, &options));
    CHECK_OK(bh_device_close(o.device));
}

/* ---- arguments ---- */

TEST(scalars_and_pointers_are_distinguished) {
    odd o = odd_open();
    bh_kernel pointed = get_kernel(o.module, "pointed"), real = get_kernel(o.module, "real");
    bh_buffer x = words_filled(o.device, 4, 0);
    bh_shape one = BH_GRID(1, 1);
    REFUSED(bh_launch(pointed, one, BH_ARGS(UINT64_C(100)), NULL, NULL), BH_E_LAUNCH,
            BH_REASON_ARGUMENT_KIND);
    REFUSED(bh_launch(pointed, one, BH_ARGS(3.5), NULL, NULL), BH_E_LAUNCH,
            BH_REASON_ARGUMENT_KIND);
    CHECK_OK(run_now(pointed, one, BH_ARGS(BH_NULL)));
    CHECK_OK(run_now(pointed, one, BH_ARGS(BH_OUT(x))));
    CHECK_EQ(word_read(x, 0), 77);
    CHECK_OK(run_now(pointed, one, BH_ARGS(address_of(x) + 4)));
    CHECK_EQ(word_read(x, 1), 77);
    REFUSED(bh_launch(real, one, BH_ARGS(BH_IN(x)), NULL, NULL), BH_E_LAUNCH,
            BH_REASON_ARGUMENT_KIND);
    CHECK_OK(run_now(real, one, BH_ARGS(3.5)));
    REFUSED(bh_launch(real, one, BH_ARGS(3.5f), NULL, NULL), BH_E_LAUNCH, BH_REASON_ARGUMENT_SIZE);
    REFUSED(bh_launch(real, one, BH_ARGS(3.5, 1), NULL, NULL), BH_E_LAUNCH,
            BH_REASON_ARGUMENT_COUNT);
    CHECK_OK(bh_device_close(o.device));
}

TEST(buffers_smaller_than_declared_are_refused) {
    rig r = rig_open(0);
    bh_kernel kernel = rig_kernel(&r, "copy_words");
    bh_buffer a = words_filled(r.device, 100, 3), b = words_filled(r.device, 60, 0), view;
    bh_shape shape = BH_GRID(60, 32);
    CHECK_OK(run_now(kernel, shape, BH_ARGS(BH_IN_AT_LEAST(a, 240), BH_OUT_AT_LEAST(b, 240), 60u)));
    CHECK(words_are(b, 60, 3));
    REFUSED(bh_launch(kernel, shape, BH_ARGS(BH_IN_AT_LEAST(a, 400), BH_OUT_AT_LEAST(b, 241), 60u),
                      NULL, NULL),
            BH_E_LAUNCH, BH_REASON_BUFFER_SMALL);
    REFUSED(bh_launch(kernel, shape, BH_ARGS(BH_IN_AT_LEAST(a, UINT64_MAX), BH_OUT(b), 60u), NULL,
                      NULL),
            BH_E_LAUNCH, BH_REASON_BUFFER_SMALL);
    REQUIRE_OK(bh_buffer_view(a, 0, 50, 50, &view));
    REFUSED(
        bh_launch(kernel, shape, BH_ARGS(BH_IN_AT_LEAST(view, 240), BH_OUT(b), 60u), NULL, NULL),
        BH_E_LAUNCH, BH_REASON_BUFFER_SMALL);
    bh_error error;
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message,
                       "argument 0 (BH_IN_AT_LEAST) is a buffer of 200 bytes; 240 are");
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_refused_argument_is_named_by_index_and_kind) {
    rig r = rig_open(0);
    bh_kernel kernel = rig_kernel(&r, "copy_words");
    bh_buffer a = words_filled(r.device, 8, 3), gone = words_filled(r.device, 8, 0);
    CHECK_OK(bh_buffer_release(gone));
    struct {
        bh_arg second;
        const char *named;
    } cases[] = {{BH_OUT(gone), "argument 1 (BH_OUT)"},
                 {BH_INOUT_AT_LEAST(gone, 4), "argument 1 (BH_INOUT_AT_LEAST)"},
                 {bh_arg_buffer(a, 9), "the access of argument 1 is 9"},
                 {bh_arg_uint(1), "argument 1 (a value) has 4 bytes"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_REFUSED_ANY(
            bh_launch(kernel, BH_GRID(8, 8), BH_ARGS(BH_IN(a), cases[i].second, 8u), NULL, NULL));
        bh_error error;
        bh_last_error(&error);
        CHECK_STR_CONTAINS(error.message, cases[i].named);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(released_and_foreign_buffers_are_refused) {
    rig r = rig_open(0);
    rig other = rig_open(BH_DEVICE_NO_STANDBY);
    bh_kernel kernel = rig_kernel(&r, "add_one");
    bh_buffer gone = words_filled(r.device, 4, 0), foreign = words_filled(other.device, 4, 0);
    CHECK_OK(bh_buffer_release(gone));
    REFUSED(bh_launch(kernel, BH_GRID(4, 4), BH_ARGS(BH_INOUT(gone), 4u), NULL, NULL), BH_E_INVALID,
            BH_REASON_BUFFER_HANDLE);
    REFUSED(bh_launch(kernel, BH_GRID(4, 4), BH_ARGS(BH_INOUT(foreign), 4u), NULL, NULL),
            BH_E_INVALID, BH_REASON_BUFFER_HANDLE);
    bh_use use = {.buffer = gone, .access = BH_ACCESS_IN};
    bh_launch_options options = BH_INIT(options);
    options.also = &use;
    options.also_count = 1;
    bh_buffer fine = words_filled(r.device, 4, 0);
    REFUSED(bh_launch(kernel, BH_GRID(4, 4), BH_ARGS(BH_INOUT(fine), 4u), &options, NULL),
            BH_E_INVALID, BH_REASON_BUFFER_HANDLE);
    CHECK(words_are(fine, 4, 0));
    CHECK_OK(bh_device_close(other.device));
    CHECK_OK(bh_device_close(r.device));
}

TEST(images_for_another_architecture_are_refused_when_loaded) {
    bh_device device = open_device();
    bh_module module;
    static const char future[] =
        ".version 8.7\n.target sm_121a\n.address_size 64\n.visible .entry f()\n{\n  ret;\n}\n";
    /* The head of a cubin for a device of long ago; the CPU device takes none at all. */
    uint8_t cubin[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 7};
    cubin[16] = 2;
    cubin[18] = 190;
    cubin[48] = 35;
    CHECK_REFUSED_ANY(bh_module_load(device, cubin, sizeof cubin, &module));
    if (!is_cpu(device))
        CHECK_REFUSED(bh_module_load(device, future, sizeof future - 1, &module), BH_E_UNSUPPORTED);
    CHECK_OK(bh_device_close(device));
}

/* ---- residency ---- */

TEST(cooperative_launches_fit_up_to_the_limit) {
    odd o = odd_open();
    if (!o.info.cooperative) SKIP("this device has no cooperative launches");
    bh_kernel kernel = get_kernel(o.module, "nothing");
    bh_launch_options options = BH_INIT(options);
    options.flags = BH_LAUNCH_COOPERATIVE;
    for (int big = 0; big < 2; big++) {
        bh_shape shape = BH_SHAPE(1, 1, 1, big ? 1024 : 64, 1, 1);
        if (big) shape.shared_bytes = 30000;
        bh_preflight p = preflight(kernel, shape, &options);
        CHECK_OK(p.error.status);
        CHECK_EQ(p.cooperative, 1);
        REQUIRE(p.resident_blocks >= o.info.multiprocessors);
        shape.grid.x = (uint32_t)p.resident_blocks;
        CHECK_OK(run_with(kernel, shape, BH_NO_ARGS, &options));
        shape.grid.x++;
        REFUSED(bh_launch(kernel, shape, BH_NO_ARGS, &options, NULL), BH_E_RESIDENCY,
                BH_REASON_RESIDENCY);
        bh_preflight no = preflight(kernel, shape, &options);
        CHECK_EQ(no.error.status, BH_E_RESIDENCY);
        CHECK_EQ(no.error.requested, p.resident_blocks + 1);
        CHECK_EQ(no.error.limit, p.resident_blocks);
        CHECK_EQ(no.fits_grid.x, p.resident_blocks);
        char line[BH_LINE_BYTES], wanted[64];
        CHECK_OK(bh_preflight_line(&no, line, sizeof line));
        snprintf(wanted, sizeof wanted, "|cooperative=yes|resident=%llu|",
                 (unsigned long long)p.resident_blocks);
        CHECK_STR_CONTAINS(line, wanted);
    }
    CHECK_OK(bh_device_close(o.device));
}

TEST(what_preflight_suggests_fits) {
    odd o = odd_open();
    if (!o.info.cooperative) SKIP("this device has no cooperative launches");
    bh_kernel kernel = get_kernel(o.module, "nothing");
    rng random = rng_seeded(5);
    for (int i = 0; i < 60; i++) {
        bh_launch_options options = BH_INIT(options);
        options.flags = rng_below(&random, 2) ? BH_LAUNCH_COOPERATIVE : 0;
        bh_shape shape = BH_SHAPE(1 + rng_below(&random, 40), 1 + rng_below(&random, 12),
                                  1 + rng_below(&random, 6), 1 + rng_below(&random, 1500),
                                  1 + rng_below(&random, 4), 1 + rng_below(&random, 2));
        shape.shared_bytes = rng_below(&random, 2) ? rng_below(&random, 60000) : 0;
        bh_preflight p = preflight(kernel, shape, &options);
        bh_status status = run_with(kernel, shape, BH_NO_ARGS, &options);
        CHECK_EQ(status, p.error.status);
        if (p.error.status == BH_OK) {
            CHECK_EQ(p.error.reason, BH_REASON_NONE);
            bh_occupancy found = occupancy(kernel, shape);
            CHECK(found.occupancy > 0 && found.occupancy <= 1);
            CHECK_EQ(found.resident_blocks, p.resident_blocks);
            CHECK_EQ(p.fits_block.x, p.block.x);
            CHECK_EQ(p.fits_grid.x * p.fits_grid.y * p.fits_grid.z, p.grid.x * p.grid.y * p.grid.z);
            continue;
        }
        bool block_is_wrong = p.error.reason != BH_REASON_RESIDENCY;
        bh_shape grid = shape, block = shape;
        grid.grid = p.fits_grid;
        if (block_is_wrong) grid.block = p.fits_block;
        CHECK_OK(run_with(kernel, grid, BH_NO_ARGS, &options));
        if (block_is_wrong || p.fits_block.x == 0) continue;
        block.block = p.fits_block;
        CHECK_OK(run_with(kernel, block, BH_NO_ARGS, &options));
    }
    CHECK_OK(bh_device_close(o.device));
}

TEST(preflight_looks_at_arguments_if_they_are_given) {
    rig r = rig_open(0);
    bh_kernel kernel = rig_kernel(&r, "copy_words");
    bh_buffer a = words_filled(r.device, 8, 3), b = words_filled(r.device, 8, 0);
    uint32_t n = 8;
    bh_arg list[3] = {BH_IN(a), BH_OUT(b), BH_ARG(n)};
    bh_args args = {list, 3};
    bh_preflight p = BH_INIT(p);
    CHECK_OK(bh_launch_preflight(kernel, BH_GRID(8, 8), &args, NULL, &p));
    CHECK_OK(p.error.status);
    list[1] = BH_OUT_AT_LEAST(b, 33);
    CHECK_OK(bh_launch_preflight(kernel, BH_GRID(8, 8), NULL, NULL, &p));
    CHECK_OK(p.error.status);
    CHECK_OK(bh_launch_preflight(kernel, BH_GRID(8, 8), &args, NULL, &p));
    CHECK_EQ(p.error.status, BH_E_LAUNCH);
    CHECK_EQ(p.error.reason, BH_REASON_BUFFER_SMALL);
    CHECK_EQ(p.error.requested, 33);
    CHECK_EQ(p.error.limit, 32);
    CHECK_STR_CONTAINS(p.error.message, "argument 1 (BH_OUT_AT_LEAST)");
    CHECK_GT(p.resident_blocks, 0); /* the shape is good */
    args.count = 2;
    CHECK_OK(bh_launch_preflight(kernel, BH_GRID(8, 8), &args, NULL, &p));
    CHECK_EQ(p.error.reason, BH_REASON_ARGUMENT_COUNT);
    CHECK(words_are(b, 8, 0)); /* nothing was launched */
    CHECK_OK(bh_device_close(r.device));
}

TEST(occupancy_ignores_the_grid) {
    odd o = odd_open();
    bh_kernel kernel = get_kernel(o.module, "nothing");
    bh_occupancy one = occupancy(kernel, BH_SHAPE(1, 1, 1, 64, 1, 1));
    bh_occupancy none = occupancy(kernel, BH_SHAPE(0, 0, 0, 64, 1, 1));
    bh_occupancy huge = occupancy(kernel, BH_SHAPE(UINT32_MAX, UINT32_MAX, 9, 64, 1, 1));
    CHECK_GT(one.blocks_per_multiprocessor, 0);
    CHECK_EQ(one.resident_blocks, (uint64_t)one.blocks_per_multiprocessor * o.info.multiprocessors);
    CHECK_EQ(memcmp(&one, &none, sizeof one), 0);
    CHECK_EQ(memcmp(&one, &huge, sizeof one), 0);
    bh_occupancy p = BH_INIT(p), unsized = {0};
    CHECK_REFUSED(bh_kernel_get_occupancy(kernel, BH_SHAPE(1, 1, 1, 0, 1, 1), &p), BH_E_LAUNCH);
    CHECK_REFUSED(bh_kernel_get_occupancy(kernel, BH_GRID(1, 1), &unsized), BH_E_INVALID);
    CHECK_REFUSED(bh_kernel_get_occupancy(kernel, BH_GRID(1, 1), NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_kernel_get_occupancy((bh_kernel){7}, BH_GRID(1, 1), &p), BH_E_INVALID);
    CHECK_OK(bh_device_close(o.device));
}

TEST(preflight_leaves_no_error_behind) {
    odd o = odd_open();
    bh_kernel kernel = get_kernel(o.module, "nothing");
    bh_error before, after;
    char line[BH_LINE_BYTES];
    CHECK_STATUS(bh_preflight_line(NULL, line, sizeof line), BH_E_NOT_FOUND);
    CHECK_STATUS(bh_launch(kernel, BH_SHAPE(1, 1, 1, 1, 1, 65), BH_NO_ARGS, NULL, NULL),
                 BH_E_LAUNCH);
    bh_last_error(&before);
    CHECK_NE(preflight(kernel, BH_SHAPE(0, 0, 0, 1, 1, 1), NULL).error.status, BH_OK);
    bh_last_error(&after);
    CHECK_STR_EQ(after.message, before.message);
    CHECK_OK(bh_preflight_line(NULL, line, sizeof line));
    CHECK_STR_CONTAINS(line, "|reason=block_axis|");
    bh_preflight unsized = {0}, p = BH_INIT(p);
    CHECK_REFUSED(bh_launch_preflight(kernel, BH_GRID(1, 1), NULL, NULL, &unsized), BH_E_INVALID);
    CHECK_REFUSED(bh_launch_preflight(kernel, BH_GRID(1, 1), NULL, NULL, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_launch_preflight((bh_kernel){7}, BH_GRID(1, 1), NULL, NULL, &p), BH_E_INVALID);
    CHECK_OK(bh_module_release(o.module));
    CHECK_REFUSED(bh_launch_preflight(kernel, BH_GRID(1, 1), NULL, NULL, &p), BH_E_INVALID);
    CHECK_OK(bh_device_close(o.device));
}

static void ask_many(void *context, unsigned index) {
    odd *o = context;
    bh_kernel kernel = get_kernel(o->module, "nothing");
    bh_launch_options options = BH_INIT(options);
    options.flags = BH_LAUNCH_COOPERATIVE;
    for (uint32_t i = 0; i < 50; i++) { /* more shapes than are remembered */
        bh_shape shape = BH_SHAPE(1, 1, 1, 1 + (i * 7 + index * 131) % 1000, 1, 1);
        CHECK_OK(run_with(kernel, shape, BH_NO_ARGS, &options));
        CHECK_OK(preflight(kernel, shape, &options).error.status);
    }
}

TEST(many_threads_may_ask_what_fits) {
    odd o = odd_open();
    if (!o.info.cooperative) SKIP("this device has no cooperative launches");
    run_threads(4, ask_many, &o);
    CHECK_OK(bh_device_close(o.device));
}

/* ---- one line ---- */

TEST(the_line_has_its_form) {
    odd o = odd_open();
    bh_kernel kernel = get_kernel(o.module, "holding");
    bh_shape shape = BH_SHAPE(4, 2, 1, 32, 2, 1);
    shape.shared_bytes = 16;
    char line[BH_LINE_BYTES];
    bh_preflight p = preflight(kernel, shape, NULL);
    p.resident_blocks = 99;
    CHECK_OK(bh_preflight_line(&p, line, sizeof line));
    CHECK_STR_EQ(line, "bulkhead-launch-v1|kernel=holding|status=ok|reason=none|requested=0|limit=0"
                       "|grid=4x2x1|block=32x2x1|shared=1024+16|cooperative=no|resident=99"
                       "|cluster=none|fix=");
    size_t length = strlen(line);
    CHECK_OK(bh_preflight_line(&p, line, length + 1));
    CHECK_REFUSED(bh_preflight_line(&p, line, length), BH_E_INVALID);
    CHECK_REFUSED(bh_preflight_line(&p, NULL, 100), BH_E_INVALID);
    CHECK_STATUS(bh_launch(kernel, BH_SHAPE(1, 1, 1, 32, 32, 2), BH_NO_ARGS, NULL, NULL),
                 BH_E_LAUNCH);
    char wanted[256];
    snprintf(wanted, sizeof wanted,
             "bulkhead-launch-v1|kernel=holding|status=blocked|reason=block_threads|requested=2048"
             "|limit=%u|grid=1x1x1|block=32x32x2|shared=1024+0|cooperative=no|resident=0"
             "|cluster=none|fix=",
             o.info.max_threads_per_block);
    CHECK_OK(bh_preflight_line(NULL, line, sizeof line));
    bh_error error;
    CHECK_STATUS(bh_last_error(&error), BH_E_LAUNCH);
    CHECK_EQ(error.reason, BH_REASON_BLOCK_THREADS);
    CHECK_EQ(error.requested, 2048);
    CHECK_EQ(error.limit, o.info.max_threads_per_block);
    CHECK_EQ(strncmp(line, wanted, strlen(wanted)), 0);
    CHECK_STR_CONTAINS(line, "%20"); /* the fix, escaped */
    CHECK_OK(bh_device_close(o.device));
}

TEST(names_are_escaped) {
    bh_preflight p = BH_INIT(p);
    char line[BH_LINE_BYTES];
    snprintf(p.kernel, sizeof p.kernel, "a|b\nc%%d e");
    CHECK_OK(bh_preflight_line(&p, line, sizeof line));
    CHECK_STR_CONTAINS(line, "|kernel=a%7Cb%0Ac%25d%20e|status=ok|");
    memset(p.kernel, '|', sizeof p.kernel); /* not even a NUL */
    p.error.requested = p.error.limit = p.resident_blocks = UINT64_MAX;
    p.grid = p.block = p.cluster = (bh_dim){UINT32_MAX, UINT32_MAX, UINT32_MAX};
    p.static_shared = p.dynamic_shared = UINT32_MAX;
    p.error.reason = BH_REASON_COOPERATIVE_UNSUPPORTED;
    CHECK_OK(bh_preflight_line(&p, line, sizeof line));
    p.error.reason = 1000;
    CHECK_OK(bh_preflight_line(&p, line, sizeof line));
    CHECK_STR_CONTAINS(line, "|reason=?|");
    for (uint32_t reason = 0; reason <= BH_REASON_BUFFER_BUSY; reason++)
        CHECK(bh_reason_name(reason)[0] >= 'a');
}

/* What bh_device_limits says a multiprocessor has is an upper bound of what preflight finds on one,
 * and small blocks reach it on the CPU device. */
TEST(preflight_stays_within_what_the_device_says_of_a_multiprocessor) {
    odd o = odd_open();
    const bh_device_info *info = &o.info;
    const bh_device_limits *limits = &o.limits;
    static const char *const names[] = {"nothing", "holding", "bounded"};
    for (int k = 0; k < 3; k++) {
        for (uint32_t threads = 1; threads <= info->max_threads_per_block; threads *= 2) {
            for (uint32_t shared = 0; shared <= limits->shared_per_block_max; shared += 12288) {
                bh_shape shape = {{1, 1, 1}, {threads, 1, 1}, {0, 0, 0}, shared};
                bh_preflight p = preflight(get_kernel(o.module, names[k]), shape, NULL);
                if (p.error.status != BH_OK) continue;
                uint64_t blocks =
                    occupancy(get_kernel(o.module, names[k]), shape).blocks_per_multiprocessor;
                CHECK(blocks <= limits->max_blocks_per_multiprocessor);
                CHECK(blocks * threads <= limits->max_threads_per_multiprocessor);
                CHECK(blocks * (p.static_shared + shared) <= limits->shared_per_multiprocessor);
                CHECK(p.resident_blocks <=
                      (uint64_t)limits->max_blocks_per_multiprocessor * info->multiprocessors);
            }
        }
    }
    bh_occupancy small = occupancy(get_kernel(o.module, "nothing"), BH_GRID(1, 32));
    if (is_cpu(o.device))
        CHECK_EQ(small.blocks_per_multiprocessor, limits->max_blocks_per_multiprocessor);
    CHECK_OK(bh_device_close(o.device));
}
