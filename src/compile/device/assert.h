/* SPDX-License-Identifier: Apache-2.0 */
/* The C header of this name. Without a guard, as NDEBUG counts anew each time. */
#include "bulkhead_runtime.h"
