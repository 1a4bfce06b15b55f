/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing buffers: exporting, opening in a compartment, mapping without one. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "client/deed.h"

typedef unsigned long long ull;

static bh_status refuse_null(const char *what) {
    return bh__refuse(BH_E_INVALID, "pass all arguments", "%s is NULL", what);
}

static bh_status duplicate(int fd, int *out) {
    *out = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (*out >= 0) return BH_OK;
    char text[128];
    int number = errno;
    return bh__refuse(
        number == EBADF ? BH_E_INVALID : BH_E_NO_HOST_MEMORY,
        number == EBADF ? "pass open descriptors" : "raise the limit on open files (ulimit -n)",
        "descriptor %d cannot be duplicated: %s", fd, bh__errno_text(number, text, sizeof text));
}

/* ---- the mark ------------------------------------------------------------------------------------
 * It ties the memory's descriptor to the deed: a GPU's descriptors look all alike from outside. It is
 * written and read as any bytes of a buffer are, by the worker.
 */

/* A buffer over the first bytes of memory's chunk. */
static bh_status open_window(bh__device *device, const bh__memory *memory, uint64_t bytes,
                             bh_buffer *out) {
    const bh__chunk *chunk = &memory->solo->chunk;
    bh__memory *window = bh__memory_new(device);
    if (!window)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a buffer's record");
    window->window = true;
    window->address = chunk->address;
    window->read_only_address = chunk->read_only_address;
    window->bytes = bytes;
    bh_status status = bh__buffer_add(device, window, BH_U8, 0, bytes, out);
    if (status != BH_OK) bh__memory_delete(device, window);
    return status;
}

/* Moves the mark with the device unlocked meanwhile. The memory has no handle yet: nobody else can
 * free it. */
static bh_status move_mark(bh__device *device, const bh__memory *memory, uint8_t mark[16],
                           bool write) {
    bh_buffer window;
    bh_status status = open_window(device, memory, 16, &window);
    if (status != BH_OK) return status;
    bh__device_step_out(device);
    status = write ? bh_buffer_write(window, 0, mark, 16) : bh_buffer_read(window, 0, mark, 16);
    bh_error why = *bh__last();
    bh_buffer_release(window);
    bh__device_step_in(device);
    return status == BH_OK ? BH_OK : bh__refuse_with(&why);
}

/* ---- allocating and exporting ---- */

static bh_status alloc_shareable(bh__device *device, bh_type type, uint64_t count, uint64_t bytes,
                                 const void *call_site, bh_buffer *out) {
    uint32_t how = BH__SOLO_LED | (bh__guarded(device) ? BH__SOLO_GUARDED : 0);
    bh__memory *memory;
    bh__tag *tag = bh__tag_begin(device, NULL, bytes);
    if (!tag) return bh__last()->status;
    bh_status status = bh__solo_create(device, bytes, 0, how, &memory);
    bh__tag_end(tag, bytes, status == BH_OK ? memory : NULL);
    if (status != BH_OK) return status;
    memory->call_site = call_site;
    status = bh__deed_create(device, memory->solo);
    if (status == BH_OK) status = move_mark(device, memory, memory->solo->deed->mark, true);
    if (status == BH_OK) status = bh__buffer_add(device, memory, type, 0, count, out);
    if (status == BH_OK) {
        bh__usage_add(device, memory);
    } else {
        bh__tag_discharge(memory->tag, bytes);
        bh__solo_give_back(device, memory);
    }
    return status;
}

bh_status bh_buffer_alloc_shareable(bh_device handle, bh_type type, uint64_t count,
                                    bh_buffer *out) {
    uint64_t bytes;
    if (!out) return refuse_null("out");
    if (bh__buffer_bytes(type, count, &bytes) != BH_OK) return bh__last()->status;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bh_status status =
        alloc_shareable(device, type, count, bytes, __builtin_return_address(0), out);
    bh__device_unlock(device);
    return status;
}

