/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The textures and surfaces of launches. A texture over a buffer reads the buffer itself. Of an
 * image the lane has an array, which the driver lays out as the hardware samples it: the image's
 * memory is copied to it before the launch, and what surfaces may have written back after it. So
 * the memory stays the only place where the image's data is between launches, and a lost worker
 * takes nothing with it.
 *
 * Arrays and objects are kept for later launches of the lane. Destroying them may wait for running
 * kernels inside the driver, so they are retired, and freed while the device is idle.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/state.h"
#include "wire/texture.h"

typedef unsigned long long ull;

enum {
    MAX_IMAGES = 2 * BH_OBJECTS_MAX,  /* that a lane keeps */
    MAX_OBJECTS = 2 * BH_OBJECTS_MAX, /* that it keeps over one of them */
    KEPT_LAUNCHES = 256,              /* what so many textured launches did not use is retired */
    MAX_GATHERED = 32768              /* the sides of an image that tld4 can read */
};

typedef struct bh__cuda_object {
    uint64_t number;
    bh__cu_object handle;
    bool surface;
} bh__cuda_object;

typedef struct bh__cuda_image {
    struct bh__cuda_image *next;
    uint64_t number;    /* of the image, or of the texture over a buffer */
    bool buffer;        /* it is one over a buffer, and has no array */
    bool levels;        /* the array has levels */
    uint64_t last;      /* the textured launch that used it last */
    bh__cu_array array; /* Owned */
    uint32_t object_count;
    bh__cuda_object objects[MAX_OBJECTS];
} bh__cuda_image;

/* ---- what the driver calls things ---- */

static int format_of(const bh__image_shape *shape) {
    static const int formats[][3] = {[BH__CHANNEL_UNSIGNED] = {1, 2, 3},
                                     [BH__CHANNEL_SIGNED] = {8, 9, 10},
                                     [BH__CHANNEL_FLOAT] = {0, 16, 32}};
    return formats[shape->kind][shape->bits == 8 ? 0 : shape->bits == 16 ? 1 : 2];
}

static bh__cu_sampling sampling_of(const bh__launch_object *o) {
    static const int modes[] = {[BH_ADDRESS_CLAMP] = 1,
                                [BH_ADDRESS_WRAP] = 0,
                                [BH_ADDRESS_MIRROR] = 2,
                                [BH_ADDRESS_BORDER] = 3};
    bh__cu_sampling to = {.filter = (o->flags & BH_SAMPLE_LINEAR) != 0,
                          .anisotropy = o->anisotropy,
                          .level_filter = (o->flags & BH_SAMPLE_LINEAR_LEVELS) != 0,
                          .level_bias = o->level_bias,
                          .level_min = o->level_min,
                          .level_max = o->level_max};
    for (int i = 0; i < 3; i++) to.modes[i] = modes[o->modes[i]];
    memcpy(to.border, o->border, sizeof to.border);
    if (o->shape.kind != BH__CHANNEL_FLOAT && !(o->flags & BH_SAMPLE_AS_FLOAT))
        to.flags |= BH__CU_SAMPLE_INTEGER;
    if (o->flags & BH_SAMPLE_NORMALIZED) to.flags |= BH__CU_SAMPLE_NORMALIZED;
    if (o->flags & BH_SAMPLE_SRGB) to.flags |= BH__CU_SAMPLE_SRGB;
    return to;
}

static bh__cu_array_shape array_shape_of(const bh__image_shape *shape) {
    bool planes = shape->layered || shape->cube;
    bool gathered = shape->dimensions == 2 && !planes && shape->levels == 1 &&
                    shape->width <= MAX_GATHERED && shape->height <= MAX_GATHERED;
    return (bh__cu_array_shape){.width = shape->width,
                                .height = shape->dimensions > 1 ? shape->height : 0,
                                .depth = shape->dimensions > 2 ? shape->depth
                                         : planes              ? shape->planes
                                                               : 0,
                                .format = format_of(shape),
                                .channels = shape->channels,
                                .flags = (shape->layered ? BH__CU_ARRAY_LAYERED : 0u) |
                                         (shape->surface ? BH__CU_ARRAY_SURFACE : 0u) |
                                         (shape->cube ? BH__CU_ARRAY_CUBE : 0u) |
                                         (gathered ? BH__CU_ARRAY_GATHER : 0u)};
}

