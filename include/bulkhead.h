/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulkhead: GPU kernels in watertight compartments.
 *
 * A program opens a device, loads kernels, allocates buffers, launches, and waits on tickets.
 * The kernels run in a worker process. When one of them faults or hangs, the worker is lost, a
 * standby takes over with every intact buffer in place at the same address, and the program goes
 * on. The same program runs without a GPU on the CPU device, which executes the same PTX.
 *
 *     bh_device gpu;
 *     bh_module mod;
 *     bh_kernel saxpy;
 *     bh_buffer x, y;
 *
 *     bh_device_open(NULL, &gpu);
 *     bh_module_load_file(gpu, "saxpy.ptx", &mod);
 *     bh_kernel_get(mod, "saxpy", &saxpy);
 *     bh_buffer_alloc(gpu, BH_F32, n, &x);
 *     bh_buffer_alloc(gpu, BH_F32, n, &y);
 *     bh_buffer_write(x, 0, hx, n * sizeof *hx);
 *     bh_buffer_write(y, 0, hy, n * sizeof *hy);
 *
 *     bh_ticket done;
 *     bh_launch(saxpy, BH_GRID(n, 256), BH_ARGS(2.0f, BH_IN(x), BH_INOUT(y), n), &done);
 *     if (bh_wait(done, BH_FOREVER) != BH_OK) {
 *         bh_error why;
 *         bh_ticket_error(done, &why);
 *         fprintf(stderr, "%s\nFix: %s\n", why.message, why.fix);
 *     }
 *     bh_buffer_read(y, 0, hy, n * sizeof *hy);
 *     bh_device_close(gpu);
 *
 * What holds everywhere:
 *
 * - Calls return a bh_status; BH_OK is zero. After a failed call bh_last_error gives the message,
 *   what to do about it, and the device's own code, for the calling thread.
 * - Handles (device, lane, module, kernel, buffer, prepared launch) are 64-bit values, zero being none. A closed,
 *   foreign or forged handle is always recognised and answered with BH_E_INVALID. Closing a device
 *   closes all that belongs to it.
 * - Any thread may make any call. Work goes to lanes; a lane runs its work in order, lanes run
 *   side by side. Work on different lanes that touches the same buffer is ordered by the library,
 *   on the device.
 * - If a call that takes a callback or a ticket fails, the callback never runs and the ticket is
 *   not written. A ticket that nobody will ask about may be NULL.
 * - Structs that may grow start with their own size, set by BH_INIT:
 *   `bh_device_options o = BH_INIT(o);` zeroes the rest. In options zero is always the default, and
 *   NULL options are all defaults. Structs that are filled in (bh_device_info and so on) need their
 *   size set too.
 * - After a fork while a device is open, every call in the child returns BH_E_STOPPED.
 */
#ifndef BULKHEAD_H
#define BULKHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* ---- status and errors ------------------------------------------------------------------- */

typedef int32_t bh_status;

enum {
    BH_OK = 0,
    BH_E_INVALID = 1,     /* an argument is wrong: NULL, out of range, a handle that is not one */
    BH_E_NOT_FOUND = 2,   /* no such kernel, global, file */
    BH_E_UNSUPPORTED = 3, /* understood, and not to be had here */
    BH_E_NO_DEVICE = 4,   /* no such device, or it cannot be used */
    BH_E_NO_MEMORY = 5,   /* device memory */
    BH_E_NO_HOST_MEMORY = 6,
    BH_E_COMPILE = 7,
    BH_E_LOAD = 8,       /* a module image was refused */
    BH_E_LAUNCH = 9,     /* a launch was refused */
    BH_E_RESIDENCY = 10, /* a cooperative launch does not fit the device at once */
    BH_E_FAULT = 11,     /* the kernel faulted; its worker was replaced */
    BH_E_DEADLINE = 12,  /* the kernel overran its deadline; its worker was replaced */
    BH_E_LOST = 13,      /* in flight on a worker that was lost, not to blame */
    BH_E_STALE = 14,     /* needs data that a lost worker may have left half written; a share token
                              that was withdrawn */
    BH_E_QUARANTINED = 15, /* this kernel faulted again and again */
    BH_E_STOPPED = 16,     /* the device has stopped for good */
    BH_E_BUSY = 17,        /* not now: not done yet, or the queue is full */
    BH_E_CANCELLED = 18,
    BH_E_TIMEOUT = 19,
    BH_E_IO = 20,
    BH_E_INTERNAL = 21
};

/* "BH_E_FAULT" and so on; "BH_E_?" for a number that is none. */
BH_API const char *bh_status_name(bh_status status);

/* A ticket stands for one piece of submitted work. Plain data: copy it, keep it, ask it from any
 * thread, any number of times. */
typedef struct bh_ticket {
    uint64_t lane;
    uint64_t sequence;
} bh_ticket;

typedef struct bh_error {
    bh_status status;
    int32_t device_code;  /* the device's own code, 0 where there is none */
    char device_name[64]; /* and its name, "CUDA_ERROR_ILLEGAL_ADDRESS" */
    char message[512];    /* what was wrong */
    char fix[256];        /* what to do about it */
    char kernel[128];     /* the kernel concerned, "" where there is none */
    bh_ticket ticket;     /* the work concerned, zero where there is none */
    uint64_t generation;  /* of the worker that was lost, 0 where none was */
    uint32_t
        certain; /* 1: this work is to blame; 0: one of several candidates, named in the message */
    uint32_t reserved;
} bh_error;

/* The last failed call of this thread. Returns its status. */
BH_API bh_status bh_last_error(bh_error *out);

/* The version of the library in use, "0.1.0". */
BH_API const char *bh_version(void);

/* The library never prints. Messages go to `log`, on any thread, never while a lock is held; NULL
 * stops them. It must not wait for work. Calls that need what its thread is there for (new memory,
 * lanes, modules, closing the device) may be refused there: BH_E_BUSY, or BH_E_INVALID for the close. */
enum { BH_LOG_ERROR = 1, BH_LOG_WARNING = 2, BH_LOG_INFO = 3, BH_LOG_DEBUG = 4 };
typedef void bh_log_fn(void *context, int32_t level, const char *text);
BH_API bh_status bh_log_set(bh_log_fn *log, void *context, int32_t max_level);

/* ---- handles and types ---------------------------------------------------------------------- */

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
typedef struct bh_prepared {
    uint64_t id;
} bh_prepared;

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
    BH_F64 = 12
};
BH_API size_t bh_type_size(bh_type type);      /* 0 for what is no type */
BH_API const char *bh_type_name(bh_type type); /* "f32"; "?" for what is no type */

#ifdef __cplusplus
#define BH_INIT(options) bulkhead_detail::sized<decltype(options)>()
#else
#define BH_INIT(options)                                                                           \
    { .size = (uint32_t)sizeof(options) }
#endif
#define BH_FOREVER UINT64_MAX

/* ---- devices ------------------------------------------------------------------------------- */

enum {
    BH_DEVICE_NO_STANDBY = 1u << 0, /* a lost worker is replaced by one started cold */
    BH_DEVICE_NO_RESTART_LIMIT = 1u << 1,
    BH_DEVICE_CHECK = 1u << 2, /* see below */
    BH_DEVICE_GUARD = 1u << 3  /* see below */
};

/*
 * BH_DEVICE_CHECK: every access of a kernel is checked, on the CPU device only (BH_E_UNSUPPORTED on
 * others). What is found ends the launch with BH_E_FAULT; device_name says what it was:
 *
 *   CHECK_OUT_OF_BOUNDS   outside of every buffer, to the byte; also of shared and local memory and
 *                         of a module's variables
 *   CHECK_USE_AFTER_FREE  in a buffer that was released
 *   CHECK_UNINITIALISED   a read of bytes of a buffer that nothing has written: no write, fill or
 *                         copy, no kernel
 *   CHECK_RACE            two threads of a launch access the same bytes of global or shared memory,
 *                         one of them writes, not both atomically, and nothing orders the two: a
 *                         barrier, for lanes of a warp a .sync operation, between blocks a fence
 *                         and an atomic or volatile access after it. Writes of the same value are
 *                         no race among themselves.
 *   CHECK_BARRIER         lanes of one warp wait at different barriers
 *
 * The message names the access, the thread and the line, for a race both. A launch runs on one
 * thread, many times slower, and a race that this one order does not show can be missed. Memory
 * that is released is kept from reuse for a while, and buffers lie further apart.
 */

/*
 * BH_DEVICE_GUARD: each buffer has memory of its own, padded to 16 bytes, that ends where nothing is
 * mapped, on every kind of device. A kernel that runs past the end of a buffer beyond that padding,
 * or uses a buffer that was released, faults there and then (BH_E_FAULT) and writes nowhere else.
 * The CPU device knows the address, and the message names the buffer: "12 bytes past the end of
 * argument 0, a buffer of f32[100]". A GPU does not tell it: there the message names what the launch
 * was given and what was released last.
 *
 * For debugging: every allocation and release is a message to the worker, and each buffer costs a
 * descriptor and whole pieces of memory (64 KiB on the CPU device, 2 MiB on a GPU). What lies before
 * a buffer is mapped for as much of such a piece as it does not fill. Not together with
 * BH_DEVICE_CHECK, which finds more, and on the CPU device only.
 */

/* ---- losses: what happened, and what follows from it ---- */

enum {
    BH_LOSS_FAULT = 1,    /* a kernel faulted, or crashed the worker */
    BH_LOSS_DEADLINE = 2, /* a kernel overran its deadline */
    BH_LOSS_LOST = 3,  /* the worker ended, or was ended: killed, exited, no longer making sense */
    BH_LOSS_STUCK = 4, /* the worker was alive and did nothing: stuck_timeout_ns, or a deadline
                              that passed before the request was begun */
    BH_LOSS_NO_MEMORY = 5, /* the device has no memory left for what the worker needs */
    BH_LOSS_BROKEN = 6     /* the device says that it is broken, or workers do not start */
};

typedef struct bh_loss {
    uint32_t size;
    bh_status cause;     /* BH_E_FAULT, BH_E_DEADLINE, BH_E_LOST */
    uint64_t generation; /* of the worker that was lost */
    uint32_t certain;
    uint32_t stopped;      /* 1: the device stopped, nothing took over */
    uint32_t from_standby; /* 1: a standby that was ready took over, 0: a worker started cold, or
                              still starting */
    uint32_t failed;       /* requests that got BH_E_FAULT or BH_E_DEADLINE */
    uint32_t lost;         /* ... BH_E_LOST */
    uint32_t stale;        /* ... BH_E_STALE */
    uint32_t resent;       /* in flight, idempotent, sent again */
    uint32_t suspect_buffers;
    uint64_t takeover_ns; /* from knowing of the loss to the next worker being told to go on */
    char kernel[128];
    char message[512];
    uint32_t kind; /* BH_LOSS_FAULT ... */
    uint32_t reserved;
    uint64_t number; /* of the device's losses, from 1 on */
} bh_loss;

/*
 * What follows from a loss. The defaults keep good work running beside bad requests, and stop the
 * device where nothing works:
 *
 *   The budget of restarts is restart_limit losses; it is full at first, and grows back evenly over
 *   restart_window_ns. A loss that it has no room for stops the device. BH_DEVICE_NO_RESTART_LIMIT:
 *   there is no budget. With restart_limit 0, the default, 1000 losses in 60 s are allowed, but no 20
 *   in a row without one completed request in between.
 *   Workers that fail to start three times in a row, or a device that says it is broken, stop the
 *   device whatever the budget.
 *   A kernel is quarantined (BH_E_QUARANTINED until bh_kernel_pardon) after quarantine_after certain
 *   faults. With quarantine_after 0, the default, after 16, where each launch of it that completed
 *   takes one back: a kernel that always faults is quarantined, one that sometimes gets bad input is
 *   not. UINT32_MAX: never.
 *
 * A policy, if the program has one, decides in their place.
 */
typedef struct bh_verdict {
    uint32_t size;
    uint32_t go_on;      /* 1: another worker goes on; 0: the device stops */
    uint32_t quarantine; /* 1: the kernel to blame, if loss->kernel names one, is quarantined */
    uint32_t reserved;
} bh_verdict;

/*
 * Called at each loss, before anything gets its verdict, with what the limits would decide; may change
 * it. loss->stopped is 1 where they would stop the device; what is counted and timed in *loss is not
 * known yet and zero. Called once more where workers fail to start again and again (kind
 * BH_LOSS_BROKEN or BH_LOSS_NO_MEMORY, go_on 0): with go_on 1 they are started again, at growing
 * intervals. It runs on a thread of the library with no lock held, and no work is done meanwhile:
 * return soon. Calls to the same device that take a handle or wait are refused with BH_E_INVALID, except
 * bh_device_get_health and bh_device_get_report.
 */
