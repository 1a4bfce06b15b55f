/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of tests/faults/promises.c share: a world, which is the program's buffers and work
 * and what the model knows of them. */
#ifndef TESTS_FAULTS_PROMISES_H
#define TESTS_FAULTS_PROMISES_H

#include "support/support.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

enum {
    LANES_MAX = 8,
    SLOTS = 9,
    SCATTERED = 64,
    SEQUENCES = 3,
    PREPARED = 3,
    BATCH = 70,
    USES = 4,
    OLD = 4096
};

/* What the model knows of a byte: its value; that it must be suspect; nothing at all. */
enum { KNOWN, DOUBT, ANY };

typedef struct area {
    bh_buffer buffer;
    uint64_t bytes;
    uint8_t *value, *state;
    uint8_t *mapped; /* of a managed one */
    bool transparent;
    uint32_t users;
} area;

enum kind {
    IOTA,
    MIX,
    CHURN,
    COPY_WORDS,
    SPIN,
    GATHER,
    SCATTER,
    PREPARED_MIX,
    SEQUENCE,
    FILL,
    COPY,
    WRITE,
    WRITE_HOST,
    READ,
    READ_POOL,
    WRITE_ROWS,
    READ_ROWS,
    COPY_ROWS,
    FILL_ROWS,
    WRITE_NOW,
    READ_NOW,
    COPY_NOW,
    FILL_NOW,
    ACCEPT,
    BREAK,
    HANG,
    KINDS
};

extern const char *const kind_names[KINDS];

typedef struct use {
    area *of;
    uint64_t offset, bytes;
    bool whole; /* a write that leaves nothing of what was there */
} use;

typedef struct op {
    enum kind kind;
    uint32_t step, words, repeat, pattern;
    bool idempotent, has_ticket, cancelled, watched;
    bh_ticket ticket;
    bh_status status, seen;
    use reads[USES], writes[USES];
    uint32_t read_count, write_count;
    bh_transfer rows;
    const uint8_t *source; /* of a write */
    uint8_t *target;       /* of a read */
    uint8_t *read_now;     /* what a read that waits got, to be freed */
    uint32_t callbacks;
    bh_status told;
} op;

typedef struct replay {
    bh_sequence sequence;
    area *a, *b, *c; /* churn(a), b = a, fill(c) */
    uint32_t launch;
} replay;

typedef struct world {
    rig r;
    rng random;
    area *slots[SLOTS];
    bh_lane lanes[LANES_MAX];
    uint32_t lane_count, step, count;
    op batch[BATCH];
    uint8_t *arena, *host;
    uint64_t arena_bytes, host_bytes, host_used;
    bh_host_pool pool;
    void *pieces[BATCH];
    uint32_t piece_count;
    bh_buffer flag, table;
    uint32_t scattered[SCATTERED];
    replay replays[SEQUENCES];
    bh_prepared prepared[PREPARED];
    area *prepared_areas[PREPARED][3];
    bool losing;
    struct {
        bh_ticket ticket;
        bh_status status;
    } old[OLD];
    uint64_t old_count;
    uint64_t tally[BH_E_INTERNAL + 1];
} world;

static inline uint32_t below(world *w, uint64_t limit) {
    return rng_below(&w->random, (uint32_t)limit);
}

/* ---- model.c: what each byte should be ---- */

/* managed: 0 no, 1 yes, 2 transparent. */
area *area_new(world *w, uint64_t bytes, uint32_t managed);
void area_free(area *a);
/* Whether all bytes are in this state, and whether any is. */
bool is_all(const use *u, uint8_t state);
bool has_any(const use *u, uint8_t state);
void repeat_pattern(uint8_t *to, uint64_t bytes, uint32_t step, uint32_t length);
/* The worker refuses one request or other: see tests/queued/. */
bool refusing(void);
/* What the operation, whose status is known, leaves: values, doubt, or nothing that can be
 * known. */
void apply_to_model(world *w, op *o);
/* Prints all operations of the batch that touch what this one touches. */
void explain(const world *w, const op *about);
#define WRONG(w, o, ...) (FAIL(__VA_ARGS__), explain((w), (o)))

/* ---- program.c: random work ---- */

use some_use(world *w, area *a, uint64_t most);
use word_use(area *a, uint64_t first, uint32_t words);
bh_buffer view_of(const use *u);
const uint8_t *some_source(world *w, uint64_t bytes);
/* Submits something. False: it could not be, and is not part of the batch. */
bool submit_one(world *w, op *o, bool breaks);
void cancel_one(world *w);
void ask_one(world *w);

#endif
