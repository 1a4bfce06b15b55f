/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the programs that the library starts. */
#ifndef BH_CLIENT_PROCESS_PROGRAMS_H
#define BH_CLIENT_PROCESS_PROGRAMS_H

#include <stddef.h>

#include "bulkhead.h"

/* Looks in worker_dir if it is given, else in BULKHEAD_WORKER_DIR if it is set, else beside the
 * library, beside the executable and in the libexec folder, in this order. */
bh_status bh__worker_find(const char *worker_dir, const char *kind, char *out, size_t bytes);
/* The same for bulkhead-compiler. */
bh_status bh__compiler_find(const char *compiler_dir, char *out, size_t bytes, bh_error *error);
/* Returns BULKHEAD_WORKER_DIR; NULL: not set. */
const char *bh__program_folder(void);

#endif
