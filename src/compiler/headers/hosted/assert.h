/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions of both sides; the host's would call a function of the host. */
#include "bulkhead_runtime.h"
