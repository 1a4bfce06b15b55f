/* SPDX-License-Identifier: Apache-2.0 */
/* What NVIDIA's assembler refuses is refused here too, with the line; and what is near it is
 * not. */
#include <stdio.h>
#include <string.h>

#include "support/kernel.h"
#include "test.h"

typedef struct rule {
    const char *wrong, *message;
    const char *right; /* the same without the mistake, or NULL */
} rule;

static bh_status load(const char *line, bh_error *error) {
    char text[1024];
    int length = snprintf(
        text, sizeof text,
        ".version 8.6\n.target sm_90a\n.address_size 64\n"
        ".global .align 16 .b8 g[64]; .const .align 16 .b8 c[64]; .shared .align 16 .b8 s[64];\n"
        ".entry k(.param .align 16 .b8 p[16]) {\n"
        ".reg .pred %%p<4>; .reg .b16 %%h<4>; .reg .b32 %%r<4>; .reg .b64 %%a<4>; .reg .f32 %%f<4>;\n"
        ".reg .f64 %%d<4>; .reg .f16x2 %%v<4>; .reg .f16 %%e<4>; .reg .u32 %%u<4>;\n"
        "%s\nret; }\n",
        line);
    memset(error, 0, sizeof *error);
    return load_error(text, (size_t)length, error);
}

static void check_rules(const rule *rules, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bh_error error;
        bh_status status = load(rules[i].wrong, &error);
        if (status == BH_OK) {
            FAIL("accepted: %s", rules[i].wrong);
            continue;
        }
        CHECK_STR_CONTAINS(error.message, rules[i].message);
        CHECK_STR_CONTAINS(error.message, "line 8");
        CHECK(error.fix[0] != 0);
        if (rules[i].right != NULL && load(rules[i].right, &error) != BH_OK) {
            FAIL("%s: %s", rules[i].right, error.message);
        }
    }
}

#define CHECK_RULES(rules) check_rules(rules, sizeof rules / sizeof *rules)

TEST(a_register_is_declared_once) {
    static const rule rules[] = {
        {".reg .b32 %r3;", "%r3 is declared twice: alone, and as one of %r<4>", ".reg .b32 %r4;"},
        {".reg .b64 %r0, %x;", "%r0 is declared twice", "{ .reg .b64 %r0; }"},
        {".reg .b32 %q7; .reg .f32 %q<8>;", "%q7 is declared twice",
         ".reg .b32 %q8; .reg .f32 %q<8>;"},
        {"{ .reg .b32 %q<2>; .reg .b32 %q1; }", "%q1 is declared twice", NULL},
    };
    CHECK_RULES(rules);
}

TEST(memory_of_one_thread_is_not_volatile) {
    static const rule rules[] = {
        {"ld.volatile.local.u32 %r1, [%r2];", "have no order",
         "ld.volatile.shared.u32 %r1, [%r2];"},
        {"st.volatile.local.u32 [%r2], %r1;", "have no order", "st.volatile.u32 [%a1], %r1;"},
        {"ld.volatile.param.u32 %r1, [p];", "have no order", "ld.weak.param.u32 %r1, [p];"},
    };
    CHECK_RULES(rules);
}

TEST(the_address_of_a_tensor_map_is_no_number) {
    static const rule rules[] = {
        {"cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [7, {0}], [s];", "is a number",
         "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%a1, {0}], [s];"},
    };
    CHECK_RULES(rules);
}

/* NVIDIA's assembler wants .aligned of all matrix instructions but these. */
TEST(wgmma_without_aligned) {
    static const rule rules[] = {
        {"wgmma.fence.aligned;", "wgmma without .sync", "wgmma.fence.sync;"},
        {"ldmatrix.sync.m8n8.x1.shared.b16 {%r1}, [%r2];", "ldmatrix without .aligned",
         "wgmma.wait_group.sync 0;"},
    };
    CHECK_RULES(rules);
}

