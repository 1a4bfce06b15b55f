/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code: cubins and fatbins are recognised by their contents, read, loaded where the device
 * can run them, and refused clearly elsewhere. */
#include <signal.h>

#include "cuda/image/image.h"
#include "support/compile.h"
#include "writes/writes.h"

static const char source[] =
    "struct odd { double a; char b; };\n"
    "__constant__ unsigned table[4] = {1, 2, 3, 4};\n"
    "__device__ unsigned counter = 7;\n"
    "extern \"C\" __global__ void scale(unsigned *x, unsigned by, unsigned n) {\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) x[i] *= by * table[i % 4];\n"
    "    if (i == 0) counter++;\n"
    "}\n"
    "extern \"C\" __global__ void mixed(char c, odd o, unsigned short s, long long *out) {\n"
    "    *out = c + (long long)o.a + o.b + s;\n"
    "}\n"
    /* more than fits the records of small parameters */
    "struct large { unsigned words[5000]; };\n"
    "extern \"C\" __global__ void wide(large l, unsigned short which, unsigned *out) {\n"
    "    *out = l.words[which];\n"
    "}\n";

/* The bytes that `source` becomes; `arch` is machine code's. */
static bh_binary_info compile_for(const char *arch, uint32_t output) {
    bh_compile_options options = real_options(BH_COMPILER_NVRTC);
    options.arch = arch;
    options.output = output;
    return info_of(compile_ok(source, &options));
}

/* ---- fatbins ---- */

enum { FATBIN_ELF = 2, FATBIN_HEAD = 16, FATBIN_ENTRY = 64 };

typedef struct fatbin {
    uint8_t *bytes;
    size_t size;
} fatbin;

static void put(uint8_t *at, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> 8 * i);
}

static fatbin fatbin_new(void) {
    fatbin f = {calloc(1, FATBIN_HEAD), FATBIN_HEAD};
    put(f.bytes, 0xba55ed50, 4);
    put(f.bytes + 4, 1, 2);
    put(f.bytes + 6, FATBIN_HEAD, 2);
    return f;
}

/* Adds an image as fatbinary does if it is told not to compress. */
static void fatbin_add(fatbin *f, uint32_t kind, uint32_t arch, bh_binary_info image) {
    uint64_t padded = (image.count + 7) / 8 * 8, added = FATBIN_ENTRY + padded;
    f->bytes = realloc(f->bytes, f->size + added);
    uint8_t *entry = f->bytes + f->size;
    memset(entry, 0, added);
    put(entry, kind, 2);
    put(entry + 2, 0x0101, 2);
    put(entry + 4, FATBIN_ENTRY, 4);
    put(entry + 8, padded, 8);
    put(entry + 24, 8, 2); /* version 1.8 */
    put(entry + 26, 1, 2);
    put(entry + 28, arch, 4);
    put(entry + 40, 0x11, 8); /* 64 bits, Linux */
    memcpy(entry + FATBIN_ENTRY, image.bytes, image.count);
    f->size += added;
    put(f->bytes + 8, f->size - FATBIN_HEAD, 8);
}

/* ---- read ---- */

static const bh__module_image_kernel *kernel_of(const bh__module_image *image, const char *name) {
    for (size_t i = 0; i < image->kernel_count; i++) {
        if (strcmp(image->kernels[i].name, name) == 0) return &image->kernels[i];
    }
    FAIL("kernel %s is not there", name);
    return NULL;
}

static const bh__module_image_variable *variable_of(const bh__module_image *image,
                                                    const char *name) {
    for (size_t i = 0; i < image->variable_count; i++) {
        if (strcmp(image->variables[i].name, name) == 0) return &image->variables[i];
    }
    FAIL("variable %s is not there", name);
    return NULL;
}

static void check_params(const bh__module_image_kernel *kernel, uint32_t count,
                         const uint32_t *offsets, const uint32_t *sizes) {
    REQUIRE(kernel);
    REQUIRE_EQ(kernel->param_count, count);
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQ(kernel->params[i].offset, offsets[i]);
        CHECK_EQ(kernel->params[i].bytes, sizes[i]);
    }
    CHECK_EQ(kernel->param_bytes, offsets[count - 1] + sizes[count - 1]);
}

