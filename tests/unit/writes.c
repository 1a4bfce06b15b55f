/* SPDX-License-Identifier: Apache-2.0 */
/* src/writes: which variables the kernels of a PTX module can write. */
#include "writes/writes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#define HEAD                                                                                       \
    ".version 8.0\n.target sm_80\n.address_size 64\n"                                              \
    ".visible .global .align 4 .u32 x;\n"                                                          \
    ".global .align 4 .b8 table[16] = {1, 0, 0, 0, 2};\n"                                          \
    ".const .align 4 .u32 fixed = 7;\n"
#define KERNEL                                                                                     \
    ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"                                         \
    "  .reg .pred %p<3>;\n  .reg .b32 %r<9>;\n  .reg .b64 %rd<9>;\n  .reg .f32 %f<9>;\n"           \
    "  .local .align 8 .b8 depot[16];\n  .shared .align 8 .b8 room[64];\n"                         \
    "  ld.param.u64 %rd1, [p];\n"
#define END "  ret;\n}\n"

static bool writes(const char *text, const char *name) {
    bh__writes *set = bh__writes_of_ptx(text, strlen(text));
    REQUIRE(set);
    bool has = bh__writes_has(set, name);
    bh__writes_free(set);
    return has;
}

/* Whether the statements, in a kernel, can write x. What is not named is never written. */
static bool body_writes(const char *statements) {
    char text[4096];
    snprintf(text, sizeof text, "%s%s%s%s", HEAD, KERNEL, statements, END);
    CHECK(!writes(text, "table"));
    CHECK(!writes(text, "fixed"));
    return writes(text, "x");
}

TEST(stores_and_atomics_write) {
    CHECK(body_writes("st.global.u32 [x], %r1;"));
    CHECK(body_writes("@!%p1 st.global.cg.u32 [x+0], 1;"));
    CHECK(body_writes("st.volatile.global.v2.u16 [x], {%r1, %r2};"));
    CHECK(body_writes("mov.u64 %rd2, x; st.global.u32 [%rd2], %r1;"));
    CHECK(body_writes("mov.u64 %rd2, x; cvta.global.u64 %rd3, %rd2; st.u32 [%rd3+4], %r1;"));
    CHECK(body_writes("mov.u64 %rd2, x; add.s64 %rd3, %rd4, %rd2; st.global.u32 [%rd3], %r1;"));
    CHECK(body_writes("mov.u64 %rd2, x; selp.b64 %rd3, %rd2, %rd1, %p1; st.u32 [%rd3], %r1;"));
    CHECK(body_writes("atom.global.add.u32 %r1, [x], 1;"));
    CHECK(body_writes("mov.u64 %rd2, x; atom.global.gpu.cas.b32 %r1, [%rd2], 0, 1;"));
    CHECK(body_writes("red.global.add.u32 [x], 1;"));
}

TEST(loads_do_not) {
    CHECK(!body_writes(""));
    CHECK(!body_writes("ld.global.u32 %r1, [x]; st.global.u32 [%rd1], %r1;"));
    CHECK(!body_writes("mov.u64 %rd2, x; add.s64 %rd2, %rd2, %rd3; ld.global.nc.u32 %r1, [%rd2];"
                       "st.global.u32 [%rd1], %r1;"));
    CHECK(!body_writes("mov.u64 %rd2, x; cvta.global.u64 %rd3, %rd2; ld.u32 %r1, [%rd3];"
                       "st.u32 [%rd1], %r1;"));
    CHECK(!body_writes("mov.u64 %rd2, x; ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd2];"
                       "st.global.v2.u32 [%rd1], {%r1, %r4};"));
    CHECK(!body_writes("mov.u64 %rd2, x; prefetch.global.L2 [%rd2]; setp.eq.u64 %p1, %rd2, %rd1;"
                       "@%p1 st.global.u32 [%rd1], 1;"));
    CHECK(!body_writes("mov.u64 %rd2, x; cp.async.ca.shared.global [room], [%rd2], 4;"));
    CHECK(!body_writes("mov.u64 %rd2, x; ld.global.u32 %r1, [%rd2]; st.local.u32 [depot], %r1;"
                       "ld.local.u32 %r2, [depot]; st.global.u32 [%rd1], %r2;"));
}