typedef void bh_policy_fn(void *context, const bh_loss *loss, bh_verdict *verdict);

typedef struct bh_device_options {
    uint32_t size;
    uint32_t flags;
    const char *device;         /* "auto" (default), "cpu", "cuda", "cuda:1" */
    const char *worker_dir;     /* where the worker programs are; default: found */
    uint64_t restart_window_ns; /* default 60 s */
    uint32_t restart_limit;     /* see "What follows from a loss"; default 1000 */
    uint32_t quarantine_after;  /* likewise; default 16 */
    uint64_t deadline_ns;       /* for launches that name none; default none */
    uint64_t wait_spin_ns;      /* how long a waiter spins before it sleeps; default 20 us */
    uint64_t worker_spin_ns;    /* how long an idle lane of the worker spins; default 50 us */
    uint64_t close_timeout_ns;  /* how long close lets running work finish; default 10 s */
    uint64_t memory_limit; /* bytes of device memory the library may hold; default the device's */
    uint32_t queue_length; /* queue slots of a lane, a power of two; default 1024. Kernels with more
                              than 7072 bytes of parameters need 128 or more, the largest 512 */
    uint32_t standbys; /* kept beside the worker, up to 4; default 1. See BH_DEVICE_NO_STANDBY */
    /*
     * How long a worker that has something to do may show no sign of life before it counts as lost;
     * default 5 s, UINT64_MAX for ever. It counts as stuck if its process does not answer, if it
     * does not begin a request that nothing holds up, if one call to the device's driver does not
     * return, if it does not carry out what it was told (24 times as long for module loads, new
     * memory and sequences, where drivers compile), or if a transfer takes this long and a second
     * more for each 256 MB. Kernels may run as long as they like: their limit is deadline_ns. While
     * one runs, only the process itself is watched, since drivers wait for kernels here and there.
     * Time in which the application itself is stopped does not count. Raise it to look at workers
     * in a debugger.
     */
    uint64_t stuck_timeout_ns;
    bh_policy_fn *policy; /* decides what follows from a loss; NULL: the limits do */
    void *policy_context;
    const char *report_dir; /* an existing directory: each loss leaves a file there; NULL: none. See
                               bh_device_get_report */
} bh_device_options;

BH_API bh_status bh_device_open(const bh_device_options *options, bh_device *out);

/*
 * Lets submitted work finish for close_timeout_ns, cancels the rest (BH_E_CANCELLED), runs the
 * callbacks that are due, ends the workers, frees everything that belongs to the device. Tickets
 * can be asked afterwards.
 */
BH_API bh_status bh_device_close(bh_device device);

/* Who may use a GPU: anybody, one process, nobody. */
enum { BH_COMPUTE_DEFAULT = 0, BH_COMPUTE_EXCLUSIVE = 1, BH_COMPUTE_PROHIBITED = 2 };

typedef struct bh_device_info {
    uint32_t size;
    uint32_t cooperative; /* 1 if cooperative launches work */
    char kind[16];        /* "cpu", "cuda" */
    char name[128];       /* of the hardware */
    char driver[64];      /* what runs it, with its version */
    char arch[16];        /* "sm_90" */
    uint64_t memory_total;
    uint64_t memory_free;     /* when the worker started */
    uint32_t multiprocessors; /* CPU: threads that run blocks */
    uint32_t warp_size;
    uint32_t max_threads_per_block;
    uint32_t max_block[3];
    uint32_t max_grid[3];
    uint32_t shared_per_block; /* without opt-in */
    uint32_t shared_per_block_max;
    uint32_t registers_per_block;
    uint32_t max_lanes;
    /* Of one kernel: 32764; before CUDA 12.1 and sm_70 4096. */
    uint32_t max_param_bytes;
    char uuid[48];         /* "GPU-...", "MIG-..."; empty where there is none */
    char pci[24];          /* "0000:3b:00.0"; empty where there is none */
    char no_standby[192];  /* why no standby can be kept here; empty: one is kept */
    uint32_t ecc;          /* 1: on */
    uint32_t compute_mode; /* BH_COMPUTE_DEFAULT ... */
    uint32_t mig;          /* 1: part of a GPU, a MIG instance */
    uint32_t mps;          /* 1: shared with other programs by an MPS server */
    uint32_t clock_khz;
    uint32_t memory_clock_khz;
    uint32_t memory_bus_bits;
    uint32_t l2_bytes;
    uint32_t registers_per_multiprocessor;
    uint32_t shared_per_multiprocessor;
    uint32_t max_threads_per_multiprocessor;
    uint32_t max_blocks_per_multiprocessor;
    uint32_t async_engines;      /* copies that can run beside kernels */
    uint32_t concurrent_kernels; /* 1: lanes run side by side */
    uint32_t cluster_launch;     /* 1 if launches in clusters work */
    int32_t priority_lowest;     /* of lanes; both 0: priorities have no effect */
    int32_t priority_highest;
    uint32_t driver_version; /* 13000 for CUDA 13.0; 0 where there is none */
} bh_device_info;

BH_API bh_status bh_device_query(bh_device device, bh_device_info *out);

typedef struct bh_device_entry {
    char name[32];    /* what bh_device_options.device takes */
    bh_status status; /* BH_OK: it can be opened */
    bh_error error;   /* why not, otherwise */
    bh_device_info info;
} bh_device_entry;

/* Every device there could be, usable or not, with the reason. Writes up to `capacity` entries;
 * `count` gets how many there are. entries[0].info.size, set before the call, says how long the
 * entries of a program built with an older header are; zero is this header's length. */
BH_API bh_status bh_device_enumerate(bh_device_entry *entries, size_t capacity, size_t *count);

enum { BH_DEVICE_RUNNING = 1, BH_DEVICE_REPLACING = 2, BH_DEVICE_STOPPED = 3 };

typedef struct bh_device_status {
    uint32_t size;
    uint32_t state;      /* BH_DEVICE_RUNNING ... */
    uint64_t generation; /* 1 at first, one more with each takeover */
    uint64_t losses;
    int32_t worker_pid; /* 0 while there is none */
    int32_t standby_pid;
    uint32_t standby_ready; /* 1: a loss now would be taken over at once */
    uint32_t lanes;
    uint64_t buffers;
    uint64_t bytes_allocated; /* in buffers */
    uint64_t bytes_reserved;  /* in chunks */
    char reason[256];         /* why it is stopped, or degraded: runs without a standby */
} bh_device_status;

BH_API bh_status bh_device_get_status(bh_device device, bh_device_status *out);

enum {
    BH_HEALTH_OK = 1,
    BH_HEALTH_DEGRADED = 2,  /* work runs; fewer standbys are ready than asked for */
    BH_HEALTH_REPLACING = 3, /* a worker was lost: work waits until the next one goes on */
    BH_HEALTH_STOPPED = 4,   /* for good */
    BH_HEALTH_CLOSING = 5    /* a thread is in bh_device_close */
};

typedef struct bh_health {
    uint32_t size;
    uint32_t state; /* BH_HEALTH_OK ... */
    uint64_t generation;
    uint64_t losses;
    uint32_t standbys_ready;
    uint32_t standbys;       /* asked for */
    int32_t worker_pid;      /* 0 while there is none */
    int32_t standby_pids[4]; /* those that are ready first; 0: none */
    uint32_t reserved;
    char reason[256]; /* why it is not BH_HEALTH_OK */
} bh_health;

/* Never waits, whatever the device and other threads do, and may be called from any callback. */
BH_API bh_status bh_device_get_health(bh_device device, bh_health *out);

/* Waits until everything submitted so far is resolved, and until callbacks have been told: of
 * losses, and what kernels printed. BH_OK whatever became of it; BH_E_TIMEOUT. */
BH_API bh_status bh_device_sync(bh_device device, uint64_t timeout_ns);

/* Waits until all standbys are ready. BH_E_UNSUPPORTED for a device that has none and gets none: opened
 * so, or where none can be kept (bh_device_info.no_standby, no room); the message says why. */
BH_API bh_status bh_device_wait_standby(bh_device device, uint64_t timeout_ns);

/* A descriptor for poll or epoll, readable when something armed by bh_notify is done. Read its 8
 * bytes to rearm it. It belongs to the device: do not close it. */
BH_API bh_status bh_device_eventfd(bh_device device, int *out_fd);

/* `watch` is told of each loss, on the dispatcher thread, after the takeover. Up to 16 watchers a
 * device, BH_E_BUSY beyond. */
typedef void bh_watch_fn(void *context, bh_device device, const bh_loss *loss);
BH_API bh_status bh_device_watch(bh_device device, bh_watch_fn *watch, void *context);
/* The watcher registered with this function and context is told no more: on return it is not running
 * and never runs again, except when called on the dispatcher thread by the watcher itself, which then
 * runs to its end. BH_E_NOT_FOUND: there is none. */
BH_API bh_status bh_device_unwatch(bh_device device, bh_watch_fn *watch, void *context);

/*
 * What is known of a loss, as text for people, with a NUL behind: the cause and the driver's words,
 * kernel, arguments, shape, where each lane was, suspect buffers with their tags, and what became of
 * the work. `loss` is bh_loss.number, 0 for the latest; the last 16 are kept. *length gets the length
 * without the NUL. text may be NULL if capacity is 0, to ask for the length alone. BH_E_INVALID: it
 * does not fit, nothing was written; BH_E_NOT_FOUND: there is no report of this loss, or no longer.
 * Watchers find the report there when they are told of the loss.
 *
 * With bh_device_options.report_dir, the same text is left there in a file of its own, named
 * bulkhead-loss-TIME-PID-DEVICE-NUMBER.txt and never seen half written. Of all such files the newest
 * 100 are kept.
 */
BH_API bh_status bh_device_get_report(bh_device device, uint64_t loss, char *text, size_t capacity,
                                      size_t *length);

/* Text printed by kernels, and what failed assertions say (4 KiB of it), on the dispatcher thread;
 * without a callback it is dropped. NULL removes it; the one before runs no more after that, as with
 * bh_device_unwatch. */
typedef void bh_print_fn(void *context, const char *text, size_t length);
BH_API bh_status bh_device_on_print(bh_device device, bh_print_fn *print, void *context);

/* ---- lanes ----------------------------------------------------------------------------------- */

/* Every device has a lane from the start; calls that take a lane use it when given a zero one. BH_E_BUSY:
 * all bh_device_info.max_lanes are in use. */
BH_API bh_status bh_lane_open(bh_device device, bh_lane *out);

typedef struct bh_lane_options {
    uint32_t size;
    int32_t priority; /* higher is more urgent, 0 the default. Cut to what the device has:
                         bh_device_info.priority_lowest to priority_highest. Work of an urgent lane
                         is begun first; what runs is not interrupted */
} bh_lane_options;

/* A lane's priority is for life. A device keeps its lanes and gives them out again, but only for
 * the priority they were made with: BH_E_BUSY if those that are left have another. */
BH_API bh_status bh_lane_open_with(bh_device device, const bh_lane_options *options, bh_lane *out);
/* What was submitted still runs; the handle is gone at once. */
BH_API bh_status bh_lane_close(bh_lane lane);
BH_API bh_status bh_lane_sync(bh_lane lane, uint64_t timeout_ns);

/* ---- buffers ---- */

/* Contents are undefined at first. */
BH_API bh_status bh_buffer_alloc(bh_device device, bh_type type, uint64_t count, bh_buffer *out);
BH_API bh_status bh_buffer_retain(bh_buffer buffer);
/* The memory is free for reuse when the last reference and view is gone and the work that uses it
 * is done. */
BH_API bh_status bh_buffer_release(bh_buffer buffer);

/* `count` elements from element `first` on, as a buffer of its own that shares the memory and keeps
 * it alive. */
BH_API bh_status bh_buffer_view(bh_buffer buffer, uint64_t first, uint64_t count, bh_buffer *out);

typedef struct bh_buffer_info {
    uint32_t size;
    bh_type type;
    uint64_t count;
    uint64_t bytes;
    uint64_t address;           /* on the device, writable */
    uint64_t read_only_address; /* on the device: the alias inputs are passed by */
    bh_device device;
    uint32_t suspect; /* 1: some of it may be half written by a lost worker */
    uint32_t is_view;
    uint64_t suspect_offset; /* the range that covers all suspect bytes */
    uint64_t suspect_bytes;
} bh_buffer_info;

