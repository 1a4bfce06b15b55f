/* SPDX-License-Identifier: Apache-2.0 */
/* Traces. Threads that hold the device's lock put requests and events into a ring; a writer thread
 * writes them to the file. */
#ifndef BH_CLIENT_OBSERVE_TRACE_H
#define BH_CLIENT_OBSERVE_TRACE_H

#include "base/ticks.h"
#include "client/core/device.h"

enum {
    BH__TRACE_RING = 16384, /* records */
    BH__TRACE_NAMES = 4096,
    BH__TRACE_TEXT = 96
};

/* One request, recorded when it is submitted. Times are in ticks; 0: not known. */
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
    uint8_t resolved; /* `verdict` is final */
    uint8_t pending;  /* the trace ended before the request did */
} bh__trace_note;

/* A lane's requests that are not in the ring yet: one note for each slot of its queue. A request
 * that takes several slots has its data in the first note; the others have only `start`. Used with
 * the device locked. */
typedef struct bh__lane_trace {
    uint64_t cursor; /* requests before this are in the ring */
    uint64_t
        waits_since; /* ticks; the request at the cursor has completed, its times are missing */
    uint64_t ended;  /* ticks; when the request before the cursor ended */
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

/* One producer at a time, the thread that has the device locked, and one consumer, the writer. */
struct bh__trace {
    bh__device *device; /* Borrowed: the trace ends before the device. */
    int fd;             /* Owned. */
    bool ticks_usable;
    uint64_t origin, scale;              /* times in the file count from `origin` */
    bh__trace_record *ring;              /* Owned. */
    _Alignas(64) _Atomic uint64_t made;  /* by the producer */
    _Atomic uint64_t dropped;            /* by the producer */
    _Alignas(64) _Atomic uint64_t taken; /* by the consumer */
    _Alignas(64) _Atomic uint32_t bell;  /* private futex that the writer waits on */
    _Atomic bool asleep; /* the writer waits without timeout; set with the device locked */
    _Atomic bool ending;
    _Atomic(char *) names[BH__TRACE_NAMES]; /* Owned. Set once each, with the device locked. */
    uint32_t name_count;
    pthread_t writer;
    /* Used by the writer only: */
    int failed;                    /* errno of the first write that failed */
    uint64_t drops_reported;       /* records that the file reports as dropped */
    uint64_t lanes_named;          /* one bit per lane */
    bool begun;                    /* the first event is in the file */
    uint64_t ended[BH__MAX_LANES]; /* ticks since `origin`: the end of the last running span */
};

/* ---- trace.c. Called with the device locked. ---- */

/* A request is about to be published. */
void bh__trace_submit(bh__device *device, const bh__submission *submission, uint64_t start,
                      uint64_t end);
/* A ticket has failed. */
void bh__trace_verdict(bh__lane *lane, uint64_t sequence, bh_status status);
/* The worker is lost and its lanes are frozen: the times that it wrote are saved. */
void bh__trace_frozen(bh__device *device, const uint64_t *taken);
/* Record an event now, or a span that ends now. `name` and `label` are constants. */
void bh__trace_instant(bh__device *device, const char *name, const char *label, uint64_t value,
                       const char *text);
void bh__trace_span(bh__device *device, const char *name, uint64_t ns, const char *label,
                    uint64_t value, const char *text);
/* Puts completed requests into the ring. Returns true if some have not completed, or their times
 * are missing. With `all`, every request is put there. */
bool bh__trace_sweep(bh__device *device, bool all);

/* Ends the trace of a device that is being closed. Called without the lock. */
void bh__trace_close(bh__device *device);

/* ---- trace_file.c: the writer's thread ---- */

void *bh__trace_writer(void *trace);

#endif
