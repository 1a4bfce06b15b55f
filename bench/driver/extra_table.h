/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the NVIDIA driver that the baseline needs besides the worker's. Include it with
 * BASELINE_EXTRA defined as (name here, symbol in libcuda.so.1, parameters). */

BASELINE_EXTRA(memory_alloc, "cuMemAlloc_v2", (bh__cu_address * out, size_t bytes))
BASELINE_EXTRA(host_alloc, "cuMemHostAlloc", (void **out, size_t bytes, unsigned flags))
BASELINE_EXTRA(copy_in_now, "cuMemcpyHtoD_v2",
               (bh__cu_address target, const void *source, size_t bytes))
BASELINE_EXTRA(copy_out_now, "cuMemcpyDtoH_v2", (void *target, bh__cu_address source, size_t bytes))
BASELINE_EXTRA(default_pool, "cuDeviceGetDefaultMemPool", (baseline_pool * out, int device))
BASELINE_EXTRA(pool_set, "cuMemPoolSetAttribute", (baseline_pool pool, int attribute, void *value))
BASELINE_EXTRA(graph_create, "cuGraphCreate", (baseline_graph * out, unsigned flags))
BASELINE_EXTRA(graph_add, "cuGraphAddKernelNode_v2",
               (baseline_node * out, baseline_graph graph, const baseline_node *after, size_t count,
                const baseline_node_params *params))
BASELINE_EXTRA(graph_instantiate, "cuGraphInstantiateWithFlags",
               (baseline_graph_exec * out, baseline_graph graph, unsigned long long flags))
BASELINE_EXTRA(graph_set, "cuGraphExecKernelNodeSetParams_v2",
               (baseline_graph_exec exec, baseline_node node, const baseline_node_params *params))
BASELINE_EXTRA(graph_launch, "cuGraphLaunch", (baseline_graph_exec exec, bh__cu_stream stream))

#undef BASELINE_EXTRA
