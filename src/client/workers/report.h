/* SPDX-License-Identifier: Apache-2.0 */
/* Loss reports: the facts are recorded with the device locked, and formatted as text for a file or
 * when the program asks. Supervisor only, except bh__loss_reports_free. */
#ifndef BH_CLIENT_WORKERS_REPORT_H
#define BH_CLIENT_WORKERS_REPORT_H

#include "client/workers/judge_loss.h"

typedef struct bh__loss_report bh__loss_report;

/* Records the blamed requests and the positions of the lanes. Called with the lock held, before
 * requests get their verdicts. Returns NULL if host memory is exhausted. */
bh__loss_report *bh__loss_report_begin(const bh__judgement *self);
/* Records the suspect buffers and publishes the report. Called with the lock held, after requests
 * got their verdicts. `report` may be NULL. */
void bh__loss_report_judged(const bh__judgement *self, bh__loss_report *report);
/* Completes the report of the most recent loss, device->workers.loss, and writes its file if the
 * program has set report_dir. Called without the lock. */
void bh__loss_report_finish(bh__device *device);
void bh__loss_reports_free(bh__device *device);

/* Copies the losses whose reports are kept, newest first. Returns their number. Any thread, without
 * the lock. */
size_t bh__losses_copy(bh__device *device, bh_loss out[BH__REPORTS_KEPT]);

/* ---- health.c: what bh_device_get_health returns. The same. ---- */
void bh__health_get(bh__device *device, bh_health *out);

/* ---- findings.c: what a worker says of a launch before it reports its fault: what checks found,
 * and the state of the thread; on the way to the report ---- */

/* Keeps findings until the loss that follows them. False: the message is not valid. */
bool bh__findings_take(bh__device *device, const bh__message *message);
/* Moves what was kept to the caller, with the buffers described. Called with the lock held. */
uint32_t bh__findings_give(const bh__judgement *self, bh_finding **out);
/* The same for the state of the thread, a text. NULL: there is none. */
bool bh__fault_state_take(bh__device *device, const bh__message *message);
char *bh__fault_state_give(bh__device *device);
/* Forgets what was kept of both. */
void bh__findings_drop(bh__device *device);

#endif