BH_API bh_status bh_buffer_query(bh_buffer buffer, bh_buffer_info *out);
BH_API bh_status bh_buffer_address(bh_buffer buffer, uint64_t *out);

/* Offsets and sizes are in bytes. These run on the device's own lane, behind what is queued there,
 * and return when the data is where it should be; a worker lost meanwhile is waited through. On a
 * device that has stopped, bh_buffer_read still reads what is intact, by way of a worker that runs no
 * kernels (suspect bytes: BH_E_STALE), unless the device is broken or the buffer is managed. */
BH_API bh_status bh_buffer_write(bh_buffer buffer, uint64_t offset, const void *source,
                                 uint64_t bytes);
BH_API bh_status bh_buffer_read(bh_buffer buffer, uint64_t offset, void *target, uint64_t bytes);
BH_API bh_status bh_buffer_copy(bh_buffer target, uint64_t target_offset, bh_buffer source,
                                uint64_t source_offset, uint64_t bytes);
/* Repeats a pattern of 1 to BH_PATTERN_MOST bytes; `bytes` is a multiple of that. */
BH_API bh_status bh_buffer_fill(bh_buffer buffer, uint64_t offset, uint64_t bytes,
                                const void *pattern, uint32_t pattern_bytes);

/*
 * The same as work on a lane. A write has copied its source when it returns, unless the source lies
 * in memory from bh_host_alloc, which is read when the work runs. The target of a read must lie in
 * such memory.
 */
BH_API bh_status bh_submit_write(bh_lane lane, bh_buffer buffer, uint64_t offset,
                                 const void *source, uint64_t bytes, bh_ticket *out);
BH_API bh_status bh_submit_read(bh_lane lane, bh_buffer buffer, uint64_t offset, void *target,
                                uint64_t bytes, bh_ticket *out);
BH_API bh_status bh_submit_copy(bh_lane lane, bh_buffer target, uint64_t target_offset,
                                bh_buffer source, uint64_t source_offset, uint64_t bytes,
                                bh_ticket *out);
BH_API bh_status bh_submit_fill(bh_lane lane, bh_buffer buffer, uint64_t offset, uint64_t bytes,
                                const void *pattern, uint32_t pattern_bytes, bh_ticket *out);

/* Declares that the suspect contents of a buffer are good enough. */
BH_API bh_status bh_buffer_accept(bh_buffer buffer);

/* Host memory that the device reads and writes directly. */
BH_API bh_status bh_host_alloc(bh_device device, uint64_t bytes, void **out);
BH_API bh_status bh_host_free(bh_device device, void *memory);

/* ---- memory: tags, limits, what is allocated ---- */

/* The place in the source it stands at, "train.c:214", to be used as a tag. */
#define BH_HERE         __FILE__ ":" BH_TEXT_(__LINE__)
#define BH_TEXT_(line)  BH_TEXT2_(line)
#define BH_TEXT2_(line) #line

enum {
    BH_TAG_BYTES = 96,      /* of a tag's name with its end; of longer ones the end is kept */
    BH_PATTERN_MOST = 65536 /* bytes of a fill's pattern */
};

enum {
    BH_BUFFER_ZERO = 1u << 0 /* filled with zeros, on the device's own lane, before other work */
};

typedef struct bh_buffer_options {
    uint32_t size;
    uint32_t flags;
    const char *tag; /* who it is for, or BH_HERE; copied. NULL: nobody in particular */
    uint64_t align;  /* of the address, a power of two up to 64 KiB; default 256 */
} bh_buffer_options;

BH_API bh_status bh_buffer_alloc_with(bh_device device, bh_type type, uint64_t count,
                                      const bh_buffer_options *options, bh_buffer *out);

/* The same bytes as elements of another type, as a view. BH_E_INVALID unless they are a whole number
 * of elements and the first one is aligned for the type. */
BH_API bh_status bh_buffer_cast(bh_buffer buffer, bh_type type, bh_buffer *out);

/*
 * Buffers are cut from chunks of device memory; from 4 MiB on a buffer has a chunk to itself. Chunks
 * that hold no buffer are kept for the next to come. When another chunk is made, they are given back
 * as long as the device would hold more than 5/32 beyond what is in buffers; and all of them before
 * an allocation fails.
 */
typedef struct bh_memory_info {
    uint32_t size;
    uint32_t chunks;
    uint64_t buffers;        /* as pieces of memory: views do not count */
    uint64_t bytes_buffers;  /* in buffers, as asked for */
    uint64_t bytes_used;     /* taken from chunks for them, and for freed ones still in use */
    uint64_t bytes_leaving;  /* of those: freed, still used by queued work */
    uint64_t bytes_reserved; /* in chunks */
    uint64_t bytes_free;     /* bytes_reserved - bytes_used */
    uint64_t largest_free;   /* the largest free piece */
    uint64_t bytes_unused;   /* in chunks that hold no buffer, what bh_device_trim can give back */
    uint64_t limit;          /* most bytes_reserved */
    uint64_t high_buffers;   /* most bytes_buffers since the device was opened, or since */
    uint64_t high_reserved;  /* most bytes_reserved; ... bh_memory_reset_high */
    uint64_t allocations;    /* so far */
    uint64_t refusals;       /* allocations that failed for want of memory */
    uint64_t trims;          /* chunks given back */
    uint64_t bytes_trimmed;  /* in them */
    double fragmentation;    /* 1 - largest_free / bytes_free; 0 when nothing is free */
} bh_memory_info;

BH_API bh_status bh_memory_query(bh_device device, bh_memory_info *out);
/* The high-water marks, of tags too, go back to what is allocated now. */
BH_API bh_status bh_memory_reset_high(bh_device device);

/* The most bytes of buffers with this tag; 0: no limit. With tag NULL the most bytes of chunks the
 * device may hold (bh_device_options.memory_limit); 0: all the device has. What is allocated stays;
 * a device that holds more gives back what it can. */
BH_API bh_status bh_memory_set_limit(bh_device device, const char *tag, uint64_t bytes);

/* Gives chunks that hold no buffer back to the device, until it holds no more than `keep_bytes` in
 * all. out_freed (may be NULL) gets how many bytes those were. */
BH_API bh_status bh_device_trim(bh_device device, uint64_t keep_bytes, uint64_t *out_freed);

enum {
    BH_MEMORY_LIVE = 1,   /* there is a handle to it */
    BH_MEMORY_LEAVING = 2 /* freed, still used by queued work */
};

typedef struct bh_memory_entry {
    uint32_t size;
    bh_type type;
    uint64_t count;
    uint64_t bytes;      /* as asked for */
    uint64_t bytes_used; /* taken from a chunk */
    uint64_t address;
    uint32_t state;         /* BH_MEMORY_LIVE ... */
    uint32_t handles;       /* buffers and views that share it */
    const void *call_site;  /* where the allocating call returned to; see addr2line, dladdr */
    char tag[BH_TAG_BYTES]; /* "": none */
} bh_memory_entry;

/* What is allocated, largest first, as of one moment. `each` runs on the calling thread with no lock
 * held and returns whether to go on. */
typedef bool bh_memory_entry_fn(void *context, const bh_memory_entry *entry);
BH_API bh_status bh_memory_list(bh_device device, bh_memory_entry_fn *each, void *context);

typedef struct bh_memory_tag {
    uint32_t size;
    uint32_t reserved;
    uint64_t bytes; /* in buffers with this tag */
    uint64_t buffers;
    uint64_t high;  /* most bytes since bh_memory_reset_high */
    uint64_t limit; /* 0: none */
    uint64_t allocations;
    char tag[BH_TAG_BYTES]; /* "": buffers without one */
} bh_memory_tag;

/* The same by tag. */
typedef bool bh_memory_tag_fn(void *context, const bh_memory_tag *tag);
BH_API bh_status bh_memory_tags(bh_device device, bh_memory_tag_fn *each, void *context);

enum {
    BH_PRESSURE_ABOVE = 1,   /* bytes in buffers came to the threshold */
    BH_PRESSURE_BELOW = 2,   /* ... fell to 15/16 of it again */
    BH_PRESSURE_TRIMMED = 3, /* unused chunks had to go so that an allocation could succeed */
    BH_PRESSURE_FAILED = 4   /* an allocation failed */
};

typedef struct bh_pressure {
    uint32_t size;
    uint32_t reason; /* BH_PRESSURE_ABOVE ... */
    uint64_t threshold;
    uint64_t asked; /* TRIMMED, FAILED: the size of the allocation */
    uint64_t bytes_buffers;
    uint64_t bytes_reserved;
    uint64_t limit;
    uint64_t times; /* this happened since `pressed` was last told of it */
} bh_pressure;

/* `pressed` is told on the dispatcher thread, like a watcher of losses; what happens again before it
 * was told is told once. `threshold` is in bytes; 0: seven eighths of the limit. Up to 16 listeners
 * a device, BH_E_BUSY beyond. */
typedef void bh_pressure_fn(void *context, bh_device device, const bh_pressure *pressure);
BH_API bh_status bh_memory_watch(bh_device device, uint64_t threshold, bh_pressure_fn *pressed,
                                 void *context);
/* As bh_device_unwatch. */
BH_API bh_status bh_memory_unwatch(bh_device device, bh_pressure_fn *pressed, void *context);

/* ---- memory: rows, long patterns, other devices ---- */

/* A rectangle of `height` rows of `width` bytes. A pitch is the distance between the starts of two
 * rows, at least the width; 0 is the width. Offsets and pitches are of the buffer or memory named
 * as target or source; for plain memory an offset counts from its pointer. */
typedef struct bh_rows {
    uint32_t size;
    uint32_t reserved;
    uint64_t width, height;
    uint64_t target_offset, target_pitch;
    uint64_t source_offset, source_pitch;
} bh_rows;

/*
 * One request each, as bh_submit_copy and its like; plain memory goes through staging. Bytes of
 * source and target must not overlap. After a lost worker, doubt is kept for the range from the
 * first byte of the first row to the last byte of the last: rows with gaps between them never clear
 * it, and when they are lost, all of the range is in doubt.
 */
BH_API bh_status bh_submit_copy_2d(bh_lane lane, bh_buffer target, bh_buffer source,
                                   const bh_rows *rows, bh_ticket *out);
BH_API bh_status bh_submit_write_2d(bh_lane lane, bh_buffer target, const void *source,
                                    const bh_rows *rows, bh_ticket *out);
BH_API bh_status bh_submit_read_2d(bh_lane lane, void *target, bh_buffer source,
                                   const bh_rows *rows, bh_ticket *out);
BH_API bh_status bh_buffer_copy_2d(bh_buffer target, bh_buffer source, const bh_rows *rows);
BH_API bh_status bh_buffer_write_2d(bh_buffer target, const void *source, const bh_rows *rows);
BH_API bh_status bh_buffer_read_2d(void *target, bh_buffer source, const bh_rows *rows);

/* Fills rows; the pattern, of 1 to BH_PATTERN_MOST bytes, begins anew with each, and its last
 * repetition in a row may be cut short. Only the target's fields of `rows` count. */
BH_API bh_status bh_submit_fill_2d(bh_lane lane, bh_buffer target, const bh_rows *rows,
                                   const void *pattern, uint32_t pattern_bytes, bh_ticket *out);
BH_API bh_status bh_buffer_fill_2d(bh_buffer target, const bh_rows *rows, const void *pattern,
                                   uint32_t pattern_bytes);

/* Which way a copy between two buffers went. */
enum {
    BH_WAY_WITHIN = 1, /* both are on one device, which copied */
    BH_WAY_HOST = 2    /* read from one device and written to the other through host memory */
};

/* Copies between buffers of any two devices and returns when it is done. out_way may be NULL. */
BH_API bh_status bh_copy_between(bh_buffer target, uint64_t target_offset, bh_buffer source,
                                 uint64_t source_offset, uint64_t bytes, uint32_t *out_way);

/* ---- memory: a pool of host buffers ---- */

typedef struct bh_host_pool {
    uint64_t id;
} bh_host_pool;

typedef struct bh_host_pool_options {
    uint32_t size;
    uint32_t reserved;
    uint64_t max_bytes; /* that the pool may hold; default 256 MiB */
    uint64_t max_piece; /* the largest that can be taken; default a quarter of max_bytes */
} bh_host_pool_options;

/*
 * Host memory as from bh_host_alloc, taken and given back often. A piece that is handed out is all
 * zeros: one that was used before is cleared first, at the speed of memset, by the thread that takes
 * it, so nobody ever sees what another user left. A piece that was given back while queued work
 * still uses it is handed out again only after that work. Pieces outlive a lost worker.
 */
