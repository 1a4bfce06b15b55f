/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing the worker program of a device under its hands: installations that break. */
#ifndef BULKHEAD_TESTS_SUPPORT_WORKER_PROGRAM_H
#define BULKHEAD_TESTS_SUPPORT_WORKER_PROGRAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

/* The worker program in `folder` is this one from now on. */
static inline void place_worker(const char *folder, const char *program) {
    char path[800], draft[810];
    test_path(path, sizeof path, "%s/bulkhead-worker-%s", folder, test_device());
    test_path(draft, sizeof draft, "%s.new", path);
    REQUIRE(symlink(program, draft) == 0 && rename(draft, path) == 0);
}

static inline void place_real_worker(const char *folder) {
    char real[800], built[700];
    const char *given = getenv("BULKHEAD_WORKER_DIR");
    if (!given) given = test_path(built, sizeof built, "%s/bin", test_build_dir());
    place_worker(folder,
                 test_path(real, sizeof real, "%s/bulkhead-worker-%s", given, test_device()));
}

/* Options for a device whose worker program is in a folder of the test, which it may replace. */
static inline bh_device_options replaceable_worker(char *folder, size_t size) {
    if (strcmp(test_device(), "cpu") != 0) SKIP("the worker program is replaced by name");
    test_path(folder, size, "%s/workers-XXXXXX", test_tmp_dir());
    REQUIRE(mkdtemp(folder) != NULL);
    place_real_worker(folder);
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.worker_dir = folder;
    return options;
}

#endif
