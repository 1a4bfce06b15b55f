/* SPDX-License-Identifier: Apache-2.0 */
/* Reference counts of products. */
#include <stdlib.h>

#include "client/module/module.h"
#include "client/module/product.h"

bh__product *bh__product_new(void) {
    bh__product *product = calloc(1, sizeof *product);
    if (!product) return NULL;
    atomic_store(&product->references, 1);
    product->log = product->name = product->arch = product->compiler = product->why = "";
    return product;
}

void bh__product_retain(bh__product *product) {
    atomic_fetch_add(&product->references, 1);
}

void bh__product_release(bh__product *product) {
    if (!product || atomic_fetch_sub(&product->references, 1) != 1) return;
    bh__names_free(&product->names);
    bh__arena_free(&product->arena);
    free(product);
}

uint64_t bh__product_bytes(const bh__product *product) {
    return product->count + product->ptx_count + product->key_bytes +
           product->reads.count * sizeof(bh__read) + 4096;
}
