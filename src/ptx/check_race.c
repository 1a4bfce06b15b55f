/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for data races: unordered accesses to the same bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/check.h"

/* ---- cells ---- */

static bh__check_page *new_page(bh__ptx_check *check, uint64_t base) {
    bh__check_page *page = calloc(1, sizeof *page);
    if (page != NULL) {
        page->base = base;
        page->cells = calloc(PAGE_BYTES / 4, sizeof *page->cells);
    }
    if (page == NULL || page->cells == NULL) {
        free(page);
        check->out_of_memory = true;
        return NULL;
    }
    return page;
}

static bool grow(bh__ptx_check *check) {
    uint32_t count = check->bucket_count == 0 ? 1024 : check->bucket_count * 4;
    bh__check_page **buckets = calloc(count, sizeof *buckets);
    if (buckets == NULL) {
        return check->bucket_count != 0;
    }
    for (uint32_t n = 0; n < check->bucket_count; n++) {
        while (check->buckets[n] != NULL) {
            bh__check_page *page = check->buckets[n], **to;
            check->buckets[n] = page->next;
            to = &buckets[(page->base >> PAGE_SHIFT) & (count - 1)];
            page->next = *to;
            *to = page;
        }
    }
    free(check->buckets);
    check->buckets = buckets;
    check->bucket_count = count;
    return true;
}

static bh__check_page *global_page(bh__ptx_check *check, uint64_t base) {
    if (check->last != NULL && check->last->base == base) {
        return check->last;
    }
    if (check->page_count >= check->bucket_count && !grow(check)) {
        check->out_of_memory = true;
        return NULL;
    }
    bh__check_page **bucket = &check->buckets[(base >> PAGE_SHIFT) & (check->bucket_count - 1)];
    bh__check_page *page = *bucket;
    while (page != NULL && page->base != base) {
        page = page->next;
    }
    if (page == NULL && (page = new_page(check, base)) != NULL) {
        page->next = *bucket;
        *bucket = page;
        check->page_count++;
    }
    check->last = page;
    return page;
}

static bh__check_page *find_page(bh__ptx_exec *x, uint64_t base, bool shared) {
    if (!shared) {
        return global_page(x->check, base);
    }
    bh__check_page **page = &x->block->check->pages[base >> PAGE_SHIFT];
    if (*page == NULL) {
        *page = new_page(x->check, base);
    }
    return *page;
}

