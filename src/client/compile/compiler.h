/* SPDX-License-Identifier: Apache-2.0 */
/* Running bulkhead-compiler for one job. */
#ifndef BH_CLIENT_COMPILE_COMPILER_H
#define BH_CLIENT_COMPILE_COMPILER_H

#include "base/arena.h"
#include "client/process/spawn.h"
#include "wire/compile.h"

/* Lets another thread cancel a run. Protected by bh__compile_lock. */
typedef struct bh__run_control {
    bool abandoned;
    bool running;
    bh__spawned process; /* valid while `running` */
} bh__run_control;

/* Cancels the run and kills its process. Called with bh__compile_lock held. */
void bh__run_abandon(bh__run_control *control);

/* Runs the program and waits for its end. The answer is allocated in `arena`. *out_log receives the
 * complete log, of failures too; the caller frees it. Returns BH_E_CANCELLED if the run was
 * abandoned. */
bh_status bh__compiler_run(const char *program, const bh__compile_job *job,
                           bh__run_control *control, bh__arena *arena, bh__compile_answer *answer,
                           char **out_log, bh_error *error);

#endif
