/* SPDX-License-Identifier: Apache-2.0 */
/* The module bulkhead._core itself: types, functions and constants. */
#include "core.h"

static int takes_number(PyObject *object, uint64_t most, uint64_t *out) {
    PyObject *number = PyNumber_Index(object);
    if (!number) return 0;
    *out = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (!PyErr_Occurred() && *out <= most) return 1;
    PyErr_Clear();
    raise_refused(NULL, "pass a number that fits", "%R is not a number from 0 to %llu", object,
                  (unsigned long long)most);
    return 0;
}

int takes_u32(PyObject *object, void *out) {
    uint64_t wide;
    if (!takes_number(object, UINT32_MAX, &wide)) return 0;
    *(uint32_t *)out = (uint32_t)wide;
    return 1;
}

int takes_u64(PyObject *object, void *out) {
    return takes_number(object, UINT64_MAX, out);
}

static PyObject *version(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyUnicode_FromString(bh_version());
}

static PyObject *status_name(PyObject *module, PyObject *number) {
    long status = PyLong_AsLong(number);
    (void)module;
    return PyErr_Occurred() ? NULL : PyUnicode_FromString(bh_status_name((bh_status)status));
}

/* wait_all(tickets, timeout): waits for all, raises the first error. */
static PyObject *wait_all(PyObject *module, PyObject *args) {
    PyObject *tickets, *seconds;
    bh_ticket *list;
    size_t count, first = 0;
    uint64_t timeout;
    bh_status worst = BH_OK, status = BH_OK;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &tickets, &seconds) ||
        !nanoseconds(seconds, BH_FOREVER, &timeout) || !ticket_list(tickets, &list, &count))
        return NULL;
    bool waited = true;
    uint64_t began = monotonic_ns();
    for (size_t i = 0; waited && i < count && status != BH_E_TIMEOUT; i++) {
        uint64_t spent = monotonic_ns() - began;
        uint64_t left = timeout == BH_FOREVER ? timeout : spent < timeout ? timeout - spent : 0;
        waited = wait_ticket(list[i], left, &status);
        if (status == BH_E_BUSY) status = BH_E_TIMEOUT;
        if (status && !worst) worst = status, first = i;
    }
    bh_error error = {.status = worst};
    if (waited && worst) {
        if (bh_ticket_error(list[first], &error) == BH_E_BUSY) {
            error = (bh_error){.status = BH_E_TIMEOUT, .ticket = list[first]};
            snprintf(error.message, sizeof error.message,
                     "of %zu tickets, number %zu did not complete in time", count, first);
            snprintf(error.fix, sizeof error.fix, "wait longer");
        }
        raise_error(&error);
    }
    PyMem_Free(list);
    if (!waited || worst) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef own_functions[] = {{"version", version, METH_NOARGS, NULL},
                                      {"status_name", status_name, METH_O, NULL},
                                      {"wait_all", wait_all, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "bulkhead._core",
                                        .m_doc = "The compiled part of bulkhead.", .m_size = -1};

#define NUMBER(name)                                                                               \
    { #name, name }
static const struct {
    const char *name;
    long value;
} constants[] = {NUMBER(BH_OK),
                 NUMBER(BH_E_INVALID),
                 NUMBER(BH_E_NOT_FOUND),
                 NUMBER(BH_E_UNSUPPORTED),
                 NUMBER(BH_E_NO_DEVICE),
                 NUMBER(BH_E_NO_MEMORY),
                 NUMBER(BH_E_NO_HOST_MEMORY),
                 NUMBER(BH_E_COMPILE),
                 NUMBER(BH_E_LOAD),
                 NUMBER(BH_E_LAUNCH),
                 NUMBER(BH_E_RESIDENCY),
                 NUMBER(BH_E_FAULT),
                 NUMBER(BH_E_DEADLINE),
                 NUMBER(BH_E_LOST),
                 NUMBER(BH_E_STALE),
                 NUMBER(BH_E_QUARANTINED),
                 NUMBER(BH_E_STOPPED),
                 NUMBER(BH_E_BUSY),
                 NUMBER(BH_E_CANCELLED),
                 NUMBER(BH_E_TIMEOUT),
                 NUMBER(BH_E_IO),
                 NUMBER(BH_E_INTERNAL),
                 NUMBER(BH_I8),
                 NUMBER(BH_U8),
                 NUMBER(BH_I16),
                 NUMBER(BH_U16),
                 NUMBER(BH_I32),
                 NUMBER(BH_U32),
                 NUMBER(BH_I64),
                 NUMBER(BH_U64),
                 NUMBER(BH_F16),
                 NUMBER(BH_BF16),
                 NUMBER(BH_F32),
                 NUMBER(BH_F64),
                 NUMBER(BH_C64),
                 NUMBER(BH_C128),
                 NUMBER(BH_BUFFER_ZERO),
                 NUMBER(BH_BUFFER_MANAGED),
                 NUMBER(BH_BUFFER_TRANSPARENT),
                 NUMBER(BH_BUFFER_DRIVER),
                 NUMBER(BH_BUFFER_SHAREABLE),
                 NUMBER(BH_ACCESS_IN),
                 NUMBER(BH_ACCESS_OUT),
                 NUMBER(BH_ACCESS_INOUT),
                 NUMBER(BH_DEVICE_NO_STANDBY),
                 NUMBER(BH_DEVICE_NO_RESTART_LIMIT),
                 NUMBER(BH_DEVICE_CHECK),
                 NUMBER(BH_DEVICE_GUARD),
                 NUMBER(BH_DEVICE_CORE_DUMPS),
                 NUMBER(BH_MAP_READ),
                 NUMBER(BH_MAP_WRITE),
                 NUMBER(BH_MAP_DISCARD),
                 NUMBER(BH_TO_DEVICE),
                 NUMBER(BH_TO_HOST),
                 NUMBER(BH_EXECUTE_DEFAULT),
                 NUMBER(BH_EXECUTE_INTERPRETER),
                 NUMBER(BH_EXECUTE_JIT),
                 NUMBER(BH_EXECUTE_AUTO),
                 NUMBER(BH_EXECUTOR_DEVICE),
                 NUMBER(BH_EXECUTOR_INTERPRETER),
                 NUMBER(BH_EXECUTOR_JIT),
                 NUMBER(BH_SANDBOX_DEFAULT),
                 NUMBER(BH_SANDBOX_OFF),
                 NUMBER(BH_SANDBOX_ON),
                 NUMBER(BH_COMPILE_FAST_MATH),
                 NUMBER(BH_COMPILE_FLUSH_DENORMALS),
                 NUMBER(BH_COMPILE_LINE_INFO),
                 NUMBER(BH_COMPILE_DEBUG),
                 NUMBER(BH_COMPILE_RELOCATABLE),
                 NUMBER(BH_COMPILE_NO_CACHE),
                 NUMBER(BH_COMPILE_UNCONFINED),
                 NUMBER(BH_COMPILER_AUTO),
                 NUMBER(BH_COMPILER_NVRTC),
                 NUMBER(BH_COMPILER_CLANG),
                 NUMBER(BH_OUTPUT_AUTO),
                 NUMBER(BH_OUTPUT_PTX),
                 NUMBER(BH_OUTPUT_CUBIN),
                 NUMBER(BH_OUTPUT_LTOIR),
                 NUMBER(BH_CACHE_MISS),
                 NUMBER(BH_CACHE_MEMORY),
                 NUMBER(BH_CACHE_DISK),
                 NUMBER(BH_CACHE_OFF),
                 NUMBER(BH_EVENT_LOSS),
                 NUMBER(BH_EVENT_HEALTH),
                 NUMBER(BH_EVENT_PRESSURE),
                 NUMBER(BH_EVENT_PRINT),
                 NUMBER(BH_LOSS_FAULT),
                 NUMBER(BH_LOSS_DEADLINE),
                 NUMBER(BH_LOSS_LOST),
                 NUMBER(BH_LOSS_STUCK),
                 NUMBER(BH_LOSS_NO_MEMORY),
                 NUMBER(BH_LOSS_BROKEN),
                 NUMBER(BH_HEALTH_OK),
                 NUMBER(BH_HEALTH_DEGRADED),
                 NUMBER(BH_HEALTH_REPLACING),
                 NUMBER(BH_HEALTH_STOPPED),
                 NUMBER(BH_HEALTH_CLOSING),
                 NUMBER(BH_LOG_ERROR),
                 NUMBER(BH_LOG_WARNING),
                 NUMBER(BH_LOG_INFO),
                 NUMBER(BH_LOG_DEBUG),
                 NUMBER(BH_DL_CPU),
                 NUMBER(BH_DL_CUDA),
                 NUMBER(BH_DL_INT),
                 NUMBER(BH_DL_UINT),
                 NUMBER(BH_DL_FLOAT),
                 NUMBER(BH_DL_BFLOAT),
                 NUMBER(BH_DL_BOOL),
                 NUMBER(BH_PATTERN_MAX)};

static bool add_type(PyObject *module, const char *name, PyTypeObject *type) {
    if (PyType_Ready(type)) return false;
    return !name || !PyModule_AddObjectRef(module, name, (PyObject *)type);
}

PyMODINIT_FUNC PyInit__core(void); /* called by the interpreter */
PyMODINIT_FUNC PyInit__core(void) {
    PyMethodDef *const functions[] = {own_functions,    device_functions, module_methods,
                                      sequence_methods, callback_methods, share_methods,
                                      launch_functions, measure_methods};
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    bool good =
        add_type(module, "Device", &device_type) && add_type(module, "Buffer", &buffer_type) &&
        add_type(module, "Kernel", &kernel_type) && add_type(module, "Launcher", &launcher_type) &&
        add_type(module, "Ticket", &ticket_type) && add_type(module, "Lane", &lane_type) &&
        add_type(module, "Access", &access_type) && add_type(module, NULL, &map_type);
    for (size_t i = 0; good && i < sizeof functions / sizeof *functions; i++)
        good = !PyModule_AddFunctions(module, functions[i]);
    for (size_t i = 0; good && i < sizeof constants / sizeof *constants; i++)
        good = !PyModule_AddIntConstant(module, constants[i].name, constants[i].value);
    if (good && !lanes_init(module) && !structs_init(module)) return module;
    Py_DECREF(module);
    return NULL;
}
