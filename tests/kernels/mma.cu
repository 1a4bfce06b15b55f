// SPDX-License-Identifier: Apache-2.0
// Products on tensor cores: by wmma fragments and by mma and ldmatrix directly. Small whole
// numbers, so that every order of the sums gives the same.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// RUN wmma_half n=1024 grid=2x2 block=32 exact
extern "C" __global__ void wmma_half(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ half a[16 * 16], b[16 * 16];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    for (unsigned k0 = 0; k0 < 32; k0 += 16) {
        for (unsigned i = threadIdx.x; i < 256; i += 32) {
            a[i] = __int2half_rn((int)(in[(blockIdx.y * 16 + i / 16) * 32 + k0 + i % 16] & 15) - 8);
            b[i] = __int2half_rn((int)(in[(k0 + i / 16) * 32 + blockIdx.x * 16 + i % 16] >> 28) - 8);
        }
        __syncwarp();
        wmma::load_matrix_sync(fa, a, 16);
        wmma::load_matrix_sync(fb, b, 16);
        wmma::mma_sync(fc, fa, fb, fc);
        __syncwarp();
    }
    float *c = (float *)out + blockIdx.y * 16 * 32 + blockIdx.x * 16;
    wmma::store_matrix_sync(c, fc, 32, wmma::mem_row_major);
}

// RUN wmma_bytes n=1024 grid=1 block=128 exact
extern "C" __global__ void wmma_bytes(const unsigned *in, unsigned *out, unsigned n) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;
    unsigned warp = threadIdx.x / 32;
    const signed char *bytes = (const signed char *)in;
    wmma::load_matrix_sync(fc, (const int *)in + 256 * warp, 16, wmma::mem_col_major);
    wmma::load_matrix_sync(fa, bytes + 256 * warp, 16);
    wmma::load_matrix_sync(fb, bytes + 1024 + 256 * warp, 16);
    for (int k = 0; k < fc.num_elements; k++) fc.x[k] >>= 8;
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync((int *)out + 256 * warp, fc, 16, wmma::mem_row_major);
}

// RUN mma_m16n8k16 n=1024 grid=4 block=32 exact
extern "C" __global__ void mma_m16n8k16(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ alignas(16) half a[16][24], b[16][8];
    unsigned lane = threadIdx.x;
    for (unsigned i = lane; i < 256; i += 32) a[i / 16][i % 16] = __int2half_rn((int)(in[blockIdx.x * 256 + i] & 31) - 16);
    for (unsigned i = lane; i < 128; i += 32) b[i / 8][i % 8] = __int2half_rn((int)(in[blockIdx.x * 256 + i] >> 27));
    __syncwarp();
    unsigned ra[4], rb[2];
    unsigned pa = (unsigned)__cvta_generic_to_shared(&a[lane % 16][lane / 16 * 8]);
    unsigned pb = (unsigned)__cvta_generic_to_shared(&b[lane % 16][0]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb) : "memory");
    float c[4] = {0, 1, 2, 3};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    float *o = (float *)out + blockIdx.x * 128;
    unsigned row = lane / 4, column = lane % 4 * 2;
    o[row * 8 + column] = c[0], o[row * 8 + column + 1] = c[1];
    o[(row + 8) * 8 + column] = c[2], o[(row + 8) * 8 + column + 1] = c[3];
}

// RUN mma_bytes n=512 grid=4 block=32 exact
extern "C" __global__ void mma_bytes(const unsigned *in, unsigned *out, unsigned n) {
    const unsigned *a = in + blockIdx.x * 128, *b = in + 64 * (3 - blockIdx.x);
    unsigned lane = threadIdx.x, row = lane / 4, k = lane % 4;
    int c[4] = {(int)lane, 0, -1, -(int)lane};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[row * 8 + k]), "r"(a[(row + 8) * 8 + k]), "r"(a[row * 8 + k + 4]),
                   "r"(a[(row + 8) * 8 + k + 4]), "r"(b[row * 8 + k]), "r"(b[row * 8 + k + 4]));
    *(int4 *)&out[blockIdx.x * 128 + lane * 4] = make_int4(c[0], c[1], c[2], c[3]);
}

// RUN mma_bits n=512 grid=4 block=32 exact
extern "C" __global__ void mma_bits(const unsigned *in, unsigned *out, unsigned n) {
    // Counts of bits that two vectors of 128 bits have both.
    unsigned lane = threadIdx.x;
    int c[2] = {0, 0};
    asm volatile("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+r"(c[0]), "+r"(c[1]) : "r"(in[blockIdx.x * 64 + lane]), "r"(in[256 + blockIdx.x * 64 + lane]));
    out[blockIdx.x * 64 + lane * 2] = (unsigned)c[0], out[blockIdx.x * 64 + lane * 2 + 1] = (unsigned)c[1];
}

// RUN mma_tf32 n=1024 grid=1 block=32 exact
extern "C" __global__ void mma_tf32(const unsigned *in, unsigned *out, unsigned n) {
    unsigned lane = threadIdx.x;
    auto small = [&](unsigned i) { return __float_as_uint((float)((int)(in[i] & 63) - 32)); };
    float c[4] = {};
    for (unsigned step = 0; step < 4; step++) {
        unsigned base = step * 192;
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                     "{%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(small(base + lane)), "r"(small(base + 32 + lane)), "r"(small(base + 64 + lane)),
                       "r"(small(base + 96 + lane)), "r"(small(base + 128 + lane)), "r"(small(base + 160 + lane)));
    }
    for (int i = 0; i < 4; i++) ((float *)out)[lane * 4 + i] = c[i];
}

// RUN mma_double n=256 grid=1 block=32 exact
extern "C" __global__ void mma_double(const unsigned *in, unsigned *out, unsigned n) {
    unsigned lane = threadIdx.x;
    double c0 = 0, c1 = 0;
    for (unsigned step = 0; step < 4; step++) {
        double a = (double)(in[step * 64 + lane] >> 12), b = (double)(int)(in[step * 64 + 32 + lane] >> 8);
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                     : "+d"(c0), "+d"(c1) : "d"(a), "d"(b));
    }
    ((double *)out)[lane * 2] = c0, ((double *)out)[lane * 2 + 1] = c1;
}

// RUN rows_in_shared n=512 grid=1 block=128 exact
extern "C" __global__ void rows_in_shared(const unsigned *in, unsigned *out, unsigned n) {
    // Rows through ldmatrix with swizzled addresses and movmatrix, each warp its own 8 by 8 tiles.
    __shared__ alignas(128) unsigned tile[4][128];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (unsigned i = lane; i < 128; i += 32) tile[warp][i] = in[warp * 128 + i];
    __syncwarp();
    unsigned address = (unsigned)__cvta_generic_to_shared(&tile[warp][(lane ^ warp) * 4]), r[4], t;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(r[1]));
    r[1] = t;
    for (int i = 0; i < 4; i++) out[warp * 128 + i * 32 + lane] = r[i];
}
