/* SPDX-License-Identifier: Apache-2.0 */
/* Loading the kernels, what they should compute, and buffers for them. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "kernel_source.h"

bench_kernels bench_kernels_load(bh_device device) {
    bench_kernels kernels;
    BENCH_NEED(
        bh_module_load(device, bench_kernel_source, strlen(bench_kernel_source), &kernels.module));
    BENCH_NEED(bh_kernel_get(kernels.module, "put", &kernels.put));
    BENCH_NEED(bh_kernel_get(kernels.module, "word", &kernels.word));
    BENCH_NEED(bh_kernel_get(kernels.module, "fill", &kernels.fill));
    BENCH_NEED(bh_kernel_get(kernels.module, "last", &kernels.last));
    BENCH_NEED(bh_kernel_get(kernels.module, "mix", &kernels.mix));
    BENCH_NEED(bh_kernel_get(kernels.module, "endless", &kernels.endless));
    BENCH_NEED(bh_kernel_get(kernels.module, "wild", &kernels.wild));
    BENCH_NEED(bh_kernel_get(kernels.module, "halt", &kernels.trap));
    return kernels;
}

uint32_t bench_mix(uint32_t thread, uint32_t rounds) {
    uint32_t value = thread, carry = 1;
    for (uint32_t round = 0; round < rounds; round++) {
        value = value * 1664525u + 1013904223u;
        value ^= value >> 15;
        value += carry;
        carry = value << 3;
    }
    return value;
}

bh_buffer bench_buffer(bh_device device, bh_type type, uint64_t count) {
    bh_buffer buffer;
    BENCH_NEED(bh_buffer_alloc(device, type, count, NULL, &buffer));
    return buffer;
}

uint32_t bench_pattern(uint32_t index) {
    return index * 2654435761u ^ 0x5bd1e995u;
}

void bench_pattern_write(bh_buffer buffer, uint32_t count) {
    uint32_t *host = malloc(count * sizeof *host);
    if (!host) bench_wrong("no memory for %u elements", count);
    for (uint32_t i = 0; i < count; i++) host[i] = bench_pattern(i);
    BENCH_NEED(bh_buffer_write(buffer, 0, host, count * sizeof *host));
    free(host);
}

bh_buffer bench_patterned(bh_device device, uint32_t count) {
    bh_buffer buffer = bench_buffer(device, BH_U32, count);
    bench_pattern_write(buffer, count);
    return buffer;
}

size_t bench_pattern_damage(bh_buffer buffer, uint32_t count) {
    uint32_t *host = malloc(count * sizeof *host);
    if (!host) bench_wrong("no memory for %u elements", count);
    BENCH_NEED(bh_buffer_read(buffer, 0, host, count * sizeof *host));
    size_t damaged = 0;
    for (uint32_t i = 0; i < count; i++) damaged += host[i] != bench_pattern(i);
    free(host);
    return damaged;
}
