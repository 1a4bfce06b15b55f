/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Textures and surfaces as kernels see them. A kernel holds a handle: the address of a descriptor
 * in this process. A handle that is not in the grid's table is a fault, so a descriptor is trusted,
 * except that every texel is looked up in the memory that the kernel may touch.
 */
#ifndef BH_PTX_TEXTURE_TEXTURE_H
#define BH_PTX_TEXTURE_TEXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BH__TEXTURE_LEVELS = 18 /* of the longest image: 131072 texels */
};

typedef enum bh__texel_kind {
    BH__TEXEL_UNSIGNED,
    BH__TEXEL_SIGNED,
    BH__TEXEL_FLOAT
} bh__texel_kind;

/* What happens to coordinates outside of the image. The numbers are those of the CUDA driver. */
typedef enum bh__texture_address {
    BH__ADDRESS_WRAP,
    BH__ADDRESS_CLAMP,
    BH__ADDRESS_MIRROR,
    BH__ADDRESS_BORDER
} bh__texture_address;

typedef struct bh__ptx_texture_level {
    uint64_t address;
    uint64_t pitch;                /* bytes from one row to the next */
    uint64_t slice;                /* bytes from one layer, face or plane to the next */
    uint32_t width, height, depth; /* texels; 1 for dimensions that the image does not have */
} bh__ptx_texture_level;

typedef struct bh__ptx_texture {
    bool surface;       /* for suld, sust, sured and suq; otherwise for tex, tld4 and txq */
    bool layered, cube; /* a cube's layers have six slices each */
    uint8_t dimensions; /* 1 to 3, without layers */
    uint8_t channels;   /* 1, 2, 4 */
    uint8_t bits;       /* of a channel: 8, 16, 32 */
    uint8_t kind;       /* bh__texel_kind */
    uint8_t address[3]; /* bh__texture_address */
    bool linear, mip_linear;
    bool normalized; /* coordinates from 0 to 1 */
    bool as_float;   /* integers are read as fractions, from 0 or -1 to 1 */
    bool srgb;
    uint32_t layers;
    uint32_t levels;
    float border[4];
    float level_bias, level_min, level_max;
    bh__ptx_texture_level level[BH__TEXTURE_LEVELS];
} bh__ptx_texture;

/* The descriptors that a grid may use, sorted by address. */
typedef struct bh__ptx_textures {
    const bh__ptx_texture *const *list;
    size_t count;
} bh__ptx_textures;

#endif
