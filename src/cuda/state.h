/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device: its state, shared by the files of src/cuda/. */
#ifndef BH_CUDA_STATE_H
#define BH_CUDA_STATE_H

#include <pthread.h>
#include <stdio.h>

#include "cuda/driver.h"
#include "worker/device.h"

extern const bh__device_ops bh__cuda_device;

typedef struct bh__cuda_kernel {
    bh__cu_function function;
    char *name; /* Owned */
    uint32_t param_bytes;
} bh__cuda_kernel;

typedef struct bh__cuda_variable {
    bh__cu_address address; /* 0: the driver does not give it away */
    uint64_t bytes;
    char *name; /* Owned */
} bh__cuda_variable;

typedef struct bh__cuda_module {
    uint32_t id;
    bool prints;
    bh__cu_module handle;
    bh__cuda_kernel *kernels;     /* Owned */
    bh__cuda_variable *variables; /* Owned */
    uint32_t kernel_count, variable_count;
} bh__cuda_module;

typedef struct bh__cuda_host {
    uint32_t id;
    uint8_t *memory; /* Borrowed from the worker */
    uint64_t bytes;
} bh__cuda_host;

/* Managed memory of the driver's. */
typedef struct bh__cuda_managed {
    uint32_t id;
    bh__cu_address address;
    uint64_t bytes;
} bh__cuda_managed;

/* Text that kernels print. The driver writes it to standard output, which is a file in memory
 * here. */
typedef struct bh__cuda_print {
    pthread_mutex_t lock;
    bool open;
    int fd;          /* Owned */
    uint64_t passed; /* up to here it has been handed over */
} bh__cuda_print;

struct bh__device {
    bh__driver cu;
    const bh__device_services *services; /* Borrowed */
    int ordinal;
    bh__cu_context context;
    bh__cu_stream stream; /* the control thread's */
    bh__cu_memory_kind memory_kind;
    uint64_t granularity;
    bh__cu_address area; /* the worker's area, as the device sees it */
    bh_device_info info;
    bh__cuda_print print;
    _Atomic bool may_print; /* a module whose kernels may print has been loaded */

    /* Reserved for chunks: from two bases, this far. */
    uint64_t address_bytes;
    bh__chunk *chunks; /* control thread's */
    size_t chunk_count;
    bh__cuda_managed *managed;    /* control thread's */
    bh__cu_address *left_managed; /* given up, not freed yet; has room for all of `managed` too */
    size_t managed_count, left_managed_count;

    /*
     * * Lanes hold `tables` for reading while they look things up and queue work, the control
     * thread for writing while it changes them. With it held for writing and no lane at work the
     * device is quiet. Loading or unloading code and letting go of host memory wait for running
     * kernels inside the driver, and copies of other threads wait with them, so they are done
     * when the device is quiet.
     */
    pthread_rwlock_t tables;
    bh__cuda_module *modules; /* sorted by id, as are hosts */
    bh__cuda_host *hosts;
    size_t module_count, host_count;
    bh__cuda_module *left;     /* given up, not unloaded yet; control thread's */
    bh__cuda_host *left_hosts; /* the same, and mapped until then */
    size_t left_count, left_host_count;
    struct bh__cuda_sequence *left_sequences; /* the same; control thread's */
    bh__cu_module marker_module;
    bh__cu_function marker; /* writes a word from within a graph; NULL: there is none */
    struct bh__device_lane *lanes[BH__MAX_LANES];
};

/*
 * A chain of launches and writes of `done`, made when it is first needed. A node that is given
 * another kernel after the module of its earlier one was unloaded may run code that is no longer
 * there: so no module is unloaded before the chains that ever named it are taken apart, and the next
 * train makes its chain anew. The lane's thread uses a chain with `tables` held for reading; others
 * take it apart with `tables` held for writing and the device quiet.
 */
enum { BH__CUDA_NAMED_WORDS = 16 };
typedef struct bh__cuda_train {
    bh__cu_graph graph;
    bh__cu_chain chain;
    uint32_t count; /* of launches */
    /* The modules whose kernels it was ever given, a bit for each number modulo the bits there are:
     * one that only shares its bit costs a chain made anew and no more. */
    uint64_t named[BH__CUDA_NAMED_WORDS];
    bh__cu_node launches[BH__TRAIN];
    bh__cu_node writes[BH__TRAIN / BH__GROUP_LENGTH];
} bh__cuda_train;

