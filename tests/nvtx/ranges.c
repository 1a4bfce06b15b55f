/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX ranges as a profiler gets them: their names, threads and order; profilers that want little,
 * and ones that do not work. */
#include <signal.h>
#include <sys/wait.h>

#include "../support/support.h"
#include "../support/transfers.h"

enum { N = 1024, MAX_LINES = 4096, BACKLOG = 256, ATTEMPTS = 20 };

typedef struct line {
    int pid, tid;
    char *text;
} line;

typedef struct record {
    line lines[MAX_LINES];
    int count;
} record;

static char told[600];
static record seen;

static const char *profiler_path(void) {
    static char path[600];
    return test_path(path, sizeof path, "%s/tests/nvtx/libprofiler.so", test_build_dir());
}

/* Workers that are started from here on are told of this library. */
static void profile(const char *library, const char *mode) {
    test_path(told, sizeof told, "%s/told.txt", test_tmp_dir());
    unlink(told);
    setenv("PROFILER_FILE", told, 1);
    setenv("PROFILER_MODE", mode, 1);
    setenv(sizeof(void *) == 8 ? "NVTX_INJECTION64_PATH" : "NVTX_INJECTION32_PATH", library, 1);
}

static bool file_exists(const char *path) {
    return access(path, F_OK) == 0;
}

/* What the profiler was told so far. A last line that is being written is left out. */
static const record *read_record(void) {
    static char *text;
    free(text);
    text = NULL;
    seen.count = 0;
    if (!file_exists(told)) return &seen;
    text = test_read_file(told, NULL);
    char *at = text;
    for (char *end; (end = strchr(at, '\n')) != NULL && seen.count < MAX_LINES; at = end + 1) {
        *end = 0;
        line *next = &seen.lines[seen.count++];
        int length = 0;
        REQUIRE(sscanf(at, "%d %d %n", &next->pid, &next->tid, &length) == 2);
        next->text = at + length;
        if (strncmp(next->text, "bad", 3) == 0) FAIL("the profiler says: %s", next->text);
    }
    return &seen;
}

static bool starts(const line *l, const char *with) {
    return strncmp(l->text, with, strlen(with)) == 0;
}

static int count_lines(const record *r, const char *with) {
    int count = 0;
    for (int i = 0; i < r->count; i++) count += starts(&r->lines[i], with);
    return count;
}

/* On a device with queues a request can be done before its range has ended. */
static const record *wait_balanced(void) {
    uint64_t limit = now_ns() + 5000 * MS * test_time_scale();
    const record *r = read_record();
    while (count_lines(r, "push ") != count_lines(r, "pop") && now_ns() < limit) {
        sleep_ms(1);
        r = read_record();
    }
    CHECK_EQ(count_lines(r, "push "), count_lines(r, "pop"));
    return r;
}

/* The thread that was given this name. */
static int thread_named(const record *r, int pid, const char *name) {
    for (int i = 0; i < r->count; i++) {
        unsigned id;
        int length = 0;
        const line *l = &r->lines[i];
        if (l->pid != pid || sscanf(l->text, "thread %u %n", &id, &length) != 1) continue;
        if (strcmp(l->text + length, name) != 0) continue;
        CHECK_EQ(id, (unsigned)l->tid);
        return l->tid;
    }
    FAIL("no thread of process %d was named %s", pid, name);
    return 0;
}

/* Finds the range with this text from line `from` on, on this thread, nested `depth` deep in others
 * of it. Returns its line, -1 after a complaint. */
static int find_range(const record *r, int from, int tid, const char *text, int depth) {
    int open = 0;
    for (int i = 0; i < r->count; i++) {
        const line *l = &r->lines[i];
        if (l->tid != tid) continue;
        bool pushes = starts(l, "push ");
        if (pushes && i >= from && strcmp(l->text + 5, text) == 0) {
            CHECK_EQ(open, depth);
            return i;
        }
        open += pushes ? 1 : starts(l, "pop") ? -1 : 0;
        CHECK(open >= 0);
    }
    FAIL("no range \"%s\" on thread %d from line %d on", text, tid, from);
    return -1;
}

