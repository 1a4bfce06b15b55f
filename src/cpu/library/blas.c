/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BLAS on the CPU device: OpenBLAS, or another library with the same interface. Its Fortran
 * functions are used: all four types of a function have the same parameters there.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cpu/library/library.h"
#include "cpu/library/narrow.h"
#include "library/blas.h"

/* Lengths of character parameters come last, as compilers of Fortran pass them. */
typedef void gemm_function(const char *, const char *, const int *, const int *, const int *,
                           const void *, uint64_t, const int *, uint64_t, const int *, const void *,
                           uint64_t, const int *, size_t, size_t);
typedef void gemv_function(const char *, const int *, const int *, const void *, uint64_t,
                           const int *, uint64_t, const int *, const void *, uint64_t, const int *,
                           size_t);
typedef void symm_function(const char *, const char *, const int *, const int *, const void *,
                           uint64_t, const int *, uint64_t, const int *, const void *, uint64_t,
                           const int *, size_t, size_t);
typedef void syrk_function(const char *, const char *, const int *, const int *, const void *,
                           uint64_t, const int *, const void *, uint64_t, const int *, size_t,
                           size_t);
typedef void syr2k_function(const char *, const char *, const int *, const int *, const void *,
                            uint64_t, const int *, uint64_t, const int *, const void *, uint64_t,
                            const int *, size_t, size_t);
typedef void trmm_function(const char *, const char *, const char *, const char *, const int *,
                           const int *, const void *, uint64_t, const int *, uint64_t, const int *,
                           size_t, size_t, size_t, size_t);
typedef void ger_function(const int *, const int *, const void *, uint64_t, const int *, uint64_t,
                          const int *, uint64_t, const int *);
typedef void symv_function(const char *, const int *, const void *, uint64_t, const int *, uint64_t,
                           const int *, const void *, uint64_t, const int *, size_t);
typedef void syr_function(const char *, const int *, const void *, uint64_t, const int *, uint64_t,
                          const int *, size_t);
typedef void syr2_function(const char *, const int *, const void *, uint64_t, const int *, uint64_t,
                           const int *, uint64_t, const int *, size_t);
typedef void trmv_function(const char *, const char *, const char *, const int *, uint64_t,
                           const int *, uint64_t, const int *, size_t, size_t, size_t);
typedef void axpy_function(const int *, const void *, uint64_t, const int *, uint64_t, const int *);
typedef void scal_function(const int *, const void *, uint64_t, const int *);
typedef void swap_function(const int *, uint64_t, const int *, uint64_t, const int *);
typedef void rot_function(const int *, uint64_t, const int *, uint64_t, const int *, const void *,
                          const void *);
/* Of the C interface, because functions with results differ between compilers of Fortran. */
typedef float float_of_one(int, uint64_t, int);
typedef double double_of_one(int, uint64_t, int);
typedef float float_of_two(int, uint64_t, int, uint64_t, int);
typedef double double_of_two(int, uint64_t, int, uint64_t, int);
typedef void complex_of_two(int, uint64_t, int, uint64_t, int, uint64_t);
typedef size_t index_of_one(int, uint64_t, int);

enum { KINDS = BH_BLAS_TRSM - BH_BLAS_AXPY + 1, TYPES = 4 };

