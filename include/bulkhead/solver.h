/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/solver.h: dense systems of equations, eigenvalues and singular values, as in LAPACK.
 * Experimental.
 *
 * Every operation is a bh_solver: `request.kind` says which, and a function named after it fills in
 * what it needs. Here A X = B is solved; A becomes its factors L and U, B becomes X:
 *
 *     bh_status solve(bh_buffer a, bh_buffer b, bh_buffer info, uint64_t n, uint64_t columns) {
 *         bh_solver call = bh_solver_gesv(BH_SOLVER_STRICT, bh_matrix_of(a, n, n), bh_no_vector(),
 *                                         bh_matrix_of(b, n, columns), info);
 *         bh_submit_options options = BH_INIT(options);
 *         options.flags = BH_SUBMIT_WAIT;
 *         return bh_submit(&call.request, &options, NULL);
 *     }
 *
 * Elements are BH_F32, BH_F64, BH_C64 or BH_C128, the same in all operands except where an
 * operation says something else. The device is opened with BH_LIBRARY_SOLVER. With `batch` an
 * operation is done that many times. Outputs share no element with other operands.
 *
 * LAPACK reads matrices column by column. One that lies row by row is copied to column order first
 * and its result copied back, except in POTRF and POTRI, where the transpose will do, and in GESVD
 * if A, U and V all lie row by row. Operands that an operation needs and must not change are copied
 * too. The copies take memory of the host on the CPU device.
 *
 * `info` gets a BH_I32 for each member of the batch: 0 if it was done; -1 from GELS, SYEVD, GEEV
 * and GESVD if the input has a NaN or an infinity; else a number k, counted from 1:
 *
 * - GETRF, GESV, GETRI: element k of U's diagonal is zero, A is singular. GETRF has factored it all
 *   the same; GESV has done that and left B alone; GETRI has done nothing.
 * - POTRF, POSV: the leading minor of order k is not positive definite. A is overwritten in part, B
 *   left alone.
 * - POTRI: element k of the factor's diagonal is zero. Nothing was done.
 * - GELS: element k of the diagonal of A's triangular factor is zero, A has not full rank.
 * - SYEVD, GEEV, GESVD: it did not converge.
 *
 * Where GELS, SYEVD, GEEV or GESVD failed, the member's outputs are filled with NaN. The other
 * members are done in any case, and the ticket succeeds. With BH_SOLVER_STRICT it fails instead
 * (BH_E_INVALID) with a message about the first member that did; then all outputs, info too, are
 * suspect: overwrite them, or accept them with bh_buffer_accept and read what they hold.
 */
#ifndef BULKHEAD_SOLVER_H
#define BULKHEAD_SOLVER_H

#include "library.h"

