/* SPDX-License-Identifier: Apache-2.0 */
/* BLAS on the CUDA device: cuBLAS. Its functions for the four types of an operation have the same
 * parameters. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/library/library.h"
#include "library/blas.h"

/* cuBLAS's numbers. */
enum {
    OK = 0,
    ALLOC_FAILED = 3,
    ARCH_MISMATCH = 8,
    NOT_SUPPORTED = 15,
    OP_N = 0,
    OP_T = 1,
    OP_C = 2,
    LOWER = 0,
    UPPER = 1,
    LEFT = 0,
    RIGHT = 1,
    NUMBERS_ON_HOST = 0,
    NUMBERS_ON_DEVICE = 1,
    TYPE_F32 = 0,
    TYPE_F64 = 1,
    TYPE_F16 = 2,
    TYPE_I8 = 3,
    TYPE_C64 = 4,
    TYPE_C128 = 5,
    TYPE_I32 = 10,
    TYPE_BF16 = 14,
    COMPUTE_F32 = 68,
    COMPUTE_F64 = 70,
    COMPUTE_I32 = 72,
    ANY_ALGORITHM = -1
};

typedef void *blas_handle;

typedef int gemm_function(blas_handle, int, int, int, int, int, const void *, uint64_t, int, int,
                          uint64_t, int, int, const void *, uint64_t, int, int, int, int);
typedef int gemm_batch_function(blas_handle, int, int, int, int, int, const void *, uint64_t, int,
                                int, long long, uint64_t, int, int, long long, const void *,
                                uint64_t, int, int, long long, int, int, int);
typedef int gemv_function(blas_handle, int, int, int, const void *, uint64_t, int, uint64_t, int,
                          const void *, uint64_t, int);
typedef int symm_function(blas_handle, int, int, int, int, const void *, uint64_t, int, uint64_t,
                          int, const void *, uint64_t, int);
typedef int syrk_function(blas_handle, int, int, int, int, const void *, uint64_t, int,
                          const void *, uint64_t, int);
typedef int syr2k_function(blas_handle, int, int, int, int, const void *, uint64_t, int, uint64_t,
                           int, const void *, uint64_t, int);
typedef int trmm_function(blas_handle, int, int, int, int, int, int, const void *, uint64_t, int,
                          uint64_t, int, uint64_t, int);
typedef int trsm_function(blas_handle, int, int, int, int, int, int, const void *, uint64_t, int,
                          uint64_t, int);
typedef int ger_function(blas_handle, int, int, const void *, uint64_t, int, uint64_t, int,
                         uint64_t, int);
typedef int symv_function(blas_handle, int, int, const void *, uint64_t, int, uint64_t, int,
                          const void *, uint64_t, int);
typedef int syr_function(blas_handle, int, int, const void *, uint64_t, int, uint64_t, int);
typedef int syr2_function(blas_handle, int, int, const void *, uint64_t, int, uint64_t, int,
                          uint64_t, int);
typedef int trmv_function(blas_handle, int, int, int, int, uint64_t, int, uint64_t, int);
typedef int axpy_function(blas_handle, int, const void *, uint64_t, int, uint64_t, int);
typedef int scal_function(blas_handle, int, const void *, uint64_t, int);
typedef int swap_function(blas_handle, int, uint64_t, int, uint64_t, int);
typedef int rot_function(blas_handle, int, uint64_t, int, uint64_t, int, const void *,
                         const void *);
typedef int dot_function(blas_handle, int, uint64_t, int, uint64_t, int, uint64_t);
typedef int norm_function(blas_handle, int, uint64_t, int, uint64_t);
typedef int index_function(blas_handle, int64_t, uint64_t, int64_t, uint64_t);

enum { KINDS = BH_BLAS_TRSM - BH_BLAS_AXPY + 1, TYPES = 4 };

