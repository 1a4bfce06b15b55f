/* SPDX-License-Identifier: Apache-2.0 */
/* Loading of modules through the passes; images, which give variables their memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ptx/run/exec.h"

#define GUARD_BYTES                                                                                \
    64 /* between variables, so that an access just past the end of one is a fault */

static bh_status no_memory(bh_error *error, uint64_t bytes) {
    return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory, or load a smaller module",
                    "no memory for %llu bytes of a PTX module", (unsigned long long)bytes);
}

bh_status bh__ptx_load(const char *text, size_t length, bh_error *error, bh__ptx_module **out) {
    *out = NULL;
    while (length > 0 && text[length - 1] == 0) {
        length--; /* callers often include the NUL at the end of a C string */
    }
    if (length > BH__PTX_MAX_TEXT) {
        return bh__fail(error, BH_E_LOAD, "split the module",
                        "the PTX text has %zu bytes; at most %zu can be loaded", length,
                        BH__PTX_MAX_TEXT);
    }
    bh__ptx_module *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return no_memory(error, sizeof *m);
    }
    m->text = bh__arena_copy(&m->arena, text, length);
    m->length = length;
    bh_status status = m->text == NULL ? no_memory(error, length) : BH_OK;
    if (status == BH_OK) {
        status = bh__ptx_parse(m, error);
    }
    if (status == BH_OK) {
        status = bh__ptx_verify(m, error);
    }
    if (status == BH_OK) {
        status = bh__ptx_layout(m, error);
    }
    if (status == BH_OK) {
        status = bh__ptx_lower(m, error);
    }
    if (status != BH_OK) {
        bh__ptx_free(m);
        return status;
    }
    *out = m;
    return BH_OK;
}

void bh__ptx_free(bh__ptx_module *module) {
    if (module == NULL) {
        return;
    }
    free(module->constants);
    bh__arena_free(&module->arena);
    free(module);
}

uint32_t bh__ptx_kernel_count(const bh__ptx_module *module) {
    return module->kernel_count;
}

const bh__ptx_kernel *bh__ptx_kernel_at(const bh__ptx_module *module, uint32_t index) {
    return index < module->kernel_count ? &module->kernels[index] : NULL;
}

uint32_t bh__ptx_variable_count(const bh__ptx_module *module) {
    return module->global_count;
}

const bh__ptx_variable *bh__ptx_variable_at(const bh__ptx_module *module, uint32_t index) {
    return index < module->global_count ? &module->variables[index] : NULL;
}

bool bh__ptx_uses_heap(const bh__ptx_module *module) {
    return module->uses_heap;
}

static uint64_t address_of(const bh__ptx_image *image, const bh__ptx_symbol *symbol) {
    if (symbol->kind == SYMBOL_FUNCTION) {
        return BH__PTX_WINDOW(WINDOW_CODE) + (uint64_t)symbol->function->index * 16;
    }
    return (uint64_t)(uintptr_t)image->variables[symbol->var->index];
}

static void initialise(bh__ptx_image *image, const bh__ptx_var *var) {
    uint8_t *to = image->variables[var->index];
    if (var->init_bytes > 0) {
        memcpy(to, var->init, var->init_bytes);
    }
    for (size_t n = 0; n < var->reloc_count; n++) {
        const bh__ptx_reloc *r = &var->relocs[n];
        uint64_t v = (address_of(image, r->symbol) + (uint64_t)r->addend) >> r->shift;
        for (unsigned byte = 0; byte < r->bytes; byte++) {
            to[r->offset + byte] = (uint8_t)(v >> 8 * byte);
        }
    }
}

bh_status bh__ptx_image_create(const bh__ptx_module *module, bh_error *error, bh__ptx_image **out) {
    uint32_t count = module->global_count;
    uint64_t bytes = 0;
    *out = NULL;
    for (uint32_t n = 0; n < count; n++) {
        const bh__ptx_var *var = module->globals[n]->var;
        bytes = (bytes + var->align - 1) & ~((uint64_t)var->align - 1);
        bytes += var->size + GUARD_BYTES;
    }
    bh__ptx_image *image = calloc(1, sizeof *image);
    if (image == NULL) {
        return no_memory(error, sizeof *image);
    }
    image->module = module;
    image->variables = calloc((size_t)count + 1, sizeof *image->variables);
    image->ranges = calloc((size_t)count + 1, sizeof *image->ranges);
    if (bytes > 0) {
        /* Mapped, so that pages of large variables are allocated only when they are used. */
        image->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        image->memory = image->memory == MAP_FAILED ? NULL : image->memory;
        image->memory_bytes = bytes;
    }
    if (image->variables == NULL || image->ranges == NULL || (bytes > 0 && image->memory == NULL)) {
        bh__ptx_image_destroy(image);
        return no_memory(error, bytes);
    }
    uint64_t at = 0;
    for (uint32_t n = 0; n < count; n++) {
        const bh__ptx_var *var = module->globals[n]->var;
        at = (at + var->align - 1) & ~((uint64_t)var->align - 1);
        image->variables[n] = (uint8_t *)image->memory + at;
        image->ranges[n] = (bh__ptx_range){.base = (uint64_t)(uintptr_t)image->variables[n],
                                           .size = var->size,
                                           .writable = var->space != SPACE_CONST};
        at += var->size + GUARD_BYTES;
    }
    image->range_count = count;
    for (uint32_t n = 0; n < count; n++) {
        initialise(image, module->globals[n]->var);
    }
    *out = image;
    return BH_OK;
}

void bh__ptx_image_destroy(bh__ptx_image *image) {
    if (image == NULL) {
        return;
    }
    if (image->memory != NULL) {
        munmap(image->memory, image->memory_bytes);
    }
    free(image->variables);
    free(image->ranges);
    free(image);
}

void *bh__ptx_image_variable(const bh__ptx_image *image, uint32_t index) {
    return index < image->module->global_count ? image->variables[index] : NULL;
}
