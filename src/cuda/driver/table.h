/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of the NVIDIA driver's entry points that are used. Include it with BH__NEEDED and
 * BH__OPTIONAL defined, each as (name here, symbol in libcuda.so.1, parameters). Optional ones
 * came after driver 12.0, or not every device can use them. */

BH__NEEDED(init, "cuInit", (unsigned flags))
BH__NEEDED(version, "cuDriverGetVersion", (int *out))
BH__NEEDED(error_name, "cuGetErrorName", (int result, const char **out))
BH__NEEDED(error_string, "cuGetErrorString", (int result, const char **out))
BH__OPTIONAL(log_current, "cuLogsCurrent", (unsigned *out, unsigned flags))
BH__OPTIONAL(log_dump, "cuLogsDumpToMemory",
             (unsigned *from, char *out, size_t *size, unsigned flags))

BH__NEEDED(device_count, "cuDeviceGetCount", (int *out))
BH__NEEDED(device_get, "cuDeviceGet", (int *out, int ordinal))
BH__NEEDED(device_name, "cuDeviceGetName", (char *name, int size, int device))
BH__NEEDED(device_memory, "cuDeviceTotalMem_v2", (size_t * out, int device))
BH__NEEDED(device_attribute, "cuDeviceGetAttribute", (int *out, int attribute, int device))
BH__NEEDED(device_uuid, "cuDeviceGetUuid_v2", (uint8_t * out, int device))
BH__OPTIONAL(device_whole_uuid, "cuDeviceGetUuid", (uint8_t * out, int device))
BH__NEEDED(device_pci, "cuDeviceGetPCIBusId", (char *out, int size, int device))
BH__NEEDED(context_flags, "cuDevicePrimaryCtxSetFlags_v2", (int device, unsigned flags))
BH__NEEDED(context_retain, "cuDevicePrimaryCtxRetain", (bh__cu_context * out, int device))
BH__NEEDED(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))
BH__NEEDED(context_enter, "cuCtxSetCurrent", (bh__cu_context context))
BH__NEEDED(context_synchronize, "cuCtxSynchronize", (void))
BH__NEEDED(context_priorities, "cuCtxGetStreamPriorityRange", (int *least, int *greatest))

BH__NEEDED(memory_info, "cuMemGetInfo_v2", (size_t * free, size_t *total))
BH__NEEDED(memory_granularity, "cuMemGetAllocationGranularity",
           (size_t * out, const bh__cu_memory_kind *kind, int option))
BH__NEEDED(memory_create, "cuMemCreate",
           (bh__cu_memory * out, size_t bytes, const bh__cu_memory_kind *kind,
            unsigned long long flags))
BH__NEEDED(memory_release, "cuMemRelease", (bh__cu_memory memory))
BH__NEEDED(memory_export, "cuMemExportToShareableHandle",
           (void *out, bh__cu_memory memory, int kind, unsigned long long flags))
BH__NEEDED(memory_import, "cuMemImportFromShareableHandle",
           (bh__cu_memory * out, void *handle, int kind))
BH__NEEDED(address_reserve, "cuMemAddressReserve",
           (bh__cu_address * out, size_t bytes, size_t alignment, bh__cu_address wanted,
            unsigned long long flags))
BH__NEEDED(address_free, "cuMemAddressFree", (bh__cu_address address, size_t bytes))
BH__NEEDED(memory_map, "cuMemMap",
           (bh__cu_address address, size_t bytes, size_t offset, bh__cu_memory memory,
            unsigned long long flags))
BH__NEEDED(memory_unmap, "cuMemUnmap", (bh__cu_address address, size_t bytes))
BH__NEEDED(memory_access, "cuMemSetAccess",
           (bh__cu_address address, size_t bytes, const bh__cu_access *access, size_t count))
BH__NEEDED(host_register, "cuMemHostRegister_v2", (void *memory, size_t bytes, unsigned flags))
BH__NEEDED(host_unregister, "cuMemHostUnregister", (void *memory))
BH__NEEDED(host_address, "cuMemHostGetDevicePointer_v2",
           (bh__cu_address * out, void *memory, unsigned flags))
/* The headers of later drivers map these names to other functions; the symbols stay the same. */
BH__OPTIONAL(managed_alloc, "cuMemAllocManaged",
             (bh__cu_address * out, size_t bytes, unsigned flags))
BH__OPTIONAL(managed_free, "cuMemFree_v2", (bh__cu_address address))
BH__OPTIONAL(managed_prefetch, "cuMemPrefetchAsync",
             (bh__cu_address address, size_t bytes, int device, bh__cu_stream stream))
BH__OPTIONAL(managed_advise, "cuMemAdvise",
             (bh__cu_address address, size_t bytes, int advice, int device))
BH__NEEDED(scratch_alloc, "cuMemAllocAsync",
           (bh__cu_address * out, size_t bytes, bh__cu_stream stream))
