/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a worker: the first message, the control block, the device. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache_line.h"
#include "base/checked.h"
#include "wire/share.h"
#include "worker/state.h"

bool bh__serve_receive(bh__worker *worker) {
    for (;;) {
        struct pollfd wait[3] = {{.fd = worker->socket, .events = POLLIN},
                                 {.fd = worker->wake_fd, .events = POLLIN},
                                 {.fd = worker->application, .events = POLLIN}};
        if (poll(wait, 3, -1) < 0 && errno != EINTR) {
            bh__serve_fatal(worker, "poll failed: %s", strerror(errno));
            return false;
        }
        if (bh__serve_killed(worker) || wait[2].revents) return false;
        int result = bh__message_receive(worker->socket, &worker->incoming);
        if (result == 0) return true;
        if (result == -EAGAIN) continue;
        if (result != -EPIPE)
            bh__serve_fatal(worker, "a message of the supervisor cannot be read: %s",
                            strerror(-result));
        return false;
    }
}

static bh_status check_version(uint64_t magic, uint32_t version, const char *who, bh_error *error) {
    if (magic == BH__WIRE_MAGIC && version == BH__WIRE_VERSION) return BH_OK;
    if (magic != BH__WIRE_MAGIC)
        return bh__fail(error, BH_E_INVALID, "use libbulkhead and workers of one installation",
                        "%s does not begin as one of libbulkhead: 0x%016llx instead of 0x%016llx",
                        who, (unsigned long long)magic, (unsigned long long)BH__WIRE_MAGIC);
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

/* Checks the head of the block, as laid out by the application, against what was announced. */
static bh_status check_layout(const bh__front *front, const bh__boot *boot, bh_error *error) {
    bh_status status = check_version(front->magic, front->version, "the control block", error);
    if (status != BH_OK) return status;
    bh__front expected;
    memset(&expected, 0, sizeof expected);
    uint32_t length = front->queue_length;
    if (!bh__is_power_of_two(length) || length > 1u << 24)
        return refuse_block(error, "its queue length is no power of two");
    bh__front_layout(&expected, length);
    if (front->rings_offset != expected.rings_offset ||
        front->areas_offset != expected.areas_offset || front->area_bytes != expected.area_bytes ||
        front->total_bytes != expected.total_bytes || boot->total_bytes != expected.total_bytes)
        return refuse_block(error, "its layout differs from this worker's");
    if (boot->area >= BH__AREAS)
        return refuse_block(error, "it has no area with the number announced");
    return BH_OK;
}

static bh_status map_block(bh__worker *worker, const bh__boot *boot, int fd, bh_error *error) {
    struct stat info;
    if (fstat(fd, &info) < 0 || (uint64_t)info.st_size < boot->total_bytes ||
        boot->total_bytes < sizeof(bh__front))
        return refuse_block(error, "it is smaller than announced");
    bh__front *head = bh__share_map(fd, 0, sizeof(bh__front), false);
    if (!head) return refuse_block(error, strerror(errno));
    bh_status status = check_layout(head, boot, error);
    uint64_t areas_offset = head->areas_offset, area_bytes = head->area_bytes;
    bh__share_unmap(head, sizeof(bh__front));
    if (status != BH_OK) return status;

    worker->area_index = boot->area;
    worker->front_bytes = areas_offset;
    worker->area_bytes = area_bytes;
    worker->front = bh__share_map(fd, 0, areas_offset, false);
    worker->area = bh__share_map(fd, areas_offset + boot->area * area_bytes, area_bytes, true);
    if (!worker->front || !worker->area) return refuse_block(error, strerror(errno));
    worker->queue_length = worker->front->queue_length;
    worker->gives_back = bh__cache_line_gives_back();
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        bh__lane *lane = &worker->lanes[i];
        lane->front = &worker->front->lane[i];
        lane->area = &worker->area->lane[i];
        lane->ring = bh__lane_ring(worker->front, i);
        bh__meter_init(&lane->meter, worker->front, worker->area, i);
    }
    return BH_OK;
}

static bh_status start(bh__worker *worker, bh_device_info *info, bh_error *error) {
    bh__message *message = &worker->incoming;
    if (message->type != BH__MSG_BOOT)
        return bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                        "the first message has type %u instead of %d", message->type, BH__MSG_BOOT);
    bh_status status =
        check_version(message->u.boot.magic, message->u.boot.version, "the first message", error);
    if (status != BH_OK) return status;
    if (message->fd_count != 2 && message->fd_count != 3)
        return bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                        "the first message came with %u descriptors instead of 2 or 3",
                        message->fd_count);
    worker->dispatch_fd = message->fds[1];
    message->fds[1] = -1;
    if (message->fd_count == 3) {
        worker->application = message->fds[2];
        message->fds[2] = -1;
    }
    status = map_block(worker, &message->u.boot, message->fds[0], error);
    if (status == BH_OK) status = bh__pulse_start(worker, error);
    if (status != BH_OK) return status;
    worker->services.area = worker->area;
    worker->services.area_bytes = bh__area_head_bytes(); /* no device writes times */
    worker->services.check = message->u.boot.flags & BH_DEVICE_CHECK;
    memset(info, 0, sizeof *info);
    info->size = sizeof *info;
    return worker->ops->open(&worker->services, message->u.boot.device_index, info,
                             &worker->chunk_granularity, error, &worker->device);
}

bool bh__serve_boot(bh__worker *worker) {
    if (!bh__serve_receive(worker)) return false;
    bh__ready ready;
    memset(&ready, 0, sizeof ready);
    const char *trouble = bh__nvtx_begin();
    if (trouble) bh__serve_note(worker, trouble);
    bh_error error;
    bh_status status = start(worker, &ready.info, &error);
    bh__message_close_fds(&worker->incoming);
    if (status != BH_OK) {
        bh__serve_send(worker, BH__MSG_REFUSED, worker->incoming.serial, &error, sizeof error, NULL,
                       0, -1);
        atomic_store(&worker->exit_code, BH__EXIT_FAILED);
        return false;
    }
    ready.magic = BH__WIRE_MAGIC;
    ready.version = BH__WIRE_VERSION;
    ready.pid = (int32_t)getpid();
    ready.chunk_granularity = worker->chunk_granularity;
    ready.profiled = bh__nvtx_listens;
    bool sent = bh__serve_send(worker, BH__MSG_READY, worker->incoming.serial, &ready, sizeof ready,
                               NULL, 0, worker->canary);
    if (worker->canary >= 0) close(worker->canary);
    worker->canary = -1;
    return sent;
}
