/* SPDX-License-Identifier: Apache-2.0 */
/* How many processors this process may use. */
#ifndef BH_BASE_PROCESSORS_H
#define BH_BASE_PROCESSORS_H

#include <stdint.h>

/* At least 1. It may be fewer than the machine has. */
uint32_t bh__processors(void);

#endif
