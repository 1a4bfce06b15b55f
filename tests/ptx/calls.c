/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: what can be passed and returned, indirect calls, and the directives around them. */
#include <string.h>

#include "support/kernel.h"
#include "test.h"

#define CALL_HEAD ".version 9.0\n.target sm_90a\n.address_size 64\n"
#define CALL_KERNEL(functions, body)                                                               \
    CALL_HEAD functions                                                                            \
        "\n.entry k(.param .u64 p) { .reg .b32 %r<8>, %t; .reg .b64 %rd<8>, %out; .reg .pred "     \
        "%p<4>;\n"                                                                                 \
        ".reg .b128 %q<4>; .reg .v4 .f32 w; .reg .v2 .b32 v;\n"                                    \
        "ld.param.u64 %out, [p]; mov.u32 %t, %tid.x;\n" body "\nret; }\n"

static uint32_t words[256];

static void run(const char *text, const uint32_t *expected, size_t count) {
    kernel k;
    memset(words, 0, sizeof words);
    CHECK_EQ(run_text(&k, text, 1, words, sizeof words), BH__PTX_DONE);
    for (size_t n = 0; n < count; n++) {
        CHECK_EQ(words[n], expected[n]);
    }
}
#define RUN(text, ...)                                                                             \
    do {                                                                                           \
        static const uint32_t expected[] = {__VA_ARGS__};                                          \
        run(text, expected, sizeof expected / sizeof *expected);                                   \
    } while (0)

TEST(registers_of_every_kind_are_passed) {
    RUN(CALL_KERNEL(".func (.reg .v2 .b32 r) f(.reg .v2 .b32 a, .reg .b32 b)\n"
                    "{ mov.b32 r.x, a.y; add.u32 r.y, a.x, b; ret; }",
                    "mov.b32 v.x, 1; mov.b32 v.y, 2; call (v), f, (v, 10);\n"
                    "st.global.v2.b32 [%out], v;"),
        2, 11);
    RUN(CALL_KERNEL(".func (.reg .v4 .f32 r) f(.reg .v4 .f32 a) { mov.f32 r.x, a.w;\n"
                    " mov.f32 r.y, a.z; mov.f32 r.z, a.y; mov.f32 r.w, a.x; ret; }",
                    "mov.f32 w.x, 0f3F800000; mov.f32 w.w, 0f40000000; call (w), f, (w);\n"
                    "st.global.v4.f32 [%out], w;"),
        0x40000000, 0, 0, 0x3f800000);
    RUN(CALL_KERNEL(
            ".func (.reg .b128 r, .reg .b32 s) f(.reg .b128 a)\n"
            "{ .reg .b64 x, y; mov.b128 {x, y}, a; mov.b128 r, {y, x}; mov.b32 s, 9; ret; }",
            "mov.b128 %q0, {1, 2, 3, 4}; call (%q1, %r0), f, (%q0);\n"
            "mov.b128 {%r1, %r2, %r3, %r4}, %q1; st.global.v4.b32 [%out], {%r1, %r2, %r3, "
            "%r4}; st.global.b32 [%out+16], %r0;"),
        3, 4, 1, 2, 9);
    RUN(CALL_KERNEL(".func (.reg .pred r) f(.reg .pred a, .reg .pred b) { xor.pred r, a, b; ret; }",
                    "setp.eq.u32 %p0, %t, 0; setp.ne.u32 %p1, %t, 0; call (%p2), f, (%p0, %p1);\n"
                    "selp.u32 %r0, 5, 6, %p2; call (%p2), f, (%p0, %p0); selp.u32 %r1, 5, 6, %p2;\n"
                    "st.global.v2.b32 [%out], {%r0, %r1};"),
        5, 6);
}

