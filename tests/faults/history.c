/* SPDX-License-Identifier: Apache-2.0 */
/* Random work on several lanes while workers die at random moments, checked against a model of what
 * is known: work that says it is done read nothing in doubt and its result is exact; a buffer is
 * suspect just when something that wrote it did not end well and nothing overwrote it since. */
#include <signal.h>

#include "../support/support.h"

enum { LANES = 4, BUFFERS = 8, WORDS = 48, BATCH = 60 };

enum kind { IOTA, MIX, CHURN, FILL, COPY, BREAK };

struct operation {
    enum kind kind;
    uint32_t to, a, b, step;
    bh_ticket ticket;
};

struct world {
    rig r;
    bh_lane lanes[LANES];
    bh_buffer buffers[BUFFERS], untouched;
    uint32_t model[BUFFERS][WORDS];
    bool known[BUFFERS];
    rng random;
    uint32_t step;
    struct operation batch[BATCH];
    uint32_t count;
};

static bh_status submit_one(struct world *w, struct operation *op) {
    uint32_t n = WORDS;
    bh_launch_options there = on_lane(w->lanes[rng_below(&w->random, LANES)],
                                      rng_below(&w->random, 2) ? BH_SUBMIT_IDEMPOTENT : 0);
    bh_buffer to = w->buffers[op->to], a = w->buffers[op->a], b = w->buffers[op->b];
    switch (op->kind) {
    case IOTA:
        return bh_launch(rig_kernel(&w->r, "iota"), BH_GRID(n, 64),
                         BH_ARGS(BH_OUT(to), op->step, n), &there, &op->ticket);
    case MIX:
        return bh_launch(rig_kernel(&w->r, "mix"), BH_GRID(n, 64),
                         BH_ARGS(BH_OUT(to), BH_IN(a), BH_IN(b), op->step, n), &there, &op->ticket);
    case CHURN:
        return bh_launch(rig_kernel(&w->r, "churn"), BH_GRID(n, 64),
                         BH_ARGS(BH_INOUT(to), op->step, n), &there, &op->ticket);
    case FILL:
        return bh_submit_fill(there.lane, to, 0, n * 4, &op->step, 4, &op->ticket);
    case COPY:
        return bh_submit_copy(there.lane, to, 0, a, 0, n * 4, &op->ticket);
    case BREAK:
        break;
    }
    return bh_launch(rig_kernel(&w->r, "write_then_poke"), BH_GRID(n, 64),
                     BH_ARGS(BH_INOUT(to), n, NOWHERE), &there, &op->ticket);
}

/* What the model says of an operation that was done. */
static bool apply(struct world *w, const struct operation *op) {
    uint32_t *to = w->model[op->to];
    const uint32_t *a = w->model[op->a], *b = w->model[op->b];
    bool good = true;
    for (uint32_t i = 0; i < WORDS; i++) {
        switch (op->kind) {
        case IOTA:
            to[i] = op->step + i;
            break;
        case MIX:
            good = w->known[op->a] && w->known[op->b];
            to[i] = mix_word(a[i], b[i], op->step);
            break;
        case CHURN:
            good = w->known[op->to];
            to[i] = churn_word(to[i], op->step);
            break;
        case FILL:
            to[i] = op->step;
            break;
        case COPY:
            good = w->known[op->a];
            to[i] = a[i];
            break;
        case BREAK:
            good = false;
            break;
        }
    }
    if (!good) FAIL("step %u (kind %d) was done with data in doubt", op->step, (int)op->kind);
    w->known[op->to] = true;
    return good;
}

/* What happened to a buffer in this batch, for whoever must find out why. */
static void explain(const struct world *w, uint32_t buffer) {
    static const char *const names[] = {"iota", "mix", "churn", "fill", "copy", "break"};
    for (uint32_t i = 0; i < w->count; i++) {
        const struct operation *op = &w->batch[i];
        if (op->to == buffer)
            fprintf(stderr, "    step %u: %s -> %u of %u, %u, lane %#llx at %llu: %s\n", op->step,
                    names[op->kind], op->to, op->a, op->b, (unsigned long long)op->ticket.lane,
                    (unsigned long long)op->ticket.sequence,
                    bh_status_name(bh_wait(op->ticket, 0)));
    }
}

