/* SPDX-License-Identifier: Apache-2.0 */
/* The path of a launch: kernel[grid, block](arguments) checks and packs in C, and calls
 * bh_launch. */
#include <math.h>
#include <string.h>

#include "core.h"

/* ---- arguments ---- */

static PyObject *label_of(kernel_object *kernel, Py_ssize_t index) {
    return kernel->parameters[index].label;
}

static bool refuse_type(kernel_object *kernel, Py_ssize_t index, PyObject *value, const char *fix) {
    raise_refused(kernel->name, fix, "argument %zd of kernel \"%U\" is `%U`, and got %R of type %s",
                  index, kernel->name, label_of(kernel, index), value, Py_TYPE(value)->tp_name);
    return false;
}

static bool refuse_range(kernel_object *kernel, Py_ssize_t index, PyObject *value) {
    raise_refused(kernel->name, "pass a number that fits the parameter's type",
                  "argument %zd of kernel \"%U\" is `%U`, which cannot hold %R", index,
                  kernel->name, label_of(kernel, index), value);
    return false;
}

static bool pack_integer(kernel_object *kernel, Py_ssize_t index, PyObject *value, bh_arg *out) {
    const parameter *slot = &kernel->parameters[index];
    uint32_t bits = slot->bytes * 8;
    bool is_signed = slot->form == FORM_SIGNED;
    bool is_any = !is_signed && slot->form != FORM_UNSIGNED; /* both signs */
    PyObject *number = PyNumber_Index(value);
    if (!number) {
        PyErr_Clear();
        return refuse_type(kernel, index, value, "pass an integer");
    }
    int overflow = 0;
    long long small = PyLong_AsLongLongAndOverflow(number, &overflow);
    uint64_t word = (uint64_t)small;
    bool fits = true;
    if (overflow) {
        word = PyLong_AsUnsignedLongLong(number);
        if (PyErr_Occurred()) PyErr_Clear(), fits = false;
        fits = fits && !is_signed && bits == 64;
    } else if (bits < 64) {
        int64_t most = is_signed ? (1ll << (bits - 1)) - 1 : (1ll << bits) - 1;
        int64_t least = is_signed || is_any ? -(1ll << (bits - 1)) : 0;
        fits = small >= least && small <= most;
    } else {
        fits = is_signed || is_any || small >= 0;
    }
    Py_DECREF(number);
    if (!fits) return refuse_range(kernel, index, value);
    *out = bh_arg_words(BH_ARG_VALUE, 0, slot->bytes, word, 0);
    return true;
}

static int pack_half(double number, unsigned char *out) {
#if PY_VERSION_HEX >= 0x030b0000
    return PyFloat_Pack2(number, (char *)out, 1);
#else
    return _PyFloat_Pack2(number, out, 1);
#endif
}

static bool pack_float(kernel_object *kernel, Py_ssize_t index, PyObject *value, bh_arg *out) {
    const parameter *slot = &kernel->parameters[index];
    double number = PyFloat_CheckExact(value) ? PyFloat_AS_DOUBLE(value) : PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return refuse_type(kernel, index, value, "pass a number");
    }
    union {
        uint64_t word;
        double wide;
        float narrow;
        unsigned char half[8];
    } bits = {0};
    if (slot->bytes == 8)
        bits.wide = number;
    else if (slot->bytes == 4)
        bits.narrow = (float)number;
    else if (pack_half(number, bits.half)) {
        PyErr_Clear();
        return refuse_range(kernel, index, value);
    }
    if (slot->bytes == 4 && isinf(bits.narrow) && !isinf(number))
        return refuse_range(kernel, index, value);
    *out = bh_arg_words(BH_ARG_VALUE, 0, slot->bytes, bits.word, 0);
    return true;
}

/* A kernel may take complex numbers as pairs, float2, or as numbers one after the other. */
static bh_type real_type(bh_type type) {
    return type == BH_C64 ? BH_F32 : type == BH_C128 ? BH_F64 : type;
}

