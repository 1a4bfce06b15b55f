/* SPDX-License-Identifier: Apache-2.0 */
/* Checking blocks of native code. */
#include "wire/native.h"

#include <stdbool.h>
#include <string.h>

#include "base/checked.h"

static bool is_valid(const bh__native_entry *entry, size_t first, size_t bytes) {
    if (entry->shape == 0 || entry->shape >= 1u << BH__NATIVE_SHAPES) return false;
    if ((entry->shape & (entry->shape - 1)) != 0) return false;
    if (!memchr(entry->note, 0, sizeof entry->note)) return false;
    if (entry->bytes == 0) return true;
    return entry->offset >= first && entry->offset % BH__NATIVE_ALIGN == 0 &&
           bh__range_fits(entry->offset, entry->bytes, bytes) && entry->start < entry->bytes;
}

const bh__native_entry *bh__native_check(const void *data, size_t bytes, uint32_t *out_count) {
    bh__native_head head;
    if (bytes < sizeof head) return NULL;
    memcpy(&head, data, sizeof head);
    if (head.magic != BH__NATIVE_MAGIC || head.version != BH__NATIVE_VERSION ||
        head.bytes != bytes || head.count > BH__NATIVE_MAX)
        return NULL;
    size_t first = sizeof head + (size_t)head.count * sizeof(bh__native_entry);
    if (first > bytes) return NULL;
    const bh__native_entry *list = (const void *)((const uint8_t *)data + sizeof head);
    for (uint32_t i = 0; i < head.count; i++) {
        if (!is_valid(&list[i], first, bytes)) return NULL;
    }
    *out_count = head.count;
    return list;
}
