/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/core.h: errors, devices, kernels, buffers, launches, tickets, lanes. Stable.
 *
 * Most programs need no other header, except compile.h for kernels in CUDA C++. Its order is the
 * order of a first program: open a device, load a kernel, allocate and fill buffers, launch, wait
 * for the ticket, read the result. What a first program can leave out follows from "device options"
 * on. bulkhead.h states the rules that hold for every call.
 *
 * A launch with a time limit, and what to do with its result:
 *
 *     bh_status fill_in_one_second(bh_kernel fill, bh_buffer target, uint32_t n) {
 *         bh_launch_options options = BH_INIT(options);
 *         options.deadline_ns = 1000000000;
 *         bh_ticket ticket;
 *         bh_status status = bh_launch(fill, BH_GRID(n, 256), BH_ARGS(BH_OUT(target), n),
 *                                           &options, &ticket);
 *         if (status != BH_OK) return status;     // refused: bh_last_error has the reason
 *         status = bh_wait(ticket, BH_FOREVER);
 *         if (status != BH_OK) {                  // BH_E_FAULT, BH_E_DEADLINE, BH_E_LOST ...
 *             bh_error error;
 *             bh_ticket_error(ticket, &error);
 *             fprintf(stderr, "%s\nFix: %s\n", error.message, error.fix);
 *         }                                       // the device can be used in any case
 *         return status;
 *     }
 */
#ifndef BULKHEAD_CORE_H
#define BULKHEAD_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of these headers; bh_version has that of the library. */
#define BH_VERSION_MAJOR 0
#define BH_VERSION_MINOR 1
#define BH_VERSION_PATCH 0

#if defined(__GNUC__)
#define BH_API __attribute__((visibility("default")))
#else
#define BH_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status and errors ---- */

typedef int32_t bh_status;

enum {
    BH_OK = 0,
    BH_E_INVALID = 1,     /* an argument is wrong: NULL, out of range, an invalid handle */
    BH_E_NOT_FOUND = 2,   /* no such kernel, variable or file */
    BH_E_UNSUPPORTED = 3, /* valid, but not supported on this device or system */
    BH_E_NO_DEVICE = 4,   /* no such device, or it cannot be used */
    BH_E_NO_MEMORY = 5,   /* out of device memory */
    BH_E_NO_HOST_MEMORY = 6,
    BH_E_COMPILE = 7,
    BH_E_LOAD = 8,         /* a module image was refused */
    BH_E_LAUNCH = 9,       /* a launch was refused */
    BH_E_RESIDENCY = 10,   /* not all blocks of a cooperative launch fit the device at once */
    BH_E_FAULT = 11,       /* the kernel faulted; its worker was replaced */
    BH_E_DEADLINE = 12,    /* the kernel exceeded its deadline; its worker was replaced */
    BH_E_LOST = 13,        /* was in flight on a lost worker, and did not cause the loss */
    BH_E_STALE = 14,       /* needs data that a lost worker may have left half written;
                              or a share token was revoked */
    BH_E_QUARANTINED = 15, /* this kernel faulted repeatedly */
    BH_E_STOPPED = 16,     /* the device has stopped permanently */
    BH_E_BUSY = 17,        /* not now: not completed yet, or the queue is full */
    BH_E_CANCELLED = 18,
    BH_E_TIMEOUT = 19,
    BH_E_IO = 20,
    BH_E_INTERNAL = 21
};

/* "BH_E_FAULT" and so on; "BH_E_?" for an unknown number. */
BH_API const char *bh_status_name(bh_status status);

/* One piece of submitted work. Plain data: copy it, keep it, query it from any thread, any number
 * of times, also when its lane is released and its device closed. One that was never issued is
 * recognised (BH_E_INVALID) as long as its lane is open. */
typedef struct bh_ticket {
    uint64_t lane;
    uint64_t sequence;
} bh_ticket;

