/* SPDX-License-Identifier: Apache-2.0 */
/* Linking PTX of several files and running the result: needs no compiler and no nvJitLink. */
#include "../support/support.h"

#define HEAD ".version 7.8\n.target sm_80\n.address_size 64\n"

/* total = scale(value) + table[0]; a function, variables, a pointer to a function in another
 * file. */
static const char kernel_text[] =
    HEAD ".extern .func (.param .b32 result) scale (.param .b32 value);\n"
         ".extern .global .align 4 .b8 table[];\n"
         ".extern .global .align 8 .u64 chosen;\n"
         ".global .align 4 .u32 hidden = 7;\n"
         ".visible .entry total(.param .u64 p)\n"
         "{\n"
         ".reg .b32 %r<6>;\n.reg .b64 %rd<4>;\n"
         "ld.param.u64 %rd1, [p];\n"
         "cvta.to.global.u64 %rd1, %rd1;\n"
         "ld.global.u32 %r1, [%rd1];\n"
         "{\n.param .b32 x;\n.param .b32 y;\nst.param.b32 [x], %r1;\n"
         "call.uni (y), scale, (x);\nld.param.b32 %r2, [y];\n}\n"
         "ld.global.u32 %r3, [table];\n"
         "add.u32 %r2, %r2, %r3;\n"
         "st.global.u32 [%rd1], %r2;\n"
         "ld.global.u32 %r4, [hidden];\n"
         "st.global.u32 [%rd1+4], %r4;\n"
         "ld.global.u64 %rd2, [chosen];\n"
         "{\n.param .b32 x;\n.param .b32 y;\nst.param.b32 [x], %r1;\n"
         "through : .callprototype (.param .b32 _) _ (.param .b32 _);\n"
         "call (y), %rd2, (x), through;\nld.param.b32 %r5, [y];\n}\n"
         "st.global.u32 [%rd1+8], %r5;\n"
         "ret;\n}\n";

static const char scale_text[] =
    HEAD ".global .align 4 .u32 hidden = 3;\n"
         ".visible .func (.param .b32 r) scale (.param .b32 v)\n"
         "{\n.reg .b32 %r<4>;\nld.param.b32 %r1, [v];\nld.global.u32 %r2, [hidden];\n"
         "mul.lo.u32 %r1, %r1, %r2;\nst.param.b32 [r], %r1;\nret;\n}\n"
         ".visible .global .align 8 .u64 chosen = scale;\n";

static const char table_text[] =
    HEAD ".visible .global .align 4 .b8 table[8] = {100, 0, 0, 0, 1, 0, 0, 0};\n"
         ".weak .func (.param .b32 r) scale (.param .b32 v) { ret; }\n";

static bh_binary binary_of(const char *text) {
    bh_binary binary = {0};
    REQUIRE_OK(bh_binary_from(text, strlen(text), &binary));
    return binary;
}

static bh_compile_options no_cache(void) {
    static char programs[512]; /* the workers under test may be in another folder */
    test_path(programs, sizeof programs, "%s/bin", test_build_dir());
    bh_compile_options options = BH_INIT(options);
    options.flags = BH_COMPILE_NO_CACHE;
    options.compiler_dir = programs;
    return options;
}

TEST_TIMEOUT(linked_files_run_as_one, 60) {
    bh_device device = open_device();
    bh_compile_options options = no_cache();
    bh_binary parts[] = {binary_of(kernel_text), binary_of(scale_text), binary_of(table_text)};
    bh_binary linked = {0};
    REQUIRE_OK(bh_link(parts, 3, &options, &linked));
    bh_binary_info info = BH_INIT(info);
    REQUIRE_OK(bh_binary_get_info(linked, &info));
    CHECK_EQ(info.output, BH_OUTPUT_PTX);
    CHECK_STR_EQ(info.arch, "sm_80");
    CHECK_STR_CONTAINS(info.compiler, "bulkhead ");
    bh_module module = {0};
    bh_kernel kernel = {0};
    REQUIRE_OK(bh_module_load_binary(device, linked, &module));
    REQUIRE_OK(bh_kernel_get(module, "total", &kernel));
    bh_buffer x = words_counting(device, 3, 14);
    REQUIRE_OK(run_now(kernel, BH_SHAPE(1, 1, 1, 1, 1, 1), BH_ARGS(BH_INOUT(x))));
    CHECK_EQ(word_read(x, 0), 142);
    CHECK_EQ(word_read(x, 1), 7);
    CHECK_EQ(word_read(x, 2), 42);
    /* Variables are set by their names, across files too. */
    uint32_t value = 1000;
    REQUIRE_OK(bh_module_global_write(module, "table", 0, &value, sizeof value));
    REQUIRE_OK(run_now(kernel, BH_SHAPE(1, 1, 1, 1, 1, 1), BH_ARGS(BH_INOUT(x))));
    CHECK_EQ(word_read(x, 0), 142 * 3 + 1000);
    /* What is linked can be linked again. */
    bh_binary more[] = {linked, binary_of(HEAD ".visible .global .align 4 .u32 extra = 1;\n")};
    REQUIRE_OK(bh_link(more, 2, &options, &linked));
    REQUIRE_OK(bh_module_load_binary(device, linked, &module));
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(problems_of_a_link_are_named, 60) {
    bh_compile_options options = no_cache();
    bh_binary parts[] = {binary_of(kernel_text), binary_of(scale_text), binary_of(scale_text)};
    bh_binary linked = {42};
    bh_error error;
    char log[2048];
    CHECK_REFUSED(bh_link(parts, 2, &options, &linked), BH_E_COMPILE);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "variable table is not defined");
    CHECK_STR_CONTAINS(error.message, "line 22 of part 0");
    CHECK_REFUSED(bh_link(parts + 1, 2, &options, &linked), BH_E_COMPILE);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "function scale is defined twice");
    CHECK_STR_CONTAINS(error.message, "line 5 of part 1");
    CHECK_STR_CONTAINS(error.message, "line 5 of part 0");
    REQUIRE_OK(bh_compile_log(NULL, log, sizeof log, NULL));
    CHECK_STR_CONTAINS(log, "variable chosen is defined twice");
    CHECK_EQ(linked.id, 42);
    bh_binary named = binary_of("#line 1 \"my.ptx\"\n" HEAD ".visible .global .u32 chosen;\n");
    bh_binary with[] = {parts[1], named};
    CHECK_REFUSED(bh_link(with, 2, &options, &linked), BH_E_COMPILE);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "line 4 of my.ptx");
    bh_binary odd[] = {parts[1], binary_of("no PTX, though it has .version in it\n")};
    CHECK_REFUSED(bh_link(odd, 2, &options, &linked), BH_E_COMPILE);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "line 1 of part 1: the file does not start with .version");
}