/* False: something was wrong, and going on would only repeat it. */
static bool run_batch(struct world *w, bool breaks) {
    bool good = true;
    w->count = 0;
    for (int i = 0; i < BATCH; i++) {
        struct operation *op = &w->batch[w->count];
        op->step = ++w->step;
        op->kind = breaks && rng_below(&w->random, 40) == 0
                       ? BREAK
                       : (enum kind)rng_below(&w->random, BREAK);
        op->to = rng_below(&w->random, BUFFERS);
        op->a = (op->to + 1 + rng_below(&w->random, BUFFERS - 1)) % BUFFERS;
        op->b = (op->to + 1 + rng_below(&w->random, BUFFERS - 1)) % BUFFERS;
        bh_status status = submit_one(w, op);
        if (status == BH_OK)
            w->count++;
        else
            CHECK_STATUS(status, BH_E_STALE);
    }
    CHECK_OK(bh_device_sync(w->r.device, LONG_NS));
    for (uint32_t i = 0; i < w->count; i++) {
        const struct operation *op = &w->batch[i];
        bh_status status = bh_wait(op->ticket, 0);
        if (status == BH_OK) {
            good = apply(w, op) && good;
            continue;
        }
        if (status != BH_E_LOST && status != BH_E_STALE && status != BH_E_FAULT) {
            FAIL("step %u (kind %d) is %s after a sync", op->step, (int)op->kind,
                 bh_status_name(status));
            good = false;
        }
        w->known[op->to] = false;
    }
    for (uint32_t i = 0; i < BUFFERS; i++) {
        uint32_t got[WORDS];
        bool suspect = is_suspect(w->buffers[i]);
        if (suspect == w->known[i]) {
            FAIL("after step %u buffer %u is %ssuspect", w->step, i, suspect ? "" : "not ");
            explain(w, i);
            good = false;
        }
        if (suspect || !w->known[i]) continue;
        bh_status status = bh_buffer_read(w->buffers[i], 0, got, sizeof got);
        CHECK_OK(status);
        if (status == BH_OK) CHECK_MEM_EQ(got, w->model[i], sizeof got);
        good = good && status == BH_OK && memcmp(got, w->model[i], sizeof got) == 0;
    }
    return good;
}

static void run_history(uint64_t seed, uint32_t flags, bool kills, bool breaks, unsigned ms) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT | flags);
    options.quarantine_after = UINT32_MAX;
    struct world w = {.r = rig_open_with(&options), .random = rng_seeded(seed)};
    struct killer killer = {.device = w.r.device, .seed = seed};
    pthread_t thread;
    for (int i = 0; i < LANES; i++) w.lanes[i] = open_lane(w.r.device);
    w.untouched = words_counting(w.r.device, 5000, 123);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        w.buffers[i] = words_counting(w.r.device, WORDS, i);
        w.known[i] = true;
        for (uint32_t k = 0; k < WORDS; k++) w.model[i][k] = i + k;
    }
    if (kills) REQUIRE(pthread_create(&thread, NULL, kill_now_and_then, &killer) == 0);
    uint64_t end = now_ns() + test_span_ns(ms);
    while (run_batch(&w, breaks) && now_ns() < end)
        ;
    if (kills) {
        atomic_store(&killer.stop, 1);
        pthread_join(thread, NULL);
        CHECK_GT(killer.kills, 0);
    }
    CHECK(words_count(w.untouched, 5000, 123));
    check_device_works(&w.r);
    fprintf(stderr, "%u steps, %llu losses\n", w.step,
            (unsigned long long)health_of(w.r.device).losses);
    CHECK_OK(bh_device_close(w.r.device));
}

TEST(workers_killed_at_random_moments) {
    run_history(1, 0, true, false, 2500);
}

TEST(workers_killed_at_random_moments_without_standby) {
    run_history(2, BH_DEVICE_NO_STANDBY, true, false, 2500);
}

TEST(kernels_that_fault_at_random) {
    run_history(3, 0, false, true, 2500);
}

TEST(kernels_that_fault_and_workers_that_are_killed) {
    run_history(4, 0, true, true, 2500);
}

TEST(no_losses_no_doubt) {
    run_history(5, 0, false, false, 500);
}
