/* SPDX-License-Identifier: Apache-2.0 */
/* Who runs kernels: the interpreter, or native code that libbulkhead-jit.so makes of them. */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/environment.h"
#include "cpu/executor.h"
#include "jit/jit.h"

enum { CODE_BYTES = 64 * 1024 * 1024 }; /* address space; memory is used as code is made */

enum { EAGER_NS = 2000000000 }; /* kernels are compiled for so long when they are loaded */

static const bh__jit_interface *jit;    /* NULL: kernels are interpreted */
static char why_not[BH__EXECUTOR_NOTE]; /* although the JIT was asked for */
static pthread_mutex_t compiling = PTHREAD_MUTEX_INITIALIZER;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bh__jit_interface *load(char *why, size_t size) {
    snprintf(why, size, "this is a build with sanitizers, which native code would escape");
    return NULL;
}
#else
static const bh__jit_interface *find(char *why, size_t size) {
    char path[PATH_MAX + sizeof BH__JIT_LIBRARY + 1];
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    if (length <= 0) {
        snprintf(why, size, "/proc/self/exe cannot be read");
        return NULL;
    }
    path[length] = '\0';
    char *folder = dirname(path);
    size_t end = strlen(folder);
    snprintf(path + end, sizeof path - end, "/%s", BH__JIT_LIBRARY);
    if (access(path, R_OK) != 0) {
        snprintf(why, size, "it was built without LLVM: there is no %.60s", BH__JIT_LIBRARY);
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const bh__jit_interface *found = library ? dlsym(library, BH__JIT_SYMBOL) : NULL;
    if (!found) {
        snprintf(why, size, "%.110s", dlerror());
        return NULL;
    }
    if (found->version != BH__JIT_VERSION) {
        snprintf(why, size, "%s is of another build", BH__JIT_LIBRARY);
        return NULL;
    }
    return found;
}

static const bh__jit_interface *load(char *why, size_t size) {
    const bh__jit_interface *found = find(why, size);
    if (!found) return NULL;
    void *memory = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        snprintf(why, size, "the system gives no executable memory");
        return NULL;
    }
    if (found->open(memory, CODE_BYTES, why, size)) return found;
    munmap(memory, CODE_BYTES);
    return NULL;
}
#endif

void bh__cpu_executor_load(void) {
    const char *asked = bh__environment("BULKHEAD_EXECUTOR");
    if (asked && strcmp(asked, "jit") == 0) jit = load(why_not, sizeof why_not);
}

/* ---- the code of kernels ---- */

struct bh__cpu_native {
    _Atomic(bool) known;
    bh__jit_result result;
};

static void compile(bh__cpu_native *slot, const bh__ptx_module *module, uint32_t kernel,
                    bool flat) {
    bh__jit_request request = {.module = module,
                               .function = module->kernel_functions[kernel],
                               .flat = flat,
                               .run_sreg = bh__ptx_run_sreg,
                               .run_address = bh__ptx_run_address,
                               .run_not = bh__ptx_run_not_pred};
    pthread_mutex_lock(&compiling);
    if (!atomic_load_explicit(&slot->known, memory_order_relaxed)) {
        jit->compile(&request, &slot->result);
        atomic_store_explicit(&slot->known, true, memory_order_release);
    }
    pthread_mutex_unlock(&compiling);
}

/* Warps are rows of threads: lanes differ in %tid.x alone. */
static bool is_flat(const uint32_t block[3]) {
    return block[0] % LANES == 0 || (block[1] == 1 && block[2] == 1);
}

/* Two for each kernel: for blocks that are flat, the second, and for others. */
static bh__cpu_native *slot_of(bh__cpu_native *native, uint32_t kernel, bool flat) {
    return &native[2 * (size_t)kernel + flat];
}

bh__cpu_native *bh__cpu_native_create(const bh__ptx_module *module) {
    uint32_t count = bh__ptx_kernel_count(module);
    bh__cpu_native *native = jit ? calloc(2 * (size_t)count + 1, sizeof *native) : NULL;
    uint64_t began = bh__now_ns();
    for (uint32_t i = 0; native && i < count && bh__now_ns() - began < EAGER_NS; i++) {
        const uint32_t *block = bh__ptx_kernel_at(module, i)->required;
        bool flat = block[0] == 0 || is_flat(block);
        compile(slot_of(native, i, flat), module, i, flat);
    }
    return native;
}

void bh__cpu_native_describe(bh__cpu_native *native, uint32_t kernel, bh__blob_kernel *out) {
    out->executor = BH_EXECUTOR_INTERPRETER;
    if (!native) {
        memcpy(out->executor_note, why_not, sizeof why_not);
        return;
    }
    const bh__cpu_native *slot = slot_of(native, kernel, true);
    if (!atomic_load(&slot->known)) slot = slot_of(native, kernel, false);
    bool known = atomic_load(&slot->known);
    const bh__jit_result *result = &slot->result;
    out->executor = !known || result->code ? BH_EXECUTOR_JIT : BH_EXECUTOR_INTERPRETER;
    out->native = result->native;
    out->handled = result->handled;
    out->compile_us = (uint32_t)(result->nanoseconds / 1000);
    snprintf(out->executor_note, sizeof out->executor_note, "%s",
             known ? result->note : "to be compiled at its first launch");
}

bh__ptx_compiled *bh__cpu_native_code(bh__cpu_native *native, const bh__ptx_module *module,
                                      uint32_t kernel, const uint32_t block[3]) {
    if (!native) return NULL;
    bool flat = is_flat(block);
    bh__cpu_native *slot = slot_of(native, kernel, flat);
    if (!atomic_load_explicit(&slot->known, memory_order_acquire))
        compile(slot, module, kernel, flat);
    return slot->result.code;
}
