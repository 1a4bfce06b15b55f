/* SPDX-License-Identifier: Apache-2.0 */
/* The kind of an image that is to be linked. */
#ifndef BH_COMPILER_LINK_IMAGE_H
#define BH_COMPILER_LINK_IMAGE_H

#include "wire/compile.h"

/* Numbered as nvJitLink numbers its inputs. */
typedef enum bh__link_kind {
    BH__LINK_UNKNOWN = 0,
    BH__LINK_CUBIN = 1,
    BH__LINK_PTX = 2,
    BH__LINK_LTOIR = 3,
    BH__LINK_FATBIN = 4,
    BH__LINK_OBJECT = 5,
    BH__LINK_LIBRARY = 6
} bh__link_kind;

/* How many bytes of blanks, comments and #line come before the PTX. */
size_t bh__link_ptx_head(bh__bytes image);
bh__link_kind bh__link_kind_of(bh__bytes image);
const char *bh__link_kind_name(bh__link_kind kind);

#endif
