/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes images by their first bytes. */
#include "compiler/link/image.h"

#include <elf.h>
#include <string.h>

enum { MACHINE_CUDA = 190 };

size_t bh__link_ptx_head(bh__bytes image) {
    const char *start = (const char *)image.data, *at = start, *end = at + image.count;
    while (at < end) {
        if (strchr(" \t\r\n", *at) != NULL && *at != 0) {
            at++;
        } else if (*at == '#' || (end - at > 1 && at[0] == '/' && at[1] == '/')) {
            while (at < end && *at != '\n') at++;
        } else if (end - at > 1 && at[0] == '/' && at[1] == '*') {
            for (at += 2; at < end && !(at[0] == '*' && end - at > 1 && at[1] == '/');) at++;
            at = end - at > 2 ? at + 2 : end;
        } else {
            break;
        }
    }
    return (size_t)(at - start);
}

bh__link_kind bh__link_kind_of(bh__bytes image) {
    static const uint8_t fatbin[4] = {0x50, 0xed, 0x55, 0xba}, lto[4] = {0xed, 0x43, 0x4e, 0x7f};
    if (image.count >= sizeof(Elf64_Ehdr) && memcmp(image.data, ELFMAG, SELFMAG) == 0) {
        Elf64_Ehdr head;
        memcpy(&head, image.data, sizeof head);
        if (head.e_machine == MACHINE_CUDA) return BH__LINK_CUBIN;
        return head.e_type == ET_REL ? BH__LINK_OBJECT : BH__LINK_UNKNOWN;
    }
    if (image.count >= 4 && memcmp(image.data, fatbin, 4) == 0) return BH__LINK_FATBIN;
    if (image.count >= 4 && memcmp(image.data, lto, 4) == 0) return BH__LINK_LTOIR;
    if (image.count >= 8 && memcmp(image.data, "!<arch>\n", 8) == 0) return BH__LINK_LIBRARY;
    size_t head = bh__link_ptx_head(image);
    return image.count - head > 8 && memcmp(image.data + head, ".version", 8) == 0
               ? BH__LINK_PTX
               : BH__LINK_UNKNOWN;
}

const char *bh__link_kind_name(bh__link_kind kind) {
    switch (kind) {
    case BH__LINK_CUBIN:
        return "a cubin";
    case BH__LINK_PTX:
        return "PTX";
    case BH__LINK_LTOIR:
        return "LTO-IR";
    case BH__LINK_FATBIN:
        return "a fatbin";
    case BH__LINK_OBJECT:
        return "a host object";
    case BH__LINK_LIBRARY:
        return "a host library";
    case BH__LINK_UNKNOWN:
        break;
    }
    return "no image";
}
