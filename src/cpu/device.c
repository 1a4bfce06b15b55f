/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device as src/worker/ sees it: open, close, its lanes, its table of functions. */
#include <stdlib.h>
#include <unistd.h>

#include "base/available.h"
#include "cpu/cpu.h"
#include "cpu/library/library.h"
#include "cpu/native.h"

/* Files that describe the machine. They are read once; nothing is opened later. */
static const char *list_files(bh__file_list *out) {
    bh__file_list_add(out, "/proc/cpuinfo", false);
    bh__file_list_add(out, "/proc/meminfo", false);
    bh__file_list_add(out, "/sys/devices/system/cpu", false);
    return NULL;
}

static bh_status open_device(const bh__device_services *services, uint32_t index,
                             bh__device_facts *info, uint64_t *out_granularity, bh_error *error,
                             bh__device_instance **out) {
    if (index != 0)
        return bh__fail(error, BH_E_NO_DEVICE, "open \"cpu\"",
                        "there is no CPU device number %u: the only one is number 0", index);
    bh__device_instance *device = calloc(1, sizeof *device);
    if (!device)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory for the CPU device");
    device->services = services;
    pthread_mutex_init(&device->view_lock, NULL);
    pthread_mutex_init(&device->debug_lock, NULL);
    device->available = bh__available_open();
    bh__cpu_info_fill(&device->info);
    /* Where there is none, orders with native code fail and say so. */
    if (services->native) (void)bh__cpu_code_open(&device->code);
    bh_status status = bh__cpu_view_renew(device, error);
    if (status == BH_OK)
        status = bh__cpu_pool_open(&device->pool, device, device->info.multiprocessors - 1, error);
    if (status != BH_OK) {
        bh__cpu_view *view = atomic_load(&device->view);
        bh__cpu_view_drop(device, &view);
        pthread_mutex_destroy(&device->view_lock);
        pthread_mutex_destroy(&device->debug_lock);
        if (device->available >= 0) close(device->available);
        bh__cpu_code_close(&device->code);
        free(device);
        return status;
    }
    *info = device->info;
    *out_granularity = BH__CPU_GRANULARITY;
    *out = device;
    return BH_OK;
}

static void close_device(bh__device_instance *device) {
    bh__cpu_pool_close(&device->pool);
    bh__cpu_unload_all(device);
    bh__cpu_code_close(&device->code);
    bh__cpu_unmap_all(device);
    bh__ptx_heap_destroy(device->heap);
    bh__cpu_view *view = atomic_load(&device->view);
    bh__cpu_view_drop(device, &view);
    pthread_mutex_destroy(&device->view_lock);
    pthread_mutex_destroy(&device->debug_lock);
    if (device->available >= 0) close(device->available);
    free(device);
}

static bh_status open_lane(bh__device_instance *device, const bh__lane_message *which,
                           bh_error *error, bh__device_lane **out) {
    uint32_t index = which->index;
    bh__device_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "open fewer lanes", "no memory for lane %u",
                        index);
    lane->device = device;
    lane->index = index;
    lane->job.device = device;
    pthread_mutex_init(&lane->job.print_lock, NULL);
    *out = lane;
    return BH_OK;
}

static void close_lane(bh__device_lane *lane) {
    bh__cpu_view_drop(lane->device, &lane->view);
    if (lane->cluster) bh__ptx_cluster_destroy(lane->cluster);
    bh__ptx_check_destroy(lane->check);
    pthread_mutex_destroy(&lane->job.print_lock);
    free(lane->job.state);
    free(lane);
}

static bh_status execute(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    bh__cpu_view_follow(lane->device, &lane->view);
    return work->op == BH__OP_LAUNCH ? bh__cpu_launch(lane, work, error)
                                     : bh__cpu_copy(lane, work, error);
}

const bh__device_ops bh__cpu_device = {
    .program = "bulkhead-worker-cpu",
    .about = "runs Bulkhead's kernels on the processors of this machine",
    .checks = true,
    .illegal_address = BH__CPU_ILLEGAL_ADDRESS,
    .profile = BH__SANDBOX_COMPUTE,
    .files = list_files,
    .libraries_find = bh__cpu_libraries_find,
    .open = open_device,
    .close = close_device,
    .chunk_create = bh__cpu_chunk_create,
    .chunk_map = bh__cpu_chunk_map,
    .chunk_unmap = bh__cpu_chunk_unmap,
    .driver_create = bh__cpu_driver_create,
    .driver_advise = bh__cpu_driver_advise,
    .host_map = bh__cpu_host_map,
    .host_unmap = bh__cpu_host_unmap,
    .module_load = bh__cpu_module_load,
    .module_unload = bh__cpu_module_unload,
    .module_native = bh__cpu_module_native,
    .global_set = bh__cpu_global_set,
    .fit = bh__cpu_fit,
    .lane_open = open_lane,
    .lane_close = close_lane,
    .execute = execute,
    .fault_place = bh__cpu_fault_place,
    .findings = bh__cpu_findings,
    .fault_state = bh__cpu_fault_state,
    .debug_set = bh__cpu_debug_set,
};
