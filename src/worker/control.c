/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread: carries out the supervisor's messages in order and answers each. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/share.h"
#include "worker/state.h"

typedef struct bh__host_mapping {
    uint32_t id;
    void *memory;
    uint64_t bytes;
} host_mapping;

/* The one descriptor that comes with a message, which must hold at least `bytes`. */
static bh_status check_fd(const bh__message *message, const char *what, uint64_t bytes,
                          bh_error *error, int *out_fd) {
    struct stat info;
    if (message->fds_refused)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, bh__errno_fix(EMFILE, ""),
                        "the worker has reached its limit on descriptors, and %s comes with one",
                        what);
    if (message->fd_count != 1 || fstat(message->fds[0], &info) < 0)
        return bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                        "%s came with %u descriptors instead of 1", what, message->fd_count);
    /* The size of device memory cannot be read from its descriptor. */
    if (bytes == 0 || (S_ISREG(info.st_mode) && (uint64_t)info.st_size < bytes))
        return bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                        "%s is said to have %llu bytes and has %lld", what,
                        (unsigned long long)bytes, (long long)info.st_size);
    *out_fd = message->fds[0];
    return BH_OK;
}

static bh_status map_chunk(bh__worker_instance *worker, const bh__message *message,
                           bh_error *error) {
    int fd;
    bh_status status = check_fd(message, "a chunk", message->u.chunk.bytes, error, &fd);
    return status != BH_OK ? status
                           : worker->ops->chunk_map(worker->device, &message->u.chunk, fd, error);
}

static bh_status map_host(bh__worker_instance *worker, const bh__message *message,
                          bh_error *error) {
    const bh__host_region *region = &message->u.host;
    int fd;
    bh_status status = check_fd(message, "a host region", region->bytes, error, &fd);
    if (status != BH_OK) return status;
    host_mapping *hosts = realloc(worker->hosts, (worker->host_count + 1) * sizeof *hosts);
    if (!hosts)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory for the list of %zu host regions", worker->host_count + 1);
    worker->hosts = hosts;
    void *memory = bh__share_map(fd, 0, region->bytes, true);
    if (!memory) {
        char reason[128];
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "use smaller or fewer host buffers",
                        "a host region of %llu bytes cannot be mapped in the worker: %s",
                        (unsigned long long)region->bytes,
                        bh__errno_text(errno, reason, sizeof reason));
    }
    status = worker->ops->host_map(worker->device, region->id, memory, region->bytes, error);
    if (status != BH_OK) {
        bh__share_unmap(memory, region->bytes);
        return status;
    }
    hosts[worker->host_count++] = (host_mapping){region->id, memory, region->bytes};
    return BH_OK;
}

static bh_status unmap_host(bh__worker_instance *worker, uint32_t id, bh_error *error) {
    bh_status status = worker->ops->host_unmap(worker->device, id, error);
    bool later = status == BH_E_BUSY; /* the device unmaps it as soon as it can */
    if (later) status = BH_OK;
    for (size_t i = 0; status == BH_OK && i < worker->host_count; i++) {
        if (worker->hosts[i].id != id) continue;
        if (!later) bh__share_unmap(worker->hosts[i].memory, worker->hosts[i].bytes);
        worker->hosts[i] = worker->hosts[--worker->host_count];
        break;
    }
    return status;
}

void bh__worker_unmap_hosts(bh__worker_instance *worker) {
    for (size_t i = 0; i < worker->host_count; i++)
        bh__share_unmap(worker->hosts[i].memory, worker->hosts[i].bytes);
    free(worker->hosts);
    worker->hosts = NULL;
    worker->host_count = 0;
}

/* Maps the file of a message about a module. Private, so that workers which are threads of one
 * process do not share it either. */
static bh_status map_private(const bh__message *message, const char *what, void **out,
                             bh_error *error) {
    int fd;
    size_t bytes = message->u.module.bytes;
    bh_status status = check_fd(message, what, bytes, error, &fd);
    if (status != BH_OK) return status;
    *out = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (*out != MAP_FAILED) return BH_OK;
    char reason[128];
    return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                    "%s of %zu bytes cannot be mapped in the worker: %s", what, bytes,
                    bh__errno_text(errno, reason, sizeof reason));
}

static bh_status load_module(bh__worker_instance *worker, const bh__message *message,
                             bh_error *error, int *out_blob) {
    void *image;
    size_t bytes = message->u.module.bytes;
    bh_status status = map_private(message, "a module image", &image, error);
    if (status != BH_OK) return status;
    status = worker->ops->module_load(worker->device, message->u.module.id, image, bytes, error,
                                      out_blob);
    munmap(image, bytes);
    if (status == BH_OK) bh__range_learn(worker, message->u.module.id, *out_blob);
    return status;
}

