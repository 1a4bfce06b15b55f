/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of device memory, each mapped twice at addresses that the application chose, and host
 * regions. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "cuda/state.h"

typedef unsigned long long ull;

/* ---- one mapping ---- */

/* The address ranges that the application uses for chunks, or as much of them as the driver
 * reserves. The driver reserves chosen addresses only for large ranges, so they are reserved as a
 * whole and chunks are mapped into them. */
#define ADDRESS_BASE   0x200000000000ull
#define READ_ONLY_BASE 0x400000000000ull
enum { MAX_ADDRESS_BITS = 42, MIN_ADDRESS_BITS = 38 };

static bool reserve_at(bh__device_instance *device, uint64_t base, uint64_t bytes) {
    bh__cu_address got = 0;
    if (device->cu.address_reserve(&got, bytes, 0, base, 0) != BH__CU_OK) return false;
    if (got == base) return true;
    device->cu.address_free(got, bytes);
    return false;
}

bh_status bh__cuda_reserve(bh__device_instance *device, bh_error *error) {
    for (int bits = MAX_ADDRESS_BITS; bits >= MIN_ADDRESS_BITS; bits--) {
        uint64_t bytes = 1ull << bits;
        if (!reserve_at(device, ADDRESS_BASE, bytes)) continue;
        if (reserve_at(device, READ_ONLY_BASE, bytes)) {
            device->address_bytes = bytes;
            return BH_OK;
        }
        device->cu.address_free(ADDRESS_BASE, bytes);
    }
    return bh__fail(error, BH_E_NO_DEVICE,
                    "see that nothing preloaded into the worker uses these addresses, and that "
                    "ulimit -v leaves room",
                    "the driver does not reserve %llu bytes of addresses at 0x%llx and 0x%llx",
                    1ull << MIN_ADDRESS_BITS, ADDRESS_BASE, READ_ONLY_BASE);
}

static bh_status map_alias(bh__device_instance *device, uint64_t address, uint64_t bytes,
                           bh__cu_memory memory, int access, bh_error *error) {
    uint64_t base = access == BH__CU_ACCESS_READ ? READ_ONLY_BASE : ADDRESS_BASE;
    if (address < base || !bh__range_fits(address - base, bytes, device->address_bytes))
        return bh__fail(
            error, BH_E_NO_MEMORY, "close and reopen the device",
            "%llu bytes at 0x%llx lie beyond the %llu that the driver reserved at 0x%llx",
            (ull)bytes, (ull)address, (ull)device->address_bytes, (ull)base);
    bh__cu_access allow = {.location = device->memory_kind.location, .flags = access};
    int result = device->cu.memory_map(address, bytes, 0, memory, 0);
    if (result == BH__CU_OK) {
        result = device->cu.memory_access(address, bytes, &allow, 1);
        if (result == BH__CU_OK) return BH_OK;
        device->cu.memory_unmap(address, bytes);
    }
    return bh__cuda_fail(device, error, result, BH_E_NO_MEMORY,
                         "release buffers, or end other programs on this device",
                         "%llu bytes of memory cannot be mapped at 0x%llx", (ull)bytes,
                         (ull)address);
}

static void unmap_alias(bh__device_instance *device, uint64_t address, uint64_t bytes) {
    device->cu.memory_unmap(address, bytes);
}

static bh_status map_both(bh__device_instance *device, const bh__chunk *chunk, bh__cu_memory memory,
                          bh_error *error) {
    bh_status status =
        map_alias(device, chunk->address, chunk->bytes, memory, BH__CU_ACCESS_READ_WRITE, error);
    if (status != BH_OK || chunk->read_only_address == 0) return status;
    status = map_alias(device, chunk->read_only_address, chunk->bytes, memory, BH__CU_ACCESS_READ,
                       error);
    if (status != BH_OK) unmap_alias(device, chunk->address, chunk->bytes);
    return status;
}

