/* SPDX-License-Identifier: Apache-2.0 */
/* Who is blamed: one busy lane and four, kernels that fault and workers that die for other
 * reasons. */
#include <signal.h>

#include "../support/support.h"

enum { LANES = 4, N = 64 };

TEST(a_worker_killed_by_a_fault_signal_with_one_busy_lane_blames_its_kernel) {
    rig r = rig_open(0);
    loss_log log;
    loss_log_start(r.device, &log);
    gate g = gate_close(&r, open_lane(r.device), 0);
    kill_worker(r.device, crash_signal());
    bh_error error;
    CHECK_STATUS(bh_wait(g.ticket, LONG_NS), BH_E_FAULT);
    CHECK_STATUS(bh_ticket_error(g.ticket, &error), BH_E_FAULT);
    CHECK_EQ(error.certain, 1);
    CHECK_STR_EQ(error.kernel, "gate");
    REQUIRE(loss_log_wait(&log, 1));
    CHECK_EQ(log.losses[0].cause, BH_E_FAULT);
    CHECK_EQ(log.losses[0].certain, 1);
    CHECK_EQ(log.losses[0].failed, 1);
    CHECK(is_suspect(g.mark));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_worker_killed_by_a_fault_signal_with_four_busy_lanes_names_all_candidates) {
    rig r = rig_open(0);
    loss_log log;
    bh_buffer intact = words_counting(r.device, N, 7), x[LANES], flags[LANES], after[LANES];
    bh_ticket first[LANES], second[LANES];
    static const char *const names[LANES] = {"gate", "endless", "wait_then_poke", "gate"};
    loss_log_start(r.device, &log);
    for (int i = 0; i < LANES; i++) {
        bh_launch_options there = on_lane(open_lane(r.device), 0);
        bh_kernel kernel = rig_kernel(&r, names[i]);
        x[i] = words_filled(r.device, N, 1);
        after[i] = words_filled(r.device, N, 2);
        flags[i] = flag_alloc(r.device);
        uint64_t flag = address_of(flags[i]);
        first[i] =
            i == 1   ? submit(kernel, BH_GRID(1, 1), BH_ARGS(flag, BH_INOUT(x[i])), &there)
            : i == 2 ? submit(kernel, BH_GRID(1, 1), BH_ARGS(flag, BH_INOUT(x[i]), NOWHERE), &there)
                     : submit(kernel, BH_GRID(1, 1), BH_ARGS(flag, BH_INOUT(x[i]), 1u), &there);
        flag_wait_begun(flags[i]);
        second[i] = submit(rig_kernel(&r, "iota"), BH_GRID(N, 64),
                           BH_ARGS(BH_OUT(after[i]), 5u, (uint32_t)N), &there);
    }
    kill_worker(r.device, crash_signal());
    for (int i = 0; i < LANES; i++) {
        bh_error error;
        CHECK_STATUS(bh_wait(first[i], LONG_NS), BH_E_FAULT);
        CHECK_STATUS(bh_ticket_error(first[i], &error), BH_E_FAULT);
        CHECK_EQ(error.certain, 0);
        CHECK_STR_EQ(error.kernel, names[i]);
        CHECK_STR_CONTAINS(error.message, "gate");
        CHECK_STR_CONTAINS(error.message, "endless");
        char own[80];
        snprintf(own, sizeof own,
                 "(launch %llu of lane %d, grid 1 x 1 x 1, block 1 x 1 x 1), perhaps: ",
                 (unsigned long long)first[i].sequence, i + 1);
        CHECK_STR_CONTAINS(error.message, own);
        CHECK_STR_CONTAINS(error.message, "wait_then_poke");
        CHECK(is_suspect(x[i]));
        bh_status status = bh_wait(second[i], LONG_NS);
        CHECK(status == BH_OK || status == BH_E_LOST);
        CHECK_EQ(is_suspect(after[i]), status != BH_OK);
        if (status == BH_OK) CHECK(words_count(after[i], N, 5));
    }
    REQUIRE(loss_log_wait(&log, 1));
    CHECK_EQ(log.losses[0].certain, 0);
    CHECK_EQ(log.losses[0].failed, LANES);
    CHECK(words_count(intact, N, 7));
    bh_kernel_info info = BH_INIT(info);
    CHECK_OK(bh_kernel_get_info(rig_kernel(&r, "gate"), &info));
    CHECK_EQ(info.faults, 0); /* only certain ones count */
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* A real fault on one of four busy lanes. A device that knows the culprit says so; one that does
 * not names every candidate. */
static void check_one_of_four(uint32_t flags) {
    rig r = rig_open(0);
    bh_buffer intact = words_counting(r.device, 5000, 7), flag = flag_alloc(r.device);
    bh_buffer broken = words_filled(r.device, N, 1);
    bh_lane faulty = open_lane(r.device);
    bh_launch_options on_faulty = on_lane(faulty, 0);
    gate gates[LANES - 1];
    bh_buffer chain[LANES - 1];
    bh_ticket last[LANES - 1];
    for (int i = 0; i < LANES - 1; i++) {
        bh_lane lane = open_lane(r.device);
        bh_launch_options there = on_lane(lane, flags);
        gates[i] = gate_close(&r, lane, flags);
        chain[i] = words_filled(r.device, N, 0);
        last[i] = submit(rig_kernel(&r, "iota"), BH_GRID(N, 64),
                         BH_ARGS(BH_OUT(chain[i]), (uint32_t)i, (uint32_t)N), &there);
    }
    bh_ticket fault = submit(rig_kernel(&r, "wait_then_poke"), BH_GRID(1, 1),
                             BH_ARGS(address_of(flag), BH_INOUT(broken), NOWHERE), &on_faulty);
    flag_wait_begun(flag);
    flag_raise(flag);
    bh_error error;
    CHECK_STATUS(bh_wait(fault, LONG_NS), BH_E_FAULT);
    CHECK_STATUS(bh_ticket_error(fault, &error), BH_E_FAULT);
    bool certain = error.certain != 0;
    if (!has_queues(r.device)) /* an interpreter knows */
        CHECK(certain);
    wait_generation(r.device, 2);
    for (int i = 0; i < LANES - 1; i++)
        gate_open(&gates[i]); /* those sent again wait for this once more */
    for (int i = 0; i < LANES - 1; i++) {
        bh_status status = bh_wait(gates[i].ticket, LONG_NS);
        if (!certain)
            CHECK_EQ(status, BH_E_FAULT);
        else
            CHECK_EQ(status, flags & BH_SUBMIT_IDEMPOTENT ? BH_OK : BH_E_LOST);
        CHECK_EQ(is_suspect(gates[i].mark), status != BH_OK);
        if (status == BH_OK) CHECK_EQ(word_read(gates[i].mark, 0), gates[i].value);
        status = bh_wait(last[i], LONG_NS);
        CHECK(status == BH_OK || (status == BH_E_LOST && !(flags & BH_SUBMIT_IDEMPOTENT)));
        if (status == BH_OK) CHECK(words_count(chain[i], N, (uint32_t)i));
    }
    CHECK(is_suspect(broken));
    CHECK(words_count(intact, 5000, 7));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_fault_on_one_of_four_busy_lanes) {
    check_one_of_four(0);
}

TEST(a_fault_on_one_of_four_busy_lanes_with_work_that_may_be_repeated) {
    check_one_of_four(BH_SUBMIT_IDEMPOTENT);
}

TEST(a_deadline_on_one_of_four_busy_lanes_blames_that_one) {
    rig r = rig_open(0);
    gate gates[LANES - 1];
    for (int i = 0; i < LANES - 1; i++) gates[i] = gate_close(&r, open_lane(r.device), 0);
    bh_buffer flag = flag_alloc(r.device), x = words_filled(r.device, 1, 0);
    bh_launch_options options = on_lane(open_lane(r.device), 0);
    options.deadline_ns = 50 * MS;
    bh_ticket slow = submit(rig_kernel(&r, "endless"), BH_GRID(1, 1),
                            BH_ARGS(address_of(flag), BH_INOUT(x)), &options);
    bh_error error;
    CHECK_STATUS(bh_wait(slow, LONG_NS), BH_E_DEADLINE);
    CHECK_STATUS(bh_ticket_error(slow, &error), BH_E_DEADLINE);
    CHECK_EQ(error.certain, 1);
    CHECK_STR_EQ(error.kernel, "endless");
    for (int i = 0; i < LANES - 1; i++) {
        CHECK_STATUS(bh_wait(gates[i].ticket, LONG_NS), BH_E_LOST);
        CHECK(is_suspect(gates[i].mark));
    }
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_worker_killed_from_outside_blames_nobody) {
    rig r = rig_open(0);
    loss_log log;
    loss_log_start(r.device, &log);
    gate gates[2] = {gate_close(&r, open_lane(r.device), 0),
                     gate_close(&r, open_lane(r.device), 0)};
    kill_worker(r.device, SIGKILL);
    for (int i = 0; i < 2; i++) {
        bh_error error;
        CHECK_STATUS(bh_wait(gates[i].ticket, LONG_NS), BH_E_LOST);
        CHECK_STATUS(bh_ticket_error(gates[i].ticket, &error), BH_E_LOST);
        CHECK(error.message[0] != '\0' && error.fix[0] != '\0');
        CHECK_EQ(error.generation, 1);
    }
    REQUIRE(loss_log_wait(&log, 1));
    CHECK_EQ(log.losses[0].cause, BH_E_LOST);
    CHECK_EQ(log.losses[0].failed, 0);
    CHECK_EQ(log.losses[0].lost, 2);
    bh_kernel_info info = BH_INIT(info);
    CHECK_OK(bh_kernel_get_info(rig_kernel(&r, "gate"), &info));
    CHECK_EQ(info.faults, 0);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(an_idle_worker_that_dies_hurts_nothing) {
    rig r = rig_open(0);
    loss_log log;
    bh_buffer x = words_counting(r.device, N, 1);
    loss_log_start(r.device, &log);
    wait_standby(r.device);
    kill_worker(r.device, crash_signal());
    REQUIRE(loss_log_wait(&log, 1));
    CHECK_EQ(log.losses[0].failed + log.losses[0].lost + log.losses[0].stale, 0);
    CHECK_EQ(log.losses[0].suspect_buffers, 0);
    CHECK_EQ(log.losses[0].from_standby, 1);
    CHECK(words_count(x, N, 1));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* The kernel watches the first word of a write that is far from done when it appears: a transfer
 * cannot make a kernel fault, so it is neither blamed nor harmed. */
TEST(a_write_in_flight_is_not_blamed_for_a_kernels_fault) {
    enum { WORDS = 16 << 20 };
    rig r = rig_open(0);
    bh_launch_options there = on_lane(open_lane(r.device), 0);
    bh_buffer watched = words_filled(r.device, WORDS, 0), broken = words_filled(r.device, 1, 0);
    uint32_t *words = malloc((size_t)WORDS * 4);
    REQUIRE(words != NULL);
    for (uint32_t i = 0; i < WORDS; i++) words[i] = i + 1;
    bh_ticket fault = submit(rig_kernel(&r, "wait_then_poke"), BH_GRID(1, 1),
                             BH_ARGS(address_of(watched), BH_INOUT(broken), NOWHERE), &there);
    flag_wait_begun(watched);
    CHECK_OK(bh_buffer_write(watched, 0, words, (uint64_t)WORDS * 4));
    bh_error error;
    CHECK_STATUS(bh_wait(fault, LONG_NS), BH_E_FAULT);
    CHECK_STATUS(bh_ticket_error(fault, &error), BH_E_FAULT);
    CHECK_EQ(error.certain, 1);
    CHECK_STR_EQ(error.kernel, "wait_then_poke");
    CHECK(words_count(watched, WORDS, 1));
    CHECK(is_suspect(broken));
    free(words);
    CHECK_OK(bh_device_close(r.device));
}
