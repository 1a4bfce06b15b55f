/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a benchmark, and what to do when the library says no. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

bool bench_on_cpu(void) {
    return strcmp(device_name, "cpu") == 0;
}

const char *bench_device_name(void) {
    return device_name;
}

bool bench_device_is_cpu(bh_device device) {
    bh_device_info info = BH_INIT(info);
    BENCH_NEED(bh_device_get_info(device, &info));
    return strcmp(info.kind, "cpu") == 0;
}

void bench_watch_losses(bh_device device, bh_event_fn *told, void *context) {
    bh_watch_options options = BH_INIT(options);
    options.kinds = BH_EVENT_LOSS;
    bh_watch watch;
    BENCH_NEED(bh_watch_open(device, &options, told, context, &watch));
}

void bench_need(bh_status status, const char *call) {
    if (status == BH_OK) return;
    bh_error error;
    bh_last_error(&error);
    fprintf(stderr, "error: %s: %s: %s\nFix: %s\n", bh_status_name(status), call, error.message,
            error.fix);
    exit(1);
}

void bench_cpu_target(const char *name, double value, const char *unit, double most) {
    if (bench_on_cpu())
        bench_target(name, value, unit, most);
    else
        bench_figure(name, value, unit);
}
