/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers with a dedicated chunk: shareable ones, and all buffers in guard mode. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/hooks.h"
#include "client/jobs/jobs.h"
#include "client/memory/memory.h"

typedef unsigned long long ull;

/* Takes addresses that are also free in this process, and reserves them there. */
static bool take_mirrored(bh__device *device, uint64_t bytes, uint64_t *out) {
    enum { MAX_TRIES = 64 };
    uint64_t taken[MAX_TRIES];
    uint32_t tries = 0;
    bool found = false;
    while (!found && tries < MAX_TRIES && bh__addresses_take(device, bytes, out)) {
        found = bh__addresses_reserve(device->memory.addresses.base + *out, bytes);
        if (found) break;
        taken[tries++] = *out;
        /* Buffers of another device are there: continue after the last of them. */
        uint64_t above = bh__hooks.addresses_above(device->memory.addresses.base +
                                                   device->memory.addresses.next);
        if (above) {
            uint64_t unit = device->memory.chunk_granularity;
            uint64_t next = (above - device->memory.addresses.base + unit - 1) / unit * unit;
            if (next > device->memory.addresses.limit) break;
            device->memory.addresses.next = next;
        }
    }
    while (tries) bh__addresses_give(device, taken[--tries], bytes);
    return found;
}

/* ---- creating and importing ---- */

static bh_status refuse_record(void) {
    return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                      "no host memory for a buffer's record");
}

static bh_status refuse_limit(bh__device *device, uint64_t bytes) {
    bh__usage_refused(device, bytes);
    return bh__refuse(
        BH_E_NO_MEMORY, "release buffers, or raise memory_limit if the device has more",
        "%llu bytes asked for, in a dedicated chunk; the device holds %llu of at most "
        "%llu",
        (ull)bytes, (ull)bh__held_bytes(device), (ull)device->options.memory_limit);
}

/* Makes room within the device's limit: gives back unused chunks of the pool. */
static bh_status make_room(bh__device *device, uint64_t bytes) {
    uint64_t limit = device->options.memory_limit;
    bh__hooks.reclaim(device);
    for (;;) {
        uint64_t held = bh__promised_bytes(device);
        if (held <= limit && bytes <= limit - held) return BH_OK;
        uint64_t room = limit > held ? limit - held : 0;
        if (bytes > limit) return refuse_limit(device, bytes);
        if (bh__chunks_trim(device, bytes - room, false) || bh__check_release_retired(device))
            continue;
        if (!device->memory.making_bytes) return refuse_limit(device, bytes);
        bh__device_pause(device, BH__NS_PER_MS / 10); /* chunks in the making may fail */
    }
}

/* Makes the records of a dedicated chunk and takes its addresses. Nothing is mapped yet. */
static bh_status prepare(bh__device *device, uint64_t chunk_bytes, uint32_t how, bh__memory **out) {
    bool guarded = how & BH__DEDICATED_GUARDED;
    bh_status status = make_room(device, chunk_bytes);
    if (status != BH_OK) return status;
    bh__memory *memory = bh__memory_new(device);
    bh__dedicated *dedicated = memory ? calloc(1, sizeof *dedicated) : NULL;
    bh__job *unmap_job = dedicated ? calloc(1, sizeof *unmap_job) : NULL;
    if (!unmap_job) {
        free(dedicated);
        if (memory) bh__memory_delete(device, memory);
        return refuse_record();
    }
    memory->dedicated = dedicated;
    dedicated->unmap_job = unmap_job;
    dedicated->grant_fd = -1;
    dedicated->span = chunk_bytes + (guarded ? device->memory.chunk_granularity : 0);
    uint64_t offset;
    bool mirrored = how & BH__DEDICATED_MIRRORED;
    if (!(mirrored ? take_mirrored : bh__addresses_take)(device, dedicated->span, &offset)) {
        bh__memory_delete(device, memory);
        if (mirrored)
            return bh__refuse(
                BH_E_NO_MEMORY, "release managed buffers, or allocate smaller ones",
                "no %llu bytes of addresses from 0x%llx on are free both on the device "
                "and in this process",
                (ull)chunk_bytes, (ull)device->memory.addresses.base);
        return bh__refuse(BH_E_NO_MEMORY, "release buffers earlier, or close and reopen the device",
                          "the device's address range of %llu bytes is used up",
                          (ull)device->memory.addresses.limit);
    }
    dedicated->chunk =
        (bh__chunk){.id = device->memory.next_chunk_id++,
                    .bytes = chunk_bytes,
                    .address = device->memory.addresses.base + offset,
                    .read_only_address = device->memory.addresses.read_only_base + offset};
    if (mirrored) {
        dedicated->reserved = dedicated->chunk.address;
        if (guarded)
            bh__addresses_unreserve(dedicated->reserved + chunk_bytes,
                                    dedicated->span - chunk_bytes);
    }
    device->memory.dedicated_bytes += chunk_bytes;
    bh__held_note(device);
    *out = memory;
    return BH_OK;
}

