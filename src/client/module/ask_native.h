/* SPDX-License-Identifier: Apache-2.0 */
/* Native code of kernels, where the device uses it: which kernels have it, asking for it, giving it
 * to workers. The compile room makes it. All calls with the device's lock held unless one says
 * otherwise. */
#ifndef BH_CLIENT_MODULE_ASK_NATIVE_H
#define BH_CLIENT_MODULE_ASK_NATIVE_H

#include "client/core/device.h"
#include "client/module/product.h"
#include "wire/native.h"

void bh__native_ask(bh__device *device, bh__kernel *kernel, uint32_t shape);

/* A launch with such blocks is checked and about to be submitted, now or often. */
static inline void bh__native_want(bh__device *device, bh__kernel *kernel,
                                   const uint32_t block[3]) {
    if (__builtin_expect(device->executor == BH_EXECUTE_INTERPRETER, 1)) return;
    uint32_t shape = bh__native_shape(block);
    if (__builtin_expect(!(kernel->native_asked & shape), 0)) bh__native_ask(device, kernel, shape);
}

/* It was submitted. */
static inline void bh__native_count(bh__device *device, const bh__kernel *kernel,
                                    const uint32_t block[3]) {
    if (__builtin_expect(device->executor == BH_EXECUTE_INTERPRETER, 1)) return;
    if (!(kernel->native_ready & bh__native_shape(block))) device->counters.launches_interpreted++;
}

/* BH_EXECUTE_JIT: the module is loaded. True: its ticket is resolved when its code is there.
 * Without the lock. */
bool bh__native_load(bh__device *device, bh__module *module);

/* The code that was asked for is there, or *error says why not (`product` NULL). Without the
 * lock. `out_news` is for the log, "": nothing. */
enum { BH__NATIVE_NEWS = 640 };
void bh__native_arrived(bh__device *device, bh__module *module, uint32_t kernel, uint32_t shapes,
                        bh__product *product, uint32_t cache, const bh_error *error,
                        char out_news[BH__NATIVE_NEWS]);

void bh__native_free(bh__module *module);

#endif
