/* SPDX-License-Identifier: Apache-2.0 */
/* libbulkhead's own types, shared by the files of src/client.
 *
 * Locks, outermost first; none is held while a callback of the program runs:
 *   device->lock       everything in bh__device unless a field says otherwise
 *   bh__compile_lock   requests to the compiler, and what is cached (client/compile.h)
 *   lane->wait_lock    the lane's list of sleepers
 *   device->jobs_lock  the queue of work for the supervisor
 *   device->dispatch_lock  the queue of work for the dispatcher
 */
#ifndef BH_CLIENT_INTERNAL_H
#define BH_CLIENT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/records.h"
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
    BH__STAGING_SLOTS = 16,
    BH__STAGING_BYTES = 512 * 1024,
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
    uint64_t address;
    uint64_t read_only_address;
    uint32_t use_capacity, suspect_count, suspect_capacity;
    bh_type type;            /* of the buffer it was made for, for messages; 0: none */
    uint64_t count;          /* the buffer's elements */
    const void *call_site;   /* that allocated it */
    struct bh__memory *next; /* in the list of the freed that are still in use, or retired */
    uint64_t doubt_stamp;    /* during a judgement: the latest request in flight that writes it */
    uint64_t doubt_loss;     /* the judgement doubt_stamp belongs to */
    uint64_t listed;         /* the last listing it was put in */
    void *host;              /* host regions: where the application has it */
    uint64_t host_from;      /* pieces of a host region: where in it they begin */
    uint32_t host_id;        /* host regions: what requests call it */
    bool window;             /* a look at bytes of somebody else's chunk: nothing to give back */
    bool mirror;             /* host regions: the host copy of a managed buffer */
    /* Managed buffers, which have a chunk of their own: what there is besides. Owned. */
    struct bh__managed *managed;
    /* Not zeroed: use_count says what is there. */
    bh__lane_use use_inline[2];
} bh__memory;
_Static_assert(offsetof(bh__memory, first) == 64, "a release needs the first two cache lines");

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
    pthread_mutex_t lock;
    pthread_mutex_t jobs_lock;
    pthread_mutex_t dispatch_lock;
    uint32_t slot;
    uint32_t handle_generation;
    _Atomic uint64_t id;    /* its handle; 0: closed. Read without the lock. */
    _Atomic uint32_t users; /* threads looking at lanes or areas without the lock */
    bh__table buffers, modules, kernels, lane_handles, prepareds, sequences, pools;
    bh__lane lanes[BH__LANES];

    /* Everything from here on starts at zero each time. */
    bool closing;
    bool sealed; /* no compile ends in a load any more */

    bh_device_options options;
    char kind[16];
    uint32_t device_index;
    char worker_path[4096];
    bh_device_info info;
    uint64_t chunk_granularity;

    int control_fd, event_fd, dispatch_fd, dispatch_spare_fd, jobs_fd;
    bh__front *front;
    _Atomic(bh__area *) area; /* of the worker whose words count. Read without the lock. */
    _Atomic uint64_t
        epoch; /* goes up when lanes freeze and when a new area counts. Read without the lock. */

    uint32_t state;       /* BH_DEVICE_RUNNING ... */
    _Atomic bool stopped; /* state is BH_DEVICE_STOPPED. Read without the lock. */
    bool frozen;          /* `area` no longer counts; the lanes' `floor` does */
    uint64_t generation, losses;
    bh_error stop_reason;
    char degraded[256];

    uint32_t lane_limit; /* lanes with an index below this have been used */
    uint32_t warp_mask;  /* threads in a warp less one */
    uint64_t stamp;
    struct bh__trace *trace; /* NULL: none */
    bool ticks_usable;

    bh__records memory_records, buffer_records;
    bh__heap heap;
    bh__chunk_entry *chunks;
    uint32_t chunk_count, chunk_capacity, next_chunk_id;
    uint64_t next_address; /* offset within the address range, for the next chunk */
    uint64_t address_base, read_only_base, address_limit;
    uint64_t buffer_count, bytes_allocated;
    bh__memory *leaving;                /* freed, still used by work */
    bh__memory *retired, *retired_last; /* with checks: freed, kept from reuse for a while */
    uint32_t retired_count;
    uint64_t retired_bytes;
    uint64_t high_allocated, high_reserved, refusals, bytes_trimmed;
    bh__tag *tags[BH__TAG_BUCKETS];
    bh__tag untagged;
    uint32_t tag_count;
    uint64_t listing;

    uint64_t pressure_high, pressure_low; /* of bytes_allocated: who goes there has to tell */
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
    struct bh__managed *managed; /* all of them. Owned by their memory. */
    _Atomic uint32_t unhomed;    /* transparent ones with results that were not brought home */
    struct bh__driven *driven;   /* on the driver's own memory. Owned by their memory. */
    bool homeless; /* a worker was lost with these, and its successor's addresses are not known */

    /* counters and traces */
    uint64_t tick_start, tick_start_ns; /* when the device began to be opened */
    bh_counters tally;                  /* what is not counted by lanes */
};

