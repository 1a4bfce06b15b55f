/* SPDX-License-Identifier: Apache-2.0 */
/* Who runs kernels: the interpreter, or native code that libbulkhead-jit.so makes of them. */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/environment.h"
#include "cpu/executor.h"
#include "jit/jit.h"

enum { CODE_BYTES = 64 * 1024 * 1024 }; /* address space; memory is used as code is made */

static const bh__jit_interface *jit; /* NULL: kernels are interpreted */
static pthread_mutex_t compiling = PTHREAD_MUTEX_INITIALIZER;
static bool reports;

/* In one call, so that lines of several threads do not mix. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    char line[400] = "bulkhead-worker-cpu: ";
    size_t length = strlen(line);
    va_list list;
    va_start(list, format);
    vsnprintf(line + length, sizeof line - length - 1, format, list);
    va_end(list);
    strcat(line, "\n");
    ssize_t written = write(STDERR_FILENO, line, strlen(line));
    (void)written;
}

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
        snprintf(why, size, "there is no %.200s: it was built without LLVM", path);
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const bh__jit_interface *found = library ? dlsym(library, BH__JIT_SYMBOL) : NULL;
    if (!found) {
        snprintf(why, size, "%.250s", dlerror());
        return NULL;
    }
    if (found->version != BH__JIT_VERSION) {
        snprintf(why, size, "%.200s is of another build", path);
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
    reports = bh__environment("BULKHEAD_EXECUTOR_REPORT") != NULL;
    if (!asked || strcmp(asked, "jit") != 0) return;
    char why[300] = "";
    jit = load(why, sizeof why);
    if (!jit) say("kernels are interpreted: %s", why);
}

/* ---- the code of kernels ---- */

struct bh__cpu_native {
    _Atomic(bool) known;
    bh__ptx_compiled *code;
};

/* Two for each kernel: for blocks whose warps are rows of threads, and for others. */
bh__cpu_native *bh__cpu_native_create(const bh__ptx_module *module) {
    if (!jit) return NULL;
    return calloc(2 * (size_t)bh__ptx_kernel_count(module) + 1, sizeof(bh__cpu_native));
}

static void report(const char *name, bool flat, const bh__jit_result *r) {
    const char *shape = flat ? "" : ", for blocks that are not whole rows of 32 threads";
    double ms = (double)r->nanoseconds / 1e6;
    if (!r->code)
        say("kernel \"%.100s\" is interpreted: %s", name, r->note);
    else if (r->handled)
        say("kernel \"%.100s\" is native code%s: made in %.1f ms; %u instructions, and %u by the "
            "interpreter's functions (%s most)",
            name, shape, ms, r->native, r->handled, r->note);
    else
        say("kernel \"%.100s\" is native code%s: made in %.1f ms; %u instructions", name, shape, ms,
            r->native);
}

static void compile(bh__cpu_native *slot, const bh__ptx_module *module, uint32_t kernel,
                    bool flat) {
    bh__jit_request request = {.module = module,
                               .function = module->kernel_functions[kernel],
                               .flat = flat,
                               .run_sreg = bh__ptx_run_sreg,
                               .run_address = bh__ptx_run_address,
                               .run_not = bh__ptx_run_not_pred};
    bh__jit_result result;
    jit->compile(&request, &result);
    slot->code = result.code;
    if (reports) report(bh__ptx_kernel_at(module, kernel)->name, flat, &result);
}

bh__ptx_compiled *bh__cpu_native_code(bh__cpu_native *native, const bh__ptx_module *module,
                                      uint32_t kernel, const uint32_t block[3]) {
    if (!native) return NULL;
    bool flat = block[0] % LANES == 0 || (block[1] == 1 && block[2] == 1);
    bh__cpu_native *slot = &native[2 * kernel + flat];
    if (!atomic_load_explicit(&slot->known, memory_order_acquire)) {
        pthread_mutex_lock(&compiling);
        if (!atomic_load_explicit(&slot->known, memory_order_relaxed)) {
            compile(slot, module, kernel, flat);
            atomic_store_explicit(&slot->known, true, memory_order_release);
        }
        pthread_mutex_unlock(&compiling);
    }
    return slot->code;
}
