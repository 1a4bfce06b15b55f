/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an H200 answered to matrix instructions, recorded by tools/ask_matrix.py: equal bit for bit.
 * The operands are made again, in the order and from the random numbers of tools/matrix_forms.py.
 */
#include <stdio.h>
#include <string.h>

#include "support/kernel.h"
#include "support/matrix.h"
#include "test.h"

enum { LANES = 32, REGISTERS = 40, SHOWN = 2 };

typedef struct format {
    const char *name;
    unsigned bits, mantissa, exponent; /* no exponent: an integer */
} format;

static const format formats[] = {
    {"f16", 16, 10, 5},  {"bf16", 16, 7, 8}, {"tf32", 32, 10, 8}, {"f32", 32, 23, 8},
    {"f64", 64, 52, 11}, {"e4m3", 8, 3, 4},  {"e5m2", 8, 2, 5},   {"s8", 8, 0, 0},
    {"u8", 8, 0, 0},     {"s4", 4, 0, 0},    {"u4", 4, 0, 0},     {"b1", 1, 0, 0},
    {"s32", 32, 0, 0},
};

typedef struct operand {
    const format *of;
    unsigned count; /* registers of a lane */
} operand;

typedef struct question {
    unsigned number;
    operand parts[3];   /* A, B and C */
    char pairs[8];      /* sparse: what the metadata is like */
    unsigned selectors; /* 0: not sparse */
    char text[128];
} question;

static uint64_t memory[LANES][REGISTERS];