BH_API bh_status bh_host_pool_open(bh_device device, const bh_host_pool_options *options,
                                   bh_host_pool *out);
/* At least `bytes`, aligned to 256. Where the pool is exhausted it waits until a piece comes back:
 * BH_E_TIMEOUT after timeout_ns; with timeout_ns 0 BH_E_BUSY at once. Where the pool can grow, it does:
 * that takes as long as bh_host_alloc, whatever timeout_ns is. */
BH_API bh_status bh_host_pool_take(bh_host_pool pool, uint64_t bytes, uint64_t timeout_ns,
                                   void **out);
BH_API bh_status bh_host_pool_give(bh_host_pool pool, void *piece);

typedef struct bh_host_pool_info {
    uint32_t size;
    uint32_t waiting;        /* threads in bh_host_pool_take */
    uint64_t bytes_reserved; /* held by the pool */
    uint64_t bytes_taken;    /* with users, as pieces */
    uint64_t bytes_cooling;  /* given back, still used by queued work */
    uint64_t max_bytes;
    uint64_t high_taken; /* most bytes_taken so far */
    uint64_t pieces_taken;
    uint64_t takes;         /* so far */
    uint64_t waits;         /* takes that had to wait */
    uint64_t refusals;      /* takes that failed because the pool was exhausted */
    uint64_t bytes_cleared; /* zeroed on being handed out again */
} bh_host_pool_info;

BH_API bh_status bh_host_pool_query(bh_host_pool pool, bh_host_pool_info *out);
/* BH_E_BUSY while pieces are taken. Waits for work that still uses pieces that were given back. */
BH_API bh_status bh_host_pool_close(bh_host_pool pool);

/* ---- sharing buffers ---------------------------------------------------------------------------
 *
 * A buffer made for it can be opened in another compartment: of the same process, or of another one
 * that was sent its two descriptors (SCM_RIGHTS) and its token (any way at all). Both see the same
 * bytes. Without a compartment, bh_share_map maps a buffer of the CPU device into the process;
 * bulkhead_cuda.h does that for buffers of a GPU.
 *
 * - The memory lives as long as anybody holds it: a crash, a release or a lost worker on one side
 *   takes nothing from the others.
 * - Whoever has the descriptors may read and write all of the buffer that the token was made from,
 *   also if that is a view of it, and nothing else: such a buffer shares no memory with others.
 * - Order between the sides is theirs to keep. bh_wait, then tell the other side; a lane knows
 *   nothing of work elsewhere. The same holds for the two addresses of a buffer that is opened in the
 *   compartment it comes from.
 * - Doubt is each compartment's own. When a worker of the exporting side is lost while it may have
 *   been writing, `doubts` of bh_share_info goes up; other sides must say so by their own means.
 */

/* Shareable buffers have memory of their own: allocating and releasing one is a message to the
 * worker, and takes up whole pieces of memory (64 KiB on the CPU device, 2 MiB on a GPU). */
BH_API bh_status bh_buffer_alloc_shareable(bh_device device, bh_type type, uint64_t count,
                                           bh_buffer *out);

enum { BH_SHARE_FDS = 2 }; /* the memory, and the page that says which tokens are good */

/* Which bytes of which memory. Plain data, to be sent as it is; of no use without the descriptors. */
typedef struct bh_share_token {
    uint32_t size;
    uint32_t version;
    uint64_t magic;
    bh_type type;
    uint32_t reserved;
    uint64_t count;
    uint64_t offset;      /* of the first element, in the memory */
    uint64_t chunk_bytes; /* of all of the memory */
    uint64_t generation;  /* one more with each bh_buffer_revoke */
    char kind[16];        /* of device: "cpu", "cuda" */
    char uuid[48];        /* of the GPU; empty where there is none */
    uint8_t nonce[16];
    uint64_t check; /* over all of the above, with a key of the buffer's own */
} bh_share_token;

/* Gives out descriptors that belong to the caller (close-on-exec), and a token. Any number of times;
 * also for a buffer that was itself opened from a token. BH_E_UNSUPPORTED: the buffer was not made
 * with bh_buffer_alloc_shareable. */
BH_API bh_status bh_buffer_export(bh_buffer buffer, int out_fds[BH_SHARE_FDS], bh_share_token *out);
/* Makes all tokens of the buffer given out so far stale, as its release and the closing of its device
 * do. What was opened with them before stays open. */
BH_API bh_status bh_buffer_revoke(bh_buffer buffer);

/*
 * Opens a shared buffer on a device of the same kind, for a GPU of the same GPU, at an address of its
 * own. The descriptors stay the caller's and may be closed. BH_E_STALE: the token was withdrawn.
 * BH_E_INVALID: it is no token, was changed or belongs to other descriptors. `flags` is 0.
 */
BH_API bh_status bh_buffer_import(bh_device device, const int fds[BH_SHARE_FDS],
                                  const bh_share_token *token, uint32_t flags, bh_buffer *out);

/* A buffer of the CPU device in this process's own memory; no device need be open. */
BH_API bh_status bh_share_map(const int fds[BH_SHARE_FDS], const bh_share_token *token, void **out);
BH_API bh_status bh_share_unmap(void *memory);

typedef struct bh_share_info {
    uint32_t size;
    uint32_t stale;      /* 1: the token was withdrawn; the rest is known all the same */
    uint64_t generation; /* of tokens that are good now */
    uint64_t doubts; /* how often a lost worker of the exporting side may have left bytes of it half
                            written */
    uint64_t bytes;  /* that the token is for */
    uint8_t mark[16]; /* stands at the beginning of the memory, before the buffer */
} bh_share_info;

/* What the descriptors say of a token. Fails as bh_buffer_import does, except that a stale token is an
 * answer here. */
BH_API bh_status bh_share_query(const int fds[BH_SHARE_FDS], const bh_share_token *token,
                                bh_share_info *out);

/* ---- managed buffers -----------------------------------------------------------------------------
 *
 * A managed buffer has a second copy of its bytes in host memory, at the same address as on the device:
 * one pointer, good on both sides. It is a buffer like any other. The portable way to its host copy is
 * to map a range of it; only what is newer on the other side is moved, in whole pages.
 *
 *     float *x;
 *     bh_managed_alloc(gpu, BH_F32, n, NULL, &buffer, (void **)&x);
 *     bh_managed_map(buffer, 0, n * 4, BH_MAP_WRITE | BH_MAP_DISCARD, NULL);
 *     for (i = 0; i < n; i++) x[i] = i;
 *     bh_managed_unmap(x, n * 4);
 *     bh_launch(kernel, BH_GRID(n, 256), BH_ARGS(BH_INOUT(buffer), n), &done);
 *     bh_managed_map(buffer, 0, n * 4, BH_MAP_READ, NULL);      waits for the launch
 *
 * After a loss the rules of any buffer hold; what is newest in the host copy is never lost.
 *
 * With BH_MANAGED_DRIVER there is no second copy but memory that the driver moves between device and host by
 * itself, for data larger than the device. The program has no pointer to it and no maps: launches, reads, writes
 * and copies reach it. A lost worker takes it along: after each loss all of it is suspect, and
 * bh_buffer_address gives another number.
 *
 * docs/managed.md has the whole story.
 */

enum {
    BH_MANAGED_TRANSPARENT = 1, /* plain loads and stores at any time between launches */
    BH_MANAGED_UNTRACKED = 2,   /* with it: take every page for written at each launch, as where the
                                   system cannot tell which were */
    BH_MANAGED_DRIVER = 4       /* on memory that the device's driver moves itself: see above */
};

enum {
    BH_ATTACH_GLOBAL = 0, /* any lane may use it */
    BH_ATTACH_HOST = 1,   /* no lane may */
    BH_ATTACH_LANE = 2    /* one lane may */
};

typedef struct bh_managed_options {
    uint32_t size;
    uint32_t flags;    /* BH_MANAGED_... */
    uint32_t attach;   /* BH_ATTACH_... */
    uint32_t reserved; /* 0 */
    bh_lane lane;      /* BH_ATTACH_LANE */
    const char *tag;   /* who it is for, as in bh_buffer_options; NULL: nobody in particular */
} bh_managed_options;

/* Contents are undefined at first. `out_pointer`, which may be NULL, gets the address; with
 * BH_MANAGED_DRIVER it gets NULL. */
BH_API bh_status bh_managed_alloc(bh_device device, bh_type type, uint64_t count,
                                  const bh_managed_options *options, bh_buffer *out,
                                  void **out_pointer);

enum {
    BH_MAP_READ = 1,
    BH_MAP_WRITE = 2, /* what is not written keeps its value */
    BH_MAP_DISCARD =
        4,             /* with BH_MAP_WRITE: all of it will be written, nothing needs to be moved */
    BH_MAP_NO_WAIT = 8 /* BH_E_BUSY in place of waiting; moves that are needed have begun */
};

/*
 * Makes `bytes` from byte `offset` on ready for the program. Waits for launches that use the range:
 * those that write it, and to write it those that read it too. Maps to read may overlap; one to write
 * overlaps no other (BH_E_BUSY). From the call on and while mapped, launches that write the range are
 * refused with BH_E_BUSY, and with BH_MAP_WRITE those that read it. Suspect bytes give BH_E_STALE unless they are
 * discarded. A map keeps the memory alive, also after the buffer is released and the device closed.
 */
BH_API bh_status bh_managed_map(bh_buffer buffer, uint64_t offset, uint64_t bytes, uint32_t flags,
                                void **out_pointer);
/* Ends a map: its pointer and bytes. What was written is seen by the next launch. */
BH_API bh_status bh_managed_unmap(const void *pointer, uint64_t bytes);

enum { BH_TO_DEVICE = 1, BH_TO_HOST = 2 };

/* Moves what is newer on the other side now, as work on a lane. `device` is the buffer's, or zero.
 * With BH_MANAGED_DRIVER this and advice are the driver's own. */
BH_API bh_status bh_managed_prefetch(bh_buffer buffer, uint64_t offset, uint64_t bytes,
                                     uint32_t where, bh_device device, bh_lane lane,
                                     bh_ticket *out);

enum {
    BH_ADVISE_READ_MOSTLY = 1, /* noted; both copies stay valid while nobody writes in any case */
    BH_ADVISE_NOT_READ_MOSTLY = 2,
    BH_ADVISE_PREFER_DEVICE = 3, /* what the program wrote is sent to the device at unmap */
    BH_ADVISE_PREFER_HOST = 4,   /* what a launch writes is sent home right behind it */
    BH_ADVISE_PREFER_NONE = 5,
    BH_ADVISE_ACCESSED_BY_DEVICE = 6, /* as BH_ADVISE_PREFER_DEVICE */
    BH_ADVISE_NOT_ACCESSED_BY_DEVICE = 7,
    BH_ADVISE_ACCESSED_BY_HOST = 8, /* as BH_ADVISE_PREFER_HOST */
    BH_ADVISE_NOT_ACCESSED_BY_HOST = 9
};
/* What holds for a byte, as bits. */
enum {
    BH_ADVICE_READ_MOSTLY = 1,
    BH_ADVICE_PREFER_DEVICE = 2,
    BH_ADVICE_PREFER_HOST = 4,
    BH_ADVICE_ACCESSED_BY_DEVICE = 8,
    BH_ADVICE_ACCESSED_BY_HOST = 16
};

/* Says how a range is used; changes when bytes move, never what they are. */
BH_API bh_status bh_managed_advise(bh_buffer buffer, uint64_t offset, uint64_t bytes,
                                   uint32_t advice, bh_device device);
BH_API bh_status bh_managed_advice(bh_buffer buffer, uint64_t offset, uint32_t *out);

/* Who may use the buffer from now on. Launches of others are refused with BH_E_BUSY. */
BH_API bh_status bh_managed_attach(bh_buffer buffer, uint32_t attach, bh_lane lane);

enum {
    BH_TRACKING_NONE = 0,       /* not transparent */
    BH_TRACKING_PAGES = 1,      /* the system tells which pages were written */
    BH_TRACKING_ALL_WRITTEN = 2 /* it does not: all pages count as written */
};

