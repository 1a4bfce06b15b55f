/* SPDX-License-Identifier: Apache-2.0 */
/* Usage of device memory: tags and their limits, listings, statistics. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "client/core/handles.h"
#include "client/core/hooks.h"
#include "client/core/sized.h"
#include "client/memory/memory.h"

/* ---- tags ---- */

static bh__tag **tag_link(bh__device *device, const char *name, uint64_t hash) {
    bh__tag **link = &device->memory.tags[hash % BH__TAG_BUCKETS];
    while (*link && ((*link)->hash != hash || strcmp((*link)->name, name) != 0))
        link = &(*link)->next;
    return link;
}

/* Removes tags without buffers and limit. Only their statistics are lost. Tags may be call sites,
 * so their number is not bounded otherwise. */
static void tags_remove_unused(bh__device *device) {
    for (uint32_t i = 0; i < BH__TAG_BUCKETS; i++) {
        for (bh__tag **link = &device->memory.tags[i]; *link;) {
            bh__tag *tag = *link;
            if (tag->references || tag->buffers || tag->limit) {
                link = &tag->next;
                continue;
            }
            *link = tag->next;
            device->memory.tag_count--;
            free(tag);
        }
    }
}

bh__tag *bh__tag_get(bh__device *device, const char *name) {
    if (!name || !*name) return &device->memory.untagged;
    size_t length = strlen(name);
    if (length >= BH_TAG_BYTES)
        name += length - (BH_TAG_BYTES - 1); /* keep the end: paths differ there */
    length = strlen(name);
    uint64_t hash = length;
    for (size_t i = 0; i < length; i += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, name + i, length - i < sizeof word ? length - i : sizeof word);
        hash = bh__hash_u64(hash ^ word);
    }
    bh__tag *tag = *tag_link(device, name, hash);
    if (tag) return tag;
    if (device->memory.tag_count >= BH__MAX_TAGS) tags_remove_unused(device);
    tag = calloc(1, sizeof *tag);
    if (!tag) {
        bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for a tag");
        return NULL;
    }
    memcpy(tag->name, name, length + 1);
    tag->hash = hash;
    *tag_link(device, name, hash) = tag;
    device->memory.tag_count++;
    return tag;
}

