/* SPDX-License-Identifier: Apache-2.0 */
/* What libbulkhead keeps, shared by the files of src/client: memory, modules, lanes, devices.
 *
 * Locks, outermost first; none is held while a callback of the program runs:
 *   device->lock       everything in bh__device unless a field says otherwise
 *   bh__compile_lock   requests to the compiler, and what is cached (client/compile.h)
 *   lane->wait_lock    the lane's list of sleepers
 *   device->jobs_lock  the queue of work for the supervisor
 *   device->dispatch_lock  the queue of work for the dispatcher
 *   device->notes_lock     health and reports; never held while anything is waited for
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
    BH__PRESSURE_REASONS = 4,
    BH__MAX_STANDBYS = 4,
    BH__REPORTS_KEPT = 16
};

/* ---- memory ---- */

typedef struct bh__span {
    uint64_t offset, bytes;
} bh__span;

/* Bytes that may be half written since the request with this stamp; 0: since before all that are not
 * finished. */
typedef struct bh__doubt {
    uint64_t offset, bytes, stamp;
} bh__doubt;

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
    bh__doubt *doubt;      /* Owned. doubt.c */
    uint32_t references;   /* buffer handles and views */
    uint32_t use_count;
    bh__buffer first; /* what its first handle means; records of other handles are their own */
    bool window;      /* a look at bytes of somebody else's chunk: nothing to give back */
    bool mirror;      /* host regions: the host copy of a managed buffer */
    uint32_t host_id; /* host regions: what requests call it */
    uint64_t address;
    uint64_t read_only_address;
    uint32_t use_capacity, doubt_count;
    uint32_t doubt_whole;  /* there was no memory to keep the exact set: all of it is in doubt */
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
    uint64_t submitted; /* requests that launch it */
    char *name;
    bh__blob_kernel shape;
    bh__blob_param *params; /* Borrowed from the module's blob. */
    uint32_t faults;
    uint32_t score; /* that counts towards quarantine: policy.c */
    bool quarantined;
    bool padded;                /* there are bytes between the parameters */
    struct bh__known_fit *fits; /* Owned. fit.c */
    uint32_t fit_count;
    uint32_t trace_name; /* what a trace calls it; 0: nothing yet */
    /* Requests that launch it: of those submitted, the ones that did not complete; and those that had
     * completed by its latest fault. */
    uint64_t dropped, completed;
} bh__kernel;

typedef struct bh__variable {
    char *name;
    uint64_t bytes;
    bool writable;     /* a kernel of the module may write it */
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
    uint8_t needed;   /* what comes behind it must not run without it: nobody else would say so */
    uint8_t resolved; /* it has its verdict, and BH__OP_SKIP in the ring */
    uint8_t running;  /* resolved: it was taken by then, and may be running all the same */
    uint8_t undo;     /* resolved: pages that it was to move are still to be counted as not moved */
    /* A piece of a call: where the first one of that call begins, plus one, and what all of them
     * are to write. 0: a call of its own. */
    uint64_t call, call_offset, call_bytes;
    bh__use uses[BH__USES_PER_SLOT];
} bh__shadow;

/* A ticket that failed, as it is written down. All borrowed. */
typedef struct bh__failure {
    uint64_t sequence;
    bh_status status;
    uint32_t certain;
    uint64_t loss;          /* number of the loss it belongs to, 0: none */
    const char *kernel;     /* NULL: not a launch */
    const bh_error *detail; /* NULL: composed from the above */
} bh__failure;

/* The failures of one lane id: history.c. */
typedef struct bh__history bh__history;

typedef struct bh__sleeper {
    uint64_t sequence;
    struct bh__sleeper *next;
} bh__sleeper;

enum { BH__ANSWERED_BITS = 48 };
static inline uint64_t bh__answered_position(uint64_t answered) {
    return answered & (((uint64_t)1 << BH__ANSWERED_BITS) - 1);
}

/* The life of a lane. FREE: nobody's. OPENING: being made for one caller. CLOSED: its handle is gone
 * and its work goes on; once that is done it is FREE. */
typedef enum bh__lane_state {
    BH__LANE_FREE,
    BH__LANE_OPENING,
    BH__LANE_OPEN,
    BH__LANE_CLOSED
} bh__lane_state;

