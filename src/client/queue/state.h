/* SPDX-License-Identifier: Apache-2.0 */
/* The data of this room: requests, lanes, submissions. */
#ifndef BH_CLIENT_QUEUE_STATE_H
#define BH_CLIENT_QUEUE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "client/core/types.h"
#include "client/queue/counts.h"
#include "wire/control.h"

enum {
    BH__LOAD_LANE = BH__MAX_LANES, /* the lane of compiles and module loads. It has no ring, and its
                                      tickets complete in any order. */
    BH__LANES = BH__MAX_LANES + 1,
    BH__USES_PER_SLOT = 8
};

/* With BH_ACCESS_OUT: the write leaves gaps, so it does not clear doubt. */
enum { BH__ACCESS_GAPS = 4 };

/* A request that does nothing but tells what became of earlier moves of the bytes that it uses. */
typedef enum bh__tells { BH__TELLS_NOTHING, BH__TELLS_UPLOADS, BH__TELLS_DOWNLOADS } bh__tells;

struct bh__use {
    bh__memory *memory; /* Borrowed: memory outlives the requests that use it. */
    uint64_t offset, bytes;
    uint32_t access;
    uint32_t argument; /* index of the launch argument plus one; 0: none */
};

/* The application's private record of a request, one for each slot of the ring. Uses beyond the
 * first BH__USES_PER_SLOT are in the shadows of the request's further slots. */
struct bh__shadow {
    uint64_t start; /* position of the request's first slot */
    uint64_t stamp; /* order of submission over all lanes */
    uint64_t deadline_ns;
    bh__kernel *kernel;     /* launches */
    bh__module *module;     /* launches and variables */
    bh__sequence *sequence; /* sequences */
    uint32_t slots;
    uint32_t use_count;
    uint32_t grid[3], block[3];
    uint16_t op;
    uint8_t idempotent;
    uint8_t needed;   /* if it fails, its outputs are in doubt: later requests need them, or it may
                         have written part of them */
    uint8_t resolved; /* it has a verdict, and its op in the ring is BH__OP_SKIP */
    uint8_t running;  /* resolved: the worker had taken it, so it may still run */
    uint8_t undo;     /* resolved: the page moves it planned have not been undone yet */
    uint8_t tells;    /* bh__tells */
    /* A piece of a call: the position of the call's first piece plus one, and the bytes that the
     * whole call writes. 0: the request is not a piece. */
    uint64_t call, call_offset, call_bytes;
    bh__use uses[BH__USES_PER_SLOT];
};

/* Positions from..to of a lane. */
typedef struct bh__run {
    uint64_t from, to;
} bh__run;

/* A verdict: the failure of a ticket. All pointers are borrowed. */
struct bh__failure {
    uint64_t sequence;
    bh_status status;
    uint32_t certain;
    uint64_t loss;          /* number of the lost worker that caused it; 0: none */
    const char *kernel;     /* NULL: not a launch */
    const bh_error *detail; /* NULL: the message is composed from the fields above */
};

/* A thread that waits for a position of a lane. */
typedef struct bh__sleeper {
    uint64_t sequence;
    struct bh__sleeper *next;
} bh__sleeper;

/* The position is in the low bits of bh__lane.answered, the era above it. */
enum { BH__ANSWERED_BITS = 48 };
static inline uint64_t bh__answered_position(uint64_t answered) {
    return answered & (((uint64_t)1 << BH__ANSWERED_BITS) - 1);
}

/* The life cycle of a lane. FREE: available. OPENING: reserved by a caller. CLOSED: its handle is
 * closed and its work continues; it becomes FREE once that is done. */
typedef enum bh__lane_state {
    BH__LANE_FREE,
    BH__LANE_OPENING,
    BH__LANE_OPEN,
    BH__LANE_CLOSED
} bh__lane_state;

struct bh__lane {
    _Atomic uint64_t id; /* the lane id in tickets; 0: not in use. Read without the lock. */
    pthread_mutex_t wait_lock;
    bh__sleeper *sleepers; /* under wait_lock */
    bh__lane_state state;
    uint64_t handle;        /* 0: the default lane, the load lane, or not OPEN */
    bh__verdicts *verdicts; /* Borrowed. The failures of `id`. */
    uint32_t index;
    bool exists;               /* the workers have created it */
    bool no_block;             /* BH_LANE_NO_BLOCK */
    bool no_room_for_verdicts; /* no host memory for the verdicts of more requests */
    int32_t priority;          /* the priority it was created with in the workers */
    _Atomic uint64_t tail;     /* Written with the lock held, read without. */
    uint64_t retired;          /* the position known to be done: slots before it are free */
    uint64_t floor;            /* the position where the active worker started */
    uint64_t begun;            /* the position up to which lost workers had taken requests */
    uint64_t claimed;          /* the highest position the active worker is known to have taken */
    /* No ticket above this has failed, of this id or an earlier one. Read without the lock. */
    _Atomic uint64_t last_failed;
    /* The position up to which a caller has seen the lane done, with an era above it that changes
     * with each freeze and each new worker (BH__ANSWERED_BITS). The lane stays done up to there,
     * whatever the worker writes later. Written and read without the lock. */
    _Atomic uint64_t answered;
    /* With transparent buffers: tickets up to here were or could have been reported as done.
     * They stay done, whatever write-back has become necessary since. Written and read without
     * the lock. */
    _Atomic uint64_t written_back;
    uint32_t to_write_back; /* transparent buffers with results of this lane to write back */
    _Atomic uint64_t lowest_sleeper; /* position; BH__NEVER: none. Written under wait_lock. */
    /* Load lane only. All tickets up to load_done are resolved. Of the later ones, those are
     * pending that belong to a module in `pending`. */
    _Atomic uint64_t load_done;
    _Atomic uint32_t load_wake; /* futex: incremented with each ticket that is resolved */
    bh__module *pending;        /* Borrowed. Lowest ticket first. */
    uint8_t *ring;
    bh__shadow *shadow;
    /* Written by the supervisor, with times of the watchdog's clock. head_position: the position of
     * the first request in flight plus one, 0: none. head_taken: the worker has taken it;
     * taken_since: when that last changed. due_position: the position of the request whose deadline
     * counts, plus one; due_since: when it could first run. handing: the request that the lane is
     * handing to the device; handing_since: when it started. */
    uint64_t head_position;
    uint64_t due_position, due_since;
    bool head_taken;
    uint64_t taken_since;
    uint64_t handing, handing_since;
    bh__lane_tally tally;
    _Atomic uint64_t host_waits;  /* see bh_lane_counters. Written and read without the lock. */
    struct bh__lane_trace *trace; /* Owned. NULL: not traced. */
    struct bh__lane_timed *timed; /* Owned. NULL: no request was timed. timed.c */
};

