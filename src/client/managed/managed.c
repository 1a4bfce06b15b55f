/* SPDX-License-Identifier: Apache-2.0 */
/* Managed buffers: creating and freeing them and their mirrors; attaching, advice, queries. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/jobs/jobs.h"
#include "client/managed/internal.h"
#include "client/managed/managed.h"
#include "client/memory/memory.h"
#include "client/queue/queue.h"
#include "client/queue/uses.h"
#include "wire/share.h"

typedef unsigned long long ull;

/* ---- the registry of mirrors ---- */

static bh__mirror *registry;

void bh__mirror_lock(void) {
    bh__process_lock_take(BH__LOCK_MIRRORS);
}

void bh__mirror_unlock(void) {
    bh__process_lock_give(BH__LOCK_MIRRORS);
}

bh__mirror *bh__mirror_find(const void *pointer) {
    for (bh__mirror *mirror = registry; mirror; mirror = mirror->next) {
        if ((uintptr_t)pointer - (uintptr_t)mirror->pointer < mirror->bytes) return mirror;
    }
    return NULL;
}

void bh__mirror_release(bh__mirror *mirror) {
    bh__process_lock_take(BH__LOCK_MIRRORS);
    bool last = --mirror->references == 0;
    for (bh__mirror **link = &registry; last && *link; link = &(*link)->next) {
        if (*link != mirror) continue;
        *link = mirror->next;
        break;
    }
    bh__process_lock_give(BH__LOCK_MIRRORS);
    if (!last) return;
    munmap(mirror->pointer, mirror->bytes);
    bh__fd_close(mirror->tracker);
    free(mirror);
}

/* ---- addresses ---- */

uint64_t bh__managed_above(uint64_t address) {
    uint64_t end = 0;
    bh__process_lock_take(BH__LOCK_MIRRORS);
    for (const bh__mirror *mirror = registry; mirror; mirror = mirror->next) {
        uint64_t from = (uintptr_t)mirror->pointer, to = from + mirror->bytes;
        if (address < to && to > end) end = to;
    }
    bh__process_lock_give(BH__LOCK_MIRRORS);
    return end;
}

/* ---- creating ---- */

bh_status bh__managed_check(uint32_t flags, uint64_t bytes) {
    if ((flags & BH_BUFFER_UNTRACKED) && !(flags & BH_BUFFER_TRANSPARENT))
        return bh__refuse(BH_E_INVALID, "add BH_BUFFER_TRANSPARENT, or leave it out",
                          "BH_BUFFER_UNTRACKED is set without BH_BUFFER_TRANSPARENT");
    if ((flags & BH_BUFFER_TRANSPARENT) && (flags & BH_BUFFER_DRIVER))
        return bh__refuse(BH_E_UNSUPPORTED, "choose one of them",
                          "BH_BUFFER_DRIVER and BH_BUFFER_TRANSPARENT are both set; driver-managed "
                          "memory is in the worker only, the program cannot access it");
    if ((flags & BH_BUFFER_TRANSPARENT) && !(flags & BH_BUFFER_MANAGED))
        return bh__refuse(BH_E_INVALID, "add BH_BUFFER_MANAGED, or leave it out",
                          "BH_BUFFER_TRANSPARENT is set without BH_BUFFER_MANAGED");
    if (flags & BH_BUFFER_MANAGED && bytes > (uint64_t)INT64_MAX / 2)
        return bh__refuse(BH_E_NO_MEMORY, "allocate at most 2^62 bytes", "%llu bytes requested",
                          (ull)bytes);
    return BH_OK;
}

static bh_status refuse_records(void) {
    return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                      "no host memory for the records of a managed buffer");
}

/* Makes sure that the chunk's addresses are reserved in this process. The worker may have created
 * the chunk at another address than planned, and this process may use that address already. */
