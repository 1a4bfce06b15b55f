/* SPDX-License-Identifier: Apache-2.0 */
/* What libbulkhead keeps, shared by the files of src/client: memory, modules, lanes, devices.
 *
 * Locks, outermost first; none is held while a callback of the program runs:
 *   device->lock       everything in bh__device unless a field says otherwise
 *   bh__compile_lock   requests to the compiler, and what is cached (client/compile.h)
 *   lane->wait_lock    the lane's list of sleepers
 *   device->jobs_lock  the queue of work for the supervisor
 *   device->dispatch_lock  the queue of work for the dispatcher
 */
#ifndef BH_CLIENT_OBJECTS_H
#define BH_CLIENT_OBJECTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/records.h"
#include "base/tune.h"
#include "bulkhead.h"
#include "client/count.h"
#include "client/heap.h"
#include "client/process.h"
#include "client/table.h"
#include "wire/control.h"
#include "wire/message.h"

typedef struct bh__device bh__device;

enum {
    BH__LOAD_LANE = BH__MAX_LANES, /* tickets of compiles and module loads: a lane without a ring,
                                      whose work ends in any order */
    BH__LANES = BH__MAX_LANES + 1,
    BH__USES_PER_SLOT = 8,
    BH__STAGING_SLOTS = BH__TUNE(16, 4),
    BH__STAGING_BYTES = BH__TUNE(512 * 1024, 1024),
    BH__BATCH_AREAS = 8,
    BH__BATCH_BYTES = 1024 * 1024,
    BH__MAX_WATCHERS = 16,
    BH__TAG_BUCKETS = 256,
    BH__MOST_TAGS = 4096, /* more are kept only while they are in use */
    BH__PRESSURE_REASONS = 4
};

/* ---- memory ---- */

typedef struct bh__span {
    uint64_t offset, bytes;
} bh__span;

/* When and where one lane last used a piece of memory. Ranges cover all uses that may not be done.
 */
typedef struct bh__lane_use {
    uint32_t lane;
    uint64_t write_position, write_from, write_to;
    uint64_t read_position, read_from, read_to;
} bh__lane_use;

/* Who buffers are for. */
typedef struct bh__tag {
    struct bh__tag *next;
    uint64_t hash;
    uint64_t bytes, buffers, high, limit, allocations;
    uint64_t references; /* memory that names it, freed or not */
    char name[BH_TAG_BYTES];
} bh__tag;

typedef struct bh__buffer {
    uint64_t id;
    struct bh__memory *memory; /* Retained. */
    uint64_t offset, bytes, count;
    bh_type type;
    bool is_view;
    uint32_t references;
} bh__buffer;

/* Memory that work can use: a block of a chunk, a host region, or a piece of one. Shared by a buffer
 * and its views. What a release looks at comes first: it is often long since anybody did. */
typedef struct bh__memory {
    uint64_t bytes;
    bh__block *block;      /* Owned. NULL for host regions. */
    bh__tag *tag;          /* Borrowed. NULL for host regions. */
    struct bh__solo *solo; /* Owned. Memory with a chunk of its own: `block` is part of it. */
    uint64_t held_by;      /* number of the lost worker that may still write it; 0: none */
    bh__lane_use *uses;    /* use_inline, or owned when it grew */
    bh__span *suspect;     /* Owned. Sorted, apart from each other. */
    uint32_t references;   /* buffer handles and views */
    uint32_t use_count;
    bh__buffer first; /* what its first handle means; records of other handles are their own */
    bool window;      /* a look at bytes of somebody else's chunk: nothing to give back */
    bool mirror;      /* host regions: the host copy of a managed buffer */
    uint32_t host_id; /* host regions: what requests call it */
    uint64_t address;
    uint64_t read_only_address;
    uint32_t use_capacity, suspect_count, suspect_capacity;
    const void *call_site; /* that allocated it */
    void *host;            /* host regions: where the application has it */
    uint64_t host_from;    /* pieces of a host region: where in it they begin */
    /* Managed buffers, which have a chunk of their own: what there is besides. Owned. */
    struct bh__managed *managed;
    /* Not zeroed from here on: an old number is no present one, and use_count says what is there. */
    struct bh__memory *next; /* in the list of the freed that are still in use, or retired */
    uint64_t doubt_stamp;    /* during a judgement: the latest request in flight that writes it */
    uint64_t doubt_loss;     /* the judgement doubt_stamp belongs to */
    uint64_t listed;         /* the last listing it was put in */
    bh__lane_use use_inline[2];
} bh__memory;
_Static_assert(offsetof(bh__memory, first) == 64 && offsetof(bh__memory, address) == 128 &&
                   offsetof(bh__memory, next) == 192,
               "a release needs the first two cache lines, an allocation the third as well");

