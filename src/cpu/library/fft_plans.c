/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of FFTW, kept for the next transform of the same kind: those used last, at most so many and
 * so large. Lanes share them. The lock is held while a plan is made, because FFTW makes one at a
 * time; transforms run without it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/library/fft.h"

enum { MAX_PLANS = 64 };
#define MAX_BYTES (256ull << 20)

struct bh__cpu_fft_plan {
    bh__cpu_fft_key key;
    uint64_t hash;
    uint64_t bytes; /* an estimate of its tables */
    void *handle;   /* of FFTW. Owned */
    uint32_t users;
    bh__cpu_fft_plan *next; /* Owned. The one used before this one */
};

static struct {
    pthread_mutex_t lock;
    bh__cpu_fft_plan *first; /* Owned. */
    uint32_t count;
    uint64_t bytes;
} plans = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t hash_of(const bh__cpu_fft_key *key) {
    uint64_t hash = 0xcbf29ce484222325, word;
    _Static_assert(sizeof *key % sizeof word == 0, "the key is whole words");
    for (size_t i = 0; i < sizeof *key; i += sizeof word) {
        memcpy(&word, (const uint8_t *)key + i, sizeof word);
        hash = (hash ^ word) * 0x100000001b3;
        hash ^= hash >> 29;
    }
    return hash;
}

/* FFTW keeps a table of factors for each dimension; a length that is prime needs several. */
static uint64_t bytes_of(const bh__cpu_fft_key *key) {
    uint64_t bytes = 4096;
    for (uint32_t i = 0; i < key->form.axes; i++)
        bytes += (uint64_t)key->form.axis[i].count * (key->form.single ? 16 : 32);
    return bytes;
}

/* Takes it out of the list, and puts it first. */
static bh__cpu_fft_plan *find(const bh__cpu_fft_key *key, uint64_t hash) {
    for (bh__cpu_fft_plan **at = &plans.first; *at; at = &(*at)->next) {
        bh__cpu_fft_plan *found = *at;
        if (found->hash != hash || memcmp(&found->key, key, sizeof *key) != 0) continue;
        *at = found->next;
        found->next = plans.first;
        plans.first = found;
        return found;
    }
    return NULL;
}

static bh__cpu_fft_plan *make(const bh__cpu_fft_key *key, uint64_t hash, uint64_t in,
                              uint64_t out) {
    bh__cpu_fft_plan *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    made->handle = bh__cpu_fftw_plan(key, in, out);
    if (!made->handle) {
        free(made);
        return NULL;
    }
    memcpy(&made->key, key, sizeof *key);
    made->hash = hash;
    made->bytes = bytes_of(key);
    made->next = plans.first;
    plans.first = made;
    plans.count++;
    plans.bytes += made->bytes;
    return made;
}

/* Ends the plan that was used longest ago, of those not in use. False: there is none but the first.
 */
static bool end_one(void) {
    bh__cpu_fft_plan **last = NULL;
    for (bh__cpu_fft_plan **at = &plans.first; *at; at = &(*at)->next) {
        if ((*at)->users == 0 && *at != plans.first) last = at;
    }
    if (!last) return false;
    bh__cpu_fft_plan *gone = *last;
    *last = gone->next;
    plans.count--;
    plans.bytes -= gone->bytes;
    bh__cpu_fftw_end(gone->key.form.single, gone->handle);
    free(gone);
    return true;
}

bh__cpu_fft_plan *bh__cpu_fft_plan_take(const bh__cpu_fft_key *key, uint64_t in, uint64_t out) {
    uint64_t hash = hash_of(key);
    pthread_mutex_lock(&plans.lock);
    bh__cpu_fft_plan *found = find(key, hash);
    if (!found) found = make(key, hash, in, out);
    if (found) found->users++;
    while ((plans.count > MAX_PLANS || plans.bytes > MAX_BYTES) && end_one()) continue;
    pthread_mutex_unlock(&plans.lock);
    return found;
}

void bh__cpu_fft_plan_release(bh__cpu_fft_plan *plan) {
    pthread_mutex_lock(&plans.lock);
    plan->users--;
    pthread_mutex_unlock(&plans.lock);
}

void bh__cpu_fft_plan_execute(const bh__cpu_fft_plan *plan, uint64_t in, uint64_t out) {
    bh__cpu_fftw_execute(&plan->key, plan->handle, in, out);
}
