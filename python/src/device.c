/* SPDX-License-Identifier: Apache-2.0 */
/* _core.Device: opening, closing, and what a device tells of itself. */
#include <string.h>

#include "core.h"

/* Devices that are open, so that none is when the interpreter ends: their threads call Python. */
enum { OPEN_MOST = 1024 };
static struct {
    bh_device handle;
    device_object *object; /* NULL: it is gone, and its close was refused */
} open_devices[OPEN_MOST];
atomic_bool interpreter_ends;

static void remember(device_object *device) {
    for (int i = 0; i < OPEN_MOST; i++) {
        if (open_devices[i].handle.id) continue;
        open_devices[i].handle = device->handle, open_devices[i].object = device;
        return;
    }
}

/* The device was closed, or only its object is gone. */
static void forget(bh_device device, bool closed) {
    for (int i = 0; i < OPEN_MOST; i++) {
        if (open_devices[i].handle.id != device.id) continue;
        open_devices[i].object = NULL;
        if (closed) open_devices[i].handle.id = 0;
    }
}

/* A device with views stays: their memory ends with it, and code that still runs may look at it. */
void close_all_devices(void) {
    for (int i = 0; i < OPEN_MOST; i++) {
        bh_device device = open_devices[i].handle;
        device_object *object = open_devices[i].object;
        if (!device.id || (object && object->views)) continue;
        open_devices[i].handle.id = 0;
        if (object) object->open = false;
        Py_BEGIN_ALLOW_THREADS
        bh_device_close(device);
        Py_END_ALLOW_THREADS
    }
    atomic_store(&interpreter_ends, true);
}

void view_begins(buffer_object *buffer) {
    buffer->exports++;
    buffer->device->views++;
}

/* The device that could not be closed because of its views closes with the last one. */
void view_ends(buffer_object *buffer) {
    device_object *device = buffer->device;
    PyObject *kind, *value, *trace;
    buffer->exports--;
    if (--device->views || !device->leaving || !device->open) return;
    PyErr_Fetch(&kind, &value, &trace);
    PyObject *done = PyObject_CallMethod((PyObject *)device, "_close", "O", Py_False);
    if (!done) PyErr_WriteUnraisable((PyObject *)device);
    Py_XDECREF(done);
    PyErr_Restore(kind, value, trace);
}

bool device_is_open(device_object *device) {
    if (device->open) return true;
    raise_refused(NULL, "open a new device with bulkhead.open()", "the device was closed");
    return false;
}

bool takes_device(PyObject *object, device_object **out) {
    if (!PyObject_TypeCheck(object, &device_type)) {
        PyErr_Format(PyExc_TypeError, "a bulkhead.Device is needed, not %R", object);
        return false;
    }
    *out = (device_object *)object;
    return device_is_open(*out);
}

static int device_init(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"device",
                            "flags",
                            "worker_dir",
                            "restart_window_ns",
                            "restart_limit",
                            "quarantine_after",
                            "deadline_ns",
                            "wait_spin_ns",
                            "worker_spin_ns",
                            "close_timeout_ns",
                            "memory_limit",
                            "queue_length",
                            "standbys",
                            "stuck_timeout_ns",
                            "report_dir",
                            "sandbox",
                            "executor",
                            "print_limit",
                            NULL};
    device_object *self = (device_object *)object;
    bh_device_options o = BH_INIT(o);
    uint64_t close = 0;
    if (self->open) {
        PyErr_SetString(PyExc_TypeError, "the device is open already");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "z|O&zO&O&O&O&O&O&O&O&O&O&O&zO&O&O&:Device", names, &o.device, takes_u32,
            &o.flags, &o.worker_dir, takes_u64, &o.restart_window_ns, takes_u32, &o.restart_limit,
            takes_u32, &o.quarantine_after, takes_u64, &o.deadline_ns, takes_u64, &o.wait_spin_ns,
            takes_u64, &o.worker_spin_ns, takes_u64, &close, takes_u64, &o.memory_limit, takes_u32,
            &o.queue_length, takes_u32, &o.standbys, takes_u64, &o.stuck_timeout_ns, &o.report_dir,
            takes_u32, &o.sandbox, takes_u32, &o.executor, takes_u64, &o.print_limit))
        return -1;
    /* close() itself waits for the work, where a signal can end the wait. */
    self->close_ns = close ? close : 10000000000u;
    o.close_timeout_ns = 100000000;
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = bh_device_open(&o, &self->handle);
    Py_END_ALLOW_THREADS
    if (status) {
        raise_last(status);
        return -1;
    }
    self->open = true;
    remember(self);
    return 0;
}

