/* SPDX-License-Identifier: Apache-2.0 */
/* The language part of the headers, one kernel a subject; launched with 2 blocks of 64 threads. */
#include <cuda_runtime.h>
#include <math_constants.h>

#include "checks.h"

template <class A, class B> struct same { static constexpr bool value = false; };
template <class A> struct same<A, A> { static constexpr bool value = true; };

static_assert(sizeof(float3) == 12 && alignof(float3) == 4, "float3");
static_assert(sizeof(float4) == 16 && alignof(float4) == 16, "float4");
static_assert(sizeof(double3) == 24 && alignof(double2) == 16 && alignof(double4) == 16, "double");
static_assert(sizeof(char3) == 3 && alignof(char4) == 4 && alignof(short2) == 4, "char, short");
static_assert(alignof(longlong2) == 16 && sizeof(ulonglong4) == 32, "long long");
static_assert(same<decltype(make_uint2(1, 2).x), unsigned>::value, "uint2");
static_assert(make_int4(1, 2, 3, 4).w == 4, "constants");

__constant__ int constant_values[4] = {10, 20, 30, 40};
__device__ int device_value = 7;

__global__ void __launch_bounds__(64, 2) bounded(int *out) {
    out[threadIdx.x] = 1;
}

KERNEL(builtins) {
    uint3 t = threadIdx, b = blockIdx;
    dim3 shape = blockDim, grid = gridDim;
    EXPECT(t.x == threadIdx.x && t.y == 0 && t.z == 0 && t.x < 64);
    EXPECT(b.x == blockIdx.x && b.x < 2);
    EXPECT(shape.x == 64 && shape.y == 1 && grid.x == 2 && grid.z == 1);
    EXPECT(warpSize == 32);
    EXPECT(constant_values[hide(2)] == 30 && *(volatile int *)&device_value == 7);
    dim3 made(3, 4);
    EXPECT(made.x == 3 && made.y == 4 && made.z == 1 && uint3(made).y == 4);
    float4 v = make_float4(1, 2, 3, 4);
    EXPECT(v.x + v.w == 5);
}

KERNEL(bits) {
    EXPECT(__popc(hide(0xf0f0u)) == 8 && __popcll(hide(~0ull)) == 64);
    EXPECT(__clz(hide(1)) == 31 && __clz(hide(0)) == 32 && __clz(hide(-1)) == 0);
    EXPECT(__clzll(hide(1ll)) == 63 && __clzll(hide(0ll)) == 64);
    EXPECT(__ffs(hide(0)) == 0 && __ffs(hide(8)) == 4 && __ffsll(hide(1ll << 40)) == 41);
    EXPECT(__brev(hide(1u)) == 0x80000000u && __brevll(hide(1ull)) == 1ull << 63);
    EXPECT(__byte_perm(hide(0x33221100u), hide(0x77665544u), 0x7531u) == 0x77553311u);
    EXPECT(__funnelshift_l(hide(0x80000000u), hide(1u), 33u) == 3u);
    EXPECT(__funnelshift_lc(hide(0x80000000u), hide(1u), 33u) == 0x80000000u);
    EXPECT(__funnelshift_r(hide(2u), hide(1u), 1u) == 0x80000001u);
    EXPECT(__funnelshift_rc(hide(2u), hide(5u), 40u) == 5u);
    EXPECT(__mulhi(hide(-2), 3) == -1 && __umulhi(hide(0x80000000u), 4u) == 2u);
    EXPECT(__mul64hi(hide(-2ll), 3ll) == -1 && __umul64hi(hide(1ull << 63), 6ull) == 3ull);
    EXPECT(__mul24(hide(0x01000003), 5) == 15 && __mul24(hide(0xffffff), 2) == -2);
    EXPECT(__umul24(hide(0xff000003u), 5u) == 15u);
    EXPECT(__sad(hide(-5), 7, 100u) == 112u && __usad(hide(7u), 5u, 1u) == 3u);
    EXPECT(__hadd(hide(2147483647), 2147483645) == 2147483646 && __rhadd(hide(1), 2) == 2);
    EXPECT(__uhadd(hide(~0u), ~0u) == ~0u && __urhadd(hide(1u), 2u) == 2u);
    EXPECT(__dp4a(hide(0x01020304), hide(0x01010101), 5) == 15);
    EXPECT(__dp4a(hide((int)0xff000000), hide(0x02000000), 0) == -2);
    EXPECT(__dp4a(hide(0xff000000u), hide(0x02000000u), 0u) == 510u);
    EXPECT(__dp4a(make_char4(1, 2, 3, 4), make_char4(1, 1, 1, -1), hide(1)) == 3);
    EXPECT(__dp2a_lo(hide(0x00030002), hide(0x00000504), 1) == 24);
    EXPECT(__dp2a_hi(hide(0x00030002u), hide(0x05040000u), 1u) == 24u);
    EXPECT(__fns(hide(0xf0u), 0, 2) == 5u && __fns(hide(1u), 0, 2) == ~0u);
    EXPECT(min(hide(-1), 2) == -1 && max(hide(-1), 2u) == ~0u && min(hide(-1ll), 5ll) == -1);
    EXPECT(abs(hide(-5)) == 5 && llabs(hide(-5ll)) == 5 && labs(-3L) == 3);
    EXPECT(umin(hide(3u), 4u) == 3u && ullmax(hide(3ull), 4ull) == 4ull);
}

