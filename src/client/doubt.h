/* SPDX-License-Identifier: Apache-2.0 */
/* Doubt: bytes that a request which did not complete may have left half written, or that depend on
 * such. All of it with the device locked. */
#ifndef BH_CLIENT_DOUBT_H
#define BH_CLIENT_DOUBT_H

#include "client/internal.h"

/* A request with this stamp did not complete and may have written these bytes. */
void bh__doubt_add(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes,
                   uint64_t stamp);
/* Clears doubt that was raised before this stamp. */
void bh__doubt_clear(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes,
                     uint64_t before);
/* The program takes what is there as good. */
void bh__doubt_accept(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes);
/* The memory goes. */
void bh__doubt_free(bh__device *device, bh__memory *memory);
/* The requests of a lane between two positions have completed, unless they have a verdict. */
void bh__doubt_completed(bh__device *device, bh__lane *lane, uint64_t from, uint64_t to);
/* Whether a request with this stamp would read bytes in doubt if everything queued before it
 * completes. UINT64_MAX: one that is yet to be submitted. */
bool bh__doubt_reads(bh__device *device, const bh__memory *memory, uint64_t offset, uint64_t bytes,
                     uint64_t stamp);

static inline bool bh__doubt_any(const bh__memory *memory) {
    return memory->doubt_count || memory->doubt_whole;
}

#endif
