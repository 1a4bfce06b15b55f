/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling and linking: the public calls. */
#include <stdlib.h>
#include <string.h>

#include "client/compile/binary.h"
#include "client/compile/in_flight.h"
#include "client/compile/logs.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/module/module.h"
#include "client/module/product.h"

enum { MAX_PARTS = 4096 };

/* Runs the request and frees it. If it failed, its log becomes the thread's (bh_compile_log). */
static bh_status run(bh__compile_request *request, bh__outcome *outcome) {
    bh_status status = bh__compile_run(request, outcome);
    bh__request_free(request);
    if (status == BH_OK) return BH_OK;
    bh__compile_log_keep_last(outcome->log);
    status = bh__refuse_with(&outcome->error);
    bh__outcome_free(outcome);
    return status;
}

/* Passes on the status of a call in which no compiler failed. If the call failed for another
 * reason, there is no log of it, so an earlier log is cleared. */
static bh_status without_log(bh_status status) {
    if (status != BH_OK) bh__compile_log_keep_last(NULL);
    return status;
}

bh_status bh_compile(const char *source, const bh_compile_options *options, bh_binary *out) {
    if (!out)
        return without_log(bh__refuse(BH_E_INVALID, "pass storage for the binary", "out is NULL"));
    if (bh__refuse_forked()) return without_log(BH_E_STOPPED);
    bh__compile_request request;
    bh__outcome outcome;
    bh_status status = bh__request_compile(&request, source, options, NULL);
    if (status != BH_OK) return without_log(status);
    status = run(&request, &outcome);
    return status == BH_OK ? without_log(bh__binary_make(outcome.product, outcome.cache, out))
                           : status;
}

bh_status bh_link(const bh_binary *parts, size_t count, const bh_compile_options *options,
                  bh_binary *out) {
    if (!parts || !out || count == 0 || count > MAX_PARTS)
        return without_log(bh__refuse(
            BH_E_INVALID, "pass 1 to 4096 binaries and storage for the result",
            "parts is %p, count is %zu, out is %p", (const void *)parts, count, (void *)out));
    if (bh__refuse_forked()) return without_log(BH_E_STOPPED);
    bh__product **products = calloc(count, sizeof *products);
    if (!products)
        return without_log(bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                                      "no host memory to link %zu binaries", count));
    bh_status status = BH_OK;
    for (size_t i = 0; i < count && status == BH_OK; i++) {
        products[i] = bh__binary_product(parts[i], "a part", NULL);
        if (!products[i]) status = bh__last()->status;
    }
    bh__compile_request request;
    bh__outcome outcome;
    if (status == BH_OK) status = bh__request_link(&request, products, count, options);
    if (without_log(status) == BH_OK) status = run(&request, &outcome);
    for (size_t i = 0; i < count; i++) bh__product_release(products[i]);
    free(products);
    return status == BH_OK ? without_log(bh__binary_make(outcome.product, outcome.cache, out))
                           : status;
}

/* Fails if the device has stopped. */
static bh_status find_target(bh_device handle, bh__compile_target *out) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    *out = (bh__compile_target){.info = device->info, .traits = device->traits};
    bh__device_unlock(device);
    return BH_OK;
}

bh_status bh_module_compile(bh_device device, const char *source, const bh_compile_options *options,
                            bh_module *out) {
    if (!out)
        return without_log(bh__refuse(BH_E_INVALID, "pass storage for the module", "out is NULL"));
    bh__compile_target target;
    bh__compile_request request;
    bh__outcome outcome;
    bh_status status = find_target(device, &target);
    if (status == BH_OK) status = bh__request_compile(&request, source, options, &target);
    if (status != BH_OK) return without_log(status);
    status = run(&request, &outcome);
    if (status != BH_OK) return status;
    status = bh__product_load(device, outcome.product, outcome.cache, out);
    bh__outcome_free(&outcome);
    return without_log(status);
}

/* Makes a request that borrows nothing. Returns NULL with the thread's error set on failure. */
static bh__compile_request *make_owned_request(const char *source,
                                               const bh_compile_options *options,
                                               const bh__compile_target *target) {
    bh__compile_request *request = malloc(sizeof *request);
    if (request && bh__request_compile(request, source, options, target) != BH_OK) {
        free(request);
        return NULL;
    }
    if (request && bh__request_own(request)) return request;
    if (request) bh__request_free(request);
    free(request);
    bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for a compile request");
    return NULL;
}

static bh_status submit(bh_device handle, const char *source, const bh_compile_options *options,
                        bh_module *out, bh_ticket *ticket) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the module", "out is NULL");
    bh__compile_target target;
    bh_status status = find_target(handle, &target);
    if (status != BH_OK) return status;
    bh__compile_request *request = make_owned_request(source, options, &target);
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
    status = bh__compile_start(request, device, module);
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
    return without_log(submit(device, source, options, out, ticket));
}
