/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: requests and events on their way from the device's lock, through a ring, to the thread that
 * writes the file. */
#ifndef BH_CLIENT_TRACE_H
#define BH_CLIENT_TRACE_H

#include "base/ticks.h"
#include "client/internal.h"

enum {
    BH__TRACE_RING = 16384, /* records */
    BH__TRACE_NAMES = 4096,
    BH__TRACE_TEXT = 96
};

/* One request, noted when it is submitted. Times are ticks; 0: not known. */
typedef struct bh__trace_note {
    uint64_t start, sequence;
    uint64_t submitted, taken, begun, done;
    uint64_t bytes;         /* transfers */
    uint32_t name;          /* of the kernel or sequence */
    uint32_t steps, repeat; /* sequences */
    uint32_t grid[3], block[3];
    bh_status verdict;
    uint16_t op;
    uint16_t slots;
    uint8_t resolved; /* `verdict` is the last word */
    uint8_t pending;  /* the trace ended first */
} bh__trace_note;

/* A lane's requests that are not yet in the ring, a note for each slot of its queue; notes of further
 * slots have `start` alone. With the device locked. */
typedef struct bh__lane_trace {
    uint64_t cursor;      /* requests before this are in the ring */
    uint64_t waits_since; /* ticks; the one at the cursor is done, and its times are not there */
    uint64_t ended;       /* ticks; where the one before the cursor ended */
    uint64_t mask;
    bool ticks_usable;
    bh__trace_note notes[];
} bh__lane_trace;

enum { BH__TRACE_REQUEST, BH__TRACE_INSTANT, BH__TRACE_SPAN };

typedef struct bh__trace_record {
    uint32_t kind;
    uint32_t lane; /* requests */
    union {
        bh__trace_note request;
        struct {
            uint64_t from, to; /* ticks */
            uint64_t value;
            const char *name;  /* a constant */
            const char *label; /* of the value, a constant; NULL: none */
            char text[BH__TRACE_TEXT];
        } event;
    } u;
} bh__trace_record;

/* One producer, whoever has the device locked, and one consumer, the writer. */
typedef struct bh__trace {
    bh__device *device; /* Borrowed: the trace ends before it. */
    int fd;             /* Owned. */
    bool ticks_usable;
    uint64_t origin, scale;              /* ticks are told from `origin` on */
    bh__trace_record *ring;              /* Owned. */
    _Alignas(64) _Atomic uint64_t made;  /* by the producer */
    _Atomic uint64_t dropped;            /* by the producer */
    _Alignas(64) _Atomic uint64_t taken; /* by the consumer */
    _Alignas(64) _Atomic uint32_t bell;  /* private futex the writer sleeps on */
    _Atomic bool asleep;                 /* without a limit; with the device locked */
    _Atomic bool ending;
    _Atomic(char *) names[BH__TRACE_NAMES]; /* Owned. Set once each, with the device locked. */
    uint32_t name_count;
    pthread_t writer;
    int failed;                    /* errno of the first write that failed; the writer's */
    uint64_t told;                 /* drops that the file speaks of; the writer's */
    uint64_t lanes_named;          /* a bit a lane; the writer's */
    bool begun;                    /* the file has its first event; the writer's */
    uint64_t ended[BH__MAX_LANES]; /* where the last running time on a lane ends; the writer's */
} bh__trace;

/* ---- trace.c, all with the device locked ---- */

/* A request is about to be published. */
void bh__trace_submit(bh__device *device, const bh__submission *submission, uint64_t start,
                      uint64_t end);
/* A ticket has failed. */
void bh__trace_verdict(bh__lane *lane, uint64_t sequence, bh_status status);
/* The worker is lost and its lanes are frozen: what it wrote down is kept. */
void bh__trace_frozen(bh__device *device, const uint64_t *taken);
/* Something happened now, or since `from`. `name` and `label` are constants. */
void bh__trace_instant(bh__device *device, const char *name, const char *label, uint64_t value,
                       const char *text);
void bh__trace_span(bh__device *device, const char *name, uint64_t ns, const char *label,
                    uint64_t value, const char *text);
/* Puts requests that are done into the ring. True: some are not done, or wait for their times. */
bool bh__trace_sweep(bh__device *device, bool all);

/* Without the lock: ends the trace of a device that is being closed. */
void bh__trace_close(bh__device *device);

/* ---- trace_file.c: the writer's thread ---- */

void *bh__trace_writer(void *trace);

#endif
