/* SPDX-License-Identifier: Apache-2.0 */
/* The register limit in PTX: neither compiler writes it there, so each kernel gets a .maxnreg. */
#include <ctype.h>
#include <string.h>

#include "compiler/compile.h"

static const char *skip_comment(const char *at, const char *end) {
    if (end - at < 2 || at[0] != '/') return at;
    if (at[1] == '/') {
        while (at < end && *at != '\n') at++;
    } else if (at[1] == '*') {
        const char *close = memmem(at + 2, (size_t)(end - at - 2), "*/", 2);
        return close ? close + 2 : end;
    }
    return at;
}

/* The brace that opens the body of the kernel whose .entry is at `at`; NULL: it has no body here,
 * or has a .maxnreg already. */
static const char *find_body(const char *at, const char *end) {
    while (at < end) {
        const char *next = skip_comment(at, end);
        if (next != at) {
            at = next;
            continue;
        }
        if (*at == '{') return at;
        if (*at == ';') return NULL;
        if (end - at > 8 && memcmp(at, ".maxnreg", 8) == 0) return NULL;
        at++;
    }
    return NULL;
}

bh__bytes bh__ptx_limit_registers(bh__compile *c, bh__bytes ptx, unsigned registers) {
    static const char word[] = ".entry";
    bh__text out = {.arena = c->arena};
    const char *done = bh__chars(ptx), *end = done + ptx.count, *at = done;
    while (at < end) {
        const char *next = skip_comment(at, end);
        if (next != at) {
            at = next;
            continue;
        }
        if ((size_t)(end - at) > sizeof word && memcmp(at, word, sizeof word - 1) == 0 &&
            isspace((unsigned char)at[sizeof word - 1])) {
            const char *body = find_body(at, end);
            if (body != NULL) {
                bh__text_append(&out, done, (size_t)(body - done));
                bh__text_add(&out, ".maxnreg %u\n", registers);
                done = body;
            }
            at += sizeof word;
            continue;
        }
        at++;
    }
    bh__text_append(&out, done, (size_t)(end - done));
    return out.failed ? (bh__bytes){NULL, 0} : bh__text_bytes(&out);
}
