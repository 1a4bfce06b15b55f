/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product as the contents of a file: a head, then the parts. Head and parts have a checksum each.
 * Nothing that is read is trusted: lengths are checked, the key is compared byte for byte, and the
 * checksums find any flipped bit.
 */
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"
#include "client/compile/cache.h"
#include "client/compile/cache_layout.h"
#include "client/module/module.h"
#include "client/module/product.h"
#include "wire/native.h"

enum { MAX_READS = 1 << 20, MAX_NAMES = 1 << 20 };

/* ---- writing ---- */

static void pack_about(bh__pack *pack, const bh__product *product) {
    bh__pack_u64(pack, product->output);
    bh__pack_u64(pack, product->compile_ns);
    bh__pack_text(pack, product->name);
    bh__pack_text(pack, product->arch);
    bh__pack_text(pack, product->compiler);
    bh__pack_text(pack, product->why);
}

static void pack_reads(bh__pack *pack, const bh__reads *reads) {
    bh__pack_u64(pack, reads->count);
    bh__pack_u64(pack, reads->folder_count);
    for (size_t i = 0; i < reads->count; i++) {
        const bh__read *read = &reads->list[i];
        bh__pack_text(pack, read->path);
        bh__pack_u64(pack, read->missing);
        if (read->missing) {
            bh__pack_u64(pack, read->folder);
            continue;
        }
        bh__pack_u64(pack, read->bytes);
        bh__pack_raw(pack, read->hash, sizeof read->hash);
        bh__pack_raw(pack, read->digest, sizeof read->digest);
        bh__pack_raw(pack, &read->id, sizeof read->id);
    }
    for (size_t i = 0; i < reads->folder_count; i++) {
        bh__pack_text(pack, reads->folders[i].path);
        bh__pack_raw(pack, &reads->folders[i].id, sizeof reads->folders[i].id);
    }
}

static void pack_names(bh__pack *pack, const bh__names *names) {
    bh__pack_u64(pack, names->count);
    for (size_t i = 0; i < names->count; i++) {
        bh__pack_text(pack, names->list[i].expression);
        bh__pack_text(pack, names->list[i].lowered);
    }
}

static void end_part(bh__pack *pack, size_t *from, bh__entry_part *out) {
    out->bytes = pack->count - *from;
    if (!pack->failed) bh__checksum(pack->data + *from, out->bytes, out->hash);
    *from = pack->count;
}

bool bh__entry_pack(const bh__product *product, bh__pack *out) {
    bh__entry_head h = {.magic = BH__ENTRY_MAGIC, .version = BH__ENTRY_VERSION};
    memcpy(h.key_hash, product->hash, sizeof h.key_hash);
    bh__pack_raw(out, &h, sizeof h);
    size_t from = out->count;
    bh__pack_raw(out, product->key, product->key_bytes);
    end_part(out, &from, &h.parts[BH__PART_KEY]);
    pack_about(out, product);
    end_part(out, &from, &h.parts[BH__PART_ABOUT]);
    pack_reads(out, &product->reads);
    end_part(out, &from, &h.parts[BH__PART_READS]);
    pack_names(out, &product->names);
    end_part(out, &from, &h.parts[BH__PART_NAMES]);
    bh__pack_raw(out, product->log, strlen(product->log));
    end_part(out, &from, &h.parts[BH__PART_LOG]);
    bh__pack_raw(out, product->bytes, product->count);
    end_part(out, &from, &h.parts[BH__PART_OUTPUT]);
    bh__pack_raw(out, product->ptx, product->ptx_count);
    end_part(out, &from, &h.parts[BH__PART_PTX]);
    if (out->failed) return false;
    h.bytes = out->count;
    bh__checksum(&h, offsetof(bh__entry_head, hash), h.hash);
    memcpy(out->data, &h, sizeof h);
    return true;
}

/* ---- reading ---- */

static bool hash_is(const void *data, size_t bytes, const uint64_t expected[2]) {
    uint64_t hash[2];
    bh__checksum(data, bytes, hash);
    return hash[0] == expected[0] && hash[1] == expected[1];
}

static bool unpack_about(bh__unpack in, bh__product *product) {
    bh__arena *arena = &product->arena;
    product->output = (uint32_t)bh__unpack_count(&in, BH__OUTPUT_NATIVE);
    product->compile_ns = bh__unpack_u64(&in);
    product->name = bh__unpack_text(&in, arena);
    product->arch = bh__unpack_text(&in, arena);
    product->compiler = bh__unpack_text(&in, arena);
    product->why = bh__unpack_text(&in, arena);
    bool both = product->output == (BH_OUTPUT_PTX | BH_OUTPUT_CUBIN);
    return bh__unpack_ended(&in) && product->output != BH_OUTPUT_AUTO &&
           (both || (product->output & (product->output - 1)) == 0) &&
           (product->ptx_count > 0) == both;
}

