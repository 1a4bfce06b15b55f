/* SPDX-License-Identifier: Apache-2.0 */
/* What benchmarks of the library share: options, and kernels to measure with. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bulkhead.h"
#include "figures.h"

/* Reads -d DEVICE and -n COUNT, and says on a comment line what is being measured and where. */
void bench_begin(int argc, char **argv, const char *about);
/* COUNT if it was given. */
size_t bench_count(size_t usual);
/* Options that name the device to measure. */
bh_device_options bench_options(void);
/* The device as it was named, and whether that is "cpu". */
const char *bench_device_name(void);
bool bench_on_cpu(void);
bool bench_device_is_cpu(bh_device device);
/* `told` is called for each loss of the device, until it is closed. */
void bench_watch_losses(bh_device device, bh_event_fn *told, void *context);
/* bench_target on the CPU device, whose target it is; bench_figure on others. */
void bench_cpu_target(const char *name, double value, const char *unit, double most);

/* Ends the program with what the library has to say if `status` is not BH_OK. */
void bench_need(bh_status status, const char *call);
#define BENCH_NEED(call) bench_need((call), #call)

/* The median time for a word to travel to another process and back, both spinning. Forks: call it
 * while no device is open. */
double bench_ping_pong_ns(size_t rounds);

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
void bench_pattern_write(bh_buffer buffer, uint32_t count);
/* How many of its elements are no longer so. */
size_t bench_pattern_damage(bh_buffer buffer, uint32_t count);

#endif