void bh__tags_free(bh__device *device) {
    for (uint32_t i = 0; i < BH__TAG_BUCKETS; i++) {
        while (device->memory.tags[i]) {
            bh__tag *tag = device->memory.tags[i];
            device->memory.tags[i] = tag->next;
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
            "release buffers with this tag, or raise its limit with bh_memory_set_limit",
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
    tag->references++; /* it must not be removed while the lock is released */
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
    device->memory.refusals++;
    bh__pressure_note(device, BH_PRESSURE_FAILED, bytes);
}

/* Called for memory with a dedicated chunk, which all managed buffers have. `one` is 1 or -1. */
static void count_managed(bh__device *device, const bh__memory *memory, int64_t one) {
    if (!memory->managed && !memory->dedicated->driver_managed) return;
    device->memory.managed.buffers += (uint64_t)one;
    device->memory.managed.bytes += (uint64_t)one * memory->bytes;
}

void bh__usage_add(bh__device *device, bh__memory *memory) {
    device->memory.buffer_count++;
    device->memory.bytes_allocated += memory->bytes;
    device->counters.allocations++;
    if (memory->dedicated) count_managed(device, memory, 1);
    memory->tag->allocations++;
    if (memory->tag->bytes > memory->tag->peak) memory->tag->peak = memory->tag->bytes;
    if (device->memory.bytes_allocated > device->memory.peak_allocated)
        device->memory.peak_allocated = device->memory.bytes_allocated;
    if (device->memory.bytes_allocated >= device->memory.pressure.high) bh__pressure_cross(device);
}

void bh__usage_remove(bh__device *device, bh__memory *memory) {
    if (memory->window) return; /* windows are not counted */
    device->memory.buffer_count--;
    device->memory.bytes_allocated -= memory->bytes;
    bh__tag_discharge(memory->tag, memory->bytes);
    if (memory->dedicated) count_managed(device, memory, -1);
    if (device->memory.bytes_allocated < device->memory.pressure.low) bh__pressure_cross(device);
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
                           .peak = tag->peak,
                           .limit = tag->limit,
                           .allocations = tag->allocations};
    memcpy(out->tag, tag->name, sizeof out->tag);
}

static int compare_tags(const void *a, const void *b) {
    const bh_memory_tag *left = a, *right = b;
    if (left->bytes != right->bytes) return left->bytes < right->bytes ? 1 : -1;
    return strcmp(left->tag, right->tag);
}

static bool tags_collect(bh__device *device, tag_list *out) {
    out->count = 0;
    out->list = malloc((device->memory.tag_count + 1) * sizeof *out->list);
    if (!out->list) return false;
    if (device->memory.untagged.allocations)
        tag_describe(&device->memory.untagged, &out->list[out->count++]);
    for (uint32_t i = 0; i < BH__TAG_BUCKETS; i++) {
        for (const bh__tag *tag = device->memory.tags[i]; tag; tag = tag->next)
            tag_describe(tag, &out->list[out->count++]);
    }
    qsort(out->list, out->count, sizeof *out->list, compare_tags);
    return true;
}

/* `best` has the tags with the most bytes so far. */
static void keep_if_large(const bh__tag *tag, const bh__tag **best, uint32_t *count,
                          uint32_t capacity) {
    uint32_t at = *count;
    while (at > 0 && best[at - 1]->bytes < tag->bytes) at--;
    if (tag->buffers == 0 || at == capacity) return;
    if (*count < capacity) ++*count;
    memmove(&best[at + 1], &best[at], (*count - 1 - at) * sizeof *best);
    best[at] = tag;
}

uint32_t bh__usage_tags(const bh__device *device, bh_memory_tag *out, uint32_t capacity) {
    const bh__tag *best[32];
    uint32_t count = 0, most = sizeof best / sizeof *best;
    if (capacity > most) capacity = most;
    keep_if_large(&device->memory.untagged, best, &count, capacity);
    for (uint32_t i = 0; i < BH__TAG_BUCKETS; i++)
        for (const bh__tag *tag = device->memory.tags[i]; tag; tag = tag->next)
            keep_if_large(tag, best, &count, capacity);
    for (uint32_t i = 0; i < count; i++) tag_describe(best[i], &out[i]);
    return count;
}

static bh_status refuse_listing(void) {
    return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for the listing");
}

bh_status bh_memory_list_tags(bh_device handle, bh_memory_tag *entries, size_t entry_size,
                              size_t capacity, size_t *count) {
    if (bh__list_check(entries, entry_size, capacity, count, "bh_memory_tag") != BH_OK)
        return BH_E_INVALID;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    tag_list tags;
    bool listed = tags_collect(device, &tags);
    bh__device_unlock(device);
    if (!listed) return refuse_listing();
    bh__list_give(entries, entry_size, capacity, count, tags.list, sizeof *tags.list, tags.count);
    free(tags.list);
    return BH_OK;
}

void bh__usage_owners(bh__device *device, char *out, size_t size) {
    enum { NAMED = 3 };
    tag_list tags;
    out[0] = 0;
    if (device->memory.tag_count == 0 || !tags_collect(device, &tags)) return;
    size_t used = 0;
    for (uint32_t i = 0; i < tags.count && i < NAMED && used < size && tags.list[i].bytes; i++) {
        const char *name = tags.list[i].tag;
        size_t length = strlen(name);
        used += (size_t)snprintf(out + used, size - used, "%s\"%s\" %llu in %llu",
                                 i ? ", " : "; largest: ", length > 24 ? name + length - 24 : name,
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

static int compare_entries(const void *a, const void *b) {
    const bh_memory_entry *left = a, *right = b;
    if (left->bytes != right->bytes) return left->bytes < right->bytes ? 1 : -1;
    return (left->address > right->address) - (left->address < right->address);
}

static bool entries_collect(bh__device *device, bh_memory_entry **out, size_t *out_count) {
    size_t capacity = device->memory.buffer_count, count = 0;
    for (const bh__memory *memory = device->memory.leaving; memory; memory = memory->next)
        capacity++;
    bh_memory_entry *list = malloc((capacity + 1) * sizeof *list);
    if (!list) return false;
    uint32_t cursor = 0;
    uint64_t round = ++device->memory.listing;
    for (bh__buffer *buffer; (buffer = bh__table_next(&device->handles.buffers, &cursor));) {
        if (buffer->memory->listed == round || !buffer->memory->block || count == capacity)
            continue;
        buffer->memory->listed = round;
        memory_describe(buffer->memory, BH_MEMORY_LIVE, &list[count++]);
    }
    for (const bh__memory *memory = device->memory.leaving; memory && count < capacity;
         memory = memory->next) {
        if (memory->block) memory_describe(memory, BH_MEMORY_LEAVING, &list[count++]);
    }
    qsort(list, count, sizeof *list, compare_entries);
    *out = list;
    *out_count = count;
    return true;
}

bh_status bh_memory_list(bh_device handle, bh_memory_entry *entries, size_t entry_size,
                         size_t capacity, size_t *count) {
    if (bh__list_check(entries, entry_size, capacity, count, "bh_memory_entry") != BH_OK)
        return BH_E_INVALID;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_memory_entry *list;
    size_t found;
    bool listed = entries_collect(device, &list, &found);
    bh__device_unlock(device);
    if (!listed) return refuse_listing();
    bh__list_give(entries, entry_size, capacity, count, list, sizeof *list, found);
    free(list);
    return BH_OK;
}

/* ---- statistics ---- */

bh_status bh_memory_get_info(bh_device handle, bh_memory_info *out) {
    if (bh__sized_check(out, "bh_memory_info") != BH_OK) return BH_E_INVALID;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh__hooks.reclaim(device);
    if (device->memory.leaving) bh__memory_sweep(device);
    bh__heap *heap = &device->memory.heap;
    bh__heap_settle(heap);
    bh_memory_info info = {.size = out->size,
                           .chunks = device->memory.chunk_count,
                           .buffers = device->memory.buffer_count,
                           .bytes_buffers = device->memory.bytes_allocated,
                           .bytes_used = heap->bytes_used + device->memory.dedicated_bytes +
                                         device->memory.module_bytes,
                           .bytes_reserved = bh__held_bytes(device),
                           .bytes_free = heap->bytes_total - heap->bytes_used,
                           .largest_free = bh__heap_largest_free(heap),
                           .bytes_unused = heap->unused,
                           .limit = device->options.memory_limit,
                           .peak_buffers = device->memory.peak_allocated,
                           .peak_reserved = device->memory.peak_reserved,
                           .refusals = device->memory.refusals,
                           .bytes_modules = device->memory.module_bytes,
                           .managed_buffers = device->memory.managed.buffers,
                           .managed_bytes = device->memory.managed.bytes,
                           .managed_to_device = device->memory.managed.to_device,
                           .managed_to_host = device->memory.managed.to_host};
    for (const bh__memory *memory = device->memory.leaving; memory; memory = memory->next)
        info.bytes_leaving += memory->block ? memory->block->bytes : 0;
    bh__device_unlock(device);
    bh__sized_give(out, &info, sizeof info);
    return BH_OK;
}

bh_status bh_memory_reset_peak(bh_device handle) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    device->memory.peak_allocated = device->memory.bytes_allocated;
    device->memory.peak_reserved = bh__held_bytes(device);
    device->memory.untagged.peak = device->memory.untagged.bytes;
    for (uint32_t i = 0; i < BH__TAG_BUCKETS; i++) {
        for (bh__tag *tag = device->memory.tags[i]; tag; tag = tag->next) tag->peak = tag->bytes;
    }
    bh__device_unlock(device);
    return BH_OK;
}
