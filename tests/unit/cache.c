/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the cache: digests, name expressions, packing, entries with lengths that lie, files that
 * hash alike. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/siphash.h"
#include "client/compile/cache.h"
#include "client/compile/cache_layout.h"
#include "client/compile/in_flight.h"
#include "client/compile/inputs.h"
#include "client/module/module.h"
#include "test.h"
#include "wire/native.h"

static void check_digest(const char *text, size_t bytes, const char *expected) {
    uint8_t digest[32];
    char hex[65];
    bh__sha256(text, bytes, digest);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    CHECK_STR_EQ(hex, expected);
}

TEST(sha256_as_the_standard_has_it) {
    static char many[1000000];
    memset(many, 'a', sizeof many);
    check_digest("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_digest("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_digest(many, sizeof many,
                 "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(expressions_are_compared_without_white_space) {
    CHECK(bh__expressions_equal("f<float, 256>", "f<float,256>"));
    CHECK(bh__expressions_equal(" f < float ,\t256 > ", "f<float,256>"));
    CHECK(bh__expressions_equal("f<unsigned  int>", "f<unsigned\nint>"));
    CHECK(bh__expressions_equal("& a::b", "&a :: b"));
    CHECK(!bh__expressions_equal("f<unsigned int>", "f<unsignedint>"));
    CHECK(!bh__expressions_equal("f<1>", "f<1> g"));
    CHECK(!bh__expressions_equal("f<1>", "f<1"));
    CHECK(!bh__expressions_equal("", "f"));
    CHECK(bh__expressions_equal("", "  "));
    CHECK(bh__name_is_expression("f<1>"));
    CHECK(bh__name_is_expression("a::b"));
    CHECK(!bh__name_is_expression("_Z1fv"));
    CHECK(!bh__name_is_expression(""));
}

TEST(what_is_packed_is_unpacked_and_nothing_beyond) {
    bh__pack pack = {0};
    bh__arena arena = {0};
    bh__pack_u64(&pack, 7);
    bh__pack_text(&pack, "text");
    bh__pack_bytes(&pack, "a\0b", 3);
    for (size_t cut = 0; cut <= pack.count; cut++) {
        bh__unpack in = {pack.data, cut, false};
        uint64_t number = bh__unpack_u64(&in);
        const char *text = bh__unpack_text(&in, &arena);
        bh__bytes bytes = bh__unpack_bytes(&in);
        CHECK_EQ(bh__unpack_ended(&in), cut == pack.count);
        if (cut < pack.count) continue;
        CHECK_EQ(number, 7);
        CHECK_STR_EQ(text, "text");
        CHECK_EQ(bytes.count, 3);
    }
    bh__unpack in = {pack.data, pack.count, false};
    bh__unpack_u64(&in);
    bh__unpack_bytes(&in);
    CHECK_STR_EQ(bh__unpack_text(&in, &arena), ""); /* a text has no NUL inside */
    CHECK(in.failed);
    uint64_t lie = UINT64_MAX;
    in = (bh__unpack){(uint8_t *)&lie, sizeof lie, false};
    CHECK_EQ(bh__unpack_bytes(&in).count, 0);
    CHECK(in.failed);
    bh__pack_free(&pack);
    bh__arena_free(&arena);
}

static bh__product *make_product(const char *key) {
    bh__product *product = bh__product_new();
    product->output = BH_OUTPUT_PTX;
    product->bytes = (const uint8_t *)"result";
    product->count = 6;
    product->key = (const uint8_t *)key;
    product->key_bytes = strlen(key);
    bh__checksum(key, strlen(key), product->hash);
    return product;
}

/* The folder is asked by the hash alone: what it holds decides. */
TEST(two_keys_with_one_hash_are_distinguished) {
    char folder[600];
    test_path(folder, sizeof folder, "%s/kernels", test_tmp_dir());
    bh__product *product = make_product("the key");
    bh__disk_put(folder, 1 << 20, product);
    bh__product *same = bh__disk_get(folder, product->hash, "the key", 7);
    REQUIRE(same != NULL);
    CHECK_MEM_EQ(same->bytes, "result", 6);
    CHECK(bh__disk_get(folder, product->hash, "the kez", 7) == NULL);
    CHECK(bh__disk_get(folder, product->hash, "the key and more", 16) == NULL);
    CHECK(bh__disk_get(folder, product->hash, "the key", 6) == NULL);
    bh__compile_lock();
    bh__memory_cache_put(same);
    bh__product *kept = bh__memory_cache_get(product->hash, "the key", 7);
    CHECK(kept == same);
    CHECK(bh__memory_cache_get(product->hash, "the kez", 7) == NULL);
    bh__compile_unlock();
    bh__product_release(kept);
    bh__product_release(same);
    bh__product_release(product);
}

TEST(ptx_beside_a_cubin_is_kept_too) {
    char folder[600];
    test_path(folder, sizeof folder, "%s/kernels", test_tmp_dir());
    bh__product *product = make_product("both");
    product->output = BH_OUTPUT_PTX | BH_OUTPUT_CUBIN;
    product->ptx = (const uint8_t *)".version 8.0";
    product->ptx_count = 12;
    bh__disk_put(folder, 1 << 20, product);
    bh__product *same = bh__disk_get(folder, product->hash, "both", 4);
    REQUIRE(same != NULL);
    CHECK_EQ(same->output, product->output);
    CHECK_MEM_EQ(same->bytes, "result", 6);
    CHECK_EQ(same->ptx_count, 12u);
    CHECK_STR_EQ((const char *)same->ptx, ".version 8.0");
    bh__product_release(same);
    product->ptx_count = 0; /* says that it holds PTX, and holds none */
    bh__disk_put(folder, 1 << 20, product);
    CHECK(bh__disk_get(folder, product->hash, "both", 4) == NULL);
    bh__product_release(product);
}

/* A header that has the hash of the one that was read, and is another. */
TEST(two_headers_with_one_hash_are_distinguished) {
    char path[600];
    test_path(path, sizeof path, "%s/header.h", test_tmp_dir());
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    fputs("#define VALUE 1\n", file);
    fclose(file);
    bh__arena arena = {0};
    bh__read read = {.path = path, .bytes = 16};
    bh__reads reads = {&read, 1, NULL, 0};
    bh__checksum("#define VALUE 1\n", 16, read.hash);
    REQUIRE(bh__reads_complete(&reads, &arena, bh__clock_ns()));
    CHECK_NE(bh__reads_check(&reads, false), BH__STALE);
    bh__read other = read;
    bh__reads others = {&other, 1, NULL, 0};
    memset(&other.id, 0, sizeof other.id);
    bh__sha256("#define VALUE 2\n", 16, other.digest); /* its hash is said to be the same */
    CHECK_EQ(bh__reads_check(&others, false), BH__STALE);
    other = read;
    memset(&other.id, 0, sizeof other.id);
    CHECK_NE(bh__reads_check(&others, false), BH__STALE);
    other.bytes = 17;
    CHECK_EQ(bh__reads_check(&others, false), BH__STALE);
    REQUIRE(unlink(path) == 0);
    CHECK_EQ(bh__reads_check(&reads, false), BH__STALE);
    bh__arena_free(&arena);
}

/* Looked for in three places: a folder, one that is not there, one below that. */
TEST(files_that_appear_where_they_were_missing_are_seen) {
    static const char *const names[] = {"a.h", "none/a.h", "none/deep/er/a.h"};
    char path[3][600], folder[600];
    bh__read list[3] = {{0}};
    bh__reads reads = {list, 3, NULL, 0};
    bh__arena arena = {0};
    for (int i = 0; i < 3; i++) {
        list[i].path = test_path(path[i], sizeof path[i], "%s/%s", test_tmp_dir(), names[i]);
        list[i].missing = true;
    }
    usleep(60000); /* the folder has been as it is for a while */
    REQUIRE(bh__reads_complete(&reads, &arena, bh__clock_ns()));
    CHECK_EQ(reads.folder_count, 1);
    CHECK(bh__file_id_known(&reads.folders[0].id));
    CHECK_EQ(bh__reads_check(&reads, false), BH__FRESH);
    FILE *file = fopen(path[0], "w");
    REQUIRE(file != NULL);
    fclose(file);
    CHECK_EQ(bh__reads_check(&reads, false), BH__STALE);
    REQUIRE(unlink(path[0]) == 0);
    CHECK_EQ(bh__reads_check(&reads, false), BH__FRESH); /* the folder changed, and nothing else */
    REQUIRE(mkdir(test_path(folder, sizeof folder, "%s/none", test_tmp_dir()), 0700) == 0);
    CHECK_EQ(bh__reads_check(&reads, false), BH__FRESH);
    file = fopen(path[1], "w");
    REQUIRE(file != NULL);
    fclose(file);
    CHECK_EQ(bh__reads_check(&reads, false), BH__STALE);
    CHECK(!bh__reads_complete(&reads, &arena, bh__clock_ns()));
    bh__arena_free(&arena);
}

/* Makes the checksum of a part fit what it holds now, and that of the head. */
static void seal(const bh__pack *entry, bh__entry_head *head, int part) {
    size_t at = sizeof *head;
    for (int i = 0; i < part; i++) at += head->parts[i].bytes;
    if (part < BH__PARTS)
        bh__checksum(entry->data + at, head->parts[part].bytes, head->parts[part].hash);
    bh__checksum(head, offsetof(bh__entry_head, hash), head->hash);
    memcpy(entry->data, head, sizeof *head);
}

static bh__entry_state state_of(const bh__pack *entry, const char *key) {
    bh__product *out;
    bh__entry_state state = bh__entry_unpack(entry->data, entry->count, key, strlen(key), &out);
    if (state == BH__ENTRY_GOOD) bh__product_release(out);
    return state;
}

static bh__pack packed(uint32_t output) {
    bh__product *product = make_product("key");
    bh__read read = {.path = "/a/path", .bytes = 1};
    bh__pack entry = {0};
    product->output = output;
    product->reads = (bh__reads){&read, 1, NULL, 0};
    REQUIRE(bh__entry_pack(product, &entry));
    bh__product_release(product);
    return entry;
}

/* Entries whose checksums are right and whose lengths are not: made by somebody, not by
 * accident. */
TEST(a_forged_entry_with_good_checksums_is_refused) {
    bh__pack entry = packed(BH_OUTPUT_PTX);
    bh__entry_head whole, head;
    memcpy(&whole, entry.data, sizeof whole);
    seal(&entry, &whole, BH__PARTS);
    CHECK_EQ(state_of(&entry, "key"), BH__ENTRY_GOOD);
    CHECK_EQ(state_of(&entry, "kez"), BH__ENTRY_OTHER_KEY);
    for (int part = 0; part < BH__PARTS; part++) {
        const uint64_t real = whole.parts[part].bytes, lies[] = {UINT64_MAX, real + 1, real - 1};
        for (int how = 0; how < 3; how++) {
            head = whole;
            head.parts[part].bytes = lies[how];
            seal(&entry, &head, BH__PARTS);
            CHECK_EQ(state_of(&entry, "key"), BH__ENTRY_BAD);
        }
    }
    bh__pack_free(&entry);
}

TEST(counts_and_paths_within_a_forged_entry_are_checked) {
    for (unsigned how = 0; how < 4; how++) {
        bh__pack entry = packed(BH_OUTPUT_PTX);
        bh__entry_head head;
        memcpy(&head, entry.data, sizeof head);
        size_t at = sizeof head + head.parts[BH__PART_KEY].bytes + head.parts[BH__PART_ABOUT].bytes;
        const uint64_t counts[] = {UINT64_MAX, 2, 1, 1};
        memcpy(entry.data + at, &counts[how], 8);
        if (how == 2) entry.data[at + 24] = 'x'; /* no absolute path */
        seal(&entry, &head, BH__PART_READS);
        CHECK_EQ(state_of(&entry, "key"), how == 3 ? BH__ENTRY_GOOD : BH__ENTRY_BAD);
        bh__pack_free(&entry);
    }
}

/* Native code would be run: no bit of such an entry may differ from what was stored. */
TEST(no_changed_byte_of_an_entry_with_native_code_is_believed) {
    bh__pack entry = packed(BH__OUTPUT_NATIVE);
    CHECK_EQ(state_of(&entry, "key"), BH__ENTRY_GOOD);
    for (size_t at = 0; at < entry.count; at++) {
        for (int change = 1; change < 256; change++) {
            entry.data[at] ^= (uint8_t)change;
            if (state_of(&entry, "key") != BH__ENTRY_BAD)
                FAIL("byte %zu of %zu, changed by 0x%02x", at, entry.count, (unsigned)change);
            entry.data[at] ^= (uint8_t)change;
        }
    }
    for (size_t bytes = 0; bytes < entry.count; bytes++) {
        bh__pack part = {entry.data, bytes, bytes, false};
        CHECK_EQ(state_of(&part, "key"), BH__ENTRY_BAD);
    }
    CHECK_EQ(state_of(&entry, "key"), BH__ENTRY_GOOD);
    bh__pack_free(&entry);
}
