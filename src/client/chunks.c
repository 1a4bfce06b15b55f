/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks: the device memory that buffers are cut from. When more is made, when it is given back,
 * and what is tried before an allocation fails. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/trace.h"

typedef unsigned long long ull;

enum {
    LEAST_CUT = 32 << 20, /* of a chunk that is cut */
    MOST_WHOLE = 384,     /* chunks of one buffer each: every chunk costs a descriptor */
    SPARE_32NDS = 5,      /* of what is live: what may be held beyond it before unused chunks go */
    RETRIES = 3
};
#define MOST_CUT ((uint64_t)1 << 30)

/* ---- addresses ---- */

/* Fresh addresses first: those of a chunk that is gone catch the use of what was freed. */
bool bh__addresses_take(bh__device *device, uint64_t bytes, uint64_t *out) {
    if (bytes <= device->address_limit - device->next_address) {
        *out = device->next_address;
        device->next_address += bytes;
        return true;
    }
    for (uint32_t i = 0; i < device->free_address_count; i++) {
        uint64_t offset = device->free_addresses[i].offset;
        if (device->free_addresses[i].bytes < bytes) continue;
        *out = offset;
        return bh__spans_remove(&device->free_addresses, &device->free_address_count,
                                &device->free_address_capacity, offset, bytes);
    }
    return false;
}

void bh__addresses_give(bh__device *device, uint64_t offset, uint64_t bytes) {
    /* Without host memory to note them the addresses are lost, and nothing else. */
    (void)bh__spans_add(&device->free_addresses, &device->free_address_count,
                        &device->free_address_capacity, offset, bytes);
}

void bh__held_note(bh__device *device) {
    if (bh__held_bytes(device) > device->high_reserved)
        device->high_reserved = bh__held_bytes(device);
}

/* ---- giving back ---- */

/* Has the supervisor see to it that a chunk is unmapped, without waiting: orders are carried out one
 * after the other, so another chunk may be made at its address at once. */
static bool unmap_later(bh__device *device, const bh__chunk *chunk) {
    bh__job *job = calloc(1, sizeof *job);
    if (!job) return false;
    job->kind = BH__JOB_ORDER;
    job->order = (bh__order){.type = BH__MSG_CHUNK_UNMAP, .chunk = *chunk, .fd = -1};
    job->self_owned = true;
    bh__job_post(device, job);
    return true;
}

/* Gives back one unused chunk, the smallest of at least `bytes` or else the largest. Unless it is
 * to be done later the lock is let go meanwhile. Returns its size; 0: there is none. */
static uint64_t trim_one(bh__device *device, uint64_t bytes, bool later) {
    uint32_t id;
    if (bh__supervises(device)) return 0; /* the order would be refused */
    if (!bh__heap_take_free_chunk(&device->heap, bytes, &id)) return 0;
    uint32_t at = 0;
    while (device->chunks[at].chunk.id != id) at++;
    bh__chunk chunk = device->chunks[at].chunk;
    int fd = device->chunks[at].fd;
    bh__check_unmap(&device->chunks[at]);
    bh__job job = {.kind = BH__JOB_ORDER,
                   .order = {.type = BH__MSG_CHUNK_UNMAP, .chunk = chunk, .fd = -1}};
    device->chunks[at] = device->chunks[--device->chunk_count];
    device->tally.chunks_trimmed++;
    bh__trace_instant(device, "memory trimmed", "reserved", bh__held_bytes(device), NULL);
    device->bytes_trimmed += chunk.bytes;
    bool gone = later && unmap_later(device, &chunk);
    if (!gone) {
        bh_error before = *bh__last();
        gone = bh__order_run(device, &job) == BH_OK;
        *bh__last() = before;
    }
    bh__fd_close(fd);
    if (gone) bh__addresses_give(device, chunk.address - device->address_base, chunk.bytes);
    return chunk.bytes;
}

/* Before another chunk is made: unused ones go if all that is lost, to them and in and between
 * blocks, would be more than a small part of what is live. So no history of sizes makes the device
 * hold much more than it needs, and what is not lost between blocks is kept for the next to come. */
