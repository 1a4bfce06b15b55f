/* SPDX-License-Identifier: Apache-2.0 */
/* Binaries: results of compiles and links that a program holds by a handle, independent of
 * devices. */
#include "client/compile/binary.h"
#include "client/compile/in_flight.h"
#include "client/compile/request.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/module/module.h"
#include "client/module/product.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct binary {
    bh__product *product; /* Retained. */
    uint32_t cache;       /* BH_CACHE_MISS ... */
    uint64_t id;
} binary;

static bh__table binaries; /* under bh__compile_lock */

static uint32_t index_of(uint64_t id) {
    return (uint32_t)(id >> BH__GENERATION_BITS) & ((1u << BH__INDEX_BITS) - 1);
}

/* Called with bh__compile_lock held. */
static binary *find(uint64_t id) {
    uint32_t generation = (uint32_t)id & ((1u << BH__GENERATION_BITS) - 1);
    binary *found =
        id >> 60 == BH__KIND_BINARY ? bh__table_get(&binaries, index_of(id), generation) : NULL;
    return found && found->id == id ? found : NULL;
}

bh_status bh__binary_make(bh__product *product, uint32_t cache, bh_binary *out) {
    binary *made = calloc(1, sizeof *made);
    uint32_t index, generation;
    bh__compile_lock();
    bool added = made && bh__table_add(&binaries, made, &index, &generation);
    if (added) {
        made->id =
            (uint64_t)BH__KIND_BINARY << 60 | (uint64_t)index << BH__GENERATION_BITS | generation;
        made->product = product;
        made->cache = cache;
        out->id = made->id;
    }
    bh__compile_unlock();
    if (added) return BH_OK;
    free(made);
    bh__product_release(product);
    return bh__refuse(BH_E_NO_HOST_MEMORY, "release binaries that are no longer needed",
                      "the maximum number of binaries exists, or host memory is exhausted");
}

bh__product *bh__binary_product(bh_binary handle, const char *what, uint32_t *out_cache) {
    bh__compile_lock();
    binary *found = find(handle.id);
    bh__product *product = found ? found->product : NULL;
    if (product) {
        bh__product_retain(product);
        if (out_cache) *out_cache = found->cache;
    }
    bh__compile_unlock();
    if (!product) bh__refuse_handle(handle.id, BH__KIND_BINARY, what);
    return product;
}

bh_status bh_binary_release(bh_binary handle) {
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh__compile_lock();
    binary *found = find(handle.id);
    if (found) bh__table_remove(&binaries, index_of(handle.id));
    bh__compile_unlock();
    if (!found) return bh__refuse_handle(handle.id, BH__KIND_BINARY, "binary");
    bh__product_release(found->product);
    free(found);
    return BH_OK;
}

bh_status bh_binary_get_info(bh_binary handle, bh_binary_info *out) {
    if (bh__sized_check(out, "bh_binary_info") != BH_OK) return BH_E_INVALID;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh__compile_lock();
    binary *found = find(handle.id);
    bh_binary_info info = {.size = out->size};
    if (found) {
        const bh__product *product = found->product;
        info.output = product->output;
        info.bytes = product->bytes;
        info.count = product->count;
        info.log = product->log;
        info.cache = found->cache;
        info.name_count = (uint32_t)product->names.count;
        info.compile_ns = product->compile_ns;
        snprintf(info.compiler, sizeof info.compiler, "%s", product->compiler);
        snprintf(info.arch, sizeof info.arch, "%s", product->arch);
        snprintf(info.why, sizeof info.why, "%s", product->why);
    }
    bh__compile_unlock();
    if (!found) return bh__refuse_handle(handle.id, BH__KIND_BINARY, "binary");
    bh__sized_give(out, &info, sizeof info);
    return BH_OK;
}

/* The bytes of one output; *out_count 0: it does not hold that. */
static const uint8_t *image_of(const bh__product *product, uint32_t output, uint64_t *out_count) {
    bool beside = product->ptx && output == BH_OUTPUT_PTX;
    bool holds = (product->output & output) && (output & (output - 1)) == 0;
    *out_count = !holds ? 0 : beside ? product->ptx_count : product->count;
    return beside ? product->ptx : product->bytes;
}

bh_status bh_binary_get_image(bh_binary handle, uint32_t output, const void **bytes,
                              size_t *count) {
    if (!bytes || !count)
        return bh__refuse(BH_E_INVALID, "pass storage for the bytes and their count",
                          "bytes is %p, count is %p", (void *)bytes, (void *)count);
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh__product *product = bh__binary_product(handle, "binary", NULL);
    if (!product) return bh__last()->status;
    uint64_t found;
    const uint8_t *image = image_of(product, output, &found);
    bh_status status = BH_OK;
    if (found) {
        *bytes = image;
        *count = found;
    } else {
        status = bh__refuse(BH_E_NOT_FOUND, "ask for it in bh_compile_options.output",
                            "the binary holds outputs 0x%x (BH_OUTPUT_...), not 0x%x",
                            product->output, output);
    }
    bh__product_release(product); /* the handle still holds it */
    return status;
}

