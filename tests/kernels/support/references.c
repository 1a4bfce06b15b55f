/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of integers must compute, in the plainest C. */
#include "kernels.h"

#define REFERENCE(name) static void name(const uint32_t *in, uint32_t *out, uint32_t n)
#define EACH(i, count)  for (uint32_t i = 0; i < (count); i++)

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int ascending_signed(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void sort_parts(const uint32_t *in, uint32_t *out, uint32_t n, uint32_t part,
                       int (*order)(const void *, const void *)) {
    memcpy(out, in, n * sizeof *out);
    for (uint32_t i = 0; i < n; i += part) qsort(out + i, part, sizeof *out, order);
}

REFERENCE(reduce_shared) {
    EACH(i, n) out[i / 256] += in[i];
}

REFERENCE(reduce_shuffle) {
    EACH(i, n) out[0] += in[i];
}

REFERENCE(reduce_last_block) {
    EACH(i, n) {
        out[0] += in[i] ^ i;
        out[1 + i / 128 % 12] += in[i] ^ i;
    }
}

REFERENCE(scan_hillis) {
    EACH(i, n) out[i] = in[i] + (i % 256 ? out[i - 1] : 0);
}

REFERENCE(scan_blelloch) {
    EACH(i, n) out[i] = i % 512 ? out[i - 1] + in[i - 1] : 0;
}

REFERENCE(scan_lookback) {
    EACH(i, n) out[i] = in[i] + (i ? out[i - 1] : 0);
}

REFERENCE(scan_segmented) {
    EACH(i, n) out[i] = (in[i] >> 8) + (i % 256 && (in[i] & 7) ? out[i - 1] : 0);
}

REFERENCE(compact_block) {
    uint32_t count = 0;
    EACH(i, n) if (in[i] % 3 == 0) out[count++] = in[i];
}

REFERENCE(compact_ballot) {
    uint32_t count = 0;
    EACH(i, n) {
        if (i % 128 == 0) count = i;
        if (in[i] & 0x10) out[count++] = in[i];
    }
}

REFERENCE(run_length) {
    uint32_t at = 0, half = n / 2;
    EACH(i, half) {
        at += i > 0 && in[i] >> 31 != in[i - 1] >> 31;
        out[at] = (in[i] >> 31) + 1;
        out[half + at]++;
    }
}

REFERENCE(sort_bitonic) {
    sort_parts(in, out, n, 512, ascending);
}

REFERENCE(sort_odd_even) {
    sort_parts(in, out, n, 256, ascending_signed);
}

REFERENCE(sort_radix) {
    sort_parts(in, out, n, 256, ascending);
}

REFERENCE(sort_merge) {
    EACH(i, n) out[i] = (in[i] & ~1023u) | i;
    qsort(out, n, sizeof *out, ascending);
}

REFERENCE(recursion_quick_sort) {
    sort_parts(in, out, n, 32, ascending);
}

REFERENCE(heap_trees) {
    sort_parts(in, out, n, 16, ascending);
}

REFERENCE(top_k) {
    sort_parts(in, out, n, n, ascending);
    uint32_t best[16];
    EACH(i, 16) best[i] = out[n - 1 - i];
    memset(out, 0, n * sizeof *out);
    memcpy(out, best, sizeof best);
}

REFERENCE(quick_select) {
    sort_parts(in, out, n, n, ascending);
    uint32_t quartiles[] = {out[n / 4], out[n / 2], out[n / 4 * 3]};
    memset(out, 0, n * sizeof *out);
    memcpy(out, quartiles, sizeof quartiles);
}

REFERENCE(histogram_global) {
    EACH(i, n) out[in[i] >> 24]++;
}

REFERENCE(histogram_shared) {
    EACH(i, 4 * n) out[in[i / 4] >> i % 4 * 8 & 255]++;
}

REFERENCE(histogram_match) {
    EACH(i, n) out[in[i] % 11]++;
}

REFERENCE(histogram_private) {
    EACH(i, n) out[i / (n / 2) * 64 + (in[i] & 63)]++;
}

REFERENCE(histogram_packed) {
    EACH(i, n) out[in[i] & 63]++;
}

REFERENCE(aggregated_atomics) {
    EACH(i, n) if (in[i] % 5 == 0) out[1 + out[0]++] = 5;
}

REFERENCE(transpose) {
    EACH(i, n) out[i % 64 * 64 + i / 64] = in[i];
}

REFERENCE(transpose_warp) {
    EACH(i, n) EACH(bit, 32) out[i / 32 * 32 + bit] |= (in[i] >> bit & 1) << i % 32;
}

REFERENCE(matmul_naive) {
    EACH(i, n) EACH(k, 32) out[i] += in[i / 32 * 32 + k] * in[k * 32 + i % 32];
}

REFERENCE(matmul_tiled) {
    EACH(i, n) EACH(k, 64) {
        int32_t a = (int32_t)in[i / 64 * 64 + k] >> 20, b = (int32_t)in[k * 64 + i % 64] >> 22;
        out[i] += (uint32_t)(a * b);
    }
}

REFERENCE(wmma_half) {
    EACH(i, n) {
        float sum = 0;
        EACH(k, 32) {
            int a = (int)(in[i / 32 * 32 + k] & 15) - 8, b = (int)(in[k * 32 + i % 32] >> 28) - 8;
            sum += (float)(a * b);
        }
        memcpy(&out[i], &sum, sizeof sum);
    }
}

REFERENCE(mma_m16n8k16) {
    EACH(i, 512) {
        const uint32_t *a = in + i / 128 * 256 + i / 8 % 16 * 16, *b = in + i / 128 * 256 + i % 8;
        float sum = (float)(i % 2 + i / 64 % 2 * 2);
        EACH(k, 16) sum += (float)(((int)(a[k] & 31) - 16) * (int)(b[k * 8] >> 27));
        memcpy(&out[i], &sum, sizeof sum);
    }
    (void)n;
}

REFERENCE(wgmma_half) {
    EACH(i, 512) EACH(k, 16) out[i] += (in[i / 8 * 16 + k] & 15) * (in[i % 8 * 16 + k] >> 8 & 15);
    (void)n;
}

REFERENCE(walsh) {
    EACH(i, n) EACH(k, 256) {
        uint32_t v = in[i / 256 * 256 + k];
        out[i] += __builtin_parity(i % 256 & k) ? 0 - v : v;
    }
}

REFERENCE(crc32) {
    EACH(i, n / 4) {
        uint32_t crc = ~0u;
        EACH(bit, 128) {
            crc ^= in[4 * i + bit / 32] >> bit % 32 & 1;
            crc = crc & 1 ? 0xedb88320u ^ crc >> 1 : crc >> 1;
        }
        out[i] = ~crc;
    }
}

REFERENCE(hash_map) {
    EACH(i, n) EACH(k, n) out[i] += in[i] % 500 == in[k] % 500;
}

REFERENCE(spin_lock) {
    EACH(i, n) out[0] += in[i];
    out[1] = n;
}

REFERENCE(flags_chain) {
    EACH(i, n) out[i] = (i < 128 ? 7 : out[i - 128]) * 33 + in[i];
}

REFERENCE(cluster_sum) {
    EACH(i, n) EACH(k, 4) out[i / 1024 * 4 + k] += in[i];
    EACH(k, 8) out[k] += k % 4;
}

REFERENCE(tensor_mirror) {
    for (uint32_t i = 0; i < n; i++) out[n - 1 - i] = in[i] + n;
}

REFERENCE(tensor_sum) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = n / 64 - 7 + i / 64 % 8;
        if (row < n / 64) out[row * 64 + i % 64] += in[i];
    }
}

