/* SPDX-License-Identifier: Apache-2.0 */
/* Each loss leaves a report: what it says, how long it is kept, and the files. */
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

#include "../support/support.h"

static char text[65536];

static const char *report_of(bh_device device, uint64_t loss) {
    size_t length = 0, again = 0;
    REQUIRE_OK(bh_device_get_report(device, loss, NULL, 0, &length));
    REQUIRE(length > 0 && length < sizeof text);
    REQUIRE_OK(bh_device_get_report(device, loss, text, sizeof text, &again));
    CHECK_EQ(strlen(text), again);
    return text;
}

TEST(a_fault_is_reported_with_all_that_is_known) {
    rig r = rig_open(0);
    loss_log log;
    loss_log_start(r.device, &log);
    bh_buffer_options tagged = BH_INIT(tagged);
    tagged.tag = "weights";
    bh_buffer x;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U32, 64, &tagged, &x));
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_ticket bad = submit(rig_kernel(&r, "write_then_poke"), BH_GRID(2, 2),
                           BH_ARGS(BH_OUT(x), 3u, NOWHERE), &there);
    CHECK_STATUS(bh_wait(bad, LONG_NS), BH_E_FAULT);
    REQUIRE(loss_log_wait(&log, 1));
    const char *report = report_of(r.device, log.losses[0].number);
    CHECK_STR_CONTAINS(report, "loss 1: a fault (BH_E_FAULT)");
    CHECK_STR_CONTAINS(report, "worker: process ");
    CHECK_STR_CONTAINS(report, "of generation 1");
    CHECK_STR_CONTAINS(report, log.losses[0].message);
    CHECK_STR_CONTAINS(report, "kernel: write_then_poke");
    CHECK_STR_CONTAINS(report, "kernel \"write_then_poke\" (launch ");
    CHECK_STR_CONTAINS(report, "of lane 1, grid 1 x 1 x 1, block 2 x 1 x 1)");
    CHECK_STR_CONTAINS(report, "argument 0: out, buffer of u32, 256 bytes, tag \"weights\"");
    CHECK_STR_CONTAINS(report, "argument 1: 4 bytes: 03 00 00 00 = 3");
    CHECK_STR_CONTAINS(report, "argument 2: 8 bytes: 08 00 00 00 00 00 00 00 = 8");
    CHECK_STR_CONTAINS(report, "lane 0: submitted ");
    CHECK_STR_CONTAINS(report, "lane 1: submitted ");
    CHECK_STR_CONTAINS(report, "suspect buffers: 1\n");
    CHECK_STR_CONTAINS(report, "tag \"weights\": bytes 0 to 256");
    CHECK_STR_CONTAINS(report, "work: 1 failed, ");
    CHECK_STR_CONTAINS(report, "then: ");
    CHECK_STR_CONTAINS(report, "took over after ");
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_killed_worker_is_reported_without_blame) {
    rig r = rig_open(0);
    pid_t worker = health_of(r.device).worker_pid;
    kill_worker(r.device, SIGKILL);
    const char *report = report_of(r.device, 0);
    char process[64];
    snprintf(process, sizeof process, "worker: process %d of generation 1", (int)worker);
    CHECK_STR_CONTAINS(report, "loss 1: a lost worker (BH_E_LOST)");
    CHECK_STR_CONTAINS(report, process);
    CHECK_STR_CONTAINS(report, "to blame: no request");
    CHECK_STR_CONTAINS(report, "suspect buffers: 0");
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_stop_is_reported) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.restart_limit = 1;
    rig r = rig_open_with(&options);
    kill_worker(r.device, SIGKILL);
    REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
    while (health_of(r.device).state != BH_HEALTH_STOPPED) sleep_ms(1);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    uint64_t limit = now_ns() + LONG_NS;
    while (!strstr(report_of(r.device, 2), "the device stopped") && now_ns() < limit) sleep_ms(1);
    CHECK_STR_CONTAINS(report_of(r.device, 0), "then: the device stopped");
    CHECK_OK(bh_device_close(r.device));
}

TEST(the_last_sixteen_are_kept) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    size_t length;
    CHECK_REFUSED(bh_device_get_report(r.device, 0, NULL, 0, &length), BH_E_NOT_FOUND);
    CHECK_STR_CONTAINS(bh_last_message(), "has lost no worker");
    for (int i = 0; i < 18; i++) kill_worker(r.device, SIGKILL);
    CHECK_REFUSED(bh_device_get_report(r.device, 2, NULL, 0, &length), BH_E_NOT_FOUND);
    CHECK_STR_CONTAINS(report_of(r.device, 3), "loss 3:");
    CHECK_STR_CONTAINS(report_of(r.device, 0), "loss 18:");
    CHECK_REFUSED(bh_device_get_report(r.device, 19, NULL, 0, &length), BH_E_NOT_FOUND);
    CHECK_REFUSED(bh_device_get_report(r.device, 18, text, 10, &length), BH_E_INVALID);
    CHECK_REFUSED(bh_device_get_report(r.device, 18, NULL, 10, &length), BH_E_INVALID);
    CHECK_REFUSED(bh_device_get_report(r.device, 18, text, sizeof text, NULL), BH_E_INVALID);
    CHECK_OK(bh_device_close(r.device));
    CHECK_REFUSED(bh_device_get_report(r.device, 18, text, sizeof text, &length), BH_E_INVALID);
}

