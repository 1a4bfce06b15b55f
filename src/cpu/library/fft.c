/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms on the CPU device: in place, out of place, or from a copy of the input. */
#include "cpu/library/fft.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cpu/library/library.h"
#include "cpu/library/strided.h"

/* Transforms of fewer elements are done by one thread: to wake another takes as long. */
enum { THREADED_ELEMENTS = 1 << 16, TEMPORARY_ALIGNMENT = 64 };

/* ---- how they lie ---- */

static bool stride_fits(uint32_t kind, const bh__fft_dimension *at) {
    if (at->count == 1) return true;
    return kind == BH_FFT_C2C   ? at->in == at->out
           : kind == BH_FFT_R2C ? at->in == 2 * at->out
                                : at->out == 2 * at->in;
}

/* Whether a transform whose input and output begin at one place can be done there. */
static bool fits_in_place(const bh__fft_form *form) {
    const bh__fft_dimension *last = &form->axis[form->axes - 1];
    for (uint32_t i = 0; i < form->loops; i++) {
        if (!stride_fits(form->kind, &form->loop[i])) return false;
    }
    for (uint32_t i = 0; i + 1 < form->axes; i++) {
        if (!stride_fits(form->kind, &form->axis[i])) return false;
    }
    return form->kind == BH_FFT_C2C ? stride_fits(form->kind, last)
                                    : last->in == 1 && last->out == 1;
}

/* The dimensions of the input or of the output, of which the last axis has `last`. */
static uint32_t dimensions_of(const bh__fft_form *form, int64_t last, bh__fft_dimension *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < form->loops; i++) out[count++] = form->loop[i];
    for (uint32_t i = 0; i < form->axes; i++) out[count++] = form->axis[i];
    out[count - 1].count = last;
    return count;
}

static bh_type input_type(const bh__fft_form *form) {
    if (form->kind == BH_FFT_R2C) return form->single ? BH_F32 : BH_F64;
    return form->single ? BH_C64 : BH_C128;
}

static bh_type output_type(const bh__fft_form *form) {
    if (form->kind == BH_FFT_C2R) return form->single ? BH_F32 : BH_F64;
    return form->single ? BH_C64 : BH_C128;
}

/* FFTW does a c2r of several dimensions only by overwriting the input. */
static bool overwrites(const bh__fft_form *form) {
    return form->kind == BH_FFT_C2R && form->axes > 1;
}

/* ---- transforms from a copy ---- */

/* Copies the input to memory of its own, without gaps, and makes the form one of that. NULL: there
 * is no memory. */
static void *copy_input(bh__fft_form *form) {
    bh__fft_dimension places[BH__CPU_DIMENSIONS];
    uint32_t count = dimensions_of(form, bh__fft_last_in(form), places);
    uint32_t element = bh__element_bytes(input_type(form));
    uint64_t elements = 1, bytes;
    void *copy;
    for (uint32_t i = count; i-- > 0;) {
        /* What all places of a loop share is copied once, unless the first would overwrite it. */
        bool shared = i < form->loops && places[i].in == 0 && !overwrites(form);
        places[i].out = shared ? 0 : (int64_t)elements;
        if (shared) places[i].count = 1;
        if (!bh__mul_u64(elements, (uint64_t)places[i].count, &elements)) return NULL;
    }
    if (!bh__mul_u64(elements, element, &bytes) ||
        posix_memalign(&copy, TEMPORARY_ALIGNMENT, bytes) != 0)
        return NULL;
    bh__cpu_strided_copy(places, count, (const void *)(uintptr_t)form->in, copy, element);
    for (uint32_t i = 0; i < form->loops; i++) form->loop[i].in = places[i].out;
    for (uint32_t i = 0; i < form->axes; i++) form->axis[i].in = places[form->loops + i].out;
    form->in = (uintptr_t)copy;
    return copy;
}

/* ---- calls ---- */

static uint32_t threads_for(const bh__fft_form *form) {
    uint64_t elements = 1;
    for (uint32_t i = 0; i < form->axes; i++) elements *= (uint64_t)form->axis[i].count;
    for (uint32_t i = 0; i < form->loops; i++) elements *= (uint64_t)form->loop[i].count;
    return elements < THREADED_ELEMENTS ? 1 : bh__cpu_fftw_threads();
}

/* False: FFTW has no plan for it. */
static bool transform(const bh__fft_form *form, bool in_place, bool destroys) {
    bh__cpu_fft_key key;
    memset(&key, 0, sizeof key);
    memcpy(&key.form, form, sizeof *form);
    key.form.in = key.form.out = 0;
    memset(&key.form.alpha, 0, sizeof key.form.alpha);
    key.in_alignment = bh__cpu_fftw_alignment(form->single, form->in);
    key.out_alignment = bh__cpu_fftw_alignment(form->single, form->out);
    key.threads = threads_for(form);
    key.in_place = in_place;
    key.destroys = destroys;
    bh__cpu_fft_plan *plan = bh__cpu_fft_plan_take(&key, form->in, form->out);
    if (!plan) return false;
    bh__cpu_fft_plan_execute(plan, form->in, form->out);
    bh__cpu_fft_plan_release(plan);
    return true;
}

static bh_status transform_copy(bh__fft_form *form, const bh__library_call *call, bh_error *error) {
    void *copy = copy_input(form);
    if (!copy)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "%s: no memory for a copy of the input", call->operation->name);
    bool done = transform(form, false, overwrites(form));
    free(copy);
    if (done) return BH_OK;
    return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                    "%s: FFTW made no plan for %lld elements in the last of %u dimensions",
                    call->operation->name, (long long)form->axis[form->axes - 1].count, form->axes);
}

static void scale(const bh__fft_form *form) {
    bh__fft_dimension places[BH__CPU_DIMENSIONS];
    if (form->alpha.re == 1 && form->alpha.im == 0) return;
    uint32_t count = dimensions_of(form, bh__fft_last_out(form), places);
    bh__cpu_strided_scale(places, count, output_type(form), (void *)(uintptr_t)form->out,
                          form->alpha);
}

bh_status bh__cpu_fft_run(const bh__library_call *call, bh_error *error) {
    bh__fft_form form;
    bh_fft request;
    memcpy(&request, call->request.bytes, sizeof request);
    bh__fft_form_make(&request, call->types, &form);
    if (form.empty) return BH_OK;
    bool same_place = form.in == form.out, in_place = same_place && fits_in_place(&form);
    bool directly = same_place ? in_place : !overwrites(&form);
    bh_status status = BH_OK;
    if (!directly || !transform(&form, in_place, in_place))
        status = transform_copy(&form, call, error);
    if (status == BH_OK) scale(&form);
    return status;
}
