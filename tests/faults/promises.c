/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs of every kind of work, while workers are killed and stopped, kernels fault and
 * overrun deadlines, and the program cancels, accepts, releases and closes at random; checked byte
 * by byte against a model that carries the work out in the order it was submitted. What is done
 * read nothing in doubt and left exact bytes; what did not end well leaves just its targets in
 * doubt; what was cancelled or refused leaves no trace. */
#include "promises/promises.h"
#include "../support/transfers.h"

#include <signal.h>

/* ---- a batch ---- */

static bool is_launch(const op *o) {
    return o->kind <= PREPARED_MIX || o->kind == BREAK || o->kind == HANG;
}

static void check_answer(world *w, op *o) {
    bh_error why;
    o->status = bh_wait(o->ticket, 0);
    if (o->seen != BH_E_BUSY && o->status != o->seen)
        WRONG(w, o, "step %u was %s and is %s", o->step, bh_status_name(o->seen),
              bh_status_name(o->status));
    if (o->cancelled != (o->status == BH_E_CANCELLED))
        WRONG(w, o, "step %u: cancel said %d, it is %s", o->step, o->cancelled,
              bh_status_name(o->status));
    w->old[w->old_count % OLD].ticket = o->ticket;
    w->old[w->old_count++ % OLD].status = o->status;
    for (int i = 0; o->watched && __atomic_load_n(&o->callbacks, __ATOMIC_SEQ_CST) == 0; i++) {
        if (i == 5000) {
            WRONG(w, o, "step %u: no callback", o->step);
            break;
        }
        sleep_ms(1);
    }
    if (o->callbacks > 1) WRONG(w, o, "step %u: %u callbacks", o->step, o->callbacks);
    if (o->callbacks == 1 && o->told != o->status)
        WRONG(w, o, "step %u: the callback was told %s, it is %s", o->step, bh_status_name(o->told),
              bh_status_name(o->status));
    if (o->status == BH_OK) return;
    CHECK_STATUS(bh_ticket_error(o->ticket, &why), o->status);
    if (why.status != o->status || !why.message[0] || !why.fix[0] ||
        (is_launch(o) && !why.kernel[0]) || why.ticket.sequence != o->ticket.sequence)
        WRONG(w, o, "step %u (%s): %s, message \"%s\", fix \"%s\", kernel \"%s\"", o->step,
              kind_names[o->kind], bh_status_name(o->status), why.message, why.fix, why.kernel);
}

/* Suspect where the model says so, and nowhere else: over runs of bytes that are of one state. */
static void check_doubt(world *w, area *a) {
    uint64_t at = 0;
    while (at < a->bytes) {
        uint64_t end = at + 1;
        while (end < a->bytes && a->state[end] == a->state[at]) end++;
        if (a->state[at] != ANY) {
            use run = {a, at, end - at, true};
            bh_buffer view = view_of(&run);
            bh_buffer_info info = BH_INIT(info);
            CHECK_OK(bh_buffer_get_info(view, &info));
            bool right = a->state[at] == KNOWN ? !info.suspect
                                               : info.suspect && info.suspect_bytes == info.bytes;
            if (!right) {
                op about = {.reads = {run}, .read_count = 1};
                FAIL(
                    "after step %u: %p, bytes %llu to %llu of %llu are %s: %llu bytes from %llu on "
                    "are suspect",
                    w->step, (void *)a, (unsigned long long)at, (unsigned long long)end,
                    (unsigned long long)a->bytes, a->state[at] == KNOWN ? "good" : "in doubt",
                    (unsigned long long)info.suspect_bytes,
                    (unsigned long long)info.suspect_offset);
                explain(w, &about);
            }
            CHECK_OK(bh_buffer_release(view));
        }
        at = end;
    }
}

