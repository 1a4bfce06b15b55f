/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash-2-4, the one hash of bytes that is not SHA-256.
 *
 * With a secret key it is a signature that nobody without the key can compute or change: share
 * tokens need one, and no hash without a key can give it. With the fixed key of bh__checksum it is
 * a checksum, fast enough for each lookup of a compile: it tells keys of tables and damaged files
 * apart. It is then not resistant to deliberate collisions. Where a wrong match would matter, the
 * bytes are compared too, or base/sha256.h is used.
 */
#ifndef BH_BASE_SIPHASH_H
#define BH_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t bh__siphash(const uint8_t key[16], const void *data, size_t bytes);
/* The form with a result of 128 bits. */
void bh__siphash128(const uint8_t key[16], const void *data, size_t bytes, uint64_t out[2]);

static inline void bh__checksum(const void *data, size_t bytes, uint64_t out[2]) {
    static const uint8_t fixed[16] = {0};
    bh__siphash128(fixed, data, bytes, out);
}

#endif
