/* SPDX-License-Identifier: Apache-2.0 */
/* A log function that makes calls. Messages of a loss come from the thread that sees to the
 * device's workers: what waits for that thread is refused there, and the device goes on. */
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
    bh_health health = BH_INIT(health);
    CHECK_OK(bh_device_get_health(device, &health));
    bh_lane lane;
    bh_status answer = bh_lane_open(device, NULL, &lane);
    if (answer == BH_OK)
        CHECK_OK(bh_lane_release(lane));
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

/* ---- what the log says ---- */

static char lines[1 << 16];
static size_t lines_used;
static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;

static void collect(void *context, int32_t level, const char *text) {
    (void)context;
    pthread_mutex_lock(&lines_lock);
    size_t room = sizeof lines - lines_used;
    int some = snprintf(lines + lines_used, room, "%d %s\n", (int)level, text);
    if (some > 0 && (size_t)some < room) lines_used += (size_t)some;
    pthread_mutex_unlock(&lines_lock);
}

/* Checks that a line of this level with this text was logged. The process ID replaces %d. */
static void check_line(int level, const char *format, int pid) {
    char wanted[128], *line = NULL;
    int length = snprintf(wanted, sizeof wanted, "%d ", level);
    if (pid)
        snprintf(wanted + length, sizeof wanted - (size_t)length, format, pid);
    else
        snprintf(wanted + length, sizeof wanted - (size_t)length, "%s", format);
    pthread_mutex_lock(&lines_lock);
    line = strstr(lines, wanted);
    pthread_mutex_unlock(&lines_lock);
    if (!line) FAIL("the log has no line \"%s\"", wanted);
}

TEST(the_log_tells_of_devices_workers_and_orders) {
    REQUIRE_OK(bh_log_set(collect, NULL, BH_LOG_DEBUG));
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    wait_standby(r.device);
    bh_health before = health_of(r.device);
    int worker = (int)before.worker_pid, standby = (int)before.standby_pids[0];
    kill_worker(r.device, SIGKILL);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
    REQUIRE_OK(bh_log_set(NULL, NULL, 0));

    check_line(BH_LOG_DEBUG, "worker %d started in area ", worker);
    check_line(BH_LOG_DEBUG, "worker %d started in area ", standby);
    check_line(BH_LOG_INFO, "device ", 0);
    check_line(BH_LOG_INFO, "module ", 0);
    check_line(BH_LOG_DEBUG, "order ", 0);
    check_line(BH_LOG_INFO, "standby ready: 1 of 1, next to take over is worker %d", standby);
    check_line(BH_LOG_INFO, "worker %d took over as generation 2 after ", standby);
    check_line(BH_LOG_WARNING, "worker of generation 1 lost and replaced in ", 0);
    check_line(BH_LOG_DEBUG, "worker %d reaped", worker);
    check_line(BH_LOG_DEBUG, "worker %d reaped", standby);
    char sent[64], loaded[64];
    CHECK_STR_CONTAINS(lines, " opened in compartment ");
    CHECK_STR_CONTAINS(lines, " closed in compartment ");
    CHECK_STR_CONTAINS(lines, " us, from standby\n");
    CHECK_STR_CONTAINS(lines,
                       test_path(sent, sizeof sent, "(MODULE_LOAD) sent to worker %d\n", standby));
    CHECK_STR_CONTAINS(lines, test_path(loaded, sizeof loaded, " loaded by worker %d: ", worker));
}