static bh_status sync_poll(void *context, uint64_t timeout_ns) {
    return bh_device_sync(((device_object *)context)->handle, timeout_ns);
}

static bool refuse_views(device_object *self) {
    if (!self->views) return false;
    PyErr_Format(PyExc_BufferError,
                 "the device cannot be closed while %zd views of its managed memory exist (NumPy "
                 "arrays, memoryviews). Fix: delete them, or copy what is needed later with "
                 ".copy()",
                 self->views);
    return true;
}

/* close(wait): with wait False running work is cancelled soon. */
static PyObject *device_close(PyObject *object, PyObject *wait) {
    device_object *self = (device_object *)object;
    bh_status status = BH_OK;
    if (!self->open) Py_RETURN_NONE;
    if (refuse_views(self)) return NULL;
    int patient = PyObject_IsTrue(wait);
    if (patient < 0) return NULL;
    if (patient && !wait_polling(sync_poll, self, self->close_ns, &status)) return NULL;
    if (!self->open) Py_RETURN_NONE;     /* another thread was faster */
    if (refuse_views(self)) return NULL; /* another thread made one during the wait */
    bh_device handle = self->handle;
    self->open = false; /* no views begin while the memory goes */
    Py_BEGIN_ALLOW_THREADS
    status = bh_device_close(handle);
    Py_END_ALLOW_THREADS
    bh_health health = BH_INIT(health);
    if (status && status != BH_E_STOPPED) {
        bh_error error; /* before another call takes its place */
        bh_last_error(&error);
        error.status = status;
        if (bh_device_get_health(handle, &health) == BH_OK) { /* refused: in a callback */
            self->open = true;
            return raise_error(&error);
        }
    }
    forget(handle, true);
    Py_CLEAR(self->watches);
    Py_RETURN_NONE;
}

/* _leave(): closes with the last view. */
static PyObject *device_leave(PyObject *object, PyObject *unused) {
    device_object *self = (device_object *)object;
    (void)unused;
    self->leaving = true;
    Py_RETURN_NONE;
}

static void device_dealloc(PyObject *object) {
    device_object *self = (device_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    bh_status status = BH_OK;
    if (self->open) {
        bh_device handle = self->handle;
        forget(handle, false);
        Py_BEGIN_ALLOW_THREADS
        status = bh_device_close(handle);
        Py_END_ALLOW_THREADS
        /* In a callback it is refused. The device is closed when the interpreter ends, and its
         * watches, which are called until then, stay. */
        if (status == BH_E_STOPPED) status = BH_OK;
        if (status == BH_OK) forget(handle, true);
    }
    if (status == BH_OK) Py_CLEAR(self->watches);
    type->tp_free(object);
}

static PyObject *device_sync(PyObject *object, PyObject *seconds) {
    device_object *self = (device_object *)object;
    uint64_t timeout;
    bh_status status;
    if (!device_is_open(self) || !nanoseconds(seconds, BH_FOREVER, &timeout)) return NULL;
    if (!wait_polling(sync_poll, self, timeout, &status)) return NULL;
    if (status == BH_E_BUSY) { /* a timeout of 0 */
        bh_error error = {.status = BH_E_TIMEOUT};
        snprintf(error.message, sizeof error.message, "work on the device is not complete");
        snprintf(error.fix, sizeof error.fix, "wait longer");
        return raise_error(&error);
    }
    if (status) return raise_last(status);
    Py_RETURN_NONE;
}

/* The calls that fill in one struct. */
#define GETTER(name, type, call)                                                                   \
    static PyObject *device_##name(PyObject *object, PyObject *unused) {                           \
        device_object *self = (device_object *)object;                                             \
        (void)unused;                                                                              \
        type info = BH_INIT(info);                                                                 \
        if (!device_is_open(self)) return NULL;                                                    \
        bh_status status;                                                                          \
        Py_BEGIN_ALLOW_THREADS                                                                     \
        status = call(self->handle, &info);                                                        \
        Py_END_ALLOW_THREADS                                                                       \
        return status ? raise_last(status) : struct_dict(&layout_##name, &info);                   \
    }
#define layout_info   layout_device_info
#define layout_limits layout_device_limits
#define layout_memory layout_memory_info
GETTER(info, bh_device_info, bh_device_get_info)
GETTER(limits, bh_device_limits, bh_device_get_limits)
GETTER(health, bh_health, bh_device_get_health)
GETTER(memory, bh_memory_info, bh_memory_get_info)

static PyObject *dicts(const layout *kind, const uint8_t *entries, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *dict = struct_dict(kind, entries + i * kind->bytes);
        if (!dict)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, (Py_ssize_t)i, dict);
    }
    return list;
}

