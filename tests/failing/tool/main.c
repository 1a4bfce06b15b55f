/* SPDX-License-Identifier: Apache-2.0 */
/* Makes calls fail, one after the other. See docs/failing.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

static const char usage[] =
    "failing-calls all [SCENARIO [PROCESS [CLASS]]]    every call, once and from then on\n"
    "failing-calls some RUNS SEED [PROCESS]            RUNS of each kind of call, spread evenly\n"
    "failing-calls run SCENARIO PROCESS CLASS N once|on\n"
    "failing-calls count                               how many calls each scenario makes\n"
    "JOBS=N runs so many at a time.\n";

enum { MAX_SLOTS = 32 };

static slot slots[MAX_SLOTS];
static unsigned slot_count, next_slot;
static unsigned long runs, defects;

static void finish(slot *s) {
    if (!s->pid) return;
    runs++;
    defects += slot_end(s) != RUN_GOOD;
}

static void finish_all(void) {
    for (unsigned i = 0; i < slot_count; i++) finish(&slots[i]);
}

/* Runs it when there is a slot for it. Returns the slot's last run's page, NULL at first. */
static void start(const plan *p) {
    slot *s = &slots[next_slot++ % slot_count];
    finish(s);
    slot_start(s, p);
}

/* How many calls of each kind a run makes in which none fails. */
static bool count(const scenario *s, uint64_t counts[PROCESS_KINDS][CALLS_CLASSES]) {
    plan none = {.scenario = s, .mode = FAIL_ONCE, .n = 0};
    finish_all();
    unsigned long before = defects;
    start(&none);
    finish_all();
    memcpy(counts, slots[(next_slot - 1) % slot_count].page->count,
           sizeof(uint64_t) * PROCESS_KINDS * CALLS_CLASSES);
    return defects == before;
}

/* Every `step`-th, from `first` on. */
static void run_calls(plan p, uint64_t calls, uint64_t first, uint64_t step) {
    for (p.n = first; p.n <= calls; p.n += step)
        for (p.mode = FAIL_ONCE; p.mode <= FAIL_ON; p.mode++) start(&p);
}

/* What of a scenario is run: NULL or a name for all or one; `some` runs of each kind, 0: all. */
typedef struct choice {
    const char *scenario, *process, *calls;
    uint64_t some, seed;
} choice;

static bool wanted(const char *name, const char *chosen) {
    return !chosen || strcmp(name, chosen) == 0;
}

static void run_kind(const scenario *s, unsigned process, unsigned calls, uint64_t number,
                     const choice *c) {
    plan p = {.scenario = s, .process = process, .calls = calls};
    if (number == 0) return;
    /* Threads do not make the same calls in every run: a few more are tried. */
    if (!c->some) {
        run_calls(p, number + number / 8 + 2, 1, 1);
        return;
    }
    uint64_t step = number / c->some + 1;
    run_calls(p, number, 1 + (c->seed + calls) % step, step);
}

static void run_scenario(const scenario *s, const choice *c) {
    uint64_t counts[PROCESS_KINDS][CALLS_CLASSES];
    if (!count(s, counts)) return;
    for (unsigned process = 0; process < PROCESS_KINDS; process++) {
        if (!wanted(process_names[process], c->process)) continue;
        if (s->compiles != (process == IN_COMPILER)) continue;
        for (unsigned calls = 0; calls < CALLS_CLASSES; calls++)
            if (wanted(class_names[calls], c->calls))
                run_kind(s, process, calls, counts[process][calls], c);
    }
}

static bool compiler_is_there(void) {
    bh_compiler_entry entries[8];
    size_t found = 0;
    setenv("BULKHEAD_WORKER_DIR", PROGRAMS, 1);
    if (bh_compiler_list(entries, sizeof *entries, 8, &found) != BH_OK) return false;
    for (size_t i = 0; i < found && i < 8; i++)
        if (entries[i].compiler == BH_COMPILER_CLANG) return entries[i].usable;
    return false;
}

