/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting without the GIL, in pieces between which Python handles signals: Ctrl-C ends any wait. */
#include <math.h>
#include <time.h>

#include "core.h"

#define PIECE_NS 50000000u

uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool nanoseconds(PyObject *seconds, uint64_t none, uint64_t *out) {
    if (!seconds || seconds == Py_None) {
        *out = none;
        return true;
    }
    double value = PyFloat_AsDouble(seconds);
    if (value == -1.0 && PyErr_Occurred()) return false;
    if (isnan(value) || value < 0) {
        PyErr_Format(PyExc_ValueError,
                     "%R seconds are no time. Fix: pass a number from 0 on, or None", seconds);
        return false;
    }
    *out = value >= 1.8e10 ? BH_FOREVER : (uint64_t)(value * 1e9);
    if (*out == 0 && value > 0) *out = 1;
    return true;
}

bool pause_for_room(bh_status *status, long *pause_ns) {
    if (*status != BH_E_BUSY) return false;
    bh_error error;
    bh_last_error(&error);
    if (error.reason != BH_REASON_QUEUE_FULL) return false;
    struct timespec pause = {0, *pause_ns ? *pause_ns : 20000};
    Py_BEGIN_ALLOW_THREADS
    nanosleep(&pause, NULL);
    Py_END_ALLOW_THREADS
    *pause_ns = pause.tv_nsec < 1000000 ? pause.tv_nsec * 2 : pause.tv_nsec;
    if (!PyErr_CheckSignals()) return true;
    *status = -1;
    return false;
}

/* Work that completes within about a microsecond costs no change of the GIL. */
enum { POLLS = 48 };

bool wait_ticket(bh_ticket ticket, uint64_t timeout_ns, bh_status *out) {
    for (int i = 0; i < POLLS; i++)
        if ((*out = bh_wait(ticket, 0)) != BH_E_BUSY) return true;
    for (;;) {
        uint64_t piece = timeout_ns < PIECE_NS ? timeout_ns : PIECE_NS;
        bh_status status;
        Py_BEGIN_ALLOW_THREADS
        status = bh_wait(ticket, piece);
        Py_END_ALLOW_THREADS
        *out = status;
        if (status == BH_OK) return true;
        if (status == BH_E_BUSY) return true; /* asked with a timeout of 0 */
        if (status != BH_E_TIMEOUT || bh_wait(ticket, 0) != BH_E_BUSY) {
            if (status == BH_E_TIMEOUT) *out = bh_wait(ticket, 0);
            return true;
        }
        if (PyErr_CheckSignals()) return false;
        if (timeout_ns != BH_FOREVER) timeout_ns -= piece;
        if (timeout_ns == 0) return true; /* BH_E_TIMEOUT */
    }
}

bool wait_polling(poll_fn *poll, void *context, uint64_t timeout_ns, bh_status *out) {
    for (;;) {
        uint64_t piece = timeout_ns < PIECE_NS ? timeout_ns : PIECE_NS;
        bh_status status;
        Py_BEGIN_ALLOW_THREADS
        status = poll(context, piece);
        Py_END_ALLOW_THREADS
        *out = status;
        if (status != BH_E_TIMEOUT) return true;
        if (PyErr_CheckSignals()) return false;
        if (timeout_ns != BH_FOREVER) timeout_ns -= piece;
        if (timeout_ns == 0) return true;
    }
}

bh_status submit_with_room(submit_fn *submit, void *context) {
    bh_status status;
    long pause_ns = 0;
    do {
        Py_BEGIN_ALLOW_THREADS
        status = submit(context, BH_SUBMIT_NO_BLOCK);
        Py_END_ALLOW_THREADS
    } while (pause_for_room(&status, &pause_ns));
    if (status != BH_E_BUSY) return status;
    Py_BEGIN_ALLOW_THREADS
    status = submit(context, 0);
    Py_END_ALLOW_THREADS
    return status;
}

bool wait_before_transfer(buffer_object *buffer) {
    bh_status status;
    bh_ticket last = buffer->device->last;
    if (last.lane && !wait_ticket(last, BH_FOREVER, &status)) return false;
    bh_buffer_info info = BH_INIT(info);
    if (bh_buffer_get_info(buffer->handle, &info) != BH_OK || !info.last_write.lane) return true;
    return wait_ticket(info.last_write, BH_FOREVER, &status);
}
