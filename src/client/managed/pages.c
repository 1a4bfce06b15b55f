/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of pages: one bit for each page. */
#include <stdlib.h>

#include "client/managed/internal.h"

bool bh__pages_make(bh__pages *pages, uint64_t count) {
    pages->words = calloc((count + 63) / 64, sizeof *pages->words);
    pages->set = 0;
    return pages->words;
}

void bh__pages_free(bh__pages *pages) {
    free(pages->words);
    pages->words = NULL;
}

/* The bits of this word that stand for pages of [from, to). */
static uint64_t mask_of(uint64_t word, uint64_t from, uint64_t to) {
    uint64_t mask = UINT64_MAX;
    if (word == from / 64) mask <<= from % 64;
    if (word == to / 64) mask &= ((uint64_t)1 << (to % 64)) - 1;
    return mask;
}

void bh__pages_add(bh__pages *pages, uint64_t from, uint64_t to) {
    for (uint64_t word = from / 64; word * 64 < to; word++) {
        uint64_t more = mask_of(word, from, to) & ~pages->words[word];
        pages->words[word] |= more;
        pages->set += (uint64_t)__builtin_popcountll(more);
    }
}

void bh__pages_remove(bh__pages *pages, uint64_t from, uint64_t to) {
    if (pages->set == 0) return;
    for (uint64_t word = from / 64; word * 64 < to; word++) {
        uint64_t less = mask_of(word, from, to) & pages->words[word];
        pages->words[word] &= ~less;
        pages->set -= (uint64_t)__builtin_popcountll(less);
    }
}

/* The first page of [from, to) that is in the set (`in`) or not in it. `to`: there is none. */
static uint64_t find(const bh__pages *pages, uint64_t from, uint64_t to, bool in) {
    for (uint64_t word = from / 64; word * 64 < to; word++) {
        uint64_t bits = in ? pages->words[word] : ~pages->words[word];
        bits &= mask_of(word, from, to);
        if (bits) return word * 64 + (uint64_t)__builtin_ctzll(bits);
        from = (word + 1) * 64;
    }
    return to;
}

bool bh__pages_next(const bh__pages *pages, uint64_t from, uint64_t to, uint64_t *out_from,
                    uint64_t *out_to) {
    if (pages->set == 0 || from >= to) return false;
    *out_from = find(pages, from, to, true);
    if (*out_from == to) return false;
    *out_to = find(pages, *out_from, to, false);
    return true;
}
