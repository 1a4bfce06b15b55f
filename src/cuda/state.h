/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device: its state, shared by the files of src/cuda/. */
#ifndef BH_CUDA_STATE_H
#define BH_CUDA_STATE_H

#include <pthread.h>
#include <stdio.h>

#include "base/tensor.h"
#include "cuda/driver/driver.h"
#include "library/operation.h"
#include "worker/device.h"

extern const bh__device_ops bh__cuda_device;

typedef struct bh__cuda_kernel {
    bh__cu_function function;
    char *name; /* Owned */
    uint32_t param_bytes;
} bh__cuda_kernel;

typedef struct bh__cuda_variable {
    bh__cu_address address; /* 0: the driver does not tell it */
    uint64_t bytes;
    char *name; /* Owned */
} bh__cuda_variable;

typedef struct bh__cuda_module {
    uint32_t id;
    const bh__library *library; /* NULL: a module of the program */
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

/* Memory that the driver manages. */
typedef struct bh__cuda_managed {
    uint32_t id;
    bh__cu_address allocated; /* by the driver */
    bh__cu_address address;   /* the first one from there on that has the alignment */
    uint64_t bytes;           /* from `address` on */
} bh__cuda_managed;

/* Text that kernels print. The driver writes it to standard output, which is a memfd here. */
typedef struct bh__cuda_print {
    pthread_mutex_t lock;
    bool open;
    int fd;          /* Owned */
    uint64_t passed; /* bytes that were passed on */
} bh__cuda_print;

struct bh__device_instance {
    bh__driver cu;
    const bh__device_services *services; /* Borrowed */
    int ordinal;
    bh__cu_context context;
    bh__cu_stream stream; /* the control thread's */
    bh__cu_memory_kind memory_kind;
    uint64_t granularity;
    bh__cu_address area; /* the worker's area, as the device sees it */
    bh__device_facts info;
    int available; /* for bh__available_bytes */
    bh__cuda_print print;
    _Atomic bool may_print; /* a module whose kernels may print has been loaded */

    uint64_t address_bytes; /* reserved for chunks, at each of two bases */
    bh__chunk *chunks;      /* control thread's */
    size_t chunk_count;
    bh__cuda_managed *managed;       /* control thread's */
    bh__cu_address *retired_managed; /* to be freed; has room for all of `managed` too */
    size_t managed_count, retired_managed_count;

    /*
     * Lanes hold `tables` for reading while they look things up and queue work, the control
     * thread for writing while it changes them. The device is idle if `tables` is held for writing
     * and all queued work is complete. Loading code, unloading it and unregistering host memory
     * wait for running kernels inside the driver, and copies of other threads wait with them. So
     * they are done only while the device is idle; until then, what is to be freed is retired.
     */
    pthread_rwlock_t tables;
    bh__cuda_module *modules; /* sorted by id, as are hosts */
    bh__cuda_host *hosts;
    size_t module_count, host_count;
    bh__cuda_module *retired;     /* to be unloaded; control thread's, as are the other lists */
    bh__cuda_host *retired_hosts; /* to be unregistered; mapped until then */
    size_t retired_count, retired_host_count;
    struct bh__cuda_sequence *retired_sequences;
    struct bh__cuda_image *_Atomic retired_images; /* lanes add to it */
    bh__cu_module word_module;
    bh__cu_function word_kernel; /* writes a word from within a graph; NULL: not supported */
    struct bh__device_lane *lanes[BH__MAX_LANES];
};

/*
 * A graph that is a chain of launches and writes of `done`, made when it is first needed. A node
 * that gets another kernel after the module of its earlier one was unloaded may run code that no
 * longer exists. So no module is unloaded before the chains that ever used it are destroyed, and
 * the next train makes its chain again. The lane's thread uses a chain with `tables` held for
 * reading; others destroy it with `tables` held for writing and the device idle.
 */
enum { BH__CUDA_MODULE_WORDS = 16 };
typedef struct bh__cuda_train {
    bh__cu_graph graph;
    bh__cu_graph_exec exec;
    uint32_t count; /* of launches */
    /* The modules whose kernels it ever had, one bit for each number, modulo the number of bits.
     * Two modules that share a bit only cost a chain that is made again. */
    uint64_t modules[BH__CUDA_MODULE_WORDS];
    bh__cu_node launches[BH__TRAIN];
    bh__cu_node writes[BH__TRAIN / BH__GROUP_LENGTH];
} bh__cuda_train;

struct bh__device_lane {
    bh__device_instance *device;
    uint32_t index;
    bh__cu_stream stream;
    bh__cu_event events[BH__QUEUE_EVENTS]; /* made early: making one may wait for running kernels */
    struct {
        bh__cu_event begin, end;
    } clocks[BH__QUEUE_CLOCKS]; /* with timing; made early too */
    bh__cuda_train single, train;
    struct bh__cuda_image *images; /* the lane's thread's */
    uint64_t textured;             /* launches with textures so far */
    void *blas;                    /* cuBLAS's handle; NULL: none yet */
    _Atomic uint64_t queued_done;  /* the last `done` that is queued, or one of these: */
};
#define BH__CUDA_NOT_BEGUN (UINT64_MAX - 1)
#define BH__CUDA_QUEUING   UINT64_MAX

/* ---- device.c ---- */

/*
 * Describes a failed call of the driver and returns `status`; or BH_E_FAULT, with an error that
 * describes the fault, if the result means that the context has failed. `what` reads "a chunk of 5
 * bytes cannot be made".
 */
bh_status bh__cuda_fail(const bh__device_instance *device, bh_error *error, int result,
                        bh_status status, const char *fix, const char *what, ...)
    __attribute__((format(printf, 6, 7)));

/* A lane's `done` word, and any word of its area, as the device sees it. */
bh__cu_address bh__cuda_done_word(const bh__device_instance *device, uint32_t lane);
bh__cu_address bh__cuda_lane_word(const bh__device_instance *device, uint32_t lane, size_t offset);

/* ---- idle.c: control thread ---- */

/* Waits until the device is idle and returns with `tables` held for writing, which keeps it idle.
 * False: the worker is being ended. */
bool bh__cuda_idle_wait(bh__device_instance *device);
/* Frees all that is retired, if the device happens to be idle. */
void bh__cuda_free_retired(bh__device_instance *device);

/* ---- files.c ---- */

/* Lists what the driver reads and writes. Called before it is loaded. */
const char *bh__cuda_files(bh__file_list *out);

/* ---- info.c ---- */

/* Describes the device, and refuses one that lacks what is needed. */
bh_status bh__cuda_info_fill(bh__device_instance *device, bh_error *error);

/* ---- modes.c ---- */

/* Refuses a device that no program may use, before a context is created. */
bh_status bh__cuda_modes_check(const bh__device_instance *device, bh_error *error);
/* True if an MPS server shares the device among programs. */
bool bh__cuda_uses_mps(const bh__device_instance *device);
/* Writes to `info` how the device is shared, and whether a standby can be kept beside this worker.
 */
void bh__cuda_modes_fill(bh__device_instance *device);

/* ---- memory.c: control thread ---- */

bh_status bh__cuda_chunk_create(bh__device_instance *device, const bh__chunk *chunk,
                                bh_error *error, int *out_fd);
bh_status bh__cuda_chunk_map(bh__device_instance *device, const bh__chunk *chunk, int fd,
                             bh_error *error);
bh_status bh__cuda_chunk_unmap(bh__device_instance *device, uint32_t id, bh_error *error);
bh_status bh__cuda_host_map(bh__device_instance *device, uint32_t id, void *memory, uint64_t bytes,
                            bh_error *error);
bh_status bh__cuda_host_unmap(bh__device_instance *device, uint32_t id, bh_error *error);
void bh__cuda_unmap_all(bh__device_instance *device);
/* Reserves the addresses at which chunks will be mapped. */
bh_status bh__cuda_reserve(bh__device_instance *device, bh_error *error);
/* Maps a chunk twice, writes it through one address and reads it back through the other. It uses
 * everything once that a lane will use, so that the driver loads nothing later. */
bh_status bh__cuda_self_test(bh__device_instance *device, bh_error *error);
/* With `tables` held. */
const bh__cuda_host *bh__cuda_find_host(const bh__device_instance *device, uint32_t id);

/* ---- managed.c: control thread, except prefetch ---- */

bh_status bh__cuda_managed_create(bh__device_instance *device, const bh__chunk *chunk,
                                  bh_error *error, uint64_t *out_address);
bh_status bh__cuda_managed_advise(bh__device_instance *device, const bh__advice_message *what,
                                  bh_error *error);
/* False: there is none with this id. */
bool bh__cuda_managed_drop(bh__device_instance *device, uint32_t id);
/* The device is idle. */
void bh__cuda_managed_free_retired(bh__device_instance *device);
void bh__cuda_managed_free_all(bh__device_instance *device);
/* Returns the driver's result. */
int bh__cuda_managed_prefetch(bh__device_lane *lane, const bh__copy_body *body);

/* ---- module.c: control thread ---- */

bh_status bh__cuda_module_load(bh__device_instance *device, uint32_t id, const void *image,
                               size_t bytes, bh_error *error, int *out_blob);
bh_status bh__cuda_module_unload(bh__device_instance *device, uint32_t id, bh_error *error);
bh_status bh__cuda_global_set(bh__device_instance *device, const bh__module_message *where,
                              const void *bytes, size_t count, bh_error *error);
void bh__cuda_unload_all(bh__device_instance *device);
/* Unloads it. The device is idle, or closed. */
void bh__cuda_module_free(bh__device_instance *device, bh__cuda_module *module);
/* With `tables` held. */
const bh__cuda_module *bh__cuda_find_module(const bh__device_instance *device, uint32_t id);

/* ---- fit.c: control thread ---- */

bh_status bh__cuda_fit(bh__device_instance *device, const bh__fit_question *question,
                       bh_error *error, bh__fit *out);

/* ---- launch.c, copy.c, train.c: a lane's thread, with `tables` held for reading ---- */

/* The host memory of a copy; NULL: it does not lie in the region. */
uint8_t *bh__cuda_host_memory(const bh__device_instance *device, uint32_t id, uint64_t offset,
                              uint64_t bytes);
/* The shortest pattern that repeats to the same bytes. */
uint32_t bh__cuda_shortest_pattern(const uint8_t *pattern, uint32_t bytes);
/* The kernel of a launch. NULL: there is none, or the size of its parameters differs. */
const bh__cuda_kernel *bh__cuda_find_kernel(const bh__device_instance *device, const bh__work *work,
                                            const bh__cuda_module **out_module, bh_error *error);
/* Everything about a launch except its shape, as attributes. Returns how many there are. */
enum { BH__CUDA_ATTRIBUTES = 5 };
unsigned bh__cuda_launch_attributes(const bh__launch_body *body, bh__cu_launch_attribute *out);
/* A launch as a node of a graph, without its attributes. Points into itself and to the parameters.
 */
typedef struct bh__cuda_node {
    bh__cu_kernel_node kernel;
    size_t param_bytes;
    void *extra[5];
} bh__cuda_node;
void bh__cuda_launch_node(const bh__cuda_kernel *kernel, const bh__work *work, bh__cuda_node *out);
/* BH_E_BUSY: queued, and it may print. */
bh_status bh__cuda_launch(bh__device_lane *lane, const bh__work *work, bh_error *error);
bh_status bh__cuda_copy(bh__device_lane *lane, const bh__work *work, bh_error *error);
/* Queues 1 or BH__TRAIN launches as one graph. */
bh_status bh__cuda_train_send(bh__device_lane *lane, const bh__work *works, uint32_t count,
                              bh_error *error);
void bh__cuda_train_free(bh__device_lane *lane);
/* Destroys the chains that ever used this module, which is about to be unloaded. Control thread;
 * the device is idle. */
void bh__cuda_trains_drop_module(bh__device_instance *device, uint32_t module);

/* ---- tensor_map.c ---- */

/* Has the driver make the 128 bytes of a tensor map, which has been checked. */
bh_status bh__cuda_tensor_map(const bh__device_instance *device, const bh__tensor *tensor,
                              uint8_t *out, bh_error *error);

/* ---- texture.c ---- */

/* Makes the textures and surfaces of a launch, queues the copies of their images into arrays, and
 * writes their handles to `params`: the kernel's parameters. A lane's thread, with `tables` held
 * for reading, as is the next. */
bh_status bh__cuda_textures_begin(bh__device_lane *lane, const bh__work *work,
                                  const bh__cuda_kernel *kernel, uint8_t *params, bh_error *error);
/* After the launch: queues the copies of what surfaces wrote. */
bh_status bh__cuda_textures_end(bh__device_lane *lane, const bh__work *work,
                                const bh__cuda_kernel *kernel, bh_error *error);
/* The lane's thread has ended. */
void bh__cuda_textures_retire(bh__device_lane *lane);
/* Control thread; the device is idle, or closed. */
void bh__cuda_textures_free(bh__device_instance *device);

/* ---- word_node.c ---- */

/* A word that a node of a graph writes. */
typedef struct bh__cuda_word_node {
    uint64_t word, value;
    bool awaited; /* somebody may wait for it */
} bh__cuda_word_node;

/* Loads the kernel that writes words, while no kernel runs yet that the driver would wait for. */
void bh__cuda_word_nodes_open(bh__device_instance *device);
/* Add a node behind another one, and change it. Both return the driver's result. */
int bh__cuda_word_node_add(const bh__device_instance *device, bh__cu_graph graph,
                           const bh__cu_node *after, bh__cuda_word_node *node, bh__cu_node *out);
int bh__cuda_word_node_set(const bh__device_instance *device, bh__cu_graph_exec exec,
                           bh__cu_node which, bh__cuda_word_node *node);

/* ---- sequence.c: control thread; replay: a lane's thread, with `tables` held for reading ---- */

typedef struct bh__cuda_sequence bh__cuda_sequence;
bh_status bh__cuda_sequence_define(bh__device_instance *device, const bh__sequence_image *image,
                                   bh_error *error, void **out);
bh_status bh__cuda_sequence_replay(bh__device_lane *lane, const bh__work *work,
                                   const bh__sequence_image *image, void **made, bh_error *error);
void bh__cuda_sequence_drop(bh__device_instance *device, void *made);
/* The device is idle, or closed. */
void bh__cuda_sequences_free(bh__device_instance *device);

/* ---- print.c ---- */

bh_status bh__cuda_print_open(bh__cuda_print *print, bh_error *error);
void bh__cuda_print_close(bh__cuda_print *print);
/* Passes on what completed kernels have printed. */
void bh__cuda_print_flush(bh__device_instance *device);
/* The same when the context has failed with this result. */
void bh__cuda_print_last(const bh__device_instance *device, int result);

/* The fix for a request that is not valid: the application's library should not have sent it. */
#define BH__CUDA_DEFECT "report this as a defect of libbulkhead"

#endif