typedef bh_status list_fn(device_object *self, uint64_t number, void *entries, size_t entry_size,
                          size_t capacity, size_t *count);

static bh_status list_losses(device_object *self, uint64_t number, void *entries, size_t size,
                             size_t capacity, size_t *count) {
    (void)number;
    return bh_device_list_losses(self->handle, entries, size, capacity, count);
}
static bh_status list_tags(device_object *self, uint64_t number, void *entries, size_t size,
                           size_t capacity, size_t *count) {
    (void)number;
    return bh_memory_list_tags(self->handle, entries, size, capacity, count);
}
static bh_status list_findings(device_object *self, uint64_t number, void *entries, size_t size,
                               size_t capacity, size_t *count) {
    return bh_device_list_findings(self->handle, number, entries, size, capacity, count);
}

static PyObject *make_list(device_object *self, list_fn *call, const layout *kind,
                           uint64_t number) {
    size_t count = 0;
    if (!device_is_open(self)) return NULL;
    bh_status status = call(self, number, NULL, kind->bytes, 0, &count);
    if (status) return raise_last(status);
    uint8_t *entries = PyMem_Calloc(count + 1, kind->bytes);
    if (!entries) return PyErr_NoMemory();
    size_t capacity = count;
    status = call(self, number, entries, kind->bytes, capacity, &count);
    if (count > capacity) count = capacity;
    PyObject *list = status ? raise_last(status) : dicts(kind, entries, count);
    PyMem_Free(entries);
    return list;
}

static PyObject *device_losses(PyObject *self, PyObject *unused) {
    (void)unused;
    return make_list((device_object *)self, list_losses, &layout_loss, 0);
}
static PyObject *device_tags(PyObject *self, PyObject *unused) {
    (void)unused;
    return make_list((device_object *)self, list_tags, &layout_memory_tag, 0);
}
static PyObject *device_findings(PyObject *self, PyObject *number) {
    unsigned long long loss = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) return NULL;
    return make_list((device_object *)self, list_findings, &layout_finding, loss);
}

typedef bh_status text_fn(bh_device device, uint64_t loss, char *text, size_t capacity,
                          size_t *length);
static PyObject *make_text(PyObject *object, PyObject *number, text_fn *call) {
    device_object *self = (device_object *)object;
    unsigned long long loss = PyLong_AsUnsignedLongLong(number);
    size_t length = 0;
    if (PyErr_Occurred() || !device_is_open(self)) return NULL;
    bh_status status = call(self->handle, loss, NULL, 0, &length);
    if (status) return raise_last(status);
    char *text = PyMem_Malloc(length + 1);
    if (!text) return PyErr_NoMemory();
    status = call(self->handle, loss, text, length + 1, &length);
    PyObject *result =
        status ? raise_last(status) : PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
    PyMem_Free(text);
    return result;
}
static PyObject *device_report(PyObject *self, PyObject *number) {
    return make_text(self, number, bh_device_get_report);
}
static PyObject *device_fault_state(PyObject *self, PyObject *number) {
    return make_text(self, number, bh_device_get_fault_state);
}

static bh_status standby_poll(void *context, uint64_t timeout_ns) {
    return bh_device_wait_standby(((device_object *)context)->handle, timeout_ns);
}
static PyObject *device_wait_standby(PyObject *object, PyObject *seconds) {
    device_object *self = (device_object *)object;
    uint64_t timeout;
    bh_status status;
    if (!device_is_open(self) || !nanoseconds(seconds, BH_FOREVER, &timeout)) return NULL;
    if (!wait_polling(standby_poll, self, timeout, &status)) return NULL;
    if (status) return raise_last(status == BH_E_BUSY ? BH_E_TIMEOUT : status);
    Py_RETURN_NONE;
}

