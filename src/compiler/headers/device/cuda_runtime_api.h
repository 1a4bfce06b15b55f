/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the runtime API, for the host part of a program. Host code is checked but not
 * generated here, so the names suffice: each takes whatever it is given. Kernels are launched
 * through bulkhead.h.
 */
#ifndef BULKHEAD_CUDA_RUNTIME_API_H
#define BULKHEAD_CUDA_RUNTIME_API_H
/* by which other headers ask whether this was included */
#define __CUDA_RUNTIME_API_H__
#define __CUDA_RUNTIME_H__

#include "bulkhead_cuda.h"

#include "driver_types.h"

#define CUDARTAPI
#define CUDART_CB
#define CUDARTAPI_CDECL

/* With a body, because the type of an argument may be one without linkage: an enum without name. */
#define __BH_API_1(name)                                                                           \
    template <class... A> __host__ cudaError_t name(A &&...) {                                     \
        return cudaError_t();                                                                      \
    }                                                                                              \
    template <class T, class... A> __host__ cudaError_t name(A &&...) {                            \
        return cudaError_t();                                                                      \
    }
#define __BH_API_2(a, b)  __BH_API_1(a) __BH_API_1(b)
#define __BH_API(a, b, c) __BH_API_2(a, b) __BH_API_1(c)

/* errors, devices */
__BH_API(cudaGetLastError, cudaPeekAtLastError, cudaDeviceSynchronize)
__BH_API(cudaDeviceReset, cudaDeviceSetLimit, cudaDeviceGetLimit)
__BH_API(cudaDeviceGetCacheConfig, cudaDeviceSetCacheConfig, cudaDeviceGetStreamPriorityRange)
__BH_API(cudaDeviceSetSharedMemConfig, cudaDeviceGetSharedMemConfig, cudaDeviceGetByPCIBusId)
__BH_API(cudaDeviceGetPCIBusId, cudaDeviceGetAttribute, cudaDeviceGetP2PAttribute)
__BH_API(cudaGetDeviceCount, cudaGetDeviceProperties, cudaGetDevice)
__BH_API(cudaSetDevice, cudaSetValidDevices, cudaSetDeviceFlags)
__BH_API(cudaGetDeviceFlags, cudaChooseDevice, cudaInitDevice)
__BH_API(cudaDeviceCanAccessPeer, cudaDeviceEnablePeerAccess, cudaDeviceDisablePeerAccess)
__BH_API(cudaDriverGetVersion, cudaRuntimeGetVersion, cudaCtxResetPersistingL2Cache)
__BH_API(cudaDeviceGetDefaultMemPool, cudaDeviceSetMemPool, cudaDeviceGetMemPool)
__BH_API(cudaThreadSynchronize, cudaThreadExit, cudaThreadSetLimit)
__BH_API(cudaProfilerStart, cudaProfilerStop, cudaProfilerInitialize)
__BH_API(cudaDeviceGraphMemTrim, cudaDeviceGetGraphMemAttribute, cudaDeviceSetGraphMemAttribute)
__BH_API(cudaGetDriverEntryPoint, cudaGetDriverEntryPointByVersion, cudaGetExportTable)

/* memory */
__BH_API(cudaMalloc, cudaMallocHost, cudaMallocManaged)
__BH_API(cudaMallocPitch, cudaMallocArray, cudaMalloc3D)
__BH_API(cudaMalloc3DArray, cudaMallocMipmappedArray, cudaGetMipmappedArrayLevel)
__BH_API(cudaMallocAsync, cudaMallocFromPoolAsync, cudaFreeAsync)
__BH_API(cudaFree, cudaFreeHost, cudaFreeArray)
__BH_API(cudaFreeMipmappedArray, cudaHostAlloc, cudaHostRegister)
__BH_API(cudaHostUnregister, cudaHostGetDevicePointer, cudaHostGetFlags)
__BH_API(cudaMemcpy, cudaMemcpyAsync, cudaMemcpyPeer)
__BH_API(cudaMemcpyPeerAsync, cudaMemcpy2D, cudaMemcpy2DAsync)
__BH_API(cudaMemcpy2DToArray, cudaMemcpy2DToArrayAsync, cudaMemcpy2DFromArray)
__BH_API(cudaMemcpy2DArrayToArray, cudaMemcpyToArray, cudaMemcpyFromArray)
__BH_API(cudaMemcpy3D, cudaMemcpy3DAsync, cudaMemcpy3DPeer)
__BH_API(cudaMemcpyToSymbol, cudaMemcpyToSymbolAsync, cudaMemcpyFromSymbol)
__BH_API(cudaMemcpyFromSymbolAsync, cudaGetSymbolAddress, cudaGetSymbolSize)
__BH_API(cudaMemset, cudaMemsetAsync, cudaMemset2D)
__BH_API(cudaMemset2DAsync, cudaMemset3D, cudaMemset3DAsync)
__BH_API(cudaMemGetInfo, cudaMemPrefetchAsync, cudaMemAdvise)
__BH_API(cudaMemRangeGetAttribute, cudaMemRangeGetAttributes, cudaPointerGetAttributes)
__BH_API(cudaMemPoolCreate, cudaMemPoolDestroy, cudaMemPoolTrimTo)
__BH_API(cudaMemPoolSetAttribute, cudaMemPoolGetAttribute, cudaMemPoolSetAccess)
__BH_API(cudaMemPoolGetAccess, cudaMemPoolExportPointer, cudaMemPoolImportPointer)
__BH_API_2(cudaMemPoolExportToShareableHandle, cudaMemPoolImportFromShareableHandle)
__BH_API(cudaArrayGetInfo, cudaGetChannelDesc, cudaArrayGetSparseProperties)
__BH_API(cudaIpcGetMemHandle, cudaIpcOpenMemHandle, cudaIpcCloseMemHandle)
__BH_API_2(cudaIpcGetEventHandle, cudaIpcOpenEventHandle)

