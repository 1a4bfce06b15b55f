/* SPDX-License-Identifier: Apache-2.0 */
/* Serializing numbers and texts: pack.h. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/compile/pack.h"

#define MAX_PACK ((size_t)4 << 30)

void bh__pack_reserve(bh__pack *pack, size_t bytes) {
    size_t wanted;
    if (pack->failed || !bh__add_size(pack->count, bytes, &wanted) || wanted > MAX_PACK) {
        pack->failed = true;
        return;
    }
    if (wanted <= pack->capacity) return;
    size_t capacity = wanted + wanted / 4 + 512;
    uint8_t *larger = realloc(pack->data, capacity);
    if (larger) {
        pack->data = larger;
        pack->capacity = capacity;
    } else {
        pack->failed = true;
    }
}

void bh__pack_raw(bh__pack *pack, const void *data, size_t bytes) {
    bh__pack_reserve(pack, bytes);
    if (pack->failed || !bytes) return;
    memcpy(pack->data + pack->count, data, bytes);
    pack->count += bytes;
}

void bh__pack_u64(bh__pack *pack, uint64_t value) {
    bh__pack_raw(pack, &value, sizeof value);
}

void bh__pack_bytes(bh__pack *pack, const void *data, size_t bytes) {
    bh__pack_u64(pack, bytes);
    bh__pack_raw(pack, data, bytes);
}

void bh__pack_text(bh__pack *pack, const char *text) {
    bh__pack_bytes(pack, text, strlen(text));
}

void bh__pack_texts(bh__pack *pack, const bh__texts *texts) {
    bh__pack_u64(pack, texts->count);
    for (size_t i = 0; i < texts->count; i++)
        bh__pack_bytes(pack, texts->list[i].data, texts->list[i].count);
}

void bh__pack_free(bh__pack *pack) {
    free(pack->data);
    *pack = (bh__pack){0};
}

bool bh__unpack_raw(bh__unpack *unpack, void *out, size_t bytes) {
    if (unpack->failed || bytes > unpack->left) {
        unpack->failed = true;
        memset(out, 0, bytes);
        return false;
    }
    memcpy(out, unpack->data, bytes);
    unpack->data += bytes;
    unpack->left -= bytes;
    return true;
}

uint64_t bh__unpack_u64(bh__unpack *unpack) {
    uint64_t value;
    bh__unpack_raw(unpack, &value, sizeof value);
    return value;
}

uint64_t bh__unpack_count(bh__unpack *unpack, uint64_t max) {
    uint64_t value = bh__unpack_u64(unpack);
    if (value > max) unpack->failed = true;
    return unpack->failed ? 0 : value;
}

bh__bytes bh__unpack_bytes(bh__unpack *unpack) {
    uint64_t bytes = bh__unpack_u64(unpack);
    if (unpack->failed || bytes > unpack->left) {
        unpack->failed = true;
        return (bh__bytes){unpack->data, 0};
    }
    bh__bytes found = {unpack->data, bytes};
    unpack->data += bytes;
    unpack->left -= bytes;
    return found;
}

const char *bh__unpack_text(bh__unpack *unpack, bh__arena *arena) {
    bh__bytes bytes = bh__unpack_bytes(unpack);
    char *copy = NULL;
    if (!unpack->failed && !memchr(bytes.data, 0, bytes.count))
        copy = bh__arena_copy(arena, (const char *)bytes.data, bytes.count);
    if (!copy) unpack->failed = true;
    return copy ? copy : "";
}

bool bh__unpack_ended(const bh__unpack *unpack) {
    return !unpack->failed && unpack->left == 0;
}
