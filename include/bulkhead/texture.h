/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/texture.h: images, and textures and surfaces over them. Experimental.
 *
 * A kernel gets a texture as a parameter of type cudaTextureObject_t, a surface as one of type
 * cudaSurfaceObject_t. Here it samples an image of floats between its texels:
 *
 *     bh_status sample(bh_device device, bh_kernel kernel, const float *pixels, bh_buffer out) {
 *         bh_image_shape shape = BH_INIT(shape);
 *         shape.type = BH_F32;
 *         shape.channels = 1;
 *         shape.width = 64;
 *         shape.height = 64;
 *         bh_image image;
 *         bh_texture texture;
 *         bh_sampling how = BH_INIT(how);
 *         how.flags = BH_SAMPLE_LINEAR;
 *         bh_status status = bh_image_alloc(device, &shape, &image);
 *         if (status) return status;
 *         status = bh_image_write(image, NULL, pixels, 0, 0);
 *         if (!status) status = bh_texture_create(image, &how, &texture);
 *         if (!status) {
 *             status = bh_launch(kernel, BH_GRID(4096, 256),
 *                                BH_ARGS(BH_TEXTURE(texture), BH_OUT(out)), NULL, NULL);
 *             bh_texture_release(texture);
 *         }
 *         bh_image_release(image);
 *         return status;
 *     }
 *
 * An image is memory like that of a buffer: it survives the loss of a worker, and what work in
 * flight could write is suspect afterwards. Textures and surfaces are descriptions, and survive
 * too. The value that a kernel gets is valid for that launch only. On a GPU, a launch copies its
 * images to arrays and back; one with an image that the GPU lacks ends with BH_E_UNSUPPORTED.
 */
#ifndef BULKHEAD_TEXTURE_H
#define BULKHEAD_TEXTURE_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bh_image {
    uint64_t id;
} bh_image;
typedef struct bh_texture {
    uint64_t id;
} bh_texture;
typedef struct bh_surface {
    uint64_t id;
} bh_surface;

/* ---- images ---- */

enum {
    BH_IMAGE_CUBE = 1u << 0,   /* each layer has six faces, +x -x +y -y +z -z; width == height */
    BH_IMAGE_SURFACE = 1u << 1 /* kernels may write it: bh_surface_create */
};

/* A height of 0 makes an image of one dimension, a depth of 0 one of two. Layers are images of the
 * same size that are selected by number; 0: the image has no layers. */
typedef struct bh_image_shape {
    uint32_t size;
    bh_type type; /* of a channel: BH_U8, BH_I8, BH_U16, BH_I16, BH_U32, BH_I32, BH_F16, BH_F32 */
    uint32_t channels;             /* 1, 2 or 4 */
    uint32_t width, height, depth; /* at most 131072 texels in one dimension; 131072 x 65536 in two;
                                      16384 each in three. With layers, levels or BH_IMAGE_SURFACE
                                      32768 in one, 32768 x 32768 in two */
    uint32_t layers;               /* at most 2048; of a cube 341. Not with a depth */
    uint32_t levels; /* of detail, each half as large as the one before; 0 counts as 1 */
    uint32_t flags;  /* BH_IMAGE_... */
    uint32_t reserved;
    const char *tag; /* as of a buffer; NULL: none */
} bh_image_shape;

/* The contents are undefined. BH_E_INVALID: there is no such image; BH_E_NO_MEMORY. */
BH_API bh_status bh_image_alloc(bh_device device, const bh_image_shape *shape, bh_image *out);
/* The memory is reused when the textures and surfaces over the image are released too, and the work
 * that uses them has completed. */
BH_API bh_status bh_image_release(bh_image image);

typedef struct bh_image_info {
    uint32_t size;
    bh_type type;
    uint32_t channels;
    uint32_t width, height, depth, layers, levels;
    uint32_t flags;
    uint32_t suspect; /* 1: a lost worker may have left some of it half written */
    uint64_t bytes;
    bh_device device;
    /* Its memory, for transfers as work on a lane, kernels that treat it as an array,
     * bh_buffer_accept. It belongs to the image: bh_buffer_release refuses it. */
    bh_buffer buffer;
} bh_image_info;

BH_API bh_status bh_image_get_info(bh_image image, bh_image_info *out);

/* Where the texels of a level are in that buffer. Rows have no gaps; planes follow each other. */
typedef struct bh_image_level {
    uint32_t size;
    uint32_t width, height; /* at least 1 each */
    uint32_t planes;        /* its depth; or its layers, six for each layer of a cube */
    uint64_t offset;        /* of its first byte */
    uint64_t pitch;         /* bytes from one row to the next */
    uint64_t slice;         /* bytes from one plane to the next */
} bh_image_level;

