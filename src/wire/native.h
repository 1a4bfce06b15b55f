/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native code of kernels on the CPU device: what bulkhead-compiler answers, what the cache keeps
 * and what workers get. A head, then entries, then code without addresses. All offsets are from the
 * start of the block. Nobody trusts it before bh__native_check.
 */
#ifndef BH_WIRE_NATIVE_H
#define BH_WIRE_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BH__NATIVE_MAGIC 0x45564954414e4842ull /* "BHNATIVE" */
enum {
    BH__NATIVE_VERSION = 2,
    BH__NATIVE_ALIGN = 64, /* of the code of each entry */
    BH__NATIVE_NOTE = 128,
    BH__NATIVE_MAX = 1 << 20 /* entries */
};

enum { BH__OUTPUT_NATIVE = 8 }; /* beside BH_OUTPUT_...: what a product holds */

/* Shapes of blocks, as bits: warps that are rows of threads, warps of two or four whole rows, and
 * others. */
enum {
    BH__NATIVE_FLAT = 1,
    BH__NATIVE_ROWS_OF_16 = 2,
    BH__NATIVE_ROWS_OF_8 = 4,
    BH__NATIVE_OTHER = 8,
    BH__NATIVE_ANY = 15,
    BH__NATIVE_SHAPES = 4 /* how many there are */
};

static inline uint32_t bh__native_shape(const uint32_t block[3]) {
    bool flat = block[0] % 32 == 0 || (block[1] == 1 && block[2] == 1);
    return flat             ? BH__NATIVE_FLAT
           : block[0] == 16 ? BH__NATIVE_ROWS_OF_16
           : block[0] == 8  ? BH__NATIVE_ROWS_OF_8
                            : BH__NATIVE_OTHER;
}
#define BH__NATIVE_ALL UINT32_MAX /* every kernel of the module */

typedef struct bh__native_head {
    uint64_t magic;
    uint32_t version;
    uint32_t count;       /* entries, which follow */
    uint64_t bytes;       /* of the block */
    uint64_t fingerprint; /* of the program it was made of: bh__ptx_fingerprint */
    uint64_t processor;   /* that it was made for: bh__processor */
} bh__native_head;

typedef struct bh__native_entry {
    uint32_t kernel;          /* its index in the module */
    uint32_t shape;           /* BH__NATIVE_FLAT or another */
    uint64_t offset, bytes;   /* the code; no bytes: the kernel was not taken */
    uint64_t start;           /* of the function in the code */
    uint32_t native, handled; /* instructions, as in bh_kernel_info */
    uint32_t compile_us;
    uint32_t reserved;
    char note[BH__NATIVE_NOTE]; /* which of the handled there are most of; why it was not taken */
} bh__native_entry;

/* The entries, and how many; NULL: the block is not valid. `data` is aligned to 8 bytes. */
const bh__native_entry *bh__native_check(const void *data, size_t bytes, uint32_t *out_count);

#endif
