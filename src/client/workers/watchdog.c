/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog: a worker that has work and makes no progress is lost, like a worker that died. The
 * supervisor checks all workers every few milliseconds while anything is outstanding, and not at
 * all otherwise.
 *
 * Timeouts are measured on the watch clock. It stands still while nothing is outstanding, and while
 * the application itself is stopped (by a signal, a debugger or a paused virtual machine): a check
 * that runs far later than planned counts as if it had run in time.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/futex.h"
#include "client/callback/callback.h"
#include "client/core/hooks.h"
#include "client/queue/queue.h"
#include "client/queue/walk.h"
#include "client/workers/internal.h"

#define MAX_PERIOD_NS (20 * BH__NS_PER_MS)
#define MAX_LATE_NS   (250 * BH__NS_PER_MS)

enum {
    MIN_CHECKS = 16,     /* in each stuck_timeout_ns */
    SLOW_ORDER = 24,     /* times stuck_timeout_ns: a driver may compile */
    BYTES_PER_US = 256,  /* minimum speed of a transfer */
    BYTES_PER_ROW = 256, /* added for each row */
    STANDBY_PINGS = 4,   /* in each stuck_timeout_ns, while the active worker answers */
    NS_PER_US = 1000
};

uint64_t bh__watch_period(const bh__device *device) {
    uint64_t period = device->options.stuck_timeout_ns / MIN_CHECKS;
    if (period > MAX_PERIOD_NS) return MAX_PERIOD_NS;
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
        const bh__worker *worker = &device->workers.workers[i];
        if (worker->state == BH__WORKER_BOOTING) return true;
        if (worker->state != BH__WORKER_NONE && worker->sent) return true;
    }
    return false;
}

static void advance(bh__device *device, uint64_t now) {
    bh__watch *watch = &device->workers.watch;
    uint64_t gap = watch->last && now > watch->last ? now - watch->last : 0;
    uint64_t late = device->options.stuck_timeout_ns / 8;
    if (late > MAX_LATE_NS) late = MAX_LATE_NS;
    if (gap > watch->planned + late) gap = watch->planned;
    watch->clock += gap;
    watch->last = now;
}

/* ---- pings ---- */

static uint64_t silence(const bh__device *device, const bh__worker *worker) {
    return worker->silent ? device->workers.watch.clock - worker->pinged_at : 0;
}

static void ping(bh__device *device, bh__worker *worker) {
    _Atomic uint32_t *word = &device->queue.front->ping[worker->area];
    worker->silent = true;
    worker->pinged_at = device->workers.watch.clock;
    atomic_store(word, ++worker->pings);
    bh__futex_wake(word, BH__FUTEX_ALL, BH__FUTEX_SHARED);
}

bool bh__watch_doubts(const bh__device *device, const bh__worker *worker) {
    return silence(device, worker) > device->options.stuck_timeout_ns / 2;
}

/* An idle standby is pinged less often. Once the active worker is silent, standbys are pinged as
 * often as the active worker, so that it is known which one can take over. */
static uint64_t ping_interval(const bh__device *device, const bh__worker *worker) {
    const bh__worker *active = device->workers.active;
    bool trouble =
        active && silence(device, active) > device->options.stuck_timeout_ns / STANDBY_PINGS;
    if (worker == active || worker->sent || trouble) return bh__watch_period(device);
    return device->options.stuck_timeout_ns / STANDBY_PINGS;
}

static void describe_silence(const bh__device *device, const bh__worker *worker, bh_error *out) {
    bh__fail(out, BH_E_LOST,
             "find out who stopped it (SIGSTOP, a debugger, a frozen cgroup); raise "
             "stuck_timeout_ns if it was stopped on purpose",
             "the process of worker %d has not answered for %.1f s; it may be stopped",
             (int)worker->process.program.pid, (double)silence(device, worker) / 1e9);
}

/* Returns true if the worker has been silent for too long. With `ping_due`, pings it when the
 * interval has passed. */
