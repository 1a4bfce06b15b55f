/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of the application as a worker reads them: a real worker of the CPU device is booted
 * and serves what the input says, each message with its type, its body, its data and the
 * descriptors that come with it. The worker's control thread is this one; what the input holds is
 * all in the socket before it starts.
 */
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/processor_kind.h"
#include "cpu/cpu.h"
#include "memory_file.h"
#include "wire/native.h"
#include "wire/share.h"
#include "worker/worker.h"

enum { QUEUE = 64, MESSAGES = 12, FILE_BYTES = 1 << 16, BODY = 128, DATA = 256 };

static const char image[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 8 .b8 v[64];\n"
    ".entry k(.param .u64 p, .param .u32 n) { .reg .b64 %a; ld.param.u64 %a, [p]; ret; }\n";

typedef struct world { /* made once */
    int front_fd, area_fd, dispatch, file, chunk, steps, native;
    bh__front *front;
    bh__area *area;
} world;

static int make_file(uint64_t bytes, const void *data, size_t size) {
    int fd = bh__share_create("fuzz", bytes);
    FUZZ_CHECK(fd >= 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    return fd;
}

/* A block that fits `image`. Nothing launches its kernel. */
typedef struct native_block {
    bh__native_head head;
    bh__native_entry entry;
    _Alignas(BH__NATIVE_ALIGN) uint8_t code[BH__NATIVE_ALIGN];
} native_block;

static int make_native(void) {
    native_block block = {.entry = {.shape = BH__NATIVE_FLAT,
                                    .offset = offsetof(native_block, code),
                                    .bytes = sizeof block.code}};
    bh_error error;
    bh__ptx_module *module;
    FUZZ_CHECK(bh__ptx_load(image, sizeof image - 1, &error, &module) == BH_OK);
    block.head =
        (bh__native_head){BH__NATIVE_MAGIC, BH__NATIVE_VERSION,          1,
                          sizeof block,     bh__ptx_fingerprint(module), bh__processor_kind()};
    bh__ptx_free(module);
    return make_file(sizeof block, &block, sizeof block);
}

static void make_world(world *w) {
    bh__front layout;
    bh__sequence_step step = {.op = BH__OP_LAUNCH, .params = 256};
    memset(&layout, 0, sizeof layout);
    bh__front_layout(&layout, QUEUE);
    w->front_fd = make_file(layout.front_bytes, "", 0);
    w->front = bh__share_map(w->front_fd, 0, layout.front_bytes, true);
    w->area_fd = make_file(layout.area_bytes, "", 0);
    w->area = bh__share_map(w->area_fd, 0, layout.area_bytes, true);
    FUZZ_CHECK(w->front != NULL && w->area != NULL);
    w->dispatch = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->file = make_file(sizeof image - 1, image, sizeof image - 1);
    w->chunk = make_file(FILE_BYTES * 3, "", 0);
    w->steps = make_file(4096, &step, sizeof step);
    w->native = make_native();
}

/* As the application leaves it before a worker starts. */
static void reset_block(world *w) {
    bh__front_layout(w->front, QUEUE);
    memset(w->area, 0, sizeof *w->area);
    for (int i = 0; i < BH__MAX_LANES; i++)
        w->front->lane[i].notify_sleep = w->front->lane[i].notify_dispatch = BH__NEVER;
}

static void send_boot(const world *w, int socket, uint8_t flags) {
    static bh__message message;
    memset(&message, 0, offsetof(bh__message, fds));
    message.type = BH__MSG_BOOT;
    message.u.boot = (bh__boot){.magic = BH__WIRE_MAGIC,
                                .version = BH__WIRE_VERSION,
                                .area = 1,
                                .front_bytes = w->front->front_bytes,
                                .flags = flags & 1 ? BH_DEVICE_CHECK : 0,
                                .native = flags >> 1 & 1};
    int fds[] = {w->front_fd, w->area_fd, w->dispatch};
    FUZZ_CHECK(bh__message_send(socket, &message, fds, 3) == 0);
}

/* Addresses at which nothing else is, so that chunks can be mapped. */
static void place_chunk(bh__chunk *chunk) {
    chunk->address = FUZZ_BASE + (chunk->address % 16) * FILE_BYTES;
    chunk->read_only_address = FUZZ_READ_ONLY + (chunk->read_only_address % 16) * FILE_BYTES;
    chunk->bytes = chunk->bytes % 4 * (FILE_BYTES / 2);
}

static bool send_one(const world *w, int socket, fuzz_input *in) {
    static bh__message message;
    uint8_t how = fuzz_byte(in);
    memset(&message, 0, offsetof(bh__message, fds));
    message.type = fuzz_byte(in) % BH__MSG_ORDERS_END;
    message.serial = fuzz_byte(in);
    message.data_bytes = fuzz_byte(in);
    size_t body = fuzz_byte(in) % BODY;
    fuzz_take(in, &message.u, body);
    fuzz_take(in, message.data, message.data_bytes);
    bool chunk = message.type == BH__MSG_CHUNK_CREATE || message.type == BH__MSG_CHUNK_MAP;
    if (chunk && (how & 8 || !FUZZ_ANY_ADDRESS)) place_chunk(&message.u.chunk);
    if (message.type == BH__MSG_MODULE_LOAD && how & 8) message.u.module.bytes = sizeof image - 1;
    if (message.type == BH__MSG_BOOT) message.type = 99;
    bool native = message.type == BH__MSG_MODULE_NATIVE && how & 8;
    if (native) message.u.module.bytes = sizeof(native_block);
    int fds[] = {native ? w->native : w->file, w->chunk, w->steps, w->file, w->chunk};
    return bh__message_send(socket, &message, fds + (native ? 0 : how % 3),
                            how >> 4 & 1 ? how >> 5 & 3 : 1) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static world w;
    fuzz_input in = {data, size};
    int pair[2];
    if (!w.front) make_world(&w);
    reset_block(&w);
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    bh__worker_instance *worker = bh__worker_create(pair[1], &bh__cpu_device);
    FUZZ_CHECK(worker != NULL);
    send_boot(&w, pair[0], fuzz_byte(&in));
    for (int i = 0; i < MESSAGES && in.left; i++)
        if (!send_one(&w, pair[0], &in)) break;
    FUZZ_CHECK(shutdown(pair[0], SHUT_WR) == 0);
    bh__worker_run(worker);
    bh__worker_destroy(worker);
    close(pair[0]);
    return 0;
}
