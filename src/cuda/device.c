/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device as src/worker/ sees it: open, close, its lanes, its table of functions. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/available.h"
#include "cuda/library/library.h"
#include "cuda/state.h"
#include "worker/crash.h"

/* ---- errors ---- */

static const char *fault_fix(int result) {
    switch (result) {
    case BH__CU_ILLEGAL_ADDRESS:
        return "check the kernel's indices against the sizes of its buffers, that every pointer "
               "it follows is one of a live buffer, and that it writes no input";
    case BH__CU_MISALIGNED_ADDRESS:
        return "align the address to the size of the access";
    case BH__CU_ASSERT:
        return "see why the assertion in the kernel does not hold";
    case BH__CU_ECC_UNCORRECTABLE:
        return "see what is damaged with nvidia-smi -q -d ECC,ROW_REMAPPER; reset the GPU "
               "(nvidia-smi --gpu-reset), which maps damaged rows out; replace it if they come "
               "back. Then reopen the device";
    default:
        return "run the kernel alone, on the CPU device or under compute-sanitizer";
    }
}

bh_status bh__cuda_fail(const bh__device_instance *device, bh_error *error, int result,
                        bh_status status, const char *fix, const char *what, ...) {
    const char *name = bh__driver_error_name(&device->cu, result);
    const char *text = bh__driver_error_text(&device->cu, result);
    char log[256];
    bh__driver_log_take(&device->cu, log, sizeof log);
    const char *says = *log ? "; the driver says: " : "";
    if (bh__driver_is_fatal(result)) {
        status = BH_E_FAULT;
        bh__fail(error, status, fault_fix(result), "the device reports %s (%d): %s%s%s", name,
                 result, text, says, log);
        if (bh__driver_is_broken(result)) {
            bh__fail(error, BH_E_STOPPED, fault_fix(result),
                     "the device's memory is damaged: it reports %s (%d): %s%s%s", name, result,
                     text, says, log);
        }
        bh__cuda_print_last(device, result);
    } else {
        char message[448];
        va_list list;
        va_start(list, what);
        vsnprintf(message, sizeof message, what, list);
        va_end(list);
        bh__fail(error, status, fix, "%s: %s (%d)%s%s", message, name, result, says, log);
    }
    bh__driver_tell_limits(result, error);
    bh__fail_device_code(error, result, name);
    return status;
}

/* ---- opening ---- */

/* Called before the driver starts. With eager loading no launch ever waits for running kernels to
 * end. NVIDIA's libraries hold so many kernels that loading all of them takes seconds and more than
 * a GiB, so a device that may use libraries loads lazily; kernels of the program's modules are
 * still loaded with their module (module.c). The number of the driver's queues
 * (CUDA_DEVICE_MAX_CONNECTIONS, 8) is not changed: with 32 of them every worker takes 0.4 s longer
 * to start and to end. */
static void set_environment(const bh__device_services *services) {
    setenv("CUDA_MODULE_LOADING", services->libraries ? "LAZY" : "EAGER", 1);
}

static bh_status find_device(bh__device_instance *device, uint32_t index, bh_error *error) {
    int count = 0;
    int result = device->cu.device_count(&count);
    if (result == BH__CU_OK && index >= (uint32_t)count)
        return bh__fail(error, BH_E_NO_DEVICE, "open \"cuda\" or one that `bulkhead devices` lists",
                        "there is no CUDA device number %u: the driver shows %d", index, count);
    if (result == BH__CU_OK) result = device->cu.device_get(&device->ordinal, (int)index);
    if (result == BH__CU_OK) return BH_OK;
    return bh__cuda_fail(device, error, result, BH_E_NO_DEVICE, "see whether nvidia-smi works",
                         "CUDA device number %u cannot be found", index);
}

