/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX linker: several texts of relocatable PTX become one text. */
#ifndef BH_PTX_LINK_LINK_H
#define BH_PTX_LINK_LINK_H

#include "base/arena.h"
#include "error/error.h"

/* A name at module scope of a text, and what the result calls it. */
typedef struct bh__ptx_name {
    const char *name;
    const char *result;
} bh__ptx_name;

typedef struct bh__ptx_text {
    const char *name; /* for messages, and for #line in the result */
    const char *text; /* need not end in NUL */
    size_t length;
    bh__ptx_name *names; /* their results are filled in */
    size_t name_count;
} bh__ptx_text;

typedef struct bh__ptx_linked {
    char *text; /* with a NUL behind */
    size_t length;
    char arch[16];   /* of its .target: "sm_90a" */
    const char *log; /* every problem, a line each; "" if there is none */
} bh__ptx_linked;

/*
 * Links as NVIDIA's linker does. An .extern is resolved by the .visible, .weak or .common of the
 * same name. A strong definition is preferred to a weak one, the first weak one to others; .common
 * variables become one, of the largest size. Names without such a directive belong to their text;
 * they are renamed where another text has the same. What is declared and not used may be missing.
 *
 * The result says with #line where each line comes from. Its version and target are the highest
 * among the texts. Debug sections are left out; .loc and .file stay.
 *
 * Duplicates, what is missing, and declarations that do not agree are BH_E_COMPILE: the error is
 * the first problem, the log has them all. `out` is allocated in `arena` and is filled in with the
 * log in any case.
 */
bh_status bh__ptx_link(bh__arena *arena, const bh__ptx_text *texts, size_t count, bh_error *error,
                       bh__ptx_linked *out);

#endif
