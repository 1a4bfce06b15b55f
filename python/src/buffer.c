/* SPDX-License-Identifier: Apache-2.0 */
/* _core.Buffer: device memory, its transfers, and the buffer protocol where the process sees the
 * memory. bulkhead.Array is derived from it and knows dtypes, shapes and slices. */
#include <string.h>
#include <unistd.h>

#include "core.h"

static buffer_object *buffer_make(PyTypeObject *type, device_object *device) {
    buffer_object *self = (buffer_object *)type->tp_alloc(type, 0);
    if (self) self->device = (device_object *)Py_NewRef((PyObject *)device);
    return self;
}

/* Buffer(device, type, count, flags, tag, align) */
static PyObject *buffer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *owner;
    device_object *device;
    unsigned element;
    unsigned long long count;
    bh_buffer_options options = BH_INIT(options);
    if (kwargs && PyDict_GET_SIZE(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "arrays are made by device.empty(), zeros() and array()");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "OIKI|zO&", &owner, &element, &count, &options.flags, &options.tag,
                          takes_u64, &options.align))
        return NULL;
    if (!takes_device(owner, &device)) return NULL;
    buffer_object *self = buffer_make(type, device);
    if (!self) return NULL;
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = bh_buffer_alloc(device->handle, element, count, &options, &self->handle);
    Py_END_ALLOW_THREADS
    if (status) {
        Py_DECREF(self);
        return raise_last(status);
    }
    self->type = element;
    self->flags = options.flags;
    self->bytes = count * bh_type_size(element);
    return (PyObject *)self;
}

/* _adopt(device, id): a handle that the library made. */
static PyObject *buffer_adopt(PyObject *type, PyObject *args) {
    PyObject *owner;
    device_object *device;
    unsigned long long id;
    if (!PyArg_ParseTuple(args, "OK", &owner, &id) || !takes_device(owner, &device)) return NULL;
    bh_buffer_info info = BH_INIT(info);
    bh_status status = bh_buffer_get_info((bh_buffer){id}, &info);
    if (status) return raise_last(status);
    buffer_object *self = buffer_make((PyTypeObject *)type, device);
    if (!self) return NULL;
    self->handle.id = id;
    self->type = info.type;
    self->flags = info.flags;
    self->bytes = info.bytes;
    return (PyObject *)self;
}

/* _view(type, first, count): counted in elements of that type. */
static PyObject *buffer_view(PyObject *object, PyObject *args) {
    buffer_object *self = (buffer_object *)object;
    unsigned element;
    unsigned long long first, count;
    if (!PyArg_ParseTuple(args, "IKK", &element, &first, &count)) return NULL;
    buffer_object *view = buffer_make(Py_TYPE(object), self->device);
    if (!view) return NULL;
    bh_status status = bh_buffer_view(self->handle, element, first, count, &view->handle);
    if (status) {
        Py_DECREF(view);
        return raise_last(status);
    }
    view->type = element;
    view->flags = self->flags;
    view->bytes = count * bh_type_size(element);
    return (PyObject *)view;
}

