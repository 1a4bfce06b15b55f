/* SPDX-License-Identifier: Apache-2.0 */
/* Real compilers through the library: kernels, templates, headers, outputs, links, errors. */
#include "support/compile.h"

static const char scale[] = "#ifndef FACTOR\n"
                            "#define FACTOR 1\n"
                            "#endif\n"
                            "template <typename T, int N> __global__ void scale(T *x) {\n"
                            "    x[threadIdx.x] *= (T)(N * FACTOR);\n"
                            "}\n"
                            "extern \"C\" __global__ void add(unsigned *x, unsigned v) {\n"
                            "    x[blockIdx.x * blockDim.x + threadIdx.x] += v;\n"
                            "}\n";

static void run_scale(uint32_t compiler) {
    need_compiler(compiler);
    bh_device device = open_device();
    bh_compile_options options = real_options(compiler);
    const char *names[] = {"scale<unsigned int, 3>", "scale<float, 2>"};
    const char *defines[] = {"FACTOR=7"};
    options.expressions = names;
    options.expression_count = 2;
    options.defines = defines;
    options.define_count = 1;
    options.name = "scale.cu";
    bh_module module = {0};
    REQUIRE_OK(bh_module_compile(device, scale, &options, &module));
    bh_cache_info cache = BH_INIT(cache);
    CHECK_OK(bh_cache_get_info(NULL, &cache));
    CHECK_EQ(cache.compiles, 1);
    CHECK_EQ(counters_of(device).module_loads, 1);
    bh_kernel kernel = {0}, same = {0};
    REQUIRE_OK(bh_kernel_get(module, "scale<unsigned int, 3>", &kernel));
    CHECK_OK(bh_kernel_get(module, "scale< unsigned  int,3 >", &same));
    CHECK_EQ(kernel.id, same.id);
    bh_buffer x = words_counting(device, 4, 1);
    REQUIRE_OK(run_now(kernel, BH_SHAPE(1, 1, 1, 4, 1, 1), BH_ARGS(BH_INOUT(x))));
    for (uint32_t i = 0; i < 4; i++) CHECK_EQ(word_read(x, i), (i + 1) * 21);
    REQUIRE_OK(bh_kernel_get(module, "add", &kernel));
    REQUIRE_OK(run_now(kernel, BH_SHAPE(2, 1, 1, 2, 1, 1), BH_ARGS(BH_INOUT(x), 5u)));
    CHECK_EQ(word_read(x, 3), 89);

    CHECK_REFUSED(bh_kernel_get(module, "scale<unsignedint, 3>", &same), BH_E_NOT_FOUND);
    CHECK_REFUSED(bh_kernel_get(module, "scale<double, 2>", &same), BH_E_NOT_FOUND);
    bh_error error;
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "not registered");
    CHECK_STR_CONTAINS(error.message, "scale<float, 2>");
    CHECK_STR_CONTAINS(error.fix, "expressions");

    bh_binary binary = {0};
    REQUIRE_OK(bh_module_get_binary(module, &binary));
    bh_binary_info info = info_of(binary);
    CHECK_STR_CONTAINS(info.compiler, compiler == BH_COMPILER_NVRTC ? "nvrtc" : "clang");
    CHECK_STR_EQ(info.why, "asked for");
    CHECK_EQ(info.name_count, 2);
    CHECK_EQ(info.cache, BH_CACHE_MISS);
    CHECK_GT(info.compile_ns, 0);
    const char *lowered = NULL;
    CHECK_OK(bh_binary_lowered(binary, "scale<float,2>", &lowered));
    CHECK_STR_EQ(lowered, "_Z5scaleIfLi2EEvPT_");
    CHECK_OK(bh_binary_release(binary));
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(nvrtc_compiles_templates_that_run, 60) {
    run_scale(BH_COMPILER_NVRTC);
}

TEST_TIMEOUT(clang_compiles_templates_that_run, 60) {
    run_scale(BH_COMPILER_CLANG);
}

