/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/observe.h: which devices there are, losses and what follows from them, watchers,
 * reports, counters, traces, debugging modes, the sandbox. Stable.
 *
 * A service that hears of each loss, and whose policy never stops the device for a bad request:
 *
 *     void on_event(void *context, const bh_event *event) {
 *         (void)context;
 *         if (event->kind == BH_EVENT_LOSS)
 *             fprintf(stderr, "worker %d was lost: %s\n", (int)event->loss->generation,
 *                     event->loss->message);
 *         if (event->kind == BH_EVENT_HEALTH && event->health->state == BH_HEALTH_STOPPED)
 *             fprintf(stderr, "the device has stopped: %s\n", event->health->reason);
 *     }
 *     void keep_running(void *context, const bh_loss *loss, bh_verdict *verdict) {
 *         (void)context;
 *         if (loss->kind == BH_LOSS_FAULT || loss->kind == BH_LOSS_DEADLINE) verdict->go_on = 1;
 *     }
 *     bh_status open_service(bh_device *device, bh_watch *watch) {
 *         bh_device_options options = BH_INIT(options);
 *         options.policy = keep_running;
 *         bh_status status = bh_device_open(&options, device);
 *         return status ? status : bh_watch_open(*device, NULL, on_event, NULL, watch);
 *     }
 */
#ifndef BULKHEAD_OBSERVE_H
#define BULKHEAD_OBSERVE_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- which devices there are ---- */

/* Who may use a GPU: anybody, one process, nobody. */
enum { BH_COMPUTE_DEFAULT = 0, BH_COMPUTE_EXCLUSIVE = 1, BH_COMPUTE_PROHIBITED = 2 };

/* Numbers of the hardware and how it is set up. */
typedef struct bh_device_limits {
    uint32_t size;
    uint32_t max_block[3];
    uint32_t max_grid[3];
    uint32_t max_lanes;
    uint32_t max_param_bytes;      /* of one kernel: 32764; before CUDA 12.1 and sm_70 4096 */
    uint32_t shared_per_block;     /* without opt-in */
    uint32_t shared_per_block_max; /* with opt-in, which the library makes for every kernel */
    uint32_t shared_per_multiprocessor;
    uint32_t registers_per_block;
    uint32_t registers_per_multiprocessor;
    uint32_t max_threads_per_multiprocessor;
    uint32_t max_blocks_per_multiprocessor;
    uint32_t clock_khz;
    uint32_t memory_clock_khz;
    uint32_t memory_bus_bits;
    uint32_t l2_bytes;
    uint32_t async_engines;      /* copies that can run concurrently with kernels */
    uint32_t concurrent_kernels; /* 1: kernels of different lanes run concurrently */
    uint32_t cluster_launch;     /* 1: launches in clusters are supported */
    uint32_t ecc;                /* 1: on */
    uint32_t compute_mode;       /* BH_COMPUTE_... */
    uint32_t mig;                /* 1: part of a GPU, a MIG instance */
    uint32_t mps;                /* 1: shared with other programs by an MPS server */
    int32_t priority_lowest;     /* of lanes; both 0: priorities have no effect */
    int32_t priority_highest;
    uint32_t reserved;
    char no_tracking[192]; /* why this system does not report which pages of transparent buffers
                              (managed.h) were written, so that all count as written; "": it does */
} bh_device_limits;

BH_API bh_status bh_device_get_limits(bh_device device, bh_device_limits *out);

typedef struct bh_device_entry {
    uint32_t size;
    bh_status status; /* BH_OK: it can be opened */
    char device[32];  /* for bh_device_options.device */
    bh_error error;   /* if not: why */
    bh_device_info info;
    bh_device_limits limits;
} bh_device_entry;

/* The CPU device and the GPUs from cuda:0 on, up to the first that cannot be opened; that one is
 * listed only if it is cuda:0. Opens each device in turn, which takes as long as starting its
 * worker. As bh_memory_list (memory.h). */
BH_API bh_status bh_device_list(bh_device_entry *entries, size_t entry_size, size_t capacity,
                                size_t *count);

/* Waits until all standbys are ready. BH_E_UNSUPPORTED: the device has none and gets none, because
 * it was opened so or because none can be kept (bh_device_info.no_standby, no room); the message
 * says why. BH_E_TIMEOUT, or with a timeout of 0 BH_E_BUSY: they are not ready yet. */
BH_API bh_status bh_device_wait_standby(bh_device device, uint64_t timeout_ns);