static bh_status reserve_address(bh__memory *memory) {
    bh__dedicated *dedicated = memory->dedicated;
    if (dedicated->reserved != dedicated->chunk.address) {
        bh__addresses_unreserve(dedicated->reserved, dedicated->chunk.bytes);
        dedicated->reserved = 0;
        if (!bh__addresses_reserve(dedicated->chunk.address, dedicated->chunk.bytes))
            return bh__refuse(BH_E_BUSY, "try again",
                              "this process already uses some of the %llu bytes at 0x%llx, the "
                              "buffer's address on the device",
                              (ull)dedicated->chunk.bytes, (ull)dedicated->chunk.address);
        dedicated->reserved = dedicated->chunk.address;
    }
    return BH_OK;
}

/* Maps the mirror at the buffer's device address. Gives up the rest of the reservation. */
static bh_status map_mirror(bh__memory *memory, bh__mirror *mirror, int *out_fd) {
    bh__dedicated *dedicated = memory->dedicated;
    char text[128];
    int fd = bh__share_create("bulkhead-managed", mirror->bytes);
    void *wanted = (void *)(uintptr_t)memory->address, *got = MAP_FAILED;
    if (fd >= 0)
        got = mmap(wanted, mirror->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (got == MAP_FAILED) {
        int number = fd < 0 ? -fd : errno;
        if (fd >= 0) close(fd);
        return bh__refuse(
            BH_E_NO_HOST_MEMORY, bh__errno_fix(number, "ask for less, or free host memory"),
            "cannot map %llu bytes of shared memory at 0x%llx: %s", (ull)mirror->bytes,
            (ull)memory->address, bh__errno_text(number, text, sizeof text));
    }
    madvise(got, mirror->bytes, MADV_DONTFORK);
    uint64_t before = memory->address - dedicated->chunk.address;
    uint64_t after = dedicated->chunk.bytes - before - mirror->bytes;
    if (before) bh__addresses_unreserve(dedicated->chunk.address, before);
    if (after) bh__addresses_unreserve(memory->address + mirror->bytes, after);
    dedicated->reserved = 0;
    mirror->pointer = got;
    *out_fd = bh__fd_keep(fd);
    return BH_OK;
}

static void free_records(bh__device *device, bh__managed *self) {
    bh__pages_free(&self->host_newest);
    bh__pages_free(&self->device_newest);
    bh__pages_free(&self->writing_back);
    bh__pages_free(&self->in_part);
    for (uint32_t i = 0; i < BH__ADVICES; i++) free(self->advice[i].list);
    if (self->host) bh__memory_delete(device, self->host);
    free(self->unmap_job);
    free(self);
}

static bh__managed *make_records(bh__device *device, uint64_t bytes, uint64_t page) {
    bh__managed *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->page_bytes = page;
    self->pages = (bytes + page - 1) / page;
    self->mirror = calloc(1, sizeof *self->mirror);
    self->host = bh__memory_new(device);
    self->unmap_job = calloc(1, sizeof *self->unmap_job);
    if (self->mirror && self->host && self->unmap_job &&
        bh__pages_make(&self->host_newest, self->pages) &&
        bh__pages_make(&self->device_newest, self->pages) &&
        bh__pages_make(&self->writing_back, self->pages) &&
        bh__pages_make(&self->in_part, self->pages)) {
        self->mirror->bytes = self->pages * page;
        self->mirror->tracker = -1;
        return self;
    }
    free(self->mirror);
    free_records(device, self);
    return NULL;
}

/* Called for the first transparent buffer: requests that have completed by now have nothing to
 * write back. */
static void expect_write_backs(bh__device *device) {
    if (atomic_load(&device->managed.transparent)) return;
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        if (lane->exists) atomic_store(&lane->written_back, bh__lane_done(device, lane));
    }
    atomic_store(&device->managed.transparent, true);
}

/* Makes the worker map the mirror and links the records. After success only bh__managed_delete
 * undoes it. */
