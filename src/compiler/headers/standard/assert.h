/* SPDX-License-Identifier: Apache-2.0 */
/* The C header of this name. No include guard: NDEBUG applies to each inclusion. */
#include "bulkhead_runtime.h"
