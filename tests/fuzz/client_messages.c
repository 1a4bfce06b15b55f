/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a worker as the application reads them. A worker here is a thread that answers each
 * order as the input says: rightly, with bytes changed, with another message, with reports that
 * make no sense, or by its death. Whatever it does, calls return, and closing the device leaves
 * nothing behind.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/shadow.h"
#include "bulkhead.h"
#include "client/process/worker_process.h"
#include "fuzz.h"
#include "wire/control.h"
#include "wire/message.h"
#include "wire/share.h"
#include "worker/module_blob.h"

enum { FIRST_PID = 0x40000000, GRANULE = 1 << 16, CHANGES = 3 };
#define PATIENCE 300000000ull /* ns */

typedef struct mad_worker {
    pthread_t thread;
    int socket, ended, dispatch;
    _Atomic(bool) killed;
    bool joined;
    bh__front *front; /* mapped by BOOT */
    bh__area *area;
    bool checks;
    uint64_t front_bytes, area_bytes;
    bh__message in, out;
} mad_worker;

/* One worker at a time takes from it; the lock is for the next one. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fuzz_input choices;

static void choose(void *out, size_t size) {
    pthread_mutex_lock(&lock);
    fuzz_take(&choices, out, size);
    pthread_mutex_unlock(&lock);
}

static uint8_t choose_byte(void) {
    uint8_t byte;
    choose(&byte, 1);
    return byte;
}

static bool nothing_left(void) {
    pthread_mutex_lock(&lock);
    bool none = choices.left == 0;
    pthread_mutex_unlock(&lock);
    return none;
}

/* ---- answers ---- */

static void map_block(mad_worker *self) {
    const bh__boot *boot = &self->in.u.boot;
    FUZZ_CHECK(self->in.fd_count >= 3);
    self->front_bytes = boot->front_bytes;
    self->front = bh__share_map(self->in.fds[0], 0, self->front_bytes, false);
    FUZZ_CHECK(self->front != NULL);
    self->area_bytes = self->front->area_bytes;
    self->area = bh__share_map(self->in.fds[1], 0, self->area_bytes, true);
    FUZZ_CHECK(self->area != NULL);
    self->dispatch = dup(self->in.fds[2]);
    self->checks = boot->flags & BH_DEVICE_CHECK;
}

static void answer_boot(mad_worker *self) {
    bh__ready *ready = &self->out.u.ready;
    map_block(self);
    self->out.type = BH__MSG_READY;
    *ready = (bh__ready){.magic = BH__WIRE_MAGIC,
                         .version = BH__WIRE_VERSION,
                         .pid = FIRST_PID,
                         .chunk_granularity = GRANULE};
    ready->info.memory_total = 1 << 30;
    ready->info.warp_size = 32;
    ready->info.max_threads_per_block = 1024;
    for (int i = 0; i < 3; i++) ready->info.max_block[i] = ready->info.max_grid[i] = 1024;
    snprintf(ready->info.name, sizeof ready->info.name, "mad");
}

static int make_blob(void) {
    bh__blob blob = {0};
    bh_error error;
    int fd = -1;
    uint8_t more = choose_byte();
    bh__blob_param params[2] = {{.bytes = 8, .pointer = 1},
                                {.offset = 8, .bytes = 4 + (more & 1), .scalar = 1}};
    bh__blob_kernel kernel = {.param_count = 2, .param_bytes = 12, .max_threads = 1024};
    bh__blob_add_kernel(&blob, "k", kernel, params);
    bh__blob_add_variable(&blob, "v", (bh__blob_variable){.bytes = 16, .writable = 1});
    FUZZ_CHECK(bh__blob_finish(&blob, &error, &fd) == BH_OK);
    return fd;
}

/* The descriptor that a right answer carries; -1: none. */
static int answer_order(mad_worker *self) {
    self->out.type = BH__MSG_ACK;
    switch (self->in.type) {
    case BH__MSG_BOOT:
        answer_boot(self);
        return -1;
    case BH__MSG_CHUNK_CREATE:
        return bh__share_create("fuzz", self->checks
                                            ? bh__checked_chunk_bytes(self->in.u.chunk.bytes)
                                            : self->in.u.chunk.bytes);
    case BH__MSG_MODULE_LOAD:
        return make_blob();
    case BH__MSG_FIT:
        self->out.data_bytes = sizeof(bh__fit);
        return -1;
    default:
        return -1;
    }
}

/* ---- madness ---- */

