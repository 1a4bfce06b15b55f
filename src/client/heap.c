/* SPDX-License-Identifier: Apache-2.0 */
/* The heap: two-level size classes with bitmaps, so that finding, splitting and merging blocks
 * takes constant time. */
#include "client/heap.h"

#include <stdlib.h>
#include <string.h>

enum { SLAB_BLOCKS = 256, SUBCLASS_BITS = 4, ALIGN_BITS = 8 };

typedef struct bh__slab {
    struct bh__slab *next;
    bh__block blocks[SLAB_BLOCKS];
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
        bh__slab *slab = calloc(1, sizeof *slab);
        if (!slab) return NULL;
        slab->next = heap->slabs;
        heap->slabs = slab;
        for (int i = 0; i < SLAB_BLOCKS; i++) {
            slab->blocks[i].next = heap->spare;
            heap->spare = &slab->blocks[i];
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

/* The class a block of this size is kept in: every block there is at least as large as the class's
 * lower bound. */
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

static void list_insert(bh__heap *heap, bh__block *block) {
    uint32_t major, minor;
    class_of(block->bytes, &major, &minor);
    bh__block **list = &heap->free_blocks[major][minor];
    block->used = false;
    block->previous = NULL;
    block->next = *list;
    if (*list) (*list)->previous = block;
    *list = block;
    heap->class_bits |= 1ull << major;
    heap->subclass_bits[major] |= 1u << minor;
}

static void list_remove(bh__heap *heap, bh__block *block) {
    uint32_t major, minor;
    class_of(block->bytes, &major, &minor);
    if (block->next) block->next->previous = block->previous;
    if (block->previous) {
        block->previous->next = block->next;
        return;
    }
    heap->free_blocks[major][minor] = block->next;
    if (block->next) return;
    heap->subclass_bits[major] &= ~(1u << minor);
    if (!heap->subclass_bits[major]) heap->class_bits &= ~(1ull << major);
}

bool bh__heap_add_chunk(bh__heap *heap, uint32_t chunk, uint64_t address, uint64_t bytes) {
    bh__block *block = record_take(heap);
    if (!block) return false;
    block->chunk = chunk;
    block->address = address;
    block->bytes = bytes;
    heap->bytes_total += bytes;
    list_insert(heap, block);
    return true;
}

static bh__block *find_in_list(bh__block *block, uint64_t bytes, int tries) {
    for (; block && tries > 0; block = block->next, tries--) {
        if (block->bytes >= bytes) return block;
    }
    return NULL;
}

/* The tightest fit first: a short look at the request's own class, then the classes whose every
 * block is large enough. */
static bh__block *find(bh__heap *heap, uint64_t bytes) {
    uint32_t major, minor;
    class_of(bytes, &major, &minor);
    bh__block *own = heap->free_blocks[major][minor];
    bh__block *found = find_in_list(own, bytes, 8);
    if (found) return found;
    uint32_t above = minor + 1 < 32 ? heap->subclass_bits[major] & ~((2u << minor) - 1) : 0;
    if (above) return heap->free_blocks[major][__builtin_ctz(above)];
    uint64_t majors = heap->class_bits & ~((2ull << major) - 1);
    if (!majors) return find_in_list(own, bytes, INT32_MAX);
    major = (uint32_t)__builtin_ctzll(majors);
    return heap->free_blocks[major][__builtin_ctz(heap->subclass_bits[major])];
}

bh__block *bh__heap_alloc(bh__heap *heap, uint64_t bytes, bool *out_of_host) {
    *out_of_host = false;
    if (bytes > UINT64_MAX - BH__HEAP_ALIGN) return NULL;
    bytes = (bytes + BH__HEAP_ALIGN - 1) & ~(uint64_t)(BH__HEAP_ALIGN - 1);
    if (bytes == 0) bytes = BH__HEAP_ALIGN;
    if (bytes > heap->bytes_total) return NULL;
    bh__block *block = find(heap, bytes);
    if (!block) return NULL;
    if (block->bytes > bytes) {
        bh__block *rest = record_take(heap);
        if (!rest) {
            *out_of_host = true;
            return NULL;
        }
        list_remove(heap, block);
        rest->chunk = block->chunk;
        rest->address = block->address + bytes;
        rest->bytes = block->bytes - bytes;
        rest->before = block;
        rest->after = block->after;
        if (rest->after) rest->after->before = rest;
        block->after = rest;
        block->bytes = bytes;
        list_insert(heap, rest);
    } else {
        list_remove(heap, block);
    }
    block->used = true;
    heap->bytes_used += block->bytes;
    return block;
}

bool bh__heap_free(bh__heap *heap, bh__block *block) {
    heap->bytes_used -= block->bytes;
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
    return !block->before && !block->after;
}

bool bh__heap_take_free_chunk(bh__heap *heap, uint32_t *out_chunk) {
    for (int major = BH__HEAP_SIZE_CLASSES - 1; major >= 0; major--) {
        for (int minor = 0; minor < BH__HEAP_SUBCLASSES; minor++) {
            for (bh__block *block = heap->free_blocks[major][minor]; block; block = block->next) {
                if (block->before || block->after) continue;
                list_remove(heap, block);
                heap->bytes_total -= block->bytes;
                *out_chunk = block->chunk;
                record_drop(heap, block);
                return true;
            }
        }
    }
    return false;
}

uint64_t bh__heap_largest_free(const bh__heap *heap) {
    if (!heap->class_bits) return 0;
    uint32_t major = 63 - (uint32_t)__builtin_clzll(heap->class_bits);
    uint32_t minor = 31 - (uint32_t)__builtin_clz(heap->subclass_bits[major]);
    uint64_t largest = 0;
    for (const bh__block *block = heap->free_blocks[major][minor]; block; block = block->next) {
        if (block->bytes > largest) largest = block->bytes;
    }
    return largest;
}
