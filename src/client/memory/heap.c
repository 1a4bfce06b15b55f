/* SPDX-License-Identifier: Apache-2.0 */
/* The heap: two-level size classes with bitmaps, so that finding, splitting and merging blocks
 * takes constant time. Small blocks are cut from shared chunks; each large block has its own
 * chunk. */
#include "client/memory/heap.h"
#include "base/cache_line.h"

#include <stdlib.h>
#include <string.h>

enum { SLAB_BLOCKS = 256, SUBCLASS_BITS = 5, ALIGN_BITS = 8 };

typedef union aligned_block {
    bh__block block;
    _Alignas(BH__CACHE_LINE) char line[BH__CACHE_LINE];
} aligned_block;
_Static_assert(sizeof(aligned_block) == BH__CACHE_LINE, "a block's record fits a cache line");

typedef struct bh__slab {
    struct bh__slab *next;
    aligned_block blocks[SLAB_BLOCKS];
} bh__slab;

void bh__heap_init(bh__heap *heap) {
    memset(heap, 0, sizeof *heap);
}

void bh__heap_destroy(bh__heap *heap) {
    while (heap->slabs) {
        bh__slab *slab = heap->slabs;
        heap->slabs = slab->next;
        free(slab);
    }
    memset(heap, 0, sizeof *heap);
}

static bh__block *record_take(bh__heap *heap) {
    if (!heap->spare) {
        bh__slab *slab = aligned_alloc(_Alignof(bh__slab), sizeof *slab);
        if (!slab) return NULL;
        slab->next = heap->slabs;
        heap->slabs = slab;
        for (int i = 0; i < SLAB_BLOCKS; i++) {
            bh__block *block = &slab->blocks[i].block;
            block->next = heap->spare;
            heap->spare = block;
        }
    }
    bh__block *block = heap->spare;
    heap->spare = block->next;
    memset(block, 0, sizeof *block);
    return block;
}

static void record_drop(bh__heap *heap, bh__block *block) {
    block->next = heap->spare;
    heap->spare = block;
}

/* Returns the size class of a block. The class's lower bound is at most the block's size. */
static void class_of(uint64_t bytes, uint32_t *major, uint32_t *minor) {
    uint64_t units = bytes >> ALIGN_BITS;
    if (units < BH__HEAP_SUBCLASSES) {
        *major = 0;
        *minor = (uint32_t)units;
        return;
    }
    uint32_t top = 63 - (uint32_t)__builtin_clzll(units);
    *major = top - SUBCLASS_BITS + 1;
    *minor = (uint32_t)(units >> (top - SUBCLASS_BITS)) & (BH__HEAP_SUBCLASSES - 1);
}

static bh__heap_lists *lists_of(bh__heap *heap, const bh__block *block) {
    return block->whole ? &heap->whole : &heap->cut;
}

static bool is_chunk(const bh__block *block) {
    return !block->before && !block->after;
}

static void list_insert(bh__heap *heap, bh__block *block) {
    uint32_t major, minor;
    class_of(block->bytes, &major, &minor);
    bh__heap_lists *lists = lists_of(heap, block);
    bh__block **list = &lists->free_blocks[major][minor];
    block->used = false;
    block->previous = NULL;
    block->next = *list;
    if (*list) (*list)->previous = block;
    *list = block;
    lists->class_bits |= 1ull << major;
    lists->subclass_bits[major] |= 1u << minor;
    heap->free_count++;
    if (is_chunk(block)) heap->unused += block->bytes;
}

static void list_remove(bh__heap *heap, bh__block *block) {
    uint32_t major, minor;
    class_of(block->bytes, &major, &minor);
    bh__heap_lists *lists = lists_of(heap, block);
    heap->free_count--;
    if (is_chunk(block)) heap->unused -= block->bytes;
    if (block->next) block->next->previous = block->previous;
    if (block->previous) {
        block->previous->next = block->next;
        return;
    }
    lists->free_blocks[major][minor] = block->next;
    if (block->next) return;
    lists->subclass_bits[major] &= ~(1u << minor);
    if (!lists->subclass_bits[major]) lists->class_bits &= ~(1ull << major);
}

bool bh__heap_add_chunk(bh__heap *heap, uint32_t chunk, uint64_t address, uint64_t bytes,
                        bool whole) {
    bh__block *block = record_take(heap);
    if (!block) return false;
    block->chunk = chunk;
    block->address = address;
    block->bytes = bytes;
    block->whole = whole;
    heap->bytes_total += bytes;
    heap->whole_count += whole;
    if (!whole) heap->cut_total += bytes;
    list_insert(heap, block);
    return true;
}

static uint64_t padding(const bh__block *block, uint64_t align) {
    return (align - (block->address & (align - 1))) & (align - 1);
}

