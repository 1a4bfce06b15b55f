/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse matrices: the metadata that says where the stored elements of A were. */
#include "ptx/matrix/matrix.h"

/*
 * Four bits of metadata describe one chunk. Where two of four elements are stored they are two
 * positions of two bits; of 4-bit elements, pairs are; and of tf32, where one of two is stored, the
 * lower position is that of the first half of the element.
 */
static unsigned stored_in_chunk(const bh__ptx_matrix *f) {
    return f->a == T_TF32 ? 1 : f->a == T_U4 || f->a == T_S4 ? 4 : 2;
}

static unsigned chunk_position(const bh__ptx_matrix *f, unsigned metadata, unsigned n) {
    switch (stored_in_chunk(f)) {
    case 1:
        return (metadata & 3) / 2;
    case 4:
        return (metadata >> n / 2 * 2 & 3) * 2 + n % 2;
    default:
        return metadata >> n * 2 & 3;
    }
}

/* How many values the selector has: metadata of a whole group of four lanes has none to select. */
unsigned bh__matrix_selectors(const bh__ptx_matrix *f) {
    unsigned chunks = f->stored / stored_in_chunk(f); /* of a row; four lanes hold 32 of two rows */
    return 16 / chunks;
}

/*
 * Lanes hold eight chunks each. Of elements of 16 and more bits a lane has four chunks of a row and
 * four of the row eight below; of smaller ones all eight are of one row.
 */
static unsigned metadata_of(const bh__ptx_exec *x, const bh__ptx_matrix *f, unsigned row,
                            unsigned chunk) {
    const bh__u32 *words = bh__row(x, f->metadata);
    unsigned lanes = 4 / bh__matrix_selectors(f), lane = f->selector * lanes, at;
    bool below = row % 16 >= 8;
    if (bh__matrix_bits(f->a) >= 16) {
        lane += chunk / 4;
        at = chunk % 4 + (below ? 4 : 0);
    } else {
        lane += chunk / 8 * 2 + below;
        at = chunk % 8;
    }
    return words[row % 8 * 4 + lane] >> 4 * at & 15;
}

void bh__matrix_positions(const bh__ptx_exec *x, const bh__ptx_matrix *f, bh__matrix_left *a) {
    unsigned in_chunk = stored_in_chunk(f);
    for (unsigned i = 0; i < f->m; i++) {
        for (unsigned n = 0; n < f->stored; n++) {
            unsigned from = n;
            if (f->sparse) {
                unsigned metadata = metadata_of(x, f, i, n / in_chunk);
                from = n / in_chunk * 2 * in_chunk + chunk_position(f, metadata, n % in_chunk);
            }
            a->from[i * f->stored + n] = (uint8_t)from;
        }
    }
}
