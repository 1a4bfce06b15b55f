/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of large amounts that are not read soon: past the caches, so that the target is not
 * fetched first. One processor copies about 1.5 times as fast this way. */
#ifndef BH_BASE_STREAM_COPY_H
#define BH_BASE_STREAM_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>

static inline void bh__stream_copy(void *target, const void *source, size_t bytes) {
    enum { LINE = 64 };
    uint8_t *to = target;
    const uint8_t *from = source;
    size_t head = (LINE - (uintptr_t)to % LINE) % LINE;
    if (head > bytes) head = bytes;
    memcpy(to, from, head);
    to += head;
    from += head;
    bytes -= head;
    for (; bytes >= LINE; to += LINE, from += LINE, bytes -= LINE) {
        const __m128i *in = (const __m128i *)(const void *)from;
        __m128i *out = (__m128i *)(void *)to;
        __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
        __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    memcpy(to, from, bytes);
    _mm_sfence();
}
#else
static inline void bh__stream_copy(void *target, const void *source, size_t bytes) {
    memcpy(target, source, bytes);
}
#endif

#endif
