/* SPDX-License-Identifier: Apache-2.0 */
/* The data of host memory that workers can access: regions and staging slots. */
#ifndef BH_CLIENT_TRANSFER_STATE_H
#define BH_CLIENT_TRANSFER_STATE_H

#include "base/tune.h"
#include "client/core/types.h"
#include "wire/message.h"

enum { BH__STAGING_SLOTS = BH__TUNE(16, 4), BH__STAGING_BYTES = BH__TUNE(512 * 1024, 1024) };

typedef struct bh__host_entry {
    bh__host_region region;
    int fd;                          /* Owned. */
    bh__memory *memory;              /* Owned. */
    struct bh__host_pool_slab *slab; /* Borrowed. NULL: not a region of a pool. */
    bool leaving; /* freed by the program; workers keep it until no work uses it */
} bh__host_entry;

typedef struct bh__staging_slot {
    bool taken;
    uint64_t hold; /* not free before this lost worker is reaped; 0: none */
    uint32_t lane;
    uint64_t sequence; /* not taken: in use until the lane has passed this; 0: free */
} bh__staging_slot;

/* The device's part. */
typedef struct bh__transfer_room {
    bh__host_entry *hosts;
    uint32_t host_count, host_capacity, next_host_id;
    bh__memory *staging;  /* the region of the staging slots, created on first use */
    bool staging_pending; /* a thread is creating it */
    bh__staging_slot staging_slots[BH__STAGING_SLOTS];
} bh__transfer_room;

#endif