TEST(addresses_that_get_away_count_as_written) {
    CHECK(body_writes("mov.u64 %rd2, x; st.global.u64 [%rd1], %rd2;"));
    CHECK(body_writes("mov.u64 %rd2, x; st.shared.u64 [room], %rd2;"));
    CHECK(body_writes("mov.u64 %rd2, x; st.global.v2.u64 [%rd1], {%rd3, %rd2};"));
    CHECK(body_writes("mov.u64 %rd2, x; atom.global.exch.b64 %rd3, [%rd1], %rd2;"));
    /* in two halves */
    CHECK(body_writes("mov.u64 %rd2, x; mov.b64 {%r1, %r2}, %rd2; mov.b64 %rd3, {%r1, %r2};"
                      "st.u32 [%rd3], 1;"));
    /* to another lane */
    CHECK(body_writes("mov.u64 %rd2, x; mov.b64 {%r1, %r2}, %rd2;"
                      "shfl.sync.idx.b32 %r3|%p1, %r1, 0, 31, -1; mov.b64 %rd3, {%r3, %r2};"
                      "st.u32 [%rd3], 1;"));
    /* through local memory, before it is put there in the order of the text */
    CHECK(body_writes("ld.local.u64 %rd3, [depot+8]; mov.u64 %rd2, x; st.local.u64 [depot+8], %rd2;"
                      "st.global.u32 [%rd3], 1;"));
    CHECK(body_writes("mov.u64 %rd2, x; st.local.u64 [depot], %rd2; mov.u64 %rd4, depot;"
                      "cvta.local.u64 %rd4, %rd4; ld.u64 %rd3, [%rd4]; st.global.u32 [%rd3], 1;"));
    CHECK(!body_writes("mov.u64 %rd2, x; st.local.u64 [depot], %rd2;"
                       "ld.local.u64 %rd3, [depot]; ld.global.u32 %r1, [%rd3];"));
}

TEST(instructions_that_are_not_known_write) {
    CHECK(body_writes("mov.u64 %rd2, x; frobnicate.global.b32 [%rd2], %r1;"));
    CHECK(body_writes("mov.u64 %rd2, x; frobnicate.b32 %r1, [%rd2], %r1;"));
    CHECK(body_writes("mov.u64 %rd2, x; frobnicate.b64 %rd3, %rd2; st.u32 [%rd3], 1;"));
    CHECK(body_writes("cp.async.bulk.global.shared::cta.bulk_group [x], [room], 16;"));
    CHECK(
        body_writes("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [x], [room], 4;"));
    CHECK(body_writes("mbarrier.init.b64 [x], 1;"));
    CHECK(body_writes("discard.global.L2 [x], 128;"));
    CHECK(body_writes("wmma.store.d.sync.aligned.row.m16n16k16.f32 [x], {%f1, %f2}, 16;"));
    CHECK(!body_writes(
        "mov.u64 %rd2, x; wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1, %r2}, [%rd2];"
        "st.global.u32 [%rd1], %r1;"));
}

TEST(another_variables_initialiser_is_a_way_to_write) {
    CHECK(writes(HEAD ".global .u64 pointer = generic(x);\n", "x"));
    CHECK(writes(HEAD ".global .u64 pointers[3] = {0, table+4, 0}, other = 3;\n", "table"));
    CHECK(writes(HEAD ".const .u64 pointer = x;\n", "x"));
    /* before its own declaration */
    CHECK(writes(".version 8.0\n.extern .global .u32 y;\n.global .u64 p[2] = {generic(y), 0};\n"
                 ".global .u32 y;\n",
                 "y"));
    CHECK(!writes(HEAD ".global .u64 pointer = generic(x);\n", "pointer"));
    CHECK(!writes(HEAD ".global .u32 a = 4, b[2] = {1, 2};\n", "x"));
}

#define VPRINTF                                                                                    \
    ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"                       \
    ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, "      \
    ".param .b64 e);\n"
#define CALL(name)                                                                                 \
    "  {\n  .param .b64 param0;\n  st.param.b64 [param0+0], %rd2;\n  .param .b64 param1;\n"        \
    "  st.param.b64 [param1+0], 0;\n  .param .b32 retval0;\n"                                      \
    "  call.uni (retval0), " name ", (param0, param1);\n"                                          \
    "  ld.param.b32 %r1, [retval0+0];\n  }\n"

