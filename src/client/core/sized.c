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

bh_status bh__options_take(const void *given, void *out, const char *name) {
    if (!given) return BH_OK;
    uint32_t size = size_of(given), own = size_of(out);
    if (size < MIN_BYTES || size > MAX_BYTES) return refuse_size(name, size);
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
    memcpy(out, from, size < bytes ? size : bytes);
    memcpy(out, &size, sizeof size);
}
