/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a worker, shared by the files of src/worker/. Nothing in a worker is process-global.
 */
#ifndef BH_WORKER_STATE_H
#define BH_WORKER_STATE_H

#include <pthread.h>

#include "worker/meter.h"
#include "worker/pace.h"
#include "worker/range.h"
#include "worker/worker.h"

/* Of one request: no more than one for each lane makes sense. */
enum { BH__MAX_DEPENDENCIES = 2 * BH__MAX_LANES };

typedef struct bh__bell {
    pthread_t thread;
    bool there;              /* the lane thread's */
    uint64_t unlit_ns;       /* the lane thread's: work queued behind the last beacon */
    uint64_t woken_dispatch; /* the bell's own */
    _Atomic uint64_t lit;    /* beacons so far */
    _Atomic uint64_t positions[BH__BEACONS]; /* what is done when they are reached */
    _Atomic uint32_t asked;    /* private futex: counted by the lane, the bell sleeps on it */
    _Atomic uint32_t answered; /* the bell follows */
} bh__bell;

typedef struct bh__lane {
    bh__worker *worker;
    uint32_t index;
    bool open; /* control thread's */
    pthread_t thread;
    bh__device_lane *context; /* Owned */
    bh__lane_front *front;
    bh__lane_area *area;
    uint8_t *ring; /* mapped read-only */
    /* The lane thread's own: */
    uint64_t known_tail;     /* `tail` when it was last looked at */
    uint64_t given_back;     /* position up to which the lines of slots were */
    uint64_t woken_dispatch; /* the `done` the dispatcher was last told of */

    _Alignas(64) _Atomic uint32_t waiters; /* lanes of this worker that wait for this one's done */
    _Atomic uint32_t progress;             /* private futex they sleep on */
    _Atomic bool ended;                    /* the thread is about to return */

    /* For devices with queues of their own. Up to `queued` the device is to write `done`; other
     * lanes read it. The rest is the lane thread's: the `done` last seen, when that or a request
     * last came, when the device was last asked. */
    _Atomic uint64_t queued;
    uint64_t told, stirred_ns, asked_ns;
    bh__bell bell;
    bh__pace_book pace;
    bh__meter meter;
    uint32_t group_count; /* of groups written so far */
    uint64_t pulses;      /* written, or to be written by the device, to the area's `pulse` */

    /* The steps of the sequence taken last, and which of them is being executed, from 1 on; 0: none. */
    bh__sequence_image image;
    void **made;
    uint32_t step_at;

    /* The request taken last, out of the ring: one of `works`, which a train needs several of. */
    bh__work *work;
    uint64_t hold;
    uint32_t dependency_count;
    _Alignas(16) bh__dependency dependencies[BH__MAX_DEPENDENCIES];
    bh__work works[BH__TRAIN];
    /* Of each of them, and of one that has more: it never goes in a train, so there is never another
     * beside it. Pages that nothing is written to take no memory. */
    _Alignas(16) uint8_t params[BH__TRAIN][BH__SMALL_PARAM_BYTES];
    _Alignas(16) uint8_t large_params[BH__MAX_PARAM_BYTES];
} bh__lane;

struct bh__worker {
    const bh__device_ops *ops;
    int socket;  /* Owned, non-blocking */
    int wake_fd; /* eventfd: wakes the control thread when killed */
    _Atomic bool killed;
    _Atomic uint32_t go; /* private futex: lanes sleep on it until the supervisor says GO */
    _Atomic int exit_code;
    _Atomic uint32_t messages_done; /* counted by the control thread; see bh__serve_see_done */

    int dispatch_fd;  /* eventfd of the application's dispatcher */
    int application;  /* pidfd; -1: there are none here, and the end of the socket must do */
    int canary;       /* a pipe's end, until the application has it; -1: none */
    bh__front *front; /* read-only, up to areas_offset */
    bh__area *area;   /* this worker's own */
    uint32_t area_index;
    uint32_t queue_length;
    bool gives_back; /* lines of requests that were read: see base/cache_line.h */
    uint64_t front_bytes, area_bytes;

