/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers of rows, and steps of sequences, in one call each. `rows` gives the rectangle: a
 * bh_transfer of which only width, height, offsets and pitches count. */
#ifndef TESTS_SUPPORT_TRANSFERS_H
#define TESTS_SUPPORT_TRANSFERS_H

#include <bulkhead.h>

static inline bh_status transfer_on(bh_lane lane, uint32_t flags, const bh_transfer *what,
                                    bh_ticket *out) {
    bh_submit_options options = BH_INIT(options);
    options.lane = lane;
    options.flags = flags;
    return bh_submit(&what->request, &options, out);
}

static inline bh_transfer rows_copied(bh_buffer target, bh_buffer source, const bh_transfer *rows) {
    bh_transfer what = *rows;
    what.direction = BH_TRANSFER_COPY;
    what.target = target;
    what.source = source;
    return what;
}

static inline bh_transfer rows_written(bh_buffer target, const void *source,
                                       const bh_transfer *rows) {
    bh_transfer what = *rows;
    what.direction = BH_TRANSFER_WRITE;
    what.target = target;
    what.from = source;
    return what;
}

static inline bh_transfer rows_read(void *target, bh_buffer source, const bh_transfer *rows) {
    bh_transfer what = *rows;
    what.direction = BH_TRANSFER_READ;
    what.to = target;
    what.source = source;
    return what;
}

static inline bh_transfer rows_filled(bh_buffer target, const bh_transfer *rows,
                                      const void *pattern, uint32_t pattern_bytes) {
    bh_transfer what = *rows;
    what.direction = BH_TRANSFER_FILL;
    what.target = target;
    what.from = pattern;
    what.pattern_bytes = pattern_bytes;
    return what;
}

static inline bh_status submit_copy_rows(bh_lane lane, bh_buffer target, bh_buffer source,
                                         const bh_transfer *rows, bh_ticket *out) {
    bh_transfer what = rows_copied(target, source, rows);
    return transfer_on(lane, 0, &what, out);
}

static inline bh_status submit_write_rows(bh_lane lane, bh_buffer target, const void *source,
                                          const bh_transfer *rows, bh_ticket *out) {
    bh_transfer what = rows_written(target, source, rows);
    return transfer_on(lane, 0, &what, out);
}

static inline bh_status submit_read_rows(bh_lane lane, void *target, bh_buffer source,
                                         const bh_transfer *rows, bh_ticket *out) {
    bh_transfer what = rows_read(target, source, rows);
    return transfer_on(lane, 0, &what, out);
}

static inline bh_status submit_fill_rows(bh_lane lane, bh_buffer target, const bh_transfer *rows,
                                         const void *pattern, uint32_t pattern_bytes,
                                         bh_ticket *out) {
    bh_transfer what = rows_filled(target, rows, pattern, pattern_bytes);
    return transfer_on(lane, 0, &what, out);
}

static inline bh_status copy_rows(bh_buffer target, bh_buffer source, const bh_transfer *rows) {
    bh_transfer what = rows_copied(target, source, rows);
    return transfer_on((bh_lane){0}, BH_SUBMIT_WAIT, &what, NULL);
}

static inline bh_status write_rows(bh_buffer target, const void *source, const bh_transfer *rows) {
    bh_transfer what = rows_written(target, source, rows);
    return transfer_on((bh_lane){0}, BH_SUBMIT_WAIT, &what, NULL);
}

static inline bh_status read_rows(void *target, bh_buffer source, const bh_transfer *rows) {
    bh_transfer what = rows_read(target, source, rows);
    return transfer_on((bh_lane){0}, BH_SUBMIT_WAIT, &what, NULL);
}

static inline bh_status fill_rows(bh_buffer target, const bh_transfer *rows, const void *pattern,
                                  uint32_t pattern_bytes) {
    bh_transfer what = rows_filled(target, rows, pattern, pattern_bytes);
    return transfer_on((bh_lane){0}, BH_SUBMIT_WAIT, &what, NULL);
}

/* ---- steps of sequences ---- */

static inline bh_status record_copy(bh_sequence sequence, bh_buffer target, uint64_t target_offset,
                                    bh_buffer source, uint64_t source_offset, uint64_t bytes,
                                    uint32_t *out_step) {
    bh_transfer what = bh_transfer_copy(target, target_offset, source, source_offset, bytes);
    return bh_sequence_add(sequence, &what.request, out_step);
}

static inline bh_status record_fill(bh_sequence sequence, bh_buffer buffer, uint64_t offset,
                                    uint64_t bytes, const void *pattern, uint32_t pattern_bytes,
                                    uint32_t *out_step) {
    bh_transfer what = bh_transfer_fill(buffer, offset, bytes, pattern, pattern_bytes);
    return bh_sequence_add(sequence, &what.request, out_step);
}

static inline bh_status record_write(bh_sequence sequence, bh_buffer buffer, uint64_t offset,
                                     const void *source, uint64_t bytes, uint32_t *out_step) {
    bh_transfer what = bh_transfer_write(buffer, offset, source, bytes);
    return bh_sequence_add(sequence, &what.request, out_step);
}

static inline bh_status record_read(bh_sequence sequence, bh_buffer buffer, uint64_t offset,
                                    void *target, uint64_t bytes, uint32_t *out_step) {
    bh_transfer what = bh_transfer_read(buffer, offset, target, bytes);
    return bh_sequence_add(sequence, &what.request, out_step);
}

#endif
