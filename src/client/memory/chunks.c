/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks: the device memory that buffers are allocated from. Creating them, giving them back. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/hooks.h"
#include "client/jobs/jobs.h"
#include "client/memory/memory.h"

typedef unsigned long long ull;

/* Overhead allowed before unused chunks are given back, in 1/32 of the live bytes. */
enum { SPARE_32NDS = 5 };

void bh__held_note(bh__device *device) {
    if (bh__held_bytes(device) > device->memory.peak_reserved)
        device->memory.peak_reserved = bh__held_bytes(device);
}

/* ---- giving back ---- */

/* Gives a chunk that is not in the heap back to the device. Returns its size. Unless `later` is
 * set, waits for the worker; the lock is released meanwhile. */
static uint64_t chunk_give_back(bh__device *device, uint32_t id, bool later) {
    uint32_t at = 0;
    while (device->memory.chunks[at].chunk.id != id) at++;
    bh__chunk chunk = device->memory.chunks[at].chunk;
    int fd = device->memory.chunks[at].fd;
    bh__check_unmap(&device->memory.chunks[at]);
    bh__job job = {.kind = BH__JOB_ORDER,
                   .order = {.type = BH__MSG_CHUNK_UNMAP, .chunk = chunk, .fd = -1}};
    device->memory.chunks[at] = device->memory.chunks[--device->memory.chunk_count];
    device->counters.chunks_trimmed++;
    bh__note(device, "memory trimmed", "reserved", bh__held_bytes(device));
    /* Orders are executed one after the other, so a new chunk may be created at the same address at
     * once. */
    bool unmapped = later && bh__order_post(device, &job.order);
    if (!unmapped) {
        bh_error before = *bh__last();
        unmapped = bh__order_run(device, &job) == BH_OK;
        *bh__last() = before;
    }
    bh__fd_close(fd);
    if (unmapped)
        bh__addresses_give(device, chunk.address - device->memory.addresses.base, chunk.bytes);
    return chunk.bytes;
}

/* Gives back one unused chunk: the smallest of at least `bytes`, or else the largest. Returns its
 * size; 0: there is none. */
uint64_t bh__chunks_trim(bh__device *device, uint64_t bytes, bool later) {
    uint32_t id;
    if (bh__supervises(device)) return 0; /* the order would be refused */
    if (!bh__heap_take_free_chunk(&device->memory.heap, bytes, &id)) return 0;
    return chunk_give_back(device, id, later);
}

/* Called before a chunk of `size` is created. Gives back unused chunks while the total overhead
 * (unused chunks, fragmentation and rounding) would exceed SPARE_32NDS / 32 of the live bytes. So
 * no sequence of allocation sizes makes the device hold much more than it needs, and a small
 * reserve is kept. */
void bh__chunks_trim_spare(bh__device *device, uint64_t size, uint64_t bytes) {
    bh__heap *heap = &device->memory.heap;
    bh__heap_settle(heap);
    uint64_t live = heap->bytes_used - heap->bytes_surplus + bytes;
    uint64_t max = live + live / 32 * SPARE_32NDS;
    while (heap->bytes_total + size > max) {
        if (!bh__chunks_trim(device, heap->bytes_total + size - max, true)) return;
    }
}

bh_status bh_memory_trim(bh_device handle, uint64_t keep_bytes, uint64_t *out_freed) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bh__hooks.reclaim(device);
    bh__memory_sweep(device);
    (void)bh__check_release_retired(device);
    uint64_t freed = 0;
    while (bh__held_bytes(device) > keep_bytes) {
        uint64_t given_back = bh__chunks_trim(device, bh__held_bytes(device) - keep_bytes, false);
        if (!given_back) break;
        freed += given_back;
    }
    bh__device_unlock(device);
    if (out_freed) *out_freed = freed;
    return BH_OK;
}

bh_status bh_memory_set_limit(bh_device handle, const char *tag, uint64_t bytes) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bh_status status = BH_OK;
    if (tag) {
        bh__tag *record = bh__tag_get(device, tag);
        if (record)
            record->limit = bytes;
        else
            status = bh__last()->status;
    } else {
        device->memory.limit_given = bytes != 0;
        device->options.memory_limit = bytes ? bytes : device->info.memory_total;
        bh__hooks.reclaim(device);
        bh__memory_sweep(device);
        while (bh__held_bytes(device) > device->options.memory_limit) {
            uint64_t surplus = bh__held_bytes(device) - device->options.memory_limit;
            if (!bh__chunks_trim(device, surplus, false)) break;
        }
        bh__pressure_limit(device);
    }
    bh__device_unlock(device);
    return status;
}

/* ---- creating chunks ---- */

bh_status bh__chunk_make(bh__device *device, uint64_t size, bool whole) {
    uint64_t offset;
    if (!bh__addresses_take(device, size, &offset))
        return bh__refuse(BH_E_NO_MEMORY, "release buffers earlier, or close and reopen the device",
                          "the device's address range of %llu bytes is used up",
                          (ull)device->memory.addresses.limit);
    bh__chunk chunk = {.id = device->memory.next_chunk_id++,
                       .bytes = size,
                       .address = device->memory.addresses.base + offset,
                       .read_only_address = device->memory.addresses.read_only_base + offset};
    bh__job job = {.kind = BH__JOB_ORDER,
                   .order = {.type = BH__MSG_CHUNK_CREATE, .chunk = chunk, .fd = -1}};
    device->memory.making_bytes += size;
    bh_status status = bh__order_run(device, &job);
    device->memory.making_bytes -= size;
    chunk = job.order.chunk; /* the worker may have created it at another address */
    if (status != BH_OK) {
        bh__addresses_give(device, chunk.address - device->memory.addresses.base, chunk.bytes);
        return status;
    }
    device->counters.chunks_made++;
    device->memory.heap.unit = device->memory.chunk_granularity;
    if (!bh__heap_add_chunk(&device->memory.heap, chunk.id, chunk.address, chunk.bytes, whole)) {
        chunk_give_back(device, chunk.id, false);
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a chunk's record");
    }
    bh__held_note(device);
    bh__note(device, "memory grown", "reserved", bh__held_bytes(device));
    return BH_OK;
}
