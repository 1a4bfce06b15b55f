/* SPDX-License-Identifier: Apache-2.0 */
/* Managed buffers on the driver's own memory: made by each worker for itself, at an address of its
 * own, and lost with it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "client/doubt.h"
#include "client/managed.h"

typedef unsigned long long ull;

bh__driven *bh__driven_of(const bh__memory *memory) {
    return memory->solo ? memory->solo->driven : NULL;
}

/* ---- what is refused ---- */

bh_status bh__driven_refuse_host(const bh__memory *memory, const char *what) {
    return bh__refuse(BH_E_UNSUPPORTED,
                      "reach it with bh_buffer_read, bh_buffer_write and copies, or allocate it "
                      "without BH_MANAGED_DRIVER",
                      "%s: the %llu bytes at 0x%llx are managed by the driver, in the worker: this "
                      "process has no copy of them",
                      what, (ull)memory->bytes, (ull)memory->address);
}

bh_status bh__driven_refuse(const bh__use *uses, uint32_t count, const char *what) {
    for (uint32_t i = 0; i < count; i++) {
        const bh__memory *memory = uses[i].memory;
        if (!bh__driven_of(memory)) continue;
        return bh__refuse(BH_E_UNSUPPORTED, "use bh_launch and the bh_submit calls for it",
                          "%s keeps addresses, and that of the %llu bytes at 0x%llx changes with "
                          "the worker: they are managed by the driver",
                          what, (ull)memory->bytes, (ull)memory->address);
    }
    return BH_OK;
}

bh_status bh__driven_refuse_lost(const bh__memory *memory, bh_error *error) {
    return bh__fail(error, BH_E_STALE,
                    "write the data again, or accept what is there with bh_buffer_accept, then "
                    "submit again",
                    "a buffer of %llu bytes is managed by the driver: its contents were lost with "
                    "the worker, and it lies elsewhere now",
                    (ull)memory->bytes);
}

static bh_status refuse_records(void) {
    return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                      "no host memory for the records of a managed buffer");
}

/* ---- making one ---- */

static bh_status check_options(const bh__device *device, const bh_managed_options *options) {
    const char *mode = bh__checked(device)   ? "BH_DEVICE_CHECK"
                       : bh__guarded(device) ? "BH_DEVICE_GUARD"
                                             : NULL;
    if (mode)
        return bh__refuse(BH_E_UNSUPPORTED,
                          "leave out BH_MANAGED_DRIVER, or open the device "
                          "without it",
                          "%s does not look after memory of the driver's", mode);
    if (options->attach == BH_ATTACH_GLOBAL) return BH_OK;
    return bh__refuse(BH_E_UNSUPPORTED, "leave bh_managed_options.attach at BH_ATTACH_GLOBAL",
                      "bh_managed_options.attach is %u: memory of the driver's is for all lanes",
                      options->attach);
}

static bh__memory *make_records(bh__device *device, uint64_t chunk_bytes) {
    bh__memory *memory = bh__memory_new(device);
    bh__solo *solo = memory ? calloc(1, sizeof *solo) : NULL;
    if (!solo) {
        if (memory) bh__memory_delete(device, memory);
        return NULL;
    }
    memory->solo = solo;
    solo->deed_fd = -1;
    solo->farewell = calloc(1, sizeof *solo->farewell);
    solo->driven = calloc(1, sizeof *solo->driven);
    if (!solo->farewell || !solo->driven) {
        bh__memory_delete(device, memory);
        return NULL;
    }
    solo->driven->memory = memory;
    solo->chunk = (bh__chunk){.id = device->next_chunk_id++,
                              .flags = BH__CHUNK_DRIVER | BH__CHUNK_MEASURED,
                              .bytes = chunk_bytes};
    memory->block = &solo->block;
    solo->block = (bh__block){.bytes = chunk_bytes, .chunk = solo->chunk.id, .used = true};
    return memory;
}

static void move_to(bh__memory *memory, uint64_t address) {
    memory->address = memory->read_only_address = address;
    memory->solo->block.address = memory->solo->chunk.address = address;
}

