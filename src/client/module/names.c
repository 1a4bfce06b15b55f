/* SPDX-License-Identifier: Apache-2.0 */
/* Name expressions such as "my_kernel<float, 256>" and their lowered names. */
#include <stdlib.h>
#include <string.h>

#include "client/core/error.h"
#include "client/module/module.h"

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || (c & 0x80);
}

/* The next significant character. White space between two words counts as one blank; other white
 * space is skipped. */
static char next(const char **text, char before) {
    const char *at = *text;
    while (is_space(*at)) at++;
    bool separator = at != *text && is_word(before) && is_word(*at);
    *text = at;
    if (separator) return ' ';
    if (*at) ++*text;
    return *at;
}

bool bh__expressions_equal(const char *a, const char *b) {
    char before = 0;
    for (;;) {
        char from_a = next(&a, before), from_b = next(&b, before);
        if (from_a != from_b) return false;
        if (!from_a) return true;
        before = from_a;
    }
}

bool bh__name_is_expression(const char *name) {
    while (is_word(*name)) name++;
    return *name != 0;
}

bool bh__names_reserve(bh__names *names, size_t count) {
    *names = (bh__names){0};
    names->list = calloc(count + 1, sizeof *names->list);
    return names->list != NULL;
}

bool bh__names_add(bh__names *names, const char *expression, const char *lowered) {
    bh__name *name = &names->list[names->count++];
    name->expression = strdup(expression);
    name->lowered = strdup(lowered);
    return name->expression && name->lowered;
}

void bh__names_free(bh__names *names) {
    for (size_t i = 0; i < names->count; i++) {
        free(names->list[i].expression);
        free(names->list[i].lowered);
    }
    free(names->list);
    *names = (bh__names){0};
}

const bh__name *bh__names_find(const bh__names *names, const char *expression,
                               const bh__name **out_other) {
    const bh__name *found = NULL;
    *out_other = NULL;
    for (size_t i = 0; i < names->count && !*out_other; i++) {
        const bh__name *name = &names->list[i];
        if (!bh__expressions_equal(name->expression, expression)) continue;
        if (!found)
            found = name;
        else if (strcmp(found->lowered, name->lowered) != 0)
            *out_other = name;
    }
    return found;
}

bh_status bh__names_refuse_two(const char *expression, const char *one, const char *other) {
    return bh__refuse(BH_E_INVALID, "ask for one of these names, or give the kernels other names",
                      "name expression \"%.100s\" is ambiguous in the linked code: \"%.150s\" "
                      "and \"%.150s\"",
                      expression, one, other);
}
