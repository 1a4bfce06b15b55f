/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: opening, closing, waiting for standbys. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/environment.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/thread.h"
#include "client/callback/callback.h"
#include "client/compile/compile.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/device/device.h"
#include "client/jobs/jobs.h"
#include "client/launch/launch.h"
#include "client/managed/managed.h"
#include "client/memory/memory.h"
#include "client/module/module.h"
#include "client/observe/trace.h"
#include "client/process/kinds.h"
#include "client/process/programs.h"
#include "client/queue/queue.h"
#include "client/sequence/sequence.h"
#include "client/texture/texture.h"
#include "client/transfer/transfer.h"
#include "client/workers/report.h"
#include "client/workers/supervisor.h"
#include "library/operation.h"
#include "wire/share.h"

/* Where device memory is mapped in every worker: everything twice, writable and read-only. */
#define ADDRESS_BASE   0x200000000000ull
#define READ_ONLY_BASE 0x400000000000ull
#define ADDRESS_LIMIT  ((uint64_t)1 << 42)

/* ---- options ---- */

static bh_status refuse_option(const char *name, unsigned long long value, const char *fix) {
    return bh__refuse(BH_E_INVALID, fix, "bh_device_options.%s is %llu", name, value);
}

/* The program's choice counts; BULKHEAD_SANDBOX decides if it makes none. */
static bh_status take_sandbox(uint32_t *choice) {
    if (*choice > BH_SANDBOX_ON)
        return refuse_option("sandbox", *choice, "use one of BH_SANDBOX_DEFAULT, _OFF and _ON");
    const char *text = bh__environment("BULKHEAD_SANDBOX");
    if (*choice != BH_SANDBOX_DEFAULT || !text) return BH_OK;
    if (strcmp(text, "on") == 0)
        *choice = BH_SANDBOX_ON;
    else if (strcmp(text, "off") == 0)
        *choice = BH_SANDBOX_OFF;
    else
        return bh__refuse(BH_E_INVALID, "set BULKHEAD_SANDBOX to on or off, or unset it",
                          "BULKHEAD_SANDBOX is \"%.40s\"", text);
    return BH_OK;
}

/* The same for BULKHEAD_EXECUTOR. */
static bh_status take_executor(uint32_t *choice) {
    if (*choice > BH_EXECUTE_AUTO)
        return refuse_option("executor", *choice,
                             "use one of BH_EXECUTE_DEFAULT, _INTERPRETER, _JIT and _AUTO");
    const char *text = bh__environment("BULKHEAD_EXECUTOR");
    if (*choice != BH_EXECUTE_DEFAULT) return BH_OK;
    if (!text || strcmp(text, "interp") == 0)
        *choice = BH_EXECUTE_INTERPRETER;
    else if (strcmp(text, "jit") == 0)
        *choice = BH_EXECUTE_JIT;
    else if (strcmp(text, "auto") == 0)
        *choice = BH_EXECUTE_AUTO;
    else
        return bh__refuse(BH_E_INVALID, "set BULKHEAD_EXECUTOR to interp, jit or auto, or unset it",
                          "BULKHEAD_EXECUTOR is \"%.40s\"", text);
    return BH_OK;
}

/* Checked kernels are interpreted: only the interpreter checks. */
static uint32_t executor_of(const bh_device_options *options, const char *kind) {
    const bh__device_kind *known = bh__device_kind_find(kind);
    bool native = known && known->native && !(options->flags & BH_DEVICE_CHECK);
    return native ? options->executor : BH_EXECUTE_INTERPRETER;
}

