/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: of the device for chunks, and of this process, reserved for device memory. */
#include <sys/mman.h>

#include "base/checked.h"
#include "client/memory/memory.h"
#include "client/queue/uses.h"

bool bh__addresses_reserve(uint64_t address, uint64_t bytes) {
    void *wanted = (void *)(uintptr_t)address;
    void *got = mmap(wanted, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == wanted) return true;
    if (got != MAP_FAILED) munmap(got, bytes); /* an old kernel ignores MAP_FIXED_NOREPLACE */
    return false;
}

void bh__addresses_unreserve(uint64_t address, uint64_t bytes) {
    munmap((void *)(uintptr_t)address, bytes);
}

/* ---- addresses of the device ---- */

/* Prefers new addresses: while those of a freed chunk stay unmapped, a use after free faults. */
bool bh__addresses_take(bh__device *device, uint64_t bytes, uint64_t *out) {
    uint64_t unit = device->memory.chunk_granularity, next;
    /* An earlier worker may have had a smaller granularity. */
    if (bh__align_up_u64(device->memory.addresses.next, unit, &next) &&
        next <= device->memory.addresses.limit && bytes <= device->memory.addresses.limit - next) {
        *out = next;
        device->memory.addresses.next = next + bytes;
        return true;
    }
    for (uint32_t i = 0; i < device->memory.addresses.free_count; i++) {
        uint64_t offset = device->memory.addresses.free[i].offset;
        if (device->memory.addresses.free[i].bytes < bytes || offset % unit) continue;
        *out = offset;
        return bh__spans_remove(&device->memory.addresses.free,
                                &device->memory.addresses.free_count,
                                &device->memory.addresses.free_capacity, offset, bytes);
    }
    return false;
}

void bh__addresses_give(bh__device *device, uint64_t offset, uint64_t bytes) {
    /* If there is no host memory, only these addresses are lost. */
    (void)bh__spans_add(&device->memory.addresses.free, &device->memory.addresses.free_count,
                        &device->memory.addresses.free_capacity, offset, bytes);
}
