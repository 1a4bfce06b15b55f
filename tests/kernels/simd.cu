// SPDX-License-Identifier: Apache-2.0
// Bytes and half words side by side in a word.

// RUN simd_bytes n=1024 grid=4 block=256 exact
extern "C" __global__ void simd_bytes(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, a = in[i], b = in[n - 1 - i];
    unsigned r = __vadd4(a, b) ^ __vsub2(a, b);
    r += __vmaxs4(a, b) ^ __vminu2(a, b) ^ __vavgu4(a, b);
    r ^= __vabsdiffu4(a, b) + __vcmpgtu4(a, b) + __vsadu4(a, b) + __vsetles2(a, b);
    out[i] = r + __vaddss2(a, b) + __vsubus4(a, b);
}
