/* SPDX-License-Identifier: Apache-2.0 */
/* LU, Cholesky and QR factors, systems of equations, least squares. */
#include <string.h>

#include "cpu/library/solver.h"

/* Lengths of character parameters come last, as compilers of Fortran pass them. */
typedef void getrf_function(const int *, const int *, void *, const int *, int *, int *);
typedef void getrs_function(const char *, const int *, const int *, const void *, const int *,
                            const int *, void *, const int *, int *, size_t);
typedef void getri_function(const int *, void *, const int *, const int *, void *, const int *,
                            int *);
typedef void potrf_function(const char *, const int *, void *, const int *, int *, size_t);
typedef void potrs_function(const char *, const int *, const int *, const void *, const int *,
                            void *, const int *, int *, size_t);
typedef void geqrf_function(const int *, const int *, void *, const int *, void *, void *,
                            const int *, int *);
typedef void ungqr_function(const int *, const int *, const int *, void *, const int *,
                            const void *, void *, const int *, int *);
typedef void unmqr_function(const char *, const char *, const int *, const int *, const int *,
                            void *, const int *, const void *, void *, const int *, void *,
                            const int *, int *, size_t, size_t);
typedef void gels_function(const char *, const int *, const int *, const int *, void *, const int *,
                           void *, const int *, void *, const int *, int *, size_t);

#define FUNCTION(of, which, job) ((of *)(uintptr_t)bh__solver_function(job, which))

static const int ask = -1; /* as the size of the memory to work in: how much would be good? */

static size_t size_of(const bh__solver_job *job) {
    return bh__element_bytes(job->type);
}

static bh__dense open_all(bh__solver_job *job, const bh_matrix *matrix, uint32_t flags) {
    return bh__dense_open(job, matrix, job->type, flags | BH__DENSE_FILL, 0, 0, 0);
}

static int smaller(int a, int b) {
    return a < b ? a : b;
}

/* ---- LU ---- */

/* LAPACK counts from 1. Elements that are NaN may leave a pivot outside the matrix. */
static void keep_inside(int *pivots, int count, int rows) {
    for (int i = 0; i < count; i++)
        if (pivots[i] <= i || pivots[i] > rows) pivots[i] = i + 1;
}

static void write_pivots(const bh__solver_job *job, int *pivots, int count) {
    for (int i = 0; i < count; i++) pivots[i]--;
    bh__solver_vector_write(job, &job->request->pivots, BH_I32, pivots);
}

static int *read_pivots(bh__solver_job *job, int rows) {
    int *pivots = bh__solver_scratch(job, (uint64_t)rows, sizeof *pivots);
    if (!pivots) return NULL;
    bh__solver_vector_read(job, &job->request->pivots, BH_I32, pivots);
    for (int i = 0; i < rows; i++) {
        if (pivots[i] < 0 || pivots[i] >= rows) {
            job->status = bh__fail(job->error, BH_E_INVALID, "pass the pivots that getrf has made",
                                   "%s: pivots[%d] is %d; A has rows 0 to %d (member %llu)",
                                   job->operation->name, i, pivots[i], rows - 1,
                                   (unsigned long long)job->member);
            return NULL;
        }
        pivots[i]++;
    }
    return pivots;
}

void bh__solver_getrf(bh__solver_job *job) {
    bh__dense a = open_all(job, &job->request->a, 0);
    int k = smaller(a.rows, a.columns);
    int *pivots = bh__solver_scratch(job, (uint64_t)k, sizeof *pivots);
    if (job->status != BH_OK) return;
    FUNCTION(getrf_function, BH__GETRF, job)
    (&a.rows, &a.columns, a.data, &a.stride, pivots, &job->info);
    bh__dense_write(&a);
    keep_inside(pivots, k, a.rows);
    write_pivots(job, pivots, k);
}

static void solve_factored(bh__solver_job *job, const bh__dense *a, const int *pivots, char op) {
    bh__dense b = open_all(job, &job->request->b, 0);
    if (job->status != BH_OK) return;
    FUNCTION(getrs_function, BH__GETRS, job)
    (&op, &a->rows, &b.columns, a->data, &a->stride, pivots, b.data, &b.stride, &job->info, 1);
    bh__dense_write(&b);
}

