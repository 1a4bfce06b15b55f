/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests as a lane hands them to the CPU device: copies, fills, rows, launches, with addresses
 * and sizes near those of the memory that is there. What does not lie in it is refused; the bytes
 * around the memory stay as they are.
 */
#include <stdbool.h>
#include <sys/mman.h>

#include "cpu/cpu.h"
#include "memory_file.h"
#include "wire/share.h"

enum { CHUNK = 1 << 16, HOST = 4096, REQUESTS = 8, PARAMS = 64 };

static const uint64_t bases[] = {FUZZ_BASE, FUZZ_READ_ONLY};
static const char image[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 8 .b8 v[64];\n"
    ".const .b32 c[4];\n.shared .align 8 .b8 s[64];\n"
    ".entry k(.param .u64 p, .param .u32 n) {\n"
    ".reg .b64 %a; .reg .b32 %n, %t; .reg .pred %q; ld.param.u64 %a, [p]; ld.param.u32 %n, [n];\n"
    "mov.u32 %t, %tid.x; setp.ge.u32 %q, %t, %n; @%q ret; st.b32 [%a], %t; bar.sync 0; ret; }\n"
    ".entry w(.param .u64 p) .reqntid 32 { .reg .b64 %a; mov.u64 %a, v; st.u8 [%a], 1; ret; }\n";

static _Atomic(bool) killed;

static void ignore_print(void *context, const char *text, size_t length) {
    (void)context, (void)text, (void)length;
}

typedef struct world { /* made once, with checks and without */
    bh__device_services services;
    bh__device_instance *device;
    bh__device_lane *lane;
} world;

static void make_world(world *w, bool check) {
    static uint8_t host[2][HOST];
    const bh__device_ops *ops = &bh__cpu_device;
    bh__device_facts info = {0};
    bh_error error;
    uint64_t granularity, shift = check ? 16 * CHUNK : 0;
    int fd;
    w->services = (bh__device_services){.print = ignore_print, .killed = &killed, .check = check};
    FUZZ_CHECK(ops->open(&w->services, 0, &info, &granularity, &error, &w->device) == BH_OK);
    bh__chunk chunk = {.id = 1,
                       .bytes = CHUNK,
                       .address = bases[0] + shift,
                       .read_only_address = bases[1] + shift};
    FUZZ_CHECK(ops->chunk_create(w->device, &chunk, &error, &fd) == BH_OK);
    close(fd);
    FUZZ_CHECK(ops->host_map(w->device, 1, host[check], HOST, &error) == BH_OK);
    FUZZ_CHECK(ops->module_load(w->device, 1, image, sizeof image - 1, &error, &fd) == BH_OK);
    close(fd);
    FUZZ_CHECK(ops->lane_open(w->device, &(bh__lane_message){0}, &error, &w->lane) == BH_OK);
}

/* Mostly near one of the ends of what is there. */
static uint64_t take_address(fuzz_input *in, bool check) {
    uint8_t how = fuzz_byte(in);
    uint64_t raw;
    fuzz_take(in, &raw, how & 8 ? 8 : 2);
    uint64_t base = bases[how & 1] + (check ? 16 * CHUNK : 0);
    return how & 4 ? raw : base + (how & 2 ? CHUNK - raw % 256 : raw);
}

static void take_copy(fuzz_input *in, bool check, bh__copy_body *out) {
    fuzz_take(in, out, sizeof *out);
    out->target = fuzz_byte(in) % 2 ? out->target % (2 * HOST) : take_address(in, check);
    out->source = fuzz_byte(in) % 2 ? out->source % (2 * HOST) : take_address(in, check);
    if (fuzz_byte(in) % 4) out->bytes %= 2 * CHUNK;
    if (fuzz_byte(in) % 4) out->rows %= 64;
    if (fuzz_byte(in) % 4) out->pitch.target %= CHUNK, out->pitch.source %= CHUNK;
}

/* A grid that ends soon. */
static void take_launch(fuzz_input *in, bool check, bh__launch_body *out, uint64_t *params) {
    fuzz_take(in, out, sizeof *out);
    for (int i = 0; i < 3; i++) {
        out->grid[i] %= 3;
        if (out->block[i] < 1u << 31) out->block[i] %= 40;
    }
    params[0] = take_address(in, check);
    fuzz_take(in, &params[1], 8);
    out->param_bytes %= PARAMS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static world worlds[2];
    fuzz_input in = {data, size};
    bool check = fuzz_byte(&in) % 2;
    world *w = &worlds[check];
    if (!w->device) make_world(w, check);
    for (int i = 0; i < REQUESTS && in.left; i++) {
        _Alignas(16) uint64_t params[PARAMS / 8] = {0};
        bh__work work = {.op = 2 + fuzz_byte(&in) % 14, .params = (const uint8_t *)params};
        bh_error error;
        if (work.op == BH__OP_SEQUENCE) continue; /* the worker's own */
        if (work.op == BH__OP_LAUNCH)
            take_launch(&in, check, &work.u.launch, params);
        else
            take_copy(&in, check, &work.u.copy);
        bh_status status = bh__cpu_device.execute(w->lane, &work, &error);
        FUZZ_CHECK(status == BH_OK || (error.message[0] && error.fix[0]));
    }
    return 0;
}
