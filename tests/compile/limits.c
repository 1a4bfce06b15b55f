/* SPDX-License-Identifier: Apache-2.0 */
/* Compilers that hang, crash or eat memory; applications that end; jobs that are none. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "compiler.h"
#include "sandbox.h"

/* Twice as many instances at every level: no compiler comes to the end of it. */
static const char endless[] =
    "template <int N, unsigned long M> struct tree {\n"
    "    static constexpr unsigned long value =\n"
    "        tree<N - 1, 2 * M>::value + tree<N - 1, 2 * M + 1>::value;\n"
    "};\n"
    "template <unsigned long M> struct tree<0, M> { static constexpr unsigned long value = M; };\n"
    "extern \"C\" __global__ void k(unsigned long *p) { *p = tree<40, 0>::value; }\n";

static bool is_gone(pid_t pid) {
    return kill(pid, 0) != 0 && errno == ESRCH;
}

/* Waits for a process that is no child of ours to be gone. */
static bool wait_gone(pid_t pid, unsigned seconds) {
    uint64_t deadline = bh__deadline_after(seconds * BH__NS_PER_S);
    while (!is_gone(pid) && bh__time_left(deadline) > 0) usleep(10000);
    return is_gone(pid);
}

/* The processes whose parent is `parent`, up to `room`. */
static size_t children_of(pid_t parent, pid_t *out, size_t room) {
    char path[64], line[65536];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(path, "r");
    if (file == NULL) return 0;
    if (fgets(line, sizeof line, file) != NULL) {
        for (char *at = line; count < room;) {
            char *end;
            long pid = strtol(at, &end, 10);
            if (end == at) break;
            out[count++] = (pid_t)pid;
            at = end;
        }
    }
    fclose(file);
    return count;
}

static pid_t wait_child(pid_t parent) {
    pid_t child = 0;
    uint64_t deadline = bh__deadline_after(20 * BH__NS_PER_S);
    while (children_of(parent, &child, 1) == 0 && bh__time_left(deadline) > 0) usleep(1000);
    REQUIRE(child != 0);
    return child;
}

TEST_BOTH(a_source_without_end_is_ended_by_the_time_limit) {
    bh__compile_job job = source_job(compiler, endless);
    job.time_limit_ns = BH__NS_PER_S;
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
    CHECK_STR_CONTAINS(o.answer.error.message, "1.000 s");
    CHECK_STR_CONTAINS(o.answer.error.fix, "timeout_ns");
    CHECK_GE(o.took_ns, BH__NS_PER_S);
    CHECK_LE(o.took_ns, 10 * BH__NS_PER_S);
}

TEST_BOTH(the_memory_limit_is_distinguished_from_a_crash) {
    if (test_time_scale() > 1) SKIP("sanitizers reserve more memory than any limit");
    bh__compile_job job = source_job(compiler, endless);
    job.memory_limit = (uint64_t)450 << 20;
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
    CHECK_STR_CONTAINS(o.answer.error.message, "ran out of memory");
    CHECK_STR_CONTAINS(o.answer.error.message, "450 MiB");
    CHECK_STR_CONTAINS(o.answer.error.fix, "memory_limit");
}

/* Too little for the compiler itself. */
TEST_BOTH(a_limit_too_small_for_any_compiler_is_reported) {
    if (test_time_scale() > 1) SKIP("sanitizers reserve more memory than any limit");
    bh__compile_job job = source_job(compiler, "__global__ void k() {}\n");
    job.memory_limit = (uint64_t)60 << 20;
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
    CHECK_STR_CONTAINS(o.answer.error.message, "ran out of memory");
    CHECK_STR_CONTAINS(o.answer.error.message, "60 MiB");
}

TEST_TIMEOUT(a_clang_that_crashes_is_an_answer, 60) {
    need_compiler(BH_COMPILER_CLANG);
    bh__compile_job job = source_job(BH_COMPILER_CLANG, "#pragma clang __debug crash\n");
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
    CHECK_STR_CONTAINS(o.answer.error.message, "clang crashed");
    CHECK(o.answer.log.count > 0);
}

TEST_TIMEOUT(a_program_that_is_no_clang_is_an_answer, 60) {
    char *path =
        write_file("clang", "#!/bin/sh\necho what is this; echo and this >&2; kill -SEGV $$\n");
    REQUIRE_EQ(chmod(path, 0700), 0);
    bh__compile_job job = source_job(BH_COMPILER_CLANG, "");
    job.compiler_path = text(path);
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
    CHECK_STR_CONTAINS(o.answer.error.message, "crashed");
    CHECK_STR_CONTAINS((const char *)o.answer.log.data, "and this");
}

TEST_BOTH(a_worker_killed_at_any_moment_is_an_answer) {
    for (int i = 0; i < 6; i++) {
        bh__compile_job job = source_job(compiler, endless);
        started s = start_job(&job);
        pid_t worker = wait_child(s.pid);
        usleep((useconds_t)(i * 40000));
        kill(worker, i & 1 ? SIGKILL : SIGABRT);
        outcome o = finish_job(&s);
        REQUIRE_ANSWER(o, BH_E_COMPILE);
        CHECK_STR_CONTAINS(o.answer.error.message, "crashed");
    }
}

/* Ending the group ends all of it. */
TEST_BOTH(killing_the_group_leaves_nothing_behind) {
    bh__compile_job job = source_job(compiler, endless);
    started s = start_job(&job);
    pid_t worker = wait_child(s.pid);
    pid_t clang = compiler == BH_COMPILER_CLANG ? wait_child(worker) : 0;
    CHECK_EQ(getpgid(s.pid), s.pid);
    REQUIRE_EQ(kill(-s.pid, SIGKILL), 0);
    outcome o = finish_job(&s);
    CHECK(WIFSIGNALED(o.status));
    CHECK(wait_gone(worker, 10));
    if (clang) CHECK(wait_gone(clang, 10));
}

