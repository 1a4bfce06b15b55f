/* SPDX-License-Identifier: Apache-2.0 */
/* Deeds and tokens: made, signed, checked, withdrawn. docs/protocol.md says why this is enough. */
#include "client/deed.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/siphash.h"

typedef unsigned long long ull;

static bh_status refuse_system(const char *what, int number) {
    char text[128];
    return bh__refuse(BH_E_NO_HOST_MEMORY,
                      "free memory, or raise the limit on open files (ulimit -n)", "cannot %s: %s",
                      what, bh__errno_text(number, text, sizeof text));
}

static bool draw(void *out, size_t bytes) {
    return getrandom(out, bytes, 0) == (ssize_t)bytes;
}

static bool draw_key(bh__deed *deed) {
    uint64_t key[2];
    if (!draw(key, sizeof key)) return false;
    atomic_store(&deed->key[0], key[0]);
    atomic_store(&deed->key[1], key[1]);
    atomic_store(&deed->settled, atomic_load(&deed->generation));
    return true;
}

static bh__deed *map(int fd, int protection) {
    void *memory = mmap(NULL, BH__DEED_BYTES, protection, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return NULL;
    madvise(memory, BH__DEED_BYTES, MADV_DONTFORK);
    return memory;
}

void bh__deed_unmap(bh__deed *deed) {
    if (deed) munmap(deed, BH__DEED_BYTES);
}

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE };

bh_status bh__deed_create(bh__device *device, bh__solo *solo) {
    int fd = memfd_create("bulkhead-deed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return refuse_system("make a shared page", errno);
    bh__deed *deed = ftruncate(fd, BH__DEED_BYTES) == 0 ? map(fd, PROT_READ | PROT_WRITE) : NULL;
    bool sealed = deed && fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) == 0;
    if (deed) atomic_store(&deed->generation, 1);
    if (!sealed || !draw(deed->mark, sizeof deed->mark) || !draw_key(deed)) {
        int number = errno;
        bh__deed_unmap(deed);
        close(fd);
        return refuse_system("make a shared page", number);
    }
    deed->version = BH__TOKEN_VERSION;
    deed->chunk_bytes = solo->chunk.bytes;
    memcpy(deed->kind, device->kind, sizeof deed->kind);
    memcpy(deed->uuid, device->info.uuid, sizeof deed->uuid);
    deed->magic = BH__DEED_MAGIC;
    solo->deed = deed;
    solo->deed_fd = bh__fd_keep(fd);
    return BH_OK;
}

bh__deed *bh__deed_open(int fd) {
    struct stat info;
    int seals = fcntl(fd, F_GET_SEALS);
    bh__deed *deed = NULL;
    if (seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &info) == 0 &&
        info.st_size == BH__DEED_BYTES)
        deed = map(fd, PROT_READ);
    if (deed && deed->magic == BH__DEED_MAGIC && deed->version == BH__TOKEN_VERSION) return deed;
    bh__deed_unmap(deed);
    bh__refuse(BH_E_INVALID, "pass both descriptors of bh_buffer_export, in their order",
               "descriptor %d is not the second one of a shared buffer", fd);
    return NULL;
}

void bh__deed_close(bh__solo *solo) {
    bh__deed_withdraw(solo);
    bh__deed_unmap(solo->deed);
    solo->deed = NULL;
    bh__fd_close(solo->deed_fd);
    solo->deed_fd = -1;
}

void bh__deed_withdraw(bh__solo *solo) {
    if (!solo->deed || solo->imported) return;
    atomic_store(&solo->deed->withdrawn, 1);
    atomic_store(&solo->deed->key[0], 0);
    atomic_store(&solo->deed->key[1], 0);
}

void bh__deed_doubt(bh__solo *solo) {
    if (solo->deed && !solo->imported) atomic_fetch_add(&solo->deed->doubts, 1);
}

bh_status bh__deed_renew(bh__solo *solo) {
    atomic_fetch_add(&solo->deed->generation, 1);
    if (draw_key(solo->deed)) return BH_OK;
    return refuse_system("draw a random key", errno);
}

/* ---- tokens ---- */

