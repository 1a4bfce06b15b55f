/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries on the CPU device. They are found and loaded before the worker confines itself, because
 * afterwards no file can be opened and no memory made executable.
 */
#ifndef BH_CPU_LIBRARY_LIBRARY_H
#define BH_CPU_LIBRARY_LIBRARY_H

#include "cpu/cpu.h"
#include "worker/library.h"

/* As bh__device_ops.libraries_find. */
void bh__cpu_libraries_find(uint32_t libraries);
/* Describes a library, or says why it cannot be used. `libraries`: those that the device may use.
 */
bh_status bh__cpu_library_load(const bh__library *library, uint32_t libraries, bh_error *error,
                               int *out_blob);
/* Runs a launch of an operation on the lane's thread. */
bh_status bh__cpu_library_run(bh__device_lane *lane, const bh__library *library,
                              const bh__work *work, bh_error *error);

/* ---- find.c ---- */

/* Opens the first of these libraries that the machine has, by its file's name. NULL: it has none;
 * *out_reason, of 256 bytes, says so. */
void *bh__cpu_library_open(const char *const *names, char *out_reason);

/* ---- openblas.c ---- */

/* As bh__cpu_library_open, of a library that may be OpenBLAS. */
void *bh__cpu_openblas_open(const char *const *names, char *out_reason);
/* Lets it use all processors. */
void bh__cpu_openblas_begin(void *handle);

/* ---- blas.c ---- */

/* NULL: it can be used. Else why not, and *fix. */
const char *bh__cpu_blas_lack(const char **fix);
void bh__cpu_blas_find(void);
/* Threads for the calls to come; called once, when the module is loaded. */
void bh__cpu_blas_begin(void);
bh_status bh__cpu_blas_run(const bh__library_call *call, bh_error *error);

/* ---- fft.c: the same ---- */

const char *bh__cpu_fft_lack(const char **fix);
void bh__cpu_fft_find(void);
void bh__cpu_fft_begin(void);
bh_status bh__cpu_fft_run(const bh__library_call *call, bh_error *error);

/* ---- solver.c: the same ---- */

const char *bh__cpu_solver_lack(const char **fix);
void bh__cpu_solver_find(void);
void bh__cpu_solver_begin(void);
bh_status bh__cpu_solver_run(const bh__library_call *call, bh_error *error);

#endif
