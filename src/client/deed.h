/* SPDX-License-Identifier: Apache-2.0 */
/* Deeds: the page behind a shared buffer that says which tokens for it are good. */
#ifndef BH_CLIENT_DEED_H
#define BH_CLIENT_DEED_H

#include "client/internal.h"

#define BH__DEED_MAGIC  0x3144454544484c42ull /* "BLHDEED1" */
#define BH__TOKEN_MAGIC 0x314e454b4f544842ull /* "BHTOKEN1" */

enum { BH__DEED_BYTES = 4096, BH__TOKEN_VERSION = 1 };

/*
 * A memfd of one page. The exporter has it mapped writable, then it is sealed: nobody else ever can.
 * `generation` and `withdrawn` are stored before `key` changes; who checks a token copies the key
 * first and looks at them second, so that a key is never taken for one of another generation.
 */
typedef struct bh__deed {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t withdrawn; /* no token is good any more */
    _Atomic uint64_t generation;
    _Atomic uint64_t settled; /* the generation that `key` belongs to */
    _Atomic uint64_t doubts;
    _Atomic uint64_t key[2];
    uint8_t mark[16]; /* the same bytes stand at the beginning of the memory */
    uint64_t chunk_bytes;
    char kind[16];
    char uuid[48];
} bh__deed;
_Static_assert(sizeof(bh__deed) <= BH__DEED_BYTES, "one page");

/* Makes a deed for memory of this device. */
bh_status bh__deed_create(bh__device *device, bh__solo *solo);
/* Maps somebody's deed read-only. NULL with the thread's error: it is none. */
bh__deed *bh__deed_open(int fd);
void bh__deed_unmap(bh__deed *deed);
/* Fills in all that depends on the deed. BH_E_STALE: it is withdrawn. */
bh_status bh__token_sign(bh__deed *deed, bh_share_token *token);
/* Whether the token is good, by itself and by the deed. BH_E_STALE comes last: all else is right. */
bh_status bh__token_check(bh__deed *deed, const bh_share_token *token);
bh_status bh__deed_renew(bh__solo *solo);

#endif
