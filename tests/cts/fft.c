/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms against their formula: every kind, type and size, arrays that lie in every
 * way, in place and not. */
#include <bulkhead/fft.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "../support/blas.h"

typedef unsigned long long ull;

static const bh_submit_options waits = {.size = sizeof waits, .flags = BH_SUBMIT_WAIT};

static bh_device open_fft_device(void) {
    bh_device_options options = BH_INIT(options);
    bh_device device;
    options.device = test_device();
    options.libraries = BH_LIBRARY_FFT;
    REQUIRE_OK(bh_device_open(&options, &device));
    bh_status status = bh_library_load(device, BH_LIBRARY_FFT);
    if (status == BH_E_UNSUPPORTED) SKIP("%s", bh_last_message());
    REQUIRE_OK(status);
    return device;
}

/* ---- the formula ---- */

static uint64_t packed_or(const bh_array *array, uint32_t dimension) {
    uint64_t packed = 1;
    for (uint32_t i = 0; i < array->rank; i++) {
        if (array->stride[i]) return array->stride[dimension];
    }
    for (uint32_t i = dimension + 1; i < array->rank; i++) packed *= array->extent[i];
    return packed;
}

static uint64_t span_of(const bh_array *array) {
    uint64_t span = 1;
    for (uint32_t i = 0; i < array->rank; i++) {
        if (array->extent[i] == 0) return 0;
        span += (array->extent[i] - 1) * packed_or(array, i);
    }
    return span;
}

static uint64_t place_of(const bh_array *array, const uint64_t *index, uint64_t batch) {
    uint64_t at = array->offset, next = array->batch_stride ? array->batch_stride : span_of(array);
    if (array->batch_stride != BH_BATCH_SHARED) at += batch * next;
    for (uint32_t i = 0; i < array->rank; i++) at += index[i] * packed_or(array, i);
    return at;
}

/* Counts an index up. False: it was the last. */
static bool next_index(const uint64_t *extent, uint32_t rank, uint64_t *index) {
    for (uint32_t i = rank; i-- > 0;) {
        if (++index[i] < extent[i]) return true;
        index[i] = 0;
    }
    return false;
}

/* An input element of the whole complex array that the transform is one of. */
static number input_at(const bh_fft *q, const number *input, const uint64_t *index,
                       uint64_t batch) {
    uint64_t mirror[BH_ARRAY_RANK];
    uint32_t last = q->input.rank - 1;
    if (q->request.kind != BH_FFT_C2R || index[last] < q->input.extent[last])
        return input[place_of(&q->input, index, batch)];
    memcpy(mirror, index, sizeof mirror);
    for (uint32_t i = last + 1 - q->axes; i <= last; i++)
        mirror[i] = index[i] ? q->output.extent[i] - index[i] : 0;
    return conj(input[place_of(&q->input, mirror, batch)]);
}

/* What the formula gives for one element of the output. */
static number element(const bh_fft *q, const number *input, const uint64_t *at, uint64_t batch) {
    const bh_array *whole = q->request.kind == BH_FFT_C2R ? &q->output : &q->input;
    uint32_t rank = whole->rank, before = rank - q->axes;
    double sign = q->direction == BH_FFT_INVERSE ? 1 : -1;
    uint64_t index[BH_ARRAY_RANK] = {0};
    number sum = 0;
    memcpy(index, at, before * sizeof index[0]);
    do {
        double turns = 0;
        for (uint32_t i = before; i < rank; i++)
            turns += (double)(index[i] * at[i] % whole->extent[i]) / (double)whole->extent[i];
        sum += input_at(q, input, index, batch) * cexp(sign * 2 * M_PI * I * turns);
    } while (next_index(whole->extent + before, q->axes, index + before));
    return (q->alpha.re + I * q->alpha.im) * sum;
}

/* Computes the call in the numbers of its output; `input` is a copy of those of its input. */
static void model(const bh_fft *q, const number *input, numbers *output) {
    uint64_t index[BH_ARRAY_RANK];
    for (uint32_t i = 0; i < q->output.rank; i++) {
        if (q->output.extent[i] == 0) return;
    }
    for (uint64_t batch = 0; batch < (q->batch ? q->batch : 1); batch++) {
        memset(index, 0, sizeof index);
        do {
            number value = element(q, input, index, batch);
            output->values[place_of(&q->output, index, batch)] = value;
        } while (next_index(q->output.extent, q->output.rank, index));
    }
}

/* ---- trials ---- */

static bh_type other_type(uint32_t kind, bh_type input) {
    if (kind == BH_FFT_C2C) return input;
    return input == BH_F32 ? BH_C64 : input == BH_F64 ? BH_C128 : input == BH_C64 ? BH_F32 : BH_F64;
}

static bool is_single(bh_type type) {
    return type == BH_F32 || type == BH_C64;
}