static void read_back(area *a) {
    CHECK_OK(bh_buffer_accept(a->buffer));
    bh_status status = bh_buffer_read(a->buffer, 0, a->value, a->bytes);
    while (status == BH_E_LOST || status == BH_E_FAULT || status == BH_E_LAUNCH ||
           (status == BH_E_STALE && refusing()))
        status = bh_buffer_read(a->buffer, 0, a->value, a->bytes);
    CHECK_OK(status);
    memset(a->state, KNOWN, a->bytes);
}

static void check_area(world *w, area *a) {
    if (refusing() && a->mapped && is_suspect(a->buffer)) memset(a->state, ANY, a->bytes);
    if (!refusing() || !a->mapped) check_doubt(w, a);
    for (uint64_t at = 0; at < a->bytes && test_failures() == 0;) {
        uint64_t end = at + 1;
        if (a->state[at] != KNOWN) {
            at++;
            continue;
        }
        while (end < a->bytes && a->state[end] == KNOWN) end++;
        uint8_t *got = malloc(end - at);
        bh_status status = bh_buffer_read(a->buffer, at, got, end - at);
        while (status == BH_E_LOST || status == BH_E_LAUNCH ||
               (status == BH_E_STALE && refusing() && a->mapped && !is_suspect(a->buffer)))
            status = bh_buffer_read(a->buffer, at, got, end - at);
        CHECK_OK(status);
        if (memcmp(got, a->value + at, end - at) != 0) {
            uint64_t k = 0;
            while (got[k] == a->value[at + k]) k++;
            uint64_t last = end - at - 1;
            while (got[last] == a->value[at + last]) last--;
            op about = {.reads = {{a, at + k, last - k + 1, true}}, .read_count = 1};
            FAIL(
                "after step %u: %p: bytes %llu to %llu of %llu are intact and not what they should "
                "be",
                w->step, (void *)a, (unsigned long long)(at + k),
                (unsigned long long)(at + last + 1), (unsigned long long)a->bytes);
            explain(w, &about);
        }
        free(got);
        at = end;
    }
    /* What the program has of a managed buffer. */
    if (a->mapped && below(w, 2)) {
        use whole = {a, 0, a->bytes, true};
        bool good = is_all(&whole, KNOWN), bad = has_any(&whole, DOUBT);
        bh_status status = bh_managed_map(a->buffer, 0, a->bytes, BH_MAP_READ, NULL);
        if (good) CHECK_OK(status);
        if (bad) CHECK_STATUS(status, BH_E_STALE);
        if (status == BH_OK) {
            if (good) CHECK_MEM_EQ(a->mapped, a->value, a->bytes);
            CHECK_OK(bh_managed_unmap(a->mapped, a->bytes));
        }
        use part = some_use(w, a, a->bytes);
        if (good && below(w, 2)) {
            const uint8_t *source = some_source(w, part.bytes);
            CHECK_OK(bh_managed_map(a->buffer, part.offset, part.bytes, BH_MAP_WRITE, NULL));
            memcpy(a->mapped + part.offset, source, part.bytes);
            memcpy(a->value + part.offset, source, part.bytes);
            CHECK_OK(bh_managed_unmap(a->mapped + part.offset, part.bytes));
        } else if (good && a->transparent) {
            const uint8_t *source = some_source(w, part.bytes);
            CHECK_MEM_EQ(a->mapped, a->value, a->bytes);
            memcpy(a->mapped + part.offset, source, part.bytes);
            memcpy(a->value + part.offset, source, part.bytes);
        }
    }
    if (memchr(a->state, ANY, a->bytes)) read_back(a);
    if (below(w, 4) == 0 && memchr(a->state, DOUBT, a->bytes)) read_back(a);
}

