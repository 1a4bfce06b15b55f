/* SPDX-License-Identifier: Apache-2.0 */
/* Eigenvalues and singular values. LAPACK may not return from elements that are NaN or infinite, so
 * they are looked for first. */
#include <string.h>

#include "cpu/library/solver.h"

/* Lengths of character parameters come last, as compilers of Fortran pass them. */
typedef void syevd_function(const char *, const char *, const int *, void *, const int *, void *,
                            void *, const int *, int *, const int *, int *, size_t, size_t);
typedef void heevd_function(const char *, const char *, const int *, void *, const int *, void *,
                            void *, const int *, void *, const int *, int *, const int *, int *,
                            size_t, size_t);
typedef void real_geev_function(const char *, const char *, const int *, void *, const int *,
                                void *, void *, void *, const int *, void *, const int *, void *,
                                const int *, int *, size_t, size_t);
typedef void complex_geev_function(const char *, const char *, const int *, void *, const int *,
                                   void *, void *, const int *, void *, const int *, void *,
                                   const int *, void *, int *, size_t, size_t);
typedef void real_gesdd_function(const char *, const int *, const int *, void *, const int *,
                                 void *, void *, const int *, void *, const int *, void *,
                                 const int *, int *, int *, size_t);
typedef void complex_gesdd_function(const char *, const int *, const int *, void *, const int *,
                                    void *, void *, const int *, void *, const int *, void *,
                                    const int *, void *, int *, int *, size_t);

#define FUNCTION(of, which, job) ((of *)(uintptr_t)bh__solver_function(job, which))

static const int ask = -1; /* as the size of the memory to work in: how much would be good? */

static bool is_wanted(const bh_matrix *matrix) {
    return matrix->buffer.id != 0;
}

static size_t size_of(const bh__solver_job *job) {
    return bh__element_bytes(job->type);
}

static size_t real_size(const bh__solver_job *job) {
    return bh__element_bytes(job->real);
}

/* ---- Hermitian ---- */

typedef struct hermitian {
    char vectors, triangle;
    int n;
    void *data, *values;
    int stride;
} hermitian;

static void real_symmetric(bh__solver_job *job, const hermitian *h) {
    syevd_function *syevd = FUNCTION(syevd_function, BH__SYEVD, job);
    double answer[2];
    int whole = 0;
    syevd(&h->vectors, &h->triangle, &h->n, h->data, &h->stride, h->values, answer, &ask, &whole,
          &ask, &job->info, 1, 1);
    int count = bh__solver_asked(job->type, answer);
    void *work = bh__solver_scratch(job, (uint64_t)count, size_of(job));
    int *integers = bh__solver_scratch(job, whole > 0 ? (uint64_t)whole : 1, sizeof *integers);
    if (job->status != BH_OK) return;
    syevd(&h->vectors, &h->triangle, &h->n, h->data, &h->stride, h->values, work, &count, integers,
          &whole, &job->info, 1, 1);
}

static void complex_hermitian(bh__solver_job *job, const hermitian *h) {
    heevd_function *heevd = FUNCTION(heevd_function, BH__SYEVD, job);
    double answer[2], real_answer[2];
    int whole = 0;
    heevd(&h->vectors, &h->triangle, &h->n, h->data, &h->stride, h->values, answer, &ask,
          real_answer, &ask, &whole, &ask, &job->info, 1, 1);
    int count = bh__solver_asked(job->type, answer);
    int reals = bh__solver_asked(job->type, real_answer);
    void *work = bh__solver_scratch(job, (uint64_t)count, size_of(job));
    void *real_work = bh__solver_scratch(job, (uint64_t)reals, real_size(job));
    int *integers = bh__solver_scratch(job, whole > 0 ? (uint64_t)whole : 1, sizeof *integers);
    if (job->status != BH_OK) return;
    heevd(&h->vectors, &h->triangle, &h->n, h->data, &h->stride, h->values, work, &count, real_work,
          &reals, integers, &whole, &job->info, 1, 1);
}