/* Needs no size: it has 1,024 bytes in all versions. */
typedef struct bh_error {
    bh_status status;
    int32_t device_code;  /* the device driver's own code; 0: none */
    char device_name[64]; /* the name of that code: "CUDA_ERROR_ILLEGAL_ADDRESS" on a GPU,
                             "ILLEGAL_ADDRESS" on the CPU device */
    char message[512];    /* what was wrong */
    char fix[256];        /* what to do about it */
    char kernel[128];     /* the kernel concerned; "": none */
    bh_ticket ticket;     /* the work concerned; zero: none */
    uint64_t generation;  /* of the worker that was lost; 0: none was */
    uint32_t certain;     /* 1: this work is the cause; 0: one of several possible causes, which
                             the message names */
    uint32_t reason;      /* of a refused launch: BH_REASON_... (kernel.h); 0: none. Of other work
                             that must not wait: BH_REASON_QUEUE_FULL where that is why */
    uint64_t requested, limit; /* of a refused launch: the two numbers that conflict; 0: none */
    uint8_t reserved[8];
} bh_error;

/* The error of this thread's last failed call. Returns its status. */
BH_API bh_status bh_last_error(bh_error *out);
/* The same as one text, "BH_E_LOAD: ...\nFix: ...", for printing. It is valid until the thread's
 * next call of this function; "" if no call has failed. */
BH_API const char *bh_last_message(void);

/* The version of the library in use: "0.1.0". */
BH_API const char *bh_version(void);

enum { BH_LOG_ERROR = 1, BH_LOG_WARNING = 2, BH_LOG_INFO = 3, BH_LOG_DEBUG = 4 };

/* The library never prints. It passes messages up to `max_level` to `log`; NULL turns them off. On
 * return the function set before does not run any more, unless it is the caller.
 * `log` may run on any thread, never with a lock held. It must not wait for work. Calls that need
 * the thread it runs on can be refused there: allocating memory, opening lanes and loading modules
 * with BH_E_BUSY, bh_device_close with BH_E_INVALID. */
typedef void bh_log_fn(void *context, int32_t level, const char *text);
BH_API bh_status bh_log_set(bh_log_fn *log, void *context, int32_t max_level);

/* ---- handles and types ---- */

typedef struct bh_device {
    uint64_t id;
} bh_device;
typedef struct bh_lane {
    uint64_t id;
} bh_lane;
typedef struct bh_module {
    uint64_t id;
} bh_module;
typedef struct bh_kernel {
    uint64_t id;
} bh_kernel;
typedef struct bh_buffer {
    uint64_t id;
} bh_buffer;

/* The type of a buffer's elements. */
typedef uint32_t bh_type;
enum {
    BH_I8 = 1,
    BH_U8 = 2,
    BH_I16 = 3,
    BH_U16 = 4,
    BH_I32 = 5,
    BH_U32 = 6,
    BH_I64 = 7,
    BH_U64 = 8,
    BH_F16 = 9,
    BH_BF16 = 10,
    BH_F32 = 11,
    BH_F64 = 12,
    BH_C64 = 13, /* complex: two BH_F32, the real part first */
    BH_C128 = 14 /* complex: two BH_F64 */
};
BH_API size_t bh_type_size(bh_type type);      /* in bytes; 0 for an unknown type */
BH_API const char *bh_type_name(bh_type type); /* "f32"; "?" for an unknown type */

/* `bh_device_options o = BH_INIT(o);` sets o.size and zeroes the rest. */
#ifdef __cplusplus
#define BH_INIT(options) bulkhead::detail::sized<decltype(options)>()
#else
#define BH_INIT(options)                                                                           \
    { .size = (uint32_t)sizeof(options) }
#endif

#define BH_FOREVER UINT64_MAX /* a timeout that never expires */
#define BH_WHOLE   UINT64_MAX /* a count of a view, the bytes of a fill: to the end of the buffer */

/* ---- opening and closing a device ---- */

typedef struct bh_device_options bh_device_options; /* see "device options" */

/* Starts a worker process for the device, and a standby. NULL options open a GPU if there is one
 * and the CPU device otherwise. A device can be opened several times: each time it gets workers of
 * its own, which cannot harm each other. */
BH_API bh_status bh_device_open(const bh_device_options *options, bh_device *out);

/* Lets submitted work finish for close_timeout_ns, and results in transparent buffers reach the
 * host; cancels the rest (BH_E_CANCELLED), runs the callbacks that are due, ends the workers, and
 * frees everything that belongs to the device. Its tickets can still be queried afterwards. */
