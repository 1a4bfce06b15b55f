/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX as a client: ranges for a profiler whose library is in this process. */
#ifndef BH_WORKER_LANE_NVTX_H
#define BH_WORKER_LANE_NVTX_H

#include <stdbool.h>

/* True if a profiler takes ranges. Set by bh__nvtx_begin and never changed after it. */
extern bool bh__nvtx_listens;

/* Loads the library that a profiler names in the environment, once for each process. Returns what
 * is wrong with it, or NULL. */
const char *bh__nvtx_begin(void);

/* Call these only if bh__nvtx_listens. Ranges belong to the calling thread and nest. */
void bh__nvtx_name_thread(const char *name);
void bh__nvtx_push(const char *text);
void bh__nvtx_pop(void);

#endif
