/* SPDX-License-Identifier: Apache-2.0 */
/* _core.Ticket: one piece of submitted work. _core.Lane: a queue, and which one is current. */
#include <string.h>

#include "core.h"

/* Tickets that were dropped, for the next ones: most live for one launch. The GIL protects them. */
enum { SPARE_MOST = 64 };
static ticket_object *spare[SPARE_MOST];
static int spare_count;

PyObject *ticket_new(device_object *device, bh_ticket ticket) {
    ticket_object *self;
    if (spare_count) {
        self = spare[--spare_count];
        (void)PyObject_Init((PyObject *)self, &ticket_type);
    } else if (!(self = PyObject_New(ticket_object, &ticket_type)))
        return NULL;
    self->ticket = ticket;
    self->device = (device_object *)Py_NewRef((PyObject *)device);
    return (PyObject *)self;
}

static void ticket_dealloc(PyObject *object) {
    Py_XDECREF(((ticket_object *)object)->device);
    if (spare_count < SPARE_MOST)
        spare[spare_count++] = (ticket_object *)object;
    else
        PyObject_Free(object);
}

/* The program was told of this loss: Device.unseen_failures() does not list it. */
static void note_seen(ticket_object *self, uint64_t generation) {
    PyObject *kind, *value, *trace;
    if (!generation) return;
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *done =
        PyObject_CallMethod((PyObject *)self->device, "_saw", "K", (unsigned long long)generation);
    if (!done) PyErr_Clear();
    Py_XDECREF(done);
    PyErr_Restore(kind, value, trace);
}

static PyObject *raise_ticket(ticket_object *self, bh_status status) {
    bh_error error;
    bh_ticket ticket = self->ticket;
    memset(&error, 0, sizeof error);
    if (bh_ticket_error(ticket, &error) == BH_E_BUSY || error.status != status) {
        if (status != BH_E_TIMEOUT) return raise_last(status);
        memset(&error, 0, sizeof error);
        error.status = status;
        error.ticket = ticket;
        snprintf(error.message, sizeof error.message, "the work did not complete in time");
        snprintf(
            error.fix, sizeof error.fix,
            "wait longer, or give launches a deadline: kernel[grid, block](..., deadline=1.0)");
    }
    raise_error(&error);
    note_seen(self, error.generation);
    return NULL;
}

static PyObject *ticket_wait(PyObject *object, PyObject *const *args, Py_ssize_t count,
                             PyObject *names) {
    ticket_object *self = (ticket_object *)object;
    uint64_t timeout = BH_FOREVER;
    bh_status status;
    Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    if (count + named > 1 ||
        (named && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "timeout"))) {
        PyErr_SetString(PyExc_TypeError, "wait() takes one argument: timeout, in seconds");
        return NULL;
    }
    if (count + named && !nanoseconds(args[0], BH_FOREVER, &timeout)) return NULL;
    if (!wait_ticket(self->ticket, timeout, &status)) return NULL;
    if (status == BH_OK) Py_RETURN_NONE;
    return raise_ticket(self, status == BH_E_BUSY ? BH_E_TIMEOUT : status);
}

static PyObject *ticket_done(PyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(bh_wait(((ticket_object *)object)->ticket, 0) != BH_E_BUSY);
}

static PyObject *ticket_status(PyObject *object, void *unused) {
    (void)unused;
    return PyLong_FromLong(bh_wait(((ticket_object *)object)->ticket, 0));
}

static PyObject *ticket_get_error(PyObject *object, void *unused) {
    bh_error error;
    (void)unused;
    memset(&error, 0, sizeof error);
    bh_status status = bh_ticket_error(((ticket_object *)object)->ticket, &error);
    if (status == BH_OK || status == BH_E_BUSY) Py_RETURN_NONE;
    error.status = status;
    note_seen((ticket_object *)object, error.generation);
    return error_object(&error);
}

static PyObject *ticket_cancel(PyObject *object, PyObject *unused) {
    (void)unused;
    bh_status status = bh_cancel(((ticket_object *)object)->ticket);
    if (status == BH_E_BUSY || status == BH_E_INVALID) Py_RETURN_FALSE;
    if (status) return raise_last(status);
    Py_RETURN_TRUE;
}

