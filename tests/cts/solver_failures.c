/* SPDX-License-Identifier: Apache-2.0 */
/* Dense solvers where things go wrong: matrices without a solution, elements that are no numbers,
 * requests that make no sense, workers that are lost, many threads. */
#include <math.h>
#include <signal.h>
#include <string.h>

#include "../support/solver.h"

static const bh_submit_options waits = {.size = sizeof waits, .flags = BH_SUBMIT_WAIT};
static const bh_buffer no_buffer = {0};

static bh_buffer filled(bh_device device, bh_type type, uint64_t count, const void *from) {
    bh_buffer made;
    REQUIRE_OK(bh_buffer_alloc(device, type, count, NULL, &made));
    REQUIRE_OK(bh_buffer_write(made, 0, from, count * bh_type_size(type)));
    return made;
}

static bh_buffer empty(bh_device device, bh_type type, uint64_t count) {
    static const uint8_t zero[8];
    bh_buffer made;
    REQUIRE_OK(bh_buffer_alloc(device, type, count, NULL, &made));
    REQUIRE_OK(bh_buffer_fill(made, 0, BH_WHOLE, zero, 4));
    return made;
}

static double at(bh_buffer buffer, uint64_t index) {
    double value;
    REQUIRE_OK(bh_buffer_read(buffer, index * sizeof value, &value, sizeof value));
    return value;
}

static int info_at(bh_buffer buffer, uint64_t index) {
    int32_t value;
    REQUIRE_OK(bh_buffer_read(buffer, index * sizeof value, &value, sizeof value));
    return value;
}

static void run(const bh_solver *call) {
    REQUIRE_OK(bh_submit(&call->request, &waits, NULL));
}

/* Three 2 x 2 matrices; the middle one is singular and has no Cholesky factor. */
static const double three[] = {4, 2, 2, 5, 1, 2, 2, 4, 9, 0, 0, 1};

/* ---- info ---- */

TEST(info_tells_which_members_failed_and_the_others_are_done) {
    bh_device device = open_library_device(BH_LIBRARY_SOLVER);
    bh_buffer a = filled(device, BH_F64, 12, three), info = empty(device, BH_I32, 3);
    bh_buffer b = filled(device, BH_F64, 6, (double[]){8, 9, 5, 6, 9, 7});
    bh_solver call =
        bh_solver_gesv(0, bh_matrix_of(a, 2, 2), bh_no_vector(), bh_matrix_of(b, 2, 1), info);
    call.batch = 3;
    run(&call);
    CHECK_EQ(info_at(info, 0), 0);
    CHECK_EQ(info_at(info, 1), 2);
    CHECK_EQ(info_at(info, 2), 0);
    CHECK_NEAR(at(b, 0), 22.0 / 16, 1e-14);
    CHECK_NEAR(at(b, 2), 5, 0);
    CHECK_NEAR(at(b, 3), 6, 0);
    CHECK_NEAR(at(b, 5), 7, 1e-14);

    bh_buffer c = filled(device, BH_F64, 12, three);
    double minus = -1;
    REQUIRE_OK(bh_buffer_write(c, 4 * sizeof minus, &minus, sizeof minus));
    call = bh_solver_potrf(0, bh_matrix_of(c, 2, 2), info);
    call.batch = 3;
    run(&call);
    CHECK_EQ(info_at(info, 0), 0);
    CHECK_EQ(info_at(info, 1), 1);
    CHECK_EQ(info_at(info, 2), 0);
    CHECK_NEAR(at(c, 8), 3, 0);

    /* What a singular matrix is factored to cannot be inverted, and stays. */
    bh_buffer d = filled(device, BH_F64, 4, (double[]){1, 2, 0, 0});
    bh_buffer pivots = filled(device, BH_I32, 2, (int32_t[]){0, 1});
    call = bh_solver_getri(0, bh_matrix_of(d, 2, 2), bh_vector_of(pivots, 2), info);
    run(&call);
    CHECK_EQ(info_at(info, 0), 2);
    CHECK_NEAR(at(d, 1), 2, 0);
    call = bh_solver_potri(0, bh_matrix_of(d, 2, 2), info);
    run(&call);
    CHECK_EQ(info_at(info, 0), 2);
    CHECK_NEAR(at(d, 0), 1, 0);

    /* A matrix of rank 1 has no unique solution. */
    bh_buffer e = filled(device, BH_F64, 6, (double[]){0, 1, 0, 2, 0, 3});
    bh_buffer x = filled(device, BH_F64, 2, (double[]){7, 7});
    call = bh_solver_gels(0, bh_matrix_of(e, 3, 2), bh_matrix_of(b, 3, 1), bh_matrix_of(x, 2, 1),
                          info);
    run(&call);
    CHECK_EQ(info_at(info, 0), 1);
    CHECK(isnan(at(x, 0)) && isnan(at(x, 1)));
    CHECK_OK(bh_device_close(device));
}