/* ---- modules ---- */

typedef struct bh__kernel {
    uint64_t id;
    struct bh__module *module; /* Borrowed. */
    uint32_t index;
    char *name;
    bh__blob_kernel shape;
    bh__blob_param *params; /* Borrowed from the module's blob. */
    uint32_t faults;
    bool quarantined;
    bool padded;                /* there are bytes between the parameters */
    struct bh__known_fit *fits; /* Owned. fit.c */
    uint32_t fit_count;
    uint32_t trace_name; /* what a trace calls it; 0: nothing yet */
} bh__kernel;

typedef struct bh__variable {
    char *name;
    uint64_t bytes;
    bool writable;
    uint8_t *value;    /* what bh_module_global_write put there; NULL: nothing */
    bh__span *written; /* Sorted, apart from each other. */
    uint32_t written_count, written_capacity;
} bh__variable;

/* A name expression and what the compiler made of it. */
typedef struct bh__name {
    char *expression, *lowered; /* Owned. */
} bh__name;

typedef struct bh__names {
    bh__name *list; /* Owned. */
    size_t count;
} bh__names;

typedef struct bh__module {
    uint64_t id;
    uint32_t number; /* what workers call it */
    int image_fd;    /* Owned. */
    uint64_t image_bytes;
    uint8_t *blob; /* Owned: names and params point into it. */
    bh__kernel *kernels;
    uint32_t kernel_count;
    bh__variable *variables;
    uint32_t variable_count;
    bool loaded;
    bool launched;                   /* a kernel of it may have run on the present worker */
    bool stale;                      /* its own variables died with a worker */
    bool unloaded;                   /* the handle is gone; the rest goes when `last` is done */
    uint32_t pins;                   /* calls that use it while they wait */
    uint64_t last[BH__MAX_LANES];    /* position of the last request that uses it, a lane */
    uint64_t ticket;                 /* of its compile or load, on the load lane */
    struct bh__module *next_pending; /* in the lane's list of those whose ticket is open */
    struct bh__product *product;     /* Retained: the compile it came from. NULL: none. */
    uint32_t cache;                  /* where that was found, BH_CACHE_MISS ... */
    struct bh__module *next;
} bh__module;

/* ---- sequences: sequence.c, record.c ---- */

typedef struct bh__sequence bh__sequence;

/* ---- requests and lanes ---- */

/* Beside BH_ACCESS_OUT: leaves gaps, so that what was in doubt stays so. */
enum { BH__ACCESS_GAPS = 4 };

typedef struct bh__use {
    bh__memory *memory; /* Borrowed: memory outlives the requests that use it. */
    uint64_t offset, bytes;
    uint32_t access;
    uint32_t argument; /* of a launch, from 1 on; 0: none */
} bh__use;

enum {
    BH__UNRESOLVED,
    BH__RESOLVED_LOST,      /* by a judgement: what it was to write is in doubt */
    BH__RESOLVED_CANCELLED, /* the same, if it was to overwrite what was in doubt already */
    BH__RESOLVED_ACCEPTED   /* the program has accepted what is there */
};

/* What the application keeps to itself about a request, a slot for each slot of the ring. Uses
 * beyond the first eight are in the shadows of the request's further slots. */
typedef struct bh__shadow {
    uint64_t start; /* position of the request's first slot */
    uint64_t stamp; /* order of submission over all lanes */
    uint64_t deadline_ns;
    bh__kernel *kernel;     /* launches */
    bh__module *module;     /* launches and variables */
    bh__sequence *sequence; /* sequences */
    uint32_t slots;
    uint32_t use_count;
    uint32_t grid[3], block[3];
    uint16_t op;
    uint8_t idempotent;
    uint8_t resolved; /* BH__RESOLVED_...: it has its verdict, and BH__OP_SKIP in the ring */
    uint8_t cleared;  /* it was to overwrite suspect data */
    bh__use uses[BH__USES_PER_SLOT];
} bh__shadow;

/* A ticket that did not end well. */
typedef struct bh__failure {
    uint64_t sequence;
    bh_status status;
    uint32_t certain;
    uint64_t loss;    /* number of the loss it belongs to, 0: none */
    char *kernel;     /* Owned; NULL: not a launch */
    bh_error *detail; /* Owned; NULL: composed from the above */
} bh__failure;

