// SPDX-License-Identifier: Apache-2.0
// The standard library in kernels, by libcu++'s names.
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/chrono>
#include <cuda/std/cmath>
#include <cuda/std/complex>
#include <cuda/std/cstdint>
#include <cuda/std/functional>
#include <cuda/std/limits>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>

template <class T, class Operation>
__device__ T fold(cuda::std::span<const T> values, T start, Operation operation) {
    for (T value : values) start = operation(start, value);
    return start;
}

// RUN standard_spans n=1024 grid=4 block=64 exact
extern "C" __global__ void standard_spans(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    cuda::std::span<const unsigned> all(in, n), part = all.subspan(i * 4, 4);
    cuda::std::span<unsigned> to(out + i * 4, 4);
    to[0] = fold(part, 0u, cuda::std::plus<unsigned>());
    to[1] = fold(part, ~0u, cuda::std::bit_and<>());
    to[2] = fold(part.first(2), 0u, cuda::std::bit_xor<unsigned>()) + (unsigned)part.size_bytes();
    to.back() = part.front() ^ part.back();
}

struct stop {
    float at;
    unsigned index;
};
__device__ static cuda::std::optional<stop> find_first(cuda::std::span<const unsigned> in, unsigned from, unsigned below) {
    for (unsigned k = from; k < in.size(); k++)
        if (in[k] < below) return stop{(float)(in[k] >> 8), k};
    return cuda::std::nullopt;
}

// RUN standard_tuples n=512 grid=2 block=128 exact
extern "C" __global__ void standard_tuples(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    cuda::std::optional<stop> found = find_first({in, n}, i, 1u << 26);
    auto record = cuda::std::make_tuple(i, found ? found->at : -1.0f, found.has_value());
    unsigned index;
    float value;
    cuda::std::tie(index, value, cuda::std::ignore) = record;
    auto [a, b] = cuda::std::make_pair(in[i] & 0xffff, in[i] >> 16);
    if (a < b) cuda::std::swap(a, b);
    cuda::std::array<unsigned, 4> four = {index, (unsigned)(int)value, a, b};
    unsigned sum = found.value_or(stop{0.0f, 7}).index;
    for (unsigned part : four) sum = sum * 31 + part;
    bool less = cuda::std::make_tuple(a, b) < cuda::std::make_tuple(a, b + (in[i] & 1));
    out[2 * i] = sum, out[2 * i + 1] = less + 2 * cuda::std::get<2>(record) + 4 * four.size();
}

// RUN standard_bits n=512 grid=2 block=128 exact
extern "C" __global__ void standard_bits(const unsigned *in, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    cuda::std::uint32_t w = in[i];
    unsigned r = cuda::std::popcount(w) + 100 * cuda::std::countl_zero(w >> (w & 15));
    r = cuda::std::rotl(r, (int)(w & 31)) ^ cuda::std::bit_ceil((w >> 4) & 0xffffff);
    out[2 * i] = r ^ cuda::std::bit_cast<unsigned>((float)(w >> 20));
    out[2 * i + 1] = (unsigned)cuda::std::numeric_limits<int>::max() - cuda::std::numeric_limits<unsigned short>::max() +
                     (unsigned)cuda::std::chrono::nanoseconds(cuda::std::chrono::microseconds(w & 7)).count() +
                     cuda::std::is_same<decltype(r), cuda::std::make_unsigned<int>::type>::value;
}

// RUN standard_complex n=512 grid=2 block=128 loose=2e-4
extern "C" __global__ void standard_complex(const unsigned *in, unsigned *out, unsigned n) {
    using complex = cuda::std::complex<float>;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    complex z((float)(in[i] & 255) / 128.0f - 0.5f, (float)(in[i] >> 8 & 255) / 200.0f + 0.25f);
    complex w = cuda::std::exp(z) * cuda::std::sqrt(z) / (z + 2.0f) - cuda::std::conj(z);
    w += 0.5f * cuda::std::sin(z) + cuda::std::tanh(z);
    w += cuda::std::pow(z, complex(1.5f, 0.5f)) + cuda::std::polar(1.0f, cuda::std::arg(w));
    ((float *)out)[2 * i] = cuda::std::abs(w);
    ((float *)out)[2 * i + 1] = w.real() + cuda::std::norm(z) + cuda::std::log(z).imag();
}
