/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of a device in the text format of Prometheus. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/internal.h"

typedef enum form { COUNTER, GAUGE, HISTOGRAM } form;

typedef struct metric {
    const char *name;
    const char *help;
    form form;
    size_t offset; /* in bh_lane_counts or bh_counters */
} metric;

#define LANE(name, form, field, help)                                                              \
    { "bulkhead_lane_" name, help, form, offsetof(bh_lane_counts, field) }
#define DEVICE(name, form, field, help)                                                            \
    { "bulkhead_" name, help, form, offsetof(bh_counters, field) }

static const metric of_lanes[] = {
    LANE("requests_total", COUNTER, requests, "Requests submitted."),
    LANE("launches_total", COUNTER, launches, "Launches submitted."),
    LANE("failed_total", COUNTER, failed, "Tickets that ended with an error."),
    LANE("elements_total", COUNTER, elements, "Threads launched that had something to do."),
    LANE("threads_total", COUNTER, threads, "Threads in the grids launched."),
    LANE("thread_slots_total", COUNTER, thread_slots,
         "Threads with each block rounded up to whole warps."),
    LANE("thread_slots_wasted_total", COUNTER, thread_slots_wasted,
         "Thread slots that had nothing to do."),
    LANE("to_device_bytes_total", COUNTER, bytes_to_device,
         "Bytes from host memory to the device."),
    LANE("to_host_bytes_total", COUNTER, bytes_to_host, "Bytes from the device to host memory."),
    LANE("within_bytes_total", COUNTER, bytes_within, "Bytes copied or filled on the device."),
    LANE("trains_total", COUNTER, trains, "Launch trains sent."),
    LANE("train_launches_total", COUNTER, train_launches, "Launches sent in trains."),
    LANE("queue_depth", GAUGE, queue_depth, "Queue slots submitted and not done."),
    LANE("queue_depth_max", GAUGE, queue_depth_max, "The most of them seen so far."),
    LANE("queued_seconds", HISTOGRAM, queued, "From submission until the worker took a request."),
    LANE("waiting_seconds", HISTOGRAM, waiting,
         "From then until what the request depends on was done."),
    LANE("running_seconds", HISTOGRAM, running, "Device time of requests."),
};

static const metric of_devices[] = {
    DEVICE("allocations_total", COUNTER, allocations, "Buffers that were given memory."),
    DEVICE("pool_hits_total", COUNTER, pool_hits, "Buffers cut from chunks that were there."),
    DEVICE("chunks_made_total", COUNTER, chunks_made, "Chunks of memory asked of the device."),
    DEVICE("chunks_trimmed_total", COUNTER, chunks_trimmed, "Chunks given back to the device."),
    DEVICE("losses_total", COUNTER, losses, "Workers lost."),
    DEVICE("faults_total", COUNTER, faults, "Workers lost to a fault."),
    DEVICE("deadlines_total", COUNTER, deadlines, "Workers lost to a deadline."),
    DEVICE("restarts_total", COUNTER, restarts, "Losses after which another worker went on."),
    DEVICE("standby_takeovers_total", COUNTER, standby_takeovers,
           "Losses after which a standby that was ready went on."),
    DEVICE("standby_starts_total", COUNTER, standby_starts, "Processes started as standby."),
    DEVICE("takeover_seconds", HISTOGRAM, takeover,
           "From knowing of a loss to the next worker being told to go on."),
    DEVICE("requests_resent_total", COUNTER, requests_resent, "Requests sent again after a loss."),
    DEVICE("quarantines_total", COUNTER, quarantines, "Kernels put in quarantine."),
    DEVICE("stale_refusals_total", COUNTER, stale_refusals, "Calls and tickets refused as stale."),
    DEVICE("module_loads_total", COUNTER, module_loads, "Modules loaded."),
    DEVICE("module_load_failures_total", COUNTER, module_load_failures, "Modules refused."),
    DEVICE("compiles_total", COUNTER, compiles, "Sources compiled."),
    DEVICE("cache_memory_hits_total", COUNTER, cache_memory_hits, "Compiles answered from memory."),
    DEVICE("cache_disk_hits_total", COUNTER, cache_disk_hits, "Compiles answered from disk."),
    DEVICE("cache_misses_total", COUNTER, cache_misses, "Compiles that were in no cache."),
    DEVICE("cache_joined_total", COUNTER, cache_joined,
           "Compiles that waited for the same one by another thread."),
    DEVICE("trace_records_total", COUNTER, trace_records, "Records handed to the trace."),
    DEVICE("trace_dropped_total", COUNTER, trace_dropped, "Records the trace had no room for."),
    DEVICE("replays_total", COUNTER, replays, "Sequences submitted."),
    DEVICE("replay_steps_total", COUNTER, replay_steps, "Steps of the sequences submitted."),
    DEVICE("dispatches_total", COUNTER, dispatches, "Items of one-call dispatches begun."),
};

/* ---- text ---- */

typedef struct text {
    char *out;
    size_t room; /* bytes at out, the NUL among them */
    size_t length;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *to, const char *format, ...) {
    va_list list;
    va_start(list, format);
    size_t left = to->length < to->room ? to->room - to->length : 0;
    int some = vsnprintf(left ? to->out + to->length : NULL, left, format, list);
    va_end(list);
    if (some > 0) to->length += (size_t)some;
}

/* Billionths without going through floating point, whose decimal point a locale may change. */
static void put_seconds(text *to, uint64_t ns) {
    put(to, "%llu.%09llu", (unsigned long long)(ns / 1000000000u),
        (unsigned long long)(ns % 1000000000u));
}