KERNEL(conversions) {
    EXPECT(__float2int_rn(hide(2.5f)) == 2 && __float2int_rz(hide(-2.7f)) == -2);
    EXPECT(__float2int_ru(hide(2.1f)) == 3 && __float2int_rd(hide(-2.1f)) == -3);
    EXPECT(__float2int_rz(hide(1e20f)) == 2147483647 && __float2uint_rz(hide(-5.0f)) == 0u);
    EXPECT(__float2ll_rn(hide(1e10f)) == 10000000000ll && __float2ull_rd(hide(7.9f)) == 7ull);
    EXPECT(__double2int_rn(hide(3.5)) == 4 && __double2uint_ru(hide(3.1)) == 4u);
    EXPECT(__double2ll_rz(hide(-3.9)) == -3 && __double2ull_rn(hide(1e15)) == 1000000000000000ull);
    EXPECT(__int2float_rz(hide(16777217)) == 16777216.0f);
    EXPECT(__int2float_ru(hide(16777217)) == 16777218.0f && __uint2float_rn(hide(5u)) == 5.0f);
    EXPECT(__ll2float_rd(hide(-16777217ll)) == -16777218.0f && __ull2float_rn(hide(9ull)) == 9.0f);
    EXPECT(__ll2double_ru(hide(9007199254740993ll)) == 9007199254740994.0);
    EXPECT(__ull2double_rd(hide(9007199254740993ull)) == 9007199254740992.0);
    EXPECT(__double2float_ru(hide(1.0 + 1e-12)) > 1.0f &&
           __double2float_rd(hide(1.0 + 1e-12)) == 1);
    EXPECT(__int2double_rn(hide(-3)) == -3.0 && __uint2double_rn(hide(3u)) == 3.0);
    EXPECT(__float_as_int(hide(1.0f)) == 0x3f800000 && __int_as_float(hide(0x40000000)) == 2.0f);
    EXPECT(__float_as_uint(hide(-0.0f)) == 0x80000000u && __uint_as_float(0x3f800000u) == 1.0f);
    EXPECT(__double_as_longlong(hide(1.0)) == 0x3ff0000000000000ll);
    EXPECT(__longlong_as_double(hide(0x4000000000000000ll)) == 2.0);
    EXPECT(__double2hiint(hide(1.0)) == 0x3ff00000 && __double2loint(hide(1.0)) == 0);
    EXPECT(__hiloint2double(0x40080000, 0) == 3.0);
}