/* What comes between "cublas" and "_v2", for s, d, c and z. */
static const struct {
    uint32_t kind;
    const char *names[TYPES];
} functions[] = {
    {BH_BLAS_AXPY, {"Saxpy", "Daxpy", "Caxpy", "Zaxpy"}},
    {BH_BLAS_SCAL, {"Sscal", "Dscal", "Cscal", "Zscal"}},
    {BH_BLAS_COPY, {"Scopy", "Dcopy", "Ccopy", "Zcopy"}},
    {BH_BLAS_SWAP, {"Sswap", "Dswap", "Cswap", "Zswap"}},
    {BH_BLAS_DOT, {"Sdot", "Ddot", "Cdotu", "Zdotu"}},
    {BH_BLAS_NRM2, {"Snrm2", "Dnrm2", "Scnrm2", "Dznrm2"}},
    {BH_BLAS_ASUM, {"Sasum", "Dasum", "Scasum", "Dzasum"}},
    {BH_BLAS_ROT, {"Srot", "Drot", "Csrot", "Zdrot"}},
    {BH_BLAS_GEMV, {"Sgemv", "Dgemv", "Cgemv", "Zgemv"}},
    {BH_BLAS_GER, {"Sger", "Dger", "Cgeru", "Zgeru"}},
    {BH_BLAS_SYMV, {"Ssymv", "Dsymv", NULL, NULL}},
    {BH_BLAS_HEMV, {NULL, NULL, "Chemv", "Zhemv"}},
    {BH_BLAS_TRMV, {"Strmv", "Dtrmv", "Ctrmv", "Ztrmv"}},
    {BH_BLAS_TRSV, {"Strsv", "Dtrsv", "Ctrsv", "Ztrsv"}},
    {BH_BLAS_SYR, {"Ssyr", "Dsyr", NULL, NULL}},
    {BH_BLAS_HER, {NULL, NULL, "Cher", "Zher"}},
    {BH_BLAS_SYR2, {"Ssyr2", "Dsyr2", NULL, NULL}},
    {BH_BLAS_HER2, {NULL, NULL, "Cher2", "Zher2"}},
    {BH_BLAS_SYMM, {"Ssymm", "Dsymm", "Csymm", "Zsymm"}},
    {BH_BLAS_HEMM, {NULL, NULL, "Chemm", "Zhemm"}},
    {BH_BLAS_SYRK, {"Ssyrk", "Dsyrk", "Csyrk", "Zsyrk"}},
    {BH_BLAS_HERK, {NULL, NULL, "Cherk", "Zherk"}},
    {BH_BLAS_SYR2K, {"Ssyr2k", "Dsyr2k", "Csyr2k", "Zsyr2k"}},
    {BH_BLAS_HER2K, {NULL, NULL, "Cher2k", "Zher2k"}},
    {BH_BLAS_TRMM, {"Strmm", "Dtrmm", "Ctrmm", "Ztrmm"}},
    {BH_BLAS_TRSM, {"Strsm", "Dtrsm", "Ctrsm", "Ztrsm"}},
};
static const char *const conjugated_names[2][2] = {{"Cdotc", "Zdotc"}, {"Cgerc", "Zgerc"}};
static const char *const index_names[TYPES] = {"Isamax", "Idamax", "Icamax", "Izamax"};

/* Written once, by the control thread, before the module is known to lanes. */
static struct {
    void *library;
    bool ready;
    char lack[256];
    int (*create)(blas_handle *);
    int (*destroy)(blas_handle);
    int (*set_stream)(blas_handle, bh__cu_stream);
    int (*set_pointer_mode)(blas_handle, int);
    gemm_function *gemm;
    gemm_batch_function *gemm_batch;
    void *functions[KINDS][TYPES];
    void *conjugated[2][2]; /* of DOT and GER, for c and z */
    void *index[TYPES];
    bh__cu_module helper_module;
    bh__cu_function count_from_zero;
} blas;

