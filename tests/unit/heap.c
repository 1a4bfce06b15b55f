/* SPDX-License-Identifier: Apache-2.0 */
/* src/client/memory/heap.c: blocks against a model of which bytes are whose. */
#include "client/memory/heap.h"

#include <stdlib.h>
#include <string.h>

#include "base/cache_line.h"
#include "test.h"

enum { STEPS = 20000, MAX = 512, CHUNKS = 64 };
#define UNIT ((uint64_t)64 << 10)

typedef struct piece {
    bh__block *block;
    uint64_t asked;
} piece;

typedef struct model {
    bh__heap heap;
    piece pieces[MAX];
    size_t count;
    uint64_t asked, next_address;
    uint64_t chunk_from[CHUNKS], chunk_bytes[CHUNKS]; /* by id; no bytes: gone */
    uint32_t chunk_count;
} model;

static uint64_t random_bits(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void add_chunk(model *self, uint64_t bytes, bool whole) {
    uint32_t id = 0;
    while (id < self->chunk_count && self->chunk_bytes[id]) id++;
    REQUIRE(id < CHUNKS);
    if (id == self->chunk_count) self->chunk_count++;
    self->chunk_from[id] = self->next_address;
    self->chunk_bytes[id] = bytes;
    self->next_address += bytes + UNIT;
    REQUIRE(bh__heap_add_chunk(&self->heap, id, self->chunk_from[id], bytes, whole));
}

static void check_piece(const model *self, const piece *its, uint64_t align) {
    const bh__block *block = its->block;
    CHECK_EQ(block->address % align, 0);
    CHECK_LE(its->asked, block->bytes);
    uint64_t from = self->chunk_from[block->chunk], bytes = self->chunk_bytes[block->chunk];
    CHECK(block->address >= from && block->address + block->bytes <= from + bytes);
    for (size_t i = 0; i < self->count; i++) {
        const bh__block *other = self->pieces[i].block;
        if (other == block) continue;
        CHECK(other->address + other->bytes <= block->address ||
              block->address + block->bytes <= other->address);
    }
}

static bool take(model *self, uint64_t bytes, uint64_t align) {
    bool out_of_host;
    bh__block *block = bh__heap_alloc(&self->heap, bytes, align, false, &out_of_host);
    CHECK(!out_of_host);
    if (!block) return false;
    piece *its = &self->pieces[self->count++];
    *its = (piece){block, bytes};
    self->asked += bytes;
    check_piece(self, its, align);
    return true;
}

static void give(model *self, size_t at) {
    self->asked -= self->pieces[at].asked;
    bh__heap_free(&self->heap, self->pieces[at].block, self->pieces[at].asked);
    self->pieces[at] = self->pieces[--self->count];
}

static void check_figures(model *self) {
    bh__heap_settle(&self->heap);
    uint64_t used = 0, total = 0;
    for (size_t i = 0; i < self->count; i++) used += self->pieces[i].block->bytes;
    for (uint32_t i = 0; i < self->chunk_count; i++) total += self->chunk_bytes[i];
    CHECK_EQ(self->heap.bytes_used, used);
    CHECK_EQ(self->heap.bytes_total, total);
    CHECK_EQ(self->heap.used_count, self->count);
    /* What was asked for is rounded up to the alignment before anything is surplus. */
    CHECK_LE(self->asked, used - self->heap.bytes_surplus);
    CHECK_LE(used - self->heap.bytes_surplus, self->asked + self->count * BH__HEAP_ALIGN);
    CHECK_LE(bh__heap_largest_free(&self->heap), total - used);
}

TEST_TIMEOUT(blocks_never_overlap_and_all_comes_back, 60) {
    model *self = calloc(1, sizeof *self);
    REQUIRE(self);
    bh__heap_init(&self->heap);
    self->heap.unit = UNIT;
    self->next_address = (uint64_t)1 << 40;
    uint64_t state = 88172645463325252u;
    for (int step = 0; step < STEPS; step++) {
        bool full = self->count == MAX || self->asked > (uint64_t)256 << 20;
        if (full || (self->count && random_bits(&state) % 9 < 4)) {
            give(self, random_bits(&state) % self->count);
        } else {
            uint64_t from = (uint64_t)256 << random_bits(&state) % 16;
            uint64_t bytes = from + random_bits(&state) % from;
            uint64_t align = (uint64_t)256 << (random_bits(&state) % 8 == 0 ? 8 : 0);
            uint32_t gone;
            if (!take(self, bytes, align)) {
                uint64_t rounded = (bytes + UNIT - 1) / UNIT * UNIT;
                while (self->heap.bytes_total > (uint64_t)320 << 20 &&
                       bh__heap_take_free_chunk(&self->heap, rounded, &gone))
                    self->chunk_bytes[gone] = 0;
                bool whole = bytes >= BH__HEAP_WHOLE;
                add_chunk(self, whole ? rounded : (uint64_t)16 << 20, whole);
                CHECK(take(self, bytes, align));
            }
        }
        if (step % 64 == 0) check_figures(self);
    }
    while (self->count) give(self, 0);
    check_figures(self);
    CHECK_EQ(self->heap.unused, self->heap.bytes_total);
    for (uint32_t gone; bh__heap_take_free_chunk(&self->heap, 0, &gone);)
        self->chunk_bytes[gone] = 0;
    check_figures(self);
    CHECK_EQ(self->heap.bytes_total, 0);
    bh__heap_destroy(&self->heap);
    free(self);
}

TEST(what_was_freed_is_found_again_before_anything_is_missed) {
    bh__heap heap;
    bh__heap_init(&heap);
    heap.unit = UNIT;
    REQUIRE(bh__heap_add_chunk(&heap, 0, 1 << 20, 1 << 20, false));
    bool out_of_host;
    bh__block *halves[2];
    for (int i = 0; i < 2; i++) {
        halves[i] = bh__heap_alloc(&heap, 1 << 19, BH__HEAP_ALIGN, false, &out_of_host);
        REQUIRE(halves[i]);
    }
    CHECK(!bh__heap_alloc(&heap, 1, BH__HEAP_ALIGN, false, &out_of_host));
    bh__heap_free(&heap, halves[0], 1 << 19);
    bh__heap_free(&heap, halves[1], 1 << 19);
    CHECK(bh__heap_alloc(&heap, 1 << 20, BH__HEAP_ALIGN, false, &out_of_host));
    bh__heap_destroy(&heap);
}

TEST(a_chunk_of_one_request_serves_those_that_waste_little_of_it) {
    bh__heap heap;
    bh__heap_init(&heap);
    heap.unit = UNIT;
    uint64_t bytes = (uint64_t)16 << 20;
    REQUIRE(bh__heap_add_chunk(&heap, 0, 1 << 20, bytes, true));
    bool out_of_host;
    CHECK(!bh__heap_alloc(&heap, bytes + 1, BH__HEAP_ALIGN, false, &out_of_host));
    CHECK(!bh__heap_alloc(&heap, bytes / 2, BH__HEAP_ALIGN, false, &out_of_host));
    CHECK(!bh__heap_alloc(&heap, 256, BH__HEAP_ALIGN, false, &out_of_host));
    bh__block *block = bh__heap_alloc(&heap, bytes / 10 * 9, BH__HEAP_ALIGN, false, &out_of_host);
    REQUIRE(block);
    CHECK_EQ(block->bytes, bytes);
    CHECK_LE(bytes / 10 - BH__HEAP_ALIGN, heap.bytes_surplus);
    bh__heap_free(&heap, block, bytes / 10 * 9);
    CHECK_EQ(heap.bytes_surplus, 0);
    CHECK_EQ(heap.unused, bytes);
    bh__heap_destroy(&heap);
}

/* A program that frees a large buffer and asks for the next makes the heap look at no other
 * block. */
TEST(a_large_request_leaves_what_was_freed_where_it_waits) {
    bh__heap heap;
    bh__heap_init(&heap);
    heap.unit = UNIT;
    uint64_t large = (uint64_t)16 << 20;
    REQUIRE(bh__heap_add_chunk(&heap, 0, 1 << 20, 1 << 20, false));
    REQUIRE(bh__heap_add_chunk(&heap, 1, large, large, true));
    bool out_of_host;
    bh__block *small = bh__heap_alloc(&heap, 4096, BH__HEAP_ALIGN, false, &out_of_host);
    bh__block *block = bh__heap_alloc(&heap, large, BH__HEAP_ALIGN, false, &out_of_host);
    REQUIRE(small && block);
    bh__heap_free(&heap, small, 4096);
    bh__heap_free(&heap, block, large);
    CHECK(bh__heap_alloc(&heap, large, BH__HEAP_ALIGN, false, &out_of_host) == block);
    CHECK_EQ(heap.return_count, 1);
    bh__heap_settle(&heap);
    CHECK_EQ(heap.bytes_used, large);
    bh__heap_destroy(&heap);
}
