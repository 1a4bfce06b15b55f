/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator's command line. A scenario prepares its world once; each seed is then one run of
 * the rest in a child of fork(), which is a snapshot of that world.
 */
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "heap.h"
#include "sim.h"

enum { USAGE = 2, NOTE_BYTES = 200, NOTES = 64, RUN_SECONDS = 60 };

static const char *const results[] = {"fine", "BUG", "DEADLOCK", "HANG", "CRASH", "UNSUPPORTED"};

static const sim_scenario *chosen;
static uint64_t first_seed = 1, seeds = 100;
static const char *without = "", *program_name = "bulkhead-simulator";
static bool verbose, until_found, want_hash, snapshot_taken, quiet;
static double most_seconds;
static uint64_t seed_now;
static int report_fd = -1;

/* ---- the end of a run ---- */

typedef struct outcome {
    int code;
    uint64_t hash;
    char text[320];
} outcome;
static outcome result;

static char notes[NOTES][NOTE_BYTES];
static unsigned note_count;

void sim_note(const char *format, ...) {
    if (!verbose) return;
    va_list list;
    va_start(list, format);
    char text[NOTE_BYTES - 40];
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    snprintf(notes[note_count++ % NOTES], NOTE_BYTES, "%.6f s, %s: %s", (double)sim_now_ns() / 1e9,
             sim_current ? sim_current->name : "-", text);
}

static void print_run(int code) {
    for (unsigned i = note_count > NOTES ? note_count - NOTES : 0; i < note_count; i++)
        fprintf(stderr, "  %s\n", notes[i % NOTES]);
    fprintf(stderr, "seed %llu (%s): %s%s%s\n", (unsigned long long)seed_now, sim_strategy_text(),
            results[code], *result.text ? ": " : "", result.text);
    if (code != SIM_OK) sim_backtraces();
    fprintf(stderr, "%llu steps, hash %016llx\n", (unsigned long long)sim_steps,
            (unsigned long long)sim_hash());
}

void sim_finish(int code) {
    result.code = code;
    result.hash = sim_hash();
    if (verbose) print_run(code);
    fflush(NULL);
    if (report_fd >= 0 && write(report_fd, &result, sizeof result) < 0) code = SIM_CRASH;
    _exit(code);
}

void sim_fail(int code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(result.text, sizeof result.text, format, list);
    va_end(list);
    if (!snapshot_taken)
        fprintf(stderr, "before the snapshot: %s: %s\n", results[code], result.text);
    sim_finish(code);
}

static void on_crash(int signal, siginfo_t *info, void *context) {
    const ucontext_t *at = context;
    snprintf(result.text, sizeof result.text, "signal %d at 0x%llx, address %p", signal,
             (unsigned long long)at->uc_mcontext.gregs[REG_RIP], info->si_addr);
    sim_finish(SIM_CRASH);
}

static void catch_crashes(void) {
    static char stack[64 * 1024];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = on_crash,
                               .sa_flags = SA_ONSTACK | SA_RESETHAND | SA_SIGINFO};
    sigaltstack(&alternate, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGABRT, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
}

void sim_nothing_left(void) {
    unsigned threads = sim_threads_alive() - 1, fds = sim_fds_left(0), maps = sim_mappings_left(0);
    if (threads) sim_fail(SIM_BUG, "%u threads are left", threads);
    if (fds) sim_fail(SIM_BUG, "%u descriptors are left", fds);
    if (maps) sim_fail(SIM_BUG, "%u mappings are left", maps);
    const void *where;
    size_t count, bytes = sim_heap_leaked(&where, &count);
    if (count)
        sim_fail(SIM_BUG, "%zu bytes in %zu blocks leaked, one of them allocated at %p", bytes,
                 count, where);
}

/* ---- seeds ---- */

static double wall_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void begin(uint64_t seed) {
    seed_now = seed;
    sim_schedule_begin(seed);
    if (!verbose) alarm(RUN_SECONDS); /* a call that nothing simulates would block for ever */
}

