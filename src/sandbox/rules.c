/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiles. A call that our code never makes raises SIGSYS, so that the application learns of
 * it: the worker is lost and the error names the call. A call that the C library may try by itself
 * fails with an error that it can handle.
 */
#include "sandbox/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__) || defined(__aarch64__)

/* Newer than the headers of some systems. The numbers are the same on every architecture. */
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup    425
#define SYS_io_uring_enter    426
#define SYS_io_uring_register 427
#endif
#ifndef SYS_open_tree
#define SYS_open_tree  428
#define SYS_move_mount 429
#define SYS_fsopen     430
#define SYS_fsconfig   431
#define SYS_fsmount    432
#define SYS_fspick     433
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif
#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_GET_SEALS 1034
#endif

/* ---- calls that our code never makes; each is listed once, with its name ---- */

/* Other processes: their memory, their descriptors, signals to them. */
#define OTHERS(X)                                                                                  \
    X(ptrace)                                                                                      \
    X(process_vm_readv)                                                                            \
    X(process_vm_writev)                                                                           \
    X(process_madvise)                                                                             \
    X(process_mrelease)                                                                            \
    X(prlimit64)                                                                                   \
    X(kcmp)                                                                                        \
    X(pidfd_open)                                                                                  \
    X(pidfd_getfd)                                                                                 \
    X(pidfd_send_signal)                                                                           \
    X(kill)                                                                                        \
    X(tkill)                                                                                       \
    X(tgkill)                                                                                      \
    X(rt_sigqueueinfo)                                                                             \
    X(rt_tgsigqueueinfo)
/* System administration: file systems, privileges, the kernel. io_uring makes calls that no filter
 * sees. */
#define SYSTEM(X)                                                                                  \
    X(io_uring_setup)                                                                              \
    X(io_uring_enter)                                                                              \
    X(io_uring_register)                                                                           \
    X(bpf)                                                                                         \
    X(perf_event_open)                                                                             \
    X(userfaultfd)                                                                                 \
    X(mount)                                                                                       \
    X(umount2)                                                                                     \
    X(pivot_root)                                                                                  \
    X(chroot)                                                                                      \
    X(open_tree)                                                                                   \
    X(move_mount)                                                                                  \
    X(fsopen)                                                                                      \
    X(fsconfig)                                                                                    \
    X(fsmount)                                                                                     \
    X(fspick)                                                                                      \
    X(mount_setattr)                                                                               \
    X(open_by_handle_at)                                                                           \
    X(name_to_handle_at)                                                                           \
    X(fanotify_init)                                                                               \
    X(unshare)                                                                                     \
    X(setns)                                                                                       \
    X(add_key)                                                                                     \
    X(request_key)                                                                                 \
    X(keyctl)                                                                                      \
    X(setuid)                                                                                      \
    X(setgid)                                                                                      \
    X(setreuid)                                                                                    \
    X(setregid)                                                                                    \
    X(setresuid)                                                                                   \
    X(setresgid)                                                                                   \
    X(setfsuid)                                                                                    \
    X(setfsgid)                                                                                    \
    X(setgroups)                                                                                   \
    X(capset)                                                                                      \
    X(personality)                                                                                 \
    X(acct)                                                                                        \
    X(quotactl)                                                                                    \
    X(swapon)                                                                                      \
    X(swapoff)                                                                                     \
    X(reboot)                                                                                      \
    X(kexec_load)                                                                                  \
    X(init_module)                                                                                 \
    X(finit_module)                                                                                \
    X(delete_module)                                                                               \
    X(syslog)                                                                                      \
    X(vhangup)                                                                                     \
    X(settimeofday)                                                                                \
    X(clock_settime)                                                                               \
    X(clock_adjtime)                                                                               \
    X(adjtimex)                                                                                    \
    X(sethostname)                                                                                 \
    X(setdomainname)
/* Starting programs and processes. A driver may try to when something is wrong. */
#define PROGRAMS(X) X(execve) X(execveat) X(clone)
#define SOCKETS(X)                                                                                 \
    X(socket)                                                                                      \
    X(socketpair)                                                                                  \
    X(connect)                                                                                     \
    X(bind)                                                                                        \
    X(listen)
