/* SPDX-License-Identifier: Apache-2.0 */
/* Printing the counters of a run as text. */
#include "run.h"

static void print_count(FILE *to, const char *name, uint64_t value) {
    if (value) fprintf(to, "  %-22s %llu\n", name, (unsigned long long)value);
}

static void print_bytes(FILE *to, const char *name, uint64_t bytes) {
    char text[BH__TEXT];
    if (bytes) fprintf(to, "  %-22s %s\n", name, bh__text_size(bytes, text));
}

/* Returns the upper limit of the bucket that contains this quantile; UINT64_MAX: it has none. */
static uint64_t quantile(const bh_histogram *of, double share) {
    uint64_t below = 0;
    for (uint32_t i = 0; i < BH_HISTOGRAM_BUCKETS - 1; i++) {
        below += of->buckets[i];
        if ((double)below >= share * (double)of->count) return UINT64_C(256) << i;
    }
    return UINT64_MAX;
}

static void print_times(FILE *to, const char *name, const bh_histogram *of) {
    char sum[BH__TEXT], mean[BH__TEXT], median[BH__TEXT], p99[BH__TEXT];
    if (!of->count) return;
    fprintf(to, "  %-22s %s in all, mean %s, half within %s, 99%% within %s (%llu timed)\n", name,
            bh__text_time(of->sum_ns, sum), bh__text_time(of->sum_ns / of->count, mean),
            bh__text_time(quantile(of, 0.5), median), bh__text_time(quantile(of, 0.99), p99),
            (unsigned long long)of->count);
}

static void print_lanes(FILE *to, const bh_lane_counters *all) {
    print_count(to, "requests", all->requests);
    print_count(to, "launches", all->launches);
    print_count(to, "launches in trains", all->train_launches);
    print_count(to, "trains", all->trains);
    print_count(to, "failed", all->failed);
    print_count(to, "elements", all->elements);
    print_count(to, "thread slots", all->thread_slots);
    print_count(to, "thread slots wasted", all->thread_slots_wasted);
    print_bytes(to, "to the device", all->bytes_to_device);
    print_bytes(to, "to the host", all->bytes_to_host);
    print_bytes(to, "within the device", all->bytes_within);
    print_count(to, "waits for other lanes", all->lane_waits);
    print_count(to, "waits of the program", all->host_waits);
    print_count(to, "deepest queue", all->queue_depth_max);
    print_times(to, "queued", &all->queued);
    print_times(to, "waiting", &all->waiting);
    print_times(to, "running", &all->running);
}

void bh__counters_print(FILE *to, bh_device device) {
    bh_lane_counters lanes = BH_INIT(lanes);
    bh_device_counters all = BH_INIT(all);
    if (bh_lane_get_counters(device, BH_ALL_LANES, &lanes) != BH_OK ||
        bh_device_get_counters(device, &all) != BH_OK)
        return;
    fprintf(to, "counters:\n");
    print_lanes(to, &lanes);
    print_count(to, "allocations", all.allocations);
    print_count(to, "from memory held", all.pool_hits);
    print_count(to, "chunks made", all.chunks_made);
    print_count(to, "module loads", all.module_loads);
    print_count(to, "kernels made native", all.kernels_compiled);
    print_count(to, "launches interpreted", all.launches_interpreted);
    print_count(to, "workers lost", all.losses);
    print_count(to, "by faults", all.faults);
    print_count(to, "by deadlines", all.deadlines);
    print_times(to, "takeovers", &all.takeover);
    print_bytes(to, "printed, then dropped", all.print_dropped);
    print_count(to, "trace records", all.trace_records);
    print_count(to, "trace records dropped", all.trace_dropped);
}