/* ---- retiring ---- */

static void retire(bh__device_instance *device, bh__cuda_image *image) {
    image->next = atomic_load(&device->retired_images);
    while (!atomic_compare_exchange_weak(&device->retired_images, &image->next, image)) continue;
}

static void destroy(const bh__driver *cu, bh__cuda_image *image) {
    for (uint32_t i = 0; i < image->object_count; i++) {
        const bh__cuda_object *object = &image->objects[i];
        (object->surface ? cu->surface_destroy : cu->texture_destroy)(object->handle);
    }
    if (image->array) (image->levels ? cu->levels_destroy : cu->array_destroy)(image->array);
    free(image);
}

void bh__cuda_textures_free(bh__device_instance *device) {
    bh__cuda_image *list = atomic_exchange(&device->retired_images, NULL);
    while (list) {
        bh__cuda_image *image = list;
        list = image->next;
        destroy(&device->cu, image);
    }
}

void bh__cuda_textures_retire(bh__device_lane *lane) {
    while (lane->images) {
        bh__cuda_image *image = lane->images;
        lane->images = image->next;
        retire(lane->device, image);
    }
}

/* Retires what the launch does not use: all that is old, and all beyond the most that is kept. The
 * list begins with what was used last. */
static void trim(bh__device_lane *lane) {
    uint32_t kept = 0;
    for (bh__cuda_image **at = &lane->images; *at;) {
        bh__cuda_image *image = *at;
        bool old = image->last + KEPT_LAUNCHES < lane->textured;
        if (image->last == lane->textured || (!old && kept < MAX_IMAGES)) {
            kept++;
            at = &image->next;
        } else {
            *at = image->next;
            retire(lane->device, image);
        }
    }
}

/* ---- making ---- */

static bh_status fail(const bh__device_lane *lane, const bh__launch_object *o, int result,
                      const char *what, bh_error *error) {
    bool full = result == BH__CU_OUT_OF_MEMORY;
    return bh__cuda_fail(lane->device, error, result, full ? BH_E_NO_MEMORY : BH_E_UNSUPPORTED,
                         full ? "release images and buffers: a GPU keeps each image twice"
                              : "use a smaller image, or one that this GPU supports",
                         "%s cannot be made: %u x %u x %u texels of %u bytes, %u planes, %u levels",
                         what, o->shape.width, o->shape.height, o->shape.depth,
                         bh__texel_bytes(&o->shape), o->shape.planes, o->shape.levels);
}

static int level_array(const bh__driver *cu, const bh__cuda_image *image, uint32_t level,
                       bh__cu_array *out) {
    *out = image->array;
    return image->levels ? cu->levels_get(out, image->array, level) : BH__CU_OK;
}

/* The lane's image of an object, at the front of the list. NULL: it has none. */
static bh__cuda_image *find(bh__device_lane *lane, uint64_t number, bool buffer) {
    for (bh__cuda_image **at = &lane->images; *at; at = &(*at)->next) {
        bh__cuda_image *image = *at;
        if (image->number != number || image->buffer != buffer) continue;
        *at = image->next;
        image->next = lane->images;
        lane->images = image;
        return image;
    }
    return NULL;
}

static bh_status make_image(bh__device_lane *lane, const bh__launch_object *o, bh_error *error,
                            bh__cuda_image **out) {
    const bh__driver *cu = &lane->device->cu;
    bh__cuda_image *image = calloc(1, sizeof *image);
    if (!image)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory for a texture");
    image->buffer = !o->image;
    image->number = image->buffer ? o->number : o->image;
    image->levels = o->shape.levels > 1;
    if (!image->buffer) {
        bh__cu_array_shape shape = array_shape_of(&o->shape);
        int result = image->levels ? cu->levels_create(&image->array, &shape, o->shape.levels)
                                   : cu->array_create(&image->array, &shape);
        if (result != BH__CU_OK) {
            free(image);
            return fail(lane, o, result, "an array", error);
        }
    }
    image->next = lane->images;
    lane->images = *out = image;
    return BH_OK;
}

