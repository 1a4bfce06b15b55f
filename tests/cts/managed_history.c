/* SPDX-License-Identifier: Apache-2.0 */
/* Random histories of managed buffers: host writes, maps, launches, transfers, prefetches, advice,
 * with and without losses, against a model of every word. */
#include <signal.h>

#include "../support/buffers.h"
#include "../support/managed.h"
#include "../support/support.h"

enum { LANES = 3, BUFFERS = 4, WORDS = 5200, BATCH = 24, RECENT = 8 };

enum kind { IOTA, MIX, CHURN, FILL, COPY, WRITE, BREAK };

struct operation {
    enum kind kind;
    uint32_t to, a, b, step;
    uint32_t at, at_a, at_b, count; /* words */
    bh_ticket ticket;
};

struct world {
    rig r;
    bh_lane lanes[LANES];
    bh_buffer buffers[BUFFERS];
    uint32_t *words[BUFFERS];
    bool transparent[BUFFERS];
    uint32_t model[BUFFERS][WORDS];
    bool known[BUFFERS][WORDS];
    bh_ticket last[BUFFERS][LANES]; /* that used it; lane 0: none */
    rng random;
    uint32_t step;
    struct operation batch[BATCH];
    uint32_t count;
    bool lossy;
    uint64_t checked;
};

static uint32_t below(struct world *w, uint32_t limit) {
    return rng_below(&w->random, limit);
}

/* A range of words; often at a page's border, sometimes all. */
static uint32_t pick_range(struct world *w, uint32_t *count) {
    uint32_t choice = below(w, 8), from = below(w, WORDS);
    if (choice == 0) {
        *count = WORDS;
        return 0;
    }
    if (choice < 3) from = from / 1024 * 1024;
    *count = 1 + below(w, choice < 5 ? 100 : WORDS - from);
    if (*count > WORDS - from) *count = WORDS - from;
    return from;
}

static bh_buffer view_of(struct world *w, uint32_t buffer, uint32_t from, uint32_t count) {
    bh_buffer view;
    REQUIRE_OK(bh_buffer_view(w->buffers[buffer], 0, from, count, &view));
    return view;
}

static bh_status submit_one(struct world *w, struct operation *op, uint32_t lane) {
    uint32_t n = op->count;
    bh_launch_options there = on_lane(w->lanes[lane], below(w, 2) ? BH_SUBMIT_IDEMPOTENT : 0);
    bh_buffer to = view_of(w, op->to, op->at, n), a = view_of(w, op->a, op->at_a, n);
    bh_buffer b = view_of(w, op->b, op->at_b, n);
    bh_status status = BH_E_INVALID;
    uint32_t *source;
    switch (op->kind) {
    case IOTA:
        status = bh_launch(rig_kernel(&w->r, "iota"), BH_GRID(n, 64),
                           BH_ARGS(BH_OUT(to), op->step, n), &there, &op->ticket);
        break;
    case MIX:
        status =
            bh_launch(rig_kernel(&w->r, "mix"), BH_GRID(n, 64),
                      BH_ARGS(BH_OUT(to), BH_IN(a), BH_IN(b), op->step, n), &there, &op->ticket);
        break;
    case CHURN:
        status = bh_launch(rig_kernel(&w->r, "churn"), BH_GRID(n, 64),
                           BH_ARGS(BH_INOUT(to), op->step, n), &there, &op->ticket);
        break;
    case FILL:
        status = bh_submit_fill(there.lane, to, 0, n * 4, &op->step, 4, &op->ticket);
        break;
    case COPY:
        status = bh_submit_copy(there.lane, to, 0, a, 0, n * 4, &op->ticket);
        break;
    case WRITE:
        source = malloc(n * 4);
        for (uint32_t i = 0; i < n; i++) source[i] = op->step * 3 + i;
        status = bh_submit_write(there.lane, to, 0, source, n * 4, &op->ticket);
        free(source);
        break;
    case BREAK:
        status = bh_launch(rig_kernel(&w->r, "write_then_poke"), BH_GRID(n, 64),
                           BH_ARGS(BH_INOUT(to), n, NOWHERE), &there, &op->ticket);
        break;
    }
    REQUIRE_OK(bh_buffer_release(to));
    REQUIRE_OK(bh_buffer_release(a));
    REQUIRE_OK(bh_buffer_release(b));
    if (status == BH_OK) {
        w->last[op->to][lane] = op->ticket;
        if (op->kind == MIX || op->kind == COPY) w->last[op->a][lane] = op->ticket;
        if (op->kind == MIX) w->last[op->b][lane] = op->ticket;
    }
    return status;
}

