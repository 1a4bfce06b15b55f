/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256, to distinguish files even against deliberate collisions. */
#ifndef BH_BASE_SHA256_H
#define BH_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

void bh__sha256(const void *data, size_t bytes, uint8_t out[32]);

#endif
