/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: cut from chunks, typed, counted, viewed. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/trace.h"

enum { FIRST_CHUNK = 32 << 20 };
#define LARGEST_CHUNK ((uint64_t)1 << 30)

/* ---- chunks ---- */

/* Chunks double as the device fills, so that there are never many of them. */
static uint64_t chunk_size_for(const bh__device *device, uint64_t bytes) {
    uint64_t size = FIRST_CHUNK;
    while (size < device->heap.bytes_total && size < LARGEST_CHUNK) size *= 2;
    uint64_t limit = bh__pool_limit(device);
    uint64_t left = limit > device->heap.bytes_total ? limit - device->heap.bytes_total : 0;
    if (size < bytes) size = bytes;
    if (size > left) size = left > bytes ? left : bytes;
    uint64_t unit = device->chunk_granularity;
    return (size + unit - 1) / unit * unit;
}

static bh_status refuse_memory(bh__device *device, uint64_t bytes) {
    uint64_t limit = device->options.memory_limit;
    return bh__refuse(
        BH_E_NO_MEMORY, "free buffers, or raise memory_limit if the device has more",
        "%llu bytes asked for; the device holds %llu of at most %llu, %llu of them in buffers; the largest free piece is %llu",
        (unsigned long long)bytes,
        (unsigned long long)(device->heap.bytes_total + device->solo_bytes),
        (unsigned long long)limit, (unsigned long long)device->bytes_allocated,
        (unsigned long long)bh__heap_largest_free(&device->heap));
}

/* Takes back a chunk that is wholly free, so that its size can be asked for anew. */
static bool trim_one(bh__device *device) {
    uint32_t id;
    if (!bh__heap_take_free_chunk(&device->heap, &id)) return false;
    uint32_t at = 0;
    while (device->chunks[at].chunk.id != id) at++;
    int fd = device->chunks[at].fd;
    bh__check_unmap(&device->chunks[at]);
    bh__job job = {
        .kind = BH__JOB_ORDER,
        .order = {.type = BH__MSG_CHUNK_UNMAP, .chunk = device->chunks[at].chunk, .fd = -1}};
    device->chunks[at] = device->chunks[--device->chunk_count];
    (void)bh__order_run(device, &job);
    bh__fd_close(fd);
    device->tally.chunks_trimmed++;
    bh__trace_instant(device, "memory trimmed", "reserved", device->heap.bytes_total, NULL);
    return true;
}

/* Adds a chunk large enough for `bytes`. The lock is let go while the worker makes it; one thread
 * at a time grows. */
static bh_status grow(bh__device *device, uint64_t bytes) {
    uint64_t unit = device->chunk_granularity, limit = bh__pool_limit(device);
    if (bytes > limit || bytes > UINT64_MAX - unit) return refuse_memory(device, bytes);
    uint64_t size = chunk_size_for(device, bytes);
    while (size > limit - device->heap.bytes_total || device->heap.bytes_total > limit) {
        if (!trim_one(device)) return refuse_memory(device, bytes);
        size = chunk_size_for(device, bytes);
    }
    if (size > device->address_limit - device->next_address) {
        return bh__refuse(BH_E_NO_MEMORY, "free buffers earlier, or close and reopen the device",
                          "the device's address range of %llu bytes is used up",
                          (unsigned long long)device->address_limit);
    }
    bh__chunk chunk = {.id = device->next_chunk_id++,
                       .bytes = size,
                       .address = device->address_base + device->next_address,
                       .read_only_address = device->read_only_base + device->next_address};
    device->next_address += size;
    bh__job job = {.kind = BH__JOB_ORDER,
                   .order = {.type = BH__MSG_CHUNK_CREATE, .chunk = chunk, .fd = -1}};
    bh_status status = bh__order_run(device, &job);
    if (status != BH_OK) return status;
    chunk = job.order.chunk; /* it may have been made elsewhere in the end */
    if (!bh__heap_add_chunk(&device->heap, chunk.id, chunk.address, chunk.bytes)) {
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory to note a chunk");
    }
    device->tally.chunks_made++;
    bh__trace_instant(device, "memory grown", "reserved", device->heap.bytes_total, NULL);
    return BH_OK;
}

