/* SPDX-License-Identifier: Apache-2.0 */
/* How a worker process confines itself, in two steps: see src/sandbox/. */
#ifndef BH_WORKER_CONFINE_H
#define BH_WORKER_CONFINE_H

#include "worker/worker.h"

/* What is in force so far, and the first thing that is missing. */
typedef struct bh__confinement {
    uint32_t asked;   /* BH_SANDBOX_DEFAULT ... */
    uint32_t reached; /* BH_CONFINED_... */
    const char
        *tool;     /* a tool in this process that needs calls which are not on the list, or NULL */
    bool profiled; /* the tool is a profiler, whose calls are not known */
    char lack[sizeof((bh__device_facts *)0)->sandbox_lack];
} bh__confinement;

/* Confines files and sets limits. Called before the first thread is started and the device is
 * opened. */
void bh__confine_files(bh__confinement *self, const bh__boot *boot, const bh__device_ops *ops);

/* Confines system calls once the device is open, and writes to `info` what is in force. Fails only
 * if the sandbox is required and a part of it is missing. */
bh_status bh__confine_calls(bh__confinement *self, const bh__device_ops *ops, bh__area *area,
                            bh__device_facts *info, bh_error *error);

#endif
