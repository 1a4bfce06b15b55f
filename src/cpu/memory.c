/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of memory, mapped twice at addresses of the application's choice, and host regions. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/checked.h"
#include "cpu/cpu.h"
#include "wire/share.h"

typedef unsigned long long ull;

static bh_status check_chunk(const bh__device *device, const bh__chunk *chunk, bh_error *error) {
    uint64_t mask = BH__CPU_GRANULARITY - 1, end;
    if (chunk->bytes == 0 || (chunk->bytes & mask) || (chunk->address & mask) ||
        (chunk->read_only_address & mask) || chunk->address == 0 ||
        !bh__add_u64(chunk->address, chunk->bytes, &end) ||
        !bh__add_u64(chunk->read_only_address, chunk->bytes, &end))
        return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT,
                        "a chunk of %llu bytes at 0x%llx and 0x%llx is not made of whole pieces of "
                        "%d bytes",
                        (ull)chunk->bytes, (ull)chunk->address, (ull)chunk->read_only_address,
                        BH__CPU_GRANULARITY);
    for (size_t i = 0; i < device->chunk_count; i++) {
        if (device->chunks[i].id == chunk->id)
            return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT, "chunk %u is mapped already",
                            chunk->id);
    }
    return BH_OK;
}

static bh_status map_alias(uint64_t address, uint64_t bytes, int fd, bool writable,
                           bh_error *error) {
    int result = bh__cpu_map_at(address, bytes, fd, writable);
    if (result == 0) return BH_OK;
    char reason[128];
    return bh__fail(
        error, BH_E_NO_MEMORY,
        "see that nothing preloaded into the worker uses these addresses and that "
        "ulimit -v leaves room",
        "%llu bytes cannot be mapped at 0x%llx in the worker: %s", (ull)bytes, (ull)address,
        result == EEXIST ? "the address is taken" : bh__errno_text(result, reason, sizeof reason));
}

static bh_status map_both(const bh__chunk *chunk, int fd, bh_error *error) {
    bh_status status = map_alias(chunk->address, chunk->bytes, fd, true, error);
    if (status != BH_OK || chunk->read_only_address == 0) return status;
    status = map_alias(chunk->read_only_address, chunk->bytes, fd, false, error);
    if (status != BH_OK) bh__cpu_unmap_at(chunk->address, chunk->bytes);
    return status;
}

static void unmap_both(const bh__chunk *chunk) {
    bh__cpu_unmap_at(chunk->address, chunk->bytes);
    if (chunk->read_only_address) bh__cpu_unmap_at(chunk->read_only_address, chunk->bytes);
}

bh_status bh__cpu_chunk_map(bh__device *device, const bh__chunk *chunk, int fd, bh_error *error) {
    bh_status status = check_chunk(device, chunk, error);
    if (status != BH_OK) return status;
    bh__chunk *chunks = realloc(device->chunks, (device->chunk_count + 1) * sizeof *chunks);
    if (!chunks)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory for the list of %zu chunks", device->chunk_count + 1);
    device->chunks = chunks;
    status = map_both(chunk, fd, error);
    if (status != BH_OK) return status;
    chunks[device->chunk_count++] = *chunk;
    status = bh__cpu_view_renew(device, error);
    if (status != BH_OK) {
        device->chunk_count--;
        unmap_both(chunk);
        return status;
    }
    device->chunk_bytes += chunk->bytes;
    return BH_OK;
}

bh_status bh__cpu_chunk_create(bh__device *device, const bh__chunk *chunk, bh_error *error,
                               int *out_fd) {
    uint64_t total = device->info.memory_total;
    if (!bh__range_fits(device->chunk_bytes, chunk->bytes, total))
        return bh__fail(error, BH_E_NO_MEMORY, "release buffers or use smaller ones",
                        "%llu bytes more would make %llu in all; this machine has %llu",
                        (ull)chunk->bytes, (ull)(device->chunk_bytes + chunk->bytes), (ull)total);
    int fd = bh__share_create("bulkhead-chunk", chunk->bytes);
    if (fd < 0) {
        char reason[128];
        return bh__fail(error, BH_E_NO_MEMORY, "release buffers or use smaller ones",
                        "a chunk of %llu bytes cannot be made: %s", (ull)chunk->bytes,
                        bh__errno_text(-fd, reason, sizeof reason));
    }
    bh_status status = bh__cpu_chunk_map(device, chunk, fd, error);
    if (status != BH_OK)
        close(fd);
    else
        *out_fd = fd;
    return status;
}

bh_status bh__cpu_chunk_unmap(bh__device *device, uint32_t id, bh_error *error) {
    for (size_t i = 0; i < device->chunk_count; i++) {
        if (device->chunks[i].id != id) continue;
        bh__chunk gone = device->chunks[i];
        device->chunks[i] = device->chunks[device->chunk_count - 1];
        device->chunk_count--;
        bh_status status = bh__cpu_view_renew(device, error);
        if (status != BH_OK) {
            device->chunks[device->chunk_count++] = device->chunks[i];
            device->chunks[i] = gone;
            return status;
        }
        device->chunk_bytes -= gone.bytes;
        unmap_both(&gone);
        return BH_OK;
    }
    return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT, "there is no chunk %u to unmap", id);
}

bh_status bh__cpu_host_map(bh__device *device, uint32_t id, void *memory, uint64_t bytes,
                           bh_error *error) {
    for (size_t i = 0; i < device->host_count; i++) {
        if (device->hosts[i].id == id)
            return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT,
                            "host region %u is mapped already", id);
    }
    bh__cpu_host *hosts = realloc(device->hosts, (device->host_count + 1) * sizeof *hosts);
    if (!hosts)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory for the list of %zu host regions", device->host_count + 1);
    device->hosts = hosts;
    hosts[device->host_count++] = (bh__cpu_host){id, memory, bytes};
    bh_status status = bh__cpu_view_renew(device, error);
    if (status != BH_OK) device->host_count--;
    return status;
}

bh_status bh__cpu_host_unmap(bh__device *device, uint32_t id, bh_error *error) {
    for (size_t i = 0; i < device->host_count; i++) {
        if (device->hosts[i].id != id) continue;
        bh__cpu_host gone = device->hosts[i];
        device->hosts[i] = device->hosts[device->host_count - 1];
        device->host_count--;
        bh_status status = bh__cpu_view_renew(device, error);
        if (status != BH_OK) {
            device->hosts[device->host_count++] = device->hosts[i];
            device->hosts[i] = gone;
        }
        return status;
    }
    return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT, "there is no host region %u to unmap",
                    id);
}

void bh__cpu_unmap_all(bh__device *device) {
    for (size_t i = 0; i < device->chunk_count; i++) unmap_both(&device->chunks[i]);
    free(device->chunks);
    free(device->hosts);
    device->chunks = NULL;
    device->hosts = NULL;
    device->chunk_count = device->host_count = 0;
}
