/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one job. A child process compiles, within its limits. This process waits for the child, for
 * the time limit and for the end of the application, and writes the answer if the child has failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/environment.h"
#include "compiler/compile.h"

enum { EXIT_ANSWERED = 0, EXIT_FAILED = 1, EXIT_NO_JOB = 2 };

#define STACK_BYTES ((rlim_t)64 << 20) /* compilers recurse */
/* The limit of each file that is written. Output, log and answer are memfds, which the limit on
 * address space does not count. */
#define FILE_BYTES ((uint64_t)1 << 30)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITS_MEMORY 0 /* sanitizers reserve huge amounts of address space */
#else
#define LIMITS_MEMORY 1
#endif

/* ---- in the child ---- */

static void set_limit(int which, rlim_t wanted) {
    struct rlimit limit;
    if (getrlimit(which, &limit) != 0) return;
    if (limit.rlim_max != RLIM_INFINITY && wanted > limit.rlim_max) wanted = limit.rlim_max;
    limit.rlim_cur = wanted;
    setrlimit(which, &limit);
}

/* Lowers the hard limit too, so that code which takes over the process cannot raise it. */
static void set_limit_for_good(int which, rlim_t wanted) {
    struct rlimit limit;
    if (getrlimit(which, &limit) != 0) return;
    if (limit.rlim_max == RLIM_INFINITY || wanted < limit.rlim_max) limit.rlim_max = wanted;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(which, &limit);
}

static void set_limits(const bh__compile_job *job) {
    uint64_t memory = job->memory_limit;
    set_limit_for_good(RLIMIT_CORE, 0);
    set_limit(RLIMIT_STACK, STACK_BYTES);
    signal(SIGXFSZ, SIG_IGN); /* a write that fails is reported; a signal would be a crash */
    set_limit_for_good(RLIMIT_FSIZE, (rlim_t)(memory && memory < FILE_BYTES ? memory : FILE_BYTES));
    if (LIMITS_MEMORY && memory) set_limit_for_good(RLIMIT_AS, (rlim_t)memory);
}

/* A compiler's result may depend only on the job and on where compilers are found. */
static void clear_environment(bool keep_environment) {
    if (chdir("/") != 0) _exit(EXIT_FAILED);
    umask(077);
    if (keep_environment) return;
    const char *path = bh__environment("PATH");
    char *copy = path ? strdup(path) : NULL;
    clearenv();
    setenv("LC_ALL", "C", 1);
    setenv("TMPDIR", "/tmp", 1);
    if (copy != NULL) setenv("PATH", copy, 1);
    free(copy);
}

static bh_status work(bh__compile *c) {
    const bh__compile_job *job = c->job;
    bool path_known = job->compiler_path.count > 0;
    if (job->op == BH__COMPILE_PROBE) return bh__compile_probe(c);
    if (job->op == BH__COMPILE_NATIVE) return bh__compile_native(c);
    bh_status status = bh__job_options_check(job, &c->answer->error);
    if (status != BH_OK) return status;
    clear_environment(!path_known);
    if (job->op == BH__COMPILE_LINK) return bh__compile_link(c);
    if (job->compiler == BH_COMPILER_CLANG) return bh__compile_clang(c);
    return bh__compile_nvrtc(c);
}

static _Noreturn void be_worker(const bh__compile_job *job, bh__arena *arena, int answer_fd,
                                pid_t parent) {
    bh__compile_answer answer = {0};
    bh__compile c = {job, arena, &answer};
    bh__die_with(parent);
    set_limits(job);
    if (chdir("/") != 0) _exit(EXIT_FAILED);
    bh_status status = work(&c);
    bh__compile_bound_log(&c);
    if (status != BH_OK) {
        answer.output = (bh__bytes){NULL, 0};
        answer.lowered.count = 0;
    }
    /* All or nothing: if the answer exceeds the limits, the parent reports it. */
    _exit(bh__compile_answer_write(answer_fd, &answer) ? EXIT_ANSWERED : EXIT_FAILED);
}

/* ---- in the parent ---- */

