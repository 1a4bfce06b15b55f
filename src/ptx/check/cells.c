/* SPDX-License-Identifier: Apache-2.0 */
/* Checks: where the records of accesses are kept. */
#include <stdlib.h>
#include <string.h>

#include "ptx/check/check.h"

/* ---- sites ---- */

static bool room_for_sites(bh__ptx_check *check, uint32_t piece) {
    if (atomic_load_explicit(&check->sites[piece], memory_order_acquire) != NULL) {
        return true;
    }
    bh__check_site *sites = malloc(sizeof *sites << SITES_SHIFT), *none = NULL;
    if (sites == NULL) {
        return false;
    }
    if (!atomic_compare_exchange_strong(&check->sites[piece], &none, sites)) {
        free(sites); /* another thread was faster */
    }
    return true;
}

/* Gives the block's thread numbers for the next sites. A piece is a multiple of them. */
static bool reserve(bh__ptx_check *check, bh__check_block *c) {
    uint32_t count = atomic_load_explicit(&check->site_count, memory_order_relaxed), next;
    do {
        next = count + CHECK_FIRST_SITE;
        if (next >> SITES_SHIFT >= SITE_PIECES) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&check->site_count, &count, next));
    if (!room_for_sites(check, count >> SITES_SHIFT)) {
        return false;
    }
    c->site_next = count;
    c->site_end = next;
    return true;
}

/* The numbers of an earlier grid mean nothing: this one gives them to other instructions. */
static bool room_for_numbers(bh__ptx_exec *x) {
    bh__check_block *c = x->block->check;
    size_t stride = (size_t)x->module->code_count * 2, needed = stride * x->block->warp_count;
    if (needed > c->site_capacity) {
        free(c->site_of);
        c->site_of = calloc(needed, sizeof *c->site_of);
        c->site_capacity = c->site_of == NULL ? 0 : needed;
    } else {
        memset(c->site_of, 0, needed * sizeof *c->site_of);
    }
    c->site_stride = stride;
    return needed <= c->site_capacity;
}

uint32_t bh__check_own_site(bh__ptx_exec *x, uint8_t flags) {
    bh__ptx_check *check = x->check;
    bh__check_block *c = x->block->check;
    uint32_t code = (uint32_t)(x->code - x->module->code), warp = x->warp->index;
    if (c->site_stride != (size_t)x->module->code_count * 2 && !room_for_numbers(x)) {
        return 0;
    }
    uint32_t *number =
        &c->site_of[warp * c->site_stride + code * 2 + (flags & ACCESS_WRITE ? 1 : 0)];
    /* Numbers are not cleared for a new block: a number that is not of this one shows it. */
    if (*number != 0) {
        const bh__check_site *s =
            bh__check_site_of(check, (bh__check_record)*number << RECORD_SITE_SHIFT);
        if (s->block == c->index && s->code == code && s->warp == warp && s->flags == flags) {
            return *number;
        }
    }
    if (c->site_next == c->site_end && !reserve(check, c)) {
        return 0;
    }
    *number = c->site_next++;
    atomic_load_explicit(&check->sites[*number >> SITES_SHIFT],
                         memory_order_relaxed)[*number & ((1u << SITES_SHIFT) - 1)] =
        (bh__check_site){.block = c->index, .code = code, .warp = (uint8_t)warp, .flags = flags};
    return *number;
}

/* ---- pages ---- */

static bh__check_page *new_page(uint64_t base) {
    bh__check_page *page = calloc(1, sizeof *page);
    if (page != NULL) {
        page->base = base;
        atomic_flag_clear(&page->lock);
        page->cells = calloc(PAGE_BYTES / 4, sizeof *page->cells);
    }
    if (page == NULL || page->cells == NULL) {
        free(page);
        return NULL;
    }
    return page;
}

void bh__check_page_free(bh__check_page *page) {
    if (page != NULL) {
        free(page->cells);
        free(page);
    }
}

void bh__check_page_clear(bh__check_page *page) {
    memset(page->cells, 0, (page->fine ? PAGE_BYTES : PAGE_BYTES / 4) * sizeof *page->cells);
}