REFERENCE(cluster_histogram) {
    EACH(i, n) out[in[i] & 127]++;
}

REFERENCE(bulk_copy) {
    EACH(i, n) out[i] = in[i / 512 * 512 + 511 - i % 512] + i % 512;
}

REFERENCE(two_stages) {
    EACH(i, n) out[i] = in[i] + 3 * in[i / 512 * 512 + (i + 1) % 512];
}

REFERENCE(block_copies) {
    EACH(i, n) out[i] = in[i / 256 * 256 + 255 - i % 256];
}

REFERENCE(coalesced_counts) {
    EACH(i, n) if (in[i] % 10 < 4) {
        out[0]++;
        out[1] += in[i] % 10;
    }
}

REFERENCE(tile_scan) {
    EACH(i, n) {
        uint32_t all = 0, before = 0;
        for (uint32_t k = i / 32 * 32; k <= i; k++) {
            all += in[k];
            before += k < i ? in[k] & 0xff : 0;
        }
        out[i] = all ^ before;
    }
}

REFERENCE(integral_image) {
    EACH(i, n) EACH(k, n) if (k / 64 <= i / 64 && k % 64 <= i % 64) out[i] += in[k] & 255;
}

REFERENCE(recursion_queens) {
    static const uint32_t solutions[] = {0, 1, 1, 1, 1, 0};
    memcpy(out, solutions, sizeof solutions);
    (void)in, (void)n;
}

