/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's libraries. They are loaded by the module that stands for them. Their calls queue work on
 * the lane's stream; each lane has a handle of its own, which its first call makes.
 */
#ifndef BH_CUDA_LIBRARY_LIBRARY_H
#define BH_CUDA_LIBRARY_LIBRARY_H

#include "cuda/state.h"
#include "worker/library.h"

/* Loads a library and describes it. Control thread. */
bh_status bh__cuda_library_load(bh__device_instance *device, const bh__library *library,
                                bh_error *error, int *out_blob);
/* Queues a launch of an operation. A lane's thread. */
bh_status bh__cuda_library_run(bh__device_lane *lane, const bh__library *library,
                               const bh__work *work, bh_error *error);
/* The lane's thread has ended. */
void bh__cuda_library_lane_close(bh__device_lane *lane);

/* ---- blas.c ---- */

/* NULL: cuBLAS is ready. Else why not, and *fix. Control thread. */
const char *bh__cuda_blas_open(bh__device_instance *device, const char **fix);
bh_status bh__cuda_blas_run(bh__device_lane *lane, const bh__library_call *call, bh_error *error);
void bh__cuda_blas_lane_close(bh__device_lane *lane);

/* ---- library.c ---- */

/* Opens the first of these files that there is: by its name, then in the folders where toolkits
 * are. NULL: there is none; *out_reason, of 256 bytes, says so. */
void *bh__cuda_library_find(const char *const *names, char *out_reason);

#endif