static void run_batch(world *w, bool breaks, bool cancels, bool changes) {
    area *gone[BATCH];
    uint32_t gone_count = 0;
    uint32_t length = 1 + below(w, BATCH);
    w->count = w->host_used = w->piece_count = 0;
    while (w->count < length) {
        op *o = &w->batch[w->count];
        if (submit_one(w, o, breaks)) w->count++;
        if (cancels && below(w, 5) == 0) cancel_one(w);
        if (below(w, 4) == 0) ask_one(w);
        if (below(w, 60) == 0) sleep_ms(below(w, 6));
        if (changes && below(w, 60) == 0) {
            uint32_t which = below(w, w->lane_count);
            CHECK_OK(bh_lane_release(w->lanes[which]));
            bh_status status = bh_lane_open(w->r.device, NULL, &w->lanes[which]);
            while (status == BH_E_BUSY)
                sleep_ms(1), status = bh_lane_open(w->r.device, NULL, &w->lanes[which]);
            REQUIRE_OK(status);
        }
        if (changes && below(w, 80) == 0 && gone_count < BATCH) {
            /* Slots from 6 on are not used by what was prepared and recorded. */
            uint32_t which = 6 + below(w, 3);
            area *a = w->slots[which];
            CHECK_OK(bh_buffer_release(a->buffer));
            gone[gone_count++] = a;
            w->slots[which] = area_new(w, a->bytes, a->mapped ? 1 : 0);
        }
    }
    if (below(w, 2)) {
        CHECK_OK(bh_device_sync(w->r.device, LONG_NS));
    } else {
        for (uint32_t i = 0; i < w->count; i++) {
            const op *o = &w->batch[i];
            if (o->has_ticket && bh_wait(o->ticket, LONG_NS) == BH_E_TIMEOUT)
                WRONG(w, o, "step %u never ends", o->step);
        }
        if (below(w, 2)) CHECK_OK(bh_device_sync(w->r.device, LONG_NS));
    }
    for (uint32_t i = 0; i < w->count; i++) {
        op *o = &w->batch[i];
        w->tally[o->has_ticket ? bh_wait(o->ticket, 0) : o->status]++;
        if (o->has_ticket) check_answer(w, o);
        apply_to_model(w, o);
        free(o->read_now);
        o->read_now = NULL;
    }
    for (uint32_t i = 0; i < SLOTS; i++) check_area(w, w->slots[i]);
    for (uint32_t i = 0; i < w->piece_count; i++)
        CHECK_OK(bh_host_pool_give(w->pool, w->pieces[i]));
    for (uint32_t i = 0; i < 20 && w->old_count; i++) {
        uint64_t which = below(w, w->old_count < OLD ? w->old_count : OLD);
        CHECK_STATUS(bh_wait(w->old[which].ticket, 0), w->old[which].status);
    }
    CHECK_OK(bh_device_sync(w->r.device, LONG_NS));
    for (uint32_t i = 0; i < gone_count; i++) area_free(gone[i]);
}

/* ---- workers that die ---- */

struct striker {
    bh_device device;
    _Atomic(int) stop;
    uint64_t seed;
    uint32_t period;
    int strikes;
};

static void *strike_now_and_then(void *context) {
    struct striker *self = context;
    rng random = {self->seed};
    while (!atomic_load(&self->stop)) {
        /* Workers that start slowly must get something done in between. */
        uint32_t pause = test_time_scale() > 1 ? 500 : 0;
        sleep_ms(pause + rng_below(&random, self->period));
        bh_health health = health_of(self->device);
        if (health.worker_pid <= 0) continue;
        uint32_t way = rng_below(&random, 8);
        if (way > 1) {
            kill(health.worker_pid, SIGKILL);
        } else {
            kill(health.worker_pid, SIGSTOP);
            sleep_ms(rng_below(&random, 20));
            kill(health.worker_pid, way ? SIGCONT : SIGKILL);
        }
        self->strikes++;
    }
    return NULL;
}

