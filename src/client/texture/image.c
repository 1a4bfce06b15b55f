/* SPDX-License-Identifier: Apache-2.0 */
/* Images: allocating them, their levels, and transfers of boxes. */
#include <stdlib.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/memory/memory.h"
#include "client/texture/texture.h"

typedef unsigned long long ull;

bool bh__channel_of(bh_type type, bh__image_shape *out) {
    static const uint8_t kinds[][2] = {
        [BH_U8] = {8, BH__CHANNEL_UNSIGNED},   [BH_I8] = {8, BH__CHANNEL_SIGNED},
        [BH_U16] = {16, BH__CHANNEL_UNSIGNED}, [BH_I16] = {16, BH__CHANNEL_SIGNED},
        [BH_U32] = {32, BH__CHANNEL_UNSIGNED}, [BH_I32] = {32, BH__CHANNEL_SIGNED},
        [BH_F16] = {16, BH__CHANNEL_FLOAT},    [BH_F32] = {32, BH__CHANNEL_FLOAT}};
    if (type >= sizeof kinds / sizeof *kinds || kinds[type][0] == 0) return false;
    out->bits = kinds[type][0];
    out->kind = kinds[type][1];
    return true;
}

/* ---- allocating ---- */

static bh_status refuse_shape(const bh_image_shape *s, const char *what) {
    return bh__refuse(BH_E_INVALID, "bh_image_shape in bulkhead/texture.h has the limits",
                      "invalid image, %s: %u x %u x %u texels, %u layers, %u levels, %u "
                      "channels of %s, flags 0x%x",
                      what, s->width, s->height, s->depth, s->layers, s->levels, s->channels,
                      bh_type_name(s->type), s->flags);
}

static bh_status take_shape(const bh_image_shape *given, bh_image_shape *s, bh__image *out) {
    *s = (bh_image_shape){.size = sizeof *s};
    if (!given) return bh__refuse(BH_E_INVALID, "pass the shape of the image", "shape is NULL");
    if (bh__options_take(given, s, "bh_image_shape") != BH_OK ||
        bh__reserved_check(s->reserved, "bh_image_shape") != BH_OK)
        return bh__last()->status;
    bool cube = s->flags & BH_IMAGE_CUBE;
    bh__image_shape *shape = &out->shape;
    if (s->flags & ~(uint32_t)(BH_IMAGE_CUBE | BH_IMAGE_SURFACE))
        return refuse_shape(s, "unknown flags");
    if (s->layers > 65536 || s->channels > 4 || !bh__channel_of(s->type, shape))
        return refuse_shape(s, "layers, channels or a type that do not exist");
    if (s->depth && !s->height) return refuse_shape(s, "a depth without a height");
    shape->width = s->width;
    shape->height = s->height ? s->height : 1;
    shape->depth = s->depth ? s->depth : 1;
    shape->dimensions = s->depth ? 3 : s->height ? 2 : 1;
    shape->levels = s->levels ? s->levels : 1;
    shape->channels = (uint8_t)s->channels;
    shape->layered = s->layers != 0;
    shape->cube = cube;
    shape->surface = (s->flags & BH_IMAGE_SURFACE) != 0;
    shape->planes = (s->layers ? s->layers : 1) * (cube ? 6 : 1);
    out->type = s->type;
    out->layers = s->layers;
    out->flags = s->flags;
    out->height = s->height;
    out->depth = s->depth;
    const char *wrong = bh__image_shape_wrong(shape);
    return wrong ? refuse_shape(s, wrong) : BH_OK;
}

static bh_status keep(bh_device handle, bh__image *image, bh_image *out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bh__buffer *buffer = bh__handle_get(device, image->buffer.id, BH__KIND_BUFFER, "buffer");
    bh_status status = buffer ? BH_OK : bh__last()->status;
    if (status == BH_OK) {
        image->memory = buffer->memory;
        image->number = ++device->texture.last_number;
        status = bh__handle_add(device, BH__KIND_IMAGE, image, &image->id);
    }
    if (status == BH_OK) {
        buffer->of_image = true;
        image->memory->references++;
        out->id = image->id;
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh_image_alloc(bh_device device, const bh_image_shape *given, bh_image *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the image", "out is NULL");
    bh_image_shape shape;
    bh__image *image = calloc(1, sizeof *image);
    if (!image)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for an image's record");
    bh_buffer_options options = {.size = sizeof options};
    bh_status status = take_shape(given, &shape, image);
    if (status == BH_OK) {
        options.tag = shape.tag;
        status = bh_buffer_alloc(device, BH_U8,
                                 bh__level_place_of(&image->shape, image->shape.levels - 1).end,
                                 &options, &image->buffer);
    }
    if (status == BH_OK) {
        status = keep(device, image, out);
        if (status == BH_OK) return BH_OK;
        bh_error why = *bh__last();
        (void)bh_buffer_release(image->buffer);
        (void)bh__refuse_with(&why);
    }
    free(image);
    return status;
}

/* Finds an image and locks its device. NULL: the thread's error is set. */
static bh__image *image_lock(bh_image handle, bh__device **out_device) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_IMAGE, "image", false);
    if (!device) return NULL;
    bh__image *image = bh__handle_get(device, handle.id, BH__KIND_IMAGE, "image");
    if (!image) bh__device_unlock(device);
    *out_device = device;
    return image;
}

