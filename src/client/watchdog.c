/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog: a worker that has something to do and shows no sign of life is lost like one that
 * died. The supervisor looks at all of them every few milliseconds while anything is outstanding, and
 * not at all otherwise.
 *
 * Limits are measured on a clock of its own, the time in which it looked. That clock stands still
 * while nothing is outstanding, and while the application itself is stopped (a signal, a debugger, a
 * virtual machine that is paused): a look that comes far later than it was meant to counts as if it
 * had come in time.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/futex.h"
#include "client/supervisor.h"

#define LONGEST_LOOK_NS (20 * BH__NS_PER_MS)
#define LONGEST_LATE_NS (250 * BH__NS_PER_MS)

enum {
    LOOKS = 16,          /* in each stuck_timeout_ns, at least */
    SLOW_ORDER = 24,     /* times stuck_timeout_ns: a driver may compile */
    BYTES_PER_US = 256,  /* the slowest that a transfer may be */
    BYTES_PER_ROW = 256, /* what each row costs besides */
    STANDBY_PINGS = 4,   /* in each stuck_timeout_ns, while all is well */
    NS_PER_US = 1000
};

uint64_t bh__watch_period(const bh__device *device) {
    uint64_t period = device->options.stuck_timeout_ns / LOOKS;
    if (period > LONGEST_LOOK_NS) return LONGEST_LOOK_NS;
    return period < BH__NS_PER_MS ? BH__NS_PER_MS : period;
}

static uint64_t times(uint64_t ns, uint32_t factor) {
    uint64_t product;
    return bh__mul_u64(ns, factor, &product) ? product : BH__NEVER;
}

static uint64_t plus_bytes(uint64_t ns, uint64_t bytes) {
    uint64_t sum;
    uint64_t more = bytes / BYTES_PER_US;
    return bh__mul_u64(more, NS_PER_US, &more) && bh__add_u64(ns, more, &sum) ? sum : BH__NEVER;
}

/* ---- the clock ---- */

static bool has_orders(const bh__device *device) {
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        const bh__worker *worker = &device->workers[i];
        if (worker->state == BH__WORKER_BOOTING) return true;
        if (worker->state != BH__WORKER_NONE && worker->sent) return true;
    }
    return false;
}

static void advance(bh__device *device, uint64_t now) {
    bh__watch *watch = &device->watch;
    uint64_t gap = watch->last && now > watch->last ? now - watch->last : 0;
    uint64_t late = device->options.stuck_timeout_ns / 8;
    if (late > LONGEST_LATE_NS) late = LONGEST_LATE_NS;
    if (gap > watch->planned + late) gap = watch->planned;
    watch->clock += gap;
    watch->last = now;
}

/* ---- signs of life ---- */

static uint64_t silence(const bh__device *device, const bh__worker *worker) {
    return worker->silent ? device->watch.clock - worker->pinged_at : 0;
}

static void ping(bh__device *device, bh__worker *worker) {
    _Atomic uint32_t *word = &device->front->ping[worker->area];
    worker->silent = true;
    worker->pinged_at = device->watch.clock;
    atomic_store(word, ++worker->pings);
    bh__futex_wake(word, BH__FUTEX_ALL, BH__FUTEX_SHARED);
}

bool bh__watch_doubts(const bh__device *device, const bh__worker *worker) {
    return silence(device, worker) > device->options.stuck_timeout_ns / 2;
}

/* A standby that only waits is asked now and then; once the active worker seems to be in trouble, as
 * often as that, so that it is known which one can take over. */
static uint64_t pause_between(const bh__device *device, const bh__worker *worker) {
    const bh__worker *active = device->active;
    bool trouble =
        active && silence(device, active) > device->options.stuck_timeout_ns / STANDBY_PINGS;
    if (worker == active || worker->sent || trouble) return bh__watch_period(device);
    return device->options.stuck_timeout_ns / STANDBY_PINGS;
}

static void describe_silence(const bh__device *device, const bh__worker *worker, bh_error *out) {
    bh__fail(out, BH_E_LOST,
             "find out who stopped it (SIGSTOP, a debugger, a frozen cgroup); raise "
             "stuck_timeout_ns if that is as it should be",
             "the process of worker %d has not answered for %.1f s: stopped?",
             (int)worker->process.program.pid, (double)silence(device, worker) / 1e9);
}

