/* SPDX-License-Identifier: Apache-2.0 */
/* What a kind of device implements so that src/worker/ can serve it: memory, modules, lanes, work.
 */
#ifndef BH_WORKER_DEVICE_H
#define BH_WORKER_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/control.h"
#include "wire/message.h"

/* The device's own state, one for each worker, and its state for one lane. */
typedef struct bh__device bh__device;
typedef struct bh__device_lane bh__device_lane;

/* What the worker does for its device. Borrowed by the device until close. Any thread may use it.
 */
typedef struct bh__device_services {
    void *context;
    /* Text from a kernel, for the application. May block while the application is slow to read. */
    void (*print)(void *context, const char *text, size_t length);
    /* True: the worker is being ended. Whatever takes long looks at it and gives up soon. */
    const _Atomic(bool) *killed;
    /* The worker's own area of the control block, for devices that write completion words
     * themselves. */
    bh__area *area;
    uint64_t area_bytes;
    /* BH_DEVICE_CHECK: chunks have a shadow behind them (base/shadow.h) and kernels are checked. */
    bool check;
} bh__device_services;

enum {
    BH__TRAIN = 32,  /* launches; a multiple of BH__GROUP_LENGTH */
    BH__BEACONS = 32 /* slots; no more than half of them are lit and not reached */
};

/* One request as a lane hands it to its device: a copy of the lane's own, valid until execute
 * returns. */
typedef struct bh__work {
    uint16_t op; /* BH__OP_LAUNCH ...; never BH__OP_SKIP */
    uint32_t lane;
    uint64_t sequence;
    union {
        bh__launch_body launch;
        bh__copy_body copy;
        bh__sequence_body sequence;
    } u;
    const uint8_t *params;            /* LAUNCH: param_bytes of them, 16-byte aligned */
    uint64_t start;                   /* its first slot */
    uint64_t submitted, taken, begun; /* ticks; for meter.c */
} bh__work;

/* The steps of a sequence as they are to run: a sound copy of the worker's own. */
typedef struct bh__sequence_image {
    const char *name;
    uint32_t id;
    uint32_t step_count;
    uint64_t bytes;
    uint64_t serial; /* the same for the same steps; 0: as defined */
    const bh__sequence_step *steps;
} bh__sequence_image;

static inline const uint8_t *bh__sequence_params(const bh__sequence_image *image, uint32_t step) {
    return (const uint8_t *)image->steps + image->steps[step].params;
}
/* One step as a request of its own. */
bh__work bh__sequence_work(const bh__sequence_image *image, uint32_t step, const bh__work *whole);

/*
 * Threads: open, close and everything up to lane_close are called by the worker's control thread,
 * one at a time. execute is called by a lane's own thread: one at a time for a lane, at the same
 * time for different lanes, and at the same time as the control thread's calls. The application
 * sees to it that nothing is unmapped or unloaded while work that uses it is running.
 *
 * Functions that return bh_status fill in `error` when it is not BH_OK.
 */
