/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the fake device share. */
#ifndef FAKE_STATE_H
#define FAKE_STATE_H

#include <pthread.h>

#include "fake.h"
#include "simulator.h"

enum { FAKE_CHUNKS = 64, FAKE_HOSTS = 64, FAKE_MODULES = 32, FAKE_VARIABLE_BYTES = 16 };

typedef struct fake_chunk {
    bh__chunk chunk;
    uint8_t *memory;
    uint64_t place; /* the same for all workers: addresses may be used again, files are not */
} fake_chunk;

typedef struct fake_host {
    uint32_t id;
    uint8_t *memory;
    uint64_t bytes;
} fake_host;

typedef struct fake_module {
    uint32_t id;
    bool used;
    uint8_t variable[FAKE_VARIABLE_BYTES];
} fake_module;

struct bh__device_instance {
    const bh__device_services *services;
    fake_chunk chunks[FAKE_CHUNKS];
    fake_host hosts[FAKE_HOSTS];
    fake_module modules[FAKE_MODULES];
    _Atomic bool dead; /* with queues: a request faulted */
    bh_error error;    /* of it; written before `dead` */
};

struct bh__device_lane {
    bh__device_instance *device;
    uint32_t index;
};

fake_module *fake_module_of(bh__device_instance *device, uint32_t id);

/* fake_queue.c */
bh_status fake_queue_open(bh__device_instance *device, const bh__lane_message *which,
                          bh_error *error, bh__device_lane **out);
void fake_queue_close(bh__device_lane *lane);
bh_status fake_queue_begin(bh__device_lane *lane, uint64_t position, bh_error *error);
bh_status fake_queue_enqueue(bh__device_lane *lane, const bh__work *work, bh_error *error);
bh_status fake_queue_enqueue_done(bh__device_lane *lane, uint64_t position, bh_error *error);
bh_status fake_queue_enqueue_word(bh__device_lane *lane, size_t word, uint64_t value,
                                  bh_error *error);
bh_status fake_queue_enqueue_wait(bh__device_lane *lane, uint32_t other, uint64_t position,
                                  bh_error *error);
bh_status fake_queue_enqueue_train(bh__device_lane *lane, const bh__work *works, uint32_t count,
                                   bh_error *error);
bh_status fake_queue_query(bh__device_lane *lane, bh_error *error);
bh_status fake_queue_enqueue_event(bh__device_lane *lane, uint32_t slot, bh_error *error);
void fake_queue_event_wait(bh__device_lane *lane, uint32_t slot);
bh_status fake_queue_print_flush(bh__device_lane *lane, bh_error *error);

#endif
