/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles with a program that stands in for the compiler and answers at once. */
#ifndef FAILING_STAND_IN_H
#define FAILING_STAND_IN_H

#include <bulkhead.h>

/* Once in a test: it makes the folder that the program is found in. */
bh_compile_options stand_in_options(const char *cache);

#endif
