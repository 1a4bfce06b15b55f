/* SPDX-License-Identifier: Apache-2.0 */
/* Textures and surfaces: descriptions that launches carry to workers. */
#include <stdlib.h>
#include <string.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/memory/memory.h"
#include "client/queue/uses.h"
#include "client/texture/texture.h"

typedef unsigned long long ull;

static const bh_sampling defaults = {.size = sizeof defaults};

static bh_status take_sampling(const bh_sampling *given, bh__launch_object *out) {
    bh_sampling s = defaults;
    if (bh__options_take(given, &s, "bh_sampling") != BH_OK) return bh__last()->status;
    out->flags = s.flags;
    memcpy(out->modes, s.address, sizeof out->modes);
    memcpy(out->border, s.border, sizeof out->border);
    out->anisotropy = s.anisotropy;
    out->level_bias = s.level_bias;
    out->level_min = s.level_min;
    out->level_max = s.level_min == 0 && s.level_max == 0 ? (float)BH__IMAGE_LEVELS : s.level_max;
    return BH_OK;
}

static bh_status refuse_object(const bh__launch_object *o, const char *wrong) {
    return bh__refuse(BH_E_INVALID, "see bh_sampling and its like in bulkhead/texture.h",
                      "invalid %s, %s: %u x %u x %u texels, %u planes, %u levels, sampling "
                      "flags 0x%x, address modes %u %u %u, pitch %llu, %llu bytes at 0x%llx",
                      o->kind == BH__OBJECT_SURFACE ? "surface" : "texture", wrong, o->shape.width,
                      o->shape.height, o->shape.depth, o->shape.planes, o->shape.levels, o->flags,
                      o->modes[0], o->modes[1], o->modes[2], (ull)o->pitch, (ull)o->bytes,
                      (ull)o->address);
}

bh_status bh__object_add(bh__device *device, uint32_t kind, const bh__object *from, uint64_t *out) {
    bh__object *object = malloc(sizeof *object);
    if (!object)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for the record of a texture or tensor map");
    *object = *from;
    object->record.number = ++device->texture.last_number;
    bh_status status = bh__handle_add(device, kind, object, &object->id);
    if (status != BH_OK) {
        free(object);
        return status;
    }
    object->memory->references++;
    *out = object->id;
    return BH_OK;
}

/* Checks the object, too. */
static bh_status add(bh__device *device, uint32_t kind, const bh__object *from, uint64_t *out) {
    const char *wrong = bh__launch_object_wrong(&from->record);
    if (wrong) return refuse_object(&from->record, wrong);
    if (bh__driver_managed_of(from->memory))
        return bh__refuse(BH_E_UNSUPPORTED, "use a buffer that the driver does not manage",
                          "a texture over a buffer of %llu bytes that the driver manages",
                          (ull)from->memory->bytes);
    return bh__object_add(device, kind, from, out);
}

/* ---- over images ---- */

static bh_status add_over_image(bh_image handle, uint32_t kind, bh__object *object, uint64_t *out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_IMAGE, "image", false);
    if (!device) return bh__last()->status;
    const bh__image *image = bh__handle_get(device, handle.id, BH__KIND_IMAGE, "image");
    bh_status status = image ? BH_OK : bh__last()->status;
    if (image) {
        object->memory = image->memory;
        object->record.image = image->number;
        object->record.shape = image->shape;
        object->record.address = image->memory->address;
        object->record.bytes = image->memory->bytes;
        status = add(device, kind, object, out);
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh_texture_create(bh_image image, const bh_sampling *sampling, bh_texture *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the texture", "out is NULL");
    bh__object object = {.record.kind = BH__OBJECT_TEXTURE};
    bh_status status = take_sampling(sampling, &object.record);
    return status != BH_OK ? status : add_over_image(image, BH__KIND_TEXTURE, &object, &out->id);
}

bh_status bh_surface_create(bh_image image, uint32_t level, bh_surface *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the surface", "out is NULL");
    bh__object object = {.record.kind = BH__OBJECT_SURFACE, .record.level = level};
    return add_over_image(image, BH__KIND_SURFACE, &object, &out->id);
}

/* ---- over buffers ---- */

static bh_status add_over_buffer(bh_buffer handle, bh__object *object, bh_texture *out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_BUFFER, "buffer", false);
    if (!device) return bh__last()->status;
    const bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, "buffer");
    bh_status status = buffer ? BH_OK : bh__last()->status;
    if (buffer) {
        bh__launch_object *record = &object->record;
        uint32_t texel = bh__texel_bytes(&record->shape);
        object->memory = buffer->memory;
        object->offset = buffer->offset;
        record->address = buffer->memory->address + buffer->offset;
        record->bytes = buffer->bytes;
        if (record->kind == BH__OBJECT_LINEAR && texel) {
            uint64_t count = buffer->bytes / texel;
            record->shape.width = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
        }
        status = add(device, BH__KIND_TEXTURE, object, &out->id);
    }
    bh__device_unlock(device);
    return status;
}