static bh_status map_in_worker(bh__device *device, bh__memory *memory, bh__managed *self, int fd) {
    self->host->host = self->mirror->pointer;
    self->host->bytes = memory->bytes;
    self->host->mirror = true;
    self->host->host_id = device->transfer.next_host_id++;
    bh__host_region region = {.id = self->host->host_id, .bytes = self->mirror->bytes};
    bh__job job = {.kind = BH__JOB_ORDER,
                   .order = {.type = BH__MSG_HOST_MAP, .host = region, .fd = fd},
                   .host = self->host};
    bh_status status = bh__order_run(device, &job);
    if (status != BH_OK) {
        munmap(self->mirror->pointer, self->mirror->bytes);
        bh__fd_close(fd);
        return status;
    }
    memory->managed = self;
    self->memory = memory;
    self->mirror->device = atomic_load(&device->id);
    self->mirror->managed = self;
    self->mirror->references = 1;
    bh__process_lock_take(BH__LOCK_MIRRORS);
    self->mirror->next = registry;
    registry = self->mirror;
    bh__process_lock_give(BH__LOCK_MIRRORS);
    self->next = device->managed.list;
    if (self->next) self->next->previous = self;
    device->managed.list = self;
    return BH_OK;
}

static bh_status attach_to(bh__device *device, bh__managed *self, uint32_t attach, bh_lane handle) {
    uint64_t id = 0;
    if (attach == BH_ATTACH_LANE) {
        const bh__lane *lane = bh__lane_get(device, handle);
        if (!lane) return bh__last()->status;
        id = atomic_load(&lane->id);
    }
    self->attach = attach;
    self->lane = attach == BH_ATTACH_LANE ? handle : (bh_lane){0};
    self->lane_id = id;
    return BH_OK;
}

static void begin_tracking(bh__device *device, bh__managed *self, uint32_t flags) {
    self->flags = flags;
    if (!(flags & BH_BUFFER_TRANSPARENT)) return;
    expect_write_backs(device);
    self->tracking = BH_TRACKING_ALL_WRITTEN;
    bh_error before = *bh__last();
    if (!(flags & BH_BUFFER_UNTRACKED) && bh__track_begin(self->mirror))
        self->tracking = BH_TRACKING_PAGES;
    *bh__last() = before;
}

/* Creates a buffer's memory with its mirror. It has no handle yet. */
static bh_status create_mirrored(bh__device *device, uint64_t bytes,
                                 const bh_buffer_options *options, bh__memory **out) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), whole;
    if (!bh__align_up_u64(bytes, page, &whole))
        return bh__refuse(BH_E_NO_MEMORY, "ask for less", "%llu bytes requested", (ull)bytes);
    uint32_t how = BH__DEDICATED_MIRRORED | (bh__guarded(device) ? BH__DEDICATED_GUARDED : 0);
    bh__memory *memory;
    bh_status status = bh__dedicated_create(device, whole, options->align, how, &memory);
    if (status != BH_OK) return status;
    /* The program and kernels use one address, so inputs have no read-only alias. */
    memory->read_only_address = memory->address;
    memory->bytes = bytes;
    if (bh__checked(device)) bh__check_hand_out(device, memory);
    bh__managed *self = make_records(device, bytes, page);
    int fd = -1;
    status = self ? reserve_address(memory) : refuse_records();
    if (status == BH_OK) status = map_mirror(memory, self->mirror, &fd);
    if (status == BH_OK) status = map_in_worker(device, memory, self, fd);
    if (status == BH_OK) {
        begin_tracking(device, self, options->flags & BH__BUFFER_MIRRORED);
        *out = memory;
        return BH_OK;
    }
    if (self) {
        free(self->mirror);
        free_records(device, self);
    }
    bh_error why = *bh__last();
    bh__dedicated_give_back(device, memory);
    return bh__refuse_with(&why);
}

bh_status bh__managed_create(bh__device *device, uint64_t bytes, const bh_buffer_options *options,
                             bh__memory **out) {
#ifdef BH__ONE_PROCESS
    (void)create_mirrored;
    (void)device;
    (void)bytes;
    (void)options;
    (void)out;
    return bh__refuse(
        BH_E_UNSUPPORTED, "use a build with worker processes",
        "managed buffers: the worker is a thread of this process and uses the address");
#else
    return options->flags & BH_BUFFER_DRIVER
               ? bh__driver_managed_create(device, bytes, options->align, out)
               : create_mirrored(device, bytes, options, out);
#endif
}

