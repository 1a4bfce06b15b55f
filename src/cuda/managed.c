/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's managed memory, which it moves between the host and the device by itself. */
#include <stdlib.h>

#include "base/available.h"
#include "base/checked.h"
#include "cuda/state.h"

typedef unsigned long long ull;

enum { MIN_ALIGN = 256 }; /* of whatever the driver allocates */

static bool has(const bh__device_instance *device, int attribute) {
    int value = 0;
    return device->cu.device_attribute(&value, attribute, device->ordinal) == BH__CU_OK && value;
}

static bh_status check_support(const bh__device_instance *device, bh_error *error) {
    const bh__driver *cu = &device->cu;
    const char *missing = NULL;
    if (!cu->managed_alloc || !cu->managed_free || !cu->managed_prefetch || !cu->managed_advise)
        missing = "this driver lacks the functions";
    else if (!has(device, BH__CU_MANAGED_MEMORY))
        missing = "the device has no managed memory";
    else if (!has(device, BH__CU_CONCURRENT_MANAGED))
        missing = "the device cannot share it with the host page by page";
    if (!missing) return BH_OK;
    return bh__fail(
        error, BH_E_UNSUPPORTED, "leave out BH_BUFFER_DRIVER, and use no more than the device has",
        "%s does not support the driver's managed memory: %s", device->info.name, missing);
}

static bh_status check_room(const bh__device_instance *device, uint64_t bytes, bh_error *error) {
    size_t free_bytes = 0, total_bytes = 0;
    device->cu.memory_info(&free_bytes, &total_bytes);
    uint64_t available = bh__available_bytes(device->available), sum;
    if (!bh__add_u64(available, free_bytes, &sum) || bytes <= sum) return BH_OK;
    return bh__fail(error, BH_E_NO_MEMORY,
                    "ask for less, or free memory in this machine or on this device",
                    "%llu bytes of managed memory asked for; this machine has %llu available, and "
                    "%llu of the device's %llu are free besides",
                    (ull)bytes, (ull)available, (ull)free_bytes, (ull)total_bytes);
}

/* The driver says nothing about the alignment of this memory; with `align` bytes more there is an
 * address in it that has it. */
static int allocate(const bh__device_instance *device, const bh__chunk *chunk,
                    bh__cuda_managed *out) {
    uint64_t align = chunk->address > MIN_ALIGN ? chunk->address : 0, bytes;
    if (!bh__add_u64(chunk->bytes, align, &bytes)) return BH__CU_OUT_OF_MEMORY;
    *out = (bh__cuda_managed){.id = chunk->id, .bytes = chunk->bytes};
    int result = device->cu.managed_alloc(&out->allocated, bytes, BH__CU_MANAGED_GLOBAL);
    out->address = align ? (out->allocated + align - 1) & ~(align - 1) : out->allocated;
    return result;
}

bh_status bh__cuda_managed_create(bh__device_instance *device, const bh__chunk *chunk,
                                  bh_error *error, uint64_t *out_address) {
    bh__cuda_free_retired(device);
    bh_status status = check_support(device, error);
    if (status == BH_OK && (chunk->flags & BH__CHUNK_MEASURED))
        status = check_room(device, chunk->bytes, error);
    if (status != BH_OK) return status;
    size_t room = device->managed_count + 1, all = room + device->retired_managed_count;
    bh__cuda_managed *managed = realloc(device->managed, room * sizeof *managed);
    if (managed) device->managed = managed;
    /* Allocated now, so that retiring one never needs memory. */
    bh__cu_address *retired =
        managed ? realloc(device->retired_managed, all * sizeof *retired) : NULL;
    if (!retired)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory for the list of %zu pieces of managed memory", room);
    device->retired_managed = retired;
    bh__cuda_managed *made = &managed[device->managed_count];
    int result = allocate(device, chunk, made);
    if (result != BH__CU_OK)
        return bh__cuda_fail(device, error, result, BH_E_NO_MEMORY,
                             "ask for less, or free memory in this machine or on this device",
                             "%llu bytes of managed memory cannot be made", (ull)chunk->bytes);
    device->managed_count++;
    *out_address = made->address;
    return BH_OK;
}

