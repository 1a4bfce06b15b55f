/* SPDX-License-Identifier: Apache-2.0 */
/* A number for what native code relies on: the decoded program, and the layout of the state. */
#include <stddef.h>

#include "ptx/run/exec.h"

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* Raised when the contract of native code (bh__ptx_group_state, bh__ptx_compiled_end) changes. */
enum { CONTRACT = 4 };

static uint64_t layout(void) {
    static const size_t numbers[] = {
        sizeof(bh__ptx_exec),           sizeof(bh__ptx_warp),
        sizeof(bh__ptx_block),          sizeof(bh__ptx_group_state),
        sizeof(bh__ptx_site_range),     sizeof(bh__ptx_grid),
        offsetof(bh__ptx_exec, warp),   offsetof(bh__ptx_exec, block),
        offsetof(bh__ptx_exec, module), offsetof(bh__ptx_exec, grid),
        offsetof(bh__ptx_exec, shared), offsetof(bh__ptx_exec, shared_base),
        offsetof(bh__ptx_exec, code),   offsetof(bh__ptx_warp, live),
        offsetof(bh__ptx_warp, index),  offsetof(bh__ptx_block, site_ranges),
        offsetof(bh__ptx_block, tid),   offsetof(bh__ptx_grid, params),
        offsetof(bh__ptx_module, code), offsetof(bh__ptx_exec, dynamic_base),
        offsetof(bh__ptx_warp, regs),   offsetof(bh__ptx_warp, pc),
        offsetof(bh__ptx_block, image), offsetof(bh__ptx_block, live_threads),
        offsetof(bh__ptx_block, id),    offsetof(bh__ptx_image, variables),
        offsetof(bh__ptx_exec, stack),  offsetof(bh__ptx_exec, local_end),
        offsetof(bh__ptx_warp, local),  offsetof(bh__ptx_warp, local_stride),
    };
    uint64_t hash = CONTRACT;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) hash = mix(hash, numbers[i]);
    return hash;
}

/* Not the pointers, which differ from process to process. */
uint64_t bh__ptx_fingerprint(const bh__ptx_module *module) {
    uint64_t hash = mix(layout(), module->code_count);
    for (uint32_t i = 0; i < module->code_count; i++) {
        const bh__ptx_code *c = &module->code[i];
        const int32_t rows[] = {c->d, c->d2, c->a, c->b, c->c, c->e, c->guard};
        for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) hash = mix(hash, (uint32_t)rows[n]);
        hash = mix(hash, c->imm);
        hash = mix(hash, (uint64_t)c->target << 32 | c->guard_flip);
        hash = mix(hash, (uint64_t)c->kind << 24 | (uint64_t)c->bytes << 16 |
                             (uint64_t)c->count << 8 | c->flags);
    }
    for (uint32_t i = 0; i < module->constant_bytes; i += LANES * 4)
        hash = mix(hash, module->constants[i]);
    return hash;
}
