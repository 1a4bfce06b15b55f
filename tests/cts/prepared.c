/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared launches: repeated, changed, kept alive, given up. */
#include "../support/support.h"

static bh_prepared prepare(bh_kernel kernel, bh_shape shape, bh_args args,
                           const bh_launch_options *options) {
    bh_prepared p;
    REQUIRE_OK(bh_prepare(kernel, shape, args, options, &p));
    return p;
}

static bh_status run_prepared(bh_prepared p) {
    bh_ticket ticket;
    bh_status status = bh_prepared_launch(p, NULL, 0, &ticket);
    return status == BH_OK ? bh_wait(ticket, LONG_NS) : status;
}

TEST(one_is_launched_again_and_again) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 100, 0);
    bh_prepared p =
        prepare(rig_kernel(&r, "add_one"), BH_GRID(100, 32), BH_ARGS(BH_INOUT(x), 100u), NULL);
    for (int i = 0; i < 5000; i++)
        CHECK_OK(bh_prepared_launch(p, NULL, 0, NULL)); /* more than a queue */
    CHECK(words_are(x, 100, 5000));
    CHECK_OK(bh_prepared_release(p));
    CHECK_OK(bh_device_close(r.device));
}

TEST(arguments_are_changed) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 10, 0), y = words_filled(r.device, 10, 0);
    bh_prepared p =
        prepare(rig_kernel(&r, "iota"), BH_GRID(10, 32), BH_ARGS(BH_OUT(x), 5u, 10u), NULL);
    CHECK_OK(run_prepared(p));
    CHECK(words_count(x, 10, 5));
    uint32_t base = 100;
    CHECK_OK(launch_changed(p, 1, bh_arg_value(&base, sizeof base)));
    CHECK(words_count(x, 10, 100));
    CHECK_OK(launch_changed(p, 0, BH_OUT(y))); /* the number stays changed */
    CHECK(words_count(x, 10, 100));
    CHECK(words_count(y, 10, 100));
    base = 200;
    bh_change changes[2] = {{.index = 0, .arg = BH_OUT(x)},
                            {.index = 1, .arg = bh_arg_data(&base, sizeof base)}};
    bh_ticket ticket;
    CHECK_OK(bh_prepared_launch(p, changes, 2, &ticket));
    base = 0; /* was copied */
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK(words_count(x, 10, 200));
    CHECK_OK(bh_prepared_launch(p, NULL, 0, NULL)); /* they stay */
    CHECK(words_count(x, 10, 200));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_wrong_change_changes_nothing) {
    rig r = rig_open(0);
    rig other = rig_open(BH_DEVICE_NO_STANDBY);
    bh_buffer x = words_filled(r.device, 10, 0), y = words_filled(r.device, 10, 7);
    bh_buffer foreign = words_filled(other.device, 10, 0), gone = words_filled(r.device, 10, 0);
    CHECK_OK(bh_buffer_release(gone));
    bh_prepared p =
        prepare(rig_kernel(&r, "iota"), BH_GRID(10, 32), BH_ARGS(BH_OUT(x), 5u, 10u), NULL);
    uint64_t wide = 9;
    uint32_t narrow = 9;
    CHECK_REFUSED(launch_changed(p, 1, bh_arg_value(&wide, 8)), BH_E_LAUNCH);
    CHECK_REFUSED(launch_changed(p, 1, BH_IN(y)), BH_E_LAUNCH);
    CHECK_REFUSED(launch_changed(p, 3, bh_arg_value(&narrow, 4)), BH_E_INVALID);
    CHECK_REFUSED(launch_changed(p, UINT32_MAX, bh_arg_value(&narrow, 4)), BH_E_INVALID);
    CHECK_REFUSED(launch_changed(p, 0, BH_OUT(gone)), BH_E_INVALID);
    CHECK_REFUSED(launch_changed(p, 0, BH_OUT(foreign)), BH_E_INVALID);
    CHECK_REFUSED(launch_changed(p, 0, BH_OUT_AT_LEAST(y, 41)), BH_E_LAUNCH);
    bh_change changes[3] = {{.index = 0, .arg = BH_OUT(y)},
                            {.index = 1, .arg = bh_arg_value(&narrow, 4)},
                            {.index = 2, .arg = bh_arg_value(&wide, 8)}};
    CHECK_REFUSED(bh_prepared_launch(p, changes, 3, NULL), BH_E_LAUNCH);
    CHECK_REFUSED(bh_prepared_launch(p, NULL, 1, NULL), BH_E_INVALID);
    CHECK_OK(run_prepared(p));
    CHECK(words_count(x, 10, 5));
    CHECK(words_are(y, 10, 7));
    CHECK_OK(bh_device_close(other.device));
    CHECK_OK(bh_device_close(r.device));
}

