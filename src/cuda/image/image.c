/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes module images by their contents, and keeps the lists of names in them. */
#include "cuda/image/image.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void *grow(bh__module_image *image, void *list, size_t count, size_t element) {
    if (count & (count - 1)) return list; /* capacity doubles at powers of two */
    void *larger = realloc(list, (count ? count * 2 : 1) * element);
    if (!larger) image->failed = true;
    return larger;
}

static char *copy_name(bh__module_image *image, const char *name, size_t length) {
    char *copy = strndup(name, length);
    if (!copy) image->failed = true;
    return copy;
}

bh__module_image_kernel *bh__module_image_add_kernel(bh__module_image *image, const char *name,
                                                     size_t length) {
    bh__module_image_kernel *kernels =
        grow(image, image->kernels, image->kernel_count, sizeof *kernels);
    char *copy = kernels ? copy_name(image, name, length) : NULL;
    if (kernels) image->kernels = kernels;
    if (!copy) return NULL;
    bh__module_image_kernel *kernel = &kernels[image->kernel_count++];
    memset(kernel, 0, sizeof *kernel);
    kernel->name = copy;
    return kernel;
}

void bh__module_image_add_variable(bh__module_image *image, const char *name, size_t length,
                                   uint64_t bytes, bool constant) {
    bh__module_image_variable *variables =
        grow(image, image->variables, image->variable_count, sizeof *variables);
    char *copy = variables ? copy_name(image, name, length) : NULL;
    if (variables) image->variables = variables;
    if (copy)
        variables[image->variable_count++] =
            (bh__module_image_variable){copy, bytes, constant, .written = !constant};
}

void bh__module_image_add_param(bh__module_image *image, bh__module_image_kernel *kernel,
                                bh__blob_param param) {
    bh__blob_param *params = grow(image, kernel->params, kernel->param_count, sizeof *params);
    if (!params) return;
    kernel->params = params;
    params[kernel->param_count++] = param;
    uint32_t end;
    if (__builtin_add_overflow(param.offset, param.bytes, &end)) end = UINT32_MAX;
    if (end > kernel->param_bytes) kernel->param_bytes = end;
}

void bh__module_image_free(bh__module_image *image) {
    for (size_t i = 0; i < image->kernel_count; i++) {
        free(image->kernels[i].name);
        free(image->kernels[i].params);
    }
    for (size_t i = 0; i < image->variable_count; i++) free(image->variables[i].name);
    free(image->kernels);
    free(image->variables);
    free(image->text);
    memset(image, 0, sizeof *image);
}

int bh__module_image_target_number(const char *target) {
    while (*target && !isdigit((unsigned char)*target)) target++;
    return atoi(target);
}

/* Checks the length in the fatbin's header: header and entries. */
static bh_status read_fatbin(bh__module_image *image, const uint8_t *bytes, size_t size,
                             bh_error *error) {
    uint16_t head_bytes;
    uint64_t body_bytes;
    if (size < 16) goto damaged;
    memcpy(&head_bytes, bytes + 6, sizeof head_bytes);
    memcpy(&body_bytes, bytes + 8, sizeof body_bytes);
    if (head_bytes < 16 || head_bytes > size || body_bytes > size - head_bytes) goto damaged;
    image->kind = BH__MODULE_IMAGE_FATBIN;
    image->bytes = bytes;
    /* Its parts may be compressed, so printf cannot be ruled out. */
    image->prints = true;
    return BH_OK;
damaged:
    return bh__fail(error, BH_E_LOAD, "load the whole file as the compiler wrote it",
                    "the image begins like a fatbin and is truncated at %zu bytes", size);
}

bh_status bh__module_image_read(bh__module_image *image, const void *bytes, size_t size,
                                bh_error *error) {
    static const uint8_t elf[4] = {0x7f, 'E', 'L', 'F'}, fatbin[4] = {0x50, 0xed, 0x55, 0xba};
    static const uint8_t wrapper[4] = {0xb1, 0x43, 0x62, 0x46};
    memset(image, 0, sizeof *image);
    if (size >= 4 && memcmp(bytes, wrapper, 4) == 0)
        return bh__fail(
            error, BH_E_LOAD, "load the fatbin itself, a file made with nvcc -fatbin",
            "the image is the wrapper that host programs have around a fatbin: it holds an "
            "address");
    bh_status status;
    if (size >= 4 && memcmp(bytes, elf, 4) == 0)
        status = bh__module_image_read_cubin(image, bytes, size, error);
    else if (size >= 4 && memcmp(bytes, fatbin, 4) == 0)
        status = read_fatbin(image, bytes, size, error);
    else
        status = bh__module_image_read_ptx(image, bytes, size, error);
    if (status == BH_OK && image->failed)
        status = bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                          "no memory to read a module of %zu bytes", size);
    if (status != BH_OK) bh__module_image_free(image);
    return status;
}
