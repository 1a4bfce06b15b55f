/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a worker: the first message, the control block, the device. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache_line.h"
#include "base/checked.h"
#include "base/processors.h"
#include "wire/share.h"
#include "worker/canary.h"
#include "worker/state.h"

bool bh__worker_receive_message(bh__worker_instance *worker) {
    for (;;) {
        struct pollfd wait[3] = {{.fd = worker->socket, .events = POLLIN},
                                 {.fd = worker->wake_fd, .events = POLLIN},
                                 {.fd = worker->application, .events = POLLIN}};
        if (poll(wait, 3, -1) < 0 && errno != EINTR) {
            bh__worker_fatal(worker, "poll failed: %s", strerror(errno));
            return false;
        }
        if (bh__worker_is_killed(worker) || wait[2].revents) return false;
        int result = bh__message_receive(worker->socket, &worker->incoming);
        if (result == 0) return true;
        if (result == -EAGAIN) continue;
        if (result != -EPIPE)
            bh__worker_fatal(worker, "a message from the supervisor cannot be read: %s",
                             strerror(-result));
        return false;
    }
}

static bh_status check_version(uint64_t magic, uint32_t version, const char *who, bh_error *error) {
    if (magic == BH__WIRE_MAGIC && version == BH__WIRE_VERSION) return BH_OK;
    if (magic != BH__WIRE_MAGIC)
        return bh__fail(
            error, BH_E_INVALID, "use libbulkhead and workers of one installation",
            "%s is not one of libbulkhead: it begins with 0x%016llx instead of 0x%016llx", who,
            (unsigned long long)magic, (unsigned long long)BH__WIRE_MAGIC);
    return bh__fail(error, BH_E_INVALID, "use libbulkhead and workers of one installation",
                    "libbulkhead speaks version %u of the protocol and this worker (%d.%d.%d) "
                    "version %u",
                    version, BH_VERSION_MAJOR, BH_VERSION_MINOR, BH_VERSION_PATCH,
                    BH__WIRE_VERSION);
}

static bh_status refuse_block(bh_error *error, const char *what) {
    return bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                    "the control block cannot be used: %s", what);
}

/* Checks the head of the front, as laid out by the application, against what was announced. */
static bh_status check_layout(const bh__front *front, const bh__boot *boot, bh_error *error) {
    bh_status status = check_version(front->magic, front->version, "the control block", error);
    if (status != BH_OK) return status;
    bh__front expected;
    memset(&expected, 0, sizeof expected);
    uint32_t length = front->queue_length;
    if (!bh__is_power_of_two(length) || length > 1u << 24)
        return refuse_block(error, "its queue length is not a power of two");
    bh__front_layout(&expected, length);
    if (front->rings_offset != expected.rings_offset ||
        front->front_bytes != expected.front_bytes || front->area_bytes != expected.area_bytes ||
        boot->front_bytes != expected.front_bytes)
        return refuse_block(error, "its layout differs from this worker's");
    if (boot->area >= BH__AREAS)
        return refuse_block(error, "it has no area with the number announced");
    return BH_OK;
}

static bh_status refuse_mapping(bh_error *error, uint64_t bytes) {
    char reason[128];
    int number = errno;
    return bh__fail(error, BH_E_NO_HOST_MEMORY, bh__errno_fix(number, "free memory"),
                    "the control block's %llu bytes cannot be mapped in the worker: %s",
                    (unsigned long long)bytes, bh__errno_text(number, reason, sizeof reason));
}

static bh_status map_front(bh__worker_instance *worker, const bh__boot *boot, int fd,
                           bh_error *error) {
    struct stat info;
    if (fstat(fd, &info) < 0 || (uint64_t)info.st_size < boot->front_bytes ||
        boot->front_bytes < sizeof(bh__front))
        return refuse_block(error, "it is smaller than announced");
    bh__front *front = bh__share_map(fd, 0, boot->front_bytes, false);
    if (!front) return refuse_mapping(error, boot->front_bytes);
    worker->front = front;
    worker->front_bytes = boot->front_bytes;
    return check_layout(front, boot, error);
}

static bh_status map_area(bh__worker_instance *worker, uint32_t index, int fd, bh_error *error) {
    struct stat info;
    uint64_t bytes = worker->front->area_bytes;
    if (fstat(fd, &info) < 0 || (uint64_t)info.st_size != bytes)
        return refuse_block(error, "the worker's area does not have the size that its front says");
    worker->area = bh__share_map(fd, 0, bytes, true);
    if (!worker->area) return refuse_mapping(error, bytes);
    worker->area_bytes = bytes;
    worker->area_index = index;
    return BH_OK;
}