void *bh__managed_pointer(const bh__memory *memory) {
    return memory->managed ? memory->managed->mirror->pointer : NULL;
}

uint32_t bh__managed_flags(const bh__memory *memory) {
    if (memory->managed) return memory->managed->flags;
    return bh__driver_managed_of(memory) ? BH_BUFFER_DRIVER : 0;
}

/* ---- freeing ---- */

/* Workers unmap the mirror; the program keeps it while it holds maps. */
void bh__managed_delete(bh__device *device, bh__managed *self) {
    bh__managed_forget(device, self);
    if (self->next) self->next->previous = self->previous;
    *(self->previous ? &self->previous->next : &device->managed.list) = self->next;
    int fd = -1;
    bh__host_region region = {0};
    for (uint32_t i = 0; i < device->transfer.host_count; i++) {
        if (device->transfer.hosts[i].memory != self->host) continue;
        fd = device->transfer.hosts[i].fd;
        region = device->transfer.hosts[i].region;
        device->transfer.hosts[i] = device->transfer.hosts[--device->transfer.host_count];
        break;
    }
    bh__fd_close(fd);
    if (!bh__is_closing(device)) { /* if it is, all workers end */
        bh__job *job = self->unmap_job;
        self->unmap_job = NULL;
        *job = (bh__job){.kind = BH__JOB_ORDER,
                         .order = {.type = BH__MSG_HOST_UNMAP, .host = region, .fd = -1},
                         .self_owned = true};
        bh__job_post(device, job);
    }
    bh__process_lock_take(BH__LOCK_MIRRORS);
    self->mirror->managed = NULL;
    bh__process_lock_give(BH__LOCK_MIRRORS);
    bh__mirror_release(self->mirror);
    free_records(device, self);
}

void bh__managed_delete_all(bh__device *device) {
    while (device->managed.list) bh__memory_delete(device, device->managed.list->memory);
}

/* ---- lookup ---- */

static bh__buffer *find(bh__device *device, bh_buffer handle, const char *what) {
    bh__buffer *buffer = bh__handle_get(device, handle.id, BH__KIND_BUFFER, "buffer");
    if (!buffer || buffer->memory->managed || bh__driver_managed_of(buffer->memory)) return buffer;
    bh__refuse(BH_E_INVALID, "allocate it with BH_BUFFER_MANAGED",
               "%s: the buffer at 0x%llx is not managed", what,
               (ull)(buffer->memory->address + buffer->offset));
    return NULL;
}

bh__buffer *bh__managed_get(bh__device *device, bh_buffer handle, const char *what, uint64_t offset,
                            uint64_t bytes) {
    bh__buffer *buffer = find(device, handle, what);
    if (!buffer || (bytes && bh__range_fits(offset, bytes, buffer->bytes))) return buffer;
    bh__refuse(BH_E_INVALID, "name at least one byte, all of them within the buffer",
               "%s: %llu bytes at offset %llu are empty or outside the buffer of %llu bytes", what,
               (ull)bytes, (ull)offset, (ull)buffer->bytes);
    return NULL;
}

/* Locks the device of a managed buffer, which may be empty, and finds it. */
static bh__buffer *lock_whole(bh_buffer handle, const char *what, bh__device **out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_BUFFER, "buffer", false);
    bh__buffer *buffer = device ? find(device, handle, what) : NULL;
    if (device && !buffer) bh__device_unlock(device);
    *out = device;
    return buffer;
}

bh__buffer *bh__managed_lock(bh_buffer handle, const char *what, uint64_t offset, uint64_t bytes,
                             bh__device **out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_BUFFER, "buffer", false);
    bh__buffer *buffer = device ? bh__managed_get(device, handle, what, offset, bytes) : NULL;
    if (device && !buffer) bh__device_unlock(device);
    *out = device;
    return buffer;
}

