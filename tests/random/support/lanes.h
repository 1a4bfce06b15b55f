/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs in which the lanes of a warp diverge and meet again in `.sync` operations, often
 * in copies of one operation in two branches or in functions; and what they must compute. The
 * reference follows the program by sets of lanes and knows nothing of instructions or schedules. */
#ifndef TESTS_RANDOM_LANES_H
#define TESTS_RANDOM_LANES_H

#include <stddef.h>
#include <stdint.h>

enum { LANES_THREADS = 64, LANES_WORDS = 6, LANES_TEXT = 256 * 1024 };

/* The kernel is `program(u64 out)`, one block of LANES_THREADS threads; `out` begins as zeros and
 * has LANES_WORDS words for each of them. Returns the length of the text. */
size_t lanes_program(uint64_t seed, char text[LANES_TEXT],
                     uint32_t expected[LANES_THREADS * LANES_WORDS]);

#endif