KERNEL(rounding) {
    float a = hide(1.0f), tiny = hide(1e-10f);
    EXPECT(__fadd_rn(a, tiny) == 1 && __fadd_ru(a, tiny) > 1 && __fadd_rz(a, tiny) == 1);
    EXPECT(__fadd_rd(a, -tiny) < 1 && __fsub_rn(a, tiny) == 1 && __fsub_rd(a, tiny) < 1);
    EXPECT(__fmul_ru(hide(0.1f), 0.1f) > __fmul_rd(hide(0.1f), 0.1f) && __fmul_rn(a, 3.0f) == 3);
    EXPECT(__fdiv_ru(a, 3.0f) > __fdiv_rd(a, 3.0f) && __fdiv_rn(hide(6.0f), 3.0f) == 2);
    EXPECT(__fmaf_rn(a, 2.0f, 3.0f) == 5 && __fmaf_ru(a, 1.0f, tiny) > 1);
    EXPECT(__frcp_rn(hide(4.0f)) == 0.25f && __frcp_ru(hide(3.0f)) > __frcp_rd(hide(3.0f)));
    EXPECT(__fsqrt_rn(hide(9.0f)) == 3 && __fsqrt_ru(hide(2.0f)) > __fsqrt_rd(hide(2.0f)));
    EXPECT(__frsqrt_rn(hide(4.0f)) == 0.5f);
    double b = hide(1.0), small = hide(1e-20);
    EXPECT(__dadd_rn(b, small) == 1 && __dadd_ru(b, small) > 1 && __dsub_rd(b, small) < 1);
    EXPECT(__dmul_ru(hide(0.1), 0.1) > __dmul_rd(hide(0.1), 0.1) && __dmul_rz(b, 3.0) == 3);
    EXPECT(__ddiv_ru(b, 3.0) > __ddiv_rd(b, 3.0) && __fma_rn(b, 2.0, 3.0) == 5);
    EXPECT(__drcp_rn(hide(4.0)) == 0.25 && __dsqrt_rn(hide(9.0)) == 3);
    EXPECT(__saturatef(hide(1.5f)) == 1 && __saturatef(hide(-1.0f)) == 0 &&
           __saturatef(hide(0.25f)) == 0.25f);
    EXPECT(fabsf(__sinf(hide(0.5f)) - 0.47942554f) < 1e-5f);
    EXPECT(fabsf(__cosf(hide(0.5f)) - 0.87758256f) < 1e-5f);
    EXPECT(fabsf(__tanf(hide(0.5f)) - 0.54630249f) < 1e-5f);
    EXPECT(fabsf(__expf(hide(1.0f)) - 2.71828183f) < 1e-4f);
    EXPECT(fabsf(__exp10f(hide(2.0f)) - 100.0f) < 1e-2f);
    EXPECT(fabsf(__logf(hide(10.0f)) - 2.30258509f) < 1e-5f);
    EXPECT(fabsf(__log2f(hide(8.0f)) - 3.0f) < 1e-5f && fabsf(__log10f(hide(100.0f)) - 2) < 1e-5f);
    EXPECT(fabsf(__powf(hide(2.0f), 3.0f) - 8.0f) < 1e-4f);
    EXPECT(fabsf(__fdividef(hide(1.0f), 4.0f) - 0.25f) < 1e-6f && fdividef(6.0f, hide(3.0f)) == 2);
    EXPECT(fabsf(__tanhf(hide(0.5f)) - 0.46211716f) < 1e-3f);
    float s, c;
    __sincosf(hide(1.0f), &s, &c);
    EXPECT(fabsf(s * s + c * c - 1) < 1e-5f);
}

KERNEL(block_sync) {
    __shared__ int values[64];
    int t = (int)threadIdx.x;
    values[t] = t;
    __syncthreads();
    EXPECT(values[63 - t] == 63 - t);
    EXPECT(__syncthreads_count(t < 10) == 10);
    EXPECT(__syncthreads_and(t < 64) != 0 && __syncthreads_and(t < 63) == 0);
    EXPECT(__syncthreads_or(t == 63) != 0 && __syncthreads_or(t == 64) == 0);
    values[t] = t + 1;
    __syncwarp();
    EXPECT(values[t ^ 1] == (t ^ 1) + 1);
    __threadfence();
    __threadfence_block();
    __threadfence_system();
    __barrier_sync(1);
    __barrier_sync_count(2, 64);
}