static bool unpack_read(bh__unpack *in, bh__arena *arena, size_t folders, bh__read *out) {
    out->path = bh__unpack_text(in, arena);
    out->missing = bh__unpack_count(in, 1) != 0;
    if (out->missing) {
        out->folder = (uint32_t)bh__unpack_count(in, UINT32_MAX);
        return !in->failed && out->path[0] == '/' && out->folder < folders;
    }
    out->bytes = bh__unpack_count(in, (uint64_t)1 << 40);
    bh__unpack_raw(in, out->hash, sizeof out->hash);
    bh__unpack_raw(in, out->digest, sizeof out->digest);
    bh__unpack_raw(in, &out->id, sizeof out->id);
    return !in->failed && out->path[0] == '/';
}

static bool unpack_reads(bh__unpack in, bh__product *product) {
    enum { MIN_BYTES = 3 * 8 }; /* of a record */
    bh__reads *reads = &product->reads;
    size_t count = bh__unpack_count(&in, MAX_READS), folders = bh__unpack_count(&in, MAX_READS);
    if (in.failed || count > in.left / MIN_BYTES || folders > in.left / MIN_BYTES) return false;
    reads->list = bh__arena_alloc(&product->arena, count + 1, sizeof *reads->list);
    reads->folders = bh__arena_alloc(&product->arena, folders + 1, sizeof *reads->folders);
    if (!reads->list || !reads->folders) return false;
    for (size_t i = 0; i < count; i++) {
        if (!unpack_read(&in, &product->arena, folders, &reads->list[i])) return false;
    }
    for (size_t i = 0; i < folders && !in.failed; i++) {
        reads->folders[i].path = bh__unpack_text(&in, &product->arena);
        bh__unpack_raw(&in, &reads->folders[i].id, sizeof reads->folders[i].id);
    }
    reads->count = count;
    reads->folder_count = folders;
    return bh__unpack_ended(&in);
}

static bool unpack_names(bh__unpack in, bh__product *product) {
    size_t count = bh__unpack_count(&in, MAX_NAMES);
    if (in.failed || count > in.left / 16 || !bh__names_reserve(&product->names, count))
        return false;
    for (size_t i = 0; i < count && !in.failed; i++) {
        const char *expression = bh__unpack_text(&in, &product->arena);
        const char *lowered = bh__unpack_text(&in, &product->arena);
        if (!bh__names_add(&product->names, expression, lowered)) return false;
    }
    return bh__unpack_ended(&in);
}

static const uint8_t *copy(bh__arena *arena, bh__unpack in) {
    return (const uint8_t *)bh__arena_copy(arena, (const char *)in.data, in.left);
}

static bool unpack_all(const bh__unpack parts[BH__PARTS], bh__product *product) {
    product->key = copy(&product->arena, parts[BH__PART_KEY]);
    product->key_bytes = parts[BH__PART_KEY].left;
    product->log = (const char *)copy(&product->arena, parts[BH__PART_LOG]);
    product->bytes = copy(&product->arena, parts[BH__PART_OUTPUT]);
    product->count = parts[BH__PART_OUTPUT].left;
    product->ptx_count = parts[BH__PART_PTX].left;
    if (product->ptx_count) product->ptx = copy(&product->arena, parts[BH__PART_PTX]);
    return product->key && product->log && product->bytes && product->count > 0 &&
           (product->ptx || !product->ptx_count) &&
           !memchr(parts[BH__PART_LOG].data, 0, parts[BH__PART_LOG].left) &&
           unpack_about(parts[BH__PART_ABOUT], product) &&
           unpack_reads(parts[BH__PART_READS], product) &&
           unpack_names(parts[BH__PART_NAMES], product);
}

bh__entry_state bh__entry_unpack(const uint8_t *data, size_t bytes, const void *key,
                                 size_t key_bytes, bh__product **out) {
    bh__entry_head h;
    *out = NULL;
    if (bytes < sizeof h) return BH__ENTRY_BAD;
    memcpy(&h, data, sizeof h);
    if (h.magic != BH__ENTRY_MAGIC || h.version != BH__ENTRY_VERSION || h.bytes != bytes ||
        !hash_is(&h, offsetof(bh__entry_head, hash), h.hash))
        return BH__ENTRY_BAD;
    bh__unpack parts[BH__PARTS];
    size_t at = sizeof h;
    for (int i = 0; i < BH__PARTS; i++) {
        if (h.parts[i].bytes > bytes - at) return BH__ENTRY_BAD;
        parts[i] = (bh__unpack){data + at, h.parts[i].bytes, false};
        at += h.parts[i].bytes;
    }
    if (at != bytes || !hash_is(parts[BH__PART_KEY].data, parts[BH__PART_KEY].left, h.key_hash))
        return BH__ENTRY_BAD;
    for (int i = 0; i < BH__PARTS; i++) {
        if (!hash_is(parts[i].data, parts[i].left, h.parts[i].hash)) return BH__ENTRY_BAD;
    }
    if (key && (parts[BH__PART_KEY].left != key_bytes ||
                memcmp(parts[BH__PART_KEY].data, key, key_bytes) != 0))
        return BH__ENTRY_OTHER_KEY;
    bh__product *product = bh__product_new();
    if (!product) return BH__ENTRY_BAD;
    memcpy(product->hash, h.key_hash, sizeof product->hash);
    if (!unpack_all(parts, product)) {
        bh__product_release(product);
        return BH__ENTRY_BAD;
    }
    *out = product;
    return BH__ENTRY_GOOD;
}