/* True: it has been silent for too long. With `asks` it is asked again when it is time to. */
static bool check_life(bh__device *device, bh__worker *worker, bool asks, bh__cause *out) {
    if (device->options.stuck_timeout_ns == BH__NEVER) return false;
    if (atomic_load(&bh__worker_area(device, worker)->pong) == worker->pings)
        worker->silent = false;
    if (silence(device, worker) >= device->options.stuck_timeout_ns) {
        out->status = BH_E_LOST;
        out->stuck = true;
        describe_silence(device, worker, &out->error);
        return true;
    }
    if (asks && !worker->silent &&
        device->watch.clock - worker->pinged_at >= pause_between(device, worker))
        ping(device, worker);
    return false;
}

/* ---- orders ---- */

static uint64_t order_limit(const bh__device *device, const bh__order *order) {
    uint64_t stuck = device->options.stuck_timeout_ns;
    switch (order->type) {
    case BH__MSG_MODULE_LOAD:
    case BH__MSG_SEQUENCE_DEFINE:
        return times(stuck, SLOW_ORDER);
    case BH__MSG_CHUNK_CREATE:
        return plus_bytes(times(stuck, SLOW_ORDER), order->chunk.bytes);
    case BH__MSG_CHUNK_MAP:
    case BH__MSG_CHUNK_UNMAP:
        return plus_bytes(stuck, order->chunk.bytes);
    case BH__MSG_HOST_MAP:
    case BH__MSG_HOST_UNMAP:
        return plus_bytes(stuck, order->host.bytes);
    default:
        return stuck;
    }
}

bool bh__order_is_slow(const bh__order *order) {
    return order->type == BH__MSG_MODULE_LOAD || order->type == BH__MSG_SEQUENCE_DEFINE ||
           order->type == BH__MSG_CHUNK_CREATE;
}

static bool check_orders(bh__device *device, bh__worker *worker, bool kernels_run, bh__cause *out) {
    if (!worker->sent) return false;
    /* A driver may wait for running kernels before it maps or frees anything; those of the active
     * worker slow down the others. */
    bool waits = kernels_run && strcmp(device->kind, "cpu") != 0;
    if (waits && worker == device->active) worker->order_since = device->watch.clock;
    uint64_t waited = device->watch.clock - worker->order_since;
    uint64_t limit = order_limit(device, worker->sent);
    if (waited < (waits ? times(limit, SLOW_ORDER) : limit)) return false;
    out->status = BH_E_LOST;
    out->overdue = true;
    bh__fail(&out->error, BH_E_LOST,
             "it is tried again with the next worker; if the device is only slow, raise "
             "stuck_timeout_ns",
             "worker %d has not answered order %u (%s) for %.1f s",
             (int)worker->process.program.pid, worker->sent->serial,
             bh__order_name(worker->sent->type), (double)waited / 1e9);
    return true;
}

static bool check_boot(bh__device *device, bh__worker *worker, bh__cause *out) {
    if (device->watch.clock < worker->boot_deadline) return false;
    bh__fail(&out->error, BH_E_NO_DEVICE, "run `bulkhead doctor`", "%s has not answered for %.1f s",
             device->worker_path, (double)(bh__now_ns() - worker->started_ns) / 1e9);
    return true;
}

/* ---- lanes ---- */

typedef struct head {
    bh__lane *lane;
    uint64_t position, tail;
    const bh__shadow *shadow;
    const bh__request *request;
    bool runs;  /* it waits for nothing but to be taken, and then for the device */
    bool taken; /* by the worker */
} head;

/* Looks at the head of a lane, if it has any. What the worker's words say is compared with what can
 * be: a worker gone mad is replaced. */
static bool find_head(bh__device *device, bh__lane *lane, head *out) {
    if (!lane->exists) return false;
    const bh__lane_area *words = &atomic_load(&device->area)->lane[lane->index];
    uint64_t done = bh__lane_done(device, lane);
    uint64_t taken = bh__claim_position(atomic_load(&words->claim));
    uint64_t tail = atomic_load(&lane->tail);
    uint32_t length = device->front->queue_length;
    const bh__shadow *shadow = &lane->shadow[done & (length - 1)];
    bool within = done < tail && shadow->start != done;
    if (taken < done || taken > tail || within) atomic_store(&device->insane, true);
    if (done >= tail || atomic_load(&device->insane)) {
        lane->head_position = 0;
        return false;
    }
    *out = (head){lane,  done,        tail, shadow, bh__ring_request(lane->ring, length, done),
                  false, taken > done};
    out->runs = bh__head_runs(device, lane, done);
    uint64_t clock = device->watch.clock;
    if (lane->head_position != done + 1 || !out->runs) {
        lane->head_position = done + 1;
        lane->head_since = lane->taken_since = clock;
        lane->head_taken = out->taken;
    } else if (lane->head_taken != out->taken) {
        lane->head_taken = out->taken;
        lane->taken_since = clock;
    }
    uint64_t handing = atomic_load_explicit(&words->handing, memory_order_relaxed);
    if (handing != lane->handing || handing == 0 || handing - 1 > done) {
        lane->handing = handing;
        lane->handing_since = clock;
    }
    return true;
}

