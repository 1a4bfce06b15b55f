/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface that a kind of device implements so that src/worker/ can serve it.
 *
 * A device is a table of functions, bh__device_ops, and two types that only it can look into:
 * bh__device_instance, of which each worker has one, and bh__device_lane, one for each lane.
 *
 * There are two ways to run work, and a device implements exactly one of them:
 *
 *   direct   `execute` runs a request on the lane's own thread and returns when it is complete.
 *            src/cpu/ is the example; src/worker/lane/lane_direct.c is the caller.
 *   queued   `enqueue` and its companions put work into a queue of the device's own and return at
 *            once. The device itself writes the completion words. src/cuda/ is the example;
 *            src/worker/lane/lane_queued.c is the caller.
 *
 * A device with `enqueue` is queued; every other one is direct.
 */
#ifndef BH_WORKER_DEVICE_H
#define BH_WORKER_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error/error.h"
#include "sandbox/files.h"
#include "sandbox/sandbox.h"
#include "wire/control.h"
#include "wire/message.h"

/* Defined by the device: its state, one for each worker, and its state for one lane. */
typedef struct bh__device_instance bh__device_instance;
typedef struct bh__device_lane bh__device_lane;

/* ---- what the worker does for its device ---- */

/* Borrowed by the device until `close`. Any thread may use it. */
typedef struct bh__device_services {
    void *context;
    /* Sends text that a kernel printed to the application. Blocks while the application is slow to
     * read. */
    void (*print)(void *context, const char *text, size_t length);
    /* True once the worker is being ended. Whatever takes long polls it and gives up soon. */
    const _Atomic(bool) *killed;
    /* The worker's own area of the control block. Queued devices write completion words to it. */
    bh__area *area;
    uint64_t area_bytes;
    /* BH_DEVICE_CHECK: each chunk has a shadow behind it (base/shadow.h) and kernels are checked.
     */
    bool check;
    /* Native code for modules may come (module_native). */
    bool native;
    /* BH_LIBRARY_... that modules may be of. */
    uint32_t libraries;
} bh__device_services;

/* ---- work ---- */

/* One request as a lane passes it to its device. It is the lane's own copy, valid until the call
 * returns. */
typedef struct bh__work {
    uint16_t op; /* BH__OP_LAUNCH ...; never BH__OP_SKIP */
    uint32_t lane;
    uint64_t sequence; /* its sequence number: the position after its last slot */
    union {
        bh__launch_body launch;
        bh__copy_body copy;
        bh__sequence_body sequence;
    } u;
    const uint8_t *params;            /* LAUNCH: param_bytes of them, 16-byte aligned */
    uint64_t start;                   /* the position of its first slot */
    uint64_t submitted, taken, begun; /* ticks; for meter.c */
    uint16_t timed;                   /* BH_SUBMIT_TIMED: as in the request; 0: no */
    uint16_t clock; /* queued devices: 1 + the slot of the clock that measures it; 0: none */
} bh__work;

/* The steps of a sequence as they are to run: the worker's own copy, already validated. */
typedef struct bh__sequence_image {
    const char *name;
    uint32_t id;
    uint32_t step_count;
    uint64_t bytes;
    uint64_t serial; /* equal for equal steps; 0: as defined */
    const bh__sequence_step *steps;
} bh__sequence_image;

static inline const uint8_t *bh__sequence_params(const bh__sequence_image *image, uint32_t step) {
    return (const uint8_t *)image->steps + image->steps[step].params;
}
/* One step as a request of its own. */
bh__work bh__sequence_work(const bh__sequence_image *image, uint32_t step, const bh__work *whole);

enum {
    BH__TRAIN = 32,        /* launches in a train; a multiple of BH__GROUP_LENGTH */
    BH__QUEUE_EVENTS = 32, /* slots; at most half of them are recorded and not reached */
    BH__QUEUE_CLOCKS = 16  /* slots; requests that are measured at once */
};

/* ---- the files that a worker opens ---- */

enum { BH__FILES = 128 };
/* The path strings must stay valid until the process ends. */
typedef struct bh__file_list {
    size_t count;
    bh__sandbox_path paths[BH__FILES];
} bh__file_list;

static inline void bh__file_list_add(bh__file_list *list, const char *path, bool writable) {
    if (list->count < BH__FILES) list->paths[list->count++] = (bh__sandbox_path){path, writable};
}

/* ---- what the device does ---- */

/*
 * Threads. Everything from `open` to `lane_close`, and sequence_define and sequence_drop, is called
 * by the worker's control thread, one call at a time. Everything after `lane_close` is called by a
 * lane's own thread unless its comment says otherwise: one call at a time for a lane, concurrently
 * for different lanes, and concurrently with the control thread's calls. The application unmaps and
 * unloads nothing that running work uses.
 *
 * Errors. A function that returns a status other than BH_OK fills in `error`, except where
 * BH_E_STOPPED or BH_E_BUSY is said to be an answer.
 */
