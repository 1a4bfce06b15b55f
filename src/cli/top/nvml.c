/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML knows of a GPU. The library is loaded when it is first needed; without it, or without
 * one of its functions, that much is not known. */
#include "cli/top/top.h"

#include <dlfcn.h>
#include <string.h>

typedef struct nvmlDevice_st *device_handle;

typedef struct nvml_memory {
    unsigned long long total, free, used;
} nvml_memory;

typedef struct nvml_use {
    unsigned gpu, memory;
} nvml_use;

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, ECC_CORRECTED = 0, ECC_UNCORRECTED = 1, ECC_AGGREGATE = 1 };

/* Loaded once. A function that is not there is NULL. */
static struct {
    bool tried, usable;
    int (*init)(void);
    int (*by_uuid)(const char *, device_handle *);
    int (*temperature)(device_handle, int, unsigned *);
    int (*power)(device_handle, unsigned *);
    int (*clock)(device_handle, int, unsigned *);
    int (*use)(device_handle, nvml_use *);
    int (*memory)(device_handle, nvml_memory *);
    int (*ecc)(device_handle, int, int, unsigned long long *);
} nvml;

static void find(void *library, const char *name, void *out) {
    void *found = dlsym(library, name);
    memcpy(out, &found, sizeof found);
}

static bool load(void) {
    if (nvml.tried) return nvml.usable;
    nvml.tried = true;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) return false;
    find(library, "nvmlInit_v2", &nvml.init);
    find(library, "nvmlDeviceGetHandleByUUID", &nvml.by_uuid);
    find(library, "nvmlDeviceGetTemperature", &nvml.temperature);
    find(library, "nvmlDeviceGetPowerUsage", &nvml.power);
    find(library, "nvmlDeviceGetClockInfo", &nvml.clock);
    find(library, "nvmlDeviceGetUtilizationRates", &nvml.use);
    find(library, "nvmlDeviceGetMemoryInfo", &nvml.memory);
    find(library, "nvmlDeviceGetTotalEccErrors", &nvml.ecc);
    nvml.usable = nvml.init != NULL && nvml.by_uuid != NULL && nvml.init() == 0;
    return nvml.usable;
}

void bh__gpu_look(const char *uuid, bh__gpu *out) {
    device_handle gpu;
    nvml_use use;
    nvml_memory memory;
    unsigned long long corrected = 0, uncorrected = 0;
    *out = (bh__gpu){0};
    if (uuid[0] == '\0' || !load() || nvml.by_uuid(uuid, &gpu) != 0) return;
    out->there = true;
    if (nvml.temperature && nvml.temperature(gpu, 0, &out->temperature_c) == 0)
        out->known |= BH__GPU_TEMPERATURE;
    if (nvml.power && nvml.power(gpu, &out->power_mw) == 0) out->known |= BH__GPU_POWER;
    if (nvml.clock && nvml.clock(gpu, CLOCK_SM, &out->clock_mhz) == 0) out->known |= BH__GPU_CLOCK;
    if (nvml.clock && nvml.clock(gpu, CLOCK_MEMORY, &out->memory_clock_mhz) == 0)
        out->known |= BH__GPU_MEMORY_CLOCK;
    if (nvml.use && nvml.use(gpu, &use) == 0) {
        out->use_percent = use.gpu;
        out->known |= BH__GPU_USE;
    }
    if (nvml.memory && nvml.memory(gpu, &memory) == 0) {
        out->memory_used = memory.used;
        out->memory_total = memory.total;
        out->known |= BH__GPU_MEMORY;
    }
    if (nvml.ecc && nvml.ecc(gpu, ECC_CORRECTED, ECC_AGGREGATE, &corrected) == 0 &&
        nvml.ecc(gpu, ECC_UNCORRECTED, ECC_AGGREGATE, &uncorrected) == 0) {
        out->ecc_corrected = corrected;
        out->ecc_uncorrected = uncorrected;
        out->known |= BH__GPU_ECC;
    }
}