static bool is_kernel(const head *self) {
    return !self->shadow->resolved &&
           (self->shadow->op == BH__OP_LAUNCH || self->shadow->op == BH__OP_SEQUENCE);
}

/* Whether the lane's thread is in a call to the driver for its head, or for what was before it. */
static bool is_handing(const head *self) {
    return self->lane->handing && self->lane->handing - 1 <= self->position;
}

static bool kernel_runs(const head *self) {
    return self->runs && self->taken && is_kernel(self) && !is_handing(self);
}

static uint64_t transfer_bytes(const head *self) {
    if (!self->runs || !self->taken || is_kernel(self)) return 0;
    if (self->shadow->resolved) return 0;
    const bh__copy_body *copy = &self->request->u.copy;
    uint64_t rows, sum;
    if (!bh__mul_u64(copy->rows, BYTES_PER_ROW, &rows) ||
        !bh__add_u64(rows, bh__copy_bytes(copy), &sum))
        return BH__NEVER;
    return sum;
}

typedef struct look {
    bool busy;        /* some lane has work */
    uint32_t kernels; /* lanes with a kernel that runs, as far as known */
    uint64_t bytes;   /* of the transfers at the heads of all lanes */
    uint64_t slots;   /* submitted so far */
    bool slow;        /* the worker is carrying out an order that may take long */
} look;

/* The pulse answers at once: one that misses two looks does not run, as far as blame goes. */
static bool seems_stopped(const bh__device *device) {
    return silence(device, device->active) >= 2 * bh__watch_period(device);
}

static const char *silent_too(const bh__device *device) {
    return seems_stopped(device) ? "; its process does not answer either: stopped?" : "";
}

static bool fail_stuck(const bh__device *device, bh__cause *out, const head *self, bh_status status,
                       const char *format, double seconds) {
    char which[256], what[400];
    bh__shadow_describe(self->shadow, self->lane->index, which, sizeof which);
    snprintf(what, sizeof what, format, seconds, which);
    out->status = status;
    out->stuck = true;
    out->lane_known = true;
    out->lane = self->lane->index;
    bh__fail(&out->error, status,
             "submit the work again; if the device is only slow, raise stuck_timeout_ns", "%s%s",
             what, silent_too(device));
    return true;
}

/* Whether the head of a lane shows that the worker is stuck. Lowers *step to when to look again. */
static bool check_progress(bh__device *device, const head *self, const look *all, uint64_t *step,
                           bh__cause *out) {
    uint64_t stuck = device->options.stuck_timeout_ns, clock = device->watch.clock;
    if (!self->runs || stuck == BH__NEVER) return false;
    bh__lane *lane = self->lane;
    uint64_t allowed = times(stuck, all->slow ? SLOW_ORDER : 1), since = lane->taken_since;
    const char *format = "the worker took nothing for %.1f s: %s waits";
    if (self->taken && is_handing(self)) {
        /* Drivers wait for kernels of other lanes here and there. */
        if (all->kernels) lane->handing_since = clock;
        since = lane->handing_since;
        format = "the worker is stuck in a call to the device's driver for %.1f s: %s";
    } else if (self->taken && !is_kernel(self)) {
        if (all->kernels) lane->taken_since = clock;
        since = lane->taken_since;
        allowed = plus_bytes(allowed, all->bytes);
        format = "the worker made no progress for %.1f s: %s";
    } else if (self->taken) {
        return false;
    }
    uint64_t waited = clock - since;
    if (waited >= allowed)
        return fail_stuck(device, out, self, BH_E_LOST, format, (double)waited / 1e9);
    if (allowed - waited < *step) *step = allowed - waited;
    return false;
}

