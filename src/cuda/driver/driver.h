/* SPDX-License-Identifier: Apache-2.0 */
/* The NVIDIA driver: its types and constants as far as they are used, and its functions, loaded
 * at run time. */
#ifndef BH_CUDA_DRIVER_DRIVER_H
#define BH_CUDA_DRIVER_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error/error.h"

typedef struct bh__cu_context_object *bh__cu_context;
typedef struct bh__cu_stream_object *bh__cu_stream;
typedef struct bh__cu_event_object *bh__cu_event;
typedef struct bh__cu_module_object *bh__cu_module;
typedef struct bh__cu_function_object *bh__cu_function;
typedef struct bh__cu_graph_object *bh__cu_graph;
typedef struct bh__cu_node_object *bh__cu_node;
typedef struct bh__cu_graph_exec_object *bh__cu_graph_exec; /* a graph made ready to run */
typedef uint64_t bh__cu_address;
typedef unsigned long long bh__cu_memory; /* a handle, not an address */

typedef struct bh__cu_location {
    int type, id;
} bh__cu_location;

typedef struct bh__cu_memory_kind {
    int type;
    int handle_kinds;
    bh__cu_location location;
    void *windows_only;
    uint8_t compression, rdma;
    uint16_t usage;
    uint8_t reserved[4];
} bh__cu_memory_kind;
_Static_assert(sizeof(bh__cu_memory_kind) == 32, "laid out as the driver's");

typedef struct bh__cu_access {
    bh__cu_location location;
    int flags;
} bh__cu_access;
_Static_assert(sizeof(bh__cu_access) == 12, "laid out as the driver's");

/* One side of a copy of rows. */
typedef struct bh__cu_side {
    size_t x, y;
    int kind; /* BH__CU_SIDE_HOST, BH__CU_SIDE_DEVICE */
    void *host;
    bh__cu_address device;
    void *array;
    size_t pitch;
} bh__cu_side;

typedef struct bh__cu_rows {
    bh__cu_side source, target;
    size_t width, height;
} bh__cu_rows;
_Static_assert(sizeof(bh__cu_rows) == 128, "laid out as the driver's");

typedef struct bh__cu_launch_attribute {
    int id;
    char pad[4];
    union {
        int cooperative;
        struct {
            unsigned x, y, z;
        } cluster;
        int cluster_policy;
        int programmatic;
        int priority; /* the lower the more urgent */
        char room[64];
    } value;
} bh__cu_launch_attribute;
_Static_assert(sizeof(bh__cu_launch_attribute) == 72, "laid out as the driver's");

typedef struct bh__cu_launch {
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    bh__cu_stream stream;
    bh__cu_launch_attribute *attributes;
    unsigned attribute_count;
} bh__cu_launch;
_Static_assert(sizeof(bh__cu_launch) == 56, "laid out as the driver's");

typedef struct bh__cu_kernel_node {
    bh__cu_function function;
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    void **params, **extra;
    void *kernel, *context; /* used only without a function */
} bh__cu_kernel_node;
_Static_assert(sizeof(bh__cu_kernel_node) == 72, "laid out as the driver's");

typedef struct bh__cu_memory_op {
    int operation;
    bh__cu_address address;
    uint64_t value;
    unsigned flags;
    bh__cu_address internal;
    uint64_t room;
} bh__cu_memory_op;
_Static_assert(sizeof(bh__cu_memory_op) == 48, "laid out as the driver's");

typedef struct bh__cu_memory_node {
    bh__cu_context context;
    unsigned count;
    bh__cu_memory_op *operations;
    unsigned flags;
} bh__cu_memory_node;
_Static_assert(sizeof(bh__cu_memory_node) == 32, "laid out as the driver's");

/* One side of a copy, and a copy of up to three dimensions. */
typedef struct bh__cu_place {
    size_t x, y, z, level;
    int type;
    void *host;
    bh__cu_address device;
    void *array, *reserved;
    size_t pitch, height;
} bh__cu_place;

typedef struct bh__cu_copy_node {
    bh__cu_place source, target;
    size_t width, height, depth;
} bh__cu_copy_node;
_Static_assert(sizeof(bh__cu_copy_node) == 200, "laid out as the driver's");

typedef struct bh__cu_fill_node {
    bh__cu_address target;
    size_t pitch;
    unsigned value, element_bytes;
    size_t width, height; /* in elements, and rows of them */
} bh__cu_fill_node;
_Static_assert(sizeof(bh__cu_fill_node) == 40, "laid out as the driver's");

typedef struct bh__cu_array_object *bh__cu_array; /* with or without levels */
typedef unsigned long long bh__cu_object;         /* a texture or surface */

typedef struct bh__cu_array_shape {
    size_t width, height, depth; /* 0 for dimensions that it does not have */
    int format;
    unsigned channels, flags;
} bh__cu_array_shape;
_Static_assert(sizeof(bh__cu_array_shape) == 40, "laid out as the driver's");

