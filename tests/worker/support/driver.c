/* SPDX-License-Identifier: Apache-2.0 */
/* Driving one worker by hand. */
#include "driver.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "test.h"
#include "wire/share.h"
#include "worker/worker.h"

#ifdef BH__ONE_PROCESS
#include "cpu/cpu.h"

typedef struct worker_thread {
    pthread_t thread;
    bh__worker_instance *worker;
    int code;
} worker_thread;

static void *run_worker(void *argument) {
    worker_thread *thread = argument;
    thread->code = bh__worker_run(thread->worker);
    return NULL;
}

static void start_worker(driver *d, int socket) {
    worker_thread *thread = calloc(1, sizeof *thread);
    REQUIRE(thread != NULL);
    thread->worker = bh__worker_create(socket, &bh__cpu_device);
    REQUIRE(thread->worker != NULL);
    REQUIRE_EQ(pthread_create(&thread->thread, NULL, run_worker, thread), 0);
    d->thread = thread;
}

void driver_kill(driver *d) {
    if (d->thread) bh__worker_end(((worker_thread *)d->thread)->worker);
}

int driver_join(driver *d) {
    worker_thread *thread = d->thread;
    if (!thread) return -1;
    pthread_join(thread->thread, NULL);
    int code = thread->code;
    bh__worker_destroy(thread->worker);
    free(thread);
    d->thread = NULL;
    return code;
}

#else

static void start_worker(driver *d, int socket) {
    char path[4096];
    test_path(path, sizeof path, "%s/bin/bulkhead-worker-cpu", test_build_dir());
    d->pid = fork();
    REQUIRE(d->pid >= 0);
    if (d->pid == 0) {
        if (dup2(socket, BH__WORKER_SOCKET) >= 0) execl(path, path, (char *)NULL);
        _exit(127);
    }
    close(socket);
}

void driver_kill(driver *d) {
    if (d->pid > 0) kill(d->pid, SIGKILL);
}

