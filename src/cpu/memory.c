/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of memory, mapped twice at addresses that the application chose, and host regions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/available.h"
#include "base/checked.h"
#include "base/shadow.h"
#include "cpu/cpu.h"
#include "wire/share.h"

typedef unsigned long long ull;

static bh_status check_chunk(const bh__device_instance *device, const bh__chunk *chunk,
                             bh_error *error) {
    uint64_t mask = BH__CPU_GRANULARITY - 1, end;
    if (chunk->bytes == 0 || (chunk->bytes & mask) || (chunk->address & mask) ||
        (chunk->read_only_address & mask) || chunk->address == 0 ||
        !bh__add_u64(chunk->address, chunk->bytes, &end) ||
        !bh__add_u64(chunk->read_only_address, chunk->bytes, &end))
        return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT,
                        "a chunk of %llu bytes at 0x%llx and 0x%llx is not a multiple of "
                        "%d bytes",
                        (ull)chunk->bytes, (ull)chunk->address, (ull)chunk->read_only_address,
                        BH__CPU_GRANULARITY);
    for (size_t i = 0; i < device->chunk_count; i++) {
        if (device->chunks[i].chunk.id == chunk->id)
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

static void unmap_all(const bh__cpu_chunk *self) {
    const bh__chunk *chunk = &self->chunk;
    if (chunk->flags & BH__CHUNK_DRIVER) {
        munmap((void *)(uintptr_t)chunk->address, chunk->bytes);
        return;
    }
    bh__cpu_unmap_at(chunk->address, chunk->bytes);
    if (chunk->read_only_address) bh__cpu_unmap_at(chunk->read_only_address, chunk->bytes);
    if (self->marks) bh__share_unmap(self->marks, chunk->bytes);
    if (self->map) bh__share_unmap(self->map, bh__map_bytes(chunk->bytes));
}

/* With checks: maps the shadow, which is behind the chunk's bytes. */
static bh_status map_shadow(bh__cpu_chunk *self, int fd, bh_error *error) {
    uint64_t bytes = self->chunk.bytes;
    struct stat info;
    if (fstat(fd, &info) < 0 || (uint64_t)info.st_size < bh__checked_chunk_bytes(bytes))
        return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT, "a chunk of %llu bytes has no shadow",
                        (ull)bytes);
    self->marks = bh__share_map(fd, bh__marks_offset(bytes), bytes, true);
    self->map = bh__share_map(fd, bh__map_offset(bytes), bh__map_bytes(bytes), false);
    if (self->marks && self->map) return BH_OK;
    char reason[128];
    return bh__fail(error, BH_E_NO_MEMORY, "use smaller buffers, or check without so many",
                    "the shadow of a chunk of %llu bytes cannot be mapped: %s", (ull)bytes,
                    bh__errno_text(errno, reason, sizeof reason));
}

bh_status bh__cpu_chunk_map(bh__device_instance *device, const bh__chunk *chunk, int fd,
                            bh_error *error) {
    bh_status status = check_chunk(device, chunk, error);
    if (status != BH_OK) return status;
    bh__cpu_chunk *chunks = realloc(device->chunks, (device->chunk_count + 1) * sizeof *chunks);
    if (!chunks)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory for the list of %zu chunks", device->chunk_count + 1);
    device->chunks = chunks;
    status = map_both(chunk, fd, error);
    if (status != BH_OK) return status;
    bh__cpu_chunk *self = &chunks[device->chunk_count];
    *self = (bh__cpu_chunk){.chunk = *chunk};
    if (device->services->check) status = map_shadow(self, fd, error);
    device->chunk_count++;
    if (status == BH_OK) status = bh__cpu_view_renew(device, error);
    if (status != BH_OK) {
        device->chunk_count--;
        unmap_all(self);
        return status;
    }
    device->chunk_bytes += chunk->bytes;
    return BH_OK;
}

