/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps of the CUDA device, on a driver of the tests' own: what it is asked for, and what the
 * kernel gets. */
#include <string.h>

#include "cuda/state.h"
#include "test.h"
#include "wire/texture.h"

enum { PARAMS = 192, MAP_AT = 64 };

static struct {
    int tiled, im2col, launches, result;
    bh__tensor asked;
    uint8_t params[PARAMS];
} cuda;

static int keep(void *out, int type, uint32_t rank, void *address, const uint64_t *dims,
                const uint64_t *strides, const uint32_t *steps, int interleave, int swizzle,
                int promotion, int fill) {
    CHECK_EQ((uintptr_t)out % 64, 0);
    cuda.asked.type = (uint8_t)type;
    cuda.asked.rank = (uint8_t)rank;
    cuda.asked.address = (uint64_t)(uintptr_t)address;
    memcpy(cuda.asked.dims, dims, rank * sizeof *dims);
    memcpy(cuda.asked.strides, strides, (rank - 1) * sizeof *strides);
    memcpy(cuda.asked.steps, steps, rank * sizeof *steps);
    cuda.asked.interleave = (uint8_t)interleave;
    cuda.asked.swizzle = (uint8_t)swizzle;
    cuda.asked.promotion = (uint8_t)promotion;
    cuda.asked.nan_fill = (uint8_t)fill;
    memset(out, 0x5a, BH__TENSOR_MAP_BYTES);
    return cuda.result;
}

static int tiled(void *out, int type, uint32_t rank, void *address, const uint64_t *dims,
                 const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                 int interleave, int swizzle, int promotion, int fill) {
    cuda.tiled++;
    memcpy(cuda.asked.box, box, rank * sizeof *box);
    return keep(out, type, rank, address, dims, strides, steps, interleave, swizzle, promotion,
                fill);
}

static int im2col(void *out, int type, uint32_t rank, void *address, const uint64_t *dims,
                  const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,
                  uint32_t pixels, const uint32_t *steps, int interleave, int swizzle,
                  int promotion, int fill) {
    cuda.im2col++;
    cuda.asked.im2col = 1;
    memcpy(cuda.asked.lower, lower, (rank - 2) * sizeof *lower);
    memcpy(cuda.asked.upper, upper, (rank - 2) * sizeof *upper);
    cuda.asked.channels = channels;
    cuda.asked.pixels = pixels;
    return keep(out, type, rank, address, dims, strides, steps, interleave, swizzle, promotion,
                fill);
}

static int launch(bh__cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                  unsigned by, unsigned bz, unsigned shared, bh__cu_stream stream, void **params,
                  void **extra) {
    (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
    (void)stream, (void)params;
    CHECK_EQ(*(size_t *)extra[3], PARAMS);
    memcpy(cuda.params, extra[1], PARAMS);
    cuda.launches++;
    return BH__CU_OK;
}

static int error_text(int result, const char **out) {
    (void)result;
    *out = "not valid";
    return BH__CU_OK;
}

static bh__device_instance device;
static bh__device_lane lane;
static bh__cuda_kernel kernels[1];
static bh__cuda_module modules[1];

static void begin(void) {
    memset(&cuda, 0, sizeof cuda);
    memset(&device, 0, sizeof device);
    memset(&lane, 0, sizeof lane);
    device.cu.tensor_tiled = tiled;
    device.cu.tensor_im2col = im2col;
    device.cu.launch = launch;
    device.cu.error_name = device.cu.error_string = error_text;
    kernels[0] = (bh__cuda_kernel){.name = (char *)(uintptr_t) "k", .param_bytes = PARAMS};
    modules[0] = (bh__cuda_module){.id = 1, .kernels = kernels, .kernel_count = 1};
    device.modules = modules;
    device.module_count = 1;
    lane.device = &device;
}

static bh__launch_object object(void) {
    bh__launch_object o = {.kind = BH__OBJECT_TENSOR,
                           .offset = MAP_AT,
                           .number = 9,
                           .address = 0x7000000,
                           .bytes = 1 << 20};
    o.tensor = (bh__tensor){.address = o.address,
                            .dims = {64, 8, 4},
                            .strides = {256, 4096},
                            .box = {8, 4, 2},
                            .steps = {1, 2, 1},
                            .rank = 3,
                            .type = BH__TENSOR_BF16,
                            .swizzle = BH__SWIZZLE_64,
                            .promotion = 2,
                            .nan_fill = 1};
    return o;
}

static bh_status run(const bh__launch_object *o, bh_error *error) {
    static _Alignas(16) uint8_t params[PARAMS + sizeof *o + 8];
    uint64_t number = 1;
    memset(params, 0x11, PARAMS);
    memcpy(params + PARAMS, o, sizeof *o);
    memcpy(params + PARAMS + sizeof *o, &number, sizeof number);
    bh__work work = {.op = BH__OP_LAUNCH, .sequence = 5, .params = params};
    work.u.launch = (bh__launch_body){.module = 1,
                                      .grid = {1, 1, 1},
                                      .block = {1, 1, 1},
                                      .flags = BH__LAUNCH_OBJECTS,
                                      .param_bytes = sizeof params};
    return bh__cuda_launch(&lane, &work, error);
}

TEST(the_driver_encodes_a_map_for_the_launch) {
    bh_error error = {0};
    bh__launch_object o = object();
    begin();
    REQUIRE_OK(run(&o, &error));
    CHECK_EQ(cuda.tiled, 1);
    CHECK_EQ(cuda.launches, 1);
    CHECK(memcmp(&cuda.asked, &o.tensor, sizeof o.tensor) == 0);
    CHECK_EQ(cuda.params[MAP_AT - 1], 0x11);
    CHECK_EQ(cuda.params[MAP_AT], 0x5a);
    CHECK_EQ(cuda.params[MAP_AT + BH__TENSOR_MAP_BYTES - 1], 0x5a);
}

TEST(the_driver_encodes_a_map_of_pixels) {
    bh_error error = {0};
    bh__launch_object o = object();
    begin();
    memset(o.tensor.box, 0, sizeof o.tensor.box);
    o.tensor.im2col = 1;
    o.tensor.lower[0] = -1;
    o.tensor.upper[0] = 2;
    o.tensor.channels = 16;
    o.tensor.pixels = 40;
    REQUIRE_OK(run(&o, &error));
    CHECK_EQ(cuda.im2col, 1);
    CHECK_EQ(cuda.tiled, 0);
    CHECK(memcmp(&cuda.asked, &o.tensor, sizeof o.tensor) == 0);
}

TEST(refusals) {
    bh_error error = {0};
    bh__launch_object o = object();
    begin();
    cuda.result = BH__CU_INVALID_VALUE;
    CHECK_EQ(run(&o, &error), BH_E_UNSUPPORTED);
    cuda.result = BH__CU_OK;
    o.tensor.box[0] = 257;
    CHECK_EQ(run(&o, &error), BH_E_INTERNAL);
    o = object();
    o.tensor.address += 16;
    CHECK_EQ(run(&o, &error), BH_E_INTERNAL);
    o = object();
    o.bytes = 4096;
    CHECK_EQ(run(&o, &error), BH_E_INTERNAL);
    o = object();
    o.offset = PARAMS - 64;
    CHECK_EQ(run(&o, &error), BH_E_INTERNAL);
    device.cu.tensor_tiled = NULL; /* a driver before CUDA 12 */
    o = object();
    CHECK_EQ(run(&o, &error), BH_E_UNSUPPORTED);
    CHECK_EQ(cuda.launches, 0);
}
