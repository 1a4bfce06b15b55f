/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/request.h: work that is described by a struct. Stable.
 *
 * A request goes to a lane with bh_submit, and into a sequence with bh_sequence_add (sequence.h).
 * Every kind of request is a struct that begins with a bh_request. Transfers are one kind: single
 * ranges, or rows with gaps between them. Here a tile of a matrix is read into plain memory:
 *
 *     bh_status read_tile(bh_buffer matrix, uint64_t columns, uint64_t row, uint64_t column,
 *                         float tile[16][16]) {
 *         bh_transfer read = bh_transfer_read(matrix, (row * columns + column) * sizeof(float),
 *                                             tile, 16 * sizeof(float));
 *         read.height = 16;
 *         read.source_pitch = columns * sizeof(float);
 *         bh_submit_options options = BH_INIT(options);
 *         options.flags = BH_SUBMIT_WAIT;
 *         return bh_submit(&read.request, &options, NULL);
 *     }
 */
#ifndef BULKHEAD_REQUEST_H
#define BULKHEAD_REQUEST_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bh_request {
    uint32_t size; /* of the whole struct */
    uint32_t kind; /* BH_REQUEST_... */
} bh_request;

enum {
    BH_REQUEST_TRANSFER = 1 /* bh_transfer */
};

typedef struct bh_submit_options {
    uint32_t size;
    uint32_t flags;       /* BH_SUBMIT_... (core.h) */
    bh_lane lane;         /* zero: the device's own */
    uint64_t deadline_ns; /* of sequences: maximum running time of all of it; 0: the device's
                             default. Transfers take none (BH_E_UNSUPPORTED):
                             bh_device_options.stuck_timeout_ns limits them */
    uint32_t repeat;      /* of sequences: how often the steps run, one pass after the other; 0
                             counts as 1. Of transfers: 0 or 1 */
    uint32_t reserved;
    const bh_ticket *after; /* work of other lanes of the device that must have ended first, well or
                               not. Work on the same buffers is waited for in any case */
    size_t after_count;
} bh_submit_options;

/* Submits the request to the device of its buffers. With BH_SUBMIT_WAIT it returns when the work is
 * done, with its status; a read that a stopped device still answers then gives a zero ticket. */
BH_API bh_status bh_submit(const bh_request *request, const bh_submit_options *options,
                           bh_ticket *out);

/* ---- transfers ---- */

enum {
    BH_TRANSFER_WRITE = 1, /* from host memory to a buffer */
    BH_TRANSFER_READ = 2,  /* from a buffer to host memory */
    BH_TRANSFER_COPY = 3,  /* from a buffer to a buffer of the same device */
    BH_TRANSFER_FILL = 4   /* repeats a pattern in a buffer */
};

/*
 * `height` rows of `width` bytes. A pitch is the distance between the starts of two rows, at least
 * the width. Offsets and pitches belong to the buffer or memory that is the target or the source;
 * for host memory an offset counts from the pointer. With a width of 0 nothing is done.
 *
 * What a direction does not name below is ignored: `target` of a READ, `source` of a WRITE, and the
 * source's offset and pitch of a FILL, whose pattern begins at `from`. Pitches of a single row are
 * ignored too.
 *
 * A transfer is one piece of work, also where plain memory is moved in several parts: other work on
 * the same bytes comes before all of it or after all of it. If another thread submits such work
 * while the parts are being submitted, its call waits (BH_E_BUSY if it must not wait).
 *
 * Source and target must not overlap. Host memory that is not from bh_host_alloc is copied before
 * the call returns, if it is the source; as the target of a read it needs BH_SUBMIT_WAIT.
 *
 * After a loss, the suspect range goes from the first byte of the first row to the last byte of the
 * last row: rows with gaps between them never clear it, and if their transfer is lost, all of the
 * range is suspect.
 */
typedef struct bh_transfer {
    bh_request request;
    uint32_t direction;     /* BH_TRANSFER_... */
    uint32_t pattern_bytes; /* FILL: of the pattern at `from`, 1 to BH_PATTERN_MAX. It starts again
                               with each row, and its last repetition in a row may be cut short */
    bh_buffer target;       /* WRITE, COPY, FILL */
    bh_buffer source;       /* READ, COPY */
    const void *from;       /* WRITE, FILL */
    void *to;               /* READ */
    uint64_t target_offset, source_offset;
    uint64_t width;                      /* FILL of a single row: BH_WHOLE, to the buffer's end */
    uint64_t height;                     /* 0 counts as 1 */
    uint64_t target_pitch, source_pitch; /* 0: the width */
} bh_transfer;

static inline bh_transfer bh_transfer_init(uint32_t direction, uint64_t bytes) {
    bh_transfer made = {{(uint32_t)sizeof made, BH_REQUEST_TRANSFER},
                        direction,
                        0,
                        {0},
                        {0},
                        NULL,
                        NULL,
                        0,
                        0,
                        0,
                        0,
                        0,
                        0};
    made.width = bytes;
    return made;
}

/* Transfers of one range, with the parameters of bh_submit_write and its like. */
static inline bh_transfer bh_transfer_write(bh_buffer target, uint64_t offset, const void *source,
                                            uint64_t bytes) {
    bh_transfer made = bh_transfer_init(BH_TRANSFER_WRITE, bytes);
    made.target = target;
    made.target_offset = offset;
    made.from = source;
    return made;
}

static inline bh_transfer bh_transfer_read(bh_buffer source, uint64_t offset, void *target,
                                           uint64_t bytes) {
    bh_transfer made = bh_transfer_init(BH_TRANSFER_READ, bytes);
    made.source = source;
    made.source_offset = offset;
    made.to = target;
    return made;
}

static inline bh_transfer bh_transfer_copy(bh_buffer target, uint64_t target_offset,
                                           bh_buffer source, uint64_t source_offset,
                                           uint64_t bytes) {
    bh_transfer made = bh_transfer_init(BH_TRANSFER_COPY, bytes);
    made.target = target;
    made.target_offset = target_offset;
    made.source = source;
    made.source_offset = source_offset;
    return made;
}

static inline bh_transfer bh_transfer_fill(bh_buffer target, uint64_t offset, uint64_t bytes,
                                           const void *pattern, uint32_t pattern_bytes) {
    bh_transfer made = bh_transfer_init(BH_TRANSFER_FILL, bytes);
    made.target = target;
    made.target_offset = offset;
    made.from = pattern;
    made.pattern_bytes = pattern_bytes;
    return made;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
