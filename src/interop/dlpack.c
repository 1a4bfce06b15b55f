/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack: buffers as tensors without a copy, tensors as buffers by a copy. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "interop/interop.h"

typedef unsigned long long ull;

_Static_assert(sizeof(bh_dl_tensor) == 48 && sizeof(bh_dl_managed) == 64 &&
                   sizeof(bh_dl_versioned) == 80,
               "laid out as DLPack's");

enum { MAX_DIMENSIONS = 64, PIECE = 16 << 20 };

/* ---- element types ---- */

static const struct {
    bh_type type;
    uint8_t code, bits;
} types[] = {{BH_I8, BH_DL_INT, 8},     {BH_U8, BH_DL_UINT, 8},      {BH_I16, BH_DL_INT, 16},
             {BH_U16, BH_DL_UINT, 16},  {BH_I32, BH_DL_INT, 32},     {BH_U32, BH_DL_UINT, 32},
             {BH_I64, BH_DL_INT, 64},   {BH_U64, BH_DL_UINT, 64},    {BH_F16, BH_DL_FLOAT, 16},
             {BH_F32, BH_DL_FLOAT, 32}, {BH_BF16, BH_DL_BFLOAT, 16}, {BH_F64, BH_DL_FLOAT, 64},
             {BH_C64, BH_DL_COMPLEX, 64}, {BH_C128, BH_DL_COMPLEX, 128}, {BH_U8, BH_DL_BOOL, 8}};

static void set_type(bh_dl_tensor *tensor, bh_type type) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].type != type) continue;
        tensor->type_code = types[i].code;
        tensor->type_bits = types[i].bits;
        tensor->type_lanes = 1;
        return;
    }
}

static bh_type get_type(const bh_dl_tensor *tensor) {
    for (size_t i = 0; i < sizeof types / sizeof types[0] && tensor->type_lanes == 1; i++) {
        if (types[i].code == tensor->type_code && types[i].bits == tensor->type_bits)
            return types[i].type;
    }
    return 0;
}

/* ---- out ---- */

/* All that a tensor of ours stands for. One of the two heads is in use. */
typedef struct bundle {
    union {
        bh_dl_managed managed;
        bh_dl_versioned versioned;
    } head;
    bh_cuda_mapping mapping; /* id 0: none */
    void *memory;            /* of the CPU device */
    int64_t shape[MAX_DIMENSIONS], strides[MAX_DIMENSIONS];
} bundle;

/* Whoever calls a deleter is told nothing, nor is the error that the thread last saw lost. */
static void drop(bundle *self) {
    bh_error before = *bh__interop_last();
    if (self->mapping.id) bh_cuda_unmap(&self->mapping);
    if (self->memory) bh_share_unmap(self->memory);
    *bh__interop_last() = before;
    free(self);
}

static void delete_managed(bh_dl_managed *tensor) {
    if (tensor) drop(tensor->context);
}

static void delete_versioned(bh_dl_versioned *tensor) {
    if (tensor) drop(tensor->context);
}

static bh_status set_shape(bundle *self, const int64_t *shape, int32_t ndim, uint64_t count) {
    int64_t whole[1] = {(int64_t)count};
    if (!shape) {
        shape = whole;
        ndim = 1;
    }
    if (ndim < 0 || ndim > MAX_DIMENSIONS)
        return bh__interop_refuse(BH_E_INVALID, "use at most 64 dimensions", "ndim is %d", ndim);
    uint64_t product = 1;
    for (int32_t i = ndim - 1; i >= 0; i--) {
        self->shape[i] = shape[i];
        self->strides[i] = (int64_t)product;
        if (shape[i] <= 0 || !bh__mul_u64(product, (uint64_t)shape[i], &product) || product > count)
            break;
        if (i == 0 && product == count) return BH_OK;
    }
    if (ndim == 0 && count == 1) return BH_OK;
    return bh__interop_refuse(BH_E_INVALID, "give a shape with as many elements as the buffer has",
                              "the shape does not have the buffer's %llu elements", (ull)count);
}

/* Maps the memory where tensors of its kind of device have it. */
static bh_status map_memory(bundle *self, bh_buffer buffer, bh_dl_tensor *tensor) {
    int fds[BH_SHARE_FDS];
    bh_share_token token;
    bh_status status = bh__interop_pass_on(bh_buffer_export(buffer, fds, &token));
    if (status != BH_OK) return status;
    if (strcmp(token.kind, "cpu") == 0) {
        status = bh__interop_pass_on(bh_share_map(fds, &token, &self->memory));
        tensor->device_type = BH_DL_CPU;
        tensor->data = self->memory;
    } else {
        self->mapping.size = sizeof self->mapping;
        status = bh_cuda_map_share(fds, &token, &self->mapping);
        tensor->device_type = BH_DL_CUDA;
        tensor->device_id = self->mapping.device;
        tensor->data = (void *)(uintptr_t)self->mapping.address;
    }
    close(fds[0]);
    close(fds[1]);
    return status;
}

