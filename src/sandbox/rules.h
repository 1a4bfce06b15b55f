/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for system calls, and the profiles that consist of them. */
#ifndef BH_SANDBOX_RULES_H
#define BH_SANDBOX_RULES_H

#include <stddef.h>
#include <stdint.h>

#include "sandbox/sandbox.h"

typedef enum bh__verdict { BH__CALL_ALLOW, BH__CALL_REFUSE, BH__CALL_TRAP } bh__verdict;

typedef enum bh__test_kind {
    BH__TEST_NONE, /* always */
    BH__TEST_BITS, /* (argument & mask) == value */
    BH__TEST_SELF  /* the argument is the pid of this process */
} bh__test_kind;

typedef struct bh__rule_test {
    uint8_t kind, argument;
    uint64_t mask, value;
} bh__rule_test;

enum { BH__RULE_TESTS = 2 };

typedef struct bh__rule {
    uint16_t number; /* of the call */
    uint8_t verdict;
    uint8_t error;                       /* BH__CALL_REFUSE: the errno */
    bh__rule_test tests[BH__RULE_TESTS]; /* all must hold; those of kind NONE come last */
} bh__rule;

typedef struct bh__rule_list {
    const bh__rule *rules;
    size_t count;
} bh__rule_list;

enum { BH__RULE_LISTS = 3 };

/* The first rule that matches decides, list after list; `otherwise` if none does. */
typedef struct bh__rule_set {
    bh__rule_list lists[BH__RULE_LISTS];
    bh__rule otherwise; /* verdict and error */
} bh__rule_set;

/* NULL: there are no rules for this architecture. */
const bh__rule_set *bh__rules_of(bh__sandbox_profile profile);

#endif
