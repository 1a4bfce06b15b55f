/* SPDX-License-Identifier: Apache-2.0 */
/* Watches of a device and the library's log: Python functions that threads of the library call. */
#include <string.h>

#include "core.h"

static PyObject *event_object(const bh_event *event) {
    if (event->kind == BH_EVENT_LOSS && event->loss)
        return Py_BuildValue("(sN)", "loss", struct_dict(&layout_loss, event->loss));
    if (event->kind == BH_EVENT_HEALTH && event->health)
        return Py_BuildValue("(sN)", "health", struct_dict(&layout_health, event->health));
    if (event->kind == BH_EVENT_PRINT && event->text)
        return Py_BuildValue(
            "(sN)", "print",
            PyUnicode_DecodeUTF8(event->text, (Py_ssize_t)event->length, "replace"));
    return NULL;
}

static void run_event(void *context, const bh_event *event) {
    if (atomic_load(&interpreter_ends) || !Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *function = Py_NewRef((PyObject *)context); /* it may close its own watch */
    PyObject *pair = event_object(event);
    PyObject *result = pair ? PyObject_CallObject(function, pair) : NULL;
    if (PyErr_Occurred()) PyErr_WriteUnraisable(function);
    Py_XDECREF(result);
    Py_XDECREF(pair);
    Py_DECREF(function);
    PyGILState_Release(state);
}

/* watch_open(device, kinds, function): an id. The device keeps the function until the watch is
 * released or the device closed. */
static PyObject *watch_open(PyObject *module, PyObject *args) {
    PyObject *owner, *function;
    device_object *device;
    bh_watch_options options = BH_INIT(options);
    bh_watch out = {0};
    bh_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "OIO", &owner, &options.kinds, &function) ||
        !takes_device(owner, &device))
        return NULL;
    if (!device->watches && !(device->watches = PyDict_New())) return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = bh_watch_open(device->handle, &options, run_event, function, &out);
    Py_END_ALLOW_THREADS
    if (status) return raise_last(status);
    PyObject *id = PyLong_FromUnsignedLongLong(out.id);
    if (!device->watches) return id; /* another thread has closed the device */
    if (id && !PyDict_SetItem(device->watches, id, function)) return id;
    Py_XDECREF(id);
    Py_BEGIN_ALLOW_THREADS(void)
    bh_watch_release(out);
    Py_END_ALLOW_THREADS
    return NULL;
}

/* watch_release(device, id) */
static PyObject *watch_release(PyObject *module, PyObject *args) {
    PyObject *owner, *id;
    bh_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!", &device_type, &owner, &PyLong_Type, &id)) return NULL;
    device_object *device = (device_object *)owner;
    bh_watch watch = {PyLong_AsUnsignedLongLong(id)};
    if (PyErr_Occurred()) return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = bh_watch_release(watch);
    Py_END_ALLOW_THREADS
    if (status == BH_OK && device->watches && PyDict_GetItem(device->watches, id) &&
        PyDict_DelItem(device->watches, id))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *logger;

static void run_log(void *context, int32_t level, const char *text) {
    (void)context;
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *kind, *value, *trace; /* the log can speak within a call that has failed */
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *function = Py_XNewRef(logger);
    if (function) {
        PyObject *result = PyObject_CallFunction(function, "is", (int)level, text);
        if (!result) PyErr_WriteUnraisable(function);
        Py_XDECREF(result);
        Py_DECREF(function);
    }
    PyErr_Restore(kind, value, trace);
    PyGILState_Release(state);
}

/* set_log(function or None, level) */
static PyObject *set_log(PyObject *module, PyObject *args) {
    PyObject *function;
    int level;
    bh_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oi", &function, &level)) return NULL;
    bool on = function != Py_None;
    PyObject *before = logger;
    logger = on ? Py_NewRef(function) : NULL;
    Py_BEGIN_ALLOW_THREADS
    status = bh_log_set(on ? run_log : NULL, NULL, level);
    Py_END_ALLOW_THREADS
    Py_XDECREF(before);
    if (status) return raise_last(status);
    Py_RETURN_NONE;
}

PyMethodDef callback_methods[] = {{"watch_open", watch_open, METH_VARARGS, NULL},
                                  {"watch_release", watch_release, METH_VARARGS, NULL},
                                  {"set_log", set_log, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
