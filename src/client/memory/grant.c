/* SPDX-License-Identifier: Apache-2.0 */
/* Grants and tokens of shared buffers: create, sign, check, withdraw. docs/protocol.md explains why
 * this is safe. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/siphash.h"
#include "client/core/error.h"
#include "client/core/fork.h"
#include "client/memory/grant.h"
#include "client/memory/memory.h"
#include "wire/share.h"

typedef unsigned long long ull;

static bh_status refuse_system(const char *what, int number) {
    char text[128];
    return bh__refuse(BH_E_NO_HOST_MEMORY, bh__errno_fix(number, "free memory"), "cannot %s: %s",
                      what, bh__errno_text(number, text, sizeof text));
}

static bool random_bytes(void *out, size_t bytes) {
    return getrandom(out, bytes, 0) == (ssize_t)bytes;
}

static bool new_key(bh__grant *grant) {
    uint64_t key[2];
    if (!random_bytes(key, sizeof key)) return false;
    atomic_store(&grant->key[0], key[0]);
    atomic_store(&grant->key[1], key[1]);
    atomic_store(&grant->settled, atomic_load(&grant->generation));
    return true;
}

void bh__grant_unmap(bh__grant *grant) {
    if (grant) bh__share_unmap(grant, BH__GRANT_BYTES);
}

bh_status bh__grant_create(bh__device *device, bh__dedicated *dedicated) {
    void *page;
    int fd = bh__share_publish("bulkhead-grant", BH__GRANT_BYTES, &page);
    if (fd < 0) return refuse_system("make a shared page", -fd);
    bh__grant *grant = page;
    atomic_store(&grant->generation, 1);
    if (!random_bytes(grant->mark, sizeof grant->mark) || !new_key(grant)) {
        int number = errno;
        bh__grant_unmap(grant);
        close(fd);
        return refuse_system("make a shared page", number);
    }
    grant->version = BH__TOKEN_VERSION;
    grant->chunk_bytes = dedicated->chunk.bytes;
    memcpy(grant->kind, device->kind, sizeof grant->kind);
    memcpy(grant->uuid, device->info.uuid, sizeof grant->uuid);
    grant->magic = BH__GRANT_MAGIC;
    dedicated->grant = grant;
    dedicated->grant_fd = bh__fd_keep(fd);
    return BH_OK;
}

bh__grant *bh__grant_open(int fd) {
    bool good = bh__share_is_published(fd, BH__GRANT_BYTES);
    bh__grant *grant = good ? bh__share_map(fd, 0, BH__GRANT_BYTES, false) : NULL;
    if (good && !grant) {
        refuse_system("map a shared page", errno);
        return NULL;
    }
    if (grant && grant->magic == BH__GRANT_MAGIC && grant->version == BH__TOKEN_VERSION)
        return grant;
    bh__grant_unmap(grant);
    bh__refuse(BH_E_INVALID, "pass both descriptors of bh_buffer_export, in their order",
               "descriptor %d is not the second descriptor of a shared buffer", fd);
    return NULL;
}

void bh__grant_close(bh__dedicated *dedicated) {
    bh__grant_withdraw(dedicated);
    bh__grant_unmap(dedicated->grant);
    dedicated->grant = NULL;
    bh__fd_close(dedicated->grant_fd);
    dedicated->grant_fd = -1;
}

void bh__grant_withdraw(bh__dedicated *dedicated) {
    if (!dedicated->grant || dedicated->imported) return;
    atomic_store(&dedicated->grant->withdrawn, 1);
    atomic_store(&dedicated->grant->key[0], 0);
    atomic_store(&dedicated->grant->key[1], 0);
}

void bh__grant_doubt(bh__dedicated *dedicated) {
    if (dedicated->grant && !dedicated->imported) atomic_fetch_add(&dedicated->grant->doubts, 1);
}

bh_status bh__grant_renew(bh__dedicated *dedicated) {
    atomic_fetch_add(&dedicated->grant->generation, 1);
    if (new_key(dedicated->grant)) return BH_OK;
    return refuse_system("get random bytes for a key", errno);
}

/* ---- tokens ---- */