/* *asked receives what the program has set, before defaults are filled in. */
static bh_status take_options(const bh_device_options *given, bh_device_options *out,
                              bh_device_options *asked) {
    *out = (bh_device_options)BH_INIT(*out);
    if (bh__options_take(given, out, "bh_device_options") != BH_OK) return bh__last()->status;
    *asked = *out;
    if (out->flags &
        ~(uint32_t)(BH_DEVICE_NO_STANDBY | BH_DEVICE_NO_RESTART_LIMIT | BH_DEVICE_CHECK |
                    BH_DEVICE_GUARD | BH_DEVICE_CORE_DUMPS | BH_DEVICE_PRIVATE)) {
        return refuse_option("flags", out->flags, "use only BH_DEVICE_... flags");
    }
    if ((out->flags & BH_DEVICE_CHECK) && (out->flags & BH_DEVICE_GUARD)) {
        return refuse_option(
            "flags", out->flags,
            "remove BH_DEVICE_GUARD: BH_DEVICE_CHECK finds everything that it finds");
    }
    if (!out->restart_window_ns) out->restart_window_ns = 60 * BH__NS_PER_S;
    if (out->restart_limit == UINT32_MAX) {
        out->flags |= BH_DEVICE_NO_RESTART_LIMIT;
        out->restart_limit = 0;
    }
    if (!out->restart_limit) out->restart_limit = 1000;
    if (out->restart_limit > 65536)
        return refuse_option("restart_limit", out->restart_limit,
                             "use at most 65536, or UINT32_MAX for no limit");
    if (!out->quarantine_after) out->quarantine_after = 16;
    if (!out->wait_spin_ns) out->wait_spin_ns = 20 * BH__NS_PER_US;
    if (!out->worker_spin_ns) out->worker_spin_ns = 50 * BH__NS_PER_US;
    if (!out->close_timeout_ns) out->close_timeout_ns = 10 * BH__NS_PER_S;
    if (!out->queue_length) out->queue_length = 1024;
    if (!out->standbys) out->standbys = 1;
    if (out->standbys > BH__MAX_STANDBYS)
        return refuse_option("standbys", out->standbys, "use at most 4 standbys");
    if (out->flags & BH_DEVICE_NO_STANDBY) out->standbys = 0;
    if (!out->stuck_timeout_ns) out->stuck_timeout_ns = 5 * BH__NS_PER_S;
    if (!out->print_limit) out->print_limit = UINT64_C(1) << 20;
    if (!bh__is_power_of_two(out->queue_length) || out->queue_length < 64 ||
        out->queue_length > 65536) {
        return refuse_option("queue_length", out->queue_length,
                             "use a power of two from 64 to 65536");
    }
    if (out->libraries & ~BH__ALL_LIBRARIES)
        return bh__refuse(BH_E_UNSUPPORTED, "use the BH_LIBRARY_... of this version",
                          "bh_device_options.libraries is 0x%x; 0x%x of it are not known",
                          out->libraries, out->libraries & ~BH__ALL_LIBRARIES);
    if (bh__reserved_check(out->reserved, "bh_device_options") != BH_OK) return bh__last()->status;
    if (take_executor(&out->executor) != BH_OK) return bh__last()->status;
    return take_sandbox(&out->sandbox);
}

/* ---- addresses ---- */

#if defined(BH__ONE_PROCESS) || defined(__SANITIZE_THREAD__)

/* ThreadSanitizer forbids the usual addresses. If workers are threads, each device needs its own
 * range. */
static void choose_addresses(bh__device *device) {
    device->memory.addresses.limit = (uint64_t)1 << 34;
    device->memory.addresses.base =
        0x7e9000000000ull + device->slot % 12 * 2 * device->memory.addresses.limit;
    device->memory.addresses.read_only_base =
        device->memory.addresses.base + device->memory.addresses.limit;
}

#else

static void choose_addresses(bh__device *device) {
    device->memory.addresses.limit = ADDRESS_LIMIT;
    device->memory.addresses.base = ADDRESS_BASE;
    device->memory.addresses.read_only_base = READ_ONLY_BASE;
}

#endif

/* ---- making a device ---- */

static void reset(bh__device *device) {
    size_t kept = offsetof(bh__device, queue);
    memset((char *)device + kept, 0, sizeof *device - kept);
    for (uint32_t i = 0; i < BH__LANES; i++) {
        size_t lane_kept = offsetof(bh__lane, state);
        memset((char *)&device->lanes[i] + lane_kept, 0, sizeof device->lanes[i] - lane_kept);
    }
    pthread_mutex_init(&device->notes_lock, NULL);
    device->queue.front_fd = device->callback.event_fd = device->jobs.fd = -1;
    device->observe.listen_fd = -1;
    device->callback.poke_fd = device->callback.spare_fd = device->callback.bell_fd = -1;
}