    pthread_t pulse;
    bool has_pulse;
    _Atomic bool pulse_ended; /* the thread is about to return */

    bh__device *device;
    bh__device_services services;
    uint64_t chunk_granularity;
    struct bh__host_mapping *hosts; /* control thread's */
    size_t host_count;

    struct bh__sequence *sequences; /* under sequence_lock */
    pthread_mutex_t sequence_lock;

    struct bh__kernel_names *kernel_names; /* under names_lock; none while no profiler listens */
    pthread_mutex_t names_lock;

    pthread_mutex_t report_lock; /* taken before send_lock */
    pthread_mutex_t send_lock;   /* the sending side of the socket, and `outgoing` */
    bh__message outgoing;
    bh__message incoming; /* control thread's */

    bh__lane lanes[BH__MAX_LANES];
};

static inline bool bh__serve_killed(bh__worker *worker) {
    return atomic_load_explicit(&worker->killed, memory_order_acquire);
}

/* ---- worker.c: control thread ---- */

/* Ends the threads, closes the device and unmaps everything. */
void bh__serve_take_down(bh__worker *worker);

/* ---- boot.c: control thread ---- */

/* Receives BOOT, maps the control block, opens the device, answers. Returns false when it ends
 * there. */
bool bh__serve_boot(bh__worker *worker);
/* Waits for a message and receives it. False: killed, or the application is gone. */
bool bh__serve_receive(bh__worker *worker);

/* ---- control.c: control thread ---- */

/* Carries out messages until the worker ends. */
void bh__serve_messages(bh__worker *worker);
void bh__serve_unmap_hosts(bh__worker *worker);

/* ---- lane.c ---- */

bh_status bh__serve_lane_open(bh__worker *worker, const bh__lane_message *which, bh_error *error);
/* Claims the next request and copies it to lane->work, waiting for one to come. The lane's thread.
 * False: the lane is over. */
bool bh__serve_lane_take(bh__lane *lane);
/* Whether there is a sound request at `position`, as far as the tail was last seen. It is not
 * claimed: what it says may change. */
const bh__request *bh__serve_lane_peek(const bh__lane *lane, uint64_t position);
/* Makes what the lanes did up to their `done` words, and the control thread for its messages,
 * happen before whatever follows, for race detectors. */
void bh__serve_see_done(bh__worker *worker);
/* Wakes whoever asked to be told of this `done`. *woken is the `done` for which the calling thread
 * last woke the dispatcher. */
void bh__serve_lane_tell(bh__lane *lane, uint64_t done, uint64_t *woken);
/* Waits until the request taken may run as far as lost workers are concerned. False: the lane is
 * over. */
bool bh__serve_lane_hold(bh__lane *lane);
bool bh__serve_lane_op_again(bh__lane *lane);
/* Lets the waiting lanes begin. */
void bh__serve_lanes_go(bh__worker *worker);
/* Ends and joins every lane's thread; the worker has been killed. */
void bh__serve_lanes_join(bh__worker *worker);

/* ---- queue.c: lanes of devices with queues of their own; the lane's thread. False: the lane is
 * over ---- */

bool bh__queue_begin(bh__lane *lane, uint64_t done);
/* Keeps the device from having too much before it. */
bool bh__queue_wait_for_room(bh__lane *lane);
/* Waits until fewer than `most` slots are before the device. */
bool bh__queue_wait_for_few(bh__lane *lane, uint32_t most);
/* Queues the request that was taken, and those behind it if they can go with it. */
bool bh__queue_perform(bh__lane *lane);
/* Says that all up to `position` is queued. */
void bh__queue_announce(bh__lane *lane, uint64_t position);
/* Waits for what lane->work waits for, then queues it; or queues it at once, its time having
 * come. */
