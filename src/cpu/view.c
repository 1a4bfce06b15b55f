/* SPDX-License-Identifier: Apache-2.0 */
/* Views: immutable snapshots of what is mapped and loaded, in which lanes look things up. */
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"

static int compare_ranges(const void *a, const void *b) {
    uint64_t x = ((const bh__ptx_range *)a)->base, y = ((const bh__ptx_range *)b)->base;
    return (x > y) - (x < y);
}

static int compare_modules(const void *a, const void *b) {
    uint32_t x = ((const bh__cpu_module *)a)->id, y = ((const bh__cpu_module *)b)->id;
    return (x > y) - (x < y);
}

static int compare_hosts(const void *a, const void *b) {
    uint32_t x = ((const bh__cpu_host *)a)->id, y = ((const bh__cpu_host *)b)->id;
    return (x > y) - (x < y);
}

static size_t add_ranges(bh__cpu_view *view, size_t used, const bh__cpu_chunk *chunks, size_t count,
                         bool writable) {
    for (size_t i = 0; i < count; i++) {
        const bh__chunk *chunk = &chunks[i].chunk;
        uint64_t base = writable ? chunk->address : chunk->read_only_address;
        if (!base) continue;
        view->ranges[used++] = (bh__ptx_range){.base = base,
                                               .size = chunk->bytes,
                                               .writable = writable,
                                               .map = chunks[i].map,
                                               .marks = chunks[i].marks,
                                               .canonical = chunk->address};
    }
    return used;
}

/* Chunks are mostly added in the order of their addresses, and each one makes a new view: most need
 * no sorting. */
static void fill_ranges(bh__cpu_view *view, const bh__cpu_chunk *chunks, size_t count) {
    size_t used = add_ranges(view, 0, chunks, count, true);
    used = add_ranges(view, used, chunks, count, false);
    size_t sorted = 1;
    while (sorted < used && view->ranges[sorted - 1].base < view->ranges[sorted].base) sorted++;
    if (sorted < used) qsort(view->ranges, used, sizeof *view->ranges, compare_ranges);
    view->memory.ranges = view->ranges;
    view->memory.count = used;
}

static void view_free(bh__cpu_view *view) {
    free(view->ranges);
    free(view->modules);
    free(view->hosts);
    free(view);
}

static bh__cpu_view *view_create(const bh__device_instance *device) {
    bh__cpu_view *view = calloc(1, sizeof *view);
    if (!view) return NULL;
    /* One more than needed, so that no allocation has zero bytes. */
    view->ranges = malloc((2 * device->chunk_count + 1) * sizeof *view->ranges);
    view->modules = malloc((device->module_count + 1) * sizeof *view->modules);
    view->hosts = malloc((device->host_count + 1) * sizeof *view->hosts);
    if (!view->ranges || !view->modules || !view->hosts) {
        view_free(view);
        return NULL;
    }
    fill_ranges(view, device->chunks, device->chunk_count);
    view->module_count = device->module_count;
    view->host_count = device->host_count;
    view->heap = device->heap;
    if (view->module_count)
        memcpy(view->modules, device->modules, view->module_count * sizeof *view->modules);
    if (view->host_count)
        memcpy(view->hosts, device->hosts, view->host_count * sizeof *view->hosts);
    qsort(view->modules, view->module_count, sizeof *view->modules, compare_modules);
    qsort(view->hosts, view->host_count, sizeof *view->hosts, compare_hosts);
    view->users = 1;
    return view;
}

bh_status bh__cpu_view_renew(bh__device_instance *device, bh_error *error) {
    bh__cpu_view *view = view_create(device);
    if (!view)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory for a list of %zu chunks, %zu modules and %zu host regions",
                        device->chunk_count, device->module_count, device->host_count);
    pthread_mutex_lock(&device->view_lock);
    bh__cpu_view *before = atomic_exchange(&device->view, view);
    pthread_mutex_unlock(&device->view_lock);
    bh__cpu_view_drop(device, &before);
    return BH_OK;
}

void bh__cpu_view_drop(bh__device_instance *device, bh__cpu_view **held) {
    bh__cpu_view *view = *held;
    if (!view) return;
    *held = NULL;
    pthread_mutex_lock(&device->view_lock);
    bool last = --view->users == 0;
    pthread_mutex_unlock(&device->view_lock);
    if (last) view_free(view);
}

void bh__cpu_view_follow(bh__device_instance *device, bh__cpu_view **held) {
    /* The view that is held cannot have been freed and its address reused. */
    if (atomic_load_explicit(&device->view, memory_order_acquire) == *held) return;
    bh__cpu_view_drop(device, held);
    pthread_mutex_lock(&device->view_lock);
    *held = atomic_load(&device->view);
    (*held)->users++;
    pthread_mutex_unlock(&device->view_lock);
}

const bh__cpu_module *bh__cpu_view_module(const bh__cpu_view *view, uint32_t id) {
    bh__cpu_module key = {.id = id};
    return bsearch(&key, view->modules, view->module_count, sizeof key, compare_modules);
}

const bh__cpu_host *bh__cpu_view_host(const bh__cpu_view *view, uint32_t id) {
    bh__cpu_host key = {.id = id};
    return bsearch(&key, view->hosts, view->host_count, sizeof key, compare_hosts);
}

const bh__ptx_range *bh__cpu_view_range(const bh__cpu_view *view, uint64_t address) {
    size_t low = 0, high = view->memory.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (view->ranges[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address - view->ranges[low - 1].base > view->ranges[low - 1].size) return NULL;
    return &view->ranges[low - 1];
}

bool bh__cpu_view_covers(const bh__cpu_view *view, uint64_t address, uint64_t bytes, bool write) {
    const bh__ptx_range *range = bh__cpu_view_range(view, address);
    return range && bytes <= range->size - (address - range->base) && (range->writable || !write);
}