static _Atomic(bh__check_page *) *bucket_of(bh__ptx_check *check, uint64_t base) {
    uint64_t number = base >> PAGE_SHIFT;
    return &check->buckets[(number ^ number >> 14) & (CHECK_BUCKETS - 1)];
}

/* Pages are only added while a grid runs, so lists can be followed without a lock. */
static bh__check_page *find_page(bh__check_page *first, uint64_t base) {
    while (first != NULL && first->base != base) {
        first = first->next;
    }
    return first;
}

static bh__check_page *global_page(bh__ptx_check *check, uint64_t base) {
    _Atomic(bh__check_page *) *bucket = bucket_of(check, base);
    bh__check_page *first = atomic_load_explicit(bucket, memory_order_acquire), *added = NULL;
    for (;;) {
        bh__check_page *page = find_page(first, base);
        if (page != NULL) {
            bh__check_page_free(added);
            return page;
        }
        if (added == NULL && (added = new_page(base)) == NULL) {
            return NULL;
        }
        added->next = first;
        if (atomic_compare_exchange_strong(bucket, &first, added)) {
            atomic_fetch_add_explicit(&check->page_count, 1, memory_order_relaxed);
            return added;
        }
    }
}

static bh__check_page *shared_page(bh__check_block *c, uint64_t base) {
    bh__check_page **page = &c->pages[base >> PAGE_SHIFT];
    if (*page == NULL) {
        *page = new_page(base);
    }
    return *page;
}

static inline void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void lock_page(bh__check_page *page) {
    while (atomic_flag_test_and_set_explicit(&page->lock, memory_order_acquire)) {
        pause_briefly();
    }
}

bh__check_page *bh__check_page_take(bh__ptx_exec *x, uint64_t base, bool shared) {
    bh__check_block *c = x->block->check;
    bh__check_page *page;
    if (shared) {
        page = shared_page(c, base);
    } else {
        bh__check_page **recent = &c->recent[base >> PAGE_SHIFT & (PAGE_CACHE - 1)];
        page = *recent;
        if (page == NULL || page->base != base) {
            page = *recent = global_page(x->check, base);
        }
    }
    if (page == NULL) {
        atomic_store(&x->check->incomplete, true);
        return NULL;
    }
    if (!shared) {
        lock_page(page);
    }
    return page;
}

void bh__check_page_give(bh__check_page *page, bool shared) {
    if (!shared && page != NULL) {
        atomic_flag_clear_explicit(&page->lock, memory_order_release);
    }
}

void bh__check_forget(bh__ptx_exec *x, uint64_t address, uint64_t bytes) {
    uint64_t end = address + bytes;
    while (address < end) {
        uint64_t base = address & ~(uint64_t)(PAGE_BYTES - 1);
        uint64_t stop = base + PAGE_BYTES < end ? base + PAGE_BYTES : end;
        bh__check_page *page =
            find_page(atomic_load_explicit(bucket_of(x->check, base), memory_order_acquire), base);
        if (page != NULL) {
            lock_page(page);
            unsigned grain = page->fine ? 1 : 4;
            memset(&page->cells[(address - base) / grain], 0,
                   (stop - address + grain - 1) / grain * sizeof *page->cells);
            bh__check_page_give(page, false);
        }
        address = stop;
    }
}

bool bh__check_page_refine(bh__ptx_check *check, bh__check_page *page) {
    bh__check_cell *cells = calloc(PAGE_BYTES, sizeof *cells);
    if (cells == NULL) {
        atomic_store(&check->incomplete, true);
        return false;
    }
    for (uint32_t n = 0; n < PAGE_BYTES; n++) {
        cells[n] = page->cells[n / 4];
    }
    free(page->cells);
    page->cells = cells;
    page->fine = true;
    return true;
}

void bh__check_pages_free(bh__ptx_check *check) {
    for (uint32_t n = 0; n < CHECK_BUCKETS; n++) {
        bh__check_page *page = atomic_exchange(&check->buckets[n], NULL);
        while (page != NULL) {
            bh__check_page *next = page->next;
            bh__check_page_free(page);
            page = next;
        }
    }
    atomic_store(&check->page_count, 0);
}
