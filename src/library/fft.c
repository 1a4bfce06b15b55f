/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of Fourier transforms, and what their requests mean. */
#include "library/fft.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

#define REAL    (BH__TYPE_BIT(BH_F32) | BH__TYPE_BIT(BH_F64))
#define COMPLEX (BH__TYPE_BIT(BH_C64) | BH__TYPE_BIT(BH_C128))

#define INPUT                                                                                      \
    {                                                                                              \
        .name = "input", .at = offsetof(bh_fft, input), .form = BH__FORM_ARRAY,                    \
        .access = BH_ACCESS_IN                                                                     \
    }
#define OUTPUT(of_type)                                                                            \
    {                                                                                              \
        .name = "output", .at = offsetof(bh_fft, output), .form = BH__FORM_ARRAY,                  \
        .type = BH__TYPE_##of_type, .access = BH_ACCESS_OUT                                        \
    }
#define FIELDS(direction_from, direction_to)                                                       \
    .field_count = 2,                                                                              \
    .fields = {{"direction", offsetof(bh_fft, direction), 4, direction_from, direction_to},        \
               {"axes", offsetof(bh_fft, axes), 4, 1, BH__FFT_AXES}}

const bh__operation bh__fft_operations[BH__FFT_OPERATIONS] = {
    {.kind = BH_FFT_C2C,
     .name = "fft.c2c",
     .types = COMPLEX,
     .alpha = true,
     .in_place = true,
     FIELDS(BH_FFT_FORWARD, BH_FFT_INVERSE),
     .operand_count = 2,
     .operands = {INPUT, OUTPUT(SAME)}},
    {.kind = BH_FFT_R2C,
     .name = "fft.r2c",
     .types = REAL,
     .alpha = true,
     .in_place = true,
     .real_alpha = true,
     FIELDS(BH_FFT_FORWARD, BH_FFT_FORWARD),
     .operand_count = 2,
     .operands = {INPUT, OUTPUT(COMPLEX)}},
    {.kind = BH_FFT_C2R,
     .name = "fft.c2r",
     .types = COMPLEX,
     .alpha = true,
     .in_place = true,
     .real_alpha = true,
     FIELDS(BH_FFT_INVERSE, BH_FFT_INVERSE),
     .operand_count = 2,
     .operands = {INPUT, OUTPUT(REAL)}},
};

/* ---- checks ---- */

/* What the input and the output have in a dimension, of which the real side has `real`. */
static uint64_t half(uint64_t real) {
    return real / 2 + 1;
}

static bool fits_extents(const bh_fft *request, char *text, size_t size, const char **fix) {
    uint32_t kind = request->request.kind, rank = request->input.rank;
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t in = request->input.extent[i], out = request->output.extent[i];
        bool last = i == rank - 1;
        if (!last || kind == BH_FFT_C2C) {
            if (in == out) continue;
            *fix = "make the extents equal";
            snprintf(text, size, "extent %u of input is %llu, that of output %llu", i, (ull)in,
                     (ull)out);
            return false;
        }
        bool forward = kind == BH_FFT_R2C;
        uint64_t real = forward ? in : out, complex = forward ? out : in;
        if (real == 0) {
            *fix = "make it at least 1";
            snprintf(text, size, "the last extent of %s is 0", forward ? "input" : "output");
            return false;
        }
        if (complex == half(real)) continue;
        *fix = "make the last extent of the complex array n / 2 + 1, where n is that of the real "
               "one";
        snprintf(text, size, "the last extent of %s is %llu; with %llu of %s it must be %llu",
                 forward ? "output" : "input", (ull)complex, (ull)real,
                 forward ? "input" : "output", (ull)half(real));
        return false;
    }
    return true;
}

bool bh__fft_fits(const bh__operation *operation, const void *given, char *text, size_t size,
                  const char **fix) {
    bh_fft request;
    (void)operation;
    memcpy(&request, given, sizeof request);
    uint32_t rank = request.input.rank;
    if (request.alpha.re == 0 && request.alpha.im == 0) {
        *fix = "use 1 for the plain transform";
        snprintf(text, size, "alpha is 0");
        return false;
    }
    /* The rank of each is refused with the other checks of operands. */
    if (rank == 0 || rank > BH_ARRAY_RANK) return true;
    if (rank != request.output.rank) {
        *fix = "make them equal";
        snprintf(text, size, "input has %u dimensions, output %u", rank, request.output.rank);
        return false;
    }
    if (request.axes == 0 || request.axes > BH__FFT_AXES || request.axes > rank) {
        *fix = "transform 1 to 3 dimensions, at most those that the arrays have";
        snprintf(text, size, "axes is %u, of arrays with %u dimensions", request.axes, rank);
        return false;
    }
    return fits_extents(&request, text, size, fix);
}

/* ---- the form ---- */

static void strides_of(const bh_array *array, int64_t *out) {
    bool given = false;
    int64_t packed = 1;
    for (uint32_t i = 0; i < array->rank; i++) given |= array->stride[i] != 0;
    for (uint32_t i = array->rank; i-- > 0;) {
        out[i] = given ? (int64_t)array->stride[i] : packed;
        packed *= (int64_t)array->extent[i];
    }
}

static int64_t batch_stride_of(const bh_array *array, uint64_t batch, bool input) {
    bh__region region;
    (void)bh__array_region(array, batch, input, &region);
    return (int64_t)region.batch_stride;
}

void bh__fft_form_make(const bh_fft *request, const bh_type *types, bh__fft_form *out) {
    int64_t in[BH_ARRAY_RANK], to[BH_ARRAY_RANK];
    const bh_array *real = request->request.kind == BH_FFT_C2R ? &request->output : &request->input;
    uint32_t before = real->rank - request->axes;
    uint64_t batch = request->batch ? request->batch : 1;
    memset(out, 0, sizeof *out);
    out->kind = request->request.kind;
    out->inverse = request->direction == BH_FFT_INVERSE;
    out->single = bh__real_type(types[0]) == BH_F32;
    out->in = request->input.buffer.id;
    out->out = request->output.buffer.id;
    out->alpha = request->alpha;
    out->axes = request->axes;
    strides_of(&request->input, in);
    strides_of(&request->output, to);
    for (uint32_t i = 0; i < real->rank; i++) {
        bh__fft_dimension made = {(int64_t)real->extent[i], in[i], to[i]};
        out->empty |= made.count == 0;
        if (i >= before)
            out->axis[i - before] = made;
        else if (made.count != 1)
            out->loop[out->loops++] = made;
    }
    if (batch == 1) return;
    /* There is room: a dimension at least is transformed. */
    out->loop[out->loops++] =
        (bh__fft_dimension){(int64_t)batch, batch_stride_of(&request->input, batch, true),
                            batch_stride_of(&request->output, batch, false)};
}

int64_t bh__fft_last_in(const bh__fft_form *self) {
    int64_t n = self->axis[self->axes - 1].count;
    return self->kind == BH_FFT_C2R ? n / 2 + 1 : n;
}

int64_t bh__fft_last_out(const bh__fft_form *self) {
    int64_t n = self->axis[self->axes - 1].count;
    return self->kind == BH_FFT_R2C ? n / 2 + 1 : n;
}
