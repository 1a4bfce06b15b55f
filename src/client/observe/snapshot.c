/* SPDX-License-Identifier: Apache-2.0 */
/* Copying the figures of a device. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/compile/compile.h"
#include "client/memory/memory.h"
#include "client/observe/snapshot.h"
#include "client/queue/queue.h"

void bh__snapshot_process(bh__figures_process *out) {
    bh_cache_info cache = {.size = sizeof cache};
    bh__cache_counts_fill(&cache);
    *out = (bh__figures_process){.size = sizeof *out,
                                 .pid = (int32_t)getpid(),
                                 .compiles = cache.compiles,
                                 .memory_hits = cache.memory_hits,
                                 .disk_hits = cache.disk_hits,
                                 .misses = cache.misses,
                                 .joined = cache.joined};
    snprintf(out->program, sizeof out->program, "%.63s", program_invocation_short_name);
    snprintf(out->version, sizeof out->version, "%s", bh_version());
}

static void fill_device(const bh__device *device, bh__figures_device *out) {
    *out = (bh__figures_device){.size = sizeof *out,
                                .slot = device->slot,
                                .index = device->device_index,
                                .age_ns = bh__now_ns() - device->observe.tick_start_ns,
                                .running = device->state == BH__DEVICE_RUNNING,
                                .generation = device->generation,
                                .standbys_ready = device->workers.standbys_ready,
                                .buffers = device->memory.buffer_count,
                                .bytes_allocated = device->memory.bytes_allocated,
                                .bytes_reserved = bh__held_bytes(device),
                                .memory_limit = device->options.memory_limit,
                                .peak_allocated = device->memory.peak_allocated,
                                .managed_buffers = device->memory.managed.buffers,
                                .managed_bytes = device->memory.managed.bytes,
                                .managed_to_device = device->memory.managed.to_device,
                                .managed_to_host = device->memory.managed.to_host};
    memcpy(out->kind, device->kind, sizeof out->kind);
}

void bh__snapshot_counters(bh__device *device, bh__figures *out) {
    fill_device(device, &out->device);
    memcpy(out->info.name, device->info.name, sizeof out->info.name);
    memcpy(out->info.driver, device->info.driver, sizeof out->info.driver);
    memcpy(out->info.arch, device->info.arch, sizeof out->info.arch);
    bh__counts_collect(device);
    bh__counts_device(device, &out->counters);
    out->lane_count = device->queue.lane_limit;
    for (uint32_t i = 0; i < out->lane_count; i++)
        bh__counts_lane(device, &device->lanes[i], &out->lanes[i]);
}
_Static_assert((int)BH__FIGURES_LANES >= (int)BH__MAX_LANES, "all lanes have room");
