/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling sources with either compiler: results that run, names, options, outputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler.h"

static const char scale_source[] =
    "extern \"C\" __global__ void scale(float *p, float by, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) p[i] = p[i] * by;\n"
    "}\n";

TEST_TIMEOUT(probe_tells_of_all_three, 60) {
    bh__compile_job job = {
        .op = BH__COMPILE_PROBE, .memory_limit = (uint64_t)8 << 30, .time_limit_ns = 60000000000};
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    REQUIRE_EQ(o.answer.found_count, 3);
    static const uint32_t kinds[] = {BH_COMPILER_NVRTC, BH_COMPILER_CLANG, BH__COMPILER_NVJITLINK};
    for (size_t i = 0; i < 3; i++) {
        const bh__compiler_found *found = &o.answer.found[i];
        printf("%u %u %s | %s | %s\n", found->compiler, found->usable,
               (const char *)found->path.data, (const char *)found->version.data,
               (const char *)found->why.data);
        CHECK_EQ(found->compiler, kinds[i]);
        CHECK(found->why.count > 0);
        CHECK_EQ(found->usable != 0, found->path.count > 0 && found->version.count > 0);
        if (found->usable) CHECK_EQ(found->path.data[0], '/');
    }
}

TEST_BOTH(a_kernel_compiles_and_runs) {
    bh__compile_job job = source_job(compiler, scale_source);
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_CONTAINS((const char *)o.answer.version.data,
                       compiler == BH_COMPILER_CLANG ? "clang " : "nvrtc ");
    CHECK_STR_EQ((const char *)o.answer.log.data, "");
    CHECK_STR_EQ(o.printed, "");
    char *printed = run_ptx(&o.answer, "-b 4 -- inout:f32:1,2,3,4 f32:2.5 i32:4");
    CHECK_STR_EQ(printed, "ARG0 f32[4] 2.5 5 7.5 10\n");
}

/* clang itself takes alignas only before the rest of a declaration. */
TEST_BOTH(alignas_is_accepted_after_keywords_of_memory) {
    bh__compile_job job = source_job(
        compiler,
        "#include \"wide.h\"\n"
        "struct alignas(32) wide { int x[8]; };\n"
        "__device__ const char quoted[] = \"__shared__ alignas(1) '\"; // '__shared__ alignas\n"
        "__constant__ alignas(wide) unsigned char table[32] = {1'0};\n"
        "extern \"C\" __global__ void aligned(unsigned *out) {\n"
        "    __shared__ /* most */ alignas(128) float tile[4][8];\n"
        "    extern __shared__ __align__(16) char rest[];\n"
        "    tile[0][0] = quoted[0], rest[0] = quoted[11];\n"
        "    unsigned raw = sizeof R\"a(__device__ alignas)\" __shared__ alignas)a\";\n"
        "    out[0] = (unsigned)(size_t)tile % 128, out[1] = (unsigned)(size_t)table % 32;\n"
        "    out[2] = (unsigned)alignof(wide) + table[0], out[3] = raw + (unsigned)sizeof quoted;\n"
        "    out[4] = from_header();\n"
        "}\n");
    job.header_names = LIST(text("wide.h"));
    job.header_bodies = LIST(text("__device__ inline unsigned from_header() {\n"
                                  "    __shared__ alignas(64) int one;\n"
                                  "    return (unsigned)(size_t)&one % 64;\n"
                                  "}\n"));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-b 1 --shared 16 -- out:u32:5"), "ARG0 u32[5] 0 0 42 64 0\n");
}

/* A job that names no path gets the compiler that a probe would find. */
TEST_BOTH(a_job_without_a_path_finds_the_compiler) {
    bh__compile_job job = source_job(compiler, scale_source);
    CHECK(job.compiler_path.count > 0);
    outcome named = run_job(&job);
    job.compiler_path.count = 0;
    outcome found = run_job(&job);
    REQUIRE_ANSWER(named, BH_OK);
    REQUIRE_ANSWER(found, BH_OK);
    CHECK_STR_EQ((const char *)found.answer.version.data, (const char *)named.answer.version.data);
    CHECK_STR_EQ((const char *)found.answer.output.data, (const char *)named.answer.output.data);
}

static const char template_source[] =
    "namespace a { template <class T, int N> __global__ void fill(T *p) { p[threadIdx.x] = N; } }\n"
    "__device__ int counter;\n"
    "__constant__ float table[4];\n"
    "extern \"C\" __global__ void plain(int *p) { *p = counter + (int)table[0]; }\n"
    "typedef void kernel(int *);\n"
    "namespace { __global__ void hidden(int *p) { *p = 7; } }\n";