bh_status bh__driven_create(bh__device *device, uint64_t bytes, const bh_managed_options *options,
                            bh__memory **out) {
    bh_status status = check_options(device, options);
    if (status != BH_OK) return status;
    uint64_t whole;
    if (!bh__align_up_u64(bytes, device->chunk_granularity, &whole))
        return bh__refuse(BH_E_NO_MEMORY, "ask for less", "%llu bytes asked for", (ull)bytes);
    bh__tag *tag = bh__tag_begin(device, options->tag, bytes);
    if (!tag) return bh__last()->status;
    bh__memory *memory = make_records(device, whole);
    if (memory) {
        memory->bytes = bytes;
        bh__job job = {
            .kind = BH__JOB_ORDER,
            .order = {.type = BH__MSG_CHUNK_CREATE, .chunk = memory->solo->chunk, .fd = -1},
            .driven = memory->solo->driven};
        status = bh__order_run(device, &job);
    } else {
        status = refuse_records();
    }
    bh__tag_end(tag, bytes, status == BH_OK ? memory : NULL);
    if (status == BH_OK) {
        *out = memory;
    } else if (memory) {
        bh_error why = *bh__last();
        if (status == BH_E_NO_MEMORY) bh__usage_refused(device, bytes);
        bh__memory_delete(device, memory);
        status = bh__refuse_with(&why);
    }
    return status;
}

static bh__driven *find(const bh__device *device, uint32_t chunk) {
    bh__driven *self = device->driven;
    while (self && self->memory->solo->chunk.id != chunk) self = self->next;
    return self;
}

bool bh__driven_made(bh__device *device, const bh__order *order, uint32_t area,
                     const bh__message *answer) {
    uint64_t address;
    if (answer->data_bytes != sizeof address) return false;
    memcpy(&address, answer->data, sizeof address);
    if (address == 0) return false;
    bh__driven *self = order->job ? order->job->driven : find(device, order->chunk.id);
    if (!self) return true; /* freed since; the order to unmap it is on its way */
    self->addresses[area] = address;
    if (!order->job) return true;
    move_to(self->memory, address);
    self->next = device->driven;
    if (self->next) self->next->previous = self;
    device->driven = self;
    self->listed = true;
    return true;
}

void bh__driven_delete(bh__device *device, bh__driven *self) {
    if (self->listed) {
        if (self->next) self->next->previous = self->previous;
        *(self->previous ? &self->previous->next : &device->driven) = self->next;
    }
    for (uint32_t i = 0; i < BH__ADVICES; i++) free(self->advice[i].list);
    free(self);
}

bool bh__driven_has(const bh__device *device, uint64_t address) {
    for (const bh__driven *self = device->driven; self; self = self->next) {
        if (address - self->memory->address < self->memory->bytes) return true;
    }
    return false;
}

/* ---- workers that come and go ---- */

void bh__driven_brief(bh__device *device, bh__worker *worker,
                      void (*tell)(bh__worker *worker, const bh__order *what)) {
    static const uint32_t advice[BH__ADVICES] = {
        [BH__ADVICE_READ_MOSTLY] = BH_ADVISE_READ_MOSTLY,
        [BH__ADVICE_PREFER_DEVICE] = BH_ADVISE_PREFER_DEVICE,
        [BH__ADVICE_PREFER_HOST] = BH_ADVISE_PREFER_HOST,
        [BH__ADVICE_BY_DEVICE] = BH_ADVISE_ACCESSED_BY_DEVICE,
        [BH__ADVICE_BY_HOST] = BH_ADVISE_ACCESSED_BY_HOST};
    for (const bh__driven *self = device->driven; self; self = self->next) {
        bh__order create = {
            .type = BH__MSG_CHUNK_CREATE, .chunk = self->memory->solo->chunk, .fd = -1};
        create.chunk.flags = BH__CHUNK_DRIVER;
        tell(worker, &create);
        for (uint32_t i = 0; i < BH__ADVICES; i++) {
            for (uint32_t k = 0; k < self->advice[i].count; k++) {
                bh__span span = self->advice[i].list[k];
                bh__advice_message what = {create.chunk.id, advice[i], span.offset, span.bytes};
                tell(worker, &(bh__order){.type = BH__MSG_ADVISE, .advice = what, .fd = -1});
            }
        }
    }
}

