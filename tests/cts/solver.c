/* SPDX-License-Identifier: Apache-2.0 */
/* Dense solvers: what they compute solves what was asked, for every operation and type, with
 * operands that lie in every way. */
#include "../support/solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

static const bh_type types[] = {BH_F32, BH_F64, BH_C64, BH_C128};

static bh_type real_of(bh_type type) {
    return type == BH_C64 ? BH_F32 : type == BH_C128 ? BH_F64 : type;
}

static bh_type complex_of(bh_type type) {
    return type == BH_F32 ? BH_C64 : type == BH_F64 ? BH_C128 : type;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Edges, small sizes, and now and then one beyond LAPACK's blocks. */
static uint64_t some_size(rng *r, bool large) {
    return large ? 65 + rng_below(r, 20) : rng_below(r, 9);
}

typedef void each_fn(solver_trial *t, bool large);

static void try_each(each_fn *each, uint64_t seed, int rounds) {
    solver_trial t = {.device = open_library_device(BH_LIBRARY_SOLVER), .r = rng_seeded(seed)};
    for (int round = 0; round < rounds && test_failures() < 5; round++) {
        for (size_t i = 0; i < 4; i++) {
            t.type = types[i];
            t.batch = round == 0 ? 0 : rng_below(&t.r, 4);
            each(&t, round == 0);
            trial_end(&t);
        }
    }
    CHECK_OK(bh_device_close(t.device));
}

static void check_close(const solver_trial *t, grid got, grid wanted, uint64_t n,
                        const char *what) {
    double distance = grid_distance(got, wanted);
    double allowed = trial_allows(t, n, grid_largest(wanted));
    if (!(distance <= allowed))
        FAIL("%s, %s, %llu x %llu: off by %g; allowed are %g", what, bh_type_name(t->type),
             (ull)wanted.rows, (ull)wanted.columns, distance, allowed);
}

static void check_infos(const solver_trial *t, const operand_vector *info) {
    for (uint64_t k = 0; k < trial_members(t); k++)
        CHECK_EQ((int)creal(trial_values(info, k).at[0]), 0);
}

static operand_vector info_for(solver_trial *t, bh_solver *call) {
    operand_vector made = trial_vector(t, BH_I32, 1, true);
    call->info = made.v.at;
    return made;
}

/* Larger numbers on the diagonal, so that rounding grows little. */
static void tame(const solver_trial *t, operand_matrix *a) {
    for (uint64_t k = 0; k < trial_members(t); k++) {
        grid whole = trial_now(a, k);
        for (uint64_t i = 0; i < whole.rows && i < whole.columns; i++)
            *grid_at(whole, i, i) += (double)(whole.rows + whole.columns) / 4;
        if (a->m.at.batch_stride == BH_BATCH_SHARED && k) break;
        trial_put(a, k, whole);
    }
}

/* ---- LU ---- */

static grid triangle(grid a, bool upper, bool unit, uint64_t rows, uint64_t columns) {
    grid made = grid_make(rows, columns);
    for (uint64_t i = 0; i < rows; i++) {
        for (uint64_t j = 0; j < columns; j++) {
            bool counts = upper ? j >= i : j <= i;
            if (counts) *grid_at(made, i, j) = i == j && unit ? 1 : *grid_at(a, i, j);
        }
    }
    return made;
}

/* P L U: the exchanges undone, the last one first. */
static grid product_of_factors(grid factors, grid pivots) {
    uint64_t k = smaller(factors.rows, factors.columns);
    grid whole = grid_times(triangle(factors, false, true, factors.rows, k),
                            triangle(factors, true, false, k, factors.columns));
    for (uint64_t i = pivots.rows; i-- > 0;) {
        uint64_t other = (uint64_t)creal(pivots.at[i]);
        REQUIRE(other >= i && other < whole.rows);
        for (uint64_t j = 0; j < whole.columns; j++) {
            number old = *grid_at(whole, i, j);
            *grid_at(whole, i, j) = *grid_at(whole, other, j);
            *grid_at(whole, other, j) = old;
        }
    }
    return whole;
}

static void try_getrf(solver_trial *t, bool large) {
    uint64_t m = some_size(&t->r, large), n = some_size(&t->r, large);
    operand_matrix a = trial_matrix(t, t->type, m, n, 'A');
    operand_vector pivots = trial_vector(t, BH_I32, smaller(m, n), true);
    bh_solver call = bh_solver_getrf(0, a.m.at, pivots.v.at, (bh_buffer){0});
    operand_vector info = info_for(t, &call);
    if (trial_run(t, &call, "getrf") != BH_OK) return;
    check_infos(t, &info);
    for (uint64_t k = 0; k < trial_members(t); k++)
        check_close(t, product_of_factors(trial_now(&a, k), trial_values(&pivots, k)),
                    trial_before(&a, k), m + n, "getrf");
}

/* Factors, and then solves with them or inverts them. */
static void try_getrs(solver_trial *t, bool large) {
    uint64_t n = some_size(&t->r, large), columns = rng_below(&t->r, 5);
    operand_matrix a = trial_matrix(t, t->type, n, n, 'A');
    operand_vector pivots = trial_vector(t, BH_I32, n, true);
    bh_solver factor = bh_solver_getrf(BH_SOLVER_STRICT, a.m.at, pivots.v.at, (bh_buffer){0});
    tame(t, &a);
    if (trial_run(t, &factor, "getrf") != BH_OK) return;
    grid original[4];
    for (uint64_t k = 0; k < trial_members(t); k++) original[k] = trial_before(&a, k);

    static const uint32_t flags[] = {0, BH_SOLVER_TRANSPOSED, BH_SOLVER_ADJOINT};
    for (int i = 0; i < 3; i++) {
        operand_matrix b = trial_matrix(t, t->type, n, columns, 'A');
        bh_solver call = bh_solver_getrs(flags[i], a.m.at, pivots.v.at, b.m.at);
        if (trial_run(t, &call, "getrs") != BH_OK) return;
        for (uint64_t k = 0; k < trial_members(t); k++) {
            grid op = flags[i] == 0                      ? original[k]
                      : flags[i] == BH_SOLVER_TRANSPOSED ? grid_transposed(original[k])
                                                         : grid_adjoint(original[k]);
            check_close(t, grid_times(op, trial_now(&b, k)), trial_before(&b, k), n, "getrs");
        }
    }
    bh_solver invert = bh_solver_getri(0, a.m.at, pivots.v.at, (bh_buffer){0});
    operand_vector info = info_for(t, &invert);
    if (trial_run(t, &invert, "getri") != BH_OK) return;
    check_infos(t, &info);
    for (uint64_t k = 0; k < trial_members(t); k++)
        check_close(t, grid_times(original[k], trial_now(&a, k)), grid_unit(n, n), n, "getri");
}

static void try_gesv(solver_trial *t, bool large) {
    uint64_t n = some_size(&t->r, large), columns = rng_below(&t->r, 5);
    operand_matrix a = trial_matrix(t, t->type, n, n, 'A');
    operand_matrix b = trial_matrix(t, t->type, n, columns, 'A');
    operand_vector pivots = trial_vector(t, BH_I32, n, true);
    bool keep = rng_below(&t->r, 2);
    bh_solver call =
        bh_solver_gesv(0, a.m.at, keep ? pivots.v.at : bh_no_vector(), b.m.at, (bh_buffer){0});
    operand_vector info = info_for(t, &call);
    tame(t, &a);
    if (trial_run(t, &call, "gesv") != BH_OK) return;
    check_infos(t, &info);
    for (uint64_t k = 0; k < trial_members(t); k++) {
        grid before = trial_before(&a, k);
        check_close(t, grid_times(before, trial_now(&b, k)), trial_before(&b, k), n, "gesv");
        if (keep)
            check_close(t, product_of_factors(trial_now(&a, k), trial_values(&pivots, k)), before,
                        n, "gesv's factors");
    }
}

TEST_TIMEOUT(factors_of_lu_multiply_to_the_matrix, 60) {
    try_each(try_getrf, 11, 12);
}

TEST_TIMEOUT(factors_of_lu_solve_and_invert, 60) {
    try_each(try_getrs, 12, 8);
}

TEST_TIMEOUT(systems_are_solved_in_one_call, 60) {
    try_each(try_gesv, 13, 8);
}

/* ---- Cholesky ---- */

static grid hermitian_of(grid a, bool upper) {
    grid made = grid_make(a.rows, a.rows);
    for (uint64_t i = 0; i < a.rows; i++) {
        for (uint64_t j = 0; j < a.rows; j++) {
            bool stored = upper ? j >= i : j <= i;
            number value = stored ? *grid_at(a, i, j) : conj(*grid_at(a, j, i));
            *grid_at(made, i, j) = i == j ? creal(value) : value;
        }
    }
    return made;
}

/* Positive definite, by the weight of its diagonal. */
static void make_definite(const solver_trial *t, operand_matrix *a) {
    for (uint64_t k = 0; k < trial_members(t); k++) {
        grid whole = trial_now(a, k);
        for (uint64_t i = 0; i < whole.rows; i++)
            *grid_at(whole, i, i) = (double)(2 * whole.rows) + 1 + creal(*grid_at(whole, i, i));
        trial_put(a, k, whole);
    }
}

static grid product_of_root(grid a, bool upper) {
    grid root = triangle(a, upper, false, a.rows, a.rows);
    return upper ? grid_times(grid_adjoint(root), root) : grid_times(root, grid_adjoint(root));
}

static void try_cholesky(solver_trial *t, bool large) {
    uint64_t n = some_size(&t->r, large), columns = rng_below(&t->r, 5);
    bool upper = rng_below(&t->r, 2), at_once = rng_below(&t->r, 2);
    uint32_t flags = upper ? BH_SOLVER_UPPER : 0;
    operand_matrix a = trial_matrix(t, t->type, n, n, upper ? 'U' : 'L');
    operand_matrix b = trial_matrix(t, t->type, n, columns, 'A');
    make_definite(t, &a);
    bh_solver factor = bh_solver_potrf(flags, a.m.at, (bh_buffer){0});
    if (at_once) factor = bh_solver_posv(flags, a.m.at, b.m.at, (bh_buffer){0});
    operand_vector info = info_for(t, &factor);
    if (trial_run(t, &factor, at_once ? "posv" : "potrf") != BH_OK) return;
    check_infos(t, &info);
    grid original[4], right[4];
    for (uint64_t k = 0; k < trial_members(t); k++) {
        original[k] = hermitian_of(trial_before(&a, k), upper);
        right[k] = trial_before(&b, k);
        check_close(t, product_of_root(trial_now(&a, k), upper), original[k], n, "potrf");
    }
    bh_solver solve = bh_solver_potrs(flags, a.m.at, b.m.at);
    if (!at_once && trial_run(t, &solve, "potrs") != BH_OK) return;
    for (uint64_t k = 0; k < trial_members(t); k++)
        check_close(t, grid_times(original[k], trial_now(&b, k)), right[k], n, "potrs");
    bh_solver invert = bh_solver_potri(flags | BH_SOLVER_STRICT, a.m.at, (bh_buffer){0});
    if (trial_run(t, &invert, "potri") != BH_OK) return;
    for (uint64_t k = 0; k < trial_members(t); k++)
        check_close(t, grid_times(original[k], hermitian_of(trial_now(&a, k), upper)),
                    grid_unit(n, n), n, "potri");
}

TEST_TIMEOUT(cholesky_factors_solve_and_invert, 60) {
    try_each(try_cholesky, 14, 16);
}

/* A factor that is only read may be shared and conjugated. */
static void try_potrs_of_inputs(solver_trial *t, bool large) {
    uint64_t n = some_size(&t->r, large);
    bool upper = rng_below(&t->r, 2);
    operand_matrix a = trial_matrix(t, t->type, n, n, 0);
    operand_matrix b = trial_matrix(t, t->type, n, 3, 'A');
    for (uint64_t k = 0; k < trial_members(t); k++) {
        grid root = trial_now(&a, k);
        for (uint64_t i = 0; i < n; i++) *grid_at(root, i, i) = (double)n;
        trial_put(&a, k, root);
    }
    bh_solver solve = bh_solver_potrs(upper ? BH_SOLVER_UPPER : 0, a.m.at, b.m.at);
    if (trial_run(t, &solve, "potrs") != BH_OK) return;
    for (uint64_t k = 0; k < trial_members(t); k++)
        check_close(t, grid_times(product_of_root(trial_now(&a, k), upper), trial_now(&b, k)),
                    trial_before(&b, k), 4 * n, "potrs");
}

TEST_TIMEOUT(factors_that_are_only_read_may_be_shared_and_conjugated, 60) {
    try_each(try_potrs_of_inputs, 15, 10);
}

/* ---- QR ---- */

/* A, tau and the whole of Q, made of them. */
static void try_qr(solver_trial *t, bool large) {
    uint64_t m = some_size(&t->r, large), n = some_size(&t->r, large), k = smaller(m, n);
    operand_matrix a = trial_matrix(t, t->type, m, n, 'A');
    operand_vector tau = trial_vector(t, t->type, k, true);
    bh_solver factor = bh_solver_geqrf(a.m.at, tau.v.at);
    if (trial_run(t, &factor, "geqrf") != BH_OK) return;

    operand_matrix q = trial_matrix(t, t->type, m, m, 'A');
    for (uint64_t b = 0; b < trial_members(t); b++) {
        grid reflectors = trial_now(&a, b), whole = grid_make(m, m);
        for (uint64_t i = 0; i < m; i++) {
            for (uint64_t j = 0; j < k; j++) *grid_at(whole, i, j) = *grid_at(reflectors, i, j);
        }
        trial_put(&q, b, whole);
    }
    grid original[4];
    for (uint64_t b = 0; b < trial_members(t); b++) original[b] = trial_before(&a, b);
    bh_solver explicit = bh_solver_ungqr(q.m.at, tau.v.at);
    if (trial_run(t, &explicit, "ungqr") != BH_OK) return;
    for (uint64_t b = 0; b < trial_members(t); b++) {
        grid whole = trial_now(&q, b), r = triangle(trial_now(&a, b), true, false, m, n);
        check_close(t, grid_times(grid_adjoint(whole), whole), grid_unit(m, m), m, "Q^H Q");
        check_close(t, grid_times(whole, r), original[b], m + n, "Q R");
    }
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t flags = (i & 1 ? BH_SOLVER_ADJOINT : 0) | (i & 2 ? BH_SOLVER_RIGHT : 0);
        uint64_t other = rng_below(&t->r, 5);
        operand_matrix c = i & 2 ? trial_matrix(t, t->type, other, m, 'A')
                                 : trial_matrix(t, t->type, m, other, 'A');
        bh_solver apply =
            bh_solver_unmqr(flags, bh_matrix_part(a.m.at, 0, 0, m, k), tau.v.at, c.m.at);
        /* The part's members are as far from one another as the whole ones. */
        if (apply.a.batch_stride == 0) {
            bool columns = a.m.at.flags & BH_MATRIX_COLUMN_MAJOR;
            uint64_t inner = columns ? m : n, outer = columns ? n : m;
            apply.a.batch_stride =
                inner && outer ? (outer - 1) * (a.m.at.stride ? a.m.at.stride : inner) + inner : 0;
        }
        if (trial_run(t, &apply, "unmqr") != BH_OK) return;
        for (uint64_t b = 0; b < trial_members(t); b++) {
            grid op = i & 1 ? grid_adjoint(trial_now(&q, b)) : trial_now(&q, b);
            grid before = trial_before(&c, b);
            check_close(t, trial_now(&c, b),
                        i & 2 ? grid_times(before, op) : grid_times(op, before), m, "unmqr");
        }
    }
}