static void show_errors(uint32_t compiler) {
    static const char wrong[] = "__global__ void f(int *p) {\n    *p = nothing_like_it;\n}\n";
    need_compiler(compiler);
    bh_compile_options options = real_options(compiler);
    options.name = "wrong.cu";
    bh_binary binary = {42};
    CHECK_REFUSED(bh_compile(wrong, &options, &binary), BH_E_COMPILE);
    CHECK_EQ(binary.id, 42);
    bh_error error;
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "wrong.cu");
    CHECK_STR_CONTAINS(error.message, "nothing_like_it");
    char log[4096], few[10];
    size_t length = 0;
    CHECK_OK(bh_compile_log(NULL, log, sizeof log, &length));
    CHECK_STR_CONTAINS(log, "nothing_like_it");
    CHECK_STR_CONTAINS(log, "wrong.cu");
    CHECK_EQ(length, strlen(log));
    CHECK_OK(bh_compile_log(NULL, few, sizeof few, &length));
    CHECK_EQ(strlen(few), sizeof few - 1);
    CHECK_EQ(length, strlen(log));

    bh_device device = open_device();
    bh_module module = {0};
    bh_ticket ticket;
    REQUIRE_OK(bh_submit_compile(device, wrong, &options, &module, &ticket));
    CHECK_REFUSED(bh_wait(ticket, LONG_NS), BH_E_COMPILE);
    char again[4096];
    CHECK_OK(bh_compile_log(&ticket, again, sizeof again, &length));
    CHECK_STR_CONTAINS(again, "nothing_like_it");
    CHECK_REFUSED(bh_kernel_get(module, "f", &(bh_kernel){0}), BH_E_INVALID);
    CHECK_OK(bh_device_close(device));
    CHECK_STATUS(bh_wait(ticket, 0), BH_E_COMPILE);
    CHECK_OK(bh_compile_log(&ticket, again, sizeof again, &length));
}

TEST_TIMEOUT(nvrtc_errors_come_with_the_whole_log, 60) {
    show_errors(BH_COMPILER_NVRTC);
}

TEST_TIMEOUT(clang_errors_come_with_the_whole_log, 60) {
    show_errors(BH_COMPILER_CLANG);
}

