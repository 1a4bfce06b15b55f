/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA C++ as people write it, with the headers they include: those bring variables along that no
 * kernel writes, and a loss must not make such a module stale. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "support/compile.h"

typedef struct program {
    const char *name, *text;
} program;

static const program only_read[] = {
    {"cooperative_groups",
     "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n"
     "namespace cg = cooperative_groups;\n"
     "extern \"C\" __global__ void k(unsigned *out, unsigned n) {\n"
     "    auto tile = cg::tiled_partition<32>(cg::this_thread_block());\n"
     "    unsigned sum = cg::reduce(tile, threadIdx.x + n, cg::plus<unsigned>());\n"
     "    if (tile.thread_rank() == 0) out[threadIdx.x / 32] = sum;\n"
     "}\n"},
    {"cub", "#include <cub/block/block_reduce.cuh>\n"
            "extern \"C\" __global__ void k(unsigned *out, unsigned n) {\n"
            "    typedef cub::BlockReduce<unsigned, 64> reduce;\n"
            "    __shared__ typename reduce::TempStorage room;\n"
            "    unsigned sum = reduce(room).Sum(threadIdx.x + n);\n"
            "    if (threadIdx.x == 0) out[0] = sum;\n"
            "}\n"},
    {"curand_kernel", "#include <curand_kernel.h>\n"
                      "extern \"C\" __global__ void k(unsigned *out, unsigned n) {\n"
                      "    curandState state;\n"
                      "    curand_init(n, threadIdx.x, 5, &state);\n"
                      "    out[threadIdx.x] = curand(&state);\n"
                      "}\n"},
    {"cuda/std/atomic",
     "#include <cuda/std/atomic>\n"
     "__device__ const unsigned weights[4] = {3, 5, 7, 11};\n"
     "extern \"C\" __global__ void k(unsigned *out, unsigned n) {\n"
     "    cuda::std::atomic_ref<unsigned> sum(out[0]);\n"
     "    if (threadIdx.x < 4) out[4 + threadIdx.x] = weights[(threadIdx.x + n) % 4];\n"
     "    if (threadIdx.x == 9) sum.store(n);\n"
     "}\n"},
    {"printf and assert", "#include <cuda/std/cstdint>\n#undef NDEBUG\n#include <assert.h>\n"
                          "extern \"C\" __global__ void k(unsigned *out, unsigned n) {\n"
                          "    assert(n < 1000);\n"
                          "    if (n > 900) printf(\"%s %u\\n\", \"large\", n);\n"
                          "    out[threadIdx.x] = n + threadIdx.x;\n"
                          "}\n"}};

static bh_module compile_here(bh_device device, const char *text) {
    bh_compile_options options = real_options(BH_COMPILER_NVRTC);
    bh_module module = {0};
    CHECK_OK(bh_module_compile(device, text, &options, &module));
    return module;
}

static void lose_by_fault(const rig *r) {
    uint64_t generation = health_of(r->device).generation;
    CHECK_STATUS(run_now(rig_kernel(r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    wait_generation(r->device, generation + 1);
}

TEST_TIMEOUT(modules_with_common_headers_work_on_after_a_loss, 240) {
    need_compiler(BH_COMPILER_NVRTC);
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer out = words_filled(r.device, 64, 0);
    for (size_t i = 0; i < sizeof only_read / sizeof *only_read; i++) {
        bh_module module = compile_here(r.device, only_read[i].text);
        bh_kernel k = get_kernel(module, "k");
        uint32_t before[64], after[64];
        fprintf(stderr, "%s\n", only_read[i].name);
        CHECK_OK(run_now(k, BH_GRID(64, 64), BH_ARGS(BH_INOUT(out), 7u)));
        CHECK_OK(bh_buffer_read(out, 0, before, sizeof before));
        kill_worker(r.device, SIGKILL);
        memset(after, 0, sizeof after);
        CHECK_OK(bh_buffer_write(out, 0, after, sizeof after));
        CHECK_OK(run_now(k, BH_GRID(64, 64), BH_ARGS(BH_INOUT(out), 7u)));
        CHECK_OK(bh_buffer_read(out, 0, after, sizeof after));
        CHECK_MEM_EQ(after, before, sizeof after);
        memset(after, 0, sizeof after);
        CHECK_OK(bh_buffer_write(out, 0, after, sizeof after));
        CHECK_OK(bh_module_release(module));
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST_TIMEOUT(a_module_that_writes_a_variable_is_stale_after_a_loss, 120) {
    static const char *const sources[] = {
        "#include <cooperative_groups.h>\n__device__ unsigned counter;\n"
        "extern \"C\" __global__ void k(unsigned *out, unsigned n) { atomicAdd(&counter, n); }\n",
        "#include <cuda/std/atomic>\n"
        "extern \"C\" __global__ void k(unsigned *out, unsigned n) {\n"
        "    static unsigned calls;\n    if (threadIdx.x == 0) out[0] = ++calls;\n}\n",
        "__device__ unsigned a[4], b[4];\n"
        "extern \"C\" __global__ void k(unsigned *out, unsigned n) { (n > 3 ? a : b)[n % 4] = 1; }\n",
        "__device__ unsigned x;\n__device__ unsigned *pointer = &x;\n"
        "extern \"C\" __global__ void k(unsigned *out, unsigned n) { *pointer = n; }\n",
        "#include <cuda/std/atomic>\n"
        "__device__ cuda::std::atomic<unsigned> sum;\n"
        "extern \"C\" __global__ void k(unsigned *out, unsigned n) { sum.fetch_add(n); }\n"};
    need_compiler(BH_COMPILER_NVRTC);
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer out = words_filled(r.device, 64, 0);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        bh_module module = compile_here(r.device, sources[i]);
        bh_kernel k = get_kernel(module, "k");
        CHECK_OK(run_now(k, BH_GRID(64, 64), BH_ARGS(BH_INOUT(out), 7u)));
        kill_worker(r.device, SIGKILL);
        CHECK_STATUS(run_now(k, BH_GRID(64, 64), BH_ARGS(BH_INOUT(out), 7u)), BH_E_STALE);
        CHECK_OK(bh_module_accept(module));
        CHECK_OK(run_now(k, BH_GRID(64, 64), BH_ARGS(BH_INOUT(out), 7u)));
        CHECK_OK(bh_module_release(module));
    }
    CHECK_OK(bh_device_close(r.device));
}

/* The same after a fault of a kernel, not a kill. */
TEST_TIMEOUT(a_fault_elsewhere_leaves_such_modules_usable, 120) {
    need_compiler(BH_COMPILER_NVRTC);
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer out = words_filled(r.device, 64, 0);
    bh_module module = compile_here(r.device, only_read[2].text);
    bh_kernel k = get_kernel(module, "k");
    CHECK_OK(run_now(k, BH_GRID(64, 64), BH_ARGS(BH_OUT(out), 7u)));
    lose_by_fault(&r);
    CHECK_OK(run_now(k, BH_GRID(64, 64), BH_ARGS(BH_OUT(out), 7u)));
    CHECK_OK(bh_device_close(r.device));
}
