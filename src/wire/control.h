/* SPDX-License-Identifier: Apache-2.0 */
/* The control block: the shared memory through which an application and its workers exchange work.
 * docs/protocol.md says who writes which word, in what order and why. */
#ifndef BH_WIRE_CONTROL_H
#define BH_WIRE_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h" /* BH__NEVER: a notify word that nobody waits on */
#include "bulkhead.h"

enum {
    BH__MAX_LANES = 64,
    BH__AREAS = 16, /* workers that can be alive, or dead and not yet reaped, at once */
    BH__SLOT_BYTES = 256,
    BH__MAX_PARAM_BYTES = 32764,  /* of one launch */
    BH__SMALL_PARAM_BYTES = 4096, /* most launches have fewer: what is kept for each at hand */
    BH__REPORTS = BH__MAX_LANES,  /* a lane waits until its report is taken */
    BH__GROUPS = 32,     /* of one lane; more than can be in flight */
    BH__GROUP_LENGTH = 8 /* requests in one, at most */
};

#define BH__WIRE_MAGIC 0x3144414548424c42ull /* "BLBHEAD1" */

/* The claim word: the position up to which requests are taken, above two flags that only the
 * application sets. */
#define BH__FROZEN      1ull
#define BH__PAUSED      2ull
#define BH__CLAIM_SHIFT 2
static inline uint64_t bh__claim_position(uint64_t claim) {
    return claim >> BH__CLAIM_SHIFT;
}
static inline uint64_t bh__claim_word(uint64_t position) {
    return position << BH__CLAIM_SHIFT;
}

/* ---- written by the application, mapped read-only by workers --------------------------------- */

/* Positions count slots and never wrap; slot = position modulo queue_length. A request's sequence
 * number is the position after its last slot. */
typedef struct bh__lane_front {
    _Alignas(64) _Atomic uint64_t tail;         /* submitted up to here */
    _Alignas(64) _Atomic uint64_t notify_sleep; /* wake `wake` once done reaches this */
    _Atomic uint64_t notify_dispatch; /* write the dispatcher's eventfd once done reaches this */
} bh__lane_front;

typedef struct bh__front {
    uint64_t magic;
    uint32_t version;
    uint32_t queue_length; /* slots a lane, a power of two */
    uint64_t rings_offset; /* from the start of the block; one ring a lane, one after the other */
    uint64_t areas_offset; /* from the start of the block; page aligned */
    uint64_t area_bytes;
    uint64_t total_bytes;
    uint64_t worker_spin_ns;
    uint32_t ticks_usable;       /* base/ticks.h, for all processes alike */
    _Atomic uint32_t trace;      /* 1: workers write down times, see bh__times */
    _Atomic uint64_t tick_scale; /* set before the first request */
    _Alignas(64) _Atomic uint64_t
        reaped; /* lost workers 1 .. reaped are gone for good; low half is a futex */
    /* Each worker answers the number in its own; see docs/protocol.md, Signs of life. */
    _Alignas(64) _Atomic uint32_t ping[BH__AREAS]; /* futex */
    bh__lane_front lane[BH__MAX_LANES];
} bh__front;

enum {
    BH__OP_SKIP = 1, /* a request with a verdict already: complete it without doing anything */
    BH__OP_LAUNCH,
    BH__OP_WRITE, /* host memory to device */
    BH__OP_READ,  /* device to host memory */
    BH__OP_COPY,
    BH__OP_FILL,
    BH__OP_GLOBAL_WRITE, /* host memory to a module's variable */
    BH__OP_GLOBAL_READ,
    BH__OP_SEQUENCE, /* all steps of a sequence, in order, a number of times */
    /* Rows: `bytes` is the width of each. */
    BH__OP_WRITE_ROWS,
    BH__OP_READ_ROWS,
    BH__OP_COPY_ROWS,
    BH__OP_FILL_ROWS, /* with a pattern in host memory at `source`, anew in each row */
    BH__OP_PREFETCH   /* of BH__CHUNK_DRIVER memory: `target`, `bytes` and `where` */
};

