/* SPDX-License-Identifier: Apache-2.0 */
/* The control block: the shared memory through which an application and its workers exchange work.
 * The front is one memfd that only the application can write. Each worker has an area, a memfd that
 * no other worker has. docs/protocol.md defines who writes which word, in which order and why. */
#ifndef BH_WIRE_CONTROL_H
#define BH_WIRE_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h" /* BH__NEVER: a notify word that no thread waits on */
#include "bulkhead.h"
#include "wire/facts.h"

enum {
    BH__MAX_LANES = 64,
    BH__AREAS = 16, /* workers that can be alive, or dead and not yet reaped, at once */
    BH__SLOT_BYTES = 256,
    BH__MAX_PARAM_BYTES = 32764,  /* of one launch */
    BH__SMALL_PARAM_BYTES = 4096, /* most launches have fewer; the size of buffers kept ready */
    BH__REPORTS = BH__MAX_LANES,  /* a lane waits until its report is taken */
    BH__TIMED = 1024,             /* timed requests of a lane that are remembered */
    BH__GROUPS = 32,              /* of one lane; more than can be in flight */
    BH__GROUP_LENGTH = 8          /* maximum requests in one */
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

/* ---- the front: written by the application, read-only for workers ---- */

/* Positions count slots and never wrap; slot = position modulo queue_length. A request's sequence
 * number is the position after its last slot. */
typedef struct bh__lane_front {
    _Alignas(64) _Atomic uint64_t tail;         /* requests are submitted up to here */
    _Alignas(64) _Atomic uint64_t notify_sleep; /* wake the futex `wake` once `done` reaches this */
    _Atomic uint64_t notify_dispatch; /* write to the worker's bell once `done` reaches this */
} bh__lane_front;

typedef struct bh__front {
    uint64_t magic;
    uint32_t version;
    uint32_t queue_length; /* slots per lane, a power of two */
    uint64_t rings_offset; /* from the start of the front; one ring per lane, in order */
    uint64_t front_bytes;  /* including the rings */
    uint64_t area_bytes;   /* of each area */
    uint64_t worker_spin_ns;
    uint32_t ticks_usable;       /* base/ticks.h; the same for all processes */
    _Atomic uint32_t trace;      /* 1: workers record times, see bh__times */
    _Atomic uint64_t tick_scale; /* set before the first request */
    _Alignas(64) _Atomic uint64_t
        reaped; /* the workers of losses 1 to `reaped` have ended; the low half is a futex */
    /* Each worker answers the number in its own word; see docs/protocol.md, Signs of life. */
    _Alignas(64) _Atomic uint32_t ping[BH__AREAS]; /* futex */
    bh__lane_front lane[BH__MAX_LANES];
} bh__front;

enum {
    BH__OP_SKIP = 1, /* a request that already has a verdict: complete it without running it */
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
    BH__OP_FILL_ROWS, /* with a pattern in host memory at `source`; restarts in each row */
    BH__OP_PREFETCH   /* of BH__CHUNK_DRIVER memory: `target`, `bytes` and `where` */
};

/* An internal launch flag: the launch completes by itself, not in a group, because it has its own
 * deadline. */
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
            uint64_t target, source; /* *_ROWS: bytes from one row to the next */
        } pitch;
    };
} bh__copy_body;

/* Returns the bytes that it moves. */
static inline uint64_t bh__copy_bytes(const bh__copy_body *copy) {
    return copy->rows ? copy->bytes * copy->rows : copy->bytes;
}

/* Sets *out to the bytes from the start of the first row to the end of the last one. Returns false
 * if that exceeds 2^64, or if the rows are empty or overlap. */
static inline bool bh__rows_extent(uint64_t width, uint64_t rows, uint64_t pitch, uint64_t *out) {
    uint64_t last;
    return width && rows && (rows == 1 || pitch >= width) &&
           !__builtin_mul_overflow(rows - 1, pitch, &last) &&
           !__builtin_add_overflow(last, width, out);
}

typedef struct bh__sequence_body {
    uint32_t id;
    uint32_t version; /* of its steps: the index in the shared memory */
    uint64_t serial;  /* requests with the same serial have the same steps */
    uint32_t repeat;
} bh__sequence_body;

typedef struct bh__dependency {
    uint64_t lane;     /* index */
    uint64_t position; /* that lane must have completed up to here */
} bh__dependency;

/* The head of a request's first slot. The payload (dependencies, then parameters) starts at
 * BH__PAYLOAD_OFFSET and continues through the following slots, wrapping at the end of the ring. */
