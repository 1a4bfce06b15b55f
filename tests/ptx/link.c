/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX linker: several texts become one that runs, or an error that says why not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/linked.h"

TEST(functions_and_variables_of_other_files_are_found) {
    EXPECT(LINK(KERNEL(TWICE_DECLARED ".extern .global .align 4 .u32 g;\n",
                       "ld.global.u32 %r1, [g];\n" CALL("twice", "%r1",
                                                        "%r2") "st.global.u32 [%rd1], %r2;"),
                TWICE, PTX_HEAD ".visible .global .align 4 .u32 g = 21;\n"),
           42);
}

TEST(names_of_one_file_do_not_clash) {
#define STATIC(name, value)                                                                        \
    PTX_HEAD ".global .align 4 .u32 count = " value ";\n"                                          \
             ".func (.param .b32 r) get () { .reg .b32 %r<3>; ld.global.u32 %r1, [count];\n"       \
             "st.param.b32 [r], %r1; ret; }\n"                                                     \
             ".visible .func (.param .b32 r) " name " () { .reg .b32 %r<3>; {.param .b32 y;\n"     \
             "call.uni (y), get; ld.param.b32 %r1, [y]; }\n"                                       \
             "st.param.b32 [r], %r1; ret; }\n"
    EXPECT(LINK(KERNEL(".extern .func (.param .b32 r) one ();\n"
                       ".extern .func (.param .b32 r) two ();\n"
                       ".global .align 4 .u32 get = 3;\n",
                       "{ .param .b32 y; call.uni (y), one; ld.param.b32 %r1, [y]; }\n"
                       "{ .param .b32 y; call.uni (y), two; ld.param.b32 %r2, [y]; }\n"
                       "ld.global.u32 %r3, [get];\n"
                       "st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r2;\n"
                       "st.global.u32 [%rd1+8], %r3;"),
                STATIC("one", "1"), STATIC("two", "2")),
           1, 2, 3);
}

/* Names of functions hide those of the module; registers like r1 are numbered ranges. */
TEST(renaming_keeps_labels_registers_and_variables_of_functions) {
    const char *other = PTX_HEAD ".global .u32 p = 1; .global .u32 r1 = 2; .global .u32 L = 3;\n"
                                 ".global .u32 add = 4;\n";
    EXPECT(LINK(other,
                PTX_HEAD ".global .u32 p = 5; .global .u32 r1 = 6; .global .u32 L = 7;\n"
                         ".global .u32 add = 8;\n"
                         ".visible .entry k(.param .u64 q)\n{\n"
                         ".reg .pred p; .reg .b32 r<4>; .reg .b64 %rd1;\n"
                         "ld.param.u64 %rd1, [q];\n"
                         "mov.u32 r1, 10; setp.eq.u32 p, r1, 10; @p bra L; mov.u32 r1, 0;\n"
                         "L: add.u32 r1, r1, 1;\n"
                         "@!p mov.u32 r1, 99; st.global.u32 [%rd1], r1;\n"
                         "ld.global.u32 r2, [add]; st.global.u32 [%rd1+4], r2; ret;\n}\n",
                PTX_HEAD ".visible .global .u32 x = 5;\n"),
           11, 8);
}

TEST(of_weak_definitions_the_first_counts_and_a_strong_one_before_it) {
    const char *user = KERNEL(".extern .global .align 4 .u32 w; .extern .global .align 4 .u32 s;\n",
                              "ld.global.u32 %r1, [w]; ld.global.u32 %r2, [s];\n"
                              "st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r2;");
    EXPECT(LINK(user, PTX_HEAD ".weak .global .u32 w = 1; .weak .global .u32 s = 1;\n",
                PTX_HEAD ".weak .global .u32 w = 2; .visible .global .u32 s = 2;\n",
                PTX_HEAD ".weak .global .u32 s = 3;\n"),
           1, 2);
}

TEST(weak_functions_and_kernels_become_one) {
    const char *both = KERNEL("", "mov.u32 %r1, 7; st.global.u32 [%rd1], %r1;");
    char weak[1024];
    snprintf(weak, sizeof weak, "%s", both);
    memcpy(strstr(weak, ".visible"), ".weak   ", 8);
    linked l = LINK(weak, weak, weak);
    REQUIRE_EQ(l.status, BH_OK);
    const char *first = strstr(l.out.text, ".entry");
    CHECK(first != NULL && strstr(first + 1, ".entry") == NULL);
    EXPECT(l, 7);
}

