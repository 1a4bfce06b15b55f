/* SPDX-License-Identifier: Apache-2.0 */
/* Who runs next, and simulated time. A seed decides everything. */
#include <stdio.h>

#include "sim.h"

enum {
    STEP_NS = 20,
    LONGEST_BURST = 4000,
    STAY_BEFORE_SNAPSHOT = 200,
    MAX_DEPTH = 8,
    LONGEST_JUMP_NS = 20000000
};

uint64_t sim_steps;
bool sim_exploring, sim_changed = true;
strategy sim_strategy;
uint64_t sim_step_limit = 800000, sim_time_limit = 300ull * 1000000000ull;

static uint64_t state = 88172645463325252ull;
static uint64_t hash = 1469598103934665603ull;
static uint64_t now = 1000000000ull, next_deadline = NEVER;
static uint64_t first_step, first_ns;
static strategy in_use;
static uint64_t change_at[MAX_DEPTH], lowest = (uint64_t)1 << 30;
static uint64_t burst;

uint64_t sim_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 2685821657736338717ull >> 11;
}

uint64_t sim_now_ns(void) {
    return now;
}
uint64_t sim_now(void) {
    return now;
}
void sim_time_pass(uint64_t ns) {
    now += ns;
}
uint64_t sim_hash(void) {
    return hash;
}

/* ---- the portfolio ---- */

/* No strategy finds everything: the seed draws one. */
static strategy draw(void) {
    strategy it = {.kind = STRATEGY_STICKY};
    switch (sim_random() % 4) {
    case 0:
        it.kind = STRATEGY_PCT;
        it.depth = 2 + (unsigned)(sim_random() % 4);
        break;
    case 1:
        it.sticky = 8u << sim_random() % 4;
        it.pause_every = 100u << sim_random() % 4;
        break;
    case 2:
        it.sticky = 8u << sim_random() % 4;
        it.store_buffer = 4u << sim_random() % 4;
        break;
    default:
        it.sticky = 100;
        it.pause_every = 100u << sim_random() % 5;
        it.store_buffer = sim_random() % 2 ? 16 : 0;
    }
    if (sim_random() % 8 == 0) it.jump = 20;
    return it;
}

void sim_schedule_begin(uint64_t seed) {
    state = seed * 0x9e3779b97f4a7c15ull + 0x1234567;
    for (int i = 0; i < 8; i++) sim_random();
    in_use = sim_strategy.kind == STRATEGY_MIX ? draw() : sim_strategy;
    first_step = sim_steps;
    first_ns = now;
    hash = 1469598103934665603ull;
    burst = 0;
    for (int i = 0; i < sim_fiber_count; i++)
        sim_fibers[i]->priority = ((uint64_t)1 << 38) + sim_random() % ((uint64_t)1 << 40);
    /* How long a run will be is not known: changes may come early or late. */
    for (unsigned i = 0; i + 1 < in_use.depth && i < MAX_DEPTH; i++)
        change_at[i] = sim_random() % ((uint64_t)1 << (6 + sim_random() % 11));
    sim_store_weight = in_use.store_buffer;
    sim_exploring = sim_changed = true;
}

const char *sim_strategy_text(void) {
    static char text[128];
    int used = in_use.kind == STRATEGY_PCT ? snprintf(text, sizeof text, "pct=%u", in_use.depth)
               : in_use.kind == STRATEGY_WALK
                   ? snprintf(text, sizeof text, "walk")
                   : snprintf(text, sizeof text, "sticky=%u", in_use.sticky);
    if (in_use.pause_every)
        used += snprintf(text + used, sizeof text - (size_t)used, " pause=%u", in_use.pause_every);
    if (in_use.store_buffer)
        used += snprintf(text + used, sizeof text - (size_t)used, " tso=%u", in_use.store_buffer);
    if (in_use.jump) snprintf(text + used, sizeof text - (size_t)used, " jump=%u", in_use.jump);
    return text;
}

/* ---- choosing ---- */

static bool can_run(fiber *self) {
    if (self->dead || self->stopped) return false;
    if (!self->blocked || self->woken) return true;
    if (self->ready && self->ready(self)) return true;
    if (self->deadline > now) return false;
    self->timed_out = true;
    return true;
}

/* Everybody who can run; lets time pass where nobody can. */
static int gather(fiber *able[MAX_FIBERS]) {
    for (;;) {
        int count = 0;
        next_deadline = NEVER;
        for (int i = 0; i < sim_fiber_count; i++) {
            fiber *self = sim_fibers[i];
            if (self->dead || self->stopped) continue;
            if (can_run(self))
                able[count++] = self;
            else if (self->deadline < next_deadline)
                next_deadline = self->deadline;
        }
        sim_changed = false;
        if (count) return count;
        if (next_deadline == NEVER)
            sim_fail(SIM_DEADLOCK, "nothing can run and nothing has a deadline");
        now = next_deadline;
    }
}