static bh__cu_resource resource_of(const bh__cuda_image *image, const bh__launch_object *o) {
    bh__cu_resource over = {.kind = image->levels ? BH__CU_RESOURCE_LEVELS : BH__CU_RESOURCE_ARRAY};
    if (o->kind == BH__OBJECT_LINEAR) {
        over.kind = BH__CU_RESOURCE_LINEAR;
        over.of.linear.address = o->address;
        over.of.linear.format = format_of(&o->shape);
        over.of.linear.channels = o->shape.channels;
        over.of.linear.bytes = (size_t)o->shape.width * bh__texel_bytes(&o->shape);
    } else if (o->kind == BH__OBJECT_ROWS) {
        over.kind = BH__CU_RESOURCE_ROWS;
        over.of.rows.address = o->address;
        over.of.rows.format = format_of(&o->shape);
        over.of.rows.channels = o->shape.channels;
        over.of.rows.width = o->shape.width;
        over.of.rows.height = o->shape.height;
        over.of.rows.pitch = o->pitch;
    } else {
        over.of.array = image->array;
    }
    return over;
}

static int make_object(const bh__driver *cu, const bh__cuda_image *image,
                       const bh__launch_object *o, bh__cu_object *out) {
    bh__cu_resource over = resource_of(image, o);
    if (o->kind == BH__OBJECT_SURFACE) {
        over.kind = BH__CU_RESOURCE_ARRAY;
        int result = level_array(cu, image, o->level, &over.of.array);
        return result == BH__CU_OK ? cu->surface_create(out, &over) : result;
    }
    bh__cu_sampling sampling = sampling_of(o);
    return cu->texture_create(out, &over, &sampling, NULL);
}

static bh_status handle_of(const bh__device_lane *lane, bh__cuda_image *image,
                           const bh__launch_object *o, bh_error *error, bh__cu_object *out) {
    bool surface = o->kind == BH__OBJECT_SURFACE;
    for (uint32_t i = 0; i < image->object_count; i++) {
        const bh__cuda_object *object = &image->objects[i];
        *out = object->handle;
        if (object->number == o->number && object->surface == surface) return BH_OK;
    }
    int result = make_object(&lane->device->cu, image, o, out);
    if (result != BH__CU_OK)
        return fail(lane, o, result, surface ? "a surface" : "a texture", error);
    image->objects[image->object_count++] = (bh__cuda_object){o->number, *out, surface};
    return BH_OK;
}

/* ---- copying ---- */

static int copy_level(const bh__device_lane *lane, const bh__cuda_image *image,
                      const bh__launch_object *o, uint32_t level, bool back) {
    const bh__driver *cu = &lane->device->cu;
    bh__level_place at = bh__level_place_of(&o->shape, level);
    bh__cu_array array;
    int result = level_array(cu, image, level, &array);
    if (result != BH__CU_OK) return result;
    bh__cu_place memory = {.type = BH__CU_PLACE_DEVICE,
                           .device = o->address + at.offset,
                           .pitch = at.pitch,
                           .height = at.height};
    bh__cu_place there = {.type = BH__CU_PLACE_ARRAY, .array = array};
    bh__cu_copy_node copy = {.source = back ? there : memory,
                             .target = back ? memory : there,
                             .width = at.pitch,
                             .height = at.height,
                             .depth = (size_t)at.depth * o->shape.planes};
    return cu->copy_blocks(&copy, lane->stream);
}

static bh_status fail_copy(const bh__device_lane *lane, const bh__work *work, int result,
                           bh_error *error) {
    return bh__cuda_fail(lane->device, error, result, BH_E_INTERNAL, BH__CUDA_DEFECT,
                         "launch %llu of lane %u: an image cannot be copied", (ull)work->sequence,
                         lane->index);
}

