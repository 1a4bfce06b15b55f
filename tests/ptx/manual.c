/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of docs/ptx.md are those of the parser. BULKHEAD_WRITE_TABLES=1 writes them anew. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/ir.h"
#include "test.h"

#define START "<!-- table: "
#define END   "<!-- end -->\n"

typedef struct text {
    char bytes[256 * 1024];
    size_t length;
} text;

static void add(text *out, const char *words) {
    size_t length = strlen(words);
    REQUIRE(out->length + length < sizeof out->bytes);
    memcpy(out->bytes + out->length, words, length + 1);
    out->length += length;
}

static void add_types(text *out, uint64_t set) {
    bool first = true;
    for (int t = 1; t < T_COUNT; t++) {
        if (set >> t & 1) {
            add(out, first ? "`" : " ");
            add(out, bh__ptx_type_table[t].name);
            first = false;
        }
    }
    add(out, first ? "" : "`");
}

/* The cache hints are one modifier to the parser; it is called by one of its names. */
static const char *name_of(int mod) {
    return mod == M_HINT ? "(hint)" : bh__ptx_mod_names[mod];
}

static void add_mods(text *out, int op) {
    bool first = true;
    for (int m = 0; m < M_COUNT; m++) {
        bh__ptx_mods set = m < M_MORE ? bh__ptx_op_table[op].mods : bh__ptx_op_more[op];
        if (bh__ptx_mod_names[m] != NULL && set >> (m & 127) & 1) {
            add(out, first ? "`" : " ");
            add(out, name_of(m));
            first = false;
        }
    }
    add(out, first ? "" : "`");
}

static int compare_rows(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    int names = strcmp(bh__ptx_op_table[x].mnemonic, bh__ptx_op_table[y].mnemonic);
    return names != 0 ? names : x - y;
}

static void instructions(text *out) {
    int rows[OP_COUNT];
    for (int op = 0; op < OP_COUNT; op++) {
        rows[op] = op;
    }
    qsort(rows, OP_COUNT, sizeof *rows, compare_rows);
    add(out, "| instruction | types | modifiers |\n|---|---|---|\n");
    for (int n = 0; n < OP_COUNT; n++) {
        const bh__ptx_op_info *row = &bh__ptx_op_table[rows[n]];
        add(out, "| `");
        add(out, row->mnemonic);
        add(out, "` | ");
        add_types(out, row->type0);
        if (row->type1 != 0) {
            add(out, ", then ");
            add_types(out, row->type1);
        }
        add(out, " | ");
        add_mods(out, rows[n]);
        add(out, " |\n");
    }
}

static void spellings(text *out) {
    static const struct {
        const char *name;
        int mod;
    } others[] = {
#define X(name, id) {name, M_##id},
        BH__PTX_MOD_ALIASES(X)
#undef X
    };
    add(out, "| modifier | stands also for |\n|---|---|\n");
    for (int m = 0; m < M_COUNT; m++) {
        bool first = true;
        for (size_t n = 0; n < sizeof others / sizeof *others; n++) {
            if (others[n].mod == m) {
                add(out, first ? "| `" : " ");
                add(out, first ? name_of(m) : "");
                add(out, first ? "` | `" : "");
                add(out, others[n].name);
                first = false;
            }
        }
        add(out, first ? "" : m == M_HINT ? " L2::evict_normal` |\n" : "` |\n");
    }
}

static void words(text *out, const char *const *list, size_t count) {
    for (size_t n = 0; n < count; n++) {
        add(out, n == 0 ? "`" : ", `");
        add(out, list[n]);
        add(out, "`");
    }
    add(out, "\n");
}

#define X(word) word,
#define LISTED(out, LIST)                                                                          \
    do {                                                                                           \
        static const char *const list[] = {LIST(X)};                                               \
        words(out, list, sizeof list / sizeof *list);                                              \
    } while (0)

static void registers(text *out) {
    for (int n = 0; n < SREG_COUNT; n++) {
        add(out, n == 0 ? "`" : ", `");
        add(out, bh__ptx_sreg_table[n].name);
        add(out, n == SREG_ENVREG ? "0..31"
                 : n == SREG_PM   ? "0..7"
                 : n == SREG_PM64 ? "0..7_64"
                                  : "");
        add(out, bh__ptx_sreg_table[n].vector ? ".xyz`" : "`");
    }
    add(out, "\n");
}

static void table(text *out, const char *name, size_t length) {
    if (strncmp(name, "instructions", length) == 0) {
        instructions(out);
    } else if (strncmp(name, "spellings", length) == 0) {
        spellings(out);
    } else if (strncmp(name, "refused", length) == 0) {
        LISTED(out, BH__PTX_REFUSED);
    } else if (strncmp(name, "newer", length) == 0) {
        LISTED(out, BH__PTX_NEWER);
    } else if (strncmp(name, "registers", length) == 0) {
        registers(out);
    } else {
        FAIL("docs/ptx.md: there is no table %.*s", (int)length, name);
    }
}

/* The text with every table made again. */
static void renew(text *out, const char *from) {
    const char *start;
    while ((start = strstr(from, START)) != NULL) {
        const char *name = start + strlen(START), *end = strstr(name, END);
        const char *line = strchr(name, '\n');
        REQUIRE(end != NULL && line != NULL);
        char head[4096];
        for (const char *at = from; at <= line; at += strlen(head)) {
            snprintf(head, sizeof head, "%.*s", (int)(line + 1 - at), at);
            add(out, head);
        }
        table(out, name, strcspn(name, " "));
        from = end;
    }
    add(out, from);
}

TEST(the_tables_of_the_manual_are_those_of_the_parser) {
    char path[4096];
    static text have, want;
    test_path(path, sizeof path, "%s/docs/ptx.md", test_source_dir());
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL);
    have.length = fread(have.bytes, 1, sizeof have.bytes - 1, file);
    fclose(file);
    renew(&want, have.bytes);
    if (strcmp(have.bytes, want.bytes) == 0) {
        return;
    }
    if (getenv("BULKHEAD_WRITE_TABLES") == NULL) {
        FAIL("docs/ptx.md is not up to date: run BULKHEAD_WRITE_TABLES=1 build/tests/ptx-manual");
        return;
    }
    file = fopen(path, "w");
    REQUIRE(file != NULL);
    CHECK_EQ(fwrite(want.bytes, 1, want.length, file), want.length);
    CHECK_EQ(fclose(file), 0);
}