static bool check_deadline(bh__device *device, const head *self, uint64_t *step, bh__cause *out) {
    /* One with a verdict only has to be passed. */
    uint64_t allowed = self->shadow->resolved ? 0 : self->shadow->deadline_ns;
    if (!allowed) return false;
    bh__lane *lane = self->lane;
    uint32_t count = 1;
    if (self->taken) (void)bh__group_end(device, lane, self->position, self->tail, &count);
    allowed = times(allowed, count);
    uint64_t waited = device->watch.clock - lane->head_since;
    if (waited >= allowed) {
        if (!self->taken) {
            (void)fail_stuck(device, out, self, BH_E_DEADLINE,
                             "the worker took nothing for %.3f s: %s passed its deadline",
                             (double)waited / 1e9);
        } else {
            char which[256];
            bh__shadow_describe(self->shadow, lane->index, which, sizeof which);
            bh__fail(&out->error, BH_E_DEADLINE,
                     "give it more time with deadline_ns, or make the kernel end",
                     "%s overran its deadline of %.3f ms%s", which, (double)allowed / 1e6,
                     silent_too(device));
        }
        out->status = BH_E_DEADLINE;
        out->lane_known = true;
        out->lane = lane->index;
        out->sequence = count == 1 ? self->position + self->shadow->slots : 0;
        out->innocent = !self->taken || seems_stopped(device);
        return true;
    }
    if (allowed - waited < *step) *step = allowed - waited;
    return false;
}

/* Looking eight times a deadline bounds how late a request that starts between two looks is caught.
 * The tightest of late counts, whether its request is there now or not. With the lock held. */
static void hurry(const bh__device *device, uint64_t *step) {
    uint64_t next = device->tightest / 8;
    if (next < BH__NS_PER_MS / 2) next = BH__NS_PER_MS / 2;
    if (device->tightest && next < *step) *step = next;
}

/* With the lock held. */
static bool check_lanes(bh__device *device, look *all, uint64_t *step, bh__cause *out) {
    head heads[BH__MAX_LANES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < device->lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        if (lane->exists) all->slots += atomic_load(&lane->tail);
        if (!find_head(device, lane, &heads[count])) continue;
        const head *self = &heads[count++];
        all->busy = true;
        all->kernels += kernel_runs(self);
        if (!bh__add_u64(all->bytes, transfer_bytes(self), &all->bytes)) all->bytes = BH__NEVER;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (check_deadline(device, &heads[i], step, out) ||
            check_progress(device, &heads[i], all, step, out))
            return true;
    }
    return false;
}

/* Requests are submitted again and again in most programs: the looks go on for a while, so that not
 * each of them has to have them started. With the lock held. */
static void rest(bh__device *device, const look *all) {
    bh__watch *watch = &device->watch;
    if (all->busy || all->slots != watch->submitted) {
        watch->submitted = all->slots;
        watch->quiet_since = watch->clock;
    } else if (watch->clock - watch->quiet_since >= 2 * bh__watch_period(device)) {
        /* Stored first, looked for sleepers second: they post and look at this word in turn. One
         * that sleeps though all is done waits for a worker that took back what it said. */
        atomic_store(&device->wants_tick, 0);
        device->tightest = 0;
        for (uint32_t i = 0; i < device->lane_limit; i++) {
            if (atomic_load(&device->front->lane[i].notify_sleep) != BH__NEVER)
                atomic_store(&device->wants_tick, 1);
        }
    }
}

static bool look_at_lanes(bh__device *device, look *all, uint64_t *step, bh__cause *out) {
    if (!atomic_load(&device->wants_tick) || device->state != BH_DEVICE_RUNNING) return false;
    for (const bh__order *order = device->active->sent; order; order = order->next)
        all->slow |= bh__order_is_slow(order);
    bh__lock_take(&device->lock);
    bool stuck = check_lanes(device, all, step, out);
    hurry(device, step);
    if (!stuck) rest(device, all);
    bh__lock_give(&device->lock);
    return stuck;
}

/* ---- a look ---- */

bh__worker *bh__watch_look(bh__device *device, uint64_t now, uint64_t *next, bh__cause *out) {
    bh__watch *watch = &device->watch;
    if (device->state == BH_DEVICE_STOPPED ||
        (!atomic_load(&device->wants_tick) && !has_orders(device))) {
        watch->last = 0;
        return NULL;
    }
    bool first = watch->last == 0;
    advance(device, now);
    uint64_t step = bh__watch_period(device);
    look all = {0};
    memset(out, 0, sizeof *out);
    bh__worker *stuck = look_at_lanes(device, &all, &step, out) ? device->active : NULL;
    for (uint32_t i = 0; !stuck && i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers[i];
        if (worker->state == BH__WORKER_BOOTING) {
            if (check_boot(device, worker, out)) stuck = worker;
        } else if (worker->state == BH__WORKER_STANDBY || worker->state == BH__WORKER_ACTIVE) {
            /* What is over before the next look is not worth a ping. */
            if (first && worker == device->active && !worker->silent)
                worker->pinged_at = watch->clock;
            if (check_orders(device, worker, all.kernels, out) ||
                check_life(device, worker, all.busy || worker->sent, out))
                stuck = worker;
        }
    }
    watch->planned = step;
    if (now + step < *next) *next = now + step;
    return stuck;
}