static int watch_process(pid_t pid) {
    return pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

typedef enum outcome { ENDED, OVERRAN, ORPHANED } outcome;

static outcome wait_for_end(pid_t worker, pid_t application, int application_fd,
                            uint64_t deadline) {
    int own = watch_process(worker);
    for (;;) {
        uint64_t left = bh__time_left(deadline);
        if (left == 0) return OVERRAN;
        uint64_t ms = left == BH__NEVER ? 60000 : left / BH__NS_PER_MS + 1;
        /* Without pidfds the processes are polled. */
        int wait = own < 0 || application_fd < 0 ? 10 : ms > 60000 ? 60000 : (int)ms;
        struct pollfd look[2] = {{.fd = own, .events = POLLIN},
                                 {.fd = application_fd, .events = POLLIN}};
        int count = poll(look, 2, wait);
        if (count > 0 && look[1].revents) return ORPHANED;
        if (count > 0 && look[0].revents) return ENDED;
        siginfo_t info = {0};
        if (application_fd < 0 && getppid() != application) return ORPHANED;
        if (own < 0 && waitid(P_PID, (id_t)worker, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid != 0)
            return ENDED;
    }
}

/* What was printed to standard error, if that is a memfd. */
static bh__bytes printed(bh__arena *arena) {
    struct stat info;
    bh__bytes bytes = {NULL, 0};
    if (fstat(STDERR_FILENO, &info) == 0 && S_ISREG(info.st_mode))
        bytes = bh__read_file(arena, STDERR_FILENO);
    if (bytes.data == NULL || memchr(bytes.data, 0, bytes.count) != NULL)
        bytes = (bh__bytes){(const uint8_t *)"", 0};
    return bytes;
}

static bool ran_out_of_memory(const bh__compile_job *job, bh__bytes said) {
    struct rusage used;
    if (bh__is_memory_error(bh__chars(said))) return true;
    /* A child that died near its memory limit is assumed to have died of it. */
    return LIMITS_MEMORY && job->memory_limit && getrusage(RUSAGE_CHILDREN, &used) == 0 &&
           (uint64_t)used.ru_maxrss * 1024 > job->memory_limit / 2;
}

static const char *compiler_name(const bh__compile_job *job) {
    if (job->op == BH__COMPILE_LINK) return job->compiler_path.count ? "nvJitLink" : "the linker";
    if (job->op == BH__COMPILE_PROBE) return "the search for compilers";
    if (job->op == BH__COMPILE_NATIVE) return "LLVM";
    return job->compiler == BH_COMPILER_CLANG ? "clang" : "NVRTC";
}

static int answer_for(const bh__compile_job *job, bh__arena *arena, int answer_fd, outcome how,
                      int status) {
    bh__compile_answer answer = {.log = printed(arena)};
    bh_error *error = &answer.error;
    const char *name = compiler_name(job);
    unsigned long long limit_ms = job->time_limit_ns / BH__NS_PER_MS;
    bh__compile c = {job, arena, &answer};
    if (how == OVERRAN)
        bh__fail(error, BH_E_COMPILE, "raise timeout_ns, or simplify the source",
                 "%s timed out after %llu.%03llu s and was ended", name, limit_ms / 1000,
                 limit_ms % 1000);
    else if (ran_out_of_memory(job, answer.log))
        bh__compile_over_limit(&c, name);
    else if (WIFSIGNALED(status))
        bh__fail(error, BH_E_COMPILE,
                 job->op == BH__COMPILE_LINK
                     ? "see the log; declare each name in the same way in all parts"
                     : "make the source smaller until it compiles, or use another compiler",
                 "%s crashed: %s", name, strsignal(WTERMSIG(status)));
    else
        bh__fail(error, BH_E_COMPILE, "see the log, or use another compiler",
                 "%s exited with status %d before it was done", name, WEXITSTATUS(status));
    bh__compile_bound_log(&c);
    if (ftruncate(answer_fd, 0) != 0) return EXIT_FAILED;
    return bh__compile_answer_write(answer_fd, &answer) ? EXIT_ANSWERED : EXIT_FAILED;
}

static int serve(const bh__compile_job *job, bh__arena *arena, int answer_fd) {
    uint64_t deadline = job->time_limit_ns ? bh__deadline_after(job->time_limit_ns) : BH__NEVER;
    /* A process group of its own, so that whoever ends it ends its children too. */
    setpgid(0, 0);
    pid_t application = getppid();
    int watched = watch_process(application);
    /* The application may have ended before it could be watched: then the parent has changed. */
    if (getppid() != application || (job->parent && (pid_t)job->parent != application))
        return EXIT_FAILED;
    pid_t self = getpid(), worker = fork();
    if (worker == 0) be_worker(job, arena, answer_fd, self);
    if (worker < 0) {
        fprintf(stderr, "bulkhead-compiler: the child process cannot be started: %s\n",
                strerror(errno));
        return EXIT_FAILED;
    }
    outcome how = wait_for_end(worker, application, watched, deadline);
    int status = 0;
    if (how != ENDED) kill(worker, SIGKILL); /* and all processes that it started */
    while (waitpid(worker, &status, 0) < 0 && errno == EINTR) continue;
    if (how == ORPHANED) return EXIT_FAILED;
    if (how == ENDED && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_ANSWERED)
        return EXIT_ANSWERED;
    return answer_for(job, arena, answer_fd, how, status);
}

int bh__job_run(int job_fd, int answer_fd) {
    bh__arena arena = {0};
    bh__compile_job job;
    int code = EXIT_NO_JOB;
    fcntl(job_fd, F_SETFD, FD_CLOEXEC);
    fcntl(answer_fd, F_SETFD, FD_CLOEXEC);
    if (bh__compile_job_read(job_fd, &arena, &job))
        code = serve(&job, &arena, answer_fd);
    else
        fprintf(stderr, "bulkhead-compiler: descriptor %d has no job of this version\n", job_fd);
    bh__arena_free(&arena);
    return code;
}
