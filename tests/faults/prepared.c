/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared launches and questions about fit when workers are lost. */
#include <signal.h>

#include "../support/support.h"

static bh_prepared prepare(bh_kernel kernel, bh_shape shape, bh_args args) {
    bh_prepared p;
    REQUIRE_OK(bh_prepare(kernel, shape, args, NULL, &p));
    return p;
}

static bh_status run_prepared(bh_prepared p) {
    bh_ticket ticket;
    bh_status status = bh_prepared_launch(p, NULL, 0, &ticket);
    return status == BH_OK ? bh_wait(ticket, LONG_NS) : status;
}

TEST(one_survives_takeovers) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer x = words_filled(r.device, 50, 0);
    bh_prepared p = prepare(rig_kernel(&r, "add_one"), BH_GRID(50, 32), BH_ARGS(BH_INOUT(x), 50u));
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OK(run_prepared(p));
        wait_standby(r.device);
        kill_worker(r.device, SIGKILL);
        CHECK_OK(run_prepared(p));
        CHECK(words_are(x, 50, 2 * i + 2));
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(doubt_is_found_at_each_launch) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 50, 0), y = words_filled(r.device, 50, 0);
    bh_prepared read =
        prepare(rig_kernel(&r, "copy_words"), BH_GRID(50, 32), BH_ARGS(BH_IN(x), BH_OUT(y), 50u));
    CHECK_OK(run_prepared(read));
    CHECK_STATUS(run_now(rig_kernel(&r, "write_then_poke"), BH_GRID(50, 32),
                         BH_ARGS(BH_INOUT(x), 50u, NOWHERE)),
                 BH_E_FAULT);
    wait_generation(r.device, 2);
    CHECK(is_suspect(x));
    CHECK_REFUSED(bh_prepared_launch(read, NULL, 0, NULL), BH_E_STALE);
    char line[BH_LINE_BYTES];
    CHECK_OK(bh_preflight_line(NULL, line, sizeof line));
    CHECK_STR_CONTAINS(line, "|kernel=copy_words|status=blocked|reason=suspect|");
    CHECK_REFUSED(bh_launch(rig_kernel(&r, "copy_words"), BH_GRID(50, 32),
                            BH_ARGS(BH_IN(x), BH_OUT(y), 50u), NULL, NULL),
                  BH_E_STALE);
    CHECK_OK(bh_buffer_accept(x));
    CHECK_OK(run_prepared(read));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_quarantined_kernel_is_found_too) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.quarantine_after = 2;
    rig r = rig_open_with(&options);
    bh_kernel kernel = rig_kernel(&r, "poke");
    bh_prepared p = prepare(kernel, BH_GRID(1, 1), BH_ARGS(NOWHERE, 1u));
    for (uint64_t i = 0; i < 2; i++) {
        CHECK_STATUS(run_prepared(p), BH_E_FAULT);
        wait_generation(r.device, i + 2);
    }
    CHECK_REFUSED(bh_prepared_launch(p, NULL, 0, NULL), BH_E_QUARANTINED);
    char line[BH_LINE_BYTES];
    CHECK_OK(bh_preflight_line(NULL, line, sizeof line));
    CHECK_STR_CONTAINS(line, "|kernel=poke|status=blocked|reason=quarantined|requested=2|");
    CHECK_REFUSED(bh_launch(kernel, BH_GRID(1, 1), BH_ARGS(NOWHERE, 1u), NULL, NULL),
                  BH_E_QUARANTINED);
    CHECK_OK(bh_kernel_pardon(kernel));
    uint64_t good = address_of(words_filled(r.device, 1, 0));
    CHECK_OK(launch_changed(p, 0, bh_arg_value(&good, 8)));
    CHECK_OK(run_prepared(p));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_stale_module_is_found_too) {
    bh_device device = open_device();
    bh_module module = load_module(device, ptx_globals);
    bh_buffer x = words_filled(device, 1, 0);
    bh_prepared p = prepare(get_kernel(module, "bump"), BH_GRID(1, 1), BH_ARGS(BH_OUT(x)));
    CHECK_OK(run_prepared(p));
    wait_standby(device);
    kill_worker(device, SIGKILL);
    CHECK_REFUSED(bh_prepared_launch(p, NULL, 0, NULL), BH_E_STALE);
    CHECK_OK(bh_module_accept(module));
    CHECK_OK(run_prepared(p));
    CHECK_EQ(word_read(x, 0), 1);
    CHECK_OK(bh_device_close(device));
}

typedef struct asking {
    rig r;
    _Atomic bool stop;
} asking;

static void ask_or_kill(void *context, unsigned index) {
    asking *a = context;
    if (index == 0) {
        for (int i = 0; i < 3; i++) {
            wait_standby(a->r.device);
            kill_worker(a->r.device, SIGKILL);
        }
        atomic_store(&a->stop, true);
        return;
    }
    bh_kernel kernel = rig_kernel(&a->r, "add_one");
    bh_launch_options options = BH_INIT(options);
    options.flags = BH_LAUNCH_COOPERATIVE;
    for (uint32_t i = 0; !atomic_load(&a->stop); i++) {
        bh_preflight p = BH_INIT(p);
        CHECK_OK(bh_launch_preflight(kernel, BH_GRID(64, 1 + i % 100), NULL, &options, &p));
        CHECK_GT(p.resident_blocks, 0);
    }
}

TEST(questions_outlive_the_worker_that_was_asked) {
    asking a = {.r = rig_open(BH_DEVICE_NO_RESTART_LIMIT)};
    run_threads(3, ask_or_kill, &a);
    check_device_works(&a.r);
    CHECK_OK(bh_device_close(a.r.device));
}
