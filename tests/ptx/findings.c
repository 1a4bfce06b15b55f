/* SPDX-License-Identifier: Apache-2.0 */
/* Checks: kernels that are wrong, and what is found on which lines; kernels that are nearly wrong,
 * and nothing is found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shadow.h"
#include "support/kernel.h"
#include "test.h"

/* What a kernel is given: a buffer of 4096 written bytes; at 4096 one of 1000 bytes that were never
 * written; at 6144 one of 1024 bytes that was released. */
enum { BYTES = 8192, UNWRITTEN = 4096, RELEASED = 6144, MAX_BLOCKS = 8 };
static _Alignas(4096) uint8_t data[BYTES], marks[BYTES], map[BYTES / BH__MAP_SCALE];

typedef struct trial {
    const char *name;
    const char
        *found; /* "KIND line" or "KIND line other", separated by ", "; lines by their mark */
    uint32_t blocks, threads, shared;
    const char *text;
} trial;

/* The number of the line that has a mark: a number between two bars in a comment. */
static uint32_t marked_line(const char *text, unsigned mark) {
    char wanted[16];
    snprintf(wanted, sizeof wanted, "/*%u*/", mark);
    const char *at = strstr(text, wanted);
    uint32_t line = 1;
    REQUIRE(at != NULL);
    for (const char *c = text; c < at; c++) line += *c == '\n';
    return line;
}

static const char *const kinds[] = {
    [BH__PTX_FAULT_ADDRESS] = "ADDRESS",
    [BH__PTX_FAULT_READ_ONLY] = "READ_ONLY",
    [BH__PTX_FAULT_MISALIGNED] = "MISALIGNED",
    [BH__PTX_FAULT_TRAP] = "TRAP",
    [BH__PTX_FAULT_ASSERT] = "ASSERT",
    [BH__PTX_FAULT_BARRIER] = "BARRIER",
    [BH__PTX_FAULT_STACK] = "STACK",
    [BH__PTX_FAULT_BAD_CALL] = "BAD_CALL",
    [BH__PTX_FAULT_HEAP] = "HEAP",
    [BH__PTX_FAULT_MBARRIER] = "MBARRIER",
    [BH__PTX_FAULT_COPY] = "COPY",
    [BH__PTX_FAULT_TENSOR] = "TENSOR",
    [BH__PTX_FAULT_BOUNDS] = "BOUNDS",
    [BH__PTX_FAULT_FREED] = "FREED",
    [BH__PTX_FAULT_UNINITIALISED] = "UNINITIALISED",
    [BH__PTX_FAULT_RACE] = "RACE",
    [BH__PTX_FAULT_DIVERGED] = "DIVERGED",
    [BH__PTX_FAULT_SHUFFLE] = "SHUFFLE",
    [BH__PTX_FAULT_COPYING] = "COPYING",
};

static void prepare_memory(void) {
    memset(data, 0, sizeof data);
    memset(marks, 1, sizeof marks);
    memset(marks + UNWRITTEN, 0, 1000);
    memset(map, BH__MAP_GAP, sizeof map);
    memset(map, BH__MAP_WHOLE, (UNWRITTEN + 1000) / BH__MAP_SCALE);
    memset(map + RELEASED / BH__MAP_SCALE, BH__MAP_FREED, 1024 / BH__MAP_SCALE);
}

/* All clusters take turns. */
static void run_clusters(kernel *k, uint64_t budget) {
    bh__ptx_cluster *clusters[MAX_BLOCKS];
    uint64_t count = bh__ptx_cluster_count(&k->grid), left = count;
    REQUIRE(count <= MAX_BLOCKS);
    for (uint64_t n = 0; n < count; n++) {
        clusters[n] = bh__ptx_cluster_create();
        REQUIRE(clusters[n] != NULL);
        REQUIRE_EQ(bh__ptx_cluster_begin(clusters[n], &k->grid, n, &k->error), BH_OK);
    }
    while (left > 0) {
        for (uint64_t n = 0; n < count; n++) {
            if (clusters[n] == NULL) continue;
            bh__ptx_outcome outcome = bh__ptx_cluster_step(clusters[n], budget, &k->fault);
            if (outcome == BH__PTX_YIELD) continue;
            if (outcome == BH__PTX_FAULTED) FAIL("%s", k->fault.text);
            bh__ptx_cluster_destroy(clusters[n]);
            clusters[n] = NULL;
            left--;
        }
    }
}

/* "RACE 12 10, BOUNDS 13" with the lines that were found. */
static void list_findings(const bh__ptx_check *check, char *out, size_t size) {
    uint32_t count;
    const bh__ptx_finding *found = bh__ptx_check_findings(check, &count);
    size_t length = 0;
    out[0] = '\0';
    for (uint32_t n = 0; n < count; n++) {
        length += (size_t)snprintf(out + length, size - length, "%s%s %u", n > 0 ? ", " : "",
                                   kinds[found[n].fault.kind], (unsigned)found[n].here.line);
        if (found[n].other.line != 0)
            length +=
                (size_t)snprintf(out + length, size - length, " %u", (unsigned)found[n].other.line);
        CHECK_EQ(found[n].fault.line, found[n].here.line);
        CHECK(found[n].count > 0 && found[n].fault.text[0] != '\0');
    }
}

/* The same of what is expected: marks become lines. */
static void list_expected(const trial *t, char *out, size_t size) {
    size_t length = 0;
    out[0] = '\0';
    for (const char *c = t->found; *c != '\0'; c++) {
        if (*c >= '0' && *c <= '9')
            length += (size_t)snprintf(out + length, size - length, "%u",
                                       (unsigned)marked_line(t->text, (unsigned)(*c - '0')));
        else if (length + 1 < size) {
            out[length++] = *c;
            out[length] = '\0';
        }
    }
}

static void try(const trial *t, uint32_t cluster, bh__ptx_check *check) {
    kernel k;
    char found[1000], expected[1000];
    prepare_memory();
    if (kernel_open(&k, t->text, t->threads, data, sizeof data) != BH_OK) {
        FAIL("%s: %s", t->name, k.error.message);
        return;
    }
    k.range.map = map;
    k.range.marks = marks;
    k.grid.grid[0] = t->blocks;
    if (cluster != 0) {
        k.grid.cluster[0] = cluster;
        k.grid.cluster[1] = k.grid.cluster[2] = 1;
    }
    k.grid.dynamic_shared = t->shared;
    k.grid.check = check;
    bh__ptx_check_begin(check);
    run_clusters(&k, 100000);
    CHECK(bh__ptx_check_end(check));
    list_findings(check, found, sizeof found);
    list_expected(t, expected, sizeof expected);
    if (strcmp(found, expected) != 0)
        FAIL("%s: found \"%s\", not \"%s\"", t->name, found, expected);
    kernel_close(&k);
}

/* In clusters of so many blocks, or 0: in no clusters. */
static void try_all(const trial *trials, size_t count, uint32_t cluster) {
    bh__ptx_check *check = bh__ptx_check_create();
    REQUIRE(check != NULL);
    for (size_t n = 0; n < count; n++) {
        try(&trials[n], cluster, check);
        try(&trials[n], cluster, check); /* nothing is left of the first time */
    }
    bh__ptx_check_destroy(check);
}

/* The address of the thread's word in the buffer is in %rd1, in `s` in %r1; the number of the
 * thread in the grid is in %r0, that of the block in %r15. */
#define K(body)                                                                                    \
    PTX_KERNEL(".shared .align 16 .b8 s[4096];\n"                                                  \
               "mov.u32 %r15, %ctaid.x; mov.u32 %r14, %ntid.x; mad.lo.u32 %r0, %r15, %r14, %t;\n"  \
               "mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %out, %rd1;\n"                            \
               "mov.u32 %r1, s; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2;\n" body)

#define FIRST_LANE "setp.ne.u32 %p7, %t, 0;\n"
#define BLOCK_1    "setp.eq.u32 %p6, %r15, 1;\n"

