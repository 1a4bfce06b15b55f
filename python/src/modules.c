/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, compiling, kernels' properties, variables of modules. Handles are integers here. */
#include <string.h>

#include "core.h"

static PyObject *handle_or_error(bh_status status, uint64_t id) {
    return status ? raise_last(status) : PyLong_FromUnsignedLongLong(id);
}

static PyObject *none_or_error(bh_status status) {
    if (status) return raise_last(status);
    Py_RETURN_NONE;
}

static PyObject *module_load(PyObject *module, PyObject *args) {
    PyObject *owner;
    device_object *device;
    Py_buffer image;
    bh_module out = {0};
    bh_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy*", &owner, &image)) return NULL;
    bool open = takes_device(owner, &device);
    if (open) {
        Py_BEGIN_ALLOW_THREADS
        status = bh_module_load(device->handle, image.buf, (size_t)image.len, &out);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&image);
    return open ? handle_or_error(status, out.id) : NULL;
}

/* ---- compiling ---- */

/* A list of str as C strings that live as long as the list; NULL with an exception. */
static const char **texts(PyObject *list, size_t *count) {
    if (!PyList_Check(list)) {
        PyErr_Format(PyExc_TypeError, "a list of str is needed, not %R", list);
        return NULL;
    }
    *count = (size_t)PyList_GET_SIZE(list);
    const char **out = PyMem_Calloc(*count + 1, sizeof *out);
    for (size_t i = 0; out && i < *count; i++) {
        out[i] = PyUnicode_AsUTF8(PyList_GET_ITEM(list, (Py_ssize_t)i));
        if (out[i]) continue;
        PyMem_Free(out);
        return NULL;
    }
    if (!out) PyErr_NoMemory();
    return out;
}

/* What the compiler printed for a ticket, as the attribute `log` of the exception that is set. */
static void add_log(const bh_ticket *ticket) {
    PyObject *kind, *value, *trace, *log = NULL;
    size_t length = 0;
    PyErr_Fetch(&kind, &value, &trace);
    PyErr_NormalizeException(&kind, &value, &trace);
    char *text = bh_compile_log(ticket, NULL, 0, &length) ? NULL : PyMem_Malloc(length + 1);
    if (text && !bh_compile_log(ticket, text, length + 1, &length))
        log = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
    if (!log || PyObject_SetAttrString(value, "log", log)) PyErr_Clear();
    Py_XDECREF(log);
    PyMem_Free(text);
    PyErr_Restore(kind, value, trace);
}

/* Compiles and loads. A signal ends the wait and the compiler. */
static PyObject *compile_module(device_object *device, const char *source,
                                const bh_compile_options *options) {
    bh_module made = {0};
    bh_ticket ticket;
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = bh_submit_compile(device->handle, source, options, &made, &ticket);
    Py_END_ALLOW_THREADS
    if (status) return raise_last(status);
    bool waited = wait_ticket(ticket, BH_FOREVER, &status);
    if (waited && !status) return PyLong_FromUnsignedLongLong(made.id);
    if (waited) {
        bh_error error = {.status = status};
        bh_ticket_error(ticket, &error);
        error.status = status;
        raise_error(&error);
        if (status == BH_E_COMPILE) add_log(&ticket);
    } else {
        Py_BEGIN_ALLOW_THREADS
        bh_cancel(ticket);
        (void)bh_wait(ticket, 2000000000u); /* a module that still loads cannot be released */
        Py_END_ALLOW_THREADS
    }
    bh_module_release(made);
    return NULL;
}

/* module_compile(device, source, flags, compiler, output, arch, name, standard, registers, defines,
 * include_paths, header_names, header_texts, expressions, extra, timeout_ns, cache_dir): the id of
 * a module. */
static PyObject *module_compile(PyObject *module, PyObject *args) {
    PyObject *owner, *lists[6], *result = NULL;
    device_object *device = NULL;
    const char *source;
    bh_compile_options o = BH_INIT(o);
    (void)module;
    if (!PyArg_ParseTuple(args, "OsIIIzzO&O&OOOOOOO&z", &owner, &source, &o.flags, &o.compiler,
                          &o.output, &o.arch, &o.name, takes_u32, &o.standard, takes_u32,
                          &o.max_registers, &lists[0], &lists[1], &lists[2], &lists[3], &lists[4],
                          &lists[5], takes_u64, &o.timeout_ns, &o.cache_dir) ||
        !takes_device(owner, &device))
        return NULL;
    const char **all[6] = {NULL};
    size_t counts[6];
    bool good = true;
    for (int i = 0; i < 6 && good; i++) good = (all[i] = texts(lists[i], &counts[i])) != NULL;
    bh_header *headers = good ? PyMem_Calloc(counts[2] + 1, sizeof *headers) : NULL;
    if (headers && counts[2] == counts[3]) {
        for (size_t i = 0; i < counts[2]; i++) headers[i] = (bh_header){all[2][i], all[3][i]};
        o.defines = all[0], o.define_count = counts[0];
        o.include_paths = all[1], o.include_path_count = counts[1];
        o.headers = headers, o.header_count = counts[2];
        o.expressions = all[4], o.expression_count = counts[4];
        o.extra = all[5], o.extra_count = counts[5];
        result = compile_module(device, source, &o);
    } else if (good) {
        PyErr_SetString(PyExc_ValueError, "each header needs a name and a text");
    }
    PyMem_Free(headers);
    for (int i = 0; i < 6; i++) PyMem_Free((void *)all[i]);
    return result;
}

