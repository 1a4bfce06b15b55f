/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: opening, asking, closing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/futex.h"
#include "base/thread.h"
#include "base/ticks.h"
#include "client/find.h"
#include "client/report.h"
#include "client/trace.h"
#include "wire/share.h"

/* Where device memory is mapped in every worker: each address twice, writable and read-only. */
#define ADDRESS_BASE   0x200000000000ull
#define READ_ONLY_BASE 0x400000000000ull
#define ADDRESS_LIMIT  ((uint64_t)1 << 42)

/* ---- options ---- */

static bh_status refuse_option(const char *name, unsigned long long value, const char *fix) {
    return bh__refuse(BH_E_INVALID, fix, "bh_device_options.%s is %llu", name, value);
}

/* *asked gets what the program has set itself, without defaults. */
static bh_status take_options(const bh_device_options *given, bh_device_options *out,
                              bh_device_options *asked) {
    *out = (bh_device_options)BH_INIT(*out);
    if (given) {
        if (given->size < 2 * sizeof(uint32_t) || given->size > 4096) {
            return refuse_option("size", given->size, "initialise the struct with BH_INIT");
        }
        memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    }
    *asked = *out;
    if (out->flags & ~(uint32_t)(BH_DEVICE_NO_STANDBY | BH_DEVICE_NO_RESTART_LIMIT |
                                 BH_DEVICE_CHECK | BH_DEVICE_GUARD)) {
        return refuse_option("flags", out->flags, "use only flags from bulkhead.h");
    }
    if ((out->flags & BH_DEVICE_CHECK) && (out->flags & BH_DEVICE_GUARD)) {
        return refuse_option("flags", out->flags,
                             "leave out BH_DEVICE_GUARD: BH_DEVICE_CHECK finds all that it does");
    }
    if (!out->restart_window_ns) out->restart_window_ns = 60 * BH__NS_PER_S;
    if (!out->restart_limit) out->restart_limit = 1000;
    if (out->restart_limit > 65536)
        return refuse_option("restart_limit", out->restart_limit,
                             "allow at most 65536, or lift the limit");
    if (!out->quarantine_after) out->quarantine_after = 16;
    if (!out->wait_spin_ns) out->wait_spin_ns = 20 * BH__NS_PER_US;
    if (!out->worker_spin_ns) out->worker_spin_ns = 50 * BH__NS_PER_US;
    if (!out->close_timeout_ns) out->close_timeout_ns = 10 * BH__NS_PER_S;
    if (!out->queue_length) out->queue_length = 1024;
    if (!out->standbys) out->standbys = 1;
    if (out->standbys > BH__MAX_STANDBYS)
        return refuse_option("standbys", out->standbys, "keep at most 4 standbys");
    if (out->flags & BH_DEVICE_NO_STANDBY) out->standbys = 0;
    if (!out->stuck_timeout_ns) out->stuck_timeout_ns = 5 * BH__NS_PER_S;
    if (!bh__is_power_of_two(out->queue_length) || out->queue_length < 64 ||
        out->queue_length > 65536) {
        return refuse_option("queue_length", out->queue_length,
                             "use a power of two from 64 to 65536");
    }
    return BH_OK;
}

static bh_status check_kind(const bh_device_options *options, const char *kind) {
    if (!(options->flags & BH_DEVICE_CHECK) || strcmp(kind, "cpu") == 0) return BH_OK;
    return bh__refuse(
        BH_E_UNSUPPORTED, "open the device \"cpu\", or run the program under compute-sanitizer",
        "checks (BH_DEVICE_CHECK) are for the CPU device, and this one is \"%s\"", kind);
}

/* ---- addresses ---- */

#if defined(BH__ONE_PROCESS) || defined(__SANITIZE_THREAD__)

/* ThreadSanitizer forbids the usual addresses. Where workers are threads, each device needs a range
 * to itself. */
static void choose_addresses(bh__device *device) {
    device->address_limit = (uint64_t)1 << 34;
    device->address_base = 0x7e9000000000ull + device->slot % 12 * 2 * device->address_limit;
    device->read_only_base = device->address_base + device->address_limit;
}

#else

