/* SPDX-License-Identifier: Apache-2.0 */
/* FFTW on the CPU device: its functions (fftw.c), its plans, which are kept (fft_plans.c), and
 * calls (fft.c). */
#ifndef BH_CPU_LIBRARY_FFT_H
#define BH_CPU_LIBRARY_FFT_H

#include "library/fft.h"

/* What a plan depends on. Compared byte by byte: what is not used is zero. */
typedef struct bh__cpu_fft_key {
    bh__fft_form form; /* without addresses and alpha */
    int32_t in_alignment, out_alignment;
    uint32_t threads;
    bool in_place;
    bool destroys; /* the input need not stay as it is */
} bh__cpu_fft_key;

typedef struct bh__cpu_fft_plan bh__cpu_fft_plan;

/* ---- fftw.c ---- */

/* Threads that a large transform may use; 1 where FFTW was built without them. */
uint32_t bh__cpu_fftw_threads(void);
int32_t bh__cpu_fftw_alignment(bool single, uint64_t address);
/* NULL: FFTW has no such plan. One thread at a time makes and ends plans. */
void *bh__cpu_fftw_plan(const bh__cpu_fft_key *key, uint64_t in, uint64_t out);
void bh__cpu_fftw_end(bool single, void *plan);
void bh__cpu_fftw_execute(const bh__cpu_fft_key *key, void *plan, uint64_t in, uint64_t out);

/* ---- fft_plans.c ---- */

/* Finds a plan, or makes one. The addresses are those of the transform that it is first used for.
 * NULL: FFTW has none, or there is no memory. */
bh__cpu_fft_plan *bh__cpu_fft_plan_take(const bh__cpu_fft_key *key, uint64_t in, uint64_t out);
/* After its use. It is kept for the next one. */
void bh__cpu_fft_plan_release(bh__cpu_fft_plan *plan);
void bh__cpu_fft_plan_execute(const bh__cpu_fft_plan *plan, uint64_t in, uint64_t out);

#endif
