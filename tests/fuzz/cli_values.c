/* SPDX-License-Identifier: Apache-2.0 */
/* Elements as text: the first byte is the type. The text that stands for an element's bits reads
 * back to the same bits, decimal and hexadecimal, whatever the bits are. */
#include "cli/cli.h"
#include "fuzz.h"

static void read_back(bh_type type, uint64_t bits, const char *text) {
    uint64_t again = 0;
    bh_error error;
    FUZZ_CHECK(bh__value_parse(type, text, strlen(text), &again, &error) == BH_OK);
    FUZZ_CHECK(again == bits || bh__value_is_special(type, bits));
}

static void show(bh_type type, uint64_t bits) {
    char text[BH__VALUE_TEXT];
    uint8_t element[8];
    bh__value_store(element, type, bits);
    bits = bh__value_load(element, type);
    bh__value_format(type, bits, text);
    read_back(type, bits, text);
    bh__value_format_hex(type, bits, text);
    FUZZ_CHECK(text[0] != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    bh_type type = (bh_type)(fuzz_byte(&in) % 16);
    uint64_t bits, count;
    size_t length;
    bh_error error;
    if (bh_type_size(type) == 0) return -1;
    fuzz_input raw = in;
    fuzz_take(&raw, &bits, sizeof bits);
    show(type, bits);
    char *text = fuzz_text(&in, '\n', &length);
    if (bh__value_parse(type, text, length, &bits, &error) == BH_OK)
        show(type, bits);
    else
        FUZZ_CHECK(error.message[0] && error.fix[0]);
    bh__count_parse(text, length, &count);
    free(text);
    return 0;
}
