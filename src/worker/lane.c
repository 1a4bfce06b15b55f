/* SPDX-License-Identifier: Apache-2.0 */
/* A lane's thread: claims requests from its ring, waits for what they wait for, executes,
 * completes. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/relax.h"
#include "base/thread.h"
#include "worker/state.h"

enum {
    STACK_BYTES = 512 * 1024,
    /* A spinning lane looks at the word this often, then at the clock. */
    LOOKS_PER_CLOCK = BH__TUNE(32, 2),
    SLOTS_AT_ONCE = 16,  /* whose lines are given back */
    SHORT_SPIN_NS = 5000 /* for waits that end either soon or much later */
};

/* The half of a 64-bit word that a futex can sleep on: the one that changes. */
static _Atomic uint32_t *low_half(_Atomic uint64_t *word) {
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half comes first");
    return (_Atomic uint32_t *)(void *)word;
}

/* Spins until *word is no longer `value`; gives up after `spin_ns` or when killed. */
static bool spin_while(bh__worker *worker, _Atomic uint64_t *word, uint64_t value,
                       uint64_t spin_ns) {
    if (spin_ns == 0) return false;
    uint64_t end = bh__deadline_after(spin_ns);
    do {
        for (int i = 0; i < LOOKS_PER_CLOCK; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
            bh__cpu_relax();
        }
    } while (!bh__serve_killed(worker) && bh__now_ns() < end);
    return false;
}

/* Sleeps until the application moves `tail`, or until the moment given. The application stores tail
 * and then looks at asleep; the lane stores asleep and then looks at tail. It sleeps on `asleep`
 * itself: a late wake for an earlier request that clears it then ends the sleep. The device writes
 * done and then has the lane's bell look at asleep: the same again. */
static void doze(bh__lane *lane, uint64_t position, uint64_t until) {
    bh__worker *worker = lane->worker;
    atomic_store(&lane->area->asleep, 1);
    if (atomic_load(&lane->front->tail) == position && !bh__serve_killed(worker) &&
        atomic_load(&lane->area->claim) == bh__claim_word(position) &&
        (!worker->ops->enqueue || atomic_load(&lane->area->done) == lane->told))
        bh__futex_wait(&lane->area->asleep, 1, until, BH__FUTEX_SHARED);
    if (!bh__serve_killed(worker)) atomic_store(&lane->area->asleep, 0);
}

/* The lane has nothing to do: spin for a while, then sleep. */
static void idle(bh__lane *lane, uint64_t position) {
    bh__worker *worker = lane->worker;
    if (spin_while(worker, &lane->front->tail, position, worker->front->worker_spin_ns)) return;
    doze(lane, position, BH__NEVER);
}

/* The same where the device may be at work on earlier requests. False: the lane is over. */
static bool idle_queued(bh__lane *lane, uint64_t position) {
    uint64_t until;
    if (!bh__queue_pause(lane, &lane->front->tail, position, lane->worker->front->worker_spin_ns,
                         &until))
        return false;
    if (until) doze(lane, position, until);
    return true;
}

/* A pause is a few instructions of the application long, unless it lost its processor meanwhile. */
static void wait_out_pause(unsigned *rounds) {
    if (++*rounds % 256)
        bh__cpu_relax();
    else
        sched_yield();
}

static void request_damaged(bh__lane *lane, uint64_t position, const char *what, uint64_t value) {
    bh__serve_fatal(lane->worker,
                    "lane %u: the request at %llu makes no sense (%s %llu): the application's "
                    "memory is damaged",
                    lane->index, (unsigned long long)position, what, (unsigned long long)value);
}

static bool is_sound(const bh__lane *lane, const bh__request *request, uint64_t position,
                     uint64_t tail) {
    uint64_t slots = request->slots;
    return slots >= 1 && slots <= lane->worker->queue_length &&
           request->sequence == position + slots && request->sequence <= tail;
}

/* The claim word, after everything read so far: a read-modify-write, because reads may otherwise
 * move behind a load. A freeze that comes later thus comes after those reads. */
static uint64_t claim_again(bh__lane *lane) {
    return atomic_fetch_or(&lane->area->claim, 0);
}

/* The application writes slots again one round later, and would have to take their lines from here.
 * Whatever comes next waits for lines to be gone, so several slots go at a time. */