static uint64_t gap(rng *r) {
    return rng_below(r, 2) ? 0 : rng_below(r, 4);
}

/* Lets an array lie in a random way: its dimensions in any order, with gaps. */
static void scatter(rng *r, bh_array *array, uint64_t batch, bool input) {
    uint32_t order[BH_ARRAY_RANK];
    uint64_t next = 1 + gap(r);
    array->offset = gap(r);
    if (rng_below(r, 2)) {
        for (uint32_t i = 0; i < array->rank; i++) order[i] = i;
        for (uint32_t i = array->rank; i-- > 1;) {
            uint32_t k = rng_below(r, i + 1), swapped = order[i];
            order[i] = order[k];
            order[k] = swapped;
        }
        for (uint32_t i = 0; i < array->rank; i++) {
            array->stride[order[i]] = next;
            next = next * (array->extent[order[i]] ? array->extent[order[i]] : 1) + gap(r);
        }
        /* Windows of a signal overlap. */
        if (input && array->rank > 1 && !rng_below(r, 3)) array->stride[0] = 1 + gap(r);
        if (input && array->rank > 1 && !rng_below(r, 6)) array->stride[0] = 0;
        bool any = false;
        for (uint32_t i = 0; i < array->rank; i++) any |= array->stride[i] != 0;
        if (!any) array->stride[array->rank - 1] = 1;
    }
    uint64_t span = span_of(array);
    if (batch > 1 && rng_below(r, 2)) array->batch_stride = span + gap(r);
    if (array->batch_stride == 0 && span == 0) array->batch_stride = 1;
    if (input && !rng_below(r, 4)) array->batch_stride = BH_BATCH_SHARED;
}

static uint64_t elements_of(rng *r, const bh_array *array, uint64_t batch) {
    uint64_t next = array->batch_stride ? array->batch_stride : span_of(array);
    if (next == BH_BATCH_SHARED) next = 0;
    return array->offset + (batch ? batch - 1 : 0) * next + span_of(array) + gap(r) + 1;
}

static bh_fft random_call(rng *r, uint32_t kind) {
    bh_array in = {.rank = 1 + rng_below(r, 4)}, out = {.rank = in.rank};
    bh_fft q;
    uint32_t axes = 1 + rng_below(r, in.rank < 3 ? in.rank : 3);
    for (uint32_t i = 0; i < in.rank; i++) {
        uint64_t n = in.rank == 1 ? 1 + rng_below(r, 40) : 1 + rng_below(r, 7);
        if (i + 1 < in.rank && !rng_below(r, 20)) n = 0;
        in.extent[i] = out.extent[i] = n;
    }
    uint64_t *half = &(kind == BH_FFT_R2C ? &out : &in)->extent[in.rank - 1];
    if (kind != BH_FFT_C2C) *half = *half / 2 + 1;
    q = kind == BH_FFT_C2C   ? bh_fft_c2c(rng_below(r, 2), in, out, axes)
        : kind == BH_FFT_R2C ? bh_fft_r2c(in, out, axes)
                             : bh_fft_c2r(in, out, axes);
    q.batch = rng_below(r, 4);
    if (rng_below(r, 2)) q.alpha.re = (double)rng_below(r, 5) - 2.5;
    if (kind == BH_FFT_C2C && !rng_below(r, 3)) q.alpha.im = 0.5;
    scatter(r, &q.input, q.batch, true);
    scatter(r, &q.output, q.batch, false);
    return q;
}

static void describe(const bh_fft *q, bh_type type, char *out, size_t size) {
    size_t used = (size_t)snprintf(
        out, size,
        "kind %u %s direction %u, axes %u of %u, batch %llu, in+%llu out+%llu:", q->request.kind,
        bh_type_name(type), q->direction, q->axes, q->input.rank, (ull)q->batch,
        (ull)q->input.offset, (ull)q->output.offset);
    for (uint32_t i = 0; i < q->input.rank && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, " %llu*%llu->%llu*%llu",
                                 (ull)q->input.extent[i], (ull)q->input.stride[i],
                                 (ull)q->output.extent[i], (ull)q->output.stride[i]);
}

/* A c2r has no real result unless its input has this form: transforms of real arrays do. */
static void make_hermitian(const bh_fft *q, numbers *input) {
    uint64_t index[BH_ARRAY_RANK], mirror[BH_ARRAY_RANK];
    uint32_t last = q->input.rank - 1;
    uint64_t n = q->output.extent[last];
    for (uint32_t i = 0; i < q->input.rank; i++) {
        if (q->input.extent[i] == 0) return;
    }
    for (uint64_t batch = 0; batch < (q->batch ? q->batch : 1); batch++) {
        memset(index, 0, sizeof index);
        do {
            if (index[last] != 0 && index[last] * 2 != n) continue;
            memcpy(mirror, index, sizeof mirror);
            for (uint32_t i = last + 1 - q->axes; i < last; i++)
                mirror[i] = index[i] ? q->input.extent[i] - index[i] : 0;
            number *one = &input->values[place_of(&q->input, index, batch)];
            number *other = &input->values[place_of(&q->input, mirror, batch)];
            *other = one == other ? creal(*one) : conj(*one);
        } while (next_index(q->input.extent, q->input.rank, index));
    }
    numbers_write(input);
}