static uint64_t token_mac(const bh_share_token *token, const uint64_t key[2]) {
    uint8_t bytes[16];
    memcpy(bytes, key, sizeof bytes);
    return bh__siphash(bytes, token, offsetof(bh_share_token, check));
}

bh_status bh__token_sign(bh__grant *grant, bh_share_token *token) {
    token->size = sizeof *token;
    token->version = BH__TOKEN_VERSION;
    token->magic = BH__TOKEN_MAGIC;
    token->chunk_bytes = grant->chunk_bytes;
    memcpy(token->kind, grant->kind, sizeof token->kind);
    memcpy(token->uuid, grant->uuid, sizeof token->uuid);
    if (!random_bytes(token->nonce, sizeof token->nonce))
        return refuse_system("get random bytes for a token", errno);
    for (int tries = 0; tries < 1000 && !atomic_load(&grant->withdrawn); tries++) {
        uint64_t settled = atomic_load(&grant->settled);
        uint64_t key[2] = {atomic_load(&grant->key[0]), atomic_load(&grant->key[1])};
        if (atomic_load(&grant->generation) == settled) {
            token->generation = settled;
            token->check = token_mac(token, key);
            return BH_OK;
        }
        sched_yield(); /* the exporter is about to store a new key, or died before it could */
    }
    return bh__refuse(BH_E_STALE, "export a buffer that is still open in the process that made it",
                      "the buffer was released or is being revoked by the process that made it");
}

static bool terminated(const char *text, size_t size) {
    return memchr(text, 0, size) != NULL;
}

static bh_status refuse_token(const char *what, ull value) {
    return bh__refuse(BH_E_INVALID, "pass the token of bh_buffer_export unchanged",
                      "token is not valid for a shared buffer: its %s is %llu", what, value);
}

/* Checks the fields by themselves, without the grant. All later arithmetic relies on this. */
static bh_status check_shape(const bh_share_token *token) {
    uint64_t bytes, element = bh_type_size(token->type);
    if (token->magic != BH__TOKEN_MAGIC) return refuse_token("magic number", token->magic);
    if (token->size != sizeof *token) return refuse_token("size", token->size);
    if (token->version != BH__TOKEN_VERSION) return refuse_token("version", token->version);
    if (!element) return refuse_token("type", token->type);
    if (!terminated(token->kind, sizeof token->kind) ||
        !terminated(token->uuid, sizeof token->uuid))
        return refuse_token("device kind or uuid is not terminated; its size", token->size);
    if (!bh__mul_u64(token->count, element, &bytes) || token->offset < BH__DEDICATED_LEAD ||
        token->offset % element || !bh__range_fits(token->offset, bytes, token->chunk_bytes) ||
        token->chunk_bytes > INT64_MAX)
        return refuse_token("range does not fit the memory; its count", token->count);
    return BH_OK;
}

bh_status bh__token_check(bh__grant *grant, const bh_share_token *token) {
    bh_status status = check_shape(token);
    if (status != BH_OK) return status;
    uint64_t key[2] = {atomic_load(&grant->key[0]), atomic_load(&grant->key[1])};
    uint64_t generation = atomic_load(&grant->generation);
    bool withdrawn = atomic_load(&grant->withdrawn);
    bool fits = token->chunk_bytes == grant->chunk_bytes && token->generation >= 1 &&
                token->generation <= generation &&
                memcmp(token->kind, grant->kind, sizeof token->kind) == 0 &&
                memcmp(token->uuid, grant->uuid, sizeof token->uuid) == 0;
    bool stale = withdrawn || token->generation != generation;
    if (!fits || (!stale && token->check != token_mac(token, key)))
        return bh__refuse(BH_E_INVALID,
                          "pass the token and the descriptors of one bh_buffer_export, unchanged",
                          "the token was changed or forged, or belongs to other descriptors");
    if (!stale) return BH_OK;
    return bh__refuse(BH_E_STALE, "ask the other side for a new token",
                      withdrawn ? "the token is stale: its buffer was released (generation %llu, "
                                  "the last was %llu)"
                                : "the token is stale: it has generation %llu, the current one is "
                                  "%llu",
                      (ull)token->generation, (ull)generation);
}