void bh__solver_getrs(bh__solver_job *job) {
    bh__dense a = open_all(job, &job->request->a, 0);
    int *pivots = read_pivots(job, a.rows);
    uint32_t flags = job->request->flags;
    char op = flags & BH_SOLVER_TRANSPOSED ? 'T' : flags & BH_SOLVER_ADJOINT ? 'C' : 'N';
    if (job->status == BH_OK) solve_factored(job, &a, pivots, op);
}

void bh__solver_gesv(bh__solver_job *job) {
    bh__dense a = open_all(job, &job->request->a, 0);
    int *pivots = bh__solver_scratch(job, (uint64_t)a.rows, sizeof *pivots);
    if (job->status != BH_OK) return;
    FUNCTION(getrf_function, BH__GETRF, job)
    (&a.rows, &a.columns, a.data, &a.stride, pivots, &job->info);
    bh__dense_write(&a);
    keep_inside(pivots, a.rows, a.rows);
    if (job->info == 0) solve_factored(job, &a, pivots, 'N');
    if (job->request->pivots.buffer.id) write_pivots(job, pivots, a.rows);
}

void bh__solver_getri(bh__solver_job *job) {
    bh__dense a = open_all(job, &job->request->a, 0);
    int *pivots = read_pivots(job, a.rows), count;
    double answer[2];
    if (job->status != BH_OK) return;
    getri_function *getri = FUNCTION(getri_function, BH__GETRI, job);
    getri(&a.rows, a.data, &a.stride, pivots, answer, &ask, &job->info);
    count = bh__solver_asked(job->type, answer);
    void *work = bh__solver_scratch(job, (uint64_t)count, size_of(job));
    if (!work) return;
    getri(&a.rows, a.data, &a.stride, pivots, work, &count, &job->info);
    bh__dense_write(&a);
}

/* ---- Cholesky ---- */

static char triangle_of(const bh__solver_job *job) {
    return job->request->flags & BH_SOLVER_UPPER ? 'U' : 'L';
}

/* A Hermitian matrix that lies row by row is its transpose, column by column: L L^H of one is U^H U
 * of the other, and the elements of L lie where those of U do. */
static bh__dense open_triangle_turned(bh__solver_job *job, bh_matrix *storage, char *out_triangle) {
    bool by_columns = job->request->a.flags & BH_MATRIX_COLUMN_MAJOR;
    *storage = by_columns ? job->request->a : bh_matrix_transposed(job->request->a);
    *out_triangle = (triangle_of(job) == 'U') == by_columns ? 'U' : 'L';
    return bh__dense_open(job, storage, job->type, BH__DENSE_FILL, *out_triangle, 0, 0);
}

static void in_triangle(bh__solver_job *job, uint32_t which) {
    bh_matrix turned;
    char triangle;
    bh__dense a = open_triangle_turned(job, &turned, &triangle);
    if (job->status == BH_OK) FUNCTION(potrf_function, which, job)
    (&triangle, &a.rows, a.data, &a.stride, &job->info, 1);
}

void bh__solver_potrf(bh__solver_job *job) {
    in_triangle(job, BH__POTRF);
}

void bh__solver_potri(bh__solver_job *job) {
    in_triangle(job, BH__POTRI);
}

void bh__solver_potrs(bh__solver_job *job) {
    char triangle = triangle_of(job);
    bh__dense a = bh__dense_open(job, &job->request->a, job->type, BH__DENSE_FILL, triangle, 0, 0);
    bh__dense b = open_all(job, &job->request->b, 0);
    if (job->status != BH_OK) return;
    FUNCTION(potrs_function, BH__POTRS, job)
    (&triangle, &a.rows, &b.columns, a.data, &a.stride, b.data, &b.stride, &job->info, 1);
    bh__dense_write(&b);
}

void bh__solver_posv(bh__solver_job *job) {
    bh__solver_potrf(job);
    if (job->status == BH_OK && job->info == 0) bh__solver_potrs(job);
}

/* ---- QR ---- */

void bh__solver_geqrf(bh__solver_job *job) {
    bh__dense a = open_all(job, &job->request->a, 0);
    int count, k = smaller(a.rows, a.columns);
    double answer[2];
    void *tau = bh__solver_scratch(job, (uint64_t)k, size_of(job));
    if (!tau) return;
    geqrf_function *geqrf = FUNCTION(geqrf_function, BH__GEQRF, job);
    geqrf(&a.rows, &a.columns, a.data, &a.stride, tau, answer, &ask, &job->info);
    count = bh__solver_asked(job->type, answer);
    void *work = bh__solver_scratch(job, (uint64_t)count, size_of(job));
    if (!work) return;
    geqrf(&a.rows, &a.columns, a.data, &a.stride, tau, work, &count, &job->info);
    bh__dense_write(&a);
    bh__solver_vector_write(job, &job->request->tau, job->type, tau);
}