BH__NEEDED(scratch_free, "cuMemFreeAsync", (bh__cu_address address, bh__cu_stream stream))

BH__NEEDED(copy_in, "cuMemcpyHtoDAsync_v2",
           (bh__cu_address target, const void *source, size_t bytes, bh__cu_stream stream))
BH__NEEDED(copy_out, "cuMemcpyDtoHAsync_v2",
           (void *target, bh__cu_address source, size_t bytes, bh__cu_stream stream))
BH__NEEDED(copy_within, "cuMemcpyDtoDAsync_v2",
           (bh__cu_address target, bh__cu_address source, size_t bytes, bh__cu_stream stream))
BH__NEEDED(copy_rows, "cuMemcpy2DAsync_v2", (const bh__cu_rows *rows, bh__cu_stream stream))
BH__NEEDED(copy_blocks, "cuMemcpy3DAsync_v2", (const bh__cu_copy_node *copy, bh__cu_stream stream))
BH__NEEDED(fill_8, "cuMemsetD8Async",
           (bh__cu_address target, unsigned char value, size_t count, bh__cu_stream stream))
BH__NEEDED(fill_16, "cuMemsetD16Async",
           (bh__cu_address target, unsigned short value, size_t count, bh__cu_stream stream))
BH__NEEDED(fill_32, "cuMemsetD32Async",
           (bh__cu_address target, unsigned value, size_t count, bh__cu_stream stream))

BH__NEEDED(array_create, "cuArray3DCreate_v2",
           (bh__cu_array * out, const bh__cu_array_shape *shape))
BH__NEEDED(array_destroy, "cuArrayDestroy", (bh__cu_array array))
BH__NEEDED(levels_create, "cuMipmappedArrayCreate",
           (bh__cu_array * out, const bh__cu_array_shape *shape, unsigned levels))
BH__NEEDED(levels_get, "cuMipmappedArrayGetLevel",
           (bh__cu_array * out, bh__cu_array levels, unsigned level))
BH__NEEDED(levels_destroy, "cuMipmappedArrayDestroy", (bh__cu_array levels))
BH__NEEDED(texture_create, "cuTexObjectCreate",
           (bh__cu_object * out, const bh__cu_resource *over, const bh__cu_sampling *sampling,
            const void *view))
BH__NEEDED(texture_destroy, "cuTexObjectDestroy", (bh__cu_object texture))
BH__NEEDED(surface_create, "cuSurfObjectCreate", (bh__cu_object * out, const bh__cu_resource *over))
BH__NEEDED(surface_destroy, "cuSurfObjectDestroy", (bh__cu_object surface))
BH__OPTIONAL(tensor_tiled, "cuTensorMapEncodeTiled",
             (void *out, int type, uint32_t rank, void *address, const uint64_t *dims,
              const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
              int swizzle, int promotion, int fill))
BH__OPTIONAL(tensor_im2col, "cuTensorMapEncodeIm2col",
             (void *out, int type, uint32_t rank, void *address, const uint64_t *dims,
              const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,
              uint32_t pixels, const uint32_t *steps, int interleave, int swizzle, int promotion,
              int fill))

BH__NEEDED(module_load, "cuModuleLoadDataEx",
           (bh__cu_module * out, const void *image, unsigned count, int *options, void **values))
BH__NEEDED(module_unload, "cuModuleUnload", (bh__cu_module module))
BH__NEEDED(module_function, "cuModuleGetFunction",
           (bh__cu_function * out, bh__cu_module module, const char *name))
BH__NEEDED(module_variable, "cuModuleGetGlobal_v2",
           (bh__cu_address * out, size_t *bytes, bh__cu_module module, const char *name))
BH__OPTIONAL(module_function_count, "cuModuleGetFunctionCount",
             (unsigned *out, bh__cu_module module))
BH__OPTIONAL(module_functions, "cuModuleEnumerateFunctions",
             (bh__cu_function * out, unsigned count, bh__cu_module module))
BH__OPTIONAL(function_name, "cuFuncGetName", (const char **out, bh__cu_function function))
BH__OPTIONAL(function_param, "cuFuncGetParamInfo",
             (bh__cu_function function, size_t index, size_t *offset, size_t *bytes))
BH__NEEDED(function_attribute, "cuFuncGetAttribute",
           (int *out, int attribute, bh__cu_function function))
BH__NEEDED(function_set_attribute, "cuFuncSetAttribute",
           (bh__cu_function function, int attribute, int value))
BH__NEEDED(function_residency, "cuOccupancyMaxActiveBlocksPerMultiprocessor",
           (int *out, bh__cu_function function, int threads, size_t shared_bytes))
BH__NEEDED(function_clusters, "cuOccupancyMaxActiveClusters",
           (int *out, bh__cu_function function, const bh__cu_launch *launch))