/* ---- strict ---- */

TEST(a_strict_call_fails_with_the_member_and_its_outputs_are_suspect) {
    bh_device device = open_library_device(BH_LIBRARY_SOLVER);
    if (has_queues(device)) SKIP("a failure in a queue has another meaning");
    bh_buffer a = filled(device, BH_F64, 12, three), info = empty(device, BH_I32, 3);
    bh_buffer other = filled(device, BH_F64, 4, three);
    bh_solver call = bh_solver_potrf(BH_SOLVER_STRICT, bh_matrix_of(a, 2, 2), info);
    call.batch = 3;
    double minus = -1;
    REQUIRE_OK(bh_buffer_write(a, 4 * sizeof minus, &minus, sizeof minus));
    CHECK_REFUSED(bh_submit(&call.request, &waits, NULL), BH_E_INVALID);
    CHECK_STR_CONTAINS(bh_last_message(), "solver.potrf: the leading minor of order 1 is not "
                                          "positive definite (member 1)");
    CHECK(is_suspect(a));
    CHECK(is_suspect(info));
    CHECK(!is_suspect(other));
    int32_t word;
    CHECK_REFUSED(bh_buffer_read(info, 0, &word, sizeof word), BH_E_STALE);
    CHECK_OK(bh_buffer_accept(info));
    CHECK_EQ(info_at(info, 0), 0);
    CHECK_EQ(info_at(info, 1), 1);
    CHECK_EQ(info_at(info, 2), 0);
    CHECK_OK(bh_buffer_accept(a));
    CHECK_NEAR(at(a, 8), 3, 0);

    /* The worker goes on, and info may be left out. */
    CHECK_EQ(health_of(device).losses, 0);
    call = bh_solver_potrf(BH_SOLVER_STRICT, bh_matrix_of(other, 2, 2), no_buffer);
    run(&call);
    CHECK_NEAR(at(other, 0), 2, 0);
    CHECK_OK(bh_device_close(device));
}

