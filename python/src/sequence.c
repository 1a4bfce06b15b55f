/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared launches and sequences, as functions on handles; _sequence.py has the classes. */
#include <string.h>

#include "core.h"

/* The arguments of a launcher from a tuple, packed; freed by PyMem_Free, and then `kept`. */
static bh_arg *packed_tuple(launcher_object *launcher, PyObject *values, PyObject **kept) {
    Py_ssize_t count = PyTuple_GET_SIZE(values);
    bh_arg *args = PyMem_Calloc((size_t)count + 1, sizeof *args);
    if (!args) return (bh_arg *)PyErr_NoMemory();
    *kept = NULL;
    if (pack_arguments(launcher->kernel, &PyTuple_GET_ITEM(values, 0), count, args, kept))
        return args;
    PyMem_Free(args);
    Py_XDECREF(*kept);
    return NULL;
}

/* A dict of keyword arguments as parse_options takes them. */
static bool options_of(launcher_object *launcher, PyObject *keywords, launch_extras *out) {
    Py_ssize_t count = PyDict_GET_SIZE(keywords), at = 0, i = 0;
    PyObject *key, *value, *names = PyTuple_New(count);
    PyObject **values = PyMem_Calloc((size_t)count + 1, sizeof *values);
    memset(out, 0, sizeof *out);
    bool good = names && values;
    while (good && PyDict_Next(keywords, &at, &key, &value)) {
        PyTuple_SET_ITEM(names, i, Py_NewRef(key));
        values[i++] = value;
    }
    good = good && parse_options(launcher->kernel->device, names, values, out);
    PyMem_Free(values);
    Py_XDECREF(names);
    return good;
}

/* ---- prepared launches ---- */

/* prepare(launcher, arguments, options) */
static PyObject *prepare(PyObject *module, PyObject *args) {
    launcher_object *launcher;
    PyObject *values, *keywords, *kept;
    launch_extras extras;
    bh_prepared out = {0};
    bh_status status = BH_OK;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!", &launcher_type, &launcher, &PyTuple_Type, &values,
                          &PyDict_Type, &keywords))
        return NULL;
    bh_arg *packed = packed_tuple(launcher, values, &kept);
    if (!packed) return NULL;
    bool good = options_of(launcher, keywords, &extras);
    if (good) {
        bh_args list = {packed, (size_t)PyTuple_GET_SIZE(values)};
        extras.options.flags |= BH_SUBMIT_NO_BLOCK;
        status = bh_prepare(launcher->kernel->handle, launcher->shape, list, &extras.options, &out);
    }
    free_options(&extras);
    PyMem_Free(packed);
    Py_XDECREF(kept);
    if (!good) return NULL;
    return status ? raise_last(status) : PyLong_FromUnsignedLongLong(out.id);
}

static bool pack_changes(kernel_object *kernel, PyObject *changes, bh_change *list, size_t *count,
                         PyObject **kept) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(changes, &at, &key, &value)) {
        unsigned long index = PyLong_AsUnsignedLong(key);
        if (PyErr_Occurred()) return false;
        if (index >= kernel->count || *count == ARGUMENTS_ON_STACK) {
            raise_refused(kernel->name, "count arguments from 0",
                          "kernel \"%U\" has %u arguments, and number %lu was changed",
                          kernel->name, kernel->count, index);
            return false;
        }
        list[*count] = (bh_change){.index = (uint32_t)index};
        if (!pack_one(kernel, (Py_ssize_t)index, value, &list[(*count)++].arg, kept)) return false;
    }
    return true;
}

