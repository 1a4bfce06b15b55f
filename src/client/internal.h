/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of src/client do for each other. */
#ifndef BH_CLIENT_INTERNAL_H
#define BH_CLIENT_INTERNAL_H

#include "client/memory.h"
#include "client/objects.h"

/* ---- error.c: the calling thread's error ---- */

bh_error *bh__last(void);
#define bh__refuse(status, fix, ...) bh__fail(bh__last(), (status), (fix), __VA_ARGS__)
bh_status bh__refuse_with(const bh_error *error);

/* ---- registry.c: finding what a handle means ---- */

enum {
    BH__KIND_DEVICE = 1,
    BH__KIND_LANE,
    BH__KIND_MODULE,
    BH__KIND_KERNEL,
    BH__KIND_BUFFER,
    BH__KIND_BINARY, /* belongs to no device */
    BH__KIND_PREPARED,
    BH__KIND_SEQUENCE,
    BH__KIND_POOL
};

/* Locks and returns the device a handle of this kind belongs to, or fills the thread's error and
 * returns NULL. A device that has stopped is returned too unless `running` is set. */
bh__device *bh__device_lock(uint64_t handle, uint32_t kind, const char *what, bool running);
void bh__device_unlock(bh__device *device);
/* Finds a device without locking it, whatever its state; it cannot be taken apart before
 * bh__ticket_leave. NULL with the thread's error. */
bh__device *bh__device_enter(uint64_t handle);
/* Whoever has the device locked lets go of the lock, or takes it again, and stays inside. Meanwhile
 * anything may happen to the device but being taken apart. */
static inline void bh__device_step_out(bh__device *device) {
    atomic_fetch_add(&device->users, 1);
    bh__lock_give(&device->lock);
}
static inline void bh__device_step_in(bh__device *device) {
    bh__lock_take(&device->lock);
    atomic_fetch_sub(&device->users, 1);
}
/* Whether the calling thread is in the device's policy callback, where calls would wait for
 * themselves. */
static inline bool bh__in_policy(const bh__device *device) {
    return __builtin_expect(atomic_load_explicit(&device->deciding, memory_order_relaxed), 0) &&
           pthread_equal(pthread_self(), device->supervisor);
}
bh_status bh__refuse_in_policy(void);
/* Whether work may be submitted, with the lock held; and why not. */
static inline bool bh__takes_work(const bh__device *device) {
    return atomic_load_explicit(&device->life, memory_order_relaxed) == BH__LIFE_OPEN &&
           atomic_load_explicit(&device->state, memory_order_relaxed) != BH_DEVICE_STOPPED;
}
bh_status bh__refuse_work(bh__device *device);
static inline bool bh__is_closing(const bh__device *device) {
    return atomic_load_explicit(&device->life, memory_order_relaxed) != BH__LIFE_OPEN;
}
/* Lets go of the lock for so long, for what is a matter of moments; the device stays. */
void bh__device_pause(bh__device *device, uint64_t ns);
void *bh__handle_get(bh__device *device, uint64_t handle, uint32_t kind, const char *what);
/* Fills the thread's error for a handle that does not mean a live object. */
bh_status bh__refuse_handle(uint64_t handle, uint32_t kind, const char *what);
bh_status bh__handle_add(bh__device *device, uint32_t kind, void *object, uint64_t *out);
void bh__handle_remove(bh__device *device, uint64_t handle);
/* What bh__handle_get finds in this table, without a word where there is nothing. For where it is
 * asked for in every launch. */
static inline void *bh__handle_find(const bh__device *device, const bh__table *table,
                                    uint64_t handle, uint32_t kind) {
    uint32_t index = (uint32_t)(handle >> BH__GENERATION_BITS) & ((1u << BH__INDEX_BITS) - 1);
    uint32_t generation = (uint32_t)handle & ((1u << BH__GENERATION_BITS) - 1);
    bool here = handle >> 52 == (kind << 8 | device->slot) && index < table->count &&
                table->entries[index].generation == generation;
    return here ? table->entries[index].object : NULL;
}

/* A device to fill in, closed and not locked; NULL with the thread's error. */
bh__device *bh__device_take_slot(void);
void bh__device_free_slot(bh__device *device);
/* Makes the device visible under a fresh handle. */
void bh__device_publish(bh__device *device);

/* The ids tickets carry. A made-up one is told from one that was given out. */
uint64_t bh__lane_id_new(uint32_t device_slot, uint32_t lane_index);
bool bh__lane_id_valid(uint64_t id);

/* Finds the lane of a ticket without locking; the device cannot be taken apart before
 * bh__ticket_leave. *out_lane is NULL when the lane or device was closed since: all its tickets are
 * answered, and bh__history_status knows them.
 * False: the ticket was never given out. */
