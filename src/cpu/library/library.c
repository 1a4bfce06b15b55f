/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries of the CPU device: which there are, and their calls. */
#include "cpu/library/library.h"

#include <string.h>

/* How a library is used here. The order is that of bh__libraries. */
static const struct {
    void (*find)(void);
    const char *(*lack)(const char **fix);
    void (*begin)(void);
    bh_status (*run)(const bh__library_call *call, bh_error *error);
} drivers[BH__LIBRARIES] = {
    {bh__cpu_blas_find, bh__cpu_blas_lack, bh__cpu_blas_begin, bh__cpu_blas_run},
    {bh__cpu_fft_find, bh__cpu_fft_lack, bh__cpu_fft_begin, bh__cpu_fft_run},
    {bh__cpu_solver_find, bh__cpu_solver_lack, bh__cpu_solver_begin, bh__cpu_solver_run},
};

void bh__cpu_libraries_find(uint32_t libraries) {
    for (uint32_t i = 0; i < BH__LIBRARIES; i++) {
        if (libraries & 1u << i) drivers[i].find();
    }
}

static uint32_t number_of(const bh__library *library) {
    return (uint32_t)(library - bh__libraries);
}

bh_status bh__cpu_library_load(const bh__library *library, uint32_t libraries, bh_error *error,
                               int *out_blob) {
    uint32_t number = number_of(library);
    const char *fix = "report this as a defect of libbulkhead";
    const char *lack =
        libraries & 1u << number ? drivers[number].lack(&fix) : "the worker was started without it";
    if (lack) return bh__fail(error, BH_E_UNSUPPORTED, fix, "library %s: %s", library->name, lack);
    drivers[number].begin();
    return bh__library_describe(library, error, out_blob);
}

/* With checks: marks the bytes of outputs as written. Those between their elements are not told
 * apart. */
static void mark_outputs(const bh__cpu_view *view, const bh__library_call *call,
                         const bh__work *work) {
    for (uint32_t i = 0; i < call->operation->operand_count; i++) {
        const bh__operand *operand = &call->operation->operands[i];
        bh__region region;
        uint64_t address;
        if (!(operand->access & BH_ACCESS_OUT) || !call->types[i]) continue;
        if (bh__operand_region(operand, call->request.bytes, &region) != BH__REGION_FITS) continue;
        memcpy(&address, work->params + i * 8, sizeof address);
        const bh__ptx_range *range = bh__cpu_view_range(view, address);
        if (range && range->marks)
            memset(range->marks + (address - range->base), 1,
                   region.span * bh__element_bytes(call->types[i]));
    }
}

bh_status bh__cpu_library_run(bh__device_lane *lane, const bh__library *library,
                              const bh__work *work, bh_error *error) {
    bh__library_call call;
    if (bh__cpu_killed(lane->device)) return BH_E_STOPPED;
    bh_status status = bh__library_call_read(library, work, error, &call);
    if (status == BH_OK) status = drivers[number_of(library)].run(&call, error);
    if (status == BH_OK && lane->device->services->check) mark_outputs(lane->view, &call, work);
    return status;
}