/* Names for s, d, c and z. */
static const struct {
    uint32_t kind;
    const char *names[TYPES];
} functions[] = {
    {BH_BLAS_AXPY, {"saxpy_", "daxpy_", "caxpy_", "zaxpy_"}},
    {BH_BLAS_SCAL, {"sscal_", "dscal_", "cscal_", "zscal_"}},
    {BH_BLAS_COPY, {"scopy_", "dcopy_", "ccopy_", "zcopy_"}},
    {BH_BLAS_SWAP, {"sswap_", "dswap_", "cswap_", "zswap_"}},
    {BH_BLAS_DOT, {"cblas_sdot", "cblas_ddot", "cblas_cdotu_sub", "cblas_zdotu_sub"}},
    {BH_BLAS_NRM2, {"cblas_snrm2", "cblas_dnrm2", "cblas_scnrm2", "cblas_dznrm2"}},
    {BH_BLAS_ASUM, {"cblas_sasum", "cblas_dasum", "cblas_scasum", "cblas_dzasum"}},
    {BH_BLAS_IAMAX, {"cblas_isamax", "cblas_idamax", "cblas_icamax", "cblas_izamax"}},
    {BH_BLAS_ROT, {"srot_", "drot_", "csrot_", "zdrot_"}},
    {BH_BLAS_GEMV, {"sgemv_", "dgemv_", "cgemv_", "zgemv_"}},
    {BH_BLAS_GER, {"sger_", "dger_", "cgeru_", "zgeru_"}},
    {BH_BLAS_SYMV, {"ssymv_", "dsymv_", NULL, NULL}},
    {BH_BLAS_HEMV, {NULL, NULL, "chemv_", "zhemv_"}},
    {BH_BLAS_TRMV, {"strmv_", "dtrmv_", "ctrmv_", "ztrmv_"}},
    {BH_BLAS_TRSV, {"strsv_", "dtrsv_", "ctrsv_", "ztrsv_"}},
    {BH_BLAS_SYR, {"ssyr_", "dsyr_", NULL, NULL}},
    {BH_BLAS_HER, {NULL, NULL, "cher_", "zher_"}},
    {BH_BLAS_SYR2, {"ssyr2_", "dsyr2_", NULL, NULL}},
    {BH_BLAS_HER2, {NULL, NULL, "cher2_", "zher2_"}},
    {BH_BLAS_GEMM, {"sgemm_", "dgemm_", "cgemm_", "zgemm_"}},
    {BH_BLAS_SYMM, {"ssymm_", "dsymm_", "csymm_", "zsymm_"}},
    {BH_BLAS_HEMM, {NULL, NULL, "chemm_", "zhemm_"}},
    {BH_BLAS_SYRK, {"ssyrk_", "dsyrk_", "csyrk_", "zsyrk_"}},
    {BH_BLAS_HERK, {NULL, NULL, "cherk_", "zherk_"}},
    {BH_BLAS_SYR2K, {"ssyr2k_", "dsyr2k_", "csyr2k_", "zsyr2k_"}},
    {BH_BLAS_HER2K, {NULL, NULL, "cher2k_", "zher2k_"}},
    {BH_BLAS_TRMM, {"strmm_", "dtrmm_", "ctrmm_", "ztrmm_"}},
    {BH_BLAS_TRSM, {"strsm_", "dtrsm_", "ctrsm_", "ztrsm_"}},
};
static const char *const conjugated_names[2][2] = {{"cblas_cdotc_sub", "cblas_zdotc_sub"},
                                                   {"cgerc_", "zgerc_"}};

static struct {
    void *handle;
    char lack[256];
    void *functions[KINDS][TYPES];
    void *conjugated[2][2]; /* of DOT and GER, for c and z */
} blas;

static uint32_t type_index(bh_type type) {
    return type == BH_F32 ? 0 : type == BH_F64 ? 1 : type == BH_C64 ? 2 : 3;
}

static void *find_symbol(const char *name) {
    void *found = name ? dlsym(blas.handle, name) : NULL;
    if (name && !found && !blas.lack[0])
        snprintf(blas.lack, sizeof blas.lack, "it has no function %s", name);
    return found;
}

void bh__cpu_blas_find(void) {
    static const char *const files[] = {"libopenblas.so.0", "libopenblas.so", "libblis.so.4",
                                        "libmkl_rt.so.2",   "libblas.so.3",   NULL};
    blas.handle = bh__cpu_openblas_open(files, blas.lack);
    if (!blas.handle) return;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        for (int t = 0; t < TYPES; t++)
            blas.functions[functions[i].kind - BH_BLAS_AXPY][t] =
                find_symbol(functions[i].names[t]);
    }
    for (int i = 0; i < 2; i++) {
        for (int t = 0; t < 2; t++) blas.conjugated[i][t] = find_symbol(conjugated_names[i][t]);
    }
}

