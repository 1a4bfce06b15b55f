/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the compile cache. With the first byte's lowest bit the checksums are made to fit, so
 * that what is behind them is read. An entry that is good can be packed again, and is good then.
 * */
#include "base/siphash.h"
#include "client/compile/cache.h"
#include "fuzz.h"

enum { PARTS = 6 };

/* As src/client/compile/cache_entry.c has it. */
typedef struct head {
    uint64_t magic, version, bytes, key_hash[2];
    struct {
        uint64_t bytes, hash[2];
    } parts[PARTS];
    uint64_t hash[2];
} head;

static void mend(uint8_t *data, size_t size) {
    head h;
    if (size < sizeof h) return;
    memcpy(&h, data, sizeof h);
    size_t at = sizeof h;
    h.bytes = size;
    for (int i = 0; i < PARTS; i++) {
        if (h.parts[i].bytes > size - at || i == PARTS - 1) h.parts[i].bytes = size - at;
        bh__checksum(data + at, h.parts[i].bytes, h.parts[i].hash);
        if (i == 0) memcpy(h.key_hash, h.parts[0].hash, sizeof h.key_hash);
        at += h.parts[i].bytes;
    }
    bh__checksum(&h, offsetof(head, hash), h.hash);
    memcpy(data, &h, sizeof h);
}

static void pack_again(const bh__product *product) {
    bh__pack pack = {0};
    bh__product *again;
    FUZZ_CHECK(bh__entry_pack(product, &pack));
    FUZZ_CHECK(bh__entry_unpack(pack.data, pack.count, product->key, product->key_bytes, &again) ==
               BH__ENTRY_GOOD);
    FUZZ_CHECK(again->count == product->count && strcmp(again->log, product->log) == 0);
    bh__product_release(again);
    bh__pack_free(&pack);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    bool mended = fuzz_byte(&in) & 1;
    uint8_t *entry = malloc(in.left + 1);
    bh__product *product;
    FUZZ_CHECK(entry != NULL);
    memcpy(entry, in.at, in.left);
    if (mended) mend(entry, in.left);
    if (bh__entry_unpack(entry, in.left, NULL, 0, &product) == BH__ENTRY_GOOD) {
        pack_again(product);
        bh__product_release(product);
    } else {
        FUZZ_CHECK(product == NULL);
    }
    free(entry);
    return 0;
}
