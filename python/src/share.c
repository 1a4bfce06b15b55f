/* SPDX-License-Identifier: Apache-2.0 */
/* The same memory elsewhere: maps of managed arrays, DLPack, other CUDA code, other processes. */
#include <string.h>
#include <unistd.h>

#include "core.h"

/* ---- maps of managed buffers: an object with the buffer protocol ---- */

typedef struct map_object {
    PyObject_HEAD
    buffer_object *buffer;
    void *pointer;
    uint64_t bytes;
    bool held, writable;
} map_object;

/* managed_map(buffer, offset, bytes, flags) */
static PyObject *managed_map(PyObject *module, PyObject *args) {
    buffer_object *buffer;
    unsigned long long offset, bytes;
    unsigned flags;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!KKI", &buffer_type, &buffer, &offset, &bytes, &flags))
        return NULL;
    if (!wait_before_transfer(buffer)) return NULL;
    map_object *self = PyObject_New(map_object, &map_type);
    if (!self) return NULL;
    *self = (map_object){
        .ob_base = self->ob_base, .bytes = bytes, .writable = (flags & BH_MAP_WRITE) != 0};
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = bh_managed_map(buffer->handle, offset, bytes, flags, &self->pointer);
    Py_END_ALLOW_THREADS
    self->held = status == BH_OK;
    self->buffer = (buffer_object *)Py_NewRef((PyObject *)buffer);
    if (!status) return (PyObject *)self;
    Py_DECREF(self);
    return raise_last(status);
}

static PyObject *map_end(PyObject *object, PyObject *unused) {
    map_object *self = (map_object *)object;
    (void)unused;
    if (!self->held) Py_RETURN_NONE;
    self->held = false;
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = bh_managed_unmap(self->pointer, self->bytes);
    Py_END_ALLOW_THREADS
    if (status) return raise_last(status);
    Py_RETURN_NONE;
}

static void map_dealloc(PyObject *object) {
    map_object *self = (map_object *)object;
    if (self->held) bh_managed_unmap(self->pointer, self->bytes);
    Py_XDECREF(self->buffer);
    PyObject_Free(object);
}

static int map_get(PyObject *object, Py_buffer *view, int flags) {
    map_object *self = (map_object *)object;
    if (!self->held) {
        PyErr_SetString(PyExc_BufferError, "the map has ended");
        return -1;
    }
    if (PyBuffer_FillInfo(view, object, self->pointer, (Py_ssize_t)self->bytes, !self->writable,
                          flags))
        return -1;
    view_begins(self->buffer);
    return 0;
}
static void map_put(PyObject *object, Py_buffer *view) {
    (void)view;
    view_ends(((map_object *)object)->buffer);
}

static PyMethodDef map_methods[] = {{"end", map_end, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyBufferProcs map_procs = {map_get, map_put};
PyTypeObject map_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bulkhead._core.Map",
    .tp_basicsize = sizeof(map_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = map_dealloc,
    .tp_methods = map_methods,
    .tp_as_buffer = &map_procs,
};

typedef struct prefetch {
    buffer_object *buffer;
    uint32_t where;
    bh_lane lane;
    bh_ticket *ticket;
} prefetch;

static bh_status prefetch_once(void *context, uint32_t flags) {
    const prefetch *self = context;
    bh_submit_options options = BH_INIT(options);
    options.lane = self->lane, options.flags = flags;
    return bh_managed_prefetch(self->buffer->handle, 0, self->buffer->bytes, self->where, &options,
                               self->ticket);
}

/* managed_prefetch(buffer, where) */
static PyObject *managed_prefetch(PyObject *module, PyObject *args) {
    buffer_object *buffer;
    unsigned where;
    bh_submit_options options = BH_INIT(options);
    bh_ticket ticket;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!I", &buffer_type, &buffer, &where) ||
        !current_lane(buffer->device, &options.lane))
        return NULL;
    prefetch self = {buffer, where, options.lane, &ticket};
    bh_status status = submit_with_room(prefetch_once, &self);
    if (status) return status > 0 ? raise_last(status) : NULL;
    return ticket_new(buffer->device, ticket);
}

/* ---- DLPack ---- */

static const char plain_name[] = "dltensor", versioned_name[] = "dltensor_versioned";

/* Nobody took the tensor: who does renames the capsule. */
static void drop_capsule(PyObject *capsule) {
    if (PyCapsule_IsValid(capsule, plain_name)) {
        bh_dl_managed *tensor = PyCapsule_GetPointer(capsule, plain_name);
        if (tensor->deleter) tensor->deleter(tensor);
    } else if (PyCapsule_IsValid(capsule, versioned_name)) {
        bh_dl_versioned *tensor = PyCapsule_GetPointer(capsule, versioned_name);
        if (tensor->deleter) tensor->deleter(tensor);
    }
}

static bool shape_of(PyObject *tuple, int64_t *shape) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        shape[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
    return !PyErr_Occurred();
}

/* dlpack_export(buffer, shape, versioned, type code, bits): as the array has them. */
static PyObject *dlpack_export(PyObject *module, PyObject *args) {
    buffer_object *buffer;
    PyObject *tuple;
    int versioned;
    unsigned code, bits;
    int64_t shape[64];
    bh_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!pII", &buffer_type, &buffer, &PyTuple_Type, &tuple, &versioned,
                          &code, &bits))
        return NULL;
    Py_ssize_t ndim = PyTuple_GET_SIZE(tuple);
    if (ndim > 64 || !shape_of(tuple, shape)) return NULL;
    if (!wait_before_transfer(buffer)) return NULL;
    bh_dl_managed *plain = NULL;
    bh_dl_versioned *whole = NULL;
    Py_BEGIN_ALLOW_THREADS
    status = versioned ? bh_dlpack_export_versioned(buffer->handle, shape, (int32_t)ndim, &whole)
                       : bh_dlpack_export(buffer->handle, shape, (int32_t)ndim, &plain);
    Py_END_ALLOW_THREADS
    if (status) return raise_cuda(status);
    bh_dl_tensor *tensor = versioned ? &whole->tensor : &plain->tensor;
    tensor->type_code = (uint8_t)code, tensor->type_bits = (uint8_t)bits;
    PyObject *capsule = PyCapsule_New(versioned ? (void *)whole : (void *)plain,
                                      versioned ? versioned_name : plain_name, drop_capsule);
    if (capsule) return capsule;
    if (versioned)
        whole->deleter(whole);
    else
        plain->deleter(plain);
    return NULL;
}

