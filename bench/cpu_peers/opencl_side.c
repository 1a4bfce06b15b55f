/* SPDX-License-Identifier: Apache-2.0 */
/* An OpenCL implementation for processors as a side, such as PoCL, where there is one. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers.h"
#include "support/figures.h"

enum { KERNELS = 8, PLATFORMS = 8 };
/* Numbers of OpenCL's interface. */
enum {
    CL_DEVICE_TYPE_CPU = 2,
    CL_DEVICE_VERSION = 0x102F,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_DEVICE_PARTITION_BY_COUNTS = 0x1087,
    CL_MEM_READ_WRITE = 1
};

static struct {
#define FUNCTION(result, name, parameters) result(*name) parameters;
#include "opencl_table.h"
#undef FUNCTION
} cl;

typedef struct opencl_side {
    void *device, *context, *queue;
    void *programs[PEERS_TEXTS];
    void *program; /* of the case */
    void *buffers[PEERS_BUFFERS];
    size_t buffer_count;
    const char *names[KERNELS];
    void *kernels[KERNELS];
    size_t kernel_count;
    int32_t status; /* of the launches of a run */
} opencl_side;

static bool find_functions(peers_side *side) {
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return peers_fail(side, "there is no OpenCL: %s", dlerror());
#define FUNCTION(result, name, parameters)                                                         \
    *(void **)&cl.name = dlsym(library, #name);                                                    \
    if (!cl.name) return peers_fail(side, "libOpenCL.so.1 has no " #name);
#include "opencl_table.h"
#undef FUNCTION
    return true;
}

static bool find_device(peers_side *side, unsigned processors) {
    opencl_side *s = side->inside;
    void *platforms[PLATFORMS];
    uint32_t count = 0;
    if (cl.clGetPlatformIDs(PLATFORMS, platforms, &count)) count = 0;
    for (uint32_t i = 0; i < count && i < PLATFORMS && !s->device; i++)
        if (cl.clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &s->device, NULL))
            s->device = NULL;
    if (!s->device) return peers_fail(side, "OpenCL has no platform with a CPU device");
    const intptr_t one[] = {CL_DEVICE_PARTITION_BY_COUNTS, (intptr_t)processors, 0, 0};
    void *part = NULL;
    if (processors && cl.clCreateSubDevices(s->device, one, 1, &part, NULL))
        return peers_fail(side, "this OpenCL cannot use a part of its processors");
    if (part) s->device = part;
    return true;
}

static bool build(peers_side *side, peers_text text) {
    opencl_side *s = side->inside;
    const char *parts[] = {peers_opencl_prelude, peers_texts[text]};
    int32_t status;
    void *program = cl.clCreateProgramWithSource(s->context, 2, parts, NULL, &status);
    if (status) return peers_fail(side, "clCreateProgramWithSource: %d", status);
    status = cl.clBuildProgram(program, 1, &s->device, "", NULL, NULL);
    if (status) {
        char log[384] = "";
        cl.clGetProgramBuildInfo(program, s->device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log,
                                 NULL);
        cl.clReleaseProgram(program);
        return peers_fail(side, "clBuildProgram: %d: %s", status, log);
    }
    s->programs[text] = program;
    return true;
}

static bool write_buffer(peers_side *side, size_t i) {
    opencl_side *s = side->inside;
    const peers_buffer *b = &side->data->buffers[i];
    int32_t status =
        cl.clEnqueueWriteBuffer(s->queue, s->buffers[i], 1, 0, b->bytes, b->first, 0, NULL, NULL);
    return status ? peers_fail(side, "clEnqueueWriteBuffer: %d", status) : true;
}

static bool attach(peers_side *side, const peers_case *c, peers_text text, peers_data *data) {
    opencl_side *s = side->inside;
    side->of = c;
    side->data = data;
    s->buffer_count = s->kernel_count = 0;
    if (!s->programs[text] && !build(side, text)) return false;
    s->program = s->programs[text];
    for (size_t i = 0; i < data->count; i++) {
        int32_t status;
        s->buffers[i] =
            cl.clCreateBuffer(s->context, CL_MEM_READ_WRITE, data->buffers[i].bytes, NULL, &status);
        if (status) return peers_fail(side, "clCreateBuffer: %d", status);
        s->buffer_count++;
        if (!write_buffer(side, i)) return false;
    }
    return true;
}

static bool reset(peers_side *side) {
    for (size_t i = 0; i < side->data->count; i++) {
        peers_role role = side->data->buffers[i].role;
        if ((role == PEERS_INOUT || role == PEERS_SCRATCH) && !write_buffer(side, i)) return false;
    }
    return true;
}

static void *kernel_named(opencl_side *s, const char *name) {
    for (size_t i = 0; i < s->kernel_count; i++)
        if (strcmp(s->names[i], name) == 0) return s->kernels[i];
    if (s->kernel_count == KERNELS) bench_wrong("a case with more than %d kernels", KERNELS);
    void *kernel = cl.clCreateKernel(s->program, name, &s->status);
    if (s->status) return NULL;
    s->names[s->kernel_count] = name;
    s->kernels[s->kernel_count++] = kernel;
    return kernel;
}

static int32_t set_argument(opencl_side *s, void *kernel, uint32_t i, const peers_argument *a) {
    switch (a->kind) {
    case PEERS_BUFFER:
        return cl.clSetKernelArg(kernel, i, sizeof(void *), &s->buffers[a->word]);
    case PEERS_UINT:
        return cl.clSetKernelArg(kernel, i, sizeof a->word, &a->word);
    case PEERS_FLOAT:
        return cl.clSetKernelArg(kernel, i, sizeof a->single, &a->single);
    default:
        return cl.clSetKernelArg(kernel, i, sizeof a->real, &a->real);
    }
}

static void launch(peers_side *side, const char *name, peers_shape shape,
                   const peers_argument *arguments, size_t count) {
    opencl_side *s = side->inside;
    void *kernel = s->status ? NULL : kernel_named(s, name);
    for (uint32_t i = 0; i < count && !s->status; i++)
        s->status = set_argument(s, kernel, i, &arguments[i]);
    size_t all[3], block[3];
    for (int i = 0; i < 3; i++) {
        block[i] = shape.block[i];
        all[i] = block[i] * shape.grid[i];
    }
    if (!s->status)
        s->status = cl.clEnqueueNDRangeKernel(s->queue, kernel, 3, NULL, all, block, 0, NULL, NULL);
}

static bool run(peers_side *side) {
    opencl_side *s = side->inside;
    s->status = 0;
    side->of->launch(side, side->data);
    if (!s->status) s->status = cl.clFinish(s->queue);
    return s->status ? peers_fail(side, "OpenCL's status is %d", s->status) : true;
}

static bool check(peers_side *side) {
    opencl_side *s = side->inside;
    for (size_t i = 0; i < side->data->count; i++) {
        const peers_buffer *b = &side->data->buffers[i];
        if (b->role == PEERS_IN || b->role == PEERS_SCRATCH) continue;
        void *got = malloc(b->bytes);
        if (!got) bench_wrong("no memory for %zu bytes", b->bytes);
        int32_t status =
            cl.clEnqueueReadBuffer(s->queue, s->buffers[i], 1, 0, b->bytes, got, 0, NULL, NULL);
        char why[128];
        bool right = !status && peers_is_right(b, got, why, sizeof why);
        free(got);
        if (status) return peers_fail(side, "clEnqueueReadBuffer: %d", status);
        if (!right) return peers_fail(side, "buffer %zu: %s", i, why);
    }
    return true;
}

static void detach(peers_side *side) {
    opencl_side *s = side->inside;
    for (size_t i = 0; i < s->buffer_count; i++) cl.clReleaseMemObject(s->buffers[i]);
    for (size_t i = 0; i < s->kernel_count; i++) cl.clReleaseKernel(s->kernels[i]);
    s->buffer_count = s->kernel_count = 0;
}

bool peers_open_opencl(peers_side *side, unsigned processors) {
    opencl_side *s = calloc(1, sizeof *s);
    if (!s) bench_wrong("no memory for a device");
    *side = (peers_side){.attach = attach,
                         .reset = reset,
                         .run = run,
                         .check = check,
                         .detach = detach,
                         .launch = launch,
                         .inside = s};
    snprintf(side->name, sizeof side->name, "pocl.%s", processors ? "1" : "all");
    int32_t status = 0;
    bool good = find_functions(side) && find_device(side, processors);
    if (good) s->context = cl.clCreateContext(NULL, 1, &s->device, NULL, NULL, &status);
    if (good && !status) s->queue = cl.clCreateCommandQueue(s->context, s->device, 0, &status);
    if (good && status) good = peers_fail(side, "a context for OpenCL: %d", status);
    if (good && processors == 0) {
        char version[128] = "";
        cl.clGetDeviceInfo(s->device, CL_DEVICE_VERSION, sizeof version - 1, version, NULL);
        bench_note("OpenCL: %s", version);
    }
    if (!good) free(s);
    return good;
}

void peers_close_opencl(peers_side *side) {
    opencl_side *s = side->inside;
    for (int i = 0; i < PEERS_TEXTS; i++)
        if (s->programs[i]) cl.clReleaseProgram(s->programs[i]);
    cl.clReleaseCommandQueue(s->queue);
    cl.clReleaseContext(s->context);
    free(s);
}
