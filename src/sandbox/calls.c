/* SPDX-License-Identifier: Apache-2.0 */
/* Which system calls a process may make: translates rules into a program for seccomp. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/rules.h"

#ifndef SECCOMP_FILTER_FLAG_SPEC_ALLOW
#define SECCOMP_FILTER_FLAG_SPEC_ALLOW (1UL << 2)
#endif
#ifndef SECCOMP_RET_KILL_PROCESS
#define SECCOMP_RET_KILL_PROCESS 0x80000000U
#endif

#if defined(__x86_64__)
enum { ARCHITECTURE = (int)AUDIT_ARCH_X86_64, X32_BIT = 0x40000000 };
#elif defined(__aarch64__)
enum { ARCHITECTURE = (int)AUDIT_ARCH_AARCH64, X32_BIT = 0 };
#else
enum { ARCHITECTURE = 0, X32_BIT = 0 };
#endif

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the low half of an argument comes first");

/* A rule takes the number (two), two or three for each half of an argument that is tested, and the
 * verdict. */
enum { MAX_INSTRUCTIONS = 2048, MAX_PER_RULE = 3 + 6 * BH__RULE_TESTS };

typedef struct filter {
    struct sock_filter code[MAX_INSTRUCTIONS];
    unsigned short length;
    bool has_number; /* the accumulator holds the call's number */
} filter;

static void put(filter *f, unsigned code, uint32_t operand, unsigned char if_true,
                unsigned char if_false) {
    f->code[f->length++] = (struct sock_filter){(unsigned short)code, if_true, if_false, operand};
}

static void put_load(filter *f, size_t offset) {
    put(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void put_return(filter *f, const bh__rule *rule) {
    uint32_t action = rule->verdict == BH__CALL_ALLOW  ? SECCOMP_RET_ALLOW
                      : rule->verdict == BH__CALL_TRAP ? SECCOMP_RET_TRAP
                                                       : SECCOMP_RET_ERRNO | rule->error;
    put(f, BPF_RET | BPF_K, action, 0, 0);
}

/* Continues if this half of the argument matches. put_rule fills in the jumps. */
static void put_test_half(filter *f, size_t offset, uint32_t mask, uint32_t value) {
    if (mask == 0) return;
    put_load(f, offset);
    if (mask != UINT32_MAX) put(f, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    put(f, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 0);
}

static void put_test(filter *f, const bh__rule_test *test) {
    bool self = test->kind == BH__TEST_SELF;
    uint64_t mask = self ? UINT32_MAX : test->mask;
    uint64_t value = self ? (uint64_t)getpid() : test->value;
    size_t low = offsetof(struct seccomp_data, args) + test->argument * sizeof(uint64_t);
    put_test_half(f, low, (uint32_t)mask, (uint32_t)value);
    put_test_half(f, low + sizeof(uint32_t), (uint32_t)(mask >> 32), (uint32_t)(value >> 32));
}

static void put_rule(filter *f, const bh__rule *rule) {
    if (!f->has_number) put_load(f, offsetof(struct seccomp_data, nr));
    unsigned short first = f->length;
    put(f, BPF_JMP | BPF_JEQ | BPF_K, rule->number, 0, 0);
    for (int i = 0; i < BH__RULE_TESTS && rule->tests[i].kind != BH__TEST_NONE; i++)
        put_test(f, &rule->tests[i]);
    put_return(f, rule);
    for (unsigned short i = first; i < f->length;
         i++) { /* a test that fails jumps behind the rule */
        if (BPF_CLASS(f->code[i].code) == BPF_JMP)
            f->code[i].jf = (unsigned char)(f->length - i - 1);
    }
    f->has_number = rule->tests[0].kind == BH__TEST_NONE;
}

/* Calls of another architecture have other numbers. Our processes make none: such a call ends the
 * process. */
static void put_architecture(filter *f) {
    put_load(f, offsetof(struct seccomp_data, arch));
    put(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)ARCHITECTURE, 1, 0);
    put(f, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
    put_load(f, offsetof(struct seccomp_data, nr));
    f->has_number = true;
    if (!X32_BIT) return;
    put(f, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
    put(f, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
}

static bool assemble(filter *f, const bh__rule_set *book) {
    f->length = 0;
    put_architecture(f);
    for (size_t i = 0; i < BH__RULE_LISTS; i++) {
        for (size_t k = 0; k < book->lists[i].count; k++) {
            if (f->length + MAX_PER_RULE >= MAX_INSTRUCTIONS) return false;
            put_rule(f, &book->lists[i].rules[k]);
        }
    }
    put_return(f, &book->otherwise);
    return true;
}

/*
 * TSYNC: the filter also applies to threads that run already. SPEC_ALLOW: kernels before 5.16
 * otherwise turn on mitigations that slow down every load of a filtered process.
 */
static int install(const filter *f) {
    struct sock_fprog program = {f->length, (struct sock_filter *)(uintptr_t)f->code};
    unsigned long flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -errno;
    long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (result < 0 && errno == EINVAL) /* before 4.17 */
        result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    if (result < 0) return -errno;
    return result == 0 ? 0 : -EBUSY; /* a thread has a filter of its own */
}

int bh__sandbox_calls(bh__sandbox_profile profile) {
    const bh__rule_set *book = bh__rules_of(profile);
    filter f;
    if (!book) return -ENOSYS;
    return assemble(&f, book) ? install(&f) : -E2BIG;
}
