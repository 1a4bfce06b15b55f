/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a CUDA device, and checks that it has what is needed. */
#include <ctype.h>
#include <string.h>

#include "cuda/state.h"

static int attribute(const bh__device_instance *device, int which) {
    int value = 0;
    return device->cu.device_attribute(&value, which, device->ordinal) == BH__CU_OK ? value : 0;
}

static uint32_t limit(const bh__device_instance *device, int which) {
    return (uint32_t)attribute(device, which);
}

/* The version of the kernel module, "580.65.06"; empty if it cannot be read. */
static void read_module_version(char *out, size_t size) {
    char line[256] = "";
    out[0] = '\0';
    FILE *file = fopen("/proc/driver/nvidia/version", "re");
    if (!file) return;
    char *rest = fgets(line, sizeof line, file) ? line : NULL;
    fclose(file);
    for (char *word; (word = strsep(&rest, " \t\n"));) {
        if (!isdigit((unsigned char)word[0]) || !strchr(word, '.')) continue;
        snprintf(out, size, "%s", word);
        return;
    }
}

static bh_status check(const bh__device_instance *device, const char *name, bh_error *error) {
    static const struct {
        int attribute;
        const char *what;
    } needed[] = {{BH__CU_VIRTUAL_MEMORY, "mapping memory at chosen addresses"},
                  {BH__CU_EXPORT_AS_DESCRIPTOR, "sharing memory as descriptors"},
                  {BH__CU_WIDE_STREAM_OPS, "64-bit writes in stream order"}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (attribute(device, needed[i].attribute)) continue;
        return bh__fail(error, BH_E_UNSUPPORTED, "use a newer GPU or driver, or open \"cpu\"",
                        "%s does not support %s with this driver", name, needed[i].what);
    }
    return BH_OK;
}

/* "GPU-" or "MIG-" and the number as nvidia-smi writes it. */
static void fill_uuid(const bh__device_instance *device, bh__device_facts *info) {
    uint8_t uuid[16], whole[16];
    if (device->cu.device_uuid(uuid, device->ordinal) != BH__CU_OK) return;
    /* A part of a GPU (MIG) has a UUID of its own; an older function returns that of the whole GPU.
     */
    bool differs = device->cu.device_whole_uuid &&
                   device->cu.device_whole_uuid(whole, device->ordinal) == BH__CU_OK &&
                   memcmp(uuid, whole, sizeof uuid) != 0;
    info->mig = differs || strstr(info->name, " MIG ") != NULL;
    size_t used = (size_t)snprintf(info->uuid, sizeof info->uuid, info->mig ? "MIG-" : "GPU-");
    for (int i = 0; i < 16; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        used += (size_t)snprintf(info->uuid + used, sizeof info->uuid - used,
                                 dash ? "-%02x" : "%02x", uuid[i]);
    }
}

/* Drivers do not report it. Large parameters came with CUDA 12.1, for devices from sm_70 on. */
static uint32_t param_bytes(const bh__device_instance *device) {
    bool large = device->cu.number >= 12010 && attribute(device, BH__CU_CAPABILITY_MAJOR) >= 7;
    return large ? BH__MAX_PARAM_BYTES : BH__SMALL_PARAM_BYTES;
}

static void fill_multiprocessor(const bh__device_instance *device, bh__device_facts *info) {
    info->registers_per_multiprocessor = limit(device, BH__CU_REGISTERS_PER_MULTIPROCESSOR);
    info->shared_per_multiprocessor = limit(device, BH__CU_SHARED_PER_MULTIPROCESSOR);
    info->max_threads_per_multiprocessor = limit(device, BH__CU_THREADS_PER_MULTIPROCESSOR);
    info->max_blocks_per_multiprocessor = limit(device, BH__CU_BLOCKS_PER_MULTIPROCESSOR);
}

static void fill_hardware(const bh__device_instance *device, bh__device_facts *info) {
    fill_uuid(device, info);
    if (device->cu.device_pci(info->pci, sizeof info->pci, device->ordinal) != BH__CU_OK)
        info->pci[0] = '\0';
    info->ecc = attribute(device, BH__CU_ECC) != 0;
    info->clock_khz = limit(device, BH__CU_CLOCK_KHZ);
    info->memory_clock_khz = limit(device, BH__CU_MEMORY_CLOCK_KHZ);
    info->memory_bus_bits = limit(device, BH__CU_MEMORY_BUS_BITS);
    info->l2_bytes = limit(device, BH__CU_L2_BYTES);
    info->async_engines = limit(device, BH__CU_ASYNC_ENGINES);
    info->concurrent_kernels = attribute(device, BH__CU_CONCURRENT_KERNELS) != 0;
    info->cluster_launch = attribute(device, BH__CU_CLUSTER_LAUNCH) != 0;
    /* The driver counts the other way: a lower number is more urgent. */
    int least = 0, greatest = 0;
    if (device->cu.context_priorities(&least, &greatest) == BH__CU_OK) {
        info->priority_lowest = -least;
        info->priority_highest = -greatest;
    }
    info->driver_version = (uint32_t)device->cu.number;
}

bh_status bh__cuda_info_fill(bh__device_instance *device, bh_error *error) {
    bh__device_facts *info = &device->info;
    memset(info, 0, sizeof *info);
    snprintf(info->kind, sizeof info->kind, "cuda");
    if (device->cu.device_name(info->name, sizeof info->name, device->ordinal) != BH__CU_OK)
        snprintf(info->name, sizeof info->name, "NVIDIA device %d", device->ordinal);
    char module[32];
    read_module_version(module, sizeof module);
    snprintf(info->driver, sizeof info->driver, "CUDA %d.%d%s%s", device->cu.number / 1000,
             device->cu.number % 1000 / 10, module[0] ? ", NVIDIA " : "", module);
    snprintf(info->arch, sizeof info->arch, "sm_%d%d", attribute(device, BH__CU_CAPABILITY_MAJOR),
             attribute(device, BH__CU_CAPABILITY_MINOR));
    size_t free_bytes = 0, total_bytes = 0;
    device->cu.memory_info(&free_bytes, &total_bytes);
    info->memory_free = free_bytes;
    info->memory_total = total_bytes;
    info->cooperative = attribute(device, BH__CU_COOPERATIVE_LAUNCH) != 0;
    info->multiprocessors = limit(device, BH__CU_MULTIPROCESSORS);
    info->warp_size = limit(device, BH__CU_WARP_SIZE);
    info->max_threads_per_block = limit(device, BH__CU_MAX_THREADS_PER_BLOCK);
    for (int i = 0; i < 3; i++) {
        info->max_block[i] = limit(device, BH__CU_MAX_BLOCK_X + i);
        info->max_grid[i] = limit(device, BH__CU_MAX_GRID_X + i);
    }
    info->shared_per_block = limit(device, BH__CU_SHARED_PER_BLOCK);
    info->shared_per_block_max = limit(device, BH__CU_SHARED_PER_BLOCK_OPTIN);
    if (info->shared_per_block_max < info->shared_per_block)
        info->shared_per_block_max = info->shared_per_block;
    info->registers_per_block = limit(device, BH__CU_REGISTERS_PER_BLOCK);
    info->max_lanes = BH__MAX_LANES;
    info->max_param_bytes = param_bytes(device);
    fill_multiprocessor(device, info);
    fill_hardware(device, info);
    bh__cuda_modes_fill(device);
    bh__driver_log_skip(&device->cu); /* older drivers do not know all attributes */
    return check(device, info->name, error);
}
