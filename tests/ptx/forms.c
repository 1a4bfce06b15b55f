/* SPDX-License-Identifier: Apache-2.0 */
/* Every form of PTX's instructions: a line of answers/forms.txt each, which ptxas accepts. */
#include <stdio.h>
#include <string.h>

#include "support/kernel.h"
#include "test.h"

/* What the lines use: the same as in tools/list_forms.py. */
static const char before[] =
    ".version 9.0\n.target sm_90a\n.address_size 64\n"
    ".global .align 32 .b8 g[256]; .const .align 16 .b8 c[256]; .shared .align 32 .b8 s[256];\n"
    ".func (.param .b32 r) f(.param .b32 a) { ret; }\n"
    ".entry k(.param .align 16 .b8 p[64]) {\n"
    ".reg .pred %p<8>; .reg .b8 %b<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"
    ".reg .b128 %q<8>; .reg .f32 %f<8>; .reg .f64 %d<8>; .local .align 16 .b8 l[64];\n";

static FILE *open_forms(void) {
    char path[4096];
    test_path(path, sizeof path, "%s/tests/ptx/answers/forms.txt", test_source_dir());
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL);
    return file;
}

enum { LINE = 256 };

static bh_status load_line(const char *line, bh_error *error) {
    char text[sizeof before + 2 * LINE + 16];
    int length = snprintf(text, sizeof text, "%s%sL: ret; }\n", before, line);
    memset(error, 0, sizeof *error);
    return load_error(text, (size_t)length, error);
}

TEST(every_form_that_ptxas_accepts_loads) {
    FILE *file = open_forms();
    char line[LINE];
    unsigned count = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') {
            continue;
        }
        bh_error error;
        if (load_line(line, &error) != BH_OK) {
            FAIL("%s: %s", line, error.message);
        }
        count++;
    }
    fclose(file);
    CHECK_GE(count, 1000);
}

/* ---- forms with operands of another shape: they load, or the message says why not ---- */

enum { OPERANDS = 16 };

typedef struct parts { /* of a line: its beginning and its operands */
    char text[LINE];
    int head, count, from[OPERANDS], length[OPERANDS];
} parts;

static void split(const char *line, parts *out) {
    int at = 0, depth = 0;
    out->count = 0;
    snprintf(out->text, sizeof out->text, "%s", line);
    while (line[at] == '@' && line[at] != ' ') {
        at += (int)strcspn(line + at, " ") + 1;
    }
    at += (int)strcspn(line + at, " ;\n");
    out->head = at;
    int from = at;
    for (; line[at] && out->count < OPERANDS; at++) {
        char c = line[at];
        depth += c == '{' || c == '[' || c == '(';
        depth -= c == '}' || c == ']' || c == ')';
        if ((c == ',' && depth == 0) || c == ';') {
            out->from[out->count] = from;
            out->length[out->count++] = at - from;
            from = at + 1;
        }
        if (c == ';') {
            break;
        }
    }
}

typedef enum change {
    IN_BRACES,  /* {operand} */
    FIRST_ONLY, /* {a, b} becomes {a} */
    LEFT_OUT,
    TWICE,
    CUT, /* this operand and all behind it */
    CHANGES
} change;

static int put_operand(const parts *p, int n, char *to, size_t room, const char *before_it) {
    return snprintf(to, room, "%s%.*s", before_it, p->length[n], p->text + p->from[n]);
}

static void put_changed(const parts *p, int n, change how, char out[2 * LINE]) {
    size_t room = 2 * LINE;
    int at = snprintf(out, room, "%.*s ", p->head, p->text), written = 0;
    for (int i = 0; i < p->count; i++) {
        const char *operand = p->text + p->from[i], *gap = written ? "," : "";
        int length = p->length[i], first = (int)strcspn(operand, ",");
        char *to = out + at;
        size_t left = room - (size_t)at;
        if (i != n) {
            at += put_operand(p, i, to, left, gap);
        } else if (how == IN_BRACES) {
            at += snprintf(to, left, "%s{%.*s}", gap, length, operand);
        } else if (how == FIRST_ONLY && first < length) {
            at += snprintf(to, left, "%s%.*s}", gap, first, operand);
        } else if (how == FIRST_ONLY || how == TWICE) {
            at += put_operand(p, i, to, left, gap);
            at += how == TWICE ? put_operand(p, i, out + at, room - (size_t)at, ",") : 0;
        } else if (how == CUT) {
            break;
        } else {
            continue;
        }
        written++;
    }
    snprintf(out + at, room - (size_t)at, ";\n");
}

TEST_TIMEOUT(operands_of_another_shape_are_refused_or_taken, 120) {
    FILE *file = open_forms();
    char line[LINE], changed[2 * LINE];
    unsigned refused = 0, taken = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        parts p;
        if (line[0] == '#') {
            continue;
        }
        split(line, &p);
        for (int n = 0; n < p.count; n++) {
            for (int how = 0; how < CHANGES; how++) {
                bh_error error;
                put_changed(&p, n, (change)how, changed);
                bool loaded = load_line(changed, &error) == BH_OK;
                if (!loaded && (error.message[0] == 0 || error.fix[0] == 0)) {
                    FAIL("%s: no message", changed);
                }
                refused += !loaded;
                taken += loaded;
            }
        }
    }
    fclose(file);
    CHECK_GE(refused, 5000);
    CHECK_GE(taken, 1000);
}

/* Braces around one value mean that value. */
TEST(a_vector_of_one_is_its_element) {
    static const char *const lines[] = {
        "atom.global.add.f32 %f1, [%rd1], {%f2};",
        "atom.global.add.f32 {%f1}, [%rd1], %f2;",
        "atom.global.add.f32 {%f1}, [%rd1], {%f2};",
        "atom.global.cas.b32 {%r1}, [%rd1], {%r2}, %r3;",
        "red.global.add.f32 [%rd1], {%f2};",
        "ld.global.f32 {%f1}, [%rd1];",
        "st.global.f32 [%rd1], {%f1};",
        "ldu.global.f32 {%f1}, [%rd1];",
        "multimem.ld_reduce.relaxed.sys.global.add.f32 {%f1}, [%rd1];",
        "multimem.red.relaxed.sys.global.add.f32 [%rd1], {%f1};",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        bh_error error;
        if (load_line(lines[i], &error) != BH_OK) {
            FAIL("%s: %s", lines[i], error.message);
        }
    }
}