static outcome run_child(uint64_t seed, bool *out_is_child) {
    int ends[2];
    outcome got = {.code = SIM_CRASH, .text = "the run left no report"};
    *out_is_child = false;
    if (pipe(ends) < 0) exit(USAGE);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        report_fd = ends[1];
        *out_is_child = true;
        begin(seed);
        return got;
    }
    close(ends[1]);
    if (child < 0) {
        perror("fork");
        exit(USAGE);
    }
    outcome read_back;
    if (read(ends[0], &read_back, sizeof read_back) == sizeof read_back) got = read_back;
    close(ends[0]);
    waitpid(child, NULL, 0);
    return got;
}

/* Failures of one kind: the same words, whatever the numbers. */
typedef struct kind {
    int code;
    uint64_t count, first;
    char words[160], text[320];
} kind;

enum { MAX_KINDS = 32 };
typedef struct tally {
    uint64_t runs, failed;
    kind kinds[MAX_KINDS];
    unsigned kind_count;
} tally;

static void words_of(const char *text, char *out, size_t bytes) {
    size_t used = 0;
    for (; *text && used + 1 < bytes; text++)
        if (*text < '0' || *text > '9') out[used++] = *text;
    out[used] = 0;
}

static void add_up(tally *all, uint64_t seed, const outcome *one) {
    all->runs++;
    if (one->code == SIM_OK) return;
    all->failed++;
    char words[sizeof all->kinds[0].words];
    words_of(one->text, words, sizeof words);
    for (unsigned i = 0; i < all->kind_count; i++) {
        if (all->kinds[i].code != one->code || strcmp(all->kinds[i].words, words)) continue;
        all->kinds[i].count++;
        return;
    }
    if (all->kind_count == MAX_KINDS) return;
    kind *it = &all->kinds[all->kind_count++];
    it->code = one->code;
    it->count = 1;
    it->first = seed;
    memcpy(it->words, words, sizeof words);
    memcpy(it->text, one->text, sizeof it->text);
}

static const char *strategy_arguments(void) {
    return sim_strategy.kind == STRATEGY_MIX ? "" : sim_strategy_text();
}

static int print_tally(const tally *all, double seconds) {
    if (!quiet || all->failed)
        printf("%s: %llu schedules in %.1f s (%.0f/s), %llu failed\n", chosen->name,
               (unsigned long long)all->runs, seconds, (double)all->runs / seconds,
               (unsigned long long)all->failed);
    for (unsigned i = 0; i < all->kind_count; i++) {
        const kind *it = &all->kinds[i];
        printf("  %llu %s: %s\n    repeat: %s %s seed=%llu%s%s%s%s\n",
               (unsigned long long)it->count, results[it->code], it->text, program_name,
               chosen->name, (unsigned long long)it->first, *strategy_arguments() ? " " : "",
               strategy_arguments(), *without ? " without=" : "", without);
    }
    return all->failed != 0;
}

/* Returns in each child; the parent ends here. */
static void run_seeds(void) {
    static tally all;
    double start = wall_seconds(), told = start;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        bool is_child;
        outcome one = run_child(seed, &is_child);
        if (is_child) return;
        if (want_hash)
            printf("%llu %s %016llx\n", (unsigned long long)seed, results[one.code],
                   (unsigned long long)one.hash);
        add_up(&all, seed, &one);
        double now = wall_seconds();
        if (now - told > 30 && !quiet) {
            printf("%s: seed %llu, %llu failed so far\n", chosen->name, (unsigned long long)seed,
                   (unsigned long long)all.failed);
            fflush(stdout);
            told = now;
        }
        if (until_found && one.code != SIM_OK) break;
        if (most_seconds > 0 && now - start > most_seconds) break;
    }
    sim_strategy.kind == STRATEGY_MIX ? (void)0 : sim_schedule_begin(first_seed);
    int failed = print_tally(&all, wall_seconds() - start);
    fflush(NULL);
    _exit(failed);
}

void sim_snapshot(void) {
    snapshot_taken = true;
    if (verbose)
        begin(first_seed);
    else
        run_seeds();
}

