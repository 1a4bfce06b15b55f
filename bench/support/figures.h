/* SPDX-License-Identifier: Apache-2.0 */
/* Time, samples, and figures printed one to a line. Knows nothing of what is measured. */
#ifndef BENCH_FIGURES_H
#define BENCH_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_US 1000ull
#define BENCH_MS 1000000ull
#define BENCH_S  1000000000ull

/* A short kernel on a GPU is up to a sixth slower in one process than in the next, by where its
 * data lies as it seems: what is compared writes to several places in turn. */
enum { BENCH_PLACES = 15, BENCH_PLACE_WORDS = 33 * 16384 };

/* Ends the program: a result was wrong, so no figure means anything. */
_Noreturn void bench_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

uint64_t bench_now_ns(void);
void bench_sleep_ns(uint64_t ns);
/* What one reading of the clock costs. */
double bench_clock_cost_ns(void);

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
/* With `target>=least` instead. */
void bench_target_least(const char *name, double value, const char *unit, double least);
/* Prints NAME.p50 and NAME.p99, each value divided by `scale`. */
void bench_spread(const char *name, bench_samples *samples, double scale, const char *unit);
void bench_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
