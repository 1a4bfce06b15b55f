/* SPDX-License-Identifier: Apache-2.0 */
/* The record of files that decided a result: each path once, in a hash table. */
#include "compiler/read_record.h"

#include <string.h>

#include "base/siphash.h"

static uint64_t hash_of(const char *path, size_t length) {
    uint64_t out[2];
    bh__checksum(path, length, out);
    return out[0];
}

static bool grow_slots(bh__read_record *reads) {
    size_t wanted = reads->slot_count ? reads->slot_count * 2 : 256;
    uint32_t *slots = bh__arena_alloc(reads->arena, wanted, sizeof *slots);
    if (slots == NULL) return false;
    for (size_t i = 0; i < reads->count; i++) {
        bh__bytes path = reads->list[i].path;
        size_t at = hash_of(bh__chars(path), path.count) & (wanted - 1);
        while (slots[at] != 0) at = (at + 1) & (wanted - 1);
        slots[at] = (uint32_t)i + 1;
    }
    reads->slots = slots;
    reads->slot_count = wanted;
    return true;
}

/* The entry of a path; *fresh: it is new. NULL: no memory. */
static bh__compile_read *record(bh__read_record *reads, const char *path, bool *fresh) {
    char *whole = NULL;
    if (reads->failed) return NULL;
    if (path[0] != '/' && (path = whole = bh__text_format(reads->arena, "/%s", path)) == NULL)
        goto failed;
    size_t length = strlen(path);
    if (reads->count * 2 >= reads->slot_count && !grow_slots(reads)) goto failed;
    size_t at = hash_of(path, length) & (reads->slot_count - 1);
    for (; reads->slots[at] != 0; at = (at + 1) & (reads->slot_count - 1)) {
        bh__compile_read *known = &reads->list[reads->slots[at] - 1];
        if (known->path.count == length && memcmp(known->path.data, path, length) == 0) {
            *fresh = false;
            return known;
        }
    }
    bh__compile_read *list =
        bh__arena_grow(reads->arena, reads->list, reads->count, &reads->room, sizeof *list);
    char *copy = whole ? whole : bh__arena_copy(reads->arena, path, length);
    if (list == NULL || copy == NULL) goto failed;
    reads->list = list;
    bh__compile_read *added = &list[reads->count++];
    *added = (bh__compile_read){.path = {(const uint8_t *)copy, length}};
    reads->slots[at] = (uint32_t)reads->count;
    *fresh = true;
    return added;
failed:
    reads->failed = true;
    return NULL;
}

static void set_changed(bh__compile_read *entry) {
    entry->missing = 0;
    entry->bytes = BH__READ_CHANGED;
}

void bh__read_record_missing(bh__read_record *reads, const char *path) {
    bool fresh;
    bh__compile_read *entry = record(reads, path, &fresh);
    if (entry == NULL) return;
    if (fresh)
        entry->missing = 1;
    else if (!entry->missing)
        set_changed(entry);
}

void bh__read_record_content(bh__read_record *reads, const char *path, const void *bytes,
                             size_t count) {
    bool fresh;
    uint64_t hash[2];
    bh__checksum(bytes, count, hash);
    bh__compile_read *entry = record(reads, path, &fresh);
    if (entry == NULL) return;
    if (fresh) {
        entry->bytes = count;
        memcpy(entry->hash, hash, sizeof hash);
    } else if (entry->missing || entry->bytes != count || memcmp(entry->hash, hash, sizeof hash)) {
        set_changed(entry);
    }
}

void bh__read_record_changed(bh__read_record *reads, const char *path) {
    bool fresh;
    bh__compile_read *entry = record(reads, path, &fresh);
    if (entry != NULL) set_changed(entry);
}