static bool pack_buffer(kernel_object *kernel, Py_ssize_t index, buffer_object *buffer,
                        uint16_t access, bh_arg *out) {
    const parameter *slot = &kernel->parameters[index];
    if (slot->form != FORM_POINTER && slot->form != FORM_WORD &&
        !(slot->form == FORM_ANY && slot->bytes == 8))
        return refuse_type(kernel, index, (PyObject *)buffer,
                           "pass a number, or declare the parameter as a pointer");
    if (slot->element && real_type(slot->element) != real_type(buffer->type)) {
        raise_refused(kernel->name,
                      "convert the array, or reinterpret its bytes with array.view(dtype)",
                      "argument %zd of kernel \"%U\" is `%U`, elements of %s, and got an array of "
                      "%s",
                      index, kernel->name, label_of(kernel, index), bh_type_name(slot->element),
                      bh_type_name(buffer->type));
        return false;
    }
    if (access == BH_ACCESS_IN || !slot->access) {
        /* as it was asked for */
    } else if (slot->access == BH_ACCESS_IN) {
        raise_refused(kernel->name,
                      "pass the array as it is, or take const from the kernel's parameter",
                      "argument %zd of kernel \"%U\" is `%U`, which the kernel only reads, and got "
                      "an output",
                      index, kernel->name, label_of(kernel, index));
        return false;
    }
    *out = bh_arg_words(BH_ARG_BUFFER, access, 0, buffer->handle.id, 0);
    return true;
}

static const char *fix_for(PyObject *value) {
    if (PyObject_CheckBuffer(value) || PyObject_HasAttrString(value, "__array_interface__"))
        return "a kernel cannot reach memory of this process: copy it with dev.array(x)";
    if (PyObject_HasAttrString(value, "__cuda_array_interface__") ||
        PyObject_HasAttrString(value, "__dlpack__"))
        return "a worker cannot reach memory of other libraries: copy it with dev.from_dlpack(x)";
    return "pass an array of the device: dev.array(x), dev.empty(shape, dtype)";
}

/* The bytes of a view that ends before the launch: a copy in `kept`. */
static bool keep_bytes(const Py_buffer *view, bh_arg *out, PyObject **kept) {
    PyObject *copy = PyBytes_FromStringAndSize(view->buf, view->len);
    if (copy && !*kept) *kept = PyList_New(0);
    bool good = copy && *kept && !PyList_Append(*kept, copy);
    if (good) *out = bh_arg_data(PyBytes_AS_STRING(copy), (size_t)view->len);
    Py_XDECREF(copy);
    return good;
}

/* A struct, a half, a complex number: what gives its bytes. */
static bool pack_bytes(kernel_object *kernel, Py_ssize_t index, PyObject *value, bh_arg *out,
                       PyObject **kept) {
    const parameter *slot = &kernel->parameters[index];
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)) {
        PyErr_Clear();
        return refuse_type(kernel, index, value,
                           "pass its bytes: a NumPy scalar, or bytes from struct.pack()");
    }
    bool fits = (uint64_t)view.len == slot->bytes;
    if (!fits)
        raise_refused(kernel->name, "pass exactly the bytes of the parameter",
                      "argument %zd of kernel \"%U\" is `%U` with %u bytes, and got %zd bytes",
                      index, kernel->name, label_of(kernel, index), slot->bytes, view.len);
    else if (view.len <= 16)
        *out = bh_arg_value(view.buf, (size_t)view.len);
    else if (PyBytes_CheckExact(value))
        *out = bh_arg_data(view.buf, (size_t)view.len); /* the caller holds the object */
    else
        fits = keep_bytes(&view, out, kept);
    PyBuffer_Release(&view);
    return fits;
}