TEST_TIMEOUT(q_is_unitary_and_q_r_is_the_matrix, 60) {
    try_each(try_qr, 16, 10);
}

/* ---- least squares ---- */

static void try_gels(solver_trial *t, bool large) {
    uint64_t m = some_size(&t->r, large), n = some_size(&t->r, large),
             columns = rng_below(&t->r, 4);
    operand_matrix a = trial_matrix(t, t->type, m, n, 0);
    operand_matrix b = trial_matrix(t, t->type, m, columns, 0);
    operand_matrix x = trial_matrix(t, t->type, n, columns, 'A');
    bh_solver call = bh_solver_gels(0, a.m.at, b.m.at, x.m.at, (bh_buffer){0});
    operand_vector info = info_for(t, &call);
    tame(t, &a);
    if (trial_run(t, &call, "gels") != BH_OK) return;
    check_infos(t, &info);
    for (uint64_t k = 0; k < trial_members(t); k++) {
        grid am = trial_now(&a, k), bm = trial_now(&b, k), ah = grid_adjoint(am);
        grid wanted = m >= n ? grid_solve(grid_times(ah, am), grid_times(ah, bm))
                             : grid_times(ah, grid_solve(grid_times(am, ah), bm));
        check_close(t, trial_now(&x, k), wanted, 8 * (m + n), "gels");
    }
}

