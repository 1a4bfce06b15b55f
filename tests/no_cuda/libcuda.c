/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 of an NVIDIA driver that cannot be used, in the ways that BULKHEAD_TEST_CUDA says:
 *
 *   version=11040   what cuDriverGetVersion answers, 12040 by default
 *   init=803        what cuInit answers
 *   mode=2          the device's compute mode
 *   mps=1           whether an MPS server shares it
 *   context=2       what making a context answers, 999 by default: nothing comes after it
 *
 * several of them apart by commas. The other entry points are in others.c.
 */
#include <stdlib.h>
#include <string.h>

#define ENTRY(name, parameters)                                                                    \
    __attribute__((visibility("default"))) int name parameters;                                    \
    int name parameters

enum { COMPUTE_MODE = 20, MPS_ENABLED = 133 };

static int setting(const char *name, int otherwise) {
    const char *text = getenv("BULKHEAD_TEST_CUDA");
    const char *found = text ? strstr(text, name) : NULL;
    return found ? atoi(found + strlen(name)) : otherwise;
}

ENTRY(cuInit, (unsigned flags)) {
    return (int)flags + setting("init=", 0);
}

ENTRY(cuDriverGetVersion, (int *out)) {
    *out = setting("version=", 12040);
    return 0;
}

ENTRY(cuGetErrorName, (int result, const char **out)) {
    *out = result == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
           : result == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
           : result == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
                           : "CUDA_ERROR_OF_SOME_KIND";
    return 0;
}

ENTRY(cuGetErrorString, (int result, const char **out)) {
    (void)result;
    *out = "as the test wants it";
    return 0;
}

ENTRY(cuDeviceGetCount, (int *out)) {
    *out = 1;
    return 0;
}

ENTRY(cuDeviceGet, (int *out, int ordinal)) {
    *out = ordinal;
    return 0;
}

ENTRY(cuDeviceGetAttribute, (int *out, int attribute, int device)) {
    *out = attribute == COMPUTE_MODE  ? setting("mode=", 0)
           : attribute == MPS_ENABLED ? setting("mps=", 0)
                                      : 1;
    return device;
}

ENTRY(cuDevicePrimaryCtxSetFlags_v2, (int device, unsigned flags)) {
    (void)device;
    (void)flags;
    return 0;
}

ENTRY(cuDevicePrimaryCtxRetain, (void **out, int device)) {
    (void)out;
    (void)device;
    return setting("context=", 999);
}
