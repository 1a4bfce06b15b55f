/* SPDX-License-Identifier: Apache-2.0 */
/* Modules and kernels: loading, unloading, descriptions from workers, lookup and queries. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/futex.h"
#include "client/callback/callback.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/hooks.h"
#include "client/core/sized.h"
#include "client/jobs/jobs.h"
#include "client/memory/memory.h"
#include "client/module/ask_native.h"
#include "client/module/module.h"
#include "client/module/product.h"
#include "client/queue/queue.h"
#include "library/operation.h"
#include "wire/share.h"

/* ---- freeing ---- */

void bh__module_delete(bh__module *module) {
    for (uint32_t i = 0; i < module->variable_count; i++) {
        free(module->variables[i].value);
        free(module->variables[i].written);
    }
    for (uint32_t i = 0; i < module->kernel_count; i++) free(module->kernels[i].fits);
    free(module->variables);
    free(module->kernels);
    free(module->blob);
    bh__product_release(module->product);
    bh__native_free(module);
    bh__fd_close(module->image_fd);
    free(module);
}

void bh__module_drop(bh__device *device, bh__module *module) {
    bh__module **link = &device->module.list;
    while (*link != module) link = &(*link)->next;
    *link = module->next;
    device->memory.module_bytes -= module->charged;
    bh__module_delete(module);
}

static bool module_idle(bh__device *device, const bh__module *module) {
    if (module->pins) return false;
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        if (module->last[i] > bh__lane_done(device, &device->lanes[i])) return false;
    }
    return true;
}

/* A worker executes orders one after the other, so what it needs from now on finds the memory. */
void bh__modules_sweep(bh__device *device) {
    for (bh__module *module = device->module.list, *next; module; module = next) {
        next = module->next;
        if (!module->unloaded || !module_idle(device, module)) continue;
        const bh__order unload = {
            .type = BH__MSG_MODULE_UNLOAD, .module = {.id = module->number}, .fd = -1};
        if (bh__order_post(device, &unload)) bh__module_drop(device, module);
    }
}

void bh__module_unpin(bh__device *device, bh__module *module) {
    if (--module->pins == 0 && module->unloaded) bh__watch_begin(device);
}

/* ---- the worker's description of a module ---- */

/* What was read so far. Kernels and variables have names and parameters of their own, so that all
 * of them together are no longer than the description. */
typedef struct blob_reader {
    const uint8_t *blob;
    uint64_t bytes, name_bytes, param_bytes;
} blob_reader;

/* Reports and logs show names: they have no control characters, of ASCII or of Unicode. */
static bool is_name(const char *name, size_t length) {
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        unsigned char next = (unsigned char)name[i + 1]; /* at its end the NUL */
        if (c < ' ' || c == 0x7f || (c == 0xc2 && next >= 0x80 && next < 0xa0)) return false;
    }
    return true;
}

static const char *blob_name(blob_reader *r, uint64_t offset) {
    if (offset >= r->bytes) return NULL;
    uint64_t room = r->bytes - offset, left = r->bytes - r->name_bytes;
    const char *name = (const char *)r->blob + offset;
    size_t most = room < left ? room : left, length = strnlen(name, most);
    if (length == most) return NULL;
    r->name_bytes += length + 1;
    return is_name(name, length) ? name : NULL;
}

static bool blob_array(uint64_t blob_bytes, uint64_t offset, uint64_t count, uint64_t element) {
    uint64_t bytes;
    return offset % 8 == 0 && bh__mul_u64(count, element, &bytes) &&
           bh__range_fits(offset, bytes, blob_bytes);
}

