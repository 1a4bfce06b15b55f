/* SPDX-License-Identifier: Apache-2.0 */
/* How often each kernel ran, and for how long, as workers count it in their areas. */
#include "client/module/module.h"
#include "client/queue/queue.h"

/* A faulty worker may write any value. */
enum { MOST_SHIFT = 16 };

static bh__kernel_total *find(bh__kernel_total *list, uint32_t *count, uint32_t room,
                              uint64_t key) {
    for (uint32_t i = 0; i < *count; i++)
        if (list[i].key == key) return &list[i];
    if (*count == room) return NULL;
    list[*count] = (bh__kernel_total){.key = key};
    return &list[(*count)++];
}

static void read_lane(const bh__lane_area *words, bh__kernel_total *list, uint32_t *count,
                      uint32_t room) {
    for (uint32_t i = 0; i < BH__KERNEL_PLACES; i++) {
        const bh__kernel_counts *from = &words->kernels[i];
        uint64_t key = atomic_load_explicit(&from->key, memory_order_relaxed);
        uint64_t launches = atomic_load_explicit(&from->launches, memory_order_relaxed);
        uint64_t ns = atomic_load_explicit(&from->ns, memory_order_relaxed);
        if (key == 0 || launches >> (64 - MOST_SHIFT) || ns >> (64 - MOST_SHIFT)) continue;
        bh__kernel_total *to = find(list, count, room, key);
        if (!to) return;
        to->launches += launches;
        to->ns += ns;
    }
}

uint32_t bh__kernel_totals(bh__device *device, bh__kernel_total *out, uint32_t room) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < device->queue.lane_limit; i++)
        if (device->lanes[i].exists)
            read_lane(bh__lane_words(device, &device->lanes[i]), out, &count, room);
    return count;
}

void bh__kernel_total_add(const bh__kernel *kernel, const bh__kernel_total *list, uint32_t count,
                          uint64_t *timed, uint64_t *ns) {
    uint64_t key = bh__kernel_key(kernel->module->number, kernel->index);
    *timed = kernel->timed;
    *ns = kernel->device_ns;
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].key != key) continue;
        *timed += list[i].launches;
        *ns += list[i].ns;
    }
    if (*timed > kernel->submitted) *timed = kernel->submitted;
}

void bh__kernels_settle(bh__device *device) {
    bh__kernel_total list[BH__KERNEL_TOTALS];
    uint32_t count = bh__kernel_totals(device, list, BH__KERNEL_TOTALS);
    for (bh__module *module = device->module.list; module && count; module = module->next) {
        for (uint32_t i = 0; i < count; i++) {
            uint32_t index = (uint32_t)list[i].key;
            if (list[i].key >> 32 != (uint64_t)module->number + 1 || index >= module->kernel_count)
                continue;
            bh__kernel *kernel = &module->kernels[index];
            bh__kernel_total_add(kernel, &list[i], 1, &kernel->timed, &kernel->device_ns);
        }
    }
}
