/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of libraries: what the library and the workers both know of them. Each is described
 * once, by a row of a table (blas.c): its operands, their shapes, types and accesses.
 *
 * To a worker a library is a module, and an operation is a kernel of it. Its parameters are the
 * addresses of its operands, in order, and the request itself. So everything that holds for
 * launches holds for library calls: tickets, order, losses, sequences, standbys that load what the
 * active worker has loaded.
 */
#ifndef BH_LIBRARY_OPERATION_H
#define BH_LIBRARY_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bulkhead/library.h"

typedef enum bh__operand_form { BH__FORM_VECTOR, BH__FORM_MATRIX, BH__FORM_ARRAY } bh__operand_form;

/* The type of an operand's elements. */
typedef enum bh__operand_type {
    BH__TYPE_SAME,    /* the first operand's */
    BH__TYPE_REAL,    /* the same, the real one of a complex type */
    BH__TYPE_COMPLEX, /* the same, the complex one of a real type */
    BH__TYPE_INDEX,   /* BH_I64 */
    BH__TYPE_INFO,    /* BH_I32 */
    BH__TYPE_OWN,     /* one of its own: bh__library.refuse looks at it */
    BH__TYPE_PRODUCT  /* of C in a gemm: bh__product_type_fits */
} bh__operand_type;

typedef struct bh__operand {
    const char *name; /* as in the request */
    uint16_t at;      /* offset in the request */
    uint8_t form;     /* BH__FORM_... */
    uint8_t type;     /* BH__TYPE_... */
    uint8_t access;   /* BH_ACCESS_... */
    bool scaled;      /* its old contents are multiplied with beta: none are needed if that is 0 */
    bool triangle;    /* only part of it is written or read */
    bool optional;    /* it may be left out, all zero: then it takes no bytes */
    /* A letter for its count, or two for rows and columns. Equal letters are equal numbers; 1 is
     * one; 'K' is the smaller one of m and n, which operands before it have. 's' is the side of B
     * or C that the special matrix is on: rows, with BH_BLAS_RIGHT columns. Arrays have none:
     * bh__library.refuse looks at them. */
    char shape[3];
} bh__operand;

/* A field of a request that is no operand: a number, or a choice. */
typedef struct bh__field {
    const char *name;
    uint16_t at, bytes; /* 4, 8, or any number of bytes that are not looked at */
    uint64_t low, high; /* of 4 and 8 bytes: what it may be */
} bh__field;

enum { BH__OPERANDS = 5, BH__FIELDS = 6 };

static inline size_t bh__operand_bytes(const bh__operand *operand) {
    return operand->form == BH__FORM_VECTOR   ? sizeof(bh_vector)
           : operand->form == BH__FORM_MATRIX ? sizeof(bh_matrix)
                                              : sizeof(bh_array);
}

typedef struct bh__operation {
    const char *name; /* "blas.gemm" */
    uint32_t kind;    /* bh_request.kind; 0: there is none at this place of the table */
    uint32_t types;   /* a bit for each type that the first operand may have */
    uint32_t flags;   /* that it takes */
    bool alpha, beta; /* that it takes */
    bool real_alpha, real_beta;
    bool in_place; /* operands may share all of their elements, beginning with the first one */
    uint8_t operand_count, field_count;
    bh__operand operands[BH__OPERANDS];
    bh__field fields[BH__FIELDS];
} bh__operation;

/* How the request of every library call begins. */
typedef struct bh__request_head {
    bh_request request;
    uint32_t flags, reserved;
    uint64_t batch;
    bh_scalar alpha, beta;
} bh__request_head;

