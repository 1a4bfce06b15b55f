/* SPDX-License-Identifier: Apache-2.0 */
/* Slow BLAS, from the formulas of bulkhead/blas.h. */
#include "blas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool type_is_complex(bh_type type) {
    return type == BH_C64 || type == BH_C128;
}

bh_device open_blas_device(void) {
    return open_library_device(BH_LIBRARY_BLAS);
}

bh_device open_library_device(uint32_t libraries) {
    bh_device_options options = device_options(0);
    options.libraries = libraries;
    bh_device device = open_device_with(&options);
    bh_status status = bh_library_load(device, libraries);
    if (status == BH_E_UNSUPPORTED) SKIP("%s", bh_last_message());
    REQUIRE_OK(status);
    return device;
}

/* ---- numbers ---- */

static float f16_value(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float size =
        exponent ? ldexpf((float)(fraction | 1024), exponent - 25) : ldexpf((float)fraction, -24);
    return bits & 0x8000 ? -size : size;
}

/* Of whole numbers below 2048 and their negatives, which f16 has exactly. */
static uint16_t f16_bits(double value) {
    int exponent;
    if (value == 0) return 0;
    double fraction = frexp(fabs(value), &exponent);
    uint16_t sign = value < 0 ? 0x8000 : 0;
    return (uint16_t)(sign | (uint16_t)((exponent + 14) << 10) |
                      ((uint16_t)(fraction * 2048) & 1023));
}

