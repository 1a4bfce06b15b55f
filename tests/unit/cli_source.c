/* SPDX-License-Identifier: Apache-2.0 */
/* What a compiler said, with the source line marked where it did not show it. */
#include "cli/source.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

static const char text[] = "first line\n\tsecond = line;\nthird\n";

static void check_log(const char *log, const char *expected) {
    char *out = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&out, &size);
    REQUIRE(to != NULL);
    bh__source_print_log(to, log, "a.cu", text);
    fclose(to);
    CHECK_STR_EQ(out, expected);
    free(out);
}

TEST(a_line_that_is_not_shown_is_marked) {
    check_log("a.cu(2): error: no\nmore\n",
              "a.cu(2): error: no\n    2 | \tsecond = line;\n      | \t^\nmore\n");
    check_log("a.cu:2:4: error: no",
              "a.cu:2:4: error: no\n    2 | \tsecond = line;\n      | \t  ^\n");
}

TEST(a_line_that_is_shown_is_not_shown_again) {
    static const char nvrtc[] = "a.cu(2): error: no\n      second = line;\n      ^\n";
    static const char clang[] = "a.cu:2:2: error: no\n    2 |         second = line;\n      |  ^\n";
    check_log(nvrtc, nvrtc);
    check_log(clang, clang);
}

TEST(what_names_no_line_of_the_source_is_left_alone) {
    static const char *const logs[] = {"b.cu(2): error: no\n",  "a.cu(0): error: no\n",
                                       "a.cu(99): error: no\n", "a.cu\n",
                                       "a.cu: no such thing\n", "a.cu(2\n",
                                       "a.cu:2: error: no\n",   ""};
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++) check_log(logs[i], logs[i]);
}