static PyObject *ticket_times(PyObject *object, PyObject *unused) {
    bh_ticket_info info = BH_INIT(info);
    bh_status status;
    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    status = bh_ticket_get_info(((ticket_object *)object)->ticket, &info);
    Py_END_ALLOW_THREADS
    return status ? raise_last(status) : struct_dict(&layout_ticket_info, &info);
}

/* Makes the device's eventfd readable when the work is done. False: its lane is gone. */
static PyObject *ticket_notify(PyObject *object, PyObject *unused) {
    (void)unused;
    bh_status status = bh_notify(((ticket_object *)object)->ticket);
    if (status == BH_E_STOPPED) Py_RETURN_FALSE;
    if (status) return raise_last(status);
    Py_RETURN_TRUE;
}

static PyObject *ticket_await(PyObject *object) {
    PyObject *module = PyImport_ImportModule("bulkhead._aio");
    if (!module) return NULL;
    PyObject *iterator = PyObject_CallMethod(module, "wait", "O", object);
    Py_DECREF(module);
    return iterator;
}

/* ---- callbacks ---- */

static void run_done(void *context, bh_ticket ticket, bh_status status) {
    PyObject *pair = context; /* (ticket, function) */
    (void)ticket, (void)status;
    if (atomic_load(&interpreter_ends) || !Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *function = PyTuple_GET_ITEM(pair, 1);
    PyObject *result = PyObject_CallOneArg(function, PyTuple_GET_ITEM(pair, 0));
    if (!result) PyErr_WriteUnraisable(function);
    Py_XDECREF(result);
    Py_DECREF(pair);
    PyGILState_Release(state);
}

static PyObject *ticket_on_done(PyObject *object, PyObject *function) {
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "%R cannot be called", function);
    PyObject *pair = PyTuple_Pack(2, object, function);
    if (!pair) return NULL;
    bh_status status;
    bh_ticket ticket = ((ticket_object *)object)->ticket;
    Py_BEGIN_ALLOW_THREADS
    status = bh_on_done(ticket, run_done, pair);
    Py_END_ALLOW_THREADS
    if (!status) Py_RETURN_NONE;
    Py_DECREF(pair);
    return raise_last(status);
}

static PyObject *ticket_get_device(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef((PyObject *)((ticket_object *)object)->device);
}

static PyObject *ticket_id(PyObject *object, void *unused) {
    (void)unused;
    bh_ticket ticket = ((ticket_object *)object)->ticket;
    return Py_BuildValue("(KK)", (unsigned long long)ticket.lane,
                         (unsigned long long)ticket.sequence);
}

static PyObject *ticket_repr(PyObject *object) {
    bh_status status = bh_wait(((ticket_object *)object)->ticket, 0);
    return PyUnicode_FromFormat("<bulkhead.Ticket %s>", status == BH_OK ? "completed"
                                                        : status == BH_E_BUSY
                                                            ? "not completed"
                                                            : bh_status_name(status));
}

static PyObject *ticket_compare(PyObject *a, PyObject *b, int how) {
    if ((how != Py_EQ && how != Py_NE) || !Py_IS_TYPE(b, &ticket_type)) Py_RETURN_NOTIMPLEMENTED;
    bh_ticket x = ((ticket_object *)a)->ticket, y = ((ticket_object *)b)->ticket;
    bool same = x.lane == y.lane && x.sequence == y.sequence;
    return PyBool_FromLong(same == (how == Py_EQ));
}
static Py_hash_t ticket_hash(PyObject *object) {
    bh_ticket ticket = ((ticket_object *)object)->ticket;
    Py_hash_t hash = (Py_hash_t)(ticket.lane * 0x9e3779b97f4a7c15u + ticket.sequence);
    return hash == -1 ? -2 : hash;
}

bool ticket_list(PyObject *tickets, bh_ticket **out, size_t *count) {
    *out = NULL, *count = 0;
    if (!tickets || tickets == Py_None) return true;
    if (Py_IS_TYPE(tickets, &ticket_type)) {
        if (!(*out = PyMem_Malloc(sizeof **out))) return PyErr_NoMemory(), false;
        **out = ((ticket_object *)tickets)->ticket;
        *count = 1;
        return true;
    }
    PyObject *list = PySequence_Fast(tickets, "tickets are given as a ticket or a list of them");
    if (!list) return false;
    size_t length = (size_t)PySequence_Fast_GET_SIZE(list);
    *out = PyMem_Malloc((length + 1) * sizeof **out);
    for (size_t i = 0; *out && i < length; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(list, (Py_ssize_t)i);
        if (!Py_IS_TYPE(item, &ticket_type)) {
            PyErr_Format(PyExc_TypeError, "%R is not a ticket", item);
            PyMem_Free(*out);
            Py_DECREF(list);
            return *out = NULL, false;
        }
        (*out)[i] = ((ticket_object *)item)->ticket;
    }
    *count = length;
    Py_DECREF(list);
    if (!*out) PyErr_NoMemory();
    return *out != NULL;
}

