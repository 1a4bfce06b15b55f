/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvcuda::wmma: products of small matrices by a warp. A fragment is what one thread has of a
 * matrix; which elements those are is up to the device.
 */
#ifndef BULKHEAD_MMA_H
#define BULKHEAD_MMA_H

#include "bulkhead_cuda.h"
#include "cuda_fp16.h"
#if __CUDA_ARCH__ >= 800
#include "cuda_bf16.h"
#endif

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

namespace precision {
struct tf32 {};
} // namespace precision

/* Types smaller than a byte: a word has several elements. */
namespace experimental {
namespace precision {
struct u4 {};
struct s4 {};
struct b1 {};
} // namespace precision
enum bmmaBitOp { bmmaBitOpXOR = 1, bmmaBitOpAND = 2 };
enum bmmaAccumulateOp { bmmaAccumulateOpPOPC = 1 };
} // namespace experimental

/* How clang's functions number the orders of memory: 0 rows, 1 columns. */
template <class Layout> struct __bh_order;
template <> struct __bh_order<row_major> { static constexpr int is_column = 0; };
template <> struct __bh_order<col_major> { static constexpr int is_column = 1; };

/* What a thread has: elements as a program sees them, in words as the instructions take them. */
template <class T, int Elements, int Stored> struct __align__(4) __bh_fragment {
    static constexpr int num_elements = Elements, num_storage_elements = Stored;
    typedef T element_type;
    typedef T storage_element_type;
    T x[Stored];
};

template <class Use, int M, int N, int K, class T, class Layout = void> class fragment;

/* The functions of clang for a fragment. `pointer` is what they take for memory, `word` for
 * registers. */
template <class Fragment> struct __bh_fragment_access;

#define __BH_FRAGMENT(use, m, n, k, type, layout, element, count, stored)                          \
    template <>                                                                                    \
    class fragment<use, m, n, k, type, layout> : public __bh_fragment<element, count, stored> {};
#define __BH_OPERAND(use, m, n, k, type, layout, element, count, stored, word, memory, load)       \
    __BH_FRAGMENT(use, m, n, k, type, layout, element, count, stored)                              \
    template <> struct __bh_fragment_access<fragment<use, m, n, k, type, layout>> {                \
        typedef memory memory_type;                                                                \
        static __device__ void read(void *to, const void *from, unsigned stride) {                 \
            load((word *)to, (const word *)from, stride, __bh_order<layout>::is_column);           \
        }                                                                                          \
    };
/* Operands in either order of memory. */
#define __BH_OPERANDS(use, m, n, k, type, element, count, stored, word, memory, load)              \
    __BH_OPERAND(use, m, n, k, type, row_major, element, count, stored, word, memory, load)        \
    __BH_OPERAND(use, m, n, k, type, col_major, element, count, stored, word, memory, load)
#define __BH_ACCUMULATOR(m, n, k, type, count, word, load, store)                                  \
    __BH_FRAGMENT(accumulator, m, n, k, type, void, type, count, count)                            \
    template <> struct __bh_fragment_access<fragment<accumulator, m, n, k, type, void>> {          \
        static __device__ void read_rows(void *to, const void *from, unsigned stride) {            \
            load((word *)to, (const word *)from, stride, 0);                                       \
        }                                                                                          \
        static __device__ void read_columns(void *to, const void *from, unsigned stride) {         \
            load((word *)to, (const word *)from, stride, 1);                                       \
        }                                                                                          \
        static __device__ void write_rows(void *to, const void *from, unsigned stride) {           \
            store((word *)to, (word *)from, stride, 0);                                            \
        }                                                                                          \
        static __device__ void write_columns(void *to, const void *from, unsigned stride) {        \
            store((word *)to, (word *)from, stride, 1);                                            \
        }                                                                                          \
    };

/* d = a b + c, for each combination of orders: 0 row row, 1 row col, 2 col row, 3 col col. */
#define __BH_PRODUCT(m, n, k, type, order, a_layout, b_layout, D, d_word, C, c_word, word, mma)    \
    __BH_DEVICE void mma_sync(fragment<accumulator, m, n, k, D> &d,                                \
                              const fragment<matrix_a, m, n, k, type, a_layout> &a,                \
                              const fragment<matrix_b, m, n, k, type, b_layout> &b,                \
                              const fragment<accumulator, m, n, k, C> &c) {                        \
        mma((d_word *)d.x, (const word *)a.x, (const word *)b.x, (const c_word *)c.x, order, 0);   \
    }