/* ---- error.c: the calling thread's error ---- */

bh_error *bh__last(void);
#define bh__refuse(status, fix, ...) bh__fail(bh__last(), (status), (fix), __VA_ARGS__)
bh_status bh__refuse_with(const bh_error *error);

/* ---- registry.c: finding what a handle means ---- */

enum {
    BH__KIND_DEVICE = 1,
    BH__KIND_LANE,
    BH__KIND_MODULE,
    BH__KIND_KERNEL,
    BH__KIND_BUFFER,
    BH__KIND_BINARY, /* belongs to no device */
    BH__KIND_PREPARED,
    BH__KIND_SEQUENCE,
    BH__KIND_POOL
};

/* Locks and returns the device a handle of this kind belongs to, or fills the thread's error and
 * returns NULL. A device that has stopped is returned too unless `running` is set. */
bh__device *bh__device_lock(uint64_t handle, uint32_t kind, const char *what, bool running);
void bh__device_unlock(bh__device *device);
/* Lets go of the lock for so long, for what is a matter of moments; the device stays. */
void bh__device_pause(bh__device *device, uint64_t ns);
void *bh__handle_get(bh__device *device, uint64_t handle, uint32_t kind, const char *what);
/* Fills the thread's error for a handle that does not mean a live object. */
bh_status bh__refuse_handle(uint64_t handle, uint32_t kind, const char *what);
bh_status bh__handle_add(bh__device *device, uint32_t kind, void *object, uint64_t *out);
void bh__handle_remove(bh__device *device, uint64_t handle);
/* What bh__handle_get finds in this table, without a word where there is nothing. For where it is
 * asked for in every launch. */
static inline void *bh__handle_find(const bh__device *device, const bh__table *table,
                                    uint64_t handle, uint32_t kind) {
    uint32_t index = (uint32_t)(handle >> BH__GENERATION_BITS) & ((1u << BH__INDEX_BITS) - 1);
    uint32_t generation = (uint32_t)handle & ((1u << BH__GENERATION_BITS) - 1);
    bool here = handle >> 52 == (kind << 8 | device->slot) && index < table->count &&
                table->entries[index].generation == generation;
    return here ? table->entries[index].object : NULL;
}

/* A device to fill in, closed and not locked; NULL with the thread's error. */
bh__device *bh__device_take_slot(void);
void bh__device_free_slot(bh__device *device);
/* Makes the device visible under a fresh handle. */
void bh__device_publish(bh__device *device);

/* The ids tickets carry. A made-up one is told from one that was given out. */
uint64_t bh__lane_id_new(uint32_t device_slot, uint32_t lane_index);
bool bh__lane_id_valid(uint64_t id);

/* Finds the lane of a ticket without locking; the device cannot be torn down before
 * bh__ticket_leave. *out_lane is NULL when the lane or device was closed since: ask bh__history.
 * False: the ticket was never given out. */
bool bh__ticket_enter(bh_ticket ticket, bh__device **out_device, bh__lane **out_lane);
void bh__ticket_leave(bh__device *device);

/* True, with the thread's error set, in a forked child. */
bool bh__refuse_forked(void);

/* ---- history.c: what became of tickets ---- */

/* Takes over what the failure owns. A failure is never forgotten: for want of memory, tickets
 * around it are said to be lost too. */
void bh__failures_add(bh__failures *failures, const bh__failure *failure);
const bh__failure *bh__failures_find(const bh__failures *failures, uint64_t sequence);
void bh__failures_clear(bh__failures *failures);
/* Fills `out` from what is known of a failure. */
void bh__failure_describe(const bh__failure *failure, bh_ticket ticket, bh_error *out);
/* Failures of lanes that are closed: moved here, kept for good. */
void bh__history_keep(uint64_t lane_id, bh__failures *failures);
/* BH_OK, or the failure's status with *out filled in. */
bh_status bh__history_ask(bh_ticket ticket, bh_error *out);