static bool parse_kernel(blob_reader *r, bh__module *module, bh__kernel *kernel, uint32_t index,
                         const bh__blob_kernel *from) {
    const char *name = blob_name(r, from->name_offset);
    uint64_t param_bytes = (uint64_t)from->param_count * sizeof(bh__blob_param);
    if (!name || !bh__range_fits(r->param_bytes, param_bytes, r->bytes) ||
        !blob_array(r->bytes, from->params_offset, from->param_count, sizeof(bh__blob_param)))
        return false;
    r->param_bytes += param_bytes;
    if (from->param_bytes > BH__MAX_PARAM_BYTES) return false;
    *kernel = (bh__kernel){.module = module, .index = index, .shape = *from};
    /* The library sets the executor, not the worker: it distributes native code. */
    if (from->executor != BH_EXECUTOR_DEVICE) kernel->shape.executor = BH_EXECUTOR_INTERPRETER;
    kernel->shape.native = kernel->shape.handled = kernel->shape.compile_us = 0;
    kernel->shape.executor_note[0] = 0;
    kernel->name = (char *)(uintptr_t)name;
    kernel->params = (bh__blob_param *)(void *)(module->blob + from->params_offset);
    uint64_t used = 0;
    for (uint32_t i = 0; i < from->param_count; i++) {
        if (!bh__range_fits(kernel->params[i].offset, kernel->params[i].bytes, from->param_bytes))
            return false;
        used += kernel->params[i].bytes;
    }
    kernel->padded = used != from->param_bytes;
    return true;
}

/* The maximum length of a description follows from the length of the image: each kernel, parameter
 * and variable takes some bytes of the image, compressed or not. */
enum { BLOB_BASE_BYTES = 1 << 20, BLOB_PER_IMAGE_BYTE = 64 };

/* The length of the blob. 0: not valid. It must be a memfd (it has seals): reading never blocks. */
static uint64_t blob_length(const bh__module *module, int blob_fd) {
    struct stat info;
    if (fcntl(blob_fd, F_GET_SEALS) < 0 || fstat(blob_fd, &info) < 0 ||
        info.st_size < (off_t)sizeof(bh__module_blob))
        return 0;
    uint64_t limit = BLOB_BASE_BYTES + (uint64_t)module->image_bytes * BLOB_PER_IMAGE_BYTE;
    return (uint64_t)info.st_size <= limit ? (uint64_t)info.st_size : 0;
}

/* Every field of the blob is checked before use: a worker may be corrupted. */
bool bh__module_parse(bh__module *module, int blob_fd) {
    uint64_t bytes = blob_length(module, blob_fd);
    if (bytes == 0) return false;
    module->blob = malloc(bytes);
    if (!module->blob) return false;
    for (uint64_t got = 0; got < bytes;) {
        ssize_t some = pread(blob_fd, module->blob + got, bytes - got, (off_t)got);
        if (some == 0) errno = EBADMSG;
        if (some <= 0) return false;
        got += (uint64_t)some;
    }
    errno = EBADMSG; /* unless memory runs out, what follows is the worker's error */
    const bh__module_blob *head = (const bh__module_blob *)(void *)module->blob;
    if (head->magic != BH__BLOB_MAGIC || head->total_bytes > bytes ||
        !blob_array(bytes, head->kernels_offset, head->kernel_count, sizeof(bh__blob_kernel)) ||
        !blob_array(bytes, head->variables_offset, head->variable_count,
                    sizeof(bh__blob_variable))) {
        return false;
    }
    module->kernels = calloc(head->kernel_count + 1, sizeof *module->kernels);
    module->variables = calloc(head->variable_count + 1, sizeof *module->variables);
    if (!module->kernels || !module->variables) return false;
    const bh__blob_kernel *kernels =
        (const bh__blob_kernel *)(void *)(module->blob + head->kernels_offset);
    blob_reader r = {module->blob, bytes, 0, 0};
    for (uint32_t i = 0; i < head->kernel_count; i++) {
        if (!parse_kernel(&r, module, &module->kernels[i], i, &kernels[i])) return false;
        module->kernel_count++;
    }
    const bh__blob_variable *variables =
        (const bh__blob_variable *)(void *)(module->blob + head->variables_offset);
    for (uint32_t i = 0; i < head->variable_count; i++) {
        const char *name = blob_name(&r, variables[i].name_offset);
        if (!name) return false;
        module->variables[i].name = (char *)(uintptr_t)name;
        module->variables[i].bytes = variables[i].bytes;
        module->variables[i].writable = variables[i].writable != 0;
        module->variable_count++;
        if (!bh__add_u64(module->variable_bytes, variables[i].bytes, &module->variable_bytes))
            return false;
    }
    return true;
}