TEST(what_depends_on_a_strict_call_that_fails_does_not_run) {
    bh_device device = open_library_device(BH_LIBRARY_SOLVER);
    if (has_queues(device)) SKIP("a failure in a queue has another meaning");
    bh_buffer a = empty(device, BH_F64, 4), info = empty(device, BH_I32, 1);
    bh_buffer b = filled(device, BH_F64, 2, (double[]){1, 2});
    bh_buffer untouched = filled(device, BH_F64, 4, three);
    bh_buffer pivots = empty(device, BH_I32, 2);
    bh_ticket factored, solved, other;
    bh_solver factor =
        bh_solver_getrf(BH_SOLVER_STRICT, bh_matrix_of(a, 2, 2), bh_vector_of(pivots, 2), info);
    bh_solver solve =
        bh_solver_getrs(0, bh_matrix_of(a, 2, 2), bh_vector_of(pivots, 2), bh_matrix_of(b, 2, 1));
    bh_solver apart = bh_solver_potrf(0, bh_matrix_of(untouched, 2, 2), info);
    /* Behind a long call, so that all are queued when the first one fails. */
    bh_buffer slow = empty(device, BH_F64, 300 * 300), w = empty(device, BH_F64, 300);
    bh_solver first = bh_solver_syevd(BH_SOLVER_STRICT, bh_matrix_of(slow, 300, 300),
                                      bh_vector_of(w, 300), bh_no_matrix(), no_buffer);
    REQUIRE_OK(bh_submit(&first.request, NULL, &other));
    REQUIRE_OK(bh_submit(&factor.request, NULL, &factored));
    bh_status status = bh_submit(&solve.request, NULL, &solved);
    if (status == BH_OK) status = bh_wait(solved, BH_FOREVER);
    CHECK_STATUS(status, BH_E_STALE);
    CHECK_STATUS(bh_wait(factored, BH_FOREVER), BH_E_INVALID);
    CHECK_STR_CONTAINS(bh_last_message(), "singular: element 1 of U's diagonal is zero");
    CHECK_OK(bh_submit(&apart.request, &waits, NULL));
    CHECK_NEAR(at(untouched, 0), 2, 0);
    CHECK_OK(bh_device_close(device));
}

TEST(a_strict_call_in_a_sequence_names_its_step) {
    bh_device device = open_library_device(BH_LIBRARY_SOLVER);
    if (has_queues(device)) SKIP("a failure in a queue has another meaning");
    bh_buffer a = filled(device, BH_F64, 4, three), from = filled(device, BH_F64, 4, three);
    bh_sequence sequence;
    bh_transfer copy = bh_transfer_copy(a, 0, from, 0, 4 * sizeof(double));
    bh_solver factor = bh_solver_potrf(BH_SOLVER_STRICT, bh_matrix_of(a, 2, 2), no_buffer);
    bh_solver invert = bh_solver_potri(BH_SOLVER_STRICT, bh_matrix_of(a, 2, 2), no_buffer);
    REQUIRE_OK(bh_library_load(device, BH_LIBRARY_SOLVER));
    sequence = sequence_open(device, "inverse");
    REQUIRE_OK(bh_sequence_add(sequence, &copy.request, NULL));
    REQUIRE_OK(bh_sequence_add(sequence, &factor.request, NULL));
    REQUIRE_OK(bh_sequence_add(sequence, &invert.request, NULL));
    REQUIRE_OK(bh_sequence_finish(sequence));
    CHECK_OK(bh_sequence_submit(sequence, &waits, NULL));
    CHECK_NEAR(at(a, 0), 5.0 / 16, 1e-15);
    REQUIRE_OK(bh_buffer_write(from, 0, three + 4, 4 * sizeof(double)));
    CHECK_REFUSED(bh_sequence_submit(sequence, &waits, NULL), BH_E_INVALID);
    CHECK_STR_CONTAINS(bh_last_message(), "potrf");
    CHECK(is_suspect(a));
    CHECK_EQ(health_of(device).losses, 0);
    CHECK_OK(bh_device_close(device));
}

/* ---- elements that are no numbers ---- */

/* Every operation, of 8 x 8 matrices in one buffer each. */
enum { N = 8, OPERATIONS = 15, BIG = N * N };

typedef struct buffers {
    bh_buffer a, b, u, v, complex_u, complex_v, tau, values, complex_values, pivots, info;
} buffers;

