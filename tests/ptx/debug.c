/* SPDX-License-Identifier: Apache-2.0 */
/* Debug information made to be slow to read: what is looked at has a limit. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/debug/debug.h"
#include "support/kernel.h"
#include "test.h"

enum { VARIABLES = 5000, ROOM = 1 << 20 };

typedef struct text {
    char *bytes;
    size_t length;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *to, const char *format, ...) {
    va_list list;
    va_start(list, format);
    to->length += (size_t)vsnprintf(to->bytes + to->length, ROOM - to->length, format, list);
    va_end(list);
    REQUIRE(to->length < ROOM);
}

/* A kernel whose variables x are in %r1. Their entries are described behind `before` others. */
static text make(unsigned before) {
    text t = {malloc(ROOM), 0};
    REQUIRE(t.bytes != NULL);
    add(&t, PTX_HEAD ".entry k() { .reg .b32 %%r<2>;\nLbegin:\nmov.b32 %%r1, 1;\nLend:\nret; }\n");
    add(&t, ".section .debug_abbrev {\n");
    for (unsigned n = 0; n < before; n++) add(&t, ".b8 1,52,0,0,0\n");
    add(&t, ".b8 4,17,1,0,0\n.b8 3,46,1,17,1,18,1,0,0\n.b8 2,52,0,3,8,2,10,0,0\n.b8 0\n}\n");
    /* Behind the length: 7 bytes of head, the unit, the function, variables of 9 bytes. */
    add(&t, ".section .debug_info {\n.b32 %u\n.b8 2,0\n.b32 0\n.b8 8\n.b8 4\n",
        7 + 1 + 17 + VARIABLES * 9 + 2);
    add(&t, ".b8 3\n.b64 Lbegin\n.b64 Lend\n");
    for (unsigned n = 0; n < VARIABLES; n++) add(&t, ".b8 2,120,0,5,144,177,228,149\n.b8 1\n");
    add(&t, ".b8 0,0\n}\n");
    return t;
}

static uint32_t count_of(unsigned before) {
    text t = make(before);
    bh_error error;
    bh__ptx_module *m;
    bh__ptx_variables found;
    REQUIRE_EQ(bh__ptx_load(t.bytes, t.length, &error, &m), BH_OK);
    bh__ptx_variables_read(m, &found);
    uint32_t count = found.count;
    if (count > 0) CHECK_STR_EQ(found.list[0].reg, "%r1");
    bh__ptx_variables_free(&found);
    bh__ptx_free(m);
    free(t.bytes);
    return count;
}

TEST(variables_of_the_source_are_read) {
    CHECK_EQ(count_of(0), VARIABLES);
    CHECK_EQ(count_of(100), VARIABLES);
}

TEST(descriptions_that_are_looked_for_too_long_end_the_list) {
    uint32_t count = count_of(30000);
    CHECK_GT(count, 0);
    CHECK_LT(count, VARIABLES);
}
