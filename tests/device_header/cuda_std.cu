/* SPDX-License-Identifier: Apache-2.0 */
/* libcu++'s part of the headers: the standard library in cuda::std, atomic objects. 2 blocks of 64. */
#include <cuda/atomic>
#include <cuda/std/algorithm>
#include <cuda/std/array>
#include <cuda/std/atomic>
#include <cuda/std/bit>
#include <cuda/std/chrono>
#include <cuda/std/complex>
#include <cuda/std/cstdint>
#include <cuda/std/functional>
#include <cuda/std/iterator>
#include <cuda/std/limits>
#include <cuda/std/ratio>
#include <cuda/std/span>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>
#include <cuda/std/utility>
#if !defined(__BULKHEAD_HOSTED__) || __cplusplus >= 201703L
#define HAS_OPTIONAL 1
#include <cuda/std/optional>
#endif

#include "checks.h"

namespace cs = cuda::std;

struct counted {
    int *alive;
    __device__ explicit counted(int *at) : alive(at) {
        ++*alive;
    }
    __device__ counted(const counted &from) : alive(from.alive) {
        ++*alive;
    }
    __device__ ~counted() {
        --*alive;
    }
};

KERNEL(tuples) {
    cs::tuple<int, float> pair = cs::make_tuple(hide(3), hide(4.0f));
    int x;
    float y;
    cs::tie(x, y) = pair;
    EXPECT(x == 3 && y == 4.0f && cs::get<float>(pair) == 4.0f);
    auto all = cs::tuple_cat(pair, cs::make_tuple(hide(5u)), cs::tuple<long>(6));
    static_assert(cs::tuple_size<decltype(all)>::value == 4, "");
    static_assert(cs::is_same<cs::tuple_element<3, decltype(all)>::type, long>::value, "");
    EXPECT(cs::apply([](int a, float b, unsigned c, long d) { return a + (int)b + (int)c + d; },
                     all) == 18);
    EXPECT(cs::make_tuple(1, hide(2)) < cs::make_tuple(1, 3) && pair == cs::make_tuple(3, 4.0f));
    cs::get<0>(pair) = 9;
    cs::tuple<long, double> wide = pair;
    EXPECT(cs::get<0>(wide) == 9 && cs::get<1>(wide) == 4.0);
    cs::pair<int, char> p = cs::make_pair(hide(1), 'c'), q(2, 'd');
    cs::swap(p, q);
    EXPECT(p.first == 2 && q.second == 'c' && q < p && cs::get<1>(p) == 'd');
    cs::array<int, 3> a = {{1, hide(2), 3}};
    a[0] = a[1] = a[2] = hide(4);
    EXPECT(a[0] + a.back() + (int)a.size() == 11 && cs::get<1>(a) == 4);
    int plain[] = {1, 2, 3, 4};
    cs::span<int> s(plain);
    cs::span<const int, 4> fixed(plain);
    cs::span<const int> view = s.subspan(1, 2), tail = fixed.last(1);
    EXPECT(view.size() == 2 && view[1] == 3 && tail.front() == 4 && fixed.size_bytes() == 16);
    EXPECT(cs::distance(cs::begin(plain), cs::end(plain)) == 4 && cs::span<int>(a).size() == 3);
    EXPECT(cs::min(hide(3), 2) == 2 && cs::max(3, hide(2)) == 3 && cs::greater<>()(3, hide(2)));
    EXPECT(cs::popcount(hide(0xffu)) == 8 && cs::rotr(hide(1u), 1) == 0x80000000u);
    EXPECT(cs::countl_zero((unsigned char)hide(1)) == 7 && cs::bit_floor(hide(100u)) == 64u);
    EXPECT(cs::chrono::nanoseconds(cs::chrono::milliseconds(hide(2))).count() == 2000000);
    EXPECT(cs::chrono::microseconds(1) + cs::chrono::nanoseconds(1) > cs::chrono::nanoseconds(1000));
    auto now = cs::chrono::system_clock::now();
    EXPECT(cs::chrono::system_clock::now() >= now);
    cs::complex<double> z(hide(3.0), hide(4.0)), w = z * z / z;
    EXPECT(cs::abs(z) == 5.0 && cs::norm(z) == 25.0 && w.real() == 3.0 && w.imag() == 4.0);
    EXPECT((z + 1.0).real() == 4.0 && (2.0 * z).imag() == 8.0 && cs::conj(z).imag() == -4.0);
}