/* What a texture or surface is over. */
typedef struct bh__cu_resource {
    int kind; /* BH__CU_RESOURCE_... */
    union {
        bh__cu_array array;
        struct {
            bh__cu_address address;
            int format;
            unsigned channels;
            size_t bytes;
        } linear;
        struct {
            bh__cu_address address;
            int format;
            unsigned channels;
            size_t width, height, pitch;
        } rows;
        int room[32];
    } of;
    unsigned flags;
} bh__cu_resource;
_Static_assert(sizeof(bh__cu_resource) == 144, "laid out as the driver's");

typedef struct bh__cu_sampling {
    int modes[3], filter;
    unsigned flags, anisotropy;
    int level_filter;
    float level_bias, level_min, level_max, border[4];
    int reserved[12];
} bh__cu_sampling;
_Static_assert(sizeof(bh__cu_sampling) == 104, "laid out as the driver's");

/* Results. */
enum {
    BH__CU_OK = 0,
    BH__CU_INVALID_VALUE = 1,
    BH__CU_OUT_OF_MEMORY = 2,
    BH__CU_STUB_LIBRARY = 34,
    BH__CU_DEVICE_UNAVAILABLE = 46,
    BH__CU_NO_DEVICE = 100,
    BH__CU_NO_BINARY_FOR_GPU = 209,
    BH__CU_ECC_UNCORRECTABLE = 214,
    BH__CU_JIT_COMPILER_NOT_FOUND = 221,
    BH__CU_UNSUPPORTED_PTX_VERSION = 222,
    BH__CU_JIT_DISABLED = 223,
    BH__CU_OPERATING_SYSTEM = 304,
    BH__CU_NOT_READY = 600,
    BH__CU_ILLEGAL_ADDRESS = 700,
    BH__CU_ASSERT = 710,
    BH__CU_MISALIGNED_ADDRESS = 716,
    BH__CU_COOPERATIVE_TOO_LARGE = 720,
    BH__CU_SYSTEM_DRIVER_MISMATCH = 803,
    BH__CU_MPS_SERVER_NOT_READY = 807,
    BH__CU_UNKNOWN = 999
};

enum { /* of a device */
       BH__CU_MAX_THREADS_PER_BLOCK = 1,
       BH__CU_MAX_BLOCK_X = 2, /* and Y, Z */
       BH__CU_MAX_GRID_X = 5,  /* and Y, Z */
       BH__CU_SHARED_PER_BLOCK = 8,
       BH__CU_WARP_SIZE = 10,
       BH__CU_REGISTERS_PER_BLOCK = 12,
       BH__CU_CLOCK_KHZ = 13,
       BH__CU_MULTIPROCESSORS = 16,
       BH__CU_COMPUTE_MODE = 20,
       BH__CU_CONCURRENT_KERNELS = 31,
       BH__CU_ECC = 32,
       BH__CU_MEMORY_CLOCK_KHZ = 36,
       BH__CU_MEMORY_BUS_BITS = 37,
       BH__CU_L2_BYTES = 38,
       BH__CU_THREADS_PER_MULTIPROCESSOR = 39,
       BH__CU_ASYNC_ENGINES = 40,
       BH__CU_CAPABILITY_MAJOR = 75,
       BH__CU_CAPABILITY_MINOR = 76,
       BH__CU_SHARED_PER_MULTIPROCESSOR = 81,
       BH__CU_REGISTERS_PER_MULTIPROCESSOR = 82,
       BH__CU_MANAGED_MEMORY = 83,
       BH__CU_CONCURRENT_MANAGED = 89,
       BH__CU_COOPERATIVE_LAUNCH = 95,
       BH__CU_SHARED_PER_BLOCK_OPTIN = 97,
       BH__CU_VIRTUAL_MEMORY = 102,
       BH__CU_EXPORT_AS_DESCRIPTOR = 103,
       BH__CU_BLOCKS_PER_MULTIPROCESSOR = 106,
       BH__CU_CLUSTER_LAUNCH = 120,
       BH__CU_WIDE_STREAM_OPS = 122,
       BH__CU_MPS = 133 /* not known to drivers before 12.2 */
};

enum { /* compute modes */
       BH__CU_MODE_DEFAULT = 0,
       BH__CU_MODE_PROHIBITED = 2,
       BH__CU_MODE_EXCLUSIVE_PROCESS = 3
};

