/* SPDX-License-Identifier: Apache-2.0 */
/* BLAS as library calls, beside OpenBLAS called directly in this process. CPU device only: on a GPU
 * the peer is cuBLAS, which needs a context of its own. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bulkhead/blas.h"
#include "support/bench.h"

typedef void sgemm_function(const char *, const char *, const int *, const int *, const int *,
                            const float *, const float *, const int *, const float *, const int *,
                            const float *, float *, const int *, size_t, size_t);

static sgemm_function *direct;

static void multiply_directly(const float *a, const float *b, float *c, int n) {
    const float one = 1, zero = 0;
    direct("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n, 1, 1);
}

static bool find_direct(void) {
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    void *found = library ? dlsym(library, "sgemm_") : NULL;
    memcpy(&direct, &found, sizeof found);
    return found != NULL;
}

static bh_buffer ones(bh_device device, uint64_t count) {
    const float one = 1;
    bh_buffer buffer;
    BENCH_NEED(bh_buffer_alloc(device, BH_F32, count, NULL, &buffer));
    BENCH_NEED(bh_buffer_fill(buffer, 0, BH_WHOLE, &one, sizeof one));
    return buffer;
}

static double median_of(bench_samples *samples) {
    double median = bench_percentile(samples, 50);
    bench_samples_free(samples);
    return median;
}

static void tell(int n, double ours, double direct_ns) {
    char name[64];
    snprintf(name, sizeof name, "blas.gemm_%d", n);
    bench_figure(name, ours / BENCH_US, "us");
    snprintf(name, sizeof name, "blas.gemm_%d.direct", n);
    bench_figure(name, direct_ns / BENCH_US, "us");
    snprintf(name, sizeof name, n <= 64 ? "blas.gemm_%d.beyond" : "blas.gemm_%d.rate", n);
    if (n <= 64)
        bench_target(name, (ours - direct_ns) / BENCH_US, "us", 3);
    else
        bench_target_least(name, direct_ns / ours, "ratio", 0.95);
}

/* Products of n x n matrices, the two ways in turns: calls in a row, known to be done. */
static void compare(bh_device device, int n, int rounds, int calls) {
    uint64_t side = (uint64_t)n, count = side * side;
    bh_buffer a = ones(device, count), b = ones(device, count), c = ones(device, count);
    float *x = calloc(count * 3, sizeof *x), *y = x + count, *z = y + count;
    bench_samples ours = bench_samples_new((size_t)rounds);
    bench_samples theirs = bench_samples_new((size_t)rounds);
    bh_blas call = bh_blas_gemm(1, bh_matrix_of(a, side, side), bh_matrix_of(b, side, side), 0,
                                bh_matrix_of(c, side, side));
    const bh_submit_options waits = {.size = sizeof waits, .flags = BH_SUBMIT_WAIT};
    for (uint64_t i = 0; x && i < 2 * count; i++) x[i] = 1;
    for (int i = 0; x && i < rounds; i++) {
        uint64_t begun = bench_now_ns();
        for (int k = 0; k < calls; k++)
            BENCH_NEED(bh_submit(&call.request, k + 1 == calls ? &waits : NULL, NULL));
        bench_samples_add(&ours, (double)(bench_now_ns() - begun) / calls);
        begun = bench_now_ns();
        for (int k = 0; k < calls; k++) multiply_directly(x, y, z, n);
        bench_samples_add(&theirs, (double)(bench_now_ns() - begun) / calls);
    }
    double mine = median_of(&ours), peer = median_of(&theirs);
    tell(n, mine, peer);
    free(x);
    BENCH_NEED(bh_buffer_release(a));
    BENCH_NEED(bh_buffer_release(b));
    BENCH_NEED(bh_buffer_release(c));
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "blas: C = A B in f32, n x n, beside OpenBLAS called directly");
    bh_device_options options = bench_options();
    bh_device device;
    options.libraries = BH_LIBRARY_BLAS;
    BENCH_NEED(bh_device_open(&options, &device));
    if (!bench_device_is_cpu(device)) {
        bench_note("skipped: the peer of a GPU is cuBLAS, which needs a context of its own");
        return 0;
    }
    if (bh_library_load(device, BH_LIBRARY_BLAS) != BH_OK) {
        bench_note("skipped: %s", bh_last_message());
        return 0;
    }
    if (!find_direct()) {
        bench_note("skipped: there is no libopenblas.so.0 here to compare with");
        return 0;
    }
    compare(device, 16, 101, 200);
    compare(device, 64, 101, 100);
    compare(device, 512, 21, 3);
    compare(device, 1536, 7, 1);
    BENCH_NEED(bh_device_close(device));
    return 0;
}
