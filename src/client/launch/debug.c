/* SPDX-License-Identifier: Apache-2.0 */
/* bh_kernel_debug: which threads of a kernel the worker is to follow. */
#include <stdlib.h>
#include <string.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/jobs/jobs.h"
#include "client/launch/launch.h"
#include "client/module/module.h"

enum { DEFAULT_LIMIT = 1024 * 1024, TEXT_BYTES = 1000 };

static bh_status refuse_threads(const char *text) {
    return bh__refuse(BH_E_INVALID, "write numbers and ranges such as 0,5,8..16",
                      "bh_debug_options.threads is \"%.100s\", not a list of numbers from 0 to %d",
                      text, BH__DEBUG_THREADS - 1);
}

/* Reads a number of up to six digits. */
static bool read_number(const char **at, uint32_t *out) {
    const char *from = *at;
    for (*out = 0; **at >= '0' && **at <= '9' && *at - from < 6; ++*at)
        *out = *out * 10 + (uint32_t)(**at - '0');
    return *at > from;
}

/* "0,5,8..16" */
static bh_status read_threads(const char *text, bh__debug_message *out) {
    for (const char *at = text;; at++) {
        uint32_t first, end;
        if (!read_number(&at, &first)) return refuse_threads(text);
        end = first + 1;
        if (at[0] == '.' && at[1] == '.') {
            at += 2;
            if (!read_number(&at, &end) || end <= first) return refuse_threads(text);
        }
        if (end > BH__DEBUG_THREADS || (*at && *at != ',')) return refuse_threads(text);
        for (uint32_t i = first; i < end; i++) out->threads[i / 32] |= 1u << i % 32;
        if (!*at) return BH_OK;
    }
}

static bh_status refuse_text(const char *name, const char *text) {
    if (!text)
        return bh__refuse(BH_E_INVALID, "pass REGISTER@LINE",
                          "an element of bh_debug_options.%s is NULL", name);
    return bh__refuse(BH_E_INVALID, "pass a shorter text",
                      "bh_debug_options.%s is \"%.40s...\", of %d bytes or more", name, text,
                      TEXT_BYTES / 2);
}

/* Adds a text with its NUL to the message. */
static bh_status add_text(const char *name, const char *text, uint8_t *data, uint32_t *used) {
    if (!text || strnlen(text, TEXT_BYTES / 2) == TEXT_BYTES / 2) return refuse_text(name, text);
    size_t bytes = strlen(text) + 1;
    memcpy(data + *used, text, bytes);
    *used += (uint32_t)bytes;
    return BH_OK;
}

static bh_status check(const bh_debug_options *options) {
    if (bh__reserved_check(options->reserved, "bh_debug_options") != BH_OK) return BH_E_UNSUPPORTED;
    if (options->flags & ~(uint32_t)BH_DEBUG_TRACE)
        return bh__refuse(BH_E_INVALID, "use only BH_DEBUG_... flags",
                          "bh_debug_options.flags is 0x%x", options->flags);
    if (options->print_count > BH__DEBUG_PRINTS || (options->print_count > 0 && !options->prints))
        return bh__refuse(BH_E_INVALID, "pass an array of up to 63 texts",
                          "bh_debug_options.prints is %p, print_count is %zu",
                          (const void *)options->prints, options->print_count);
    return BH_OK;
}

/* Makes the data of the message. The order owns it. */
static bh_status make(const bh_debug_options *options, bh__order *order) {
    _Static_assert(sizeof(bh__debug_message) + (BH__DEBUG_PRINTS + 1) * TEXT_BYTES / 2 <
                       BH__MESSAGE_BYTES,
                   "all texts fit a message");
    bh__debug_message head = {.trace = options->flags & BH_DEBUG_TRACE,
                              .print_count = (uint32_t)options->print_count,
                              .limit = options->text_limit ? options->text_limit : DEFAULT_LIMIT};
    memcpy(head.block, options->block, sizeof head.block);
    bh_status status = read_threads(options->threads ? options->threads : "0", &head);
    if (status != BH_OK) return status;
    order->data = malloc(BH__MESSAGE_BYTES);
    if (!order->data)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for a message");
    memcpy(order->data, &head, sizeof head);
    order->data_bytes = sizeof head;
    status = add_text("stop", options->stop ? options->stop : "", order->data, &order->data_bytes);
    for (size_t i = 0; i < options->print_count && status == BH_OK; i++)
        status = add_text("prints", options->prints[i], order->data, &order->data_bytes);
    if (status == BH_OK) return BH_OK;
    free(order->data);
    order->data = NULL;
    return status;
}

bh_status bh_kernel_debug(bh_kernel handle, const bh_debug_options *given) {
    bh_debug_options options = BH_INIT(options);
    bh__job job = {.kind = BH__JOB_ORDER, .order = {.type = BH__MSG_DEBUG, .fd = -1}};
    bh_status status = bh__options_take(given, &options, "bh_debug_options");
    if (status == BH_OK) status = check(&options);
    if (status == BH_OK && given) status = make(&options, &job.order);
    if (status != BH_OK) return status;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_KERNEL, "kernel", true);
    bh__kernel *kernel =
        device ? bh__handle_get(device, handle.id, BH__KIND_KERNEL, "kernel") : NULL;
    if (!kernel) {
        free(job.order.data);
        status = bh__last()->status;
        if (device) bh__device_unlock(device);
        return status;
    }
    job.order.module =
        (bh__module_message){.id = kernel->module->number, .variable = kernel->index};
    kernel->module->pins++;
    status = bh__order_run(device, &job);
    bh__module_unpin(device, kernel->module);
    bh__device_unlock(device);
    return status;
}