static bool check_silence(bh__device *device, bh__worker *worker, bool ping_due, bh__cause *out) {
    if (device->options.stuck_timeout_ns == BH__NEVER) return false;
    if (atomic_load(&bh__worker_area(device, worker)->pong) == worker->pings)
        worker->silent = false;
    if (silence(device, worker) >= device->options.stuck_timeout_ns) {
        out->status = BH_E_LOST;
        out->stuck = true;
        describe_silence(device, worker, &out->error);
        return true;
    }
    if (ping_due && !worker->silent &&
        device->workers.watch.clock - worker->pinged_at >= ping_interval(device, worker))
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
    /* A driver may wait for running kernels before it maps or frees memory. Kernels of the active
     * worker also slow down the others. */
    bool waits = kernels_run && (worker->traits & BH__TRAIT_ORDERS_WAIT);
    if (waits && worker == device->workers.active)
        worker->order_since = device->workers.watch.clock;
    uint64_t waited = device->workers.watch.clock - worker->order_since;
    uint64_t limit = order_limit(device, worker->sent);
    if (waited < (waits ? times(limit, SLOW_ORDER) : limit)) return false;
    out->status = BH_E_LOST;
    out->overdue = true;
    bh__fail(&out->error, BH_E_LOST,
             "none needed, the next worker retries it; if the device is only slow, raise "
             "stuck_timeout_ns",
             "worker %d has not answered order %u (%s) for %.1f s",
             (int)worker->process.program.pid, worker->sent->serial,
             bh__order_name(worker->sent->type), (double)waited / 1e9);
    return true;
}

static bool check_boot(bh__device *device, bh__worker *worker, bh__cause *out) {
    if (device->workers.watch.clock < worker->boot_deadline) return false;
    bh__fail(&out->error, BH_E_NO_DEVICE, "run `bulkhead doctor`", "%s has not answered for %.1f s",
             device->workers.worker_path, (double)(bh__now_ns() - worker->started_ns) / 1e9);
    return true;
}

/* ---- lanes ---- */

typedef struct head {
    bh__lane *lane;
    uint64_t position, tail;
    const bh__shadow *shadow;
    const bh__request *request;
    bool runs;    /* it waits for no dependency and no lost worker */
    bool taken;   /* by the worker */
    uint64_t due; /* the request whose deadline counts; the tail if there is none */
} head;

/* A worker only skips requests that have a verdict. Until it does, the deadline of the first one
 * behind them counts. */
static void find_due(bh__device *device, head *self) {
    bh__lane *lane = self->lane;
    self->due = self->position;
    while (!self->taken && self->due < self->tail &&
           bh__shadow_at(device, lane, self->due)->resolved)
        self->due += bh__shadow_at(device, lane, self->due)->slots;
    bool runs = self->runs && (self->due == self->position ||
                               (self->due < self->tail && bh__head_runs(device, lane, self->due)));
    if (lane->due_position == self->due + 1 && runs) return;
    lane->due_position = self->due + 1;
    lane->due_since = device->workers.watch.clock;
}

/* Finds the head of a lane. Returns false if there is none. A worker whose words are impossible is
 * marked as distrusted, and replaced. */
