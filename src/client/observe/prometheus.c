/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of devices in the Prometheus text format: each metric family once, with the
 * samples of every device. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/compile/compile.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/memory/memory.h"

typedef enum form { COUNTER, GAUGE, HISTOGRAM } form;

typedef struct metric {
    const char *name;
    const char *help;
    form form;
    size_t offset; /* in bh_lane_counters, snapshot or bh_cache_info */
} metric;

/* The counters of one device. */
typedef struct snapshot {
    char labels[64];
    bh__device_facts info;
    uint64_t running, buffers, bytes_allocated, bytes_reserved;
    bh__managed_totals managed;
    bh_device_counters all;
    uint32_t lanes;
    bh_lane_counters lane[BH__MAX_LANES];
} snapshot;

#define LANE(name, form, field, help)                                                              \
    { "bulkhead_lane_" name, help, form, offsetof(bh_lane_counters, field) }
#define DEVICE(name, form, field, help)                                                            \
    { "bulkhead_" name, help, form, offsetof(snapshot, all) + offsetof(bh_device_counters, field) }
#define TOTAL(name, field, help)                                                                   \
    { "bulkhead_" name, help, COUNTER, offsetof(snapshot, field) }
#define NOW(name, field, help)                                                                     \
    { "bulkhead_" name, help, GAUGE, offsetof(snapshot, field) }
#define PROCESS(name, field, help)                                                                 \
    { "bulkhead_" name, help, COUNTER, offsetof(bh_cache_info, field) }

static const metric of_lanes[] = {
    LANE("requests_total", COUNTER, requests, "Requests submitted."),
    LANE("launches_total", COUNTER, launches, "Launches submitted."),
    LANE("failed_total", COUNTER, failed, "Tickets that ended with an error."),
    LANE("elements_total", COUNTER, elements, "Threads launched that had an element to process."),
    LANE("threads_total", COUNTER, threads, "Threads in the grids launched."),
    LANE("thread_slots_total", COUNTER, thread_slots,
         "Threads with each block rounded up to whole warps."),
    LANE("thread_slots_wasted_total", COUNTER, thread_slots_wasted,
         "Thread slots without an element to process."),
    LANE("to_device_bytes_total", COUNTER, bytes_to_device,
         "Bytes from host memory to the device."),
    LANE("to_host_bytes_total", COUNTER, bytes_to_host, "Bytes from the device to host memory."),
    LANE("within_bytes_total", COUNTER, bytes_within, "Bytes copied or filled on the device."),
    LANE("trains_total", COUNTER, trains, "Launch trains sent."),
    LANE("train_launches_total", COUNTER, train_launches, "Launches sent in trains."),
    LANE("waits_for_lanes_total", COUNTER, lane_waits,
         "Requests submitted behind unfinished work of another lane."),
    LANE("host_waits_total", COUNTER, host_waits,
         "Times that a thread of the program waited for the lane."),
    LANE("queue_depth", GAUGE, queue_depth, "Queue slots submitted and not done."),
    LANE("queue_depth_max", GAUGE, queue_depth_max, "The maximum queue depth so far."),
    LANE("queued_seconds", HISTOGRAM, queued, "From submission until the worker took a request."),
    LANE("waiting_seconds", HISTOGRAM, waiting,
         "From then until the dependencies of the request completed."),
    LANE("running_seconds", HISTOGRAM, running, "Device time of requests."),
};

