/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One job from its descriptor to its answer. A child does the work, within its limits; this
 * process waits for it, for the time limit and for the end of the application, and answers for a
 * child that cannot do it any more.
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
#include "compile/compile.h"

enum { EXIT_ANSWERED = 0, EXIT_FAILED = 1, EXIT_NO_JOB = 2 };

#define STACK_BYTES ((rlim_t)64 << 20) /* compilers recurse */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITS_MEMORY 0 /* sanitizers reserve address space without end */
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

/* What a compiler does may depend on the job alone, and on where compilers are found. */
static void forget_surroundings(bool keep_environment) {
    if (chdir("/") != 0) _exit(EXIT_FAILED);
    umask(077);
    if (keep_environment) return;
    const char *path = getenv("PATH");
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
    bh_status status = bh__options_check(job, &c->answer->error);
    if (status != BH_OK) return status;
    forget_surroundings(!path_known);
    if (job->op == BH__COMPILE_LINK) return bh__compile_link(c);
    if (job->compiler == BH_COMPILER_CLANG) return bh__compile_clang(c);
    return bh__compile_nvrtc(c);
}

static _Noreturn void be_worker(const bh__compile_job *job, bh__arena *arena, int answer_fd,
                                pid_t parent) {
    bh__compile_answer answer = {0};
    bh__compile c = {job, arena, &answer};
    bh__die_with(parent);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    set_limit(RLIMIT_STACK, STACK_BYTES);
    if (LIMITS_MEMORY && job->memory_limit) set_limit(RLIMIT_AS, (rlim_t)job->memory_limit);
    if (chdir("/") != 0) _exit(EXIT_FAILED);
    bh_status status = work(&c);
    if (status != BH_OK) {
        answer.output = (bh__bytes){NULL, 0};
        answer.lowered.count = 0;
    }
    /* Whole or not at all: what the limits leave no room for is told by the parent. */
    _exit(bh__compile_answer_write(answer_fd, &answer) ? EXIT_ANSWERED : EXIT_FAILED);
}

/* ---- in the parent ---- */

static int watch_process(pid_t pid) {
    return pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

typedef enum outcome { ENDED, OVERRAN, ORPHANED } outcome;

static outcome await(pid_t worker, pid_t application, int application_fd, uint64_t deadline) {
    int own = watch_process(worker);
    for (;;) {
        uint64_t left = bh__time_left(deadline);
        if (left == 0) return OVERRAN;
        uint64_t ms = left == BH__NEVER ? 60000 : left / BH__NS_PER_MS + 1;
        /* Without descriptors for processes, short looks will do. */
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

/* What was printed to standard error, where that is a file of memory. */
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
    if (bh__tells_of_memory(bh__chars(said))) return true;
    /* A child that died with most of its limit in use died of that. */
    return LIMITS_MEMORY && job->memory_limit && getrusage(RUSAGE_CHILDREN, &used) == 0 &&
           (uint64_t)used.ru_maxrss * 1024 > job->memory_limit / 2;
}

static const char *compiler_name(const bh__compile_job *job) {
    if (job->op == BH__COMPILE_LINK) return "nvJitLink";
    if (job->op == BH__COMPILE_PROBE) return "the search for compilers";
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
        bh__fail(error, BH_E_COMPILE, "raise timeout_ns, or make the source easier on the compiler",
                 "%s was not done after %llu.%03llu s and was ended", name, limit_ms / 1000,
                 limit_ms % 1000);
    else if (ran_out_of_memory(job, answer.log))
        bh__compile_over_limit(&c, name);
    else if (WIFSIGNALED(status))
        bh__fail(error, BH_E_COMPILE,
                 "make the source smaller until it compiles, or use another compiler",
                 "%s crashed: %s", name, strsignal(WTERMSIG(status)));
    else
        bh__fail(error, BH_E_COMPILE, "see the log, or use another compiler",
                 "%s ended by itself with status %d before it was done", name, WEXITSTATUS(status));
    if (ftruncate(answer_fd, 0) != 0) return EXIT_FAILED;
    return bh__compile_answer_write(answer_fd, &answer) ? EXIT_ANSWERED : EXIT_FAILED;
}

static int serve(const bh__compile_job *job, bh__arena *arena, int answer_fd) {
    uint64_t deadline = job->time_limit_ns ? bh__deadline_after(job->time_limit_ns) : BH__NEVER;
    /* Own group: whoever ends it ends what it started too. */
    setpgid(0, 0);
    pid_t application = getppid();
    int watched = watch_process(application);
    /* It may have ended before it could be watched: then somebody else is the parent now. */
    if (getppid() != application || (job->parent && (pid_t)job->parent != application))
        return EXIT_FAILED;
    pid_t self = getpid(), worker = fork();
    if (worker == 0) be_worker(job, arena, answer_fd, self);
    if (worker < 0) {
        fprintf(stderr, "bulkhead-compiler: no process for the work: %s\n", strerror(errno));
        return EXIT_FAILED;
    }
    outcome how = await(worker, application, watched, deadline);
    int status = 0;
    if (how != ENDED) kill(worker, SIGKILL); /* and with it all that it started */
    while (waitpid(worker, &status, 0) < 0 && errno == EINTR) continue;
    if (how == ORPHANED) return EXIT_FAILED;
    if (how == ENDED && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_ANSWERED)
        return EXIT_ANSWERED;
    return answer_for(job, arena, answer_fd, how, status);
}

int bh__compiler_run(int job_fd, int answer_fd) {
    bh__arena arena = {0};
    bh__compile_job job;
    int code = EXIT_NO_JOB;
    fcntl(job_fd, F_SETFD, FD_CLOEXEC);
    fcntl(answer_fd, F_SETFD, FD_CLOEXEC);
    if (bh__compile_job_read(job_fd, &arena, &job))
        code = serve(&job, &arena, answer_fd);
    else
        fprintf(stderr, "bulkhead-compiler: descriptor %d holds no job of this version\n", job_fd);
    bh__arena_free(&arena);
    return code;
}