static int expect(const record *r, int from, int tid, int depth, const char *what,
                  bh_ticket ticket) {
    char text[128];
    snprintf(text, sizeof text, "%s #%llu", what, (unsigned long long)ticket.sequence);
    int found = find_range(r, from, tid, text, depth);
    return found < 0 ? from : found + 1;
}

/* One of each, on one lane; each waits for the one before it. */
static void submit_each(const rig *r, bh_lane lane, bh_ticket tickets[6]) {
    uint32_t pattern = 7, *words;
    REQUIRE_OK(bh_host_alloc(r->device, N * 4, (void **)&words));
    memset(words, 0, N * 4);
    bh_buffer p = words_alloc(r->device, N), q = words_alloc(r->device, N);
    bh_launch_options there = on_lane(lane, 0);
    REQUIRE_OK(bh_submit_write(lane, p, 0, words, N * 4, &tickets[0]));
    tickets[1] =
        submit(rig_kernel(r, "add_one"), BH_GRID(N, 64), BH_ARGS(BH_INOUT(p), (uint32_t)N), &there);
    REQUIRE_OK(bh_submit_fill(lane, q, 0, 512, &pattern, 4, &tickets[2]));
    REQUIRE_OK(bh_submit_copy(lane, q, 0, p, 0, 256, &tickets[3]));
    tickets[4] = submit(rig_kernel(r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(q), 5u), &there);
    REQUIRE_OK(bh_submit_read(lane, p, 0, words, 64, &tickets[5]));
    for (int i = 0; i < 6; i++) CHECK_OK(bh_wait(tickets[i], LONG_NS));
    CHECK_EQ(words[0], 1);
    CHECK_OK(bh_buffer_release(p));
    CHECK_OK(bh_buffer_release(q));
    CHECK_OK(bh_host_free(r->device, words));
}

static void check_each(const record *r, int pid, const char *thread, const bh_ticket tickets[6]) {
    static const char *const names[] = {"write 4096 B", "add_one",    "fill 512 B",
                                        "copy 256 B",   "store_word", "read 64 B"};
    int tid = thread_named(r, pid, thread), from = 0;
    for (int i = 0; i < 6; i++) from = expect(r, from, tid, 0, names[i], tickets[i]);
}

/* What a profiler that offers so much was told of one request of each kind. */
static const record *profile_each(const char *offered) {
    profile(profiler_path(), offered);
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    bh_lane lane = open_lane(r.device);
    bh_ticket tickets[6];
    submit_each(&r, lane, tickets);
    const record *got = wait_balanced();
    check_each(got, health_of(r.device).worker_pid, "bulkhead lane 1", tickets);
    CHECK_OK(bh_device_close(r.device));
    return got;
}

TEST(ranges_are_named_after_requests_on_the_threads_of_their_lanes) {
    const record *got = profile_each("all");
    CHECK_EQ(count_lines(got, "init all"), 1);
    CHECK_EQ(count_lines(got, "domain bulkhead"), 1);
}

TEST(a_profiler_without_domains_gets_plain_ranges) {
    CHECK_EQ(count_lines(profile_each("core"), "domain"), 0);
}

