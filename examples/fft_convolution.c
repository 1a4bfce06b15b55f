/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution by Fourier transforms: a noisy signal smoothed by a long filter. Both are transformed
 * in one call, a kernel multiplies the spectra, and one call goes back. usage:
 * fft_convolution [DEVICE]. Exits with 77 where the device has no Fourier transforms. */
#include <bulkhead.h>
#include <bulkhead/fft.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* N has room for the whole result, so that its end does not wrap around to its start. */
enum { SIGNAL = 900, FILTER = 65, RESULT = SIGNAL + FILTER - 1, N = 1024, HALF = N / 2 + 1 };

/* multiply: of two spectra of `half` complex numbers, one behind the other, the first becomes the
 * product. In CUDA C++:
 *     __global__ void multiply(cuFloatComplex *spectra, unsigned half) {
 *         int i = threadIdx.x;
 *         spectra[i] = cuCmulf(spectra[i], spectra[i + half]);
 *     }
 */
static const char ptx[] = ".version 7.0\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .entry multiply(\n"
                          "    .param .u64 .ptr .global .align 8 spectra, .param .u32 half)\n"
                          "{\n"
                          "    .reg .b32 %i, %half;\n"
                          "    .reg .f32 %are, %aim, %bre, %bim, %re, %im;\n"
                          "    .reg .b64 %a, %b, %offset;\n"
                          "    mov.u32 %i, %tid.x;\n"
                          "    mul.wide.u32 %offset, %i, 8;\n"
                          "    ld.param.u64 %a, [spectra];\n"
                          "    add.u64 %a, %a, %offset;\n"
                          "    ld.param.u32 %half, [half];\n"
                          "    mul.wide.u32 %offset, %half, 8;\n"
                          "    add.u64 %b, %a, %offset;\n"
                          "    ld.global.v2.f32 {%are, %aim}, [%a];\n"
                          "    ld.global.v2.f32 {%bre, %bim}, [%b];\n"
                          "    mul.f32 %re, %aim, %bim;\n"
                          "    neg.f32 %re, %re;\n"
                          "    fma.rn.f32 %re, %are, %bre, %re;\n"
                          "    mul.f32 %im, %aim, %bre;\n"
                          "    fma.rn.f32 %im, %are, %bim, %im;\n"
                          "    st.global.v2.f32 [%a], {%re, %im};\n"
                          "    ret;\n"
                          "}\n";

static void must(bh_status status, const char *what) {
    if (status == BH_OK) return;
    bh_error why;
    bh_last_error(&why);
    fprintf(stderr, "cannot %s: %s\nFix: %s\n", what, why.message, why.fix);
    exit(status == BH_E_UNSUPPORTED ? 77 : 1);
}

int main(int argc, char **argv) {
    bh_device_options options = BH_INIT(options);
    options.device = argc > 1 ? argv[1] : "auto";
    options.libraries = BH_LIBRARY_FFT;
    bh_device gpu;
    bh_module mod;
    bh_kernel multiply;
    must(bh_device_open(&options, &gpu), "open");
    must(bh_library_load(gpu, BH_LIBRARY_FFT), "load the library");
    must(bh_module_load(gpu, ptx, strlen(ptx), &mod), "load");
    must(bh_kernel_get(mod, "multiply", &multiply), "get multiply");

    /* A square wave with noise on it, and a triangular filter; zeros behind both. */
    static float rows[2][N], result[N];
    unsigned random = 1;
    for (int i = 0; i < SIGNAL; i++) {
        random = random * 1664525 + 1013904223;
        rows[0][i] = (i / 150 % 2 ? 1.0f : -1.0f) + ((float)(random >> 8) / 8388608 - 1);
    }
    for (int i = 0; i < FILTER; i++) {
        int from_end = i < FILTER / 2 ? i + 1 : FILTER - i;
        rows[1][i] = (float)from_end / ((FILTER + 1) / 2) / ((FILTER + 1) / 2);
    }

    bh_buffer both, spectra, smooth;
    must(bh_buffer_alloc(gpu, BH_F32, 2 * N, NULL, &both), "allocate");
    must(bh_buffer_alloc(gpu, BH_C64, 2 * HALF, NULL, &spectra), "allocate");
    must(bh_buffer_alloc(gpu, BH_F32, N, NULL, &smooth), "allocate");
    must(bh_buffer_write(both, 0, rows, sizeof rows), "write");

    /* Three requests, one behind the other because they use the same buffers. */
    bh_fft forward = bh_fft_r2c(bh_array_2d(both, 2, N), bh_array_2d(spectra, 2, HALF), 1);
    must(bh_submit(&forward.request, NULL, NULL), "transform");
    must(bh_launch(multiply, BH_SHAPE(1, 1, 1, HALF, 1, 1),
                   BH_ARGS(BH_INOUT(spectra), (uint32_t)HALF), NULL, NULL),
         "multiply");
    bh_fft back = bh_fft_c2r(bh_array_1d(spectra, HALF), bh_array_1d(smooth, N), 1);
    back.alpha.re = 1.0 / N; /* there and back multiplies by N */
    must(bh_submit(&back.request, NULL, NULL), "transform back");
    must(bh_buffer_read(smooth, 0, result, sizeof result), "read");
    must(bh_device_close(gpu), "close");

    /* The same sum by sum. */
    int wrong = 0;
    for (int i = 0; i < RESULT; i++) {
        float sum = 0;
        for (int k = 0; k < FILTER; k++)
            if (i - k >= 0 && i - k < SIGNAL) sum += rows[0][i - k] * rows[1][k];
        float off = result[i] - sum;
        wrong += !(off > -1e-4f && off < 1e-4f);
    }
    for (int i = FILTER / 2; i < RESULT; i += 60)
        printf("%4d %*s\n", i, (int)(result[i] * 20) + 25, "*");
    printf("%d of %d elements wrong\n", wrong, (int)RESULT);
    return wrong != 0;
}