static void choose_addresses(bh__device *device) {
    device->address_limit = ADDRESS_LIMIT;
    device->address_base = ADDRESS_BASE;
    device->read_only_base = READ_ONLY_BASE;
}

#endif

/* ---- putting a device together ---- */

static void reset(bh__device *device) {
    size_t kept = offsetof(bh__device, frozen);
    memset((char *)device + kept, 0, sizeof *device - kept);
    for (uint32_t i = 0; i < BH__LANES; i++) {
        size_t lane_kept = offsetof(bh__lane, state);
        memset((char *)&device->lanes[i] + lane_kept, 0, sizeof device->lanes[i] - lane_kept);
    }
    pthread_mutex_init(&device->notes_lock, NULL);
    device->control_fd = device->event_fd = device->jobs_fd = -1;
    device->dispatch_fd = device->dispatch_spare_fd = -1;
}

static bh_status refuse_resources(const char *what, int number) {
    char text[128];
    return bh__refuse(BH_E_NO_HOST_MEMORY,
                      "free memory, or raise the limit on open files (ulimit -n)",
                      "cannot make %s: %s", what, bh__errno_text(number, text, sizeof text));
}

static bh_status make_control_block(bh__device *device) {
    bh__front layout;
    memset(&layout, 0, sizeof layout);
    bh__front_layout(&layout, device->options.queue_length);
    int fd = bh__share_create("bulkhead-control", layout.total_bytes);
    if (fd < 0) return refuse_resources("the control block", -fd);
    device->control_fd = bh__fd_keep(fd);
    device->front = bh__share_map(fd, 0, layout.total_bytes, true);
    if (!device->front) return refuse_resources("the control block", errno);
    bh__front_layout(device->front, device->options.queue_length);
    device->front->worker_spin_ns = device->options.worker_spin_ns;
    device->ticks_usable = bh__ticks_usable();
    device->front->ticks_usable = device->ticks_usable;
    device->tick_start_ns = bh__now_ns();
    device->tick_start = bh__ticks(device->ticks_usable);
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        atomic_store(&device->front->lane[i].notify_sleep, BH__NEVER);
        atomic_store(&device->front->lane[i].notify_dispatch, BH__NEVER);
    }
    atomic_store(&device->area, bh__worker_area(device, &device->workers[0]));
    device->frozen = true;
    atomic_store(&device->state, BH_DEVICE_REPLACING);
    return BH_OK;
}

enum { SPARE_FD_FROM = 200 };

static bh_status make_eventfd(int *out) {
    *out = bh__fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return *out < 0 ? refuse_resources("an eventfd", errno) : BH_OK;
}

/* The two lanes that a device always has. */
static bool make_lane(bh__device *device, uint32_t index) {
    bh__lane *lane = &device->lanes[index];
    uint64_t id = bh__lane_id_new(device->slot, index);
    lane->history = bh__history_open(id);
    if (!lane->history) return false;
    lane->state = BH__LANE_OPEN;
    atomic_store(&lane->id, id);
    return true;
}

static bh_status make_lanes(bh__device *device) {
    for (uint32_t i = 0; i < BH__LANES; i++) device->lanes[i].index = i;
    bh__lane *first = &device->lanes[0];
    first->shadow = calloc(device->options.queue_length, sizeof *first->shadow);
    if (!first->shadow || !make_lane(device, 0) || !make_lane(device, BH__LOAD_LANE))
        return refuse_resources("a lane's queue", ENOMEM);
    first->ring = bh__lane_ring(device->front, 0);
    first->exists = true;
    device->lane_limit = 1;
    return BH_OK;
}

static bh_status start_supervisor(bh__device *device) {
    int failed = bh__thread_start(&device->supervisor, NULL, bh__supervisor_main, device);
    return failed ? refuse_resources("a thread", failed) : BH_OK;
}

static bh_status take_report_dir(bh__device *device) {
    const char *given = device->options.report_dir;
    char text[128];
    device->options.report_dir = NULL;
    if (!given) return BH_OK;
    if (access(given, W_OK | X_OK) != 0)
        return bh__refuse(BH_E_INVALID, "name a directory that exists and can be written",
                          "reports cannot be written to report_dir \"%.200s\": %s", given,
                          bh__errno_text(errno, text, sizeof text));
    device->report_dir = strdup(given);
    return device->report_dir ? BH_OK : refuse_resources("a copy of report_dir", ENOMEM);
}

