// SPDX-License-Identifier: Apache-2.0
// Bits, bytes, checksums, wide arithmetic, ciphers.

// RUN bit_tricks n=2048 grid=8 block=256 exact
extern "C" __global__ void bit_tricks(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i], r = 0;
    r += __popc(v) + 64 * __clz(v) + 4096 * __ffs(v);
    r ^= __brev(v) ^ __byte_perm(v, ~v, 0x5140 + (i & 3));
    r += __funnelshift_l(v, i, i & 31) + __funnelshift_r(v, i, i & 63);
    r ^= __umulhi(v, r) + (unsigned)__mulhi((int)v, (int)r);
    r += __sad((int)v, (int)i, 3) + __usad(v, i, 5) + __uhadd(v, i) + (unsigned)__rhadd((int)v, (int)i);
    unsigned long long wide = (unsigned long long)v << 32 | r;
    r ^= __popcll(wide) + 256 * __clzll(wide) + 65536 * __ffsll(wide) + (unsigned)(__brevll(wide) >> 20);
    out[i] = r + (unsigned)__umul64hi(wide, wide * 3) + (unsigned)__mul24((int)v, (int)i);
}

// RUN crc32 n=1024 grid=4 block=64 exact
extern "C" __global__ void crc32(const unsigned *in, unsigned *out, unsigned n) {
    // Of four words each; the table is made by the block.
    __shared__ unsigned table[256];
    for (unsigned b = threadIdx.x; b < 256; b += blockDim.x) {
        unsigned c = b;
        for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
        table[b] = c;
    }
    __syncthreads();
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, crc = ~0u;
    const unsigned char *bytes = (const unsigned char *)(in + 4 * i);
    for (int k = 0; k < 16; k++) crc = table[(crc ^ bytes[k]) & 255] ^ crc >> 8;
    out[i] = ~crc;
}

// RUN adler32 n=2048 grid=2 block=64 exact
extern "C" __global__ void adler32(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, a = 1, b = 0;
    const uchar4 *bytes = (const uchar4 *)(in + 16 * i);
    for (int k = 0; k < 16; k++) {
        uchar4 v = bytes[k];
        a += v.x, b += a;
        a += v.y, b += a;
        a += v.z, b += a;
        a += v.w, b += a;
    }
    out[i] = b % 65521 << 16 | a % 65521;
}

// RUN xtea n=2048 grid=4 block=256 exact
extern "C" __global__ void xtea(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = 2 * (blockIdx.x * blockDim.x + threadIdx.x), a = in[i], b = in[i + 1], sum = 0;
    const unsigned key[4] = {in[0], in[1], in[2], in[3]};
    for (int round = 0; round < 32; round++) {
        a += ((b << 4 ^ b >> 5) + b) ^ (sum + key[sum & 3]);
        sum += 0x9e3779b9u;
        b += ((a << 4 ^ a >> 5) + a) ^ (sum + key[sum >> 11 & 3]);
    }
    out[i] = a, out[i + 1] = b;
}

__constant__ unsigned sha_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__device__ __forceinline__ unsigned rotate(unsigned x, int by) { return __funnelshift_r(x, x, by); }

// RUN sha256 n=1024 grid=2 block=32 exact
extern "C" __global__ void sha256(const unsigned *in, unsigned *out, unsigned n) {
    // One block of 16 words each, without the padding.
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, w[64];
    unsigned h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, s[8];
    for (int k = 0; k < 16; k++) w[k] = __byte_perm(in[i * 16 + k], 0, 0x0123);
    for (int k = 16; k < 64; k++) {
        unsigned a = w[k - 15], b = w[k - 2];
        w[k] = w[k - 16] + w[k - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    for (int k = 0; k < 8; k++) s[k] = h[k];
    for (int k = 0; k < 64; k++) {
        unsigned t1 = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                      ((s[4] & s[5]) ^ (~s[4] & s[6])) + sha_k[k] + w[k];
        unsigned t2 = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                      ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        for (int j = 7; j > 0; j--) s[j] = s[j - 1];
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int k = 0; k < 8; k++) out[i * 8 + k] = h[k] + s[k];
}

// RUN big_multiply n=1024 grid=1 block=64 exact
extern "C" __global__ void big_multiply(const unsigned *in, unsigned *out, unsigned n) {
    // Numbers of 256 bits, eight words each; the products have sixteen.
    unsigned i = threadIdx.x, product[16] = {0};
    const unsigned *a = in + i * 16, *b = a + 8;
    for (int j = 0; j < 8; j++) {
        unsigned carry = 0;
        for (int k = 0; k < 8; k++) {
            unsigned long long t = (unsigned long long)a[k] * b[j] + product[j + k] + carry;
            product[j + k] = (unsigned)t;
            carry = (unsigned)(t >> 32);
        }
        product[j + 8] = carry;
    }
    for (int k = 0; k < 16; k++) out[i * 16 + k] = product[k];
}

// RUN gray_and_morton n=2048 grid=8 block=256 exact
extern "C" __global__ void gray_and_morton(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i];
    auto spread = [](unsigned x) {
        x &= 0xffff;
        x = (x | x << 8) & 0x00ff00ff;
        x = (x | x << 4) & 0x0f0f0f0f;
        x = (x | x << 2) & 0x33333333;
        return (x | x << 1) & 0x55555555;
    };
    unsigned morton = spread(v) | spread(v >> 16) << 1, gray = v ^ v >> 1;
    out[i] = morton + gray;
}

// RUN divide_many n=2048 grid=8 block=256 exact
extern "C" __global__ void divide_many(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned a = in[i], b = in[(i * 7 + 1) % n] >> (i & 31) | 1;
    int sa = (int)a, sb = (int)b;
    long long la = (long long)((unsigned long long)a << 32 | b) >> (i & 15), lb = sb < 0 ? sb : -sb - 5;
    unsigned r = a / b ^ a % b;
    r += (unsigned)(sa / (sb == -1 ? 7 : sb)) ^ (unsigned)(sa % (sb == -1 ? 7 : sb));
    r ^= (unsigned)(la / lb) + (unsigned)(la % lb) * 3;
    r += (unsigned)((unsigned long long)la / 1000000007u) ^ a / 10 ^ (unsigned)(sa / -13);
    out[i] = r;
}