template <class T> __device__ void shuffle(int *failed, T scale) {
    int lane = (int)threadIdx.x & 31;
    T value = (T)lane * scale;
    EXPECT(__shfl_sync(~0u, value, 5) == (T)5 * scale);
    EXPECT(__shfl_sync(~0u, value, 3, 8) == (T)((lane & ~7) + 3) * scale);
    EXPECT(__shfl_up_sync(~0u, value, 2) == (T)(lane < 2 ? lane : lane - 2) * scale);
    EXPECT(__shfl_down_sync(~0u, value, 2, 16) == (T)((lane & 15) > 13 ? lane : lane + 2) * scale);
    EXPECT(__shfl_xor_sync(~0u, value, 7) == (T)(lane ^ 7) * scale);
}

KERNEL(warps) {
    int lane = (int)threadIdx.x & 31;
    shuffle<int>(failed, -3);
    shuffle<unsigned>(failed, 0x1000000u);
    shuffle<long>(failed, -70000000000l);
    shuffle<unsigned long>(failed, 70000000000ul);
    shuffle<long long>(failed, -70000000000ll);
    shuffle<unsigned long long>(failed, 70000000000ull);
    shuffle<float>(failed, 0.5f);
    shuffle<double>(failed, 1e100);
    EXPECT(__ballot_sync(~0u, lane & 1) == 0xaaaaaaaau);
    EXPECT(__any_sync(~0u, lane == 31) && !__any_sync(~0u, lane == 32));
    EXPECT(__all_sync(~0u, lane < 32) && !__all_sync(~0u, lane < 31));
    EXPECT(__activemask() == ~0u);
    EXPECT(__match_any_sync(~0u, lane / 16) == (lane < 16 ? 0xffffu : 0xffff0000u));
    EXPECT(__match_any_sync(~0u, (unsigned long long)lane << 40) == 1u << lane);
    int all = 5;
    EXPECT(__match_all_sync(~0u, 1.5f, &all) == ~0u && all == 1);
    EXPECT(__match_all_sync(~0u, lane, &all) == 0u && all == 0);
    EXPECT(__match_all_sync(~0u, 7ll, &all) == ~0u && all == 1);
    EXPECT(__reduce_add_sync(~0u, lane) == 496 && __reduce_add_sync(~0u, 2u) == 64u);
    EXPECT(__reduce_min_sync(~0u, lane - 5) == -5 && __reduce_max_sync(~0u, lane - 5) == 26);
    EXPECT(__reduce_min_sync(~0u, (unsigned)lane) == 0u && __reduce_max_sync(~0u, ~0u) == ~0u);
    EXPECT(__reduce_and_sync(~0u, (unsigned)lane) == 0u);
    EXPECT(__reduce_or_sync(~0u, (unsigned)lane) == 31u && __reduce_xor_sync(~0u, 1u) == 0u);
    if (lane < 8) {
        EXPECT(__ballot_sync(0xffu, 1) == 0xffu);
        EXPECT(__reduce_add_sync(0xffu, 1) == 8);
    }
}

template <class T> __device__ void atomics_of(int *failed, T *at) {
    int t = (int)threadIdx.x;
    if (t == 0) *at = (T)5;
    __syncthreads();
    atomicAdd(at, (T)2);
    atomicAdd_block(at, (T)1);
    atomicAdd_system(at, (T)1);
    __syncthreads();
    EXPECT(*(volatile T *)at == (T)(5 + 4 * 64));
    __syncthreads();
}
template <class T> __device__ void atomic_bits_of(int *failed, T *at) {
    int t = (int)threadIdx.x;
    if (t == 0) {
        at[0] = (T) ~(T)0, at[1] = 0, at[2] = 0, at[3] = (T)100, at[4] = 0, at[5] = 1;
    }
    __syncthreads();
    atomicAnd(at, (T) ~((T)1 << (t & 7)));
    atomicOr_block(at + 1, (T)((T)1 << (t & 7)));
    atomicXor_system(at + 2, (T)((T)1 << (t & 7)));
    atomicMin(at + 3, (T)(t + 3));
    atomicMax_block(at + 4, (T)(t + 3));
    if (t == 0) {
        EXPECT(atomicExch(at + 5, (T)9) == (T)1);
        EXPECT(atomicCAS(at + 5, (T)9, (T)11) == (T)9 &&
               atomicCAS_block(at + 5, (T)9, (T)12) == (T)11);
        EXPECT(atomicCAS_system(at + 5, (T)11, (T)13) == (T)11);
    }
    __syncthreads();
    EXPECT(at[0] == (T) ~(T)0xff && at[1] == (T)0xff && at[2] == 0);
    EXPECT(at[3] == (T)3 && at[4] == (T)66 && at[5] == (T)13);
    __syncthreads();
}

