/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the compile cache. The first byte says what the rest is: an entry as it stands; one
 * whose checksums are made to fit, so that what is behind them is read; or choices that make a good
 * entry and a few bytes to change in it, with checksums that fit. An entry that is good can be
 * packed again, and is good then. */
#include "base/siphash.h"
#include "client/compile/cache.h"
#include "client/compile/cache_layout.h"
#include "client/module/module.h"
#include "fuzz.h"
#include "wire/native.h"

static void mend(uint8_t *data, size_t size) {
    bh__entry_head h;
    if (size < sizeof h) return;
    memcpy(&h, data, sizeof h);
    size_t at = sizeof h;
    h.magic = BH__ENTRY_MAGIC;
    h.version = BH__ENTRY_VERSION;
    h.bytes = size;
    for (int i = 0; i < BH__PARTS; i++) {
        if (h.parts[i].bytes > size - at || i == BH__PARTS - 1) h.parts[i].bytes = size - at;
        bh__checksum(data + at, h.parts[i].bytes, h.parts[i].hash);
        if (i == BH__PART_KEY) memcpy(h.key_hash, h.parts[i].hash, sizeof h.key_hash);
        at += h.parts[i].bytes;
    }
    bh__checksum(&h, offsetof(bh__entry_head, hash), h.hash);
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

/* Whether it was taken. */
static bool read_entry(const uint8_t *entry, size_t bytes) {
    bh__product *product;
    bool good = bh__entry_unpack(entry, bytes, NULL, 0, &product) == BH__ENTRY_GOOD;
    FUZZ_CHECK(good == (product != NULL));
    if (!good) return false;
    pack_again(product);
    bh__product_release(product);
    return true;
}

/* ---- a good entry, and changes ---- */

static void add_reads(fuzz_input *in, bh__product *product, bh__read list[4],
                      bh__read_folder folders[2]) {
    product->reads = (bh__reads){list, fuzz_byte(in) % 5, folders, fuzz_byte(in) % 3};
    for (size_t i = 0; i < product->reads.folder_count; i++)
        folders[i] = (bh__read_folder){.path = "/opt"};
    for (size_t i = 0; i < product->reads.count; i++) {
        list[i] = (bh__read){.path = "/opt/a.h", .bytes = fuzz_byte(in)};
        list[i].missing = product->reads.folder_count > 0 && fuzz_byte(in) & 1;
    }
}

static void make_entry(fuzz_input *in, bh__pack *out) {
    static const uint32_t outputs[] = {BH_OUTPUT_PTX, BH_OUTPUT_CUBIN,
                                       BH_OUTPUT_PTX | BH_OUTPUT_CUBIN, BH__OUTPUT_NATIVE};
    static const uint8_t some[] = "some bytes of a result";
    bh__read list[4];
    bh__read_folder folders[2];
    bh__product *product = bh__product_new();
    FUZZ_CHECK(product != NULL);
    product->output = outputs[fuzz_byte(in) % 4];
    product->bytes = some;
    product->count = 1 + fuzz_byte(in) % (sizeof some - 1);
    bool both = product->output == (BH_OUTPUT_PTX | BH_OUTPUT_CUBIN);
    product->ptx = both ? some : NULL;
    product->ptx_count = both ? sizeof some : 0;
    product->log = fuzz_byte(in) & 1 ? "a warning" : "";
    product->key = some;
    product->key_bytes = sizeof some;
    bh__checksum(some, sizeof some, product->hash);
    FUZZ_CHECK(bh__names_reserve(&product->names, 2));
    for (unsigned i = fuzz_byte(in) % 3; i > 0; i--)
        FUZZ_CHECK(bh__names_add(&product->names, "f<1>", "_Z1f"));
    add_reads(in, product, list, folders);
    FUZZ_CHECK(bh__entry_pack(product, out));
    bh__product_release(product);
}

static void read_changed(fuzz_input *in) {
    bh__pack entry = {0};
    make_entry(in, &entry);
    FUZZ_CHECK(read_entry(entry.data, entry.count));
    mend(entry.data, entry.count);
    FUZZ_CHECK(read_entry(entry.data, entry.count)); /* mending is as packing */
    while (in->left > 0) {
        size_t at = (fuzz_byte(in) | (size_t)fuzz_byte(in) << 8) % entry.count;
        uint8_t change = fuzz_byte(in);
        entry.data[at] ^= change;
        if (change != 0) FUZZ_CHECK(!read_entry(entry.data, entry.count));
        mend(entry.data, entry.count);
    }
    (void)read_entry(entry.data, entry.count);
    bh__pack_free(&entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    uint8_t how = fuzz_byte(&in);
    if (how & 2) {
        read_changed(&in);
        return 0;
    }
    uint8_t *entry = malloc(in.left + 1);
    FUZZ_CHECK(entry != NULL);
    memcpy(entry, in.at, in.left);
    if (how & 1) mend(entry, in.left);
    (void)read_entry(entry, in.left);
    free(entry);
    return 0;
}