TEST(only_mov_reads_special_registers_and_takes_addresses) {
    static const rule rules[] = {
        {"add.u32 %r1, %r2, %tid.x;", "only mov can read a special register",
         "mov.u32 %r1, %tid.x;"},
        {"st.global.u32 [%a1], %laneid;", "only mov can read a special register", NULL},
        {"shfl.sync.idx.b32 %r1, %laneid, 0, 31, -1;", "only mov", NULL},
        {"min.u64 %a1, %a2, %clock64;", "only mov", "mov.u64 %a1, %clock64;"},
        {"add.u64 %a1, %a2, g;", "operand 3 is the address of g", "mov.u64 %a1, g;"},
        {"selp.b32 %r1, s, %r2, %p1;", "operand 2 is the address of s", "mov.u32 %r1, s;"},
        {"isspacep.const %p1, c;", "address of c", "isspacep.const %p1, %a1;"},
        {"getctarank.shared::cluster.u32 %r1, g;", "address of g",
         "getctarank.shared::cluster.u32 %r1, s;"},
    };
    CHECK_RULES(rules);
}

TEST(constants_have_the_type_of_the_instruction) {
    static const rule rules[] = {
        {"xor.b32 %r1, %r2, 1.5;", "a float of 64 bits where .b32",
         "xor.b32 %r1, %r2, 0f3F800000;"},
        {"and.b64 %a1, %a2, 0f3F800000;", "a float of 32 bits where .b64",
         "and.b64 %a1, %a2, 1.5;"},
        {"shl.b32 %r1, %r2, 0f3F800000;", "a float of 32 bits where .u32", "shl.b32 %r1, %r2, 3;"},
        {"neg.f16 %h1, 1.5;", "where .f16 is needed", "neg.f16 %h1, %h2;"},
        {"add.f16x2 %r1, %r2, 5;", "there are none of type .f16x2", "add.f16x2 %r1, %r2, %r3;"},
        {"max.s16x2 %r1, %r2, 5;", "there are none of type .s16x2", "max.s16x2 %r1, %r2, %r3;"},
        {"redux.sync.and.b32 %r1, %r2, 1.5;", "a float", "redux.sync.and.b32 %r1, %r2, -1;"},
    };
    CHECK_RULES(rules);
}

TEST(registers_have_the_type_of_the_instruction) {
    static const rule rules[] = {
        {"shl.b32 %r1, %r2, %f1;", "operand 3 is a .f32", "shl.b32 %r1, %f2, %r3;"},
        {"vote.sync.any.pred %p1, %p2, %f1;", "operand 3 is a .f32",
         "vote.sync.any.pred %p1, %p2, %u1;"},
        {"add.f32 %f1, %f2, %v1;", "operand 3 is a .f16x2", "add.u32 %v1, %r1, %v2;"},
        {"add.f16x2 %r1, %r2, %f1;", "operand 3 is a .f32", "add.f16x2 %r1, %v2, %r1;"},
        {"add.rn.bf16 %h1, %h2, %e1;", "operand 3 is a .f16", "add.f16 %h1, %h2, %e1;"},
        {"add.rn.bf16x2 %r1, %v1, %r2;", "operand 2 is a .f16x2", "add.rn.bf16x2 %r1, %r1, %r2;"},
        {"min.s16x2 %r1, %r2, %u1;", "operand 3 is a .u32", "min.s16x2 %r1, %v1, %r2;"},
        {"cvt.rpi.u32.f32 %r1, %d1;", "operand 2 is a .f64", "cvt.rpi.u32.f32 %r1, %f1;"},
        {"match.any.sync.b32 %f1, %r1, -1;", "operand 1 is a .f32",
         "match.any.sync.b32 %r1, %f1, -1;"},
        {"mov.u32 %f1, %r1;", "not its type", "mov.b32 %f1, %r1;"},
        {"mov.f32 %u1, %f1;", "not its type", "mov.b32 %u1, %f1;"},
        {"mov.b32 _, %r1;", "mov", NULL},
        {"ld.global.L2::cache_hint.u32 %r1, [%a1], %d1;", "operand 3 is a .f64",
         "ld.global.L2::cache_hint.u32 %r1, [%a1], %a2;"},
    };
    CHECK_RULES(rules);
}