bool pack_one(kernel_object *kernel, Py_ssize_t index, PyObject *value, bh_arg *out,
              PyObject **kept) {
    const parameter *slot = &kernel->parameters[index];
    /* The usual kinds first: a check for a derived type walks through its bases. */
    if (PyLong_CheckExact(value)) {
        if (slot->form == FORM_UNSIGNED || slot->form == FORM_SIGNED || slot->form == FORM_INTEGER)
            return pack_integer(kernel, index, value, out);
    } else if (PyFloat_CheckExact(value)) {
        if (slot->form == FORM_FLOAT) return pack_float(kernel, index, value, out);
    } else if (PyObject_TypeCheck(value, &buffer_type))
        return pack_buffer(kernel, index, (buffer_object *)value,
                           slot->access ? slot->access : BH_ACCESS_INOUT, out);
    if (Py_IS_TYPE(value, &access_type)) {
        access_object *access = (access_object *)value;
        return pack_buffer(kernel, index, (buffer_object *)access->buffer, access->access, out);
    }
    switch (slot->form) {
    case FORM_FLOAT:
        return pack_float(kernel, index, value, out);
    case FORM_SIGNED:
    case FORM_UNSIGNED:
    case FORM_INTEGER:
        return pack_integer(kernel, index, value, out);
    case FORM_BOOL: {
        int truth = PyBool_Check(value) ? value == Py_True : PyObject_IsTrue(value);
        if (truth < 0) return false;
        *out = bh_arg_words(BH_ARG_VALUE, 0, slot->bytes, (uint64_t)truth, 0);
        return true;
    }
    case FORM_POINTER:
        if (value != Py_None) return refuse_type(kernel, index, value, fix_for(value));
        *out = bh_arg_null();
        return true;
    case FORM_WORD:
        if (value == Py_None) {
            *out = bh_arg_null();
            return true;
        }
        if (!PyIndex_Check(value)) return refuse_type(kernel, index, value, fix_for(value));
        return pack_integer(kernel, index, value, out);
    case FORM_STRUCT:
        return pack_bytes(kernel, index, value, out, kept);
    default:
        if (PyFloat_CheckExact(value) && (slot->bytes == 4 || slot->bytes == 8))
            return pack_float(kernel, index, value, out);
        if (PyLong_CheckExact(value)) return pack_integer(kernel, index, value, out);
        if (value == Py_None && slot->bytes == 8) {
            *out = bh_arg_null();
            return true;
        }
        return pack_bytes(kernel, index, value, out, kept);
    }
}

static bool refuse_count(kernel_object *kernel, Py_ssize_t count) {
    PyObject *labels = PyList_New(0), *comma = PyUnicode_FromString(", "), *joined = NULL;
    for (uint32_t i = 0; labels && i < kernel->count; i++)
        if (PyList_Append(labels, label_of(kernel, i))) Py_CLEAR(labels);
    if (labels && comma) joined = PyUnicode_Join(comma, labels);
    Py_XDECREF(labels), Py_XDECREF(comma);
    if (!joined) return false;
    raise_refused(kernel->name, "pass one argument for each parameter",
                  "kernel \"%U\" takes %u arguments (%U), and got %zd", kernel->name, kernel->count,
                  joined, count);
    Py_DECREF(joined);
    return false;
}

/* A pointer whose elements are counted by another parameter: the launch is refused if the buffer
 * has fewer. */
static void declare_counts(kernel_object *kernel, bh_arg *args) {
    for (uint32_t i = 0; i < kernel->count; i++) {
        const parameter *slot = &kernel->parameters[i];
        if (slot->count_at < 0 || args[i].kind != BH_ARG_BUFFER) continue;
        const bh_arg *count = &args[slot->count_at];
        uint64_t elements = 0;
        if (count->kind != BH_ARG_VALUE || count->size > 8) continue;
        memcpy(&elements, count->u.value, count->size);
        if (elements > UINT64_MAX / (slot->count_unit ? slot->count_unit : 1)) continue;
        args[i].u.buffer.at_least = elements * slot->count_unit;
    }
}

bool pack_arguments(kernel_object *kernel, PyObject *const *values, Py_ssize_t count, bh_arg *out,
                    PyObject **kept) {
    bool counts = false;
    if (count != (Py_ssize_t)kernel->count) return refuse_count(kernel, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!pack_one(kernel, i, values[i], &out[i], kept)) return false;
        counts |= kernel->parameters[i].count_at >= 0;
    }
    if (counts) declare_counts(kernel, out);
    return true;
}

/* ---- options ---- */

static bool truth_flag(PyObject *value, uint32_t flag, uint32_t *flags) {
    int truth = PyObject_IsTrue(value);
    if (truth < 0) return false;
    if (truth) *flags |= flag;
    return true;
}

static bool parse_uses(PyObject *value, launch_extras *out) {
    PyObject *list = PySequence_Fast(value, "also= takes a list of arrays");
    if (!list) return false;
    Py_ssize_t length = PySequence_Fast_GET_SIZE(list);
    bool good = (out->also = PyMem_Calloc((size_t)length + 1, sizeof *out->also)) != NULL;
    if (!good) PyErr_NoMemory();
    for (Py_ssize_t i = 0; good && i < length; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(list, i);
        uint16_t access = BH_ACCESS_INOUT;
        if (Py_IS_TYPE(item, &access_type))
            access = ((access_object *)item)->access, item = ((access_object *)item)->buffer;
        good = PyObject_TypeCheck(item, &buffer_type);
        if (!good)
            PyErr_Format(PyExc_TypeError, "also= takes arrays, not %R", item);
        else
            out->also[i] = (bh_use){((buffer_object *)item)->handle, access, 0};
    }
    out->options.also = out->also, out->options.also_count = (size_t)length;
    Py_DECREF(list);
    return good;
}

