/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs: one for each thread. */
#ifndef SWARM_H
#define SWARM_H

#include "fake.h"
#include "model.h"

enum { PROGRAM_LANES = 2, PROGRAM_HOSTS = 2 };

/* What a watch was told. */
typedef struct watch_state {
    bh_watch watch; /* zero: none is open */
    _Atomic bool released;
    _Atomic uint64_t loss;  /* the last one */
    _Atomic uint32_t state; /* the last one; 0: none */
} watch_state;

typedef struct program {
    model model;
    unsigned number; /* from 1 on; its values are its own */
    bool faults;     /* it launches kernels that fault */
    bh_module module, variable;
    bh_kernel kernels[FAKE_KERNELS];
    bh_lane lanes[PROGRAM_LANES];
    void *hosts[PROGRAM_HOSTS];
    bool host_used[PROGRAM_HOSTS]; /* by an operation that is pending */
    uint32_t value;                /* the last one that it used */
    uint32_t variable_value;
    bool variable_known;
    watch_state watched;
    uint64_t losses; /* that the device was known to have */
    bool stopped;    /* the device was seen to have stopped */
} program;

/* False: the device refused, which is in order only where it may. */
bool program_begin(program *self);
void *program_run(void *self);

/* ---- for steps ---- */

bh_lane any_lane(program *self);
int any_buffer(void);
bool has(program *self, int index); /* such a buffer */
uint64_t bytes_of(program *self, int index);
uint32_t next_value(program *self);
/* What comes of a call that submits: its operation counts, or it never was. */
void submitted(program *self, model_op *op, bh_status status, const char *call);

/* swarm_calls.c */
void step_share(program *self);
void step_changed_sequence(program *self);
void step_batch(program *self);
void step_background_load(program *self);
void step_variable_kernel(program *self);
void step_advise(program *self);
void step_attach(program *self);
void step_watch(program *self);
void step_notify(program *self);
void step_wait_all(program *self);
void step_ask(program *self);

#endif
