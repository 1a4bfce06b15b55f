/* SPDX-License-Identifier: Apache-2.0 */
/* Why a worker is lost: how its process ended, and what it reported of a fault. watchdog.c has what it
 * did not do in time. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "client/supervisor.h"

void bh__cause_of_end(const bh__worker *worker, const bh__process_end *end, bh__cause *out) {
    const char *text = worker->errors_length ? worker->errors : "";
    bool crashed =
        end->known && (end->signal == SIGSEGV || end->signal == SIGBUS || end->signal == SIGILL ||
                       end->signal == SIGFPE || end->signal == SIGABRT || end->signal == SIGTRAP);
    out->status = crashed ? BH_E_FAULT : BH_E_LOST;
    const char *fix = crashed ? "run the kernel alone and under checks"
                              : "find out who ended the worker; submit the work again";
    if (end->known && end->signal) {
        bh__fail(&out->error, out->status, fix, "worker %d was ended by signal %d (%s)%s%.200s",
                 (int)worker->process.program.pid, end->signal, strsignal(end->signal),
                 *text ? ": " : "", text);
    } else if (end->known) {
        bh__fail(&out->error, out->status, fix, "worker %d exited with status %d%s%.200s",
                 (int)worker->process.program.pid, end->exit_code, *text ? ": " : "", text);
    } else {
        bh__process_end late;
        bool gone = bh__process_gone(&worker->process, &late);
        bh__fail(&out->error, out->status, fix, "worker %d %s%s%.200s",
                 (int)worker->process.program.pid,
                 gone ? "is gone; another part of the program reaped it" : "was ended from outside",
                 *text ? ": " : "", text);
    }
}

/* What a worker wrote to standard error before it reported a fault is what the kernel had to say: a
 * failed assertion. It goes where printed text goes, and its first line into the message. */
static void add_last_words(bh__device *device, bh__worker *worker, bh__cause *cause) {
    if (worker->errors_fd >= 0) bh__worker_read_errors(worker);
    if (worker->words_length == 0) return;
    bh__dispatch_text(device, worker->words, worker->words_length);
    size_t line = 0;
    while (line < worker->words_length && worker->words[line] != '\n') line++;
    char before[sizeof cause->error.message];
    memcpy(before, cause->error.message, sizeof before);
    snprintf(cause->error.message, sizeof cause->error.message, "%.250s: %.*s", before,
             (int)(line < 250 ? line : 250), worker->words);
    worker->words_length = 0;
}

bool bh__cause_reported(bh__device *device, bh__worker *worker, bh__cause *out) {
    const bh__area *area = bh__worker_area(device, worker);
    if (atomic_load(&area->fault_state) != BH__FAULT_SET) return false;
    bh__report report;
    memcpy(&report, &area->fault, sizeof report);
    report.message[sizeof report.message - 1] = report.fix[sizeof report.fix - 1] = 0;
    report.device_name[sizeof report.device_name - 1] = 0;
    memset(out, 0, sizeof *out);
    bh__fail(&out->error, BH_E_FAULT, report.fix, "%s", report.message);
    bh__fail_device_code(&out->error, report.device_code, report.device_name);
    out->status = BH_E_FAULT;
    out->broken = report.status == BH_E_STOPPED;
    out->address = report.address;
    out->bytes = report.bytes;
    add_last_words(device, worker, out);
    if (report.lane >= BH__MAX_LANES || report.sequence == 0) return true;
    /* Believed only if that request can have been running. */
    const bh__lane_area *words = &area->lane[report.lane];
    if (report.sequence > atomic_load(&words->done) &&
        report.sequence <= bh__claim_position(atomic_load(&words->claim))) {
        out->lane_known = true;
        out->lane = report.lane;
        out->sequence = report.sequence;
        out->step = report.step;
    }
    return true;
}
