/* SPDX-License-Identifier: Apache-2.0 */
/* Why a worker is lost: how its process ended, or the fault that it reported. watchdog.c finds
 * workers that time out. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/plain_text.h"
#include "client/callback/callback.h"
#include "client/process/worker_process.h"
#include "client/queue/queue.h"
#include "client/workers/internal.h"

void bh__cause_of_end(const bh__worker *worker, const bh__process_end *end, bh__cause *out) {
    const char *text = worker->errors_length ? worker->errors : "";
    bool crashed =
        end->known && (end->signal == SIGSEGV || end->signal == SIGBUS || end->signal == SIGILL ||
                       end->signal == SIGFPE || end->signal == SIGABRT || end->signal == SIGTRAP ||
                       end->signal == SIGSYS);
    out->status = crashed ? BH_E_FAULT : BH_E_LOST;
    out->exited = end->known && !end->signal;
    const char *fix = crashed ? "run the kernel alone and under checks"
                              : "find out who killed the worker; submit the work again";
    if (end->known && end->signal) {
        bh__fail(&out->error, out->status, fix, "worker %d was killed by signal %d (%s)%s%.200s",
                 (int)worker->process.program.pid, end->signal, strsignal(end->signal),
                 *text ? ": " : "", text);
    } else if (end->known) {
        bh__fail(&out->error, out->status, fix, "worker %d exited with status %d%s%.200s",
                 (int)worker->process.program.pid, end->exit_code, *text ? ": " : "", text);
    } else {
        bh__process_end late;
        bool gone = bh__process_gone(&worker->process, &late);
        bh__fail(
            &out->error, out->status, fix, "worker %d %s%s%.200s", (int)worker->process.program.pid,
            gone ? "ended; another part of the program reaped it" : "was killed by another process",
            *text ? ": " : "", text);
    }
}

/* If a worker wrote to standard error before it reported a fault, that is the kernel's failed
 * assertion. It is delivered like printed text, and its first line goes into the message. */
static void add_assertion(bh__device *device, bh__worker *worker, bh__cause *cause) {
    if (worker->errors_fd >= 0) bh__worker_read_errors(worker);
    if (worker->words_length == 0) return;
    bh__dispatch_text(device, worker->words, worker->words_length);
    size_t line = 0;
    while (line < worker->words_length && worker->words[line] != '\n') line++;
    char before[sizeof cause->error.message];
    memcpy(before, cause->error.message, sizeof before);
    snprintf(cause->error.message, sizeof cause->error.message, "%.250s: %.*s", before,
             (int)(line < 250 ? line : 250), worker->words);
    BH__PLAIN(cause->error.message);
    worker->words_length = 0;
}

/* Returns true if the request that the report names can have been running. */
static bool is_in_flight(bh__device *device, const bh__area *area, const bh__report *report) {
    if (report->lane >= device->queue.lane_limit || !device->lanes[report->lane].exists)
        return false;
    bh__lock_take(&device->lock);
    bh__lane *lane = &device->lanes[report->lane];
    uint64_t claim = atomic_load(&area->lane[report->lane].claim);
    bool known = report->sequence > bh__lane_done(device, lane) &&
                 report->sequence <= bh__lane_taken(device, lane, claim);
    bh__lock_give(&device->lock);
    return known;
}

bool bh__cause_reported(bh__device *device, bh__worker *worker, bh__cause *out) {
    const bh__area *area = bh__worker_area(device, worker);
    if (atomic_load(&area->fault_state) != BH__FAULT_SET) return false;
    bh__report report;
    bh__report_copy(&area->fault, &report);
    memset(out, 0, sizeof *out);
    bh__fail(&out->error, BH_E_FAULT, report.fix, "%s", report.message);
    bh__fail_device_code(&out->error, report.device_code, report.device_name);
    out->status = BH_E_FAULT;
    out->broken = report.status == BH_E_STOPPED;
    out->address = report.address;
    out->bytes = report.bytes;
    out->illegal = report.illegal != 0;
    add_assertion(device, worker, out);
    if (is_in_flight(device, area, &report)) {
        out->lane_known = true;
        out->lane = report.lane;
        out->sequence = report.sequence;
        out->step = report.step;
    }
    return true;
}