TEST_BOTH(name_expressions_get_their_lowered_names) {
    bh__compile_job job = source_job(compiler, template_source);
    job.expressions = LIST(text("a::fill<float, 256>"), text("a::fill< int,3 >"), text("plain"),
                           text("&counter"), text("&a::fill<short, 1>"),
                           text("a::fill<float, 256>"), text("&table"), text("hidden"));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    REQUIRE_EQ(o.answer.lowered.count, 8);
    const bh__bytes *names = o.answer.lowered.list;
    CHECK_STR_EQ((const char *)names[0].data, "_ZN1a4fillIfLi256EEEvPT_");
    CHECK_STR_EQ((const char *)names[1].data, "_ZN1a4fillIiLi3EEEvPT_");
    CHECK_STR_EQ((const char *)names[2].data, "plain");
    CHECK_STR_EQ((const char *)names[3].data, "counter");
    CHECK_STR_EQ((const char *)names[4].data, "_ZN1a4fillIsLi1EEEvPT_");
    CHECK_STR_EQ((const char *)names[5].data, "_ZN1a4fillIfLi256EEEvPT_");
    CHECK_STR_EQ((const char *)names[6].data, "table");
    const char *ptx = (const char *)o.answer.output.data;
    CHECK(strstr(ptx, "__bh_name") == NULL);
    for (size_t i = 0; i < 8; i++) CHECK_STR_CONTAINS(ptx, (const char *)names[i].data);
    char *printed = run_ptx(&o.answer, "-k _ZN1a4fillIiLi3EEEvPT_ -b 2 -- out:i32:2");
    CHECK_STR_EQ(printed, "ARG0 i32[2] 3 3\n");
    char line[512];
    snprintf(line, sizeof line, "-k '%s' -- out:i32:1", (const char *)names[7].data);
    CHECK_STR_EQ(run_ptx(&o.answer, line), "ARG0 i32[1] 7\n");
}

/* What name expressions brought in is gone: the rest is as it would have been without. (Of debug
 * information a type stays.) */
TEST_TIMEOUT(name_expressions_leave_nothing_behind_in_clangs_ptx, 60) {
    need_compiler(BH_COMPILER_CLANG);
    bh__compile_job job = source_job(
        BH_COMPILER_CLANG, "extern \"C\" __global__ void one(int *p) { *p = 1; }\n"
                           "__device__ int counter;\n"
                           "extern \"C\" __global__ void two(int *p) { *p = counter; }\n");
    outcome plain = run_job(&job);
    REQUIRE_ANSWER(plain, BH_OK);
    job.expressions = LIST(text("two"), text("&counter"), text("one"));
    outcome named = run_job(&job);
    REQUIRE_ANSWER(named, BH_OK);
    CHECK_STR_EQ((const char *)named.answer.output.data, (const char *)plain.answer.output.data);
    job.flags = BH_COMPILE_DEBUG;
    named = run_job(&job);
    REQUIRE_ANSWER(named, BH_OK);
    CHECK(strstr((const char *)named.answer.output.data, "__bh_name") == NULL);
    CHECK_STR_EQ(run_ptx(&named.answer, "-k one -- out:i32:1"), "ARG0 i32[1] 1\n");
}

/* A kernel's address that the source itself uses keeps its declaration. */
TEST_TIMEOUT(a_declaration_that_the_source_needs_stays, 60) {
    need_compiler(BH_COMPILER_CLANG);
    bh__compile_job job =
        source_job(BH_COMPILER_CLANG, "extern \"C\" __global__ void k(int *p) { *p = 1; }\n"
                                      "typedef void fn(int *);\n"
                                      "extern \"C\" __device__ fn *const volatile user = k;\n");
    job.expressions = LIST(text("k"));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_CONTAINS((const char *)o.answer.output.data, ".entry k\n");
    CHECK_STR_CONTAINS((const char *)o.answer.output.data, "user = k;");
}

TEST_BOTH(a_wrong_name_expression_is_named) {
    bh__compile_job job = source_job(compiler, template_source);
    job.expressions = LIST(text("plain"), text("a::nothing<float>"));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
    CHECK_STR_CONTAINS(o.answer.error.message, "name expression");
    CHECK_STR_CONTAINS(o.answer.error.message, "a::nothing<float>");
    CHECK(o.answer.log.count > 0);
    CHECK_EQ(o.answer.output.count, 0);
}

