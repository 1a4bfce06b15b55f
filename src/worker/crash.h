/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a crash, or a forbidden system call, to the application before this process ends. */
#ifndef BH_WORKER_CRASH_H
#define BH_WORKER_CRASH_H

#include "wire/control.h"

/* From now on a forbidden system call (SIGSYS) is reported as a fault that names it. */
void bh__crash_watch_calls(bh__area *area);

/* From now on crashes are reported as faults too. For devices whose driver delays the end of a
 * process, which is all that the application could see otherwise. */
void bh__crash_watch(bh__area *area);
/* Lets crashes of the calling thread be reported: threads of a worker block these signals. */
void bh__crash_unblock(void);

#endif
