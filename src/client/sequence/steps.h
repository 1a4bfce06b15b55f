/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a sequence: its steps, and the buffers that they are bound to now. */
#ifndef BH_CLIENT_SEQUENCE_STEPS_H
#define BH_CLIENT_SEQUENCE_STEPS_H

#include "base/tune.h"
#include "client/launch/launch.h"

enum {
    BH__VERSIONS = BH__TUNE(16, 3), /* copies of the steps in shared memory; the first never
                                       changes */
    BH__MAX_STEPS = 65536,
    BH__MAX_VERSION_BYTES = 16 << 20
};

/* A buffer or host region that steps use. */
typedef struct bh__binding {
    uint64_t recorded;  /* the handle of the recorded buffer; 0: a host region */
    bh__memory *memory; /* Retained. */
    uint64_t offset, bytes;
} bh__binding;

typedef struct bh__step_use {
    uint32_t binding;
    uint32_t access;
    uint32_t argument;      /* of a launch, counted from 1; 0: none */
    uint64_t offset, bytes; /* within the binding */
} bh__step_use;

typedef struct bh__step {
    bh__kernel *kernel; /* of a launch; its module is pinned. NULL: not a launch */
    uint64_t elements;  /* of a launch; 0: all threads */
    bool writable_inputs, of_library;
    uint32_t first_use, use_count;
} bh__step;

typedef enum bh__sequence_state {
    BH__SEQUENCE_RECORDING,
    BH__SEQUENCE_DEFINING, /* a thread waits for the worker to define it */
    BH__SEQUENCE_READY,
    BH__SEQUENCE_BROKEN /* it could not be defined */
} bh__sequence_state;

struct bh__sequence {
    bh__sequence *next; /* in the device's list */
    uint64_t id;
    uint32_t number; /* its number in workers */
    char name[64];
    bh__sequence_state state;
    bool defined;  /* workers have it */
    bool released; /* the handle is closed; freed when `last` has completed */

    bh__step *steps; /* Owned, as are all lists here. */
    bh__sequence_step *records;
    bh__step_use *step_uses;
    uint8_t *params;
    bh__binding *bindings;
    uint32_t *binding_table; /* of bindings by what they are for: their number plus one; 0: free */
    bh__kernel **kernels;    /* each once */
    bh__module **modules;    /* each once; pinned */
    uint32_t step_count, step_capacity, record_capacity, step_use_count, step_use_capacity;
    uint32_t params_bytes, params_capacity, binding_count, binding_capacity;
    uint32_t binding_table_size; /* a power of two, or 0 */
    uint32_t kernel_count, kernel_capacity, module_count, module_capacity;

    /* Set by bh_sequence_finish. */
    bh__step_use *total; /* the uses of all steps together */
    bh__use *uses;       /* the same, as bound at the last submission */
    uint32_t total_count;
    bh__use *scratch;     /* for the uses of one step */
    bh__work_tally tally; /* of one replay */
    uint32_t trace_name;
    uint8_t *image; /* the steps as bound and set now: records, then parameters */
    uint64_t version_bytes;
    int fd; /* -1: none */
    uint8_t *versions;
    bool dirty; /* `image` was not copied to `versions` yet */
    uint32_t version;
    uint64_t serial;
    uint64_t last[BH__MAX_LANES]; /* by lane: position of the last request that uses it */
    uint64_t version_last[BH__VERSIONS][BH__MAX_LANES];
};

/* Locks the device of a sequence and finds the sequence, which must be in this state. NULL: nothing
 * is locked and the thread's error is set. */
bh__sequence *bh__sequence_lock(bh_sequence handle, bh__sequence_state state, bh__device **out);
/* The same with the device locked. */
bh__sequence *bh__sequence_get(bh__device *device, bh_sequence handle, bh__sequence_state state);
/* Finds the binding of a recorded buffer, or with `recorded` 0 that of a host region. Returns
 * UINT32_MAX if there is none. */
uint32_t bh__binding_find(const bh__sequence *self, uint64_t recorded, const bh__memory *memory);
/* Computes the addresses of one step from the buffers that it is bound to. */
void bh__sequence_resolve(bh__sequence *sequence, uint32_t step);

/* A use of a step as it is bound now. */
bh__use bh__sequence_use(const bh__sequence *sequence, const bh__step_use *use);
/* Fills in the fields of a launch that checks need. `body` may be NULL. */
void bh__sequence_check(bh__launch *out, bh__device *device, bh__kernel *kernel,
                        const bh__launch_body *body, const bh_launch_options *options);

/* Refuses steps of this size: they exceed BH__MAX_VERSION_BYTES. */
bh_status bh__sequence_refuse_size(const bh__sequence *self, uint64_t bytes);
/* Makes room for `more` elements. `list` is the address of the pointer. False: no host memory; the
 * thread's error is set. */
bool bh__list_reserve(void *list, uint32_t count, uint32_t more, uint32_t *capacity,
                      size_t element);

#endif
