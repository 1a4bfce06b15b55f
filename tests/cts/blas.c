/* SPDX-License-Identifier: Apache-2.0 */
/* BLAS against formulas: every operation, in every type, with operands that lie in every way. */
#include "../support/blas.h"

#include <math.h>
#include <string.h>

typedef unsigned long long ull;

/* How the operands of an operation fit together: letters for rows and columns of matrices, for
 * counts of vectors; 's' is m, with BH_BLAS_RIGHT n. Upper-case: a triangle of it counts. */
static const struct kind {
    uint32_t kind;
    const char *name, *a, *b, *c, *x, *y;
    uint32_t flags; /* that it takes */
    bool reals, complexes, alpha, beta, real_scalars;
    bool conjugable; /* some of its matrices may be conjugated */
} kinds[] = {
    {BH_BLAS_AXPY, "axpy", "", "", "", "n", "n", 0, 1, 1, 1, 0, 0, 0},
    {BH_BLAS_SCAL, "scal", "", "", "", "n", "", 0, 1, 1, 1, 0, 0, 0},
    {BH_BLAS_COPY, "copy", "", "", "", "n", "n", 0, 1, 1, 0, 0, 0, 0},
    {BH_BLAS_SWAP, "swap", "", "", "", "n", "n", 0, 1, 1, 0, 0, 0, 0},
    {BH_BLAS_DOT, "dot", "", "", "", "n", "n", BH_BLAS_CONJUGATE, 1, 1, 0, 0, 0, 0},
    {BH_BLAS_NRM2, "nrm2", "", "", "", "n", "", 0, 1, 1, 0, 0, 0, 0},
    {BH_BLAS_ASUM, "asum", "", "", "", "n", "", 0, 1, 1, 0, 0, 0, 0},
    {BH_BLAS_IAMAX, "iamax", "", "", "", "n", "", 0, 1, 1, 0, 0, 0, 0},
    {BH_BLAS_ROT, "rot", "", "", "", "n", "n", 0, 1, 1, 1, 1, 1, 0},
    {BH_BLAS_GEMV, "gemv", "mn", "", "", "n", "m", 0, 1, 1, 1, 1, 0, 1},
    {BH_BLAS_GER, "ger", "mn", "", "", "m", "n", BH_BLAS_CONJUGATE, 1, 1, 1, 0, 0, 0},
    {BH_BLAS_SYMV, "symv", "NN", "", "", "n", "n", BH_BLAS_UPPER, 1, 0, 1, 1, 0, 0},
    {BH_BLAS_HEMV, "hemv", "NN", "", "", "n", "n", BH_BLAS_UPPER, 0, 1, 1, 1, 0, 0},
    {BH_BLAS_TRMV, "trmv", "NN", "", "", "n", "", BH_BLAS_UPPER | BH_BLAS_UNIT, 1, 1, 0, 0, 0, 1},
    {BH_BLAS_TRSV, "trsv", "NN", "", "", "n", "", BH_BLAS_UPPER | BH_BLAS_UNIT, 1, 1, 0, 0, 0, 1},
    {BH_BLAS_SYR, "syr", "NN", "", "", "n", "", BH_BLAS_UPPER, 1, 0, 1, 0, 0, 0},
    {BH_BLAS_HER, "her", "NN", "", "", "n", "", BH_BLAS_UPPER, 0, 1, 1, 0, 1, 0},
    {BH_BLAS_SYR2, "syr2", "NN", "", "", "n", "n", BH_BLAS_UPPER, 1, 0, 1, 0, 0, 0},
    {BH_BLAS_HER2, "her2", "NN", "", "", "n", "n", BH_BLAS_UPPER, 0, 1, 1, 0, 0, 0},
    {BH_BLAS_GEMM, "gemm", "mk", "kn", "mn", "", "", 0, 1, 1, 1, 1, 0, 1},
    {BH_BLAS_SYMM, "symm", "SS", "mn", "mn", "", "", BH_BLAS_UPPER | BH_BLAS_RIGHT, 1, 1, 1, 1, 0,
     0},
    {BH_BLAS_HEMM, "hemm", "SS", "mn", "mn", "", "", BH_BLAS_UPPER | BH_BLAS_RIGHT, 0, 1, 1, 1, 0,
     0},
    {BH_BLAS_SYRK, "syrk", "nk", "", "NN", "", "", BH_BLAS_UPPER, 1, 1, 1, 1, 0, 0},
    {BH_BLAS_HERK, "herk", "nk", "", "NN", "", "", BH_BLAS_UPPER, 0, 1, 1, 1, 1, 1},
    {BH_BLAS_SYR2K, "syr2k", "nk", "nk", "NN", "", "", BH_BLAS_UPPER, 1, 1, 1, 1, 0, 0},
    {BH_BLAS_HER2K, "her2k", "nk", "nk", "NN", "", "", BH_BLAS_UPPER, 0, 1, 1, 1, 0, 1},
    {BH_BLAS_TRMM, "trmm", "SS", "mn", "", "", "", BH_BLAS_UPPER | BH_BLAS_RIGHT | BH_BLAS_UNIT, 1,
     1, 1, 0, 0, 1},
    {BH_BLAS_TRSM, "trsm", "SS", "mn", "", "", "", BH_BLAS_UPPER | BH_BLAS_RIGHT | BH_BLAS_UNIT, 1,
     1, 1, 0, 0, 1},
};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