/* Chunks without buffers do not count: they are freed before the next one is created. */
bool bh__module_charge(bh__device *device, bh__module *module, bh_error *error) {
    typedef unsigned long long ull;
    bh__hooks.reclaim(device);
    bh__heap_settle(&device->memory.heap);
    uint64_t held = bh__promised_bytes(device) - device->memory.heap.unused;
    uint64_t limit = device->options.memory_limit, bytes = module->variable_bytes;
    if (bytes && (held > limit || bytes > limit - held)) {
        bh__usage_refused(device, bytes);
        bh__fail(error, BH_E_NO_MEMORY,
                 "release buffers or modules, or raise memory_limit if the device has more",
                 "the module's variables take %llu bytes; the device holds %llu of at most %llu, "
                 "%llu of them in modules' variables, %llu in buffers",
                 (ull)bytes, (ull)held, (ull)limit, (ull)device->memory.module_bytes,
                 (ull)device->memory.bytes_allocated);
        return false;
    }
    module->charged = bytes;
    device->memory.module_bytes += bytes;
    bh__held_note(device);
    return true;
}

/* Values that the program wrote can be restored. Where kernels can write too, the program's value
 * need not be the last one. */
bool bh__module_keeps_state(const bh__module *module) {
    for (uint32_t i = 0; i < module->variable_count; i++) {
        if (module->variables[i].writable && module->variables[i].bytes) return true;
    }
    return false;
}

bool bh__module_lacks_state(const bh__module *module, uint64_t stamp) {
    return module->stale || stamp <= module->lost_until;
}

/* ---- loading ---- */

/* Copies the image to memory that workers can map. */
static bool keep_image(bh__module *module, const void *image, size_t bytes, bh_error *error) {
    char text[128];
    void *mapped;
    int fd = bh__share_publish("bulkhead-image", bytes, &mapped);
    if (fd < 0) {
        bh__fail(error, BH_E_NO_HOST_MEMORY, bh__errno_fix(-fd, "free host memory"),
                 "cannot allocate shared memory for a module of %zu bytes: %s", bytes,
                 bh__errno_text(-fd, text, sizeof text));
        return false;
    }
    memcpy(mapped, image, bytes);
    bh__share_unmap(mapped, bytes);
    module->image_fd = bh__fd_keep(fd);
    module->image_bytes = bytes;
    return true;
}

bh__module *bh__module_announce(bh__device *device) {
    bh__lane *lane = &device->lanes[BH__LOAD_LANE];
    bh__module **last = &lane->pending;
    size_t verdicts = 1;
    for (; *last; last = &(*last)->next_pending) verdicts++;
    bh__module *module =
        bh__verdicts_reserve(lane->verdicts, verdicts) ? calloc(1, sizeof *module) : NULL;
    if (!module) {
        bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for a module's record");
        return NULL;
    }
    module->image_fd = -1;
    module->pins = 1; /* until bh__module_resolve */
    if (bh__handle_add(device, BH__KIND_MODULE, module, &module->id) != BH_OK) {
        bh__module_delete(module);
        return NULL;
    }
    module->number = device->module.next_number++;
    module->next = device->module.list;
    device->module.list = module;
    module->ticket = atomic_load(&lane->tail) + 1;
    *last = module;
    atomic_store(&lane->tail, module->ticket);
    return module;
}

