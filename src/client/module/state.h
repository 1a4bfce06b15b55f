/* SPDX-License-Identifier: Apache-2.0 */
/* The data of modules, kernels and variables. */
#ifndef BH_CLIENT_MODULE_STATE_H
#define BH_CLIENT_MODULE_STATE_H

#include "client/core/types.h"
#include "client/memory/state.h"
#include "wire/control.h"

struct bh__kernel {
    uint64_t id;
    bh__module *module; /* Borrowed. */
    uint32_t index;
    uint64_t submitted; /* requests that launch it */
    char *name;
    bh__blob_kernel shape;
    bh__blob_param *params; /* Borrowed from the module's blob. */
    uint32_t faults;
    uint32_t score; /* counts towards quarantine: policy.c */
    bool quarantined;
    bool padded;                /* there are gaps between the parameters */
    struct bh__known_fit *fits; /* Owned. See launch/fit.c. */
    uint32_t fit_count;
    uint32_t trace_name; /* its name in a trace; 0: none yet */
    /* Requests that launch it: `dropped` were submitted and did not complete; `completed` had
     * completed at its most recent fault. */
    uint64_t dropped, completed;
    uint64_t timed, device_ns;          /* launches on lost workers, and how long they ran */
    uint8_t native_asked, native_ready; /* shapes of blocks: BH__NATIVE_... */
};

typedef struct bh__variable {
    char *name;
    uint64_t bytes;
    bool writable;     /* a kernel of the module may write it */
    uint8_t *value;    /* Owned. What bh_module_global_write wrote; NULL: nothing */
    bh__span *written; /* Owned. The written parts of `value`; sorted, disjoint. */
    uint32_t written_count, written_capacity;
} bh__variable;

/* A name expression and its lowered (mangled) name. */
typedef struct bh__name {
    char *expression, *lowered; /* Owned. */
} bh__name;

typedef struct bh__names {
    bh__name *list; /* Owned. */
    size_t count;
} bh__names;

/* Native code that workers get after the image. */
typedef struct bh__native_part {
    struct bh__native_part *next;
    int fd; /* Owned. */
    uint64_t bytes;
} bh__native_part;

struct bh__module {
    uint64_t id;
    uint32_t number; /* its number in workers */
    int image_fd;    /* Owned. */
    uint64_t image_bytes;
    uint8_t *blob; /* Owned: names and params point into it. */
    bh__kernel *kernels;
    uint32_t kernel_count;
    bh__variable *variables;
    uint32_t variable_count;
    uint64_t variable_bytes; /* in all of them */
    uint64_t charged;        /* of the device's module_bytes */
    bool loaded;
    bool launched; /* a kernel of it may have run on the active worker */
    bool stale;    /* the values of its variables were lost with a worker */
    bool disputed; /* two workers described it differently: it is not used any more */
    bool unloaded; /* the handle is closed; freed when `last` has completed */
    uint32_t pins; /* its load, calls and sequences that use it */
    /* The stamp of the last request before the loss of values that kernels wrote. Launches up to it
     * do not run, even if the module is accepted before they are judged. */
    uint64_t lost_until;
    uint64_t last[BH__MAX_LANES]; /* by lane: position of the last request that uses it */
    uint64_t ticket;              /* of its compile or load, on the load lane */
    bh__module *next_pending;     /* in the lane's list of modules with pending tickets */
    bh__product *product;         /* Retained: the compile it came from. NULL: none. */
    uint32_t cache;               /* where the product was found, BH_CACHE_MISS ... */
    bh__native_part *natives;     /* Owned. */
    bool waits_for_native;        /* the load is resolved when the code is there */
    bh__module *next;
};

/* The device's part. */
typedef struct bh__module_room {
    bh__module *list;
    struct bh__variable_write *variable_writes; /* Borrowed: in flight. See variable.c. */
    uint32_t next_number;
} bh__module_room;

#endif
