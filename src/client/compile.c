/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling and linking: the public calls. */
#include "client/compile.h"

#include <stdlib.h>
#include <string.h>

#include "client/binary.h"

enum { MOST_PARTS = 4096 };

/* Runs the request, and keeps what the compiler said if it failed. Frees the request. */
static bh_status fly(bh__compile_request *request, bh__outcome *outcome) {
    bh_status status = bh__flight_fly(request, outcome);
    bh__request_free(request);
    if (status == BH_OK) return BH_OK;
    bh__log_keep_last(outcome->log);
    status = bh__refuse_with(&outcome->error);
    bh__outcome_free(outcome);
    return status;
}

/* The end of a call in which no compiler failed. If it failed all the same, nothing was said of it,
 * and what was said of an earlier one is not to be taken for its log. */
static bh_status ended(bh_status status) {
    if (status != BH_OK) bh__log_keep_last(NULL);
    return status;
}

bh_status bh_compile(const char *source, const bh_compile_options *options, bh_binary *out) {
    if (!out) return ended(bh__refuse(BH_E_INVALID, "pass storage for the binary", "out is NULL"));
    if (bh__refuse_forked()) return ended(BH_E_STOPPED);
    bh__compile_request request;
    bh__outcome outcome;
    bh_status status = bh__request_compile(&request, source, options, NULL);
    if (status != BH_OK) return ended(status);
    status = fly(&request, &outcome);
    return status == BH_OK ? ended(bh__binary_make(outcome.product, outcome.cache, out)) : status;
}

bh_status bh_link(const bh_binary *parts, size_t count, const bh_compile_options *options,
                  bh_binary *out) {
    if (!parts || !out || count == 0 || count > MOST_PARTS)
        return ended(bh__refuse(BH_E_INVALID, "pass 1 to 4096 binaries and storage for the result",
                                "parts is %p, count is %zu, out is %p", (const void *)parts, count,
                                (void *)out));
    if (bh__refuse_forked()) return ended(BH_E_STOPPED);
    bh__product **products = calloc(count, sizeof *products);
    if (!products)
        return ended(bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                                "no host memory to link %zu binaries", count));
    bh_status status = BH_OK;
    for (size_t i = 0; i < count && status == BH_OK; i++) {
        products[i] = bh__binary_product(parts[i], "a part", NULL);
        if (!products[i]) status = bh__last()->status;
    }
    bh__compile_request request;
    bh__outcome outcome;
    if (status == BH_OK) status = bh__request_link(&request, products, count, options);
    if (ended(status) == BH_OK) status = fly(&request, &outcome);
    for (size_t i = 0; i < count; i++) bh__product_release(products[i]);
    free(products);
    return status == BH_OK ? ended(bh__binary_make(outcome.product, outcome.cache, out)) : status;
}

/* What there is to know of a device that can be used. */
static bh_status device_info(bh_device handle, bh_device_info *out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    *out = device->info;
    bh__device_unlock(device);
    return BH_OK;
}

bh_status bh_module_compile(bh_device device, const char *source, const bh_compile_options *options,
                            bh_module *out) {
    if (!out) return ended(bh__refuse(BH_E_INVALID, "pass storage for the module", "out is NULL"));
    bh_device_info info;
    bh__compile_request request;
    bh__outcome outcome;
    bh_status status = device_info(device, &info);
    if (status == BH_OK) status = bh__request_compile(&request, source, options, &info);
    if (status != BH_OK) return ended(status);
    status = fly(&request, &outcome);
    if (status != BH_OK) return status;
    status = bh__product_load(device, outcome.product, outcome.cache, out);
    bh__outcome_free(&outcome);
    return ended(status);
}

/* A request with everything in it copied; NULL with the thread's error. */
static bh__compile_request *own_request(const char *source, const bh_compile_options *options,
                                        const bh_device_info *info) {
    bh__compile_request *request = malloc(sizeof *request);
    if (request && bh__request_compile(request, source, options, info) != BH_OK) {
        free(request);
        return NULL;
    }
    if (request && bh__request_own(request)) return request;
    if (request) bh__request_free(request);
    free(request);
    bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for a compile");
    return NULL;
}

static bh_status submit(bh_device handle, const char *source, const bh_compile_options *options,
                        bh_module *out, bh_ticket *ticket) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the module", "out is NULL");
    bh_device_info info;
    bh_status status = device_info(handle, &info);
    if (status != BH_OK) return status;
    bh__compile_request *request = own_request(source, options, &info);
    if (!request) return bh__last()->status;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    bh__module *module = device ? bh__module_announce(device) : NULL;
    if (!module) {
        if (device) bh__device_unlock(device);
        bh__request_free(request);
        free(request);
        return bh__last()->status;
    }
    bh_module made = {module->id};
    bh_ticket given = {atomic_load(&device->lanes[BH__LOAD_LANE].id), module->ticket};
    status = bh__flight_send(request, device, module);
    bh__device_step_out(device);
    if (status == BH_OK) {
        *out = made;
        if (ticket) *ticket = given;
    } else {
        bh_error why = *bh__last();
        bh__module_resolve(device, module, &why);
        bh__refuse_with(&why);
    }
    bh__ticket_leave(device);
    return status;
}

bh_status bh_submit_compile(bh_device device, const char *source, const bh_compile_options *options,
                            bh_module *out, bh_ticket *ticket) {
    return ended(submit(device, source, options, out, ticket));
}
