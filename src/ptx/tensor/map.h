/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor maps as kernels hold them: 128 bytes that PTX leaves open. A kernel may copy them and make
 * others out of them, so nothing here is trusted: a map is checked whenever it is used, and what it
 * leads to is looked up in the memory that the kernel may touch.
 */
#ifndef BH_PTX_TENSOR_MAP_H
#define BH_PTX_TENSOR_MAP_H

#include "base/tensor.h"

void bh__tensor_map_write(const bh__tensor *from, uint8_t out[BH__TENSOR_MAP_BYTES]);
/* Returns NULL, or why these bytes are not a map. The tensor's values are not checked. */
const char *bh__tensor_map_read(const uint8_t bytes[BH__TENSOR_MAP_BYTES], bh__tensor *out);

#endif
