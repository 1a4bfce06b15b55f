/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's compilers accept `__shared__ alignas(16) float tile[64];`, which many programs have.
 * clang takes alignas only before all of a declaration, but C's _Alignas, which means the same,
 * anywhere in it. So alignas after such a keyword becomes _Alignas.
 */
#include <ctype.h>
#include <string.h>

#include "compiler/compile.h"

static bool is_word(char ch) {
    return isalnum((unsigned char)ch) || ch == '_';
}

static bool is(const char *at, size_t length, const char *word) {
    return length == strlen(word) && memcmp(at, word, length) == 0;
}

/* The end of a comment that starts at `at`; `at` itself if none does. */
static const char *skip_comment(const char *at, const char *end) {
    size_t left = (size_t)(end - at);
    if (left >= 2 && memcmp(at, "//", 2) == 0) {
        const char *line = memchr(at, '\n', left);
        return line ? line : end;
    }
    if (left >= 2 && memcmp(at, "/*", 2) == 0) {
        const char *close = memmem(at + 2, left - 2, "*/", 2);
        return close ? close + 2 : end;
    }
    return at;
}

/* The end of a string or character that starts at `at`. */
static const char *skip_quoted(const char *at, const char *end) {
    char quote = *at++;
    while (at < end && *at != quote && *at != '\n') at += *at == '\\' && at + 1 < end ? 2 : 1;
    return at < end ? at + 1 : end;
}

/* The end of R"MARK( ... )MARK" of which `at` is the quote. */
static const char *skip_raw(const char *at, const char *end) {
    const char *open = memchr(at, '(', (size_t)(end - at));
    if (open == NULL || open - at > 17) return skip_quoted(at, end);
    size_t length = (size_t)(open - at - 1);
    for (const char *close = open; (close = memchr(close, ')', (size_t)(end - close))) != NULL;) {
        close++;
        if ((size_t)(end - close) > length && memcmp(close, at + 1, length) == 0 &&
            close[length] == '"')
            return close + length + 1;
    }
    return end;
}

/* The end of a name, or of a number with its separators. */
static const char *skip_word(const char *at, const char *end) {
    bool number = isdigit((unsigned char)*at);
    while (at < end && (is_word(*at) || (number && *at == '\'' && at + 1 < end && is_word(at[1]))))
        at++;
    return at;
}

static bool is_memory_keyword(const char *at, size_t length) {
    return is(at, length, "__shared__") || is(at, length, "__device__") ||
           is(at, length, "__constant__");
}

bh__bytes bh__accept_alignas(bh__arena *arena, bh__bytes source) {
    const char *at = bh__chars(source), *end = at + source.count;
    if (memmem(at, source.count, "alignas", 7) == NULL) return source;
    bh__text out = {.arena = arena};
    bool after_keyword = false;
    while (at < end) {
        const char *next = skip_comment(at, end);
        if (next == at && (*at == '"' || *at == '\'')) {
            bool raw = *at == '"' && at > bh__chars(source) && at[-1] == 'R';
            next = raw ? skip_raw(at, end) : skip_quoted(at, end);
            after_keyword = false;
        } else if (next == at && is_word(*at)) {
            next = skip_word(at, end);
            size_t length = (size_t)(next - at);
            if (after_keyword && is(at, length, "alignas")) bh__text_append(&out, "_A", 2), at++;
            after_keyword = is_memory_keyword(at, length);
        } else if (next == at) {
            after_keyword = after_keyword && isspace((unsigned char)*at);
            next = at + 1;
        }
        bh__text_append(&out, at, (size_t)(next - at));
        at = next;
    }
    return out.failed ? (bh__bytes){NULL, 0} : bh__text_bytes(&out);
}
