/* SPDX-License-Identifier: Apache-2.0 */
/* A loss while it is judged: takeover.c says who is to blame, policy.c what follows from it. Used on
 * the supervisor, with the device locked. */
#ifndef BH_CLIENT_TAKEOVER_H
#define BH_CLIENT_TAKEOVER_H

#include "client/internal.h"

/* Bytes that a request in flight writes. */
typedef struct bh__written {
    const bh__memory *memory;
    uint64_t offset, bytes, stamp;
} bh__written;

typedef struct bh__judgement {
    bh__device *device;
    const bh__cause *cause;
    uint64_t loss;
    uint64_t taken[BH__MAX_LANES];
    /* Who may be to blame on each lane: from its floor up to here. */
    uint64_t blamed[BH__MAX_LANES];
    uint32_t candidates;
    bool certain;
    bool one_kernel;              /* all candidates ran the same one */
    bh__kernel *culprit;          /* Borrowed. The kernel to blame; NULL: not known, or none */
    uint64_t unfinished;          /* requests without a verdict */
    uint64_t unfinished_launches; /* of them, those that launch the culprit */
    bh_error blame;               /* for the request or requests to blame */
    bh_loss *summary;
    /* Owned. By all requests in flight, unless there are too many or no memory for it. */
    bh__written *writes;
    uint32_t write_count;
} bh__judgement;

/* The active worker is lost: freezes the lanes, kills it, and finds out who is to blame. Nothing gets
 * a verdict yet, so that requests may still be submitted, and are judged with the others. */
void bh__loss_begin(bh__device *device, const bh__cause *cause, bh_loss *summary,
                    bh__judgement *out);
/* Gives requests in flight their verdicts, marks what has no future, holds what has to wait. With
 * `quarantine` the culprit, if there is one, is refused from now on. */
void bh__loss_judge(bh__judgement *self, bool quarantine);

/* Whether the loss is the fault of this request, or may be. */
bool bh__is_to_blame(const bh__judgement *self, bh__lane *lane, const bh__shadow *shadow);
/* Such a request in words, with the steps that can have been running if it is a sequence. */
void bh__describe_blamed(const bh__judgement *self, uint32_t lane, const bh__shadow *shadow,
                         char *out, size_t size);

/* ---- policy.c ---- */

/* What follows from a loss. The program's policy is asked with the lock released. *why gets the reason
 * if the device is to stop. */
void bh__policy_decide(bh__judgement *self, bh_verdict *out, bh_error *why);
/* Workers fail to start, again and again, for this reason. True: the program's policy wants to go on
 * all the same. Without the lock. */
bool bh__policy_retries(bh__device *device, const bh_error *why);

#endif