TEST(what_printf_is_given_is_only_read) {
    CHECK(!writes(HEAD VPRINTF KERNEL "mov.u64 %rd2, x;\n" CALL("vprintf") END, "x"));
    CHECK(writes(HEAD ".extern .func (.param .b32 r) other(.param .b64 a, .param .b64 b);\n" KERNEL
                      "mov.u64 %rd2, x;\n" CALL("other") END,
                 "x"));
    /* a function of the module with that name is no printf */
    CHECK(writes(
        HEAD
        ".func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b)\n{\n"
        "  .reg .b64 %rd<3>;\n  ld.param.u64 %rd1, [a];\n  st.u32 [%rd1], 1;\n  ret;\n}\n" KERNEL
        "mov.u64 %rd2, x;\n" CALL("vprintf") END,
        "x"));
    /* parameters of one call are not those of the next */
    CHECK(!writes(
        HEAD VPRINTF
        ".func (.param .b32 r) put(.param .b64 a, .param .b64 b)\n{\n"
        "  .reg .b64 %rd<3>;\n  ld.param.u64 %rd1, [a];\n  st.u32 [%rd1], 1;\n  ret;\n}\n" KERNEL
        "mov.u64 %rd2, x;\n" CALL(
            "vprintf") "  {\n  .param .b64 param0;\n"
                       "  st.param.b64 [param0+0], %rd1;\n  .param .b64 param1;\n  .param .b32 retval0;\n"
                       "  call.uni (retval0), put, (param0, param1);\n  }\n" END,
        "x"));
}

#define GET                                                                                        \
    ".func (.param .b64 r) get(.param .b64 a, .param .b64 b)\n{\n  .reg .b64 %rd<3>;\n"            \
    "  ld.param.u64 %rd1, [a];\n  st.param.b64 [r+0], %rd1;\n  ret;\n}\n"

TEST(functions_of_the_module_are_followed) {
    /* read in the callee */
    CHECK(!writes(HEAD ".func (.param .b32 r) peek(.param .b64 a, .param .b64 b)\n{\n"
                       "  .reg .b64 %rd<3>;\n  .reg .b32 %r<3>;\n  ld.param.u64 %rd1, [a];\n"
                       "  ld.u32 %r1, [%rd1];\n  st.param.b32 [r+0], %r1;\n  ret;\n}\n" KERNEL
                       "mov.u64 %rd2, x;\n" CALL("peek") "st.global.u32 [%rd1], %r1;\n" END,
                  "x"));
    /* only the second parameter is written */
    const char put_second[] = HEAD
        ".func (.param .b32 r) put(.param .b64 a, .param .b64 b)\n{\n"
        "  .reg .b64 %rd<3>;\n  ld.param.u64 %rd1, [b];\n  st.u32 [%rd1], 1;\n  ret;\n}\n" KERNEL
        "mov.u64 %rd2, x;\nmov.u64 %rd3, table;\n"
        "{\n.param .b64 param0;\nst.param.b64 [param0+0], %rd2;\n.param .b64 param1;\n"
        "st.param.b64 [param1+0], %rd3;\n.param .b32 retval0;\n"
        "call.uni (retval0), put, (param0, param1);\n}\n" END;
    CHECK(!writes(put_second, "x"));
    CHECK(writes(put_second, "table"));
    /* returned and written in the caller */
    const char back[] = "mov.u64 %rd2, x;\n{\n.param .b64 param0;\nst.param.b64 [param0+0], %rd2;\n"
                        ".param .b64 param1;\n.param .b64 retval0;\n"
                        "call.uni (retval0), get, (param0, param1);\n"
                        "ld.param.b64 %rd3, [retval0+0];\n}\n";
    char text[4096];
    snprintf(text, sizeof text, "%s%s%s%s%s%s", HEAD, GET, KERNEL, back, "st.u32 [%rd3], 1;\n",
             END);
    CHECK(writes(text, "x"));
    snprintf(text, sizeof text, "%s%s%s%s%s%s", HEAD, GET, KERNEL, back,
             "ld.u32 %r1, [%rd3];\nst.global.u32 [%rd1], %r1;\n", END);
    CHECK(!writes(text, "x"));
    /* declared before and defined after its use, with other names */
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s", HEAD,
             ".func (.param .b64 q) get(.param .b64 s, .param .b64 t);\n", KERNEL, back,
             "st.u32 [%rd3], 1;\n", END, GET);
    CHECK(writes(text, "x"));
    /* by its address */
    CHECK(writes(
        HEAD GET KERNEL
        "mov.u64 %rd2, x;\nmov.u64 %rd4, get;\n"
        "{\n.param .b64 param0;\nst.param.b64 [param0+0], %rd2;\n.param .b64 param1;\n"
        ".param .b64 retval0;\nproto: .callprototype (.param .b64 _) _ (.param .b64 _, .param .b64 _);\n"
        "call (retval0), %rd4, (param0, param1), proto;\n}\n" END,
        "x"));
    /* the address of a parameter */
    CHECK(writes(HEAD ".func put(.param .b64 a)\n{\n  .reg .b64 %rd<4>;\n  mov.b64 %rd1, a;\n"
                      "  ld.local.u64 %rd2, [%rd1];\n  st.u32 [%rd2], 1;\n  ret;\n}\n" KERNEL
                      "mov.u64 %rd2, x;\n{\n.param .b64 param0;\nst.param.b64 [param0], %rd2;\n"
                      "call put, (param0);\n}\n" END,
                 "x"));
}

