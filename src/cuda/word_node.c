/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of graphs that write a word, to show how far a chain of launches has come. Among short
 * kernels another kernel takes less time than a node that writes memory. But a kernel needs free
 * resources on the device, so a word that somebody waits for could come late. */
#include "cuda/state.h"

static const char word_kernel_source[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry mark(.param .u64 word, .param .u64 value)\n"
    "{\n"
    "    .reg .b64 %rd<3>;\n"
    "    ld.param.u64 %rd1, [word];\n"
    "    ld.param.u64 %rd2, [value];\n"
    "    st.relaxed.sys.global.u64 [%rd1], %rd2;\n"
    "    ret;\n"
    "}\n";

void bh__cuda_word_nodes_open(bh__device_instance *device) {
    const bh__driver *cu = &device->cu;
    int result = cu->module_load(&device->word_module, word_kernel_source, 0, NULL, NULL);
    if (result != BH__CU_OK) device->word_module = NULL;
    if (result == BH__CU_OK)
        result = cu->module_function(&device->word_kernel, device->word_module, "mark");
    if (result == BH__CU_OK) return;
    device->word_kernel = NULL; /* a driver without a compiler: memory nodes write the words */
    bh__driver_log_skip(cu);
}

/* Descriptions of both kinds of node; the driver copies them. */
typedef struct described {
    bh__cu_memory_op op;
    bh__cu_memory_node memory;
    bh__cu_kernel_node kernel;
    void *params[2];
} described;

static void describe(const bh__device_instance *device, bh__cuda_word_node *node, described *out) {
    out->op = (bh__cu_memory_op){
        .operation = BH__CU_WRITE_64, .address = node->word, .value = node->value};
    out->memory =
        (bh__cu_memory_node){.context = device->context, .count = 1, .operations = &out->op};
    out->params[0] = &node->word;
    out->params[1] = &node->value;
    out->kernel = (bh__cu_kernel_node){.function = device->word_kernel,
                                       .grid = {1, 1, 1},
                                       .block = {1, 1, 1},
                                       .params = out->params};
}

static bool by_kernel(const bh__device_instance *device, const bh__cuda_word_node *node) {
    return device->word_kernel && !node->awaited;
}

int bh__cuda_word_node_add(const bh__device_instance *device, bh__cu_graph graph,
                           const bh__cu_node *after, bh__cuda_word_node *node, bh__cu_node *out) {
    described what;
    describe(device, node, &what);
    size_t count = after != NULL;
    if (by_kernel(device, node))
        return device->cu.graph_add_kernel(out, graph, after, count, &what.kernel);
    return device->cu.graph_add_memory(out, graph, after, count, &what.memory);
}

int bh__cuda_word_node_set(const bh__device_instance *device, bh__cu_graph_exec exec,
                           bh__cu_node which, bh__cuda_word_node *node) {
    described what;
    describe(device, node, &what);
    if (by_kernel(device, node)) return device->cu.graph_set_kernel(exec, which, &what.kernel);
    return device->cu.graph_set_memory(exec, which, &what.memory);
}
