/* SPDX-License-Identifier: Apache-2.0 */
/* The engine for machines without libFuzzer: replays a corpus, and mutates it. */
#ifndef BH_TESTS_FUZZ_ENGINE_H
#define BH_TESTS_FUZZ_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fuzz.h"

enum { INPUT_MAX = 1 << 16 }; /* bytes of an input that was mutated */

typedef struct input {
    uint8_t *bytes; /* Owned */
    size_t size;
} input;

typedef struct corpus {
    input *list; /* Owned */
    size_t count, room;
} corpus;

void corpus_add(corpus *to, const uint8_t *bytes, size_t size);
void corpus_free(corpus *all);

typedef struct mutation {
    const char *name;    /* of the target */
    const char *crashes; /* the folder for inputs that fail */
    const char *found;   /* the folder for inputs that reached something new */
    unsigned seconds;
    uint64_t seed;
} mutation;

/* Mutates what is in the corpus until the time is up. Returns the number of failures. */
int mutate(const mutation *how, corpus *all);

/* ---- coverage.c: what the compiler's calls tell, if the target was compiled with them ---- */

/* Forgets the place where the last input ended. */
void coverage_begin(void);
/* Whether something was reached since the last call that no input had reached before. */
bool coverage_grew(void);

#endif
