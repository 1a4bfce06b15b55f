/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `bulkhead bench` share. */
#ifndef BH_CLI_BENCH_BENCH_H
#define BH_CLI_BENCH_BENCH_H

#include "cli/cli.h"

typedef enum bh__measure {
    BH__MEASURE_OPEN,
    BH__MEASURE_SUBMIT,
    BH__MEASURE_ROUND_TRIP,
    BH__MEASURE_TO_DEVICE_SMALL,
    BH__MEASURE_TO_HOST_SMALL,
    BH__MEASURE_TO_DEVICE,
    BH__MEASURE_TO_HOST,
    BH__MEASURE_LOSS,
    BH__MEASURES
} bh__measure;

enum {
    BH__SMALL_BYTES = 4096,
    BH__LARGE_BYTES = 64 << 20,
    BH__SAMPLES = 2000 /* at most, of one measure */
};

extern const char *const bh__measure_names[BH__MEASURES], *const bh__measure_keys[BH__MEASURES];
/* The bytes of one sample; 0: it is no copy of a large buffer. */
uint64_t bh__measure_bytes(bh__measure which);

/* Times in ns. */
typedef struct bh__times {
    size_t count;
    uint64_t list[BH__SAMPLES];
} bh__times;

void bh__times_add(bh__times *times, uint64_t ns);
void bh__times_sort(bh__times *times);
/* Of sorted times: `part` of them are at most this long. */
uint64_t bh__times_at(const bh__times *times, double part);

typedef struct bh__results {
    bh_device_info info;
    bh__times times[BH__MEASURES]; /* sorted */
    bh__times plain[BH__MEASURES]; /* of the driver without Bulkhead; none: not measured */
    char plain_lack[160];          /* why not; "": it was */
} bh__results;

/* ---- measure.c ---- */

typedef struct bh__bar bh__bar;

/* Fills everything but `plain`. */
bh_status bh__bench_measure(const char *device, double scale, bh__results *out, bh__bar *bar,
                            bh_error *error);

/* ---- driver.c ---- */

/* Measures the same with the driver alone, in a process of its own. `index`: of the GPU. */
void bh__bench_driver(uint32_t index, double scale, bh__results *out);

/* ---- show.c ---- */

/* A progress bar on standard error, if that is a terminal. */
struct bh__bar {
    bool terminal;
    unsigned done, all;
};
void bh__bar_step(bh__bar *bar, const char *what);
void bh__bar_end(bh__bar *bar);

void bh__bench_table(const bh__results *results, FILE *to);
void bh__bench_json(const bh__results *results, FILE *to);
/* One page with charts, which needs nothing else. */
void bh__bench_html(const bh__results *results, FILE *to);

#endif