typedef struct bh__lane {
    _Atomic uint64_t id; /* what tickets call it; 0: not in use. Read without the lock. */
    pthread_mutex_t wait_lock;
    bh__sleeper *sleepers; /* under wait_lock */
    bh__lane_state state;
    uint64_t handle;      /* 0: the device's own lane, the load lane, or not OPEN */
    bh__history *history; /* of `id`. Borrowed. */
    uint32_t index;
    bool exists;           /* workers have it */
    int32_t priority;      /* that they have it with */
    _Atomic uint64_t tail; /* Written with the lock held, read without. */
    uint64_t retired;      /* known to be done: slots before this are free */
    uint64_t floor;        /* where the present worker started */
    uint64_t begun;        /* how far lost workers had taken requests */
    /* No ticket above this has failed, of this id or of an earlier one. Read without the lock. */
    _Atomic uint64_t last_failed;
    /* How far the lane was believed to be done by anybody who asked, below a number that changes with
     * each freeze and each new worker (BH__ANSWERED_BITS): whatever the worker's words say later, it
     * is. Written and read without the lock. */
    _Atomic uint64_t answered;
    /* Load lane only. All up to load_done are resolved, and of the later ones those that no module
     * in `pending` has. */
    _Atomic uint64_t load_done;
    _Atomic uint32_t load_wake; /* futex: counted up with each that is resolved */
    struct bh__module *pending; /* Borrowed. Lowest ticket first. */
    uint8_t *ring;
    bh__shadow *shadow;
    /* The supervisor's, on the watch clock: the head, from 1 on (0: none), and since when it could
     * run; whether it was taken, and since when it was or was not; what the lane is handing to the
     * device, and since when. */
    uint64_t head_position, head_since;
    bool head_taken;
    uint64_t taken_since;
    uint64_t handing, handing_since;
    bh__lane_tally tally;
    struct bh__lane_trace *trace; /* Owned. NULL: not traced. */
} bh__lane;

/* What bh__submit makes a request of. */
typedef struct bh__submission {
    bh__lane *lane;
    uint16_t op;
    bool idempotent;
    bool needed; /* as in the shadow */
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
    uint32_t *busy; /* launches: gets the BH_REASON_... of BH_E_BUSY that is not for want of room */
    bh__copy_body copy;    /* all others */
    struct bh__call *call; /* the call that it is a piece of; NULL: it is all of it */
} bh__submission;

/* A call that is made of several requests of one lane, while it submits them: on the stack of the
 * thread that makes it. Its pieces complete together or fail together. resolve.c */
typedef struct bh__call {
    struct bh__call *next;  /* in device->calls, from its first piece on */
    bh__device *device;     /* which the thread is inside of */
    bh__memory *target;     /* Retained. */
    uint64_t offset, bytes; /* of the target: what all pieces are to write */
    bh__lane *lane;
    uint64_t first;   /* where its first piece begins, plus one; 0: none is submitted */
    bh_status status; /* what became of a piece that did not complete */
    bh_error error;
} bh__call;

/* ---- the supervisor's own ---- */

/* Something a worker must be told. `job` is NULL for what is only told to bring a worker up to
 * date. */
typedef struct bh__order {
    struct bh__order *next;
    struct bh__job *job;
    uint32_t type; /* BH__MSG_... */
    uint32_t serial;
    int fd; /* Held, by what bh__order_new makes; of a job Borrowed. -1: none */
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
    uint64_t started_ns;
    /* On the watch clock (watchdog.c). */
    uint64_t boot_deadline;
    uint64_t order_since; /* since when the first of `sent` is due */
    uint64_t pinged_at;   /* when the latest ping was sent */
    uint32_t pings;
    bool silent;            /* the latest ping is not answered yet */
    uint64_t loss;          /* DYING: which loss it was, 0: it was a standby */
    bool profiled;          /* ends by itself when it is told to */
    bool unfit;             /* could not be brought up to date */
    bh_status unfit_status; /* what it failed of then */
    char errors[512];       /* the end of what it wrote to standard error */
    size_t errors_length;
    char words[4096]; /* the beginning of it */
    size_t words_length;
} bh__worker;