/* Before the snapshot: stay while possible, then in turn. */
static fiber *next_in_turn(void) {
    static int turn;
    fiber *able[MAX_FIBERS];
    if (can_run(sim_current) && burst++ < STAY_BEFORE_SNAPSHOT) return sim_current;
    burst = 0;
    int count = gather(able);
    return able[turn++ % count];
}

static fiber *next_by_priority(void) {
    bool change = false;
    for (unsigned i = 0; i + 1 < in_use.depth; i++)
        if (change_at[i] == sim_steps - first_step) change = true;
    if (++burst > LONGEST_BURST) change = true; /* spins without saying so */
    if (change) {
        sim_current->priority = lowest--;
        burst = 0;
    } else if (!sim_changed && now < next_deadline && can_run(sim_current)) {
        return sim_current; /* still the first, as nobody else came */
    }
    fiber *able[MAX_FIBERS], *best;
    int count = gather(able);
    best = able[0];
    for (int i = 1; i < count; i++)
        if (able[i]->priority > best->priority) best = able[i];
    if (best != sim_current) burst = 0;
    return best;
}

static fiber *choose(void) {
    if (!sim_exploring) return next_in_turn();
    if (in_use.jump && next_deadline != NEVER && sim_random() % 1000000 < in_use.jump &&
        now < next_deadline && next_deadline - now < LONGEST_JUMP_NS)
        now = next_deadline;
    if (in_use.kind == STRATEGY_PCT) return next_by_priority();
    if (in_use.kind == STRATEGY_STICKY && sim_random() % in_use.sticky && can_run(sim_current))
        return sim_current;
    fiber *able[MAX_FIBERS];
    int count = gather(able);
    return count == 1 ? able[0] : able[sim_random() % (unsigned)count];
}

static void step(const void *where) {
    sim_current->steps++;
    sim_steps++;
    now += STEP_NS;
    if (sim_steps - first_step > sim_step_limit && sim_exploring)
        sim_fail(SIM_HANG, "no end after %llu steps", (unsigned long long)(sim_steps - first_step));
    if (now - first_ns > sim_time_limit && sim_exploring)
        sim_fail(SIM_HANG, "no end after %.0f s of simulated time", (double)(now - first_ns) / 1e9);
    fiber *next = choose();
    hash = (hash ^ (uint64_t)next->id ^ (uint64_t)(uintptr_t)where << 8) * 1099511628211ull;
    hash = (hash ^ now) * 1099511628211ull;
    sim_switch_to(next);
}

void sim_point(const void *where) {
    enum { LONGEST_PAUSE_BITS = 22 }; /* 4 ms */
    if (!sim_current) return;
    if (sim_exploring && in_use.pause_every && !sim_current->dead &&
        sim_current->process != THE_KERNEL && sim_random() % in_use.pause_every == 0) {
        sim_block(WAIT_SLEEP, NULL, now + ((uint64_t)1 << sim_random() % LONGEST_PAUSE_BITS),
                  where);
        return;
    }
    step(where);
}

void sim_give_way(uint64_t ns, const void *where) {
    now += ns;
    if (sim_exploring && in_use.kind == STRATEGY_PCT && sim_current->process != THE_KERNEL)
        sim_current->priority = lowest--;
    sim_changed = true;
    if (!sim_exploring) burst = STAY_BEFORE_SNAPSHOT;
    step(where);
}

static bool block(wait_kind kind, const void *key, bool (*ready)(fiber *), void *argument,
                  uint64_t deadline, const void *where) {
    fiber *self = sim_current;
    sim_stores_flush();
    self->kind = kind;
    self->key = key;
    self->ready = ready;
    self->ready_argument = argument;
    self->deadline = deadline;
    self->woken = self->timed_out = false;
    self->blocked = true;
    sim_changed = true;
    step(where);
    bool woken = self->woken || (ready && !self->timed_out);
    self->blocked = false;
    self->kind = WAIT_NONE;
    self->ready = NULL;
    self->deadline = NEVER;
    return woken;
}

bool sim_block(wait_kind kind, const void *key, uint64_t deadline, const void *where) {
    return block(kind, key, NULL, NULL, deadline, where);
}

bool sim_block_until(wait_kind kind, bool (*ready)(fiber *), void *argument, uint64_t deadline,
                     const void *where) {
    return block(kind, NULL, ready, argument, deadline, where);
}

/* Those who wait are woken from a random one on: a futex promises no order. */
int sim_wake(wait_kind kind, const void *key, int count) {
    int woken = 0, first = 0;
    if (sim_exploring && count == 1 && sim_fiber_count)
        first = (int)(sim_random() % (unsigned)sim_fiber_count);
    for (int i = 0; i < sim_fiber_count && woken < count; i++) {
        fiber *self = sim_fibers[(first + i) % sim_fiber_count];
        if (self->dead || !self->blocked || self->woken || self->kind != kind || self->key != key)
            continue;
        self->woken = true;
        sim_changed = true;
        woken++;
    }
    return woken;
}

void sim_sleep(uint64_t ns) {
    sim_block(WAIT_SLEEP, NULL, now + ns, __builtin_return_address(0));
}