TEST(common_variables_become_one_of_the_largest_size) {
    linked l =
        LINK(PTX_HEAD ".common .global .align 4 .b8 c[8];\n",
             KERNEL(".common .global .align 4 .b8 c[32];\n.common .global .align 4 .u32 d;\n",
                    "mov.u32 %r1, 9; st.global.u32 [c+28], %r1;\n"
                    "ld.global.u32 %r2, [c+28]; st.global.u32 [%rd1], %r2;\n"
                    "ld.global.u32 %r2, [d]; st.global.u32 [%rd1+4], %r2;"),
             PTX_HEAD ".common .global .align 16 .b8 c[16]; .visible .global .u32 d = 3;\n");
    REQUIRE_EQ(l.status, BH_OK);
    CHECK_STR_CONTAINS(l.out.text, ".align 16");
    EXPECT(l, 9, 3);
}

TEST(dynamic_shared_memory_is_one) {
    linked l = LINK(KERNEL(".extern .shared .align 4 .b8 s[];\n.extern .func fill ();\n",
                           "call.uni fill; ld.shared.u32 %r1, [s];\n"
                           "st.global.u32 [%rd1], %r1;"),
                    PTX_HEAD ".extern .shared .align 16 .f32 s[];\n.visible .func fill ()\n"
                             "{ .reg .b32 %r<3>; mov.u32 %r1, 5; st.shared.u32 [s], %r1; ret; }\n");
    REQUIRE_EQ(l.status, BH_OK);
    uint32_t out[4] = {0};
    kernel k;
    REQUIRE_EQ(kernel_open(&k, l.out.text, 1, out, sizeof out), BH_OK);
    k.grid.dynamic_shared = 64;
    CHECK_EQ(kernel_run(&k), BH__PTX_DONE);
    CHECK_EQ(out[0], 5);
    kernel_close(&k);
    bh__arena_free(&l.arena);
}

TEST(initial_values_refer_to_other_files_in_a_circle) {
    EXPECT(
        LINK(KERNEL(TWICE_DECLARED ".extern .global .align 8 .u64 q;\n"
                                   ".visible .global .align 8 .u64 pair[2] = {generic(q), twice};\n"
                                   ".global .align 4 .u32 six = 6;\n",
                    "ld.global.u64 %rd2, [pair]; ld.u64 %rd3, [%rd2];\n" /* q, which is &pair */
                    "ld.u64 %rd4, [%rd3+8]; mov.u32 %r1, 4;\n"
                    "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r1;\n"
                    "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
                    "call (y), %rd4, (x), proto; ld.param.b32 %r2, [y]; }\n"
                    "st.global.u32 [%rd1], %r2;"),
             TWICE,
             PTX_HEAD ".extern .global .align 8 .u64 pair[];\n"
                      ".visible .global .align 8 .u64 q = generic(pair);\n"),
        8);
}

TEST(functions_of_two_files_call_each_other) {
#define HALF(name, other)                                                                          \
    ".extern .func (.param .b32 r) " other " (.param .b32 v);\n"                                   \
    ".visible .func (.param .b32 r) " name " (.param .b32 v)\n"                                    \
    "{ .reg .b32 %r<4>; .reg .pred %p; ld.param.b32 %r1, [v];\n"                                   \
    "mov.u32 %r2, 0; setp.eq.u32 %p, %r1, 0; @%p bra DONE; sub.u32 %r1, %r1, 1;\n" CALL(           \
        other, "%r1", "%r2") "DONE: add.u32 %r2, %r2, 1; st.param.b32 [r], %r2; ret; }\n"
    EXPECT(LINK(KERNEL(HALF("ping", "pong"),
                       "mov.u32 %r1, 9;\n" CALL("ping", "%r1", "%r2") "st.global.u32 [%rd1], %r2;"),
                PTX_HEAD HALF("pong", "ping")),
           10);
}

TEST(aliases_and_pragmas_stay) {
    EXPECT(LINK(KERNEL(".extern .func (.param .b32 r) also (.param .b32 v);\n",
                       "mov.u32 %r1, 3;\n" CALL("also", "%r1", "%r2") "st.global.u32 [%rd1], %r2;"),
                TWICE ".visible .func (.param .b32 r) also (.param .b32 v);\n"
                      ".alias also, twice;\n.pragma \"nounroll\";\n"),
           6);
}

