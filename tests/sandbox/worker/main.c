/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU worker, in which some launches are attempts to get out of the sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/keyctl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "sandbox/attempts.h"
#include "worker/worker.h"

static int application; /* the process to be attacked */
static int opened_before;
static char word[8];

static int result_of(long result) {
    return result < 0 ? errno : 0;
}

static int try_open(void) {
    int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) close(fd);
    return result_of(fd);
}

static int try_link(void) {
    char text[64];
    return result_of(syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", text, sizeof text));
}

static int try_code(bool map) {
    enum { BYTES = 4096 };
    int rights = PROT_READ | PROT_WRITE;
    void *memory =
        mmap(NULL, BYTES, map ? rights | PROT_EXEC : rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int result = result_of(memory == MAP_FAILED ? -1 : 0);
    if (result == 0 && !map) result = result_of(mprotect(memory, BYTES, PROT_READ | PROT_EXEC));
    if (memory != MAP_FAILED) munmap(memory, BYTES);
    return result;
}

/* A child that must not be ends at once. */
static int try_fork(void) {
    long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) _exit(0);
    return result_of(child);
}

static int try_exec(bool at) {
    char *const arguments[] = {"/bin/true", NULL}, *const none[] = {NULL};
    return result_of(at ? syscall(SYS_execveat, AT_FDCWD, arguments[0], arguments, none, 0)
                        : syscall(SYS_execve, arguments[0], arguments, none));
}

static int try_memory(long call) {
    struct iovec here = {word, sizeof word}, there = {word, sizeof word};
    return result_of(syscall(call, application, &here, 1, &there, 1, 0));
}

static int look_at_cores(void) {
    struct rlimit limit = {0, 0};
    getrlimit(RLIMIT_CORE, &limit);
    return limit.rlim_cur > 1 ? 0 : EPERM;
}

/* The number of a call in another table: of 32 bits on x86-64. */
static int try_foreign(void) {
#if defined(__x86_64__)
    enum { X32 = 0x40000000 };
    return result_of(syscall(X32 + SYS_getpid));
#else
    return raise(SIGSYS);
#endif
}

static int try_owner(void) {
    const struct f_owner_ex owner = {F_OWNER_PID, application};
    return result_of(fcntl(BH__WORKER_SOCKET, F_SETOWN_EX, &owner));
}

/* Flags that send no signals. */
static int try_flags(void) {
    int flags = fcntl(BH__WORKER_SOCKET, F_GETFL);
    return result_of(flags < 0 ? -1 : fcntl(BH__WORKER_SOCKET, F_SETFL, flags));
}

static int try_it(enum attempt attempt) {
    static char block[128];
    switch (attempt) {
    case ATTEMPT_open_file:
        return try_open();
    case ATTEMPT_read_link:
        return try_link();
    case ATTEMPT_remove_file:
        return result_of(syscall(SYS_unlinkat, AT_FDCWD, "/there/is/no/such/file", 0));
    case ATTEMPT_map_code:
        return try_code(true);
    case ATTEMPT_make_code:
        return try_code(false);
    case ATTEMPT_own_signals:
        return result_of(fcntl(BH__WORKER_SOCKET, F_SETOWN, application));
    case ATTEMPT_own_signals_of_type:
        return try_owner();
    case ATTEMPT_own_signals_by_ioctl:
        return result_of(ioctl(BH__WORKER_SOCKET, FIOSETOWN, &application));
    case ATTEMPT_own_signals_of_socket:
        return result_of(ioctl(BH__WORKER_SOCKET, SIOCSPGRP, &application));
    case ATTEMPT_choose_signal:
        return result_of(fcntl(BH__WORKER_SOCKET, F_SETSIG, SIGKILL));
    case ATTEMPT_signal_terminal:
        return result_of(fcntl(BH__WORKER_SOCKET, F_SETFL, O_NONBLOCK | O_ASYNC));
    case ATTEMPT_signal_terminal_by_ioctl:
        return result_of(ioctl(BH__WORKER_SOCKET, FIOASYNC, &(int){1}));
    case ATTEMPT_set_flags:
        return try_flags();
    case ATTEMPT_type_into_terminal:
        return result_of(ioctl(BH__WORKER_SOCKET, TIOCSTI, "x"));
    case ATTEMPT_type_with_high_bits:
        return result_of(
            syscall(SYS_ioctl, BH__WORKER_SOCKET, UINT64_C(0xffffffff00000000) | TIOCSTI, "x"));
    case ATTEMPT_paste_into_terminal:
        return result_of(ioctl(BH__WORKER_SOCKET, TIOCLINUX, "\3"));
    case ATTEMPT_shmget:
        return result_of(syscall(SYS_shmget, IPC_PRIVATE, 4096, 0600));
    case ATTEMPT_semget:
        return result_of(syscall(SYS_semget, IPC_PRIVATE, 1, 0600));
    case ATTEMPT_msgget:
        return result_of(syscall(SYS_msgget, IPC_PRIVATE, 0600));
    case ATTEMPT_mq_open:
        return result_of(syscall(SYS_mq_open, "bulkhead-test", O_RDONLY, 0600, NULL));
    case ATTEMPT_control_device:
        return result_of(ioctl(BH__WORKER_SOCKET, FIONREAD, block));
    case ATTEMPT_clone3:
        return result_of(syscall(435, block, sizeof block));
    case ATTEMPT_signal_self:
        return result_of(kill(getpid(), 0));
    case ATTEMPT_execve:
        return try_exec(false);
    case ATTEMPT_execveat:
        return try_exec(true);
    case ATTEMPT_clone:
        return try_fork();
    case ATTEMPT_socket:
        return result_of(socket(AF_INET, SOCK_STREAM, 0));
    case ATTEMPT_socketpair:
        return result_of(socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)(void *)block));
    case ATTEMPT_connect:
        return result_of(connect(BH__WORKER_SOCKET, (struct sockaddr *)(void *)block, 16));
    case ATTEMPT_ptrace:
        return result_of(ptrace(PTRACE_SEIZE, application, NULL, NULL));
    case ATTEMPT_process_vm_readv:
        return try_memory(SYS_process_vm_readv);
    case ATTEMPT_process_vm_writev:
        return try_memory(SYS_process_vm_writev);
    case ATTEMPT_kill:
        return result_of(kill(application, 0));
    case ATTEMPT_tgkill:
        return result_of(syscall(SYS_tgkill, application, application, 0));
    case ATTEMPT_pidfd_open:
        return result_of(syscall(434, application, 0));
    case ATTEMPT_prlimit64:
        return result_of(syscall(SYS_prlimit64, application, RLIMIT_NOFILE, NULL, block));
    case ATTEMPT_mount:
        return result_of(mount("none", "/there/is/no/such/folder", "tmpfs", 0, NULL));
    case ATTEMPT_bpf:
        return result_of(syscall(SYS_bpf, 0, block, sizeof block));
    case ATTEMPT_keyctl:
        return result_of(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, 0, 0));
    case ATTEMPT_unshare:
        return result_of(unshare(CLONE_FS));
    case ATTEMPT_setns:
        return result_of(setns(BH__WORKER_SOCKET, 0));
    case ATTEMPT_userfaultfd:
        return result_of(syscall(SYS_userfaultfd, O_CLOEXEC));
    case ATTEMPT_io_uring_setup:
        return result_of(syscall(425, 1, block));
    case ATTEMPT_setuid:
        return result_of(syscall(SYS_setuid, getuid()));
    case ATTEMPT_foreign_call:
        return try_foreign();
    case ATTEMPT_open_before:
        return opened_before;
    case ATTEMPT_dump_core:
        return look_at_cores();
    default:
        return -1;
    }
}

