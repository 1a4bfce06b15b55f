/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker says a module holds, as the application reads it. */
#include "client/module/module.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bh__module *module = calloc(1, sizeof *module);
    FUZZ_CHECK(module != NULL);
    module->image_fd = -1;
    if (bh__module_parse(module, fuzz_memory_file(data, size))) {
        for (uint32_t i = 0; i < module->kernel_count; i++) {
            const bh__kernel *kernel = &module->kernels[i];
            FUZZ_CHECK(strlen(kernel->name) < size);
            for (uint32_t n = 0; n < kernel->shape.param_count; n++)
                FUZZ_CHECK(kernel->params[n].offset <= kernel->shape.param_bytes);
        }
        for (uint32_t i = 0; i < module->variable_count; i++)
            FUZZ_CHECK(strlen(module->variables[i].name) < size);
    }
    bh__module_delete(module);
    return 0;
}
