// SPDX-License-Identifier: Apache-2.0
// Graphs and sparse matrices. Node i has the edges i+1 and i*5+in[i] modulo the number of nodes.

__device__ unsigned edge_of(const unsigned *in, unsigned i, unsigned k, unsigned nodes) {
    return k == 0 ? (i * 7 + 1) % nodes : k == 1 ? (i * 5 + in[i]) % nodes : in[i] / 64 % nodes;
}

// RUN breadth_first n=1024 grid=1 block=256 exact
extern "C" __global__ void breadth_first(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned level[1024], frontier[2][1024], counts[2];
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) level[i] = ~0u;
    if (threadIdx.x == 0) level[0] = 0, frontier[0][0] = 0, counts[0] = 1, counts[1] = 0;
    __syncthreads();
    for (unsigned depth = 0; counts[depth & 1] > 0; depth++) {
        unsigned now = depth & 1, count = counts[now];
        for (unsigned f = threadIdx.x; f < count; f += blockDim.x)
            for (unsigned k = 0; k < 3; k++) {
                unsigned to = edge_of(in, frontier[now][f], k, n);
                if (atomicCAS(&level[to], ~0u, depth + 1) == ~0u)
                    frontier[1 - now][atomicAdd(&counts[1 - now], 1)] = to;
            }
        __syncthreads();
        if (threadIdx.x == 0) counts[now] = 0;
        __syncthreads();
    }
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) out[i] = level[i];
}

// RUN shortest_paths n=1024 grid=1 block=512 exact
extern "C" __global__ void shortest_paths(const unsigned *in, unsigned *out, unsigned n) {
    // Bellman and Ford, until nothing changes.
    __shared__ unsigned distance[1024];
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) distance[i] = i == 0 ? 0 : 0x7fffffff;
    __syncthreads();
    bool changed = true;
    while (__syncthreads_or(changed)) {
        changed = false;
        for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
            unsigned here = ((volatile unsigned *)distance)[i];
            if (here == 0x7fffffff) continue;
            for (unsigned k = 0; k < 3; k++) {
                unsigned there = here + (in[i] >> 8 * k & 255) + 1;
                if (atomicMin(&distance[edge_of(in, i, k, n)], there) > there) changed = true;
            }
        }
    }
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) out[i] = distance[i];
}

// RUN components n=1024 grid=1 block=256 exact
extern "C" __global__ void components(const unsigned *in, unsigned *out, unsigned n) {
    // Labels spread along the edges both ways; few edges, so many components.
    __shared__ unsigned label[1024];
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) label[i] = i;
    __syncthreads();
    bool changed = true;
    while (__syncthreads_or(changed)) {
        changed = false;
        for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
            if (in[i] & 1) continue;
            volatile unsigned *labels = label;
            unsigned to = edge_of(in, i, 2, n), least = min(labels[i], labels[to]);
            if (atomicMin(&label[i], least) > least) changed = true;
            if (atomicMin(&label[to], least) > least) changed = true;
        }
    }
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) out[i] = label[i];
}

// RUN floyd_warshall n=1024 grid=1 block=32x32 exact
extern "C" __global__ void floyd_warshall(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned d[32][33];
    unsigned x = threadIdx.x, y = threadIdx.y;
    d[y][x] = x == y ? 0 : (in[y * 32 + x] & 1023) + 1;
    for (unsigned k = 0; k < 32; k++) {
        __syncthreads();
        unsigned way = d[y][k] + d[k][x];
        __syncthreads();
        if (way < d[y][x]) d[y][x] = way;
    }
    out[y * 32 + x] = d[y][x];
}

// RUN page_rank n=1024 grid=1 block=256 exact
extern "C" __global__ void page_rank(const unsigned *in, unsigned *out, unsigned n) {
    // In whole numbers: shares of 2^32, rounded down, so that the order of the sums is no matter.
    __shared__ unsigned rank[1024], next[1024];
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) rank[i] = 1u << 20;
    for (int round = 0; round < 5; round++) {
        for (unsigned i = threadIdx.x; i < n; i += blockDim.x) next[i] = 1u << 17;
        __syncthreads();
        for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
            for (unsigned k = 0; k < 3; k++) atomicAdd(&next[edge_of(in, i, k, n)], rank[i] / 24 * 7);
        __syncthreads();
        for (unsigned i = threadIdx.x; i < n; i += blockDim.x) rank[i] = next[i];
        __syncthreads();
    }
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) out[i] = rank[i];
}

// RUN triangles n=64 grid=1 block=64 exact
extern "C" __global__ void triangles(const unsigned *in, unsigned *out, unsigned n) {
    // Rows of bits; the triangles with a node as their smallest.
    __shared__ unsigned long long rows[64];
    rows[threadIdx.x] = 0;
    __syncthreads();
    for (unsigned k = 0; k < 8; k++) {
        unsigned a = threadIdx.x, b = (in[a] >> 4 * k) % 64;
        if (a == b) continue;
        atomicOr(&rows[a], 1ull << b);
        atomicOr(&rows[b], 1ull << a);
    }
    __syncthreads();
    unsigned me = threadIdx.x, count = 0;
    for (unsigned long long left = rows[me] & ~((2ull << me) - 1); left; left &= left - 1) {
        unsigned other = (unsigned)__ffsll((long long)left) - 1;
        count += __popcll(rows[me] & rows[other] & ~((2ull << other) - 1));
    }
    out[me] = count;
}

// RUN sparse_csr n=4096 grid=4 block=128 exact
extern "C" __global__ void sparse_csr(const unsigned *in, unsigned *out, unsigned n) {
    // A warp for each of 256 rows; row r starts at 12 r + r % 5.
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    for (unsigned row = warp; row < 256; row += gridDim.x * blockDim.x / 32) {
        unsigned first = 12 * row + row % 5, last = 12 * (row + 1) + (row + 1) % 5, sum = 0;
        for (unsigned e = first + lane; e < last; e += 32) sum += in[e] * (in[in[e] % 256] & 0xff);
        for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
        if (lane == 0) out[row] = sum;
    }
}

// RUN sparse_ell n=2048 grid=1 block=256 loose=1e-4
extern "C" __global__ void sparse_ell(const unsigned *in, unsigned *out, unsigned n) {
    // Eight entries in each row, stored by columns.
    unsigned row = threadIdx.x;
    float sum = 0;
    for (unsigned k = 0; k < 8; k++) {
        unsigned e = in[k * 256 + row], column = e & 255;
        sum += (e >> 16) * (1 / 65536.0f) * (float)(in[column] & 31);
    }
    ((float *)out)[row] = sum;
}

// RUN sparse_coo n=3000 grid=6 block=100 exact
extern "C" __global__ void sparse_coo(const unsigned *in, unsigned *out, unsigned n) {
    // Entries in order of their rows: neighbours with the same row are added in the warp first.
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned row = i / 7, v = in[i] & 0xffff, mask = __match_any_sync(__activemask(), row);
        unsigned sum = __reduce_add_sync(mask, v);
        if ((mask & ((1u << threadIdx.x % 32) - 1)) == 0) atomicAdd(&out[row], sum);
    }
}
