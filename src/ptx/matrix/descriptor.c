/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix descriptors of wgmma: where in shared memory an element is. */
#include "ptx/matrix/descriptor.h"

#include "ptx/check/check.h"

/* Offsets are given without their lowest four bits. */
static uint32_t field(uint64_t bits, unsigned at) {
    return (uint32_t)(bits >> at & 0x3fff) << 4;
}

bh__matrix_descriptor bh__matrix_descriptor_of(uint64_t bits, bool across) {
    static const uint8_t widths[] = {16, 128, 64, 32};
    return (bh__matrix_descriptor){.start = field(bits, 0),
                                   .leading = field(bits, 16),
                                   .stride = field(bits, 32),
                                   .base = (uint32_t)(bits >> 49 & 7),
                                   .width = widths[bits >> 62],
                                   .across = across};
}

/*
 * The canonical layouts of PTX. Lines come in blocks of eight, whose lines are `width` bytes apart.
 * K-major, a line is a row of A or column of B: blocks are `stride` apart, and chunks follow each
 * other, or, not swizzled, are `leading` apart. Otherwise a line has one k: its chunks follow each
 * other up to the width and then jump by `leading`, and blocks are `stride` apart; not swizzled,
 * the two change places.
 */
static uint32_t plain_offset(const bh__matrix_descriptor *d, unsigned line, unsigned chunk) {
    unsigned in_width = d->width / CHUNK;
    uint32_t jump = d->leading, block = d->stride;
    if (d->width == CHUNK && d->across) {
        jump = d->stride;
        block = d->leading;
    }
    return line % 8 * d->width + line / 8 * block + chunk % in_width * CHUNK +
           chunk / in_width * jump;
}

/* Bits 4 to 6 of an address are exchanged by the line of 128 bytes in the pattern it is in. */
static uint32_t swizzled(const bh__matrix_descriptor *d, uint32_t address) {
    uint32_t line = ((address >> 7) - d->base) & (d->width / CHUNK - 1);
    return address ^ line << 4;
}

const uint8_t *bh__matrix_chunk(bh__ptx_exec *x, const bh__matrix_descriptor *d, unsigned line,
                                unsigned chunk) {
    uint32_t address = swizzled(d, d->start + plain_offset(d, line, chunk));
    unsigned lane = line % LANES;
    if (x->check != NULL) {
        static const uint8_t nothing[CHUNK];
        const uint8_t *p = bh__check_access_lane(x, lane, SPACE_SHARED, address, CHUNK, 0);
        return p != NULL ? p : nothing; /* the launch goes on */
    }
    return bh__ptx_resolve_lane(x, lane, SPACE_SHARED, address, CHUNK, CHUNK, false);
}
