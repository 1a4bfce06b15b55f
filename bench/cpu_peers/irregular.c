/* SPDX-License-Identifier: Apache-2.0 */
/* Data decide where to go. */
#include <string.h>

#include "peers.h"

enum { PATTERN = 8, RECORD = 64 };

/* Rows of 0 to 31 entries. Returns how many there are in all. */
static size_t fill_starts(uint32_t *starts, size_t n) {
    uint32_t state = 3;
    for (size_t i = 0; i < n; i++) starts[i + 1] = starts[i] + peers_random(&state) % 32;
    return starts[n];
}

static void prepare_spmv(peers_data *d) {
    uint32_t *starts = peers_add(d, PEERS_IN, PEERS_BYTES, (d->n + 1) * sizeof *starts);
    size_t entries = fill_starts(starts, d->n);
    peers_add_words(d, PEERS_IN, entries, (uint32_t)d->n);
    peers_add_floats(d, PEERS_IN, entries, -1, 1);
    peers_add_floats(d, PEERS_IN, d->n, -1, 1);
    peers_add_floats(d, PEERS_OUT, d->n, 0, 0);
}
static void plain_spmv(void *const *b, const peers_data *d) {
    const uint32_t *restrict starts = b[0], *restrict columns = b[1];
    const float *restrict values = b[2], *restrict x = b[3];
    float *restrict y = b[4];
#pragma omp parallel for
    for (size_t row = 0; row < d->n; row++) {
        float sum = 0;
        for (size_t i = starts[row]; i < starts[row + 1]; i++) sum += values[i] * x[columns[i]];
        y[row] = sum;
    }
}
static void launch_spmv(peers_side *s, const peers_data *d) {
    peers_launch(s, "spmv", PEERS_LINE(d->n, 256), B(0), B(1), B(2), B(3), B(4), U(d->n));
}

/* ---- sorting ---- */

static void prepare_sort(peers_data *d) {
    peers_add_words(d, PEERS_INOUT, d->n, 0);
}
static void plain_sort(void *const *b, const peers_data *d) {
    uint32_t *keys = b[0];
    for (size_t run = 2; run <= d->n; run *= 2)
        for (size_t distance = run / 2; distance > 0; distance /= 2) {
#pragma omp parallel for
            for (size_t base = 0; base < d->n; base += 2 * distance) {
                uint32_t *restrict low = keys + base, *restrict high = low + distance;
                bool up = (base & run) == 0;
                for (size_t i = 0; i < distance; i++) {
                    uint32_t less = low[i] < high[i] ? low[i] : high[i];
                    uint32_t more = low[i] < high[i] ? high[i] : low[i];
                    low[i] = up ? less : more;
                    high[i] = up ? more : less;
                }
            }
        }
}
static void launch_sort(peers_side *s, const peers_data *d) {
    for (size_t run = 2; run <= d->n; run *= 2)
        for (size_t distance = run / 2; distance > 0; distance /= 2)
            peers_launch(s, "bitonic_sort", PEERS_LINE(d->n, 256), B(0), U(distance), U(run));
}

/* ---- a graph ---- */

static void search(const uint32_t *starts, const uint32_t *targets, int32_t *levels, size_t n,
                   int32_t level) {
#pragma omp parallel for schedule(static, 1024)
    for (size_t i = 0; i < n; i++) {
        if (__atomic_load_n(&levels[i], __ATOMIC_RELAXED) != level) continue;
        for (size_t e = starts[i]; e < starts[i + 1]; e++)
            if (__atomic_load_n(&levels[targets[e]], __ATOMIC_RELAXED) < 0)
                __atomic_store_n(&levels[targets[e]], level + 1, __ATOMIC_RELAXED);
    }
}

/* The number of levels is found once, so that nobody has to ask for it on the way. */
static void prepare_bfs(peers_data *d) {
    uint32_t *starts = peers_add(d, PEERS_IN, PEERS_BYTES, (d->n + 1) * sizeof *starts);
    size_t edges = fill_starts(starts, d->n);
    starts[1] = starts[1] ? starts[1] : 1; /* the first vertex leads somewhere */
    uint32_t *targets = peers_add_words(d, PEERS_IN, edges + 1, (uint32_t)d->n);
    int32_t *levels = peers_add(d, PEERS_INOUT, PEERS_BYTES, d->n * sizeof *levels);
    memset(levels, 0xff, d->n * sizeof *levels);
    levels[0] = 0;
    int32_t *trial = d->buffers[2].work;
    memcpy(trial, levels, d->n * sizeof *levels);
    for (bool more = true; more; d->steps++) {
        search(starts, targets, trial, d->n, (int32_t)d->steps);
        more = false;
        for (size_t i = 0; i < d->n; i++) more |= trial[i] == (int32_t)d->steps + 1;
    }
}
static void plain_bfs(void *const *b, const peers_data *d) {
    for (size_t level = 0; level < d->steps; level++)
        search(b[0], b[1], b[2], d->n, (int32_t)level);
}
static void launch_bfs(peers_side *s, const peers_data *d) {
    for (size_t level = 0; level < d->steps; level++)
        peers_launch(s, "bfs", PEERS_LINE(d->n, 256), B(0), B(1), B(2), U(level), U(d->n));
}

