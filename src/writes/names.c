/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of names, and the record of a set that is appended to a cubin. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "writes/writes.h"

struct bh__writes {
    char *text; /* Owned. The names, each with a NUL. */
    size_t bytes, capacity;
};

/* At the end of the image, so that it is found without reading the image. */
typedef struct footer {
    uint64_t bytes; /* of the names before it */
    uint64_t hash;  /* of the names */
    char mark[16];
} footer;

static const char mark[16] = "bulkhead writes";

bh__writes *bh__writes_new(void) {
    return calloc(1, sizeof(bh__writes));
}

bool bh__writes_add(bh__writes *writes, const char *name, size_t length) {
    if (writes->capacity - writes->bytes < length + 1) {
        size_t capacity = (writes->bytes + length + 1) * 2;
        char *text = realloc(writes->text, capacity);
        if (!text) return false;
        writes->text = text;
        writes->capacity = capacity;
    }
    memcpy(writes->text + writes->bytes, name, length);
    writes->text[writes->bytes + length] = '\0';
    writes->bytes += length + 1;
    return true;
}

bool bh__writes_has(const bh__writes *writes, const char *name) {
    if (!writes) return true;
    for (size_t at = 0; at < writes->bytes; at += strlen(writes->text + at) + 1) {
        if (strcmp(writes->text + at, name) == 0) return true;
    }
    return false;
}

void bh__writes_free(bh__writes *writes) {
    if (!writes) return;
    free(writes->text);
    free(writes);
}

static uint64_t hash_of(const uint8_t *bytes, size_t count) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

uint8_t *bh__writes_record_make(const bh__writes *writes, size_t *bytes) {
    uint8_t *record = writes ? malloc(writes->bytes + sizeof(footer)) : NULL;
    if (!record) return NULL;
    if (writes->bytes) memcpy(record, writes->text, writes->bytes);
    footer end = {.bytes = writes->bytes, .hash = hash_of(record, writes->bytes)};
    memcpy(end.mark, mark, sizeof mark);
    memcpy(record + writes->bytes, &end, sizeof end);
    *bytes = writes->bytes + sizeof end;
    return record;
}

bh__writes *bh__writes_record_read(const void *image, size_t bytes) {
    footer end;
    if (bytes < sizeof end) return NULL;
    const uint8_t *at = (const uint8_t *)image + bytes - sizeof end;
    memcpy(&end, at, sizeof end);
    if (memcmp(end.mark, mark, sizeof mark) != 0 || end.bytes > bytes - sizeof end) return NULL;
    at -= end.bytes;
    if (hash_of(at, end.bytes) != end.hash || (end.bytes && at[end.bytes - 1] != '\0')) return NULL;
    bh__writes *writes = bh__writes_new();
    for (uint64_t used = 0; writes && used < end.bytes;) {
        size_t length = strlen((const char *)at + used);
        if (!bh__writes_add(writes, (const char *)at + used, length)) {
            bh__writes_free(writes);
            return NULL;
        }
        used += length + 1;
    }
    return writes;
}
