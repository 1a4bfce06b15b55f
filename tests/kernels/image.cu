// SPDX-License-Identifier: Apache-2.0
// Pictures of 64 by 64, a byte for each pixel in the low bits of a word.

__device__ int pixel(const unsigned *in, int x, int y) {
    x = min(max(x, 0), 63), y = min(max(y, 0), 63);
    return (int)(in[y * 64 + x] & 255);
}

// RUN box_blur n=4096 grid=4x4 block=16x16 exact
extern "C" __global__ void box_blur(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ int tile[20][21];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y, sum = 0;
    for (int i = threadIdx.y * 16 + threadIdx.x; i < 400; i += 256)
        tile[i / 20][i % 20] = pixel(in, blockIdx.x * 16 + i % 20 - 2, blockIdx.y * 16 + i / 20 - 2);
    __syncthreads();
    for (int j = 0; j < 5; j++)
        for (int i = 0; i < 5; i++) sum += tile[threadIdx.y + j][threadIdx.x + i];
    out[y * 64 + x] = (unsigned)(sum / 25);
}

// RUN sobel n=4096 grid=4x4 block=16x16 exact
extern "C" __global__ void sobel(const unsigned *in, unsigned *out, unsigned n) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    int gx = 0, gy = 0;
    for (int d = -1; d <= 1; d++) {
        int weight = 2 - abs(d);
        gx += weight * (pixel(in, x + 1, y + d) - pixel(in, x - 1, y + d));
        gy += weight * (pixel(in, x + d, y + 1) - pixel(in, x + d, y - 1));
    }
    out[y * 64 + x] = (unsigned)min(abs(gx) + abs(gy), 255);
}

// RUN median_filter n=4096 grid=4x4 block=16x16 exact
extern "C" __global__ void median_filter(const unsigned *in, unsigned *out, unsigned n) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y, v[9];
    for (int k = 0; k < 9; k++) v[k] = pixel(in, x + k % 3 - 1, y + k / 3 - 1);
#pragma unroll
    for (int i = 0; i < 5; i++)
#pragma unroll
        for (int j = 8; j > i; j--) {
            int low = min(v[j], v[j - 1]), high = max(v[j], v[j - 1]);
            v[j - 1] = low, v[j] = high;
        }
    out[y * 64 + x] = (unsigned)v[4];
}

// RUN equalize n=4096 grid=1 block=256 exact
extern "C" __global__ void equalize(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ unsigned bins[256], sums[256];
    unsigned t = threadIdx.x;
    bins[t] = 0;
    __syncthreads();
    for (unsigned i = t; i < n; i += 256) atomicAdd(&bins[in[i] * (in[i] >> 8 & 255) >> 8 & 255], 1);
    __syncthreads();
    unsigned sum = 0;
    for (unsigned k = 0; k <= t; k++) sum += bins[k];
    sums[t] = sum;
    __syncthreads();
    for (unsigned i = t; i < n; i += 256) out[i] = sums[in[i] * (in[i] >> 8 & 255) >> 8 & 255] * 255 / n;
}

// RUN gray_and_yuv n=2048 grid=8 block=256 exact
extern "C" __global__ void gray_and_yuv(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int r = (int)(in[i] & 255), g = (int)(in[i] >> 8 & 255), b = (int)(in[i] >> 16 & 255);
    int y = ((66 * r + 129 * g + 25 * b + 128) >> 8) + 16;
    int u = ((-38 * r - 74 * g + 112 * b + 128) >> 8) + 128;
    int v = ((112 * r - 94 * g - 18 * b + 128) >> 8) + 128;
    reinterpret_cast<uchar4 *>(out)[i] = make_uchar4(y, u, v, (r * 77 + g * 150 + b * 29) >> 8);
}

// RUN resize_bilinear n=4096 grid=4x4 block=16x16 exact
extern "C" __global__ void resize_bilinear(const unsigned *in, unsigned *out, unsigned n) {
    // 40 by 40 to 64 by 64 with eight bits behind the point.
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    int fx = x * 160, fy = y * 160, x0 = fx >> 8, y0 = fy >> 8, dx = fx & 255, dy = fy & 255;
    int top = pixel(in, x0, y0) * (256 - dx) + pixel(in, x0 + 1, y0) * dx;
    int bottom = pixel(in, x0, y0 + 1) * (256 - dx) + pixel(in, x0 + 1, y0 + 1) * dx;
    out[y * 64 + x] = (unsigned)((top * (256 - dy) + bottom * dy + 32768) >> 16);
}

// RUN integral_image n=4096 grid=1 block=64 exact
extern "C" __global__ void integral_image(const unsigned *in, unsigned *out, unsigned n) {
    unsigned t = threadIdx.x, sum = 0;
    for (unsigned x = 0; x < 64; x++) out[t * 64 + x] = sum += in[t * 64 + x] & 255;
    __syncthreads();
    sum = 0;
    for (unsigned y = 0; y < 64; y++) out[y * 64 + t] = sum += out[y * 64 + t];
}

// RUN floyd_steinberg n=4096 grid=1 block=64 exact
extern "C" __global__ void floyd_steinberg(const unsigned *in, unsigned *out, unsigned n) {
    // A wave front: a row is three pixels behind the one above.
    __shared__ int error[65][66];
    int row = threadIdx.x;
    for (int x = 0; x < 66; x++) error[row][x] = 0;
    if (row == 0)
        for (int x = 0; x < 66; x++) error[64][x] = 0;
    for (int step = 0; step < 64 + 3 * 63; step++) {
        __syncthreads();
        int x = step - 3 * row;
        int e = 0;
        bool active = x >= 0 && x < 64;
        if (active) {
            int v = pixel(in, x, row) + error[row][x + 1] / 16;
            out[row * 64 + x] = v >= 128;
            e = v - (v >= 128 ? 255 : 0);
            error[row][x + 2] += 7 * e;
            error[row + 1][x] += 3 * e;
            error[row + 1][x + 1] += 5 * e;
            error[row + 1][x + 2] += e;
        }
    }
}