/* Splits the page into one cell per byte. */
static bool refine(bh__ptx_check *check, bh__check_page *page) {
    bh__check_cell *cells = calloc(PAGE_BYTES, sizeof *cells);
    if (cells == NULL) {
        check->out_of_memory = true;
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

/* ---- conflicts ---- */

/* Returns true if both accesses are strong, so that they do not race. */
static bool both_strong(const bh__check_record *a, const bh__check_record *b, bool shared) {
    uint8_t both = a->flags & b->flags, any = a->flags | b->flags;
    if (a->block != b->block && any & ACCESS_CTA) {
        return false;
    }
    if (both & ACCESS_STRONG) {
        return true;
    }
    bool strong = a->flags & (ACCESS_STRONG | ACCESS_VOLATILE) &&
                  b->flags & (ACCESS_STRONG | ACCESS_VOLATILE);
    bool one_warp = a->block == b->block && a->thread / LANES == b->thread / LANES;
    return strong && !(shared && one_warp);
}

/* No access, or one of another grid or, in shared memory, of another block. */
static bool is_old(const bh__ptx_exec *x, const bh__check_record *record, bool shared) {
    return record->time <= (shared ? x->block->check->began : x->check->began);
}

static bool conflicts(const bh__ptx_exec *x, const bh__check_record *old,
                      const bh__check_record *now, const bh__check_access *access) {
    return !is_old(x, old, access->shared) && !both_strong(old, now, access->shared) &&
           !bh__check_ordered(x->check, x->block->check, now->thread, old);
}

static const char *kind_of(uint8_t flags) {
    return flags & ACCESS_ATOMIC ? "atomic" : flags & ACCESS_WRITE ? "write" : "read";
}

static void place(const bh__ptx_exec *x, const bh__check_record *record, char *out, size_t size) {
    const uint32_t *grid = x->grid->grid, *block = x->grid->block;
    char site[140];
    bh__ptx_site_text(x->module, record->code, 40, site, sizeof site);
    snprintf(out, size, "%s by block (%u,%u,%u), thread (%u,%u,%u) on %.110s",
             kind_of(record->flags), (unsigned)(record->block % grid[0]),
             (unsigned)(record->block / grid[0] % grid[1]),
             (unsigned)(record->block / grid[0] / grid[1]), (unsigned)(record->thread % block[0]),
             (unsigned)(record->thread / block[0] % block[1]),
             (unsigned)(record->thread / block[0] / block[1]), site);
}

/* `at`: the first byte that both accesses touch. */
static bool report(bh__ptx_exec *x, const bh__check_access *access, uint64_t at,
                   const bh__check_record *old, const bh__check_record *now) {
    bh__ptx_fault *fault = x->fault;
    bh__ptx_fault_other(x, BH__PTX_FAULT_RACE, access->lane, "race");
    fault->address = at;
    fault->size = 1;
    fault->global = !access->shared;
    fault->write = access->flags & ACCESS_WRITE;
    char first[240], second[240];
    place(x, old, first, sizeof first);
    place(x, now, second, sizeof second);
    const char *apart = old->block != now->block ? "no fence and flag"
                        : old->thread / LANES == now->thread / LANES && access->shared
                            ? "no barrier and no __syncwarp"
                            : "no barrier";
    snprintf(fault->text, sizeof fault->text,
             "race at %s address 0x%llx, %s between: %.150s; %.150s",
             access->shared ? "shared" : "global", (unsigned long long)at, apart, first, second);
    return false;
}

/* ---- an access ---- */

static void note_read(const bh__ptx_exec *x, bh__check_cell *cell, const bh__check_record *now,
                      bool shared) {
    unsigned slot = 2;
    for (unsigned n = 0; n < 2; n++) {
        if (cell->reads[n].time != 0 && cell->reads[n].block == now->block &&
            cell->reads[n].thread == now->thread) {
            slot = n;
        }
    }
    for (unsigned n = 0; slot == 2 && n < 2; n++) {
        if (is_old(x, &cell->reads[n], shared) ||
            bh__check_ordered(x->check, x->block->check, now->thread, &cell->reads[n])) {
            slot = n;
        }
    }
    /* Two reads of one warp find fewer races than reads of two different warps. */
    bool alike = cell->reads[0].block == cell->reads[1].block &&
                 cell->reads[0].thread / LANES == cell->reads[1].thread / LANES;
    if (slot < 2 || alike) {
        cell->reads[slot < 2 ? slot : 1] = *now;
    }
}

static bool visit(bh__ptx_exec *x, bh__check_cell *cell, const bh__check_access *access,
                  uint64_t at, const bh__check_record *now, bool same_value) {
    if (conflicts(x, &cell->write, now, access) &&
        !(same_value && !(cell->write.flags & ACCESS_ATOMIC))) {
        return report(x, access, at, &cell->write, now);
    }
    if (!(access->flags & ACCESS_WRITE)) {
        note_read(x, cell, now, access->shared);
        return true;
    }
    for (unsigned n = 0; n < 2; n++) {
        if (conflicts(x, &cell->reads[n], now, access)) {
            return report(x, access, at, &cell->reads[n], now);
        }
    }
    cell->write = *now;
    cell->reads[0].time = cell->reads[1].time = 0;
    return true;
}

bool bh__check_race(bh__ptx_exec *x, const bh__check_access *access) {
    bh__check_record now = {.time = x->check->now,
                            .thread = (x->warp->index * LANES + access->lane) & 1023,
                            .flags = access->flags,
                            .block = x->block->check->index,
                            .code = (uint32_t)(x->code - x->module->code)};
    /* A write of the value that is already there is not reported. */
    bool same_value =
        access->value != NULL && memcmp(access->at, access->value, access->bytes) == 0;
    for (uint64_t at = access->canonical, end = at + access->bytes; at < end;) {
        uint64_t base = at & ~(uint64_t)(PAGE_BYTES - 1);
        uint64_t stop = end - base < PAGE_BYTES ? end : base + PAGE_BYTES;
        bh__check_page *page = find_page(x, base, access->shared);
        if (page == NULL || (!page->fine && access->bytes % 4 != 0 && !refine(x->check, page))) {
            return true;
        }
        unsigned grain = page->fine ? 1 : 4;
        for (; at < stop; at += grain) {
            if (!visit(x, &page->cells[(at - base) / grain], access, at, &now, same_value)) {
                return false;
            }
        }
    }
    return true;
}