BH_API bh_status bh_device_close(bh_device device);

/* ---- modules and kernels (compiling: compile.h; details: kernel.h) ---- */

/* An image is PTX text, a cubin or a fatbin; its contents say which. The CPU device runs PTX only
 * and refuses the others. A GPU refuses machine code for other GPUs. */
BH_API bh_status bh_module_load(bh_device device, const void *image, size_t bytes, bh_module *out);
BH_API bh_status bh_module_load_file(bh_device device, const char *path, bh_module *out);
/* The handles of the module and its kernels are invalid at once. The module itself is unloaded when
 * the work that uses it has completed. BH_E_BUSY: its compile or load has not completed; the handle
 * stays valid. */
BH_API bh_status bh_module_release(bh_module module);

/* Finds a kernel by its name in the module, or by a name expression that the module was compiled
 * with. */
BH_API bh_status bh_kernel_get(bh_module module, const char *name, bh_kernel *out);

/* ---- buffers: device memory with an element type and a count ---- */

enum {
    BH_BUFFER_ZERO = 1u << 0 /* filled with zeros, on the device's own lane, before other work */
    /* managed.h has BH_BUFFER_MANAGED and its like, share.h has BH_BUFFER_SHAREABLE */
};

typedef struct bh_buffer_options {
    uint32_t size;
    uint32_t flags;  /* BH_BUFFER_... */
    const char *tag; /* what it is for, or BH_HERE; copied. NULL: none. See memory.h */
    uint64_t align;  /* of the address: a power of two up to 64 KiB; default 256. With
                        BH_DEVICE_GUARD the default is 16, so that the buffer ends at the guard */
} bh_buffer_options;

/* The place in the source where this stands, "train.c:214", as a tag. */
#define BH_HERE         __FILE__ ":" BH_TEXT_(__LINE__)
#define BH_TEXT_(line)  BH_TEXT2_(line)
#define BH_TEXT2_(line) #line

/* The contents are undefined unless BH_BUFFER_ZERO is set. options NULL: the defaults. A count of 0
 * gives a buffer like any other, without elements: transfers of 0 bytes work, and kernels get an
 * address at which there is nothing. BH_E_NO_MEMORY: more than the device has. */
BH_API bh_status bh_buffer_alloc(bh_device device, bh_type type, uint64_t count,
                                 const bh_buffer_options *options, bh_buffer *out);
/* The memory is reused when the last reference and the last view are released and the work that
 * uses it has completed. */
BH_API bh_status bh_buffer_release(bh_buffer buffer);

/* Offsets and sizes are in bytes; 0 bytes are BH_OK and move nothing. These four run on the
 * device's own lane, after the work that is queued there, and return when the data is in place. If
 * a worker is lost meanwhile, they continue on its replacement. On a stopped device bh_buffer_read
 * still reads intact bytes (suspect bytes: BH_E_STALE), through a worker that runs no kernels,
 * unless no worker can be started any more or the driver manages the buffer (BH_BUFFER_DRIVER). No
 * other transfer does: a copy to another device is refused too (BH_E_STOPPED). */
BH_API bh_status bh_buffer_write(bh_buffer buffer, uint64_t offset, const void *source,
                                 uint64_t bytes);
BH_API bh_status bh_buffer_read(bh_buffer buffer, uint64_t offset, void *target, uint64_t bytes);
/* The buffers may be of two devices: then the copy goes through host memory. */
BH_API bh_status bh_buffer_copy(bh_buffer target, uint64_t target_offset, bh_buffer source,
                                uint64_t source_offset, uint64_t bytes);
/* Repeats a pattern of 1 to BH_PATTERN_MAX bytes. `bytes` is a multiple of its length, BH_WHOLE: to
 * the end of the buffer. */
BH_API bh_status bh_buffer_fill(bh_buffer buffer, uint64_t offset, uint64_t bytes,
                                const void *pattern, uint32_t pattern_bytes);
enum { BH_PATTERN_MAX = 65536 };

/* ---- launching (BH_GRID, BH_ARGS, BH_IN and so on: args.h) ---- */

