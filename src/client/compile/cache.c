/* SPDX-License-Identifier: Apache-2.0 */
/* The cache, as compiles use it: looks up a product in memory or on disk, checks that its inputs
 * are unchanged, and stores new products. The public calls are in cache_calls.c. */
#include "client/compile/cache.h"
#include "base/clock.h"
#include "client/compile/compile.h"
#include "client/compile/in_flight.h"
#include "client/compile/inputs.h"

/* An entry on disk is marked as used at most this often. */
#define TOUCH_AGAIN_NS (300 * BH__NS_PER_S)

bh__product *bh__cache_look_in_memory(const bh__compile_request *request) {
    bh__product *product =
        bh__memory_cache_get(request->hash, request->key.data, request->key.count);
    if (!product) return NULL;
    bh__compile_unlock();
    bh__freshness freshness = bh__reads_check(&product->reads, false);
    uint64_t now = bh__now_ns(), touched = atomic_load(&product->touched_ns);
    if (freshness != BH__STALE && now - touched > TOUCH_AGAIN_NS &&
        atomic_compare_exchange_strong(&product->touched_ns, &touched, now))
        bh__disk_touch(request->cache_dir, product);
    bh__compile_lock();
    /* A product with renewed identities is read from disk next time, which stores them. */
    if (freshness != BH__FRESH) bh__memory_cache_drop(product);
    if (freshness != BH__STALE) return product;
    bh__product_release(product);
    return NULL;
}

bh__product *bh__cache_look_on_disk(const bh__compile_request *request) {
    bh__product *product =
        bh__disk_get(request->cache_dir, request->hash, request->key.data, request->key.count);
    atomic_fetch_add(product ? &bh__cache_counted.disk_hits : &bh__cache_counted.misses, 1);
    return product;
}

void bh__cache_keep_on_disk(const bh__compile_request *request, bh__product *product) {
    atomic_store(&product->touched_ns, bh__now_ns());
    bh__disk_put(request->cache_dir, request->cache_limit, product);
}
