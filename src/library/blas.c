/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of BLAS. An operation is a row here, a function in bulkhead/blas.h that fills in
 * its request, a case in form.c and in each worker, and a test. */
#include "library/blas.h"

#define REAL    (BH__TYPE_BIT(BH_F32) | BH__TYPE_BIT(BH_F64))
#define COMPLEX (BH__TYPE_BIT(BH_C64) | BH__TYPE_BIT(BH_C128))
#define ALL     (REAL | COMPLEX)
#define PRODUCT (ALL | BH__TYPE_BIT(BH_F16) | BH__TYPE_BIT(BH_BF16) | BH__TYPE_BIT(BH_I8))

#define AT(field) .name = #field, .at = offsetof(bh_blas, field)
#define VECTOR(field, use, letter)                                                                 \
    { AT(field), .form = BH__FORM_VECTOR, .access = BH_ACCESS_##use, .shape = letter }
#define MATRIX(field, use, letters)                                                                \
    { AT(field), .form = BH__FORM_MATRIX, .access = BH_ACCESS_##use, .shape = letters }
#define TRIANGLE(field, use, letters)                                                              \
    {                                                                                              \
        AT(field), .form = BH__FORM_MATRIX, .access = BH_ACCESS_##use, .triangle = true,           \
                   .shape = letters                                                                \
    }
/* Read only if beta is not 0. */
#define SCALED_VECTOR(field, letter)                                                               \
    {                                                                                              \
        AT(field), .form = BH__FORM_VECTOR, .access = BH_ACCESS_INOUT, .scaled = true,             \
                   .shape = letter                                                                 \
    }
#define SCALED_MATRIX(field, letters)                                                              \
    {                                                                                              \
        AT(field), .form = BH__FORM_MATRIX, .access = BH_ACCESS_INOUT, .scaled = true,             \
                   .shape = letters                                                                \
    }
#define SCALED_TRIANGLE(field, letters)                                                            \
    {                                                                                              \
        AT(field), .form = BH__FORM_MATRIX, .access = BH_ACCESS_INOUT, .scaled = true,             \
                   .triangle = true, .shape = letters                                              \
    }
#define RESULT(of_type)                                                                            \
    {                                                                                              \
        AT(result), .form = BH__FORM_VECTOR, .type = BH__TYPE_##of_type, .access = BH_ACCESS_OUT,  \
                    .shape = "1"                                                                   \
    }

#define OPERATION(upper, text) .kind = BH_BLAS_##upper, .name = "blas." text

const bh__operation bh__blas_operations[BH__BLAS_OPERATIONS] = {
    {OPERATION(AXPY, "axpy"), .types = ALL, .alpha = true, .operand_count = 2,
     .operands = {VECTOR(x, IN, "n"), VECTOR(y, INOUT, "n")}},
    {OPERATION(SCAL, "scal"), .types = ALL, .alpha = true, .operand_count = 1,
     .operands = {VECTOR(x, INOUT, "n")}},
    {OPERATION(COPY, "copy"), .types = ALL, .operand_count = 2,
     .operands = {VECTOR(x, IN, "n"), VECTOR(y, OUT, "n")}},
    {OPERATION(SWAP, "swap"), .types = ALL, .operand_count = 2,
     .operands = {VECTOR(x, INOUT, "n"), VECTOR(y, INOUT, "n")}},
    {OPERATION(DOT, "dot"), .types = ALL, .flags = BH_BLAS_CONJUGATE, .operand_count = 3,
     .operands = {VECTOR(x, IN, "n"), VECTOR(y, IN, "n"), RESULT(SAME)}},
    {OPERATION(NRM2, "nrm2"), .types = ALL, .operand_count = 2,
     .operands = {VECTOR(x, IN, "n"), RESULT(REAL)}},
    {OPERATION(ASUM, "asum"), .types = ALL, .operand_count = 2,
     .operands = {VECTOR(x, IN, "n"), RESULT(REAL)}},
    {OPERATION(IAMAX, "iamax"), .types = ALL, .operand_count = 2,
     .operands = {VECTOR(x, IN, "n"), RESULT(INDEX)}},
    {OPERATION(ROT, "rot"), .types = ALL, .alpha = true, .beta = true, .real_alpha = true,
     .real_beta = true, .operand_count = 2,
     .operands = {VECTOR(x, INOUT, "n"), VECTOR(y, INOUT, "n")}},

    {OPERATION(GEMV, "gemv"), .types = ALL, .alpha = true, .beta = true, .operand_count = 3,
     .operands = {MATRIX(a, IN, "mn"), VECTOR(x, IN, "n"), SCALED_VECTOR(y, "m")}},
    {OPERATION(GER, "ger"), .types = ALL, .flags = BH_BLAS_CONJUGATE, .alpha = true,
     .operand_count = 3,
     .operands = {VECTOR(x, IN, "m"), VECTOR(y, IN, "n"), MATRIX(a, INOUT, "mn")}},
    {OPERATION(SYMV, "symv"), .types = REAL, .flags = BH_BLAS_UPPER, .alpha = true, .beta = true,
     .operand_count = 3,
     .operands = {TRIANGLE(a, IN, "nn"), VECTOR(x, IN, "n"), SCALED_VECTOR(y, "n")}},
    {OPERATION(HEMV, "hemv"), .types = COMPLEX, .flags = BH_BLAS_UPPER, .alpha = true, .beta = true,
     .operand_count = 3,
     .operands = {TRIANGLE(a, IN, "nn"), VECTOR(x, IN, "n"), SCALED_VECTOR(y, "n")}},
    {OPERATION(TRMV, "trmv"), .types = ALL, .flags = BH_BLAS_UPPER | BH_BLAS_UNIT,
     .operand_count = 2, .operands = {TRIANGLE(a, IN, "nn"), VECTOR(x, INOUT, "n")}},
    {OPERATION(TRSV, "trsv"), .types = ALL, .flags = BH_BLAS_UPPER | BH_BLAS_UNIT,
     .operand_count = 2, .operands = {TRIANGLE(a, IN, "nn"), VECTOR(x, INOUT, "n")}},
    {OPERATION(SYR, "syr"), .types = REAL, .flags = BH_BLAS_UPPER, .alpha = true,
     .operand_count = 2, .operands = {VECTOR(x, IN, "n"), TRIANGLE(a, INOUT, "nn")}},
    {OPERATION(HER, "her"), .types = COMPLEX, .flags = BH_BLAS_UPPER, .alpha = true,
     .real_alpha = true, .operand_count = 2,
     .operands = {VECTOR(x, IN, "n"), TRIANGLE(a, INOUT, "nn")}},
    {OPERATION(SYR2, "syr2"), .types = REAL, .flags = BH_BLAS_UPPER, .alpha = true,
     .operand_count = 3,
     .operands = {VECTOR(x, IN, "n"), VECTOR(y, IN, "n"), TRIANGLE(a, INOUT, "nn")}},
    {OPERATION(HER2, "her2"), .types = COMPLEX, .flags = BH_BLAS_UPPER, .alpha = true,
     .operand_count = 3,
     .operands = {VECTOR(x, IN, "n"), VECTOR(y, IN, "n"), TRIANGLE(a, INOUT, "nn")}},

    {OPERATION(GEMM, "gemm"), .types = PRODUCT, .alpha = true, .beta = true, .operand_count = 3,
     .operands = {MATRIX(a, IN, "mk"),
                  MATRIX(b, IN, "kn"),
                  {AT(c), .form = BH__FORM_MATRIX, .type = BH__TYPE_PRODUCT,
                   .access = BH_ACCESS_INOUT, .scaled = true, .shape = "mn"}}},
    {OPERATION(SYMM, "symm"), .types = ALL, .flags = BH_BLAS_UPPER | BH_BLAS_RIGHT, .alpha = true,
     .beta = true, .operand_count = 3,
     .operands = {TRIANGLE(a, IN, "ss"), MATRIX(b, IN, "mn"), SCALED_MATRIX(c, "mn")}},
    {OPERATION(HEMM, "hemm"), .types = COMPLEX, .flags = BH_BLAS_UPPER | BH_BLAS_RIGHT,
     .alpha = true, .beta = true, .operand_count = 3,
     .operands = {TRIANGLE(a, IN, "ss"), MATRIX(b, IN, "mn"), SCALED_MATRIX(c, "mn")}},
    {OPERATION(SYRK, "syrk"), .types = ALL, .flags = BH_BLAS_UPPER, .alpha = true, .beta = true,
     .operand_count = 2, .operands = {MATRIX(a, IN, "nk"), SCALED_TRIANGLE(c, "nn")}},
    {OPERATION(HERK, "herk"), .types = COMPLEX, .flags = BH_BLAS_UPPER, .alpha = true, .beta = true,
     .real_alpha = true, .real_beta = true, .operand_count = 2,
     .operands = {MATRIX(a, IN, "nk"), SCALED_TRIANGLE(c, "nn")}},
    {OPERATION(SYR2K, "syr2k"), .types = ALL, .flags = BH_BLAS_UPPER, .alpha = true, .beta = true,
     .operand_count = 3,
     .operands = {MATRIX(a, IN, "nk"), MATRIX(b, IN, "nk"), SCALED_TRIANGLE(c, "nn")}},
    {OPERATION(HER2K, "her2k"), .types = COMPLEX, .flags = BH_BLAS_UPPER, .alpha = true,
     .beta = true, .real_beta = true, .operand_count = 3,
     .operands = {MATRIX(a, IN, "nk"), MATRIX(b, IN, "nk"), SCALED_TRIANGLE(c, "nn")}},
    {OPERATION(TRMM, "trmm"), .types = ALL, .flags = BH_BLAS_UPPER | BH_BLAS_RIGHT | BH_BLAS_UNIT,
     .alpha = true, .operand_count = 2,
     .operands = {TRIANGLE(a, IN, "ss"), MATRIX(b, INOUT, "mn")}},
    {OPERATION(TRSM, "trsm"), .types = ALL, .flags = BH_BLAS_UPPER | BH_BLAS_RIGHT | BH_BLAS_UNIT,
     .alpha = true, .operand_count = 2,
     .operands = {TRIANGLE(a, IN, "ss"), MATRIX(b, INOUT, "mn")}},
};

/* Products of 8-bit integers are multiplied with 32-bit ones. */
static bool is_whole(bh_scalar number) {
    return number.re >= INT32_MIN && number.re <= INT32_MAX &&
           number.re == (double)(int32_t)number.re;
}

const char *bh__blas_refuse(const bh__operation *operation, const void *request,
                            const bh_type *types, const char **fix) {
    const bh_blas *call = request;
    bh__blas_form form;
    *fix = "pass whole numbers below 2^31 as alpha and beta";
    if (types[0] == BH_I8 && !(is_whole(call->alpha) && is_whole(call->beta)))
        return "elements that are integers are multiplied with integers";
    *fix = "pass the vector with a positive stride";
    if (operation->kind == BH_BLAS_IAMAX && call->x.stride < 0)
        return "BLAS finds the first of the largest elements in the order in which they lie";
    const char *reason = bh__blas_form_make(operation, request, types, &form);
    *fix = "store an operand the other way (BH_MATRIX_COLUMN_MAJOR), or conjugated";
    return reason;
}