/* Beside BH_LAUNCH_COOPERATIVE: its completion is told by itself, because it has a deadline of its
 * own. */
#define BH__LAUNCH_ALONE (1u << 31)

typedef struct bh__launch_body {
    uint32_t module;
    uint32_t kernel; /* index within the module */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3]; /* zeros: none */
    uint32_t shared_bytes;
    uint32_t flags;          /* BH_LAUNCH_COOPERATIVE, _PRIORITY, _PROGRAMMATIC, BH__LAUNCH_ALONE */
    uint32_t param_bytes;    /* after the dependencies in the payload */
    int32_t priority;        /* with BH_LAUNCH_PRIORITY */
    uint32_t cluster_policy; /* BH_CLUSTER_DEFAULT ... */
} bh__launch_body;

typedef struct bh__copy_body {
    uint64_t target; /* device address; READ: offset in the host region */
    uint64_t source; /* device address; WRITE: offset in the host region */
    uint64_t bytes;
    uint64_t rows; /* *_ROWS */
    union {
        uint32_t host;  /* WRITE, READ, GLOBAL_*, *_ROWS: the host region */
        uint32_t where; /* PREFETCH: BH_TO_DEVICE, BH_TO_HOST */
    };
    uint32_t module; /* GLOBAL_*: target or source is an offset in this module's variable */
    uint32_t variable;
    uint32_t pattern_bytes; /* FILL, FILL_ROWS */
    union {
        uint8_t pattern[16]; /* FILL */
        struct {
            uint64_t target, source; /* *_ROWS: from the start of one row to that of the next */
        } pitch;
    };
} bh__copy_body;

/* Bytes that it moves. */
static inline uint64_t bh__copy_bytes(const bh__copy_body *copy) {
    return copy->rows ? copy->bytes * copy->rows : copy->bytes;
}

/* Bytes from the first of the first row to the last of the last one. False: more than 2^64, or rows
 * that make no sense. */
static inline bool bh__rows_extent(uint64_t width, uint64_t rows, uint64_t pitch, uint64_t *out) {
    uint64_t last;
    return width && rows && (rows == 1 || pitch >= width) &&
           !__builtin_mul_overflow(rows - 1, pitch, &last) &&
           !__builtin_add_overflow(last, width, out);
}

typedef struct bh__sequence_body {
    uint32_t id;
    uint32_t version; /* of its steps: which of the places in the shared memory */
    uint64_t serial;  /* two requests with the same one mean the same steps */
    uint32_t repeat;
} bh__sequence_body;

typedef struct bh__dependency {
    uint64_t lane;     /* index */
    uint64_t position; /* that lane must be done up to here */
} bh__dependency;

/* The head of a request's first slot. The payload (dependencies, then parameters) starts right
 * behind it and runs on through the following slots, wrapping round at the end of the ring. */
typedef struct bh__request {
    _Atomic uint16_t op; /* turned into BH__OP_SKIP by a cancel or a takeover */
    uint16_t slots;
    uint32_t dependency_count;
    uint64_t sequence;     /* position after the last slot */
    _Atomic uint64_t hold; /* the lost worker that must be reaped before this may run; 0: none */
    uint64_t submitted;    /* ticks; 0: not timed */
    union {
        bh__launch_body launch;
        bh__copy_body copy;
        bh__sequence_body sequence;
    } u;
} bh__request;

#define BH__PAYLOAD_OFFSET 96
_Static_assert(sizeof(bh__request) <= BH__PAYLOAD_OFFSET,
               "a request's head must leave room for its payload");

/* Slots needed for a request with this payload. */
static inline uint32_t bh__slots_for(size_t payload_bytes) {
    return (uint32_t)((BH__PAYLOAD_OFFSET + payload_bytes + BH__SLOT_BYTES - 1) / BH__SLOT_BYTES);
}

