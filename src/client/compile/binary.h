/* SPDX-License-Identifier: Apache-2.0 */
/* Binaries: handles of products. */
#ifndef BH_CLIENT_COMPILE_BINARY_H
#define BH_CLIENT_COMPILE_BINARY_H

#include "client/core/device.h"
#include "client/module/product.h"

/* Takes ownership of the reference, also on failure. */
bh_status bh__binary_make(bh__product *product, uint32_t cache, bh_binary *out);
/* Returns the product, retained, or NULL with the thread's error set. `what` names the argument in
 * the message. `out_cache` may be NULL. */
bh__product *bh__binary_product(bh_binary handle, const char *what, uint32_t *out_cache);
/* Loads the product as a module and waits. */
bh_status bh__product_load(bh_device device, bh__product *product, uint32_t cache, bh_module *out);

#endif
