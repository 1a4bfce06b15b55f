/* SPDX-License-Identifier: Apache-2.0 */
/* bench-cpu-peers: the CPU device beside PoCL and plain C, with the same kernels. Every result is
 * compared with that of plain C on one thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peers.h"
#include "support/bench.h"

/* A slow side stops before all rounds are done. */
enum { SIDES = 8, ROUNDS = 7, MIN_ROUNDS = 2, SIDE_MS = 300 };

static const peers_cases *const groups[] = {&peers_memory,   &peers_sums,    &peers_dense,
                                            &peers_grids,    &peers_numeric, &peers_rows,
                                            &peers_irregular};
enum { GROUPS = sizeof groups / sizeof *groups };

/* The ratios of one side to another, over all cases. */
typedef struct tally {
    char name[80];
    double sum_of_logs, least;
    const char *least_at;
    unsigned count;
} tally;
enum { TALLIES = 32 };
static tally tallies[TALLIES];
static unsigned wrong;

static void add_ratio(bool unseen, const char *pair, const char *kernel, double ratio) {
    char name[80];
    snprintf(name, sizeof name, "%s%.64s", unseen ? "unseen." : "", pair);
    tally *t = tallies;
    while (t->count && strcmp(t->name, name) != 0) t++;
    if (t == tallies + TALLIES - 1) bench_wrong("more than %d pairs of sides", TALLIES - 1);
    if (!t->count) snprintf(t->name, sizeof t->name, "%s", name);
    if (!t->count || ratio < t->least) {
        t->least = ratio;
        t->least_at = kernel;
    }
    t->sum_of_logs += log(ratio);
    t->count++;
}

/* ---- one case ---- */

typedef struct entry { /* a side in one case */
    peers_side *side;
    bool good;
    double best, spent; /* ms */
    unsigned rounds;
} entry;

static bool measure_once(entry *e) {
    if (!e->side->reset(e->side)) return false;
    uint64_t began = bench_now_ns();
    if (!e->side->run(e->side)) return false;
    double ms = (double)(bench_now_ns() - began) / 1e6;
    if (e->rounds == 0 || ms < e->best) e->best = ms;
    e->spent += ms;
    e->rounds++;
    return true;
}

static void give_up(entry *e, const peers_case *c) {
    e->good = false;
    wrong++;
    printf("WRONG %s.%s: %s\n", c->name, e->side->name, e->side->why);
}

/* The first run is not measured: it may compile. */
static void warm_up(entry *e, const peers_case *c, peers_text text, peers_data *data) {
    peers_side *s = e->side;
    e->good = true;
    if (!s->attach(s, c, text, data) || !s->reset(s) || !s->run(s) || !s->check(s)) give_up(e, c);
}

static void print_ratio(const peers_case *c, const entry *e, const entry *other) {
    char pair[64], name[128];
    snprintf(pair, sizeof pair, "%s.against_%.*s", e->side->name,
             (int)strcspn(other->side->name, "."), other->side->name);
    snprintf(name, sizeof name, "cpu-peers.%s.%s", c->name, pair);
    bench_figure(name, other->best / e->best, "ratio");
    add_ratio(c->unseen, pair, c->name, other->best / e->best);
}

static bool same_processors(const entry *a, const entry *b) {
    return strcmp(strchr(a->side->name, '.'), strchr(b->side->name, '.')) == 0;
}

/* Sides are in the order of what is compared: each with those before it. */
static void print_case(const peers_case *c, const entry *entries, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char name[128];
        snprintf(name, sizeof name, "cpu-peers.%s.%s", c->name, entries[i].side->name);
        if (entries[i].good) bench_figure(name, entries[i].best, "ms");
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (entries[i].good && entries[k].good && same_processors(&entries[i], &entries[k]))
                print_ratio(c, &entries[i], &entries[k]);
    for (size_t i = 0; i < count; i++)
        if (entries[i].good && entries[i].side->note) entries[i].side->note(entries[i].side);
}

