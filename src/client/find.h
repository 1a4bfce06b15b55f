/* SPDX-License-Identifier: Apache-2.0 */
/* Which device a name means, and where the programs are that the library starts. */
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
/* The same for bulkhead-compiler. */
bh_status bh__compiler_find(const char *compiler_dir, char *out, size_t bytes, bh_error *error);
/* What BULKHEAD_WORKER_DIR says; NULL: nothing. */
const char *bh__program_folder(void);

#endif