static void world_open(world *w, rig r, uint64_t seed) {
    static const uint64_t sizes[SLOTS] = {
        4 * KIB, 4 * KIB + 4, 8 * KIB, 5000, 64 * KIB + 8, MIB + 12, 6000, 3 * MIB + 500, 20 * KIB};
    w->r = r;
    w->random.state = seed;
    w->lane_count = 1 + below(w, LANES_MAX);
    for (uint32_t i = 0; i < w->lane_count; i++) w->lanes[i] = open_lane(w->r.device);
    w->arena_bytes = 48 * MIB;
    w->arena = malloc(w->arena_bytes);
    for (uint64_t i = 0; i < w->arena_bytes; i += 4) {
        uint32_t word = (uint32_t)(i * 2654435761u) ^ (uint32_t)(i >> 9);
        memcpy(w->arena + i, &word, 4);
    }
    w->host_bytes = 48 * MIB;
    REQUIRE_OK(bh_host_alloc(w->r.device, w->host_bytes, (void **)&w->host));
    REQUIRE_OK(bh_host_pool_open(w->r.device, NULL, &w->pool));
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint64_t bytes = sizes[i];
        if (i == 7 && below(w, 6) == 0 && !refusing()) bytes = 40 * MIB;
        w->slots[i] = area_new(w, bytes, i == 4 ? 1 : i == 8 ? 1 : i == 3 ? 2 : 0);
        read_back(w->slots[i]);
    }
    w->flag = flag_alloc(w->r.device);
    uint64_t addresses[SCATTERED], base = address_of(w->slots[0]->buffer);
    for (uint32_t i = 0; i < SCATTERED; i++) {
        w->scattered[i] = i * 16 + below(w, 16);
        addresses[i] = base + w->scattered[i] * 4;
    }
    REQUIRE_OK(bh_buffer_alloc(w->r.device, BH_U64, SCATTERED, NULL, &w->table));
    REQUIRE_OK(bh_buffer_write(w->table, 0, addresses, sizeof addresses));
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        replay *p = &w->replays[i];
        p->a = w->slots[below(w, 6)];
        do p->b = w->slots[below(w, 6)];
        while (p->b == p->a);
        do p->c = w->slots[below(w, 6)];
        while (p->c == p->a || p->c == p->b);
        use u = {p->a, 0, 256, true};
        bh_buffer view = view_of(&u);
        uint32_t n = 64, zero = 0;
        uint8_t byte = 0x5a;
        REQUIRE_OK(bh_sequence_begin(w->r.device, NULL, &p->sequence));
        REQUIRE_OK(bh_sequence_launch(p->sequence, rig_kernel(&w->r, "churn"), BH_GRID(64, 64),
                                      BH_ARGS(BH_INOUT(view), zero, n), NULL, &p->launch));
        REQUIRE_OK(record_copy(p->sequence, p->b->buffer, 8, p->a->buffer, 0, 256, NULL));
        REQUIRE_OK(record_fill(p->sequence, p->c->buffer, 300, 100, &byte, 1, NULL));
        REQUIRE_OK(bh_sequence_finish(p->sequence));
        CHECK_OK(bh_buffer_release(view));
    }
    for (uint32_t i = 0; i < PREPARED; i++) {
        area **of = w->prepared_areas[i];
        of[0] = w->slots[below(w, 6)];
        do of[1] = w->slots[below(w, 6)];
        while (of[1] == of[0]);
        do of[2] = w->slots[below(w, 6)];
        while (of[2] == of[0]);
        bh_launch_options how = on_lane((bh_lane){0}, i % 2 ? BH_SUBMIT_IDEMPOTENT : 0);
        use to = word_use(of[0], 0, 48), x = word_use(of[1], 0, 48), y = word_use(of[2], 0, 48);
        bh_buffer vt = view_of(&to), vx = view_of(&x), vy = view_of(&y);
        uint32_t n = 48, k = 0;
        REQUIRE_OK(bh_prepare(rig_kernel(&w->r, "mix"), BH_GRID(n, 64),
                              BH_ARGS(BH_OUT(vt), BH_IN(vx), BH_IN(vy), k, n), &how,
                              &w->prepared[i]));
        bh_buffer_release(vt), bh_buffer_release(vx), bh_buffer_release(vy);
    }
}

