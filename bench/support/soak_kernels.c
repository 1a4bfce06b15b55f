/* SPDX-License-Identifier: Apache-2.0 */
/* The soak's kernels, in PTX that every device takes. */
#include <string.h>

#include "soak.h"

const char soak_kernel_source[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"

    ".visible .entry work(.param .u64 p, .param .u32 k, .param .u32 n, .param .u32 rounds)\n"
    "{\n"
    "    .reg .pred %p<3>;\n"
    "    .reg .b32 %r<12>;\n"
    "    .reg .b64 %rd<4>;\n"
    "    mov.u32 %r1, %ctaid.x;\n"
    "    mov.u32 %r2, %ntid.x;\n"
    "    mov.u32 %r3, %tid.x;\n"
    "    mad.lo.u32 %r4, %r1, %r2, %r3;\n"
    "    ld.param.u32 %r5, [n];\n"
    "    setp.ge.u32 %p1, %r4, %r5;\n"
    "    @%p1 bra DONE;\n"
    "    ld.param.u64 %rd1, [p];\n"
    "    ld.param.u32 %r6, [k];\n"
    "    ld.param.u32 %r7, [rounds];\n"
    "    mul.wide.u32 %rd2, %r4, 4;\n"
    "    add.u64 %rd3, %rd1, %rd2;\n"
    "    ld.global.u32 %r8, [%rd3];\n"
    "    mov.u32 %r9, 0;\n"
    "AGAIN:\n"
    "    mad.lo.u32 %r8, %r8, 22695477, %r6;\n"
    "    add.u32 %r9, %r9, 1;\n"
    "    setp.lt.u32 %p2, %r9, %r7;\n"
    "    @%p2 bra AGAIN;\n"
    "    st.global.u32 [%rd3], %r8;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n"

    ".visible .entry blend(.param .u64 p, .param .u64 a, .param .u32 k, .param .u32 n)\n"
    "{\n"
    "    .reg .pred %p<2>;\n"
    "    .reg .b32 %r<10>;\n"
    "    .reg .b64 %rd<6>;\n"
    "    mov.u32 %r1, %ctaid.x;\n"
    "    mov.u32 %r2, %ntid.x;\n"
    "    mov.u32 %r3, %tid.x;\n"
    "    mad.lo.u32 %r4, %r1, %r2, %r3;\n"
    "    ld.param.u32 %r5, [n];\n"
    "    setp.ge.u32 %p1, %r4, %r5;\n"
    "    @%p1 bra DONE;\n"
    "    ld.param.u64 %rd1, [p];\n"
    "    ld.param.u64 %rd2, [a];\n"
    "    ld.param.u32 %r6, [k];\n"
    "    mul.wide.u32 %rd3, %r4, 4;\n"
    "    add.u64 %rd4, %rd1, %rd3;\n"
    "    add.u64 %rd5, %rd2, %rd3;\n"
    "    ld.global.u32 %r7, [%rd5];\n"
    "    mul.lo.u32 %r8, %r7, 1664525;\n"
    "    xor.b32 %r9, %r8, %r6;\n"
    "    st.global.u32 [%rd4], %r9;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n"

    /* Each of these has written a part of its buffer when it goes wrong. */
    ".visible .entry wild(.param .u64 p)\n"
    "{\n"
    "    .reg .b32 %r<2>;\n"
    "    .reg .b64 %rd<3>;\n"
    "    ld.param.u64 %rd1, [p];\n"
    "    mov.u32 %r1, 7;\n"
    "    st.global.u32 [%rd1], %r1;\n"
    "    add.u64 %rd2, %rd1, 17179869184;\n"
    "    st.global.u32 [%rd2], %r1;\n"
    "    ret;\n"
    "}\n"

    ".visible .entry halt(.param .u64 p)\n"
    "{\n"
    "    .reg .b32 %r<2>;\n"
    "    .reg .b64 %rd<2>;\n"
    "    ld.param.u64 %rd1, [p];\n"
    "    mov.u32 %r1, 9;\n"
    "    st.global.u32 [%rd1], %r1;\n"
    "    trap;\n"
    "}\n"

    ".visible .entry endless(.param .u64 p)\n"
    "{\n"
    "    .reg .b32 %r<2>;\n"
    "    .reg .b64 %rd<2>;\n"
    "    ld.param.u64 %rd1, [p];\n"
    "AGAIN:\n"
    "    ld.volatile.global.u32 %r1, [%rd1];\n"
    "    add.u32 %r1, %r1, 1;\n"
    "    st.volatile.global.u32 [%rd1], %r1;\n"
    "    bra AGAIN;\n"
    "}\n";

bool soak_kernels_load(bh_device device, bh_module *module, soak_kernels *out) {
    return bh_module_load(device, soak_kernel_source, strlen(soak_kernel_source), module) ==
               BH_OK &&
           bh_kernel_get(*module, "work", &out->work) == BH_OK &&
           bh_kernel_get(*module, "blend", &out->blend) == BH_OK &&
           bh_kernel_get(*module, "wild", &out->wild) == BH_OK &&
           bh_kernel_get(*module, "halt", &out->trap) == BH_OK &&
           bh_kernel_get(*module, "endless", &out->endless) == BH_OK;
}

uint32_t soak_work_word(uint32_t word, uint32_t k, uint32_t rounds) {
    for (uint32_t i = 0; i < rounds; i++) word = word * 22695477u + k;
    return word;
}

uint32_t soak_blend_word(uint32_t word, uint32_t k) {
    return word * 1664525u ^ k;
}
