/* SPDX-License-Identifier: Apache-2.0 */
/* Native code of kernels: from a launch that could use it to workers that have it. */
#include "client/module/ask_native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain_text.h"
#include "client/core/fork.h"
#include "client/core/hooks.h"
#include "client/jobs/jobs.h"
#include "client/module/module.h"
#include "wire/share.h"

static void free_part(bh__native_part *part) {
    if (part && part->fd >= 0) bh__fd_close(part->fd);
    free(part);
}

void bh__native_free(bh__module *module) {
    while (module->natives) {
        bh__native_part *gone = module->natives;
        module->natives = gone->next;
        free_part(gone);
    }
}

/* ---- asking ---- */

static bool start(bh__device *device, bh__module *module, uint32_t kernel, uint32_t shapes) {
    if (atomic_load(&device->life) != BH__LIFE_OPEN || module->unloaded) return false;
    module->pins++;
    if (bh__hooks.compile_native(device, module, kernel, shapes)) return true;
    bh__module_unpin(device, module);
    return false;
}

/* Operations of libraries are native code already. */
static bool is_of_library(const bh__kernel *kernel) {
    return kernel->shape.executor == BH_EXECUTOR_DEVICE;
}

void bh__native_ask(bh__device *device, bh__kernel *kernel, uint32_t shape) {
    if (is_of_library(kernel)) {
        kernel->native_asked = kernel->native_ready = BH__NATIVE_ANY;
        return;
    }
    kernel->native_asked |= (uint8_t)shape;
    if (!start(device, kernel->module, kernel->index, shape))
        snprintf(kernel->shape.executor_note, sizeof kernel->shape.executor_note,
                 "its compile could not be started: no host memory or threads");
}

bool bh__native_load(bh__device *device, bh__module *module) {
    if (device->executor != BH_EXECUTE_JIT) return false;
    bh__lock_take(&device->lock);
    bool started = module->kernel_count > 0 && !is_of_library(&module->kernels[0]);
    for (uint32_t i = 0; started && i < module->kernel_count; i++)
        module->kernels[i].native_asked = BH__NATIVE_ANY;
    /* Set first: the code may arrive as soon as it is asked for. */
    module->waits_for_native = started;
    started = started && start(device, module, BH__NATIVE_ALL, BH__NATIVE_ANY);
    module->waits_for_native = started;
    bh__lock_give(&device->lock);
    return started;
}

/* ---- arriving ---- */

/* Ends what start began, and the load if it waits for that. Nothing keeps the module from here on.
 * Called with the lock held; what it returns is for announce. */
static bool unpin(bh__device *device, bh__module *module) {
    static const bh_error fine = {.status = BH_OK};
    bool waits = module->waits_for_native;
    module->waits_for_native = false;
    if (waits) bh__module_resolve_locked(device, module, &fine);
    bh__module_unpin(device, module);
    return waits;
}

/* Kernels are interpreted for this reason. They are asked for one by one if all were asked for, and
 * not again if workers were lost. */
static void refuse(bh__module *module, uint32_t kernel, const bh_error *error) {
    bool harmful = error->status == BH_E_LOST;
    for (uint32_t i = 0; i < module->kernel_count; i++) {
        bh__kernel *each = &module->kernels[i];
        if (kernel != BH__NATIVE_ALL && i != kernel && !harmful) continue;
        if (kernel == BH__NATIVE_ALL && error->status == BH_E_COMPILE) each->native_asked = 0;
        if (harmful) each->native_asked = BH__NATIVE_ANY;
        if (each->native_ready) continue;
        snprintf(each->shape.executor_note, sizeof each->shape.executor_note, "%.127s",
                 error->message);
    }
}

static void describe(bh__kernel *kernel, const bh__native_entry *entry) {
    bh__blob_kernel *shape = &kernel->shape;
    kernel->native_asked |= (uint8_t)entry->shape;
    if (kernel->native_ready) return; /* the first one counts */
    shape->native = entry->native;
    shape->handled = entry->handled;
    shape->compile_us = entry->compile_us;
    snprintf(shape->executor_note, sizeof shape->executor_note, "%s", entry->note);
    BH__PLAIN(shape->executor_note);
}

/* A block and what is known of the kernels in it, kept until the worker has answered. */
typedef struct known {
    bh__native_part *part; /* Owned. */
    uint32_t count;
    bh__native_entry list[];
} known;

/* The active worker has the code, or says why not. Only code that a worker has taken is for later
 * workers too: it may be what ends them. */
