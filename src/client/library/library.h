/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library calls: their checks, the modules that libraries are, and bh_submit. A call that passes
 * the checks is a launch of an operation's kernel: arguments, and the bytes of each operand.
 */
#ifndef BH_CLIENT_LIBRARY_LIBRARY_H
#define BH_CLIENT_LIBRARY_LIBRARY_H

#include "client/launch/launch.h"
#include "library/operation.h"

enum { BH__MAX_REQUEST = 1024 };

/* A request that was taken. */
typedef struct bh__library_call {
    const bh__operation *operation;
    uint32_t library; /* its number */
    bh_type types[BH__OPERANDS];
    bh__range ranges[BH__OPERANDS];
    bh_arg args[BH__OPERANDS + 2]; /* they point into this struct */
    union {
        bh__request_head head;
        uint8_t bytes[BH__MAX_REQUEST];
        uint64_t aligned;
    } request;
} bh__library_call;

static inline bool bh__is_library_call(const bh_request *request) {
    return request && request->size >= sizeof *request && request->kind >= BH__LIBRARY_KINDS;
}

/* ---- check.c ---- */

/* Copies a request and checks all that can be known of it. Without the lock. */
bh_status bh__library_take(const bh_request *given, bh__library_call *out);
static inline bh_args bh__library_args(const bh__library_call *self) {
    return (bh_args){self->args, self->operation->operand_count + 2u};
}
/* The buffer of an operand. */
bh_buffer bh__library_buffer(const bh__library_call *self, uint32_t operand);

/* ---- load.c ---- */

/* The kernel of the operation. Waits until its library is loaded; with `no_block` BH_E_BUSY, and
 * the load has begun. Without the lock. */
bh_status bh__library_kernel(const bh__library_call *self, bh_lane lane, bool no_block,
                             bh_kernel *out);

#endif