bool bh__ticket_enter(bh_ticket ticket, bh__device **out_device, bh__lane **out_lane);
void bh__ticket_leave(bh__device *device);

/* True, with the thread's error set, in a forked child. */
bool bh__refuse_forked(void);

/* ---- history.c: what became of tickets, for as long as the process lives ---- */

/* A place for the failures of a lane's tickets. NULL: no host memory. */
bh__history *bh__history_open(uint64_t lane_id);
/* The lane is closed and all its tickets are answered. One without failures leaves nothing behind. */
void bh__history_close(bh__history *history);
/* Writes a verdict down, once and for ever: false if there is one already. It is never forgotten:
 * for want of memory, tickets around it count as lost too. */
bool bh__history_fail(bh__history *history, const bh__failure *failure);
/* BH_OK: it has not failed. */
bh_status bh__history_status(bh_ticket ticket);
/* The same, with *out filled in if it has. */
bh_status bh__history_describe(bh_ticket ticket, bh_error *out);

/* ---- ticket.c ---- */

/*
 * What became of a ticket: BH_OK, an error, BH_E_BUSY. With ticket.lane 0: whether the lane has
 * passed ticket.sequence, which a failed request does later than it gets its verdict; BH_E_STOPPED:
 * it never will. Without the lock, inside.
 */
bh_status bh__lane_ask(bh__device *device, bh__lane *lane, bh_ticket ticket);
/* Waits until there is an answer, or the deadline passes (BH_E_TIMEOUT). Without the lock, inside. */
bh_status bh__lane_wait(bh__device *device, bh__lane *lane, bh_ticket ticket, uint64_t deadline);
/* Waits until the lane has passed a position. Called and returns with the lock held, and lets go of it
 * meanwhile: whatever was looked up before must be looked up again. BH_E_STOPPED: it never will. */
bh_status bh__lane_let_pass(bh__device *device, bh__lane *lane, uint64_t position);
/* How far the lane is done, with the lock held; notes it in lane->retired. */
uint64_t bh__lane_done(bh__device *device, bh__lane *lane);
/* The requests up to this position are done, with the lock held. */
void bh__lane_retire(bh__device *device, bh__lane *lane, uint64_t position);
/* Nobody who asked the worker before can raise `answered` any more. Returns how far it was. */
uint64_t bh__answered_close(bh__lane *lane);
/* What the worker says makes no sense: it is to be replaced. */
void bh__worker_is_mad(bh__device *device);
/* Wakes everybody who sleeps on this area's words, of so many lanes. */
void bh__area_wake(bh__area *area, uint32_t lanes);
/* Writes a failed ticket down, with the lock held. */
void bh__lane_fail(bh__lane *lane, const bh__failure *failure);
/* Takes over what the worker reported about single requests, with the lock held. */
void bh__reports_collect(bh__device *device);

/* ---- submit.c: the one way into a ring ---- */

/* Called with the device locked; returns with it locked, but may have let go of it to wait for
 * room: then *out_retry is true, nothing was submitted, and the caller must look at its handles
 * again. Checks doubt, orders the request after what it depends on, writes it down and rings the
 * bell. */
bh_status bh__submit_plain(bh__device *device, const bh__submission *submission, bool *out_retry,
                           bh_ticket *out);
/* The same where there are managed buffers: what the request needs of them is moved before it. */
bh_status bh__managed_submit(bh__device *device, const bh__submission *submission, bool *out_retry,
                             bh_ticket *out);
static inline bh_status bh__submit(bh__device *device, const bh__submission *submission,
                                   bool *out_retry, bh_ticket *out) {
    if (__builtin_expect(device->managed != NULL || device->homeless, 0))
        return bh__managed_submit(device, submission, out_retry, out);
    return bh__submit_plain(device, submission, out_retry, out);
}
/* The lane for a handle, zero meaning the device's own. */
bh__lane *bh__lane_get(bh__device *device, bh_lane lane);

/* ---- prepared.c ---- */

typedef struct bh__prepared bh__prepared;
/* The device is being taken apart. */
void bh__prepared_free_all(bh__device *device);

/* ---- sequence.c, with the lock held ---- */

typedef void bh__tell_fn(bh__worker *worker, const bh__order *what);
/* Tells a new worker of all that are defined. */
void bh__sequences_brief(bh__device *device, bh__worker *worker, bh__tell_fn *tell);
/* The active worker has it. */
void bh__sequence_commit(bh__sequence *sequence);
/* A request that replays it was submitted. */
void bh__sequence_note(bh__sequence *sequence, const bh__sequence_body *replay, uint32_t lane,
                       uint64_t position);
/* The device is closed: frees them all. */
void bh__sequences_free(bh__device *device);
const char *bh__sequence_name(const bh__sequence *sequence);
/* Adds up what a submission that runs it `repeat` times has in it. */
void bh__sequence_count(bh__device *device, const bh__sequence *sequence, uint32_t repeat,
                        bh__lane_tally *tally);
