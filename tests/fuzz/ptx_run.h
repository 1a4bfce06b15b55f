/* SPDX-License-Identifier: Apache-2.0 */
/* Loads PTX and runs each of its kernels for a bounded time. Blocks of one thread, which races
 * with nobody, run twice: in one go, and a few instructions at a time. Both must end in the same
 * way and leave the same bytes. */
#ifndef BH_TESTS_FUZZ_PTX_RUN_H
#define BH_TESTS_FUZZ_PTX_RUN_H

#include <stdbool.h>

#include "base/shadow.h"
#include "fuzz.h"
#include "ptx/ptx.h"

enum {
    PTX_THREADS = 40, /* a whole warp and a part of one */
    PTX_BLOCKS = 2,
    PTX_INSTRUCTIONS = 400, /* of a block */
    PTX_STEP = 5,
    PTX_BUFFER = 1024,
    PTX_PARAMS = 4096,
    PTX_SHARED = 48 * 1024,
    PTX_LOCAL = 64 * 1024
};

typedef struct ptx_run {
    bh__ptx_module *module;
    bh__ptx_image *image;
    bh__ptx_block *block;
    bh__ptx_check *check; /* NULL: not checked */
    bool follow;          /* threads are traced: that must not change what they do */
    bh__ptx_memory memory;
    bh__ptx_range ranges[2];
} ptx_run;

typedef struct ptx_result {
    bh__ptx_outcome outcomes[PTX_BLOCKS];
    bh__ptx_fault fault;
    uint8_t bytes[PTX_BUFFER];
} ptx_result;

/* One buffer to write and one to read, the same for all inputs; what checks know of the first. */
static _Alignas(256) uint8_t ptx_buffer[PTX_BUFFER], ptx_read_only[PTX_BUFFER];
static uint8_t ptx_marks[PTX_BUFFER], ptx_map[PTX_BUFFER / BH__MAP_SCALE];

static void ptx_print(void *context, const char *text, size_t length) {
    (void)context;
    if (length) FUZZ_CHECK(text[length - 1] || 1); /* a sanitizer looks at the last byte */
}

static void ptx_reset(ptx_run *r) {
    for (size_t i = 0; i < PTX_BUFFER; i++) ptx_buffer[i] = ptx_read_only[i] = (uint8_t)(i * 7);
    memset(ptx_marks, 0, sizeof ptx_marks);
    memset(ptx_marks, 1, PTX_BUFFER / 2);
    memset(ptx_map, BH__MAP_WHOLE, sizeof ptx_map);
    ptx_map[sizeof ptx_map - 1] = BH__MAP_GAP;
    ptx_map[sizeof ptx_map - 2] = 3;
    ptx_map[sizeof ptx_map - 3] = BH__MAP_FREED;
    r->ranges[0] =
        (bh__ptx_range){.base = (uintptr_t)ptx_buffer, .size = PTX_BUFFER, .writable = true};
    r->ranges[1] = (bh__ptx_range){.base = (uintptr_t)ptx_read_only, .size = PTX_BUFFER};
    if (r->check) {
        r->ranges[0].map = ptx_map;
        r->ranges[0].marks = ptx_marks;
    }
    if (r->ranges[0].base > r->ranges[1].base) {
        bh__ptx_range first = r->ranges[1];
        r->ranges[1] = r->ranges[0];
        r->ranges[0] = first;
    }
    r->memory = (bh__ptx_memory){r->ranges, 2};
}

/* What the device refuses before a block is begun. */
static bool ptx_launchable(const bh__ptx_kernel *k) {
    return k->static_shared <= PTX_SHARED && k->local_bytes <= PTX_LOCAL &&
           k->param_bytes <= PTX_PARAMS && k->max_threads >= PTX_THREADS && k->required[0] == 0;
}

/* Eight bytes each: the buffers in turns. Smaller parameters get a part of these bytes. */
static void ptx_fill_params(uint64_t params[PTX_PARAMS / 8]) {
    for (size_t i = 0; i < PTX_PARAMS / 8; i++)
        params[i] = (uintptr_t)(i % 3 == 2 ? ptx_read_only : ptx_buffer);
}

static bh__ptx_outcome ptx_run_block(ptx_run *r, const bh__ptx_grid *grid, uint32_t x,
                                     uint64_t step, bh__ptx_fault *fault) {
    bh_error error;
    if (bh__ptx_block_begin(r->block, grid, x, 0, 0, &error) != BH_OK) return BH__PTX_STOPPED;
    bh__ptx_outcome outcome = BH__PTX_YIELD;
    for (uint64_t left = PTX_INSTRUCTIONS; left && outcome == BH__PTX_YIELD; left -= step)
        outcome = bh__ptx_block_step(r->block, step, fault);
    if (outcome == BH__PTX_FAULTED) free(bh__ptx_block_state(r->block, fault));
    return outcome;
}