typedef struct bh__failures {
    bh__failure *list; /* sorted by sequence */
    size_t count, capacity;
    bh__failure unnoted; /* stands for those there was no memory to note: up to its sequence, from
                            `unnoted_from` on */
    uint64_t unnoted_from;
} bh__failures;

typedef struct bh__sleeper {
    uint64_t sequence;
    struct bh__sleeper *next;
} bh__sleeper;

typedef struct bh__lane {
    _Atomic uint64_t id; /* what tickets call it; 0: not in use. Read without the lock. */
    pthread_mutex_t wait_lock;
    bh__sleeper *sleepers; /* under wait_lock */
    uint64_t handle;       /* 0: closed, or the load lane */
    uint32_t index;
    bool exists;           /* workers have it */
    int32_t priority;      /* that they have it with */
    _Atomic uint64_t tail; /* Written with the lock held, read without. */
    uint64_t retired;      /* known to be done: slots before this are free */
    uint64_t floor;        /* where the present worker started */
    uint64_t begun;        /* how far lost workers had taken requests */
    _Atomic uint32_t
        errors_seen; /* reports collected from the present worker. Read without the lock. */
    _Atomic uint64_t last_failed; /* no ticket above this has failed. Read without the lock. */
    /* Load lane only. All up to load_done are resolved, and of the later ones those that no module
     * in `pending` has. */
    _Atomic uint64_t load_done;
    _Atomic uint32_t load_wake; /* futex: counted up with each that is resolved */
    struct bh__module *pending; /* Borrowed. Lowest ticket first. */
    uint8_t *ring;
    bh__shadow *shadow;
    bh__failures failures;
    uint64_t head_position; /* supervisor: the request now running as far as known */
    uint64_t head_since;
    bh__lane_tally tally;
    struct bh__lane_trace *trace; /* Owned. NULL: not traced. */
} bh__lane;

/* What bh__submit makes a request of. */
typedef struct bh__submission {
    bh__lane *lane;
    uint16_t op;
    bool idempotent;
    bool no_block;
    uint64_t deadline_ns;
    bh__kernel *kernel;
    bh__module *module;
    const bh__use *uses;
    uint32_t use_count;
    const void *params;
    uint32_t param_bytes;
    uint64_t elements;             /* launches: 0: all threads */
    const bh__launch_body *launch; /* launches */
    bh__sequence *sequence;        /* sequences */
    const bh__sequence_body *replay;
    const uint64_t *after; /* of each lane the position to wait for besides; NULL: none */
    bh__copy_body copy;    /* all others */
} bh__submission;

/* ---- the supervisor's own ---- */

/* Something a worker must be told. `job` is NULL for what is only told to bring a worker up to
 * date. */
typedef struct bh__order {
    struct bh__order *next;
    struct bh__job *job;
    uint32_t type; /* BH__MSG_... */
    uint32_t serial;
    int fd; /* Borrowed; -1: none */
    bh__chunk chunk;
    bh__host_region host;
    bh__advice_message advice;
    bh__module_message module;
    bh__lane_message lane;
    bh__fit_question fit;
    bh__sequence_message sequence;
    uint8_t *data; /* Owned. */
    uint32_t data_bytes;
} bh__order;

typedef enum bh__worker_state {
    BH__WORKER_NONE,    /* the area is free */
    BH__WORKER_BOOTING, /* started, not READY yet */
    BH__WORKER_STANDBY, /* READY; ready to take over once its orders are carried out */
    BH__WORKER_ACTIVE,
    BH__WORKER_DYING /* killed or dead, not reaped */
} bh__worker_state;

typedef struct bh__worker {
    bh__worker_state state;
    bh__process process;
    int socket;
    int errors_fd; /* its standard error */
    int canary_fd; /* readable as soon as it dies; -1: it has none */
    uint32_t area;
    uint32_t outstanding;
    uint32_t next_serial;
    bh__order *waiting, *waiting_last; /* to be sent */
    bh__order *sent, *sent_last;       /* sent, not acknowledged, in order */
    uint64_t started_ns, boot_deadline;
    uint64_t loss;          /* DYING: which loss it was, 0: it was a standby */
    bool profiled;          /* ends by itself when it is told to */
    bool unfit;             /* could not be brought up to date */
    bh_status unfit_status; /* what it failed of then */
    char errors[512];       /* the end of what it wrote to standard error */
    size_t errors_length;
    char words[4096]; /* the beginning of it */
    size_t words_length;
} bh__worker;

