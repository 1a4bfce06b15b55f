/* SPDX-License-Identifier: Apache-2.0 */
/* libbulkhead-cuda: buffers as DLPack tensors and back, mappings, and what is refused. On the CPU
 * device tensors are in host memory; on a GPU what is written through one place is read at the
 * other. */
#include "../support/buffers.h"
#include "../support/support.h"
#include "bulkhead_cuda.h"

enum { COUNT = 1200 };

static bh_buffer shareable(bh_device device, uint32_t first) {
    bh_buffer buffer;
    uint32_t words[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) words[i] = first + i;
    REQUIRE_OK(alloc_shareable(device, BH_U32, COUNT, &buffer));
    REQUIRE_OK(bh_buffer_write(buffer, 0, words, sizeof words));
    return buffer;
}

/* As CHECK_REFUSED, of this library. */
static void check_interop_refused(bh_status status, bh_status expected, int line) {
    bh_error error;
    if (status != expected) FAIL("line %d: %d, not %d", line, status, expected);
    CHECK_STATUS(bh_cuda_last_error(&error), status);
    CHECK(error.message[0] && error.fix[0]);
}
#define REFUSED(call, expected) check_interop_refused((call), (expected), __LINE__)

TEST(a_tensor_shares_the_buffers_memory) {
    rig r = rig_open(0);
    bh_buffer buffer = shareable(r.device, 10);
    int64_t shape[3] = {3, 100, 4};
    bh_dl_managed *tensor;
    bh_dl_versioned *other;
    bh_status status = bh_dlpack_export(buffer, shape, 3, &tensor);
    REQUIRE_OK(status);
    REQUIRE_OK(bh_dlpack_export_versioned(buffer, NULL, 0, &other));
    CHECK_EQ(tensor->tensor.device_type, is_cpu(r.device) ? BH_DL_CPU : BH_DL_CUDA);
    CHECK_EQ(tensor->tensor.ndim, 3);
    CHECK_EQ(tensor->tensor.strides[0], 400);
    CHECK_EQ(tensor->tensor.strides[1], 4);
    CHECK_EQ(tensor->tensor.strides[2], 1);
    CHECK_EQ(tensor->tensor.type_code, BH_DL_UINT);
    CHECK_EQ(tensor->tensor.type_bits, 32);
    CHECK_EQ(tensor->tensor.type_lanes, 1);
    CHECK_EQ(tensor->tensor.byte_offset, 0);
    CHECK_EQ(other->version_major, 1);
    CHECK_EQ(other->tensor.ndim, 1);
    CHECK_EQ(other->tensor.shape[0], COUNT);
    CHECK_EQ((uintptr_t)tensor->tensor.data % 256, 0);
    if (is_cpu(r.device)) {
        uint32_t *words = tensor->tensor.data, *same = other->tensor.data;
        CHECK_EQ(words[COUNT - 1], 10 + COUNT - 1);
        words[5] = 99;
        CHECK_EQ(word_read(buffer, 5), 99);
        CHECK_OK(run_now(rig_kernel(&r, "add_one"), BH_GRID(COUNT, 64),
                         BH_ARGS(BH_INOUT(buffer), (uint32_t)COUNT)));
        CHECK_EQ(words[5], 100);
        CHECK_EQ(same[0], 11);
        /* The tensor keeps the memory. */
        REQUIRE_OK(bh_buffer_release(buffer));
        CHECK_OK(bh_device_close(r.device));
        CHECK_EQ(words[5], 100);
        same[5] = 7;
        CHECK_EQ(words[5], 7);
    } else {
        CHECK_OK(bh_device_close(r.device));
    }
    tensor->deleter(tensor);
    other->deleter(other);
}

TEST(there_and_back) {
    rig r = rig_open(0);
    bh_buffer buffer = shareable(r.device, 1), copy;
    bh_dl_managed *tensor;
    bh_dl_versioned *other;
    REQUIRE_OK(bh_dlpack_export(buffer, NULL, 0, &tensor));
    REQUIRE_OK(bh_dlpack_import(r.device, tensor, &copy));
    CHECK(words_count(copy, COUNT, 1));
    REQUIRE_OK(bh_dlpack_export_versioned(buffer, NULL, 0, &other));
    REQUIRE_OK(bh_dlpack_import_versioned(r.device, other, &copy));
    CHECK(words_count(copy, COUNT, 1));
    word_write(copy, 0, 1000);
    CHECK_EQ(word_read(buffer, 0), 1);
    CHECK_OK(bh_device_close(r.device));
}

static int deleted;
static void count_deleted(bh_dl_managed *tensor) {
    (void)tensor;
    deleted++;
}

