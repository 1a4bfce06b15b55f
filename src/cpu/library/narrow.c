/* SPDX-License-Identifier: Apache-2.0 */
/* Products of narrow elements: copied to a wider type, multiplied, and rounded once. */
#include "cpu/library/narrow.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/half.h"

/* Elements of one of the types, at this place. */
static double load(bh_type type, const uint8_t *from) {
    uint16_t bits;
    float single;
    int32_t whole;
    switch (type) {
    case BH_I8:
        return *(const int8_t *)from;
    case BH_I32:
        memcpy(&whole, from, sizeof whole);
        return whole;
    case BH_F32:
        memcpy(&single, from, sizeof single);
        return single;
    default:
        memcpy(&bits, from, sizeof bits);
        return type == BH_F16 ? bh__f16_to_float(bits) : bh__bf16_to_float(bits);
    }
}

/* Sums beyond 32 bits wrap around, as integer units do. */
static void store(bh_type type, double value, uint8_t *to) {
    float single = (float)value;
    int32_t whole;
    uint16_t bits;
    switch (type) {
    case BH_I32:
        whole = (int32_t)(uint32_t)(int64_t)value;
        memcpy(to, &whole, sizeof whole);
        return;
    case BH_F32:
        memcpy(to, &single, sizeof single);
        return;
    default:
        bits = type == BH_F16 ? bh__f16_from_double(single, BH__ROUND_NEAREST)
                              : bh__bf16_from_double(single, BH__ROUND_NEAREST);
        memcpy(to, &bits, sizeof bits);
    }
}

/* A matrix in the wider type, column by column without gaps. */
typedef struct wide {
    void *data; /* Owned */
    bh_type type;
} wide;

static wide widen(bh_type from, uint64_t address, int stride, int rows, int columns, bh_type to,
                  bool filled) {
    wide made = {calloc((size_t)rows * (size_t)columns + 1, bh__element_bytes(to)), to};
    size_t bytes = bh__element_bytes(from), at = 0;
    if (!made.data || !filled) return made;
    for (int j = 0; j < columns; j++) {
        const uint8_t *element =
            (const uint8_t *)(uintptr_t)address + (size_t)j * (size_t)stride * bytes;
        for (int i = 0; i < rows; i++, at++, element += bytes) {
            if (to == BH_F64)
                ((double *)made.data)[at] = load(from, element);
            else
                ((float *)made.data)[at] = (float)load(from, element);
        }
    }
    return made;
}

static void narrow(const wide *from, bh_type to, uint64_t address, int stride, int rows,
                   int columns) {
    size_t bytes = bh__element_bytes(to), at = 0;
    for (int j = 0; j < columns; j++) {
        uint8_t *element = (uint8_t *)(uintptr_t)address + (size_t)j * (size_t)stride * bytes;
        for (int i = 0; i < rows; i++, at++, element += bytes)
            store(to,
                  from->type == BH_F64 ? ((const double *)from->data)[at]
                                       : (double)((const float *)from->data)[at],
                  element);
    }
}

bool bh__cpu_gemm_narrow(const bh__blas_form *form, void (*run)(const bh__blas_form *wide)) {
    bh_type to = form->type == BH_I8 ? BH_F64 : BH_F32;
    int a_rows = form->op_a == 'N' ? form->m : form->k,
        b_rows = form->op_b == 'N' ? form->k : form->n;
    int a_columns = form->op_a == 'N' ? form->k : form->m;
    int b_columns = form->op_b == 'N' ? form->n : form->k;
    bool old = form->beta.re != 0;
    wide a = widen(form->type, form->a, form->a_stride, a_rows, a_columns, to, true);
    wide b = widen(form->type, form->b, form->b_stride, b_rows, b_columns, to, true);
    wide c = widen(form->c_type, form->c, form->c_stride, form->m, form->n, to, old);
    bool done = a.data && b.data && c.data;
    if (done) {
        bh__blas_form call = *form;
        call.type = call.c_type = to;
        call.a = (uintptr_t)a.data;
        call.b = (uintptr_t)b.data;
        call.c = (uintptr_t)c.data;
        call.a_stride = a_rows ? a_rows : 1;
        call.b_stride = b_rows ? b_rows : 1;
        call.c_stride = form->m ? form->m : 1;
        run(&call);
        narrow(&c, form->c_type, form->c, form->c_stride, form->m, form->n);
    }
    free(a.data);
    free(b.data);
    free(c.data);
    return done;
}
