/* SPDX-License-Identifier: Apache-2.0 */
/* Options and arguments that are wrong: each is refused by name, and nothing is started. */
#include "support/compile.h"

static const char source[] = "__global__ void f() {}\n";

/* `field`: what the message must name. */
static void check_option(const bh_compile_options *options, bh_status status, const char *field) {
    bh_binary binary = {42};
    bh_error error;
    CHECK_REFUSED(bh_compile(source, options, &binary), status);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, field);
    CHECK_EQ(binary.id, 42);
}

TEST(numbers_that_mean_nothing_are_refused) {
    struct {
        size_t offset;
        uint64_t value;
        const char *name;
        size_t bytes;
    } wrong[] = {
        {offsetof(bh_compile_options, size), 0, "size", 4},
        {offsetof(bh_compile_options, size), 7, "size", 4},
        {offsetof(bh_compile_options, size), UINT32_MAX, "size", 4},
        {offsetof(bh_compile_options, flags), 1u << 7, "0x80", 4},
        {offsetof(bh_compile_options, flags), UINT32_MAX, "flags", 4},
        {offsetof(bh_compile_options, compiler), 3, "compiler", 4},
        {offsetof(bh_compile_options, output), 5, "output", 4},
        {offsetof(bh_compile_options, output), 6, "output", 4},
        {offsetof(bh_compile_options, standard), 11, "standard", 4},
        {offsetof(bh_compile_options, standard), 23, "standard", 4},
        {offsetof(bh_compile_options, max_registers), 15, "max_registers", 4},
        {offsetof(bh_compile_options, max_registers), 256, "max_registers", 4},
        {offsetof(bh_compile_options, timeout_ns), 1, "timeout_ns", 8},
        {offsetof(bh_compile_options, memory_limit), 4096, "memory_limit", 8},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        bh_compile_options options = stand_in_options();
        memcpy((char *)&options + wrong[i].offset, &wrong[i].value, wrong[i].bytes);
        check_option(&options, BH_E_INVALID, wrong[i].name);
    }
    CHECK_EQ(stand_in_runs(), 0);
}

TEST(unknown_architectures_are_refused) {
    const char *const wrong[] = {"",         "sm_",       "sm_9",      "90",     "sm_90b",
                                 "compute_", "compute_9", "compute80", "sm_900", "SM_80",
                                 "sm_90aa",  "sm_-90",    "sm_30"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        bh_compile_options options = stand_in_options();
        options.arch = wrong[i];
        check_option(&options, BH_E_INVALID, "arch");
    }
    const char *const right[] = {"sm_80", "sm_86", "sm_90a", "sm_100", "sm_120", "sm_100f"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        bh_compile_options options = stand_in_options();
        options.arch = right[i];
        bh_binary binary = compile_ok(source, &options);
        CHECK_STR_EQ(info_of(binary).arch, right[i]);
    }
}