static void use_headers(uint32_t compiler) {
    need_compiler(compiler);
    bh_compile_options options = real_options(compiler);
    bh_header headers[] = {{"value.h", "#define VALUE 11\n"},
                           {"folder/other.h", "#include \"value.h\"\n#define OTHER (VALUE + 1)\n"}};
    options.headers = headers;
    options.header_count = 2;
    static const char source[] = "#include <folder/other.h>\n"
                                 "extern \"C\" __global__ void f(unsigned *p) { *p = OTHER; }\n";
    bh_device device = open_device();
    bh_module module = {0};
    REQUIRE_OK(bh_module_compile(device, source, &options, &module));
    bh_buffer word = words_filled(device, 1, 0);
    REQUIRE_OK(run_now(get_kernel(module, "f"), BH_SHAPE(1, 1, 1, 1, 1, 1), BH_ARGS(BH_OUT(word))));
    CHECK_EQ(word_read(word, 0), 12);
    headers[0].text = "#define VALUE 20\n";
    REQUIRE_OK(bh_module_compile(device, source, &options, &module));
    REQUIRE_OK(run_now(get_kernel(module, "f"), BH_SHAPE(1, 1, 1, 1, 1, 1), BH_ARGS(BH_OUT(word))));
    CHECK_EQ(word_read(word, 0), 21);
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(nvrtc_finds_headers_in_memory, 60) {
    use_headers(BH_COMPILER_NVRTC);
}

TEST_TIMEOUT(clang_finds_headers_in_memory, 60) {
    use_headers(BH_COMPILER_CLANG);
}

TEST_TIMEOUT(every_output_can_be_had, 60) {
    need_compiler(BH_COMPILER_NVRTC);
    bh_compile_options options = real_options(BH_COMPILER_NVRTC);
    bh_binary ptx = compile_ok(scale, &options);
    CHECK_EQ(info_of(ptx).output, BH_OUTPUT_PTX);
    CHECK(memmem(info_of(ptx).bytes, info_of(ptx).count, ".entry add", 10) != NULL);
    options.output = BH_OUTPUT_CUBIN;
    options.arch = "sm_90";
    bh_binary cubin = compile_ok(scale, &options);
    CHECK_EQ(info_of(cubin).output, BH_OUTPUT_CUBIN);
    CHECK_STR_EQ(info_of(cubin).arch, "sm_90");
    CHECK_MEM_EQ(info_of(cubin).bytes, "\177ELF", 4);
    options.output = BH_OUTPUT_LTOIR;
    bh_binary ltoir = compile_ok(scale, &options), copy = {0};
    CHECK_EQ(info_of(ltoir).output, BH_OUTPUT_LTOIR);
    REQUIRE_OK(bh_binary_from(info_of(ltoir).bytes, info_of(ltoir).count, &copy));
    CHECK_EQ(info_of(copy).output, BH_OUTPUT_LTOIR);
    CHECK_EQ(info_of(copy).count, info_of(ltoir).count);
    bh_device device = open_device();
    bh_module module = {0};
    CHECK_REFUSED(bh_module_load_binary(device, ltoir, &module), BH_E_LOAD);
    REQUIRE_OK(bh_module_load_binary(device, ptx, &module));
    CHECK_OK(bh_binary_release(ptx));
    CHECK_REFUSED(bh_binary_release(ptx), BH_E_INVALID);
    CHECK_OK(bh_kernel_get(module, "add", &(bh_kernel){0}));
    CHECK_OK(bh_device_close(device));
}

/* What one binary holds, as text. */
static const char *image_of(bh_binary binary, uint32_t output, uint64_t *count) {
    const void *bytes = NULL;
    REQUIRE_OK(bh_binary_get_image(binary, output, &bytes, count));
    return bytes;
}

TEST_TIMEOUT(one_compile_gives_ptx_and_cubin, 60) {
    need_compiler(BH_COMPILER_NVRTC);
    bh_compile_options options = real_options(BH_COMPILER_NVRTC);
    bh_device device = open_device();
    options.output = BH_OUTPUT_PTX | BH_OUTPUT_CUBIN;
    options.arch = is_cpu(device) ? "sm_90" : NULL;
    options.max_registers = 40;
    uint64_t ptx_count, cubin_count;
    for (int round = 0; round < 2; round++) { /* the second time from memory */
        uint64_t compiles = cache_info().compiles;
        bh_binary both = compile_ok(scale, &options);
        CHECK_EQ(cache_info().compiles, compiles + (round == 0));
        CHECK_EQ(info_of(both).output, BH_OUTPUT_PTX | BH_OUTPUT_CUBIN);
        const char *ptx = image_of(both, BH_OUTPUT_PTX, &ptx_count);
        const char *cubin = image_of(both, BH_OUTPUT_CUBIN, &cubin_count);
        CHECK_EQ(strlen(ptx), ptx_count);
        CHECK(strstr(ptx, ".entry add") && strstr(ptx, ".maxnreg 40"));
        CHECK_MEM_EQ(cubin, "\177ELF", 4);
        CHECK(info_of(both).bytes == cubin && info_of(both).count == cubin_count);
        const void *none = NULL;
        size_t count = 7;
        CHECK_REFUSED(bh_binary_get_image(both, BH_OUTPUT_LTOIR, &none, &count), BH_E_NOT_FOUND);
        CHECK_REFUSED(bh_binary_get_image(both, options.output, &none, &count), BH_E_NOT_FOUND);
        CHECK_REFUSED(bh_binary_get_image(both, 0, &none, &count), BH_E_NOT_FOUND);
        CHECK(none == NULL && count == 7);
        bh_module module;
        REQUIRE_OK(bh_module_load_binary(device, both, &module)); /* whichever the device loads */
        CHECK_OK(bh_kernel_get(module, "add", &(bh_kernel){0}));
        CHECK_OK(bh_binary_release(both));
    }
    bh_module module;
    REQUIRE_OK(bh_module_compile(device, scale, &options, &module));
    CHECK_OK(bh_kernel_get(module, "add", &(bh_kernel){0}));
    CHECK_OK(bh_device_close(device));
}

static void compile_virtual(uint32_t compiler) {
    need_compiler(compiler);
    bh_compile_options options = real_options(compiler);
    options.arch = "compute_80";
    bh_binary ptx = compile_ok(scale, &options);
    CHECK_EQ(info_of(ptx).output, BH_OUTPUT_PTX);
    CHECK_STR_EQ(info_of(ptx).arch, "sm_80");
    bh_device device = open_device();
    bh_module module;
    REQUIRE_OK(bh_module_compile(device, scale, &options, &module));
    REQUIRE_OK(bh_module_get_binary(module, &ptx));
    CHECK_EQ(info_of(ptx).output, BH_OUTPUT_PTX);
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(nvrtc_compiles_for_a_virtual_architecture, 60) {
    compile_virtual(BH_COMPILER_NVRTC);
}

TEST_TIMEOUT(clang_compiles_for_a_virtual_architecture, 60) {
    compile_virtual(BH_COMPILER_CLANG);
}

TEST_TIMEOUT(two_files_are_linked_with_optimisation, 60) {
    need_compiler(BH_COMPILER_NVRTC);
    need_linker();
    bh_compile_options options = real_options(BH_COMPILER_NVRTC);
    options.output = BH_OUTPUT_LTOIR;
    options.flags = BH_COMPILE_RELOCATABLE;
    options.arch = "sm_80";
    bh_binary parts[2] = {
        compile_ok("__device__ unsigned three() { return 3; }\n", &options),
        compile_ok("__device__ unsigned three();\n"
                   "extern \"C\" __global__ void f(unsigned *p) { *p = three() * 5; }\n",
                   &options)};
    bh_compile_options link = BH_INIT(link);
    link.output = BH_OUTPUT_PTX;
    bh_binary linked = {0};
    REQUIRE_OK(bh_link(parts, 2, &link, &linked));
    bh_binary_info info = info_of(linked);
    CHECK_EQ(info.output, BH_OUTPUT_PTX);
    CHECK_STR_EQ(info.arch, "sm_80");
    CHECK_EQ(info.cache, BH_CACHE_MISS);
    CHECK(memmem(info.bytes, info.count, "15", 2) != NULL); /* the call is gone */
    REQUIRE_OK(bh_link(parts, 2, &link, &linked));
    CHECK_EQ(info_of(linked).cache, BH_CACHE_MEMORY);
    link.output = BH_OUTPUT_AUTO;
    REQUIRE_OK(bh_link(parts, 2, &link, &linked));
    CHECK_EQ(info_of(linked).output, BH_OUTPUT_CUBIN);
    CHECK_REFUSED(bh_link(parts + 1, 1, &link, &linked), BH_E_COMPILE); /* three is not there */
}

/* Each step doubles what there is to do: no compiler gets to the end of it. */
static void spin(uint32_t compiler) {
    static const char endless[] =
        "template <int N, int M> struct S {\n"
        "    static const int v = S<N - 1, 2 * M>::v + S<N - 1, 2 * M + 1>::v;\n"
        "};\n"
        "template <int M> struct S<0, M> { static const int v = M; };\n"
        "__global__ void f(int *p) { *p = S<29, 0>::v; }\n";
    need_compiler(compiler);
    bh_compile_options options = real_options(compiler);
    options.timeout_ns = 700 * MS;
    bh_binary binary = {0};
    bh_error error;
    uint64_t begun = now_ns();
    CHECK_REFUSED(bh_compile(endless, &options, &binary), BH_E_COMPILE);
    CHECK_LT(now_ns() - begun, 10000 * MS * test_time_scale());
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "0.700 s");
    options.timeout_ns = 0;
    CHECK_EQ(compile_from("__global__ void f(int *p) { *p = 1; }", &options), BH_CACHE_MISS);
}

TEST_TIMEOUT(a_source_that_makes_nvrtc_spin, 60) {
    spin(BH_COMPILER_NVRTC);
}

TEST_TIMEOUT(a_source_that_makes_clang_spin, 60) {
    spin(BH_COMPILER_CLANG);
}
