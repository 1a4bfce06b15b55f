/* SPDX-License-Identifier: Apache-2.0 */
/* The PTX linker: which names of a function mean something of the module, and which of its own. */
#include "support/linked.h"

#define OTHER(name) PTX_HEAD ".global .align 4 .u32 " name " = 77;\n"

/* Adds a static variable `name` = 5 and a kernel; another file has a static one of that name. */
#define CLASH(name, body)                                                                          \
    LINK(OTHER(name),                                                                              \
         KERNEL(".global .align 4 .u32 " name " = 5;\n", body "st.global.u32 [%rd1], %r1;"))

TEST(a_range_of_registers_ends_with_its_scope) {
    EXPECT(CLASH("r1", "{ .reg .b32 r<4>; mov.u32 r1, 9; }\nld.global.u32 %r1, [r1];\n"), 5);
    EXPECT(CLASH("r1", "{ .reg .b32 r<4>; mov.u32 r1, 9; mov.u32 %r1, r1; }\n"), 9);
    EXPECT(CLASH("r1", "{ .reg .b32 r<4>; { .reg .b32 r1; mov.u32 r1, 3; }\n"
                       "mov.u32 r1, 4; mov.u32 %r1, r1; }\n"),
           4);
    EXPECT(CLASH("r1", "{ .reg .b32 r1; { .reg .b32 r<4>; mov.u32 r1, 3; }\n"
                       "mov.u32 r1, 4; mov.u32 %r1, r1; }\n"),
           4);
}

TEST(a_range_of_registers_has_a_size) {
    EXPECT(CLASH("r7", "{ .reg .b32 r<7>; ld.global.u32 r6, [r7]; mov.u32 %r1, r6; }\n"), 5);
    EXPECT(CLASH("r7x", "{ .reg .b32 r<9>; ld.global.u32 r6, [r7x]; mov.u32 %r1, r6; }\n"), 5);
}

TEST(a_range_of_registers_may_be_called_like_a_variable) {
    EXPECT(CLASH("r", "{ .reg .b32 r<4>; ld.global.u32 r1, [r]; mov.u32 %r1, r1; }\n"), 5);
}

TEST(a_name_of_a_function_counts_from_its_declaration) {
    EXPECT(CLASH("x", "ld.global.u32 %r1, [x];\n{ .reg .b32 x; mov.u32 x, 3; }\n"
                      "ld.global.u32 %r2, [x]; add.u32 %r1, %r1, %r2;\n"),
           10);
}

/* What is missing is told although another scope has a register of that name. */
TEST(a_use_outside_the_scope_of_a_register_is_one) {
    EXPECT_PROBLEM(LINK(KERNEL(".extern .global .align 4 .u32 lost;\n",
                               "{ .reg .b32 lost; mov.u32 lost, 1; }\n"
                               "ld.global.u32 %r1, [lost];")),
                   "variable lost is not defined", "line 10 of a.ptx");
    EXPECT_PROBLEM(LINK(KERNEL(".extern .global .align 4 .u32 lost1;\n",
                               "{ .reg .b32 lost<3>; }\nld.global.u32 %r1, [lost1];")),
                   "variable lost1 is not defined");
    EXPECT_PROBLEM(LINK(KERNEL(".extern .global .align 4 .u32 lost;\n",
                               "ld.global.u32 %r1, [lost];\n{ bra lost; lost: ret; }")),
                   "variable lost is not defined", "line 9 of a.ptx");
    EXPECT(LINK(KERNEL(".extern .global .align 4 .u32 lost1;\n",
                       "{ .reg .b32 lost<3>; mov.u32 lost1, 3; st.global.u32 [%rd1], lost1; }")),
           3);
}

