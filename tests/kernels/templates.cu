// SPDX-License-Identifier: Apache-2.0
// Templates, lambdas, traits, constant expressions: C++ as libraries for kernels are written.

template <class T> struct Sum {
    static __device__ T none() { return T(0); }
    __device__ T operator()(T a, T b) const { return a + b; }
};
template <class T> struct Largest {
    static __device__ T none() { return T(0); }
    __device__ T operator()(T a, T b) const { return a < b ? b : a; }
};

template <class T, int BLOCK, template <class> class Operation> class BlockReduce {
    T *storage;

  public:
    struct Storage { T values[BLOCK]; };
    __device__ explicit BlockReduce(Storage &s) : storage(s.values) {}
    __device__ T operator()(T value) {
        Operation<T> operation;
        storage[threadIdx.x] = value;
        __syncthreads();
#pragma unroll
        for (int half = BLOCK / 2; half > 0; half /= 2) {
            if ((int)threadIdx.x < half)
                storage[threadIdx.x] = operation(storage[threadIdx.x], storage[threadIdx.x + half]);
            __syncthreads();
        }
        T result = storage[0];
        __syncthreads();
        return result;
    }
};

// RUN template_reduce n=1024 grid=4 block=256 exact
extern "C" __global__ void template_reduce(const unsigned *in, unsigned *out, unsigned n) {
    using Sums = BlockReduce<unsigned long long, 256, Sum>;
    using Tops = BlockReduce<unsigned short, 256, Largest>;
    __shared__ union {
        Sums::Storage sums;
        Tops::Storage tops;
    } storage;
    unsigned v = in[blockIdx.x * 256 + threadIdx.x];
    unsigned long long sum = Sums(storage.sums)((unsigned long long)v * v);
    unsigned short top = Tops(storage.tops)((unsigned short)v);
    if (threadIdx.x == 0) {
        out[blockIdx.x * 3] = (unsigned)sum, out[blockIdx.x * 3 + 1] = (unsigned)(sum >> 32);
        out[blockIdx.x * 3 + 2] = top;
    }
}

template <unsigned N> struct Factorial { static constexpr unsigned value = N * Factorial<N - 1>::value; };
template <> struct Factorial<0> { static constexpr unsigned value = 1; };

template <class... Parts> __device__ unsigned mix_all(unsigned first, Parts... rest) {
    unsigned r = first;
    ((r = (r ^ rest) * 16777619u), ...);
    return r;
}

template <int N, class F> __device__ __forceinline__ void repeat(F f) {
    if constexpr (N > 0) {
        repeat<N - 1>(f);
        f(N - 1);
    }
}

// RUN template_meta n=512 grid=2 block=256 exact
extern "C" __global__ void template_meta(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i], sum = 0;
    repeat<6>([&](int k) { sum += __funnelshift_l(v, v, k) / (Factorial<7>::value + k); });
    out[i] = mix_all(sum, v, i, Factorial<10>::value);
}

template <class T, int N> struct Vec {
    T v[N];
    __device__ friend Vec operator+(const Vec &a, const Vec &b) {
        Vec r;
        for (int i = 0; i < N; i++) r.v[i] = a.v[i] + b.v[i];
        return r;
    }
    __device__ friend Vec operator*(const Vec &a, T s) {
        Vec r;
        for (int i = 0; i < N; i++) r.v[i] = a.v[i] * s;
        return r;
    }
    __device__ T dot(const Vec &o) const {
        T sum = T();
        for (int i = 0; i < N; i++) sum += v[i] * o.v[i];
        return sum;
    }
};

// RUN template_vectors n=1024 grid=1 block=256 exact
extern "C" __global__ void template_vectors(const unsigned *in, unsigned *out, unsigned n) {
    Vec<long long, 4> a, b;
    for (int k = 0; k < 4; k++) {
        a.v[k] = (int)in[threadIdx.x * 4 + k];
        b.v[k] = (short)in[(threadIdx.x * 4 + k + 1) % n];
    }
    long long d = (a + b * 3).dot(b);
    out[threadIdx.x * 2] = (unsigned)d, out[threadIdx.x * 2 + 1] = (unsigned)(d >> 32);
}

struct Rational {
    long long top, bottom;
    __device__ Rational(long long t, long long b) : top(t), bottom(b) {
        long long x = t < 0 ? -t : t, y = b;
        while (y) {
            long long r = x % y;
            x = y, y = r;
        }
        if (x > 1) top /= x, bottom /= x;
    }
    __device__ Rational operator+(const Rational &o) const { return Rational(top * o.bottom + o.top * bottom, bottom * o.bottom); }
};

// RUN rationals n=256 grid=1 block=128 exact
extern "C" __global__ void rationals(const unsigned *in, unsigned *out, unsigned n) {
    Rational sum(0, 1);
    for (unsigned k = 1; k <= 5; k++) sum = sum + Rational((int)(in[threadIdx.x] >> 4 * k & 15) - 8, k * 2 + 1);
    out[2 * threadIdx.x] = (unsigned)sum.top, out[2 * threadIdx.x + 1] = (unsigned)sum.bottom;
}

template <class Key> __device__ void sort_pairs(Key *keys, int count) {
    for (int i = 1; i < count; i++) {
        Key key = keys[i];
        int j = i;
        for (; j > 0 && key < keys[j - 1]; j--) keys[j] = keys[j - 1];
        keys[j] = key;
    }
}
struct Pair {
    unsigned char first;
    unsigned short second;
    unsigned index : 12, spare : 20;
    __device__ bool operator<(const Pair &o) const { return first != o.first ? first < o.first : second > o.second; }
};

// RUN struct_sort n=512 grid=1 block=32 exact
extern "C" __global__ void struct_sort(const unsigned *in, unsigned *out, unsigned n) {
    Pair pairs[16];
    for (unsigned k = 0; k < 16; k++) {
        unsigned v = in[threadIdx.x * 16 + k];
        pairs[k].first = v & 7, pairs[k].second = v >> 16, pairs[k].index = k, pairs[k].spare = v >> 9;
    }
    sort_pairs(pairs, 16);
    for (unsigned k = 0; k < 16; k++) out[threadIdx.x * 16 + k] = pairs[k].index << 20 | pairs[k].spare;
}