static void put_label(text *to, const char *name, const char *value) {
    put(to, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            put(to, "\\%c", *value);
        else if (*value == '\n')
            put(to, "\\n");
        else
            put(to, "%c", *value);
    }
    put(to, "\"");
}

static void put_head(text *to, const metric *what) {
    static const char *const types[] = {"counter", "gauge", "histogram"};
    put(to, "# HELP %s %s\n# TYPE %s %s\n", what->name, what->help, what->name, types[what->form]);
}

static void put_histogram(text *to, const char *name, const char *labels, const bh_histogram *of) {
    uint64_t below = 0;
    for (uint32_t i = 0; i < BH_HISTOGRAM_BUCKETS; i++) {
        below += of->buckets[i];
        put(to, "%s_bucket{%s,le=\"", name, labels);
        if (i + 1 < BH_HISTOGRAM_BUCKETS)
            put_seconds(to, bh_histogram_limit(i));
        else
            put(to, "+Inf");
        put(to, "\"} %llu\n", (unsigned long long)below);
    }
    put(to, "%s_sum{%s} ", name, labels);
    put_seconds(to, of->sum_ns);
    put(to, "\n%s_count{%s} %llu\n", name, labels, (unsigned long long)below);
}

static void put_value(text *to, const metric *what, const char *labels, const void *counters) {
    const char *at = (const char *)counters + what->offset;
    if (what->form == HISTOGRAM) {
        put_histogram(to, what->name, labels, (const bh_histogram *)(const void *)at);
        return;
    }
    uint64_t value;
    memcpy(&value, at, sizeof value);
    put(to, "%s{%s} %llu\n", what->name, labels, (unsigned long long)value);
}

/* ---- a device ---- */

typedef struct snapshot {
    char labels[64];
    bh_device_info info;
    uint32_t state;
    uint64_t buffers, bytes_allocated, bytes_reserved;
    bh_counters all;
    uint32_t lanes;
    bh_lane_counts lane[BH__MAX_LANES];
} snapshot;

static bh_status take(bh_device handle, snapshot *out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    snprintf(out->labels, sizeof out->labels, "device=\"%.15s:%u\",compartment=\"%u\"",
             device->info.kind, device->device_index, device->slot);
    out->info = device->info;
    out->state = device->state;
    out->buffers = device->buffer_count;
    out->bytes_allocated = device->bytes_allocated;
    out->bytes_reserved = bh__held_bytes(device);
    bh__counts_device(device, &out->all);
    out->lanes = device->lane_limit;
    for (uint32_t i = 0; i < out->lanes; i++)
        bh__counts_lane(device, &device->lanes[i], &out->lane[i]);
    bh__device_unlock(device);
    return BH_OK;
}

static void put_gauge(text *to, const char *name, const char *help, const char *labels,
                      uint64_t value) {
    put_head(to, &(metric){name, help, GAUGE, 0});
    put(to, "%s{%s} %llu\n", name, labels, (unsigned long long)value);
}

static void put_info(text *to, const snapshot *of) {
    put_head(to, &(metric){"bulkhead_device_info", "What the device is.", GAUGE, 0});
    put(to, "bulkhead_device_info{%s,", of->labels);
    put_label(to, "name", of->info.name);
    put(to, ",");
    put_label(to, "driver", of->info.driver);
    put(to, ",");
    put_label(to, "arch", of->info.arch);
    put(to, "} 1\n");
    put_gauge(to, "bulkhead_running", "1 while the device runs, 0 while it is replaced or stopped.",
              of->labels, of->state == BH_DEVICE_RUNNING);
    put_gauge(to, "bulkhead_buffers", "Buffers that exist.", of->labels, of->buffers);
    put_gauge(to, "bulkhead_allocated_bytes", "Device memory in buffers.", of->labels,
              of->bytes_allocated);
    put_gauge(to, "bulkhead_reserved_bytes", "Device memory in chunks.", of->labels,
              of->bytes_reserved);
}

static void put_all(text *to, const snapshot *of) {
    put_info(to, of);
    for (size_t i = 0; i < sizeof of_devices / sizeof *of_devices; i++) {
        put_head(to, &of_devices[i]);
        put_value(to, &of_devices[i], of->labels, &of->all);
    }
    for (size_t i = 0; i < sizeof of_lanes / sizeof *of_lanes; i++) {
        put_head(to, &of_lanes[i]);
        for (uint32_t k = 0; k < of->lanes; k++) {
            char labels[sizeof of->labels + 24];
            snprintf(labels, sizeof labels, "%s,lane=\"%u\"", of->labels, of->lane[k].index);
            put_value(to, &of_lanes[i], labels, &of->lane[k]);
        }
    }
}

bh_status bh_counters_prometheus(bh_device device, char *out, size_t capacity, size_t *length) {
    if (!length || (!out && capacity))
        return bh__refuse(BH_E_INVALID, "pass storage for the text and its length",
                          "text or length is NULL");
    snapshot *of = malloc(sizeof *of);
    if (!of)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a copy of the counters");
    text measured = {0};
    bh_status status = take(device, of);
    if (status == BH_OK) {
        put_all(&measured, of);
        *length = measured.length;
        if (capacity && measured.length >= capacity) {
            status = bh__refuse(BH_E_INVALID,
                                "ask for the length with a capacity of 0, and allow "
                                "some more",
                                "the text has %zu bytes and a NUL, there is room for %zu",
                                measured.length, capacity);
        } else if (capacity) {
            put_all(&(text){.out = out, .room = capacity}, of);
        }
    }
    free(of);
    return status;
}