/* LAPACK leaves the vectors where the matrix was. */
void bh__solver_syevd(bh__solver_job *job) {
    const bh_solver *request = job->request;
    char triangle = request->flags & BH_SOLVER_UPPER ? 'U' : 'L';
    bool wanted = is_wanted(&request->v);
    bh__dense v = {0};
    if (wanted) v = bh__dense_open(job, &request->v, job->type, 0, 0, 0, 0);
    bh__dense a = bh__dense_open(job, &request->a, job->type, BH__DENSE_COPY, triangle, 0, 0);
    hermitian h = {.vectors = wanted ? 'V' : 'N', .triangle = triangle, .n = a.rows};
    h.values = bh__solver_scratch(job, (uint64_t)a.rows, real_size(job));
    if (job->status != BH_OK) return;
    if (wanted) {
        a.data = v.data;
        a.stride = v.stride;
    }
    bh__dense_read(&a, a.data, a.stride);
    h.data = a.data;
    h.stride = a.stride;
    if (!bh__dense_is_finite(&a))
        bh__solver_refuse_values(job);
    else if (bh__solver_is_complex(job))
        complex_hermitian(job, &h);
    else
        real_symmetric(job, &h);
    if (job->status != BH_OK) return;
    bh__solver_vector_write(job, &request->values, job->real, h.values);
    if (job->info) bh__solver_vector_spoil(job, &request->values, job->real);
    if (job->info && wanted) bh__dense_spoil(&v);
    if (wanted) bh__dense_write(&v);
}

/* ---- general ---- */

/* A complex number of two real ones, of the job's type. */
static void join(const bh__solver_job *job, const uint8_t *re, const uint8_t *im, bool negative,
                 uint8_t *to) {
    size_t size = real_size(job);
    memcpy(to, re, size);
    if (im)
        memcpy(to + size, im, size);
    else
        memset(to + size, 0, size);
    if (negative) to[2 * size - 1] ^= 0x80;
}

static bool is_zero(const bh__solver_job *job, const uint8_t *number) {
    float single;
    double wide;
    if (job->real == BH_F32) {
        memcpy(&single, number, sizeof single);
        return single == 0;
    }
    memcpy(&wide, number, sizeof wide);
    return wide == 0;
}

/* Of two eigenvalues that are conjugates LAPACK gives the real parts of the first one's vector in
 * one column and the imaginary parts in the next. */
static void join_vectors(const bh__solver_job *job, const uint8_t *pairs, const uint8_t *im,
                         bh__dense *out) {
    size_t size = real_size(job), n = (size_t)out->rows;
    for (size_t j = 0; j < n; j++) {
        bool pair = !is_zero(job, im + j * size) && j + 1 < n;
        const uint8_t *column = pairs + j * n * size;
        uint8_t *to = out->data + j * (size_t)out->stride * 2 * size;
        uint8_t *next = to + (size_t)out->stride * 2 * size;
        for (size_t i = 0; i < n; i++) {
            const uint8_t *re = column + i * size, *other = re + n * size;
            join(job, re, pair ? other : NULL, false, to + i * 2 * size);
            if (pair) join(job, re, other, true, next + i * 2 * size);
        }
        if (pair) j++;
    }
}

typedef struct general {
    bh__dense a, u, v;
    char left, right;
    int u_stride, v_stride; /* at least 1, also of what is left out */
    uint8_t *values;        /* complex */
} general;

static void real_general(bh__solver_job *job, general *g) {
    real_geev_function *geev = FUNCTION(real_geev_function, BH__GEEV, job);
    int n = g->a.rows, stride = n ? n : 1, count;
    uint64_t square = (uint64_t)n * (uint64_t)n;
    double answer[2];
    uint8_t *re = bh__solver_scratch(job, (uint64_t)n, size_of(job));
    uint8_t *im = bh__solver_scratch(job, (uint64_t)n, size_of(job));
    uint8_t *u = bh__solver_scratch(job, g->left == 'V' ? square : 1, size_of(job));
    uint8_t *v = bh__solver_scratch(job, g->right == 'V' ? square : 1, size_of(job));
    geev(&g->left, &g->right, &n, g->a.data, &g->a.stride, re, im, u, &stride, v, &stride, answer,
         &ask, &job->info, 1, 1);
    count = bh__solver_asked(job->type, answer);
    void *work = bh__solver_scratch(job, (uint64_t)count, size_of(job));
    if (job->status != BH_OK) return;
    geev(&g->left, &g->right, &n, g->a.data, &g->a.stride, re, im, u, &stride, v, &stride, work,
         &count, &job->info, 1, 1);
    if (job->info) return;
    size_t size = real_size(job);
    for (size_t i = 0; i < (size_t)n; i++)
        join(job, re + i * size, im + i * size, false, g->values + i * 2 * size);
    if (g->left == 'V') join_vectors(job, u, im, &g->u);
    if (g->right == 'V') join_vectors(job, v, im, &g->v);
}