static void buffer_dealloc(PyObject *object) {
    buffer_object *self = (buffer_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (PyObject_IS_GC(object)) PyObject_GC_UnTrack(object);
    if (self->mapped) bh_share_unmap(self->host);
    if (self->handle.id || self->cuda.id) {
        Py_BEGIN_ALLOW_THREADS
        if (self->cuda.id) bh_cuda_unmap(&self->cuda);
        if (self->handle.id) bh_buffer_release(self->handle);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(self->shape);
    PyMem_Free(self->format);
    Py_XDECREF(self->device);
    type->tp_free(object);
}

/* ---- transfers ---- */

static PyObject *finish(bh_status status) {
    if (status) return raise_last(status);
    Py_RETURN_NONE;
}

/* The bytes up to which a write is copied by the library before it waits. */
enum { FIRST_PIECE = 65536 };

/* A write waits on the ticket of its first piece, which a signal can interrupt, before the rest. */
static PyObject *write_bytes(buffer_object *self, uint64_t offset, const uint8_t *source,
                             uint64_t bytes) {
    uint64_t first = bytes < FIRST_PIECE ? bytes : FIRST_PIECE;
    bh_status status;
    bh_ticket ticket;
    if (bytes == 0) Py_RETURN_NONE;
    if (!wait_before_transfer(self)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = bh_submit_write((bh_lane){0}, self->handle, offset, source, first, &ticket);
    Py_END_ALLOW_THREADS
    if (status) return raise_last(status);
    if (!wait_ticket(ticket, BH_FOREVER, &status)) {
        self->device->last = ticket;
        return NULL;
    }
    if (status || first == bytes) return finish(status);
    Py_BEGIN_ALLOW_THREADS
    status = bh_buffer_write(self->handle, offset + first, source + first, bytes - first);
    Py_END_ALLOW_THREADS
    return finish(status);
}

static PyObject *buffer_write(PyObject *object, PyObject *args) {
    unsigned long long offset;
    Py_buffer source;
    if (!PyArg_ParseTuple(args, "Ky*", &offset, &source)) return NULL;
    PyObject *result =
        write_bytes((buffer_object *)object, offset, source.buf, (uint64_t)source.len);
    PyBuffer_Release(&source);
    return result;
}

static PyObject *buffer_read(PyObject *object, PyObject *args) {
    buffer_object *self = (buffer_object *)object;
    unsigned long long offset;
    Py_buffer target;
    bh_status status = BH_OK;
    if (!PyArg_ParseTuple(args, "Kw*", &offset, &target)) return NULL;
    bool ready = !target.len || wait_before_transfer(self);
    if (ready) {
        Py_BEGIN_ALLOW_THREADS
        status = bh_buffer_read(self->handle, offset, target.buf, (uint64_t)target.len);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&target);
    return ready ? finish(status) : NULL;
}

/* A submission: to the current lane, in the hands of its ticket. */
static PyObject *submitted(buffer_object *self, bh_lane lane, bh_status status, bh_ticket ticket) {
    if (status) return status > 0 ? raise_last(status) : NULL;
    note_work(self->device, lane, ticket);
    return ticket_new(self->device, ticket);
}

typedef struct transfer {
    const bh_transfer *request;
    bh_submit_options options;
    bh_ticket *ticket;
} transfer;

static bh_status submit_once(void *context, uint32_t flags) {
    transfer *self = context;
    self->options.flags = flags;
    return bh_submit(&self->request->request, &self->options, self->ticket);
}

static bh_status submit_transfer(const bh_transfer *request, bh_lane lane, bh_ticket *ticket) {
    transfer self = {request, BH_INIT(self.options), ticket};
    self.options.lane = lane;
    return submit_with_room(submit_once, &self);
}

/* _fill(offset, bytes, pattern) gives a ticket. */
static PyObject *buffer_fill(PyObject *object, PyObject *args) {
    buffer_object *self = (buffer_object *)object;
    unsigned long long offset, bytes;
    Py_buffer pattern;
    bh_lane lane;
    if (!PyArg_ParseTuple(args, "KKy*", &offset, &bytes, &pattern)) return NULL;
    if (!device_is_open(self->device) || !current_lane(self->device, &lane)) {
        PyBuffer_Release(&pattern);
        return NULL;
    }
    bh_ticket ticket = {0, 0};
    bh_transfer fill =
        bh_transfer_fill(self->handle, offset, bytes, pattern.buf, (uint32_t)pattern.len);
    bh_status status = submit_transfer(&fill, lane, &ticket);
    PyBuffer_Release(&pattern);
    return submitted(self, lane, status, ticket);
}

/* _copy(offset, source, offset, bytes) gives a ticket, or None where it had to wait. */
static PyObject *buffer_copy(PyObject *object, PyObject *args) {
    buffer_object *self = (buffer_object *)object, *source;
    unsigned long long offset, from, bytes;
    bh_lane lane;
    if (!PyArg_ParseTuple(args, "KO!KK", &offset, &buffer_type, &source, &from, &bytes))
        return NULL;
    if (!device_is_open(self->device) || !current_lane(self->device, &lane)) return NULL;
    bh_ticket ticket = {0, 0};
    bh_status status;
    if (self->device != source->device) { /* through host memory */
        if (!wait_before_transfer(self) || !wait_before_transfer(source)) return NULL;
        Py_BEGIN_ALLOW_THREADS
        status = bh_buffer_copy(self->handle, offset, source->handle, from, bytes);
        Py_END_ALLOW_THREADS
        return finish(status);
    }
    bh_transfer copy = bh_transfer_copy(self->handle, offset, source->handle, from, bytes);
    status = submit_transfer(&copy, lane, &ticket);
    return submitted(self, lane, status, ticket);
}

static PyObject *buffer_accept(PyObject *object, PyObject *unused) {
    (void)unused;
    return finish(bh_buffer_accept(((buffer_object *)object)->handle));
}

static PyObject *buffer_info(PyObject *object, PyObject *unused) {
    bh_buffer_info info = BH_INIT(info);
    (void)unused;
    bh_status status = bh_buffer_get_info(((buffer_object *)object)->handle, &info);
    return status ? raise_last(status) : struct_dict(&layout_buffer_info, &info);
}

static PyObject *buffer_release(PyObject *object, PyObject *unused) {
    buffer_object *self = (buffer_object *)object;
    bh_status status = BH_OK;
    (void)unused;
    bh_buffer handle = self->handle;
    if (!handle.id) Py_RETURN_NONE;
    if (self->exports)
        return PyErr_Format(PyExc_BufferError,
                            "the array cannot be released while %zd views of its memory exist "
                            "(NumPy arrays, memoryviews). Fix: delete them, or copy what is needed "
                            "later with .copy()",
                            self->exports);
    self->handle.id = 0; /* no views begin while the memory goes */
    Py_BEGIN_ALLOW_THREADS
    status = bh_buffer_release(handle);
    Py_END_ALLOW_THREADS
    if (!status) Py_RETURN_NONE;
    self->handle = handle;
    return raise_last(status);
}

/* ---- what the process sees of it ---- */

/* _layout(shape, itemsize, format): of the buffer protocol, set by Array. */
static PyObject *buffer_layout(PyObject *object, PyObject *args) {
    buffer_object *self = (buffer_object *)object;
    PyObject *shape;
    Py_ssize_t itemsize;
    const char *format;
    if (!PyArg_ParseTuple(args, "O!ns", &PyTuple_Type, &shape, &itemsize, &format)) return NULL;
    Py_ssize_t ndim = PyTuple_GET_SIZE(shape), stride = itemsize;
    Py_ssize_t *sizes = PyMem_Calloc((size_t)ndim * 2 + 1, sizeof *sizes);
    char *letters = PyMem_Malloc(strlen(format) + 1);
    if (!sizes || !letters) {
        PyMem_Free(sizes), PyMem_Free(letters);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = ndim - 1; i >= 0; i--) {
        sizes[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        sizes[ndim + i] = stride;
        stride *= sizes[i];
    }
    PyMem_Free(self->shape), PyMem_Free(self->format);
    self->shape = sizes, self->ndim = (int)ndim, self->itemsize = itemsize;
    self->format = strcpy(letters, format);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* Maps a shareable buffer of the CPU device. */
static bool map_shared(buffer_object *self) {
    int fds[BH_SHARE_FDS];
    bh_share_token token = BH_INIT(token);
    bh_status status = bh_buffer_export(self->handle, fds, &token);
    if (status) return raise_last(status), false;
    status = bh_share_map(fds, &token, &self->host);
    for (int i = 0; i < BH_SHARE_FDS; i++) close(fds[i]);
    if (status) {
        self->host = NULL;
        return raise_last(status), false;
    }
    return self->mapped = true;
}

/* Why the memory of an array is not visible here, with what to do. */
static bool find_host(buffer_object *self) {
    bh_buffer_info info = BH_INIT(info);
    bh_device_info device = BH_INIT(device);
    if (self->host) return true;
    bh_status status = bh_buffer_get_info(self->handle, &info);
    if (status) return raise_last(status), false;
    if (info.flags & BH_BUFFER_TRANSPARENT) {
        self->host = info.pointer;
        return true;
    }
    if (info.pointer) {
        PyErr_SetString(PyExc_BufferError,
                        "a managed array is seen by the process while it is mapped. Fix: "
                        "`with array.map() as view:`, or allocate it with transparent=True");
        return false;
    }
    status = bh_device_get_info(self->device->handle, &device);
    if (status) return raise_last(status), false;
    if ((info.flags & BH_BUFFER_SHAREABLE) && !strcmp(device.kind, "cpu")) return map_shared(self);
    PyErr_Format(PyExc_BufferError,
                 "the memory of this array is in the device \"%s\", not in this process. Fix: copy "
                 "it with .numpy() or np.asarray(array)%s",
                 device.kind,
                 !strcmp(device.kind, "cpu") ? ", or allocate it with shareable=True"
                                             : ", or allocate it with dev.managed()");
    return false;
}

/* What was submitted before is in place; what is suspect is refused. */
static bool is_presentable(buffer_object *self) {
    bh_buffer_info info = BH_INIT(info);
    bh_status status = bh_buffer_get_info(self->handle, &info);
    if (!status && info.last_write.lane) {
        if (!wait_ticket(info.last_write, BH_FOREVER, &status)) return false;
        status = bh_buffer_get_info(self->handle, &info);
    }
    if (status) return raise_last(status), false;
    if (info.suspect) {
        bh_error error = {.status = BH_E_STALE};
        snprintf(error.message, sizeof error.message,
                 "%llu bytes of the array, from byte %llu on, may be half written: a worker was "
                 "lost while it could write them",
                 (unsigned long long)info.suspect_bytes, (unsigned long long)info.suspect_offset);
        snprintf(error.fix, sizeof error.fix, "write the array again, or call array.accept()");
        raise_error(&error);
        return false;
    }
    return true;
}

static int buffer_get(PyObject *object, Py_buffer *view, int flags) {
    buffer_object *self = (buffer_object *)object;
    view->obj = NULL;
    if (!self->handle.id || !self->format || !device_is_open(self->device)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_BufferError, "the array was released");
        return -1;
    }
    if ((flags & PyBUF_FORMAT) && !*self->format) {
        PyErr_SetString(PyExc_BufferError,
                        "the buffer protocol has no format for the elements of this array. Fix: "
                        "use array.host, or the bytes, array.view('uint8')");
        return -1;
    }
    if (!find_host(self)) return -1;
    if (!self->mapped) view_begins(self); /* before the wait, in which others run */
    if (!is_presentable(self)) {
        if (!self->mapped) view_ends(self);
        return -1;
    }
    *view = (Py_buffer){.buf = self->host,
                        .len = (Py_ssize_t)self->bytes,
                        .itemsize = self->itemsize,
                        .ndim = self->ndim,
                        .format = self->format,
                        .shape = self->shape,
                        .strides = self->shape + self->ndim};
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !PyBuffer_IsContiguous(view, 'F')) {
        if (!self->mapped) view_ends(self);
        PyErr_SetString(PyExc_BufferError, "the elements of an array are in the order of C, not of "
                                           "Fortran. Fix: numpy.asfortranarray(array.numpy())");
        return -1;
    }
    if (!(flags & PyBUF_FORMAT)) view->format = NULL;
    if ((flags & PyBUF_ND) != PyBUF_ND) view->shape = NULL;
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) view->strides = NULL;
    view->obj = Py_NewRef(object);
    return 0;
}

static void buffer_put(PyObject *object, Py_buffer *view) {
    buffer_object *self = (buffer_object *)object;
    (void)view;
    if (!self->mapped) view_ends(self);
}

static PyObject *get_device(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef((PyObject *)((buffer_object *)object)->device);
}
static PyObject *get_nbytes(PyObject *object, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(((buffer_object *)object)->bytes);
}
static PyObject *get_type(PyObject *object, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(((buffer_object *)object)->type);
}
static PyObject *get_flags(PyObject *object, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(((buffer_object *)object)->flags);
}
static PyObject *get_handle(PyObject *object, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(((buffer_object *)object)->handle.id);
}

static int buffer_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(((buffer_object *)object)->device);
    return 0;
}

static PyMethodDef methods[] = {{"_adopt", buffer_adopt, METH_VARARGS | METH_CLASS, NULL},
                                {"_view", buffer_view, METH_VARARGS, NULL},
                                {"_write", buffer_write, METH_VARARGS, NULL},
                                {"_read", buffer_read, METH_VARARGS, NULL},
                                {"_fill", buffer_fill, METH_VARARGS, NULL},
                                {"_copy", buffer_copy, METH_VARARGS, NULL},
                                {"_accept", buffer_accept, METH_NOARGS, NULL},
                                {"_info", buffer_info, METH_NOARGS, NULL},
                                {"_release", buffer_release, METH_NOARGS, NULL},
                                {"_layout", buffer_layout, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};
static PyGetSetDef getters[] = {
    {"device", get_device, NULL, "The device that has the memory.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"_type", get_type, NULL, NULL, NULL},
    {"_flags", get_flags, NULL, NULL, NULL},
    {"_handle", get_handle, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyBufferProcs procs = {buffer_get, buffer_put};

PyTypeObject buffer_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bulkhead._core.Buffer",
    .tp_basicsize = sizeof(buffer_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = buffer_new,
    .tp_dealloc = buffer_dealloc,
    .tp_traverse = buffer_traverse,
    .tp_free = PyObject_GC_Del,
    .tp_methods = methods,
    .tp_getset = getters,
    .tp_as_buffer = &procs,
};