typedef struct bh__device_ops {
    const char *program; /* "bulkhead-worker-cpu" */
    const char *about;   /* one line for --help */

    /* Readies device number `index` and describes it. Chunks are multiples of out_granularity. */
    bh_status (*open)(const bh__device_services *services, uint32_t index, bh_device_info *info,
                      uint64_t *out_granularity, bh_error *error, bh__device **out);
    /* Called when every lane is closed. Frees what is still mapped and loaded. */
    void (*close)(bh__device *device);

    /* Makes memory and maps it as chunk_map does. The caller owns the descriptor. */
    bh_status (*chunk_create)(bh__device *device, const bh__chunk *chunk, bh_error *error,
                              int *out_fd);
    /* Maps memory at chunk->address, writable, and chunk->read_only_address. Does not keep `fd`. */
    bh_status (*chunk_map)(bh__device *device, const bh__chunk *chunk, int fd, bh_error *error);
    bh_status (*chunk_unmap)(bh__device *device, uint32_t id, bh_error *error);
    /* Makes a BH__CHUNK_DRIVER chunk, where the device likes; chunk_unmap ends it. The memory is this
     * worker's alone. */
    bh_status (*driver_create)(bh__device *device, const bh__chunk *chunk, bh_error *error,
                               uint64_t *out_address);
    /* Says how a range of one is used. */
    bh_status (*driver_advise)(bh__device *device, const bh__advice_message *what, bh_error *error);

    /* Memory of the application that copies go through. It stays mapped until host_unmap returns;
     * if that returns BH_E_BUSY, the device unmaps it (bh__share_unmap) as soon as it can. */
    bh_status (*host_map)(bh__device *device, uint32_t id, void *memory, uint64_t bytes,
                          bh_error *error);
    bh_status (*host_unmap)(bh__device *device, uint32_t id, bh_error *error);

    /* `image` is not kept. out_blob: a descriptor with a bh__module_blob (see blob.h). */
    bh_status (*module_load)(bh__device *device, uint32_t id, const void *image, size_t bytes,
                             bh_error *error, int *out_blob);
    bh_status (*module_unload)(bh__device *device, uint32_t id, bh_error *error);
    /* Sets part of a module's variable before kernels that use it run. */
    bh_status (*global_set)(bh__device *device, const bh__module_message *where, const void *bytes,
                            size_t count, bh_error *error);

    /* Answers how many blocks can be resident. The question has a block and shared memory that the
     * kernel can be launched with. */
    bh_status (*fit)(bh__device *device, const bh__fit_question *question, bh_error *error,
                     bh__fit *out);

    /* The priority is one that `info` allows. */
    bh_status (*lane_open)(bh__device *device, const bh__lane_message *which, bh_error *error,
                           bh__device_lane **out);
    /* The lane's thread has ended. */
    void (*lane_close)(bh__device_lane *lane);

    /*
     * Does the work and returns when it is done: BH_OK; BH_E_FAULT: the kernel faulted and this
     * worker is of no more use, nor, if error->status is BH_E_STOPPED, is any other on this device; BH_E_STOPPED: given up because the worker is being ended, `error`
     * is not filled in; anything else: this request failed and did no harm. What it printed has
     * been handed over.
     */
    bh_status (*execute)(bh__device_lane *lane, const bh__work *work, bh_error *error);

    /*
     * A device with queues of its own has these in place of execute; the lane's thread calls them.
     * Work of a lane is done in the order it is queued. BH_E_FAULT from any of them: the device is
     * of no more use, and which request did it is for the application to find out from the
     * completion words. The functions above may return it too.
     */

    /* Called first. The lane goes on from `position`. */
    bh_status (*lane_begin)(bh__device_lane *lane, uint64_t position, bh_error *error);
    /* Returns once the work is queued: BH_OK; BH_E_BUSY: queued, and once it is done `settle` is to
     * be called before anything else; BH_E_STOPPED and others as for execute. */
    bh_status (*enqueue)(bh__device_lane *lane, const bh__work *work, bh_error *error);
    /* Has the device write `position` to the lane's `done` word when it has done all that is queued
     * so far. */
    bh_status (*mark)(bh__device_lane *lane, uint64_t position, bh_error *error);
    /* Has the lane wait until the `done` word of another one has reached `position`. That write is
     * queued already. */
    bh_status (*follow)(bh__device_lane *lane, uint32_t other, uint64_t position, bh_error *error);
    /* Queues 1 or BH__TRAIN launches, plain ones, as one thing, with a write of `done` as mark makes
     * it behind each BH__GROUP_LENGTH of them and behind the last. BH_E_UNSUPPORTED: nothing was
     * queued, enqueue and mark are to be used. NULL: always use these. */
    bh_status (*train)(bh__device_lane *lane, const bh__work *works, uint32_t count,
                       bh_error *error);
    /* Has the device write a value to a word of the lane's area, at this offset in bh__lane_area,
     * when it has done all that is queued so far. */
    bh_status (*tell)(bh__device_lane *lane, size_t word, uint64_t value, bh_error *error);
    /*
     * A device that can run a whole sequence as one thing has these three. define and drop are the
     * control thread's: define makes ready what can be, drop takes back what it or replay made.
     * replay queues the steps once, with writes of the `step` word (BH__STEP_GROUP) and a last one
     * of no steps done; answers as enqueue does, and BH_E_UNSUPPORTED: nothing was queued, the
     * steps are to be queued one by one. *made is the lane's own, NULL at first, or what define
     * made for whichever lane comes first.
     */
    bh_status (*sequence_define)(bh__device *device, const bh__sequence_image *image,
                                 bh_error *error, void **out_made);
    void (*sequence_drop)(bh__device *device, void *made);
    bh_status (*sequence_replay)(bh__device_lane *lane, const bh__work *work,
                                 const bh__sequence_image *image, void **made, bh_error *error);
    /* BH_OK: all that was queued is done; BH_E_BUSY: not yet. */
    bh_status (*ask)(bh__device_lane *lane, bh_error *error);
    /* Lights a beacon behind all that is queued so far. NULL: the device has none. */
    bh_status (*beacon)(bh__device_lane *lane, uint32_t slot, bh_error *error);
    /* Sleeps until the beacon that was last lit in this slot is reached or the device has died.
     * Called by a thread of its own. */
    void (*await)(bh__device_lane *lane, uint32_t slot);
    /* Hands over what work that is done has printed. */
    bh_status (*settle)(bh__device_lane *lane, bh_error *error);

    /* May be NULL. After execute returned BH_E_FAULT on this lane: the access that went wrong,
     * where the device knows it; bytes 0: it does not. */
    void (*fault_place)(const bh__device_lane *context, uint64_t *address, uint32_t *bytes);
} bh__device_ops;

#endif
