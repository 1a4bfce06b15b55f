/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries as modules, and launches of their operations. */
#include "worker/library.h"

#include <string.h>

#include "worker/module_blob.h"

/* Behind the addresses and the request come the types of the operands. */
static uint32_t types_offset(const bh__library *library, const bh__operation *operation) {
    return bh__request_offset(operation) + library->request_bytes;
}

bh_status bh__library_describe(const bh__library *library, bh_error *error, int *out_blob) {
    bh__blob blob = {0};
    for (uint32_t i = 0; i < library->count; i++) {
        const bh__operation *operation = &library->operations[i];
        bh__blob_param params[BH__OPERANDS + 2];
        memset(params, 0, sizeof params);
        uint32_t count = operation->operand_count;
        for (uint32_t k = 0; k < count; k++)
            params[k] = (bh__blob_param){.offset = k * 8, .bytes = 8, .pointer = 1};
        params[count].offset = bh__request_offset(operation);
        params[count].bytes = library->request_bytes;
        params[count + 1].offset = types_offset(library, operation);
        params[count + 1].bytes = BH__OPERANDS * sizeof(bh_type);
        bh__blob_kernel entry = {.param_count = count + 2,
                                 .param_bytes = types_offset(library, operation) +
                                                BH__OPERANDS * (uint32_t)sizeof(bh_type),
                                 .max_threads = 1,
                                 .executor = BH_EXECUTOR_DEVICE};
        bh__blob_add_kernel(&blob, operation->name, entry, params);
    }
    return bh__blob_finish(&blob, error, out_blob);
}

bh_status bh__library_call_read(const bh__library *library, const bh__work *work, bh_error *error,
                                bh__library_call *out) {
    const bh__launch_body *body = &work->u.launch;
    const bh__operation *operation =
        body->kernel < library->count ? &library->operations[body->kernel] : NULL;
    uint32_t wanted =
        operation ? types_offset(library, operation) + (uint32_t)sizeof out->types : 0;
    if (!operation || body->param_bytes != wanted || library->request_bytes > BH__REQUEST_BYTES)
        return bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                        "call %u of library %s has %u bytes of parameters instead of %u",
                        body->kernel, library->name, body->param_bytes, wanted);
    out->operation = operation;
    memcpy(out->request.bytes, work->params + bh__request_offset(operation),
           library->request_bytes);
    memcpy(out->types, work->params + types_offset(library, operation), sizeof out->types);
    /* An operand begins with its buffer, whose handle the address replaces. Type 0: left out. */
    for (uint32_t i = 0; i < operation->operand_count; i++) {
        if (out->types[i])
            memcpy(out->request.bytes + operation->operands[i].at, work->params + i * 8, 8);
    }
    return BH_OK;
}
