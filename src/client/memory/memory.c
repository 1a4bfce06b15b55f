/* SPDX-License-Identifier: Apache-2.0 */
/* Memory records: created, released, and given back to the heap once no work uses the memory. */
#include <stdlib.h>

#include "client/core/hooks.h"
#include "client/memory/memory.h"
#include "client/queue/doubt.h"
#include "client/queue/uses.h"

bh__memory *bh__memory_new(bh__device *device) {
    bh__memory *memory = bh__records_take(&device->memory.memory_records, sizeof *memory,
                                          offsetof(bh__memory, next));
    if (!memory) return NULL;
    memory->references = 1;
    memory->uses = memory->use_inline;
    memory->use_capacity = sizeof memory->use_inline / sizeof *memory->use_inline;
    return memory;
}

void bh__memory_delete(bh__device *device, bh__memory *memory) {
    if (memory->dedicated && (memory->managed || memory->dedicated->driver_managed))
        bh__hooks.freed(device, memory);
    if (memory->uses != memory->use_inline) free(memory->uses);
    bh__doubt_free(device, memory);
    if (memory->tag) memory->tag->references--;
    if (memory->dedicated) bh__dedicated_delete(memory->dedicated);
    bh__records_give(&device->memory.memory_records, memory);
}

void bh__memory_drop(bh__device *device, bh__memory *memory) {
    if (memory->window) {
        bh__memory_delete(device, memory);
        return;
    }
    if (bh__checked(device)) {
        bh__check_retire(device, memory);
        return;
    }
    if (memory->dedicated) {
        bh__dedicated_give_back(device, memory);
        return;
    }
    bh__heap_free(&device->memory.heap, memory->block, memory->bytes);
    bh__memory_delete(device, memory);
}

void bh__memory_release(bh__device *device, bh__memory *memory) {
    if (--memory->references > 0) return;
    bh__usage_remove(device, memory);
    if (memory->dedicated && memory->managed) bh__hooks.released(device, memory);
    if (memory->dedicated) bh__grant_withdraw(memory->dedicated);
    if (bh__memory_idle(device, memory)) {
        bh__memory_drop(device, memory);
    } else {
        memory->next = device->memory.leaving;
        device->memory.leaving = memory;
    }
}

void bh__memory_sweep(bh__device *device) {
    bh__memory **link = &device->memory.leaving;
    while (*link) {
        bh__memory *memory = *link;
        if (bh__memory_idle(device, memory)) {
            *link = memory->next;
            bh__memory_drop(device, memory);
        } else {
            link = &memory->next;
        }
    }
}
