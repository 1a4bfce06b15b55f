/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whose threads are followed: what the application asked for, and its launches. */
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"

/* Launches hold it beside the list, so that it can be replaced while they run. */
struct bh__cpu_debug {
    bh__cpu_debug *next;
    uint32_t module, kernel;
    uint32_t users; /* under debug_lock; the list is one */
    bh__ptx_debug *made;
};

static void leave(bh__cpu_debug *debug) {
    if (debug && --debug->users == 0) {
        bh__ptx_debug_destroy(debug->made);
        free(debug);
    }
}

/* Takes what is followed of a module out of the list; `kernel` UINT32_MAX: all of it. */
static void forget(bh__device_instance *device, uint32_t module, uint32_t kernel) {
    pthread_mutex_lock(&device->debug_lock);
    for (bh__cpu_debug **link = &device->debugs; *link;) {
        bh__cpu_debug *debug = *link;
        if (debug->module != module || (kernel != UINT32_MAX && debug->kernel != kernel)) {
            link = &debug->next;
            continue;
        }
        *link = debug->next;
        atomic_fetch_sub(&device->debug_count, 1);
        leave(debug);
    }
    pthread_mutex_unlock(&device->debug_lock);
}

void bh__cpu_debug_forget(bh__device_instance *device, uint32_t module) {
    forget(device, module, UINT32_MAX);
}

/* The texts of the message, one after the other: the line to stop at, then what to print. */
static bool read_texts(const bh__debug_message *head, const char *text, size_t bytes,
                       const char **prints, bh__ptx_debug_wish *wish) {
    for (uint32_t i = 0; i <= head->print_count; i++) {
        const char *end = memchr(text, 0, bytes);
        if (!end) return false;
        if (i == 0)
            wish->stop = *text ? text : NULL;
        else
            prints[i - 1] = text;
        bytes -= (size_t)(end + 1 - text);
        text = end + 1;
    }
    wish->prints = prints;
    wish->print_count = head->print_count;
    return bytes == 0;
}

static bh_status add(bh__device_instance *device, const bh__cpu_module *module, uint32_t kernel,
                     const bh__ptx_debug_wish *wish, bh_error *error) {
    bh__cpu_debug *debug = calloc(1, sizeof *debug);
    if (!debug)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory", "no memory to debug a kernel");
    *debug = (bh__cpu_debug){.module = module->id, .kernel = kernel, .users = 1};
    bh_status status = bh__ptx_debug_create(module->code, bh__ptx_kernel_at(module->code, kernel),
                                            wish, error, &debug->made);
    if (status != BH_OK) {
        free(debug);
        return status;
    }
    forget(device, module->id, kernel);
    pthread_mutex_lock(&device->debug_lock);
    debug->next = device->debugs;
    device->debugs = debug;
    atomic_fetch_add(&device->debug_count, 1);
    pthread_mutex_unlock(&device->debug_lock);
    return BH_OK;
}

bh_status bh__cpu_debug_set(bh__device_instance *device, const bh__module_message *which,
                            const void *data, size_t bytes, bh_error *error) {
    const bh__cpu_module *module = bh__cpu_find_module(device, which->id);
    if (!module || which->variable >= bh__ptx_kernel_count(module->code))
        return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT, "there is no kernel %u in module %u",
                        which->variable, which->id);
    if (bytes == 0) {
        forget(device, which->id, which->variable);
        return BH_OK;
    }
    bh__debug_message head;
    const char *prints[BH__DEBUG_PRINTS];
    bh__ptx_debug_wish wish = {0};
    bool valid = bytes > sizeof head;
    if (valid) memcpy(&head, data, sizeof head);
    valid = valid && head.print_count <= BH__DEBUG_PRINTS &&
            read_texts(&head, (const char *)data + sizeof head, bytes - sizeof head, prints, &wish);
    if (!valid)
        return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT, "a request to debug is malformed");
    memcpy(wish.block, head.block, sizeof wish.block);
    memcpy(wish.threads, head.threads, sizeof wish.threads);
    wish.trace = head.trace;
    wish.limit = head.limit;
    return add(device, module, which->variable, &wish, error);
}

bh__cpu_debug *bh__cpu_debug_enter(bh__device_instance *device, uint32_t module, uint32_t kernel) {
    if (atomic_load_explicit(&device->debug_count, memory_order_acquire) == 0) return NULL;
    pthread_mutex_lock(&device->debug_lock);
    bh__cpu_debug *debug = device->debugs;
    while (debug && (debug->module != module || debug->kernel != kernel)) debug = debug->next;
    if (debug) debug->users++;
    pthread_mutex_unlock(&device->debug_lock);
    return debug;
}

const bh__ptx_debug *bh__cpu_debug_made(const bh__cpu_debug *debug) {
    return debug->made;
}

void bh__cpu_debug_leave(bh__device_instance *device, bh__cpu_debug *debug) {
    pthread_mutex_lock(&device->debug_lock);
    leave(debug);
    pthread_mutex_unlock(&device->debug_lock);
}