static bh_status enter_context(bh__device_instance *device, bh_error *error) {
    device->cu.context_flags(device->ordinal, BH__CU_CONTEXT_BLOCKING_SYNC);
    int result = device->cu.context_retain(&device->context, device->ordinal);
    if (result == BH__CU_OK) result = device->cu.context_enter(device->context);
    if (result == BH__CU_OK) return BH_OK;
    bool full = result == BH__CU_OUT_OF_MEMORY;
    const char *fix =
        full ? "end other programs on this device: a worker needs about half a GiB, and a standby "
               "as much again"
        : bh__cuda_uses_mps(device)
            ? "try again in a moment: an MPS server shares the device, and it must clean up after "
              "a program that faults or is killed; or stop it: echo quit | nvidia-cuda-mps-control"
            : "see nvidia-smi: the compute mode must not be Prohibited, nor Exclusive_Process "
              "while another program or a standby uses the device";
    bh__cuda_fail(device, error, result, full ? BH_E_NO_MEMORY : BH_E_NO_DEVICE, fix,
                  "no context can be made on CUDA device %d", device->ordinal);
    if (error->status == BH_E_FAULT) snprintf(error->fix, sizeof error->fix, "%s", fix);
    bh__driver_tell_limits(result, error);
    return error->status;
}

static bh_status prepare_memory(bh__device_instance *device, bh_error *error) {
    device->memory_kind =
        (bh__cu_memory_kind){.type = BH__CU_MEMORY_PINNED,
                             .handle_kinds = BH__CU_HANDLE_DESCRIPTOR,
                             .location = {BH__CU_LOCATION_DEVICE, device->ordinal}};
    size_t granularity = 0;
    int result = device->cu.memory_granularity(&granularity, &device->memory_kind,
                                               BH__CU_GRANULARITY_MINIMUM);
    device->granularity = granularity;
    const char *what = "the granularity of memory cannot be asked for";
    if (result == BH__CU_OK) {
        what = "a stream cannot be made";
        result = device->cu.stream_create(&device->stream, BH__CU_STREAM_NON_BLOCKING, 0);
    }
    if (result == BH__CU_OK) {
        what = "the worker's area of shared memory cannot be locked for the device";
        result = device->cu.host_register(device->services->area, device->services->area_bytes,
                                          BH__CU_HOST_PORTABLE | BH__CU_HOST_DEVICE_MAP);
    }
    if (result == BH__CU_OK)
        result = device->cu.host_address(&device->area, device->services->area, 0);
    if (result == BH__CU_OK) {
        bh_status status = bh__cuda_reserve(device, error);
        return status == BH_OK ? bh__cuda_self_test(device, error) : status;
    }
    bool full = result == BH__CU_OUT_OF_MEMORY;
    return bh__cuda_fail(device, error, result, full ? BH_E_NO_MEMORY : BH_E_NO_DEVICE,
                         full ? "end other programs on this device"
                              : "raise the limit on locked memory (ulimit -l), and see nvidia-smi",
                         "%s", what);
}

static bh_status open_parts(bh__device_instance *device, uint32_t index, bh_error *error) {
    bh_status status = bh__driver_open(&device->cu, error);
    if (status == BH_OK) status = find_device(device, index, error);
    if (status == BH_OK) status = bh__cuda_modes_check(device, error);
    if (status == BH_OK) status = enter_context(device, error);
    if (status == BH_OK) status = bh__cuda_info_fill(device, error);
    if (status == BH_OK) status = bh__cuda_print_open(&device->print, error);
    if (status == BH_OK) status = prepare_memory(device, error);
    if (status == BH_OK) bh__cuda_word_nodes_open(device);
    return status;
}

static bh_status open_device(const bh__device_services *services, uint32_t index,
                             bh__device_facts *info, uint64_t *out_granularity, bh_error *error,
                             bh__device_instance **out) {
    bh__device_instance *device = calloc(1, sizeof *device);
    if (!device)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory for the CUDA device");
    device->services = services;
    set_environment(services);
    bh_status status = open_parts(device, index, error);
    if (status != BH_OK) {
        /* A worker that never started cannot be lost: the device is not there. */
        if (error->status == BH_E_FAULT || error->status == BH_E_STOPPED)
            status = error->status = BH_E_NO_DEVICE;
        free(device); /* the process ends, and with it what the driver holds */
        return status;
    }
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&device->tables, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    bh__crash_watch(services->area);
    device->available = bh__available_open();
    *info = device->info;
    *out_granularity = device->granularity;
    *out = device;
    return BH_OK;
}

