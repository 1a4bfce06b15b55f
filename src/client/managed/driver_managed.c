/* SPDX-License-Identifier: Apache-2.0 */
/* Driver-managed buffers (BH_BUFFER_DRIVER). Each worker allocates its own, at an address of its
 * own; the contents are lost with the worker. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "client/core/handles.h"
#include "client/jobs/jobs.h"
#include "client/managed/internal.h"
#include "client/managed/managed.h"
#include "client/memory/memory.h"
#include "client/queue/doubt.h"
#include "client/queue/queue.h"
#include "client/queue/uses.h"

typedef unsigned long long ull;

bh_status bh__driver_managed_refuse_host(const bh__memory *memory, const char *what) {
    return bh__refuse(
        BH_E_UNSUPPORTED,
        "access it with bh_buffer_read, bh_buffer_write and copies, or allocate it "
        "without BH_BUFFER_DRIVER",
        "%s: the buffer of %llu bytes at 0x%llx is driver-managed; this process has no "
        "copy of it",
        what, (ull)memory->bytes, (ull)memory->address);
}

static bh_status refuse_records(void) {
    return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                      "no host memory for the records of a managed buffer");
}

/* ---- creating ---- */

/* Refuses devices that driver-managed buffers do not support. */
static bh_status check_device(const bh__device *device) {
    const char *mode = bh__checked(device)   ? "BH_DEVICE_CHECK"
                       : bh__guarded(device) ? "BH_DEVICE_GUARD"
                                             : NULL;
    if (!mode) return BH_OK;
    return bh__refuse(BH_E_UNSUPPORTED,
                      "allocate without BH_BUFFER_DRIVER, or open the device without that mode",
                      "%s does not support driver-managed memory", mode);
}

static bh__memory *make_records(bh__device *device, uint64_t chunk_bytes, uint64_t align) {
    bh__memory *memory = bh__memory_new(device);
    bh__dedicated *dedicated = memory ? calloc(1, sizeof *dedicated) : NULL;
    if (!dedicated) {
        if (memory) bh__memory_delete(device, memory);
        return NULL;
    }
    memory->dedicated = dedicated;
    dedicated->grant_fd = -1;
    dedicated->unmap_job = calloc(1, sizeof *dedicated->unmap_job);
    dedicated->driver_managed = calloc(1, sizeof *dedicated->driver_managed);
    if (!dedicated->unmap_job || !dedicated->driver_managed) {
        bh__memory_delete(device, memory);
        return NULL;
    }
    dedicated->driver_managed->memory = memory;
    dedicated->driver_managed->align = align;
    dedicated->chunk = (bh__chunk){.id = device->memory.next_chunk_id++,
                                   .flags = BH__CHUNK_DRIVER | BH__CHUNK_MEASURED,
                                   .bytes = chunk_bytes,
                                   .address = align};
    memory->block = &dedicated->block;
    dedicated->block =
        (bh__block){.bytes = chunk_bytes, .chunk = dedicated->chunk.id, .used = true};
    return memory;
}

static void move_to(bh__memory *memory, uint64_t address) {
    memory->address = memory->read_only_address = address;
    memory->dedicated->block.address = memory->dedicated->chunk.address = address;
}

bh_status bh__driver_managed_create(bh__device *device, uint64_t bytes, uint64_t align,
                                    bh__memory **out) {
    uint64_t whole;
    if (align < BH__HEAP_ALIGN) align = BH__HEAP_ALIGN;
    if (check_device(device) != BH_OK) return bh__last()->status;
    if (!bh__align_up_u64(bytes, device->memory.chunk_granularity, &whole))
        return bh__refuse(BH_E_NO_MEMORY, "ask for less", "%llu bytes requested", (ull)bytes);
    bh__memory *memory = make_records(device, whole, align);
    if (!memory) return refuse_records();
    memory->bytes = bytes;
    bh__job job = {
        .kind = BH__JOB_ORDER,
        .order = {.type = BH__MSG_CHUNK_CREATE, .chunk = memory->dedicated->chunk, .fd = -1},
        .driver_managed = memory->dedicated->driver_managed};
    bh_status status = bh__order_run(device, &job);
    if (status == BH_OK) {
        *out = memory;
        return BH_OK;
    }
    bh_error why = *bh__last();
    if (status == BH_E_NO_MEMORY) bh__usage_refused(device, bytes);
    bh__memory_delete(device, memory);
    return bh__refuse_with(&why);
}

