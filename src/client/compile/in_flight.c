/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles in flight. The first request for a result runs the compile, on its own thread or on a
 * background thread; later requests for the same result wait for the same compile. A compile that
 * no request waits for any more is abandoned and its compiler killed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/errno_text.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/processors.h"
#include "base/thread.h"
#include "client/compile/cache.h"
#include "client/compile/compile.h"
#include "client/compile/compiler.h"
#include "client/compile/in_flight.h"
#include "client/compile/inputs.h"
#include "client/compile/logs.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/module/ask_native.h"
#include "client/module/module.h"
#include "client/module/product.h"

typedef struct compile compile;

/* A thread, or a module whose ticket is open, that waits for a compile. */
typedef struct waiter {
    struct waiter *next; /* of the same compile */
    compile *compile;    /* NULL: not assigned yet */
    bh__outcome outcome;
    _Atomic uint32_t done; /* futex */
    /* Modules only: */
    struct waiter *next_module;
    struct task *task; /* NULL once `compile` is set */
    bh__device *device;
    bh__module *module;
    bh_ticket ticket;
    /* Native code for the module: */
    bool native;
    uint32_t kernel, shapes;
    char news[BH__NATIVE_NEWS];
} waiter;

struct compile {
    compile *next;
    bh__compile_request *request; /* Borrowed from the thread that runs it. */
    waiter *waiters;
    bool uncancellable; /* the thread that runs it needs the result itself */
    bool listed;        /* in `in_flight` */
    bh__run_control control;
};

/* A module's request, queued for a background thread or being started by one. */
typedef struct task {
    struct task *next;
    bh__compile_request *request; /* Owned. */
    waiter *waiter;               /* NULL: cancelled, or assigned to a compile */
    bool queued;
} task;

static pthread_cond_t slot_free = PTHREAD_COND_INITIALIZER;
static compile *in_flight;
static waiter *modules; /* every open ticket */
static task *tasks, *tasks_last;
static unsigned threads, slots_taken;

void bh__compile_lock(void) {
    bh__process_lock_take(BH__LOCK_COMPILES);
}

void bh__compile_unlock(void) {
    bh__process_lock_give(BH__LOCK_COMPILES);
}

/* Called with the lock held, which is released meanwhile. */
static void wait_for_slot(void) {
    pthread_cond_wait(&slot_free, &bh__process_locks[BH__LOCK_COMPILES]);
}

/* A child that may use the library needs consistent state. None of the threads exist there. */
static void after_fork_in_child(void) {
    threads = slots_taken = 0;
}

