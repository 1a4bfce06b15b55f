/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests under way. Whoever asks first for something runs it, or has a thread run it; those who
 * ask for the same thing meanwhile wait for the same flight. A flight that nobody waits for any
 * more is abandoned and its compiler ended.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/thread.h"
#include "client/compile.h"

#define TOUCH_AGAIN_NS (300 * BH__NS_PER_S)

typedef struct flight flight;

/* One who waits: a thread, or a module with an open ticket. */
typedef struct waiter {
    struct waiter *next; /* of the same flight */
    flight *flight;      /* NULL: not yet */
    bh__outcome outcome;
    _Atomic uint32_t done; /* futex */
    /* modules: */
    struct waiter *next_module;
    struct task *task; /* until it is on a flight */
    bh__device *device;
    bh__module *module;
    bh_ticket ticket;
} waiter;

struct flight {
    flight *next;
    bh__compile_request *request; /* Borrowed from whoever runs it. */
    waiter *waiters;
    bool kept; /* a thread that cannot be recalled runs it for itself */
    bool listed;
    bh__run_control control;
};

/* A module's request on its way to a flight. */
typedef struct task {
    struct task *next;
    bh__compile_request *request; /* Owned. */
    waiter *waiter;               /* NULL: recalled */
    bool queued;
} task;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t slot_free = PTHREAD_COND_INITIALIZER;
static flight *flights;
static waiter *modules; /* every open ticket */
static task *tasks, *tasks_last;
static unsigned threads, slots_taken;

void bh__compile_lock(void) {
    pthread_mutex_lock(&lock);
}

void bh__compile_unlock(void) {
    pthread_mutex_unlock(&lock);
}

/* A child that is allowed to use the library finds the state whole and no thread in it. */
static void after_fork_in_child(void) {
    threads = slots_taken = 0;
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(bh__compile_lock, bh__compile_unlock, after_fork_in_child);
}

void bh__outcome_free(bh__outcome *outcome) {
    bh__product_release(outcome->product);
    free(outcome->log);
    *outcome = (bh__outcome){0};
}

/* As many compilers at once as there are cores. */
static unsigned most_at_once(void) {
    static _Atomic unsigned known;
    unsigned most = atomic_load(&known);
    if (most) return most;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    most = cores > 1 ? (unsigned)cores : 1;
    atomic_store(&known, most);
    return most;
}

/* ---- compiling ---- */

static bool take_slot(flight *self) {
    pthread_mutex_lock(&lock);
    while (slots_taken >= most_at_once() && !self->control.abandoned)
        pthread_cond_wait(&slot_free, &lock);
    bool taken = !self->control.abandoned;
    slots_taken += taken;
    pthread_mutex_unlock(&lock);
    return taken;
}

static void give_slot(void) {
    pthread_mutex_lock(&lock);
    slots_taken--;
    pthread_cond_signal(&slot_free);
    pthread_mutex_unlock(&lock);
}

static bool take_reads(bh__product *product, const bh__compile_answer *answer) {
    bh__reads *reads = &product->reads;
    reads->list = bh__arena_alloc(&product->arena, answer->read_count + 1, sizeof *reads->list);
    if (!reads->list) return false;
    for (size_t i = 0; i < answer->read_count; i++) {
        const bh__compile_read *from = &answer->reads[i];
        bh__read *to = &reads->list[i];
        to->path = bh__arena_copy(&product->arena, (const char *)from->path.data, from->path.count);
        to->missing = from->missing != 0;
        to->bytes = from->bytes;
        memcpy(to->hash, from->hash, sizeof to->hash);
        if (!to->path) return false;
    }
    reads->count = answer->read_count;
    return true;
}

static bool take_names(bh__product *product, const bh__compile_request *request,
                       const bh__compile_answer *answer) {
    const bh__texts *expressions = &request->job.expressions;
    if (request->job.op == BH__COMPILE_LINK)
        return bh__names_copy(&request->names, &product->names);
    if (!bh__names_reserve(&product->names, expressions->count)) return false;
    for (size_t i = 0; i < expressions->count; i++) {
        if (!bh__names_add(&product->names, (const char *)expressions->list[i].data,
                           (const char *)answer->lowered.list[i].data))
            return false;
    }
    return true;
}

