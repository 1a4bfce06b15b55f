/* SPDX-License-Identifier: Apache-2.0 */
/* The program: the real worker on the CPU device, with the hostilities hooked in. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cpu/cpu.h"
#include "hostile.h"

worker_state hostile;

static bool is_awake(void) {
    return atomic_load(&hostile.awake);
}

/* ---- messages ---- */

int __wrap_bh__message_send(int socket, const bh__message *message, const int *fds,
                            uint32_t fd_count);
int __wrap_bh__message_receive(int socket, bh__message *message);

int __wrap_bh__message_send(int socket, const bh__message *message, const int *fds,
                            uint32_t fd_count) {
    const hostility *one = is_awake() ? PICK(send) : NULL;
    if (one && one_in(2)) return one->send(message, fds, fd_count);
    return __real_bh__message_send(socket, message, fds, fd_count);
}

int __wrap_bh__message_receive(int socket, bh__message *message) {
    const hostility *one = is_awake() && hostile.services ? PICK(receive) : NULL;
    if (one) {
        one->receive();
        return -EPIPE;
    }
    int failed = __real_bh__message_receive(socket, message);
    if (failed) return failed;
    atomic_store(&hostile.last_serial, message->serial);
    for (uint32_t i = 0; i < message->fd_count; i++) file_note(message->fds[i]);
    if (hostile.orders_before && --hostile.orders_before == 0) atomic_store(&hostile.awake, true);
    return 0;
}

int __wrap_bh__futex_wake(_Atomic(uint32_t) *word, int count, bh__futex_scope scope);

int __wrap_bh__futex_wake(_Atomic(uint32_t) *word, int count, bh__futex_scope scope) {
    const hostility *one = is_awake() && scope == BH__FUTEX_SHARED ? PICK(wake) : NULL;
    if (!one) return __real_bh__futex_wake(word, count, scope);
    one->wake();
    return 0;
}

/* ---- the device ---- */

static bh_status open_device(const bh__device_services *services, uint32_t index,
                             bh__device_facts *info, uint64_t *out_granularity, bh_error *error,
                             bh__device_instance **out) {
    hostile.services = services;
    bh_status status = bh__cpu_device.open(services, index, info, out_granularity, error, out);
    const hostility *one = PICK(describe);
    if (status == BH_OK && one) one->describe(info, out_granularity);
    return status;
}

static void replace(int *fd, uint64_t bytes) {
    const hostility *one = is_awake() ? PICK(descriptor) : NULL;
    if (!one || one_in(3)) return;
    close(*fd);
    *fd = one->descriptor(bytes);
}

static bh_status create_chunk(bh__device_instance *device, const bh__chunk *chunk, bh_error *error,
                              int *out_fd) {
    bh_status status = bh__cpu_device.chunk_create(device, chunk, error, out_fd);
    if (status == BH_OK) replace(out_fd, chunk->bytes);
    return status;
}

/* The description again, in another file: spoilt. */
static void spoil_module(int *fd) {
    const hostility *one = is_awake() ? PICK(describe_module) : NULL;
    struct stat info;
    if (!one || one_in(4) || fstat(*fd, &info) != 0 || info.st_size <= 0) return;
    uint64_t bytes = (uint64_t)info.st_size;
    int file = memory_file(bytes, 0);
    uint8_t *blob = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (blob == MAP_FAILED || pread(*fd, blob, bytes, 0) != info.st_size) _exit(1);
    one->describe_module(blob, bytes);
    munmap(blob, bytes);
    fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    close(*fd);
    *fd = file;
}

static bh_status load_module(bh__device_instance *device, uint32_t id, const void *image,
                             size_t bytes, bh_error *error, int *out_blob) {
    bh_status status = bh__cpu_device.module_load(device, id, image, bytes, error, out_blob);
    if (status != BH_OK) return status;
    spoil_module(out_blob);
    replace(out_blob, bytes);
    return BH_OK;
}

static bh_status take_native(bh__device_instance *device, uint32_t id, const void *data,
                             size_t bytes, bh_error *error) {
    const hostility *one = PICK(native); /* whenever it comes */
    if (one) one->native();
    return bh__cpu_device.module_native(device, id, data, bytes, error);
}

static bh_status execute(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    const hostility *one = is_awake() ? PICK(execute) : NULL;
    bh_status status;
    if (one && one->execute(work, &status, error)) return status;
    return bh__cpu_device.execute(lane, work, error);
}

/* ---- strikes ---- */

static void *strike(void *unused) {
    struct timespec before = {.tv_nsec = (long)hostile.awake_after_ms * 1000000};
    nanosleep(&before, NULL);
    atomic_store(&hostile.awake, true);
    for (;;) {
        const hostility *one = PICK(strike);
        if (!one) return unused;
        for (uint32_t burst = one_in(4) ? below(40) : 1; hostile.services && burst; burst--)
            one->strike();
        nap_us(one_in(4) ? 20000 : 500);
    }
}

static void start_striking(void) {
    pthread_t thread;
    if (hostile.awake_after_ms == 0) atomic_store(&hostile.awake, true); /* before any work */
    if (pthread_create(&thread, NULL, strike, NULL) != 0) _exit(1);
    pthread_detach(thread);
}

/* ---- whose turn ---- */

static uint64_t number_from(const char *name) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

static bool is_peace(const char *log) {
    char path[700];
    snprintf(path, sizeof path, "%s.peace", log);
    return access(path, F_OK) == 0;
}

static uint64_t count_lines(int fd) {
    char text[4096];
    uint64_t lines = 0;
    ssize_t got;
    for (off_t at = 0; (got = pread(fd, text, sizeof text, at)) > 0; at += got)
        for (ssize_t i = 0; i < got; i++) lines += text[i] == '\n';
    return lines;
}

/* Decides what this worker is and says so in the log. True: hostile. */
static bool take_turn(void) {
    const char *log = getenv("BULKHEAD_HOSTILE_LOG");
    char names[300] = "", line[400];
    int fd = log ? open(log, O_RDWR | O_APPEND | O_CLOEXEC) : -1;
    if (fd < 0) return false;
    flock(fd, LOCK_EX);
    uint64_t number = count_lines(fd);
    bool turn = number >= number_from("BULKHEAD_HOSTILE_FROM") &&
                number < number_from("BULKHEAD_HOSTILE_WORKERS") && !is_peace(log);
    turn = turn && choose(number_from("BULKHEAD_HOSTILE_SEED") * 64 + number,
                          getenv("BULKHEAD_HOSTILE_ONLY"), names, sizeof names);
    int length = snprintf(line, sizeof line, "%d%s\n", (int)getpid(), turn ? names : " honest");
    if (write(fd, line, (size_t)length) != length) turn = false;
    close(fd);
    return turn;
}

/* Of the sanitizers. A hostile worker that says that work is done before it is may free what it
 * still uses: that is no defect, so what they report of it goes to its standard error, not to a
 * file. */
__attribute__((weak)) void __sanitizer_set_report_path(const char *path);

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    static bh__device_ops ops;
    ops = bh__cpu_device;
    hostile.ops = &ops;
    if (take_turn()) {
        if (__sanitizer_set_report_path) __sanitizer_set_report_path("stderr");
        const hostility *one = PICK(boot);
        if (one) {
            one->boot();
            _exit(0);
        }
        ops.open = open_device;
        ops.chunk_create = create_chunk;
        ops.module_load = load_module;
        ops.module_native = take_native;
        ops.execute = execute;
        start_striking();
    }
    bh__worker_main(argc, argv, &ops);
}
