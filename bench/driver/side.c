/* SPDX-License-Identifier: Apache-2.0 */
/* What each measurement means with the plain driver API. */
#include "baseline.h"

static void launch_put(const baseline *self, bh__cu_address out, uint32_t index, uint32_t value,
                       uint32_t salt) {
    void *params[] = {&out, &index, &value, &salt};
    int result = self->cu.launch(self->put, 1, 1, 1, 1, 1, 1, 0, self->stream, params, NULL);
    if (result != BH__CU_OK) baseline_need(self, result, "cuLaunchKernel");
}

static void put(void *context, uint32_t output, uint32_t index, uint32_t value, uint32_t salt) {
    const baseline *self = context;
    launch_put(self, self->outputs[output], index, value, salt);
}

static void finish(void *context) {
    const baseline *self = context;
    NEED(self->cu.stream_synchronize(self->stream));
}

static void read_output(void *context, uint32_t output, uint32_t *words, uint32_t count) {
    const baseline *self = context;
    NEED(self->more.copy_out_now(words, self->outputs[output], count * sizeof *words));
}

static void *host_alloc(void *context, size_t bytes) {
    const baseline *self = context;
    void *host = NULL;
    NEED(self->more.host_alloc(&host, bytes, 0));
    return host;
}

static void copy_in(void *context, int memory, const void *source) {
    const baseline *self = context;
    if (memory == BENCH_PLAIN) {
        NEED(self->more.copy_in_now(self->copies, source, BENCH_COPY_BYTES));
        return;
    }
    NEED(self->cu.copy_in(self->copies, source, BENCH_COPY_BYTES, self->stream));
    NEED(self->cu.stream_synchronize(self->stream));
}

static void copy_out(void *context, int memory, void *target) {
    const baseline *self = context;
    if (memory == BENCH_PLAIN) {
        NEED(self->more.copy_out_now(target, self->copies, BENCH_COPY_BYTES));
        return;
    }
    NEED(self->cu.copy_out(target, self->copies, BENCH_COPY_BYTES, self->stream));
    NEED(self->cu.stream_synchronize(self->stream));
}

static void alloc_free(void *context) {
    const baseline *self = context;
    bh__cu_address address;
    int result = self->cu.scratch_alloc(&address, BENCH_ALLOC_BYTES, self->stream);
    if (result == BH__CU_OK) result = self->cu.scratch_free(address, self->stream);
    if (result != BH__CU_OK) baseline_need(self, result, "cuMemAllocAsync, cuMemFreeAsync");
}

static uint32_t alloc_use(void *context, uint32_t value) {
    const baseline *self = context;
    bh__cu_address address;
    uint32_t left = 0;
    uint32_t last = BENCH_ALLOC_BYTES / sizeof left - 1;
    NEED(self->cu.scratch_alloc(&address, BENCH_ALLOC_BYTES, self->stream));
    launch_put(self, address, last, value, 0);
    NEED(self->cu.copy_out(&left, address + last * sizeof left, sizeof left, self->stream));
    NEED(self->cu.scratch_free(address, self->stream));
    NEED(self->cu.stream_synchronize(self->stream));
    return left;
}

bench_side baseline_side(baseline *self) {
    return (bench_side){.self = self,
                        .put = put,
                        .finish = finish,
                        .read_output = read_output,
                        .copy_in = copy_in,
                        .copy_out = copy_out,
                        .host_alloc = host_alloc,
                        .alloc_free = alloc_free,
                        .alloc_use = alloc_use};
}
