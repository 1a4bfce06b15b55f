/* SPDX-License-Identifier: Apache-2.0 */
/* What `bulkhead top` and `bulkhead serve` share: reading the open devices of this user, rates and
 * histories, and what is known of the GPUs. */
#ifndef BH_CLI_TOP_TOP_H
#define BH_CLI_TOP_TOP_H

#include "cli/cli.h"
#include "figures/figures.h"

/* ---- gather.c ---- */

/* A device that answered, or one that did not. */
typedef struct bh__sighting {
    bh__offer entry;
    bh__figures *figures; /* Owned. NULL: no answer. */
    char why[120];        /* why not */
} bh__sighting;

typedef struct bh__sightings {
    bh__sighting *list; /* Owned. */
    size_t count;
    uint64_t at_ns;
    size_t removed;    /* entries of processes that have ended */
    char problem[200]; /* a folder that cannot be used; empty: none */
} bh__sightings;

/* Asks every device of this user that is open on this machine. Takes at most `patience_ns` for each
 * folder; one that does not answer does not take the others' time. Returns false if host memory is
 * exhausted. */
bool bh__gather(bh__sightings *out, uint64_t patience_ns);
void bh__sightings_free(bh__sightings *sightings);

/* ---- nvml.c ---- */

typedef struct bh__gpu {
    bool there;
    unsigned temperature_c, power_mw, clock_mhz, memory_clock_mhz, use_percent;
    uint64_t memory_used, memory_total;
    uint64_t ecc_corrected, ecc_uncorrected;
    uint32_t known; /* bit for each of BH__GPU_... */
} bh__gpu;

enum {
    BH__GPU_TEMPERATURE = 1,
    BH__GPU_POWER = 2,
    BH__GPU_CLOCK = 4,
    BH__GPU_MEMORY_CLOCK = 8,
    BH__GPU_USE = 16,
    BH__GPU_MEMORY = 32,
    BH__GPU_ECC = 64
};

/* Asks NVML about the GPU with this UUID ("GPU-..."). Where there is no NVML, nothing is known. */
void bh__gpu_look(const char *uuid, bh__gpu *out);

/* ---- view.c ---- */

enum { BH__HISTORY = 240 };

typedef enum bh__series {
    BH__SERIES_LAUNCHES, /* a second */
    BH__SERIES_BUSY,     /* percent of the time */
    BH__SERIES_DEPTH,
    BH__SERIES_MEMORY, /* bytes in buffers */
    BH__SERIES_COUNT
} bh__series;

typedef struct bh__row {
    bh__offer key;
    const bh__figures *now; /* Borrowed from the newest sightings. */
    bool seen;              /* in the newest sightings */
    bool rated;             /* the rates are known: it was seen twice */
    uint64_t at_ns;
    bh_lane_counters total, before;
    double launches, requests, failures, busy, to_device, to_host; /* a second; busy: of 1 */
    float history[BH__SERIES_COUNT][BH__HISTORY];
    size_t samples; /* in all; the newest is at (samples - 1) % BH__HISTORY */
    bh__gpu gpu;
} bh__row;

typedef enum bh__order {
    BH__ORDER_LAUNCHES,
    BH__ORDER_BUSY,
    BH__ORDER_MEMORY,
    BH__ORDER_DEPTH,
    BH__ORDER_LOSSES,
    BH__ORDER_PID,
    BH__ORDERS
} bh__order;

extern const char *const bh__order_names[BH__ORDERS];

typedef struct bh__view {
    bh__sightings sightings;
    bh__row **rows; /* Owned. Sorted. */
    size_t count;
    bh__order order;
} bh__view;

/* Looks anew: rows of devices that are gone are removed. Returns false if host memory is
 * exhausted. */
bool bh__view_refresh(bh__view *view, uint64_t patience_ns);
void bh__view_sort(bh__view *view);
void bh__view_free(bh__view *view);
/* The newest value is number 0. */
float bh__row_past(const bh__row *row, bh__series which, size_t back);
const char *bh__health_text(uint32_t state);
/* The name that a device is opened by: "cpu", "cuda:0". */
void bh__row_device(const bh__row *row, char out[32]);

/* ---- describe.c ---- */

/* Writes one object with all that is known. */
void bh__view_json(const bh__view *view, bh__json *json, bool history);
/* The list for --once. */
void bh__view_print(const bh__view *view, FILE *to);
/* "12,345", "1.2 M": four characters and a unit at most. */
const char *bh__text_rate(double a_second, char out[BH__TEXT]);

/* ---- screen.c: the terminal ---- */

/* Shows the view until the user quits. Returns the exit status. */
int bh__screen_run(bh__view *view, uint64_t interval_ns);
/* "" if this build can show it; else why not. */
const char *bh__screen_missing(void);

#endif