static bh__buffer *lock_shared(bh_buffer handle, bh__device **out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_BUFFER, "buffer", false);
    if (!device) return NULL;
    bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, "buffer");
    if (buffer && (!buffer->memory->solo || !buffer->memory->solo->deed)) {
        bh__refuse(BH_E_UNSUPPORTED, "allocate it with bh_buffer_alloc_shareable",
                   "the buffer of %s[%llu] may lie beside others in memory, so it cannot be shared",
                   bh_type_name(buffer->type), (ull)buffer->count);
        buffer = NULL;
    }
    if (!buffer) bh__device_unlock(device);
    *out = device;
    return buffer;
}

static int chunk_descriptor(const bh__device *device, uint32_t id) {
    for (uint32_t i = 0; i < device->chunk_count; i++) {
        if (device->chunks[i].chunk.id == id) return device->chunks[i].fd;
    }
    return -1;
}

bh_status bh_buffer_export(bh_buffer handle, int out_fds[BH_SHARE_FDS], bh_share_token *out) {
    if (!out_fds) return refuse_null("out_fds");
    if (!out) return refuse_null("out");
    bh__device *device;
    bh__buffer *buffer = lock_shared(handle, &device);
    if (!buffer) return bh__last()->status;
    const bh__memory *memory = buffer->memory;
    const bh__solo *solo = memory->solo;
    bh_share_token token;
    memset(&token, 0, sizeof token);
    token.type = buffer->type;
    token.count = buffer->count;
    token.offset = memory->address + buffer->offset - solo->chunk.address;
    bh_status status = bh__token_sign(solo->deed, &token);
    int fds[2] = {-1, -1};
    if (status == BH_OK) status = duplicate(chunk_descriptor(device, solo->chunk.id), &fds[0]);
    if (status == BH_OK) status = duplicate(solo->deed_fd, &fds[1]);
    bh__device_unlock(device);
    if (status == BH_OK) {
        memcpy(out_fds, fds, sizeof fds);
        *out = token;
    } else if (fds[0] >= 0) {
        close(fds[0]);
    }
    return status;
}

bh_status bh_buffer_revoke(bh_buffer handle) {
    bh__device *device;
    bh__buffer *buffer = lock_shared(handle, &device);
    if (!buffer) return bh__last()->status;
    bh__solo *solo = buffer->memory->solo;
    bh_status status = solo->imported
                           ? bh__refuse(BH_E_INVALID, "revoke it where it comes from",
                                        "the buffer was opened from a token, not made here")
                           : bh__deed_renew(solo);
    bh__device_unlock(device);
    return status;
}

/* ---- opening ---- */

/* Whether all fits together as far as can be told from outside. *out_deed is the caller's to unmap,
 * also for a stale token. */
static bh_status check_share(const int fds[BH_SHARE_FDS], const bh_share_token *token,
                             bh__deed **out_deed) {
    *out_deed = NULL;
    if (!fds) return refuse_null("fds");
    if (!token) return refuse_null("token");
    if (bh__refuse_forked()) return BH_E_STOPPED;
    *out_deed = bh__deed_open(fds[1]);
    return *out_deed ? bh__token_check(*out_deed, token) : bh__last()->status;
}

/* Memory of the CPU device is a file: it must be as long as the token says and stay so, or whoever
 * touches it could be killed by the one who made it. */
static bh_status check_memory(int fd, const bh_share_token *token) {
    struct stat info = {0};
    bool is_file = strcmp(token->kind, "cpu") == 0;
    int seals = fcntl(fd, F_GET_SEALS);
    /* Of a device's memory only the device can tell; it is not asked about what is none for sure. */
    bool is_device = fstat(fd, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode) &&
                     !S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode);
    if (!is_file && is_device) return BH_OK;
    if (is_file && seals >= 0 && seals & F_SEAL_SHRINK &&
        (uint64_t)info.st_size >= token->chunk_bytes)
        return BH_OK;
    return bh__refuse(BH_E_INVALID, "pass both descriptors of bh_buffer_export, in their order",
                      "descriptor %d is not the memory of a shared buffer of %llu bytes", fd,
                      (ull)token->chunk_bytes);
}