static PyObject *device_eventfd(PyObject *object, PyObject *unused) {
    device_object *self = (device_object *)object;
    int fd = -1;
    (void)unused;
    if (!device_is_open(self)) return NULL;
    bh_status status = bh_device_eventfd(self->handle, &fd);
    return status ? raise_last(status) : PyLong_FromLong(fd);
}

static PyObject *device_trim(PyObject *object, PyObject *keep) {
    device_object *self = (device_object *)object;
    unsigned long long bytes = PyLong_AsUnsignedLongLong(keep);
    uint64_t freed = 0;
    if (PyErr_Occurred() || !device_is_open(self)) return NULL;
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = bh_memory_trim(self->handle, bytes, &freed);
    Py_END_ALLOW_THREADS
    return status ? raise_last(status) : PyLong_FromUnsignedLongLong(freed);
}

static PyObject *device_set_limit(PyObject *object, PyObject *args) {
    device_object *self = (device_object *)object;
    const char *tag;
    uint64_t bytes;
    if (!PyArg_ParseTuple(args, "zO&", &tag, takes_u64, &bytes) || !device_is_open(self))
        return NULL;
    bh_status status = bh_memory_set_limit(self->handle, tag, bytes);
    if (status) return raise_last(status);
    Py_RETURN_NONE;
}

static PyObject *device_get_open(PyObject *object, void *unused) {
    (void)unused;
    return PyBool_FromLong(((device_object *)object)->open);
}
static PyObject *device_get_handle(PyObject *object, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(((device_object *)object)->handle.id);
}

static PyMethodDef methods[] = {{"_close", device_close, METH_O, NULL},
                                {"_leave", device_leave, METH_NOARGS, NULL},
                                {"_sync", device_sync, METH_O, NULL},
                                {"_info", device_info, METH_NOARGS, NULL},
                                {"_limits", device_limits, METH_NOARGS, NULL},
                                {"_health", device_health, METH_NOARGS, NULL},
                                {"_memory", device_memory, METH_NOARGS, NULL},
                                {"_losses", device_losses, METH_NOARGS, NULL},
                                {"_tags", device_tags, METH_NOARGS, NULL},
                                {"_findings", device_findings, METH_O, NULL},
                                {"_report", device_report, METH_O, NULL},
                                {"_fault_state", device_fault_state, METH_O, NULL},
                                {"_wait_standby", device_wait_standby, METH_O, NULL},
                                {"_eventfd", device_eventfd, METH_NOARGS, NULL},
                                {"_trim", device_trim, METH_O, NULL},
                                {"_set_limit", device_set_limit, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};
static PyGetSetDef getters[] = {{"is_open", device_get_open, NULL, "False after close().", NULL},
                                {"_handle", device_get_handle, NULL, NULL, NULL},
                                {NULL, NULL, NULL, NULL, NULL}};

PyTypeObject device_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bulkhead._core.Device",
    .tp_basicsize = sizeof(device_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_init = device_init,
    .tp_dealloc = device_dealloc,
    .tp_methods = methods,
    .tp_getset = getters,
};

/* ---- devices of the machine ---- */

static PyObject *list_devices(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    bh_device_entry *entries = PyMem_Calloc(64, sizeof *entries);
    size_t count = 0;
    bh_status status;
    if (!entries) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    status = bh_device_list(entries, sizeof *entries, 64, &count);
    Py_END_ALLOW_THREADS
    PyObject *list = status ? raise_last(status) : PyList_New(0);
    for (size_t i = 0; list && i < count && i < 64; i++) {
        PyObject *error = entries[i].status ? error_object(&entries[i].error) : Py_NewRef(Py_None);
        PyObject *entry =
            error ? Py_BuildValue("(sNN)", entries[i].device,
                                  struct_dict(&layout_device_info, &entries[i].info), error)
                  : NULL;
        if (!entry || PyList_Append(list, entry)) Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    PyMem_Free(entries);
    return list;
}

static PyObject *close_all(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    close_all_devices();
    Py_RETURN_NONE;
}

PyMethodDef device_functions[] = {{"list_devices", list_devices, METH_NOARGS, NULL},
                                  {"close_all", close_all, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