static bh__product *make_product(const bh__compile_request *request,
                                 const bh__compile_answer *answer, const char *log) {
    bh__product *product = bh__product_new();
    if (!product) return NULL;
    bh__arena *arena = &product->arena;
    const bh__compile_job *job = &request->job;
    product->output = job->output;
    product->count = answer->output.count;
    product->bytes = (const uint8_t *)bh__arena_copy(arena, (const char *)answer->output.data,
                                                     answer->output.count);
    product->log = bh__arena_copy(arena, log ? log : "", log ? strlen(log) : 0);
    product->name = bh__arena_copy(arena, (const char *)job->name.data, job->name.count);
    product->arch = bh__arena_copy(arena, (const char *)job->arch.data, job->arch.count);
    product->compiler = bh__arena_copy(arena, request->compiler, strlen(request->compiler));
    product->why = bh__arena_copy(arena, request->why, strlen(request->why));
    product->key =
        (const uint8_t *)bh__arena_copy(arena, (const char *)request->key.data, request->key.count);
    product->key_bytes = request->key.count;
    memcpy(product->hash, request->hash, sizeof product->hash);
    if (product->bytes && product->log && product->name && product->arch && product->compiler &&
        product->why && product->key && take_reads(product, answer) &&
        take_names(product, request, answer))
        return product;
    bh__product_release(product);
    return NULL;
}

/* `*out_keep`: it may be kept for later. */
static void compile(flight *self, bh__outcome *out, bool *out_keep) {
    const bh__compile_request *request = self->request;
    bh__arena arena = {0};
    bh__compile_answer answer;
    *out_keep = false;
    if (!take_slot(self)) {
        bh__fail(&out->error, BH_E_CANCELLED, "nothing: it was taken back",
                 "the compile was cancelled");
        return;
    }
    uint64_t begun = bh__clock_ns(), since = bh__now_ns();
    atomic_fetch_add(&bh__cache_counted.compiles, 1);
    bh_status status = bh__compiler_run(request->program, &request->job, &self->control, &arena,
                                        &answer, &out->log, &out->error);
    give_slot();
    if (status == BH_OK) {
        out->product = make_product(request, &answer, out->log);
        if (out->product) {
            out->product->compile_ns = bh__now_ns() - since;
            *out_keep = bh__reads_complete(&out->product->reads, &out->product->arena, begun);
        } else {
            bh__fail(&out->error, BH_E_NO_HOST_MEMORY, "free host memory",
                     "no host memory for a result of %llu bytes",
                     (unsigned long long)answer.output.count);
        }
        free(out->log);
        out->log = NULL;
    }
    bh__arena_free(&arena);
}

/* ---- answering ---- */

static bool load_product(const waiter *self, bh_error *error) {
    bh__device *device = self->device;
    bh__product *product = self->outcome.product;
    bh__lock_take(&device->lock);
    bool sent = false;
    if (atomic_load(&device->life) == BH__LIFE_CLOSING) {
        bh__fail(error, BH_E_CANCELLED, "wait for work before closing the device",
                 "the device was closed before this was done");
    } else {
        bh__product_retain(product);
        self->module->product = product;
        self->module->cache = self->outcome.cache;
        sent = bh__module_send(device, self->module, product->bytes, product->count, error);
    }
    bh__lock_give(&device->lock);
    return sent;
}

/* The ticket of a module that nobody else has any more. Frees it. */
static void answer_module(waiter *self) {
    bh_error error = self->outcome.error;
    const char *log = self->outcome.product ? self->outcome.product->log : self->outcome.log;
    if (log && *log) bh__log_keep_ticket(self->ticket, log);
    if (!self->outcome.product || !load_product(self, &error))
        bh__module_resolve(self->device, self->module, &error);
    atomic_fetch_sub(&self->device->landing, 1);
    bh__ticket_leave(self->device);
    bh__outcome_free(&self->outcome);
    free(self);
}

/* Makes it ours to answer. With the lock held. */
static void take_module(waiter *self) {
    waiter **link = &modules;
    while (*link != self) link = &(*link)->next_module;
    *link = self->next_module;
    /* The device stays until we are done with it, and its queues open until we have answered. */
    atomic_fetch_add(&self->device->users, 1);
    atomic_fetch_add(&self->device->landing, 1);
}

static void copy_outcome(const bh__outcome *from, bh__outcome *to) {
    *to = *from;
    if (to->product) bh__product_retain(to->product);
    if (to->log) to->log = strdup(to->log);
}

