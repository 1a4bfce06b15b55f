/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device: its state, shared by the files of src/cpu/. */
#ifndef BH_CPU_CPU_H
#define BH_CPU_CPU_H

#include <pthread.h>

#include "cpu/code_memory.h"
#include "library/operation.h"
#include "ptx/ptx.h"
#include "wire/texture.h"
#include "worker/device.h"

extern const bh__device_ops bh__cpu_device;

enum {
    BH__CPU_SHARED_DEFAULT = 48 * 1024,
    BH__CPU_SHARED_MAX = 227 * 1024,
    BH__CPU_MAX_THREADS = 1024,
    BH__CPU_BLOCKS_PER_PROCESSOR = 32, /* of a cooperative launch */
    BH__CPU_GRANULARITY = 64 * 1024,
    BH__CPU_STACK_BYTES = 512 * 1024,
    BH__CPU_PRINT_BYTES = 16 * 1024
};

/* ---- view.c: what lanes see of memory and modules ---- */

typedef struct bh__cpu_native bh__cpu_native; /* native.h */

typedef struct bh__cpu_module {
    uint32_t id;
    const bh__library *library; /* NULL: `code` */
    bh__ptx_module *code;
    bh__ptx_image *image;
    bh__cpu_native *native; /* Owned. NULL: its kernels are interpreted */
} bh__cpu_module;

typedef struct bh__cpu_chunk {
    bh__chunk chunk;
    uint8_t *marks, *map; /* with checks: base/shadow.h. Else NULL. */
} bh__cpu_chunk;

typedef struct bh__cpu_host {
    uint32_t id;
    uint8_t *memory; /* Borrowed from the worker */
    uint64_t bytes;
} bh__cpu_host;

/*
 * An immutable snapshot of all that a lane looks up. The control thread makes a new one with each
 * change. A lane keeps the one it has until it sees that there is a newer one, so that a launch
 * takes no lock. Modules and hosts are sorted by id.
 */
typedef struct bh__cpu_view {
    uint32_t users; /* under the device's view_lock */
    bh__ptx_memory memory;
    bh__ptx_range *ranges;
    bh__cpu_module *modules;
    bh__cpu_host *hosts;
    size_t module_count, host_count;
    bh__ptx_heap *heap; /* or NULL */
} bh__cpu_view;

/* Makes the device's chunks, modules and hosts visible to lanes. If there is no memory, the old
 * view stays in use. That is an error where something was added; what was removed is freed all the
 * same, because no request uses it any more. */
bh_status bh__cpu_view_renew(bh__device_instance *device, bh_error *error);
/* Replaces *held, which may be NULL, with the current view. */
void bh__cpu_view_follow(bh__device_instance *device, bh__cpu_view **held);
void bh__cpu_view_drop(bh__device_instance *device, bh__cpu_view **held);
const bh__cpu_module *bh__cpu_view_module(const bh__cpu_view *view, uint32_t id);
const bh__cpu_host *bh__cpu_view_host(const bh__cpu_view *view, uint32_t id);
/* The range that contains an address, or ends right before it; NULL: none. */
const bh__ptx_range *bh__cpu_view_range(const bh__cpu_view *view, uint64_t address);
/* True if all of [address, address + bytes) may be read, or written. */
bool bh__cpu_view_covers(const bh__cpu_view *view, uint64_t address, uint64_t bytes, bool write);

/* ---- memory.c: chunks and host regions; control thread ---- */

bh_status bh__cpu_chunk_create(bh__device_instance *device, const bh__chunk *chunk, bh_error *error,
                               int *out_fd);
bh_status bh__cpu_chunk_map(bh__device_instance *device, const bh__chunk *chunk, int fd,
                            bh_error *error);
bh_status bh__cpu_chunk_unmap(bh__device_instance *device, uint32_t id, bh_error *error);
bh_status bh__cpu_driver_create(bh__device_instance *device, const bh__chunk *chunk,
                                bh_error *error, uint64_t *out_address);
bh_status bh__cpu_driver_advise(bh__device_instance *device, const bh__advice_message *what,
                                bh_error *error);
