/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of host memory. A pool has slabs: regions that workers can access, divided into pieces of
 * one size. A piece is handed out zeroed, and only after earlier work has finished with it. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/futex.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/memory/memory.h"
#include "client/queue/queue.h"
#include "client/queue/uses.h"
#include "client/transfer/transfer.h"

typedef unsigned long long ull;

enum {
    MIN_PIECE = 4096,
    SLAB_BYTES = 1 << 20,
    MAX_PIECES = 64, /* in a slab */
    DEFAULT_MIB = 256
};

/* How long a waiter sleeps at most: before it checks that the device is still open, and while work
 * still uses pieces that were given back. */
static const uint64_t poll_ns = 100 * BH__NS_PER_MS, cooling_ns = 2 * BH__NS_PER_MS;

typedef struct piece {
    bh__memory *memory; /* Owned. */
    bool taken;
    bool dirty; /* was handed out before: zero it first */
} piece;

/* One region, cut into pieces of one size. */
typedef struct bh__host_pool_slab {
    struct bh__host_pool_slab *next;
    bh__memory *region; /* Owned. */
    uint64_t piece_bytes;
    uint32_t count, taken;
    piece pieces[];
} slab;

typedef struct pool {
    uint64_t id;
    uint64_t max_bytes, max_piece;
    uint64_t reserved, bytes_taken, peak_taken;
    uint64_t pieces_taken, takes, waits, refusals, cleared;
    uint32_t waiting, entered; /* threads that sleep; threads in a call that may release the lock */
    bool growing;              /* a thread is creating a slab */
    uint32_t ending;           /* slabs being destroyed; still counted in `reserved` */
    slab *slabs;
    _Atomic uint32_t changed; /* a counter; private futex of threads that wait for a piece */
} pool;

/* ---- pieces and slabs ---- */

