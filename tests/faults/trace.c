/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: what was submitted is in the file, in order, with what became of it; whatever is lost
 * meanwhile. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/support.h"

enum { MAX = 4000 };

typedef struct listing {
    char lines[MAX][160];
    int count;
    char device[MAX][160];
    int device_count;
} listing;

/* What tests/support/trace.py makes of the file; ends the test if that finds something wrong. */
static listing *read_trace(const char *path, const char *flag) {
    static listing all;
    char command[1200], line[160];
    memset(&all, 0, sizeof all);
    if (system("command -v python3 >/dev/null 2>&1") != 0) SKIP("python3 is not here");
    snprintf(command, sizeof command, "python3 '%s/tests/support/trace.py' %s '%s' 2>&1",
             test_source_dir(), flag, path);
    FILE *from = popen(command, "r");
    REQUIRE(from != NULL);
    while (fgets(line, sizeof line, from)) {
        line[strcspn(line, "\n")] = 0;
        bool device = strncmp(line, "device ", 7) == 0;
        REQUIRE(all.count < MAX && all.device_count < MAX);
        strcpy(device ? all.device[all.device_count++] : all.lines[all.count++], line);
    }
    int status = pclose(from);
    if (status != 0) {
        for (int i = 0; i < all.count; i++) FAIL("%s", all.lines[i]);
        REQUIRE_EQ(status, 0);
    }
    return &all;
}

static bool has_event(const listing *all, const char *start) {
    for (int i = 0; i < all->device_count; i++)
        if (strncmp(all->device[i], start, strlen(start)) == 0) return true;
    return false;
}

static const char *trace_path(char *path, size_t size) {
    return test_path(path, size, "%s/trace.json", test_tmp_dir());
}

static uint32_t index_of(bh_device device, bh_lane lane) {
    bh_lane_counters counts = BH_INIT(counts);
    REQUIRE_OK(bh_lane_get_counters(device, lane, &counts));
    return counts.index;
}