/* ---- losses ---- */

enum {
    BH_LOSS_FAULT = 1,    /* a kernel faulted, or crashed the worker */
    BH_LOSS_DEADLINE = 2, /* a kernel exceeded its deadline */
    BH_LOSS_LOST = 3,     /* the worker ended or was ended: killed, exited, sent invalid messages */
    BH_LOSS_STUCK = 4,    /* the worker was alive and made no progress: stuck_timeout_ns, or a
                             deadline that passed before the request was started */
    BH_LOSS_NO_MEMORY = 5, /* the device has no memory left for what the worker needs */
    BH_LOSS_BROKEN = 6     /* the device reports that it is broken, or workers do not start */
};

typedef struct bh_loss {
    uint32_t size;
    bh_status cause;       /* BH_E_FAULT, BH_E_DEADLINE, BH_E_LOST */
    uint64_t generation;   /* of the worker that was lost */
    uint32_t certain;      /* as in bh_error */
    uint32_t stopped;      /* 1: the device stopped, nothing took over */
    uint32_t from_standby; /* 1: a standby that was ready took over; 0: a worker started cold, or
                              still starting */
    uint32_t failed;       /* requests that got BH_E_FAULT or BH_E_DEADLINE */
    uint32_t lost;         /* ... BH_E_LOST */
    uint32_t stale;        /* ... BH_E_STALE */
    uint32_t resent;       /* were in flight, idempotent, and sent again */
    uint32_t suspect_buffers;
    uint64_t takeover_ns; /* from the detection of the loss to the order that the next worker
                             continues */
    char kernel[128];
    char message[512];
    uint32_t kind; /* BH_LOSS_... */
    uint32_t reserved;
    uint64_t number;  /* counts the device's losses, from 1 on */
    uint64_t time_ns; /* when it was detected, since 1970 */
} bh_loss;

enum { BH_LOSS_HISTORY = 16 };

/* The most recent BH_LOSS_HISTORY losses, newest first. As bh_memory_list (memory.h). While a
 * takeover is under way, the newest entry has a takeover_ns of 0. Never waits; may be called from
 * any callback. */
BH_API bh_status bh_device_list_losses(bh_device device, bh_loss *entries, size_t entry_size,
                                       size_t capacity, size_t *count);

/* ---- what follows from a loss ----
 *
 * The defaults keep good work running beside bad requests, and stop a device on which nothing
 * works:
 *
 * - Restarts have a budget of restart_limit losses. It is full at first and refills evenly over
 *   restart_window_ns. A loss that exceeds it stops the device. With restart_limit 0, the default,
 *   1000 losses in 60 s are allowed, but not 20 in a row without a completed request between them.
 *   UINT32_MAX, or BH_DEVICE_NO_RESTART_LIMIT: there is no budget.
 * - Workers that fail to start three times in a row, and a device that reports that it is broken,
 *   stop the device whatever the budget.
 * - A kernel is quarantined (BH_E_QUARANTINED until bh_kernel_pardon) after quarantine_after
 *   certain faults. With quarantine_after 0, the default, after 16, where each completed launch of
 *   the kernel takes one off: a kernel that always faults is quarantined, one that sometimes gets
 *   bad input is not. UINT32_MAX: never.
 *
 * bh_device_options.policy, if set, decides instead. It is called at each loss, before any request
 * gets its result, with the decision of the limits in *verdict, and may change it. loss->stopped is
 * 1 if the limits would stop the device; counts and times in *loss are not known yet and zero. It
 * is called once more if workers repeatedly fail to start (kind BH_LOSS_BROKEN or
 * BH_LOSS_NO_MEMORY, go_on 0): with go_on 1 they are started again, at growing intervals.
 *
 * It runs on a thread of the library with no lock held, and no work is done meanwhile: return soon.
 * Calls to the same device that take a handle or wait are refused with BH_E_INVALID, except
 * bh_device_get_health, bh_device_get_report, bh_device_list_losses and bh_device_list_findings.
 */
typedef struct bh_verdict {
    uint32_t size;
    uint32_t go_on;      /* 1: another worker continues; 0: the device stops */
    uint32_t quarantine; /* 1: the kernel that loss->kernel names, if any, is quarantined */
    uint32_t resend;     /* 1: launches and sequences in flight that are idempotent are sent again,
                            where that is safe; 0: they get BH_E_LOST. Transfers are always sent
                            again */
} bh_verdict;

/* ---- watchers: the events of a device ---- */