/* Bytes of parameters for which there is always room: a request may take half of the queue, and may
 * have to wait for all other lanes. */
static inline uint32_t bh__params_that_fit(uint32_t queue_length) {
    uint32_t rest = BH__PAYLOAD_OFFSET + BH__MAX_LANES * (uint32_t)sizeof(bh__dependency);
    return queue_length / 2 * BH__SLOT_BYTES - rest;
}

/* ---- one area a worker, written by that worker ---- */

/* Requests that are known to be done only together: the device writes `end` and nothing in
 * between. Requests outside of all groups are known one by one. */
typedef struct bh__group {
    _Atomic uint64_t begin; /* position of the first one */
    _Atomic uint64_t end;   /* position after the last one */
} bh__group;

/* What a lane of a worker has counted. Written by its thread alone, relaxed, after the `done` of what
 * it counts: what is counted is done. */
typedef struct bh__times_counted {
    _Atomic uint64_t sum_ns;
    _Atomic uint64_t buckets[BH_HISTOGRAM_BUCKETS];
} bh__times_counted;

typedef struct bh__lane_counts {
    _Atomic uint64_t trains, train_launches;
    _Atomic uint64_t depth_max; /* slots */
    bh__times_counted queued, waiting, running;
} bh__lane_counts;

typedef struct bh__lane_area {
    _Alignas(64) _Atomic uint64_t
        claim;                /* worker: compare-and-swap; application: sets and clears the flags */
    _Atomic uint64_t handing; /* the position from which on requests are being handed to the
                                 device's driver at this moment, plus 1; 0: none are */
    _Alignas(64) _Atomic uint32_t
        asleep; /* futex: the worker sets it before it sleeps on it; whoever wakes it clears it */
    _Alignas(64) _Atomic uint64_t done; /* everything up to here is complete */
    _Atomic uint32_t wake;  /* futex: counted up to wake sleepers */
    _Atomic uint64_t step;  /* how far the replay of a sequence is known to be: bh__step_word */
    _Atomic uint64_t pulse; /* the worker's own: the device counts pieces of a long request here */
    /* Written before their requests reach the device, in turn. */
    bh__group groups[BH__GROUPS];
    _Alignas(64) bh__lane_counts counts;
} bh__lane_area;

/* When the request that last began in a slot was taken, begun and done, in ticks; 0: not yet. Written
 * while front->trace is set, in this order, and only read by the application. They stand behind the
 * area, queue_length for each lane. */
typedef struct bh__times {
    _Atomic uint64_t sequence, taken, begun, done;
} bh__times;

/* What a worker has to say about one request. */
typedef struct bh__report {
    uint32_t lane;
    bh_status status;  /* of a fault: BH_E_STOPPED if no worker is to use the device again */
    uint64_t sequence; /* 0: the worker does not know which request it was */
    int32_t device_code;
    uint32_t step;    /* of a sequence, from 1 on; 0: not known, or it was none */
    uint32_t bytes;   /* faults: of the access that went wrong, where one did; else 0 */
    uint64_t address; /* and where on the device */
    char device_name[64];
    char message[512];
    char fix[256];
} bh__report;

enum { BH__FAULT_NONE = 0, BH__FAULT_WRITING = 1, BH__FAULT_SET = 2 };

typedef struct bh__area {
    _Atomic uint32_t fault_state; /* SET: `fault` is filled in and this worker is lost */
    _Atomic uint32_t pong;        /* the latest ping that the worker has seen */
    bh__report fault;
    _Alignas(64) _Atomic uint32_t reports_made; /* by the worker */
    _Atomic uint32_t reports_taken; /* by the application; futex: lanes wait for theirs to be taken */
    bh__report reports[BH__REPORTS];
    bh__lane_area lane[BH__MAX_LANES];
} bh__area;

/* One step of a sequence. A version of a sequence is an array of them, with the parameters of its
 * launches behind it. */