static bh_solver operation(const buffers *on, int which) {
    bh_matrix a = bh_matrix_of(on->a, N, N), b = bh_matrix_of(on->b, N, N);
    bh_matrix u = bh_matrix_of(on->u, N, N), v = bh_matrix_of(on->v, N, N);
    bh_matrix cu = bh_matrix_of(on->complex_u, N, N), cv = bh_matrix_of(on->complex_v, N, N);
    bh_vector pivots = bh_vector_of(on->pivots, N), tau = bh_vector_of(on->tau, N);
    bh_vector values = bh_vector_of(on->values, N), cvalues = bh_vector_of(on->complex_values, N);
    switch (which) {
    case 0:
        return bh_solver_getrf(0, a, pivots, on->info);
    case 1:
        return bh_solver_getrs(0, a, pivots, b);
    case 2:
        return bh_solver_gesv(0, a, pivots, b, on->info);
    case 3:
        return bh_solver_getri(0, a, pivots, on->info);
    case 4:
        return bh_solver_potrf(0, a, on->info);
    case 5:
        return bh_solver_potrs(0, a, b);
    case 6:
        return bh_solver_posv(0, a, b, on->info);
    case 7:
        return bh_solver_potri(0, a, on->info);
    case 8:
        return bh_solver_geqrf(a, tau);
    case 9:
        return bh_solver_ungqr(a, tau);
    case 10:
        return bh_solver_unmqr(0, a, tau, b);
    case 11:
        return bh_solver_gels(0, a, b, u, on->info);
    case 12:
        return bh_solver_syevd(0, a, values, v, on->info);
    case 13:
        return bh_solver_geev(0, a, cvalues, cu, cv, on->info);
    default:
        return bh_solver_gesvd(0, a, u, values, v, on->info);
    }
}

static buffers buffers_for(bh_device device, bh_type type, bh_type real, bh_type complexes) {
    return (buffers){.a = empty(device, type, BIG),
                     .b = empty(device, type, BIG),
                     .u = empty(device, type, BIG),
                     .v = empty(device, type, BIG),
                     .complex_u = empty(device, complexes, BIG),
                     .complex_v = empty(device, complexes, BIG),
                     .tau = empty(device, type, N),
                     .values = empty(device, real, N),
                     .complex_values = empty(device, complexes, N),
                     .pivots = empty(device, BH_I32, N),
                     .info = empty(device, BH_I32, 1)};
}

/* Some elements, or all, are NaN or infinite. */
static void poison(bh_buffer buffer, bh_type real, uint64_t count, rng *r, bool all) {
    static const double bad[] = {NAN, INFINITY, -INFINITY, 1e300};
    float singles[2 * BIG];
    double doubles[2 * BIG];
    double one = bad[rng_below(r, 3)];
    for (uint64_t i = 0; i < count; i++) {
        double value = (double)rng_below(r, 100) / 10;
        if (all)
            value = one;
        else if (!rng_below(r, 20))
            value = bad[rng_below(r, 4)];
        doubles[i] = value;
        singles[i] = (float)value;
    }
    doubles[count / 2] = one;
    singles[count / 2] = (float)one;
    const void *from = real == BH_F32 ? (const void *)singles : (const void *)doubles;
    REQUIRE_OK(bh_buffer_write(buffer, 0, from, count * bh_type_size(real)));
}

