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
    size_t count;
    REQUIRE_OK(bh_binary_get_image(linked, BH_OUTPUT_PTX, &bytes, &count));
    CHECK(memmem(bytes, count, ".version", 8) != NULL);
    REQUIRE_OK(bh_binary_get_image(linked, BH_OUTPUT_CUBIN, &bytes, &count));
    CHECK_MEM_EQ(bytes, "\177ELF", 4);
    options.output = BH_OUTPUT_CUBIN;
    bh_binary mixed[] = {parts[0], compile_ok("__device__ int g;\n", &options)};
    CHECK_REFUSED(bh_link(mixed, 2, &link, &linked), BH_E_INVALID);
}

/* ---- name expressions ---- */

static bh_binary compile_named(uint32_t compiler, const char *source, const char *name,
                               const char *expression) {
    bh_compile_options options = real_options(compiler);
    options.flags = BH_COMPILE_RELOCATABLE;
    options.output = BH_OUTPUT_PTX;
    options.name = name;
    options.expressions = &expression;
    options.expression_count = expression ? 1 : 0;
    return compile_ok(source, &options);
}

static bh_binary link_ok(const bh_binary *parts, size_t count) {
    bh_compile_options link = BH_INIT(link);
    link.cache_dir = cache_dir();
    bh_binary linked = {0};
    REQUIRE_OK(bh_link(parts, count, &link, &linked));
    return linked;
}

/* What the kernel of this name writes. */
static uint32_t run_kernel(bh_device device, bh_module module, const char *name) {
    bh_kernel kernel = {0};
    REQUIRE_OK(bh_kernel_get(module, name, &kernel));
    bh_buffer x = words_counting(device, 1, 0);
    REQUIRE_OK(run_now(kernel, BH_SHAPE(1, 1, 1, 1, 1, 1), BH_ARGS(BH_INOUT(x))));
    return word_read(x, 0);
}

#define STATIC_KERNEL(value)                                                                       \
    "static __device__ unsigned mine = " value ";\n"                                               \
    "static __global__ void k(unsigned *p) { *p = mine; }\n"                                       \
    "namespace { __global__ void hidden(unsigned *p) { *p = 10 * mine; } }\n"

