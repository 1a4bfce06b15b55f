/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests in BLAS's own form. BLAS reads matrices column by column, so one that lies row by row is
 * seen transposed, and so are formulas whose output is: C = A B becomes C^T = B^T A^T.
 *
 * BLAS has a flag for a transposed operand and one for an adjoint, none for an operand that is
 * conjugated only. Where vectors meet that, the vector is taken for a matrix with one row.
 */
#include <string.h>

#include "library/blas.h"

static const char no_way[] = "BLAS has no operation that conjugates this operand without "
                             "transposing it";

/* A matrix as BLAS sees it: the one meant, or its transpose. */
typedef struct view {
    uint64_t address;
    bool turned, conjugate;
    int rows, columns, stride; /* as seen */
    uint64_t next;
} view;

static bool by_columns(const bh_matrix *matrix) {
    return matrix->flags & BH_MATRIX_COLUMN_MAJOR;
}

static int positive(uint64_t number) {
    return number ? (int)number : 1;
}

static view see(const bh_matrix *matrix, bh_type type, uint64_t batch) {
    bh__region region;
    (void)bh__matrix_region(matrix, batch, true, &region);
    bool columns = by_columns(matrix);
    uint64_t inner = columns ? matrix->rows : matrix->columns;
    return (view){.address = matrix->buffer.id,
                  .turned = !columns,
                  .conjugate = matrix->flags & BH_MATRIX_CONJUGATE && bh__type_is_complex(type),
                  .rows = (int)inner,
                  .columns = (int)(columns ? matrix->columns : matrix->rows),
                  .stride = positive(matrix->stride ? matrix->stride : inner),
                  .next = region.batch_stride * bh__element_bytes(type)};
}

static void set_a(bh__blas_form *out, const view *of) {
    out->a = of->address;
    out->a_stride = of->stride;
    out->a_next = of->next;
}

static void set_b(bh__blas_form *out, const view *of) {
    out->b = of->address;
    out->b_stride = of->stride;
    out->b_next = of->next;
}

static void set_c(bh__blas_form *out, const view *of) {
    out->c = of->address;
    out->c_stride = of->stride;
    out->c_next = of->next;
}

/* The flag that makes of a view the matrix meant, or with `turned` its transpose. 0: none does. */
static char op_of(const view *of, bool turned) {
    if (of->turned == turned) return of->conjugate ? 0 : 'N';
    return of->conjugate ? 'C' : 'T';
}

/* The triangle as it is seen. */
static char triangle_of(const view *of, uint32_t flags) {
    bool upper = flags & BH_BLAS_UPPER;
    return upper != of->turned ? 'U' : 'L';
}

static char side_of(uint32_t flags, bool turned) {
    bool right = flags & BH_BLAS_RIGHT;
    return right != turned ? 'R' : 'L';
}

static bh_scalar conjugated(bh_scalar of) {
    of.im = -of.im;
    return of;
}

/* ---- vectors ---- */

/* A vector as a matrix with one row. Its stride is positive. */
static view row_of(uint64_t address, int count, int stride, uint64_t next) {
    return (view){.address = address, .rows = 1, .columns = count, .stride = stride, .next = next};
}

static view x_row(const bh__blas_form *self, int count) {
    return row_of(self->x, count, self->x_stride, self->x_next);
}

static view y_row(const bh__blas_form *self, int count) {
    return row_of(self->y, count, self->y_stride, self->y_next);
}

static bool rows_possible(const bh__blas_form *self) {
    return self->x_stride > 0 && self->y_stride > 0;
}

/* y = conj(S) x with S as it is seen: as y^T = x^T S^H. */
static const char *gemv_conjugated(bh__blas_form *out, const view *a, int rows, int columns) {
    if (!rows_possible(out)) return no_way;
    view x = x_row(out, columns), y = y_row(out, rows);
    out->kind = BH_BLAS_GEMM;
    set_a(out, &x);
    set_b(out, a);
    set_c(out, &y);
    out->op_a = 'N';
    out->op_b = 'C';
    out->m = 1;
    out->n = rows;
    out->k = columns;
    return NULL;
}