/* ---- a table ---- */

static void prepare_hash(peers_data *d) {
    uint32_t *keys = peers_add_words(d, PEERS_IN, d->n, (uint32_t)d->n);
    for (size_t i = 0; i < d->n; i++) keys[i] = keys[i] * 7919 + 1;
    peers_add(d, PEERS_INOUT, PEERS_SORTED, 2 * d->n * sizeof(uint32_t));
}
static void plain_hash(void *const *b, const peers_data *d) {
    const uint32_t *keys = b[0];
    uint32_t *table = b[1], mask = (uint32_t)(2 * d->n - 1);
#pragma omp parallel for
    for (size_t i = 0; i < d->n; i++) {
        uint32_t key = keys[i], slot = key * 2654435761u >> 7 & mask;
        for (;;) {
            uint32_t there = 0;
            if (__atomic_compare_exchange_n(&table[slot], &there, key, false, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED) ||
                there == key)
                break;
            slot = (slot + 1) & mask;
        }
    }
}
static void launch_hash(peers_side *s, const peers_data *d) {
    peers_launch(s, "hash_insert", PEERS_LINE(d->n, 256), B(0), B(1), U(2 * d->n - 1), U(d->n));
}

/* ---- texts ---- */

static void prepare_match(peers_data *d) {
    uint32_t state = 5;
    uint8_t *text = peers_add(d, PEERS_IN, PEERS_BYTES, d->n + PATTERN);
    uint8_t *pattern = peers_add(d, PEERS_IN, PEERS_BYTES, PATTERN);
    peers_add(d, PEERS_OUT, PEERS_BYTES, d->n);
    for (size_t i = 0; i < d->n + PATTERN; i++) text[i] = (uint8_t)('a' + peers_random(&state) % 3);
    memcpy(pattern, "abcabcab", PATTERN);
    memcpy(text + d->n / 2, pattern, PATTERN);
}
static void plain_match(void *const *b, const peers_data *d) {
    const uint8_t *text = b[0], *pattern = b[1];
    uint8_t *found = b[2];
#pragma omp parallel for
    for (size_t i = 0; i < d->n; i++) {
        size_t k = 0;
        while (k < PATTERN && text[i + k] == pattern[k]) k++;
        found[i] = k == PATTERN;
    }
}
static void launch_match(peers_side *s, const peers_data *d) {
    peers_launch(s, "string_match", PEERS_LINE(d->n, 256), B(0), B(1), B(2), U(d->n));
}

static void prepare_crc(peers_data *d) {
    peers_add_words(d, PEERS_IN, d->n * RECORD / sizeof(uint32_t), 0);
    uint32_t *table = peers_add(d, PEERS_IN, PEERS_BYTES, 256 * sizeof *table);
    peers_add(d, PEERS_OUT, PEERS_BYTES, d->n * sizeof(uint32_t));
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
    }
}
static void plain_crc(void *const *b, const peers_data *d) {
    const uint8_t *records = b[0];
    const uint32_t *table = b[1];
    uint32_t *out = b[2];
#pragma omp parallel for
    for (size_t i = 0; i < d->n; i++) {
        uint32_t crc = 0xffffffffu;
        for (size_t k = 0; k < RECORD; k++)
            crc = crc >> 8 ^ table[(crc ^ records[i * RECORD + k]) & 255];
        out[i] = ~crc;
    }
}
static void launch_crc(peers_side *s, const peers_data *d) {
    peers_launch(s, "crc32", PEERS_LINE(d->n, 256), B(0), B(1), B(2), U(d->n));
}

static const peers_case cases[] = {
    {"spmv", NULL, {1 << 16, 1 << 13, 1024}, prepare_spmv, plain_spmv, launch_spmv, false},
    {"bitonic_sort", NULL, {1 << 15, 1 << 11, 512}, prepare_sort, plain_sort, launch_sort, false},
    {"bfs", NULL, {1 << 16, 1 << 12, 512}, prepare_bfs, plain_bfs, launch_bfs, false},
    {"hash_insert", NULL, {1 << 17, 1 << 13, 1024}, prepare_hash, plain_hash, launch_hash, false},
    {"string_match",
     NULL,
     {1 << 18, 1 << 14, 2048},
     prepare_match,
     plain_match,
     launch_match,
     true},
    {"crc32", NULL, {1 << 14, 1 << 11, 512}, prepare_crc, plain_crc, launch_crc, true},
};
const peers_cases peers_irregular = {PEERS_IRREGULAR, cases, sizeof cases / sizeof *cases};
