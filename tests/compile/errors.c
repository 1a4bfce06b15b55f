/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of a compiler, errors found before it runs, and their messages. */
#include <stdlib.h>
#include <string.h>

#include "compiler.h"

static const char good[] = "extern \"C\" __global__ void k(int *p) { *p = 1; }\n";

TEST_BOTH(the_first_error_is_the_message_and_the_log_has_all) {
    bh__compile_job job = source_job(compiler, "__device__ int unused;\n"
                                               "extern \"C\" __global__ void k(int *p) {\n"
                                               "    *p = nothing_like_it;\n"
                                               "    another_one();\n"
                                               "}\n");
    job.name = text("my kernel.cu");
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
    CHECK_STR_CONTAINS(o.answer.error.message, "my kernel.cu:3:");
    CHECK_STR_CONTAINS(o.answer.error.message, "nothing_like_it");
    CHECK(strchr(o.answer.error.message, '\n') == NULL);
    CHECK(o.answer.error.fix[0] != 0);
    const char *log = (const char *)o.answer.log.data;
    CHECK_STR_CONTAINS(log, "nothing_like_it");
    CHECK_STR_CONTAINS(log, "another_one");
    CHECK(strstr(log, "search starts here") == NULL);
    CHECK_EQ(o.answer.output.count, 0);
    CHECK(o.answer.version.count > 0);
}

TEST_BOTH(warnings_are_in_the_log_of_what_compiles) {
    bh__compile_job job =
        source_job(compiler, "#warning look here\n"
                             "extern \"C\" __global__ void k(int *p) { *p = 1; }\n");
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_CONTAINS((const char *)o.answer.log.data, "look here");
}

TEST_BOTH(an_unknown_architecture_is_refused_with_those_known) {
    static const char *const unknown[] = {"sm_81", "sm_999"};
    for (size_t i = 0; i < 2; i++) {
        bh__compile_job job = source_job(compiler, good);
        job.arch = text(unknown[i]);
        outcome o = run_job(&job);
        REQUIRE_ANSWER(o, BH_E_UNSUPPORTED);
        CHECK_STR_CONTAINS(o.answer.error.message, unknown[i]);
        CHECK_STR_CONTAINS(o.answer.error.message, "sm_80");
        CHECK_STR_CONTAINS(o.answer.error.message, "sm_90");
    }
}

TEST_BOTH(architectures_with_a_suffix_compile) {
    bh__compile_job job = source_job(compiler, good);
    job.arch = text("sm_90a");
    outcome o = run_job(&job);
    if (o.answered && o.answer.error.status == BH_E_UNSUPPORTED) SKIP("%s", o.answer.error.message);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_CONTAINS((const char *)o.answer.output.data, ".target sm_90a");
}

TEST_TIMEOUT(clang_asks_for_ptx_that_drivers_load, 60) {
    need_compiler(BH_COMPILER_CLANG);
    static const char *const wanted[][2] = {
        {"sm_80", ".version 7.8"}, {"sm_89", ".version 7.8"}, {"sm_90", ".version 8.0"}};
    static const char newest_of_clang_16[] = ".version 7.8";
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        bh__compile_job job = source_job(BH_COMPILER_CLANG, good);
        job.arch = text(wanted[i][0]);
        outcome o = run_job(&job);
        REQUIRE_ANSWER(o, BH_OK);
        const char *ptx = (const char *)o.answer.output.data;
        if (!strstr(ptx, newest_of_clang_16)) CHECK_STR_CONTAINS(ptx, wanted[i][1]);
        CHECK_STR_CONTAINS(ptx, wanted[i][0]);
    }
}

/* Refused before a compiler is looked for: these need none. */
static void check_refused(const bh__compile_job *job, bh_status status, const char *named) {
    outcome o = run_job(job);
    REQUIRE_ANSWER(o, status);
    CHECK_STR_CONTAINS(o.answer.error.message, named);
    CHECK(o.answer.error.fix[0] != 0);
}

