/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling a .cu file of this directory with clang and the device headers, as a test does it. */
#ifndef DEVICE_HEADER_CLANG_H
#define DEVICE_HEADER_CLANG_H

#include <stdbool.h>

/* Chooses the next of the clangs that are installed, the newest first; false after the last. Until
 * then, and without this, the newest is used. Skips the test where there is none. */
bool clang_next(void);

/* Compiles tests/device_header/NAME.cu with more flags into a file of this test's own directory.
 * Returns the path of the PTX, or NULL with what clang said in clang_said(). */
const char *clang_compile(const char *name, const char *flags);
const char *clang_said(void);
/* The same, and a failure ends the test; warnings in the headers are failures too. */
const char *clang_must_compile(const char *name, const char *flags);
/* The same, with bulkhead_cuda.h included first or not; without a name, an empty source. */
const char *clang_must_compile_with(const char *name, const char *flags, bool umbrella);

/* Whether the flags of one more architecture are known to this clang. */
bool clang_knows(const char *arch);

#endif