static bh_status take_channels(bh_type type, uint32_t channels, bh__image_shape *out) {
    out->depth = out->planes = out->levels = 1;
    out->channels = channels > 4 ? 0 : (uint8_t)channels;
    if (bh__channel_of(type, out) && (channels == 1 || channels == 2 || channels == 4))
        return BH_OK;
    return bh__refuse(BH_E_INVALID,
                      "use 1, 2 or 4 channels of 8, 16 or 32-bit integers, BH_F16 or BH_F32",
                      "invalid texture: %u channels of %s", channels, bh_type_name(type));
}

bh_status bh_texture_create_linear(bh_buffer buffer, bh_type type, uint32_t channels,
                                   const bh_sampling *sampling, bh_texture *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the texture", "out is NULL");
    bh__object object = {
        .record = {.kind = BH__OBJECT_LINEAR, .shape = {.dimensions = 1, .height = 1}}};
    bh_status status = take_channels(type, channels, &object.record.shape);
    if (status == BH_OK) status = take_sampling(sampling, &object.record);
    return status != BH_OK ? status : add_over_buffer(buffer, &object, out);
}

bh_status bh_texture_create_rows(bh_buffer buffer, bh_type type, uint32_t channels, uint32_t width,
                                 uint32_t height, uint64_t pitch, const bh_sampling *sampling,
                                 bh_texture *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the texture", "out is NULL");
    bh__object object = {.record = {.kind = BH__OBJECT_ROWS,
                                    .pitch = pitch,
                                    .shape = {.dimensions = 2, .width = width, .height = height}}};
    bh_status status = take_channels(type, channels, &object.record.shape);
    if (status == BH_OK) status = take_sampling(sampling, &object.record);
    return status != BH_OK ? status : add_over_buffer(buffer, &object, out);
}

/* ---- releasing ---- */

bh_status bh__object_release(uint64_t handle, uint32_t kind, const char *what) {
    bh__device *device = bh__device_lock(handle, kind, what, false);
    if (!device) return bh__last()->status;
    bh__object *object = bh__handle_get(device, handle, kind, what);
    bh_status status = object ? BH_OK : bh__last()->status;
    if (object) {
        bh__handle_remove(device, handle);
        bh__memory_release(device, object->memory);
        free(object);
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh_texture_release(bh_texture texture) {
    return bh__object_release(texture.id, BH__KIND_TEXTURE, "texture");
}

bh_status bh_surface_release(bh_surface surface) {
    return bh__object_release(surface.id, BH__KIND_SURFACE, "surface");
}

static void drop_memory(bh__device *device, bh__memory *memory) {
    if (--memory->references == 0) bh__memory_delete(device, memory);
}

void bh__textures_free(bh__device *device) {
    bh__table *tables[] = {&device->handles.textures, &device->handles.surfaces,
                           &device->handles.tensor_maps};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        uint32_t cursor = 0;
        for (bh__object *object; (object = bh__table_next(tables[i], &cursor));) {
            bh__handle_remove(device, object->id);
            drop_memory(device, object->memory);
            free(object);
        }
    }
    uint32_t cursor = 0;
    for (bh__image *image; (image = bh__table_next(&device->handles.images, &cursor));) {
        bh__handle_remove(device, image->id);
        drop_memory(device, image->memory);
        free(image);
    }
}