/* cuBLAS counts elements from 1. */
static const char helper_source[] = ".version 7.0\n"
                                    ".target sm_70\n"
                                    ".address_size 64\n"
                                    ".visible .entry count_from_zero(.param .u64 at)\n"
                                    "{\n"
                                    "    .reg .b64 %rd<3>;\n"
                                    "    ld.param.u64 %rd1, [at];\n"
                                    "    ld.global.u64 %rd2, [%rd1];\n"
                                    "    sub.s64 %rd2, %rd2, 1;\n"
                                    "    st.global.u64 [%rd1], %rd2;\n"
                                    "    ret;\n"
                                    "}\n";

/* ---- opening ---- */

static void *find_symbol(const char *before, const char *name, const char *behind) {
    char symbol[64];
    if (!name) return NULL;
    snprintf(symbol, sizeof symbol, "%s%s%s", before, name, behind);
    void *found = dlsym(blas.library, symbol);
    if (!found && !blas.lack[0])
        snprintf(blas.lack, sizeof blas.lack, "it has no function %s", symbol);
    return found;
}

static void find_function(void *out, const char *symbol) {
    void *found = find_symbol("", symbol, "");
    memcpy(out, &found, sizeof found);
}

static void find_functions(void) {
    find_function(&blas.create, "cublasCreate_v2");
    find_function(&blas.destroy, "cublasDestroy_v2");
    find_function(&blas.set_stream, "cublasSetStream_v2");
    find_function(&blas.set_pointer_mode, "cublasSetPointerMode_v2");
    find_function(&blas.gemm, "cublasGemmEx");
    find_function(&blas.gemm_batch, "cublasGemmStridedBatchedEx");
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        for (int t = 0; t < TYPES; t++)
            blas.functions[functions[i].kind - BH_BLAS_AXPY][t] =
                find_symbol("cublas", functions[i].names[t], "_v2");
    }
    for (int i = 0; i < 2; i++) {
        for (int t = 0; t < 2; t++)
            blas.conjugated[i][t] = find_symbol("cublas", conjugated_names[i][t], "_v2");
    }
    for (int t = 0; t < TYPES; t++) blas.index[t] = find_symbol("cublas", index_names[t], "_v2_64");
}

static void open_helper(bh__device_instance *device) {
    const bh__driver *cu = &device->cu;
    int result = cu->module_load(&blas.helper_module, helper_source, 0, NULL, NULL);
    if (result == BH__CU_OK)
        result = cu->module_function(&blas.count_from_zero, blas.helper_module, "count_from_zero");
    if (result != BH__CU_OK) snprintf(blas.lack, sizeof blas.lack, "the driver loads no kernels");
}

/* A handle made now has the library load what all handles need. */
static void try_handle(void) {
    blas_handle first;
    int result = blas.create(&first);
    if (result == OK)
        blas.destroy(first);
    else
        snprintf(blas.lack, sizeof blas.lack, "cublasCreate returns %d", result);
}

const char *bh__cuda_blas_open(bh__device_instance *device, const char **fix) {
    static const char *const files[] = {"libcublas.so.13", "libcublas.so.12", NULL};
    *fix = "install cuBLAS 12 or 13 of NVIDIA's toolkit, and put its folder into LD_LIBRARY_PATH "
           "or the toolkit's into CUDA_HOME";
    if (blas.ready) return NULL;
    blas.lack[0] = 0;
    if (!blas.library) blas.library = bh__cuda_library_find(files, blas.lack);
    if (!blas.library) return blas.lack;
    blas.lack[0] = 0;
    find_functions();
    if (!blas.lack[0]) open_helper(device);
    if (!blas.lack[0]) try_handle();
    blas.ready = blas.lack[0] == 0;
    return blas.ready ? NULL : blas.lack;
}

void bh__cuda_blas_lane_close(bh__device_lane *lane) {
    if (lane->blas) blas.destroy(lane->blas);
    lane->blas = NULL;
}

static int ready_lane(bh__device_lane *lane) {
    if (lane->blas) return OK;
    int result = blas.create(&lane->blas);
    if (result == OK) result = blas.set_stream(lane->blas, lane->stream);
    if (result != OK) bh__cuda_blas_lane_close(lane);
    return result;
}

/* ---- calls ---- */