typedef struct bh__request {
    _Atomic uint16_t op; /* changed to BH__OP_SKIP by a cancel or a takeover */
    uint16_t slots;
    uint16_t dependency_count;
    uint16_t timed;        /* 1 + the index of its bh__timed; 0: none */
    uint64_t sequence;     /* position after the last slot */
    _Atomic uint64_t hold; /* the loss whose worker must be reaped before this may run; 0: none */
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

/* Bytes of parameters that always fit: a request may take half of the queue, and may depend on all
 * other lanes. */
static inline uint32_t bh__params_that_fit(uint32_t queue_length) {
    uint32_t rest = BH__PAYLOAD_OFFSET + BH__MAX_LANES * (uint32_t)sizeof(bh__dependency);
    return queue_length / 2 * BH__SLOT_BYTES - rest;
}

/* ---- the area of a worker, written by that worker ---- */

/* Requests that complete together: the device writes `end` and no position in between. Requests
 * outside of all groups complete one by one. */
typedef struct bh__group {
    _Atomic uint64_t begin; /* position of the first one */
    _Atomic uint64_t end;   /* position after the last one */
} bh__group;

/* Counters of a worker's lane. Written by the lane's thread only, relaxed, after `done`: what is
 * counted has completed. */
typedef struct bh__times_counted {
    _Atomic uint64_t sum_ns;
    _Atomic uint64_t buckets[BH_HISTOGRAM_BUCKETS];
} bh__times_counted;

typedef struct bh__lane_counts {
    _Atomic uint64_t trains, train_launches;
    _Atomic uint64_t depth_max; /* slots */
    bh__times_counted queued, waiting, running;
} bh__lane_counts;

/* The launches of one kernel on a lane and how long they ran. A kernel takes the first free of
 * BH__KERNEL_PROBES places from its hash on; without one it is not counted. Sequences are not. */
typedef struct bh__kernel_counts {
    _Atomic uint64_t key; /* 1 + the module's number, and the kernel's index below it; 0: free */
    _Atomic uint64_t launches, ns;
} bh__kernel_counts;

enum { BH__KERNEL_PLACES = 32, BH__KERNEL_PROBES = 8 };

static inline uint64_t bh__kernel_key(uint32_t module, uint32_t kernel) {
    return ((uint64_t)module + 1) << 32 | kernel;
}

typedef struct bh__lane_area {
    _Alignas(64) _Atomic uint64_t
        claim;                /* worker: compare-and-swap; application: sets and clears the flags */
    _Atomic uint64_t handing; /* 1 + the first position of the requests that are being
                                 submitted to the driver now; 0: none */
    _Alignas(64) _Atomic uint32_t
        asleep; /* futex: the worker sets it before it waits; the thread that wakes it clears it */
    _Alignas(64) _Atomic uint64_t done; /* everything up to here has completed */
    _Atomic uint32_t wake;              /* futex: incremented to wake waiters */
    _Atomic uint64_t step;              /* progress of a sequence replay: bh__step_word */
    _Atomic uint64_t
        pulse; /* used by the worker only: the device counts parts of a long request here */
    /* Used as a ring. Each is written before its requests reach the device. */
    bh__group groups[BH__GROUPS];
    _Alignas(64) bh__lane_counts counts;
    bh__kernel_counts kernels[BH__KERNEL_PLACES];
} bh__lane_area;

/* When the last request that began in a slot was taken, started and completed, in ticks; 0: not
 * yet. Written in this order while front->trace is set; the application only reads them. They
 * follow the area, queue_length for each lane. */
typedef struct bh__times {
    _Atomic uint64_t sequence, taken, begun, done;
} bh__times;

/* The times of a request with BH_SUBMIT_TIMED, when it has completed. `sequence` is written last;
 * the application only reads them. They follow the bh__times, BH__TIMED for each lane. */
typedef struct bh__timed {
    _Atomic uint64_t sequence;
    _Atomic uint64_t taken, begun; /* ticks */
    _Atomic uint64_t device_ns;
} bh__timed;

/* A worker's report on one request. */
typedef struct bh__report {
    uint32_t lane;
    bh_status status;  /* of a fault: BH_E_STOPPED if the device must not be used again */
    uint64_t sequence; /* 0: the request is not known */
    int32_t device_code;
    uint32_t step;    /* of a sequence, counted from 1; 0: not known, or not a sequence */
    uint32_t bytes;   /* faults: of the bad access; 0: there was none, or it is not known */
    uint32_t illegal; /* faults: 1: a kernel accessed an illegal address */
    uint64_t address; /* of that access, on the device; known if `bytes` is */
    char device_name[64];
    char message[512];
    char fix[256];
} bh__report;

enum { BH__FAULT_NONE = 0, BH__FAULT_WRITING = 1, BH__FAULT_SET = 2 };

typedef struct bh__area {
    _Atomic uint32_t fault_state; /* SET: `fault` is valid and this worker is lost */
    _Atomic uint32_t pong;        /* the last ping that the worker has answered */
    bh__report fault;
    _Alignas(64) _Atomic uint32_t reports_made; /* by the worker */
    _Atomic uint32_t
        reports_taken; /* by the application; futex: lanes wait until theirs is taken */
    bh__report reports[BH__REPORTS];
    bh__lane_area lane[BH__MAX_LANES];
} bh__area;

/* One step of a sequence. A version of a sequence is an array of steps, followed by the parameters
 * of its launches. */
typedef struct bh__sequence_step {
    uint32_t op;     /* BH__OP_LAUNCH, WRITE, READ, COPY, FILL; SKIP: a transfer of no bytes */
    uint32_t params; /* of a launch: offset in the version, a multiple of 16 */
    union {
        bh__launch_body launch;
        bh__copy_body copy;
    } u;
} bh__sequence_step;

/* The step word: `done` steps have completed, and the word is written again after `next` more. 0:
 * not written yet. */
static inline uint64_t bh__step_word(uint32_t done, uint32_t next) {
    return (uint64_t)next << 32 | done;
}

/* A device with queues of its own writes `step` after every so many steps, so that a fault is
 * narrowed down to at most that many. */
enum { BH__STEP_GROUP = 16 };

/* What both sides must agree on: a number that is raised when the protocol changes, and the layout
 * of the structs. */
#define BH__WIRE_VERSION                                                                           \
    (10u << 24 |                                                                                   \
     (uint32_t)(sizeof(bh__front) * 31 + sizeof(bh__area) * 17 + sizeof(bh__lane_area) * 7 +       \
                offsetof(bh__lane_area, done) * 5 + sizeof(bh__request) * 3 + BH__PAYLOAD_OFFSET + \
                sizeof(bh__device_facts) * 11 + sizeof(bh__times) +                                \
                sizeof(bh__timed) * BH__TIMED))

/* ---- addresses in the block ---- */

static inline uint64_t bh__rings_offset(void) {
    return (sizeof(bh__front) + 65535) & ~65535ull;
}

static inline uint8_t *bh__lane_ring(bh__front *front, uint32_t queue_length, uint32_t lane) {
    return (uint8_t *)front + bh__rings_offset() + (uint64_t)lane * queue_length * BH__SLOT_BYTES;
}

static inline uint64_t bh__area_head_bytes(void) {
    return (sizeof(bh__area) + 65535) & ~65535ull;
}

static inline bh__times *bh__area_times(bh__area *area, uint32_t queue_length, uint32_t lane,
                                        uint64_t position) {
    bh__times *times = (bh__times *)(void *)((uint8_t *)area + bh__area_head_bytes());
    return &times[(uint64_t)lane * queue_length + (position & (queue_length - 1))];
}

static inline uint64_t bh__timed_offset(uint32_t queue_length) {
    uint64_t times = (uint64_t)BH__MAX_LANES * queue_length * sizeof(bh__times);
    return bh__area_head_bytes() + ((times + 65535) & ~65535ull);
}

static inline bh__timed *bh__area_timed(bh__area *area, uint32_t queue_length, uint32_t lane,
                                        uint32_t index) {
    uint8_t *all = (uint8_t *)area + bh__timed_offset(queue_length);
    return &((bh__timed *)(void *)all)[(uint64_t)lane * BH__TIMED + index % BH__TIMED];
}

static inline bh__request *bh__ring_request(uint8_t *ring, uint32_t queue_length,
                                            uint64_t position) {
    return (bh__request *)(void *)(ring + (position & (queue_length - 1)) * BH__SLOT_BYTES);
}

/* The offset in the ring, whose size is a power of two, of a part of the payload of the request at
 * `position`. */
static inline size_t bh__payload_at(size_t ring_bytes, uint64_t position, size_t offset) {
    return (position * BH__SLOT_BYTES + BH__PAYLOAD_OFFSET + offset) & (ring_bytes - 1);
}

/* These copy a part of the payload, and wrap at the end of the ring. */
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

/* Fills in sizes and offsets for this queue length: everything except the atomics. */
void bh__front_layout(bh__front *front, uint32_t queue_length);

#endif
