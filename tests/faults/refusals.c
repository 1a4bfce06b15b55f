/* SPDX-License-Identifier: Apache-2.0 */
/* Launches that are refused, after losses too: preflight and the launch itself give one answer, and
 * the line says what was launched. */
#include <signal.h>

#include "../support/managed.h"

enum { ROUNDS = 2000, KERNELS = 4 };

typedef struct subject {
    bh_kernel kernel;
    bh_args good, bad;
} subject;

typedef struct scene {
    rig r;
    bh_device_limits limits;
    bh_lane open, closed;
    bh_buffer out;
    subject subjects[KERNELS];
} scene;

/* Kernels that may run, one that is quarantined, one whose module is stale. */
static void scene_open(scene *s) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.quarantine_after = 1;
    s->r = rig_open_with(&options);
    s->limits = limits_of(s->r.device);
    s->out = words_filled(s->r.device, 64, 0);
    bh_module globals = load_module(s->r.device, ptx_globals);
    bh_kernel poke = rig_kernel(&s->r, "poke"), bump = get_kernel(globals, "bump");
    CHECK_OK(run_now(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(s->out))));
    CHECK_STATUS(run_now(poke, BH_GRID(1, 1), BH_ARGS(NOWHERE, 1u)), BH_E_FAULT);
    wait_generation(s->r.device, 2);
    s->open = open_lane(s->r.device);
    s->closed = open_lane(s->r.device);
    CHECK_OK(bh_lane_release(s->closed));

    static bh_arg store_args[2], bump_args[1], poke_args[2];
    store_args[0] = bump_args[0] = BH_OUT(s->out);
    store_args[1] = poke_args[1] = bh_arg_value(&(uint32_t){5}, 4);
    poke_args[0] = bh_arg_value(&(uint64_t){NOWHERE}, 8);
    bh_args none = {0}, store = {store_args, 2}, one = {bump_args, 1}, two = {poke_args, 2};
    s->subjects[0] = (subject){rig_kernel(&s->r, "store_word"), store, one};
    s->subjects[1] = (subject){rig_kernel(&s->r, "trap_now"), none, store};
    s->subjects[2] = (subject){poke, two, none};
    s->subjects[3] = (subject){bump, one, store};
}

static uint32_t some_extent(rng *random, uint32_t limit) {
    switch (rng_below(random, 8)) {
    case 0:
        return 0;
    case 1:
        return limit + 1;
    case 2:
        return UINT32_MAX;
    default:
        return 1;
    }
}

static bh_dim some_dim(rng *random, const uint32_t limits[3]) {
    return (bh_dim){some_extent(random, limits[0]), some_extent(random, limits[1]),
                    some_extent(random, limits[2])};
}

static bh_shape some_shape(rng *random, const bh_device_limits *limits) {
    static const uint32_t ones[3] = {1, 1, 1};
    bh_shape shape = {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0};
    if (rng_below(random, 3) == 0) shape.grid = some_dim(random, limits->max_grid);
    if (rng_below(random, 3) == 0) shape.block = some_dim(random, limits->max_block);
    if (rng_below(random, 6) == 0) shape.block = (bh_dim){limits->max_block[0], 2, 1};
    if (rng_below(random, 6) == 0) shape.cluster = some_dim(random, ones);
    if (rng_below(random, 6) == 0) shape.shared_bytes = limits->shared_per_block_max + 1;
    return shape;
}

static bh_launch_options some_options(rng *random, const scene *s) {
    bh_launch_options options = BH_INIT(options);
    if (rng_below(random, 6) == 0) options.flags |= BH_LAUNCH_COOPERATIVE;
    if (rng_below(random, 12) == 0) options.flags |= BH_LAUNCH_PROGRAMMATIC;
    if (rng_below(random, 12) == 0) options.flags |= BH_LAUNCH_PRIORITY;
    if (rng_below(random, 12) == 0) options.priority = 77;
    if (rng_below(random, 12) == 0) options.cluster_policy = rng_below(random, 4);
    if (rng_below(random, 3) == 0) options.lane = s->open;
    if (rng_below(random, 6) == 0) options.lane = s->closed;
    if (rng_below(random, 12) == 0) options.lane = (bh_lane){rng_next(random)};
    return options;
}

/* A line up to what only preflight asks for. */
static void cut(char *line) {
    char *end = strstr(line, "|resident=");
    REQUIRE(end != NULL);
    *end = 0;
}

static void compare(const subject *which, bh_shape shape, const bh_launch_options *options,
                    bool good, int counts[2]) {
    bh_preflight said = BH_INIT(said), in_full = BH_INIT(in_full);
    const bh_args *args = good ? &which->good : &which->bad;
    char before[BH_LINE_BYTES], after[BH_LINE_BYTES];
    REQUIRE_OK(bh_launch_preflight(which->kernel, shape, NULL, options, &said));
    REQUIRE_OK(bh_launch_preflight(which->kernel, shape, args, options, &in_full));
    REQUIRE_OK(bh_preflight_line(&in_full, before, sizeof before));
    bh_ticket ticket;
    bh_status status = bh_launch(which->kernel, shape, *args, options, &ticket);
    counts[said.error.status != BH_OK]++;
    if (said.error.status == BH_OK) CHECK_STATUS(status, good ? BH_OK : BH_E_LAUNCH);
    if (said.error.status != BH_OK) CHECK_STR_EQ(in_full.error.message, said.error.message);
    REQUIRE(status == in_full.error.status);
    if (status == BH_OK) {
        CHECK_OK(bh_wait(ticket, LONG_NS));
        return;
    }
    bh_error error;
    bh_last_error(&error);
    CHECK_EQ(error.reason, in_full.error.reason);
    CHECK_STR_EQ(error.message, in_full.error.message);
    CHECK_STR_EQ(error.fix, in_full.error.fix);
    CHECK_OK(bh_preflight_line(NULL, after, sizeof after));
    cut(before);
    cut(after);
    CHECK_STR_EQ(after, before);
    REQUIRE(strcmp(after, before) == 0);
}

