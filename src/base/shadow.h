/* SPDX-License-Identifier: Apache-2.0 */
/* The data behind a chunk's bytes in its file when memory is checked (BH_DEVICE_CHECK). */
#ifndef BH_BASE_SHADOW_H
#define BH_BASE_SHADOW_H

#include <stdint.h>

/*
 * First the marks, one byte for each byte of the chunk: not zero once that byte was written. Then
 * the map, one byte for every eight bytes: how many of the eight, from the first, belong to a
 * buffer, or why none do. The application writes the map, and clears marks when it allocates
 * memory. Workers set marks and never write the map.
 */
enum {
    BH__MAP_UNUSED = 0, /* never allocated */
    BH__MAP_WHOLE = 8,
    BH__MAP_GAP = 0xf0, /* between buffers */
    BH__MAP_FREED = 0xf1
};

#define BH__MAP_SCALE 8

static inline uint64_t bh__marks_offset(uint64_t chunk_bytes) {
    return chunk_bytes;
}
static inline uint64_t bh__map_offset(uint64_t chunk_bytes) {
    return 2 * chunk_bytes;
}
static inline uint64_t bh__map_bytes(uint64_t chunk_bytes) {
    return chunk_bytes / BH__MAP_SCALE;
}
/* The size of the whole file. */
static inline uint64_t bh__checked_chunk_bytes(uint64_t chunk_bytes) {
    return bh__map_offset(chunk_bytes) + bh__map_bytes(chunk_bytes);
}

#endif