TEST(loads_moves_and_selections_are_not_of_halves) {
    static const rule rules[] = {
        {"ld.global.f16 %h1, [%a1];", "types", "ld.global.b16 %h1, [%a1];"},
        {"st.global.bf16x2 [%a1], %r1;", "types", "st.global.b32 [%a1], %r1;"},
        {"mov.f16x2 %r1, %r2;", "types", "mov.b32 %v1, %r2;"},
        {"selp.bf16 %h1, %h2, %h3, %p1;", "types", "selp.b16 %h1, %h2, %h3, %p1;"},
    };
    CHECK_RULES(rules);
}

TEST(results_are_not_discarded) {
    static const rule rules[] = {
        {"add.u32 _, %r1, %r2;", "the result of add cannot be discarded", NULL},
        {"ld.global.u32 _, [%a1];", "the result of ld", "ld.global.v2.u32 {_, %r1}, [%a1];"},
        {"vote.sync.ballot.b32 _, %p1, -1;", "the result of vote", NULL},
        {"setp.eq.u32 _, %r1, %r2;", "the result of setp", "setp.eq.u32 _|%p1, %r1, %r2;"},
        {"popc.b32 _, %r1;", "the result of popc", "atom.global.add.u32 _, [%a1], 1;"},
    };
    CHECK_RULES(rules);
}

TEST(modifiers_that_are_a_part_of_the_name_come_first) {
    static const rule rules[] = {
        {"mul.u32.hi %r1, %r2, %r3;", ".hi is a part of the name of mul",
         "mul.hi.u32 %r1, %r2, %r3;"},
        {"mad.cc.lo.u32 %r1, %r2, %r3, %r1;", ".lo is a part of the name of mad",
         "mad.lo.cc.u32 %r1, %r2, %r3, %r1;"},
        {"shf.wrap.l.b32 %r1, %r2, %r3, 4;", ".l is a part", "shf.l.wrap.b32 %r1, %r2, %r3, 4;"},
        {"cvta.global.to.u64 %a1, %a2;", ".to is a part", "cvta.to.global.u64 %a1, %a2;"},
        {"bar.and.red.pred %p1, 0, %p2;", ".red is a part", "bar.red.and.pred %p1, 0, %p2;"},
        {"barrier.sync.cta 0;", ".cta is a part", "barrier.cta.sync 0;"},
        {"dp2a.u32.lo.u32 %r1, %r2, %r3, %r1;", ".lo is a part",
         "dp2a.lo.u32.u32 %r1, %r2, %r3, %r1;"},
        {"mbarrier.shared.init.b64 [s], 1;", ".init is a part", "mbarrier.init.shared.b64 [s], 1;"},
        {"setmaxnreg.sync.inc.aligned.u32 64;", ".inc is a part",
         "setmaxnreg.inc.sync.aligned.u32 64;"},
        {"createpolicy.L2::evict_last.fractional.b64 %a1, 0.5;", ".fractional is a part",
         "createpolicy.fractional.L2::evict_last.b64 %a1, 0.5;"},
        {"multimem.relaxed.ld_reduce.gpu.global.add.u32 %r1, [%a1];", ".ld_reduce is a part",
         "multimem.ld_reduce.relaxed.gpu.global.add.u32 %r1, [%a1];"},
        {"ld.global.global.u32 %r1, [%a1];", ".global is given twice", NULL},
        {"isspacep.shared.shared::cta %p1, %a1;", ".shared is given twice", NULL},
    };
    CHECK_RULES(rules);
}

