/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing buffers with other processes: export, revoke, import, and maps without a device. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/buffer/internal.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/memory/grant.h"
#include "client/memory/memory.h"
#include "client/process/kinds.h"
#include "wire/share.h"

typedef unsigned long long ull;

static bh_status refuse_null(const char *what) {
    return bh__refuse(BH_E_INVALID, "pass a pointer for each argument", "%s is NULL", what);
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

/* ---- the mark ---- */

/*
 * The mark, 16 bytes at the start of the chunk, connects the descriptor of the memory with the
 * grant: descriptors of GPU memory cannot be told apart otherwise. Workers write and read it as
 * bytes of a buffer.
 */

/* Makes a buffer of the first bytes of the memory's chunk. */
static bh_status open_window(bh__device *device, const bh__memory *memory, uint64_t bytes,
                             bh_buffer *out) {
    const bh__chunk *chunk = &memory->dedicated->chunk;
    bh__memory *window = bh__memory_new(device);
    if (!window)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a buffer's record");
    window->window = true;
    window->address = chunk->address;
    window->read_only_address = chunk->read_only_address;
    window->bytes = bytes;
    bh_status status = bh__buffer_add(device, window, BH_U8, 0, bytes, false, out);
    if (status != BH_OK) bh__memory_delete(device, window);
    return status;
}

/* Writes or reads the mark, with the lock released. The memory has no handle yet, so no other
 * thread can free it. */
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

/* ---- creating and exporting ---- */

/* Undoes what was created of a buffer's memory. Returns the status of the thread's error. */
static bh_status give_back(bh__device *device, bh__memory *memory) {
    bh_error why = *bh__last();
    bh__dedicated_give_back(device, memory);
    return bh__refuse_with(&why);
}

bh_status bh__shareable_create(bh__device *device, uint64_t bytes, void *context,
                               bh__memory **out) {
    const bh_buffer_options *options = context;
    uint32_t how = BH__DEDICATED_LED | (bh__guarded(device) ? BH__DEDICATED_GUARDED : 0);
    bh_status status = bh__dedicated_create(device, bytes, options->align, how, out);
    if (status != BH_OK) return status;
    bh__dedicated *dedicated = (*out)->dedicated;
    status = bh__grant_create(device, dedicated);
    if (status == BH_OK) status = move_mark(device, *out, dedicated->grant->mark, true);
    return status == BH_OK ? BH_OK : give_back(device, *out);
}

static bh__buffer *lock_shared(bh_buffer handle, bh__device **out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_BUFFER, "buffer", false);
    if (!device) return NULL;
    bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, "buffer");
    if (buffer && (!buffer->memory->dedicated || !buffer->memory->dedicated->grant)) {
        bh__refuse(
            BH_E_UNSUPPORTED, "allocate it with BH_BUFFER_SHAREABLE",
            "the buffer of %s[%llu] may share its memory with other buffers and cannot be exported",
            bh_type_name(buffer->type), (ull)buffer->count);
        buffer = NULL;
    }
    if (!buffer) bh__device_unlock(device);
    *out = device;
    return buffer;
}

static int chunk_descriptor(const bh__device *device, uint32_t id) {
    for (uint32_t i = 0; i < device->memory.chunk_count; i++) {
        if (device->memory.chunks[i].chunk.id == id) return device->memory.chunks[i].fd;
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
    const bh__dedicated *dedicated = memory->dedicated;
    bh_share_token token;
    memset(&token, 0, sizeof token);
    token.type = buffer->type;
    token.count = buffer->count;
    token.offset = memory->address + buffer->offset - dedicated->chunk.address;
    bh_status status = bh__token_sign(dedicated->grant, &token);
    int fds[2] = {-1, -1};
    if (status == BH_OK) status = duplicate(chunk_descriptor(device, dedicated->chunk.id), &fds[0]);
    if (status == BH_OK) status = duplicate(dedicated->grant_fd, &fds[1]);
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
    bh__dedicated *dedicated = buffer->memory->dedicated;
    bh_status status = dedicated->imported
                           ? bh__refuse(BH_E_INVALID, "revoke it in the process that allocated it",
                                        "the buffer was imported; only its owner can revoke it")
                           : bh__grant_renew(dedicated);
    bh__device_unlock(device);
    return status;
}

/* ---- importing ---- */

/* Checks the token against the grant. The caller unmaps *out_grant, also if the token is stale. */
static bh_status check_share(const int fds[BH_SHARE_FDS], const bh_share_token *token,
                             bh__grant **out_grant) {
    *out_grant = NULL;
    if (!fds) return refuse_null("fds");
    if (!token) return refuse_null("token");
    if (bh__refuse_forked()) return BH_E_STOPPED;
    *out_grant = bh__grant_open(fds[1]);
    return *out_grant ? bh__token_check(*out_grant, token) : bh__last()->status;
}

/* Memory that is not opaque is a file. It must have the size in the token and be sealed: otherwise
 * its owner could shrink it, and access would kill this process. */
static bh_status check_memory(int fd, const bh_share_token *token) {
    struct stat info = {0};
    bool is_file = !bh__device_kind_may(token->kind, BH__TRAIT_OPAQUE_MEMORY);
    /* Only the device can check its own memory; descriptors that are certainly not its memory are
     * refused here. */
    bool is_device = fstat(fd, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode) &&
                     !S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode);
    if (!is_file && is_device) return BH_OK;
    if (is_file && bh__share_is_steady(fd, token->chunk_bytes)) return BH_OK;
    return bh__refuse(BH_E_INVALID, "pass both descriptors of bh_buffer_export, in their order",
                      "descriptor %d is not the memory of a shared buffer of %llu bytes", fd,
                      (ull)token->chunk_bytes);
}

