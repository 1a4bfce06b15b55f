/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a program with exec, ending it, and knowing that it is gone. */
#include "client/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/internal.h"
#include "client/sentry.h"

extern char **environ;

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

enum { FIRST_FREE_FD = 10, MOST_GIVEN = 8 };

/* Tools that do not know the call complain each time they see it: once is enough. */
static int pidfd_of(pid_t pid) {
    static atomic_bool unknown;
    if (atomic_load(&unknown)) {
        errno = ENOSYS;
        return -1;
    }
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0 && errno == ENOSYS) atomic_store(&unknown, true);
    return fd;
}

static int add_descriptors(posix_spawn_file_actions_t *actions, const bh__given_fd *given,
                           size_t count) {
    int failed = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (!failed) failed = posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0);
    for (size_t i = 0; i < count && !failed; i++)
        failed = posix_spawn_file_actions_adddup2(actions, given[i].fd, given[i].number);
    return failed;
}

/* Whether a variable names a library that the program would load. */
static bool names_library(const char *variable) {
    static const char *const names[] = {"NVTX_INJECTION64_PATH=", "NVTX_INJECTION32_PATH=",
                                        "CUDA_INJECTION64_PATH=", "CUDA_INJECTION32_PATH="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strncmp(variable, names[i], strlen(names[i])) == 0) return true;
    }
    return false;
}

/* What the program gets of the environment. The C library takes LD_PRELOAD and the like away from
 * set-user-ID programs, so that what these start, perhaps with all their rights, does not heed
 * them; it does not know of profilers. NULL: no memory. The caller frees it if it is not
 * `environ`. */
static char **environment_for_child(void) {
    if (!getauxval(AT_SECURE) || !environ) return environ;
    size_t count = 0, kept = 0;
    while (environ[count]) count++;
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++) {
        if (!names_library(environ[i])) copy[kept++] = environ[i];
    }
    return copy;
}

static int start(const char *path, const bh__given_fd *given, size_t count, pid_t *out) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) return failed;
    failed = posix_spawnattr_init(&attributes);
    if (failed) {
        posix_spawn_file_actions_destroy(&actions);
        return failed;
    }
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    failed = add_descriptors(&actions, given, count);
    char *arguments[] = {(char *)(uintptr_t)path, NULL};
    char **variables = environment_for_child();
    if (!failed && !variables && environ) failed = ENOMEM;
    if (!failed) failed = posix_spawn(out, path, &actions, &attributes, arguments, variables);
    if (variables != environ) free(variables);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

static bool start_watching(bh__spawned *process) {
    int fd = pidfd_of(process->pid);
    /* Ended already, and reaped by another part of the program: an eventfd that is readable says the
     * same as its pidfd would. */
    if (fd < 0 && errno == ESRCH) fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        process->sentry = bh__sentry_start(process->pid, &process->end_fd);
        return process->sentry;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    process->end_fd = bh__fd_keep(fd);
    return true;
}

bh__spawn_step bh__spawn(const char *path, const bh__given_fd *given, size_t count,
                         bh__spawned *out, int *out_errno) {
    *out = (bh__spawned){.end_fd = -1};
    /* Moved out of the way of the numbers that the program is given: dup2 clears close-on-exec only
     * where source and target differ. */
    bh__given_fd moved[MOST_GIVEN] = {{0}};
    int failed = count > MOST_GIVEN ? EINVAL : 0;
    size_t made = 0;
    for (; made < count && !failed; made++) {
        moved[made] = (bh__given_fd){fcntl(given[made].fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD),
                                     given[made].number};
        if (moved[made].fd < 0) {
            failed = errno;
            break;
        }
    }
    if (!failed) failed = start(path, moved, count, &out->pid);
    while (made > 0) close(moved[--made].fd);
    *out_errno = failed;
    if (failed) return BH__SPAWN_START;
    if (start_watching(out)) return BH__SPAWN_DONE;
    *out_errno = errno;
    kill(out->pid, SIGKILL);
    waitpid(out->pid, NULL, 0);
    return BH__SPAWN_WATCH;
}

static int wait_now(const bh__spawned *process, siginfo_t *info, int options) {
    memset(info, 0, sizeof *info);
    return process->sentry
               ? waitid(P_PID, (id_t)process->pid, info, options | WNOHANG)
               : waitid((idtype_t)P_PIDFD, (id_t)process->end_fd, info, options | WNOHANG);
}

/* Neither running nor unreaped, its number may be somebody else's by now. */
static bool number_is_its(const bh__spawned *process) {
    siginfo_t info;
    return process->pid > 1 && (process->sentry || bh__fd_is_ours(process->end_fd)) &&
           wait_now(process, &info, WEXITED | WNOWAIT) == 0;
}

void bh__spawned_kill(const bh__spawned *process) {
    if (process->sentry) {
        if (number_is_its(process)) kill(process->pid, SIGKILL);
    } else if (bh__fd_is_ours(process->end_fd)) {
        syscall(SYS_pidfd_send_signal, process->end_fd, SIGKILL, NULL, 0);
    }
}

void bh__spawned_kill_group(const bh__spawned *process) {
    if (number_is_its(process)) kill(-process->pid, SIGKILL);
}

bool bh__spawned_gone(const bh__spawned *process, bh__process_end *out_end) {
    memset(out_end, 0, sizeof *out_end);
    if (!bh__fd_is_ours(process->end_fd)) { /* closed by the program: as good as can be had */
        pid_t ended = waitpid(process->pid, NULL, WNOHANG);
        return ended != 0;
    }
    struct pollfd look = {.fd = process->end_fd, .events = POLLIN};
    if (poll(&look, 1, 0) <= 0 || !(look.revents & POLLIN)) return false;
    siginfo_t info;
    if (wait_now(process, &info, WEXITED) == 0 && info.si_pid != 0) {
        out_end->known = true;
        bool exited = info.si_code == CLD_EXITED;
        out_end->exit_code = exited ? info.si_status : -1;
        out_end->signal = exited ? 0 : info.si_status;
    }
    return true;
}

void bh__spawned_close(bh__spawned *process) {
    if (process->sentry)
        bh__sentry_end(process->sentry);
    else if (process->end_fd >= 0)
        bh__fd_close(process->end_fd);
    process->end_fd = -1;
    process->sentry = NULL;
}

int bh__spawn_self(void) {
    return pidfd_of(getpid());
}
