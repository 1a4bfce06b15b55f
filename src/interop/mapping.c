/* SPDX-License-Identifier: Apache-2.0 */
/* Shared buffers mapped into the application's own CUDA context. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interop/interop.h"

typedef unsigned long long ull;

typedef struct mapping {
    struct mapping *next;
    uint64_t id;
    int device;
    bh__cu_address base;
    uint64_t bytes;
    bool retained; /* the primary context is kept while something of ours is mapped in it */
} mapping;

static mapping *mappings;
static uint64_t last_id;
static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;

#define FIX_MEMORY "unmap buffers, or end other programs on this device"

static int take_in(const bh__driver *cu, mapping *self, int fd) {
    bh__cu_memory memory;
    int result = cu->memory_import(&memory, (void *)(intptr_t)fd, BH__CU_HANDLE_DESCRIPTOR);
    if (result != BH__CU_OK) return result;
    result = cu->address_reserve(&self->base, self->bytes, 0, 0, 0);
    if (result == BH__CU_OK) {
        bh__cu_access allow = {.location = {BH__CU_LOCATION_DEVICE, self->device},
                               .flags = BH__CU_ACCESS_READ_WRITE};
        result = cu->memory_map(self->base, self->bytes, 0, memory, 0);
        if (result == BH__CU_OK) {
            result = cu->memory_access(self->base, self->bytes, &allow, 1);
            if (result != BH__CU_OK) cu->memory_unmap(self->base, self->bytes);
        }
        if (result != BH__CU_OK) cu->address_free(self->base, self->bytes);
    }
    cu->memory_release(memory); /* the mapping keeps it */
    return result;
}

/* With the context current. */
static void put_out(const bh__driver *cu, const mapping *self) {
    cu->context_synchronize();
    cu->memory_unmap(self->base, self->bytes);
    cu->address_free(self->base, self->bytes);
}

static bh_status check_mark(const bh__driver *cu, const mapping *self, const uint8_t mark[16]) {
    uint8_t found[16];
    int result = cu->copy_out(found, self->base, sizeof found, NULL);
    if (result == BH__CU_OK) result = cu->stream_synchronize(NULL);
    if (result != BH__CU_OK)
        return bh__interop_driver_failed(cu, result, BH_E_INTERNAL,
                                         "see whether CUDA still works in this process",
                                         "the memory was mapped and cannot be read");
    if (memcmp(found, mark, sizeof found) == 0) return BH_OK;
    return bh__interop_refuse(
        BH_E_INVALID, "pass the token and the descriptors of one bh_buffer_export, unchanged",
        "the first descriptor is memory of another buffer than the token is for");
}

static void note(mapping *self, const bh_share_token *token, bh_cuda_mapping *out) {
    pthread_mutex_lock(&mappings_lock);
    self->id = ++last_id;
    self->next = mappings;
    mappings = self;
    pthread_mutex_unlock(&mappings_lock);
    bh_cuda_mapping result = {.size = out->size,
                              .device = self->device,
                              .address = self->base + token->offset,
                              .bytes = token->count * bh_type_size(token->type),
                              .id = self->id};
    memcpy(out, &result, sizeof result);
}

static bh_status map(const bh__driver *cu, int fd, const bh_share_token *token,
                     const bh_share_info *info, bh_cuda_mapping *out) {
    mapping *self = calloc(1, sizeof *self);
    if (!self)
        return bh__interop_refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                                  "no host memory for a mapping's record");
    self->bytes = token->chunk_bytes;
    bh__interop_visit visit;
    bh_status status = bh__interop_find_device(cu, token->uuid, &self->device);
    if (status == BH_OK) status = bh__interop_enter(cu, self->device, &visit);
    if (status != BH_OK) {
        free(self);
        return status;
    }
    int result = take_in(cu, self, fd);
    if (result != BH__CU_OK)
        status = bh__interop_driver_failed(cu, result, BH_E_NO_MEMORY, FIX_MEMORY,
                                           "the memory cannot be mapped in this process");
    if (status == BH_OK) {
        status = check_mark(cu, self, info->mark);
        bh__cu_context kept;
        if (status == BH_OK)
            self->retained = cu->context_retain(&kept, self->device) == BH__CU_OK;
        else
            put_out(cu, self);
    }
    bh__interop_leave(&visit);
    if (status == BH_OK)
        note(self, token, out);
    else
        free(self);
    return status;
}

bh_status bh_cuda_map_share(const int fds[BH_SHARE_FDS], const bh_share_token *given,
                            bh_cuda_mapping *out) {
    if (!out || out->size < sizeof *out)
        return bh__interop_refuse(BH_E_INVALID, "initialise the struct with BH_INIT",
                                  "out is NULL or its size is not set");
    bh_share_token token; /* what is checked is what is used */
    if (given) token = *given;
    bh_share_info info = BH_INIT(info);
    bh_status status = bh__interop_pass_on(bh_share_get_info(fds, given ? &token : NULL, &info));
    if (status != BH_OK) return status;
    if (info.stale)
        return bh__interop_refuse(BH_E_STALE, "ask the other side for a new token",
                                  "the token is stale: it has generation %llu, and its buffer was "
                                  "released or has generation %llu",
                                  (ull)token.generation, (ull)info.generation);
    if (strcmp(token.kind, "cuda") != 0)
        return bh__interop_refuse(BH_E_UNSUPPORTED, "map it with bh_share_map",
                                  "the buffer is memory of a device of kind \"%s\", not of a GPU",
                                  token.kind);
    const bh__driver *cu = bh__interop_driver();
    return cu ? map(cu, fds[0], &token, &info, out) : bh__interop_last()->status;
}

bh_status bh_cuda_map(bh_buffer buffer, bh_cuda_mapping *out) {
    int fds[BH_SHARE_FDS];
    bh_share_token token;
    bh_status status = bh__interop_pass_on(bh_buffer_export(buffer, fds, &token));
    if (status != BH_OK) return status;
    status = bh_cuda_map_share(fds, &token, out);
    close(fds[0]);
    close(fds[1]);
    return status;
}

bh_status bh_cuda_unmap(const bh_cuda_mapping *given) {
    if (!given)
        return bh__interop_refuse(BH_E_INVALID, "pass what bh_cuda_map filled in",
                                  "mapping is NULL");
    pthread_mutex_lock(&mappings_lock);
    mapping **link = &mappings, *found;
    while (*link && (*link)->id != given->id) link = &(*link)->next;
    found = *link;
    if (found) *link = found->next;
    pthread_mutex_unlock(&mappings_lock);
    if (!found)
        return bh__interop_refuse(BH_E_INVALID, "unmap what bh_cuda_map filled in, once",
                                  "there is no mapping %llu", (ull)given->id);
    const bh__driver *cu = bh__interop_driver();
    bh__interop_visit visit;
    bh_status status = cu ? bh__interop_enter(cu, found->device, &visit) : BH_E_NO_DEVICE;
    if (status == BH_OK) {
        put_out(cu, found);
        bh__interop_leave(&visit);
        if (found->retained) cu->context_release(found->device);
    }
    free(found);
    return status;
}
