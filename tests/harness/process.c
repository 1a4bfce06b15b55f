/* SPDX-License-Identifier: Apache-2.0 */
/* One test as a tree of processes: start it, watch its time, see that nothing is left of it. */
#include "runner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long the processes of a test may outlive it, and how long killed ones may take to go. */
static const uint64_t grace_ns = 2000000000ull;
static const uint64_t kill_ns = 10000000000ull;

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void watched_signals(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
}

void process_prepare_child(void) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    struct rlimit core;
    getrlimit(RLIMIT_CORE, &core);
    core.rlim_cur = 0; /* a test may raise it again */
    setrlimit(RLIMIT_CORE, &core);
    if (strcmp(BULKHEAD_SANITIZE, "thread") == 0) {
        /* ThreadSanitizer cannot place its shadow where the kernel randomises a lot. */
        personality(ADDR_NO_RANDOMIZE);
    }
    int null = open("/dev/null", O_RDONLY);
    if (null > 0) {
        dup2(null, STDIN_FILENO);
        close(null);
    }
}

static void set_sanitizer_options(const char *variable, const char *directory) {
    const char *given = getenv(variable);
    /* Reports go to files, so that those of worker processes are seen as well. Workers end without
     * joining their threads. */
    char *value = format_text(
        "allocator_may_return_null=1:die_after_fork=0:print_stacktrace=1:report_thread_leaks=0:"
        "print_suppressions=0:exitcode=66:%s%slog_path=%s/san",
        given ? given : "", given ? ":" : "", directory);
    setenv(variable, value, 1);
    free(value);
}

_Noreturn static void run_test(const struct job *job) {
    setsid();
    process_prepare_child();
    char *output = format_text("%s/output", job->directory);
    char *tmp = format_text("%s/tmp", job->directory);
    char *run = format_text("%s/run", job->directory);
    int file = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
    if (file < 0 || (mkdir(tmp, 0777) != 0 && errno != EEXIST) ||
        (mkdir(run, 0700) != 0 && errno != EEXIST) || chdir(tmp) != 0) {
        _exit(127);
    }
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    close(file);
    setenv("BULKHEAD_TEST_TMP", tmp, 1);
    /* Never the user's. Tests that share one compile what they have in common once. */
    const char *shared = getenv("BULKHEAD_TEST_CACHE");
    char *cache = shared && *shared ? strdup(shared) : format_text("%s/cache", tmp);
    setenv("BULKHEAD_CACHE_DIR", cache, 1);
    unsetenv("BULKHEAD_TEST_CACHE");
    setenv("TMPDIR", tmp, 1);
    setenv("BULKHEAD_RUNTIME_DIR", run, 1); /* where open devices are found */
    setenv("XDG_CACHE_HOME", tmp, 1);
    if (BULKHEAD_SANITIZE[0] != '\0') {
        set_sanitizer_options("ASAN_OPTIONS", job->directory);
        set_sanitizer_options("TSAN_OPTIONS", job->directory);
        set_sanitizer_options("UBSAN_OPTIONS", job->directory);
    }
    execv(job->argv[0], job->argv);
    fprintf(stderr, "cannot execute %s: %s\n", job->argv[0], strerror(errno));
    _exit(127);
}

/* The parent of process `pid`, and its name; 0 if there is no such process. */
static pid_t parent_of(pid_t pid, char *name, size_t size) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return 0;
    }
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) {
        return 0;
    }
    text[length] = '\0';
    char *open_paren = strchr(text, '('), *close_paren = strrchr(text, ')');
    int parent = 0;
    if (open_paren == NULL || close_paren == NULL ||
        sscanf(close_paren, ") %*c %d", &parent) != 1) {
        return 0;
    }
    snprintf(name, size, "%.*s", (int)(close_paren - open_paren - 1), open_paren + 1);
    return parent;
}

/* Calls `visit` for each child of this process. Orphaned descendants are children too: a watcher
 * is their subreaper. */
static void each_child(void (*visit)(pid_t pid, const char *name, void *context), void *context) {
    DIR *proc = opendir("/proc");
    if (proc == NULL) {
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        char name[64];
        if (pid > 0 && parent_of(pid, name, sizeof name) == getpid()) {
            visit(pid, name, context);
        }
    }
    closedir(proc);
}

static void kill_child(pid_t pid, const char *name, void *context) {
    (void)name;
    (void)context;
    kill(pid, SIGKILL);
}

static void name_child(pid_t pid, const char *name, void *context) {
    char *text = context;
    size_t length = strlen(text);
    snprintf(text + length, 256 - length, "%s%s (pid %d)", length ? ", " : "", name, (int)pid);
}

struct watch {
    pid_t child;
    bool ended; /* the test itself */
    int status;
    bool alone; /* no process is left */
};

static void reap(struct watch *watch) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == watch->child) {
            watch->ended = true;
            watch->status = status;
        }
    }
    watch->alone = pid < 0 && errno == ECHILD;
}

/* Sleeps until a child changes or `until` comes. False: someone asks this process to end. */
static bool sleep_until(uint64_t until) {
    sigset_t set;
    watched_signals(&set);
    uint64_t now = now_ns();
    uint64_t left = until > now ? until - now : 0;
    struct timespec timeout = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    int number = sigtimedwait(&set, NULL, &timeout);
    return number < 0 || number == SIGCHLD;
}

static void kill_everything(struct watch *watch) {
    uint64_t until = now_ns() + kill_ns;
    for (reap(watch); !watch->alone && now_ns() < until; reap(watch)) {
        each_child(kill_child, NULL);
        sleep_until(now_ns() + 20000000);
    }
}

