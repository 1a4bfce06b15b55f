// SPDX-License-Identifier: Apache-2.0
// Bodies, waves, fractals, integrals: floating point as it is used every day.

// RUN n_body n=1024 grid=2 block=128 loose=1e-4
extern "C" __global__ void n_body(const unsigned *in, unsigned *out, unsigned n) {
    __shared__ float4 tile[128];
    auto body = [&](unsigned i) {
        const unsigned *w = in + 4 * i;
        return make_float4((w[0] & 0xffff) / 65536.0f, (w[1] & 0xffff) / 65536.0f,
                           (w[2] & 0xffff) / 65536.0f, 1.0f + (w[3] & 7));
    };
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, count = n / 4;
    float4 me = body(i);
    float3 force = {0, 0, 0};
    for (unsigned base = 0; base < count; base += 128) {
        tile[threadIdx.x] = body(base + threadIdx.x);
        __syncthreads();
#pragma unroll 8
        for (unsigned k = 0; k < 128; k++) {
            float4 o = tile[k];
            float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
            float r2 = dx * dx + dy * dy + dz * dz + 0.01f, inverse = rsqrtf(r2);
            float s = o.w * inverse * inverse * inverse;
            force.x += dx * s, force.y += dy * s, force.z += dz * s;
        }
        __syncthreads();
    }
    float *o = (float *)out + 4 * i;
    o[0] = fabsf(force.x), o[1] = fabsf(force.y), o[2] = fabsf(force.z), o[3] = me.w;
}

// RUN mandelbrot n=1024 grid=4x4 block=8x8 exact nofast
extern "C" __global__ void mandelbrot(const unsigned *in, unsigned *out, unsigned n) {
    // Products rounded one by one, so that no compiler makes another picture of it.
    unsigned x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, count = 0;
    float cx = __fmaf_rn((float)x, 3.0f / 32, -2.0f), cy = __fmaf_rn((float)y, 2.0f / 32, -1.0f), zx = 0, zy = 0;
    while (count < 100) {
        float xx = __fmul_rn(zx, zx), yy = __fmul_rn(zy, zy);
        if (__fadd_rn(xx, yy) > 4.0f) break;
        zy = __fmaf_rn(__fmul_rn(2.0f, zx), zy, cy);
        zx = __fadd_rn(__fsub_rn(xx, yy), cx);
        count++;
    }
    out[y * 32 + x] = count;
}

// RUN julia_fixed n=1024 grid=4 block=256 exact
extern "C" __global__ void julia_fixed(const unsigned *in, unsigned *out, unsigned n) {
    // The same with 20 bits behind the point.
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, count = 0;
    long long x = ((long long)(i % 32) - 16) << 17, y = ((long long)(i / 32) - 16) << 17;
    for (; count < 64 && x * x + y * y < 4ll << 40; count++) {
        long long t = ((x * x - y * y) >> 20) - 838860;
        y = (x * y >> 19) + 163577;
        x = t;
    }
    out[i] = count;
}

// RUN integrate n=1024 grid=4 block=256 loose=1e-5
extern "C" __global__ void integrate(const unsigned *in, unsigned *out, unsigned n) {
    // Simpson's rule for sin(x) exp(-x) from 0 to a point of its own.
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    double end = (in[i] & 0xffff) / 16384.0 + 0.1, h = end / 16, sum = 0;
    for (int k = 0; k <= 16; k++) {
        double x = k * h, f = sin(x) * exp(-x);
        sum += f * (k == 0 || k == 16 ? 1 : k & 1 ? 4 : 2);
    }
    ((float *)out)[i] = (float)(sum * h / 3);
}

// RUN pendulum n=512 grid=2 block=256 loose=1e-4
extern "C" __global__ void pendulum(const unsigned *in, unsigned *out, unsigned n) {
    // Runge and Kutta's fourth order.
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float angle = (in[i] >> 24) / 256.0f + 0.5f, speed = 0, h = 0.05f;
    for (int step = 0; step < 10; step++) {
        float k1 = speed, l1 = -sinf(angle);
        float k2 = speed + h / 2 * l1, l2 = -sinf(angle + h / 2 * k1);
        float k3 = speed + h / 2 * l2, l3 = -sinf(angle + h / 2 * k2);
        float k4 = speed + h * l3, l4 = -sinf(angle + h * k3);
        angle += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
        speed += h / 6 * (l1 + 2 * l2 + 2 * l3 + l4);
    }
    ((float *)out)[i] = angle + 2.0f;
}

// RUN newton_roots n=1024 grid=4 block=256 loose=1e-5
extern "C" __global__ void newton_roots(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = (float)(in[i] >> 8) + 1.0f, x = v;
    while (true) {
        float next = (2 * x + v / (x * x)) / 3;
        if (next >= x) break;
        x = next;
    }
    ((float *)out)[i] = x + cbrtf(v);
}

// RUN black_scholes n=1024 grid=4 block=256 loose=1e-4
extern "C" __global__ void black_scholes(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 50.0f + (in[i] & 63), k = 50.0f + (in[i] >> 6 & 63), t = 0.25f + (in[i] >> 12 & 7) * 0.25f;
    float r = 0.03f, v = 0.25f, root = v * sqrtf(t);
    auto normal = [](float x) { return 0.5f * erfcf(-0.70710678f * x); };
    float d1 = (logf(s / k) + (r + 0.5f * v * v) * t) / root, d2 = d1 - root;
    ((float *)out)[i] = s * normal(d1) - k * expf(-r * t) * normal(d2);
}

// RUN binomial_option n=256 grid=4 block=64 loose=1e-4
extern "C" __global__ void binomial_option(const unsigned *in, unsigned *out, unsigned n) {
    // One option a block; the tree is folded up in shared memory.
    __shared__ float value[64];
    unsigned t = threadIdx.x;
    float price = 80.0f + (in[blockIdx.x] & 31), up = 1.01f, p = 0.52f;
    value[t] = fmaxf(price * powf(up, 2.0f * t - 63) - 95.0f, 0.0f);
    for (unsigned step = 63; step > 0; step--) {
        __syncthreads();
        float next = t < step ? 0.9999f * (p * value[t + 1] + (1 - p) * value[t]) : 0;
        __syncthreads();
        if (t < step) value[t] = next;
    }
    if (t == 0) ((float *)out)[blockIdx.x] = value[0];
}

// RUN ray_spheres n=1024 grid=4x4 block=8x8 loose=1e-4
extern "C" __global__ void ray_spheres(const unsigned *in, unsigned *out, unsigned n) {
    unsigned x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    float px = x / 16.0f - 1, py = y / 16.0f - 1, nearest = 100.0f, shade = 0.1f;
    for (int s = 0; s < 4; s++) {
        float cx = (in[s] & 255) / 256.0f - 0.5f, cy = (in[s] >> 8 & 255) / 256.0f - 0.5f, cz = 3.0f + s;
        float b = px * cx + py * cy + cz, dd = px * px + py * py + 1;
        float h = b * b - dd * (cx * cx + cy * cy + cz * cz - 0.3f);
        if (h <= 0.02f) continue;
        float t = (b - sqrtf(h)) / dd;
        if (t < nearest) nearest = t, shade = 0.2f + h;
    }
    ((float *)out)[y * 32 + x] = shade;
}