#define __BH_PRODUCTS(m, n, k, type, D, d_word, C, c_word, word, mma)                              \
    __BH_PRODUCT(m, n, k, type, 0, row_major, row_major, D, d_word, C, c_word, word, mma)          \
    __BH_PRODUCT(m, n, k, type, 1, row_major, col_major, D, d_word, C, c_word, word, mma)          \
    __BH_PRODUCT(m, n, k, type, 2, col_major, row_major, D, d_word, C, c_word, word, mma)          \
    __BH_PRODUCT(m, n, k, type, 3, col_major, col_major, D, d_word, C, c_word, word, mma)
/* Products of integers may saturate. */
#define __BH_INTEGER_PRODUCT(m, n, k, type, order, a_layout, b_layout, mma)                        \
    __BH_DEVICE void mma_sync(fragment<accumulator, m, n, k, int> &d,                              \
                              const fragment<matrix_a, m, n, k, type, a_layout> &a,                \
                              const fragment<matrix_b, m, n, k, type, b_layout> &b,                \
                              const fragment<accumulator, m, n, k, int> &c,                        \
                              bool saturate = false) {                                             \
        if (saturate) {                                                                            \
            mma(d.x, (const int *)a.x, (const int *)b.x, c.x, order, 1);                           \
        } else {                                                                                   \
            mma(d.x, (const int *)a.x, (const int *)b.x, c.x, order, 0);                           \
        }                                                                                          \
    }
#define __BH_INTEGER_PRODUCTS(m, n, k, type, mma)                                                  \
    __BH_INTEGER_PRODUCT(m, n, k, type, 0, row_major, row_major, mma)                              \
    __BH_INTEGER_PRODUCT(m, n, k, type, 1, row_major, col_major, mma)                              \
    __BH_INTEGER_PRODUCT(m, n, k, type, 2, col_major, row_major, mma)                              \
    __BH_INTEGER_PRODUCT(m, n, k, type, 3, col_major, col_major, mma)

