/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting device memory into blocks. The memory itself is never touched: all bookkeeping is here.
 */
#ifndef BH_CLIENT_HEAP_H
#define BH_CLIENT_HEAP_H

#include <stdbool.h>
#include <stdint.h>

enum { BH__HEAP_ALIGN = 256, BH__HEAP_SIZE_CLASSES = 40, BH__HEAP_SUBCLASSES = 32 };

/* A request of this many bytes gets a chunk of its own, so that what is freed can be given back to
 * the device as it is, and large blocks never lie between small ones. */
#define BH__HEAP_WHOLE ((uint64_t)4 << 20)

/* A piece of a chunk, free or in use. */
typedef struct bh__block {
    uint64_t address;
    uint64_t bytes;
    uint32_t chunk; /* the id given to bh__heap_add_chunk */
    bool used;
    bool whole;                        /* a chunk for one request at a time, never cut */
    uint64_t surplus;                  /* in use: bytes beyond those asked for */
    struct bh__block *before, *after;  /* neighbours in the chunk */
    struct bh__block *next, *previous; /* in the list of free blocks of its size class */
} bh__block;

/* Free blocks by size. */
typedef struct bh__heap_lists {
    uint64_t class_bits;
    uint32_t subclass_bits[BH__HEAP_SIZE_CLASSES];
    bh__block *free_blocks[BH__HEAP_SIZE_CLASSES][BH__HEAP_SUBCLASSES];
} bh__heap_lists;

/* So many blocks are put back at once: the records of neighbours that nobody has looked at for long
 * are fetched together. */
enum { BH__HEAP_RETURNS = 32 };

typedef struct bh__heap {
    bh__heap_lists cut, whole;
    bh__block *spare; /* block records not in use */
    struct bh__slab *slabs;
    uint64_t bytes_total, bytes_used;
    uint64_t bytes_surplus; /* of those used: beyond what was asked for */
    uint64_t cut_total;     /* in chunks that are cut */
    uint64_t unused;        /* in chunks that are free as a whole */
    uint64_t unit;          /* chunks are multiples of this, where that is more than a little */
    uint32_t whole_count, used_count, free_count;
    uint32_t return_count;
    bh__block *returns[BH__HEAP_RETURNS]; /* freed, and still counted as used */
} bh__heap;

void bh__heap_init(bh__heap *heap);
void bh__heap_destroy(bh__heap *heap);

/* `bytes` and `address` are multiples of BH__HEAP_ALIGN. A `whole` chunk serves one request of at
 * least BH__HEAP_WHOLE at a time. False: no host memory. */
bool bh__heap_add_chunk(bh__heap *heap, uint32_t chunk, uint64_t address, uint64_t bytes,
                        bool whole);

/* `align` is a power of two; chunks are aligned to it or better. A large request is not cut from a
 * chunk unless `cut_large` says so. NULL: no free block is large enough, or no host memory (then
 * *out_of_host is true). */
bh__block *bh__heap_alloc(bh__heap *heap, uint64_t bytes, uint64_t align, bool cut_large,
                          bool *out_of_host);

/* `asked` is the size that was asked for. A large block is put back at once, most of them having a
 * chunk to themselves and no neighbours, so that the next large request need not settle the heap. */
void bh__heap_free(bh__heap *heap, bh__block *block, uint64_t asked);

/* Whoever reads the fields of a heap settles it first: what was freed is put back. */
void bh__heap_settle(bh__heap *heap);

/* Takes a chunk that is free as a whole out of the heap, the smallest there is of at least `bytes`,
 * or else the largest. False: there is none. */
bool bh__heap_take_free_chunk(bh__heap *heap, uint64_t bytes, uint32_t *out_chunk);

uint64_t bh__heap_largest_free(bh__heap *heap);

/* Brings the heap and its records into the caches, some at a time, round and round from *cursor on. */
void bh__heap_fetch_some(const bh__heap *heap, uint32_t *cursor);

#endif
