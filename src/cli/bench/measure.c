/* SPDX-License-Identifier: Apache-2.0 */
/* What `bulkhead bench` measures on a device. */
#include "cli/bench/bench.h"

#include <stdlib.h>
#include <string.h>

const char *const bh__measure_names[BH__MEASURES] = {
    "open a device",           "submit a launch",
    "launch and wait",         "copy 4 KiB to the device",
    "copy 4 KiB to the host",  "copy 64 MiB to the device",
    "copy 64 MiB to the host", "loss to running again",
};
const char *const bh__measure_keys[BH__MEASURES] = {
    "open",       "submit",        "round_trip",  "to_device_4k",
    "to_host_4k", "to_device_64m", "to_host_64m", "loss_to_running",
};

uint64_t bh__measure_bytes(bh__measure which) {
    return which == BH__MEASURE_TO_DEVICE || which == BH__MEASURE_TO_HOST ? BH__LARGE_BYTES : 0;
}

void bh__times_add(bh__times *times, uint64_t ns) {
    if (times->count < BH__SAMPLES) times->list[times->count++] = ns;
}

static int compare(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void bh__times_sort(bh__times *times) {
    qsort(times->list, times->count, sizeof *times->list, compare);
}

uint64_t bh__times_at(const bh__times *times, double part) {
    if (times->count == 0) return 0;
    size_t at = (size_t)(part * (double)(times->count - 1) + 0.5);
    return times->list[at];
}

/* ---- the measures ---- */

static const char kernels[] = ".version 7.0\n"
                              ".target sm_70\n"
                              ".address_size 64\n"
                              ".visible .entry nothing() { ret; }\n"
                              ".visible .entry crash() { trap; }\n";

typedef struct subject {
    bh_device device;
    bh_kernel nothing, crash;
    bh_buffer buffer;
    uint8_t *host; /* Owned. */
    double scale;
} subject;

static bh_status launch(bh_kernel kernel, bh_ticket *out) {
    return bh_launch(kernel, BH_GRID(1, 1), BH_NO_ARGS, NULL, out);
}

static size_t count_of(const subject *s, size_t count) {
    size_t scaled = (size_t)((double)count * s->scale);
    return scaled < 3 ? 3 : scaled > BH__SAMPLES ? BH__SAMPLES : scaled;
}

/* The time of one launch in a group that fits the queue: alone, reading the clock would count. */
static bh_status measure_submit(subject *s, bh__times *out) {
    enum { GROUP = 64 };
    bh_status status = BH_OK;
    for (size_t i = 0; i < count_of(s, 1000) + 10 && status == BH_OK; i++) {
        bh_ticket ticket;
        uint64_t start = bh__now_ns();
        for (int k = 0; k < GROUP && status == BH_OK; k++) status = launch(s->nothing, &ticket);
        uint64_t took = (bh__now_ns() - start) / GROUP;
        if (status == BH_OK) status = bh_wait(ticket, BH_FOREVER);
        if (i >= 10) bh__times_add(out, took);
    }
    return status;
}

static bh_status measure_round_trip(subject *s, bh__times *out) {
    bh_status status = BH_OK;
    for (size_t i = 0; i < count_of(s, 2000) + 10 && status == BH_OK; i++) {
        bh_ticket ticket;
        uint64_t start = bh__now_ns();
        status = launch(s->nothing, &ticket);
        if (status == BH_OK) status = bh_wait(ticket, BH_FOREVER);
        if (i >= 10) bh__times_add(out, bh__now_ns() - start);
    }
    return status;
}

static bh_status measure_copy(subject *s, bool to_device, uint64_t bytes, size_t count,
                              bh__times *out) {
    bh_status status = BH_OK;
    for (size_t i = 0; i < count_of(s, count) + 2 && status == BH_OK; i++) {
        uint64_t start = bh__now_ns();
        status = to_device ? bh_buffer_write(s->buffer, 0, s->host, bytes)
                           : bh_buffer_read(s->buffer, 0, s->host, bytes);
        if (i >= 2) bh__times_add(out, bh__now_ns() - start);
    }
    return status;
}

/* From the launch of a kernel that faults until a kernel has run after it. */
static bh_status measure_loss(subject *s, bh__times *out) {
    bh_status status = BH_OK;
    for (size_t i = 0; i < count_of(s, 10) && i < 12 && status == BH_OK; i++) {
        bh_ticket lost, ticket;
        bh_status standby = bh_device_wait_standby(s->device, UINT64_C(60000000000));
        if (standby != BH_OK && standby != BH_E_UNSUPPORTED) return standby;
        uint64_t start = bh__now_ns();
        status = launch(s->crash, &lost);
        if (status == BH_OK && bh_wait(lost, BH_FOREVER) == BH_OK) status = BH_E_INTERNAL;
        if (status == BH_OK) status = launch(s->nothing, &ticket);
        if (status == BH_OK) status = bh_wait(ticket, BH_FOREVER);
        bh__times_add(out, bh__now_ns() - start);
        if (status == BH_OK) status = bh_kernel_pardon(s->crash);
    }
    return status;
}

/* ---- all ---- */

static bh_status open_timed(const char *name, subject *s, bh__times *out) {
    bh_device_options options = BH_INIT(options);
    options.device = name;
    bh_status status = BH_OK;
    for (int i = 0; i < 3 && status == BH_OK; i++) {
        uint64_t start = bh__now_ns();
        if (i > 0) status = bh_device_close(s->device);
        start = bh__now_ns();
        s->device = (bh_device){0};
        if (status == BH_OK) status = bh_device_open(&options, &s->device);
        bh__times_add(out, bh__now_ns() - start);
    }
    return status;
}

static bh_status prepare(subject *s) {
    bh_module module;
    bh_status status = bh_module_load(s->device, kernels, sizeof kernels, &module);
    if (status == BH_OK) status = bh_kernel_get(module, "nothing", &s->nothing);
    if (status == BH_OK) status = bh_kernel_get(module, "crash", &s->crash);
    if (status == BH_OK)
        status = bh_buffer_alloc(s->device, BH_U8, BH__LARGE_BYTES, NULL, &s->buffer);
    return status;
}

static bh_status measure_one(subject *s, bh__measure which, bh__times *out) {
    switch (which) {
    case BH__MEASURE_SUBMIT:
        return measure_submit(s, out);
    case BH__MEASURE_ROUND_TRIP:
        return measure_round_trip(s, out);
    case BH__MEASURE_TO_DEVICE_SMALL:
    case BH__MEASURE_TO_HOST_SMALL:
        return measure_copy(s, which == BH__MEASURE_TO_DEVICE_SMALL, BH__SMALL_BYTES, 1000, out);
    case BH__MEASURE_TO_DEVICE:
    case BH__MEASURE_TO_HOST:
        return measure_copy(s, which == BH__MEASURE_TO_DEVICE, BH__LARGE_BYTES, 20, out);
    case BH__MEASURE_LOSS:
        return measure_loss(s, out);
    default:
        return BH_OK;
    }
}

bh_status bh__bench_measure(const char *device, double scale, bh__results *out, bh__bar *bar,
                            bh_error *error) {
    subject s = {.scale = scale, .host = calloc(1, BH__LARGE_BYTES)};
    if (s.host == NULL) {
        bh__report_set(error, BH_E_NO_HOST_MEMORY, "no memory for 64 MiB to copy");
        return bh__report_fix(error, "free some memory");
    }
    out->info.size = sizeof out->info;
    bh__bar_step(bar, bh__measure_names[BH__MEASURE_OPEN]);
    bh_status status = open_timed(device, &s, &out->times[BH__MEASURE_OPEN]);
    if (status == BH_OK) status = bh_device_get_info(s.device, &out->info);
    if (status == BH_OK) status = prepare(&s);
    for (int i = BH__MEASURE_OPEN + 1; i < BH__MEASURES && status == BH_OK; i++) {
        bh__bar_step(bar, bh__measure_names[i]);
        status = measure_one(&s, (bh__measure)i, &out->times[i]);
    }
    if (status != BH_OK) bh__report_library(error);
    if (s.device.id != 0) bh_device_close(s.device);
    for (int i = 0; i < BH__MEASURES; i++) bh__times_sort(&out->times[i]);
    free(s.host);
    return status;
}
