/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a module's own variables its kernels can write. The others have, in every new worker,
 * the value that the image or the program gave them. Used by the workers and by the compiler
 * program; includes only base.
 *
 * The answer is conservative: a variable that is not in the set is never written by a kernel of the
 * module; one that is in it may not be written either. Writes through an address that was computed
 * from another variable (an index out of range) are not considered. */
#ifndef BH_WRITES_WRITES_H
#define BH_WRITES_WRITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of names. NULL is the set of all names: nothing is known. */
typedef struct bh__writes bh__writes;

/* Follows the addresses of variables through PTX text, including unknown instructions. NULL: no
 * memory. The text need not end in NUL. */
bh__writes *bh__writes_of_ptx(const char *text, size_t length);

bool bh__writes_has(const bh__writes *writes, const char *name);
void bh__writes_free(bh__writes *writes);

/*
 * A record of the set that is appended to a cubin, where loaders ignore it. It is needed because
 * machine code no longer shows what is written. `bytes` counts the record alone. NULL from make: no
 * memory, or nothing is known. NULL from read: there is no record, it is damaged, or no memory.
 */
uint8_t *bh__writes_record_make(const bh__writes *writes, size_t *bytes);
bh__writes *bh__writes_record_read(const void *image, size_t bytes);

/* ---- for the files of this folder ---- */

bh__writes *bh__writes_new(void);
bool bh__writes_add(bh__writes *writes, const char *name, size_t length);

#endif