static double precision_of(bh_type type) {
    return is_single(type) ? 1e5 : 1e12;
}

static void trial_apart(bh_device device, rng *r, uint32_t kind, bh_type type) {
    char text[256];
    bh_fft q = random_call(r, kind);
    /* Overlapping elements cannot all be of a Hermitian array. */
    if (kind == BH_FFT_C2R) {
        memset(q.input.stride, 0, sizeof q.input.stride);
        if (q.input.batch_stride != BH_BATCH_SHARED) q.input.batch_stride = 0;
    }
    numbers in = numbers_make(device, type, elements_of(r, &q.input, q.batch), r);
    numbers out =
        numbers_make(device, other_type(kind, type), elements_of(r, &q.output, q.batch), r);
    q.input.buffer = in.buffer;
    q.output.buffer = out.buffer;
    if (kind == BH_FFT_C2R) make_hermitian(&q, &in);
    describe(&q, type, text, sizeof text);
    bh_status status = bh_submit(&q.request, &waits, NULL);
    if (status != BH_OK) FAIL("%s: %s", text, bh_last_message());
    model(&q, in.values, &out);
    numbers_check(&in, 1e15, text);
    numbers_check(&out, precision_of(type), text);
    numbers_free(&in);
    numbers_free(&out);
}

static void try_apart(uint32_t kind, const bh_type *types, int rounds) {
    bh_device device = open_fft_device();
    rng r = rng_seeded(kind);
    for (int i = 0; i < 2; i++) {
        for (int round = 0; round < rounds && test_failures() < 5; round++)
            trial_apart(device, &r, kind, types[i]);
    }
    CHECK_OK(bh_device_close(device));
}

static const bh_type complexes[] = {BH_C64, BH_C128}, reals[] = {BH_F32, BH_F64};

TEST(complex_to_complex_as_the_formula_says) {
    try_apart(BH_FFT_C2C, complexes, 150);
}

TEST(real_to_complex_as_the_formula_says) {
    try_apart(BH_FFT_R2C, reals, 150);
}

TEST(complex_to_real_as_the_formula_says) {
    try_apart(BH_FFT_C2R, complexes, 150);
}

/* One dimension, of every length: FFTW does primes and products of primes differently. */
TEST(every_length) {
    bh_device device = open_fft_device();
    rng r = rng_seeded(11);
    static const uint64_t longer[] = {127, 128, 143, 211, 240, 256, 331, 512};
    for (uint64_t i = 1; i < 72 && test_failures() < 5; i++) {
        uint64_t n = i < 64 ? i : longer[i - 64];
        bh_type type = i % 2 ? BH_C128 : BH_C64, real = i % 2 ? BH_F64 : BH_F32;
        numbers a = numbers_make(device, type, n, &r), b = numbers_make(device, type, n, &r);
        numbers c = numbers_make(device, real, n, &r),
                d = numbers_make(device, type, n / 2 + 1, &r);
        bh_fft q =
            bh_fft_c2c(BH_FFT_FORWARD, bh_array_1d(a.buffer, n), bh_array_1d(b.buffer, n), 1);
        CHECK_OK(bh_submit(&q.request, &waits, NULL));
        model(&q, a.values, &b);
        numbers_check(&b, precision_of(type), "c2c");
        q = bh_fft_r2c(bh_array_1d(c.buffer, n), bh_array_1d(d.buffer, n / 2 + 1), 1);
        CHECK_OK(bh_submit(&q.request, &waits, NULL));
        model(&q, c.values, &d);
        numbers_check(&d, precision_of(type), "r2c");
        /* And back, which gives the first array. */
        q = bh_fft_c2r(bh_array_1d(d.buffer, n / 2 + 1), bh_array_1d(c.buffer, n), 1);
        q.alpha.re = 1 / (double)n;
        CHECK_OK(bh_submit(&q.request, &waits, NULL));
        numbers_check(&c, precision_of(type) / 4, "c2r of r2c");
        numbers_check(&d, precision_of(type), "the input of c2r");
        numbers_free(&a);
        numbers_free(&b);
        numbers_free(&c);
        numbers_free(&d);
    }
    CHECK_OK(bh_device_close(device));
}

/* ---- in place ---- */

/* A buffer of reals, and a view of the same memory as complex numbers. */
typedef struct shared_memory {
    bh_buffer whole, halves;
    bh_type whole_type, real_type;
    uint64_t count; /* complex elements */
} shared_memory;