/* ---- ticket.c ---- */

/* Whether to ask for a ticket's verdict, which may come before the lane gets there, or for the lane
 * to have got there. */
typedef enum bh__question { BH__VERDICT, BH__PASSED } bh__question;

/* The answer now: BH_OK, an error, BH_E_BUSY. Without the lock, between bh__ticket_enter and leave.
 */
bh_status bh__lane_ask(bh__device *device, bh__lane *lane, uint64_t sequence,
                       bh__question question);
/* Waits until there is an answer, or the deadline passes (BH_E_TIMEOUT), without the lock. */
bh_status bh__lane_wait(bh__device *device, bh__lane *lane, uint64_t sequence, uint64_t deadline,
                        bh__question question);
/* Waits until the lane has passed a position. Called and returns with the lock held, and lets go of it
 * meanwhile: whatever was looked up before must be looked up again. BH_E_STOPPED: it never will. */
bh_status bh__lane_let_pass(bh__device *device, bh__lane *lane, uint64_t position);
/* How far the lane is done, with the lock held. */
uint64_t bh__lane_done(bh__device *device, bh__lane *lane);
/* Wakes everybody who sleeps on this area's words. */
void bh__area_wake(bh__device *device, bh__area *area);
/* Records a failed ticket, with the lock held. `detail` may be NULL. */
void bh__lane_fail(bh__lane *lane, uint64_t sequence, bh_status status, uint32_t certain,
                   uint64_t loss, const char *kernel, const bh_error *detail);
/* Takes over what the worker reported about single requests, with the lock held. */
void bh__reports_collect(bh__device *device);

/* ---- submit.c: the one way into a ring ---- */

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

/* Called with the device locked; returns with it locked, but may have let go of it to wait for
 * room: then *out_retry is true, nothing was submitted, and the caller must look at its handles
 * again. Checks doubt, orders the request after what it depends on, writes it down and rings the
 * bell. */
bh_status bh__submit_plain(bh__device *device, const bh__submission *submission, bool *out_retry,
                           bh_ticket *out);
/* The same where there are managed buffers: what the request needs of them is moved before it. */
bh_status bh__managed_submit(bh__device *device, const bh__submission *submission, bool *out_retry,
                             bh_ticket *out);
static inline bh_status bh__submit(bh__device *device, const bh__submission *submission,
                                   bool *out_retry, bh_ticket *out) {
    if (__builtin_expect(device->managed != NULL || device->homeless, 0))
        return bh__managed_submit(device, submission, out_retry, out);
    return bh__submit_plain(device, submission, out_retry, out);
}
/* The lane for a handle, zero meaning the device's own. */
bh__lane *bh__lane_get(bh__device *device, bh_lane lane);

/* ---- prepared.c ---- */

typedef struct bh__prepared bh__prepared;
/* The device is being taken apart. */
void bh__prepared_free_all(bh__device *device);

/* ---- sequence.c, with the lock held ---- */

typedef void bh__tell_fn(bh__worker *worker, const bh__order *what);
/* Tells a new worker of all that are defined. */
void bh__sequences_brief(bh__device *device, bh__worker *worker, bh__tell_fn *tell);
/* The active worker has it. */
void bh__sequence_commit(bh__sequence *sequence);
/* A request that replays it was submitted. */
void bh__sequence_note(bh__sequence *sequence, const bh__sequence_body *replay, uint32_t lane,
                       uint64_t position);
/* The device is closed: frees them all. */
void bh__sequences_free(bh__device *device);
const char *bh__sequence_name(const bh__sequence *sequence);
/* Adds up what a submission that runs it `repeat` times has in it. */
void bh__sequence_count(bh__device *device, const bh__sequence *sequence, uint32_t repeat,
                        bh__lane_tally *tally);
/* Where a trace has its name. */
uint32_t *bh__sequence_trace_name(bh__sequence *sequence);
uint32_t bh__sequence_step_count(const bh__sequence *sequence);
/* The one kernel that steps `first` to `last`, from 1 on, run; NULL: none, or several. */
bh__kernel *bh__sequence_kernel(const bh__sequence *sequence, uint32_t first, uint32_t last);
/* , step 3 of 9 (kernel "saxpy", grid 4 x 1 x 1, block 256 x 1 x 1) */
void bh__sequence_describe(const bh__sequence *sequence, uint32_t first, uint32_t last, char *out,
                           size_t size);
