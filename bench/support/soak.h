/* SPDX-License-Identifier: Apache-2.0 */
/* What the soak is made of: threads that use one device in every way, each with a model of what its
 * buffers hold; a record of answers, asked again later; and what was found to be wrong. */
#ifndef BENCH_SOAK_H
#define BENCH_SOAK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bulkhead.h"

/* ---- what is wrong ---- */

typedef enum soak_fault {
    SOAK_WRONG_BYTES, /* intact, and not what they should be */
    SOAK_CHANGED,     /* a ticket answered two things */
    SOAK_DOUBT_LOST,  /* bytes that may be half written pass for intact, or were read */
    SOAK_UNEXPLAINED, /* intact bytes are called suspect */
    SOAK_ODD,         /* a call answered what it should not */
    SOAK_CALLBACKS,   /* that ran twice, or not at all */
    SOAK_FAULTS
} soak_fault;

/* Counts it; the first ones are printed. */
void soak_report(soak_fault fault, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t soak_reported(soak_fault fault);

/* ---- chance ---- */

typedef struct soak_random {
    uint64_t state;
} soak_random;

uint64_t soak_next(soak_random *self);
uint32_t soak_below(soak_random *self, uint32_t limit);
bool soak_chance(soak_random *self, uint32_t one_in);
/* Word `index` of the data that `seed` stands for. */
uint32_t soak_word(uint32_t seed, uint64_t index);

/* ---- answers ---- */

enum { SOAK_STATUSES = 32, SOAK_ANSWERS = 1024 };

/* What tickets answered first. A ticket that is added takes the place of any other. */
typedef struct soak_answers {
    struct {
        bh_ticket ticket;
        bh_status status;
    } list[SOAK_ANSWERS];
    size_t count;
} soak_answers;

void soak_answers_add(soak_answers *self, soak_random *random, bh_ticket ticket, bh_status status);
/* Asks for one of them, or for all, in one of the ways there are. */
void soak_answers_ask(const soak_answers *self, soak_random *random);
void soak_answers_ask_all(const soak_answers *self, soak_random *random);

/* A place where threads show each other tickets as soon as they have them, so that several ask
 * about the same one at the same time. */
void soak_board_show(soak_random *random, bh_ticket ticket);
/* Asks about any ticket there is; its first answer holds for all. */
void soak_board_ask(soak_random *random);
/* What its owner learned. */
void soak_board_learned(bh_ticket ticket, bh_status status);

/* Tickets by their first answer, of all threads. */
extern _Atomic uint64_t soak_verdicts[SOAK_STATUSES];
extern _Atomic uint64_t soak_asked_again;

/* ---- a buffer and its model ---- */

typedef struct soak_block {
    bh_buffer buffer;
    uint32_t words;
    uint32_t *value; /* what each word is */
    uint8_t *doubt;  /* it may be anything */
    bool unknown;    /* nothing is known of it: overwritten before it is used again */
} soak_block;

/* ---- work ---- */

typedef enum soak_op_kind {
    SOAK_WRITE, /* from plain memory, through staging */
    SOAK_WRITE_HOST,
    SOAK_FILL,
    SOAK_COPY,
    SOAK_BLEND, /* a launch that overwrites its target */
    SOAK_WORK,  /* a launch that changes its target */
    SOAK_READ_HOST,
    SOAK_BAD /* a launch that never ends well */
} soak_op_kind;

typedef struct soak_op {
    soak_op_kind kind;
    const char *name;
    soak_block *target, *source;         /* a read has a source alone */
    uint32_t first, count, source_first; /* words */
    uint32_t seed, rounds;
    bool waits;  /* a call that returns when it is done: it has no ticket */
    bool pieces; /* more than one request */
    bool submitted;
    bh_status status; /* BH_E_BUSY: not known yet */
    bh_ticket ticket;
    bool cancelled; /* bh_cancel said BH_OK */
    bool called;    /* a callback was asked for */
    bool shown;     /* to the other threads */
    _Atomic uint32_t calls;
    _Atomic int32_t called_with;
} soak_op;

enum { SOAK_OPS = 16, SOAK_BLOCKS = 4, SOAK_LANES = 3 };
enum { SOAK_WORDS = 1024, SOAK_LARGE_WORDS = 320 * 1024, SOAK_HOST_WORDS = 16 * 1024 };

/* What becomes of the model by an operation, and whether its answer can be. `read` is what a read
 * got. In the order of submission. */
void soak_model_apply(soak_op *op, const uint32_t *read);
/* Compares doubt and bytes with the device's. False: the device is no longer to be asked. */
bool soak_model_check(soak_block *block, uint32_t *scratch);

/* ---- one opening of the device ---- */

typedef struct soak_kernels {
    bh_kernel work;                /* (u32 *p, u32 k, u32 n, u32 rounds) */
    bh_kernel blend;               /* (u32 *p, const u32 *a, u32 k, u32 n) */
    bh_kernel wild, trap, endless; /* (u32 *p) */
} soak_kernels;

typedef struct soak_era {
    uint64_t number; /* from 1 on */
    bh_device device;
    soak_kernels kernels;
    bool cpu;
} soak_era;

extern const char soak_kernel_source[];
bool soak_kernels_load(bh_device device, bh_module *module, soak_kernels *out);
uint32_t soak_work_word(uint32_t word, uint32_t k, uint32_t rounds);
uint32_t soak_blend_word(uint32_t word, uint32_t k);

/* What the main thread and the others share. */
typedef enum soak_bad { SOAK_BAD_WILD, SOAK_BAD_TRAP, SOAK_BAD_DEADLINE, SOAK_BADS } soak_bad;

typedef struct soak_stage {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    soak_era era;            /* number 0: none is open */
    bool over;               /* no more eras */
    uint32_t parked;         /* threads that wait for the next era */
    _Atomic uint64_t open;   /* the number of the era whose memory may be touched */
    _Atomic uint64_t ending; /* the latest era that was closed or stopped */
    pthread_rwlock_t memory; /* read by who touches host memory, written by who closes the device */
    _Atomic uint64_t rounds; /* of all threads */
    _Atomic int32_t wanted[SOAK_BADS]; /* kernels to go wrong, that no thread has launched yet */
} soak_stage;

typedef struct soak_thread {
    uint32_t index;
    soak_stage *stage;
    soak_random random;
    soak_answers answers;
    pthread_t thread;
    uint64_t tickets, refused, rounds, lanes_opened, modules, managed, dispatched;
    /* What it is inside of, for whoever looks for hangs. */
    _Atomic(const char *) call;
    _Atomic uint64_t since_ns;

    /* Of the era. */
    soak_era era;
    bool ended;
    soak_block blocks[SOAK_BLOCKS];
    bh_lane lanes[SOAK_LANES];
    uint32_t *host_in, *host_out; /* host memory: reads end in one, writes begin in the other */
    bool host_marked;             /* host_in holds a mark that nothing may overwrite */
    bh_module module;             /* one of its own */
    soak_kernels kernels;
    bh_buffer transparent;
    uint32_t *pages;
    uint32_t *scratch;
    soak_op ops[SOAK_OPS];
    uint32_t op_count;
    uint32_t settled; /* of them, in the last round */
} soak_thread;

void *soak_thread_run(void *context);
/* Marks the call it makes. */
#define SOAK_CALL(thread, expression)                                                              \
    (soak_call_begin((thread), #expression), soak_call_end((thread), (expression)))
void soak_call_begin(soak_thread *self, const char *name);
bh_status soak_call_end(soak_thread *self, bh_status status);

/* A managed buffer and a transparent one, through their whole lives. */
void soak_managed_round(soak_thread *self);
void soak_transparent_round(soak_thread *self);
/* One call that does it all, on an array of the host. */
void soak_dispatch_round(soak_thread *self);

/* True while host memory of the era may be touched; then soak_memory_leave ends it. */
bool soak_memory_enter(soak_thread *self);
void soak_memory_leave(soak_thread *self);
/* Judges the answer of a call that should have been taken: true if it was. */
bool soak_taken(soak_thread *self, bh_status status, const char *call);

#endif
