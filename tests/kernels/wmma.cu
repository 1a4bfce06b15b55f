// SPDX-License-Identifier: Apache-2.0
// nvcuda::wmma: every type and shape, operands in both orders. Small whole numbers, so that every
// order of the sums gives the same.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

template <class T> __device__ static T number(int value) { return (T)(float)value; }

// The stride of a matrix in memory.
template <class Layout> struct stride {
    static __device__ constexpr unsigned of(unsigned rows, unsigned columns) { return columns; }
};
template <> struct stride<wmma::col_major> {
    static __device__ constexpr unsigned of(unsigned rows, unsigned columns) { return rows; }
};

// One warp: c = 2 a b + c + 1, with the sum of two fragments between two products.
template <int M, int N, int K, class T, class Stored, class C, class A, class B>
__device__ static void product(const unsigned *in, unsigned *out, unsigned salt) {
    __shared__ __align__(32) Stored a[M * K], b[K * N];
    __shared__ __align__(32) C c[M * N];
    unsigned lane = threadIdx.x;
    for (unsigned i = lane; i < M * K; i += 32) a[i] = number<Stored>((int)(in[i + salt] & 7));
    for (unsigned i = lane; i < K * N; i += 32) b[i] = number<Stored>((int)(in[i + salt] >> 29));
    for (unsigned i = lane; i < M * N; i += 32) c[i] = number<C>((int)(in[i] >> 8 & 15));
    __syncwarp();
    wmma::fragment<wmma::matrix_a, M, N, K, T, A> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, B> fb;
    wmma::fragment<wmma::accumulator, M, N, K, C> fc, fd;
    constexpr unsigned sa = stride<A>::of(M, K), sb = stride<B>::of(K, N);
    wmma::load_matrix_sync(fa, a, sa);
    wmma::load_matrix_sync(fb, b, sb);
    wmma::load_matrix_sync(fc, c, M, wmma::mem_col_major);
    wmma::fill_fragment(fd, number<C>(1));
    wmma::mma_sync(fd, fa, fb, fd);
    for (int i = 0; i < fc.num_elements; i++) fc.x[i] = (C)(fc.x[i] + fd.x[i]);
    wmma::mma_sync(fc, fa, fb, fc);
    __syncwarp();
    wmma::store_matrix_sync(c, fc, N, wmma::mem_row_major);
    __syncwarp();
    for (unsigned i = lane; i < M * N; i += 32) out[i] = out[i] * 31 + (unsigned)(int)(float)c[i];
    __syncwarp();
}
template <int M, int N, int K, class T, class Stored, class C>
__device__ static void orders(const unsigned *in, unsigned *out) {
    product<M, N, K, T, Stored, C, wmma::row_major, wmma::col_major>(in, out, 1);
    product<M, N, K, T, Stored, C, wmma::col_major, wmma::row_major>(in, out, 2);
    product<M, N, K, T, Stored, C, wmma::row_major, wmma::row_major>(in, out, 3);
    product<M, N, K, T, Stored, C, wmma::col_major, wmma::col_major>(in, out, 4);
}
template <class T, class C> __device__ static void shapes(const unsigned *in, unsigned *out) {
    orders<16, 16, 16, T, T, C>(in, out);
    orders<32, 8, 16, T, T, C>(in, out);
    orders<8, 32, 16, T, T, C>(in, out);
}

// RUN wmma_half_float n=1024 grid=1 block=32 exact
extern "C" __global__ void wmma_half_float(const unsigned *in, unsigned *out, unsigned n) {
    shapes<half, float>(in, out);
}

// RUN wmma_half_half n=1024 grid=1 block=32 exact
extern "C" __global__ void wmma_half_half(const unsigned *in, unsigned *out, unsigned n) {
    shapes<half, half>(in, out);
}

// RUN wmma_bfloat n=1024 grid=1 block=32 exact
extern "C" __global__ void wmma_bfloat(const unsigned *in, unsigned *out, unsigned n) {
    shapes<__nv_bfloat16, float>(in, out);
}

// RUN wmma_integers n=1024 grid=1 block=32 exact
extern "C" __global__ void wmma_integers(const unsigned *in, unsigned *out, unsigned n) {
    shapes<signed char, int>(in, out);
    shapes<unsigned char, int>(in, out + 256);
}

// RUN wmma_others n=1024 grid=1 block=32 exact
extern "C" __global__ void wmma_others(const unsigned *in, unsigned *out, unsigned n) {
    orders<16, 16, 8, wmma::precision::tf32, float, float>(in, out);
    orders<8, 8, 4, double, double, double>(in, out + 256);
    float x = __uint_as_float((in[threadIdx.x] & 0x3fffffff) | 0x3000000);
    out[512 + threadIdx.x] = __float_as_uint(wmma::__float_to_tf32(x));
}

// RUN wmma_small n=256 grid=1 block=32 exact
extern "C" __global__ void wmma_small(const unsigned *in, unsigned *out, unsigned n) {
    namespace small = wmma::experimental;
    wmma::fragment<wmma::matrix_a, 8, 8, 32, small::precision::s4, wmma::row_major> sa;
    wmma::fragment<wmma::matrix_b, 8, 8, 32, small::precision::s4, wmma::col_major> sb;
    wmma::fragment<wmma::matrix_a, 8, 8, 32, small::precision::u4, wmma::row_major> ua;
    wmma::fragment<wmma::matrix_b, 8, 8, 32, small::precision::u4, wmma::col_major> ub;
    wmma::fragment<wmma::accumulator, 8, 8, 32, int> c;
    wmma::fill_fragment(c, 3);
    wmma::load_matrix_sync(sa, in, 32);
    wmma::load_matrix_sync(sb, in + 64, 32);
    wmma::mma_sync(c, sa, sb, c);
    wmma::store_matrix_sync((int *)out, c, 8, wmma::mem_row_major);
    wmma::load_matrix_sync(ua, in, 32);
    wmma::load_matrix_sync(ub, in + 64, 32);
    wmma::mma_sync(c, ua, ub, c, true);
    wmma::store_matrix_sync((int *)out + 64, c, 8, wmma::mem_col_major);
    wmma::fragment<wmma::matrix_a, 8, 8, 128, small::precision::b1, wmma::row_major> ba;
    wmma::fragment<wmma::matrix_b, 8, 8, 128, small::precision::b1, wmma::col_major> bb;
    wmma::fragment<wmma::accumulator, 8, 8, 128, int> d;
    wmma::fill_fragment(d, 5);
    wmma::load_matrix_sync(ba, in, 128);
    wmma::load_matrix_sync(bb, in + 64, 128);
    wmma::bmma_sync(d, ba, bb, d);
    wmma::store_matrix_sync((int *)out + 128, d, 8, wmma::mem_row_major);
    wmma::bmma_sync(d, ba, bb, d, small::bmmaBitOpAND);
    wmma::store_matrix_sync((int *)out + 192, d, 8, wmma::mem_row_major);
}
