/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX programs out of the tables of src/ptx/ops.h: the input chooses operations, modifiers, types
 * and operands, so that nearly all of it gets past the parser. An instruction that is refused on
 * its own is left out. The first byte says whether accesses are checked, and which
 * variables are declared twice.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/siphash.h"
#include "ptx/ir.h"
#include "ptx_run.h"

enum { INSTRUCTIONS = 16, LABELS = 4, TEXT = 8192 };

typedef struct text {
    char bytes[TEXT];
    size_t length;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *to, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int length = vsnprintf(to->bytes + to->length, sizeof to->bytes - to->length, format, list);
    va_end(list);
    to->length += (size_t)length;
    FUZZ_CHECK(to->length < sizeof to->bytes);
}

static const char head[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".func (.param .b32 back) twice(.param .b32 given) {\n"
    ".reg .b32 %a; ld.param.b32 %a, [given]; add.u32 %a, %a, %a; st.param.b32 [back], %a; ret; }\n"
    ".entry k(.param .u64 p, .param .u64 o, .param .u64 c) {\n"
    ".shared .align 16 .b8 s[64]; .local .align 16 .b8 l[64];\n"
    ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %q<4>; .reg .b128 %w<4>;\n";
/* Addresses that are good for something, and values that differ between threads. */
static const char start[] =
    "ld.param.u64 %q0, [p]; ld.param.u64 %q1, [c]; mov.u32 %r0, %tid.x; mov.u32 %r1, -7;\n"
    "mul.wide.u32 %q2, %r0, 8; add.u64 %q2, %q2, %q0; mov.u64 %q3, s; cvta.shared.u64 %q3, %q3;\n"
    "ld.global.u32 %r2, [%q2]; ld.global.u16 %h0, [%q2+2]; setp.lt.u32 %p1, %r0, 20;\n";
static const char end[] = "st.global.b32 [%q2], %r2;\nret;\n}\n";

static const uint8_t mod_groups[M_COUNT] = {
#define X(id, name, group) [M_##id] = group,
    BH__PTX_MODS(X) BH__PTX_MORE_MODS(X)
#undef X
};

/* One of the bits of a set of `count`; `count`: there is none. */
static unsigned pick(fuzz_input *in, bh__ptx_mods set, unsigned count) {
    unsigned there[128], found = 0;
    for (unsigned i = 0; i < count; i++)
        if (set >> i & 1) there[found++] = i;
    return found ? there[fuzz_byte(in) % found] : count;
}

static unsigned pick_type(fuzz_input *in, uint64_t set) {
    return set ? pick(in, set, T_COUNT) : T_NONE;
}

/* Without all modifiers of its group, if it has one. `first`: the number of the set's lowest. */
static bh__ptx_mods without(bh__ptx_mods set, unsigned first, unsigned mod) {
    for (unsigned i = 0; i < M_MORE && first + i < M_COUNT; i++)
        if (first + i == mod || (mod_groups[first + i] && mod_groups[first + i] == mod_groups[mod]))
            set &= ~((bh__ptx_mods)1 << i);
    return set;
}

typedef struct shape { /* of one instruction */
    const bh__ptx_op_info *op;
    unsigned type0, type1;
    bh__ptx_mods mods;
    bool braces; /* around a value where a vector may be */
} shape;

static bool has(const shape *s, unsigned mod) {
    return s->mods >> mod & 1;
}

static void add_register(fuzz_input *in, text *to, unsigned type, unsigned scale) {
    unsigned bytes = bh__ptx_type_table[type].bytes * scale, number = fuzz_byte(in) % 4;
    if (type == T_PRED)
        add(to, "%%p%u", number);
    else
        add(to, "%%%c%u", bytes > 8 ? 'w' : bytes > 4 ? 'q' : bytes > 2 ? 'r' : 'h', number);
}

static void add_constant(fuzz_input *in, text *to, unsigned type) {
    static const char *const integers[] = {"0",  "1",          "-1",         "31",
                                           "32", "0x7fffffff", "0x80000000", "63"};
    static const char *const floats[] = {"0f00000000",         "0f7f800000", "0fffc00000",
                                         "0f00000001",         "0f4f000000", "0fbf800000",
                                         "0d7fefffffffffffff", "1.5"};
    bool real = bh__ptx_type_table[type].class == 'F';
    add(to, "%s", (real ? floats : integers)[fuzz_byte(in) % 8]);
}

static void add_value(fuzz_input *in, text *to, unsigned type, bool target) {
    if (!target && type != T_PRED && fuzz_byte(in) % 4 == 0)
        add_constant(in, to, type);
    else
        add_register(in, to, type, 1);
}

/* Of a video instruction: a register, perhaps a part of it. */
static void add_part(fuzz_input *in, text *to) {
    static const char *const parts[] = {"",     ".b0",  ".b3",  ".h0",    ".h1",    "",
                                        ".h10", ".h32", ".h01", ".b3210", ".b7654", ".b20"};
    uint8_t choice = fuzz_byte(in);
    if (choice / 12 % 8 == 0) add(to, "-");
    add_register(in, to, T_B32, 1);
    add(to, "%s", parts[choice % 12]);
}

static void add_vector(fuzz_input *in, text *to, const shape *s) {
    unsigned count = has(s, M_V2) ? 2 : has(s, M_V4) ? 4 : has(s, M_V8) ? 8 : 1;
    bool braces = count > 1 || s->braces;
    if (braces) add(to, "{");
    for (unsigned i = 0; i < count; i++) {
        if (i) add(to, ", ");
        add_register(in, to, s->type0, 1);
    }
    if (braces) add(to, "}");
}

static void add_address(fuzz_input *in, text *to) {
    static const char *const bases[] = {"%q0", "%q2", "%q2", "%q1", "%q3", "s",
                                        "l",   "p",   "o",   "%r0", "%q2", "0"};
    static const char *const offsets[] = {"", "", "+4", "+8", "+16", "-8", "+1", "+1008"};
    const char *base = bases[fuzz_byte(in) % 12];
    add(to, "[%s%s]", base, offsets[fuzz_byte(in) % 8]);
}

static void add_operand(fuzz_input *in, text *to, const shape *s, char letter, bool target) {
    switch (letter) {
    case 't':
    case 'r':
        add_value(in, to, s->type0, target);
        break;
    case 'y':
    case 'R':
        add_value(in, to, s->type1, target);
        break;
    case 'w':
        add_register(in, to, s->type0, has(s, M_WIDE) ? 2 : 1);
        break;
    case 'u':
        if (s->op->unit == UNIT_VIDEO)
            add_part(in, to);
        else
            add_value(in, to, T_B32, target);
        break;
    case 'q':
        add_value(in, to, T_B64, target);
        break;
    case 'a':
        add_register(in, to, fuzz_byte(in) % 2 ? T_B32 : T_B64, 1);
        break;
    case 'i':
        add(to, "%u", fuzz_byte(in));
        break;
    case 'p':
        add(to, "%s%%p%u", !target && fuzz_byte(in) % 4 == 0 ? "!" : "", fuzz_byte(in) % 4);
        break;
    case 'v':
    case 'V':
        add_vector(in, to, s);
        break;
    case 'm':
        add_address(in, to);
        break;
    default: /* P, D, E: perhaps with a predicate behind */
        add_register(in, to, letter == 'P' ? T_PRED : letter == 'D' ? s->type0 : T_B32, 1);
        if (fuzz_byte(in) % 2) add(to, "|%%p%u", fuzz_byte(in) % 4);
    }
}

/* Operations whose unit checks its operands by itself. */
static void add_special(fuzz_input *in, text *to, const shape *s) {
    static const char *const others[] = {"%q3, %q2",
                                         "%q2, %q3",
                                         "0",
                                         "1, 32",
                                         "%r0",
                                         "%r2, 0, %p1",
                                         "%p2, 0, %p0",
                                         "%r2, 1, 64, !%p1",
                                         "(%r2), twice, (%r0)",
                                         "twice, (%r1)",
                                         "[s+16], [%q0], 16",
                                         "[s], [%q2], 8, 4",
                                         "%r1, jumps",
                                         "%q2, s",
                                         "%r2, %laneid",
                                         "%r2, %ntid.x"};
    if (s->op == &bh__ptx_op_table[OP_BRA]) {
        add(to, "L%u", fuzz_byte(in) % LABELS);
    } else if (s->op == &bh__ptx_op_table[OP_MOV] && fuzz_byte(in) % 2) {
        add_register(in, to, s->type0, 1);
        add(to, ", ");
        add_value(in, to, s->type0, false);
    } else if (s->op == &bh__ptx_op_table[OP_MOV]) {
        bool join = fuzz_byte(in) % 2;
        unsigned bytes = bh__ptx_type_table[s->type0].bytes;
        const char *halves = bytes == 16 ? "{%q2, %q3}" : bytes == 8 ? "{%r1, %r2}" : "{%h1, %h2}";
        if (!join) add(to, "%s, ", halves);
        add_register(in, to, s->type0, 1);
        if (join) add(to, ", %s", halves);
    } else {
        add(to, "%s", others[fuzz_byte(in) % 16]);
    }
}

static void add_operands(fuzz_input *in, text *to, const shape *s) {
    bool target = false, first = true;
    for (const char *at = s->op->operands; *at; at++) {
        if (*at == ' ' || *at == '?') continue;
        if (*at == '=') {
            target = true;
            continue;
        }
        if (at[1] == '?' && fuzz_byte(in) % 2) break;
        add(to, first ? " " : ", ");
        if (*at == '*')
            add_special(in, to, s);
        else
            add_operand(in, to, s, *at, target);
        first = target = false;
    }
}

static void add_instruction(fuzz_input *in, text *to) {
    shape s = {.op = &bh__ptx_op_table[fuzz_byte(in) % OP_COUNT]};
    uint8_t guard = fuzz_byte(in);
    s.braces = guard % 4 == 1 && (guard & 24) == 8;
    if (guard % 4 == 0) add(to, "@%s%%p%u ", guard & 4 ? "!" : "", guard / 8 % 4);
    add(to, "%s", s.op->mnemonic);
    bh__ptx_mods left[2] = {s.op->mods, bh__ptx_op_more[s.op - bh__ptx_op_table]};
    for (unsigned count = guard / 32 % 5; count && (left[0] || left[1]); count--) {
        bool more = !left[0] || (left[1] && fuzz_byte(in) % 2);
        unsigned mod = pick(in, left[more], M_MORE) + (more ? M_MORE : 0);
        left[0] = without(left[0], 0, mod);
        left[1] = without(left[1], M_MORE, mod);
        if (!more) s.mods |= (bh__ptx_mods)1 << mod;
        add(to, ".%s", bh__ptx_mod_names[mod]);
    }
    s.type0 = pick_type(in, s.op->type0);
    s.type1 = pick_type(in, s.op->type1);
    if (s.type0 != T_NONE) add(to, ".%s", bh__ptx_type_table[s.type0].name);
    if (s.type1 != T_NONE) add(to, ".%s", bh__ptx_type_table[s.type1].name);
    if (s.op->unit == UNIT_VIDEO && guard & 2) add(to, guard & 1 ? ".s32" : ".u32");
    add_operands(in, to, &s);
    add(to, ";\n");
}

/* Declarations that repeat one another, with accesses to what the larger one would have. Those that
 * are refused are left out, like instructions. */
static const char *const declarations[] = {
    "",
    ".extern .param .b8 e[8]; .param .b8 e[65536]; st.param.b64 [e+60000], %q0;\n",
    ".param .b8 e[8]; .extern .param .b8 e[65536]; ld.param.b64 %q2, [e+60000];\n",
    ".extern .param .b8 p[65536]; ld.param.b64 %q2, [p+60000];\n",
    ".extern .local .b8 e[8]; .local .b8 e[65536]; st.local.b64 [e+60000], %q0;\n",
    ".extern .shared .b8 e[]; .shared .align 64 .b8 e[4096]; st.shared.b64 [e+4088], %q0;\n",
    ".extern .global .b8 e[8]; .global .align 64 .b8 e[4096]; st.global.b64 [e+4088], %q0;\n",
    ".global .b8 e[8]; .extern .global .b8 e[4096]; st.global.b64 [e+4088], %q0;\n",
};

/* Most instructions were tried before: what came of it is kept by their hash. */
static uint64_t *find_answer(const char *line, size_t length, uint64_t *out_hash) {
    static uint64_t answers[1 << 16];
    uint64_t hash[2];
    bh__checksum(line, length, hash);
    *out_hash = hash[0] | 1;
    return &answers[hash[1] % (1 << 16)];
}

static bool loads(const char *line, size_t length) {
    static text alone;
    bh_error error;
    bh__ptx_module *module;
    uint64_t hash, *answer = find_answer(line, length, &hash);
    if ((*answer | 1) == hash) return *answer & 1;
    alone.length = 0;
    add(&alone, "%sL0: L1: L2: L3: jumps: .branchtargets L0, L1;\n%s}\n", head, line);
    bool loaded = bh__ptx_load(alone.bytes, alone.length, &error, &module) == BH_OK;
    if (loaded) bh__ptx_free(module);
    *answer = loaded ? hash : hash - 1;
    return loaded;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static text program, line;
    fuzz_input in = {data, size};
    uint8_t first = fuzz_byte(&in);
    bool checked = first % 2;
    const char *declared = declarations[first / 2 % 8];
    unsigned label = 0;
    program.length = 0;
    add(&program, "%s%s%s", head, start, loads(declared, strlen(declared)) ? declared : "");
    for (int i = 0; i < INSTRUCTIONS && in.left; i++) {
        line.length = 0;
        if (i % 3 == 0 && label < LABELS) add(&program, "L%u:\n", label++);
        add_instruction(&in, &line);
        if (loads(line.bytes, line.length)) add(&program, "%s", line.bytes);
    }
    while (label < LABELS) add(&program, "L%u:\n", label++);
    add(&program, "jumps: .branchtargets L1, L2, L3;\n%s", end);
    if (getenv("FUZZ_SHOW")) fwrite(program.bytes, 1, program.length, stderr);
    return ptx_run_text((const uint8_t *)program.bytes, program.length, checked);
}
