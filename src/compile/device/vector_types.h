/* SPDX-License-Identifier: Apache-2.0 */
/* What device code needs of this header is always there. */
#ifndef BULKHEAD_COMPAT_VECTOR_TYPES_H
#define BULKHEAD_COMPAT_VECTOR_TYPES_H

#include "bulkhead_cuda.h"

#endif
