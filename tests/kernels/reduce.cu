// SPDX-License-Identifier: Apache-2.0
// Sums, minima and maxima, from the simplest tree to one pass over the whole grid.

// RUN reduce_shared n=4096 grid=16 block=256 exact
extern "C" __global__ void reduce_shared(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned part[256];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

__device__ unsigned warp_sum(unsigned value) {
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

__device__ unsigned block_sum(unsigned value) {
    __shared__ unsigned sums[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    value = warp_sum(value);
    if (lane == 0) sums[warp] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? sums[lane] : 0;
    if (warp == 0) value = warp_sum(value);
    return value;
}

// RUN reduce_shuffle n=8000 grid=8 block=256 exact
extern "C" __global__ void reduce_shuffle(const unsigned *in, unsigned *out, unsigned n) {
    unsigned sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

__device__ unsigned blocks_done;

// RUN reduce_last_block n=6000 grid=12 block=128 exact
extern "C" __global__ void reduce_last_block(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ bool is_last;
    unsigned sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i] ^ i;
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        out[1 + blockIdx.x] = sum;
        __threadfence();
        is_last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last) {
        const volatile unsigned *parts = out + 1;
        sum = block_sum(threadIdx.x < gridDim.x ? parts[threadIdx.x] : 0);
        if (threadIdx.x == 0) out[0] = sum;
    }
}

struct Range {
    unsigned low, high, where;
};

__device__ Range join(Range a, Range b) {
    Range r;
    r.low = min(a.low, b.low);
    r.high = max(a.high, b.high);
    r.where = a.high > b.high || (a.high == b.high && a.where < b.where) ? a.where : b.where;
    return r;
}

// RUN reduce_struct n=5000 grid=4 block=192 exact
extern "C" __global__ void reduce_struct(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ Range ranges[192];
    Range mine = {0xffffffffu, 0, 0xffffffffu};
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine = join(mine, Range{in[i], in[i], i});
    ranges[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned count = blockDim.x; count > 1;) {
        unsigned half = (count + 1) / 2;
        if (threadIdx.x + half < count)
            ranges[threadIdx.x] = join(ranges[threadIdx.x], ranges[threadIdx.x + half]);
        __syncthreads();
        count = half;
    }
    if (threadIdx.x < 3) out[blockIdx.x * 3 + threadIdx.x] = (&ranges[0].low)[threadIdx.x];
}

// RUN reduce_redux n=4096 grid=16 block=256 exact
extern "C" __global__ void reduce_redux(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    unsigned v = in[i];
    unsigned add = __reduce_add_sync(0xffffffffu, v), low = __reduce_min_sync(0xffffffffu, v);
    int high = __reduce_max_sync(0xffffffffu, (int)v);
    unsigned bits = __reduce_xor_sync(0xffffffffu, v);
    if (lane == 0) {
        unsigned *o = out + i / 32 * 4;
        o[0] = add, o[1] = low, o[2] = (unsigned)high, o[3] = bits;
    }
}

// RUN reduce_double n=4096 grid=4 block=256 loose=1e-6
extern "C" __global__ void reduce_double(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ double part[256];
    double sum = 0;
    for (unsigned i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        sum += sqrt((double)in[i]);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) ((float *)out)[blockIdx.x] = (float)part[0];
}

// RUN reduce_vector n=8192 grid=4 block=128 exact
extern "C" __global__ void reduce_vector(const unsigned *in, unsigned *out, unsigned n) {
    const uint4 *in4 = reinterpret_cast<const uint4 *>(in);
    unsigned odd = 0, even = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) {
        uint4 v = __ldg(in4 + i);
        even += v.x + v.z;
        odd += v.y + v.w;
    }
    atomicAdd(&out[0], even);
    atomicAdd(&out[1], odd);
    atomicMax(&out[2], even ^ odd);
    atomicXor(&out[3], even - odd);
}