static void complex_general(bh__solver_job *job, general *g) {
    complex_geev_function *geev = FUNCTION(complex_geev_function, BH__GEEV, job);
    int n = g->a.rows, count;
    double answer[2];
    void *real_work = bh__solver_scratch(job, 2 * (uint64_t)n, real_size(job));
    geev(&g->left, &g->right, &n, g->a.data, &g->a.stride, g->values, g->u.data, &g->u_stride,
         g->v.data, &g->v_stride, answer, &ask, real_work, &job->info, 1, 1);
    count = bh__solver_asked(job->type, answer);
    void *work = bh__solver_scratch(job, (uint64_t)count, size_of(job));
    if (job->status != BH_OK) return;
    geev(&g->left, &g->right, &n, g->a.data, &g->a.stride, g->values, g->u.data, &g->u_stride,
         g->v.data, &g->v_stride, work, &count, real_work, &job->info, 1, 1);
}

/* Writes the values and the vectors, or NaN. */
static void write_found(bh__solver_job *job, const void *values, bh_type type, bh__dense *u,
                        bh__dense *v) {
    bh__solver_vector_write(job, &job->request->values, type, values);
    if (job->info) bh__solver_vector_spoil(job, &job->request->values, type);
    if (u->matrix && job->info) bh__dense_spoil(u);
    if (v->matrix && job->info) bh__dense_spoil(v);
    if (u->matrix) bh__dense_write(u);
    if (v->matrix) bh__dense_write(v);
}

void bh__solver_geev(bh__solver_job *job) {
    const bh_solver *request = job->request;
    general g = {.left = 'N', .right = 'N', .u_stride = 1, .v_stride = 1};
    g.a = bh__dense_open(job, &request->a, job->type, BH__DENSE_FILL | BH__DENSE_COPY, 0, 0, 0);
    if (is_wanted(&request->u)) {
        g.left = 'V';
        g.u = bh__dense_open(job, &request->u, job->complex, 0, 0, 0, 0);
        g.u_stride = g.u.stride;
    }
    if (is_wanted(&request->v)) {
        g.right = 'V';
        g.v = bh__dense_open(job, &request->v, job->complex, 0, 0, 0, 0);
        g.v_stride = g.v.stride;
    }
    g.values = bh__solver_scratch(job, (uint64_t)g.a.rows, bh__element_bytes(job->complex));
    if (job->status != BH_OK) return;
    if (!bh__dense_is_finite(&g.a))
        bh__solver_refuse_values(job);
    else if (bh__solver_is_complex(job))
        complex_general(job, &g);
    else
        real_general(job, &g);
    if (job->status == BH_OK) write_found(job, g.values, job->complex, &g.u, &g.v);
}

/* ---- singular values ---- */

typedef struct singular {
    bh__dense a, u, v;
    bh_matrix a_matrix, u_matrix, v_matrix;
    char vectors; /* 'A', 'S', 'N' */
    void *values, *u_data, *v_data;
    int k, u_stride, v_stride;
} singular;