/* Where a trace has its name. */
uint32_t *bh__sequence_trace_name(bh__sequence *sequence);
uint32_t bh__sequence_step_count(const bh__sequence *sequence);
/* The one kernel that steps `first` to `last`, from 1 on, run; NULL: none, or several. */
bh__kernel *bh__sequence_kernel(const bh__sequence *sequence, uint32_t first, uint32_t last);
/* , step 3 of 9 (kernel "saxpy", grid 4 x 1 x 1, block 256 x 1 x 1) */
void bh__sequence_describe(const bh__sequence *sequence, uint32_t first, uint32_t last, char *out,
                           size_t size);
bool bh__sequence_is_stale(const bh__sequence *sequence);
bool bh__sequence_is_quarantined(const bh__sequence *sequence);
bool bh__sequence_has(const bh__sequence *sequence, const bh__kernel *kernel);
/* A submission of it did not complete. */
void bh__sequence_dropped(bh__sequence *sequence);
/* Its kernels may have run on the present worker. */
void bh__sequence_launched(bh__sequence *sequence);

/* ---- module.c ---- */

/* A module without an image, with a handle and a ticket, its ticket open. NULL: the thread's error.
 * With the lock held. */
bh__module *bh__module_announce(bh__device *device);
/* Gives it its image (NULL, with *error filled in: no host memory), and has it loaded. With the lock
 * held. False: neither. */
bool bh__module_send(bh__device *device, bh__module *module, const void *image, size_t bytes,
                     bh_error *error);
/* Its ticket is answered, once: an error drops the module. Without the lock. */
void bh__module_resolve(bh__device *device, bh__module *module, const bh_error *error);
/* Announces a module and sends it. `product`, what it comes from, may be NULL. */
bh_status bh__module_submit(bh_device device, const void *image, size_t bytes,
                            struct bh__product *product, uint32_t cache, bh_module *out,
                            bh_ticket *ticket);
/* Locks the device of a module and finds it, loaded. NULL with the thread's error. */
bh__module *bh__module_lock(bh_module handle, bool running, bh__device **out);
/* Whether a ticket of the load lane is open. With the lock held. */
bool bh__load_pending(const bh__lane *lane, uint64_t sequence);
/* Reads what the worker says the module holds. False: it makes no sense. */
bool bh__module_parse(bh__module *module, int blob_fd);
bool bh__module_keeps_state(const bh__module *module);
/* Remembers the values of all variables that are known to be written by now, for the next worker. */
void bh__variables_settle(bh__device *device);
void bh__module_drop(bh__device *device, bh__module *module);
void bh__module_delete(bh__module *module);

/* Advice for a device that has no standby and gets none. */
#define BH__WITHOUT_STANDBY                                                                        \
    "go on without one: after a loss a worker is started cold; see `bulkhead devices`"

/* ---- flight.c: compiles under way ---- */

/* Answers the open compiles of a device with *why: the one with this ticket, or all with `sequence`
 * 0. A compiler that nobody waits for any more is ended. Returns how many. Without any lock. */
unsigned bh__flights_recall(bh__device *device, uint64_t sequence, const bh_error *why);

/* ---- names.c: name expressions ---- */

/* Room for `count` pairs is made first. False: no host memory. */
bool bh__names_reserve(bh__names *names, size_t count);
bool bh__names_add(bh__names *names, const char *expression, const char *lowered);
bool bh__names_copy(const bh__names *from, bh__names *out);
void bh__names_free(bh__names *names);
/* White space counts only where it keeps two words apart. NULL: none. */
const bh__name *bh__names_find(const bh__names *names, const char *expression);
bool bh__expressions_equal(const char *a, const char *b);
/* Whether it can only be an expression: a plain name is made of letters, digits, _ and $. */
bool bh__name_is_expression(const char *name);

/* ---- supervisor.c, takeover.c ---- */

void *bh__supervisor_main(void *device);
/* Has the supervisor carry out an order and waits. Called and returns with the lock held, and lets
 * go of it meanwhile. */
bh_status bh__order_run(bh__device *device, bh__job *job);
void bh__job_post(bh__device *device, bh__job *job);
/* Whether the calling thread is the device's supervisor: the program has it while its log function
 * runs. What waits for the supervisor must be refused there. */
bool bh__supervises(const bh__device *device);
void bh__job_wait(bh__job *job);
void bh__supervisor_poke(bh__device *device);
/* Waits until the supervisor has read what workers have said so far. False: not by then. */
bool bh__workers_flush(bh__device *device, uint64_t deadline);
/* Something is outstanding: the supervisor looks at the lanes from here on, until all have been idle
 * for a while. */