const char *bh__cpu_blas_lack(const char **fix) {
    *fix = "install OpenBLAS: apt install libopenblas0, or dnf install openblas";
    return blas.lack[0] ? blas.lack : NULL;
}

void bh__cpu_blas_begin(void) {
    bh__cpu_openblas_begin(blas.handle);
}

/* ---- calls ---- */

static void *function_of(const bh__blas_form *f) {
    uint32_t type = type_index(f->type);
    if (f->conjugate && type >= 2 && (f->kind == BH_BLAS_DOT || f->kind == BH_BLAS_GER))
        return blas.conjugated[f->kind == BH_BLAS_GER][type - 2];
    return blas.functions[f->kind - BH_BLAS_AXPY][type];
}

/* FUNCTION(type, f): the function of a request as one of this type. */
#define FUNCTION(of, f) ((of *)(uintptr_t)function_of(f))

static void put(uint64_t address, const void *bytes, size_t count) {
    memcpy((void *)(uintptr_t)address, bytes, count);
}

/* Functions with a result skip vectors whose stride is negative; the order does not matter there.
 */
static int size_of(int stride) {
    return stride < 0 ? -stride : stride;
}

static void run_reduction(const bh__blas_form *f) {
    bool single = bh__real_type(f->type) == BH_F32;
    int n = f->m;
    if (f->kind == BH_BLAS_DOT && bh__type_is_complex(f->type)) {
        FUNCTION(complex_of_two, f)(n, f->x, f->x_stride, f->y, f->y_stride, f->result);
    } else if (f->kind == BH_BLAS_IAMAX) {
        int64_t index = n ? (int64_t)FUNCTION(index_of_one, f)(n, f->x, size_of(f->x_stride)) : -1;
        put(f->result, &index, sizeof index);
    } else if (single) {
        float value = f->kind == BH_BLAS_DOT
                          ? FUNCTION(float_of_two, f)(n, f->x, f->x_stride, f->y, f->y_stride)
                          : FUNCTION(float_of_one, f)(n, f->x, size_of(f->x_stride));
        put(f->result, &value, sizeof value);
    } else {
        double value = f->kind == BH_BLAS_DOT
                           ? FUNCTION(double_of_two, f)(n, f->x, f->x_stride, f->y, f->y_stride)
                           : FUNCTION(double_of_one, f)(n, f->x, size_of(f->x_stride));
        put(f->result, &value, sizeof value);
    }
}

static void run_vectors(const bh__blas_form *f) {
    bh__blas_number alpha = bh__blas_number_as(f->type, f->alpha);
    bh__blas_number beta = bh__blas_number_as(f->type, f->beta);
    int stride = size_of(f->x_stride);
    switch (f->kind) {
    case BH_BLAS_AXPY:
        FUNCTION(axpy_function, f)(&f->m, &alpha, f->x, &f->x_stride, f->y, &f->y_stride);
        return;
    case BH_BLAS_SCAL:
        FUNCTION(scal_function, f)(&f->m, &alpha, f->x, &stride);
        return;
    case BH_BLAS_COPY:
    case BH_BLAS_SWAP:
        FUNCTION(swap_function, f)(&f->m, f->x, &f->x_stride, f->y, &f->y_stride);
        return;
    case BH_BLAS_ROT:
        FUNCTION(rot_function, f)
        (&f->m, f->x, &f->x_stride, f->y, &f->y_stride, &alpha, &beta);
        return;
    default:
        run_reduction(f);
    }
}

