// SPDX-License-Identifier: Apache-2.0
// Numbers of 8 bits: every one of them, what rounds to them from each wider type, and a product.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

// RUN fp8_widen n=1024 grid=1 block=256 exact
extern "C" __global__ void fp8_widen(const unsigned *in, unsigned *out, unsigned n) {
    __nv_fp8_e4m3 a;
    __nv_fp8_e5m2 b;
    a.__x = b.__x = (__nv_fp8_storage_t)threadIdx.x;
    float fa = (float)a, fb = (float)b;
    unsigned ha = __nv_cvt_fp8_to_halfraw(a.__x, __NV_E4M3).x, hb = __half_raw((__half)b).x;
    out[threadIdx.x] = fa == fa ? __float_as_uint(fa) : 1;
    out[256 + threadIdx.x] = fb == fb ? __float_as_uint(fb) : 1;
    out[512 + threadIdx.x] = ha | hb << 16;
    out[768 + threadIdx.x] = (unsigned)(int)(fa == fa ? (int)a : 0) + 1000u * (unsigned)(short)(fb - fb == 0 ? (short)b : 0) + (bool)a;
}

// RUN fp8_narrow n=8192 grid=16 block=128 exact
extern "C" __global__ void fp8_narrow(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, w = in[i];
    // Random bits, and numbers next to those where rounding changes: half way between neighbours.
    __nv_fp8_e5m2 near;
    near.__x = (__nv_fp8_storage_t)(w & 0x7f);
    float f = i % 2 ? __uint_as_float((w & 0x9fffffff) | 0x20000000) : (float)near;
    if (i % 4 == 0 && (w & 0x7f) < 0x7b) {
        near.__x++;
        f = (f + (float)near) * 0.5f;
        f = __uint_as_float(__float_as_uint(f) + (w >> 8) % 3 - 1);
    }
    if (i < 8) f = __uint_as_float((i & 1) << 31 | (i < 2 ? 0x7f800000u : i < 4 ? 0x43e80000u : i < 6 ? 0x47700000u : 0u));
    double d = i % 3 ? (double)f : __longlong_as_double(__double_as_longlong((double)f) + (int)(w % 5) - 2);
    unsigned r = __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3);
    r |= (unsigned)__nv_cvt_float_to_fp8(f, __NV_NOSAT, __NV_E5M2) << 8;
    r |= (unsigned)__nv_fp8_e5m2(d).__x << 16 | (unsigned)__nv_cvt_double_to_fp8(d, __NV_NOSAT, __NV_E4M3) << 24;
    out[4 * i] = r;
    __half h = __float2half(f);
    __nv_bfloat16 b = __float2bfloat16(f);
    out[4 * i + 1] = __nv_fp8_e4m3(h).__x | __nv_fp8_e5m2(b).__x << 8 | __nv_fp8_e4m3((int)f).__x << 16 | (unsigned)__nv_fp8_e5m2((unsigned char)w).__x << 24;
    out[4 * i + 2] = __nv_fp8x4_e4m3(make_float4(f, -f, f * 2, 1.0f)).__x;
    __nv_fp8x2_e5m2 two(make_float2(f, f + 1));
    float2 back = (float2)two;
    out[4 * i + 3] = two.__x + 7 * __float_as_uint(back.x + back.y == back.x + back.y ? back.x : 0.0f);
}

// RUN fp8_nan n=16 grid=1 block=1 exact
extern "C" __global__ void fp8_nan(const unsigned *in, unsigned *out, unsigned n) {
    const unsigned bits[] = {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu};
    for (unsigned k = 0; k < 4; k++) {
        double d = __longlong_as_double((long long)((unsigned long long)(bits[k] | in[0] >> 31) << 32 | 1));
        float f = __uint_as_float(bits[k]);
        out[k] = __nv_fp8x2_e4m3(make_float2(f, f)).__x | (unsigned)__nv_fp8x2_e5m2(make_float2(f, f)).__x << 16;
        out[4 + k] = __nv_cvt_float_to_fp8(f, __NV_NOSAT, __NV_E4M3) | __nv_cvt_float_to_fp8(f, __NV_NOSAT, __NV_E5M2) << 8;
        out[8 + k] = __nv_fp8_e4m3(d).__x | __nv_fp8_e5m2(d).__x << 8;
        __half_raw h;
        h.x = (unsigned short)(bits[k] >> 16 | 0x7c01);
        out[12 + k] = __nv_cvt_halfraw_to_fp8(h, __NV_SATFINITE, __NV_E5M2) | __nv_cvt_halfraw_to_fp8(h, __NV_NOSAT, __NV_E4M3) << 8;
    }
}

// RUN fp8_dot n=256 grid=2 block=128 exact
extern "C" __global__ void fp8_dot(const unsigned *in, unsigned *out, unsigned n) {
    const __nv_fp8x4_e4m3 *a = (const __nv_fp8x4_e4m3 *)in;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (unsigned k = 0; k < 8; k++) {
        __nv_fp8x4_e4m3 v = a[(i + k) % n];
        v.__x = v.__x & 0xbfbfbfbf; // no exponents above 1, so that sums are exact
        float4 f = (float4)v;
        sum += f.x * 2 + f.y - f.z + f.w;
    }
    ((float *)out)[i] = sum;
}
