/* SPDX-License-Identifier: Apache-2.0 */
/* The fake device: its memory and modules, and the table of its functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "fake_state.h"
#include "wire/share.h"
#include "worker/module_blob.h"
#include "worker/worker.h"

enum { GRANULARITY = 65536 };
static const char defect[] = "report this as a defect of libbulkhead";

static bh_status no_memory(bh_error *error) {
    return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory", "no memory for the fake device");
}

/* ---- the device ---- */

static void fill_info(bh__device_facts *info) {
    memset(info, 0, sizeof *info);
    snprintf(info->kind, sizeof info->kind, "%s", sim_device.queues ? "cuda" : "cpu");
    snprintf(info->name, sizeof info->name, "fake");
    snprintf(info->driver, sizeof info->driver, "fake");
    snprintf(info->arch, sizeof info->arch, "ptx");
    info->memory_total = info->memory_free = (uint64_t)1 << 30;
    info->multiprocessors = 2;
    info->warp_size = 32;
    info->max_threads_per_block = 1024;
    info->max_block[0] = info->max_block[1] = 1024;
    info->max_block[2] = 64;
    info->max_grid[0] = INT32_MAX;
    info->max_grid[1] = info->max_grid[2] = 65535;
    info->shared_per_block = info->shared_per_block_max = 49152;
    info->registers_per_block = info->registers_per_multiprocessor = 65536;
    info->max_lanes = BH__MAX_LANES;
    info->max_param_bytes = BH__MAX_PARAM_BYTES;
    info->shared_per_multiprocessor = 49152;
    info->max_threads_per_multiprocessor = 1024;
    info->max_blocks_per_multiprocessor = 32;
    info->concurrent_kernels = 1;
}

static bh_status open_device(const bh__device_services *services, uint32_t index,
                             bh__device_facts *info, uint64_t *out_granularity, bh_error *error,
                             bh__device_instance **out) {
    (void)index;
    bh__device_instance *device = calloc(1, sizeof *device);
    if (!device) return no_memory(error);
    if (sim_device.broken) {
        free(device);
        return bh__fail(error, BH_E_NO_DEVICE, "mend it", "the fake device cannot be opened");
    }
    if (sim_device.longest_boot_ns) sim_sleep(sim_pick(sim_device.longest_boot_ns));
    device->services = services;
    fill_info(info);
    *out_granularity = GRANULARITY;
    *out = device;
    return BH_OK;
}

static void close_device(bh__device_instance *device) {
    free(device);
}

bool fake_killed(const bh__device_instance *device) {
    return atomic_load(device->services->killed);
}
bh__area *fake_area(const bh__device_instance *device) {
    return device->services->area;
}

/* ---- memory ---- */

static bh_status chunk_map(bh__device_instance *device, const bh__chunk *chunk, int fd,
                           bh_error *error) {
    struct stat info;
    uint32_t free_slot = FAKE_CHUNKS;
    for (uint32_t i = 0; i < FAKE_CHUNKS; i++) {
        if (!device->chunks[i].memory)
            free_slot = i;
        else if (device->chunks[i].chunk.id == chunk->id)
            return bh__fail(error, BH_E_INTERNAL, defect, "chunk %u is mapped already", chunk->id);
    }
    if (fstat(fd, &info) < 0 || (uint64_t)info.st_size < chunk->bytes)
        return bh__fail(error, BH_E_INTERNAL, defect,
                        "chunk %u of %llu bytes came with a file of %lld", chunk->id,
                        (unsigned long long)chunk->bytes, (long long)info.st_size);
    if (free_slot == FAKE_CHUNKS) return no_memory(error);
    uint8_t *memory = bh__share_map(fd, 0, chunk->bytes, true);
    if (!memory) return no_memory(error);
    device->chunks[free_slot] = (fake_chunk){*chunk, memory, (uint64_t)info.st_ino << 36};
    return BH_OK;
}

static bh_status chunk_create(bh__device_instance *device, const bh__chunk *chunk, bh_error *error,
                              int *out_fd) {
    int fd = bh__share_create("fake-chunk", chunk->bytes);
    if (fd < 0) return bh__fail(error, BH_E_NO_MEMORY, "use less", "no memory for a chunk");
    bh_status status = chunk_map(device, chunk, fd, error);
    if (status == BH_OK)
        *out_fd = fd;
    else
        close(fd);
    return status;
}

