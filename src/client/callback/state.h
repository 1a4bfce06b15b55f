/* SPDX-License-Identifier: Apache-2.0 */
/* The data of this room: callbacks, events, watchers and the dispatcher's queues. */
#ifndef BH_CLIENT_CALLBACK_STATE_H
#define BH_CLIENT_CALLBACK_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "client/core/types.h"

enum { BH__PRESSURE_REASONS = 4 };

struct bh__callback {
    bh__callback *next;
    bh_ticket ticket;
    bh_done_fn *done; /* NULL: write the program's eventfd */
    void *context;
    bool writing_back; /* the ticket is done; the write-back of a transparent buffer is in flight */
};

/* A loss, a change of health, or text that kernels printed. */
struct bh__event {
    bh__event *next;
    uint32_t kind;       /* BH_EVENT_... */
    uint64_t last_watch; /* for watchers up to this id: those that existed when it happened */
    union {
        bh_loss loss;
        bh_health health;
    } u;
    size_t text_bytes, text_room;
    char text[];
};

/* Kernel output that the callback has not received yet. Under dispatch_lock. */
typedef struct bh__printed {
    uint64_t limit;           /* maximum of `held` */
    uint64_t held;            /* capacity of all text events, including those being delivered */
    uint64_t missing;         /* bytes dropped after the last event, not reported yet */
    bool torn;                /* the dropped text ended within a line */
    char last;                /* the last byte appended to an event; 0: none yet */
    _Atomic uint64_t dropped; /* total bytes dropped. Read without the lock. */
} bh__printed;

/* A watch of the program. Under dispatch_lock. */
struct bh__watcher {
    bh__watcher *next; /* opened after this one */
    uint64_t id;       /* in the order of opening, from 1 on */
    uint64_t handle;
    uint32_t kinds; /* BH_EVENT_... */
    bh_event_fn *told;
    void *context;
    /* Memory pressure: memory/pressure.c. Written with the device's lock held, too. */
    uint64_t threshold;
    bool above;
    bh_pressure pending[BH__PRESSURE_REASONS]; /* notifications by reason; `times` 0: none */
    uint64_t order[BH__PRESSURE_REASONS];      /* of each: the lower, the older */
};

/* One call of a watcher. A copy: the watcher may be released during the call. */
typedef struct bh__watch_run {
    uint64_t id;
    bh_event_fn *told;
    void *context;
} bh__watch_run;

/* The life cycle of a dispatcher. Written with dispatch_lock held. STOPPED is final. */
typedef enum bh__dispatcher_state {
    BH__DISPATCHER_NONE,
    BH__DISPATCHER_RUNNING,
    BH__DISPATCHER_STOPPING,
    BH__DISPATCHER_STOPPED
} bh__dispatcher_state;

/* The dispatcher's queues. Under dispatch_lock, unless a field says otherwise. */
typedef struct bh__callback_room {
    pthread_t thread;
    bh__dispatcher_state state;
    bh__callback *callbacks; /* callbacks of tickets that the dispatcher has not taken yet */
    bh__event *events, *events_last;
    bh_loss merged; /* the newest loss for which there was no host memory; number 0: none */
    uint64_t merged_last_watch;            /* as bh__event.last_watch */
    _Atomic uint32_t drained;              /* futex: incremented each time the queues were empty */
    bh__watcher *watchers, *watchers_last; /* Owned. In the order of opening. */
    _Atomic uint32_t wanted;               /* the kinds of all watchers. Read without the lock. */
    bh__printed printed;
    uint64_t last_watch_id;
    uint64_t running_watch;      /* id of the watcher that runs now; 0: none */
    uint32_t run_waiters;        /* threads that wait on runs_ended */
    _Atomic uint32_t runs_ended; /* futex: incremented when a watcher returns and a thread waits */
    int event_fd;                /* the program's eventfd, for bh_notify */
    int poke_fd, spare_fd;       /* two descriptors of the eventfd that wakes the dispatcher */
    int bell_fd;                 /* Borrowed from the active worker; -1: none */
} bh__callback_room;

#endif
