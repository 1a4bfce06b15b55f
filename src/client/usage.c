/* SPDX-License-Identifier: Apache-2.0 */
/* What device memory is used for: tags and their limits, listings, figures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "client/internal.h"

/* ---- tags ---- */

static bh__tag **tag_link(bh__device *device, const char *name, uint64_t hash) {
    bh__tag **link = &device->tags[hash % BH__TAG_BUCKETS];
    while (*link && ((*link)->hash != hash || strcmp((*link)->name, name) != 0))
        link = &(*link)->next;
    return link;
}

/* Call sites come and go with the programs' source; ones without buffers or limit are worth nothing
 * but their history. */
static void tags_thin_out(bh__device *device) {
    for (uint32_t i = 0; i < BH__TAG_BUCKETS; i++) {
        for (bh__tag **link = &device->tags[i]; *link;) {
            bh__tag *tag = *link;
            if (tag->references || tag->buffers || tag->limit) {
                link = &tag->next;
                continue;
            }
            *link = tag->next;
            device->tag_count--;
            free(tag);
        }
    }
}

bh__tag *bh__tag_get(bh__device *device, const char *name) {
    if (!name || !*name) return &device->untagged;
    size_t length = strlen(name);
    if (length >= BH_TAG_BYTES) name += length - (BH_TAG_BYTES - 1); /* a path's end says most */
    length = strlen(name);
    uint64_t hash = length;
    for (size_t i = 0; i < length; i += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, name + i, length - i < sizeof word ? length - i : sizeof word);
        hash = bh__hash_u64(hash ^ word);
    }
    bh__tag *tag = *tag_link(device, name, hash);
    if (tag) return tag;
    if (device->tag_count >= BH__MOST_TAGS) tags_thin_out(device);
    tag = calloc(1, sizeof *tag);
    if (!tag) {
        bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory to note a tag");
        return NULL;
    }
    memcpy(tag->name, name, length + 1);
    tag->hash = hash;
    *tag_link(device, name, hash) = tag;
    device->tag_count++;
    return tag;
}

void bh__tags_free(bh__device *device) {
    for (uint32_t i = 0; i < BH__TAG_BUCKETS; i++) {
        while (device->tags[i]) {
            bh__tag *tag = device->tags[i];
            device->tags[i] = tag->next;
            free(tag);
        }
    }
}

bh_status bh__tag_charge(bh__device *device, bh__tag *tag, uint64_t bytes) {
    uint64_t limit = tag->limit ? tag->limit : UINT64_MAX;
    if (bytes > limit || tag->bytes > limit - bytes) {
        bh__usage_refused(device, bytes);
        return bh__refuse(
            BH_E_NO_MEMORY,
            "free buffers with this tag, or raise its limit with bh_memory_set_limit",
            "%llu bytes asked for with the tag \"%s\", which has %llu of at most %llu",
            (unsigned long long)bytes, tag->name, (unsigned long long)tag->bytes,
            (unsigned long long)limit);
    }
    tag->bytes += bytes;
    tag->buffers++;
    return BH_OK;
}

void bh__tag_discharge(bh__tag *tag, uint64_t bytes) {
    tag->bytes -= bytes;
    tag->buffers--;
}

void bh__tag_attach(bh__tag *tag, bh__memory *memory) {
    memory->tag = tag;
    tag->references++;
}

bh__tag *bh__tag_begin(bh__device *device, const char *name, uint64_t bytes) {
    bh__tag *tag = bh__tag_get(device, name);
    if (!tag || bh__tag_charge(device, tag, bytes) != BH_OK) return NULL;
    tag->references++; /* it must not go while the lock is let go */
    return tag;
}

void bh__tag_end(bh__tag *tag, uint64_t bytes, bh__memory *memory) {
    tag->references--;
    if (memory)
        bh__tag_attach(tag, memory);
    else
        bh__tag_discharge(tag, bytes);
}

void bh__usage_refused(bh__device *device, uint64_t bytes) {
    device->refusals++;
    bh__pressure_note(device, BH_PRESSURE_FAILED, bytes);
}