static uint64_t splitmix(uint64_t *state) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (*state ^ *state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static unsigned digits(unsigned n) {
    return n == 0 ? 0 : 32 - (unsigned)__builtin_clz(n);
}

/* Small whole numbers, near one, any finite, any bits, near the smallest, large and small. */
enum { SMALL_WHOLE, NEAR_ONE, ANY_FINITE, ANY_BITS, TINY, MIXED, STYLES, ZERO = STYLES };

static uint64_t element(const format *f, unsigned style, uint64_t bits) {
    if (f->exponent == 0 || style == ANY_BITS) {
        return bits & UINT64_MAX >> (64 - f->bits);
    }
    int bias = (1 << (f->exponent - 1)) - 1, top = (1 << f->exponent) - 1;
    int field = (int)(bits >> 32 & 0xffff), large = bias / 2 < 12 ? bias / 2 : 12;
    uint64_t mask = (UINT64_C(1) << f->mantissa) - 1, fraction = bits & mask;
    unsigned whole = (unsigned)field % 5;
    switch (style) {
    case SMALL_WHOLE:
        field = whole == 0 ? 0 : bias + (int)digits(whole) - 1;
        fraction = whole == 0 ? 0 : ((uint64_t)whole << f->mantissa >> (digits(whole) - 1)) & mask;
        break;
    case NEAR_ONE:
        field = bias - 3 + field % 7;
        break;
    case ANY_FINITE:
        field %= top;
        break;
    case TINY:
        field %= 2;
        break;
    case ZERO:
        field = 0;
        fraction = 0;
        break;
    default:
        field = bias + (field % 4 == 0 ? large : -(field % 6));
    }
    uint64_t kept = (uint64_t)(field < 0 ? 0 : field) << f->mantissa | fraction;
    unsigned magnitude = f->mantissa + f->exponent;
    return (bits >> 63 << magnitude | kept) << (f->bits - 1 - magnitude);
}

/* Eight groups of four bits, each valid and in order. */
static uint32_t metadata(const question *q, uint64_t bits) {
    static const uint8_t pairs[] = {0x4, 0xe, 0x8, 0xc, 0x9, 0xd};
    static const uint8_t order[] = {0, 2, 3, 4, 5, 1};
    uint32_t value = 0;
    for (unsigned group = 0; group < 8; group++) {
        unsigned n = (unsigned)((bits >> 8 * group) % 251);
        unsigned pair = strcmp(q->pairs, "1:2") == 0 ? pairs[n % 2] : pairs[order[n % 6]];
        value |= (uint32_t)pair << 4 * group;
    }
    return value;
}

/* In the last cases a sum has only the accumulator. */
static unsigned style_of(unsigned number, unsigned part) {
    static const uint8_t alone[3] = {ZERO, NEAR_ONE, TINY};
    return number < 16 ? number % STYLES : alone[part];
}

static void make_operands(const question *q, unsigned number) {
    uint64_t state = (uint64_t)q->number << 32 | number;
    for (unsigned l = 0; l < LANES; l++) {
        uint64_t *at = memory[l];
        for (unsigned p = 0; p < 3; p++) {
            const format *f = q->parts[p].of;
            unsigned width = f->bits > 32 ? f->bits : 32;
            for (unsigned n = 0; n < q->parts[p].count; n++, at++) {
                *at = 0;
                for (unsigned bit = 0; bit < width; bit += f->bits) {
                    *at |= element(f, style_of(number, p), splitmix(&state)) << bit;
                }
            }
        }
        if (q->selectors > 0) {
            *at = metadata(q, splitmix(&state));
        }
    }
}

static void write_program(const question *q, unsigned selector, program *p) {
    static const char *const names[] = {"a", "b", "c"};
    unsigned first = 0, results = q->parts[2].count;
    const char *type = register_type(q->parts[2].of->name);
    p->length = 0;
    add(p,
        PTX_HEAD ".entry k(.param .u64 p) { .reg .b64 %%in; .reg .b32 %%t, %%m;\n"
                 "ld.param.u64 %%in, [p]; mov.u32 %%t, %%tid.x;\n"
                 "mad.wide.u32 %%in, %%t, %u, %%in; .reg .%s %%d<%u>;\n",
        (unsigned)sizeof memory[0], type, results);
    for (unsigned n = 0; n < 3; n++) {
        add_loads(p, names[n], register_type(q->parts[n].of->name), q->parts[n].count, first);
        first += q->parts[n].count;
    }
    add(p, "ld.global.b32 %%m, [%%in+%u];\n%s ", 8 * first, q->text);
    add_registers(p, "d", results);
    for (unsigned n = 0; n < 3; n++) {
        add(p, ", ");
        add_registers(p, names[n], q->parts[n].count);
    }
    if (q->selectors > 0) {
        add(p, ", %%m, %u", selector);
    }
    add(p, ";\n");
    add_stores(p, "d", type, results, 0);
    add(p, "ret; }\n");
}

static bool run_case(const question *q, unsigned number) {
    static program p;
    kernel k;
    write_program(q, q->selectors > 0 ? number % q->selectors : 0, &p);
    make_operands(q, number);
    if (run_text(&k, p.text, LANES, memory, sizeof memory) != BH__PTX_DONE) {
        FAIL("%s: %s", q->text, k.fault.text);
        return false;
    }
    return true;
}

/* How many registers differ from those of the H200, which are read in any case. */
static unsigned compare_case(FILE *file, const question *q, unsigned number) {
    const operand *d = &q->parts[2];
    uint64_t mask = UINT64_MAX >> (d->of->bits == 64 ? 0 : 32);
    bool ran = run_case(q, number);
    unsigned wrong = 0;
    for (unsigned at = 0; at < LANES * d->count; at++) {
        unsigned long long want, got = memory[at / d->count][at % d->count] & mask;
        REQUIRE_EQ(fscanf(file, "%llx", &want), 1);
        if (ran && got != want && wrong++ < SHOWN) {
            FAIL("%s\n    case %u, lane %u, register %u: 0x%llx, on the H200 0x%llx", q->text,
                 number, at / d->count, at % d->count, got, want);
        }
    }
    if (wrong > SHOWN) {
        FAIL("%s: case %u: %u of %u registers differ", q->text, number, wrong, LANES * d->count);
    }
    return wrong;
}

static const format *find_format(const char *name) {
    for (size_t n = 0; n < sizeof formats / sizeof *formats; n++) {
        if (strcmp(formats[n].name, name) == 0) {
            return &formats[n];
        }
    }
    FAIL("no format %s", name);
    REQUIRE(false);
    return NULL;
}

static void read_question(FILE *file, question *q) {
    char names[3][8];
    REQUIRE_EQ(fscanf(file, "%u %7s %u %7s %u %7s %u %7s %u %127s", &q->number, names[0],
                      &q->parts[0].count, names[1], &q->parts[1].count, names[2],
                      &q->parts[2].count, q->pairs, &q->selectors, q->text),
               10);
    unsigned registers = q->selectors > 0;
    for (unsigned n = 0; n < 3; n++) {
        q->parts[n].of = find_format(names[n]);
        registers += q->parts[n].count;
    }
    REQUIRE(registers <= REGISTERS);
}

TEST_TIMEOUT(products_are_those_of_an_h200, 120) {
    char path[4096], word[16];
    question q = {0};
    unsigned number, cases = 0;
    test_path(path, sizeof path, "%s/tests/ptx/answers/matrix.txt", test_source_dir());
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL);
    while (fscanf(file, "%15s", word) == 1) {
        if (strcmp(word, "ask") == 0) {
            read_question(file, &q);
        } else if (strcmp(word, "case") == 0) {
            REQUIRE_EQ(fscanf(file, "%u", &number), 1);
            compare_case(file, &q, number);
            cases++;
        } else {
            REQUIRE_STR_EQ(word, "#");
            REQUIRE_EQ(fscanf(file, "%*[^\n]"), 0);
        }
    }
    fclose(file);
    CHECK_GT(cases, 300);
}