TEST_TIMEOUT(no_operation_hangs_or_crashes_on_nan_and_infinity, 60) {
    static const bh_type rows[4][3] = {{BH_F32, BH_F32, BH_C64},
                                       {BH_F64, BH_F64, BH_C128},
                                       {BH_C64, BH_F32, BH_C64},
                                       {BH_C128, BH_F64, BH_C128}};
    bh_device device = open_library_device(BH_LIBRARY_SOLVER);
    rng r = rng_seeded(31);
    for (int t = 0; t < 4; t++) {
        uint64_t parts = rows[t][0] == rows[t][1] ? 1 : 2;
        buffers on = buffers_for(device, rows[t][0], rows[t][1], rows[t][2]);
        for (int i = 0; i < 6 * OPERATIONS; i++) {
            bool all = i % 2;
            poison(on.a, rows[t][1], parts * BIG, &r, all);
            poison(on.b, rows[t][1], parts * BIG, &r, all);
            poison(on.tau, rows[t][1], parts * N, &r, all);
            static const int32_t pivots[N] = {7, 6, 5, 4, 4, 5, 6, 7};
            REQUIRE_OK(bh_buffer_write(on.pivots, 0, pivots, sizeof pivots));
            bh_solver call = operation(&on, i % OPERATIONS);
            run(&call);
            /* Pivots are rows whatever was factored. */
            int32_t found[N];
            REQUIRE_OK(bh_buffer_read(on.pivots, 0, found, sizeof found));
            for (int k = 0; k < N; k++) CHECK(found[k] >= 0 && found[k] < N);
            if (i % OPERATIONS >= 11 && all) CHECK_EQ(info_at(on.info, 0), -1);
        }
    }
    CHECK_EQ(health_of(device).losses, 0);
    CHECK_OK(bh_device_close(device));
}

TEST(values_of_what_is_no_number_are_nan) {
    bh_device device = open_library_device(BH_LIBRARY_SOLVER);
    if (has_queues(device)) SKIP("a failure in a queue has another meaning");
    bh_buffer a = filled(device, BH_F64, 4, (double[]){1, NAN, 2, 3}),
              info = empty(device, BH_I32, 1);
    bh_buffer values = empty(device, BH_F64, 2), v = empty(device, BH_F64, 4);
    /* Only the lower triangle counts. */
    bh_solver call = bh_solver_syevd(0, bh_matrix_of(a, 2, 2), bh_vector_of(values, 2),
                                     bh_matrix_of(v, 2, 2), info);
    run(&call);
    CHECK_EQ(info_at(info, 0), 0);
    CHECK(at(values, 1) > 3);
    call.flags = BH_SOLVER_UPPER;
    run(&call);
    CHECK_EQ(info_at(info, 0), -1);
    CHECK(isnan(at(values, 0)) && isnan(at(values, 1)) && isnan(at(v, 3)));
    call.flags |= BH_SOLVER_STRICT;
    CHECK_REFUSED(bh_submit(&call.request, &waits, NULL), BH_E_INVALID);
    CHECK_STR_CONTAINS(bh_last_message(), "solver.syevd: the input has a NaN or an infinity");
    CHECK_OK(bh_device_close(device));
}

/* ---- requests that make no sense ---- */

static void check_call_refused(const bh_solver *call, bh_status status, const char *text) {
    bh_ticket ticket = {7, 7};
    CHECK_STATUS(bh_submit(&call->request, NULL, &ticket), status);
    CHECK_STR_CONTAINS(bh_last_message(), text);
    CHECK_STR_CONTAINS(bh_last_message(), "Fix:");
    CHECK_EQ(ticket.lane, 7);
}