typedef struct bh_managed_info {
    uint32_t size;
    uint32_t flags;
    void *pointer;
    uint64_t bytes;
    uint64_t page_bytes;
    uint32_t tracking; /* BH_TRACKING_... */
    uint32_t attach;
    bh_lane lane;
    /* Now, of the whole allocation: */
    uint64_t host_newest; /* bytes of which the device's copy is old; the two others likewise */
    uint64_t device_newest;
    uint64_t on_both;
    uint32_t maps;  /* held */
    uint32_t lanes; /* with moves under way */
    /* Since it was made: */
    uint64_t bytes_to_device;
    uint64_t bytes_to_host;
    uint64_t moves_to_device; /* contiguous ranges */
    uint64_t moves_to_host;
    uint64_t prefetches;
} bh_managed_info;

BH_API bh_status bh_managed_query(bh_buffer buffer, bh_managed_info *out);

/* Whether this system tells which pages of a transparent buffer were written. BH_E_UNSUPPORTED: it does
 * not, and bh_last_error says why. */
BH_API bh_status bh_managed_tracking(void);

/* ---- modules and kernels ---- */

/* PTX text, a cubin or a fatbin, told by its contents. The CPU device runs PTX alone and refuses the
 * others; a GPU refuses machine code that is not for it. */
BH_API bh_status bh_module_load(bh_device device, const void *image, size_t bytes, bh_module *out);
BH_API bh_status bh_module_load_file(bh_device device, const char *path, bh_module *out);
/* As bh_module_load, without waiting. The handle can be used once the ticket is done. `image` is
 * copied. */
BH_API bh_status bh_submit_load(bh_device device, const void *image, size_t bytes, bh_module *out,
                                bh_ticket *ticket);
/* The module goes when the work that uses it is done. Its kernels' handles are gone at once. */
BH_API bh_status bh_module_unload(bh_module module);

/*
 * A module's own variables. Those of a fatbin cannot be reached: neither it nor the driver lists them.
 *
 * They die with a worker. The next one has the values that the image gives them, and over those what
 * bh_module_global_write has set. For a variable that no kernel of the module can write, that is what
 * was there, and nobody notices. If there is one that a kernel can write, and a kernel of the module
 * has been launched since the last loss, its value is not known: the module's launches and reads of
 * the variable answer BH_E_STALE until bh_module_accept, also where the program had set it. Which
 * variables kernels can write is found out when the module is loaded: by following their addresses
 * through PTX and what bh_compile and bh_module_compile make; in other cubins all that code has the
 * address of count as written, in fatbins all.
 *
 * BH_OK from a write says that all bytes are set and that later workers start with them. After
 * another answer they have their old values; if only a part of the range could be set, the message
 * says which, and the module is stale.
 */
BH_API bh_status bh_module_global_write(bh_module module, const char *name, uint64_t offset,
                                        const void *source, uint64_t bytes);
BH_API bh_status bh_module_global_read(bh_module module, const char *name, uint64_t offset,
                                       void *target, uint64_t bytes);
BH_API bh_status bh_module_global_size(bh_module module, const char *name, uint64_t *out);
/* Declares that a module whose own variables died with a worker may go on with those the new worker
 * started with: what the image and bh_module_global_write gave them. */
BH_API bh_status bh_module_accept(bh_module module);

/* ---- compiling ------------------------------------------------------------------------------
 *
 * CUDA C++ to something a device can run, with NVRTC where it is installed and with clang
 * otherwise, in a process of its own with limits on time and memory. A compiler that crashes or
 * hangs is a BH_E_COMPILE. Results are kept in memory and on disk; the same compile asked for by
 * many threads at once happens once.
 *
 *     bh_compile_options o = BH_INIT(o);
 *     const char *names[] = {"scale<float, 4>"};
 *     o.expressions = names;
 *     o.expression_count = 1;
 *     bh_module_compile(gpu, source, &o, &mod);
 *     bh_kernel_get(mod, "scale<float, 4>", &kernel);
 */

enum { BH_COMPILER_AUTO = 0, BH_COMPILER_NVRTC = 1, BH_COMPILER_CLANG = 2 };
/* AUTO: what the device loads fastest, PTX where there is no device. */
enum { BH_OUTPUT_AUTO = 0, BH_OUTPUT_PTX = 1, BH_OUTPUT_CUBIN = 2, BH_OUTPUT_LTOIR = 3 };

enum {
    BH_COMPILE_FAST_MATH = 1u << 0,
    BH_COMPILE_FLUSH_DENORMALS = 1u << 1,
    BH_COMPILE_LINE_INFO = 1u << 2,
    BH_COMPILE_DEBUG = 1u << 3,
    BH_COMPILE_RELOCATABLE = 1u << 4, /* to be linked with bh_link */
    BH_COMPILE_NO_CACHE = 1u << 5     /* neither look there nor keep the result */
};

/* A header given in memory, found by #include "name" and #include <name>. */
typedef struct bh_header {
    const char *name;
    const char *text;
} bh_header;

/* What is unknown, or contradicts itself, is refused by name. */
typedef struct bh_compile_options {
    uint32_t size;
    uint32_t flags;             /* BH_COMPILE_FAST_MATH ... */
    uint32_t compiler;          /* BH_COMPILER_AUTO ... */
    uint32_t output;            /* BH_OUTPUT_AUTO ... */
    const char *arch;           /* "sm_90"; default the device's own, where there is none sm_80 */
    const char *name;           /* of the source in messages; default "source.cu" */
    uint32_t standard;          /* 14, 17 or 20; default 17 */
    uint32_t max_registers;     /* of a thread, 16 to 255; default no limit */
    const char *const *defines; /* "NAME" or "NAME=VALUE" */
    size_t define_count;
    const char *const *include_paths; /* relative ones: from the working folder of the call */
    size_t include_path_count;
    const bh_header *headers;
    size_t header_count;
    const char *const *expressions; /* "my_kernel<float, 256>": names for bh_kernel_get */
    size_t expression_count;
    const char *const *extra; /* flags for the compiler as they are */
    size_t extra_count;
    uint64_t timeout_ns;      /* default 60 s */
    uint64_t memory_limit;    /* bytes of address space the compiler may use; default 8 GiB */
    const char *cache_dir;    /* default BULKHEAD_CACHE_DIR, else the user's cache folder */
    uint64_t cache_limit;     /* bytes on disk; default BULKHEAD_CACHE_LIMIT, else 1 GiB */
    const char *compiler_dir; /* where bulkhead-compiler is; default: found as workers are */
} bh_compile_options;

BH_API bh_status bh_module_compile(bh_device device, const char *source,
                                   const bh_compile_options *options, bh_module *out);
/* As bh_module_compile, without waiting. The handle can be used once the ticket is done. All that
 * is passed is copied. bh_cancel takes it back at any time before the result is loaded, and ends
 * the compiler unless others wait for the same compile. Tickets of compiles and loads are done in
 * any order. */
BH_API bh_status bh_submit_compile(bh_device device, const char *source,
                                   const bh_compile_options *options, bh_module *out,
                                   bh_ticket *ticket);

/* The result of a compile or link. It belongs to no device. */
typedef struct bh_binary {
    uint64_t id;
} bh_binary;

BH_API bh_status bh_compile(const char *source, const bh_compile_options *options, bh_binary *out);
/* Links binaries (PTX, cubin, LTO-IR) with nvJitLink. Of the options arch (default: that of the
 * first part), output (default cubin), name, flags, max_registers, extra, the limits and the cache
 * apply. */
BH_API bh_status bh_link(const bh_binary *parts, size_t count, const bh_compile_options *options,
                         bh_binary *out);
/* A binary from bytes that came from elsewhere. They are copied. */
BH_API bh_status bh_binary_from(const void *bytes, size_t count, bh_binary *out);
BH_API bh_status bh_binary_release(bh_binary binary);
/* Loads a binary as a module; its name expressions work in bh_kernel_get. */
BH_API bh_status bh_module_from(bh_device device, bh_binary binary, bh_module *out);
/* What a module was compiled to, or made from, to be released. BH_E_NOT_FOUND: it was loaded from
 * an image. */
BH_API bh_status bh_module_binary(bh_module module, bh_binary *out);

/* Where a result came from. */
enum { BH_CACHE_MISS = 0, BH_CACHE_MEMORY = 1, BH_CACHE_DISK = 2, BH_CACHE_OFF = 3 };

typedef struct bh_binary_info {
    uint32_t size;
    uint32_t output;   /* BH_OUTPUT_PTX ... */
    const void *bytes; /* these live as long as the binary */
    uint64_t count;
    const char *log;     /* what the compiler said, "" if nothing */
    char compiler[64];   /* "nvrtc 13.0", "clang 19.1.7" */
    char arch[16];       /* "sm_90", "" where it is not known */
    char why[192];       /* why this compiler: "NVRTC was not found in ..." */
    uint32_t cache;      /* BH_CACHE_MISS ... */
    uint32_t name_count; /* of name expressions */
    uint64_t compile_ns; /* what the compiler took when it ran */
} bh_binary_info;

BH_API bh_status bh_binary_query(bh_binary binary, bh_binary_info *out);
/* The lowered name of a name expression. Lives as long as the binary. White space does not count.
 */
BH_API bh_status bh_binary_lowered(bh_binary binary, const char *expression, const char **out);

/*
 * All that the compiler said of the last failed compile or link of this thread (nothing, if that failed
 * before a compiler ran), or of a ticket's
 * compile, warnings of one that went well included; the latest 64 tickets that had something said
 * are remembered (BH_E_NOT_FOUND). Writes up to `capacity` bytes with the NUL; `length`, which may
 * be NULL, gets the whole length without it.
 */
BH_API bh_status bh_last_log(char *text, size_t capacity, size_t *length);
BH_API bh_status bh_ticket_log(bh_ticket ticket, char *text, size_t capacity, size_t *length);

typedef struct bh_cache_info {
    uint32_t size;
    uint32_t usable; /* 0: there is none on disk, `why` says why */
    char dir[512];
    char why[256];    /* also if the last result could not be kept */
    uint64_t entries; /* on disk */
    uint64_t bytes;
    uint64_t limit;       /* the default one */
    uint64_t memory_hits; /* of this process */
    uint64_t disk_hits;
    uint64_t misses;
    uint64_t joined;  /* waited for the same compile by another thread */
    uint64_t dropped; /* damaged entries found */
    uint64_t evicted;
    uint64_t all_hits; /* of all processes that use the folder, since it was cleared */
    uint64_t all_misses;
} bh_cache_info;

/* `dir` NULL: the default one. */
BH_API bh_status bh_cache_query(const char *dir, bh_cache_info *out);
/* What this process has in memory goes too. */
BH_API bh_status bh_cache_clear(const char *dir);

typedef struct bh_cache_entry {
    uint32_t size;
    uint32_t output;
    uint64_t bytes;   /* on disk */
    uint64_t used_ns; /* last use, since 1970 */
    char name[64];    /* of the source; "(damaged)" */
    char arch[16];
    char compiler[64];
    char key[40];
} bh_cache_entry;
typedef void bh_cache_fn(void *context, const bh_cache_entry *entry);
/* Each entry, most recently used first. */
BH_API bh_status bh_cache_list(const char *dir, bh_cache_fn *each, void *context);

/* What compilers there are: name, version, path, why one cannot be used. The size of the first
 * entry is set by the caller. Looks afresh. */
typedef struct bh_compiler_entry {
    uint32_t size;
    uint32_t usable;
    uint32_t compiler; /* BH_COMPILER_NVRTC ...; 0 for nvJitLink, the linker */
    uint32_t reserved;
    char version[64];
    char path[512];
    char why[256];
} bh_compiler_entry;
BH_API bh_status bh_compiler_enumerate(bh_compiler_entry *entries, size_t capacity, size_t *count);

/* ---- kernels -------------------------------------------------------------------------------- */

/* By its name in the module, or by a name expression that the module was compiled with. */
BH_API bh_status bh_kernel_get(bh_module module, const char *name, bh_kernel *out);
BH_API bh_status bh_module_kernel_count(bh_module module, uint32_t *out);
BH_API bh_status bh_module_kernel_at(bh_module module, uint32_t index, bh_kernel *out);

typedef struct bh_kernel_info {
    uint32_t size;
    uint32_t param_count;
    uint32_t param_bytes;
    uint32_t static_shared;
    uint32_t local_bytes;
    uint32_t registers;
    uint32_t max_threads;
    uint32_t quarantined;
    uint32_t required_block[3]; /* zeros: any. A launch with one thread stands for this block. */
    uint32_t faults;            /* certain ones so far */
    char name[256];
} bh_kernel_info;

typedef struct bh_param_info {
    uint32_t size;
    uint32_t offset;
    uint32_t bytes;
    uint32_t pointer; /* 1: known to be a pointer */
} bh_param_info;

