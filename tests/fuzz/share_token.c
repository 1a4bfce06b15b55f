/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of shared buffers and the grants behind them: the input is a grant, then a token. With the
 * first byte's lowest bit the token is made to fit the grant as far as its maker could. A token
 * that is good describes memory that lies in its chunk. */
#include "base/siphash.h"
#include "client/memory/grant.h"
#include "fuzz.h"

/* What whoever has the grant could sign, whatever else it says. */
static void sign(const bh__grant *grant, bh_share_token *token) {
    uint8_t key[16];
    memcpy(key, (const void *)grant->key, sizeof key);
    token->size = sizeof *token;
    token->version = BH__TOKEN_VERSION;
    token->magic = BH__TOKEN_MAGIC;
    token->chunk_bytes = grant->chunk_bytes;
    token->generation = grant->generation;
    memcpy(token->kind, grant->kind, sizeof token->kind);
    memcpy(token->uuid, grant->uuid, sizeof token->uuid);
    token->check = bh__siphash(key, token, offsetof(bh_share_token, check));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    bh__grant grant;
    bh_share_token token;
    uint8_t how = fuzz_byte(&in);
    fuzz_take(&in, &grant, sizeof grant);
    fuzz_take(&in, &token, sizeof token);
    if (how & 1) sign(&grant, &token);
    if (how & 2) grant.withdrawn = 0;
    if (bh__token_check(&grant, &token) == BH_OK) {
        uint64_t bytes, element = bh_type_size(token.type);
        FUZZ_CHECK(element && !__builtin_mul_overflow(token.count, element, &bytes));
        FUZZ_CHECK(token.offset <= token.chunk_bytes && bytes <= token.chunk_bytes - token.offset);
        FUZZ_CHECK(!grant.withdrawn && token.generation == grant.generation);
        FUZZ_CHECK(strlen(token.kind) < sizeof token.kind);
    }
    return 0;
}