bool bh__sequence_is_stale(const bh__sequence *sequence);
bool bh__sequence_is_quarantined(const bh__sequence *sequence);
/* Its kernels may have run on the present worker. */
void bh__sequence_launched(bh__sequence *sequence);

/* ---- memory.c: what may be read, what is in doubt ---- */

/* Makes sure that a use by this lane can be noted. False: no host memory. */
bool bh__memory_reserve_use(bh__memory *memory, uint32_t lane);
/* Notes a use. `retired`: what the lane is known to have done. */
void bh__memory_note_use(const bh__use *use, uint32_t lane, uint64_t position, uint64_t retired);
/* Raises wait_for[lane] to the positions that a use must wait for. Returns whether any was raised.
 */
bool bh__memory_order(bh__device *device, const bh__use *use, uint32_t lane, uint64_t *wait_for);
/* Whether no work uses it, and no lost worker can write it any more. */
bool bh__memory_idle(bh__device *device, bh__memory *memory);
bool bh__spans_add(bh__span **list, uint32_t *count, uint32_t *capacity, uint64_t offset,
                   uint64_t bytes);
bool bh__spans_remove(bh__span **list, uint32_t *count, uint32_t *capacity, uint64_t offset,
                      uint64_t bytes);
bool bh__spans_overlap(const bh__span *list, uint32_t count, uint64_t offset, uint64_t bytes);
/* Host regions are the program's own to judge: they are never suspect. */
void bh__suspect_add(bh__memory *memory, uint64_t offset, uint64_t bytes);
void bh__suspect_clear(bh__memory *memory, uint64_t offset, uint64_t bytes);
/* The program takes what is there for good: requests with a verdict that are still queued raise no
 * doubt about it again. */
void bh__suspect_accept(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes);
static inline bool bh__suspect_overlaps(const bh__memory *memory, uint64_t offset, uint64_t bytes) {
    return memory->suspect_count &&
           bh__spans_overlap(memory->suspect, memory->suspect_count, offset, bytes);
}
bh__memory *bh__memory_new(bh__device *device);
void bh__memory_delete(bh__device *device, bh__memory *memory);
/* Drops one reference; the memory goes back to the heap once nothing uses it. */
void bh__memory_release(bh__device *device, bh__memory *memory);
/* Gives back what memory is made of, and its record. Nothing uses it. */
void bh__memory_drop(bh__device *device, bh__memory *memory);
/* Gives memory back that was freed and is no longer in use. */
void bh__memory_sweep(bh__device *device);

/* ---- chunks.c ---- */

/* Cuts a block from the chunks there are, or makes another. `align` is a power of two, at least
 * BH__HEAP_ALIGN. Called and returns with the lock held, and may let go of it meanwhile. NULL with
 * the thread's error. */
bh__block *bh__block_alloc(bh__device *device, uint64_t bytes, uint64_t align);
/* Takes back one chunk that nothing is cut from, one of `bytes` or more if there is one. False:
 * there is none. */
bool bh__pool_trim(bh__device *device, uint64_t bytes);
/* Addresses for a chunk, as an offset from address_base; those of one that is gone. */
bool bh__addresses_take(bh__device *device, uint64_t bytes, uint64_t *out);
void bh__addresses_give(bh__device *device, uint64_t offset, uint64_t bytes);
/* What the device holds has grown. */
void bh__held_note(bh__device *device);

/* ---- usage.c: with the lock held ---- */

/* NULL or "" is the tag of what has none. NULL with the thread's error: no host memory. */
bh__tag *bh__tag_get(bh__device *device, const char *name);
void bh__tags_free(bh__device *device);
/* Counts one more buffer of this size, or refuses it. */
bh_status bh__tag_charge(bh__device *device, bh__tag *tag, uint64_t bytes);
void bh__tag_discharge(bh__tag *tag, uint64_t bytes);
/* The memory is of this tag, charged before. */
void bh__tag_attach(bh__tag *tag, bh__memory *memory);
/* An allocation of this size failed for want of memory. */
void bh__usage_refused(bh__device *device, uint64_t bytes);
/* A buffer's memory, charged already, is handed out; its last handle is gone. */
/* Memory is about to be made for a tag: charges it, and keeps it while the lock is let go. NULL: refused.
 * Then what was made; NULL: nothing was. */