static bool parse_option(device_object *device, PyObject *name, PyObject *value,
                         launch_extras *out) {
    bh_launch_options *o = &out->options;
    static const struct {
        const char *name;
        uint32_t flag;
    } flags[] = {{"idempotent", BH_SUBMIT_IDEMPOTENT},
                 {"timed", BH_SUBMIT_TIMED},
                 {"cooperative", BH_LAUNCH_COOPERATIVE},
                 {"writable_inputs", BH_LAUNCH_WRITABLE_INPUTS},
                 {"programmatic", BH_LAUNCH_PROGRAMMATIC}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (!PyUnicode_CompareWithASCIIString(name, flags[i].name))
            return truth_flag(value, flags[i].flag, &o->flags);
    if (!PyUnicode_CompareWithASCIIString(name, "deadline"))
        return nanoseconds(value, 0, &o->deadline_ns);
    if (!PyUnicode_CompareWithASCIIString(name, "after"))
        return ticket_list(value, &out->after, &o->after_count) && (o->after = out->after, true);
    if (!PyUnicode_CompareWithASCIIString(name, "also")) return parse_uses(value, out);
    if (!PyUnicode_CompareWithASCIIString(name, "priority")) {
        long priority = PyLong_AsLong(value);
        if (priority == -1 && PyErr_Occurred()) return false;
        if (priority != (int32_t)priority) {
            raise_refused(NULL, "use the numbers of dev.limits()", "%ld is no priority", priority);
            return false;
        }
        o->priority = (int32_t)priority, o->flags |= BH_LAUNCH_PRIORITY;
        return true;
    }
    if (!PyUnicode_CompareWithASCIIString(name, "lane")) {
        if (!PyObject_TypeCheck(value, &lane_type)) {
            PyErr_Format(PyExc_TypeError, "lane= takes a lane of dev.lane(), not %R", value);
            return false;
        }
        o->lane = ((lane_object *)value)->handle;
        return lane_is_open((lane_object *)value);
    }
    (void)device;
    PyErr_Format(
        PyExc_TypeError,
        "a launch has no option \"%U\". Fix: use deadline, idempotent, timed, cooperative, "
        "lane, after, also, priority, writable_inputs or programmatic",
        name);
    return false;
}

bool parse_options(device_object *device, PyObject *names, PyObject *const *values,
                   launch_extras *out) {
    memset(out, 0, sizeof *out);
    out->options.size = (uint32_t)sizeof out->options;
    if (!current_lane(device, &out->options.lane)) return false;
    Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!parse_option(device, PyTuple_GET_ITEM(names, i), values[i], out)) return false;
    return true;
}

void free_options(launch_extras *extras) {
    PyMem_Free(extras->after);
    PyMem_Free(extras->also);
}

/* ---- shapes ---- */

static bool parse_dim(PyObject *value, const char *what, bh_dim *out) {
    uint32_t *parts[3] = {&out->x, &out->y, &out->z};
    PyObject *one[1] = {value}, *const *items = one;
    Py_ssize_t count = 1;
    if (PyTuple_Check(value)) items = &PyTuple_GET_ITEM(value, 0), count = PyTuple_GET_SIZE(value);
    *out = (bh_dim){1, 1, 1};
    if (count < 1 || count > 3) {
        PyErr_Format(PyExc_TypeError, "a %s has one to three numbers, not %R", what, value);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *number = PyNumber_Index(items[i]);
        if (!number) return false;
        unsigned long long size = PyLong_AsUnsignedLongLong(number);
        Py_DECREF(number);
        if (PyErr_Occurred() || size > UINT32_MAX) {
            PyErr_Clear();
            raise_refused(NULL, "use numbers from 1 to the device's limits: dev.limits()",
                          "%R is no size of a %s", items[i], what);
            return false;
        }
        *parts[i] = (uint32_t)size;
    }
    /* The library takes zeros at the end for numbers that were left out, and refuses this. */
    if (!out->x || !out->y || !out->z) *out = (bh_dim){0, 1, 1};
    return true;
}

