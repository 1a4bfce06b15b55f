/* SPDX-License-Identifier: Apache-2.0 */
/* FFTW: its functions, found at run time, and its plans. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/processors.h"
#include "cpu/library/fft.h"
#include "cpu/library/library.h"

enum { FORWARD = -1, BACKWARD = 1 };
/* Of fftw3.h. ESTIMATE, because plans made by measuring differ from run to run. */
#define DESTROY_INPUT  (1u << 0)
#define PRESERVE_INPUT (1u << 4)
#define ESTIMATE       (1u << 6)

typedef bh__fft_dimension dimension; /* laid out as an fftw_iodim64 */
typedef void *plan_c2c(int, const dimension *, int, const dimension *, void *, void *, int,
                       unsigned);
typedef void *plan_real(int, const dimension *, int, const dimension *, void *, void *, unsigned);
typedef void execute(const void *, void *, void *);
typedef int alignment_of(void *);

/* The functions of one precision. */
typedef struct functions {
    plan_c2c *plan_c2c;
    plan_real *plan_r2c, *plan_c2r;
    execute *execute_c2c, *execute_r2c, *execute_c2r;
    alignment_of *alignment_of;
    void (*end)(void *);
    void (*forget)(void);
    void (*use_threads)(int); /* NULL: there are no threads */
} functions;

static struct {
    functions of[2]; /* of BH_F64, of BH_F32 */
    char lack[256];
    uint32_t threads;
} fftw;

static const struct {
    const char *name; /* behind fftw_ or fftwf_ */
    size_t at;
} names[] = {
    {"plan_guru64_dft", offsetof(functions, plan_c2c)},
    {"plan_guru64_dft_r2c", offsetof(functions, plan_r2c)},
    {"plan_guru64_dft_c2r", offsetof(functions, plan_c2r)},
    {"execute_dft", offsetof(functions, execute_c2c)},
    {"execute_dft_r2c", offsetof(functions, execute_r2c)},
    {"execute_dft_c2r", offsetof(functions, execute_c2r)},
    {"alignment_of", offsetof(functions, alignment_of)},
    {"destroy_plan", offsetof(functions, end)},
    {"forget_wisdom", offsetof(functions, forget)},
};

static void *find_symbol(void *handle, bool single, const char *name) {
    char whole[64];
    snprintf(whole, sizeof whole, "fftw%s_%s", single ? "f" : "", name);
    return dlsym(handle, whole);
}

static bool find_functions(bool single) {
    static const char *const files[2][3] = {{"libfftw3.so.3", "libfftw3.so", NULL},
                                            {"libfftw3f.so.3", "libfftw3f.so", NULL}};
    void *handle = bh__cpu_library_open(files[single], fftw.lack);
    if (!handle) return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *found = find_symbol(handle, single, names[i].name);
        if (!found) {
            snprintf(fftw.lack, sizeof fftw.lack, "%s has no function %s", files[single][0],
                     names[i].name);
            return false;
        }
        memcpy((uint8_t *)&fftw.of[single] + names[i].at, &found, sizeof found);
    }
    return true;
}

/* Threads are in a library of their own, which may be missing. It starts none yet. */
static bool find_threads(bool single) {
    static const char *const files[2][2] = {{"libfftw3_threads.so.3", NULL},
                                            {"libfftw3f_threads.so.3", NULL}};
    char reason[256];
    void *handle = bh__cpu_library_open(files[single], reason);
    void *init = handle ? find_symbol(handle, single, "init_threads") : NULL;
    void *use = handle ? find_symbol(handle, single, "plan_with_nthreads") : NULL;
    int (*begin)(void);
    if (!init || !use) return false;
    memcpy(&begin, &init, sizeof begin);
    if (!begin()) return false;
    memcpy(&fftw.of[single].use_threads, &use, sizeof use);
    return true;
}

void bh__cpu_fft_find(void) {
    if (!find_functions(false) || !find_functions(true)) return;
    bool threads = find_threads(false) && find_threads(true);
    fftw.threads = threads ? bh__processors() : 1;
}

const char *bh__cpu_fft_lack(const char **fix) {
    *fix = "install FFTW: apt install libfftw3-double3 libfftw3-single3, or dnf install fftw-libs";
    return fftw.lack[0] ? fftw.lack : NULL;
}

/* Which there are was found out before the process was confined. */
void bh__cpu_fft_begin(void) {
}

uint32_t bh__cpu_fftw_threads(void) {
    return fftw.threads;
}

int32_t bh__cpu_fftw_alignment(bool single, uint64_t address) {
    return fftw.of[single].alignment_of((void *)(uintptr_t)address);
}

void *bh__cpu_fftw_plan(const bh__cpu_fft_key *key, uint64_t in_at, uint64_t out_at) {
    const bh__fft_form *form = &key->form;
    const functions *f = &fftw.of[form->single];
    unsigned flags = ESTIMATE | (key->destroys ? DESTROY_INPUT : PRESERVE_INPUT);
    void *in = (void *)(uintptr_t)in_at, *out = (void *)(uintptr_t)out_at, *made;
    int axes = (int)form->axes, loops = (int)form->loops;
    if (f->use_threads) f->use_threads((int)key->threads);
    if (form->kind == BH_FFT_C2C)
        made = f->plan_c2c(axes, form->axis, loops, form->loop, in, out,
                           form->inverse ? BACKWARD : FORWARD, flags);
    else
        made = (form->kind == BH_FFT_R2C ? f->plan_r2c : f->plan_c2r)(axes, form->axis, loops,
                                                                      form->loop, in, out, flags);
    /* What FFTW remembers of plans would grow with each, and could choose the next one. */
    f->forget();
    return made;
}

void bh__cpu_fftw_end(bool single, void *plan) {
    fftw.of[single].end(plan);
}

void bh__cpu_fftw_execute(const bh__cpu_fft_key *key, void *plan, uint64_t in_at, uint64_t out_at) {
    const functions *f = &fftw.of[key->form.single];
    execute *run = key->form.kind == BH_FFT_C2C   ? f->execute_c2c
                   : key->form.kind == BH_FFT_R2C ? f->execute_r2c
                                                  : f->execute_c2r;
    run(plan, (void *)(uintptr_t)in_at, (void *)(uintptr_t)out_at);
}
