/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: reference counts, views, casts, queries, accepting bytes in doubt. */
#include "base/checked.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/managed/managed.h"
#include "client/memory/memory.h"
#include "client/queue/doubt.h"
#include "client/queue/queue.h"

/* Locks the device of a buffer and finds it. NULL with nothing locked: the thread's error. */
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
    bool owned = buffer->of_image && buffer->references == 1;
    if (!owned) bh__buffer_drop(device, buffer);
    bh__device_unlock(device);
    if (!owned) return BH_OK;
    return bh__refuse(BH_E_INVALID, "release the image: bh_image_release",
                      "buffer (0x%llx) belongs to an image", (unsigned long long)handle.id);
}

/* Where a view of `count` elements of `element` bytes begins in the buffer, and how many they
 * are. */
static bh_status view_range(const bh__buffer *buffer, bh_type type, uint64_t first, uint64_t *count,
                            uint64_t *out_offset) {
    typedef unsigned long long ull;
    uint64_t element = bh_type_size(type), there = element ? buffer->bytes / element : 0;
    if (element == 0)
        return bh__refuse(BH_E_INVALID, "use one of BH_I8 ... BH_C128, or 0 for the buffer's own",
                          "%u is not an element type", (unsigned)type);
    if (*count == BH_WHOLE && buffer->bytes % element)
        return bh__refuse(BH_E_INVALID, "view a whole number of the new elements",
                          "%llu bytes are no whole number of elements of %llu bytes (%s)",
                          (ull)buffer->bytes, (ull)element, bh_type_name(type));
    if (*count == BH_WHOLE && first <= there) *count = there - first;
    if (!bh__range_fits(first, *count, there))
        return bh__refuse(BH_E_INVALID, "stay within the buffer",
                          "%llu elements from element %llu on, of a buffer of %llu (%s)",
                          (ull)*count, (ull)first, (ull)there, bh_type_name(type));
    *out_offset = buffer->offset + first * element;
    uint64_t address = buffer->memory->address + *out_offset;
    if (address % element)
        return bh__refuse(BH_E_INVALID, "begin the view where an element of that type can lie",
                          "the address 0x%llx is not a multiple of %llu bytes (%s)", (ull)address,
                          (ull)element, bh_type_name(type));
    return BH_OK;
}

bh_status bh_buffer_view(bh_buffer handle, bh_type type, uint64_t first, uint64_t count,
                         bh_buffer *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the view", "out is NULL");
    bh__device *device;
    bh__buffer *buffer = buffer_lock(handle, false, &device);
    if (!buffer) return bh__last()->status;
    if (type == 0) type = buffer->type;
    uint64_t offset = 0;
    bh_status status = view_range(buffer, type, first, &count, &offset);
    if (status == BH_OK)
        status = bh__buffer_add(device, buffer->memory, type, offset, count, true, out);
    if (status == BH_OK) buffer->memory->references++;
    bh__device_unlock(device);
    return status;
}

bh_status bh_buffer_get_info(bh_buffer handle, bh_buffer_info *out) {
    if (bh__sized_check(out, "bh_buffer_info") != BH_OK) return BH_E_INVALID;
    bh__device *device;
    bh__buffer *buffer = buffer_lock(handle, false, &device);
    if (!buffer) return bh__last()->status;
    const bh__memory *memory = buffer->memory;
    /* Requests that have completed may clear doubt: update all lanes first. */
    for (uint32_t i = 0; bh__doubt_any(memory) && i < device->queue.lane_limit; i++)
        (void)bh__lane_done(device, &device->lanes[i]);
    bh_buffer_info info = {.size = out->size,
                           .type = buffer->type,
                           .count = buffer->count,
                           .bytes = buffer->bytes,
                           .address = memory->address + buffer->offset,
                           .read_only_address = memory->read_only_address + buffer->offset,
                           .device = {atomic_load(&device->id)},
                           .is_view = buffer->is_view,
                           .flags = bh__managed_flags(memory)};
    if (memory->dedicated && memory->dedicated->grant) info.flags |= BH_BUFFER_SHAREABLE;
    uint8_t *mirror = bh__managed_pointer(memory);
    if (mirror) info.pointer = mirror + buffer->offset;
    if (memory->use_count && memory->last_write.lane) {
        info.last_write = memory->last_write;
        info.last_writer.id = memory->last_writer;
    }
    uint64_t from = UINT64_MAX, to = 0;
    if (memory->doubt_whole) {
        from = buffer->offset;
        to = from + buffer->bytes;
    }
    for (uint32_t i = 0; i < memory->doubt_count; i++) {
        uint64_t low = memory->doubt[i].offset, high = low + memory->doubt[i].bytes;
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
    bh__sized_give(out, &info, sizeof info);
    return BH_OK;
}

bh_status bh_buffer_accept(bh_buffer handle) {
    bh__device *device;
    bh__buffer *buffer = buffer_lock(handle, false, &device);
    if (!buffer) return bh__last()->status;
    bh__managed *managed = buffer->memory->managed;
    if (managed) bh__managed_accepting(device, managed, buffer->offset, buffer->bytes);
    bool accepted = bh__doubt_accept(device, buffer->memory, buffer->offset, buffer->bytes);
    if (managed) bh__managed_accepted(device, managed);
    bh__device_unlock(device);
    return accepted
               ? BH_OK
               : bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory, or accept the whole buffer",
                            "no host memory to record which bytes of the buffer are suspect");
}