static const trial wrong[] = {
    {"a read past the end of a buffer", "BOUNDS 1", 1, 32, 0,
     K("ld.global.u32 %r3, [%out+5096]; /*1*/")},
    {"a write past the end of a buffer, by one lane of many", "BOUNDS 1", 1, 32, 0,
     K("mad.wide.u32 %rd2, %t, 4, %out;\nst.global.u32 [%rd2+4972], %t; /*1*/")},
    {"a read of a released buffer", "FREED 1", 1, 32, 0,
     K("ld.global.u32 %r3, [%out+6148]; /*1*/")},
    {"a write to a released buffer", "FREED 1", 1, 1, 0, K("st.global.u32 [%out+6144], 7; /*1*/")},
    {"a read of a buffer that nobody wrote", "UNINITIALISED 1", 1, 64, 0,
     K("ld.global.u32 %r3, [%rd1+4096]; /*1*/")},
    {"a buffer of which one thread wrote less", "UNINITIALISED 1", 1, 32, 0,
     K("setp.eq.u32 %p1, %t, 9;\n@!%p1 st.global.u32 [%rd1+4096], %t;\n"
       "ld.global.u32 %r3, [%rd1+4096]; /*1*/")},
    {"an atomic on what nobody wrote", "UNINITIALISED 1", 1, 1, 0,
     K("red.global.add.u32 [%out+4096], 1; /*1*/")},
    {"an atomic past the end", "BOUNDS 1", 1, 1, 0,
     K("atom.global.add.u32 %r3, [%out+5096], 1; /*1*/")},
    {"a null pointer", "ADDRESS 1", 1, 32, 0,
     K("mov.u64 %rd2, 0;\nld.global.u32 %r3, [%rd2]; /*1*/")},
    {"a misaligned vector", "MISALIGNED 1", 1, 32, 0,
     K("ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%out+8]; /*1*/")},
    {"a misaligned vector in shared memory", "MISALIGNED 1", 1, 32, 0,
     K("st.shared.v2.u32 [s+4], {%t, %t}; /*1*/")},
    {"lanes of one instruction write different values", "RACE 1 1", 1, 32, 0,
     K("st.global.u32 [%out], %t; /*1*/")},
    {"no barrier between warps", "UNINITIALISED 2, RACE 1 2", 1, 64, 0,
     K("st.shared.u32 [%r1], %t; /*1*/\nxor.b32 %r3, %r2, 128; mov.u32 %r4, s;\n"
       "add.u32 %r3, %r3, %r4;\nld.shared.u32 %r5, [%r3]; /*2*/")},
    {"no __syncwarp between lanes", "RACE 2 1", 1, 32, 0,
     K("st.shared.u32 [%r1], %t; /*1*/\nxor.b32 %r3, %r2, 4; mov.u32 %r4, s;\n"
       "add.u32 %r3, %r3, %r4;\nld.shared.u32 %r5, [%r3]; /*2*/")},
    {"volatile is no __syncwarp", "RACE 2 1", 1, 32, 0,
     K("st.volatile.shared.u32 [%r1], %t; /*1*/\nxor.b32 %r3, %r2, 4; mov.u32 %r4, s;\n"
       "add.u32 %r3, %r3, %r4;\nld.volatile.shared.u32 %r5, [%r3]; /*2*/")},
    {"a __syncwarp of too few lanes", "RACE 2 1", 1, 32, 0,
     K("st.shared.u32 [%r1], %t; /*1*/\nsetp.lt.u32 %p1, %t, 16;\n"
       "@%p1 bar.warp.sync 65535;\n@!%p1 bar.warp.sync 0xffff0000;\n"
       "mov.u32 %r4, s; xor.b32 %r3, %r2, 64; add.u32 %r3, %r3, %r4;\n"
       "ld.shared.u32 %r5, [%r3]; /*2*/")},
    {"no second barrier in a loop", "RACE 2 1", 1, 64, 0,
     K("mov.u32 %r5, 0; mov.u32 %r4, s; xor.b32 %r3, %r2, 128; add.u32 %r3, %r3, %r4;\n"
       "AGAIN:\nst.shared.u32 [%r1], %r5; /*1*/\nbar.sync 0;\nld.shared.u32 %r6, [%r3]; /*2*/\n"
       "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 3;\n@%p1 bra AGAIN;")},
    {"a write after a read of another warp", "RACE 2 1", 1, 64, 0,
     K("setp.lt.u32 %p1, %t, 32;\n@%p1 ld.global.u32 %r3, [%out]; /*1*/\n"
       "setp.eq.u32 %p2, %t, 40;\n@%p2 st.global.u32 [%out], 5; /*2*/")},
    {"blocks without a fence", "RACE 2 1", 2, 32, 0,
     K(BLOCK_1 "@!%p6 st.global.u32 [%out], 5; /*1*/\n@%p6 ld.global.u32 %r3, [%out]; /*2*/")},
    {"atomics of block scope in two blocks", "RACE 1 1", 2, 1, 0,
     K("red.relaxed.cta.global.add.u32 [%out], 1; /*1*/")},
    {"a fence of block scope between blocks", "RACE 2 1", 2, 1, 0,
     K(BLOCK_1 "@%p6 bra READ;\nst.global.u32 [%out], 5; /*1*/\nmembar.cta;\n"
               "st.relaxed.gpu.global.u32 [%out+4], 1;\nret;\n"
               "READ:\nld.relaxed.gpu.global.u32 %r3, [%out+4];\nsetp.eq.u32 %p1, %r3, 0;\n"
               "@%p1 bra READ;\nfence.acq_rel.gpu;\nld.global.u32 %r3, [%out]; /*2*/")},
    {"an acquire of block scope between blocks", "RACE 3 2, RACE 4 1", 2, 1, 0,
     K(BLOCK_1 "@%p6 bra READ;\nst.global.u32 [%out], 5; /*1*/\n"
               "st.release.gpu.global.u32 [%out+4], 1; /*2*/\nret;\n"
               "READ:\nld.acquire.cta.global.u32 %r3, [%out+4]; /*3*/\nsetp.eq.u32 %p1, %r3, 0;\n"
               "@%p1 bra READ;\nld.global.u32 %r3, [%out]; /*4*/")},
    {"a release of block scope between blocks", "RACE 3 2, RACE 4 1", 2, 1, 0,
     K(BLOCK_1 "@%p6 bra READ;\nst.global.u32 [%out], 5; /*1*/\n"
               "st.release.cta.global.u32 [%out+4], 1; /*2*/\nret;\n"
               "READ:\nld.acquire.gpu.global.u32 %r3, [%out+4]; /*3*/\nsetp.eq.u32 %p1, %r3, 0;\n"
               "@%p1 bra READ;\nld.global.u32 %r3, [%out]; /*4*/")},
    {"a lock without fences", "RACE 1 2, RACE 2 2", 2, 1, 0,
     K("AGAIN:\natom.global.cas.b32 %r3, [%out+4], 0, 1;\nsetp.ne.u32 %p1, %r3, 0;\n"
       "@%p1 bra AGAIN;\nld.global.u32 %r4, [%out]; /*1*/\nadd.u32 %r4, %r4, 1;\n"
       "st.global.u32 [%out], %r4; /*2*/\natom.global.exch.b32 %r3, [%out+4], 0;")},
    {"an atomic and a plain write", "RACE 2 1", 1, 64, 0,
     K("setp.lt.u32 %p1, %t, 32;\n@%p1 red.global.add.u32 [%out], 1; /*1*/\n"
       "setp.eq.u32 %p2, %t, 40;\n@%p2 st.global.u32 [%out], 7; /*2*/")},
    {"bytes of one word", "RACE 1 1", 1, 2, 0,
     K("shr.u32 %r3, %t, 1; cvt.u64.u32 %rd2, %r3; add.u64 %rd2, %out, %rd2;\n"
       "st.global.u8 [%rd2], %t; /*1*/")},
    {"a vector over a word", "RACE 2 1", 1, 33, 0,
     K("setp.eq.u32 %p1, %t, 0;\n@%p1 st.global.v4.u32 [%out], {1, 2, 3, 4}; /*1*/\n"
       "setp.eq.u32 %p2, %t, 32;\n@%p2 ld.global.u32 %r3, [%out+12]; /*2*/")},
    {"an arrival before the write", "RACE 2 1", 1, 64, 0,
     K("setp.lt.u32 %p1, %t, 32;\n@!%p1 bra WAITER;\nbar.arrive 1, 64;\n"
       "st.shared.u32 [%r1], %t; /*1*/\nret;\nWAITER:\nbar.sync 1, 64;\n"
       "ld.shared.u32 %r3, [%r1+-128]; /*2*/")},
    {"a divergent barrier", "DIVERGED 1", 1, 32, 0,
     K("setp.lt.u32 %p1, %t, 16;\n@%p1 bra OTHER;\nbar.sync 0; /*1*/\nbra END;\nOTHER:\n"
       "bar.sync 0; /*2*/\nEND:")},
    {"a shuffle from a lane outside of the mask", "SHUFFLE 1", 1, 32, 0,
     K("setp.lt.u32 %p1, %t, 8;\n@%p1 shfl.sync.idx.b32 %r3, %t, 20, 31, 255; /*1*/")},
    {"a shuffle from a lane that has exited", "SHUFFLE 1", 1, 32, 0,
     K("setp.eq.u32 %p1, %t, 5;\n@%p1 ret;\n"
       "shfl.sync.bfly.b32 %r3, %t, 1, 31, -1; /*1*/")},
    {"a shuffle down into a warp that is not whole", "SHUFFLE 1", 1, 40, 0,
     K("shfl.sync.down.b32 %r3, %t, 16, 31, -1; /*1*/")},
    {"a shuffle from a hole in the mask", "SHUFFLE 1", 1, 32, 0,
     K("and.b32 %r3, %t, 1; setp.eq.u32 %p1, %r3, 0;\n"
       "@%p1 shfl.sync.down.b32 %r3, %t, 1, 31, 0x55555555; /*1*/")},
    {"shared memory that nobody wrote", "UNINITIALISED 1", 1, 32, 0,
     K("ld.shared.u32 %r3, [%r1]; /*1*/")},
    {"a counter in shared memory that nobody set", "UNINITIALISED 1", 1, 32, 0,
     K("red.shared.add.u32 [s], 1; /*1*/")},
    {"dynamic shared memory that nobody wrote", "UNINITIALISED 1", 2, 32, 64,
     PTX_HEAD ".extern .shared .align 4 .b8 d[];\n.visible .entry k(.param .u64 p) {\n"
              ".reg .b32 %r<3>; mov.u32 %r1, d;\nld.shared.u32 %r2, [%r1+60]; /*1*/\nret; }\n"},
    {"shared memory past its end", "BOUNDS 1", 1, 32, 0, K("st.shared.u32 [%r1+4092], %t; /*1*/")},
    {"local memory that was not written", "UNINITIALISED 1", 1, 32, 0,
     K(".local .align 4 .b8 l[64];\nmov.u64 %rd2, l;\nst.local.u32 [%rd2], %t;\n"
       "ld.local.u32 %r3, [%rd2+4]; /*1*/")},
    {"local memory past its end", "BOUNDS 1", 1, 32, 0,
     K(".local .align 4 .b8 l[60];\nmov.u64 %rd2, l;\nst.local.u32 [%rd2+60], %t; /*1*/")},
    {"the local memory of a second call", "UNINITIALISED 1", 1, 1, 0,
     PTX_HEAD ".func (.reg .b32 %o) f(.reg .b32 %w) { .local .align 4 .b8 l[16]; .reg .b64 %a;\n"
              ".reg .pred %p; mov.u64 %a, l; setp.ne.u32 %p, %w, 0;\n@%p st.local.u32 [%a], %w;\n"
              "ld.local.u32 %o, [%a]; /*1*/\nret; }\n"
              ".visible .entry k(.param .u64 p) { .reg .b32 %r;\n"
              "call (%r), f, (1);\ncall (%r), f, (0);\nret; }\n"},
    {"an asynchronous copy that is read at once", "COPYING 1", 1, 32, 0,
     K("cp.async.ca.shared.global [%r1], [%rd1], 4;\nld.shared.u32 %r3, [%r1]; /*1*/\n"
       "cp.async.wait_all;")},
    {"a barrier in place of a wait", "COPYING 1", 1, 64, 0,
     K("cp.async.ca.shared.global [%r1], [%rd1], 4;\nbar.sync 0;\nxor.b32 %r3, %r2, 128;\n"
       "mov.u32 %r4, s; add.u32 %r3, %r3, %r4;\nld.shared.u32 %r3, [%r3]; /*1*/")},
    {"a wait for an older group", "COPYING 1", 1, 32, 0,
     K("cp.async.ca.shared.global [%r1], [%rd1], 4;\ncp.async.commit_group;\n"
       "cp.async.ca.shared.global [%r1+128], [%rd1], 4;\ncp.async.commit_group;\n"
       "cp.async.wait_group 1;\nld.shared.u32 %r3, [%r1+128]; /*1*/")},
    {"a wait without a barrier", "RACE 2 1", 1, 64, 0,
     K("cp.async.ca.shared.global [%r1], [%rd1], 4; /*1*/\ncp.async.wait_all;\n"
       "xor.b32 %r3, %r2, 128;\nmov.u32 %r4, s; add.u32 %r3, %r3, %r4;\n"
       "setp.ge.u32 %p1, %t, 32;\n@%p1 ld.shared.u32 %r3, [%r3]; /*2*/")},
    {"all of them", "BOUNDS 1, UNINITIALISED 2, RACE 3 3, FREED 4", 1, 32, 0,
     K("ld.global.u32 %r3, [%out+5096]; /*1*/\nld.global.u32 %r3, [%out+4096]; /*2*/\n"
       "st.global.u32 [%out], %t; /*3*/\nst.global.u32 [%out+6144], %t; /*4*/")},
};