static shared_memory shared_make(bh_device device, bool single, uint64_t count) {
    shared_memory made = {.whole_type = single ? BH_C64 : BH_C128,
                          .real_type = single ? BH_F32 : BH_F64,
                          .count = count};
    REQUIRE_OK(bh_buffer_alloc(device, made.whole_type, count, NULL, &made.whole));
    REQUIRE_OK(bh_buffer_view(made.whole, made.real_type, 0, 2 * count, &made.halves));
    return made;
}

/* Marks the elements of an array that lie in `places`, counted in elements of half the size. */
static void mark(const bh_array *array, bool wide, uint8_t *places, uint8_t with) {
    uint64_t index[BH_ARRAY_RANK] = {0}, size = wide ? 2 : 1;
    do {
        memset(places + place_of(array, index, 0) * size, with, size);
    } while (next_index(array->extent, array->rank, index));
}

/* What of the input lies behind the rows of the output has no value afterwards. */
static void forget_rest_of_input(const bh_fft *q, numbers *out) {
    static const uint8_t zeros[16];
    bool wide = type_is_complex(out->type);
    uint64_t each = wide ? 2 : 1, size = bh_type_size(out->type);
    uint8_t *places = calloc(out->count, each);
    REQUIRE(places != NULL);
    mark(&q->input, q->request.kind != BH_FFT_R2C, places, 1);
    mark(&q->output, wide, places, 0);
    for (uint64_t i = 0; i < out->count; i++) {
        if (!places[i * each] && !places[i * each + each - 1]) continue;
        out->values[i] = 0;
        REQUIRE_OK(bh_buffer_write(out->buffer, i * size, zeros, size));
    }
    free(places);
}

/* Both arrays in numbers of their own, the output at the start of the input: what the input has
 * behind the output stays. */
static void trial_in_place(bh_device device, rng *r, uint32_t kind, bool single, int layout) {
    char text[256];
    uint64_t rows = 1 + rng_below(r, 5), planes = 1 + rng_below(r, 3), n = 1 + rng_below(r, 12);
    uint64_t half = n / 2 + 1, width = kind == BH_FFT_C2C ? n : half, pad = gap(r);
    uint64_t row = width + pad, count = planes * rows * row * 2 + 8;
    shared_memory memory = shared_make(device, single, count);
    bh_array real = {.buffer = memory.halves,
                     .rank = 3,
                     .extent = {planes, rows, n},
                     .stride = {2 * rows * row, 2 * row, 1}};
    bh_array wide = {.buffer = memory.whole,
                     .rank = 3,
                     .extent = {planes, rows, width},
                     .stride = {rows * row, row, 1}};
    bh_fft q = kind == BH_FFT_C2C   ? bh_fft_c2c(rng_below(r, 2), wide, wide, 1)
               : kind == BH_FFT_R2C ? bh_fft_r2c(real, wide, 1)
                                    : bh_fft_c2r(wide, real, 1);
    q.axes = 1 + rng_below(r, 3);
    q.alpha.re = rng_below(r, 2) ? 1 : 0.25;
    /* Layouts that differ: the output without gaps, or its dimensions the other way round. */
    if (layout == 1) memset(q.output.stride, 0, sizeof q.output.stride);
    if (layout == 2) {
        q.output.stride[0] = 1;
        q.output.stride[1] = planes;
        q.output.stride[2] = planes * rows;
    }
    /* Filled by a buffer of the input's type. */
    bool of_reals = kind == BH_FFT_R2C;
    numbers in = numbers_make(device, of_reals ? memory.real_type : memory.whole_type,
                              of_reals ? 2 * count : count, r);
    in.buffer = of_reals ? memory.halves : memory.whole;
    if (kind == BH_FFT_C2R) make_hermitian(&q, &in);
    numbers_write(&in);
    /* What lies there afterwards, read as the output's type, before the output is laid over it. */
    bool to_reals = kind == BH_FFT_C2R;
    numbers out = {.buffer = to_reals ? memory.halves : memory.whole,
                   .type = to_reals ? memory.real_type : memory.whole_type,
                   .count = to_reals ? 2 * count : count};
    out.values = calloc(out.count, sizeof *out.values);
    REQUIRE(out.values != NULL);
    for (uint64_t i = 0; i < out.count; i++) {
        if (of_reals)
            out.values[i] = in.values[2 * i] + I * in.values[2 * i + 1];
        else if (to_reals)
            out.values[i] = i % 2 ? cimag(in.values[i / 2]) : creal(in.values[i / 2]);
        else
            out.values[i] = in.values[i];
    }
    model(&q, in.values, &out);
    describe(&q, in.type, text, sizeof text);
    bh_status status = bh_submit(&q.request, &waits, NULL);
    if (status != BH_OK) FAIL("%s: %s", text, bh_last_message());
    forget_rest_of_input(&q, &out);
    numbers_check(&out, precision_of(in.type), text);
    free(in.values);
    free(out.values);
    CHECK_OK(bh_buffer_release(memory.halves));
    CHECK_OK(bh_buffer_release(memory.whole));
}

