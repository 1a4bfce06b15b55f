/* SPDX-License-Identifier: Apache-2.0 */
/* What all lanes share: starting and ending their threads, claiming requests from the ring, waking
 * those who wait for `done`. docs/protocol.md gives the reason for each load and store. */
#include "worker/lane/lane.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/relax.h"
#include "base/thread.h"
#include "worker/lane/lane_queued.h"
#include "worker/state.h"

enum {
    STACK_BYTES = 512 * 1024,
    /* Numerical libraries expect the usual one: OpenBLAS's threaded LU puts over 1 MiB on it. */
    LIBRARY_STACK_BYTES = 8 * 1024 * 1024,
    SLOTS_AT_ONCE = 16, /* whose cache lines are given back */
    PAUSE_SPINS_PER_YIELD = 256
};

/* ---- the ring ---- */

static void request_damaged(bh__worker_lane *lane, uint64_t position, const char *what,
                            uint64_t value) {
    bh__worker_fatal(lane->worker,
                     "lane %u: the request at %llu is not valid (%s %llu): the application's "
                     "memory is damaged",
                     lane->index, (unsigned long long)position, what, (unsigned long long)value);
}

static bool is_valid(const bh__worker_lane *lane, const bh__request *request, uint64_t position,
                     uint64_t tail) {
    uint64_t slots = request->slots;
    return slots >= 1 && slots <= lane->worker->queue_length &&
           request->sequence == position + slots && request->sequence <= tail;
}

/* The claim word, after everything read so far: a read-modify-write, because earlier reads may move
 * behind a plain load. A freeze that comes later thus comes after those reads. */
static uint64_t claim_again(bh__worker_lane *lane) {
    return atomic_fetch_or(&lane->area->claim, 0);
}

/* The application writes slots again one round later, and would have to take their cache lines from
 * this processor. The next memory access waits until they are gone, so several slots go at a time.
 */
static void give_back(bh__worker_lane *lane, uint64_t position) {
    if (position - lane->given_back < SLOTS_AT_ONCE) return;
    for (uint64_t at = position - SLOTS_AT_ONCE; at < position; at++) {
        const uint8_t *slot =
            (const uint8_t *)bh__ring_request(lane->ring, lane->worker->queue_length, at);
        for (int line = 0; line < BH__SLOT_BYTES; line += BH__CACHE_LINE)
            bh__cache_line_give_back(slot + line);
    }
    lane->given_back = position;
}

/*
 * Copies a request that has just been claimed out of the ring. Once a lane is frozen the
 * application may reuse the slot while this worker is still dying: a copy made before that is good,
 * and nothing is read from the ring after it. False: the lane is over.
 */
static bool copy_request(bh__worker_lane *lane, const bh__request *request, uint64_t position) {
    bh__work *work = lane->work;
    uint32_t length = lane->worker->queue_length;
    uint64_t room = (uint64_t)request->slots * BH__SLOT_BYTES - BH__PAYLOAD_OFFSET;
    work->op = atomic_load_explicit(&request->op, memory_order_acquire);
    work->sequence = request->sequence;
    work->start = position;
    work->submitted = request->submitted;
    work->timed = request->timed;
    work->clock = 0;
    lane->hold = atomic_load_explicit(&request->hold, memory_order_acquire);
    lane->dependency_count = request->dependency_count;
    memcpy(&work->u, &request->u, sizeof work->u);

    uint64_t params = work->op == BH__OP_LAUNCH ? work->u.launch.param_bytes : 0;
    uint64_t dependencies = (uint64_t)lane->dependency_count * sizeof(bh__dependency);
    bool fits = lane->dependency_count <= BH__MAX_DEPENDENCIES && params <= BH__MAX_PARAM_BYTES &&
                dependencies + params <= room && work->timed <= BH__TIMED;
    if (fits) {
        uint8_t *to =
            params <= BH__SMALL_PARAM_BYTES ? lane->params[work - lane->works] : lane->large_params;
        bh__payload_read(lane->ring, length, position, 0, lane->dependencies, dependencies);
        bh__payload_read(lane->ring, length, position, dependencies, to, params);
        work->params = to;
    }
    bool known = work->op != BH__OP_SEQUENCE || bh__worker_sequence_copy(lane, &work->u.sequence);
    if (claim_again(lane) & BH__FROZEN) return false;
    if (lane->worker->gives_back) give_back(lane, position);
    for (uint32_t i = 0; fits && i < lane->dependency_count; i++) {
        if (lane->dependencies[i].lane < BH__MAX_LANES) continue;
        request_damaged(lane, position, "it waits for lane", lane->dependencies[i].lane);
        return false;
    }
    if (!fits)
        request_damaged(lane, position, "its payload is larger than its slots; parameter bytes",
                        params); /* or its times have no place */
    else if (!known)
        request_damaged(lane, position, "there are no such steps of sequence", work->u.sequence.id);
    return fits && known;
}

