/* SPDX-License-Identifier: Apache-2.0 */
/* Random PTX programs that have one right answer: no races, no undefined values, no approximate
 * instructions, and nothing that depends on the order of blocks, warps or atomics. */
#ifndef TESTS_RANDOM_GENERATE_H
#define TESTS_RANDOM_GENERATE_H

#include <stddef.h>
#include <stdint.h>

enum {
    RANDOM_BLOCKS = 2,
    RANDOM_THREADS = 128,
    RANDOM_WORDS = 64,       /* of each thread in the first buffer */
    RANDOM_CELLS = 64,       /* words of the second buffer */
    RANDOM_STATEMENTS = 120, /* of a program, at most */
    RANDOM_TEXT = 256 * 1024 /* bytes of a program, at most */
};

/* A module with the programs of `count` seeds. The kernels are `program0(u64 out, u64 cells)` and
 * so on: RANDOM_BLOCKS blocks of RANDOM_THREADS threads. Both buffers begin as zeros. Returns the
 * length of the text, for which there are `size` bytes. */
size_t random_programs(uint64_t seed, unsigned count, char *text, size_t size);
/* The program of one seed, with so many of its statements at most: those that come first. Where it
 * has no more, the text is that of random_programs. */
size_t random_part(uint64_t seed, unsigned statements, char *text, size_t size);

/* Statements without statements inside. `where`: what they need of their surroundings. */
typedef enum random_where {
    RANDOM_ANYWHERE,
    RANDOM_WHOLE_WARPS, /* all threads of each warp run it together */
    RANDOM_WHOLE_BLOCK, /* so do all threads of the block */
} random_where;

/*
 * In a template, $ and a letter stand for something chosen at random:
 *   r q f d p  a register of 32 or 64 bits, f32, f64, a predicate
 *   F X        an f32, a register of 32 bits, but not the one before: drivers make a move of the
 *              smaller of a number and itself, which keeps the bits of a NaN
 *   i          an integer          5 6   a number below 32, 64
 *   v V        offset of 4 or 8 aligned bytes, or of 16, in the thread's own memory
 *   n s R      a rounding of floats, .sat or nothing, a comparison
 *   l          a number that is the same in all of this use of the template, for labels
 *   m          the number of the program in its module
 *   o          an operation that can be applied in any order, and 8 of the cells for it: $o, $O
 */
typedef struct random_template {
    random_where where;
    unsigned weight;
    const char *text;
} random_template;

extern const random_template random_templates[];
extern const unsigned random_template_count;

#endif
