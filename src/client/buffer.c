/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: cut from chunks, typed, counted, viewed. */
#include <string.h>

#include "base/checked.h"
#include "client/doubt.h"

enum { MOST_ALIGN = 64 * 1024 };

static bh_status buffer_add(bh__device *device, bh__memory *memory, bh_type type, uint64_t offset,
                            uint64_t count, bool view, bh_buffer *out) {
    bh__buffer *buffer =
        view ? bh__records_take(&device->buffer_records, sizeof *buffer, 0) : &memory->first;
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
        if (view) bh__records_give(&device->buffer_records, buffer);
        return status;
    }
    out->id = buffer->id;
    return BH_OK;
}

static bh_status take_options(const bh_buffer_options *given, bh_buffer_options *out) {
    *out = (bh_buffer_options)BH_INIT(*out);
    if (given) {
        if (given->size < 2 * sizeof(uint32_t) || given->size > 4096)
            return bh__refuse(BH_E_INVALID, "initialise the struct with BH_INIT",
                              "bh_buffer_options.size is %u", given->size);
        memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    }
    if (out->flags & ~(uint32_t)BH_BUFFER_ZERO)
        return bh__refuse(BH_E_INVALID, "use flags of this version",
                          "bh_buffer_options.flags is 0x%x", out->flags);
    if (out->align && (!bh__is_power_of_two(out->align) || out->align > MOST_ALIGN))
        return bh__refuse(BH_E_INVALID, "align to a power of two of at most 65536",
                          "bh_buffer_options.align is %llu", (unsigned long long)out->align);
    return BH_OK;
}

bh_status bh__buffer_bytes(bh_type type, uint64_t count, uint64_t *out) {
    uint64_t element = bh_type_size(type);
    if (element == 0) {
        return bh__refuse(BH_E_INVALID, "use one of BH_I8 ... BH_F64", "%u is not an element type",
                          (unsigned)type);
    }
    if (count == 0) return bh__refuse(BH_E_INVALID, "ask for at least one element", "count is 0");
    if (!bh__mul_u64(count, element, out)) {
        return bh__refuse(BH_E_NO_MEMORY, "ask for less",
                          "%llu elements of %llu bytes are more than 2^64 bytes",
                          (unsigned long long)count, (unsigned long long)element);
    }
    return BH_OK;
}

static bh_status memory_cut(bh__device *device, uint64_t bytes, uint64_t align, bh__memory **out) {
    bh__memory *memory = bh__memory_new(device);
    if (!memory)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a buffer's record");
    if (align < BH__HEAP_ALIGN) align = BH__HEAP_ALIGN;
    bh__block *block = bh__block_alloc(device, bytes, align);
    if (!block) {
        bh__memory_delete(device, memory);
        return bh__last()->status;
    }
    memory->block = block;
    memory->bytes = bytes;
    memory->address = block->address;
    memory->read_only_address = block->address - device->address_base + device->read_only_base;
    if (bh__checked(device)) bh__check_hand_out(device, memory);
    *out = memory;
    return BH_OK;
}

/* With the lock held, let go of while a chunk is made. */
static bh_status memory_alloc(bh__device *device, uint64_t bytes, const bh_buffer_options *options,
                              bh__memory **out) {
    bh__tag *tag = bh__tag_begin(device, options->tag, bytes);
    if (!tag) return bh__last()->status;
    bh_status status = bh__guarded(device)
                           ? bh__solo_create(device, bytes, options->align, BH__SOLO_GUARDED, out)
                           : memory_cut(device, bytes, options->align, out);
    bh__tag_end(tag, bytes, status == BH_OK ? *out : NULL);
    return status;
}

