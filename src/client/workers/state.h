/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's data: workers, the watchdog's clock, limits on losses, health and reports. */
#ifndef BH_CLIENT_WORKERS_STATE_H
#define BH_CLIENT_WORKERS_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "client/core/types.h"
#include "client/jobs/state.h"
#include "client/process/worker_process.h"
#include "wire/control.h"

enum { BH__MAX_STANDBYS = 4, BH__REPORTS_KEPT = BH_LOSS_HISTORY };

typedef enum bh__worker_state {
    BH__WORKER_NONE,    /* the area is free */
    BH__WORKER_BOOTING, /* started, not READY yet */
    BH__WORKER_STANDBY, /* booted; can take over once its orders are executed */
    BH__WORKER_ACTIVE,
    BH__WORKER_DYING /* killed or dead, not reaped */
} bh__worker_state;

struct bh__worker {
    bh__worker_state state;
    bh__process process;
    int socket;
    int errors_fd; /* its standard error */
    int canary_fd; /* readable as soon as the process dies; -1: none */
    int bell_fd;   /* a pipe that wakes the dispatcher when requests complete */
    uint32_t area;
    uint32_t outstanding;
    uint32_t next_serial;
    bh__order *waiting, *waiting_last; /* to be sent */
    bh__order *sent, *sent_last;       /* sent, not acknowledged, in order */
    uint64_t started_ns;
    /* On the watch clock (watchdog.c). */
    uint64_t boot_deadline;
    uint64_t order_since; /* when the watchdog began to time the first of `sent` */
    uint64_t pinged_at;   /* when the last ping was sent */
    uint32_t pings;
    bh__device_facts info; /* of its device, as the worker reports it */
    uint32_t traits;       /* BH__TRAIT_...; none before READY */
    uint64_t chunk_granularity;
    bool silent;            /* the last ping is not answered yet */
    uint64_t loss;          /* DYING: number of the loss, 0: it was a standby */
    bool profiled;          /* runs under a profiler: exits by itself when its socket closes */
    bool caught_up;         /* as a standby: has executed all orders once since it booted */
    bool unfit;             /* missed an order or cannot be read: to be replaced */
    bh_status unfit_status; /* why it is unfit */
    char errors[512];       /* the end of what it wrote to standard error */
    size_t errors_length;
    char words[4096]; /* the beginning of it */
    size_t words_length;
};

/* The watchdog's clock: watchdog.c. */
typedef struct bh__watch {
    uint64_t clock;   /* ns during which workers had work and were watched */
    uint64_t last;    /* monotonic time of the last check; 0: nothing is outstanding */
    uint64_t planned; /* planned ns from the last check to the next */
    uint64_t submitted, quiet_since; /* slots on all lanes, and when that last grew */
} bh__watch;

/* Appends an order to a worker's queue. */
typedef void bh__tell_fn(bh__worker *worker, const bh__order *what);

/* What is left of the time that losses may cost, and when that was computed: policy.c. */
typedef struct bh__restart_budget {
    uint64_t ns, at;
} bh__restart_budget;

/* State of the limits on losses: policy.c. */
typedef struct bh__policy_state {
    bool default_limit, quarantine_by_rate; /* the program did not set these limits */
    uint32_t futile;                        /* losses in a row without a completed request */
    uint64_t completed;                     /* requests, at the most recent loss */
    bh__restart_budget budget;
} bh__policy_state;

/* Health and reports, under notes_lock: health.c, report.c. */
typedef struct bh__notes {
    bh_health health;
    bh__restart_budget budget; /* of which losses_in_window is computed */
    uint64_t running_since;    /* the oldest request that runs; 0: none does */
    struct bh__loss_report *reports[BH__REPORTS_KEPT]; /* Owned. By number. */
    char *report_dir; /* Owned. NULL: no files. Not under notes_lock. */
} bh__notes;

/* The device's part. */
typedef struct bh__workers_room {
    _Atomic bool deciding; /* the policy callback is running. Read without the lock. */
    pthread_t thread;
    char worker_path[4096];
    bh__worker workers[BH__AREAS];
    bh__worker *active; /* Borrowed from `workers`. Others that boot or are ready are standbys. */
    uint32_t boot_failures, standbys_ready;
    uint64_t retry_standby_at, retry_cold_at;
    bool alone;    /* standbys are not supported: info.no_standby has the reason */
    bool crowded;  /* the last attempt to start a standby found no device memory */
    bool fds_lost; /* the application closed the library's descriptors */
    bool broken;   /* the hardware is defective: it must not be used again */
    char degraded[256];
    bh__order *backlog; /* orders of jobs, until a worker is active */
    bh__watch watch;
    bh__policy_state policy;
    uint64_t loss_detected_ns;
    /* Watchers are told of `loss` once the successor is activated; cleared after that. Read without
     * the lock. */
    _Atomic bool loss_pending;
    bh_loss loss;
    bh__message *incoming, *outgoing;
    _Atomic int32_t worker_pid; /* 0: none */
    _Atomic uint32_t opened;    /* futex: 0 booting, 1 running, 2 failed */
    bh_error open_error;
    /* Futex: incremented when the readiness of a standby or the device's state changes. */
    _Atomic uint32_t standby_word;
    bh__notes notes;
    bh_finding *findings; /* Owned. What the active worker found in the launch that it ends. */
    char *fault_state;    /* Owned, or NULL. The state of the thread that ended it. */
    uint32_t finding_count;
    uint32_t health_told; /* the last BH_HEALTH_... that watchers were told of, if there were any */
} bh__workers_room;

#endif
