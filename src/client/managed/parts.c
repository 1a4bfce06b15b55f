/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of which some bytes are suspect: which bytes of them are intact. */
#include "client/managed/internal.h"
#include "client/queue/walk.h"

/* The bytes that are not intact, seen from the byte `at`. */
typedef struct view {
    bh__device *device;
    const bh__memory *memory;
    uint64_t at;
    uint64_t covered_to; /* end of the suspect range that contains `at`; equal to `at` if there is
                            none */
    uint64_t next;       /* where the next one begins */
} view;

static void see(view *self, uint64_t from, uint64_t to) {
    if (from <= self->at && to > self->covered_to) self->covered_to = to;
    if (from > self->at && from < self->next) self->next = from;
}

/* What a lost worker may have written of a request that has no verdict yet. */
static void see_request(void *context, bh__lane *lane, bh__shadow *shadow) {
    view *self = context;
    if (shadow->resolved || shadow->start >= lane->begun) return;
    for (uint32_t i = 0; i < shadow->use_count; i++) {
        const bh__use *use = bh__use_at(self->device, lane, shadow, i);
        if (use->memory == self->memory && (use->access & BH_ACCESS_OUT))
            see(self, use->offset, use->offset + use->bytes);
    }
}

bool bh__managed_intact(bh__device *device, const bh__managed *self, uint64_t from, uint64_t to,
                        uint64_t *out_from, uint64_t *out_to) {
    const bh__memory *memory = self->memory;
    if (memory->doubt_whole) return false;
    view it = {.device = device, .memory = memory, .covered_to = from};
    do {
        it.at = it.covered_to;
        it.next = to;
        for (uint32_t i = 0; i < memory->doubt_count; i++)
            see(&it, memory->doubt[i].offset, memory->doubt[i].offset + memory->doubt[i].bytes);
        bh__requests_walk(device, see_request, &it);
    } while (it.covered_to > it.at && it.covered_to < to);
    *out_from = it.at;
    *out_to = it.next;
    return it.covered_to == it.at && it.at < to;
}
