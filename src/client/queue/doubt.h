/* SPDX-License-Identifier: Apache-2.0 */
/* Doubt: bytes that a failed request may have left half written, or that were computed from such
 * bytes. All functions are called with the device locked. */
#ifndef BH_CLIENT_QUEUE_DOUBT_H
#define BH_CLIENT_QUEUE_DOUBT_H

#include "client/core/device.h"

/* A request with this stamp did not complete and may have written these bytes. */
void bh__doubt_add(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes,
                   uint64_t stamp);
/* Clears doubts that were raised before this stamp. Returns false if there is no host memory to
 * split a range: then all bytes stay in doubt. */
bool bh__doubt_clear(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes,
                     uint64_t before);
/* The program accepts the bytes as they are. Returns false if they stay in doubt: there was no host
 * memory. */
bool bh__doubt_accept(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes);
/* The memory is freed. */
void bh__doubt_free(bh__device *device, bh__memory *memory);
/* The requests of a lane between two positions have completed, except those that have a verdict. */
void bh__doubt_completed(bh__device *device, bh__lane *lane, uint64_t from, uint64_t to);
/* Returns true if a request with this stamp would read bytes in doubt even if all requests queued
 * before it complete. UINT64_MAX: a request that is not submitted yet. */
bool bh__doubt_reads(bh__device *device, const bh__memory *memory, uint64_t offset, uint64_t bytes,
                     uint64_t stamp);

static inline bool bh__doubt_any(const bh__memory *memory) {
    return memory->doubt_count || memory->doubt_whole;
}

#endif
