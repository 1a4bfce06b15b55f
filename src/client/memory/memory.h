/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory: chunks from the device, the heap that allocates blocks from them, memory records,
 * usage by tag, memory pressure, checks and grants. Nothing here submits work.
 */
#ifndef BH_CLIENT_MEMORY_MEMORY_H
#define BH_CLIENT_MEMORY_MEMORY_H

#include "client/core/device.h"

/* ---- memory.c: memory records ---- */

bh__memory *bh__memory_new(bh__device *device);
void bh__memory_delete(bh__device *device, bh__memory *memory);
/* Drops one reference. After the last one the memory is freed as soon as no work uses it. */
void bh__memory_release(bh__device *device, bh__memory *memory);
/* Frees idle memory and its record. */
void bh__memory_drop(bh__device *device, bh__memory *memory);
/* Frees released memory that work no longer uses. */
void bh__memory_sweep(bh__device *device);

/* ---- place.c ---- */

/* Finds a block in the existing chunks, or creates another chunk. `align` is a power of two, at
 * least BH__HEAP_ALIGN. Called and returns with the lock held; the lock may be released meanwhile.
 * NULL with the thread's error. */
bh__block *bh__block_alloc(bh__device *device, uint64_t bytes, uint64_t align);

/* ---- chunks.c ---- */

/* Has the worker create a chunk, for many buffers or (`whole`) for one at a time. The lock is
 * released meanwhile. */
bh_status bh__chunk_make(bh__device *device, uint64_t size, bool whole);
/* Gives one unused chunk back to the device, one of at least `bytes` if there is one. Returns its
 * size; 0: there is no unused chunk. The lock is released meanwhile, unless `later` leaves the
 * unmapping to the supervisor. */
uint64_t bh__chunks_trim(bh__device *device, uint64_t bytes, bool later);
/* Gives back unused chunks before one of `size` is made for `bytes`, as long as too much is
 * unused. */
void bh__chunks_trim_spare(bh__device *device, uint64_t size, uint64_t bytes);
/* Updates the peak of bh__held_bytes. */
void bh__held_note(bh__device *device);

/* ---- addresses.c ---- */

/* Take and give back addresses of the device for a chunk, as an offset from addresses.base. */
bool bh__addresses_take(bh__device *device, uint64_t bytes, uint64_t *out);
void bh__addresses_give(bh__device *device, uint64_t offset, uint64_t bytes);
/* Reserves addresses in this process. Returns false if they are in use. */
bool bh__addresses_reserve(uint64_t address, uint64_t bytes);
void bh__addresses_unreserve(uint64_t address, uint64_t bytes);

/* ---- usage.c: called with the lock held ---- */

/* Finds or adds a tag. `name` NULL or "": the tag of untagged memory. NULL with the thread's error:
 * no host memory. */
bh__tag *bh__tag_get(bh__device *device, const char *name);
void bh__tags_free(bh__device *device);
/* Counts one more buffer of this size. Fails if the tag's limit would be exceeded. */
bh_status bh__tag_charge(bh__device *device, bh__tag *tag, uint64_t bytes);
void bh__tag_discharge(bh__tag *tag, uint64_t bytes);
/* Sets the tag of memory that was charged to it. */
void bh__tag_attach(bh__tag *tag, bh__memory *memory);
/* Called before memory is allocated for a tag: charges the tag and keeps it alive while the lock is
 * released. NULL with the thread's error: refused. */
bh__tag *bh__tag_begin(bh__device *device, const char *name, uint64_t bytes);
/* Called after the allocation: attaches the tag to the memory. NULL: the allocation failed. */
void bh__tag_end(bh__tag *tag, uint64_t bytes, bh__memory *memory);
/* An allocation of this size failed for lack of memory. */
void bh__usage_refused(bh__device *device, uint64_t bytes);
/* Memory that was charged to its tag becomes a buffer; the buffer's last handle was released. */
void bh__usage_add(bh__device *device, bh__memory *memory);
void bh__usage_remove(bh__device *device, bh__memory *memory);
/* Copies the tags with the most bytes, at most 32 of them. Returns how many. */
uint32_t bh__usage_tags(const bh__device *device, bh_memory_tag *out, uint32_t capacity);
/* Writes the tags with the most bytes, for messages: "; largest: "weights" 1024 in 2 (limit
 * 4096)". */
void bh__usage_owners(bh__device *device, char *out, size_t size);

/* ---- pressure.c: called with the lock held, unless one says otherwise ---- */

/* bytes_allocated has crossed pressure.high or pressure.low, or the set of watchers has changed. */
void bh__pressure_cross(bh__device *device);
/* The memory limit has changed. */
void bh__pressure_limit(bh__device *device);
/* Queues a notification about an allocation of `asked` bytes for all watchers. */
void bh__pressure_note(bh__device *device, uint32_t reason, uint64_t asked);
/* Runs the watchers that have notifications. Returns true if there were any. Dispatcher only,
 * without the lock. */
