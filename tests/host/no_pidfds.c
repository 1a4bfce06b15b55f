/* SPDX-License-Identifier: Apache-2.0 */
/* Host programs where the system has no pidfds: everything works, watched by threads. */
#include <dirent.h>
#include <sys/syscall.h>

#include "../support/sandbox.h"
#include "host.h"

enum { N = 1000 };

static int threads(void) {
    int count = 0;
    DIR *dir = opendir("/proc/self/task");
    REQUIRE(dir);
    for (struct dirent *entry; (entry = readdir(dir));) count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

TEST(workers_are_lost_and_replaced) {
    forbid_pidfds();
    CHECK_EQ(syscall(SYS_pidfd_open, getpid(), 0), -1);
    CHECK_EQ(errno, ENOSYS);
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, N, 7);
    check_device_works(&r);
    loss_log log = {0};
    loss_log_start(r.device, &log);
    wait_standby(r.device);
    CHECK_STATUS(run_now(rig_kernel(&r, "poke"), BH_GRID(1, 1), BH_ARGS(NOWHERE, 1u)), BH_E_FAULT);
    wait_standby(r.device);
    kill_worker(r.device, SIGKILL);
    REQUIRE(loss_log_wait(&log, 2));
    /* A process with a GPU's memory takes long to end: it is gone before anyone knows how. */
    if (is_cpu(r.device)) CHECK(strstr(log.losses[1].message, "signal 9"));
    CHECK(words_are(x, N, 7));
    check_device_works(&r);
    pid_t last = health_of(r.device).worker_pid;
    CHECK_OK(bh_device_close(r.device));
    CHECK(!process_exists(last));
}

/* Once a device is closed, nobody watches any more. */
TEST(nothing_is_left_of_those_who_watched) {
    forbid_pidfds();
    int threads_before = 0;
    unsigned descriptors_before = 0;
    for (int round = 0; round < 4; round++) {
        rig r = rig_open(0);
        wait_standby(r.device);
        kill_worker(r.device, SIGKILL);
        check_device_works(&r);
        CHECK_OK(bh_device_close(r.device));
        if (round == 0) {
            threads_before = threads();
            descriptors_before = open_descriptors();
        }
    }
    CHECK_EQ(threads(), threads_before);
    CHECK_EQ(open_descriptors(), descriptors_before);
}

TEST(a_launch_past_its_deadline_is_ended) {
    forbid_pidfds();
    rig r = rig_open(0);
    bh_buffer flag = flag_alloc(r.device), out = words_filled(r.device, 1, 0);
    bh_launch_options options = BH_INIT(options);
    options.deadline_ns = 100 * MS;
    bh_ticket t = submit(rig_kernel(&r, "wait_then_poke"), BH_GRID(1, 1),
                         BH_ARGS(address_of(flag), BH_INOUT(out), NOWHERE), &options);
    CHECK_STATUS(bh_wait(t, LONG_NS), BH_E_DEADLINE);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(the_doctor_says_so_and_finds_nothing_broken) {
    forbid_pidfds();
    char command[4200], line[600];
    bool said = false;
    test_path(command, sizeof command, "%s/bin/bulkhead doctor", test_build_dir());
    FILE *doctor = popen(command, "r");
    REQUIRE(doctor != NULL);
    while (fgets(line, sizeof line, doctor)) said |= strstr(line, "watched by threads") != NULL;
    CHECK_EQ(pclose(doctor), 0);
    CHECK(said);
}

static int work_for_ever(int pipe) {
    forbid_pidfds();
    rig r = rig_open(0);
    wait_standby(r.device);
    host_tell(pipe, r.device);
    for (;;) check_device_works(&r);
    return 0;
}

TEST(workers_end_with_the_application) {
    host h = host_start(work_for_ever, true);
    REQUIRE(kill(h.pid, SIGKILL) == 0);
    CHECK_EQ(host_end(&h), 128 + SIGKILL);
    host_check_gone(&h);
}

static int reap_everything(int pipe) {
    forbid_pidfds();
    signal(SIGCHLD, SIG_IGN); /* the kernel reaps: nobody learns how a child ended */
    rig r = rig_open(0);
    wait_standby(r.device);
    host_tell(pipe, r.device);
    kill_worker(r.device, SIGKILL);
    check_device_works(&r);
    return bh_device_close(r.device) == BH_OK ? 0 : 1;
}

TEST(children_that_the_program_reaps_are_known_to_be_gone) {
    host h = host_start(reap_everything, true);
    CHECK_EQ(host_end(&h), 0);
    host_check_gone(&h);
}
