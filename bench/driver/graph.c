/* SPDX-License-Identifier: Apache-2.0 */
/* A graph of kernels in a row, replayed: what the driver can reach without a launch for each. */
#include "baseline.h"
#include "support/figures.h"

enum { REPLAYS = 50, WARM = 5 };

static uint32_t value_of(uint32_t seed, uint32_t replay, uint32_t node) {
    return (replay * BASELINE_NODES + node) * 2654435761u + seed;
}

/* The arguments of one node. The driver copies them. */
typedef struct node_args {
    bh__cu_address out;
    uint32_t index, value, salt;
    void *params[4];
} node_args;

static baseline_node_params describe(const baseline *self, node_args *args, uint32_t place,
                                     uint32_t node, uint32_t value) {
    args->out = self->places;
    args->index = place * BENCH_PLACE_WORDS + node;
    args->value = value;
    args->salt = node;
    args->params[0] = &args->out;
    args->params[1] = &args->index;
    args->params[2] = &args->value;
    args->params[3] = &args->salt;
    return (baseline_node_params){
        .function = self->put, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = args->params};
}

static void build(baseline *self) {
    baseline_graph graph;
    NEED(self->more.memory_alloc(&self->places,
                                 (size_t)BENCH_PLACES * BENCH_PLACE_WORDS * sizeof(uint32_t)));
    NEED(self->more.graph_create(&graph, 0));
    for (uint32_t i = 0; i < BASELINE_NODES; i++) {
        node_args args;
        baseline_node_params params = describe(self, &args, 0, i, 0);
        NEED(self->more.graph_add(&self->nodes[i], graph, i ? &self->nodes[i - 1] : NULL, i != 0,
                                  &params));
    }
    NEED(self->more.graph_instantiate(&self->graph, graph, 0));
}

static void set_all(const baseline *self, uint32_t seed, uint32_t place, uint32_t replay) {
    for (uint32_t i = 0; i < BASELINE_NODES; i++) {
        node_args args;
        baseline_node_params params = describe(self, &args, place, i, value_of(seed, replay, i));
        int result = self->more.graph_set(self->graph, self->nodes[i], &params);
        if (result != BH__CU_OK) baseline_need(self, result, "cuGraphExecKernelNodeSetParams");
    }
}

static void check(const bench_side *side, uint32_t place, uint32_t replay) {
    const baseline *self = side->self;
    uint32_t words[BASELINE_NODES];
    bh__cu_address from = self->places + (size_t)place * BENCH_PLACE_WORDS * sizeof *words;
    NEED(self->more.copy_out_now(words, from, sizeof words));
    for (uint32_t i = 0; i < BASELINE_NODES; i++) {
        uint32_t expected = value_of(side->seed, replay, i) ^ i;
        if (words[i] != expected) bench_wrong("node %u left 0x%x, not 0x%x", i, words[i], expected);
    }
}

static double replay_all(bench_side *side, bool set_each) {
    baseline *self = side->self;
    if (!self->graph) build(self);
    side->seed++;
    uint32_t place = self->next_place[set_each]++ % BENCH_PLACES;
    set_all(self, side->seed, place, 0);
    uint64_t began = 0;
    for (uint32_t replay = 0; replay < WARM + REPLAYS; replay++) {
        if (replay == WARM) {
            NEED(self->cu.stream_synchronize(self->stream));
            began = bench_now_ns();
        }
        if (set_each) set_all(self, side->seed, place, replay);
        NEED(self->more.graph_launch(self->graph, self->stream));
    }
    NEED(self->cu.stream_synchronize(self->stream));
    double took = (double)(bench_now_ns() - began);
    check(side, place, set_each ? WARM + REPLAYS - 1 : 0);
    return took / REPLAYS / BASELINE_NODES / 1e3;
}

double baseline_graph_replay(bench_side *side) {
    return replay_all(side, false);
}

double baseline_graph_replay_set(bench_side *side) {
    return replay_all(side, true);
}