typedef struct bh_dim {
    uint32_t x, y, z;
} bh_dim;

/* Components left out at the end, {64} or {8, 8}, are zero and count as 1. A zero before a
 * component that is not zero, {0, 1, 1}, is refused, and so is a grid of {0, 0, 0}: such shapes
 * come from errors in arithmetic. A cluster of {0, 0, 0} is the one that the kernel was built for,
 * or none. */
typedef struct bh_shape {
    bh_dim grid;
    bh_dim block;
    bh_dim cluster;
    uint32_t shared_bytes; /* dynamic shared memory */
} bh_shape;

/* How a kernel uses a buffer. OUT: it writes all of it and does not need the old contents. */
enum { BH_ACCESS_IN = 1, BH_ACCESS_OUT = 2, BH_ACCESS_INOUT = 3 };

enum {
    BH_ARG_VALUE = 1,     /* the first `size` bytes of u.value */
    BH_ARG_DATA = 2,      /* `size` bytes at u.data, read before the call returns */
    BH_ARG_BUFFER = 3,    /* u.buffer, with `access` */
    BH_ARG_HOST = 4,      /* u.host, with `access`; for bh_dispatch only */
    BH_ARG_TEXTURE = 5,   /* u.object, the id of a bh_texture; texture.h */
    BH_ARG_SURFACE = 6,   /* u.object, the id of a bh_surface */
    BH_ARG_TENSOR_MAP = 7 /* u.object, the id of a bh_tensor_map, with `access`; tensor_map.h */
};

/* One argument. C and C++ make it with the macros of args.h; bindings fill it in. */
typedef struct bh_arg {
    uint16_t kind;   /* BH_ARG_... */
    uint16_t access; /* BUFFER, HOST, TENSOR_MAP: BH_ACCESS_... */
    uint32_t size;   /* VALUE, DATA: bytes */
    union {
        uint8_t value[16];
        const void *data;
        struct {
            bh_buffer handle;
            uint64_t at_least; /* the launch is refused if the buffer has fewer bytes; 0: any */
        } buffer;
        struct {
            void *data; /* an array of the program */
            uint64_t bytes;
        } host;
        uint64_t object;
    } u;
} bh_arg;

typedef struct bh_args {
    const bh_arg *list;
    size_t count;
} bh_args;

/* A buffer that the kernel reaches through a pointer in another buffer. */
typedef struct bh_use {
    bh_buffer buffer;
    uint32_t access; /* BH_ACCESS_IN ... */
    uint32_t reserved;
} bh_use;

enum {                                 /* for everything that is submitted */
       BH_SUBMIT_IDEMPOTENT = 1u << 0, /* may be run again from the start if its worker is lost */
       BH_SUBMIT_NO_BLOCK = 1u << 1,   /* BH_E_BUSY instead of waiting: BH_LANE_NO_BLOCK */
       BH_SUBMIT_WAIT = 1u << 2,       /* return when it is done, with its status */
       BH_SUBMIT_TIMED = 1u << 3       /* keep its times for bh_ticket_get_info (observe.h) */
};

enum {                                      /* for launches */
       BH_LAUNCH_COOPERATIVE = 1u << 8,     /* all blocks run at once, or the launch is refused */
       BH_LAUNCH_WRITABLE_INPUTS = 1u << 9, /* pass inputs by their writable address */
       BH_LAUNCH_PRIORITY = 1u << 10,       /* use `priority` instead of the lane's */
       /* Programmatic dependent launch. The device may start the kernel while the previous launch
        * of the lane still runs, once all blocks of that launch have ended or have allowed it
        * (griddepcontrol.launch_dependents). The kernel itself waits (griddepcontrol.wait) before
        * it touches what the previous launch writes. This is a permission, not a guarantee: where
        * the device records the completion of the previous launch, the kernel starts after that
        * record. BH_E_UNSUPPORTED on devices without it. */
       BH_LAUNCH_PROGRAMMATIC = 1u << 11
};

/* How the blocks of clusters are distributed over the device, if it has clusters. */
enum { BH_CLUSTER_DEFAULT = 0, BH_CLUSTER_SPREAD = 1, BH_CLUSTER_BALANCE = 2 };

