/* SPDX-License-Identifier: Apache-2.0 */
/* Copying structs of the program that begin with their own size. */
#include <string.h>

#include "client/core/error.h"
#include "client/core/sized.h"

/* Every such struct has at least two uint32_t fields. MAX_BYTES is a promise for all versions. */
enum { MIN_BYTES = 2 * sizeof(uint32_t), MAX_BYTES = 4096 };

static uint32_t size_of(const void *sized) {
    uint32_t size;
    memcpy(&size, sized, sizeof size);
    return size;
}

static BH__COLD bh_status refuse_size(const char *name, uint32_t size) {
    return bh__refuse(BH_E_INVALID, "initialise the struct with BH_INIT",
                      "%s.size is %u; it must be %d to %d", name, size, MIN_BYTES, MAX_BYTES);
}

/* A newer program has set something that this version cannot do: ignoring it would be silent. */
static BH__COLD bh_status check_tail(const uint8_t *given, uint32_t size, uint32_t own,
                                     const char *name) {
    uint32_t at = own;
    while (at < size && !given[at]) at++;
    if (at == size) return BH_OK;
    return bh__refuse(BH_E_UNSUPPORTED,
                      "initialise the struct with BH_INIT, and leave fields zero that only a newer "
                      "version of the library has",
                      "%s.size is %u and byte %u is set; this version knows the first %u bytes",
                      name, size, at, own);
}

bh_status bh__options_check(const void *given, uint32_t own, const char *name) {
    uint32_t size = size_of(given);
    if (size < MIN_BYTES || size > MAX_BYTES) return refuse_size(name, size);
    return size > own ? check_tail(given, size, own, name) : BH_OK;
}

bh_status bh__reserved_check(uint32_t reserved, const char *name) {
    if (!reserved) return BH_OK;
    return bh__refuse(BH_E_UNSUPPORTED, "leave reserved fields 0", "%s.reserved is %u", name,
                      reserved);
}

bh_status bh__options_take(const void *given, void *out, const char *name) {
    if (!given) return BH_OK;
    uint32_t size = size_of(given), own = size_of(out);
    if (bh__options_check(given, own, name) != BH_OK) return bh__last()->status;
    memcpy(out, given, size < own ? size : own);
    memcpy(out, &own, sizeof own);
    return BH_OK;
}

bh_status bh__sized_check(const void *out, const char *name) {
    if (!out)
        return bh__refuse(BH_E_INVALID, "pass a pointer to a struct", "out (%s) is NULL", name);
    uint32_t size = size_of(out);
    return size < MIN_BYTES || size > MAX_BYTES ? refuse_size(name, size) : BH_OK;
}

void bh__sized_give(void *out, const void *from, size_t bytes) {
    uint32_t size = size_of(out);
    size_t part = size < bytes ? size : bytes;
    memcpy(out, from, part);
    memset((uint8_t *)out + part, 0, size - part);
    memcpy(out, &size, sizeof size);
}

/* ---- lists ---- */

bh_status bh__list_check(const void *entries, size_t entry_size, size_t capacity,
                         const size_t *count, const char *name) {
    if (!count)
        return bh__refuse(BH_E_INVALID, "pass a pointer to a size_t", "count (of %s) is NULL",
                          name);
    if (capacity == 0) return BH_OK;
    if (!entries)
        return bh__refuse(BH_E_INVALID, "pass an array, or a capacity of 0 to get the count alone",
                          "entries is NULL and capacity is %zu (%s)", capacity, name);
    if (entry_size < MIN_BYTES || entry_size > MAX_BYTES)
        return bh__refuse(BH_E_INVALID, "pass the sizeof of one entry",
                          "entry_size (%s) is %zu; it must be %d to %d", name, entry_size,
                          MIN_BYTES, MAX_BYTES);
    return BH_OK;
}

void bh__list_put(void *entries, size_t entry_size, size_t index, const void *from, size_t bytes) {
    uint8_t *entry = (uint8_t *)entries + index * entry_size;
    uint32_t size = (uint32_t)entry_size;
    size_t part = bytes < entry_size ? bytes : entry_size;
    memcpy(entry, from, part);
    memset(entry + part, 0, entry_size - part);
    memcpy(entry, &size, sizeof size);
}

void bh__list_give(void *entries, size_t entry_size, size_t capacity, size_t *count,
                   const void *from, size_t bytes, size_t found) {
    for (size_t i = 0; i < found && i < capacity; i++)
        bh__list_put(entries, entry_size, i, (const uint8_t *)from + i * bytes, bytes);
    *count = found;
}

/* ---- texts ---- */

bh_status bh__text_check(const char *text, size_t capacity, const size_t *length) {
    if (!length) return bh__refuse(BH_E_INVALID, "pass a pointer to a size_t", "length is NULL");
    if (text || !capacity) return BH_OK;
    return bh__refuse(BH_E_INVALID, "pass storage for the text, or a capacity of 0",
                      "text is NULL and capacity is %zu", capacity);
}

bh_status bh__text_fits(size_t bytes, size_t capacity, size_t *length) {
    *length = bytes;
    if (!capacity || bytes < capacity) return BH_OK;
    return bh__refuse(BH_E_INVALID, "ask for the length with capacity 0 first, and allow some more",
                      "the text has %zu bytes plus a NUL, capacity is %zu", bytes, capacity);
}
