/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the library as exceptions: the classes are in bulkhead/_errors.py, which is imported
 * with the first error. */
#include <stdarg.h>
#include <string.h>

#include "core.h"

static PyObject *maker;

static PyObject *text(const char *bytes) {
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)strlen(bytes), "replace");
}

static PyObject *get_maker(void) {
    if (maker) return maker;
    PyObject *module = PyImport_ImportModule("bulkhead._errors");
    if (!module) return NULL;
    maker = PyObject_GetAttrString(module, "make");
    Py_DECREF(module);
    return maker;
}

PyObject *error_object(const bh_error *error) {
    PyObject *make = get_maker();
    if (!make) return NULL;
    PyObject *ticket = error->ticket.lane
                           ? Py_BuildValue("(KK)", (unsigned long long)error->ticket.lane,
                                           (unsigned long long)error->ticket.sequence)
                           : Py_NewRef(Py_None);
    return PyObject_CallFunction(
        make, "iNNNNiNKNKKN", (int)error->status, text(error->message), text(error->fix),
        text(error->kernel), PyBool_FromLong((long)error->certain), (int)error->device_code,
        text(error->device_name), (unsigned long long)error->generation,
        error->reason ? text(bh_reason_name(error->reason)) : text(""),
        (unsigned long long)error->requested, (unsigned long long)error->limit, ticket);
}

PyObject *raise_error(const bh_error *error) {
    PyObject *object = error_object(error);
    if (object) PyErr_SetObject((PyObject *)Py_TYPE(object), object);
    Py_XDECREF(object);
    return NULL;
}

PyObject *raise_last(bh_status status) {
    bh_error error;
    memset(&error, 0, sizeof error);
    bh_last_error(&error);
    error.status = status;
    return raise_error(&error);
}

PyObject *raise_cuda(bh_status status) {
    bh_error error;
    memset(&error, 0, sizeof error);
    bh_cuda_last_error(&error);
    error.status = status;
    return raise_error(&error);
}

PyObject *raise_refused(PyObject *kernel, const char *fix, const char *format, ...) {
    bh_error error;
    memset(&error, 0, sizeof error);
    error.status = BH_E_INVALID;
    va_list list;
    va_start(list, format);
    PyObject *message = PyUnicode_FromFormatV(format, list);
    va_end(list);
    if (!message) return NULL;
    const char *bytes = PyUnicode_AsUTF8(message);
    if (bytes) snprintf(error.message, sizeof error.message, "%s", bytes);
    snprintf(error.fix, sizeof error.fix, "%s", fix);
    const char *name = kernel ? PyUnicode_AsUTF8(kernel) : NULL;
    if (name) snprintf(error.kernel, sizeof error.kernel, "%s", name);
    Py_DECREF(message);
    if (PyErr_Occurred()) return NULL;
    return raise_error(&error);
}
