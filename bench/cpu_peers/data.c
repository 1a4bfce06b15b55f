/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a case, and whether results are right. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers.h"
#include "support/figures.h"

static void *need_memory(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p) bench_wrong("no memory for %zu bytes", bytes);
    memset(p, 0, bytes);
    return p;
}

void *peers_add(peers_data *data, peers_role role, peers_kind kind, size_t bytes) {
    if (data->count == PEERS_BUFFERS) bench_wrong("a case has more than %d buffers", PEERS_BUFFERS);
    peers_buffer *b = &data->buffers[data->count++];
    *b = (peers_buffer){.role = role, .kind = kind, .bytes = bytes, .first = need_memory(bytes)};
    b->work = role == PEERS_IN ? b->first : need_memory(bytes);
    b->expected = role == PEERS_IN ? NULL : need_memory(bytes);
    return b->first;
}

uint32_t peers_random(uint32_t *state) {
    uint32_t x = *state += 0x9e3779b9u;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

void *peers_add_floats(peers_data *data, peers_role role, size_t count, float least, float most) {
    float *values = peers_add(data, role, PEERS_FLOATS, count * sizeof *values);
    uint32_t state = (uint32_t)data->count;
    for (size_t i = 0; i < count; i++)
        values[i] = least + (most - least) * (float)(peers_random(&state) >> 8) / 16777216.0f;
    return values;
}

uint32_t *peers_add_words(peers_data *data, peers_role role, size_t count, uint32_t limit) {
    uint32_t *values = peers_add(data, role, PEERS_BYTES, count * sizeof *values);
    uint32_t state = (uint32_t)data->count;
    for (size_t i = 0; i < count; i++) {
        values[i] = peers_random(&state);
        if (limit) values[i] %= limit;
    }
    return values;
}

void peers_reset(peers_data *data) {
    for (size_t i = 0; i < data->count; i++) {
        peers_buffer *b = &data->buffers[i];
        if (b->role == PEERS_INOUT || b->role == PEERS_SCRATCH) memcpy(b->work, b->first, b->bytes);
    }
}

void peers_expect(peers_data *data) {
    for (size_t i = 0; i < data->count; i++) {
        peers_buffer *b = &data->buffers[i];
        if (b->expected) memcpy(b->expected, b->work, b->bytes);
    }
}

void peers_release(peers_data *data) {
    for (size_t i = 0; i < data->count; i++) {
        peers_buffer *b = &data->buffers[i];
        if (b->work != b->first) free(b->work);
        free(b->first);
        free(b->expected);
    }
    *data = (peers_data){0};
}

/* ---- comparing ---- */

static double value_at(const peers_buffer *b, const void *values, size_t i) {
    return b->kind == PEERS_DOUBLES ? ((const double *)values)[i]
                                    : (double)((const float *)values)[i];
}

/* Sums of many values differ by their order; a wrong result differs by more. */
static bool nearly_equal(const peers_buffer *b, const void *got, char *why, size_t capacity) {
    size_t count = b->bytes / (b->kind == PEERS_DOUBLES ? sizeof(double) : sizeof(float));
    double mean = 0;
    for (size_t i = 0; i < count; i++) mean += fabs(value_at(b, b->expected, i)) / (double)count;
    for (size_t i = 0; i < count; i++) {
        double wanted = value_at(b, b->expected, i), is = value_at(b, got, i);
        if (fabs(is - wanted) <= 2e-4 * (fabs(wanted) + mean)) continue;
        snprintf(why, capacity, "value %zu of %zu is %.9g instead of %.9g", i, count, is, wanted);
        return false;
    }
    return true;
}

static int compare_words(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static bool equal(const peers_buffer *b, const void *got, char *why, size_t capacity) {
    if (memcmp(got, b->expected, b->bytes) == 0) return true;
    const uint8_t *is = got, *wanted = b->expected;
    size_t i = 0;
    while (is[i] == wanted[i]) i++;
    snprintf(why, capacity, "byte %zu of %zu is %u instead of %u", i, b->bytes, is[i], wanted[i]);
    return false;
}

bool peers_is_right(const peers_buffer *b, void *got, char *why, size_t capacity) {
    if (b->role == PEERS_IN || b->role == PEERS_SCRATCH) return true;
    if (b->kind == PEERS_FLOATS || b->kind == PEERS_DOUBLES)
        return nearly_equal(b, got, why, capacity);
    if (b->kind == PEERS_SORTED) {
        qsort(got, b->bytes / sizeof(uint32_t), sizeof(uint32_t), compare_words);
        qsort(b->expected, b->bytes / sizeof(uint32_t), sizeof(uint32_t), compare_words);
    }
    return equal(b, got, why, capacity);
}
