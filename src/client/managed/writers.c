/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of one lane that write a transparent buffer and whose results are not written back:
 * from the first to the last one, less the gaps of other requests between them. Of very many gaps
 * only the latest are kept: requests in others count as writers, which costs them their BH_OK if
 * the device stops before it is told. */
#include <stdlib.h>
#include <string.h>

#include "client/managed/internal.h"

enum { MAX_GAPS = 256 };

static bool reserve(bh__writers *self) {
    if (self->gap_count < self->capacity) return true;
    uint32_t capacity = self->capacity ? self->capacity * 2 : 4;
    bh__run *gaps = realloc(self->gaps, capacity * sizeof *gaps);
    if (!gaps) return false;
    self->gaps = gaps;
    self->capacity = capacity;
    return true;
}

static void drop_gaps(bh__writers *self, uint32_t count) {
    if (count == 0) return;
    self->gap_count -= count;
    memmove(self->gaps, self->gaps + count, self->gap_count * sizeof *self->gaps);
}

void bh__writers_add(bh__writers *self, uint64_t before, uint64_t position) {
    if (self->last == 0) {
        self->first = position;
    } else if (self->last < before) {
        if (self->gap_count == MAX_GAPS) drop_gaps(self, 1);
        if (reserve(self)) self->gaps[self->gap_count++] = (bh__run){self->last + 1, before};
    }
    self->last = position;
}

void bh__writers_keep(bh__writers *self, uint64_t first, uint64_t last) {
    uint32_t done = 0;
    while (done < self->gap_count && self->gaps[done].to < first) done++;
    drop_gaps(self, done);
    for (; self->gap_count && self->gaps[self->gap_count - 1].to >= last; self->gap_count--)
        if (self->gaps[self->gap_count - 1].from <= last)
            last = self->gaps[self->gap_count - 1].from - 1;
    self->first = first;
    self->last = last;
}

void bh__writers_forget(bh__writers *self) {
    free(self->gaps);
    *self = (bh__writers){0};
}

uint32_t bh__writers_runs(const bh__writers *self, bh__run *out) {
    uint64_t from = self->first;
    for (uint32_t i = 0; i < self->gap_count; i++) {
        out[i] = (bh__run){from, self->gaps[i].from - 1};
        from = self->gaps[i].to + 1;
    }
    out[self->gap_count] = (bh__run){from, self->last};
    return self->gap_count + 1;
}
