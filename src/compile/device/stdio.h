/* SPDX-License-Identifier: Apache-2.0 */
/* The C header of this name: printf is always there. */
#ifndef BULKHEAD_STDIO_H
#define BULKHEAD_STDIO_H

#include "bulkhead_cuda.h"

#endif