static bh_status buffer_alloc(bh_device handle, bh_type type, uint64_t count,
                              const bh_buffer_options *options, const void *call_site,
                              bh_buffer *out) {
    uint64_t bytes = 0;
    if (bh__buffer_bytes(type, count, &bytes) != BH_OK) return bh__last()->status;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bh__memory *memory = NULL;
    bh_status status = memory_alloc(device, bytes, options, &memory);
    if (status == BH_OK) {
        memory->call_site = call_site;
        status = buffer_add(device, memory, type, 0, count, false, out);
        if (status == BH_OK) {
            bh__usage_add(device, memory);
        } else {
            bh__tag_discharge(memory->tag, bytes);
            bh__memory_drop(device, memory);
        }
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh_buffer_alloc(bh_device device, bh_type type, uint64_t count, bh_buffer *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the buffer", "out is NULL");
    bh_buffer_options options = {.size = sizeof options};
    return buffer_alloc(device, type, count, &options, __builtin_return_address(0), out);
}

bh_status bh_buffer_alloc_with(bh_device device, bh_type type, uint64_t count,
                               const bh_buffer_options *given, bh_buffer *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the buffer", "out is NULL");
    bh_buffer_options options;
    if (take_options(given, &options) != BH_OK) return bh__last()->status;
    bh_buffer made;
    bh_status status =
        buffer_alloc(device, type, count, &options, __builtin_return_address(0), &made);
    if (status != BH_OK) return status;
    if (options.flags & BH_BUFFER_ZERO) {
        status = bh__submit_zeros(made, count * bh_type_size(type));
        if (status != BH_OK) {
            bh_error why = *bh__last();
            (void)bh_buffer_release(made);
            return bh__refuse_with(&why);
        }
    }
    *out = made;
    return BH_OK;
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
        bh__memory *memory = buffer->memory;
        bh__handle_remove(device, buffer->id);
        if (buffer != &memory->first) bh__records_give(&device->buffer_records, buffer);
        bh__memory_release(device, memory);
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

bh_status bh_buffer_cast(bh_buffer handle, bh_type type, bh_buffer *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the view", "out is NULL");
    uint64_t element = bh_type_size(type);
    if (element == 0)
        return bh__refuse(BH_E_INVALID, "use one of BH_I8 ... BH_F64", "%u is not an element type",
                          (unsigned)type);
    bh__device *device;
    bh__buffer *buffer = buffer_lock(handle, false, &device);
    if (!buffer) return bh__last()->status;
    bh_status status;
    uint64_t address = buffer->memory->address + buffer->offset;
    if (buffer->bytes % element) {
        status = bh__refuse(BH_E_INVALID, "view a whole number of the new elements first",
                            "%llu bytes are no whole number of elements of %llu bytes (%s)",
                            (unsigned long long)buffer->bytes, (unsigned long long)element,
                            bh_type_name(type));
    } else if (address % element) {
        status = bh__refuse(BH_E_INVALID, "begin the view where an element of that type can lie",
                            "the address 0x%llx is not a multiple of %llu bytes (%s)",
                            (unsigned long long)address, (unsigned long long)element,
                            bh_type_name(type));
    } else {
        status = buffer_add(device, buffer->memory, type, buffer->offset, buffer->bytes / element,
                            true, out);
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
    /* What has completed by now clears doubt. */
    for (uint32_t i = 0; bh__doubt_any(memory) && i < device->lane_limit; i++)
        (void)bh__lane_done(device, &device->lanes[i]);
    bh_buffer_info info = {.size = out->size,
                           .type = buffer->type,
                           .count = buffer->count,
                           .bytes = buffer->bytes,
                           .address = memory->address + buffer->offset,
                           .read_only_address = memory->read_only_address + buffer->offset,
                           .device = {atomic_load(&device->id)},
                           .is_view = buffer->is_view};
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
    bh__doubt_accept(device, buffer->memory, buffer->offset, buffer->bytes);
    if (buffer->memory->managed) bh__managed_accepted(device, buffer->memory->managed);
    bh__device_unlock(device);
    return BH_OK;
}

/* ---- for those who make memory in other ways ---- */

bh_status bh__buffer_add(bh__device *device, bh__memory *memory, bh_type type, uint64_t offset,
                         uint64_t count, bh_buffer *out) {
    return buffer_add(device, memory, type, offset, count, false, out);
}
