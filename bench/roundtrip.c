/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that writes one word, from submit to known-done, beside what the machine itself needs
 * for a word to travel to another process and back. */
#include <stdlib.h>

#include "support/bench.h"

static void check(bh_buffer words, uint32_t count) {
    uint32_t *host = malloc(count * sizeof *host);
    if (!host) bench_wrong("no memory for %u words", count);
    BENCH_NEED(bh_buffer_read(words, 0, host, count * sizeof *host));
    for (uint32_t i = 0; i < count; i++) {
        if (host[i] != i + 1) bench_wrong("launch %u left %u", i, host[i]);
    }
    free(host);
}

static void measure(const bh_device_options *options, uint32_t count, bench_samples *samples) {
    bh_device device;
    BENCH_NEED(bh_device_open(options, &device));
    bench_kernels kernels = bench_kernels_load(device);
    bh_buffer words = bench_buffer(device, BH_U32, count);
    uint32_t warm = count / 20;
    for (uint32_t i = 0; i < count; i++) {
        bh_ticket ticket;
        uint64_t before = bench_now_ns();
        bh_status status = bh_launch(kernels.word, BH_SHAPE(1, 1, 1, 1, 1, 1),
                                     BH_ARGS(BH_INOUT(words), i), NULL, &ticket);
        if (status == BH_OK) status = bh_wait(ticket, 30 * BENCH_S);
        uint64_t after = bench_now_ns();
        bench_need(status, "a launch and its wait");
        if (i >= warm) bench_samples_add(samples, (double)(after - before));
    }
    check(words, count);
    BENCH_NEED(bh_device_close(device));
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "roundtrip: a one-word kernel, submit to known-done");
    uint32_t count = (uint32_t)bench_count(50000);
    double floor_ns = bench_ping_pong_ns(count);
    bench_samples samples = bench_samples_new(count);

    bh_device_options options = bench_options();
    options.wait_spin_ns = options.worker_spin_ns = 10 * BENCH_S;
    measure(&options, count, &samples);
    double median = bench_percentile(&samples, 50);
    bench_cpu_target("roundtrip.awake.p50", median / 1e3, "us", 5);
    bench_figure("roundtrip.awake.p99", bench_percentile(&samples, 99) / 1e3, "us");
    bench_figure("roundtrip.ping_pong.p50", floor_ns / 1e3, "us");
    bench_figure("roundtrip.awake_to_ping_pong", median / floor_ns, "ratio");

    samples.count = 0;
    options.wait_spin_ns = options.worker_spin_ns = 1;
    measure(&options, count / 10, &samples);
    bench_spread("roundtrip.asleep", &samples, 1e3, "us");

    samples.count = 0;
    options = bench_options();
    measure(&options, count / 10, &samples);
    bench_spread("roundtrip.default_spin", &samples, 1e3, "us");
    bench_samples_free(&samples);
    return 0;
}