static void close_device(bh__device_instance *device) {
    bh__cuda_sequences_free(device);
    bh__cuda_textures_free(device);
    if (device->word_module) device->cu.module_unload(device->word_module);
    bh__cuda_unload_all(device);
    bh__cuda_unmap_all(device);
    device->cu.host_unregister(device->services->area);
    device->cu.stream_destroy(device->stream);
    device->cu.context_release(device->ordinal);
    bh__cuda_print_close(&device->print);
    pthread_rwlock_destroy(&device->tables);
    free(device);
}

/* ---- lanes ---- */

static void drop_lane(bh__device_lane *lane) {
    const bh__driver *cu = &lane->device->cu;
    bh__cuda_train_free(lane);
    bh__cuda_textures_retire(lane);
    bh__cuda_library_lane_close(lane);
    for (uint32_t i = 0; i < BH__QUEUE_EVENTS; i++)
        if (lane->events[i]) cu->event_destroy(lane->events[i]);
    for (uint32_t i = 0; i < BH__QUEUE_CLOCKS; i++) {
        if (lane->clocks[i].begin) cu->event_destroy(lane->clocks[i].begin);
        if (lane->clocks[i].end) cu->event_destroy(lane->clocks[i].end);
    }
    if (lane->stream) cu->stream_destroy(lane->stream);
    free(lane);
}

static bh_status open_lane(bh__device_instance *device, const bh__lane_message *which,
                           bh_error *error, bh__device_lane **out) {
    uint32_t index = which->index;
    bh__device_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "open fewer lanes", "no memory for lane %u",
                        index);
    lane->device = device;
    lane->index = index;
    int result = device->cu.stream_create(&lane->stream, BH__CU_STREAM_NON_BLOCKING,
                                          -which->priority); /* the lower the more urgent */
    for (uint32_t i = 0; result == BH__CU_OK && i < BH__QUEUE_EVENTS; i++)
        result = device->cu.event_create(&lane->events[i],
                                         BH__CU_EVENT_BLOCKING_SYNC | BH__CU_EVENT_NO_TIMING);
    for (uint32_t i = 0; result == BH__CU_OK && i < BH__QUEUE_CLOCKS; i++) {
        result = device->cu.event_create(&lane->clocks[i].begin, BH__CU_EVENT_DEFAULT);
        if (result == BH__CU_OK)
            result = device->cu.event_create(&lane->clocks[i].end, BH__CU_EVENT_DEFAULT);
    }
    if (result != BH__CU_OK) {
        drop_lane(lane);
        return bh__cuda_fail(device, error, result, BH_E_NO_MEMORY, "open fewer lanes",
                             "the stream of lane %u cannot be made", index);
    }
    atomic_store(&lane->queued_done, BH__CUDA_NOT_BEGUN);
    device->lanes[index] = lane;
    *out = lane;
    return BH_OK;
}

static void close_lane(bh__device_lane *lane) {
    lane->device->lanes[lane->index] = NULL;
    drop_lane(lane);
}

static bh_status begin_lane(bh__device_lane *lane, uint64_t position, bh_error *error) {
    atomic_store(&lane->queued_done, position);
    bh__crash_unblock();
    int result = lane->device->cu.context_enter(lane->device->context);
    if (result == BH__CU_OK) return BH_OK;
    return bh__cuda_fail(lane->device, error, result, BH_E_INTERNAL, BH__CUDA_DEFECT,
                         "lane %u cannot enter its context", lane->index);
}

static bh_status enqueue(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    bh__device_instance *device = lane->device;
    pthread_rwlock_rdlock(&device->tables);
    atomic_store(&lane->queued_done, BH__CUDA_QUEUING);
    bh_status status = work->op == BH__OP_LAUNCH ? bh__cuda_launch(lane, work, error)
                                                 : bh__cuda_copy(lane, work, error);
    pthread_rwlock_unlock(&device->tables);
    return status;
}

