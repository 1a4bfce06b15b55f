/* SPDX-License-Identifier: Apache-2.0 */
/* What an H200 answered, recorded by tools/ask_device.py: equal, or as near as PTX promises. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/fp.h"
#include "support/kernel.h"
#include "test.h"

enum { ROWS = 65536, THREADS = 1024, NAMED = 64, SHOWN = 4 };

typedef struct inputs {
    char name[32];
    uint32_t count;
    uint64_t (*rows)[3];
} inputs;

/* Approximations: PTX bounds the difference from the exact result, relative or absolute. */
typedef struct bound {
    const char *start; /* of the instruction */
    bh__ptx_type type;
    double relative, absolute;
} bound;

#define ULP 0x1p-23
static const bound bounds[] = {
    {"div.approx", T_F32, 2 * ULP, 0},          {"div.full", T_F32, 2 * ULP, 0},
    {"rcp.approx.ftz.f64", T_F64, 0x1p-20, 0},  {"rcp.approx", T_F32, ULP, 0},
    {"sqrt.approx", T_F32, 2 * ULP, 0},         {"rsqrt.approx.ftz.f64", T_F64, 0x1p-20, 0},
    {"rsqrt.approx.f64", T_F64, 0x1p-20, 0},    {"rsqrt.approx", T_F32, 2 * ULP, 0},
    {"sin.approx", T_F32, 0, 0x1.6ap-21}, /* 2^-20.5 up to two pi, see near() */
    {"cos.approx", T_F32, 0, 0x1.6ap-21},       {"lg2.approx", T_F32, 0x1p-22, 0x1p-22},
    {"ex2.approx.f16", T_F16, 0x1p-9, 0x1p-24}, {"ex2.approx.ftz.bf16", T_BF16, 0x1p-7, 0},
    {"ex2.approx", T_F32, 0x1p-22, 0},          {"tanh.approx.f16", T_F16, 0, 0x1p-10},
    {"tanh.approx.bf16", T_BF16, 0, 0x1p-8},    {"tanh.approx", T_F32, 0x1p-11, 0},
};

static const bound *bound_of(const char *instruction) {
    for (size_t n = 0; n < sizeof bounds / sizeof *bounds; n++) {
        if (strncmp(instruction, bounds[n].start, strlen(bounds[n].start)) == 0) {
            return &bounds[n];
        }
    }
    return NULL;
}

static double value_of(uint64_t bits, bh__ptx_type type) {
    switch (type) {
    case T_F16:
        return (double)bh__f16_to_float((uint16_t)bits);
    case T_BF16:
        return (double)bh__bf16_to_float((uint16_t)bits);
    case T_F32:
        return (double)bh__float_of_bits((uint32_t)bits);
    default:
        return bh__double_of_bits(bits);
    }
}

/* Sines and cosines are worse above two pi, and above a hundred pi nothing is promised. */
static double absolute_bound(const bound *b, uint64_t input) {
    double x = fabs(value_of(input, b->type));
    bool wave = strncmp(b->start, "sin", 3) == 0 || strncmp(b->start, "cos", 3) == 0;
    return !wave || x <= 6.2832 ? b->absolute : x <= 314.16 ? 0x1.4p-15 : 2;
}

/* Half an ulp more than the bound, because one of the two results is rounded. */
static bool near(uint64_t got, uint64_t want, const bound *b, uint64_t input) {
    double g = value_of(got, b->type), w = value_of(want, b->type);
    double absolute = absolute_bound(b, input);
    if (!isfinite(g) || !isfinite(w) || (absolute == 0 && (g == 0 || w == 0))) {
        return false;
    }
    double digits = b->type == T_F16    ? 0x1p-11
                    : b->type == T_BF16 ? 0x1p-8
                    : b->type == T_F32  ? 0x1p-24
                                        : 0x1p-53;
    return fabs(g - w) <= (b->relative + digits) * fabs(w) + absolute;
}

static bool accepted(uint64_t got, uint64_t want, const bound *b, unsigned bits, uint64_t input) {
    if (got == want || b == NULL) {
        return got == want;
    }
    if (bits != 32 || b->type == T_F32) {
        return near(got, want, b, input);
    }
    bool high = got >> 16 == want >> 16 || near(got >> 16, want >> 16, b, input >> 16);
    bool low = (got & 0xffff) == (want & 0xffff) || near(got & 0xffff, want & 0xffff, b, input);
    return high && low;
}

static const char *move_to_rd0(unsigned bits) {
    return bits == 64   ? ""
           : bits == 32 ? "cvt.u64.u32 %rd0, %r0;"
           : bits == 16 ? "cvt.u64.u16 %rd0, %h0;"
                        : "selp.u64 %rd0, 1, 0, %p0;";
}

