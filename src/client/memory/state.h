/* SPDX-License-Identifier: Apache-2.0 */
/* The data of this room: buffers, memory records, tags, chunks, memory pressure. */
#ifndef BH_CLIENT_MEMORY_STATE_H
#define BH_CLIENT_MEMORY_STATE_H

#include <stdatomic.h>

#include "base/records.h"
#include "client/callback/state.h"
#include "client/core/types.h"
#include "client/memory/heap.h"
#include "wire/message.h"

enum {
    BH__TAG_BUCKETS = 256,
    BH__MAX_TAGS = 4096 /* beyond this, unused tags are removed */
};

typedef struct bh__span {
    uint64_t offset, bytes;
} bh__span;

/* Bytes that may be half written since the request with this stamp. Stamp 0: since before the
 * oldest request in flight. */
typedef struct bh__doubt {
    uint64_t offset, bytes, stamp;
} bh__doubt;

/* The uses of memory by one lane: the position of the last one, and a range that covers all that
 * may be in flight. */
typedef struct bh__lane_use {
    uint32_t lane;
    uint64_t write_position, write_from, write_to;
    uint64_t read_position, read_from, read_to;
} bh__lane_use;

/* What buffers are used for, by the name that the program gave. */
struct bh__tag {
    bh__tag *next;
    uint64_t hash;
    uint64_t bytes, buffers, peak, limit, allocations;
    uint64_t references; /* number of memory records with this tag, released or not */
    char name[BH_TAG_BYTES];
};

struct bh__buffer {
    uint64_t id;
    bh__memory *memory; /* Retained. */
    uint64_t offset, bytes, count;
    bh_type type;
    bool is_view;
    bool of_image; /* the last reference is an image's: the program cannot release it */
    uint32_t references;
};

/* Memory that work can use: a block of a chunk, a host region, or a part of one. A buffer and its
 * views share it. The fields that a release reads come first: they are often not in the cache. */
struct bh__memory {
    uint64_t bytes;
    bh__block *block;         /* Owned. NULL for host regions. */
    bh__tag *tag;             /* Borrowed. NULL for host regions. */
    bh__dedicated *dedicated; /* Owned. Memory with a dedicated chunk: `block` is part of it. */
    uint64_t held_by;         /* number of the lost worker that may still write it; 0: none */
    bh__lane_use *uses;       /* use_inline, or Owned if it has grown */
    bh__doubt *doubt;         /* Owned. doubt.c */
    uint32_t references;      /* buffer handles and views */
    uint32_t use_count;
    bh__buffer first; /* the record of its first handle; other handles have separate records */
    bool window;      /* refers to bytes of a chunk that it does not own: nothing to give back */
    bool mirror;      /* host regions: the host copy of a managed buffer */
    uint32_t host_id; /* host regions: the id in requests */
    uint64_t address;
    uint64_t read_only_address;
    uint32_t use_capacity, doubt_count;
    /* Not 0: all bytes are in doubt, because there was no host memory for the exact set. Only a
     * later stamp than this one clears it. */
    uint64_t doubt_whole;
    const void *call_site; /* the caller that allocated it */
    void *host;            /* host regions: the address in the application */
    uint64_t host_from;    /* parts of a host region: their offset in it */
    bh__managed *managed;  /* Owned. Managed buffers; they have a dedicated chunk. */
    /* Fields from here on are not zeroed: doubt_loss and listed never match an old number, and
     * use_count says how many uses are valid, and whether last_write is. */
    bh__memory *next;     /* in the list of leaving memory, or of retired memory */
    uint64_t doubt_stamp; /* during a judgement: the most recent request in flight that writes it */
    uint64_t doubt_loss;  /* the judgement that doubt_stamp belongs to */
    /* While bytes are in doubt: the list of such records, and what points to this one. */
    bh__memory *next_doubted, **doubt_link;
    uint64_t listed; /* number of the last listing that contains it */
    /* The last request that writes it, and the handle of its lane. Valid if use_count is not 0. */
    bh_ticket last_write;
    uint64_t last_writer;
    bh__lane_use use_inline[2];
};
_Static_assert(offsetof(bh__memory, first) == 64 && offsetof(bh__memory, address) == 128 &&
                   offsetof(bh__memory, next) == 192,
               "a release needs the first two cache lines, an allocation the third as well");

/* Memory with a dedicated chunk: dedicated.c. */
struct bh__dedicated {
    bh__block block; /* memory->block points here: the buffer's first byte to the chunk's end */
    bh__chunk chunk;
    uint64_t span;           /* bytes of addresses it occupies */
    bh__job *unmap_job;      /* Owned until it is posted. Allocated early: a release cannot fail. */
    struct bh__grant *grant; /* Owned mapping. Shareable memory only; read-only if imported. */
    int grant_fd;            /* Owned. */
    bool imported;
    bool gone;         /* the chunk is unmapped; the record is kept for messages */
    uint64_t reserved; /* BH__DEDICATED_MIRRORED: the addresses reserved in this process */
    bh__driver_managed
        *driver_managed; /* Owned. BH_BUFFER_DRIVER: each worker has its own chunk. */
};

/* A chunk as all workers map it. Each new worker is sent all chunks. */
typedef struct bh__chunk_entry {
    bh__chunk chunk;
    int fd;               /* Owned. */
    uint8_t *marks, *map; /* Owned. With checks: base/shadow.h. Else NULL. */
} bh__chunk_entry;

/* Memory pressure: what all watchers have in common. */
typedef struct bh__pressures {
    uint64_t high, low; /* bytes_allocated at which the next watcher must be told */
    uint64_t notes;     /* number of notifications so far */
    _Atomic bool due;   /* Read without the lock. */
} bh__pressures;

/* Device addresses for chunks, as offsets from `base`. */
typedef struct bh__addresses {
    uint64_t base, read_only_base, limit;
    uint64_t next;  /* for the next chunk */
    bh__span *free; /* Owned. Addresses of chunks that were given back. */
    uint32_t free_count, free_capacity;
} bh__addresses;

/* Totals of managed buffers: bh_memory_info.managed_... */
typedef struct bh__managed_totals {
    uint64_t buffers, bytes, to_device, to_host;
} bh__managed_totals;

/* With checks or guard mode: freed memory whose reuse is delayed, oldest first. */
typedef struct bh__retired {
    bh__memory *first, *last;
    uint32_t count;
    uint64_t bytes;
} bh__retired;

/* The device's memory state. The fields that allocations and releases write come first. */
typedef struct bh__memory_room {
    uint64_t buffer_count, bytes_allocated, peak_allocated;
    bh__pressures pressure;
    bh__memory *leaving; /* released, but still used by work */
    bh__records memory_records, buffer_records;
    bh__tag untagged;
    bh__heap heap;

    uint64_t chunk_granularity;
    bool limit_given; /* the program set options.memory_limit; else it is the device's memory */
    bh__chunk_entry *chunks;
    uint32_t chunk_count, chunk_capacity, next_chunk_id;
    bh__addresses addresses;
    bh__retired retired;
    uint64_t making_bytes;    /* in chunks of the heap that are being created */
    uint64_t dedicated_bytes; /* in dedicated chunks */
    uint64_t module_bytes;    /* in variables of modules, counted once for all workers */
    bh__job *unmap_jobs;      /* guard mode: chunks to unmap before the public call returns */

    uint64_t peak_reserved, refusals;
    bh__managed_totals managed;
    bh__tag *tags[BH__TAG_BUCKETS];
    uint32_t tag_count;
    uint64_t listing;
} bh__memory_room;

#endif
