// SPDX-License-Identifier: Apache-2.0
// Cells that depend on their neighbours: game of life, heat, waves, distances, flood fill.

// RUN game_of_life n=1024 grid=1 block=32x32 exact
extern "C" __global__ void game_of_life(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned char world[2][34][34];
    unsigned x = threadIdx.x + 1, y = threadIdx.y + 1, now = 0;
    unsigned i = threadIdx.y * 32 + threadIdx.x;
    for (unsigned k = i; k < 2 * 34 * 34; k += 1024) (&world[0][0][0])[k] = 0;
    __syncthreads();
    world[0][y][x] = in[i] & 1;
    __syncthreads();
    for (int generation = 0; generation < 16; generation++) {
        const unsigned char(*w)[34] = world[now];
        int around = w[y - 1][x - 1] + w[y - 1][x] + w[y - 1][x + 1] + w[y][x - 1] + w[y][x + 1] +
                     w[y + 1][x - 1] + w[y + 1][x] + w[y + 1][x + 1];
        world[1 - now][y][x] = around == 3 || (around == 2 && w[y][x]);
        now = 1 - now;
        __syncthreads();
    }
    out[i] = world[now][y][x];
}

// RUN life_bits n=256 grid=1 block=256 exact
extern "C" __global__ void life_bits(const unsigned *in, unsigned *out, unsigned n) {
    // 32 cells in a word; sums of eight neighbours with full adders. Rows and columns wrap.
    __shared__ unsigned rows[256];
    unsigned t = threadIdx.x, row = in[t];
    for (int generation = 0; generation < 8; generation++) {
        rows[t] = row;
        __syncthreads();
        unsigned up = rows[(t + 255) % 256], down = rows[(t + 1) % 256];
        unsigned a[8] = {__funnelshift_l(up, up, 1),   up,   __funnelshift_r(up, up, 1),
                         __funnelshift_l(row, row, 1),       __funnelshift_r(row, row, 1),
                         __funnelshift_l(down, down, 1), down, __funnelshift_r(down, down, 1)};
        unsigned ones = 0, twos = 0, fours = 0;
        for (int k = 0; k < 8; k++) {
            unsigned carry = ones & a[k];
            ones ^= a[k];
            unsigned carry2 = twos & carry;
            twos ^= carry;
            fours |= carry2;
        }
        __syncthreads();
        row = ~fours & twos & (ones | row);
    }
    out[t] = row;
}

// RUN heat_2d n=4096 grid=4x4 block=16x16 loose=1e-5
extern "C" __global__ void heat_2d(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ float tile[18][18];
    const int W = 64;
    auto at = [&](int x, int y) {
        x = min(max(x, 0), W - 1), y = min(max(y, 0), W - 1);
        return (float)(in[y * W + x] >> 20);
    };
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    for (int j = threadIdx.y; j < 18; j += 16)
        for (int i = threadIdx.x; i < 18; i += 16)
            tile[j][i] = at(blockIdx.x * 16 + i - 1, blockIdx.y * 16 + j - 1);
    __syncthreads();
    int i = threadIdx.x + 1, j = threadIdx.y + 1;
    float c = tile[j][i];
    float next = c + 0.1f * (tile[j - 1][i] + tile[j + 1][i] + tile[j][i - 1] + tile[j][i + 1] - 4 * c);
    ((float *)out)[y * W + x] = next;
}

// RUN heat_iterated n=1024 grid=1 block=256 loose=1e-4
extern "C" __global__ void heat_iterated(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ float rod[2][1024];
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) rod[0][i] = (in[i] & 0xffff) / 65536.0f;
    __syncthreads();
    unsigned now = 0;
    for (int step = 0; step < 20; step++, now ^= 1) {
        for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
            float left = rod[now][(i + n - 1) % n], right = rod[now][(i + 1) % n];
            rod[now ^ 1][i] = 0.5f * rod[now][i] + 0.25f * (left + right);
        }
        __syncthreads();
    }
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) ((float *)out)[i] = rod[now][i];
}

// RUN stencil_3d n=4096 grid=1 block=16x16 exact
extern "C" __global__ void stencil_3d(const unsigned *in, unsigned *out, unsigned n) {
    // The planes above and below stay in registers as the block walks through the volume.
    __shared__ unsigned plane[16][16];
    unsigned x = threadIdx.x, y = threadIdx.y, below = 0, here = in[y * 16 + x] & 0xffff;
    for (unsigned z = 0; z < 16; z++) {
        unsigned above = z + 1 < 16 ? in[(z + 1) * 256 + y * 16 + x] & 0xffff : 0;
        __syncthreads();
        plane[y][x] = here;
        __syncthreads();
        unsigned sum = 6 * here - above - below;
        if (x > 0) sum -= plane[y][x - 1];
        if (x < 15) sum -= plane[y][x + 1];
        if (y > 0) sum -= plane[y - 1][x];
        if (y < 15) sum -= plane[y + 1][x];
        out[z * 256 + y * 16 + x] = sum;
        below = here, here = above;
    }
}

// RUN flood_fill n=1024 grid=1 block=1024 exact
extern "C" __global__ void flood_fill(const unsigned *in, unsigned *out, unsigned n) {
    // The smallest index that reaches a cell over open cells, on a grid of 32 by 32.
    __shared__ unsigned label[1024];
    unsigned t = threadIdx.x, x = t % 32, y = t / 32;
    bool open = in[t] % 5 < 3;
    label[t] = open ? t : 0xffffffffu;
    __syncthreads();
    int changed = 1;
    while (changed) {
        unsigned best = label[t];
        if (open) {
            if (x > 0) best = min(best, label[t - 1]);
            if (x < 31) best = min(best, label[t + 1]);
            if (y > 0) best = min(best, label[t - 32]);
            if (y < 31) best = min(best, label[t + 32]);
        }
        changed = __syncthreads_or(best != label[t]);
        label[t] = best;
        __syncthreads();
    }
    out[t] = label[t];
}

// RUN rule_110 n=256 grid=1 block=256 exact
extern "C" __global__ void rule_110(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned cells[256];
    unsigned t = threadIdx.x, me = in[t];
    for (int step = 0; step < 64; step++) {
        cells[t] = me;
        __syncthreads();
        unsigned left = __funnelshift_r(me, cells[(t + 255) % 256], 1);
        unsigned right = __funnelshift_l(cells[(t + 1) % 256], me, 1);
        __syncthreads();
        me = (me | right) & ~(left & me & right);
    }
    out[t] = me;
}