static uint64_t check_of(const bh_share_token *token, const uint64_t key[2]) {
    uint8_t bytes[16];
    memcpy(bytes, key, sizeof bytes);
    return bh__siphash(bytes, token, offsetof(bh_share_token, check));
}

bh_status bh__token_sign(bh__deed *deed, bh_share_token *token) {
    token->size = sizeof *token;
    token->version = BH__TOKEN_VERSION;
    token->magic = BH__TOKEN_MAGIC;
    token->chunk_bytes = deed->chunk_bytes;
    memcpy(token->kind, deed->kind, sizeof token->kind);
    memcpy(token->uuid, deed->uuid, sizeof token->uuid);
    if (!draw(token->nonce, sizeof token->nonce)) return refuse_system("draw a nonce", errno);
    for (int tries = 0; tries < 1000 && !atomic_load(&deed->withdrawn); tries++) {
        uint64_t settled = atomic_load(&deed->settled);
        uint64_t key[2] = {atomic_load(&deed->key[0]), atomic_load(&deed->key[1])};
        if (atomic_load(&deed->generation) == settled) {
            token->generation = settled;
            token->check = check_of(token, key);
            return BH_OK;
        }
        sched_yield(); /* another process is about to draw a new key, or died of it */
    }
    return bh__refuse(BH_E_STALE, "export it from a buffer that is still there",
                      "the buffer was released or is being revoked where it came from");
}

static bool terminated(const char *text, size_t size) {
    return memchr(text, 0, size) != NULL;
}

static bh_status refuse_token(const char *what, ull value) {
    return bh__refuse(BH_E_INVALID, "pass the token of bh_buffer_export unchanged",
                      "this is no token for a shared buffer: its %s is %llu", what, value);
}

/* What can be said without the deed. Guards all arithmetic that follows. */
static bh_status check_shape(const bh_share_token *token) {
    uint64_t bytes, element = bh_type_size(token->type);
    if (token->magic != BH__TOKEN_MAGIC) return refuse_token("magic number", token->magic);
    if (token->size != sizeof *token) return refuse_token("size", token->size);
    if (token->version != BH__TOKEN_VERSION) return refuse_token("version", token->version);
    if (!element) return refuse_token("type", token->type);
    if (!terminated(token->kind, sizeof token->kind) ||
        !terminated(token->uuid, sizeof token->uuid))
        return refuse_token("kind of device without an end; its size", token->size);
    if (!token->count || !bh__mul_u64(token->count, element, &bytes) ||
        token->offset < BH__SOLO_LEAD || token->offset % element ||
        !bh__range_fits(token->offset, bytes, token->chunk_bytes) || token->chunk_bytes > INT64_MAX)
        return refuse_token("count of elements, for that much memory,", token->count);
    return BH_OK;
}

bh_status bh__token_check(bh__deed *deed, const bh_share_token *token) {
    bh_status status = check_shape(token);
    if (status != BH_OK) return status;
    uint64_t key[2] = {atomic_load(&deed->key[0]), atomic_load(&deed->key[1])};
    uint64_t generation = atomic_load(&deed->generation);
    bool withdrawn = atomic_load(&deed->withdrawn);
    bool fits = token->chunk_bytes == deed->chunk_bytes && token->generation >= 1 &&
                token->generation <= generation &&
                memcmp(token->kind, deed->kind, sizeof token->kind) == 0 &&
                memcmp(token->uuid, deed->uuid, sizeof token->uuid) == 0;
    bool stale = withdrawn || token->generation != generation;
    if (!fits || (!stale && token->check != check_of(token, key)))
        return bh__refuse(BH_E_INVALID,
                          "pass the token and the descriptors of one bh_buffer_export, unchanged",
                          "the token was changed, made up, or belongs to other descriptors");
    if (!stale) return BH_OK;
    return bh__refuse(BH_E_STALE, "ask the other side for a new token",
                      withdrawn ? "the token is stale: its buffer was released (generation %llu, "
                                  "the last was %llu)"
                                : "the token is stale: it has generation %llu, good ones have %llu",
                      (ull)token->generation, (ull)generation);
}