bh__tag *bh__tag_begin(bh__device *device, const char *name, uint64_t bytes);
void bh__tag_end(bh__tag *tag, uint64_t bytes, bh__memory *memory);
void bh__usage_add(bh__device *device, bh__memory *memory);
void bh__usage_remove(bh__device *device, bh__memory *memory);
/* "; most is "weights" 1024 in 2 (limit 4096)": who has most, for messages. */
void bh__usage_owners(bh__device *device, char *out, size_t size);

/* ---- pressure.c ---- */

/* With the lock held: bytes_allocated passed pressure_high or pressure_low; the limit changed;
 * something happened to an allocation of this size. */
void bh__pressure_cross(bh__device *device);
void bh__pressure_limit(bh__device *device);
void bh__pressure_note(bh__device *device, uint32_t reason, uint64_t asked);
/* Dispatcher only: tells what is due. Returns whether anything was. */
bool bh__pressure_run(bh__device *device);

/* ---- check.c: BH_DEVICE_CHECK, with the lock held ---- */

static inline bool bh__checked(const bh__device *device) {
    return device->options.flags & BH_DEVICE_CHECK;
}
/* Between buffers, so that what runs past the end of one does not meet the next. */
enum { BH__CHECK_GAP = 1024 };
/* Maps the shadow of a chunk. False: it cannot be. */
bool bh__check_map(bh__chunk_entry *entry);
void bh__check_unmap(bh__chunk_entry *entry);
/* Kernels may use this memory from now on; nothing in it was written yet. */
void bh__check_hand_out(bh__device *device, const bh__memory *memory);
/* They may not any more. Takes the memory over, and gives it back to the heap some time later. */
void bh__check_retire(bh__device *device, bh__memory *memory);
/* Gives back all that is retired. False: nothing was. */
bool bh__check_relent(bh__device *device);
/* Adds to a fault's message what the address is inside of, or near. */
void bh__check_describe(bh__device *device, const bh__use *uses, uint32_t use_count,
                        uint64_t address, uint32_t bytes, bh_error *error);

/* ---- managed.c, managed_move.c: for those who know no more of managed buffers ---- */

/* Their memory goes. */
void bh__managed_delete(bh__device *device, struct bh__managed *self);
void bh__managed_delete_all(bh__device *device);
/* Whether a request moves pages of one. */
bool bh__managed_moves(bh__device *device, bh__lane *lane, const bh__shadow *shadow);
/* A move did not end well: its pages are where they were. */
void bh__managed_undo(bh__device *device, bh__lane *lane, bh__shadow *shadow);
/* The same for all that a judgement has failed. */
void bh__managed_judge(bh__device *device);
/* The program learns that the lane has passed `sequence`: what transparent buffers were written with
 * comes home. BH_E_BUSY: it is on its way, until *out_lane has passed *out_position (NULL: a little
 * later). Without the lock, between bh__ticket_enter and leave. */
bh_status bh__managed_home(bh__device *device, bh__lane *lane, uint64_t sequence,
                           bh__lane **out_lane, uint64_t *out_position);
/* Waits for it. BH_OK, or BH_E_TIMEOUT. */
bh_status bh__managed_home_wait(bh__device *device, bh__lane *lane, uint64_t sequence,
                                uint64_t deadline);
/* What was in doubt is taken for good: a transparent buffer comes home. The lock is let go meanwhile. */
void bh__managed_accepted(bh__device *device, struct bh__managed *self);
/* Whoever asks next need not wait for this buffer. */
void bh__managed_forget(bh__device *device, struct bh__managed *self);
/* Addresses that this process has free: keeps them so. False: they are taken. */
bool bh__managed_reserve(uint64_t address, uint64_t bytes);
void bh__managed_unreserve(uint64_t address, uint64_t bytes);
/* An address that no managed buffer of this process lies above; 0: none lies above this one. */
uint64_t bh__managed_above(uint64_t address);

/* ---- managed_driver.c: managed buffers on the driver's own memory, with the lock held ---- */

/* NULL: the memory is of another kind. */
struct bh__driven *bh__driven_of(const bh__memory *memory);
/* The lock was let go to wait for addresses (*out_retry), or nothing is in the way. */
bh_status bh__driven_settle(bh__device *device, const bh__submission *submission, bool *out_retry);
/* For what keeps addresses. BH_E_UNSUPPORTED if one of the uses is of this kind. */
bh_status bh__driven_refuse(const bh__use *uses, uint32_t count, const char *what);
/* Whether an address lies in one. */
bool bh__driven_has(const bh__device *device, uint64_t address);
/* A worker has made its own: the active one, for a job, or another. False: its answer makes no
 * sense. */
