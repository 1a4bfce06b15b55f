// SPDX-License-Identifier: Apache-2.0
// Prefix sums: in a warp, in a block, over the grid, by segments; and what is built on them.

// RUN scan_hillis n=4096 grid=16 block=256 exact
extern "C" __global__ void scan_hillis(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned buffers[2][256];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x, from = 0;
    buffers[0][t] = in[i];
    __syncthreads();
    for (unsigned offset = 1; offset < blockDim.x; offset *= 2) {
        unsigned to = 1 - from;
        buffers[to][t] = buffers[from][t] + (t >= offset ? buffers[from][t - offset] : 0);
        from = to;
        __syncthreads();
    }
    out[i] = buffers[from][t];
}

// RUN scan_blelloch n=2048 grid=4 block=256 shared=2048 exact
extern "C" __global__ void scan_blelloch(const unsigned *in, unsigned *out, unsigned n) {
    extern __shared__ unsigned tree[];
    unsigned t = threadIdx.x, count = 2 * blockDim.x, base = blockIdx.x * count, offset = 1;
    tree[2 * t] = in[base + 2 * t];
    tree[2 * t + 1] = in[base + 2 * t + 1];
    for (unsigned d = count >> 1; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0) tree[count - 1] = 0;
    for (unsigned d = 1; d < count; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            unsigned a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
            unsigned left = tree[a];
            tree[a] = tree[b];
            tree[b] += left;
        }
    }
    __syncthreads();
    out[base + 2 * t] = tree[2 * t];
    out[base + 2 * t + 1] = tree[2 * t + 1];
}

__device__ unsigned warp_inclusive(unsigned v) {
    unsigned lane = threadIdx.x & 31;
#pragma unroll
    for (unsigned d = 1; d < 32; d <<= 1) {
        unsigned below = __shfl_up_sync(~0u, v, d);
        if (lane >= d) v += below;
    }
    return v;
}

__device__ unsigned block_inclusive(unsigned v, unsigned *total) {
    __shared__ unsigned warps[32];
    unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5, count = blockDim.x >> 5;
    v = warp_inclusive(v);
    if (lane == 31) warps[warp] = v;
    __syncthreads();
    if (warp == 0) {
        unsigned w = warp_inclusive(lane < count ? warps[lane] : 0);
        warps[lane] = w;
    }
    __syncthreads();
    if (warp > 0) v += warps[warp - 1];
    *total = warps[count - 1];
    __syncthreads();
    return v;
}

// The state of a tile: its flag above its value, so that both are read at once.
__device__ unsigned long long tiles[64];
__device__ unsigned next_tile;

// RUN scan_lookback n=8192 grid=32 block=256 exact
extern "C" __global__ void scan_lookback(const unsigned *in, unsigned *out, unsigned n) {
    const unsigned long long AGGREGATE = 1ull << 32, PREFIX = 2ull << 32;
    __shared__ unsigned tile, before;
    unsigned total;
    if (threadIdx.x == 0) tile = atomicAdd(&next_tile, 1);
    __syncthreads();
    unsigned i = tile * blockDim.x + threadIdx.x;
    unsigned v = block_inclusive(in[i], &total);
    if (threadIdx.x == 0) {
        unsigned sum = 0;
        atomicExch(&tiles[tile], (tile == 0 ? PREFIX : AGGREGATE) | total);
        for (int at = (int)tile - 1; at >= 0;) {
            unsigned long long state = atomicAdd(&tiles[at], 0ull);
            if (state == 0) continue;
            sum += (unsigned)state;
            if (state >= PREFIX) break;
            at--;
        }
        if (tile > 0) atomicExch(&tiles[tile], PREFIX | (unsigned)(sum + total));
        before = sum;
    }
    __syncthreads();
    out[i] = v + before;
}

// RUN scan_segmented n=2048 grid=8 block=256 exact
extern "C" __global__ void scan_segmented(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned value[256], head[256];
    unsigned i = blockIdx.x * 256 + threadIdx.x, t = threadIdx.x;
    value[t] = in[i] >> 8;
    head[t] = (in[i] & 7) == 0;
    __syncthreads();
    for (unsigned d = 1; d < 256; d *= 2) {
        unsigned v = value[t], h = head[t];
        if (t >= d) {
            if (!h) v += value[t - d];
            h |= head[t - d];
        }
        __syncthreads();
        value[t] = v, head[t] = h;
        __syncthreads();
    }
    out[i] = value[t];
}

// RUN compact_block n=3000 grid=1 block=512 exact
extern "C" __global__ void compact_block(const unsigned *in, unsigned *out, unsigned n) {
    unsigned kept = 0;
    for (unsigned base = 0; base < n; base += blockDim.x) {
        unsigned i = base + threadIdx.x, total;
        bool keep = i < n && in[i] % 3 == 0;
        unsigned place = block_inclusive(keep, &total);
        if (keep) out[kept + place - 1] = in[i];
        kept += total;
    }
}

// RUN compact_ballot n=4096 grid=8 block=128 exact
extern "C" __global__ void compact_ballot(const unsigned *in, unsigned *out, unsigned n) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    unsigned warps = gridDim.x * blockDim.x / 32, chunk = n / warps, first = warp * chunk;
    unsigned at = first;
    for (unsigned i = first + lane; i < first + chunk; i += 32) {
        bool keep = in[i] & 0x10;
        unsigned votes = __ballot_sync(~0u, keep);
        if (keep) out[at + __popc(votes & ((1u << lane) - 1))] = in[i];
        at += __popc(votes);
    }
}

// RUN run_length n=2048 grid=1 block=1024 exact
extern "C" __global__ void run_length(const unsigned *in, unsigned *out, unsigned n) {
    // Two halves of out: the value and the length of each run of equal small values.
    __shared__ unsigned starts[1025];
    unsigned count = n / 2, t = threadIdx.x, total;
    auto symbol = [&](unsigned i) { return in[i] >> 31; };
    bool head = t < count && (t == 0 || symbol(t) != symbol(t - 1));
    unsigned rank = block_inclusive(head, &total);
    if (head) starts[rank - 1] = t;
    if (t == 0) starts[total] = count;
    __syncthreads();
    if (t < total) {
        out[t] = symbol(starts[t]) + 1;
        out[count + t] = starts[t + 1] - starts[t];
    }
}
