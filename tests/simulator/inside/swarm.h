/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs: one for each thread. */
#ifndef SWARM_H
#define SWARM_H

#include "fake.h"
#include "model.h"

enum { PROGRAM_LANES = 2, PROGRAM_HOSTS = 2 };

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
} program;

/* False: the device refused, which is in order only where it may. */
bool program_begin(program *self);
void *program_run(void *self);

#endif