TEST(host_tensors_are_copied) {
    rig r = rig_open(0);
    float data[30];
    for (int i = 0; i < 30; i++) data[i] = (float)i;
    int64_t shape[2] = {4, 5}, strides[2] = {5, 1}, wide[2] = {6, 1};
    bh_dl_managed tensor = {.tensor = {.data = data,
                                       .device_type = BH_DL_CPU,
                                       .ndim = 2,
                                       .type_code = BH_DL_FLOAT,
                                       .type_bits = 32,
                                       .type_lanes = 1,
                                       .shape = shape,
                                       .strides = strides,
                                       .byte_offset = 8},
                            .deleter = count_deleted};
    bh_buffer copy;
    float out[20];
    REQUIRE_OK(bh_dlpack_import(r.device, &tensor, &copy));
    CHECK_EQ(deleted, 1);
    REQUIRE_OK(bh_buffer_read(copy, 0, out, sizeof out));
    CHECK_MEM_EQ(out, data + 2, sizeof out);
    bh_buffer_info info = BH_INIT(info);
    CHECK_OK(bh_buffer_get_info(copy, &info));
    CHECK_EQ(info.type, BH_F32);
    CHECK_EQ(info.count, 20);

    tensor.tensor.strides = wide;
    REFUSED(bh_dlpack_import(r.device, &tensor, &copy), BH_E_UNSUPPORTED);
    tensor.tensor.strides = NULL;
    tensor.tensor.type_lanes = 4;
    REFUSED(bh_dlpack_import(r.device, &tensor, &copy), BH_E_UNSUPPORTED);
    tensor.tensor.type_lanes = 1;
    tensor.tensor.type_code = 5; /* complex */
    REFUSED(bh_dlpack_import(r.device, &tensor, &copy), BH_E_UNSUPPORTED);
    tensor.tensor.type_code = BH_DL_FLOAT;
    tensor.tensor.device_type = 10; /* another maker's GPU */
    REFUSED(bh_dlpack_import(r.device, &tensor, &copy), BH_E_UNSUPPORTED);
    tensor.tensor.device_type = BH_DL_CPU;
    shape[0] = 0;
    REFUSED(bh_dlpack_import(r.device, &tensor, &copy), BH_E_INVALID);
    shape[0] = -1;
    REFUSED(bh_dlpack_import(r.device, &tensor, &copy), BH_E_INVALID);
    shape[0] = INT64_MAX;
    REFUSED(bh_dlpack_import(r.device, &tensor, &copy), BH_E_INVALID);
    shape[0] = 4;
    tensor.tensor.data = NULL;
    REFUSED(bh_dlpack_import(r.device, &tensor, &copy), BH_E_INVALID);
    tensor.tensor.data = data;
    REFUSED(bh_dlpack_import((bh_device){0}, &tensor, &copy), BH_E_INVALID);
    REFUSED(bh_dlpack_import(r.device, NULL, &copy), BH_E_INVALID);
    REFUSED(bh_dlpack_import(r.device, &tensor, NULL), BH_E_INVALID);
    bh_dl_versioned newer = {.version_major = 2, .tensor = tensor.tensor};
    REFUSED(bh_dlpack_import_versioned(r.device, &newer, &copy), BH_E_UNSUPPORTED);
    CHECK_EQ(deleted, 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(every_element_type) {
    rig r = rig_open(0);
    for (bh_type type = BH_I8; type <= BH_F64; type++) {
        bh_buffer buffer, copy;
        bh_dl_managed *tensor;
        REQUIRE_OK(alloc_shareable(r.device, type, 3, &buffer));
        REQUIRE_OK(bh_dlpack_export(buffer, NULL, 0, &tensor));
        CHECK_EQ(tensor->tensor.type_bits, 8 * bh_type_size(type));
        REQUIRE_OK(bh_dlpack_import(r.device, tensor, &copy));
        bh_buffer_info info = BH_INIT(info);
        CHECK_OK(bh_buffer_get_info(copy, &info));
        CHECK_EQ(info.type, type);
        CHECK_EQ(info.count, 3);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(bad_arguments_are_refused) {
    rig r = rig_open(0);
    bh_buffer plain = words_filled(r.device, 10, 1), shared = shareable(r.device, 0);
    bh_dl_managed *tensor;
    bh_cuda_mapping mapping = BH_INIT(mapping), none = {0};
    int64_t wrong[2] = {3, 5}, zero[1] = {0}, negative[2] = {-1, -COUNT};
    REFUSED(bh_dlpack_export(plain, NULL, 0, &tensor), BH_E_UNSUPPORTED);
    REFUSED(bh_dlpack_export((bh_buffer){0}, NULL, 0, &tensor), BH_E_INVALID);
    REFUSED(bh_dlpack_export(shared, NULL, 0, NULL), BH_E_INVALID);
    REFUSED(bh_dlpack_export_versioned(shared, NULL, 0, NULL), BH_E_INVALID);
    REFUSED(bh_dlpack_export(shared, wrong, 2, &tensor), BH_E_INVALID);
    REFUSED(bh_dlpack_export(shared, zero, 1, &tensor), BH_E_INVALID);
    REFUSED(bh_dlpack_export(shared, negative, 2, &tensor), BH_E_INVALID);
    REFUSED(bh_dlpack_export(shared, wrong, 0, &tensor), BH_E_INVALID);
    REFUSED(bh_dlpack_export(shared, wrong, -1, &tensor), BH_E_INVALID);
    REFUSED(bh_dlpack_export(shared, wrong, 65, &tensor), BH_E_INVALID);
    REFUSED(bh_cuda_map(plain, &mapping), BH_E_UNSUPPORTED);
    REFUSED(bh_cuda_map(shared, NULL), BH_E_INVALID);
    REFUSED(bh_cuda_map(shared, &none), BH_E_INVALID);
    REFUSED(bh_cuda_unmap(NULL), BH_E_INVALID);
    REFUSED(bh_cuda_unmap(&mapping), BH_E_INVALID);
    if (is_cpu(r.device)) REFUSED(bh_cuda_map(shared, &mapping), BH_E_UNSUPPORTED);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_mapping_into_the_programs_own_context) {
    rig r = rig_open(0);
    if (is_cpu(r.device)) SKIP("the device is not a GPU");
    bh_buffer buffer = shareable(r.device, 20), back;
    bh_cuda_mapping here = BH_INIT(here), there = BH_INIT(there);
    int fds[BH_SHARE_FDS];
    bh_share_token token, forged;
    REQUIRE_OK(bh_buffer_export(buffer, fds, &token));
    CHECK_OK(bh_cuda_map(buffer, &here));
    CHECK_OK(bh_cuda_map_share(fds, &token, &there));
    CHECK_EQ(here.bytes, COUNT * 4);
    CHECK(here.address != there.address);
    forged = token;
    forged.count++;
    REFUSED(bh_cuda_map_share(fds, &forged, &there), BH_E_INVALID);
    /* What CUDA code of this process sees at that address, by way of a tensor made by hand. */
    int64_t shape[1] = {COUNT};
    bh_dl_managed tensor = {.tensor = {.data = (void *)(uintptr_t)here.address,
                                       .device_type = BH_DL_CUDA,
                                       .device_id = here.device,
                                       .ndim = 1,
                                       .type_code = BH_DL_UINT,
                                       .type_bits = 32,
                                       .type_lanes = 1,
                                       .shape = shape}};
    CHECK_OK(run_now(rig_kernel(&r, "add_one"), BH_GRID(COUNT, 64),
                     BH_ARGS(BH_INOUT(buffer), (uint32_t)COUNT)));
    REQUIRE_OK(bh_dlpack_import(r.device, &tensor, &back));
    CHECK(words_count(back, COUNT, 21));
    /* A fault in the compartment does not reach this process. */
    CHECK_STATUS(run_now(rig_kernel(&r, "poke"), BH_GRID(1, 1), BH_ARGS(NOWHERE, 1u)), BH_E_FAULT);
    REQUIRE_OK(bh_dlpack_import(r.device, &tensor, &back));
    CHECK(words_count(back, COUNT, 21));
    REQUIRE_OK(bh_buffer_release(buffer));
    REFUSED(bh_cuda_map_share(fds, &token, &there), BH_E_STALE);
    REQUIRE_OK(bh_dlpack_import(r.device, &tensor, &back)); /* the mapping keeps the memory */
    CHECK(words_count(back, COUNT, 21));
    CHECK_OK(bh_cuda_unmap(&here));
    REFUSED(bh_cuda_unmap(&here), BH_E_INVALID);
    close(fds[0]);
    close(fds[1]);
    CHECK_OK(bh_device_close(r.device));
}

TEST(without_a_driver_it_says_so) {
    if (bh_cuda_probe() == BH_OK) SKIP("there is an NVIDIA driver");
    bh_error error;
    bh_cuda_last_error(&error);
    CHECK(error.status == BH_E_NO_DEVICE || error.status == BH_E_UNSUPPORTED);
    CHECK_STR_CONTAINS(error.message, "driver");
    CHECK(error.fix[0] != 0);
}