static bh_status refuse_resources(const char *what, int number) {
    char text[128];
    return bh__refuse(BH_E_NO_HOST_MEMORY, bh__errno_fix(number, "free memory"),
                      "cannot make %s: %s", what, bh__errno_text(number, text, sizeof text));
}

static bh_status make_control_block(bh__device *device) {
    bh__front layout;
    memset(&layout, 0, sizeof layout);
    bh__front_layout(&layout, device->options.queue_length);
    device->queue.length = layout.queue_length;
    device->queue.front_bytes = layout.front_bytes;
    device->queue.area_bytes = layout.area_bytes;
    void *front;
    int fd = bh__share_publish("bulkhead-control", layout.front_bytes, &front);
    if (fd < 0) return refuse_resources("the control block", -fd);
    device->queue.front_fd = bh__fd_keep(fd);
    device->queue.front = front;
    device->queue.areas = bh__share_reserve(BH__AREAS * layout.area_bytes);
    if (!device->queue.areas) return refuse_resources("the control block", errno);
    bh__front_layout(device->queue.front, layout.queue_length);
    device->queue.front->worker_spin_ns = device->options.worker_spin_ns;
    device->queue.ticks_usable = bh__ticks_usable();
    device->queue.front->ticks_usable = device->queue.ticks_usable;
    device->observe.tick_start_ns = bh__now_ns();
    device->observe.tick_start = bh__ticks(device->queue.ticks_usable);
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        atomic_store(&device->lanes[i].lowest_sleeper, BH__NEVER);
        atomic_store(&device->queue.front->lane[i].notify_sleep, BH__NEVER);
        atomic_store(&device->queue.front->lane[i].notify_dispatch, BH__NEVER);
    }
    atomic_store(&device->queue.area, bh__worker_area(device, &device->workers.workers[0]));
    device->queue.frozen = true;
    atomic_store(&device->queue.halted, true);
    atomic_store(&device->state, BH__DEVICE_REPLACING);
    return BH_OK;
}

enum { SPARE_FD_FROM = 200 };

static bh_status make_eventfd(int *out) {
    *out = bh__fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return *out < 0 ? refuse_resources("an eventfd", errno) : BH_OK;
}

/* For the two lanes that every device has. */
static bool make_lane(bh__device *device, uint32_t index) {
    bh__lane *lane = &device->lanes[index];
    uint64_t id = bh__lane_id_new(device->slot, index);
    lane->verdicts = bh__verdicts_open(id, lane->shadow ? device->options.queue_length : 0);
    if (!lane->verdicts) return false;
    lane->no_room_for_verdicts = false;
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
    first->ring = bh__lane_ring(device->queue.front, device->queue.length, 0);
    first->exists = true;
    device->queue.lane_limit = 1;
    atomic_store(&device->queue.open_lanes, 1);
    return BH_OK;
}

static bh_status start_supervisor(bh__device *device) {
    int failed = bh__thread_start(&device->workers.thread, NULL, bh__supervisor_main, device);
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
    device->workers.notes.report_dir = strdup(given);
    return device->workers.notes.report_dir ? BH_OK
                                            : refuse_resources("a copy of report_dir", ENOMEM);
}

