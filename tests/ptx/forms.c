/* SPDX-License-Identifier: Apache-2.0 */
/* Every form of PTX's instructions: a line of answers/forms.txt each, which ptxas accepts. */
#include <stdio.h>
#include <string.h>

#include "support/kernel.h"
#include "test.h"

/* What the lines use: the same as in tools/list_forms.py. */
static const char before[] =
    ".version 9.0\n.target sm_90a\n.address_size 64\n"
    ".global .align 32 .b8 g[256]; .const .align 16 .b8 c[256]; .shared .align 32 .b8 s[256];\n"
    ".func (.param .b32 r) f(.param .b32 a) { ret; }\n"
    ".entry k(.param .align 16 .b8 p[64]) {\n"
    ".reg .pred %p<8>; .reg .b8 %b<8>; .reg .b16 %h<8>; .reg .b32 %r<8>; .reg .b64 %rd<8>;\n"
    ".reg .b128 %q<8>; .reg .f32 %f<8>; .reg .f64 %d<8>; .local .align 16 .b8 l[64];\n";

TEST(every_form_that_ptxas_accepts_loads) {
    char path[4096];
    test_path(path, sizeof path, "%s/tests/ptx/answers/forms.txt", test_source_dir());
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL);
    char line[256], text[sizeof before + sizeof line + 16];
    unsigned count = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') {
            continue;
        }
        bh_error error;
        int length = snprintf(text, sizeof text, "%s%sL: ret; }\n", before, line);
        if (load_error(text, (size_t)length, &error) != BH_OK) {
            FAIL("%s: %s", line, error.message);
        }
        count++;
    }
    fclose(file);
    CHECK_GE(count, 1000);
}