TEST(in_place_whatever_the_layouts) {
    bh_device device = open_fft_device();
    rng r = rng_seeded(12);
    for (uint32_t kind = BH_FFT_C2C; kind <= BH_FFT_C2R; kind++) {
        for (int round = 0; round < 60 && test_failures() < 5; round++)
            trial_in_place(device, &r, kind, round % 2, round % 3);
    }
    CHECK_OK(bh_device_close(device));
}

/* ---- as requests ---- */

static void check_call_refused(const bh_fft *call, bh_status status, const char *text) {
    bh_ticket ticket = {7, 7};
    CHECK_STATUS(bh_submit(&call->request, NULL, &ticket), status);
    CHECK_STR_CONTAINS(bh_last_message(), text);
    CHECK_STR_CONTAINS(bh_last_message(), "Fix:");
    CHECK_EQ(ticket.lane, 7);
}

static bh_buffer alloc(bh_device device, bh_type type, uint64_t count) {
    bh_buffer made;
    REQUIRE_OK(bh_buffer_alloc(device, type, count, NULL, &made));
    return made;
}

TEST(extents_that_do_not_fit_are_refused_with_their_numbers) {
    bh_device device = open_fft_device();
    bh_buffer a = alloc(device, BH_C64, 64), b = alloc(device, BH_C64, 64),
              f = alloc(device, BH_F32, 64);
    bh_fft q = bh_fft_c2c(0, bh_array_2d(a, 8, 8), bh_array_2d(b, 8, 7), 1);
    check_call_refused(&q, BH_E_INVALID, "extent 1 of input is 8, that of output 7");
    q = bh_fft_c2c(0, bh_array_2d(a, 8, 8), bh_array_1d(b, 64), 1);
    check_call_refused(&q, BH_E_INVALID, "input has 2 dimensions, output 1");
    q = bh_fft_r2c(bh_array_1d(f, 9), bh_array_1d(b, 9), 1);
    check_call_refused(&q, BH_E_INVALID,
                       "the last extent of output is 9; with 9 of input it must be 5");
    q = bh_fft_c2r(bh_array_1d(a, 4), bh_array_1d(f, 8), 1);
    check_call_refused(&q, BH_E_INVALID,
                       "the last extent of input is 4; with 8 of output it must be 5");
    q = bh_fft_r2c(bh_array_1d(f, 0), bh_array_1d(b, 1), 1);
    check_call_refused(&q, BH_E_INVALID, "the last extent of input is 0");
    q = bh_fft_c2r(bh_array_1d(a, 1), bh_array_1d(f, 0), 1);
    check_call_refused(&q, BH_E_INVALID, "the last extent of output is 0");
    q = bh_fft_c2c(0, bh_array_1d(a, 65), bh_array_1d(b, 65), 1);
    check_call_refused(&q, BH_E_INVALID, "input takes elements 0 to 65; its buffer has 64");
    q = bh_fft_c2c(0, bh_array_1d(a, 32), bh_array_1d(b, 32), 1);
    q.batch = 3;
    check_call_refused(&q, BH_E_INVALID, "input takes elements 0 to 96");
    q.input.batch_stride = BH_BATCH_SHARED;
    check_call_refused(&q, BH_E_INVALID, "output takes elements 0 to 96");
    q = bh_fft_c2c(0, bh_array_2d(a, 1ull << 33, 2), bh_array_2d(b, 1ull << 33, 2), 1);
    check_call_refused(&q, BH_E_UNSUPPORTED, "input is too large");
    q = bh_fft_c2c(0, bh_array_1d(a, 8), bh_array_1d(b, 8), 1);
    q.input.offset = UINT64_MAX;
    check_call_refused(&q, BH_E_UNSUPPORTED, "input is too large");
    q.input.offset = 0;
    q.output.stride[0] = UINT64_MAX;
    check_call_refused(&q, BH_E_UNSUPPORTED, "output is too large");
    q = bh_fft_c2c(0, bh_array_2d(a, 4, 8), bh_array_2d(b, 4, 8), 1);
    q.output.stride[0] = 7, q.output.stride[1] = 1;
    check_call_refused(&q, BH_E_INVALID, "elements of output overlap");
    q.output.stride[0] = 8;
    q.batch = 2;
    q.output.batch_stride = 31;
    check_call_refused(&q, BH_E_INVALID, "elements of output overlap");
    CHECK_OK(bh_device_close(device));
}

