/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"

#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../support/support.h"

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry attempt(.param .u32 mark, .param .u32 number,\n"
                          "                        .param .u32 place) {\n    ret;\n}\n";

bh_device_options trial_options(uint32_t sandbox) {
    static char folder[4096];
    bh_device_options options = BH_INIT(options);
    options.device = "cpu";
    options.flags = BH_DEVICE_NO_RESTART_LIMIT;
    options.quarantine_after = UINT32_MAX;
    options.sandbox = sandbox;
    options.worker_dir = test_path(folder, sizeof folder, "%s/tests/sandbox", test_build_dir());
    return options;
}

trial trial_open(const bh_device_options *options) {
    if (strcmp(test_device(), "cpu") != 0) SKIP("the workers that try are of the CPU device");
    trial t = {.info = BH_INIT(t.info)};
    REQUIRE_OK(bh_device_open(options, &t.device));
    REQUIRE_OK(bh_device_get_info(t.device, &t.info));
    t.kernel = get_kernel(load_module(t.device, ptx), "attempt");
    return t;
}

int trial_run(const trial *t, enum attempt attempt, enum where where) {
    bh_error error;
    bh_status status = run_now(t->kernel, BH_GRID(1, 1),
                               BH_ARGS(ATTEMPT_MARK, (uint32_t)attempt, (uint32_t)where));
    bh_last_error(&error);
    if (status == BH_E_FAULT) return FATAL;
    CHECK_EQ(status, BH_E_LAUNCH);
    return error.device_code;
}

void require_filters(void) {
    uint32_t action = SECCOMP_RET_TRAP;
    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) != 0)
        SKIP("system calls cannot be filtered here");
}

void require_sandbox(void) {
    require_filters();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP("sanitizers need more than the list of what is allowed");
#endif
}
