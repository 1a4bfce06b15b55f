/* SPDX-License-Identifier: Apache-2.0 */
/* Linking with nvJitLink: link-time optimisation of two files against one file whole, cubins, and
 * what is refused. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "compiler.h"

#define PART_A                                                                                     \
    "extern __device__ float weigh(float x, int i);\n"                                             \
    "extern \"C\" __global__ void k(float *p) { p[threadIdx.x] = weigh(p[threadIdx.x], "           \
    "threadIdx.x); }\n"
#define PART_B                                                                                     \
    "__device__ float table[4] = {1, 10, 100, 1000};\n"                                            \
    "__device__ float weigh(float x, int i) { return x * table[i & 3] + 0.5f; }\n"

static bh__bytes compile(const char *source, uint32_t output, uint32_t flags) {
    bh__compile_job job = source_job(BH_COMPILER_NVRTC, source);
    job.output = output;
    job.flags = flags;
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    return o.answer.output;
}

static bh__compile_job link_job(uint32_t output, bh__texts inputs) {
    return (bh__compile_job){.op = BH__COMPILE_LINK,
                             .output = output,
                             .memory_limit = (uint64_t)8 << 30,
                             .time_limit_ns = 60 * BH__NS_PER_S,
                             .arch = text("sm_80"),
                             .inputs = inputs};
}

static void need_linker(void) {
    need_compiler(BH_COMPILER_NVRTC);
    need_compiler(BH__COMPILER_NVJITLINK);
}

TEST_TIMEOUT(two_files_linked_at_link_time_run_as_one_file_does, 120) {
    need_linker();
    bh__bytes parts[2] = {compile(PART_A, BH_OUTPUT_LTOIR, 0), compile(PART_B, BH_OUTPUT_LTOIR, 0)};
    bh__compile_job job = link_job(BH_OUTPUT_PTX, (bh__texts){parts, 2});
    outcome linked = run_job(&job);
    REQUIRE_ANSWER(linked, BH_OK);
    CHECK_STR_CONTAINS((const char *)linked.answer.version.data, "nvJitLink ");
    bh__compile_answer whole = {.output = compile(PART_B PART_A, BH_OUTPUT_PTX, 0)};
    char *one = run_ptx(&whole, "-b 4 -- inout:f32:1,2,3,4");
    char *two = run_ptx(&linked.answer, "-b 4 -- inout:f32:1,2,3,4");
    CHECK_STR_EQ(one, "ARG0 f32[4] 1.5 20.5 300.5 4000.5\n");
    CHECK_STR_EQ(two, one);
    /* Optimised across files: nothing is called any more. */
    CHECK(strstr((const char *)linked.answer.output.data, "call") == NULL);

    job.output = BH_OUTPUT_CUBIN;
    outcome cubin = run_job(&job);
    REQUIRE_ANSWER(cubin, BH_OK);
    CHECK_MEM_EQ(cubin.answer.output.data, ELFMAG, SELFMAG);
}

TEST_TIMEOUT(ptx_and_cubins_and_ltoir_link_together, 120) {
    need_linker();
    bh__bytes a = compile(PART_A, BH_OUTPUT_PTX, BH_COMPILE_RELOCATABLE);
    uint32_t outputs[] = {BH_OUTPUT_PTX, BH_OUTPUT_CUBIN, BH_OUTPUT_LTOIR};
    for (size_t i = 0; i < 3; i++) {
        bh__bytes parts[2] = {a, compile(PART_B, outputs[i], BH_COMPILE_RELOCATABLE)};
        bh__compile_job job = link_job(BH_OUTPUT_CUBIN, (bh__texts){parts, 2});
        outcome o = run_job(&job);
        REQUIRE_ANSWER(o, BH_OK);
        CHECK_MEM_EQ(o.answer.output.data, ELFMAG, SELFMAG);
    }
    bh__bytes parts[2] = {a, compile(PART_B, BH_OUTPUT_LTOIR, 0)};
    bh__compile_job job = link_job(BH_OUTPUT_PTX, (bh__texts){parts, 2});
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_UNSUPPORTED);
    CHECK_STR_CONTAINS(o.answer.error.message, "input 1 is LTO-IR");
}

