/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous copies: the functions; the classes are in cuda/pipeline. */
#ifndef BULKHEAD_CUDA_PIPELINE_H
#define BULKHEAD_CUDA_PIPELINE_H

#include "cuda_pipeline_primitives.h"

#endif
