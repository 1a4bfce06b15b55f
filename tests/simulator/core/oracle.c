/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold where bytes are written, whatever calls return: nobody works on bytes that another
 * one still works on, and a worker that has a successor writes nothing that the successor has
 * touched.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { MAX_ACTIVE = 512, GRANULE = 64, BUCKETS = 1 << 14 };

static struct {
    sim_access what;
    const fiber *by; /* NULL: over */
} active[MAX_ACTIVE];

/* The order in which workers first executed anything: a successor is later. */
static unsigned rank[MAX_PROCESSES], ranks;

static unsigned rank_of(int worker) {
    if (!rank[worker]) rank[worker] = ++ranks;
    return rank[worker];
}

/* Who touched which bytes last. */
typedef struct touched {
    struct touched *next;
    uint64_t granule;
    int worker;
} touched;
static touched *buckets[BUCKETS];

static touched *touched_at(uint64_t granule) {
    touched **link = &buckets[granule * 0x9e3779b97f4a7c15ull >> 50];
    for (touched *it = *link; it; it = it->next)
        if (it->granule == granule) return it;
    touched *it = calloc(1, sizeof *it);
    it->granule = granule;
    it->next = *link;
    return *link = it;
}

static bool meet(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
    return a_bytes && b_bytes && a < b + b_bytes && b < a + a_bytes;
}

static void fail_pair(const sim_access *a, const sim_access *b) {
    sim_fail(SIM_BUG,
             "worker %d begins request %llu of lane %u on bytes that worker %d still uses for "
             "request %llu of lane %u",
             a->worker, (unsigned long long)a->sequence, a->lane, b->worker,
             (unsigned long long)b->sequence, b->lane);
}

static void touch(const sim_access *what, uint64_t address, uint64_t bytes, bool write) {
    for (uint64_t at = address / GRANULE; bytes && at <= (address + bytes - 1) / GRANULE; at++) {
        touched *it = touched_at(at);
        if (it->worker && it->worker != what->worker &&
            rank_of(it->worker) > rank_of(what->worker)) {
            /* Two workers of one rank order: the later one went on from here. */
            if (write)
                sim_fail(SIM_BUG,
                         "worker %d writes for request %llu of lane %u where worker %d went on "
                         "after it was lost",
                         what->worker, (unsigned long long)what->sequence, what->lane, it->worker);
            continue;
        }
        it->worker = what->worker;
    }
}

int sim_access_begin(const sim_access *what) {
    int number = -1;
    rank_of(what->worker);
    for (int i = 0; i < MAX_ACTIVE; i++) {
        if (active[i].by && active[i].by->dead) active[i].by = NULL;
        if (!active[i].by) {
            if (number < 0) number = i;
            continue;
        }
        const sim_access *other = &active[i].what;
        if (meet(what->target, what->target_bytes, other->target, other->target_bytes) ||
            meet(what->target, what->target_bytes, other->source, other->source_bytes) ||
            meet(what->source, what->source_bytes, other->target, other->target_bytes))
            fail_pair(what, other);
    }
    if (number < 0) sim_fail(SIM_UNSUPPORTED, "too many requests at once");
    active[number].what = *what;
    active[number].by = sim_current;
    touch(what, what->source, what->source_bytes, false);
    return number;
}

void sim_access_write(int number, uint64_t address, uint64_t bytes) {
    touch(&active[number].what, address, bytes, true);
}

void sim_access_end(int number) {
    active[number].by = NULL;
}
