/* SPDX-License-Identifier: Apache-2.0 */
/* driver-baseline: the figures of the plain driver API, all of them, or one round at a time for a
 * program that compares. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baseline.h"
#include "support/figures.h"

static const bench_round own_rounds[] = {
    {"graph_replay", "us", baseline_graph_replay},
    {"graph_replay_set", "us", baseline_graph_replay_set},
};
enum { OWN_ROUNDS = sizeof own_rounds / sizeof *own_rounds };

static const bench_round *round_at(size_t index) {
    if (index < bench_round_count) return &bench_rounds[index];
    index -= bench_round_count;
    return index < OWN_ROUNDS ? &own_rounds[index] : NULL;
}

/* A name on each line of standard input is answered with one round: name value unit. */
static int serve(bench_side *side) {
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        size_t index = 0;
        const bench_round *round;
        while ((round = round_at(index)) && strcmp(round->name, line) != 0) index++;
        if (!round) {
            fprintf(stderr, "error: there is no measurement named %s\n", line);
            return 2;
        }
        printf("%s %.9g %s\n", round->name, round->run(side), round->unit);
    }
    return 0;
}

static void measure(bench_side *side, size_t rounds) {
    const bench_round *round;
    for (size_t index = 0; (round = round_at(index)); index++) {
        bench_samples samples = bench_samples_new(rounds);
        round->run(side);
        for (size_t i = 0; i < rounds; i++) bench_samples_add(&samples, round->run(side));
        char name[64];
        snprintf(name, sizeof name, "driver.%s", round->name);
        bench_figure(name, bench_percentile(&samples, 50), round->unit);
        bench_samples_free(&samples);
    }
}

static int usage(FILE *stream, int status) {
    fputs("usage: driver-baseline [-d cuda[:N]] [-n ROUNDS] [-s]\n"
          "  -d DEVICE  which NVIDIA device (default $BULKHEAD_TEST_DEVICE, else cuda)\n"
          "  -n ROUNDS  rounds of each measurement, of which the median is printed (default 5)\n"
          "  -s         answer names of measurements on standard input, a round for each\n",
          stream);
    return status;
}

/* "cuda" is the first one; -1 for what is no NVIDIA device. */
static int ordinal_of(const char *device) {
    if (strcmp(device, "cuda") == 0 || strcmp(device, "auto") == 0) return 0;
    char *end = NULL;
    long ordinal = strncmp(device, "cuda:", 5) == 0 ? strtol(device + 5, &end, 10) : -1;
    return !end || end == device + 5 || *end || ordinal < 0 || ordinal > 1000 ? -1 : (int)ordinal;
}

int main(int argc, char **argv) {
    const char *named = getenv("BULKHEAD_TEST_DEVICE");
    const char *device = named && *named ? named : "cuda";
    size_t rounds = 5;
    bool serving = false;
    for (int option; (option = getopt(argc, argv, "d:n:sh")) != -1;) {
        if (option == 'd')
            device = optarg;
        else if (option == 'n')
            rounds = strtoul(optarg, NULL, 10);
        else if (option == 's')
            serving = true;
        else
            return option == 'h' ? usage(stdout, 0) : usage(stderr, 2);
    }
    if (optind < argc || rounds == 0 || rounds > 1000) return usage(stderr, 2);
    setvbuf(stdout, NULL, _IOLBF, 0);

    int ordinal = ordinal_of(device);
    static baseline self;
    char reason[640];
    if (ordinal < 0) {
        printf("skipped: %s is not an NVIDIA device\n", device);
        return 0;
    }
    if (!baseline_open(&self, ordinal, reason, sizeof reason)) {
        printf("skipped: %s\n", reason);
        return 0;
    }
    bench_note("the plain driver API on %s, CUDA %d.%d", self.name, self.cu.number / 1000,
               self.cu.number % 1000 / 10);
    bench_side side = baseline_side(&self);
    int status = 0;
    if (serving)
        status = serve(&side);
    else
        measure(&side, rounds);
    bench_side_end(&side);
    return status;
}