static bool fits(const bh__block *block, uint64_t bytes, uint64_t align) {
    uint64_t skipped = padding(block, align);
    return block->bytes >= bytes && block->bytes - bytes >= skipped;
}

/* Returns the smallest block that fits, of the first `tries` blocks of a list. */
static bh__block *find_in_list(bh__block *block, uint64_t bytes, uint64_t align, int tries) {
    bh__block *best = NULL;
    for (; block && tries > 0; block = block->next, tries--) {
        if (!fits(block, bytes, align) || (best && block->bytes >= best->bytes)) continue;
        best = block;
        if (block->bytes == bytes) break;
    }
    return best;
}

/* Takes the best of a few blocks of the request's own class, or else a block of the next class,
 * where every block is large enough. */
static bh__block *find(bh__heap_lists *lists, uint64_t bytes) {
    uint32_t major, minor;
    class_of(bytes, &major, &minor);
    bh__block *own = lists->free_blocks[major][minor];
    bh__block *found = find_in_list(own, bytes, 1, 8);
    if (found) return found;
    uint32_t above = minor + 1 < 32 ? lists->subclass_bits[major] & ~((2u << minor) - 1) : 0;
    if (above) return lists->free_blocks[major][__builtin_ctz(above)];
    uint64_t majors = lists->class_bits & ~((2ull << major) - 1);
    if (!majors) return find_in_list(own, bytes, 1, INT32_MAX);
    major = (uint32_t)__builtin_ctzll(majors);
    minor = (uint32_t)__builtin_ctz(lists->subclass_bits[major]);
    return lists->free_blocks[major][minor];
}

/* A block with room for any padding is found in constant time. If there is none, all blocks that
 * are large enough are searched for one whose address is aligned well enough. */
static bh__block *find_aligned(bh__heap_lists *lists, uint64_t bytes, uint64_t align) {
    bh__block *found = bytes <= UINT64_MAX - align ? find(lists, bytes + align) : NULL;
    if (found) return found;
    uint32_t first, minor;
    class_of(bytes, &first, &minor);
    for (uint32_t major = first; major < BH__HEAP_SIZE_CLASSES && !found; major++) {
        for (minor = 0; minor < BH__HEAP_SUBCLASSES && !found; minor++)
            found = find_in_list(lists->free_blocks[major][minor], bytes, align, INT32_MAX);
    }
    return found;
}

/* Finds a whole chunk for this request. One that is much too large is not used. */
static bh__block *find_whole(bh__heap *heap, uint64_t bytes) {
    bh__block *block = find(&heap->whole, bytes);
    uint64_t rounding = heap->unit;
    return block && block->bytes - bytes <= bytes / 8 + rounding ? block : NULL;
}

/* Splits a block that is in no list after `bytes`. The rest becomes a free block. */
static void cut(bh__heap *heap, bh__block *block, uint64_t bytes, bh__block *rest) {
    rest->chunk = block->chunk;
    rest->address = block->address + bytes;
    rest->bytes = block->bytes - bytes;
    rest->before = block;
    rest->after = block->after;
    if (rest->after) rest->after->before = rest;
    block->after = rest;
    block->bytes = bytes;
    list_insert(heap, rest);
}

static bh__block *find_any(bh__heap *heap, uint64_t bytes, uint64_t align, bool cut_large) {
    bool large = bytes >= BH__HEAP_WHOLE;
    bh__block *block = large ? find_whole(heap, bytes) : NULL;
    if (block || (large && !cut_large)) return block;
    return align > BH__HEAP_ALIGN ? find_aligned(&heap->cut, bytes, align)
                                  : find(&heap->cut, bytes);
}

bh__block *bh__heap_alloc(bh__heap *heap, uint64_t bytes, uint64_t align, bool cut_large,
                          bool *out_of_host) {
    *out_of_host = false;
    if (bytes > UINT64_MAX - BH__HEAP_ALIGN) return NULL;
    bytes = (bytes + BH__HEAP_ALIGN - 1) & ~(uint64_t)(BH__HEAP_ALIGN - 1);
    if (bytes == 0) bytes = BH__HEAP_ALIGN;
    if (bytes > heap->bytes_total) return NULL;
    if (heap->return_count) {
        /* Reuse the most recently freed block if it has the right size: no split or merge
         * needed. */
        bh__block *last = heap->returns[heap->return_count - 1];
        if (last->bytes == bytes && !last->whole && padding(last, align) == 0) {
            heap->return_count--;
            return last;
        }
    }
    bh__block *block = find_any(heap, bytes, align, cut_large);
    if (!block && heap->return_count) {
        bh__heap_settle(heap);
        block = find_any(heap, bytes, align, cut_large);
    }
    if (!block) return NULL;
    uint64_t skipped = block->whole ? 0 : padding(block, align);
    bool more = !block->whole && block->bytes - skipped > bytes;
    bh__block *body = skipped ? record_take(heap) : block;
    bh__block *rest = body && more ? record_take(heap) : NULL;
    if (!body || (more && !rest)) {
        if (body && skipped) record_drop(heap, body);
        *out_of_host = true;
        return NULL;
    }
    list_remove(heap, block);
    if (skipped) {
        /* The padding stays free. `cut` puts the body into a list: take it out again. */
        cut(heap, block, skipped, body);
        list_remove(heap, body);
        body->used = true;
        list_insert(heap, block);
    }
    body->used = true;
    if (more) cut(heap, body, bytes, rest);
    body->surplus = body->bytes - bytes;
    heap->bytes_used += body->bytes;
    heap->bytes_surplus += body->surplus;
    heap->used_count++;
    return body;
}

