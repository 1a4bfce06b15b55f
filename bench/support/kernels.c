/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that benchmarks time or crash, in PTX, and what they should compute. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const char source[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"

    ".visible .entry put(.param .u64 out, .param .u32 index, .param .u32 value, .param .u32 salt)\n"
    "{\n"
    "    .reg .b32 %r<4>;\n"
    "    .reg .b64 %rd<4>;\n"
    "    ld.param.u64 %rd1, [out];\n"
    "    ld.param.u32 %r1, [index];\n"
    "    ld.param.u32 %r2, [value];\n"
    "    ld.param.u32 %r3, [salt];\n"
    "    xor.b32 %r2, %r2, %r3;\n"
    "    mul.wide.u32 %rd2, %r1, 4;\n"
    "    add.u64 %rd3, %rd1, %rd2;\n"
    "    st.global.u32 [%rd3], %r2;\n"
    "    ret;\n"
    "}\n"

    ".visible .entry word(.param .u64 out, .param .u32 index)\n"
    "{\n"
    "    .reg .b32 %r<3>;\n"
    "    .reg .b64 %rd<4>;\n"
    "    ld.param.u64 %rd1, [out];\n"
    "    ld.param.u32 %r1, [index];\n"
    "    add.u32 %r2, %r1, 1;\n"
    "    mul.wide.u32 %rd2, %r1, 4;\n"
    "    add.u64 %rd3, %rd1, %rd2;\n"
    "    st.global.u32 [%rd3], %r2;\n"
    "    ret;\n"
    "}\n"

    ".visible .entry fill(.param .u64 out, .param .u32 value, .param .u32 count)\n"
    "{\n"
    "    .reg .pred %p<2>;\n"
    "    .reg .b32 %r<8>;\n"
    "    .reg .b64 %rd<4>;\n"
    "    mov.u32 %r1, %ctaid.x;\n"
    "    mov.u32 %r2, %ntid.x;\n"
    "    mov.u32 %r3, %tid.x;\n"
    "    mad.lo.u32 %r4, %r1, %r2, %r3;\n"
    "    ld.param.u32 %r5, [count];\n"
    "    setp.ge.u32 %p1, %r4, %r5;\n"
    "    @%p1 bra DONE;\n"
    "    ld.param.u64 %rd1, [out];\n"
    "    ld.param.u32 %r6, [value];\n"
    "    mul.wide.u32 %rd2, %r4, 4;\n"
    "    add.u64 %rd3, %rd1, %rd2;\n"
    "    st.global.u32 [%rd3], %r6;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n"

    ".visible .entry last(.param .u64 out, .param .u32 index, .param .u64 ns)\n"
    "{\n"
    "    .reg .pred %p<2>;\n"
    "    .reg .b32 %r<2>;\n"
    "    .reg .b64 %rd<8>;\n"
    "    ld.param.u64 %rd1, [out];\n"
    "    ld.param.u32 %r1, [index];\n"
    "    ld.param.u64 %rd2, [ns];\n"
    "    mov.u64 %rd3, %globaltimer;\n"
    "AGAIN:\n"
    "    mov.u64 %rd4, %globaltimer;\n"
    "    sub.u64 %rd5, %rd4, %rd3;\n"
    "    setp.lt.u64 %p1, %rd5, %rd2;\n"
    "    @%p1 bra AGAIN;\n"
    "    mul.wide.u32 %rd6, %r1, 16;\n"
    "    add.u64 %rd7, %rd1, %rd6;\n"
    "    st.global.u64 [%rd7], %rd3;\n"
    "    st.global.u64 [%rd7+8], %rd4;\n"
    "    ret;\n"
    "}\n"

    ".visible .entry mix(.param .u64 out, .param .u32 rounds)\n"
    "{\n"
    "    .reg .pred %p<2>;\n"
    "    .reg .b32 %r<10>;\n"
    "    .reg .b64 %rd<4>;\n"
    "    mov.u32 %r1, %ctaid.x;\n"
    "    mov.u32 %r2, %ntid.x;\n"
    "    mov.u32 %r3, %tid.x;\n"
    "    mad.lo.u32 %r4, %r1, %r2, %r3;\n"
    "    ld.param.u64 %rd1, [out];\n"
    "    ld.param.u32 %r5, [rounds];\n"
    "    mov.u32 %r6, %r4;\n"
    "    mov.u32 %r7, 0;\n"
    "    mov.u32 %r9, 1;\n"
    "AGAIN:\n"
    "    mad.lo.u32 %r6, %r6, 1664525, 1013904223;\n"
    "    shr.u32 %r8, %r6, 15;\n"
    "    xor.b32 %r6, %r6, %r8;\n"
    "    add.u32 %r6, %r6, %r9;\n"
    "    shl.b32 %r9, %r6, 3;\n"
    "    add.u32 %r7, %r7, 1;\n"
    "    setp.lt.u32 %p1, %r7, %r5;\n"
    "    @%p1 bra AGAIN;\n"
    "    mul.wide.u32 %rd2, %r4, 4;\n"
    "    add.u64 %rd3, %rd1, %rd2;\n"
    "    st.global.u32 [%rd3], %r6;\n"
    "    ret;\n"
    "}\n"

    ".visible .entry endless(.param .u64 out)\n"
    "{\n"
    "    .reg .b32 %r<2>;\n"
    "    .reg .b64 %rd<2>;\n"
    "    ld.param.u64 %rd1, [out];\n"
    "AGAIN:\n"
    "    ld.volatile.global.u32 %r1, [%rd1];\n"
    "    add.u32 %r1, %r1, 1;\n"
    "    st.volatile.global.u32 [%rd1], %r1;\n"
    "    bra AGAIN;\n"
    "}\n"

    ".visible .entry wild(.param .u64 out)\n"
    "{\n"
    "    .reg .b32 %r<2>;\n"
    "    .reg .b64 %rd<3>;\n"
    "    ld.param.u64 %rd1, [out];\n"
    "    mov.u32 %r1, 7;\n"
    "    add.u64 %rd2, %rd1, 17179869184;\n"
    "    st.global.u32 [%rd2], %r1;\n"
    "    ret;\n"
    "}\n"

    ".visible .entry halt(.param .u64 out)\n"
    "{\n"
    "    .reg .b32 %r<2>;\n"
    "    .reg .b64 %rd<2>;\n"
    "    ld.param.u64 %rd1, [out];\n"
    "    mov.u32 %r1, 9;\n"
    "    st.global.u32 [%rd1], %r1;\n"
    "    trap;\n"
    "}\n";

bench_kernels bench_kernels_load(bh_device device) {
    bench_kernels kernels;
    BENCH_NEED(bh_module_load(device, source, strlen(source), &kernels.module));
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
    BENCH_NEED(bh_buffer_alloc(device, type, count, &buffer));
    return buffer;
}

uint32_t bench_pattern(uint32_t index) {
    return index * 2654435761u ^ 0x5bd1e995u;
}

bh_buffer bench_patterned(bh_device device, uint32_t count) {
    bh_buffer buffer = bench_buffer(device, BH_U32, count);
    uint32_t *host = malloc(count * sizeof *host);
    if (!host) bench_wrong("no memory for %u elements", count);
    for (uint32_t i = 0; i < count; i++) host[i] = bench_pattern(i);
    BENCH_NEED(bh_buffer_write(buffer, 0, host, count * sizeof *host));
    free(host);
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
