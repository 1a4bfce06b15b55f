/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker that was taken over might try. The worker of this folder tries it inside of a
 * launch; tests ask for it by number.
 */
#ifndef TESTS_SANDBOX_ATTEMPTS_H
#define TESTS_SANDBOX_ATTEMPTS_H

/* Each has the errno that it ends with, or one of the words below: under the list of what is
 * allowed (the CPU device), and under the list of what is refused (GPUs). */
#define ATTEMPTS(X)                                                                                \
    X(open_file, EACCES, SUCCEEDS)                                                                 \
    X(read_link, EACCES, SUCCEEDS)                                                                 \
    X(remove_file, ENOSYS, NOT_ASKED)                                                              \
    X(map_code, EACCES, SUCCEEDS)                                                                  \
    X(make_code, EACCES, SUCCEEDS)                                                                 \
    X(own_signals, ENOSYS, EACCES)                                                                 \
    X(own_signals_of_type, ENOSYS, EACCES)                                                         \
    X(own_signals_by_ioctl, ENOSYS, EACCES)                                                        \
    X(own_signals_of_socket, ENOSYS, EACCES)                                                       \
    X(choose_signal, ENOSYS, EACCES)                                                               \
    X(signal_terminal, NOT_ASKED, EACCES)                                                          \
    X(signal_terminal_by_ioctl, ENOSYS, EACCES)                                                    \
    X(set_flags, SUCCEEDS, SUCCEEDS)                                                               \
    X(type_into_terminal, ENOSYS, EACCES)                                                          \
    X(type_with_high_bits, ENOSYS, EACCES)                                                         \
    X(paste_into_terminal, ENOSYS, EACCES)                                                         \
    X(shmget, ENOSYS, EACCES)                                                                      \
    X(semget, ENOSYS, EACCES)                                                                      \
    X(msgget, ENOSYS, EACCES)                                                                      \
    X(mq_open, ENOSYS, EACCES)                                                                     \
    X(control_device, ENOSYS, NOT_ASKED)                                                           \
    X(clone3, ENOSYS, ENOSYS)                                                                      \
    X(signal_self, SUCCEEDS, SUCCEEDS)                                                             \
    X(execve, FATAL, EACCES)                                                                       \
    X(execveat, FATAL, EACCES)                                                                     \
    X(clone, FATAL, EACCES)                                                                        \
    X(socket, FATAL, EACCES)                                                                       \
    X(socketpair, FATAL, EACCES)                                                                   \
    X(connect, FATAL, EACCES)                                                                      \
    X(ptrace, FATAL, FATAL)                                                                        \
    X(process_vm_readv, FATAL, FATAL)                                                              \
    X(process_vm_writev, FATAL, FATAL)                                                             \
    X(kill, FATAL, FATAL)                                                                          \
    X(tgkill, FATAL, FATAL)                                                                        \
    X(pidfd_open, FATAL, FATAL)                                                                    \
    X(prlimit64, FATAL, FATAL)                                                                     \
    X(mount, FATAL, FATAL)                                                                         \
    X(bpf, FATAL, FATAL)                                                                           \
    X(keyctl, FATAL, FATAL)                                                                        \
    X(unshare, FATAL, FATAL)                                                                       \
    X(setns, FATAL, FATAL)                                                                         \
    X(userfaultfd, FATAL, FATAL)                                                                   \
    X(io_uring_setup, FATAL, FATAL)                                                                \
    X(setuid, FATAL, FATAL)                                                                        \
    X(foreign_call, FATAL_UNNAMED, FATAL_UNNAMED)                                                  \
    X(open_before, EACCES, NOT_ASKED)                                                              \
    X(dump_core, EPERM, EPERM)

/* FATAL: the worker is lost, and the message has the attempt's name as that of the call. */
enum { SUCCEEDS = 0, FATAL = -1, FATAL_UNNAMED = -2, NOT_ASKED = -3 };

enum attempt {
#define ATTEMPT_NUMBER(name, list, driver) ATTEMPT_##name,
    ATTEMPTS(ATTEMPT_NUMBER)
#undef ATTEMPT_NUMBER
        ATTEMPT_COUNT
};

/* The thread that tries: the lane's own, one that is started for it, one that was there before the
 * worker confined itself. */
enum where { WHERE_LANE, WHERE_NEW, WHERE_OLD, WHERE_COUNT };

/* The first parameter of launches that are attempts. */
#define ATTEMPT_MARK 0x7a77e3b7u

/* In the worker's environment: it takes the profile of a GPU's worker. */
#define ATTEMPT_AS_DRIVER "BULKHEAD_TEST_SANDBOX_DRIVER"

#endif