static void *scenario_main(void *unused) {
    (void)unused;
    chosen->run();
    if (!snapshot_taken) sim_fail(SIM_UNSUPPORTED, "the scenario took no snapshot");
    sim_finish(SIM_OK);
}

/* ---- the command line ---- */

bool sim_without(const char *what) {
    size_t length = strlen(what);
    for (const char *at = without; (at = strstr(at, what)); at += length)
        if ((at == without || at[-1] == ',') && (at[length] == 0 || at[length] == ',')) return true;
    return false;
}

static const char help[] =
    "simulator SCENARIO [seeds=N] [first=N] [seconds=S] [until] [hashes] [quiet] [STRATEGY]\n"
    "simulator SCENARIO seed=N [STRATEGY]   repeats one run and prints what it did\n"
    "simulator list\n"
    "without=WHAT,...: random programs do without cancel, refused, lane, host, sequence, module,\n"
    "variable, dispatch, fault, large, trim, kill, crash or stop, to look past a known defect.\n"
    "STRATEGY: pct=D | sticky=N | walk, with pause=N, tso=N, jump=N; without one the seed draws it.\n"
    "Exits with 0 if every run was fine, with 1 if not.\n";

static bool take_number(const char *argument, const char *name, uint64_t *out) {
    size_t length = strlen(name);
    if (strncmp(argument, name, length) || argument[length] != '=') return false;
    *out = strtoull(argument + length + 1, NULL, 10);
    return true;
}

static bool take_strategy(const char *argument) {
    uint64_t number = 0;
    if (take_number(argument, "pct", &number)) {
        sim_strategy.kind = STRATEGY_PCT;
        sim_strategy.depth = (unsigned)number;
    } else if (take_number(argument, "sticky", &number)) {
        sim_strategy.kind = STRATEGY_STICKY;
        sim_strategy.sticky = number ? (unsigned)number : 1;
    } else if (strcmp(argument, "walk") == 0) {
        sim_strategy.kind = STRATEGY_WALK;
    } else if (take_number(argument, "pause", &number)) {
        sim_strategy.pause_every = (unsigned)number;
    } else if (take_number(argument, "tso", &number)) {
        sim_strategy.store_buffer = (unsigned)number;
    } else if (take_number(argument, "jump", &number)) {
        sim_strategy.jump = (unsigned)number;
    } else {
        return false;
    }
    return true;
}

static bool take_argument(const char *argument) {
    uint64_t number = 0;
    if (strncmp(argument, "without=", 8) == 0) {
        without = argument + 8;
    } else if (take_number(argument, "seed", &number)) {
        first_seed = number;
        verbose = true;
    } else if (take_number(argument, "seeds", &seeds) ||
               take_number(argument, "first", &first_seed) ||
               take_number(argument, "steps", &sim_step_limit)) {
        return true;
    } else if (take_number(argument, "seconds", &number)) {
        most_seconds = (double)number;
    } else if (strcmp(argument, "until") == 0) {
        until_found = true;
    } else if (strcmp(argument, "hashes") == 0) {
        want_hash = true;
    } else if (strcmp(argument, "quiet") == 0) {
        quiet = true;
    } else {
        return take_strategy(argument);
    }
    return true;
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "--help";
    if (strcmp(name, "list") == 0) {
        for (const sim_scenario *it = sim_scenarios; it->name; it++)
            printf("%-20s %s\n", it->name, it->about);
        return 0;
    }
    for (chosen = sim_scenarios; chosen->name && strcmp(chosen->name, name); chosen++) {
    }
    if (!chosen->name) {
        fputs(help, stderr);
        return USAGE;
    }
    for (int i = 2; i < argc; i++) {
        if (take_argument(argv[i])) continue;
        fprintf(stderr, "simulator: unknown argument \"%s\"\n%s", argv[i], help);
        return USAGE;
    }
    program_name = argv[0];
    setvbuf(stdout, NULL, _IOLBF, 0);
    catch_crashes();
    sim_heap_begin();
    sim_fibers_start(scenario_main);
    return 0;
}
