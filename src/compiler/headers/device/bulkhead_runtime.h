/* SPDX-License-Identifier: Apache-2.0 */
/* Runtime functions of the device: printf, assert, the heap, clocks and traps. */
#ifndef BULKHEAD_RUNTIME_H
#define BULKHEAD_RUNTIME_H

#include "bulkhead_types.h"

/* clang packs the arguments and calls the device's vprintf. */
extern "C" __device__ int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern "C" __device__ int vprintf(const char *format, const char *arguments);
extern "C" __device__ __attribute__((noreturn)) void __assertfail(const char *condition,
                                                                  const char *file, unsigned line,
                                                                  const char *function,
                                                                  size_t char_size);
/* For assertions of the host part. */
__host__ __attribute__((noreturn)) void __assertfail(const char *condition, const char *file,
                                                     unsigned line, const char *function,
                                                     size_t char_size);

/* The kernel heap. */
extern "C" __device__ void *malloc(size_t bytes);
extern "C" __device__ void free(void *memory);

/* Inline, so that a module contains only the functions that it uses. With the host's library,
 * clang's wrapper of <new> has them. */
#ifndef __BULKHEAD_HOSTED__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winline-new-delete"
inline __device__ void *operator new(size_t bytes) {
    return malloc(bytes);
}
inline __device__ void *operator new[](size_t bytes) {
    return malloc(bytes);
}
inline __device__ void operator delete(void *memory) noexcept {
    free(memory);
}
inline __device__ void operator delete[](void *memory) noexcept {
    free(memory);
}
inline __device__ void operator delete(void *memory, size_t) noexcept {
    free(memory);
}
inline __device__ void operator delete[](void *memory, size_t) noexcept {
    free(memory);
}
#pragma clang diagnostic pop
/* NVIDIA's compilers have these without a header. */
inline __device__ void *operator new(size_t, void *at) noexcept {
    return at;
}
inline __device__ void *operator new[](size_t, void *at) noexcept {
    return at;
}
inline __device__ void operator delete(void *, void *) noexcept {
}
inline __device__ void operator delete[](void *, void *) noexcept {
}
#endif

__BH_DEVICE void __trap() {
    asm volatile("trap;");
}
__BH_DEVICE void __brkpt() {
    asm volatile("brkpt;");
}
__BH_DEVICE __attribute__((noreturn)) void abort() {
    asm volatile("trap;");
    __builtin_unreachable();
}

/* What tables of virtual functions hold for pure ones. */
extern "C" inline __device__ void __cxa_pure_virtual() {
    __trap();
}
extern "C" inline __device__ void __cxa_deleted_virtual() {
    __trap();
}

__BH_DEVICE long clock() {
    unsigned result;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(result) : : "memory");
    return (long)result;
}
__BH_DEVICE long long clock64() {
    long long result;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(result) : : "memory");
    return result;
}
__BH_DEVICE unsigned long long globaltimer() {
    unsigned long long result;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(result) : : "memory");
    return result;
}
__BH_DEVICE unsigned long long __globaltimer() {
    return globaltimer();
}
__BH_DEVICE void __nanosleep(unsigned nanoseconds) {
    asm volatile("nanosleep.u32 %0;" : : "r"(nanoseconds) : "memory");
}

#endif

/* As in C, NDEBUG applies to each inclusion. __builtin_FUNCTION is a plain string; __func__ would
 * be a variable with a dot in its name, which ptxas does not accept in debug information. */
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition)                                                                          \
    ((condition)                                                                                   \
         ? (void)0                                                                                 \
         : __assertfail(#condition, __FILE__, __LINE__, __builtin_FUNCTION(), sizeof(char)))
#endif