enum { /* of a function */
       BH__CU_FUNCTION_MAX_THREADS = 0,
       BH__CU_FUNCTION_SHARED = 1,
       BH__CU_FUNCTION_LOCAL = 3,
       BH__CU_FUNCTION_REGISTERS = 4,
       BH__CU_FUNCTION_MAX_DYNAMIC_SHARED = 8,
       BH__CU_FUNCTION_CLUSTER_MUST_BE_SET = 10,
       BH__CU_FUNCTION_REQUIRED_CLUSTER = 11, /* and Y, Z */
       BH__CU_FUNCTION_LARGE_CLUSTERS = 14    /* non-portable cluster sizes are allowed */
};

enum {
    BH__CU_CONTEXT_BLOCKING_SYNC = 4,
    BH__CU_LOCATION_DEVICE = 1,
    BH__CU_MEMORY_PINNED = 1,
    BH__CU_HANDLE_DESCRIPTOR = 1,
    BH__CU_GRANULARITY_MINIMUM = 0,
    BH__CU_MANAGED_GLOBAL = 1,
    BH__CU_THE_HOST = -1, /* as a device */
    BH__CU_ACCESS_READ = 1,
    BH__CU_ACCESS_READ_WRITE = 3,
    BH__CU_SIDE_HOST = 1,
    BH__CU_SIDE_DEVICE = 2,
    BH__CU_HOST_PORTABLE = 1,
    BH__CU_HOST_DEVICE_MAP = 2,
    BH__CU_STREAM_NON_BLOCKING = 1,
    BH__CU_EVENT_DEFAULT = 0,
    BH__CU_EVENT_BLOCKING_SYNC = 1,
    BH__CU_EVENT_NO_TIMING = 2,
    BH__CU_WAIT_AT_LEAST = 0,
    BH__CU_WRITE_64 = 5,
    BH__CU_PLACE_HOST = 1,
    BH__CU_PLACE_DEVICE = 2,
    BH__CU_PLACE_ARRAY = 3,
    BH__CU_ARRAY_LAYERED = 1,
    BH__CU_ARRAY_SURFACE = 2,
    BH__CU_ARRAY_CUBE = 4,
    BH__CU_ARRAY_GATHER = 8,
    BH__CU_RESOURCE_ARRAY = 0,
    BH__CU_RESOURCE_LEVELS = 1,
    BH__CU_RESOURCE_LINEAR = 2,
    BH__CU_RESOURCE_ROWS = 3,
    BH__CU_SAMPLE_INTEGER = 1,
    BH__CU_SAMPLE_NORMALIZED = 2,
    BH__CU_SAMPLE_SRGB = 16,
    BH__CU_LAUNCH_COOPERATIVE = 2,
    BH__CU_LAUNCH_CLUSTER = 4,
    BH__CU_LAUNCH_CLUSTER_POLICY = 5,
    BH__CU_LAUNCH_PROGRAMMATIC = 6,
    BH__CU_LAUNCH_PRIORITY = 8,
    BH__CU_JIT_ERROR_LOG = 5,
    BH__CU_JIT_ERROR_LOG_BYTES = 6
};

enum { /* advice; each is followed by its opposite */
       BH__CU_ADVISE_READ_MOSTLY = 1,
       BH__CU_ADVISE_PREFER = 3,
       BH__CU_ADVISE_ACCESSED_BY = 5
};

/* For the `extra` of a launch: parameters as one block of bytes. */
#define BH__CU_PARAM_END   ((void *)0)
#define BH__CU_PARAM_BYTES ((void *)1)
#define BH__CU_PARAM_SIZE  ((void *)2)

/* The driver's functions and its version. Optional functions are NULL if the driver lacks them. */
typedef struct bh__driver {
    void *library;
    int number; /* the version: 12040 for CUDA 12.4 */
#define BH__NEEDED(name, symbol, parameters)   int(*name) parameters;
#define BH__OPTIONAL(name, symbol, parameters) int(*name) parameters;
#include "cuda/driver/table.h"
} bh__driver;

/* Loads libcuda.so.1, looks everything up and starts the driver. The error says what to do about
 * a failure. */
bh_status bh__driver_open(bh__driver *driver, bh_error *error);

const char *bh__driver_error_name(const bh__driver *driver, int result);
const char *bh__driver_error_text(const bh__driver *driver, int result);

/* Writes the messages of the driver's own log, which newer drivers keep, since it was last taken or
 * skipped to `out`, as one line; empty if there are none. Any thread. */
void bh__driver_log_take(const bh__driver *driver, char *out, size_t size);
/* Drops the messages so far. For calls that are expected to fail. */
void bh__driver_log_skip(const bh__driver *driver);

/* Adds to the error that descriptors are short, if they are and may be the cause: the driver has
 * other words for that, CUDA_ERROR_NO_DEVICE among them. */
void bh__driver_tell_limits(int result, bh_error *error);

/* True if this result means that the device's memory is damaged and the device must not be used. */
bool bh__driver_is_broken(int result);

/* True if this result means that the context, and with it this process, can do no more work. */
bool bh__driver_is_fatal(int result);

#endif
