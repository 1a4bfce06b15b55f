/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers with a chunk of their own: those that can be shared, and all of them in guard mode. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/internal.h"

typedef unsigned long long ull;

/* Addresses that this process has free too, which it then keeps. */
static bool take_mirrored(bh__device *device, uint64_t bytes, uint64_t *out) {
    enum { MOST_TRIES = 64 };
    uint64_t taken[MOST_TRIES];
    uint32_t tries = 0;
    bool found = false;
    while (!found && tries < MOST_TRIES && bh__addresses_take(device, bytes, out)) {
        found = bh__managed_reserve(device->address_base + *out, bytes);
        if (found) break;
        taken[tries++] = *out;
        /* Another device's buffers lie there: look behind them all. */
        uint64_t above = bh__managed_above(device->address_base + device->next_address);
        if (above) {
            uint64_t unit = device->chunk_granularity;
            uint64_t next = (above - device->address_base + unit - 1) / unit * unit;
            if (next > device->address_limit) break;
            device->next_address = next;
        }
    }
    while (tries) bh__addresses_give(device, taken[--tries], bytes);
    return found;
}

/* ---- making and adopting ---- */

static bh_status refuse_record(void) {
    return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                      "no host memory for a buffer's record");
}

static bh_status refuse_limit(bh__device *device, uint64_t bytes) {
    bh__usage_refused(device, bytes);
    return bh__refuse(BH_E_NO_MEMORY, "free buffers, or raise memory_limit if the device has more",
                      "%llu bytes asked for, in a chunk of their own; the device holds %llu of at "
                      "most %llu",
                      (ull)bytes, (ull)bh__held_bytes(device), (ull)device->options.memory_limit);
}

/* Makes room within the device's limit: chunks of the pool that nobody uses go first. */
static bh_status make_room(bh__device *device, uint64_t bytes) {
    uint64_t limit = device->options.memory_limit;
    for (;;) {
        uint64_t held = bh__promised_bytes(device);
        if (held <= limit && bytes <= limit - held) return BH_OK;
        uint64_t room = limit > held ? limit - held : 0;
        if (bytes > limit) return refuse_limit(device, bytes);
        if (bh__pool_trim(device, bytes - room) || bh__check_relent(device)) continue;
        if (!device->making_bytes) return refuse_limit(device, bytes);
        bh__device_pause(device, BH__NS_PER_MS / 10); /* what others make may not come to be */
    }
}

/* Records for memory in a chunk at addresses of its own; nothing is mapped yet. */
static bh_status prepare(bh__device *device, uint64_t chunk_bytes, uint32_t how, bh__memory **out) {
    bool guarded = how & BH__SOLO_GUARDED;
    bh_status status = make_room(device, chunk_bytes);
    if (status != BH_OK) return status;
    bh__memory *memory = bh__memory_new(device);
    bh__solo *solo = memory ? calloc(1, sizeof *solo) : NULL;
    bh__job *farewell = solo ? calloc(1, sizeof *farewell) : NULL;
    if (!farewell) {
        free(solo);
        if (memory) bh__memory_delete(device, memory);
        return refuse_record();
    }
    memory->solo = solo;
    solo->farewell = farewell;
    solo->deed_fd = -1;
    solo->span = chunk_bytes + (guarded ? device->chunk_granularity : 0);
    uint64_t offset;
    bool mirrored = how & BH__SOLO_MIRRORED;
    if (!(mirrored ? take_mirrored : bh__addresses_take)(device, solo->span, &offset)) {
        bh__memory_delete(device, memory);
        if (mirrored)
            return bh__refuse(
                BH_E_NO_MEMORY, "free managed buffers, or ask for less at once",
                "no %llu bytes of addresses from 0x%llx on are free both on the device "
                "and in this process",
                (ull)chunk_bytes, (ull)device->address_base);
        return bh__refuse(BH_E_NO_MEMORY, "free buffers earlier, or close and reopen the device",
                          "the device's address range of %llu bytes is used up",
                          (ull)device->address_limit);
    }
    solo->chunk = (bh__chunk){.id = device->next_chunk_id++,
                              .bytes = chunk_bytes,
                              .address = device->address_base + offset,
                              .read_only_address = device->read_only_base + offset};
    if (mirrored) {
        solo->reserved = solo->chunk.address;
        if (guarded) bh__managed_unreserve(solo->reserved + chunk_bytes, solo->span - chunk_bytes);
    }
    device->solo_bytes += chunk_bytes;
    bh__held_note(device);
    *out = memory;
    return BH_OK;
}

/* The chunk is there, perhaps elsewhere than was planned. */
static void settle_in(bh__device *device, bh__memory *memory, uint64_t offset, uint64_t bytes) {
    bh__solo *solo = memory->solo;
    memory->bytes = bytes;
    memory->address = solo->chunk.address + offset;
    memory->read_only_address = solo->chunk.read_only_address + offset;
    memory->block = &solo->block;
    solo->block = (bh__block){.address = memory->address,
                              .bytes = solo->chunk.bytes - offset,
                              .chunk = solo->chunk.id,
                              .used = true};
    if (bh__checked(device)) bh__check_hand_out(device, memory);
}

static void abandon(bh__device *device, bh__memory *memory) {
    device->solo_bytes -= memory->solo->chunk.bytes;
    bh__addresses_give(device, memory->solo->chunk.address - device->address_base,
                       memory->solo->span);
    bh__memory_delete(device, memory);
}

