/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program may expect of its buffers, in terms of the public API alone. Operations on a
 * buffer take effect in the order in which one thread submitted them; each writes all of its
 * target, and its ticket's verdict says what came of it:
 *
 *   BH_OK                       it was done: the target has the new value and no doubt is left
 *   BH_E_CANCELLED, BH_E_LAUNCH it never began: the target is as it was, doubt included
 *   BH_E_STALE                  only if something it reads was in doubt; its target is now
 *   BH_E_FAULT, _LOST, _DEADLINE, _QUARANTINED   it may have begun: its target is in doubt
 *
 *   BH_E_STOPPED                it may have begun and no worker could be started; of a device that
 *                               closes: it was done, and its results in a transparent buffer are
 *                               not in the program's memory
 *
 * Once everything is waited for, a transparent buffer has the same words in the program's memory,
 * also when the device has stopped in between.
 */
#ifndef MODEL_H
#define MODEL_H

#include <bulkhead.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { LOWER = 1, UPPER = 2, WHOLE = LOWER | UPPER };
enum { MODEL_BUFFERS = 4, MODEL_OPS = 48, MODEL_WORDS = 1024, NO_BUFFER = -1 };

/* Operations write or read all of a buffer, or one half of it through a view. */
typedef struct model_half {
    bool suspect;
    bool known;  /* all words are `value` */
    bool unsure; /* a call failed that may have begun something: nothing is expected of it */
    uint32_t value;
} model_half;

typedef struct model_buffer {
    bh_buffer handle; /* zero: none */
    uint32_t words;
    uint32_t *host;   /* a managed buffer's copy in the program's memory, else NULL */
    bool transparent; /* the program uses `host` without maps */
    bool gone;        /* released, while operations on it are pending */
    model_half half[2];
} model_buffer;

typedef struct model_op {
    int target, source,
        second;        /* buffers; second: a sequence's other target, copied from the first */
    unsigned to, from; /* LOWER ... of the target and of the source; of the second: all */
    bool adds;         /* to what is there, which it reads */
    bool reads_host;   /* a read into host memory: `memory` gets what the source has */
    uint32_t value;
    const uint32_t *memory;
    uint32_t mapped[MODEL_WORDS]; /* what a map to read showed */
    bh_ticket ticket;
    bh_ticket after;  /* of another lane's work that must have ended first; zero: none */
    bh_status status; /* of those that are over when the call returns */
    bool is_over;
    bool cancelled; /* bh_cancel returned BH_OK */
    bool refused;   /* the call failed; of several pieces, some may have run */
} model_op;

typedef struct model {
    bh_device device;
    model_buffer buffers[MODEL_BUFFERS];
    model_op ops[MODEL_OPS]; /* in the order submitted */
    int op_count;
    bool closing; /* the device may close at any time */
    bool short_of_memory;
    bool gives_up; /* the device may stop at any time */
} model;

/* Transparent buffers were allocated in this run. While their results are written back, tickets of
 * the same lane are not done although their work is. */
extern _Atomic bool model_writes_back;

/* A new operation, or NULL where there is no room: settle first. It counts once its ticket is
 * set. */
model_op *model_op_new(model *self);
void model_op_drop(model *self);
/* The latest one was refused: if it was to overwrite anything, nothing is known of that from here
 * on. */
void model_op_refused(model *self, model_op *op);
/* Waits for every pending operation, applies them in order, compares. */
void model_settle(model *self);

/* Whether a call may return this in these circumstances; fails the run if not. */
bool model_allows(const model *self, bh_status status, const char *call);

#endif