bool bh__driven_made(bh__device *device, const bh__order *order, uint32_t area,
                     const bh__message *answer);
/* The active worker has taken advice. False: no host memory to note it. */
bool bh__driven_advised(bh__device *device, const bh__advice_message *what);
/* What a new worker is told. */
void bh__driven_brief(bh__device *device, bh__worker *worker,
                      void (*tell)(bh__worker *worker, const bh__order *what));
/* A worker is lost: so are its contents. */
void bh__driven_lose(bh__device *device);
/* This worker goes on: its addresses count. */
void bh__driven_arrive(bh__device *device, uint32_t area);
void bh__driven_delete(bh__device *device, struct bh__driven *self);
/* The thread's error for a request that needs contents that are lost. */
bh_status bh__driven_refuse_lost(const bh__memory *memory, bh_error *error);

/* ---- solo.c: buffers with a chunk of their own, and guard mode, with the lock held ---- */

typedef struct bh__solo {
    bh__block block; /* what memory->block is: from the buffer's first byte to the chunk's end */
    bh__chunk chunk;
    uint64_t span;         /* addresses it takes up */
    bh__job *farewell;     /* Owned until it is used: unmaps the chunk */
    struct bh__deed *deed; /* Owned mapping. Shareable memory only; read-only if imported. */
    int deed_fd;           /* Owned. */
    bool imported;
    bool gone;         /* the chunk is unmapped; the record is kept to name what lay there */
    uint64_t reserved; /* BH__SOLO_MIRRORED: where this process keeps the chunk's addresses free */
    struct bh__driven *driven; /* Owned. BH_MANAGED_DRIVER: the chunk is each worker's own */
} bh__solo;

enum {
    BH__SOLO_GUARDED = 1, /* ends at the end of its chunk, behind which nothing is mapped */
    BH__SOLO_LED = 2,     /* has BH__SOLO_LEAD bytes before it */
    BH__SOLO_MIRRORED = 4 /* at addresses that are free in this process too, and are reserved */
};
enum { BH__SOLO_LEAD = 256, BH__GUARD_ALIGN = 16 };

static inline bool bh__guarded(const bh__device *device) {
    return device->options.flags & BH_DEVICE_GUARD;
}
/* Bytes in chunks of all kinds. */
static inline uint64_t bh__held_bytes(const bh__device *device) {
    return device->heap.bytes_total + device->solo_bytes;
}
/* What chunks that many buffers share may hold. */
static inline uint64_t bh__pool_limit(const bh__device *device) {
    uint64_t limit = device->options.memory_limit;
    return limit > device->solo_bytes ? limit - device->solo_bytes : 0;
}
/* Memory of `bytes` in a chunk of its own, not a buffer yet. These let go of the lock while a
 * worker carries them out. */
bh_status bh__solo_create(bh__device *device, uint64_t bytes, uint64_t align, uint32_t how,
                          bh__memory **out);
/* The same with a chunk that there is already: `offset` is where in it the memory begins. Takes `fd`
 * over if it succeeds. */
bh_status bh__solo_adopt(bh__device *device, uint64_t chunk_bytes, uint64_t offset, uint64_t bytes,
                         int fd, bh__memory **out);
/* Nothing uses the memory any more. Takes it over. */
void bh__solo_give_back(bh__device *device, bh__memory *memory);
/* Carries out what giving back left to do. */
void bh__solo_settle(bh__device *device);
void bh__solo_delete(bh__solo *solo);
/* Says what a launch was given, for a fault whose address the device does not tell. */
void bh__guard_describe(bh__device *device, const bh__use *uses, uint32_t use_count,
                        bh_error *error);
/* An order of BH__MSG_CHUNK_UNMAP was carried out: what still waits to be sent must not bring the
 * chunk back. */
void bh__orders_forget_chunk(bh__worker *worker, uint32_t id);
void bh__orders_forget_host(bh__worker *worker, uint32_t id);

/* ---- buffer.c: for those who make memory in other ways */
bh_status bh__buffer_add(bh__device *device, bh__memory *memory, bh_type type, uint64_t offset,
                         uint64_t count, bh_buffer *out);

