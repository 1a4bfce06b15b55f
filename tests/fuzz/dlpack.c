/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack tensors as they are imported. The library below is a fake that has memory for small
 * buffers: a tensor is taken exactly if it has that many bytes, row after row, and they are read
 * once. */
#include "bulkhead_cuda.h"
#include "fuzz.h"

enum { DIMENSIONS = 6, MAX_BYTES = 4096 };

static uint64_t allocated, written;

bh_status bh_buffer_alloc(bh_device device, bh_type type, uint64_t count,
                          const bh_buffer_options *options, bh_buffer *out) {
    (void)options;
    (void)device;
    uint64_t bytes;
    if (__builtin_mul_overflow(count, (uint64_t)bh_type_size(type), &bytes) || bytes > MAX_BYTES)
        return BH_E_NO_MEMORY;
    allocated = bytes;
    out->id = 1;
    return BH_OK;
}

bh_status bh_buffer_write(bh_buffer buffer, uint64_t offset, const void *source, uint64_t bytes) {
    static uint8_t memory[MAX_BYTES];
    (void)buffer;
    FUZZ_CHECK(offset <= allocated && bytes <= allocated - offset);
    memcpy(memory + offset, source, bytes);
    written += bytes;
    return BH_OK;
}

bh_status bh_buffer_release(bh_buffer buffer) {
    (void)buffer;
    return BH_OK;
}

bh_status bh_buffer_export(bh_buffer buffer, int fds[BH_SHARE_FDS], bh_share_token *token) {
    (void)buffer, (void)fds, (void)token;
    return BH_E_UNSUPPORTED;
}

bh_status bh_buffer_get_info(bh_buffer buffer, bh_buffer_info *out) {
    (void)buffer, (void)out;
    return BH_E_INVALID;
}

bh_status bh_device_get_info(bh_device device, bh_device_info *out) {
    (void)device, (void)out;
    return BH_E_INVALID;
}

bh_status bh_share_map(const int fds[BH_SHARE_FDS], const bh_share_token *token, void **out) {
    (void)fds, (void)token, (void)out;
    return BH_E_UNSUPPORTED;
}

bh_status bh_share_get_info(const int fds[BH_SHARE_FDS], const bh_share_token *token,
                            bh_share_info *out) {
    (void)fds, (void)token, (void)out;
    return BH_E_UNSUPPORTED;
}

bh_status bh_share_unmap(void *memory) {
    (void)memory;
    return BH_OK;
}

bh_status bh_last_error(bh_error *out) {
    memset(out, 0, sizeof *out);
    return BH_E_NO_MEMORY;
}

/* Exactly as many bytes as the shape says, if they are few; else one that must not be read. */
static uint8_t *make_data(const bh_dl_tensor *tensor) {
    uint64_t bytes = (tensor->type_bits + 7u) / 8u;
    for (int32_t i = 0; i < tensor->ndim; i++) {
        uint64_t length = tensor->shape[i] > 0 ? (uint64_t)tensor->shape[i] : 1;
        if (__builtin_mul_overflow(bytes, length, &bytes) || bytes > MAX_BYTES) bytes = MAX_BYTES;
    }
    uint8_t *data = calloc(1, bytes + 1);
    FUZZ_CHECK(data != NULL);
    return data;
}

static void ignore_managed(bh_dl_managed *tensor) {
    (void)tensor;
}

static void ignore_versioned(bh_dl_versioned *tensor) {
    (void)tensor;
}

static void import(const bh_dl_tensor *tensor, uint8_t how, uint32_t version) {
    bh_dl_managed managed = {.tensor = *tensor, .deleter = ignore_managed};
    bh_dl_versioned versioned = {.tensor = *tensor, .deleter = ignore_versioned};
    versioned.version_major = version;
    bh_buffer buffer = {0};
    bh_device device = {1};
    allocated = written = 0;
    bh_status status = how & 1 ? bh_dlpack_import(device, &managed, &buffer)
                               : bh_dlpack_import_versioned(device, &versioned, &buffer);
    FUZZ_CHECK(status != BH_OK || (written == allocated && buffer.id == 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    int64_t shape[DIMENSIONS], strides[DIMENSIONS];
    uint8_t how = fuzz_byte(&in);
    bh_dl_tensor tensor = {.device_type = fuzz_byte(&in) % 16, .ndim = (int8_t)fuzz_byte(&in)};
    uint32_t version = fuzz_byte(&in);
    tensor.type_code = fuzz_byte(&in);
    tensor.type_bits = fuzz_byte(&in);
    tensor.type_lanes = fuzz_byte(&in);
    if (tensor.device_type == BH_DL_CUDA || tensor.device_type == BH_DL_CUDA_MANAGED) return -1;
    if (tensor.ndim > DIMENSIONS) return -1;
    fuzz_take(&in, shape, sizeof shape);
    fuzz_take(&in, strides, sizeof strides);
    tensor.shape = how & 2 ? shape : NULL;
    tensor.strides = how & 4 ? strides : NULL;
    uint8_t *memory = tensor.shape ? make_data(&tensor) : calloc(1, MAX_BYTES);
    tensor.data = how & 8 ? memory : NULL;
    import(&tensor, how, version);
    free(memory);
    return 0;
}
