/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker reports of its device. The program gets it as bh_device_info and bh_device_limits,
 * which have the comments of the fields. */
#ifndef BH_WIRE_FACTS_H
#define BH_WIRE_FACTS_H

#include "bulkhead.h"

typedef struct bh__device_facts {
    char kind[16];
    char name[128];
    char driver[64];
    char arch[16];
    uint64_t memory_total;
    uint64_t memory_free;
    uint32_t multiprocessors;
    uint32_t cooperative;
    uint32_t warp_size;
    uint32_t max_threads_per_block;
    uint32_t max_block[3];
    uint32_t max_grid[3];
    uint32_t shared_per_block;
    uint32_t shared_per_block_max;
    uint32_t registers_per_block;
    uint32_t max_lanes;
    uint32_t max_param_bytes;
    char uuid[48];
    char pci[24];
    char no_standby[192];
    uint32_t ecc;
    uint32_t compute_mode;
    uint32_t mig;
    uint32_t mps;
    uint32_t clock_khz;
    uint32_t memory_clock_khz;
    uint32_t memory_bus_bits;
    uint32_t l2_bytes;
    uint32_t registers_per_multiprocessor;
    uint32_t shared_per_multiprocessor;
    uint32_t max_threads_per_multiprocessor;
    uint32_t max_blocks_per_multiprocessor;
    uint32_t async_engines;
    uint32_t concurrent_kernels;
    uint32_t cluster_launch;
    int32_t priority_lowest;
    int32_t priority_highest;
    uint32_t driver_version;
    uint32_t sandbox;
    char sandbox_lack[188];
} bh__device_facts;

#endif
