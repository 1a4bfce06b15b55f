/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for reads of shared and local memory that nobody wrote, and of asynchronous copies that
 * were not waited for. */
#include <stdlib.h>
#include <string.h>

#include "ptx/check/check.h"

/* Accesses are aligned to their size, of 1, 2, 4, 8, ... bytes. */
static inline bool all_written(const uint8_t *marks, unsigned bytes) {
    uint32_t word = 0;
    uint64_t wide = UINT64_C(0x0101010101010101);
    switch (bytes) {
    case 1:
        return *marks == MARK_WRITTEN;
    case 2:
        memcpy(&word, marks, 2);
        return word == 0x0101;
    case 4:
        memcpy(&word, marks, 4);
        return word == UINT32_C(0x01010101);
    default:
        for (unsigned n = 0; n < bytes && wide == UINT64_C(0x0101010101010101); n += 8) {
            memcpy(&wide, marks + n, 8);
        }
        return wide == UINT64_C(0x0101010101010101);
    }
}

/*
 * An access that does not load registers is found only if nothing of what it reads was written:
 * compilers copy structures with the padding between their members.
 */
static bool nothing_written(const uint8_t *marks, unsigned bytes) {
    for (unsigned n = 0; n < bytes; n++) {
        if (marks[n] != MARK_NONE) {
            return false;
        }
    }
    return true;
}

static bool reads(const bh__check_access *access) {
    return !(access->flags & ACCESS_WRITE) || access->flags & ACCESS_ATOMIC;
}

/* ---- blocks ---- */

static bool room_for_marks(bh__check_block *c, uint32_t bytes) {
    if (bytes > c->shared_capacity) {
        free(c->shared_marks);
        c->shared_marks = malloc(bytes);
        c->shared_capacity = c->shared_marks == NULL ? 0 : bytes;
    }
    return bytes <= c->shared_capacity;
}

bool bh__check_marks_begin(bh__ptx_block *b) {
    bh__check_block *c = b->check;
    uint32_t bytes = b->x.shared_bytes, reserved = b->x.reserved_base;
    if (!room_for_marks(c, bytes)) {
        return false;
    }
    if (bytes > 0) {
        memset(c->shared_marks, MARK_NONE, bytes);
    }
    if (reserved < bytes) {
        memset(c->shared_marks + reserved, MARK_WRITTEN, bytes - reserved); /* the system's */
    }
    for (uint32_t n = 0; n < LANES; n++) {
        bh__check_local *local = &c->locals[n];
        if (local->used > 0) {
            memset(local->marks, MARK_NONE, (size_t)local->stride * LANES);
            local->used = 0;
        }
    }
    c->copy_count = 0;
    return true;
}

/* ---- shared memory ---- */

void bh__check_shared_marks(bh__ptx_exec *x, bh__check_access *access, uint32_t mask) {
    uint8_t *marks = x->block->check->shared_marks;
    unsigned bytes = access->bytes;
    if (!reads(access)) {
        FOR_LANES_IN_ORDER(mask) {
            memset(marks + access->canonical[l], MARK_WRITTEN, bytes);
        }
        return;
    }
    FOR_LANES_IN_ORDER(mask) {
        uint8_t *its = marks + access->canonical[l];
        if (all_written(its, bytes)) {
            continue;
        }
        if (memchr(its, MARK_COPYING, bytes) != NULL) {
            bh__check_report_access(x, BH__PTX_FAULT_COPYING, l, access,
                                    ", which a cp.async that was not waited for may still write");
        } else if (access->loads) {
            access->undefined |= 1u << l;
        } else if (nothing_written(its, bytes)) {
            bh__check_report_access(x, BH__PTX_FAULT_UNINITIALISED, l, access,
                                    ", where no thread of the block wrote");
        }
        if (access->flags & ACCESS_WRITE) {
            memset(its, MARK_WRITTEN, bytes);
        }
    }
}

/* ---- local memory ---- */

uint8_t *bh__check_local_at(bh__ptx_exec *x, unsigned lane, uint64_t bytes) {
    bh__check_local *local = &x->block->check->locals[x->warp->index];
    if (bytes > local->stride) {
        uint32_t stride = x->warp->local_stride;
        uint8_t *marks = stride < bytes ? NULL : calloc(LANES, stride);
        if (marks == NULL) {
            atomic_store(&x->check->incomplete, true);
            return NULL;
        }
        for (unsigned l = 0; l < LANES && local->stride > 0; l++) {
            memcpy(marks + (size_t)l * stride, local->marks + (size_t)l * local->stride,
                   local->stride);
        }
        free(local->marks);
        local->marks = marks;
        local->stride = stride;
    }
    local->used = 1;
    return local->marks + (size_t)lane * local->stride;
}

void bh__check_local_marks(bh__ptx_exec *x, bh__check_access *access, unsigned lane,
                           uint64_t offset) {
    uint8_t *marks = bh__check_local_at(x, lane, offset + access->bytes);
    if (marks == NULL) {
        return;
    }
    if (reads(access) && access->space != SPACE_PARAM &&
        !all_written(marks + offset, access->bytes)) {
        if (access->loads) {
            access->undefined |= 1u << lane;
        } else if (nothing_written(marks + offset, access->bytes)) {
            bh__check_report_access(x, BH__PTX_FAULT_UNINITIALISED, lane, access,
                                    ", where the thread never wrote");
        }
    }
    if (access->flags & ACCESS_WRITE) {
        memset(marks + offset, MARK_WRITTEN, access->bytes);
    }
}