/* A library. Its number is its bit in BH_LIBRARY_... */
typedef struct bh__library {
    const char *name;     /* "blas" */
    const char *constant; /* "BH_LIBRARY_BLAS" */
    const char *about;    /* "vectors and matrices" */
    uint32_t request_bytes;
    uint32_t right; /* the flag that turns the shape letter 's' from rows to columns */
    uint32_t count;
    const bh__operation *operations;
    /* Looks at a request before its operands: whether fields and extents fit one another. Any bytes
     * may come. Returns whether they do; else `text` says why not, and *fix. NULL: nothing to look
     * at. */
    bool (*fits)(const bh__operation *operation, const void *request, char *text, size_t size,
                 const char **fix);
    /* Looks at a request whose operands fit. NULL: it can be done. Else the reason why not, and
     * *fix. May be NULL itself: everything can be done. */
    const char *(*refuse)(const bh__operation *operation, const void *request, const bh_type *types,
                          const char **fix);
} bh__library;

enum {
    BH__LIBRARIES = 3,
    BH__LIBRARY_OPERATIONS = 64, /* at most, of one library */
    BH__LIBRARY_KINDS = 256      /* kinds of library calls begin here */
};
#define BH__ALL_LIBRARIES ((1u << BH__LIBRARIES) - 1)
extern const bh__library bh__libraries[BH__LIBRARIES];

/* The operation of this kind and the library that it is in. NULL: there is none. */
const bh__operation *bh__operation_find(uint32_t kind, uint32_t *out_library);

/* ---- where the elements of an operand lie ---- */

/* `outer` runs of `inner` elements, the starts of two runs `stride` apart; that `batch` times,
 * `batch_stride` apart. All in elements. */
typedef struct bh__region {
    uint64_t first; /* the lowest element */
    bool gaps;      /* an array with elements between its own */
    uint64_t inner, outer, stride, batch, batch_stride;
    uint64_t span; /* from the lowest element to the end of the highest */
} bh__region;

typedef enum bh__region_fault {
    BH__REGION_FITS,
    BH__REGION_OVERLAPS, /* its own rows, or members of its batch, overlap */
    BH__REGION_BEFORE,   /* a negative stride leads to before the buffer */
    BH__REGION_TOO_LARGE /* 2^63 elements or more, or a number beyond 2^31 - 1 */
} bh__region_fault;

bh__region_fault bh__vector_region(const bh_vector *vector, uint64_t batch, bool shared,
                                   bh__region *out);
bh__region_fault bh__matrix_region(const bh_matrix *matrix, uint64_t batch, bool shared,
                                   bh__region *out);
bh__region_fault bh__array_region(const bh_array *array, uint64_t batch, bool shared,
                                  bh__region *out);
/* Of an operand of a request. */
bh__region_fault bh__operand_region(const bh__operand *operand, const uint8_t *request,
                                    bh__region *out);
/* Whether every element of the span belongs to it. */
bool bh__region_is_whole(const bh__region *region);
/* Whether two regions of one buffer may share an element. Counts as true where it is not obvious.
 */
bool bh__regions_meet(const bh__region *a, const bh__region *b);

/* ---- the image of a library's module, and its parameters ---- */

typedef struct bh__library_image {
    char magic[16];
    uint32_t library;
    uint32_t request_bytes;
} bh__library_image;

#define BH__LIBRARY_MAGIC "bulkhead-library"

void bh__library_image_make(uint32_t library, bh__library_image *out);
/* The library that an image is for. NULL: it is a module like any other. */
const bh__library *bh__library_of_image(const void *image, size_t bytes);

/* Where the request lies among the parameters. */
static inline uint32_t bh__request_offset(const bh__operation *operation) {
    return (operation->operand_count * 8u + 15u) & ~15u;
}

/* ---- types ---- */

#define BH__TYPE_BIT(type) (1u << (type))

static inline bool bh__type_is_complex(bh_type type) {
    return type == BH_C64 || type == BH_C128;
}
/* BH_F32 for BH_C64, BH_F64 for BH_C128, else the type itself. */
bh_type bh__real_type(bh_type type);
/* BH_C64 for BH_F32, BH_C128 for BH_F64, else the type itself. */
bh_type bh__complex_type(bh_type type);
/* Whether a product of matrices of the first type can be added to one of the second. */
bool bh__product_type_fits(bh_type of, bh_type sum);
/* Bytes of an element; 0 if there is no such type. As bh_type_size, which workers do not have. */
uint32_t bh__element_bytes(bh_type type);

#endif