TEST_BOTH(headers_in_memory_are_found_both_ways) {
    bh__compile_job job =
        source_job(compiler, "#include \"one.h\"\n"
                             "#include <deep/two.h>\n"
                             "extern \"C\" __global__ void k(int *p) { *p = ONE + TWO; }\n");
    job.header_names = LIST(text("one.h"), text("deep/two.h"), text("deep/three.h"));
    job.header_bodies =
        LIST(text("#define ONE 1\n"), text("#include <deep/three.h>\n"), text("#define TWO 40\n"));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i32:1"), "ARG0 i32[1] 41\n");
    for (size_t i = 0; i < o.answer.read_count; i++)
        CHECK(strstr((const char *)o.answer.reads[i].path.data, "__bulkhead__") == NULL);
}

TEST_BOTH(standards_and_defines_reach_the_compiler) {
    static const uint32_t standards[] = {14, 17, 20};
    static const char *const expected[] = {"201402", "201703", "202002"};
    for (size_t i = 0; i < 3; i++) {
        bh__compile_job job = source_job(
            compiler, "extern \"C\" __global__ void k(long long *p) { p[0] = __cplusplus; "
                      "p[1] = VALUE(3) + FLAG; }\n");
        job.standard = standards[i];
        job.defines = LIST(text("VALUE(x)=(x * 10)"), text("FLAG"));
        outcome o = run_job(&job);
        if (standards[i] == 20 && o.answered && o.answer.error.status == BH_E_UNSUPPORTED)
            SKIP("%s", o.answer.error.message);
        REQUIRE_ANSWER(o, BH_OK);
        char line[64];
        snprintf(line, sizeof line, "ARG0 i64[2] %s 31\n", expected[i]);
        CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i64:2"), line);
    }
}

TEST_BOTH(flags_show_in_the_ptx) {
    static const char source[] =
        "extern \"C\" __global__ void k(float *p) { p[0] = p[1] / p[2]; }\n";
    bh__compile_job job = source_job(compiler, source);
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_CONTAINS((const char *)o.answer.output.data, "div.rn.f32");
    CHECK(strstr((const char *)o.answer.output.data, ".loc") == NULL);

    job.flags = BH_COMPILE_FAST_MATH;
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_CONTAINS((const char *)o.answer.output.data, "div.approx.ftz.f32");

    job.flags = BH_COMPILE_FLUSH_DENORMALS;
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_CONTAINS((const char *)o.answer.output.data, "div.rn.ftz.f32");

    job.flags = BH_COMPILE_LINE_INFO;
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_CONTAINS((const char *)o.answer.output.data, ".loc");
    CHECK_STR_CONTAINS((const char *)o.answer.output.data, "source.cu");
    CHECK_STR_EQ(run_ptx(&o.answer, "-- inout:f32:0,6,2"), "ARG0 f32[3] 3 6 2\n");

    job.flags = BH_COMPILE_DEBUG;
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_CONTAINS((const char *)o.answer.output.data, ".debug_");
    CHECK_STR_EQ(run_ptx(&o.answer, "-- inout:f32:0,6,2"), "ARG0 f32[3] 3 6 2\n");

    job.flags = 0;
    job.max_registers = 40;
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_CONTAINS((const char *)o.answer.output.data, ".maxnreg 40");
    CHECK_STR_EQ(run_ptx(&o.answer, "-- inout:f32:0,6,2"), "ARG0 f32[3] 3 6 2\n");
}

/* What is inlined from the device headers has the line of the call. */
TEST_TIMEOUT(lines_are_those_of_the_source, 120) {
    need_compiler(BH_COMPILER_CLANG);
    bh__compile_job job =
        source_job(BH_COMPILER_CLANG, "#include <cuda_pipeline.h>\n"
                                      "extern \"C\" __global__ void k(int *p) {\n"
                                      "    __shared__ int shared[32];\n"
                                      "    __pipeline_memcpy_async(&shared[threadIdx.x], p, 4);\n"
                                      "    __pipeline_commit();\n"
                                      "    __pipeline_wait_prior(0);\n"
                                      "    __syncthreads();\n"
                                      "    *p += __shfl_xor_sync(~0u, shared[0], 1);\n"
                                      "    atomicAdd(p, 1);\n"
                                      "}\n");
    job.flags = BH_COMPILE_LINE_INFO;
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    const char *text = (const char *)o.answer.output.data;
    CHECK_STR_CONTAINS(text, "source.cu");
    CHECK(strstr(text, "/device/") == NULL);
}