static bool find_head(bh__device *device, bh__lane *lane, head *out) {
    if (!lane->exists) return false;
    const bh__lane_area *words = bh__lane_words(device, lane);
    uint64_t done = bh__lane_done(device, lane);
    uint64_t taken = bh__lane_taken(device, lane, atomic_load(&words->claim));
    uint64_t tail = atomic_load(&lane->tail);
    uint32_t length = device->queue.length;
    const bh__shadow *shadow = &lane->shadow[done & (length - 1)];
    bool within = done < tail && shadow->start != done;
    if (taken < done || within) atomic_store(&device->queue.distrusted, true);
    if (done >= tail || atomic_load(&device->queue.distrusted)) {
        lane->head_position = lane->due_position = 0;
        return false;
    }
    *out = (head){lane,  done,         tail, shadow, bh__ring_request(lane->ring, length, done),
                  false, taken > done, done};
    out->runs = bh__head_runs(device, lane, done);
    uint64_t clock = device->workers.watch.clock;
    if (lane->head_position != done + 1 || !out->runs) {
        lane->head_position = done + 1;
        lane->taken_since = clock;
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
    find_due(device, out);
    return true;
}

static bool is_kernel(const head *self) {
    return !self->shadow->resolved &&
           (self->shadow->op == BH__OP_LAUNCH || self->shadow->op == BH__OP_SEQUENCE);
}

/* Returns true if the lane's thread is in a driver call for its head or an earlier request. */
static bool is_in_driver_call(const head *self) {
    return self->lane->handing && self->lane->handing - 1 <= self->position;
}

static bool kernel_runs(const head *self) {
    return self->runs && self->taken && is_kernel(self) && !is_in_driver_call(self);
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

typedef struct summary {
    bool busy;        /* some lane has work */
    uint32_t kernels; /* lanes whose head is a running kernel */
    uint64_t bytes;   /* of the transfers at the heads of all lanes */
    uint64_t slots;   /* submitted so far */
    bool slow;        /* the worker is executing an order that may take long */
} summary;

/* A worker answers pings at once. One that is silent for two periods counts as stopped for
 * blame. */
static bool seems_stopped(const bh__device *device) {
    return silence(device, device->workers.active) >= 2 * bh__watch_period(device);
}

static const char *stopped_hint(const bh__device *device) {
    return seems_stopped(device) ? "; its process does not answer either, it may be stopped" : "";
}

static bool fail_stuck(const bh__device *device, bh__cause *out, const head *self,
                       const bh__shadow *next, bh_status status, const char *format,
                       double seconds) {
    char which[256], what[400];
    bh__shadow_describe(next, self->lane->index, which, sizeof which);
    snprintf(what, sizeof what, format, seconds, which);
    out->status = status;
    out->stuck = true;
    out->lane_known = true;
    out->lane = self->lane->index;
    bh__fail(&out->error, status,
             "submit the work again; if the device is only slow, raise stuck_timeout_ns", "%s%s",
             what, stopped_hint(device));
    return true;
}

/* Returns true if the head of a lane shows that the worker is stuck. Lowers *step to the time until
 * the next check. */
static bool check_progress(bh__device *device, const head *self, const summary *all, uint64_t *step,
                           bh__cause *out) {
    uint64_t stuck = device->options.stuck_timeout_ns, clock = device->workers.watch.clock;
    if (!self->runs || stuck == BH__NEVER) return false;
    bh__lane *lane = self->lane;
    uint64_t allowed = times(stuck, all->slow ? SLOW_ORDER : 1), since = lane->taken_since;
    const char *format = "the worker took no request for %.1f s; next is %s";
    if (self->taken && is_in_driver_call(self)) {
        /* Some driver calls wait for kernels of other lanes. */
        if (all->kernels) lane->handing_since = clock;
        since = lane->handing_since;
        format = "the worker has been in a driver call for %.1f s: %s";
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
        return fail_stuck(device, out, self, self->shadow, BH_E_LOST, format, (double)waited / 1e9);
    if (allowed - waited < *step) *step = allowed - waited;
    return false;
}

static bool check_deadline(bh__device *device, const head *self, uint64_t *step, bh__cause *out) {
    bh__lane *lane = self->lane;
    const bh__shadow *shadow = bh__shadow_at(device, lane, self->due);
    /* A request that already has a verdict has no deadline. */
    uint64_t allowed = self->due >= self->tail || shadow->resolved ? 0 : shadow->deadline_ns;
    if (!allowed) return false;
    uint32_t count = 1;
    if (self->taken) (void)bh__group_end(device, lane, self->position, self->tail, &count);
    allowed = times(allowed, count);
    uint64_t waited = device->workers.watch.clock - lane->due_since;
    if (waited >= allowed) {
        if (!self->taken) {
            (void)fail_stuck(device, out, self, shadow, BH_E_DEADLINE,
                             "the worker took no request for %.3f s; past its deadline is %s",
                             (double)waited / 1e9);
        } else {
            char which[256];
            bh__shadow_describe(shadow, lane->index, which, sizeof which);
            bh__fail(&out->error, BH_E_DEADLINE,
                     "raise deadline_ns, or make the kernel finish earlier",
                     "%s exceeded its deadline of %.3f ms%s", which, (double)allowed / 1e6,
                     stopped_hint(device));
        }
        out->status = BH_E_DEADLINE;
        out->lane_known = true;
        out->lane = lane->index;
        out->sequence = count == 1 ? self->due + shadow->slots : 0;
        out->innocent = !self->taken || seems_stopped(device);
        return true;
    }
    if (allowed - waited < *step) *step = allowed - waited;
    return false;
}

/* Checks eight times per deadline, which bounds how late an overrun is detected if a request starts
 * between two checks. Uses the shortest recent deadline, whether its request still exists or not.
 * Called with the lock held. */
static void shorten_for_deadlines(const bh__device *device, uint64_t *step) {
    uint64_t next = device->jobs.tightest / 8;
    if (next < BH__NS_PER_MS / 2) next = BH__NS_PER_MS / 2;
    if (device->jobs.tightest && next < *step) *step = next;
}

/* A worker may complete requests without waking anyone: wakes threads and callbacks that are
 * due. */
static void wake_overdue(bh__device *device) {
    bool sleepers = false, callbacks = false;
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        const bh__lane_front *notify = &device->queue.front->lane[i];
        uint64_t done = bh__lane_done(device, &device->lanes[i]);
        sleepers |= atomic_load(&notify->notify_sleep) <= done;
        callbacks |= atomic_load(&notify->notify_dispatch) <= done;
    }
    if (sleepers) bh__area_wake(atomic_load(&device->queue.area), device->queue.lane_limit);
    if (callbacks) bh__dispatcher_poke(device);
}

/* The watch clock stands still at times; what is published is on the system's. */
static void note_oldest(bh__device *device, const head *heads, uint32_t count) {
    const bh__watch *watch = &device->workers.watch;
    uint64_t oldest = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!heads[i].runs || !heads[i].taken) continue;
        uint64_t since = watch->last - (watch->clock - heads[i].lane->taken_since);
        if (!oldest || since < oldest) oldest = since;
    }
    bh__health_note_running(device, oldest);
}

