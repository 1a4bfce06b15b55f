/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling: from coordinates to the value of a texture. */
#ifndef BH_PTX_TEXTURE_SAMPLE_H
#define BH_PTX_TEXTURE_SAMPLE_H

#include "ptx/run/exec.h"
#include "ptx/texture/texture.h"

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
    uint64_t slice; /* set while sampling: of the layer and face */
    bh__sample_level select;
    float level;
    float dx[3], dy[3];
} bh__sample;

/* Both return false if a fault was recorded. */
bool bh__sample_get(bh__sample *sample, bh__texel *out);
/* The four texels that a linear filter would mix: component `channel` of each. */
bool bh__sample_gather(bh__sample *sample, unsigned channel, bh__texel *out);

/* sample_texel.c. True where the texture returns floating-point numbers. */
bool bh__texture_is_float(const bh__ptx_texture *texture);
void bh__texel_read(const bh__ptx_texture *texture, const uint8_t *bytes, bh__texel *out);
/* What is read outside of the image: the border's colour, or zero. */
void bh__texel_border(const bh__ptx_texture *texture, bool zero, bh__texel *out);
void bh__texel_set(bh__texel *texel, unsigned channel, float value);
/* The largest integer of the format, which is 1 as a fraction. */
static inline double bh__texel_largest(const bh__ptx_texture *t) {
    return (double)((UINT64_C(1) << (t->bits - (t->kind == BH__TEXEL_SIGNED))) - 1);
}

/* sample_filter.c. Weights have 8 bits of fraction. */
enum { FILTER_BITS = 8, FILTER_ONE = 1 << FILTER_BITS };

/* The texels that are mixed. */
typedef struct bh__filter {
    unsigned count;
    uint16_t weight[16]; /* FILTER_ONE in sum */
    bh__texel texel[16];
} bh__filter;

/* Splits `whole` among the corners of a footprint: bit d of the number of a corner is 1 for the
 * second in dimension d. */
void bh__filter_weigh(uint16_t weight[8], unsigned whole, unsigned dimensions,
                      const uint32_t fraction[3]);
void bh__filter_sum(const bh__ptx_texture *texture, const bh__filter *filter, bh__texel *out);

/* fetch.c: the descriptor that a handle names. NULL: a fault was recorded. */
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

/* surface.c */
bool bh__ptx_lower_surface(bh__ptx_lowering *low);

#endif