const bh__request *bh__worker_lane_peek(const bh__worker_lane *lane, uint64_t position) {
    if (position >= lane->known_tail) return NULL;
    const bh__request *request = bh__ring_request(lane->ring, lane->worker->queue_length, position);
    return is_valid(lane, request, position, lane->known_tail) ? request : NULL;
}

/* The application pauses a lane for a few instructions, or longer if it is descheduled meanwhile.
 */
static void wait_out_pause(bh__worker_lane *lane) {
    if (++lane->pause_spins % PAUSE_SPINS_PER_YIELD)
        bh__cpu_relax();
    else
        sched_yield();
}

bh__take bh__worker_lane_try_take(bh__worker_lane *lane, uint64_t *out_position) {
    uint64_t claim = atomic_load(&lane->area->claim);
    if (claim & BH__FROZEN) return BH__TAKE_ENDED;
    if (claim & BH__PAUSED) {
        wait_out_pause(lane);
        return BH__TAKE_RETRY;
    }
    uint64_t position = *out_position = bh__claim_position(claim);
    /* The application's cache line is read only when no request is known to be there. */
    if (lane->known_tail <= position) {
        lane->known_tail = atomic_load_explicit(&lane->front->tail, memory_order_acquire);
        if (lane->known_tail > position)
            bh__meter_depth(&lane->meter, lane->known_tail - lane->known_done);
    }
    uint64_t tail = lane->known_tail;
    if (tail == position) return BH__TAKE_EMPTY;
    bh__request *request = bh__ring_request(lane->ring, lane->worker->queue_length, position);
    if (!is_valid(lane, request, position, tail)) {
        /* Once the claim word has changed, the slot may hold anything. */
        if (claim_again(lane) != claim) return BH__TAKE_RETRY;
        request_damaged(lane, position, "sequence", request->sequence);
        return BH__TAKE_ENDED;
    }
    /* What a cancel or a takeover may change is read once the request is claimed. */
    if (!atomic_compare_exchange_strong(&lane->area->claim, &claim,
                                        bh__claim_word(request->sequence)))
        return BH__TAKE_RETRY;
#ifdef __SANITIZE_THREAD__
    bh__worker_see_done(lane->worker);
#endif
    if (!copy_request(lane, request, position)) return BH__TAKE_ENDED;
    bh__meter_take(&lane->meter, lane->work);
    return BH__TAKE_DONE;
}

bool bh__worker_lane_reread_op(bh__worker_lane *lane) {
    if (lane->dependency_count == 0) return true;
    const bh__request *request =
        bh__ring_request(lane->ring, lane->worker->queue_length, lane->work->start);
    uint16_t op = atomic_load_explicit(&request->op, memory_order_acquire);
    if (claim_again(lane) & BH__FROZEN) return false;
    lane->work->op = op;
    return true;
}

/* The application stores tail and then reads asleep; the lane stores asleep and then reads tail.
 * The lane sleeps on `asleep` itself, so that a late wake for an earlier request, which clears it,
 * ends the sleep. A queued device writes done and then has the lane's waker read asleep: the same
 * handshake. On a direct lane known_done is always `done`. */
void bh__worker_lane_sleep(bh__worker_lane *lane, uint64_t position, uint64_t until) {
    bh__worker_instance *worker = lane->worker;
    atomic_store(&lane->area->asleep, 1);
    if (atomic_load(&lane->front->tail) == position && !bh__worker_is_killed(worker) &&
        atomic_load(&lane->area->claim) == bh__claim_word(position) &&
        atomic_load(&lane->area->done) == lane->known_done)
        bh__futex_wait(&lane->area->asleep, 1, until, BH__FUTEX_SHARED);
    if (!bh__worker_is_killed(worker)) atomic_store(&lane->area->asleep, 0);
}

/* ---- waking those who wait ---- */

/* The application may have ordered this request behind others by seeing them done. That order
 * passes through another process, so a race detector in this one cannot see it. */
void bh__worker_see_done(bh__worker_instance *worker) {
    (void)atomic_load_explicit(&worker->messages_done, memory_order_acquire);
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        (void)atomic_load_explicit(&worker->area->lane[i].done, memory_order_acquire);
    }
}

static void wake_dispatcher(int fd) {
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof one);
    (void)written; /* a full pipe is readable, which is enough */
}

/* True, once for each request, if the dispatcher, the only writer of `wanted`, is to be woken. */
static bool is_due(_Atomic uint64_t *wanted, uint64_t done, uint64_t *woken) {
    uint64_t at = atomic_load(wanted);
    if (at > done || at <= *woken) return false;
    *woken = done;
    return true;
}