bh_status bh_image_release(bh_image handle) {
    bh__device *device;
    bh__image *image = image_lock(handle, &device);
    if (!image) return bh__last()->status;
    bh__buffer *buffer = bh__handle_get(device, image->buffer.id, BH__KIND_BUFFER, "buffer");
    bh__handle_remove(device, handle.id);
    bh__memory_release(device, image->memory);
    buffer->of_image = false; /* a reference that the program has taken stays */
    bh__buffer_drop(device, buffer);
    free(image);
    bh__device_unlock(device);
    return BH_OK;
}

/* ---- properties ---- */

bh_status bh_image_get_info(bh_image handle, bh_image_info *out) {
    if (bh__sized_check(out, "bh_image_info") != BH_OK) return BH_E_INVALID;
    bh__device *device;
    bh__image *image = image_lock(handle, &device);
    if (!image) return bh__last()->status;
    const bh__image_shape *shape = &image->shape;
    bh_image_info info = {.size = out->size,
                          .type = image->type,
                          .channels = shape->channels,
                          .width = shape->width,
                          .height = image->height,
                          .depth = image->depth,
                          .layers = image->layers,
                          .levels = shape->levels,
                          .flags = image->flags,
                          .device = {atomic_load(&device->id)},
                          .buffer = image->buffer};
    bh__device_unlock(device);
    bh_buffer_info memory = {.size = sizeof memory};
    bh_status status = bh_buffer_get_info(info.buffer, &memory);
    if (status != BH_OK) return status;
    info.bytes = memory.bytes;
    info.suspect = memory.suspect;
    bh__sized_give(out, &info, sizeof info);
    return BH_OK;
}

/* Copies an image's record. */
static bh_status look(bh_image handle, bh__image *out) {
    bh__device *device;
    bh__image *image = image_lock(handle, &device);
    if (!image) return bh__last()->status;
    *out = *image;
    bh__device_unlock(device);
    return BH_OK;
}

static bh_status check_level(const bh__image *image, uint32_t level) {
    if (level < image->shape.levels) return BH_OK;
    return bh__refuse(BH_E_INVALID, "use a level that the image has",
                      "level %u of an image with %u levels", level, image->shape.levels);
}

bh_status bh_image_get_level(bh_image handle, uint32_t level, bh_image_level *out) {
    if (bh__sized_check(out, "bh_image_level") != BH_OK) return BH_E_INVALID;
    bh__image image;
    if (look(handle, &image) != BH_OK || check_level(&image, level) != BH_OK)
        return bh__last()->status;
    bh__level_place at = bh__level_place_of(&image.shape, level);
    bh_image_level found = {.size = out->size,
                            .width = at.width,
                            .height = at.height,
                            .planes = at.depth * image.shape.planes,
                            .offset = at.offset,
                            .pitch = at.pitch,
                            .slice = at.slice};
    bh__sized_give(out, &found, sizeof found);
    return BH_OK;
}

/* ---- transfers ---- */

/* A box of an image, in bytes, and the host memory beside it. */
typedef struct box {
    bh_buffer buffer;
    uint64_t offset, row, rows, planes;
    uint64_t pitch, slice;           /* in the buffer */
    uint64_t host_pitch, host_slice; /* in host memory */
} box;

/* One dimension of a box: how many texels it has; 0: it is outside. */
static uint32_t extent(uint32_t from, uint32_t count, uint32_t size) {
    if (from >= size || count > size - from) return 0;
    return count ? count : size - from;
}