/* The chunk is mapped, maybe at another address than planned: sets the addresses of the memory. */
static void place_memory(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes) {
    bh__dedicated *dedicated = memory->dedicated;
    memory->bytes = bytes;
    memory->address = dedicated->chunk.address + offset;
    memory->read_only_address = dedicated->chunk.read_only_address + offset;
    memory->block = &dedicated->block;
    dedicated->block = (bh__block){.address = memory->address,
                                   .bytes = dedicated->chunk.bytes - offset,
                                   .chunk = dedicated->chunk.id,
                                   .used = true};
    if (bh__checked(device)) bh__check_hand_out(device, memory);
}

static void abandon(bh__device *device, bh__memory *memory) {
    device->memory.dedicated_bytes -= memory->dedicated->chunk.bytes;
    bh__addresses_give(device, memory->dedicated->chunk.address - device->memory.addresses.base,
                       memory->dedicated->span);
    bh__memory_delete(device, memory);
}

bh_status bh__dedicated_create(bh__device *device, uint64_t bytes, uint64_t align, uint32_t how,
                               bh__memory **out) {
    if (align < BH__GUARD_ALIGN) align = BH__GUARD_ALIGN;
    uint64_t lead = how & BH__DEDICATED_LED ? BH__DEDICATED_LEAD : 0, whole, padded;
    if (lead && lead < align) lead = align;
    bool guarded = how & BH__DEDICATED_GUARDED;
    if (!bh__align_up_u64(bytes, align, &padded) || !bh__add_u64(padded, lead, &whole) ||
        !bh__align_up_u64(whole, device->memory.chunk_granularity, &whole))
        return refuse_limit(device, bytes);
    if (whole == 0) whole = device->memory.chunk_granularity; /* a buffer without elements */
    if (device->memory.leaving) bh__memory_sweep(device);
    bh__dedicated_settle(device);
    bh__memory *memory;
    bh_status status = prepare(device, whole, how, &memory);
    if (status != BH_OK) return status;
    bh__dedicated *dedicated = memory->dedicated;
    for (;;) {
        bh__job job = {
            .kind = BH__JOB_ORDER,
            .order = {.type = BH__MSG_CHUNK_CREATE, .chunk = dedicated->chunk, .fd = -1}};
        status = bh__order_run(device, &job);
        if (status == BH_OK) dedicated->chunk = job.order.chunk;
        /* The device itself may be out of memory: give back unused chunks of the pool. */
        if (status != BH_E_NO_MEMORY || !bh__chunks_trim(device, whole, false)) break;
    }
    if (status != BH_OK) {
        if (status == BH_E_NO_MEMORY) bh__usage_refused(device, bytes);
        abandon(device, memory);
        return status;
    }
    place_memory(device, memory, guarded ? whole - padded : lead, bytes);
    *out = memory;
    return BH_OK;
}