/* Divergent lanes pass different predicates in one call, and get their own back. */
TEST(predicates_are_passed_for_each_lane) {
    kernel k;
    const char *text =
        CALL_KERNEL(".func (.reg .pred r) f(.reg .pred a) { not.pred r, a; ret; }",
                    "and.b32 %r1, %t, 3; setp.eq.u32 %p1, %r1, 0; setp.lt.u32 %p0, %t, 20;\n"
                    "setp.ne.u32 %p3, %t, 99; @%p0 call (%p3), f, (%p1); selp.u32 %r0, 1, 2, %p3;\n"
                    "mul.wide.u32 %rd1, %t, 4; add.u64 %out, %out, %rd1; st.global.u32 [%out], "
                    "%r0;");
    CHECK_EQ(run_text(&k, text, 40, words, sizeof words), BH__PTX_DONE);
    for (uint32_t t = 0; t < 40; t++) {
        CHECK_EQ(words[t], t < 20 && t % 4 == 0 ? 2 : 1);
    }
}

TEST(memory_of_128_bits_is_passed_and_declared) {
    RUN(CALL_KERNEL(".func (.param .b128 r) f(.param .b128 a, .reg .b128 b)\n"
                    "{ .reg .b128 q; ld.param.b128 q, [a]; st.param.b128 [r], b; ret; }\n"
                    ".global .b128 x[2]; .const .b128 z = 7; .shared .b128 s;",
                    ".local .b128 l; ld.const.b128 %q0, [z]; st.local.b128 [l], %q0;\n"
                    "ld.local.b128 %q1, [l]; st.shared.b128 [s], %q1; ld.shared.b128 %q2, [s];\n"
                    "{ .param .b128 a; .param .b128 b; st.param.b128 [a], %q3;\n"
                    "call (b), f, (a, %q2); ld.param.b128 %q0, [b]; }\n"
                    "st.global.b128 [x+16], %q0; ld.global.b128 %q1, x[1];\n"
                    "st.global.b128 [%out], %q1;"),
        7, 0, 0, 0);
}

TEST(indirect_calls_name_a_prototype_a_list_or_a_table) {
    RUN(CALL_KERNEL(".func (.reg .b32 r) f(.reg .b32 a) { add.u32 r, a, 1; ret; }\n"
                    ".func (.reg .b32 r) g(.reg .b32 a) { add.u32 r, a, 2; ret; }\n"
                    ".global .u64 table[2] = {f, g};",
                    "T: .calltargets f, g; P: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n"
                    "mov.u64 %rd1, g; call (%r1), %rd1, (10), T; call (%r2), %rd1, (20), P;\n"
                    "ld.global.u64 %rd1, table[0]; call (%r3), %rd1, (30), table;\n"
                    "st.global.v4.b32 [%out], {%r1, %r2, %r3, 0};"),
        12, 22, 31);
}

TEST(a_parameter_without_a_size_takes_any_number_of_bytes) {
    RUN(CALL_KERNEL(
            ".func (.reg .b32 r) sum(.reg .b32 n, .param .align 8 .b8 va[]) {\n"
            " .reg .b32 x; .reg .b64 a; .reg .pred p; mov.b32 r, 0; mov.b64 a, va;\n"
            "more: setp.eq.u32 p, n, 0; @p ret; ld.param.b32 x, [a]; add.u32 r, r, x;\n"
            " add.u64 a, a, 4; sub.u32 n, n, 1; bra more; }\n"
            ".func (.reg .b32 r) second(.param .align 8 .b8 va[]) {\n"
            " ld.param.b32 r, [va+4]; ret; }",
            ".param .align 8 .b8 three[12]; .param .align 8 .b8 two[8];\n"
            "st.param.b32 [three], 1; st.param.b32 [three+4], 2; st.param.b32 [three+8], 3;\n"
            "st.param.b32 [two], 10; st.param.b32 [two+4], 20;\n"
            "call (%r0), sum, (3, three); call (%r1), sum, (2, two); call (%r2), sum, (0);\n"
            "call (%r3), second, (two); st.global.v4.b32 [%out], {%r0, %r1, %r2, %r3};"),
        6, 30, 0, 20);
}