typedef struct bh_launch_options {
    uint32_t size;
    uint32_t flags; /* BH_SUBMIT_..., BH_LAUNCH_... */
    bh_lane lane;   /* zero: the device's own */
    /* Maximum running time; 0: the device's default. On a GPU up to 8 launches may complete as one:
     * together they have the deadline of the first, times their number. */
    uint64_t deadline_ns;
    const bh_use *also; /* buffers reached through pointers */
    size_t also_count;
    int32_t priority;        /* with BH_LAUNCH_PRIORITY: within the range of bh_device_limits */
    uint32_t cluster_policy; /* BH_CLUSTER_... */
    uint64_t elements;       /* threads that have work to do, for the counters; 0: all */
    const bh_ticket *after; /* work of other lanes of the device that must have ended first, well or
                               not. Work on the same buffers is waited for in any case */
    size_t after_count;
} bh_launch_options;

/* Checks the launch and submits it, to the device's own lane unless the options name another:
 *
 *     bh_launch(saxpy, BH_GRID(n, 256), BH_ARGS(2.0f, BH_IN(x), BH_INOUT(y), n), NULL, &ticket);
 *
 * options NULL: the defaults. A launch that does not fit the kernel or the device is refused here,
 * with the numbers in bh_last_error. Errors that occur when it runs are reported by the ticket. */
BH_API bh_status bh_launch(bh_kernel kernel, bh_shape shape, bh_args args,
                           const bh_launch_options *options, bh_ticket *out);

/* ---- tickets ---- */

/* The result of the work: BH_OK, its error, or BH_E_TIMEOUT if it has not completed in time. With a
 * timeout of 0 it never waits: BH_E_BUSY if the work has not completed; that is never the
 * result of work. A failed wait is a failed call: bh_last_message has the ticket's error. BH_E_BUSY
 * is an answer, not a failed call: it does not change bh_last_error. */
BH_API bh_status bh_wait(bh_ticket ticket, uint64_t timeout_ns);
/* Waits for all of them and returns the first error in the order given; BH_E_TIMEOUT (with a
 * timeout of 0 BH_E_BUSY) if not all have completed. BH_E_BUSY does not change bh_last_error. */
BH_API bh_status bh_wait_all(const bh_ticket *tickets, size_t count, uint64_t timeout_ns);
/* Fills in the details of the ticket's error and returns what bh_wait with a timeout of 0
 * returns. BH_E_BUSY does not change bh_last_error. */
BH_API bh_status bh_ticket_error(bh_ticket ticket, bh_error *out);

/* Cancels work that no worker has started, compiles included: its ticket gets BH_E_CANCELLED.
 * BH_E_BUSY: it has started. BH_E_INVALID: it has completed. */
BH_API bh_status bh_cancel(bh_ticket ticket);

/* Runs exactly once, on the device's dispatcher thread, with no lock held. It may make any call
 * that does not wait. BH_E_STOPPED: the ticket's lane was released or its device closed. */
typedef void bh_done_fn(void *context, bh_ticket ticket, bh_status status);
BH_API bh_status bh_on_done(bh_ticket ticket, bh_done_fn *done, void *context);
/* Makes the device's eventfd readable when the work completes, at once if it has completed.
 * BH_E_STOPPED: the ticket's lane was released or its device closed. */
BH_API bh_status bh_notify(bh_ticket ticket);

/* ---- device options ---- */

enum {
    BH_DEVICE_NO_STANDBY = 1u << 0,       /* a lost worker is replaced by one started cold */
    BH_DEVICE_NO_RESTART_LIMIT = 1u << 1, /* as a restart_limit of UINT32_MAX */
    BH_DEVICE_CHECK = 1u << 2,            /* check every memory access, CPU device: observe.h */
    BH_DEVICE_GUARD = 1u << 3,            /* unmapped memory behind each buffer: observe.h */
    /* A crashed worker may leave a core dump, if the system's settings ask for one. By default it
     * leaves none. */
    BH_DEVICE_CORE_DUMPS = 1u << 4,
    BH_DEVICE_PRIVATE = 1u << 5 /* not shown to `bulkhead top` and `bulkhead serve`, which otherwise
                                   show the device to its own user; as BULKHEAD_PUBLISH=off */
};