/* What the supervisor knows of time: watchdog.c. */
typedef struct bh__watch {
    uint64_t clock;   /* ns in which it watched workers with something to do */
    uint64_t last;    /* when it last looked, of the monotonic clock; 0: nothing is outstanding */
    uint64_t planned; /* how long after that it meant to look again */
    uint64_t submitted, quiet_since; /* slots submitted on all lanes, and since when no more are */
} bh__watch;

enum { BH__JOB_ORDER, BH__JOB_CLOSE };

/* Something asked of the supervisor. */
typedef struct bh__job {
    struct bh__job *next;
    int kind;
    bh__order order;
    bh__memory *host;          /* BH__MSG_HOST_MAP: what the region is noted with */
    bh__module *module;        /* loads */
    bh__sequence *sequence;    /* BH__MSG_SEQUENCE_DEFINE */
    struct bh__driven *driven; /* BH__MSG_CHUNK_CREATE with BH__CHUNK_DRIVER */
    uint32_t attempts;         /* workers lost while they carried it out */
    bh__fit fit;               /* BH__MSG_FIT: the answer */
    bh_error error;
    _Atomic uint32_t done; /* futex */
    bool self_owned;       /* nobody waits: the supervisor frees it */
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
    bool leaving;                    /* freed: kept for workers until work is done with it */
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
    uint64_t id;
    bh_watch_fn *watch;
    void *context;
} bh__watcher;

/* Somebody who is told of memory pressure. Under dispatch_lock; written with the device's lock held
 * too. */
typedef struct bh__listener {
    uint64_t id;
    bh_pressure_fn *pressed;
    void *context;
    uint64_t threshold;
    bool above;
    bh_pressure said[BH__PRESSURE_REASONS]; /* `times` 0: nothing to tell */
    uint64_t order[BH__PRESSURE_REASONS];
} bh__listener;

/* ---- the device ---- */

/* The life of a device, written with its lock held. Only an OPEN one takes work. DRAINING: work that
 * was submitted may finish. CLOSING: what is left was cancelled. From CLOSED on nobody finds it, and
 * it is taken apart once nobody is inside: has it locked, or is counted in `users`. */
typedef enum bh__life {
    BH__LIFE_CLOSED,
    BH__LIFE_OPENING,
    BH__LIFE_OPEN,
    BH__LIFE_DRAINING,
    BH__LIFE_CLOSING
} bh__life;

/* The life of a device's dispatcher, written with dispatch_lock held. STOPPED is for good. */
typedef enum bh__dispatcher_state {
    BH__DISPATCHER_NONE,
    BH__DISPATCHER_RUNNING,
    BH__DISPATCHER_STOPPING,
    BH__DISPATCHER_STOPPED
} bh__dispatcher_state;

struct bh__device {
    /* These outlive the device, so that old handles and tickets stay recognisable when the slot is
     * used again. */
    bh__lane lanes[BH__LANES];
    bh__lock lock;
    pthread_mutex_t jobs_lock;
    pthread_mutex_t dispatch_lock;
    uint32_t slot;
    uint32_t handle_generation;
    _Atomic uint64_t id;      /* its handle; 0: closed. Read without the lock. */
    _Atomic uint32_t life;    /* bh__life. Read without the lock. */
    _Atomic uint32_t users;   /* threads that are inside without the lock */
    _Atomic uint32_t landing; /* compiles that ended and are being answered */
    bh__table buffers, modules, kernels, lane_handles, prepareds, sequences, pools;

    /* Everything from here on starts at zero each time. What most calls look at comes first. */
    bool frozen;           /* `area` no longer counts; the lanes' `floor` does */
    _Atomic bool deciding; /* the policy callback runs. Read without the lock. */
    bool ticks_usable;
    bool homeless; /* a worker was lost with `driven` ones, and its successor's addresses are not
                      known */
    _Atomic uint32_t state; /* BH_DEVICE_RUNNING ... Written with the lock held. */
    uint32_t lane_limit;    /* lanes with an index below this have been used */
    uint32_t warp_mask;     /* threads in a warp less one */
    uint32_t doubted;       /* how much memory there is with bytes in doubt */
    /* Requests may be outstanding: the supervisor looks at the lanes. Read without the lock. */
    _Atomic uint32_t wants_tick;
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
    bh__call *calls;       /* that have submitted some of their pieces */
    struct bh__late *late; /* verdicts that are told once a lost worker is gone: resolve.c */
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

