/* SPDX-License-Identifier: Apache-2.0 */
/* All hostilities, and which of them this worker was given. */
#include <stdio.h>
#include <string.h>

#include "hostile.h"

enum { MAX_CHOSEN = 4, SLOW_ONE_IN = 64 };

static const hostility *chosen[MAX_CHOSEN];
static size_t chosen_count;

static size_t table_size(void) {
    return scribble_count + talk_count + lie_count + end_count;
}

static const hostility *table_at(size_t i) {
    if (i < scribble_count) return &scribbles[i];
    i -= scribble_count;
    if (i < talk_count) return &talks[i];
    i -= talk_count;
    return i < lie_count ? &lies[i] : &ends[i - lie_count];
}

static const hostility *named(const char *name) {
    for (size_t i = 0; i < table_size(); i++)
        if (strcmp(table_at(i)->name, name) == 0) return table_at(i);
    return NULL;
}

static void choose_some(void) {
    size_t wanted = 1 + below(MAX_CHOSEN);
    while (chosen_count < wanted) {
        const hostility *one = table_at(below((uint32_t)table_size()));
        if (one->slow && !one_in(SLOW_ONE_IN)) continue;
        chosen[chosen_count++] = one;
    }
    if (chosen[0]->boot) chosen_count = 1;
}

bool choose(uint64_t seed, const char *only, char *names, size_t bytes) {
    atomic_store(&hostile.chance.state, seed);
    hostile.orders_before = below(12);
    hostile.awake_after_ms = one_in(3) ? 0 : below(60);
    if (!only && one_in(4)) return false;
    if (only) {
        hostile.orders_before = hostile.awake_after_ms = 0;
        chosen[0] = named(only);
        chosen_count = chosen[0] != NULL;
    } else {
        choose_some();
    }
    size_t used = 0;
    for (size_t i = 0; i < chosen_count && used < bytes; i++)
        used += (size_t)snprintf(names + used, bytes - used, " %s", chosen[i]->name);
    return chosen_count > 0;
}

static bool has_hook(const hostility *one, size_t offset) {
    void (*hook)(void);
    memcpy(&hook, (const char *)one + offset, sizeof hook);
    return hook != NULL;
}

const hostility *pick_hook(size_t offset) {
    const hostility *found = NULL;
    uint32_t count = 0;
    for (size_t i = 0; i < chosen_count; i++)
        if (has_hook(chosen[i], offset) && one_in(++count)) found = chosen[i];
    return found;
}
