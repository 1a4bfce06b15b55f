/* SPDX-License-Identifier: Apache-2.0 */
/* Available memory of this machine. */
#ifndef BH_BASE_AVAILABLE_H
#define BH_BASE_AVAILABLE_H

#include <stdint.h>

/* Opens a descriptor for bh__available_bytes, so that it works even if no more files can be opened.
 * Returns -1 on failure. */
int bh__available_open(void);

/* Returns UINT64_MAX if the amount is not known. */
uint64_t bh__available_bytes(int source);

#endif
