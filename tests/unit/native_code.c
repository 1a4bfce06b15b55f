/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of native code: what is damaged is not used. */
#include <string.h>

#include "../harness/test.h"
#include "wire/native.h"

typedef struct block {
    bh__native_head head;
    bh__native_entry entry[2];
    _Alignas(BH__NATIVE_ALIGN) uint8_t code[128];
} block;

static block valid(void) {
    block b;
    memset(&b, 0, sizeof b);
    b.head = (bh__native_head){BH__NATIVE_MAGIC, BH__NATIVE_VERSION, 2, sizeof b, 0, 0};
    b.entry[0] = (bh__native_entry){
        .shape = BH__NATIVE_FLAT, .offset = offsetof(block, code), .bytes = 64, .start = 16};
    b.entry[1] = (bh__native_entry){.kernel = 1, .shape = BH__NATIVE_OTHER, .note = "too large"};
    return b;
}

static bool is_taken(const block *b, size_t bytes) {
    uint32_t count = 0;
    return bh__native_check(b, bytes, &count) == b->entry && count == 2;
}

TEST(a_valid_block_is_taken) {
    block b = valid();
    CHECK(is_taken(&b, sizeof b));
}

TEST(a_block_of_any_other_length_is_refused) {
    block b = valid();
    for (size_t bytes = 0; bytes < sizeof b; bytes++) CHECK(!is_taken(&b, bytes));
}

#define REFUSED(change)                                                                            \
    do {                                                                                           \
        block b = valid();                                                                         \
        b.change;                                                                                  \
        CHECK(!is_taken(&b, sizeof b));                                                            \
    } while (0)

TEST(what_is_damaged_is_refused) {
    REFUSED(head.magic++);
    REFUSED(head.version++);
    REFUSED(head.count = 1000);
    REFUSED(head.count = UINT32_MAX);
    REFUSED(head.bytes--);
    REFUSED(entry[0].shape = BH__NATIVE_ANY);
    REFUSED(entry[0].shape = BH__NATIVE_ANY + 1);
    REFUSED(entry[1].shape = 0);
    REFUSED(entry[0].offset = 0);
    REFUSED(entry[0].offset++);
    REFUSED(entry[0].offset = UINT64_MAX - 63);
    REFUSED(entry[0].bytes = 129);
    REFUSED(entry[0].bytes = UINT64_MAX);
    REFUSED(entry[0].start = 64);
    block b = valid();
    memset(b.entry[1].note, 'x', sizeof b.entry[1].note);
    CHECK(!is_taken(&b, sizeof b));
}