TEST_TIMEOUT(least_squares_are_least, 60) {
    try_each(try_gels, 17, 14);
}

/* ---- eigenvalues ---- */

static grid diagonal(grid values, uint64_t rows, uint64_t columns) {
    grid made = grid_make(rows, columns);
    for (uint64_t i = 0; i < values.rows; i++) *grid_at(made, i, i) = values.at[i];
    return made;
}

static void check_order(grid values, bool ascending) {
    for (uint64_t i = 1; i < values.rows; i++) {
        double before = creal(values.at[i - 1]), here = creal(values.at[i]);
        CHECK(ascending ? before <= here : before >= here);
    }
}

static void try_syevd(solver_trial *t, bool large) {
    uint64_t n = some_size(&t->r, large);
    bool upper = rng_below(&t->r, 2);
    operand_matrix a = trial_matrix(t, t->type, n, n, 0);
    operand_matrix v = trial_matrix(t, t->type, n, n, 'A');
    operand_vector values = trial_vector(t, real_of(t->type), n, true);
    operand_vector alone = trial_vector(t, real_of(t->type), n, true);
    uint32_t flags = upper ? BH_SOLVER_UPPER : 0;
    bh_solver call = bh_solver_syevd(flags, a.m.at, values.v.at, v.m.at, (bh_buffer){0});
    operand_vector info = info_for(t, &call);
    if (trial_run(t, &call, "syevd") != BH_OK) return;
    check_infos(t, &info);
    bh_solver without = bh_solver_syevd(flags | BH_SOLVER_STRICT, a.m.at, alone.v.at,
                                        bh_no_matrix(), (bh_buffer){0});
    if (trial_run(t, &without, "syevd of values") != BH_OK) return;
    for (uint64_t k = 0; k < trial_members(t); k++) {
        grid am = hermitian_of(trial_now(&a, k), upper), vm = trial_now(&v, k);
        grid found = trial_values(&values, k);
        check_order(found, true);
        check_close(t, grid_times(am, vm), grid_times(vm, diagonal(found, n, n)), n, "syevd");
        check_close(t, grid_times(grid_adjoint(vm), vm), grid_unit(n, n), n, "V^H V");
        check_close(t, trial_values(&alone, k), found, n, "syevd of values");
    }
}