TEST(what_is_wrong_is_found_on_its_line) {
    try_all(wrong, sizeof wrong / sizeof *wrong, 0);
}

static const trial right[] = {
    {"the last word of a buffer", "", 1, 1, 0, K("st.global.u32 [%out+5092], 7;")},
    {"the last vector of a buffer", "", 1, 1, 0,
     K("st.global.v2.u32 [%out+5088], {1, 2}; ld.global.v2.u32 {%r3, %r4}, [%out+5088];")},
    {"what was written is read", "", 1, 64, 0,
     K("st.global.u32 [%rd1+4096], %t;\nld.global.u32 %r3, [%rd1+4096];")},
    {"a barrier between warps", "", 1, 64, 0,
     K("st.shared.u32 [%r1], %t;\nxor.b32 %r3, %r2, 128; mov.u32 %r4, s; add.u32 %r3, %r3, %r4;\n"
       "bar.sync 0;\nld.shared.u32 %r5, [%r3];")},
    {"a __syncwarp between lanes", "", 1, 32, 0,
     K("st.shared.u32 [%r1], %t;\nxor.b32 %r3, %r2, 4; mov.u32 %r4, s; add.u32 %r3, %r3, %r4;\n"
       "bar.warp.sync -1;\nld.shared.u32 %r5, [%r3];")},
    {"a __syncwarp of halves", "", 1, 32, 0,
     K("st.shared.u32 [%r1], %t;\nsetp.lt.u32 %p1, %t, 16;\n"
       "@%p1 bar.warp.sync 65535;\n@!%p1 bar.warp.sync 0xffff0000;\n"
       "xor.b32 %r3, %r2, 32; mov.u32 %r4, s; add.u32 %r3, %r3, %r4;\nld.shared.u32 %r5, [%r3];")},
    {"a shuffle between lanes", "", 1, 32, 0,
     K("st.shared.u32 [%r1], %t;\nshfl.sync.bfly.b32 %r5, %t, 1, 31, -1;\nxor.b32 %r3, %r2, 4;\n"
       "mov.u32 %r4, s; add.u32 %r3, %r3, %r4;\nld.shared.u32 %r5, [%r3];")},
    {"two barriers in a loop", "", 1, 64, 0,
     K("mov.u32 %r5, 0; mov.u32 %r4, s; xor.b32 %r3, %r2, 128; add.u32 %r3, %r3, %r4;\n"
       "AGAIN:\nst.shared.u32 [%r1], %r5;\nbar.sync 0;\nld.shared.u32 %r6, [%r3];\nbar.sync 0;\n"
       "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 3;\n@%p1 bra AGAIN;")},
    {"two buffers and one barrier", "", 1, 64, 0,
     K("mov.u32 %r5, 0; mov.u32 %r4, s; xor.b32 %r3, %r2, 128; add.u32 %r3, %r3, %r4;\n"
       "AGAIN:\nand.b32 %r7, %r5, 1; shl.b32 %r7, %r7, 9; add.u32 %r8, %r1, %r7;\n"
       "st.shared.u32 [%r8], %r5;\nbar.sync 0;\nadd.u32 %r8, %r3, %r7;\nld.shared.u32 %r6, [%r8];\n"
       "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 4;\n@%p1 bra AGAIN;")},
    {"release and acquire between blocks", "", 2, 1, 0,
     K(BLOCK_1 "@%p6 bra READ;\nst.global.u32 [%out], 5;\nst.release.gpu.global.u32 [%out+4], 1;\n"
               "ret;\nREAD:\nld.acquire.gpu.global.u32 %r3, [%out+4];\nsetp.eq.u32 %p1, %r3, 0;\n"
               "@%p1 bra READ;\nld.global.u32 %r3, [%out];")},
    {"fences and a relaxed flag between blocks", "", 2, 1, 0,
     K(BLOCK_1 "@%p6 bra READ;\nst.global.u32 [%out], 5;\nfence.acq_rel.gpu;\n"
               "st.relaxed.gpu.global.u32 [%out+4], 1;\nret;\n"
               "READ:\nld.relaxed.gpu.global.u32 %r3, [%out+4];\nsetp.eq.u32 %p1, %r3, 0;\n"
               "@%p1 bra READ;\nfence.acq_rel.gpu;\nld.global.u32 %r3, [%out];")},
    {"a volatile flag with fences between blocks", "", 2, 1, 0,
     K(BLOCK_1 "@%p6 bra READ;\nst.global.u32 [%out], 5;\nmembar.gl;\n"
               "st.volatile.global.u32 [%out+4], 1;\nret;\n"
               "READ:\nld.volatile.global.u32 %r3, [%out+4];\nsetp.eq.u32 %p1, %r3, 0;\n"
               "@%p1 bra READ;\nmembar.gl;\nld.global.u32 %r3, [%out];")},
    {"release and acquire of block scope in a block", "", 1, 64, 0,
     K("setp.eq.u32 %p1, %t, 0;\n@%p1 st.global.u32 [%out], 5;\n"
       "@%p1 st.release.cta.global.u32 [%out+4], 1;\nsetp.lt.u32 %p2, %t, 32;\n@%p2 ret;\n"
       "READ:\nld.acquire.cta.global.u32 %r3, [%out+4];\nsetp.eq.u32 %p1, %r3, 0;\n"
       "@%p1 bra READ;\nld.global.u32 %r3, [%out];")},
    {"a fence of the system between blocks", "", 2, 1, 0,
     K(BLOCK_1 "@%p6 bra READ;\nst.global.u32 [%out], 5;\nmembar.sys;\n"
               "st.relaxed.sys.global.u32 [%out+4], 1;\nret;\n"
               "READ:\nld.relaxed.sys.global.u32 %r3, [%out+4];\nsetp.eq.u32 %p1, %r3, 0;\n"
               "@%p1 bra READ;\nmembar.sys;\nld.global.u32 %r3, [%out];")},
    {"an atomic lock", "", 3, 1, 0,
     K("AGAIN:\natom.global.cas.b32 %r3, [%out+4], 0, 1;\nsetp.ne.u32 %p1, %r3, 0;\n"
       "@%p1 bra AGAIN;\nmembar.gl;\nld.global.u32 %r4, [%out];\nadd.u32 %r4, %r4, 1;\n"
       "st.global.u32 [%out], %r4;\nmembar.gl;\natom.global.exch.b32 %r3, [%out+4], 0;")},
    {"a lock of acquire and release", "", 3, 1, 0,
     K("AGAIN:\natom.acquire.gpu.global.cas.b32 %r3, [%out+4], 0, 1;\nsetp.ne.u32 %p1, %r3, 0;\n"
       "@%p1 bra AGAIN;\nld.global.u32 %r4, [%out];\nadd.u32 %r4, %r4, 1;\n"
       "st.global.u32 [%out], %r4;\nst.release.gpu.global.u32 [%out+4], 0;")},
    {"a barrier of the grid made of atomics", "", 4, 32, 0,
     K("st.global.u32 [%rd1], %t;\nbar.sync 0;\n" FIRST_LANE "@%p7 bra WAIT;\nmembar.gl;\n"
       "red.global.add.u32 [%out+2048], 1;\nSPIN:\nld.volatile.global.u32 %r3, [%out+2048];\n"
       "setp.lt.u32 %p1, %r3, 4;\n@%p1 bra SPIN;\nmembar.gl;\nWAIT:\nbar.sync 0;\n"
       "xor.b32 %r4, %r0, 32; mad.wide.u32 %rd2, %r4, 4, %out;\nld.global.u32 %r5, [%rd2];")},
    {"the last block reads what all wrote", "", 4, 32, 0,
     K("st.global.u32 [%rd1], %t;\nmembar.gl;\nbar.sync 0;\n" FIRST_LANE
       "@%p7 bra WAIT;\natom.global.inc.u32 %r3, [%out+2048], 4;\nsetp.eq.u32 %p1, %r3, 3;\n"
       "selp.u32 %r3, 1, 0, %p1;\nst.shared.u32 [s], %r3;\nWAIT:\nbar.sync 0;\n"
       "ld.shared.u32 %r3, [s];\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 ret;\n"
       "mad.wide.u32 %rd2, %t, 4, %out;\nld.global.u32 %r4, [%rd2+128];")},
    {"all lanes write the same value", "", 2, 64, 0, K("st.global.u32 [%out], 7;")},
    {"atomics of all blocks", "", 4, 64, 0, K("red.global.add.u32 [%out], 1;")},
    {"atomics of block scope in one block", "", 1, 128, 0,
     K("red.relaxed.cta.global.add.u32 [%out], 1;")},
    {"a counter in shared memory", "", 2, 64, 0,
     K(FIRST_LANE "@!%p7 st.shared.u32 [s], 0;\nbar.sync 0;\nred.shared.add.u32 [s], 1;\n"
                  "bar.sync 0;\nld.shared.u32 %r3, [s];")},
    {"a volatile read of what other lanes change with atomics", "", 1, 64, 0,
     K(FIRST_LANE "@!%p7 st.shared.u32 [s], 9;\nbar.sync 0;\nld.volatile.shared.u32 %r3, [s];\n"
                  "setp.lt.u32 %p1, %t, %r3;\n@%p1 red.shared.min.u32 [s], %t;\n"
                  "ld.volatile.shared.u32 %r3, [s];")},
    {"everyone reads one word", "", 4, 64, 0, K("ld.global.u32 %r3, [%out];")},
    {"bytes of one word, each its own", "", 1, 64, 0,
     K("cvt.u64.u32 %rd2, %t; add.u64 %rd2, %out, %rd2;\nst.global.u8 [%rd2], %t;\n"
       "ld.global.u8 %r3, [%rd2];")},
    {"an arrival after the write", "", 1, 64, 0,
     K("setp.lt.u32 %p1, %t, 32;\n@!%p1 bra WAITER;\nst.shared.u32 [%r1], %t;\nbar.arrive 1, 64;\n"
       "ret;\nWAITER:\nbar.sync 1, 64;\nld.shared.u32 %r3, [%r1+-128];")},
    {"warps at different barrier instructions", "", 1, 64, 0,
     K("setp.lt.u32 %p1, %t, 32;\n@%p1 bra OTHER;\nbar.sync 0;\nbra END;\nOTHER:\n"
       "bar.sync 0;\nEND:")},
    {"lanes at different barriers that are not aligned", "", 1, 32, 0,
     K("setp.lt.u32 %p1, %t, 16;\n@%p1 bra OTHER;\nbarrier.sync 0;\nbra END;\nOTHER:\n"
       "barrier.sync 0;\nEND:")},
    {"a barrier after threads have exited", "", 1, 64, 0,
     K("setp.gt.u32 %p1, %t, 40;\n@%p1 ret;\nst.shared.u32 [%r1], %t;\nbar.sync 0;\n"
       "ld.shared.u32 %r3, [s+160];")},
    {"sums over parts of a warp", "", 1, 32, 0,
     K("setp.lt.u32 %p1, %t, 8;\n@!%p1 ret;\nshfl.sync.down.b32 %r3, %t, 4, 31, 255;\n"
       "shfl.sync.down.b32 %r3, %r3, 2, 31, 255;\nshfl.sync.up.b32 %r3, %r3, 1, 0, 255;")},
    {"a shuffle among lanes of a part", "", 1, 32, 0,
     K("and.b32 %r3, %t, 1; setp.eq.u32 %p1, %r3, 0;\n"
       "@%p1 shfl.sync.bfly.b32 %r3, %t, 2, 31, 0x55555555;")},
    {"a shuffle in a warp that is not whole", "", 1, 40, 0,
     K("setp.lt.u32 %p1, %t, 32;\n@%p1 ret;\nshfl.sync.down.b32 %r3, %t, 4, 31, 255;\n"
       "shfl.sync.idx.b32 %r3, %t, 0, 31, 255;")},
    {"the padding of a structure in shared memory", "", 1, 32, 0,
     K("shl.b32 %r3, %t, 4; mov.u32 %r4, s; add.u32 %r3, %r3, %r4;\n"
       "st.shared.v2.u32 [%r3], {%t, %t}; st.shared.u32 [%r3+8], %t;\n"
       "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r3];")},
    {"local memory that was written", "", 1, 32, 0,
     K(".local .align 4 .b8 l[64];\nmov.u64 %rd2, l;\nst.local.u32 [%rd2+60], %t;\n"
       "ld.local.u32 %r3, [%rd2+60]; cvta.local.u64 %rd3, %rd2;\nst.u32 [%rd3], %t;\n"
       "ld.u32 %r3, [%rd3];")},
    {"a parameter whose address is taken", "", 1, 32, 0,
     PTX_HEAD ".func (.reg .b32 %o) f(.param .align 4 .b8 q[8]) { .reg .b64 %a;\n"
              "mov.b64 %a, q; ld.param.u32 %o, [%a+4]; ret; }\n"
              ".visible .entry k(.param .u64 p) { .reg .b32 %r; .param .align 4 .b8 v[8];\n"
              "st.param.u32 [v], 1; st.param.u32 [v+4], 2; call (%r), f, (v); ret; }\n"},
    {"shared memory by generic addresses", "", 1, 64, 0,
     K("mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; mad.wide.u32 %rd3, %t, 4, %rd2;\n"
       "st.u32 [%rd3], %t;\nbar.sync 0;\nxor.b32 %r3, %t, 32; mad.wide.u32 %rd3, %r3, 4, %rd2;\n"
       "ld.u32 %r4, [%rd3];")},
    {"an asynchronous copy of one's own", "", 1, 32, 0,
     K("cp.async.ca.shared.global [%r1], [%rd1], 4;\ncp.async.wait_all;\nld.shared.u32 %r3, [%r1];")},
    {"an asynchronous copy, a wait and a barrier", "", 1, 64, 0,
     K("cp.async.ca.shared.global [%r1], [%rd1], 4;\ncp.async.commit_group;\n"
       "cp.async.wait_group 0;\nbar.sync 0;\nxor.b32 %r3, %r2, 128; mov.u32 %r4, s;\n"
       "add.u32 %r3, %r3, %r4;\nld.shared.u32 %r3, [%r3];")},
    {"the older of two groups", "", 1, 32, 0,
     K("cp.async.ca.shared.global [%r1], [%rd1], 4;\ncp.async.commit_group;\n"
       "cp.async.ca.shared.global [%r1+128], [%rd1], 4;\ncp.async.commit_group;\n"
       "cp.async.wait_group 1;\nld.shared.u32 %r3, [%r1];\ncp.async.wait_all;\n"
       "ld.shared.u32 %r3, [%r1+128];")},
};