TEST(what_is_wrong_is_refused_when_it_is_prepared) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 10, 0);
    bh_kernel kernel = rig_kernel(&r, "add_one");
    bh_prepared p = {77};
    CHECK_REFUSED(
        bh_prepare(kernel, BH_SHAPE(0, 0, 0, 1, 1, 1), BH_ARGS(BH_INOUT(x), 10u), NULL, &p),
        BH_E_LAUNCH);
    CHECK_REFUSED(bh_prepare(kernel, BH_GRID(10, 2048), BH_ARGS(BH_INOUT(x), 10u), NULL, &p),
                  BH_E_LAUNCH);
    CHECK_REFUSED(bh_prepare(kernel, BH_GRID(10, 32), BH_ARGS(BH_INOUT(x)), NULL, &p), BH_E_LAUNCH);
    CHECK_REFUSED(bh_prepare(kernel, BH_GRID(10, 32), BH_ARGS(BH_INOUT(x), 10u), NULL, NULL),
                  BH_E_INVALID);
    CHECK_EQ(p.id, 77);
    CHECK_OK(bh_device_close(r.device));
}

TEST(it_keeps_its_buffers) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 1000, 1), out = words_filled(r.device, 1000, 0);
    bh_prepared p = prepare(rig_kernel(&r, "copy_words"), BH_GRID(1000, 64),
                            BH_ARGS(BH_IN(x), BH_OUT(out), 1000u), NULL);
    uint64_t before = memory_of(r.device).buffers;
    CHECK_OK(bh_buffer_release(x));
    CHECK_EQ(memory_of(r.device).buffers, before);
    bh_buffer others[8]; /* what would be put in its place */
    for (int i = 0; i < 8; i++) others[i] = words_filled(r.device, 1000, 50);
    CHECK_OK(run_prepared(p));
    CHECK(words_are(out, 1000, 1));
    CHECK_OK(launch_changed(p, 0, BH_IN(others[3])));
    CHECK(words_are(out, 1000, 50));
    CHECK_EQ(memory_of(r.device).buffers, before + 7);
    CHECK_OK(bh_buffer_release(others[3]));
    CHECK_OK(bh_prepared_launch(p, NULL, 0, NULL));
    CHECK_OK(bh_prepared_release(p)); /* while it may be running */
    CHECK(words_are(out, 1000, 50));
    CHECK_EQ(memory_of(r.device).buffers, before + 6);
    CHECK_OK(bh_device_close(r.device));
}

TEST(invalid_handles_are_recognised) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 10, 0);
    bh_kernel kernel = rig_kernel(&r, "add_one");
    bh_prepared p = prepare(kernel, BH_GRID(10, 32), BH_ARGS(BH_INOUT(x), 10u), NULL);
    bh_prepared wrong[] = {{0}, {1}, {kernel.id}, {x.id}, {p.id + 1}, {p.id ^ 1ull << 40}, {~0ull}};
    uint32_t n = 10;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_REFUSED(bh_prepared_launch(wrong[i], NULL, 0, NULL), BH_E_INVALID);
        CHECK_REFUSED(launch_changed(wrong[i], 1, bh_arg_value(&n, 4)), BH_E_INVALID);
        CHECK_REFUSED(bh_prepared_release(wrong[i]), BH_E_INVALID);
    }
    CHECK_REFUSED(bh_launch((bh_kernel){p.id}, BH_GRID(1, 1), BH_NO_ARGS, NULL, NULL),
                  BH_E_INVALID);
    CHECK_OK(bh_prepared_release(p));
    CHECK_REFUSED(bh_prepared_launch(p, NULL, 0, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_prepared_release(p), BH_E_INVALID);
    p = prepare(kernel, BH_GRID(10, 32), BH_ARGS(BH_INOUT(x), 10u), NULL);
    CHECK_OK(bh_device_close(r.device)); /* which closes it too */
    CHECK_REFUSED(bh_prepared_launch(p, NULL, 0, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_prepared_release(p), BH_E_INVALID);
}

TEST(a_module_unloaded_is_a_clear_error) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 10, 0);
    bh_prepared p =
        prepare(rig_kernel(&r, "add_one"), BH_GRID(10, 32), BH_ARGS(BH_INOUT(x), 10u), NULL);
    CHECK_OK(run_prepared(p));
    CHECK_OK(bh_module_release(r.module));
    bh_error error;
    uint32_t n = 10;
    CHECK_REFUSED(bh_prepared_launch(p, NULL, 0, NULL), BH_E_INVALID);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "add_one");
    CHECK_STR_CONTAINS(error.message, "its module was released");
    CHECK_REFUSED(launch_changed(p, 1, bh_arg_value(&n, 4)), BH_E_INVALID);
    r.module = load_module(r.device, ptx_basic);
    CHECK_REFUSED(bh_prepared_launch(p, NULL, 0, NULL),
                  BH_E_INVALID); /* another one of that name */
    CHECK_OK(bh_prepared_release(p));
    CHECK(words_are(x, 10, 1));
    CHECK_OK(bh_device_close(r.device));
}

