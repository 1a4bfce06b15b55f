/* SPDX-License-Identifier: Apache-2.0 */
/* Reading buffers of a device that has stopped. Intact bytes are read through a second device, the
 * reader, which maps the memory and runs no kernels. It is opened by the first such read. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/device/device.h"
#include "client/managed/managed.h"
#include "client/memory/memory.h"
#include "client/process/kinds.h"
#include "client/queue/doubt.h"
#include "client/queue/uses.h"

/* Serializes opening readers. Taken with no other lock held. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static bh_status open_reader(bh__device *device) {
    char name[32], folder[sizeof device->workers.worker_path];
    snprintf(folder, sizeof folder, "%s", device->workers.worker_path);
    char *end = strrchr(folder, '/');
    if (end) *end = 0;
    bh__device_name_write(device->kind, device->device_index, name, sizeof name);
    bh_device_options options = BH_INIT(options);
    options.device = name;
    options.worker_dir = end ? folder : NULL;
    options.flags = BH_DEVICE_NO_STANDBY | BH_DEVICE_PRIVATE;
    options.stuck_timeout_ns = device->options.stuck_timeout_ns;
    bh_device made;
    bh_status status = bh_device_open(&options, &made);
    bh__device *reader =
        status == BH_OK ? bh__device_lock(made.id, BH__KIND_DEVICE, "device", false) : NULL;
    if (!reader) return bh__last()->status;
    reader->is_reader = true;
    bh__device_unlock(reader);
    device->reader = made;
    return BH_OK;
}

static bh_status get_reader(bh__device *device, bh_device *out) {
    pthread_mutex_lock(&opening);
    bh_status status = device->reader.id ? BH_OK : open_reader(device);
    *out = device->reader;
    pthread_mutex_unlock(&opening);
    return status;
}

/* Where bytes of a stopped device are: at `offset` in the chunk with this descriptor. */
typedef struct place {
    uint64_t chunk_bytes, offset, bytes;
    int fd; /* Owned. */
} place;

/* Makes a buffer of the reader over these bytes. Takes ownership of the descriptor. */
static bh_status adopt(bh_device reader, const place *where, bh_buffer *out) {
    bh__device *device = bh__device_lock(reader.id, BH__KIND_DEVICE, "device", true);
    bh__memory *memory = NULL;
    bh_status status = device ? bh__tag_charge(device, &device->memory.untagged, where->bytes)
                              : bh__last()->status;
    if (status == BH_OK) {
        status = bh__dedicated_adopt(device, where->chunk_bytes, where->offset, where->bytes,
                                     where->fd, &memory);
        if (status != BH_OK) bh__tag_discharge(&device->memory.untagged, where->bytes);
    }
    if (status != BH_OK) {
        if (device) bh__device_unlock(device);
        bh__fd_close(where->fd);
        return status;
    }
    bh__tag_attach(&device->memory.untagged, memory);
    status = bh__buffer_add(device, memory, BH_U8, 0, where->bytes, false, out);
    if (status == BH_OK) {
        bh__usage_add(device, memory);
    } else {
        bh_error why = *bh__last();
        bh__tag_discharge(memory->tag, where->bytes);
        bh__dedicated_give_back(device, memory);
        bh__dedicated_settle(device);
        bh__refuse_with(&why);
    }
    bh__device_unlock(device);
    return status;
}

static bh_status read_through_reader(bh__device *device, const place *where, void *target) {
    bh_device reader;
    bh_buffer adopted;
    bh_status status = get_reader(device, &reader);
    if (status != BH_OK) {
        bh__fd_close(where->fd);
        return status;
    }
    status = adopt(reader, where, &adopted);
    if (status != BH_OK) return status;
    status = bh_buffer_read(adopted, 0, target, where->bytes);
    bh_error why = *bh__last();
    bh_buffer_release(adopted);
    return status == BH_OK ? BH_OK : bh__refuse_with(&why);
}

/* Returns false if the bytes are in no chunk, or the descriptor cannot be duplicated. Called with
 * the device locked. */