/* Each file has a static kernel k, with the same mangled name or nearly so. */
static void expressions_mean_kernels_of_their_files(uint32_t compiler) {
    need_compiler(compiler);
    bh_device device = open_device();
    bh_module module = {0};
    for (unsigned same_name = 0; same_name < 2; same_name++) {
        const char *second = same_name ? "one.cu" : "two.cu";
        bh_binary parts[] = {
            compile_named(compiler, STATIC_KERNEL("1"), "one.cu", "::k"),
            compile_named(compiler, STATIC_KERNEL("2"), second, "k"),
            compile_named(compiler, STATIC_KERNEL("3"), second, "hidden"),
            compile_named(compiler, STATIC_KERNEL("4"), second, "::hidden"),
        };
        REQUIRE_OK(bh_module_load_binary(device, link_ok(parts, 4), &module));
        CHECK_EQ(run_kernel(device, module, "::k"), 1);
        CHECK_EQ(run_kernel(device, module, "k"), 2);
        CHECK_EQ(run_kernel(device, module, "hidden"), 30);
        CHECK_EQ(run_kernel(device, module, "::hidden"), 40);
    }
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(nvrtcs_expressions_mean_kernels_of_their_files, 120) {
    expressions_mean_kernels_of_their_files(BH_COMPILER_NVRTC);
}

TEST_TIMEOUT(clangs_expressions_mean_kernels_of_their_files, 120) {
    expressions_mean_kernels_of_their_files(BH_COMPILER_CLANG);
}

/* The same source with another definition is another file. */
TEST_TIMEOUT(files_that_differ_in_a_define_are_two, 120) {
    need_compiler(BH_COMPILER_CLANG);
    bh_device device = open_device();
    bh_module module = {0};
    bh_binary parts[2];
    for (int i = 0; i < 2; i++) {
        const char *define = i ? "VALUE=2" : "VALUE=1", *expression = i ? "k" : "::k";
        bh_compile_options options = real_options(BH_COMPILER_CLANG);
        options.flags = BH_COMPILE_RELOCATABLE;
        options.output = BH_OUTPUT_PTX;
        options.defines = &define;
        options.define_count = 1;
        options.expressions = &expression;
        options.expression_count = 1;
        parts[i] = compile_ok(STATIC_KERNEL("VALUE"), &options);
    }
    REQUIRE_OK(bh_module_load_binary(device, link_ok(parts, 2), &module));
    CHECK_EQ(run_kernel(device, module, "::k"), 1);
    CHECK_EQ(run_kernel(device, module, "k"), 2);
    CHECK_OK(bh_device_close(device));
}

static void expressions_that_mean_two_kernels_are_refused(uint32_t compiler) {
    need_compiler(compiler);
    bh_device device = open_device();
    bh_module module = {0};
    bh_kernel kernel = {0};
    bh_error error;
    const char *lowered = NULL;
    bh_binary parts[] = {compile_named(compiler, STATIC_KERNEL("1"), "one.cu", "k"),
                         compile_named(compiler, STATIC_KERNEL("2"), "two.cu", "k")};
    bh_binary linked = link_ok(parts, 2);
    CHECK_REFUSED(bh_binary_lowered(linked, "k", &lowered), BH_E_INVALID);
    REQUIRE_OK(bh_module_load_binary(device, linked, &module));
    CHECK_REFUSED(bh_kernel_get(module, "k", &kernel), BH_E_INVALID);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "\"k\" is ambiguous");
    REQUIRE_OK(bh_binary_lowered(parts[0], "k", &lowered));
    CHECK_STR_CONTAINS(error.message, lowered);
    CHECK_EQ(run_kernel(device, module, lowered), 1);

    /* One of them has that very name. */
    bh_binary others[] = {compile_named(compiler,
                                        "extern \"C\" __global__ void k(unsigned *p) { *p = 5; }\n",
                                        "five.cu", NULL),
                          parts[1]};
    REQUIRE_OK(bh_module_load_binary(device, link_ok(others, 2), &module));
    CHECK_REFUSED(bh_kernel_get(module, "k", &kernel), BH_E_INVALID);
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(nvrtcs_expressions_that_mean_two_kernels_are_refused, 120) {
    expressions_that_mean_two_kernels_are_refused(BH_COMPILER_NVRTC);
}

TEST_TIMEOUT(clangs_expressions_that_mean_two_kernels_are_refused, 120) {
    expressions_that_mean_two_kernels_are_refused(BH_COMPILER_CLANG);
}

/* Parts of the same bytes with other name expressions, in memory and on disk. */
TEST_TIMEOUT(the_cache_of_links_knows_name_expressions, 120) {
    need_compiler(BH_COMPILER_NVRTC);
    static const char source[] = "template <typename T> __global__ void t(T *p) { *p = 1; }\n";
    const char *names[] = {"t<int>", "::t<int>", "t<signed int>"};
    for (size_t i = 0; i < 3; i++) {
        bh_binary part = compile_named(BH_COMPILER_NVRTC, source, "t.cu", names[i]);
        bh_binary linked = link_ok(&part, 1);
        CHECK_EQ(info_of(linked).cache, BH_CACHE_MISS);
        CHECK_EQ(info_of(link_ok(&part, 1)).cache, BH_CACHE_MEMORY);
        for (size_t n = 0; n < 3; n++) {
            const char *lowered;
            bh_status status = bh_binary_lowered(linked, names[n], &lowered);
            CHECK_EQ(status, n == i ? BH_OK : BH_E_NOT_FOUND);
        }
    }
}

/* What a binary from bytes is for is the default of a link. */
TEST_TIMEOUT(binaries_from_bytes_know_their_architecture, 60) {
    static const char text[] = "// .target sm\n.version 8.0\n.target\t sm_90a, debug\n";
    static const char none[] = ".version 8.0\n.target nothing\n";
    bh_binary binary = {0};
    REQUIRE_OK(bh_binary_from(text, sizeof text - 1, &binary));
    CHECK_STR_EQ(info_of(binary).arch, "");
    REQUIRE_OK(bh_binary_from(text + 14, sizeof text - 15, &binary));
    CHECK_STR_EQ(info_of(binary).arch, "sm_90a");
    REQUIRE_OK(bh_binary_from(none, sizeof none - 1, &binary));
    CHECK_STR_EQ(info_of(binary).arch, "");
    need_compiler(BH_COMPILER_NVRTC);
    bh_compile_options options = real_options(BH_COMPILER_NVRTC);
    options.output = BH_OUTPUT_CUBIN;
    options.arch = "sm_90";
    bh_binary cubin = compile_ok("extern \"C\" __global__ void k() {}\n", &options);
    REQUIRE_OK(bh_binary_from(info_of(cubin).bytes, info_of(cubin).count, &binary));
    CHECK_STR_EQ(info_of(binary).arch, "sm_90");
}
