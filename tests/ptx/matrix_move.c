/* SPDX-License-Identifier: Apache-2.0 */
/* ldmatrix, stmatrix and movmatrix against the layout of the PTX manual. */
#include <stdio.h>
#include <string.h>

#include "support/kernel.h"
#include "support/matrix.h"
#include "test.h"

/* Rows of 16 bytes lie 48 bytes apart; lane l gives the address of row l. */
#define PITCH 48

static _Alignas(16) uint8_t memory[32 * PITCH + 32 * 16];

static uint16_t element(unsigned matrix, unsigned row, unsigned column) {
    return (uint16_t)(matrix << 12 | row << 8 | column << 4 | 7);
}

static void fill(void) {
    memset(memory, 0, sizeof memory);
    for (unsigned n = 0; n < 256; n++) {
        uint16_t v = element(n / 64, n / 8 % 8, n % 8);
        memcpy(memory + n / 8 * PITCH + n % 8 * 2, &v, 2);
    }
}

static void write_program(program *p, const char *body) {
    p->length = 0;
    add(p,
        PTX_HEAD ".entry k(.param .u64 p) { .reg .b64 %%in, %%g; .reg .b32 %%t, %%s, %%r<4>;\n"
                 ".reg .b32 %%v, %%u; .shared .align 16 .b8 area[%u]; ld.param.u64 %%in, [p];\n"
                 "mov.u32 %%t, %%tid.x; mad.wide.u32 %%g, %%t, %u, %%in;\n"
                 "mov.u32 %%s, area; mad.lo.u32 %%s, %%t, %u, %%s;\n",
        32 * PITCH, PITCH, PITCH);
    for (unsigned n = 0; n < PITCH; n += 4) {
        add(p, "ld.global.b32 %%v, [%%g+%u]; st.shared.b32 [%%s+%u], %%v;\n", n, n);
    }
    add(p, "bar.sync 0;\n%s\n", body);
    for (unsigned n = 0; n < PITCH; n += 4) {
        add(p, "ld.shared.b32 %%v, [%%s+%u]; st.global.b32 [%%g+%u], %%v;\n", n, n);
    }
    add(p, "mad.wide.u32 %%g, %%t, 16, %%in;\n");
    for (unsigned n = 0; n < 4; n++) {
        add(p, "st.global.b32 [%%g+%u], %%r%u;\n", 32 * PITCH + 4 * n, n);
    }
    add(p, "ret; }\n");
}

static uint32_t result(unsigned lane, unsigned n) {
    uint32_t v;
    memcpy(&v, memory + 32 * PITCH + lane * 16 + n * 4, 4);
    return v;
}

static void run(const char *body) {
    static program p;
    kernel k;
    write_program(&p, body);
    CHECK_EQ(run_text(&k, p.text, 32, memory, sizeof memory), BH__PTX_DONE);
}

TEST(loads_give_each_lane_two_neighbours) {
    static const char *const spaces[] = {".shared", ".shared::cta"};
    for (unsigned n = 0; n < 12; n++) {
        unsigned count = 1u << n % 3, transposed = n / 3 % 2;
        char body[256];
        fill();
        snprintf(body, sizeof body, "ldmatrix.sync.aligned.m8n8.x%u%s%s.b16 {%%r0%s%s}, [%%s];",
                 count, transposed ? ".trans" : "", spaces[n / 6], count > 1 ? ", %r1" : "",
                 count > 2 ? ", %r2, %r3" : "");
        run(body);
        for (unsigned l = 0; l < 32; l++) {
            for (unsigned m = 0; m < count; m++) {
                unsigned line = l / 4, at = l % 4 * 2;
                uint32_t low = transposed ? element(m, at, line) : element(m, line, at);
                uint32_t high = transposed ? element(m, at + 1, line) : element(m, line, at + 1);
                CHECK_EQ(result(l, m), low | high << 16);
            }
        }
    }
}