static void load_finished(bh__device *device, bh__job *job) {
    if (job->error.status == BH_OK && bh__native_load(device, job->module)) return;
    bh__module_resolve(device, job->module, &job->error);
}

/* Machine code runs on its own architecture and on later ones of the same generation. */
static bool runs_code_for(const bh__device *device, const char *arch) {
    unsigned code, own;
    if (!(device->traits & BH__TRAIT_LOADS_CUBIN)) return false;
    if (sscanf(arch, "sm_%u", &code) != 1 || sscanf(device->info.arch, "sm_%u", &own) != 1)
        return true;
    return code / 10 == own / 10 && code <= own;
}

bool bh__module_send(bh__device *device, bh__module *module, const void *image, size_t bytes,
                     bh_error *error) {
    const bh__product *product = module->product;
    if (product && product->ptx && !runs_code_for(device, product->arch)) {
        image = product->ptx;
        bytes = product->ptx_count;
    }
    bh__job *job = calloc(1, sizeof *job);
    if (!job) {
        bh__fail(error, BH_E_NO_HOST_MEMORY, "free host memory",
                 "no host memory for a module's record");
        return false;
    }
    if (!keep_image(module, image, bytes, error)) {
        free(job);
        return false;
    }
    *job = (bh__job){.kind = BH__JOB_ORDER,
                     .order = {.type = BH__MSG_MODULE_LOAD,
                               .module = {.id = module->number, .bytes = bytes},
                               .fd = module->image_fd},
                     .module = module,
                     .finished = load_finished,
                     .self_owned = true};
    bh__job_post(device, job);
    return true;
}

void bh__module_resolve_locked(bh__device *device, bh__module *module, const bh_error *error) {
    bh__lane *lane = &device->lanes[BH__LOAD_LANE];
    if (error->status != BH_OK)
        bh__lane_fail(device, lane,
                      &(bh__failure){.sequence = module->ticket,
                                     .status = error->status,
                                     .certain = 1,
                                     .detail = error});
    bh__module **link = &lane->pending;
    while (*link != module) link = &(*link)->next_pending;
    *link = module->next_pending;
    atomic_store(&lane->load_done,
                 lane->pending ? lane->pending->ticket - 1 : atomic_load(&lane->tail));
    if (error->status != BH_OK) {
        device->counters.module_load_failures++;
        bh__handle_remove(device, module->id);
        bh__module_drop(device, module);
    } else {
        device->counters.module_loads++;
        bh__note(device, "module loaded", "bytes", module->image_bytes);
        bh__module_unpin(device, module);
    }
    atomic_fetch_add(&lane->load_wake, 1);
}

void bh__module_wake(bh__device *device) {
    bh__futex_wake(&device->lanes[BH__LOAD_LANE].load_wake, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
    bh__dispatcher_poke(device);
}

void bh__module_resolve(bh__device *device, bh__module *module, const bh_error *error) {
    bh__lock_take(&device->lock);
    bh__module_resolve_locked(device, module, error);
    bh__lock_give(&device->lock);
    bh__module_wake(device);
}

bh_status bh__module_submit(bh_device handle, const void *image, size_t bytes, bh__product *product,
                            uint32_t cache, bh_module *out, bh_ticket *ticket) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    bh__module *module = device ? bh__module_announce(device) : NULL;
    if (!module) {
        if (device) bh__device_unlock(device);
        return bh__last()->status;
    }
    if (product) bh__product_retain(product);
    module->product = product;
    module->cache = cache;
    bh_module made = {module->id};
    bh_ticket given = {atomic_load(&device->lanes[BH__LOAD_LANE].id), module->ticket};
    bh_error error = {.status = BH_OK};
    if (!bh__module_send(device, module, image, bytes, &error)) {
        bh__module_resolve_locked(device, module, &error);
        bh__device_unlock(device);
        return bh__refuse_with(&error);
    }
    *out = made;
    if (ticket) *ticket = given;
    bh__device_unlock(device);
    return BH_OK;
}

