/* SPDX-License-Identifier: Apache-2.0 */
/* Launch trains: a chain of graph nodes made once for each lane, filled in with whatever launches
 * wait, and sent as one. Even a single launch with its completion word is known to be done sooner
 * that way: the driver tells the device of both at once. */
#include "cuda/state.h"

/* The driver's interface has no const; it copies the parameters. */
typedef struct node_params {
    bh__cu_kernel_node node;
    size_t bytes;
    void *extra[5];
} node_params;

static void fill_in(node_params *out, const bh__cuda_kernel *kernel, const bh__work *work) {
    const bh__launch_body *body = &work->u.launch;
    out->bytes = body->param_bytes;
    void *extra[] = {BH__CU_PARAM_BYTES, (void *)(uintptr_t)work->params, BH__CU_PARAM_SIZE,
                     &out->bytes, BH__CU_PARAM_END};
    for (size_t i = 0; i < sizeof extra / sizeof *extra; i++) out->extra[i] = extra[i];
    out->node = (bh__cu_kernel_node){.function = kernel->function,
                                     .grid = {body->grid[0], body->grid[1], body->grid[2]},
                                     .block = {body->block[0], body->block[1], body->block[2]},
                                     .shared_bytes = body->shared_bytes,
                                     .extra = out->bytes ? out->extra : NULL};
}

/* Words inside a train tell how far it is; its last one is what the lane and others wait for. */
static bh__cuda_mark mark_of(const bh__device_lane *lane, const bh__cuda_train *train,
                             uint32_t place, uint64_t position) {
    return (bh__cuda_mark){.word = bh__cuda_done_word(lane->device, lane->index),
                           .value = position,
                           .awaited = place + 1 == train->count};
}

static bool ends_group(const bh__cuda_train *train, uint32_t place) {
    return (place + 1) % BH__GROUP_LENGTH == 0 || place + 1 == train->count;
}

static void take_apart(const bh__driver *cu, bh__cuda_train *train) {
    if (train->chain) cu->graph_chain_destroy(train->chain);
    if (train->graph) cu->graph_destroy(train->graph);
    *train = (bh__cuda_train){0};
}

/* The chain, with the first launch in every place. Making one waits for no running kernel. */
static int build(bh__device_lane *lane, bh__cuda_train *train, uint32_t count,
                 const node_params *first) {
    const bh__driver *cu = &lane->device->cu;
    bh__cu_node last = NULL;
    int result = cu->graph_create(&train->graph, 0);
    train->count = count;
    for (uint32_t i = 0; result == BH__CU_OK && i < count; i++) {
        result = cu->graph_add_kernel(&train->launches[i], train->graph, last ? &last : NULL,
                                      last != NULL, &first->node);
        last = train->launches[i];
        if (result != BH__CU_OK || !ends_group(train, i)) continue;
        uint32_t group = i / BH__GROUP_LENGTH;
        bh__cuda_mark mark = mark_of(lane, train, i, 0);
        result = bh__cuda_mark_add(lane->device, train->graph, &last, &mark, &train->writes[group]);
        last = train->writes[group];
    }
    if (result == BH__CU_OK) result = cu->graph_instantiate(&train->chain, train->graph, 0);
    if (result != BH__CU_OK) take_apart(cu, train);
    return result;
}

void bh__cuda_train_free(bh__device_lane *lane) {
    take_apart(&lane->device->cu, &lane->single);
    take_apart(&lane->device->cu, &lane->train);
}

/* Fills in one place of the chain. */
static int load(bh__device_lane *lane, const bh__cuda_train *train, uint32_t place,
                const node_params *params, uint64_t position) {
    const bh__driver *cu = &lane->device->cu;
    int result = cu->graph_set_kernel(train->chain, train->launches[place], &params->node);
    if (result != BH__CU_OK || !ends_group(train, place)) return result;
    bh__cuda_mark mark = mark_of(lane, train, place, position);
    return bh__cuda_mark_set(lane->device, train->chain, train->writes[place / BH__GROUP_LENGTH],
                             &mark);
}

bh_status bh__cuda_train_send(bh__device_lane *lane, const bh__work *works, uint32_t count,
                              bh_error *error) {
    bh__device *device = lane->device;
    bh__cuda_train *train = count == 1 ? &lane->single : &lane->train;
    int result = BH__CU_OK;
    for (uint32_t i = 0; i < count && result == BH__CU_OK; i++) {
        const bh__cuda_module *module;
        const bh__cuda_kernel *kernel = bh__cuda_find_kernel(device, &works[i], &module, error);
        /* What is wrong with it is told when it is sent by itself. */
        if (!kernel || module->prints) return BH_E_UNSUPPORTED;
        node_params params;
        fill_in(&params, kernel, &works[i]);
        if (!train->chain) result = build(lane, train, count, &params);
        if (result == BH__CU_OK) result = load(lane, train, i, &params, works[i].sequence);
    }
    if (result == BH__CU_OK) {
        result = device->cu.graph_launch(train->chain, lane->stream);
        if (result == BH__CU_OK) return BH_OK;
    }
    return bh__cuda_fail(device, error, result, BH_E_UNSUPPORTED, "nothing",
                         "%u launches cannot go as one", count);
}
