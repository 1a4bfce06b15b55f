/* SPDX-License-Identifier: Apache-2.0 */
/* The library part: half, bfloat16, cooperative groups and the C++ headers. 2 blocks of 64. */
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cooperative_groups.h>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <device_launch_parameters.h>
#include <initializer_list>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "checks.h"

namespace cg = cooperative_groups;

template <class H, class H2> __device__ void sixteen_bits(int *failed, H2 *at) {
    H a(hide(1.5f)), b(hide(2.0f)), c(hide(-3.0f)), nan(__int_as_float(0x7fc00000));
    EXPECT((float)(a + b) == 3.5f && (float)(a - b) == -0.5f && (float)(a * b) == 3.0f);
    EXPECT((float)(a / b) == 0.75f && (float)-a == -1.5f && (float)__habs(c) == 3.0f);
    EXPECT((float)__hfma(a, b, c) == 0.0f && (float)__hmax(a, b) == 2.0f);
    EXPECT(a < b && b > c && a != b && a == a && a <= a && c >= c && !(nan == nan));
    EXPECT(__hlt(a, b) && __hisnan(nan) && !__hisnan(a) && __hltu(nan, a) && !__hlt(nan, a));
    EXPECT((float)__hadd_sat(a, b) == 1.0f && (float)__hmin(nan, a) == 1.5f);
    EXPECT(__hisnan(__hmax_nan(nan, a)) && (float)H(hide(7)) == 7.0f && (int)H(9.0f) == 9);
    EXPECT((float)H(hide(3.0)) == 3.0f && (double)a == 1.5 && (bool)a && !(bool)H(0.0f));
    H2 p(a, b), q(b, c);
    EXPECT((float)(p + q).x == 3.5f && (float)(p * q).y == -6.0f && (float)(p - q).y == 5.0f);
    EXPECT((float)__hfma2(p, q, p).x == 4.5f && (float)__hneg2(p).x == -1.5f);
    EXPECT(__low2float(p) == 1.5f && __high2float(p) == 2.0f && p == p && !(p == q));
    EXPECT((float)__heq2(p, H2(a, a)).x == 1.0f && (float)__heq2(p, H2(a, a)).y == 0.0f);
    EXPECT((float)__lowhigh2highlow(p).x == 2.0f);
    EXPECT((float)hsqrt(H(9.0f)) == 3.0f && (float)hexp(H(0.0f)) == 1.0f);
    EXPECT((float)hfloor(H(-1.5f)) == -2.0f && (float)hrcp(b) == 0.5f);
    H lane((float)(threadIdx.x & 31u));
    EXPECT((float)__shfl_xor_sync(~0u, lane, 1) == (float)((threadIdx.x & 31u) ^ 1u));
    H x = a;
    x += b;
    x *= b;
    ++x;
    EXPECT((float)x == 8.0f && (float)x++ == 8.0f && (float)x == 9.0f && (float)x-- == 9.0f);
    EXPECT((unsigned char)c == 0 && (unsigned char)H(hide(300.0f)) == 255 && (unsigned)c == 0);
    EXPECT((signed char)H(hide(-300.0f)) == -128 && (short)H(hide(3.75f)) == 3);
    EXPECT((unsigned short)nan == 0 && (long long)nan == -0x7fffffffffffffffll - 1);
    H2 n(nan, a);
    EXPECT(__hlt2_mask(n, q) == 0 && __hltu2_mask(n, q) == 0xffffu && __hle2_mask(p, p) == ~0u);
    EXPECT(__hbneu2(n, q) && !__hbeq2(n, n) && (float)__hequ2(n, n).x == 1.0f);
    EXPECT((float)__hcmadd(p, q, p).x == 10.5f && (float)__hcmadd(p, q, p).y == 1.5f);
    EXPECT((float)__hfma2_relu(p, q, p).y == 0.0f && (float)__hadd2_sat(p, p).x == 1.0f);
    EXPECT(__hisnan(__hmax2_nan(n, p).x) && (float)(++p).x == 2.5f && (float)(--p).y == 2.0f);
    if (threadIdx.x == 0) at[0] = H2(H(0.0f), H(0.0f));
    __syncthreads();
    EXPECT((float)__ldcg(&at[0]).x == 0.0f);
}

__device__ __half2 half_words[2];
__device__ __nv_bfloat162 bfloat_words[2];

