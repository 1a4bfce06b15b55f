/* SPDX-License-Identifier: Apache-2.0 */
/* The C header of this name: bulkhead_cuda.h has clock. */
#ifndef BULKHEAD_TIME_H
#define BULKHEAD_TIME_H

#include "bulkhead_cuda.h"

typedef long clock_t;

#endif
