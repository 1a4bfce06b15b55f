// SPDX-License-Identifier: Apache-2.0
// Bytes as text: searching, counting, distances, coding.

// RUN find_pattern n=2048 grid=8 block=256 exact
extern "C" __global__ void find_pattern(const unsigned *in, unsigned *out, unsigned n) {
    // Letters of a small alphabet; where three of them follow each other.
    const unsigned char *text = (const unsigned char *)in;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i + 2 < 4 * n; i += gridDim.x * blockDim.x)
        if ((text[i] & 3) == 1 && (text[i + 1] & 3) == 2 && (text[i + 2] & 3) == 1)
            atomicAdd(&out[i / 64], 1);
}

// RUN edit_distance n=1024 grid=1 block=64 exact
extern "C" __global__ void edit_distance(const unsigned *in, unsigned *out, unsigned n) {
    // Anti-diagonals of the table of two texts of 64 letters.
    __shared__ int rows[3][65];
    const unsigned char *a = (const unsigned char *)in, *b = a + 64;
    int t = threadIdx.x;
    for (int d = 0; d <= 128; d++) {
        int *now = rows[d % 3], *last = rows[(d + 2) % 3], *before = rows[(d + 1) % 3];
        for (int i = t; i <= 64; i += 64) {
            int j = d - i;
            if (j < 0 || j > 64) continue;
            int best;
            if (i == 0 || j == 0) best = i + j;
            else best = min(min(last[i - 1], last[i]) + 1, before[i - 1] + ((a[i - 1] & 3) != (b[j - 1] & 3)));
            now[i] = best;
            if (j == 64) out[i] = (unsigned)best;
        }
        __syncthreads();
    }
}

// RUN parse_numbers n=1024 grid=4 block=256 exact
extern "C" __global__ void parse_numbers(const unsigned *in, unsigned *out, unsigned n) {
    // To decimal text and back.
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i] >> (i & 31);
    char text[12];
    int length = 0;
    do text[length++] = (char)('0' + v % 10);
    while (v /= 10);
    for (int k = 0; k < length / 2; k++) {
        char c = text[k];
        text[k] = text[length - 1 - k], text[length - 1 - k] = c;
    }
    text[length] = 0;
    unsigned back = 0;
    for (const char *p = text; *p; p++) back = back * 10 + (unsigned)(*p - '0');
    out[i] = back * 16 + (unsigned)length;
}

__constant__ char alphabet[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// RUN base64 n=1024 grid=1 block=256 exact
extern "C" __global__ void base64(const unsigned *in, unsigned *out, unsigned n) {
    const unsigned char *bytes = (const unsigned char *)in + 3 * threadIdx.x;
    unsigned v = bytes[0] << 16 | bytes[1] << 8 | bytes[2];
    char4 text = make_char4(alphabet[v >> 18], alphabet[v >> 12 & 63], alphabet[v >> 6 & 63], alphabet[v & 63]);
    ((char4 *)out)[threadIdx.x] = text;
}

// RUN rolling_hash n=1024 grid=4 block=256 exact
extern "C" __global__ void rolling_hash(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, hash = 0;
    const unsigned short *letters = (const unsigned short *)in;
    for (unsigned k = 0; k < 16; k++) hash = hash * 257 + letters[(i + k) % (2 * n)];
    out[i] = hash;
}

// RUN word_count n=2048 grid=4 block=128 exact
extern "C" __global__ void word_count(const unsigned *in, unsigned *out, unsigned n) {
    // A word begins where a letter follows a space; every eighth byte value is a space.
    const signed char *text = (const signed char *)in;
    unsigned words = 0, letters = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < 4 * n; i += gridDim.x * blockDim.x) {
        bool space = (text[i] & 7) == 0, before = i == 0 || (text[i - 1] & 7) == 0;
        words += before && !space;
        letters += !space && text[i] < 0;
    }
    atomicAdd(&out[0], words);
    atomicAdd(&out[1], letters);
}

// RUN bit_packing n=2048 grid=1 block=64 exact
extern "C" __global__ void bit_packing(const unsigned *in, unsigned *out, unsigned n) {
    // 32 numbers of eleven bits in eleven words, and what they are again.
    unsigned group = threadIdx.x, packed[11] = {};
    for (unsigned k = 0; k < 32; k++) {
        unsigned v = in[group * 32 + k] & 2047, at = k * 11;
        packed[at / 32] |= v << at % 32;
        if (at % 32 > 21) packed[at / 32 + 1] |= v >> (32 - at % 32);
    }
    for (unsigned k = 0; k < 32; k++) {
        unsigned at = k * 11, low = packed[at / 32], high = at / 32 < 10 ? packed[at / 32 + 1] : 0;
        out[group * 32 + k] = __funnelshift_r(low, high, at % 32) & 2047;
    }
}
