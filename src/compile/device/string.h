/* SPDX-License-Identifier: Apache-2.0 */
/* The C header of this name: memcpy, memset and their like are always there. */
#ifndef BULKHEAD_STRING_H
#define BULKHEAD_STRING_H

#include "bulkhead_cuda.h"

#endif