static void trim_spare(bh__device *device, uint64_t size, uint64_t bytes) {
    bh__heap *heap = &device->heap;
    bh__heap_settle(heap);
    uint64_t live = heap->bytes_used - heap->bytes_surplus + bytes;
    uint64_t most = live + live / 32 * SPARE_32NDS;
    while (heap->bytes_total + size > most) {
        if (!trim_one(device, heap->bytes_total + size - most, true)) return;
    }
}

bool bh__pool_trim(bh__device *device, uint64_t bytes) {
    return trim_one(device, bytes, false) != 0;
}

bh_status bh_device_trim(bh_device handle, uint64_t keep_bytes, uint64_t *out_freed) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bh__memory_sweep(device);
    (void)bh__check_relent(device);
    uint64_t freed = 0;
    while (bh__held_bytes(device) > keep_bytes) {
        uint64_t some = trim_one(device, bh__held_bytes(device) - keep_bytes, false);
        if (!some) break;
        freed += some;
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
        bh__tag *its = bh__tag_get(device, tag);
        if (its)
            its->limit = bytes;
        else
            status = bh__last()->status;
    } else {
        device->options.memory_limit = bytes ? bytes : device->info.memory_total;
        bh__memory_sweep(device);
        while (bh__held_bytes(device) > device->options.memory_limit) {
            uint64_t surplus = bh__held_bytes(device) - device->options.memory_limit;
            if (!trim_one(device, surplus, false)) break;
        }
        bh__pressure_limit(device);
    }
    bh__device_unlock(device);
    return status;
}

/* ---- making more ---- */

static bh_status refuse_memory(bh__device *device, uint64_t bytes) {
    char owners[200];
    bh__usage_owners(device, owners, sizeof owners);
    uint64_t leaving = 0;
    for (const bh__memory *memory = device->leaving; memory; memory = memory->next)
        leaving += memory->bytes;
    uint64_t largest = bh__heap_largest_free(&device->heap);
    uint64_t free_bytes = device->heap.bytes_total - device->heap.bytes_used;
    return bh__refuse(
        BH_E_NO_MEMORY,
        leaving
            ? "wait for queued work that still uses freed buffers, or free more, or raise memory_limit"
            : "free buffers, or raise memory_limit if the device has more",
        "%llu bytes asked for; the device holds %llu of at most %llu, %llu of them in buffers; "
        "%llu are free, the largest free piece is %llu%s",
        (ull)bytes, (ull)bh__held_bytes(device), (ull)device->options.memory_limit,
        (ull)device->bytes_allocated, (ull)free_bytes, (ull)largest, owners);
}

static bool makes_whole(const bh__device *device, uint64_t bytes) {
    return bytes >= BH__HEAP_WHOLE && device->heap.whole_count < MOST_WHOLE;
}

/* Chunks that are cut grow with what there is in them, so that there are never many; `least` asks
 * for no more than needed. */
static uint64_t chunk_size_for(const bh__device *device, uint64_t bytes, bool least) {
    uint64_t size = bytes;
    if (!makes_whole(device, bytes) && !least) {
        size = device->heap.cut_total / 8;
        if (size > MOST_CUT) size = MOST_CUT;
        if (size < LEAST_CUT) size = LEAST_CUT;
        if (size < bytes) size = bytes;
    }
    uint64_t limit = bh__pool_limit(device);
    uint64_t total = device->heap.bytes_total + device->making_bytes;
    uint64_t left = limit > total ? limit - total : 0;
    uint64_t unit = device->chunk_granularity;
    if (size > left) size = left > bytes ? left / unit * unit : bytes;
    if (size < bytes) size = bytes;
    return (size + unit - 1) / unit * unit;
}

/* Has the worker make a chunk. The lock is let go meanwhile. */
static bh_status make(bh__device *device, uint64_t size, bool whole) {
    uint64_t offset;
    if (!bh__addresses_take(device, size, &offset))
        return bh__refuse(BH_E_NO_MEMORY, "free buffers earlier, or close and reopen the device",
                          "the device's address range of %llu bytes is used up",
                          (ull)device->address_limit);
    bh__chunk chunk = {.id = device->next_chunk_id++,
                       .bytes = size,
                       .address = device->address_base + offset,
                       .read_only_address = device->read_only_base + offset};
    bh__job job = {.kind = BH__JOB_ORDER,
                   .order = {.type = BH__MSG_CHUNK_CREATE, .chunk = chunk, .fd = -1}};
    device->making_bytes += size;
    bh_status status = bh__order_run(device, &job);
    device->making_bytes -= size;
    chunk = job.order.chunk; /* it may have been made elsewhere in the end */
    if (status != BH_OK) {
        bh__addresses_give(device, chunk.address - device->address_base, chunk.bytes);
        return status;
    }
    device->heap.unit = device->chunk_granularity;
    if (!bh__heap_add_chunk(&device->heap, chunk.id, chunk.address, chunk.bytes, whole)) {
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory to note a chunk");
    }
    device->tally.chunks_made++;
    bh__held_note(device);
    bh__trace_instant(device, "memory grown", "reserved", bh__held_bytes(device), NULL);
    return BH_OK;
}

