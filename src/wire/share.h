/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that two processes share through a descriptor. */
#ifndef BH_WIRE_SHARE_H
#define BH_WIRE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A memfd of this size that nobody can shrink or grow. Returns the descriptor or a negative errno.
 */
int bh__share_create(const char *name, uint64_t bytes);

/*
 * Maps part of one, anywhere. Returns NULL and sets errno on failure. In a build with
 * BH__ONE_PROCESS, where workers are threads of the application so that a race detector sees both
 * sides, the same part of the same file is always mapped at the same address, writable.
 */
void *bh__share_map(int fd, uint64_t offset, uint64_t bytes, bool writable);
void bh__share_unmap(void *memory, uint64_t bytes);

#endif