static bh_status assemble(bh__device *device) {
    bh_status status = make_control_block(device);
    if (status == BH_OK) status = take_report_dir(device);
    if (status == BH_OK) status = make_eventfd(&device->callback.event_fd);
    if (status == BH_OK) status = make_eventfd(&device->callback.poke_fd);
    if (status == BH_OK) {
        /* A high number, which programs that close descriptors they did not open often miss. The
         * device works without it. */
        device->callback.spare_fd =
            bh__fd_keep(fcntl(device->callback.poke_fd, F_DUPFD_CLOEXEC, SPARE_FD_FROM));
        status = make_eventfd(&device->jobs.fd);
    }
    if (status == BH_OK) status = make_lanes(device);
    if (status != BH_OK) return status;
    bh__heap_init(&device->memory.heap);
    device->memory.limit_given = device->options.memory_limit != 0;
    device->memory.pressure.high = UINT64_MAX;
    choose_addresses(device);
    device->workers.incoming = malloc(sizeof *device->workers.incoming);
    device->workers.outgoing = malloc(sizeof *device->workers.outgoing);
    if (!device->workers.incoming || !device->workers.outgoing)
        return refuse_resources("a device", ENOMEM);
    bh__publish_open(device);
    return start_supervisor(device);
}

/* ---- freeing a device ---- */

static void free_objects(bh__device *device) {
    bh__prepared_free_all(device);
    bh__textures_free(device);
    uint32_t cursor = 0;
    for (bh__buffer *buffer; (buffer = bh__table_next(&device->handles.buffers, &cursor));) {
        bh__handle_remove(device, buffer->id);
        bh__memory *memory = buffer->memory;
        if (buffer != &memory->first) free(buffer);
        if (--memory->references == 0) bh__memory_delete(device, memory);
    }
    while (device->memory.leaving) {
        bh__memory *memory = device->memory.leaving;
        device->memory.leaving = memory->next;
        bh__memory_delete(device, memory);
    }
    (void)bh__check_release_retired(device);
    bh__sequences_free(device);
    bh__managed_delete_all(device); /* those that were still mapped */
    cursor = 0;
    for (bh__kernel *kernel; (kernel = bh__table_next(&device->handles.kernels, &cursor));)
        bh__handle_remove(device, kernel->id);
    cursor = 0;
    for (bh__module *module; (module = bh__table_next(&device->handles.modules, &cursor));)
        bh__handle_remove(device, module->id);
    while (device->module.list) bh__module_drop(device, device->module.list);
    cursor = 0;
    for (bh__lane *lane; (lane = bh__table_next(&device->handles.lanes, &cursor));)
        bh__handle_remove(device, lane->handle);
    bh__host_pools_free(device);
    bh__watchers_free(device);
    for (uint32_t i = 0; i < device->transfer.host_count; i++) {
        bh__share_unmap(device->transfer.hosts[i].memory->host,
                        device->transfer.hosts[i].region.bytes);
        bh__fd_close(device->transfer.hosts[i].fd);
        bh__memory_delete(device, device->transfer.hosts[i].memory);
    }
    for (uint32_t i = 0; i < device->memory.chunk_count; i++) {
        bh__check_unmap(&device->memory.chunks[i]);
        bh__fd_close(device->memory.chunks[i].fd);
    }
    for (uint32_t i = 0; i < BH__LANES; i++) {
        bh__lane *lane = &device->lanes[i];
        if (lane->verdicts) bh__verdicts_close(lane->verdicts);
        lane->verdicts = NULL;
        free(lane->shadow);
        free(lane->timed);
        lane->shadow = NULL;
    }
}

/* Frees everything except the slot. The supervisor and the dispatcher have ended. */
static void disassemble(bh__device *device) {
    free_objects(device);
    bh__records_free(&device->memory.memory_records);
    bh__records_free(&device->memory.buffer_records);
    bh__heap_destroy(&device->memory.heap);
    bh__tags_free(device);
    free(device->memory.chunks);
    free(device->memory.addresses.free);
    free(device->transfer.hosts);
    free(device->workers.incoming);
    free(device->workers.outgoing);
    bh__loss_reports_free(device);
    if (device->queue.areas)
        bh__share_release(device->queue.areas, BH__AREAS * device->queue.area_bytes);
    if (device->queue.front) bh__share_unmap(device->queue.front, device->queue.front_bytes);
    bh__fd_close(device->queue.front_fd);
    bh__publish_close(device);
    bh__fd_close(device->callback.event_fd);
    bh__fd_close(device->callback.poke_fd);
    bh__fd_close(device->callback.spare_fd);
    bh__fd_close(device->jobs.fd);
}

