/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The extension module bulkhead._core: what the files in this folder share.
 *
 * Objects that launches touch (devices, buffers, kernels, launchers, tickets) are C types; the
 * package derives Device and Array from them. Everything else is a function that takes handles as
 * Python integers. No call waits while it holds the GIL, and every wait sees signals.
 */
#ifndef BULKHEAD_PYTHON_CORE_H
#define BULKHEAD_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdatomic.h>

#include "bulkhead.h"
#include "bulkhead/cuda.h"

/* ---- objects ---- */

typedef struct device_object {
    PyObject_HEAD
    bh_device handle;
    bool open;
    bool leaving;      /* closes with the last view */
    uint64_t close_ns; /* how long close waits for work */
    bh_ticket last;    /* the newest work on the device's own lane; zero: none yet */
    Py_ssize_t views;  /* of managed memory, which ends with the device */
    PyObject *watches; /* {id: function}; NULL: none */
} device_object;

typedef struct buffer_object {
    PyObject_HEAD
    bh_buffer handle;
    device_object *device;
    bh_type type;
    uint32_t flags; /* BH_BUFFER_... it was allocated with */
    uint64_t bytes;
    /* For the buffer protocol. */
    int ndim;
    Py_ssize_t itemsize;
    Py_ssize_t *shape; /* followed by the strides */
    char *format;
    void *host;           /* where the process sees it; NULL: not known yet */
    Py_ssize_t exports;   /* views of managed memory, which ends with the last array on it */
    bool mapped;          /* by bh_share_map */
    bh_cuda_mapping cuda; /* id 0: none */
} buffer_object;

/* How a parameter is written down: the letters of `form`. */
enum {
    FORM_SIGNED = 'i',
    FORM_UNSIGNED = 'u',
    FORM_FLOAT = 'f',
    FORM_BOOL = 'b',
    FORM_POINTER = 'p',
    FORM_WORD = 'w',    /* 8 bytes: a number or a pointer, the image does not say which */
    FORM_STRUCT = 's',  /* so many bytes */
    FORM_INTEGER = 'n', /* an integer whose sign the image does not say */
    FORM_ANY = 'a'      /* a number of so many bytes */
};

typedef struct parameter {
    uint8_t form;
    uint8_t access;  /* of a pointer: BH_ACCESS_... */
    uint8_t element; /* of a pointer: bh_type; 0: any */
    uint32_t bytes;
    int32_t count_at;    /* the parameter that says how many elements there are; -1: none does */
    uint32_t count_unit; /* bytes of such an element */
    PyObject *label;     /* "const float *x" */
} parameter;

typedef struct kernel_object {
    PyObject_HEAD
    bh_kernel handle;
    device_object *device;
    PyObject *module; /* keeps the module loaded */
    PyObject *name;
    uint32_t count;
    parameter *parameters;
} kernel_object;

typedef struct launcher_object {
    PyObject_HEAD
    vectorcallfunc call;
    kernel_object *kernel;
    bh_shape shape;
} launcher_object;

typedef struct access_object {
    PyObject_HEAD
    PyObject *buffer;
    uint16_t access;
} access_object;

typedef struct ticket_object {
    PyObject_HEAD
    bh_ticket ticket;
    device_object *device;
} ticket_object;

typedef struct lane_object {
    PyObject_HEAD
    bh_lane handle;
    device_object *device;
    Py_ssize_t entered; /* `with` blocks of all threads and tasks: the last one releases it */
} lane_object;

extern PyTypeObject device_type, buffer_type, kernel_type, launcher_type, access_type, ticket_type,
    lane_type, map_type;

/* ---- errors (errors.c) ---- */

/* Both set the Python exception for a status and return NULL. */
PyObject *raise_last(bh_status status);
PyObject *raise_error(const bh_error *error);
/* The same for a call of libbulkhead-cuda. */
PyObject *raise_cuda(bh_status status);
/* An InvalidError of the package's own: message and fix are formats with the same arguments. */
PyObject *raise_refused(PyObject *kernel, const char *fix, const char *format, ...);
PyObject *error_object(const bh_error *error);

/* ---- waiting (waits.c). False: an exception is set, of a signal handler for example. ---- */