bh_status bh_submit_load(bh_device device, const void *image, size_t bytes, bh_module *out,
                         bh_ticket *ticket) {
    if (!image || !out || bytes == 0) {
        return bh__refuse(BH_E_INVALID, "pass a module image and storage for the module",
                          "image is %p of %zu bytes, out is %p", image, bytes, (void *)out);
    }
    if (bytes > (size_t)1 << 30) {
        return bh__refuse(BH_E_INVALID, "load modules of at most 1 GiB", "the image has %zu bytes",
                          bytes);
    }
    if (bh__library_of_image(image, bytes))
        return bh__refuse(BH_E_LOAD, "use bh_library_load", "the image stands for a library");
    return bh__module_submit(device, image, bytes, NULL, BH_CACHE_OFF, out, ticket);
}

bh_status bh_module_load(bh_device device, const void *image, size_t bytes, bh_module *out) {
    bh_ticket ticket;
    bh_module module;
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the module", "out is NULL");
    bh_status status = bh_submit_load(device, image, bytes, &module, &ticket);
    if (status == BH_OK) status = bh_wait(ticket, BH_FOREVER);
    if (status == BH_OK) *out = module;
    return status;
}

bh_status bh_module_load_file(bh_device device, const char *path, bh_module *out) {
    char text[128];
    if (!path || !out)
        return bh__refuse(BH_E_INVALID, "pass a path and storage for the module",
                          "path is %p, out is %p", (const void *)path, (void *)out);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0) {
        int number = errno;
        if (fd >= 0) close(fd);
        return bh__refuse(number == ENOENT ? BH_E_NOT_FOUND : BH_E_IO,
                          "check the path and its permissions", "cannot open %s: %s", path,
                          bh__errno_text(number, text, sizeof text));
    }
    if (!S_ISREG(info.st_mode) || info.st_size <= 0 || info.st_size > 1 << 30) {
        close(fd);
        return bh__refuse(BH_E_LOAD, "name a regular file of 1 byte to 1 GiB",
                          "%s is not a regular file, or its size is not supported: %lld bytes",
                          path, (long long)info.st_size);
    }
    size_t bytes = (size_t)info.st_size, got = 0;
    uint8_t *image = malloc(bytes);
    ssize_t some = 1;
    while (image && got < bytes && (some = read(fd, image + got, bytes - got)) > 0)
        got += (size_t)some;
    int number = errno;
    close(fd);
    bh_status status;
    if (!image) {
        status = bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                            "no host memory to read %s (%zu bytes)", path, bytes);
    } else if (some < 0) {
        status = bh__refuse(BH_E_IO, "check the file", "cannot read %s: %s", path,
                            bh__errno_text(number, text, sizeof text));
    } else {
        status = bh_module_load(device, image, got, out);
    }
    free(image);
    return status;
}

bh__module *bh__module_lock(bh_module handle, bool running, bh__device **out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_MODULE, "module", running);
    if (!device) return NULL;
    bh__module *module = bh__handle_get(device, handle.id, BH__KIND_MODULE, "module");
    if (module && module->loaded) {
        *out = device;
        return module;
    }
    if (module)
        bh__refuse(BH_E_BUSY, "wait for the ticket of its load",
                   "the module is still being loaded");
    bh__device_unlock(device);
    return NULL;
}

bh_status bh_module_release(bh_module handle) {
    bh__device *device;
    bh__module *module = bh__module_lock(handle, false, &device);
    if (!module) return bh__last()->status;
    for (uint32_t i = 0; i < module->kernel_count; i++) {
        if (module->kernels[i].id) bh__handle_remove(device, module->kernels[i].id);
        module->kernels[i].id = 0;
    }
    bh__handle_remove(device, handle.id);
    module->unloaded = true;
    bh__modules_sweep(device);
    bh__device_unlock(device);
    return BH_OK;
}

