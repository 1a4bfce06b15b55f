/* SPDX-License-Identifier: Apache-2.0 */
/* Textures and surfaces of the CUDA device, on a driver of the tests' own whose arrays are plain
 * memory: what is copied, what kernels get, what is kept and what is freed. */
#include <stdlib.h>
#include <string.h>

#include "cuda/state.h"
#include "test.h"
#include "wire/texture.h"

enum { MAX_BYTES = 4096, SIZE = 8, LEVELS = 4 };

/* ---- the driver ---- */

typedef struct array {
    bh__cu_array_shape shape;
    uint32_t levels; /* 0: an array without */
    uint8_t *data[LEVELS];
    struct array *level[LEVELS]; /* as arrays of their own */
} array;

static struct {
    int arrays, objects; /* alive */
    int made_arrays, made_objects;
    int copies_in, copies_out, result;
    bh__cu_resource resource; /* of the last object */
    bh__cu_sampling sampling;
    uint64_t handles[2]; /* that the kernel got */
    uint32_t param_bytes;
} cuda;

static array *make(const bh__cu_array_shape *shape, uint32_t levels) {
    array *made = calloc(1, sizeof *made);
    REQUIRE(made != NULL);
    made->shape = *shape;
    made->levels = levels;
    for (uint32_t i = 0; i < (levels ? levels : 1); i++) made->data[i] = calloc(1, MAX_BYTES);
    cuda.arrays++;
    cuda.made_arrays++;
    return made;
}

static int destroy(bh__cu_array which) {
    array *it = (array *)(void *)which;
    for (int i = 0; i < LEVELS; i++) free(it->data[i]), free(it->level[i]);
    free(it);
    cuda.arrays--;
    return BH__CU_OK;
}

static int array_create(bh__cu_array *out, const bh__cu_array_shape *shape) {
    if (cuda.result != BH__CU_OK) return cuda.result;
    *out = (bh__cu_array)(void *)make(shape, 0);
    return BH__CU_OK;
}

static int levels_create(bh__cu_array *out, const bh__cu_array_shape *shape, unsigned levels) {
    *out = (bh__cu_array)(void *)make(shape, levels);
    return BH__CU_OK;
}

static int levels_get(bh__cu_array *out, bh__cu_array which, unsigned level) {
    array *it = (array *)(void *)which;
    REQUIRE(level < it->levels);
    if (!it->level[level]) {
        it->level[level] = calloc(1, sizeof(array));
        REQUIRE(it->level[level] != NULL);
        it->level[level]->data[0] = it->data[level];
    }
    *out = (bh__cu_array)(void *)it->level[level];
    return BH__CU_OK;
}

static int copy_blocks(const bh__cu_copy_node *copy, bh__cu_stream stream) {
    (void)stream;
    bool in = copy->target.type == BH__CU_PLACE_ARRAY;
    const bh__cu_place *memory = in ? &copy->source : &copy->target;
    const array *it = (const array *)(in ? copy->target.array : copy->source.array);
    uint8_t *bytes = (uint8_t *)(uintptr_t)memory->device;
    size_t count = copy->width * copy->height * copy->depth;
    CHECK_EQ(memory->type, BH__CU_PLACE_DEVICE);
    CHECK_EQ(memory->pitch, copy->width);
    CHECK_EQ(memory->height, copy->height);
    REQUIRE(count <= MAX_BYTES);
    memcpy(in ? it->data[0] : bytes, in ? bytes : it->data[0], count);
    *(in ? &cuda.copies_in : &cuda.copies_out) += 1;
    return BH__CU_OK;
}

static int texture_create(bh__cu_object *out, const bh__cu_resource *over,
                          const bh__cu_sampling *sampling, const void *view) {
    CHECK(view == NULL);
    cuda.resource = *over;
    cuda.sampling = *sampling;
    cuda.objects++;
    *out = (bh__cu_object)(1000 + ++cuda.made_objects);
    return BH__CU_OK;
}

/* The handle of a surface is its array, so that a kernel can write it. */
static int surface_create(bh__cu_object *out, const bh__cu_resource *over) {
    CHECK_EQ(over->kind, BH__CU_RESOURCE_ARRAY);
    cuda.objects++;
    cuda.made_objects++;
    *out = (bh__cu_object)(uintptr_t)over->of.array;
    return BH__CU_OK;
}

static int object_destroy(bh__cu_object which) {
    CHECK(which != 0);
    cuda.objects--;
    return BH__CU_OK;
}

