/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device as a side, with one of its executors. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bulkhead.h"
#include "bulkhead/compile.h"
#include "bulkhead/kernel.h"
#include "peers.h"
#include "support/figures.h"

enum { KERNELS = 8, WAIT_SECONDS = 120 };

typedef struct bulkhead_side {
    bh_device device;
    bh_module modules[PEERS_TEXTS];
    bool loaded[PEERS_TEXTS];
    bh_module module; /* of the case */
    bh_buffer buffers[PEERS_BUFFERS];
    size_t buffer_count;
    const char *names[KERNELS]; /* kernels of the case that were launched */
    bh_kernel kernels[KERNELS];
    size_t kernel_count;
    bh_ticket last;
    bh_status status; /* of the launches of a run */
} bulkhead_side;

static bool fail_of(peers_side *side, bh_status status, const char *what) {
    bh_error error;
    bh_last_error(&error);
    return peers_fail(side, "%s: %s: %.300s", what, bh_status_name(status), error.message);
}

static bool load(peers_side *side, peers_text text) {
    bulkhead_side *s = side->inside;
    size_t bytes = strlen(peers_cuda_prelude) + strlen(peers_texts[text]) + 1;
    char *source = malloc(bytes);
    if (!source) bench_wrong("no memory for %zu bytes", bytes);
    snprintf(source, bytes, "%s%s", peers_cuda_prelude, peers_texts[text]);
    bh_compile_options options = BH_INIT(options);
    options.output = BH_OUTPUT_PTX;
    options.arch = "sm_80";
    bh_status status = bh_module_compile(s->device, source, &options, &s->modules[text]);
    free(source);
    if (status == BH_E_UNSUPPORTED) {
        printf("skipped: there is no compiler for the kernels\n");
        exit(0);
    }
    if (status) return fail_of(side, status, "compiling the kernels");
    s->loaded[text] = true;
    return true;
}

static bool attach(peers_side *side, const peers_case *c, peers_text text, peers_data *data) {
    bulkhead_side *s = side->inside;
    side->of = c;
    side->data = data;
    s->buffer_count = s->kernel_count = 0;
    if (!s->loaded[text] && !load(side, text)) return false;
    s->module = s->modules[text];
    for (size_t i = 0; i < data->count; i++) {
        const peers_buffer *b = &data->buffers[i];
        bh_status status = bh_buffer_alloc(s->device, BH_U8, b->bytes, NULL, &s->buffers[i]);
        if (status) return fail_of(side, status, "a buffer");
        s->buffer_count++;
        status = bh_buffer_write(s->buffers[i], 0, b->first, b->bytes);
        if (status) return fail_of(side, status, "writing a buffer");
    }
    return true;
}

static bool reset(peers_side *side) {
    bulkhead_side *s = side->inside;
    for (size_t i = 0; i < side->data->count; i++) {
        const peers_buffer *b = &side->data->buffers[i];
        if (b->role != PEERS_INOUT && b->role != PEERS_SCRATCH) continue;
        bh_status status = bh_buffer_write(s->buffers[i], 0, b->first, b->bytes);
        if (status) return fail_of(side, status, "writing a buffer");
    }
    return true;
}

static bh_kernel kernel_named(bulkhead_side *s, const char *name) {
    bh_kernel kernel = {0};
    for (size_t i = 0; i < s->kernel_count; i++)
        if (strcmp(s->names[i], name) == 0) return s->kernels[i];
    s->status = bh_kernel_get(s->module, name, &kernel);
    if (!s->status && s->kernel_count < KERNELS) {
        s->names[s->kernel_count] = name;
        s->kernels[s->kernel_count++] = kernel;
    }
    return kernel;
}

static bh_arg argument(const peers_side *side, const peers_argument *a) {
    const bulkhead_side *s = side->inside;
    switch (a->kind) {
    case PEERS_BUFFER:
        if (side->data->buffers[a->word].role == PEERS_IN) return BH_IN(s->buffers[a->word]);
        return BH_INOUT(s->buffers[a->word]);
    case PEERS_UINT:
        return BH_ARG(a->word);
    case PEERS_FLOAT:
        return BH_ARG(a->single);
    default:
        return BH_ARG(a->real);
    }
}