void bh__driven_lose(bh__device *device) {
    for (bh__driven *self = device->driven; self; self = self->next)
        bh__doubt_add(device, self->memory, 0, self->memory->bytes, device->stamp);
    device->homeless = device->driven != NULL;
}

void bh__driven_arrive(bh__device *device, uint32_t area) {
    for (bh__driven *self = device->driven; self; self = self->next)
        move_to(self->memory, self->addresses[area]);
    device->homeless = false;
}

bh_status bh__driven_settle(bh__device *device, const bh__submission *submission, bool *out_retry) {
    bool waits = false;
    for (uint32_t i = 0; i < submission->use_count; i++) {
        const bh__use *use = &submission->uses[i];
        if ((use->access & BH_ACCESS_IN) &&
            bh__doubt_reads(device, use->memory, use->offset, use->bytes, UINT64_MAX))
            return BH_OK; /* is refused in any case */
        waits |= bh__driven_of(use->memory) != NULL;
    }
    if (!waits) return BH_OK;
    if (!bh__takes_work(device)) return bh__refuse_work(device);
    if (submission->no_block && submission->busy) *submission->busy = BH_REASON_OTHER;
    if (submission->no_block)
        return bh__refuse(BH_E_BUSY, "submit it again once the device runs",
                          "the worker was lost: where the next one has memory of the driver's is "
                          "not known yet");
    bh__device_pause(device, BH__NS_PER_MS / 5);
    *out_retry = true;
    return BH_OK;
}

/* ---- prefetch, advice, figures ---- */

bh_status bh__driven_prefetch(bh__device *device, bh_buffer handle, uint64_t offset, uint64_t bytes,
                              uint32_t where, bh_lane lane_handle, bh_ticket *out) {
    for (;;) {
        bh__buffer *buffer = bh__managed_get(device, handle, "prefetch", offset, bytes);
        bh__lane *lane = buffer ? bh__lane_get(device, lane_handle) : NULL;
        if (!lane) return bh__last()->status;
        bh__use use = {.memory = buffer->memory,
                       .offset = buffer->offset + offset,
                       .bytes = bytes,
                       .access = BH_ACCESS_IN};
        bh__submission submission = {.lane = lane,
                                     .op = BH__OP_PREFETCH,
                                     .idempotent = true,
                                     .uses = &use,
                                     .use_count = 1,
                                     .copy = {.target = buffer->memory->address + use.offset,
                                              .bytes = bytes,
                                              .where = where}};
        bool retry;
        bh_status status = bh__submit(device, &submission, &retry, out);
        if (status != BH_OK) return status;
        if (retry) continue; /* the lock was let go */
        bh__driven_of(buffer->memory)->prefetches++;
        return BH_OK;
    }
}

bool bh__driven_advised(bh__device *device, const bh__advice_message *what) {
    bh__driven *self = find(device, what->chunk);
    return !self || bh__advice_note(self->advice, what->advice, what->offset, what->bytes);
}

bh_status bh__driven_advise(bh__device *device, const bh__buffer *buffer, uint64_t offset,
                            uint64_t bytes, uint32_t advice) {
    if (device->state == BH_DEVICE_STOPPED) return bh__refuse_with(&device->stop_reason);
    bh__memory *memory = buffer->memory;
    bh__advice_message what = {memory->solo->chunk.id, advice, buffer->offset + offset, bytes};
    bh__job job = {.kind = BH__JOB_ORDER,
                   .order = {.type = BH__MSG_ADVISE, .advice = what, .fd = -1}};
    memory->references++; /* the lock is let go meanwhile */
    bh_status status = bh__order_run(device, &job);
    bh_error before = *bh__last();
    bh__memory_release(device, memory);
    *bh__last() = before;
    return status;
}

void bh__driven_query(const bh__buffer *buffer, bh_managed_info *info) {
    *info = (bh_managed_info){.flags = BH_MANAGED_DRIVER,
                              .bytes = buffer->memory->bytes,
                              .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
                              .prefetches = bh__driven_of(buffer->memory)->prefetches};
}