typedef struct bh_watch {
    uint64_t id;
} bh_watch;

enum {
    BH_EVENT_LOSS = 1u << 0,     /* a worker was lost, and the takeover is over */
    BH_EVENT_HEALTH = 1u << 1,   /* bh_health.state changed */
    BH_EVENT_PRESSURE = 1u << 2, /* device memory gets scarce */
    BH_EVENT_PRINT = 1u << 3     /* kernels printed, or an assertion failed */
};

enum {
    BH_PRESSURE_ABOVE = 1,   /* bytes in buffers reached the threshold */
    BH_PRESSURE_BELOW = 2,   /* ... fell to 15/16 of it again */
    BH_PRESSURE_TRIMMED = 3, /* unused chunks were given back so that an allocation could succeed */
    BH_PRESSURE_FAILED = 4   /* an allocation failed */
};

typedef struct bh_pressure {
    uint32_t size;
    uint32_t reason; /* BH_PRESSURE_... */
    uint64_t threshold;
    uint64_t asked; /* TRIMMED, FAILED: the size of the allocation */
    uint64_t bytes_buffers;
    uint64_t bytes_reserved;
    uint64_t limit;
    uint64_t times; /* how often this happened since the watcher was last told of it */
} bh_pressure;

/* An event. It and all that it points to is valid during the call. */
typedef struct bh_event {
    uint32_t size;
    uint32_t kind; /* one BH_EVENT_...; the fields of other kinds are NULL */
    bh_device device;
    const bh_loss *loss;
    const bh_health *health; /* as of the change; oldest_running_ns is 0 */
    const bh_pressure *pressure;
    const char *text; /* PRINT: `length` bytes, without a NUL */
    size_t length;
} bh_event;

/* Called on the dispatcher thread, with no lock held. May make any call that does not wait. */
typedef void bh_event_fn(void *context, const bh_event *event);

typedef struct bh_watch_options {
    uint32_t size;
    uint32_t kinds;              /* BH_EVENT_... combined; 0: all */
    uint64_t pressure_threshold; /* in bytes; 0: seven eighths of the limit */
} bh_watch_options;

/* `callback` is called for what happens from now on, for each kind in the order in which it
 * happens. A device can have any number of watches; they are called in the order of opening, one
 * after the other.
 *
 * LOSS: without host memory, losses that were not told yet become one, the newest. Its `number`
 * shows it, and bh_device_list_losses has the others.
 *
 * HEALTH: each change between BH_HEALTH_OK, DEGRADED, REPLACING and STOPPED, once. Closing is not
 * reported. The state at first is what bh_device_get_health returns.
 *
 * PRESSURE: if the same happens again before `callback` was called, there is one call for both. A
 * watch that is opened above its threshold is called at once.
 *
 * PRINT: in pieces of any length, with the text of failed assertions (4 KiB of it). Text that
 * nobody watches is dropped. No kernel waits for a watcher. While print_limit bytes
 * (bh_device_options) wait for the slowest, further output is dropped, in whole lines where there
 * are any, and in its place the text has a line
 *
 *   bulkhead: 123456 bytes of kernel output were dropped here: ...
 *
 * bh_device_counters.print_dropped counts these bytes. GPUs have a limit of their own, 1 MiB of
 * arguments in one launch, beyond which the driver drops the oldest without reporting it. */
BH_API bh_status bh_watch_open(bh_device device, const bh_watch_options *options,
                               bh_event_fn *callback, void *context, bh_watch *out);
/* On return `callback` is not running and never runs again. Called by `callback` itself, it returns
 * while that one call still runs. Closing the device releases its watches, after they were told all
 * that happened before. */
BH_API bh_status bh_watch_release(bh_watch watch);

/* ---- reports and details of failures ---- */

/* What is known of a loss, as text for people: the cause and the driver's message, kernel,
 * arguments, shape, the position of each lane, suspect buffers with their tags, and the results of
 * the work. `loss` is bh_loss.number, 0 for the latest; the last BH_LOSS_HISTORY are kept. Watchers
 * find the report when they are called for the loss.
 *
 * The text ends with a NUL; *length gets its length without it. `text` may be NULL if capacity is
 * 0, to get the length only. BH_E_INVALID: it does not fit, and nothing was written.
 * BH_E_NOT_FOUND: there is no report of this loss, or it is no longer kept.
 *
 * With bh_device_options.report_dir the same text is also written there, to a file named
 * bulkhead-loss-TIME-PID-DEVICE-NUMBER.txt. Only its owner can read it, and it is never visible
 * half written. Of all such files the newest 100 are kept. */
