/* SPDX-License-Identifier: Apache-2.0 */
/* Copying structs of the program that begin with their own size, a uint32_t. The program may have
 * been compiled with an older or newer version of the struct. */
#ifndef BH_CLIENT_CORE_SIZED_H
#define BH_CLIENT_CORE_SIZED_H

#include "bulkhead.h"

/* Copies *given over the defaults in *out. `given` may be NULL. out->size must be set and is kept.
 * `name` is for messages, for example "bh_lane_options". Sets the thread's error on failure. */
bh_status bh__options_take(const void *given, void *out, const char *name);
/* The checks alone, for a struct that has `own` bytes in this version: its size, and that bytes
 * beyond `own` are zero (BH_E_UNSUPPORTED). */
bh_status bh__options_check(const void *given, uint32_t own, const char *name);
/* Refuses a reserved field that is set: a newer program means something by it. */
bh_status bh__reserved_check(uint32_t reserved, const char *name);

/* Checks the size of an output struct. Sets the thread's error on failure. */
bh_status bh__sized_check(const void *out, const char *name);
/* Copies *from, a struct of the library's version, to the program's *out: as far as it fits, and
 * zeros behind it. out->size is kept. */
void bh__sized_give(void *out, const void *from, size_t bytes);

/* ---- lists: arrays of such structs, whose size the program passes ---- */

/* Checks the arguments of a list of structs called `name`. Sets the thread's error on failure. */
bh_status bh__list_check(const void *entries, size_t entry_size, size_t capacity,
                         const size_t *count, const char *name);
/* Writes *from, a struct of the library's version, as entry number `index`: as far as it fits, and
 * zeros behind it. Its `size` becomes entry_size. */
void bh__list_put(void *entries, size_t entry_size, size_t index, const void *from, size_t bytes);
/* Writes up to `capacity` of `found` structs, and their number to *count. */
void bh__list_give(void *entries, size_t entry_size, size_t capacity, size_t *count,
                   const void *from, size_t bytes, size_t found);

/* ---- texts that the program gives the memory for ---- */

/* Checks the arguments of a call that gives a text. Sets the thread's error on failure. */
bh_status bh__text_check(const char *text, size_t capacity, const size_t *length);
/* *length gets `bytes`. Refuses a text of that length, without its NUL, that does not fit. */
bh_status bh__text_fits(size_t bytes, size_t capacity, size_t *length);

#endif