static void run_case(const peers_case *c, peers_text text, size_t n, peers_side *sides,
                     size_t count, unsigned rounds) {
    peers_data data = {.n = n};
    entry entries[SIDES] = {{0}};
    c->prepare(&data);
    /* The first side is plain C on one thread: what it makes is right. */
    if (!sides[0].attach(&sides[0], c, text, &data) || !sides[0].reset(&sides[0]) ||
        !sides[0].run(&sides[0]))
        bench_wrong("%s in plain C: %s", c->name, sides[0].why);
    peers_expect(&data);
    for (size_t i = 0; i < count; i++) {
        entries[i].side = &sides[i];
        warm_up(&entries[i], c, text, &data);
    }
    for (unsigned round = 0; round < rounds; round++)
        for (size_t i = 0; i < count; i++) {
            entry *e = &entries[i];
            if (!e->good || (e->rounds >= MIN_ROUNDS && e->spent > SIDE_MS)) continue;
            if (!measure_once(e)) give_up(e, c);
        }
    for (size_t i = 0; i < count; i++)
        if (entries[i].good && !sides[i].check(&sides[i])) give_up(&entries[i], c);
    print_case(c, entries, count);
    for (size_t i = 0; i < count; i++) sides[i].detach(&sides[i]);
    peers_release(&data);
}

/* ---- all of them ---- */

typedef struct choice {
    const char *only; /* cases whose name contains it */
    bool tiny;
    unsigned rounds;
} choice;

static void run_cases(const choice *chosen, peers_size size, peers_side *sides, size_t count) {
    for (size_t g = 0; g < GROUPS; g++)
        for (size_t i = 0; i < groups[g]->count; i++) {
            const peers_case *c = &groups[g]->list[i];
            if (chosen->only && !strstr(c->name, chosen->only)) continue;
            run_case(c, groups[g]->text, c->sizes[chosen->tiny ? PEERS_TINY : size], sides, count,
                     chosen->rounds);
        }
}

/* Plain C, and OpenCL where it is wanted and there. Returns how many sides there are. */
static size_t open_peers(peers_side *sides, unsigned processors, bool opencl) {
    size_t count = 0;
    if (peers_open_plain(&sides[count], processors))
        count++;
    else
        bench_note("c: skipped: %s", sides[count].why);
    if (opencl && peers_open_opencl(&sides[count], processors))
        count++;
    else if (opencl)
        printf("skipped: %s: %s\n", sides[count].name, sides[count].why);
    return count;
}

/* One of the executors beside its peers, on one processor and on all. */
static void compare(const choice *chosen, const char *executor, peers_size size, bool opencl) {
    peers_side sides[SIDES];
    size_t count = 0;
    unsigned widths = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1;
    for (unsigned width = 0; width < widths; width++) {
        unsigned processors = width == 0 ? 1 : 0; /* then all of them */
        count += open_peers(&sides[count], processors, opencl);
        if (!peers_open_bulkhead(&sides[count], executor, processors))
            bench_wrong("%s: %s", sides[count].name, sides[count].why);
        count++;
    }
    run_cases(chosen, size, sides, count);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(sides[i].name, "pocl", 4) == 0) peers_close_opencl(&sides[i]);
        if (strncmp(sides[i].name, executor, strlen(executor)) == 0)
            peers_close_bulkhead(&sides[i]);
    }
}

static void print_tallies(void) {
    for (const tally *t = tallies; t->count; t++) {
        char name[128];
        snprintf(name, sizeof name, "cpu-peers.mean.%.79s", t->name);
        bench_figure(name, exp(t->sum_of_logs / t->count), "ratio");
        snprintf(name, sizeof name, "cpu-peers.least.%.79s", t->name);
        bench_figure(name, t->least, "ratio");
        bench_note("%s: geometric mean of %u kernels; the least is %s", t->name, t->count,
                   t->least_at);
    }
}

static bool take_option(choice *chosen, const char *text) {
    if (strcmp(text, "size=tiny") == 0)
        chosen->tiny = true;
    else if (strncmp(text, "only=", 5) == 0)
        chosen->only = text + 5;
    else
        return false;
    return true;
}

int main(int argc, char **argv) {
    choice chosen = {0};
    int kept = 1;
    for (int i = 1; i < argc; i++)
        if (!take_option(&chosen, argv[i])) argv[kept++] = argv[i];
    argv[kept] = NULL;
    bench_begin(kept, argv,
                "the CPU device beside PoCL and plain C; size=tiny only=NAME; a ratio above 1 is "
                "faster than what it is against");
    if (!bench_on_cpu()) {
        printf("skipped: %s is not the CPU device\n", bench_device_name());
        return 0;
    }
    chosen.rounds = (unsigned)bench_count(ROUNDS);
    compare(&chosen, "jit", PEERS_FULL, true);
    compare(&chosen, "interp", PEERS_SMALL, false);
    print_tallies();
    if (wrong) fprintf(stderr, "error: %u results are wrong; see the lines marked WRONG\n", wrong);
    return wrong ? 1 : 0;
}