#if defined(__x86_64__)
#define OLD_PROGRAMS(X) X(fork) X(vfork)
#define OLD_SYSTEM(X)   X(ioperm) X(iopl) X(modify_ldt) X(uselib)
#else
#define OLD_PROGRAMS(X)
#define OLD_SYSTEM(X)
#endif

/* Shared memory, semaphores and queues that any process of the user may open. */
#define EXCHANGES(X)                                                                               \
    X(shmget)                                                                                      \
    X(shmat)                                                                                       \
    X(shmctl)                                                                                      \
    X(semget)                                                                                      \
    X(semop)                                                                                       \
    X(semtimedop)                                                                                  \
    X(semctl)                                                                                      \
    X(msgget)                                                                                      \
    X(msgsnd)                                                                                      \
    X(msgrcv)                                                                                      \
    X(msgctl)                                                                                      \
    X(mq_open)                                                                                     \
    X(mq_unlink)

const char *bh__sandbox_call_name(int number) {
    switch (number) {
#define NAME(name)                                                                                 \
    case SYS_##name:                                                                               \
        return #name;
        PROGRAMS(NAME)
        OLD_PROGRAMS(NAME)
        SOCKETS(NAME) OTHERS(NAME) SYSTEM(NAME) OLD_SYSTEM(NAME) default : return NULL;
    }
}

/* ---- rules ---- */

#define TRAP(name)                                                                                 \
    { .number = SYS_##name, .verdict = BH__CALL_TRAP }
#define REFUSE(name, with)                                                                         \
    { .number = SYS_##name, .verdict = BH__CALL_REFUSE, .error = (with) }
#define ALLOW(name)                                                                                \
    { .number = SYS_##name, .verdict = BH__CALL_ALLOW }
#define ALLOW_IF(name, index, bits, wanted)                                                        \
    {                                                                                              \
        .number = SYS_##name, .verdict = BH__CALL_ALLOW, .tests = {                                \
            {BH__TEST_BITS, (index), (bits), (wanted)}                                             \
        }                                                                                          \
    }
#define ALLOW_SELF(name)                                                                           \
    {                                                                                              \
        .number = SYS_##name, .verdict = BH__CALL_ALLOW, .tests = { {.kind = BH__TEST_SELF} }      \
    }
/* Of ioctl and fcntl: the kernel looks at the low half of what is asked for. */
#define REFUSE_ASKED(name, what)                                                                   \
    {                                                                                              \
        .number = SYS_##name, .verdict = BH__CALL_REFUSE, .error = EACCES, .tests = {              \
            {BH__TEST_BITS, 1, INT_BITS, (what)}                                                   \
        }                                                                                          \
    }
/* fcntl with these bits in what is set. */
#define REFUSE_SETTING(what, bits)                                                                 \
    {                                                                                              \
        .number = SYS_fcntl, .verdict = BH__CALL_REFUSE, .error = EACCES, .tests = {               \
            {BH__TEST_BITS, 1, INT_BITS, (what)},                                                  \
            {BH__TEST_BITS, 2, (bits), (bits)}                                                     \
        }                                                                                          \
    }

/* For the lists above. */
#define EACH_TRAP(name)   TRAP(name),
#define EACH_REFUSE(name) REFUSE(name, EACCES),
#define EACH_ALLOW(name)  ALLOW(name),

#define INT_BITS UINT32_MAX

/* A thread: shares what threads share, has no namespaces of its own, sends no signal when it ends.
 */
#define THREAD_FLAGS                                                                               \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |            \
     CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID |              \
     CLONE_DETACHED)
#define ALLOW_THREADS ALLOW_IF(clone, 0, ~(uint32_t)THREAD_FLAGS | CLONE_THREAD, CLONE_THREAD)
/* Its flags are in memory, which a filter cannot read. The C library then uses clone. */
#define REFUSE_CLONE3 REFUSE(clone3, ENOSYS)

