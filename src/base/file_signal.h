/* SPDX-License-Identifier: Apache-2.0 */
/* Growing files without SIGXFSZ, the signal of the file size limit (ulimit -f). */
#ifndef BH_BASE_FILE_SIGNAL_H
#define BH_BASE_FILE_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Called around writes to files: blocks SIGXFSZ in this thread, and discards it if a write raised
 * it. */
typedef struct bh__file_signal {
    sigset_t signal, before;
    bool was_pending;
} bh__file_signal;
void bh__file_signal_block(bh__file_signal *signals);
void bh__file_signal_restore(const bh__file_signal *signals);

/* Calls ftruncate. Returns 0 or an errno: EFBIG beyond the limit. */
int bh__file_grow(int fd, uint64_t bytes);

#endif