static bh__driver_managed *find(const bh__device *device, uint32_t chunk) {
    bh__driver_managed *self = device->managed.driver_managed;
    while (self && self->memory->dedicated->chunk.id != chunk) self = self->next;
    return self;
}

/* Checks an address from a worker: not zero, aligned, no overflow, outside of the addresses of
 * chunks. */
static bool is_valid_address(const bh__device *device, uint64_t address, uint64_t bytes,
                             uint64_t align) {
    uint64_t end, limit = device->memory.addresses.limit;
    if (address == 0 || address % align || !bh__add_u64(address, bytes, &end)) return false;
    return !(address < device->memory.addresses.base + limit &&
             device->memory.addresses.base < end) &&
           !(address < device->memory.addresses.read_only_base + limit &&
             device->memory.addresses.read_only_base < end);
}

bool bh__driver_managed_made(bh__device *device, const bh__order *order, uint32_t area,
                             const bh__message *answer) {
    uint64_t address;
    if (answer->data_bytes != sizeof address) return false;
    memcpy(&address, answer->data, sizeof address);
    if (!is_valid_address(device, address, order->chunk.bytes, order->chunk.address)) return false;
    bh__driver_managed *self =
        order->job ? order->job->driver_managed : find(device, order->chunk.id);
    if (!self) return true; /* freed meanwhile; the order to unmap it follows */
    self->addresses[area] = address;
    if (!order->job) return true;
    move_to(self->memory, address);
    self->next = device->managed.driver_managed;
    if (self->next) self->next->previous = self;
    device->managed.driver_managed = self;
    self->listed = true;
    return true;
}

void bh__driver_managed_delete(bh__device *device, bh__driver_managed *self) {
    if (self->listed) {
        if (self->next) self->next->previous = self->previous;
        *(self->previous ? &self->previous->next : &device->managed.driver_managed) = self->next;
    }
    for (uint32_t i = 0; i < BH__ADVICES; i++) free(self->advice[i].list);
    free(self);
}

bool bh__driver_managed_has(const bh__device *device, uint64_t address) {
    for (const bh__driver_managed *self = device->managed.driver_managed; self; self = self->next) {
        if (address - self->memory->address < self->memory->bytes) return true;
    }
    return false;
}

/* ---- new and lost workers ---- */

void bh__driver_managed_brief(bh__device *device, bh__worker *worker,
                              void (*tell)(bh__worker *worker, const bh__order *what)) {
    for (const bh__driver_managed *self = device->managed.driver_managed; self; self = self->next) {
        bh__order create = {
            .type = BH__MSG_CHUNK_CREATE, .chunk = self->memory->dedicated->chunk, .fd = -1};
        create.chunk.flags = BH__CHUNK_DRIVER;
        create.chunk.address = self->align;
        tell(worker, &create);
        for (uint32_t i = 0; i < BH__ADVICES; i++) {
            for (uint32_t k = 0; k < self->advice[i].count; k++) {
                bh__span span = self->advice[i].list[k];
                bh__advice_message what = {.chunk = create.chunk.id,
                                           .advice = 1u << i,
                                           .changed = 1u << i,
                                           .offset = span.offset,
                                           .bytes = span.bytes};
                tell(worker, &(bh__order){.type = BH__MSG_ADVISE, .advice = what, .fd = -1});
            }
        }
    }
}

void bh__driver_managed_lose(bh__device *device) {
    for (bh__driver_managed *self = device->managed.driver_managed; self; self = self->next)
        bh__doubt_add(device, self->memory, 0, self->memory->bytes, device->queue.stamp);
    device->managed.addresses_unknown = device->managed.driver_managed != NULL;
}

void bh__driver_managed_arrive(bh__device *device, uint32_t area) {
    for (bh__driver_managed *self = device->managed.driver_managed; self; self = self->next)
        move_to(self->memory, self->addresses[area]);
    device->managed.addresses_unknown = false;
}