/* Libraries that workers may load, for the operations of blas.h, fft.h and solver.h. */
enum { BH_LIBRARY_BLAS = 1u << 0, BH_LIBRARY_FFT = 1u << 1, BH_LIBRARY_SOLVER = 1u << 2 };

/* Decides what follows from a loss: observe.h. */
typedef struct bh_loss bh_loss;
typedef struct bh_verdict bh_verdict;
typedef void bh_policy_fn(void *context, const bh_loss *loss, bh_verdict *verdict);

typedef struct bh_device_options {
    uint32_t size;
    uint32_t flags; /* BH_DEVICE_... */
    /* "cpu", "cuda", "cuda:1", or "auto" (default): the first NVIDIA GPU if the machine has one,
     * otherwise the CPU. A GPU that cannot be used is an error, never a silent change to the CPU.
     * A list takes the first device that can be used: "cuda,cpu" is a GPU if one can be used, else
     * the CPU; bh_device_info.passed_over says why not the ones before it. */
    const char *device;
    const char *worker_dir;     /* the folder of the worker programs; default: found */
    uint64_t restart_window_ns; /* default 60 s */
    uint32_t restart_limit;     /* losses allowed in that window, at most 65536; default 1000;
                                   UINT32_MAX: any number. See observe.h */
    uint32_t quarantine_after;  /* certain faults of a kernel, default 16: observe.h */
    uint64_t deadline_ns;       /* of launches that set none; default none */
    uint64_t wait_spin_ns;      /* how long a waiter spins before it sleeps; default 20 us */
    uint64_t worker_spin_ns;    /* how long an idle lane of the worker spins; default 50 us */
    uint64_t close_timeout_ns;  /* how long close lets running work finish; default 10 s */
    /* Maximum bytes of device memory that the library holds, in buffers and in the variables of
     * modules; default: what the device has. */
    uint64_t memory_limit;
    /* Queue slots of a lane, a power of two from 64 to 65536; default 1024. Kernels with more than
     * 7072 bytes of parameters need 128 or more, the largest need 512. */
    uint32_t queue_length;
    uint32_t standbys; /* kept ready beside the worker, at most 4; default 1. None at all:
                          BH_DEVICE_NO_STANDBY */
    /* How long a worker that has work to do may make no progress before it counts as lost. Default
     * 5 s; UINT64_MAX: no limit. It counts as stuck if
     *
     * - its process does not answer;
     * - it does not start a request that nothing blocks;
     * - one call to the device's driver does not return;
     * - it does not carry out an order (24 times as long for module loads, new memory and
     *   sequences, where drivers compile);
     * - a transfer takes this long and one second more for each 256 MB.
     *
     * Kernels may run as long as they like: their limit is deadline_ns. While one runs, only the
     * process itself is watched, because some calls to drivers wait for kernels. Time in which the
     * application itself is stopped does not count. Raise this limit to debug workers. */
    uint64_t stuck_timeout_ns;
    bh_policy_fn *policy; /* decides what follows from a loss; NULL: the limits do */
    void *policy_context;
    const char *report_dir; /* an existing folder that gets a file for each loss; NULL: none. See
                               bh_device_get_report */
    uint32_t sandbox;       /* BH_SANDBOX_... (observe.h) */
    uint32_t executor;      /* BH_EXECUTE_... (kernel.h): who runs kernels on the CPU device */
    uint64_t print_limit;   /* maximum bytes of kernel output that wait for watchers (observe.h);
                             default 1 MiB */
    uint32_t libraries; /* BH_LIBRARY_...: those that library calls may use; default none. Workers
                           of the CPU device load them when they start: library.h */
    uint32_t reserved;
} bh_device_options;

/* ---- devices: properties, health, waiting ---- */

