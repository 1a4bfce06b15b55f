/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of src/client that deal with memory do for the others and for each other. */
#ifndef BH_CLIENT_MEMORY_H
#define BH_CLIENT_MEMORY_H

#include "client/objects.h"

/* ---- memory.c: what may be read, what is in doubt ---- */

/* Makes sure that a use by this lane can be noted. False: no host memory. */
bool bh__memory_reserve_use(bh__memory *memory, uint32_t lane);
/* Notes a use. `retired`: what the lane is known to have done. */
void bh__memory_note_use(const bh__use *use, uint32_t lane, uint64_t position, uint64_t retired);
/* Raises wait_for[lane] to the positions that a use must wait for. Returns whether any was raised.
 */
bool bh__memory_order(bh__device *device, const bh__use *use, uint32_t lane, uint64_t *wait_for);
/* Whether no work uses it, and no lost worker can write it any more. */
bool bh__memory_idle(bh__device *device, bh__memory *memory);
bool bh__spans_add(bh__span **list, uint32_t *count, uint32_t *capacity, uint64_t offset,
                   uint64_t bytes);
bool bh__spans_remove(bh__span **list, uint32_t *count, uint32_t *capacity, uint64_t offset,
                      uint64_t bytes);
bool bh__spans_overlap(const bh__span *list, uint32_t count, uint64_t offset, uint64_t bytes);
bh__memory *bh__memory_new(bh__device *device);
void bh__memory_delete(bh__device *device, bh__memory *memory);
/* Drops one reference; the memory goes back to the heap once nothing uses it. */
void bh__memory_release(bh__device *device, bh__memory *memory);
/* Gives back what memory is made of, and its record. Nothing uses it. */
void bh__memory_drop(bh__device *device, bh__memory *memory);
/* Gives memory back that was freed and is no longer in use. */
void bh__memory_sweep(bh__device *device);
/* Brings what allocations and releases look at into the caches, some at a time, round and round. All
 * zero: from the beginning. */
typedef struct bh__fetched {
    uint32_t buffers, blocks;
} bh__fetched;
void bh__memory_fetch_some(bh__device *device, bh__fetched *fetched);

/* ---- chunks.c ---- */

/* Cuts a block from the chunks there are, or makes another. `align` is a power of two, at least
 * BH__HEAP_ALIGN. Called and returns with the lock held, and may let go of it meanwhile. NULL with
 * the thread's error. */
bh__block *bh__block_alloc(bh__device *device, uint64_t bytes, uint64_t align);
/* Takes back one chunk that nothing is cut from, one of `bytes` or more if there is one. False:
 * there is none. */
bool bh__pool_trim(bh__device *device, uint64_t bytes);
/* Addresses for a chunk, as an offset from address_base; those of one that is gone. */
bool bh__addresses_take(bh__device *device, uint64_t bytes, uint64_t *out);
void bh__addresses_give(bh__device *device, uint64_t offset, uint64_t bytes);
/* What the device holds has grown. */
void bh__held_note(bh__device *device);

/* ---- usage.c: with the lock held ---- */

/* NULL or "" is the tag of what has none. NULL with the thread's error: no host memory. */
bh__tag *bh__tag_get(bh__device *device, const char *name);
void bh__tags_free(bh__device *device);
/* Counts one more buffer of this size, or refuses it. */
bh_status bh__tag_charge(bh__device *device, bh__tag *tag, uint64_t bytes);
void bh__tag_discharge(bh__tag *tag, uint64_t bytes);
/* The memory is of this tag, charged before. */
void bh__tag_attach(bh__tag *tag, bh__memory *memory);
/* An allocation of this size failed for want of memory. */
void bh__usage_refused(bh__device *device, uint64_t bytes);
/* A buffer's memory, charged already, is handed out; its last handle is gone. */
/* Memory is about to be made for a tag: charges it, and keeps it while the lock is let go. NULL: refused.
 * Then what was made; NULL: nothing was. */
bh__tag *bh__tag_begin(bh__device *device, const char *name, uint64_t bytes);
void bh__tag_end(bh__tag *tag, uint64_t bytes, bh__memory *memory);
void bh__usage_add(bh__device *device, bh__memory *memory);
void bh__usage_remove(bh__device *device, bh__memory *memory);
/* "; most is "weights" 1024 in 2 (limit 4096)": who has most, for messages. */
void bh__usage_owners(bh__device *device, char *out, size_t size);

/* ---- pressure.c ---- */

/* With the lock held: bytes_allocated passed pressure_high or pressure_low; the limit changed;
 * something happened to an allocation of this size. */
void bh__pressure_cross(bh__device *device);
void bh__pressure_limit(bh__device *device);
void bh__pressure_note(bh__device *device, uint32_t reason, uint64_t asked);
/* Dispatcher only: tells what is due. Returns whether anything was. */
bool bh__pressure_run(bh__device *device);

/* ---- check.c: BH_DEVICE_CHECK, with the lock held ---- */

