/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: create, run, kill, destroy. */
#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/share.h"
#include "worker/state.h"

bh__worker_instance *bh__worker_create(int socket, const bh__device_ops *ops) {
    /* Mapped, not allocated: zeroed and aligned, and unused parts take no memory. */
    bh__worker_instance *worker =
        mmap(NULL, sizeof *worker, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (worker == MAP_FAILED) return NULL;
    worker->ops = ops;
    worker->dispatch_fd = worker->application = worker->canary = -1;
    worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int flags = fcntl(socket, F_GETFL);
    if (worker->wake_fd < 0 || flags < 0 || fcntl(socket, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(socket, F_SETFD, FD_CLOEXEC) < 0) {
        int error = errno;
        if (worker->wake_fd >= 0) close(worker->wake_fd);
        munmap(worker, sizeof *worker);
        errno = error;
        return NULL;
    }
    worker->socket = socket;
    pthread_mutex_init(&worker->sequence_lock, NULL);
    pthread_mutex_init(&worker->names_lock, NULL);
    pthread_mutex_init(&worker->report_lock, NULL);
    pthread_mutex_init(&worker->send_lock, NULL);
    worker->services = (bh__device_services){
        .context = worker, .print = bh__worker_send_print, .killed = &worker->killed};
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        worker->lanes[i].worker = worker;
        worker->lanes[i].index = i;
    }
    return worker;
}

void bh__worker_tear_down(bh__worker_instance *worker) {
    atomic_store(&worker->killed, true);
    bh__worker_lanes_join(worker);
    bh__ping_join(worker);
    bh__worker_sequences_free(worker);
    bh__range_free(worker);
    if (worker->device) worker->ops->close(worker->device);
    worker->device = NULL;
    bh__worker_unmap_hosts(worker);
    if (worker->area) bh__share_unmap(worker->area, worker->area_bytes);
    if (worker->front) bh__share_unmap(worker->front, worker->front_bytes);
    worker->area = NULL;
    worker->front = NULL;
}

int bh__worker_run(bh__worker_instance *worker) {
    if (bh__worker_boot(worker)) bh__worker_serve_messages(worker);
    bh__worker_tear_down(worker);
    return atomic_load(&worker->exit_code);
}

void bh__worker_end(bh__worker_instance *worker) {
    atomic_store(&worker->killed, true);
    uint64_t one = 1;
    ssize_t written = write(worker->wake_fd, &one, sizeof one);
    (void)written; /* fails only if the eventfd is readable already */
}

void bh__worker_destroy(bh__worker_instance *worker) {
    if (!worker) return;
    int fds[] = {worker->socket, worker->wake_fd, worker->dispatch_fd, worker->application,
                 worker->canary};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (fds[i] >= 0) close(fds[i]);
    }
    pthread_mutex_destroy(&worker->sequence_lock);
    pthread_mutex_destroy(&worker->names_lock);
    pthread_mutex_destroy(&worker->report_lock);
    pthread_mutex_destroy(&worker->send_lock);
    munmap(worker, sizeof *worker);
}