TEST(structs_several_results_and_recursion) {
    RUN(CALL_KERNEL(
            ".func (.param .align 16 .b8 r[32]) f(.param .align 16 .b8 a[32], .param .f64 z)\n"
            "{ .reg .b64 x<4>; ld.param.v2.b64 {x0, x1}, [a]; ld.param.b64 x2, [z];\n"
            " st.param.v2.b64 [r+16], {x1, x0}; st.param.v2.b64 [r], {x2, x2}; ret; }",
            ".param .align 16 .b8 x[32]; .param .align 16 .b8 y[32]; .param .f64 z;\n"
            "st.param.v2.b64 [x], {7, 8}; st.param.f64 [z], 0d3FF0000000000000;\n"
            "call.uni (y), f, (x, z); ld.param.v4.b32 {%r0, %r1, %r2, %r3}, [y+16];\n"
            "ld.param.b32 %r4, [y+4]; st.global.v4.b32 [%out], {%r0, %r1, %r2, %r4};"),
        8, 0, 7, 0x3ff00000);
    RUN(CALL_KERNEL(".func (.reg .b32 r, .reg .b64 s) f(.reg .b32 a)\n"
                    "{ .reg .pred p; .reg .b32 t; .reg .b64 u; mov.b32 r, 1; mov.b64 s, 0;\n"
                    " setp.eq.u32 p, a, 0; @p ret; sub.u32 t, a, 1; call (t, u), f, (t);\n"
                    " mul.lo.u32 r, t, a; add.u64 s, u, 3; ret; }",
                    "call (%r0, %rd0), f, (5); cvt.u32.u64 %r1, %rd0;\n"
                    "st.global.v2.b32 [%out], {%r0, %r1};"),
        120, 15);
}

TEST(elements_of_arrays_and_offsets_that_are_computed) {
    RUN(CALL_KERNEL(
            ".global .b32 g[8] = {0, 1, 2, 3, 4, 5, 6, 7};",
            "ld.global.b32 %r0, g[3]; mov.u64 %rd0, g[5]; ld.global.b32 %r1, [%rd0];\n"
            "ld.global.b32 %r2, [g+4*2]; st.global.b32 g[1+1], 9; ld.global.b32 %r3, [g+8];\n"
            "st.global.v4.b32 [%out], {%r0, %r1, %r2, %r3};"),
        3, 5, 2, 9);
    RUN(CALL_KERNEL("", "T: .branchtargets A, B; mov.u32 %r1, 1; brx.idx.uni %r1, T;\n"
                        "A: ret; B: st.global.u32 [%out], 4;"),
        4);
}

TEST(vectors_of_registers_can_be_numbered) {
    RUN(CALL_KERNEL("",
                    ".reg .v2 .b32 %v<4>; mov.b32 %v1.x, 5; mov.b32 %v1.y, 6; mov.b32 %v3.x, 7;\n"
                    "mov.v2.b32 %v2, {%v1.y, %v1.x}; st.global.v2.b32 [%out], %v2;\n"
                    "st.global.v2.b32 [%out+8], %v3;"),
        6, 5, 7, 0);
}

