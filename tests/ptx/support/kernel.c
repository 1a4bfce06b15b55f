/* SPDX-License-Identifier: Apache-2.0 */
/* Running PTX text in the interpreter, for tests. */
#include "support/kernel.h"

#include <string.h>

#include "test.h"

static void print(void *context, const char *text, size_t length) {
    kernel *k = context;
    size_t have = strlen(k->printed), room = sizeof k->printed - 1 - have;
    memcpy(k->printed + have, text, length < room ? length : room);
}

bh_status kernel_open(kernel *k, const char *text, uint32_t threads, void *out, size_t bytes) {
    memset(k, 0, sizeof *k);
    bh_status status = bh__ptx_load(text, strlen(text), &k->error, &k->module);
    if (status != BH_OK) {
        return status;
    }
    status = bh__ptx_image_create(k->module, &k->error, &k->image);
    k->block = bh__ptx_block_create();
    REQUIRE(status == BH_OK && k->block != NULL);
    k->range = (bh__ptx_range){.base = (uint64_t)(uintptr_t)out, .size = bytes, .writable = true};
    k->memory = (bh__ptx_memory){&k->range, 1};
    k->pointer = (uint64_t)(uintptr_t)out;
    k->grid = (bh__ptx_grid){.image = k->image,
                             .kernel = bh__ptx_kernel_at(k->module, 0),
                             .grid = {1, 1, 1},
                             .block = {threads, 1, 1},
                             .params = &k->pointer,
                             .memory = &k->memory,
                             .print = print,
                             .print_context = k};
    return BH_OK;
}

void kernel_close(kernel *k) {
    bh__ptx_block_destroy(k->block);
    bh__ptx_image_destroy(k->image);
    bh__ptx_free(k->module);
}

bh__ptx_outcome kernel_run(kernel *k) {
    bh__ptx_outcome outcome = BH__PTX_DONE;
    bh__ptx_cluster *cluster = bh__ptx_cluster_create();
    REQUIRE(cluster != NULL);
    uint64_t count = bh__ptx_cluster_count(&k->grid);
    for (uint64_t i = 0; i < count && outcome == BH__PTX_DONE; i++) {
        REQUIRE_EQ(bh__ptx_cluster_begin(cluster, &k->grid, i, &k->error), BH_OK);
        do {
            outcome = bh__ptx_cluster_step(cluster, 100000, &k->fault);
        } while (outcome == BH__PTX_YIELD);
    }
    bh__ptx_cluster_destroy(cluster);
    return outcome;
}

bh__ptx_outcome run_text(kernel *k, const char *text, uint32_t threads, void *out, size_t bytes) {
    bh_status status = kernel_open(k, text, threads, out, bytes);
    if (status != BH_OK) {
        FAIL("%s", k->error.message);
        return BH__PTX_STOPPED;
    }
    bh__ptx_outcome outcome = kernel_run(k);
    kernel_close(k);
    return outcome;
}

bh_status load_error(const char *text, size_t length, bh_error *error) {
    bh__ptx_module *module = NULL;
    bh_status status = bh__ptx_load(text, length, error, &module);
    bh__ptx_free(module);
    return status;
}