TEST(options_hold_for_every_launch) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_buffer x = words_filled(r.device, 10, 0);
    gate g = gate_close(&r, lane, 0);
    bh_launch_options options = on_lane(lane, BH_SUBMIT_NO_BLOCK);
    bh_prepared p =
        prepare(rig_kernel(&r, "add_one"), BH_GRID(10, 32), BH_ARGS(BH_INOUT(x), 10u), &options);
    bh_ticket ticket = {0};
    bh_status status = BH_OK;
    uint32_t launched = 0;
    while ((status = bh_prepared_launch(p, NULL, 0, &ticket)) == BH_OK && launched < 100000)
        launched++;
    CHECK_REFUSED(status, BH_E_BUSY);
    char line[BH_LINE_BYTES];
    CHECK_OK(bh_preflight_line(NULL, line, sizeof line));
    CHECK_STR_CONTAINS(line, "|kernel=add_one|status=blocked|reason=queue_full|");
    CHECK_STATUS(bh_wait(ticket, 0), BH_E_BUSY);
    gate_open(&g);
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK(words_are(x, 10, launched));
    CHECK_OK(bh_lane_release(lane));
    CHECK_REFUSED(bh_prepared_launch(p, NULL, 0, NULL), BH_E_INVALID);
    CHECK_OK(bh_device_close(r.device));
}

TEST(buffers_and_null_pointers_change_places) {
    rig r = rig_open(0);
    bh_buffer in = words_filled(r.device, 1, 9), out = words_filled(r.device, 1, 9);
    bh_prepared p =
        prepare(rig_kernel(&r, "null_or"), BH_GRID(1, 1), BH_ARGS(BH_NULL, BH_OUT(out)), NULL);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(run_prepared(p));
        CHECK_EQ(word_read(out, 0), 1);
        CHECK_OK(launch_changed(p, 0, BH_IN(in)));
        CHECK_EQ(word_read(out, 0), 0);
        CHECK_OK(launch_changed(p, 0, BH_NULL));
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(inputs_that_become_outputs_too_are_writable) {
    rig r = rig_open(0);
    bh_buffer x = words_counting(r.device, 10, 3), y = words_filled(r.device, 10, 0);
    bh_prepared p = prepare(rig_kernel(&r, "copy_words"), BH_GRID(10, 32),
                            BH_ARGS(BH_IN(x), BH_OUT(y), 10u), NULL);
    CHECK_OK(run_prepared(p));
    CHECK(words_count(y, 10, 3));
    CHECK_OK(launch_changed(p, 1, BH_INOUT(x)));
    CHECK(words_count(x, 10, 3));
    CHECK_OK(launch_changed(p, 1, BH_OUT(y)));
    CHECK(words_count(y, 10, 3));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_cooperative_one_is_checked_once) {
    rig r = rig_open(0);
    bh_device_info info = BH_INIT(info);
    REQUIRE_OK(bh_device_get_info(r.device, &info));
    if (!info.cooperative) SKIP("this device has no cooperative launches");
    bh_buffer x = words_filled(r.device, 64, 0);
    bh_launch_options options = BH_INIT(options);
    options.flags = BH_LAUNCH_COOPERATIVE;
    bh_prepared p, no = {5};
    p = prepare(rig_kernel(&r, "add_one"), BH_GRID(64, 32), BH_ARGS(BH_INOUT(x), 64u), &options);
    for (int i = 0; i < 20; i++) CHECK_OK(bh_prepared_launch(p, NULL, 0, NULL));
    CHECK(words_are(x, 64, 20));
    CHECK_REFUSED(bh_prepare(rig_kernel(&r, "add_one"), BH_SHAPE(10000000, 1, 1, 32, 1, 1),
                             BH_ARGS(BH_INOUT(x), 64u), &options, &no),
                  BH_E_RESIDENCY);
    CHECK_OK(bh_device_close(r.device));
}

typedef struct crowd {
    bh_prepared p;
    bh_buffer sums[8];
} crowd;

static void launch_many(void *context, unsigned index) {
    crowd *c = context;
    for (int i = 0; i < 500; i++) {
        bh_change mine = {.index = 0, .arg = BH_INOUT(c->sums[index])};
        CHECK_OK(bh_prepared_launch(c->p, &mine, 1, NULL));
    }
}

TEST(threads_share_one) {
    rig r = rig_open(0);
    crowd c;
    for (int i = 0; i < 8; i++) c.sums[i] = words_filled(r.device, 32, 0);
    c.p = prepare(rig_kernel(&r, "add_one"), BH_GRID(32, 32), BH_ARGS(BH_INOUT(c.sums[0]), 32u),
                  NULL);
    run_threads(4, launch_many, &c);
    for (int i = 0; i < 4; i++) CHECK(words_are(c.sums[i], 32, 500));
    CHECK_OK(bh_device_close(r.device));
}