TEST_TIMEOUT(hermitian_matrices_have_orthonormal_vectors, 60) {
    try_each(try_syevd, 18, 12);
}

static void try_geev(solver_trial *t, bool large) {
    uint64_t n = some_size(&t->r, large);
    bool left = rng_below(&t->r, 3), right = rng_below(&t->r, 3);
    bh_type complexes = complex_of(t->type);
    operand_matrix a = trial_matrix(t, t->type, n, n, 0);
    operand_matrix u = trial_matrix(t, complexes, n, n, 'A');
    operand_matrix v = trial_matrix(t, complexes, n, n, 'A');
    operand_vector values = trial_vector(t, complexes, n, true);
    bh_solver call = bh_solver_geev(0, a.m.at, values.v.at, left ? u.m.at : bh_no_matrix(),
                                    right ? v.m.at : bh_no_matrix(), (bh_buffer){0});
    operand_vector info = info_for(t, &call);
    if (trial_run(t, &call, "geev") != BH_OK) return;
    check_infos(t, &info);
    for (uint64_t k = 0; k < trial_members(t); k++) {
        grid am = trial_now(&a, k), um = trial_now(&u, k), vm = trial_now(&v, k);
        grid d = diagonal(trial_values(&values, k), n, n), trace = grid_make(2, 1);
        for (uint64_t i = 0; i < n; i++) {
            trace.at[0] += *grid_at(am, i, i);
            trace.at[1] += *grid_at(d, i, i);
        }
        CHECK_NEAR(cabs(trace.at[0] - trace.at[1]), 0, trial_allows(t, n, (double)n));
        if (right) check_close(t, grid_times(am, vm), grid_times(vm, d), n, "geev, right");
        grid uh = grid_adjoint(um);
        if (left) check_close(t, grid_times(uh, am), grid_times(d, uh), n, "geev, left");
        for (uint64_t j = 0; j < n && right; j++) {
            double sum = 0;
            for (uint64_t i = 0; i < n; i++)
                sum += creal(*grid_at(vm, i, j) * conj(*grid_at(vm, i, j)));
            CHECK_NEAR(sum, 1, trial_allows(t, n, 1));
        }
    }
}

