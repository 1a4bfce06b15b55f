/* SPDX-License-Identifier: Apache-2.0 */
/* The C header of this name: bulkhead_cuda.h has malloc, free, abs and abort. */
#ifndef BULKHEAD_STDLIB_H
#define BULKHEAD_STDLIB_H

#include "bulkhead_cuda.h"

#endif