static inline void bh__watch_begin(bh__device *device) {
    if (!atomic_load(&device->wants_tick) && !atomic_exchange(&device->wants_tick, 1))
        bh__supervisor_poke(device);
}
/* With the lock held: a request with this deadline is there, and looks must come often enough. */
static inline void bh__watch_deadline(bh__device *device, uint64_t deadline_ns) {
    if (device->tightest && device->tightest <= deadline_ns) return;
    device->tightest = deadline_ns;
    bh__supervisor_poke(device);
}

typedef struct bh__cause {
    bh_status status; /* BH_E_FAULT, BH_E_DEADLINE, BH_E_LOST */
    bool lane_known;
    bool broken;   /* no worker is to use the device again */
    bool overdue;  /* it did not carry out the first of its orders in time */
    bool innocent; /* the request named is not to blame for it: the worker was stuck */
    bool stuck;    /* the worker was alive and did nothing */
    uint32_t lane;
    uint64_t sequence; /* 0: not known; otherwise the lane is */
    uint64_t address;  /* of the access that went wrong, where the worker says so */
    uint32_t bytes;    /* 0: it does not */
    uint32_t step;     /* of a sequence, from 1 on; 0: not known */
    bh_error error;    /* what is known; for the request to blame */
} bh__cause;

/*
 * Supervisor only, with the lock held. The position after the last of the requests that are only
 * known to be done together with the one at `position`, which is taken and not done. *out_count
 * gets how many they are: 1 unless the worker sent several as one.
 */
uint64_t bh__group_end(bh__device *device, bh__lane *lane, uint64_t position, uint64_t taken,
                       uint32_t *out_count);
/* Supervisor only, with the lock held. Whether the request at `head` of a lane, taken and not done,
 * waits for nothing. */
bool bh__head_runs(bh__device *device, bh__lane *lane, uint64_t head);
/* kernel "saxpy" (launch 17 of lane 0, grid 4 x 1 x 1, block 256 x 1 x 1) */
void bh__shadow_describe(const bh__shadow *shadow, uint32_t lane, char *out, size_t size);
/* Supervisor only, with the lock held. Nothing that the present worker says counts any more. */
void bh__device_freeze(bh__device *device);
/* Supervisor only, with the lock held, the device frozen. Gives everything
 * unresolved this verdict, and stops the device for good. */
void bh__device_stop(bh__device *device, const bh_error *reason, bh_status verdict);
static inline bh__area *bh__worker_area(bh__device *device, const bh__worker *worker) {
    return (bh__area *)(void *)((uint8_t *)device->front + device->front->areas_offset +
                                worker->area * device->front->area_bytes);
}

/* ---- dispatch.c ---- */

bh_status bh__dispatcher_start(bh__device *device);
void bh__dispatcher_stop(bh__device *device);
void bh__dispatcher_poke(bh__device *device);
void bh__dispatch_text(bh__device *device, const void *text, size_t bytes);
void bh__dispatch_loss(bh__device *device, const bh_loss *loss);
/* Waits until what was queued for callbacks so far has run. False: not by then. */
bool bh__dispatcher_drain(bh__device *device, uint64_t deadline);

/* Callbacks that are run more than once. With dispatch_lock held: an id for a new one; the one with
 * this id is being told, and was; lets go of the lock until the one with this id, which is removed,
 * does not run, unless it is the caller. */
uint64_t bh__watch_id_new(bh__device *device);
void bh__tell_begin(bh__device *device, uint64_t id);
void bh__tell_end(bh__device *device);
void bh__tell_wait(bh__device *device, uint64_t id);

/* ---- reader.c ---- */

/* A read that ended with BH_E_STOPPED, the thread's error, is done again if the device has stopped and
 * the bytes are intact. */
bh_status bh__read_stopped(bh_buffer buffer, uint64_t offset, void *target, uint64_t bytes);

/* ---- health.c: supervisor only ---- */

/* Something that bh_device_get_health says has changed. */
void bh__health_note(bh__device *device);

/* ---- fork.c: a forked child must not keep anything alive ---- */

/* Remembers a descriptor so that a forked child closes it. Returns it, under another number if the
 * program had closed a kept one of this number. */
int bh__fd_keep(int fd);
/* One more who closes it: it stays open until all have. Returns what to close, -1 if there is none. */
int bh__fd_hold(int fd);
/* Whether it still is the descriptor that was kept: the program may have closed it and got the
 * number for something else. */
bool bh__fd_is_ours(int fd);
/* The last who holds it closes it, if it is. */
void bh__fd_close(int fd);
/* Adds one to an eventfd of ours. False: it is not ours any more. */
bool bh__fd_poke(int fd);
extern _Atomic bool bh__in_forked_child;
static inline bool bh__is_forked_child(void) {
    return atomic_load_explicit(&bh__in_forked_child, memory_order_relaxed);
}
/* Counts devices that exist: a child forked while there are none may use the library. */
void bh__fork_count(int change);

#endif
