/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for native code of kernels: the job and its key, which is everything that decides the
 * code. */
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/processor_kind.h"
#include "base/siphash.h"
#include "client/compile/cache.h"
#include "client/compile/inputs.h"
#include "client/compile/request.h"
#include "client/core/error.h"
#include "client/core/fork.h"
#include "client/process/programs.h"
#include "wire/native.h"

enum { KEY_VERSION = 2 };
/* A kernel within the limits of the JIT takes a fraction of a second; all of a module stop after
 * four seconds. */
#define TIME_LIMIT_NS (10 * BH__NS_PER_S)
#define MEMORY_LIMIT  ((uint64_t)4 << 30)
#define LIBRARY       "libbulkhead-jit.so"

bool bh__request_native(bh__compile_request *request, int image_fd, uint64_t image_bytes,
                        const char *worker_path, uint32_t kernel, uint32_t shapes) {
    memset(request, 0, sizeof *request);
    bh__compile_job *job = &request->job;
    job->op = BH__COMPILE_NATIVE;
    job->output = BH__OUTPUT_NATIVE;
    job->kernel = kernel;
    job->shapes = shapes;
    job->memory_limit = MEMORY_LIMIT;
    job->time_limit_ns = TIME_LIMIT_NS;
    job->name = (bh__bytes){(const uint8_t *)"native", 6};
    job->arch = (bh__bytes){(const uint8_t *)"", 0};
    request->cache_limit = bh__cache_limit(0);
    request->cached = true;
    request->worker_path = bh__arena_copy(&request->arena, worker_path, strlen(worker_path));
    request->image_fd = bh__fd_hold(image_fd);
    request->holds_image = request->image_fd >= 0;
    request->image_bytes = image_bytes;
    return request->worker_path && request->holds_image;
}

static void add_file(bh__pack *key, const char *path) {
    bh__file_id id;
    (void)bh__file_id_get(path, &id);
    bh__pack_text(key, path);
    bh__pack_raw(key, &id, sizeof id);
}

/* Which LLVM is loaded is decided by the library, the loader's cache, which every installation of a
 * library renews, and the search path. */
static void make_key(bh__compile_request *request) {
    const bh__compile_job *job = &request->job;
    bh__pack *key = &request->key;
    char library[4096 + 64], folder[4096];
    const char *search = bh__environment("LD_LIBRARY_PATH");
    snprintf(folder, sizeof folder, "%s", request->program);
    snprintf(library, sizeof library, "%s/%s", dirname(folder), LIBRARY);
    bh__pack_reserve(key, job->inputs.list[0].count + 1024);
    const uint64_t numbers[] = {KEY_VERSION, job->op, job->kernel, job->shapes, BH__NATIVE_VERSION};
    bh__pack_raw(key, numbers, sizeof numbers);
    add_file(key, request->program);
    add_file(key, library);
    add_file(key, request->worker_path);
    add_file(key, "/etc/ld.so.cache");
    bh__pack_text(key, search ? search : "");
    /* A folder of the cache may be shared by machines. */
    bh__pack_u64(key, bh__processor_kind());
    bh__pack_texts(key, &job->inputs);
    if (!key->failed) bh__checksum(key->data, key->count, request->hash);
}

/* The compiler in the worker's folder has the same version as the worker. */
static bh_status find_compiler(bh__compile_request *request, bh_error *error) {
    char path[4096];
    size_t folder = (size_t)(strrchr(request->worker_path, '/') - request->worker_path);
    int length =
        snprintf(path, sizeof path, "%.*s/bulkhead-compiler", (int)folder, request->worker_path);
    if (length >= (int)sizeof path || access(path, X_OK) != 0) {
        bh_status status = bh__compiler_find(NULL, path, sizeof path, error);
        if (status != BH_OK) return status;
    }
    request->program = bh__arena_copy(&request->arena, path, strlen(path));
    return request->program ? BH_OK
                            : bh__fail(error, BH_E_NO_HOST_MEMORY, "free host memory",
                                       "no host memory for a compile request");
}

bh_status bh__native_resolve(bh__compile_request *request, bh_error *error) {
    bh__compile_job *job = &request->job;
    bh_status status = find_compiler(request, error);
    if (status != BH_OK) return status;
    void *image = mmap(NULL, request->image_bytes, PROT_READ, MAP_PRIVATE, request->image_fd, 0);
    job->inputs.list = bh__arena_alloc(&request->arena, 1, sizeof *job->inputs.list);
    char *copy =
        image != MAP_FAILED ? bh__arena_copy(&request->arena, image, request->image_bytes) : NULL;
    if (image != MAP_FAILED) munmap(image, request->image_bytes);
    if (job->inputs.list && copy) {
        job->inputs.list[0] = (bh__bytes){(const uint8_t *)copy, request->image_bytes};
        job->inputs.count = 1;
        request->compiler = "LLVM";
        make_key(request);
        if (!request->key.failed) return BH_OK;
    }
    return bh__fail(error, BH_E_NO_HOST_MEMORY, "free host memory",
                    "no host memory for a compile of %llu bytes of PTX",
                    (unsigned long long)request->image_bytes);
}