TEST(what_is_nearly_wrong_is_not_found) {
    try_all(right, sizeof right / sizeof *right, 0);
}

#define LOCAL ".local .align 16 .b8 l[64];\nmov.u64 %rd2, l;\n"
/* Undefined bits that decide something. In each the load that is marked read them. */
static const trial decided[] = {
    {"a branch on a field that nobody set", "UNINITIALISED 1", 1, 32, 0,
     K(LOCAL "ld.local.u32 %r3, [%rd2]; and.b32 %r3, %r3, -8; or.b32 %r3, %r3, 5;\n"
             "st.local.u32 [%rd2], %r3;\nld.local.u32 %r4, [%rd2]; /*1*/\n"
             "bfe.u32 %r4, %r4, 2, 4; setp.gt.u32 %p1, %r4, 3;\n@%p1 st.global.u32 [%rd1], %t;")},
    {"an address", "UNINITIALISED 1", 1, 1, 0,
     K(LOCAL "ld.local.u8 %r3, [%rd2]; /*1*/\nand.b32 %r3, %r3, 4; cvt.u64.u32 %rd3, %r3;\n"
             "add.u64 %rd3, %rd3, %out; st.global.u32 [%rd3], 1;")},
    {"a sum that is stored", "UNINITIALISED 1", 1, 32, 0,
     K("ld.global.u32 %r3, [%rd1+4096]; /*1*/\nadd.u32 %r3, %r3, 1; st.global.u32 [%rd1], %r3;")},
    {"a word beside one that was written, doubled", "UNINITIALISED 1", 1, 1, 0,
     K("st.shared.u32 [%r1+4], %t;\nld.shared.u32 %r3, [%r1]; /*1*/\n"
       "shl.b32 %r3, %r3, 1; st.global.u32 [%rd1], %r3;")},
    {"a copy from buffer to buffer", "UNINITIALISED 1", 1, 32, 0,
     K("ld.global.u32 %r3, [%rd1+4096]; /*1*/\nst.global.u32 [%rd1], %r3;")},
    {"a byte of a buffer that is copied", "UNINITIALISED 1", 1, 1, 0,
     K("ld.global.u8 %r3, [%out+4097]; /*1*/\nst.global.u8 [%out], %r3;")},
    {"a member behind its padding", "UNINITIALISED 2", 1, 32, 0,
     K(LOCAL "st.local.u8 [%rd2], %t; ld.local.u64 %rd3, [%rd2]; /*1*/\n"
             "st.local.u64 [%rd2+8], %rd3;\nld.local.u32 %r3, [%rd2+12]; /*2*/\n"
             "add.u32 %r3, %r3, %t; st.global.u32 [%rd1], %r3;")},
    {"a vote", "UNINITIALISED 1", 1, 32, 0,
     K(LOCAL "ld.local.u32 %r3, [%rd2]; /*1*/\nsetp.eq.u32 %p1, %r3, 7;\n"
             "vote.sync.any.pred %p2, %p1, -1;\n@%p2 st.global.u32 [%rd1], 1;")},
    {"the value of another lane", "UNINITIALISED 1", 1, 32, 0,
     K(LOCAL "setp.ne.u32 %p1, %t, 3;\n@%p1 st.local.u32 [%rd2], %t;\n"
             "ld.local.u32 %r3, [%rd2]; /*1*/\nshfl.sync.idx.b32 %r4, %r3, 3, 31, -1;\n"
             "mul.lo.u32 %r4, %r4, 3; st.global.u32 [%rd1], %r4;")},
    {"what an atomic adds", "UNINITIALISED 1", 1, 32, 0,
     K(LOCAL "ld.local.u32 %r3, [%rd2]; /*1*/\nred.global.add.u32 [%out], %r3;")},
    {"the third word of 128 bits", "UNINITIALISED 1", 1, 32, 0,
     K(".reg .b128 %w;\n" LOCAL "st.local.u64 [%rd2+8], 1; st.local.u32 [%rd2+4], 1;\n"
       "ld.local.u64 %rd3, [%rd2]; /*1*/\nld.local.u64 %rd4, [%rd2+8];\n"
       "mov.b128 %w, {%rd4, %rd3}; mov.b128 {%r3, %r4, %r5, %r6}, %w;\n"
       "mov.b128 {%rd5, %rd6}, %w; setp.eq.u32 %p1, %r5, 7;\n@%p1 st.global.u32 [%rd1], 1;")},
    {"what a function is given", "UNINITIALISED 1", 1, 1, 0,
     PTX_HEAD ".func (.param .b32 o) f(.param .b32 i) { .reg .b32 %r; .reg .pred %p;\n"
              "ld.param.b32 %r, [i]; /*1*/\nsetp.eq.u32 %p, %r, 0;\n@%p add.u32 %r, %r, 1;\n"
              "st.param.b32 [o], %r; ret; }\n"
              ".visible .entry k(.param .u64 p) { .reg .b32 %r; .reg .b64 %a;\n"
              ".local .align 16 .b8 l[16]; .param .b32 v; .param .b32 w;\n"
              "mov.u64 %a, l; ld.local.u32 %r, [%a]; st.param.b32 [v], %r;\n"
              "call (w), f, (v); ld.param.b32 %r, [w]; ret; }\n"},
};

