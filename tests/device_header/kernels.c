/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that check themselves, compiled with the device headers in every way that counts. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "support/clang.h"
#include "support/support.h"

enum { WORDS = 32 };

static bh_module compile_and_load(bh_device device, const char *name, const char *flags) {
    bh_module module;
    REQUIRE_OK(bh_module_load_file(device, clang_must_compile(name, flags), &module));
    return module;
}

static void run_checks(bh_device device, bh_module module, const char *name) {
    bh_buffer failed = words_filled(device, WORDS, 0);
    uint32_t lines[WORDS];
    CHECK_OK(
        run_now(get_kernel(module, name), BH_SHAPE(2, 1, 1, 64, 1, 1), BH_ARGS(BH_INOUT(failed))));
    REQUIRE_OK(bh_buffer_read(failed, 0, lines, sizeof lines));
    for (uint32_t i = 0; i < lines[0] && i < WORDS - 2; i++) {
        FAIL("%s: the check on line %u does not hold", name, lines[1 + i]);
    }
    CHECK_OK(bh_buffer_release(failed));
}

static const char *const language[] = {"builtins",   "bits",      "conversions", "rounding",
                                       "block_sync", "warps",     "atomics",     "memory",
                                       "clocks",     "math_names"};
static const char *const library[] = {"halves", "bfloats", "groups", "standard"};

static void run_all(const char *flags) {
    bh_device device = open_device();
    bh_module module = compile_and_load(device, "language", flags);
    for (size_t i = 0; i < sizeof language / sizeof *language; i++) {
        run_checks(device, module, language[i]);
    }
    module = compile_and_load(device, "library", flags);
    for (size_t i = 0; i < sizeof library / sizeof *library; i++) {
        run_checks(device, module, library[i]);
    }
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(kernels_check_out_as_cxx14, 60) {
    run_all("-std=c++14 --cuda-gpu-arch=sm_80");
}

TEST_TIMEOUT(kernels_check_out_as_cxx17_for_sm_90, 60) {
    run_all("-std=c++17 --cuda-gpu-arch=sm_90");
}

TEST_TIMEOUT(kernels_check_out_as_cxx20, 60) {
    run_all("-std=c++20 --cuda-gpu-arch=sm_86");
}

TEST_TIMEOUT(kernels_check_out_without_any_library, 60) {
    run_all("-std=c++17 --cuda-gpu-arch=sm_80 -nostdlibinc -nostdinc++");
}

TEST_TIMEOUT(kernels_check_out_without_optimisation_and_with_debug_information, 60) {
    run_all("-std=c++17 --cuda-gpu-arch=sm_80 -O0 -g");
}

TEST_TIMEOUT(headers_compile_for_every_architecture_clang_knows, 120) {
    static const char *const archs[] = {"sm_75", "sm_80",  "sm_86",  "sm_87", "sm_89",
                                        "sm_90", "sm_90a", "sm_100", "sm_120"};
    unsigned known = 0;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        char flags[64];
        snprintf(flags, sizeof flags, "-std=c++17 --cuda-gpu-arch=%s", archs[i]);
        if (clang_knows(archs[i])) {
            known++;
            clang_must_compile(strcmp(archs[i], "sm_75") == 0 ? "math" : "library", flags);
        }
    }
    CHECK_GE(known, 5);
}

TEST_TIMEOUT(every_header_compiles_by_itself, 120) {
    char folder[4096], flags[512];
    test_path(folder, sizeof folder, "%s/src/compile/device", test_source_dir());
    DIR *directory = opendir(folder);
    REQUIRE(directory != NULL);
    unsigned count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        /* bulkhead_half_common.h is a part of two others */
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "bulkhead_half_common.h") == 0) {
            continue;
        }
        snprintf(flags, sizeof flags,
                 "-std=c++14 --cuda-gpu-arch=sm_80 -fsyntax-only -nostdlibinc -include %s",
                 entry->d_name);
        clang_must_compile_with(NULL, flags, false);
        count++;
    }
    closedir(directory);
    CHECK_GT(count, 50);
}

static char printed[256];
static size_t printed_length;

static void on_print(void *context, const bh_event *event) {
    (void)context;
    const char *text = event->text;
    size_t length = event->length;
    if (printed_length + length < sizeof printed) {
        memcpy(printed + printed_length, text, length);
        printed_length += length;
    }
}

TEST_TIMEOUT(printf_assert_and_trap_reach_the_program, 60) {
    bh_device device = open_device();
    bh_module module = compile_and_load(device, "language", "-std=c++17 --cuda-gpu-arch=sm_80");
    watch_for(device, BH_EVENT_PRINT, on_print, NULL);
    CHECK_OK(run_now(get_kernel(module, "prints"), BH_SHAPE(2, 1, 1, 64, 1, 1), BH_NO_ARGS));
    CHECK_OK(run_now(get_kernel(module, "asserts"), BH_SHAPE(1, 1, 1, 64, 1, 1), BH_ARGS(64)));
    bh_ticket ticket =
        submit(get_kernel(module, "asserts"), BH_SHAPE(1, 1, 1, 64, 1, 1), BH_ARGS(60), NULL);
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    bh_error why;
    CHECK_STATUS(bh_ticket_error(ticket, &why), BH_E_FAULT);
    if (is_cpu(device)) {
        CHECK_STR_CONTAINS(why.message, "(int)threadIdx.x < limit");
        CHECK_STR_CONTAINS(why.message, "language.cu");
    }
    CHECK_OK(bh_module_accept(module));
    CHECK_STATUS(run_now(get_kernel(module, "traps"), BH_SHAPE(1, 1, 1, 1, 1, 1), BH_NO_ARGS),
                 BH_E_FAULT);
    CHECK_OK(bh_device_close(device));
    /* What the failed assertion says comes after it. */
    static const char expected[] = "42 text 1.50 x -5 %\nno arguments\n";
    CHECK_GE(strlen(printed), strlen(expected));
    CHECK_MEM_EQ(printed, expected, strlen(expected));
}

TEST(what_is_not_there_is_refused_by_name) {
    CHECK(clang_compile("refused", "-std=c++17 --cuda-gpu-arch=sm_80 -DMANAGED") == NULL);
    CHECK_STR_CONTAINS(clang_said(), "__managed__ variables are not supported");
    CHECK(clang_compile("refused", "-std=c++17 --cuda-gpu-arch=sm_80 -DCLUSTER") == NULL);
    CHECK_STR_CONTAINS(clang_said(), "__cluster_dims__ is not supported");
    CHECK(clang_compile("refused", "-std=c++17 --cuda-gpu-arch=sm_60") == NULL);
    CHECK_STR_CONTAINS(clang_said(), "sm_70 or later");
    REQUIRE(clang_compile("refused", "-std=c++17 --cuda-gpu-arch=sm_80") != NULL);
}

/* A GPU has a heap for kernels. */
TEST(a_device_without_a_heap_refuses_new) {
    const char *path = clang_must_compile("refused", "-std=c++17 --cuda-gpu-arch=sm_80 -DHEAP");
    bh_device device = open_device();
    bh_module module;
    bh_status status = bh_module_load_file(device, path, &module);
    CHECK_STATUS(status, is_cpu(device) ? BH_E_UNSUPPORTED : BH_OK);
    if (is_cpu(device)) {
        bh_error why;
        bh_last_error(&why);
        CHECK_STR_CONTAINS(why.message, "no kernel heap");
    }
    CHECK_OK(bh_device_close(device));
}
