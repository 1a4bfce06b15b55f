/* SPDX-License-Identifier: Apache-2.0 */
/* The C header of this name: bulkhead_cuda.h has printf. */
#ifndef BULKHEAD_STDIO_H
#define BULKHEAD_STDIO_H

#include "bulkhead_cuda.h"

#endif
