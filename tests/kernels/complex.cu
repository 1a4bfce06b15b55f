// SPDX-License-Identifier: Apache-2.0
// Complex numbers by cuComplex.h: a product with whole numbers, a fractal, roots of a polynomial.
#include <cuComplex.h>

__device__ static float small(unsigned word) {
    return (float)(int)(word % 64) - 32.0f;
}

// RUN complex_product n=2048 grid=4 block=128 exact
extern "C" __global__ void complex_product(const unsigned *in, unsigned *out, unsigned n) {
    cuFloatComplex *result = (cuFloatComplex *)out;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 2; i += gridDim.x * blockDim.x) {
        cuFloatComplex sum = make_cuFloatComplex(0.0f, 0.0f);
        for (unsigned k = 0; k < 16; k++) {
            unsigned w = in[(i + k * 7) % n], v = in[(i * 3 + k) % n];
            cuFloatComplex a = make_cuComplex(small(w), small(w >> 8)), b = make_cuComplex(small(v), small(v >> 8));
            sum = cuCaddf(sum, cuCmulf(a, cuConjf(b)));
            sum = cuCfmaf(a, b, cuCsubf(sum, b));
        }
        result[i] = sum;
    }
}

// RUN complex_mandelbrot n=4096 grid=4x4 block=16x16 exact
extern "C" __global__ void complex_mandelbrot(const unsigned *in, unsigned *out, unsigned n) {
    // A coordinate is a multiple of 1/32, and few steps are made, so that doubles are exact.
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    cuDoubleComplex c = make_cuDoubleComplex(((int)x - 48) / 32.0, ((int)y - 32) / 32.0), z = c;
    unsigned steps = 0;
    while (steps < 4 && cuCreal(z) * cuCreal(z) + cuCimag(z) * cuCimag(z) < 4.0) {
        z = cuCadd(cuCmul(z, z), c);
        steps++;
    }
    out[y * 64 + x] = steps;
}

// RUN newton n=1024 grid=4 block=64 loose=1e-4
extern "C" __global__ void newton(const unsigned *in, unsigned *out, unsigned n) {
    // z^3 = 1 by Newton's method; the distance to the nearest root stays small and is scaled.
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        cuDoubleComplex z = make_cuDoubleComplex(1.0 + (in[i] & 255) / 512.0, (in[i] >> 8 & 255) / 1024.0);
        cuDoubleComplex one = make_cuDoubleComplex(1.0, 0.0), three = make_cuDoubleComplex(3.0, 0.0);
        for (int k = 0; k < 3; k++) {
            cuDoubleComplex square = cuCmul(z, z);
            z = cuCsub(z, cuCdiv(cuCsub(cuCmul(square, z), one), cuCmul(three, square)));
        }
        cuFloatComplex f = cuComplexDoubleToFloat(z);
        ((float *)out)[i] = cuCabsf(f) + cuCimagf(cuCdivf(f, make_cuComplex(3e30f, 4e30f))) * 1e30f;
    }
}
