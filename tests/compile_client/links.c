/* SPDX-License-Identifier: Apache-2.0 */
/* Relocatable sources, compiled and linked through the library, then run. */
#include "support/compile.h"

static const char user[] = "#include \"shape.h\"\n"
                           "static __device__ int calls;\n"
                           "static __device__ int count() { return atomicAdd(&calls, 1); }\n"
                           "extern __constant__ int bias;\n"
                           "extern __shared__ int scratch[];\n"
                           "extern \"C\" __global__ void run(int *p) {\n"
                           "    count();\n"
                           "    scratch[threadIdx.x] = p[threadIdx.x];\n"
                           "    p[threadIdx.x] = step(pick, threadIdx.x) + bias;\n"
                           "}\n";

static const char maker[] = "#include \"shape.h\"\n"
                            "static __device__ int calls = 5;\n"
                            "static __device__ int count() { return calls; }\n"
                            "__constant__ int bias = 1000;\n"
                            "extern __shared__ int scratch[];\n"
                            "__device__ int twice(int v) { return 2 * v + count(); }\n"
                            "__device__ function pick = twice;\n"
                            "__device__ int step(function f, int i) { return f(scratch[i]); }\n";

static void link_and_run(uint32_t compiler) {
    need_compiler(compiler);
    bh_header shape = {"shape.h", "typedef int (*function)(int);\n"
                                  "extern __device__ function pick;\n"
                                  "extern __device__ int step(function f, int i);\n"
                                  "template <typename T> __device__ T same(T v) { return v; }\n"};
    bh_compile_options options = real_options(compiler);
    options.flags = BH_COMPILE_RELOCATABLE | BH_COMPILE_LINE_INFO;
    options.output = BH_OUTPUT_PTX;
    options.headers = &shape;
    options.header_count = 1;
    options.name = "user.cu";
    bh_binary parts[2];
    parts[0] = compile_ok(user, &options);
    options.name = "maker.cu";
    parts[1] = compile_ok(maker, &options);
    bh_compile_options link = BH_INIT(link);
    link.cache_dir = cache_dir();
    bh_binary linked = {0};
    REQUIRE_OK(bh_link(parts, 2, &link, &linked));
    CHECK_EQ(info_of(linked).cache, BH_CACHE_MISS);
    CHECK_EQ(info_of(linked).output, BH_OUTPUT_PTX);
    REQUIRE_OK(bh_link(parts, 2, &link, &linked));
    CHECK_EQ(info_of(linked).cache, BH_CACHE_MEMORY);

    bh_device device = open_device();
    bh_module module = {0};
    bh_kernel kernel = {0};
    REQUIRE_OK(bh_module_load_binary(device, linked, &module));
    REQUIRE_OK(bh_kernel_get(module, "run", &kernel));
    bh_buffer x = words_counting(device, 4, 1);
    bh_shape shape_of = BH_SHAPE(1, 1, 1, 4, 1, 1);
    shape_of.shared_bytes = 16;
    REQUIRE_OK(run_now(kernel, shape_of, BH_ARGS(BH_INOUT(x))));
    for (uint32_t i = 0; i < 4; i++) CHECK_EQ(word_read(x, i), 2 * (i + 1) + 1005);
    CHECK_OK(bh_device_close(device));

    bh_error error;
    CHECK_REFUSED(bh_link(parts, 1, &link, &linked), BH_E_COMPILE);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "of user.cu (PTX)");
    bh_binary again[] = {parts[1], parts[1]};
    CHECK_REFUSED(bh_link(again, 2, &link, &linked), BH_E_COMPILE);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "is defined twice");
    CHECK_STR_CONTAINS(error.message, "maker.cu");
}

TEST_TIMEOUT(nvrtcs_relocatable_code_links_and_runs, 120) {
    link_and_run(BH_COMPILER_NVRTC);
}

TEST_TIMEOUT(clangs_relocatable_code_links_and_runs, 120) {
    link_and_run(BH_COMPILER_CLANG);
}

/* One binary for every device: PTX from this linker, a cubin from nvJitLink. */
TEST_TIMEOUT(ptx_and_a_cubin_come_from_one_link, 120) {
    need_compiler(BH_COMPILER_NVRTC);
    need_linker();
    bh_compile_options options = real_options(BH_COMPILER_NVRTC);
    options.flags = BH_COMPILE_RELOCATABLE;
    options.output = BH_OUTPUT_PTX;
    bh_binary parts[2] = {
        compile_ok("__device__ unsigned three() { return 3; }\n", &options),
        compile_ok("__device__ unsigned three();\n"
                   "extern \"C\" __global__ void f(unsigned *p) { *p = three() * 5; }\n",
                   &options)};
    bh_compile_options link = BH_INIT(link);
    link.cache_dir = cache_dir();
    link.output = BH_OUTPUT_PTX | BH_OUTPUT_CUBIN;
    bh_binary linked = {0};
    REQUIRE_OK(bh_link(parts, 2, &link, &linked));
    const void *bytes;
    uint64_t count;
    REQUIRE_OK(bh_binary_get_image(linked, BH_OUTPUT_PTX, &bytes, &count));
    CHECK(memmem(bytes, count, ".version", 8) != NULL);
    REQUIRE_OK(bh_binary_get_image(linked, BH_OUTPUT_CUBIN, &bytes, &count));
    CHECK_MEM_EQ(bytes, "\177ELF", 4);
    options.output = BH_OUTPUT_CUBIN;
    bh_binary mixed[] = {parts[0], compile_ok("__device__ int g;\n", &options)};
    CHECK_REFUSED(bh_link(mixed, 2, &link, &linked), BH_E_INVALID);
}
