/* SPDX-License-Identifier: Apache-2.0 */
/* Removing control characters, of ASCII and of Unicode in UTF-8 (U+0080 to U+009F). */
#include "base/plain_text.h"

#include <string.h>

void bh__plain_text(char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        unsigned char next = i + 1 < length ? (unsigned char)text[i + 1] : 0;
        if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f) text[i] = '?';
        if (c == 0xc2 && next >= 0x80 && next < 0xa0) text[i] = text[i + 1] = '?';
    }
}

void bh__plain_array(char *text, size_t size) {
    text[size - 1] = '\0';
    bh__plain_text(text, strlen(text));
}