TEST_TIMEOUT(general_matrices_have_left_and_right_vectors, 60) {
    try_each(try_geev, 19, 12);
}

/* ---- singular values ---- */

static grid part(grid a, uint64_t rows, uint64_t columns) {
    grid made = grid_make(rows, columns);
    for (uint64_t i = 0; i < rows; i++) {
        for (uint64_t j = 0; j < columns; j++) *grid_at(made, i, j) = *grid_at(a, i, j);
    }
    return made;
}

static void try_gesvd(solver_trial *t, bool large) {
    uint64_t m = some_size(&t->r, large), n = some_size(&t->r, large), k = smaller(m, n);
    uint64_t columns = rng_below(&t->r, 2) ? m : k, rows = rng_below(&t->r, 2) ? n : k;
    uint32_t wanted = rng_below(&t->r, 5); /* both, both, u, v, none */
    bool has_u = wanted <= 2, has_v = wanted <= 1 || wanted == 3;
    operand_matrix a = trial_matrix(t, t->type, m, n, 0);
    operand_matrix u = trial_matrix(t, t->type, m, columns, 'A');
    operand_matrix v = trial_matrix(t, t->type, rows, n, 'A');
    operand_vector values = trial_vector(t, real_of(t->type), k, true);
    bh_solver call = bh_solver_gesvd(0, a.m.at, has_u ? u.m.at : bh_no_matrix(), values.v.at,
                                     has_v ? v.m.at : bh_no_matrix(), (bh_buffer){0});
    operand_vector info = info_for(t, &call);
    if (trial_run(t, &call, "gesvd") != BH_OK) return;
    check_infos(t, &info);
    for (uint64_t b = 0; b < trial_members(t); b++) {
        grid am = trial_now(&a, b), um = trial_now(&u, b), vm = trial_now(&v, b);
        grid found = trial_values(&values, b), s = diagonal(found, k, k);
        double squares = 0, sum = 0;
        for (uint64_t i = 0; i < m * n; i++) squares += creal(am.at[i] * conj(am.at[i]));
        for (uint64_t i = 0; i < k; i++) sum += creal(found.at[i] * found.at[i]);
        CHECK_NEAR(sum, squares, trial_allows(t, m + n, squares));
        check_order(found, false);
        grid short_u = part(um, m, k), short_v = part(vm, k, n);
        if (has_u)
            check_close(t, grid_times(grid_adjoint(um), um), grid_unit(columns, columns), m,
                        "U^H U");
        if (has_v)
            check_close(t, grid_times(vm, grid_adjoint(vm)), grid_unit(rows, rows), n, "V^H V");
        if (has_u && has_v)
            check_close(t, grid_times(grid_times(short_u, s), short_v), am, m + n, "U S V^H");
        if (has_u && !has_v) /* U^H A A^H U = S^2 */
            check_close(t,
                        grid_times(grid_times(grid_adjoint(short_u), am),
                                   grid_times(grid_adjoint(am), short_u)),
                        grid_times(s, s), m + n, "gesvd with U alone");
        if (has_v && !has_u)
            check_close(t,
                        grid_times(grid_times(short_v, grid_adjoint(am)),
                                   grid_times(am, grid_adjoint(short_v))),
                        grid_times(s, s), m + n, "gesvd with V alone");
    }
}