/* Adds a chunk large enough for `bytes`. The limit and the device's own want of memory are both met
 * by giving back what is unused and asking again, for less. While others are making chunks, there may
 * be room in theirs soon: BH_OK, and nothing was added. */
static bh_status grow(bh__device *device, uint64_t bytes) {
    uint64_t unit = device->chunk_granularity, trimmed = 0;
    if (bytes > bh__pool_limit(device) || bytes > UINT64_MAX - unit)
        return refuse_memory(device, bytes);
    trim_spare(device, chunk_size_for(device, bytes, false), bytes);
    bool least = false;
    for (uint32_t tries = 0;;) {
        uint64_t size = chunk_size_for(device, bytes, least);
        uint64_t limit = bh__pool_limit(device);
        uint64_t total = device->heap.bytes_total + device->making_bytes;
        if (total > limit || size > limit - total) {
            uint64_t some = trim_one(device, size - (limit > total ? limit - total : 0), false);
            if (!some && device->making_bytes) {
                bh__device_pause(device, BH__NS_PER_MS / 10);
                return BH_OK;
            }
            if (!some) return refuse_memory(device, bytes);
            trimmed += some;
            continue;
        }
        bh_status status = make(device, size, makes_whole(device, bytes));
        if (status == BH_OK && trimmed) bh__pressure_note(device, BH_PRESSURE_TRIMMED, bytes);
        if (status != BH_E_NO_MEMORY || device->state == BH_DEVICE_STOPPED) return status;
        uint64_t some = trim_one(device, size, false);
        trimmed += some;
        if (some || (!least && chunk_size_for(device, bytes, true) < size)) {
            least = least || !some;
            continue;
        }
        /* The standby may not have let go yet of what was given back. */
        if (!trimmed || ++tries > RETRIES) return status;
        bh__device_pause(device, 2 * BH__NS_PER_MS);
    }
}

bh__block *bh__block_alloc(bh__device *device, uint64_t asked, uint64_t align) {
    uint64_t bytes = asked, rounded;
    if ((bh__checked(device) && !bh__add_u64(bytes, BH__CHECK_GAP, &bytes)) ||
        !bh__align_up_u64(bytes, BH__HEAP_ALIGN, &rounded)) {
        refuse_memory(device, asked);
        bh__usage_refused(device, asked);
        return NULL;
    }
    if (rounded == 0) rounded = BH__HEAP_ALIGN;
    for (bool hit = true;; hit = false) {
        bool out_of_host, cut_large = !makes_whole(device, rounded);
        if (device->leaving) bh__memory_sweep(device);
        bh__block *block = bh__heap_alloc(&device->heap, rounded, align, cut_large, &out_of_host);
        if (block) {
            device->tally.pool_hits += hit;
            return block;
        }
        bh_status status = out_of_host ? BH_E_NO_HOST_MEMORY : grow(device, rounded);
        if (out_of_host)
            bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory to note a buffer");
        if (device->state == BH_DEVICE_STOPPED) {
            bh__refuse_with(&device->stop_reason);
            return NULL;
        }
        if (status == BH_OK) continue;
        if (status == BH_E_NO_MEMORY && bh__check_relent(device)) continue;
        /* Better from a chunk that was meant to be cut into small pieces than not at all. */
        if (status == BH_E_NO_MEMORY)
            block = bh__heap_alloc(&device->heap, rounded, align, true, &out_of_host);
        if (block) return block;
        if (status == BH_E_NO_MEMORY) bh__usage_refused(device, asked);
        return NULL;
    }
}