static inline bool bh__checked(const bh__device *device) {
    return device->options.flags & BH_DEVICE_CHECK;
}
/* Between buffers, so that what runs past the end of one does not meet the next. */
enum { BH__CHECK_GAP = 1024 };
/* Maps the shadow of a chunk. False: it cannot be. */
bool bh__check_map(bh__chunk_entry *entry);
void bh__check_unmap(bh__chunk_entry *entry);
/* Kernels may use this memory from now on; nothing in it was written yet. */
void bh__check_hand_out(bh__device *device, const bh__memory *memory);
/* They may not any more. Takes the memory over, and gives it back to the heap some time later. */
void bh__check_retire(bh__device *device, bh__memory *memory);
/* Gives back all that is retired. False: nothing was. */
bool bh__check_relent(bh__device *device);
/* Adds to a fault's message what the address is inside of, or near. */
void bh__check_describe(bh__device *device, const bh__use *uses, uint32_t use_count,
                        uint64_t address, uint32_t bytes, bh_error *error);

/* ---- managed.c, managed_move.c: for those who know no more of managed buffers ---- */

/* Their memory goes. */
void bh__managed_delete(bh__device *device, struct bh__managed *self);
void bh__managed_delete_all(bh__device *device);
/* Whether a request moves pages of one. */
bool bh__managed_moves(bh__device *device, bh__lane *lane, const bh__shadow *shadow);
/* Moves that were resolved since the last time did not end well: their pages are where they were. */
void bh__managed_judge(bh__device *device);
/* The program learns that the lane has passed `sequence`: what transparent buffers were written with
 * comes home. BH_E_BUSY: it is on its way, until *out_lane has passed *out_position (NULL: a little
 * later). Without the lock, between bh__ticket_enter and leave. */
bh_status bh__managed_home(bh__device *device, bh__lane *lane, uint64_t sequence,
                           bh__lane **out_lane, uint64_t *out_position);
/* Waits for it. BH_OK, or BH_E_TIMEOUT. */
bh_status bh__managed_home_wait(bh__device *device, bh__lane *lane, uint64_t sequence,
                                uint64_t deadline);
/* What was in doubt is taken for good: a transparent buffer comes home. The lock is let go meanwhile. */
void bh__managed_accepted(bh__device *device, struct bh__managed *self);
/* Whoever asks next need not wait for this buffer. */
void bh__managed_forget(bh__device *device, struct bh__managed *self);
/* Addresses that this process has free: keeps them so. False: they are taken. */
bool bh__managed_reserve(uint64_t address, uint64_t bytes);
void bh__managed_unreserve(uint64_t address, uint64_t bytes);
/* An address that no managed buffer of this process lies above; 0: none lies above this one. */
uint64_t bh__managed_above(uint64_t address);

/* ---- managed_driver.c: managed buffers on the driver's own memory, with the lock held ---- */

/* NULL: the memory is of another kind. */
struct bh__driven *bh__driven_of(const bh__memory *memory);
/* The lock was let go to wait for addresses (*out_retry), or nothing is in the way. */
bh_status bh__driven_settle(bh__device *device, const bh__submission *submission, bool *out_retry);
/* For what keeps addresses. BH_E_UNSUPPORTED if one of the uses is of this kind. */
bh_status bh__driven_refuse(const bh__use *uses, uint32_t count, const char *what);
/* Whether an address lies in one. */
bool bh__driven_has(const bh__device *device, uint64_t address);
/* A worker has made its own: the active one, for a job, or another. False: its answer makes no
 * sense. */
bool bh__driven_made(bh__device *device, const bh__order *order, uint32_t area,
                     const bh__message *answer);
/* The active worker has taken advice. False: no host memory to note it. */
bool bh__driven_advised(bh__device *device, const bh__advice_message *what);
/* What a new worker is told. */
void bh__driven_brief(bh__device *device, bh__worker *worker,
                      void (*tell)(bh__worker *worker, const bh__order *what));
/* A worker is lost: so are its contents. */
void bh__driven_lose(bh__device *device);
/* This worker goes on: its addresses count. */
void bh__driven_arrive(bh__device *device, uint32_t area);
void bh__driven_delete(bh__device *device, struct bh__driven *self);
/* The thread's error for a request that needs contents that are lost. */
bh_status bh__driven_refuse_lost(const bh__memory *memory, bh_error *error);

/* ---- solo.c: buffers with a chunk of their own, and guard mode, with the lock held ---- */

typedef struct bh__solo {
    bh__block block; /* what memory->block is: from the buffer's first byte to the chunk's end */
    bh__chunk chunk;
    uint64_t span;         /* addresses it takes up */
    bh__job *farewell;     /* Owned until it is used: unmaps the chunk */
    struct bh__deed *deed; /* Owned mapping. Shareable memory only; read-only if imported. */
    int deed_fd;           /* Owned. */
    bool imported;
    bool gone;         /* the chunk is unmapped; the record is kept to name what lay there */
    uint64_t reserved; /* BH__SOLO_MIRRORED: where this process keeps the chunk's addresses free */
    struct bh__driven *driven; /* Owned. BH_MANAGED_DRIVER: the chunk is each worker's own */
} bh__solo;

