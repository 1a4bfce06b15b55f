/* SPDX-License-Identifier: Apache-2.0 */
/* From an object file that LLVM made to bytes that run wherever they are put. */
#ifndef BH_JIT_IMAGE_H
#define BH_JIT_IMAGE_H

#include "jit/jit.h"

/* Fills in image, bytes and entry. Returns NULL, or why the object cannot be used. */
const char *bh__jit_image(const void *object, size_t bytes, const char *name, bh__jit_result *out);

#endif
