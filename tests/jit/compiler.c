/* SPDX-License-Identifier: Apache-2.0 */
/* The process that makes native code, if LLVM in it is taken over, crashes or hangs: what it can
 * reach, and that kernels are interpreted then. */
#include "support/native.h"

/* A module is loaded by a device whose compiler has tests/jit/library/mad.c for LLVM. Returns what
 * is said of its kernel; the device has gone on. */
static bh_kernel_info load_with(const char *madness) {
    char from[4400], to[4400];
    const char *folder = folder_with_worker();
    test_path(from, sizeof from, "%s/bin/bulkhead-compiler", test_build_dir());
    snprintf(to, sizeof to, "%s/bulkhead-compiler", folder);
    copy_file(from, to);
    test_path(from, sizeof from, "%s/tests/jit/libbulkhead-jit.so", test_build_dir());
    snprintf(to, sizeof to, "%s/libbulkhead-jit.so", folder);
    copy_file(from, to);
    setenv("BULKHEAD_TEST_MAD", madness, 1);
    bh_device_options options = options_for(BH_EXECUTE_JIT);
    options.worker_dir = folder;
    rig r = rig_open_with(&options);
    bh_kernel_info info = settled(rig_kernel(&r, "iota"));
    if (strstr(info.executor_note, "build with sanitizers")) SKIP("%s", info.executor_note);
    CHECK_EQ(info.executor, BH_EXECUTOR_INTERPRETER);
    check_iota(&r, 5);
    CHECK_EQ(counters_of(r.device).losses, 0);
    CHECK_EQ(counters_of(r.device).kernels_compiled, 0);
    CHECK_OK(bh_device_close(r.device));
    return info;
}

TEST(llvm_can_open_and_make_no_file) {
    CHECK_STR_EQ(load_with("files").executor_note, "opened:");
}

TEST(llvm_can_make_no_memory_executable) {
    CHECK_STR_EQ(load_with("code").executor_note, "executable: ");
}

TEST(llvm_can_start_no_program_or_process_and_has_no_network) {
    static const char *const calls[] = {"program", "process", "socket"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        CHECK_STR_CONTAINS(load_with(calls[i]).executor_note, "Bad system call");
}

TEST(an_llvm_that_crashes_is_an_error_of_its_kernel) {
    CHECK_STR_CONTAINS(load_with("crash").executor_note, "Segmentation fault");
}

TEST_TIMEOUT(an_llvm_that_hangs_is_ended, 60) {
    uint64_t began = now_ns();
    CHECK_STR_CONTAINS(load_with("hangs").executor_note, "timed out");
    CHECK_LT(now_ns() - began, 40000 * MS);
}

TEST(llvm_can_take_so_much_memory_and_no_more) {
    unsigned mib = 0;
    bh_kernel_info info = load_with("memory");
    REQUIRE_EQ(sscanf(info.executor_note, "took %u MiB", &mib), 1);
    CHECK_LT(mib, 4097);
}

TEST(code_that_begins_behind_its_end_is_not_taken) {
    CHECK_STR_CONTAINS(load_with("lies").executor_note, "is not valid");
}
