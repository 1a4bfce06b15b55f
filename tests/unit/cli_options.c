/* SPDX-License-Identifier: Apache-2.0 */
/* Options, suggestions, JSON and lines of the command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "test.h"

static const bh__option table[] = {
    {'g', "grid", "X", 1},
    {0, "json", NULL, 2},
    {'v', "verbose", NULL, 3},
    {'D', NULL, "NAME", 4},
};

static char trace[512];

/* What the words come to: "id=value " for options, "value " for operands, "! ..." for an error. */
static const char *parse(const char *line) {
    char copy[256], *list[32], *save = NULL;
    int count = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        list[count++] = word;
    bh__options options = {
        .command = "run", .table = table, .table_count = 4, .list = list, .count = count};
    size_t length = 0;
    trace[0] = '\0';
    for (;;) {
        const char *value = NULL;
        bh_error error;
        int id = bh__options_next(&options, &value, &error);
        if (id == BH__OPTIONS_END) return trace;
        char *to = trace + length;
        size_t room = sizeof trace - length;
        if (id == BH__OPTIONS_WRONG) {
            snprintf(to, room, "! %s Fix: %s", error.message, error.fix);
            return trace;
        }
        if (id == BH__OPTIONS_OPERAND)
            length += (size_t)snprintf(to, room, "%s ", value);
        else
            length += (size_t)snprintf(to, room, "%d=%s ", id, value ? value : "-");
    }
}

TEST(options_in_all_spellings) {
    CHECK_STR_EQ(parse("--grid 4"), "1=4 ");
    CHECK_STR_EQ(parse("--grid=4"), "1=4 ");
    CHECK_STR_EQ(parse("--grid="), "1= ");
    CHECK_STR_EQ(parse("-g 4"), "1=4 ");
    CHECK_STR_EQ(parse("-g4"), "1=4 ");
    CHECK_STR_EQ(parse("-vvg4 -DX=1"), "3=- 3=- 1=4 4=X=1 ");
    CHECK_STR_EQ(parse("-vg 4 a"), "3=- 1=4 a ");
    CHECK_STR_EQ(parse("a --json b -- --json -g"), "a 2=- b --json -g ");
    CHECK_STR_EQ(parse("- a"), "- a ");
    CHECK_STR_EQ(parse(""), "");
}

TEST(wrong_options_are_named) {
    CHECK_STR_CONTAINS(parse("--gird 4"), "\"--gird\" is not an option of bulkhead run");
    CHECK_STR_CONTAINS(parse("--gird 4"), "did you mean --grid?");
    CHECK_STR_CONTAINS(parse("--gird=4"), "\"--gird\"");
    CHECK_STR_CONTAINS(parse("--js"), "did you mean --json?");
    CHECK_STR_CONTAINS(parse("--zzzzzz"), "lists the options");
    CHECK_STR_CONTAINS(parse("-x"), "\"-x\" is not an option");
    CHECK_STR_CONTAINS(parse("-vx"), "\"-x\" is not an option");
    CHECK_STR_CONTAINS(parse("--grid"), "--grid needs a value");
    CHECK_STR_CONTAINS(parse("-g"), "-g needs a value");
    CHECK_STR_CONTAINS(parse("--json=1"), "takes no value");
}

TEST(the_nearest_word_is_suggested) {
    static const char *const words[] = {"devices", "run", "demo", "doctor"};
    CHECK_STR_EQ(bh__report_nearest("device", words, 4), "devices");
    CHECK_STR_EQ(bh__report_nearest("rnu", words, 4), "run");
    CHECK_STR_EQ(bh__report_nearest("docter", words, 4), "doctor");
    CHECK(bh__report_nearest("launch", words, 4) == NULL);
    CHECK(bh__report_nearest("", words, 4) == NULL);
    CHECK(bh__report_nearest("a-word-that-is-much-longer-than-any-of-them", words, 4) == NULL);
}

TEST(json_is_well_formed) {
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    bh__json json;
    bh__json_begin(&json, to);
    bh__json_open(&json, '{');
    bh__json_key(&json, "empty");
    bh__json_open(&json, '[');
    bh__json_close(&json, ']');
    bh__json_key(&json, "list");
    bh__json_open_inline(&json, '[');
    bh__json_number(&json, UINT64_MAX);
    bh__json_bool(&json, true);
    bh__json_open(&json, '{');
    bh__json_key(&json, "a");
    bh__json_raw(&json, "1");
    bh__json_close(&json, '}');
    bh__json_close(&json, ']');
    bh__json_key(&json, "text");
    bh__json_text(&json, "\"\\\n\t\x01 \xc3\xa9 \xff \xed\xa0\x80");
    bh__json_key(&json, "obeyed\xc2\x9b");
    bh__json_text(&json, "\x7f\xc2\x80\xc2\x9b"
                         "31m\xc2\x9f\xc2\xa0\xc2");
    bh__json_close(&json, '}');
    bh__json_end(&json);
    fclose(to);
    CHECK_STR_EQ(text, "{\n"
                       "  \"empty\": [],\n"
                       "  \"list\": [18446744073709551615, true, {\"a\": 1}],\n"
                       "  \"text\": \"\\\"\\\\\\n\\t\\u0001 \xc3\xa9 \\ufffd "
                       "\\ufffd\\ufffd\\ufffd\",\n"
                       "  \"obeyed\\u009b\": \"\\u007f\\u0080\\u009b31m\\u009f\xc2\xa0\\ufffd\"\n"
                       "}\n");
    free(text);
}

static bh_status read_index(void *context, uint64_t first, uint64_t count, void *target) {
    (void)context;
    for (uint64_t i = 0; i < count; i++)
        bh__value_store((unsigned char *)target + 4 * i, BH_U32, first + i);
    return BH_OK;
}

static char *line_of(uint64_t count, bh__style style) {
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    CHECK_EQ(bh__print_line(to, BH_U32, count, style, read_index, NULL), BH_OK);
    fclose(to);
    return text;
}

TEST(long_buffers_are_shortened) {
    char *text = line_of(3, (bh__style){false, false});
    CHECK_STR_EQ(text, "u32[3] 0 1 2\n");
    free(text);
    text = line_of(1000, (bh__style){false, false});
    CHECK(strstr(text, "...") == NULL);
    CHECK_STR_CONTAINS(text, " 500 501 ");
    free(text);
    text = line_of(1001, (bh__style){false, false});
    CHECK_STR_EQ(text, "u32[1001] 0 1 2 3 4 5 6 7 8 9 ... (981 more) ... 991 992 993 994 995 996 "
                       "997 998 999 1000\n");
    free(text);
    text = line_of(10000, (bh__style){true, true});
    CHECK(strstr(text, "...") == NULL);
    CHECK_STR_CONTAINS(text, " 0x0000270f\n");
    free(text);
}