TEST_TIMEOUT(options_that_make_no_sense_are_refused_by_name, 60) {
    bh__compile_job job;
    static const char *const archs[] = {"",           "sm_", "sm_9",    "sm_90b", "sm_90aa",
                                        "compute_90", "90",  "sm_1000", "SM_90",  "sm_90 "};
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        job = source_job(BH_COMPILER_CLANG, good);
        job.arch = text(archs[i]);
        check_refused(&job, BH_E_INVALID, "is not an architecture");
    }
    job = source_job(BH_COMPILER_CLANG, good);
    job.standard = 11;
    check_refused(&job, BH_E_INVALID, "standard is 11");
    job = source_job(7, good);
    check_refused(&job, BH_E_INVALID, "compiler 7");
    job = source_job(BH_COMPILER_CLANG, good);
    job.output = 9;
    check_refused(&job, BH_E_INVALID, "output 9");
    job = source_job(BH_COMPILER_CLANG, good);
    job.flags = 1u << 20;
    check_refused(&job, BH_E_INVALID, "0x100000");
    job = source_job(BH_COMPILER_CLANG, good);
    job.max_registers = 300;
    check_refused(&job, BH_E_INVALID, "max_registers is 300");
    job = source_job(BH_COMPILER_CLANG, good);
    job.defines = LIST(text("OK=1"), text("3=4"));
    check_refused(&job, BH_E_INVALID, "'3=4'");
    job = source_job(BH_COMPILER_CLANG, good);
    job.include_paths = LIST(text("relative"));
    check_refused(&job, BH_E_INVALID, "'relative'");
    job = source_job(BH_COMPILER_CLANG, good);
    job.expressions = LIST(text("k; int x"));
    check_refused(&job, BH_E_INVALID, "'k; int x'");
}

TEST_TIMEOUT(options_that_contradict_each_other_are_refused, 60) {
    bh__compile_job job = source_job(BH_COMPILER_NVRTC, good);
    job.output = BH_OUTPUT_LTOIR;
    job.flags = BH_COMPILE_DEBUG;
    check_refused(&job, BH_E_INVALID, "BH_COMPILE_DEBUG");
    job = source_job(BH_COMPILER_NVRTC, good);
    job.flags = BH_COMPILE_DEBUG | BH_COMPILE_FAST_MATH;
    check_refused(&job, BH_E_INVALID, "BH_COMPILE_FAST_MATH");
    job = source_job(BH_COMPILER_CLANG, good);
    job.output = BH_OUTPUT_CUBIN;
    check_refused(&job, BH_E_UNSUPPORTED, "NVRTC");
    job.output = BH_OUTPUT_LTOIR;
    check_refused(&job, BH_E_UNSUPPORTED, "LTO-IR");
}

TEST_TIMEOUT(extra_flags_that_say_what_options_say_are_refused, 60) {
    static const char *const flags[][2] = {{"-arch=sm_90", "arch"},
                                           {"--gpu-architecture=sm_90", "arch"},
                                           {"--cuda-gpu-arch=sm_90", "arch"},
                                           {"-std=c++20", "standard"},
                                           {"-I/tmp", "include_paths"},
                                           {"-DX", "defines"},
                                           {"-use_fast_math", "BH_COMPILE_FAST_MATH"},
                                           {"-G", "BH_COMPILE_DEBUG"},
                                           {"-maxrregcount=32", "max_registers"},
                                           {"-dlto", "output"},
                                           {"-rdc=true", "BH_COMPILE_RELOCATABLE"},
                                           {"-o/tmp/x", "output"},
                                           {"-isystem", "include_paths"}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        bh__compile_job job = source_job(BH_COMPILER_NVRTC, good);
        job.extra = LIST(text("-w"), text(flags[i][0]));
        outcome o = run_job(&job);
        REQUIRE_ANSWER(o, BH_E_INVALID);
        CHECK_STR_CONTAINS(o.answer.error.message, flags[i][0]);
        CHECK_STR_CONTAINS(o.answer.error.fix, flags[i][1]);
    }
}

TEST_BOTH(extra_flags_reach_the_compiler_and_unknown_ones_are_named) {
    bh__compile_job job =
        source_job(compiler, "#warning look here\n"
                             "extern \"C\" __global__ void k(int *p) { *p = 1; }\n");
    job.extra = LIST(text("-w"));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK(strstr((const char *)o.answer.log.data, "look here") == NULL);
    job.extra = LIST(text("--frobnicate"));
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_INVALID);
    CHECK_STR_CONTAINS(o.answer.error.message, "frobnicate");
}

TEST_TIMEOUT(a_compiler_that_is_not_there_is_named, 60) {
    bh__compile_job job = source_job(BH_COMPILER_CLANG, good);
    job.compiler_path = text("/nowhere/clang");
    check_refused(&job, BH_E_UNSUPPORTED, "/nowhere/clang");
    job = source_job(BH_COMPILER_NVRTC, good);
    job.compiler_path = text("/nowhere/libnvrtc.so");
    check_refused(&job, BH_E_UNSUPPORTED, "/nowhere/libnvrtc.so");
}