static void unmap_both(bh__device_instance *device, const bh__chunk *chunk) {
    unmap_alias(device, chunk->address, chunk->bytes);
    if (chunk->read_only_address) unmap_alias(device, chunk->read_only_address, chunk->bytes);
}

/* ---- chunks ---- */

/* The mappings keep the memory alive: the handle is released in any case. */
static bh_status add_chunk(bh__device_instance *device, const bh__chunk *chunk,
                           bh__cu_memory memory, bh_error *error) {
    bh__chunk *chunks = realloc(device->chunks, (device->chunk_count + 1) * sizeof *chunks);
    bh_status status = BH_OK;
    if (chunks) {
        device->chunks = chunks;
        status = map_both(device, chunk, memory, error);
    } else {
        status = bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                          "no memory for the list of %zu chunks", device->chunk_count + 1);
    }
    device->cu.memory_release(memory);
    if (status == BH_OK) chunks[device->chunk_count++] = *chunk;
    return status;
}

static bh_status check_chunk(const bh__device_instance *device, const bh__chunk *chunk,
                             bh_error *error) {
    uint64_t mask = device->granularity - 1;
    if (chunk->bytes && !((chunk->bytes | chunk->address | chunk->read_only_address) & mask))
        return BH_OK;
    return bh__fail(error, BH_E_INTERNAL, BH__CUDA_DEFECT,
                    "a chunk of %llu bytes at 0x%llx and 0x%llx is not a multiple of "
                    "%llu bytes",
                    (ull)chunk->bytes, (ull)chunk->address, (ull)chunk->read_only_address,
                    (ull)device->granularity);
}

static bh_status refuse_memory(bh__device_instance *device, uint64_t bytes, int result,
                               bh_error *error) {
    size_t free_bytes = 0, total_bytes = 0;
    device->cu.memory_info(&free_bytes, &total_bytes);
    return bh__cuda_fail(device, error, result, BH_E_NO_MEMORY,
                         "release buffers, use smaller ones, or end other programs on this device",
                         "%llu bytes of device memory were asked for; %llu of %llu are free",
                         (ull)bytes, (ull)free_bytes, (ull)total_bytes);
}

bh_status bh__cuda_chunk_create(bh__device_instance *device, const bh__chunk *chunk,
                                bh_error *error, int *out_fd) {
    bh__cuda_free_retired(device);
    bh_status status = check_chunk(device, chunk, error);
    if (status != BH_OK) return status;
    bh__cu_memory memory;
    int result = device->cu.memory_create(&memory, chunk->bytes, &device->memory_kind, 0);
    if (result != BH__CU_OK) return refuse_memory(device, chunk->bytes, result, error);
    int fd = -1;
    result = device->cu.memory_export(&fd, memory, BH__CU_HANDLE_DESCRIPTOR, 0);
    if (result != BH__CU_OK) {
        device->cu.memory_release(memory);
        return bh__cuda_fail(device, error, result, BH_E_NO_MEMORY,
                             "raise the limit on open files (ulimit -n)",
                             "a chunk of %llu bytes cannot be shared", (ull)chunk->bytes);
    }
    status = add_chunk(device, chunk, memory, error);
    if (status != BH_OK)
        close(fd);
    else
        *out_fd = fd;
    return status;
}

/* A descriptor that another program sent may be anything: the driver's error says nothing about the
 * device, unless the device fails for other work too. */
static bh_status refuse_import(bh__device_instance *device, const bh__chunk *chunk, int result,
                               bh_error *error) {
    int alive = device->cu.stream_query(device->stream);
    bool dead = alive != BH__CU_OK && alive != BH__CU_NOT_READY;
    if (dead || result == BH__CU_OUT_OF_MEMORY)
        return bh__cuda_fail(device, error, dead ? alive : result, BH_E_NO_MEMORY,
                             "release buffers, or end other programs on this device",
                             "chunk %u of %llu bytes cannot be imported", chunk->id,
                             (ull)chunk->bytes);
    const char *name = bh__driver_error_name(&device->cu, result);
    bh__fail(error, BH_E_INVALID, "pass the descriptors of bh_buffer_export, in their order",
             "the descriptor is not %llu bytes of this device's memory: %s (%d)", (ull)chunk->bytes,
             name, result);
    bh__fail_device_code(error, result, name);
    return BH_E_INVALID;
}