static void wake_waiters(pool *self) {
    if (!self->waiting) return;
    atomic_fetch_add(&self->changed, 1);
    bh__futex_wake(&self->changed, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

/* Sizes are powers of two and the midpoints between them: at most a third of a piece is wasted. */
static uint64_t piece_size_for(uint64_t bytes) {
    uint64_t size = MIN_PIECE;
    while (size < bytes) {
        if (size + size / 2 >= bytes) return size + size / 2;
        size *= 2;
    }
    return size;
}

bh__memory *bh__host_pool_find(slab *self, uint64_t offset, uint64_t bytes, uint64_t *out_offset) {
    uint64_t index = offset / self->piece_bytes, within = offset % self->piece_bytes;
    if (index >= self->count || !self->pieces[index].taken ||
        !bh__range_fits(within, bytes, self->piece_bytes))
        return NULL;
    *out_offset = within;
    return self->pieces[index].memory;
}

static void slab_free_records(bh__device *device, slab *self) {
    for (uint32_t i = 0; i < self->count; i++) {
        if (self->pieces[i].memory) bh__memory_delete(device, self->pieces[i].memory);
    }
    free(self);
}

/* Releases the lock while the region is created. */
static bh_status slab_make(bh__device *device, pool *owner, uint64_t piece_bytes, uint32_t count) {
    slab *made = calloc(1, sizeof *made + count * sizeof *made->pieces);
    bool complete = made != NULL;
    if (made) made->count = count;
    for (uint32_t i = 0; complete && i < count; i++) {
        made->pieces[i].memory = bh__memory_new(device);
        complete = made->pieces[i].memory != NULL;
    }
    bh_status status = BH_OK;
    if (!complete)
        status = bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                            "no host memory for the records of a slab of %u pieces", count);
    owner->growing = true;
    owner->reserved += piece_bytes * count;
    bh__memory *region = NULL;
    if (status == BH_OK) status = bh__host_region_create(device, piece_bytes * count, &region);
    owner->growing = false;
    if (status != BH_OK) {
        owner->reserved -= piece_bytes * count;
        if (made) slab_free_records(device, made);
        wake_waiters(owner);
        return status;
    }
    made->region = region;
    made->piece_bytes = piece_bytes;
    for (uint32_t i = 0; i < count; i++) {
        bh__memory *memory = made->pieces[i].memory;
        memory->host_id = region->host_id;
        memory->host_from = i * piece_bytes;
        memory->host = (uint8_t *)region->host + memory->host_from;
        memory->bytes = piece_bytes;
    }
    bh__host_entry_of(device, region)->slab = made;
    made->next = owner->slabs;
    owner->slabs = made;
    wake_waiters(owner);
    return BH_OK;
}

/* Removes a slab with no taken piece from the pool and destroys it once no work uses it. Releases
 * the lock meanwhile. */
static void slab_destroy(bh__device *device, pool *owner, slab **link) {
    slab *removed = *link;
    *link = removed->next;
    owner->ending++;
    for (uint32_t i = 0; i < removed->count; i++)
        bh__host_wait_idle(device, removed->pieces[i].memory);
    bh__host_region_destroy(device, removed->region);
    owner->reserved -= removed->piece_bytes * removed->count;
    owner->ending--;
    slab_free_records(device, removed);
    wake_waiters(owner);
}

static bool slab_idle(bh__device *device, const slab *self) {
    if (self->taken) return false;
    for (uint32_t i = 0; i < self->count; i++) {
        if (!bh__memory_idle(device, self->pieces[i].memory)) return false;
    }
    return true;
}

/* ---- finding a piece ---- */

/* A free piece of this size. `larger`: the smallest free piece that is large enough. */
static piece *find_free(bh__device *device, pool *self, uint64_t bytes, bool larger,
                        slab **out_slab) {
    piece *best = NULL;
    for (slab *at = self->slabs; at; at = at->next) {
        bool fits = larger ? at->piece_bytes >= bytes : at->piece_bytes == bytes;
        if (!fits || at->taken == at->count) continue;
        if (best && at->piece_bytes >= (*out_slab)->piece_bytes) continue;
        for (uint32_t i = 0; i < at->count; i++) {
            if (at->pieces[i].taken || !bh__memory_idle(device, at->pieces[i].memory)) continue;
            best = &at->pieces[i];
            *out_slab = at;
            break;
        }
    }
    return best;
}

/* Makes room for `bytes` more by destroying slabs that nothing uses. Returns false if there are not
 * enough. May release the lock. */
static bool make_room(bh__device *device, pool *self, uint64_t bytes) {
    while (self->max_bytes - self->reserved < bytes) {
        slab **link = &self->slabs;
        while (*link && !slab_idle(device, *link)) link = &(*link)->next;
        if (!*link) return false;
        slab_destroy(device, self, link);
    }
    return true;
}

static uint32_t pieces_for(const pool *self, uint64_t piece_bytes) {
    uint64_t count = SLAB_BYTES / piece_bytes;
    uint64_t room = (self->max_bytes - self->reserved) / piece_bytes;
    if (count > MAX_PIECES) count = MAX_PIECES;
    if (count > room) count = room;
    return count ? (uint32_t)count : 1;
}

/* Another thread is creating or destroying a slab: sleeps until it is done, for cooling_ns at most.
 * Releases the lock meanwhile. */
static void wait_for_slabs(bh__device *device, pool *self) {
    uint32_t seen = atomic_load(&self->changed);
    self->waiting++;
    atomic_fetch_add(&device->users, 1);
    bh__device_unlock(device);
    bh__futex_wait(&self->changed, seen, bh__now_ns() + cooling_ns, BH__FUTEX_PRIVATE);
    bh__lock_take(&device->lock);
    atomic_fetch_sub(&device->users, 1);
    self->waiting--;
}

/* BH_E_BUSY: the pool is exhausted. */
static bh_status find_or_make(bh__device *device, pool *self, uint64_t piece_bytes, piece **out,
                              slab **out_slab) {
    for (;;) {
        *out = find_free(device, self, piece_bytes, false, out_slab);
        if (*out) return BH_OK;
        if (!self->growing && make_room(device, self, piece_bytes)) {
            /* make_room may have released the lock. */
            *out = find_free(device, self, piece_bytes, false, out_slab);
            if (*out) return BH_OK;
            if (self->growing || self->max_bytes - self->reserved < piece_bytes) continue;
            bh_status status = slab_make(device, self, piece_bytes, pieces_for(self, piece_bytes));
            if (status != BH_OK) return status;
            continue;
        }
        *out = find_free(device, self, piece_bytes, true, out_slab);
        if (*out) return BH_OK;
        if (!self->growing && !self->ending) return BH_E_BUSY;
        wait_for_slabs(device, self);
    }
}

/* ---- waiting ---- */

/* Finds a piece that was given back and that work still uses: the lane of that work and the
 * position that the lane must pass. */
static bool find_cooling(bh__device *device, pool *self, uint64_t bytes, bh__lane **out_lane,
                         uint64_t *out_position) {
    for (slab *at = self->slabs; at; at = at->next) {
        for (uint32_t i = 0; at->piece_bytes >= bytes && i < at->count; i++) {
            const bh__memory *memory = at->pieces[i].memory;
            for (uint32_t k = 0; !at->pieces[i].taken && k < memory->use_count; k++) {
                const bh__lane_use *use = &memory->uses[k];
                uint64_t last = use->write_position > use->read_position ? use->write_position
                                                                         : use->read_position;
                *out_lane = &device->lanes[use->lane];
                *out_position = last;
                if (last > bh__lane_done(device, *out_lane)) return true;
            }
        }
    }
    return false;
}

/* Returns true if a piece was given back and is still in use. */
static bool any_cooling(bh__device *device, pool *self) {
    for (slab *at = self->slabs; at; at = at->next) {
        for (uint32_t i = 0; i < at->count; i++) {
            if (!at->pieces[i].taken && !bh__memory_idle(device, at->pieces[i].memory)) return true;
        }
    }
    return false;
}

/* Sleeps until a piece may have become free. Releases the lock meanwhile: the caller must look
 * everything up again. */
static void wait_for_piece(bh__device *device, pool *self, uint64_t bytes, uint64_t deadline) {
    uint64_t now = bh__now_ns(), until = now + poll_ns;
    bh__lane *lane;
    uint64_t position;
    bool cooling = find_cooling(device, self, bytes, &lane, &position);
    if (cooling || any_cooling(device, self)) until = now + cooling_ns;
    if (until > deadline) until = deadline;
    self->waiting++;
    uint32_t seen = atomic_load(&self->changed);
    bh__device_step_out(device);
    if (cooling)
        (void)bh__lane_wait(device, lane, (bh_ticket){0, position}, until);
    else
        bh__futex_wait(&self->changed, seen, until, BH__FUTEX_PRIVATE);
    bh__device_step_in(device);
    self->waiting--;
}

static bh_status refuse_exhausted(pool *self, uint64_t bytes, uint64_t timeout_ns) {
    self->refusals++;
    return bh__refuse(
        timeout_ns ? BH_E_TIMEOUT : BH_E_BUSY,
        "give pieces back earlier, or open the pool with a larger max_bytes",
        "no piece of %llu bytes became free in %llu ns: %llu pieces with %llu bytes are "
        "taken, max_bytes is %llu",
        (ull)bytes, (ull)timeout_ns, (ull)self->pieces_taken, (ull)self->bytes_taken,
        (ull)self->max_bytes);
}

/* ---- the public calls ---- */

bh_status bh_host_pool_open(bh_device handle, const bh_host_pool_options *given,
                            bh_host_pool *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the pool", "out is NULL");
    bh_host_pool_options options = BH_INIT(options);
    if (bh__options_take(given, &options, "bh_host_pool_options") != BH_OK ||
        bh__reserved_check(options.reserved, "bh_host_pool_options") != BH_OK)
        return bh__last()->status;
    if (!options.max_bytes) options.max_bytes = (uint64_t)DEFAULT_MIB << 20;
    if (!options.max_piece) options.max_piece = options.max_bytes / 4;
    if (options.max_bytes < MIN_PIECE || options.max_bytes > (uint64_t)INT64_MAX / 4)
        return bh__refuse(BH_E_INVALID, "use 4096 to 2^61 bytes, or 0 for the default",
                          "bh_host_pool_options.max_bytes is %llu", (ull)options.max_bytes);
    if (options.max_piece > options.max_bytes)
        return bh__refuse(BH_E_INVALID, "keep max_piece within max_bytes",
                          "bh_host_pool_options.max_piece is %llu, max_bytes is %llu",
                          (ull)options.max_piece, (ull)options.max_bytes);
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bh_status status = BH_OK;
    pool *made = calloc(1, sizeof *made);
    if (!made) {
        status = bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for a pool");
    } else {
        made->max_bytes = options.max_bytes;
        made->max_piece = options.max_piece;
        status = bh__handle_add(device, BH__KIND_POOL, made, &made->id);
        if (status == BH_OK)
            out->id = made->id;
        else
            free(made);
    }
    bh__device_unlock(device);
    return status;
}

/* Locks the device of a pool and finds the pool. NULL with nothing locked: the thread's error. */
static pool *pool_lock(bh_host_pool handle, bool running, bh__device **out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_POOL, "pool", running);
    if (!device) return NULL;
    pool *self = bh__handle_get(device, handle.id, BH__KIND_POOL, "pool");
    if (!self) bh__device_unlock(device);
    *out = device;
    return self;
}

