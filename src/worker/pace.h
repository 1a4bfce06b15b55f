/* SPDX-License-Identifier: Apache-2.0 */
/* How long each kernel takes on a lane, as far as the moments at which work was seen to be done
 * tell. It errs on the long side. */
#ifndef BH_WORKER_PACE_H
#define BH_WORKER_PACE_H

#include "worker/device.h"

enum {
    BH__PACE_KERNELS = 64, /* that are remembered */
    BH__PACE_FLIGHT = 512  /* requests; more than can be queued at once */
};

typedef struct bh__pace_kernel {
    uint32_t module, kernel;
    uint64_t ns; /* 0: nothing is known */
} bh__pace_kernel;

/* One request that was queued and not yet seen to be done. */
typedef struct bh__pace_flight {
    uint64_t sequence;
    uint64_t queued_ns;
    uint32_t module, kernel;
    bool launch;
} bh__pace_flight;

typedef struct bh__pace_book {
    bh__pace_kernel kernels[BH__PACE_KERNELS];
    bh__pace_flight flights[BH__PACE_FLIGHT];
    uint64_t first, next; /* of flights, counted without end */
    uint64_t seen_ns;     /* when something was last seen to be done */
} bh__pace_book;

/* The lane begins: nothing is in flight. */
void bh__pace_begin(bh__pace_book *book);
/* `work` was queued. */
void bh__pace_note(bh__pace_book *book, const bh__work *work, uint64_t now_ns);
/* All up to `done` was seen to be done. */
void bh__pace_see(bh__pace_book *book, uint64_t done, uint64_t now_ns);
/* What a kernel takes; UINT64_MAX: nothing is known. */
uint64_t bh__pace_of(const bh__pace_book *book, uint32_t module, uint32_t kernel);

#endif