/* BLAS leaves y alone where A has no columns; a product of no columns is 0 and beta counts. */
static const char *gemv_empty(bh__blas_form *out, int rows) {
    view y = row_of(out->y, rows, out->y_stride < 0 ? -out->y_stride : out->y_stride, out->y_next);
    view none = {.stride = rows > 0 ? rows : 1};
    out->kind = BH_BLAS_GEMM;
    set_a(out, &none);
    set_b(out, &none);
    set_c(out, &y);
    out->op_b = 'T';
    out->m = 1;
    out->n = rows;
    out->k = 0;
    return NULL;
}

static const char *form_gemv(const bh_blas *in, const view *a, bh__blas_form *out) {
    if (in->a.columns == 0) return gemv_empty(out, (int)in->a.rows);
    char op = op_of(a, false);
    if (!op) return gemv_conjugated(out, a, (int)in->a.rows, (int)in->a.columns);
    set_a(out, a);
    out->op_a = op;
    out->m = a->rows;
    out->n = a->columns;
    return NULL;
}

static void swap_vectors(bh__blas_form *self) {
    bh__blas_form old = *self;
    self->x = old.y;
    self->x_stride = old.y_stride;
    self->x_next = old.y_next;
    self->y = old.x;
    self->y_stride = old.x_stride;
    self->y_next = old.x_next;
}

/* A^T = alpha conj(y) x^T + A^T, as a product with one column and one row. */
static const char *ger_conjugated(bh__blas_form *out, const view *a) {
    if (!rows_possible(out)) return no_way;
    view y = y_row(out, a->rows), x = x_row(out, a->columns);
    out->kind = BH_BLAS_GEMM;
    set_a(out, &y);
    set_b(out, &x);
    set_c(out, a);
    out->op_a = 'C';
    out->op_b = 'N';
    out->m = a->rows;
    out->n = a->columns;
    out->k = 1;
    out->beta = (bh_scalar){1, 0};
    return NULL;
}

static const char *form_ger(const view *a, bh__blas_form *out) {
    out->m = a->rows;
    out->n = a->columns;
    if (a->turned && out->conjugate) return ger_conjugated(out, a);
    if (a->turned) swap_vectors(out);
    set_a(out, a);
    return NULL;
}

/* Hermitian matrices that lie row by row are seen conjugated. */
static const char *form_hemv(const view *a, bh__blas_form *out) {
    set_a(out, a);
    out->m = out->n = a->rows;
    if (!a->turned) return NULL;
    if (!rows_possible(out)) return no_way;
    view x = x_row(out, a->rows), y = y_row(out, a->rows);
    out->kind = BH_BLAS_HEMM;
    out->side = 'R';
    out->m = 1;
    set_b(out, &x);
    set_c(out, &y);
    return NULL;
}

static const char *form_her(const view *a, bh__blas_form *out) {
    out->m = out->n = a->rows;
    if (!a->turned) {
        set_a(out, a);
        return NULL;
    }
    if (!rows_possible(out)) return no_way;
    bool two = out->kind == BH_BLAS_HER2;
    view x = x_row(out, a->rows), y = y_row(out, a->rows);
    out->kind = two ? BH_BLAS_HER2K : BH_BLAS_HERK;
    out->op_a = 'C';
    out->k = 1;
    out->alpha = conjugated(out->alpha);
    out->beta = (bh_scalar){1, 0};
    set_a(out, &x);
    set_b(out, &y);
    set_c(out, a);
    return NULL;
}

/* A triangular matrix that is to be conjugated: the vector is a row to the left of its adjoint. */
static const char *trmv_conjugated(const view *a, bh__blas_form *out) {
    if (out->x_stride <= 0) return no_way;
    view x = x_row(out, a->rows);
    out->kind = out->kind == BH_BLAS_TRMV ? BH_BLAS_TRMM : BH_BLAS_TRSM;
    out->side = 'R';
    out->op_a = 'C';
    out->m = 1;
    out->n = a->rows;
    out->alpha = (bh_scalar){1, 0};
    set_a(out, a);
    set_b(out, &x);
    return NULL;
}

