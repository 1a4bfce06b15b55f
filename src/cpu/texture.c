/* SPDX-License-Identifier: Apache-2.0 */
/* The textures and surfaces of a launch: a descriptor for each, whose address the kernel gets. Its
 * tensor maps: the kernel gets the descriptor itself. */
#include <string.h>

#include "cpu/cpu.h"
#include "ptx/tensor/map.h"
#include "wire/texture.h"

typedef unsigned long long ull;

static const uint8_t modes[] = {[BH_ADDRESS_CLAMP] = BH__ADDRESS_CLAMP,
                                [BH_ADDRESS_WRAP] = BH__ADDRESS_WRAP,
                                [BH_ADDRESS_MIRROR] = BH__ADDRESS_MIRROR,
                                [BH_ADDRESS_BORDER] = BH__ADDRESS_BORDER};

static const uint8_t kinds[] = {[BH__CHANNEL_UNSIGNED] = BH__TEXEL_UNSIGNED,
                                [BH__CHANNEL_SIGNED] = BH__TEXEL_SIGNED,
                                [BH__CHANNEL_FLOAT] = BH__TEXEL_FLOAT};

static bh__ptx_texture_level level_of(const bh__launch_object *o, uint32_t number) {
    bh__level_place at = bh__level_place_of(&o->shape, number);
    bool rows = o->kind == BH__OBJECT_ROWS;
    return (bh__ptx_texture_level){.address = o->address + at.offset,
                                   .pitch = rows ? o->pitch : at.pitch,
                                   .slice = at.slice,
                                   .width = at.width,
                                   .height = at.height,
                                   .depth = at.depth};
}

static void set_sampling(const bh__launch_object *o, bh__ptx_texture *out) {
    bool linear_memory = o->kind == BH__OBJECT_LINEAR; /* what is outside reads as 0 */
    for (int i = 0; i < 3; i++)
        out->address[i] = linear_memory ? BH__ADDRESS_BORDER : modes[o->modes[i]];
    if (!linear_memory) memcpy(out->border, o->border, sizeof out->border);
    out->linear = o->flags & BH_SAMPLE_LINEAR;
    out->mip_linear = o->flags & BH_SAMPLE_LINEAR_LEVELS;
    out->normalized = o->flags & BH_SAMPLE_NORMALIZED;
    out->as_float = o->flags & BH_SAMPLE_AS_FLOAT && o->shape.kind != BH__CHANNEL_FLOAT;
    out->srgb = o->flags & BH_SAMPLE_SRGB;
    out->level_bias = o->level_bias;
    out->level_min = o->level_min;
    out->level_max = o->level_max;
}

/* The object has been checked. */
static void describe(const bh__launch_object *o, bh__ptx_texture *out) {
    const bh__image_shape *shape = &o->shape;
    bool surface = o->kind == BH__OBJECT_SURFACE;
    *out = (bh__ptx_texture){.surface = surface,
                             .layered = shape->layered,
                             .cube = shape->cube,
                             .dimensions = shape->dimensions,
                             .channels = shape->channels,
                             .bits = shape->bits,
                             .kind = kinds[shape->kind],
                             .layers = shape->planes / (shape->cube ? 6 : 1),
                             .levels = surface ? 1 : shape->levels};
    if (surface) {
        out->level[0] = level_of(o, o->level);
        return;
    }
    for (uint32_t i = 0; i < shape->levels; i++) out->level[i] = level_of(o, i);
    set_sampling(o, out);
}

bh_status bh__cpu_textures_make(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    const bh__launch_body *body = &work->u.launch;
    bh__cpu_textures *made = &lane->textures;
    const bh__ptx_kernel *kernel = lane->job.grid.kernel;
    const bh__launch_object *objects;
    uint32_t count, textures = 0;
    if (!bh__launch_objects(work->params, body->param_bytes, kernel->param_bytes, &objects, &count))
        return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT,
                        "launch %llu of lane %u: %u bytes of parameters and textures are damaged",
                        (ull)work->sequence, work->lane, body->param_bytes);
    /* The request is the lane's own copy. */
    uint8_t *params = (uint8_t *)(uintptr_t)work->params;
    for (uint32_t i = 0; i < count; i++) {
        const bh__launch_object *o = &objects[i];
        const char *wrong = bh__launch_object_wrong(o);
        if (!wrong && (uint64_t)o->offset + bh__launch_object_bytes(o) > kernel->param_bytes)
            wrong = "no such parameter";
        if (wrong)
            return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT,
                            "launch %llu of lane %u: texture %u has %s", (ull)work->sequence,
                            work->lane, i, wrong);
        if (o->kind == BH__OBJECT_TENSOR) {
            bh__tensor_map_write(&o->tensor, params + o->offset);
            continue;
        }
        bh__ptx_texture *texture = &made->texture[textures];
        describe(o, texture);
        made->list[textures++] = texture;
        uint64_t handle = (uint64_t)(uintptr_t)texture;
        memcpy(params + o->offset, &handle, sizeof handle);
    }
    made->all = (bh__ptx_textures){made->list, textures};
    lane->job.grid.textures = &made->all;
    return BH_OK;
}
