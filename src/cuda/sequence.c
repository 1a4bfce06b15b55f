/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences as graphs: one node for each step, in a chain, with writes of the step word in between.
 * What changes between replays is updated in place. A sequence that cannot be a graph is queued
 * step by step. */
#include <stdlib.h>
#include <string.h>

#include "cuda/state.h"

/* Belongs to one lane, or to none yet. */
struct bh__cuda_sequence {
    bh__cuda_sequence *next; /* of the retired ones */
    bh__cu_graph graph;
    bh__cu_graph_exec exec; /* NULL: the steps in `loaded` cannot be a graph */
    uint32_t lane;          /* whose step word is written */
    uint32_t step_count, write_count;
    bool prints;
    uint64_t serial;     /* of what is loaded */
    bh__cu_node *nodes;  /* Owned. One for each step. */
    bh__cu_node *writes; /* Owned. */
    uint8_t *loaded;     /* Owned. What the graph does now, step for step. */
};

/* One step as a description for the driver. */
typedef struct node {
    uint32_t op;
    bh__cuda_node launch;
    bh__cu_copy_node copy;
    bh__cu_fill_node fill;
} node;

/* ---- describing steps ---- */

static bool describe_launch(const bh__device_instance *device, const bh__work *work, node *out,
                            bool *prints) {
    const bh__cuda_module *module;
    bh_error ignored; /* reported when the step is queued by itself */
    const bh__cuda_kernel *kernel = bh__cuda_find_kernel(device, work, &module, &ignored);
    if (!kernel) return false;
    *prints |= module->prints;
    bh__cuda_launch_node(kernel, work, &out->launch);
    return true;
}

static bh__cu_place on_device(bh__cu_address address) {
    return (bh__cu_place){.type = BH__CU_PLACE_DEVICE, .device = address};
}

static bool describe_copy(const bh__device_instance *device, const bh__work *work, node *out) {
    const bh__copy_body *body = &work->u.copy;
    bool in = work->op == BH__OP_WRITE;
    out->copy = (bh__cu_copy_node){.source = on_device(body->source),
                                   .target = on_device(body->target),
                                   .width = body->bytes,
                                   .height = 1,
                                   .depth = 1};
    if (work->op == BH__OP_COPY) /* the driver does not define copies of overlapping ranges */
        return body->target + body->bytes <= body->source ||
               body->source + body->bytes <= body->target;
    uint8_t *host =
        bh__cuda_host_memory(device, body->host, in ? body->source : body->target, body->bytes);
    bh__cu_place place = {.type = BH__CU_PLACE_HOST, .host = host};
    *(in ? &out->copy.source : &out->copy.target) = place;
    return host != NULL;
}

static bool describe_fill(const bh__work *work, node *out) {
    const bh__copy_body *body = &work->u.copy;
    if (body->pattern_bytes == 0 || body->pattern_bytes > sizeof body->pattern) return false;
    uint32_t length = bh__cuda_shortest_pattern(body->pattern, body->pattern_bytes), value = 0;
    if (length > sizeof value || body->target % length || body->bytes % length) return false;
    memcpy(&value, body->pattern, length);
    out->fill = (bh__cu_fill_node){.target = body->target,
                                   .value = value,
                                   .element_bytes = length,
                                   .width = body->bytes / length,
                                   .height = 1};
    return true;
}

/* False: a graph cannot do this. */
static bool describe(const bh__device_instance *device, const bh__sequence_image *image,
                     uint32_t step, node *out, bool *prints) {
    const bh__work whole = {.lane = 0};
    bh__work work = bh__sequence_work(image, step, &whole);
    memset(out, 0, sizeof *out);
    out->op = work.op;
    if (work.op == BH__OP_SKIP) return true;
    if (work.op == BH__OP_LAUNCH) return describe_launch(device, &work, out, prints);
    if (work.op == BH__OP_FILL) return describe_fill(&work, out);
    return describe_copy(device, &work, out);
}

/* ---- adding steps ---- */

/* BH_LAUNCH_PROGRAMMATIC allows a launch to begin before the one ahead of it has ended, but does
 * not require it. It is a feature of streams, so nodes do not use it. */
static int add_attributes(const bh__driver *cu, bh__cu_node which, const bh__launch_body *body) {
    bh__cu_launch_attribute list[BH__CUDA_ATTRIBUTES];
    unsigned count = bh__cuda_launch_attributes(body, list);
    int result = BH__CU_OK;
    for (unsigned i = 0; i < count && result == BH__CU_OK; i++) {
        if (list[i].id != BH__CU_LAUNCH_PROGRAMMATIC)
            result = cu->graph_kernel_attribute(which, list[i].id, &list[i].value);
    }
    return result;
}

