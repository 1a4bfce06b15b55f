/* SPDX-License-Identifier: Apache-2.0 */
/* libbulkhead-cuda: the same as <bulkhead/cuda.h>. */
#include "bulkhead/cuda.h"
