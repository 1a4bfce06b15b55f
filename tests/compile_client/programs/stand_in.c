/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for bulkhead-compiler: does at once, and counted, what words in the source ask for. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "wire/compile.h"

static bh__arena arena;

static bh__bytes text(const char *from) {
    return (bh__bytes){(const uint8_t *)from, strlen(from)};
}

static void count_run(void) {
    const char *path = getenv("BULKHEAD_TEST_RUNS");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (fd >= 0 && write(fd, "x", 1) != 1) exit(9);
}

static void answer_probe(void) {
    static char self[4096];
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) exit(9);
    bh__compiler_found found[] = {
        {BH_COMPILER_NVRTC, 1, text(self), text("stand-in 1.0"), text("it is a test")},
        {BH_COMPILER_CLANG, 0, text(""), text(""), text("there is none in this test")},
        {BH__COMPILER_NVJITLINK, 0, text(""), text(""), text("there is none in this test")}};
    const char *none = getenv("BULKHEAD_TEST_NO_COMPILER");
    if (none) found[0].usable = 0;
    bh__compile_answer answer = {.log = text(""),
                                 .version = text("stand-in 1.0"),
                                 .output = text(""),
                                 .found = found,
                                 .found_count = 3};
    if (!bh__compile_answer_write(BH__COMPILE_ANSWER_FD, &answer)) exit(9);
}

static void pause_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* Starts a process that would outlive this one. */
static void leave_child(void) {
    const char *path = getenv("BULKHEAD_TEST_CHILD");
    pid_t child = fork();
    if (child == 0)
        for (;;) pause();
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%d\n", (int)child);
        fclose(file);
    }
}

static void misbehave(const char *source) {
    const char *slow = strstr(source, "SLOW=");
    if (strstr(source, "NOISE")) fprintf(stderr, "the frobnicator is out of order\n");
    if (strstr(source, "CHILD")) leave_child();
    if (slow) pause_ms(strtol(slow + 5, NULL, 10));
    if (strstr(source, "HANG"))
        for (;;) pause();
    if (strstr(source, "CRASH")) {
        signal(SIGSYS, SIG_DFL);
        raise(SIGSYS);
    }
    if (strstr(source, "EXIT")) exit(3);
    if (strstr(source, "SILENT")) exit(0);
    if (strstr(source, "NONSENSE")) {
        if (write(BH__COMPILE_ANSWER_FD, "hello, hello, hello, hello, hello", 32) != 32) exit(9);
        exit(0);
    }
}

static void answer_source(const bh__compile_job *job) {
    const char *source = (const char *)job->source.data;
    bh__compile_answer answer = {.log = text(""), .version = text("stand-in 1.0")};
    misbehave(source);
    const char *lie = strstr(source, "STATUS=");
    if (lie) {
        bh__fail(&answer.error, BH_E_COMPILE, "write it", "the source says");
        answer.error.status = (bh_status)strtol(lie + 7, NULL, 10);
        memcpy(answer.error.message, "a\x1b[31m\xc2\x9b", 9);
        memcpy(answer.error.fix, "b\x1b[31m\x07", 8);
        answer.error.certain = 7;
        answer.output = text("");
    } else if (strstr(source, "FAIL")) {
        bh__fail(&answer.error, BH_E_COMPILE, "write something else", "the source says so");
        answer.log = text("line one of the log\nline two of the log\n");
        answer.output = text("");
    } else {
        static const char head[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                                   ".visible .entry k0()\n{\n    ret;\n}\n// ";
        size_t length = strlen(head);
        char *output = bh__arena_alloc(&arena, length + job->source.count + 1, 1);
        if (!output) exit(9);
        memcpy(output, head, length);
        for (size_t i = 0; source[i]; i++) output[length + i] = source[i] == '\n' ? ' ' : source[i];
        answer.output = text(output);
        if (strstr(source, "WARN")) answer.log = text("a warning\n");
        if (strstr(source, "SHORT")) answer.output = text("");
        answer.lowered.list =
            bh__arena_alloc(&arena, job->expressions.count + 1, sizeof(bh__bytes));
        if (!answer.lowered.list) exit(9);
        for (size_t i = 0; i < job->expressions.count; i++) answer.lowered.list[i] = text("k0");
        answer.lowered.count = job->expressions.count;
    }
    if (!bh__compile_answer_write(BH__COMPILE_ANSWER_FD, &answer)) exit(9);
}

int main(void) {
    bh__compile_job job;
    if (!bh__compile_job_read(BH__COMPILE_JOB_FD, &arena, &job)) return 8;
    if (job.op == BH__COMPILE_PROBE) {
        answer_probe();
    } else {
        count_run();
        answer_source(&job);
    }
    return 0;
}
