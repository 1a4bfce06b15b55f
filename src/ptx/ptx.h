/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX interpreter: load modules, instantiate them, run blocks. */
#ifndef BH_PTX_PTX_H
#define BH_PTX_PTX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error/error.h"
#include "ptx/texture/texture.h"

/* A parsed and verified module. Immutable once loaded: any number of threads may use it. */
typedef struct bh__ptx_module bh__ptx_module;

typedef struct bh__ptx_param {
    uint32_t offset;
    uint32_t size;
    uint32_t align;
    bool pointer; /* declared with .ptr; false: not known to be a pointer */
    bool scalar;  /* of a floating-point type: known not to be a pointer */
} bh__ptx_param;

#define BH__PTX_MAX_CLUSTER 16 /* blocks */

typedef struct bh__ptx_kernel {
    const char *name;
    const bh__ptx_param *params;
    uint32_t param_count;
    uint32_t param_bytes;   /* size of the packed parameter block */
    uint32_t static_shared; /* bytes */
    uint32_t local_bytes;   /* per thread, call frames included */
    uint32_t registers;     /* 32-bit registers per thread, as declared */
    uint32_t max_threads;   /* per block: from .maxntid / .reqntid, else 1024 */
    uint32_t required[3];   /* .reqntid, or zeros */
    uint32_t cluster[3];    /* blocks in a cluster: .reqnctapercluster, or zeros */
    uint32_t max_cluster;   /* blocks in a cluster, at most: .maxclusterrank */
    bool needs_cluster;     /* .explicitcluster: only launched with a cluster */
} bh__ptx_kernel;

typedef struct bh__ptx_variable {
    const char *name;
    uint64_t size;
    uint32_t align;
    bool constant; /* lives in .const: kernels cannot write it */
} bh__ptx_variable;

/*
 * Parses and verifies a module. An error names the line ("line 12: ..."), quotes the instruction
 * and says how to fix it. BH_E_LOAD: not valid PTX. BH_E_UNSUPPORTED: an instruction or feature
 * that the CPU device does not support. `text` need not end in NUL and is not kept.
 */
bh_status bh__ptx_load(const char *text, size_t length, bh_error *error, bh__ptx_module **out);
/* Equal for what two processes made of one text if native code of one can run in the other. */
uint64_t bh__ptx_fingerprint(const bh__ptx_module *module);
void bh__ptx_free(bh__ptx_module *module);

uint32_t bh__ptx_kernel_count(const bh__ptx_module *module);
const bh__ptx_kernel *bh__ptx_kernel_at(const bh__ptx_module *module, uint32_t index);

/* Module-scope .global and .const variables. */
uint32_t bh__ptx_variable_count(const bh__ptx_module *module);
const bh__ptx_variable *bh__ptx_variable_at(const bh__ptx_module *module, uint32_t index);

/* A module with memory of its own for its variables, initialisers applied. */
typedef struct bh__ptx_image bh__ptx_image;
bh_status bh__ptx_image_create(const bh__ptx_module *module, bh_error *error, bh__ptx_image **out);
void bh__ptx_image_destroy(bh__ptx_image *image);
void *bh__ptx_image_variable(const bh__ptx_image *image, uint32_t index);

/* Global memory a kernel may touch. Device addresses are this process's own addresses. */
typedef struct bh__ptx_range {
    uint64_t base;
    uint64_t size;
    bool writable;
    /* With checks, for memory that buffers are allocated from (base/shadow.h), else NULL and 0: */
    const uint8_t *map;
    uint8_t *marks;
    uint64_t canonical; /* the address that identifies memory mapped by several ranges; 0: `base` */
} bh__ptx_range;

/* Sorted by base, not overlapping, unchanged while a grid that uses it runs. Does not list the
 * module's variables: the image has them. */
typedef struct bh__ptx_memory {
    const bh__ptx_range *ranges;
    size_t count;
} bh__ptx_memory;

typedef enum bh__ptx_fault_kind {
    BH__PTX_FAULT_ADDRESS,   /* not mapped */
    BH__PTX_FAULT_READ_ONLY, /* mapped read-only */
    BH__PTX_FAULT_MISALIGNED,
    BH__PTX_FAULT_TRAP,
    BH__PTX_FAULT_ASSERT,   /* __assertfail */
    BH__PTX_FAULT_BARRIER,  /* threads wait at barriers that can never complete */
    BH__PTX_FAULT_STACK,    /* call stack overflow */
    BH__PTX_FAULT_BAD_CALL, /* an indirect call to an address that is not a function */
    BH__PTX_FAULT_HEAP,     /* free of what malloc did not return */
    BH__PTX_FAULT_MBARRIER, /* an mbarrier that is not initialised, or a count beyond its limits */
    BH__PTX_FAULT_COPY,     /* an asynchronous copy that PTX does not allow */
    BH__PTX_FAULT_TENSOR,   /* a tensor map that is none, or a copy that does not fit it */
    /* Found by checks only: */
    BH__PTX_FAULT_BOUNDS, /* mapped, but in no buffer */
    BH__PTX_FAULT_FREED,
    BH__PTX_FAULT_UNINITIALISED,
    BH__PTX_FAULT_RACE,
    BH__PTX_FAULT_DIVERGED, /* lanes of a warp at different aligned barriers */
    BH__PTX_FAULT_SHUFFLE,  /* a value from a lane that does not take part */
    BH__PTX_FAULT_COPYING   /* a read of what an asynchronous copy may still write */
} bh__ptx_fault_kind;

