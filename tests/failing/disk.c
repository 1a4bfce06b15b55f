/* SPDX-License-Identifier: Apache-2.0 */
/* Disks that are full or cannot be written: the cache and reports do without, a trace says so. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "../support/support.h"
#include "stand_in.h"

static char disk[600];

/* A disk of this test's own, of 64 KiB. */
static void disk_mount(void) {
    test_path(disk, sizeof disk, "%s/disk", test_tmp_dir());
    REQUIRE(mkdir(disk, 0700) == 0);
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("disk", disk, "tmpfs", 0, "size=65536,mode=700") < 0)
        SKIP("no file system can be mounted: %s", strerror(errno));
}

static void disk_fill(void) {
    char path[700], block[4096] = {1};
    int fd = open(test_path(path, sizeof path, "%s/filler", disk), O_WRONLY | O_CREAT, 0600);
    REQUIRE(fd >= 0);
    while (write(fd, block, sizeof block) > 0) continue;
    close(fd);
}

static void disk_protect(void) {
    REQUIRE(mount(NULL, disk, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
}

static void check_compiles(const char *cache) {
    bh_compile_options options = stand_in_options(cache);
    bh_binary binary;
    bh_cache_info info = BH_INIT(info);
    CHECK_OK(bh_compile("// one", &options, &binary));
    CHECK_OK(bh_binary_release(binary));
    CHECK_OK(bh_compile("// one", &options, &binary)); /* from memory */
    CHECK_OK(bh_binary_release(binary));
    bh_status status = bh_cache_get_info(cache, &info);
    if (status != BH_OK) CHECK_REFUSED_ANY(status);
}

TEST(a_full_disk_keeps_no_results_and_compiles) {
    disk_mount();
    char cache[700];
    REQUIRE(mkdir(test_path(cache, sizeof cache, "%s/cache", disk), 0700) == 0);
    disk_fill();
    check_compiles(cache);
}

TEST(a_folder_that_cannot_be_written_keeps_no_results_and_compiles) {
    disk_mount();
    char cache[700];
    REQUIRE(mkdir(test_path(cache, sizeof cache, "%s/cache", disk), 0700) == 0);
    disk_protect();
    check_compiles(cache);
}

TEST(a_folder_that_cannot_be_made_keeps_no_results_and_compiles) {
    disk_mount();
    char cache[700];
    disk_protect();
    check_compiles(test_path(cache, sizeof cache, "%s/cache", disk));
}

static void check_trace_fails(const char *path) {
    rig r = rig_open(0);
    bh_status status = bh_trace_start(r.device, path);
    if (status == BH_OK) {
        check_device_works(&r);
        status = bh_trace_stop(r.device);
    }
    CHECK_REFUSED(status, BH_E_IO);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_trace_on_a_full_disk_says_so) {
    char path[700];
    disk_mount();
    disk_fill();
    check_trace_fails(test_path(path, sizeof path, "%s/trace", disk));
}

TEST(a_trace_on_a_full_device_says_so) {
    check_trace_fails("/dev/full");
}

TEST(a_loss_on_a_full_disk_is_a_loss) {
    disk_mount();
    disk_fill();
    bh_device_options options = device_options(0);
    options.report_dir = disk;
    rig r = rig_open_with(&options);
    char text[16384];
    size_t length = 0;
    CHECK_STATUS(run_now(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    CHECK_OK(bh_device_get_report(r.device, 0, text, sizeof text, &length));
    CHECK_GT(length, 100);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}