static bh_status refuse_mark(int fd) {
    return bh__refuse(BH_E_INVALID,
                      "pass the token and the descriptors of one bh_buffer_export, unchanged",
                      "descriptor %d is memory of another buffer than the token is for", fd);
}

static bh_status check_device(const bh__device *device, const bh_share_token *token) {
    if (bh__checked(device))
        return bh__refuse(BH_E_UNSUPPORTED, "open the device without BH_DEVICE_CHECK",
                          "a device with checks cannot follow who writes a shared buffer");
    if (strcmp(token->kind, device->kind) != 0)
        return bh__refuse(BH_E_UNSUPPORTED, "open it on a device of that kind, or copy the data",
                          "the buffer is memory of a device of kind \"%s\", this one is \"%s\"",
                          token->kind, device->kind);
    if (strcmp(token->uuid, device->info.uuid) != 0)
        return bh__refuse(BH_E_UNSUPPORTED, "open it on that GPU, or copy the data",
                          "the buffer is memory of %s, this device is %s", token->uuid,
                          device->info.uuid);
    if (token->chunk_bytes % device->chunk_granularity)
        return bh__refuse(BH_E_INVALID, "use the same version of Bulkhead on both sides",
                          "memory of %llu bytes is not made of whole pieces of %llu",
                          (ull)token->chunk_bytes, (ull)device->chunk_granularity);
    return BH_OK;
}

/* With the device locked. `fds`, which are kept, and the deed are taken over. */
static bh_status import(bh__device *device, const int fds[2], const bh_share_token *token,
                        bh__deed *deed, const void *call_site, bh_buffer *out) {
    bh__memory *memory;
    uint64_t bytes = token->count * bh_type_size(token->type);
    bh_status status = bh__tag_charge(device, &device->untagged, bytes);
    if (status == BH_OK) {
        status = bh__solo_adopt(device, token->chunk_bytes, token->offset, bytes, fds[0], &memory);
        if (status != BH_OK) bh__tag_discharge(&device->untagged, bytes);
    }
    if (status != BH_OK) {
        bh__deed_unmap(deed);
        bh__fd_close(fds[0]);
        bh__fd_close(fds[1]);
        return status;
    }
    bh__tag_attach(&device->untagged, memory);
    memory->call_site = call_site;
    memory->solo->deed = deed;
    memory->solo->deed_fd = fds[1];
    uint8_t mark[16];
    status = move_mark(device, memory, mark, false);
    if (status == BH_OK && memcmp(mark, deed->mark, sizeof mark) != 0) status = refuse_mark(fds[0]);
    if (status == BH_OK)
        status = bh__token_check(deed, token); /* it may have gone stale meanwhile */
    if (status == BH_OK) status = bh__buffer_add(device, memory, token->type, 0, token->count, out);
    if (status == BH_OK) {
        bh__usage_add(device, memory);
        return BH_OK;
    }
    bh_error why = *bh__last();
    bh__tag_discharge(memory->tag, bytes);
    bh__solo_give_back(device, memory);
    bh__solo_settle(device);
    return bh__refuse_with(&why);
}

bh_status bh_buffer_import(bh_device handle, const int fds[BH_SHARE_FDS],
                           const bh_share_token *token, uint32_t flags, bh_buffer *out) {
    if (!out) return refuse_null("out");
    if (flags) return bh__refuse(BH_E_INVALID, "pass 0", "flags is 0x%x", flags);
    bh_share_token own; /* what is checked is what is used */
    if (token) own = *token;
    bh__deed *deed;
    bh_status status = check_share(fds, token ? &own : NULL, &deed);
    if (status == BH_OK) status = check_memory(fds[0], &own);
    int mine[2] = {-1, -1};
    for (int i = 0; i < 2 && status == BH_OK; i++) {
        status = duplicate(fds[i], &mine[i]);
        if (status == BH_OK) mine[i] = bh__fd_keep(mine[i]);
    }
    bh__device *device = NULL;
    if (status == BH_OK) {
        device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
        status = device ? check_device(device, &own) : bh__last()->status;
    }
    if (status == BH_OK) {
        status = import(device, mine, &own, deed, __builtin_return_address(0), out);
        bh__device_unlock(device);
        return status;
    }
    if (device) bh__device_unlock(device);
    bh__fd_close(mine[0]);
    bh__fd_close(mine[1]);
    bh__deed_unmap(deed);
    return status;
}

