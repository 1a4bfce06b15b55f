/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/blas.h: vectors and matrices, as in BLAS. Experimental.
 *
 * Every operation is a bh_blas: `request.kind` says which, and a function named after it fills in
 * what it needs. C = A B, of matrices that lie row by row:
 *
 *     bh_status multiply(bh_buffer a, bh_buffer b, bh_buffer c, uint64_t m, uint64_t n, uint64_t k,
 *                        bh_ticket *done) {
 *         bh_blas product = bh_blas_gemm(1.0, bh_matrix_of(a, m, k), bh_matrix_of(b, k, n), 0.0,
 *                                        bh_matrix_of(c, m, n));
 *         return bh_submit(&product.request, NULL, done);
 *     }
 *
 * A transposed operand is bh_matrix_transposed(a): each matrix says for itself how it lies. All
 * operands have the same element type, BH_F32, BH_F64, BH_C64 or BH_C128, except where an operation
 * says something else. Outputs share no element with other operands.
 *
 * With `batch` an operation is done that many times; batch_stride of each operand says where the
 * next member lies.
 *
 * Results are the same from run to run on the CPU device with the same number of threads; on a GPU
 * they are where cuBLAS promises it: on one GPU, with one lane at a time.
 */
#ifndef BULKHEAD_BLAS_H
#define BULKHEAD_BLAS_H

#include "library.h"

