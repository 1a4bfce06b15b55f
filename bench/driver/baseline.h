/* SPDX-License-Identifier: Apache-2.0 */
/* The plain driver API as one side of a comparison: what a program without Bulkhead would call. */
#ifndef BENCH_DRIVER_BASELINE_H
#define BENCH_DRIVER_BASELINE_H

#include <stdbool.h>

#include "cuda/driver/driver.h"
#include "support/rounds.h"

typedef struct baseline_pool_object *baseline_pool;
typedef struct baseline_graph_object *baseline_graph;
typedef struct baseline_graph_exec_object *baseline_graph_exec;
typedef struct baseline_node_object *baseline_node;

typedef struct baseline_node_params {
    bh__cu_function function;
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    void **params;
    void **extra;
    void *kernel; /* and the context: not looked at where there is a function */
    void *context;
} baseline_node_params;
_Static_assert(sizeof(baseline_node_params) == 72, "laid out as the driver's");

enum { BASELINE_NODES = 200 };

typedef struct baseline {
    bh__driver cu;
    struct {
#define BASELINE_EXTRA(name, symbol, parameters) int(*name) parameters;
#include "extra_table.h"
    } more;
    int device;
    char name[128];
    bh__cu_stream stream;
    bh__cu_function put;
    bh__cu_address outputs[BENCH_OUTPUTS];
    bh__cu_address copies;
    bh__cu_address places; /* where the graph writes, one after the other for each kind of replay */
    uint32_t next_place[2];
    baseline_graph_exec graph;
    baseline_node nodes[BASELINE_NODES];
} baseline;

/* Starts the driver and loads the kernels. False: there is no such device; `reason` says why. */
bool baseline_open(baseline *self, int ordinal, char *reason, size_t reason_size);
bench_side baseline_side(baseline *self);

/* Ends the program if `result` is an error. */
void baseline_need(const baseline *self, int result, const char *call);
#define NEED(call) baseline_need(self, (call), #call)

/* Microseconds for each kernel of a graph of BASELINE_NODES in a row: replayed as it is, and with
 * new arguments for every node before every replay. */
double baseline_graph_replay(bench_side *side);
double baseline_graph_replay_set(bench_side *side);

#endif