static int add_step(const bh__device_instance *device, bh__cuda_sequence *self,
                    const bh__sequence_image *image, uint32_t step, const node *what,
                    const bh__cu_node *after) {
    const bh__driver *cu = &device->cu;
    bh__cu_node *out = &self->nodes[step];
    size_t count = after != NULL;
    if (what->op == BH__OP_FILL)
        return cu->graph_add_fill(out, self->graph, after, count, &what->fill, device->context);
    if (what->op != BH__OP_LAUNCH)
        return cu->graph_add_copy(out, self->graph, after, count, &what->copy, device->context);
    int result = cu->graph_add_kernel(out, self->graph, after, count, &what->launch.kernel);
    return result == BH__CU_OK ? add_attributes(cu, *out, &image->steps[step].u.launch) : result;
}

/* ---- the step word ---- */

static bh__cuda_word_node word_node_of(const bh__device_instance *device,
                                       const bh__cuda_sequence *self, uint32_t number) {
    uint32_t done = (number + 1) * BH__STEP_GROUP;
    return (bh__cuda_word_node){
        .word = bh__cuda_lane_word(device, self->lane, offsetof(bh__lane_area, step)),
        .value = bh__step_word(number + 1 == self->write_count ? 0 : done, BH__STEP_GROUP)};
}

/* ---- building ---- */

static void destroy_graph(const bh__driver *cu, bh__cuda_sequence *self) {
    if (self->exec) cu->graph_exec_destroy(self->exec);
    if (self->graph) cu->graph_destroy(self->graph);
    self->exec = NULL;
    self->graph = NULL;
}

/* Leaves self->exec NULL if the steps cannot be a graph. Returns the driver's result. */
static int build(const bh__device_instance *device, bh__cuda_sequence *self,
                 const bh__sequence_image *image) {
    const bh__driver *cu = &device->cu;
    uint32_t number = 0;
    const bh__cu_node *last = NULL;
    bool fits = true;
    self->prints = false;
    self->serial = image->serial;
    memcpy(self->loaded, image->steps, image->bytes);
    int result = cu->graph_create(&self->graph, 0);
    for (uint32_t i = 0; result == BH__CU_OK && fits && i < self->step_count; i++) {
        node what;
        fits = describe(device, image, i, &what, &self->prints);
        if (!fits) break;
        if (what.op != BH__OP_SKIP) { /* it has no node */
            result = add_step(device, self, image, i, &what, last);
            last = &self->nodes[i];
        }
        bool ends = (i + 1) % BH__STEP_GROUP == 0 || i + 1 == self->step_count;
        if (result != BH__CU_OK || !ends || self->write_count == 0) continue;
        bh__cuda_word_node word = word_node_of(device, self, number);
        result = bh__cuda_word_node_add(device, self->graph, last, &word, &self->writes[number]);
        last = &self->writes[number++];
    }
    fits = fits && last; /* a graph has a node */
    if (fits && result == BH__CU_OK) result = cu->graph_instantiate(&self->exec, self->graph, 0);
    if (!fits || result != BH__CU_OK) destroy_graph(cu, self);
    return result;
}

static void destroy(const bh__device_instance *device, bh__cuda_sequence *self) {
    destroy_graph(&device->cu, self);
    free(self->nodes);
    free(self->writes);
    free(self->loaded);
    free(self);
}

/* Creates one without a graph. NULL: no memory. */
static bh__cuda_sequence *create(const bh__device_instance *device, const bh__sequence_image *image,
                                 uint32_t lane) {
    bh__cuda_sequence *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->lane = lane;
    self->step_count = image->step_count;
    /* If all steps are one group, no step word is written. */
    if (image->step_count > BH__STEP_GROUP)
        self->write_count = (image->step_count + BH__STEP_GROUP - 1) / BH__STEP_GROUP;
    self->nodes = calloc(self->step_count, sizeof(bh__cu_node));
    self->writes = calloc(self->write_count + 1, sizeof(bh__cu_node));
    self->loaded = aligned_alloc(64, image->bytes);
    if (self->nodes && self->writes && self->loaded) return self;
    destroy(device, self);
    return NULL;
}

bh_status bh__cuda_sequence_define(bh__device_instance *device, const bh__sequence_image *image,
                                   bh_error *error, void **out) {
    bh__cuda_free_retired(device);
    bh__cuda_sequence *self = create(device, image, 0);
    if (!self)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory for a graph of %u steps", image->step_count);
    int result = build(device, self, image);
    /* Uploaded now, so that the first replay is fast, also in a standby that has just taken over.
     */
    if (result == BH__CU_OK && self->exec)
        result = device->cu.graph_upload(self->exec, device->stream);
    *out = self;
    if (!bh__driver_is_fatal(result)) return BH_OK; /* else it is replayed step by step */
    *out = NULL;
    destroy(device, self);
    return bh__cuda_fail(device, error, result, BH_E_INTERNAL, BH__CUDA_DEFECT,
                         "a graph of %u steps cannot be made", image->step_count);
}