/* streams and events */
__BH_API(cudaStreamCreate, cudaStreamCreateWithFlags, cudaStreamCreateWithPriority)
__BH_API(cudaStreamDestroy, cudaStreamSynchronize, cudaStreamQuery)
__BH_API(cudaStreamWaitEvent, cudaStreamAddCallback, cudaStreamAttachMemAsync)
__BH_API(cudaStreamBeginCapture, cudaStreamBeginCaptureToGraph, cudaStreamEndCapture)
__BH_API(cudaStreamIsCapturing, cudaStreamGetCaptureInfo, cudaStreamUpdateCaptureDependencies)
__BH_API(cudaStreamGetPriority, cudaStreamGetFlags, cudaStreamGetId)
__BH_API(cudaStreamSetAttribute, cudaStreamGetAttribute, cudaStreamCopyAttributes)
__BH_API(cudaEventCreate, cudaEventCreateWithFlags, cudaEventDestroy)
__BH_API(cudaEventRecord, cudaEventRecordWithFlags, cudaEventSynchronize)
__BH_API(cudaEventQuery, cudaEventElapsedTime, cudaLaunchHostFunc)

/* kernels */
__BH_API(cudaLaunchKernel, cudaLaunchKernelEx, cudaLaunchKernelExC)
__BH_API(cudaLaunchCooperativeKernel, cudaLaunchCooperativeKernelMultiDevice, cudaFuncGetName)
__BH_API(cudaFuncSetAttribute, cudaFuncGetAttributes, cudaFuncSetCacheConfig)
__BH_API(cudaFuncSetSharedMemConfig, cudaGetFuncBySymbol, cudaGetKernel)
__BH_API(cudaOccupancyMaxActiveBlocksPerMultiprocessor, cudaOccupancyMaxActiveClusters,
         cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
__BH_API(cudaOccupancyMaxPotentialBlockSize, cudaOccupancyMaxPotentialBlockSizeVariableSMem,
         cudaOccupancyMaxPotentialBlockSizeWithFlags)
__BH_API_2(cudaOccupancyAvailableDynamicSMemPerBlock, cudaOccupancyMaxPotentialClusterSize)

/* graphs */
__BH_API(cudaGraphCreate, cudaGraphDestroy, cudaGraphClone)
__BH_API(cudaGraphAddNode, cudaGraphAddKernelNode, cudaGraphAddMemcpyNode)
__BH_API(cudaGraphAddMemcpyNode1D, cudaGraphAddMemsetNode, cudaGraphAddHostNode)
__BH_API(cudaGraphAddEmptyNode, cudaGraphAddChildGraphNode, cudaGraphAddDependencies)
__BH_API(cudaGraphAddMemAllocNode, cudaGraphAddMemFreeNode, cudaGraphMemAllocNodeGetParams)
__BH_API(cudaGraphAddEventRecordNode, cudaGraphAddEventWaitNode, cudaGraphConditionalHandleCreate)
__BH_API(cudaGraphGetNodes, cudaGraphGetEdges, cudaGraphGetRootNodes)
__BH_API(cudaGraphInstantiate, cudaGraphInstantiateWithFlags, cudaGraphInstantiateWithParams)
__BH_API(cudaGraphLaunch, cudaGraphUpload, cudaGraphExecDestroy)
__BH_API(cudaGraphExecUpdate, cudaGraphExecKernelNodeSetParams, cudaGraphExecMemcpyNodeSetParams)
__BH_API(cudaGraphKernelNodeGetParams, cudaGraphKernelNodeSetParams, cudaGraphNodeGetType)
__BH_API(cudaGraphDebugDotPrint, cudaGraphExecMemsetNodeSetParams, cudaGraphExecHostNodeSetParams)

/* textures, surfaces, graphics, other memory */
__BH_API(cudaCreateTextureObject, cudaDestroyTextureObject, cudaGetTextureObjectResourceDesc)
__BH_API(cudaCreateSurfaceObject, cudaDestroySurfaceObject, cudaGetSurfaceObjectResourceDesc)
__BH_API(cudaGraphicsMapResources, cudaGraphicsUnmapResources, cudaGraphicsUnregisterResource)
__BH_API(cudaGraphicsResourceGetMappedPointer, cudaGraphicsResourceSetMapFlags,
         cudaGraphicsSubResourceGetMappedArray)
__BH_API(cudaImportExternalMemory, cudaDestroyExternalMemory, cudaExternalMemoryGetMappedBuffer)
__BH_API(cudaImportExternalSemaphore, cudaDestroyExternalSemaphore,
         cudaSignalExternalSemaphoresAsync)
__BH_API_1(cudaWaitExternalSemaphoresAsync)
#undef __BH_API
#undef __BH_API_2
#undef __BH_API_1

__host__ const char *cudaGetErrorString(cudaError_t error);
__host__ const char *cudaGetErrorName(cudaError_t error);
__host__ cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                     cudaChannelFormatKind kind);
template <class T> __host__ cudaChannelFormatDesc cudaCreateChannelDesc();
__host__ cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth);
__host__ cudaPos make_cudaPos(size_t x, size_t y, size_t z);
__host__ cudaPitchedPtr make_cudaPitchedPtr(void *at, size_t pitch, size_t x, size_t y);

#endif