static bh_status assemble(bh__device *device) {
    bh_status status = make_control_block(device);
    if (status == BH_OK) status = take_report_dir(device);
    if (status == BH_OK) status = make_eventfd(&device->event_fd);
    if (status == BH_OK) status = make_eventfd(&device->dispatch_fd);
    if (status == BH_OK) {
        /* Out of the way of those who close what they did not open; it does without if need be. */
        device->dispatch_spare_fd =
            bh__fd_keep(fcntl(device->dispatch_fd, F_DUPFD_CLOEXEC, SPARE_FD_FROM));
        status = make_eventfd(&device->jobs_fd);
    }
    if (status == BH_OK) status = make_lanes(device);
    if (status != BH_OK) return status;
    bh__heap_init(&device->heap);
    device->pressure_high = UINT64_MAX;
    choose_addresses(device);
    device->incoming = malloc(sizeof *device->incoming);
    device->outgoing = malloc(sizeof *device->outgoing);
    if (!device->incoming || !device->outgoing) return refuse_resources("a device", ENOMEM);
    return start_supervisor(device);
}

/* ---- taking it apart ---- */

static void free_objects(bh__device *device) {
    bh__prepared_free_all(device);
    uint32_t cursor = 0;
    for (bh__buffer *buffer; (buffer = bh__table_next(&device->buffers, &cursor));) {
        bh__handle_remove(device, buffer->id);
        bh__memory *memory = buffer->memory;
        if (buffer != &memory->first) free(buffer);
        if (--memory->references == 0) bh__memory_delete(device, memory);
    }
    while (device->leaving) {
        bh__memory *memory = device->leaving;
        device->leaving = memory->next;
        bh__memory_delete(device, memory);
    }
    (void)bh__check_relent(device);
    bh__sequences_free(device);
    bh__managed_delete_all(device); /* those that maps have kept */
    cursor = 0;
    for (bh__kernel *kernel; (kernel = bh__table_next(&device->kernels, &cursor));)
        bh__handle_remove(device, kernel->id);
    cursor = 0;
    for (bh__module *module; (module = bh__table_next(&device->modules, &cursor));)
        bh__handle_remove(device, module->id);
    while (device->module_list) bh__module_drop(device, device->module_list);
    cursor = 0;
    for (bh__lane *lane; (lane = bh__table_next(&device->lane_handles, &cursor));)
        bh__handle_remove(device, lane->handle);
    bh__host_pools_free(device);
    for (uint32_t i = 0; i < device->host_count; i++) {
        bh__share_unmap(device->hosts[i].memory->host, device->hosts[i].region.bytes);
        bh__fd_close(device->hosts[i].fd);
        bh__memory_delete(device, device->hosts[i].memory);
    }
    for (uint32_t i = 0; i < device->chunk_count; i++) {
        bh__check_unmap(&device->chunks[i]);
        bh__fd_close(device->chunks[i].fd);
    }
    for (uint32_t i = 0; i < BH__LANES; i++) {
        bh__lane *lane = &device->lanes[i];
        if (lane->history) bh__history_close(lane->history);
        lane->history = NULL;
        free(lane->shadow);
        lane->shadow = NULL;
    }
}

/* Everything but the slot. The supervisor and the dispatcher are gone. */
static void disassemble(bh__device *device) {
    free_objects(device);
    bh__records_free(&device->memory_records);
    bh__records_free(&device->buffer_records);
    bh__heap_destroy(&device->heap);
    bh__tags_free(device);
    free(device->chunks);
    free(device->free_addresses);
    free(device->hosts);
    free(device->incoming);
    free(device->outgoing);
    bh__loss_reports_free(device);
    if (device->front) bh__share_unmap(device->front, device->front->total_bytes);
    bh__fd_close(device->control_fd);
    bh__fd_close(device->event_fd);
    bh__fd_close(device->dispatch_fd);
    bh__fd_close(device->dispatch_spare_fd);
    bh__fd_close(device->jobs_fd);
}