static uint32_t type_index(bh_type type) {
    return type == BH_F32 ? 0 : type == BH_F64 ? 1 : type == BH_C64 ? 2 : 3;
}

static void *function_of(const bh__blas_form *f) {
    uint32_t type = type_index(f->type);
    if (f->kind == BH_BLAS_IAMAX) return blas.index[type];
    if (f->conjugate && type >= 2 && (f->kind == BH_BLAS_DOT || f->kind == BH_BLAS_GER))
        return blas.conjugated[f->kind == BH_BLAS_GER][type - 2];
    return blas.functions[f->kind - BH_BLAS_AXPY][type];
}

/* FUNCTION(type, f): the function of a request as one of this type. */
#define FUNCTION(of, f) ((of *)(uintptr_t)function_of(f))

static int op_number(char op) {
    return op == 'N' ? OP_N : op == 'T' ? OP_T : OP_C;
}
static int triangle_number(char triangle) {
    return triangle == 'U' ? UPPER : LOWER;
}
static int side_number(char side) {
    return side == 'R' ? RIGHT : LEFT;
}
static int size_of(int stride) {
    return stride < 0 ? -stride : stride;
}

static int type_number(bh_type type) {
    switch (type) {
    case BH_F16:
        return TYPE_F16;
    case BH_BF16:
        return TYPE_BF16;
    case BH_I8:
        return TYPE_I8;
    case BH_I32:
        return TYPE_I32;
    case BH_F64:
        return TYPE_F64;
    case BH_C64:
        return TYPE_C64;
    case BH_C128:
        return TYPE_C128;
    default:
        return TYPE_F32;
    }
}

/* The numbers that a gemm multiplies with are of the type that it computes in. */
typedef union factor {
    bh__blas_number number;
    int32_t whole;
} factor;

static factor factor_as(bh_type type, bh_scalar from) {
    factor made;
    if (type == BH_I8)
        made.whole = (int32_t)from.re;
    else
        made.number = bh__blas_number_as(type, from);
    return made;
}

static int run_gemm(blas_handle handle, const bh__blas_form *f) {
    factor alpha = factor_as(f->type, f->alpha), beta = factor_as(f->type, f->beta);
    int type = type_number(f->type), sum = type_number(f->c_type);
    int compute = f->type == BH_I8                   ? COMPUTE_I32
                  : bh__real_type(f->type) == BH_F64 ? COMPUTE_F64
                                                     : COMPUTE_F32;
    int op_a = op_number(f->op_a), op_b = op_number(f->op_b);
    uint32_t bytes = bh__element_bytes(f->type);
    if (f->batch == 1)
        return blas.gemm(handle, op_a, op_b, f->m, f->n, f->k, &alpha, f->a, type, f->a_stride,
                         f->b, type, f->b_stride, &beta, f->c, sum, f->c_stride, compute,
                         ANY_ALGORITHM);
    return blas.gemm_batch(handle, op_a, op_b, f->m, f->n, f->k, &alpha, f->a, type, f->a_stride,
                           (long long)(f->a_next / bytes), f->b, type, f->b_stride,
                           (long long)(f->b_next / bytes), &beta, f->c, sum, f->c_stride,
                           (long long)(f->c_next / bh__element_bytes(f->c_type)), (int)f->batch,
                           compute, ANY_ALGORITHM);
}

static int run_index(bh__device_lane *lane, const bh__blas_form *f) {
    int result =
        FUNCTION(index_function, f)(lane->blas, f->m, f->x, size_of(f->x_stride), f->result);
    uint64_t at = f->result;
    void *params[] = {&at};
    if (result != OK) return result;
    return lane->device->cu.launch(blas.count_from_zero, 1, 1, 1, 1, 1, 1, 0, lane->stream, params,
                                   NULL) == BH__CU_OK
               ? OK
               : NOT_SUPPORTED;
}