static uint16_t bf16_bits(double value) {
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static number load(bh_type type, const uint8_t *at) {
    float f[2];
    double d[2];
    int8_t i8;
    int32_t i32;
    int64_t i64;
    uint16_t bits;
    uint32_t wide;
    switch (type) {
    case BH_F32:
        memcpy(f, at, 4);
        return f[0];
    case BH_F64:
        memcpy(d, at, 8);
        return d[0];
    case BH_C64:
        memcpy(f, at, 8);
        return f[0] + I * f[1];
    case BH_C128:
        memcpy(d, at, 16);
        return d[0] + I * d[1];
    case BH_I8:
        memcpy(&i8, at, 1);
        return i8;
    case BH_I32:
        memcpy(&i32, at, 4);
        return i32;
    case BH_I64:
        memcpy(&i64, at, 8);
        return (double)i64;
    case BH_F16:
        memcpy(&bits, at, 2);
        return f16_value(bits);
    default:
        memcpy(&bits, at, 2);
        wide = (uint32_t)bits << 16;
        memcpy(f, &wide, 4);
        return f[0];
    }
}

static void store(bh_type type, number value, uint8_t *at) {
    float f[2] = {(float)creal(value), (float)cimag(value)};
    double d[2] = {creal(value), cimag(value)};
    int8_t i8 = (int8_t)d[0];
    int32_t i32 = type == BH_I32 ? (int32_t)d[0] : 0;
    int64_t i64 = type == BH_I64 ? (int64_t)d[0] : 0;
    uint16_t bits = type == BH_F16 ? f16_bits(d[0]) : type == BH_BF16 ? bf16_bits(d[0]) : 0;
    size_t size = bh_type_size(type);
    const void *from = type == BH_F32 || type == BH_C64    ? (void *)f
                       : type == BH_F64 || type == BH_C128 ? (void *)d
                       : type == BH_I8                     ? (void *)&i8
                       : type == BH_I32                    ? (void *)&i32
                       : type == BH_I64                    ? (void *)&i64
                                                           : (void *)&bits;
    memcpy(at, from, size);
}

number number_rounded(bh_type type, number value) {
    uint8_t bytes[16];
    store(type, value, bytes);
    return load(type, bytes);
}

static double small(rng *r) {
    return (double)rng_below(r, 7) - 3;
}

numbers numbers_make(bh_device device, bh_type type, uint64_t count, rng *r) {
    numbers made = {.type = type, .count = count, .values = calloc(count + 1, sizeof(number))};
    REQUIRE(made.values != NULL);
    for (uint64_t i = 0; i < count; i++) {
        made.values[i] = small(r);
        if (type_is_complex(type)) made.values[i] += I * small(r);
    }
    REQUIRE_OK(bh_buffer_alloc(device, type, count, NULL, &made.buffer));
    numbers_write(&made);
    return made;
}

void numbers_free(numbers *self) {
    if (self->values) CHECK_OK(bh_buffer_release(self->buffer));
    free(self->values);
    memset(self, 0, sizeof *self);
}

void numbers_write(const numbers *self) {
    size_t size = bh_type_size(self->type);
    uint8_t *bytes = malloc(self->count * size + 1);
    REQUIRE(bytes != NULL);
    for (uint64_t i = 0; i < self->count; i++) store(self->type, self->values[i], bytes + i * size);
    REQUIRE_OK(bh_buffer_write(self->buffer, 0, bytes, self->count * size));
    free(bytes);
}

void numbers_read(numbers *self) {
    size_t size = bh_type_size(self->type);
    uint8_t *bytes = malloc(self->count * size + 1);
    REQUIRE(bytes != NULL);
    REQUIRE_OK(bh_buffer_read(self->buffer, 0, bytes, self->count * size));
    for (uint64_t i = 0; i < self->count; i++) self->values[i] = load(self->type, bytes + i * size);
    free(bytes);
}

bool numbers_check(const numbers *self, double precision, const char *what) {
    size_t size = bh_type_size(self->type);
    uint8_t *bytes = malloc(self->count * size + 1);
    double largest = 1;
    bool right = true;
    REQUIRE(bytes != NULL);
    REQUIRE_OK(bh_buffer_read(self->buffer, 0, bytes, self->count * size));
    for (uint64_t i = 0; i < self->count; i++) largest = fmax(largest, cabs(self->values[i]));
    for (uint64_t i = 0; i < self->count && right; i++) {
        number got = load(self->type, bytes + i * size), wanted = self->values[i];
        right = cabs(got - wanted) <= largest / precision;
        if (!right)
            FAIL("%s: element %llu of %llu (%s) is %g + %gi, not %g + %gi", what,
                 (unsigned long long)i, (unsigned long long)self->count, bh_type_name(self->type),
                 creal(got), cimag(got), creal(wanted), cimag(wanted));
    }
    free(bytes);
    return right;
}

/* ---- elements ---- */

static uint64_t member_extent(uint64_t inner, uint64_t outer, uint64_t stride) {
    return inner && outer ? (outer - 1) * stride + inner : 0;
}

number *model_element(const model_matrix *m, uint64_t batch, uint64_t i, uint64_t j) {
    bool columns = m->at.flags & BH_MATRIX_COLUMN_MAJOR;
    uint64_t inner = columns ? m->at.rows : m->at.columns;
    uint64_t outer = columns ? m->at.columns : m->at.rows;
    uint64_t stride = m->at.stride ? m->at.stride : inner;
    uint64_t next = m->at.batch_stride == BH_BATCH_SHARED ? 0
                    : m->at.batch_stride                  ? m->at.batch_stride
                                                          : member_extent(inner, outer, stride);
    return m->in->values + m->at.offset + batch * next +
           (columns ? j * stride + i : i * stride + j);
}

static number get(const model_matrix *m, uint64_t batch, uint64_t i, uint64_t j) {
    number value = *model_element(m, batch, i, j);
    return m->at.flags & BH_MATRIX_CONJUGATE ? conj(value) : value;
}

number *model_entry(const model_vector *v, uint64_t batch, uint64_t i) {
    int64_t stride = v->at.stride ? v->at.stride : 1, size = stride < 0 ? -stride : stride;
    uint64_t extent = v->at.count ? (v->at.count - 1) * (uint64_t)size + 1 : 0;
    uint64_t next = v->at.batch_stride == BH_BATCH_SHARED ? 0
                    : v->at.batch_stride                  ? v->at.batch_stride
                                                          : extent;
    return v->in->values + (int64_t)(v->at.offset + batch * next) + (int64_t)i * stride;
}

static bool stored(uint32_t flags, uint64_t i, uint64_t j) {
    return flags & BH_BLAS_UPPER ? j >= i : j <= i;
}

static number symmetric(const model_matrix *m, uint32_t flags, bool hermitian, uint64_t batch,
                        uint64_t i, uint64_t j) {
    if (hermitian && i == j) return creal(*model_element(m, batch, i, i));
    if (stored(flags, i, j)) return *model_element(m, batch, i, j);
    number other = *model_element(m, batch, j, i);
    return hermitian ? conj(other) : other;
}

/* The adjoint of a matrix that is conjugated has the same triangle: flags say which is meant. */
static number triangular(const model_matrix *m, uint32_t flags, uint64_t batch, uint64_t i,
                         uint64_t j) {
    if (i == j && flags & BH_BLAS_UNIT) return 1;
    return stored(flags, i, j) ? get(m, batch, i, j) : 0;
}

/* ---- formulas ---- */

static number scalar(bh_scalar s) {
    return s.re + I * s.im;
}

static void scale(number *value, number beta) {
    *value = beta == 0 ? 0 : *value * beta;
}

static void run_vectors(const model_call *call, uint64_t k) {
    const bh_blas *q = &call->request;
    number alpha = scalar(q->alpha), beta = scalar(q->beta), sum = 0;
    double norm = 0, largest = -1;
    uint64_t best = 0;
    for (uint64_t i = 0; i < call->x.at.count; i++) {
        number *x = model_entry(&call->x, k, i),
               *y = call->y.in ? model_entry(&call->y, k, i) : NULL, old = *x;
        double size = fabs(creal(*x)) + fabs(cimag(*x));
        switch (q->request.kind) {
        case BH_BLAS_AXPY:
            *y += alpha * *x;
            break;
        case BH_BLAS_SCAL:
            *x *= alpha;
            break;
        case BH_BLAS_COPY:
            *y = *x;
            break;
        case BH_BLAS_SWAP:
            *x = *y;
            *y = old;
            break;
        case BH_BLAS_ROT:
            *x = alpha * *x + beta * *y;
            *y = alpha * *y - beta * old;
            break;
        case BH_BLAS_DOT:
            sum += (q->flags & BH_BLAS_CONJUGATE ? conj(*x) : *x) * *y;
            break;
        case BH_BLAS_NRM2:
            norm += creal(*x * conj(*x));
            break;
        case BH_BLAS_ASUM:
            sum += size;
            break;
        default:
            if (size > largest) best = i;
            largest = fmax(size, largest);
        }
    }
    if (!call->result.in) return;
    number result = q->request.kind == BH_BLAS_NRM2    ? sqrt(norm)
                    : q->request.kind != BH_BLAS_IAMAX ? sum
                    : call->x.at.count                 ? (double)best
                                                       : -1;
    *model_entry(&call->result, k, 0) = result;
}

static void run_products(const model_call *call, uint64_t k) {
    const bh_blas *q = &call->request;
    number alpha = scalar(q->alpha), beta = scalar(q->beta);
    uint64_t n = call->a.at.columns;
    for (uint64_t i = 0; i < call->a.at.rows; i++) {
        number sum = 0, *y = model_entry(&call->y, k, i);
        for (uint64_t j = 0; j < n; j++) {
            number a =
                q->request.kind == BH_BLAS_GEMV
                    ? get(&call->a, k, i, j)
                    : symmetric(&call->a, q->flags, q->request.kind == BH_BLAS_HEMV, k, i, j);
            sum += a * *model_entry(&call->x, k, j);
        }
        scale(y, beta);
        *y += alpha * sum;
    }
}

/* Solves or multiplies with a triangular matrix, one column of numbers. */
static void triangle_times(const model_call *call, uint64_t k, number *column, uint64_t n,
                           bool turned, bool solve) {
    uint32_t flags = call->request.flags;
    number old[64], t[64][64];
    for (uint64_t i = 0; i < n; i++) {
        old[i] = column[i];
        for (uint64_t j = 0; j < n; j++)
            t[i][j] = turned ? triangular(&call->a, flags, k, j, i)
                             : triangular(&call->a, flags, k, i, j);
    }
    bool upper = !(flags & BH_BLAS_UPPER) == turned;
    for (uint64_t step = 0; step < n; step++) {
        uint64_t i = solve && upper ? n - 1 - step : step;
        number sum = 0;
        if (!solve) {
            for (uint64_t j = 0; j < n; j++) sum += t[i][j] * old[j];
            column[i] = sum;
            continue;
        }
        for (uint64_t j = 0; j < n; j++) {
            if (j != i && t[i][j] != 0) sum += t[i][j] * column[j];
        }
        column[i] = (old[i] - sum) / t[i][i];
    }
}

static void run_triangular_vector(const model_call *call, uint64_t k) {
    number column[64];
    uint64_t n = call->a.at.rows;
    for (uint64_t i = 0; i < n; i++) column[i] = *model_entry(&call->x, k, i);
    triangle_times(call, k, column, n, false, call->request.request.kind == BH_BLAS_TRSV);
    for (uint64_t i = 0; i < n; i++) *model_entry(&call->x, k, i) = column[i];
}

static void run_triangular_matrix(const model_call *call, uint64_t k) {
    bool right = call->request.flags & BH_BLAS_RIGHT;
    bool solve = call->request.request.kind == BH_BLAS_TRSM;
    number alpha = scalar(call->request.alpha), column[64];
    uint64_t n = call->a.at.rows, count = right ? call->b.at.rows : call->b.at.columns;
    for (uint64_t c = 0; c < count; c++) {
        for (uint64_t i = 0; i < n; i++)
            column[i] = alpha * *(right ? model_element(&call->b, k, c, i)
                                        : model_element(&call->b, k, i, c));
        triangle_times(call, k, column, n, right, solve);
        for (uint64_t i = 0; i < n; i++)
            *(right ? model_element(&call->b, k, c, i) : model_element(&call->b, k, i, c)) =
                column[i];
    }
}

static void run_updates(const model_call *call, uint64_t k) {
    const bh_blas *q = &call->request;
    number alpha = scalar(q->alpha);
    uint32_t kind = q->request.kind;
    bool hermitian = kind == BH_BLAS_HER || kind == BH_BLAS_HER2, general = kind == BH_BLAS_GER;
    bool conjugated = hermitian || q->flags & BH_BLAS_CONJUGATE;
    for (uint64_t i = 0; i < call->a.at.rows; i++) {
        for (uint64_t j = 0; j < call->a.at.columns; j++) {
            if (!general && !stored(q->flags, i, j)) continue;
            const model_vector *second =
                kind == BH_BLAS_SYR || kind == BH_BLAS_HER ? &call->x : &call->y;
            number xi = *model_entry(&call->x, k, i), yj = *model_entry(second, k, j);
            number *a = model_element(&call->a, k, i, j);
            *a += alpha * xi * (conjugated ? conj(yj) : yj);
            if (kind == BH_BLAS_SYR2)
                *a += alpha * *model_entry(second, k, i) * *model_entry(&call->x, k, j);
            if (kind == BH_BLAS_HER2)
                *a += conj(alpha) * *model_entry(second, k, i) * conj(*model_entry(&call->x, k, j));
            if (hermitian && i == j) *a = creal(*a);
        }
    }
}

static number product_element(const model_call *call, uint64_t k, uint64_t i, uint64_t j) {
    const bh_blas *q = &call->request;
    uint32_t kind = q->request.kind;
    bool right = q->flags & BH_BLAS_RIGHT, special = kind == BH_BLAS_SYMM || kind == BH_BLAS_HEMM;
    uint64_t n = special && !right ? call->a.at.rows
                 : special         ? call->a.at.rows
                                   : call->a.at.columns;
    number sum = 0;
    for (uint64_t p = 0; p < n; p++) {
        if (special && right)
            sum += get(&call->b, k, i, p) *
                   symmetric(&call->a, q->flags, kind == BH_BLAS_HEMM, k, p, j);
        else if (special)
            sum += symmetric(&call->a, q->flags, kind == BH_BLAS_HEMM, k, i, p) *
                   get(&call->b, k, p, j);
        else
            sum += get(&call->a, k, i, p) * get(&call->b, k, p, j);
    }
    return scalar(q->alpha) * sum;
}

static number rank_element(const model_call *call, uint64_t k, uint64_t i, uint64_t j) {
    const bh_blas *q = &call->request;
    uint32_t kind = q->request.kind;
    bool hermitian = kind == BH_BLAS_HERK || kind == BH_BLAS_HER2K;
    bool two = kind == BH_BLAS_SYR2K || kind == BH_BLAS_HER2K;
    number alpha = scalar(q->alpha), sum = 0;
    const model_matrix *b = two ? &call->b : &call->a;
    for (uint64_t p = 0; p < call->a.at.columns; p++) {
        number ai = get(&call->a, k, i, p), bj = get(b, k, j, p);
        sum += alpha * ai * (hermitian ? conj(bj) : bj);
        if (!two) continue;
        number bi = get(b, k, i, p), aj = get(&call->a, k, j, p);
        sum += (hermitian ? conj(alpha) : alpha) * bi * (hermitian ? conj(aj) : aj);
    }
    return sum;
}

static void run_matrices(const model_call *call, uint64_t k) {
    const bh_blas *q = &call->request;
    uint32_t kind = q->request.kind;
    bool rank = kind >= BH_BLAS_SYRK && kind <= BH_BLAS_HER2K;
    bool hermitian = kind == BH_BLAS_HERK || kind == BH_BLAS_HER2K;
    for (uint64_t i = 0; i < call->c.at.rows; i++) {
        for (uint64_t j = 0; j < call->c.at.columns; j++) {
            number *c = model_element(&call->c, k, i, j);
            if (rank && !stored(q->flags, i, j)) continue;
            scale(c, scalar(q->beta));
            *c += rank ? rank_element(call, k, i, j) : product_element(call, k, i, j);
            if (hermitian && i == j) *c = creal(*c);
        }
    }
}

void model_run(const model_call *call) {
    uint64_t batch = call->request.batch ? call->request.batch : 1;
    for (uint64_t k = 0; k < batch; k++) {
        switch (call->request.request.kind) {
        case BH_BLAS_GEMV:
        case BH_BLAS_SYMV:
        case BH_BLAS_HEMV:
            run_products(call, k);
            break;
        case BH_BLAS_TRMV:
        case BH_BLAS_TRSV:
            run_triangular_vector(call, k);
            break;
        case BH_BLAS_TRMM:
        case BH_BLAS_TRSM:
            run_triangular_matrix(call, k);
            break;
        default:
            if (call->request.request.kind >= BH_BLAS_GEMM)
                run_matrices(call, k);
            else if (call->request.request.kind >= BH_BLAS_GEMV)
                run_updates(call, k);
            else
                run_vectors(call, k);
        }
    }
}