static bh_status refuse_mark(int fd) {
    return bh__refuse(BH_E_INVALID,
                      "pass the token and the descriptors of one bh_buffer_export, unchanged",
                      "descriptor %d is the memory of another buffer, not of the token's", fd);
}

static bh_status check_device(const bh__device *device, const bh_share_token *token) {
    if (bh__checked(device))
        return bh__refuse(
            BH_E_UNSUPPORTED, "open the device without BH_DEVICE_CHECK",
            "BH_DEVICE_CHECK does not support imported buffers: it cannot see their other writers");
    if (strcmp(token->kind, device->kind) != 0)
        return bh__refuse(BH_E_UNSUPPORTED, "import it on a device of that kind, or copy the data",
                          "the buffer is memory of a device of kind \"%s\"; this device is \"%s\"",
                          token->kind, device->kind);
    if (strcmp(token->uuid, device->info.uuid) != 0)
        return bh__refuse(BH_E_UNSUPPORTED, "import it on that GPU, or copy the data",
                          "the buffer is memory of %s; this device is %s", token->uuid,
                          device->info.uuid);
    if (token->chunk_bytes % device->memory.chunk_granularity)
        return bh__refuse(
            BH_E_INVALID, "use the same version of Bulkhead on both sides",
            "the memory has %llu bytes, not a multiple of the device's granularity of %llu",
            (ull)token->chunk_bytes, (ull)device->memory.chunk_granularity);
    return BH_OK;
}

/* The parts of an imported buffer. */
typedef struct parts {
    const int *fds;
    const bh_share_token *token;
    bh__grant *grant;
    bool adopted; /* the memory owns descriptors and grant now */
} parts;

static bh_status create_imported(bh__device *device, uint64_t bytes, void *context,
                                 bh__memory **out) {
    parts *self = context;
    const bh_share_token *token = self->token;
    bh_status status =
        bh__dedicated_adopt(device, token->chunk_bytes, token->offset, bytes, self->fds[0], out);
    if (status != BH_OK) return status;
    self->adopted = true;
    (*out)->dedicated->grant = self->grant;
    (*out)->dedicated->grant_fd = self->fds[1];
    uint8_t mark[16];
    status = move_mark(device, *out, mark, false);
    if (status == BH_OK && memcmp(mark, self->grant->mark, sizeof mark) != 0)
        status = refuse_mark(self->fds[0]);
    /* The token may have become stale while the lock was released. */
    if (status == BH_OK) status = bh__token_check(self->grant, token);
    return status == BH_OK ? BH_OK : give_back(device, *out);
}

/* The memory exists already, with its contents and address: only the tag can be chosen. */
static bh_status take_import_options(const bh_buffer_options *given, bh_buffer_options *out) {
    *out = (bh_buffer_options)BH_INIT(*out);
    if (bh__options_take(given, out, "bh_buffer_options") != BH_OK) return bh__last()->status;
    if (out->flags)
        return bh__refuse(BH_E_INVALID, "set none: the buffer was allocated by its owner",
                          "bh_buffer_options.flags is 0x%x; an import takes no flags", out->flags);
    if (out->align)
        return bh__refuse(BH_E_INVALID, "align the buffer where it is allocated",
                          "bh_buffer_options.align is %llu; an import cannot align memory",
                          (ull)out->align);
    return BH_OK;
}