TEST(fields_and_types_that_do_not_belong_are_refused) {
    bh_device device = open_fft_device();
    bh_buffer a = alloc(device, BH_C64, 64), b = alloc(device, BH_C64, 64), none = {0},
              f = alloc(device, BH_F32, 64), h = alloc(device, BH_F16, 64),
              d = alloc(device, BH_C128, 64);
    bh_array in = bh_array_1d(a, 64), out = bh_array_1d(b, 64);
    const bh_fft right = bh_fft_c2c(BH_FFT_FORWARD, in, out, 1);
    bh_fft q = right;
    q.alpha.re = 0;
    check_call_refused(&q, BH_E_INVALID, "alpha is 0");
    q = right;
    q.beta.re = 1;
    check_call_refused(&q, BH_E_INVALID, "no beta");
    q = right;
    q.axes = 0;
    check_call_refused(&q, BH_E_INVALID, "axes is 0");
    q.axes = 2;
    check_call_refused(&q, BH_E_INVALID, "axes is 2, of arrays with 1 dimensions");
    q.axes = UINT32_MAX;
    check_call_refused(&q, BH_E_INVALID, "axes is 4294967295");
    q = right;
    q.direction = 2;
    check_call_refused(&q, BH_E_INVALID, "direction is 2; it must be 0 to 1");
    q = right;
    q.flags = 1;
    check_call_refused(&q, BH_E_INVALID, "flags is 0x1");
    q = right;
    q.reserved = 1;
    check_call_refused(&q, BH_E_UNSUPPORTED, "reserved");
    q = right;
    q.input.reserved = 1;
    check_call_refused(&q, BH_E_UNSUPPORTED, "reserved");
    q = right;
    q.input.rank = 0;
    check_call_refused(&q, BH_E_INVALID, "input has 0 dimensions");
    q.input.rank = q.output.rank = UINT32_MAX;
    check_call_refused(&q, BH_E_INVALID, "input has 4294967295 dimensions");
    q = right;
    q.output.buffer = none;
    check_call_refused(&q, BH_E_INVALID, "output");
    q = right;
    q.request.size = 12;
    bh_ticket ticket;
    CHECK_STATUS(bh_submit(&q.request, NULL, &ticket), BH_E_INVALID);
    q = bh_fft_c2c(0, bh_array_1d(f, 64), out, 1);
    check_call_refused(&q, BH_E_INVALID, "the elements of input are f32; they must be c64, c128");
    q = bh_fft_c2c(0, in, bh_array_1d(d, 64), 1);
    check_call_refused(&q, BH_E_INVALID, "the elements of output are c128; they must be c64");
    q = bh_fft_r2c(bh_array_1d(h, 64), bh_array_1d(b, 33), 1);
    check_call_refused(&q, BH_E_INVALID, "the elements of input are f16; they must be f32, f64");
    q = bh_fft_r2c(bh_array_1d(f, 64), bh_array_1d(d, 33), 1);
    check_call_refused(&q, BH_E_INVALID, "the elements of output are c128; they must be c64");
    q = bh_fft_c2r(bh_array_1d(d, 33), bh_array_1d(f, 64), 1);
    check_call_refused(&q, BH_E_INVALID, "the elements of output are f32; they must be f64");
    q = bh_fft_r2c(bh_array_1d(f, 64), bh_array_1d(b, 33), 1);
    q.direction = BH_FFT_INVERSE;
    check_call_refused(&q, BH_E_INVALID, "direction is 1");
    q = bh_fft_c2r(bh_array_1d(a, 33), bh_array_1d(f, 64), 1);
    q.alpha.im = 1;
    check_call_refused(&q, BH_E_INVALID, "must be real");
    q = right;
    q.output = bh_array_1d(a, 63);
    q.input.extent[0] = 63;
    q.output.offset = 1;
    check_call_refused(&q, BH_E_INVALID, "may share elements");
    CHECK_OK(bh_device_close(device));
}

TEST(transforms_of_nothing_do_nothing) {
    bh_device device = open_fft_device();
    rng r = rng_seeded(13);
    numbers a = numbers_make(device, BH_C64, 8, &r), b = numbers_make(device, BH_C64, 8, &r);
    bh_fft q = bh_fft_c2c(0, bh_array_1d(a.buffer, 0), bh_array_1d(b.buffer, 0), 1);
    CHECK_OK(bh_submit(&q.request, &waits, NULL));
    q = bh_fft_c2c(0, bh_array_3d(a.buffer, 2, 0, 4), bh_array_3d(b.buffer, 2, 0, 4), 3);
    CHECK_OK(bh_submit(&q.request, &waits, NULL));
    q = bh_fft_c2c(0, bh_array_2d(a.buffer, 0, 4), bh_array_2d(b.buffer, 0, 4), 1);
    q.batch = 5;
    CHECK_OK(bh_submit(&q.request, &waits, NULL));
    numbers_check(&b, 1e15, "after transforms of nothing");
    numbers_free(&a);
    numbers_free(&b);
    CHECK_OK(bh_device_close(device));
}

