/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of losses: what is known when a worker is lost is noted with the device locked, and made
 * into text when somebody asks, or for a file. Supervisor only, except bh__loss_reports_free. */
#ifndef BH_CLIENT_REPORT_H
#define BH_CLIENT_REPORT_H

#include "client/takeover.h"

typedef struct bh__loss_report bh__loss_report;

/* With the lock held, before requests get their verdicts: who is to blame, and where the lanes were.
 * NULL: no host memory. */
bh__loss_report *bh__loss_report_begin(const bh__judgement *self);
/* With the lock held, after that: which buffers are suspect. The report can be asked for from now on.
 * `report` may be NULL. */
void bh__loss_report_judged(const bh__judgement *self, bh__loss_report *report);
/* What became of the latest loss is known: device->loss is complete. Leaves the file, if files are
 * wanted. Without the lock. */
void bh__loss_report_finish(bh__device *device);
/* The device is taken apart. */
void bh__loss_reports_free(bh__device *device);

#endif