static void run_chosen(const choice *c) {
    for (unsigned i = 0; i < scenario_count; i++) {
        const scenario *s = &scenarios[i];
        bool compiles = wanted(process_names[IN_COMPILER], c->process);
        if (!wanted(s->name, c->scenario) || (s->compiles && !compiles)) continue;
        if (c->process && strcmp(c->process, "compiler") == 0 && !s->compiles) continue;
        if (s->compiles && !compiler_is_there()) {
            printf("skip: there is no clang that compiles for GPUs\n");
            continue;
        }
        unsigned long before = runs;
        run_scenario(s, c);
        finish_all();
        printf("%s: %lu runs\n", s->name, runs - before);
        fflush(stdout);
    }
}

static void print_counts(void) {
    uint64_t counts[PROCESS_KINDS][CALLS_CLASSES];
    for (unsigned i = 0; i < scenario_count; i++) {
        if (!count(&scenarios[i], counts)) continue;
        for (unsigned process = 0; process < PROCESS_KINDS; process++) {
            printf("%-13s%-12s", scenarios[i].name, process_names[process]);
            for (unsigned calls = 0; calls < CALLS_CLASSES; calls++)
                printf(" %s %llu", class_names[calls], (unsigned long long)counts[process][calls]);
            printf("\n");
        }
    }
}

static int index_of(const char *name, const char *const *names, int names_count) {
    for (int i = 0; i < names_count; i++)
        if (strcmp(name, names[i]) == 0) return i;
    fprintf(stderr, "failing-calls: \"%s\" is not known\n", name);
    exit(2);
}

static const scenario *scenario_named(const char *name) {
    for (unsigned i = 0; i < scenario_count; i++)
        if (strcmp(scenarios[i].name, name) == 0) return &scenarios[i];
    fprintf(stderr, "failing-calls: there is no scenario \"%s\"\n", name);
    exit(2);
}

static void run_one(char **arguments) {
    plan p = {.scenario = scenario_named(arguments[0])};
    p.process = (failing_process)index_of(arguments[1], process_names, PROCESS_KINDS);
    p.calls = (failing_class)index_of(arguments[2], class_names, CALLS_CLASSES);
    p.n = strtoull(arguments[3], NULL, 10);
    p.mode = strcmp(arguments[4], "once") == 0 ? FAIL_ONCE : FAIL_ON;
    start(&p);
    finish_all();
}

static void make_slots(void) {
    const char *jobs = getenv("JOBS");
    long wanted_jobs = jobs ? strtol(jobs, NULL, 10) : sysconf(_SC_NPROCESSORS_ONLN);
    slot_count = wanted_jobs < 1 ? 1 : wanted_jobs > MAX_SLOTS ? MAX_SLOTS : (unsigned)wanted_jobs;
    for (unsigned i = 0; i < slot_count; i++) slot_make(&slots[i], i);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    make_slots();
    if (strcmp(what, "all") == 0) {
        run_chosen(&(choice){.scenario = argc > 2 ? argv[2] : NULL,
                             .process = argc > 3 ? argv[3] : NULL,
                             .calls = argc > 4 ? argv[4] : NULL});
    } else if (strcmp(what, "some") == 0 && argc > 3) {
        run_chosen(&(choice){.some = strtoull(argv[2], NULL, 10),
                             .seed = strtoull(argv[3], NULL, 10),
                             .process = argc > 4 ? argv[4] : NULL});
    } else if (strcmp(what, "run") == 0 && argc == 7) {
        run_one(argv + 2);
    } else if (strcmp(what, "count") == 0) {
        print_counts();
    } else {
        fputs(usage, stderr);
        return 2;
    }
    for (unsigned i = 0; i < slot_count; i++) slot_remove(&slots[i]);
    printf("%lu runs, %lu with defects\n", runs, defects);
    return defects ? 1 : 0;
}
