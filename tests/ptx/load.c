/* SPDX-License-Identifier: Apache-2.0 */
/* Loading PTX: what is accepted, what is refused, and whether the error helps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/kernel.h"
#include "test.h"

static void expect(const char *text, bh_status status, const char *line, const char *message) {
    bh_error error;
    memset(&error, 0, sizeof error);
    CHECK_EQ(load_error(text, strlen(text), &error), status);
    CHECK_STR_CONTAINS(error.message, line);
    CHECK_STR_CONTAINS(error.message, message);
    CHECK(error.fix[0] != 0);
}

TEST(a_kernel_is_described) {
    const char *text = PTX_HEAD ".visible .entry first(.param .u8 a, .param .u64 .ptr .global b,\n"
                                "  .param .align 8 .b8 c[24], .param .f32 d)\n"
                                ".maxntid 128, 2, 1\n"
                                "{ .shared .align 8 .b8 s[40]; .local .align 4 .b8 l[12];\n"
                                "  .reg .b32 %r<9>; .reg .b64 %rd<3>;\n"
                                "  mov.u32 %r1, s; mov.u64 %rd1, l; ret; }\n"
                                ".entry second() .reqntid 32, 4 { ret; }\n"
                                ".global .align 16 .b8 g[100];\n.const .f32 t[3] = {1.0, 2.0};\n";
    bh_error error;
    bh__ptx_module *m;
    REQUIRE_EQ(bh__ptx_load(text, strlen(text), &error, &m), BH_OK);
    REQUIRE_EQ(bh__ptx_kernel_count(m), 2);
    const bh__ptx_kernel *k = bh__ptx_kernel_at(m, 0);
    CHECK_STR_EQ(k->name, "first");
    REQUIRE_EQ(k->param_count, 4);
    CHECK_EQ(k->params[1].offset, 8);
    CHECK(k->params[1].pointer && !k->params[0].pointer);
    CHECK_EQ(k->params[2].size, 24);
    CHECK_EQ(k->params[3].offset, 40);
    CHECK_EQ(k->param_bytes, 44);
    CHECK_EQ(k->static_shared, 40);
    CHECK_GE(k->local_bytes, 12);
    CHECK_EQ(k->max_threads, 256);
    CHECK_EQ(bh__ptx_kernel_at(m, 1)->required[1], 4);
    REQUIRE_EQ(bh__ptx_variable_count(m), 2);
    CHECK_EQ(bh__ptx_variable_at(m, 0)->size, 100);
    CHECK(bh__ptx_variable_at(m, 1)->constant);
    bh__ptx_image *image;
    REQUIRE_EQ(bh__ptx_image_create(m, &error, &image), BH_OK);
    const float *t = bh__ptx_image_variable(image, 1);
    CHECK(t[0] == 1.0f && t[1] == 2.0f && t[2] == 0.0f);
    bh__ptx_image_destroy(image);
    bh__ptx_free(m);
}

TEST(initialisers_hold_addresses) {
    const char *text = PTX_HEAD ".global .u32 a[2] = {7, 8};\n"
                                ".global .u64 b[2] = {generic(a)+4, a};\n"
                                ".global .b8 c[8] = {0xFF(a), 0xFF00(a), 0xFF0000(a), "
                                "0xFF000000(a), 0xFF00000000(a), 0xFF0000000000(a), "
                                "0xFF000000000000(a), 0xFF00000000000000(a)};\n";
    bh_error error;
    bh__ptx_module *m;
    bh__ptx_image *image;
    REQUIRE_EQ(bh__ptx_load(text, strlen(text), &error, &m), BH_OK);
    REQUIRE_EQ(bh__ptx_image_create(m, &error, &image), BH_OK);
    uint64_t a = (uint64_t)(uintptr_t)bh__ptx_image_variable(image, 0), c;
    const uint64_t *b = bh__ptx_image_variable(image, 1);
    memcpy(&c, bh__ptx_image_variable(image, 2), 8);
    CHECK_EQ(b[0], a + 4);
    CHECK_EQ(b[1], a);
    CHECK_EQ(c, a);
    bh__ptx_image_destroy(image);
    bh__ptx_free(m);
}

TEST(kernels_share_no_shared_memory_they_do_not_use) {
    const char *text =
        PTX_HEAD ".shared .b8 both[100]; .shared .b8 mine[1000]; .shared .b8 x[5000];\n"
                 ".entry a() { .reg .b32 %r; mov.u32 %r, both; mov.u32 %r, mine; }\n"
                 ".entry b() { .reg .b32 %r; mov.u32 %r, both; mov.u32 %r, x; }\n"
                 ".entry c() { ret; }\n";
    bh_error error;
    bh__ptx_module *m;
    REQUIRE_EQ(bh__ptx_load(text, strlen(text), &error, &m), BH_OK);
    CHECK_EQ(bh__ptx_kernel_at(m, 0)->static_shared, 1100);
    CHECK_EQ(bh__ptx_kernel_at(m, 1)->static_shared, 5100);
    CHECK_EQ(bh__ptx_kernel_at(m, 2)->static_shared, 0);
    bh__ptx_free(m);
}

TEST(errors_name_the_line) {
    expect("int main() {}", BH_E_LOAD, "line 1:", "not PTX");
    expect("\x7f"
           "ELF\x02\x01",
           BH_E_LOAD, "line 1:", "not allowed in PTX");
    expect(".version 8.0\n", BH_E_LOAD, "line 1:", "no .target");
    expect(".version 8.0\n.target sm_80\n", BH_E_UNSUPPORTED, "line 2:", "32-bit addresses");
    expect(PTX_HEAD "hello\n", BH_E_LOAD, "line 4:", "hello");
    expect(PTX_KERNEL("add.s32 %r1, %r2, %nope;"), BH_E_LOAD, "line 10:", "%nope is not declared");
    expect(PTX_KERNEL("\nadd.s32 %r1, %r2, %r16;"), BH_E_LOAD, "line 11:", "%r16");
    expect(PTX_KERNEL("bra nowhere;"), BH_E_LOAD, "line 10:", "no label nowhere");
    expect(PTX_KERNEL("x: x: ret;"), BH_E_LOAD, "line 10:", "twice");
    expect(PTX_KERNEL(".reg .b32 %q; .reg .b64 %q;"), BH_E_LOAD, "line 10:", "declared twice");
    expect(PTX_KERNEL("frobnicate.s32 %r1, %r2;"), BH_E_LOAD,
           "line 10:", "no instruction frobnicate");
    expect(PTX_KERNEL("call nothing, ();"), BH_E_LOAD, "line 10:", "nothing is not declared");
    expect(PTX_HEAD ".extern .func lost();\n.entry k() { call lost, (); }", BH_E_LOAD,
           "line 4:", "lost");
    expect(PTX_HEAD ".extern .global .u32 v;\n.entry k() { ret; }", BH_E_LOAD, "line 4:", "v");
}

TEST(operands_are_checked) {
    expect(PTX_KERNEL("add.s32 %r1, %r2;"), BH_E_LOAD, "line 10:", "too few");
    expect(PTX_KERNEL("add.s32 %r1, %r2, %r3, %r4;"), BH_E_LOAD, "line 10:", "too many");
    expect(PTX_KERNEL("add.s32 %r1, %r2, %rd1;"), BH_E_LOAD, "line 10:", ".b64 register");
    expect(PTX_KERNEL("add.s32 %r1, %r2, %f1;"), BH_E_LOAD, "line 10:", ".f32 register");
    expect(PTX_KERNEL("add.f32 %f1, %f2, 1;"), BH_E_LOAD, "line 10:", "an integer where");
    expect(PTX_KERNEL("add.s32 %r1, %p1, %r2;"), BH_E_LOAD, "line 10:", ".pred register");
    expect(PTX_KERNEL("add.s32 5, %r1, %r2;"), BH_E_LOAD, "line 10:", "not a register");
    expect(PTX_KERNEL("ld.global.u32 %r1, %out;"), BH_E_LOAD, "line 10:", "not an address");
    expect(PTX_KERNEL("ld.global.u32 %r1, [%r1];"), BH_E_LOAD, "line 10:", ".b32 register");
    expect(PTX_KERNEL("ld.global.v4.u32 {%r1,%r2}, [%out];"), BH_E_LOAD, "line 10:", "vector of 4");
    expect(PTX_KERNEL("ld.param.u64 %rd1, [p+8];"), BH_E_LOAD, "line 10:", "bytes 8 to 15");
    expect(PTX_KERNEL("ld.shared.u32 %r1, [p];"), BH_E_LOAD, "line 10:", "state space");
    expect(PTX_KERNEL("st.param.u64 [p], %out;"), BH_E_LOAD, "line 10:", "cannot write");
    expect(PTX_KERNEL("mov.u32 %r1, %rd1;"), BH_E_LOAD, "line 10:", "mov");
    expect(PTX_KERNEL("@%r1 ret;"), BH_E_LOAD, "line 10:", "not a predicate");
}

TEST(what_is_not_executed_is_refused) {
    expect(PTX_KERNEL("istypep.texref %p1, %out;"), BH_E_UNSUPPORTED, "line 10:", "istypep");
    expect(PTX_KERNEL("add.frobnicated.s32 %r1, %r2, %r3;"), BH_E_UNSUPPORTED,
           "line 10:", ".frobnicated");
    expect(PTX_KERNEL("add.ftz.s32 %r1, %r2, %r3;"), BH_E_UNSUPPORTED, "line 10:", ".ftz");
    expect(PTX_KERNEL("add.sat.u64 %rd1, %rd2, %rd3;"), BH_E_UNSUPPORTED, "line 10:", "add");
    expect(PTX_KERNEL("add.rn.ftz.f64 %d1, %d2, %d3;"), BH_E_UNSUPPORTED, "line 10:", "add");
    expect(PTX_KERNEL("mul.s32 %r1, %r2, %r3;"), BH_E_UNSUPPORTED, "line 10:", "mul");
    expect(PTX_KERNEL("atom.global.min.f32 %f1, [%out], %f2;"), BH_E_UNSUPPORTED,
           "line 10:", "atom");
    expect(PTX_KERNEL("add.rn.rz.f32 %f1, %f2, %f3;"), BH_E_LOAD, "line 10:", "exclude");
    expect(PTX_HEAD ".extern .func (.param .b32 r) cudaMalloc(.param .b64 p, .param .b64 n);\n"
                    ".entry k() { .param .b64 a; .param .b32 b; call (b), cudaMalloc, (a, a); }",
           BH_E_UNSUPPORTED, "line 4:", "no CUDA runtime for kernels: cudaMalloc");
    expect(PTX_HEAD ".address_size 32\n", BH_E_UNSUPPORTED, "line 4:", "address size");
}

/* As the driver's compiler has it: more of them came with PTX 8.1, for sm_70 and later. */
TEST(the_bytes_of_parameters_depend_on_version_and_target) {
    static const struct {
        const char *version, *target;
        uint32_t most;
    } cases[] = {{"1.4", "sm_13", 4352}, {"7.0", "sm_90", 4352},  {"8.0", "sm_90a", 4352},
                 {"8.1", "sm_61", 4352}, {"8.1", "sm_70", 32764}, {"8.8", "sm_90a", 32764},
                 {"9", "sm_100", 32764}, {"9.0", "sm_120", 32764}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint32_t more = 0; more < 3; more++) {
            char text[256], message[128];
            bh_error error;
            bh__ptx_module *m;
            snprintf(text, sizeof text,
                     ".version %s\n.target %s\n.address_size 64\n"
                     ".entry k(.param .u64 a, .param .align 1 .b8 b[%u]) { ret; }\n",
                     cases[i].version, cases[i].target, cases[i].most - 9 + more);
            if (more < 2) {
                REQUIRE_EQ(bh__ptx_load(text, strlen(text), &error, &m), BH_OK);
                CHECK_EQ(bh__ptx_kernel_at(m, 0)->param_bytes, cases[i].most - 1 + more);
                bh__ptx_free(m);
                continue;
            }
            snprintf(message, sizeof message,
                     "the parameters of a kernel take at least %u bytes; at most %u are allowed",
                     cases[i].most + 1, cases[i].most);
            expect(text, BH_E_LOAD, "line 4:", message);
        }
    }
}