TEST(orders_and_scopes_need_each_other) {
    static const rule rules[] = {
        {"ld.cta.global.u32 %r1, [%a1];", "a scope without",
         "ld.relaxed.cta.global.u32 %r1, [%a1];"},
        {"st.release.global.u32 [%a1], %r1;", "an order without",
         "st.release.gpu.global.u32 [%a1], %r1;"},
        {"ld.volatile.cta.global.u32 %r1, [%a1];", "a scope without",
         "ld.volatile.global.u32 %r1, [%a1];"},
        {"ld.relaxed.cta.local.u32 %r1, [%a1];", "have no order", "ld.local.u32 %r1, [%a1];"},
        {"ld.mmio.relaxed.gpu.global.u32 %r1, [%a1];", ".mmio needs",
         "ld.mmio.relaxed.sys.global.u32 %r1, [%a1];"},
        {"fence.acq_rel;", "fence needs a scope", "fence.acq_rel.gpu;"},
        {"membar;", "membar needs a level", "membar.gl;"},
        {"ld.u32 %r1, [c];", "not in the state space", "ld.const.u32 %r1, [c];"},
        {"ld.global.u32 %r1, [4096];", "a number as an address", "ld.local.u32 %r1, [0];"},
        {"ld.volatile.const.u32 %r1, [c];", "have no order", "ld.const.u32 %r1, [c];"},
        {"multimem.red.release.global.add.u32 [%a1], %r1;", "an order without",
         "multimem.red.release.gpu.global.add.u32 [%a1], %r1;"},
        {"red.L2::evict_first.global.add.u32 [%a1], %r1;", "red", "red.global.add.u32 [%a1], %r1;"},
    };
    CHECK_RULES(rules);
}

TEST(modifiers_that_cannot_be_left_out) {
    static const rule rules[] = {
        {"atom.global.add.f16x2 %r1, [%a1], %r2;", ".f16x2 needs .noftz",
         "atom.global.add.noftz.f16x2 %r1, [%a1], %r2;"},
        {"red.global.add.noftz.s32 [%a1], %r2;", ".noftz is not for .s32",
         "red.global.add.s32 [%a1], %r2;"},
        {"prefetch.global [%a1];", "prefetch needs a cache level", "prefetch.global.L1 [%a1];"},
        {"prefetchu [%a1];", "prefetchu needs .L1", "prefetchu.L1 [%a1];"},
        {"discard.global [%a1], 128;", "discard needs .L2", "discard.global.L2 [%a1], 128;"},
        {"applypriority.global [%a1], 128;", "applypriority needs",
         "applypriority.global.L2::evict_normal [%a1], 128;"},
        {"mad.f32 %f1, %f2, %f3, %f1;", "mad needs a rounding mode",
         "mad.rn.f32 %f1, %f2, %f3, %f1;"},
        {"bar.sync 16;", "barrier 16 does not exist", "bar.sync 15;"},
        {"bar.sync 0, 33;", "for 33 threads", "bar.sync 0, 64;"},
        {"bfe.u32 %r1, %r2, 300, 5;", "operand 3 is 300", "bfe.u32 %r1, %r2, 255, 5;"},
        {"bfi.b32 %r1, %r2, %r3, 0, -1;", "operand 5 is -1", "bfi.b32 %r1, 300, %r3, 0, 1;"},
        {"shfl.idx.b32 %r1, %r2, 0, 31;", "shfl without .sync",
         "shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;"},
        {"vote.any.pred %p1, %p2;", "vote without .sync", "vote.sync.any.pred %p1, %p2, -1;"},
        {"bar.red.or.pred %p1, 0, %r1;", "malformed", "bar.red.or.pred %p1, 0, 1;"},
    };
    CHECK_RULES(rules);
}

TEST(declarations_and_calls) {
    static const struct {
        const char *before, *body, *message;
    } wrong[] = {
        {".global .f32 x = 1;", "", "an integer as an initial value of type .f32"},
        {".global .u32 x = 1.5;", "", "a float as an initial value of type .u32"},
        {".global .v4 .f64 x;", "", "a vector of 32 bytes"},
        {".func (.reg .b32 r) f(.reg .b32 a) { ret; }", "call f, (5);", "0 results given"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[512];
        bh_error error;
        int length = snprintf(text, sizeof text, PTX_HEAD "%s\n.entry k() { %s ret; }\n",
                              wrong[i].before, wrong[i].body);
        memset(&error, 0, sizeof error);
        CHECK_EQ(load_error(text, (size_t)length, &error), BH_E_LOAD);
        CHECK_STR_CONTAINS(error.message, wrong[i].message);
        CHECK(error.fix[0] != 0);
    }
}