    uint64_t making_bytes;    /* in chunks for many buffers that are being made */
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
    struct bh__variable_write *variable_writes; /* Borrowed: not known to be done. variable.c */
    uint32_t next_module_number;

    bh__batch_area batch_areas[BH__BATCH_AREAS];

    bh__sequence *sequence_list;
    uint32_t next_sequence_number;

    /* the supervisor */
    pthread_t supervisor;
    bh__job *jobs, *jobs_last;
    bool jobs_closed; /* under jobs_lock: nobody takes them any more */
    /* Flushes: whoever wants what workers said so far to be read counts up the first, and waits until
     * the second, a futex, has caught up. */
    _Atomic uint32_t flushes_wanted, flushes_done;
    bh__worker workers[BH__AREAS];
    bh__worker *active; /* Borrowed from `workers`: those that boot or are ready are standbys. */
    uint32_t boot_failures;
    /* policy.c */
    bool default_limit, quarantine_by_rate; /* the program left these limits to the library */
    uint32_t futile;                        /* losses in a row with no completed request between */
    uint64_t completed;                     /* requests, at the latest loss */
    uint64_t dropped;                       /* requests that did not complete. Under the lock. */
    uint64_t budget_ns, budget_at;          /* of restarts, and when it was that much */
    uint64_t retry_standby_at, retry_cold_at;
    bool alone;         /* a standby makes no sense here: info.no_standby says why */
    bool crowded;       /* there was no room for a standby when one was last tried */
    bh__order *backlog; /* orders with jobs, until there is a worker to take them */
    bh__watch watch;
    uint64_t tightest;   /* deadline submitted since the looks began; 0: none. Under the lock. */
    _Atomic bool insane; /* the worker's words make no sense: replace it */
    uint64_t loss_detected_ns;
    bool loss_pending; /* `loss` is told to watchers once the successor is told to go on */
    bh_loss loss;
    bh__message *incoming, *outgoing;
    bool robbed;                             /* the program closed our descriptors */
    _Atomic int32_t worker_pid, standby_pid; /* 0: none */
    _Atomic uint32_t opened;                 /* futex: 0 booting, 1 running, 2 failed */
    _Atomic uint32_t standby_word; /* futex: counted up when the standby's readiness or the device's
                                      state changes */
    uint32_t standbys_ready;
    bh_error open_error;

    /* the dispatcher */
    pthread_t dispatcher;
    bh__dispatcher_state dispatcher_state;
    bh__callback *callbacks; /* to be looked at */
    bh__event *events, *events_last;
    _Atomic uint32_t drained; /* futex: counted up each time the queues were found empty */
    bh__watcher watchers[BH__MAX_WATCHERS];
    uint32_t watcher_count;
    bh_print_fn *print;
    void *print_context;
    uint64_t print_id;
    /* Whoever is told more than once has an id, so that removing it can wait for its end. */
    uint64_t last_watch_id, telling; /* the one that runs; 0: none */
    uint32_t told_waiters;           /* threads that wait for `told` */
    _Atomic uint32_t told;           /* futex: counted up when one has run and somebody waits */

    /* reader.c */
    bh_device reader; /* Owned. Reads for this one, which has stopped. Zero: none. */
    bool is_reader;   /* it is such a one itself */
    bool broken;      /* the hardware said so: nobody is to use it again */

    /* health.c and report.c, under notes_lock */
    pthread_mutex_t notes_lock;
    bh_health health;
    struct bh__loss_report *reports[BH__REPORTS_KEPT]; /* Owned. By number. */
    char *report_dir;                                  /* Owned. NULL: no files. Not under it. */

    /* managed buffers */
    _Atomic uint32_t unhomed;  /* transparent ones with results that were not brought home */
    struct bh__driven *driven; /* on the driver's own memory. Owned by their memory. */

    /* counters and traces */
    uint64_t tick_start, tick_start_ns; /* when the device began to be opened */
    bh_counters tally;                  /* what is not counted by lanes */
};

#endif