static void give_back(bh__lane *lane, uint64_t position) {
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
static bool copy_request(bh__lane *lane, const bh__request *request, uint64_t position) {
    bh__work *work = lane->work;
    uint32_t length = lane->worker->queue_length;
    uint64_t room = (uint64_t)request->slots * BH__SLOT_BYTES - BH__PAYLOAD_OFFSET;
    work->op = atomic_load_explicit(&request->op, memory_order_acquire);
    work->sequence = request->sequence;
    work->start = position;
    work->submitted = request->submitted;
    lane->hold = atomic_load_explicit(&request->hold, memory_order_acquire);
    lane->dependency_count = request->dependency_count;
    memcpy(&work->u, &request->u, sizeof work->u);

    uint64_t params = work->op == BH__OP_LAUNCH ? work->u.launch.param_bytes : 0;
    uint64_t dependencies = (uint64_t)lane->dependency_count * sizeof(bh__dependency);
    bool fits = lane->dependency_count <= BH__MAX_DEPENDENCIES && params <= BH__MAX_PARAM_BYTES &&
                dependencies + params <= room;
    if (fits) {
        uint8_t *to =
            params <= BH__SMALL_PARAM_BYTES ? lane->params[work - lane->works] : lane->large_params;
        bh__payload_read(lane->ring, length, position, 0, lane->dependencies, dependencies);
        bh__payload_read(lane->ring, length, position, dependencies, to, params);
        work->params = to;
    }
    bool known = work->op != BH__OP_SEQUENCE || bh__serve_sequence_copy(lane, &work->u.sequence);
    if (claim_again(lane) & BH__FROZEN) return false;
    if (lane->worker->gives_back) give_back(lane, position);
    for (uint32_t i = 0; fits && i < lane->dependency_count; i++) {
        if (lane->dependencies[i].lane < BH__MAX_LANES) continue;
        request_damaged(lane, position, "it waits for lane", lane->dependencies[i].lane);
        return false;
    }
    if (!fits)
        request_damaged(lane, position, "its payload is larger than its slots; parameter bytes",
                        params);
    else if (!known)
        request_damaged(lane, position, "there are no such steps of sequence", work->u.sequence.id);
    return fits && known;
}

/* The application may have put this request behind others by seeing them done: order that passes
 * through another process, which a race detector in this one cannot see. */
void bh__serve_see_done(bh__worker *worker) {
    (void)atomic_load_explicit(&worker->messages_done, memory_order_acquire);
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        (void)atomic_load_explicit(&worker->area->lane[i].done, memory_order_acquire);
    }
}

const bh__request *bh__serve_lane_peek(const bh__lane *lane, uint64_t position) {
    if (position >= lane->known_tail) return NULL;
    const bh__request *request = bh__ring_request(lane->ring, lane->worker->queue_length, position);
    return is_sound(lane, request, position, lane->known_tail) ? request : NULL;
}

/* How far the lane is done, as far as known without looking at what the device writes. */
static uint64_t lane_passed(const bh__lane *lane) {
    return lane->worker->ops->enqueue
               ? lane->told
               : atomic_load_explicit(&lane->area->done, memory_order_relaxed);
}

bool bh__serve_lane_take(bh__lane *lane) {
    bh__worker *worker = lane->worker;
    bool queues = worker->ops->enqueue != NULL;
    unsigned rounds = 0;
    while (!bh__serve_killed(worker)) {
        if (queues && !bh__queue_wait_for_room(lane)) return false;
        uint64_t claim = atomic_load(&lane->area->claim);
        if (claim & BH__FROZEN) return false;
        if (claim & BH__PAUSED) {
            wait_out_pause(&rounds);
            continue;
        }
        uint64_t position = bh__claim_position(claim);
        /* The application's cache line is looked at only when there is nothing known to be there.
         */
        if (lane->known_tail <= position) {
            lane->known_tail = atomic_load_explicit(&lane->front->tail, memory_order_acquire);
            if (lane->known_tail > position)
                bh__meter_depth(&lane->meter, lane->known_tail - lane_passed(lane));
        }
        uint64_t tail = lane->known_tail;
        if (tail == position) {
            if (!queues) idle(lane, position);
            if (queues && !idle_queued(lane, position)) return false;
            continue;
        }
        bh__request *request = bh__ring_request(lane->ring, worker->queue_length, position);
        if (!is_sound(lane, request, position, tail)) {
            /* Once the claim word has changed, the slot may hold anything. */
            if (claim_again(lane) != claim) continue;
            request_damaged(lane, position, "sequence", request->sequence);
            return false;
        }
        /* What a cancel or a takeover may change is read once the request is claimed. */
        if (atomic_compare_exchange_strong(&lane->area->claim, &claim,
                                           bh__claim_word(request->sequence))) {
#ifdef __SANITIZE_THREAD__
            bh__serve_see_done(worker);
#endif
            if (!copy_request(lane, request, position)) return false;
            bh__meter_take(&lane->meter, lane->work);
            return true;
        }
    }
    return false;
}