enum {
    BH__SOLO_GUARDED = 1, /* ends at the end of its chunk, behind which nothing is mapped */
    BH__SOLO_LED = 2,     /* has BH__SOLO_LEAD bytes before it */
    BH__SOLO_MIRRORED = 4 /* at addresses that are free in this process too, and are reserved */
};
enum { BH__SOLO_LEAD = 256, BH__GUARD_ALIGN = 16 };

static inline bool bh__guarded(const bh__device *device) {
    return device->options.flags & BH_DEVICE_GUARD;
}
/* Bytes in chunks of all kinds. */
static inline uint64_t bh__held_bytes(const bh__device *device) {
    return device->heap.bytes_total + device->solo_bytes;
}
/* The same with those that are being made: what counts against the limit. */
static inline uint64_t bh__promised_bytes(const bh__device *device) {
    return bh__held_bytes(device) + device->making_bytes;
}
/* What chunks that many buffers share may hold. */
static inline uint64_t bh__pool_limit(const bh__device *device) {
    uint64_t limit = device->options.memory_limit;
    return limit > device->solo_bytes ? limit - device->solo_bytes : 0;
}
/* Memory of `bytes` in a chunk of its own, not a buffer yet. These let go of the lock while a
 * worker carries them out. */
bh_status bh__solo_create(bh__device *device, uint64_t bytes, uint64_t align, uint32_t how,
                          bh__memory **out);
/* The same with a chunk that there is already: `offset` is where in it the memory begins. Takes `fd`
 * over if it succeeds. */
bh_status bh__solo_adopt(bh__device *device, uint64_t chunk_bytes, uint64_t offset, uint64_t bytes,
                         int fd, bh__memory **out);
/* Nothing uses the memory any more. Takes it over. */
void bh__solo_give_back(bh__device *device, bh__memory *memory);
/* Carries out what giving back left to do. */
void bh__solo_settle(bh__device *device);
void bh__solo_delete(bh__solo *solo);
/* Says what a launch was given, for a fault whose address the device does not tell. */
void bh__guard_describe(bh__device *device, const bh__use *uses, uint32_t use_count,
                        bh_error *error);
/* ---- buffer.c: for those who make memory in other ways */
/* The size of so many elements, at least one of a type there is. */
bh_status bh__buffer_bytes(bh_type type, uint64_t count, uint64_t *out);
bh_status bh__buffer_add(bh__device *device, bh__memory *memory, bh_type type, uint64_t offset,
                         uint64_t count, bh_buffer *out);

/* ---- deed.c, sharing.c */
/* The last handle is gone: tokens are refused from now on. */
void bh__deed_withdraw(bh__solo *solo);
/* A lost worker may have left some of it half written. */
void bh__deed_doubt(bh__solo *solo);
void bh__deed_close(bh__solo *solo);

/* ---- transfer.c ---- */

/* The zeros of a new buffer, on the device's own lane. If they are refused, its bytes are in doubt. */
bh_status bh__submit_zeros(bh_buffer buffer, uint64_t bytes);

bh_status bh__check_lane_device(bh_lane lane, bh_buffer buffer);
/* Submits a pattern of any length into rows of any pitch, through a staging slot. */
bh_status bh__submit_pattern(bh_lane lane, bh_buffer buffer, uint64_t offset, uint64_t pitch,
                             uint64_t width, uint64_t height, const void *pattern,
                             uint32_t pattern_bytes, bh_ticket *out);

/* ---- staging.c: host memory on the way ---- */

/* Waits for a free slot with the lock released meanwhile. */
/* Who has a slot already must not wait for another: BH_E_BUSY instead, with no error set. */
bh_status bh__staging_take(bh__device *device, bool wait, uint32_t *out_slot);
void bh__staging_put(bh__device *device, uint32_t slot, uint32_t lane, uint64_t sequence,
                     bool failed);
uint8_t *bh__staging_memory(bh__device *device, uint32_t slot);

/* A region of its own. With the lock held, let go of while the worker maps it. */
bh_status bh__host_region_create(bh__device *device, uint64_t asked, bh__memory **out);
/* The same when it is unmapped, once the work that uses it is done. */
void bh__host_region_destroy(bh__device *device, bh__memory *memory);
void bh__host_let_pass(bh__device *device, const bh__memory *memory);
bh__host_entry *bh__host_entry_of(bh__device *device, const bh__memory *memory);

/* Remembers a region that the worker has mapped, with the lock held. False: no host memory. */
bool bh__host_note(bh__device *device, const bh__host_region *region, int fd, bh__memory *memory);

/* Finds the host region that [pointer, pointer + bytes) lies in, with the lock held. */
bh__memory *bh__host_find(bh__device *device, const void *pointer, uint64_t bytes,
                          uint64_t *out_offset);

/* ---- host_pool.c, with the lock held ---- */

/* The piece of a pool that these bytes of its region lie in, if somebody has taken it; else NULL. */
bh__memory *bh__host_pool_find(struct bh__host_pool_slab *slab, uint64_t offset, uint64_t bytes,
                               uint64_t *out_offset);
/* Frees the records of all pools; their regions stay. */
void bh__host_pools_free(bh__device *device);

#endif
