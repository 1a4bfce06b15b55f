/* SPDX-License-Identifier: Apache-2.0 */
/* Trials of dense solvers. */
#include "solver.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- small matrices ---- */

enum { GRIDS = 512 };
static void *grids[GRIDS];
static size_t grid_count;

grid grid_make(uint64_t rows, uint64_t columns) {
    grid made = {rows, columns, calloc(rows * columns + 1, sizeof(number))};
    REQUIRE(made.at != NULL && grid_count < GRIDS);
    grids[grid_count++] = made.at;
    return made;
}

void grids_free(void) {
    while (grid_count) free(grids[--grid_count]);
}

grid grid_unit(uint64_t rows, uint64_t columns) {
    grid made = grid_make(rows, columns);
    for (uint64_t i = 0; i < rows && i < columns; i++) *grid_at(made, i, i) = 1;
    return made;
}

grid grid_times(grid a, grid b) {
    grid made = grid_make(a.rows, b.columns);
    REQUIRE_EQ(a.columns, b.rows);
    for (uint64_t i = 0; i < a.rows; i++) {
        for (uint64_t k = 0; k < a.columns; k++) {
            number factor = *grid_at(a, i, k);
            for (uint64_t j = 0; j < b.columns; j++)
                *grid_at(made, i, j) += factor * *grid_at(b, k, j);
        }
    }
    return made;
}

grid grid_transposed(grid a) {
    grid made = grid_make(a.columns, a.rows);
    for (uint64_t i = 0; i < a.rows; i++) {
        for (uint64_t j = 0; j < a.columns; j++) *grid_at(made, j, i) = *grid_at(a, i, j);
    }
    return made;
}

grid grid_adjoint(grid a) {
    grid made = grid_transposed(a);
    for (uint64_t i = 0; i < a.rows * a.columns; i++) made.at[i] = conj(made.at[i]);
    return made;
}

static void exchange_rows(grid a, uint64_t one, uint64_t other) {
    for (uint64_t j = 0; j < a.columns; j++) {
        number old = *grid_at(a, one, j);
        *grid_at(a, one, j) = *grid_at(a, other, j);
        *grid_at(a, other, j) = old;
    }
}

static void subtract_row(grid a, uint64_t from, uint64_t row, number times) {
    for (uint64_t j = 0; j < a.columns; j++) *grid_at(a, from, j) -= times * *grid_at(a, row, j);
}

grid grid_solve(grid given_a, grid given_b) {
    grid a = grid_make(given_a.rows, given_a.rows), b = grid_make(given_b.rows, given_b.columns);
    memcpy(a.at, given_a.at, a.rows * a.rows * sizeof *a.at);
    memcpy(b.at, given_b.at, b.rows * b.columns * sizeof *b.at);
    for (uint64_t k = 0; k < a.rows; k++) {
        uint64_t best = k;
        for (uint64_t i = k; i < a.rows; i++)
            if (cabs(*grid_at(a, i, k)) > cabs(*grid_at(a, best, k))) best = i;
        exchange_rows(a, k, best);
        exchange_rows(b, k, best);
        for (uint64_t i = 0; i < a.rows; i++) {
            number times = i == k ? 0 : *grid_at(a, i, k) / *grid_at(a, k, k);
            if (i == k) continue;
            subtract_row(a, i, k, times);
            subtract_row(b, i, k, times);
        }
    }
    for (uint64_t i = 0; i < b.rows; i++) {
        for (uint64_t j = 0; j < b.columns; j++) *grid_at(b, i, j) /= *grid_at(a, i, i);
    }
    return b;
}

/* NaN counts as far away. */
static double larger(double a, double b) {
    return isnan(b) || isnan(a) ? INFINITY : a > b ? a : b;
}

double grid_distance(grid a, grid b) {
    double most = 0;
    REQUIRE_EQ(a.rows, b.rows);
    REQUIRE_EQ(a.columns, b.columns);
    for (uint64_t i = 0; i < a.rows * a.columns; i++) most = larger(most, cabs(a.at[i] - b.at[i]));
    return most;
}

double grid_largest(grid a) {
    return grid_distance(a, grid_make(a.rows, a.columns));
}

/* ---- operands ---- */

uint64_t trial_members(const solver_trial *t) {
    return t->batch ? t->batch : 1;
}

static double unit(rng *r) {
    return (double)rng_below(r, 2000001) / 1e6 - 1;
}

static held *hold(solver_trial *t, bh_type type, uint64_t count) {
    REQUIRE(t->used < HELD);
    held *made = &t->memory[t->used++];
    made->now = numbers_make(t->device, type, count, &t->r);
    made->before = calloc(count + 1, sizeof(number));
    made->written = calloc(count + 1, sizeof(bool));
    REQUIRE(made->before != NULL && made->written != NULL);
    for (uint64_t i = 0; i < count; i++) {
        number value = unit(&t->r);
        if (type_is_complex(type)) value += I * unit(&t->r);
        if (type == BH_I32) value = -77;
        made->now.values[i] = number_rounded(type, value);
    }
    return made;
}

static uint64_t gap(solver_trial *t) {
    return rng_below(&t->r, 3) ? 0 : rng_below(&t->r, 4);
}

static void mark(const operand_matrix *of, uint64_t members, char writes) {
    for (uint64_t k = 0; k < members; k++) {
        for (uint64_t i = 0; i < of->m.at.rows; i++) {
            for (uint64_t j = 0; j < of->m.at.columns; j++) {
                bool counts =
                    writes == 'A' || (writes == 'U' && j >= i) || (writes == 'L' && j <= i);
                if (counts)
                    of->in->written[model_element(&of->m, k, i, j) - of->in->now.values] = true;
            }
        }
    }
}

