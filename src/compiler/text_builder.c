/* SPDX-License-Identifier: Apache-2.0 */
/* A string builder, and lists of strings for command lines. */
#include "compiler/text_builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void bh__text_append(bh__text *text, const char *bytes, size_t count) {
    if (text->failed) return;
    if (text->room - text->used <= count) {
        size_t room = (text->used + count + 64) * 2;
        char *larger = bh__arena_alloc(text->arena, room, 1);
        if (larger == NULL) {
            text->failed = true;
            return;
        }
        if (text->used > 0) memcpy(larger, text->data, text->used);
        text->data = larger;
        text->room = room;
    }
    if (count > 0) memcpy(text->data + text->used, bytes, count);
    text->used += count;
    text->data[text->used] = 0;
}

static char *format_list(bh__arena *arena, const char *format, va_list list) {
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) return NULL;
    char *result = bh__arena_alloc(arena, (size_t)length + 1, 1);
    if (result != NULL) vsnprintf(result, (size_t)length + 1, format, list);
    return result;
}

void bh__text_add(bh__text *text, const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *piece = format_list(text->arena, format, list);
    va_end(list);
    if (piece == NULL)
        text->failed = true;
    else
        bh__text_append(text, piece, strlen(piece));
}

bh__bytes bh__text_bytes(const bh__text *text) {
    return (bh__bytes){(const uint8_t *)(text->data ? text->data : ""), text->used};
}

void bh__words_add(bh__words *words, const char *word) {
    if (words->failed || word == NULL) {
        words->failed = true;
        return;
    }
    const char **list =
        bh__arena_grow(words->arena, words->list, words->count, &words->room, sizeof *words->list);
    if (list == NULL) {
        words->failed = true;
        return;
    }
    words->list = list;
    list[words->count++] = word;
}

void bh__words_end(bh__words *words) {
    bh__words_add(words, "");
    if (!words->failed) words->list[--words->count] = NULL;
}

void bh__words_format(bh__words *words, const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *word = format_list(words->arena, format, list);
    va_end(list);
    bh__words_add(words, word);
}

char *bh__text_format(bh__arena *arena, const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *result = format_list(arena, format, list);
    va_end(list);
    return result;
}
