/* SPDX-License-Identifier: Apache-2.0 */
/* A whole program: its host part is checked and left out, its kernels check themselves. */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <fstream>
#include <functional>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <vector>

#include "checks.h"

__constant__ float factors[4];
__device__ uint words[4];

template <class T> __global__ void scale(T *values, int count) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) values[i] = std::sin(values[i]) * T(factors[i & 3]);
}

KERNEL(program) {
    double x = hide(0.5);
    EXPECT(std::abs(std::sin(x) - 0.479425538604203) < 1e-15 && std::sqrt(x * 8) == 2);
    EXPECT(std::pow(hide(2.0f), 3.0f) == 8 && std::fabs(-x) == 0.5 && fmaxf(1.0f, hide(2.0f)) == 2);
    EXPECT(std::min(hide(3), 4) == 3 && std::max(hide(3), 4) == 4 && min(hide(3), 4) == 3);
    EXPECT(!std::isnan(x) && std::isinf(hide(1.0f) / 0.0f) && isfinite(x));
    int a = hide(1), b = hide(2);
    std::swap(a, b);
    EXPECT(a == 2 && b == 1);
    std::tuple<int, double> pair(hide(3), 0.5);
    EXPECT(std::get<0>(pair) == 3 && std::get<1>(pair) == 0.5);
    EXPECT(std::plus<int>()(hide(1), 2) == 3 && std::numeric_limits<int>::max() > 0);
    std::complex<float> z(hide(1.0f), 2.0f);
    z = z * z;
    EXPECT(z.real() == -3 && z.imag() == 4);
    alignas(8) char room[8];
    long *made = new (room) long(hide(7));
    EXPECT(*made == 7);
    assert(a == 2);
    char copy[4];
    memcpy(copy, "abc", 4);
    EXPECT(copy[hide(1)] == 'b');
    if (failed[0] != 0) printf("%d\n", failed[0]);
}

static void check(cudaError_t error) {
    if (error != cudaSuccess) {
        std::cerr << cudaGetErrorString(error) << std::endl;
        exit(1);
    }
}

int main(int argc, char **argv) {
    std::vector<float> host(1000);
    std::mt19937 random(argc > 1 ? (unsigned)atoi(argv[1]) : 1u);
    for (float &value : host) value = (float)random();
    float *device = nullptr, milliseconds = 0;
    size_t bytes = host.size() * sizeof(float);
    cudaDeviceProp properties;
    cudaEvent_t start, stop;
    check(cudaGetDeviceProperties(&properties, 0));
    check(cudaMalloc(&device, bytes));
    check(cudaMalloc((void **)&device, bytes));
    check(cudaEventCreate(&start));
    check(cudaEventCreateWithFlags(&stop, cudaEventDisableTiming));
    check(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice));
    check(cudaMemcpyToSymbol(factors, host.data(), sizeof factors));
    check(cudaFuncSetAttribute(scale<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
    enum { SHARED_BYTES = 4096 };
    check(cudaFuncSetAttribute(scale<float>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               SHARED_BYTES));
    scale<<<4, 256>>>(device, 1000);
    scale<float><<<dim3(4, 1), dim3(256), 0, 0>>>(device, 1000);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    check(cudaEventElapsedTime(&milliseconds, start, stop));
    std::thread([] {}).join();
    std::list<int> numbers{1, 2};
    assert(numbers.size() == 2);
    std::map<std::string, int> names{{"a", 1}};
    printf("%s %f %d\n", properties.name, sin(host[0]) + pow(2, 3) + sqrt(2), min(3, (int)names["a"]));
    assert(host[0] >= -1);
    std::sort(host.begin(), host.end());
    std::vector<half> halves(4, (half)3);
    halves[0] = __float2half(host[0]);
    halves[1] = (half)(rand() % 3) + halves[0];
    half2 pair = __floats2half2_rn(1.0f, __half2float(halves[1]));
    __nv_bfloat16 sixteen = (__nv_bfloat16)(float)(rand() % 3);
    printf("%f %f %d\n", (float)pair.y, __bfloat162float(sixteen), (int)(halves[0] < halves[1]));
    free(malloc(4));
    return std::isnan(host[0]) ? 1 : (int)cudaFree(device);
}
