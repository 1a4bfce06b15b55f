/* SPDX-License-Identifier: Apache-2.0 */
/* A worker for tests: the CPU device behind queues of its own, as a GPU has them. Work is queued
 * ahead, completion words are written behind it, and a fault is reported only when it is asked
 * for. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/relax.h"
#include "cpu/cpu.h"
#include "worker/worker.h"

enum { LOOKS = 200, NAP_NS = 20000 };

typedef enum item_kind {
    ITEM_WORK,
    ITEM_DONE,
    ITEM_WORD,
    ITEM_WAIT,
    ITEM_EVENT,
    ITEM_CLOCK
} item_kind;

typedef struct item {
    struct item *next;
    item_kind kind;
    uint64_t position;
    uint32_t other;
    bh__work work;
    _Alignas(16) uint8_t params[];
} item;

typedef struct queue {
    bh__device_lane *inner; /* the CPU device's lane */
    uint32_t index;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    item *first, **last;
    bool busy, closing;
    _Atomic uint32_t events[BH__QUEUE_EVENTS];     /* 1: not reached */
    _Atomic uint64_t clocks[2 * BH__QUEUE_CLOCKS]; /* when they began, and ended */
} queue;

/* One for each process: a worker has one device. */
static struct {
    const bh__device_services *services;
    pthread_mutex_t lock;
    _Atomic bool dead;
    bh_error error;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static queue *queue_of(bh__device_lane *lane) {
    return (queue *)(void *)lane;
}

static bh_status tell_death(bh_error *error) {
    pthread_mutex_lock(&state.lock);
    *error = state.error;
    pthread_mutex_unlock(&state.lock);
    return BH_E_FAULT;
}

static void die(const bh_error *error) {
    pthread_mutex_lock(&state.lock);
    if (!atomic_load(&state.dead)) state.error = *error;
    atomic_store(&state.dead, true);
    pthread_mutex_unlock(&state.lock);
}

static bool over(void) {
    return atomic_load(&state.dead) || atomic_load(state.services->killed);
}

/* Many queues may wait for each other in a row: were all to spin, none would get on. */
static void follow_word(uint32_t other, uint64_t position) {
    const _Atomic uint64_t *done = &state.services->area->lane[other].done;
    for (unsigned looks = 0; atomic_load(done) < position && !over(); looks++) {
        if (looks < LOOKS)
            bh__cpu_relax();
        else
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

/* A driver that never comes back, for tests: from a call that is given a fill with a certain byte,
 * or from the transfer itself. BULKHEAD_TEST_STUCK says which, as long as the file that it names
 * after a colon exists. */
static void get_stuck(const char *where, const bh__work *work) {
    const char *wish = getenv("BULKHEAD_TEST_STUCK");
    size_t length = strlen(where);
    if (!wish || strncmp(wish, where, length) != 0 || wish[length] != ':') return;
    bool meant = work->op == BH__OP_FILL && work->u.copy.pattern[0] == 0x5b;
    while (meant && access(wish + length + 1, F_OK) == 0) pause();
}

static void run_item(queue *self, const item *it) {
    bh_error error;
    bh_status status;
    if (over()) return;
    switch (it->kind) {
    case ITEM_WORK:
        get_stuck("transfer", &it->work);
        status = bh__cpu_device.execute(self->inner, &it->work, &error);
        if (status != BH_OK && status != BH_E_STOPPED) die(&error);
        break;
    case ITEM_DONE:
        atomic_store(&state.services->area->lane[self->index].done, it->position);
        break;
    case ITEM_WORD: {
        uint8_t *area = (uint8_t *)&state.services->area->lane[self->index];
        atomic_store((_Atomic uint64_t *)(void *)(area + it->other), it->position);
        break;
    }
    case ITEM_WAIT:
        follow_word(it->other, it->position);
        break;
    case ITEM_EVENT:
        atomic_store(&self->events[it->other], 0);
        break;
    case ITEM_CLOCK:
        atomic_store(&self->clocks[it->other], bh__now_ns());
    }
}

static void *serve(void *argument) {
    queue *self = argument;
    pthread_mutex_lock(&self->lock);
    for (;;) {
        while (!self->first && !self->closing) pthread_cond_wait(&self->changed, &self->lock);
        item *it = self->first;
        if (!it) break;
        self->first = it->next;
        if (!self->first) self->last = &self->first;
        self->busy = true;
        pthread_mutex_unlock(&self->lock);
        run_item(self, it);
        free(it);
        pthread_mutex_lock(&self->lock);
        self->busy = false;
        pthread_cond_broadcast(&self->changed);
    }
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static bh_status put(queue *self, item_kind kind, const bh__work *work, uint64_t position,
                     uint32_t other, bh_error *error) {
    if (atomic_load(&state.dead)) return tell_death(error);
    size_t params = work && work->op == BH__OP_LAUNCH ? work->u.launch.param_bytes : 0;
    item *it = calloc(1, (sizeof *it + params + 15) / 16 * 16);
    if (!it) return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory", "no memory for an item");
    it->kind = kind;
    it->position = position;
    it->other = other;
    if (work) it->work = *work;
    if (params) memcpy(it->params, work->params, params);
    it->work.params = it->params;
    pthread_mutex_lock(&self->lock);
    *self->last = it;
    self->last = &it->next;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    return BH_OK;
}

static void drain(queue *self) {
    pthread_mutex_lock(&self->lock);
    while (self->first || self->busy) pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

/* ---- the interface ---- */

static bh_status open_device(const bh__device_services *services, uint32_t index,
                             bh__device_facts *info, uint64_t *out_granularity, bh_error *error,
                             bh__device_instance **out) {
    state.services = services;
    bh_status status = bh__cpu_device.open(services, index, info, out_granularity, error, out);
    if (status != BH_OK) return status;
    char name[sizeof info->name]; /* by which tests tell this device from the plain one */
    snprintf(name, sizeof name, "queued %.*s", (int)sizeof name - 8, info->name);
    memcpy(info->name, name, sizeof name);
    return BH_OK;
}

static bh_status open_lane(bh__device_instance *device, const bh__lane_message *which,
                           bh_error *error, bh__device_lane **out) {
    queue *self = calloc(1, sizeof *self);
    if (!self) return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory", "no memory for a lane");
    self->index = which->index;
    self->last = &self->first;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->changed, NULL);
    bh_status status = bh__cpu_device.lane_open(device, which, error, &self->inner);
    if (status != BH_OK || pthread_create(&self->thread, NULL, serve, self) != 0) abort();
    *out = (bh__device_lane *)(void *)self;
    return BH_OK;
}

static void close_lane(bh__device_lane *lane) {
    queue *self = queue_of(lane);
    pthread_mutex_lock(&self->lock);
    self->closing = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    pthread_join(self->thread, NULL);
    bh__cpu_device.lane_close(self->inner);
    free(self);
}

static bh_status begin(bh__device_lane *lane, uint64_t position, bh_error *error) {
    (void)lane, (void)position, (void)error;
    return BH_OK;
}

/* BULKHEAD_TEST_REFUSE=20: one in 20 requests, more or less, is refused, as a driver does that has
 * no memory left. */
static bool is_refused(void) {
    static _Atomic uint64_t count;
    const char *wish = getenv("BULKHEAD_TEST_REFUSE");
    uint64_t one_in = wish ? strtoull(wish, NULL, 10) : 0;
    if (one_in == 0) return false;
    uint64_t x = (atomic_fetch_add(&count, 1) + (uint64_t)getpid()) * UINT64_C(0x9e3779b97f4a7c15);
    return (x >> 40) % one_in == 0;
}

/* What may be refused must be refused here: a cooperative launch runs at once. */
static bh_status enqueue(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    queue *self = queue_of(lane);
    get_stuck("driver", work);
    if (is_refused())
        return bh__fail(error, BH_E_LAUNCH, "unset BULKHEAD_TEST_REFUSE",
                        "request %llu of lane %u was refused, as the test wishes",
                        (unsigned long long)work->sequence, self->index);
    bool ahead = work->op != BH__OP_LAUNCH || !(work->u.launch.flags & BH_LAUNCH_COOPERATIVE);
    if (ahead) return put(self, ITEM_WORK, work, 0, 0, error);
    drain(self);
    if (atomic_load(&state.dead)) return tell_death(error);
    bh_status status = bh__cpu_device.execute(self->inner, work, error);
    if (status == BH_E_FAULT) die(error);
    return status;
}

static bh_status enqueue_done(bh__device_lane *lane, uint64_t position, bh_error *error) {
    return put(queue_of(lane), ITEM_DONE, NULL, position, 0, error);
}

static bh_status enqueue_word(bh__device_lane *lane, size_t word, uint64_t value, bh_error *error) {
    return put(queue_of(lane), ITEM_WORD, NULL, value, (uint32_t)word, error);
}

static bh_status enqueue_wait(bh__device_lane *lane, uint32_t other, uint64_t position,
                              bh_error *error) {
    return put(queue_of(lane), ITEM_WAIT, NULL, position, other, error);
}

static bh_status enqueue_train(bh__device_lane *lane, const bh__work *works, uint32_t count,
                               bh_error *error) {
    bh_status status = BH_OK;
    for (uint32_t i = 0; i < count && status == BH_OK; i++) {
        status = put(queue_of(lane), ITEM_WORK, &works[i], 0, 0, error);
        if (status == BH_OK && ((i + 1) % BH__GROUP_LENGTH == 0 || i + 1 == count))
            status = put(queue_of(lane), ITEM_DONE, NULL, works[i].sequence, 0, error);
    }
    return status;
}

static bh_status query(bh__device_lane *lane, bh_error *error) {
    queue *self = queue_of(lane);
    if (atomic_load(&state.dead)) return tell_death(error);
    pthread_mutex_lock(&self->lock);
    bool idle = !self->first && !self->busy;
    pthread_mutex_unlock(&self->lock);
    return idle ? BH_OK : BH_E_BUSY;
}

static bh_status enqueue_event(bh__device_lane *lane, uint32_t slot, bh_error *error) {
    queue *self = queue_of(lane);
    atomic_store(&self->events[slot], 1);
    return put(self, ITEM_EVENT, NULL, 0, slot, error);
}

static void event_wait(bh__device_lane *lane, uint32_t slot) {
    queue *self = queue_of(lane);
    pthread_mutex_lock(&self->lock);
    while (atomic_load(&self->events[slot]) && !over())
        pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

static bh_status clock_begin(bh__device_lane *lane, uint32_t slot, bh_error *error) {
    return put(queue_of(lane), ITEM_CLOCK, NULL, 0, 2 * slot, error);
}

static bh_status clock_end(bh__device_lane *lane, uint32_t slot, bh_error *error) {
    return put(queue_of(lane), ITEM_CLOCK, NULL, 0, 2 * slot + 1, error);
}

static bool clock_read(bh__device_lane *lane, uint32_t slot, uint64_t *out_ns) {
    queue *self = queue_of(lane);
    *out_ns = atomic_load(&self->clocks[2 * slot + 1]) - atomic_load(&self->clocks[2 * slot]);
    return true;
}

static bh_status print_flush(bh__device_lane *lane, bh_error *error) {
    drain(queue_of(lane));
    return atomic_load(&state.dead) ? tell_death(error) : BH_OK;
}

int main(int argc, char **argv) {
    bh__device_ops ops = bh__cpu_device;
    ops.open = open_device;
    ops.lane_open = open_lane;
    ops.lane_close = close_lane;
    ops.execute = NULL;
    ops.lane_begin = begin;
    ops.enqueue = enqueue;
    ops.enqueue_done = enqueue_done;
    ops.enqueue_word = enqueue_word;
    ops.enqueue_wait = enqueue_wait;
    ops.enqueue_train = enqueue_train;
    ops.query = query;
    ops.enqueue_event = enqueue_event;
    ops.event_wait = event_wait;
    ops.clock_begin = clock_begin;
    ops.clock_end = clock_end;
    ops.clock_read = clock_read;
    ops.print_flush = print_flush;
    ops.fault_place = NULL; /* whoever asks has a lane of this device, not of the CPU's */
    ops.fault_state = NULL;
    if (getenv("BULKHEAD_TEST_STUCK")) ops.profile = 0; /* it looks at a file */
    bh__worker_main(argc, argv, &ops);
}