void bh__usage_add(bh__device *device, bh__memory *memory) {
    device->buffer_count++;
    device->bytes_allocated += memory->bytes;
    device->tally.allocations++;
    memory->tag->allocations++;
    if (memory->tag->bytes > memory->tag->high) memory->tag->high = memory->tag->bytes;
    if (device->bytes_allocated > device->high_allocated)
        device->high_allocated = device->bytes_allocated;
    if (device->bytes_allocated >= device->pressure_high) bh__pressure_cross(device);
}

void bh__usage_remove(bh__device *device, bh__memory *memory) {
    if (memory->window) return; /* was never counted */
    device->buffer_count--;
    device->bytes_allocated -= memory->bytes;
    bh__tag_discharge(memory->tag, memory->bytes);
    if (device->bytes_allocated < device->pressure_low) bh__pressure_cross(device);
}

/* ---- by tag ---- */

typedef struct tag_list {
    bh_memory_tag *list;
    uint32_t count;
} tag_list;

static void tag_describe(const bh__tag *tag, bh_memory_tag *out) {
    *out = (bh_memory_tag){.size = sizeof *out,
                           .bytes = tag->bytes,
                           .buffers = tag->buffers,
                           .high = tag->high,
                           .limit = tag->limit,
                           .allocations = tag->allocations};
    memcpy(out->tag, tag->name, sizeof out->tag);
}

static int larger_tag(const void *a, const void *b) {
    const bh_memory_tag *left = a, *right = b;
    if (left->bytes != right->bytes) return left->bytes < right->bytes ? 1 : -1;
    return strcmp(left->tag, right->tag);
}

static bool tags_collect(bh__device *device, tag_list *out) {
    out->count = 0;
    out->list = malloc((device->tag_count + 1) * sizeof *out->list);
    if (!out->list) return false;
    if (device->untagged.allocations) tag_describe(&device->untagged, &out->list[out->count++]);
    for (uint32_t i = 0; i < BH__TAG_BUCKETS; i++) {
        for (const bh__tag *tag = device->tags[i]; tag; tag = tag->next)
            tag_describe(tag, &out->list[out->count++]);
    }
    qsort(out->list, out->count, sizeof *out->list, larger_tag);
    return true;
}

static bh_status refuse_listing(void) {
    return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for the listing");
}

bh_status bh_memory_tags(bh_device handle, bh_memory_tag_fn *each, void *context) {
    if (!each) return bh__refuse(BH_E_INVALID, "pass a function", "each is NULL");
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    tag_list tags;
    bool listed = tags_collect(device, &tags);
    bh__device_unlock(device);
    if (!listed) return refuse_listing();
    for (uint32_t i = 0; i < tags.count && each(context, &tags.list[i]); i++) {
    }
    free(tags.list);
    return BH_OK;
}

void bh__usage_owners(bh__device *device, char *out, size_t size) {
    enum { NAMED = 3 };
    tag_list tags;
    out[0] = 0;
    if (device->tag_count == 0 || !tags_collect(device, &tags)) return;
    size_t used = 0;
    for (uint32_t i = 0; i < tags.count && i < NAMED && used < size && tags.list[i].bytes; i++) {
        const char *name = tags.list[i].tag;
        size_t length = strlen(name);
        used += (size_t)snprintf(out + used, size - used, "%s\"%s\" %llu in %llu",
                                 i ? ", " : "; most is ", length > 24 ? name + length - 24 : name,
                                 (unsigned long long)tags.list[i].bytes,
                                 (unsigned long long)tags.list[i].buffers);
        if (tags.list[i].limit && used < size)
            used += (size_t)snprintf(out + used, size - used, " (limit %llu)",
                                     (unsigned long long)tags.list[i].limit);
    }
    free(tags.list);
}

/* ---- by buffer ---- */

static void memory_describe(const bh__memory *memory, uint32_t state, bh_memory_entry *out) {
    *out = (bh_memory_entry){.size = sizeof *out,
                             .type = memory->first.type,
                             .count = memory->first.count,
                             .bytes = memory->bytes,
                             .bytes_used = memory->block->bytes,
                             .address = memory->address,
                             .state = state,
                             .handles = memory->references,
                             .call_site = memory->call_site};
    memcpy(out->tag, memory->tag->name, sizeof out->tag);
}

