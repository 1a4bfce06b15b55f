/* SPDX-License-Identifier: Apache-2.0 */
/* A 64-bit hash for tables: fast and well mixed, not resistant to deliberate collisions. */
#ifndef BH_BASE_HASH_H
#define BH_BASE_HASH_H

#include <stdint.h>

/* A permutation of the 64-bit numbers: different values never collide. */
static inline uint64_t bh__hash_u64(uint64_t value) {
    value ^= value >> 32;
    value *= 0x9e3779b97f4a7c15u;
    value ^= value >> 29;
    value *= 0xd1b54a32d192ed03u;
    value ^= value >> 32;
    return value;
}

/* The value whose bh__hash_u64 this is. */
static inline uint64_t bh__unhash_u64(uint64_t hash) {
    hash ^= hash >> 32;
    hash *= 0x06106ccfa448e5abu; /* the inverse modulo 2^64 of the second factor above */
    hash ^= hash >> 29 ^ hash >> 58;
    hash *= 0xf1de83e19937733du; /* and of the first */
    hash ^= hash >> 32;
    return hash;
}

#endif
