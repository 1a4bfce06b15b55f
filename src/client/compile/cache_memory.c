/* SPDX-License-Identifier: Apache-2.0 */
/* Products in memory: a hash table, and a list in order of use whose oldest are evicted. All calls
 * are made with bh__compile_lock held. */
#include <string.h>

#include "client/compile/cache.h"
#include "client/module/product.h"

enum { BUCKETS = 1024, MAX_PRODUCTS = 4096 };
#define MAX_BYTES ((uint64_t)64 << 20)

static bh__product *buckets[BUCKETS];
static bh__product *newest, *oldest;
static uint64_t total_bytes;
static uint32_t count;

static bh__product **bucket_of(const uint64_t hash[2]) {
    return &buckets[hash[0] % BUCKETS];
}

static void unlist(bh__product *product) {
    *(product->newer ? &product->newer->older : &newest) = product->older;
    *(product->older ? &product->older->newer : &oldest) = product->newer;
    product->newer = product->older = NULL;
}

static void list_first(bh__product *product) {
    product->older = newest;
    *(newest ? &newest->newer : &oldest) = product;
    newest = product;
}

static bh__product *find(const uint64_t hash[2], const void *key, size_t key_bytes) {
    for (bh__product *product = *bucket_of(hash); product; product = product->next_in_bucket) {
        if (product->hash[0] == hash[0] && product->hash[1] == hash[1] &&
            product->key_bytes == key_bytes && memcmp(product->key, key, key_bytes) == 0)
            return product;
    }
    return NULL;
}

static void drop(bh__product *product) {
    bh__product **link = bucket_of(product->hash);
    while (*link != product) link = &(*link)->next_in_bucket;
    *link = product->next_in_bucket;
    unlist(product);
    count--;
    total_bytes -= bh__product_bytes(product);
    bh__product_release(product);
}

bh__product *bh__memory_cache_get(const uint64_t hash[2], const void *key, size_t key_bytes) {
    bh__product *product = find(hash, key, key_bytes);
    if (!product) return NULL;
    if (product != newest) {
        unlist(product);
        list_first(product);
    }
    bh__product_retain(product);
    return product;
}

void bh__memory_cache_put(bh__product *product) {
    bh__product *before = find(product->hash, product->key, product->key_bytes);
    if (before == product) return;
    if (before) drop(before);
    uint64_t bytes = bh__product_bytes(product);
    if (bytes > MAX_BYTES / 2) return;
    while (oldest && (count >= MAX_PRODUCTS || total_bytes + bytes > MAX_BYTES)) drop(oldest);
    bh__product_retain(product);
    product->next_in_bucket = *bucket_of(product->hash);
    *bucket_of(product->hash) = product;
    list_first(product);
    count++;
    total_bytes += bytes;
}

void bh__memory_cache_drop(const bh__product *product) {
    bh__product *same = find(product->hash, product->key, product->key_bytes);
    if (same == product) drop(same);
}

void bh__memory_cache_clear(void) {
    while (oldest) drop(oldest);
}
