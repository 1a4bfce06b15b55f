/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences: steps are recorded once and replayed as one request. All functions are called with the
 * lock held. steps.h has the record of a sequence.
 */
#ifndef BH_CLIENT_SEQUENCE_SEQUENCE_H
#define BH_CLIENT_SEQUENCE_SEQUENCE_H

#include "client/core/device.h"

/* Sends a new worker the orders that define all sequences. */
void bh__sequences_brief(bh__device *device, bh__worker *worker, bh__tell_fn *tell);
/* The active worker has defined it. */
void bh__sequence_commit(bh__sequence *sequence);
/* A request that replays it was submitted. */
void bh__sequence_note(bh__sequence *sequence, const bh__sequence_body *replay, uint32_t lane,
                       uint64_t position);
/* Drops sequences that were released and that nothing uses, also in the workers. */
void bh__sequences_sweep(bh__device *device);
/* Frees all sequences. The device is being freed. */
void bh__sequences_free(bh__device *device);
const char *bh__sequence_name(const bh__sequence *sequence);
/* Adds the work of a submission that runs it `repeat` times to the counters. */
void bh__sequence_count(bh__device *device, const bh__sequence *sequence, uint32_t repeat,
                        bh__lane_tally *tally);
/* The number of its name in a trace. */
uint32_t *bh__sequence_trace_name(bh__sequence *sequence);
uint32_t bh__sequence_step_count(const bh__sequence *sequence);
/* The only kernel that steps `first` to `last`, counted from 1, launch. NULL: none, or several. */
bh__kernel *bh__sequence_kernel(const bh__sequence *sequence, uint32_t first, uint32_t last);
/* For messages, which count from 0 as the API does: ", step 2 of 9, counted from 0 (kernel "saxpy",
 * grid 4 x 1 x 1, block 256 x 1 x 1)". */
void bh__sequence_describe(const bh__sequence *sequence, uint32_t first, uint32_t last, char *out,
                           size_t size);
/* Returns true if a submission with this stamp would run without values that kernels before it
 * wrote to variables; if a kernel of it is quarantined; if it launches the kernel. */
bool bh__sequence_lacks_state(const bh__sequence *sequence, uint64_t stamp);
bool bh__sequence_is_quarantined(const bh__sequence *sequence);
bool bh__sequence_has(const bh__sequence *sequence, const bh__kernel *kernel);
/* A submission of it did not complete. */
void bh__sequence_dropped(bh__sequence *sequence);
/* Its kernels may have run on the active worker. */
void bh__sequence_launched(bh__sequence *sequence);

#endif
