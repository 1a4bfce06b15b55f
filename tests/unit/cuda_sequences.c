/* SPDX-License-Identifier: Apache-2.0 */
/* The graphs that the CUDA worker makes of sequences: which steps have nodes, and what each node
 * comes after. The driver here writes them down. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/state.h"
#include "test.h"

enum { MAX_STEPS = 64 };

static char nodes[400]; /* "f0 " is a fill after nothing, "w3 " a word after node 3 */
static unsigned node_count;

static int add(char kind, bh__cu_node *out, const bh__cu_node *after, size_t count) {
    CHECK_EQ(count, after != NULL);
    size_t used = strlen(nodes);
    snprintf(nodes + used, sizeof nodes - used, "%c%u ", kind,
             after ? (unsigned)(uintptr_t)*after : 0);
    *out = (bh__cu_node)(uintptr_t)++node_count;
    return BH__CU_OK;
}

static int graph_add_fill(bh__cu_node *out, bh__cu_graph graph, const bh__cu_node *after,
                          size_t count, const bh__cu_fill_node *what, bh__cu_context context) {
    (void)graph, (void)what, (void)context;
    return add('f', out, after, count);
}

static int graph_add_memory(bh__cu_node *out, bh__cu_graph graph, const bh__cu_node *after,
                            size_t count, const bh__cu_memory_node *what) {
    (void)graph, (void)what;
    return add('w', out, after, count);
}

static int graph_create(bh__cu_graph *out, unsigned flags) {
    *out = (bh__cu_graph)(uintptr_t)1;
    return (int)flags;
}

static int graph_destroy(bh__cu_graph graph) {
    (void)graph;
    return BH__CU_OK;
}

static int graph_instantiate(bh__cu_graph_exec *out, bh__cu_graph graph, unsigned long long flags) {
    (void)graph;
    *out = (bh__cu_graph_exec)(uintptr_t)1;
    return (int)flags;
}

static int graph_exec_destroy(bh__cu_graph_exec exec) {
    (void)exec;
    return BH__CU_OK;
}

static int graph_upload(bh__cu_graph_exec exec, bh__cu_stream stream) {
    (void)exec, (void)stream;
    return BH__CU_OK;
}

/* Defines a sequence with a fill for each 'f' and a step that does nothing for each '-'. */
static void define(const char *steps) {
    bh__device_instance *device = calloc(1, sizeof *device);
    REQUIRE(device != NULL);
    device->cu = (bh__driver){.graph_create = graph_create,
                              .graph_destroy = graph_destroy,
                              .graph_add_fill = graph_add_fill,
                              .graph_add_memory = graph_add_memory,
                              .graph_instantiate = graph_instantiate,
                              .graph_exec_destroy = graph_exec_destroy,
                              .graph_upload = graph_upload};
    static _Alignas(64) bh__sequence_step list[MAX_STEPS];
    bh__sequence_image image = {.step_count = (uint32_t)strlen(steps), .steps = list};
    REQUIRE(image.step_count <= MAX_STEPS);
    image.bytes = (image.step_count * sizeof *list + 63) & ~(uint64_t)63;
    for (uint32_t i = 0; i < image.step_count; i++) {
        list[i] = (bh__sequence_step){.op = steps[i] == 'f' ? BH__OP_FILL : BH__OP_SKIP};
        list[i].u.copy = (bh__copy_body){.target = 4096, .bytes = 16, .pattern_bytes = 1};
    }
    nodes[0] = '\0';
    node_count = 0;
    bh_error error;
    void *made = NULL;
    CHECK_EQ(bh__cuda_sequence_define(device, &image, &error, &made), BH_OK);
    REQUIRE(made != NULL);
    device->retired_sequences = made;
    bh__cuda_sequences_free(device);
    free(device);
}

TEST(steps_that_do_nothing_have_no_nodes) {
    define("ff");
    CHECK_STR_EQ(nodes, "f0 f1 ");
    define("-f--f-");
    CHECK_STR_EQ(nodes, "f0 f1 ");
    define("---");
    CHECK_STR_EQ(nodes, "");
}

/* The step word is written after each sixteen steps and after the last, whatever they do. */
TEST(step_words_count_steps_that_do_nothing) {
    define("----------------f");
    CHECK_STR_EQ(nodes, "w0 f1 w2 ");
    define("f--------------------------------f");
    CHECK_STR_EQ(nodes, "f0 w1 w2 f3 w4 ");
}