bh_status bh__refuse_disputed(const bh__module *module, bh_error *error) {
    return bh__fail(error, BH_E_LOAD, "load the module again, and treat its results as suspect",
                    "module %u: two workers described its kernels differently, so one of them was "
                    "wrong",
                    module->number);
}

bh_status bh_module_accept(bh_module handle) {
    bh__device *device;
    bh__module *module = bh__module_lock(handle, false, &device);
    if (!module) return bh__last()->status;
    bh_status status = BH_OK;
    if (module->disputed)
        status = bh__refuse_disputed(module, bh__last());
    else
        module->stale = false;
    bh__device_unlock(device);
    return status;
}

/* ---- kernels ---- */

static bh_status kernel_handle(bh__device *device, bh__kernel *kernel, bh_kernel *out) {
    bh_status status = BH_OK;
    if (!kernel->id) status = bh__handle_add(device, BH__KIND_KERNEL, kernel, &kernel->id);
    if (status == BH_OK) out->id = kernel->id;
    return status;
}

static bh__kernel *find_kernel(bh__module *module, const char *name) {
    for (uint32_t i = 0; i < module->kernel_count; i++) {
        if (strcmp(module->kernels[i].name, name) == 0) return &module->kernels[i];
    }
    return NULL;
}

static size_t add_to_list(char *list, size_t size, size_t used, const char *name) {
    if (used >= size) return used;
    return used + (size_t)snprintf(list + used, size - used, "%s%s", used ? ", " : "", name);
}

static bh_status refuse_kernel(const bh__module *module, const char *name) {
    char list[320] = "";
    size_t used = 0;
    const bh__name *other;
    const bh__name *known =
        module->product ? bh__names_find(&module->product->names, name, &other) : NULL;
    if (known)
        return bh__refuse(BH_E_NOT_FOUND, "register an expression that names a __global__ function",
                          "name expression \"%.100s\" (lowered name \"%.200s\") is not a kernel",
                          name, known->lowered);
    if (bh__name_is_expression(name)) {
        size_t count = module->product ? module->product->names.count : 0;
        for (size_t i = 0; i < count; i++)
            used = add_to_list(list, sizeof list, used, module->product->names.list[i].expression);
        return bh__refuse(BH_E_NOT_FOUND,
                          "name it in bh_compile_options.expressions when the module is compiled",
                          "name expression \"%.100s\" was not registered; %zu were%s%.300s", name,
                          count, used ? ": " : "", list);
    }
    for (uint32_t i = 0; i < module->kernel_count; i++)
        used = add_to_list(list, sizeof list, used, module->kernels[i].name);
    return bh__refuse(
        BH_E_NOT_FOUND,
        "use a name from the module; C++ kernels have mangled names unless declared extern \"C\" "
        "or registered in bh_compile_options.expressions",
        "the module has no kernel \"%.100s\"; it has %u%s%.300s", name, module->kernel_count,
        used ? ": " : "", list);
}

bh_status bh_kernel_get(bh_module handle, const char *name, bh_kernel *out) {
    if (!name || !out)
        return bh__refuse(BH_E_INVALID, "pass a name and storage for the kernel",
                          "name is %p, out is %p", (const void *)name, (void *)out);
    bh__device *device;
    bh__module *module = bh__module_lock(handle, false, &device);
    if (!module) return bh__last()->status;
    bh__kernel *kernel = find_kernel(module, name);
    const char *one = kernel ? kernel->name : NULL, *two = NULL;
    if (module->product) {
        const bh__name *other, *known = bh__names_find(&module->product->names, name, &other);
        if (known && other) {
            one = known->lowered;
            two = other->lowered;
        } else if (known && !kernel) {
            kernel = find_kernel(module, known->lowered);
        } else if (known && strcmp(known->lowered, one) != 0) {
            two = known->lowered; /* and this is the name itself of another file's kernel */
        }
    }
    bh_status status = two      ? bh__names_refuse_two(name, one, two)
                       : kernel ? kernel_handle(device, kernel, out)
                                : refuse_kernel(module, name);
    bh__device_unlock(device);
    return status;
}

