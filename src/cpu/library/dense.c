/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of solvers in column order, and memory to work in. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cpu/library/solver.h"

/* ---- memory to work in ---- */

void *bh__solver_scratch(bh__solver_job *job, uint64_t count, size_t size) {
    uint64_t bytes;
    uint32_t slot = job->scratch_used;
    if (job->status != BH_OK) return NULL;
    if (!bh__mul_u64(count ? count : 1, size, &bytes)) bytes = UINT64_MAX;
    if (slot < BH__SCRATCH_SLOTS && job->scratch[slot].bytes < bytes) {
        free(job->scratch[slot].data);
        job->scratch[slot].data = bytes <= PTRDIFF_MAX ? malloc(bytes) : NULL;
        job->scratch[slot].bytes = job->scratch[slot].data ? bytes : 0;
    }
    if (slot < BH__SCRATCH_SLOTS && job->scratch[slot].data) {
        job->scratch_used++;
        return job->scratch[slot].data;
    }
    job->status = bh__fail(job->error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                           "%s: no memory for %llu bytes to work in", job->operation->name,
                           (unsigned long long)bytes);
    return NULL;
}

void bh__solver_scratch_free(bh__solver_job *job) {
    for (uint32_t i = 0; i < BH__SCRATCH_SLOTS; i++) free(job->scratch[i].data);
}

/* A float may round the number down. */
int bh__solver_asked(bh_type type, const void *answer) {
    double count;
    if (bh__real_type(type) == BH_F32) {
        float single;
        memcpy(&single, answer, sizeof single);
        count = nextafterf(single, INFINITY);
    } else {
        memcpy(&count, answer, sizeof count);
    }
    count = ceil(count);
    return count < 1 ? 1 : count > INT_MAX ? INT_MAX : (int)count;
}

/* ---- elements ---- */

/* Where element (0, 0) is, and bytes from one row and from one column to the next. */
typedef struct place {
    uint8_t *at;
    size_t row, column;
} place;

#define COPY_COLUMN(size)                                                                          \
    for (int i = from_row; i < to_row; i++)                                                        \
    memcpy(out + (size_t)i * to.row, in + (size_t)i * from.row, size)

static void copy_column(place to, place from, int column, int from_row, int to_row, size_t size) {
    uint8_t *out = to.at + (size_t)column * to.column;
    const uint8_t *in = from.at + (size_t)column * from.column;
    if (size == 4)
        COPY_COLUMN(4);
    else if (size == 8)
        COPY_COLUMN(8);
    else
        COPY_COLUMN(16);
}

/* In tiles: one of the two is not walked along its own order. */
static void copy_matrix(place to, place from, int rows, int columns, char triangle, size_t size) {
    enum { TILE = 32 };
    for (int column = 0; column < columns; column += TILE) {
        int end = columns - column < TILE ? columns : column + TILE;
        for (int row = 0; row < rows; row += TILE) {
            int stop = rows - row < TILE ? rows : row + TILE;
            for (int j = column; j < end; j++) {
                int first = triangle == 'L' && j > row ? j : row;
                int last = triangle == 'U' && j + 1 < stop ? j + 1 : stop;
                copy_column(to, from, j, first, last, size);
            }
        }
    }
}

static place home_of(const bh__dense *self) {
    const bh_matrix *matrix = self->matrix;
    size_t size = bh__element_bytes(self->type);
    bool columns = matrix->flags & BH_MATRIX_COLUMN_MAJOR;
    uint64_t inner = columns ? matrix->rows : matrix->columns;
    size_t stride = (matrix->stride ? matrix->stride : inner) * size;
    return (place){self->home, columns ? size : stride, columns ? stride : size};
}

static place data_of(const bh__dense *self) {
    size_t size = bh__element_bytes(self->type);
    return (place){self->data, size, (size_t)self->stride * size};
}

static bool is_conjugated(const bh_matrix *matrix, bh_type type) {
    return matrix->flags & BH_MATRIX_CONJUGATE && bh__type_is_complex(type);
}

/* The rows of a column that count. */
static int first_row(const bh__dense *self, int column) {
    int first = self->triangle == 'L' ? column : 0;
    return first < self->rows ? first : self->rows;
}

static int end_row(const bh__dense *self, int column) {
    return self->triangle == 'U' && column < self->rows ? column + 1 : self->rows;
}

static void conjugate(const bh__dense *self, uint8_t *data, int stride) {
    size_t size = bh__element_bytes(self->type);
    for (int j = 0; j < self->columns; j++) {
        uint8_t *column = data + (size_t)j * (size_t)stride * size;
        for (int i = first_row(self, j); i < end_row(self, j); i++) /* the last byte has the sign */
            column[(size_t)(i + 1) * size - 1] ^= 0x80;
    }
}

void bh__dense_read(const bh__dense *self, void *data, int stride) {
    size_t size = bh__element_bytes(self->type);
    place to = {data, size, (size_t)stride * size};
    copy_matrix(to, home_of(self), self->rows, self->columns, self->triangle, size);
    if (is_conjugated(self->matrix, self->type)) conjugate(self, data, stride);
}

