/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic objects of one thread, in local memory: they work without any atomic instruction. */
#include <cuda/atomic>

#include "checks.h"

/* The compiler cannot see where it is. */
template <class T> __device__ T &somewhere(T &object) {
    T *at = &object;
    asm volatile("" : "+l"(at) : : "memory");
    return *at;
}

template <class T> __device__ unsigned number() {
    cuda::atomic<T, cuda::thread_scope_device> object((T)5), &a = somewhere(object);
    T place = (T)1, expected = (T)3;
    cuda::atomic_ref<T, cuda::thread_scope_block> b(somewhere(place));
    bool right = a.load() == (T)5 && a.fetch_add((T)3) == (T)5 && a.fetch_sub((T)2) == (T)8;
    right = right && a.exchange((T)7, cuda::memory_order_relaxed) == (T)6 && a == (T)7;
    right = right && a.fetch_min((T)3) == (T)7 && a.fetch_max((T)4) == (T)3;
    right = right && !a.compare_exchange_strong(expected, (T)1) && expected == (T)4;
    right = right && a.compare_exchange_weak(expected, (T)9) && a.load() == (T)9;
    b.store((T)2, cuda::memory_order_release);
    b += (T)3;
    return right && place == (T)5;
}
template <class T> __device__ unsigned word() {
    T place = (T)12;
    cuda::atomic_ref<T> a(somewhere(place));
    bool right = a.fetch_and((T)10) == (T)12 && a.fetch_or((T)3) == (T)8;
    return right && a.fetch_xor((T)1) == (T)11 && place == (T)10 && number<T>();
}

extern "C" __global__ void local_atomics(unsigned *right) {
    int three[3] = {1, 2, 3};
    cuda::atomic<int *> object(three), &pointer = somewhere(object);
    unsigned sum = word<signed char>() + word<unsigned short>() + word<int>() + word<unsigned>() +
                   word<long long>() + number<float>() + number<double>();
    right[threadIdx.x] = sum + (*pointer++ == 1) + (*pointer.load() == 2);
}
