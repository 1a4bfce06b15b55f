/* SPDX-License-Identifier: Apache-2.0 */
/* What bh_launch costs its caller: four arguments that change every time, worker awake and
 * asleep. */
#include <stdlib.h>

#include "support/bench.h"

enum {
    BATCH = 896, /* the queue has 1024 places: no launch waits for room */
    GROUP = 16,  /* launches between two readings of the clock */
    OUTPUTS = 8
};

typedef struct output_set {
    bh_buffer buffers[OUTPUTS];
    uint32_t length;
} output_set;

static output_set outputs_new(bh_device device, size_t launches) {
    output_set set = {.length = (uint32_t)(launches / OUTPUTS + 1)};
    for (int i = 0; i < OUTPUTS; i++) {
        set.buffers[i] = bench_buffer(device, BH_U32, set.length);
        BENCH_NEED(bh_buffer_fill(set.buffers[i], 0, set.length * 4ull, "\0", 1));
    }
    return set;
}

static uint32_t salt_of(uint32_t number) {
    return number * 40503u + 1;
}

static inline void launch(const bench_kernels *kernels, const output_set *set, uint32_t number,
                          bh_ticket *ticket) {
    bh_status status = bh_launch(kernels->put, BH_SHAPE(1, 1, 1, 1, 1, 1),
                                 BH_ARGS(BH_INOUT(set->buffers[number % OUTPUTS]), number / OUTPUTS,
                                         number, salt_of(number)),
                                 NULL, ticket);
    if (status != BH_OK) bench_need(status, "bh_launch");
}

static void check(const output_set *set, uint32_t launches) {
    uint32_t *host = malloc(set->length * sizeof *host);
    if (!host) bench_wrong("no memory for %u words", set->length);
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        BENCH_NEED(bh_buffer_read(set->buffers[i], 0, host, set->length * sizeof *host));
        for (uint32_t number = i; number < launches; number += OUTPUTS) {
            if (host[number / OUTPUTS] != (number ^ salt_of(number)))
                bench_wrong("launch %u left 0x%x, not 0x%x", number, host[number / OUTPUTS],
                            number ^ salt_of(number));
        }
    }
    free(host);
}

/* Launches one batch, a sample for each group. */
static void batch(const bench_kernels *kernels, const output_set *set, uint32_t *number,
                  bench_samples *samples, uint64_t *total_ns) {
    bh_ticket ticket;
    uint64_t began = bench_now_ns(), before = began, after = began;
    for (int group = 0; group < BATCH / GROUP; group++) {
        for (int i = 0; i < GROUP; i++) launch(kernels, set, (*number)++, &ticket);
        after = bench_now_ns();
        if (samples) bench_samples_add(samples, (double)(after - before) / GROUP);
        before = after;
    }
    *total_ns += after - began;
    BENCH_NEED(bh_wait(ticket, 30 * BENCH_S));
}

static void worker_awake(size_t batches) {
    bh_device device;
    bh_device_options options = bench_options();
    options.worker_spin_ns = options.wait_spin_ns = 10 * BENCH_S;
    BENCH_NEED(bh_device_open(&options, &device));
    bench_kernels kernels = bench_kernels_load(device);
    output_set set = outputs_new(device, (2 + 2 * batches) * BATCH);
    bench_samples beside = bench_samples_new(batches * (BATCH / GROUP));
    bench_samples behind = bench_samples_new(batches * (BATCH / GROUP));
    bh_buffer stamps = bench_buffer(device, BH_U64, 2);
    uint64_t warm_ns = 0, beside_ns = 0, behind_ns = 0;
    uint32_t number = 0;

    for (int i = 0; i < 2; i++) batch(&kernels, &set, &number, NULL, &warm_ns);
    for (size_t i = 0; i < batches; i++) batch(&kernels, &set, &number, &beside, &beside_ns);
    bench_cpu_target("submit.awake.p50", bench_percentile(&beside, 50), "ns", 150);
    bench_figure("submit.awake.mean", (double)beside_ns / (double)(batches * BATCH), "ns");
    bench_figure("submit.awake.p99", bench_percentile(&beside, 99), "ns");

    /* The worker is busy with one long kernel and leaves the queue alone meanwhile. */
    for (size_t i = 0; i < batches; i++) {
        BENCH_NEED(bh_launch(kernels.last, BH_SHAPE(1, 1, 1, 1, 1, 1),
                             BH_ARGS(BH_INOUT(stamps), 0u, (uint64_t)(2 * BENCH_MS)), NULL, NULL));
        batch(&kernels, &set, &number, &behind, &behind_ns);
    }
    bench_figure("submit.behind_long_kernel.p50", bench_percentile(&behind, 50), "ns");
    check(&set, number);
    bench_samples_free(&beside);
    bench_samples_free(&behind);
    BENCH_NEED(bh_device_close(device));
}

static void worker_asleep(size_t launches) {
    bh_device device;
    bh_device_options options = bench_options();
    options.worker_spin_ns = 1;
    BENCH_NEED(bh_device_open(&options, &device));
    bench_kernels kernels = bench_kernels_load(device);
    output_set set = outputs_new(device, launches);
    bench_samples samples = bench_samples_new(launches);
    for (uint32_t number = 0; number < launches; number++) {
        bench_sleep_ns(200 * BENCH_US);
        bh_ticket ticket;
        uint64_t before = bench_now_ns();
        launch(&kernels, &set, number, &ticket);
        bench_samples_add(&samples, (double)(bench_now_ns() - before));
        BENCH_NEED(bh_wait(ticket, 30 * BENCH_S));
    }
    bench_spread("submit.asleep", &samples, 1, "ns");
    check(&set, (uint32_t)launches);
    bench_samples_free(&samples);
    BENCH_NEED(bh_device_close(device));
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "submit: bh_launch with four arguments that change every time");
    bench_note("one reading of the clock costs %.0f ns; %d launches share one, asleep one each",
               bench_clock_cost_ns(), GROUP);
    bench_figure("submit.ping_pong.p50", bench_ping_pong_ns(20000), "ns");
    worker_awake(bench_count(100));
    worker_asleep(bench_count(100) * 10);
    return 0;
}