static void *read_tau(bh__solver_job *job, int *out_count) {
    const bh_vector *vector = &job->request->tau;
    void *tau = bh__solver_scratch(job, vector->count, size_of(job));
    if (tau) bh__solver_vector_read(job, vector, job->type, tau);
    *out_count = (int)vector->count;
    return tau;
}

void bh__solver_ungqr(bh__solver_job *job) {
    bh__dense a = open_all(job, &job->request->a, 0);
    int count, k;
    double answer[2];
    void *tau = read_tau(job, &k);
    if (job->status != BH_OK) return;
    ungqr_function *ungqr = FUNCTION(ungqr_function, BH__UNGQR, job);
    ungqr(&a.rows, &a.columns, &k, a.data, &a.stride, tau, answer, &ask, &job->info);
    count = bh__solver_asked(job->type, answer);
    void *work = bh__solver_scratch(job, (uint64_t)count, size_of(job));
    if (!work) return;
    ungqr(&a.rows, &a.columns, &k, a.data, &a.stride, tau, work, &count, &job->info);
    bh__dense_write(&a);
}

/* LAPACK writes to A and restores it, and A is an input: it is copied. */
void bh__solver_unmqr(bh__solver_job *job) {
    bh__dense a = open_all(job, &job->request->a, BH__DENSE_COPY);
    bh__dense b = open_all(job, &job->request->b, 0);
    int count, k;
    double answer[2];
    void *tau = read_tau(job, &k);
    if (job->status != BH_OK) return;
    char side = job->request->flags & BH_SOLVER_RIGHT ? 'R' : 'L';
    char op = !(job->request->flags & BH_SOLVER_ADJOINT) ? 'N' : 'T';
    if (op == 'T' && bh__solver_is_complex(job)) op = 'C';
    unmqr_function *unmqr = FUNCTION(unmqr_function, BH__UNMQR, job);
    unmqr(&side, &op, &b.rows, &b.columns, &k, a.data, &a.stride, tau, b.data, &b.stride, answer,
          &ask, &job->info, 1, 1);
    count = bh__solver_asked(job->type, answer);
    void *work = bh__solver_scratch(job, (uint64_t)count, size_of(job));
    if (!work) return;
    unmqr(&side, &op, &b.rows, &b.columns, &k, a.data, &a.stride, tau, b.data, &b.stride, work,
          &count, &job->info, 1, 1);
    bh__dense_write(&b);
}

/* ---- least squares ---- */

/* B has the solution's rows too. */
static void least_squares(bh__solver_job *job, bh__dense *a, bh__dense *b) {
    int count;
    double answer[2];
    gels_function *gels = FUNCTION(gels_function, BH__GELS, job);
    gels("N", &a->rows, &a->columns, &b->columns, a->data, &a->stride, b->data, &b->stride, answer,
         &ask, &job->info, 1);
    count = bh__solver_asked(job->type, answer);
    void *work = bh__solver_scratch(job, (uint64_t)count, size_of(job));
    if (work)
        gels("N", &a->rows, &a->columns, &b->columns, a->data, &a->stride, b->data, &b->stride,
             work, &count, &job->info, 1);
}

void bh__solver_gels(bh__solver_job *job) {
    bh__dense a = open_all(job, &job->request->a, BH__DENSE_COPY);
    bh__dense b = bh__dense_open(job, &job->request->b, job->type, BH__DENSE_FILL | BH__DENSE_COPY,
                                 0, a.columns, 0);
    bh__dense x = bh__dense_open(job, &job->request->x, job->type, BH__DENSE_COPY, 0, 0, 0);
    if (job->status != BH_OK) return;
    if (!bh__dense_is_finite(&a) || !bh__dense_is_finite(&b))
        bh__solver_refuse_values(job);
    else
        least_squares(job, &a, &b);
    if (job->status != BH_OK) return;
    x.data = b.data;
    x.stride = b.stride;
    if (job->info) bh__dense_spoil(&x);
    bh__dense_write(&x);
}