/* A waiter stores its notify word and then reads done; the caller has stored or read done and then
 * reads the notify words. */
void bh__worker_lane_notify(bh__worker_lane *lane, uint64_t done, uint64_t *woken) {
    /* Each time, as long as the word says so: several threads write it, and one that is still
     * asleep must be woken again. */
    if (atomic_load(&lane->front->notify_sleep) <= done) {
        atomic_fetch_add(&lane->area->wake, 1);
        bh__futex_wake(&lane->area->wake, BH__FUTEX_ALL, BH__FUTEX_SHARED);
    }
    if (is_due(&lane->front->notify_dispatch, done, woken))
        wake_dispatcher(lane->worker->dispatch_fd);
}

void bh__worker_lane_wake_waiters(bh__worker_lane *lane) {
    if (!atomic_load(&lane->waiters)) return;
    atomic_fetch_add(&lane->progress, 1);
    bh__futex_wake(&lane->progress, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

/* ---- the thread ---- */

static bool wait_for_activation(bh__worker_instance *worker) {
    while (!atomic_load(&worker->active)) {
        if (bh__worker_is_killed(worker)) return false;
        bh__futex_wait(&worker->active, 0, BH__NEVER, BH__FUTEX_PRIVATE);
    }
    return true;
}

static void *lane_main(void *argument) {
    bh__worker_lane *lane = argument;
    bh__worker_instance *worker = lane->worker;
    char name[16];
    snprintf(name, sizeof name, "bh-lane-%u", lane->index);
    pthread_setname_np(pthread_self(), name);
    bh__range_name_lane(lane);

    if (wait_for_activation(worker)) {
        lane->known_done = lane->woken_dispatch = atomic_load(&lane->area->done);
        if (bh__device_is_queued(worker->ops))
            bh__lane_queued_run(lane);
        else
            bh__lane_direct_run(lane);
    }
    atomic_store(&lane->ended, true);
    return NULL;
}

bh_status bh__worker_lane_open(bh__worker_instance *worker, const bh__lane_message *which,
                               bh_error *error) {
    uint32_t index = which->index;
    if (index >= BH__MAX_LANES)
        return bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                        "lane %u is beyond the %d lanes of a device", index, BH__MAX_LANES);
    bh__worker_lane *lane = &worker->lanes[index];
    if (lane->open) return BH_OK;
    for (uint32_t i = 0; i < BH__TRAIN; i++) lane->works[i].lane = index;
    lane->work = lane->works;
    bh_status status = worker->ops->lane_open(worker->device, which, error, &lane->context);
    if (status != BH_OK) return status;

    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes,
                              worker->services.libraries ? LIBRARY_STACK_BYTES : STACK_BYTES);
    int result = bh__thread_start(&lane->thread, &attributes, lane_main, lane);
    pthread_attr_destroy(&attributes);
    if (result != 0) {
        worker->ops->lane_close(lane->context);
        lane->context = NULL;
        char reason[128];
        return bh__fail(error, BH_E_NO_HOST_MEMORY,
                        "open fewer lanes, or raise the limit on processes (ulimit -u)",
                        "the thread of lane %u cannot be started: %s", index,
                        bh__errno_text(result, reason, sizeof reason));
    }
    lane->open = true;
    return BH_OK;
}

void bh__worker_lanes_activate(bh__worker_instance *worker) {
    atomic_store(&worker->active, 1);
    bh__futex_wake(&worker->active, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

void bh__worker_lanes_join(bh__worker_instance *worker) {
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        bh__worker_lane *lane = &worker->lanes[i];
        if (!lane->open) continue;
        /* A lane may go to sleep right after it read `killed`: it is woken until it has ended. */
        while (!atomic_load(&lane->ended)) {
            bh__futex_wake(&worker->active, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
            bh__futex_wake(&lane->area->asleep, BH__FUTEX_ALL, BH__FUTEX_SHARED);
            bh__futex_wake(bh__low_half(&worker->front->reaped), BH__FUTEX_ALL, BH__FUTEX_SHARED);
            bh__futex_wake(&worker->area->reports_taken, BH__FUTEX_ALL, BH__FUTEX_SHARED);
            for (uint32_t j = 0; j < BH__MAX_LANES; j++)
                bh__futex_wake(&worker->lanes[j].progress, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
            nanosleep(&(struct timespec){.tv_nsec = 200 * BH__NS_PER_US}, NULL);
        }
        pthread_join(lane->thread, NULL);
        bh__waker_join(lane);
        worker->ops->lane_close(lane->context);
        lane->context = NULL;
        lane->open = false;
    }
}
