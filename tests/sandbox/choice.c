/* SPDX-License-Identifier: Apache-2.0 */
/* Turning the sandbox on and off, asking for core dumps, and systems that have no sandbox. */
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "../support/sandbox.h"
#include "../support/support.h"
#include "trial.h"

enum { LANDLOCK_CREATE_RULESET = 444 };

static void check_is_off(const bh_device_options *options) {
    trial t = trial_open(options);
    CHECK_EQ(t.info.sandbox, 0);
    CHECK_STR_CONTAINS(t.info.sandbox_lack, "turned off");
    CHECK_EQ(trial_run(&t, ATTEMPT_open_file, WHERE_LANE), SUCCEEDS);
    CHECK_EQ(trial_run(&t, ATTEMPT_socket, WHERE_LANE), SUCCEEDS);
    CHECK_OK(bh_device_close(t.device));
}

static void check_is_on(const bh_device_options *options) {
    trial t = trial_open(options);
    CHECK(t.info.sandbox & BH_CONFINED_LIST);
    CHECK_EQ(trial_run(&t, ATTEMPT_open_file, WHERE_LANE), EACCES);
    CHECK_OK(bh_device_close(t.device));
}

TEST(the_program_turns_it_off) {
    bh_device_options options = trial_options(BH_SANDBOX_OFF);
    check_is_off(&options);
}

TEST(the_user_turns_it_off_where_the_program_does_not_mind) {
    require_sandbox();
    bh_device_options options = trial_options(BH_SANDBOX_DEFAULT);
    REQUIRE(setenv("BULKHEAD_SANDBOX", "off", 1) == 0);
    check_is_off(&options);
    options.sandbox = BH_SANDBOX_ON;
    if (syscall(LANDLOCK_CREATE_RULESET, NULL, 0, 1) > 0) check_is_on(&options);
}

TEST(the_user_requires_it) {
    require_sandbox();
    bh_device_options options = trial_options(BH_SANDBOX_DEFAULT);
    REQUIRE(setenv("BULKHEAD_SANDBOX", "on", 1) == 0);
    if (syscall(LANDLOCK_CREATE_RULESET, NULL, 0, 1) > 0) check_is_on(&options);
    options.sandbox = BH_SANDBOX_OFF;
    check_is_off(&options);
}

TEST(words_that_mean_nothing_are_refused) {
    bh_device device;
    bh_device_options options = trial_options(BH_SANDBOX_ON + 1);
    CHECK_REFUSED(bh_device_open(&options, &device), BH_E_INVALID);
    options.sandbox = BH_SANDBOX_DEFAULT;
    REQUIRE(setenv("BULKHEAD_SANDBOX", "of", 1) == 0);
    CHECK_REFUSED(bh_device_open(&options, &device), BH_E_INVALID);
    REQUIRE(setenv("BULKHEAD_SANDBOX", "", 1) == 0);
    REQUIRE_OK(bh_device_open(&options, &device));
    CHECK_OK(bh_device_close(device));
}

/* The device works, says what is missing, and is not opened where that is required. */
static void check_lack(const char *what, uint32_t missing) {
    bh_device device;
    bh_error error;
    bh_device_options options = trial_options(BH_SANDBOX_DEFAULT);
    trial t = trial_open(&options);
    CHECK_EQ(t.info.sandbox & missing, 0);
    CHECK_STR_CONTAINS(t.info.sandbox_lack, what);
    CHECK(words_are(words_filled(t.device, 100, 7), 100, 7));
    CHECK_OK(bh_device_close(t.device));
    options.sandbox = BH_SANDBOX_ON;
    CHECK_REFUSED(bh_device_open(&options, &device), BH_E_UNSUPPORTED);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, what);
}

TEST(a_system_that_filters_no_calls) {
    require_sandbox();
    forbid_calls((const long[]){SYS_seccomp}, 1);
    check_lack("seccomp is not available", BH_CONFINED_CALLS | BH_CONFINED_LIST);
}

TEST(a_system_without_landlock) {
    require_sandbox();
    forbid_calls((const long[]){LANDLOCK_CREATE_RULESET}, 1);
    check_lack("Landlock is not available", BH_CONFINED_FILES);
}

TEST(a_profiler_is_let_be) {
    require_sandbox();
    char library[4096];
    test_path(library, sizeof library, "%s/tests/nvtx/libprofiler.so", test_build_dir());
    REQUIRE(setenv("NVTX_INJECTION64_PATH", library, 1) == 0);
    check_lack("NVTX_INJECTION64_PATH", BH_CONFINED_CALLS | BH_CONFINED_FILES);
}

/* As compute-sanitizer does it: the worker, and nothing else, is to have the library. */
TEST(a_preloaded_profiler_is_let_be) {
    require_sandbox();
    char folder[600], library[700], original[600];
    test_path(original, sizeof original, "%s/tests/nvtx/libprofiler.so", test_build_dir());
    REQUIRE(mkdir(test_path(folder, sizeof folder, "%s/ToolsInjection", test_tmp_dir()), 0700) ==
            0);
    test_path(library, sizeof library, "%s/library.so", folder);
    REQUIRE(symlink(original, library) == 0);
    REQUIRE(setenv("LD_PRELOAD", library, 1) == 0);
    check_lack("LD_PRELOAD", BH_CONFINED_CALLS | BH_CONFINED_FILES);
}

static bool doctor_says(const char *first, const char *second) {
    char command[4200], line[600];
    bool said[2] = {false, false};
    test_path(command, sizeof command, "%s/bin/bulkhead doctor", test_build_dir());
    FILE *doctor = popen(command, "r");
    REQUIRE(doctor != NULL);
    while (fgets(line, sizeof line, doctor)) {
        said[0] |= strstr(line, first) != NULL;
        said[1] |= strstr(line, second) != NULL;
    }
    CHECK_EQ(pclose(doctor), 0);
    return said[0] && said[1];
}

TEST(the_doctor_tells_what_is_missing) {
    require_sandbox();
    forbid_calls((const long[]){SYS_seccomp, LANDLOCK_CREATE_RULESET}, 2);
    CHECK(doctor_says("warn  no seccomp", "warn  no Landlock"));
    CHECK(doctor_says("warn  device cpu: its worker is not fully confined: ", "Fix: "));
}

TEST(the_doctor_tells_what_is_there) {
    require_sandbox();
    CHECK(doctor_says("ok    system calls of workers and compilers can be filtered",
                      "device cpu: its worker is "));
}

TEST(cores_are_left_only_where_they_are_asked_for) {
    require_sandbox(); /* sanitizers leave none either */
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_CORE, &limit) != 0) getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_cur <= 1)
        SKIP("core dumps are not allowed here at all");
    bh_device_options options = trial_options(BH_SANDBOX_DEFAULT);
    trial t = trial_open(&options);
    CHECK_EQ(trial_run(&t, ATTEMPT_dump_core, WHERE_LANE), EPERM);
    CHECK_OK(bh_device_close(t.device));
    options.flags |= BH_DEVICE_CORE_DUMPS;
    t = trial_open(&options);
    CHECK_EQ(trial_run(&t, ATTEMPT_dump_core, WHERE_LANE), SUCCEEDS);
    CHECK_OK(bh_device_close(t.device));
}
