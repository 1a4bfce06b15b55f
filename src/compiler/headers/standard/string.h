/* SPDX-License-Identifier: Apache-2.0 */
/* The C header of this name: bulkhead_cuda.h has memcpy, memset and similar. */
#ifndef BULKHEAD_STRING_H
#define BULKHEAD_STRING_H

#include "bulkhead_cuda.h"

#endif
