/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/memory.h: what is allocated and by whom, limits, pools of host memory. Stable.
 *
 * A buffer with a tag, and what all buffers with tags add up to:
 *
 *     bh_status report(bh_device device, bh_buffer *weights) {
 *         bh_buffer_options options = BH_INIT(options);
 *         options.tag = "weights";
 *         bh_status status = bh_buffer_alloc(device, BH_F32, 1000, &options, weights);
 *         bh_memory_tag tags[16];
 *         size_t count = 0;
 *         if (!status) status = bh_memory_list_tags(device, tags, sizeof *tags, 16, &count);
 *         for (size_t i = 0; i < count && i < 16; i++)
 *             printf("%s: %llu bytes\n", tags[i].tag, (unsigned long long)tags[i].bytes);
 *         return status;
 *     }
 */
#ifndef BULKHEAD_MEMORY_H
#define BULKHEAD_MEMORY_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- totals and limits ----
 *
 * Buffers are cut from chunks of device memory; a buffer of 4 MiB or more has a chunk of its own.
 * Chunks without buffers are kept for later allocations. When another chunk is made, unused chunks
 * are given back to the device as long as it would hold more than 5/32 beyond what is in buffers.
 * Before an allocation fails, all of them are given back.
 */
typedef struct bh_memory_info {
    uint32_t size;
    uint32_t chunks;
    uint64_t buffers;        /* allocations; views do not count */
    uint64_t bytes_buffers;  /* in buffers, as requested */
    uint64_t bytes_used;     /* taken from chunks for buffers and for released buffers still in use;
                                and in the variables of modules */
    uint64_t bytes_leaving;  /* of those: released, still used by queued work */
    uint64_t bytes_reserved; /* in chunks, and in the variables of modules */
    uint64_t bytes_free;     /* bytes_reserved - bytes_used */
    uint64_t largest_free;   /* the largest contiguous free range */
    uint64_t bytes_unused;   /* in chunks without buffers: what bh_memory_trim can give back */
    uint64_t limit;          /* maximum of bytes_reserved */
    uint64_t peak_buffers;   /* of bytes_buffers since open, or since bh_memory_reset_peak */
    uint64_t peak_reserved;  /* of bytes_reserved, likewise */
    uint64_t refusals;       /* allocations that failed because memory ran out */
    uint64_t bytes_modules;  /* in the variables of modules, counted once: each worker has them */
    uint64_t
        managed_buffers;    /* managed buffers, of the kinds that the library or the driver moves */
    uint64_t managed_bytes; /* in them, as requested */
    uint64_t managed_to_device; /* bytes of them that the library has moved so far */
    uint64_t managed_to_host;
} bh_memory_info;

/* How often memory was allocated and given back: bh_device_counters (observe.h). */
BH_API bh_status bh_memory_get_info(bh_device device, bh_memory_info *out);
/* Sets the peaks, those of tags too, to what is allocated now. */
BH_API bh_status bh_memory_reset_peak(bh_device device);

/* The maximum bytes of buffers with this tag; 0: no limit. With tag NULL the maximum bytes that the
 * device may hold (bh_device_options.memory_limit); 0: all that it has. Existing allocations stay;
 * a device that holds more gives back what it can. */
BH_API bh_status bh_memory_set_limit(bh_device device, const char *tag, uint64_t bytes);

/* Gives chunks without buffers back to the device, until it holds at most `keep_bytes` in all.
 * out_freed, which may be NULL, gets the number of bytes given back. */
BH_API bh_status bh_memory_trim(bh_device device, uint64_t keep_bytes, uint64_t *out_freed);

/* ---- what is allocated ---- */

enum {
    BH_TAG_BYTES = 96 /* of a tag with its NUL; of a longer tag the end is kept */
};

enum {
    BH_MEMORY_LIVE = 1,   /* a handle to it exists */
    BH_MEMORY_LEAVING = 2 /* released, still used by queued work */
};