bool parse_shape(PyObject *key, bh_shape *out) {
    memset(out, 0, sizeof *out);
    Py_ssize_t count = PyTuple_Check(key) ? PyTuple_GET_SIZE(key) : 0;
    if (count < 2 || count > 4) {
        PyErr_Format(PyExc_TypeError,
                     "a kernel is launched as kernel[grid, block](...), kernel[grid, block, "
                     "shared_bytes](...) or kernel.forall(n)(...), not with %R",
                     key);
        return false;
    }
    if (!parse_dim(PyTuple_GET_ITEM(key, 0), "grid", &out->grid) ||
        !parse_dim(PyTuple_GET_ITEM(key, 1), "block", &out->block))
        return false;
    if (count > 2) {
        unsigned long shared = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(key, 2));
        if (PyErr_Occurred()) return false;
        out->shared_bytes = shared > UINT32_MAX ? UINT32_MAX : (uint32_t)shared;
    }
    return count < 4 || parse_dim(PyTuple_GET_ITEM(key, 3), "cluster", &out->cluster);
}

/* ---- launching ---- */

/* The queue is full: wait for room without the GIL, so that Ctrl-C and other threads go on. */
static bh_status wait_for_room(kernel_object *kernel, bh_shape shape, bh_args args,
                               launch_extras *extras, bh_ticket *ticket) {
    long pause_ns = 0;
    bh_status status = BH_E_BUSY;
    while (pause_for_room(&status, &pause_ns))
        status = bh_launch(kernel->handle, shape, args, &extras->options, ticket);
    return status;
}

static PyObject *launch(launcher_object *self, bh_arg *args, PyObject *const *values,
                        Py_ssize_t count, PyObject *names) {
    kernel_object *kernel = self->kernel;
    launch_extras extras;
    bh_ticket ticket;
    PyObject *result = NULL, *kept = NULL;
    if (!device_is_open(kernel->device)) return NULL;
    if (!pack_arguments(kernel, values, count, args, &kept)) {
        Py_XDECREF(kept);
        return NULL;
    }
    if (parse_options(kernel->device, names, values + count, &extras)) {
        bh_args list = {args, (size_t)count};
        extras.options.flags |= BH_SUBMIT_NO_BLOCK;
        bh_status status = bh_launch(kernel->handle, self->shape, list, &extras.options, &ticket);
        if (status == BH_E_BUSY)
            status = wait_for_room(kernel, self->shape, list, &extras, &ticket);
        if (status == BH_OK) {
            note_work(kernel->device, extras.options.lane, ticket);
            result = ticket_new(kernel->device, ticket);
        } else if (status > 0)
            raise_last(status);
    }
    free_options(&extras);
    Py_XDECREF(kept);
    return result;
}

static PyObject *launcher_call(PyObject *object, PyObject *const *values, size_t flags,
                               PyObject *names) {
    launcher_object *self = (launcher_object *)object;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (self->kernel->count <= ARGUMENTS_ON_STACK) {
        bh_arg args[ARGUMENTS_ON_STACK];
        return launch(self, args, values, count, names);
    }
    bh_arg *args = PyMem_Calloc(self->kernel->count, sizeof *args);
    if (!args) return PyErr_NoMemory();
    PyObject *result = launch(self, args, values, count, names);
    PyMem_Free(args);
    return result;
}

static void launcher_dealloc(PyObject *object) {
    Py_XDECREF(((launcher_object *)object)->kernel);
    PyObject_Free(object);
}

static PyObject *dim_tuple(bh_dim dim) {
    return Py_BuildValue("(III)", (unsigned)dim.x, (unsigned)dim.y, (unsigned)dim.z);
}

static PyObject *launcher_repr(PyObject *object) {
    launcher_object *self = (launcher_object *)object;
    return PyUnicode_FromFormat("<bulkhead.Launcher of kernel %R, grid (%u, %u, %u), block (%u, "
                                "%u, %u), %u bytes shared>",
                                self->kernel->name, self->shape.grid.x, self->shape.grid.y,
                                self->shape.grid.z, self->shape.block.x, self->shape.block.y,
                                self->shape.block.z, self->shape.shared_bytes);
}