/* Once for each image of a launch, however many textures over it the launch has. */
static bh_status copy_in(const bh__device_lane *lane, const bh__work *work, bh__cuda_image *image,
                         const bh__launch_object *o, bh_error *error) {
    bool copied = image->buffer || image->last == lane->textured;
    image->last = lane->textured;
    for (uint32_t level = 0; !copied && level < o->shape.levels; level++) {
        int result = copy_level(lane, image, o, level, false);
        if (result != BH__CU_OK) return fail_copy(lane, work, result, error);
    }
    return BH_OK;
}

/* ---- launches ---- */

static bh_status objects_of(const bh__work *work, const bh__cuda_kernel *kernel, bh_error *error,
                            const bh__launch_object **out, uint32_t *out_count) {
    uint32_t bytes = work->u.launch.param_bytes;
    if (!bh__launch_objects(work->params, bytes, kernel->param_bytes, out, out_count))
        return bh__fail(error, BH_E_INTERNAL, BH__CUDA_DEFECT,
                        "launch %llu of lane %u: %u bytes of parameters and textures are damaged",
                        (ull)work->sequence, work->lane, bytes);
    for (uint32_t i = 0; i < *out_count; i++) {
        const bh__launch_object *o = &(*out)[i];
        const char *wrong = bh__launch_object_wrong(o);
        bool array = o->kind == BH__OBJECT_TEXTURE || o->kind == BH__OBJECT_SURFACE;
        if (!wrong && array != (o->image != 0)) wrong = "no image, or one over a buffer";
        if (!wrong && (uint64_t)o->offset + bh__launch_object_bytes(o) > kernel->param_bytes)
            wrong = "no such parameter";
        if (wrong)
            return bh__fail(error, BH_E_INTERNAL, BH__CUDA_DEFECT,
                            "launch %llu of lane %u: texture %u has %s", (ull)work->sequence,
                            work->lane, i, wrong);
    }
    return BH_OK;
}

static bh_status take(bh__device_lane *lane, const bh__work *work, const bh__launch_object *o,
                      bh_error *error, bh__cu_object *out) {
    bh__cuda_image *image = find(lane, o->image ? o->image : o->number, !o->image);
    bh_status status = BH_OK;
    /* There is room for all objects of a launch. */
    if (image && image->last != lane->textured &&
        image->object_count > MAX_OBJECTS - BH_OBJECTS_MAX) {
        lane->images = image->next; /* it is at the front */
        retire(lane->device, image);
        image = NULL;
    }
    if (!image) status = make_image(lane, o, error, &image);
    if (status == BH_OK) status = handle_of(lane, image, o, error, out);
    if (status == BH_OK) status = copy_in(lane, work, image, o, error);
    return status;
}

bh_status bh__cuda_textures_begin(bh__device_lane *lane, const bh__work *work,
                                  const bh__cuda_kernel *kernel, uint8_t *params, bh_error *error) {
    const bh__launch_object *objects;
    uint32_t count;
    bh_status status = objects_of(work, kernel, error, &objects, &count);
    if (status != BH_OK) return status;
    memcpy(params, work->params, kernel->param_bytes);
    lane->textured++;
    for (uint32_t i = 0; status == BH_OK && i < count; i++) {
        bh__cu_object handle = 0;
        if (objects[i].kind == BH__OBJECT_TENSOR) {
            status = bh__cuda_tensor_map(lane->device, &objects[i].tensor,
                                         params + objects[i].offset, error);
            continue;
        }
        status = take(lane, work, &objects[i], error, &handle);
        memcpy(params + objects[i].offset, &handle, sizeof handle);
    }
    trim(lane);
    return status;
}

bh_status bh__cuda_textures_end(bh__device_lane *lane, const bh__work *work,
                                const bh__cuda_kernel *kernel, bh_error *error) {
    const bh__launch_object *objects;
    uint32_t count;
    bh_status status = objects_of(work, kernel, error, &objects, &count);
    for (uint32_t i = 0; status == BH_OK && i < count; i++) {
        const bh__launch_object *o = &objects[i];
        if (o->kind != BH__OBJECT_SURFACE) continue;
        const bh__cuda_image *image = find(lane, o->image, false);
        int result = copy_level(lane, image, o, o->level, true);
        if (result != BH__CU_OK) status = fail_copy(lane, work, result, error);
    }
    return status;
}
