/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dense solvers on the CPU device: LAPACK's Fortran functions, one call for each member of a batch.
 * An operation brings its operands into column order (dense.c), asks LAPACK how much memory it
 * works in, calls it, and writes what it made to where the request wants it.
 */
#ifndef BH_CPU_LIBRARY_SOLVER_H
#define BH_CPU_LIBRARY_SOLVER_H

#include "cpu/library/library.h"
#include "library/solver.h"

enum { BH__SCRATCH_SLOTS = 16 };

/* One member of a batch at a time. What goes wrong is noted in `status` and *error; then the
 * operation does not call LAPACK. */
typedef struct bh__solver_job {
    const bh__operation *operation;
    const bh_solver *request;
    bh_type type, real, complex; /* of the elements, and those that belong to it */
    uint32_t number;             /* of the type among s, d, c and z */
    uint64_t member;
    int info;        /* the member's */
    bool not_finite; /* info is our own: the input has a NaN or an infinity */
    bh_status status;
    bh_error *error;
    /* Owned. Memory to work in; the next member uses the same again. */
    struct {
        void *data;
        size_t bytes;
    } scratch[BH__SCRATCH_SLOTS];
    uint32_t scratch_used;
} bh__solver_job;

/* The member's input has a NaN or an infinity. */
static inline void bh__solver_refuse_values(bh__solver_job *job) {
    job->info = -1;
    job->not_finite = true;
}

static inline bool bh__solver_is_complex(const bh__solver_job *job) {
    return bh__type_is_complex(job->type);
}

/* ---- solver.c ---- */

enum {
    BH__GETRF,
    BH__GETRS,
    BH__GETRI,
    BH__POTRF,
    BH__POTRS,
    BH__POTRI,
    BH__GEQRF,
    BH__UNGQR,
    BH__UNMQR,
    BH__GELS,
    BH__SYEVD,
    BH__GEEV,
    BH__GESDD,
    BH__SOLVER_FUNCTIONS
};

/* LAPACK's function for the job's type. */
void *bh__solver_function(const bh__solver_job *job, uint32_t which);

/* ---- dense.c ---- */

/* Room for `count` elements of `size` bytes, not cleared, until the member is done. NULL: there is
 * no memory, and the job has failed. */
void *bh__solver_scratch(bh__solver_job *job, uint64_t count, size_t size);
void bh__solver_scratch_free(bh__solver_job *job);

/* The number of elements that LAPACK asks for, which it gives as one of the type. */
int bh__solver_asked(bh_type type, const void *answer);

/* A matrix of the request, and its member's elements in column order: in place if they lie so, else
 * a copy. */
typedef struct bh__dense {
    const bh_matrix *matrix;
    bh_type type;
    uint8_t *home; /* where the request has the member */
    uint8_t *data;
    int rows, columns; /* of the matrix */
    int stride;        /* of `data`, at least 1 */
    char triangle;     /* 'U', 'L': only this part of it is copied; 0: all */
    bool in_place;
} bh__dense;

enum {
    BH__DENSE_FILL = 1u << 0, /* a copy begins with the matrix's elements */
    BH__DENSE_COPY = 1u << 1  /* not in place, whatever it looks like */
};

/* `rows` and `columns`: what the copy has room for, if that is more than the matrix has. */
bh__dense bh__dense_open(bh__solver_job *job, const bh_matrix *matrix, bh_type type, uint32_t flags,
                         char triangle, int rows, int columns);
/* Writes a copy to where the request has the matrix. */
void bh__dense_write(const bh__dense *self);
/* Copies the elements of the request's matrix to column order at `data`. */
void bh__dense_read(const bh__dense *self, void *data, int stride);
/* Whether the elements in column order have no NaN and no infinity. */
bool bh__dense_is_finite(const bh__dense *self);
/* Makes all elements of `data` NaN. */
void bh__dense_spoil(bh__dense *self);
/* Makes of `data` the identity. */
void bh__dense_unit(bh__dense *self);

/* A vector of the member, from and to elements without gaps. */
void bh__solver_vector_read(const bh__solver_job *job, const bh_vector *vector, bh_type type,
                            void *to);
void bh__solver_vector_write(const bh__solver_job *job, const bh_vector *vector, bh_type type,
                             const void *from);
void bh__solver_vector_spoil(const bh__solver_job *job, const bh_vector *vector, bh_type type);

/* ---- solver_factor.c: LU, Cholesky, QR, least squares ---- */

void bh__solver_getrf(bh__solver_job *job);
void bh__solver_getrs(bh__solver_job *job);
void bh__solver_gesv(bh__solver_job *job);
void bh__solver_getri(bh__solver_job *job);
void bh__solver_potrf(bh__solver_job *job);
void bh__solver_potrs(bh__solver_job *job);
void bh__solver_posv(bh__solver_job *job);
void bh__solver_potri(bh__solver_job *job);
void bh__solver_geqrf(bh__solver_job *job);
void bh__solver_ungqr(bh__solver_job *job);
void bh__solver_unmqr(bh__solver_job *job);
void bh__solver_gels(bh__solver_job *job);

/* ---- solver_values.c: eigenvalues and singular values ---- */

void bh__solver_syevd(bh__solver_job *job);
void bh__solver_geev(bh__solver_job *job);
void bh__solver_gesvd(bh__solver_job *job);

#endif