BH_API bh_status bh_kernel_query(bh_kernel kernel, bh_kernel_info *out);
BH_API bh_status bh_kernel_param(bh_kernel kernel, uint32_t index, bh_param_info *out);
/* Lets a quarantined kernel run again. */
BH_API bh_status bh_kernel_pardon(bh_kernel kernel);

/* ---- launching ---- */

typedef struct bh_dim {
    uint32_t x, y, z;
} bh_dim;

/* Components that are left out at the end, {64} or {8, 8}, are zero and count as 1. A zero before
 * one that is not, {0, 1, 1}, is a shape that was computed wrong, and so is a grid of {0, 0, 0}:
 * both are refused. A cluster of {0, 0, 0} is none, or the one that the kernel was built for. */
typedef struct bh_shape {
    bh_dim grid;
    bh_dim block;
    bh_dim cluster;
    uint32_t shared_bytes; /* dynamic shared memory */
} bh_shape;

/* How a kernel uses a buffer. OUT: writes all of it and needs nothing of what was there. */
enum { BH_ACCESS_IN = 1, BH_ACCESS_OUT = 2, BH_ACCESS_INOUT = 3 };

enum { BH_ARG_VALUE = 1, BH_ARG_DATA = 2, BH_ARG_BUFFER = 3, BH_ARG_BUFFER_AT_LEAST = 4 };

/* One argument. Bindings fill these in directly. */
typedef struct bh_arg {
    uint32_t
        kind; /* BH_ARG_VALUE: the first `size` bytes of value; BH_ARG_DATA: `size` bytes at data */
    uint32_t size; /* BH_ARG_BUFFER, BH_ARG_BUFFER_AT_LEAST: the access, BH_ACCESS_IN ... */
    union {
        uint8_t value[16];
        const void *data;
        bh_buffer buffer;
        struct {
            bh_buffer buffer;
            uint64_t bytes; /* BH_ARG_BUFFER_AT_LEAST: refused if the buffer has fewer */
        } at_least;
    } u;
} bh_arg;

typedef struct bh_args {
    const bh_arg *list;
    size_t count;
} bh_args;

/* A buffer that the kernel reaches through a pointer inside another one. */
typedef struct bh_use {
    bh_buffer buffer;
    uint32_t access;
    uint32_t reserved;
} bh_use;

enum {
    BH_LAUNCH_IDEMPOTENT = 1u << 0,      /* may be run again from the start if its worker is lost */
    BH_LAUNCH_NO_BLOCK = 1u << 1,        /* BH_E_BUSY instead of waiting for a place in the queue */
    BH_LAUNCH_WRITABLE_INPUTS = 1u << 2, /* pass inputs by their writable address */
    BH_LAUNCH_COOPERATIVE = 1u << 3,     /* all blocks run at once, or the launch is refused */
    BH_LAUNCH_PRIORITY = 1u << 4,        /* with `priority` in place of the lane's */
    BH_LAUNCH_PROGRAMMATIC = 1u << 5     /* see below */
};

/*
 * BH_LAUNCH_PROGRAMMATIC: programmatic dependent launch. The device may begin the kernel while the
 * launch before it on the lane is still running, once all blocks of that one have ended or allowed
 * it (griddepcontrol.launch_dependents); the kernel waits itself (griddepcontrol.wait) before it
 * touches what the other writes. A permission, no promise: between two launches of a lane the
 * device notes that the first is done, and as long as it waits with the note it waits with what
 * follows. BH_E_UNSUPPORTED on devices without it.
 */

/* How the blocks of clusters are spread over the device, where it has clusters. */
enum { BH_CLUSTER_DEFAULT = 0, BH_CLUSTER_SPREAD = 1, BH_CLUSTER_BALANCE = 2 };

typedef struct bh_launch_options {
    uint32_t size;
    uint32_t flags;
    bh_lane lane;         /* zero: the device's own */
    uint64_t deadline_ns; /* running time allowed; 0: the device's default */
    const bh_use *also;   /* buffers reached through pointers */
    size_t also_count;
    int32_t priority;        /* with BH_LAUNCH_PRIORITY: one that bh_device_info allows */
    uint32_t cluster_policy; /* BH_CLUSTER_DEFAULT ... */
    uint64_t elements;       /* threads that have something to do, for the counters; 0: all */
} bh_launch_options;

BH_API bh_status bh_launch(bh_kernel kernel, bh_shape shape, bh_args args, bh_ticket *out);
BH_API bh_status bh_launch_with(bh_kernel kernel, bh_shape shape, bh_args args,
                                const bh_launch_options *options, bh_ticket *out);

/* ---- before launching, and launching again and again ----------------------------------------- */

/* Why a launch is refused. */
enum {
    BH_REASON_NONE = 0,
    BH_REASON_ZERO_DIMENSION = 1,
    BH_REASON_GRID_AXIS = 2,           /* an axis of the grid is beyond the device's limit */
    BH_REASON_BLOCK_AXIS = 3,          /* an axis of the block is */
    BH_REASON_BLOCK_THREADS = 4,       /* threads in all, device */
    BH_REASON_KERNEL_THREADS = 5,      /* threads in all, this kernel: registers, launch bounds */
    BH_REASON_REQUIRED_BLOCK = 6,      /* the kernel was built for another block */
    BH_REASON_SHARED_MEMORY = 7,       /* static and dynamic */
    BH_REASON_CLUSTER_UNSUPPORTED = 8, /* the device has no clusters */
    BH_REASON_CLUSTER_GRID = 9,        /* the grid is no multiple of the cluster */
    BH_REASON_CLUSTER_SIZE = 10,       /* too many blocks in a cluster */
    BH_REASON_REQUIRED_CLUSTER = 11,   /* the kernel was built for another cluster, or for some */
    BH_REASON_COOPERATIVE_UNSUPPORTED = 12,
    BH_REASON_RESIDENCY = 13, /* cooperative: not all blocks can run at once */
    BH_REASON_ATTRIBUTE = 14, /* priority, cluster_policy, BH_LAUNCH_PROGRAMMATIC: not here */
    BH_REASON_ARGUMENT_COUNT = 15,
    BH_REASON_ARGUMENT_SIZE = 16,
    BH_REASON_ARGUMENT_KIND = 17, /* a scalar where a pointer belongs, or the other way round */
    BH_REASON_BUFFER_SMALL = 18,  /* fewer bytes than declared */
    BH_REASON_BUFFER_HANDLE = 19, /* released, of another device, made up */
    BH_REASON_SUSPECT = 20,       /* reads what a lost worker may have left half written */
    BH_REASON_QUARANTINED = 21,
    BH_REASON_MODULE_STALE = 22, /* its module's variables were lost with a worker */
    BH_REASON_QUEUE_FULL = 23,
    BH_REASON_OTHER = 24,           /* see bh_last_error */
    BH_REASON_PARAMETER_BYTES = 25, /* more bytes of parameters than the lane's queue takes */
    BH_REASON_BUFFER_BUSY = 26      /* a managed buffer is mapped, or attached elsewhere */
};
/* "residency" and so on, as in the one-line form; "?" for a number that is none. */
BH_API const char *bh_reason_name(uint32_t reason);

typedef struct bh_preflight {
    uint32_t size;
    bh_status status; /* BH_OK: it would be taken; else what bh_launch would return */
    uint32_t reason;  /* BH_REASON_... */
    uint32_t cooperative;
    uint64_t requested, limit;   /* the two numbers that do not go together; 0: no numbers */
    bh_dim grid, block, cluster; /* as they count: no zeros, but for no cluster */
    uint32_t threads;            /* in a block */
    uint64_t blocks;             /* in the grid */
    uint32_t max_threads;        /* the largest block of this kernel */
    uint32_t static_shared, dynamic_shared, max_dynamic_shared;
    uint32_t multiprocessors;
    uint32_t blocks_per_multiprocessor; /* that can be resident at once */
    uint64_t resident_blocks;           /* the same on the whole device */
    uint32_t max_cluster;               /* blocks in the largest cluster; 0: no clusters */
    uint32_t recommended_block;         /* threads that the device recommends for this kernel */
    double occupancy; /* theoretical, 0 to 1: resident warps of those there is room for. CPU device:
                         lanes of its warps that a block fills */
    uint32_t recommended_grid; /* the least blocks of that size that fill the device */
    bh_dim fits_grid;          /* the largest grid up to the one given that fits with this block */
    bh_dim fits_block; /* the largest block up to the one given that fits with this grid; zeros:
                                   none does */
    char kernel[256];
    char message[512]; /* as bh_last_error would have it; empty if status is BH_OK */
    char fix[256];
} bh_preflight;

/*
 * Would this launch fit? Answered by the code that checks launches, and by the device where it is
 * the one to know; without arguments, and without launching. BH_OK: answered, see out->status; the
 * thread's last error is left alone. What is wrong with the shape, the kernel or the lane is found
 * before any argument is looked at, so a launch is refused for the same reason. For a block or shared memory that cannot be, resident_blocks and
 * occupancy are zero, and fits_grid goes with fits_block. `options` may be NULL.
 */
BH_API bh_status bh_launch_preflight(bh_kernel kernel, bh_shape shape,
                                     const bh_launch_options *options, bh_preflight *out);

/*
 * One line for logs and tools, always with these fields in this order; more may follow some day:
 *
 *   bulkhead-launch-v1|kernel=saxpy|status=blocked|reason=kernel_threads|requested=1024|limit=512
 *   |grid=4x1x1|block=1024x1x1|shared=0+0|cooperative=no|resident=0|cluster=none
 *
 * (in one line). status is ok or blocked, reason none or a bh_reason_name, shared static + dynamic
 * bytes, resident the blocks that can run at once (0: not asked). In the name '|', '%', spaces and
 * control characters are written as %7C and so on. BH_E_INVALID: `bytes` are too few; BH_LINE_BYTES
 * are always enough.
 */
enum { BH_LINE_BYTES = 1536 };
BH_API bh_status bh_preflight_line(const bh_preflight *preflight, char *out, size_t bytes);
/* The same for the last launch of this thread that was refused. BH_E_NOT_FOUND: none was. */
BH_API bh_status bh_last_launch_line(char *out, size_t bytes);

/*
 * A prepared launch: checked and packed once, launched any number of times at about the price of
 * its place in the queue, with other buffers or scalars if need be. It keeps the buffers it uses
 * alive: one that is released meanwhile goes when the prepared launch lets go of it. It does not
 * keep the module: once that is unloaded, launching returns BH_E_INVALID. Values given with BH_VALUE
 * are copied. Buffers in doubt, a quarantined kernel and a full queue are found out at each launch.
 * A takeover changes nothing about it.
 *
 * Any thread may use one at any time, also the same one at once: a change is made as a whole, and
 * a launch uses one state or the other. To launch with values of one's own while others use it too,
 * give them with the call.
 */
typedef struct bh_change {
    uint32_t index; /* of the argument, from 0 on */
    uint32_t reserved;
    bh_arg arg;
} bh_change;

BH_API bh_status bh_prepare(bh_kernel kernel, bh_shape shape, bh_args args,
                            const bh_launch_options *options, bh_prepared *out);
/* For all launches from now on. */
BH_API bh_status bh_prepared_set(bh_prepared prepared, uint32_t index, bh_arg arg);
BH_API bh_status bh_prepared_launch(bh_prepared prepared, bh_ticket *out);
/* Makes the changes as bh_prepared_set does, all or, if one is refused, none, and launches, as one
 * step. */
BH_API bh_status bh_prepared_launch_with(bh_prepared prepared, const bh_change *changes,
                                         size_t count, bh_ticket *out);
/* Launches that are queued are not affected. */
BH_API bh_status bh_prepared_release(bh_prepared prepared);

/* ---- sequences ----------------------------------------------------------------------------------
 *
 * Work that is recorded once and replayed with one submission: launches, copies, fills, and transfers
 * from and to memory of bh_host_alloc. Steps run in the order they were recorded. On a GPU the whole
 * is one graph, made when recording is finished, here and in the standby.
 *
 *     bh_sequence_begin(gpu, NULL, &seq);
 *     bh_sequence_launch(seq, scale, BH_GRID(n, 256), BH_ARGS(2.0f, BH_INOUT(x), n), NULL, &step);
 *     bh_sequence_launch(seq, sum, BH_GRID(n, 256), BH_ARGS(BH_IN(x), BH_OUT(total), n), NULL, NULL);
 *     bh_sequence_finish(seq);
 *     bh_sequence_submit(seq, NULL, &first);
 *     bh_sequence_bind(seq, x, other);                     // reads and writes `other` from now on
 *     bh_sequence_set(seq, step, 0, BH_ARG(3.0f));
 *     bh_sequence_submit(seq, NULL, &second);              // `first` may still be queued
 *
 * A submission means what the sequence is bound and set to when it is made. What a sequence uses stays
 * alive until it is released or bound to something else: buffers, modules whose handles are gone.
 */
