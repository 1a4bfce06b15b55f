/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU device's worker, with kernels that really run, on a device that is shared, damaged or
 * talkative as BULKHEAD_TEST_WORKER says:
 *
 *   alone     one worker at a time may use it, and it says that a standby makes no sense
 *   crowded   there is room for one worker; a second one is refused for lack of memory
 *   broken    its faults are those of damaged memory
 *   words     it writes two lines to standard error before it reports a fault
 *   advice    it says which advice it is given
 *   numbers   each of its limits is another number
 *   priority  lanes have priorities from -1 to 3, and each says as what it was opened
 *
 * BULKHEAD_TEST_LOCK names a file that a worker holds while it lives. One that finds it held, or a
 * file with ".busy" behind that name, is refused and adds a line to the one with ".refused".
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "worker/worker.h"

enum { ECC_UNCORRECTABLE = 214 };

static const char *how;
static const bh__device_services *services_given;
static bh__device_ops ops;

static bool is(const char *kind) {
    return strcmp(how, kind) == 0;
}

static bh_status take_device(bh_error *error) {
    const char *path = getenv("BULKHEAD_TEST_LOCK");
    if (path == NULL) return BH_OK;
    char refused[700], busy[700];
    snprintf(busy, sizeof busy, "%s.busy", path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool idle = access(busy, F_OK) != 0;
    if (idle && fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return BH_OK; /* held to the end */
    snprintf(refused, sizeof refused, "%s.refused", path);
    int note = open(refused, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ssize_t written = note < 0 ? -1 : write(note, "refused\n", 8);
    (void)written;
    return bh__fail(error, is("crowded") ? BH_E_NO_MEMORY : BH_E_NO_DEVICE, "make room",
                    "the device has room for one");
}

/* A number of its own for each fact that bh_device_limits has. */
static void number_facts(bh__device_facts *info) {
    uint32_t *const fields[] = {&info->max_block[0],
                                &info->max_block[1],
                                &info->max_block[2],
                                &info->max_grid[0],
                                &info->max_grid[1],
                                &info->max_grid[2],
                                &info->max_lanes,
                                &info->max_param_bytes,
                                &info->shared_per_block,
                                &info->shared_per_block_max,
                                &info->shared_per_multiprocessor,
                                &info->registers_per_block,
                                &info->registers_per_multiprocessor,
                                &info->max_threads_per_multiprocessor,
                                &info->max_blocks_per_multiprocessor,
                                &info->clock_khz,
                                &info->memory_clock_khz,
                                &info->memory_bus_bits,
                                &info->l2_bytes,
                                &info->async_engines,
                                &info->concurrent_kernels,
                                &info->cluster_launch,
                                &info->ecc,
                                &info->compute_mode,
                                &info->mig,
                                &info->mps};
    for (uint32_t i = 0; i < sizeof fields / sizeof *fields; i++) *fields[i] = 1001 + i;
    info->priority_lowest = -7;
    info->priority_highest = 8;
    info->multiprocessors = 1101;
    info->driver_version = 1102;
    snprintf(info->uuid, sizeof info->uuid, "the uuid");
    snprintf(info->pci, sizeof info->pci, "the bus");
}

static bh_status open_device(const bh__device_services *services, uint32_t index,
                             bh__device_facts *info, uint64_t *out_granularity, bh_error *error,
                             bh__device_instance **out) {
    services_given = services;
    bh_status status = take_device(error);
    if (status == BH_OK)
        status = bh__cpu_device.open(services, index, info, out_granularity, error, out);
    if (status != BH_OK) return status;
    if (is("alone"))
        snprintf(info->no_standby, sizeof info->no_standby, "the device serves one at a time");
    if (is("numbers")) number_facts(info);
    if (is("priority")) {
        info->priority_lowest = -1;
        info->priority_highest = 3;
    }
    return BH_OK;
}

static bh_status open_lane(bh__device_instance *device, const bh__lane_message *which,
                           bh_error *error, bh__device_lane **out) {
    char text[64];
    int length =
        snprintf(text, sizeof text, "lane %u priority %d\n", which->index, (int)which->priority);
    if (is("priority")) services_given->print(services_given->context, text, (size_t)length);
    return bh__cpu_device.lane_open(device, which, error, out);
}

static bh_status advise(bh__device_instance *device, const bh__advice_message *what,
                        bh_error *error) {
    char text[96];
    int length =
        snprintf(text, sizeof text, "advice 0x%x of 0x%x for %llu bytes at %llu\n", what->advice,
                 what->changed, (unsigned long long)what->bytes, (unsigned long long)what->offset);
    if (is("advice")) services_given->print(services_given->context, text, (size_t)length);
    return bh__cpu_device.driver_advise(device, what, error);
}

static bh_status execute(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    bh_status status = bh__cpu_device.execute(lane, work, error);
    if (status == BH_E_FAULT && is("words"))
        fputs("kernel.cu:7: f: Assertion `x > 0` failed.\nkernel.cu:8: g: and so on.\n", stderr);
    if (status == BH_E_FAULT && is("broken")) {
        bh__fail(error, BH_E_STOPPED, "replace the memory", "the memory is damaged");
        bh__fail_device_code(error, ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE");
    }
    return status;
}

int main(int argc, char **argv) {
    how = getenv("BULKHEAD_TEST_WORKER");
    if (how == NULL) how = "";
    ops = bh__cpu_device;
    ops.open = open_device;
    ops.lane_open = open_lane;
    ops.execute = execute;
    ops.driver_advise = advise;
    ops.files = NULL; /* the lock is a file */
    bh__worker_main(argc, argv, &ops);
}