TEST(what_cannot_be_solved_is_refused_before_it_is_queued) {
    bh_device device = open_library_device(BH_LIBRARY_SOLVER);
    buffers on = buffers_for(device, BH_C64, BH_F32, BH_C64);
    bh_solver call = operation(&on, 0);
    call.pivots.count = 3;
    check_call_refused(&call, BH_E_INVALID, "pivots has 3 elements; it must have 8");
    call = operation(&on, 0);
    call.info = bh_no_vector();
    check_call_refused(&call, BH_E_UNSUPPORTED, "without info nobody would know");
    call = operation(&on, 0);
    call.a.flags = BH_MATRIX_CONJUGATE;
    check_call_refused(&call, BH_E_UNSUPPORTED, "BH_MATRIX_CONJUGATE");
    call = operation(&on, 0);
    call.pivots.buffer = on.values;
    check_call_refused(&call, BH_E_INVALID, "the elements of pivots are f32; they must be i32");
    call = operation(&on, 0);
    call.info.count = 2;
    check_call_refused(&call, BH_E_INVALID, "info has 2 elements instead of 1");
    call = operation(&on, 0);
    call.tau = bh_vector_of(on.tau, N);
    check_call_refused(&call, BH_E_INVALID, "solver.getrf has no tau");
    call = operation(&on, 0);
    call.alpha.re = 1;
    check_call_refused(&call, BH_E_INVALID, "has no alpha");
    call = operation(&on, 0);
    call.a.batch_stride = BH_BATCH_SHARED;
    call.batch = 2;
    check_call_refused(&call, BH_E_INVALID, "parts of a overlap");
    call = operation(&on, 1);
    call.flags = BH_SOLVER_TRANSPOSED | BH_SOLVER_ADJOINT;
    check_call_refused(&call, BH_E_UNSUPPORTED, "transposed and adjoint");
    call = operation(&on, 1);
    call.flags = BH_SOLVER_STRICT;
    check_call_refused(&call, BH_E_INVALID, "flags");
    call = operation(&on, 4);
    call.a.columns = 7;
    check_call_refused(&call, BH_E_INVALID, "a has 8 rows, a has 7 columns");
    call = operation(&on, 9);
    call.a.rows = 7;
    check_call_refused(&call, BH_E_UNSUPPORTED, "more columns than rows");
    call = operation(&on, 10);
    call.b.rows = 7;
    check_call_refused(&call, BH_E_INVALID, "a has 8 rows, b has 7 rows");
    call = operation(&on, 12);
    call.values.buffer = on.complex_values;
    check_call_refused(&call, BH_E_INVALID, "the elements of values are c64; they must be f32");
    call = operation(&on, 12);
    call.v = call.a;
    check_call_refused(&call, BH_E_INVALID, "may share elements");
    call = operation(&on, 13);
    call.values.buffer = on.values;
    check_call_refused(&call, BH_E_INVALID, "must be c64");
    call = operation(&on, 14);
    call.u.columns = 5;
    check_call_refused(&call, BH_E_UNSUPPORTED, "U is neither square");
    call = operation(&on, 14);
    call.v.rows = 2;
    check_call_refused(&call, BH_E_UNSUPPORTED, "V is neither square");
    CHECK_OK(bh_device_close(device));
}

TEST(memory_to_work_in_beyond_32_bits_is_refused) {
    bh_device device = open_library_device(BH_LIBRARY_SOLVER);
    bh_buffer info = empty(device, BH_I32, 1), a, values;
    enum { ROWS = 40000 };
    bh_status status = bh_buffer_alloc(device, BH_F32, (uint64_t)ROWS * ROWS, NULL, &a);
    if (status == BH_E_NO_MEMORY) SKIP("no memory for a matrix of %d rows", ROWS);
    REQUIRE_OK(status);
    REQUIRE_OK(bh_buffer_alloc(device, BH_F32, ROWS, NULL, &values));
    bh_solver call = bh_solver_gesvd(0, bh_matrix_of(a, ROWS, ROWS), bh_no_matrix(),
                                     bh_vector_of(values, ROWS), bh_no_matrix(), info);
    check_call_refused(&call, BH_E_UNSUPPORTED, "32 bits");
    CHECK_OK(bh_device_close(device));
}

TEST(pivots_outside_the_matrix_fail_the_call) {
    bh_device device = open_library_device(BH_LIBRARY_SOLVER);
    if (has_queues(device)) SKIP("a failure in a queue has another meaning");
    bh_buffer a = filled(device, BH_F64, 4, three), b = filled(device, BH_F64, 2, three);
    static const int32_t bad[] = {-1, 2, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bh_buffer pivots = filled(device, BH_I32, 2, (int32_t[]){0, bad[i]});
        bh_solver call = bh_solver_getrs(0, bh_matrix_of(a, 2, 2), bh_vector_of(pivots, 2),
                                         bh_matrix_of(b, 2, 1));
        CHECK_REFUSED(bh_submit(&call.request, &waits, NULL), BH_E_INVALID);
        CHECK_STR_CONTAINS(bh_last_message(), "solver.getrs: pivots[1] is ");
        CHECK_OK(bh_buffer_accept(b));
    }
    CHECK_EQ(health_of(device).losses, 0);
    CHECK_OK(bh_device_close(device));
}

