/* SPDX-License-Identifier: Apache-2.0 */
/* Launch trains: a graph that is a chain of nodes, made once for each lane, filled in with the
 * launches that are waiting, and launched as one. Even a single launch and its completion word
 * complete sooner this way, because the driver sends both to the device at once. */
#include "cuda/state.h"

/* Writes inside a train show how far it is; its last one is what others wait for. */
static bh__cuda_word_node word_node_of(const bh__device_lane *lane, const bh__cuda_train *train,
                                       uint32_t place, uint64_t position) {
    return (bh__cuda_word_node){.word = bh__cuda_done_word(lane->device, lane->index),
                                .value = position,
                                .awaited = place + 1 == train->count};
}

static bool ends_group(const bh__cuda_train *train, uint32_t place) {
    return (place + 1) % BH__GROUP_LENGTH == 0 || place + 1 == train->count;
}

static uint64_t *module_word(bh__cuda_train *train, uint32_t module) {
    return &train->modules[module / 64 % BH__CUDA_MODULE_WORDS];
}

static uint64_t module_bit(uint32_t module) {
    return 1ull << module % 64;
}

static void destroy_chain(const bh__driver *cu, bh__cuda_train *train) {
    if (train->exec) cu->graph_exec_destroy(train->exec);
    if (train->graph) cu->graph_destroy(train->graph);
    *train = (bh__cuda_train){0};
}

/* Makes the chain, with the first launch in every place. This waits for no running kernel. */
static int build(bh__device_lane *lane, bh__cuda_train *train, uint32_t count,
                 const bh__cuda_node *first) {
    const bh__driver *cu = &lane->device->cu;
    bh__cu_node last = NULL;
    int result = cu->graph_create(&train->graph, 0);
    train->count = count;
    for (uint32_t i = 0; result == BH__CU_OK && i < count; i++) {
        result = cu->graph_add_kernel(&train->launches[i], train->graph, last ? &last : NULL,
                                      last != NULL, &first->kernel);
        last = train->launches[i];
        if (result != BH__CU_OK || !ends_group(train, i)) continue;
        uint32_t group = i / BH__GROUP_LENGTH;
        bh__cuda_word_node word = word_node_of(lane, train, i, 0);
        result =
            bh__cuda_word_node_add(lane->device, train->graph, &last, &word, &train->writes[group]);
        last = train->writes[group];
    }
    if (result == BH__CU_OK) result = cu->graph_instantiate(&train->exec, train->graph, 0);
    if (result != BH__CU_OK) destroy_chain(cu, train);
    return result;
}

void bh__cuda_train_free(bh__device_lane *lane) {
    destroy_chain(&lane->device->cu, &lane->single);
    destroy_chain(&lane->device->cu, &lane->train);
}

void bh__cuda_trains_drop_module(bh__device_instance *device, uint32_t module) {
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        bh__device_lane *lane = device->lanes[i];
        bh__cuda_train *trains[] = {lane ? &lane->single : NULL, lane ? &lane->train : NULL};
        for (int k = 0; k < 2; k++) {
            if (trains[k] && *module_word(trains[k], module) & module_bit(module))
                destroy_chain(&device->cu, trains[k]);
        }
    }
}

/* Fills in one place of the chain. */
static int load(bh__device_lane *lane, const bh__cuda_train *train, uint32_t place,
                const bh__cuda_node *node, uint64_t position) {
    const bh__driver *cu = &lane->device->cu;
    int result = cu->graph_set_kernel(train->exec, train->launches[place], &node->kernel);
    if (result != BH__CU_OK || !ends_group(train, place)) return result;
    bh__cuda_word_node word = word_node_of(lane, train, place, position);
    return bh__cuda_word_node_set(lane->device, train->exec,
                                  train->writes[place / BH__GROUP_LENGTH], &word);
}

bh_status bh__cuda_train_send(bh__device_lane *lane, const bh__work *works, uint32_t count,
                              bh_error *error) {
    bh__device_instance *device = lane->device;
    bh__cuda_train *train = count == 1 ? &lane->single : &lane->train;
    int result = BH__CU_OK;
    for (uint32_t i = 0; i < count && result == BH__CU_OK; i++) {
        const bh__cuda_module *module;
        const bh__cuda_kernel *kernel = bh__cuda_find_kernel(device, &works[i], &module, error);
        /* An error is reported when the launch is queued by itself. */
        if (!kernel || module->prints) return BH_E_UNSUPPORTED;
        bh__cuda_node node;
        bh__cuda_launch_node(kernel, &works[i], &node);
        if (!train->exec) result = build(lane, train, count, &node);
        if (train->exec) *module_word(train, module->id) |= module_bit(module->id);
        if (result == BH__CU_OK) result = load(lane, train, i, &node, works[i].sequence);
    }
    if (result == BH__CU_OK) {
        result = device->cu.graph_launch(train->exec, lane->stream);
        if (result == BH__CU_OK) return BH_OK;
    }
    return bh__cuda_fail(device, error, result, BH_E_UNSUPPORTED, "none needed",
                         "%u launches cannot be queued as one", count);
}