typedef struct bh_device_info {
    uint32_t size;
    uint32_t cooperative; /* 1: cooperative launches are supported */
    char kind[16];        /* "cpu", "cuda" */
    char name[128];       /* of the hardware */
    char driver[64];      /* the driver and its version */
    char arch[16];        /* "sm_90" */
    char uuid[48];        /* "GPU-...", "MIG-..."; "": none */
    char pci[24];         /* "0000:3b:00.0"; "": none */
    uint64_t memory_total;
    uint64_t memory_free;     /* when the worker started */
    uint32_t multiprocessors; /* CPU device: threads that run blocks */
    uint32_t warp_size;
    uint32_t max_threads_per_block;
    uint32_t driver_version; /* 13000 for CUDA 13.0; 0: none */
    char no_standby[192];    /* why no standby can be kept; "": one is kept */
    uint32_t sandbox;        /* what confines the worker: BH_CONFINED_... (observe.h) */
    char sandbox_lack[188];  /* what should confine it and does not, and why; "": nothing */
    char passed_over[256];   /* why devices earlier in the list were not opened; "": none was */
} bh_device_info;

/* More numbers of the hardware: bh_device_get_limits (observe.h). */
BH_API bh_status bh_device_get_info(bh_device device, bh_device_info *out);

enum {
    BH_HEALTH_OK = 1,
    BH_HEALTH_DEGRADED = 2,  /* work runs; fewer standbys are ready than requested */
    BH_HEALTH_REPLACING = 3, /* a worker was lost: work waits for the next one; or the device is
                                stopping, and `reason` says so */
    BH_HEALTH_STOPPED = 4,   /* permanently */
    BH_HEALTH_CLOSING = 5    /* a thread is in bh_device_close */
};

typedef struct bh_health {
    uint32_t size;
    uint32_t state;            /* BH_HEALTH_... */
    uint64_t generation;       /* of the worker: 1 at first, one more with each takeover */
    uint64_t losses;           /* so far */
    uint32_t losses_in_window; /* that count against restart_limit now */
    uint32_t restart_limit;    /* a loss beyond it stops the device; UINT32_MAX: no limit */
    uint32_t standbys_ready; /* that would take over at once. One that executes an order, such as a
                                module load, is not; the state stays BH_HEALTH_OK meanwhile */
    uint32_t standbys;       /* requested */
    int32_t worker_pid;      /* 0: there is none at the moment */
    int32_t standby_pids[4]; /* those that are ready come first; 0: none */
    uint32_t lanes;          /* open now, with the device's own */
    uint64_t oldest_running_ns; /* for how long the oldest request that runs has been running; 0:
                                   none runs. It is seen within 20 ms of its start */
    char reason[256];           /* why the state is not BH_HEALTH_OK */
} bh_health;

/* Never waits, whatever the device and other threads do, and works on a stopped device. May be
 * called from any callback. Memory: bh_memory_get_info. */
BH_API bh_status bh_device_get_health(bh_device device, bh_health *out);

/* Waits until everything submitted so far has a result, and until callbacks have been called for
 * losses and for what kernels printed. BH_OK whatever the results are, BH_E_TIMEOUT, or with a
 * timeout of 0, which never waits, BH_E_BUSY. */
BH_API bh_status bh_device_sync(bh_device device, uint64_t timeout_ns);

/* A descriptor for poll or epoll. It becomes readable when work armed with bh_notify completes.
 * Read its 8 bytes to rearm it. It belongs to the device: do not close it. */
BH_API bh_status bh_device_eventfd(bh_device device, int *out_fd);

/* ---- lanes: the work of one lane runs in order, lanes run concurrently ---- */

enum {
    /* Submissions never wait. BH_E_BUSY: the queue is full, or so is the memory that plain data is
     * copied to first; nothing was submitted. BH_E_UNSUPPORTED: it could never be submitted without
     * waiting, for example more than 8 MiB of plain memory. Calls that return when data is in
     * place, such as reads into plain memory, wait for room too. */
    BH_LANE_NO_BLOCK = 1u << 0
};

typedef struct bh_lane_options {
    uint32_t size;
    uint32_t flags; /* BH_LANE_... */
    /* Higher is more urgent; default 0. Clamped to the device's range,
     * bh_device_limits.priority_lowest to priority_highest. Work of an urgent lane starts first;
     * running work is not interrupted. */
    int32_t priority;
    uint32_t reserved;
} bh_lane_options;

