/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that two processes share through a descriptor. */
#ifndef BH_WIRE_SHARE_H
#define BH_WIRE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes a memfd of this size that cannot be shrunk or grown. Returns the descriptor or -errno. */
int bh__share_create(const char *name, uint64_t bytes);

/*
 * The same for memory that other processes only read. *out receives a writable mapping, for
 * bh__share_unmap; no other writable mapping can be made. A process that receives the descriptor
 * can map it read-only; writing, truncating, punching holes and reopening it for writing are
 * refused. Before Linux 5.1, which lacks the seal, a process that changes the mode of the file
 * first can write it.
 */
int bh__share_publish(const char *name, uint64_t bytes, void **out);

/* Returns true if this is a memfd of at least this size that cannot be shrunk. Checked before a
 * descriptor from another process is mapped: by shrinking the file, that process could kill its
 * readers. */
bool bh__share_is_steady(int fd, uint64_t bytes);
/* Returns true if it is also read-only as bh__share_publish makes it. */
bool bh__share_is_published(int fd, uint64_t bytes);
/* Returns true if this descriptor of a memfd can be mapped for writing. */
bool bh__share_is_writable(int fd);

/*
 * Maps a part of a memfd at any address. Returns NULL and sets errno on failure. In a build with
 * BH__ONE_PROCESS, where workers are threads of the application so that a race detector sees both
 * sides, the same part of a file is always mapped at the same address, writable.
 */
void *bh__share_map(int fd, uint64_t offset, uint64_t bytes, bool writable);
void bh__share_unmap(void *memory, uint64_t bytes);

/*
 * Address space for mappings that are replaced while other threads may still read the old ones.
 * reserve maps zeros that take no memory. place maps a whole memfd, writable, over a part of the
 * range in one step, so that every address stays mapped; if it fails, it returns false with errno
 * set and the old mapping remains. release unmaps the range.
 */
void *bh__share_reserve(uint64_t bytes);
bool bh__share_place(void *place, int fd, uint64_t bytes);
void bh__share_release(void *memory, uint64_t bytes);

#endif
