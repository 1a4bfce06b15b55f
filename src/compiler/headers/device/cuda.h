/* SPDX-License-Identifier: Apache-2.0 */
/* Empty: bulkhead_cuda.h already has what device code needs of this header. */
#ifndef BULKHEAD_COMPAT_CUDA_H
#define BULKHEAD_COMPAT_CUDA_H

#include "bulkhead_cuda.h"

#endif