/* prepared_launch(id, launcher, {index: value}): changed arguments stay. */
static PyObject *prepared_launch(PyObject *module, PyObject *args) {
    launcher_object *launcher;
    PyObject *changes, *kept = NULL;
    unsigned long long id;
    bh_change list[ARGUMENTS_ON_STACK];
    size_t count = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "KO!O", &id, &launcher_type, &launcher, &changes)) return NULL;
    if (changes != Py_None && !PyDict_Check(changes))
        return PyErr_Format(PyExc_TypeError, "changes are a dict {argument: value}, not %R",
                            changes);
    if (changes != Py_None && !pack_changes(launcher->kernel, changes, list, &count, &kept)) {
        Py_XDECREF(kept);
        return NULL;
    }
    device_object *device = launcher->kernel->device;
    bh_ticket ticket;
    bh_status status;
    long pause_ns = 0;
    do status = bh_prepared_launch((bh_prepared){id}, list, count, &ticket);
    while (pause_for_room(&status, &pause_ns));
    Py_XDECREF(kept);
    if (status) return status > 0 ? raise_last(status) : NULL;
    device->last = ticket; /* of whichever lane: only waited for */
    return ticket_new(device, ticket);
}

static PyObject *prepared_release(PyObject *module, PyObject *args) {
    unsigned long long id;
    (void)module;
    if (!PyArg_ParseTuple(args, "K", &id)) return NULL;
    bh_prepared_release((bh_prepared){id});
    Py_RETURN_NONE;
}

/* ---- sequences ---- */

static PyObject *sequence_begin(PyObject *module, PyObject *args) {
    PyObject *owner;
    device_object *device;
    bh_sequence_options options = BH_INIT(options);
    bh_sequence out = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "Oz", &owner, &options.name) || !takes_device(owner, &device))
        return NULL;
    bh_status status = bh_sequence_begin(device->handle, &options, &out);
    return status ? raise_last(status) : PyLong_FromUnsignedLongLong(out.id);
}

/* sequence_launch(sequence, launcher, arguments, options): the number of the step. */
static PyObject *sequence_launch(PyObject *module, PyObject *args) {
    unsigned long long id;
    launcher_object *launcher;
    PyObject *values, *keywords, *kept;
    launch_extras extras;
    uint32_t step = 0;
    bh_status status = BH_OK;
    (void)module;
    if (!PyArg_ParseTuple(args, "KO!O!O!", &id, &launcher_type, &launcher, &PyTuple_Type, &values,
                          &PyDict_Type, &keywords))
        return NULL;
    bh_arg *packed = packed_tuple(launcher, values, &kept);
    if (!packed) return NULL;
    bool good = options_of(launcher, keywords, &extras);
    if (good) {
        bh_args list = {packed, (size_t)PyTuple_GET_SIZE(values)};
        if (!PyDict_GetItemString(keywords, "lane")) extras.options.lane.id = 0;
        status = bh_sequence_launch((bh_sequence){id}, launcher->kernel->handle, launcher->shape,
                                    list, &extras.options, &step);
    }
    free_options(&extras);
    PyMem_Free(packed);
    Py_XDECREF(kept);
    if (!good) return NULL;
    return status ? raise_last(status) : PyLong_FromUnsignedLong(step);
}

static PyObject *sequence_add(uint64_t id, const bh_transfer *transfer) {
    uint32_t step = 0;
    bh_status status = bh_sequence_add((bh_sequence){id}, &transfer->request, &step);
    return status ? raise_last(status) : PyLong_FromUnsignedLong(step);
}

static PyObject *sequence_copy(PyObject *module, PyObject *args) {
    unsigned long long id;
    buffer_object *target, *source;
    (void)module;
    if (!PyArg_ParseTuple(args, "KO!O!", &id, &buffer_type, &target, &buffer_type, &source))
        return NULL;
    bh_transfer copy = bh_transfer_copy(target->handle, 0, source->handle, 0, source->bytes);
    return sequence_add(id, &copy);
}

static PyObject *sequence_fill(PyObject *module, PyObject *args) {
    unsigned long long id;
    buffer_object *target;
    Py_buffer pattern;
    (void)module;
    if (!PyArg_ParseTuple(args, "KO!y*", &id, &buffer_type, &target, &pattern)) return NULL;
    bh_transfer fill =
        bh_transfer_fill(target->handle, 0, target->bytes, pattern.buf, (uint32_t)pattern.len);
    PyObject *step = sequence_add(id, &fill);
    PyBuffer_Release(&pattern);
    return step;
}