static bh_status map_block(bh__worker_instance *worker, const bh__message *message,
                           bh_error *error) {
    const bh__boot *boot = &message->u.boot;
    bh_status status = map_front(worker, boot, message->fds[0], error);
    if (status == BH_OK) status = map_area(worker, boot->area, message->fds[1], error);
    if (status != BH_OK) return status;
    worker->queue_length = worker->front->queue_length;
    worker->processors = bh__processors();
    worker->gives_back = bh__cache_line_gives_back();
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        bh__worker_lane *lane = &worker->lanes[i];
        lane->front = &worker->front->lane[i];
        lane->area = &worker->area->lane[i];
        lane->ring = bh__lane_ring(worker->front, worker->queue_length, i);
        bh__meter_init(&lane->meter, worker->front, worker->area, i);
    }
    return BH_OK;
}

static bh_status start(bh__worker_instance *worker, bh__device_facts *info, bh_error *error) {
    bh__message *message = &worker->incoming;
    if (message->type != BH__MSG_BOOT)
        return bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                        "the first message has type %u instead of %d", message->type, BH__MSG_BOOT);
    bh_status status =
        check_version(message->u.boot.magic, message->u.boot.version, "the first message", error);
    if (status != BH_OK) return status;
    if (message->fd_count != 3 && message->fd_count != 4)
        return bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                        "the first message came with %u descriptors instead of 3 or 4",
                        message->fd_count);
    worker->dispatch_fd = message->fds[2];
    message->fds[2] = -1;
    if (message->fd_count == 4) {
        worker->application = message->fds[3];
        message->fds[3] = -1;
    }
    worker->services.check = message->u.boot.flags & BH_DEVICE_CHECK;
    worker->services.native = message->u.boot.native != 0;
    worker->services.libraries = message->u.boot.libraries;
    if (worker->services.libraries && worker->ops->libraries_find)
        worker->ops->libraries_find(worker->services.libraries);
    if (worker->services.check && !worker->ops->checks)
        return bh__fail(error, BH_E_UNSUPPORTED,
                        "open the device \"cpu\", or run the program under compute-sanitizer",
                        "checks (BH_DEVICE_CHECK) are not supported by %s", worker->ops->program);
    if (worker->is_process) {
        bh__confine_files(&worker->confinement, &message->u.boot, worker->ops);
        worker->canary = bh__canary_start();
    }
    status = map_block(worker, message, error);
    if (status == BH_OK) status = bh__ping_start(worker, error);
    if (status != BH_OK) return status;
    worker->services.area = worker->area;
    worker->services.area_bytes = bh__area_head_bytes(); /* devices do not write times */
    memset(info, 0, sizeof *info);
    status = worker->ops->open(&worker->services, message->u.boot.device_index, info,
                               &worker->chunk_granularity, error, &worker->device);
    if (status != BH_OK || !worker->is_process) return status;
    return bh__confine_calls(&worker->confinement, worker->ops, worker->area, info, error);
}

bool bh__worker_boot(bh__worker_instance *worker) {
    if (!bh__worker_receive_message(worker)) return false;
    bh__ready ready;
    memset(&ready, 0, sizeof ready);
    const char *problem = bh__nvtx_begin();
    if (problem) bh__worker_send_note(worker, problem);
    bh_error error;
    bh_status status = start(worker, &ready.info, &error);
    bh__message_close_fds(&worker->incoming);
    if (status != BH_OK) {
        bh__worker_send_message(worker, BH__MSG_REFUSED, worker->incoming.serial, &error,
                                sizeof error, NULL, 0, -1);
        atomic_store(&worker->exit_code, BH__EXIT_FAILED);
        return false;
    }
    ready.magic = BH__WIRE_MAGIC;
    ready.version = BH__WIRE_VERSION;
    ready.pid = (int32_t)getpid();
    ready.chunk_granularity = worker->chunk_granularity;
    ready.profiled = bh__nvtx_listens;
    ready.traits = worker->ops->traits;
    bool sent = bh__worker_send_message(worker, BH__MSG_READY, worker->incoming.serial, &ready,
                                        sizeof ready, NULL, 0, worker->canary);
    if (worker->canary >= 0) close(worker->canary);
    worker->canary = -1;
    return sent;
}