/* Functions with a result write it to the device. Of no elements they write nothing. */
static int run_reduction(bh__device_lane *lane, const bh__blas_form *f) {
    const bh__driver *cu = &lane->device->cu;
    int n = f->m, result;
    if (n == 0) {
        bool index = f->kind == BH_BLAS_IAMAX, real = f->kind != BH_BLAS_DOT;
        bh_type type = index ? BH_I64 : real ? bh__real_type(f->type) : f->type;
        return cu->fill_8(f->result, index ? 0xff : 0, bh__element_bytes(type), lane->stream) ==
                       BH__CU_OK
                   ? OK
                   : NOT_SUPPORTED;
    }
    blas.set_pointer_mode(lane->blas, NUMBERS_ON_DEVICE);
    if (f->kind == BH_BLAS_IAMAX)
        result = run_index(lane, f);
    else if (f->kind == BH_BLAS_DOT)
        result = FUNCTION(dot_function, f)(lane->blas, n, f->x, f->x_stride, f->y, f->y_stride,
                                           f->result);
    else
        result = FUNCTION(norm_function, f)(lane->blas, n, f->x, size_of(f->x_stride), f->result);
    blas.set_pointer_mode(lane->blas, NUMBERS_ON_HOST);
    return result;
}

static int run_vectors(bh__device_lane *lane, const bh__blas_form *f) {
    bh__blas_number alpha = bh__blas_number_as(f->type, f->alpha);
    bh__blas_number beta = bh__blas_number_as(f->type, f->beta);
    blas_handle handle = lane->blas;
    switch (f->kind) {
    case BH_BLAS_AXPY:
        return FUNCTION(axpy_function, f)(handle, f->m, &alpha, f->x, f->x_stride, f->y,
                                          f->y_stride);
    case BH_BLAS_SCAL:
        return FUNCTION(scal_function, f)(handle, f->m, &alpha, f->x, size_of(f->x_stride));
    case BH_BLAS_COPY:
    case BH_BLAS_SWAP:
        return FUNCTION(swap_function, f)(handle, f->m, f->x, f->x_stride, f->y, f->y_stride);
    case BH_BLAS_ROT:
        return FUNCTION(rot_function, f)(handle, f->m, f->x, f->x_stride, f->y, f->y_stride, &alpha,
                                         &beta);
    default:
        return run_reduction(lane, f);
    }
}

static int run_matrix(blas_handle handle, const bh__blas_form *f) {
    bh__blas_number alpha = bh__blas_number_as(f->type, f->alpha);
    bh__blas_number beta = bh__blas_number_as(f->type, f->beta);
    int triangle = triangle_number(f->triangle);
    switch (f->kind) {
    case BH_BLAS_GEMV:
        return FUNCTION(gemv_function, f)(handle, op_number(f->op_a), f->m, f->n, &alpha, f->a,
                                          f->a_stride, f->x, f->x_stride, &beta, f->y, f->y_stride);
    case BH_BLAS_GER:
        return FUNCTION(ger_function, f)(handle, f->m, f->n, &alpha, f->x, f->x_stride, f->y,
                                         f->y_stride, f->a, f->a_stride);
    case BH_BLAS_SYMV:
    case BH_BLAS_HEMV:
        return FUNCTION(symv_function, f)(handle, triangle, f->n, &alpha, f->a, f->a_stride, f->x,
                                          f->x_stride, &beta, f->y, f->y_stride);
    case BH_BLAS_TRMV:
    case BH_BLAS_TRSV:
        return FUNCTION(trmv_function, f)(handle, triangle, op_number(f->op_a), f->unit == 'U',
                                          f->n, f->a, f->a_stride, f->x, f->x_stride);
    case BH_BLAS_SYR:
    case BH_BLAS_HER:
        return FUNCTION(syr_function, f)(handle, triangle, f->n, &alpha, f->x, f->x_stride, f->a,
                                         f->a_stride);
    default:
        return FUNCTION(syr2_function, f)(handle, triangle, f->n, &alpha, f->x, f->x_stride, f->y,
                                          f->y_stride, f->a, f->a_stride);
    }
}

