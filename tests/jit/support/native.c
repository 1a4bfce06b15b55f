/* SPDX-License-Identifier: Apache-2.0 */
/* Devices with executors, kernels that wait for code, folders with a compiler of the test's. */
#include "native.h"

#include <fcntl.h>
#include <sys/stat.h>

bh_device_options options_for(uint32_t executor) {
    bh_device_options options = device_options(0);
    options.device = "cpu";
    options.executor = executor;
    return options;
}

bh_kernel_info info_of(bh_kernel kernel) {
    bh_kernel_info info = BH_INIT(info);
    REQUIRE_OK(bh_kernel_get_info(kernel, &info));
    return info;
}

bh_kernel_info settled(bh_kernel kernel) {
    for (uint64_t until = now_ns() + LONG_NS; now_ns() < until; sleep_ms(1)) {
        bh_kernel_info info = info_of(kernel);
        if (info.executor == BH_EXECUTOR_JIT || info.executor_note[0]) return info;
    }
    return info_of(kernel);
}

void need_native(bh_kernel kernel) {
    bh_kernel_info info = settled(kernel);
    if (info.executor != BH_EXECUTOR_JIT && strstr(info.executor_note, "no native code"))
        SKIP("%s", info.executor_note);
    CHECK_EQ(info.executor, BH_EXECUTOR_JIT);
}

void check_iota(const rig *r, uint32_t first) {
    bh_buffer x = words_alloc(r->device, 256);
    REQUIRE_OK(run_now(rig_kernel(r, "iota"), BH_GRID(256, 64), BH_ARGS(BH_OUT(x), first, 256u)));
    CHECK(words_count(x, 256, first));
}

const char *folder_with_worker(void) {
    static char folder[4200];
    char path[4400], real[4400];
    static int made;
    snprintf(folder, sizeof folder, "%s/programs-%d", getenv("BULKHEAD_CACHE_DIR"), made++);
    (void)mkdir(getenv("BULKHEAD_CACHE_DIR"), 0700);
    REQUIRE(mkdir(folder, 0700) == 0);
    snprintf(real, sizeof real, "%s/bin/bulkhead-worker-cpu", getenv("BULKHEAD_BUILD_DIR"));
    snprintf(path, sizeof path, "%s/bulkhead-worker-cpu", folder);
    REQUIRE(symlink(real, path) == 0);
    return folder;
}

static void write_program(const char *path, const void *data, size_t bytes) {
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    REQUIRE(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
    close(fd);
}

const char *folder_with_script(const char *script) {
    const char *folder = folder_with_worker();
    char path[4400];
    snprintf(path, sizeof path, "%s/bulkhead-compiler", folder);
    write_program(path, script, strlen(script));
    return folder;
}

void copy_file(const char *from, const char *to) {
    size_t bytes;
    char *data = test_read_file(from, &bytes);
    write_program(to, data, bytes);
    free(data);
}