/* ---- deed.c, sharing.c */
/* The last handle is gone: tokens are refused from now on. */
void bh__deed_withdraw(bh__solo *solo);
/* A lost worker may have left some of it half written. */
void bh__deed_doubt(bh__solo *solo);
void bh__deed_close(bh__solo *solo);

/* ---- transfer.c ---- */

bh_status bh__check_lane_device(bh_lane lane, bh_buffer buffer);
/* Submits a pattern of any length into rows of any pitch, through a staging slot. */
bh_status bh__submit_pattern(bh_lane lane, bh_buffer buffer, uint64_t offset, uint64_t pitch,
                             uint64_t width, uint64_t height, const void *pattern,
                             uint32_t pattern_bytes, bh_ticket *out);

/* ---- staging.c: host memory on the way ---- */

/* Waits for a free slot with the lock released meanwhile. */
/* Who has a slot already must not wait for another: BH_E_BUSY instead, with no error set. */
bh_status bh__staging_take(bh__device *device, bool wait, uint32_t *out_slot);
void bh__staging_put(bh__device *device, uint32_t slot, uint32_t lane, uint64_t sequence,
                     bool failed);
uint8_t *bh__staging_memory(bh__device *device, uint32_t slot);

/* A region of its own. With the lock held, let go of while the worker maps it. */
bh_status bh__host_region_create(bh__device *device, uint64_t asked, bh__memory **out);
/* The same when it is unmapped, once the work that uses it is done. */
void bh__host_region_destroy(bh__device *device, bh__memory *memory);
void bh__host_let_pass(bh__device *device, const bh__memory *memory);
bh__host_entry *bh__host_entry_of(bh__device *device, const bh__memory *memory);

/* Remembers a region that the worker has mapped, with the lock held. False: no host memory. */
bool bh__host_note(bh__device *device, const bh__host_region *region, int fd, bh__memory *memory);

/* Finds the host region that [pointer, pointer + bytes) lies in, with the lock held. */
bh__memory *bh__host_find(bh__device *device, const void *pointer, uint64_t bytes,
                          uint64_t *out_offset);

/* ---- host_pool.c, with the lock held ---- */

/* The piece of a pool that these bytes of its region lie in, if somebody has taken it; else NULL. */
bh__memory *bh__host_pool_find(struct bh__host_pool_slab *slab, uint64_t offset, uint64_t bytes,
                               uint64_t *out_offset);
/* Frees the records of all pools; their regions stay. */
void bh__host_pools_free(bh__device *device);

/* ---- module.c ---- */

/* A module without an image, with a handle and a ticket, its ticket open. NULL: the thread's error.
 * With the lock held. */
bh__module *bh__module_announce(bh__device *device);
/* Gives it its image (NULL, with *error filled in: no host memory), and has it loaded. With the lock
 * held. False: neither. */
bool bh__module_send(bh__device *device, bh__module *module, const void *image, size_t bytes,
                     bh_error *error);
/* Its ticket is answered, once: an error drops the module. Without the lock. */
void bh__module_resolve(bh__device *device, bh__module *module, const bh_error *error);
/* Announces a module and sends it. `product`, what it comes from, may be NULL. */
bh_status bh__module_submit(bh_device device, const void *image, size_t bytes,
                            struct bh__product *product, uint32_t cache, bh_module *out,
                            bh_ticket *ticket);
/* Locks the device of a module and finds it, loaded. NULL with the thread's error. */
bh__module *bh__module_lock(bh_module handle, bool running, bh__device **out);
/* Whether a ticket of the load lane is open. With the lock held. */
bool bh__load_pending(const bh__lane *lane, uint64_t sequence);
/* Reads what the worker says the module holds. False: it makes no sense. */
bool bh__module_parse(bh__module *module, int blob_fd);
bool bh__module_keeps_state(const bh__module *module);
void bh__module_drop(bh__device *device, bh__module *module);
void bh__module_delete(bh__module *module);

/* Advice for a device that has no standby and gets none. */
#define BH__WITHOUT_STANDBY                                                                        \
    "go on without one: after a loss a worker is started cold; see `bulkhead devices`"

/* ---- flight.c: compiles under way ---- */

/* Answers the open compiles of a device with *why: the one with this ticket, or all with `sequence`
 * 0. A compiler that nobody waits for any more is ended. Returns how many. Without any lock. */
unsigned bh__flights_recall(bh__device *device, uint64_t sequence, const bh_error *why);

