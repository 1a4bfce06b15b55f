/* SPDX-License-Identifier: Apache-2.0 */
/* Vector accesses are single accesses: another block sees all of a vector or none of it. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ptx/run/single.h"
#include "support/kernel.h"
#include "test.h"

typedef struct runner {
    kernel *k;
    uint32_t block;
    bh__ptx_outcome outcome;
} runner;

static void *run_block(void *context) {
    runner *r = context;
    bh__ptx_block *block = bh__ptx_block_create();
    bh_error error;
    bh__ptx_fault fault;
    r->outcome = BH__PTX_STOPPED;
    if (block != NULL && bh__ptx_block_begin(block, &r->k->grid, r->block, 0, 0, &error) == BH_OK) {
        do {
            r->outcome = bh__ptx_block_step(block, 1000, &fault);
        } while (r->outcome == BH__PTX_YIELD);
    }
    bh__ptx_block_destroy(block);
    return NULL;
}

/*
 * Block 0 writes vectors of equal elements and says at [%out+64] when it ends; block 1 reads until
 * then, and counts at [%out+68] the vectors that have two different elements. All lanes of a block
 * access the same vector.
 */
#define DUEL                                                                                       \
    PTX_HEAD                                                                                       \
    ".entry k(.param .u64 p) { .reg .pred %%p<8>; .reg .b16 %%h<8>; .reg .b32 %%r<16>, %%n;\n"     \
    ".reg .b64 %%rd<16>, %%out; ld.param.u64 %%out, [p]; mov.u32 %%r9, %%ctaid.x;\n"               \
    "mov.u32 %%n, 0; setp.ne.u32 %%p1, %%r9, 0; @%%p1 bra READ;\n"                                 \
    "WRITE: add.u32 %%n, %%n, 1; mov.b32 {%%h1, _}, %%n; cvt.u64.u32 %%rd1, %%n;\n"                \
    "shl.b64 %%rd2, %%rd1, 32; or.b64 %%rd1, %%rd1, %%rd2;\n"                                      \
    "%s\n"                                                                                         \
    "setp.lt.u32 %%p1, %%n, 40000; @%%p1 bra WRITE; st.release.gpu.u32 [%%out+64], 1; ret;\n"      \
    "READ: %s\n"                                                                                   \
    "@%%p2 red.global.add.u32 [%%out+68], 1; ld.acquire.gpu.u32 %%r8, [%%out+64];\n"               \
    "setp.eq.u32 %%p1, %%r8, 0; @%%p1 bra READ; ret; }\n"

