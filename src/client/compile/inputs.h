/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a compile read: recording what they were, and checking that they still are. */
#ifndef BH_CLIENT_COMPILE_INPUTS_H
#define BH_CLIENT_COMPILE_INPUTS_H

#include "client/module/product.h"

/* Returns false, with *out zeroed, if the file does not exist. */
bool bh__file_id_get(const char *path, bh__file_id *out);
bool bh__file_id_equal(const bh__file_id *a, const bh__file_id *b);
bool bh__file_id_known(const bh__file_id *id);

/* Fills in what the compiler did not report: identities, digests and folders. `begun_ns` is when
 * the compiler was started, in ns since 1970; a file changed later than that is not recorded by its
 * identity. Returns false if a file has changed since the compiler read it: the result is valid now
 * but must not be cached. */
bool bh__reads_complete(bh__reads *reads, bh__arena *arena, uint64_t begun_ns);

/* RENEWED: the contents are the same, but a file or folder has a new identity. */
typedef enum bh__freshness { BH__STALE, BH__FRESH, BH__FRESH_RENEWED } bh__freshness;
/* Compares every file with what was recorded. Contents are read only if the identity differs. With
 * `renew`, new identities are stored in `reads`. */
bh__freshness bh__reads_check(bh__reads *reads, bool renew);

uint64_t bh__clock_ns(void); /* since 1970 */

#endif
