/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/kernel.h: kernels and module variables in detail; checking a launch before it is made.
 * Stable.
 *
 * The largest block that a kernel can be launched with, up to the one wanted:
 *
 *     bh_status largest_block(bh_kernel kernel, uint32_t wanted, uint32_t *threads) {
 *         bh_preflight answer = BH_INIT(answer);
 *         bh_status status =
 *             bh_launch_preflight(kernel, BH_SHAPE(1, 1, 1, wanted, 1, 1), NULL, NULL, &answer);
 *         if (status == BH_OK) *threads = answer.error.status ? answer.fits_block.x : wanted;
 *         return status;
 *     }
 */
#ifndef BULKHEAD_KERNEL_H
#define BULKHEAD_KERNEL_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- kernels ---- */

/* Up to `capacity` kernels of the module, in the order of its image. *count gets how many it has;
 * capacity 0 only asks for that. */
BH_API bh_status bh_module_list_kernels(bh_module module, bh_kernel *kernels, size_t capacity,
                                        size_t *count);

/* Who runs a kernel on the CPU device: docs/architecture/jit.md. */
enum {
    BH_EXECUTOR_DEVICE = 0, /* a GPU */
    BH_EXECUTOR_INTERPRETER = 1,
    BH_EXECUTOR_JIT = 2 /* native code */
};

/* bh_device_options.executor: who is to run kernels. Devices that are not "cpu" ignore it. */
enum {
    BH_EXECUTE_DEFAULT = 0, /* what BULKHEAD_EXECUTOR says (interp, jit, auto); else interp */
    BH_EXECUTE_INTERPRETER = 1,
    BH_EXECUTE_JIT = 2, /* native code, made when a module is loaded: loads wait for it */
    BH_EXECUTE_AUTO = 3 /* the interpreter at first, native code as soon as it is there */
};

typedef struct bh_kernel_info {
    uint32_t size;
    uint32_t param_count;
    uint32_t param_bytes;
    uint32_t static_shared;
    uint32_t local_bytes;
    uint32_t registers;
    uint32_t max_threads;
    uint32_t quarantined;
    uint32_t required_block[3]; /* zeros: any. A launch with one thread gets this block */
    uint32_t faults;            /* certain ones, since the last bh_kernel_pardon */
    char name[256];
    uint32_t executor;             /* BH_EXECUTOR_..., of launches that begin now */
    uint32_t native_instructions;  /* JIT: that are native code */
    uint32_t handled_instructions; /* JIT: that native code calls the interpreter for */
    uint32_t compile_us;           /* JIT: how long making the code took, in microseconds */
    char executor_note[128]; /* JIT: the instruction that is handled most often. INTERPRETER: why
                                there is no native code, if it was requested. Else "" */
} bh_kernel_info;

typedef struct bh_param_info {
    uint32_t size;
    uint32_t offset;
    uint32_t bytes;
    uint32_t pointer; /* 1: known to be a pointer */
} bh_param_info;

BH_API bh_status bh_kernel_get_info(bh_kernel kernel, bh_kernel_info *out);
BH_API bh_status bh_kernel_get_param(bh_kernel kernel, uint32_t index, bh_param_info *out);
/* Lets a quarantined kernel run again. */
BH_API bh_status bh_kernel_pardon(bh_kernel kernel);

typedef struct bh_occupancy {
    uint32_t size;
    uint32_t blocks_per_multiprocessor; /* that can be resident at once */
    uint64_t resident_blocks;           /* the same on the whole device */
    /* Theoretical, 0 to 1: resident warps divided by those there is room for. On the CPU device:
     * the part of its warps' lanes that a block fills. */
    double occupancy;
    uint32_t recommended_block;  /* threads that the device recommends for this kernel */
    uint32_t recommended_grid;   /* the fewest blocks of that size that fill the device */
    uint32_t max_threads;        /* in a block of this kernel */
    uint32_t max_dynamic_shared; /* bytes, beside its static shared memory */
    uint32_t max_cluster;        /* blocks in the largest cluster; 0: no clusters */
    uint32_t reserved;
} bh_occupancy;

/* How many blocks of this size, shared memory and cluster the device runs at once, and which block
 * it recommends. The grid of the shape is ignored. For a block that cannot be launched the first
 * three numbers are zero; bh_launch_preflight says why. BH_E_LAUNCH: a dimension is zero. */
BH_API bh_status bh_kernel_get_occupancy(bh_kernel kernel, bh_shape shape, bh_occupancy *out);

/* ---- variables of a module ----
 *
 * The `__device__` and `__constant__` variables of a module. Those of a fatbin cannot be reached,
 * because neither the fatbin nor the driver lists them.
 *
 * Variables are lost with a worker. In the next worker they have the values of the image, and over
 * those the values that bh_module_global_write has set. For a variable that no kernel of the module
 * can write, these are the values it had, and nothing changes for the program. If a kernel can
 * write one, and a kernel of the module was launched since the last loss, its value is unknown:
 * launches of the module and reads of the variable return BH_E_STALE until bh_module_accept, even
 * if the program had set it.
 *
 * Which variables kernels can write is determined when the module is loaded, by following their
 * addresses through PTX and through what bh_compile and bh_module_compile produce. In other cubins
 * every variable whose address the code has counts as written, in fatbins all do.
 *
 * Writes and reads come after the launches and sequences of the module that were submitted before
 * them, on every lane. Launches on different lanes are not ordered by the variables that they use:
 * name the earlier ones in bh_launch_options.after.
 *
 * BH_OK from a write means that all bytes are set and that later workers start with them. After any
 * other status the variable has its old value. If only a part of the range could be set, the
 * message says which part, and the module is stale.
 */