BH_API bh_status bh_device_get_report(bh_device device, uint64_t loss, char *text, size_t capacity,
                                      size_t *length);

/* Sets for how many failed tickets of this process the details are kept (message, kernel, fix): the
 * most recent 65,536 unless set. Older tickets still return their status. */
BH_API bh_status bh_failure_set_limit(uint64_t count);

/* ---- the times of one piece of work ---- */

typedef struct bh_ticket_info {
    uint32_t size;
    bh_status status;    /* what bh_wait with a timeout of 0 returns */
    uint64_t generation; /* of the worker that ran it; 0: not known */
    uint32_t timed;      /* 1: the times below are known */
    uint32_t lane_index; /* as in messages */
    uint64_t queued_ns;  /* from submission until the worker took it */
    uint64_t waiting_ns; /* from then until the device began, behind other work */
    uint64_t device_ns;  /* that the device worked on it, measured by the device's own clock */
} bh_ticket_info;

/* Times are known of work that was submitted with BH_SUBMIT_TIMED and has completed with BH_OK, of
 * the latest 1024 such requests of a lane, until the lane is released and opened again. The worker
 * writes them just after it completes the work: the call waits for them for some milliseconds at
 * most. They are lost if the worker is lost before it has written them. A write of plain memory of
 * more than 512 KiB is several requests, whose device times are added; a read into plain memory is
 * not timed. */
BH_API bh_status bh_ticket_get_info(bh_ticket ticket, bh_ticket_info *out);

/* ---- counters ----
 *
 * Always on; docs/counters.md describes each and its cost. They only increase (except queue_depth)
 * and are never reset: subtract two readings. Totals continue through takeovers. What the worker
 * counts (trains, times) may lag slightly behind tickets.
 */

enum { BH_HISTOGRAM_BUCKETS = 28 };

/* buckets[i] counts times of at most 256 << i ns that are in no bucket before it; the last one
 * counts all longer times. */
typedef struct bh_histogram {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t buckets[BH_HISTOGRAM_BUCKETS];
} bh_histogram;

typedef struct bh_lane_counters {
    uint32_t size;
    uint32_t index;        /* as in messages and labels; the device's own lane is 0 */
    uint64_t requests;     /* submitted: launches, transfers, fills, submissions of sequences */
    uint64_t launches;     /* single ones and steps of sequences */
    uint64_t failed;       /* tickets that ended with an error */
    uint64_t elements;     /* threads with work to do: bh_launch_options.elements, else all */
    uint64_t threads;      /* in the grids launched */
    uint64_t thread_slots; /* threads with each block rounded up to whole warps */
    uint64_t thread_slots_wasted; /* thread_slots - elements */
    uint64_t bytes_to_device;     /* from host memory */
    uint64_t bytes_to_host;
    uint64_t bytes_within;    /* copied or filled on the device */
    uint64_t trains;          /* several launches sent to the device as one */
    uint64_t train_launches;  /* launches in them */
    uint64_t lane_waits;      /* requests submitted behind unfinished work of another lane */
    uint64_t host_waits;      /* times that a thread of the program waited for the lane: in bh_wait,
                                 in syncs, in calls that return when done, for room in the queue */
    uint64_t queue_depth;     /* queue slots submitted and not completed, now */
    uint64_t queue_depth_max; /* the maximum that either side saw when it looked */
    bh_histogram queued;      /* from submission until the worker took it, of one in 16 */
    bh_histogram waiting;     /* from then until its dependencies had completed */
    bh_histogram running;     /* device time */
} bh_lane_counters;

#ifdef __cplusplus
#define BH_ALL_LANES (bh_lane{UINT64_MAX})
#else
#define BH_ALL_LANES ((bh_lane){UINT64_MAX})
#endif
/* Since the lane was opened. A zero lane is the device's own. BH_ALL_LANES: sums over all lanes
 * that the device ever had; index is then UINT32_MAX, queue_depth_max the largest of a lane. */
BH_API bh_status bh_lane_get_counters(bh_device device, bh_lane lane, bh_lane_counters *out);

