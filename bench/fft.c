/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms as library calls, beside FFTW called directly in this process: what a small
 * one costs besides, and how fast a large one is. */
#include <bulkhead/fft.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/bench.h"

enum { SMALL = 64, LARGE = 1 << 20, FORWARD = -1, ESTIMATE = 1 << 6 };

/* ---- FFTW ---- */

typedef struct fftw {
    void *(*plan)(int, void *, void *, int, unsigned);
    void (*execute)(void *);
    void (*use_threads)(int); /* NULL: it has none */
} fftw;

static void *symbol(void *handle, const char *name) {
    void *found = dlsym(handle, name);
    if (!found) bench_wrong("FFTW has no %s", name);
    return found;
}

static bool find_fftw(fftw *out) {
    void *handle = dlopen("libfftw3f.so.3", RTLD_NOW), *found;
    void *threads = dlopen("libfftw3f_threads.so.3", RTLD_NOW);
    memset(out, 0, sizeof *out);
    if (!handle) return false;
    found = symbol(handle, "fftwf_plan_dft_1d");
    memcpy(&out->plan, &found, sizeof found);
    found = symbol(handle, "fftwf_execute");
    memcpy(&out->execute, &found, sizeof found);
    if (!threads) return true;
    int (*begin)(void);
    found = symbol(threads, "fftwf_init_threads");
    memcpy(&begin, &found, sizeof found);
    begin();
    found = symbol(threads, "fftwf_plan_with_nthreads");
    memcpy(&out->use_threads, &found, sizeof found);
    return true;
}

/* A transform by FFTW, in memory of this process. */
typedef struct direct {
    const fftw *by;
    float *in, *out;
    void *plan;
} direct;

static direct direct_make(const fftw *by, uint64_t count, const float *values, int threads) {
    direct made = {.by = by};
    size_t bytes = 2 * count * sizeof *made.in;
    if (posix_memalign((void **)&made.in, 4096, bytes) ||
        posix_memalign((void **)&made.out, 4096, bytes))
        bench_wrong("no memory for %zu bytes", bytes);
    memcpy(made.in, values, bytes);
    memset(made.out, 0, bytes);
    if (by->use_threads) by->use_threads(threads);
    made.plan = by->plan((int)count, made.in, made.out, FORWARD, ESTIMATE);
    if (!made.plan) bench_wrong("FFTW makes no plan for %llu", (unsigned long long)count);
    return made;
}

static double direct_ns(const direct *self, int times) {
    uint64_t began = bench_now_ns();
    for (int i = 0; i < times; i++) self->by->execute(self->plan);
    return (double)(bench_now_ns() - began) / times;
}

/* ---- the library ---- */

typedef struct call {
    bh_buffer in, out;
    bh_fft request;
} call;

static call call_make(bh_device device, uint64_t count, const float *values) {
    call made = {.in = bench_buffer(device, BH_C64, count),
                 .out = bench_buffer(device, BH_C64, count)};
    BENCH_NEED(bh_buffer_write(made.in, 0, values, 2 * count * sizeof *values));
    made.request =
        bh_fft_c2c(BH_FFT_FORWARD, bh_array_1d(made.in, count), bh_array_1d(made.out, count), 1);
    return made;
}

/* From submit to done. */
static double call_ns(const call *self) {
    bh_ticket ticket;
    uint64_t began = bench_now_ns();
    BENCH_NEED(bh_submit(&self->request.request, NULL, &ticket));
    BENCH_NEED(bh_wait(ticket, 30 * BENCH_S));
    return (double)(bench_now_ns() - began);
}

static void check(const call *self, const direct *other, uint64_t count) {
    float *got = malloc(2 * count * sizeof *got), most = 0;
    if (!got) bench_wrong("no memory");
    BENCH_NEED(bh_buffer_read(self->out, 0, got, 2 * count * sizeof *got));
    for (uint64_t i = 0; i < 2 * count; i++) most = fmaxf(most, fabsf(got[i] - other->out[i]));
    if (!(most <= 1e-4f * sqrtf((float)count)))
        bench_wrong("results differ by %g in %llu elements", (double)most,
                    (unsigned long long)count);
    free(got);
}

/* ---- figures ---- */