_Noreturn static void conclude(const struct job *job, int result, const char *why) {
    char *path = format_text("%s/why", job->directory);
    FILE *file = fopen(path, "w");
    if (file != NULL) {
        fputs(why, file);
        fclose(file);
    }
    _exit(result);
}

_Noreturn static void judge(const struct job *job, int status) {
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        conclude(job, TEST_BROKEN,
                 format_text("killed by signal %d (%s)", number, strsignal(number)));
    }
    int code = WEXITSTATUS(status);
    if (code == TEST_PASSED || code == TEST_SKIPPED) {
        conclude(job, code, "");
    }
    conclude(job, TEST_FAILED, format_text("exit status %d", code));
}

_Noreturn static void watch_test(const struct job *job) {
    struct watch watch = {0};
    uint64_t until = now_ns() + job->seconds * 1000000000ull;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    watch.child = fork();
    if (watch.child < 0) {
        conclude(job, TEST_FAILED, "fork failed");
    }
    if (watch.child == 0) {
        run_test(job);
    }
    for (reap(&watch); !watch.ended; reap(&watch)) {
        if (!sleep_until(until)) {
            kill_everything(&watch);
            conclude(job, TEST_BROKEN, "interrupted");
        }
        if (now_ns() >= until) {
            kill_everything(&watch);
            conclude(job, TEST_BROKEN, format_text("ran longer than %u s", job->seconds));
        }
    }
    until = now_ns() + grace_ns * test_scale();
    for (reap(&watch); !watch.alone && now_ns() < until; reap(&watch)) {
        if (!sleep_until(until)) {
            break;
        }
    }
    if (!watch.alone) {
        char names[256] = "";
        each_child(name_child, names);
        kill_everything(&watch);
        conclude(job, TEST_BROKEN, format_text("left processes behind: %s", names));
    }
    judge(job, watch.status);
}

void process_start(struct job *job) {
    if (mkdir(job->directory, 0777) != 0) {
        die("cannot make %s: %s", job->directory, strerror(errno));
    }
    pid_t runner = getpid();
    job->started = now_ns();
    fflush(NULL);
    job->watcher = fork();
    if (job->watcher < 0) {
        die("fork: %s", strerror(errno));
    }
    if (job->watcher == 0) {
        sigset_t set;
        watched_signals(&set);
        sigprocmask(SIG_BLOCK, &set, NULL);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != runner) {
            _exit(TEST_FAILED);
        }
        watch_test(job);
    }
}

/* A test says why it skips in its last line. */
static void find_skip_reason(struct job *job) {
    char *path = format_text("%s/output", job->directory);
    char *text = read_file(path);
    if (text != NULL) {
        size_t length = strlen(text);
        while (length > 0 && text[length - 1] == '\n') {
            text[--length] = '\0';
        }
        char *line = strrchr(text, '\n');
        line = line ? line + 1 : text;
        if (strncmp(line, "skip: ", 6) == 0) {
            line += 6;
        }
        snprintf(job->why, sizeof job->why, "%s", line);
    }
    free(text);
    free(path);
}

/* Reports are files; those of the undefined behaviour sanitizer are lines among the output. */
static bool has_sanitizer_report(const struct job *job) {
    if (BULKHEAD_SANITIZE[0] == '\0') {
        return false;
    }
    char *path = format_text("%s/output", job->directory);
    char *text = read_file(path);
    bool found = text != NULL && strstr(text, ": runtime error: ") != NULL;
    free(text);
    free(path);
    DIR *directory = opendir(job->directory);
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        found = found || strncmp(entry->d_name, "san.", 4) == 0;
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return found;
}

void process_finish(struct job *job, int status) {
    job->ended = now_ns();
    job->watcher = 0;
    job->result = WIFEXITED(status) ? WEXITSTATUS(status) : TEST_FAILED;
    char *path = format_text("%s/why", job->directory);
    char *why = read_file(path);
    snprintf(job->why, sizeof job->why, "%s", why ? why : "its watcher died");
    if (has_sanitizer_report(job)) {
        job->result = TEST_BROKEN;
        snprintf(job->why, sizeof job->why, "sanitizer report");
    } else if (job->result == TEST_SKIPPED) {
        find_skip_reason(job);
    }
    free(why);
    free(path);
}

char *process_read(char *const argv[]) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        die("pipe: %s", strerror(errno));
    }
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        die("fork: %s", strerror(errno));
    }
    if (child == 0) {
        process_prepare_child();
        dup2(ends[1], STDOUT_FILENO);
        execv(argv[0], argv);
        _exit(127);
    }
    close(ends[1]);
    char *text = malloc(1);
    size_t size = 0;
    bool alive = true;
    uint64_t until = now_ns() + 60000000000ull;
    while (alive && text != NULL) {
        struct pollfd waiting = {.fd = ends[0], .events = POLLIN};
        char block[4096];
        ssize_t got = poll(&waiting, 1, 1000) == 1 ? read(ends[0], block, sizeof block) : -1;
        if (got > 0) {
            text = realloc(text, size + (size_t)got + 1);
            memcpy(text + size, block, (size_t)got);
            size += (size_t)got;
        }
        alive = got != 0 && now_ns() < until;
    }
    close(ends[0]);
    if (now_ns() >= until) {
        kill(child, SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (text == NULL || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        free(text);
        return NULL;
    }
    text[size] = '\0';
    return text;
}