static void run_matrix(const bh__blas_form *f) {
    bh__blas_number alpha = bh__blas_number_as(f->type, f->alpha);
    bh__blas_number beta = bh__blas_number_as(f->type, f->beta);
    switch (f->kind) {
    case BH_BLAS_GEMV:
        FUNCTION(gemv_function, f)
        (&f->op_a, &f->m, &f->n, &alpha, f->a, &f->a_stride, f->x, &f->x_stride, &beta, f->y,
         &f->y_stride, 1);
        return;
    case BH_BLAS_GER:
        FUNCTION(ger_function, f)
        (&f->m, &f->n, &alpha, f->x, &f->x_stride, f->y, &f->y_stride, f->a, &f->a_stride);
        return;
    case BH_BLAS_SYMV:
    case BH_BLAS_HEMV:
        FUNCTION(symv_function, f)
        (&f->triangle, &f->n, &alpha, f->a, &f->a_stride, f->x, &f->x_stride, &beta, f->y,
         &f->y_stride, 1);
        return;
    case BH_BLAS_TRMV:
    case BH_BLAS_TRSV:
        FUNCTION(trmv_function, f)
        (&f->triangle, &f->op_a, &f->unit, &f->n, f->a, &f->a_stride, f->x, &f->x_stride, 1, 1, 1);
        return;
    case BH_BLAS_SYR:
    case BH_BLAS_HER:
        FUNCTION(syr_function, f)
        (&f->triangle, &f->n, &alpha, f->x, &f->x_stride, f->a, &f->a_stride, 1);
        return;
    default:
        FUNCTION(syr2_function, f)
        (&f->triangle, &f->n, &alpha, f->x, &f->x_stride, f->y, &f->y_stride, f->a, &f->a_stride,
         1);
    }
}

static void run_matrices(const bh__blas_form *f) {
    bh__blas_number alpha = bh__blas_number_as(f->type, f->alpha);
    bh__blas_number beta = bh__blas_number_as(f->type, f->beta);
    switch (f->kind) {
    case BH_BLAS_GEMM:
        FUNCTION(gemm_function, f)
        (&f->op_a, &f->op_b, &f->m, &f->n, &f->k, &alpha, f->a, &f->a_stride, f->b, &f->b_stride,
         &beta, f->c, &f->c_stride, 1, 1);
        return;
    case BH_BLAS_SYMM:
    case BH_BLAS_HEMM:
        FUNCTION(symm_function, f)
        (&f->side, &f->triangle, &f->m, &f->n, &alpha, f->a, &f->a_stride, f->b, &f->b_stride,
         &beta, f->c, &f->c_stride, 1, 1);
        return;
    case BH_BLAS_SYRK:
    case BH_BLAS_HERK:
        FUNCTION(syrk_function, f)
        (&f->triangle, &f->op_a, &f->n, &f->k, &alpha, f->a, &f->a_stride, &beta, f->c,
         &f->c_stride, 1, 1);
        return;
    case BH_BLAS_SYR2K:
    case BH_BLAS_HER2K:
        FUNCTION(syr2k_function, f)
        (&f->triangle, &f->op_a, &f->n, &f->k, &alpha, f->a, &f->a_stride, f->b, &f->b_stride,
         &beta, f->c, &f->c_stride, 1, 1);
        return;
    default:
        FUNCTION(trmm_function, f)
        (&f->side, &f->triangle, &f->op_a, &f->unit, &f->m, &f->n, &alpha, f->a, &f->a_stride, f->b,
         &f->b_stride, 1, 1, 1, 1);
    }
}

static void run_one(const bh__blas_form *f) {
    if (f->kind >= BH_BLAS_GEMM)
        run_matrices(f);
    else if (f->kind >= BH_BLAS_GEMV)
        run_matrix(f);
    else
        run_vectors(f);
}

bh_status bh__cpu_blas_run(const bh__library_call *call, bh_error *error) {
    bh__blas_form form;
    bh_blas request;
    memcpy(&request, call->request.bytes, sizeof request);
    const char *wrong = bh__blas_form_make(call->operation, &request, call->types, &form);
    if (wrong)
        return bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead", "%s: %s",
                        call->operation->name, wrong);
    bool narrow = bh__element_bytes(form.type) < sizeof(float);
    for (uint64_t i = 0; i < form.batch; i++) {
        if (!narrow)
            run_one(&form);
        else if (!bh__cpu_gemm_narrow(&form, run_one))
            return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                            "%s: no memory for %d x %d x %d elements in a wider type",
                            call->operation->name, form.m, form.n, form.k);
        bh__blas_form_next(&form);
    }
    return BH_OK;
}