static bh_status take_native(bh__worker_instance *worker, const bh__message *message,
                             bh_error *error) {
    void *code;
    size_t bytes = message->u.module.bytes;
    if (!worker->ops->module_native)
        return bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                        "native code came for %s, which has no use for it", worker->ops->program);
    bh_status status = map_private(message, "native code", &code, error);
    if (status != BH_OK) return status;
    status = worker->ops->module_native(worker->device, message->u.module.id, code, bytes, error);
    munmap(code, bytes);
    return status;
}

/* What an answer can carry besides the error. */
typedef struct answer {
    int fd;
    uint32_t bytes; /* of `data` */
    union {
        bh__fit fit;
        uint64_t address;
    } data;
} answer;

static bh_status create_chunk(bh__worker_instance *worker, const bh__chunk *chunk, bh_error *error,
                              answer *out) {
    if (!(chunk->flags & BH__CHUNK_DRIVER))
        return worker->ops->chunk_create(worker->device, chunk, error, &out->fd);
    bh_status status = worker->ops->driver_create(worker->device, chunk, error, &out->data.address);
    if (status == BH_OK) out->bytes = sizeof out->data.address;
    return status;
}

static bh_status answer_fit(bh__worker_instance *worker, const bh__fit_question *question,
                            bh_error *error, answer *out) {
    bh_status status = worker->ops->fit(worker->device, question, error, &out->data.fit);
    if (status == BH_OK) out->bytes = sizeof out->data.fit;
    return status;
}

static bh_status set_debug(const bh__worker_instance *worker, const bh__message *message,
                           bh_error *error) {
    if (!worker->ops->debug_set)
        return bh__fail(error, BH_E_UNSUPPORTED,
                        "open the device \"cpu\", or use a debugger for GPUs such as cuda-gdb",
                        "following threads of a kernel is not supported by %s",
                        worker->ops->program);
    return worker->ops->debug_set(worker->device, &message->u.module, message->data,
                                  message->data_bytes, error);
}

static bh_status carry_out(bh__worker_instance *worker, const bh__message *message, bh_error *error,
                           answer *out) {
    const bh__device_ops *ops = worker->ops;
    bh__device_instance *device = worker->device;
    switch (message->type) {
    case BH__MSG_LANE_OPEN:
        return bh__worker_lane_open(worker, &message->u.lane, error);
    case BH__MSG_CHUNK_CREATE:
        return create_chunk(worker, &message->u.chunk, error, out);
    case BH__MSG_CHUNK_MAP:
        return map_chunk(worker, message, error);
    case BH__MSG_CHUNK_UNMAP:
        return ops->chunk_unmap(device, message->u.chunk.id, error);
    case BH__MSG_HOST_MAP:
        return map_host(worker, message, error);
    case BH__MSG_HOST_UNMAP:
        return unmap_host(worker, message->u.host.id, error);
    case BH__MSG_MODULE_LOAD:
        return load_module(worker, message, error, &out->fd);
    case BH__MSG_MODULE_UNLOAD:
        bh__range_forget(worker, message->u.module.id);
        return ops->module_unload(device, message->u.module.id, error);
    case BH__MSG_MODULE_NATIVE:
        return take_native(worker, message, error);
    case BH__MSG_GLOBAL_SET:
        return ops->global_set(device, &message->u.module, message->data, message->data_bytes,
                               error);
    case BH__MSG_SEQUENCE_DEFINE:
        return bh__worker_sequence_define(worker, message, error);
    case BH__MSG_SEQUENCE_DROP:
        bh__worker_sequence_drop(worker, message->u.sequence.id);
        return BH_OK;
    case BH__MSG_DEBUG:
        return set_debug(worker, message, error);
    case BH__MSG_FIT:
        return answer_fit(worker, &message->u.fit, error, out);
    case BH__MSG_ADVISE:
        return ops->driver_advise(device, &message->u.advice, error);
    default:
        return bh__fail(error, BH_E_INTERNAL, "use libbulkhead and workers of one installation",
                        "the worker does not know messages of type %u", message->type);
    }
}

void bh__worker_serve_messages(bh__worker_instance *worker) {
    bh__message *message = &worker->incoming;
    while (bh__worker_receive_message(worker)) {
        if (message->type == BH__MSG_GO) {
            bh__message_close_fds(message);
            bh__worker_lanes_activate(worker);
            continue;
        }
        bh__worker_see_done(worker);
        bh_error error;
        memset(&error, 0, sizeof error);
        answer out = {.fd = -1};
        bh_status status = carry_out(worker, message, &error, &out);
        if (status == BH_OK) memset(&error, 0, sizeof error);
        bh__message_close_fds(message);
        atomic_fetch_add_explicit(&worker->messages_done, 1, memory_order_release);
        /* The device has failed. The message is not answered, so that the next worker gets it. */
        if (status == BH_E_FAULT) {
            bh__worker_lane_fault(&worker->lanes[0], 0, &error);
            continue;
        }
        bool sent =
            bh__worker_send_message(worker, BH__MSG_ACK, message->serial, &error, sizeof error,
                                    out.bytes ? &out.data : NULL, out.bytes, out.fd);
        if (out.fd >= 0) close(out.fd);
        if (!sent) break;
    }
}