static PyObject *compile_log(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    size_t length = 0;
    if (bh_compile_log(NULL, NULL, 0, &length)) return PyUnicode_FromString("");
    char *text = PyMem_Malloc(length + 1);
    if (!text) return PyErr_NoMemory();
    text[0] = 0;
    bh_compile_log(NULL, text, length + 1, &length);
    PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    PyMem_Free(text);
    return result;
}

/* module_binary(module): the id of its binary; None: it was loaded from an image. */
static PyObject *module_binary(PyObject *module, PyObject *args) {
    unsigned long long id;
    bh_binary binary = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "K", &id)) return NULL;
    bh_status status = bh_module_get_binary((bh_module){id}, &binary);
    if (status == BH_E_NOT_FOUND) Py_RETURN_NONE;
    return handle_or_error(status, binary.id);
}

/* binary_image(binary, output): bytes, or None if it does not hold that. */
static PyObject *binary_image(PyObject *module, PyObject *args) {
    unsigned long long id;
    unsigned output;
    const void *bytes;
    size_t count;
    (void)module;
    if (!PyArg_ParseTuple(args, "KI", &id, &output)) return NULL;
    bh_status status = bh_binary_get_image((bh_binary){id}, output, &bytes, &count);
    if (status == BH_E_NOT_FOUND) Py_RETURN_NONE;
    return status ? raise_last(status) : PyBytes_FromStringAndSize(bytes, (Py_ssize_t)count);
}

static PyObject *binary_info(PyObject *module, PyObject *args) {
    unsigned long long id;
    bh_binary_info info = BH_INIT(info);
    (void)module;
    if (!PyArg_ParseTuple(args, "K", &id)) return NULL;
    bh_status status = bh_binary_get_info((bh_binary){id}, &info);
    if (status) return raise_last(status);
    PyObject *dict = struct_dict(&layout_binary_info, &info), *log = NULL;
    if (dict && info.log)
        log = PyUnicode_DecodeUTF8(info.log, (Py_ssize_t)strlen(info.log), "replace");
    if (log && PyDict_SetItemString(dict, "log", log)) Py_CLEAR(dict);
    Py_XDECREF(log);
    return dict;
}

static PyObject *binary_release(PyObject *module, PyObject *args) {
    unsigned long long id;
    (void)module;
    if (!PyArg_ParseTuple(args, "K", &id)) return NULL;
    bh_binary_release((bh_binary){id});
    Py_RETURN_NONE;
}

static PyObject *list_compilers(PyObject *module, PyObject *unused) {
    bh_compiler_entry entries[16];
    size_t count = 0;
    bh_status status;
    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS
    status = bh_compiler_list(entries, sizeof *entries, 16, &count);
    Py_END_ALLOW_THREADS
    PyObject *list = status ? raise_last(status) : PyList_New(0);
    for (size_t i = 0; list && i < count && i < 16; i++) {
        PyObject *dict = struct_dict(&layout_compiler_entry, &entries[i]);
        if (!dict || PyList_Append(list, dict)) Py_CLEAR(list);
        Py_XDECREF(dict);
    }
    return list;
}

static PyObject *module_release(PyObject *module, PyObject *args) {
    unsigned long long id;
    (void)module;
    if (!PyArg_ParseTuple(args, "K", &id)) return NULL;
    return none_or_error(bh_module_release((bh_module){id}));
}

static PyObject *module_accept(PyObject *module, PyObject *args) {
    unsigned long long id;
    (void)module;
    if (!PyArg_ParseTuple(args, "K", &id)) return NULL;
    return none_or_error(bh_module_accept((bh_module){id}));
}

/* ---- kernels ---- */

static PyObject *kernel_get(PyObject *module, PyObject *args) {
    unsigned long long id;
    const char *name;
    bh_kernel out = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "Ks", &id, &name)) return NULL;
    bh_status status = bh_kernel_get((bh_module){id}, name, &out);
    return handle_or_error(status, out.id);
}

