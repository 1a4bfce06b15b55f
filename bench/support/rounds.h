/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements that the library and the plain driver are put through alike: one loop for both,
 * each figure one short round, so that the two sides can take turns. */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BENCH_OUTPUTS = 4,       /* arrays that launches write to in turn */
    BENCH_LAUNCHES = 100000, /* in a round of `launches`, and what the arrays have room for */
    BENCH_OUTPUT_WORDS = BENCH_LAUNCHES / BENCH_OUTPUTS + 1
};
#define BENCH_COPY_BYTES  (256ull << 20)
#define BENCH_ALLOC_BYTES (1ull << 20)

/* Memory of the host that copies begin and end in: as the side offers it for speed, or plain. */
enum { BENCH_HOST, BENCH_PLAIN };

/* One side of a comparison. Whatever fails ends the program. */
typedef struct bench_side {
    void *self;
    /* Launches `put` on an output without waiting for it: word `index` becomes value ^ salt. */
    void (*put)(void *self, uint32_t output, uint32_t index, uint32_t value, uint32_t salt);
    /* Returns when everything launched is known to be done. */
    void (*finish)(void *self);
    void (*read_output)(void *self, uint32_t output, uint32_t *words, uint32_t count);
    /* Between host memory and memory of the device, BENCH_COPY_BYTES, through to done. */
    void (*copy_in)(void *self, int memory, const void *source);
    void (*copy_out)(void *self, int memory, void *target);
    /* Memory of the first kind, which lasts as long as the side. */
    void *(*host_alloc)(void *self, size_t bytes);
    /* Allocates BENCH_ALLOC_BYTES on the device and frees them. */
    void (*alloc_free)(void *self);
    /* The same, with a kernel that writes `value` there between the two; returns what it left. */
    uint32_t (*alloc_use)(void *self, uint32_t value);
    void *host[2][2]; /* of each kind: what is sent, what comes back; made when first used */
    uint32_t seed;    /* counts rounds: what they write differs */
} bench_side;

typedef struct bench_round {
    const char *name, *unit;
    double (*run)(bench_side *side);
} bench_round;

/* submit, roundtrip, launches, host_in, host_out, plain_in, plain_out, alloc_free. */
extern const bench_round bench_rounds[];
extern const size_t bench_round_count;

/* Frees what rounds have made for themselves. */
void bench_side_end(bench_side *side);

#endif
