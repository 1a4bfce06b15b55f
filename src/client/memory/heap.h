/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates blocks of device memory from chunks. The memory itself is never accessed: all records
 * are in host memory. */
#ifndef BH_CLIENT_MEMORY_HEAP_H
#define BH_CLIENT_MEMORY_HEAP_H

#include <stdbool.h>
#include <stdint.h>

enum { BH__HEAP_ALIGN = 256, BH__HEAP_SIZE_CLASSES = 40, BH__HEAP_SUBCLASSES = 32 };

/* A request of at least this many bytes gets its own chunk. Such a chunk can be given back to the
 * device when it is freed, and large blocks never lie between small ones. */
#define BH__HEAP_WHOLE ((uint64_t)4 << 20)

/* A piece of a chunk, free or in use. */
typedef struct bh__block {
    uint64_t address;
    uint64_t bytes;
    uint32_t chunk; /* the id given to bh__heap_add_chunk */
    bool used;
    bool whole;                        /* a chunk for one request at a time, never split */
    uint64_t surplus;                  /* in use: bytes beyond those requested */
    struct bh__block *before, *after;  /* neighbours in the chunk */
    struct bh__block *next, *previous; /* in the list of free blocks of its size class */
} bh__block;

/* Free blocks by size. */
typedef struct bh__heap_lists {
    uint64_t class_bits;
    uint32_t subclass_bits[BH__HEAP_SIZE_CLASSES];
    bh__block *free_blocks[BH__HEAP_SIZE_CLASSES][BH__HEAP_SUBCLASSES];
} bh__heap_lists;

/* Freed blocks are merged in batches of this size: the records of their neighbours, which are not
 * in the cache, are prefetched together. */
enum { BH__HEAP_RETURNS = 32 };

typedef struct bh__heap {
    bh__heap_lists cut, whole;
    bh__block *spare; /* block records not in use */
    struct bh__slab *slabs;
    uint64_t bytes_total, bytes_used;
    uint64_t bytes_surplus; /* part of bytes_used: beyond the bytes requested */
    uint64_t cut_total;     /* bytes in chunks that are split */
    uint64_t unused;        /* bytes in chunks that are entirely free */
    uint64_t unit;          /* chunk granularity, which large requests are rounded up to */
    uint32_t whole_count, used_count, free_count;
    uint32_t return_count;
    bh__block *returns[BH__HEAP_RETURNS]; /* freed, but still counted as used: bh__heap_settle */
} bh__heap;

void bh__heap_init(bh__heap *heap);
void bh__heap_destroy(bh__heap *heap);

/* `bytes` and `address` are multiples of BH__HEAP_ALIGN. A `whole` chunk serves one request of at
 * least BH__HEAP_WHOLE at a time. Returns false if there is no host memory. */
bool bh__heap_add_chunk(bh__heap *heap, uint32_t chunk, uint64_t address, uint64_t bytes,
                        bool whole);

/* `align` is a power of two; chunks have at least this alignment. A large request is cut from a
 * shared chunk only if `cut_large` is set. Returns NULL if no free block is large enough, or if
 * there is no host memory (then *out_of_host is true). */
bh__block *bh__heap_alloc(bh__heap *heap, uint64_t bytes, uint64_t align, bool cut_large,
                          bool *out_of_host);

/* `asked` is the size that was requested. A large block is merged at once: most have their own
 * chunk and no neighbours, and the next large request then finds it without settling the heap. */
void bh__heap_free(bh__heap *heap, bh__block *block, uint64_t asked);

/* Merges all freed blocks. Must be called before the fields of a heap are read. */
void bh__heap_settle(bh__heap *heap);

/* Removes an entirely free chunk from the heap: the smallest of at least `bytes`, or else the
 * largest. Returns false if there is none. */
bool bh__heap_take_free_chunk(bh__heap *heap, uint64_t bytes, uint32_t *out_chunk);

uint64_t bh__heap_largest_free(bh__heap *heap);

#endif
