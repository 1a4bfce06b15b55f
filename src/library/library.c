/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries, their images, and their element types. */
#include <string.h>

#include "library/blas.h"
#include "library/fft.h"
#include "library/operation.h"
#include "library/solver.h"

_Static_assert(offsetof(bh_blas, flags) == offsetof(bh__request_head, flags) &&
                   offsetof(bh_blas, batch) == offsetof(bh__request_head, batch) &&
                   offsetof(bh_blas, beta) == offsetof(bh__request_head, beta) &&
                   offsetof(bh_blas, a) == sizeof(bh__request_head),
               "a bh_blas begins like every library call");
_Static_assert(offsetof(bh_fft, flags) == offsetof(bh__request_head, flags) &&
                   offsetof(bh_fft, batch) == offsetof(bh__request_head, batch) &&
                   offsetof(bh_fft, beta) == offsetof(bh__request_head, beta) &&
                   offsetof(bh_fft, input) == sizeof(bh__request_head),
               "and a bh_fft");
_Static_assert(offsetof(bh_solver, flags) == offsetof(bh__request_head, flags) &&
                   offsetof(bh_solver, batch) == offsetof(bh__request_head, batch) &&
                   offsetof(bh_solver, beta) == offsetof(bh__request_head, beta) &&
                   offsetof(bh_solver, a) == sizeof(bh__request_head),
               "and a bh_solver");
_Static_assert((int)BH__BLAS_OPERATIONS <= (int)BH__LIBRARY_OPERATIONS, "the table fits");

const bh__library bh__libraries[BH__LIBRARIES] = {
    {.name = "blas",
     .constant = "BH_LIBRARY_BLAS",
     .about = "vectors and matrices",
     .request_bytes = sizeof(bh_blas),
     .right = BH_BLAS_RIGHT,
     .count = BH__BLAS_OPERATIONS,
     .operations = bh__blas_operations,
     .refuse = bh__blas_refuse},
    {.name = "fft",
     .constant = "BH_LIBRARY_FFT",
     .about = "Fourier transforms",
     .request_bytes = sizeof(bh_fft),
     .count = BH__FFT_OPERATIONS,
     .operations = bh__fft_operations,
     .fits = bh__fft_fits},
    {.name = "solver",
     .constant = "BH_LIBRARY_SOLVER",
     .about = "systems of equations, eigenvalues and singular values",
     .request_bytes = sizeof(bh_solver),
     .right = BH_SOLVER_RIGHT,
     .count = BH__SOLVER_OPERATIONS,
     .operations = bh__solver_operations,
     .refuse = bh__solver_refuse},
};

const bh__operation *bh__operation_find(uint32_t kind, uint32_t *out_library) {
    for (uint32_t i = 0; i < BH__LIBRARIES; i++) {
        for (uint32_t k = 0; k < bh__libraries[i].count; k++) {
            if (bh__libraries[i].operations[k].kind != kind) continue;
            *out_library = i;
            return &bh__libraries[i].operations[k];
        }
    }
    return NULL;
}

void bh__library_image_make(uint32_t library, bh__library_image *out) {
    memset(out, 0, sizeof *out);
    memcpy(out->magic, BH__LIBRARY_MAGIC, sizeof out->magic);
    out->library = library;
    out->request_bytes = bh__libraries[library].request_bytes;
}

const bh__library *bh__library_of_image(const void *image, size_t bytes) {
    bh__library_image head;
    if (bytes != sizeof head || memcmp(image, BH__LIBRARY_MAGIC, sizeof head.magic) != 0)
        return NULL;
    memcpy(&head, image, sizeof head);
    if (head.library >= BH__LIBRARIES ||
        head.request_bytes != bh__libraries[head.library].request_bytes)
        return NULL;
    return &bh__libraries[head.library];
}

bh_type bh__real_type(bh_type type) {
    return type == BH_C64 ? BH_F32 : type == BH_C128 ? BH_F64 : type;
}

bh_type bh__complex_type(bh_type type) {
    return type == BH_F32 ? BH_C64 : type == BH_F64 ? BH_C128 : type;
}

bool bh__product_type_fits(bh_type of, bh_type sum) {
    if (of == BH_F16 || of == BH_BF16) return sum == of || sum == BH_F32;
    return of == BH_I8 ? sum == BH_I32 : sum == of;
}

uint32_t bh__element_bytes(bh_type type) {
    static const uint8_t bytes[] = {
        [BH_I8] = 1,  [BH_U8] = 1,  [BH_I16] = 2, [BH_U16] = 2,  [BH_I32] = 4,
        [BH_U32] = 4, [BH_I64] = 8, [BH_U64] = 8, [BH_F16] = 2,  [BH_BF16] = 2,
        [BH_F32] = 4, [BH_F64] = 8, [BH_C64] = 8, [BH_C128] = 16};
    return type < sizeof bytes ? bytes[type] : 0;
}