KERNEL(halves) {
    sixteen_bits<__half, __half2>(failed, half_words + blockIdx.x);
    EXPECT(__half_as_ushort(__float2half(hide(1.0f))) == 0x3c00u);
    EXPECT(__half2float(__ushort_as_half(0x7bffu)) == 65504.0f && __hisinf(__half(70000.0f)) == 1);
    EXPECT(__half_as_ushort(__half(hide(1.0 + 0x1p-11 + 0x1p-40))) == 0x3c01u);
    EXPECT(__half_as_ushort(__float2half_rz(hide(1.0009f))) == 0x3c00u);
    EXPECT(__half_as_ushort(__float2half_ru(hide(1.00001f))) == 0x3c01u);
    EXPECT(__half_as_ushort(__float2half_rd(hide(-1.00001f))) == 0xbc01u);
    EXPECT(__half2int_rn(__half(2.5f)) == 2 && __half2int_ru(__half(2.25f)) == 3);
    EXPECT(__half2float(__int2half_rn(hide(-7))) == -7.0f);
    EXPECT((float)__int2half_ru(hide(2049)) == 2050.0f && (float)__ll2half_rz(2051ll) == 2050.0f);
    EXPECT(__half2short_ru(__half(hide(2.25f))) == 3 && __half2ushort_rd(__half(hide(-2.25f))) == 0);
    EXPECT(__half2ull_rn(__half(hide(3.5f))) == 4 && __half2char_rz(__half(hide(200.0f))) == 127);
    EXPECT((float)CUDART_ONE_FP16 == 1 && (float)CUDART_MAX_NORMAL_FP16 == 65504.0f);
    EXPECT(__hisinf(CUDART_INF_FP16) && __hisnan(CUDART_NAN_FP16));
    volatile __half kept;
    ((volatile unsigned short *)&kept)[0] = 0x3e00u;
    EXPECT((float)__half(__half_raw(kept)) == 1.5f);
    float2 f = __half22float2(__floats2half2_rn(hide(1.0f), 2.0f));
    EXPECT(f.x == 1 && f.y == 2);
    __syncthreads();
    atomicAdd(half_words + blockIdx.x, __floats2half2_rn(1.0f, 0.5f));
    atomicAdd(&half_words[blockIdx.x].x, __half(1.0f));
    __syncthreads();
    EXPECT((float)((volatile unsigned short *)&half_words[blockIdx.x])[0] == (float)0x5800);
}

KERNEL(bfloats) {
    sixteen_bits<__nv_bfloat16, __nv_bfloat162>(failed, bfloat_words + blockIdx.x);
    EXPECT(__bfloat16_as_ushort(__float2bfloat16(hide(1.0f))) == 0x3f80u);
    EXPECT(__bfloat162float(__float2bfloat16_rn(hide(3.14159265f))) == 3.140625f);
    EXPECT(__bfloat16_as_ushort(__float2bfloat16_rz(hide(1.007f))) == 0x3f80u);
    float2 f = __bfloat1622float2(__floats2bfloat162_rn(hide(1.0f), 2.0f));
    EXPECT(f.x == 1 && f.y == 2);
    EXPECT(__bfloat162int_rz(__nv_bfloat16(2.5f)) == 2);
    EXPECT(__bfloat16_as_ushort(__nv_bfloat16(hide(0x4040000000000001ll))) == 0x5e81u);
    EXPECT(__bfloat16_as_ushort(__float2bfloat16_ru(hide(1.0001f))) == 0x3f81u);
    EXPECT(__bfloat16_as_ushort(__float2bfloat16_rd(hide(-1.0001f))) == 0xbf81u);
    EXPECT((float)CUDART_ONE_BF16 == 1 && __hisinf(CUDART_INF_BF16) && __hisnan(CUDART_NAN_BF16));
    __syncthreads();
    atomicAdd(bfloat_words + blockIdx.x, __floats2bfloat162_rn(1.0f, 0.5f));
    atomicAdd(&bfloat_words[blockIdx.x].x, __nv_bfloat16(1.0f));
    __syncthreads();
    __nv_bfloat162 sum = __ldcg(&bfloat_words[blockIdx.x]);
    EXPECT((float)sum.x == 128 && (float)sum.y == 32);
}

KERNEL(groups) {
    cg::thread_block block = cg::this_thread_block();
    EXPECT(block.thread_rank() == threadIdx.x && block.size() == 64);
    auto tile = cg::tiled_partition<8>(block);
    EXPECT(tile.size() == 8 && tile.thread_rank() == threadIdx.x % 8);
    EXPECT(tile.meta_group_rank() == threadIdx.x / 8 && tile.meta_group_size() == 8);
    int t = (int)threadIdx.x;
    EXPECT(tile.shfl(t, 3) == (t & ~7) + 3 && tile.shfl_xor(t, 1) == (t ^ 1));
    EXPECT(tile.shfl_down(t, 1) == ((t & 7) == 7 ? t : t + 1) && tile.ballot(t & 1) == 0xaau);
    EXPECT(tile.any(t % 8 == 3) && !tile.all(t % 8 == 3));
    EXPECT(cg::reduce(tile, 1, cg::plus<int>()) == 8);
    EXPECT(cg::reduce(tile, t, cg::greater<int>()) == (t | 7));
    tile.sync();
    block.sync();
    cg::sync(block);
    if (t & 1) {
        cg::coalesced_group active = cg::coalesced_threads();
        EXPECT(active.size() == 16 && active.thread_rank() == (unsigned)(t & 31) / 2);
        EXPECT(active.shfl(t, 0) == (t & ~31) + 1);
    }
}