static bh_status export(bh_buffer buffer, const int64_t *shape, int32_t ndim, bool versioned,
                        bundle **out) {
    bh_buffer_info info = BH_INIT(info);
    bh_status status = bh__interop_pass_on(bh_buffer_get_info(buffer, &info));
    if (status != BH_OK) return status;
    bundle *self = calloc(1, sizeof *self);
    if (!self)
        return bh__interop_refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                                  "no host memory for a tensor");
    bh_dl_tensor *tensor = versioned ? &self->head.versioned.tensor : &self->head.managed.tensor;
    status = set_shape(self, shape, ndim, info.count);
    if (status == BH_OK) status = map_memory(self, buffer, tensor);
    if (status != BH_OK) {
        free(self);
        return status;
    }
    set_type(tensor, info.type);
    tensor->ndim = shape ? ndim : 1;
    tensor->shape = self->shape;
    tensor->strides = self->strides;
    *out = self;
    return BH_OK;
}

static bh_status refuse_null(const char *what) {
    return bh__interop_refuse(BH_E_INVALID, "pass all arguments", "%s is NULL", what);
}

bh_status bh_dlpack_export(bh_buffer buffer, const int64_t *shape, int32_t ndim,
                           bh_dl_managed **out) {
    if (!out) return refuse_null("out");
    bundle *self;
    bh_status status = export(buffer, shape, ndim, false, &self);
    if (status != BH_OK) return status;
    self->head.managed.context = self;
    self->head.managed.deleter = delete_managed;
    *out = &self->head.managed;
    return BH_OK;
}

bh_status bh_dlpack_export_versioned(bh_buffer buffer, const int64_t *shape, int32_t ndim,
                                     bh_dl_versioned **out) {
    if (!out) return refuse_null("out");
    bundle *self;
    bh_status status = export(buffer, shape, ndim, true, &self);
    if (status != BH_OK) return status;
    self->head.versioned.version_major = 1;
    self->head.versioned.context = self;
    self->head.versioned.deleter = delete_versioned;
    *out = &self->head.versioned;
    return BH_OK;
}

/* ---- in ---- */

/* Counts the elements; they must lie row after row. */
static bh_status measure(const bh_dl_tensor *tensor, bh_type *out_type, uint64_t *out_count) {
    *out_type = get_type(tensor);
    if (!*out_type)
        return bh__interop_refuse(BH_E_UNSUPPORTED, "convert it to one of BH_I8 ... BH_C128",
                                  "elements of code %u, %u bits, %u lanes have no type here",
                                  tensor->type_code, tensor->type_bits, tensor->type_lanes);
    if (tensor->ndim < 0 || (tensor->ndim > 0 && !tensor->shape) || !tensor->data)
        return bh__interop_refuse(BH_E_INVALID, "pass a tensor with data and a shape",
                                  "the tensor has %d dimensions, its shape or data is NULL",
                                  tensor->ndim);
    uint64_t count = 1;
    for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
        int64_t length = tensor->shape[i];
        if (tensor->strides && length > 1 && tensor->strides[i] != (int64_t)count)
            return bh__interop_refuse(
                BH_E_UNSUPPORTED, "make it contiguous first",
                "dimension %d has a stride of %lld elements where rows without gaps have %llu", i,
                (long long)tensor->strides[i], (ull)count);
        if (length <= 0 || !bh__mul_u64(count, (uint64_t)length, &count) || count > INT64_MAX)
            return bh__interop_refuse(BH_E_INVALID, "pass a tensor with elements",
                                      "dimension %d has length %lld", i, (long long)length);
    }
    *out_count = count;
    return BH_OK;
}

static bh_status copy_failed(const bh__driver *cu, int result) {
    return bh__interop_driver_failed(cu, result, BH_E_INTERNAL,
                                     "see whether CUDA still works in this process",
                                     "the tensor cannot be copied");
}

/* Through host memory, a piece at a time. */
static bh_status copy_out(const bh__driver *cu, uint64_t source, uint64_t bytes, bh_buffer target) {
    uint8_t *piece = malloc(bytes < PIECE ? bytes : PIECE);
    if (!piece)
        return bh__interop_refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                                  "no host memory for a copy");
    bh_status status = BH_OK;
    for (uint64_t at = 0; at < bytes && status == BH_OK; at += PIECE) {
        uint64_t some = bytes - at < PIECE ? bytes - at : PIECE;
        int result = cu->copy_out(piece, source + at, some, NULL);
        if (result == BH__CU_OK) result = cu->stream_synchronize(NULL);
        status = result == BH__CU_OK ? bh__interop_pass_on(bh_buffer_write(target, at, piece, some))
                                     : copy_failed(cu, result);
    }
    free(piece);
    return status;
}

