/* SPDX-License-Identifier: Apache-2.0 */
/* A string builder, and lists of strings for command lines. */
#ifndef BH_COMPILER_TEXT_BUILDER_H
#define BH_COMPILER_TEXT_BUILDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "wire/compile.h"

/* Initialize the arena only. Once memory has run out, `failed` is set and nothing more is added. */
typedef struct bh__text {
    bh__arena *arena;
    char *data; /* NUL-terminated once something was added */
    size_t used, room;
    bool failed;
} bh__text;

void bh__text_append(bh__text *text, const char *bytes, size_t count);
void bh__text_add(bh__text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
bh__bytes bh__text_bytes(const bh__text *text);

/* A list of strings. */
typedef struct bh__words {
    bh__arena *arena;
    const char **list;
    size_t count, room;
    bool failed;
} bh__words;

void bh__words_add(bh__words *words, const char *word);
/* Adds a NULL after the last one, which is not counted. */
void bh__words_end(bh__words *words);
void bh__words_format(bh__words *words, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What printf would print, in the arena. NULL: no memory. */
char *bh__text_format(bh__arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline bh__bytes bh__bytes_of(const char *text) {
    return (bh__bytes){(const uint8_t *)(text ? text : ""), text ? __builtin_strlen(text) : 0};
}

/* A string of a job or an answer: "" if there is none. */
static inline const char *bh__chars(bh__bytes bytes) {
    return bytes.data ? (const char *)bytes.data : "";
}

#endif