/* The kernel writes the first byte of a surface, which is its second parameter, if there is one. */
static int launch(bh__cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                  unsigned by, unsigned bz, unsigned shared, bh__cu_stream stream, void **params,
                  void **extra) {
    (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
    (void)stream, (void)params;
    memcpy(cuda.handles, extra[1], sizeof cuda.handles);
    cuda.param_bytes = (uint32_t) * (size_t *)extra[3];
    if (cuda.handles[1] > 100000) ((array *)(uintptr_t)cuda.handles[1])->data[0][0] = 77;
    return BH__CU_OK;
}

static int error_text(int result, const char **out) {
    *out = result == BH__CU_OUT_OF_MEMORY ? "no memory" : "not valid";
    return BH__CU_OK;
}

/* ---- a lane ---- */

static bh__device_instance device;
static bh__device_lane lane;
static bh__cuda_kernel kernels[1];
static bh__cuda_module modules[1];
static _Alignas(512) uint8_t memory[8][MAX_BYTES];

static void begin(void) {
    memset(&cuda, 0, sizeof cuda);
    memset(&device, 0, sizeof device);
    memset(&lane, 0, sizeof lane);
    device.cu.array_create = array_create;
    device.cu.array_destroy = device.cu.levels_destroy = destroy;
    device.cu.levels_create = levels_create;
    device.cu.levels_get = levels_get;
    device.cu.copy_blocks = copy_blocks;
    device.cu.texture_create = texture_create;
    device.cu.surface_create = surface_create;
    device.cu.texture_destroy = device.cu.surface_destroy = object_destroy;
    device.cu.launch = launch;
    device.cu.error_name = device.cu.error_string = error_text;
    kernels[0] = (bh__cuda_kernel){.name = (char *)(uintptr_t) "k", .param_bytes = 16};
    modules[0] = (bh__cuda_module){.id = 1, .kernels = kernels, .kernel_count = 1};
    device.modules = modules;
    device.module_count = 1;
    lane.device = &device;
    for (unsigned i = 0; i < sizeof memory; i++)
        memory[i / MAX_BYTES][i % MAX_BYTES] = (uint8_t)(i * 7 + i / 251);
}

static void end(void) {
    bh__cuda_textures_retire(&lane);
    bh__cuda_textures_free(&device);
    CHECK_EQ(cuda.arrays, 0);
    CHECK_EQ(cuda.objects, 0);
}

/* A plane of bytes; its memory is that of its number. */
static bh__launch_object object(uint32_t kind, uint64_t number, uint64_t image, uint32_t levels) {
    bh__launch_object o = {.kind = kind,
                           .number = number,
                           .image = image,
                           .address = (uint64_t)(uintptr_t)memory[(image ? image : number) % 8],
                           .bytes = MAX_BYTES,
                           .pitch = 32,
                           .flags = levels > 1 ? BH_SAMPLE_NORMALIZED : 0,
                           .level_max = 18};
    o.shape = (bh__image_shape){.width = SIZE,
                                .height = kind == BH__OBJECT_LINEAR ? 1 : SIZE,
                                .depth = 1,
                                .planes = 1,
                                .levels = levels,
                                .dimensions = kind == BH__OBJECT_LINEAR ? 1 : 2,
                                .channels = 1,
                                .bits = 8,
                                .surface = 1};
    return o;
}

static bh_status run(const bh__launch_object *list, uint32_t count, bh_error *error) {
    static _Alignas(16) uint8_t params[sizeof(bh__launch_object) * BH_OBJECTS_MAX + 64];
    uint32_t at = 16;
    uint64_t number = count;
    memset(params, 0, 16);
    for (uint32_t i = 0; i < count; i++, at += (uint32_t)sizeof *list) {
        bh__launch_object o = list[i];
        o.offset = i < 2 ? i * 8 : 0;
        memcpy(params + at, &o, sizeof o);
    }
    memcpy(params + at, &number, sizeof number);
    bh__work work = {.op = BH__OP_LAUNCH, .sequence = 5, .params = params};
    work.u.launch = (bh__launch_body){.module = 1,
                                      .grid = {1, 1, 1},
                                      .block = {1, 1, 1},
                                      .flags = BH__LAUNCH_OBJECTS,
                                      .param_bytes = at + (uint32_t)sizeof number};
    return bh__cuda_launch(&lane, &work, error);
}

TEST(an_image_is_copied_before_each_launch_and_made_once) {
    bh_error error = {0};
    bh__launch_object texture = object(BH__OBJECT_TEXTURE, 9, 3, 1);
    begin();
    for (int i = 1; i <= 3; i++) {
        memory[3][5] = (uint8_t)(100 + i);
        REQUIRE_OK(run(&texture, 1, &error));
        const array *it = (const array *)(void *)cuda.resource.of.array;
        CHECK_EQ(it->data[0][5], 100 + i);
        CHECK_EQ(cuda.copies_in, i);
    }
    CHECK_EQ(cuda.made_arrays, 1);
    CHECK_EQ(cuda.made_objects, 1);
    CHECK_EQ(cuda.copies_out, 0);
    CHECK_EQ(cuda.handles[0], 1001);
    CHECK_EQ(cuda.param_bytes, 16); /* the kernel does not get the descriptions */
    CHECK_EQ(cuda.resource.kind, BH__CU_RESOURCE_ARRAY);
    CHECK_EQ(cuda.sampling.flags, BH__CU_SAMPLE_INTEGER);
    CHECK_EQ(cuda.sampling.modes[0], 1);
    end();
}

TEST(what_a_surface_wrote_is_copied_back) {
    bh_error error = {0};
    bh__launch_object both[2] = {object(BH__OBJECT_TEXTURE, 9, 3, LEVELS),
                                 object(BH__OBJECT_SURFACE, 10, 3, LEVELS)};
    begin();
    both[1].level = 1;
    uint64_t offset = bh__level_place_of(&both[1].shape, 1).offset;
    uint8_t before[MAX_BYTES];
    memory[3][offset] = 1;
    memcpy(before, memory[3], sizeof before);
    REQUIRE_OK(run(both, 2, &error));
    CHECK_EQ(cuda.made_arrays, 1); /* of both */
    CHECK_EQ(cuda.copies_in, LEVELS);
    CHECK_EQ(cuda.copies_out, 1);
    CHECK_EQ(cuda.resource.kind, BH__CU_RESOURCE_LEVELS);
    before[offset] = 77;
    CHECK(memcmp(before, memory[3], sizeof before) == 0);
    end();
}

TEST(textures_over_buffers_have_no_arrays) {
    bh_error error = {0};
    bh__launch_object list[2] = {object(BH__OBJECT_LINEAR, 4, 0, 1),
                                 object(BH__OBJECT_ROWS, 5, 0, 1)};
    begin();
    REQUIRE_OK(run(list, 1, &error));
    CHECK_EQ(cuda.resource.kind, BH__CU_RESOURCE_LINEAR);
    CHECK_EQ(cuda.resource.of.linear.address, list[0].address);
    CHECK_EQ(cuda.resource.of.linear.bytes, SIZE);
    REQUIRE_OK(run(list, 2, &error));
    CHECK_EQ(cuda.resource.kind, BH__CU_RESOURCE_ROWS);
    CHECK_EQ(cuda.resource.of.rows.pitch, 32);
    CHECK_EQ(cuda.resource.of.rows.height, SIZE);
    CHECK_EQ(cuda.made_arrays + cuda.copies_in + cuda.copies_out, 0);
    CHECK_EQ(cuda.made_objects, 2);
    end();
}

TEST(what_is_no_longer_used_is_freed) {
    bh_error error = {0};
    begin();
    for (uint64_t i = 1; i <= 200; i++) { /* images that come and go */
        bh__launch_object texture = object(BH__OBJECT_TEXTURE, 1000 + i, i, 1);
        REQUIRE_OK(run(&texture, 1, &error));
        bh__cuda_textures_free(&device); /* as when the device is idle */
        CHECK(cuda.arrays <= 40);
    }
    for (uint64_t i = 1; i <= 200; i++) { /* textures over one image that do */
        bh__launch_object texture = object(BH__OBJECT_TEXTURE, 2000 + i, 1, 1);
        REQUIRE_OK(run(&texture, 1, &error));
        bh__cuda_textures_free(&device);
        CHECK(cuda.objects <= 80);
    }
    for (int i = 0; i < 300; i++) {
        bh__launch_object texture = object(BH__OBJECT_TEXTURE, 9000, 7000, 1);
        REQUIRE_OK(run(&texture, 1, &error));
    }
    bh__cuda_textures_free(&device);
    CHECK_EQ(cuda.arrays, 1);
    end();
}

TEST(a_launch_may_have_many_textures_over_one_image) {
    bh_error error = {0};
    bh__launch_object list[BH_OBJECTS_MAX];
    begin();
    for (uint64_t round = 0; round < 5; round++) {
        for (uint64_t i = 0; i < BH_OBJECTS_MAX; i++)
            list[i] = object(BH__OBJECT_TEXTURE, 100 * round + i + 1, 2, 1);
        cuda.copies_in = 0;
        REQUIRE_OK(run(list, BH_OBJECTS_MAX, &error));
        CHECK_EQ(cuda.copies_in, 1);
    }
    CHECK_EQ(cuda.made_objects, 5 * BH_OBJECTS_MAX);
    end();
}

TEST(refusals) {
    bh_error error = {0};
    bh__launch_object texture = object(BH__OBJECT_TEXTURE, 9, 3, 1);
    begin();
    texture.modes[0] = 9;
    CHECK_EQ(run(&texture, 1, &error), BH_E_INTERNAL);
    texture.modes[0] = 0;
    texture.image = 0;
    CHECK_EQ(run(&texture, 1, &error), BH_E_INTERNAL);
    texture = object(BH__OBJECT_TEXTURE, 9, 3, 1);
    cuda.result = BH__CU_OUT_OF_MEMORY;
    CHECK_EQ(run(&texture, 1, &error), BH_E_NO_MEMORY);
    CHECK_EQ(cuda.handles[0], 0); /* nothing was launched */
    cuda.result = BH__CU_INVALID_VALUE;
    CHECK_EQ(run(&texture, 1, &error), BH_E_UNSUPPORTED);
    cuda.result = BH__CU_OK;
    CHECK_EQ(run(&texture, 1, &error), BH_OK);
    end();
}