/* Frequent calls come first. */
static const bh__rule compute_rules[] = {
    /* work, messages, waiting */
    ALLOW(futex),
    ALLOW(write),
    ALLOW(read),
    ALLOW(sendmsg),
    ALLOW(recvmsg),
#if defined(__x86_64__)
    ALLOW(poll),
    ALLOW(pause),
#endif
    ALLOW(ppoll),
    ALLOW(sched_yield),
    ALLOW(clock_nanosleep),
    ALLOW(nanosleep),
    ALLOW(clock_gettime),
    ALLOW(clock_getres),
    ALLOW(gettimeofday),
    ALLOW(restart_syscall),
    ALLOW(close),
    ALLOW(getcpu),
    /* memory, none of it executable */
    ALLOW_IF(mmap, 2, PROT_EXEC, 0),
    REFUSE(mmap, EACCES),
    ALLOW_IF(mprotect, 2, PROT_EXEC, 0),
    REFUSE(mprotect, EACCES),
    ALLOW(munmap),
    ALLOW(mremap),
    ALLOW(madvise),
    ALLOW(brk),
    /* memory that has a descriptor */
    ALLOW(memfd_create),
    ALLOW(ftruncate),
    ALLOW(fallocate),
    ALLOW(pread64),
    ALLOW(pwrite64),
    ALLOW(lseek),
    ALLOW(fstat),
    ALLOW(newfstatat), /* fstat, in older C libraries */
    ALLOW_IF(fcntl, 1, INT_BITS, F_ADD_SEALS),
    ALLOW_IF(fcntl, 1, INT_BITS, F_GET_SEALS),
    ALLOW_IF(fcntl, 1, INT_BITS, F_GETFL),
    ALLOW_IF(fcntl, 1, INT_BITS, F_SETFL),
    ALLOW_IF(fcntl, 1, INT_BITS, F_GETFD),
    ALLOW_IF(fcntl, 1, INT_BITS, F_SETFD),
    /* threads */
    ALLOW_THREADS,
    REFUSE_CLONE3,
    ALLOW(set_robust_list),
    ALLOW(rseq),
    ALLOW(membarrier),
    ALLOW(sched_getaffinity),
    ALLOW_IF(prctl, 0, INT_BITS, PR_SET_NAME),
    ALLOW_IF(prlimit64, 0, INT_BITS, 0), /* its own */
    ALLOW(gettid),
    ALLOW(getpid),
    ALLOW(exit),
    ALLOW(exit_group),
    /* signals */
    ALLOW(rt_sigprocmask),
    ALLOW(rt_sigaction),
    ALLOW(rt_sigreturn),
    ALLOW(sigaltstack),
    ALLOW_SELF(tgkill),
    ALLOW_SELF(kill),
    /* queries */
    ALLOW(getrandom),
    ALLOW(sysinfo),
    ALLOW(uname),
    /* the C library tries these now and then, and handles the error */
    REFUSE(openat, EACCES),
    REFUSE(readlinkat, EACCES),
    REFUSE(faccessat, EACCES),
#if defined(__x86_64__)
    REFUSE(open, EACCES),
    REFUSE(stat, EACCES),
    REFUSE(lstat, EACCES),
    REFUSE(access, EACCES),
    REFUSE(readlink, EACCES),
#endif
};

/* What reaches others by way of a descriptor: typing into the terminal that a shell reads, and a
 * signal of the kernel's whose receiver is chosen. A terminal with O_ASYNC has the process group
 * in its foreground for one. */
#define BY_DESCRIPTOR                                                                              \
    REFUSE_ASKED(ioctl, TIOCSTI), REFUSE_ASKED(ioctl, TIOCLINUX), REFUSE_ASKED(ioctl, FIOSETOWN),  \
        REFUSE_ASKED(ioctl, SIOCSPGRP), REFUSE_ASKED(ioctl, FIOASYNC),                             \
        REFUSE_ASKED(fcntl, F_SETOWN), REFUSE_ASKED(fcntl, F_SETOWN_EX),                           \
        REFUSE_ASKED(fcntl, F_SETSIG), REFUSE_SETTING(F_SETFL, O_ASYNC)

