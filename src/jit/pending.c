/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divergence. Of the lanes of a warp, those at the first block run, as in the interpreter; the
 * others wait at later ones. Here is found, for each block, at which others lanes may wait while it
 * runs. A row that is written there and alive where lanes wait has values of both: it varies.
 */
#include <string.h>

#include "jit/unit.h"

/* Lanes go on at one of `set`, at most at `bound`, and others of it still wait. */
static bool spread(bh__jit_unit *u, const uint64_t *set, uint32_t bound) {
    bool changed = false;
    for (uint32_t n = 0; n <= bound && n < u->block_count; n++) {
        if (!ROW_IN(set, n)) {
            continue;
        }
        uint64_t *to = u->blocks[n].pending;
        for (uint32_t w = n / 64; w < u->block_words; w++) {
            uint64_t later = w > n / 64 ? UINT64_MAX : UINT64_MAX << (n % 64) << 1;
            if (n % 64 == 63 && w == n / 64) {
                later = 0;
            }
            uint64_t add = set[w] & later & ~to[w];
            changed |= add != 0;
            to[w] |= add;
        }
    }
    return changed;
}

static bool is_divergent(const bh__jit_unit *u, const bh__jit_step *s) {
    return s->code->guard != NO_ROW && !bh__jit_is_uniform(u, s->code->guard);
}

static bool leave_block(bh__jit_unit *u, const bh__jit_block *b, uint64_t *set) {
    const bh__jit_step *last = &u->steps[b->end - 1];
    size_t bytes = u->block_words * sizeof *set;
    bool changed = false;
    memcpy(set, b->pending, bytes);
    if (last->op == JIT_EXIT || is_divergent(u, last)) {
        uint32_t bound = 0;
        for (int k = 0; k < 2; k++) {
            if (b->next[k] >= 0) {
                ROW_PUT(set, (uint32_t)b->next[k]);
                bound = (uint32_t)b->next[k] > bound ? (uint32_t)b->next[k] : bound;
            }
        }
        return spread(u, set, last->op == JIT_EXIT ? UINT32_MAX : bound);
    }
    for (int k = 0; k < 2; k++) {
        if (b->next[k] >= 0) {
            memcpy(set, b->pending, bytes);
            ROW_PUT(set, (uint32_t)b->next[k]);
            changed |= spread(u, set, (uint32_t)b->next[k]);
        }
    }
    return changed;
}

static void find_keep(bh__jit_unit *u, bh__jit_block *b) {
    memset(b->keep, 0, u->words * sizeof *b->keep);
    for (uint32_t n = 0; n < u->block_count; n++) {
        for (uint32_t w = 0; ROW_IN(b->pending, n) && w < u->words; w++) {
            b->keep[w] |= u->blocks[n].live[w];
        }
        u->blocks[n].awaited |= ROW_IN(b->pending, n);
    }
}

static bool mark_rows(bh__jit_unit *u, const bh__jit_block *b) {
    bool changed = false;
    for (uint32_t n = b->first; n < b->end; n++) {
        const bh__jit_step *s = &u->steps[n];
        for (uint32_t k = 0; k < s->def_count; k++) {
            bh__jit_row *row = &u->rows[s->defs[k]];
            if (ROW_IN(b->keep, s->defs[k]) && !row->differs) {
                row->differs = true;
                changed |= row->class != CLASS_VARYING;
                row->class = CLASS_VARYING;
                row->stride = 0;
                row->parted = false;
            }
        }
    }
    return changed;
}

bool bh__jit_find_pending(bh__jit_unit *u) {
    uint64_t *set = bh__arena_alloc(&u->arena, u->block_words + 1, sizeof *set);
    if (set == NULL) {
        u->failed = true;
        return false;
    }
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t n = 0; n < u->block_count; n++) {
            changed |= leave_block(u, &u->blocks[n], set);
        }
    }
    for (uint32_t n = 0; n < u->block_count; n++) {
        find_keep(u, &u->blocks[n]);
        changed |= mark_rows(u, &u->blocks[n]);
    }
    return changed;
}