bh_status bh__cuda_chunk_map(bh__device_instance *device, const bh__chunk *chunk, int fd,
                             bh_error *error) {
    bh_status status = check_chunk(device, chunk, error);
    if (status != BH_OK) return status;
    bh__cu_memory memory;
    int result = device->cu.memory_import(&memory, (void *)(intptr_t)fd, BH__CU_HANDLE_DESCRIPTOR);
    if (result != BH__CU_OK) return refuse_import(device, chunk, result, error);
    return add_chunk(device, chunk, memory, error);
}

bh_status bh__cuda_chunk_unmap(bh__device_instance *device, uint32_t id, bh_error *error) {
    for (size_t i = 0; i < device->chunk_count; i++) {
        if (device->chunks[i].id != id) continue;
        unmap_both(device, &device->chunks[i]);
        device->chunks[i] = device->chunks[--device->chunk_count];
        return BH_OK;
    }
    if (bh__cuda_managed_drop(device, id)) return BH_OK;
    return bh__fail(error, BH_E_INTERNAL, BH__CUDA_DEFECT, "there is no chunk %u to unmap", id);
}

/* ---- host regions ---- */

static int compare_hosts(const void *a, const void *b) {
    uint32_t x = ((const bh__cuda_host *)a)->id, y = ((const bh__cuda_host *)b)->id;
    return (x > y) - (x < y);
}

const bh__cuda_host *bh__cuda_find_host(const bh__device_instance *device, uint32_t id) {
    bh__cuda_host key = {.id = id};
    return device->host_count
               ? bsearch(&key, device->hosts, device->host_count, sizeof key, compare_hosts)
               : NULL;
}

bh_status bh__cuda_host_map(bh__device_instance *device, uint32_t id, void *memory, uint64_t bytes,
                            bh_error *error) {
    bh__cuda_free_retired(device);
    if (bh__cuda_find_host(device, id))
        return bh__fail(error, BH_E_INTERNAL, BH__CUDA_DEFECT, "host region %u is mapped already",
                        id);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    int result =
        device->cu.host_register(memory, whole, BH__CU_HOST_PORTABLE | BH__CU_HOST_DEVICE_MAP);
    if (result != BH__CU_OK)
        return bh__cuda_fail(
            device, error, result, BH_E_NO_HOST_MEMORY,
            "use smaller or fewer host buffers, or raise the limit on locked memory (ulimit -l)",
            "%llu bytes of host memory cannot be locked for the device", (ull)bytes);
    size_t room = device->host_count + device->retired_host_count + 1;
    pthread_rwlock_wrlock(&device->tables);
    bh__cuda_host *hosts = realloc(device->hosts, room * sizeof *hosts);
    if (hosts) device->hosts = hosts;
    /* Allocated now, so that retiring one never needs memory. */
    bh__cuda_host *retired = hosts ? realloc(device->retired_hosts, room * sizeof *retired) : NULL;
    if (retired) {
        device->retired_hosts = retired;
        hosts[device->host_count++] = (bh__cuda_host){id, memory, bytes};
        qsort(hosts, device->host_count, sizeof *hosts, compare_hosts);
    }
    pthread_rwlock_unlock(&device->tables);
    if (retired) return BH_OK;
    device->cu.host_unregister(memory);
    return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                    "no memory for the list of %zu host regions", room);
}

