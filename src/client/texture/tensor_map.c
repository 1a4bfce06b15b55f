/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps: descriptions of buffers that launches carry to workers. */
#include <stdio.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/memory/memory.h"
#include "client/queue/uses.h"
#include "client/texture/texture.h"

typedef unsigned long long ull;

_Static_assert(sizeof(((bh_tensor_shape *)0)->box) == BH__TENSOR_RANK * sizeof(uint32_t),
               "the arrays have an element for each dimension");

/* BH__TENSOR_TYPES: tensors do not have it. */
static uint8_t type_of(bh_type type, uint32_t flags) {
    static const uint8_t types[] = {
        [BH_U8] = BH__TENSOR_U8,   [BH_U16] = BH__TENSOR_U16,   [BH_U32] = BH__TENSOR_U32,
        [BH_I32] = BH__TENSOR_I32, [BH_U64] = BH__TENSOR_U64,   [BH_I64] = BH__TENSOR_I64,
        [BH_F16] = BH__TENSOR_F16, [BH_BF16] = BH__TENSOR_BF16, [BH_F32] = BH__TENSOR_F32,
        [BH_F64] = BH__TENSOR_F64};
    bool ftz = flags & BH_TENSOR_FTZ, tf32 = flags & BH_TENSOR_TF32;
    if (type >= sizeof types || (types[type] == 0 && type != BH_U8)) return BH__TENSOR_TYPES;
    if (!ftz && !tf32) return types[type];
    if (type != BH_F32) return BH__TENSOR_TYPES;
    return tf32 ? (ftz ? BH__TENSOR_TF32_FTZ : BH__TENSOR_TF32) : BH__TENSOR_F32_FTZ;
}

static uint8_t narrow(uint32_t value) {
    return value > UINT8_MAX ? UINT8_MAX : (uint8_t)value;
}

static void describe(const bh_tensor_shape *s, bh__tensor *out) {
    uint32_t rank = s->rank < BH__TENSOR_RANK ? s->rank : BH__TENSOR_RANK;
    *out = (bh__tensor){.rank = narrow(s->rank),
                        .type = type_of(s->type, s->flags),
                        .interleave = narrow(s->interleave),
                        .swizzle = narrow(s->swizzle),
                        .promotion = narrow(s->promotion),
                        .nan_fill = (s->flags & BH_TENSOR_NAN_FILL) != 0,
                        .im2col = (s->flags & BH_TENSOR_IM2COL) != 0};
    for (uint32_t i = 0; i < rank; i++) {
        out->dims[i] = s->dimensions[i];
        out->box[i] = out->im2col ? 0 : s->box[i];
        out->steps[i] = s->steps[i] ? s->steps[i] : 1;
        if (i + 1 < rank) out->strides[i] = s->strides[i];
        if (out->im2col && i + 2 < rank) {
            out->lower[i] = s->lower[i];
            out->upper[i] = s->upper[i];
        }
    }
    if (out->im2col) {
        out->channels = s->channels;
        out->pixels = s->pixels;
    }
}

/* "4 x 5 x 6" */
static void list(char *out, size_t size, const uint64_t *values, uint32_t count) {
    size_t at = 0;
    *out = 0;
    for (uint32_t i = 0; i < count && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, i ? " x %llu" : "%llu", (ull)values[i]);
}

static bh_status refuse(bh_status status, const char *fix, const bh_tensor_shape *s,
                        const bh__launch_object *o, const char *wrong) {
    char dims[120], strides[96], box[60];
    uint64_t wide[BH__TENSOR_RANK];
    uint32_t rank = s->rank < BH__TENSOR_RANK ? s->rank : BH__TENSOR_RANK;
    for (uint32_t i = 0; i < rank; i++) wide[i] = s->box[i];
    list(dims, sizeof dims, s->dimensions, rank);
    list(strides, sizeof strides, s->strides, rank ? rank - 1 : 0);
    list(box, sizeof box, wide, rank);
    return bh__refuse(status, fix,
                      "invalid tensor map, %s: rank %u, %s elements of %s, strides %s, box "
                      "%s, interleave %u, swizzle %u, flags 0x%x, over %llu bytes at 0x%llx",
                      wrong, s->rank, dims, bh_type_name(s->type), strides, box, s->interleave,
                      s->swizzle, s->flags, (ull)o->bytes, (ull)o->address);
}

static bh_status check(const bh__device *device, const bh_tensor_shape *s,
                       const bh__object *object) {
    static const char fix[] = "bh_tensor_shape in bulkhead/tensor_map.h has the limits";
    const uint32_t known = BH_TENSOR_NAN_FILL | BH_TENSOR_FTZ | BH_TENSOR_TF32 | BH_TENSOR_IM2COL;
    const bh__launch_object *o = &object->record;
    const char *wrong = s->flags & ~known ? "unknown flags" : bh__launch_object_wrong(o);
    if (wrong) return refuse(BH_E_INVALID, fix, s, o, wrong);
    if (o->tensor.interleave && !(device->traits & BH__TRAIT_INTERLEAVES))
        return refuse(BH_E_UNSUPPORTED, "use BH_INTERLEAVE_NONE, or a GPU", s, o,
                      "an interleave, which this device does not have");
    if (bh__driver_managed_of(object->memory))
        return bh__refuse(BH_E_UNSUPPORTED, "use a buffer that the driver does not manage",
                          "a tensor map over a buffer of %llu bytes that the driver manages",
                          (ull)object->memory->bytes);
    return BH_OK;
}

bh_status bh_tensor_map_create(bh_buffer handle, const bh_tensor_shape *given, bh_tensor_map *out) {
    bh_tensor_shape shape = {.size = sizeof shape};
    bh__object object = {.record.kind = BH__OBJECT_TENSOR};
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the map", "out is NULL");
    if (!given) return bh__refuse(BH_E_INVALID, "pass the shape of the tensor", "shape is NULL");
    if (bh__options_take(given, &shape, "bh_tensor_shape") != BH_OK ||
        bh__reserved_check(shape.reserved, "bh_tensor_shape") != BH_OK)
        return bh__last()->status;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_BUFFER, "buffer", false);
    if (!device) return bh__last()->status;
    const bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, "buffer");
    bh_status status = buffer ? BH_OK : bh__last()->status;
    if (buffer) {
        describe(&shape, &object.record.tensor);
        object.memory = buffer->memory;
        object.offset = buffer->offset;
        object.record.address = buffer->memory->address + buffer->offset;
        object.record.tensor.address = object.record.address;
        object.record.bytes = buffer->bytes;
        status = check(device, &shape, &object);
        if (status == BH_OK)
            status = bh__object_add(device, BH__KIND_TENSOR_MAP, &object, &out->id);
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh_tensor_map_release(bh_tensor_map map) {
    return bh__object_release(map.id, BH__KIND_TENSOR_MAP, "tensor map");
}