/* What is known of an image before any driver has seen it, and where the driver tells nothing. */
static void check_read(uint32_t output, bh__module_image_kind kind) {
    need_compiler(BH_COMPILER_NVRTC);
    bh_binary_info from = compile_for("sm_90", output);
    bh__module_image image;
    bh_error error;
    REQUIRE_OK(bh__module_image_read(&image, from.bytes, from.count, &error));
    CHECK_EQ(image.kind, kind);
    CHECK_STR_EQ(image.target, "sm_90");
    CHECK(image.names_known && !image.prints);
    CHECK_EQ(image.kernel_count, 3);
    check_params(kernel_of(&image, "scale"), 3, (uint32_t[]){0, 8, 12}, (uint32_t[]){8, 4, 4});
    check_params(kernel_of(&image, "mixed"), 4, (uint32_t[]){0, 8, 24, 32},
                 (uint32_t[]){1, 16, 2, 8});
    check_params(kernel_of(&image, "wide"), 3, (uint32_t[]){0, 20000, 20008},
                 (uint32_t[]){20000, 2, 8});
    const bh__module_image_variable *table = variable_of(&image, "table");
    const bh__module_image_variable *counter = variable_of(&image, "counter");
    REQUIRE(table && counter);
    CHECK(table->bytes == 16 && table->constant);
    CHECK(counter->bytes == 4 && !counter->constant);
    bh__module_image_free(&image);
}

/* ---- what kernels write ---- */

static const char *const headers[] = {"cooperative_groups.h", "cub/block/block_reduce.cuh",
                                      "curand_kernel.h", "cuda/std/atomic", "cuda/atomic"};

/* Every variable that an image has, of a source with the headers that most programs have, and of
 * those the ones that kernels write. */
static void check_written(const char *text, uint32_t output, const char *const *written,
                          size_t written_count) {
    bh_compile_options options = real_options(BH_COMPILER_NVRTC);
    options.arch = "sm_90";
    options.output = output;
    bh_binary_info from = info_of(compile_ok(text, &options));
    bh__module_image image;
    bh_error error;
    REQUIRE_OK(bh__module_image_read(&image, from.bytes, from.count, &error));
    size_t found = 0;
    for (size_t i = 0; i < image.variable_count; i++) {
        const bh__module_image_variable *variable = &image.variables[i];
        bool expected = false;
        for (size_t k = 0; k < written_count; k++)
            expected |= strcmp(variable->name, written[k]) == 0;
        if (variable->written != expected)
            FAIL("%s: written is %d, %d expected", variable->name, variable->written, expected);
        found += expected;
    }
    CHECK_EQ(found, written_count);
    bh__module_image_free(&image);
}

static void check_headers(uint32_t output) {
    need_compiler(BH_COMPILER_NVRTC);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char text[1024];
        bool random = strcmp(headers[i], "curand_kernel.h") == 0;
        const char *body = random ? "curandState s; curand_init(7, threadIdx.x, 3, &s);"
                                    "*out += (int)curand(&s) + table[threadIdx.x % 4];"
                                  : "*out += table[threadIdx.x % 4];";
        snprintf(text, sizeof text,
                 "#include <%s>\n__device__ int table[4] = {1, 2, 3, 4};\n"
                 "extern \"C\" __global__ void k(int *out) {\n%s\n}\n",
                 headers[i], body);
        check_written(text, output, NULL, 0);
        snprintf(text, sizeof text,
                 "#include <%s>\nextern \"C\" { __device__ int counter, set, table[4] = {1, 2}; }\n"
                 "extern \"C\" __global__ void k(int *out) {\n%s\natomicAdd(&counter, 1);"
                 "set = *out;\n}\n",
                 headers[i], body);
        check_written(text, output, (const char *const[]){"counter", "set"}, 2);
    }
}

TEST_TIMEOUT(variables_of_headers_are_not_written_in_ptx, 240) {
    check_headers(BH_OUTPUT_PTX);
}

TEST_TIMEOUT(variables_of_headers_are_not_written_in_cubins, 240) {
    check_headers(BH_OUTPUT_CUBIN);
}

/* One that is declared in a function is no less a variable. */
static void check_inner(uint32_t output, const char *name) {
    need_compiler(BH_COMPILER_NVRTC);
    bh_compile_options options = real_options(BH_COMPILER_NVRTC);
    options.arch = "sm_90";
    options.output = output;
    bh_binary_info from = info_of(compile_ok(
        "extern \"C\" __global__ void k(unsigned *out) {\n"
        "  unsigned now;\n"
        "  asm volatile(\"{ .global .u32 inner; ld.global.u32 %0, [inner];\\n\"\n"
        "               \"add.u32 %0, %0, 1; st.global.u32 [inner], %0; }\" : \"=r\"(now));\n"
        "  *out = now;\n}\n",
        &options));
    bh__module_image image;
    bh_error error;
    REQUIRE_OK(bh__module_image_read(&image, from.bytes, from.count, &error));
    bool found = false;
    for (size_t i = 0; i < image.variable_count; i++)
        found |= strstr(image.variables[i].name, name) && image.variables[i].written;
    CHECK(found);
    bh__module_image_free(&image);
}

TEST_TIMEOUT(a_variable_in_a_function_is_written_in_ptx, 60) {
    check_inner(BH_OUTPUT_PTX, "inner");
}