static int larger_entry(const void *a, const void *b) {
    const bh_memory_entry *left = a, *right = b;
    if (left->bytes != right->bytes) return left->bytes < right->bytes ? 1 : -1;
    return (left->address > right->address) - (left->address < right->address);
}

static bool entries_collect(bh__device *device, bh_memory_entry **out, size_t *out_count) {
    size_t most = device->buffer_count, count = 0;
    for (const bh__memory *memory = device->leaving; memory; memory = memory->next) most++;
    bh_memory_entry *list = malloc((most + 1) * sizeof *list);
    if (!list) return false;
    uint32_t cursor = 0;
    uint64_t round = ++device->listing;
    for (bh__buffer *buffer; (buffer = bh__table_next(&device->buffers, &cursor));) {
        if (buffer->memory->listed == round || !buffer->memory->block || count == most) continue;
        buffer->memory->listed = round;
        memory_describe(buffer->memory, BH_MEMORY_LIVE, &list[count++]);
    }
    for (const bh__memory *memory = device->leaving; memory && count < most;
         memory = memory->next) {
        if (memory->block) memory_describe(memory, BH_MEMORY_LEAVING, &list[count++]);
    }
    qsort(list, count, sizeof *list, larger_entry);
    *out = list;
    *out_count = count;
    return true;
}

bh_status bh_memory_list(bh_device handle, bh_memory_entry_fn *each, void *context) {
    if (!each) return bh__refuse(BH_E_INVALID, "pass a function", "each is NULL");
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_memory_entry *list;
    size_t count;
    bool listed = entries_collect(device, &list, &count);
    bh__device_unlock(device);
    if (!listed) return refuse_listing();
    for (size_t i = 0; i < count && each(context, &list[i]); i++) {
    }
    free(list);
    return BH_OK;
}

/* ---- figures ---- */

bh_status bh_memory_query(bh_device handle, bh_memory_info *out) {
    if (!out || out->size < sizeof(uint32_t) * 2) {
        return bh__refuse(BH_E_INVALID, "initialise the struct with BH_INIT",
                          "out is NULL or its size is not set");
    }
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    if (device->leaving) bh__memory_sweep(device);
    bh__heap *heap = &device->heap;
    bh__heap_settle(heap);
    bh_memory_info info = {.size = out->size,
                           .chunks = device->chunk_count,
                           .buffers = device->buffer_count,
                           .bytes_buffers = device->bytes_allocated,
                           .bytes_used = heap->bytes_used + device->solo_bytes,
                           .bytes_reserved = bh__held_bytes(device),
                           .bytes_free = heap->bytes_total - heap->bytes_used,
                           .largest_free = bh__heap_largest_free(heap),
                           .bytes_unused = heap->unused,
                           .limit = device->options.memory_limit,
                           .high_buffers = device->high_allocated,
                           .high_reserved = device->high_reserved,
                           .allocations = device->tally.allocations,
                           .refusals = device->refusals,
                           .trims = device->tally.chunks_trimmed,
                           .bytes_trimmed = device->bytes_trimmed};
    for (const bh__memory *memory = device->leaving; memory; memory = memory->next)
        info.bytes_leaving += memory->block ? memory->block->bytes : 0;
    bh__device_unlock(device);
    if (info.bytes_free)
        info.fragmentation = 1 - (double)info.largest_free / (double)info.bytes_free;
    memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
    return BH_OK;
}

bh_status bh_memory_reset_high(bh_device handle) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    device->high_allocated = device->bytes_allocated;
    device->high_reserved = bh__held_bytes(device);
    device->untagged.high = device->untagged.bytes;
    for (uint32_t i = 0; i < BH__TAG_BUCKETS; i++) {
        for (bh__tag *tag = device->tags[i]; tag; tag = tag->next) tag->high = tag->bytes;
    }
    bh__device_unlock(device);
    return BH_OK;
}