static void send_other(mad_worker *self) {
    bh__message *out = &self->out;
    memset(out, 0, offsetof(bh__message, fds));
    out->type = BH__MSG_READY + choose_byte() % (BH__MSG_REPLIES_END - BH__MSG_READY);
    uint8_t bytes = choose_byte();
    choose(out->data, bytes);
    bool findings = out->type == BH__MSG_FINDING && bytes & 1;
    out->data_bytes = findings ? bytes / 2 % 16 * (uint32_t)sizeof(bh_finding) : bytes;
    choose(&out->u, 32);
    (void)bh__message_send(self->socket, out, NULL, 0);
}

static void scribble(mad_worker *self) {
    if (!self->area) return;
    uint8_t how = choose_byte();
    bh__report *report = how & 1 ? &self->area->fault : &self->area->reports[how >> 4];
    choose(report, 40);
    choose(report->message, 8);
    if (how & 1)
        atomic_store(&self->area->fault_state, how >> 1 & 3);
    else
        atomic_fetch_add(&self->area->reports_made, 1 + (how >> 1 & 1) * 77u);
    self->area->lane[0].done += how & 8;
}

static void change_bytes(void *message, size_t bytes) {
    for (int i = 0; i < CHANGES; i++) {
        uint16_t at;
        choose(&at, sizeof at);
        ((uint8_t *)message)[at % bytes] ^= choose_byte();
    }
}

/* False: it ends. */
static bool answer(mad_worker *self) {
    uint8_t how = choose_byte();
    if (self->in.type == BH__MSG_GO) return true;
    if (how % 16 == 15) return false;
    if (how % 16 == 14) scribble(self);
    if (how % 16 >= 12) send_other(self);
    memset(&self->out, 0, offsetof(bh__message, fds));
    self->out.serial = self->in.serial + (how % 16 == 11);
    int fd = answer_order(self);
    if (how % 16 >= 8 && how % 16 < 11) change_bytes(&self->out.u, sizeof self->out.u);
    bool sent = bh__message_send(self->socket, &self->out, &fd, fd >= 0) == 0;
    if (fd >= 0) close(fd);
    return sent;
}

/* Everything is done as soon as it is there. */
static void serve_lanes(mad_worker *self) {
    uint64_t one = 1;
    for (int i = 0; self->area && i < BH__MAX_LANES; i++) {
        bh__lane_area *lane = &self->area->lane[i];
        uint64_t tail = atomic_load(&self->front->lane[i].tail);
        if (atomic_load(&lane->done) >= tail) continue;
        atomic_store(&lane->claim, tail);
        atomic_store(&lane->done, tail);
        atomic_fetch_add(&lane->wake, 1);
        bh__futex_wake(&lane->wake, BH__FUTEX_ALL, BH__FUTEX_SHARED);
        if (write(self->dispatch, &one, sizeof one) < 0) return;
    }
    if (self->area) atomic_store(&self->area->pong, atomic_load(&self->front->ping[0]));
}

static void *mad_main(void *argument) {
    mad_worker *self = argument;
    uint64_t one = 1;
    bool goes_on = true;
    while (goes_on && !self->killed) {
        struct pollfd wait = {.fd = self->socket, .events = POLLIN};
        bool there = poll(&wait, 1, 1) > 0;
        serve_lanes(self);
        if (!there) continue;
        goes_on = bh__message_receive(self->socket, &self->in) == 0 && answer(self);
        bh__message_close_fds(&self->in);
        goes_on = goes_on && !nothing_left();
    }
    if (self->front) bh__share_unmap(self->front, self->front_bytes);
    if (self->area) bh__share_unmap(self->area, self->area_bytes);
    if (self->dispatch >= 0) close(self->dispatch);
    close(self->socket);
    FUZZ_CHECK(write(self->ended, &one, sizeof one) == sizeof one);
    return NULL;
}

/* ---- in place of src/client/process/worker_process.c ---- */

bh_status bh__process_start(const char *path, int socket, int errors, bh__process *out,
                            bh_error *error) {
    (void)path, (void)errors;
    if (nothing_left())
        return bh__fail(error, BH_E_NO_DEVICE, "give a longer input", "the input is at its end");
    mad_worker *self = calloc(1, sizeof *self);
    FUZZ_CHECK(self != NULL);
    self->socket = dup(socket);
    self->dispatch = -1;
    self->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    FUZZ_CHECK(self->socket >= 0 && self->ended >= 0);
    FUZZ_CHECK(pthread_create(&self->thread, NULL, mad_main, self) == 0);
    *out = (bh__process){{.pid = FIRST_PID, .end_fd = self->ended}, .thread = self};
    return BH_OK;
}

void bh__process_kill(const bh__process *process) {
    if (process->thread) ((mad_worker *)process->thread)->killed = true;
}

