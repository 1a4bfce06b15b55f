/* SPDX-License-Identifier: Apache-2.0 */
/* A log function that makes calls. Messages of a loss come from the thread that sees to the device's
 * workers: what waits for that thread is refused there, and the device goes on. */
#include <signal.h>

#include "../support/support.h"

static bh_device device;
static _Atomic(int) messages, refused_lanes, refused_closes, surprises;
static _Atomic(bool) calling;

static void make_calls(void *context, int32_t level, const char *text) {
    (void)context;
    (void)level;
    (void)text;
    if (!atomic_load(&calling)) return;
    atomic_fetch_add(&messages, 1);
    bh_device_status status = BH_INIT(status);
    CHECK_OK(bh_device_get_status(device, &status));
    bh_lane lane;
    bh_status answer = bh_lane_open(device, &lane);
    if (answer == BH_OK)
        CHECK_OK(bh_lane_close(lane));
    else if (answer == BH_E_BUSY)
        atomic_fetch_add(&refused_lanes, 1);
    else
        atomic_fetch_add(&surprises, 1);
    if (answer == BH_E_BUSY && bh_device_close(device) == BH_E_INVALID)
        atomic_fetch_add(&refused_closes, 1);
}

TEST(a_log_function_makes_calls_while_a_worker_is_replaced) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    device = r.device;
    REQUIRE_OK(bh_log_set(make_calls, NULL, BH_LOG_DEBUG));
    wait_standby(r.device);
    atomic_store(&calling, true);
    kill_worker(r.device, SIGKILL);
    check_device_works(&r);
    CHECK_STATUS(run_now(rig_kernel(&r, "poke"), BH_GRID(1, 1), BH_ARGS(NOWHERE, 1u)), BH_E_FAULT);
    check_device_works(&r);
    atomic_store(&calling, false);
    CHECK_GT(atomic_load(&messages), 0);
    CHECK_GT(atomic_load(&refused_lanes), 0);
    CHECK_EQ(atomic_load(&refused_closes), atomic_load(&refused_lanes));
    CHECK_EQ(atomic_load(&surprises), 0);
    CHECK_OK(bh_device_close(r.device));
    CHECK_OK(bh_log_set(NULL, NULL, 0));
}