static PyObject *list_kernels(PyObject *module, PyObject *args) {
    unsigned long long id;
    size_t count = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "K", &id)) return NULL;
    bh_status status = bh_module_list_kernels((bh_module){id}, NULL, 0, &count);
    if (status) return raise_last(status);
    size_t capacity = count;
    bh_kernel *kernels = PyMem_Calloc(count + 1, sizeof *kernels);
    if (!kernels) return PyErr_NoMemory();
    status = bh_module_list_kernels((bh_module){id}, kernels, capacity, &count);
    PyObject *list = status ? raise_last(status) : PyList_New(0);
    for (size_t i = 0; list && i < count && i < capacity; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(kernels[i].id);
        if (!number || PyList_Append(list, number)) Py_CLEAR(list);
        Py_XDECREF(number);
    }
    PyMem_Free(kernels);
    return list;
}

static PyObject *kernel_info(PyObject *module, PyObject *args) {
    unsigned long long id;
    bh_kernel_info info = BH_INIT(info);
    (void)module;
    if (!PyArg_ParseTuple(args, "K", &id)) return NULL;
    bh_status status = bh_kernel_get_info((bh_kernel){id}, &info);
    return status ? raise_last(status) : struct_dict(&layout_kernel_info, &info);
}

/* kernel_param(kernel, index): (bytes, known to be a pointer) */
static PyObject *kernel_param(PyObject *module, PyObject *args) {
    unsigned long long id;
    unsigned index;
    bh_param_info info = BH_INIT(info);
    (void)module;
    if (!PyArg_ParseTuple(args, "KI", &id, &index)) return NULL;
    bh_status status = bh_kernel_get_param((bh_kernel){id}, index, &info);
    return status ? raise_last(status) : Py_BuildValue("(II)", info.bytes, info.pointer);
}

static PyObject *kernel_pardon(PyObject *module, PyObject *args) {
    unsigned long long id;
    (void)module;
    if (!PyArg_ParseTuple(args, "K", &id)) return NULL;
    return none_or_error(bh_kernel_pardon((bh_kernel){id}));
}

static PyObject *kernel_occupancy(PyObject *module, PyObject *args) {
    unsigned long long id;
    PyObject *key;
    bh_shape shape;
    bh_occupancy out = BH_INIT(out);
    (void)module;
    if (!PyArg_ParseTuple(args, "KO", &id, &key) || !parse_shape(key, &shape)) return NULL;
    bh_status status;
    Py_BEGIN_ALLOW_THREADS
    status = bh_kernel_get_occupancy((bh_kernel){id}, shape, &out);
    Py_END_ALLOW_THREADS
    return status ? raise_last(status) : struct_dict(&layout_occupancy, &out);
}

/* ---- variables ---- */

static PyObject *global_size(PyObject *module, PyObject *args) {
    unsigned long long id;
    const char *name;
    uint64_t bytes = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "Ks", &id, &name)) return NULL;
    bh_status status = bh_module_global_size((bh_module){id}, name, &bytes);
    return handle_or_error(status, bytes);
}

static PyObject *global_write(PyObject *module, PyObject *args) {
    unsigned long long id;
    uint64_t offset;
    const char *name;
    Py_buffer source;
    bh_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "KsO&y*", &id, &name, takes_u64, &offset, &source)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    status =
        bh_module_global_write((bh_module){id}, name, offset, source.buf, (uint64_t)source.len);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&source);
    return none_or_error(status);
}

static PyObject *global_read(PyObject *module, PyObject *args) {
    unsigned long long id;
    uint64_t offset;
    const char *name;
    Py_buffer target;
    bh_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "KsO&w*", &id, &name, takes_u64, &offset, &target)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = bh_module_global_read((bh_module){id}, name, offset, target.buf, (uint64_t)target.len);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&target);
    return none_or_error(status);
}

#define CALL(name)                                                                                 \
    { #name, name, METH_VARARGS, NULL }
PyMethodDef module_methods[] = {CALL(module_load),
                                CALL(module_compile),
                                {"compile_log", compile_log, METH_NOARGS, NULL},
                                {"list_compilers", list_compilers, METH_NOARGS, NULL},
                                CALL(module_binary),
                                CALL(binary_image),
                                CALL(binary_info),
                                CALL(binary_release),
                                CALL(module_release),
                                CALL(module_accept),
                                CALL(kernel_get),
                                CALL(list_kernels),
                                CALL(kernel_info),
                                CALL(kernel_param),
                                CALL(kernel_pardon),
                                CALL(kernel_occupancy),
                                CALL(global_size),
                                CALL(global_write),
                                CALL(global_read),
                                {NULL, NULL, 0, NULL}};