TEST(lists_are_checked_element_by_element) {
    static char long_text[70000];
    memset(long_text, 'a', sizeof long_text - 1);
    struct {
        const char *list[3];
        size_t count;
        const char *name;
    } defines[] = {{{"A", NULL}, 2, "defines[1]"},
                   {{""}, 1, "defines[0]"},
                   {{"1A"}, 1, "defines[0]"},
                   {{"A B"}, 1, "defines[0]"},
                   {{"A=1", "B", "A=2"}, 3, "defines[2]"},
                   {{"A=1\n#error"}, 1, "defines[0]"},
                   {{long_text}, 1, "defines[0]"},
                   {{"-DA"}, 1, "defines[0]"},
                   {{"F(x)=x"}, 1, "defines[0]"}};
    for (size_t i = 0; i < sizeof defines / sizeof *defines; i++) {
        bh_compile_options options = stand_in_options();
        options.defines = defines[i].list;
        options.define_count = defines[i].count;
        check_option(&options, BH_E_INVALID, defines[i].name);
    }
    bh_compile_options options = stand_in_options();
    options.define_count = 1;
    check_option(&options, BH_E_INVALID, "defines");
    options = stand_in_options();
    options.include_path_count = SIZE_MAX;
    check_option(&options, BH_E_INVALID, "include_paths");
    const char *expressions[] = {"a; b", "a\nb", " ", "\"a\""};
    for (size_t i = 0; i < 4; i++) {
        options = stand_in_options();
        options.expressions = &expressions[i];
        options.expression_count = 1;
        check_option(&options, BH_E_INVALID, "expressions[0]");
    }
    const char *extra[] = {"--std=c++20", "-arch=sm_90", "--gpu-architecture=sm_80", "-o",
                           "--maxrregcount=4"};
    for (size_t i = 0; i < sizeof extra / sizeof *extra; i++) {
        options = stand_in_options();
        options.extra = &extra[i];
        options.extra_count = 1;
        check_option(&options, BH_E_INVALID, "extra[0]");
    }
    bh_header headers[] = {{"a.h", ""},   {"a.h", ""}, {NULL, ""},
                           {"b.h", NULL}, {"", ""},    {"a\"b", ""}};
    options = stand_in_options();
    options.headers = headers;
    options.header_count = 2;
    check_option(&options, BH_E_INVALID, "headers[1]");
    for (size_t i = 2; i < sizeof headers / sizeof *headers; i++) {
        options.headers = &headers[i];
        options.header_count = 1;
        check_option(&options, BH_E_INVALID, "headers[0]");
    }
    options = stand_in_options();
    options.name = "a\"b.cu";
    check_option(&options, BH_E_INVALID, "name");
    CHECK_EQ(stand_in_runs(), 0);
}

TEST(options_that_contradict_each_other_are_refused) {
    bh_compile_options options = stand_in_options();
    options.output = BH_OUTPUT_LTOIR;
    options.flags = BH_COMPILE_DEBUG;
    check_option(&options, BH_E_INVALID, "BH_COMPILE_DEBUG");
    options = stand_in_options();
    options.output = BH_OUTPUT_CUBIN;
    options.compiler = BH_COMPILER_CLANG;
    check_option(&options, BH_E_UNSUPPORTED, "clang");
    options.output |= BH_OUTPUT_PTX;
    check_option(&options, BH_E_UNSUPPORTED, "clang");
    options = stand_in_options();
    options.arch = "compute_90";
    options.output = BH_OUTPUT_CUBIN;
    check_option(&options, BH_E_INVALID, "compute_90");
    options.output |= BH_OUTPUT_PTX;
    check_option(&options, BH_E_INVALID, "compute_90");
    bh_device device = open_device();
    bh_module module = {0};
    options = stand_in_options();
    options.output = BH_OUTPUT_LTOIR;
    CHECK_REFUSED(bh_module_compile(device, source, &options, &module), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_compile(device, source, &options, &module, NULL), BH_E_INVALID);
    if (is_cpu(device)) {
        options.output = BH_OUTPUT_CUBIN;
        CHECK_REFUSED(bh_module_compile(device, source, &options, &module), BH_E_UNSUPPORTED);
    }
    CHECK_OK(bh_device_close(device));
}