static void end_supervisor(bh__device *device) {
    bh__job job = {.kind = BH__JOB_CLOSE};
    bh__job_post(device, &job);
    bh__job_wait(&job);
    pthread_join(device->workers.thread, NULL);
}

/* ---- the public calls ---- */

/* Starting the workers took long enough to measure the length of a tick. */
static void measure_ticks(bh__device *device) {
    uint64_t ns = bh__now_ns() - device->observe.tick_start_ns;
    uint64_t ticks = bh__ticks(device->queue.ticks_usable) - device->observe.tick_start;
    device->observe.tick_scale =
        device->queue.ticks_usable ? bh__ticks_scale(ticks, ns) : BH__TICKS_ONE;
    atomic_store(&device->queue.front->tick_scale, device->observe.tick_scale);
}

/* Makes everything before the device is published. */
static bh_status device_start(bh__device *device) {
    bh__lock_take(&device->lock);
    bh_status status = assemble(device);
    bh__lock_give(&device->lock);
    if (status != BH_OK) return status;
    while (atomic_load(&device->workers.opened) == 0)
        bh__futex_wait(&device->workers.opened, 0, BH__NEVER, BH__FUTEX_PRIVATE);
    if (atomic_load(&device->workers.opened) == 1) return BH_OK;
    end_supervisor(device);
    return bh__refuse_with(&device->workers.open_error);
}

static void device_end(bh__device *device) {
    bh__lock_take(&device->lock);
    disassemble(device);
    for (uint32_t i = 0; i < BH__LANES; i++) atomic_store(&device->lanes[i].id, 0);
    bh__lock_give(&device->lock);
    bh__device_free_slot(device);
}

static void log_opened(bh__device *device) {
    if (!bh__log_wants(BH_LOG_INFO)) return;
    bh__lock_take(&device->lock);
    bh__device_facts info = device->info;
    bh__lock_give(&device->lock);
    bh__log_info("device %s:%u opened in compartment %u: %s, driver %s, worker %d, standbys %u",
                 device->kind, device->device_index, device->slot, info.name, info.driver,
                 (int)atomic_load(&device->workers.worker_pid), device->options.standbys);
}

