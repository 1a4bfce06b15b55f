/* SPDX-License-Identifier: Apache-2.0 */
/* The binary interface of libbulkhead-cuda: DLPack's layouts are everybody's, the mapping is
 * ours. */
#include "../harness/test.h"
#include "bulkhead_cuda.h"

#define FIELD(type, field, at, bytes)                                                              \
    CHECK_EQ(offsetof(type, field), at);                                                           \
    CHECK_EQ(sizeof(((type *)0)->field), bytes)

TEST(structs_have_the_layout_programs_were_built_with) {
    CHECK_EQ(sizeof(bh_cuda_mapping), 32);
    FIELD(bh_cuda_mapping, size, 0, 4);
    FIELD(bh_cuda_mapping, device, 4, 4);
    FIELD(bh_cuda_mapping, address, 8, 8);
    FIELD(bh_cuda_mapping, bytes, 16, 8);
    FIELD(bh_cuda_mapping, id, 24, 8);
    CHECK_EQ(sizeof(bh_dl_tensor), 48);
    FIELD(bh_dl_tensor, data, 0, 8);
    FIELD(bh_dl_tensor, device_type, 8, 4);
    FIELD(bh_dl_tensor, device_id, 12, 4);
    FIELD(bh_dl_tensor, ndim, 16, 4);
    FIELD(bh_dl_tensor, type_code, 20, 1);
    FIELD(bh_dl_tensor, type_bits, 21, 1);
    FIELD(bh_dl_tensor, type_lanes, 22, 2);
    FIELD(bh_dl_tensor, shape, 24, 8);
    FIELD(bh_dl_tensor, strides, 32, 8);
    FIELD(bh_dl_tensor, byte_offset, 40, 8);
    CHECK_EQ(sizeof(bh_dl_managed), 64);
    FIELD(bh_dl_managed, tensor, 0, 48);
    FIELD(bh_dl_managed, context, 48, 8);
    FIELD(bh_dl_managed, deleter, 56, 8);
    CHECK_EQ(sizeof(bh_dl_versioned), 80);
    FIELD(bh_dl_versioned, version_major, 0, 4);
    FIELD(bh_dl_versioned, version_minor, 4, 4);
    FIELD(bh_dl_versioned, context, 8, 8);
    FIELD(bh_dl_versioned, deleter, 16, 8);
    FIELD(bh_dl_versioned, flags, 24, 8);
    FIELD(bh_dl_versioned, tensor, 32, 48);
}

TEST(constants_are_those_of_dlpack) {
    CHECK_EQ(BH_DL_CPU, 1);
    CHECK_EQ(BH_DL_CUDA, 2);
    CHECK_EQ(BH_DL_CUDA_HOST, 3);
    CHECK_EQ(BH_DL_CUDA_MANAGED, 13);
    CHECK_EQ(BH_DL_INT, 0);
    CHECK_EQ(BH_DL_UINT, 1);
    CHECK_EQ(BH_DL_FLOAT, 2);
    CHECK_EQ(BH_DL_BFLOAT, 4);
    CHECK_EQ(BH_DL_BOOL, 6);
    CHECK_EQ(BH_DL_READ_ONLY, 1);
    CHECK_EQ(BH_DL_IS_COPIED, 2);
}