static void end_supervisor(bh__device *device) {
    bh__job job = {.kind = BH__JOB_CLOSE};
    bh__job_post(device, &job);
    bh__job_wait(&job);
    pthread_join(device->supervisor, NULL);
}

/* ---- the public calls ---- */

/* Workers have started meanwhile, which takes long enough to tell what a tick is worth. */
static void measure_ticks(bh__device *device) {
    uint64_t ns = bh__now_ns() - device->tick_start_ns;
    uint64_t ticks = bh__ticks(device->ticks_usable) - device->tick_start;
    uint64_t scale = device->ticks_usable ? bh__ticks_scale(ticks, ns) : BH__TICKS_ONE;
    atomic_store(&device->front->tick_scale, scale);
}

/* Everything is made before anybody can find the device. */
static bh_status device_start(bh__device *device) {
    bh__lock_take(&device->lock);
    bh_status status = assemble(device);
    bh__lock_give(&device->lock);
    if (status != BH_OK) return status;
    while (atomic_load(&device->opened) == 0)
        bh__futex_wait(&device->opened, 0, BH__NEVER, BH__FUTEX_PRIVATE);
    if (atomic_load(&device->opened) == 1) return BH_OK;
    end_supervisor(device);
    return bh__refuse_with(&device->open_error);
}

static void device_end(bh__device *device) {
    bh__lock_take(&device->lock);
    disassemble(device);
    for (uint32_t i = 0; i < BH__LANES; i++) atomic_store(&device->lanes[i].id, 0);
    bh__lock_give(&device->lock);
    bh__device_free_slot(device);
}

bh_status bh_device_open(const bh_device_options *given, bh_device *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the device", "out is NULL");
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh_device_options options, asked = {0};
    char kind[16] = "", path[4096];
    uint32_t index;
    if (take_options(given, &options, &asked) != BH_OK ||
        bh__device_name_parse(options.device, kind, &index) != BH_OK ||
        check_kind(&options, kind) != BH_OK ||
        bh__worker_find(options.worker_dir, kind, path, sizeof path) != BH_OK) {
        return bh__last()->status;
    }
    bh__device *device = bh__device_take_slot();
    if (!device) return bh__last()->status;
    bh__lock_take(&device->lock);
    reset(device);
    atomic_store(&device->life, BH__LIFE_OPENING);
    device->options = options;
    device->options.device = device->options.worker_dir = NULL;
    device->default_limit = asked.restart_limit == 0;
    device->quarantine_by_rate = asked.quarantine_after == 0;
    device->budget_ns = options.restart_window_ns;
    device->budget_at = bh__now_ns();
    memcpy(device->kind, kind, sizeof kind);
    memcpy(device->worker_path, path, sizeof path);
    device->device_index = index;
    bh__lock_give(&device->lock);
    bh_status status = device_start(device);
    if (status == BH_OK) {
        measure_ticks(device);
        bh__device_publish(device);
        out->id = atomic_load(&device->id);
        return BH_OK;
    }
    bh_error why = *bh__last();
    bh__lock_take(&device->lock);
    atomic_store(&device->life, BH__LIFE_CLOSED);
    bh__lock_give(&device->lock);
    device_end(device);
    return bh__refuse_with(&why);
}

static bool closes_itself(bh__device *device) {
    if (bh__supervises(device)) return true;
    pthread_mutex_lock(&device->dispatch_lock);
    bool itself = device->dispatcher_state != BH__DISPATCHER_NONE &&
                  pthread_equal(pthread_self(), device->dispatcher);
    pthread_mutex_unlock(&device->dispatch_lock);
    return itself;
}

/* Lets what was submitted finish, up to a deadline. */
static void drain(bh__device *device) {
    uint64_t deadline = bh__deadline_after(device->options.close_timeout_ns);
    for (uint32_t i = 0; i < BH__LANES; i++) {
        bh__lane *lane = &device->lanes[i];
        uint64_t tail = atomic_load(&lane->tail);
        if (tail == 0 || (i < BH__MAX_LANES && !lane->exists)) continue;
        (void)bh__lane_wait(device, lane, (bh_ticket){0, tail}, deadline);
    }
    (void)bh__workers_flush(device, deadline);
}

