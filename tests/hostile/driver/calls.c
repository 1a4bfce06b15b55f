/* SPDX-License-Identifier: Apache-2.0 */
/* Problems, and calls that take too long. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

enum { THREADS = 64 };

typedef struct call {
    const char *_Atomic text; /* NULL: none under way */
    uint64_t begun, limit;
} call;

static call calls[THREADS];
static _Atomic uint32_t call_count;
static _Thread_local call *own;
static _Atomic unsigned problems;

uint64_t driver_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * DRIVER_S + (uint64_t)now.tv_nsec;
}

void problem(const char *format, ...) {
    char text[700];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    atomic_fetch_add(&problems, 1);
    printf("broken: %s\n", text);
    fflush(stdout);
}

unsigned problem_count(void) {
    return atomic_load(&problems);
}

void call_begin(const char *text, uint64_t limit_ns) {
    if (!own) own = &calls[atomic_fetch_add(&call_count, 1) % THREADS];
    own->begun = driver_now();
    own->limit = limit_ns;
    atomic_store(&own->text, text);
}

int32_t call_end(int32_t status) {
    uint64_t took = driver_now() - own->begun;
    if (took > own->limit)
        problem("%s took %.3f s, at most %.3f s are allowed; it returned %s", own->text,
                (double)took / 1e9, (double)own->limit / 1e9, bh_status_name(status));
    atomic_store(&own->text, NULL);
    return status;
}

static const char *log_path;

static void print_log(void) {
    char text[2000];
    int log = open(log_path, O_RDONLY | O_CLOEXEC);
    ssize_t got = log < 0 ? -1 : read(log, text, sizeof text);
    ssize_t ignored = got > 0 ? write(1, text, (size_t)got) : 0;
    (void)ignored;
}

static void print_calls(int signal) {
    (void)signal;
    for (uint32_t i = 0; i < THREADS; i++) {
        const char *text = atomic_load(&calls[i].text);
        if (!text) continue;
        ssize_t ignored = write(1, "hangs: ", 7);
        ignored = write(1, text, strlen(text));
        ignored = write(1, "\n", 1);
        (void)ignored;
    }
    print_log();
    if (getenv("HOSTILE_HOLD"))
        for (;;) pause();
    _exit(3);
}

void calls_watch(const char *log) {
    log_path = log;
    signal(SIGQUIT, print_calls);
}