/* Bytes of a good request replaced by others: refused, or run without harm. */
TEST_TIMEOUT(requests_with_garbage_in_them_do_no_harm, 60) {
    bh_device device = open_library_device(BH_LIBRARY_SOLVER);
    buffers on = buffers_for(device, BH_F64, BH_F64, BH_C128);
    rng r = rng_seeded(37);
    int refused = 0;
    for (int i = 0; i < 3000; i++) {
        bh_solver call = operation(&on, (int)rng_below(&r, OPERATIONS));
        uint8_t *bytes = (uint8_t *)&call;
        uint32_t changes = 1 + rng_below(&r, 3);
        for (uint32_t k = 0; k < changes; k++) {
            /* Whole words, because single bytes mostly hit a zero. */
            uint32_t word = 2 + rng_below(&r, sizeof call / 4 - 2);
            uint32_t value = rng_below(&r, 2) ? rng_below(&r, 10) : rng_next(&r);
            memcpy(bytes + word * 4, &value, sizeof value);
        }
        bh_status status = bh_submit(&call.request, &waits, NULL);
        refused += status != BH_OK;
        CHECK(status == BH_OK || status == BH_E_INVALID || status == BH_E_UNSUPPORTED ||
              status == BH_E_STALE);
    }
    CHECK_GT(refused, 1000);
    CHECK_LT(refused, 3000);
    CHECK_EQ(health_of(device).losses, 0);
    CHECK_OK(bh_device_close(device));
}

/* ---- losses ---- */

enum { LONG = 700 };

typedef struct long_call {
    bh_buffer a, values, v, info;
    bh_solver call;
} long_call;

/* Of some seconds. */
static long_call long_call_make(bh_device device) {
    long_call made;
    uint64_t count = (uint64_t)LONG * LONG;
    double *elements = malloc(count * sizeof *elements);
    rng r = rng_seeded(41);
    REQUIRE(elements != NULL);
    for (uint64_t i = 0; i < count; i++) elements[i] = (double)rng_below(&r, 1000) / 1000;
    made.a = filled(device, BH_F64, count, elements);
    free(elements);
    made.values = empty(device, BH_C128, LONG);
    made.v = empty(device, BH_C128, count);
    made.info = empty(device, BH_I32, 1);
    made.call = bh_solver_geev(0, bh_matrix_of(made.a, LONG, LONG), bh_vector_of(made.values, LONG),
                               bh_no_matrix(), bh_matrix_of(made.v, LONG, LONG), made.info);
    return made;
}

static void check_goes_on(bh_device device) {
    bh_buffer c = filled(device, BH_F64, 4, three);
    bh_solver call = bh_solver_potrf(BH_SOLVER_STRICT, bh_matrix_of(c, 2, 2), no_buffer);
    CHECK_OK(bh_submit(&call.request, &waits, NULL));
    CHECK_NEAR(at(c, 0), 2, 0);
}

TEST(a_deadline_ends_a_long_call_and_the_next_one_runs) {
    bh_device device = open_library_device(BH_LIBRARY_SOLVER);
    long_call slow = long_call_make(device);
    bh_submit_options hurry = {
        .size = sizeof hurry, .flags = BH_SUBMIT_WAIT, .deadline_ns = 30 * 1000 * 1000};
    CHECK_REFUSED(bh_submit(&slow.call.request, &hurry, NULL), BH_E_DEADLINE);
    CHECK(is_suspect(slow.values) && is_suspect(slow.v) && is_suspect(slow.info));
    CHECK(!is_suspect(slow.a));
    check_goes_on(device);
    CHECK_OK(bh_device_close(device));
}

