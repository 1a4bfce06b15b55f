/* SPDX-License-Identifier: Apache-2.0 */
/* A device with very many live buffers: what a launch and a loss cost there, beside a device with
 * one. */
#include <signal.h>
#include <stdlib.h>

#include "support/bench.h"

enum { LOSSES = 9, USED = 64 };

/* Launches on `used` of the buffers, which lie far apart, in random order. */
static double submit_ns(const bench_kernels *kernels, const bh_buffer *buffers, uint32_t count,
                        uint32_t used, uint32_t launches) {
    bench_samples samples = bench_samples_new(launches);
    bh_ticket ticket;
    uint32_t at = 1;
    for (uint32_t i = 0; i < launches; i++) {
        at = at * 1664525u + 1013904223u;
        uint64_t began = bench_now_ns();
        bh_status status =
            bh_launch(kernels->word, BH_SHAPE(1, 1, 1, 1, 1, 1),
                      BH_ARGS(BH_INOUT(buffers[at % used * (count / used)]), 0u), NULL, &ticket);
        uint64_t ended = bench_now_ns();
        bench_need(status, "bh_launch");
        bench_samples_add(&samples, (double)(ended - began));
        if (i % 64 == 63) BENCH_NEED(bh_wait(ticket, 60 * BENCH_S));
    }
    double median = bench_percentile(&samples, 50);
    bench_samples_free(&samples);
    return median;
}

/* Milliseconds from the death of an idle worker to the end of the first kernel on its successor. */
static double loss_ms(bh_device device, const bench_kernels *kernels, bh_buffer words,
                      bool standby) {
    bh_health before = BH_INIT(before), after = BH_INIT(after);
    if (standby) BENCH_NEED(bh_device_wait_standby(device, 60 * BENCH_S));
    BENCH_NEED(bh_device_get_health(device, &before));
    uint64_t began = bench_now_ns();
    if (kill(before.worker_pid, SIGKILL) != 0) bench_wrong("the worker cannot be killed");
    do {
        bh_ticket ticket;
        BENCH_NEED(bh_launch(kernels->word, BH_SHAPE(1, 1, 1, 1, 1, 1), BH_ARGS(BH_OUT(words), 0u),
                             NULL, &ticket));
        bh_status status = bh_wait(ticket, 60 * BENCH_S);
        if (status != BH_E_LOST) bench_need(status, "the next kernel");
        BENCH_NEED(bh_device_get_health(device, &after));
    } while (after.generation == before.generation);
    return (double)(bench_now_ns() - began) / 1e6;
}

typedef struct figures {
    double submit, submit_any, loss;
} figures;

static double median_loss(bh_device device, const bench_kernels *kernels, bh_buffer words,
                          bool standby) {
    bench_samples samples = bench_samples_new(LOSSES);
    for (int i = 0; i < LOSSES; i++)
        bench_samples_add(&samples, loss_ms(device, kernels, words, standby));
    double median = bench_percentile(&samples, 50);
    bench_samples_free(&samples);
    return median;
}

static figures measure(uint32_t count, bool standby) {
    bh_device device;
    bh_device_options options = bench_options();
    if (!standby) options.flags |= BH_DEVICE_NO_STANDBY;
    BENCH_NEED(bh_device_open(&options, &device));
    bench_kernels kernels = bench_kernels_load(device);
    bh_buffer *buffers = calloc(count, sizeof *buffers);
    if (!buffers) bench_wrong("no memory for %u handles", count);
    for (uint32_t i = 0; i < count; i++) buffers[i] = bench_buffer(device, BH_U32, 16);
    figures all = {.submit =
                       submit_ns(&kernels, buffers, count, count < USED ? count : USED, 20000),
                   .submit_any = submit_ns(&kernels, buffers, count, count, 20000)};
    all.loss = median_loss(device, &kernels, buffers[count / 2], standby);
    BENCH_NEED(bh_device_close(device));
    free(buffers);
    return all;
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "buffers: submitting and losing a worker with many live buffers");
    uint32_t many = (uint32_t)bench_count(1000000);
    figures one = measure(1, true), lots = measure(many, true);
    figures one_cold = measure(1, false), lots_cold = measure(many, false);
    bench_note("many: %u buffers", many);
    bench_figure("buffers.submit_one.p50", one.submit, "ns");
    bench_figure("buffers.submit_many.p50", lots.submit, "ns");
    bench_target("buffers.submit_many_to_one", lots.submit / one.submit, "ratio", 1.5);
    bench_figure("buffers.submit_any_of_many.p50", lots.submit_any, "ns");
    bench_figure("buffers.loss_one", one.loss, "ms");
    bench_figure("buffers.loss_many", lots.loss, "ms");
    bench_figure("buffers.cold_loss_one", one_cold.loss, "ms");
    bench_cpu_target("buffers.cold_loss_many", lots_cold.loss, "ms", 20);
    return 0;
}
