/* SPDX-License-Identifier: Apache-2.0 */
/* Times of single requests through losses: what completed keeps its times, what was lost has
 * none. */
#include <signal.h>

#include "../support/support.h"

enum { N = 64 };

static bh_ticket_info info_of(bh_ticket ticket) {
    bh_ticket_info info = BH_INIT(info);
    REQUIRE_OK(bh_ticket_get_info(ticket, &info));
    return info;
}

TEST(times_survive_the_worker_that_wrote_them) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_launch_options with = on_lane(lane, BH_SUBMIT_TIMED);
    bh_kernel add = rig_kernel(&r, "add_one");
    bh_buffer x = words_filled(r.device, N, 0);
    bh_ticket before[3];
    for (int i = 0; i < 3; i++) {
        before[i] = submit(add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(x), (uint32_t)N), &with);
        REQUIRE_OK(bh_wait(before[i], LONG_NS));
    }
    bh_ticket_info first = info_of(before[0]);
    CHECK_EQ(first.timed, 1);
    /* The second one was never asked about before the loss; its worker has had time to write it. */
    sleep_ms(30);
    bh_ticket fault = submit(rig_kernel(&r, "poke"), BH_GRID(1, 1), BH_ARGS(NOWHERE, 1u), &with);
    CHECK_STATUS(bh_wait(fault, LONG_NS), BH_E_FAULT);
    bh_ticket_info lost = info_of(fault);
    CHECK_STATUS(lost.status, BH_E_FAULT);
    CHECK_EQ(lost.timed, 0);
    CHECK_EQ(lost.generation, 1);
    CHECK_EQ(lost.device_ns, 0);
    bh_ticket after = submit(add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(x), (uint32_t)N), &with);
    CHECK_OK(bh_wait(after, LONG_NS));
    CHECK_EQ(info_of(after).timed, 1);
    CHECK_EQ(info_of(after).generation, 2);
    bh_ticket_info again = info_of(before[0]), second = info_of(before[1]);
    CHECK(memcmp(&first, &again, sizeof first) == 0);
    CHECK_EQ(second.timed, 1);
    CHECK_EQ(second.generation, 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(what_runs_again_has_the_times_of_the_worker_that_completed_it) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    gate g = gate_close(&r, lane, BH_SUBMIT_TIMED | BH_SUBMIT_IDEMPOTENT);
    kill_worker(r.device, SIGKILL);
    wait_generation(r.device, 2);
    gate_open(&g);
    bh_status status = bh_wait(g.ticket, LONG_NS);
    bh_ticket_info info = info_of(g.ticket);
    CHECK_STATUS(info.status, status);
    CHECK_OK(status);
    CHECK_EQ(info.timed, 1);
    CHECK_EQ(info.generation, 2);
    CHECK_OK(bh_device_close(r.device));
}