TEST(directives_are_read) {
    static const char *const texts[] = {
        ".func f(.reg .b32 a) .noreturn;\n.func f(.reg .b32 a) .noreturn { trap; }\n"
        ".entry k() { .reg .b32 x; P: .callprototype _ (.reg .b32 _) .noreturn .abi_preserve 8;\n"
        " .reg .b64 p; mov.u64 p, f; call p, (x), P; }",
        ".func f() .abi_preserve 8 .abi_preserve_control 2 { ret; } .entry k() { call f; }",
        ".global .attribute(.managed) .align 8 .b8 n[16];\n"
        ".global .attribute(.managed, .unified(0xAB, 0xCD)) .b32 u;\n"
        ".func .attribute(.unified(1, 2)) f() { ret; } .entry k() { ret; }",
        ".common .global .b32 c[4]; .weak .func f() { ret; } .weak .entry k() { call.uni f; }\n"
        ".visible .shared .b32 v; .weak .global .b32 w = 1; .visible .const .b32 x;",
        ".func f(.reg .b32 a) { ret; } .func g(.reg .b32 a); .alias g, f;\n"
        ".entry k() { .reg .b32 x; call g, (x); }",
        ".pragma \"nounroll\"; .entry k() .maxnreg 32 { .pragma \"enable_smem_spilling\"; ret; }\n"
        ".entry l() .maxntid 128 .minnctapersm 2 { ret; } .entry m() .reqntid 32, 2 { ret; }",
        ".section .debug_str { info_string0: .b8 95,90,0 }\n"
        ".section .debug_info { .b32 11264 .b8 2 .b32 .debug_abbrev .b32 info_string0 .b64 Lf }\n"
        ".entry k() { ret; }",
        ".extern .shared .align 16 .b8 dynamic[]; .entry k() { .reg .b32 x;\n"
        " ld.shared.b32 x, [dynamic+4]; { .shared .b32 inner; st.shared.b32 [inner], x; } }",
        ".const .b32 a = 5; .global .v4 .f32 w[2] = {{1.0, 2.0, 3.0, 4.0}, {5.0, 6.0}};\n"
        ".global .b8 m[2][3] = {{1, 2, 3}, {4, 5}}; .global .s8 t[] = {-1, 2};\n"
        ".global .u64 p = generic(m)+2*1; .global .u64 q[2] = {m+1, generic(a)};\n"
        ".global .u32 o[] = {1 << 3, (2+3)*4, 1 ? 2 : 3}; .entry k() { ret; }",
    };
    for (size_t n = 0; n < sizeof texts / sizeof *texts; n++) {
        char text[1024] = CALL_HEAD;
        bh_error error;
        strcat(text, texts[n]);
        if (load_error(text, strlen(text), &error) != BH_OK) {
            FAIL("%s: %s", texts[n], error.message);
        }
    }
}

static void refused(const char *text, const char *message) {
    bh_error error;
    memset(&error, 0, sizeof error);
    CHECK_NE(load_error(text, strlen(text), &error), BH_OK);
    CHECK_STR_CONTAINS(error.message, message);
    CHECK(error.fix[0] != 0);
}

TEST(calls_that_do_not_fit_are_refused) {
    refused(CALL_KERNEL(".func f(.reg .v2 .b32 a) { ret; }", "call f, (%r0);"),
            "1 arguments given");
    refused(CALL_KERNEL(".func f(.reg .pred a) { ret; }", "call f, (%r0);"), "does not fit");
    refused(CALL_KERNEL(".func f(.reg .b32 a) { ret; }", "call f, (%p0);"), "does not fit");
    refused(CALL_KERNEL(".func f(.reg .b128 a) { ret; }", "call f, (%rd0);"), "does not fit");
    refused(CALL_KERNEL(".func f(.param .b8 a[], .param .b32 b) { ret; }", ""), "unknown size");
    refused(CALL_KERNEL(".func f(.param .b8 a[]) { ret; }", "call f, (%r0);"), "does not fit");
    refused(CALL_KERNEL(".global .u64 t[2];", "call %rd0, (), t;"), "malformed");
    refused(CALL_KERNEL("", "ld.global.b32 %r0, k[1];"), "not an element");
    refused(CALL_HEAD ".entry k() .blocksareclusters { ret; }", ".blocksareclusters");
    refused(CALL_HEAD ".global .attribute(.other) .b32 x;", "attribute");
}

/* Half of the warp calls from one place, half from another: each half has a frame of its own, and
 * the function's shuffle and vote are for all lanes. */
