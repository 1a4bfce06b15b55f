/* SPDX-License-Identifier: Apache-2.0 */
/* Grants: a page that belongs to a shared buffer and says which tokens for it are valid. */
#ifndef BH_CLIENT_MEMORY_GRANT_H
#define BH_CLIENT_MEMORY_GRANT_H

#include "client/core/device.h"

#define BH__GRANT_MAGIC 0x3144454544484c42ull /* "BLHDEED1" */
#define BH__TOKEN_MAGIC 0x314e454b4f544842ull /* "BHTOKEN1" */

enum { BH__GRANT_BYTES = 4096, BH__TOKEN_VERSION = 1 };

/*
 * A memfd of one page. The exporter maps it writable and then seals it: no other process can map it
 * writable. `generation` and `withdrawn` are stored before `key` changes. A reader copies the key
 * before it reads them, so it never pairs a key with another generation.
 */
typedef struct bh__grant {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t withdrawn; /* no token is valid any more */
    _Atomic uint64_t generation;
    _Atomic uint64_t settled; /* the generation that `key` belongs to */
    _Atomic uint64_t doubts;  /* how often bytes of the memory were put in doubt */
    _Atomic uint64_t key[2];
    uint8_t mark[16]; /* also at the beginning of the memory */
    uint64_t chunk_bytes;
    char kind[16];
    char uuid[48];
} bh__grant;
_Static_assert(sizeof(bh__grant) <= BH__GRANT_BYTES, "one page");

/* Creates a grant for memory of this device. */
bh_status bh__grant_create(bh__device *device, bh__dedicated *dedicated);
/* Maps the grant of another process read-only. NULL with the thread's error: not a grant. */
bh__grant *bh__grant_open(int fd);
void bh__grant_unmap(bh__grant *grant);
/* Fills in the fields that depend on the grant, and the check. BH_E_STALE: the grant is
 * withdrawn. */
bh_status bh__token_sign(bh__grant *grant, bh_share_token *token);
/* Checks the token against the grant. BH_E_STALE is returned only if all else is valid. */
bh_status bh__token_check(bh__grant *grant, const bh_share_token *token);
/* Starts a new generation: older tokens become stale. */
bh_status bh__grant_renew(bh__dedicated *dedicated);

#endif