static const char *form_trmv(const view *a, bh__blas_form *out) {
    out->op_a = op_of(a, false);
    out->n = out->m = a->rows;
    if (!out->op_a) return trmv_conjugated(a, out);
    set_a(out, a);
    return NULL;
}

/* ---- matrices ---- */

static const char *form_gemm(const bh_blas *in, const view *a, const view *b, const view *c,
                             bh__blas_form *out) {
    const view *one = c->turned ? b : a, *other = c->turned ? a : b;
    set_a(out, one);
    set_b(out, other);
    set_c(out, c);
    out->op_a = op_of(one, c->turned);
    out->op_b = op_of(other, c->turned);
    out->m = c->rows;
    out->n = c->columns;
    out->k = (int)in->a.columns;
    return out->op_a && out->op_b ? NULL : no_way;
}

static const char *form_symm(uint32_t flags, const view *a, const view *b, const view *c,
                             bh__blas_form *out) {
    if (b->turned != c->turned) return "BLAS has no operation for a B that lies unlike C";
    if (b->conjugate) return no_way;
    if (out->kind == BH_BLAS_HEMM && a->turned != c->turned)
        return "BLAS has no operation for a Hermitian A that lies unlike C";
    set_a(out, a);
    set_b(out, b);
    set_c(out, c);
    out->side = side_of(flags, c->turned);
    out->m = c->rows;
    out->n = c->columns;
    return NULL;
}

/* What is multiplied with its own transpose or adjoint: an operand as it is ('N'), or turned. 0: no
 * flag does it. */
static char rank_op(const view *of, bool hermitian, bool seen_conjugated) {
    if (!hermitian) return of->conjugate ? 0 : of->turned ? 'T' : 'N';
    bool conjugate = of->conjugate != seen_conjugated;
    if (of->turned != conjugate) return 0;
    return of->turned ? 'C' : 'N';
}

static const char *form_rank(const bh_blas *in, const view *a, const view *b, const view *c,
                             bh__blas_form *out) {
    bool hermitian = out->kind == BH_BLAS_HERK || out->kind == BH_BLAS_HER2K;
    out->op_a = rank_op(a, hermitian, c->turned);
    if (!out->op_a) return no_way;
    if (b && rank_op(b, hermitian, c->turned) != out->op_a)
        return "BLAS has no operation for a B that lies unlike A";
    set_a(out, a);
    if (b) set_b(out, b);
    set_c(out, c);
    if (hermitian && c->turned) out->alpha = conjugated(out->alpha);
    out->n = c->rows;
    out->m = out->n;
    out->k = (int)in->a.columns;
    return NULL;
}

static const char *form_triangular(uint32_t flags, const view *a, const view *b,
                                   bh__blas_form *out) {
    out->op_a = op_of(a, b->turned);
    if (!out->op_a || b->conjugate) return no_way;
    set_a(out, a);
    set_b(out, b);
    out->side = side_of(flags, b->turned);
    out->m = b->rows;
    out->n = b->columns;
    return NULL;
}

/* ---- all ---- */

static bh_type type_at(const bh__operation *operation, const bh_type *types, size_t at) {
    for (uint32_t i = 0; i < operation->operand_count; i++) {
        if (operation->operands[i].at == at) return types[i];
    }
    return types[0];
}

static void take_vectors(const bh__operation *operation, const bh_blas *in, const bh_type *types,
                         bh__blas_form *out) {
    bh__region region;
    uint32_t bytes = bh__element_bytes(types[0]);
    out->x = in->x.buffer.id;
    out->x_stride = in->x.stride ? (int)in->x.stride : 1;
    (void)bh__vector_region(&in->x, out->batch, true, &region);
    out->x_next = region.batch_stride * bytes;
    out->y = in->y.buffer.id;
    out->y_stride = in->y.stride ? (int)in->y.stride : 1;
    (void)bh__vector_region(&in->y, out->batch, true, &region);
    out->y_next = region.batch_stride * bytes;
    out->result = in->result.buffer.id;
    (void)bh__vector_region(&in->result, out->batch, true, &region);
    out->result_next = region.batch_stride *
                       bh__element_bytes(type_at(operation, types, offsetof(bh_blas, result)));
    out->m = out->n = (int)in->x.count;
}

