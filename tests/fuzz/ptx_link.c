/* SPDX-License-Identifier: Apache-2.0 */
/* PTX texts, separated by zero bytes: linked, the result linked again and loaded. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ptx/link/link.h"
#include "ptx/ptx.h"

enum { MAX_TEXTS = 8 };

static size_t split(const uint8_t *data, size_t size, bh__ptx_text *texts) {
    size_t count = 0;
    const char *at = (const char *)data, *end = at + size;
    while (count < MAX_TEXTS) {
        const char *zero = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
        const char *stop = zero && count + 1 < MAX_TEXTS ? zero : end;
        texts[count++] = (bh__ptx_text){.name = "text", .text = at, .length = (size_t)(stop - at)};
        if (stop == end) break;
        at = stop + 1;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bh__ptx_text texts[MAX_TEXTS];
    bh__arena arena = {0};
    bh__ptx_linked out, again;
    bh_error error = {0};
    bh_status status = bh__ptx_link(&arena, texts, split(data, size, texts), &error, &out);
    FUZZ_CHECK(out.log != NULL && (status == BH_OK) == (out.text != NULL));
    FUZZ_CHECK((status == BH_OK) == (out.log[0] == 0) || status == BH_E_NO_HOST_MEMORY);
    FUZZ_CHECK(status == BH_OK || (error.message[0] && error.fix[0]));
    if (status == BH_OK) {
        FUZZ_CHECK(out.length > 0 && out.text[out.length] == 0);
        bh__ptx_text whole = {.name = "whole", .text = out.text, .length = out.length};
        FUZZ_CHECK(bh__ptx_link(&arena, &whole, 1, &error, &again) == BH_OK);
        bh__ptx_module *module = NULL;
        if (bh__ptx_load(out.text, out.length, &error, &module) == BH_OK) bh__ptx_free(module);
    }
    bh__arena_free(&arena);
    return 0;
}
