/* SPDX-License-Identifier: Apache-2.0 */
/* libcu++'s namespace: the names of std are those of cuda::std too. */
#ifndef BULKHEAD_CUDA_STD_H
#define BULKHEAD_CUDA_STD_H

#include "bulkhead_cuda.h"

namespace std {}
namespace cuda {
namespace std {
using namespace ::std;
}
} // namespace cuda

#endif