TEST(what_undefined_bits_decide_is_found) {
    try_all(decided, sizeof decided / sizeof *decided, 0);
}

/* The same bits, and they decide nothing. */
static const trial copied[] = {
    {"a branch on a field that was set", "", 1, 32, 0,
     K(LOCAL "ld.local.u32 %r3, [%rd2]; and.b32 %r3, %r3, -8; or.b32 %r3, %r3, 5;\n"
             "st.local.u32 [%rd2], %r3;\nld.local.u32 %r4, [%rd2];\n"
             "bfe.u32 %r4, %r4, 0, 3; setp.gt.u32 %p1, %r4, 3;\n@%p1 st.global.u32 [%rd1], %t;")},
    {"fields that are inserted", "", 1, 32, 0,
     K(LOCAL "ld.local.u32 %r3, [%rd2]; bfi.b32 %r3, %t, %r3, 8, 8; st.local.u32 [%rd2], %r3;\n"
             "ld.local.u8 %r4, [%rd2+1]; add.u32 %r4, %r4, 1; st.global.u32 [%rd1], %r4;")},
    {"fields by shifts", "", 1, 32, 0,
     K(LOCAL "ld.local.u32 %r3, [%rd2]; and.b32 %r3, %r3, 0xffff0000; or.b32 %r3, %r3, %t;\n"
             "shl.b32 %r3, %r3, 16; shr.s32 %r3, %r3, 16; st.global.u32 [%rd1], %r3;")},
    {"a field of five bits by shifts", "", 1, 32, 0,
     K(LOCAL "ld.local.u32 %r3, [%rd2]; and.b32 %r3, %r3, -32; or.b32 %r3, %r3, 9;\n"
             "shl.b32 %r3, %r3, 27; shr.s32 %r3, %r3, 27; st.global.u32 [%rd1], %r3;")},
    {"words that differ in what is known", "", 1, 32, 0,
     K(LOCAL "st.local.u8 [%rd2], 1; ld.local.u32 %r3, [%rd2]; setp.eq.u32 %p1, %r3, 2;\n"
             "@%p1 st.global.u32 [%rd1], 1;")},
    {"padding that is copied to a buffer", "", 1, 16, 0,
     K(LOCAL "st.local.u8 [%rd2], %t; st.local.u32 [%rd2+4], %t;\n"
             "ld.local.u64 %rd3, [%rd2]; mad.wide.u32 %rd4, %t, 8, %out;\n"
             "st.global.u64 [%rd4+4096], %rd3;\nld.global.u64 %rd5, [%rd4+4096];\n"
             "shr.u64 %rd5, %rd5, 32; cvt.u32.u64 %r3, %rd5; add.u32 %r3, %r3, 1;\n"
             "st.global.u32 [%rd1], %r3;")},
    {"an object without members", "", 1, 1, 0,
     PTX_HEAD ".func f(.param .b8 i) { .reg .b16 %r; .reg .b64 %a; .local .b8 l[1];\n"
              "mov.u64 %a, l; ld.param.b8 %r, [i]; st.local.b8 [%a], %r; ret; }\n"
              ".visible .entry k(.param .u64 p) { .reg .b16 %r; .reg .b64 %a;\n"
              ".local .b8 l[1]; .param .b8 v;\n"
              "mov.u64 %a, l; ld.local.b8 %r, [%a]; st.param.b8 [v], %r; call f, (v); ret; }\n"},
    {"a choice of the other value", "", 1, 32, 0,
     K(LOCAL "ld.local.u32 %r3, [%rd2]; setp.lt.u32 %p1, %t, 32; selp.u32 %r4, %t, %r3, %p1;\n"
             "st.global.u32 [%rd1], %r4;")},
    {"a register that is set again", "", 1, 32, 0,
     K(LOCAL "ld.local.u32 %r3, [%rd2]; mov.u32 %r3, %t; setp.eq.u32 %p1, %r3, 1;\n"
             "@%p1 st.global.u32 [%rd1], %r3;")},
    {"halves of a word", "", 1, 32, 0,
     K(LOCAL "st.local.u16 [%rd2+2], 9; ld.local.u32 %r3, [%rd2]; mov.b64 %rd3, {%r3, %t};\n"
             "mov.b64 {%r4, %r5}, %rd3; shr.u32 %r4, %r4, 16; add.u32 %r4, %r4, %r5;\n"
             "st.global.u32 [%rd1], %r4;")},
    {"the first word of 128 bits", "", 1, 32, 0,
     K(".reg .b128 %w;\n" LOCAL "st.local.u64 [%rd2+8], 1; st.local.u32 [%rd2+4], 1;\n"
       "ld.local.u64 %rd3, [%rd2]; ld.local.u64 %rd4, [%rd2+8];\n"
       "mov.b128 %w, {%rd4, %rd3}; mov.b128 {%r3, %r4, %r5, %r6}, %w;\n"
       "mov.b128 {%rd5, %rd6}, %w; setp.eq.u32 %p1, %r3, 7;\n@%p1 st.global.u32 [%rd1], 1;")},
    {"the last word of 128 bits", "", 1, 32, 0,
     K(".reg .b128 %w;\n" LOCAL "st.local.u64 [%rd2+8], 1; st.local.u32 [%rd2+4], 1;\n"
       "ld.local.u64 %rd3, [%rd2]; ld.local.u64 %rd4, [%rd2+8];\n"
       "mov.b128 %w, {%rd4, %rd3}; mov.b128 {%r3, %r4, %r5, %r6}, %w;\n"
       "mov.b128 {%rd5, %rd6}, %w; setp.eq.u32 %p1, %r6, 7;\n@%p1 st.global.u32 [%rd1], 1;")},
    {"a shuffle of lanes that have a value", "", 1, 32, 0,
     K(LOCAL "setp.ne.u32 %p1, %t, 3;\n@%p1 st.local.u32 [%rd2], %t;\n"
             "ld.local.u32 %r3, [%rd2]; shfl.sync.idx.b32 %r4, %r3, 4, 31, -1;\n"
             "mul.lo.u32 %r4, %r4, 3; st.global.u32 [%rd1], %r4;")},
};