TEST_TIMEOUT(singular_vectors_are_orthonormal_and_multiply_to_the_matrix, 60) {
    try_each(try_gesvd, 20, 24);
}

/* ---- exact cases ---- */

static bh_buffer filled(bh_device device, bh_type type, uint64_t count, const void *from) {
    bh_buffer made;
    REQUIRE_OK(bh_buffer_alloc(device, type, count, NULL, &made));
    REQUIRE_OK(bh_buffer_write(made, 0, from, count * bh_type_size(type)));
    return made;
}

TEST(small_cases_have_known_answers) {
    const bh_submit_options wait = {.size = sizeof wait, .flags = BH_SUBMIT_WAIT};
    bh_device device = open_library_device(BH_LIBRARY_SOLVER);
    double got[4];
    int32_t pivots[2] = {-7, -7}, info[1] = {-7};
    bh_buffer a = filled(device, BH_F64, 4, (double[]){1, 2, 3, 4});
    bh_buffer p = filled(device, BH_I32, 2, pivots), i = filled(device, BH_I32, 1, info);
    bh_solver call = bh_solver_getrf(0, bh_matrix_of(a, 2, 2), bh_vector_of(p, 2), i);
    REQUIRE_OK(bh_submit(&call.request, &wait, NULL));
    REQUIRE_OK(bh_buffer_read(a, 0, got, sizeof got));
    REQUIRE_OK(bh_buffer_read(p, 0, pivots, sizeof pivots));
    REQUIRE_OK(bh_buffer_read(i, 0, info, sizeof info));
    CHECK_EQ(pivots[0], 1);
    CHECK_EQ(pivots[1], 1);
    CHECK_EQ(info[0], 0);
    CHECK_NEAR(got[0], 3, 0);
    CHECK_NEAR(got[1], 4, 0);
    CHECK_NEAR(got[2], 1.0 / 3, 1e-15);
    CHECK_NEAR(got[3], 2.0 / 3, 1e-15);

    bh_buffer c = filled(device, BH_F64, 4, (double[]){4, 99, 2, 5});
    call = bh_solver_potrf(0, bh_matrix_of(c, 2, 2), i);
    REQUIRE_OK(bh_submit(&call.request, &wait, NULL));
    REQUIRE_OK(bh_buffer_read(c, 0, got, sizeof got));
    CHECK_NEAR(got[0], 2, 0);
    CHECK_NEAR(got[1], 99, 0);
    CHECK_NEAR(got[2], 1, 0);
    CHECK_NEAR(got[3], 2, 0);

    /* A quarter turn has the eigenvalues i and -i. */
    bh_buffer turn = filled(device, BH_F64, 4, (double[]){0, -1, 1, 0}), values;
    REQUIRE_OK(bh_buffer_alloc(device, BH_C128, 2, NULL, &values));
    call = bh_solver_geev(0, bh_matrix_of(turn, 2, 2), bh_vector_of(values, 2), bh_no_matrix(),
                          bh_no_matrix(), i);
    REQUIRE_OK(bh_submit(&call.request, &wait, NULL));
    REQUIRE_OK(bh_buffer_read(values, 0, got, sizeof got));
    CHECK_NEAR(got[0], 0, 1e-15);
    CHECK_NEAR(got[1], 1, 1e-15);
    CHECK_NEAR(got[3], -1, 1e-15);
    CHECK_OK(bh_device_close(device));
}

