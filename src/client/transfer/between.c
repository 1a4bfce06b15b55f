/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between buffers of two devices: through host memory. */
#include <stdlib.h>

#include "base/checked.h"
#include "client/core/handles.h"
#include "client/transfer/transfer.h"

typedef unsigned long long ull;

enum { BOUNCE_BYTES = 8 << 20 };

/* The thread has entered the device. */
static void count_between(bh__device *device, uint64_t bytes) {
    bh__device_step_in(device);
    device->counters.bytes_between += bytes;
    bh__device_step_out(device);
}

/* Copies through host memory. */
static bh_status copy_through_host(bh_buffer target, uint64_t target_offset, bh_buffer source,
                                   uint64_t source_offset, uint64_t bytes) {
    uint64_t part_bytes = bytes < BOUNCE_BYTES ? bytes : BOUNCE_BYTES;
    uint8_t *bounce = malloc(part_bytes);
    if (!bounce)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a bounce buffer of %llu bytes", (ull)part_bytes);
    bh__call call;
    bh_status status = bh__call_begin(target, target_offset, bytes, &call);
    bool begun = status == BH_OK;
    bh_ticket last = {0, 0};
    for (uint64_t done = 0; done < bytes && status == BH_OK;) {
        uint64_t part = bytes - done < part_bytes ? bytes - done : part_bytes;
        status = bh_buffer_read(source, source_offset + done, bounce, part);
        /* This returns once `bounce` is copied: the write overlaps the read of the next part. */
        if (status == BH_OK)
            status = bh__write_pieces(&(bh__route){.lane = {0}}, target, target_offset + done,
                                      bounce, part, &call, &last);
        done += part;
    }
    free(bounce);
    if (status == BH_OK) count_between(call.device, bytes);
    if (begun) status = bh__call_finish(&call, status);
    return status == BH_OK && last.lane ? bh_wait(last, BH_FOREVER) : status;
}

static bh_status check_side(const char *what, bh_buffer handle, uint64_t offset, uint64_t bytes) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_BUFFER, what, true);
    if (!device) return bh__last()->status;
    const bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, what);
    bh_status status = buffer ? BH_OK : bh__last()->status;
    if (buffer && !bh__range_fits(offset, bytes, buffer->bytes))
        status = bh__refuse(BH_E_INVALID, "stay within the buffer",
                            "the %s: %llu bytes at offset %llu do not fit a buffer of %llu bytes",
                            what, (ull)bytes, (ull)offset, (ull)buffer->bytes);
    bh__device_unlock(device);
    return status;
}

bh_status bh__copy_between(bh_buffer target, uint64_t target_offset, bh_buffer source,
                           uint64_t source_offset, uint64_t bytes) {
    bh_status status = check_side("source", source, source_offset, bytes);
    if (status == BH_OK) status = check_side("target", target, target_offset, bytes);
    if (status != BH_OK || bytes == 0) return status;
    return copy_through_host(target, target_offset, source, source_offset, bytes);
}
