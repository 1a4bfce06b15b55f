/* SPDX-License-Identifier: Apache-2.0 */
/* The fake device behind queues of its own, as a GPU has them: work is queued ahead, completion
 * words are written behind it, and a fault is reported only when it is asked for. */
#include <stdlib.h>
#include <string.h>

#include "fake_state.h"

typedef enum item_kind { ITEM_WORK, ITEM_DONE, ITEM_WORD, ITEM_WAIT, ITEM_EVENT } item_kind;

typedef struct item {
    struct item *next;
    item_kind kind;
    uint64_t position;
    uint32_t other;
    bh__work work;
    _Alignas(16) uint8_t params[];
} item;

typedef struct queue {
    struct bh__device_lane lane;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    item *first, **last;
    bool busy, closing;
    _Atomic uint32_t events[BH__QUEUE_EVENTS]; /* 1: not reached */
} queue;

static queue *queue_of(bh__device_lane *lane) {
    return (queue *)(void *)lane;
}

static bh_status tell_death(bh__device_instance *device, bh_error *error) {
    *error = device->error;
    return BH_E_FAULT;
}

static bool over(const bh__device_instance *device) {
    return atomic_load(&device->dead) || fake_killed(device);
}

static bool may_be_refused(const bh__work *work) {
    return work->op == BH__OP_LAUNCH && work->u.launch.kernel == FAKE_REFUSED;
}

static void run_item(queue *self, const item *it) {
    bh__device_instance *device = self->lane.device;
    bh__lane_area *words = &fake_area(device)->lane[self->lane.index];
    bh_error error;
    if (over(device)) return;
    switch (it->kind) {
    case ITEM_WORK: {
        bh_status status = fake_execute(device, self->lane.index, &it->work, &error);
        if (status == BH_OK || status == BH_E_STOPPED || atomic_load(&device->dead)) break;
        device->error = error;
        atomic_store(&device->dead, true);
        break;
    }
    case ITEM_DONE:
        atomic_store(&words->done, it->position);
        break;
    case ITEM_WORD:
        atomic_store((_Atomic uint64_t *)(void *)((uint8_t *)words + it->other), it->position);
        break;
    case ITEM_WAIT: {
        const _Atomic uint64_t *done = &fake_area(device)->lane[it->other].done;
        while (atomic_load(done) < it->position && !over(device)) sim_sleep(2000);
        break;
    }
    case ITEM_EVENT:
        atomic_store(&self->events[it->other], 0);
    }
}

static void *serve(void *argument) {
    queue *self = argument;
    sim_hardware();
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

static bh_status put(bh__device_lane *lane, item_kind kind, const bh__work *work, uint64_t position,
                     uint32_t other, bh_error *error) {
    queue *self = queue_of(lane);
    if (atomic_load(&lane->device->dead)) return tell_death(lane->device, error);
    size_t params = work && work->op == BH__OP_LAUNCH ? work->u.launch.param_bytes : 0;
    item *it = calloc(1, sizeof *it + params);
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

bh_status fake_queue_open(bh__device_instance *device, const bh__lane_message *which,
                          bh_error *error, bh__device_lane **out) {
    queue *self = calloc(1, sizeof *self);
    if (!self) return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory", "no memory for a lane");
    self->lane.device = device;
    self->lane.index = which->index;
    self->last = &self->first;
    if (pthread_create(&self->thread, NULL, serve, self)) {
        free(self);
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory", "no thread for a queue");
    }
    *out = &self->lane;
    return BH_OK;
}

void fake_queue_close(bh__device_lane *lane) {
    queue *self = queue_of(lane);
    pthread_mutex_lock(&self->lock);
    self->closing = true;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    pthread_join(self->thread, NULL);
    free(self);
}

bh_status fake_queue_begin(bh__device_lane *lane, uint64_t position, bh_error *error) {
    (void)lane, (void)position, (void)error;
    return BH_OK;
}

/* What may be refused must be refused here. */
bh_status fake_queue_enqueue(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    if (!may_be_refused(work)) return put(lane, ITEM_WORK, work, 0, 0, error);
    drain(queue_of(lane));
    if (atomic_load(&lane->device->dead)) return tell_death(lane->device, error);
    return fake_execute(lane->device, lane->index, work, error);
}

bh_status fake_queue_enqueue_done(bh__device_lane *lane, uint64_t position, bh_error *error) {
    return put(lane, ITEM_DONE, NULL, position, 0, error);
}
bh_status fake_queue_enqueue_word(bh__device_lane *lane, size_t word, uint64_t value,
                                  bh_error *error) {
    return put(lane, ITEM_WORD, NULL, value, (uint32_t)word, error);
}
bh_status fake_queue_enqueue_wait(bh__device_lane *lane, uint32_t other, uint64_t position,
                                  bh_error *error) {
    return put(lane, ITEM_WAIT, NULL, position, other, error);
}

bh_status fake_queue_enqueue_train(bh__device_lane *lane, const bh__work *works, uint32_t count,
                                   bh_error *error) {
    bh_status status = BH_OK;
    for (uint32_t i = 0; i < count; i++)
        if (may_be_refused(&works[i])) return BH_E_UNSUPPORTED;
    for (uint32_t i = 0; i < count && status == BH_OK; i++) {
        status = put(lane, ITEM_WORK, &works[i], 0, 0, error);
        if (status == BH_OK && ((i + 1) % BH__GROUP_LENGTH == 0 || i + 1 == count))
            status = put(lane, ITEM_DONE, NULL, works[i].sequence, 0, error);
    }
    return status;
}

bh_status fake_queue_query(bh__device_lane *lane, bh_error *error) {
    queue *self = queue_of(lane);
    if (atomic_load(&lane->device->dead)) return tell_death(lane->device, error);
    pthread_mutex_lock(&self->lock);
    bool idle = !self->first && !self->busy;
    pthread_mutex_unlock(&self->lock);
    return idle ? BH_OK : BH_E_BUSY;
}

bh_status fake_queue_enqueue_event(bh__device_lane *lane, uint32_t slot, bh_error *error) {
    atomic_store(&queue_of(lane)->events[slot], 1);
    return put(lane, ITEM_EVENT, NULL, 0, slot, error);
}

void fake_queue_event_wait(bh__device_lane *lane, uint32_t slot) {
    queue *self = queue_of(lane);
    pthread_mutex_lock(&self->lock);
    while (atomic_load(&self->events[slot]) && !over(lane->device))
        pthread_cond_wait(&self->changed, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

bh_status fake_queue_print_flush(bh__device_lane *lane, bh_error *error) {
    drain(queue_of(lane));
    return atomic_load(&lane->device->dead) ? tell_death(lane->device, error) : BH_OK;
}
