/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of devices in the Prometheus text format. */
#include "figures/figures.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef enum form { COUNTER, GAUGE, HISTOGRAM } form;

typedef struct metric {
    const char *name;
    const char *help;
    form form;
    size_t offset; /* in bh_lane_counters, bh__figures or bh__figures_process */
} metric;

#define LANE(name, form, field, help)                                                              \
    { "bulkhead_lane_" name, help, form, offsetof(bh_lane_counters, field) }
#define DEVICE(name, form, field, help)                                                            \
    {                                                                                              \
        "bulkhead_" name, help, form,                                                              \
            offsetof(bh__figures, counters) + offsetof(bh_device_counters, field)                  \
    }
#define TOTAL(name, field, help)                                                                   \
    {                                                                                              \
        "bulkhead_" name, help, COUNTER,                                                           \
            offsetof(bh__figures, device) + offsetof(bh__figures_device, field)                    \
    }
#define NOW(name, field, help)                                                                     \
    {                                                                                              \
        "bulkhead_" name, help, GAUGE,                                                             \
            offsetof(bh__figures, device) + offsetof(bh__figures_device, field)                    \
    }
#define PROCESS(name, field, help)                                                                 \
    { "bulkhead_" name, help, COUNTER, offsetof(bh__figures_process, field) }

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
    NOW("worker_generation", generation, "Number of the active worker: 1 at first."),
    NOW("standbys_ready", standbys_ready, "Standbys that would take over at once."),
    NOW("buffers", buffers, "Buffers that exist."),
    NOW("allocated_bytes", bytes_allocated, "Device memory in buffers."),
    NOW("reserved_bytes", bytes_reserved, "Device memory in chunks and modules' variables."),
    NOW("managed_buffers", managed_buffers, "Managed buffers that exist."),
    NOW("managed_bytes", managed_bytes, "Device memory in managed buffers."),
    TOTAL("managed_to_device_bytes_total", managed_to_device,
          "Bytes of managed buffers moved to the device."),
    TOTAL("managed_to_host_bytes_total", managed_to_host,
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

__attribute__((format(printf, 2, 3))) static void put(bh__page *to, const char *format, ...) {
    va_list list;
    va_start(list, format);
    size_t left = to->length < to->room ? to->room - to->length : 0;
    int some = vsnprintf(left ? to->out + to->length : NULL, left, format, list);
    va_end(list);
    if (some > 0) to->length += (size_t)some;
}

/* Not through floating point: a locale may change its decimal point. */
static void put_seconds(bh__page *to, uint64_t ns) {
    put(to, "%llu.%09llu", (unsigned long long)(ns / 1000000000u),
        (unsigned long long)(ns % 1000000000u));
}

/* Names come from workers and drivers: other characters could make the whole page invalid. */
static void put_label(bh__page *to, const char *name, const char *value) {
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

static void put_head(bh__page *to, const metric *what) {
    static const char *const types[] = {"counter", "gauge", "histogram"};
    put(to, "# HELP %s %s\n# TYPE %s %s\n", what->name, what->help, what->name, types[what->form]);
}

static void put_histogram(bh__page *to, const char *name, const char *labels,
                          const bh_histogram *of) {
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

static void put_value(bh__page *to, const metric *what, const char *labels, const void *counters) {
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

enum { LABELS = 256 };

/* Labels are written to a text of their own first: each is used for many samples. */
static void put_process(bh__page *to, const bh__figures_process *of) {
    put(to, "pid=\"%ld\",", (long)of->pid);
    put_label(to, "program", of->program);
}

static void labels_of(const bh__figures *of, bool named, char out[LABELS]) {
    bh__page text = {.out = out, .room = LABELS};
    char device[32];
    snprintf(device, sizeof device, "%.15s:%u", of->device.kind, of->device.index);
    put_label(&text, "device", device);
    put(&text, ",compartment=\"%u\"", of->device.slot);
    if (!named) return;
    put(&text, ",");
    put_process(&text, &of->process);
}

static void put_version(bh__page *to, const bh__figures_process *of, bool named) {
    put(to, "bulkhead_build_info{");
    put_label(to, "version", of->version);
    if (named) put(to, ",");
    if (named) put_process(to, of);
    put(to, "} 1\n");
}

/* True for the first device of each process: its counters are in the page once. */
static bool is_first(const bh__figures *const *all, size_t which) {
    for (size_t i = 0; i < which; i++)
        if (all[i]->process.pid == all[which]->process.pid &&
            all[i]->process.start == all[which]->process.start)
            return false;
    return true;
}

static void put_processes(bh__page *to, const bh__figures *const *all, size_t count,
                          const bh__figures_process *own) {
    put_head(to, &(metric){"bulkhead_build_info", "The library in use.", GAUGE, 0});
    if (own) put_version(to, own, false);
    for (size_t k = 0; !own && k < count; k++)
        if (is_first(all, k)) put_version(to, &all[k]->process, true);
    for (size_t i = 0; i < COUNT_OF(of_process); i++) {
        put_head(to, &of_process[i]);
        if (own) put_value(to, &of_process[i], "", own);
        for (size_t k = 0; !own && k < count; k++) {
            char labels[LABELS];
            if (!is_first(all, k)) continue;
            put_process(&(bh__page){.out = labels, .room = sizeof labels}, &all[k]->process);
            put_value(to, &of_process[i], labels, &all[k]->process);
        }
    }
}

static void put_infos(bh__page *to, const bh__figures *const *all, size_t count, bool named) {
    if (count) put_head(to, &(metric){"bulkhead_device_info", "What the device is.", GAUGE, 0});
    for (size_t i = 0; i < count; i++) {
        char labels[LABELS];
        labels_of(all[i], named, labels);
        put(to, "bulkhead_device_info{%s,", labels);
        put_label(to, "name", all[i]->info.name);
        put(to, ",");
        put_label(to, "driver", all[i]->info.driver);
        put(to, ",");
        put_label(to, "arch", all[i]->info.arch);
        put(to, "} 1\n");
    }
}

static void put_tags(bh__page *to, const bh__figures *const *all, size_t count, bool named) {
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < all[i]->tag_count && k < BH__FIGURES_TAGS; k++) {
            char labels[LABELS];
            labels_of(all[i], named, labels);
            if (!any)
                put_head(to, &(metric){"bulkhead_tag_bytes", "Device memory in buffers with a tag.",
                                       GAUGE, 0});
            any = true;
            put(to, "bulkhead_tag_bytes{%s,", labels);
            put_label(to, "tag", all[i]->tags[k].tag);
            put(to, "} %llu\n", (unsigned long long)all[i]->tags[k].bytes);
        }
    }
}

static void put_lanes(bh__page *to, const metric *what, const bh__figures *of, bool named) {
    for (uint32_t i = 0; i < of->lane_count && i < BH__FIGURES_LANES; i++) {
        char labels[LABELS + 24], device[LABELS];
        labels_of(of, named, device);
        snprintf(labels, sizeof labels, "%s,lane=\"%u\"", device, of->lanes[i].index);
        put_value(to, what, labels, &of->lanes[i]);
    }
}

void bh__page_write(bh__page *to, const bh__figures *const *all, size_t count,
                    const bh__figures_process *own) {
    bool named = !own;
    put_processes(to, all, count, own);
    put_infos(to, all, count, named);
    for (size_t i = 0; i < COUNT_OF(of_devices) && count; i++) {
        put_head(to, &of_devices[i]);
        for (size_t k = 0; k < count; k++) {
            char labels[LABELS];
            labels_of(all[k], named, labels);
            put_value(to, &of_devices[i], labels, all[k]);
        }
    }
    put_tags(to, all, count, named);
    for (size_t i = 0; i < COUNT_OF(of_lanes) && count; i++) {
        put_head(to, &of_lanes[i]);
        for (size_t k = 0; k < count; k++) put_lanes(to, &of_lanes[i], all[k], named);
    }
}
