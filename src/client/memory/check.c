/* SPDX-License-Identifier: Apache-2.0 */
/* BH_DEVICE_CHECK, the application's part: records which bytes of a chunk belong to buffers, delays
 * the reuse of freed memory, and describes the address of a bad access. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/shadow.h"
#include "client/memory/memory.h"
#include "wire/share.h"

typedef unsigned long long ull;

enum { RETIRED_COUNT = 256 };
#define RETIRED_BYTES ((uint64_t)64 << 20)
#define NEAR_BYTES    ((uint64_t)1 << 20) /* a buffer at least this far away is not named */

bool bh__check_map(bh__chunk_entry *entry) {
    uint64_t bytes = entry->chunk.bytes;
    /* The worker made the file, so its size and seals must be checked. */
    if (!bh__share_is_steady(entry->fd, bh__checked_chunk_bytes(bytes))) return false;
    entry->marks = bh__share_map(entry->fd, bh__marks_offset(bytes), bytes, true);
    entry->map = bh__share_map(entry->fd, bh__map_offset(bytes), bh__map_bytes(bytes), true);
    if (entry->marks && entry->map) return true;
    bh__check_unmap(entry);
    return false;
}

void bh__check_unmap(bh__chunk_entry *entry) {
    uint64_t bytes = entry->chunk.bytes;
    if (entry->marks) bh__share_unmap(entry->marks, bytes);
    if (entry->map) bh__share_unmap(entry->map, bh__map_bytes(bytes));
    entry->marks = entry->map = NULL;
}

static const bh__chunk_entry *entry_of(const bh__device *device, const bh__memory *memory) {
    for (uint32_t i = 0; i < device->memory.chunk_count; i++) {
        if (device->memory.chunks[i].chunk.id == memory->block->chunk)
            return &device->memory.chunks[i];
    }
    return NULL;
}

/* Punches a hole for a large range: the system gets the pages back, and they read as zero. */
static void clear_marks(const bh__chunk_entry *entry, uint64_t offset, uint64_t bytes) {
    if (bytes >= 1 << 20) {
        off_t from = (off_t)(bh__marks_offset(entry->chunk.bytes) + offset);
        if (fallocate(entry->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, (off_t)bytes) ==
            0)
            return;
    }
    memset(entry->marks + offset, 0, bytes);
}

void bh__check_hand_out(bh__device *device, const bh__memory *memory) {
    const bh__chunk_entry *entry = entry_of(device, memory);
    if (!entry || !entry->map) return;
    uint64_t offset = memory->address - entry->chunk.address;
    uint8_t *map = entry->map + offset / BH__MAP_SCALE;
    uint64_t whole = memory->bytes / BH__MAP_SCALE, rest = memory->bytes % BH__MAP_SCALE;
    clear_marks(entry, offset, memory->block->bytes);
    memset(map, BH__MAP_GAP, memory->block->bytes / BH__MAP_SCALE);
    memset(map, BH__MAP_WHOLE, whole);
    if (rest) map[whole] = (uint8_t)rest;
}

/* Returns the bytes that retired memory still occupies: 0 in guard mode, where only its record is
 * kept. */
static uint64_t kept_bytes(const bh__memory *memory) {
    return memory->dedicated && memory->dedicated->gone ? 0 : memory->block->bytes;
}

static void free_oldest_retired(bh__device *device) {
    bh__memory *memory = device->memory.retired.first;
    device->memory.retired.first = memory->next;
    if (!device->memory.retired.first) device->memory.retired.last = NULL;
    device->memory.retired.count--;
    device->memory.retired.bytes -= kept_bytes(memory);
    if (memory->dedicated && !memory->dedicated->gone) {
        bh__dedicated_give_back(device, memory);
        return;
    }
    if (!memory->dedicated) bh__heap_free(&device->memory.heap, memory->block, memory->bytes);
    bh__memory_delete(device, memory);
}

