/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that are linked and run, and what is expected of that. */
#ifndef TEST_LINKED_H
#define TEST_LINKED_H

#include <string.h>

#include "ptx/link/link.h"
#include "support/kernel.h"
#include "test.h"

#define MAX_TEXTS 4

typedef struct linked {
    bh__arena arena;
    bh__ptx_linked out;
    bh_error error;
    bh_status status;
} linked;

static inline linked link_named(const char *const *names, const char *const *texts, size_t count) {
    linked l = {0};
    bh__ptx_text list[MAX_TEXTS];
    for (size_t i = 0; i < count; i++)
        list[i] = (bh__ptx_text){.name = names[i], .text = texts[i], .length = strlen(texts[i])};
    l.status = bh__ptx_link(&l.arena, list, count, &l.error, &l.out);
    return l;
}

static const char *const file_names[MAX_TEXTS] = {"a.ptx", "b.ptx", "c.ptx", "d.ptx"};

#define LINK(...)                                                                                  \
    link_named(file_names, (const char *const[]){__VA_ARGS__},                                     \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* Links, runs the first kernel with 8 threads, and compares the first words that it wrote. */
static inline void expect_words(linked l, const uint32_t *words, size_t count) {
    uint32_t out[16] = {0};
    kernel k;
    if (l.status != BH_OK) FAIL("%s", l.error.message);
    if (l.status == BH_OK) {
        CHECK_STR_EQ(l.out.log, "");
        CHECK_EQ(strlen(l.out.text), l.out.length);
        if (run_text(&k, l.out.text, 8, out, sizeof out) != BH__PTX_DONE)
            FAIL("%s\n%s", k.fault.text, l.out.text);
        for (size_t i = 0; i < count; i++)
            if (out[i] != words[i]) FAIL("word %zu is %u, not %u", i, out[i], words[i]);
    }
    bh__arena_free(&l.arena);
}

#define EXPECT(l, ...)                                                                             \
    expect_words(l, (const uint32_t[]){__VA_ARGS__},                                               \
                 sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static inline void expect_problem(linked l, const char *const *parts, size_t count) {
    CHECK_EQ(l.status, BH_E_COMPILE);
    for (size_t i = 0; i < count; i++) CHECK_STR_CONTAINS(l.error.message, parts[i]);
    CHECK(l.error.fix[0] != 0);
    CHECK_STR_CONTAINS(l.out.log, l.error.message);
    CHECK(l.out.text == NULL);
    bh__arena_free(&l.arena);
}

#define EXPECT_PROBLEM(l, ...)                                                                     \
    expect_problem(l, (const char *const[]){__VA_ARGS__},                                          \
                   sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

#define KERNEL(before, body)                                                                       \
    PTX_HEAD before ".visible .entry k(.param .u64 p)\n{\n"                                        \
                    ".reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .pred %p<4>;\n"                     \
                    "ld.param.u64 %rd1, [p];\n" body "\nret;\n}\n"

#define TWICE_DECLARED ".extern .func (.param .b32 result) twice (.param .b32 value);\n"
#define TWICE                                                                                      \
    PTX_HEAD ".visible .func (.param .b32 r) twice (.param .b32 v)\n"                              \
             "{ .reg .b32 %r<4>; ld.param.b32 %r1, [v]; add.u32 %r1, %r1, %r1;\n"                  \
             "st.param.b32 [r], %r1; ret; }\n"
#define CALL(function, in, out)                                                                    \
    "{ .param .b32 x; .param .b32 y; st.param.b32 [x], " in "; call.uni (y), " function ", (x);\n" \
    "ld.param.b32 " out ", [y]; }\n"

#endif