/* ---- problems ---- */

TEST(what_is_missing_is_named_with_its_places) {
    EXPECT_PROBLEM(LINK(TWICE, KERNEL(".extern .func (.param .b32 r) thrice (.param .b32 v);\n",
                                      "mov.u32 %r1, 1;\n" CALL("thrice", "%r1", "%r2"))),
                   "function thrice is not defined", "line 10 of b.ptx", "line 4 of b.ptx");
    EXPECT_PROBLEM(LINK(KERNEL(".extern .global .u32 lost;\n", "ld.global.u32 %r1, [lost];")),
                   "variable lost is not defined", "line 9 of a.ptx", "line 4 of a.ptx");
    EXPECT_PROBLEM(LINK(PTX_HEAD ".extern .global .u32 lost;\n.global .u64 x = lost;\n"),
                   "variable lost is not defined", "line 5 of a.ptx");
}

TEST(what_is_declared_and_not_used_may_be_missing) {
    linked l = LINK(KERNEL(TWICE_DECLARED ".extern .global .u32 lost, p; .extern .func other;\n",
                           "bra lost; lost: mov.u32 %r1, 1; st.global.u32 [%rd1], %r1;"),
                    PTX_HEAD);
    REQUIRE_EQ(l.status, BH_OK);
    CHECK(strstr(l.out.text, "twice") == NULL && strstr(l.out.text, "other") == NULL);
    EXPECT(l, 1);
}

TEST(what_is_defined_twice_is_named_with_both_places) {
    EXPECT_PROBLEM(LINK(TWICE, PTX_HEAD "\n" TWICE_DECLARED, TWICE), "function twice is defined",
                   "line 4 of c.ptx", "line 4 of a.ptx");
    EXPECT_PROBLEM(LINK(PTX_HEAD ".visible .global .u32 x;\n.visible .const .u32 x;\n"),
                   "x is defined twice", "line 5 of a.ptx", "line 4 of a.ptx");
    linked l = LINK(PTX_HEAD ".visible .global .u32 a, b, c;\n",
                    PTX_HEAD ".visible .global .u32 a, b, c;\n");
    CHECK_STR_CONTAINS(l.out.log, "variable a is defined twice");
    CHECK_STR_CONTAINS(l.out.log, "variable b is defined twice");
    CHECK_STR_CONTAINS(l.out.log, "variable c is defined twice");
    bh__arena_free(&l.arena);
}

TEST(declarations_that_do_not_agree_are_named_with_both_places) {
    const char *user = PTX_HEAD ".extern .global .align 4 .u32 g;\n";
    EXPECT_PROBLEM(LINK(user, PTX_HEAD ".visible .global .align 8 .u64 g;\n"), "g do not agree",
                   "of 4 bytes on line 4 of a.ptx", "of 8 bytes on line 4 of b.ptx");
    EXPECT_PROBLEM(LINK(user, PTX_HEAD ".visible .const .align 4 .u32 g;\n"), "g do not agree",
                   "in .global", "in .const");
    EXPECT_PROBLEM(LINK(user, PTX_HEAD ".visible .func g () { ret; }\n"), "g do not agree",
                   "a variable", "a function");
    EXPECT_PROBLEM(LINK(PTX_HEAD ".extern .func twice (.param .b32 v);\n", TWICE),
                   "twice do not agree", "line 4 of a.ptx", "line 4 of b.ptx", "1 result");
    EXPECT_PROBLEM(
        LINK(PTX_HEAD ".extern .func (.param .b32 r) twice (.param .align 8 .b8 v[16]);\n", TWICE),
        "twice do not agree", "(16 bytes)", "(4 bytes)");
    EXPECT_PROBLEM(
        LINK(PTX_HEAD ".common .global .b8 c[8];\n", PTX_HEAD ".visible .global .u32 c;\n"),
        "c do not agree", "8 bytes", "4 bytes");
}