static bh__block *block_alloc(bh__device *device, uint64_t bytes) {
    if (bh__checked(device) && !bh__add_u64(bytes, BH__CHECK_GAP, &bytes)) {
        refuse_memory(device, bytes);
        return NULL;
    }
    for (bool hit = true;; hit = false) {
        bool out_of_host;
        if (device->leaving) bh__memory_sweep(device);
        bh__block *block = bh__heap_alloc(&device->heap, bytes, &out_of_host);
        if (block) {
            device->tally.allocations++;
            device->tally.pool_hits += hit;
            return block;
        }
        if (out_of_host) {
            bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory to note a buffer");
            return NULL;
        }
        uint64_t rounded;
        if (!bh__align_up_u64(bytes, BH__HEAP_ALIGN, &rounded)) {
            refuse_memory(device, bytes);
            return NULL;
        }
        bh_status status = grow(device, rounded ? rounded : BH__HEAP_ALIGN);
        if (status != BH_OK && !(status == BH_E_NO_MEMORY && bh__check_relent(device))) return NULL;
        if (device->state == BH_DEVICE_STOPPED) {
            bh__refuse_with(&device->stop_reason);
            return NULL;
        }
    }
}

/* ---- buffers ---- */

static bh_status buffer_add(bh__device *device, bh__memory *memory, bh_type type, uint64_t offset,
                            uint64_t count, bool view, bh_buffer *out) {
    bh__buffer *buffer = bh__records_take(&device->buffer_records, sizeof *buffer);
    if (!buffer)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a buffer's record");
    *buffer = (bh__buffer){.memory = memory,
                           .offset = offset,
                           .bytes = count * bh_type_size(type),
                           .count = count,
                           .type = type,
                           .is_view = view,
                           .references = 1};
    bh_status status = bh__handle_add(device, BH__KIND_BUFFER, buffer, &buffer->id);
    if (status != BH_OK) {
        bh__records_give(&device->buffer_records, buffer);
        return status;
    }
    out->id = buffer->id;
    return BH_OK;
}

bh_status bh_buffer_alloc(bh_device handle, bh_type type, uint64_t count, bh_buffer *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the buffer", "out is NULL");
    uint64_t bytes, element = bh_type_size(type);
    if (element == 0) {
        return bh__refuse(BH_E_INVALID, "use one of BH_I8 ... BH_F64", "%u is not an element type",
                          (unsigned)type);
    }
    if (count == 0) return bh__refuse(BH_E_INVALID, "ask for at least one element", "count is 0");
    if (!bh__mul_u64(count, element, &bytes)) {
        return bh__refuse(BH_E_NO_MEMORY, "ask for less",
                          "%llu elements of %llu bytes are more than 2^64 bytes",
                          (unsigned long long)count, (unsigned long long)element);
    }
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bh_status status = BH_OK;
    if (bh__guarded(device)) {
        status = bh__solo_alloc(device, type, count, bytes, BH__SOLO_GUARDED, out);
        bh__device_unlock(device);
        return status;
    }
    bh__memory *memory = bh__memory_new(device);
    bh__block *block = memory ? block_alloc(device, bytes) : NULL;
    if (!memory) {
        status = bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                            "no host memory for a buffer's record");
    } else if (!block) {
        status = bh__last()->status;
    } else {
        memory->block = block;
        memory->bytes = bytes;
        memory->address = block->address;
        memory->read_only_address = block->address - device->address_base + device->read_only_base;
        memory->type = type;
        memory->count = count;
        status = buffer_add(device, memory, type, 0, count, false, out);
    }
    if (status == BH_OK) {
        if (bh__checked(device)) bh__check_hand_out(device, memory);
        device->buffer_count++;
        device->bytes_allocated += bytes;
    } else {
        if (block) bh__heap_free(&device->heap, block);
        if (memory) bh__memory_delete(device, memory);
    }
    bh__device_unlock(device);
    return status;
}

/* Locks the device of a buffer and finds it; NULL with nothing locked and the thread's error set.
 */
static bh__buffer *buffer_lock(bh_buffer handle, bool running, bh__device **out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_BUFFER, "buffer", running);
    if (!device) return NULL;
    bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, "buffer");
    if (!buffer) {
        bh__device_unlock(device);
        return NULL;
    }
    *out = device;
    return buffer;
}