/* The same kernel as in the tool: a row of three numbers for each thread, and a result after. */
static bool evaluate(const char *instruction, unsigned bits, const inputs *in, uint64_t *results) {
    static uint64_t data[THREADS][4];
    char text[2048];
    snprintf(text, sizeof text,
             PTX_HEAD ".entry k(.param .u64 p) { .reg .b64 %%rd<9>, %%at, %%by; .reg .b32 %%r<9>;\n"
                      ".reg .b16 %%h<9>; .reg .pred %%p<4>; .reg .b32 %%i; .reg .b64 %%out;\n"
                      "ld.param.u64 %%at, [p]; mov.u32 %%i, %%tid.x; mul.wide.u32 %%by, %%i, 32;\n"
                      "add.u64 %%at, %%at, %%by; add.u64 %%out, %%at, 24;\n"
                      "ld.global.u64 %%rd1, [%%at]; ld.global.u64 %%rd2, [%%at+8];\n"
                      "ld.global.u64 %%rd3, [%%at+16]; cvt.u32.u64 %%r1, %%rd1;\n"
                      "cvt.u32.u64 %%r2, %%rd2; cvt.u32.u64 %%r3, %%rd3; cvt.u16.u64 %%h1, %%rd1;\n"
                      "cvt.u16.u64 %%h2, %%rd2; cvt.u16.u64 %%h3, %%rd3;\n"
                      "%s\n%s\nst.global.u64 [%%out], %%rd0; }\n",
             instruction, move_to_rd0(bits));
    kernel k;
    if (kernel_open(&k, text, 1, data, sizeof data) != BH_OK) {
        FAIL("%s: %s", instruction, k.error.message);
        return false;
    }
    for (uint32_t from = 0; from < in->count; from += THREADS) {
        uint32_t count = in->count - from < THREADS ? in->count - from : THREADS;
        for (uint32_t n = 0; n < count; n++) {
            memcpy(data[n], in->rows[from + n], sizeof in->rows[0]);
        }
        k.grid.block[0] = count;
        REQUIRE_EQ(kernel_run(&k), BH__PTX_DONE);
        for (uint32_t n = 0; n < count; n++) {
            results[from + n] = data[n][3];
        }
    }
    kernel_close(&k);
    return true;
}

typedef struct recording {
    FILE *file;
    inputs named[NAMED];
    size_t count;
    uint64_t got[ROWS];
    unsigned asked;
} recording;

static void read_inputs(recording *r) {
    REQUIRE(r->count < NAMED);
    inputs *in = &r->named[r->count++];
    REQUIRE_EQ(fscanf(r->file, "%31s %u", in->name, &in->count), 2);
    REQUIRE(in->count > 0 && in->count <= ROWS);
    in->rows = malloc(in->count * sizeof *in->rows);
    REQUIRE(in->rows != NULL);
    for (uint32_t n = 0; n < in->count; n++) {
        unsigned long long a, b, c;
        REQUIRE_EQ(fscanf(r->file, "%llx %llx %llx", &a, &b, &c), 3);
        in->rows[n][0] = a;
        in->rows[n][1] = b;
        in->rows[n][2] = c;
    }
}

static const inputs *find_inputs(const recording *r, const char *name) {
    for (size_t n = 0; n < r->count; n++) {
        if (strcmp(r->named[n].name, name) == 0) {
            return &r->named[n];
        }
    }
    return NULL;
}

static void compare(recording *r) {
    char name[32], instruction[256];
    unsigned bits, wrong = 0;
    REQUIRE_EQ(fscanf(r->file, "%u %31s %255[^\n]", &bits, name, instruction), 3);
    const inputs *in = find_inputs(r, name);
    REQUIRE(in != NULL);
    bool ran = evaluate(instruction, bits, in, r->got);
    const bound *b = bound_of(instruction);
    for (uint32_t n = 0; n < in->count; n++) {
        unsigned long long want;
        REQUIRE_EQ(fscanf(r->file, "%llx", &want), 1);
        if (ran && !accepted(r->got[n], want, b, bits, in->rows[n][0]) && wrong++ < SHOWN) {
            FAIL("%s\n    of %llx %llx %llx gives %llx, on the H200 %llx", instruction,
                 (unsigned long long)in->rows[n][0], (unsigned long long)in->rows[n][1],
                 (unsigned long long)in->rows[n][2], (unsigned long long)r->got[n], want);
        }
    }
    if (wrong > SHOWN) {
        FAIL("%s: %u of %u differ", instruction, wrong, in->count);
    }
    r->asked++;
}

static unsigned compare_file(const char *path) {
    static recording r;
    char word[16];
    r = (recording){.file = fopen(path, "r")};
    REQUIRE(r.file != NULL);
    while (fscanf(r.file, "%15s", word) == 1) {
        if (strcmp(word, "inputs") == 0) {
            read_inputs(&r);
        } else if (strcmp(word, "ask") == 0) {
            compare(&r);
        } else {
            REQUIRE_STR_EQ(word, "#");
            REQUIRE_EQ(fscanf(r.file, "%*[^\n]"), 0);
        }
    }
    fclose(r.file);
    for (size_t n = 0; n < r.count; n++) {
        free(r.named[n].rows);
    }
    return r.asked;
}

TEST_TIMEOUT(results_are_those_of_an_h200, 120) {
    char path[4096];
    test_path(path, sizeof path, "%s/tests/ptx/answers/h200.txt", test_source_dir());
    CHECK_GT(compare_file(path), 1200);
}