/* Killing the program alone does as well. */
TEST_BOTH(killing_the_program_leaves_nothing_behind) {
    bh__compile_job job = source_job(compiler, endless);
    started s = start_job(&job);
    pid_t worker = wait_child(s.pid);
    pid_t clang = compiler == BH_COMPILER_CLANG ? wait_child(worker) : 0;
    REQUIRE_EQ(kill(s.pid, SIGKILL), 0);
    finish_job(&s);
    CHECK(wait_gone(worker, 10));
    if (clang) CHECK(wait_gone(clang, 10));
}

/* An application that is killed takes its compilers with it. */
static void check_ends_with_application(uint32_t compiler) {
    int channel[2];
    REQUIRE_EQ(pipe(channel), 0);
    pid_t application = fork();
    REQUIRE(application >= 0);
    if (application == 0) {
        bh__compile_job job = source_job(compiler, endless);
        job.parent = (uint32_t)getpid();
        started s = start_job(&job);
        pid_t pids[3] = {s.pid, wait_child(s.pid), 0};
        if (compiler == BH_COMPILER_CLANG) pids[2] = wait_child(pids[1]);
        if (write(channel[1], pids, sizeof pids) != (ssize_t)sizeof pids) _exit(1);
        for (;;) pause();
    }
    pid_t pids[3];
    REQUIRE_EQ(read(channel[0], pids, sizeof pids), (ssize_t)sizeof pids);
    REQUIRE_EQ(kill(application, SIGKILL), 0);
    REQUIRE_EQ(waitpid(application, NULL, 0), application);
    for (int i = 0; i < 3; i++) {
        if (pids[i]) CHECK(wait_gone(pids[i], 10));
    }
}

TEST_BOTH(the_compiler_ends_with_the_application) {
    check_ends_with_application(compiler);
}

TEST_BOTH(the_compiler_ends_with_the_application_where_there_are_no_pidfds) {
    forbid_pidfds();
    check_ends_with_application(compiler);
}

/* A parent other than the one the job names has taken its place: it has ended. */
TEST(an_application_that_ended_before_the_start_is_noticed) {
    bh__compile_job job = {.op = BH__COMPILE_PROBE, .parent = (uint32_t)getpid() + 1};
    outcome o = run_job(&job);
    CHECK(WIFEXITED(o.status) && WEXITSTATUS(o.status) != 0);
}

static size_t count_files(const char *folder) {
    size_t count = 0;
    DIR *dir = opendir(folder);
    REQUIRE(dir != NULL);
    while (readdir(dir) != NULL) count++;
    closedir(dir);
    return count;
}

/* TMPDIR is not passed on, so /tmp is where leavings would be; other tests use it too, hence names
 * that compilers give. */
static size_t count_leavings(void) {
    size_t count = 0;
    DIR *dir = opendir("/tmp");
    REQUIRE(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strstr(entry->d_name, ".cu") || strstr(entry->d_name, ".cui") ||
            strncmp(entry->d_name, "nvrtc", 5) == 0 || strncmp(entry->d_name, "source-", 7) == 0 ||
            strncmp(entry->d_name, "---", 3) == 0)
            count++;
    }
    closedir(dir);
    return count;
}

TEST_TIMEOUT(nothing_is_left_on_disk, 60) {
    need_compiler(BH_COMPILER_CLANG);
    REQUIRE_EQ(chdir(test_tmp_dir()), 0);
    size_t before = count_leavings(), here = count_files(".");
    static const char *const sources[] = {"#pragma clang __debug crash\n", endless,
                                          "__global__ void k() {}\n"};
    for (size_t i = 0; i < 3; i++) {
        bh__compile_job job = source_job(BH_COMPILER_CLANG, sources[i]);
        job.time_limit_ns = BH__NS_PER_S;
        outcome o = run_job(&job);
        CHECK(o.answered);
    }
    CHECK_EQ(count_leavings(), before);
    CHECK_EQ(count_files("."), here);
}

TEST(an_invalid_job_is_refused) {
    char program[4096];
    test_path(program, sizeof program, "%s/bin/bulkhead-compiler", test_build_dir());
    for (int kind = 0; kind < 3; kind++) {
        pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
            int job = memfd_create("job", 0), answer = memfd_create("answer", 0);
            if (kind == 1 && write(job, "what is this? not a job, I think, however long", 46) < 0)
                _exit(90);
            int high = fcntl(job, F_DUPFD, 50), higher = fcntl(answer, F_DUPFD, 50);
            if (kind == 2) {
                close(3);
                close(4);
            } else {
                dup2(high, 3);
                dup2(higher, 4);
            }
            dup2(open("/dev/null", O_WRONLY), 2);
            execl(program, program, (char *)NULL);
            _exit(91);
        }
        int status;
        REQUIRE_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), 2);
    }
}

TEST(help_and_version_are_printed) {
    char command[4096], line[256];
    static const char *const wanted[][2] = {{"--version", "bulkhead-compiler "},
                                            {"--help", "bulkhead-compiler: compiles CUDA C++"}};
    for (size_t i = 0; i < 2; i++) {
        test_path(command, sizeof command, "%s/bin/bulkhead-compiler %s", test_build_dir(),
                  wanted[i][0]);
        FILE *pipe = popen(command, "r");
        REQUIRE(pipe != NULL);
        REQUIRE(fgets(line, sizeof line, pipe) != NULL);
        CHECK_STR_CONTAINS(line, wanted[i][1]);
        while (fgets(line, sizeof line, pipe) != NULL) continue;
        CHECK_EQ(pclose(pipe), 0);
    }
}