/* A call, its operands' memory, and how they lie. */
typedef struct trial {
    bh_device device;
    rng r;
    const struct kind *kind;
    bh_type type;
    uint64_t m, n, k;
    bool plain; /* row by row, nothing conjugated: such a call is never refused */
    model_call call;
    numbers memory[6];
    uint32_t used;
} trial;

static uint64_t size_of(const trial *t, char letter) {
    switch (letter) {
    case 'm':
        return t->m;
    case 'k':
        return t->k;
    case 's':
    case 'S':
        return t->call.request.flags & BH_BLAS_RIGHT ? t->n : t->m;
    default:
        return t->n;
    }
}

static numbers *operand_memory(trial *t, bh_type type, uint64_t count) {
    numbers *made = &t->memory[t->used++];
    *made = numbers_make(t->device, type, count, &t->r);
    return made;
}

/* A gap, mostly none. */
static uint64_t gap(trial *t) {
    return rng_below(&t->r, 3) ? 0 : rng_below(&t->r, 4);
}

static model_matrix matrix_for(trial *t, const char *letters, bool input) {
    model_matrix made;
    memset(&made, 0, sizeof made);
    if (!*letters) return made;
    bool columns = !t->plain && rng_below(&t->r, 2);
    made.at.rows = size_of(t, letters[0]);
    made.at.columns = size_of(t, letters[1]);
    uint64_t inner = columns ? made.at.rows : made.at.columns;
    uint64_t outer = columns ? made.at.columns : made.at.rows;
    uint64_t stride = inner + gap(t), extent = outer ? (outer - 1) * stride + inner : 0;
    uint64_t batch = t->call.request.batch ? t->call.request.batch : 1, next = extent + gap(t);
    made.at.stride = stride == inner && rng_below(&t->r, 2) ? 0 : stride;
    made.at.batch_stride = next == extent && rng_below(&t->r, 2) ? 0 : next;
    if (input && !rng_below(&t->r, 4)) made.at.batch_stride = BH_BATCH_SHARED;
    made.at.offset = gap(t);
    made.at.flags = columns ? BH_MATRIX_COLUMN_MAJOR : 0;
    if (input && !t->plain && t->kind->conjugable && !rng_below(&t->r, 3))
        made.at.flags |= BH_MATRIX_CONJUGATE;
    made.in = operand_memory(t, t->type, made.at.offset + batch * next + extent + gap(t) + 1);
    made.at.buffer = made.in->buffer;
    return made;
}

static model_vector vector_for(trial *t, const char *letter, bh_type type, bool result) {
    model_vector made;
    memset(&made, 0, sizeof made);
    if (!*letter) return made;
    made.at.count = result ? 1 : size_of(t, *letter);
    int64_t stride = (int64_t)gap(t) + 1;
    if (!result && !t->plain && t->kind->kind < BH_BLAS_GEMV && !rng_below(&t->r, 4))
        stride = -stride;
    uint64_t size = (uint64_t)(stride < 0 ? -stride : stride);
    uint64_t extent = made.at.count ? (made.at.count - 1) * size + 1 : 0, next = extent + gap(t);
    uint64_t batch = t->call.request.batch ? t->call.request.batch : 1;
    if (t->kind->kind == BH_BLAS_IAMAX && stride < 0) stride = -stride;
    made.at.stride = stride == 1 && rng_below(&t->r, 2) ? 0 : stride;
    made.at.batch_stride = next == extent ? 0 : next;
    made.at.offset = gap(t) + (stride < 0 && made.at.count ? (made.at.count - 1) * size : 0);
    made.in = operand_memory(t, type, gap(t) + made.at.offset + batch * next + extent + 1);
    made.at.buffer = made.in->buffer;
    return made;
}