static void hand_out(pool *self, piece *found, slab *from) {
    found->taken = true;
    from->taken++;
    self->takes++;
    self->pieces_taken++;
    self->bytes_taken += from->piece_bytes;
    if (self->bytes_taken > self->peak_taken) self->peak_taken = self->bytes_taken;
    if (found->dirty) self->cleared += from->piece_bytes;
}

bh_status bh_host_pool_take(bh_host_pool handle, uint64_t bytes, uint64_t timeout_ns, void **out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the pointer", "out is NULL");
    uint64_t deadline = bh__deadline_after(timeout_ns);
    bool waited = false;
    for (;;) {
        bh__device *device;
        pool *self = pool_lock(handle, true, &device);
        if (!self) return bh__last()->status;
        if (bytes == 0 || bytes > self->max_piece) {
            bh_status status =
                bh__refuse(BH_E_INVALID, "take at least 1 byte and at most max_piece",
                           "%llu bytes requested from a pool whose max_piece is %llu", (ull)bytes,
                           (ull)self->max_piece);
            bh__device_unlock(device);
            return status;
        }
        /* A piece near max_bytes may have a size of its own. */
        uint64_t size = piece_size_for(bytes);
        if (size > self->max_bytes) size = self->max_bytes / BH__HEAP_ALIGN * BH__HEAP_ALIGN;
        if (size < bytes) size = self->max_bytes;
        piece *found;
        slab *from;
        self->entered++;
        bh_status status = find_or_make(device, self, size, &found, &from);
        self->entered--;
        if (status == BH_OK) {
            hand_out(self, found, from);
            self->waits += waited;
            void *memory = found->memory->host;
            bool dirty = found->dirty;
            uint64_t length = from->piece_bytes;
            bh__device_step_out(device);
            if (dirty) memset(memory, 0, length);
            bh__ticket_leave(device);
            *out = memory;
            return BH_OK;
        }
        if (status == BH_E_BUSY && bh__now_ns() >= deadline)
            status = refuse_exhausted(self, bytes, timeout_ns);
        else if (status == BH_E_BUSY)
            wait_for_piece(device, self, size, deadline);
        bh__device_unlock(device);
        if (status != BH_E_BUSY || timeout_ns == 0) return status;
        waited = true;
    }
}