static bool find_place(bh__device *device, const bh__memory *memory, uint64_t offset,
                       uint64_t bytes, place *out) {
    uint64_t address = memory->address + offset;
    for (uint32_t i = 0; i < device->memory.chunk_count; i++) {
        const bh__chunk *chunk = &device->memory.chunks[i].chunk;
        if (address < chunk->address || address - chunk->address >= chunk->bytes) continue;
        int fd = fcntl(device->memory.chunks[i].fd, F_DUPFD_CLOEXEC, 0);
        if (fd < 0) return false;
        *out = (place){chunk->bytes, address - chunk->address, bytes, bh__fd_keep(fd)};
        return true;
    }
    return false;
}

bh_status bh__read_memory(bh__device *device, const bh__memory *memory, uint64_t offset,
                          uint64_t bytes, void *target) {
    place where;
    if (device->workers.broken || device->is_reader ||
        !find_place(device, memory, offset, bytes, &where))
        return bh__refuse(BH_E_STOPPED, "open the device again and repeat the work",
                          "the memory of a device that has stopped cannot be reached");
    bh__device_step_out(device);
    bh_status status = read_through_reader(device, &where, target);
    bh__device_step_in(device);
    return status;
}

/* Reads bytes of a buffer: those of a managed buffer from where they are newest. Called with the
 * memory retained; releases the lock meanwhile. */
static bh_status read_newest(bh__device *device, const bh__memory *memory, uint64_t offset,
                             uint8_t *target, uint64_t bytes) {
    while (bytes) {
        uint64_t run = bytes;
        const uint8_t *host = bh__managed_host_run(memory, offset, &run);
        bh_status status = BH_OK;
        if (host)
            memcpy(target, host, run);
        else
            status = bh__read_memory(device, memory, offset, run, target);
        if (status != BH_OK) return status;
        offset += run;
        target += run;
        bytes -= run;
    }
    return BH_OK;
}

bh_status bh__read_stopped(bh_buffer handle, uint64_t offset, void *target, uint64_t bytes) {
    bh_error why = *bh__last();
    bh__device *device = bh__device_lock(handle.id, BH__KIND_BUFFER, "buffer", false);
    if (!device) return bh__refuse_with(&why);
    bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, "buffer");
    bool readable = buffer && !bh__is_closing(device) && !device->workers.broken &&
                    !device->is_reader && atomic_load(&device->state) == BH__DEVICE_STOPPED &&
                    !bh__driver_managed_of(buffer->memory);
    bh_status status = BH_OK;
    if (!readable) {
        status = buffer ? bh__refuse_with(&why) : bh__last()->status;
    } else if (offset > buffer->bytes || bytes > buffer->bytes - offset || (!target && bytes)) {
        status = bh__refuse(BH_E_INVALID, "stay within the buffer, and pass memory of that size",
                            "read of %llu bytes at offset %llu of a buffer of %llu bytes, to %p",
                            (unsigned long long)bytes, (unsigned long long)offset,
                            (unsigned long long)buffer->bytes, target);
    } else if (bytes && bh__doubt_reads(device, buffer->memory, buffer->offset + offset, bytes,
                                        UINT64_MAX)) {
        status =
            bh__refuse(BH_E_STALE, "accept the contents with bh_buffer_accept",
                       "bytes %llu to %llu may have been left half written by a lost worker, and "
                       "the device has stopped",
                       (unsigned long long)offset, (unsigned long long)(offset + bytes));
    }
    if (status != BH_OK || bytes == 0) {
        bh__device_unlock(device);
        return status;
    }
    bh__memory *memory = buffer->memory;
    memory->references++;
    status = read_newest(device, memory, buffer->offset + offset, target, bytes);
    bh_error because = *bh__last();
    bh__memory_release(device, memory);
    bh__device_unlock(device);
    if (status == BH_OK) return BH_OK;
    return bh__refuse(BH_E_STOPPED, why.fix, "%.250s; the buffer cannot be read either: %.200s",
                      why.message, because.message);
}
