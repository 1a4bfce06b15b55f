/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's libraries: finding them, and their calls. */
#include "cuda/library/library.h"

#include <dlfcn.h>
#include <stdio.h>

#include "base/environment.h"

/* How a library is used here. The order is that of bh__libraries. Without `open`: not at all. */
static const struct {
    const char *(*open)(bh__device_instance *device, const char **fix);
    bh_status (*run)(bh__device_lane *lane, const bh__library_call *call, bh_error *error);
    void (*lane_close)(bh__device_lane *lane);
} drivers[BH__LIBRARIES] = {
    {bh__cuda_blas_open, bh__cuda_blas_run, bh__cuda_blas_lane_close},
};

static uint32_t number_of(const bh__library *library) {
    return (uint32_t)(library - bh__libraries);
}

enum { REASON_BYTES = 256 };

static void *open_in(const char *folder, const char *below, const char *const *names) {
    char path[4096];
    void *handle = NULL;
    for (; folder && *names && !handle; names++) {
        snprintf(path, sizeof path, "%s%s/%s", folder, below, *names);
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return handle;
}

void *bh__cuda_library_find(const char *const *names, char *out_reason) {
    const char *why = NULL;
    for (const char *const *name = names; *name; name++) {
        void *handle = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
        if (handle) return handle;
        if (!why) why = dlerror();
        snprintf(out_reason, REASON_BYTES, "%.200s", why ? why : *name);
    }
    void *handle = open_in(bh__environment("CUDA_HOME"), "/lib64", names);
    if (!handle) handle = open_in(bh__environment("CUDA_PATH"), "/lib64", names);
    return handle ? handle : open_in("/usr/local/cuda", "/lib64", names);
}

bh_status bh__cuda_library_load(bh__device_instance *device, const bh__library *library,
                                bh_error *error, int *out_blob) {
    uint32_t number = number_of(library);
    const char *fix = BH__CUDA_DEFECT, *lack = "the worker was started without it";
    if (!drivers[number].open) {
        fix = "use the CPU device for it";
        lack = "this version has it only on the CPU device";
    } else if (device->services->libraries & 1u << number) {
        lack = drivers[number].open(device, &fix);
    }
    if (lack) return bh__fail(error, BH_E_UNSUPPORTED, fix, "library %s: %s", library->name, lack);
    return bh__library_describe(library, error, out_blob);
}

bh_status bh__cuda_library_run(bh__device_lane *lane, const bh__library *library,
                               const bh__work *work, bh_error *error) {
    bh__library_call call;
    bh_status status = bh__library_call_read(library, work, error, &call);
    return status == BH_OK ? drivers[number_of(library)].run(lane, &call, error) : status;
}

void bh__cuda_library_lane_close(bh__device_lane *lane) {
    for (uint32_t i = 0; i < BH__LIBRARIES; i++) {
        if (drivers[i].lane_close) drivers[i].lane_close(lane);
    }
}