typedef struct bh__sequence_step {
    uint32_t op;     /* BH__OP_LAUNCH, WRITE, READ, COPY, FILL */
    uint32_t params; /* of a launch: where, from the start of the version; a multiple of 16 */
    union {
        bh__launch_body launch;
        bh__copy_body copy;
    } u;
} bh__sequence_step;

/* The step word: so many steps are done, and the next word comes after so many more. Zero: none was
 * ever written. */
static inline uint64_t bh__step_word(uint32_t done, uint32_t next) {
    return (uint64_t)next << 32 | done;
}

/* After this many steps of a sequence, and after each as many again, a device with queues of its own
 * writes `step`: a fault is put down to so many at most. */
enum { BH__STEP_GROUP = 16 };

/* What both sides must agree on: a number that goes up when the protocol changes, and the layout
 * that it had when it was built. */
#define BH__WIRE_VERSION                                                                           \
    (6u << 24 |                                                                                    \
     (uint32_t)(sizeof(bh__front) * 31 + sizeof(bh__area) * 17 + sizeof(bh__lane_area) * 7 +       \
                offsetof(bh__lane_area, done) * 5 + sizeof(bh__request) * 3 + BH__PAYLOAD_OFFSET + \
                sizeof(bh_device_info) * 11))

/* ---- finding one's way in the block ---- */

static inline uint8_t *bh__lane_ring(bh__front *front, uint32_t lane) {
    return (uint8_t *)front + front->rings_offset +
           (uint64_t)lane * front->queue_length * BH__SLOT_BYTES;
}

static inline uint64_t bh__area_head_bytes(void) {
    return (sizeof(bh__area) + 65535) & ~65535ull;
}

static inline bh__times *bh__area_times(bh__area *area, uint32_t queue_length, uint32_t lane,
                                        uint64_t position) {
    bh__times *times = (bh__times *)(void *)((uint8_t *)area + bh__area_head_bytes());
    return &times[(uint64_t)lane * queue_length + (position & (queue_length - 1))];
}

static inline bh__request *bh__ring_request(uint8_t *ring, uint32_t queue_length,
                                            uint64_t position) {
    return (bh__request *)(void *)(ring + (position & (queue_length - 1)) * BH__SLOT_BYTES);
}

/* Where in the ring, whose size is a power of two, a piece of the payload of the request at
 * `position` begins. */
static inline size_t bh__payload_at(size_t ring_bytes, uint64_t position, size_t offset) {
    return (position * BH__SLOT_BYTES + BH__PAYLOAD_OFFSET + offset) & (ring_bytes - 1);
}

/* Copy such a piece, round the end of the ring where need be. */
static inline void bh__payload_write(uint8_t *ring, uint32_t queue_length, uint64_t position,
                                     size_t offset, const void *data, size_t bytes) {
    if (bytes == 0) return;
    size_t ring_bytes = (size_t)queue_length * BH__SLOT_BYTES;
    size_t at = bh__payload_at(ring_bytes, position, offset), room = ring_bytes - at;
    memcpy(ring + at, data, bytes < room ? bytes : room);
    if (bytes > room) memcpy(ring, (const uint8_t *)data + room, bytes - room);
}
static inline void bh__payload_read(const uint8_t *ring, uint32_t queue_length, uint64_t position,
                                    size_t offset, void *data, size_t bytes) {
    if (bytes == 0) return;
    size_t ring_bytes = (size_t)queue_length * BH__SLOT_BYTES;
    size_t at = bh__payload_at(ring_bytes, position, offset), room = ring_bytes - at;
    memcpy(data, ring + at, bytes < room ? bytes : room);
    if (bytes > room) memcpy((uint8_t *)data + room, ring, bytes - room);
}

/* Sizes and offsets of a block with this queue length; fills everything but the atomics. */
void bh__front_layout(bh__front *front, uint32_t queue_length);

#endif