static PyMethodDef ticket_methods[] = {
    {"wait", (PyCFunction)(void (*)(void))ticket_wait, METH_FASTCALL | METH_KEYWORDS,
     "wait(timeout=None)\n--\n\n"
     "Waits until the work is done; raises its error, FaultError for example, if it failed.\n\n"
     "timeout is in seconds; bulkhead.TimeoutError if the work is not done by then. Ctrl-C ends\n"
     "the wait.\n\n"
     "    ticket = kernel[grid, block](x)\n    ticket.wait(timeout=5)"},
    {"cancel", ticket_cancel, METH_NOARGS,
     "cancel()\n--\n\nCancels work that has not started. False: it has started or is done."},
    {"on_done", ticket_on_done, METH_O,
     "on_done(function)\n--\n\n"
     "Calls function(ticket) once, on a thread of the library, when the work is done. It must not\n"
     "wait for work. An exception in it goes to sys.unraisablehook."},
    {"times", ticket_times, METH_NOARGS,
     "times()\n--\n\nHow long the work was queued, waited and ran, in nanoseconds, as a dict: of\n"
     "work submitted with timed=True that has completed."},
    {"_notify", ticket_notify, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef ticket_getters[] = {
    {"done", ticket_done, NULL, "True if the work has a result. Never waits.", NULL},
    {"_status", ticket_status, NULL, NULL, NULL},
    {"error", ticket_get_error, NULL,
     "The exception that wait() raises; None while there is none. Never waits.", NULL},
    {"device", ticket_get_device, NULL, "The device that the work was submitted to.", NULL},
    {"id", ticket_id, NULL, "The numbers of lane and position, as in messages and reports.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyAsyncMethods ticket_async = {.am_await = ticket_await};

PyTypeObject ticket_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bulkhead.Ticket",
    .tp_doc = "One piece of submitted work: wait for it, await it, ask whether it is done.\n\n"
              "    ticket = saxpy[grid, block](2.0, x, y, n)\n"
              "    ticket.wait()            # or, in a coroutine: await ticket",
    .tp_basicsize = sizeof(ticket_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = ticket_dealloc,
    .tp_methods = ticket_methods,
    .tp_getset = ticket_getters,
    .tp_as_async = &ticket_async,
    .tp_repr = ticket_repr,
    .tp_richcompare = ticket_compare,
    .tp_hash = ticket_hash,
};

/* ---- lanes ---- */

bool lanes_used;
PyObject *lane_variable;

bool current_lane(device_object *device, bh_lane *out) {
    out->id = 0;
    if (!lanes_used) return true;
    PyObject *value = NULL;
    if (PyContextVar_Get(lane_variable, NULL, &value)) return false;
    /* (lane, outer): the lane that is current, and what was before it; NULL or None at the end. */
    for (PyObject *at = value; at && at != Py_None; at = PyTuple_GET_ITEM(at, 1)) {
        lane_object *lane = (lane_object *)PyTuple_GET_ITEM(at, 0);
        if (lane->device != device || !lane->handle.id) continue;
        *out = lane->handle;
        break;
    }
    Py_XDECREF(value);
    return true;
}

void note_work(device_object *device, bh_lane lane, bh_ticket ticket) {
    if (!lane.id) device->last = ticket;
}

static PyObject *lane_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *owner;
    device_object *device;
    bh_lane_options options = BH_INIT(options);
    if (kwargs && PyDict_GET_SIZE(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "Lane takes no keywords: use device.lane(priority=...)");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "Oi", &owner, &options.priority) || !takes_device(owner, &device))
        return NULL;
    lane_object *self = (lane_object *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->device = (device_object *)Py_NewRef(owner);
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = bh_lane_open(device->handle, &options, &self->handle);
    Py_END_ALLOW_THREADS
    if (!status) return (PyObject *)self;
    Py_DECREF(self);
    return raise_last(status);
}

static PyObject *lane_release(PyObject *object, PyObject *unused) {
    lane_object *self = (lane_object *)object;
    (void)unused;
    if (self->handle.id) bh_lane_release(self->handle);
    self->handle.id = 0;
    Py_RETURN_NONE;
}

static void lane_dealloc(PyObject *object) {
    lane_object *self = (lane_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->handle.id) bh_lane_release(self->handle);
    Py_XDECREF(self->device);
    type->tp_free(object);
}

bool lane_is_open(lane_object *self) {
    if (self->handle.id) return true;
    raise_refused(NULL, "open one with device.lane()", "the lane was released");
    return false;
}

static bh_status lane_poll(void *context, uint64_t timeout_ns) {
    return bh_lane_sync(*(bh_lane *)context, timeout_ns);
}

static PyObject *lane_sync(PyObject *object, PyObject *seconds) {
    lane_object *self = (lane_object *)object;
    uint64_t timeout;
    bh_status status;
    bh_lane lane = self->handle;
    if (!lane_is_open(self) || !nanoseconds(seconds, BH_FOREVER, &timeout)) return NULL;
    if (!wait_polling(lane_poll, &lane, timeout, &status)) return NULL;
    if (status) return raise_last(status == BH_E_BUSY ? BH_E_TIMEOUT : status);
    Py_RETURN_NONE;
}

/* The lane becomes current, in this thread or task: (lane, outer) in the context. */
static PyObject *lane_enter(PyObject *object, PyObject *unused) {
    lane_object *self = (lane_object *)object;
    PyObject *outer = NULL;
    (void)unused;
    if (!lane_is_open(self)) return NULL;
    if (PyContextVar_Get(lane_variable, Py_None, &outer)) return NULL;
    lanes_used = true;
    PyObject *pair = PyTuple_Pack(2, object, outer);
    PyObject *token = pair ? PyContextVar_Set(lane_variable, pair) : NULL;
    Py_XDECREF(pair);
    Py_DECREF(outer);
    if (!token) return NULL;
    Py_DECREF(token);
    self->entered++;
    Py_RETURN_NONE;
}

/* The chain without the innermost entry of a lane. */
static PyObject *chain_without(PyObject *chain, PyObject *lane) {
    if (!chain || chain == Py_None) return Py_NewRef(Py_None); /* entered in another context */
    if (PyTuple_GET_ITEM(chain, 0) == lane) return Py_NewRef(PyTuple_GET_ITEM(chain, 1));
    PyObject *rest = chain_without(PyTuple_GET_ITEM(chain, 1), lane);
    PyObject *pair = rest ? PyTuple_Pack(2, PyTuple_GET_ITEM(chain, 0), rest) : NULL;
    Py_XDECREF(rest);
    return pair;
}

static PyObject *lane_leave(PyObject *object, PyObject *unused) {
    lane_object *self = (lane_object *)object;
    PyObject *chain = NULL, *token = NULL;
    if (PyContextVar_Get(lane_variable, Py_None, &chain)) return NULL;
    PyObject *rest = chain_without(chain, object);
    if (rest) token = PyContextVar_Set(lane_variable, rest);
    Py_XDECREF(rest);
    Py_DECREF(chain);
    if (!token) return NULL;
    Py_DECREF(token);
    return --self->entered ? Py_NewRef(Py_None) : lane_release(object, unused);
}

static PyObject *lane_get_device(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef((PyObject *)((lane_object *)object)->device);
}

static PyMethodDef lane_methods[] = {{"_release", lane_release, METH_NOARGS, NULL},
                                     {"_sync", lane_sync, METH_O, NULL},
                                     {"_enter", lane_enter, METH_NOARGS, NULL},
                                     {"_leave", lane_leave, METH_NOARGS, NULL},
                                     {NULL, NULL, 0, NULL}};
static PyGetSetDef lane_getters[] = {
    {"device", lane_get_device, NULL, "The device that the lane belongs to.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

PyTypeObject lane_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bulkhead._core.Lane",
    .tp_basicsize = sizeof(lane_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = lane_new,
    .tp_dealloc = lane_dealloc,
    .tp_methods = lane_methods,
    .tp_getset = lane_getters,
};

int lanes_init(PyObject *module) {
    (void)module;
    lane_variable = PyContextVar_New("bulkhead.lane", NULL);
    return lane_variable ? 0 : -1;
}