/* Beyond what libraries do on one thread. */
TEST_TIMEOUT(large_systems_are_solved_on_many_threads, 60) {
    enum { LARGE = 500 };
    const bh_submit_options wait = {.size = sizeof wait, .flags = BH_SUBMIT_WAIT};
    bh_device device = open_library_device(BH_LIBRARY_SOLVER);
    uint64_t count = (uint64_t)LARGE * LARGE;
    double *a = calloc(count, sizeof *a), b[LARGE];
    bh_buffer none = {0};
    rng r = rng_seeded(21);
    REQUIRE(a != NULL);
    for (int by_columns = 0; by_columns < 2; by_columns++) {
        memset(b, 0, sizeof b);
        for (uint64_t i = 0; i < LARGE; i++) {
            for (uint64_t j = 0; j < LARGE; j++) {
                double value = (double)rng_below(&r, 1000) / 1000 + (i == j ? LARGE : 0);
                a[by_columns ? j * LARGE + i : i * LARGE + j] = value;
                b[i] += value * (double)(j % 7);
            }
        }
        bh_matrix am = bh_matrix_of(filled(device, BH_F64, count, a), LARGE, LARGE);
        bh_matrix bm = bh_matrix_of(filled(device, BH_F64, LARGE, b), LARGE, 1);
        am.flags = by_columns ? BH_MATRIX_COLUMN_MAJOR : 0;
        bh_solver call = bh_solver_gesv(BH_SOLVER_STRICT, am, bh_no_vector(), bm, none);
        REQUIRE_OK(bh_submit(&call.request, &wait, NULL));
        REQUIRE_OK(bh_buffer_read(bm.buffer, 0, b, sizeof b));
        for (int j = 0; j < LARGE; j++) CHECK_NEAR(b[j], j % 7, 1e-10);
    }
    free(a);
    CHECK_OK(bh_device_close(device));
}