bh_status bh__cpu_chunk_create(bh__device_instance *device, const bh__chunk *chunk, bh_error *error,
                               int *out_fd) {
    uint64_t total = device->info.memory_total;
    if (!bh__range_fits(device->chunk_bytes, chunk->bytes, total))
        return bh__fail(error, BH_E_NO_MEMORY, "release buffers or use smaller ones",
                        "%llu bytes more would make %llu in all; this machine has %llu",
                        (ull)chunk->bytes, (ull)(device->chunk_bytes + chunk->bytes), (ull)total);
    int fd = bh__share_create("bulkhead-chunk", device->services->check
                                                    ? bh__checked_chunk_bytes(chunk->bytes)
                                                    : chunk->bytes);
    if (fd < 0) {
        char reason[128];
        return bh__fail(error, BH_E_NO_MEMORY,
                        bh__errno_fix(-fd, "release buffers or use smaller ones"),
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

bh_status bh__cpu_chunk_unmap(bh__device_instance *device, uint32_t id, bh_error *error) {
    for (size_t i = 0; i < device->chunk_count; i++) {
        if (device->chunks[i].chunk.id != id) continue;
        bh__cpu_chunk gone = device->chunks[i];
        bh__cpu_chunk *its = &device->chunks[i];
        size_t behind = (--device->chunk_count - i) * sizeof *its;
        memmove(its, its + 1, behind); /* chunks stay in the order of their addresses */
        (void)bh__cpu_view_renew(device, NULL);
        if (!(gone.chunk.flags & BH__CHUNK_DRIVER)) device->chunk_bytes -= gone.chunk.bytes;
        unmap_all(&gone);
        return BH_OK;
    }
    return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT, "there is no chunk %u to unmap", id);
}

/* ---- memory that only this worker has ---- */

static bh_status refuse_driver(const bh__chunk *chunk, int number, bh_error *error) {
    char reason[128];
    return bh__fail(error, BH_E_NO_MEMORY, "ask for less, or free memory in this machine",
                    "%llu bytes of the worker's own memory cannot be mapped: %s", (ull)chunk->bytes,
                    bh__errno_text(number, reason, sizeof reason));
}

/* Maps bytes at a multiple of `align`: more than needed, of which both ends are given back. */
static void *map_aligned(uint64_t bytes, uint64_t align) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), more = align > page ? align - page : 0, whole;
    if (!bh__add_u64(bytes, more, &whole)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    uint8_t *from = mmap(NULL, whole, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (from == MAP_FAILED || more == 0) return from;
    uint64_t before = -(uintptr_t)from & (align - 1), after = more - before;
    if (before) munmap(from, before);
    if (after) munmap(from + before + bytes, after);
    return from + before;
}

bh_status bh__cpu_driver_create(bh__device_instance *device, const bh__chunk *chunk,
                                bh_error *error, uint64_t *out_address) {
    uint64_t available = bh__available_bytes(device->available);
    if ((chunk->flags & BH__CHUNK_MEASURED) && chunk->bytes > available)
        return bh__fail(error, BH_E_NO_MEMORY, "ask for less, or free memory in this machine",
                        "%llu bytes of managed memory asked for; this machine has %llu available, "
                        "and the device none besides",
                        (ull)chunk->bytes, (ull)available);
    bh__cpu_chunk *chunks = realloc(device->chunks, (device->chunk_count + 1) * sizeof *chunks);
    if (!chunks) return refuse_driver(chunk, ENOMEM, error);
    device->chunks = chunks;
    void *memory = map_aligned(chunk->bytes, chunk->address);
    if (memory == MAP_FAILED) return refuse_driver(chunk, errno, error);
    bh__cpu_chunk *self = &chunks[device->chunk_count++];
    *self = (bh__cpu_chunk){.chunk = *chunk};
    self->chunk.address = (uintptr_t)memory;
    self->chunk.read_only_address = 0;
    bh_status status = bh__cpu_view_renew(device, error);
    if (status != BH_OK) {
        device->chunk_count--;
        munmap(memory, chunk->bytes);
        return status;
    }
    *out_address = (uintptr_t)memory;
    return BH_OK;
}

/* There is only one memory, so advice has no effect. It is checked all the same. */
bh_status bh__cpu_driver_advise(bh__device_instance *device, const bh__advice_message *what,
                                bh_error *error) {
    for (size_t i = 0; i < device->chunk_count; i++) {
        const bh__chunk *chunk = &device->chunks[i].chunk;
        if (chunk->id == what->chunk && (chunk->flags & BH__CHUNK_DRIVER) &&
            bh__range_fits(what->offset, what->bytes, chunk->bytes))
            return BH_OK;
    }
    return bh__fail(
        error, BH_E_INTERNAL, BH__CPU_DEFECT,
        "advice about %llu bytes from byte %llu on of chunk %u, which does not have them",
        (ull)what->bytes, (ull)what->offset, what->chunk);
}

/* ---- host regions ---- */

bh_status bh__cpu_host_map(bh__device_instance *device, uint32_t id, void *memory, uint64_t bytes,
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

bh_status bh__cpu_host_unmap(bh__device_instance *device, uint32_t id, bh_error *error) {
    for (size_t i = 0; i < device->host_count; i++) {
        if (device->hosts[i].id != id) continue;
        device->hosts[i] = device->hosts[--device->host_count];
        (void)bh__cpu_view_renew(device, NULL);
        return BH_OK;
    }
    return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT, "there is no host region %u to unmap",
                    id);
}

void bh__cpu_unmap_all(bh__device_instance *device) {
    for (size_t i = 0; i < device->chunk_count; i++) unmap_all(&device->chunks[i]);
    free(device->chunks);
    free(device->hosts);
    device->chunks = NULL;
    device->hosts = NULL;
    device->chunk_count = device->host_count = 0;
}