TEST_TIMEOUT(every_request_is_there_in_order_with_a_fault_in_between, 60) {
    enum { LANES = 3, EACH = 40 };
    char path[300], expected[LANES][EACH + 2][160];
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    wait_standby(r.device);
    REQUIRE_OK(bh_trace_start(r.device, trace_path(path, sizeof path)));
    bh_lane lanes[LANES];
    bh_buffer x[LANES];
    bh_ticket tickets[LANES][EACH + 1];
    uint32_t data[16] = {0};
    for (int k = 0; k < LANES; k++) {
        lanes[k] = open_lane(r.device);
        x[k] = words_alloc(r.device, 256);
        REQUIRE_OK(bh_submit_write(lanes[k], x[k], 0, data, sizeof data, &tickets[k][EACH]));
    }
    bh_module other;
    REQUIRE_OK(bh_module_load(r.device, ptx_factor, strlen(ptx_factor), &other));
    for (int i = 0; i < EACH; i++) {
        for (int k = 0; k < LANES; k++) {
            bh_launch_options there = on_lane(lanes[k], 0);
            if (k == 1 && i == EACH / 2)
                tickets[k][i] =
                    submit(rig_kernel(&r, "poke"), BH_GRID(1, 1), BH_ARGS(NOWHERE, 1u), &there);
            else
                tickets[k][i] = submit(rig_kernel(&r, "iota"), BH_GRID(256, 64),
                                       BH_ARGS(BH_OUT(x[k]), (uint32_t)i, 256u), &there);
        }
    }
    for (int k = 0; k < LANES; k++) REQUIRE_OK(bh_lane_sync(lanes[k], LONG_NS));
    wait_generation(r.device, 2);
    for (int k = 0; k < LANES; k++) {
        unsigned lane = index_of(r.device, lanes[k]);
        snprintf(expected[k][0], 160, "%u %llu write BH_OK 0 0 64", lane,
                 (unsigned long long)tickets[k][EACH].sequence);
        for (int i = 0; i < EACH; i++) {
            bool poke = k == 1 && i == EACH / 2;
            snprintf(expected[k][i + 1], 160, "%u %llu %s %s %s %s 0", lane,
                     (unsigned long long)tickets[k][i].sequence, poke ? "poke" : "iota",
                     bh_status_name(bh_wait(tickets[k][i], 0)), poke ? "1x1x1" : "4x1x1",
                     poke ? "1x1x1" : "64x1x1");
        }
    }
    REQUIRE_OK(bh_trace_stop(r.device));
    CHECK_STATUS(bh_wait(tickets[1][EACH / 2], 0), BH_E_FAULT);
    const listing *all = read_trace(path, "");
    CHECK_EQ(all->count, LANES * (EACH + 1));
    int next[LANES] = {0};
    for (int i = 0; i < all->count; i++) {
        int k = 0;
        while (k < LANES && (unsigned)atoi(all->lines[i]) != (unsigned)atoi(expected[k][0])) k++;
        REQUIRE(k < LANES);
        REQUIRE(next[k] <= EACH);
        CHECK_STR_EQ(all->lines[i], expected[k][next[k]]);
        next[k]++;
    }
    CHECK(has_event(all, "device worker lost generation text"));
    CHECK(has_event(all, "device takeover generation text"));
    CHECK(has_event(all, "device module loaded bytes"));
    CHECK(has_event(all, "device memory grown reserved"));
    CHECK(!has_event(all, "device dropped"));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST_TIMEOUT(replays_and_dispatches_are_there, 60) {
    char path[300], expected[160];
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 64, 0);
    bh_sequence_options named = BH_INIT(named);
    named.name = "three";
    bh_sequence seq;
    REQUIRE_OK(bh_sequence_begin(r.device, &named, &seq));
    for (int i = 0; i < 3; i++)
        REQUIRE_OK(bh_sequence_launch(seq, rig_kernel(&r, "add_one"), BH_GRID(64, 64),
                                      BH_ARGS(BH_INOUT(x), 64u), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    REQUIRE_OK(bh_trace_start(r.device, trace_path(path, sizeof path)));
    bh_submit_options options = BH_INIT(options);
    options.repeat = 5;
    bh_ticket ticket;
    REQUIRE_OK(bh_sequence_submit(seq, &options, &ticket));
    REQUIRE_OK(bh_wait(ticket, LONG_NS));
    uint32_t words[64] = {0}, n = 64; /* as much as a place in a pack */
    REQUIRE_OK(bh_dispatch(rig_kernel(&r, "add_one"), BH_GRID(64, 64),
                           BH_ARGS(BH_HOST_INOUT(words, sizeof words), n), NULL));
    CHECK_OK(bh_sequence_release(seq)); /* its name outlives it */
    REQUIRE_OK(bh_trace_stop(r.device));
    const listing *all = read_trace(path, "");
    REQUIRE_EQ(all->count, 4);
    snprintf(expected, sizeof expected, "0 %llu three BH_OK 0 0 0 3 5",
             (unsigned long long)ticket.sequence);
    CHECK_STR_EQ(all->lines[0], expected);
    CHECK_STR_CONTAINS(all->lines[1], " write BH_OK 0 0 256");
    CHECK_STR_CONTAINS(all->lines[2], " add_one BH_OK 1x1x1 64x1x1");
    CHECK_STR_CONTAINS(all->lines[3], " read BH_OK 0 0 256");
    CHECK(has_event(all, "device dispatch items"));
    CHECK_OK(bh_device_close(r.device));
}

TEST_TIMEOUT(rings_wrap_and_nothing_is_missing, 60) {
    enum { COUNT = 1500 };
    char path[300];
    bh_device_options options = device_options(0);
    options.queue_length = 64;
    rig r = rig_open_with(&options);
    bh_buffer x = words_alloc(r.device, 1);
    REQUIRE_OK(bh_trace_start(r.device, trace_path(path, sizeof path)));
    CHECK_REFUSED(bh_trace_start(r.device, path), BH_E_BUSY);
    bh_ticket first = {0, 0};
    for (int i = 0; i < COUNT; i++) {
        bh_ticket t =
            submit(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 1u), NULL);
        if (i == 0) first = t;
    }
    REQUIRE_OK(bh_device_sync(r.device, LONG_NS));
    REQUIRE_OK(bh_trace_stop(r.device));
    CHECK_REFUSED(bh_trace_stop(r.device), BH_E_NOT_FOUND);
    const listing *all = read_trace(path, "");
    CHECK_EQ(all->count, COUNT);
    for (int i = 0; i < all->count; i++) {
        char expected[160];
        snprintf(expected, sizeof expected, "0 %llu store_word BH_OK 1x1x1 1x1x1 0",
                 (unsigned long long)first.sequence + (unsigned)i);
        CHECK_STR_EQ(all->lines[i], expected);
    }
    bh_device_counters counters = counters_of(r.device);
    CHECK_EQ(counters.trace_dropped, 0);
    CHECK_EQ(counters.trace_records, COUNT);
    CHECK_OK(bh_device_close(r.device));
}

TEST_TIMEOUT(what_is_submitted_before_and_after_is_left_out_and_a_second_trace_works, 60) {
    char path[300];
    rig r = rig_open(0);
    bh_buffer x = words_alloc(r.device, 1);
    for (int round = 0; round < 2; round++) {
        run_now(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 1u));
        REQUIRE_OK(bh_trace_start(r.device, trace_path(path, sizeof path)));
        word_write(x, 0, 5);
        REQUIRE_OK(bh_trace_stop(r.device));
        run_now(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 1u));
        const listing *all = read_trace(path, "");
        CHECK_EQ(all->count, 1);
        CHECK_STR_CONTAINS(all->lines[0], " write BH_OK 0 0 4");
    }
    CHECK_REFUSED(bh_trace_start(r.device, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_trace_start(r.device, "/nonexistent/folder/trace.json"), BH_E_NOT_FOUND);
    /* Closing ends a trace too, with what is under way. */
    REQUIRE_OK(bh_trace_start(r.device, path));
    submit(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 1u), NULL);
    CHECK_OK(bh_device_close(r.device));
    CHECK_EQ(read_trace(path, "")->count, 1);
    CHECK_REFUSED(bh_trace_start(r.device, path), BH_E_INVALID);
}

