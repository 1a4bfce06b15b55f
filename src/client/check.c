/* SPDX-License-Identifier: Apache-2.0 */
/* Checks, the application's part: which bytes of a chunk belong to buffers, how long freed memory
 * is kept from reuse, and what a bad address is nearest to. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/shadow.h"
#include "client/internal.h"
#include "wire/share.h"

typedef unsigned long long ull;

enum { RETIRED_COUNT = 256 };
#define RETIRED_BYTES ((uint64_t)64 << 20)
#define NEAR_BYTES    ((uint64_t)1 << 20) /* further away, an address is near nothing */

/* The worker made the file: it must be long enough, and sealed so that it stays so. */
static bool is_trusty(int fd, uint64_t bytes) {
    struct stat info;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && seals & F_SEAL_SHRINK && fstat(fd, &info) == 0 &&
           (uint64_t)info.st_size >= bh__checked_chunk_bytes(bytes);
}

bool bh__check_map(bh__chunk_entry *entry) {
    uint64_t bytes = entry->chunk.bytes;
    if (!is_trusty(entry->fd, bytes)) return false;
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
    for (uint32_t i = 0; i < device->chunk_count; i++) {
        if (device->chunks[i].chunk.id == memory->block->chunk) return &device->chunks[i];
    }
    return NULL;
}

/* Large pieces are given back to the system in place of being cleared. */
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

/* What it keeps from others: in guard mode only its name is left. */
static uint64_t kept_bytes(const bh__memory *memory) {
    return memory->solo && memory->solo->gone ? 0 : memory->block->bytes;
}

/* Frees the oldest of the retired. */
static void let_go(bh__device *device) {
    bh__memory *memory = device->retired;
    device->retired = memory->next;
    if (!device->retired) device->retired_last = NULL;
    device->retired_count--;
    device->retired_bytes -= kept_bytes(memory);
    if (memory->solo && !memory->solo->gone) {
        bh__solo_give_back(device, memory);
        return;
    }
    if (!memory->solo) bh__heap_free(&device->heap, memory->block, memory->bytes);
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
    if (device->retired_last)
        device->retired_last->next = memory;
    else
        device->retired = memory;
    device->retired_last = memory;
    device->retired_count++;
    device->retired_bytes += kept_bytes(memory);
    while (device->retired_count > RETIRED_COUNT || device->retired_bytes > RETIRED_BYTES)
        let_go(device);
}

bool bh__check_relent(bh__device *device) {
    if (!device->retired) return false;
    while (device->retired) let_go(device);
    return true;
}

/* ---- naming an address ---- */

typedef struct search {
    uint64_t address, bytes; /* of the access */
    uint64_t best;           /* distance so far, times its weight: 0 is inside */
    char text[160];
} search;

/* What a kernel runs out of is one of its arguments more often than not: what is no argument must
 * be this much nearer. */
enum { ARGUMENT = 1, OTHER = 16 };

static void consider(search *self, const char *what, unsigned weight, uint64_t start,
                     uint64_t bytes, bh_type type, uint64_t count) {
    uint64_t end = start + bytes, stop = self->address + self->bytes, distance = 0;
    char where[80];
    if (self->address < start) {
        distance = start - self->address;
        snprintf(where, sizeof where, "%llu byte%s before the start of", (ull)distance,
                 distance == 1 ? "" : "s");
    } else if (stop > end) {
        distance = stop - end;
        snprintf(where, sizeof where, "%llu byte%s past the end of", (ull)distance,
                 distance == 1 ? "" : "s");
    } else {
        snprintf(where, sizeof where, "at byte %llu of", (ull)(self->address - start));
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
    bool read_only = self->address >= device->read_only_base;
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
    for (bh__buffer *buffer; (buffer = bh__table_next(&device->buffers, &cursor));) {
        consider_memory(&self, device, "a buffer of", OTHER, buffer->memory, buffer->offset,
                        buffer->bytes, buffer->type, buffer->count);
    }
    /* Inside one that is gone counts for more than near one that is there. */
    bool outside = self.best > 0;
    for (const bh__memory *gone = device->retired; gone && outside; gone = gone->next) {
        search again = {.address = address, .bytes = bytes, .best = 1};
        consider_memory(&again, device, "a released buffer of", OTHER, gone, 0, gone->bytes,
                        gone->first.type, gone->first.count);
        if (again.text[0]) self = again;
    }
    size_t length = strlen(error->message);
    if (self.text[0] && length < sizeof error->message)
        snprintf(error->message + length, sizeof error->message - length, "; that is %s",
                 self.text);
}
