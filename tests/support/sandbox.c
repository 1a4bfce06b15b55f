/* SPDX-License-Identifier: Apache-2.0 */
/* Surroundings in which a system call does not exist. */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "test.h"

enum { MAX_CALLS = 8 };

static void apply(struct sock_filter *rules, unsigned short count) {
    struct sock_fprog program = {count, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        SKIP("system calls cannot be filtered here: %s", strerror(errno));
}

void forbid_calls(const long *numbers, size_t count) {
    struct sock_filter rules[2 * MAX_CALLS + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short length = 1;
    REQUIRE(count <= MAX_CALLS);
    for (size_t i = 0; i < count; i++) {
        rules[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[i], 0, 1);
        rules[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    }
    rules[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    apply(rules, length);
}

void forbid_write_seals(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_ADD_SEALS, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, F_SEAL_FUTURE_WRITE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    apply(rules, sizeof rules / sizeof *rules);
}

void forbid_pidfds(void) {
    forbid_calls((const long[]){SYS_pidfd_open, SYS_pidfd_send_signal}, 2);
}

void forbid_landlock(void) {
    enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };
    forbid_calls((const long[]){CREATE_RULESET, ADD_RULE, RESTRICT_SELF}, 3);
}
