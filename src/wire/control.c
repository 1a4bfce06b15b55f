/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of the control block. */
#include "wire/control.h"

static uint64_t page_up(uint64_t bytes) {
    return (bytes + 65535) & ~65535ull;
}

void bh__front_layout(bh__front *front, uint32_t queue_length) {
    front->magic = BH__WIRE_MAGIC;
    front->version = BH__WIRE_VERSION;
    front->queue_length = queue_length;
    front->rings_offset = bh__rings_offset();
    front->front_bytes =
        front->rings_offset + page_up((uint64_t)BH__MAX_LANES * queue_length * BH__SLOT_BYTES);
    front->area_bytes = bh__timed_offset(queue_length) +
                        page_up((uint64_t)BH__MAX_LANES * BH__TIMED * sizeof(bh__timed));
}