/* On the GPU, through a mapping of the target. */
static bh_status copy_within(const bh__driver *cu, uint64_t source, uint64_t bytes,
                             bh_buffer target) {
    bh_cuda_mapping here = BH_INIT(here);
    bh_status status = bh_cuda_map(target, &here);
    if (status != BH_OK) return status;
    int result = cu->copy_within(here.address, source, bytes, NULL);
    if (result == BH__CU_OK) result = cu->stream_synchronize(NULL);
    if (result != BH__CU_OK) status = copy_failed(cu, result);
    bh_cuda_unmap(&here);
    return status;
}

static bool same_gpu(const bh__driver *cu, const char *uuid, int device) {
    int found;
    bh_error before = *bh__interop_last();
    bool same = bh__interop_find_device(cu, uuid, &found) == BH_OK && found == device;
    *bh__interop_last() = before;
    return same;
}

static bh_status from_gpu(bh_device device, const bh_dl_tensor *tensor, bh_type type,
                          uint64_t count, bh_buffer *out) {
    const bh__driver *cu = bh__interop_driver();
    if (!cu) return bh__interop_last()->status;
    bh_device_info info = BH_INIT(info);
    bh_status status = bh__interop_pass_on(bh_device_get_info(device, &info));
    if (status != BH_OK) return status;
    int ordinal;
    if (cu->device_get(&ordinal, tensor->device_id) != BH__CU_OK)
        return bh__interop_refuse(BH_E_INVALID, "pass a tensor of a GPU that this process sees",
                                  "the tensor is on GPU %d, which is not there", tensor->device_id);
    bool near = info.uuid[0] && same_gpu(cu, info.uuid, ordinal);
    bh_buffer_options options = BH_INIT(options);
    options.flags = near ? BH_BUFFER_SHAREABLE : 0;
    status = bh__interop_pass_on(bh_buffer_alloc(device, type, count, &options, out));
    if (status != BH_OK) return status;
    bh__interop_visit visit;
    status = bh__interop_enter(cu, ordinal, &visit);
    if (status == BH_OK) {
        uint64_t source = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
        uint64_t bytes = count * bh_type_size(type);
        status = near ? copy_within(cu, source, bytes, *out) : copy_out(cu, source, bytes, *out);
        bh__interop_leave(&visit);
    }
    if (status != BH_OK) bh_buffer_release(*out);
    return status;
}

static bh_status from_host(bh_device device, const bh_dl_tensor *tensor, bh_type type,
                           uint64_t count, bh_buffer *out) {
    bh_status status = bh__interop_pass_on(bh_buffer_alloc(device, type, count, NULL, out));
    if (status != BH_OK) return status;
    status = bh__interop_pass_on(bh_buffer_write(
        *out, 0, (const uint8_t *)tensor->data + tensor->byte_offset, count * bh_type_size(type)));
    if (status != BH_OK) bh_buffer_release(*out);
    return status;
}

static bh_status import(bh_device device, const bh_dl_tensor *tensor, bh_buffer *out) {
    bh_type type = 0;
    uint64_t count = 0;
    bh_buffer made = {0};
    bh_status status = measure(tensor, &type, &count);
    if (status != BH_OK) return status;
    switch (tensor->device_type) {
    case BH_DL_CPU:
    case BH_DL_CUDA_HOST:
        status = from_host(device, tensor, type, count, &made);
        break;
    case BH_DL_CUDA:
    case BH_DL_CUDA_MANAGED:
        status = from_gpu(device, tensor, type, count, &made);
        break;
    default:
        status = bh__interop_refuse(BH_E_UNSUPPORTED, "move it to the CPU or to an NVIDIA GPU",
                                    "tensors on a device of type %d cannot be copied",
                                    tensor->device_type);
    }
    if (status == BH_OK) *out = made;
    return status;
}

bh_status bh_dlpack_import(bh_device device, bh_dl_managed *tensor, bh_buffer *out) {
    if (!tensor) return refuse_null("tensor");
    if (!out) return refuse_null("out");
    bh_status status = import(device, &tensor->tensor, out);
    if (status == BH_OK && tensor->deleter) tensor->deleter(tensor);
    return status;
}

bh_status bh_dlpack_import_versioned(bh_device device, bh_dl_versioned *tensor, bh_buffer *out) {
    if (!tensor) return refuse_null("tensor");
    if (!out) return refuse_null("out");
    if (tensor->version_major != 1)
        return bh__interop_refuse(BH_E_UNSUPPORTED, "ask its maker for DLPack 1",
                                  "the tensor is laid out as DLPack %u.%u, known is 1",
                                  tensor->version_major, tensor->version_minor);
    bh_status status = import(device, &tensor->tensor, out);
    if (status == BH_OK && tensor->deleter) tensor->deleter(tensor);
    return status;
}