TEST(a_sequence_is_one_range_with_its_steps_inside_where_they_are_sent_one_by_one) {
    profile(profiler_path(), "all");
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    bh_buffer p = words_filled(r.device, N, 0), q = words_filled(r.device, N, 0);
    bh_sequence_options options = BH_INIT(options);
    options.name = "blur";
    bh_sequence sequence;
    REQUIRE_OK(bh_sequence_begin(r.device, &options, &sequence));
    REQUIRE_OK(bh_sequence_launch(sequence, rig_kernel(&r, "add_one"), BH_GRID(N, 64),
                                  BH_ARGS(BH_INOUT(p), (uint32_t)N), NULL, NULL));
    REQUIRE_OK(record_copy(sequence, q, 0, p, 0, N * 4, NULL));
    REQUIRE_OK(bh_sequence_finish(sequence));
    bh_ticket once, thrice;
    REQUIRE_OK(bh_sequence_submit(sequence, NULL, &once));
    bh_submit_options replay = BH_INIT(replay);
    replay.repeat = 3;
    REQUIRE_OK(bh_sequence_submit(sequence, &replay, &thrice));
    CHECK_OK(bh_wait(thrice, LONG_NS));
    CHECK_EQ(word_read(q, N - 1), 4);

    const record *got = wait_balanced();
    int tid = thread_named(got, health_of(r.device).worker_pid, "bulkhead lane 0");
    bool by_steps = is_cpu(r.device);
    int from = expect(got, 0, tid, 0, "blur: 2 steps", once);
    for (int i = 0; by_steps && i < 4; i++) {
        if (i == 1) from = expect(got, from, tid, 0, "blur: 2 steps x 3", thrice);
        from = find_range(got, from, tid, "step 0 of 2: add_one", 1) + 1;
        from = find_range(got, from, tid, "step 1 of 2: copy 4096 B", 1) + 1;
    }
    if (!by_steps) expect(got, from, tid, 0, "blur: 2 steps x 3", thrice);
    CHECK_EQ(count_lines(got, "push step"), by_steps ? 8 : 0);
    CHECK_OK(bh_sequence_release(sequence));
    CHECK_OK(bh_device_close(r.device));
}

/* What the launches of the backlog are: the same kernel at first, then two in turn. */
static bool is_store(int index) {
    return index > BACKLOG / 2 && index % 2 == 1;
}

/* Every launch is in exactly one range, in order, by itself or in a train. Returns how many are in
 * trains. */
static uint64_t check_backlog(const record *got, int tid, const bh_ticket tickets[BACKLOG]) {
    uint64_t in_trains = 0;
    int next = 0;
    for (int i = 0; i < got->count && next < BACKLOG; i++) {
        const line *l = &got->lines[i];
        unsigned count;
        unsigned long long first, last;
        if (l->tid != tid || !starts(l, "push ")) continue;
        if (sscanf(l->text, "push train of %u: %*s #%llu-#%llu", &count, &first, &last) == 3 ||
            sscanf(l->text, "push train of %u: %*s ... #%llu-#%llu", &count, &first, &last) == 3) {
            bool mixed = false;
            REQUIRE(count > 1 && next + (int)count <= BACKLOG);
            CHECK_EQ(first, tickets[next].sequence);
            CHECK_EQ(last, tickets[next + (int)count - 1].sequence);
            for (unsigned k = 1; k < count; k++) mixed |= is_store(next + (int)k) != is_store(next);
            CHECK_EQ(mixed, strstr(l->text, " ... ") != NULL);
            CHECK_STR_CONTAINS(l->text, is_store(next) ? ": store_word " : ": add_one ");
            in_trains += count;
            next += (int)count;
        } else if (sscanf(l->text, "push %*s #%llu", &first) == 1 &&
                   first == tickets[next].sequence) {
            next++;
        }
    }
    CHECK_EQ(next, BACKLOG);
    return in_trains;
}

/* Workers count a moment later. */
static uint64_t count_train_launches(bh_device device, bh_lane lane, uint64_t expected) {
    uint64_t limit = now_ns() + 5000 * MS * test_time_scale();
    bh_lane_counters counts = BH_INIT(counts);
    do {
        CHECK_OK(bh_lane_get_counters(device, lane, &counts));
    } while (counts.train_launches < expected && now_ns() < limit);
    return counts.train_launches;
}

/* Returns how many launches of a backlog went in trains. */
static uint64_t run_backlog(void) {
    profile(profiler_path(), "all");
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_buffer p = words_filled(r.device, 1, 0);
    bh_kernel add = rig_kernel(&r, "add_one"), store = rig_kernel(&r, "store_word");
    gate g = gate_close(&r, lane, 0);
    bh_ticket tickets[BACKLOG];
    for (int i = 0; i < BACKLOG; i++) {
        tickets[i] = is_store(i) ? submit(store, BH_GRID(1, 1), BH_ARGS(BH_OUT(p), 9u), &there)
                                 : submit(add, BH_GRID(1, 1), BH_ARGS(BH_INOUT(p), 1u), &there);
    }
    gate_open(&g);
    CHECK_OK(bh_wait(tickets[BACKLOG - 1], LONG_NS));
    const record *got = wait_balanced();
    int tid = thread_named(got, health_of(r.device).worker_pid, "bulkhead lane 1");
    uint64_t in_trains = check_backlog(got, tid, tickets);
    CHECK_EQ(count_train_launches(r.device, lane, in_trains), in_trains);
    CHECK_OK(bh_device_close(r.device));
    return in_trains;
}