TEST(texts_that_are_not_ptx_are_named) {
    EXPECT_PROBLEM(LINK(TWICE, ""), "line 1 of b.ptx", "the file is empty");
    EXPECT_PROBLEM(LINK(TWICE, "int main(void) { return 0; }\n"), "line 1 of b.ptx", "not PTX");
    EXPECT_PROBLEM(LINK(TWICE, "\177ELF\1\2\3"), "line 1 of b.ptx", "not allowed in PTX");
    EXPECT_PROBLEM(LINK(PTX_HEAD ".visible .func f () { ret;\n"), "a.ptx", "ends inside");
    EXPECT_PROBLEM(LINK(PTX_HEAD "\n.global .u32 x = 3\n"), "a.ptx", "';' is expected");
    EXPECT_PROBLEM(LINK(".version 8.0\n"), "a.ptx", "no .target");
    linked none = LINK(TWICE);
    bh_error error;
    bh__ptx_linked out;
    CHECK_EQ(bh__ptx_link(&none.arena, NULL, 0, &error, &out), BH_E_INVALID);
    bh__arena_free(&none.arena);
}

TEST(the_highest_version_and_target_count) {
    linked l = LINK(".version 7.8\n.target sm_80\n.address_size 64\n",
                    ".version 8.10\n.target sm_75, debug\n.address_size 64\n",
                    ".version 8.9\n.target sm_90a\n.address_size 64\n");
    REQUIRE_EQ(l.status, BH_OK);
    CHECK_STR_CONTAINS(l.out.text, ".version 8.10\n.target sm_90a\n.address_size 64\n");
    CHECK_STR_EQ(l.out.arch, "sm_90a");
    bh__arena_free(&l.arena);
    EXPECT_PROBLEM(LINK(PTX_HEAD, ".version 8.0\n.target sm_90\n"), "b.ptx has addresses of 32");
    EXPECT_PROBLEM(LINK(".version 8.0\n.target sm_90a\n.address_size 64\n",
                        ".version 8.0\n.target sm_100\n.address_size 64\n"),
                   "a.ptx is for sm_90a", "b.ptx is for sm_100");
}

/* ---- where things are ---- */

TEST(faults_and_errors_name_the_line_of_the_file) {
    const char *user = KERNEL(".extern .func crash ();\n", "call.uni crash;");
    linked l = LINK(user, PTX_HEAD "\n// a comment\n.visible .func crash ()\n{\n"
                                   ".reg .b64 %rd<3>; .reg .b32 %r<3>;\nmov.u64 %rd1, 64;\n"
                                   "/* two\nlines */ ld.global.u32 %r1, [%rd1];\nret;\n}\n");
    REQUIRE_EQ(l.status, BH_OK);
    uint32_t out[4];
    kernel k;
    CHECK_EQ(run_text(&k, l.out.text, 1, out, sizeof out), BH__PTX_FAULTED);
    CHECK_STR_CONTAINS(k.fault.text, "PTX line 11 of b.ptx: `ld.global.u32 %r1, [%rd1]`");
    CHECK_EQ(k.fault.line, 11);
    /* Linked again, the lines are still those of the first text. */
    linked again = LINK(l.out.text, PTX_HEAD ".visible .global .u32 more = 1;\n");
    REQUIRE_EQ(again.status, BH_OK);
    CHECK_EQ(run_text(&k, again.out.text, 1, out, sizeof out), BH__PTX_FAULTED);
    CHECK_STR_CONTAINS(k.fault.text, "PTX line 11 of b.ptx: ");
    bh__arena_free(&again.arena);
    bh__arena_free(&l.arena);

    l = LINK(user, PTX_HEAD ".visible .func crash ()\n{\n.reg .b32 %r<3>;\n"
                            "add.u33 %r1, %r1, %r2;\nret;\n}\n");
    REQUIRE_EQ(l.status, BH_OK);
    bh_error error;
    CHECK(load_error(l.out.text, l.out.length, &error) != BH_OK);
    CHECK_STR_CONTAINS(error.message, "line 7 of b.ptx: ");
    bh__arena_free(&l.arena);
}

TEST(source_lines_stay_right) {
#define LINES(name, file)                                                                          \
    PTX_HEAD ".visible .func " name " ()\n{\n.reg .b64 %rd<3>; .reg .b32 %r<3>;\n"                 \
             ".loc 1 7 3\nmov.u64 %rd1, 64;\n"                                                     \
             ".loc 2 40 3, function_name $info, inlined_at 1 7 3\n"                                \
             "ld.global.u32 %r1, [%rd1];\nret;\n}\n"                                               \
             ".file 1 \"/src/" file ".cu\"\n.file 2 \"/src/" file ".h\", 17, 4\n"                  \
             ".section .debug_str\n{\n$info:\n.b8 65,0\n}\n"
    linked l = LINK(KERNEL(".extern .func one (); .extern .func two ();\n", "call.uni two;"),
                    LINES("one", "one"), LINES("two", "two"));
    REQUIRE_EQ(l.status, BH_OK);
    uint32_t out[4];
    kernel k;
    CHECK_EQ(run_text(&k, l.out.text, 1, out, sizeof out), BH__PTX_FAULTED);
    CHECK_STR_CONTAINS(k.fault.text, "PTX line 10 of c.ptx (two.h:40): `ld.global.u32");
    CHECK(strstr(l.out.text, "inlined_at") == NULL && strstr(l.out.text, ".section") == NULL);
    bh__arena_free(&l.arena);
}