static void finished(bh__device *device, bh__job *job) {
    bh__module *module = job->module;
    bool installed = job->error.status == BH_OK && job->error.message[0] == 0;
    bh__lock_take(&device->lock);
    const known *about = job->context;
    if (installed) {
        about->part->next = module->natives;
        module->natives = about->part;
    } else {
        free_part(about->part);
    }
    for (uint32_t i = 0; i < about->count; i++) {
        const bh__native_entry *entry = &about->list[i];
        bh__kernel *kernel = &module->kernels[entry->kernel];
        describe(kernel, entry);
        if (installed && entry->bytes) {
            kernel->native_ready |= (uint8_t)entry->shape;
            kernel->shape.executor = BH_EXECUTOR_JIT;
            device->counters.kernels_compiled++;
        } else if (!installed) {
            refuse(module, entry->kernel, &job->error);
        }
    }
    bool loaded = unpin(device, module);
    bh__lock_give(&device->lock);
    free(job->context);
    if (loaded) bh__module_wake(device);
}

static known *keep_entries(const bh__module *module, const void *block, size_t bytes) {
    uint32_t count = 0;
    const bh__native_entry *list = bh__native_check(block, bytes, &count);
    for (uint32_t i = 0; list && i < count; i++) {
        if (list[i].kernel >= module->kernel_count) list = NULL;
    }
    known *kept = list ? malloc(sizeof *kept + count * sizeof *list) : NULL;
    if (!kept) return NULL;
    kept->count = count;
    memcpy(kept->list, list, count * sizeof *list);
    return kept;
}

/* Copies the code to memory that workers can map. NULL: no host memory. *out_entries is NULL if it
 * is not valid. */
static bh__native_part *publish(const bh__module *module, const bh__product *product,
                                known **out_entries) {
    void *mapped;
    bh__native_part *part = calloc(1, sizeof *part);
    int fd = part ? bh__share_publish("bulkhead-native", product->count, &mapped) : -1;
    if (fd < 0) {
        free(part);
        return NULL;
    }
    memcpy(mapped, product->bytes, product->count);
    *out_entries = keep_entries(module, mapped, product->count);
    bh__share_unmap(mapped, product->count);
    *part = (bh__native_part){NULL, bh__fd_keep(fd), product->count};
    return part;
}

/* Gives the code to the active worker, and through orders to every later one. */
static bool give(bh__device *device, bh__module *module, const bh__product *product,
                 bh_error *error) {
    bh__job *job = calloc(1, sizeof *job);
    known *entries = NULL;
    bh__native_part *part = job ? publish(module, product, &entries) : NULL;
    if (!entries) {
        bh__fail(error, BH_E_UNSUPPORTED, "free host memory, or reinstall Bulkhead",
                 !part ? "no host memory for %llu bytes of native code"
                       : "native code of %llu bytes is not valid",
                 (unsigned long long)product->count);
        free_part(part);
        free(job);
        return false;
    }
    entries->part = part;
    *job = (bh__job){.kind = BH__JOB_ORDER,
                     .order = {.type = BH__MSG_MODULE_NATIVE,
                               .module = {.id = module->number, .bytes = product->count},
                               .fd = part->fd},
                     .module = module,
                     .context = entries,
                     .finished = finished,
                     .self_owned = true};
    bh__job_post(device, job);
    return true;
}

void bh__native_arrived(bh__device *device, bh__module *module, uint32_t kernel, uint32_t shapes,
                        bh__product *product, uint32_t cache, const bh_error *error,
                        char out_news[BH__NATIVE_NEWS]) {
    bh_error why = *error;
    bh__lock_take(&device->lock);
    uint32_t number = module->number;
    bool given = product && atomic_load(&device->life) == BH__LIFE_OPEN && !module->unloaded &&
                 give(device, module, product, &why);
    bool loaded = false;
    if (!given) {
        refuse(module, kernel, &why);
        loaded = unpin(device, module);
    }
    bh__lock_give(&device->lock);
    out_news[0] = 0;
    if (given)
        snprintf(out_news, BH__NATIVE_NEWS,
                 "native code for module %u, kernel %d, shapes %u: %llu bytes, %.80s, %.1f ms",
                 number, (int)kernel, shapes, (unsigned long long)product->count,
                 cache == BH_CACHE_MISS || cache == BH_CACHE_OFF ? product->compiler
                                                                 : "from the cache",
                 (double)product->compile_ns / 1e6);
    else if (why.status != BH_E_CANCELLED)
        snprintf(out_news, BH__NATIVE_NEWS, "no native code for module %u, kernel %d: %s", number,
                 (int)kernel, why.message);
    if (loaded) bh__module_wake(device);
}
