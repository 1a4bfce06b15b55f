/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of OpenCL that are used, looked up at run time. Included where FUNCTION is
 * defined. */
FUNCTION(int32_t, clGetPlatformIDs, (uint32_t, void **, uint32_t *))
FUNCTION(int32_t, clGetDeviceIDs, (void *, uint64_t, uint32_t, void **, uint32_t *))
FUNCTION(int32_t, clGetDeviceInfo, (void *, uint32_t, size_t, void *, size_t *))
FUNCTION(int32_t, clCreateSubDevices, (void *, const intptr_t *, uint32_t, void **, uint32_t *))
FUNCTION(void *, clCreateContext,
         (const intptr_t *, uint32_t, void *const *, void *, void *, int32_t *))
FUNCTION(void *, clCreateCommandQueue, (void *, void *, uint64_t, int32_t *))
FUNCTION(void *, clCreateProgramWithSource,
         (void *, uint32_t, const char **, const size_t *, int32_t *))
FUNCTION(int32_t, clBuildProgram, (void *, uint32_t, void *const *, const char *, void *, void *))
FUNCTION(int32_t, clGetProgramBuildInfo, (void *, void *, uint32_t, size_t, void *, size_t *))
FUNCTION(void *, clCreateKernel, (void *, const char *, int32_t *))
FUNCTION(int32_t, clReleaseKernel, (void *))
FUNCTION(int32_t, clSetKernelArg, (void *, uint32_t, size_t, const void *))
FUNCTION(void *, clCreateBuffer, (void *, uint64_t, size_t, void *, int32_t *))
FUNCTION(int32_t, clReleaseMemObject, (void *))
FUNCTION(int32_t, clEnqueueWriteBuffer,
         (void *, void *, uint32_t, size_t, size_t, const void *, uint32_t, void *, void *))
FUNCTION(int32_t, clEnqueueReadBuffer,
         (void *, void *, uint32_t, size_t, size_t, void *, uint32_t, void *, void *))
FUNCTION(int32_t, clEnqueueNDRangeKernel,
         (void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,
          void *, void *))
FUNCTION(int32_t, clFinish, (void *))
FUNCTION(int32_t, clReleaseProgram, (void *))
FUNCTION(int32_t, clReleaseCommandQueue, (void *))
FUNCTION(int32_t, clReleaseContext, (void *))