TEST(names_in_inner_scopes_hide_outer_ones) {
    CHECK(!body_writes("{ .reg .b64 x; mov.u64 x, %rd1; st.global.u32 [x], 1; }"));
    CHECK(body_writes("{ .reg .b64 x; mov.u64 x, %rd1; } st.global.u32 [x], 1;"));
    /* %rd2 in braces is another one */
    CHECK(!body_writes("mov.u64 %rd2, x; { .reg .b64 %rd2; mov.u64 %rd2, %rd1;"
                       "st.global.u32 [%rd2], 1; } ld.global.u32 %r1, [%rd2];"));
    CHECK(body_writes("mov.u64 %rd5, x; { .reg .b64 %rd<3>; st.global.u32 [%rd5], 1; }"));
    CHECK(!body_writes("mov.u64 %rd2, x; { .reg .b64 %rd<3>; st.global.u32 [%rd2], 1; }"));
    /* registers of a range whose name a variable has */
    CHECK(body_writes("{ .reg .b64 tabl<3>; mov.u64 tabl1, x; st.global.u32 [tabl1], 1; }"));
    CHECK(writes(HEAD KERNEL "{ .global .u32 inner; st.global.u32 [inner], 1; }\n" END, "inner"));
}

TEST(comments_strings_and_sections_are_no_code) {
    CHECK(
        !body_writes("// st.global.u32 [x], 1;\n/* st.global.u32 [x], 1; } */ .pragma \"st; [x]\";"
                     ".loc 1 2 3, function_name $L, inlined_at 1 2 3\n"));
    CHECK(!writes(HEAD ".section .debug_info {\n.b8 3\n.b64 x\n}\n" KERNEL END, "x"));
    CHECK(writes(HEAD ".section .debug_info {\n.b64 x\n}\n" KERNEL "st.global.u32 [x], 1;\n" END,
                 "x"));
    CHECK(writes(HEAD ".entry k(.param .u64 p) .maxntid 128, 1, 1 .pragma \"nounroll\";\n"
                      "{\nst.global.u32 [x], 1;\nret;\n}\n",
                 "x"));
}

/* Whatever is cut or changed: no crash, and what cannot be understood may say anything. */
TEST_TIMEOUT(damaged_text_does_no_harm, 60) {
    static const char good[] = HEAD VPRINTF GET KERNEL
        "mov.u64 %rd2, x;\n" CALL("vprintf") "{ .reg .b64 t<3>; mov.u64 t1, x; }\n" END;
    uint64_t state = 88172645463325252u;
    for (size_t size = 0; size < sizeof good; size++) {
        char *cut = malloc(size + 1); /* exact, for sanitizers */
        memcpy(cut, good, size);
        bh__writes_free(bh__writes_of_ptx(cut, size));
        free(cut);
    }
    for (int i = 0; i < 20000; i++) {
        char changed[sizeof good];
        memcpy(changed, good, sizeof good);
        for (int k = 0; k < 4; k++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            changed[state % (sizeof good - 1)] = "{}()[];,:.%<>\"x0 \n"[(state >> 32) % 18];
        }
        bh__writes_free(bh__writes_of_ptx(changed, sizeof good - 1));
    }
}

TEST(a_record_behind_an_image_says_the_same) {
    const char text[] = HEAD KERNEL "st.global.u32 [x], 1;\n" END;
    bh__writes *set = bh__writes_of_ptx(text, strlen(text));
    size_t bytes = 0;
    uint8_t *record = bh__writes_record_make(set, &bytes);
    REQUIRE(set && record);
    uint8_t *image = malloc(100 + bytes);
    memset(image, 7, 100);
    memcpy(image + 100, record, bytes);
    bh__writes *again = bh__writes_record_read(image, 100 + bytes);
    REQUIRE(again);
    CHECK(bh__writes_has(again, "x") && !bh__writes_has(again, "table"));
    bh__writes_free(again);
    for (size_t size = 0; size < 100 + bytes; size++) CHECK(!bh__writes_record_read(image, size));
    for (size_t i = 100; i < 100 + bytes; i++) {
        image[i] ^= 1;
        CHECK(!bh__writes_record_read(image, 100 + bytes));
        image[i] ^= 1;
    }
    CHECK(!bh__writes_record_make(NULL, &bytes));
    CHECK(bh__writes_has(NULL, "anything"));
    bh__writes_free(set);
    free(record);
    free(image);
}