/* Called with the lock held. */
static bool check_lanes(bh__device *device, summary *all, uint64_t *step, bh__cause *out) {
    head heads[BH__MAX_LANES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        if (lane->exists) all->slots += atomic_load(&lane->tail);
        if (!find_head(device, lane, &heads[count])) continue;
        const head *self = &heads[count++];
        all->busy = true;
        all->kernels += kernel_runs(self);
        if (!bh__add_u64(all->bytes, transfer_bytes(self), &all->bytes)) all->bytes = BH__NEVER;
    }
    note_oldest(device, heads, count);
    for (uint32_t i = 0; i < count; i++) {
        if (check_deadline(device, &heads[i], step, out) ||
            check_progress(device, &heads[i], all, step, out))
            return true;
    }
    return false;
}

/* Stops the checks after a quiet period. Most programs submit again soon, so the checks continue
 * for a while instead of being restarted by each request. Called with the lock held. */
static void stop_when_idle(bh__device *device, const summary *all) {
    bh__watch *watch = &device->workers.watch;
    if (all->busy || all->slots != watch->submitted) {
        watch->submitted = all->slots;
        watch->quiet_since = watch->clock;
    } else if (watch->clock - watch->quiet_since >= 2 * bh__watch_period(device)) {
        /* The store comes before the check for waiters, which start to wait before they read this
         * word. A waiter or callback may be left although everything has completed: it was not
         * woken, or the worker has lowered its words again. Then the checks continue. */
        atomic_store(&device->jobs.wants_tick, 0);
        device->jobs.tightest = 0;
        for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
            if (atomic_load(&device->lanes[i].lowest_sleeper) != BH__NEVER ||
                atomic_load(&device->queue.front->lane[i].notify_dispatch) != BH__NEVER)
                atomic_store(&device->jobs.wants_tick, 1);
        }
    }
}

static bool watch_lanes(bh__device *device, summary *all, uint64_t *step, bh__cause *out) {
    if (!atomic_load(&device->jobs.wants_tick) || device->state != BH__DEVICE_RUNNING) return false;
    for (const bh__order *order = device->workers.active->sent; order; order = order->next)
        all->slow |= bh__order_is_slow(order);
    bh__lock_take(&device->lock);
    wake_overdue(device);
    bh__hooks.reclaim(device);
    bool stuck = check_lanes(device, all, step, out);
    shorten_for_deadlines(device, step);
    if (!stuck) stop_when_idle(device, all);
    bh__lock_give(&device->lock);
    return stuck;
}

/* ---- one check ---- */

bh__worker *bh__watch_look(bh__device *device, uint64_t now, uint64_t *next, bh__cause *out) {
    bh__watch *watch = &device->workers.watch;
    if (device->state == BH__DEVICE_STOPPED ||
        (!atomic_load(&device->jobs.wants_tick) && !has_orders(device))) {
        watch->last = 0;
        return NULL;
    }
    bool first = watch->last == 0;
    advance(device, now);
    uint64_t step = bh__watch_period(device);
    summary all = {0};
    memset(out, 0, sizeof *out);
    bh__worker *stuck = watch_lanes(device, &all, &step, out) ? device->workers.active : NULL;
    for (uint32_t i = 0; !stuck && i < BH__AREAS; i++) {
        bh__worker *worker = &device->workers.workers[i];
        if (worker->state == BH__WORKER_BOOTING) {
            if (check_boot(device, worker, out)) stuck = worker;
        } else if (worker->state == BH__WORKER_STANDBY || worker->state == BH__WORKER_ACTIVE) {
            /* Work that ends before the next check needs no ping. */
            if (first && worker == device->workers.active && !worker->silent)
                worker->pinged_at = watch->clock;
            if (check_orders(device, worker, all.kernels, out) ||
                check_silence(device, worker, all.busy || worker->sent, out))
                stuck = worker;
        }
    }
    watch->planned = step;
    if (now + step < *next) *next = now + step;
    return stuck;
}
