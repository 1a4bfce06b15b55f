/* SPDX-License-Identifier: Apache-2.0 */
/* Marks: nodes of graphs that write a word, to tell how far a row of launches has come. Among short
 * kernels another kernel takes less time than a node that writes memory; but a kernel needs a free
 * place on the device, so that whoever waits for the word may wait for others. */
#include "cuda/state.h"

static const char marker_source[] = ".version 7.0\n"
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

void bh__cuda_marks_open(bh__device *device) {
    const bh__driver *cu = &device->cu;
    int result = cu->module_load(&device->marker_module, marker_source, 0, NULL, NULL);
    if (result != BH__CU_OK) device->marker_module = NULL;
    if (result == BH__CU_OK)
        result = cu->module_function(&device->marker, device->marker_module, "mark");
    if (result == BH__CU_OK) return;
    device->marker = NULL; /* a driver without a compiler: words are written by other nodes */
    bh__driver_log_skip(cu);
}

/* As either kind of node, described where the driver copies it from. */
typedef struct described {
    bh__cu_memory_op op;
    bh__cu_memory_node memory;
    bh__cu_kernel_node kernel;
    void *params[2];
} described;

static void describe(const bh__device *device, bh__cuda_mark *mark, described *out) {
    out->op = (bh__cu_memory_op){
        .operation = BH__CU_WRITE_64, .address = mark->word, .value = mark->value};
    out->memory =
        (bh__cu_memory_node){.context = device->context, .count = 1, .operations = &out->op};
    out->params[0] = &mark->word;
    out->params[1] = &mark->value;
    out->kernel = (bh__cu_kernel_node){
        .function = device->marker, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = out->params};
}

static bool by_kernel(const bh__device *device, const bh__cuda_mark *mark) {
    return device->marker && !mark->awaited;
}

int bh__cuda_mark_add(const bh__device *device, bh__cu_graph graph, const bh__cu_node *after,
                      bh__cuda_mark *mark, bh__cu_node *out) {
    described what;
    describe(device, mark, &what);
    if (by_kernel(device, mark))
        return device->cu.graph_add_kernel(out, graph, after, 1, &what.kernel);
    return device->cu.graph_add_memory(out, graph, after, 1, &what.memory);
}

int bh__cuda_mark_set(const bh__device *device, bh__cu_chain chain, bh__cu_node which,
                      bh__cuda_mark *mark) {
    described what;
    describe(device, mark, &what);
    if (by_kernel(device, mark)) return device->cu.graph_set_kernel(chain, which, &what.kernel);
    return device->cu.graph_set_memory(chain, which, &what.memory);
}