__device__ long long global_words[2][8];

KERNEL(atomics) {
    __shared__ long long words[8];
    atomics_of(failed, (int *)words);
    atomics_of(failed, (unsigned *)words);
    atomics_of(failed, (unsigned long long *)words);
    atomics_of(failed, (float *)words);
    atomics_of(failed, (double *)words);
    atomics_of(failed, (float *)global_words[blockIdx.x]);
    atomics_of(failed, (double *)global_words[blockIdx.x]);
    atomic_bits_of(failed, (int *)words);
    atomic_bits_of(failed, (unsigned *)words);
    atomic_bits_of(failed, (long long *)words);
    atomic_bits_of(failed, (unsigned long long *)words);
    atomic_bits_of(failed, (unsigned long long *)global_words[blockIdx.x]);
    unsigned *at = (unsigned *)words;
    if (threadIdx.x == 0) {
        at[0] = 0, at[1] = 0, at[2] = 100, at[3] = 0x0005ffffu;
    }
    __syncthreads();
    atomicInc(at, 9);
    atomicDec(at + 1, 9);
    atomicSub(at + 2, 1u);
    atomicSub_block((int *)at + 2, -1);
    __syncthreads();
    EXPECT(at[0] == 64 % 10 && at[2] == 100 && at[1] < 10);
    if (threadIdx.x == 0) {
        unsigned short *half_word = (unsigned short *)(at + 3);
        EXPECT(atomicCAS(half_word + 1, (unsigned short)5, (unsigned short)8) == 5);
        EXPECT(at[3] == 0x0008ffffu);
        float *f = (float *)(at + 4);
        *f = 1.5f;
        EXPECT(atomicExch(f, 2.5f) == 1.5f && *f == 2.5f);
    }
}

__device__ float4 float_data[4];
__device__ int4 int_data[4];
__device__ double2 double_data[4];
__device__ uchar4 byte_data[4];
__device__ short2 short_data[4];
__constant__ int in_constant = 3;

KERNEL(memory) {
    __shared__ int shared_value;
    int local = hide(1), *pointer = &local;
    EXPECT(__isShared(&shared_value) && !__isShared(float_data) && __isGlobal(float_data));
    EXPECT(__isLocal(pointer) && !__isLocal(&shared_value));
    EXPECT(*(int *)__cvta_local_to_generic(__cvta_generic_to_local(pointer)) == 1);
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    __stcg(float_data, make_float4(1, 2, 3, 4));
    __stwb(int_data, make_int4(5, 6, 7, -8));
    __stcs(double_data, make_double2(9, 10));
    __stwt(byte_data, make_uchar4(11, 12, 13, 255));
    __stcg(short_data, make_short2(-14, 15));
    __stcg((signed char *)(byte_data + 1), (signed char)-16);
    EXPECT(__ldcg(float_data).w == 4 && __ldca((float *)float_data + 1) == 2);
    EXPECT(__ldcv(int_data).w == -8 && __ldcs((int *)int_data + 2) == 7);
    EXPECT(__ldcg(double_data).y == 10 && __ldlu((double *)double_data) == 9);
    EXPECT(__ldg(byte_data).w == 255 && __ldcg(short_data).x == -14);
    EXPECT(__ldcv((signed char *)(byte_data + 1)) == -16);
    EXPECT(__ldcv((unsigned char *)(byte_data + 1)) == 240);
    EXPECT(__ldcg((long long *)(double_data)) == __double_as_longlong(9.0));
    char text[16], other[16];
    memset(text, 'a', (size_t)hide(16));
    memcpy(other, text, (size_t)hide(16));
    other[15] = text[15] = 0;
    EXPECT(strlen(other) == 15 && memcmp(text, other, 16) == 0 && strcmp(text, "b") < 0);
    memmove(text + 1, text, 10);
    EXPECT(text[0] == 'a');
    size_t address = __cvta_generic_to_shared(&shared_value);
    EXPECT(__cvta_shared_to_generic(address) == (void *)&shared_value);
    EXPECT(__cvta_global_to_generic(__cvta_generic_to_global(float_data)) == (void *)float_data);
}