/* What is not of a lane. Counters of compiles are in bh_cache_info. */
typedef struct bh_device_counters {
    uint32_t size;
    uint32_t lanes;             /* indexes in use so far */
    uint64_t allocations;       /* buffers that got memory */
    uint64_t pool_hits;         /* of them, from existing chunks */
    uint64_t chunks_made;       /* requested from the device */
    uint64_t chunks_trimmed;    /* given back to it */
    uint64_t bytes_between;     /* copied here from other devices by bh_buffer_copy */
    uint64_t losses;            /* of workers, for any cause */
    uint64_t faults;            /* losses by a fault of a kernel or a crash */
    uint64_t deadlines;         /* losses by a deadline */
    uint64_t restarts;          /* losses after which another worker continued */
    uint64_t standby_takeovers; /* of them, by a standby that was ready */
    uint64_t standby_starts;    /* processes started as standbys */
    bh_histogram takeover;      /* bh_loss.takeover_ns */
    uint64_t requests_resent;   /* in flight on a lost worker, idempotent, sent again */
    uint64_t quarantines;       /* kernels quarantined */
    uint64_t stale_refusals;    /* calls and tickets that got BH_E_STALE */
    uint64_t module_loads;
    uint64_t module_load_failures;
    uint64_t trace_records; /* passed to the writer of the trace */
    uint64_t trace_dropped; /* that it had no room for */
    uint64_t replays;       /* submissions of sequences, each one request */
    uint64_t replay_steps;  /* steps in them, as often as they run */
    uint64_t dispatches;    /* items of bh_dispatch and bh_dispatch_batch started, with retries */
    uint64_t print_dropped; /* bytes printed by kernels that exceeded print_limit */
    uint64_t launches_interpreted; /* submitted before native code was there, though wanted */
    uint64_t kernels_compiled;     /* native code that workers got: one for each kernel and shape */
} bh_device_counters;

BH_API bh_status bh_device_get_counters(bh_device device, bh_device_counters *out);

/* The counters of these devices, with a label for each, and those of the process, as one page in
 * the text format of Prometheus, version 0.0.4, with a NUL at the end. devices NULL and count 0:
 * all that are open in this process. *length gets the length without the NUL. `text` may be NULL if
 * capacity is 0, to get the length only; allow for more, because it grows with counters and
 * devices. BH_E_INVALID: it does not fit, and nothing was written to text. */
BH_API bh_status bh_prometheus(const bh_device *devices, size_t count, char *text, size_t capacity,
                               size_t *length);

/* ---- traces ---- */

/* Records every request from now on, and losses, takeovers, memory and module loads, in a file for
 * Perfetto (ui.perfetto.dev) and chrome://tracing. A thread of its own writes it; records that it
 * cannot keep up with are dropped, and the file says how many. One trace a device at a time:
 * BH_E_BUSY. Only its owner can read a new file. It is complete after bh_trace_stop or
 * bh_device_close. BH_E_IO: there can be no such file; a pipe is none. */
BH_API bh_status bh_trace_start(bh_device device, const char *path);
/* BH_E_IO: not everything could be written. BH_E_NOT_FOUND: there is no trace. */
BH_API bh_status bh_trace_stop(bh_device device);

/* ---- debugging modes ----
 *
 * BH_DEVICE_CHECK checks every access of a kernel, on the CPU device only (BH_E_UNSUPPORTED on
 * others). An error that it finds ends the launch with BH_E_FAULT; device_name has its kind:
 *
 *   CHECK_OUT_OF_BOUNDS   outside of every buffer, to the byte; also of shared and local memory and
 *                         of the variables of a module
 *   CHECK_USE_AFTER_FREE  in a buffer that was released
 *   CHECK_UNINITIALISED   bytes of a buffer, or of shared or local memory, that nothing has written
 *                         decide something: a branch, an address, what is stored to a buffer.
 *                         Copied padding does not count
 *   CHECK_RACE            two threads of a launch access the same bytes of global or shared memory,
 *                         one of them writes, not both atomically, and nothing orders the two.
 *                         What orders them: a barrier; for lanes of a warp a .sync operation;
 *                         between blocks a fence and an atomic or volatile access after it, all of
 *                         a scope that includes both. Writes of the same value do not race with
 *                         each other.
 *   CHECK_BARRIER         a divergent barrier: lanes of one warp wait at different barriers, or
 *                         threads at one that can never complete
 *
 *   CHECK_SHUFFLE         a shuffle from a lane that is not in the member mask or not there. Past
 *                         the edge of the mask, up or down, is no error: sums do that, and do not
 *                         use the value.
 *   CHECK_ASYNC_COPY      a read of shared memory that a cp.async may still write, because its
 *                         thread has not waited for it
 *
 * The message names the access, the thread and the line; for a race, both. The launch goes on after
 * an error where it can (a read out of bounds gives zero, such a write is dropped), so that all
 * errors are found at once: bh_device_list_findings has them, the ticket the first. Released memory
 * is not reused for a while, and buffers lie further apart. Launches are a few times slower. A race
 * that does not show in the one order in which threads ran can be missed. Launches of less than 50
 * ms run on one thread, in the same order every time.
 *
 * BH_DEVICE_GUARD gives each buffer memory of its own, padded to 16 bytes, followed by unmapped
 * memory, on every kind of device. A kernel that runs past the end of a buffer beyond that padding,
 * or uses a released buffer, faults at once (BH_E_FAULT) and writes nowhere else. The CPU device
 * knows the address, and the message names the buffer: "12 bytes past the end of argument 0, a
 * buffer of f32[100]". A GPU does not report it: there the message names what the launch was given
 * and what was released last. Buffers are aligned to 16 bytes unless their options say more; what
 * an alignment adds behind the end of a buffer is not guarded.
 *
 * The guard mode is for debugging: every allocation and release is a message to the worker, and
 * each buffer costs a descriptor and whole units of memory (64 KiB on the CPU device, 2 MiB on a
 * GPU). The memory before a buffer is mapped, for the part of such a unit that the buffer does not
 * fill. It cannot be combined with BH_DEVICE_CHECK, which finds more, but only on the CPU device.
 */