/* Opens the one device that options->device names. `asked`: without defaults. */
static bh_status open_one(const bh_device_options *options, const bh_device_options *asked,
                          const char *passed_over, bh_device *out) {
    char kind[16] = "", path[4096];
    uint32_t index;
    if (bh__device_name_parse(options->device, kind, &index) != BH_OK ||
        bh__worker_find(options->worker_dir, kind, path, sizeof path) != BH_OK) {
        return bh__last()->status;
    }
    bh__device *device = bh__device_take_slot();
    if (!device) return bh__last()->status;
    bh__lock_take(&device->lock);
    reset(device);
    atomic_store(&device->life, BH__LIFE_OPENING);
    device->options = *options;
    device->callback.printed.limit = options->print_limit;
    device->options.device = device->options.worker_dir = NULL;
    device->workers.policy.default_limit = asked->restart_limit == 0;
    device->workers.policy.quarantine_by_rate = asked->quarantine_after == 0;
    device->workers.policy.budget = (bh__restart_budget){options->restart_window_ns, bh__now_ns()};
    memcpy(device->kind, kind, sizeof kind);
    memcpy(device->workers.worker_path, path, sizeof path);
    device->device_index = index;
    device->executor = executor_of(options, kind);
    snprintf(device->passed_over, sizeof device->passed_over, "%s", passed_over);
    bh__lock_give(&device->lock);
    bh_status status = device_start(device);
    if (status == BH_OK) {
        measure_ticks(device);
        log_opened(device);
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

/* Copies the next name of a list of devices, "cuda,cpu". Returns where the rest of the list begins;
 * NULL: that was the last one. */
static const char *next_name(const char *list, char name[64]) {
    size_t length = strcspn(list, ",");
    snprintf(name, 64, "%.*s", (int)(length < 63 ? length : 63), list);
    return list[length] ? list + length + 1 : NULL;
}

/* Checks the names of a list before any of the devices is opened. */
static bh_status check_list(const char *list) {
    char name[64], kind[16];
    uint32_t index;
    for (const char *at = list; at;) {
        at = next_name(at, name);
        if (!*name)
            return bh__refuse(BH_E_INVALID, "separate names with one comma: cuda,cpu",
                              "the list of devices \"%.60s\" has an empty name", list);
        if (bh__device_name_parse(name, kind, &index) == BH_E_INVALID) return BH_E_INVALID;
    }
    return BH_OK;
}

/* Opens the first device of a list that can be used. */
static bh_status open_first(const bh_device_options *options, const bh_device_options *asked,
                            bh_device *out) {
    char passed_over[256] = "", name[64];
    size_t used = 0;
    if (check_list(options->device) != BH_OK) return BH_E_INVALID;
    for (const char *at = options->device; at;) {
        at = next_name(at, name);
        bh_device_options one = *options;
        one.device = name;
        bh_status status = open_one(&one, asked, passed_over, out);
        if (status == BH_OK || status == BH_E_INVALID) return status;
        const bh_error *why = bh__last();
        bh__log_warning("device \"%s\" cannot be used: %s", name, why->message);
        int length = snprintf(passed_over + used, sizeof passed_over - used, "%s%s: %s",
                              used ? "; " : "", name, why->message);
        used += length > 0 ? (size_t)length : 0;
        if (used >= sizeof passed_over) used = sizeof passed_over - 1;
    }
    return bh__refuse(BH_E_NO_DEVICE, "see `bulkhead devices`, or add cpu to the list",
                      "no device of \"%.60s\" can be used: %s", options->device, passed_over);
}

bh_status bh_device_open(const bh_device_options *given, bh_device *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the device", "out is NULL");
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh_device_options options, asked = {0};
    if (take_options(given, &options, &asked) != BH_OK) return bh__last()->status;
    bool list = options.device && strchr(options.device, ',');
    return list ? open_first(&options, &asked, out) : open_one(&options, &asked, "", out);
}

/* Returns true on a thread of the device itself, which cannot close it. */
static bool is_own_thread(bh__device *device) {
    if (bh__supervises(device)) return true;
    pthread_mutex_lock(&device->dispatch_lock);
    bool dispatcher = device->callback.state != BH__DISPATCHER_NONE &&
                      pthread_equal(pthread_self(), device->callback.thread);
    pthread_mutex_unlock(&device->dispatch_lock);
    return dispatcher;
}

/* Starts the write-back of the results that are complete, and notes which are written back. */
static void write_back_done(bh__device *device) {
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        bh__lane *lane = &device->lanes[i];
        if (atomic_load(&lane->tail) == 0) continue;
        bh__lock_take(&device->lock);
        uint64_t done = lane->exists ? bh__lane_done(device, lane) : 0;
        bh__lock_give(&device->lock);
        if (done) bh__managed_drain(device, lane, done, 0);
    }
}

/* Waits until submitted work is complete and its results are in place, until close_timeout_ns has
 * passed. Results that are complete now are written back beside work that is not. */
static void drain(bh__device *device) {
    uint64_t deadline = bh__deadline_after(device->options.close_timeout_ns);
    write_back_done(device);
    for (uint32_t i = 0; i < BH__LANES; i++) {
        bh__lane *lane = &device->lanes[i];
        uint64_t tail = atomic_load(&lane->tail);
        if (tail == 0 || (i < BH__MAX_LANES && !lane->exists)) continue;
        (void)bh__lane_wait(device, lane, (bh_ticket){0, tail}, deadline);
        bh__managed_drain(device, lane, tail, deadline);
    }
    write_back_done(device);
    (void)bh__workers_flush(device, deadline);
}

/* Cancels compiles in flight; results of compiles are not loaded any more. Other threads may be
 * completing some, which can need the supervisor (to load a module) and the dispatcher (to run a
 * callback): waits for these threads before both are ended. */
static void end_compiles(bh__device *device) {
    bh_error cancelled;
    bh__fail(&cancelled, BH_E_CANCELLED, "wait for work before closing the device",
             "the device was closed before this was done");
    bh__lock_take(&device->lock);
    atomic_store(&device->life, BH__LIFE_CLOSING);
    bh__lock_give(&device->lock);
    (void)bh__compiles_cancel(device, 0, &cancelled);
    while (atomic_load(&device->landing) > 0) {
        struct timespec pause = bh__timespec(20 * BH__NS_PER_US);
        nanosleep(&pause, NULL);
    }
}

bh_status bh_device_close(bh_device handle) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bool closing = atomic_load(&device->life) != BH__LIFE_OPEN;
    if (closing || is_own_thread(device)) {
        bh__device_unlock(device);
        return closing
                   ? bh__refuse(BH_E_INVALID, "close a device once",
                                "the device is being closed by another thread")
                   : bh__refuse(BH_E_INVALID, "close the device from another thread",
                                "the device cannot be closed from its own callback or log message");
    }
    atomic_store(&device->life, BH__LIFE_DRAINING);
    bh__device_unlock(device);
    drain(device);
    end_compiles(device);
    end_supervisor(device);
    bh__dispatcher_stop(device);
    bh__trace_close(device);

    /* Every ticket is completed. No thread can find the device from here on; threads that use it
     * have been woken and leave. */
    bh__lock_take(&device->lock);
    atomic_store(&device->life, BH__LIFE_CLOSED);
    atomic_store(&device->id, 0);
    /* Checked with the lock held: a thread that comes back takes the lock before it stops being
     * counted. */
    while (atomic_load(&device->users) > 0) {
        bh__lock_give(&device->lock);
        bh__area_wake(atomic_load(&device->queue.area), device->queue.lane_limit);
        struct timespec pause = bh__timespec(20 * BH__NS_PER_US);
        nanosleep(&pause, NULL);
        bh__lock_take(&device->lock);
    }
    bh__lock_give(&device->lock);
    if (device->reader.id) (void)bh_device_close(device->reader);
    char kind[sizeof device->kind];
    memcpy(kind, device->kind, sizeof kind);
    uint32_t index = device->device_index, slot = device->slot;
    device_end(device);
    bh__log_info("device %s:%u closed in compartment %u", kind, index, slot);
    return BH_OK;
}