/* Matrices that are only written, or whose triangle counts, cannot be conjugated. */
static const char *check_conjugates(const bh__operation *operation, const bh_blas *in) {
    for (uint32_t i = 0; i < operation->operand_count; i++) {
        const bh__operand *operand = &operation->operands[i];
        if (operand->form != BH__FORM_MATRIX) continue;
        bh_matrix matrix;
        memcpy(&matrix, (const uint8_t *)in + operand->at, sizeof matrix);
        bool triangular = operation->kind == BH_BLAS_TRMM || operation->kind == BH_BLAS_TRSM ||
                          operation->kind == BH_BLAS_TRMV || operation->kind == BH_BLAS_TRSV;
        bool fixed = operand->access != BH_ACCESS_IN || (operand->triangle && !triangular);
        if (fixed && matrix.flags & BH_MATRIX_CONJUGATE)
            return "an output, and a symmetric or Hermitian operand, cannot be conjugated";
    }
    return NULL;
}

const char *bh__blas_form_make(const bh__operation *operation, const bh_blas *in,
                               const bh_type *types, bh__blas_form *out) {
    const char *wrong = check_conjugates(operation, in);
    if (wrong) return wrong;
    memset(out, 0, sizeof *out);
    out->kind = in->request.kind;
    out->type = types[0];
    out->c_type = type_at(operation, types, offsetof(bh_blas, c));
    out->batch = in->batch ? in->batch : 1;
    out->alpha = in->alpha;
    out->beta = in->beta;
    out->conjugate = in->flags & BH_BLAS_CONJUGATE && bh__type_is_complex(out->type);
    out->unit = in->flags & BH_BLAS_UNIT ? 'U' : 'N';
    out->op_a = out->op_b = 'N';
    out->side = 'L';
    take_vectors(operation, in, types, out);
    view a = see(&in->a, out->type, out->batch), b = see(&in->b, out->type, out->batch);
    view c = see(&in->c, out->c_type, out->batch);
    out->triangle = triangle_of(&a, in->flags);
    switch (out->kind) {
    case BH_BLAS_GEMV:
        return form_gemv(in, &a, out);
    case BH_BLAS_GER:
        return form_ger(&a, out);
    case BH_BLAS_HEMV:
        return form_hemv(&a, out);
    case BH_BLAS_HER:
    case BH_BLAS_HER2:
        return form_her(&a, out);
    case BH_BLAS_SYMV:
    case BH_BLAS_SYR:
    case BH_BLAS_SYR2:
        set_a(out, &a);
        out->n = a.rows;
        return NULL;
    case BH_BLAS_TRMV:
    case BH_BLAS_TRSV:
        return form_trmv(&a, out);
    case BH_BLAS_GEMM:
        return form_gemm(in, &a, &b, &c, out);
    case BH_BLAS_SYMM:
    case BH_BLAS_HEMM:
        return form_symm(in->flags, &a, &b, &c, out);
    case BH_BLAS_SYRK:
    case BH_BLAS_HERK:
        out->triangle = triangle_of(&c, in->flags);
        return form_rank(in, &a, NULL, &c, out);
    case BH_BLAS_SYR2K:
    case BH_BLAS_HER2K:
        out->triangle = triangle_of(&c, in->flags);
        return form_rank(in, &a, &b, &c, out);
    case BH_BLAS_TRMM:
    case BH_BLAS_TRSM:
        return form_triangular(in->flags, &a, &b, out);
    default:
        return NULL;
    }
}

bh__blas_number bh__blas_number_as(bh_type type, bh_scalar from) {
    bh__blas_number made;
    memset(&made, 0, sizeof made);
    if (bh__real_type(type) == BH_F64) {
        made.d[0] = from.re;
        made.d[1] = from.im;
    } else {
        made.f[0] = (float)from.re;
        made.f[1] = (float)from.im;
    }
    return made;
}

void bh__blas_form_next(bh__blas_form *self) {
    self->a += self->a_next;
    self->b += self->b_next;
    self->c += self->c_next;
    self->x += self->x_next;
    self->y += self->y_next;
    self->result += self->result_next;
}