struct bh__device_lane {
    bh__device *device;
    uint32_t index;
    bh__cu_stream stream;
    bh__cu_event
        beacons[BH__BEACONS]; /* made beforehand: making one may wait for running kernels */
    bh__cuda_train single, train;
    _Atomic uint64_t marked; /* the last position that the device is to write, or one of these: */
};
#define BH__CUDA_NOT_BEGUN (UINT64_MAX - 1)
#define BH__CUDA_QUEUING   UINT64_MAX

/* ---- device.c ---- */

/*
 * Fills in what went wrong with a call of the driver and returns `status`; or BH_E_FAULT, with
 * an error that describes that, if the result means that the context is dead. `what` reads "a
 * chunk of 5 bytes cannot be made".
 */
bh_status bh__cuda_fail(const bh__device *device, bh_error *error, int result, bh_status status,
                        const char *fix, const char *what, ...)
    __attribute__((format(printf, 6, 7)));

/* A lane's `done` word, and any word of its area, as the device sees it. */
bh__cu_address bh__cuda_done_word(const bh__device *device, uint32_t lane);
bh__cu_address bh__cuda_lane_word(const bh__device *device, uint32_t lane, size_t offset);

/* ---- quiet.c: control thread ---- */

/* Waits until the device is quiet and keeps it so until `tables` is unlocked. False: the worker
 * is being ended. */
bool bh__cuda_quiet_wait(bh__device *device);
/* Finishes off what was given up, if the device happens to be quiet. */
void bh__cuda_quiet_tidy(bh__device *device);

/* ---- crash.c ---- */

/* From now on a crash of this process is told as a fault. */
void bh__cuda_crash_watch(bh__area *area);
/* Lets the calling thread's crashes be told too: threads of a worker block all signals. */
void bh__cuda_crash_unblock(void);

/* ---- info.c ---- */

/* Describes the device, and refuses one that lacks what is needed. */
bh_status bh__cuda_info_fill(bh__device *device, bh_error *error);

/* ---- modes.c ---- */

/* Refuses a device that nobody may use, before a context is tried. */
bh_status bh__cuda_modes_check(const bh__device *device, bh_error *error);
/* Whether an MPS server shares the device among programs. */
bool bh__cuda_uses_mps(const bh__device *device);
/* Tells how the device is shared, and whether a standby can be kept beside this worker. */
void bh__cuda_modes_fill(bh__device *device);

/* ---- memory.c: control thread ---- */

bh_status bh__cuda_chunk_create(bh__device *device, const bh__chunk *chunk, bh_error *error,
                                int *out_fd);
bh_status bh__cuda_chunk_map(bh__device *device, const bh__chunk *chunk, int fd, bh_error *error);
bh_status bh__cuda_chunk_unmap(bh__device *device, uint32_t id, bh_error *error);
bh_status bh__cuda_host_map(bh__device *device, uint32_t id, void *memory, uint64_t bytes,
                            bh_error *error);
bh_status bh__cuda_host_unmap(bh__device *device, uint32_t id, bh_error *error);
void bh__cuda_unmap_all(bh__device *device);
/* Takes the addresses that chunks will be mapped at. */
bh_status bh__cuda_reserve(bh__device *device, bh_error *error);
/* Maps a chunk twice, writes it through one address and reads it back through the other; on the
 * way everything that a lane will use is used once, so that the driver loads nothing later. */
bh_status bh__cuda_self_test(bh__device *device, bh_error *error);
/* With `tables` held. */
const bh__cuda_host *bh__cuda_find_host(const bh__device *device, uint32_t id);

/* ---- managed.c: control thread, but for prefetch ---- */

bh_status bh__cuda_managed_create(bh__device *device, const bh__chunk *chunk, bh_error *error,
                                  uint64_t *out_address);
bh_status bh__cuda_managed_advise(bh__device *device, const bh__advice_message *what,
                                  bh_error *error);
/* False: there is none by this number. */
bool bh__cuda_managed_drop(bh__device *device, uint32_t id);
/* When the device is quiet. */
void bh__cuda_managed_free_left(bh__device *device);
void bh__cuda_managed_free_all(bh__device *device);
/* Returns the driver's result. */
int bh__cuda_managed_prefetch(bh__device_lane *lane, const bh__copy_body *body);

/* ---- module.c: control thread ---- */

bh_status bh__cuda_module_load(bh__device *device, uint32_t id, const void *image, size_t bytes,
                               bh_error *error, int *out_blob);
bh_status bh__cuda_module_unload(bh__device *device, uint32_t id, bh_error *error);
bh_status bh__cuda_global_set(bh__device *device, const bh__module_message *where,
                              const void *bytes, size_t count, bh_error *error);