int driver_join(driver *d) {
    int status = 0;
    if (d->pid <= 0) return -1;
    REQUIRE(waitpid(d->pid, &status, 0) == d->pid);
    d->pid = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

#endif

static driver *driver_new(void) {
    driver *d = calloc(1, sizeof *d);
    REQUIRE(d != NULL);
    d->printed = calloc(1, 1 << 20);
    REQUIRE(d->printed != NULL);
    d->answer_fd = d->chunk_fd = -1;
    return d;
}

static void make_area(driver *d) {
    d->area_bytes = d->front->area_bytes;
    d->area_fd = bh__share_create("test-area", d->area_bytes);
    REQUIRE(d->area_fd >= 0);
    d->area = bh__share_map(d->area_fd, 0, d->area_bytes, true);
    REQUIRE(d->area != NULL);
}

static void connect_worker(driver *d) {
    int pair[2];
    REQUIRE_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    d->socket = pair[0];
    start_worker(d, pair[1]);
}

void driver_send_boot(driver *d, const bh__boot *boot) {
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    memset(&d->message, 0, offsetof(bh__message, fds));
    d->message.type = BH__MSG_BOOT;
    d->message.u.boot = *boot;
    int fds[] = {d->front_fd, d->area_fd, d->dispatch_fd, self};
    REQUIRE_EQ(bh__message_send(d->socket, &d->message, fds, self < 0 ? 3 : 4), 0);
    if (self >= 0) close(self);
}

static void send_usual_boot(driver *d) {
    bh__boot boot = {.magic = BH__WIRE_MAGIC,
                     .version = BH__WIRE_VERSION,
                     .area = d->area_index,
                     .front_bytes = d->front->front_bytes};
    driver_send_boot(d, &boot);
}

driver *driver_start(uint32_t queue_length) {
    driver *d = driver_new();
    bh__front layout;
    memset(&layout, 0, sizeof layout);
    bh__front_layout(&layout, queue_length);
    void *front;
    d->front_fd = bh__share_publish("test-control", layout.front_bytes, &front);
    REQUIRE(d->front_fd >= 0);
    d->front = front;
    d->dispatch_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bh__front_layout(d->front, queue_length);
    d->front->worker_spin_ns = 20000;
    for (int i = 0; i < BH__MAX_LANES; i++) {
        d->front->lane[i].notify_sleep = BH__NEVER;
        d->front->lane[i].notify_dispatch = BH__NEVER;
    }
    d->area_index = 1;
    make_area(d);
    connect_worker(d);
    return d;
}

static void expect_ready(driver *d) {
    REQUIRE(driver_receive(d, 10000));
    if (d->message.type == BH__MSG_REFUSED) FAIL("refused: %s", d->message.u.error.message);
    REQUIRE_EQ(d->message.type, BH__MSG_READY);
    d->ready = d->message.u.ready;
}

driver *driver_boot(uint32_t queue_length) {
    driver *d = driver_start(queue_length);
    send_usual_boot(d);
    expect_ready(d);
    return d;
}

driver *driver_standby(const driver *first) {
    driver *d = driver_new();
    d->front = first->front;
    d->shares_front = true;
    d->front_fd = dup(first->front_fd);
    d->dispatch_fd = dup(first->dispatch_fd);
    d->area_index = first->area_index + 1;
    make_area(d);
    connect_worker(d);
    send_usual_boot(d);
    expect_ready(d);
    return d;
}

driver *driver_ready(uint32_t queue_length) {
    driver *d = driver_boot(queue_length);
    driver_prepare(d);
    REQUIRE_EQ(driver_lane(d, 0), BH_OK);
    driver_go(d);
    return d;
}

void driver_prepare(driver *d) {
    bh__chunk chunk = {.id = 1,
                       .bytes = DRIVER_CHUNK,
                       .address = DRIVER_BASE,
                       .read_only_address = DRIVER_READ_ONLY};
    REQUIRE_STATUS(driver_call(d, BH__MSG_CHUNK_CREATE, &chunk, sizeof chunk, -1), BH_OK);
    REQUIRE(d->answer_fd >= 0);
    d->chunk_fd = dup(d->answer_fd);

    int fd = bh__share_create("test-host", DRIVER_HOST);
    REQUIRE(fd >= 0);
    d->host = bh__share_map(fd, 0, DRIVER_HOST, true);
    REQUIRE(d->host != NULL);
    bh__host_region region = {.id = 1, .bytes = DRIVER_HOST};
    REQUIRE_STATUS(driver_call(d, BH__MSG_HOST_MAP, &region, sizeof region, fd), BH_OK);
    close(fd);
}

void driver_hang_up(driver *d) {
    close(d->socket);
    d->socket = -1;
}

void driver_close(driver *d) {
    driver_kill(d);
    driver_join(d);
    if (d->host) bh__share_unmap(d->host, DRIVER_HOST);
    bh__share_unmap(d->area, d->area_bytes);
    if (!d->shares_front) bh__share_unmap(d->front, d->front->front_bytes);
    int fds[] = {d->socket, d->dispatch_fd, d->front_fd, d->area_fd, d->answer_fd, d->chunk_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (fds[i] >= 0) close(fds[i]);
    }
    free(d->printed);
    free(d);
}

static void note(driver *d) {
    switch (d->message.type) {
    case BH__MSG_PRINT:
        REQUIRE(d->printed_bytes + d->message.data_bytes < 1 << 20);
        memcpy(d->printed + d->printed_bytes, d->message.data, d->message.data_bytes);
        d->printed_bytes += d->message.data_bytes;
        d->print_messages++;
        break;
    case BH__MSG_FAULT:
        d->fault_messages++;
        break;
    case BH__MSG_REPORT:
        d->report_messages++;
        break;
    default:
        break;
    }
}

bool driver_receive(driver *d, int ms) {
    struct pollfd wait = {.fd = d->socket, .events = POLLIN};
    if (d->ended || poll(&wait, 1, ms) <= 0) return false;
    int result = bh__message_receive(d->socket, &d->message);
    if (result == -EPIPE) {
        d->ended = true;
        return false;
    }
    REQUIRE_EQ(result, 0);
    note(d);
    return true;
}

void driver_pump(driver *d) {
    while (driver_receive(d, 0)) bh__message_close_fds(&d->message);
}

static bh_status await_ack(driver *d, uint32_t serial) {
    for (;;) {
        REQUIRE(driver_receive(d, 20000));
        if (d->message.type != BH__MSG_ACK) continue;
        CHECK_EQ(d->message.serial, serial);
        d->error = d->message.u.error;
        if (d->answer_fd >= 0) close(d->answer_fd);
        d->answer_fd = d->message.fd_count ? d->message.fds[0] : -1;
        return d->error.status;
    }
}

bh_status driver_call(driver *d, uint32_t type, const void *body, size_t body_bytes, int fd) {
    driver_pump(d);
    memset(&d->message, 0, offsetof(bh__message, fds));
    d->message.type = type;
    d->message.serial = ++d->serial;
    memcpy(&d->message.u, body, body_bytes);
    REQUIRE_EQ(bh__message_send(d->socket, &d->message, &fd, fd >= 0), 0);
    return await_ack(d, d->serial);
}

bh_status driver_lane(driver *d, uint32_t lane) {
    return driver_call(d, BH__MSG_LANE_OPEN, &lane, sizeof lane, -1);
}

void driver_go(driver *d) {
    memset(&d->message, 0, offsetof(bh__message, fds));
    d->message.type = BH__MSG_GO;
    REQUIRE_EQ(bh__message_send(d->socket, &d->message, NULL, 0), 0);
}

bh_status driver_module_try(driver *d, uint32_t id, const void *image, size_t bytes) {
    int fd = bh__share_create("test-image", bytes);
    REQUIRE(fd >= 0);
    REQUIRE(pwrite(fd, image, bytes, 0) == (ssize_t)bytes);
    bh__module_message module = {.id = id, .bytes = bytes};
    bh_status status = driver_call(d, BH__MSG_MODULE_LOAD, &module, sizeof module, fd);
    close(fd);
    return status;
}

/* Modules' descriptions, by id; kept mapped for the life of the test. */
static const uint8_t *blobs[16];

void driver_module(driver *d, uint32_t id, const char *ptx) {
    REQUIRE(id < 16);
    if (driver_module_try(d, id, ptx, strlen(ptx)) != BH_OK)
        FAIL("module %u: %s", id, d->error.message);
    REQUIRE_EQ(d->error.status, BH_OK);
    REQUIRE(d->answer_fd >= 0);
    const bh__module_blob *head = mmap(NULL, sizeof *head, PROT_READ, MAP_SHARED, d->answer_fd, 0);
    REQUIRE(head != MAP_FAILED);
    REQUIRE(head->magic == BH__BLOB_MAGIC);
    void *blob = mmap(NULL, head->total_bytes, PROT_READ, MAP_SHARED, d->answer_fd, 0);
    REQUIRE(blob != MAP_FAILED);
    blobs[id] = blob;
}

uint32_t driver_kernel(driver *d, uint32_t id, const char *name) {
    (void)d;
    const bh__module_blob *head = (const void *)blobs[id];
    const bh__blob_kernel *kernels = (const void *)(blobs[id] + head->kernels_offset);
    for (uint32_t i = 0; i < head->kernel_count; i++) {
        if (strcmp((const char *)blobs[id] + kernels[i].name_offset, name) == 0) return i;
    }
    FAIL("there is no kernel %s in module %u", name, id);
    abort();
}

uint32_t driver_variable(driver *d, uint32_t id, const char *name) {
    (void)d;
    const bh__module_blob *head = (const void *)blobs[id];
    const bh__blob_variable *variables = (const void *)(blobs[id] + head->variables_offset);
    for (uint32_t i = 0; i < head->variable_count; i++) {
        if (strcmp((const char *)blobs[id] + variables[i].name_offset, name) == 0) return i;
    }
    FAIL("there is no variable %s in module %u", name, id);
    return UINT32_MAX;
}

static void wake_lane(driver *d, uint32_t lane) {
    if (atomic_load(&d->area->lane[lane].asleep)) {
        atomic_store(&d->area->lane[lane].asleep, 0);
        bh__futex_wake(&d->area->lane[lane].asleep, BH__FUTEX_ALL, BH__FUTEX_SHARED);
    }
}

uint64_t driver_submit(driver *d, uint32_t lane, uint16_t op, const void *body, size_t body_bytes,
                       const void *params, size_t param_bytes, const request_parts *parts) {
    request_parts none = {0};
    if (!parts) parts = &none;
    size_t dependency_bytes = parts->dependency_count * sizeof(bh__dependency);
    uint32_t length = d->front->queue_length;
    uint32_t slots = bh__slots_for(dependency_bytes + param_bytes);
    uint64_t tail = atomic_load(&d->front->lane[lane].tail);
    REQUIRE(slots <= length);
    REQUIRE(tail + slots - driver_done(d, lane) <= length ||
            driver_wait(d, lane, tail + slots - length, 20000));
    uint8_t *ring = bh__lane_ring(d->front, d->front->queue_length, lane);
    bh__request *request = bh__ring_request(ring, length, tail);
    atomic_store_explicit(&request->op, op, memory_order_relaxed);
    request->slots = (uint16_t)slots;
    request->dependency_count = (uint16_t)parts->dependency_count;
    request->timed = 0;
    request->sequence = tail + slots;
    atomic_store_explicit(&request->hold, parts->hold, memory_order_relaxed);
    memcpy(&request->u, body, body_bytes);
    if (dependency_bytes)
        bh__payload_write(ring, length, tail, 0, parts->dependencies, dependency_bytes);
    if (param_bytes) bh__payload_write(ring, length, tail, dependency_bytes, params, param_bytes);
    atomic_store(&d->front->lane[lane].tail, tail + slots);
    wake_lane(d, lane);
    return tail + slots;
}

uint64_t driver_launch_with(driver *d, uint32_t lane, const bh__launch_body *body,
                            const void *params, const request_parts *parts) {
    return driver_submit(d, lane, BH__OP_LAUNCH, body, sizeof *body, params, body->param_bytes,
                         parts);
}

bh__launch_body driver_body(driver *d, uint32_t module, const char *kernel, uint32_t grid,
                            uint32_t block) {
    const bh__module_blob *head = (const void *)blobs[module];
    const bh__blob_kernel *kernels = (const void *)(blobs[module] + head->kernels_offset);
    uint32_t index = driver_kernel(d, module, kernel);
    return (bh__launch_body){.module = module,
                             .kernel = index,
                             .grid = {grid, 1, 1},
                             .block = {block, 1, 1},
                             .param_bytes = kernels[index].param_bytes};
}

uint64_t driver_launch(driver *d, uint32_t lane, uint32_t module, const char *kernel, uint32_t grid,
                       uint32_t block, const void *params) {
    bh__launch_body body = driver_body(d, module, kernel, grid, block);
    return driver_launch_with(d, lane, &body, params, NULL);
}

uint64_t driver_done(driver *d, uint32_t lane) {
    return atomic_load(&d->area->lane[lane].done);
}

void driver_take_reports(driver *d) {
    uint32_t made = atomic_load(&d->area->reports_made);
    if (atomic_exchange(&d->area->reports_taken, made) != made)
        bh__futex_wake(&d->area->reports_taken, BH__FUTEX_ALL, BH__FUTEX_SHARED);
}

bool driver_wait(driver *d, uint32_t lane, uint64_t sequence, int ms) {
    uint64_t end = bh__now_ns() + (uint64_t)ms * BH__NS_PER_MS * test_time_scale();
    for (unsigned round = 0; driver_done(d, lane) < sequence; round++) {
        driver_pump(d);
        if (!d->leave_reports) driver_take_reports(d);
        if (bh__now_ns() > end || d->ended) return driver_done(d, lane) >= sequence;
        if (round > 100) usleep(100);
    }
    return true;
}

const bh__report *driver_fault(driver *d) {
    for (int i = 0; i < 1000 && !d->fault_messages; i++) driver_receive(d, 20);
    REQUIRE_EQ(d->fault_messages, 1);
    REQUIRE_EQ(atomic_load(&d->area->fault_state), BH__FAULT_SET);
    return &d->area->fault;
}
