/* SPDX-License-Identifier: Apache-2.0 */
/* Images, textures, surfaces and tensor maps as requests describe them: docs/textures.md. */
#ifndef BH_WIRE_TEXTURE_H
#define BH_WIRE_TEXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/tensor.h"
#include "bulkhead.h"

/* An internal launch flag: behind the kernel's parameters, at the next multiple of 8, are
 * bh__launch_objects, and behind those their number, as a uint64_t. */
#define BH__LAUNCH_OBJECTS (1u << 30)

enum { BH__IMAGE_LEVELS = 18, BH__LEVEL_ALIGN = 256 };

enum { /* what an object is */
       BH__OBJECT_TEXTURE = 1,
       BH__OBJECT_SURFACE = 2,
       BH__OBJECT_LINEAR = 3, /* a texture over a buffer */
       BH__OBJECT_ROWS = 4,   /* a texture over rows in a buffer */
       BH__OBJECT_TENSOR = 5
};

enum { BH__CHANNEL_UNSIGNED, BH__CHANNEL_SIGNED, BH__CHANNEL_FLOAT };

typedef struct bh__image_shape {
    uint32_t width, height, depth; /* 1 for dimensions that it does not have */
    uint32_t planes;               /* layers, or faces of all layers; 1: none */
    uint32_t levels;
    uint8_t dimensions;             /* 1 to 3 */
    uint8_t channels;               /* 1, 2, 4 */
    uint8_t bits;                   /* of a channel: 8, 16, 32 */
    uint8_t kind;                   /* BH__CHANNEL_... */
    uint8_t layered, cube, surface; /* 1: yes */
    uint8_t reserved;
} bh__image_shape;

typedef struct bh__launch_object {
    uint32_t offset;         /* of its parameter */
    uint32_t kind;           /* BH__OBJECT_... */
    uint64_t number;         /* equal numbers are equal objects */
    uint64_t image;          /* the same for its image; 0: it is over a buffer */
    uint64_t address, bytes; /* of the memory */
    union {
        struct {
            uint64_t pitch; /* BH__OBJECT_ROWS */
            bh__image_shape shape;
            uint32_t level;    /* BH__OBJECT_SURFACE */
            uint32_t flags;    /* BH_SAMPLE_... */
            uint32_t modes[3]; /* BH_ADDRESS_... */
            uint32_t anisotropy;
            float border[4], level_bias, level_min, level_max;
            uint32_t reserved;
        };
        bh__tensor tensor; /* BH__OBJECT_TENSOR; its address is `address` */
    };
} bh__launch_object;

/* Of its parameter. */
static inline uint32_t bh__launch_object_bytes(const bh__launch_object *o) {
    return o->kind == BH__OBJECT_TENSOR ? BH__TENSOR_MAP_BYTES : (uint32_t)sizeof(uint64_t);
}

static inline uint32_t bh__texel_bytes(const bh__image_shape *shape) {
    return shape->channels * shape->bits / 8u;
}

typedef struct bh__level_place {
    uint32_t width, height, depth;
    uint64_t offset, pitch, slice;
    uint64_t end; /* of its last plane */
} bh__level_place;

static inline uint32_t bh__halved(uint32_t size, uint32_t times) {
    return size >> times ? size >> times : 1;
}

/* Where a level is in the image's memory. The shape has been checked, so nothing overflows. */
static inline bh__level_place bh__level_place_of(const bh__image_shape *shape, uint32_t level) {
    uint32_t bytes = bh__texel_bytes(shape);
    bh__level_place at = {0};
    for (uint32_t i = 0; i <= level; i++) {
        at.offset = (at.end + BH__LEVEL_ALIGN - 1) / BH__LEVEL_ALIGN * BH__LEVEL_ALIGN;
        at.width = bh__halved(shape->width, i);
        at.height = bh__halved(shape->height, i);
        at.depth = bh__halved(shape->depth, i);
        at.pitch = (uint64_t)at.width * bytes;
        at.slice = at.pitch * at.height;
        at.end = at.offset + at.slice * at.depth * shape->planes;
    }
    return at;
}

/* The objects of a launch whose kernel has `param_bytes` of parameters. False: damaged. */
static inline bool bh__launch_objects(const uint8_t *params, uint32_t given, uint32_t param_bytes,
                                      const bh__launch_object **out, uint32_t *out_count) {
    uint64_t count, start = ((uint64_t)param_bytes + 7) / 8 * 8;
    if (given < start + sizeof count || given % 8) return false;
    memcpy(&count, params + given - sizeof count, sizeof count);
    *out = (const bh__launch_object *)(const void *)(params + start);
    *out_count = (uint32_t)count;
    return count <= BH_OBJECTS_MAX && start + count * sizeof **out + sizeof count == given;
}

/* Returns NULL if an image can have this shape; otherwise what is wrong, "a depth and layers". */
const char *bh__image_shape_wrong(const bh__image_shape *shape);
/* The same for an object of a launch: its shape, sampling, and that its texels are in its bytes. */
const char *bh__launch_object_wrong(const bh__launch_object *object);

#endif