#ifdef __cplusplus
extern "C" {
#endif

/* bh_request.kind. x^T and x^H are transposed and adjoint; K is the smaller one of A's rows and
 * columns. */
enum {
    /* LU: A = P L U, L with ones on its diagonal. Pivots are BH_I32, counted from 0: row i was
     * exchanged with row pivots[i], for i = 0, 1, ... */
    BH_SOLVER_GETRF = 512, /* A becomes L (below its diagonal) and U; pivots has K elements */
    BH_SOLVER_GETRS = 513, /* B = A^-1 B, with the factors of A and their pivots; A^T with
                              BH_SOLVER_TRANSPOSED, A^H with BH_SOLVER_ADJOINT */
    BH_SOLVER_GESV = 514,  /* both: A becomes its factors, B becomes A^-1 B; pivots if given */
    BH_SOLVER_GETRI = 515, /* A, the factors, becomes A^-1 */
    /* Cholesky: A = L L^H, with BH_SOLVER_UPPER A = U^H U, A Hermitian. Only that triangle of A is
     * read and written. */
    BH_SOLVER_POTRF = 520, /* A becomes its factor */
    BH_SOLVER_POTRS = 521, /* B = A^-1 B, with the factor of A */
    BH_SOLVER_POSV = 522,  /* both */
    BH_SOLVER_POTRI = 523, /* A, the factor, becomes A^-1: the same triangle of it */
    /* QR: A = Q R. Q is kept as K reflectors: what lies below the diagonal, and tau. */
    BH_SOLVER_GEQRF = 528, /* A becomes R and, below its diagonal, the reflectors; tau has K
                              elements */
    BH_SOLVER_UNGQR = 529, /* A, whose first columns are as many reflectors as tau has elements,
                              becomes the first columns of Q: at least as many, at most all */
    BH_SOLVER_UNMQR = 530, /* B = Q B, with BH_SOLVER_ADJOINT Q^H B, with BH_SOLVER_RIGHT B Q or
                              B Q^H. A has one column, of reflectors, for each element of tau */
    /* Least squares */
    BH_SOLVER_GELS = 536, /* X such that |A X - B| is smallest; if there are many, the smallest X.
                             A, which must have full rank, and B are left alone */
    /* Eigenvalues and singular values. Matrices of vectors may be left out. */
    BH_SOLVER_SYEVD = 544, /* values: the eigenvalues of the Hermitian or real symmetric A, real
                              numbers, ascending. Column i of V: the vector of number i; all are
                              orthonormal. One triangle of A is read, none is written */
    BH_SOLVER_GEEV = 545,  /* values: the eigenvalues of A, complex. Column i of V: A v = value v,
                              of length 1. Column i of U: u^H A = value u^H. U and V are complex. A
                              is left alone */
    BH_SOLVER_GESVD = 546  /* A = U S V^H; values: the K singular values, real, descending. U is
                              square or has K columns. The operand v is V^H: square, or K rows. A is
                              left alone */
};

enum {
    /* The triangle of a Hermitian matrix that holds its elements. Default: the lower one. */
    BH_SOLVER_UPPER = 1u << 0,
    BH_SOLVER_RIGHT = 1u << 1,
    BH_SOLVER_TRANSPOSED = 1u << 2,
    BH_SOLVER_ADJOINT = 1u << 3,
    BH_SOLVER_STRICT = 1u << 4 /* a member that fails fails the ticket; `info` may be left out */
};

/* What an operation does not use is zero. BH_MATRIX_CONJUGATE is for operands that are not written.
 */
typedef struct bh_solver {
    bh_request request;
    uint32_t flags; /* BH_SOLVER_... */
    uint32_t reserved;
    uint64_t batch;        /* 0 counts as 1 */
    bh_scalar alpha, beta; /* not used */
    bh_matrix a, b, x, u, v;
    bh_vector pivots, tau, values;
    bh_vector info; /* of one element; those of a batch lie one behind the other by default */
} bh_solver;

static inline bh_solver bh_solver_init(uint32_t kind, uint32_t flags, bh_matrix a, bh_buffer info) {
    static const bh_solver zero = {{0, 0},
                                   0,
                                   0,
                                   0,
                                   {0, 0},
                                   {0, 0},
                                   {{0}, 0, 0, 0, 0, 0, 0, 0},
                                   {{0}, 0, 0, 0, 0, 0, 0, 0},
                                   {{0}, 0, 0, 0, 0, 0, 0, 0},
                                   {{0}, 0, 0, 0, 0, 0, 0, 0},
                                   {{0}, 0, 0, 0, 0, 0, 0, 0},
                                   {{0}, 0, 0, 0, 0},
                                   {{0}, 0, 0, 0, 0},
                                   {{0}, 0, 0, 0, 0},
                                   {{0}, 0, 0, 0, 0}};
    bh_solver made = zero;
    made.request.size = (uint32_t)sizeof made;
    made.request.kind = kind;
    made.flags = flags;
    made.a = a;
    if (info.id) {
        made.info.buffer = info;
        made.info.count = 1;
        made.info.stride = 1;
    }
    return made;
}

/* A matrix or a vector that is left out. */
static inline bh_matrix bh_no_matrix(void) {
    bh_matrix none = {{0}, 0, 0, 0, 0, 0, 0, 0};
    return none;
}
static inline bh_vector bh_no_vector(void) {
    bh_vector none = {{0}, 0, 0, 0, 0};
    return none;
}

/* ---- LU ---- */

static inline bh_solver bh_solver_getrf(uint32_t flags, bh_matrix a, bh_vector pivots,
                                        bh_buffer info) {
    bh_solver made = bh_solver_init(BH_SOLVER_GETRF, flags, a, info);
    made.pivots = pivots;
    return made;
}
static inline bh_solver bh_solver_getrs(uint32_t flags, bh_matrix a, bh_vector pivots,
                                        bh_matrix b) {
    bh_buffer none = {0};
    bh_solver made = bh_solver_init(BH_SOLVER_GETRS, flags, a, none);
    made.pivots = pivots;
    made.b = b;
    return made;
}
static inline bh_solver bh_solver_gesv(uint32_t flags, bh_matrix a, bh_vector pivots, bh_matrix b,
                                       bh_buffer info) {
    bh_solver made = bh_solver_getrf(flags, a, pivots, info);
    made.request.kind = BH_SOLVER_GESV;
    made.b = b;
    return made;
}
static inline bh_solver bh_solver_getri(uint32_t flags, bh_matrix a, bh_vector pivots,
                                        bh_buffer info) {
    bh_solver made = bh_solver_getrf(flags, a, pivots, info);
    made.request.kind = BH_SOLVER_GETRI;
    return made;
}

/* ---- Cholesky ---- */

static inline bh_solver bh_solver_potrf(uint32_t flags, bh_matrix a, bh_buffer info) {
    return bh_solver_init(BH_SOLVER_POTRF, flags, a, info);
}
static inline bh_solver bh_solver_potrs(uint32_t flags, bh_matrix a, bh_matrix b) {
    bh_buffer none = {0};
    bh_solver made = bh_solver_init(BH_SOLVER_POTRS, flags, a, none);
    made.b = b;
    return made;
}
static inline bh_solver bh_solver_posv(uint32_t flags, bh_matrix a, bh_matrix b, bh_buffer info) {
    bh_solver made = bh_solver_init(BH_SOLVER_POSV, flags, a, info);
    made.b = b;
    return made;
}
static inline bh_solver bh_solver_potri(uint32_t flags, bh_matrix a, bh_buffer info) {
    return bh_solver_init(BH_SOLVER_POTRI, flags, a, info);
}

/* ---- QR, least squares ---- */

static inline bh_solver bh_solver_geqrf(bh_matrix a, bh_vector tau) {
    bh_buffer none = {0};
    bh_solver made = bh_solver_init(BH_SOLVER_GEQRF, 0, a, none);
    made.tau = tau;
    return made;
}
static inline bh_solver bh_solver_ungqr(bh_matrix a, bh_vector tau) {
    bh_solver made = bh_solver_geqrf(a, tau);
    made.request.kind = BH_SOLVER_UNGQR;
    return made;
}
static inline bh_solver bh_solver_unmqr(uint32_t flags, bh_matrix a, bh_vector tau, bh_matrix b) {
    bh_solver made = bh_solver_geqrf(a, tau);
    made.request.kind = BH_SOLVER_UNMQR;
    made.flags = flags;
    made.b = b;
    return made;
}
static inline bh_solver bh_solver_gels(uint32_t flags, bh_matrix a, bh_matrix b, bh_matrix x,
                                       bh_buffer info) {
    bh_solver made = bh_solver_init(BH_SOLVER_GELS, flags, a, info);
    made.b = b;
    made.x = x;
    return made;
}

/* ---- eigenvalues, singular values ---- */

static inline bh_solver bh_solver_syevd(uint32_t flags, bh_matrix a, bh_vector values, bh_matrix v,
                                        bh_buffer info) {
    bh_solver made = bh_solver_init(BH_SOLVER_SYEVD, flags, a, info);
    made.values = values;
    made.v = v;
    return made;
}
static inline bh_solver bh_solver_geev(uint32_t flags, bh_matrix a, bh_vector values, bh_matrix u,
                                       bh_matrix v, bh_buffer info) {
    bh_solver made = bh_solver_syevd(flags, a, values, v, info);
    made.request.kind = BH_SOLVER_GEEV;
    made.u = u;
    return made;
}
static inline bh_solver bh_solver_gesvd(uint32_t flags, bh_matrix a, bh_matrix u, bh_vector values,
                                        bh_matrix v, bh_buffer info) {
    bh_solver made = bh_solver_geev(flags, a, values, u, v, info);
    made.request.kind = BH_SOLVER_GESVD;
    return made;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