static bh_status chunk_unmap(bh__device_instance *device, uint32_t id, bh_error *error) {
    for (uint32_t i = 0; i < FAKE_CHUNKS; i++) {
        fake_chunk *self = &device->chunks[i];
        if (!self->memory || self->chunk.id != id) continue;
        bh__share_unmap(self->memory, self->chunk.bytes);
        self->memory = NULL;
        return BH_OK;
    }
    return bh__fail(error, BH_E_INTERNAL, defect, "there is no chunk %u to unmap", id);
}

static bh_status driver_create(bh__device_instance *device, const bh__chunk *chunk, bh_error *error,
                               uint64_t *out_address) {
    (void)device, (void)chunk, (void)out_address;
    return bh__fail(error, BH_E_UNSUPPORTED, "use other memory", "no driver's memory here");
}
static bh_status driver_advise(bh__device_instance *device, const bh__advice_message *what,
                               bh_error *error) {
    (void)device, (void)what;
    return bh__fail(error, BH_E_UNSUPPORTED, "use other memory", "no driver's memory here");
}

static bh_status host_map(bh__device_instance *device, uint32_t id, void *memory, uint64_t bytes,
                          bh_error *error) {
    for (uint32_t i = 0; i < FAKE_HOSTS; i++) {
        if (device->hosts[i].memory) continue;
        device->hosts[i] = (fake_host){id, memory, bytes};
        return BH_OK;
    }
    return no_memory(error);
}
static bh_status host_unmap(bh__device_instance *device, uint32_t id, bh_error *error) {
    for (uint32_t i = 0; i < FAKE_HOSTS; i++) {
        if (!device->hosts[i].memory || device->hosts[i].id != id) continue;
        device->hosts[i].memory = NULL;
        return BH_OK;
    }
    return bh__fail(error, BH_E_INTERNAL, defect, "there is no host region %u to unmap", id);
}

/* ---- modules ---- */

static void add_kernel(bh__blob *blob, const char *name, uint32_t pointers, uint32_t words) {
    bh__blob_param params[4];
    memset(params, 0, sizeof params);
    uint32_t count = 0, at = 0;
    for (; count < pointers; count++, at += 8)
        params[count] = (bh__blob_param){.offset = at, .bytes = 8, .pointer = 1};
    for (uint32_t i = 0; i < words; i++, count++, at += 4)
        params[count] = (bh__blob_param){.offset = at, .bytes = 4, .scalar = 1};
    bh__blob_kernel kernel = {.param_count = count, .param_bytes = at, .max_threads = 1024};
    bh__blob_add_kernel(blob, name, kernel, params);
}

static bool begins_with(const void *image, size_t bytes, const char *text) {
    return bytes >= strlen(text) && memcmp(image, text, strlen(text)) == 0;
}

static bh_status module_load(bh__device_instance *device, uint32_t id, const void *image,
                             size_t bytes, bh_error *error, int *out_blob) {
    if (!begins_with(image, bytes, FAKE_IMAGE))
        return bh__fail(error, BH_E_LOAD, "begin it with \"" FAKE_IMAGE "\"",
                        "the image is not for the fake device");
    uint32_t slot = FAKE_MODULES;
    for (uint32_t i = 0; i < FAKE_MODULES; i++) {
        if (!device->modules[i].used) slot = i;
        if (device->modules[i].used && device->modules[i].id == id)
            return bh__fail(error, BH_E_INTERNAL, defect, "module %u is loaded already", id);
    }
    if (slot == FAKE_MODULES) return no_memory(error);
    if (sim_device.longest_ns) sim_sleep(sim_pick(sim_device.longest_ns));
    bh__blob blob = {0};
    add_kernel(&blob, "store", 1, 2);
    add_kernel(&blob, "add", 1, 2);
    add_kernel(&blob, "copy", 2, 1);
    add_kernel(&blob, "fault", 1, 2);
    add_kernel(&blob, "endless", 1, 2);
    add_kernel(&blob, "refused", 1, 2);
    add_kernel(&blob, "crash", 1, 2);
    add_kernel(&blob, "get", 1, 1);
    add_kernel(&blob, "set", 0, 1);
    bool writable = begins_with(image, bytes, FAKE_VARIABLE);
    if (writable || begins_with(image, bytes, FAKE_CONSTANT))
        bh__blob_add_variable(
            &blob, "var", (bh__blob_variable){.bytes = FAKE_VARIABLE_BYTES, .writable = writable});
    bh_status status = bh__blob_finish(&blob, error, out_blob);
    if (status == BH_OK) {
        memset(&device->modules[slot], 0, sizeof device->modules[slot]);
        device->modules[slot].id = id;
        device->modules[slot].used = true;
    }
    return status;
}