TEST_BOTH(variables_have_names_with_debug_information) {
    bh__compile_job job = source_job(compiler, "extern \"C\" __global__ void k(int *p) {\n"
                                               "    int total = p[0] + 4;\n"
                                               "    p[0] = total;\n"
                                               "}\n");
    job.flags = BH_COMPILE_DEBUG;
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_CONTAINS(run_ptx(&o.answer, "--print total@source.cu:3 -- inout:i32:5"),
                       "total = 9 (0x9)");
}

TEST_TIMEOUT(nvrtc_gives_cubins_and_ltoir, 60) {
    need_compiler(BH_COMPILER_NVRTC);
    bh__compile_job job = source_job(BH_COMPILER_NVRTC, scale_source);
    job.output = BH_OUTPUT_CUBIN;
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    REQUIRE(o.answer.output.count > 64);
    CHECK_MEM_EQ(o.answer.output.data, "\177ELF", 4);
    job.output = BH_OUTPUT_LTOIR;
    o = run_job(&job);
    if (o.answered && o.answer.error.status == BH_E_UNSUPPORTED) SKIP("%s", o.answer.error.message);
    REQUIRE_ANSWER(o, BH_OK);
    REQUIRE(o.answer.output.count > 64);
    CHECK_MEM_EQ(o.answer.output.data, "\xed\x43\x4e\x7f", 4);
}

TEST_BOTH(everyday_headers_are_there) {
    bh__compile_job job = source_job(compiler, "#include <cstdint>\n#include <stdint.h>\n"
                                               "#include <cstddef>\n#include <cuda_runtime.h>\n"
                                               "extern \"C\" __global__ void k(int64_t *p) {\n"
                                               "    static_assert(sizeof(uint8_t) == 1, \"\");\n"
                                               "    *p = (std::uint32_t)-1 + (size_t)1; }\n");
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i64:1"), "ARG0 i64[1] 4294967296\n");
}

/* cuda.h declares functions of the host; the others are of the host altogether. */
TEST_BOTH(headers_of_the_host_do_not_break_a_kernel) {
    bh__compile_job job = source_job(compiler, "#include <cuda.h>\n#include <cuda_runtime.h>\n"
                                               "#include <cstdio>\n#include <iostream>\n"
                                               "#include <vector>\n#include <cmath>\n"
                                               "#include <algorithm>\n#include <assert.h>\n"
                                               "#include <stdlib.h>\n#include <sys/time.h>\n"
                                               "extern \"C\" __global__ void k(int *p) {\n"
                                               "    assert(p != nullptr);\n"
                                               "    *p = std::max(3, 4); }\n");
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i32:1"), "ARG0 i32[1] 4\n");
}

/* Only clang: NVRTC compiles no host code. */
TEST_TIMEOUT(the_kernels_of_a_whole_program_compile, 60) {
    need_compiler(BH_COMPILER_CLANG);
    bh__compile_job job =
        source_job(BH_COMPILER_CLANG, "#include <iostream>\n#include <vector>\n"
                                      "extern \"C\" __global__ void k(int *p) { *p = 7; }\n"
                                      "int main() {\n"
                                      "    std::vector<int> v(1);\n    int *p;\n"
                                      "    cudaMalloc(&p, 4);\n    k<<<1, 1>>>(p);\n"
                                      "    cudaMemcpy(v.data(), p, 4, cudaMemcpyDeviceToHost);\n"
                                      "    std::cout << v[0] << std::endl;\n}\n");
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i32:1"), "ARG0 i32[1] 7\n");
}

TEST_BOTH(a_source_of_ten_megabytes_compiles) {
    size_t room = (size_t)11 << 20, used = 0;
    char *source = malloc(room);
    REQUIRE(source != NULL);
    used += (size_t)snprintf(source, room, "%s", "__device__ int last;\n");
    for (int i = 0; used < (size_t)10 << 20; i++)
        used += (size_t)snprintf(source + used, room - used,
                                 "/* %d: a comment that nobody reads, and that makes it long, "
                                 "with a line of code after it to be fair */\n"
                                 "#define M%d %d\n",
                                 i, i, i);
    snprintf(source + used, room - used,
             "extern \"C\" __global__ void k(int *p) { *p = M7 + M70000; }\n");
    bh__compile_job job = source_job(compiler, source);
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i32:1"), "ARG0 i32[1] 70007\n");
    free(source);
}