TEST_TIMEOUT(clangs_ptx_links_too, 120) {
    need_linker();
    need_compiler(BH_COMPILER_CLANG);
    bh__compile_job job = source_job(BH_COMPILER_CLANG, PART_B);
    job.flags = BH_COMPILE_RELOCATABLE;
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    bh__bytes parts[2] = {compile(PART_A, BH_OUTPUT_CUBIN, BH_COMPILE_RELOCATABLE),
                          o.answer.output};
    job = link_job(BH_OUTPUT_CUBIN, (bh__texts){parts, 2});
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_MEM_EQ(o.answer.output.data, ELFMAG, SELFMAG);
}

TEST_TIMEOUT(what_is_missing_is_named, 60) {
    need_linker();
    bh__bytes parts[1] = {compile(PART_A, BH_OUTPUT_LTOIR, 0)};
    bh__compile_job job = link_job(BH_OUTPUT_CUBIN, (bh__texts){parts, 1});
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
    CHECK_STR_CONTAINS((const char *)o.answer.log.data, "weigh");
    CHECK_STR_CONTAINS(o.answer.error.message, "weigh");
}

static const char *log_of(const outcome *o) {
    return o->answer.log.data != NULL ? (const char *)o->answer.log.data : "";
}

/* nvJitLink prints these to standard error, and succeeds. */
TEST_TIMEOUT(what_is_defined_twice_is_an_error_with_nvjitlink, 120) {
    need_linker();
    static const uint32_t outputs[] = {BH_OUTPUT_CUBIN, BH_OUTPUT_PTX, BH_OUTPUT_LTOIR};
    for (size_t i = 0; i < 3; i++) {
        bh__bytes part = compile("__device__ float table[4] = {1, 10, 100, 1000};\n", outputs[i],
                                 BH_COMPILE_RELOCATABLE);
        bh__bytes parts[2] = {part, part};
        bh__compile_job job = link_job(BH_OUTPUT_CUBIN, (bh__texts){parts, 2});
        job.input_names = LIST(text("first.cu"), text(""));
        outcome o = run_job(&job);
        REQUIRE_ANSWER(o, BH_E_COMPILE);
        CHECK_STR_CONTAINS(o.answer.error.message, "table");
        CHECK_STR_CONTAINS(o.answer.error.message, "part 1");
        if (outputs[i] != BH_OUTPUT_LTOIR) CHECK_STR_CONTAINS(o.answer.error.message, "first.cu");
        if (outputs[i] == BH_OUTPUT_PTX) CHECK_STR_CONTAINS(o.answer.error.message, " of first.cu");
        CHECK_STR_CONTAINS(o.answer.error.fix, "rename");
    }
}

TEST_TIMEOUT(declarations_that_do_not_agree_are_an_error_with_nvjitlink, 120) {
    need_linker();
    bh__bytes parts[2] = {
        compile("extern __device__ int x;\n"
                "extern \"C\" __global__ void k(int *p) { *p = x; }\n",
                BH_OUTPUT_CUBIN, BH_COMPILE_RELOCATABLE),
        compile("__device__ double x = 3;\n", BH_OUTPUT_CUBIN, BH_COMPILE_RELOCATABLE)};
    bh__compile_job job = link_job(BH_OUTPUT_CUBIN, (bh__texts){parts, 2});
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
    CHECK_STR_CONTAINS(o.answer.error.message, "doesn't match for 'x'");
    CHECK_STR_CONTAINS(o.answer.error.fix, "the same");
}

TEST_TIMEOUT(what_is_missing_in_ltoir_is_named_with_ptx_too, 120) {
    need_linker();
    bh__bytes parts[1] = {compile(PART_A, BH_OUTPUT_LTOIR, 0)};
    bh__compile_job job = link_job(BH_OUTPUT_PTX, (bh__texts){parts, 1});
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
    CHECK_STR_CONTAINS(o.answer.error.message, "weigh");
    CHECK_STR_CONTAINS(o.answer.error.message, "is not defined");
    CHECK_STR_CONTAINS(log_of(&o), "weigh");
}