/* Opening a pipe would wait for its other end. */
TEST(a_pipe_is_no_trace_file) {
    char path[300];
    test_path(path, sizeof path, "%s/pipe", test_tmp_dir());
    REQUIRE(mkfifo(path, 0600) == 0);
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    CHECK_REFUSED(bh_trace_start(r.device, path), BH_E_IO);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    REQUIRE(reader >= 0);
    CHECK_REFUSED(bh_trace_start(r.device, path), BH_E_IO);
    close(reader);
    CHECK_REFUSED(bh_trace_stop(r.device), BH_E_NOT_FOUND);
    REQUIRE_OK(bh_trace_start(r.device, trace_path(path, sizeof path)));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST_TIMEOUT(a_program_that_is_killed_leaves_a_file_that_lacks_only_its_end, 60) {
    char path[300];
    trace_path(path, sizeof path);
    pid_t child = fork();
    if (child == 0) {
        rig r = rig_open(BH_DEVICE_NO_STANDBY);
        bh_buffer x = words_alloc(r.device, 1);
        if (bh_trace_start(r.device, path) != BH_OK) _exit(1);
        for (;;) run_now(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 1u));
    }
    struct stat info = {0};
    for (uint64_t end = now_ns() + LONG_NS; info.st_size < 4096 && now_ns() < end; sleep_ms(10))
        (void)!stat(path, &info);
    REQUIRE(kill(child, SIGKILL) == 0);
    int status;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    size_t size = 0;
    char *text = test_read_file(path, &size);
    CHECK_GT(size, 100);
    /* Cut to the first events: enough to see that it can be read. */
    size_t keep = size < 200000 ? size : 200000;
    FILE *out = fopen(path, "w");
    REQUIRE(out != NULL);
    fwrite(text, 1, keep, out);
    fclose(out);
    free(text);
    CHECK_GE(read_trace(path, "--cut")->count, 1);
}
