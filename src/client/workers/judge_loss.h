/* SPDX-License-Identifier: Apache-2.0 */
/* A loss while it is judged: freeze.c, blame.c, judge_loss.c and policy.c share this. Used on the
 * supervisor, with the device locked. */
#ifndef BH_CLIENT_WORKERS_JUDGE_LOSS_H
#define BH_CLIENT_WORKERS_JUDGE_LOSS_H

#include "client/workers/internal.h"

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
    /* Candidates for the blame on each lane: requests from its floor up to here. */
    uint64_t blamed[BH__MAX_LANES];
    uint32_t candidates;
    bool certain;
    bool resend;                  /* idempotent launches and sequences may be sent again */
    bool one_kernel;              /* all candidates ran the same kernel */
    bh__kernel *culprit;          /* Borrowed. The blamed kernel; NULL: not known, or none */
    uint64_t unfinished;          /* requests without a verdict */
    uint64_t unfinished_launches; /* of them, those that launch the culprit */
    bh_error blame;               /* for the blamed requests */
    bh_loss *summary;
    /* Owned. What requests in flight write. NULL if there was no memory. */
    bh__written *writes;
    uint32_t write_count;
} bh__judgement;

/* The active worker is lost: freezes the lanes, kills it, and finds out which requests are to
 * blame. No request gets a verdict yet: requests may still be submitted, and are judged with the
 * others. */
void bh__loss_begin(bh__device *device, const bh__cause *cause, bh_loss *summary,
                    bh__judgement *out);
/* Gives requests in flight their verdicts, fails queued requests that cannot run any more, and
 * holds requests that must wait. With verdict->quarantine, launches of the culprit are refused from
 * now on. */
void bh__loss_judge(bh__judgement *self, const bh_verdict *verdict);

/* ---- freeze.c ---- */

/* From here on nothing that the current worker writes is used. `taken` receives how far it had
 * taken the requests of each lane. */
void bh__lanes_freeze(bh__device *device, uint64_t taken[BH__MAX_LANES]);

/* ---- blame.c ---- */

/* Finds the blamed requests and fills in the judgement. */
void bh__blame_find(bh__judgement *self);
/* Returns the kernel that a blamed request ran, or NULL if it may have been one of several. */
bh__kernel *bh__blamed_kernel(const bh__judgement *self, uint32_t lane, const bh__shadow *shadow);
/* Writes the message of one of several candidates: its name, then the message of the loss. */
void bh__blame_candidate(const bh__judgement *self, uint32_t lane, const bh__shadow *shadow,
                         bh_error *detail);
/* Returns true if this request caused the loss, or may have caused it. */
bool bh__is_to_blame(const bh__judgement *self, bh__lane *lane, const bh__shadow *shadow);
/* Describes a blamed request. For a sequence, with the steps that can have been running. */
void bh__describe_blamed(const bh__judgement *self, uint32_t lane, const bh__shadow *shadow,
                         char *out, size_t size);

/* Adds to the message which buffer an address is in or near, by the buffers that the request of a
 * known cause was given. */
void bh__blame_describe(const bh__judgement *self, uint64_t address, uint32_t bytes,
                        bh_error *error);

/* ---- policy.c ---- */

/* Decides what follows from a loss. Releases the lock while the program's policy callback runs.
 * *why receives the reason if the device must stop. */
void bh__policy_decide(bh__judgement *self, bh_verdict *out, bh_error *why);
/* Called without the lock when workers repeatedly fail to start, for this reason. Returns true if
 * the program's policy wants to retry. */
bool bh__policy_retries(bh__device *device, const bh_error *why);

#endif