bh_status bh__dedicated_adopt(bh__device *device, uint64_t chunk_bytes, uint64_t offset,
                              uint64_t bytes, int fd, bh__memory **out) {
    if (device->memory.leaving) bh__memory_sweep(device);
    bh__dedicated_settle(device);
    bh__memory *memory;
    bh_status status =
        prepare(device, chunk_bytes, bh__guarded(device) ? BH__DEDICATED_GUARDED : 0, &memory);
    if (status != BH_OK) return status;
    bh__job job = {
        .kind = BH__JOB_ORDER,
        .order = {.type = BH__MSG_CHUNK_MAP, .chunk = memory->dedicated->chunk, .fd = fd}};
    status = bh__order_run(device, &job);
    if (status != BH_OK) {
        abandon(device, memory);
        return status;
    }
    memory->dedicated->imported = true;
    place_memory(device, memory, offset, bytes);
    *out = memory;
    return BH_OK;
}

/* ---- giving back ---- */

/* Has every worker unmap the chunk, and closes its descriptor. If another process has imported the
 * memory, it stays allocated. */
static void drop_chunk(bh__device *device, bh__dedicated *dedicated) {
    dedicated->gone = true;
    if (!dedicated->driver_managed) device->memory.dedicated_bytes -= dedicated->chunk.bytes;
    if (bh__is_closing(device)) return; /* all workers are about to end */
    if (!dedicated->driver_managed)
        bh__addresses_give(device, dedicated->chunk.address - device->memory.addresses.base,
                           dedicated->span);
    bh__job *job = dedicated->unmap_job;
    dedicated->unmap_job = NULL;
    *job = (bh__job){.kind = BH__JOB_ORDER,
                     .order = {.type = BH__MSG_CHUNK_UNMAP, .chunk = dedicated->chunk, .fd = -1}};
    for (uint32_t i = 0; i < device->memory.chunk_count; i++) {
        if (device->memory.chunks[i].chunk.id != dedicated->chunk.id) continue;
        bh__check_unmap(&device->memory.chunks[i]);
        bh__fd_close(device->memory.chunks[i].fd);
        device->memory.chunks[i] = device->memory.chunks[--device->memory.chunk_count];
        break;
    }
    if (bh__guarded(device)) {
        job->next = device->memory.unmap_jobs;
        device->memory.unmap_jobs = job;
    } else {
        job->self_owned = true;
        bh__job_post(device, job);
    }
}

void bh__dedicated_give_back(bh__device *device, bh__memory *memory) {
    drop_chunk(device, memory->dedicated);
    if (bh__guarded(device))
        bh__check_retire(device, memory); /* its record is kept for a while, for messages */
    else
        bh__memory_delete(device, memory);
}

void bh__dedicated_settle(bh__device *device) {
    if (bh__guarded(device) && device->memory.leaving) bh__memory_sweep(device);
    while (device->memory.unmap_jobs) {
        bh__job *job = device->memory.unmap_jobs;
        device->memory.unmap_jobs = job->next;
        if (bh__supervises(device)) { /* it must not wait for itself: it sees to it next */
            job->self_owned = true;
            bh__job_post(device, job);
            continue;
        }
        bh_error before = *bh__last();
        if (bh__order_run(device, job) != BH_OK) *bh__last() = before;
        free(job);
    }
}

void bh__dedicated_delete(bh__dedicated *dedicated) {
    if (dedicated->reserved) bh__addresses_unreserve(dedicated->reserved, dedicated->chunk.bytes);
    bh__grant_close(dedicated);
    free(dedicated->unmap_job);
    free(dedicated);
}

/* ---- faults without an address ---- */

void bh__guard_describe(bh__device *device, const bh__use *uses, uint32_t use_count,
                        bh_error *error) {
    size_t size = sizeof error->message, used = strlen(error->message);
    const char *before = "; the device does not report the address; the launch was given";
    for (uint32_t i = 0; i < use_count && used < size; i++) {
        const bh__memory *memory = uses[i].memory;
        size_t element = bh_type_size(memory->first.type);
        if (!uses[i].argument || !memory->block || !element) continue;
        used += (size_t)snprintf(error->message + used, size - used, "%s argument %u, %s[%llu]",
                                 before, uses[i].argument - 1, bh_type_name(memory->first.type),
                                 (ull)(uses[i].bytes / element));
        before = ",";
    }
    if (device->memory.retired.last && used < size)
        snprintf(error->message + used, size - used, "; last released: %s[%llu]",
                 bh_type_name(device->memory.retired.last->first.type),
                 (ull)device->memory.retired.last->first.count);
}