static const metric of_devices[] = {
    NOW("running", running,
        "1 while the device runs, 0 while its worker is replaced or it has stopped."),
    NOW("buffers", buffers, "Buffers that exist."),
    NOW("allocated_bytes", bytes_allocated, "Device memory in buffers."),
    NOW("reserved_bytes", bytes_reserved, "Device memory in chunks and modules' variables."),
    NOW("managed_buffers", managed.buffers, "Managed buffers that exist."),
    NOW("managed_bytes", managed.bytes, "Device memory in managed buffers."),
    TOTAL("managed_to_device_bytes_total", managed.to_device,
          "Bytes of managed buffers moved to the device."),
    TOTAL("managed_to_host_bytes_total", managed.to_host,
          "Bytes of managed buffers moved to the host."),
    DEVICE("allocations_total", COUNTER, allocations, "Buffers allocated."),
    DEVICE("pool_hits_total", COUNTER, pool_hits, "Buffers allocated from existing chunks."),
    DEVICE("chunks_made_total", COUNTER, chunks_made,
           "Chunks of memory allocated from the device."),
    DEVICE("chunks_trimmed_total", COUNTER, chunks_trimmed, "Chunks returned to the device."),
    DEVICE("between_bytes_total", COUNTER, bytes_between,
           "Bytes copied to the device from other devices."),
    DEVICE("losses_total", COUNTER, losses, "Workers lost."),
    DEVICE("faults_total", COUNTER, faults, "Workers lost to a fault."),
    DEVICE("deadlines_total", COUNTER, deadlines, "Workers lost to a deadline."),
    DEVICE("restarts_total", COUNTER, restarts, "Losses after which another worker took over."),
    DEVICE("standby_takeovers_total", COUNTER, standby_takeovers,
           "Losses after which a ready standby took over."),
    DEVICE("standby_starts_total", COUNTER, standby_starts, "Processes started as standby."),
    DEVICE("takeover_seconds", HISTOGRAM, takeover,
           "From detecting a loss to activating the next worker."),
    DEVICE("requests_resent_total", COUNTER, requests_resent, "Requests sent again after a loss."),
    DEVICE("quarantines_total", COUNTER, quarantines, "Kernels put in quarantine."),
    DEVICE("stale_refusals_total", COUNTER, stale_refusals, "Calls and tickets refused as stale."),
    DEVICE("module_loads_total", COUNTER, module_loads, "Modules loaded."),
    DEVICE("module_load_failures_total", COUNTER, module_load_failures, "Modules refused."),
    DEVICE("trace_records_total", COUNTER, trace_records, "Records handed to the trace."),
    DEVICE("trace_dropped_total", COUNTER, trace_dropped,
           "Records dropped because the trace was full."),
    DEVICE("replays_total", COUNTER, replays, "Sequences submitted."),
    DEVICE("replay_steps_total", COUNTER, replay_steps, "Steps of the sequences submitted."),
    DEVICE("dispatches_total", COUNTER, dispatches, "Items of one-call dispatches begun."),
    DEVICE("print_dropped_bytes_total", COUNTER, print_dropped,
           "Bytes of text printed by kernels that were dropped."),
    DEVICE("launches_interpreted_total", COUNTER, launches_interpreted,
           "Launches submitted before native code was there, though it was wanted."),
    DEVICE("kernels_compiled_total", COUNTER, kernels_compiled,
           "Kernels that workers got native code for."),
};

/* Counters of the process. They have no device labels. */
static const metric of_process[] = {
    PROCESS("compiles_total", compiles, "Sources compiled."),
    PROCESS("cache_memory_hits_total", memory_hits, "Compiles answered from memory."),
    PROCESS("cache_disk_hits_total", disk_hits, "Compiles answered from disk."),
    PROCESS("cache_misses_total", misses, "Compiles found in no cache."),
    PROCESS("cache_joined_total", joined, "Compiles that joined an identical compile in flight."),
};

#define COUNT_OF(list) (sizeof(list) / sizeof *(list))

/* ---- text ---- */

typedef struct text {
    char *out;
    size_t room; /* bytes at `out`, including the NUL */
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

/* Not through floating point: a locale may change its decimal point. */
static void put_seconds(text *to, uint64_t ns) {
    put(to, "%llu.%09llu", (unsigned long long)(ns / 1000000000u),
        (unsigned long long)(ns % 1000000000u));
}

/* Names come from workers and drivers: other characters could make the whole page invalid. */
static void put_label(text *to, const char *name, const char *value) {
    put(to, "%s=\"", name);
    for (; *value; value++) {
        unsigned char byte = (unsigned char)*value;
        if (byte == '\\' || byte == '"')
            put(to, "\\%c", byte);
        else
            put(to, "%c", byte < ' ' || byte > '~' ? '?' : byte);
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
            put_seconds(to, UINT64_C(256) << i);
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
    put(to, "%s", what->name);
    if (*labels) put(to, "{%s}", labels);
    put(to, " %llu\n", (unsigned long long)value);
}

/* ---- devices ---- */

typedef struct snapshots {
    bh_cache_info process; /* its counts only */
    uint32_t count;
    snapshot *devices; /* Owned. */
} snapshots;

/* `named`: the program passed its handle. Otherwise readers of stopped devices are left out. */
static bool take_device(uint64_t handle, bool named, snapshot *out) {
    bh__device *device = bh__device_lock(handle, BH__KIND_DEVICE, "device", false);
    if (!device) return false;
    snprintf(out->labels, sizeof out->labels, "device=\"%.15s:%u\",compartment=\"%u\"",
             device->kind, device->device_index, device->slot);
    out->info = device->info;
    out->running = device->state == BH__DEVICE_RUNNING;
    out->buffers = device->memory.buffer_count;
    out->bytes_allocated = device->memory.bytes_allocated;
    out->bytes_reserved = bh__held_bytes(device);
    out->managed = device->memory.managed;
    bh__counts_collect(device);
    bh__counts_device(device, &out->all);
    out->lanes = device->queue.lane_limit;
    for (uint32_t i = 0; i < out->lanes; i++)
        bh__counts_lane(device, &device->lanes[i], &out->lane[i]);
    bool wanted = named || !device->is_reader;
    bh__device_unlock(device);
    return wanted;
}

/* Those that are closed meanwhile are left out. */
static void take_open(const uint64_t *handles, uint32_t open, snapshots *out) {
    bh_error before = *bh__last();
    for (uint32_t i = 0; i < open; i++)
        out->count += take_device(handles[i], false, &out->devices[out->count]);
    *bh__last() = before;
}

static bh_status take_given(const bh_device *given, uint32_t count, snapshots *out) {
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            /* Two samples with the same labels would make the page invalid. */
            if (given[k].id == given[i].id)
                return bh__refuse(BH_E_INVALID, "pass each device once",
                                  "devices[%u] and devices[%u] are the same", k, i);
        }
        if (!take_device(given[i].id, true, &out->devices[out->count])) return bh__last()->status;
        out->count++;
    }
    return BH_OK;
}

