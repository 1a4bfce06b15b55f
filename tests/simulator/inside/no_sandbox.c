/* SPDX-License-Identifier: Apache-2.0 */
/* In place of src/sandbox/: workers that are fibers of one process are not confined. */
#include "sandbox/files.h"
#include "sandbox/sandbox.h"

int bh__sandbox_calls(bh__sandbox_profile profile) {
    (void)profile;
    return 0;
}

int bh__sandbox_files(const bh__sandbox_path *paths, size_t count) {
    (void)paths, (void)count;
    return 0;
}

void bh__sandbox_limits(bool core_dumps) {
    (void)core_dumps;
}

const char *bh__sandbox_obstacle(void) {
    return 0;
}

const char *bh__sandbox_call_name(int number) {
    (void)number;
    return 0;
}