/* Waits until the lost worker that could still write what this request uses is gone. */
bool bh__serve_lane_hold(bh__lane *lane) {
    bh__worker *worker = lane->worker;
    bool queues = worker->ops->enqueue != NULL;
    _Atomic uint64_t *reaped = &worker->front->reaped;
    for (;;) {
        uint64_t seen = atomic_load(reaped), until = BH__NEVER;
        if (seen >= lane->hold) return true;
        if (bh__serve_killed(worker)) return false;
        if (queues && !bh__queue_pause(lane, reaped, seen, SHORT_SPIN_NS, &until)) return false;
        if (until == 0 || (!queues && spin_while(worker, reaped, seen, SHORT_SPIN_NS))) continue;
        bh__futex_wait(low_half(reaped), (uint32_t)seen, until, BH__FUTEX_SHARED);
    }
}

static bool wait_for_lane(bh__worker *worker, const bh__dependency *dependency) {
    bh__lane *other = &worker->lanes[dependency->lane];
    _Atomic uint64_t *done = &other->area->done;
    uint64_t end = 0;
    while (atomic_load_explicit(done, memory_order_acquire) < dependency->position) {
        if (bh__serve_killed(worker)) return false;
        uint64_t now = bh__now_ns();
        if (end == 0) end = now + SHORT_SPIN_NS;
        if (now < end) {
            bh__cpu_relax();
            continue;
        }
        /* The other lane stores done and then looks at waiters: one of the two sees the other. */
        atomic_fetch_add(&other->waiters, 1);
        uint32_t progress = atomic_load(&other->progress);
        if (atomic_load(done) < dependency->position && !bh__serve_killed(worker))
            bh__futex_wait(&other->progress, progress, BH__NEVER, BH__FUTEX_PRIVATE);
        atomic_fetch_sub(&other->waiters, 1);
    }
    return true;
}

static bool wait_for_dependencies(bh__lane *lane) {
    for (uint32_t i = 0; i < lane->dependency_count; i++) {
        if (!wait_for_lane(lane->worker, &lane->dependencies[i])) return false;
    }
    return true;
}

/* While the request waited for others, one of them may have failed, and the application may have
 * given this one its verdict: then it does nothing. False: the lane is over, and the slot may be in use
 * again. */
bool bh__serve_lane_op_again(bh__lane *lane) {
    if (lane->dependency_count == 0) return true;
    const bh__request *request =
        bh__ring_request(lane->ring, lane->worker->queue_length, lane->work->start);
    uint16_t op = atomic_load_explicit(&request->op, memory_order_acquire);
    if (claim_again(lane) & BH__FROZEN) return false;
    lane->work->op = op;
    return true;
}

static void ring_eventfd(int fd) {
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof one);
    (void)written; /* full means readable, which is all that is wanted */
}

/* True, once for each post, if the dispatcher, who alone posts `wanted`, is to be told now. */
static bool is_due(_Atomic uint64_t *wanted, uint64_t done, uint64_t *woken) {
    uint64_t at = atomic_load(wanted);
    if (at > done || at <= *woken) return false;
    *woken = done;
    return true;
}

/* They post their wish and then look at done; whoever calls this has stored or seen done and then
 * looks for wishes. */
void bh__serve_lane_tell(bh__lane *lane, uint64_t done, uint64_t *woken) {
    /* As often as the post stands: several threads post it, and one that is still asleep must be
     * woken again. */
    if (atomic_load(&lane->front->notify_sleep) <= done) {
        atomic_fetch_add(&lane->area->wake, 1);
        bh__futex_wake(&lane->area->wake, BH__FUTEX_ALL, BH__FUTEX_SHARED);
    }
    if (is_due(&lane->front->notify_dispatch, done, woken)) ring_eventfd(lane->worker->dispatch_fd);
}

