/* SPDX-License-Identifier: Apache-2.0 */
/* The C header of this name: malloc, free, abs and abort are always there. */
#ifndef BULKHEAD_STDLIB_H
#define BULKHEAD_STDLIB_H

#include "bulkhead_cuda.h"

#endif