/* Half: the three shapes; each operand has 16 elements in every thread. */
#define __BH_HALF_SHAPE(m, n, k, name)                                                             \
    __BH_OPERANDS(matrix_a, m, n, k, __half, __half, 16, 16, int, __half, __hmma_##name##_ld_a)    \
    __BH_OPERANDS(matrix_b, m, n, k, __half, __half, 16, 16, int, __half, __hmma_##name##_ld_b)    \
    __BH_ACCUMULATOR(m, n, k, float, 8, float, __hmma_##name##_ld_c_f32, __hmma_##name##_st_c_f32) \
    __BH_ACCUMULATOR(m, n, k, __half, 8, int, __hmma_##name##_ld_c_f16, __hmma_##name##_st_c_f16)  \
    __BH_PRODUCTS(m, n, k, __half, float, float, float, float, int, __hmma_##name##_mma_f32f32)    \
    __BH_PRODUCTS(m, n, k, __half, float, float, __half, int, int, __hmma_##name##_mma_f32f16)     \
    __BH_PRODUCTS(m, n, k, __half, __half, int, float, float, int, __hmma_##name##_mma_f16f32)     \
    __BH_PRODUCTS(m, n, k, __half, __half, int, __half, int, int, __hmma_##name##_mma_f16f16)
__BH_HALF_SHAPE(16, 16, 16, m16n16k16)
__BH_HALF_SHAPE(32, 8, 16, m32n8k16)
__BH_HALF_SHAPE(8, 32, 16, m8n32k16)
#undef __BH_HALF_SHAPE

#if __CUDA_ARCH__ >= 720 || !defined(__CUDA_ARCH__)
/* Bytes: a thread has as many as its share of the matrix. */
#define __BH_BYTES(m, n, k, name, type, of, a_count, b_count)                                      \
    __BH_OPERANDS(matrix_a, m, n, k, type, type, a_count, a_count, int, type,                      \
                  __imma_##name##_ld_a_##of)                                                       \
    __BH_OPERANDS(matrix_b, m, n, k, type, type, b_count, b_count, int, type,                      \
                  __imma_##name##_ld_b_##of)                                                       \
    __BH_INTEGER_PRODUCTS(m, n, k, type, __imma_##name##_mma_##of)
#define __BH_BYTE_SHAPE(m, n, k, name, a_count, b_count)                                           \
    __BH_ACCUMULATOR(m, n, k, int, 8, int, __imma_##name##_ld_c, __imma_##name##_st_c_i32)         \
    __BH_BYTES(m, n, k, name, signed char, s8, a_count, b_count)                                   \
    __BH_BYTES(m, n, k, name, unsigned char, u8, a_count, b_count)
__BH_BYTE_SHAPE(16, 16, 16, m16n16k16, 8, 8)
__BH_BYTE_SHAPE(32, 8, 16, m32n8k16, 16, 4)
__BH_BYTE_SHAPE(8, 32, 16, m8n32k16, 4, 16)
#undef __BH_BYTE_SHAPE
#undef __BH_BYTES
#endif

#if __CUDA_ARCH__ >= 750 || !defined(__CUDA_ARCH__)
/* Halves of bytes and bits: rows times columns only. */
#define __BH_SMALL(use, layout, type, element, count, load)                                        \
    __BH_OPERAND(use, 8, 8, 32, experimental::precision::type, layout, element, count, 1, int,     \
                 void, load)
__BH_SMALL(matrix_a, row_major, s4, int, 8, __imma_m8n8k32_ld_a_s4)
__BH_SMALL(matrix_b, col_major, s4, int, 8, __imma_m8n8k32_ld_b_s4)
__BH_SMALL(matrix_a, row_major, u4, unsigned, 8, __imma_m8n8k32_ld_a_u4)
__BH_SMALL(matrix_b, col_major, u4, unsigned, 8, __imma_m8n8k32_ld_b_u4)
#undef __BH_SMALL
__BH_ACCUMULATOR(8, 8, 32, int, 2, int, __imma_m8n8k32_ld_c, __imma_m8n8k32_st_c_i32)
__BH_INTEGER_PRODUCT(8, 8, 32, experimental::precision::s4, 1, row_major, col_major,
                     __imma_m8n8k32_mma_s4)
__BH_INTEGER_PRODUCT(8, 8, 32, experimental::precision::u4, 1, row_major, col_major,
                     __imma_m8n8k32_mma_u4)
#define __BH_B1 experimental::precision::b1
__BH_OPERAND(matrix_a, 8, 8, 128, __BH_B1, row_major, unsigned, 32, 1, int, void,
             __bmma_m8n8k128_ld_a_b1)
__BH_OPERAND(matrix_b, 8, 8, 128, __BH_B1, col_major, unsigned, 32, 1, int, void,
             __bmma_m8n8k128_ld_b_b1)
__BH_ACCUMULATOR(8, 8, 128, int, 2, int, __bmma_m8n8k128_ld_c, __bmma_m8n8k128_st_c_i32)
__BH_DEVICE void bmma_sync(fragment<accumulator, 8, 8, 128, int> &d,
                           const fragment<matrix_a, 8, 8, 128, __BH_B1, row_major> &a,
                           const fragment<matrix_b, 8, 8, 128, __BH_B1, col_major> &b,
                           const fragment<accumulator, 8, 8, 128, int> &c,
                           experimental::bmmaBitOp operation = experimental::bmmaBitOpXOR,
                           experimental::bmmaAccumulateOp = experimental::bmmaAccumulateOpPOPC) {
#if __CUDA_ARCH__ >= 800
    if (operation == experimental::bmmaBitOpAND) {
        __bmma_m8n8k128_mma_and_popc_b1(d.x, (const int *)a.x, (const int *)b.x, c.x, 1);
        return;
    }
#else
    if (operation == experimental::bmmaBitOpAND) __builtin_trap(); /* since sm_80 */
#endif
    __bmma_m8n8k128_mma_xor_popc_b1(d.x, (const int *)a.x, (const int *)b.x, c.x, 1);
}
#undef __BH_B1
namespace experimental {
using wmma::bmma_sync;
} // namespace experimental
#endif

#if __CUDA_ARCH__ >= 800
#define __BH_BFLOAT_SHAPE(m, n, k, name, a_count, b_count)                                         \
    __BH_OPERANDS(matrix_a, m, n, k, __nv_bfloat16, __nv_bfloat16, a_count, a_count, int,          \
                  __nv_bfloat16, __mma_bf16_##name##_ld_a)                                         \
    __BH_OPERANDS(matrix_b, m, n, k, __nv_bfloat16, __nv_bfloat16, b_count, b_count, int,          \
                  __nv_bfloat16, __mma_bf16_##name##_ld_b)                                         \
    __BH_PRODUCTS(m, n, k, __nv_bfloat16, float, float, float, float, int,                         \
                  __mma_bf16_##name##_mma_f32)
__BH_BFLOAT_SHAPE(16, 16, 16, m16n16k16, 8, 8)
__BH_BFLOAT_SHAPE(32, 8, 16, m32n8k16, 16, 4)
__BH_BFLOAT_SHAPE(8, 32, 16, m8n32k16, 4, 16)
#undef __BH_BFLOAT_SHAPE

/* Floats of which the lower 13 bits do not count. */
__BH_OPERANDS(matrix_a, 16, 16, 8, precision::tf32, float, 4, 4, int, float,
              __mma_tf32_m16n16k8_ld_a)
__BH_OPERANDS(matrix_b, 16, 16, 8, precision::tf32, float, 4, 4, int, float,
              __mma_tf32_m16n16k8_ld_b)
__BH_ACCUMULATOR(16, 16, 8, float, 8, float, __mma_tf32_m16n16k8_ld_c, __mma_m16n16k8_st_c_f32)
__BH_PRODUCTS(16, 16, 8, precision::tf32, float, float, float, float, int,
              __mma_tf32_m16n16k8_mma_f32)

__BH_OPERANDS(matrix_a, 8, 8, 4, double, double, 1, 1, double, double, __dmma_m8n8k4_ld_a)
__BH_OPERANDS(matrix_b, 8, 8, 4, double, double, 1, 1, double, double, __dmma_m8n8k4_ld_b)
__BH_ACCUMULATOR(8, 8, 4, double, 2, double, __dmma_m8n8k4_ld_c, __dmma_m8n8k4_st_c_f64)
__BH_PRODUCTS(8, 8, 4, double, double, double, double, double, double, __dmma_m8n8k4_mma_f64)
#endif

#undef __BH_FRAGMENT
#undef __BH_OPERAND
#undef __BH_OPERANDS
#undef __BH_ACCUMULATOR
#undef __BH_PRODUCT
#undef __BH_PRODUCTS
#undef __BH_INTEGER_PRODUCT
#undef __BH_INTEGER_PRODUCTS

/* Rounds to nearest, ties away from zero, as the instruction does. */
__BH_DEVICE float __float_to_tf32(float value) {
    unsigned result;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(value));
    return __bh_float_of(result);
}

/* Strides count elements. */
template <class Use, int M, int N, int K, class T, class Layout, class From>
__BH_DEVICE void load_matrix_sync(fragment<Use, M, N, K, T, Layout> &to, const From *from,
                                  unsigned stride) {
    __bh_fragment_access<fragment<Use, M, N, K, T, Layout>>::read(to.x, from, stride);
}
template <int M, int N, int K, class T>
__BH_DEVICE void load_matrix_sync(fragment<accumulator, M, N, K, T> &to, const T *from,
                                  unsigned stride, layout_t layout) {
    typedef __bh_fragment_access<fragment<accumulator, M, N, K, T>> access;
    if (layout == mem_row_major) {
        access::read_rows(to.x, from, stride);
    } else {
        access::read_columns(to.x, from, stride);
    }
}
template <int M, int N, int K, class T>
__BH_DEVICE void store_matrix_sync(T *to, const fragment<accumulator, M, N, K, T> &from,
                                   unsigned stride, layout_t layout) {
    typedef __bh_fragment_access<fragment<accumulator, M, N, K, T>> access;
    if (layout == mem_row_major) {
        access::write_rows(to, from.x, stride);
    } else {
        access::write_columns(to, from.x, stride);
    }
}
template <class Use, int M, int N, int K, class T, class Layout, class From>
__BH_DEVICE void fill_fragment(fragment<Use, M, N, K, T, Layout> &to, const From &value) {
    typedef typename fragment<Use, M, N, K, T, Layout>::storage_element_type element;
#pragma unroll
    for (int i = 0; i < to.num_storage_elements; i++) {
        to.x[i] = (element)value;
    }
}

} // namespace wmma
} // namespace nvcuda

#endif