/* ---- which thread tries ---- */

typedef struct task {
    enum attempt attempt;
    int result;
} task;

static void *try_in_thread(void *argument) {
    task *given = argument;
    sigset_t calls;
    sigemptyset(&calls);
    sigaddset(&calls, SIGSYS);
    pthread_sigmask(SIG_UNBLOCK, &calls, NULL);
    given->result = try_it(given->attempt);
    return NULL;
}

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    task *task;
    bool taken, done;
} old = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *old_main(void *unused) {
    pthread_mutex_lock(&old.lock);
    for (;;) {
        while (!old.task) pthread_cond_wait(&old.changed, &old.lock);
        try_in_thread(old.task);
        old.task = NULL;
        old.done = true;
        pthread_cond_broadcast(&old.changed);
    }
    return unused;
}

static void ask_old(task *given) {
    pthread_mutex_lock(&old.lock);
    old.done = false;
    old.task = given;
    pthread_cond_broadcast(&old.changed);
    while (!old.done) pthread_cond_wait(&old.changed, &old.lock);
    pthread_mutex_unlock(&old.lock);
}

static int try_at(enum where where, enum attempt attempt) {
    task given = {attempt, -1};
    pthread_t thread;
    if (where == WHERE_OLD)
        ask_old(&given);
    else if (where == WHERE_LANE)
        given.result = try_it(attempt);
    else if (pthread_create(&thread, NULL, try_in_thread, &given) == 0)
        pthread_join(thread, NULL);
    return given.result;
}

/* ---- the device ---- */

static bh_status open_device(const bh__device_services *services, uint32_t index,
                             bh__device_facts *info, uint64_t *out_granularity, bh_error *error,
                             bh__device_instance **out) {
    pthread_t thread;
    opened_before = try_open();
    pthread_create(&thread, NULL, old_main, NULL);
    return bh__cpu_device.open(services, index, info, out_granularity, error, out);
}

static bh_status execute(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    uint32_t given[3] = {0};
    if (work->op == BH__OP_LAUNCH && work->u.launch.param_bytes == sizeof given)
        memcpy(given, work->params, sizeof given);
    if (given[0] != ATTEMPT_MARK) return bh__cpu_device.execute(lane, work, error);
    int result = try_at((enum where)given[2], (enum attempt)given[1]);
    bh__fail(error, BH_E_LAUNCH, "nothing: it is a test", "the attempt ended with %d", result);
    error->device_code = result;
    return BH_E_LAUNCH;
}

int main(int argc, char **argv) {
    bh__device_ops ops = bh__cpu_device;
    application = getppid();
    ops.open = open_device;
    ops.execute = execute;
    if (getenv(ATTEMPT_AS_DRIVER)) {
        ops.profile = BH__SANDBOX_DRIVER;
        ops.files = NULL;
    }
    bh__worker_main(argc, argv, &ops);
}