/* Would the launch be accepted? */
static PyObject *launcher_preflight(PyObject *object, PyObject *args) {
    launcher_object *self = (launcher_object *)object;
    Py_ssize_t count = PyTuple_GET_SIZE(args);
    bh_preflight answer = BH_INIT(answer);
    bh_arg *packed = PyMem_Calloc((size_t)count + 1, sizeof *packed);
    if (!packed) return PyErr_NoMemory();
    bh_args list = {packed, (size_t)count};
    PyObject *result = NULL, *kept = NULL;
    if (!count || pack_arguments(self->kernel, &PyTuple_GET_ITEM(args, 0), count, packed, &kept)) {
        bh_status status;
        Py_BEGIN_ALLOW_THREADS
        status = bh_launch_preflight(self->kernel->handle, self->shape, count ? &list : NULL, NULL,
                                     &answer);
        Py_END_ALLOW_THREADS
        result = status ? raise_last(status) : struct_dict(&layout_preflight, &answer);
    }
    Py_XDECREF(kept);
    PyMem_Free(packed);
    return result;
}

static PyObject *launcher_grid(PyObject *object, void *unused) {
    (void)unused;
    return dim_tuple(((launcher_object *)object)->shape.grid);
}
static PyObject *launcher_block(PyObject *object, void *unused) {
    (void)unused;
    return dim_tuple(((launcher_object *)object)->shape.block);
}

static PyObject *launcher_kernel(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef((PyObject *)((launcher_object *)object)->kernel);
}

static PyMethodDef launcher_methods[] = {
    {"preflight", launcher_preflight, METH_VARARGS,
     "preflight(*arguments)\n--\n\n"
     "Would this launch be accepted? A dict: error is None or the exception, fits_block is the\n"
     "largest block that fits. Nothing is launched; without arguments they are not looked at."},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef launcher_getters[] = {{"grid", launcher_grid, NULL, "(x, y, z)", NULL},
                                         {"block", launcher_block, NULL, "(x, y, z)", NULL},
                                         {"kernel", launcher_kernel, NULL, "The kernel.", NULL},
                                         {NULL, NULL, NULL, NULL, NULL}};

PyTypeObject launcher_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bulkhead.Launcher",
    .tp_doc = "kernel[grid, block]: call it with the kernel's arguments to launch. Keep it to\n"
              "launch often.\n\n    fast = saxpy[grid, block]\n    ticket = fast(2.0, x, y, n)",
    .tp_basicsize = sizeof(launcher_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_vectorcall_offset = offsetof(launcher_object, call),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = launcher_dealloc,
    .tp_repr = launcher_repr,
    .tp_methods = launcher_methods,
    .tp_getset = launcher_getters,
};

/* ---- kernels ---- */

static bool set_parameter(parameter *out, PyObject *item, uint32_t count) {
    int form;
    unsigned access, element, bytes, unit;
    int at;
    if (!PyArg_ParseTuple(item, "CIIIiIU", &form, &access, &element, &bytes, &at, &unit,
                          &out->label))
        return false;
    Py_INCREF(out->label);
    *out = (parameter){(uint8_t)form, (uint8_t)access,           (uint8_t)element,
                       bytes,         at < (int)count ? at : -1, unit,
                       out->label};
    return true;
}

/* Kernel(device, module, id, name, parameters) */
static PyObject *kernel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *owner, *module, *name, *list;
    device_object *device;
    unsigned long long id;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OOKUO!", &owner, &module, &id, &name, &PyTuple_Type, &list) ||
        !takes_device(owner, &device))
        return NULL;
    kernel_object *self = (kernel_object *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    uint32_t count = (uint32_t)PyTuple_GET_SIZE(list);
    self->device = (device_object *)Py_NewRef(owner);
    self->module = Py_NewRef(module);
    self->handle.id = id;
    self->name = Py_NewRef(name);
    self->parameters = PyMem_Calloc(count + 1, sizeof *self->parameters);
    if (!self->parameters) PyErr_NoMemory();
    for (uint32_t i = 0; self->parameters && i < count; i++) {
        if (!set_parameter(&self->parameters[i], PyTuple_GET_ITEM(list, i), count)) break;
        self->count = i + 1;
    }
    if (PyErr_Occurred()) Py_CLEAR(self);
    return (PyObject *)self;
}

static int kernel_traverse(PyObject *object, visitproc visit, void *arg) {
    kernel_object *self = (kernel_object *)object;
    Py_VISIT(self->device);
    Py_VISIT(self->module);
    return 0;
}