typedef struct bh__ptx_fault {
    bh__ptx_fault_kind kind;
    uint64_t address; /* where it applies */
    uint32_t size;    /* bytes of the access */
    bool global;      /* the address is in global memory */
    bool write;
    uint32_t block[3];
    uint32_t thread[3];
    uint32_t line;  /* of the PTX source */
    char text[400]; /* all of the above in one sentence, with the instruction */
} bh__ptx_fault;

/* Receives the text of one kernel printf at a time. May be called from several threads at once. */
typedef void bh__ptx_print(void *context, const char *text, size_t length);

/* One side of a finding: an instruction and the thread that executed it. */
typedef struct bh__ptx_finding_place {
    uint32_t code; /* identifies the instruction in its module */
    uint32_t line; /* of the PTX source; 0: there is no such side */
    uint32_t block[3], thread[3];
    bool read, write;     /* both: an atomic operation */
    char file[64];        /* of the source that the PTX was compiled from, or "" */
    uint32_t source_line; /* in `file` */
} bh__ptx_finding_place;

/* What checks found: once for each kind and instruction, for races for each pair of them. */
typedef struct bh__ptx_finding {
    bh__ptx_fault fault;
    bh__ptx_finding_place here, other; /* `other`: of a race, the access before */
    uint64_t count;                    /* how many times it happened */
} bh__ptx_finding;

/* A grid is ended when so many were found, or when they happened so many times. */
enum { BH__PTX_FINDINGS = 100, BH__PTX_OCCURRENCES = 1000000 };

/* The state of checks: see check.h. Used for one grid after the other. */
typedef struct bh__ptx_check bh__ptx_check;
bh__ptx_check *bh__ptx_check_create(void); /* NULL: no memory */
void bh__ptx_check_destroy(bh__ptx_check *check);
void bh__ptx_check_begin(bh__ptx_check *check); /* a grid */
/* Ends a grid. False: out of memory, so not all accesses were checked. */
bool bh__ptx_check_end(bh__ptx_check *check);
/* What was found in the last grid, in the order in which it was found. */
const bh__ptx_finding *bh__ptx_check_findings(const bh__ptx_check *check, uint32_t *count);
/* The state of the thread of the first finding when it happened, as bh__ptx_cluster_state. The
 * caller frees it. NULL: none, or it was taken before. */
char *bh__ptx_check_take_state(bh__ptx_check *check);

/*
 * The memory that malloc in kernels takes. All grids of a device share it; any number of threads
 * may use it. Blocks live until a kernel frees them or the heap is destroyed.
 */
#define BH__PTX_HEAP_BYTES ((uint64_t)8 << 20) /* as much as CUDA has by default */
typedef struct bh__ptx_heap bh__ptx_heap;
bh__ptx_heap *bh__ptx_heap_create(uint64_t bytes); /* less than 4 GiB. NULL: no memory */
void bh__ptx_heap_destroy(bh__ptx_heap *heap);
bool bh__ptx_uses_heap(const bh__ptx_module *module);

/*
 * What the driver gives a cooperative grid for its barrier. Code by NVIDIA's compilers, and the
 * device headers, read its address from %envreg1 and %envreg2.
 */
typedef struct bh__ptx_workspace {
    uint32_t size; /* of this struct */
    uint32_t barrier;
} bh__ptx_workspace;

/*
 * Threads of one block that are followed step by step. The text goes where kernels print.
 */
enum { BH__PTX_DEBUG_WARPS = 32, BH__PTX_DEBUG_POINTS = 63 };
typedef struct bh__ptx_debug_wish {
    uint32_t block[3];
    uint32_t threads[BH__PTX_DEBUG_WARPS]; /* a bit for each */
    bool trace;                            /* show every instruction */
    uint64_t limit;                        /* bytes of text in one launch */
    const char *stop;                      /* a line, or NULL */
    const char *const *prints;             /* REGISTER@LINE */
    uint32_t print_count;
} bh__ptx_debug_wish;

typedef struct bh__ptx_debug bh__ptx_debug;
/* Finds what the wish names in the module. BH_E_INVALID: a line or a register that is not there. */
bh_status bh__ptx_debug_create(const bh__ptx_module *module, const bh__ptx_kernel *kernel,
                               const bh__ptx_debug_wish *wish, bh_error *error,
                               bh__ptx_debug **out);
void bh__ptx_debug_destroy(bh__ptx_debug *debug);