void bh__check_retire(bh__device *device, bh__memory *memory) {
    const bh__chunk_entry *entry = entry_of(device, memory);
    if (entry && entry->map) {
        uint64_t offset = memory->address - entry->chunk.address;
        memset(entry->map + offset / BH__MAP_SCALE, BH__MAP_FREED,
               memory->block->bytes / BH__MAP_SCALE);
    }
    memory->next = NULL;
    if (device->memory.retired.last)
        device->memory.retired.last->next = memory;
    else
        device->memory.retired.first = memory;
    device->memory.retired.last = memory;
    device->memory.retired.count++;
    device->memory.retired.bytes += kept_bytes(memory);
    while (device->memory.retired.count > RETIRED_COUNT ||
           device->memory.retired.bytes > RETIRED_BYTES)
        free_oldest_retired(device);
}

bool bh__check_release_retired(bh__device *device) {
    if (!device->memory.retired.first) return false;
    while (device->memory.retired.first) free_oldest_retired(device);
    return true;
}

/* ---- describing an address ---- */

typedef struct search {
    uint64_t address, bytes; /* of the access */
    uint64_t best;           /* lowest distance times weight so far; 0: inside a buffer */
    char text[160];
} search;

/* Weights of a distance. A bad access most often belongs to an argument of the launch, so another
 * buffer is named only if it is much nearer. */
enum { ARGUMENT = 1, OTHER = 16 };

static void consider(search *self, const char *what, unsigned weight, uint64_t start,
                     uint64_t bytes, bh_type type, uint64_t count) {
    uint64_t end = start + bytes, stop = self->address + self->bytes, distance = 0;
    char where[80];
    if (self->address < start) {
        distance = start - self->address;
        snprintf(where, sizeof where, "is %llu byte%s before the start of", (ull)distance,
                 distance == 1 ? "" : "s");
    } else if (stop > end) {
        distance = stop - end;
        bool outside = self->address >= end;
        uint64_t past = outside ? self->address - end : distance;
        snprintf(where, sizeof where, "%s %llu byte%s past the end of", outside ? "starts" : "ends",
                 (ull)past, past == 1 ? "" : "s");
    } else {
        snprintf(where, sizeof where, "is at byte %llu of", (ull)(self->address - start));
    }
    if (distance >= NEAR_BYTES || distance * weight >= self->best) return;
    self->best = distance * weight;
    snprintf(self->text, sizeof self->text, "%s %s %s[%llu]", where, what, bh_type_name(type),
             (ull)count);
}

static void consider_memory(search *self, const bh__device *device, const char *what,
                            unsigned weight, const bh__memory *memory, uint64_t offset,
                            uint64_t bytes, bh_type type, uint64_t count) {
    if (!memory->block || !type) return;
    bool read_only = self->address >= device->memory.addresses.read_only_base;
    consider(self, what, weight, (read_only ? memory->read_only_address : memory->address) + offset,
             bytes, type, count);
}

void bh__check_describe(bh__device *device, const bh__use *uses, uint32_t use_count,
                        uint64_t address, uint32_t bytes, bh_error *error) {
    search self = {.address = address, .bytes = bytes, .best = UINT64_MAX};
    for (uint32_t i = 0; i < use_count; i++) {
        char what[60];
        const bh__use *use = &uses[i];
        if (use->argument == 0) continue;
        snprintf(what, sizeof what, "argument %u, a buffer of", use->argument - 1);
        bh_type type = use->memory->first.type;
        size_t element = bh_type_size(type);
        consider_memory(&self, device, what, ARGUMENT, use->memory, use->offset, use->bytes, type,
                        element ? use->bytes / element : 0);
    }
    uint32_t cursor = 0;
    for (bh__buffer *buffer; (buffer = bh__table_next(&device->handles.buffers, &cursor));) {
        consider_memory(&self, device, "a buffer of", OTHER, buffer->memory, buffer->offset,
                        buffer->bytes, buffer->type, buffer->count);
    }
    /* Inside a released buffer takes precedence over near a live one. */
    bool outside = self.best > 0;
    for (const bh__memory *released = device->memory.retired.first; released && outside;
         released = released->next) {
        search inside = {.address = address, .bytes = bytes, .best = 1};
        consider_memory(&inside, device, "a released buffer of", OTHER, released, 0,
                        released->bytes, released->first.type, released->first.count);
        if (inside.text[0]) self = inside;
    }
    size_t length = strlen(error->message);
    if (self.text[0] && length < sizeof error->message)
        snprintf(error->message + length, sizeof error->message - length, "; that %s", self.text);
}