__attribute__((constructor)) static void register_fork_handlers(void) {
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

void bh__outcome_free(bh__outcome *outcome) {
    bh__product_release(outcome->product);
    free(outcome->log);
    *outcome = (bh__outcome){0};
}

/* How many compilers run at once: one per core. */
static unsigned max_at_once(void) {
    static _Atomic unsigned known;
    unsigned max = atomic_load(&known);
    if (max) return max;
    max = bh__processors();
    atomic_store(&known, max);
    return max;
}

static void log_hit(const char *where, const bh__compile_request *request) {
    bh__log_debug("compile cache: %s, key %016llx%016llx", where,
                  (unsigned long long)request->hash[0], (unsigned long long)request->hash[1]);
}

/* ---- compiling ---- */

static bool take_slot(compile *self) {
    bh__compile_lock();
    while (slots_taken >= max_at_once() && !self->control.abandoned) wait_for_slot();
    bool taken = !self->control.abandoned;
    slots_taken += taken;
    bh__compile_unlock();
    return taken;
}

static void release_slot(void) {
    bh__compile_lock();
    slots_taken--;
    pthread_cond_signal(&slot_free);
    bh__compile_unlock();
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
    /* A link takes lowered names as input and may rename them. */
    bool links = request->job.op == BH__COMPILE_LINK;
    const bh__texts *expressions = links ? &request->expressions : &request->job.expressions;
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
    product->ptx_count = answer->ptx.count;
    if (product->ptx_count)
        product->ptx = (const uint8_t *)bh__arena_copy(arena, (const char *)answer->ptx.data,
                                                       answer->ptx.count);
    product->log = bh__arena_copy(arena, log ? log : "", log ? strlen(log) : 0);
    product->name = bh__arena_copy(arena, (const char *)job->name.data, job->name.count);
    const bh__bytes *arch = answer->arch.count ? &answer->arch : &job->arch;
    product->arch = bh__arena_copy(arena, (const char *)arch->data, arch->count);
    const bh__bytes *said = &answer->version; /* which LLVM it was is known only now */
    product->compiler = job->op == BH__COMPILE_NATIVE && said->count
                            ? bh__arena_copy(arena, (const char *)said->data, said->count)
                            : bh__arena_copy(arena, request->compiler, strlen(request->compiler));
    product->why = bh__arena_copy(arena, request->why, strlen(request->why));
    product->key =
        (const uint8_t *)bh__arena_copy(arena, (const char *)request->key.data, request->key.count);
    product->key_bytes = request->key.count;
    memcpy(product->hash, request->hash, sizeof product->hash);
    if (product->bytes && (product->ptx || !product->ptx_count) && product->log && product->name &&
        product->arch && product->compiler && product->why && product->key &&
        take_reads(product, answer) && take_names(product, request, answer))
        return product;
    bh__product_release(product);
    return NULL;
}

static void log_compiled(const bh__compile_request *request, const bh__product *product) {
    bool links = request->job.op == BH__COMPILE_LINK;
    bh__log_info("%s \"%.80s\" for %s with %.80s in %.1f ms, flags 0x%x, %llu bytes%s%s",
                 links ? "linked" : "compiled", product->name, product->arch, product->compiler,
                 (double)product->compile_ns / 1e6, request->job.flags,
                 (unsigned long long)product->count, *request->why ? "; compiler: " : "",
                 request->why);
}

/* Sets *out_keep if the result may be cached. */
static void run_compiler(compile *self, bh__outcome *out, bool *out_keep) {
    const bh__compile_request *request = self->request;
    bh__arena arena = {0};
    bh__compile_answer answer;
    *out_keep = false;
    if (!take_slot(self)) {
        bh__fail(&out->error, BH_E_CANCELLED, "submit it again if it is still needed",
                 "the compile was cancelled");
        return;
    }
    uint64_t begun = bh__clock_ns(), since = bh__now_ns();
    atomic_fetch_add(&bh__cache_counted.compiles, 1);
    bh_status status = bh__compiler_run(request->program, &request->job, &self->control, &arena,
                                        &answer, &out->log, &out->error);
    release_slot();
    if (status == BH_OK) {
        out->product = make_product(request, &answer, out->log);
        if (out->product) {
            out->product->compile_ns = bh__now_ns() - since;
            log_compiled(request, out->product);
            *out_keep = bh__reads_complete(&out->product->reads, &out->product->arena, begun);
        } else {
            bh__fail(&out->error, BH_E_NO_HOST_MEMORY, "free host memory",
                     "no host memory for a compile result of %llu bytes",
                     (unsigned long long)answer.output.count);
        }
        free(out->log);
        out->log = NULL;
    }
    bh__arena_free(&arena);
}

/* ---- completing ---- */

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

/* Completes the ticket of a module that claim_module claimed. */
static void complete_module(waiter *self) {
    bh_error error = self->outcome.error;
    const char *log = self->outcome.product ? self->outcome.product->log : self->outcome.log;
    if (self->native) {
        bh__native_arrived(self->device, self->module, self->kernel, self->shapes,
                           self->outcome.product, self->outcome.cache, &error, self->news);
    } else {
        if (log && *log) bh__compile_log_keep_ticket(self->ticket, log);
        if (!self->outcome.product || !load_product(self, &error))
            bh__module_resolve(self->device, self->module, &error);
    }
    atomic_fetch_sub(&self->device->landing, 1);
    bh__ticket_leave(self->device);
    bh__outcome_free(&self->outcome);
}

/* The log function may close devices, which wait for all that this thread has claimed. */
static void tell_news(waiter *list) {
    while (list) {
        waiter *next = list->next;
        if (list->news[0]) bh__log_info("%s", list->news);
        free(list);
        list = next;
    }
}

/* From here on only the calling thread completes this module. Called with the lock held. */
static void claim_module(waiter *self) {
    waiter **link = &modules;
    while (*link != self) link = &(*link)->next_module;
    *link = self->next_module;
    /* Keeps the device from being freed, and its supervisor running until the ticket is
     * completed. */
    atomic_fetch_add(&self->device->users, 1);
    atomic_fetch_add(&self->device->landing, 1);
}

static void copy_outcome(const bh__outcome *from, bh__outcome *to) {
    *to = *from;
    if (to->product) bh__product_retain(to->product);
    if (to->log) to->log = strdup(to->log);
}

static void complete_waiters(waiter *list, const bh__outcome *outcome) {
    waiter *told = NULL;
    while (list) {
        waiter *next = list->next;
        copy_outcome(outcome, &list->outcome);
        if (list->device) {
            complete_module(list);
            list->next = told;
            told = list;
        } else {
            atomic_store(&list->done, 1);
            bh__futex_wake(&list->done, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
        }
        list = next;
    }
    tell_news(told);
}

/* ---- running a compile ---- */

static void unlist(compile *self) {
    if (!self->listed) return;
    compile **link = &in_flight;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    self->listed = false;
}

static void run_compile(compile *self, bh__outcome *out) {
    bh__compile_request *request = self->request;
    bool keep = false;
    bh__fork_count(1);
    *out = (bh__outcome){.cache = request->cached ? BH_CACHE_MISS : BH_CACHE_OFF};
    if (request->cached) out->product = bh__cache_look_on_disk(request);
    bool from_disk = out->product != NULL;
    if (from_disk) {
        out->cache = BH_CACHE_DISK;
        log_hit("disk hit", request);
    } else {
        run_compiler(self, out, &keep);
    }
    keep = keep && request->cached && out->product;
    if (keep) bh__cache_keep_on_disk(request, out->product);
    if (request->cached) bh__cache_counts_add(request->cache_dir);
    bh__compile_lock();
    if (keep || from_disk) bh__memory_cache_put(out->product);
    unlist(self);
    waiter *list = self->waiters;
    self->waiters = NULL;
    for (waiter *each = list; each; each = each->next) {
        if (each->device) claim_module(each);
    }
    bh__compile_unlock();
    complete_waiters(list, out);
    bh__fork_count(-1);
}

static bool same_text(const char *a, const char *b) {
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

/* Returns true if one compile can serve both: the same result, within the same limits. */
static bool same_request(const bh__compile_request *a, const bh__compile_request *b) {
    return a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1] && a->key.count == b->key.count &&
           memcmp(a->key.data, b->key.data, a->key.count) == 0 &&
           a->job.time_limit_ns == b->job.time_limit_ns &&
           a->job.memory_limit == b->job.memory_limit && a->cache_limit == b->cache_limit &&
           same_text(a->cache_dir, b->cache_dir);
}

static compile *find_in_flight(const bh__compile_request *request) {
    for (compile *each = in_flight; each; each = each->next) {
        if (same_request(each->request, request)) return each;
    }
    return NULL;
}

typedef enum start_result { MEMORY_HIT, JOINED, COMPILE, CANCELLED } start_result;

static void join(waiter *who, compile *to) {
    who->compile = to;
    who->next = to->waiters;
    to->waiters = who;
}

/* Finds a request's product in memory, joins a compile in flight, or lists `self` as a new one.
 * Called with the lock held. The lock may be released meanwhile; *who is NULL if the request was
 * cancelled then. */
static start_result start_or_join(compile *self, waiter *const *who, bh__outcome *out) {
    const bh__compile_request *request = self->request;
    if (!*who) return CANCELLED;
    if (!request->cached) return COMPILE;
    for (;;) {
        compile *other = find_in_flight(request);
        if (other) {
            join(*who, other);
            return JOINED;
        }
        /* If memory has no such product, the lock was not released since find_in_flight: no other
         * thread can have started the same compile. */
        bh__product *before =
            bh__memory_cache_get(request->hash, request->key.data, request->key.count);
        if (!before) break;
        bh__product_release(before);
        *out =
            (bh__outcome){.product = bh__cache_look_in_memory(request), .cache = BH_CACHE_MEMORY};
        if (!*who) return CANCELLED;
        if (out->product) return MEMORY_HIT;
    }
    self->next = in_flight;
    in_flight = self;
    self->listed = true;
    return COMPILE;
}

bh_status bh__compile_run(bh__compile_request *request, bh__outcome *out) {
    *out = (bh__outcome){0};
    if (bh__request_resolve(request, &out->error) != BH_OK) return out->error.status;
    compile self = {.request = request, .uncancellable = true};
    waiter who = {0}, *const me = &who;
    bh__compile_lock();
    start_result how = start_or_join(&self, &me, out);
    bh__compile_unlock();
    switch (how) {
    case MEMORY_HIT:
        atomic_fetch_add(&bh__cache_counted.memory_hits, 1);
        log_hit("memory hit", request);
        break;
    case JOINED:
        atomic_fetch_add(&bh__cache_counted.joined, 1);
        log_hit("joined a compile in flight", request);
        while (!atomic_load(&who.done)) bh__futex_wait(&who.done, 0, BH__NEVER, BH__FUTEX_PRIVATE);
        *out = who.outcome;
        break;
    case COMPILE:
    case CANCELLED:
        run_compile(&self, out);
    }
    return out->product ? BH_OK : out->error.status;
}

/* ---- modules, in the background ---- */

static void task_free(task *self) {
    bh__request_free(self->request);
    free(self->request);
    free(self);
}

static void complete_task(task *self, const bh__outcome *outcome) {
    bh__compile_lock();
    waiter *who = self->waiter;
    self->waiter = NULL;
    if (who) claim_module(who);
    bh__compile_unlock();
    if (!who) return;
    who->next = NULL;
    complete_waiters(who, outcome);
}

static void task_run(task *self) {
    bh__outcome outcome = {0};
    if (bh__request_resolve(self->request, &outcome.error) != BH_OK) {
        complete_task(self, &outcome);
        return;
    }
    compile own = {.request = self->request};
    bh__compile_lock();
    start_result how = start_or_join(&own, &self->waiter, &outcome);
    if (how == COMPILE) join(self->waiter, &own);
    if (how == COMPILE || how == JOINED) { /* the compile owns the waiter now */
        self->waiter->task = NULL;
        self->waiter = NULL;
    }
    bh__compile_unlock();
    switch (how) {
    case MEMORY_HIT:
        atomic_fetch_add(&bh__cache_counted.memory_hits, 1);
        log_hit("memory hit", self->request);
        complete_task(self, &outcome);
        break;
    case JOINED:
        atomic_fetch_add(&bh__cache_counted.joined, 1);
        log_hit("joined a compile in flight", self->request);
        break;
    case COMPILE:
        run_compile(&own, &outcome);
        break;
    case CANCELLED:
        break;
    }
    bh__outcome_free(&outcome);
}

static void *thread_main(void *unused) {
    (void)unused;
    bh__compile_lock();
    while (tasks) {
        task *next = tasks;
        tasks = next->next;
        if (!tasks) tasks_last = NULL;
        next->queued = false;
        bh__compile_unlock();
        task_run(next);
        task_free(next);
        bh__compile_lock();
    }
    threads--;
    bh__compile_unlock();
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

/* Queues a task. Takes ownership of both, also on failure. */
static bh_status start_task(bh__compile_request *request, waiter *who) {
    task *own = calloc(1, sizeof *own);
    if (!own || !who) {
        free(own);
        free(who);
        bh__request_free(request);
        free(request);
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a compile request");
    }
    *own = (task){.request = request, .waiter = who, .queued = true};
    who->task = own;
    bh__compile_lock();
    *(tasks_last ? &tasks_last->next : &tasks) = own;
    tasks_last = own;
    int failed = 0;
    if (threads < max_at_once()) {
        failed = start_thread();
        threads += failed == 0;
    }
    bool no_thread = threads == 0;
    if (no_thread) {
        unqueue(own);
    } else {
        who->next_module = modules;
        modules = who;
    }
    bh__compile_unlock();
    if (!no_thread) return BH_OK;
    free(who);
    task_free(own);
    char text[96];
    return bh__refuse(BH_E_NO_HOST_MEMORY, "raise the limit on threads",
                      "cannot start a thread for a background compile: %s",
                      bh__errno_text(failed, text, sizeof text));
}

bh_status bh__compile_start(bh__compile_request *request, bh__device *device, bh__module *module) {
    waiter *who = calloc(1, sizeof *who);
    if (who) {
        who->device = device;
        who->module = module;
        who->ticket = (bh_ticket){atomic_load(&device->lanes[BH__LOAD_LANE].id), module->ticket};
    }
    return start_task(request, who);
}

bool bh__compile_start_native(bh__device *device, bh__module *module, uint32_t kernel,
                              uint32_t shapes) {
    bh__compile_request *request = malloc(sizeof *request);
    waiter *who = request ? calloc(1, sizeof *who) : NULL;
    if (!who || !bh__request_native(request, module->image_fd, module->image_bytes,
                                    device->workers.worker_path, kernel, shapes)) {
        if (who) bh__request_free(request);
        free(request);
        free(who);
        return false;
    }
    *who = (waiter){
        .device = device, .module = module, .native = true, .kernel = kernel, .shapes = shapes};
    return start_task(request, who) == BH_OK;
}

/* Removes the module from its task or compile. Adds a task that was not started to *out, and
 * abandons a compile without waiters. Called with the lock held. */
static void detach(waiter *who, task **out) {
    claim_module(who);
    if (who->task) {
        who->task->waiter = NULL;
        if (who->task->queued) {
            unqueue(who->task);
            who->task->next = *out;
            *out = who->task;
        }
    }
    compile *from = who->compile;
    if (!from) return;
    waiter **link = &from->waiters;
    while (*link != who) link = &(*link)->next;
    *link = who->next;
    if (from->waiters || from->uncancellable) return;
    unlist(from);
    bh__run_abandon(&from->control);
    pthread_cond_broadcast(&slot_free);
}

unsigned bh__compiles_cancel(bh__device *device, uint64_t sequence, const bh_error *why) {
    waiter *cancelled = NULL;
    task *dropped = NULL;
    unsigned count = 0;
    bh__compile_lock();
    for (waiter *who = modules, *next; who; who = next) {
        next = who->next_module;
        if (who->device != device || (sequence && who->ticket.sequence != sequence)) continue;
        detach(who, &dropped);
        who->next = cancelled;
        cancelled = who;
        count++;
    }
    bh__compile_unlock();
    while (dropped) {
        task *next = dropped->next;
        task_free(dropped);
        dropped = next;
    }
    bh__outcome outcome = {.error = *why};
    complete_waiters(cancelled, &outcome);
    return count;
}