BH_API bh_status bh_image_get_level(bh_image image, uint32_t level, bh_image_level *out);

/* A part of a level, in texels. A width, height or depth of 0: to the end of the level. */
typedef struct bh_image_box {
    uint32_t size;
    uint32_t level;
    uint32_t x, y, z; /* z counts planes */
    uint32_t width, height, depth;
} bh_image_box;

/* Both return when the data is in place, like bh_buffer_write. box NULL: all of level 0. The pitch
 * and the slice are those of the host memory; 0: no gaps. */
BH_API bh_status bh_image_write(bh_image image, const bh_image_box *box, const void *source,
                                uint64_t pitch, uint64_t slice);
BH_API bh_status bh_image_read(bh_image image, const bh_image_box *box, void *target,
                               uint64_t pitch, uint64_t slice);

/* ---- textures ---- */

/* What a coordinate outside of the image reads. */
enum {
    BH_ADDRESS_CLAMP = 0,  /* the texel at the edge */
    BH_ADDRESS_WRAP = 1,   /* the image repeats; normalised coordinates only */
    BH_ADDRESS_MIRROR = 2, /* it repeats, every second time reversed; normalised coordinates only */
    BH_ADDRESS_BORDER = 3  /* the border's colour */
};

enum {
    BH_SAMPLE_NORMALIZED = 1u << 0,    /* coordinates go from 0 to 1; cubes and levels require it */
    BH_SAMPLE_LINEAR = 1u << 1,        /* mixes neighbouring texels; they must be read as floats */
    BH_SAMPLE_LINEAR_LEVELS = 1u << 2, /* mixes two levels, likewise */
    BH_SAMPLE_AS_FLOAT = 1u << 3, /* integers of 8 and 16 bits are read as floats, from 0 or -1 to
                                     1; the default is to read them as they are */
    BH_SAMPLE_SRGB = 1u << 4      /* with BH_SAMPLE_AS_FLOAT and BH_U8: sRGB is made linear */
};

typedef struct bh_sampling {
    uint32_t size;
    uint32_t flags;      /* BH_SAMPLE_... */
    uint32_t address[3]; /* BH_ADDRESS_..., of x, y and z */
    uint32_t anisotropy; /* at most 16; the CPU device samples as if it were 0 */
    float border[4];
    float level_bias;
    float level_min, level_max; /* both 0: all levels */
} bh_sampling;

/* sampling NULL: the texel that contains the point, as it is stored, with clamped coordinates. */
BH_API bh_status bh_texture_create(bh_image image, const bh_sampling *sampling, bh_texture *out);
/* A buffer as an image of one dimension, without filter: for tex1Dfetch. Reads outside of it give
 * 0. At most 2^28 texels. Its address is a multiple of 512 (bh_buffer_options.align). `sampling`
 * may have BH_SAMPLE_AS_FLOAT and BH_SAMPLE_SRGB only. */
BH_API bh_status bh_texture_create_linear(bh_buffer buffer, bh_type type, uint32_t channels,
                                          const bh_sampling *sampling, bh_texture *out);
/* Rows in a buffer as an image of two dimensions. At most 131072 x 65000 texels. The buffer's
 * address is a multiple of 512 too, the pitch one of 32. */
BH_API bh_status bh_texture_create_rows(bh_buffer buffer, bh_type type, uint32_t channels,
                                        uint32_t width, uint32_t height, uint64_t pitch,
                                        const bh_sampling *sampling, bh_texture *out);
/* Submitted work may still use it. */
BH_API bh_status bh_texture_release(bh_texture texture);

/* ---- surfaces ---- */

/* One level of an image with BH_IMAGE_SURFACE, to be read and written without sampling. Not of a
 * cube. */
BH_API bh_status bh_surface_create(bh_image image, uint32_t level, bh_surface *out);
BH_API bh_status bh_surface_release(bh_surface surface);

/* ---- arguments ---- */

/* For BH_ARGS. A launch takes up to BH_OBJECTS_MAX of them. Sequences do not take them; a prepared
 * launch keeps those that it was prepared with. */
#define BH_TEXTURE(texture) bh_arg_texture(texture)
#define BH_SURFACE(surface) bh_arg_surface(surface)
enum { BH_OBJECTS_MAX = 16 };

static inline bh_arg bh_arg_texture(bh_texture texture) {
    return bh_arg_words(BH_ARG_TEXTURE, 0, 0, texture.id, 0);
}
static inline bh_arg bh_arg_surface(bh_surface surface) {
    return bh_arg_words(BH_ARG_SURFACE, 0, 0, surface.id, 0);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