bh_status bh_buffer_retain(bh_buffer handle) {
    bh__device *device;
    bh__buffer *buffer = buffer_lock(handle, false, &device);
    if (!buffer) return bh__last()->status;
    bh_status status = BH_OK;
    if (buffer->references == UINT32_MAX) {
        status = bh__refuse(BH_E_INVALID, "release references that are no longer needed",
                            "the buffer has %u references", buffer->references);
    } else {
        buffer->references++;
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh_buffer_release(bh_buffer handle) {
    bh__device *device;
    bh__buffer *buffer = buffer_lock(handle, false, &device);
    if (!buffer) return bh__last()->status;
    if (--buffer->references == 0) {
        bh__memory_release(device, buffer->memory);
        bh__handle_remove(device, buffer->id);
        bh__records_give(&device->buffer_records, buffer);
        if (bh__guarded(device)) bh__solo_settle(device);
    }
    bh__device_unlock(device);
    return BH_OK;
}

bh_status bh_buffer_view(bh_buffer handle, uint64_t first, uint64_t count, bh_buffer *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the view", "out is NULL");
    bh__device *device;
    bh__buffer *buffer = buffer_lock(handle, false, &device);
    if (!buffer) return bh__last()->status;
    bh_status status;
    if (count == 0 || !bh__range_fits(first, count, buffer->count)) {
        status = bh__refuse(BH_E_INVALID, "view at least one element, within the buffer",
                            "%llu elements from element %llu on, of a buffer of %llu",
                            (unsigned long long)count, (unsigned long long)first,
                            (unsigned long long)buffer->count);
    } else {
        status = buffer_add(device, buffer->memory, buffer->type,
                            buffer->offset + first * bh_type_size(buffer->type), count, true, out);
        if (status == BH_OK) buffer->memory->references++;
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh_buffer_query(bh_buffer handle, bh_buffer_info *out) {
    if (!out || out->size < sizeof(uint32_t) * 2) {
        return bh__refuse(BH_E_INVALID, "initialise the struct with BH_INIT",
                          "out is NULL or its size is not set");
    }
    bh__device *device;
    bh__buffer *buffer = buffer_lock(handle, false, &device);
    if (!buffer) return bh__last()->status;
    const bh__memory *memory = buffer->memory;
    bh_buffer_info info = {.size = out->size,
                           .type = buffer->type,
                           .count = buffer->count,
                           .bytes = buffer->bytes,
                           .address = memory->address + buffer->offset,
                           .read_only_address = memory->read_only_address + buffer->offset,
                           .device = {atomic_load(&device->id)},
                           .is_view = buffer->is_view};
    uint64_t from = UINT64_MAX, to = 0;
    for (uint32_t i = 0; i < memory->suspect_count; i++) {
        uint64_t low = memory->suspect[i].offset, high = low + memory->suspect[i].bytes;
        if (low < buffer->offset) low = buffer->offset;
        if (high > buffer->offset + buffer->bytes) high = buffer->offset + buffer->bytes;
        if (low >= high) continue;
        if (low < from) from = low;
        if (high > to) to = high;
    }
    if (from < to) {
        info.suspect = 1;
        info.suspect_offset = from - buffer->offset;
        info.suspect_bytes = to - from;
    }
    bh__device_unlock(device);
    memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
    return BH_OK;
}

bh_status bh_buffer_address(bh_buffer handle, uint64_t *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the address", "out is NULL");
    bh__device *device;
    bh__buffer *buffer = buffer_lock(handle, false, &device);
    if (!buffer) return bh__last()->status;
    *out = buffer->memory->address + buffer->offset;
    bh__device_unlock(device);
    return BH_OK;
}

bh_status bh_buffer_accept(bh_buffer handle) {
    bh__device *device;
    bh__buffer *buffer = buffer_lock(handle, false, &device);
    if (!buffer) return bh__last()->status;
    bh__suspect_accept(device, buffer->memory, buffer->offset, buffer->bytes);
    if (buffer->memory->managed) bh__managed_accepted(device, buffer->memory->managed);
    bh__device_unlock(device);
    return BH_OK;
}

/* ---- for those who make memory in other ways ---------------------------------------------------- */

bh_status bh__buffer_add(bh__device *device, bh__memory *memory, bh_type type, uint64_t offset,
                         uint64_t count, bh_buffer *out) {
    return buffer_add(device, memory, type, offset, count, false, out);
}

void bh__buffer_count(bh__device *device, const bh__memory *memory) {
    device->buffer_count++;
    device->bytes_allocated += memory->bytes;
}

bool bh__pool_trim(bh__device *device) {
    return trim_one(device);
}
