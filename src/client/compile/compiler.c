/* SPDX-License-Identifier: Apache-2.0 */
/* One run of bulkhead-compiler: a job in, an answer out. The process is not trusted: it may crash,
 * hang or answer anything. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_signal.h"
#include "base/plain_text.h"
#include "client/compile/compiler.h"
#include "client/compile/in_flight.h"
#include "client/core/fork.h"
#include "client/process/environment.h"
#include "client/process/spawn.h"

/* bulkhead-compiler enforces the time limit itself too, this much later. */
#define GRACE_NS (2 * BH__NS_PER_S)
/* How long to wait for a killed process to end. */
#define KILL_WAIT_NS (10 * BH__NS_PER_S)

enum { MAX_ERRORS = 1 << 20 }; /* bytes kept of standard error */

void bh__run_abandon(bh__run_control *control) {
    control->abandoned = true;
    if (!control->running) return;
    bh__spawned_kill_group(&control->process);
    bh__spawned_kill(&control->process);
}

static bool wait_gone(const bh__spawned *process, uint64_t deadline, bh__process_end *end) {
    for (;;) {
        /* Its process group is killed before it is reaped: until then the ID cannot be reused. */
        struct pollfd look = {.fd = process->end_fd, .events = POLLIN};
        uint64_t left = bh__time_left(deadline), max = 100 * BH__NS_PER_MS;
        if (!bh__fd_is_ours(process->end_fd)) { /* the application closed it: poll instead */
            look.fd = -1;
            max = 5 * BH__NS_PER_MS;
        }
        struct timespec pause = bh__timespec(left < max ? left : max);
        int ready = ppoll(&look, 1, &pause, NULL);
        if (ready > 0 || look.fd < 0) {
            bh__spawned_kill_group(process);
            if (bh__spawned_gone(process, end)) return true;
        }
        if (left == 0) return false;
    }
}

/* Returns the last MAX_ERRORS bytes that the process wrote to standard error. */
static char *read_errors(int fd) {
    struct stat info;
    size_t size = fstat(fd, &info) == 0 && info.st_size > 0 ? (size_t)info.st_size : 0;
    size_t keep = size < MAX_ERRORS ? size : MAX_ERRORS, got = 0;
    char *text = malloc(keep + 1);
    if (!text) return NULL;
    ssize_t some;
    while (got < keep && (some = pread(fd, text + got, keep - got, (off_t)(size - keep + got))) > 0)
        got += (size_t)some;
    text[got] = 0;
    for (size_t i = 0; i < got; i++) {
        if (!text[i]) text[i] = '?';
    }
    return text;
}

static char *join_logs(const char *log, const char *errors) {
    if (!errors) errors = "";
    size_t first = strlen(log), second = strlen(errors);
    char *all = malloc(first + second + 2);
    if (!all) return NULL;
    memcpy(all, log, first);
    if (first && second && log[first - 1] != '\n') all[first++] = '\n';
    memcpy(all + first, errors, second + 1);
    return all;
}

/* The last line of the text, for messages. */
static void last_line(const char *text, char *out, size_t size) {
    size_t end = text ? strlen(text) : 0;
    while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' ')) end--;
    size_t begin = end;
    while (begin > 0 && text[begin - 1] != '\n') begin--;
    snprintf(out, size, "%.*s", (int)(end - begin), text ? text + begin : "");
}

static bh_status refuse_start(bh_error *error, const char *program, int number) {
    char text[128];
    return bh__fail(
        error,
        number == EMFILE || number == ENFILE || number == ENOMEM ? BH_E_NO_HOST_MEMORY
                                                                 : BH_E_COMPILE,
        number == EACCES
            ? "make bulkhead-compiler executable (chmod +x), on a file system not mounted noexec"
            : bh__errno_fix(number,
                            "reinstall Bulkhead, or pass the folder of bulkhead-compiler in "
                            "compiler_dir"),
        "cannot start %.300s: %s", program, bh__errno_text(number, text, sizeof text));
}

static bh_status refuse_end(bh_error *error, const bh__process_end *end, const char *errors) {
    char line[220];
    last_line(errors, line, sizeof line);
    const char *gap = *line ? "; its last line: " : "";
    static const char fix[] = "read the whole log (bh_compile_log); try the other compiler, or a "
                              "smaller source";
    if (end->known && end->signal) {
        return bh__fail(error, BH_E_COMPILE,
                        end->signal == SIGKILL
                            ? "find out who killed it; if memory ran out, raise memory_limit"
                            : fix,
                        "the compiler was killed by signal %d (%s)%s%s", end->signal,
                        strsignal(end->signal), gap, line);
    }
    if (end->known && end->exit_code) {
        return bh__fail(error, BH_E_COMPILE, fix, "the compiler exited with status %d%s%s",
                        end->exit_code, gap, line);
    }
    return bh__fail(error, BH_E_COMPILE, "install the library and its programs from one version",
                    "the compiler returned an invalid answer%s%s", gap, line);
}

/* Returns true if a well-formed answer is a possible answer to this job. */
static bool answer_fits(const bh__compile_job *job, const bh__compile_answer *answer) {
    if (answer->error.status != BH_OK) return answer->error.message[0] != 0;
    if (job->op == BH__COMPILE_PROBE) return true;
    bool both = job->output == (BH_OUTPUT_PTX | BH_OUTPUT_CUBIN);
    return answer->output.count > 0 && (answer->ptx.count > 0) == both &&
           answer->lowered.count == job->expressions.count;
}