TEST(nothing_where_something_must_be) {
    bh_compile_options options = stand_in_options();
    bh_binary binary = compile_ok(source, &options), none = {0}, forged = {binary.id + 1};
    bh_module module = {0};
    bh_binary_info info = BH_INIT(info), unsized = {0};
    bh_cache_info cache = {0};
    bh_compiler_entry entry = {0};
    const char *text;
    size_t count;
    bh_device device = open_device(), closed = {0};
    CHECK_REFUSED(bh_compile(NULL, &options, &binary), BH_E_INVALID);
    CHECK_REFUSED(bh_compile(source, &options, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_module_compile(device, NULL, &options, &module), BH_E_INVALID);
    CHECK_REFUSED(bh_module_compile(device, source, &options, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_module_compile(closed, source, &options, &module), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_compile(device, NULL, &options, &module, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_compile(device, source, &options, NULL, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_submit_compile(closed, source, &options, &module, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_link(NULL, 1, NULL, &none), BH_E_INVALID);
    CHECK_REFUSED(bh_link(&binary, 0, NULL, &none), BH_E_INVALID);
    CHECK_REFUSED(bh_link(&binary, SIZE_MAX, NULL, &none), BH_E_INVALID);
    CHECK_REFUSED(bh_link(&binary, 1, NULL, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_link(&forged, 1, NULL, &none), BH_E_INVALID);
    options.output = BH_OUTPUT_CUBIN;
    CHECK_REFUSED(bh_link(&binary, 1, &options, &none), BH_E_UNSUPPORTED); /* no nvJitLink */
    options.output = BH_OUTPUT_LTOIR;
    CHECK_REFUSED(bh_link(&binary, 1, &options, &none), BH_E_INVALID);
    options.output = BH_OUTPUT_AUTO;
    options.standard = 17;
    CHECK_REFUSED(bh_link(&binary, 1, &options, &none), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_from(NULL, 1, &none), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_from("x", 0, &none), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_from("x", SIZE_MAX, &none), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_from("x", 1, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_from("nothing", 7, &none), BH_E_LOAD);
    CHECK_REFUSED(bh_binary_get_info(none, &info), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_get_info(forged, &info), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_get_info((bh_binary){device.id}, &info), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_get_info((bh_binary){UINT64_MAX}, &info), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_get_info(binary, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_get_info(binary, &unsized), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_lowered(binary, NULL, &text), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_lowered(binary, "f", NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_lowered(binary, "f", &text), BH_E_NOT_FOUND);
    CHECK_REFUSED(bh_binary_lowered(forged, "f", &text), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_release(none), BH_E_INVALID);
    CHECK_REFUSED(bh_binary_release(forged), BH_E_INVALID);
    CHECK_REFUSED(bh_module_load_binary(device, none, &module), BH_E_INVALID);
    CHECK_REFUSED(bh_module_load_binary(device, binary, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_module_load_binary(closed, binary, &module), BH_E_INVALID);
    CHECK_REFUSED(bh_module_get_binary(module, &none), BH_E_INVALID);
    CHECK_REFUSED(bh_compile_log(NULL, NULL, 1, &count), BH_E_INVALID);
    CHECK_OK(bh_compile_log(NULL, NULL, 0, NULL));
    CHECK_REFUSED(bh_compile_log(&(bh_ticket){0, 0}, NULL, 1, &count), BH_E_INVALID);
    CHECK_REFUSED(bh_compile_log(&(bh_ticket){1, 1}, NULL, 0, &count), BH_E_NOT_FOUND);
    CHECK_REFUSED(bh_cache_get_info(NULL, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_cache_get_info(NULL, &cache), BH_E_INVALID);
    bh_cache_entry cached;
    CHECK_REFUSED(bh_cache_list(NULL, NULL, sizeof cached, 1, &count), BH_E_INVALID);
    CHECK_REFUSED(bh_cache_list(NULL, &cached, sizeof cached, 1, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_cache_list(NULL, &cached, 7, 1, &count), BH_E_INVALID);
    CHECK_REFUSED(bh_compiler_list(NULL, sizeof entry, 1, &count), BH_E_INVALID);
    CHECK_REFUSED(bh_compiler_list(&entry, sizeof entry, 1, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_compiler_list(&entry, 4, 1, &count), BH_E_INVALID);
    CHECK_REFUSED(bh_device_get_info((bh_device){binary.id}, &(bh_device_info){.size = 304}),
                  BH_E_INVALID);
    CHECK_OK(bh_module_load_binary(device, binary, &module));
    bh_module plain = load_module(device, ptx_basic);
    CHECK_REFUSED(bh_module_get_binary(plain, &none), BH_E_NOT_FOUND);
    CHECK_OK(bh_device_close(device));
}

TEST(without_a_compiler_the_reasons_are_reported) {
    setenv("BULKHEAD_TEST_NO_COMPILER", "1", 1);
    bh_compile_options options = stand_in_options();
    bh_error error;
    check_option(&options, BH_E_UNSUPPORTED, "there is none in this test");
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.fix, "apt install clang-19");
    options.compiler_dir = "/no/such/folder";
    check_option(&options, BH_E_NOT_FOUND, "/no/such/folder");
}