bool bh__queue_wait_and_send(bh__lane *lane);
/* Round a call to the device's driver: the first of what is handed over, then NULL. */
void bh__queue_handing(bh__lane *lane, const bh__work *work);
bool bh__queue_one(bh__lane *lane);
/* Reports the device's death; returns false. */
bool bh__queue_lost(bh__lane *lane, const bh_error *error);
/*
 * What a lane does between two looks at a word that still has this value: sees how far the device
 * is, tells those who wait, and asks the device now and then whether it is well. *until gets the
 * moment until which the lane may sleep (BH__NEVER: nothing is in flight), 0 if it should look
 * again at once.
 */
bool bh__queue_pause(bh__lane *lane, _Atomic uint64_t *word, uint64_t value, uint64_t spin_ns,
                     uint64_t *until);

/* ---- pulse.c: control thread ---- */

/* Once the control block is mapped. */
bh_status bh__pulse_start(bh__worker *worker, bh_error *error);
/* The worker has been killed. */
void bh__pulse_join(bh__worker *worker);

/* ---- bell.c ---- */

/* The lane's thread, round the queueing of work, whose completion it marks; false: the lane is
 * over. */
bool bh__bell_before(bh__lane *lane, const bh__work *work);
bool bh__bell_after(bh__lane *lane, const bh__work *works, uint32_t count);
/* Has the lane woken when there is news. The lane's thread. False: there is no bell. */
bool bh__bell_ask(bh__lane *lane);
/* The worker has been killed and the lane's thread has ended. */
void bh__bell_end(bh__lane *lane);

/* ---- train.c: several launches as one; the lane's thread ---- */

/* Whether the launch that was taken and those behind it are worth sending as one. */
bool bh__train_is_due(bh__lane *lane);
/* Takes the others and sends them. False: the lane is over. */
bool bh__train_perform(bh__lane *lane);
/* Sends lane->work with its mark in one go; BH_E_UNSUPPORTED if that cannot be. */
bh_status bh__train_one(bh__lane *lane, bh_error *error);

/* Waits until fewer than `most` of the lane's pulses are before the device. */
bool bh__queue_wait_for_pulse(bh__lane *lane, uint64_t most);
/* Hands over what work that is queued has printed, once it is done. */
bool bh__queue_settle(bh__lane *lane);

/* ---- sequence.c ---- */

/* The control thread's. */
bh_status bh__serve_sequence_define(bh__worker *worker, const bh__message *message,
                                    bh_error *error);
void bh__serve_sequence_drop(bh__worker *worker, uint32_t id);
void bh__serve_sequences_free(bh__worker *worker);
/* The lane's thread, for a request that was just claimed: copies the steps it means to lane->image.
 * False: there is no such sequence. */
bool bh__serve_sequence_copy(bh__lane *lane, const bh__sequence_body *which);
/* Executes lane->work, step after step. */
bh_status bh__sequence_execute(bh__lane *lane, bh_error *error);
/* Queues it; answers as the device's enqueue. */
bh_status bh__sequence_queue(bh__lane *lane, bh_error *error);

/* ---- notice.c: any thread ---- */

/* Sends a message with `body` in its union and one descriptor (-1: none). False: there is nobody to
 * send it to, or the worker is killed. */
bool bh__serve_send(bh__worker *worker, uint32_t type, uint32_t serial, const void *body,
                    size_t body_bytes, const void *data, size_t data_bytes, int fd);
void bh__serve_print(void *worker, const char *text, size_t length);
/* For the application's log. */
void bh__serve_note(bh__worker *worker, const char *text);

/* A request failed and did no harm. Returns false if the worker was killed meanwhile. */
bool bh__serve_lane_report(bh__lane *lane, uint64_t sequence, const bh_error *error);
/* A request has ruined the device. The first fault of a worker is the one that is told. */
void bh__serve_lane_fault(bh__lane *lane, uint64_t sequence, const bh_error *error);

/* One line on standard error, and the end of the worker. */
void bh__serve_fatal(bh__worker *worker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