static void launch(peers_side *side, const char *name, peers_shape shape,
                   const peers_argument *arguments, size_t count) {
    bulkhead_side *s = side->inside;
    bh_arg list[16];
    if (count > 16) bench_wrong("a kernel with %zu parameters", count);
    if (s->status) return;
    bh_kernel kernel = kernel_named(s, name);
    for (size_t i = 0; i < count; i++) list[i] = argument(side, &arguments[i]);
    const uint32_t *g = shape.grid, *b = shape.block;
    if (!s->status)
        s->status = bh_launch(kernel, BH_SHAPE(g[0], g[1], g[2], b[0], b[1], b[2]),
                              (bh_args){list, count}, NULL, &s->last);
}

static bool run(peers_side *side) {
    bulkhead_side *s = side->inside;
    s->status = BH_OK;
    side->of->launch(side, side->data);
    if (s->status) return fail_of(side, s->status, "a launch");
    bh_status status = bh_wait(s->last, WAIT_SECONDS * BENCH_S);
    return status ? fail_of(side, status, "a kernel") : true;
}

static bool check(peers_side *side) {
    bulkhead_side *s = side->inside;
    for (size_t i = 0; i < side->data->count; i++) {
        const peers_buffer *b = &side->data->buffers[i];
        if (b->role == PEERS_IN || b->role == PEERS_SCRATCH) continue;
        void *got = malloc(b->bytes);
        if (!got) bench_wrong("no memory for %zu bytes", b->bytes);
        bh_status status = bh_buffer_read(s->buffers[i], 0, got, b->bytes);
        char why[128];
        bool right = !status && peers_is_right(b, got, why, sizeof why);
        free(got);
        if (status) return fail_of(side, status, "reading a buffer");
        if (!right) return peers_fail(side, "buffer %zu: %s", i, why);
    }
    return true;
}

static void detach(peers_side *side) {
    bulkhead_side *s = side->inside;
    for (size_t i = 0; i < s->buffer_count; i++) bh_buffer_release(s->buffers[i]);
    s->buffer_count = 0;
}

/* Who ran the kernels, and how much of them was native code. */
static void note(peers_side *side) {
    bulkhead_side *s = side->inside;
    for (size_t i = 0; i < s->kernel_count; i++) {
        bh_kernel_info info = BH_INIT(info);
        if (bh_kernel_get_info(s->kernels[i], &info)) continue;
        if (info.executor == BH_EXECUTOR_JIT)
            bench_note("%s.%s: %s: %u instructions native, %u handled, made in %.1f ms%s%s",
                       side->of->name, side->name, info.name, info.native_instructions,
                       info.handled_instructions, info.compile_us / 1e3,
                       info.executor_note[0] ? ": " : "", info.executor_note);
        else
            bench_note("%s.%s: %s: interpreted%s%s", side->of->name, side->name, info.name,
                       info.executor_note[0] ? ": " : "", info.executor_note);
    }
}

/* The worker gets the processors that this thread may use, here the last of them. */
static void restrict_to_one(cpu_set_t *before) {
    sched_getaffinity(0, sizeof *before, before);
    int last = CPU_SETSIZE - 1;
    while (last > 0 && !CPU_ISSET(last, before)) last--;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    sched_setaffinity(0, sizeof one, &one);
}

bool peers_open_bulkhead(peers_side *side, const char *executor, unsigned processors) {
    bulkhead_side *s = calloc(1, sizeof *s);
    if (!s) bench_wrong("no memory for a device");
    *side = (peers_side){.attach = attach,
                         .reset = reset,
                         .run = run,
                         .check = check,
                         .detach = detach,
                         .note = note,
                         .launch = launch,
                         .inside = s};
    snprintf(side->name, sizeof side->name, "%s.%s", executor, processors ? "1" : "all");
    setenv("BULKHEAD_EXECUTOR", executor, 1);
    bh_device_options options = BH_INIT(options);
    options.device = "cpu";
    cpu_set_t before;
    if (processors == 1) restrict_to_one(&before);
    bh_status status = bh_device_open(&options, &s->device);
    if (processors == 1) sched_setaffinity(0, sizeof before, &before);
    if (status) fail_of(side, status, "opening the device");
    if (status) free(s);
    return !status;
}

void peers_close_bulkhead(peers_side *side) {
    bulkhead_side *s = side->inside;
    bh_device_close(s->device);
    free(s);
}