enum { BH__JOB_ORDER, BH__JOB_FLUSH, BH__JOB_CLOSE };

/* Something asked of the supervisor. */
typedef struct bh__job {
    struct bh__job *next;
    int kind;
    bh__order order;
    bh__memory *host;          /* BH__MSG_HOST_MAP: what the region is noted with */
    bh__module *module;        /* loads */
    bh__sequence *sequence;    /* BH__MSG_SEQUENCE_DEFINE */
    struct bh__driven *driven; /* BH__MSG_CHUNK_CREATE with BH__CHUNK_DRIVER */
    uint32_t attempts;
    bh__fit fit; /* BH__MSG_FIT: the answer */
    bh_error error;
    _Atomic uint32_t done; /* futex */
    bool self_owned;       /* nobody waits: the supervisor frees it */
    bool closes;           /* `close_fd` is closed when it is done, however it went */
    int close_fd;
} bh__job;

/* What the library's memory looks like to every worker, told to each new one. */
typedef struct bh__chunk_entry {
    bh__chunk chunk;
    int fd;               /* Owned. */
    uint8_t *marks, *map; /* Owned. With checks: base/shadow.h. Else NULL. */
} bh__chunk_entry;

typedef struct bh__host_entry {
    bh__host_region region;
    int fd;                          /* Owned. */
    bh__memory *memory;              /* Owned. */
    struct bh__host_pool_slab *slab; /* Borrowed. Of a pool's region; else NULL. */
} bh__host_entry;

typedef struct bh__staging_slot {
    bool taken;
    uint64_t hold; /* not before this lost worker is reaped */
    uint32_t lane;
    uint64_t sequence; /* with `taken` false: in use until this is done */
} bh__staging_slot;

/* Host memory that dispatches go through, made when first needed and kept. */
typedef struct bh__batch_area {
    void *memory;
    bool taken;
    uint64_t hold; /* not before this lost worker is reaped */
} bh__batch_area;

typedef struct bh__callback {
    struct bh__callback *next;
    bh_ticket ticket;
    bh_done_fn *done; /* NULL: write the program's eventfd */
    void *context;
    bool homing; /* done, but what a transparent buffer was written with is on its way home */
} bh__callback;

typedef struct bh__event {
    struct bh__event *next;
    bool is_loss;
    bh_loss loss;
    size_t text_bytes;
    char text[];
} bh__event;

typedef struct bh__watcher {
    bh_watch_fn *watch;
    void *context;
} bh__watcher;

/* Somebody who is told of memory pressure. Under dispatch_lock; written with the device's lock held
 * too. */
typedef struct bh__listener {
    bh_pressure_fn *pressed;
    void *context;
    uint64_t threshold;
    bool above;
    bh_pressure said[BH__PRESSURE_REASONS]; /* `times` 0: nothing to tell */
    uint64_t order[BH__PRESSURE_REASONS];
} bh__listener;

/* ---- the device ---- */

struct bh__device {
    /* These outlive the device, so that old handles and tickets stay recognisable when the slot is
     * used again. */
    bh__lane lanes[BH__LANES];
    bh__lock lock;
    pthread_mutex_t jobs_lock;
    pthread_mutex_t dispatch_lock;
    uint32_t slot;
    uint32_t handle_generation;
    _Atomic uint64_t id;    /* its handle; 0: closed. Read without the lock. */
    _Atomic uint32_t users; /* threads looking at lanes or areas without the lock */
    bh__table buffers, modules, kernels, lane_handles, prepareds, sequences, pools;

    /* Everything from here on starts at zero each time. What most calls look at comes first. */
    bool closing;
    bool sealed; /* no compile ends in a load any more */
    bool frozen; /* `area` no longer counts; the lanes' `floor` does */
    bool ticks_usable;
    bool homeless; /* a worker was lost with `driven` ones, and its successor's addresses are not
                      known */
    _Atomic bool stopped; /* state is BH_DEVICE_STOPPED. Read without the lock. */
    uint32_t state;       /* BH_DEVICE_RUNNING ... */
    uint32_t lane_limit;  /* lanes with an index below this have been used */
    uint32_t warp_mask;   /* threads in a warp less one */
    bh__front *front;
    _Atomic(bh__area *) area;    /* of the worker whose words count. Read without the lock. */
    struct bh__trace *trace;     /* NULL: none */
    struct bh__managed *managed; /* all managed buffers. Owned by their memory. */
    _Atomic uint64_t
        epoch; /* goes up when lanes freeze and when a new area counts. Read without the lock. */
    bh_device_options options;
    bh_device_info info;