bh_status bh__solo_create(bh__device *device, uint64_t bytes, uint64_t align, uint32_t how,
                          bh__memory **out) {
    if (align < BH__GUARD_ALIGN) align = BH__GUARD_ALIGN;
    uint64_t lead = how & BH__SOLO_LED ? BH__SOLO_LEAD : 0, whole, padded;
    bool guarded = how & BH__SOLO_GUARDED;
    if (!bh__align_up_u64(bytes, align, &padded) || !bh__add_u64(padded, lead, &whole) ||
        !bh__align_up_u64(whole, device->chunk_granularity, &whole))
        return refuse_limit(device, bytes);
    if (device->leaving) bh__memory_sweep(device);
    bh__solo_settle(device);
    bh__memory *memory;
    bh_status status = prepare(device, whole, how, &memory);
    if (status != BH_OK) return status;
    bh__solo *solo = memory->solo;
    for (;;) {
        bh__job job = {.kind = BH__JOB_ORDER,
                       .order = {.type = BH__MSG_CHUNK_CREATE, .chunk = solo->chunk, .fd = -1}};
        status = bh__order_run(device, &job);
        if (status == BH_OK) solo->chunk = job.order.chunk;
        /* The device itself may be full: pooled chunks that nobody uses are in the way. */
        if (status != BH_E_NO_MEMORY || !bh__pool_trim(device, whole)) break;
    }
    if (status != BH_OK) {
        if (status == BH_E_NO_MEMORY) bh__usage_refused(device, bytes);
        abandon(device, memory);
        return status;
    }
    settle_in(device, memory, guarded ? whole - padded : lead, bytes);
    *out = memory;
    return BH_OK;
}

bh_status bh__solo_adopt(bh__device *device, uint64_t chunk_bytes, uint64_t offset, uint64_t bytes,
                         int fd, bh__memory **out) {
    if (device->leaving) bh__memory_sweep(device);
    bh__solo_settle(device);
    bh__memory *memory;
    bh_status status =
        prepare(device, chunk_bytes, bh__guarded(device) ? BH__SOLO_GUARDED : 0, &memory);
    if (status != BH_OK) return status;
    bh__job job = {.kind = BH__JOB_ORDER,
                   .order = {.type = BH__MSG_CHUNK_MAP, .chunk = memory->solo->chunk, .fd = fd}};
    status = bh__order_run(device, &job);
    if (status != BH_OK) {
        abandon(device, memory);
        return status;
    }
    memory->solo->imported = true;
    settle_in(device, memory, offset, bytes);
    *out = memory;
    return BH_OK;
}

/* ---- letting go ---- */

/* Has every worker unmap the chunk and gives up its descriptor. The memory itself lives on if
 * somebody else holds it. */
static void drop_chunk(bh__device *device, bh__solo *solo) {
    solo->gone = true;
    if (!solo->driven) device->solo_bytes -= solo->chunk.bytes;
    if (bh__is_closing(device)) return; /* all workers end */
    if (!solo->driven)
        bh__addresses_give(device, solo->chunk.address - device->address_base, solo->span);
    bh__job *job = solo->farewell;
    solo->farewell = NULL;
    *job = (bh__job){.kind = BH__JOB_ORDER,
                     .order = {.type = BH__MSG_CHUNK_UNMAP, .chunk = solo->chunk, .fd = -1}};
    for (uint32_t i = 0; i < device->chunk_count; i++) {
        if (device->chunks[i].chunk.id != solo->chunk.id) continue;
        bh__check_unmap(&device->chunks[i]);
        bh__fd_close(device->chunks[i].fd);
        device->chunks[i] = device->chunks[--device->chunk_count];
        break;
    }
    if (bh__guarded(device)) {
        job->next = device->farewells;
        device->farewells = job;
    } else {
        job->self_owned = true;
        bh__job_post(device, job);
    }
}

void bh__solo_give_back(bh__device *device, bh__memory *memory) {
    drop_chunk(device, memory->solo);
    if (bh__guarded(device))
        bh__check_retire(device, memory); /* its name is kept for a while */
    else
        bh__memory_delete(device, memory);
}

void bh__solo_settle(bh__device *device) {
    if (bh__guarded(device) && device->leaving) bh__memory_sweep(device);
    while (device->farewells) {
        bh__job *job = device->farewells;
        device->farewells = job->next;
        bh_error before = *bh__last();
        if (bh__order_run(device, job) != BH_OK) *bh__last() = before;
        free(job);
    }
}

void bh__solo_delete(bh__solo *solo) {
    if (solo->reserved) bh__managed_unreserve(solo->reserved, solo->chunk.bytes);
    bh__deed_close(solo);
    free(solo->farewell);
    free(solo);
}

/* ---- faults that the device does not place ---- */

void bh__guard_describe(bh__device *device, const bh__use *uses, uint32_t use_count,
                        bh_error *error) {
    size_t size = sizeof error->message, used = strlen(error->message);
    const char *before = "; the device does not tell the address; it was given";
    for (uint32_t i = 0; i < use_count && used < size; i++) {
        const bh__memory *memory = uses[i].memory;
        size_t element = bh_type_size(memory->first.type);
        if (!uses[i].argument || !memory->block || !element) continue;
        used += (size_t)snprintf(error->message + used, size - used, "%s argument %u, %s[%llu]",
                                 before, uses[i].argument - 1, bh_type_name(memory->first.type),
                                 (ull)(uses[i].bytes / element));
        before = ",";
    }
    if (device->retired_last && used < size)
        snprintf(error->message + used, size - used, "; last released: %s[%llu]",
                 bh_type_name(device->retired_last->first.type),
                 (ull)device->retired_last->first.count);
}