TEST(undefined_bits_that_decide_nothing_are_not_found) {
    try_all(copied, sizeof copied / sizeof *copied, 0);
}

/* ---- clusters, asynchronous copies, matrices ---- */

#define CLUSTER_SYNC "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"

/* The thread's word in the cluster's other block: %r3. */
#define OTHER_BLOCK                                                                                \
    "mov.u32 %r4, %cluster_ctarank; xor.b32 %r4, %r4, 1; mapa.shared::cluster.u32 %r3, %r1, %r4;\n"

/* An mbarrier at %r7 for `first` arrivals, and one behind it for `second`. */
#define MBARRIERS(first, second)                                                                    \
    ".shared .align 8 .b64 bar[2];\nmov.u32 %r7, bar; mov.u32 %r6, s; mov.u32 %r5, 0;\n" FIRST_LANE \
    "@%p7 bra READY;\nmbarrier.init.shared.b64 [%r7], " first ";\n"                                 \
    "mbarrier.init.shared.b64 [%r7+8], " second ";\nfence.mbarrier_init.release.cluster;\n"         \
    "READY:\nbar.sync 0;\n"

#define BULK "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"

#define USE     "ld.shared.u32 %r9, [%r1]; /*2*/\n"
#define ARRIVAL "mbarrier.arrive.shared.b64 %rd3, [%r7+8];\n"

/* A thread copies 256 bytes four times; 64 threads read them and say when they have. */
#define PIPELINE(use)                                                                                \
    MBARRIERS("1", "64")                                                                             \
    "setp.lt.u32 %p1, %t, 64;\n@%p1 bra CONSUMER;\nsetp.ne.u32 %p1, %t, 64;\n@%p1 ret;\n"            \
    "PRODUCER:\nand.b32 %r8, %r5, 1; xor.b32 %r8, %r8, 1;\n"                                         \
    "EMPTY:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r7+8], %r8;\n@!%p2 bra EMPTY;\n"             \
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 256;\nmad.wide.u32 %rd2, %r5, 256, %out;\n" BULK \
    " [%r6], [%rd2], 256, [%r7]; /*1*/\n"                                                            \
    "add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 4;\n@%p3 bra PRODUCER;\nret;\n"                      \
    "CONSUMER:\nand.b32 %r8, %r5, 1;\n"                                                              \
    "FULL:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r7], %r8;\n@!%p2 bra FULL;\n" use             \
    "add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 4;\n@%p3 bra CONSUMER;"

/* Each thread writes 16 bytes of `s`; %r3 is their address, %r4 that of another warp's. */
#define ROWS                                                                                       \
    "shl.b32 %r3, %t, 4; xor.b32 %r4, %r3, 512; mov.u32 %r5, s; add.u32 %r3, %r3, %r5;\n"          \
    "add.u32 %r4, %r4, %r5; st.shared.v4.u32 [%r3], {%t, %t, %t, %t};\n"
#define FOUR_ROWS "{%r8, %r9, %r10, %r11}"