static void answer_all(waiter *list, const bh__outcome *outcome) {
    while (list) {
        waiter *next = list->next;
        copy_outcome(outcome, &list->outcome);
        if (list->device) {
            answer_module(list);
        } else {
            atomic_store(&list->done, 1);
            bh__futex_wake(&list->done, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
        }
        list = next;
    }
}

/* ---- flying ---- */

static void unlist(flight *self) {
    if (!self->listed) return;
    flight **link = &flights;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    self->listed = false;
}

static void fly(flight *self, bh__outcome *out) {
    bh__compile_request *request = self->request;
    bool keep = false;
    bh__fork_count(1);
    *out = (bh__outcome){.cache = request->cached ? BH_CACHE_MISS : BH_CACHE_OFF};
    if (request->cached) {
        out->product =
            bh__disk_get(request->cache_dir, request->hash, request->key.data, request->key.count);
        atomic_fetch_add(out->product ? &bh__cache_counted.disk_hits : &bh__cache_counted.misses,
                         1);
    }
    bool from_disk = out->product != NULL;
    if (from_disk) {
        out->cache = BH_CACHE_DISK;
    } else {
        compile(self, out, &keep);
    }
    keep = keep && request->cached && out->product;
    if (keep) {
        atomic_store(&out->product->touched_ns, bh__now_ns());
        bh__disk_put(request->cache_dir, request->cache_limit, out->product);
    }
    if (request->cached) bh__cache_counts_add(request->cache_dir);
    pthread_mutex_lock(&lock);
    if (keep || from_disk) bh__memory_cache_put(out->product);
    unlist(self);
    waiter *list = self->waiters;
    self->waiters = NULL;
    for (waiter *each = list; each; each = each->next) {
        if (each->device) take_module(each);
    }
    pthread_mutex_unlock(&lock);
    answer_all(list, out);
    bh__fork_count(-1);
}

static bool same_text(const char *a, const char *b) {
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

/* Whether one flight serves both: the same thing, within the same limits. */
static bool same_request(const bh__compile_request *a, const bh__compile_request *b) {
    return a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1] && a->key.count == b->key.count &&
           memcmp(a->key.data, b->key.data, a->key.count) == 0 &&
           a->job.time_limit_ns == b->job.time_limit_ns &&
           a->job.memory_limit == b->job.memory_limit && a->cache_limit == b->cache_limit &&
           same_text(a->cache_dir, b->cache_dir);
}

static flight *find_flight(const bh__compile_request *request) {
    for (flight *each = flights; each; each = each->next) {
        if (same_request(each->request, request)) return each;
    }
    return NULL;
}

/* A product in memory that is still up to date. Called with the lock held, and lets go of it. */
static bh__product *look_in_memory(const bh__compile_request *request) {
    bh__product *product =
        bh__memory_cache_get(request->hash, request->key.data, request->key.count);
    if (!product) return NULL;
    pthread_mutex_unlock(&lock);
    bh__freshness freshness = bh__reads_check(&product->reads, false);
    uint64_t now = bh__now_ns(), touched = atomic_load(&product->touched_ns);
    if (freshness != BH__STALE && now - touched > TOUCH_AGAIN_NS &&
        atomic_compare_exchange_strong(&product->touched_ns, &touched, now))
        bh__disk_touch(request->cache_dir, product);
    pthread_mutex_lock(&lock);
    /* One that is known by another identity now is read from disk next time, with that one. */
    if (freshness != BH__FRESH) bh__memory_cache_drop(product);
    if (freshness != BH__STALE) return product;
    bh__product_release(product);
    return NULL;
}

typedef enum start { HIT, JOINED, FLY, RECALLED } start;

static void join(waiter *who, flight *to) {
    who->flight = to;
    who->next = to->waiters;
    to->waiters = who;
}

/* What becomes of a request: it is there, somebody is at it, or it flies now. With the lock held,
 * which is let go of meanwhile: *who may be recalled then. */
static start begin(flight *self, waiter *const *who, bh__outcome *out) {
    const bh__compile_request *request = self->request;
    if (!*who) return RECALLED;
    if (!request->cached) return FLY;
    for (;;) {
        flight *other = find_flight(request);
        if (other) {
            join(*who, other);
            return JOINED;
        }
        /* Looking lets go of the lock only if there is something to be looked at. */
        bh__product *before =
            bh__memory_cache_get(request->hash, request->key.data, request->key.count);
        if (!before) break;
        bh__product_release(before);
        *out = (bh__outcome){.product = look_in_memory(request), .cache = BH_CACHE_MEMORY};
        if (!*who) return RECALLED;
        if (out->product) return HIT;
    }
    self->next = flights;
    flights = self;
    self->listed = true;
    return FLY;
}

bh_status bh__flight_fly(bh__compile_request *request, bh__outcome *out) {
    *out = (bh__outcome){0};
    if (bh__request_resolve(request, &out->error) != BH_OK) return out->error.status;
    flight self = {.request = request, .kept = true};
    waiter who = {0}, *const me = &who;
    pthread_mutex_lock(&lock);
    start how = begin(&self, &me, out);
    pthread_mutex_unlock(&lock);
    switch (how) {
    case HIT:
        atomic_fetch_add(&bh__cache_counted.memory_hits, 1);
        break;
    case JOINED:
        atomic_fetch_add(&bh__cache_counted.joined, 1);
        while (!atomic_load(&who.done)) bh__futex_wait(&who.done, 0, BH__NEVER, BH__FUTEX_PRIVATE);
        *out = who.outcome;
        break;
    case FLY:
    case RECALLED:
        fly(&self, out);
    }
    return out->product ? BH_OK : out->error.status;
}

/* ---- modules, in the background ---- */

static void task_free(task *self) {
    bh__request_free(self->request);
    free(self->request);
    free(self);
}

static void answer_task(task *self, const bh__outcome *outcome) {
    pthread_mutex_lock(&lock);
    waiter *who = self->waiter;
    self->waiter = NULL;
    if (who) take_module(who);
    pthread_mutex_unlock(&lock);
    if (!who) return;
    who->next = NULL;
    answer_all(who, outcome);
}

static void task_run(task *self) {
    bh__outcome outcome = {0};
    if (bh__request_resolve(self->request, &outcome.error) != BH_OK) {
        answer_task(self, &outcome);
        return;
    }
    flight own = {.request = self->request};
    pthread_mutex_lock(&lock);
    start how = begin(&own, &self->waiter, &outcome);
    if (how == FLY) join(self->waiter, &own);
    if (how == FLY || how == JOINED) { /* from now on it is the flight that has it */
        self->waiter->task = NULL;
        self->waiter = NULL;
    }
    pthread_mutex_unlock(&lock);
    switch (how) {
    case HIT:
        atomic_fetch_add(&bh__cache_counted.memory_hits, 1);
        answer_task(self, &outcome);
        break;
    case JOINED:
        atomic_fetch_add(&bh__cache_counted.joined, 1);
        break;
    case FLY:
        fly(&own, &outcome);
        break;
    case RECALLED:
        break;
    }
    bh__outcome_free(&outcome);
}

static void *thread_main(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    while (tasks) {
        task *next = tasks;
        tasks = next->next;
        if (!tasks) tasks_last = NULL;
        next->queued = false;
        pthread_mutex_unlock(&lock);
        task_run(next);
        task_free(next);
        pthread_mutex_lock(&lock);
    }
    threads--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int start_thread(void) {
    pthread_t thread;
    int failed = bh__thread_start(&thread, NULL, thread_main, NULL);
    if (!failed) pthread_detach(thread);
    return failed;
}

static void unqueue(task *self) {
    task **link = &tasks;
    tasks_last = NULL;
    while (*link) {
        if (*link == self) {
            *link = self->next;
        } else {
            tasks_last = *link;
            link = &(*link)->next;
        }
    }
}

bh_status bh__flight_send(bh__compile_request *request, bh__device *device, bh__module *module) {
    task *own = calloc(1, sizeof *own);
    waiter *who = calloc(1, sizeof *who);
    if (!own || !who) {
        free(own);
        free(who);
        bh__request_free(request);
        free(request);
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for a compile");
    }
    *own = (task){.request = request, .waiter = who, .queued = true};
    who->task = own;
    who->device = device;
    who->module = module;
    who->ticket = (bh_ticket){atomic_load(&device->lanes[BH__LOAD_LANE].id), module->ticket};
    pthread_mutex_lock(&lock);
    *(tasks_last ? &tasks_last->next : &tasks) = own;
    tasks_last = own;
    int failed = 0;
    if (threads < most_at_once()) {
        failed = start_thread();
        threads += failed == 0;
    }
    bool stuck = threads == 0;
    if (stuck) {
        unqueue(own);
    } else {
        who->next_module = modules;
        modules = who;
    }
    pthread_mutex_unlock(&lock);
    if (!stuck) return BH_OK;
    free(who);
    task_free(own);
    return bh__refuse(BH_E_NO_HOST_MEMORY, "raise the limit on threads",
                      "cannot start a thread: error %d", failed);
}

/* With the lock held. Takes the module off whatever it waits for; a task that is of no use any more
 * goes to *out. */
static void detach(waiter *who, task **out) {
    take_module(who);
    if (who->task) {
        who->task->waiter = NULL;
        if (who->task->queued) {
            unqueue(who->task);
            who->task->next = *out;
            *out = who->task;
        }
    }
    flight *from = who->flight;
    if (!from) return;
    waiter **link = &from->waiters;
    while (*link != who) link = &(*link)->next;
    *link = who->next;
    if (from->waiters || from->kept) return;
    unlist(from);
    bh__run_abandon(&from->control);
    pthread_cond_broadcast(&slot_free);
}

unsigned bh__flights_recall(bh__device *device, uint64_t sequence, const bh_error *why) {
    waiter *taken = NULL;
    task *useless = NULL;
    unsigned count = 0;
    pthread_mutex_lock(&lock);
    for (waiter *who = modules, *next; who; who = next) {
        next = who->next_module;
        if (who->device != device || (sequence && who->ticket.sequence != sequence)) continue;
        detach(who, &useless);
        who->next = taken;
        taken = who;
        count++;
    }
    pthread_mutex_unlock(&lock);
    while (useless) {
        task *next = useless->next;
        task_free(useless);
        useless = next;
    }
    bh__outcome outcome = {.error = *why};
    answer_all(taken, &outcome);
    return count;
}