/* From here on a compile that is done is not loaded; those that are not are cancelled. Others may have
 * taken some to answer them, with a module to be loaded or with a callback to be run: their jobs and
 * tickets come before the supervisor and the dispatcher go. */
static void end_compiles(bh__device *device) {
    bh_error cancelled;
    bh__fail(&cancelled, BH_E_CANCELLED, "wait for work before closing the device",
             "the device was closed before this was done");
    bh__lock_take(&device->lock);
    atomic_store(&device->life, BH__LIFE_CLOSING);
    bh__lock_give(&device->lock);
    (void)bh__flights_recall(device, 0, &cancelled);
    while (atomic_load(&device->landing) > 0) {
        struct timespec pause = bh__timespec(20 * BH__NS_PER_US);
        nanosleep(&pause, NULL);
    }
}

bh_status bh_device_close(bh_device handle) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bool closing = atomic_load(&device->life) != BH__LIFE_OPEN;
    if (closing || closes_itself(device)) {
        bh__device_unlock(device);
        return closing ? bh__refuse(BH_E_INVALID, "close a device once",
                                    "the device is being closed by another thread")
                       : bh__refuse(BH_E_INVALID, "close the device from another thread",
                                    "a callback or a log message of the device tries to close it");
    }
    atomic_store(&device->life, BH__LIFE_DRAINING);
    bh__device_unlock(device);
    drain(device);
    end_compiles(device);
    end_supervisor(device);
    bh__dispatcher_stop(device);
    bh__trace_close(device);

    /* Every ticket is answered. Nobody finds the device from here on; those who are inside have been
     * woken, and leave. */
    bh__lock_take(&device->lock);
    atomic_store(&device->life, BH__LIFE_CLOSED);
    atomic_store(&device->id, 0);
    /* Looked at with the lock held: whoever comes back from outside takes the lock first and is no
     * longer counted second. */
    while (atomic_load(&device->users) > 0) {
        bh__lock_give(&device->lock);
        bh__area_wake(atomic_load(&device->area), device->lane_limit);
        struct timespec pause = bh__timespec(20 * BH__NS_PER_US);
        nanosleep(&pause, NULL);
        bh__lock_take(&device->lock);
    }
    bh__lock_give(&device->lock);
    if (device->reader.id) (void)bh_device_close(device->reader);
    device_end(device);
    return BH_OK;
}

bh_status bh_device_query(bh_device handle, bh_device_info *out) {
    if (!out || out->size < sizeof(uint32_t) * 2) {
        return bh__refuse(BH_E_INVALID, "initialise the struct with BH_INIT",
                          "out is NULL or its size is not set");
    }
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_device_info info = device->info;
    bh__device_unlock(device);
    info.size = out->size;
    memcpy(out, &info, out->size < sizeof info ? out->size : sizeof info);
    return BH_OK;
}

bh_status bh_device_get_status(bh_device handle, bh_device_status *out) {
    if (!out || out->size < sizeof(uint32_t) * 2) {
        return bh__refuse(BH_E_INVALID, "initialise the struct with BH_INIT",
                          "out is NULL or its size is not set");
    }
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh_device_status status = {.size = out->size,
                               .state = atomic_load(&device->state),
                               .generation = device->generation,
                               .losses = device->losses,
                               .worker_pid = atomic_load(&device->worker_pid),
                               .standby_pid = atomic_load(&device->standby_pid),
                               .standby_ready = device->standbys_ready > 0,
                               .buffers = device->buffer_count,
                               .bytes_allocated = device->bytes_allocated,
                               .bytes_reserved = bh__held_bytes(device)};
    for (uint32_t i = 0; i < device->lane_limit; i++)
        status.lanes += device->lanes[i].state == BH__LANE_OPEN;
    const char *reason =
        status.state == BH_DEVICE_STOPPED ? device->stop_reason.message : device->degraded;
    snprintf(status.reason, sizeof status.reason, "%.*s", (int)sizeof status.reason - 1, reason);
    bh__device_unlock(device);
    memcpy(out, &status, out->size < sizeof status ? out->size : sizeof status);
    return BH_OK;
}

