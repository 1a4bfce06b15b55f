/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps, which the driver encodes. It keeps nothing of them. */
#include <string.h>

#include "cuda/state.h"

typedef unsigned long long ull;

static int encode(const bh__driver *cu, const bh__tensor *t, uint8_t *out) {
    void *address = (void *)(uintptr_t)t->address;
    if (t->im2col)
        return cu->tensor_im2col(out, t->type, t->rank, address, t->dims, t->strides, t->lower,
                                 t->upper, t->channels, t->pixels, t->steps, t->interleave,
                                 t->swizzle, t->promotion, t->nan_fill);
    return cu->tensor_tiled(out, t->type, t->rank, address, t->dims, t->strides, t->box, t->steps,
                            t->interleave, t->swizzle, t->promotion, t->nan_fill);
}

bh_status bh__cuda_tensor_map(const bh__device_instance *device, const bh__tensor *tensor,
                              uint8_t *out, bh_error *error) {
    _Alignas(64) uint8_t bytes[BH__TENSOR_MAP_BYTES];
    const bh__driver *cu = &device->cu;
    if (tensor->im2col ? !cu->tensor_im2col : !cu->tensor_tiled)
        return bh__fail(error, BH_E_UNSUPPORTED, "use a driver for CUDA 12.0 or later",
                        "this driver does not have tensor maps");
    int result = encode(cu, tensor, bytes);
    if (result != BH__CU_OK)
        return bh__cuda_fail(device, error, result, BH_E_UNSUPPORTED,
                             "use a GPU of sm_90 or later, or another tensor map",
                             "a tensor map of rank %u at 0x%llx cannot be made: type %u, innermost "
                             "dimension %llu, interleave %u, swizzle %u",
                             tensor->rank, (ull)tensor->address, tensor->type, (ull)tensor->dims[0],
                             tensor->interleave, tensor->swizzle);
    memcpy(out, bytes, sizeof bytes);
    return BH_OK;
}