/* A thread and what it executed. */
typedef struct bh_finding_place {
    uint32_t line;        /* of the PTX; 0: there is no such place */
    uint32_t source_line; /* of `file`; 0: not known */
    uint32_t access;      /* BH_ACCESS_IN: a read, BH_ACCESS_OUT: a write, both: an atomic */
    uint32_t block[3];
    uint32_t thread[3];
    uint32_t reserved;
    char file[64]; /* that the PTX was compiled from, without folders; "": not known */
} bh_finding_place;

/* An error that BH_DEVICE_CHECK found, once for each kind and instruction, and for each pair of
 * instructions that race. */
typedef struct bh_finding {
    uint32_t size;
    uint32_t bytes;   /* of the access; 0: it is none */
    uint64_t address; /* of memory that all blocks share; else from the start of the block's shared
                         or the thread's local memory */
    uint32_t global;  /* 1: the former */
    uint32_t reserved;
    uint64_t count; /* how many times it happened */
    char kind[64];  /* CHECK_RACE and so on, as in bh_error.device_name */
    bh_finding_place here;
    bh_finding_place other; /* of a race: the access before */
    char kernel[128];
    char message[512]; /* one sentence; with the buffer, if the address is in or near one */
    char fix[256];
} bh_finding;

/* Everything that was found in the launch of a loss, in the order in which it was found; `loss` is
 * bh_loss.number, 0 for the latest. A launch is ended after 100 findings, or when they happened a
 * million times. As bh_memory_list (memory.h). BH_E_NOT_FOUND: there is no such loss, or it is no
 * longer kept. A loss without checks has no findings. */
BH_API bh_status bh_device_list_findings(bh_device device, uint64_t loss, bh_finding *entries,
                                         size_t entry_size, size_t capacity, size_t *count);

/* ---- the sandbox ----
 *
 * Workers confine themselves before they run anything. A worker of the CPU device can use the
 * memory and the descriptors that it was given, start threads, and nothing else: no file, no
 * socket, no program, no other process. On a GPU the driver needs to read files; writing files,
 * programs, sockets and other processes are denied there too. See docs/sandbox.md. A system call
 * that only a misbehaving worker would make ends it (BH_E_FAULT, with the call in the message).
 */
enum {
    /* As the variable BULKHEAD_SANDBOX says (on, off; ignored in set-user-ID programs); without it,
     * as much as the system supports. */
    BH_SANDBOX_DEFAULT = 0,
    BH_SANDBOX_OFF = 1, /* for debuggers and tracers that need more */
    BH_SANDBOX_ON = 2   /* all of it; if that is not supported, the device is not opened */
};

/* What confines a worker: bh_device_info.sandbox. */
enum {
    BH_CONFINED_CALLS = 1, /* calls that reach other processes, programs or the network fail */
    BH_CONFINED_LIST = 2,  /* so do all that are not on a short list */
    BH_CONFINED_FILES = 4  /* Landlock: CPU, no file can be opened; GPU, none written but caches */
};

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