/* What the model says of an operation that was done. */
static void apply(struct world *w, const struct operation *op) {
    bool good = op->kind != BREAK;
    for (uint32_t i = 0; i < op->count; i++) {
        uint32_t *to = &w->model[op->to][op->at + i];
        uint32_t a = w->model[op->a][op->at_a + i], b = w->model[op->b][op->at_b + i];
        bool knows_a = w->known[op->a][op->at_a + i], knows_b = w->known[op->b][op->at_b + i];
        switch (op->kind) {
        case IOTA:
            *to = op->step + i;
            break;
        case MIX:
            good = good && knows_a && knows_b;
            *to = mix_word(a, b, op->step);
            break;
        case CHURN:
            good = good && w->known[op->to][op->at + i];
            *to = churn_word(*to, op->step);
            break;
        case FILL:
            *to = op->step;
            break;
        case COPY:
            good = good && knows_a;
            *to = a;
            break;
        case WRITE:
            *to = op->step * 3 + i;
            break;
        case BREAK:
            break;
        }
        w->known[op->to][op->at + i] = true;
    }
    if (!good) FAIL("step %u (kind %d) was done with data in doubt", op->step, (int)op->kind);
}

static bool all_known(const struct world *w, uint32_t buffer, uint32_t from, uint32_t count) {
    for (uint32_t i = from; i < from + count; i++) {
        if (!w->known[buffer][i]) return false;
    }
    return true;
}

/* Words that are known have their value; what is not known is taken as it is, if asked for. */
static void compare(struct world *w, uint32_t buffer, uint32_t from, uint32_t count,
                    const uint32_t *words, const char *how, bool adopt) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *model = &w->model[buffer][from + i];
        bool *known = &w->known[buffer][from + i];
        w->checked++;
        if (!*known) {
            if (adopt) *model = words[i];
            *known = *known || adopt;
        } else if (words[i] != *model) {
            FAIL("after step %u word %u of buffer %u, %s, is %u and should be %u", w->step,
                 from + i, buffer, how, words[i], *model);
            REQUIRE(false);
        }
    }
}

/* ---- the host's turn ---- */

/* The program knows of all that used the buffer that it is done. */
static void learn(struct world *w, uint32_t buffer) {
    for (uint32_t i = 0; i < LANES; i++) {
        if (!w->last[buffer][i].lane) continue;
        bh_status status = bh_wait(w->last[buffer][i], LONG_NS);
        if (!w->lossy) CHECK_OK(status);
        w->last[buffer][i] = (bh_ticket){0, 0};
    }
}

static void store(struct world *w, uint32_t buffer, uint32_t from, uint32_t count,
                  uint32_t stride) {
    for (uint32_t i = from; i < from + count; i += stride) {
        uint32_t value = rng_next(&w->random);
        w->words[buffer][i] = w->model[buffer][i] = value;
        w->known[buffer][i] = true;
    }
}

static void plain_access(struct world *w, uint32_t buffer) {
    uint32_t count, from = pick_range(w, &count);
    learn(w, buffer);
    /* Pages with bytes in doubt stay as they were. */
    for (uint32_t page = 0; page < WORDS; page += 1024) {
        uint32_t words = WORDS - page < 1024 ? WORDS - page : 1024;
        if (all_known(w, buffer, page, words))
            compare(w, buffer, page, words, w->words[buffer] + page, "seen as it is", false);
    }
    if (all_known(w, buffer, 0, WORDS)) store(w, buffer, from, count, 1 + below(w, 700));
}

static void mapped_access(struct world *w, uint32_t buffer) {
    static const uint32_t ways[] = {BH_MAP_READ, BH_MAP_WRITE, BH_MAP_READ | BH_MAP_WRITE,
                                    BH_MAP_WRITE | BH_MAP_DISCARD};
    uint32_t count, from = pick_range(w, &count), flags = ways[below(w, 4)];
    bool good = all_known(w, buffer, from, count), discard = flags & BH_MAP_DISCARD;
    if (discard && !good) { /* so that whole pages are overwritten */
        from = 0;
        count = WORDS;
    }
    void *pointer = NULL;
    bh_status status = bh_managed_map(w->buffers[buffer], from * 4, count * 4, flags, &pointer);
    if (status == BH_E_STALE && w->lossy) {
        if (all_known(w, buffer, 0, WORDS)) FAIL("a map is stale, and nothing is in doubt");
        return;
    }
    REQUIRE_OK(status);
    if (!good && !discard) FAIL("a map of data in doubt was granted");
    CHECK(pointer == w->words[buffer] + from);
    if (!discard) compare(w, buffer, from, count, pointer, "mapped", false);
    if (flags & BH_MAP_WRITE) store(w, buffer, from, count, discard ? 1 : 1 + below(w, 300));
    REQUIRE_OK(bh_managed_unmap(pointer, count * 4));
}