bool bh__process_gone(const bh__process *process, bh__process_end *out_end) {
    mad_worker *self = process->thread;
    struct pollfd look = {.fd = self->ended, .events = POLLIN};
    memset(out_end, 0, sizeof *out_end);
    if (poll(&look, 1, 0) <= 0) return false;
    if (!self->joined) pthread_join(self->thread, NULL);
    self->joined = out_end->known = true;
    return true;
}

void bh__process_close(bh__process *process) {
    mad_worker *self = process->thread;
    if (!self) return;
    if (!self->joined) pthread_join(self->thread, NULL);
    close(self->ended);
    free(self);
    process->thread = NULL;
}

int bh__process_self(void) {
    return -1;
}

/* ---- the application ---- */

static char folder[] = "/tmp/bulkhead-fuzz-XXXXXX";
static char program[sizeof folder + 24];

static void remove_folder(void) {
    unlink(program);
    rmdir(folder);
}

/* Nobody starts it; it must be there. */
static void make_program(void) {
    if (program[0]) return;
    FUZZ_CHECK(mkdtemp(folder) != NULL);
    snprintf(program, sizeof program, "%s/bulkhead-worker-cpu", folder);
    FILE *file = fopen(program, "we");
    FUZZ_CHECK(file != NULL && fclose(file) == 0 && chmod(program, 0755) == 0);
    atexit(remove_folder);
}

static void check_text(const char *text, size_t size) {
    FUZZ_CHECK(memchr(text, 0, size) != NULL);
    for (; *text; text++) FUZZ_CHECK((unsigned char)*text >= ' ' || *text == '\n' || *text == '\t');
}

/* What a worker said of a fault, as the program reads it. */
static void use_reports(bh_device device, bh_kernel kernel) {
    static bh_finding findings[128];
    static char text[100000];
    size_t count = 0, length = 0;
    bh_kernel_info info = BH_INIT(info);
    bh_debug_options options = BH_INIT(options);
    options.stop = "1";
    (void)bh_kernel_debug(kernel, &options);
    if (bh_kernel_get_info(kernel, &info) == BH_OK)
        check_text(info.executor_note, sizeof info.executor_note);
    if (bh_device_list_findings(device, 0, findings, sizeof *findings, 128, &count) == BH_OK)
        for (size_t i = 0; i < count && i < 128; i++) {
            check_text(findings[i].message, sizeof findings[i].message);
            check_text(findings[i].fix, sizeof findings[i].fix);
            check_text(findings[i].kind, sizeof findings[i].kind);
            check_text(findings[i].kernel, sizeof findings[i].kernel);
            check_text(findings[i].here.file, sizeof findings[i].here.file);
        }
    if (bh_device_get_fault_state(device, 0, text, sizeof text, &length) == BH_OK)
        check_text(text, sizeof text);
    bh_error error;
    (void)bh_last_error(&error);
    check_text(error.message, sizeof error.message);
    check_text(error.device_name, sizeof error.device_name);
}

static void use(bh_device device) {
    static const char image[] = ".version 8.0\n";
    uint8_t bytes[32] = {0};
    bh_buffer buffer = {0};
    bh_module module;
    bh_kernel kernel;
    bh_ticket ticket;
    bh_lane lane = {0};
    void *memory;
    if (bh_buffer_alloc(device, BH_U8, sizeof bytes, NULL, &buffer) == BH_OK) {
        (void)bh_buffer_write(buffer, 0, bytes, sizeof bytes);
        (void)bh_buffer_read(buffer, 0, bytes, sizeof bytes);
    }
    (void)bh_lane_open(device, NULL, &lane);
    if (bh_module_load(device, image, sizeof image - 1, &module) == BH_OK &&
        bh_kernel_get(module, "k", &kernel) == BH_OK && buffer.id) {
        if (bh_launch(kernel, BH_GRID(1, 32), BH_ARGS(BH_INOUT(buffer), (uint32_t)1), NULL,
                      &ticket) == BH_OK)
            (void)bh_wait(ticket, PATIENCE);
        use_reports(device, kernel);
    }
    if (bh_host_alloc(device, 4096, &memory) == BH_OK) (void)bh_host_free(device, memory);
    (void)bh_device_sync(device, PATIENCE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bh_device_options options = BH_INIT(options);
    bh_device device;
    make_program();
    choices = (fuzz_input){data, size};
    options.device = "cpu";
    options.worker_dir = folder;
    options.flags = BH_DEVICE_NO_STANDBY | (choose_byte() & 1 ? BH_DEVICE_CHECK : 0);
    options.restart_limit = 2;
    options.close_timeout_ns = PATIENCE;
    if (bh_device_open(&options, &device) != BH_OK) return 0;
    use(device);
    (void)bh_device_close(device);
    return 0;
}