bool wait_ticket(bh_ticket ticket, uint64_t timeout_ns, bh_status *out);
/* For what must come before a blocking transfer. Results do not matter. */
bool wait_before_transfer(buffer_object *buffer);
/* After a submission that must not wait: a pause without the GIL if the queue is full, longer each
 * time. False: the call has another status, or an exception is set, and `status` is then -1. */
bool pause_for_room(bh_status *status, long *pause_ns);
/* Calls `submit` with `flags`: BH_SUBMIT_NO_BLOCK while the queue is full, so that Ctrl-C ends the
 * wait; what else the library waits for is short. */
typedef bh_status submit_fn(void *context, uint32_t flags);
bh_status submit_with_room(submit_fn *submit, void *context);
/* Seconds as a Python number, None for ever, in nanoseconds. */
bool nanoseconds(PyObject *seconds, uint64_t none, uint64_t *out);
uint64_t monotonic_ns(void);
/* Calls `poll` with short timeouts until it gives something else than BH_E_TIMEOUT. */
typedef bh_status poll_fn(void *context, uint64_t timeout_ns);
bool wait_polling(poll_fn *poll, void *context, uint64_t timeout_ns, bh_status *out);

/* ---- tickets, lanes ---- */

PyObject *ticket_new(device_object *device, bh_ticket ticket);
/* The lane that `with device.lane()` selects here; zero: the device's own. False: an exception. */
bool current_lane(device_object *device, bh_lane *out);
/* Notes work on a lane for wait_before_transfer. */
void note_work(device_object *device, bh_lane lane, bh_ticket ticket);
bool ticket_list(PyObject *tickets, bh_ticket **out, size_t *count);
bool lane_is_open(lane_object *lane);
extern bool lanes_used;
extern PyObject *lane_variable;
int lanes_init(PyObject *module);

/* ---- launching (launch.c) ---- */

enum { ARGUMENTS_ON_STACK = 32 };
/* `kept`, NULL at first, becomes a list of what the packed arguments point to: the caller drops it
 * after the call of the library, also when packing has failed. */
bool pack_arguments(kernel_object *kernel, PyObject *const *values, Py_ssize_t count, bh_arg *out,
                    PyObject **kept);
bool pack_one(kernel_object *kernel, Py_ssize_t index, PyObject *value, bh_arg *out,
              PyObject **kept);
typedef struct launch_extras {
    bh_launch_options options;
    bh_ticket *after;
    bh_use *also;
} launch_extras;
/* Keyword arguments of a launch; `names` may be NULL. */
bool parse_options(device_object *device, PyObject *names, PyObject *const *values,
                   launch_extras *out);
void free_options(launch_extras *extras);
bool parse_shape(PyObject *key, bh_shape *out);

/* ---- structs as dicts (structs.c) ---- */

typedef struct field {
    const char *name;
    char kind; /* 'u', 'i', 'd' numbers, 's' text, 'a' array of uint32_t, 'e' bh_error */
    uint16_t offset, bytes;
} field;
typedef struct layout {
    const char *name;
    size_t bytes;
    const field *fields;
} layout;
extern const layout layout_device_info, layout_device_limits, layout_health, layout_loss,
    layout_memory_info, layout_memory_tag, layout_kernel_info, layout_occupancy, layout_ticket_info,
    layout_finding, layout_binary_info, layout_buffer_info, layout_compiler_entry, layout_preflight;
PyObject *struct_dict(const layout *kind, const void *data);
int structs_init(PyObject *module);

/* ---- functions of each file, ended by zeros ---- */

extern PyMethodDef module_methods[], device_functions[], sequence_methods[], callback_methods[],
    share_methods[], measure_methods[];
void close_all_devices(void);
bool takes_device(PyObject *object, device_object **out);
/* For "O&": numbers that fit; "I" and "K" would take others modulo 2**32 and 2**64. */
int takes_u32(PyObject *object, void *out);
int takes_u64(PyObject *object, void *out);
bool device_is_open(device_object *device);
/* A view of managed memory begins and ends: neither the array nor the device may go meanwhile. */
void view_begins(buffer_object *buffer);
void view_ends(buffer_object *buffer);
/* The interpreter is ending: threads of the library call Python no more. */
extern atomic_bool interpreter_ends;

extern PyMethodDef launch_functions[];

#endif
