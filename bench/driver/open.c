/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the driver for the baseline: a context, a stream, the kernels, memory to write to. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baseline.h"
#include "support/kernel_source.h"

void baseline_need(const baseline *self, int result, const char *call) {
    if (result == BH__CU_OK) return;
    fprintf(stderr, "error: %s: %s (%d): %s\n", call, bh__driver_error_name(&self->cu, result),
            result, bh__driver_error_text(&self->cu, result));
    exit(1);
}

static bool look_up(const baseline *self, const char *symbol, void *field) {
    void *found = dlsym(self->cu.library, symbol);
    memcpy(field, &found, sizeof found);
    return found != NULL;
}

/* The first symbol that this driver lacks. */
static const char *look_up_all(baseline *self) {
#define BASELINE_EXTRA(name, symbol, parameters)                                                   \
    if (!look_up(self, symbol, &self->more.name)) return symbol;
#include "extra_table.h"
    return NULL;
}

static void start(baseline *self) {
    bh__cu_context context;
    bh__cu_module module;
    NEED(self->cu.context_retain(&context, self->device));
    NEED(self->cu.context_enter(context));
    NEED(self->cu.stream_create(&self->stream, BH__CU_STREAM_NON_BLOCKING, 0));
    NEED(self->cu.module_load(&module, bench_kernel_source, 0, NULL, NULL));
    NEED(self->cu.module_function(&self->put, module, "put"));
    for (int i = 0; i < BENCH_OUTPUTS; i++)
        NEED(self->more.memory_alloc(&self->outputs[i], BENCH_OUTPUT_WORDS * sizeof(uint32_t)));
    NEED(self->more.memory_alloc(&self->copies, BENCH_COPY_BYTES));

    /* Freed memory stays in the pool: the driver at its best. */
    enum { RELEASE_THRESHOLD = 4 };
    baseline_pool pool;
    uint64_t all = UINT64_MAX;
    NEED(self->more.default_pool(&pool, self->device));
    NEED(self->more.pool_set(pool, RELEASE_THRESHOLD, &all));
}

bool baseline_open(baseline *self, int ordinal, char *reason, size_t reason_size) {
    memset(self, 0, sizeof *self);
    bh_error error;
    if (bh__driver_open(&self->cu, &error) != BH_OK) {
        snprintf(reason, reason_size, "%s", error.message);
        return false;
    }
    const char *missing = look_up_all(self);
    int count = 0;
    NEED(self->cu.device_count(&count));
    if (missing || ordinal >= count) {
        if (missing)
            snprintf(reason, reason_size, "the NVIDIA driver lacks %s", missing);
        else
            snprintf(reason, reason_size, "there is no device %d, of %d", ordinal, count);
        return false;
    }
    NEED(self->cu.device_get(&self->device, ordinal));
    NEED(self->cu.device_name(self->name, sizeof self->name, self->device));
    start(self);
    return true;
}