bh_status bh_binary_lowered(bh_binary handle, const char *expression, const char **out) {
    if (!expression || !out)
        return bh__refuse(BH_E_INVALID, "pass an expression and storage for its name",
                          "expression or out is NULL");
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh__product *product = bh__binary_product(handle, "binary", NULL);
    if (!product) return bh__last()->status;
    const bh__name *other, *name = bh__names_find(&product->names, expression, &other);
    bh_status status = BH_OK;
    if (other) {
        status = bh__names_refuse_two(expression, name->lowered, other->lowered);
    } else if (name) {
        *out = name->lowered;
    } else {
        status = bh__refuse(BH_E_NOT_FOUND, "name it in bh_compile_options.expressions",
                            "\"%.100s\" is not one of the %zu name expressions of this binary",
                            expression, product->names.count);
    }
    bh__product_release(product); /* the handle still holds it */
    return status;
}

/* ---- binaries from bytes ---- */

static bool begins(const uint8_t *bytes, size_t count, const char *with, size_t length) {
    return count >= length && memcmp(bytes, with, length) == 0;
}

/* Returns 0 if the format is not known. */
static uint32_t output_of(const uint8_t *bytes, size_t count) {
    if (begins(bytes, count, "\177ELF", 4) || begins(bytes, count, "\x50\xed\x55\xba", 4))
        return BH_OUTPUT_CUBIN;
    if (begins(bytes, count, "\xed\x43\x4e\x7f", 4)) return BH_OUTPUT_LTOIR;
    return memmem(bytes, count, ".version", 8) ? BH_OUTPUT_PTX : 0;
}

/* The architecture that a cubin or PTX is for; "" if it does not say. */
static void read_arch(const uint8_t *bytes, size_t count, char out[16]) {
    static const char word[] = ".target";
    Elf64_Ehdr head;
    *out = 0;
    if (count >= sizeof head && begins(bytes, count, ELFMAG, SELFMAG)) {
        memcpy(&head, bytes, sizeof head);
        /* From version 8 of its layout it is in the second byte. */
        bool second = head.e_ident[EI_ABIVERSION] >= 8;
        snprintf(out, 16, "sm_%u", (unsigned)(second ? head.e_flags >> 8 : head.e_flags) & 0xff);
    } else {
        const char *at = memmem(bytes, count, word, sizeof word - 1);
        size_t left = at ? count - (size_t)((const uint8_t *)at - bytes) : 0, length = 0;
        size_t skip = sizeof word - 1;
        while (skip < left && (at[skip] == ' ' || at[skip] == '\t')) skip++;
        static const char letters[] = "_0123456789abcdefghijklmnopqrstuvwxyz";
        while (skip < left && length < 15 && memchr(letters, at[skip], sizeof letters - 1))
            out[length++] = at[skip++];
        out[length] = 0;
    }
    if (!bh__is_arch(out)) *out = 0;
}

bh_status bh_binary_from(const void *bytes, size_t count, bh_binary *out) {
    if (!bytes || !count || !out)
        return bh__refuse(BH_E_INVALID, "pass bytes and storage for the binary",
                          "bytes is %p, count is %zu, out is %p", bytes, count, (void *)out);
    if (count > (size_t)1 << 30)
        return bh__refuse(BH_E_INVALID, "pass at most 1 GiB", "count is %zu", count);
    if (bh__refuse_forked()) return BH_E_STOPPED;
    uint32_t output = output_of(bytes, count);
    if (!output)
        return bh__refuse(BH_E_LOAD, "pass PTX, a cubin, a fatbin or LTO-IR",
                          "the format of these %zu bytes is not known", count);
    bh__product *product = bh__product_new();
    char *copy = product ? bh__arena_copy(&product->arena, bytes, count) : NULL, arch[16] = "";
    if (output != BH_OUTPUT_LTOIR) read_arch(bytes, count, arch);
    if (copy) product->arch = bh__arena_copy(&product->arena, arch, strlen(arch));
    if (!copy || !product->arch) {
        bh__product_release(product);
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for %zu bytes",
                          count);
    }
    product->output = output;
    product->bytes = (const uint8_t *)copy;
    product->count = count;
    return bh__binary_make(product, BH_CACHE_OFF, out);
}

bh_status bh_module_load_binary(bh_device device, bh_binary handle, bh_module *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the module", "out is NULL");
    if (bh__refuse_forked()) return BH_E_STOPPED;
    uint32_t cache;
    bh__product *product = bh__binary_product(handle, "binary", &cache);
    if (!product) return bh__last()->status;
    bh_status status = bh__product_load(device, product, cache, out);
    bh__product_release(product);
    return status;
}

bh_status bh__product_load(bh_device device, bh__product *product, uint32_t cache, bh_module *out) {
    if (product->output == BH_OUTPUT_LTOIR)
        return bh__refuse(BH_E_LOAD, "link it with bh_link and load the result",
                          "the binary is LTO-IR, which no device can run");
    bh_ticket ticket;
    bh_module module;
    bh_status status =
        bh__module_submit(device, product->bytes, product->count, product, cache, &module, &ticket);
    if (status == BH_OK) status = bh_wait(ticket, BH_FOREVER);
    if (status == BH_OK) *out = module;
    return status;
}

bh_status bh_module_get_binary(bh_module handle, bh_binary *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the binary", "out is NULL");
    bh__device *device;
    bh__module *module = bh__module_lock(handle, false, &device);
    if (!module) return bh__last()->status;
    bh__product *product = module->product;
    uint32_t cache = module->cache;
    if (product) bh__product_retain(product);
    bh__device_unlock(device);
    if (product) return bh__binary_make(product, cache, out);
    return bh__refuse(BH_E_NOT_FOUND, "use a module that was compiled, or made from a binary",
                      "the module was loaded from an image and has no binary");
}