    /* Written by many calls: apart from what waiting threads read. */
    uint64_t stamp;
    uint64_t buffer_count, bytes_allocated, high_allocated;
    uint64_t pressure_high, pressure_low; /* of bytes_allocated: who goes there has to tell */
    bh__memory *leaving;                  /* freed, still used by work */
    bh__records memory_records, buffer_records;
    bh__tag untagged;

    char kind[16];
    uint32_t device_index;
    char worker_path[4096];
    uint64_t chunk_granularity;

    int control_fd, event_fd, dispatch_fd, dispatch_spare_fd, jobs_fd;
    uint64_t generation, losses;
    bh_error stop_reason;
    char degraded[256];

    bh__heap heap;
    bh__chunk_entry *chunks;
    uint32_t chunk_count, chunk_capacity, next_chunk_id;
    uint64_t next_address; /* offset within the address range, for the next chunk */
    uint64_t address_base, read_only_base, address_limit;
    bh__memory *retired, *retired_last; /* with checks: freed, kept from reuse for a while */
    uint32_t retired_count;
    uint64_t retired_bytes;
    uint64_t high_reserved, refusals, bytes_trimmed;
    bh__tag *tags[BH__TAG_BUCKETS];
    uint32_t tag_count;
    uint64_t listing;

    uint64_t pressure_notes;
    _Atomic bool pressure_due; /* Read without the lock. */
    bh__listener listeners[BH__MAX_WATCHERS];
    uint32_t listener_count;

    uint64_t solo_bytes;      /* in chunks that belong to one buffer each */
    bh__span *free_addresses; /* Owned. Offsets of chunks that are gone. */
    uint32_t free_address_count, free_address_capacity;
    bh__job *farewells; /* guard mode: chunks to be unmapped before the caller goes on */

    bh__host_entry *hosts;
    uint32_t host_count, host_capacity, next_host_id;
    bh__memory *staging; /* made when first needed */
    bool staging_pending;
    bh__staging_slot staging_slots[BH__STAGING_SLOTS];

    bh__module *module_list;
    uint32_t next_module_number;

    bh__batch_area batch_areas[BH__BATCH_AREAS];

    bh__sequence *sequence_list;
    uint32_t next_sequence_number;

    /* the supervisor */
    pthread_t supervisor;
    bh__job *jobs, *jobs_last;
    bool jobs_closed; /* under jobs_lock: nobody takes them any more */
    bh__worker workers[BH__AREAS];
    bh__worker *active, *standby; /* Borrowed from `workers`. */
    uint64_t *loss_times;         /* Owned. The last restart_limit losses, as a ring. */
    uint32_t boot_failures;
    uint64_t retry_standby_at, retry_cold_at;
    bool alone;                  /* a standby makes no sense here: info.no_standby says why */
    bool crowded;                /* there was no room for a standby when one was last tried */
    bh__order *backlog;          /* orders with jobs, until there is a worker to take them */
    _Atomic uint32_t wants_tick; /* a request with a deadline may be outstanding */
    _Atomic bool insane;         /* the worker's words make no sense: replace it */
    uint64_t loss_detected_ns;
    bool loss_pending; /* `loss` is told to watchers once the successor is told to go on */
    bh_loss loss;
    bh__message *incoming, *outgoing;
    bool robbed;                             /* the program closed our descriptors */
    _Atomic int32_t worker_pid, standby_pid; /* 0: none */
    _Atomic uint32_t opened;                 /* futex: 0 booting, 1 running, 2 failed */
    _Atomic uint32_t standby_word; /* futex: counted up when the standby's readiness or the device's
                                      state changes */
    _Atomic bool standby_ready;
    bh_error open_error;

    /* the dispatcher */
    pthread_t dispatcher;
    bool dispatcher_running;
    bh__callback *callbacks; /* to be looked at */
    bh__event *events, *events_last;
    bool dispatcher_stop;
    _Atomic uint32_t drained; /* futex: counted up each time the queues were found empty */
    bh__watcher watchers[BH__MAX_WATCHERS];
    uint32_t watcher_count;
    bh_print_fn *print;
    void *print_context;

    /* managed buffers */
    _Atomic uint32_t unhomed;  /* transparent ones with results that were not brought home */
    struct bh__driven *driven; /* on the driver's own memory. Owned by their memory. */

    /* counters and traces */
    uint64_t tick_start, tick_start_ns; /* when the device began to be opened */
    bh_counters tally;                  /* what is not counted by lanes */
};

#endif
