/* SPDX-License-Identifier: Apache-2.0 */
/* Barrier objects: the functions; the class is in cuda/barrier. */
#ifndef BULKHEAD_CUDA_AWBARRIER_H
#define BULKHEAD_CUDA_AWBARRIER_H

#include "cuda_awbarrier_primitives.h"

#endif
