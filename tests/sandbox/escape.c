/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker that was taken over can reach: each thing is tried inside a real, sandboxed
 * worker. */
#include <errno.h>

#include "../support/support.h"
#include "trial.h"

static const struct {
    const char *name;
    int list, driver;
} expected[] = {
#define EXPECTED(name, list, driver) {#name, list, driver},
    ATTEMPTS(EXPECTED)};

/* Runs it and compares; a loss must be one that names the call. */
static void check_attempt(const trial *t, enum attempt attempt, enum where where, int wanted) {
    char call[64];
    bh_error error;
    int result = trial_run(t, attempt, where);
    bh_last_error(&error);
    snprintf(call, sizeof call, ", %s)", expected[attempt].name);
    if (wanted == FATAL_UNNAMED && result == FATAL) {
        CHECK_STR_CONTAINS(error.message, "signal 31");
    } else if (result != wanted) {
        FAIL("%s on thread %d: %d and not %d: %s", expected[attempt].name, (int)where, result,
             wanted, error.message);
    } else if (wanted == FATAL) {
        CHECK_STR_CONTAINS(error.message, "forbidden system call (number ");
        CHECK_STR_CONTAINS(error.message, call);
    }
}

static void check_all(bool driver) {
    bh_device_options options = trial_options(BH_SANDBOX_DEFAULT);
    trial t = trial_open(&options);
    for (int i = 0; i < ATTEMPT_COUNT; i++) {
        int wanted = driver ? expected[i].driver : expected[i].list;
        if (i == ATTEMPT_open_before && !(t.info.sandbox & BH_CONFINED_FILES)) continue;
        if (wanted != NOT_ASKED) check_attempt(&t, (enum attempt)i, WHERE_LANE, wanted);
    }
    CHECK_OK(bh_device_close(t.device));
}

TEST_TIMEOUT(a_worker_of_the_cpu_device_reaches_nothing, 120) {
    require_sandbox();
    check_all(false);
}

TEST_TIMEOUT(a_worker_with_a_driver_in_it_reaches_no_process_program_or_network, 120) {
    require_filters();
    REQUIRE(setenv(ATTEMPT_AS_DRIVER, "1", 1) == 0);
    check_all(true);
}

/* Also on threads that are older than the sandbox, and on those that are started in it. */
TEST_TIMEOUT(every_thread_is_in_the_sandbox, 60) {
    require_sandbox();
    bh_device_options options = trial_options(BH_SANDBOX_DEFAULT);
    trial t = trial_open(&options);
    for (int where = 0; where < WHERE_COUNT; where++) {
        check_attempt(&t, ATTEMPT_open_file, (enum where)where, EACCES);
        check_attempt(&t, ATTEMPT_socket, (enum where)where, FATAL);
        check_attempt(&t, ATTEMPT_execve, (enum where)where, FATAL);
    }
    CHECK_OK(bh_device_close(t.device));
}

/* What is lost is the worker: the device goes on, the data is there, watchers are told what it
 * was. */
TEST(a_worker_that_tries_is_a_loss_like_any_other) {
    require_filters();
    bh_device_options options = trial_options(BH_SANDBOX_DEFAULT);
    trial t = trial_open(&options);
    bh_buffer x = words_filled(t.device, 1000, 7);
    loss_log log = {0};
    loss_log_start(t.device, &log);
    wait_standby(t.device);
    CHECK_EQ(trial_run(&t, ATTEMPT_ptrace, WHERE_LANE), FATAL);
    REQUIRE(loss_log_wait(&log, 1));
    CHECK_EQ(log.losses[0].kind, BH_LOSS_FAULT);
    CHECK_STR_CONTAINS(log.losses[0].message, "forbidden system call");
    CHECK(words_are(x, 1000, 7));
    CHECK_OK(bh_device_close(t.device));
}