bool bh__pressure_run(bh__device *device);

/* ---- check.c: BH_DEVICE_CHECK, called with the lock held ---- */

static inline bool bh__checked(const bh__device *device) {
    return device->options.flags & BH_DEVICE_CHECK;
}
/* Bytes between buffers, so that an access past the end of one does not hit the next. */
enum { BH__CHECK_GAP = 1024 };
/* Maps the shadow memory of a chunk. Returns false on failure. */
bool bh__check_map(bh__chunk_entry *entry);
void bh__check_unmap(bh__chunk_entry *entry);
/* Marks memory as accessible to kernels, and as not written yet. */
void bh__check_hand_out(bh__device *device, const bh__memory *memory);
/* Marks memory as freed. Takes it over, and gives it back to the heap some time later. */
void bh__check_retire(bh__device *device, bh__memory *memory);
/* Frees all retired memory. Returns false if there was none. */
bool bh__check_release_retired(bh__device *device);
/* Adds to a fault's message the buffer that the address is in, or near. */
void bh__check_describe(bh__device *device, const bh__use *uses, uint32_t use_count,
                        uint64_t address, uint32_t bytes, bh_error *error);

/* ---- dedicated.c: dedicated chunks and guard mode, called with the lock held ---- */

enum {
    BH__DEDICATED_GUARDED = 1,  /* ends where its chunk ends; the addresses after it are unmapped */
    BH__DEDICATED_LED = 2,      /* has BH__DEDICATED_LEAD bytes or more before it */
    BH__DEDICATED_MIRRORED = 4, /* its addresses are also reserved in this process */
};
enum { BH__DEDICATED_LEAD = 256, BH__GUARD_ALIGN = 16 };

static inline bool bh__guarded(const bh__device *device) {
    return device->options.flags & BH_DEVICE_GUARD;
}
/* Returns the bytes in chunks of all kinds and in variables of modules. */
static inline uint64_t bh__held_bytes(const bh__device *device) {
    return device->memory.heap.bytes_total + device->memory.dedicated_bytes +
           device->memory.module_bytes;
}
/* The same including chunks that are being created. This counts against the limit. */
static inline uint64_t bh__promised_bytes(const bh__device *device) {
    return bh__held_bytes(device) + device->memory.making_bytes;
}
/* Returns the limit for the bytes in chunks of the heap. */
static inline uint64_t bh__pool_limit(const bh__device *device) {
    uint64_t limit = device->options.memory_limit;
    uint64_t others = device->memory.dedicated_bytes + device->memory.module_bytes;
    return limit > others ? limit - others : 0;
}
/* Creates memory of `bytes` in a dedicated chunk; it is not a buffer yet. `how`: BH__DEDICATED_...
 * This and the next function release the lock while a worker executes the order. */
bh_status bh__dedicated_create(bh__device *device, uint64_t bytes, uint64_t align, uint32_t how,
                               bh__memory **out);
/* The same with the existing chunk behind `fd`. The memory begins at `offset`. Takes over `fd` on
 * success. */
bh_status bh__dedicated_adopt(bh__device *device, uint64_t chunk_bytes, uint64_t offset,
                              uint64_t bytes, int fd, bh__memory **out);
/* Frees idle memory. Takes it over. */
void bh__dedicated_give_back(bh__device *device, bh__memory *memory);
/* Guard mode: unmaps the chunks that were given back. The lock is released meanwhile. */
void bh__dedicated_settle(bh__device *device);
void bh__dedicated_delete(bh__dedicated *dedicated);
/* Adds to a fault's message the buffers that the launch was given, for a device that does not
 * report the address. */
void bh__guard_describe(bh__device *device, const bh__use *uses, uint32_t use_count,
                        bh_error *error);

/* ---- buffer_record.c ---- */

/* Computes the size of `count` elements. Fails for an unknown type and on overflow. */
bh_status bh__buffer_bytes(bh_type type, uint64_t count, uint64_t *out);
/* Adds a handle for memory or a part of it. `view`: the memory has a handle already. */
bh_status bh__buffer_add(bh__device *device, bh__memory *memory, bh_type type, uint64_t offset,
                         uint64_t count, bool view, bh_buffer *out);
/* Refuses bytes that are not all in the buffer. `what` is for the message: "copy to". */
bh_status bh__buffer_range(const char *what, uint64_t offset, uint64_t bytes,
                           const bh__buffer *buffer);
/* Gives up one reference to a buffer, and its memory with the last one. */
void bh__buffer_drop(bh__device *device, bh__buffer *buffer);

/* ---- grant.c ---- */

/* The last handle was released: all tokens are refused from now on. */
void bh__grant_withdraw(bh__dedicated *dedicated);
/* A lost worker may have left bytes half written. */
void bh__grant_doubt(bh__dedicated *dedicated);
void bh__grant_close(bh__dedicated *dedicated);

#endif