/* Diagonals that can be divided by, and that Hermitian matrices may have. */
static void tame_diagonal(trial *t) {
    bool solves = t->kind->kind == BH_BLAS_TRSV || t->kind->kind == BH_BLAS_TRSM;
    bool hermitian = t->kind->kind == BH_BLAS_HER || t->kind->kind == BH_BLAS_HER2 ||
                     t->kind->kind == BH_BLAS_HERK || t->kind->kind == BH_BLAS_HER2K;
    numbers *in = solves || t->call.c.in == NULL ? t->call.a.in : t->call.c.in;
    if (!solves && !hermitian) return;
    for (uint64_t i = 0; i < in->count; i++) {
        /* Every element may lie on the diagonal of some member. */
        if (solves)
            in->values[i] = creal(in->values[i]) < 0 ? -1 : 2;
        else
            in->values[i] = creal(in->values[i]);
    }
    numbers_write(in);
}

static bh_scalar scalar_for(trial *t, bool used) {
    bh_scalar made = {0, 0};
    if (used) made.re = (double)rng_below(&t->r, 4) - 1;
    if (used && type_is_complex(t->type) && !t->kind->real_scalars && rng_below(&t->r, 2))
        made.im = (double)rng_below(&t->r, 3) - 1;
    return made;
}

static void trial_make(trial *t, const struct kind *kind, bh_type type, bool plain) {
    bh_blas *q = &t->call.request;
    memset(&t->call, 0, sizeof t->call);
    t->kind = kind;
    t->type = type;
    t->plain = plain;
    t->used = 0;
    bool solves = kind->kind == BH_BLAS_TRSV || kind->kind == BH_BLAS_TRSM;
    uint32_t most = solves ? 6 : 12;
    t->m = rng_below(&t->r, most);
    t->n = rng_below(&t->r, most);
    t->k = rng_below(&t->r, most);
    *q = bh_blas_init(kind->kind, 0, 0);
    q->batch = rng_below(&t->r, 4);
    q->flags = rng_next(&t->r) & kind->flags;
    q->alpha = scalar_for(t, kind->alpha);
    q->beta = scalar_for(t, kind->beta);
    if (kind->kind == BH_BLAS_HER2K || kind->kind == BH_BLAS_ROT) q->beta.im = 0;
    bool update = kind->kind >= BH_BLAS_GER && kind->kind <= BH_BLAS_HER2 &&
                  kind->kind != BH_BLAS_SYMV && kind->kind != BH_BLAS_HEMV &&
                  kind->kind != BH_BLAS_TRMV && kind->kind != BH_BLAS_TRSV;
    bool in_place = kind->kind == BH_BLAS_TRMM || kind->kind == BH_BLAS_TRSM;
    t->call.a = matrix_for(t, kind->a, !update);
    t->call.b = matrix_for(t, kind->b, !in_place);
    t->call.c = matrix_for(t, kind->c, false);
    t->call.x = vector_for(t, kind->x, type, false);
    t->call.y = vector_for(t, kind->y, type, false);
    bool single = type == BH_F32 || type == BH_C64;
    bh_type real = single ? BH_F32 : BH_F64;
    if (kind->kind == BH_BLAS_DOT) t->call.result = vector_for(t, "1", type, true);
    if (kind->kind == BH_BLAS_NRM2 || kind->kind == BH_BLAS_ASUM)
        t->call.result = vector_for(t, "1", real, true);
    if (kind->kind == BH_BLAS_IAMAX) t->call.result = vector_for(t, "1", BH_I64, true);
    tame_diagonal(t);
    q->a = t->call.a.at;
    q->b = t->call.b.at;
    q->c = t->call.c.at;
    q->x = t->call.x.at;
    q->y = t->call.y.at;
    q->result = t->call.result.at;
}

static void describe(const trial *t, char *out, size_t size) {
    const bh_blas *q = &t->call.request;
    snprintf(out, size,
             "%s %s, m %llu, n %llu, k %llu, batch %llu, flags 0x%x, a 0x%x, b 0x%x, c 0x%x",
             t->kind->name, bh_type_name(t->type), (ull)t->m, (ull)t->n, (ull)t->k, (ull)q->batch,
             q->flags, q->a.flags, q->b.flags, q->c.flags);
}

/* Returns whether it could be done. */
static bool trial_run(trial *t) {
    char text[256];
    const bh_submit_options wait = {.size = sizeof wait, .flags = BH_SUBMIT_WAIT};
    describe(t, text, sizeof text);
    bh_status status = bh_submit(&t->call.request.request, &wait, NULL);
    bool done = status == BH_OK, refused = status == BH_E_UNSUPPORTED && !t->plain;
    if (!done && !refused) FAIL("%s: %s", text, bh_last_message());
    if (done) model_run(&t->call);
    for (uint32_t i = 0; i < t->used; i++)
        numbers_check(&t->memory[i], t->type == BH_F32 || t->type == BH_C64 ? 1e5 : 1e12, text);
    for (uint32_t i = 0; i < t->used; i++) numbers_free(&t->memory[i]);
    return done;
}

