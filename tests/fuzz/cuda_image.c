/* SPDX-License-Identifier: Apache-2.0 */
/* Module images as the CUDA worker reads them before the driver does, and as the application holds
 * them: PTX, cubins, fatbins. What is listed has names, and parameters that lie in their block. */
#include "bulkhead.h"
#include "cuda/image/image.h"
#include "fuzz.h"

static void check_kernel(const bh__module_image_kernel *kernel) {
    FUZZ_CHECK(kernel->name != NULL && strlen(kernel->name) < SIZE_MAX);
    for (uint32_t i = 0; i < kernel->param_count; i++) {
        uint64_t end = (uint64_t)kernel->params[i].offset + kernel->params[i].bytes;
        FUZZ_CHECK(end <= kernel->param_bytes);
    }
}

static void read_image(const uint8_t *data, size_t size) {
    bh__module_image image;
    bh_error error;
    bh_status status = bh__module_image_read(&image, data, size, &error);
    if (status != BH_OK) {
        FUZZ_CHECK(error.message[0] && error.fix[0]);
    } else {
        for (size_t i = 0; i < image.kernel_count; i++) check_kernel(&image.kernels[i]);
        for (size_t i = 0; i < image.variable_count; i++)
            FUZZ_CHECK(strlen(image.variables[i].name) < SIZE_MAX);
        bh__module_image_target_number(image.target);
    }
    bh__module_image_free(&image);
}

static void hold_binary(const uint8_t *data, size_t size) {
    bh_binary binary;
    bh_binary_info info = BH_INIT(info);
    if (bh_binary_from(data, size, &binary) != BH_OK) return;
    FUZZ_CHECK(bh_binary_get_info(binary, &info) == BH_OK && info.count == size);
    FUZZ_CHECK(memcmp(info.bytes, data, size) == 0);
    FUZZ_CHECK(bh_binary_release(binary) == BH_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_image(data, size);
    hold_binary(data, size);
    return 0;
}