void bh__check_frame(bh__ptx_exec *x, uint32_t mask, uint32_t stack, const bh__ptx_function *f) {
    if (f->local_bytes == 0) {
        return;
    }
    FOR_LANES_IN_ORDER(mask) {
        uint8_t *marks = bh__check_local_at(x, l, (uint64_t)stack + f->local_bytes);
        if (marks == NULL) {
            return;
        }
        memset(marks + stack, MARK_NONE, f->local_bytes);
    }
}

void bh__check_written(bh__ptx_exec *x, unsigned lane, uint64_t address, uint64_t bytes) {
    uint64_t offset = address & (BH__PTX_WINDOW(1) - 1);
    uint8_t *marks = NULL;
    if (address >> BH__PTX_WINDOW_SHIFT == WINDOW_SHARED) {
        /* The blocks of a cluster run on one thread. */
        marks = x->block->cluster->blocks[offset >> BH__PTX_RANK_SHIFT]->check->shared_marks;
        offset &= BH__PTX_RANK_MASK;
    } else if (address >> BH__PTX_WINDOW_SHIFT == WINDOW_LOCAL) {
        marks = bh__check_local_at(x, lane, offset + bytes);
    }
    if (marks != NULL) {
        memset(marks + offset, MARK_WRITTEN, bytes);
    }
}

/* ---- cp.async ---- */

/* More copies than that are not on their way to different words of shared memory. */
enum { MAX_COPIES = 1 << 16 };

static bool room_for_copies(bh__check_block *c, size_t more) {
    if (c->copy_count + more > MAX_COPIES) {
        return false;
    }
    if (c->copy_count + more > c->copy_capacity) {
        size_t capacity = (c->copy_count + more) * 2;
        bh__check_copy *copies = realloc(c->copies, capacity * sizeof *copies);
        if (copies == NULL) {
            return false;
        }
        c->copies = copies;
        c->copy_capacity = capacity;
    }
    return true;
}

void bh__check_copy_begun(bh__ptx_exec *x, const bh__check_access *to, uint32_t mask) {
    bh__check_block *c = x->block->check;
    if (!room_for_copies(c, LANES)) {
        atomic_store(&x->check->incomplete, true);
        FOR_LANES_IN_ORDER(mask) {
            memset(c->shared_marks + to->canonical[l], MARK_WRITTEN, to->bytes);
        }
        return;
    }
    FOR_LANES_IN_ORDER(mask) {
        c->copies[c->copy_count++] =
            (bh__check_copy){.address = (uint32_t)to->canonical[l],
                             .bytes = to->bytes,
                             .code = (uint32_t)(x->code - x->module->code),
                             .group = UINT32_MAX,
                             .thread = (uint16_t)(x->warp->index * LANES + l)};
        memset(c->shared_marks + to->canonical[l], MARK_COPYING, to->bytes);
    }
}

static bool is_of(const bh__check_copy *copy, const bh__ptx_exec *x, uint32_t mask) {
    return copy->thread / LANES == x->warp->index && mask >> copy->thread % LANES & 1;
}

void bh__check_copy_commit(bh__ptx_exec *x, uint32_t mask) {
    bh__check_block *c = x->block->check;
    for (size_t n = 0; n < c->copy_count; n++) {
        bh__check_copy *copy = &c->copies[n];
        if (copy->group == UINT32_MAX && is_of(copy, x, mask)) {
            copy->group = c->groups[copy->thread];
        }
    }
    FOR_LANES_IN_ORDER(mask) {
        c->groups[x->warp->index * LANES + l]++;
    }
}

/* The copy is complete now: for other threads it is a write of this moment. */
static void complete(bh__ptx_exec *x, const bh__check_copy *copy) {
    unsigned lane = copy->thread % LANES;
    bh__check_access access = {.space = SPACE_SHARED, .bytes = copy->bytes, .flags = ACCESS_WRITE};
    const bh__ptx_code *wait = x->code;
    access.address[lane] = access.canonical[lane] = copy->address;
    access.at[lane] = x->shared + copy->address;
    x->code = &x->module->code[copy->code];
    bh__check_races(x, &access, 1u << lane, true);
    x->code = wait;
    memset(x->block->check->shared_marks + copy->address, MARK_WRITTEN, copy->bytes);
}

void bh__check_copy_wait(bh__ptx_exec *x, uint32_t mask, uint32_t left, bool uncommitted) {
    bh__check_block *c = x->block->check;
    size_t kept = 0;
    for (size_t n = 0; n < c->copy_count; n++) {
        const bh__check_copy copy = c->copies[n];
        bool waited =
            copy.group == UINT32_MAX ? uncommitted : c->groups[copy.thread] - copy.group > left;
        if (is_of(&copy, x, mask) && waited) {
            complete(x, &copy);
        } else {
            c->copies[kept++] = copy;
        }
    }
    c->copy_count = kept;
}
