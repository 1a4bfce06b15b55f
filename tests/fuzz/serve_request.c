/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to `bulkhead serve`. What is taken has a path, a host and texts that end; the answer
 * does not depend on how the request was cut into pieces. */
#include "cli/serve/serve.h"
#include "fuzz.h"

static void check_text(const char *text, size_t room) {
    size_t length = strnlen(text, room);
    FUZZ_CHECK(length < room);
    for (size_t i = 0; i < length; i++)
        FUZZ_CHECK((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bh__request whole, part;
    char *copy = malloc(size + 1);
    FUZZ_CHECK(copy != NULL);
    if (size) memcpy(copy, data, size);
    int status = bh__request_read(copy, size, &whole);
    FUZZ_CHECK(status == 0 || status == 200 || (status >= 400 && status <= 505));
    if (status == 200) {
        FUZZ_CHECK(whole.path[0] == '/' && whole.host[0] != '\0');
        check_text(whole.path, sizeof whole.path);
        check_text(whole.name, sizeof whole.name);
        check_text(whole.host, sizeof whole.host);
        check_text(whole.token, sizeof whole.token);
    }
    /* The first answer to a growing text is the last. */
    int first = 0;
    for (size_t length = 0; length <= size && size <= BH__REQUEST_MAX && first == 0; length++)
        first = bh__request_read(copy, length, &part);
    FUZZ_CHECK(size > BH__REQUEST_MAX || first == status);
    free(copy);
    return status == 0 ? -1 : 0;
}
