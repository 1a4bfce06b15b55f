/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device offers its figures to `bulkhead top` and its like through a socket in a folder that only
 * this user can enter. The supervisor answers each connection with one message and closes it:
 * nobody who connects can make it wait, keep memory of it, or ask for anything. While nobody
 * connects this costs a descriptor. A device works without it wherever it cannot be.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/environment.h"
#include "base/log.h"
#include "client/core/fork.h"
#include "client/device/device.h"
#include "client/memory/memory.h"
#include "client/module/module.h"
#include "client/observe/snapshot.h"
#include "client/workers/report.h"
#include "figures/figures.h"

enum {
    BACKLOG = 8,
    SWEPT = 32,      /* entries looked at when a device is opened */
    LOOKED_AT = 4096 /* kernels: the device is locked meanwhile */
};

/* ---- the socket ---- */

static bool is_wanted(const bh__device *device) {
    const char *text = bh__environment("BULKHEAD_PUBLISH");
    return !device->is_reader && !(device->options.flags & BH_DEVICE_PRIVATE) &&
           !bh__is_privileged() && !(text && strcmp(text, "off") == 0);
}

static bh__offer entry_of(const bh__device *device) {
    const bh__publisher *self = &device->observe.publisher;
    return (bh__offer){self->pid, self->start, device->slot, false};
}

/* The socket gets its name when it listens: one that refuses is taken for a leftover. */
static int listen_in(int folder, bh__offer entry) {
    char final[BH__OFFER_NAME], first[BH__OFFER_NAME];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    bh__offer_name(&entry, final);
    entry.fresh = true;
    bh__offer_name(&entry, first);
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, first);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    /* The mode of a socket's file is the one that the socket has now, without the umask's bits. */
    bool listens = fchmod(fd, 0600) == 0 &&
                   bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
                   listen(fd, BACKLOG) == 0 && renameat(folder, first, folder, final) == 0;
    if (listens) return fd;
    int number = errno;
    unlinkat(folder, first, 0);
    close(fd);
    errno = number;
    return -1;
}

void bh__publish_open(bh__device *device) {
    char paths[BH__RUNTIME_PATHS][BH__RUNTIME_PATH], text[128];
    if (!is_wanted(device)) return;
    size_t count = bh__runtime_paths(paths);
    for (size_t i = 0; i < count && device->observe.listen_fd < 0; i++) {
        int folder = bh__runtime_open(paths[i], true);
        if (folder >= 0) {
            bh__runtime_sweep(folder, SWEPT);
            device->observe.publisher = (bh__publisher){
                .uid = geteuid(), .pid = getpid(), .start = bh__started_at(getpid())};
            memcpy(device->observe.publisher.folder, paths[i], sizeof paths[i]);
            device->observe.listen_fd = bh__fd_keep(listen_in(folder, entry_of(device)));
        }
        if (device->observe.listen_fd < 0 && bh__log_wants(BH_LOG_DEBUG))
            bh__log_debug("figures cannot be offered in %s: %s", paths[i],
                          bh__errno_text(errno, text, sizeof text));
        if (folder >= 0) close(folder);
    }
}

void bh__publish_close(bh__device *device) {
    if (device->observe.listen_fd < 0) return;
    char name[BH__OFFER_NAME];
    bh__offer entry = entry_of(device);
    int folder = bh__runtime_open(device->observe.publisher.folder, false);
    bh__offer_name(&entry, name);
    if (folder >= 0 && device->observe.publisher.pid == getpid()) unlinkat(folder, name, 0);
    if (folder >= 0) close(folder);
    bh__fd_close(device->observe.listen_fd);
    device->observe.listen_fd = -1;
}

/* ---- what is answered ---- */

/* Those that ran longest; of those that took no known time, the ones launched most often. */
static bool is_before(const bh__figures_kernel *a, const bh__figures_kernel *b) {
    return a->device_ns != b->device_ns ? a->device_ns > b->device_ns : a->launches > b->launches;
}

static void add_kernel(const bh__kernel *kernel, const bh__kernel_total *totals, uint32_t count,
                       bh__figures *out) {
    bh__figures_kernel it = {.size = sizeof it,
                             .quarantined = kernel->quarantined,
                             .launches = kernel->submitted,
                             .dropped = kernel->dropped,
                             .faults = kernel->faults};
    bh__kernel_total_add(kernel, totals, count, &it.timed, &it.device_ns);
    uint32_t at = out->kernel_count;
    while (at > 0 && is_before(&it, &out->kernels[at - 1])) at--;
    if (at == BH__FIGURES_KERNELS) return;
    if (out->kernel_count < BH__FIGURES_KERNELS) out->kernel_count++;
    memmove(&out->kernels[at + 1], &out->kernels[at], (out->kernel_count - 1 - at) * sizeof it);
    snprintf(it.name, sizeof it.name, "%.127s", kernel->name ? kernel->name : "");
    out->kernels[at] = it;
}

static void fill_kernels(bh__device *device, bh__figures *out) {
    bh__kernel_total totals[BH__KERNEL_TOTALS];
    uint32_t seen = 0, count = 0;
    if (!device->queue.frozen) count = bh__kernel_totals(device, totals, BH__KERNEL_TOTALS);
    for (const bh__module *module = device->module.list; module; module = module->next)
        for (uint32_t i = 0; i < module->kernel_count && seen < LOOKED_AT; i++, seen++)
            if (module->kernels[i].submitted) add_kernel(&module->kernels[i], totals, count, out);
}

static void fill(bh__device *device, bh__figures *out) {
    bh__snapshot_process(&out->process);
    out->process.start = device->observe.publisher.start;
    bh__lock_take(&device->lock);
    bh__snapshot_counters(device, out);
    bh__info_fill(device, &out->info);
    out->tag_count = bh__usage_tags(device, out->tags, BH__FIGURES_TAGS);
    fill_kernels(device, out);
    bh__lock_give(&device->lock);
    bh__health_get(device, &out->health);
    out->loss_count = (uint32_t)bh__losses_copy(device, out->losses);
}

/* Sends what the socket has room for, which is all unless the system's limit is very low. */
static void answer(bh__device *device, int fd) {
    struct ucred who = {0};
    socklen_t size = sizeof who;
    int room = BH__FIGURES_MESSAGE_MAX * 2;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 ||
        who.uid != device->observe.publisher.uid)
        return;
    bh__figures *figures = calloc(1, sizeof *figures);
    void *message = malloc(BH__FIGURES_MESSAGE_MAX);
    if (figures && message) {
        fill(device, figures);
        size_t bytes = bh__figures_pack(figures, message, BH__FIGURES_MESSAGE_MAX);
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
        ssize_t sent = send(fd, message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)sent;
    }
    free(figures);
    free(message);
}

/* One answer at a time, and then a pause: whoever connects without end cannot keep the supervisor
 * from its work. */
void bh__publish_answer(bh__device *device) {
    bh__publisher *self = &device->observe.publisher;
    if (!bh__fd_is_ours(device->observe.listen_fd)) {
        device->observe.listen_fd = -1;
        return;
    }
    int fd = accept4(device->observe.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    bool no_room = fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
    self->next_at = bh__now_ns() + (no_room ? BH__NS_PER_S : BH__PUBLISH_PAUSE_NS);
    if (fd < 0) return;
    answer(device, fd);
    close(fd);
}