bh_status bh_device_wait_standby(bh_device handle, uint64_t timeout_ns) {
    uint64_t deadline = bh__deadline_after(timeout_ns);
    for (;;) {
        bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
        if (!device) return bh__last()->status;
        uint32_t seen = atomic_load(&device->workers.standby_word);
        bool no_standby = device->options.flags & BH_DEVICE_NO_STANDBY;
        bool ready = !no_standby && device->workers.standbys_ready == device->options.standbys &&
                     device->state == BH__DEVICE_RUNNING;
        bool given_up = !no_standby && !ready && (device->workers.alone || device->workers.crowded);
        char why[sizeof device->workers.degraded];
        memcpy(why, device->workers.degraded, sizeof why);
        bh__device_step_out(device);
        bool in_time =
            ready || no_standby || given_up ||
            bh__futex_wait(&device->workers.standby_word, seen, deadline, BH__FUTEX_PRIVATE);
        bh__ticket_leave(device);
        if (ready) return BH_OK;
        if (no_standby) {
            return bh__refuse(BH_E_UNSUPPORTED, "open the device without BH_DEVICE_NO_STANDBY",
                              "the device was opened without a standby");
        }
        if (given_up) return bh__refuse(BH_E_UNSUPPORTED, BH__WITHOUT_STANDBY, "%s", why);
        if (!in_time) {
            return bh__refuse(timeout_ns ? BH_E_TIMEOUT : BH_E_BUSY,
                              "wait longer; bh_device_get_health reports the reason",
                              "no standby was ready after %llu ns", (unsigned long long)timeout_ns);
        }
    }
}
