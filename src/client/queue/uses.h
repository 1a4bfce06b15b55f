/* SPDX-License-Identifier: Apache-2.0 */
/* Uses of memory by requests: order between lanes, and when memory is idle. All functions are
 * called with the lock held. */
#ifndef BH_CLIENT_QUEUE_USES_H
#define BH_CLIENT_QUEUE_USES_H

#include "client/core/device.h"

/* Reserves the record of uses by this lane. Returns false if there is no host memory. */
bool bh__memory_reserve_use(bh__memory *memory, uint32_t lane);
/* Records a use by the request that ends at this position of the lane. */
void bh__memory_note_use(const bh__use *use, const bh__lane *lane, uint64_t position);
/* Raises wait_for[lane] to the positions that a use must wait for. Returns true if any was
 * raised. */
bool bh__memory_order(bh__device *device, const bh__use *use, uint32_t lane, uint64_t *wait_for);
/* Returns true if no work uses the memory and no lost worker can still write it. */
bool bh__memory_idle(bh__device *device, bh__memory *memory);

/* Sets of bytes. The functions return false if there is no host memory. */
bool bh__spans_add(bh__span **list, uint32_t *count, uint32_t *capacity, uint64_t offset,
                   uint64_t bytes);
bool bh__spans_remove(bh__span **list, uint32_t *count, uint32_t *capacity, uint64_t offset,
                      uint64_t bytes);
/* Returns true if one span has all these bytes. */
bool bh__spans_cover(const bh__span *list, uint32_t count, uint64_t offset, uint64_t bytes);
bool bh__spans_overlap(const bh__span *list, uint32_t count, uint64_t offset, uint64_t bytes);

/* ---- memory that the driver manages: its address differs between workers ---- */

/* Returns NULL if the driver does not manage this memory. */
bh__driver_managed *bh__driver_managed_of(const bh__memory *memory);
/* Returns BH_E_UNSUPPORTED and sets the thread's error if the driver manages memory of one of the
 * uses. For operations that keep addresses; `what` names the operation. */
bh_status bh__driver_managed_refuse(const bh__use *uses, uint32_t count, const char *what);
/* Sets *error for a request that reads contents that were lost with a worker. */
bh_status bh__driver_managed_refuse_lost(const bh__memory *memory, bh_error *error);

#endif