/* dlpack_import(device, capsule): (id of a buffer, shape, type code, bits) */
static PyObject *dlpack_import(PyObject *module, PyObject *args) {
    PyObject *owner, *capsule;
    device_object *device;
    bh_buffer out = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &owner, &capsule) || !takes_device(owner, &device))
        return NULL;
    bool versioned = PyCapsule_IsValid(capsule, versioned_name);
    void *pointer = PyCapsule_GetPointer(capsule, versioned ? versioned_name : plain_name);
    if (!pointer) return NULL;
    bh_dl_tensor tensor =
        versioned ? ((bh_dl_versioned *)pointer)->tensor : ((bh_dl_managed *)pointer)->tensor;
    PyObject *shape = PyTuple_New(tensor.ndim);
    for (int i = 0; shape && i < tensor.ndim; i++)
        PyTuple_SET_ITEM(shape, i, PyLong_FromLongLong(tensor.shape[i]));
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = versioned ? bh_dlpack_import_versioned(device->handle, pointer, &out)
                       : bh_dlpack_import(device->handle, pointer, &out);
    Py_END_ALLOW_THREADS
    if (status) {
        Py_XDECREF(shape);
        return raise_cuda(status);
    }
    PyCapsule_SetName(capsule, versioned ? "used_dltensor_versioned" : "used_dltensor");
    return Py_BuildValue("(KNII)", (unsigned long long)out.id, shape, (unsigned)tensor.type_code,
                         (unsigned)tensor.type_bits);
}

/* cuda_address(buffer): (address, ordinal) in this process's own CUDA context. */
static PyObject *cuda_address(PyObject *module, PyObject *args) {
    buffer_object *buffer;
    bh_status status = BH_OK;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!", &buffer_type, &buffer)) return NULL;
    if (!wait_before_transfer(buffer)) return NULL;
    if (!buffer->cuda.id) {
        bh_cuda_mapping mapping = BH_INIT(mapping);
        Py_BEGIN_ALLOW_THREADS
        status = bh_cuda_map(buffer->handle, &mapping);
        Py_END_ALLOW_THREADS
        if (status) return raise_cuda(status);
        buffer->cuda = mapping;
    }
    return Py_BuildValue("(Ki)", (unsigned long long)buffer->cuda.address,
                         (int)buffer->cuda.device);
}

/* ---- other processes and devices ---- */

/* share_export(buffer): (memory fd, page fd, token) */
static PyObject *share_export(PyObject *module, PyObject *args) {
    buffer_object *buffer;
    int fds[BH_SHARE_FDS];
    bh_share_token token = BH_INIT(token);
    (void)module;
    if (!PyArg_ParseTuple(args, "O!", &buffer_type, &buffer)) return NULL;
    bh_status status = bh_buffer_export(buffer->handle, fds, &token);
    if (status) return raise_last(status);
    return Py_BuildValue("(iiy#)", fds[0], fds[1], (const char *)&token, (Py_ssize_t)sizeof token);
}

/* share_import(device, memory fd, page fd, token): the id of a buffer */
static PyObject *share_import(PyObject *module, PyObject *args) {
    PyObject *owner;
    device_object *device;
    int fds[BH_SHARE_FDS];
    Py_buffer bytes;
    bh_share_token token = BH_INIT(token);
    bh_buffer out = {0};
    bh_status status = BH_OK;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oiiy*", &owner, &fds[0], &fds[1], &bytes)) return NULL;
    bool good = bytes.len == (Py_ssize_t)sizeof token;
    if (good) memcpy(&token, bytes.buf, sizeof token);
    PyBuffer_Release(&bytes);
    if (!good)
        return raise_refused(NULL, "send the token of array.export() as it is",
                             "a token has %zu bytes", sizeof token);
    if (!takes_device(owner, &device)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = bh_buffer_import(device->handle, fds, &token, NULL, &out);
    Py_END_ALLOW_THREADS
    return status ? raise_last(status) : PyLong_FromUnsignedLongLong(out.id);
}

#define CALL(name)                                                                                 \
    { #name, name, METH_VARARGS, NULL }
PyMethodDef share_methods[] = {CALL(managed_map),   CALL(managed_prefetch), CALL(dlpack_export),
                               CALL(dlpack_import), CALL(cuda_address),     CALL(share_export),
                               CALL(share_import),  {NULL, NULL, 0, NULL}};
