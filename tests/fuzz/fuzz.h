/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz targets share: the entry that every engine calls, and an input as a stream of choices.
 * A target gives the same result for the same bytes, frees what it allocates and aborts only for a
 * defect. See docs/fuzzing.md. */
#ifndef BH_TESTS_FUZZ_FUZZ_H
#define BH_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Returns 0, or -1 for an input that is not worth keeping. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A rule that must hold for every input; also where asserts are left out. */
#define FUZZ_CHECK(condition) ((condition) ? (void)0 : abort())

/* Where nothing else is mapped. ThreadSanitizer leaves only low addresses free, and ends a program
 * that maps memory elsewhere. */
#if defined(__SANITIZE_THREAD__)
#define FUZZ_BASE      0x001000000000u
#define FUZZ_READ_ONLY 0x002000000000u
enum { FUZZ_ANY_ADDRESS = 0 };
#else
#define FUZZ_BASE      0x200000000000u
#define FUZZ_READ_ONLY 0x400000000000u
enum { FUZZ_ANY_ADDRESS = 1 };
#endif

typedef struct fuzz_input {
    const uint8_t *at;
    size_t left;
} fuzz_input;

/* The next `size` bytes into `out`; zeros where there are no more. */
static inline void fuzz_take(fuzz_input *in, void *out, size_t size) {
    size_t have = size < in->left ? size : in->left;
    memset(out, 0, size);
    if (have) memcpy(out, in->at, have);
    in->at += have;
    in->left -= have;
}

static inline uint8_t fuzz_byte(fuzz_input *in) {
    uint8_t byte;
    fuzz_take(in, &byte, sizeof byte);
    return byte;
}

static inline uint32_t fuzz_u32(fuzz_input *in) {
    uint32_t number;
    fuzz_take(in, &number, sizeof number);
    return number;
}

/* Bytes up to the separator, or all that are left, with a NUL after them; for free(). A copy of
 * exactly that size, so that a read past its end is seen. */
static inline char *fuzz_text(fuzz_input *in, uint8_t separator, size_t *out_length) {
    const uint8_t *end = in->left ? memchr(in->at, separator, in->left) : NULL;
    size_t length = end ? (size_t)(end - in->at) : in->left;
    char *text = malloc(length + 1);
    FUZZ_CHECK(text != NULL);
    if (length) memcpy(text, in->at, length);
    text[length] = 0;
    in->at += length;
    in->left -= length;
    if (end) in->at++, in->left--;
    if (out_length) *out_length = length;
    return text;
}

#endif