static void read_access(struct world *w, uint32_t buffer) {
    uint32_t count, from = pick_range(w, &count);
    uint32_t *got = malloc(count * 4);
    bh_status status = bh_buffer_read(w->buffers[buffer], from * 4, got, count * 4);
    if (all_known(w, buffer, from, count)) {
        REQUIRE_OK(status);
        compare(w, buffer, from, count, got, "read", false);
    } else {
        CHECK_STATUS(status, BH_E_STALE);
    }
    free(got);
}

static void move_about(struct world *w, uint32_t buffer) {
    uint32_t count, from = pick_range(w, &count), lane = below(w, LANES);
    uint32_t where = below(w, 2) ? BH_TO_HOST : BH_TO_DEVICE;
    if (below(w, 3) == 0) {
        REQUIRE_OK(
            bh_managed_advise(w->buffers[buffer], from * 4, count * 4,
                              below(w, (BH_ADVISE_PREFER_DEVICE | BH_ADVISE_PREFER_HOST) + 1)));
        return;
    }
    bh_status status =
        prefetch_on(w->lanes[lane], w->buffers[buffer], from * 4, count * 4, where, NULL);
    if (status != BH_OK && w->lossy)
        CHECK_STATUS(status, BH_E_STALE);
    else
        CHECK_OK(status);
}

/* Doubt is ended by taking what is there. */
static void accept_doubt(struct world *w, uint32_t buffer) {
    uint32_t *got = malloc(WORDS * 4);
    REQUIRE_OK(bh_buffer_accept(w->buffers[buffer]));
    CHECK(!is_suspect(w->buffers[buffer]));
    REQUIRE_OK(bh_managed_map(w->buffers[buffer], 0, WORDS * 4, BH_MAP_READ, NULL));
    memcpy(got, w->words[buffer], WORDS * 4);
    REQUIRE_OK(bh_managed_unmap(w->words[buffer], WORDS * 4));
    compare(w, buffer, 0, WORDS, got, "accepted", true);
    REQUIRE_OK(bh_buffer_read(w->buffers[buffer], 0, got, WORDS * 4));
    compare(w, buffer, 0, WORDS, got, "accepted and read", false);
    free(got);
}

static void host_turn(struct world *w) {
    uint32_t buffer = below(w, BUFFERS);
    switch (below(w, 5)) {
    case 0:
        if (w->transparent[buffer]) {
            plain_access(w, buffer);
            break;
        }
        /* fall through */
    case 1:
    case 2:
        mapped_access(w, buffer);
        break;
    case 3:
        move_about(w, buffer);
        break;
    default:
        read_access(w, buffer);
    }
}

/* ---- the device's turn ---- */

static void new_operation(struct world *w, struct operation *op, bool breaks) {
    *op = (struct operation){.step = ++w->step};
    op->kind = breaks && below(w, 40) == 0 ? BREAK : (enum kind)below(w, BREAK);
    op->to = below(w, BUFFERS);
    op->a = (op->to + 1 + below(w, BUFFERS - 1)) % BUFFERS;
    op->b = (op->to + 1 + below(w, BUFFERS - 1)) % BUFFERS;
    op->at = pick_range(w, &op->count);
    op->at_a = below(w, WORDS - op->count + 1);
    op->at_b = below(w, WORDS - op->count + 1);
}

/* Nothing is lost: the model is right at every moment. */
static void quiet_history(uint64_t seed, uint32_t flags, unsigned ms) {
    struct world *w = calloc(1, sizeof *w);
    w->r = rig_open(flags);
    w->random = rng_seeded(seed);
    w->lanes[0] = (bh_lane){0};
    for (int i = 1; i < LANES; i++) w->lanes[i] = open_lane(w->r.device);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        uint32_t how = i < 2 ? 0 : BH_BUFFER_TRANSPARENT | (i == 3 ? BH_BUFFER_UNTRACKED : 0);
        void *pointer = NULL;
        REQUIRE_OK(alloc_managed(w->r.device, BH_U32, WORDS, how, &w->buffers[i], &pointer));
        w->words[i] = pointer;
        w->transparent[i] = i >= 2;
        REQUIRE_OK(bh_buffer_fill(w->buffers[i], 0, WORDS * 4, &i, 4));
        for (uint32_t k = 0; k < WORDS; k++) {
            w->model[i][k] = i;
            w->known[i][k] = true;
        }
    }
    uint64_t end = now_ns() + test_span_ns(ms);
    while (now_ns() < end && test_failures() == 0) {
        if (below(w, 2)) {
            host_turn(w);
            continue;
        }
        struct operation op;
        new_operation(w, &op, false);
        REQUIRE_OK(submit_one(w, &op, below(w, LANES)));
        apply(w, &op);
    }
    fprintf(stderr, "seed %llu: %u steps, %llu words compared\n", (unsigned long long)seed, w->step,
            (unsigned long long)w->checked);
    CHECK_OK(bh_device_close(w->r.device));
    free(w);
}