bh_status bh_module_list_kernels(bh_module handle, bh_kernel *kernels, size_t capacity,
                                 size_t *count) {
    if (bh__list_check(kernels, sizeof *kernels, capacity, count, "bh_kernel") != BH_OK)
        return BH_E_INVALID;
    bh__device *device;
    bh__module *module = bh__module_lock(handle, false, &device);
    if (!module) return bh__last()->status;
    bh_status status = BH_OK;
    for (uint32_t i = 0; i < module->kernel_count && i < capacity && status == BH_OK; i++)
        status = kernel_handle(device, &module->kernels[i], &kernels[i]);
    if (status == BH_OK) *count = module->kernel_count;
    bh__device_unlock(device);
    return status;
}

static bh__kernel *kernel_lock(bh_kernel handle, bh__device **out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_KERNEL, "kernel", false);
    if (!device) return NULL;
    bh__kernel *kernel = bh__handle_get(device, handle.id, BH__KIND_KERNEL, "kernel");
    if (!kernel) bh__device_unlock(device);
    *out = device;
    return kernel;
}

bh_status bh_kernel_get_info(bh_kernel handle, bh_kernel_info *out) {
    if (bh__sized_check(out, "bh_kernel_info") != BH_OK) return BH_E_INVALID;
    bh__device *device;
    bh__kernel *kernel = kernel_lock(handle, &device);
    if (!kernel) return bh__last()->status;
    bh_kernel_info info = {.size = out->size,
                           .param_count = kernel->shape.param_count,
                           .param_bytes = kernel->shape.param_bytes,
                           .static_shared = kernel->shape.static_shared,
                           .local_bytes = kernel->shape.local_bytes,
                           .registers = kernel->shape.registers,
                           .max_threads = kernel->shape.max_threads,
                           .quarantined = kernel->quarantined,
                           .faults = kernel->faults,
                           .executor = kernel->shape.executor,
                           .native_instructions = kernel->shape.native,
                           .handled_instructions = kernel->shape.handled,
                           .compile_us = kernel->shape.compile_us};
    snprintf(info.executor_note, sizeof info.executor_note, "%.*s", BH__EXECUTOR_NOTE - 1,
             kernel->shape.executor_note);
    memcpy(info.required_block, kernel->shape.required_block, sizeof info.required_block);
    snprintf(info.name, sizeof info.name, "%s", kernel->name);
    bh__device_unlock(device);
    bh__sized_give(out, &info, sizeof info);
    return BH_OK;
}

bh_status bh_kernel_get_param(bh_kernel handle, uint32_t index, bh_param_info *out) {
    if (bh__sized_check(out, "bh_param_info") != BH_OK) return BH_E_INVALID;
    bh__device *device;
    bh__kernel *kernel = kernel_lock(handle, &device);
    if (!kernel) return bh__last()->status;
    bh_status status = BH_OK;
    if (index < kernel->shape.param_count) {
        const bh__blob_param *param = &kernel->params[index];
        bh_param_info info = {.size = out->size,
                              .offset = param->offset,
                              .bytes = param->bytes,
                              .pointer = param->pointer};
        bh__sized_give(out, &info, sizeof info);
    } else {
        status = bh__refuse(BH_E_NOT_FOUND, "use an index below param_count",
                            "there is no parameter %u; kernel %s has %u", index, kernel->name,
                            kernel->shape.param_count);
    }
    bh__device_unlock(device);
    return status;
}

bh_status bh_kernel_pardon(bh_kernel handle) {
    bh__device *device;
    bh__kernel *kernel = kernel_lock(handle, &device);
    if (!kernel) return bh__last()->status;
    bh__kernel_pardon(kernel);
    bh__device_unlock(device);
    return BH_OK;
}