TEST_TIMEOUT(launches_that_are_sent_as_one_are_one_range, 60) {
    const char *dir = getenv("BULKHEAD_WORKER_DIR");
    bool queues = strcmp(test_device(), "cpu") != 0 || (dir && strstr(dir, "/queued"));
    uint64_t in_trains = run_backlog();
    /* Kernels that take long on a busy machine go by themselves; so they do with sanitizers. */
    for (int i = 1; queues && in_trains == 0 && i < ATTEMPTS; i++) in_trains = run_backlog();
    if (test_time_scale() == 1) CHECK_EQ(in_trains > 0, queues);
}

TEST(profilers_see_the_end_of_their_workers) {
    profile(profiler_path(), "all");
    rig r = rig_open(0);
    check_device_works(&r);
    wait_standby(r.device);
    int pids[] = {health_of(r.device).worker_pid, health_of(r.device).standby_pids[0]};
    const record *got = wait_balanced();
    CHECK_EQ(count_lines(got, "end"), 0);
    CHECK_OK(bh_device_close(r.device));
    got = read_record();
    CHECK_EQ(count_lines(got, "end"), 2);
    for (int i = 0; i < got->count; i++) {
        const line *l = &got->lines[i];
        if (starts(l, "end")) CHECK(l->pid == pids[0] || l->pid == pids[1]);
    }
}

/* In a child: leaves a worker behind that is told to end by nobody. */
static void open_and_die(int pipe_end) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    check_device_works(&r);
    int pid = health_of(r.device).worker_pid;
    _exit(write(pipe_end, &pid, sizeof pid) == sizeof pid ? 0 : 1);
}

TEST(a_profiler_that_hangs_in_the_end_holds_up_nobody_for_long) {
    unsigned patience = 8000 * test_time_scale();
    profile(profiler_path(), "hang");
    int ends[2], worker, status;
    REQUIRE(pipe(ends) == 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) open_and_die(ends[1]);
    REQUIRE(read(ends[0], &worker, sizeof worker) == sizeof worker);
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(wait_process_gone(worker, patience));

    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    uint64_t begun = now_ns();
    worker = health_of(r.device).worker_pid;
    CHECK_OK(bh_device_close(r.device));
    CHECK_LT(now_ns() - begun, patience * MS);
    CHECK(!process_exists(worker));
    CHECK_EQ(count_lines(read_record(), "end"), 2);
}

TEST(the_next_worker_is_profiled_too) {
    profile(profiler_path(), "all");
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    check_device_works(&r);
    wait_standby(r.device);
    kill_worker(r.device, SIGKILL);
    bh_ticket tickets[6];
    submit_each(&r, lane, tickets);
    int pid = health_of(r.device).worker_pid;
    uint64_t limit = now_ns() + 5000 * MS * test_time_scale();
    const record *got = read_record();
    while (now_ns() < limit) { /* the lost worker may have left ranges open: look at this one's */
        int open = 0;
        for (int i = 0; i < got->count; i++) {
            if (got->lines[i].pid == pid)
                open += starts(&got->lines[i], "push ") - starts(&got->lines[i], "pop");
        }
        if (open == 0) break;
        sleep_ms(1);
        got = read_record();
    }
    check_each(got, pid, "bulkhead lane 1", tickets);
    CHECK_OK(bh_device_close(r.device));
}

/* ---- profilers that want little or do not work ---- */

typedef struct notes {
    _Atomic int count;
    char last[1024];
} notes;