/* A status that a compile can end with. A wait would take others for its own. */
static bh_status status_of_compiler(bh_status said) {
    switch (said) {
    case BH_E_INVALID:
    case BH_E_NOT_FOUND:
    case BH_E_UNSUPPORTED:
    case BH_E_NO_HOST_MEMORY:
    case BH_E_LOAD:
    case BH_E_IO:
        return said;
    default:
        return BH_E_COMPILE;
    }
}

/* The answer's error as bh_last_error may show it. */
static void take_error(const bh_error *said, bh_error *error) {
    bh_error copy = *said;
    BH__PLAIN(copy.kernel);
    bh__fail(error, status_of_compiler(said->status), copy.fix, "%s", copy.message);
    memcpy(error->kernel, copy.kernel, sizeof copy.kernel);
}

static void plain_bytes(bh__bytes text) {
    bh__plain_text((char *)(uintptr_t)text.data, text.count);
}

/* Texts that go into messages. They lie in the arena. */
static void clean_texts(bh__compile_answer *answer) {
    plain_bytes(answer->version);
    plain_bytes(answer->arch);
    for (size_t i = 0; i < answer->found_count; i++) {
        plain_bytes(answer->found[i].version);
        plain_bytes(answer->found[i].why);
    }
}

typedef struct run {
    int job, answer, errors; /* descriptors */
    bh__spawned process;
    bh__process_end end;
} run;

static void run_close(run *self) {
    bh__fd_close(self->job);
    bh__fd_close(self->answer);
    bh__fd_close(self->errors);
    bh__spawned_close(&self->process);
}

static bh_status run_start(run *self, const char *program, const bh__compile_job *job,
                           bh_error *error) {
    bh__file_signal signals;
    bh__file_signal_block(&signals);
    self->job = bh__fd_keep(bh__compile_job_write(job));
    bh__file_signal_restore(&signals);
    if (self->job < 0) return refuse_start(error, program, -self->job);
    self->answer = bh__fd_keep(memfd_create("bulkhead-answer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    self->errors = bh__fd_keep(memfd_create("bulkhead-log", MFD_CLOEXEC));
    if (self->answer < 0 || self->errors < 0) return refuse_start(error, program, errno);
    const bh__given_fd given[] = {
        {self->errors, 2}, {self->job, BH__COMPILE_JOB_FD}, {self->answer, BH__COMPILE_ANSWER_FD}};
    int number;
    if (bh__spawn(program, given, 3, bh__compiler_variables, &self->process, &number) !=
        BH__SPAWN_DONE)
        return refuse_start(error, program, number);
    return BH_OK;
}

/* Waits for the process to end. Kills it when the time limit is reached. */
static bh_status run_wait(run *self, bh__run_control *control, uint64_t limit_ns, bh_error *error) {
    bh__compile_lock();
    control->process = self->process;
    control->running = true;
    if (control->abandoned) bh__run_abandon(control);
    bh__compile_unlock();
    bool in_time = wait_gone(&self->process, bh__deadline_after(limit_ns), &self->end);
    if (!in_time) {
        bh__spawned_kill_group(&self->process);
        bh__spawned_kill(&self->process);
        (void)wait_gone(&self->process, bh__deadline_after(KILL_WAIT_NS), &self->end);
    }
    bh__compile_lock();
    control->running = false;
    bool abandoned = control->abandoned;
    bh__compile_unlock();
    if (abandoned) {
        return bh__fail(error, BH_E_CANCELLED, "submit it again if it is still needed",
                        "the compile was cancelled");
    }
    if (!in_time) {
        return bh__fail(
            error, BH_E_COMPILE, "raise timeout_ns, or find out why the compiler is slow",
            "the compiler timed out: it was killed after %.3f s", (double)limit_ns / 1e9);
    }
    return BH_OK;
}

bh_status bh__compiler_run(const char *program, const bh__compile_job *given,
                           bh__run_control *control, bh__arena *arena, bh__compile_answer *answer,
                           char **out_log, bh_error *error) {
    bh__compile_job job = *given;
    uint64_t limit = job.time_limit_ns;
    if (job.time_limit_ns < UINT64_MAX - GRACE_NS) job.time_limit_ns += GRACE_NS;
    memset(answer, 0, sizeof *answer);
    *out_log = NULL;
    run self = {-1, -1, -1, {.end_fd = -1}, {0}};
    bh_status status = run_start(&self, program, &job, error);
    if (status == BH_OK) {
        status = run_wait(&self, control, limit, error);
        char *errors = read_errors(self.errors);
        bool succeeded = !self.end.known || (self.end.exit_code == 0 && !self.end.signal);
        if (status == BH_OK &&
            (!succeeded || !bh__compile_answer_read(self.answer, arena, answer) ||
             !answer_fits(&job, answer))) {
            memset(answer, 0, sizeof *answer);
            status = refuse_end(error, &self.end, errors);
        }
        if (status == BH_OK && answer->error.status != BH_OK) {
            take_error(&answer->error, error);
            status = error->status;
        }
        if (status == BH_OK) clean_texts(answer);
        *out_log = join_logs(answer->log.data ? (const char *)answer->log.data : "", errors);
        free(errors);
    }
    run_close(&self);
    return status;
}
