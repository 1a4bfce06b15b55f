/* SPDX-License-Identifier: Apache-2.0 */
/* What the unloading of a module costs the launches of others: on a GPU, each lane that ran it
 * makes its chain of launches anew. */
#include "support/bench.h"

enum { LANES = 4, BURST = 64 /* launches, so that they run as a chain */ };

typedef struct bench {
    bh_device device;
    bh_lane lanes[LANES];
    bh_buffer words[LANES];
    bench_kernels kernels;
} bench;

/* From the first launch of a burst to the last one's end, in ns. */
static double burst(const bench *self, int lane, bh_kernel word) {
    bh_launch_options options = BH_INIT(options);
    options.lane = self->lanes[lane];
    bh_ticket ticket;
    uint64_t began = bench_now_ns();
    for (uint32_t i = 0; i < BURST; i++)
        BENCH_NEED(bh_launch(word, BH_SHAPE(1, 1, 1, 1, 1, 1),
                             BH_ARGS(BH_INOUT(self->words[lane]), i), &options, &ticket));
    BENCH_NEED(bh_wait(ticket, 30 * BENCH_S));
    return (double)(bench_now_ns() - began);
}

/* A module comes, runs on all lanes, and goes. */
static void come_and_go(const bench *self) {
    bench_kernels guest = bench_kernels_load(self->device);
    for (int lane = 0; lane < LANES; lane++) (void)burst(self, lane, guest.word);
    BENCH_NEED(bh_module_release(guest.module));
    BENCH_NEED(bh_device_sync(self->device, 30 * BENCH_S));
}

static void open_all(bench *self) {
    bh_device_options options = bench_options();
    BENCH_NEED(bh_device_open(&options, &self->device));
    self->kernels = bench_kernels_load(self->device);
    for (int lane = 0; lane < LANES; lane++) {
        BENCH_NEED(bh_lane_open(self->device, NULL, &self->lanes[lane]));
        self->words[lane] = bench_buffer(self->device, BH_U32, BURST);
        for (int i = 0; i < 16; i++) (void)burst(self, lane, self->kernels.word);
    }
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "unload: launches of one module after another was unloaded");
    size_t count = bench_count(50);
    bench self;
    open_all(&self);
    bench_samples first = bench_samples_new(count * LANES),
                  later = bench_samples_new(count * LANES);
    for (size_t i = 0; i < count; i++) {
        come_and_go(&self);
        for (int lane = 0; lane < LANES; lane++) {
            bench_samples_add(&first, burst(&self, lane, self.kernels.word));
            bench_samples_add(&later, burst(&self, lane, self.kernels.word));
        }
    }
    double usual = bench_percentile(&later, 50);
    bench_figure("unload.later_burst.p50", usual / 1e3, "us");
    bench_figure("unload.first_burst.p50", bench_percentile(&first, 50) / 1e3, "us");
    bench_target("unload.cost.p50", (bench_percentile(&first, 50) - usual) / 1e6, "ms", 1);
    bench_figure("unload.cost.p99", (bench_percentile(&first, 99) - usual) / 1e6, "ms");
    BENCH_NEED(bh_device_close(self.device));
    return 0;
}