typedef struct bh__device_ops {
    const char *program; /* "bulkhead-worker-cpu" */
    const char *about;   /* one line for --help */

    uint32_t traits; /* BH__TRAIT_... */
    /* Supports BH_DEVICE_CHECK: each chunk is a file with a shadow behind its bytes. */
    bool checks;
    /* The device code of faults that are accesses to illegal addresses; 0: none. */
    int32_t illegal_address;

    /* ---- the sandbox ---- */

    /* What the worker may ask of the system once its device is open; 0: it is not confined. */
    bh__sandbox_profile profile;
    /* Lists every file that the worker opens, including those that `open` opens. Returns NULL, or
     * the reason why files cannot be confined. NULL as the function: files are not confined. */
    const char *(*files)(bh__file_list *out);

    /* ---- the device ---- */

    /* Called before anything is confined: gets ready what `open` and module loads need of the
     * libraries named, BH_LIBRARY_... What is missing is told when a module asks for it. NULL:
     * nothing needs to be done so early. */
    void (*libraries_find)(uint32_t libraries);
    /* Opens device number `index` and describes it. Chunk sizes and addresses are multiples of
     * *out_granularity. */
    bh_status (*open)(const bh__device_services *services, uint32_t index, bh__device_facts *info,
                      uint64_t *out_granularity, bh_error *error, bh__device_instance **out);
    /* Called when every lane is closed. Frees what is still mapped and loaded. */
    void (*close)(bh__device_instance *device);

    /* ---- memory ---- */

    /* Creates a chunk of memory and maps it as chunk_map does. The caller owns the descriptor. */
    bh_status (*chunk_create)(bh__device_instance *device, const bh__chunk *chunk, bh_error *error,
                              int *out_fd);
    /* Maps the memory behind `fd` twice: writable at chunk->address, read-only at
     * chunk->read_only_address. Does not keep `fd`. */
    bh_status (*chunk_map)(bh__device_instance *device, const bh__chunk *chunk, int fd,
                           bh_error *error);
    bh_status (*chunk_unmap)(bh__device_instance *device, uint32_t id, bh_error *error);
    /* Creates a BH__CHUNK_DRIVER chunk: memory that only this worker has, at an address of the
     * device's choice that is a multiple of chunk->address. chunk_unmap frees it. */
    bh_status (*driver_create)(bh__device_instance *device, const bh__chunk *chunk, bh_error *error,
                               uint64_t *out_address);
    /* Passes on advice about a range of such a chunk. */
    bh_status (*driver_advise)(bh__device_instance *device, const bh__advice_message *what,
                               bh_error *error);
    /* Registers memory of the application that copies read and write. It stays mapped until
     * host_unmap returns. If host_unmap returns BH_E_BUSY, the device unmaps the memory itself
     * (bh__share_unmap) as soon as it can. */
    bh_status (*host_map)(bh__device_instance *device, uint32_t id, void *memory, uint64_t bytes,
                          bh_error *error);
    bh_status (*host_unmap)(bh__device_instance *device, uint32_t id, bh_error *error);

    /* ---- modules ---- */

    /* Loads a module. `image` is not kept. *out_blob: a descriptor of its description, a
     * bh__module_blob, which module_blob.h makes. */
    bh_status (*module_load)(bh__device_instance *device, uint32_t id, const void *image,
                             size_t bytes, bh_error *error, int *out_blob);
    bh_status (*module_unload)(bh__device_instance *device, uint32_t id, bh_error *error);
    /* Native code of a module's kernels came: wire/native.h. `data` is not kept. NULL: not
     * supported. */
    bh_status (*module_native)(bh__device_instance *device, uint32_t id, const void *data,
                               size_t bytes, bh_error *error);
    /* Sets part of a module's variable before kernels that use it run. */
    bh_status (*global_set)(bh__device_instance *device, const bh__module_message *where,
                            const void *bytes, size_t count, bh_error *error);
    /* Follows threads of a kernel, as a bh__debug_message says; no bytes: no more. which->variable
     * is the kernel. NULL: not supported. */
    bh_status (*debug_set)(bh__device_instance *device, const bh__module_message *which,
                           const void *data, size_t bytes, bh_error *error);
    /* Computes how many blocks of a kernel can be resident. The kernel can be launched with the
     * block and the shared memory of the question. */
    bh_status (*fit)(bh__device_instance *device, const bh__fit_question *question, bh_error *error,
                     bh__fit *out);

    /* ---- lanes ---- */

    /* The priority is one that `info` allows. */
    bh_status (*lane_open)(bh__device_instance *device, const bh__lane_message *which,
                           bh_error *error, bh__device_lane **out);
    /* The lane's thread has ended. */
    void (*lane_close)(bh__device_lane *lane);

    /* ---- direct devices ---- */

    /*
     * Runs the request and returns when it is complete and its printed text has been passed on.
     * BH_OK: it succeeded.
     * BH_E_FAULT: the kernel faulted, and this worker can run nothing more. If error->status is
     *   BH_E_STOPPED, no other worker can use the device either.
     * BH_E_STOPPED: it was abandoned because the worker is being ended; `error` is not filled in.
     * Anything else: this request failed and did no harm, except that a library call may have
     *   written to its outputs: the application counts them as suspect.
     */
    bh_status (*execute)(bh__device_lane *lane, const bh__work *work, bh_error *error);
    /* May be NULL. Called after execute returned BH_E_FAULT on this lane: which access was illegal.
     * *bytes is 0 if the device does not know. */
    void (*fault_place)(const bh__device_lane *lane, uint64_t *address, uint32_t *bytes);
    /* May be NULL. Called at the same time: what checks found in the launch, from number `first`
     * on. Returns how many there are in `out`. */
    uint32_t (*findings)(const bh__device_lane *lane, uint32_t first, bh_finding *out,
                         uint32_t capacity);

    /* May be NULL. Called at the same time: the state of the thread that faulted, as text for
     * people. NULL: not known. */
    const char *(*fault_state)(const bh__device_lane *lane);

    /* ---- queued devices ---- */

    /*
     * A lane's work runs in the order in which it is queued. BH_E_FAULT from any of these functions
     * means that the device can run nothing more; the application finds out from the completion
     * words which request is to blame. The control thread's functions may return it too.
     */

    /* Called first. The lane continues from `position`. */
    bh_status (*lane_begin)(bh__device_lane *lane, uint64_t position, bh_error *error);
    /* Queues one request. BH_E_BUSY: it is queued, and print_flush must be called as soon as it is
     * complete, before anything else is queued. BH_E_STOPPED and other errors as for execute. */
    bh_status (*enqueue)(bh__device_lane *lane, const bh__work *work, bh_error *error);
    /* Queues a write of `position` to the lane's `done` word, behind all that is queued so far. */
    bh_status (*enqueue_done)(bh__device_lane *lane, uint64_t position, bh_error *error);
    /* Queues a write of `value` to a word of the lane's area, given as an offset in
     * bh__lane_area. */
    bh_status (*enqueue_word)(bh__device_lane *lane, size_t word, uint64_t value, bh_error *error);
    /* Queues a wait until the `done` word of another lane has reached `position`. The write of that
     * word is queued already. */
    bh_status (*enqueue_wait)(bh__device_lane *lane, uint32_t other, uint64_t position,
                              bh_error *error);
    /* Queues 1 or BH__TRAIN plain launches as one operation, with a write of `done` behind each
     * BH__GROUP_LENGTH of them and behind the last. BH_E_UNSUPPORTED: nothing was queued, and the
     * caller uses enqueue and enqueue_done. NULL: trains are not supported. */
    bh_status (*enqueue_train)(bh__device_lane *lane, const bh__work *works, uint32_t count,
                               bh_error *error);
    /* BH_OK: all that was queued is complete. BH_E_BUSY: not yet. */
    bh_status (*query)(bh__device_lane *lane, bh_error *error);
    /* Passes on the text that completed work has printed. */
    bh_status (*print_flush)(bh__device_lane *lane, bh_error *error);

    /* Events, so that a thread can sleep until the device has reached a point of the queue. Both
     * NULL: not supported. */

    /* Records event number `slot` behind all that is queued so far. */
    bh_status (*enqueue_event)(bh__device_lane *lane, uint32_t slot, bh_error *error);
    /* Sleeps until the event that was last recorded in this slot is reached, or the device has
     * failed. Called by a thread of its own (lane/queued_waker.c). */
    void (*event_wait)(bh__device_lane *lane, uint32_t slot);

    /* Clocks, which measure how long the device works on a request. All three NULL: not supported,
     * and the time until the lane sees the completion counts. */

    /* Queue the start and the end of clock number `slot`, before and behind the request. */
    bh_status (*clock_begin)(bh__device_lane *lane, uint32_t slot, bh_error *error);
    bh_status (*clock_end)(bh__device_lane *lane, uint32_t slot, bh_error *error);
    /* The time between the two, once the request is complete. False: it is not known. */
    bool (*clock_read)(bh__device_lane *lane, uint32_t slot, uint64_t *out_ns);

    /* Whole sequences as one operation. All three NULL: not supported; the steps are queued one by
     * one. */

    /* Prepares what can be prepared. Control thread. */
    bh_status (*sequence_define)(bh__device_instance *device, const bh__sequence_image *image,
                                 bh_error *error, void **out_made);
    /* Frees what sequence_define or enqueue_sequence made. Control thread. */
    void (*sequence_drop)(bh__device_instance *device, void *made);
    /* Queues all steps once, with writes of the `step` word (BH__STEP_GROUP) and a last one that
     * says that no steps are done. *made belongs to the lane: NULL at first, or what
     * sequence_define made, which goes to the first lane that replays the sequence. Returns what
     * enqueue returns; BH_E_UNSUPPORTED: nothing was queued, and the steps are queued one by one.
     */
    bh_status (*enqueue_sequence)(bh__device_lane *lane, const bh__work *work,
                                  const bh__sequence_image *image, void **made, bh_error *error);
} bh__device_ops;

static inline bool bh__device_is_queued(const bh__device_ops *ops) {
    return ops->enqueue != NULL;
}

#endif