TEST(a_text_says_with_line_directives_where_it_comes_from) {
    bh_error error;
    const char *text = "#line 1 \"first.ptx\"\n" PTX_HEAD "# 50 \"second.ptx\" 2\n.global .u32 a\n"
                       "  #line 70\n, a;\n";
    CHECK_EQ(load_error(text, strlen(text), &error), BH_E_LOAD);
    CHECK_STR_CONTAINS(error.message,
                       "line 50 of second.ptx: a is declared twice, first on line 50");
    text = PTX_HEAD "#define x\n";
    CHECK_EQ(load_error(text, strlen(text), &error), BH_E_LOAD);
    CHECK_STR_CONTAINS(error.message, "line 4: this character is not allowed");
}

/* ---- sizes ---- */

static char *append(char *to, const char *format, unsigned number, unsigned other) {
    return to + sprintf(to, format, number, other);
}

TEST_TIMEOUT(many_files_link, 60) {
    enum { FILES = 1000 };
    bh__ptx_text *texts = calloc(FILES, sizeof *texts);
    for (unsigned i = 0; i < FILES; i++) {
        char *text = malloc(2048), *at = append(text, PTX_HEAD ".global .u32 own = %u;\n", i, 0);
        if (i + 1 < FILES) at = append(at, ".extern .global .u32 v%u;\n", i + 1, 0);
        at = append(at, ".visible .global .u32 v%u = %u;\n", i, i);
        if (i + 1 < FILES) append(at, ".visible .global .u64 p%u = v%u;\n", i, i + 1);
        texts[i] = (bh__ptx_text){.name = "part", .text = text, .length = strlen(text)};
    }
    linked l = {0};
    CHECK_EQ(bh__ptx_link(&l.arena, texts, FILES, &l.error, &l.out), BH_OK);
    bh__ptx_module *module = NULL;
    REQUIRE_EQ(bh__ptx_load(l.out.text, l.out.length, &l.error, &module), BH_OK);
    CHECK_EQ(bh__ptx_variable_count(module), FILES * 3 - 1);
    bh__ptx_free(module);
    bh__arena_free(&l.arena);
    for (unsigned i = 0; i < FILES; i++) free((char *)texts[i].text);
    free(texts);
}

/* 100,000 names in each of two files, all of one renamed, all of the other resolved: more than the
 * time limit if that were not linear. */
TEST_TIMEOUT(many_names_link, 60) {
    enum { NAMES = 100000 };
    char *text[2];
    for (unsigned i = 0; i < 2; i++) {
        char *at = text[i] = malloc(NAMES * (size_t)120);
        at = append(at, PTX_HEAD, 0, 0);
        for (unsigned n = 0; n < NAMES; n++) {
            at = append(at, ".global .u32 own%u;\n", n, 0);
            at = append(at, i ? ".visible .func f%u() {ret;}\n" : ".extern .func f%u ();\n", n, 0);
        }
        at = append(at, ".visible .func g%u() {\n", i, 0);
        for (unsigned n = 0; n < NAMES; n++) at = append(at, i ? "" : "call.uni f%u;\n", n, 0);
        append(at, "ret; }\n", 0, 0);
    }
    linked l = LINK(text[0], text[1]);
    CHECK_EQ(l.status, BH_OK);
    CHECK_STR_CONTAINS(l.out.text, "own99999$link1_1");
    bh__arena_free(&l.arena);
    /* The same twice: every name of the second is a problem, and the log has an end. */
    l = LINK(text[1], text[1]);
    CHECK_EQ(l.status, BH_E_COMPILE);
    CHECK_STR_CONTAINS(l.out.log, "and 99801 more\n");
    CHECK(strlen(l.out.log) < 100000);
    bh__arena_free(&l.arena);
    free(text[0]);
    free(text[1]);
}