static void put_back(bh__heap *heap, bh__block *block) {
    heap->bytes_used -= block->bytes;
    heap->bytes_surplus -= block->surplus;
    heap->used_count--;
    bh__block *before = block->before, *after = block->after;
    if (after && !after->used) {
        list_remove(heap, after);
        block->bytes += after->bytes;
        block->after = after->after;
        if (block->after) block->after->before = block;
        record_drop(heap, after);
    }
    if (before && !before->used) {
        list_remove(heap, before);
        before->bytes += block->bytes;
        before->after = block->after;
        if (before->after) before->after->before = before;
        record_drop(heap, block);
        block = before;
    }
    list_insert(heap, block);
}

/* Merging with a free neighbour unlinks it from its list, so the records next to it in the list are
 * needed, too. */
BH__FETCHER fetch_neighbour(const bh__block *block) {
    if (!block || block->used) return;
    __builtin_prefetch(block->next);
    __builtin_prefetch(block->previous);
}

void bh__heap_settle(bh__heap *heap) {
    uint32_t count = heap->return_count;
    heap->return_count = 0;
    for (uint32_t i = 0; i < count && count > 1; i++) {
        __builtin_prefetch(heap->returns[i]->before);
        __builtin_prefetch(heap->returns[i]->after);
    }
    for (uint32_t i = 0; i < count && count > 1; i++) {
        fetch_neighbour(heap->returns[i]->before);
        fetch_neighbour(heap->returns[i]->after);
    }
    for (uint32_t i = 0; i < count; i++) put_back(heap, heap->returns[i]);
}

void bh__heap_free(bh__heap *heap, bh__block *block, uint64_t asked) {
    if (asked >= BH__HEAP_WHOLE) {
        put_back(heap, block);
        return;
    }
    __builtin_prefetch(block);
    heap->returns[heap->return_count++] = block;
    if (heap->return_count == BH__HEAP_RETURNS) bh__heap_settle(heap);
}

static bh__block *free_chunk_in(const bh__heap_lists *lists, uint64_t bytes, bh__block *best) {
    for (int major = BH__HEAP_SIZE_CLASSES - 1; major >= 0; major--) {
        if (!(lists->class_bits >> major & 1)) continue;
        for (int minor = 0; minor < BH__HEAP_SUBCLASSES; minor++) {
            for (bh__block *block = lists->free_blocks[major][minor]; block; block = block->next) {
                if (!is_chunk(block)) continue;
                bool enough = block->bytes >= bytes, enough_yet = best && best->bytes >= bytes;
                if (!best || (enough && (!enough_yet || block->bytes < best->bytes)) ||
                    (!enough && !enough_yet && block->bytes > best->bytes))
                    best = block;
            }
        }
    }
    return best;
}

bool bh__heap_take_free_chunk(bh__heap *heap, uint64_t bytes, uint32_t *out_chunk) {
    bh__heap_settle(heap);
    if (heap->unused == 0) return false;
    bh__block *block = free_chunk_in(&heap->whole, bytes, NULL);
    block = free_chunk_in(&heap->cut, bytes, block);
    list_remove(heap, block);
    heap->bytes_total -= block->bytes;
    heap->whole_count -= block->whole;
    if (!block->whole) heap->cut_total -= block->bytes;
    *out_chunk = block->chunk;
    record_drop(heap, block);
    return true;
}

static uint64_t largest_in(const bh__heap_lists *lists) {
    if (!lists->class_bits) return 0;
    uint32_t major = 63 - (uint32_t)__builtin_clzll(lists->class_bits);
    uint32_t minor = 31 - (uint32_t)__builtin_clz(lists->subclass_bits[major]);
    uint64_t largest = 0;
    for (const bh__block *block = lists->free_blocks[major][minor]; block; block = block->next) {
        if (block->bytes > largest) largest = block->bytes;
    }
    return largest;
}

uint64_t bh__heap_largest_free(bh__heap *heap) {
    bh__heap_settle(heap);
    uint64_t cut_from = largest_in(&heap->cut), whole = largest_in(&heap->whole);
    return cut_from > whole ? cut_from : whole;
}