/* A batch of work, then what became of it, in the order of submission. */
static void lossy_batch(struct world *w, bool breaks) {
    w->count = 0;
    for (int i = 0; i < BATCH; i++) {
        struct operation *op = &w->batch[w->count];
        new_operation(w, op, breaks);
        bh_status status = submit_one(w, op, below(w, LANES));
        if (status == BH_OK)
            w->count++;
        else
            CHECK_STATUS(status, BH_E_STALE);
        if (below(w, 4) == 0) move_about(w, below(w, BUFFERS));
    }
    CHECK_OK(bh_device_sync(w->r.device, LONG_NS));
    for (uint32_t i = 0; i < w->count; i++) {
        const struct operation *op = &w->batch[i];
        bh_status status = bh_wait(op->ticket, 0);
        if (status == BH_OK) {
            apply(w, op);
            continue;
        }
        if (status != BH_E_LOST && status != BH_E_STALE && status != BH_E_FAULT)
            FAIL("step %u (kind %d) is %s after a sync", op->step, (int)op->kind,
                 bh_status_name(status));
        for (uint32_t k = 0; k < op->count; k++) w->known[op->to][op->at + k] = false;
    }
    for (uint32_t i = 0; i < BUFFERS; i++) {
        bool suspect = is_suspect(w->buffers[i]);
        if (suspect == all_known(w, i, 0, WORDS))
            FAIL("after step %u buffer %u is %ssuspect", w->step, i, suspect ? "" : "not ");
    }
}

static void lossy_history(uint64_t seed, uint32_t flags, bool kills, bool breaks, unsigned ms) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT | flags);
    options.quarantine_after = UINT32_MAX;
    struct world *w = calloc(1, sizeof *w);
    w->r = rig_open_with(&options);
    w->random = rng_seeded(seed);
    w->lossy = true;
    struct killer killer = {.device = w->r.device, .seed = seed};
    pthread_t thread;
    for (int i = 0; i < LANES; i++) w->lanes[i] = open_lane(w->r.device);
    for (uint32_t i = 0; i < BUFFERS; i++) {
        uint32_t how = i < 2 ? 0 : BH_BUFFER_TRANSPARENT | (i == 3 ? BH_BUFFER_UNTRACKED : 0);
        void *pointer = NULL;
        REQUIRE_OK(alloc_managed(w->r.device, BH_U32, WORDS, how, &w->buffers[i], &pointer));
        w->words[i] = pointer;
        w->transparent[i] = i >= 2;
        REQUIRE_OK(
            bh_managed_map(w->buffers[i], 0, WORDS * 4, BH_MAP_WRITE | BH_MAP_DISCARD, NULL));
        store(w, i, 0, WORDS, 1);
        REQUIRE_OK(bh_managed_unmap(pointer, WORDS * 4));
    }
    if (kills) REQUIRE(pthread_create(&thread, NULL, kill_now_and_then, &killer) == 0);
    uint64_t end = now_ns() + test_span_ns(ms);
    while (now_ns() < end && test_failures() == 0) {
        lossy_batch(w, breaks);
        for (int i = 0; i < 6; i++) host_turn(w);
        for (uint32_t i = 0; i < BUFFERS; i++) {
            if (!all_known(w, i, 0, WORDS) && below(w, 2)) accept_doubt(w, i);
        }
    }
    if (kills) {
        atomic_store(&killer.stop, 1);
        pthread_join(thread, NULL);
        CHECK_GT(killer.kills, 0);
    }
    fprintf(stderr, "seed %llu: %u steps, %llu losses, %llu words compared\n",
            (unsigned long long)seed, w->step, (unsigned long long)health_of(w->r.device).losses,
            (unsigned long long)w->checked);
    CHECK_OK(bh_device_close(w->r.device));
    free(w);
}

TEST(nothing_is_lost) {
    quiet_history(1, 0, 2500);
}

TEST(nothing_is_lost_either_with_another_seed) {
    quiet_history(now_ns(), 0, 2500);
}

TEST(workers_killed_at_random_moments) {
    lossy_history(2, 0, true, false, 3000);
}

TEST(workers_killed_without_standby) {
    lossy_history(3, BH_DEVICE_NO_STANDBY, true, false, 3000);
}

TEST(kernels_that_fault_at_random) {
    lossy_history(4, 0, false, true, 3000);
}

TEST(kernels_that_fault_and_workers_that_are_killed) {
    lossy_history(now_ns(), 0, true, true, 3000);
}