/* The product of two matrices in `s` is stored at `s` plus `to`. */
#define PRODUCT(to)                                                                                \
    ".reg .b32 %a<8>, %b<8>;\nshl.b32 %r3, %t, 5; mov.u32 %r5, s; add.u32 %r3, %r3, %r5;\n"        \
    "mov.f32 %f0, 0f00000000;\nst.shared.v4.u32 [%r3], {0, 0, 0, 0};\n"                            \
    "st.shared.v4.u32 [%r3+16], {0, 0, 0, 0};\nbar.warp.sync -1;\n"                                \
    "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 "                                           \
    "{%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, [%r5], 16;\n"                                       \
    "wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 "                                           \
    "{%b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7}, [%r5+512], 16;\n"                                   \
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, "   \
    "{%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, {%b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7}, "         \
    "{%f0, %f0, %f0, %f0, %f0, %f0, %f0, %f0};\n"                                                  \
    "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r5+" to                                  \
    "], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, 16; /*1*/\n"

static const trial wrong_clusters[] = {
    {"blocks of a cluster without a barrier", "RACE 2 1", 2, 32, 0,
     K(BLOCK_1 "@!%p6 st.global.u32 [%out], 5; /*1*/\n@%p6 ld.global.u32 %r3, [%out]; /*2*/")},
    {"a barrier of the cluster that is relaxed", "RACE 2 1", 2, 32, 0,
     K("st.global.u32 [%rd1], %t; /*1*/\nbarrier.cluster.arrive.relaxed.aligned;\n"
       "barrier.cluster.wait.aligned;\nxor.b32 %r3, %r0, 32; mad.wide.u32 %rd2, %r3, 4, %out;\n"
       "ld.global.u32 %r4, [%rd2]; /*2*/")},
    {"past the end of another block's shared memory", "BOUNDS 1", 2, 32, 0,
     K(OTHER_BLOCK "st.shared::cluster.u32 [%r3+4092], %t; /*1*/\n" CLUSTER_SYNC)},
};

TEST(what_is_wrong_with_clusters_is_found) {
    try_all(wrong_clusters, sizeof wrong_clusters / sizeof *wrong_clusters, 2);
}

static const trial wrong_together[] = {
    {"a scope of the cluster between clusters", "RACE 3 2, RACE 4 1", 2, 1, 0,
     K(BLOCK_1 "@%p6 bra READ;\nst.global.u32 [%out], 5; /*1*/\n"
               "st.release.cluster.global.u32 [%out+4], 1; /*2*/\nret;\n"
               "READ:\nld.acquire.cluster.global.u32 %r3, [%out+4]; /*3*/\n"
               "setp.eq.u32 %p1, %r3, 0;\n@%p1 bra READ;\nld.global.u32 %r3, [%out]; /*4*/")},
    {"an arrival before the last use of memory", "RACE 1 2", 1, 96, 0, K(PIPELINE(ARRIVAL USE))},
    {"a bulk copy that another thread does not wait for", "UNINITIALISED 2, RACE 1 2", 1, 64, 0,
     K(MBARRIERS("1", "1") "@%p7 bra READER;\n"
                           "mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 256;\n" BULK
                           " [%r6], [%out], 256, [%r7]; /*1*/\nret;\nREADER:\n"
                           "setp.lt.u32 %p1, %t, 32;\n@%p1 ret;\nld.shared.u32 %r3, [%r1]; /*2*/")},
    {"a bulk copy past the end of a buffer", "BOUNDS 1", 1, 1, 0,
     K(MBARRIERS("1", "1") "mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 256;\n" BULK
                           " [%r6], [%out+5088], 256, [%r7]; /*1*/\n"
                           "WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r7], 0;\n"
                           "@!%p2 bra WAIT;")},
    {"a matrix that nobody wrote", "UNINITIALISED 1", 1, 32, 0,
     K("shl.b32 %r3, %t, 4; mov.u32 %r5, s; add.u32 %r3, %r3, %r5;\n"
       "ldmatrix.sync.aligned.m8n8.x4.shared.b16 " FOUR_ROWS ", [%r3]; /*1*/")},
    {"a matrix past the end", "BOUNDS 1", 1, 32, 0,
     K(ROWS "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r3+3600], {%t, %t, %t, %t}; /*1*/")},
    {"a matrix of another warp without a barrier", "UNINITIALISED 2, RACE 1 2", 1, 64, 0,
     K("shl.b32 %r3, %t, 4; xor.b32 %r4, %r3, 512; mov.u32 %r5, s; add.u32 %r3, %r3, %r5;\n"
       "add.u32 %r4, %r4, %r5;\nstmatrix.sync.aligned.m8n8.x4.shared.b16 [%r3], "
       "{%t, %t, %t, %t}; /*1*/\nld.shared.v4.u32 " FOUR_ROWS ", [%r4]; /*2*/")},
    {"a product that is read without a __syncwarp", "RACE 2 1", 1, 32, 0,
     K(PRODUCT("1024") "ld.shared.u32 %r3, [%r1+1024]; /*2*/")},
    {"a product past the end", "BOUNDS 1", 1, 32, 0, K(PRODUCT("3584"))},
};

TEST(what_is_wrong_with_copies_and_matrices_is_found) {
    try_all(wrong_together, sizeof wrong_together / sizeof *wrong_together, 0);
}

static const trial clusters[] = {
    {"shared memory of another block", "", 2, 64, 0,
     K(OTHER_BLOCK "st.shared.u32 [%r1], %t;\n" CLUSTER_SYNC "ld.shared::cluster.u32 %r5, [%r3];\n"
                   "st.shared::cluster.u32 [%r3+1024], %r5;\n" CLUSTER_SYNC
                   "ld.shared.u32 %r6, [%r1+1024];")},
    {"global memory between blocks of a cluster", "", 4, 32, 0,
     K("st.global.u32 [%rd1], %t;\n" CLUSTER_SYNC "xor.b32 %r3, %r0, 32;\n"
       "mad.wide.u32 %rd2, %r3, 4, %out;\nld.global.u32 %r4, [%rd2];")},
    {"a flag of the cluster's scope", "", 2, 1, 0,
     K(BLOCK_1 "@%p6 bra READ;\nst.global.u32 [%out], 5;\n"
               "st.release.cluster.global.u32 [%out+4], 1;\nret;\n"
               "READ:\nld.acquire.cluster.global.u32 %r3, [%out+4];\nsetp.eq.u32 %p1, %r3, 0;\n"
               "@%p1 bra READ;\nld.global.u32 %r3, [%out];")},
    {"own shared memory by all of its addresses", "", 4, 64, 0,
     K("st.shared.u32 [%r1], %t;\nbar.sync 0;\nmov.u32 %r4, %cluster_ctarank;\n"
       "mapa.shared::cluster.u32 %r3, %r1, %r4; xor.b32 %r3, %r3, 128;\n"
       "ld.shared::cluster.u32 %r5, [%r3];\nld.shared.u32 %r5, [%r3];\nld.shared.u32 %r5, [s];\n"
       "cvt.u64.u32 %rd2, %r3; cvta.shared.u64 %rd2, %rd2;\nld.u32 %r5, [%rd2];")},
    {"a bulk copy to every block of the cluster", "", 2, 64, 0,
     K(MBARRIERS("1",
                 "1") "mov.u16 %h1, 3;\n"
                      "@!%p7 mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 256;\n" CLUSTER_SYNC
                      "mov.u32 %r4, %cluster_ctarank; setp.eq.u32 %p1, %r4, 0;\n"
                      "@%p7 bra WAIT;\n@%p1 " BULK ".multicast::cluster [%r6], [%out], 256, [%r7], "
                      "%h1;\nWAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r7], 0;\n"
                      "@!%p2 bra WAIT;\nld.shared.u32 %r9, [%r1];\n" CLUSTER_SYNC)},
};

TEST(nothing_is_found_in_clusters) {
    try_all(clusters, sizeof clusters / sizeof *clusters, 2);
}

static const trial copies[] = {
    {"a pipeline of bulk copies", "", 1, 96, 0, K(PIPELINE(USE ARRIVAL))},
    {"asynchronous copies that arrive at an mbarrier", "", 1, 64, 0,
     K(MBARRIERS("64", "1") "cp.async.ca.shared.global [%r1], [%rd1], 4;\n"
                            "cp.async.mbarrier.arrive.noinc.shared.b64 [%r7];\n"
                            "WAIT:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r7], 0;\n"
                            "@!%p2 bra WAIT;\nxor.b32 %r3, %r2, 128; add.u32 %r3, %r3, %r6;\n"
                            "ld.shared.u32 %r9, [%r3];")},
    {"a bulk copy back to global memory", "", 1, 64, 0,
     K("st.shared.u32 [%r1], %t;\nbar.sync 0;\n" FIRST_LANE "@%p7 ret;\nmov.u32 %r6, s;\n"
       "cp.async.bulk.global.shared::cta.bulk_group [%out+4096], [%r6], 256;\n"
       "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nld.global.u32 %r3, [%out+4096];")},
};