static bh_status module_unload(bh__device_instance *device, uint32_t id, bh_error *error) {
    fake_module *self = fake_module_of(device, id);
    if (!self) return bh__fail(error, BH_E_INTERNAL, defect, "there is no module %u to unload", id);
    self->used = false;
    return BH_OK;
}

fake_module *fake_module_of(bh__device_instance *device, uint32_t id) {
    for (uint32_t i = 0; i < FAKE_MODULES; i++)
        if (device->modules[i].used && device->modules[i].id == id) return &device->modules[i];
    return NULL;
}

static bh_status global_set(bh__device_instance *device, const bh__module_message *where,
                            const void *bytes, size_t count, bh_error *error) {
    fake_module *self = fake_module_of(device, where->id);
    if (!self || !bh__range_fits(where->offset, count, FAKE_VARIABLE_BYTES))
        return bh__fail(error, BH_E_INTERNAL, defect, "no such variable in module %u", where->id);
    memcpy(self->variable + where->offset, bytes, count);
    return BH_OK;
}

static bh_status fit(bh__device_instance *device, const bh__fit_question *question, bh_error *error,
                     bh__fit *out) {
    (void)device, (void)question, (void)error;
    memset(out, 0, sizeof *out);
    out->blocks_per_multiprocessor = 32;
    out->resident = 64;
    out->occupancy = 1;
    out->recommended_block = 32;
    out->recommended_grid = 2;
    out->fitting_threads = 1024;
    return BH_OK;
}

/* ---- lanes ---- */

static bh_status lane_open(bh__device_instance *device, const bh__lane_message *which,
                           bh_error *error, bh__device_lane **out) {
    bh__device_lane *lane = calloc(1, sizeof *lane);
    if (!lane) return no_memory(error);
    lane->device = device;
    lane->index = which->index;
    *out = lane;
    return BH_OK;
}

static void lane_close(bh__device_lane *lane) {
    free(lane);
}

static bh_status execute(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    return fake_execute(lane->device, lane->index, work, error);
}

#define MEMORY_AND_MODULES                                                                         \
    .program = "bulkhead-worker-cpu", .about = "simulated", .open = open_device,                   \
    .close = close_device, .chunk_create = chunk_create, .chunk_map = chunk_map,                   \
    .chunk_unmap = chunk_unmap, .driver_create = driver_create, .driver_advise = driver_advise,    \
    .host_map = host_map, .host_unmap = host_unmap, .module_load = module_load,                    \
    .module_unload = module_unload, .global_set = global_set, .fit = fit

const bh__device_ops fake_device = {
    MEMORY_AND_MODULES,
    .lane_open = lane_open,
    .lane_close = lane_close,
    .execute = execute,
};

const bh__device_ops fake_queued_device = {
    MEMORY_AND_MODULES,
    .traits = BH__TRAIT_OPAQUE_MEMORY | BH__TRAIT_ORDERS_WAIT | BH__TRAIT_ENDS_SLOWLY,
    .lane_open = fake_queue_open,
    .lane_close = fake_queue_close,
    .lane_begin = fake_queue_begin,
    .enqueue = fake_queue_enqueue,
    .enqueue_done = fake_queue_enqueue_done,
    .enqueue_word = fake_queue_enqueue_word,
    .enqueue_wait = fake_queue_enqueue_wait,
    .enqueue_train = fake_queue_enqueue_train,
    .query = fake_queue_query,
    .enqueue_event = fake_queue_enqueue_event,
    .event_wait = fake_queue_event_wait,
    .print_flush = fake_queue_print_flush,
};

void *fake_worker_main(void *unused);
void *fake_worker_main(void *unused) {
    char name[] = "worker";
    char *arguments[] = {name, NULL};
    (void)unused;
    bh__worker_main(1, arguments, sim_device.queues ? &fake_queued_device : &fake_device);
}