TEST(transforms_are_ordered_on_lanes_and_run_in_sequences) {
    enum { N = 48 };
    bh_device device = open_fft_device();
    rng r = rng_seeded(14);
    numbers a = numbers_make(device, BH_C128, N, &r), b = numbers_make(device, BH_C128, N, &r);
    bh_lane lane = open_lane(device);
    bh_submit_options on_lane = {.size = sizeof on_lane, .lane = lane};
    bh_ticket done;
    bh_fft forward =
        bh_fft_c2c(BH_FFT_FORWARD, bh_array_1d(a.buffer, N), bh_array_1d(b.buffer, N), 1);
    bh_fft back = bh_fft_c2c(BH_FFT_INVERSE, bh_array_1d(b.buffer, N), bh_array_1d(a.buffer, N), 1);
    back.alpha.re = 1.0 / N;
    for (int i = 0; i < 8; i++) {
        CHECK_OK(bh_submit(&forward.request, NULL, &done));
        CHECK_OK(bh_submit(&back.request, &on_lane, &done));
    }
    CHECK_OK(bh_wait(done, BH_FOREVER));
    numbers_check(&a, 1e12, "there and back on two lanes");

    bh_sequence sequence = sequence_open(device, "fft");
    bh_submit_options often = {.size = sizeof often, .flags = BH_SUBMIT_WAIT, .repeat = 5};
    bh_fft double_in_place = bh_fft_c2c(BH_FFT_FORWARD, forward.output, forward.output, 1);
    double_in_place.alpha.re = 1.0 / N; /* twice forward turns the array round */
    REQUIRE_OK(bh_sequence_add(sequence, &forward.request, NULL));
    REQUIRE_OK(bh_sequence_add(sequence, &double_in_place.request, NULL));
    back.input = bh_array_1d(b.buffer, N);
    REQUIRE_OK(bh_sequence_add(sequence, &forward.request, NULL));
    REQUIRE_OK(bh_sequence_add(sequence, &back.request, NULL));
    REQUIRE_OK(bh_sequence_finish(sequence));
    CHECK_OK(bh_sequence_submit(sequence, &often, NULL));
    numbers_check(&a, 1e12, "there and back in a sequence");
    CHECK_OK(bh_device_close(device));
    free(a.values);
    free(b.values);
}

/* Large enough for several threads. Every element is known: of turns at one speed, a point. */
TEST(large_transforms) {
    enum { N = 1 << 17, AT = 12345 };
    bh_device device = open_fft_device();
    bh_buffer a = alloc(device, BH_C64, N), b = alloc(device, BH_C64, N);
    float *host = malloc(2 * N * sizeof *host);
    REQUIRE(host != NULL);
    for (uint64_t i = 0; i < N; i++) {
        double angle = 2 * M_PI * (double)(i * AT % N) / N;
        host[2 * i] = (float)cos(angle);
        host[2 * i + 1] = (float)sin(angle);
    }
    REQUIRE_OK(bh_buffer_write(a, 0, host, 2 * N * sizeof *host));
    bh_fft q = bh_fft_c2c(BH_FFT_FORWARD, bh_array_1d(a, N), bh_array_1d(b, N), 1);
    q.alpha.re = 1.0 / N;
    CHECK_OK(bh_submit(&q.request, &waits, NULL));
    REQUIRE_OK(bh_buffer_read(b, 0, host, 2 * N * sizeof *host));
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += fabsf(host[2 * i] - (i == AT)) > 1e-4f || fabsf(host[2 * i + 1]) > 1e-4f;
    CHECK_EQ(wrong, 0);
    free(host);
    CHECK_OK(bh_device_close(device));
}

/* More kinds of transforms than plans are kept, from several threads, each on its lane. */
typedef struct caller {
    bh_device device;
    uint64_t seed;
    pthread_t thread;
} caller;

static void *call_many(void *argument) {
    caller *self = argument;
    rng r = rng_seeded(self->seed);
    bh_lane lane = open_lane(self->device);
    bh_submit_options on_lane = {.size = sizeof on_lane, .flags = BH_SUBMIT_WAIT, .lane = lane};
    for (uint64_t i = 0; i < 130 && test_failures() < 5; i++) {
        uint64_t n = 1 + i % 90;
        numbers a = numbers_make(self->device, BH_C128, n, &r);
        numbers b = numbers_make(self->device, BH_C128, n, &r);
        bh_fft q = bh_fft_c2c(i % 2, bh_array_1d(a.buffer, n), bh_array_1d(b.buffer, n), 1);
        CHECK_OK(bh_submit(&q.request, &on_lane, NULL));
        model(&q, a.values, &b);
        numbers_check(&b, 1e12, "one of many");
        numbers_free(&a);
        numbers_free(&b);
    }
    return NULL;
}

