/* SPDX-License-Identifier: Apache-2.0 */
/* Options, time, samples, and figures printed one to a line. */
#include "bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *device_name = "cpu";
static size_t given_count;

static void usage(FILE *stream, const char *program) {
    fprintf(stream,
            "usage: %s [-d DEVICE] [-n COUNT]\n"
            "  -d DEVICE  what to measure: cpu, cuda, cuda:1 ... (default $BULKHEAD_TEST_DEVICE, "
            "else cpu)\n"
            "  -n COUNT   how often to repeat what is measured\n",
            program);
}

void bench_begin(int argc, char **argv, const char *about) {
    const char *named = getenv("BULKHEAD_TEST_DEVICE");
    if (named && *named) device_name = named;
    int option;
    while ((option = getopt(argc, argv, "d:n:h")) != -1) {
        char *end = NULL;
        switch (option) {
        case 'd':
            device_name = optarg;
            break;
        case 'n':
            given_count = strtoul(optarg, &end, 10);
            if (*end || given_count == 0) {
                fprintf(stderr, "error: -n %s is not a number of repetitions\n", optarg);
                exit(2);
            }
            break;
        case 'h':
            usage(stdout, argv[0]);
            exit(0);
        default:
            usage(stderr, argv[0]);
            exit(2);
        }
    }
    if (optind < argc) {
        usage(stderr, argv[0]);
        exit(2);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    bench_note("%s; device %s, %ld processors", about, device_name, sysconf(_SC_NPROCESSORS_ONLN));
}

size_t bench_count(size_t usual) {
    return given_count ? given_count : usual;
}

bh_device_options bench_options(void) {
    bh_device_options options = BH_INIT(options);
    options.device = device_name;
    return options;
}

bool bench_device_is_cpu(bh_device device) {
    bh_device_info info = BH_INIT(info);
    BENCH_NEED(bh_device_query(device, &info));
    return strcmp(info.kind, "cpu") == 0;
}

void bench_need(bh_status status, const char *call) {
    if (status == BH_OK) return;
    bh_error error;
    bh_last_error(&error);
    fprintf(stderr, "error: %s: %s: %s\nFix: %s\n", bh_status_name(status), call, error.message,
            error.fix);
    exit(1);
}

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
    enum { READINGS = 4096 };
    uint64_t first = bench_now_ns(), last = first;
    for (int i = 0; i < READINGS; i++) last = bench_now_ns();
    return (double)(last - first) / READINGS;
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
