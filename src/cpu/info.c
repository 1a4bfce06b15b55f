/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the CPU device. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/processors.h"
#include "cpu/cpu.h"

static void fill_name(char *name, size_t size) {
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[512];
    name[0] = '\0';
    while (file && !name[0] && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0) continue;
        char *start = colon + 1;
        while (isspace((unsigned char)*start)) start++;
        start[strcspn(start, "\n")] = '\0';
        snprintf(name, size, "%s", start);
    }
    if (file) fclose(file);
    struct utsname system;
    if (!name[0])
        snprintf(name, size, "%s processor", uname(&system) == 0 ? system.machine : "unknown");
}

/* In /proc/meminfo sizes are in KiB, whatever the page size. */
static void fill_memory(bh__device_facts *info) {
    FILE *file = fopen("/proc/meminfo", "re");
    char line[256];
    unsigned long long kib;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemTotal: %llu kB", &kib) == 1)
            info->memory_total = kib * 1024;
        else if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            info->memory_free = kib * 1024;
    }
    if (file) fclose(file);
    if (info->memory_total == 0) {
        info->memory_total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        info->memory_free = info->memory_total;
    }
}

/* The processor's highest frequency, if the system reports it. */
static uint32_t read_clock_khz(void) {
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "re");
    unsigned khz = 0;
    if (file && fscanf(file, "%u", &khz) != 1) khz = 0;
    if (file) fclose(file);
    return khz;
}

/* A thread here corresponds to a multiprocessor of a GPU. It runs one block at a time; of a
 * cooperative launch it runs several, of any size, in turn. */
static void fill_multiprocessor(bh__device_facts *info) {
    const uint32_t blocks = BH__CPU_BLOCKS_PER_PROCESSOR;
    info->registers_per_multiprocessor = blocks * info->registers_per_block;
    info->shared_per_multiprocessor = blocks * info->shared_per_block_max;
    info->max_threads_per_multiprocessor = blocks * info->max_threads_per_block;
    info->max_blocks_per_multiprocessor = blocks;
    info->concurrent_kernels = 1;
    info->clock_khz = read_clock_khz();
    long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    info->l2_bytes = cache > 0 && cache <= INT32_MAX ? (uint32_t)cache : 0;
}

void bh__cpu_info_fill(bh__device_facts *info) {
    memset(info, 0, sizeof *info);
    info->cooperative = 1;
    info->cluster_launch = 1;
    snprintf(info->kind, sizeof info->kind, "cpu");
    fill_name(info->name, sizeof info->name);
    snprintf(info->driver, sizeof info->driver, "bulkhead-cpu %d.%d.%d (interpreter)",
             BH_VERSION_MAJOR, BH_VERSION_MINOR, BH_VERSION_PATCH);
    snprintf(info->arch, sizeof info->arch, "ptx");
    fill_memory(info);
    info->multiprocessors = bh__processors();
    info->warp_size = 32;
    info->max_threads_per_block = BH__CPU_MAX_THREADS;
    info->max_block[0] = info->max_block[1] = 1024;
    info->max_block[2] = 64;
    info->max_grid[0] = INT32_MAX;
    info->max_grid[1] = info->max_grid[2] = 65535;
    info->shared_per_block = BH__CPU_SHARED_DEFAULT;
    info->shared_per_block_max = BH__CPU_SHARED_MAX;
    info->registers_per_block = 65536;
    info->max_lanes = BH__MAX_LANES;
    info->max_param_bytes = BH__MAX_PARAM_BYTES;
    fill_multiprocessor(info);
}