bh__buffer *bh__managed_unleased(bh__device *device, bh_buffer handle, const char *what,
                                 uint64_t offset, uint64_t bytes, uint32_t access, bool wait) {
    for (;;) {
        bh__buffer *buffer = bh__managed_get(device, handle, what, offset, bytes);
        if (!buffer) return NULL;
        const bh__managed *self = buffer->memory->managed;
        uint64_t at = buffer->offset + offset, end = at + bytes;
        if (self) {
            at = bh__page_from(self, at) * self->page_bytes;
            end = bh__page_to(self, end) * self->page_bytes;
        }
        if (!bh__lease_covers(device, buffer->memory, at, end - at, access)) return buffer;
        if (!wait) {
            bh__refuse(BH_E_BUSY, "try again, or let the call wait",
                       "%s: a transfer of bytes %llu to %llu or of some of them is being submitted",
                       what, (ull)at, (ull)end);
            return NULL;
        }
        bh__leases_wait(device);
    }
}

static bool overlaps(uint64_t from, uint64_t to, uint64_t offset, uint64_t bytes) {
    return from < offset + bytes && offset < to;
}

/* The lane of the work that the move depends on: on another lane it would block that lane until the
 * work completes. If there is none, the lane with the fewest requests. */
bh__lane *bh__managed_lane(bh__device *device, const bh__managed *self, uint64_t offset,
                           uint64_t bytes, bool upload) {
    for (uint32_t i = 0; i < self->memory->use_count; i++) {
        const bh__lane_use *use = &self->memory->uses[i];
        bh__lane *lane = &device->lanes[use->lane];
        uint64_t done = bh__lane_done(device, lane);
        if (use->write_position > done && overlaps(use->write_from, use->write_to, offset, bytes))
            return lane;
        if (upload && use->read_position > done &&
            overlaps(use->read_from, use->read_to, offset, bytes))
            return lane;
    }
    bh__lane *best = &device->lanes[0];
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        if (!lane->exists || (i > 0 && lane->handle == 0)) continue;
        uint64_t depth = atomic_load(&lane->tail) - bh__lane_done(device, lane);
        if (depth >= least) continue;
        least = depth;
        best = lane;
    }
    return best;
}

/* ---- attach, advice, query ---- */

bh_status bh_managed_attach(bh_buffer handle, uint32_t attach, bh_lane lane) {
    if (attach > BH_ATTACH_LANE)
        return bh__refuse(BH_E_INVALID, "use BH_ATTACH_GLOBAL, BH_ATTACH_HOST or BH_ATTACH_LANE",
                          "attach is %u", attach);
    bh__device *device;
    bh__buffer *buffer = lock_whole(handle, "attach", &device);
    if (!buffer) return bh__last()->status;
    if (buffer->bytes)
        buffer =
            bh__managed_unleased(device, handle, "attach", 0, buffer->bytes, BH_ACCESS_OUT, true);
    if (!buffer) {
        bh__device_unlock(device);
        return bh__last()->status;
    }
    bh_status status = bh__driver_managed_of(buffer->memory)
                           ? (attach == BH_ATTACH_GLOBAL
                                  ? BH_OK
                                  : bh__driver_managed_refuse_host(buffer->memory, "attach"))
                           : attach_to(device, buffer->memory->managed, attach, lane);
    bh__device_unlock(device);
    return status;
}

bool bh__advice_note(bh__spans *advice, uint32_t bits, uint32_t changed, uint64_t offset,
                     uint64_t bytes) {
    for (uint32_t i = 0; i < BH__ADVICES; i++) {
        bh__spans *of = &advice[i];
        if (!(changed >> i & 1)) continue;
        bool noted = bits >> i & 1
                         ? bh__spans_add(&of->list, &of->count, &of->capacity, offset, bytes)
                         : bh__spans_remove(&of->list, &of->count, &of->capacity, offset, bytes);
        if (!noted) return false;
    }
    return true;
}