static void kernel_dealloc(PyObject *object) {
    kernel_object *self = (kernel_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (PyObject_IS_GC(object)) PyObject_GC_UnTrack(object);
    for (uint32_t i = 0; i < self->count; i++) Py_XDECREF(self->parameters[i].label);
    PyMem_Free(self->parameters);
    Py_XDECREF(self->name);
    Py_XDECREF(self->module);
    Py_XDECREF(self->device);
    type->tp_free(object);
}

static PyObject *kernel_subscript(PyObject *object, PyObject *key) {
    bh_shape shape;
    if (!parse_shape(key, &shape)) return NULL;
    launcher_object *self = PyObject_New(launcher_object, &launcher_type);
    if (!self) return NULL;
    self->call = launcher_call;
    self->kernel = (kernel_object *)Py_NewRef(object);
    self->shape = shape;
    return (PyObject *)self;
}

static PyObject *kernel_get_name(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef(((kernel_object *)object)->name);
}
static PyObject *kernel_get_device(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef((PyObject *)((kernel_object *)object)->device);
}
static PyObject *kernel_get_module(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef(((kernel_object *)object)->module);
}
static PyObject *kernel_get_handle(PyObject *object, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(((kernel_object *)object)->handle.id);
}
static PyObject *kernel_get_parameters(PyObject *object, void *unused) {
    kernel_object *self = (kernel_object *)object;
    (void)unused;
    PyObject *tuple = PyTuple_New(self->count);
    for (uint32_t i = 0; tuple && i < self->count; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(self->parameters[i].label));
    return tuple;
}

static PyGetSetDef kernel_getters[] = {
    {"name", kernel_get_name, NULL, "The name it was found by.", NULL},
    {"device", kernel_get_device, NULL, "The device that runs it.", NULL},
    {"module", kernel_get_module, NULL, "The module that it belongs to.", NULL},
    {"parameters", kernel_get_parameters, NULL, "What is known of its parameters, as text.", NULL},
    {"_handle", kernel_get_handle, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyMappingMethods kernel_mapping = {.mp_subscript = kernel_subscript};

PyTypeObject kernel_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bulkhead._core.Kernel",
    .tp_basicsize = sizeof(kernel_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = kernel_new,
    .tp_dealloc = kernel_dealloc,
    .tp_traverse = kernel_traverse,
    .tp_free = PyObject_GC_Del,
    .tp_as_mapping = &kernel_mapping,
    .tp_getset = kernel_getters,
};

/* ---- In(x), Out(x), InOut(x) ---- */

static PyObject *access_make(PyObject *buffer, uint16_t how) {
    if (!PyObject_TypeCheck(buffer, &buffer_type))
        return PyErr_Format(PyExc_TypeError, "%R is not an array of a device. Fix: dev.array(x)",
                            buffer);
    access_object *self = PyObject_New(access_object, &access_type);
    if (!self) return NULL;
    self->buffer = Py_NewRef(buffer);
    self->access = how;
    return (PyObject *)self;
}
static PyObject *make_in(PyObject *module, PyObject *buffer) {
    (void)module;
    return access_make(buffer, BH_ACCESS_IN);
}
static PyObject *make_out(PyObject *module, PyObject *buffer) {
    (void)module;
    return access_make(buffer, BH_ACCESS_OUT);
}
static PyObject *make_inout(PyObject *module, PyObject *buffer) {
    (void)module;
    return access_make(buffer, BH_ACCESS_INOUT);
}

static void access_dealloc(PyObject *object) {
    Py_XDECREF(((access_object *)object)->buffer);
    PyObject_Free(object);
}

static PyObject *access_array(PyObject *object, void *unused) {
    (void)unused;
    return Py_NewRef(((access_object *)object)->buffer);
}
static PyGetSetDef access_getters[] = {{"array", access_array, NULL, "The array.", NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};

PyTypeObject access_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "bulkhead._core.Access",
    .tp_basicsize = sizeof(access_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = access_dealloc,
    .tp_getset = access_getters,
};

PyMethodDef launch_functions[] = {
    {"In", make_in, METH_O,
     "In(array)\n--\n\nFor a launch: the kernel only reads the array. It stays intact if the "
     "kernel faults."},
    {"Out", make_out, METH_O,
     "Out(array)\n--\n\nFor a launch: the kernel writes all of the array and does not need the old "
     "contents."},
    {"InOut", make_inout, METH_O,
     "InOut(array)\n--\n\nFor a launch: the kernel reads and writes the array, or writes a part."},
    {NULL, NULL, 0, NULL}};