/* What happens to it in one launch: used by the thread that runs the block. */
typedef struct bh__ptx_tracing {
    const bh__ptx_debug *debug;
    uint64_t bytes;     /* of text so far */
    bool cut;           /* there was more */
    char where[280];    /* it was stopped */
    char (*reads)[512]; /* by thread: what the instruction that it executes has read */
    /* Lanes of each warp that wait for others, and where. */
    uint32_t waiting[BH__PTX_DEBUG_WARPS];
    uint32_t waits_at[BH__PTX_DEBUG_WARPS * 32];
} bh__ptx_tracing;
bool bh__ptx_tracing_begin(bh__ptx_tracing *tracing,
                           const bh__ptx_debug *debug); /* false: no memory */
void bh__ptx_tracing_end(bh__ptx_tracing *tracing);

/* Native code of a kernel: see exec.h. */
typedef struct bh__ptx_exec bh__ptx_exec;
typedef struct bh__ptx_group_state bh__ptx_group_state;
typedef uint32_t bh__ptx_compiled(bh__ptx_exec *x, bh__ptx_group_state *state);

/* One launch. Filled in by the caller; shared by all blocks of the grid, and then read-only. */
typedef struct bh__ptx_grid {
    const bh__ptx_image *image;
    const bh__ptx_kernel *kernel; /* of the image's module */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3]; /* blocks in a cluster; zeros: none. `grid` is a multiple of it */
    uint32_t dynamic_shared;
    const void *params; /* kernel->param_bytes bytes */
    const bh__ptx_memory *memory;
    const bh__ptx_textures *textures; /* NULL: none */
    bh__ptx_range workspace; /* a bh__ptx_workspace; size 0: the launch is not cooperative */
    bh__ptx_heap *heap;      /* NULL: malloc returns NULL */
    uint64_t grid_id;
    bh__ptx_print *print;
    void *print_context;
    const _Atomic(bool) *stop;  /* may be NULL; when set to true, running blocks return soon */
    bh__ptx_check *check;       /* NULL: not checked */
    bh__ptx_tracing *tracing;   /* NULL: no threads are followed */
    bh__ptx_compiled *compiled; /* the kernel's native code; NULL: it is interpreted */
} bh__ptx_grid;

/* Whether the launch has the block and the threads that are to be followed. */
bh_status bh__ptx_debug_fits(const bh__ptx_debug *debug, const bh__ptx_grid *grid, bh_error *error);

/* The state of one block: registers, shared and local memory. Used by one thread at a time. It can
 * be reused for many blocks and launches, and allocates only when it must grow. */
typedef struct bh__ptx_block bh__ptx_block;

typedef enum bh__ptx_outcome {
    BH__PTX_DONE,
    BH__PTX_YIELD,   /* the budget was used up: step again, after other blocks */
    BH__PTX_BLOCKED, /* nothing could run until another block of the cluster does */
    BH__PTX_FAULTED, /* `fault` is filled in */
    BH__PTX_STOPPED,
    BH__PTX_AT_LINE /* a thread that is followed has reached the line to stop at */
} bh__ptx_outcome;

bh__ptx_block *bh__ptx_block_create(void); /* NULL: no memory */
void bh__ptx_block_destroy(bh__ptx_block *block);

/* Prepares `block` to run block (x, y, z) of `grid`. Fails only if out of memory. */
bh_status bh__ptx_block_begin(bh__ptx_block *block, const bh__ptx_grid *grid, uint32_t x,
                              uint32_t y, uint32_t z, bh_error *error);

/* Runs for about `budget` warp instructions. The size of steps does not change the result. */
bh__ptx_outcome bh__ptx_block_step(bh__ptx_block *block, uint64_t budget, bh__ptx_fault *fault);

/*
 * A cluster: blocks that run at the same time and reach each other's shared memory. One thread runs
 * all of them, in turn, so that nothing in a cluster needs a lock. Without clusters every block is
 * a cluster of its own, so a launch is always a number of clusters.
 */
typedef struct bh__ptx_cluster bh__ptx_cluster;
bh__ptx_cluster *bh__ptx_cluster_create(void); /* NULL: no memory */
void bh__ptx_cluster_destroy(bh__ptx_cluster *cluster);
uint32_t bh__ptx_cluster_size(const bh__ptx_grid *grid);  /* blocks in each */
uint64_t bh__ptx_cluster_count(const bh__ptx_grid *grid); /* in the grid */
/* Prepares `cluster` to run cluster number `index` of `grid`. Fails only if out of memory. */
bh_status bh__ptx_cluster_begin(bh__ptx_cluster *cluster, const bh__ptx_grid *grid, uint64_t index,
                                bh_error *error);
/* As bh__ptx_block_step, for all of its blocks; never BH__PTX_BLOCKED. */
bh__ptx_outcome bh__ptx_cluster_step(bh__ptx_cluster *cluster, uint64_t budget,
                                     bh__ptx_fault *fault);

/* The state of the thread that faulted in the last step, as text for people: where it is, who
 * called whom, what its registers hold. The caller frees it. NULL: no memory. */
char *bh__ptx_cluster_state(const bh__ptx_cluster *cluster, const bh__ptx_fault *fault);
char *bh__ptx_block_state(const bh__ptx_block *block, const bh__ptx_fault *fault);

#endif