/* The parameters of a declaration hide nothing in the function that follows. */
TEST(parameters_belong_to_their_function) {
    EXPECT_PROBLEM(LINK(KERNEL(".extern .global .align 4 .u32 v;\n"
                               ".extern .func f (.param .b32 v);\n",
                               "ld.global.u32 %r1, [v];")),
                   "variable v is not defined", "line 10 of a.ptx");
    EXPECT_PROBLEM(LINK(KERNEL(".extern .global .align 4 .u32 v;\n",
                               "{ .param .b64 a;\n"
                               "proto: .callprototype _ (.param .b64 v);\n"
                               "ld.global.u32 %r1, [v]; }")),
                   "variable v is not defined");
}

/* NVIDIA's assembler takes a forward branch for a use of a variable of that name. */
TEST(labels_are_not_like_names_of_other_files) {
    linked l = LINK(KERNEL("", "bra DONE; DONE: mov.u32 %r1, 4; st.global.u32 [%rd1], %r1;"),
                    PTX_HEAD ".visible .global .align 4 .u32 DONE = 1;\n");
    REQUIRE_EQ(l.status, BH_OK);
    CHECK_STR_CONTAINS(l.out.text, "bra DONE$link1_0; DONE$link1_0: mov");
    CHECK_STR_CONTAINS(l.out.text, "DONE = 1;");
    EXPECT(l, 4);
}

TEST(an_instruction_on_the_line_of_a_loc_stays) {
    EXPECT(LINK(KERNEL("", ".loc 1 7 3 mov.u32 %r1, 5;\n"
                           ".loc 1 8\n 3, function_name $x+2, inlined_at 1 3 4 add.u32 %r1, %r1, "
                           "1;\nst.global.u32 [%rd1], %r1;") ".file 1 \"a.cu\"\n"),
           6);
}

/* Without a .file, numbers of files mean nothing, and must not mean a file of another text. */
TEST(a_loc_without_a_file_is_left_out) {
    linked l = LINK(PTX_HEAD ".visible .func f () {\n.loc 1 1 1\nret; }\n.file 1 \"f.cu\"\n",
                    KERNEL("", ".loc 1 99 3\nmov.u32 %r1, 5; st.global.u32 [%rd1], %r1;"));
    REQUIRE_EQ(l.status, BH_OK);
    CHECK_STR_CONTAINS(l.out.text, ".loc 1 1 1");
    CHECK(strstr(l.out.text, ".loc 1 99") == NULL);
    EXPECT(l, 5);
}

/* ---- definitions that are not chosen ---- */

TEST(what_a_weak_definition_uses_is_needed_if_it_is_chosen) {
#define WEAK(before, body)                                                                         \
    PTX_HEAD before ".weak .func (.param .b32 r) w ()\n{ .reg .b32 %r<3>;\n" body                  \
                    "st.param.b32 [r], %r1; ret; }\n"
    const char *user = KERNEL(".extern .func (.param .b32 r) w ();\n",
                              "{ .param .b32 y; call.uni (y), w; ld.param.b32 %r1, [y]; }\n"
                              "st.global.u32 [%rd1], %r1;");
    const char *plain = WEAK("", "mov.u32 %r1, 8;\n");
    const char *needy =
        WEAK(".extern .global .align 4 .u32 lost;\n", "ld.global.u32 %r1, [lost];\n");
    EXPECT(LINK(user, plain, needy), 8);
    EXPECT_PROBLEM(LINK(user, needy, plain), "variable lost is not defined", "line 7 of b.ptx");
    const char *strong = PTX_HEAD ".visible .func (.param .b32 r) w ()\n"
                                  "{ .reg .b32 %r<3>; mov.u32 %r1, 3; st.param.b32 [r], %r1; }\n";
    EXPECT(LINK(user, needy, strong), 3);
}