TEST(sizes_are_bounded) {
    expect(PTX_HEAD ".global .b8 x[0xffffffffffffffff];\n", BH_E_LOAD, "line 4:", "too large");
    expect(PTX_HEAD ".global .b64 x[0x1000000000][0x1000000000];\n", BH_E_LOAD, "line 4:", "");
    expect(PTX_HEAD ".entry k() { .local .b8 l[1000000000]; }\n", BH_E_LOAD,
           "line 4:", "1000000000");
    expect(PTX_HEAD ".entry k(.param .b8 x[100000]) { }\n", BH_E_LOAD,
           "line 4:", "a parameter of 100000 bytes; at most 32764");
    char *deep = malloc(100000);
    REQUIRE(deep != NULL);
    strcpy(deep, PTX_HEAD ".entry k() ");
    memset(deep + strlen(deep), '{', 50000);
    deep[50000] = 0;
    expect(deep, BH_E_LOAD, "line 4:", "nested");
    strcpy(deep, PTX_HEAD ".global .u32 x = ");
    memset(deep + strlen(deep), '(', 50000);
    deep[50000] = 0;
    expect(deep, BH_E_LOAD, "line 4:", "nested");
    free(deep);
}

/* A second declaration must not make a variable of a frame larger than its place. */
TEST(variables_of_a_frame_are_declared_once) {
    static const struct {
        const char *body, *message;
    } cases[] = {
        {".extern .param .b8 a[8]; .param .b8 a[262144]; ld.param.b64 %rd1, [a+200000];",
         "a .param variable cannot be .extern"},
        {".param .b8 a[8]; .extern .param .b8 a[262144]; ld.param.b64 %rd1, [a+200000];",
         "a .param variable cannot be .extern"},
        {".extern .param .b8 p[262144]; ld.param.b64 %rd1, [p+200000];",
         "a .param variable cannot be .extern"},
        {".extern .local .b8 a[8]; .local .b8 a[262144]; ld.local.b64 %rd1, [a+200000];",
         "a .local variable cannot be .extern"},
        {".extern .reg .b32 %q;", "a register cannot be .extern"},
        {".param .b8 a[8]; .param .b8 a[262144];", "a is declared twice"},
        {".local .b8 a[8]; .local .b8 a[262144];", "a is declared twice"},
        {".param .b8 p[262144];", "p is declared twice"},
        {".shared .b8 a[8]; .shared .b8 a[16];", "a is declared twice"},
        {".extern .shared .b8 a[]; .extern .param .b8 a[8];",
         "a .param variable cannot be .extern"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s", PTX_KERNEL("\001"));
        char *mark = strchr(text, 1), rest[256];
        REQUIRE(mark != NULL);
        snprintf(rest, sizeof rest, "%s", mark + 1);
        snprintf(mark, sizeof text - (size_t)(mark - text), "%s%s", cases[i].body, rest);
        expect(text, BH_E_LOAD, "line 10:", cases[i].message);
    }
}

/* Variables with one place in the module take the size and alignment of their definition. */
TEST(a_definition_decides_what_an_extern_declaration_left_open) {
    const char *text = PTX_HEAD ".extern .global .align 1 .b8 g[4];\n.extern .const .u32 c[];\n"
                                ".extern .shared .align 1 .b8 s[4];\n"
                                ".entry k() { .reg .b64 %rd<4>; .reg .b32 %r<4>;\n"
                                " mov.u64 %rd1, g; ld.const.u32 %r1, [c+8];\n"
                                " st.shared.u64 [s+40], %rd1; ret; }\n"
                                ".global .align 64 .b64 g[100];\n.const .u32 c[3] = {1, 2, 3};\n"
                                ".shared .align 64 .b64 s[100];\n"
                                ".extern .global .b8 g[1000000];\n";
    bh_error error;
    bh__ptx_module *m;
    REQUIRE_EQ(bh__ptx_load(text, strlen(text), &error, &m), BH_OK);
    REQUIRE_EQ(bh__ptx_variable_count(m), 2);
    CHECK_EQ(bh__ptx_variable_at(m, 0)->size, 800);
    CHECK_EQ(bh__ptx_variable_at(m, 0)->align, 64);
    CHECK_EQ(bh__ptx_variable_at(m, 1)->size, 12);
    CHECK_EQ(bh__ptx_kernel_at(m, 0)->static_shared, 800);
    bh__ptx_free(m);
}

TEST(text_cut_anywhere_gives_an_error) {
    const char *text = PTX_HEAD ".global .u32 g[4] = {1, 2, 3, 4};\n"
                                ".func (.param .b32 r) f(.param .b32 a) { .reg .b32 %x;\n"
                                " ld.param.b32 %x, [a]; st.param.b32 [r], %x; ret; }\n"
                                ".entry k(.param .u64 p) { .reg .pred %p<2>; .reg .b32 %r<4>;\n"
                                " { .param .b32 a; .param .b32 b; st.param.b32 [a], 0x10;\n"
                                "  call.uni (b), f, (a); ld.param.b32 %r1, [b]; }\n"
                                " setp.lt.s32 %p1, %r1, -5;\n"
                                " @!%p1 bra done; mov.b32 %r2, 0f3F800000; done: ret; /* x */ }\n";
    size_t length = strlen(text);
    for (size_t n = 0; n <= length; n++) {
        char *copy = malloc(n + 1); /* exactly as long, so that a tool sees reads past the end */
        REQUIRE(copy != NULL);
        memcpy(copy, text, n);
        bh_error error;
        memset(&error, 0, sizeof error);
        bh_status status = load_error(copy, n, &error);
        CHECK(status == BH_OK || (error.message[0] != 0 && error.fix[0] != 0));
        free(copy);
    }
    bh_error error;
    CHECK_EQ(load_error(text, length, &error), BH_OK);
    CHECK_EQ(load_error(text, length + 1, &error), BH_OK); /* with its NUL */
}

TEST(debug_information_is_passed_over) {
    const char *text = PTX_HEAD ".file 1 \"a.cu\"\n"
                                ".entry k() .minnctapersm 2 .maxnreg 32 .pragma \"x\"; {\n"
                                " .loc 1 2 3, function_name $f, inlined_at 1 5 1\n"
                                " .pragma \"nounroll\"; ret; }\n"
                                ".section .debug_info { .b8 1, 2\n .b32 label\n }\n";
    bh_error error;
    CHECK_EQ(load_error(text, strlen(text), &error), BH_OK);
}