static bh_status place_box(const bh__image *image, const bh_image_box *b, uint64_t pitch,
                           uint64_t slice, box *out) {
    bh__level_place at = bh__level_place_of(&image->shape, b->level);
    uint32_t texel = bh__texel_bytes(&image->shape), planes = at.depth * image->shape.planes;
    uint32_t width = extent(b->x, b->width, at.width), height = extent(b->y, b->height, at.height);
    uint32_t depth = extent(b->z, b->depth, planes);
    if (!width || !height || !depth)
        return bh__refuse(BH_E_INVALID, "stay within the level (bh_image_get_level)",
                          "a box of %u x %u x %u texels at (%u, %u, %u) of level %u, which has %u "
                          "x %u x %u",
                          b->width, b->height, b->depth, b->x, b->y, b->z, b->level, at.width,
                          at.height, planes);
    *out = (box){.buffer = image->buffer,
                 .offset = at.offset + b->z * at.slice + b->y * at.pitch + (uint64_t)b->x * texel,
                 .row = (uint64_t)width * texel,
                 .rows = height,
                 .planes = depth,
                 .pitch = at.pitch,
                 .slice = at.slice};
    out->host_pitch = pitch ? pitch : out->row;
    out->host_slice = slice ? slice : out->host_pitch * height;
    uint64_t end;
    if (out->host_pitch < out->row || out->host_pitch > UINT64_MAX / 2 / height ||
        out->host_slice < (height - 1) * out->host_pitch + out->row ||
        __builtin_mul_overflow(out->host_slice, depth, &end))
        return bh__refuse(BH_E_INVALID, "use 0, or distances that rows and planes fit in",
                          "a pitch of %llu and a slice of %llu bytes for %u rows of %llu bytes",
                          (ull)pitch, (ull)slice, height, (ull)out->row);
    return BH_OK;
}

/* Merges rows without gaps, and then planes of one row, into longer rows. */
static void merge(box *b) {
    if (b->row == b->pitch && b->row == b->host_pitch) {
        b->row *= b->rows;
        b->rows = 1;
    }
    if (b->rows == 1) {
        b->rows = b->planes;
        b->planes = 1;
        b->pitch = b->slice;
        b->host_pitch = b->host_slice;
    }
    if (b->row == b->pitch && b->row == b->host_pitch) {
        b->row *= b->rows;
        b->rows = 1;
    }
}

static bh_status take_box(bh_image handle, const bh_image_box *given, const void *host,
                          uint64_t pitch, uint64_t slice, box *out) {
    bh_image_box b = {.size = sizeof b};
    bh__image image;
    if (bh__options_take(given, &b, "bh_image_box") != BH_OK || look(handle, &image) != BH_OK ||
        check_level(&image, b.level) != BH_OK)
        return bh__last()->status;
    if (!host) return bh__refuse(BH_E_INVALID, "pass host memory", "the host memory is NULL");
    bh_status status = place_box(&image, &b, pitch, slice, out);
    if (status == BH_OK) merge(out);
    return status;
}

static bh_status move(const box *b, bh_transfer *transfer, const uint8_t *from, uint8_t *to) {
    bh_submit_options options = {.size = sizeof options, .flags = BH_SUBMIT_WAIT};
    transfer->height = b->rows;
    for (uint64_t plane = 0; plane < b->planes; plane++) {
        uint64_t offset = b->offset + plane * b->slice;
        if (from) {
            transfer->target_offset = offset;
            transfer->from = from + plane * b->host_slice;
        } else {
            transfer->source_offset = offset;
            transfer->to = to + plane * b->host_slice;
        }
        bh_status status = bh_submit(&transfer->request, &options, NULL);
        if (status != BH_OK) return status;
    }
    return BH_OK;
}

bh_status bh_image_write(bh_image image, const bh_image_box *given, const void *source,
                         uint64_t pitch, uint64_t slice) {
    box b;
    bh_status status = take_box(image, given, source, pitch, slice, &b);
    if (status != BH_OK) return status;
    if (b.rows == 1 && b.planes == 1) return bh_buffer_write(b.buffer, b.offset, source, b.row);
    bh_transfer write = bh_transfer_write(b.buffer, 0, source, b.row);
    write.target_pitch = b.pitch;
    write.source_pitch = b.host_pitch;
    return move(&b, &write, source, NULL);
}

bh_status bh_image_read(bh_image image, const bh_image_box *given, void *target, uint64_t pitch,
                        uint64_t slice) {
    box b;
    bh_status status = take_box(image, given, target, pitch, slice, &b);
    if (status != BH_OK) return status;
    if (b.rows == 1 && b.planes == 1) return bh_buffer_read(b.buffer, b.offset, target, b.row);
    bh_transfer read = bh_transfer_read(b.buffer, 0, target, b.row);
    read.source_pitch = b.pitch;
    read.target_pitch = b.host_pitch;
    return move(&b, &read, NULL, target);
}