bh_status bh_host_pool_give(bh_host_pool handle, void *memory) {
    bh__device *device;
    pool *self = pool_lock(handle, false, &device);
    if (!self) return bh__last()->status;
    for (slab *at = self->slabs; at; at = at->next) {
        uintptr_t base = (uintptr_t)at->region->host, pointer = (uintptr_t)memory;
        if (pointer < base || pointer - base >= at->piece_bytes * at->count) continue;
        uint64_t index = (pointer - base) / at->piece_bytes;
        piece *given = &at->pieces[index];
        if ((pointer - base) % at->piece_bytes || !given->taken) break;
        uint32_t users = given->memory->references - 1;
        if (users) {
            bh__device_unlock(device);
            return bh__refuse(BH_E_BUSY, "release the sequences that use it first",
                              "%p is used by %u sequences", memory, users);
        }
        given->taken = false;
        given->dirty = true;
        at->taken--;
        self->pieces_taken--;
        self->bytes_taken -= at->piece_bytes;
        wake_waiters(self);
        bh__device_unlock(device);
        return BH_OK;
    }
    bh__device_unlock(device);
    return bh__refuse(BH_E_INVALID, "pass a pointer from bh_host_pool_take of this pool, once",
                      "%p is not a taken piece of this pool", memory);
}