/* Reports in the folder, and other files; *last gets the name of the newest report. */
static int count_files(const char *folder, char *last, size_t size, int *others) {
    int count = 0;
    DIR *dir = opendir(folder);
    REQUIRE(dir != NULL);
    *others = 0;
    last[0] = '\0';
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strncmp(entry->d_name, "bulkhead-loss-", 14) != 0) {
            *others += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
            continue;
        }
        count++;
        if (strcmp(entry->d_name, last) > 0) snprintf(last, size, "%s", entry->d_name);
    }
    closedir(dir);
    return count;
}

static void check_file(const char *folder, const char *name, const char *expected) {
    static char content[65536];
    char path[1024];
    FILE *file = fopen(test_path(path, sizeof path, "%s/%s", folder, name), "r");
    REQUIRE(file != NULL);
    size_t length = fread(content, 1, sizeof content - 1, file);
    fclose(file);
    content[length] = '\0';
    CHECK_STR_EQ(content, expected);
}

TEST_TIMEOUT(files_are_left_and_old_ones_deleted, 60) {
    char folder[700], last[300];
    int others;
    test_path(folder, sizeof folder, "%s/reports", test_tmp_dir());
    REQUIRE(mkdir(folder, 0700) == 0);
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.report_dir = folder;
    rig r = rig_open_with(&options);
    loss_log log;
    loss_log_start(r.device, &log);
    CHECK_STATUS(run_now(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    REQUIRE(loss_log_wait(&log, 1));
    CHECK_EQ(count_files(folder, last, sizeof last, &others), 1);
    check_file(folder, last, report_of(r.device, 1));
    for (int i = 0; i < 105; i++) {
        char path[1100];
        FILE *old = fopen(test_path(path, sizeof path,
                                    "%s/bulkhead-loss-20200101T000000.%06d-1-0-1.txt", folder, i),
                          "w");
        REQUIRE(old != NULL);
        fclose(old);
    }
    kill_worker(r.device, SIGKILL);
    REQUIRE(loss_log_wait(&log, 2));
    CHECK_EQ(count_files(folder, last, sizeof last, &others), 100);
    CHECK_EQ(others, 0);
    check_file(folder, last, report_of(r.device, 2));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_folder_that_cannot_be_written_is_refused) {
    char folder[700];
    test_path(folder, sizeof folder, "%s/missing", test_tmp_dir());
    bh_device_options options = device_options(0);
    options.report_dir = folder;
    bh_device device;
    bh_error error;
    CHECK_REFUSED(bh_device_open(&options, &device), BH_E_INVALID);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "missing");
}

TEST_TIMEOUT(losses_are_listed_newest_first, 60) {
    enum { LOSSES = BH_LOSS_HISTORY + 3 };
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    loss_log log;
    loss_log_start(r.device, &log);
    bh_loss losses[BH_LOSS_HISTORY + 1], untouched;
    size_t count = 77;
    REQUIRE_OK(bh_device_list_losses(r.device, losses, sizeof *losses, 1, &count));
    CHECK_EQ(count, 0);
    for (int i = 0; i < LOSSES; i++) kill_worker(r.device, SIGKILL);
    REQUIRE(loss_log_wait(&log, LOSSES));
    REQUIRE_OK(bh_device_list_losses(r.device, NULL, 0, 0, &count));
    CHECK_EQ(count, BH_LOSS_HISTORY);
    memset(losses, 0x5a, sizeof losses);
    memset(&untouched, 0x5a, sizeof untouched);
    REQUIRE_OK(
        bh_device_list_losses(r.device, losses, sizeof *losses, BH_LOSS_HISTORY + 1, &count));
    REQUIRE_EQ(count, BH_LOSS_HISTORY);
    struct timespec now;
    REQUIRE(clock_gettime(CLOCK_REALTIME, &now) == 0);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(losses[i].size, sizeof losses[i]);
        CHECK_EQ(losses[i].number, LOSSES - i);
        CHECK_EQ(losses[i].kind, BH_LOSS_LOST);
        CHECK_GT(losses[i].takeover_ns, 0);
        CHECK_LE(losses[i].time_ns, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
        if (i) CHECK_LE(losses[i].time_ns, losses[i - 1].time_ns);
        CHECK_MEM_EQ(&losses[i], &log.losses[LOSSES - 1 - i], sizeof losses[i]);
    }
    CHECK_MEM_EQ(&losses[BH_LOSS_HISTORY], &untouched, sizeof untouched);
    CHECK_REFUSED(bh_device_list_losses(r.device, losses, 4, 1, &count), BH_E_INVALID);
    CHECK_OK(bh_device_close(r.device));
    CHECK_REFUSED(bh_device_list_losses(r.device, losses, sizeof *losses, 1, &count), BH_E_INVALID);
}
