/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of device memory under a long random trace: what is lost to fragmentation when most is
 * live, and how long one allocation or release takes. */
#include <stdlib.h>

#include "support/bench.h"

enum { LEAST_BYTES = 256, OCTAVES = 18, MOST_LIVE = 1 << 20 };
#define BUDGET_BYTES ((uint64_t)4 << 30)

typedef struct live {
    bh_buffer buffer;
    uint64_t bytes;
} live;

static uint64_t state = 88172645463325252u;

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static double fraction(void) {
    return (double)(next() >> 11) * 0x1p-53;
}

/* As many between each two powers of two. */
static uint64_t any_size(void) {
    uint64_t from = (uint64_t)LEAST_BYTES << next() % OCTAVES;
    return from + (uint64_t)(fraction() * (double)from);
}

typedef struct trace {
    live *list;
    size_t count;
    uint64_t bytes, most_bytes;
    double lost; /* at the moment when most was live */
    bench_samples allocs, frees;
} trace;

static void release_any(trace *self) {
    size_t at = next() % self->count;
    live gone = self->list[at];
    self->list[at] = self->list[--self->count];
    uint64_t before = bench_now_ns();
    bh_status status = bh_buffer_release(gone.buffer);
    bench_samples_add(&self->frees, (double)(bench_now_ns() - before));
    if (status != BH_OK) bench_need(status, "bh_buffer_release");
    self->bytes -= gone.bytes;
}

static void step(trace *self, bh_device device, uint64_t budget) {
    uint64_t bytes = any_size();
    while (self->count && self->bytes + bytes > budget) release_any(self);
    live *made = &self->list[self->count++];
    made->bytes = bytes;
    uint64_t before = bench_now_ns();
    bh_status status = bh_buffer_alloc(device, BH_U8, bytes, &made->buffer);
    bench_samples_add(&self->allocs, (double)(bench_now_ns() - before));
    if (status != BH_OK) bench_need(status, "bh_buffer_alloc");
    self->bytes += bytes;
    if (self->bytes <= self->most_bytes) return;
    self->most_bytes = self->bytes;
    bh_memory_info info = BH_INIT(info);
    BENCH_NEED(bh_memory_query(device, &info));
    if (info.bytes_buffers != self->bytes) bench_wrong("the figures do not add up");
    self->lost = 100 * (1 - (double)info.bytes_buffers / (double)info.bytes_reserved);
}

int main(int argc, char **argv) {
    bench_begin(argc, argv,
                "pool: buffers of 256 B to 64 MiB, as many of each power of two, "
                "allocated and freed at random around 4 GiB");
    size_t steps = bench_count(1000000);
    bh_device device;
    bh_device_options options = bench_options();
    BENCH_NEED(bh_device_open(&options, &device));
    bh_memory_info info = BH_INIT(info);
    BENCH_NEED(bh_memory_query(device, &info));
    uint64_t budget = info.limit / 4 < BUDGET_BYTES ? info.limit / 4 : BUDGET_BYTES;

    trace self = {.list = calloc(MOST_LIVE, sizeof(live)),
                  .allocs = bench_samples_new(steps),
                  .frees = bench_samples_new(steps)};
    if (!self.list) bench_wrong("no memory");
    double worst = 0;
    for (size_t i = 0; i < steps && self.count < MOST_LIVE; i++) {
        step(&self, device, budget);
        if (self.bytes < budget - budget / 32 || i % 64) continue;
        BENCH_NEED(bh_memory_query(device, &info));
        double lost = 100 * (1 - (double)info.bytes_buffers / (double)info.bytes_reserved);
        if (lost > worst) worst = lost;
    }
    BENCH_NEED(bh_memory_query(device, &info));
    bench_target("pool.lost_at_peak", self.lost, "%", 15);
    bench_target("pool.lost_worst_near_peak", worst, "%", 15);
    bench_cpu_target("pool.alloc.p50", bench_percentile(&self.allocs, 50), "ns", 200);
    bench_cpu_target("pool.free.p50", bench_percentile(&self.frees, 50), "ns", 200);
    bench_figure("pool.alloc.mean", bench_mean(&self.allocs), "ns");
    bench_figure("pool.alloc.p99", bench_percentile(&self.allocs, 99), "ns");
    bench_figure("pool.free.p99", bench_percentile(&self.frees, 99), "ns");
    bench_figure("pool.live", (double)self.most_bytes / (1 << 20), "MiB");
    bench_figure("pool.chunks", info.chunks, "chunks");
    bh_counters counts = BH_INIT(counts);
    BENCH_NEED(bh_device_counters(device, &counts));
    bench_figure("pool.chunks_made", 100 * (double)counts.chunks_made / (double)info.allocations,
                 "% of allocations");

    while (self.count) release_any(&self);
    uint64_t freed;
    BENCH_NEED(bh_device_trim(device, 0, &freed));
    BENCH_NEED(bh_memory_query(device, &info));
    if (info.bytes_reserved) bench_wrong("memory is left after the last buffer is gone");
    bench_samples_free(&self.allocs);
    bench_samples_free(&self.frees);
    free(self.list);
    BENCH_NEED(bh_device_close(device));
    return 0;
}
