/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a program, kills it, and detects its end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "client/core/fork.h"
#include "client/process/environment.h"
#include "client/process/spawn.h"
#include "client/process/watch_child.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

enum { FIRST_FREE_FD = 10, MAX_GIVEN = 8 };

/* Some tools print a warning for each call to pidfd_open that they do not know, so an unsupported
 * call is made only once. */
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

static bool is_given(const bh__given_fd *given, size_t count, int number) {
    for (size_t i = 0; i < count; i++) {
        if (given[i].number == number) return true;
    }
    return false;
}

/* The program, and an attacker who controls it, must not get the application's other
 * descriptors. */
static int close_others(posix_spawn_file_actions_t *actions, const bh__given_fd *given,
                        size_t count) {
    int failed = 0;
    for (int number = 3; number < FIRST_FREE_FD && !failed; number++) {
        if (!is_given(given, count, number))
            failed = posix_spawn_file_actions_addclose(actions, number);
    }
    return failed ? failed : posix_spawn_file_actions_addclosefrom_np(actions, FIRST_FREE_FD);
}

static int add_descriptors(posix_spawn_file_actions_t *actions, const bh__given_fd *given,
                           size_t count) {
    int failed = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (!failed) failed = posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0);
    for (size_t i = 0; i < count && !failed; i++)
        failed = posix_spawn_file_actions_adddup2(actions, given[i].fd, given[i].number);
    return failed ? failed : close_others(actions, given, count);
}

static int start(const char *path, const bh__given_fd *given, size_t count,
                 const char *const *variables, pid_t *out) {
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
    char **environment = bh__environment_for(variables);
    if (!failed && !environment) failed = ENOMEM;
    if (!failed) failed = posix_spawn(out, path, &actions, &attributes, arguments, environment);
    free(environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

static bool start_watching(bh__spawned *process) {
    int fd = pidfd_of(process->pid);
    /* The process has ended and another part of the program has reaped it. A readable eventfd
     * stands in for its pidfd. */
    if (fd < 0 && errno == ESRCH) fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        process->child_watch = bh__child_watch_start(process->pid, &process->end_fd);
        return process->child_watch;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    process->end_fd = bh__fd_keep(fd);
    return true;
}

bh__spawn_step bh__spawn(const char *path, const bh__given_fd *given, size_t count,
                         const char *const *variables, bh__spawned *out, int *out_errno) {
    *out = (bh__spawned){.end_fd = -1};
    /* Duplicate to numbers that no target uses: dup2 clears close-on-exec only if source and target
     * differ. */
    bh__given_fd moved[MAX_GIVEN] = {{0}};
    int failed = count > MAX_GIVEN ? EINVAL : 0;
    size_t made = 0;
    for (; made < count && !failed; made++) {
        moved[made] = (bh__given_fd){fcntl(given[made].fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD),
                                     given[made].number};
        if (moved[made].fd < 0) {
            failed = errno;
            break;
        }
    }
    if (!failed) failed = start(path, moved, count, variables, &out->pid);
    while (made > 0) close(moved[--made].fd);
    *out_errno = failed;
    if (failed) return BH__SPAWN_START;
    if (start_watching(out)) return BH__SPAWN_DONE;
    *out_errno = errno;
    kill(out->pid, SIGKILL);
    waitpid(out->pid, NULL, 0);
    return BH__SPAWN_WATCH;
}

static int wait_nonblocking(const bh__spawned *process, siginfo_t *info, int options) {
    memset(info, 0, sizeof *info);
    return process->child_watch
               ? waitid(P_PID, (id_t)process->pid, info, options | WNOHANG)
               : waitid((idtype_t)P_PIDFD, (id_t)process->end_fd, info, options | WNOHANG);
}

/* Returns true if the pid still belongs to this process. Once the process is reaped, the system may
 * reuse its pid. */
static bool pid_is_valid(const bh__spawned *process) {
    siginfo_t info;
    return process->pid > 1 && (process->child_watch || bh__fd_is_ours(process->end_fd)) &&
           wait_nonblocking(process, &info, WEXITED | WNOWAIT) == 0;
}

void bh__spawned_kill(const bh__spawned *process) {
    if (process->child_watch) {
        if (pid_is_valid(process)) kill(process->pid, SIGKILL);
    } else if (bh__fd_is_ours(process->end_fd)) {
        syscall(SYS_pidfd_send_signal, process->end_fd, SIGKILL, NULL, 0);
    }
}

void bh__spawned_kill_group(const bh__spawned *process) {
    if (pid_is_valid(process)) kill(-process->pid, SIGKILL);
}

bool bh__spawned_gone(const bh__spawned *process, bh__process_end *out_end) {
    memset(out_end, 0, sizeof *out_end);
    if (!bh__fd_is_ours(process->end_fd)) { /* closed by the program: fall back to the pid */
        pid_t ended = waitpid(process->pid, NULL, WNOHANG);
        return ended != 0;
    }
    struct pollfd poll_fd = {.fd = process->end_fd, .events = POLLIN};
    if (poll(&poll_fd, 1, 0) <= 0 || !(poll_fd.revents & POLLIN)) return false;
    siginfo_t info;
    if (wait_nonblocking(process, &info, WEXITED) == 0 && info.si_pid != 0) {
        out_end->known = true;
        bool exited = info.si_code == CLD_EXITED;
        out_end->exit_code = exited ? info.si_status : -1;
        out_end->signal = exited ? 0 : info.si_status;
    }
    return true;
}

/* Returns true if the process is not reaped and cannot be at the moment. It has not ended although
 * it was killed; or it has, and a tracer (a debugger, a leak checker) has not let go of it: then
 * its pidfd is readable, and only the tracer can wait for it. */
static bool is_left(const bh__spawned *process) {
    siginfo_t info;
    return bh__fd_is_ours(process->end_fd) && wait_nonblocking(process, &info, WEXITED) == 0 &&
           info.si_pid == 0;
}

static void *reap_later(void *argument) {
    int fd = (int)(intptr_t)argument;
    siginfo_t info;
    while (waitid((idtype_t)P_PIDFD, (id_t)fd, &info, WEXITED) < 0 && errno == EINTR) continue;
    bh__fd_close(fd);
    return NULL;
}

void bh__spawned_close(bh__spawned *process) {
    pthread_t thread;
    if (process->child_watch)
        bh__child_watch_end(process->child_watch);
    else if (is_left(process) &&
             bh__thread_start(&thread, NULL, reap_later, (void *)(intptr_t)process->end_fd) == 0)
        pthread_detach(thread);
    else if (process->end_fd >= 0)
        bh__fd_close(process->end_fd);
    process->end_fd = -1;
    process->child_watch = NULL;
}

int bh__spawn_self(void) {
    return pidfd_of(getpid());
}
