/* SPDX-License-Identifier: Apache-2.0 */
/* Buffer records: one for each buffer handle. Several may share one memory record. */
#include "base/checked.h"
#include "client/core/handles.h"
#include "client/memory/memory.h"

bh_status bh__buffer_add(bh__device *device, bh__memory *memory, bh_type type, uint64_t offset,
                         uint64_t count, bool view, bh_buffer *out) {
    bh__buffer *buffer =
        view ? bh__records_take(&device->memory.buffer_records, sizeof *buffer, 0) : &memory->first;
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
        if (view) bh__records_give(&device->memory.buffer_records, buffer);
        return status;
    }
    out->id = buffer->id;
    return BH_OK;
}

void bh__buffer_drop(bh__device *device, bh__buffer *buffer) {
    if (--buffer->references != 0) return;
    bh__memory *memory = buffer->memory;
    bh__handle_remove(device, buffer->id);
    if (buffer != &memory->first) bh__records_give(&device->memory.buffer_records, buffer);
    bh__memory_release(device, memory);
    if (bh__guarded(device)) bh__dedicated_settle(device);
}

bh_status bh__buffer_bytes(bh_type type, uint64_t count, uint64_t *out) {
    uint64_t element = bh_type_size(type);
    if (element == 0) {
        return bh__refuse(BH_E_INVALID, "use one of BH_I8 ... BH_C128",
                          "type is %u, which is not an element type", (unsigned)type);
    }
    if (!bh__mul_u64(count, element, out)) {
        return bh__refuse(BH_E_NO_MEMORY, "allocate fewer elements",
                          "%llu elements of %llu bytes are more than 2^64 bytes",
                          (unsigned long long)count, (unsigned long long)element);
    }
    return BH_OK;
}

bh_status bh__buffer_range(const char *what, uint64_t offset, uint64_t bytes,
                           const bh__buffer *buffer) {
    if (bh__range_fits(offset, bytes, buffer->bytes)) return BH_OK;
    return bh__refuse(BH_E_INVALID, "stay within the buffer",
                      "%s: %llu bytes at offset %llu do not fit a buffer of %llu bytes", what,
                      (unsigned long long)bytes, (unsigned long long)offset,
                      (unsigned long long)buffer->bytes);
}