/* Launched cooperatively. The last word counts the blocks that have come to each round. */
KERNEL(grid) {
    cg::grid_group grid = cg::this_grid();
    volatile int *come = failed + 31;
    EXPECT(grid.is_valid() && grid.num_blocks() == 2 && grid.block_rank() == blockIdx.x);
    EXPECT(grid.size() == 128 && grid.thread_rank() == blockIdx.x * 64 + threadIdx.x);
    for (int round = 1; round <= 20; round++) {
        if (threadIdx.x == 0) atomicAdd((int *)come, 1);
        grid.sync();
        EXPECT(*come == 2 * round);
        cg::sync(grid);
    }
}

struct base {
    int x;
};
struct derived : base {};

static_assert(std::is_same<std::decay_t<const int &>, int>::value, "decay");
static_assert(std::is_same<std::remove_cv_t<const volatile float>, float>::value, "remove_cv");
static_assert(std::is_integral<const char>::value && !std::is_integral<float>::value, "integral");
static_assert(std::is_floating_point<double>::value && std::is_arithmetic<int>::value, "kinds");
static_assert(std::is_signed<int>::value && std::is_unsigned<std::size_t>::value, "signs");
static_assert(std::is_base_of<base, derived>::value, "base");
static_assert(std::is_convertible<int, double>::value, "convertible");
static_assert(std::is_same<std::make_unsigned_t<int>, unsigned>::value, "unsigned");
static_assert(std::is_same<std::common_type_t<int, double>, double>::value, "common");
static_assert(std::is_same<std::conditional_t<true, int, char>, int>::value, "conditional");
static_assert(std::is_trivially_copyable<base>::value, "trivial");
static_assert(std::conjunction<std::true_type, std::true_type>::value, "conjunction");
static_assert(std::numeric_limits<int>::max() == INT_MAX, "int");
static_assert(std::numeric_limits<unsigned char>::max() == 255, "unsigned char");
static_assert(std::numeric_limits<long long>::min() == LLONG_MIN, "long long");
static_assert(std::numeric_limits<float>::max() == FLT_MAX, "float");
static_assert(std::numeric_limits<double>::digits == 53, "double");
static_assert(std::is_same<std::make_index_sequence<3>, std::index_sequence<0, 1, 2>>::value,
              "seq");
#if __cplusplus >= 201703L
static_assert(std::is_same_v<int, int> && std::is_integral_v<int>, "_v");
#endif

template <class T, std::enable_if_t<std::is_integral<T>::value, int> = 0>
__device__ int kind_of(T) {
    return 1;
}
template <class T, std::enable_if_t<std::is_floating_point<T>::value, int> = 0>
__device__ int kind_of(T) {
    return 2;
}
template <std::size_t... I> __device__ int sum_of(const int *values, std::index_sequence<I...>) {
    int sum = 0;
    for (int v : {values[I]...}) sum += v;
    return sum;
}

KERNEL(standard) {
    EXPECT(kind_of(1) == 1 && kind_of(1.0f) == 2);
    std::array<int, 4> a{{1, 2, 3, 4}};
    int sum = 0;
    for (int v : a) sum += v;
    EXPECT(sum == 10 && a.size() == 4 && sum_of(a.data(), std::make_index_sequence<3>()) == 6);
    std::swap(a[0], a[3]);
    EXPECT(a[0] == 4 && std::exchange(a[0], 9) == 4 && std::get<0>(a) == 9);
    EXPECT(std::min(hide(3), 4) == 3 && std::max(hide(3.0f), 4.0f) == 4 &&
           std::clamp(9, 1, 5) == 5);
    auto p = std::make_pair(hide(1), 2.5f);
    EXPECT(p.first == 1 && p.second == 2.5f);
    EXPECT(std::sqrt(hide(9.0f)) == 3 && std::abs(hide(-2)) == 2 && std::abs(hide(-2.5)) == 2.5);
    EXPECT(std::fmod(hide(7.0), 4.0) == 3 && std::isnan(std::numeric_limits<float>::quiet_NaN()));
    EXPECT(std::is_same<decltype(std::sin(1.0f)), float>::value);
    EXPECT(std::bit_cast<unsigned>(hide(1.0f)) == 0x3f800000u && std::popcount(hide(255u)) == 8);
    EXPECT(std::countl_zero(hide(1u)) == 31 && std::countr_zero(hide(8u)) == 3);
    EXPECT(std::bit_ceil(hide(5u)) == 8 && std::bit_floor(hide(5u)) == 4);
    alignas(base) unsigned char room[sizeof(base)];
    base *made = new (room) base{hide(5)};
    EXPECT(made->x == 5);
    std::uint8_t small = (std::uint8_t)hide(300);
    EXPECT(small == 44 && sizeof(std::int64_t) == 8 && sizeof(uint16_t) == 2);
    EXPECT(std::numeric_limits<float>::infinity() > FLT_MAX && M_PI > 3.14 && INFINITY > 1e38f);
    char copy[4];
    std::memcpy(copy, "abc", 4);
    EXPECT(std::strlen(copy) == 3);
}
