/* SPDX-License-Identifier: Apache-2.0 */
/* How much gets through: launches a second, bytes a second beside memcpy, instructions a second. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/bench.h"

static void launches(bh_device device, const bench_kernels *kernels, uint32_t count) {
    enum { OUTPUTS = 4 };
    bh_buffer outputs[OUTPUTS];
    uint32_t length = count / OUTPUTS + 1;
    for (int i = 0; i < OUTPUTS; i++) outputs[i] = bench_buffer(device, BH_U32, length);
    bench_samples samples = bench_samples_new(3);
    for (uint32_t round = 0; round < 3; round++) {
        bh_ticket ticket;
        uint64_t began = bench_now_ns();
        for (uint32_t i = 0; i < count; i++) {
            bh_status status = bh_launch(
                kernels->put, BH_SHAPE(1, 1, 1, 1, 1, 1),
                BH_ARGS(BH_INOUT(outputs[i % OUTPUTS]), i / OUTPUTS, i, round), NULL, &ticket);
            if (status != BH_OK) bench_need(status, "bh_launch");
        }
        BENCH_NEED(bh_wait(ticket, 60 * BENCH_S));
        bench_samples_add(&samples, (double)(bench_now_ns() - began) / count);
        uint32_t *host = malloc(length * sizeof *host);
        if (!host) bench_wrong("no memory for %u words", length);
        for (uint32_t output = 0; output < OUTPUTS; output++) {
            BENCH_NEED(bh_buffer_read(outputs[output], 0, host, length * sizeof *host));
            for (uint32_t i = output; i < count; i += OUTPUTS) {
                if (host[i / OUTPUTS] != (i ^ round))
                    bench_wrong("launch %u left %u", i, host[i / OUTPUTS]);
            }
        }
        free(host);
    }
    double each = bench_percentile(&samples, 50);
    bench_note("%u launches of a one-word kernel through a queue of 1024", count);
    bench_figure("throughput.launch", each, "ns");
    bench_figure("throughput.launches", 1e6 / each, "k/s");
    bench_samples_free(&samples);
    for (int i = 0; i < OUTPUTS; i++) BENCH_NEED(bh_buffer_release(outputs[i]));
}

static double rate(uint64_t bytes, bench_samples *samples) {
    return (double)bytes / bench_percentile(samples, 50);
}

static void copies(bh_device device, uint64_t bytes, const char *label, size_t rounds) {
    uint8_t *source = malloc(bytes), *target = malloc(bytes);
    if (!source || !target) bench_wrong("no memory for copies");
    for (uint64_t i = 0; i < bytes; i++) source[i] = (uint8_t)(i * 131 + (i >> 12));
    bh_buffer buffer = bench_buffer(device, BH_U8, bytes);
    bench_samples write = bench_samples_new(rounds), read = bench_samples_new(rounds),
                  copy = bench_samples_new(rounds);
    for (size_t i = 0; i <= rounds; i++) {
        memset(target, 0, bytes);
        source[0] = (uint8_t)i;
        uint64_t t0 = bench_now_ns();
        BENCH_NEED(bh_buffer_write(buffer, 0, source, bytes));
        uint64_t t1 = bench_now_ns();
        BENCH_NEED(bh_buffer_read(buffer, 0, target, bytes));
        uint64_t t2 = bench_now_ns();
        if (memcmp(source, target, bytes) != 0) bench_wrong("what came back is not what was sent");
        uint64_t t3 = bench_now_ns();
        memcpy(target, source, bytes);
        __asm__ volatile("" : : "r"(target) : "memory"); /* the copy is not to be left out */
        uint64_t t4 = bench_now_ns();
        if (i == 0) continue; /* memory was touched for the first time */
        bench_samples_add(&write, (double)(t1 - t0));
        bench_samples_add(&read, (double)(t2 - t1));
        bench_samples_add(&copy, (double)(t4 - t3));
    }
    char name[64];
    snprintf(name, sizeof name, "throughput.write_%s", label);
    bench_figure(name, rate(bytes, &write), "GB/s");
    snprintf(name, sizeof name, "throughput.read_%s", label);
    bench_figure(name, rate(bytes, &read), "GB/s");
    snprintf(name, sizeof name, "throughput.memcpy_%s", label);
    bench_figure(name, rate(bytes, &copy), "GB/s");
    snprintf(name, sizeof name, "throughput.write_to_memcpy_%s", label);
    bench_figure(name, rate(bytes, &write) / rate(bytes, &copy), "ratio");
    snprintf(name, sizeof name, "throughput.read_to_memcpy_%s", label);
    bench_figure(name, rate(bytes, &read) / rate(bytes, &copy), "ratio");
    bench_samples_free(&write);
    bench_samples_free(&read);
    bench_samples_free(&copy);
    BENCH_NEED(bh_buffer_release(buffer));
    free(source);
    free(target);
}