BH_API bh_status bh_module_global_write(bh_module module, const char *name, uint64_t offset,
                                        const void *source, uint64_t bytes);
BH_API bh_status bh_module_global_read(bh_module module, const char *name, uint64_t offset,
                                       void *target, uint64_t bytes);
BH_API bh_status bh_module_global_size(bh_module module, const char *name, uint64_t *out);
/* Lets a stale module continue with the values that the new worker started with: those of the image
 * and of bh_module_global_write. Launches that were submitted before the loss do not run with
 * them. */
BH_API bh_status bh_module_accept(bh_module module);

/* ---- checking a launch ---- */

/* Why a launch is refused. */
typedef uint32_t bh_reason;
enum {
    BH_REASON_NONE = 0,
    BH_REASON_ZERO_DIMENSION = 1,
    BH_REASON_GRID_AXIS = 2,           /* an axis of the grid exceeds the device's limit */
    BH_REASON_BLOCK_AXIS = 3,          /* an axis of the block does */
    BH_REASON_BLOCK_THREADS = 4,       /* the block has more threads than the device allows */
    BH_REASON_KERNEL_THREADS = 5,      /* ... than this kernel allows: registers, launch bounds */
    BH_REASON_REQUIRED_BLOCK = 6,      /* the kernel was built for another block */
    BH_REASON_SHARED_MEMORY = 7,       /* static and dynamic together */
    BH_REASON_CLUSTER_UNSUPPORTED = 8, /* the device has no clusters */
    BH_REASON_CLUSTER_GRID = 9,        /* the grid is not a multiple of the cluster */
    BH_REASON_CLUSTER_SIZE = 10,       /* too many blocks in a cluster */
    BH_REASON_REQUIRED_CLUSTER = 11,   /* the kernel was built for another cluster, or needs one */
    BH_REASON_COOPERATIVE_UNSUPPORTED = 12,
    BH_REASON_RESIDENCY = 13, /* cooperative: not all blocks can run at once */
    BH_REASON_ATTRIBUTE = 14, /* priority, cluster policy or PROGRAMMATIC: not supported */
    BH_REASON_ARGUMENT_COUNT = 15,
    BH_REASON_ARGUMENT_SIZE = 16,
    BH_REASON_ARGUMENT_KIND = 17, /* a number instead of a pointer, or the reverse */
    BH_REASON_BUFFER_SMALL = 18,  /* fewer bytes than declared */
    BH_REASON_BUFFER_HANDLE = 19, /* released, of another device, or invalid */
    BH_REASON_SUSPECT = 20,       /* reads what a lost worker may have left half written */
    BH_REASON_QUARANTINED = 21,
    BH_REASON_MODULE_STALE = 22, /* the variables of its module were lost with a worker */
    BH_REASON_QUEUE_FULL = 23,
    BH_REASON_OTHER = 24,           /* see bh_last_error */
    BH_REASON_PARAMETER_BYTES = 25, /* more bytes of parameters than the lane's queue can hold */
    BH_REASON_BUFFER_BUSY = 26      /* a managed buffer is mapped, or attached elsewhere */
};
/* "residency" and so on, as in the one-line form below; "?" for an unknown number. */
BH_API const char *bh_reason_name(bh_reason reason);

typedef struct bh_preflight {
    uint32_t size;
    uint32_t cooperative;
    bh_dim grid, block, cluster; /* as they count: without zeros, except for no cluster */
    uint32_t static_shared, dynamic_shared;
    uint32_t reserved;
    uint64_t resident_blocks; /* that can run at once on the whole device */
    bh_dim fits_grid;         /* the largest grid up to the one given that fits with this block */
    bh_dim fits_block; /* the largest block up to the one given that fits with this grid; zeros:
                          none does */
    char kernel[256];
    bh_error error; /* status BH_OK: it would be accepted. Otherwise what bh_launch would report,
                       with reason, requested and limit */
} bh_preflight;

/* Would this launch be accepted? The code that checks launches answers, and the device where only
 * the device knows; nothing is launched. BH_OK: answered, see out->error. The thread's last error
 * is not changed.
 *
 * A launch is refused for the same reason: the shape, the kernel and the lane are checked first,
 * then the arguments. args NULL: they are not looked at. Not known before a launch: whether the
 * queue has room, and whether a managed buffer is mapped or attached elsewhere by then. If the
 * block or its shared memory is impossible, resident_blocks is zero, and fits_grid is for
 * fits_block. `options` may be NULL. */
BH_API bh_status bh_launch_preflight(bh_kernel kernel, bh_shape shape, const bh_args *args,
                                     const bh_launch_options *options, bh_preflight *out);

/* One line for logs and tools, always with these fields in this order; later versions may add
 * fields at the end:
 *
 *   bulkhead-launch-v1|kernel=saxpy|status=blocked|reason=kernel_threads|requested=1024|limit=512
 *   |grid=4x1x1|block=1024x1x1|shared=0+0|cooperative=no|resident=0|cluster=none
 *   |fix=launch%20blocks%20of%20at%20most%20512%20threads
 *
 * (in one line). status is ok or blocked. reason is none or a bh_reason_name. shared is static +
 * dynamic bytes. resident is the number of blocks that can run at once (0: not determined). In the
 * name and in fix '|', '%', spaces and control characters are written as %7C and so on.
 * BH_E_INVALID: `capacity` is too small; BH_LINE_BYTES is always enough. preflight NULL: this
 * thread's last refused launch; BH_E_NOT_FOUND: there is none. */
enum { BH_LINE_BYTES = 2560 };
BH_API bh_status bh_preflight_line(const bh_preflight *preflight, char *text, size_t capacity);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