/* It does not take PTX that begins with #line, as the command passes it. */
TEST_TIMEOUT(ptx_that_says_its_name_links_to_a_cubin, 60) {
    need_linker();
    bh__compile_job job = link_job(
        BH_OUTPUT_CUBIN,
        LIST(text("\n// text\n#line 1 \"a.ptx\"\n.version 7.8\n.target sm_80\n.address_size 64\n"
                  ".visible .entry k() { ret; }\n")));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_MEM_EQ(o.answer.output.data, ELFMAG, SELFMAG);
}

#define STATIC_KERNEL(value, other)                                                                \
    "static __global__ void k(int *p) { *p = " value "; }\n"                                       \
    "extern \"C\" __global__ void " other "(int *p) { *p = 3; }\n"

static bh__bytes compile_static(const char *source, uint32_t output) {
    bh__compile_job job = source_job(BH_COMPILER_NVRTC, source);
    job.output = output;
    job.flags = BH_COMPILE_RELOCATABLE;
    job.expressions = LIST(text("k"));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    return o.answer.output;
}

/* A name must not mean another file's kernel. */
TEST_TIMEOUT(static_kernels_of_one_name_are_told_apart_or_refused, 120) {
    need_linker();
    static const struct {
        uint32_t from, to;
    } cases[] = {{BH_OUTPUT_PTX, BH_OUTPUT_CUBIN},
                 {BH_OUTPUT_CUBIN, BH_OUTPUT_CUBIN},
                 {BH_OUTPUT_LTOIR, BH_OUTPUT_CUBIN},
                 {BH_OUTPUT_LTOIR, BH_OUTPUT_PTX},
                 {BH_OUTPUT_PTX, BH_OUTPUT_PTX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bh__bytes parts[2] = {compile_static(STATIC_KERNEL("1", "one"), cases[i].from),
                              compile_static(STATIC_KERNEL("2", "two"), cases[i].from)};
        bh__compile_job job = link_job(cases[i].to, (bh__texts){parts, 2});
        job.expressions = LIST(text("_Z1kPi"), text("_Z1kPi"));
        job.expression_inputs = LIST(text("0"), text("1"));
        outcome o = run_job(&job);
        if (cases[i].from == BH_OUTPUT_PTX && cases[i].to == BH_OUTPUT_PTX) {
            REQUIRE_ANSWER(o, BH_OK);
            REQUIRE_EQ(o.answer.lowered.count, 2);
            CHECK_STR_EQ((const char *)o.answer.lowered.list[0].data, "_Z1kPi");
            CHECK_STR_EQ((const char *)o.answer.lowered.list[1].data, "_Z1kPi$link1_1");
        } else {
            REQUIRE_ANSWER(o, BH_E_COMPILE);
            CHECK_STR_CONTAINS(o.answer.error.message, "several parts have a static kernel _Z1kPi");
        }
        job.expressions = LIST(text("_Z1kPi"));
        job.expression_inputs = LIST(text("2"));
        o = run_job(&job);
        CHECK(o.answer.error.status != BH_OK);
        job.expression_inputs = (bh__texts){NULL, 0};
        o = run_job(&job);
        CHECK_EQ(o.answer.error.status, BH_E_INVALID);
    }
}

TEST_TIMEOUT(invalid_inputs_are_refused, 60) {
    bh__compile_job job = link_job(BH_OUTPUT_CUBIN, LIST(text("what is this?")));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_INVALID);
    CHECK_STR_CONTAINS(o.answer.error.message, "input 0 of 13 bytes");
    job = link_job(BH_OUTPUT_CUBIN, (bh__texts){NULL, 0});
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_INVALID);
    job = link_job(BH_OUTPUT_LTOIR, LIST(text(".version 8.0\n")));
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_INVALID);
}

