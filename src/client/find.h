/* SPDX-License-Identifier: Apache-2.0 */
/* Which device a name means, and where its worker program is. */
#ifndef BH_CLIENT_FIND_H
#define BH_CLIENT_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bulkhead.h"

bool bh__nvidia_present(void);

/* "auto" is CUDA where there is an NVIDIA device, else the CPU. Fills the thread's error on
 * failure. */
bh_status bh__device_name_parse(const char *name, char kind[16], uint32_t *out_index);

/* Looks in worker_dir, then BULKHEAD_WORKER_DIR, then beside the library and the executable, then
 * the libexec folder. */
bh_status bh__worker_find(const char *worker_dir, const char *kind, char *out, size_t bytes);

#endif