KERNEL(clocks) {
    long long a = clock64();
    unsigned long long timer = globaltimer();
    __nanosleep(1000);
    EXPECT(clock64() >= a && globaltimer() >= timer);
    EXPECT(clock() >= 0);
}

KERNEL(math_names) {
    EXPECT(sqrt(hide(4.0f)) == 2 && sqrt(hide(4)) == 2 && same<decltype(sqrt(4)), double>::value);
    EXPECT((same<decltype(sin(1.0f)), float>::value && same<decltype(pow(1.0f, 2)), float>::value));
    EXPECT((same<decltype(fmax(1.0f, 2.0)), double>::value && max(hide(1.0f), 2.0) == 2.0));
    EXPECT(pow(hide(2.0), 10) == 1024 && pow(hide(3), hide(4)) == 81 && powf(hide(2.0f), 0.5f) > 1);
    EXPECT(abs(hide(-2.5f)) == 2.5f && abs(hide(-2.5)) == 2.5 && fabs(hide(-1)) == 1);
    EXPECT(isnan(CUDART_NAN_F) && isinf(CUDART_INF) && !isfinite(-CUDART_INF_F) && isnormal(1.0f));
    EXPECT(signbit(hide(-0.0f)) && !signbit(hide(0.0)) && !isnormal(1e-40f));
    int n, q;
    float whole;
    EXPECT(frexpf(hide(12.0f), &n) == 0.75f && n == 4 && ldexpf(0.75f, 4) == 12.0f);
    EXPECT(frexp(hide(4.9406564584124654e-324), &n) == 0.5 && n == -1073);
    EXPECT(ldexp(hide(1.0), -1074) > 0 && ldexp(hide(1.0), 2000) == CUDART_INF);
    EXPECT(modff(hide(-2.75f), &whole) == -0.75f && whole == -2);
    EXPECT(ilogb(hide(10.0f)) == 3 && ilogb(hide(0.1)) == -4);
    EXPECT(lroundf(hide(2.5f)) == 3 && llround(hide(-2.5)) == -3 && lrint(hide(2.5)) == 2);
    EXPECT(remquo(hide(10.0), 3.0, &q) == 1.0 && q == 3);
    EXPECT(remquof(hide(-11.0f), 3.0f, &q) == 1.0f && (q & 7) == (-4 & 7));
    EXPECT(fma(hide(2.0f), 3.0f, 4.0f) == 10 && fmaf(2, 3, 4) == 10 && fma(2.0, 3.0, 4.0) == 10);
    float s, c;
    double sd, cd;
    sincosf(hide(1.0f), &s, &c);
    sincos(hide(1.0), &sd, &cd);
    EXPECT(s == sinf(hide(1.0f)) && c == cosf(hide(1.0f)) && sd == sin(1.0) && cd == cos(1.0));
    sincospi(hide(0.25), &sd, &cd);
    EXPECT(fabs(sd - cd) < 1e-15);
    EXPECT(norm3d(hide(2.0), 3.0, 6.0) == 7 && rnorm3df(hide(2.0f), 3.0f, 6.0f) == 1.0f / 7);
    EXPECT(norm4df(hide(1.0f), 1.0f, 1.0f, 1.0f) == 2 && rhypotf(hide(3.0f), 4.0f) == 0.2f);
    EXPECT(scalbn(hide(1.5), 3) == 12 && scalblnf(1.5f, 3) == 12 && isnan(nanf("")));
}

extern "C" __global__ void prints() {
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        printf("%d %s %.2f %c %lld %%\n", hide(42), "text", (double)hide(1.5f), 'x', hide(-5ll));
        printf("no arguments\n");
    }
}

extern "C" __global__ void asserts(int limit) {
    assert((int)threadIdx.x < limit);
}

extern "C" __global__ void traps() {
    __trap();
}