TEST_TIMEOUT(a_variable_in_a_function_is_written_in_cubins, 60) {
    check_inner(BH_OUTPUT_CUBIN, "inner");
}

/* Without the compiler's word, what code has the address of counts as written. */
TEST_TIMEOUT(a_cubin_from_elsewhere_is_believed_to_write, 60) {
    need_compiler(BH_COMPILER_NVRTC);
    bh_binary_info from = compile_for("sm_90", BH_OUTPUT_CUBIN);
    bh__writes *record = bh__writes_record_read(from.bytes, from.count);
    REQUIRE(record);
    CHECK(bh__writes_has(record, "counter"));
    bh__writes_free(record);
    bh__module_image image;
    bh_error error;
    REQUIRE_OK(bh__module_image_read(&image, from.bytes, from.count - 1, &error));
    const bh__module_image_variable *counter = variable_of(&image, "counter");
    CHECK(counter && counter->written);
    CHECK(!variable_of(&image, "table")->written); /* a constant */
    bh__module_image_free(&image);
}

TEST_TIMEOUT(a_cubin_tells_its_kernels_and_variables, 60) {
    check_read(BH_OUTPUT_CUBIN, BH__MODULE_IMAGE_CUBIN);
}

TEST_TIMEOUT(ptx_tells_the_same, 60) {
    check_read(BH_OUTPUT_PTX, BH__MODULE_IMAGE_PTX);
}

/* Reads a copy that ends where its memory does, so that a sanitizer sees a step beyond. */
static bh_status read_copy(const void *bytes, size_t size) {
    void *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    bh__module_image image;
    bh_error error;
    bh_status status = bh__module_image_read(&image, copy, size, &error);
    if (status == BH_OK)
        bh__module_image_free(&image);
    else
        CHECK(error.message[0] && error.fix[0]);
    free(copy);
    return status;
}

TEST_TIMEOUT(damaged_cubins_never_lead_astray, 60) {
    need_compiler(BH_COMPILER_NVRTC);
    bh_binary_info from = compile_for("sm_90", BH_OUTPUT_CUBIN);
    CHECK_OK(read_copy(from.bytes, from.count));
    /* What may be missing is the record at its end, which begins after the last segment header. */
    size_t whole = from.count;
    while (whole > 4 && read_copy(from.bytes, whole - 1) == BH_OK) whole--;
    CHECK(from.count - whole < 256);
    for (size_t size = 4; size < whole; size++)
        CHECK_STATUS(read_copy(from.bytes, size), BH_E_LOAD);
    uint8_t *changed = malloc(from.count);
    rng random = rng_seeded(1);
    for (int i = 0; i < 20000; i++) {
        memcpy(changed, from.bytes, from.count);
        for (uint32_t n = 1 + rng_below(&random, 4); n > 0; n--)
            changed[4 + rng_below(&random, (uint32_t)from.count - 4)] = (uint8_t)rng_next(&random);
        (void)read_copy(changed, from.count);
    }
    free(changed);
}

TEST_TIMEOUT(fatbins_are_whole_or_refused, 60) {
    need_compiler(BH_COMPILER_NVRTC);
    fatbin f = fatbin_new();
    fatbin_add(&f, FATBIN_ELF, 90, compile_for("sm_90", BH_OUTPUT_CUBIN));
    CHECK_OK(read_copy(f.bytes, f.size));
    for (size_t size = 4; size < f.size; size++) CHECK_STATUS(read_copy(f.bytes, size), BH_E_LOAD);
    /* What host programs have around one holds an address, not bytes. */
    CHECK_STATUS(read_copy("\xb1\x43\x62\x46\1\0\0\0\0\0\0\0\0\0\0\0", 16), BH_E_LOAD);
    free(f.bytes);
}

/* ---- loaded ---- */

static void check_runs(bh_device device, bh_module module) {
    enum { N = 100 };
    bh_buffer x = words_filled(device, N, 1), sum = words_filled(device, 2, 0);
    bh_kernel scale = get_kernel(module, "scale"), mixed = get_kernel(module, "mixed");
    bh_param_info param = BH_INIT(param);
    CHECK_OK(bh_kernel_get_param(mixed, 1, &param));
    CHECK(param.offset == 8 && param.bytes == 16);
    CHECK_OK(run_now(scale, BH_GRID(N, 64), BH_ARGS(BH_INOUT(x), 5u, (uint32_t)N)));
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(word_read(x, i), 5 * (1 + i % 4));
    CHECK_REFUSED(run_now(scale, BH_GRID(N, 64), BH_ARGS(BH_INOUT(x), 5u)), BH_E_LAUNCH);
    struct {
        double a;
        char b;
    } odd = {40, 2};
    CHECK_OK(run_now(mixed, BH_GRID(1, 1),
                     BH_ARGS((int8_t)1, BH_VALUE(&odd, sizeof odd), (uint16_t)300, BH_OUT(sum))));
    CHECK_EQ(word_read(sum, 0), 343);
    static uint32_t words[5000];
    for (uint32_t i = 0; i < 5000; i++) words[i] = i * 7;
    CHECK_OK(run_now(get_kernel(module, "wide"), BH_GRID(1, 1),
                     BH_ARGS(BH_VALUE(words, sizeof words), (uint16_t)4999, BH_OUT(sum))));
    CHECK_EQ(word_read(sum, 0), 4999 * 7);
    CHECK_OK(bh_buffer_release(x));
    CHECK_OK(bh_buffer_release(sum));
}

