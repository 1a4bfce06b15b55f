/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a worker, shared by the files of src/worker/. Nothing in a worker is process-global.
 */
#ifndef BH_WORKER_STATE_H
#define BH_WORKER_STATE_H

#include <pthread.h>

#include "worker/confine.h"
#include "worker/lane/lane.h"
#include "worker/lane/nvtx_range.h"
#include "worker/worker.h"

struct bh__worker_instance {
    const bh__device_ops *ops;
    int socket;  /* Owned, non-blocking */
    int wake_fd; /* eventfd: wakes the control thread when killed */
    _Atomic bool killed;
    _Atomic uint32_t active; /* private futex: lanes sleep on it until the message GO */
    _Atomic int exit_code;
    _Atomic uint32_t messages_done; /* counted by the control thread; see bh__worker_see_done */

    int dispatch_fd; /* a pipe that wakes the application's dispatcher */
    int application; /* its pidfd; -1: none, and the end of the socket shows that it is gone */
    int canary;      /* an end of a pipe, until the application has it; -1: none */
    bool is_process; /* not threads of a test */
    bh__confinement confinement;
    bh__front *front; /* read-only */
    bh__area *area;   /* this worker's own */
    uint32_t area_index;
    uint32_t queue_length;
    uint32_t processors;
    _Atomic uint32_t idle_lanes; /* that spin until there is a request */
    bool gives_back;             /* cache lines of requests that were read: see base/cache_line.h */
    uint64_t front_bytes, area_bytes;

    pthread_t ping_thread;
    bool has_ping_thread;
    _Atomic bool ping_ended; /* the thread is about to return */

    bh__device_instance *device;
    bh__device_services services;
    uint64_t chunk_granularity;
    struct bh__host_mapping *hosts; /* control thread's */
    size_t host_count;

    struct bh__worker_sequence *sequences; /* under sequence_lock */
    pthread_mutex_t sequence_lock;

    struct bh__kernel_names *kernel_names; /* under names_lock; none without a profiler */
    pthread_mutex_t names_lock;

    pthread_mutex_t report_lock; /* taken before send_lock */
    pthread_mutex_t send_lock;   /* the sending side of the socket, and `outgoing` */
    bh__message outgoing;
    bh__message incoming; /* control thread's */

    bh__worker_lane lanes[BH__MAX_LANES];
};

static inline bool bh__worker_is_killed(bh__worker_instance *worker) {
    return atomic_load_explicit(&worker->killed, memory_order_acquire);
}

/* ---- worker.c: control thread ---- */

/* Ends the threads, closes the device and unmaps everything. */
void bh__worker_tear_down(bh__worker_instance *worker);

/* ---- boot.c: control thread ---- */

/* Receives BOOT, maps the control block, opens the device, answers. False: the worker ends here. */
bool bh__worker_boot(bh__worker_instance *worker);
/* Waits for a message and receives it. False: killed, or the application is gone. */
bool bh__worker_receive_message(bh__worker_instance *worker);

/* ---- control.c: control thread ---- */

/* Carries out messages until the worker ends. */
void bh__worker_serve_messages(bh__worker_instance *worker);
void bh__worker_unmap_hosts(bh__worker_instance *worker);

/* ---- ping.c: control thread ---- */

/* Called once the control block is mapped. */
bh_status bh__ping_start(bh__worker_instance *worker, bh_error *error);
/* The worker has been killed. */
void bh__ping_join(bh__worker_instance *worker);

/* ---- sequence.c ---- */

/* Control thread. */
bh_status bh__worker_sequence_define(bh__worker_instance *worker, const bh__message *message,
                                     bh_error *error);
void bh__worker_sequence_drop(bh__worker_instance *worker, uint32_t id);
void bh__worker_sequences_free(bh__worker_instance *worker);
/* The lane's thread, for a replay that was just claimed: copies its steps to lane->image. False:
 * there is no such sequence. */
bool bh__worker_sequence_copy(bh__worker_lane *lane, const bh__sequence_body *which);
/* The lane's thread: puts the step that failed into the error's message. */
void bh__worker_sequence_name_step(const bh__worker_lane *lane, uint32_t step, bh_error *error);

/* ---- report.c: any thread ---- */

/* Sends a message with `body` in its union and one descriptor (-1: none). False: the application is
 * gone, or the worker is killed. */
bool bh__worker_send_message(bh__worker_instance *worker, uint32_t type, uint32_t serial,
                             const void *body, size_t body_bytes, const void *data,
                             size_t data_bytes, int fd);
/* Sends text that a kernel printed. `worker` is a bh__worker_instance. */
void bh__worker_send_print(void *worker, const char *text, size_t length);
/* Sends a line for the application's log. */
void bh__worker_send_note(bh__worker_instance *worker, const char *text);

/* Reports that a request failed and did no harm, and waits until the application has taken the
 * report. False: the worker was killed meanwhile. */
bool bh__worker_lane_report(bh__worker_lane *lane, uint64_t sequence, const bh_error *error);
/* Reports that a request has ruined the device; 0: it is not known which. Only the first fault of a
 * worker is reported. */
void bh__worker_lane_fault(bh__worker_lane *lane, uint64_t sequence, const bh_error *error);

/* Prints one line to standard error and ends the worker. */
void bh__worker_fatal(bh__worker_instance *worker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