bh_status bh__cpu_host_map(bh__device_instance *device, uint32_t id, void *memory, uint64_t bytes,
                           bh_error *error);
bh_status bh__cpu_host_unmap(bh__device_instance *device, uint32_t id, bh_error *error);
void bh__cpu_unmap_all(bh__device_instance *device);

/* ---- mapping.c ---- */

/* Maps a file at exactly this address. Returns 0 or an errno; EEXIST: the address is in use. */
int bh__cpu_map_at(uint64_t address, uint64_t bytes, int fd, bool writable);
void bh__cpu_unmap_at(uint64_t address, uint64_t bytes);

/* ---- module.c: control thread ---- */

bh_status bh__cpu_module_load(bh__device_instance *device, uint32_t id, const void *image,
                              size_t bytes, bh_error *error, int *out_blob);
bh_status bh__cpu_module_unload(bh__device_instance *device, uint32_t id, bh_error *error);
bh_status bh__cpu_global_set(bh__device_instance *device, const bh__module_message *where,
                             const void *bytes, size_t count, bh_error *error);
/* NULL: there is no such module. */
bh__cpu_module *bh__cpu_find_module(bh__device_instance *device, uint32_t id);
void bh__cpu_unload_all(bh__device_instance *device);

/* ---- pool.c: threads that help lanes with large grids ---- */

/* A running launch. Belongs to its lane; helpers use it between joining and leaving. */
typedef struct bh__cpu_job {
    bh__device_instance *device;
    bh__ptx_grid grid;
    const bh__cpu_module *module;
    uint64_t total; /* clusters; without clusters every block is one */
    bh__ptx_workspace workspace;
    bh__ptx_tracing tracing; /* used if grid.tracing says so */
    bool cooperative;
    uint32_t share;        /* cooperative: clusters a thread takes at once */
    _Atomic uint64_t next; /* the first cluster that is not taken */
    _Atomic bool stop;     /* it has failed: blocks that still run must end */
    _Atomic bool failed;   /* the thread that sets it first says why: */
    bool faulted;          /* true: `fault`; false: `error` */
    bh__ptx_fault fault;
    char *state;       /* Owned, or NULL: of the thread that faulted */
    uint32_t findings; /* with checks: how many, of which `fault` is the first */
    bh_error error;

    /* Under the pool's lock. */
    bool listed;
    uint32_t wanted;  /* helpers that may still join */
    uint32_t helpers; /* that have joined and not left */
    struct bh__cpu_job *newer;

    pthread_mutex_t print_lock;
    size_t print_bytes;
    char print[BH__CPU_PRINT_BYTES];
} bh__cpu_job;

typedef struct bh__cpu_pool {
    bh__device_instance *device;
    uint32_t size;         /* maximum number of threads */
    pthread_mutex_t lock;  /* taken with no other lock held */
    pthread_cond_t called; /* there is a job to help with, or the pool is closing */
    pthread_cond_t left;   /* the last helper has left a job */
    bh__cpu_job *jobs;     /* jobs that want helpers, oldest first */
    pthread_t *threads;
    uint32_t started, named, idle;
    bool closing;
} bh__cpu_pool;

bh_status bh__cpu_pool_open(bh__cpu_pool *pool, bh__device_instance *device, uint32_t size,
                            bh_error *error);
void bh__cpu_pool_close(bh__cpu_pool *pool);
/* Asks for up to `helpers` threads to run blocks of this job; they join when they are free. */
void bh__cpu_pool_call(bh__cpu_pool *pool, bh__cpu_job *job, uint64_t helpers);
/* Lets no more helpers join and waits until all have left. */
void bh__cpu_pool_dismiss(bh__cpu_pool *pool, bh__cpu_job *job);

/* ---- launch.c ---- */

/* Runs clusters of a job, beside other threads, until none are left. *cluster is the state of one;
 * it is created if NULL and kept for the next job. */
void bh__cpu_job_help(bh__cpu_job *job, bh__ptx_cluster **cluster);
/* Control thread. */
bh_status bh__cpu_fit(bh__device_instance *device, const bh__fit_question *question,
                      bh_error *error, bh__fit *out);