static void try_kinds(uint32_t first, uint32_t end, int rounds) {
    static const bh_type types[] = {BH_F32, BH_F64, BH_C64, BH_C128};
    trial t = {.device = open_blas_device(), .r = rng_seeded(first + 1)};
    for (uint32_t i = 0; i < KIND_COUNT; i++) {
        if (kinds[i].kind < first || kinds[i].kind >= end) continue;
        uint32_t done = 0, tried = 0;
        for (uint32_t k = 0; k < 4; k++) {
            if (!(type_is_complex(types[k]) ? kinds[i].complexes : kinds[i].reals)) continue;
            for (int round = 0; round < rounds && test_failures() < 5; round++) {
                trial_make(&t, &kinds[i], types[k], round % 3 == 0);
                done += trial_run(&t);
                tried++;
            }
        }
        /* What BLAS has no way to do is a part of the rest. */
        CHECK_GE(done * 5, tried * 2);
    }
    CHECK_OK(bh_device_close(t.device));
}

TEST_TIMEOUT(vectors_as_their_formulas_say, 60) {
    try_kinds(BH_BLAS_AXPY, BH_BLAS_GEMV, 24);
}

TEST_TIMEOUT(matrices_and_vectors_as_their_formulas_say, 60) {
    try_kinds(BH_BLAS_GEMV, BH_BLAS_GEMM, 30);
}

TEST_TIMEOUT(matrices_as_their_formulas_say, 60) {
    try_kinds(BH_BLAS_GEMM, BH_BLAS_TRSM + 1, 30);
}

TEST(products_of_narrow_elements_are_summed_in_wider_ones) {
    static const struct {
        bh_type of, sum;
    } pairs[] = {
        {BH_F16, BH_F16}, {BH_F16, BH_F32}, {BH_BF16, BH_BF16}, {BH_BF16, BH_F32}, {BH_I8, BH_I32}};
    bh_device device = open_blas_device();
    rng r = rng_seeded(5);
    const bh_submit_options wait = {.size = sizeof wait, .flags = BH_SUBMIT_WAIT};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        numbers a = numbers_make(device, pairs[i].of, 16 * 20, &r);
        numbers b = numbers_make(device, pairs[i].of, 20 * 24, &r);
        numbers c = numbers_make(device, pairs[i].sum, 16 * 24, &r);
        model_call call = {.request = bh_blas_gemm(1, bh_matrix_of(a.buffer, 16, 20),
                                                   bh_matrix_of(b.buffer, 20, 24), 1,
                                                   bh_matrix_of(c.buffer, 16, 24)),
                           .a = {bh_matrix_of(a.buffer, 16, 20), &a},
                           .b = {bh_matrix_of(b.buffer, 20, 24), &b},
                           .c = {bh_matrix_of(c.buffer, 16, 24), &c}};
        REQUIRE_OK(bh_submit(&call.request.request, &wait, NULL));
        model_run(&call);
        for (uint64_t k = 0; k < c.count; k++)
            c.values[k] = number_rounded(pairs[i].sum, c.values[k]);
        numbers_check(&c, 1e9, bh_type_name(pairs[i].of));
        numbers_free(&a);
        numbers_free(&b);
        numbers_free(&c);
    }
    CHECK_OK(bh_device_close(device));
}

TEST(what_beta_is_zero_for_is_not_read) {
    bh_device device = open_blas_device();
    rng r = rng_seeded(6);
    numbers a = numbers_make(device, BH_F32, 9, &r), c = numbers_make(device, BH_F32, 9, &r);
    bh_matrix am = bh_matrix_of(a.buffer, 3, 3), cm = bh_matrix_of(c.buffer, 3, 3);
    for (int i = 0; i < 9; i++) c.values[i] = NAN;
    numbers_write(&c);
    model_call call = {
        .request = bh_blas_gemm(1, am, am, 0, cm), .a = {am, &a}, .b = {am, &a}, .c = {cm, &c}};
    const bh_submit_options wait = {.size = sizeof wait, .flags = BH_SUBMIT_WAIT};
    REQUIRE_OK(bh_submit(&call.request.request, &wait, NULL));
    model_run(&call);
    numbers_check(&c, 1e5, "gemm over NaN");
    CHECK_OK(bh_device_close(device));
    free(a.values);
    free(c.values);
}
