/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: bytes of a buffer that a transfer in several requests has to itself while it submits
 * them. Other work on these bytes is submitted before the first request or after the last one. So
 * the transfer is ordered as a whole, although the worker runs its requests one by one.
 *
 * All fields are written with the lock held. A thread that waits for a lease holds nothing: no
 * staging slot, no lease and no lock. So the transfer always gets what it needs to end. */
#include "base/clock.h"
#include "base/futex.h"
#include "client/core/handles.h"
#include "client/queue/queue.h"

static bool conflicts(const bh__lease *lease, const bh__memory *memory, uint64_t offset,
                      uint64_t bytes, uint32_t access) {
    return lease->memory == memory && ((lease->access | access) & BH_ACCESS_OUT) &&
           lease->offset < offset + bytes && offset < lease->offset + lease->bytes;
}

bool bh__lease_covers(const bh__device *device, const bh__memory *memory, uint64_t offset,
                      uint64_t bytes, uint32_t access) {
    for (const bh__lease *lease = device->queue.leases; lease; lease = lease->next) {
        if (conflicts(lease, memory, offset, bytes, access)) return true;
    }
    return false;
}

void bh__leases_wait(bh__device *device) {
    uint32_t seen = atomic_load(&device->queue.leases_ended);
    bh__device_step_out(device);
    bh__futex_wait(&device->queue.leases_ended, seen, BH__NEVER, BH__FUTEX_PRIVATE);
    bh__device_step_in(device);
}

bool bh__lease_begin(bh__device *device, const bh__memory *memory, uint64_t offset, uint64_t bytes,
                     uint32_t access, bh__lease *out) {
    if (bh__lease_covers(device, memory, offset, bytes, access)) return false;
    *out = (bh__lease){.next = device->queue.leases,
                       .memory = memory,
                       .offset = offset,
                       .bytes = bytes,
                       .access = access};
    device->queue.leases = out;
    return true;
}

void bh__lease_end(bh__device *device, bh__lease *lease) {
    bh__lease **link = &device->queue.leases;
    while (*link != lease) link = &(*link)->next;
    *link = lease->next;
    atomic_fetch_add(&device->queue.leases_ended, 1);
    bh__futex_wake(&device->queue.leases_ended, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

static const bh__use *leased_use(const bh__device *device, const bh__submission *submission) {
    for (uint32_t i = 0; i < submission->use_count; i++) {
        const bh__use *use = &submission->uses[i];
        if (bh__lease_covers(device, use->memory, use->offset, use->bytes, use->access)) return use;
    }
    return NULL;
}

bool bh__leases_block(bh__device *device, const bh__submission *submission, bh_status *out_status,
                      bool *out_retry) {
    const bh__use *use = submission->leased ? NULL : leased_use(device, submission);
    if (!use) return false;
    *out_status = BH_OK;
    *out_retry = !bh__no_block(submission);
    if (*out_retry) {
        bh__leases_wait(device);
        return true;
    }
    if (submission->busy) *submission->busy = BH_REASON_BUFFER_BUSY;
    *out_status =
        bh__refuse(BH_E_BUSY, "submit it again, or let the call wait",
                   "another thread is submitting a transfer of bytes %llu to %llu of the memory at "
                   "0x%llx or of some of them",
                   (unsigned long long)use->offset, (unsigned long long)(use->offset + use->bytes),
                   (unsigned long long)use->memory->address);
    return true;
}