bh_status bh__driver_managed_settle(bh__device *device, const bh__submission *submission,
                                    bool *out_retry) {
    bool needs_address = false;
    for (uint32_t i = 0; i < submission->use_count; i++) {
        const bh__use *use = &submission->uses[i];
        if ((use->access & BH_ACCESS_IN) &&
            bh__doubt_reads(device, use->memory, use->offset, use->bytes, UINT64_MAX))
            return BH_OK; /* it will be refused anyway */
        needs_address |= bh__driver_managed_of(use->memory) != NULL;
    }
    if (!needs_address) return BH_OK;
    if (!bh__takes_work(device)) return bh__refuse_work(device);
    bool no_block = bh__no_block(submission);
    if (no_block && submission->busy) *submission->busy = BH_REASON_OTHER;
    if (no_block)
        return bh__refuse(
            BH_E_BUSY, "submit it again once the device runs",
            "the worker was lost, and the address of driver-managed memory in the next "
            "one is not known yet");
    bh__device_pause(device, BH__NS_PER_MS / 5);
    *out_retry = true;
    return BH_OK;
}

/* ---- prefetch, advice, query ---- */

bh_status bh__driver_managed_prefetch(bh__device *device, bh_buffer handle, uint64_t offset,
                                      uint64_t bytes, uint32_t where,
                                      const bh_submit_options *options, bh_ticket *out) {
    for (;;) {
        bh__buffer *buffer = bh__managed_get(device, handle, "prefetch", offset, bytes);
        bh__lane *lane = buffer ? bh__lane_get(device, options->lane) : NULL;
        if (!lane) return bh__last()->status;
        bh__use use = {.memory = buffer->memory,
                       .offset = buffer->offset + offset,
                       .bytes = bytes,
                       .access = BH_ACCESS_IN};
        bh__submission submission = {.lane = lane,
                                     .op = BH__OP_PREFETCH,
                                     .idempotent = true,
                                     .no_block = options->flags & BH_SUBMIT_NO_BLOCK,
                                     .uses = &use,
                                     .use_count = 1,
                                     .copy = {.target = buffer->memory->address + use.offset,
                                              .bytes = bytes,
                                              .where = where}};
        bool retry;
        bh_status status = bh__submit(device, &submission, &retry, out);
        if (status != BH_OK) return status;
        if (retry) continue; /* the lock was released */
        bh__driver_managed_of(buffer->memory)->prefetches++;
        return BH_OK;
    }
}

bool bh__driver_managed_advised(bh__device *device, const bh__advice_message *what) {
    bh__driver_managed *self = find(device, what->chunk);
    return !self ||
           bh__advice_note(self->advice, what->advice, what->changed, what->offset, what->bytes);
}

bh_status bh__driver_managed_advise(bh__device *device, const bh__buffer *buffer, uint64_t offset,
                                    uint64_t bytes, uint32_t advice) {
    if (device->state == BH__DEVICE_STOPPED) return bh__refuse_with(&device->stop_reason);
    const uint32_t both = BH_ADVISE_PREFER_DEVICE | BH_ADVISE_PREFER_HOST;
    if ((advice & both) == both)
        return bh__refuse(BH_E_INVALID, "choose one of the two",
                          "advice is 0x%x: driver-managed memory cannot prefer device and host",
                          advice);
    bh__memory *memory = buffer->memory;
    uint64_t first = buffer->offset + offset;
    uint32_t changed = advice;
    for (uint32_t bit = 1; bit < BH__ADVICE_BITS; bit <<= 1)
        if (bh__advice_has(bh__driver_managed_of(memory)->advice, bit, first, bytes))
            changed |= bit;
    if (!changed) return BH_OK;
    bh__advice_message what = {.chunk = memory->dedicated->chunk.id,
                               .advice = advice,
                               .changed = changed,
                               .offset = first,
                               .bytes = bytes};
    bh__job job = {.kind = BH__JOB_ORDER,
                   .order = {.type = BH__MSG_ADVISE, .advice = what, .fd = -1}};
    memory->references++; /* the lock is released meanwhile */
    bh_status status = bh__order_run(device, &job);
    bh_error before = *bh__last();
    bh__memory_release(device, memory);
    *bh__last() = before;
    return status;
}

void bh__driver_managed_query(const bh__buffer *buffer, bh_managed_info *info) {
    *info = (bh_managed_info){.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
                              .prefetches = bh__driver_managed_of(buffer->memory)->prefetches};
}