TEST_TIMEOUT(preflight_and_launch_give_one_answer, 120) {
    scene s;
    scene_open(&s);
    rng random = rng_seeded(1307);
    int counts[2] = {0, 0};
    for (int i = 0; i < ROUNDS; i++) {
        const subject *which = &s.subjects[rng_below(&random, KERNELS)];
        bool good = rng_below(&random, 2);
        /* It would fault if it ran. */
        if (which == &s.subjects[1]) good = false;
        bh_shape shape = some_shape(&random, &s.limits);
        bh_launch_options options = some_options(&random, &s);
        compare(which, shape, &options, good, counts);
    }
    CHECK(counts[0] > ROUNDS / 50);
    CHECK(counts[1] > ROUNDS / 2);
    CHECK_OK(bh_device_close(s.r.device));
}

static void check_line(const char *wanted) {
    char line[BH_LINE_BYTES];
    CHECK_OK(bh_preflight_line(NULL, line, sizeof line));
    CHECK_STR_CONTAINS(line, wanted);
}

TEST(the_line_of_a_kernel_that_may_not_run_has_its_shape) {
    scene s;
    scene_open(&s);
    bh_shape shape = {{3, 2, 1}, {32, 1, 1}, {0, 0, 0}, 64};
    CHECK_REFUSED(bh_launch(s.subjects[2].kernel, shape, s.subjects[2].good, NULL, NULL),
                  BH_E_QUARANTINED);
    check_line("|reason=quarantined|requested=1|limit=0|grid=3x2x1|block=32x1x1|shared=0+64|");
    CHECK_REFUSED(bh_launch(s.subjects[3].kernel, shape, s.subjects[3].good, NULL, NULL),
                  BH_E_STALE);
    check_line("|reason=module_stale|requested=0|limit=0|grid=3x2x1|block=32x1x1|shared=0+64|");
    CHECK_OK(bh_device_close(s.r.device));
}

TEST(a_mapped_buffer_is_no_full_queue) {
    rig r = rig_open(0);
    made m = managed_made(r.device, 1024, 0);
    bh_kernel kernel = rig_kernel(&r, "add_one");
    bh_args args = BH_ARGS(BH_INOUT(m.buffer), 1024u);
    bh_prepared prepared;
    CHECK_OK(bh_prepare(kernel, BH_GRID(1024, 64), args, NULL, &prepared));
    void *words;
    CHECK_OK(bh_managed_map(m.buffer, 0, 4096, BH_MAP_READ | BH_MAP_WRITE, &words));
    bh_launch_options options = BH_INIT(options);
    options.flags = BH_SUBMIT_NO_BLOCK;
    CHECK_REFUSED(bh_launch(kernel, BH_GRID(1024, 64), args, &options, NULL), BH_E_BUSY);
    check_line("|reason=buffer_busy|requested=0|limit=0|grid=16x1x1|block=64x1x1|");
    CHECK_REFUSED(bh_prepared_launch(prepared, NULL, 0, NULL), BH_E_BUSY);
    check_line("|reason=buffer_busy|requested=0|limit=0|grid=16x1x1|block=64x1x1|");
    CHECK_OK(bh_managed_unmap(words, 4096));
    CHECK_OK(bh_prepared_launch(prepared, NULL, 0, NULL));
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_OK(bh_device_close(r.device));
}

TEST(preflight_sees_a_suspect_buffer_among_the_arguments) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 8, 1), y = words_filled(r.device, 8, 2);
    bh_use use = {.buffer = x, .access = BH_ACCESS_INOUT};
    bh_launch_options options = BH_INIT(options);
    options.also = &use;
    options.also_count = 1;
    CHECK_STATUS(run_with(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS, &options),
                 BH_E_FAULT);
    wait_generation(r.device, 2);
    REQUIRE(is_suspect(x));
    bh_kernel copy = rig_kernel(&r, "copy_words");
    bh_args args = BH_ARGS(BH_IN(x), BH_OUT(y), 8u), back = BH_ARGS(BH_IN(y), BH_OUT(x), 8u);
    bh_preflight p = BH_INIT(p);
    uint64_t before = counters_of(r.device).stale_refusals;
    CHECK_OK(bh_launch_preflight(copy, BH_GRID(8, 8), &args, NULL, &p));
    CHECK_EQ(p.error.status, BH_E_STALE);
    CHECK_EQ(p.error.reason, BH_REASON_SUSPECT);
    CHECK_EQ(counters_of(r.device).stale_refusals, before); /* nothing was refused */
    CHECK_REFUSED(bh_launch(copy, BH_GRID(8, 8), args, NULL, NULL), BH_E_STALE);
    bh_error error;
    bh_last_error(&error);
    CHECK_STR_EQ(error.message, p.error.message);
    CHECK_OK(bh_launch_preflight(copy, BH_GRID(8, 8), &back, NULL, &p)); /* which overwrites it */
    CHECK_OK(p.error.status);
    CHECK_OK(run_now(copy, BH_GRID(8, 8), back));
    CHECK_OK(bh_launch_preflight(copy, BH_GRID(8, 8), &args, NULL, &p));
    CHECK_OK(p.error.status);
    CHECK_OK(bh_device_close(r.device));
}
