/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of bytes, compared with one bit for each byte. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "client/memory/state.h"
#include "client/queue/uses.h"
#include "test.h"

enum { BYTES = 64 };

typedef struct set {
    bh__span *list;
    uint32_t count, capacity;
    bool in[BYTES];
} set;

/* The spans are sorted, do not touch each other, and are those bytes. */
static void check_spans(const set *self) {
    bool listed[BYTES] = {false};
    uint64_t end = 0;
    for (uint32_t i = 0; i < self->count; i++) {
        const bh__span *span = &self->list[i];
        REQUIRE(span->bytes > 0 && span->offset + span->bytes <= BYTES);
        CHECK(i == 0 || span->offset > end);
        end = span->offset + span->bytes;
        for (uint64_t at = span->offset; at < end; at++) listed[at] = true;
    }
    CHECK(memcmp(listed, self->in, sizeof listed) == 0);
}

static void check_range(const set *self, uint64_t offset, uint64_t bytes) {
    bool all = true, any = false;
    for (uint64_t at = offset; at < offset + bytes; at++) {
        all &= self->in[at];
        any |= self->in[at];
    }
    CHECK_EQ(bh__spans_cover(self->list, self->count, offset, bytes), all);
    CHECK_EQ(bh__spans_overlap(self->list, self->count, offset, bytes), any);
}

TEST(spans_are_the_bytes_that_were_added_and_not_removed) {
    for (uint64_t round = 0; round < 300; round++) {
        set self = {0};
        for (uint64_t i = 0; i < 60; i++) {
            uint64_t random = bh__hash_u64(round << 32 | i);
            uint64_t offset = random % BYTES, bytes = 1 + (random >> 16) % 6;
            bool adds = (random >> 32) % 4 != 0;
            if (bytes > BYTES - offset) bytes = BYTES - offset;
            REQUIRE((adds ? bh__spans_add : bh__spans_remove)(&self.list, &self.count,
                                                              &self.capacity, offset, bytes));
            memset(&self.in[offset], adds, bytes);
            check_spans(&self);
            check_range(&self, random >> 40 & 31, 1 + (random >> 48 & 15));
        }
        free(self.list);
    }
}