typedef struct bh_memory_entry {
    uint32_t size;
    bh_type type;
    uint64_t count;
    uint64_t bytes;      /* as requested */
    uint64_t bytes_used; /* taken from a chunk */
    uint64_t address;
    uint32_t state;         /* BH_MEMORY_LIVE ... */
    uint32_t handles;       /* buffers and views that share it */
    const void *call_site;  /* the return address of the allocating call; see addr2line, dladdr */
    char tag[BH_TAG_BYTES]; /* "": none */
} bh_memory_entry;

/* Every list of the library fills in up to `capacity` entries of `entry_size` bytes, as of one
 * moment, and *count gets how many there are. With capacity 0 it gives the count alone, and entries
 * may be NULL. entry_size is the sizeof of an entry: programs built with older or newer headers get
 * what both sides know, and zeros. No list calls back.
 *
 * This one has all allocations, largest first. */
BH_API bh_status bh_memory_list(bh_device device, bh_memory_entry *entries, size_t entry_size,
                                size_t capacity, size_t *count);

typedef struct bh_memory_tag {
    uint32_t size;
    uint32_t reserved;
    uint64_t bytes; /* in buffers with this tag */
    uint64_t buffers;
    uint64_t peak;  /* of bytes since bh_memory_reset_peak */
    uint64_t limit; /* 0: none */
    uint64_t allocations;
    char tag[BH_TAG_BYTES]; /* "": buffers without a tag */
} bh_memory_tag;

/* The same by tag. */
BH_API bh_status bh_memory_list_tags(bh_device device, bh_memory_tag *entries, size_t entry_size,
                                     size_t capacity, size_t *count);

/* ---- pools of host memory ----
 *
 * Memory as from bh_host_alloc, for programs that take and give back pieces often. A piece that is
 * handed out is all zeros: a used one is cleared first, at the speed of memset, by the thread that
 * takes it, so that no user sees the data of another. A piece that is given back while queued work
 * still uses it is handed out again only after that work. Pieces survive the loss of a worker.
 */
typedef struct bh_host_pool {
    uint64_t id;
} bh_host_pool;

typedef struct bh_host_pool_options {
    uint32_t size;
    uint32_t reserved;
    uint64_t max_bytes; /* that the pool may hold, at least 4096; default 256 MiB */
    uint64_t max_piece; /* the largest that can be taken; default a quarter of max_bytes */
} bh_host_pool_options;

BH_API bh_status bh_host_pool_open(bh_device device, const bh_host_pool_options *options,
                                   bh_host_pool *out);
/* At least `bytes`, aligned to 256. If the pool is exhausted, waits until a piece is given back:
 * BH_E_TIMEOUT after timeout_ns, BH_E_BUSY at once if timeout_ns is 0. If the pool can grow, it
 * does, which takes as long as bh_host_alloc, whatever timeout_ns is. */
BH_API bh_status bh_host_pool_take(bh_host_pool pool, uint64_t bytes, uint64_t timeout_ns,
                                   void **out);
BH_API bh_status bh_host_pool_give(bh_host_pool pool, void *piece);

typedef struct bh_host_pool_info {
    uint32_t size;
    uint32_t waiting;        /* threads in bh_host_pool_take */
    uint64_t bytes_reserved; /* held by the pool */
    uint64_t bytes_taken;    /* in pieces that are handed out */
    uint64_t bytes_cooling;  /* given back, still used by queued work */
    uint64_t max_bytes;
    uint64_t peak_taken; /* of bytes_taken */
    uint64_t pieces_taken;
    uint64_t takes;         /* so far */
    uint64_t waits;         /* takes that had to wait */
    uint64_t refusals;      /* takes that failed because the pool was exhausted */
    uint64_t bytes_cleared; /* zeroed before being handed out again */
} bh_host_pool_info;

BH_API bh_status bh_host_pool_get_info(bh_host_pool pool, bh_host_pool_info *out);
/* BH_E_BUSY while pieces are taken. Waits for work that still uses pieces that were given back. */
BH_API bh_status bh_host_pool_release(bh_host_pool pool);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
