/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker sends to the application unasked: reports, faults, printed text, notes. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/futex.h"
#include "worker/state.h"

enum { SEND_POLL_MS = 20, MAX_MEMORY_TRIES = 200 };

/* No event says when the system has memory for the message again, so it is tried again and again. A
 * worker that cannot send is of no use: it prints why and ends. */
static bool wait_for_memory(bh__worker_instance *worker, int failed, uint32_t *tries) {
    bool temporary = failed == -ENOBUFS || failed == -ENOMEM || failed == -ETOOMANYREFS;
    if (temporary && ++*tries < MAX_MEMORY_TRIES) {
        struct timespec pause = bh__timespec(BH__NS_PER_MS);
        nanosleep(&pause, NULL);
        return true;
    }
    if (failed != -EPIPE && failed != -ECONNRESET)
        bh__worker_fatal(worker, "a message to the supervisor cannot be sent: %s",
                         strerror(-failed));
    return false;
}

static bool send_message(bh__worker_instance *worker, const bh__message *message, const int *fds,
                         uint32_t fd_count) {
    for (uint32_t tries = 0;;) {
        if (bh__worker_is_killed(worker)) return false;
        int result = bh__message_send(worker->socket, message, fds, fd_count);
        if (result == 0) return true;
        if (result != -EAGAIN) {
            if (!wait_for_memory(worker, result, &tries)) return false;
            continue;
        }
        struct pollfd wait = {.fd = worker->socket, .events = POLLOUT};
        poll(&wait, 1, SEND_POLL_MS);
    }
}

bool bh__worker_send_message(bh__worker_instance *worker, uint32_t type, uint32_t serial,
                             const void *body, size_t body_bytes, const void *data,
                             size_t data_bytes, int fd) {
    pthread_mutex_lock(&worker->send_lock);
    bh__message *message = &worker->outgoing;
    memset(message, 0, offsetof(bh__message, fds));
    message->type = type;
    message->serial = serial;
    message->fd_count = fd >= 0;
    message->data_bytes = (uint32_t)data_bytes;
    if (body_bytes) memcpy(&message->u, body, body_bytes);
    if (data_bytes) memcpy(message->data, data, data_bytes);
    bool sent = send_message(worker, message, &fd, fd >= 0);
    pthread_mutex_unlock(&worker->send_lock);
    return sent;
}

void bh__worker_send_print(void *context, const char *text, size_t length) {
    bh__worker_instance *worker = context;
    while (length) {
        size_t part = length < BH__MESSAGE_BYTES ? length : BH__MESSAGE_BYTES;
        if (!bh__worker_send_message(worker, BH__MSG_PRINT, 0, NULL, 0, text, part, -1)) return;
        text += part;
        length -= part;
    }
}

void bh__worker_send_note(bh__worker_instance *worker, const char *text) {
    bh__worker_send_message(worker, BH__MSG_NOTE, 0, NULL, 0, text, strlen(text), -1);
}

static void fill_report(bh__report *report, const bh__worker_lane *lane, uint64_t sequence,
                        const bh_error *error) {
    memset(report, 0, sizeof *report);
    report->lane = lane->index;
    report->status = error->status;
    report->sequence = sequence;
    report->device_code = error->device_code;
    report->step = sequence ? lane->step_at : 0;
    report->illegal =
        error->device_code && error->device_code == lane->worker->ops->illegal_address;
    snprintf(report->device_name, sizeof report->device_name, "%s", error->device_name);
    snprintf(report->message, sizeof report->message, "%s", error->message);
    snprintf(report->fix, sizeof report->fix, "%s", error->fix);
}

/* Each lane has at most one report that is not taken yet, so there is always room. */
static uint32_t make_report(bh__worker_lane *lane, uint64_t sequence, const bh_error *error) {
    bh__area *area = lane->worker->area;
    pthread_mutex_lock(&lane->worker->report_lock);
    uint32_t made = atomic_load_explicit(&area->reports_made, memory_order_relaxed);
    fill_report(&area->reports[made % BH__REPORTS], lane, sequence, error);
    atomic_store_explicit(&area->reports_made, made + 1, memory_order_release);
    pthread_mutex_unlock(&lane->worker->report_lock);
    return made + 1;
}

/* `done` must not pass the request before the application has recorded its failure and that of the
 * requests that depend on it: they could run, and would count as completed. */
bool bh__worker_lane_report(bh__worker_lane *lane, uint64_t sequence, const bh_error *error) {
    bh__worker_instance *worker = lane->worker;
    uint32_t number = make_report(lane, sequence, error);
    if (!bh__worker_send_message(worker, BH__MSG_REPORT, 0, NULL, 0, NULL, 0, -1)) return false;
    for (;;) {
        uint32_t taken = atomic_load(&worker->area->reports_taken);
        if ((int32_t)(taken - number) >= 0) return true;
        if (bh__worker_is_killed(worker)) return false;
        bh__futex_wait(&worker->area->reports_taken, taken, BH__NEVER, BH__FUTEX_SHARED);
    }
}

/* They must arrive before the fault, after which nothing more of this worker is read. */
static void send_findings(bh__worker_lane *lane) {
    enum { AT_ONCE = 8 };
    bh_finding some[AT_ONCE];
    uint32_t count, sent = 0;
    do {
        count = lane->worker->ops->findings(lane->context, sent, some, AT_ONCE);
        if (count == 0 || sent + count > BH__MAX_FINDINGS) return;
        sent += count;
    } while (bh__worker_send_message(lane->worker, BH__MSG_FINDING, 0, NULL, 0, some,
                                     count * sizeof *some, -1));
}

static void send_state(bh__worker_lane *lane) {
    const char *text = lane->worker->ops->fault_state(lane->context);
    if (text && text[0])
        bh__worker_send_message(lane->worker, BH__MSG_STATE, 0, NULL, 0, text,
                                strnlen(text, BH__MESSAGE_BYTES), -1);
}

void bh__worker_lane_fault(bh__worker_lane *lane, uint64_t sequence, const bh_error *error) {
    bh__area *area = lane->worker->area;
    uint32_t none = BH__FAULT_NONE;
    if (bh__worker_is_killed(lane->worker) ||
        !atomic_compare_exchange_strong(&area->fault_state, &none, BH__FAULT_WRITING))
        return;
    fill_report(&area->fault, lane, sequence, error);
    if (lane->worker->ops->fault_place && sequence)
        lane->worker->ops->fault_place(lane->context, &area->fault.address, &area->fault.bytes);
    if (lane->worker->ops->findings && sequence) send_findings(lane);
    if (lane->worker->ops->fault_state && sequence) send_state(lane);
    atomic_store(&area->fault_state, BH__FAULT_SET);
    bh__worker_send_message(lane->worker, BH__MSG_FAULT, 0, NULL, 0, NULL, 0, -1);
}

void bh__worker_fatal(bh__worker_instance *worker, const char *format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "%s: %s\n", worker->ops->program, text);
    atomic_store(&worker->exit_code, BH__EXIT_FAILED);
    bh__worker_end(worker);
}