typedef struct bh_sequence {
    uint64_t id;
} bh_sequence;

typedef struct bh_sequence_options {
    uint32_t size;
    uint32_t flags;   /* none yet */
    const char *name; /* for messages, up to 63 bytes, copied; default "sequence 1" and so on */
} bh_sequence_options;

BH_API bh_status bh_sequence_begin(bh_device device, const bh_sequence_options *options,
                                   bh_sequence *out);

/* Checked as bh_launch_with checks it. Options count as there, but that lane, deadline,
 * BH_LAUNCH_IDEMPOTENT and BH_LAUNCH_NO_BLOCK are the submission's. *out_step, which
 * may be NULL, gets the step's number, from 0 on. */
BH_API bh_status bh_sequence_launch(bh_sequence sequence, bh_kernel kernel, bh_shape shape,
                                    bh_args args, const bh_launch_options *options,
                                    uint32_t *out_step);
BH_API bh_status bh_sequence_copy(bh_sequence sequence, bh_buffer target, uint64_t target_offset,
                                  bh_buffer source, uint64_t source_offset, uint64_t bytes,
                                  uint32_t *out_step);
BH_API bh_status bh_sequence_fill(bh_sequence sequence, bh_buffer buffer, uint64_t offset,
                                  uint64_t bytes, const void *pattern, uint32_t pattern_bytes,
                                  uint32_t *out_step);
/* The host's end lies in memory from bh_host_alloc or bh_host_pool_take, which cannot be freed or
 * given back before the sequence is released (BH_E_BUSY). It is read and written when the step
 * runs. */
BH_API bh_status bh_sequence_write(bh_sequence sequence, bh_buffer buffer, uint64_t offset,
                                   const void *source, uint64_t bytes, uint32_t *out_step);
BH_API bh_status bh_sequence_read(bh_sequence sequence, bh_buffer buffer, uint64_t offset,
                                  void *target, uint64_t bytes, uint32_t *out_step);
/* Each submission begins when what was submitted to `lane` before it is done. (What touches the same
 * buffers is waited for anyway.) */
BH_API bh_status bh_sequence_wait(bh_sequence sequence, bh_lane lane);

/* No more steps. When it returns the sequence is ready to be submitted. */
BH_API bh_status bh_sequence_finish(bh_sequence sequence);

/* Wherever `recorded` was recorded, `buffer` is used from now on. Both have the same size in bytes;
 * `recorded` need not be open any more. */
BH_API bh_status bh_sequence_bind(bh_sequence sequence, bh_buffer recorded, bh_buffer buffer);
/* Changes one argument of a launch that is no buffer. */
BH_API bh_status bh_sequence_set(bh_sequence sequence, uint32_t step, uint32_t argument,
                                 bh_arg value);

typedef struct bh_replay_options {
    uint32_t size;
    uint32_t flags;       /* BH_LAUNCH_IDEMPOTENT, BH_LAUNCH_NO_BLOCK */
    bh_lane lane;         /* zero: the device's own */
    uint64_t deadline_ns; /* running time allowed for all of it; 0: the device's default */
    uint32_t repeat;      /* times that the steps run, one after the other; 0 counts as 1 */
    uint32_t reserved;
} bh_replay_options;

/* If a step faults, the ticket's error names the sequence and the step, or on a GPU the steps it can
 * have been, at most sixteen. A step that is refused on its own ends the submission; those before it have run. */
BH_API bh_status bh_sequence_submit(bh_sequence sequence, const bh_replay_options *options,
                                    bh_ticket *out);
/* What was submitted still runs; the handle is gone at once. */
BH_API bh_status bh_sequence_release(bh_sequence sequence);

/* ---- one-call dispatch --------------------------------------------------------------------------
 *
 * A kernel on arrays of the host: buffers are found, inputs go up, the kernel runs, outputs come
 * back, and the buffers are given back.
 *
 *     bh_dispatch_arg args[] = {BH_HOST_VALUE(&a, sizeof a), BH_HOST_IN(x, n * sizeof *x),
 *                               BH_HOST_INOUT(y, n * sizeof *y), BH_HOST_VALUE(&n, sizeof n)};
 *     bh_dispatch(saxpy, BH_GRID(n, 256), args, 4, NULL);
 */
enum {
    BH_DISPATCH_VALUE = 1, /* a scalar or struct: the bytes at `input` */
    BH_DISPATCH_IN = 2,    /* an array that the kernel reads */
    BH_DISPATCH_OUT = 3,   /* one that it writes whole */
    BH_DISPATCH_INOUT = 4  /* one that it reads and writes; both pointers, which may be the same */
};

typedef struct bh_dispatch_arg {
    uint32_t kind;
    uint32_t reserved;
    uint64_t bytes;
    const void *input;
    void *output; /* written only if the kernel ended well */
} bh_dispatch_arg;

typedef struct bh_dispatch_options {
    uint32_t size;
    uint32_t flags;       /* BH_LAUNCH_IDEMPOTENT */
    uint64_t deadline_ns; /* of each kernel; 0: the device's default */
    uint32_t lanes;       /* of a batch: used side by side; 0: three, at most 8 */
    uint32_t retries; /* at most 100: how often an item is run again, by itself, if it was lost with
                             its worker or is one of several that may have ruined it */
} bh_dispatch_options;

/* Returns when the outputs are there, or the error of the kernel. */
BH_API bh_status bh_dispatch(bh_kernel kernel, bh_shape shape, const bh_dispatch_arg *args,
                             size_t arg_count, const bh_dispatch_options *options);

typedef struct bh_dispatch_item {
    uint32_t size;
    bh_status status; /* out: what became of it */
    bh_kernel kernel;
    bh_shape shape;
    uint32_t attempts; /* out: how often it was begun */
    uint32_t reserved;
    const bh_dispatch_arg *args;
    size_t arg_count;
    bh_error *error; /* out: the detail of its error; NULL: not wanted */
} bh_dispatch_item;

/*
 * Many of them, of one device, over several lanes: while one is computed, others go up and come back.
 * Small arrays of items that follow each other travel together, one transfer each way for all of
 * them. Items are independent: their order is not kept, and an item that fails leaves the others
 * alone. Returns the first error in the order given. items[0].size is the length of every item.
 */
BH_API bh_status bh_dispatch_batch(bh_dispatch_item *items, size_t count,
                                   const bh_dispatch_options *options);

/* ---- tickets ---- */

/* What became of the work: BH_OK, its error, or BH_E_TIMEOUT. */
BH_API bh_status bh_wait(bh_ticket ticket, uint64_t timeout_ns);
/* Waits for all of them; returns the first error in the order given. */
BH_API bh_status bh_wait_all(const bh_ticket *tickets, size_t count, uint64_t timeout_ns);
/* The same without waiting: BH_E_BUSY while it is not done. */
BH_API bh_status bh_query(bh_ticket ticket);
/* Fills in the detail of a ticket's error and returns bh_query's answer. */
BH_API bh_status bh_ticket_error(bh_ticket ticket, bh_error *out);

/* Of how many failed tickets of this process the details are kept (message, kernel, fix), the most
 * recent ones; 65,536 unless set. Older ones still answer with their status. */
BH_API bh_status bh_set_failure_limit(uint64_t count);
/* Takes back work that no worker has begun, compiles included: the ticket resolves to
 * BH_E_CANCELLED. BH_E_BUSY: it has begun. BH_E_INVALID: it is done. */
BH_API bh_status bh_cancel(bh_ticket ticket);

/* Runs once, on the device's dispatcher thread, with no lock held; may make any call that does not
 * wait. */
typedef void bh_done_fn(void *context, bh_ticket ticket, bh_status status);
BH_API bh_status bh_on_done(bh_ticket ticket, bh_done_fn *done, void *context);
/* Makes the device's eventfd readable when the ticket is done, at once if it is already. */
BH_API bh_status bh_notify(bh_ticket ticket);

/* ---- counters and traces -----------------------------------------------------------------------
 *
 * Always on; docs/counters.md says what each counts and what it costs. They only ever go up (but for
 * queue_depth) and are never reset: take two and subtract. Totals go on through takeovers. What the
 * worker counts (trains, times) may lag behind tickets by a moment.
 */

enum { BH_HISTOGRAM_BUCKETS = 28 };

/* buckets[i] counts times of more than bh_histogram_limit(i - 1) and at most bh_histogram_limit(i)
 * nanoseconds: 256 << i, the last one UINT64_MAX. */
typedef struct bh_histogram {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t buckets[BH_HISTOGRAM_BUCKETS];
} bh_histogram;

BH_API uint64_t bh_histogram_limit(uint32_t bucket);

typedef struct bh_lane_counts {
    uint32_t size;
    uint32_t index;        /* as in messages and labels; the device's own lane is 0 */
    uint64_t requests;     /* submitted: launches, transfers, fills, replays of sequences */
    uint64_t launches;     /* by themselves and as steps of sequences */
    uint64_t failed;       /* tickets that ended with an error */
    uint64_t elements;     /* threads with something to do: bh_launch_options.elements, else all */
    uint64_t threads;      /* in the grids launched */
    uint64_t thread_slots; /* threads with each block rounded up to whole warps */
    uint64_t thread_slots_wasted; /* thread_slots less elements */
    uint64_t bytes_to_device;     /* from host memory */
    uint64_t bytes_to_host;
    uint64_t bytes_within;    /* copied or filled on the device */
    uint64_t trains;          /* several launches sent to the device as one */
    uint64_t train_launches;  /* launches in them */
    uint64_t queue_depth;     /* queue slots submitted and not done, now */
    uint64_t queue_depth_max; /* the most that either side saw when it looked */
    bh_histogram queued;      /* from submission until the worker took it, of one in 16 */
    bh_histogram waiting;     /* from then until what it depends on was done */
    bh_histogram running;     /* device time */
} bh_lane_counts;

/* Since the lane was opened; zero is the device's own. */
BH_API bh_status bh_lane_counters(bh_device device, bh_lane lane, bh_lane_counts *out);

typedef struct bh_counters {
    uint32_t size;
    uint32_t lanes;    /* indexes in use so far */
    uint64_t requests; /* sums over all lanes, up to `running` */
    uint64_t launches;
    uint64_t failed;
    uint64_t elements;
    uint64_t threads;
    uint64_t thread_slots;
    uint64_t thread_slots_wasted;
    uint64_t bytes_to_device;
    uint64_t bytes_to_host;
    uint64_t bytes_within;
    uint64_t trains;
    uint64_t train_launches;
    uint64_t queue_depth;
    uint64_t queue_depth_max; /* the largest of a lane */
    bh_histogram queued;
    bh_histogram waiting;
    bh_histogram running;
    uint64_t allocations;       /* buffers that were given memory */
    uint64_t pool_hits;         /* of them, from chunks that were there already */
    uint64_t chunks_made;       /* asked of the device */
    uint64_t chunks_trimmed;    /* given back to it */
    uint64_t losses;            /* of workers, of any cause */
    uint64_t faults;            /* losses by a kernel's fault or a crash */
    uint64_t deadlines;         /* losses by a deadline */
    uint64_t restarts;          /* losses after which another worker went on */
    uint64_t standby_takeovers; /* of them, by a standby that was ready */
    uint64_t standby_starts;    /* processes started to be one */
    bh_histogram takeover;      /* from knowing of a loss to the next worker being told to go on */
    uint64_t requests_resent;   /* in flight on a lost worker, idempotent, sent again */
    uint64_t quarantines;       /* kernels put there */
    uint64_t stale_refusals;    /* calls and tickets that got BH_E_STALE */
    uint64_t module_loads;
    uint64_t module_load_failures;
    uint64_t compiles; /* runs of a compiler; these five are the process's, for all devices */
    uint64_t cache_memory_hits;
    uint64_t cache_disk_hits;
    uint64_t cache_misses;
    uint64_t cache_joined;
    uint64_t trace_records; /* handed to the trace's writer */
    uint64_t trace_dropped; /* that it had no room for */
    uint64_t replays;       /* submissions of sequences, each one request */
    uint64_t replay_steps;  /* steps in them, as often as they run */
    uint64_t dispatches; /* items of bh_dispatch and bh_dispatch_batch begun, retries among them */
} bh_counters;

BH_API bh_status bh_device_counters(bh_device device, bh_counters *out);