/* Destroying a graph may wait for running kernels inside the driver, so it is retired. */
void bh__cuda_sequence_drop(bh__device_instance *device, void *made) {
    bh__cuda_sequence *self = made;
    self->next = device->retired_sequences;
    device->retired_sequences = self;
    bh__cuda_free_retired(device);
}

void bh__cuda_sequences_free(bh__device_instance *device) {
    while (device->retired_sequences) {
        bh__cuda_sequence *self = device->retired_sequences;
        device->retired_sequences = self->next;
        destroy(device, self);
    }
}

/* ---- replaying ---- */

static bool same_step(const bh__cuda_sequence *self, const bh__sequence_image *image,
                      uint32_t step) {
    const bh__sequence_step *now = &image->steps[step],
                            *before = (const bh__sequence_step *)(const void *)self->loaded + step;
    if (memcmp(now, before, sizeof *now) != 0) return false;
    return now->op != BH__OP_LAUNCH ||
           memcmp(bh__sequence_params(image, step), self->loaded + now->params,
                  now->u.launch.param_bytes) == 0;
}

static int set_step(const bh__device_instance *device, bh__cuda_sequence *self, uint32_t step,
                    const node *what) {
    const bh__driver *cu = &device->cu;
    bh__cu_node which = self->nodes[step];
    if (what->op == BH__OP_FILL)
        return cu->graph_set_fill(self->exec, which, &what->fill, device->context);
    if (what->op != BH__OP_LAUNCH)
        return cu->graph_set_copy(self->exec, which, &what->copy, device->context);
    return cu->graph_set_kernel(self->exec, which, &what->launch.kernel);
}

/* Updates the graph to the steps of the image. Anything but BH__CU_OK: it must be built again. */
static int update(const bh__device_instance *device, bh__cuda_sequence *self,
                  const bh__sequence_image *image) {
    int result = BH__CU_OK;
    for (uint32_t i = 0; result == BH__CU_OK && i < self->step_count; i++) {
        if (same_step(self, image, i)) continue;
        node what;
        if (!describe(device, image, i, &what, &self->prints)) return BH__CU_INVALID_VALUE;
        result = set_step(device, self, i, &what);
    }
    memcpy(self->loaded, image->steps, image->bytes);
    self->serial = image->serial;
    return result;
}

static int move_to_lane(const bh__device_instance *device, bh__cuda_sequence *self, uint32_t lane) {
    int result = BH__CU_OK;
    self->lane = lane;
    for (uint32_t i = 0; result == BH__CU_OK && i < self->write_count; i++) {
        bh__cuda_word_node word = word_node_of(device, self, i);
        result = bh__cuda_word_node_set(device, self->exec, self->writes[i], &word);
    }
    return result;
}

/* Prepares it for this lane and these steps. */
static int ready(bh__device_lane *lane, bh__cuda_sequence *self, const bh__sequence_image *image) {
    const bh__device_instance *device = lane->device;
    bool rebuild = !self->exec && self->serial != image->serial;
    int result = BH__CU_OK;
    if (self->exec && self->serial != image->serial) {
        result = update(device, self, image);
        rebuild = result != BH__CU_OK;
    }
    if (bh__driver_is_fatal(result)) return result;
    if (rebuild) {
        bh__driver_log_skip(&device->cu);
        destroy_graph(&device->cu, self);
        self->lane = lane->index;
        result = build(device, self, image);
    }
    if (result == BH__CU_OK && self->exec && self->lane != lane->index)
        result = move_to_lane(device, self, lane->index);
    return result;
}

bh_status bh__cuda_sequence_replay(bh__device_lane *lane, const bh__work *work,
                                   const bh__sequence_image *image, void **made, bh_error *error) {
    bh__device_instance *device = lane->device;
    bh__cuda_sequence *self = *made;
    int result = BH__CU_OK;
    if (!self) {
        *made = self = create(device, image, lane->index);
        if (!self) return BH_E_UNSUPPORTED;
        result = build(device, self, image);
    }
    if (result == BH__CU_OK) result = ready(lane, self, image);
    if (result == BH__CU_OK && !self->exec) return BH_E_UNSUPPORTED;
    if (result == BH__CU_OK) result = device->cu.graph_launch(self->exec, lane->stream);
    if (result == BH__CU_OK) return self->prints ? BH_E_BUSY : BH_OK;
    return bh__cuda_fail(device, error, result, BH_E_UNSUPPORTED, "none needed",
                         "%u steps of request %llu on lane %u cannot be queued as one",
                         self->step_count, (unsigned long long)work->sequence, lane->index);
}