static void measure_small(bh_device device, const fftw *by, const float *values, size_t rounds) {
    call ours = call_make(device, SMALL, values), nothing = ours;
    nothing.request.input.extent[0] = nothing.request.output.extent[0] = 0;
    direct theirs = direct_make(by, SMALL, values, 1);
    bench_samples calls = bench_samples_new(rounds), plain = bench_samples_new(rounds),
                  nothings = bench_samples_new(rounds);
    for (int i = 0; i < 1000; i++) (void)call_ns(&ours);
    for (size_t i = 0; i < rounds; i++) {
        bench_samples_add(&calls, call_ns(&ours));
        bench_samples_add(&plain, direct_ns(&theirs, 8));
        bench_samples_add(&nothings, call_ns(&nothing));
    }
    check(&ours, &theirs, SMALL);
    double call_p50 = bench_percentile(&calls, 50), plain_p50 = bench_percentile(&plain, 50);
    bench_figure("fft.small.call.p50", call_p50 / 1e3, "us");
    bench_figure("fft.small.call.p99", bench_percentile(&calls, 99) / 1e3, "us");
    bench_figure("fft.small.of_nothing.p50", bench_percentile(&nothings, 50) / 1e3, "us");
    bench_figure("fft.small.call.fastest", bench_percentile(&calls, 0) / 1e3, "us");
    bench_figure("fft.small.of_nothing.fastest", bench_percentile(&nothings, 0) / 1e3, "us");
    bench_figure("fft.small.fftw.p50", plain_p50 / 1e3, "us");
    bench_figure("fft.small.beyond_fftw.p50", (call_p50 - plain_p50) / 1e3, "us");
    bench_samples_free(&calls);
    bench_samples_free(&plain);
    bench_samples_free(&nothings);
}

static double rate(double ns) {
    return 5.0 * LARGE * log2(LARGE) / ns;
}

/* In turns, the fastest and the median of each: others use the machine too. */
static void measure_large(bh_device device, const fftw *by, const float *values, size_t rounds) {
    int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
    call ours = call_make(device, LARGE, values);
    direct one = direct_make(by, LARGE, values, 1),
           all = direct_make(by, LARGE, values, processors);
    bench_samples calls = bench_samples_new(rounds), ones = bench_samples_new(rounds),
                  alls = bench_samples_new(rounds);
    (void)call_ns(&ours);
    for (size_t i = 0; i < rounds; i++) {
        bench_samples_add(&calls, call_ns(&ours));
        bench_samples_add(&ones, direct_ns(&one, 1));
        bench_samples_add(&alls, direct_ns(&all, 1));
    }
    check(&ours, &all, LARGE);
    double call_ns_p50 = bench_percentile(&calls, 50), all_ns = bench_percentile(&alls, 50);
    bench_figure("fft.large.call", rate(call_ns_p50), "Gflop/s");
    bench_figure("fft.large.fftw", rate(all_ns), "Gflop/s");
    bench_figure("fft.large.fftw_one_thread", rate(bench_percentile(&ones, 50)), "Gflop/s");
    bench_figure("fft.large.call.fastest", rate(bench_percentile(&calls, 0)), "Gflop/s");
    bench_figure("fft.large.fftw.fastest", rate(bench_percentile(&alls, 0)), "Gflop/s");
    bench_figure("fft.large.fftw_one_thread.fastest", rate(bench_percentile(&ones, 0)), "Gflop/s");
    bench_figure("fft.large.ratio", all_ns / call_ns_p50, "x");
    bench_figure("fft.large.fastest_ratio",
                 bench_percentile(&alls, 0) / bench_percentile(&calls, 0), "x");
    bench_samples_free(&calls);
    bench_samples_free(&ones);
    bench_samples_free(&alls);
}

int main(int argc, char **argv) {
    fftw by;
    bh_device device;
    bench_begin(argc, argv, "fft: transforms of 64 and 2^20 complex floats, beside FFTW here");
    if (!find_fftw(&by)) {
        bench_note("there is no libfftw3f.so.3 to compare with");
        return 0;
    }
    float *values = malloc(2 * LARGE * sizeof *values);
    if (!values) bench_wrong("no memory");
    for (int i = 0; i < 2 * LARGE; i++) values[i] = (float)(i * 40503u % 1000) / 1000 - 0.5f;
    bh_device_options options = bench_options();
    options.libraries = BH_LIBRARY_FFT;
    BENCH_NEED(bh_device_open(&options, &device));
    BENCH_NEED(bh_library_load(device, BH_LIBRARY_FFT));
    measure_small(device, &by, values, bench_count(20000));
    measure_large(device, &by, values, bench_count(20000) / 100 + 1);
    BENCH_NEED(bh_device_close(device));
    free(values);
    return 0;
}