/* Returns how many vectors were seen torn. */
static uint32_t duel(const char *write, const char *read) {
    static _Alignas(32) uint32_t memory[32];
    char text[4096];
    snprintf(text, sizeof text, DUEL, write, read);
    memset(memory, 0, sizeof memory);
    kernel k;
    REQUIRE_EQ(kernel_open(&k, text, 32, memory, sizeof memory), BH_OK);
    k.grid.grid[0] = 2;
    runner runners[2] = {{&k, 0, BH__PTX_STOPPED}, {&k, 1, BH__PTX_STOPPED}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, run_block, &runners[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(runners[i].outcome, BH__PTX_DONE);
    }
    kernel_close(&k);
    return memory[17];
}

#define READ4                                                                                      \
    "setp.ne.u32 %p2, %r1, %r2; setp.ne.or.u32 %p2, %r1, %r3, %p2;"                                \
    "setp.ne.or.u32 %p2, %r1, %r4, %p2;"

TEST(vectors_of_16_bytes_are_not_torn) {
    CHECK_EQ(duel("st.global.v4.u32 [%out], {%n, %n, %n, %n};",
                  "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%out];" READ4),
             0);
    CHECK_EQ(duel("st.volatile.v4.u32 [%out], {%n, %n, %n, %n};",
                  "ld.volatile.v4.u32 {%r1, %r2, %r3, %r4}, [%out];" READ4),
             0);
    CHECK_EQ(duel("st.release.gpu.global.v2.u64 [%out], {%rd1, %rd1};",
                  "ld.acquire.gpu.global.v2.u64 {%rd3, %rd4}, [%out];"
                  "setp.ne.u64 %p2, %rd3, %rd4;"),
             0);
    CHECK_EQ(duel("st.relaxed.gpu.v2.u64 [%out], {%rd1, %rd1};",
                  "ld.relaxed.gpu.v4.u32 {%r1, %r2, %r3, %r4}, [%out];" READ4),
             0);
}

TEST(accesses_of_128_bits_are_not_torn) {
    CHECK_EQ(duel(".reg .b128 %q; mov.b128 %q, {%rd1, %rd1}; st.global.b128 [%out], %q;",
                  ".reg .b128 %s; ld.global.b128 %s, [%out]; mov.b128 {%rd3, %rd4}, %s;"
                  "setp.ne.u64 %p2, %rd3, %rd4;"),
             0);
    CHECK_EQ(duel(".reg .b128 %q; mov.b128 %q, {%rd1, %rd1};"
                  "atom.global.exch.b128 %q, [%out], %q;",
                  "ld.global.v2.u64 {%rd3, %rd4}, [%out]; setp.ne.u64 %p2, %rd3, %rd4;"),
             0);
}

TEST(vectors_of_8_and_4_bytes_are_not_torn) {
    CHECK_EQ(duel("st.global.v2.u32 [%out], {%n, %n};",
                  "ld.global.v2.u32 {%r1, %r2}, [%out]; setp.ne.u32 %p2, %r1, %r2;"),
             0);
    CHECK_EQ(duel("st.v2.u32 [%out], {%n, %n};",
                  "ld.u64 %rd3, [%out]; mov.b64 {%r1, %r2}, %rd3; setp.ne.u32 %p2, %r1, %r2;"),
             0);
    CHECK_EQ(duel("st.global.v4.u16 [%out], {%h1, %h1, %h1, %h1};",
                  "ld.global.v4.u16 {%h2, %h3, %h4, %h5}, [%out]; setp.ne.u16 %p2, %h2, %h3;"
                  "setp.ne.or.u16 %p2, %h2, %h4, %p2; setp.ne.or.u16 %p2, %h2, %h5, %p2;"),
             0);
    CHECK_EQ(duel("st.global.v2.u16 [%out], {%h1, %h1};",
                  "ld.global.v2.u16 {%h2, %h3}, [%out]; setp.ne.u16 %p2, %h2, %h3;"),
             0);
}

/* Vectors of every kind keep their values: signed elements, wide registers, bytes. */
TEST(vectors_keep_their_values) {
    static _Alignas(32) uint64_t data[16];
    kernel k;
    memset(data, 0, sizeof data);
    const char *text = PTX_KERNEL("mov.b32 %r1, 0x80ff7f01; st.global.u32 [%out+96], %r1;\n"
                                  "ld.global.v4.s8 {%r2, %r3, %r4, %r5}, [%out+96];\n"
                                  "st.global.v4.u32 [%out], {%r2, %r3, %r4, %r5};\n"
                                  "ld.global.v2.s16 {%rd1, %rd2}, [%out+96];\n"
                                  "st.global.v2.u64 [%out+16], {%rd1, %rd2};\n"
                                  "ld.global.v4.u64 {%rd3, %rd4, %rd5, %rd6}, [%out];\n"
                                  "st.global.v4.u64 [%out+64], {%rd6, %rd5, %rd4, %rd3};");
    CHECK_EQ(run_text(&k, text, 1, data, sizeof data), BH__PTX_DONE);
    CHECK_EQ(data[0], UINT64_C(0x0000007f00000001));
    CHECK_EQ(data[1], UINT64_C(0xffffff80ffffffff));
    CHECK_EQ(data[2], UINT64_C(0x7f01));
    CHECK_EQ(data[3], UINT64_C(0xffffffffffff80ff));
    CHECK_EQ(data[8], data[3]);
    CHECK_EQ(data[11], data[0]);
}

TEST(registers_of_128_bits) {
    static _Alignas(16) uint64_t data[16];
    kernel k;
    const char *text =
        PTX_KERNEL(".reg .b128 %q<4>; mov.b128 %q1, {11, 22}; mov.b128 %q2, %q1;\n"
                   "st.global.b128 [%out], %q2; mov.b64 %rd1, 33; mov.b64 %rd2, 44;\n"
                   "mov.b128 %q3, {%rd1, %rd2};\n"
                   "atom.global.cas.b128 %q2, [%out], %q3, %q3;\n" /* not what is there */
                   "mov.b128 {%rd3, _}, %q2; st.global.u64 [%out+16], %rd3;\n"
                   "atom.global.cas.b128 %q2, [%out], %q1, %q3;\n"
                   "mov.b128 {_, %rd4}, %q2; st.global.u64 [%out+24], %rd4;\n"
                   "ld.global.b128 %q2, [%out]; mov.b128 {%rd2, %rd1}, %q2;\n"
                   "st.global.v2.u64 [%out+32], {%rd1, %rd2};\n"
                   "atom.global.exch.b128 %q2, [%out+32], %q1; st.global.b128 [%out+48], %q2;");
    memset(data, 0, sizeof data);
    CHECK_EQ(run_text(&k, text, 1, data, sizeof data), BH__PTX_DONE);
    const uint64_t want[] = {33, 44, 11, 22, 11, 22, 44, 33};
    CHECK_MEM_EQ(data, want, sizeof want);
}

TEST(atomics_of_vectors) {
    static _Alignas(16) float data[16];
    kernel k;
    const char *text =
        PTX_KERNEL("mov.b32 %r1, 0x3f800000; mov.b32 %r2, 0x40000000;\n"
                   "red.global.add.v2.f32 [%out], {%r1, %r2};\n"
                   "atom.global.add.v4.f32 {%r3, _, %r5, %r1}, [%out+16], {%r1, %r2, %r1, %r2};\n"
                   "mov.b16 %h1, 0x3c00; red.global.add.noftz.v8.f16 [%out+32],\n"
                   " {%h1, %h1, %h1, %h1, %h1, %h1, %h1, %h1};\n"
                   "mov.b32 %r4, 0x3c003c00; red.global.add.noftz.v2.f16x2 [%out+48], {%r4, %r4};");
    memset(data, 0, sizeof data);
    CHECK_EQ(run_text(&k, text, 40, data, sizeof data), BH__PTX_DONE);
    CHECK(data[0] == 40 && data[1] == 80 && data[4] == 40 && data[5] == 80 && data[7] == 80);
    uint32_t halves[6];
    memcpy(halves, data + 8, sizeof halves);
    CHECK_EQ(halves[0], 0x51005100);
    CHECK_EQ(halves[3], 0x51005100);
    CHECK_EQ(halves[5], 0x51005100);
    CHECK_EQ(run_text(&k, PTX_KERNEL("red.global.add.v4.f32 [%out+8], {%r1, %r1, %r1, %r1};"), 1,
                      data, sizeof data),
             BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_MISALIGNED);
}

/* The way of a processor without accesses of 16 bytes. */
static _Alignas(16) uint64_t pair[2];
static _Atomic(bool) written;

static void *write_pairs(void *context) {
    (void)context;
    for (uint64_t n = 1; n < 200000; n++) {
        _Alignas(16) uint64_t v[2] = {n, n};
        bh__single_store16_locked(pair, v);
    }
    atomic_store(&written, true);
    return NULL;
}

TEST(locked_accesses_are_not_torn) {
    pthread_t thread;
    unsigned torn = 0;
    REQUIRE_EQ(pthread_create(&thread, NULL, write_pairs, NULL), 0);
    while (!atomic_load(&written)) {
        _Alignas(16) uint64_t v[2];
        bh__single_load16_locked(v, pair);
        torn += v[0] != v[1];
    }
    pthread_join(thread, NULL);
    CHECK_EQ(torn, 0);
    CHECK_EQ(pair[1], 199999);
}
