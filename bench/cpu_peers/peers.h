/* SPDX-License-Identifier: Apache-2.0 */
/* The same kernels on the CPU device, with OpenCL and in plain C: cases, their data, and sides that
 * run them. */
#ifndef BENCH_CPU_PEERS_H
#define BENCH_CPU_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- data ---- */

typedef enum peers_role {
    PEERS_IN,
    PEERS_OUT,    /* written whole */
    PEERS_INOUT,  /* set to its first contents before every run */
    PEERS_SCRATCH /* INOUT, and nobody asks what is left in it */
} peers_role;

typedef enum peers_kind {               /* how results are compared */
                          PEERS_FLOATS, /* nearly equal: sums may be made in any order */
                          PEERS_DOUBLES,
                          PEERS_BYTES, /* equal */
                          PEERS_SORTED /* words, equal when sorted */
} peers_kind;

typedef struct peers_buffer {
    peers_role role;
    peers_kind kind;
    size_t bytes;
    void *first; /* contents before a run */
    void *work;  /* plain C works in here; `first` if it is only read */
    void *expected;
} peers_buffer;

enum { PEERS_BUFFERS = 8 };

typedef struct peers_data {
    size_t n;     /* the size of the problem, as its case means it */
    size_t steps; /* of what has a number of them that depends on the data */
    size_t count;
    peers_buffer buffers[PEERS_BUFFERS];
} peers_data;

/* The next buffer, of zeros. Returns its first contents, to be filled in. */
void *peers_add(peers_data *data, peers_role role, peers_kind kind, size_t bytes);
void *peers_add_floats(peers_data *data, peers_role role, size_t count, float least, float most);
/* Any words below `limit`; 0: any at all. */
uint32_t *peers_add_words(peers_data *data, peers_role role, size_t count, uint32_t limit);
/* Pseudo-random numbers, the same in every run. */
uint32_t peers_random(uint32_t *state);
void peers_reset(peers_data *data);  /* `work` as before a run */
void peers_expect(peers_data *data); /* what is in `work` is right */
/* Whether the contents of a buffer are right. Sorts `got` if its kind says so. `why` gets the first
 * difference. */
bool peers_is_right(const peers_buffer *buffer, void *got, char *why, size_t capacity);
void peers_release(peers_data *data);

/* ---- launches ---- */

typedef struct peers_shape {
    uint32_t grid[3], block[3];
} peers_shape;
#define PEERS_LINE(n, block)                                                                       \
    ((peers_shape){{(uint32_t)(((n) + (block)-1) / (block)), 1, 1}, {(block), 1, 1}})
#define PEERS_PLANE(gx, gy, bx, by) ((peers_shape){{(gx), (gy), 1}, {(bx), (by), 1}})

typedef struct peers_argument {
    enum { PEERS_BUFFER, PEERS_UINT, PEERS_FLOAT, PEERS_DOUBLE } kind;
    uint32_t word; /* the number, or which buffer */
    float single;
    double real;
} peers_argument;
#define B(index) ((peers_argument){PEERS_BUFFER, (index), 0, 0})
#define U(value) ((peers_argument){PEERS_UINT, (uint32_t)(value), 0, 0})
#define F(value) ((peers_argument){PEERS_FLOAT, 0, (value), 0})
#define D(value) ((peers_argument){PEERS_DOUBLE, 0, 0, (value)})

typedef struct peers_side peers_side;
/* In order; errors are kept for the end of the run. */
void peers_launch_list(peers_side *side, const char *kernel, peers_shape shape,
                       const peers_argument *arguments, size_t count);
#define peers_launch(side, kernel, shape, ...)                                                     \
    peers_launch_list(side, kernel, shape, (const peers_argument[]){__VA_ARGS__},                  \
                      sizeof((peers_argument[]){__VA_ARGS__}) / sizeof(peers_argument))

/* ---- cases ---- */

typedef enum peers_text {
    PEERS_MEMORY,
    PEERS_SUMS,
    PEERS_DENSE,
    PEERS_GRIDS,
    PEERS_NUMERIC,
    PEERS_ROWS,
    PEERS_IRREGULAR,
    PEERS_TEXTS
} peers_text;

typedef enum peers_size { /* of which the interpreter gets the second, and a test the third */
                          PEERS_FULL,
                          PEERS_SMALL,
                          PEERS_TINY,
                          PEERS_SIZES
} peers_size;

typedef struct peers_case {
    const char *name;
    const char *kernel; /* that does most of the work; NULL: has the name of the case */
    size_t sizes[PEERS_SIZES];
    void (*prepare)(peers_data *data);
    void (*plain)(void *const *b, const peers_data *data); /* b: the buffers' `work` */
    void (*launch)(peers_side *side, const peers_data *data);
    bool unseen; /* the JIT was not written with it at hand */
} peers_case;

typedef struct peers_cases {
    peers_text text;
    const peers_case *list;
    size_t count;
} peers_cases;
/* One for each text, each in a file of its own. */
extern const peers_cases peers_memory, peers_sums, peers_dense, peers_grids, peers_numeric,
    peers_rows, peers_irregular;
/* texts.c: the kernels, and what they need before them in each language. */
extern const char *const peers_texts[PEERS_TEXTS];
extern const char *const peers_cuda_prelude, *const peers_opencl_prelude;

/* ---- sides ---- */

struct peers_side {
    char name[16]; /* jit.1, pocl.all */
    /* Makes the data known. False: see `why`. */
    bool (*attach)(peers_side *side, const peers_case *c, peers_text text, peers_data *data);
    /* Prepares for a run: buffers that a run changes are as at first. */
    bool (*reset)(peers_side *side);
    bool (*run)(peers_side *side);
    bool (*check)(peers_side *side); /* the results of the last run */
    void (*detach)(peers_side *side);
    void (*note)(peers_side *side); /* prints what is worth knowing of the kernel; may be NULL */
    void (*launch)(peers_side *side, const char *kernel, peers_shape shape,
                   const peers_argument *arguments, size_t count);
    const peers_case *of;
    peers_data *data;
    void *inside;
    char why[512];
};

bool peers_fail(peers_side *side, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* `processors`: 0 for all there are. */
bool peers_open_plain(peers_side *side, unsigned processors);
bool peers_open_bulkhead(peers_side *side, const char *executor, unsigned processors);
bool peers_open_opencl(peers_side *side, unsigned processors);
void peers_close_bulkhead(peers_side *side);
void peers_close_opencl(peers_side *side);

#endif