operand_matrix trial_matrix(solver_trial *t, bh_type type, uint64_t rows, uint64_t columns,
                            char writes) {
    operand_matrix made;
    memset(&made, 0, sizeof made);
    bh_matrix *at = &made.m.at;
    bool by_columns = rng_below(&t->r, 2);
    at->rows = rows;
    at->columns = columns;
    uint64_t inner = by_columns ? rows : columns, outer = by_columns ? columns : rows;
    uint64_t stride = inner + gap(t), extent = outer && inner ? (outer - 1) * stride + inner : 0;
    uint64_t next = extent + gap(t);
    at->stride = stride == inner && rng_below(&t->r, 2) ? 0 : stride;
    at->batch_stride = next == extent && rng_below(&t->r, 2) ? 0 : next;
    if (!writes && !rng_below(&t->r, 5)) at->batch_stride = BH_BATCH_SHARED;
    at->offset = gap(t);
    at->flags = by_columns ? BH_MATRIX_COLUMN_MAJOR : 0;
    if (!writes && !rng_below(&t->r, 4)) at->flags |= BH_MATRIX_CONJUGATE;
    made.in = hold(t, type, at->offset + trial_members(t) * next + extent + gap(t) + 1);
    at->buffer = made.in->now.buffer;
    made.m.in = &made.in->now;
    mark(&made, trial_members(t), writes);
    return made;
}

operand_vector trial_vector(solver_trial *t, bh_type type, uint64_t count, bool writes) {
    operand_vector made;
    memset(&made, 0, sizeof made);
    bh_vector *at = &made.v.at;
    int64_t stride = (int64_t)gap(t) + 1;
    uint64_t extent = count ? (count - 1) * (uint64_t)stride + 1 : 0, next = extent + gap(t);
    bool backwards = !rng_below(&t->r, 4);
    at->count = count;
    at->offset = gap(t) + (backwards && count ? (count - 1) * (uint64_t)stride : 0);
    at->stride = backwards ? -stride : stride == 1 && rng_below(&t->r, 2) ? 0 : stride;
    at->batch_stride = next == extent ? 0 : next;
    made.in = hold(t, type, at->offset + trial_members(t) * next + extent + 1);
    at->buffer = made.in->now.buffer;
    made.v.in = &made.in->now;
    for (uint64_t k = 0; writes && k < trial_members(t); k++) {
        for (uint64_t i = 0; i < count; i++)
            made.in->written[model_entry(&made.v, k, i) - made.in->now.values] = true;
    }
    return made;
}

static grid take(const operand_matrix *of, uint64_t member, const number *values) {
    grid made = grid_make(of->m.at.rows, of->m.at.columns);
    bool conjugate = of->m.at.flags & BH_MATRIX_CONJUGATE;
    for (uint64_t i = 0; i < made.rows; i++) {
        for (uint64_t j = 0; j < made.columns; j++) {
            number value = values[model_element(&of->m, member, i, j) - of->in->now.values];
            *grid_at(made, i, j) = conjugate ? conj(value) : value;
        }
    }
    return made;
}

grid trial_now(const operand_matrix *of, uint64_t member) {
    return take(of, member, of->in->now.values);
}

grid trial_before(const operand_matrix *of, uint64_t member) {
    return take(of, member, of->in->before);
}

grid trial_values(const operand_vector *of, uint64_t member) {
    grid made = grid_make(of->v.at.count, 1);
    for (uint64_t i = 0; i < made.rows; i++) made.at[i] = *model_entry(&of->v, member, i);
    return made;
}

void trial_put(operand_matrix *to, uint64_t member, grid what) {
    bool conjugate = to->m.at.flags & BH_MATRIX_CONJUGATE;
    for (uint64_t i = 0; i < what.rows; i++) {
        for (uint64_t j = 0; j < what.columns; j++) {
            number value = *grid_at(what, i, j);
            *model_element(&to->m, member, i, j) =
                number_rounded(to->in->now.type, conjugate ? conj(value) : value);
        }
    }
}

/* ---- running ---- */

bh_status trial_run(solver_trial *t, bh_solver *call, const char *what) {
    const bh_submit_options wait = {.size = sizeof wait, .flags = BH_SUBMIT_WAIT};
    for (uint32_t i = 0; i < t->used; i++) {
        held *h = &t->memory[i];
        numbers_write(&h->now);
        memcpy(h->before, h->now.values, h->now.count * sizeof *h->before);
    }
    call->batch = t->batch;
    bh_status status = bh_submit(&call->request, &wait, NULL);
    if (status != BH_OK) FAIL("%s: %s", what, bh_last_message());
    for (uint32_t i = 0; i < t->used && status == BH_OK; i++) {
        held *h = &t->memory[i];
        numbers_read(&h->now);
        for (uint64_t k = 0; k < h->now.count; k++) {
            if (!h->written[k] && h->now.values[k] != h->before[k])
                FAIL("%s: element %llu of operand %u was written", what, (unsigned long long)k, i);
        }
    }
    return status;
}

void trial_end(solver_trial *t) {
    for (uint32_t i = 0; i < t->used; i++) {
        numbers_free(&t->memory[i].now);
        free(t->memory[i].before);
        free(t->memory[i].written);
    }
    memset(t->memory, 0, sizeof t->memory);
    t->used = 0;
    grids_free();
}

double trial_allows(const solver_trial *t, uint64_t n, double size) {
    bool single = t->type == BH_F32 || t->type == BH_C64;
    return (single ? FLT_EPSILON : DBL_EPSILON) * 30 * ((double)n + 2) * (1 + size);
}