/* ---- names.c: name expressions ---- */

/* Room for `count` pairs is made first. False: no host memory. */
bool bh__names_reserve(bh__names *names, size_t count);
bool bh__names_add(bh__names *names, const char *expression, const char *lowered);
bool bh__names_copy(const bh__names *from, bh__names *out);
void bh__names_free(bh__names *names);
/* White space counts only where it keeps two words apart. NULL: none. */
const bh__name *bh__names_find(const bh__names *names, const char *expression);
bool bh__expressions_equal(const char *a, const char *b);
/* Whether it can only be an expression: a plain name is made of letters, digits, _ and $. */
bool bh__name_is_expression(const char *name);

/* ---- supervisor.c, takeover.c ---- */

void *bh__supervisor_main(void *device);
/* Has the supervisor carry out an order and waits. Called and returns with the lock held, and lets
 * go of it meanwhile. */
bh_status bh__order_run(bh__device *device, bh__job *job);
void bh__job_post(bh__device *device, bh__job *job);
void bh__job_wait(bh__job *job);
void bh__supervisor_poke(bh__device *device);

typedef struct bh__cause {
    bh_status status; /* BH_E_FAULT, BH_E_DEADLINE, BH_E_LOST */
    bool lane_known;
    bool broken; /* no worker is to use the device again */
    uint32_t lane;
    uint64_t sequence; /* 0: not known; otherwise the lane is */
    uint64_t address;  /* of the access that went wrong, where the worker says so */
    uint32_t bytes;    /* 0: it does not */
    uint32_t step;     /* of a sequence, from 1 on; 0: not known */
    bh_error error;    /* what is known; for the request to blame */
} bh__cause;

/*
 * Supervisor only, with the lock held. The position after the last of the requests that are only
 * known to be done together with the one at `position`, which is taken and not done. *out_count
 * gets how many they are: 1 unless the worker sent several as one.
 */
uint64_t bh__group_end(bh__device *device, bh__lane *lane, uint64_t position, uint64_t taken,
                       uint32_t *out_count);
/* Supervisor only, with the lock held. Whether the request at `head` of a lane, taken and not done,
 * waits for nothing. */
bool bh__head_runs(bh__device *device, bh__lane *lane, uint64_t head);
/* kernel "saxpy" (launch 17 of lane 0, grid 4 x 1 x 1, block 256 x 1 x 1) */
void bh__shadow_describe(const bh__shadow *shadow, uint32_t lane, char *out, size_t size);
/* Supervisor only, with the lock held. The active worker is lost: freeze, kill, judge, hold, and
 * mark what has no future. */
void bh__take_over(bh__device *device, const bh__cause *cause, bh_loss *summary);
/* Supervisor only, with the lock held. Freezes, if that is not done yet, gives everything
 * unresolved this verdict, and stops the device for good. */
void bh__device_stop(bh__device *device, const bh_error *reason, bh_status verdict);
static inline bh__area *bh__worker_area(bh__device *device, const bh__worker *worker) {
    return (bh__area *)(void *)((uint8_t *)device->front + device->front->areas_offset +
                                worker->area * device->front->area_bytes);
}

/* ---- dispatch.c ---- */

bh_status bh__dispatcher_start(bh__device *device);
void bh__dispatcher_stop(bh__device *device);
void bh__dispatcher_poke(bh__device *device);
void bh__dispatch_text(bh__device *device, const void *text, size_t bytes);
void bh__dispatch_loss(bh__device *device, const bh_loss *loss);
/* Waits until what was queued for callbacks so far has run. */
void bh__dispatcher_drain(bh__device *device);

/* ---- fork.c: a forked child must not keep anything alive ---- */

/* Remembers a descriptor so that a forked child closes it. Returns it, under another number if the
 * program had closed a kept one of this number. */
int bh__fd_keep(int fd);
/* Whether it still is the descriptor that was kept: the program may have closed it and got the
 * number for something else. */
bool bh__fd_is_ours(int fd);
/* Closes it if it is. */
void bh__fd_close(int fd);
/* Adds one to an eventfd of ours. False: it is not ours any more. */
bool bh__fd_poke(int fd);
extern _Atomic bool bh__in_forked_child;
static inline bool bh__is_forked_child(void) {
    return atomic_load_explicit(&bh__in_forked_child, memory_order_relaxed);
}
/* Counts devices that exist: a child forked while there are none may use the library. */
void bh__fork_count(int change);

#endif