bool bh__advice_has(const bh__spans *advice, uint32_t bit, uint64_t offset, uint64_t bytes) {
    const bh__spans *of = &advice[__builtin_ctz(bit)];
    return bh__spans_overlap(of->list, of->count, offset, bytes);
}

static bh_status advise_mirror(bh__managed *self, uint64_t offset, uint64_t bytes,
                               uint32_t advice) {
    uint32_t idle = advice & ~(uint32_t)(BH_ADVISE_PREFER_DEVICE | BH_ADVISE_PREFER_HOST);
    if (!idle)
        return bh__advice_note(self->advice, advice, BH__ADVICE_BITS, offset, bytes)
                   ? BH_OK
                   : refuse_records();
    return bh__refuse(
        BH_E_UNSUPPORTED,
        "use BH_ADVISE_PREFER_DEVICE or BH_ADVISE_PREFER_HOST; the others are for "
        "BH_BUFFER_DRIVER",
        "advice is 0x%x; 0x%x of it have no effect on a buffer that the library moves", advice,
        idle);
}

bh_status bh_managed_advise(bh_buffer handle, uint64_t offset, uint64_t bytes, uint32_t advice) {
    if (advice & ~(uint32_t)BH__ADVICE_BITS)
        return bh__refuse(BH_E_INVALID,
                          "combine BH_ADVISE_... bits of bulkhead/managed.h, or pass 0",
                          "advice is 0x%x; 0x%x of it are not known", advice,
                          advice & ~(uint32_t)BH__ADVICE_BITS);
    bh__device *device;
    bh__buffer *buffer = bh__managed_lock(handle, "advise", offset, bytes, &device);
    if (!buffer) return bh__last()->status;
    bh_status status =
        bh__driver_managed_of(buffer->memory)
            ? bh__driver_managed_advise(device, buffer, offset, bytes, advice)
            : advise_mirror(buffer->memory->managed, buffer->offset + offset, bytes, advice);
    bh__device_unlock(device);
    return status;
}

/* The bytes of the pages in the set. The buffer may end within its last page. */
static uint64_t bytes_of(const bh__managed *self, const bh__pages *pages) {
    uint64_t bytes = pages->set * self->page_bytes;
    if (bh__pages_has(pages, self->pages - 1)) bytes -= self->mirror->bytes - self->memory->bytes;
    return bytes;
}

static void describe(bh__device *device, const bh__buffer *buffer, bh_managed_info *out) {
    const bh__managed *self = buffer->memory->managed;
    *out = self->tally;
    out->page_bytes = self->page_bytes;
    out->tracking = self->tracking;
    out->attach = self->attach;
    out->lane = self->lane;
    out->host_newest = bytes_of(self, &self->host_newest);
    out->device_newest = bytes_of(self, &self->device_newest);
    out->on_both = self->memory->bytes - out->host_newest - out->device_newest;
    for (const bh__map *map = self->mirror->maps; map; map = map->next) out->maps++;
    for (uint32_t i = 0; i < self->host->use_count; i++) {
        const bh__lane_use *use = &self->host->uses[i];
        uint64_t last =
            use->write_position > use->read_position ? use->write_position : use->read_position;
        out->lanes += last > bh__lane_done(device, &device->lanes[use->lane]);
    }
}

bh_status bh_managed_get_info(bh_buffer handle, bh_managed_info *out) {
    if (bh__sized_check(out, "bh_managed_info") != BH_OK) return BH_E_INVALID;
    bh__device *device;
    bh__buffer *buffer = lock_whole(handle, "properties", &device);
    if (!buffer) return bh__last()->status;
    bh_managed_info info;
    if (bh__driver_managed_of(buffer->memory))
        bh__driver_managed_query(buffer, &info);
    else
        describe(device, buffer, &info);
    bh__device_unlock(device);
    bh__sized_give(out, &info, sizeof info);
    return BH_OK;
}