/* All of them in the text format of Prometheus, version 0.0.4, with a NUL behind. *length gets the
 * length without it. text may be NULL if capacity is 0, to ask for the length alone; it grows as
 * counters do, so allow some more. BH_E_INVALID: it does not fit, nothing was written. */
BH_API bh_status bh_counters_prometheus(bh_device device, char *text, size_t capacity,
                                        size_t *length);

/* Records every request from now on, and losses, takeovers, memory and module loads, in a file that
 * Perfetto (ui.perfetto.dev) and chrome://tracing open. It is written by a thread of its own; what
 * that cannot keep up with is dropped, and the file says how much. One trace a device at a time:
 * BH_E_BUSY. The file is whole after bh_trace_stop or bh_device_close. */
BH_API bh_status bh_trace_start(bh_device device, const char *path);
/* BH_E_IO: not everything could be written. BH_E_NOT_FOUND: there is no trace. */
BH_API bh_status bh_trace_stop(bh_device device);

#ifdef __cplusplus
} /* extern "C" */
#endif

/* ---- writing launches down -------------------------------------------------------------------
 *
 * BH_GRID(n, block)           enough blocks of `block` threads for n threads
 * BH_SHAPE(gx,gy,gz,bx,by,bz) any shape
 * BH_ARGS(a, b, ...)          up to 24 arguments: scalars by their C type, BH_IN(buffer),
 *                             BH_OUT(buffer), BH_INOUT(buffer), BH_VALUE(&s, sizeof s) for a
 *                             struct, BH_NULL for a null pointer. BH_IN_AT_LEAST(buffer, bytes)
 *                             and so on: refused if the buffer is smaller than that
 * BH_NO_ARGS
 */

static inline bh_shape bh_shape_1d(uint64_t threads, uint32_t block) {
    bh_shape shape = {{0, 1, 1}, {block, 1, 1}, {0, 0, 0}, 0};
    uint64_t blocks = block ? threads / block + (threads % block != 0) : 0;
    shape.grid.x = blocks > UINT32_MAX ? 0 : (uint32_t)blocks;
    if (shape.grid.x == 0) shape.grid.y = shape.grid.z = 0;
    return shape;
}

static inline bh_shape bh_shape_3d(uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
                                   uint32_t bz) {
    bh_shape shape = {{gx, gy, gz}, {bx, by, bz}, {0, 0, 0}, 0};
    return shape;
}

#define BH_GRID(threads, block)          bh_shape_1d((threads), (block))
#define BH_SHAPE(gx, gy, gz, bx, by, bz) bh_shape_3d((gx), (gy), (gz), (bx), (by), (bz))

/* Field by field, in words: compilers then store arguments where they belong, with no copy. */
static inline bh_arg bh_arg_words(uint32_t kind, uint32_t size, uint64_t first, uint64_t second) {
    bh_arg arg;
    arg.kind = kind;
    arg.size = size;
    arg.u.at_least.buffer.id = first;
    arg.u.at_least.bytes = second;
    return arg;
}

static inline bh_arg bh_arg_buffer(bh_buffer buffer, uint32_t access) {
    return bh_arg_words(BH_ARG_BUFFER, access, buffer.id, 0);
}

static inline bh_arg bh_arg_buffer_at_least(bh_buffer buffer, uint32_t access, uint64_t bytes) {
    return bh_arg_words(BH_ARG_BUFFER_AT_LEAST, access, buffer.id, bytes);
}

static inline bh_arg bh_arg_data(const void *data, size_t size) {
    bh_arg arg = {BH_ARG_DATA, size > UINT32_MAX ? UINT32_MAX : (uint32_t)size, {{0}}};
    arg.u.data = data;
    return arg;
}

/* The bytes of a scalar of at most 16 bytes, copied. */
static inline bh_arg bh_arg_value(const void *value, size_t size) {
    bh_arg arg = {BH_ARG_VALUE, (uint32_t)size, {{0}}};
    const uint8_t *bytes = (const uint8_t *)value;
    for (size_t i = 0; i < size && i < sizeof arg.u.value; i++) arg.u.value[i] = bytes[i];
    return arg;
}

static inline bh_arg bh_arg_null(void) {
    uint64_t zero = 0;
    return bh_arg_value(&zero, sizeof zero);
}

static inline bh_dispatch_arg bh_dispatch_array(uint32_t kind, const void *input, void *output,
                                                uint64_t bytes) {
    bh_dispatch_arg arg = {kind, 0, bytes, input, output};
    return arg;
}

#define BH_HOST_VALUE(data, bytes) bh_dispatch_array(BH_DISPATCH_VALUE, (data), NULL, (bytes))
#define BH_HOST_IN(data, bytes)    bh_dispatch_array(BH_DISPATCH_IN, (data), NULL, (bytes))
#define BH_HOST_OUT(data, bytes)   bh_dispatch_array(BH_DISPATCH_OUT, NULL, (data), (bytes))
#define BH_HOST_INOUT(data, bytes) bh_dispatch_array(BH_DISPATCH_INOUT, (data), (data), (bytes))

#define BH_IN(buffer)                    bh_arg_buffer((buffer), BH_ACCESS_IN)
#define BH_OUT(buffer)                   bh_arg_buffer((buffer), BH_ACCESS_OUT)
#define BH_INOUT(buffer)                 bh_arg_buffer((buffer), BH_ACCESS_INOUT)
#define BH_VALUE(data, size)             bh_arg_data((data), (size))
#define BH_IN_AT_LEAST(buffer, bytes)    bh_arg_buffer_at_least((buffer), BH_ACCESS_IN, (bytes))
#define BH_OUT_AT_LEAST(buffer, bytes)   bh_arg_buffer_at_least((buffer), BH_ACCESS_OUT, (bytes))
#define BH_INOUT_AT_LEAST(buffer, bytes) bh_arg_buffer_at_least((buffer), BH_ACCESS_INOUT, (bytes))
#define BH_NULL                          bh_arg_null()

#ifdef __cplusplus

namespace bulkhead_detail {
template <typename T> inline T sized() {
    T options = T();
    options.size = static_cast<uint32_t>(sizeof options);
    return options;
}

template <typename T> inline bh_arg arg(const T &value) {
    static_assert(sizeof(T) <= 16, "pass larger values with BH_VALUE(&s, sizeof s)");
    return bh_arg_value(&value, sizeof value);
}
template <> inline bh_arg arg<bh_arg>(const bh_arg &value) {
    return value;
}

template <size_t N> struct arg_list {
    bh_arg list[N];
    operator bh_args() const {
        bh_args args = {list, N};
        return args;
    }
};
template <typename... T> inline arg_list<sizeof...(T)> args(const T &...values) {
    return arg_list<sizeof...(T)>{{arg(values)...}};
}
} // namespace bulkhead_detail

#define BH_ARG(x)    (bulkhead_detail::arg(x))
#define BH_ARGS(...) (bulkhead_detail::args(__VA_ARGS__))
#define BH_NO_ARGS   (bh_args{nullptr, 0})

#else

static inline bh_arg bh_arg_self(bh_arg arg) {
    return arg;
}
#define BH_DEFINE_ARG_(name, type)                                                                 \
    static inline bh_arg bh_arg_##name(type value) {                                               \
        union {                                                                                    \
            uint64_t word;                                                                         \
            type value;                                                                            \
        } bits = {0};                                                                              \
        bits.value = value;                                                                        \
        return bh_arg_words(BH_ARG_VALUE, (uint32_t)sizeof value, bits.word, 0);                   \
    }
BH_DEFINE_ARG_(bool, bool)
BH_DEFINE_ARG_(char, char)
BH_DEFINE_ARG_(schar, signed char)
BH_DEFINE_ARG_(uchar, unsigned char)
BH_DEFINE_ARG_(short, short)
BH_DEFINE_ARG_(ushort, unsigned short)
BH_DEFINE_ARG_(int, int)
BH_DEFINE_ARG_(uint, unsigned int)
BH_DEFINE_ARG_(long, long)
BH_DEFINE_ARG_(ulong, unsigned long)
BH_DEFINE_ARG_(llong, long long)
BH_DEFINE_ARG_(ullong, unsigned long long)
BH_DEFINE_ARG_(float, float)
BH_DEFINE_ARG_(double, double)
#undef BH_DEFINE_ARG_

#define BH_ARG(x)                                                                                  \
    _Generic((x), bh_arg                                                                           \
             : bh_arg_self, bool                                                                   \
             : bh_arg_bool, char                                                                   \
             : bh_arg_char, signed char                                                            \
             : bh_arg_schar, unsigned char                                                         \
             : bh_arg_uchar, short                                                                 \
             : bh_arg_short, unsigned short                                                        \
             : bh_arg_ushort, int                                                                  \
             : bh_arg_int, unsigned int                                                            \
             : bh_arg_uint, long                                                                   \
             : bh_arg_long, unsigned long                                                          \
             : bh_arg_ulong, long long                                                             \
             : bh_arg_llong, unsigned long long                                                    \
             : bh_arg_ullong, float                                                                \
             : bh_arg_float, double                                                                \
             : bh_arg_double)(x)

#define BH_ARGS(...)                                                                               \
    ((bh_args){(const bh_arg[]){BH_EACH_(__VA_ARGS__)},                                            \
               sizeof((bh_arg[]){BH_EACH_(__VA_ARGS__)}) / sizeof(bh_arg)})
#define BH_NO_ARGS ((bh_args){NULL, 0})

#define BH_EACH_(...)                                                                              \
    BH_PICK_(__VA_ARGS__, BH_E24_, BH_E23_, BH_E22_, BH_E21_, BH_E20_, BH_E19_, BH_E18_, BH_E17_,  \
             BH_E16_, BH_E15_, BH_E14_, BH_E13_, BH_E12_, BH_E11_, BH_E10_, BH_E9_, BH_E8_,        \
             BH_E7_, BH_E6_, BH_E5_, BH_E4_, BH_E3_, BH_E2_, BH_E1_, BH_E0_)                       \
    (__VA_ARGS__)
#define BH_PICK_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18,  \
                 a19, a20, a21, a22, a23, a24, name, ...)                                          \
    name
#define BH_E1_(a)       BH_ARG(a)
#define BH_E2_(a, ...)  BH_ARG(a), BH_E1_(__VA_ARGS__)
#define BH_E3_(a, ...)  BH_ARG(a), BH_E2_(__VA_ARGS__)
#define BH_E4_(a, ...)  BH_ARG(a), BH_E3_(__VA_ARGS__)
#define BH_E5_(a, ...)  BH_ARG(a), BH_E4_(__VA_ARGS__)
#define BH_E6_(a, ...)  BH_ARG(a), BH_E5_(__VA_ARGS__)
#define BH_E7_(a, ...)  BH_ARG(a), BH_E6_(__VA_ARGS__)
#define BH_E8_(a, ...)  BH_ARG(a), BH_E7_(__VA_ARGS__)
#define BH_E9_(a, ...)  BH_ARG(a), BH_E8_(__VA_ARGS__)
#define BH_E10_(a, ...) BH_ARG(a), BH_E9_(__VA_ARGS__)
#define BH_E11_(a, ...) BH_ARG(a), BH_E10_(__VA_ARGS__)
#define BH_E12_(a, ...) BH_ARG(a), BH_E11_(__VA_ARGS__)
#define BH_E13_(a, ...) BH_ARG(a), BH_E12_(__VA_ARGS__)
#define BH_E14_(a, ...) BH_ARG(a), BH_E13_(__VA_ARGS__)
#define BH_E15_(a, ...) BH_ARG(a), BH_E14_(__VA_ARGS__)
#define BH_E16_(a, ...) BH_ARG(a), BH_E15_(__VA_ARGS__)
#define BH_E17_(a, ...) BH_ARG(a), BH_E16_(__VA_ARGS__)
#define BH_E18_(a, ...) BH_ARG(a), BH_E17_(__VA_ARGS__)
#define BH_E19_(a, ...) BH_ARG(a), BH_E18_(__VA_ARGS__)
#define BH_E20_(a, ...) BH_ARG(a), BH_E19_(__VA_ARGS__)
#define BH_E21_(a, ...) BH_ARG(a), BH_E20_(__VA_ARGS__)
#define BH_E22_(a, ...) BH_ARG(a), BH_E21_(__VA_ARGS__)
#define BH_E23_(a, ...) BH_ARG(a), BH_E22_(__VA_ARGS__)
#define BH_E24_(a, ...) BH_ARG(a), BH_E23_(__VA_ARGS__)

#endif

#endif