/* The input of bh__submit. */
struct bh__submission {
    bh__lane *lane;
    uint16_t op;
    bool idempotent;
    bool needed;   /* see bh__shadow */
    bool no_block; /* BH_E_BUSY instead of waiting for room */
    bool waits;    /* for room, also on a lane with BH_LANE_NO_BLOCK */
    bool timed;    /* BH_SUBMIT_TIMED */
    bool finishes; /* it belongs to submitted work: accepted while the device drains */
    bh__tells tells;
    uint64_t deadline_ns;
    bh__kernel *kernel;
    bh__module *module;
    const bh__use *uses;
    uint32_t use_count;
    const void *params;
    uint32_t param_bytes;
    uint64_t elements;             /* launches; 0: all threads */
    const bh__launch_body *launch; /* launches */
    bh__sequence *sequence;        /* sequences */
    const bh__sequence_body *replay;
    const uint64_t *after; /* for each lane a further position to wait for; NULL: none */
    uint32_t *busy; /* launches: set to the BH_REASON_... of BH_E_BUSY unless the ring is full */
    bh__copy_body copy; /* all other ops */
    bh__call *call;     /* the call that this is a piece of; NULL: none */
    bool leased;        /* a piece of a transfer that has a lease */
};

/* A call that consists of several requests of one lane, while it submits them. It is on the stack
 * of the calling thread. Its pieces complete together or fail together. resolve.c */
struct bh__call {
    bh__call *next;         /* in device->queue.calls, from its first piece on */
    bh__device *device;     /* Borrowed. The thread has entered it. */
    bh__memory *target;     /* Retained. */
    uint64_t offset, bytes; /* the range of the target that all pieces together write */
    bh__lane *lane;
    uint64_t first;   /* the position of its first piece plus one; 0: none is submitted */
    bh_status status; /* the status of the first piece that failed; BH_OK: none */
    bh_error error;
};

/* Bytes that a transfer in several requests has to itself while it submits them. It is on the stack
 * of the calling thread. leases.c */
struct bh__lease {
    bh__lease *next;          /* in device->queue.leases */
    const bh__memory *memory; /* Retained by the transfer. */
    uint64_t offset, bytes;
    uint32_t access; /* BH_ACCESS_IN or BH_ACCESS_OUT */
};

/* The device's queue state. The most used fields come first. */
typedef struct bh__queue_room {
    bool frozen;         /* `area` is ignored; the lanes' `floor` says what is done */
    _Atomic bool halted; /* the same for threads without the lock; set a moment earlier */
    bool ticks_usable;
    uint32_t lane_limit;         /* lanes with an index below this have been used */
    _Atomic uint32_t open_lanes; /* Written with the lock held, read without. */
    uint32_t warp_mask;          /* threads in a warp minus one */
    bh__memory *doubted;         /* the memory records with bytes in doubt: next_doubted */
    uint32_t length;             /* slots of a lane */
    bh__front *front;            /* written, never read: the lanes keep the same values */
    _Atomic(bh__area *) area;    /* of the active worker. Read without the lock. */
    /* Incremented when lanes freeze and when `area` changes. Read without the lock. */
    _Atomic uint64_t epoch;
    _Atomic uint64_t reaped; /* lost workers 1 .. reaped have ended. Read without the lock. */

    uint64_t stamp;  /* of the most recent request, over all lanes */
    bh__call *calls; /* calls that have submitted some of their pieces */
    bh__lease *leases;
    _Atomic uint32_t leases_ended; /* Incremented with each. Read without the lock. */
    struct bh__deferred *deferred; /* Owned. Verdicts recorded once a lost worker has ended. */
    uint64_t dropped;              /* number of requests that did not complete */
    uint32_t reports_taken;        /* of the active worker */
    _Atomic bool distrusted;       /* the worker wrote an impossible value: replace it */

    uint8_t *areas; /* BH__AREAS areas, one after the other: workers/worker_life.c */
    uint64_t front_bytes, area_bytes;
    int front_fd;
} bh__queue_room;

#endif
