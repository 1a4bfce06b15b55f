/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this machine has left for programs. */
#ifndef BH_BASE_AVAILABLE_H
#define BH_BASE_AVAILABLE_H

#include <stdint.h>

/* In bytes. UINT64_MAX: the system does not tell. */
uint64_t bh__memory_available(void);

#endif