static void call_gesdd(bh__solver_job *job, singular *s) {
    int count;
    double answer[2];
    uint64_t k = (uint64_t)s->k, longer = (uint64_t)s->a.rows + (uint64_t)s->a.columns;
    bool complex = bh__solver_is_complex(job);
    real_gesdd_function *real = FUNCTION(real_gesdd_function, BH__GESDD, job);
    complex_gesdd_function *other = FUNCTION(complex_gesdd_function, BH__GESDD, job);
    int *integers = bh__solver_scratch(job, 8 * k, sizeof *integers);
    void *reals = complex
                      ? bh__solver_scratch(job, 5 * k * k + 2 * longer * k + 7 * k, real_size(job))
                      : NULL;
    if (complex)
        other(&s->vectors, &s->a.rows, &s->a.columns, s->a.data, &s->a.stride, s->values, s->u_data,
              &s->u_stride, s->v_data, &s->v_stride, answer, &ask, reals, integers, &job->info, 1);
    else
        real(&s->vectors, &s->a.rows, &s->a.columns, s->a.data, &s->a.stride, s->values, s->u_data,
             &s->u_stride, s->v_data, &s->v_stride, answer, &ask, integers, &job->info, 1);
    count = bh__solver_asked(job->type, answer);
    void *work = bh__solver_scratch(job, (uint64_t)count, size_of(job));
    if (job->status != BH_OK) return;
    if (complex)
        other(&s->vectors, &s->a.rows, &s->a.columns, s->a.data, &s->a.stride, s->values, s->u_data,
              &s->u_stride, s->v_data, &s->v_stride, work, &count, reals, integers, &job->info, 1);
    else
        real(&s->vectors, &s->a.rows, &s->a.columns, s->a.data, &s->a.stride, s->values, s->u_data,
             &s->u_stride, s->v_data, &s->v_stride, work, &count, integers, &job->info, 1);
}

static bool by_rows(const bh_matrix *matrix) {
    return !(matrix->flags & BH_MATRIX_COLUMN_MAJOR);
}

/* A^T = V* S U^T: where all lie row by row, their transposes are in column order. */
static void turn(const bh_solver *request, singular *s) {
    s->a_matrix = request->a;
    s->u_matrix = request->u;
    s->v_matrix = request->v;
    bool turned = by_rows(&request->a) && (!is_wanted(&request->u) || by_rows(&request->u)) &&
                  (!is_wanted(&request->v) || by_rows(&request->v));
    if (!turned) return;
    s->a_matrix = bh_matrix_transposed(request->a);
    s->u_matrix = bh_matrix_transposed(request->v);
    s->v_matrix = bh_matrix_transposed(request->u);
}

/* LAPACK computes both matrices of vectors, and both whole or both short: more than is wanted goes
 * to memory of its own. */
static void open_vectors(bh__solver_job *job, singular *s) {
    bool u = is_wanted(&s->u_matrix), v = is_wanted(&s->v_matrix);
    int m = s->a.rows, n = s->a.columns;
    bool whole =
        (u && s->u_matrix.columns > (uint64_t)s->k) || (v && s->v_matrix.rows > (uint64_t)s->k);
    int u_columns = whole ? m : s->k, v_rows = whole ? n : s->k;
    s->u_stride = s->v_stride = 1;
    s->vectors = !u && !v ? 'N' : whole ? 'A' : 'S';
    if (s->vectors == 'N') return;
    s->u_stride = m ? m : 1;
    s->v_stride = v_rows ? v_rows : 1;
    if (u) {
        s->u = bh__dense_open(job, &s->u_matrix, job->type, 0, 0, m, u_columns);
        s->u_stride = s->u.stride;
        s->u_data = s->u.data;
    } else {
        s->u_data = bh__solver_scratch(job, (uint64_t)m * (uint64_t)u_columns, size_of(job));
    }
    if (v) {
        s->v = bh__dense_open(job, &s->v_matrix, job->type, 0, 0, v_rows, n);
        s->v_stride = s->v.stride;
        s->v_data = s->v.data;
    } else {
        s->v_data = bh__solver_scratch(job, (uint64_t)v_rows * (uint64_t)n, size_of(job));
    }
}

void bh__solver_gesvd(bh__solver_job *job) {
    singular s = {0};
    turn(job->request, &s);
    s.a = bh__dense_open(job, &s.a_matrix, job->type, BH__DENSE_FILL | BH__DENSE_COPY, 0, 0, 0);
    s.k = s.a.rows < s.a.columns ? s.a.rows : s.a.columns;
    open_vectors(job, &s);
    s.values = bh__solver_scratch(job, (uint64_t)s.k, real_size(job));
    if (job->status != BH_OK) return;
    if (!bh__dense_is_finite(&s.a))
        bh__solver_refuse_values(job);
    else if (s.k > 0)
        call_gesdd(job, &s);
    if (job->status != BH_OK) return;
    if (s.k == 0 && s.u.matrix) bh__dense_unit(&s.u);
    if (s.k == 0 && s.v.matrix) bh__dense_unit(&s.v);
    write_found(job, s.values, job->real, &s.u, &s.v);
}