TEST(nothing_is_found_in_asynchronous_copies) {
    try_all(copies, sizeof copies / sizeof *copies, 0);
}

static const trial matrices[] = {
    {"matrices between warps", "", 1, 64, 0,
     K(ROWS "bar.sync 0;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 " FOUR_ROWS ", [%r4];\n"
            "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r3+2048], " FOUR_ROWS ";\nbar.sync 0;\n"
            "ld.shared.v4.u32 " FOUR_ROWS ", [%r4+2048];")},
    {"a product", "", 1, 32, 0,
     K(PRODUCT("1024") "bar.warp.sync -1;\nld.shared.u32 %r3, [%r1+1024];")},
};

TEST(nothing_is_found_in_matrices) {
    try_all(matrices, sizeof matrices / sizeof *matrices, 0);
}

/* What one thread frees, another may get. */
TEST(nothing_is_found_in_memory_of_the_heap) {
    bh__ptx_heap *heap = bh__ptx_heap_create(4096);
    bh__ptx_check *check = bh__ptx_check_create();
    kernel k;
    uint32_t count;
    REQUIRE(heap != NULL && check != NULL);
    const char *text =
        PTX_HEAD ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"
                 ".extern .func free (.param .b64 p);\n"
                 ".visible .entry k(.param .u64 p) { .reg .b64 %a; .param .b64 x; .param .b64 y;\n"
                 ".reg .b32 %n, %t; .reg .pred %p; mov.u32 %n, 0; mov.u32 %t, %tid.x;\n"
                 "AGAIN: st.param.b64 [x], 48; call (y), malloc, (x); ld.param.b64 %a, [y];\n"
                 "setp.eq.u64 %p, %a, 0;\n@%p bra NEXT;\nst.u32 [%a], %t; st.u8 [%a+5], %t;\n"
                 "st.param.b64 [x], %a; call free, (x);\n"
                 "NEXT: add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 4;\n@%p bra AGAIN;\nret; }\n";
    prepare_memory();
    REQUIRE_EQ(kernel_open(&k, text, 256, data, sizeof data), BH_OK);
    k.grid.heap = heap;
    k.grid.check = check;
    bh__ptx_check_begin(check);
    run_clusters(&k, 100000);
    CHECK(bh__ptx_check_end(check));
    const bh__ptx_finding *found = bh__ptx_check_findings(check, &count);
    if (count > 0) FAIL("%s", found->fault.text);
    kernel_close(&k);
    bh__ptx_check_destroy(check);
    bh__ptx_heap_destroy(heap);
}

static bh__ptx_check *run_wrong(const char *text, uint32_t threads) {
    bh__ptx_check *check = bh__ptx_check_create();
    kernel k;
    prepare_memory();
    REQUIRE(check != NULL);
    REQUIRE_EQ(kernel_open(&k, text, threads, data, sizeof data), BH_OK);
    k.range.map = map;
    k.range.marks = marks;
    k.grid.check = check;
    bh__ptx_check_begin(check);
    run_clusters(&k, 100000);
    CHECK(bh__ptx_check_end(check));
    kernel_close(&k);
    return check;
}

TEST(a_read_out_of_bounds_gives_zero_and_a_write_is_dropped) {
    bh__ptx_check *check = run_wrong(
        K("mov.u32 %r3, 9; ld.global.u32 %r3, [%out+5096]; st.global.u32 [%rd1], %r3;\n"
          "st.global.u32 [%out+5096], 7;\nmov.u32 %r4, 9; atom.global.add.u32 %r4, [%out+5096], 1;\n"
          "st.global.u32 [%rd1+256], %r4; st.global.u32 [%rd1+512], 5;"),
        32);
    uint32_t count;
    const bh__ptx_finding *found = bh__ptx_check_findings(check, &count);
    CHECK_EQ(count, 3);
    CHECK_EQ(found[0].count, 32);
    CHECK_EQ(found[0].fault.thread[0], 0);
    CHECK_EQ(found[0].fault.address, (uint64_t)(uintptr_t)data + 5096);
    uint32_t words[256];
    memcpy(words, data, sizeof words);
    for (uint32_t n = 0; n < 32; n++) {
        CHECK_EQ(words[n], 0);
        CHECK_EQ(words[n + 64], 0);
        CHECK_EQ(words[n + 128], 5);
    }
    CHECK_EQ(data[5096], 0);
    bh__ptx_check_destroy(check);
}

/* Copies that nobody waits for: the list of them has an end, and the report says that something
 * went unchecked. What they wrote counts as written. */
TEST(copies_that_nobody_waits_for_are_not_remembered_for_ever) {
    kernel k;
    uint32_t count;
    bh__ptx_check *check = bh__ptx_check_create();
    REQUIRE(check != NULL);
    prepare_memory();
    REQUIRE_EQ(kernel_open(&k,
                           K("mov.u32 %r5, 0;\n"
                             "AGAIN: cp.async.ca.shared.global [%r1], [%rd1], 4;\n"
                             "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 5000;\n@%p1 bra AGAIN;\n"
                             "cp.async.ca.shared.global [%r1+1024], [%rd1], 4;\n"
                             "cp.async.wait_all; ld.shared.u32 %r6, [%r1+1024];\n"
                             "setp.eq.u32 %p1, %r6, 77;\n@%p1 st.global.u32 [%rd1], 1;"),
                           32, data, sizeof data),
               BH_OK);
    k.range.map = map;
    k.range.marks = marks;
    k.grid.check = check;
    bh__ptx_check_begin(check);
    run_clusters(&k, 1000000);
    CHECK(!bh__ptx_check_end(check));
    (void)bh__ptx_check_findings(check, &count);
    CHECK_EQ(count, 0);
    kernel_close(&k);
    bh__ptx_check_destroy(check);
}

TEST(a_race_has_both_sides) {
    bh__ptx_check *check = run_wrong(
        PTX_HEAD ".visible .entry k(.param .u64 p) { .reg .b64 %a; .reg .b32 %t; .reg .pred %p;\n"
                 "ld.param.u64 %a, [p]; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 3;\n"
                 ".loc 1 20 5\n@%p st.global.u32 [%a], 1;\nsetp.eq.u32 %p, %t, 40;\n"
                 ".loc 1 21 5\n@%p atom.global.add.u32 %t, [%a], 1;\nret; }\n.file 1 \"two.cu\"\n",
        64);
    uint32_t count;
    const bh__ptx_finding *found = bh__ptx_check_findings(check, &count);
    REQUIRE_EQ(count, 1);
    CHECK_STR_EQ(found->here.file, "two.cu");
    CHECK_EQ(found->here.source_line, 21);
    CHECK(found->here.thread[0] == 40 && found->here.write);
    CHECK_STR_EQ(found->other.file, "two.cu");
    CHECK_EQ(found->other.source_line, 20);
    CHECK(found->other.thread[0] == 3 && found->other.write && !found->other.read);
    bh__ptx_check_destroy(check);
}

TEST(a_grid_is_ended_when_enough_was_found) {
    enum { LINES = BH__PTX_FINDINGS + 20 };
    char text[LINES * 64 + 1024];
    size_t length = (size_t)snprintf(text, sizeof text, "%s",
                                     PTX_HEAD ".visible .entry k(.param .u64 p) { .reg .b64 %a;\n"
                                              ".reg .b32 %r; ld.param.u64 %a, [p];\n");
    for (int n = 0; n < LINES; n++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "ld.global.u32 %%r, [%%a+5096];\n");
    snprintf(text + length, sizeof text - length, "ret; }\n");
    bh__ptx_check *check = run_wrong(text, 1);
    uint32_t count;
    const bh__ptx_finding *found = bh__ptx_check_findings(check, &count);
    CHECK_EQ(count, BH__PTX_FINDINGS);
    CHECK_EQ(found[BH__PTX_FINDINGS - 1].here.line, 5 + BH__PTX_FINDINGS);
    bh__ptx_check_destroy(check);
    /* A kernel that waits for ever for what it reads out of bounds. */
    check = run_wrong(K("AGAIN: ld.global.u32 %r3, [%out+5096]; setp.eq.u32 %p1, %r3, 0;\n"
                        "@%p1 bra AGAIN;"),
                      32);
    found = bh__ptx_check_findings(check, &count);
    CHECK_EQ(count, 1);
    CHECK(found->count >= BH__PTX_OCCURRENCES);
    bh__ptx_check_destroy(check);
}