TEST(many_kinds_of_transforms_from_many_threads) {
    caller callers[4];
    bh_device device = open_fft_device();
    for (uint64_t i = 0; i < 4; i++) {
        callers[i] = (caller){.device = device, .seed = 20 + i};
        REQUIRE(pthread_create(&callers[i].thread, NULL, call_many, &callers[i]) == 0);
    }
    for (int i = 0; i < 4; i++) pthread_join(callers[i].thread, NULL);
    CHECK_OK(bh_device_close(device));
}

/* Any number in any field: the call is refused, or does what the numbers say within its buffers. */
TEST(numbers_of_every_kind_in_every_field) {
    static const uint64_t odd[] = {0,          1,          2,          3,
                                   7,          8,          63,         64,
                                   65,         INT32_MAX,  UINT32_MAX, 1ull << 31,
                                   1ull << 32, 1ull << 39, 1ull << 40, 1ull << 62,
                                   1ull << 63, INT64_MAX,  UINT64_MAX, 0x3ff0000000000000};
    enum { N = 64, GUARD = 64, ODD = sizeof odd / sizeof odd[0] };
    bh_device device = open_fft_device();
    rng r = rng_seeded(15);
    numbers a = numbers_make(device, BH_C64, N, &r),
            guard = numbers_make(device, BH_C64, GUARD, &r);
    bh_buffer b = alloc(device, BH_C64, N), f = alloc(device, BH_F32, N);
    numbers after = numbers_make(device, BH_C64, GUARD, &r);
    int done = 0, refused = 0;
    for (int round = 0; round < 6000; round++) {
        bh_fft q = round % 3 == 0
                       ? bh_fft_c2c(0, bh_array_3d(a.buffer, 2, 4, 8), bh_array_3d(b, 2, 4, 8), 2)
                   : round % 3 == 1
                       ? bh_fft_r2c(bh_array_2d(f, 4, 16), bh_array_2d(b, 4, 9), 1)
                       : bh_fft_c2r(bh_array_2d(a.buffer, 4, 9), bh_array_2d(f, 4, 16), 2);
        uint32_t changes = 1 + rng_below(&r, 3);
        for (uint32_t i = 0; i < changes; i++) {
            size_t at = offsetof(bh_fft, flags), bytes = rng_below(&r, 2) ? 4 : 8;
            at += rng_below(&r, (uint32_t)((sizeof q - at - bytes) / 4 + 1)) * 4;
            memcpy((uint8_t *)&q + at, &odd[rng_below(&r, ODD)], bytes);
        }
        bh_status status = bh_submit(&q.request, &waits, NULL);
        if (status != BH_OK && status != BH_E_INVALID && status != BH_E_UNSUPPORTED)
            FAIL("round %d: %s", round, bh_last_message());
        done += status == BH_OK;
        refused += status != BH_OK;
    }
    CHECK_GT(done, 300);
    CHECK_GT(refused, 3000);
    numbers_check(&guard, 1e15, "a buffer beside the others");
    numbers_check(&after, 1e15, "a buffer behind the others");
    bh_health health = BH_INIT(health);
    REQUIRE_OK(bh_device_get_health(device, &health));
    CHECK_EQ(health.generation, 1);
    CHECK_OK(bh_device_close(device));
    free(a.values);
    free(guard.values);
    free(after.values);
}

/* A recorded transform whose buffers are exchanged for others is in place then, or no longer. */
TEST(recorded_transforms_take_other_buffers) {
    enum { N = 40 };
    bh_device device = open_fft_device();
    rng r = rng_seeded(16);
    for (int first_in_place = 0; first_in_place < 2; first_in_place++) {
        numbers a = numbers_make(device, BH_C128, N, &r), b = numbers_make(device, BH_C128, N, &r);
        numbers c = numbers_make(device, BH_C128, N, &r);
        bh_fft q = bh_fft_c2c(BH_FFT_FORWARD, bh_array_1d(a.buffer, N),
                              bh_array_1d(first_in_place ? a.buffer : b.buffer, N), 1);
        bh_sequence sequence = sequence_open(device, "bound");
        bh_submit_options now = {.size = sizeof now, .flags = BH_SUBMIT_WAIT};
        REQUIRE_OK(bh_sequence_add(sequence, &q.request, NULL));
        REQUIRE_OK(bh_sequence_finish(sequence));
        CHECK_OK(bh_sequence_bind(sequence, a.buffer, c.buffer));
        if (!first_in_place) CHECK_OK(bh_sequence_bind(sequence, b.buffer, c.buffer));
        CHECK_OK(bh_sequence_submit(sequence, &now, NULL));
        number *copy = malloc(N * sizeof *copy);
        REQUIRE(copy != NULL);
        memcpy(copy, c.values, N * sizeof *copy);
        model(&q, copy, &c);
        numbers_check(&c, 1e12, first_in_place ? "still in place" : "in place since it was bound");
        numbers_check(&a, 1e15, "the recorded input");
        free(copy);
        numbers_free(&a);
        numbers_free(&b);
        numbers_free(&c);
    }
    CHECK_OK(bh_device_close(device));
}