static int run_matrices(blas_handle handle, const bh__blas_form *f) {
    bh__blas_number alpha = bh__blas_number_as(f->type, f->alpha);
    bh__blas_number beta = bh__blas_number_as(f->type, f->beta);
    int triangle = triangle_number(f->triangle), side = side_number(f->side);
    int op = op_number(f->op_a), unit = f->unit == 'U';
    switch (f->kind) {
    case BH_BLAS_SYMM:
    case BH_BLAS_HEMM:
        return FUNCTION(symm_function, f)(handle, side, triangle, f->m, f->n, &alpha, f->a,
                                          f->a_stride, f->b, f->b_stride, &beta, f->c, f->c_stride);
    case BH_BLAS_SYRK:
    case BH_BLAS_HERK:
        return FUNCTION(syrk_function, f)(handle, triangle, op, f->n, f->k, &alpha, f->a,
                                          f->a_stride, &beta, f->c, f->c_stride);
    case BH_BLAS_SYR2K:
    case BH_BLAS_HER2K:
        return FUNCTION(syr2k_function, f)(handle, triangle, op, f->n, f->k, &alpha, f->a,
                                           f->a_stride, f->b, f->b_stride, &beta, f->c,
                                           f->c_stride);
    case BH_BLAS_TRMM: /* in place: C is B */
        return FUNCTION(trmm_function, f)(handle, side, triangle, op, unit, f->m, f->n, &alpha,
                                          f->a, f->a_stride, f->b, f->b_stride, f->b, f->b_stride);
    default:
        return FUNCTION(trsm_function, f)(handle, side, triangle, op, unit, f->m, f->n, &alpha,
                                          f->a, f->a_stride, f->b, f->b_stride);
    }
}

static int run_one(bh__device_lane *lane, const bh__blas_form *f) {
    if (f->kind > BH_BLAS_GEMM) return run_matrices(lane->blas, f);
    if (f->kind == BH_BLAS_GEMM) return run_gemm(lane->blas, f);
    return f->kind >= BH_BLAS_GEMV ? run_matrix(lane->blas, f) : run_vectors(lane, f);
}

/* A call that fails because the device has failed is told as a failure of the device. */
static bh_status refuse(bh__device_lane *lane, const bh__library_call *call, int result,
                        bh_error *error) {
    const bh__device_instance *device = lane->device;
    int state = device->cu.stream_query(lane->stream);
    const char *name = call->operation->name;
    if (bh__driver_is_fatal(state))
        return bh__cuda_fail(device, error, state, BH_E_FAULT, "none needed", "%s", name);
    if (result == ALLOC_FAILED)
        return bh__fail(error, BH_E_NO_MEMORY, "release buffers",
                        "%s: cuBLAS has no device memory to work in (status %d)", name, result);
    if (result == NOT_SUPPORTED || result == ARCH_MISMATCH)
        return bh__fail(error, BH_E_UNSUPPORTED,
                        "use other types, or sizes and strides that are multiples of 16 bytes",
                        "%s: cuBLAS does not support this call (status %d)", name, result);
    return bh__fail(error, BH_E_LAUNCH, "check sizes and strides against cuBLAS's description",
                    "%s: cuBLAS refuses the call (status %d)", name, result);
}

bh_status bh__cuda_blas_run(bh__device_lane *lane, const bh__library_call *call, bh_error *error) {
    bh__blas_form form;
    bh_blas request;
    memcpy(&request, call->request.bytes, sizeof request);
    const char *wrong = bh__blas_form_make(call->operation, &request, call->types, &form);
    if (wrong)
        return bh__fail(error, BH_E_INTERNAL, BH__CUDA_DEFECT, "%s: %s", call->operation->name,
                        wrong);
    int result = ready_lane(lane);
    uint64_t calls = form.kind == BH_BLAS_GEMM ? 1 : form.batch;
    for (uint64_t i = 0; i < calls && result == OK; i++) {
        result = run_one(lane, &form);
        bh__blas_form_next(&form);
    }
    return result == OK ? BH_OK : refuse(lane, call, result, error);
}
