/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of solver.h. An operation is a row here, a function in bulkhead/solver.h that
 * fills in its request, a case in each worker, and a test. */
#include "library/solver.h"

#define ALL                                                                                        \
    (BH__TYPE_BIT(BH_F32) | BH__TYPE_BIT(BH_F64) | BH__TYPE_BIT(BH_C64) | BH__TYPE_BIT(BH_C128))

#define AT(field) .name = #field, .at = offsetof(bh_solver, field)
#define MATRIX(field, use, letters)                                                                \
    { AT(field), .form = BH__FORM_MATRIX, .access = BH_ACCESS_##use, .shape = letters }
#define TRIANGLE(field, use)                                                                       \
    {                                                                                              \
        AT(field), .form = BH__FORM_MATRIX, .access = BH_ACCESS_##use, .triangle = true,           \
                   .shape = "nn"                                                                   \
    }
#define VECTOR(field, of_type, use, letter)                                                        \
    {                                                                                              \
        AT(field), .form = BH__FORM_VECTOR, .type = BH__TYPE_##of_type, .access = BH_ACCESS_##use, \
                   .shape = letter                                                                 \
    }
/* Matrices of vectors that may be left out. */
#define WANTED(field, of_type, letters)                                                            \
    {                                                                                              \
        AT(field), .form = BH__FORM_MATRIX, .type = BH__TYPE_##of_type, .access = BH_ACCESS_OUT,   \
                   .optional = true, .shape = letters                                              \
    }
#define OPTIONAL(field, of_type, letter)                                                           \
    {                                                                                              \
        AT(field), .form = BH__FORM_VECTOR, .type = BH__TYPE_##of_type, .access = BH_ACCESS_OUT,   \
                   .optional = true, .shape = letter                                               \
    }
#define INFO OPTIONAL(info, INFO, "1")

#define OPERATION(upper, text) .kind = BH_SOLVER_##upper, .name = "solver." text, .types = ALL

enum {
    STRICT = BH_SOLVER_STRICT,
    UPPER = BH_SOLVER_UPPER,
    TURNED = BH_SOLVER_TRANSPOSED | BH_SOLVER_ADJOINT
};

const bh__operation bh__solver_operations[BH__SOLVER_OPERATIONS] = {
    {OPERATION(GETRF, "getrf"), .flags = STRICT, .operand_count = 3,
     .operands = {MATRIX(a, INOUT, "mn"), VECTOR(pivots, INFO, OUT, "K"), INFO}},
    {OPERATION(GETRS, "getrs"), .flags = TURNED, .operand_count = 3,
     .operands = {MATRIX(a, IN, "nn"), VECTOR(pivots, INFO, IN, "n"), MATRIX(b, INOUT, "nr")}},
    {OPERATION(GESV, "gesv"), .flags = STRICT, .operand_count = 4,
     .operands = {MATRIX(a, INOUT, "nn"), OPTIONAL(pivots, INFO, "n"), MATRIX(b, INOUT, "nr"),
                  INFO}},
    {OPERATION(GETRI, "getri"), .flags = STRICT, .operand_count = 3,
     .operands = {MATRIX(a, INOUT, "nn"), VECTOR(pivots, INFO, IN, "n"), INFO}},

    {OPERATION(POTRF, "potrf"), .flags = UPPER | STRICT, .operand_count = 2,
     .operands = {TRIANGLE(a, INOUT), INFO}},
    {OPERATION(POTRS, "potrs"), .flags = UPPER, .operand_count = 2,
     .operands = {TRIANGLE(a, IN), MATRIX(b, INOUT, "nr")}},
    {OPERATION(POSV, "posv"), .flags = UPPER | STRICT, .operand_count = 3,
     .operands = {TRIANGLE(a, INOUT), MATRIX(b, INOUT, "nr"), INFO}},
    {OPERATION(POTRI, "potri"), .flags = UPPER | STRICT, .operand_count = 2,
     .operands = {TRIANGLE(a, INOUT), INFO}},

    {OPERATION(GEQRF, "geqrf"), .operand_count = 2,
     .operands = {MATRIX(a, INOUT, "mn"), VECTOR(tau, SAME, OUT, "K")}},
    {OPERATION(UNGQR, "ungqr"), .operand_count = 2,
     .operands = {MATRIX(a, INOUT, "mn"), VECTOR(tau, SAME, IN, "k")}},
    {OPERATION(UNMQR, "unmqr"), .flags = BH_SOLVER_ADJOINT | BH_SOLVER_RIGHT, .operand_count = 3,
     .operands = {MATRIX(a, IN, "sk"), VECTOR(tau, SAME, IN, "k"), MATRIX(b, INOUT, "mn")}},

    {OPERATION(GELS, "gels"), .flags = STRICT, .operand_count = 4,
     .operands = {MATRIX(a, IN, "mn"), MATRIX(b, IN, "mr"), MATRIX(x, OUT, "nr"), INFO}},
    {OPERATION(SYEVD, "syevd"), .flags = UPPER | STRICT, .operand_count = 4,
     .operands = {TRIANGLE(a, IN), VECTOR(values, REAL, OUT, "n"), WANTED(v, SAME, "nn"), INFO}},
    {OPERATION(GEEV, "geev"), .flags = STRICT, .operand_count = 5,
     .operands = {MATRIX(a, IN, "nn"), VECTOR(values, COMPLEX, OUT, "n"), WANTED(u, COMPLEX, "nn"),
                  WANTED(v, COMPLEX, "nn"), INFO}},
    {OPERATION(GESVD, "gesvd"), .flags = STRICT, .operand_count = 5,
     .operands = {MATRIX(a, IN, "mn"), VECTOR(values, REAL, OUT, "K"), WANTED(u, SAME, "mp"),
                  WANTED(v, SAME, "qn"), INFO}},
};

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* The numbers of elements that LAPACK asks for must fit its 32 bits. Sizes are below 2^31. */
static bool workspace_fits(uint32_t kind, const bh_solver *request) {
    uint64_t rows = request->a.rows, columns = request->a.columns, k = smaller(rows, columns);
    uint64_t sum = 128 * (rows + columns + request->b.rows + request->b.columns + 1);
    if (kind == BH_SOLVER_SYEVD && k < UINT16_MAX) sum += 2 * k * k;
    if (kind == BH_SOLVER_GESVD && k < UINT16_MAX) sum += 5 * k * k + 2 * k * (rows + columns);
    bool squares = kind == BH_SOLVER_SYEVD || kind == BH_SOLVER_GESVD;
    return sum <= INT32_MAX && !(squares && k >= UINT16_MAX);
}

static bool conjugates_output(const bh__operation *operation, const bh_solver *request) {
    for (uint32_t i = 0; i < operation->operand_count; i++) {
        const bh__operand *operand = &operation->operands[i];
        const bh_matrix *matrix =
            (const bh_matrix *)((const uint8_t *)request + operand->at); /* aligned by its type */
        if (operand->form == BH__FORM_MATRIX && operand->access & BH_ACCESS_OUT &&
            matrix->flags & BH_MATRIX_CONJUGATE)
            return true;
    }
    return false;
}

static bool has_info(const bh__operation *operation) {
    return operation->operands[operation->operand_count - 1].at == offsetof(bh_solver, info);
}

static const char *refuse_shape(const bh_solver *request, const char **fix) {
    const bh_matrix *a = &request->a, *u = &request->u, *v = &request->v;
    uint64_t k = smaller(a->rows, a->columns), reflectors = request->tau.count;
    switch (request->request.kind) {
    case BH_SOLVER_UNGQR:
        *fix = "make A a matrix with as many columns as are wanted of Q";
        if (a->columns > a->rows) return "A has more columns than rows; Q has none such";
        return reflectors > a->columns ? "tau has more elements than A has columns" : NULL;
    case BH_SOLVER_UNMQR:
        *fix = "pass bh_matrix_part of A: the columns with reflectors, one for each element of tau";
        return a->columns > a->rows ? "A has more columns than rows" : NULL;
    case BH_SOLVER_GESVD:
        *fix = "make U square or m x K and V square or K x n, where A is m x n and K is the "
               "smaller number";
        if (u->buffer.id && u->columns != k && u->columns != a->rows)
            return "U is neither square nor has it a column for each singular value";
        if (v->buffer.id && v->rows != k && v->rows != a->columns)
            return "V is neither square nor has it a row for each singular value";
        return NULL;
    default:
        return NULL;
    }
}

const char *bh__solver_refuse(const bh__operation *operation, const void *given,
                              const bh_type *types, const char **fix) {
    const bh_solver *request = given;
    bool complex = bh__type_is_complex(types[0]);
    const uint32_t both = BH_SOLVER_TRANSPOSED | BH_SOLVER_ADJOINT;
    *fix = "use matrices with fewer rows and columns";
    if (!workspace_fits(operation->kind, request))
        return "the memory that it works in is too large for libraries that count in 32 bits";
    *fix = "use one of BH_SOLVER_TRANSPOSED and BH_SOLVER_ADJOINT";
    if ((request->flags & both) == both) return "it cannot be transposed and adjoint at once";
    *fix = "leave BH_MATRIX_CONJUGATE out";
    if (complex && conjugates_output(operation, request))
        return "a matrix that is written has BH_MATRIX_CONJUGATE, which is for inputs";
    *fix = "pass a vector for info, or set BH_SOLVER_STRICT";
    if (has_info(operation) && !request->info.buffer.id && !(request->flags & BH_SOLVER_STRICT))
        return "without info nobody would know that it failed";
    return refuse_shape(request, fix);
}