/* LTO-IR of a version that nvJitLink does not know, and a damaged one: an answer, not a crash. */
TEST_TIMEOUT(unreadable_ltoir_is_reported, 120) {
    need_linker();
    bh__bytes good = compile(PART_B, BH_OUTPUT_LTOIR, 0);
    for (int kind = 0; kind < 3; kind++) {
        uint8_t *copy = malloc(good.count);
        REQUIRE(copy != NULL);
        memcpy(copy, good.data, good.count);
        bh__bytes part = {copy, good.count};
        if (kind == 0) copy[5] = 0x7f; /* its version */
        if (kind == 1) part.count /= 2;
        if (kind == 2) memset(copy + 64, 0xa5, good.count - 64);
        bh__compile_job job = link_job(BH_OUTPUT_CUBIN, (bh__texts){&part, 1});
        outcome o = run_job(&job);
        REQUIRE_ANSWER(o, BH_E_COMPILE);
        CHECK_STR_CONTAINS(o.answer.error.message, "cannot read input 0, LTO-IR");
        CHECK_STR_CONTAINS(o.answer.error.message, "another version");
        CHECK(o.answer.error.fix[0] != 0);
        free(copy);
    }
}

/* ---- PTX to PTX, which needs nothing of NVIDIA's ---- */

#define HEAD ".version 7.8\n.target sm_80\n.address_size 64\n"
#define TEXT_A                                                                                     \
    HEAD ".extern .global .align 4 .u32 shift;\n"                                                  \
         ".visible .entry k(.param .u64 p) { .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"                 \
         "ld.param.u64 %rd1, [p]; mov.u32 %r3, %tid.x; mul.wide.u32 %rd2, %r3, 4;\n"               \
         "add.s64 %rd1, %rd1, %rd2; ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [shift];\n"      \
         "add.u32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1; ret; }\n"
#define TEXT_B HEAD ".visible .global .align 4 .u32 shift = 100;\n"

TEST_TIMEOUT(ptx_links_to_ptx_without_nvjitlink, 60) {
    bh__compile_job job = link_job(BH_OUTPUT_PTX, LIST(text(TEXT_A), text(TEXT_B)));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_CONTAINS((const char *)o.answer.version.data, "bulkhead ");
    CHECK_STR_EQ((const char *)o.answer.arch.data, "sm_80");
    char *printed = run_ptx(&o.answer, "-b 2 -- inout:u32:1,2");
    CHECK_STR_EQ(printed, "ARG0 u32[2] 101 102\n");
    job.max_registers = 32;
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_CONTAINS((const char *)o.answer.output.data, ".maxnreg 32");
    job.extra = LIST(text("-O1"));
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_INVALID);
    CHECK_STR_CONTAINS(o.answer.error.message, "-O1");
}

TEST_TIMEOUT(problems_of_ptx_name_their_parts, 60) {
    bh__compile_job job = link_job(BH_OUTPUT_PTX, LIST(text(TEXT_B), text(TEXT_B), text(TEXT_B)));
    job.input_names = LIST(text("first.cu"), text(""), text("third.cu"));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
    CHECK_STR_CONTAINS(o.answer.error.message,
                       "shift is defined twice: on line 4 of part 1, and before on line 4 of "
                       "first.cu");
    CHECK_STR_CONTAINS((const char *)o.answer.log.data, "line 4 of third.cu");
    job = link_job(BH_OUTPUT_PTX, LIST(text(TEXT_A)));
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
    CHECK_STR_CONTAINS(o.answer.error.message, "variable shift is not defined");
    CHECK_STR_CONTAINS(o.answer.error.message, "part 0");
}

static void link_sources(uint32_t compiler) {
    need_compiler(compiler);
    bh__bytes parts[2];
    const char *sources[2] = {PART_A, PART_B};
    for (int i = 0; i < 2; i++) {
        bh__compile_job job = source_job(compiler, sources[i]);
        job.flags = BH_COMPILE_RELOCATABLE | BH_COMPILE_LINE_INFO;
        outcome o = run_job(&job);
        REQUIRE_ANSWER(o, BH_OK);
        parts[i] = o.answer.output;
    }
    bh__compile_job job = link_job(BH_OUTPUT_PTX, (bh__texts){parts, 2});
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    char *printed = run_ptx(&o.answer, "-b 4 -- inout:f32:1,2,3,4");
    CHECK_STR_EQ(printed, "ARG0 f32[4] 1.5 20.5 300.5 4000.5\n");
}

TEST_TIMEOUT(nvrtcs_ptx_links_to_ptx, 120) {
    link_sources(BH_COMPILER_NVRTC);
}

TEST_TIMEOUT(clangs_ptx_links_to_ptx, 120) {
    link_sources(BH_COMPILER_CLANG);
}