bh_status bh_buffer_import(bh_device handle, const int fds[BH_SHARE_FDS],
                           const bh_share_token *token, const bh_buffer_options *given,
                           bh_buffer *out) {
    if (!out) return refuse_null("out");
    bh_buffer_options options;
    if (take_import_options(given, &options) != BH_OK) return bh__last()->status;
    bh_share_token own; /* a copy: the caller's may change after the checks */
    if (token) own = *token;
    bh__grant *grant;
    bh_status status = check_share(fds, token ? &own : NULL, &grant);
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
    parts from = {.fds = mine, .token = &own, .grant = grant};
    if (status == BH_OK) {
        bh__allocation what = {.type = own.type,
                               .count = own.count,
                               .bytes = own.count * bh_type_size(own.type),
                               .tag = options.tag,
                               .call_site = __builtin_return_address(0),
                               .create = create_imported,
                               .context = &from};
        if (!bh__allocate(device, &what, out)) {
            status = bh__last()->status;
            bh__dedicated_settle(device); /* has workers unmap a chunk that was given back */
        }
    }
    if (device) bh__device_unlock(device);
    if (!from.adopted) {
        bh__fd_close(mine[0]);
        bh__fd_close(mine[1]);
        bh__grant_unmap(grant);
    }
    return status;
}

bh_status bh_share_get_info(const int fds[BH_SHARE_FDS], const bh_share_token *token,
                            bh_share_info *out) {
    if (bh__sized_check(out, "bh_share_info") != BH_OK) return BH_E_INVALID;
    bh__grant *grant;
    bh_status status = check_share(fds, token, &grant);
    if (status == BH_OK || status == BH_E_STALE) {
        bh_share_info info = {.size = out->size,
                              .stale = status == BH_E_STALE,
                              .generation = atomic_load(&grant->generation),
                              .doubts = atomic_load(&grant->doubts),
                              .bytes = token->count * bh_type_size(token->type)};
        memcpy(info.mark, grant->mark, sizeof info.mark);
        bh__sized_give(out, &info, sizeof info);
        status = BH_OK;
    }
    bh__grant_unmap(grant);
    return status;
}

/* ---- maps without a device ---- */

typedef struct mapping {
    struct mapping *next;
    uint8_t *base, *memory;
    uint64_t bytes;
} mapping;

static mapping *mappings;

static bh_status map_file(int fd, const bh_share_token *token, const bh__grant *grant, void **out) {
    mapping *self = malloc(sizeof *self);
    void *base = self ? mmap(NULL, token->chunk_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                      : MAP_FAILED;
    if (base == MAP_FAILED) {
        char text[128];
        int number = errno;
        free(self);
        return bh__refuse(BH_E_NO_HOST_MEMORY, bh__errno_fix(number, "free memory"),
                          "%llu bytes of shared memory cannot be mapped: %s",
                          (ull)token->chunk_bytes, bh__errno_text(number, text, sizeof text));
    }
    if (memcmp(base, grant->mark, sizeof grant->mark) != 0) {
        munmap(base, token->chunk_bytes);
        free(self);
        return refuse_mark(fd);
    }
    *self = (mapping){
        .base = base, .memory = (uint8_t *)base + token->offset, .bytes = token->chunk_bytes};
    bh__process_lock_take(BH__LOCK_MAPPINGS);
    self->next = mappings;
    mappings = self;
    bh__process_lock_give(BH__LOCK_MAPPINGS);
    *out = self->memory;
    return BH_OK;
}

bh_status bh_share_map(const int fds[BH_SHARE_FDS], const bh_share_token *token, void **out) {
    if (!out) return refuse_null("out");
    bh_share_token own;
    if (token) own = *token;
    bh__grant *grant;
    bh_status status = check_share(fds, token ? &own : NULL, &grant);
    if (status == BH_OK && bh__device_kind_may(own.kind, BH__TRAIT_OPAQUE_MEMORY))
        status = bh__refuse(
            BH_E_UNSUPPORTED, "use bh_cuda_map_share of libbulkhead-cuda, or import it on a device",
            "memory of a device of kind \"%s\" cannot be mapped in host memory", own.kind);
    if (status == BH_OK) status = check_memory(fds[0], &own);
    if (status == BH_OK) status = map_file(fds[0], &own, grant, out);
    bh__grant_unmap(grant);
    return status;
}

bh_status bh_share_unmap(void *memory) {
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh__process_lock_take(BH__LOCK_MAPPINGS);
    mapping **link = &mappings, *found;
    while (*link && (*link)->memory != memory) link = &(*link)->next;
    found = *link;
    if (found) *link = found->next;
    bh__process_lock_give(BH__LOCK_MAPPINGS);
    if (!found || !memory)
        return bh__refuse(BH_E_INVALID, "pass a pointer from bh_share_map, once",
                          "%p is not a map of a shared buffer", memory);
    munmap(found->base, found->bytes);
    free(found);
    return BH_OK;
}