bh__dense bh__dense_open(bh__solver_job *job, const bh_matrix *matrix, bh_type type, uint32_t flags,
                         char triangle, int rows, int columns) {
    bh__region region;
    size_t size = bh__element_bytes(type);
    (void)bh__matrix_region(matrix, job->request->batch, true, &region);
    uint64_t address = matrix->buffer.id + job->member * region.batch_stride * size;
    bh__dense made = {.matrix = matrix,
                      .type = type,
                      .home = (uint8_t *)(uintptr_t)address,
                      .rows = (int)matrix->rows,
                      .columns = (int)matrix->columns,
                      .triangle = triangle};
    bool larger = rows > made.rows || columns > made.columns;
    made.in_place = matrix->flags & BH_MATRIX_COLUMN_MAJOR && !(flags & BH__DENSE_COPY) &&
                    !is_conjugated(matrix, type) && !larger;
    if (made.in_place) {
        uint64_t stride = matrix->stride ? matrix->stride : matrix->rows;
        made.stride = stride ? (int)stride : 1;
        made.data = made.home;
        return made;
    }
    if (rows < made.rows) rows = made.rows;
    if (columns < made.columns) columns = made.columns;
    made.stride = rows ? rows : 1;
    made.data = bh__solver_scratch(job, (uint64_t)rows * (uint64_t)columns, size);
    if (made.data && flags & BH__DENSE_FILL) bh__dense_read(&made, made.data, made.stride);
    return made;
}

void bh__dense_write(const bh__dense *self) {
    if (self->in_place) return;
    copy_matrix(home_of(self), data_of(self), self->rows, self->columns, self->triangle,
                bh__element_bytes(self->type));
}

static bool are_finite(bh_type real, const uint8_t *data, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float single;
        double wide;
        if (real == BH_F32) {
            memcpy(&single, data + i * sizeof single, sizeof single);
            wide = single;
        } else {
            memcpy(&wide, data + i * sizeof wide, sizeof wide);
        }
        if (!isfinite(wide)) return false;
    }
    return true;
}

bool bh__dense_is_finite(const bh__dense *self) {
    size_t size = bh__element_bytes(self->type);
    bh_type real = bh__real_type(self->type);
    size_t parts = size / bh__element_bytes(real);
    for (int j = 0; j < self->columns; j++) {
        int first = first_row(self, j), end = end_row(self, j);
        const uint8_t *column =
            self->data + ((size_t)j * (size_t)self->stride + (size_t)first) * size;
        if (end > first && !are_finite(real, column, (size_t)(end - first) * parts)) return false;
    }
    return true;
}

/* NaN, with 0 as a complex number's imaginary part; or a whole number. */
static void store(bh_type type, double value, uint8_t *to) {
    float single[2] = {(float)value, 0};
    double wide[2] = {value, 0};
    bool narrow = bh__real_type(type) == BH_F32;
    memcpy(to, narrow ? (const void *)single : (const void *)wide, bh__element_bytes(type));
}

static void set_all(bh__dense *self, double value, double diagonal) {
    size_t size = bh__element_bytes(self->type);
    for (int j = 0; j < self->columns; j++) {
        uint8_t *column = self->data + (size_t)j * (size_t)self->stride * size;
        for (int i = 0; i < self->rows; i++)
            store(self->type, i == j ? diagonal : value, column + (size_t)i * size);
    }
}

void bh__dense_spoil(bh__dense *self) {
    set_all(self, NAN, NAN);
}

void bh__dense_unit(bh__dense *self) {
    set_all(self, 0, 1);
}

/* ---- vectors ---- */

/* Of a vector whose stride is negative the address is that of its last element. */
static uint8_t *vector_at(const bh__solver_job *job, const bh_vector *vector, bh_type type,
                          int64_t *out_step) {
    bh__region region;
    int64_t stride = vector->stride ? vector->stride : 1;
    uint64_t size = bh__element_bytes(type);
    (void)bh__vector_region(vector, job->request->batch, true, &region);
    uint64_t first = job->member * region.batch_stride;
    if (stride < 0 && vector->count) first += (vector->count - 1) * (0 - (uint64_t)stride);
    *out_step = stride * (int64_t)size;
    return (uint8_t *)(uintptr_t)vector->buffer.id + first * size;
}

void bh__solver_vector_read(const bh__solver_job *job, const bh_vector *vector, bh_type type,
                            void *to) {
    int64_t step;
    size_t size = bh__element_bytes(type);
    const uint8_t *at = vector_at(job, vector, type, &step);
    for (int64_t i = 0; i < (int64_t)vector->count; i++)
        memcpy((uint8_t *)to + (size_t)i * size, at + i * step, size);
}

void bh__solver_vector_write(const bh__solver_job *job, const bh_vector *vector, bh_type type,
                             const void *from) {
    int64_t step;
    size_t size = bh__element_bytes(type);
    uint8_t *at = vector_at(job, vector, type, &step);
    for (int64_t i = 0; i < (int64_t)vector->count; i++)
        memcpy(at + i * step, (const uint8_t *)from + (size_t)i * size, size);
}

void bh__solver_vector_spoil(const bh__solver_job *job, const bh_vector *vector, bh_type type) {
    int64_t step;
    uint8_t *at = vector_at(job, vector, type, &step);
    for (int64_t i = 0; i < (int64_t)vector->count; i++) store(type, NAN, at + i * step);
}