TEST(a_worker_killed_in_a_long_call_loses_that_call_alone) {
    bh_device device = open_library_device(BH_LIBRARY_SOLVER);
    long_call slow = long_call_make(device);
    bh_ticket ticket;
    REQUIRE_OK(bh_submit(&slow.call.request, NULL, &ticket));
    sleep_ms(30);
    CHECK_STATUS(bh_wait(ticket, 0), BH_E_BUSY);
    kill_worker(device, SIGKILL);
    bh_status status = bh_wait(ticket, BH_FOREVER);
    CHECK(status == BH_E_FAULT || status == BH_E_LOST);
    CHECK(is_suspect(slow.v));
    CHECK(!is_suspect(slow.a));
    check_goes_on(device);
    CHECK_OK(bh_device_close(device));
}

/* ---- at once ---- */

enum { THREADS = 4, ROUNDS = 12, SIDE = 40 };

typedef struct crowd {
    bh_device device;
    bh_lane lanes[2];
} crowd;

/* Each solves systems of its own, and checks them with products of BLAS. */
static void solve_and_multiply(void *context, unsigned index) {
    const crowd *c = context;
    rng r = rng_seeded(50 + index);
    uint64_t count = SIDE * SIDE;
    double elements[SIDE * SIDE];
    for (int round = 0; round < ROUNDS; round++) {
        for (uint64_t i = 0; i < count; i++)
            elements[i] = (double)rng_below(&r, 1000) / 1000 + (i % (SIDE + 1) == 0 ? SIDE : 0);
        bh_buffer a = filled(c->device, BH_F64, count, elements);
        bh_buffer inverse = filled(c->device, BH_F64, count, elements);
        bh_buffer product = empty(c->device, BH_F64, count), p = empty(c->device, BH_I32, SIDE);
        bh_matrix am = bh_matrix_of(a, SIDE, SIDE), im = bh_matrix_of(inverse, SIDE, SIDE);
        bh_vector pivots = bh_vector_of(p, SIDE);
        bh_submit_options on = {.size = sizeof on, .lane = c->lanes[index % 2]};
        bh_solver factor = bh_solver_getrf(BH_SOLVER_STRICT, im, pivots, no_buffer);
        bh_solver invert = bh_solver_getri(BH_SOLVER_STRICT, im, pivots, no_buffer);
        bh_blas multiply = bh_blas_gemm(1, am, im, 0, bh_matrix_of(product, SIDE, SIDE));
        bh_ticket done;
        REQUIRE_OK(bh_submit(&factor.request, &on, &done));
        REQUIRE_OK(bh_submit(&invert.request, &on, &done));
        on.lane = c->lanes[(index + 1) % 2];
        REQUIRE_OK(bh_submit(&multiply.request, &on, &done));
        CHECK_OK(bh_wait(done, BH_FOREVER));
        REQUIRE_OK(bh_buffer_read(product, 0, elements, sizeof elements));
        for (uint64_t i = 0; i < count; i++)
            CHECK_NEAR(elements[i], i % (SIDE + 1) == 0 ? 1 : 0, 1e-12);
        CHECK_OK(bh_buffer_release(a));
        CHECK_OK(bh_buffer_release(inverse));
        CHECK_OK(bh_buffer_release(product));
        CHECK_OK(bh_buffer_release(p));
    }
}

TEST_TIMEOUT(threads_and_lanes_solve_at_once_beside_blas, 60) {
    crowd c = {.device = open_library_device(BH_LIBRARY_SOLVER | BH_LIBRARY_BLAS)};
    c.lanes[0] = open_lane(c.device);
    c.lanes[1] = open_lane(c.device);
    run_threads(THREADS, solve_and_multiply, &c);
    CHECK_EQ(health_of(c.device).losses, 0);
    CHECK_OK(bh_device_close(c.device));
}
