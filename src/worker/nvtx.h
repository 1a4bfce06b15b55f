/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX as a client: ranges for whichever profiler has put its library into this process. */
#ifndef BH_WORKER_NVTX_H
#define BH_WORKER_NVTX_H

#include <stdbool.h>

/* Whether a profiler takes ranges. Set by begin and never changed after it. */
extern bool bh__nvtx_listens;

/* Loads the library that a profiler names in the environment, once a process, however often it is
 * called. Returns what is wrong with it, NULL if nothing is. */
const char *bh__nvtx_begin(void);

/* Only while a profiler listens. Ranges belong to the calling thread and nest. */
void bh__nvtx_name_thread(const char *name);
void bh__nvtx_push(const char *text);
void bh__nvtx_pop(void);

#endif
