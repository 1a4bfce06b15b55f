/* SPDX-License-Identifier: Apache-2.0 */
/* The driver in the application's own process: loaded once, its primary contexts visited. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "interop/interop.h"

static _Thread_local bh_error last_error;

bh_error *bh__interop_last(void) {
    return &last_error;
}

bh_status bh__interop_pass_on(bh_status status) {
    if (status != BH_OK) bh_last_error(&last_error);
    return status;
}

bh_status bh_cuda_last_error(bh_error *out) {
    if (out) *out = last_error;
    return last_error.status;
}

/* ---- loading ---- */

static struct {
    pthread_mutex_t lock;
    bool tried;
    bh_error error;
    bh__driver driver;
    int (*context_current)(bh__cu_context *out); /* not among those that workers need */
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void load(void) {
    if (bh__driver_open(&self.driver, &self.error) != BH_OK) return;
    void *found = dlsym(self.driver.library, "cuCtxGetCurrent");
    memcpy(&self.context_current, &found, sizeof found);
    if (!found)
        bh__fail(&self.error, BH_E_UNSUPPORTED,
                 "install an NVIDIA driver that supports CUDA 12.0 or later (525 or later)",
                 "the NVIDIA driver lacks cuCtxGetCurrent");
}

/* A driver that could not be loaded is not tried again: it does not come while a program runs. */
const bh__driver *bh__interop_driver(void) {
    pthread_mutex_lock(&self.lock);
    if (!self.tried) load();
    self.tried = true;
    pthread_mutex_unlock(&self.lock);
    if (self.error.status == BH_OK) return &self.driver;
    last_error = self.error;
    return NULL;
}

bh_status bh_cuda_probe(void) {
    return bh__interop_driver() ? BH_OK : last_error.status;
}

bh_status bh__interop_driver_failed(const bh__driver *cu, int result, bh_status status,
                                    const char *fix, const char *what) {
    const char *name = bh__driver_error_name(cu, result);
    bh__interop_refuse(status, fix, "%s: %s (%d): %s", what, name, result,
                       bh__driver_error_text(cu, result));
    bh__fail_device_code(&last_error, result, name);
    return status;
}

/* ---- contexts ---- */

bh_status bh__interop_enter(const bh__driver *cu, int device, bh__interop_visit *out) {
    bh__cu_context context = NULL;
    *out = (bh__interop_visit){.cu = cu, .device = device};
    int result = self.context_current(&out->before);
    if (result == BH__CU_OK) result = cu->context_retain(&context, device);
    if (result != BH__CU_OK)
        return bh__interop_driver_failed(cu, result, BH_E_NO_DEVICE,
                                         "see whether nvidia-smi works on this machine",
                                         "the device's primary context is not available");
    result = cu->context_enter(context);
    if (result == BH__CU_OK) return BH_OK;
    cu->context_release(device);
    return bh__interop_driver_failed(cu, result, BH_E_NO_DEVICE,
                                     "see whether nvidia-smi works on this machine",
                                     "the device's primary context cannot be entered");
}

void bh__interop_leave(const bh__interop_visit *visit) {
    visit->cu->context_enter(visit->before);
    visit->cu->context_release(visit->device);
}

bh_status bh__interop_find_device(const bh__driver *cu, const char *uuid, int *out) {
    const char *wanted = strchr(uuid, '-');
    int count = 0;
    if (!wanted || cu->device_count(&count) != BH__CU_OK) count = 0;
    for (int ordinal = 0; ordinal < count; ordinal++) {
        uint8_t bytes[16];
        char text[48] = "";
        size_t used = 0;
        int device;
        if (cu->device_get(&device, ordinal) != BH__CU_OK ||
            cu->device_uuid(bytes, device) != BH__CU_OK)
            continue;
        for (int i = 0; i < 16; i++) {
            bool dash = i == 4 || i == 6 || i == 8 || i == 10;
            used += (size_t)snprintf(text + used, sizeof text - used, dash ? "-%02x" : "%02x",
                                     bytes[i]);
        }
        if (strcmp(text, wanted + 1) != 0) continue;
        *out = device;
        return BH_OK;
    }
    return bh__interop_refuse(
        BH_E_NO_DEVICE, "let this process see that GPU (CUDA_VISIBLE_DEVICES)",
        "the buffer is memory of %s, which is none of the %d GPUs that this process sees", uuid,
        count);
}