static bh__cuda_managed *find(const bh__device_instance *device, uint32_t id) {
    for (size_t i = 0; i < device->managed_count; i++) {
        if (device->managed[i].id == id) return &device->managed[i];
    }
    return NULL;
}

/* Freeing waits for running kernels inside the driver, so it is done when the device is idle. */
bool bh__cuda_managed_drop(bh__device_instance *device, uint32_t id) {
    bh__cuda_managed *found = find(device, id);
    if (!found) return false;
    device->retired_managed[device->retired_managed_count++] = found->allocated;
    *found = device->managed[--device->managed_count];
    bh__cuda_free_retired(device);
    return true;
}

void bh__cuda_managed_free_retired(bh__device_instance *device) {
    while (device->retired_managed_count)
        device->cu.managed_free(device->retired_managed[--device->retired_managed_count]);
}

void bh__cuda_managed_free_all(bh__device_instance *device) {
    bh__cuda_managed_free_retired(device);
    while (device->managed_count)
        device->cu.managed_free(device->managed[--device->managed_count].allocated);
    free(device->managed);
    free(device->retired_managed);
    device->managed = NULL;
    device->retired_managed = NULL;
}

/* One kind of advice, each with its opposite. The driver has one preferred location, which either
 * of two bits sets. */
typedef struct advice_kind {
    uint32_t device_bit, host_bit;
    int set; /* what takes it back is the next number */
} advice_kind;

static const advice_kind advice_kinds[] = {
    {BH_ADVISE_PREFER_DEVICE, BH_ADVISE_PREFER_HOST, BH__CU_ADVISE_PREFER},
    {BH_ADVISE_READ_MOSTLY, 0, BH__CU_ADVISE_READ_MOSTLY},
    {BH_ADVISE_ACCESSED_BY_DEVICE, 0, BH__CU_ADVISE_ACCESSED_BY},
    {0, BH_ADVISE_ACCESSED_BY_HOST, BH__CU_ADVISE_ACCESSED_BY}};

bh_status bh__cuda_managed_advise(bh__device_instance *device, const bh__advice_message *what,
                                  bh_error *error) {
    const bh__cuda_managed *managed = find(device, what->chunk);
    if (!managed || !bh__range_fits(what->offset, what->bytes, managed->bytes))
        return bh__fail(error, BH_E_INTERNAL, BH__CUDA_DEFECT,
                        "advice 0x%x about %llu bytes from byte %llu on of chunk %u is not valid",
                        what->advice, (ull)what->bytes, (ull)what->offset, what->chunk);
    for (size_t i = 0; i < sizeof advice_kinds / sizeof *advice_kinds; i++) {
        const advice_kind *kind = &advice_kinds[i];
        uint32_t bits = kind->device_bit | kind->host_bit;
        if (!(what->changed & bits)) continue;
        bool host = !kind->device_bit || what->advice & kind->host_bit;
        int result = device->cu.managed_advise(managed->address + what->offset, what->bytes,
                                               what->advice & bits ? kind->set : kind->set + 1,
                                               host ? BH__CU_THE_HOST : device->ordinal);
        if (result != BH__CU_OK)
            return bh__cuda_fail(device, error, result, BH_E_UNSUPPORTED, "leave this advice out",
                                 "the driver refused advice 0x%x about %llu bytes",
                                 what->changed & bits, (ull)what->bytes);
    }
    return BH_OK;
}

int bh__cuda_managed_prefetch(bh__device_lane *lane, const bh__copy_body *body) {
    const bh__device_instance *device = lane->device;
    int where = body->where == BH_TO_HOST ? BH__CU_THE_HOST : device->ordinal;
    return device->cu.managed_prefetch(body->target, body->bytes, where, lane->stream);
}