TEST(lanes_in_different_frames_shuffle_with_each_other) {
    kernel k;
    const char *text = CALL_KERNEL(
        ".func (.reg .b32 r, .reg .b64 v) f(.reg .b32 a) {\n"
        ".reg .pred p, q; .reg .b32 b; .reg .b64 w; shfl.sync.bfly.b32 r, a, 16, 31, -1;\n"
        "cvt.u64.u32 w, a; setp.ge.u32 p, a, 20; vote.sync.ballot.b32 b, !p, -1;\n"
        "cvt.u64.u32 v, b; add.u64 v, v, w; ret; }",
        "setp.lt.u32 %p0, %t, 16; @%p0 bra LOW; call (%r0, %rd0), f, (%t); bra DONE;\n"
        "LOW: call (%r0, %rd0), f, (%t);\n"
        "DONE: cvt.u32.u64 %r1, %rd0; mul.wide.u32 %rd1, %t, 8; add.u64 %rd1, %rd1, %out;\n"
        "st.global.v2.b32 [%rd1], {%r0, %r1};");
    CHECK_EQ(run_text(&k, text, 32, words, sizeof words), BH__PTX_DONE);
    for (uint32_t t = 0; t < 32; t++) {
        CHECK_EQ(words[2 * t], t ^ 16);
        CHECK_EQ(words[2 * t + 1], 0xfffffu + t);
    }
}

/* Half of the lanes call the function again, and meet the other half, which is in the outer frame
 * still, at the shuffle. What the first half has in the outer frame stays as it is. */
TEST(lanes_in_a_recursive_call_shuffle_with_lanes_outside) {
    kernel k;
    const char *text = CALL_KERNEL(
        ".func (.reg .b32 r) f(.reg .b32 a, .reg .b32 again) {\n"
        ".reg .pred p; .reg .b32 kept, b; xor.b32 kept, a, 0x5a5a; setp.eq.u32 p, again, 0;\n"
        "@p bra MEET; add.u32 b, a, 100; call (b), f, (b, 0); add.u32 r, kept, b; ret;\n"
        "MEET: shfl.sync.bfly.b32 r, a, 16, 31, -1; ret; }",
        "mov.b32 %r3, 0; mov.b32 %r4, 0; and.b32 %r1, %t, 16; shr.u32 %r1, %r1, 4;\n"
        "NEXT: mov.b32 %r5, 0; rem.u32 %r6, %r3, 61;\n"
        "SPIN: add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r6; @%p1 bra SPIN;\n"
        "call (%r0), f, (%t, %r1); add.u32 %r4, %r4, %r0;\n"
        "add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, 3000; @%p0 bra NEXT;\n"
        "mul.wide.u32 %rd1, %t, 4; add.u64 %rd1, %rd1, %out; st.global.b32 [%rd1], %r4;");
    CHECK_EQ(run_text(&k, text, 32, words, sizeof words), BH__PTX_DONE);
    for (uint32_t t = 0; t < 32; t++) {
        uint32_t once = t < 16 ? (t + 16) + 100 : (t ^ 0x5a5a) + (t - 16);
        CHECK_EQ(words[t], 3000 * once);
    }
}

/* Lane 1 waits for all three while lanes 0 and 2 wait for each other in a loop: it must not go on
 * before they wait for all three, too. */
TEST(lanes_are_released_by_lanes_that_wait_with_the_same_mask) {
    kernel k;
    const char *text =
        CALL_KERNEL("", "mov.b32 %r1, 0; setp.ne.u32 %p0, %t, 1; @%p0 bra NEXT;\n"
                        "MEET: vote.sync.ballot.b32 %r4, 1, 7; mul.wide.u32 %rd1, %t, 4;\n"
                        "add.u64 %rd1, %rd1, %out; st.global.b32 [%rd1], %r4; ret;\n"
                        "NEXT: setp.eq.u32 %p1, %t, 0; @%p1 bra SKIP;\n"
                        "add.u32 %r2, %r2, 1; add.u32 %r2, %r2, 1; add.u32 %r2, %r2, 1;\n"
                        "SKIP: add.u32 %r1, %r1, 1; @%p1 bra LATE;\n"
                        "EARLY: vote.sync.ballot.b32 %r3, 1, 5; bra DECIDE;\n"
                        "LATE: bra EARLY;\n"
                        "DECIDE: setp.lt.u32 %p2, %r1, 4; @%p2 bra NEXT; bra MEET;");
    CHECK_EQ(run_text(&k, text, 3, words, sizeof words), BH__PTX_DONE);
    for (uint32_t t = 0; t < 3; t++) {
        CHECK_EQ(words[t], 7);
    }
}