static PyObject *sequence_finish(PyObject *module, PyObject *args) {
    unsigned long long id;
    bh_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "K", &id)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = bh_sequence_finish((bh_sequence){id});
    Py_END_ALLOW_THREADS
    if (status) return raise_last(status);
    Py_RETURN_NONE;
}

static PyObject *sequence_bind(PyObject *module, PyObject *args) {
    unsigned long long id, recorded;
    buffer_object *buffer;
    bh_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "KKO!", &id, &recorded, &buffer_type, &buffer)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = bh_sequence_bind((bh_sequence){id}, (bh_buffer){recorded}, buffer->handle);
    Py_END_ALLOW_THREADS
    if (status) return raise_last(status);
    Py_RETURN_NONE;
}

/* sequence_set(sequence, step, launcher, argument, value) */
static PyObject *sequence_set(PyObject *module, PyObject *args) {
    unsigned long long id;
    uint32_t step, argument;
    launcher_object *launcher;
    PyObject *value, *kept = NULL;
    bh_arg arg;
    (void)module;
    if (!PyArg_ParseTuple(args, "KO&O!O&O", &id, takes_u32, &step, &launcher_type, &launcher,
                          takes_u32, &argument, &value))
        return NULL;
    if (argument >= launcher->kernel->count)
        return raise_refused(launcher->kernel->name, "count arguments from 0",
                             "kernel \"%U\" has %u arguments, and number %u was set",
                             launcher->kernel->name, launcher->kernel->count, argument);
    if (!pack_one(launcher->kernel, argument, value, &arg, &kept)) {
        Py_XDECREF(kept);
        return NULL;
    }
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = bh_sequence_set((bh_sequence){id}, step, argument, arg);
    Py_END_ALLOW_THREADS
    Py_XDECREF(kept);
    if (status) return raise_last(status);
    Py_RETURN_NONE;
}

typedef struct replay {
    bh_sequence sequence;
    bh_submit_options options;
    bh_ticket *ticket;
} replay;

static bh_status replay_once(void *context, uint32_t flags) {
    const replay *self = context;
    bh_submit_options options = self->options;
    options.flags |= flags;
    return bh_sequence_submit(self->sequence, &options, self->ticket);
}

/* sequence_submit(sequence, device, repeat, deadline, idempotent, after) */
static PyObject *sequence_submit(PyObject *module, PyObject *args) {
    unsigned long long id;
    PyObject *owner, *deadline, *tickets;
    device_object *device;
    int idempotent;
    bh_submit_options options = BH_INIT(options);
    bh_ticket *after = NULL, ticket;
    (void)module;
    if (!PyArg_ParseTuple(args, "KOO&OpO", &id, &owner, takes_u32, &options.repeat, &deadline,
                          &idempotent, &tickets) ||
        !takes_device(owner, &device) || !nanoseconds(deadline, 0, &options.deadline_ns) ||
        !current_lane(device, &options.lane) || !ticket_list(tickets, &after, &options.after_count))
        return NULL;
    options.after = after;
    if (idempotent) options.flags |= BH_SUBMIT_IDEMPOTENT;
    replay self = {{id}, options, &ticket};
    bh_status status = submit_with_room(replay_once, &self);
    PyMem_Free(after);
    if (status) return status > 0 ? raise_last(status) : NULL;
    note_work(device, options.lane, ticket);
    return ticket_new(device, ticket);
}

static PyObject *sequence_release(PyObject *module, PyObject *args) {
    unsigned long long id;
    (void)module;
    if (!PyArg_ParseTuple(args, "K", &id)) return NULL;
    bh_sequence_release((bh_sequence){id});
    Py_RETURN_NONE;
}

#define CALL(name)                                                                                 \
    { #name, name, METH_VARARGS, NULL }
PyMethodDef sequence_methods[] = {
    CALL(prepare),         CALL(prepared_launch), CALL(prepared_release), CALL(sequence_begin),
    CALL(sequence_launch), CALL(sequence_copy),   CALL(sequence_fill),    CALL(sequence_finish),
    CALL(sequence_bind),   CALL(sequence_set),    CALL(sequence_submit),  CALL(sequence_release),
    {NULL, NULL, 0, NULL}};