/* Every device has a lane from the start. Calls that take a lane use it when they are given a zero
 * lane. options NULL: the defaults. BH_E_BUSY: all bh_device_limits.max_lanes are in use.
 *
 * A lane's priority never changes. A device keeps its released lanes and reuses them, but only for
 * the priority they were made with: BH_E_BUSY if the remaining ones have another. */
BH_API bh_status bh_lane_open(bh_device device, const bh_lane_options *options, bh_lane *out);
/* Submitted work still runs. The handle is invalid at once. */
BH_API bh_status bh_lane_release(bh_lane lane);
/* Waits until the lane's work has results: as bh_device_sync, for one lane. */
BH_API bh_status bh_lane_sync(bh_lane lane, uint64_t timeout_ns);

/* ---- buffers: references, views, properties ---- */

/* One more reference: the buffer needs one more bh_buffer_release. */
BH_API bh_status bh_buffer_retain(bh_buffer buffer);

/* A view: `count` elements of `type` from element `first` on, as a buffer of its own, counted in
 * that type. It shares the memory and keeps it alive. type 0: the buffer's own; count BH_WHOLE: to
 * its end. BH_E_INVALID unless that is a whole number of elements and the first one is aligned for
 * the type. */
BH_API bh_status bh_buffer_view(bh_buffer buffer, bh_type type, uint64_t first, uint64_t count,
                                bh_buffer *out);

typedef struct bh_buffer_info {
    uint32_t size;
    bh_type type;
    uint64_t count;
    uint64_t bytes;
    uint64_t address; /* on the device, writable. The same for as long as the buffer lives,
                         takeovers included */
    uint64_t read_only_address; /* on the device; inputs are passed by this address */
    bh_device device;
    uint32_t suspect; /* 1: a lost worker may have left some of it half written */
    uint32_t is_view;
    uint64_t suspect_offset; /* the range that covers all suspect bytes */
    uint64_t suspect_bytes;
    void *pointer; /* of a managed buffer: its host copy; else NULL */
    /* The last work submitted that writes the buffer or a buffer that shares its memory, whatever
     * its result; zero: none. The library's own transfers for managed buffers count. */
    bh_ticket last_write;
    bh_lane last_writer; /* its lane, also if that is released; zero: the device's own */
    uint32_t flags;      /* the kind of memory: BH_BUFFER_MANAGED and its like, BH_BUFFER_SHAREABLE
                            (imported ones too); 0: plain */
    uint32_t reserved;
} bh_buffer_info;

BH_API bh_status bh_buffer_get_info(bh_buffer buffer, bh_buffer_info *out);

/* Declares that the suspect contents of a buffer are good enough. */
BH_API bh_status bh_buffer_accept(bh_buffer buffer);

/* ---- transfers as work on a lane, host memory ---- */

/* A write has copied its source when it returns, unless the source is memory from bh_host_alloc:
 * that is read when the work runs. The target of a read must be memory from bh_host_alloc. Rows:
 * request.h. */
BH_API bh_status bh_submit_write(bh_lane lane, bh_buffer buffer, uint64_t offset,
                                 const void *source, uint64_t bytes, bh_ticket *out);
BH_API bh_status bh_submit_read(bh_lane lane, bh_buffer buffer, uint64_t offset, void *target,
                                uint64_t bytes, bh_ticket *out);
BH_API bh_status bh_submit_copy(bh_lane lane, bh_buffer target, uint64_t target_offset,
                                bh_buffer source, uint64_t source_offset, uint64_t bytes,
                                bh_ticket *out);
BH_API bh_status bh_submit_fill(bh_lane lane, bh_buffer buffer, uint64_t offset, uint64_t bytes,
                                const void *pattern, uint32_t pattern_bytes, bh_ticket *out);

/* Host memory, at least 1 byte, that the device reads and writes directly. Transfers that are only
 * partly in it are refused. The system reserves it and provides it page by page when it is first
 * written, so that BH_OK does not say that the machine has as much. */
BH_API bh_status bh_host_alloc(bh_device device, uint64_t bytes, void **out);
/* Waits for submitted work that uses the memory. BH_E_BUSY: a sequence uses it. */
BH_API bh_status bh_host_free(bh_device device, void *memory);

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "args.h" /* BH_GRID, BH_ARGS, BH_IN and so on */

#endif
