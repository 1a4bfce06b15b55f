/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an error's message from a compiler's log. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "compiler/compile.h"

bh_status bh__compile_no_memory(bh__compile *c) {
    return bh__fail(&c->answer->error, BH_E_NO_HOST_MEMORY, "free memory, or raise memory_limit",
                    "no memory for the result of the compiler");
}

bh_status bh__compile_over_limit(bh__compile *c, const char *compiler) {
    return bh__fail(&c->answer->error, BH_E_COMPILE, "raise memory_limit",
                    "%s ran out of memory; it may use %llu MiB", compiler,
                    (unsigned long long)(c->job->memory_limit >> 20));
}

bool bh__is_memory_error(const char *text) {
    static const char *const signs[] = {
        "out of memory",         "Out of memory",         "bad_alloc",
        "annot allocate memory", "failed to map segment", "cannot create shared object descriptor"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (strstr(text, signs[i]) != NULL) return true;
    }
    return false;
}

void bh__compile_bound_log(bh__compile *c) {
    enum { MAX_LOG = 4 << 20, HALF = MAX_LOG / 2 };
    bh__bytes log = c->answer->log;
    if (log.count <= MAX_LOG) return;
    bh__text text = {.arena = c->arena};
    bh__text_append(&text, bh__chars(log), HALF);
    bh__text_add(&text, "\n... %llu bytes are left out ...\n",
                 (unsigned long long)log.count - MAX_LOG);
    bh__text_append(&text, bh__chars(log) + (log.count - HALF), HALF);
    c->answer->log = text.failed ? (bh__bytes){log.data, 0} : bh__text_bytes(&text);
}

/* "file(3): error: text" becomes "file:3: error: text"; other lines stay as they are. */
static void normalise(const char *line, size_t length, char *out, size_t size) {
    const char *end = line + length, *open = NULL;
    for (const char *at = line; at + 2 < end; at++) {
        if (*at == ')' && at[1] == ':' && open != NULL) {
            snprintf(out, size, "%.*s:%.*s%.*s", (int)(open - line), line, (int)(at - open - 1),
                     open + 1, (int)(end - at - 1), at + 1);
            return;
        }
        if (*at == '(')
            open = at;
        else if (!isdigit((unsigned char)*at))
            open = NULL;
    }
    snprintf(out, size, "%.*s", (int)length, line);
}

static const char *advise(const char *message) {
    if (strstr(message, "Permission denied"))
        return "compilers read only include_paths (-I), the source's folder and the toolchain: "
               "give the folder that the file is really in, or set BH_COMPILE_UNCONFINED "
               "(--unconfined)";
    if (strstr(message, "file not found") || strstr(message, "could not open source file") ||
        strstr(message, "cannot open source file"))
        return "give its folder in include_paths (-I), or the header itself in headers";
    if (strstr(message, "undefined") || strstr(message, "undeclared"))
        return "define it, or include the header that does; the log has all messages";
    return "fix the source; the log has all messages of the compiler";
}

/* The first line that contains `mark`, without the prefix that a list of such lines has. */
static const char *find_line(const char *log, const char *mark, size_t *out_length) {
    const char *hit = strstr(log, mark);
    if (hit == NULL) return NULL;
    const char *start = hit;
    while (start > log && start[-1] != '\n') start--;
    *out_length = strcspn(start, "\n");
    return start;
}

bh_status bh__compile_failed(bh__compile *c, const char *what) {
    static const char *const marks[] = {
        ": error:", ": fatal error:", ": catastrophic error:", " error: ", " error "};
    const char *log = bh__chars(c->answer->log), *best = NULL;
    size_t length = 0;
    char message[sizeof c->answer->error.message];
    for (size_t i = 0; i < sizeof marks / sizeof *marks && (best == NULL || i < 3); i++) {
        size_t found_length;
        const char *found = find_line(log, marks[i], &found_length);
        if (found != NULL && (best == NULL || found < best)) {
            best = found;
            length = found_length;
        }
    }
    if (best == NULL)
        return bh__fail(&c->answer->error, BH_E_COMPILE, "see the log", "%s failed%s%.300s", what,
                        log[0] ? ": " : " and does not say why", log);
    normalise(best, length, message, sizeof message);
    return bh__fail(&c->answer->error, BH_E_COMPILE, advise(message), "%s", message);
}