bh_status bh__cpu_launch(bh__device_lane *lane, const bh__work *work, bh_error *error);
/* Faults have the device codes of the CUDA driver. */
enum { BH__CPU_ILLEGAL_ADDRESS = 700 };
/* The illegal access of the launch that faulted; *bytes 0: not known. */
void bh__cpu_fault_place(const bh__device_lane *lane, uint64_t *address, uint32_t *bytes);
const char *bh__cpu_fault_state(const bh__device_lane *lane);

/* ---- texture.c ---- */

/* The textures and surfaces of the launch that runs on a lane. */
typedef struct bh__cpu_textures {
    bh__ptx_textures all;
    const bh__ptx_texture *list[BH_OBJECTS_MAX]; /* in order of their addresses */
    bh__ptx_texture texture[BH_OBJECTS_MAX];
} bh__cpu_textures;

/* Makes those of a launch with BH__LAUNCH_OBJECTS, and writes their handles to its parameters. */
bh_status bh__cpu_textures_make(bh__device_lane *lane, const bh__work *work, bh_error *error);

/* ---- finding.c ---- */

typedef struct bh__cpu_fault_kind {
    int code;
    const char *name, *fix;
} bh__cpu_fault_kind;

const bh__cpu_fault_kind *bh__cpu_fault_kind_of(bh__ptx_fault_kind kind, bool checked);
uint32_t bh__cpu_findings(const bh__device_lane *lane, uint32_t first, bh_finding *out,
                          uint32_t capacity);

/* ---- debug.c: kernels whose threads are followed ---- */

typedef struct bh__cpu_debug bh__cpu_debug;

/* Control thread. Replaces what is followed of a kernel; no bytes: nothing. */
bh_status bh__cpu_debug_set(bh__device_instance *device, const bh__module_message *which,
                            const void *data, size_t bytes, bh_error *error);
void bh__cpu_debug_forget(bh__device_instance *device, uint32_t module);
/* What is followed in a launch that begins; NULL: nothing. Left when it ends. */
bh__cpu_debug *bh__cpu_debug_enter(bh__device_instance *device, uint32_t module, uint32_t kernel);
void bh__cpu_debug_leave(bh__device_instance *device, bh__cpu_debug *debug);
const bh__ptx_debug *bh__cpu_debug_made(const bh__cpu_debug *debug);

/* ---- copy.c ---- */

bh_status bh__cpu_copy(bh__device_lane *lane, const bh__work *work, bh_error *error);

/* ---- info.c ---- */

void bh__cpu_info_fill(bh__device_facts *info);

/* ---- the device and its lanes ---- */

struct bh__device_instance {
    const bh__device_services *services; /* Borrowed */
    bh__device_facts info;

    /* Control thread: */
    bh__cpu_chunk *chunks;
    bh__cpu_module *modules;
    bh__cpu_host *hosts;
    size_t chunk_count, module_count, host_count;
    bh__ptx_heap *heap; /* made when the first module that uses it is loaded, or NULL */
    uint64_t chunk_bytes;
    int available; /* for bh__available_bytes; opened before files are confined */

    pthread_mutex_t view_lock;
    _Atomic(bh__cpu_view *) view; /* the current one; holds one use of it */
    _Atomic uint64_t launches;    /* to number grids */
    bh__cpu_pool pool;
    bh__cpu_code_memory code; /* control thread */

    pthread_mutex_t debug_lock;
    bh__cpu_debug *debugs;
    _Atomic uint32_t debug_count; /* 0: launches need not look */
};

struct bh__device_lane {
    bh__device_instance *device;
    uint32_t index;
    bh__cpu_view *view;
    bh__ptx_cluster *cluster; /* created at the first launch */
    bh__ptx_check *check;     /* with checks, the same */
    bh__cpu_textures textures;
    bh__cpu_job job;
};

static inline bool bh__cpu_killed(const bh__device_instance *device) {
    return atomic_load_explicit(device->services->killed, memory_order_acquire);
}

/* The fix for a request that is not valid: the application's library should not have sent it. */
#define BH__CPU_DEFECT "report this as a defect of libbulkhead"

#endif
