/* SPDX-License-Identifier: Apache-2.0 */
/* Where the elements of vectors and matrices lie in their buffers. */
#include "library/operation.h"

#include <string.h>

#include "base/checked.h"

/* Libraries count in 32-bit integers. */
static bool is_counted(uint64_t number) {
    return number <= INT32_MAX;
}

/* Completes a region whose members have their first, inner, outer and stride. */
static bh__region_fault finish(bh__region *out, uint64_t batch, uint64_t batch_stride,
                               bool shared) {
    bool empty = out->inner == 0 || out->outer == 0;
    uint64_t member = 0, rest;
    bool counted = out->outer <= 1 || (is_counted(out->inner) && is_counted(out->stride));
    if (!counted || !is_counted(out->outer) || !is_counted(batch)) return BH__REGION_TOO_LARGE;
    if (!empty) member = (out->outer - 1) * out->stride + out->inner;
    if (empty) out->inner = out->outer = 0;
    out->batch = batch ? batch : 1;
    out->batch_stride = batch_stride == BH_BATCH_SHARED ? 0 : batch_stride ? batch_stride : member;
    if (!shared && out->batch > 1 && out->batch_stride < member) {
        /* Members may lie between one another's rows, where they leave room. */
        uint64_t across;
        bool between = bh__mul_u64(out->batch - 1, out->batch_stride, &across) &&
                       out->batch_stride >= out->inner && across + out->inner <= out->stride;
        if (!between) return BH__REGION_OVERLAPS;
    }
    out->span = 0;
    if (empty) return BH__REGION_FITS;
    if (!bh__mul_u64(out->batch - 1, out->batch_stride, &rest) ||
        !bh__add_u64(rest, member, &out->span) || !bh__add_u64(out->span, out->first, &rest) ||
        rest > INT64_MAX)
        return BH__REGION_TOO_LARGE;
    return BH__REGION_FITS;
}

bh__region_fault bh__vector_region(const bh_vector *vector, uint64_t batch, bool shared,
                                   bh__region *out) {
    int64_t stride = vector->stride ? vector->stride : 1;
    uint64_t size = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride, back;
    *out =
        (bh__region){.first = vector->offset, .inner = 1, .outer = vector->count, .stride = size};
    if (!is_counted(size) || !is_counted(vector->count)) return BH__REGION_TOO_LARGE;
    if (stride < 0 && vector->count) {
        back = (vector->count - 1) * size;
        if (back > vector->offset) return BH__REGION_BEFORE;
        out->first -= back;
    }
    if (size == 1) {
        out->inner = vector->count;
        out->outer = 1;
        out->stride = vector->count;
    }
    return finish(out, batch, vector->batch_stride, shared);
}

bh__region_fault bh__matrix_region(const bh_matrix *matrix, uint64_t batch, bool shared,
                                   bh__region *out) {
    bool by_columns = matrix->flags & BH_MATRIX_COLUMN_MAJOR;
    uint64_t inner = by_columns ? matrix->rows : matrix->columns;
    uint64_t outer = by_columns ? matrix->columns : matrix->rows;
    uint64_t stride = matrix->stride ? matrix->stride : inner;
    *out = (bh__region){.first = matrix->offset, .inner = inner, .outer = outer, .stride = stride};
    if (stride < inner) return BH__REGION_OVERLAPS;
    if (!is_counted(inner) || !is_counted(stride)) return BH__REGION_TOO_LARGE;
    return finish(out, batch, matrix->batch_stride, shared);
}

/* Whether the indices of an array reach different elements each: taken from the smallest stride to
 * the largest, each steps over what the ones before reach. *span: up to the end of the last. */