REFERENCE(bit_packing) {
    EACH(i, n) out[i] = in[i] & 2047;
}

REFERENCE(parse_numbers) {
    EACH(i, n) {
        uint32_t v = in[i] >> (i & 31), length = 1;
        for (uint32_t rest = v; rest > 9; rest /= 10) length++;
        out[i] = v * 16 + length;
    }
}

REFERENCE(leap_frog) {
    EACH(i, n) out[i] = i ? out[i - 1] * 1664525u + 1013904223u : in[0];
}

REFERENCE(complex_mandelbrot) {
    EACH(i, n) {
        double cx = ((double)(i % 64) - 48) / 32, cy = ((double)(i / 64) - 32) / 32;
        double x = cx, y = cy, kept;
        while (out[i] < 4 && x * x + y * y < 4) {
            kept = x;
            x = x * x - y * y + cx;
            y = 2 * kept * y + cy;
            out[i]++;
        }
    }
    (void)in;
}

#define ROW(name)                                                                                  \
    { #name, name }
static const struct {
    const char *name;
    reference_fn *compute;
} references[] = {
    ROW(reduce_shared),
    ROW(reduce_shuffle),
    ROW(reduce_last_block),
    ROW(scan_hillis),
    ROW(scan_blelloch),
    ROW(scan_lookback),
    ROW(scan_segmented),
    ROW(compact_block),
    ROW(compact_ballot),
    ROW(run_length),
    ROW(sort_bitonic),
    ROW(sort_odd_even),
    ROW(sort_radix),
    ROW(sort_merge),
    ROW(recursion_quick_sort),
    ROW(heap_trees),
    ROW(top_k),
    ROW(quick_select),
    ROW(histogram_global),
    ROW(histogram_shared),
    ROW(histogram_match),
    ROW(histogram_private),
    ROW(histogram_packed),
    ROW(aggregated_atomics),
    ROW(transpose_warp),
    ROW(matmul_naive),
    ROW(matmul_tiled),
    ROW(wmma_half),
    ROW(mma_m16n8k16),
    ROW(wgmma_half),
    ROW(walsh),
    ROW(crc32),
    ROW(hash_map),
    ROW(spin_lock),
    ROW(flags_chain),
    ROW(cluster_sum),
    ROW(cluster_histogram),
    ROW(tensor_mirror),
    ROW(tensor_sum),
    ROW(bulk_copy),
    ROW(two_stages),
    ROW(block_copies),
    ROW(coalesced_counts),
    ROW(tile_scan),
    ROW(integral_image),
    ROW(recursion_queens),
    ROW(bit_packing),
    ROW(parse_numbers),
    ROW(complex_mandelbrot),
    ROW(leap_frog),
    {"transpose_plain", transpose},
    {"transpose_tiled", transpose},
};

reference_fn *reference_of(const char *name) {
    for (size_t i = 0; i < sizeof references / sizeof *references; i++) {
        if (strcmp(references[i].name, name) == 0) return references[i].compute;
    }
    return NULL;
}
