/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native code as a worker of the CPU device takes it: a block of bytes, or, with the first byte's
 * lowest bit, one that is made of choices, so that most of it is right. What is taken lies in the
 * executable memory; nothing here runs it.
 */
#include "base/processor_kind.h"
#include "cpu/native.h"
#include "fuzz.h"
#include "wire/native.h"

enum { KERNELS = 3, MODULE = 7, MAX = 8, CODE = 512 };

static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                           ".entry a() { ret; }\n.entry b() { ret; }\n.entry c() { ret; }\n";

typedef struct world { /* made once */
    bh__device_instance device;
    bh__cpu_module module;
} world;

static world *make_world(void) {
    static world w;
    bh_error error;
    if (!w.module.code) {
        FUZZ_CHECK(bh__ptx_load(text, sizeof text - 1, &error, &w.module.code) == BH_OK);
        FUZZ_CHECK(bh__ptx_kernel_count(w.module.code) == KERNELS);
        FUZZ_CHECK(bh__cpu_code_open(&w.device.code));
        w.module.id = MODULE;
        w.device.modules = &w.module;
        w.device.module_count = 1;
    }
    w.module.native = bh__cpu_native_create(KERNELS);
    FUZZ_CHECK(w.module.native != NULL);
    return &w;
}

/* Fields are good ones unless their choice says otherwise. */
static uint64_t field(fuzz_input *in, uint64_t good) {
    uint8_t how = fuzz_byte(in);
    if (how < 200) return good;
    if (how < 220) return good + (uint64_t)(int64_t)(int8_t)fuzz_byte(in);
    uint64_t any;
    fuzz_take(in, &any, sizeof any);
    return any;
}

static bh__native_entry make_entry(fuzz_input *in, uint64_t offset) {
    bh__native_entry entry = {0};
    entry.kernel = (uint32_t)field(in, fuzz_byte(in) % KERNELS);
    entry.shape = (uint32_t)field(in, 1 + (fuzz_byte(in) & 1));
    entry.offset = field(in, offset);
    entry.bytes = field(in, fuzz_byte(in) % BH__NATIVE_ALIGN);
    entry.start = field(in, 0);
    if (fuzz_byte(in) == 255) memset(entry.note, 'n', sizeof entry.note);
    return entry;
}

static size_t make_block(fuzz_input *in, const world *w, uint8_t *out) {
    uint32_t count = fuzz_byte(in) % MAX;
    size_t at = sizeof(bh__native_head);
    size_t code = (at + count * sizeof(bh__native_entry) + BH__NATIVE_ALIGN - 1) /
                  BH__NATIVE_ALIGN * BH__NATIVE_ALIGN;
    size_t bytes = code + CODE;
    bh__native_head head = {.magic = BH__NATIVE_MAGIC, .version = BH__NATIVE_VERSION};
    head.count = (uint32_t)field(in, count);
    head.bytes = field(in, bytes);
    head.fingerprint = field(in, bh__ptx_fingerprint(w->module.code));
    head.processor = field(in, bh__processor_kind());
    memset(out, 0xcc, bytes);
    memcpy(out, &head, sizeof head);
    for (uint32_t i = 0; i < count; i++) {
        bh__native_entry entry = make_entry(in, code + (size_t)i * BH__NATIVE_ALIGN);
        memcpy(out + at + i * sizeof entry, &entry, sizeof entry);
    }
    return bytes;
}

static void check_code(const world *w, const uint8_t *block, size_t bytes, bool taken) {
    static const uint32_t flat[3] = {32, 1, 1}, other[3] = {5, 5, 1};
    for (uint32_t i = 0; i < KERNELS; i++) {
        for (int k = 0; k < 2; k++) {
            bh__ptx_compiled *code = bh__cpu_native_code(w->module.native, i, k ? flat : other);
            if (!code) continue;
            const uint8_t *at = (const uint8_t *)(uintptr_t)code;
            FUZZ_CHECK(taken && at >= w->device.code.base &&
                       at < w->device.code.base + BH__CPU_CODE_BYTES);
            FUZZ_CHECK(memchr(block, *at, bytes) != NULL);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    world *w = make_world();
    bool made = fuzz_byte(&in) & 1;
    size_t most = sizeof(bh__native_head) + MAX * sizeof(bh__native_entry) + CODE + 64;
    uint8_t *block = malloc(made ? most : in.left + 1);
    bh_error error;
    FUZZ_CHECK(block != NULL);
    size_t bytes = made ? make_block(&in, w, block) : in.left;
    if (!made) memcpy(block, in.at, bytes);
    uint8_t *exact = malloc(bytes ? bytes : 1); /* a read past the end is seen */
    FUZZ_CHECK(exact != NULL);
    memcpy(exact, block, bytes);
    bool taken = bh__cpu_module_native(&w->device, MODULE, exact, bytes, &error) == BH_OK;
    check_code(w, exact, bytes, taken);
    bh__cpu_native_destroy(w->module.native, &w->device.code);
    for (size_t i = 0; i < w->device.code.pages; i++) FUZZ_CHECK(!w->device.code.in_use[i]);
    free(exact);
    free(block);
    return 0;
}