TEST(loads_take_generic_addresses) {
    fill();
    run(".reg .b64 %w; cvt.u64.u32 %w, %s; cvta.shared.u64 %w, %w;\n"
        "ldmatrix.sync.aligned.m8n8.x4.b16 {%r0, %r1, %r2, %r3}, [%w];");
    CHECK_EQ(result(31, 3), element(3, 7, 6) | (uint32_t)element(3, 7, 7) << 16);
}

/* Only the first eight lanes' addresses count for one matrix. */
TEST(loads_do_not_look_at_other_lanes_addresses) {
    fill();
    run(".reg .pred %p; setp.ge.u32 %p, %t, 8; mov.u32 %u, %s; @%p mov.u32 %u, 0xfffffff1;\n"
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%u];");
    CHECK_EQ(result(9, 0), element(0, 2, 2) | (uint32_t)element(0, 2, 3) << 16);
}

TEST(stores_are_the_reverse) {
    for (unsigned transposed = 0; transposed < 2; transposed++) {
        fill();
        run(transposed ? "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%s];\n"
                         "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%s+16],"
                         " {%r0, %r1, %r2, %r3};"
                       : "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%s];\n"
                         "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%s+16], {%r1, %r0};\n"
                         "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%s+32], {%r3};");
        for (unsigned n = 0; n < 256; n++) {
            unsigned m = n / 64, row = n / 8 % 8, column = n % 8;
            uint16_t at16, at32;
            memcpy(&at16, memory + n / 8 * PITCH + 16 + column * 2, 2);
            memcpy(&at32, memory + n / 8 * PITCH + 32 + column * 2, 2);
            unsigned want = transposed ? element(m, column, row)
                            : m < 2    ? element(1 - m, row, column)
                                       : 0;
            CHECK_EQ(at16, want);
            CHECK_EQ(at32, !transposed && m == 0 ? element(3, row, column) : 0);
        }
    }
}

TEST(moves_transpose) {
    fill();
    run("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%s];\n"
        "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0;\n"
        "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r1;\n"
        "movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;");
    for (unsigned l = 0; l < 32; l++) {
        CHECK_EQ(result(l, 1), result(l, 0));
        CHECK_EQ(result(l, 2),
                 element(0, l % 4 * 2, l / 4) | (uint32_t)element(0, l % 4 * 2 + 1, l / 4) << 16);
    }
}

TEST(bad_addresses_are_faults) {
    static program p;
    kernel k;
    write_program(&p, "add.u32 %u, %s, 8; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%u];");
    CHECK_EQ(run_text(&k, p.text, 32, memory, sizeof memory), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_MISALIGNED);
    write_program(&p, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%s+32], {%r0, %r1, %r2, %r3};\n"
                      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%s+48], {%r0, %r1, %r2, %r3};");
    CHECK_EQ(run_text(&k, p.text, 32, memory, sizeof memory), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_ADDRESS);
    CHECK(strstr(k.fault.text, "illegal write of 16 bytes at shared address") != NULL);
}

TEST(forms_that_do_not_exist_are_refused) {
    check_refused("ldmatrix.sync.aligned.m8n8.shared.b16 {%r0}, [%t];", "number of matrices");
    check_refused("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%t];",
                  "1 registers where 2 are needed");
    check_refused("ldmatrix.sync.aligned.m8n8.x1.b16 {%r0}, [%t];", "address is in a .b32");
    check_refused("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%t];",
                  "ldmatrix has no form m16n16.b8");
    check_refused("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32 {%r0}, [%t];", ".b8x16");
    check_refused("ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r0}, [%out];", ".global");
    check_refused("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%t], {%r0};",
                  "stmatrix has no form m16n8.b8");
    check_refused("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%t], {0};", "not a register");
    check_refused("movmatrix.sync.aligned.m8n8.b16 %r0, %r1;", "without .trans");
    check_refused("movmatrix.sync.aligned.m8n8.trans.b16 {%r0}, {%r1};", "operand 1 is not");
    check_refused("ldmatrix.m8n8.x1.shared.b16 {%r0}, [%t];", "ldmatrix without .sync");
}
