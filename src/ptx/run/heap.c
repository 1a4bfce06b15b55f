/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of kernels: malloc and free. Its lists are beside the memory, where no kernel writes. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "ptx/check/check.h"

enum { UNIT = 16, CLASSES = 40 }; /* sizes and addresses are multiples of a unit */

/*
 * The heap is a row of blocks, each of some units. The first and last unit of a block have its tag:
 * twice the number of its units, plus one if it is in use. Free blocks are in a list for each power
 * of two of their size; links are the first unit's number plus one.
 */
struct bh__ptx_heap {
    pthread_mutex_t lock;
    bh__ptx_range range;
    uint32_t units;
    uint32_t *tags, *next, *before;
    uint8_t *starts; /* a bit for each unit that begins a block in use */
    uint32_t lists[CLASSES];
    void *tables;
    size_t table_bytes;
};

static unsigned class_of(uint32_t units) {
    return 31 - (unsigned)__builtin_clz(units);
}

static void set_tag(bh__ptx_heap *h, uint32_t first, uint32_t units, uint32_t used) {
    h->tags[first] = h->tags[first + units - 1] = units << 1 | used;
}

static void link_block(bh__ptx_heap *h, uint32_t first, uint32_t units) {
    uint32_t *list = &h->lists[class_of(units)];
    set_tag(h, first, units, 0);
    h->next[first] = *list;
    h->before[first] = 0;
    if (*list != 0) {
        h->before[*list - 1] = first + 1;
    }
    *list = first + 1;
}

static void unlink_block(bh__ptx_heap *h, uint32_t first) {
    uint32_t next = h->next[first], before = h->before[first];
    *(before != 0 ? &h->next[before - 1] : &h->lists[class_of(h->tags[first] >> 1)]) = next;
    if (next != 0) {
        h->before[next - 1] = before;
    }
}

static void *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

bh__ptx_heap *bh__ptx_heap_create(uint64_t bytes) {
    uint32_t units = (uint32_t)(bytes / UNIT);
    bh__ptx_heap *h = units == 0 || bytes >> 32 != 0 ? NULL : calloc(1, sizeof *h);
    if (h == NULL) {
        return NULL;
    }
    h->table_bytes = (size_t)units * 3 * sizeof(uint32_t) + units / 8 + 1;
    h->tables = map(h->table_bytes);
    void *memory = map((size_t)units * UNIT);
    if (h->tables == NULL || memory == NULL) {
        h->range.base = (uint64_t)(uintptr_t)memory;
        h->range.size = memory == NULL ? 0 : (uint64_t)units * UNIT;
        bh__ptx_heap_destroy(h);
        return NULL;
    }
    pthread_mutex_init(&h->lock, NULL);
    h->range = (bh__ptx_range){
        .base = (uint64_t)(uintptr_t)memory, .size = (uint64_t)units * UNIT, .writable = true};
    h->units = units;
    h->tags = h->tables;
    h->next = h->tags + units;
    h->before = h->next + units;
    h->starts = (uint8_t *)(h->before + units);
    link_block(h, 0, units);
    return h;
}

void bh__ptx_heap_destroy(bh__ptx_heap *h) {
    if (h == NULL) {
        return;
    }
    if (h->units != 0) {
        pthread_mutex_destroy(&h->lock);
    }
    if (h->tables != NULL) {
        munmap(h->tables, h->table_bytes);
    }
    if (h->range.size != 0) {
        munmap((void *)(uintptr_t)h->range.base, h->range.size);
    }
    free(h);
}

const bh__ptx_range *bh__ptx_heap_range(const bh__ptx_heap *h) {
    return &h->range;
}

/* A free block of at least `units`, in no list any more. UINT32_MAX: none. */
static uint32_t find_block(bh__ptx_heap *h, uint32_t units) {
    for (unsigned c = class_of(units); c < CLASSES; c++) {
        for (uint32_t at = h->lists[c]; at != 0; at = h->next[at - 1]) {
            if (h->tags[at - 1] >> 1 >= units) {
                unlink_block(h, at - 1);
                return at - 1;
            }
        }
    }
    return UINT32_MAX;
}

uint64_t bh__ptx_heap_take(bh__ptx_heap *h, uint64_t bytes) {
    if (bytes == 0 || bytes > h->range.size) {
        return 0;
    }
    uint32_t units = (uint32_t)((bytes + UNIT - 1) / UNIT);
    pthread_mutex_lock(&h->lock);
    uint32_t first = find_block(h, units);
    if (first != UINT32_MAX) {
        uint32_t left = (h->tags[first] >> 1) - units;
        if (left > 0) {
            link_block(h, first + units, left);
        }
        set_tag(h, first, units, 1);
        h->starts[first / 8] |= (uint8_t)(1u << first % 8);
    }
    pthread_mutex_unlock(&h->lock);
    return first == UINT32_MAX ? 0 : h->range.base + (uint64_t)first * UNIT;
}

static void give_locked(bh__ptx_heap *h, uint32_t first) {
    uint32_t units = h->tags[first] >> 1, after = first + units;
    h->starts[first / 8] &= (uint8_t) ~(1u << first % 8);
    if (after < h->units && (h->tags[after] & 1) == 0) {
        unlink_block(h, after);
        units += h->tags[after] >> 1;
    }
    if (first > 0 && (h->tags[first - 1] & 1) == 0) {
        uint32_t more = h->tags[first - 1] >> 1;
        unlink_block(h, first - more);
        first -= more;
        units += more;
    }
    link_block(h, first, units);
}

bool bh__ptx_heap_give(bh__ptx_heap *h, uint64_t address) {
    uint64_t offset = address - h->range.base;
    if (offset >= h->range.size || offset % UNIT != 0) {
        return false;
    }
    uint32_t first = (uint32_t)(offset / UNIT);
    pthread_mutex_lock(&h->lock);
    bool taken = h->starts[first / 8] >> first % 8 & 1;
    if (taken) {
        give_locked(h, first);
    }
    pthread_mutex_unlock(&h->lock);
    return taken;
}

bool bh__ptx_run_malloc(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const bh__ptx_call *call = i->extra;
    FOR_LANES_IN_ORDER(mask) {
        uint64_t bytes = bh__ptx_call_argument(x, &call->args[0], l);
        uint64_t address = x->grid->heap == NULL ? 0 : bh__ptx_heap_take(x->grid->heap, bytes);
        if (address != 0 && x->check != NULL) {
            bh__check_forget(x, address, bytes);
        }
        if (call->result_count > 0) {
            bh__ptx_call_result(x, &call->results[0], l, address);
        }
    }
    return true;
}

bool bh__ptx_run_free(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const bh__ptx_call *call = i->extra;
    FOR_LANES_IN_ORDER(mask) {
        uint64_t address = bh__ptx_call_argument(x, &call->args[0], l);
        if (address == 0) {
            continue;
        }
        if (x->grid->heap == NULL || !bh__ptx_heap_give(x->grid->heap, address)) {
            bh__ptx_fault_other(x, BH__PTX_FAULT_HEAP, l,
                                "free of 0x%llx, which is no block of the kernel heap: malloc did "
                                "not return it, or it was freed before",
                                (unsigned long long)address);
            x->fault->address = address;
            return false;
        }
    }
    return true;
}
