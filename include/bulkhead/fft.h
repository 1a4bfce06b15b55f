/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/fft.h: Fourier transforms in one, two and three dimensions. Experimental.
 *
 * A transform is a bh_fft: an input, an output, and how many of their last dimensions are
 * transformed. The dimensions before those, and `batch`, say how often. The spectrum of 100 signals
 * of 4096 samples, half of it, because the other half of a real signal's is its conjugate:
 *
 *     bh_status spectra(bh_buffer signals, bh_buffer out, bh_ticket *done) {
 *         bh_fft transform = bh_fft_r2c(bh_array_2d(signals, 100, 4096),
 *                                       bh_array_2d(out, 100, 4096 / 2 + 1), 1);
 *         return bh_submit(&transform.request, NULL, done);
 *     }
 *
 * For a dimension of n elements, with the sign - forward and + inverse:
 *
 *   output[k] = alpha * (sum over j of input[j] * exp(-+ 2 pi i j k / n))
 *
 * so a forward and an inverse transform give the input times the number of elements; with alpha
 * 1 / n in one of them, the input.
 *
 * Elements are BH_C64 or BH_C128, on the real side BH_F32 or BH_F64. Extents are those of the
 * arrays as they lie. On the complex side of r2c and c2r the last one is n / 2 + 1, where n is that
 * of the real side. Arrays may lie in any way; parts of an input may overlap, as windows of a
 * signal do.
 *
 * In place: an output that begins where the input does may share its elements. Another overlap is
 * refused. What such an input has besides has no value afterwards. Complex arrays that lie alike
 * need no other memory, nor do a real and a complex one whose elements of the last dimension lie
 * side by side and whose rows begin at the same places, with room for n / 2 + 1 complex elements.
 * Other transforms in place take memory for a copy of the input; on the CPU device so does a c2r in
 * several dimensions that is not in place.
 *
 * Results are the same from run to run on the CPU device with the same number of processors, for
 * buffers at the same offsets.
 */
#ifndef BULKHEAD_FFT_H
#define BULKHEAD_FFT_H

#include "library.h"

#ifdef __cplusplus
extern "C" {
#endif

/* bh_request.kind. */
enum {
    BH_FFT_C2C = 768, /* complex to complex */
    BH_FFT_R2C = 769, /* real to complex, forward */
    /* Complex to real, inverse. The input is taken to be half of what has a real result: what of it
     * would give imaginary parts has no meaning, as that of its first element. */
    BH_FFT_C2R = 770
};

/* bh_fft.direction */
enum { BH_FFT_FORWARD = 0, BH_FFT_INVERSE = 1 };

typedef struct bh_fft {
    bh_request request;
    uint32_t flags; /* none */
    uint32_t reserved;
    uint64_t batch;        /* 0 counts as 1 */
    bh_scalar alpha, beta; /* alpha must not be 0, and is real for r2c and c2r; beta is not used */
    bh_array input, output;
    uint32_t direction; /* BH_FFT_FORWARD, BH_FFT_INVERSE */
    uint32_t axes;      /* the last 1, 2 or 3 dimensions are transformed */
} bh_fft;

/* Transforms with an alpha of 1. */
static inline bh_fft bh_fft_init_(uint32_t kind, uint32_t direction, bh_array input,
                                  bh_array output, uint32_t axes) {
    bh_fft made = {
        {(uint32_t)sizeof(bh_fft), kind}, 0, 0, 0, {1, 0}, {0, 0}, input, output, direction, axes};
    return made;
}
static inline bh_fft bh_fft_c2c(uint32_t direction, bh_array input, bh_array output,
                                uint32_t axes) {
    return bh_fft_init_(BH_FFT_C2C, direction, input, output, axes);
}
static inline bh_fft bh_fft_r2c(bh_array input, bh_array output, uint32_t axes) {
    return bh_fft_init_(BH_FFT_R2C, BH_FFT_FORWARD, input, output, axes);
}
static inline bh_fft bh_fft_c2r(bh_array input, bh_array output, uint32_t axes) {
    return bh_fft_init_(BH_FFT_C2R, BH_FFT_INVERSE, input, output, axes);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
