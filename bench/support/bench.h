/* SPDX-License-Identifier: Apache-2.0 */
/* What all benchmarks share: options, time, figures, and kernels to measure with. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bulkhead.h"

#define BENCH_US 1000ull
#define BENCH_MS 1000000ull
#define BENCH_S  1000000000ull

/* Reads -d DEVICE and -n COUNT, and says on a comment line what is being measured and where. */
void bench_begin(int argc, char **argv, const char *about);
/* COUNT if it was given. */
size_t bench_count(size_t usual);
/* Options that name the device to measure. */
bh_device_options bench_options(void);
bool bench_device_is_cpu(bh_device device);

/* Ends the program with what the library has to say if `status` is not BH_OK. */
void bench_need(bh_status status, const char *call);
#define BENCH_NEED(call) bench_need((call), #call)
/* Ends the program: a result was wrong, so no figure means anything. */
_Noreturn void bench_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

uint64_t bench_now_ns(void);
void bench_sleep_ns(uint64_t ns);
/* What one reading of the clock costs. */
double bench_clock_cost_ns(void);

/* The median time for a word to travel to another process and back, both spinning. Forks: call it while no
 * device is open. */
double bench_ping_pong_ns(size_t rounds);

/* ---- samples and figures ---- */

typedef struct bench_samples {
    double *values;
    size_t count, capacity;
} bench_samples;

bench_samples bench_samples_new(size_t capacity);
/* Samples beyond the capacity are a mistake of the benchmark and end it. */
void bench_samples_add(bench_samples *samples, double value);
void bench_samples_free(bench_samples *samples);
/* The value that `percent` of the samples do not exceed. Sorts them. */
double bench_percentile(bench_samples *samples, double percent);
double bench_mean(const bench_samples *samples);

/* One line: name value unit. */
void bench_figure(const char *name, double value, const char *unit);
/* The same, with `target<=most` and whether it was met. */
void bench_target(const char *name, double value, const char *unit, double most);
/* Prints NAME.p50 and NAME.p99, each value divided by `scale`. */
void bench_spread(const char *name, bench_samples *samples, double scale, const char *unit);
void bench_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- kernels ---- */

typedef struct bench_kernels {
    bh_module module;
    bh_kernel put;  /* (u32 *out, u32 index, u32 value, u32 salt): out[index] = value ^ salt */
    bh_kernel word; /* (u32 *out, u32 index): out[index] = index + 1 */
    bh_kernel fill; /* (u32 *out, u32 value, u32 count): all of out */
    bh_kernel
        last; /* (u64 *out, u32 index, u64 ns): runs so long; out[2 index] = begun, [+1] = ended */
    bh_kernel mix;     /* (u32 *out, u32 rounds): out[thread] = bench_mix(thread, rounds) */
    bh_kernel endless; /* (u32 *out): counts in out[0] for ever */
    bh_kernel wild;    /* (u32 *out): writes far outside of it */
    bh_kernel trap;    /* (u32 *out): writes to it and traps */
} bench_kernels;

bench_kernels bench_kernels_load(bh_device device);

/* Instructions that `mix` executes in each round, and besides. */
enum { BENCH_MIX_PER_ROUND = 8, BENCH_MIX_BESIDES = 13 };
uint32_t bench_mix(uint32_t thread, uint32_t rounds);

bh_buffer bench_buffer(bh_device device, bh_type type, uint64_t count);
/* A buffer of u32 in which element i is bench_pattern(i). */
uint32_t bench_pattern(uint32_t index);
bh_buffer bench_patterned(bh_device device, uint32_t count);
/* How many of its elements are no longer so. */
size_t bench_pattern_damage(bh_buffer buffer, uint32_t count);

#endif