bh_status bh_share_query(const int fds[BH_SHARE_FDS], const bh_share_token *token,
                         bh_share_info *out) {
    if (!out || out->size < sizeof(uint32_t) * 2)
        return bh__refuse(BH_E_INVALID, "initialise the struct with BH_INIT",
                          "out is NULL or its size is not set");
    bh__deed *deed;
    bh_status status = check_share(fds, token, &deed);
    if (status == BH_OK || status == BH_E_STALE) {
        bh_share_info info = {.size = out->size,
                              .stale = status == BH_E_STALE,
                              .generation = atomic_load(&deed->generation),
                              .doubts = atomic_load(&deed->doubts),
                              .bytes = token->count * bh_type_size(token->type)};
        memcpy(info.mark, deed->mark, sizeof info.mark);
        memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
        status = BH_OK;
    }
    bh__deed_unmap(deed);
    return status;
}

/* ---- without a compartment ---- */

typedef struct mapping {
    struct mapping *next;
    uint8_t *base, *memory;
    uint64_t bytes;
} mapping;

static mapping *mappings;
static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;

static bh_status map_file(int fd, const bh_share_token *token, const bh__deed *deed, void **out) {
    mapping *self = malloc(sizeof *self);
    void *base = self ? mmap(NULL, token->chunk_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                      : MAP_FAILED;
    if (base == MAP_FAILED) {
        char text[128];
        int number = errno;
        free(self);
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free memory, or see whether ulimit -v leaves room",
                          "%llu bytes of shared memory cannot be mapped: %s",
                          (ull)token->chunk_bytes, bh__errno_text(number, text, sizeof text));
    }
    if (memcmp(base, deed->mark, sizeof deed->mark) != 0) {
        munmap(base, token->chunk_bytes);
        free(self);
        return refuse_mark(fd);
    }
    *self = (mapping){
        .base = base, .memory = (uint8_t *)base + token->offset, .bytes = token->chunk_bytes};
    pthread_mutex_lock(&mappings_lock);
    self->next = mappings;
    mappings = self;
    pthread_mutex_unlock(&mappings_lock);
    *out = self->memory;
    return BH_OK;
}

bh_status bh_share_map(const int fds[BH_SHARE_FDS], const bh_share_token *token, void **out) {
    if (!out) return refuse_null("out");
    bh_share_token own;
    if (token) own = *token;
    bh__deed *deed;
    bh_status status = check_share(fds, token ? &own : NULL, &deed);
    if (status == BH_OK && strcmp(own.kind, "cpu") != 0)
        status = bh__refuse(
            BH_E_UNSUPPORTED, "use bh_cuda_map_share of libbulkhead-cuda, or open it on a device",
            "memory of a device of kind \"%s\" has no place in host memory", own.kind);
    if (status == BH_OK) status = check_memory(fds[0], &own);
    if (status == BH_OK) status = map_file(fds[0], &own, deed, out);
    bh__deed_unmap(deed);
    return status;
}

bh_status bh_share_unmap(void *memory) {
    if (bh__refuse_forked()) return BH_E_STOPPED;
    pthread_mutex_lock(&mappings_lock);
    mapping **link = &mappings, *found;
    while (*link && (*link)->memory != memory) link = &(*link)->next;
    found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&mappings_lock);
    if (!found || !memory)
        return bh__refuse(BH_E_INVALID, "pass what bh_share_map gave out, once",
                          "nothing is mapped at %p", memory);
    munmap(found->base, found->bytes);
    free(found);
    return BH_OK;
}
