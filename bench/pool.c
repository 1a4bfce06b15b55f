/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of device memory under a long random trace: what is lost to fragmentation when most is
 * live, and how long one allocation or release takes. Every tenth allocation there makes a chunk;
 * what the calls take without that, and after a pause as long in which nothing is called, is shown
 * beside it. */
#include <stdlib.h>

#include "support/bench.h"

enum { MIN_BYTES = 256, OCTAVES = 18, SMALL_OCTAVES = 14, MAX_LIVE = 1 << 20, PAUSE_EVERY = 10 };
#define BUDGET_BYTES       ((uint64_t)4 << 30)
#define SMALL_BUDGET_BYTES ((uint64_t)256 << 20)

typedef struct live {
    bh_buffer buffer;
    uint64_t bytes;
} live;

typedef struct trace {
    bh_device device;
    uint64_t state;
    uint32_t octaves;
    uint64_t budget;
    live *list;
    size_t count;
    uint64_t bytes, most_bytes;
    double lost, worst;          /* at the moment when most was live; at any when nearly all was */
    bench_samples allocs, frees; /* one reading of the clock included */
} trace;

static double clock_ns;

static double median_call(bench_samples *calls) {
    return bench_percentile(calls, 50) - clock_ns;
}

static trace trace_new(bh_device device, uint32_t octaves, uint64_t budget, size_t steps) {
    trace self = {.device = device,
                  .state = 88172645463325252u,
                  .octaves = octaves,
                  .budget = budget,
                  .list = calloc(MAX_LIVE, sizeof(live)),
                  .allocs = bench_samples_new(steps),
                  .frees = bench_samples_new(steps + MAX_LIVE)};
    if (!self.list) bench_wrong("no memory");
    return self;
}

static uint64_t next(trace *self) {
    self->state ^= self->state << 13;
    self->state ^= self->state >> 7;
    self->state ^= self->state << 17;
    return self->state;
}

/* As many between each two powers of two. */
static uint64_t any_size(trace *self) {
    uint64_t from = (uint64_t)MIN_BYTES << next(self) % self->octaves;
    double fraction = (double)(next(self) >> 11) * 0x1p-53;
    return from + (uint64_t)(fraction * (double)from);
}

static void release_any(trace *self) {
    size_t at = next(self) % self->count;
    live gone = self->list[at];
    self->list[at] = self->list[--self->count];
    uint64_t before = bench_now_ns();
    bh_status status = bh_buffer_release(gone.buffer);
    bench_samples_add(&self->frees, (double)(bench_now_ns() - before));
    if (status != BH_OK) bench_need(status, "bh_buffer_release");
    self->bytes -= gone.bytes;
}

static double lost_now(const trace *self) {
    bh_memory_info info = BH_INIT(info);
    BENCH_NEED(bh_memory_get_info(self->device, &info));
    if (info.bytes_buffers != self->bytes) bench_wrong("the figures do not add up");
    return 100 * (1 - (double)info.bytes_buffers / (double)info.bytes_reserved);
}

static void step(trace *self) {
    uint64_t bytes = any_size(self);
    while (self->count && self->bytes + bytes > self->budget) release_any(self);
    live *made = &self->list[self->count++];
    made->bytes = bytes;
    uint64_t before = bench_now_ns();
    bh_status status = bh_buffer_alloc(self->device, BH_U8, bytes, NULL, &made->buffer);
    bench_samples_add(&self->allocs, (double)(bench_now_ns() - before));
    if (status != BH_OK) bench_need(status, "bh_buffer_alloc");
    self->bytes += bytes;
    if (self->bytes <= self->most_bytes) return;
    self->most_bytes = self->bytes;
    self->lost = lost_now(self);
}

static void trace_end(trace *self) {
    while (self->count) release_any(self);
    uint64_t freed;
    BENCH_NEED(bh_memory_trim(self->device, 0, &freed));
    bh_memory_info info = BH_INIT(info);
    BENCH_NEED(bh_memory_get_info(self->device, &info));
    if (info.bytes_reserved) bench_wrong("memory is left after the last buffer is gone");
    bench_samples_free(&self->allocs);
    bench_samples_free(&self->frees);
    free(self->list);
}

/* The same calls where no chunks are made, with pauses in which this thread only looks at the
 * clock. */
static void run_small(bh_device device, size_t steps, double pause_ns, const char *alloc_name,
                      const char *free_name) {
    trace self = trace_new(device, SMALL_OCTAVES, SMALL_BUDGET_BYTES, steps);
    for (size_t i = 0; i < steps; i++) {
        step(&self);
        if (pause_ns == 0 || i % PAUSE_EVERY) continue;
        uint64_t until = bench_now_ns() + (uint64_t)pause_ns;
        while (bench_now_ns() < until) continue;
    }
    bench_figure(alloc_name, median_call(&self.allocs), "ns");
    bench_figure(free_name, median_call(&self.frees), "ns");
    trace_end(&self);
}

int main(int argc, char **argv) {
    bench_begin(argc, argv,
                "pool: buffers of 256 B to 64 MiB, as many of each power of two, "
                "allocated and freed at random around 4 GiB");
    size_t steps = bench_count(1000000);
    clock_ns = bench_clock_cost_ns();
    bench_note("medians without the %.0f ns that one reading of the clock costs", clock_ns);
    bh_device device;
    bh_device_options options = bench_options();
    BENCH_NEED(bh_device_open(&options, &device));
    bh_memory_info info = BH_INIT(info);
    BENCH_NEED(bh_memory_get_info(device, &info));
    uint64_t budget = info.limit / 4 < BUDGET_BYTES ? info.limit / 4 : BUDGET_BYTES;

    trace self = trace_new(device, OCTAVES, budget, steps);
    for (size_t i = 0; i < steps && self.count < MAX_LIVE; i++) {
        step(&self);
        if (self.bytes < budget - budget / 32 || i % 64) continue;
        double lost = lost_now(&self);
        if (lost > self.worst) self.worst = lost;
    }
    bh_device_counters counts = BH_INIT(counts);
    BENCH_NEED(bh_device_get_counters(device, &counts));
    BENCH_NEED(bh_memory_get_info(device, &info));
    double made = (double)counts.chunks_made, mean = bench_mean(&self.allocs);
    bench_target("pool.lost_at_peak", self.lost, "%", 15);
    bench_target("pool.lost_worst_near_peak", self.worst, "%", 15);
    bench_target("pool.alloc.p50", median_call(&self.allocs), "ns", 200);
    bench_target("pool.free.p50", median_call(&self.frees), "ns", 200);
    bench_figure("pool.alloc.mean", mean, "ns");
    bench_figure("pool.alloc.p99", bench_percentile(&self.allocs, 99), "ns");
    bench_figure("pool.free.p99", bench_percentile(&self.frees, 99), "ns");
    bench_figure("pool.live", (double)self.most_bytes / (1 << 20), "MiB");
    bench_figure("pool.chunks", info.chunks, "chunks");
    bench_figure("pool.chunks_made", 100 * made / (double)steps, "% of allocations");
    double chunk_ns = made ? mean * (double)steps / made : 0;
    bench_figure("pool.chunk", chunk_ns / 1000, "us");
    trace_end(&self);

    size_t fewer = steps / 10 + PAUSE_EVERY;
    run_small(device, fewer, 0, "pool.no_chunks.alloc.p50", "pool.no_chunks.free.p50");
    run_small(device, fewer, chunk_ns, "pool.pauses.alloc.p50", "pool.pauses.free.p50");
    BENCH_NEED(bh_device_close(device));
    return 0;
}