void bh__cuda_unload_all(bh__device *device);
/* Unloads it. The device is quiet, or closed. */
void bh__cuda_module_free(bh__device *device, bh__cuda_module *module);
/* With `tables` held. */
const bh__cuda_module *bh__cuda_find_module(const bh__device *device, uint32_t id);

/* ---- fit.c: control thread ---- */

bh_status bh__cuda_fit(bh__device *device, const bh__fit_question *question, bh_error *error,
                       bh__fit *out);

/* ---- launch.c, copy.c, train.c: a lane's thread, with `tables` held for reading ---- */

/* The host memory of a copy; NULL: it does not lie in what is mapped for it. */
uint8_t *bh__cuda_host_memory(const bh__device *device, uint32_t id, uint64_t offset,
                              uint64_t bytes);
/* The shortest pattern that repeats to the same bytes. */
uint32_t bh__cuda_shortest_pattern(const uint8_t *pattern, uint32_t bytes);
/* The kernel of a launch, after a look at its parameters. NULL: there is none, or they do not
 * fit. */
const bh__cuda_kernel *bh__cuda_find_kernel(const bh__device *device, const bh__work *work,
                                            const bh__cuda_module **out_module, bh_error *error);
/* Everything about a launch but its shape, as the driver has it. Returns how many there are. */
enum { BH__CUDA_ATTRIBUTES = 5 };
unsigned bh__cuda_launch_attributes(const bh__launch_body *body, bh__cu_launch_attribute *out);
/* A launch as a node of a graph, without its attributes. Points into itself and to the parameters. */
typedef struct bh__cuda_node {
    bh__cu_kernel_node kernel;
    size_t param_bytes;
    void *extra[5];
} bh__cuda_node;
void bh__cuda_launch_node(const bh__cuda_kernel *kernel, const bh__work *work, bh__cuda_node *out);
/* BH_E_BUSY: queued, and it may print. */
bh_status bh__cuda_launch(bh__device_lane *lane, const bh__work *work, bh_error *error);
bh_status bh__cuda_copy(bh__device_lane *lane, const bh__work *work, bh_error *error);
/* 1 or BH__TRAIN launches as one. */
bh_status bh__cuda_train_send(bh__device_lane *lane, const bh__work *works, uint32_t count,
                              bh_error *error);
void bh__cuda_train_free(bh__device_lane *lane);
/* Takes apart the chains that ever named this module, which is about to be unloaded. The control
 * thread; the device is quiet. */
void bh__cuda_trains_let_go(bh__device *device, uint32_t module);

/* ---- mark.c ---- */

/* A word to be written by a node of a graph. */
typedef struct bh__cuda_mark {
    uint64_t word, value;
    bool awaited; /* somebody may be waiting for it */
} bh__cuda_mark;

/* Loads what graphs are marked with, while nothing runs yet that the driver could wait for. */
void bh__cuda_marks_open(bh__device *device);
/* A mark behind a node, and another one in its place. Both return what the driver says. */
int bh__cuda_mark_add(const bh__device *device, bh__cu_graph graph, const bh__cu_node *after,
                      bh__cuda_mark *mark, bh__cu_node *out);
int bh__cuda_mark_set(const bh__device *device, bh__cu_chain chain, bh__cu_node which,
                      bh__cuda_mark *mark);

/* ---- sequence.c: define and drop are the control thread's, replay is a lane's, with `tables` held
 * for reading ---- */

typedef struct bh__cuda_sequence bh__cuda_sequence;
bh_status bh__cuda_sequence_define(bh__device *device, const bh__sequence_image *image,
                                   bh_error *error, void **out);
bh_status bh__cuda_sequence_replay(bh__device_lane *lane, const bh__work *work,
                                   const bh__sequence_image *image, void **made, bh_error *error);
void bh__cuda_sequence_drop(bh__device *device, void *made);
/* The device is quiet, or closed. */
void bh__cuda_sequences_free(bh__device *device);

/* ---- print.c ---- */

bh_status bh__cuda_print_open(bh__cuda_print *print, bh_error *error);
void bh__cuda_print_close(bh__cuda_print *print);
/* Hands over what kernels that have ended have printed. */
void bh__cuda_print_flush(bh__device *device);
/* The same when the context has died with this result. */
void bh__cuda_print_last(const bh__device *device, int result);

/* A request that makes no sense: the application's library should not have sent it. */
#define BH__CUDA_DEFECT "report this as a defect of libbulkhead"

#endif