static void small_copies(bh_device device, size_t rounds) {
    bh_buffer buffer = bench_buffer(device, BH_U8, 4096);
    uint8_t sent[4096], back[4096];
    bench_samples write = bench_samples_new(rounds), read = bench_samples_new(rounds);
    for (size_t i = 0; i < rounds; i++) {
        memset(sent, (int)(i & 0xff), sizeof sent);
        uint64_t t0 = bench_now_ns();
        BENCH_NEED(bh_buffer_write(buffer, 0, sent, sizeof sent));
        uint64_t t1 = bench_now_ns();
        BENCH_NEED(bh_buffer_read(buffer, 0, back, sizeof back));
        uint64_t t2 = bench_now_ns();
        if (memcmp(sent, back, sizeof sent) != 0) bench_wrong("4 KiB came back changed");
        bench_samples_add(&write, (double)(t1 - t0));
        bench_samples_add(&read, (double)(t2 - t1));
    }
    bench_figure("throughput.write_4KiB.p50", bench_percentile(&write, 50) / 1e3, "us");
    bench_figure("throughput.read_4KiB.p50", bench_percentile(&read, 50) / 1e3, "us");
    bench_samples_free(&write);
    bench_samples_free(&read);
    BENCH_NEED(bh_buffer_release(buffer));
}

static void instructions(bh_device device, const bench_kernels *kernels, const char *label,
                         uint32_t blocks, uint32_t threads, uint32_t rounds) {
    uint32_t count = blocks * threads;
    bh_buffer output = bench_buffer(device, BH_U32, count);
    uint32_t *host = malloc(count * sizeof *host);
    if (!host) bench_wrong("no memory for %u words", count);
    bench_samples samples = bench_samples_new(5);
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t these = rounds + i;
        bh_ticket ticket;
        uint64_t began = bench_now_ns();
        BENCH_NEED(bh_launch(kernels->mix, BH_SHAPE(blocks, 1, 1, threads, 1, 1),
                             BH_ARGS(BH_OUT(output), these), NULL, &ticket));
        BENCH_NEED(bh_wait(ticket, 60 * BENCH_S));
        double took = (double)(bench_now_ns() - began);
        double executed = (double)count * (BENCH_MIX_BESIDES + (double)BENCH_MIX_PER_ROUND * these);
        bench_samples_add(&samples, executed / took * 1e3);
        BENCH_NEED(bh_buffer_read(output, 0, host, count * sizeof *host));
        for (uint32_t thread = 0; thread < count; thread += 37) {
            if (host[thread] != bench_mix(thread, these))
                bench_wrong("thread %u left %u", thread, host[thread]);
        }
    }
    char name[64];
    snprintf(name, sizeof name, "throughput.instructions_%s", label);
    bench_figure(name, bench_percentile(&samples, 50), "M/s");
    bench_samples_free(&samples);
    free(host);
    BENCH_NEED(bh_buffer_release(output));
}

int main(int argc, char **argv) {
    bench_begin(argc, argv,
                "throughput: launches, copies beside memcpy, instructions of all threads");
    bh_device device;
    bh_device_options options = bench_options();
    BENCH_NEED(bh_device_open(&options, &device));
    bench_kernels kernels = bench_kernels_load(device);
    launches(device, &kernels, (uint32_t)bench_count(100000));
    copies(device, 64 << 20, "64MiB", 7);
    copies(device, 1 << 20, "1MiB", 101);
    small_copies(device, 2000);
    instructions(device, &kernels, "1_thread", 1, 1, 100000);
    instructions(device, &kernels, "1_warp", 1, 32, 50000);
    instructions(device, &kernels, "full_grid", 64, 256, 500);
    BENCH_NEED(bh_device_close(device));
    return 0;
}