static bh_status take_snapshots(const bh_device *given, size_t count, snapshots *out) {
    uint64_t handles[BH__MAX_DEVICES];
    uint32_t wanted = given ? (uint32_t)count : bh__devices_open(handles);
    *out = (snapshots){.devices = calloc(wanted + 1, sizeof *out->devices)};
    if (!out->devices)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a copy of the counters of %u devices", wanted);
    bh__cache_counts_fill(&out->process);
    if (given) return take_given(given, wanted, out);
    take_open(handles, wanted, out);
    return BH_OK;
}

static void put_build(text *to) {
    put_head(to, &(metric){"bulkhead_build_info", "The library in use.", GAUGE, 0});
    put(to, "bulkhead_build_info{");
    put_label(to, "version", bh_version());
    put(to, "} 1\n");
}

static void put_devices(text *to, const snapshots *all) {
    if (all->count)
        put_head(to, &(metric){"bulkhead_device_info", "What the device is.", GAUGE, 0});
    for (uint32_t i = 0; i < all->count; i++) {
        const snapshot *of = &all->devices[i];
        put(to, "bulkhead_device_info{%s,", of->labels);
        put_label(to, "name", of->info.name);
        put(to, ",");
        put_label(to, "driver", of->info.driver);
        put(to, ",");
        put_label(to, "arch", of->info.arch);
        put(to, "} 1\n");
    }
}

static void put_lanes(text *to, const metric *what, const snapshot *of) {
    for (uint32_t i = 0; i < of->lanes; i++) {
        char labels[sizeof of->labels + 24];
        snprintf(labels, sizeof labels, "%s,lane=\"%u\"", of->labels, of->lane[i].index);
        put_value(to, what, labels, &of->lane[i]);
    }
}

static void put_all(text *to, const snapshots *all) {
    put_build(to);
    for (size_t i = 0; i < COUNT_OF(of_process); i++) {
        put_head(to, &of_process[i]);
        put_value(to, &of_process[i], "", &all->process);
    }
    put_devices(to, all);
    for (size_t i = 0; i < COUNT_OF(of_devices) && all->count; i++) {
        put_head(to, &of_devices[i]);
        for (uint32_t k = 0; k < all->count; k++)
            put_value(to, &of_devices[i], all->devices[k].labels, &all->devices[k]);
    }
    for (size_t i = 0; i < COUNT_OF(of_lanes) && all->count; i++) {
        put_head(to, &of_lanes[i]);
        for (uint32_t k = 0; k < all->count; k++) put_lanes(to, &of_lanes[i], &all->devices[k]);
    }
}

/* ---- the public call ---- */

static bh_status put_text(const snapshots *all, char *out, size_t capacity, size_t *length) {
    text measured = {0};
    put_all(&measured, all);
    bh_status status = bh__text_fits(measured.length, capacity, length);
    if (status == BH_OK && capacity) put_all(&(text){.out = out, .room = capacity}, all);
    return status;
}

static bh_status check_devices(const bh_device *devices, size_t count) {
    if (!devices && count)
        return bh__refuse(BH_E_INVALID, "pass the devices, or NULL and 0 for all",
                          "devices is NULL and count is %zu", count);
    if (count > BH__MAX_DEVICES)
        return bh__refuse(BH_E_INVALID, "pass each device once",
                          "count is %zu; a process can have %d devices open", count,
                          BH__MAX_DEVICES);
    return BH_OK;
}

bh_status bh_prometheus(const bh_device *devices, size_t count, char *out, size_t capacity,
                        size_t *length) {
    if (bh__text_check(out, capacity, length) != BH_OK) return BH_E_INVALID;
    if (check_devices(devices, count) != BH_OK) return BH_E_INVALID;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    snapshots all;
    bh_status status = take_snapshots(devices, count, &all);
    if (status == BH_OK) status = put_text(&all, out, capacity, length);
    free(all.devices);
    return status;
}