static bh_status enqueue_train(bh__device_lane *lane, const bh__work *works, uint32_t count,
                               bh_error *error) {
    bh__device_instance *device = lane->device;
    uint64_t before = atomic_load(&lane->queued_done);
    pthread_rwlock_rdlock(&device->tables);
    atomic_store(&lane->queued_done, BH__CUDA_QUEUING);
    bh_status status = bh__cuda_train_send(lane, works, count, error);
    atomic_store(&lane->queued_done, status == BH_OK ? works[count - 1].sequence : before);
    pthread_rwlock_unlock(&device->tables);
    return status;
}

static bh_status enqueue_sequence(bh__device_lane *lane, const bh__work *work,
                                  const bh__sequence_image *image, void **made, bh_error *error) {
    bh__device_instance *device = lane->device;
    pthread_rwlock_rdlock(&device->tables);
    atomic_store(&lane->queued_done, BH__CUDA_QUEUING);
    bh_status status = bh__cuda_sequence_replay(lane, work, image, made, error);
    pthread_rwlock_unlock(&device->tables);
    return status;
}

bh__cu_address bh__cuda_lane_word(const bh__device_instance *device, uint32_t lane, size_t offset) {
    return device->area + offsetof(bh__area, lane) + lane * sizeof(bh__lane_area) + offset;
}

bh__cu_address bh__cuda_done_word(const bh__device_instance *device, uint32_t lane) {
    return bh__cuda_lane_word(device, lane, offsetof(bh__lane_area, done));
}

static bh_status enqueue_word(bh__device_lane *lane, size_t word, uint64_t value, bh_error *error) {
    const bh__device_instance *device = lane->device;
    int result = device->cu.stream_write(lane->stream,
                                         bh__cuda_lane_word(device, lane->index, word), value, 0);
    if (result == BH__CU_OK) return BH_OK;
    return bh__cuda_fail(device, error, result, BH_E_INTERNAL, BH__CUDA_DEFECT,
                         "a word of lane %u cannot be written", lane->index);
}

static bh_status enqueue_done(bh__device_lane *lane, uint64_t position, bh_error *error) {
    const bh__device_instance *device = lane->device;
    int result =
        device->cu.stream_write(lane->stream, bh__cuda_done_word(device, lane->index), position, 0);
    atomic_store(&lane->queued_done, position);
    if (result == BH__CU_OK) return BH_OK;
    return bh__cuda_fail(device, error, result, BH_E_INTERNAL, BH__CUDA_DEFECT,
                         "the completion of request %llu on lane %u cannot be queued",
                         (unsigned long long)position, lane->index);
}

static bh_status enqueue_wait(bh__device_lane *lane, uint32_t other, uint64_t position,
                              bh_error *error) {
    const bh__device_instance *device = lane->device;
    int result = device->cu.stream_wait(lane->stream, bh__cuda_done_word(device, other), position,
                                        BH__CU_WAIT_AT_LEAST);
    if (result == BH__CU_OK) return BH_OK;
    return bh__cuda_fail(device, error, result, BH_E_INTERNAL, BH__CUDA_DEFECT,
                         "lane %u cannot wait for request %llu on lane %u", lane->index,
                         (unsigned long long)position, other);
}

static bh_status query(bh__device_lane *lane, bh_error *error) {
    int result = lane->device->cu.stream_query(lane->stream);
    if (result == BH__CU_OK) return BH_OK;
    if (result == BH__CU_NOT_READY) return BH_E_BUSY;
    return bh__cuda_fail(lane->device, error, result, BH_E_INTERNAL, BH__CUDA_DEFECT,
                         "lane %u cannot be queried", lane->index);
}

static bh_status enqueue_event(bh__device_lane *lane, uint32_t slot, bh_error *error) {
    int result = lane->device->cu.event_record(lane->events[slot], lane->stream);
    if (result == BH__CU_OK) return BH_OK;
    return bh__cuda_fail(lane->device, error, result, BH_E_INTERNAL, BH__CUDA_DEFECT,
                         "lane %u cannot record event %u", lane->index, slot);
}

