/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane of a worker: a thread that takes requests from a ring and has its device run them.
 *
 *   lane.c          what all lanes share: opening, the ring, claims, waking those who wait
 *   lane_direct.c   lanes whose device runs each request on the lane's own thread
 *   lane_queued.c   lanes whose device has queues of its own; its other files: lane_queued.h
 *
 * lane_main in lane.c chooses between the two kinds.
 */
#ifndef BH_WORKER_LANE_LANE_H
#define BH_WORKER_LANE_LANE_H

#include <pthread.h>

#include "base/tune.h"
#include "worker/lane/kernel_times.h"
#include "worker/lane/meter.h"
#include "worker/worker.h"

enum {
    /* Of one request: more than one for each lane makes no sense. */
    BH__MAX_DEPENDENCIES = 2 * BH__MAX_LANES,
    /* A spinning thread reads the word this often before it reads the clock. */
    BH__SPINS_PER_CLOCK = BH__TUNE(32, 2),
    /* For waits that end either soon or much later. */
    BH__SHORT_SPIN_NS = 5000
};

/* The thread of a queued lane that sleeps inside the device: queued_waker.c. */
typedef struct bh__waker {
    pthread_t thread;
    bool started;              /* the lane thread's */
    uint64_t uncovered_ns;     /* the lane thread's: expected time of work behind the last event */
    uint64_t woken_dispatch;   /* the waker's own */
    _Atomic uint64_t recorded; /* events so far */
    _Atomic uint64_t positions[BH__QUEUE_EVENTS]; /* `done` when they are reached */
    _Atomic uint32_t requested; /* private futex: counted by the lane, the waker sleeps on it */
    _Atomic uint32_t answered;  /* follows `requested` */
} bh__waker;

/* What a lane has only if its device has queues of its own. All but `end` is the lane thread's. */
typedef struct bh__worker_queue {
    _Atomic uint64_t end; /* the device will write `done` up to here; other lanes read it */
    uint64_t active_ns;   /* when `done` last moved or work was last queued */
    uint64_t queried_ns;  /* when the device was last queried */
    uint64_t pulses;      /* the last value queued for the area's `pulse` word */
    uint32_t group_count; /* groups written so far */
    uint64_t clocks;      /* clocks started so far */
    uint64_t clock_positions[BH__QUEUE_CLOCKS]; /* the requests that they measure, or measured */
    bh__kernel_times times;
    bh__waker waker;
} bh__worker_queue;

typedef struct bh__worker_lane {
    bh__worker_instance *worker;
    uint32_t index;
    bool open; /* control thread's */
    pthread_t thread;
    bh__device_lane *context; /* Owned */
    bh__lane_front *front;
    bh__lane_area *area;
    uint8_t *ring; /* mapped read-only */
    /* The lane thread's own: */
    uint64_t known_tail;     /* `tail` when it was last read */
    uint64_t known_done;     /* `done` when it was last written (direct) or read (queued) */
    uint64_t given_back;     /* cache lines of slots up to this position were given back */
    uint64_t woken_dispatch; /* `done` when the dispatcher was last woken */
    uint32_t pause_spins;

    _Alignas(64) _Atomic uint32_t waiters; /* lanes of this worker that wait for this one */
    _Atomic uint32_t progress;             /* private futex they sleep on */
    _Atomic bool ended;                    /* the thread is about to return */

    bh__worker_queue queue;
    bh__meter meter;

    /* The steps of the sequence taken last, and which of them is being executed, from 1 on; 0:
     * none. */
    bh__sequence_image image;
    void **made;
    uint32_t step_at;

    /* The request taken last, copied out of the ring: one of `works`. A train needs several. */
    bh__work *work;
    uint64_t hold;
    uint32_t dependency_count;
    _Alignas(16) bh__dependency dependencies[BH__MAX_DEPENDENCIES];
    bh__work works[BH__TRAIN];
    /* Small parameters of each of `works`; and the parameters of a launch that has more, which is
     * never part of a train, so that there is only one at a time. Pages that are never written to
     * take no memory. */
    _Alignas(16) uint8_t params[BH__TRAIN][BH__SMALL_PARAM_BYTES];
    _Alignas(16) uint8_t large_params[BH__MAX_PARAM_BYTES];
} bh__worker_lane;

/* ---- lane.c: control thread ---- */

bh_status bh__worker_lane_open(bh__worker_instance *worker, const bh__lane_message *which,
                               bh_error *error);
/* Lets the waiting lanes begin. */
void bh__worker_lanes_activate(bh__worker_instance *worker);
/* Ends and joins every lane's thread; the worker has been killed. */
void bh__worker_lanes_join(bh__worker_instance *worker);

/* ---- lane.c: the lane's thread ---- */

typedef enum bh__take {
    BH__TAKE_DONE,  /* the next request is claimed and copied to lane->work */
    BH__TAKE_EMPTY, /* there is none yet */
    BH__TAKE_RETRY, /* the application paused the lane or changed the claim word */
    BH__TAKE_ENDED  /* the lane is over */
} bh__take;
/* Tries once to claim the next request. *out_position is where it is, or will be. */
bh__take bh__worker_lane_try_take(bh__worker_lane *lane, uint64_t *out_position);
/* Sleeps until the application moves `tail` from this position, or until the given time. */
void bh__worker_lane_sleep(bh__worker_lane *lane, uint64_t position, uint64_t until);
/* The request at `position`, or NULL if there is none as far as `tail` is known. It is not claimed:
 * its contents may change. */
const bh__request *bh__worker_lane_peek(const bh__worker_lane *lane, uint64_t position);
/* Reads the operation of lane->work again once its dependencies are complete. One of them may have
 * failed, and the application may have made this request a skip. False: the lane is over, and the
 * slot may be in use again. */
bool bh__worker_lane_reread_op(bh__worker_lane *lane);
/* Wakes lanes of this worker that wait for this one. */
void bh__worker_lane_wake_waiters(bh__worker_lane *lane);

/* The half of a 64-bit word that a futex can sleep on: the one that changes. */
static inline _Atomic uint32_t *bh__low_half(_Atomic uint64_t *word) {
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half comes first");
    return (_Atomic uint32_t *)(void *)word;
}

/* ---- lane.c: any thread ---- */

/* Wakes whoever asked to be told of this `done`. *woken is the `done` for which the calling thread
 * last woke the dispatcher. */
void bh__worker_lane_notify(bh__worker_lane *lane, uint64_t done, uint64_t *woken);
/* Makes what the lanes did up to their `done` words, and the control thread for its messages,
 * happen before whatever follows, for race detectors. */
void bh__worker_see_done(bh__worker_instance *worker);

/* ---- the two kinds of lanes: run until the lane is over ---- */

void bh__lane_direct_run(bh__worker_lane *lane);
void bh__lane_queued_run(bh__worker_lane *lane);

#endif