BH__NEEDED(function_largest_cluster, "cuOccupancyMaxPotentialClusterSize",
           (int *out, bh__cu_function function, const bh__cu_launch *launch))
BH__NEEDED(function_best_block, "cuOccupancyMaxPotentialBlockSize",
           (int *grid, int *block, bh__cu_function function, void *shared_of, size_t shared_bytes,
            int most))

BH__NEEDED(launch, "cuLaunchKernel",
           (bh__cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
            bh__cu_stream stream, void **params, void **extra))
BH__NEEDED(launch_with, "cuLaunchKernelEx",
           (const bh__cu_launch *launch, bh__cu_function function, void **params, void **extra))

BH__NEEDED(graph_create, "cuGraphCreate", (bh__cu_graph * out, unsigned flags))
BH__NEEDED(graph_destroy, "cuGraphDestroy", (bh__cu_graph graph))
BH__NEEDED(graph_add_kernel, "cuGraphAddKernelNode_v2",
           (bh__cu_node * out, bh__cu_graph graph, const bh__cu_node *after, size_t count,
            const bh__cu_kernel_node *node))
BH__NEEDED(graph_add_memory, "cuGraphAddBatchMemOpNode",
           (bh__cu_node * out, bh__cu_graph graph, const bh__cu_node *after, size_t count,
            const bh__cu_memory_node *node))
BH__NEEDED(graph_add_copy, "cuGraphAddMemcpyNode",
           (bh__cu_node * out, bh__cu_graph graph, const bh__cu_node *after, size_t count,
            const bh__cu_copy_node *node, bh__cu_context context))
BH__NEEDED(graph_add_fill, "cuGraphAddMemsetNode",
           (bh__cu_node * out, bh__cu_graph graph, const bh__cu_node *after, size_t count,
            const bh__cu_fill_node *node, bh__cu_context context))
BH__NEEDED(graph_kernel_attribute, "cuGraphKernelNodeSetAttribute",
           (bh__cu_node node, int attribute, const void *value))
BH__NEEDED(graph_instantiate, "cuGraphInstantiateWithFlags",
           (bh__cu_graph_exec * out, bh__cu_graph graph, unsigned long long flags))
BH__NEEDED(graph_exec_destroy, "cuGraphExecDestroy", (bh__cu_graph_exec exec))
BH__NEEDED(graph_set_kernel, "cuGraphExecKernelNodeSetParams_v2",
           (bh__cu_graph_exec exec, bh__cu_node which, const bh__cu_kernel_node *node))
BH__NEEDED(graph_set_memory, "cuGraphExecBatchMemOpNodeSetParams",
           (bh__cu_graph_exec exec, bh__cu_node which, const bh__cu_memory_node *node))
BH__NEEDED(graph_set_copy, "cuGraphExecMemcpyNodeSetParams",
           (bh__cu_graph_exec exec, bh__cu_node which, const bh__cu_copy_node *node,
            bh__cu_context context))
BH__NEEDED(graph_set_fill, "cuGraphExecMemsetNodeSetParams",
           (bh__cu_graph_exec exec, bh__cu_node which, const bh__cu_fill_node *node,
            bh__cu_context context))
BH__NEEDED(graph_upload, "cuGraphUpload", (bh__cu_graph_exec exec, bh__cu_stream stream))
BH__NEEDED(graph_launch, "cuGraphLaunch", (bh__cu_graph_exec exec, bh__cu_stream stream))

BH__NEEDED(stream_create, "cuStreamCreateWithPriority",
           (bh__cu_stream * out, unsigned flags, int priority))
BH__NEEDED(stream_destroy, "cuStreamDestroy_v2", (bh__cu_stream stream))
BH__NEEDED(stream_synchronize, "cuStreamSynchronize", (bh__cu_stream stream))
BH__NEEDED(stream_query, "cuStreamQuery", (bh__cu_stream stream))
BH__NEEDED(event_create, "cuEventCreate", (bh__cu_event * out, unsigned flags))
BH__NEEDED(event_destroy, "cuEventDestroy_v2", (bh__cu_event event))
BH__NEEDED(event_record, "cuEventRecord", (bh__cu_event event, bh__cu_stream stream))
BH__NEEDED(event_synchronize, "cuEventSynchronize", (bh__cu_event event))
BH__OPTIONAL(event_elapsed, "cuEventElapsedTime",
             (float *out_ms, bh__cu_event from, bh__cu_event to))
BH__NEEDED(stream_write, "cuStreamWriteValue64_v2",
           (bh__cu_stream stream, bh__cu_address address, uint64_t value, unsigned flags))
BH__NEEDED(stream_wait, "cuStreamWaitValue64_v2",
           (bh__cu_stream stream, bh__cu_address address, uint64_t value, unsigned flags))

#undef BH__NEEDED
#undef BH__OPTIONAL