TEST(an_alias_may_come_before_its_function) {
    EXPECT(LINK(KERNEL(".extern .func (.param .b32 r) also (.param .b32 v);\n",
                       "mov.u32 %r1, 3;\n" CALL("also", "%r1", "%r2") "st.global.u32 [%rd1], %r2;"),
                PTX_HEAD ".visible .func (.param .b32 r) twice (.param .b32 v);\n"
                         ".visible .func (.param .b32 r) also (.param .b32 v);\n"
                         ".alias also, twice;\n"
                         ".visible .func (.param .b32 r) twice (.param .b32 v)\n"
                         "{ .reg .b32 %r<4>; ld.param.b32 %r1, [v]; add.u32 %r1, %r1, %r1;\n"
                         "st.param.b32 [r], %r1; ret; }\n"),
           6);
    EXPECT_PROBLEM(LINK(PTX_HEAD ".visible .func a ();\n.visible .func b ();\n.alias a, b;\n"),
                   "line 6 of a.ptx", "an alias needs");
    EXPECT_PROBLEM(LINK(PTX_HEAD ".visible .global .u32 v;\n.visible .func b ();\n.alias b, v;\n"),
                   "line 6 of a.ptx", "an alias needs");
    EXPECT_PROBLEM(LINK(PTX_HEAD ".visible .func a () { ret; }\n.visible .func b ();\n"
                                 ".visible .func c ();\n.alias b, a;\n.alias c, b;\n"),
                   "line 8 of a.ptx", "an alias needs");
}

/* ---- declarations of what is defined nowhere ---- */

TEST(declarations_of_what_the_device_has_must_agree) {
#define PRINTF(param)                                                                              \
    ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param ." param " b);\n"
    EXPECT_PROBLEM(LINK(PTX_HEAD PRINTF("b64"), PTX_HEAD PRINTF("b32")), "vprintf do not agree",
                   "line 4 of a.ptx", "line 4 of b.ptx");
    EXPECT_PROBLEM(LINK(PTX_HEAD ".extern .shared .align 4 .b8 s[];\n",
                        PTX_HEAD ".extern .func s ();\n"
                                 ".visible .func f () { call.uni s; ret; }\n"),
                   "s is not defined");
    EXPECT_PROBLEM(LINK(PTX_HEAD ".extern .shared .align 4 .b8 s[];\n",
                        KERNEL(".extern .shared .align 4 .u32 s[4];\n", "ld.shared.u32 %r1, [s];")),
                   "variable s is not defined", "b.ptx");
}

TEST(declarations_agree_in_what_their_users_rely_on) {
    EXPECT_PROBLEM(LINK(PTX_HEAD ".extern .func f (.param .align 16 .b8 x[16]);\n",
                        PTX_HEAD ".visible .func f (.param .align 4 .b8 x[16]) { ret; }\n"),
                   "f do not agree", "1 parameter (16 bytes aligned)", "(4 bytes aligned)");
    linked l = LINK(PTX_HEAD ".extern .func f (.param .align 4 .b32 x);\n",
                    PTX_HEAD ".visible .func f (.param .b32 x) { ret; }\n");
    CHECK_EQ(l.status, BH_OK);
    bh__arena_free(&l.arena);
    EXPECT_PROBLEM(LINK(PTX_HEAD ".extern .global .align 4 .u32 m;\n",
                        PTX_HEAD ".visible .global .attribute(.managed) .align 4 .u32 m;\n"),
                   "m do not agree", "a managed variable in .global");
    EXPECT_PROBLEM(LINK(PTX_HEAD ".extern .global .u32 m = 5;\n"), "line 4 of a.ptx",
                   "an .extern has no initial value");
}

TEST(heads_must_agree) {
#define HEADED(option) ".version 8.0\n.target sm_90" option "\n.address_size 64\n"
    EXPECT_PROBLEM(LINK(HEADED(""), HEADED(", texmode_unified"), HEADED(", texmode_independent")),
                   "c.ptx has the target option texmode_independent", "a.ptx has texmode_unified");
    linked l = LINK(HEADED(""), HEADED(", texmode_unified"));
    CHECK_EQ(l.status, BH_OK);
    bh__arena_free(&l.arena);
    EXPECT_PROBLEM(LINK(PTX_HEAD PTX_HEAD), "line 4 of a.ptx", "several files in this text");
    EXPECT_PROBLEM(LINK(PTX_HEAD ".target sm_80\n"), "line 4 of a.ptx", ".target twice");
}