bh_status bh_host_pool_get_info(bh_host_pool handle, bh_host_pool_info *out) {
    if (bh__sized_check(out, "bh_host_pool_info") != BH_OK) return BH_E_INVALID;
    bh__device *device;
    pool *self = pool_lock(handle, false, &device);
    if (!self) return bh__last()->status;
    bh_host_pool_info info = {.size = out->size,
                              .waiting = self->waiting,
                              .bytes_reserved = self->reserved,
                              .bytes_taken = self->bytes_taken,
                              .max_bytes = self->max_bytes,
                              .peak_taken = self->peak_taken,
                              .pieces_taken = self->pieces_taken,
                              .takes = self->takes,
                              .waits = self->waits,
                              .refusals = self->refusals,
                              .bytes_cleared = self->cleared};
    for (slab *at = self->slabs; at; at = at->next) {
        for (uint32_t i = 0; i < at->count; i++) {
            if (!at->pieces[i].taken && !bh__memory_idle(device, at->pieces[i].memory))
                info.bytes_cooling += at->piece_bytes;
        }
    }
    bh__device_unlock(device);
    bh__sized_give(out, &info, sizeof info);
    return BH_OK;
}

bh_status bh_host_pool_release(bh_host_pool handle) {
    bh__device *device;
    pool *self = pool_lock(handle, false, &device);
    if (!self) return bh__last()->status;
    if (self->pieces_taken || self->waiting || self->entered) {
        bh_status status =
            bh__refuse(BH_E_BUSY, "give all pieces back, and wait for threads in bh_host_pool_take",
                       "%llu pieces of the pool are taken and %u threads are taking one",
                       (ull)self->pieces_taken, self->waiting + self->entered);
        bh__device_unlock(device);
        return status;
    }
    bh__handle_remove(device, self->id);
    while (self->slabs) slab_destroy(device, self, &self->slabs);
    free(self);
    bh__device_unlock(device);
    return BH_OK;
}

void bh__host_pools_free(bh__device *device) {
    uint32_t cursor = 0;
    for (pool *self; (self = bh__table_next(&device->handles.pools, &cursor));) {
        bh__handle_remove(device, self->id);
        while (self->slabs) {
            slab *removed = self->slabs;
            self->slabs = removed->next;
            slab_free_records(device, removed);
        }
        free(self);
    }
}