static void ptx_run_kernel(ptx_run *r, const bh__ptx_kernel *kernel, uint32_t threads,
                           uint64_t step, ptx_result *out) {
    static uint64_t params[PTX_PARAMS / 8];
    ptx_fill_params(params);
    ptx_reset(r);
    memset(out, 0, sizeof *out);
    bh__ptx_grid grid = {.image = r->image,
                         .kernel = kernel,
                         .grid = {PTX_BLOCKS, 1, 1},
                         .block = {threads, 1, 1},
                         .dynamic_shared = 64,
                         .params = params,
                         .memory = &r->memory,
                         .print = ptx_print,
                         .check = r->check};
    bh__ptx_debug_wish wish = {.threads = {1, 3}, .trace = true, .limit = 20000};
    bh__ptx_debug *debug = NULL;
    bh__ptx_tracing tracing;
    bh_error error;
    if (r->follow && bh__ptx_debug_create(r->module, kernel, &wish, &error, &debug) == BH_OK) {
        FUZZ_CHECK(bh__ptx_tracing_begin(&tracing, debug));
        grid.tracing = &tracing;
    }
    if (r->check) bh__ptx_check_begin(r->check);
    for (uint32_t x = 0; x < PTX_BLOCKS; x++) {
        out->outcomes[x] = ptx_run_block(r, &grid, x, step, &out->fault);
        if (out->outcomes[x] != BH__PTX_DONE) break; /* the other blocks are not begun */
    }
    if (r->check) bh__ptx_check_end(r->check);
    if (debug) bh__ptx_tracing_end(&tracing);
    bh__ptx_debug_destroy(debug);
    memcpy(out->bytes, ptx_buffer, sizeof out->bytes);
}

/* One that ran out of its time may be anywhere. */
static bool ptx_ended(const ptx_result *result) {
    for (int i = 0; i < PTX_BLOCKS; i++)
        if (result->outcomes[i] == BH__PTX_YIELD || result->outcomes[i] == BH__PTX_STOPPED)
            return false;
    return true;
}

static void ptx_compare(const ptx_result *a, const ptx_result *b) {
    if (!ptx_ended(a) || !ptx_ended(b)) return;
    FUZZ_CHECK(memcmp(a->outcomes, b->outcomes, sizeof a->outcomes) == 0);
    FUZZ_CHECK(a->fault.kind == b->fault.kind && a->fault.line == b->fault.line);
    FUZZ_CHECK(memcmp(a->fault.thread, b->fault.thread, sizeof a->fault.thread) == 0);
    FUZZ_CHECK(memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0);
}

static void ptx_run_module(ptx_run *r, bool twice) {
    static ptx_result whole, pieces;
    bh_error error;
    if (bh__ptx_image_create(r->module, &error, &r->image) != BH_OK) return;
    r->block = bh__ptx_block_create();
    FUZZ_CHECK(r->block != NULL);
    for (uint32_t i = 0; i < bh__ptx_kernel_count(r->module) && i < 4; i++) {
        const bh__ptx_kernel *kernel = bh__ptx_kernel_at(r->module, i);
        if (!ptx_launchable(kernel)) continue;
        r->follow = true;
        ptx_run_kernel(r, kernel, PTX_THREADS, PTX_INSTRUCTIONS, &whole);
        r->follow = false;
        if (!twice) continue;
        ptx_run_kernel(r, kernel, 1, PTX_INSTRUCTIONS, &whole);
        ptx_run_kernel(r, kernel, 1, PTX_STEP, &pieces);
        ptx_compare(&whole, &pieces);
        r->follow = true;
        ptx_run_kernel(r, kernel, 1, PTX_INSTRUCTIONS, &pieces);
        r->follow = false;
        ptx_compare(&whole, &pieces);
    }
    bh__ptx_block_destroy(r->block);
    bh__ptx_image_destroy(r->image);
}

/* Whether a second run must do what the first did: no clock is read, and no variable keeps a
 * value. */
static bool ptx_repeats(const bh__ptx_module *module, const uint8_t *data, size_t size) {
    return bh__ptx_variable_count(module) == 0 && !memmem(data, size, "clock", 5) &&
           !memmem(data, size, "timer", 5);
}

static inline int ptx_run_text(const uint8_t *data, size_t size, bool checked) {
    ptx_run r = {0};
    bh_error error;
    bh_status status = bh__ptx_load((const char *)data, size, &error, &r.module);
    if (status != BH_OK) {
        FUZZ_CHECK(error.message[0] && error.fix[0]);
        return 0;
    }
    if (checked) r.check = bh__ptx_check_create();
    ptx_run_module(&r, ptx_repeats(r.module, data, size));
    bh__ptx_check_destroy(r.check);
    bh__ptx_free(r.module);
    return 0;
}

#endif