/* Variables of a fatbin are out of reach: nobody lists them. */
static void check_counter(bh_module module, const char *kind) {
    uint32_t got = 0;
    if (strcmp(kind, "fatbin") == 0) {
        CHECK_REFUSED(bh_module_global_read(module, "counter", 0, &got, sizeof got),
                      BH_E_NOT_FOUND);
        return;
    }
    CHECK_OK(bh_module_global_read(module, "counter", 0, &got, sizeof got));
    CHECK_EQ(got, 8);
}

/* Loads it and runs its kernels, in the next worker too; the CPU device says that it cannot. */
static void check_loads(bh_device device, const void *bytes, size_t size, const char *kind) {
    bh_module module = {0};
    if (is_cpu(device)) {
        CHECK_REFUSED(bh_module_load(device, bytes, size, &module), BH_E_UNSUPPORTED);
        bh_error error;
        bh_last_error(&error);
        CHECK_STR_CONTAINS(error.message, kind);
        return;
    }
    REQUIRE_OK(bh_module_load(device, bytes, size, &module));
    check_runs(device, module);
    check_counter(module, kind);
    kill_worker(device, SIGKILL);
    CHECK_OK(bh_module_accept(module));
    check_runs(device, module);
    CHECK_OK(bh_module_release(module));
}

static const char *arch_of(bh_device device) {
    static bh_device_info info;
    info = (bh_device_info)BH_INIT(info);
    REQUIRE_OK(bh_device_get_info(device, &info));
    return is_cpu(device) ? "sm_90" : info.arch;
}

TEST_TIMEOUT(a_cubin_is_loaded_or_refused_clearly, 60) {
    need_compiler(BH_COMPILER_NVRTC);
    bh_device device = open_device();
    bh_binary_info cubin = compile_for(arch_of(device), BH_OUTPUT_CUBIN);
    check_loads(device, cubin.bytes, cubin.count, "cubin");
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(a_fatbin_is_loaded_or_refused_clearly, 60) {
    need_compiler(BH_COMPILER_NVRTC);
    bh_device device = open_device();
    const char *arch = arch_of(device);
    uint32_t number = (uint32_t)bh__module_image_target_number(arch);
    fatbin code = fatbin_new(), both = fatbin_new();
    fatbin_add(&code, FATBIN_ELF, number, compile_for(arch, BH_OUTPUT_CUBIN));
    check_loads(device, code.bytes, code.size, "fatbin");
    /* Of several the driver takes what fits. */
    fatbin_add(&both, FATBIN_ELF, 75, compile_for("sm_75", BH_OUTPUT_CUBIN));
    fatbin_add(&both, FATBIN_ELF, number, compile_for(arch, BH_OUTPUT_CUBIN));
    check_loads(device, both.bytes, both.size, "fatbin");
    free(code.bytes);
    free(both.bytes);
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(machine_code_of_another_generation_is_refused_with_both_named, 60) {
    need_compiler(BH_COMPILER_NVRTC);
    bh_device device = open_device();
    if (is_cpu(device)) SKIP("the CPU device runs no machine code");
    bool hopper = bh__module_image_target_number(arch_of(device)) / 10 == 9;
    const char *other = hopper ? "sm_80" : "sm_90";
    bh_binary_info cubin = compile_for(other, BH_OUTPUT_CUBIN);
    fatbin f = fatbin_new();
    fatbin_add(&f, FATBIN_ELF, hopper ? 80 : 90, cubin);
    bh_module module = {0};
    bh_error error;
    CHECK_REFUSED(bh_module_load(device, cubin.bytes, cubin.count, &module), BH_E_UNSUPPORTED);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, other);
    CHECK_STR_CONTAINS(error.message, arch_of(device));
    CHECK_REFUSED(bh_module_load(device, f.bytes, f.size, &module), BH_E_UNSUPPORTED);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, arch_of(device));
    free(f.bytes);
    CHECK_OK(bh_device_close(device));
}