static bool strides_apart(const bh_array *array, const uint64_t *strides, uint64_t *span,
                          uint64_t *elements) {
    bool taken[BH_ARRAY_RANK] = {false};
    *span = *elements = 1;
    for (uint32_t step = 0; step < array->rank; step++) {
        uint32_t next = BH_ARRAY_RANK;
        for (uint32_t i = 0; i < array->rank; i++) {
            if (!taken[i] && (next == BH_ARRAY_RANK || strides[i] < strides[next] ||
                              (strides[i] == strides[next] && array->extent[i] == 1)))
                next = i;
        }
        taken[next] = true;
        if (array->extent[next] > 1 && strides[next] < *span) return false;
        *span += (array->extent[next] - 1) * strides[next];
        *elements *= array->extent[next];
    }
    return true;
}

bh__region_fault bh__array_region(const bh_array *array, uint64_t batch, bool shared,
                                  bh__region *out) {
    uint64_t strides[BH_ARRAY_RANK], packed = 1, span, elements, most = 1, reach;
    bool given = false, empty = false;
    *out = (bh__region){.first = array->offset};
    if (array->rank == 0 || array->rank > BH_ARRAY_RANK) return BH__REGION_TOO_LARGE;
    for (uint32_t i = 0; i < array->rank; i++) given |= array->stride[i] != 0;
    for (uint32_t i = array->rank; i-- > 0;) {
        strides[i] = given ? array->stride[i] : packed;
        empty |= array->extent[i] == 0;
        if (!is_counted(array->extent[i]) || strides[i] > INT64_MAX >> 24 ||
            !bh__mul_u64(packed, array->extent[i] ? array->extent[i] : 1, &packed) ||
            packed > INT64_MAX >> 24 || !bh__mul_u64(array->extent[i], strides[i], &reach) ||
            !bh__add_u64(most, reach, &most) || most > INT64_MAX >> 8)
            return BH__REGION_TOO_LARGE;
    }
    if (empty) return finish(out, batch, array->batch_stride, shared);
    bool apart = strides_apart(array, strides, &span, &elements);
    if (!apart && !shared) return BH__REGION_OVERLAPS;
    if (!apart) {
        span = 1;
        for (uint32_t i = 0; i < array->rank; i++) span += (array->extent[i] - 1) * strides[i];
    }
    out->gaps = !apart || span != elements;
    out->inner = out->stride = span;
    out->outer = 1;
    return finish(out, batch, array->batch_stride, shared);
}

bh__region_fault bh__operand_region(const bh__operand *operand, const uint8_t *request,
                                    bh__region *out) {
    bh__request_head head;
    memcpy(&head, request, sizeof head);
    bool shared = !(operand->access & BH_ACCESS_OUT);
    if (operand->form == BH__FORM_ARRAY) {
        bh_array array;
        memcpy(&array, request + operand->at, sizeof array);
        return bh__array_region(&array, head.batch, shared, out);
    }
    if (operand->form == BH__FORM_VECTOR) {
        bh_vector vector;
        memcpy(&vector, request + operand->at, sizeof vector);
        return bh__vector_region(&vector, head.batch, shared, out);
    }
    bh_matrix matrix;
    memcpy(&matrix, request + operand->at, sizeof matrix);
    return bh__matrix_region(&matrix, head.batch, shared, out);
}

bool bh__region_is_whole(const bh__region *region) {
    uint64_t member = region->outer ? (region->outer - 1) * region->stride + region->inner : 0;
    bool rows = !region->gaps && (region->outer <= 1 || region->inner == region->stride);
    return rows && (region->batch == 1 || region->batch_stride == member);
}

/* Whether runs of the two, which repeat with the same stride, share an element: their places
 * within the stride do, if neither goes beyond its end. */
static bool runs_meet(const bh__region *a, const bh__region *b) {
    uint64_t x = a->first % a->stride, y = b->first % a->stride;
    if (x + a->inner > a->stride || y + b->inner > a->stride) return true;
    return x < y + b->inner && y < x + a->inner;
}

bool bh__regions_meet(const bh__region *a, const bh__region *b) {
    if (a->span == 0 || b->span == 0) return false;
    if (a->first >= b->first + b->span || b->first >= a->first + a->span) return false;
    if (a->batch != 1 || b->batch != 1 || a->stride != b->stride) return true;
    return runs_meet(a, b);
}
