/* SPDX-License-Identifier: Apache-2.0 */
/* The control block: layout and payload copies. */
#include "wire/control.h"

#include <string.h>

static uint64_t page_up(uint64_t bytes) {
    return (bytes + 65535) & ~65535ull;
}

void bh__front_layout(bh__front *front, uint32_t queue_length) {
    front->magic = BH__WIRE_MAGIC;
    front->version = BH__WIRE_VERSION;
    front->queue_length = queue_length;
    front->rings_offset = page_up(sizeof(bh__front));
    front->areas_offset =
        front->rings_offset + page_up((uint64_t)BH__MAX_LANES * queue_length * BH__SLOT_BYTES);
    front->area_bytes =
        bh__area_head_bytes() + page_up((uint64_t)BH__MAX_LANES * queue_length * sizeof(bh__times));
    front->total_bytes = front->areas_offset + BH__AREAS * front->area_bytes;
}

void bh__payload_write(uint8_t *ring, uint32_t queue_length, uint64_t position, size_t offset,
                       const void *data, size_t bytes) {
    if (bytes == 0) return;
    size_t ring_bytes = (size_t)queue_length * BH__SLOT_BYTES;
    size_t at = ((position & (queue_length - 1)) * BH__SLOT_BYTES + BH__PAYLOAD_OFFSET + offset) &
                (ring_bytes - 1);
    size_t first = ring_bytes - at < bytes ? ring_bytes - at : bytes;
    memcpy(ring + at, data, first);
    if (first < bytes) memcpy(ring, (const uint8_t *)data + first, bytes - first);
}

void bh__payload_read(const uint8_t *ring, uint32_t queue_length, uint64_t position, size_t offset,
                      void *data, size_t bytes) {
    if (bytes == 0) return;
    size_t ring_bytes = (size_t)queue_length * BH__SLOT_BYTES;
    size_t at = ((position & (queue_length - 1)) * BH__SLOT_BYTES + BH__PAYLOAD_OFFSET + offset) &
                (ring_bytes - 1);
    size_t first = ring_bytes - at < bytes ? ring_bytes - at : bytes;
    memcpy(data, ring + at, first);
    if (first < bytes) memcpy((uint8_t *)data + first, ring, bytes - first);
}