bh_status bh__cuda_host_unmap(bh__device_instance *device, uint32_t id, bh_error *error) {
    const bh__cuda_host *found = bh__cuda_find_host(device, id);
    if (!found)
        return bh__fail(error, BH_E_INTERNAL, BH__CUDA_DEFECT,
                        "there is no host region %u to unmap", id);
    size_t at = (size_t)(found - device->hosts);
    pthread_rwlock_wrlock(&device->tables);
    device->retired_hosts[device->retired_host_count++] = *found;
    memmove(&device->hosts[at], &device->hosts[at + 1],
            (device->host_count - at - 1) * sizeof *device->hosts);
    device->host_count--;
    pthread_rwlock_unlock(&device->tables);
    bh__cuda_free_retired(device);
    return bh__fail(error, BH_E_BUSY, BH__CUDA_DEFECT, "host region %u is unmapped later", id);
}

void bh__cuda_unmap_all(bh__device_instance *device) {
    for (size_t i = 0; i < device->chunk_count; i++) unmap_both(device, &device->chunks[i]);
    for (size_t i = 0; i < device->host_count; i++)
        device->cu.host_unregister(device->hosts[i].memory);
    bh__cuda_managed_free_all(device);
    device->cu.address_free(ADDRESS_BASE, device->address_bytes);
    device->cu.address_free(READ_ONLY_BASE, device->address_bytes);
    free(device->chunks);
    free(device->hosts);
    free(device->retired_hosts);
    device->chunks = NULL;
    device->hosts = device->retired_hosts = NULL;
    device->chunk_count = device->host_count = 0;
}

/* ---- the self-test ---- */

/* The application's first chunk address. No chunk is mapped yet. */
#define TEST_ADDRESS           ADDRESS_BASE
#define TEST_READ_ONLY_ADDRESS READ_ONLY_BASE

static int exercise(bh__device_instance *device, uint32_t *out) {
    const bh__driver *cu = &device->cu;
    bh__cu_stream stream = device->stream;
    uint32_t seed[4] = {0x600d600d, 1, 2, 3};
    int results[] = {
        cu->fill_8(TEST_ADDRESS, 0, device->granularity, stream),
        cu->fill_16(TEST_ADDRESS, 0x1234, 64, stream),
        cu->fill_32(TEST_ADDRESS + 256, 0xab, 64, stream),
        cu->copy_in(TEST_ADDRESS + 1024, seed, sizeof seed, stream),
        cu->copy_within(TEST_ADDRESS + 2048, TEST_READ_ONLY_ADDRESS + 1024, 1024, stream),
        cu->copy_out(out, TEST_READ_ONLY_ADDRESS + 2048, 4, stream),
        cu->copy_out(out + 1, TEST_READ_ONLY_ADDRESS + 256, 4, stream),
        cu->copy_out(out + 2, TEST_READ_ONLY_ADDRESS, 2, stream),
        cu->stream_synchronize(stream)};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (results[i] != BH__CU_OK) return results[i];
    return BH__CU_OK;
}

bh_status bh__cuda_self_test(bh__device_instance *device, bh_error *error) {
    bh__chunk chunk = {.bytes = device->granularity,
                       .address = TEST_ADDRESS,
                       .read_only_address = TEST_READ_ONLY_ADDRESS};
    bh__cu_memory memory;
    int result = device->cu.memory_create(&memory, chunk.bytes, &device->memory_kind, 0);
    if (result != BH__CU_OK) return refuse_memory(device, chunk.bytes, result, error);
    bh_status status = map_both(device, &chunk, memory, error);
    device->cu.memory_release(memory);
    if (status != BH_OK) return status;
    uint32_t words[3] = {0};
    result = exercise(device, words);
    unmap_both(device, &chunk);
    if (result != BH__CU_OK)
        return bh__cuda_fail(device, error, result, BH_E_NO_DEVICE,
                             "see whether nvidia-smi reports a problem with this device",
                             "the device failed its self-test");
    if (words[0] != 0x600d600d || words[1] != 0xab || words[2] != 0x1234)
        return bh__fail(error, BH_E_NO_DEVICE,
                        "see whether nvidia-smi reports a problem with this device",
                        "the device failed its self-test: it holds 0x%x, 0x%x, 0x%x instead of "
                        "0x600d600d, 0xab, 0x1234",
                        words[0], words[1], words[2]);
    return BH_OK;
}
