/* SPDX-License-Identifier: Apache-2.0 */
/* Time, samples, and figures printed one to a line. */
#include "figures.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void bench_wrong(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("error: wrong result: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* ---- time ---- */

uint64_t bench_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * BENCH_S + (uint64_t)now.tv_nsec;
}

void bench_sleep_ns(uint64_t ns) {
    struct timespec left = {.tv_sec = (time_t)(ns / BENCH_S), .tv_nsec = (long)(ns % BENCH_S)};
    while (nanosleep(&left, &left) != 0) continue;
}

double bench_clock_cost_ns(void) {
    enum { READINGS = 1024, TIMES = 8 };
    double least = 0;
    for (int time = 0; time < TIMES; time++) {
        uint64_t first = bench_now_ns(), last = first;
        for (int i = 0; i < READINGS; i++) last = bench_now_ns();
        double cost = (double)(last - first) / READINGS;
        if (time == 0 || cost < least) least = cost;
    }
    return least;
}

/* ---- samples ---- */

bench_samples bench_samples_new(size_t capacity) {
    bench_samples samples = {.values = calloc(capacity ? capacity : 1, sizeof(double)),
                             .capacity = capacity};
    if (!samples.values) bench_wrong("no memory for %zu samples", capacity);
    return samples;
}

void bench_samples_add(bench_samples *samples, double value) {
    if (samples->count == samples->capacity)
        bench_wrong("more than %zu samples", samples->capacity);
    samples->values[samples->count++] = value;
}

void bench_samples_free(bench_samples *samples) {
    free(samples->values);
    *samples = (bench_samples){0};
}

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double bench_percentile(bench_samples *samples, double percent) {
    if (samples->count == 0) bench_wrong("no samples were taken");
    qsort(samples->values, samples->count, sizeof *samples->values, compare);
    size_t rank = (size_t)ceil(percent / 100 * (double)samples->count);
    return samples->values[rank ? rank - 1 : 0];
}

double bench_mean(const bench_samples *samples) {
    double sum = 0;
    for (size_t i = 0; i < samples->count; i++) sum += samples->values[i];
    return sum / (double)samples->count;
}

/* ---- figures ---- */

static void print_figure(const char *name, double value, const char *unit) {
    double size = fabs(value);
    int decimals = size == 0 || size >= 1000 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 4;
    printf("%s %.*f %s", name, decimals, value, unit);
}

void bench_figure(const char *name, double value, const char *unit) {
    print_figure(name, value, unit);
    putchar('\n');
}

void bench_target(const char *name, double value, const char *unit, double most) {
    print_figure(name, value, unit);
    printf(" target<=%g %s\n", most, value <= most ? "ok" : "MISS");
}

void bench_target_least(const char *name, double value, const char *unit, double least) {
    print_figure(name, value, unit);
    printf(" target>=%g %s\n", least, value >= least ? "ok" : "MISS");
}

void bench_spread(const char *name, bench_samples *samples, double scale, const char *unit) {
    char text[128];
    snprintf(text, sizeof text, "%s.p50", name);
    bench_figure(text, bench_percentile(samples, 50) / scale, unit);
    snprintf(text, sizeof text, "%s.p99", name);
    bench_figure(text, bench_percentile(samples, 99) / scale, unit);
}

void bench_note(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("# ", stdout);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}