bh_status bh_device_wait_standby(bh_device handle, uint64_t timeout_ns) {
    uint64_t deadline = bh__deadline_after(timeout_ns);
    for (;;) {
        bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
        if (!device) return bh__last()->status;
        uint32_t seen = atomic_load(&device->standby_word);
        bool none = device->options.flags & BH_DEVICE_NO_STANDBY;
        bool ready = !none && device->standbys_ready == device->options.standbys &&
                     device->state == BH_DEVICE_RUNNING;
        bool given_up = !none && !ready && (device->alone || device->crowded);
        char why[sizeof device->degraded];
        memcpy(why, device->degraded, sizeof why);
        bh__device_step_out(device);
        bool in_time = ready || none || given_up ||
                       bh__futex_wait(&device->standby_word, seen, deadline, BH__FUTEX_PRIVATE);
        bh__ticket_leave(device);
        if (ready) return BH_OK;
        if (none) {
            return bh__refuse(BH_E_UNSUPPORTED, "open the device without BH_DEVICE_NO_STANDBY",
                              "the device was opened without a standby");
        }
        if (given_up) return bh__refuse(BH_E_UNSUPPORTED, BH__WITHOUT_STANDBY, "%s", why);
        if (!in_time) {
            return bh__refuse(BH_E_TIMEOUT, "wait longer; bh_device_get_status says what is wrong",
                              "no standby was ready after %llu ns", (unsigned long long)timeout_ns);
        }
    }
}

/* ---- what there is ---- */

static void try_open(const char *name, bh_device_entry *out) {
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", name);
    bh_device_options options = BH_INIT(options);
    options.device = name;
    options.flags = BH_DEVICE_NO_STANDBY;
    bh_device device;
    out->status = bh_device_open(&options, &device);
    if (out->status != BH_OK) {
        bh_last_error(&out->error);
        return;
    }
    out->info.size = sizeof out->info;
    bh_device_query(device, &out->info);
    bh_device_close(device);
}

/* How long the program takes bh_device_info to be: it ends each entry and may have been shorter, or
 * become longer, when the program was built. */
static size_t entry_info_bytes(const bh_device_entry *first) {
    size_t size = first->info.size, oldest = offsetof(bh_device_info, uuid);
    bool told = size >= oldest && size <= 4096 && size % sizeof(uint64_t) == 0;
    return told ? size : sizeof(bh_device_info);
}

static void put_entry(bh_device_entry *entries, size_t index, size_t info_bytes,
                      const bh_device_entry *entry) {
    size_t head = offsetof(bh_device_entry, info), known = sizeof entry->info;
    uint8_t *target = (uint8_t *)entries + index * (head + info_bytes);
    uint32_t size = (uint32_t)info_bytes;
    memset(target, 0, head + info_bytes);
    memcpy(target, entry, head + (info_bytes < known ? info_bytes : known));
    if (entry->status == BH_OK) memcpy(target + head, &size, sizeof size);
}

bh_status bh_device_enumerate(bh_device_entry *entries, size_t capacity, size_t *count) {
    if (!count || (!entries && capacity)) {
        return bh__refuse(BH_E_INVALID, "pass storage for the entries and their count",
                          "entries or count is NULL");
    }
    if (bh__refuse_forked()) return BH_E_STOPPED;
    *count = 0;
    size_t info_bytes = capacity ? entry_info_bytes(entries) : 0;
    for (uint32_t index = 0; index < 64; index++) {
        bh_device_entry entry;
        char name[32];
        snprintf(name, sizeof name, "cuda:%u", index);
        try_open(name, &entry);
        /* The first one is listed even if it is missing, with the reason; the list ends where there
         * are no more. */
        if (index > 0 && entry.status != BH_OK) break;
        if (*count < capacity) put_entry(entries, *count, info_bytes, &entry);
        ++*count;
        if (entry.status != BH_OK) break;
    }
    if (*count < capacity) {
        bh_device_entry entry;
        try_open("cpu", &entry);
        put_entry(entries, *count, info_bytes, &entry);
    }
    ++*count;
    return BH_OK;
}