static void take_note(void *context, int32_t level, const char *text) {
    notes *self = context;
    if (level > BH_LOG_WARNING || !strstr(text, "NVTX")) return;
    snprintf(self->last, sizeof self->last, "%s", text);
    atomic_fetch_add(&self->count, 1);
}

/* The device works and faults as ever; the log has one note, with this in it, or none. */
static void check_nothing_changes(const char *library, const char *mode, const char *note) {
    static notes n;
    profile(library, mode);
    atomic_store(&n.count, 0);
    REQUIRE_OK(bh_log_set(take_note, &n, BH_LOG_WARNING));
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    check_device_works(&r);
    CHECK_EQ(atomic_load(&n.count), note ? 1 : 0);
    REQUIRE_OK(bh_log_set(NULL, NULL, 0));
    if (note) {
        CHECK_STR_CONTAINS(n.last, note);
        CHECK_STR_CONTAINS(n.last, library);
    }
    const record *got = read_record();
    CHECK_EQ(count_lines(got, "push"), 0);
    CHECK_EQ(count_lines(got, "pop"), 0);
    CHECK_STATUS(run_now(rig_kernel(&r, "poke"), BH_GRID(1, 1), BH_ARGS(NOWHERE_FAR, 1u)),
                 BH_E_FAULT);
    bh_error error;
    bh_last_error(&error);
    CHECK(strstr(error.message, "NVTX") == NULL);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_profiler_that_wants_no_ranges_gets_none) {
    check_nothing_changes(profiler_path(), "names", NULL);
}

TEST(a_profiler_that_takes_no_ends_of_ranges_gets_no_beginnings) {
    check_nothing_changes(profiler_path(), "push", NULL);
}

TEST(a_profiler_that_refuses_is_noted_and_changes_nothing) {
    check_nothing_changes(profiler_path(), "refuse", "failed to start");
}

TEST(a_library_that_is_not_there_is_noted_and_changes_nothing) {
    check_nothing_changes("/nowhere/libprofiler.so", "all", "cannot be loaded");
}

TEST(a_file_that_is_no_library_is_noted_and_changes_nothing) {
    char path[600];
    FILE *file = fopen(test_path(path, sizeof path, "%s/text.so", test_tmp_dir()), "w");
    REQUIRE(file != NULL);
    fputs("no library\n", file);
    fclose(file);
    check_nothing_changes(path, "all", "cannot be loaded");
}

TEST(a_library_that_is_no_profiler_is_noted_and_changes_nothing) {
    char path[600];
    test_path(path, sizeof path, "%s/tests/nvtx/libnoprofiler.so", test_build_dir());
    check_nothing_changes(path, "all", "InitializeInjectionNvtx2");
}

static bool worker_has_mapped(bh_device device, const char *name) {
    char path[64];
    FILE *maps = fopen(
        test_path(path, sizeof path, "/proc/%d/maps", (int)health_of(device).worker_pid), "r");
    REQUIRE(maps != NULL);
    char text[1024];
    bool found = false;
    while (fgets(text, sizeof text, maps)) found |= strstr(text, name) != NULL;
    fclose(maps);
    return found;
}

TEST(nothing_is_loaded_unless_the_environment_names_it) {
    profile(profiler_path(), "all");
    rig with = rig_open(BH_DEVICE_NO_STANDBY);
    CHECK(worker_has_mapped(with.device, "libprofiler.so"));
    CHECK_OK(bh_device_close(with.device));
    profile("", "all");
    rig empty = rig_open(BH_DEVICE_NO_STANDBY);
    check_device_works(&empty);
    CHECK(!worker_has_mapped(empty.device, "libprofiler.so"));
    CHECK_OK(bh_device_close(empty.device));
    unsetenv("NVTX_INJECTION64_PATH");
    unsetenv("NVTX_INJECTION32_PATH");
    rig without = rig_open(BH_DEVICE_NO_STANDBY);
    check_device_works(&without);
    CHECK(!worker_has_mapped(without.device, "libprofiler.so"));
    CHECK(!file_exists(told));
    CHECK_OK(bh_device_close(without.device));
}
