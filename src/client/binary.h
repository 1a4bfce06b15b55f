/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of products. */
#ifndef BH_CLIENT_BINARY_H
#define BH_CLIENT_BINARY_H

#include "client/compile.h"

/* Takes over the reference, also on failure. */
bh_status bh__binary_make(bh__product *product, uint32_t cache, bh_binary *out);
/* Retained; NULL with the thread's error. `what`: for the message. `out_cache` may be NULL. */
bh__product *bh__binary_product(bh_binary handle, const char *what, uint32_t *out_cache);
/* Loads it and waits. */
bh_status bh__product_load(bh_device device, bh__product *product, uint32_t cache, bh_module *out);

#endif
