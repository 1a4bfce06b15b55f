/* SPDX-License-Identifier: Apache-2.0 */
/* How an entry of the cache begins: a head, then the parts one behind the other. */
#ifndef BH_CLIENT_COMPILE_CACHE_LAYOUT_H
#define BH_CLIENT_COMPILE_CACHE_LAYOUT_H

#include <stdint.h>

enum {
    BH__PART_KEY,
    BH__PART_ABOUT,
    BH__PART_READS,
    BH__PART_NAMES,
    BH__PART_LOG,
    BH__PART_OUTPUT,
    BH__PART_PTX,
    BH__PARTS
};

#define BH__ENTRY_MAGIC 0x3154524548434142u
enum { BH__ENTRY_VERSION = 2 };

typedef struct bh__entry_part {
    uint64_t bytes;
    uint64_t hash[2]; /* bh__checksum */
} bh__entry_part;

typedef struct bh__entry_head {
    uint64_t magic;
    uint64_t version;
    uint64_t bytes; /* of the file */
    uint64_t key_hash[2];
    bh__entry_part parts[BH__PARTS];
    uint64_t hash[2]; /* of the fields above */
} bh__entry_head;

#endif
