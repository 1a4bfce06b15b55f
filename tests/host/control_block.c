/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that workers only read cannot be written by them, whatever they do with the descriptors
 * that they are given; and none can reach what another one writes. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "../support/sandbox.h"
#include "host.h"

enum { PAGE = 4096, MAX_AREAS = 8 };

/* This process's descriptor of a memory file, which is what workers are sent. -1: there is none. */
static int descriptor_of(const char *name) {
    DIR *dir = opendir("/proc/self/fd");
    int found = -1;
    REQUIRE(dir);
    for (struct dirent *entry; found < 0 && (entry = readdir(dir));) {
        char path[300], target[300];
        ssize_t length = readlink(test_path(path, sizeof path, "/proc/self/fd/%s", entry->d_name),
                                  target, sizeof target - 1);
        if (length <= 0) continue;
        target[length] = 0;
        if (strstr(target, name)) found = atoi(entry->d_name);
    }
    closedir(dir);
    return found;
}

static void check_unmappable(int fd) {
    CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    void *reader = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    REQUIRE(reader != MAP_FAILED);
    CHECK_EQ(mprotect(reader, PAGE, PROT_READ | PROT_WRITE), -1);
    CHECK_EQ(madvise(reader, PAGE, MADV_REMOVE), -1);
    munmap(reader, PAGE);
}

static void check_unwritable(int fd) {
    const int holes = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    uint64_t word = 0;
    check_unmappable(fd);
    CHECK_EQ(pwrite(fd, &word, sizeof word, 0), -1);
    CHECK_EQ(write(fd, &word, sizeof word), -1);
    CHECK_EQ(fallocate(fd, holes, 0, PAGE), -1);
    CHECK_EQ(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, PAGE), -1);
    CHECK_EQ(ftruncate(fd, 0), -1);
    CHECK_EQ(ftruncate(fd, (off_t)1 << 30), -1);
    CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
}

/* Opened again, it can be written no more than before. */
static void check_read_only(const char *name) {
    char path[64];
    int fd = descriptor_of(name);
    REQUIRE(fd >= 0);
    check_unwritable(fd);
    test_path(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK_EQ(open(path, O_RDWR | O_TRUNC | O_CLOEXEC), -1);
    int again = open(path, O_RDWR | O_CLOEXEC);
    if (again >= 0) check_unwritable(again);
    if (again >= 0) close(again);
}

TEST(nobody_else_can_write_the_front) {
    rig r = rig_open(0);
    check_read_only("memfd:bulkhead-control");
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(nobody_else_can_write_a_module_that_later_workers_load) {
    rig r = rig_open(0);
    check_read_only("memfd:bulkhead-image");
    kill_worker(r.device, SIGKILL);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(nobody_else_can_write_the_steps_of_a_sequence) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 64, 1);
    bh_sequence sequence;
    bh_sequence_options options = BH_INIT(options);
    REQUIRE_OK(bh_sequence_begin(r.device, &options, &sequence));
    REQUIRE_OK(bh_sequence_launch(sequence, rig_kernel(&r, "add_one"), BH_GRID(64, 64),
                                  BH_ARGS(BH_INOUT(x), 64u), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(sequence));
    check_read_only("memfd:bulkhead-sequence");
    CHECK_OK(bh_device_close(r.device));
}

/* ---- areas ---- */

typedef struct mapped {
    unsigned count;
    unsigned long inodes[MAX_AREAS];
    bool writable;
} mapped;

/* What of this name a process has mapped. */
static mapped mapped_by(pid_t pid, const char *name) {
    char path[64], line[600];
    mapped all = {0};
    FILE *maps = fopen(test_path(path, sizeof path, "/proc/%d/maps", (int)pid), "r");
    REQUIRE(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL) {
        char access[8];
        unsigned long inode;
        if (!strstr(line, name) || sscanf(line, "%*s %7s %*s %*s %lu", access, &inode) != 2)
            continue;
        all.writable |= access[1] == 'w';
        bool known = false;
        for (unsigned i = 0; i < all.count; i++) known |= all.inodes[i] == inode;
        if (!known && all.count < MAX_AREAS) all.inodes[all.count++] = inode;
    }
    fclose(maps);
    return all;
}

static unsigned long area_of(pid_t pid) {
    mapped areas = mapped_by(pid, "memfd:bulkhead-area");
    CHECK_EQ(areas.count, 1u);
    mapped front = mapped_by(pid, "memfd:bulkhead-control");
    CHECK_EQ(front.count, 1u);
    CHECK(!front.writable);
    return areas.inodes[0];
}

TEST(each_worker_has_an_area_of_its_own) {
    rig r = rig_open(0);
    wait_standby(r.device);
    bh_health health = health_of(r.device);
    CHECK_NE(area_of(health.worker_pid), area_of(health.standby_pids[0]));
    /* Whoever has the descriptor can write: the workers alone have it. */
    CHECK_EQ(descriptor_of("memfd:bulkhead-area"), -1);
    CHECK_OK(bh_device_close(r.device));
}

/* Losses enough that each place was used before. */
TEST(no_worker_gets_an_area_that_another_had) {
    enum { LOSSES = 20 };
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    unsigned long seen[LOSSES];
    for (unsigned i = 0; i < LOSSES; i++) {
        wait_standby(r.device);
        bh_health health = health_of(r.device);
        seen[i] = area_of(health.worker_pid);
        for (unsigned k = 0; k < i; k++) CHECK_NE(seen[i], seen[k]);
        kill_worker(r.device, SIGKILL);
        wait_generation(r.device, health.generation + 1);
    }
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* ---- systems that cannot seal a file against later writers ---- */

TEST(without_that_seal_descriptors_are_handed_out_for_reading_only) {
    forbid_write_seals();
    rig r = rig_open(0);
    int fd = descriptor_of("memfd:bulkhead-control");
    struct stat info;
    uint64_t word = 0;
    REQUIRE(fd >= 0);
    CHECK_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    CHECK_EQ(fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    CHECK_EQ(fstat(fd, &info), 0);
    CHECK_EQ(info.st_mode & 0777, 0400u);
    check_unmappable(fd);
    CHECK_EQ(pwrite(fd, &word, sizeof word, 0), -1);
    wait_standby(r.device);
    kill_worker(r.device, SIGKILL);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}
