/* SPDX-License-Identifier: Apache-2.0 */
/* Placing a buffer: finds a block in the chunks there are, or makes room for one: another chunk, of
 * what size, and what is given back before the allocation fails. */
#include "base/checked.h"
#include "client/core/handles.h"
#include "client/core/hooks.h"
#include "client/memory/memory.h"

typedef unsigned long long ull;

enum {
    MIN_CUT = 32 << 20, /* bytes of a chunk for many buffers */
    MAX_WHOLE = 384,    /* chunks for one buffer each: every chunk needs a descriptor */
    RETRIES = 3
};
#define MAX_CUT ((uint64_t)1 << 30)

static bh_status refuse_memory(bh__device *device, uint64_t bytes) {
    char owners[200];
    bh__usage_owners(device, owners, sizeof owners);
    uint64_t leaving = 0;
    for (const bh__memory *memory = device->memory.leaving; memory; memory = memory->next)
        leaving += memory->bytes;
    uint64_t largest = bh__heap_largest_free(&device->memory.heap);
    uint64_t free_bytes = device->memory.heap.bytes_total - device->memory.heap.bytes_used;
    return bh__refuse(
        BH_E_NO_MEMORY,
        leaving ? "wait for queued work that still uses released buffers, release more, or raise "
                  "memory_limit"
                : "release buffers, or raise memory_limit if the device has more",
        "%llu bytes asked for; the device holds %llu of at most %llu, %llu of them in modules' "
        "variables, %llu in buffers; %llu are free, the largest free piece is %llu%s",
        (ull)bytes, (ull)bh__held_bytes(device), (ull)device->options.memory_limit,
        (ull)device->memory.module_bytes, (ull)device->memory.bytes_allocated, (ull)free_bytes,
        (ull)largest, owners);
}

static bool makes_whole(const bh__device *device, uint64_t bytes) {
    return bytes >= BH__HEAP_WHOLE && device->memory.heap.whole_count < MAX_WHOLE;
}

/* The size of chunks for many buffers grows with their total, so that there are never many. With
 * `least` the size is the minimum for `bytes`. */
static uint64_t chunk_size_for(const bh__device *device, uint64_t bytes, bool least) {
    uint64_t size = bytes;
    if (!makes_whole(device, bytes) && !least) {
        size = device->memory.heap.cut_total / 8;
        if (size > MAX_CUT) size = MAX_CUT;
        if (size < MIN_CUT) size = MIN_CUT;
        if (size < bytes) size = bytes;
    }
    uint64_t limit = bh__pool_limit(device);
    uint64_t total = device->memory.heap.bytes_total + device->memory.making_bytes;
    uint64_t left = limit > total ? limit - total : 0;
    uint64_t unit = device->memory.chunk_granularity;
    if (size > left) size = left > bytes ? left / unit * unit : bytes;
    if (size < bytes) size = bytes;
    return (size + unit - 1) / unit * unit;
}

/* Adds a chunk large enough for `bytes`. If the limit is reached or the device is out of memory,
 * gives back unused chunks and retries, with a smaller chunk if possible. While other threads are
 * creating chunks, waits a moment and returns BH_OK without adding one: theirs may have room. */
static bh_status grow(bh__device *device, uint64_t bytes) {
    uint64_t unit = device->memory.chunk_granularity, trimmed = 0;
    bh__hooks.reclaim(device);
    if (bytes > bh__pool_limit(device) || bytes > UINT64_MAX - unit)
        return refuse_memory(device, bytes);
    bh__chunks_trim_spare(device, chunk_size_for(device, bytes, false), bytes);
    bool least = false;
    for (uint32_t tries = 0;;) {
        uint64_t size = chunk_size_for(device, bytes, least);
        uint64_t limit = bh__pool_limit(device);
        uint64_t total = device->memory.heap.bytes_total + device->memory.making_bytes;
        if (total > limit || size > limit - total) {
            uint64_t given_back =
                bh__chunks_trim(device, size - (limit > total ? limit - total : 0), false);
            if (!given_back && device->memory.making_bytes) {
                bh__device_pause(device, BH__NS_PER_MS / 10);
                return BH_OK;
            }
            if (!given_back) return refuse_memory(device, bytes);
            trimmed += given_back;
            continue;
        }
        bh_status status = bh__chunk_make(device, size, makes_whole(device, bytes));
        if (status == BH_OK && trimmed) bh__pressure_note(device, BH_PRESSURE_TRIMMED, bytes);
        if (status != BH_E_NO_MEMORY || device->state == BH__DEVICE_STOPPED) return status;
        uint64_t given_back = bh__chunks_trim(device, size, false);
        trimmed += given_back;
        if (given_back || (!least && chunk_size_for(device, bytes, true) < size)) {
            least = least || !given_back;
            continue;
        }
        /* The standby worker may not have unmapped the chunks that were given back. */
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
        if (device->memory.leaving) bh__memory_sweep(device);
        bh__block *block =
            bh__heap_alloc(&device->memory.heap, rounded, align, cut_large, &out_of_host);
        if (block) {
            device->counters.pool_hits += hit;
            return block;
        }
        bh_status status = out_of_host ? BH_E_NO_HOST_MEMORY : grow(device, rounded);
        if (out_of_host)
            bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                       "no host memory for a block's record");
        if (device->state == BH__DEVICE_STOPPED) {
            bh__refuse_with(&device->stop_reason);
            return NULL;
        }
        if (status == BH_OK) continue;
        if (status == BH_E_NO_MEMORY && bh__check_release_retired(device)) continue;
        /* Last resort: a large block from a chunk for small ones. */
        if (status == BH_E_NO_MEMORY)
            block = bh__heap_alloc(&device->memory.heap, rounded, align, true, &out_of_host);
        if (block) return block;
        if (status == BH_E_NO_MEMORY) bh__usage_refused(device, asked);
        return NULL;
    }
}