/* Publishes that everything up to `done` is complete, then tells those who wait for it. */
static void complete(bh__lane *lane, uint64_t done) {
    atomic_store(&lane->area->done, done);
    bh__serve_lane_tell(lane, done, &lane->woken_dispatch);
    if (atomic_load(&lane->waiters)) {
        atomic_fetch_add(&lane->progress, 1);
        bh__futex_wake(&lane->progress, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
    }
}

/* Executes the request that was taken. False: it is not complete and the lane is over. */
static bool perform(bh__lane *lane) {
    bh__worker *worker = lane->worker;
    if (!bh__serve_lane_hold(lane) || !wait_for_dependencies(lane) ||
        !bh__serve_lane_op_again(lane))
        return false;
    /* One with a verdict does nothing, but in its turn: that it has passed must mean that what it
     * waits for has. */
    if (lane->work->op == BH__OP_SKIP) return true;
    bh__meter_begin(&lane->meter, lane->work, lane->hold || lane->dependency_count);
    bh_error error;
    bool whole = lane->work->op == BH__OP_SEQUENCE;
    bool ranged = bh__range_begin(lane, lane->work, 1);
    bh_status status = whole ? bh__sequence_execute(lane, &error)
                             : worker->ops->execute(lane->context, lane->work, &error);
    bh__range_end(ranged);
    if (status == BH_OK) return true;
    if (status == BH_E_STOPPED) return false;
    if (status == BH_E_FAULT) {
        bh__serve_lane_fault(lane, lane->work->sequence, &error);
        return false;
    }
    return bh__serve_lane_report(lane, lane->work->sequence, &error);
}

static bool wait_for_go(bh__worker *worker) {
    while (!atomic_load(&worker->go)) {
        if (bh__serve_killed(worker)) return false;
        bh__futex_wait(&worker->go, 0, BH__NEVER, BH__FUTEX_PRIVATE);
    }
    return true;
}

static void *lane_main(void *argument) {
    bh__lane *lane = argument;
    bh__worker *worker = lane->worker;
    char name[16];
    snprintf(name, sizeof name, "bh-lane-%u", lane->index);
    pthread_setname_np(pthread_self(), name);
    bh__range_name_lane(lane);

    if (wait_for_go(worker)) {
        uint64_t done = atomic_load(&lane->area->done);
        lane->woken_dispatch = done;
        bool queues = worker->ops->enqueue != NULL;
        if (queues && bh__queue_begin(lane, done)) {
            while (bh__serve_lane_take(lane) && bh__queue_perform(lane)) {
            }
        }
        while (!queues && bh__serve_lane_take(lane)) {
            if (!perform(lane)) break;
            if (bh__serve_killed(worker)) break;
            bh__meter_end(&lane->meter, lane->work);
            complete(lane, lane->work->sequence);
            bh__meter_count(&lane->meter, lane->work);
        }
    }
    atomic_store(&lane->ended, true);
    return NULL;
}

bh_status bh__serve_lane_open(bh__worker *worker, const bh__lane_message *which, bh_error *error) {
    uint32_t index = which->index;
    if (index >= BH__MAX_LANES)
        return bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                        "lane %u is beyond the %d lanes of a device", index, BH__MAX_LANES);
    bh__lane *lane = &worker->lanes[index];
    if (lane->open) return BH_OK;
    for (uint32_t i = 0; i < BH__TRAIN; i++) lane->works[i].lane = index;
    lane->work = lane->works;
    bh_status status = worker->ops->lane_open(worker->device, which, error, &lane->context);
    if (status != BH_OK) return status;

    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
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

void bh__serve_lanes_go(bh__worker *worker) {
    atomic_store(&worker->go, 1);
    bh__futex_wake(&worker->go, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

void bh__serve_lanes_join(bh__worker *worker) {
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        bh__lane *lane = &worker->lanes[i];
        if (!lane->open) continue;
        /* A lane may go to sleep right after it looked at `killed`: wake it until it has seen it.
         */
        while (!atomic_load(&lane->ended)) {
            bh__futex_wake(&worker->go, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
            bh__futex_wake(&lane->area->asleep, BH__FUTEX_ALL, BH__FUTEX_SHARED);
            bh__futex_wake(low_half(&worker->front->reaped), BH__FUTEX_ALL, BH__FUTEX_SHARED);
            bh__futex_wake(&worker->area->reports_taken, BH__FUTEX_ALL, BH__FUTEX_SHARED);
            for (uint32_t j = 0; j < BH__MAX_LANES; j++)
                bh__futex_wake(&worker->lanes[j].progress, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
            nanosleep(&(struct timespec){.tv_nsec = 200 * BH__NS_PER_US}, NULL);
        }
        pthread_join(lane->thread, NULL);
        bh__bell_end(lane);
        worker->ops->lane_close(lane->context);
        lane->context = NULL;
        lane->open = false;
    }
}