enum { KILLS = 1, BREAKS = 2, CANCELS = 4, CHANGES = 8 };

static void world_close(world *w) {
    fprintf(stderr, "%u steps, %llu losses;", w->step,
            (unsigned long long)health_of(w->r.device).losses);
    for (uint32_t i = 0; i <= BH_E_INTERNAL; i++)
        if (w->tally[i])
            fprintf(stderr, " %s %llu", bh_status_name((bh_status)i),
                    (unsigned long long)w->tally[i]);
    fprintf(stderr, "\n");
}

/* Several threads, each with a world of its own on one device. */
enum { WORLDS_MAX = 3 };

typedef struct worlds {
    world *of[WORLDS_MAX];
    uint32_t what;
    uint64_t end;
} worlds;

static void live(void *context, unsigned index) {
    worlds *self = context;
    world *w = self->of[index];
    w->losing = self->what & (KILLS | BREAKS);
    do run_batch(w, self->what & BREAKS, self->what & CANCELS, self->what & CHANGES);
    while (test_failures() == 0 && now_ns() < self->end);
}

static void run_worlds(uint64_t seed, uint32_t flags, unsigned count, uint32_t what, unsigned ms) {
    worlds self = {.what = what};
    rng random = rng_seeded(seed);
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT | flags);
    options.quarantine_after = UINT32_MAX;
    options.queue_length = rng_below(&random, 2) ? 64 : 0;
    rig r = rig_open_with(&options);
    pthread_t thread;
    for (unsigned i = 0; i < count; i++) {
        self.of[i] = calloc(1, sizeof *self.of[i]);
        REQUIRE(self.of[i] != NULL);
        world_open(self.of[i], r, (uint64_t)rng_next(&random) << 32 | rng_next(&random));
    }
    struct striker striker = {
        .device = r.device, .seed = random.state, .period = 15 + rng_below(&random, 60)};
    if (what & KILLS) REQUIRE(pthread_create(&thread, NULL, strike_now_and_then, &striker) == 0);
    self.end = now_ns() + ms * MS;
    run_threads(count, live, &self);
    if (what & KILLS) {
        atomic_store(&striker.stop, 1);
        pthread_join(thread, NULL);
    }
    for (unsigned i = 0; i < count; i++) world_close(self.of[i]);
    CHECK_OK(bh_device_close(r.device));
    for (unsigned i = 0; i < count; i++) {
        world *w = self.of[i];
        for (uint64_t k = 0; k < (w->old_count < OLD ? w->old_count : OLD); k++)
            CHECK_STATUS(bh_wait(w->old[k].ticket, 0), w->old[k].status);
        for (uint32_t k = 0; k < SLOTS; k++) area_free(w->slots[k]);
        free(w->arena);
        free(w);
    }
}

TEST(work_that_is_cancelled) {
    run_worlds(2, 0, 1, CANCELS | CHANGES, 700);
}

TEST(workers_die) {
    run_worlds(3, 0, 1, KILLS, 800);
}

TEST(workers_die_and_work_is_cancelled) {
    run_worlds(4, 0, 1, KILLS | CANCELS | CHANGES, 1200);
}

TEST(kernels_fault) {
    run_worlds(5, 0, 1, BREAKS | CANCELS, 1200);
}

TEST(everything_at_once) {
    run_worlds(6, 0, 1, KILLS | BREAKS | CANCELS | CHANGES, 1500);
}

TEST(everything_at_once_without_standby) {
    run_worlds(7, BH_DEVICE_NO_STANDBY, 1, KILLS | BREAKS | CANCELS | CHANGES, 1500);
}

TEST(everything_at_once_in_three_threads) {
    rig r = rig_open(0);
    bool slow = has_queues(r.device) && test_time_scale() > 1;
    CHECK_OK(bh_device_close(r.device));
    if (slow) SKIP("kernels take too long behind queues and under a sanitizer");
    run_worlds(8, 0, 3, KILLS | BREAKS | CANCELS | CHANGES, 1500);
}
