/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's process, started with exec and watched through a pidfd. */
#include "client/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/internal.h"

extern char **environ;

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

enum { WORKER_SOCKET = 3 };

static int pidfd_of(pid_t pid) {
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Descriptor 3 of the child is `socket`. posix_spawn's dup2 clears close-on-exec, unless source and
 * target are the same descriptor, so the socket is moved out of the way first. */
static int spawn(const char *path, int socket, int errors, pid_t *out) {
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
    if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, errors, 2);
    if (!failed) failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!failed) failed = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, socket, WORKER_SOCKET);
    char *arguments[] = {(char *)(uintptr_t)path, NULL};
    if (!failed) failed = posix_spawn(out, path, &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

bh_status bh__process_start(const char *path, int socket, int errors, bh__process *out,
                            bh_error *error) {
    char text[128];
    memset(out, 0, sizeof *out);
    out->pidfd = -1;
    /* Out of the way of the descriptors that the child is given. */
    int moved = fcntl(socket, F_DUPFD_CLOEXEC, 10);
    int moved_errors = fcntl(errors, F_DUPFD_CLOEXEC, 10);
    int failed =
        moved < 0 || moved_errors < 0 ? errno : spawn(path, moved, moved_errors, &out->pid);
    if (moved >= 0) close(moved);
    if (moved_errors >= 0) close(moved_errors);
    if (failed) {
        return bh__fail(
            error, BH_E_NO_DEVICE,
            failed == EACCES
                ? "make the worker program executable (chmod +x), on a file system not mounted noexec"
                : "reinstall Bulkhead, or name the worker programs' folder in worker_dir",
            "cannot start %s: %s", path, bh__errno_text(failed, text, sizeof text));
    }
    int pidfd = pidfd_of(out->pid);
    if (pidfd < 0) {
        int number = errno;
        kill(out->pid, SIGKILL);
        waitpid(out->pid, NULL, 0);
        return bh__fail(error, BH_E_NO_DEVICE, "run on Linux 5.4 or later with pidfd_open allowed",
                        "cannot watch process %d: %s", (int)out->pid,
                        bh__errno_text(number, text, sizeof text));
    }
    fcntl(pidfd, F_SETFD, FD_CLOEXEC);
    out->pidfd = bh__fd_keep(pidfd);
    return BH_OK;
}

void bh__process_kill(const bh__process *process) {
    if (bh__fd_is_ours(process->pidfd))
        syscall(SYS_pidfd_send_signal, process->pidfd, SIGKILL, NULL, 0);
}

bool bh__process_gone(const bh__process *process, bh__process_end *out_end) {
    memset(out_end, 0, sizeof *out_end);
    if (!bh__fd_is_ours(process->pidfd)) { /* closed by the program: as good as can be had */
        pid_t ended = waitpid(process->pid, NULL, WNOHANG);
        return ended != 0;
    }
    struct pollfd look = {.fd = process->pidfd, .events = POLLIN};
    if (poll(&look, 1, 0) <= 0 || !(look.revents & POLLIN)) return false;
    siginfo_t info;
    memset(&info, 0, sizeof info);
    if (waitid((idtype_t)P_PIDFD, (id_t)process->pidfd, &info, WEXITED | WNOHANG) == 0 &&
        info.si_pid != 0) {
        out_end->known = true;
        bool exited = info.si_code == CLD_EXITED;
        out_end->exit_code = exited ? info.si_status : -1;
        out_end->signal = exited ? 0 : info.si_status;
    }
    return true;
}

void bh__process_close(bh__process *process) {
    if (process->pidfd >= 0) bh__fd_close(process->pidfd);
    process->pidfd = -1;
}

int bh__process_self(void) {
    int fd = pidfd_of(getpid());
    return fd < 0 ? -errno : fd;
}
