/* SPDX-License-Identifier: Apache-2.0 */
/* Many seeds, each in a process of its own, a few at a time. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

enum { MAX_JOBS = 64 };
#define LIMIT_NS (70 * DRIVER_S * DRIVER_SCALE)

typedef struct seed_run {
    pid_t pid; /* 0: none */
    uint64_t seed, begun;
    int output;
    bool asked; /* which calls hang */
} seed_run;

typedef struct totals {
    uint64_t seeds, hostile_workers;
    unsigned failed;
} totals;

extern char **environ;

static bool start(seed_run *self, uint64_t seed, const char *only) {
    char number[40], name[200];
    char template[] = "/tmp/bulkhead-hostile-out-XXXXXX";
    self->output = mkostemp(template, O_CLOEXEC);
    if (self->output < 0) return false;
    unlink(template);
    snprintf(number, sizeof number, "run=%llu", (unsigned long long)seed);
    snprintf(name, sizeof name, "only=%s", only ? only : "");
    char *arguments[] = {"bulkhead-hostile", number, only ? name : NULL, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, self->output, 1);
    posix_spawn_file_actions_adddup2(&actions, self->output, 2);
    int failed = posix_spawn(&self->pid, "/proc/self/exe", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    self->seed = seed;
    self->begun = driver_now();
    self->asked = false;
    return failed == 0;
}

static char *output_of(const seed_run *self) {
    struct stat info;
    if (fstat(self->output, &info) != 0) return NULL;
    char *text = calloc(1, (size_t)info.st_size + 1);
    if (text && pread(self->output, text, (size_t)info.st_size, 0) < 0) text[0] = 0;
    return text;
}

static uint64_t count_hostile(const char *text) {
    uint64_t count = 0;
    for (const char *at = text; (at = strstr(at, "worker ")); at++) {
        size_t line = strcspn(at, "\n");
        bool honest = line >= 6 && strncmp(at + line - 6, "honest", 6) == 0;
        count += (at == text || at[-1] == '\n') && !honest;
    }
    return count;
}

static void finish(seed_run *self, int status, totals *sum) {
    char *text = output_of(self);
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    sum->seeds++;
    if (text) sum->hostile_workers += count_hostile(text);
    if (!good) {
        sum->failed++;
        printf("seed %llu: %s %d after %.1f s\n%s\n", (unsigned long long)self->seed,
               WIFSIGNALED(status) ? "ended by signal" : "exit status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
               (double)(driver_now() - self->begun) / 1e9, text ? text : "");
        fflush(stdout);
    }
    free(text);
    close(self->output);
    self->pid = 0;
}

/* One that hangs is asked what it hangs in, and then ended. */
static void end_if_late(seed_run *self) {
    uint64_t took = driver_now() - self->begun;
    if (took > LIMIT_NS && !self->asked) {
        kill(self->pid, SIGQUIT);
        self->asked = true;
    } else if (took > LIMIT_NS + 5 * DRIVER_S) {
        kill(self->pid, SIGKILL);
    }
}

/* Workers of an application that died with them are ours now. */
static void end_orphans(const seed_run *runs, uint64_t jobs) {
    siginfo_t info;
    for (;;) {
        memset(&info, 0, sizeof info);
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
        for (uint64_t i = 0; i < jobs; i++)
            if (runs[i].pid == info.si_pid) return;
        waitpid(info.si_pid, NULL, WNOHANG);
    }
}

static void look(seed_run *runs, uint64_t jobs, totals *sum) {
    int status;
    for (uint64_t i = 0; i < jobs; i++) {
        if (!runs[i].pid) continue;
        if (waitpid(runs[i].pid, &status, WNOHANG) == runs[i].pid)
            finish(&runs[i], status, sum);
        else
            end_if_late(&runs[i]);
    }
    end_orphans(runs, jobs);
}

static uint64_t running(const seed_run *runs, uint64_t jobs) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < jobs; i++) count += runs[i].pid != 0;
    return count;
}

static void start_some(seed_run *runs, const seeds_options *options, uint64_t *next) {
    for (uint64_t i = 0; i < options->jobs && *next < options->first + options->count; i++) {
        if (runs[i].pid) continue;
        if (!start(&runs[i], *next, options->only)) return;
        ++*next;
    }
}

unsigned run_seeds(const seeds_options *options) {
    static seed_run runs[MAX_JOBS];
    totals sum = {0};
    seeds_options own = *options;
    if (own.jobs > MAX_JOBS) own.jobs = MAX_JOBS;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    uint64_t next = own.first, end = driver_now() + own.seconds * DRIVER_S;
    bool more = true;
    while (more || running(runs, own.jobs)) {
        more = next < own.first + own.count && (!own.seconds || driver_now() < end);
        if (more) start_some(runs, &own, &next);
        look(runs, own.jobs, &sum);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    printf("%llu seeds from %llu on, %llu hostile workers, %u broken\n",
           (unsigned long long)sum.seeds, (unsigned long long)own.first,
           (unsigned long long)sum.hostile_workers, sum.failed);
    return sum.failed;
}