static const bh__rule driver_rules[] = {
    ALLOW_THREADS, REFUSE_CLONE3, ALLOW_SELF(tgkill), ALLOW_SELF(kill), ALLOW_SELF(prlimit64),
    ALLOW_IF(prlimit64, 0, INT_BITS, 0), /* the same */
    BY_DESCRIPTOR,
    /* clang-format off */
    EXCHANGES(EACH_REFUSE)
    PROGRAMS(EACH_REFUSE)
    OLD_PROGRAMS(EACH_REFUSE)
    SOCKETS(EACH_REFUSE)
    /* clang-format on */
};

#define NAMESPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

static const bh__rule compiler_rules[] = {
    ALLOW(execve), ALLOW_IF(clone, 0, NAMESPACES, 0), REFUSE_CLONE3, ALLOW(tgkill), ALLOW(tkill),
    ALLOW(kill), ALLOW_IF(prlimit64, 0, INT_BITS, 0), /* its own */
    REFUSE(setsid, EPERM), REFUSE(setpgid, EPERM), BY_DESCRIPTOR,
    /* clang-format off */
    EXCHANGES(EACH_REFUSE)
    OLD_PROGRAMS(EACH_ALLOW)
    SOCKETS(EACH_REFUSE)
    /* clang-format on */
};

static const bh__rule own_signal_rules[] = {
    ALLOW_SELF(kill),    ALLOW_SELF(tgkill),    ALLOW_SELF(tkill),
    REFUSE(kill, EPERM), REFUSE(tgkill, EPERM), REFUSE(tkill, EPERM),
};

static const bh__rule socket_rules[] = {
    ALLOW_IF(socket, 0, INT_BITS, AF_UNIX),
    ALLOW_IF(socketpair, 0, INT_BITS, AF_UNIX),
    ALLOW(connect),
    ALLOW(bind),
    ALLOW(listen),
};

static const bh__rule hostile_rules[] = {
    /* clang-format off */
    PROGRAMS(EACH_TRAP)
    OLD_PROGRAMS(EACH_TRAP)
    SOCKETS(EACH_TRAP)
    OTHERS(EACH_TRAP)
    SYSTEM(EACH_TRAP)
    OLD_SYSTEM(EACH_TRAP)
    /* clang-format on */
};

#define LIST(rules)                                                                                \
    { (rules), sizeof(rules) / sizeof *(rules) }

/* ENOSYS: the C library falls back to an older call that is allowed, or does without. */
#define OTHERWISE_ENOSYS                                                                           \
    { .verdict = BH__CALL_REFUSE, .error = ENOSYS }
#define OTHERWISE_ALLOW                                                                            \
    { .verdict = BH__CALL_ALLOW }

static const bh__rule_set books[] = {
    [BH__SANDBOX_COMPUTE] = {{LIST(compute_rules), LIST(hostile_rules)}, OTHERWISE_ENOSYS},
    [BH__SANDBOX_DRIVER] = {{LIST(driver_rules), LIST(hostile_rules)}, OTHERWISE_ALLOW},
    [BH__SANDBOX_DRIVER_SOCKETS] = {{LIST(socket_rules), LIST(driver_rules), LIST(hostile_rules)},
                                    OTHERWISE_ALLOW},
    [BH__SANDBOX_COMPILER] = {{LIST(compiler_rules), LIST(hostile_rules)}, OTHERWISE_ALLOW},
    [BH__SANDBOX_OWN_SIGNALS] = {{LIST(own_signal_rules)}, OTHERWISE_ALLOW},
};

const bh__rule_set *bh__rules_of(bh__sandbox_profile profile) {
    return &books[profile];
}

#else

const char *bh__sandbox_call_name(int number) {
    (void)number;
    return NULL;
}

const bh__rule_set *bh__rules_of(bh__sandbox_profile profile) {
    (void)profile;
    return NULL;
}

#endif