static void event_wait(bh__device_lane *lane, uint32_t slot) {
    const bh__driver *cu = &lane->device->cu;
    if (cu->context_enter(lane->device->context) == BH__CU_OK)
        cu->event_synchronize(lane->events[slot]);
}

static bh_status clock_record(bh__device_lane *lane, bh__cu_event event, uint32_t slot,
                              bh_error *error) {
    int result = lane->device->cu.event_record(event, lane->stream);
    if (result == BH__CU_OK) return BH_OK;
    return bh__cuda_fail(lane->device, error, result, BH_E_INTERNAL, BH__CUDA_DEFECT,
                         "lane %u cannot record clock %u", lane->index, slot);
}

static bh_status clock_begin(bh__device_lane *lane, uint32_t slot, bh_error *error) {
    return clock_record(lane, lane->clocks[slot].begin, slot, error);
}

static bh_status clock_end(bh__device_lane *lane, uint32_t slot, bh_error *error) {
    return clock_record(lane, lane->clocks[slot].end, slot, error);
}

/* The write of `done` is behind the second event, so that both are complete. A driver that says
 * that one is not, or that the context has failed, only leaves the time unknown: whoever queries
 * the device next finds out. */
static bool clock_read(bh__device_lane *lane, uint32_t slot, uint64_t *out_ns) {
    const bh__driver *cu = &lane->device->cu;
    float ms = 0;
    if (!cu->event_elapsed ||
        cu->event_elapsed(&ms, lane->clocks[slot].begin, lane->clocks[slot].end) != BH__CU_OK ||
        !(ms >= 0 && ms < 1e12f))
        return false;
    *out_ns = (uint64_t)((double)ms * 1e6);
    return true;
}

/* The driver writes printed text when a thread synchronizes with its stream, which is empty here.
 */
static bh_status print_flush(bh__device_lane *lane, bh_error *error) {
    int result = lane->device->cu.stream_synchronize(lane->stream);
    bh__cuda_print_flush(lane->device);
    if (result == BH__CU_OK) return BH_OK;
    return bh__cuda_fail(lane->device, error, result, BH_E_INTERNAL, BH__CUDA_DEFECT,
                         "lane %u cannot be waited for", lane->index);
}

const bh__device_ops bh__cuda_device = {
    .program = "bulkhead-worker-cuda",
    .about = "runs Bulkhead's kernels on an NVIDIA GPU",
    .traits = BH__TRAIT_OPAQUE_MEMORY | BH__TRAIT_ORDERS_WAIT | BH__TRAIT_ENDS_SLOWLY |
              BH__TRAIT_LOADS_CUBIN | BH__TRAIT_INTERLEAVES,
    .illegal_address = BH__CU_ILLEGAL_ADDRESS,
    .profile = BH__SANDBOX_DRIVER,
    .files = bh__cuda_files,
    .open = open_device,
    .close = close_device,
    .chunk_create = bh__cuda_chunk_create,
    .chunk_map = bh__cuda_chunk_map,
    .chunk_unmap = bh__cuda_chunk_unmap,
    .driver_create = bh__cuda_managed_create,
    .driver_advise = bh__cuda_managed_advise,
    .host_map = bh__cuda_host_map,
    .host_unmap = bh__cuda_host_unmap,
    .module_load = bh__cuda_module_load,
    .module_unload = bh__cuda_module_unload,
    .global_set = bh__cuda_global_set,
    .fit = bh__cuda_fit,
    .lane_open = open_lane,
    .lane_close = close_lane,
    .lane_begin = begin_lane,
    .enqueue = enqueue,
    .enqueue_done = enqueue_done,
    .enqueue_wait = enqueue_wait,
    .enqueue_train = enqueue_train,
    .enqueue_word = enqueue_word,
    .sequence_define = bh__cuda_sequence_define,
    .sequence_drop = bh__cuda_sequence_drop,
    .enqueue_sequence = enqueue_sequence,
    .query = query,
    .enqueue_event = enqueue_event,
    .event_wait = event_wait,
    .clock_begin = clock_begin,
    .clock_end = clock_end,
    .clock_read = clock_read,
    .print_flush = print_flush,
};
