/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's own figures, for bench/python.py: the loops that it runs in Python, in C, on the
 * same device and buffer. */
#include "core.h"

/* measure(launcher, arguments, rounds, wait): nanoseconds for each launch; with `wait` each is
 * waited for before the next. */
static PyObject *measure(PyObject *module, PyObject *args) {
    launcher_object *launcher;
    PyObject *values, *kept = NULL;
    unsigned rounds;
    int wait;
    bh_arg packed[ARGUMENTS_ON_STACK];
    bh_ticket ticket = {0, 0};
    bh_status status = BH_OK;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!Ip", &launcher_type, &launcher, &PyTuple_Type, &values,
                          &rounds, &wait) ||
        launcher->kernel->count > ARGUMENTS_ON_STACK)
        return NULL;
    if (!pack_arguments(launcher->kernel, &PyTuple_GET_ITEM(values, 0), PyTuple_GET_SIZE(values),
                        packed, &kept)) {
        Py_XDECREF(kept);
        return NULL;
    }
    bh_args list = {packed, launcher->kernel->count};
    uint64_t spent = monotonic_ns();
    Py_BEGIN_ALLOW_THREADS
    for (unsigned i = 0; i < rounds && !status; i++) {
        status = bh_launch(launcher->kernel->handle, launcher->shape, list, NULL, &ticket);
        if (wait && !status) status = bh_wait(ticket, BH_FOREVER);
    }
    spent = monotonic_ns() - spent;
    if (!status && rounds) status = bh_wait(ticket, BH_FOREVER);
    Py_END_ALLOW_THREADS
    Py_XDECREF(kept);
    if (status) return raise_last(status);
    return PyFloat_FromDouble((double)spent / (rounds ? rounds : 1));
}

/* measure_transfer(buffer, memory, write): nanoseconds of one bh_buffer_write or bh_buffer_read. */
static PyObject *measure_transfer(PyObject *module, PyObject *args) {
    buffer_object *buffer;
    Py_buffer memory;
    int write;
    bh_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!w*p", &buffer_type, &buffer, &memory, &write)) return NULL;
    uint64_t spent = monotonic_ns();
    Py_BEGIN_ALLOW_THREADS
    status = write ? bh_buffer_write(buffer->handle, 0, memory.buf, (uint64_t)memory.len)
                   : bh_buffer_read(buffer->handle, 0, memory.buf, (uint64_t)memory.len);
    Py_END_ALLOW_THREADS
    spent = monotonic_ns() - spent;
    PyBuffer_Release(&memory);
    return status ? raise_last(status) : PyLong_FromUnsignedLongLong(spent);
}

PyMethodDef measure_methods[] = {{"measure", measure, METH_VARARGS, NULL},
                                 {"measure_transfer", measure_transfer, METH_VARARGS, NULL},
                                 {NULL, NULL, 0, NULL}};
