/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX to native code for the CPU device, with libbulkhead-jit.so, which is beside this program and
 * alone knows LLVM. LLVM may crash or hang: this is a process of its own, with limits, and runs no
 * kernel.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/processor_kind.h"
#include "compiler/compile.h"
#include "jit/jit.h"
#include "wire/native.h"

/* Of all kernels of a module: those that are left are compiled one by one when they are
 * launched. */
#define ENOUGH_NS (4 * BH__NS_PER_S)

typedef struct native {
    bh__compile *c;
    const bh__jit_interface *jit;
    bh__ptx_module *module;
    bh__native_entry *entries;
    bh__jit_result *results;
    uint32_t count;
} native;

static bh_status refuse_library(bh__compile *c, const char *fix, const char *why) {
    return bh__fail(&c->answer->error, BH_E_UNSUPPORTED, fix, "no native code for kernels: %.300s",
                    why);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static bh_status open_library(native *n) {
    return refuse_library(n->c, "use a build without sanitizers",
                          "this is a build with sanitizers, which native code would escape");
}
#else
static bh_status find_library(bh__compile *c, char path[static PATH_MAX + 64]) {
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    if (length <= 0) return refuse_library(c, "mount /proc", "/proc/self/exe cannot be read");
    path[length] = 0;
    char *folder = dirname(path);
    size_t end = strlen(folder);
    snprintf(path + end, PATH_MAX + 64 - end, "/%s", BH__JIT_LIBRARY);
    if (access(path, R_OK) == 0) return BH_OK;
    return refuse_library(c, "build Bulkhead where llvm-19-dev is installed",
                          "it was built without LLVM: there is no " BH__JIT_LIBRARY);
}

static bh_status open_library(native *n) {
    bh__compile *c = n->c;
    char path[PATH_MAX + 64], why[256], name[64];
    bh_status status = find_library(c, path);
    if (status != BH_OK) return status;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return refuse_library(c, "install the LLVM that it was built with (apt install libllvm19)",
                              dlerror());
    n->jit = dlsym(library, BH__JIT_SYMBOL);
    if (!n->jit || n->jit->version != BH__JIT_VERSION)
        return refuse_library(c, "install Bulkhead's programs from one version",
                              BH__JIT_LIBRARY " is of another build");
    if (!n->jit->open(name, sizeof name, why, sizeof why))
        return refuse_library(c, "run kernels with the interpreter (BULKHEAD_EXECUTOR=interp)",
                              why);
    char *version = bh__arena_copy(c->arena, name, strlen(name));
    if (!version) return bh__compile_no_memory(c);
    c->answer->version = (bh__bytes){(const uint8_t *)version, strlen(version)};
    return BH_OK;
}
#endif

static bh_status load(native *n) {
    const bh__texts *inputs = &n->c->job->inputs;
    if (inputs->count != 1)
        return bh__fail(&n->c->answer->error, BH_E_INTERNAL,
                        "report this as a defect of libbulkhead",
                        "a job for native code has %zu inputs instead of 1", inputs->count);
    return bh__ptx_load((const char *)inputs->list[0].data, inputs->list[0].count,
                        &n->c->answer->error, &n->module);
}

static void compile_one(native *n, uint32_t kernel, uint32_t shape) {
    bh__jit_request request = {.module = n->module,
                               .function = n->module->kernel_functions[kernel],
                               .row = shape == BH__NATIVE_FLAT         ? 32
                                      : shape == BH__NATIVE_ROWS_OF_16 ? 16
                                      : shape == BH__NATIVE_ROWS_OF_8  ? 8
                                                                       : 0,
                               .run_sreg = bh__ptx_run_sreg,
                               .run_address = bh__ptx_run_address,
                               .run_not = bh__ptx_run_not_pred};
    bh__jit_result *result = &n->results[n->count];
    n->jit->compile(&request, result);
    bh__native_entry *entry = &n->entries[n->count++];
    *entry = (bh__native_entry){.kernel = kernel,
                                .shape = shape,
                                .bytes = result->bytes,
                                .start = result->entry,
                                .native = result->native,
                                .handled = result->handled,
                                .compile_us = (uint32_t)(result->nanoseconds / 1000)};
    snprintf(entry->note, sizeof entry->note, "%s", result->note);
}

static bh_status compile_kernels(native *n) {
    const bh__compile_job *job = n->c->job;
    uint32_t total = bh__ptx_kernel_count(n->module);
    bool all = job->kernel == BH__NATIVE_ALL;
    if (!all && job->kernel >= total)
        return bh__fail(&n->c->answer->error, BH_E_INTERNAL,
                        "report this as a defect of libbulkhead",
                        "there is no kernel %u: the module has %u", job->kernel, total);
    uint32_t first = all ? 0 : job->kernel, end = all ? total : first + 1;
    size_t room = BH__NATIVE_SHAPES * ((size_t)end - first) + 1;
    n->entries = bh__arena_alloc(n->c->arena, room, sizeof *n->entries);
    n->results = bh__arena_alloc(n->c->arena, room, sizeof *n->results);
    if (!n->entries || !n->results) return bh__compile_no_memory(n->c);
    uint64_t began = bh__now_ns();
    for (uint32_t k = 0; k < BH__NATIVE_SHAPES; k++) {
        for (uint32_t i = first; i < end && (job->shapes & 1u << k); i++) {
            if (bh__now_ns() - began > ENOUGH_NS) return BH_OK;
            compile_one(n, i, 1u << k);
        }
    }
    return BH_OK;
}

static size_t aligned(size_t at) {
    return (at + BH__NATIVE_ALIGN - 1) / BH__NATIVE_ALIGN * BH__NATIVE_ALIGN;
}

static bh_status write_block(native *n) {
    size_t first = sizeof(bh__native_head) + n->count * sizeof(bh__native_entry), end = first;
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->entries[i].bytes == 0) continue;
        n->entries[i].offset = aligned(end);
        end = aligned(end) + n->entries[i].bytes;
    }
    uint8_t *block = bh__arena_alloc(n->c->arena, end, 1);
    if (!block) return bh__compile_no_memory(n->c);
    bh__native_head head = {
        BH__NATIVE_MAGIC,    BH__NATIVE_VERSION, n->count, end, bh__ptx_fingerprint(n->module),
        bh__processor_kind()};
    memset(block, 0, end);
    memcpy(block, &head, sizeof head);
    memcpy(block + sizeof head, n->entries, n->count * sizeof *n->entries);
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->entries[i].bytes)
            memcpy(block + n->entries[i].offset, n->results[i].image, n->entries[i].bytes);
        free(n->results[i].image);
    }
    n->c->answer->output = (bh__bytes){block, end};
    return BH_OK;
}

bh_status bh__compile_native(bh__compile *c) {
    native n = {.c = c};
    bh_status status = open_library(&n);
    /* The libraries are loaded; what the PTX makes of them reaches its own memory. */
    if (status == BH_OK) status = bh__confine_whole(c);
    if (status == BH_OK) status = load(&n);
    if (status == BH_OK) status = compile_kernels(&n);
    if (status == BH_OK) status = write_block(&n);
    if (n.module) bh__ptx_free(n.module);
    return status;
}