#ifdef __cplusplus
extern "C" {
#endif

/* bh_request.kind. In the formulas x and y are vectors, A, B and C matrices; x^T and x^H are
 * transposed and adjoint. */
enum {
    /* vectors */
    BH_BLAS_AXPY = 256,  /* y = alpha x + y */
    BH_BLAS_SCAL = 257,  /* x = alpha x */
    BH_BLAS_COPY = 258,  /* y = x */
    BH_BLAS_SWAP = 259,  /* exchanges x and y */
    BH_BLAS_DOT = 260,   /* result = x^T y; with BH_BLAS_CONJUGATE x^H y */
    BH_BLAS_NRM2 = 261,  /* result = Euclidean norm of x; the result is real */
    BH_BLAS_ASUM = 262,  /* result = sum of |re| + |im| of the elements of x; the result is real */
    BH_BLAS_IAMAX = 263, /* result = index of the first element of x with the largest |re| + |im|,
                            counted from 0; the result is a BH_I64; -1 if x is empty. The stride of
                            x is positive */
    BH_BLAS_ROT = 264, /* x = c x + s y, y = c y - s x at once; c is alpha, s is beta, both real */
    /* a matrix and vectors */
    BH_BLAS_GEMV = 272, /* y = alpha A x + beta y */
    BH_BLAS_GER = 273,  /* A = alpha x y^T + A; with BH_BLAS_CONJUGATE x y^H */
    BH_BLAS_SYMV = 274, /* y = alpha A x + beta y, A symmetric */
    BH_BLAS_HEMV = 275, /* the same, A Hermitian */
    BH_BLAS_TRMV = 276, /* x = A x, A triangular */
    BH_BLAS_TRSV = 277, /* x = A^-1 x, A triangular */
    BH_BLAS_SYR = 278,  /* A = alpha x x^T + A, A symmetric */
    BH_BLAS_HER = 279,  /* A = alpha x x^H + A, A Hermitian; alpha is real */
    BH_BLAS_SYR2 = 280, /* A = alpha (x y^T + y x^T) + A, A symmetric */
    BH_BLAS_HER2 = 281, /* A = alpha x y^H + conj(alpha) y x^H + A, A Hermitian */
    /* matrices */
    BH_BLAS_GEMM = 288,  /* C = alpha A B + beta C. Also: A and B of BH_F16 or BH_BF16 with C of the
                            same type or of BH_F32, summed in BH_F32; A and B of BH_I8 with C of
                            BH_I32 */
    BH_BLAS_SYMM = 289,  /* C = alpha A B + beta C, A symmetric; with BH_BLAS_RIGHT B A */
    BH_BLAS_HEMM = 290,  /* the same, A Hermitian */
    BH_BLAS_SYRK = 291,  /* C = alpha A A^T + beta C, C symmetric */
    BH_BLAS_HERK = 292,  /* C = alpha A A^H + beta C, C Hermitian; alpha and beta are real */
    BH_BLAS_SYR2K = 293, /* C = alpha (A B^T + B A^T) + beta C, C symmetric */
    BH_BLAS_HER2K = 294, /* C = alpha A B^H + conj(alpha) B A^H + beta C, C Hermitian; beta is real
                          */
    BH_BLAS_TRMM = 295,  /* B = alpha A B, A triangular; with BH_BLAS_RIGHT B A */
    BH_BLAS_TRSM = 296   /* B = alpha A^-1 B, A triangular; with BH_BLAS_RIGHT B A^-1 */
};

enum {
    /* Which triangle of a symmetric, Hermitian or triangular matrix holds its elements. The other
     * is neither read nor written. Default: the lower one. */
    BH_BLAS_UPPER = 1u << 0,
    BH_BLAS_RIGHT = 1u << 1,    /* the special matrix is on the right */
    BH_BLAS_UNIT = 1u << 2,     /* the diagonal of a triangular matrix counts as ones */
    BH_BLAS_CONJUGATE = 1u << 3 /* of complex DOT and GER */
};

/* What an operation does not use is zero. */
typedef struct bh_blas {
    bh_request request;
    uint32_t flags; /* BH_BLAS_UPPER ... */
    uint32_t reserved;
    uint64_t batch; /* 0 counts as 1 */
    bh_scalar alpha, beta;
    bh_matrix a, b, c;
    bh_vector x, y;
    bh_vector result; /* of one element */
} bh_blas;

static inline bh_blas bh_blas_init(uint32_t kind, double alpha, double beta) {
    static const bh_blas zero = {{0, 0},
                                 0,
                                 0,
                                 0,
                                 {0, 0},
                                 {0, 0},
                                 {{0}, 0, 0, 0, 0, 0, 0, 0},
                                 {{0}, 0, 0, 0, 0, 0, 0, 0},
                                 {{0}, 0, 0, 0, 0, 0, 0, 0},
                                 {{0}, 0, 0, 0, 0},
                                 {{0}, 0, 0, 0, 0},
                                 {{0}, 0, 0, 0, 0}};
    bh_blas made = zero;
    made.request.size = (uint32_t)sizeof made;
    made.request.kind = kind;
    made.alpha.re = alpha;
    made.beta.re = beta;
    return made;
}

/* ---- vectors ---- */

static inline bh_blas bh_blas_vectors_(uint32_t kind, double alpha, bh_vector x, bh_vector y) {
    bh_blas made = bh_blas_init(kind, alpha, 0);
    made.x = x;
    made.y = y;
    return made;
}
static inline bh_blas bh_blas_axpy(double alpha, bh_vector x, bh_vector y) {
    return bh_blas_vectors_(BH_BLAS_AXPY, alpha, x, y);
}
static inline bh_blas bh_blas_copy(bh_vector x, bh_vector y) {
    return bh_blas_vectors_(BH_BLAS_COPY, 0, x, y);
}
static inline bh_blas bh_blas_swap(bh_vector x, bh_vector y) {
    return bh_blas_vectors_(BH_BLAS_SWAP, 0, x, y);
}
static inline bh_blas bh_blas_rot(bh_vector x, bh_vector y, double c, double s) {
    bh_blas made = bh_blas_vectors_(BH_BLAS_ROT, c, x, y);
    made.beta.re = s;
    return made;
}
static inline bh_blas bh_blas_scal(double alpha, bh_vector x) {
    bh_blas made = bh_blas_init(BH_BLAS_SCAL, alpha, 0);
    made.x = x;
    return made;
}

/* These write one element to the start of `result`. */
static inline bh_blas bh_blas_reduce_(uint32_t kind, bh_vector x, bh_buffer result) {
    bh_blas made = bh_blas_init(kind, 0, 0);
    made.x = x;
    made.result.buffer = result;
    made.result.count = 1;
    made.result.stride = 1;
    return made;
}
static inline bh_blas bh_blas_dot(bh_vector x, bh_vector y, bh_buffer result) {
    bh_blas made = bh_blas_reduce_(BH_BLAS_DOT, x, result);
    made.y = y;
    return made;
}
static inline bh_blas bh_blas_nrm2(bh_vector x, bh_buffer result) {
    return bh_blas_reduce_(BH_BLAS_NRM2, x, result);
}
static inline bh_blas bh_blas_asum(bh_vector x, bh_buffer result) {
    return bh_blas_reduce_(BH_BLAS_ASUM, x, result);
}
static inline bh_blas bh_blas_iamax(bh_vector x, bh_buffer result) {
    return bh_blas_reduce_(BH_BLAS_IAMAX, x, result);
}

/* ---- a matrix and vectors ---- */

static inline bh_blas bh_blas_matrix_(uint32_t kind, uint32_t flags, double alpha, bh_matrix a,
                                      bh_vector x) {
    bh_blas made = bh_blas_init(kind, alpha, 0);
    made.flags = flags;
    made.a = a;
    made.x = x;
    return made;
}
static inline bh_blas bh_blas_gemv(double alpha, bh_matrix a, bh_vector x, double beta,
                                   bh_vector y) {
    bh_blas made = bh_blas_matrix_(BH_BLAS_GEMV, 0, alpha, a, x);
    made.beta.re = beta;
    made.y = y;
    return made;
}
static inline bh_blas bh_blas_symv(uint32_t flags, double alpha, bh_matrix a, bh_vector x,
                                   double beta, bh_vector y) {
    bh_blas made = bh_blas_matrix_(BH_BLAS_SYMV, flags, alpha, a, x);
    made.beta.re = beta;
    made.y = y;
    return made;
}
static inline bh_blas bh_blas_hemv(uint32_t flags, double alpha, bh_matrix a, bh_vector x,
                                   double beta, bh_vector y) {
    bh_blas made = bh_blas_symv(flags, alpha, a, x, beta, y);
    made.request.kind = BH_BLAS_HEMV;
    return made;
}
static inline bh_blas bh_blas_trmv(uint32_t flags, bh_matrix a, bh_vector x) {
    return bh_blas_matrix_(BH_BLAS_TRMV, flags, 0, a, x);
}
static inline bh_blas bh_blas_trsv(uint32_t flags, bh_matrix a, bh_vector x) {
    return bh_blas_matrix_(BH_BLAS_TRSV, flags, 0, a, x);
}
static inline bh_blas bh_blas_syr(uint32_t flags, double alpha, bh_vector x, bh_matrix a) {
    return bh_blas_matrix_(BH_BLAS_SYR, flags, alpha, a, x);
}
static inline bh_blas bh_blas_her(uint32_t flags, double alpha, bh_vector x, bh_matrix a) {
    return bh_blas_matrix_(BH_BLAS_HER, flags, alpha, a, x);
}
static inline bh_blas bh_blas_ger(double alpha, bh_vector x, bh_vector y, bh_matrix a) {
    bh_blas made = bh_blas_matrix_(BH_BLAS_GER, 0, alpha, a, x);
    made.y = y;
    return made;
}
static inline bh_blas bh_blas_syr2(uint32_t flags, double alpha, bh_vector x, bh_vector y,
                                   bh_matrix a) {
    bh_blas made = bh_blas_matrix_(BH_BLAS_SYR2, flags, alpha, a, x);
    made.y = y;
    return made;
}
static inline bh_blas bh_blas_her2(uint32_t flags, double alpha, bh_vector x, bh_vector y,
                                   bh_matrix a) {
    bh_blas made = bh_blas_matrix_(BH_BLAS_HER2, flags, alpha, a, x);
    made.y = y;
    return made;
}

/* ---- matrices ---- */

static inline bh_blas bh_blas_matrices_(uint32_t kind, uint32_t flags, double alpha, bh_matrix a,
                                        bh_matrix b, double beta, bh_matrix c) {
    bh_blas made = bh_blas_init(kind, alpha, beta);
    made.flags = flags;
    made.a = a;
    made.b = b;
    made.c = c;
    return made;
}
static inline bh_blas bh_blas_gemm(double alpha, bh_matrix a, bh_matrix b, double beta,
                                   bh_matrix c) {
    return bh_blas_matrices_(BH_BLAS_GEMM, 0, alpha, a, b, beta, c);
}
static inline bh_blas bh_blas_symm(uint32_t flags, double alpha, bh_matrix a, bh_matrix b,
                                   double beta, bh_matrix c) {
    return bh_blas_matrices_(BH_BLAS_SYMM, flags, alpha, a, b, beta, c);
}
static inline bh_blas bh_blas_hemm(uint32_t flags, double alpha, bh_matrix a, bh_matrix b,
                                   double beta, bh_matrix c) {
    return bh_blas_matrices_(BH_BLAS_HEMM, flags, alpha, a, b, beta, c);
}
static inline bh_blas bh_blas_syr2k(uint32_t flags, double alpha, bh_matrix a, bh_matrix b,
                                    double beta, bh_matrix c) {
    return bh_blas_matrices_(BH_BLAS_SYR2K, flags, alpha, a, b, beta, c);
}
static inline bh_blas bh_blas_her2k(uint32_t flags, double alpha, bh_matrix a, bh_matrix b,
                                    double beta, bh_matrix c) {
    return bh_blas_matrices_(BH_BLAS_HER2K, flags, alpha, a, b, beta, c);
}
static inline bh_blas bh_blas_syrk(uint32_t flags, double alpha, bh_matrix a, double beta,
                                   bh_matrix c) {
    bh_blas made = bh_blas_init(BH_BLAS_SYRK, alpha, beta);
    made.flags = flags;
    made.a = a;
    made.c = c;
    return made;
}
static inline bh_blas bh_blas_herk(uint32_t flags, double alpha, bh_matrix a, double beta,
                                   bh_matrix c) {
    bh_blas made = bh_blas_syrk(flags, alpha, a, beta, c);
    made.request.kind = BH_BLAS_HERK;
    return made;
}
static inline bh_blas bh_blas_trmm(uint32_t flags, double alpha, bh_matrix a, bh_matrix b) {
    bh_blas made = bh_blas_init(BH_BLAS_TRMM, alpha, 0);
    made.flags = flags;
    made.a = a;
    made.b = b;
    return made;
}
static inline bh_blas bh_blas_trsm(uint32_t flags, double alpha, bh_matrix a, bh_matrix b) {
    bh_blas made = bh_blas_trmm(flags, alpha, a, b);
    made.request.kind = BH_BLAS_TRSM;
    return made;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