KERNEL(optionals) {
#ifdef HAS_OPTIONAL
    cs::optional<int> none, some = hide(5);
    EXPECT(!none && some && *some == 5 && none.value_or(hide(7)) == 7);
    none = some;
    some = cs::nullopt;
    EXPECT(none == 5 && some == cs::nullopt && none != some && !(some == none));
#ifndef __BULKHEAD_HOSTED__ /* the host's has parts for the host alone */
    cs::array<int, 2> filled;
    filled.fill(hide(8));
    EXPECT(none.value() == 5 && filled[0] + filled[1] == 16);
    int alive = 0;
    {
        cs::optional<counted> a(cs::in_place_t(), &alive), b = a;
        EXPECT(alive == 2);
        b.reset();
        EXPECT(alive == 1);
    }
    EXPECT(alive == 0);
#endif
#endif
    (void)failed;
}

/* Every operation on each size, in one thread: what it returns and what it leaves. */
template <class T, cuda::thread_scope Scope> __device__ void numbers(int *failed) {
    cuda::atomic<T, Scope> a((T)5);
    EXPECT(a.load() == (T)5 && a.fetch_add((T)3) == (T)5 && a.fetch_sub((T)2) == (T)8 && a == (T)6);
    a = (T)9;
    EXPECT(a.exchange((T)7, cuda::memory_order_acq_rel) == (T)9);
    EXPECT(a.fetch_min((T)3) == (T)7 && a.fetch_max((T)4) == (T)3 && a.load() == (T)4);
    T expected = (T)3;
    EXPECT(!a.compare_exchange_strong(expected, (T)1) && expected == (T)4);
    EXPECT(a.compare_exchange_weak(expected, (T)1, cuda::memory_order_release,
                                   cuda::memory_order_relaxed));
    EXPECT((a += (T)2) == (T)3 && (a -= (T)1) == (T)2 && a.is_lock_free());
    a.store((T)100, cuda::memory_order_release);
    a.wait((T)1);
    a.notify_all();
    EXPECT(a.load(cuda::memory_order_acquire) == (T)100);
}
template <class T> __device__ void words(int *failed) {
    numbers<T, cuda::thread_scope_system>(failed);
    T object = (T)12;
    cuda::atomic_ref<T, cuda::thread_scope_device> a(object);
    EXPECT(a++ == (T)12 && ++a == (T)14 && a-- == (T)14 && --a == (T)12);
    EXPECT(a.fetch_and((T)10) == (T)12 && a.fetch_or((T)3) == (T)8 && a.fetch_xor((T)1) == (T)11);
    EXPECT((a &= (T)6) == (T)2 && (a |= (T)4) == (T)6 && (a ^= (T)6) == (T)0 && object == (T)0);
    a -= (T)1;
    EXPECT(object == (T)-1 && (a.fetch_min((T)1), object == ((T)-1 < (T)0 ? (T)-1 : (T)1)));
}

struct point {
    short x, y;
};
__device__ cuda::atomic<unsigned, cuda::thread_scope_device> arrivals;

KERNEL(atomic_types) {
    words<signed char>(failed);
    words<unsigned char>(failed);
    words<short>(failed);
    words<unsigned short>(failed);
    words<int>(failed);
    words<unsigned>(failed);
    words<long>(failed);
    words<unsigned long long>(failed);
    numbers<float, cuda::thread_scope_block>(failed);
    numbers<double, cuda::thread_scope_thread>(failed);
    int three[3] = {1, 2, 3};
    cuda::atomic<int *> at(three);
    EXPECT(*at++ == 1 && *at.load() == 2 && *(at += 1) == 3 && at.fetch_sub(2) == three + 2);
    cs::atomic<point> p(point{1, 2});
    EXPECT(p.exchange(point{3, 4}).y == 2 && p.load().x == 3);
    cs::atomic<bool> flag(false);
    EXPECT(!flag.exchange(true) && flag);
    cs::atomic_int free_function(4);
    EXPECT(cs::atomic_fetch_add(&free_function, 2) == 4 && cs::atomic_load(&free_function) == 6);
    /* Neighbours of a byte that changes keep what others write. */
    __shared__ unsigned char bytes[4];
    if (threadIdx.x < 4) bytes[threadIdx.x] = 0;
    __syncthreads();
    cuda::atomic_ref<unsigned char, cuda::thread_scope_block> mine(bytes[threadIdx.x & 3]);
    mine.fetch_add(1, cuda::memory_order_relaxed);
    __syncthreads();
    EXPECT(bytes[threadIdx.x & 3] == 16);
    arrivals.fetch_add(1, cuda::memory_order_relaxed);
    while (arrivals.load(cuda::memory_order_acquire) % 128 != 0) {
    }
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_block);
    cs::atomic_thread_fence(cs::memory_order_acquire);
}
