/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling: from coordinates to the value of a texture. */
#ifndef BH_PTX_SAMPLE_H
#define BH_PTX_SAMPLE_H

#include "ptx/exec.h"
#include "ptx/texture.h"

/* The four components: as numbers, and as the 32 bits that a register gets. */
typedef struct bh__texel {
    double value[4];
    uint32_t bits[4];
} bh__texel;

typedef enum bh__sample_level { SAMPLE_BASE, SAMPLE_LEVEL, SAMPLE_GRADIENT } bh__sample_level;

/* One lane's coordinates and what selects the level. */
typedef struct bh__sample {
    bh__ptx_exec *x;
    unsigned lane;
    const bh__ptx_texture *texture;
    bool whole; /* integer coordinates, in `texel`; otherwise in `at` */
    float at[3];
    int32_t texel[3];
    int32_t offset[3];
    uint32_t layer;
    bh__sample_level select;
    float level;
    float dx[3], dy[3];
} bh__sample;

/* Both return false if a fault was recorded. */
bool bh__sample_get(bh__sample *sample, bh__texel *out);
/* The four texels that a linear filter would mix: component `channel` of each. */
bool bh__sample_gather(bh__sample *sample, unsigned channel, bh__texel *out);

/* True where the texture returns floating-point numbers. */
bool bh__texture_is_float(const bh__ptx_texture *texture);

/* exec_texture.c: the descriptor that a handle names. NULL: a fault was recorded. */
const bh__ptx_texture *bh__texture_find(bh__ptx_exec *x, unsigned lane, uint64_t handle,
                                        bool surface);
/* The memory of a texel. NULL: a fault was recorded. `flags`: ACCESS_... of check.h. */
uint8_t *bh__texel_at(bh__ptx_exec *x, unsigned lane, uint64_t address, unsigned bytes,
                      uint8_t flags);

/* How the shape of a texture is written in an instruction: .1d, .a2d, .cube. */
typedef struct bh__geometry {
    const char *name;
    uint8_t dimensions; /* of the image */
    bool layered, cube;
    uint8_t coordinates; /* without the layer */
    uint8_t parts;       /* elements of the vector of coordinates */
} bh__geometry;

/* Which the instruction names. NULL: none. */
const bh__geometry *bh__geometry_of(const bh__ptx_insn *insn);
/* Faults if the object's shape is another one. */
bool bh__geometry_check(bh__ptx_exec *x, unsigned lane, const bh__geometry *geometry,
                        const bh__ptx_texture *texture);

/* Lowering. Both return false after a failure. */
int32_t bh__texture_row_in(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_type type);
int32_t bh__texture_row_out(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_type type);
bool bh__texture_fail(bh__ptx_lowering *low, const char *fix, const char *what);
/* [handle, {coordinates}]: the rows of the coordinates; the first of a layered one is the layer. */
bool bh__texture_operand(bh__ptx_lowering *low, const bh__ptx_operand *o,
                         const bh__geometry *geometry, bh__ptx_type type, int32_t *handle,
                         int32_t rows[4]);

/* exec_surface.c */
bool bh__ptx_lower_surface(bh__ptx_lowering *low);

#endif
